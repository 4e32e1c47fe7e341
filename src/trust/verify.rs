//! Verification of one signature by one key for one use.

use super::armour::{ArmourError, SshSig, signed_data};
use super::key::{Algorithm, KeyError, PublicKey};
use super::namespace::Namespace;
use super::wire::{Malformed, Reader};
use ed25519_dalek::Verifier as _;
use sha2::{Digest as _, Sha256};
use ssh_key::public::KeyData;
use std::collections::BTreeMap;

/// Longest signature that is read, in bytes.
pub const MAX_SIGNATURE: usize = 8 << 10;

/// FIDO flag: a person touched the token.
const USER_PRESENT: u8 = 0x01;

/// Why a signature does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// More than [`MAX_SIGNATURE`] bytes.
    #[error("the signature has {0} bytes; at most {MAX_SIGNATURE} are read")]
    TooLong(usize),
    /// Not exactly one SSHSIG block as `ssh-keygen -Y sign` writes it.
    #[error("not exactly one SSH signature block as `ssh-keygen -Y sign` writes it")]
    Malformed,
    /// A version, hash or reserved field that this program does not know.
    #[error("the signature uses {0}, which is not known here")]
    Unknown(String),
    /// The key inside is none that hangar accepts.
    #[error("the key inside the signature is not accepted")]
    Key(#[source] KeyError),
    /// Made for another use.
    #[error("the signature was made for `{found}`, not for `{wanted}`")]
    WrongNamespace {
        /// What it should be for.
        wanted: Namespace,
        /// What it says, cut to 60 printable characters.
        found: String,
    },
    /// Made by another key.
    #[error("the signature was made by {found}, not by {wanted}")]
    WrongKey {
        /// Fingerprint of the key that should have signed.
        wanted: String,
        /// Fingerprint of the key that the signature names.
        found: String,
    },
    /// The signature algorithm does not fit the key, or is too weak (RSA with SHA-1).
    #[error("the signature algorithm `{0}` is not accepted for this key")]
    Algorithm(String),
    /// A hardware key signed without a touch.
    #[error("the hardware key signed without a person's touch")]
    NoTouch,
    /// The mathematics say no: other bytes, or a forgery.
    #[error("the signature does not match the signed bytes")]
    Mismatch,
}

impl From<ArmourError> for SignatureError {
    fn from(error: ArmourError) -> Self {
        match error {
            ArmourError::Malformed => Self::Malformed,
            ArmourError::Version(number) => Self::Unknown(format!("version {number}")),
            ArmourError::Reserved => Self::Unknown("the reserved field".into()),
            ArmourError::Hash(name) => Self::Unknown(format!("hash `{}`", printable(&name))),
        }
    }
}

impl From<Malformed> for SignatureError {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

/// Checks that `signature` (armoured SSHSIG) is by `key`, for `namespace`, over exactly `message`.
pub fn verify(
    key: &PublicKey,
    namespace: Namespace,
    message: &[u8],
    signature: &[u8],
) -> Result<(), SignatureError> {
    let sig = parse(signature)?;
    check_namespace(&sig, namespace)?;
    if sig.key != key.wire() {
        let found = PublicKey::from_wire(&sig.key).map_err(SignatureError::Key)?;
        return Err(SignatureError::WrongKey {
            wanted: key.fingerprint().to_string(),
            found: found.fingerprint().to_string(),
        });
    }
    verify_parsed(key, &sig, message)
}

/// Checks that `signature` is for `namespace`, over exactly `message`, and by the key that it names,
/// which is returned. Whose key that is, the caller must ask.
pub fn verify_claimed(
    keys: &KeyRing,
    namespace: Namespace,
    message: &[u8],
    signature: &[u8],
) -> Result<PublicKey, SignatureError> {
    let sig = parse(signature)?;
    let key = match keys.get(&sig.key) {
        Some(key) => key.clone(),
        None => PublicKey::from_wire(&sig.key).map_err(SignatureError::Key)?,
    };
    check_namespace(&sig, namespace)?;
    verify_parsed(&key, &sig, message)?;
    Ok(key)
}

/// Keys that were read before. Which keys are in it changes how fast a signature is verified, and
/// nothing else.
#[derive(Debug, Clone, Default)]
pub struct KeyRing(BTreeMap<Vec<u8>, PublicKey>);

impl KeyRing {
    fn get(&self, wire: &[u8]) -> Option<&PublicKey> {
        self.0.get(wire)
    }
}

impl FromIterator<PublicKey> for KeyRing {
    fn from_iter<I: IntoIterator<Item = PublicKey>>(keys: I) -> Self {
        let keys = keys.into_iter();
        Self(keys.map(|key| (key.wire().to_vec(), key)).collect())
    }
}

fn check_namespace(sig: &SshSig, wanted: Namespace) -> Result<(), SignatureError> {
    if sig.namespace == wanted.as_str() {
        return Ok(());
    }
    Err(SignatureError::WrongNamespace {
        wanted,
        found: printable(&sig.namespace),
    })
}

fn verify_parsed(key: &PublicKey, sig: &SshSig, message: &[u8]) -> Result<(), SignatureError> {
    let data = signed_data(&sig.namespace, sig.hash, message);
    verify_raw(key, &data, &sig.signature)
}

/// The key that a signature says it was made by. Nothing is verified; use it only to look up whom
/// to verify against.
pub fn claimed_key(signature: &[u8]) -> Result<PublicKey, SignatureError> {
    PublicKey::from_wire(&parse(signature)?.key).map_err(SignatureError::Key)
}

fn parse(signature: &[u8]) -> Result<SshSig, SignatureError> {
    if signature.len() > MAX_SIGNATURE {
        return Err(SignatureError::TooLong(signature.len()));
    }
    Ok(SshSig::parse(signature)?)
}

/// Verifies a signature in wire form over `data`.
fn verify_raw(key: &PublicKey, data: &[u8], signature: &[u8]) -> Result<(), SignatureError> {
    let mut reader = Reader::new(signature);
    let name = reader.text()?;
    check_algorithm(key.algorithm(), name)?;
    let body = reader.string()?;
    let trailer = if key.algorithm().is_hardware() {
        reader.bytes(5)?
    } else {
        &[]
    };
    reader.finish()?;
    match key.data() {
        KeyData::Ed25519(_) => verify_ed25519(key, data, body),
        KeyData::SkEd25519(public) => {
            let data = token_data(public.application(), trailer, data)?;
            verify_ed25519(key, &data, body)
        }
        KeyData::SkEcdsaSha2NistP256(public) => {
            token_data(public.application(), trailer, data)?;
            verify_other(key, data, signature)
        }
        _ => verify_other(key, data, signature),
    }
}

fn check_algorithm(key: Algorithm, name: &str) -> Result<(), SignatureError> {
    let fits = match key {
        // `ssh-rsa` as a signature algorithm is SHA-1.
        Algorithm::Rsa => matches!(name, "rsa-sha2-256" | "rsa-sha2-512"),
        other => name == other.as_str(),
    };
    if fits {
        Ok(())
    } else {
        Err(SignatureError::Algorithm(printable(name)))
    }
}

/// What a FIDO token signs (OpenSSH `PROTOCOL.u2f`); fails unless a person touched it.
fn token_data(application: &str, trailer: &[u8], data: &[u8]) -> Result<Vec<u8>, SignatureError> {
    let flags = trailer.first().ok_or(SignatureError::Malformed)?;
    if flags & USER_PRESENT == 0 {
        return Err(SignatureError::NoTouch);
    }
    let mut out = Sha256::digest(application).to_vec();
    out.extend(trailer);
    out.extend(Sha256::digest(data));
    Ok(out)
}

/// Strict: refuses keys of small order and signatures with a second spelling.
fn verify_ed25519(key: &PublicKey, data: &[u8], body: &[u8]) -> Result<(), SignatureError> {
    let signature =
        ed25519_dalek::Signature::from_slice(body).map_err(|_| SignatureError::Malformed)?;
    let point = key.point().ok_or(SignatureError::Mismatch)?;
    point
        .verify_strict(data, &signature)
        .map_err(|_| SignatureError::Mismatch)
}

fn verify_other(key: &PublicKey, data: &[u8], signature: &[u8]) -> Result<(), SignatureError> {
    let signature =
        ssh_key::Signature::try_from(signature).map_err(|_| SignatureError::Malformed)?;
    key.data()
        .verify(data, &signature)
        .map_err(|_| SignatureError::Mismatch)
}

/// Text from a signature, made safe to show.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_ascii_graphic() { c } else { '?' })
        .take(60)
        .collect()
}
