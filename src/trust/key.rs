//! Public keys: which kinds count, and their one spelling.

use super::wire::Reader;
use crate::model::ids::Fingerprint;
use data_encoding::{BASE64, BASE64_NOPAD};
use ed25519_dalek::VerifyingKey;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};
use ssh_key::public::KeyData;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Longest accepted key text, in bytes (a 4096-bit RSA key needs about 750).
const MAX_TEXT: usize = 8 << 10;
/// Smallest RSA modulus, in bits.
const MIN_RSA: usize = 3072;
/// Largest RSA modulus, in bits: what the in-process verifier takes.
const MAX_RSA: usize = 4096;

/// The kinds of key that hangar accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    /// `ssh-ed25519` (RFC 8709).
    Ed25519,
    /// `ecdsa-sha2-nistp256` (RFC 5656).
    EcdsaP256,
    /// `ssh-rsa` with 3072 to 4096 bits; signatures `rsa-sha2-256` and `rsa-sha2-512` (RFC 8332).
    Rsa,
    /// `sk-ssh-ed25519@openssh.com`: the private half sits in a FIDO token.
    SkEd25519,
    /// `sk-ecdsa-sha2-nistp256@openssh.com`: the private half sits in a FIDO token.
    SkEcdsaP256,
}

impl Algorithm {
    /// The name in OpenSSH's key texts.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ed25519 => "ssh-ed25519",
            Self::EcdsaP256 => "ecdsa-sha2-nistp256",
            Self::Rsa => "ssh-rsa",
            Self::SkEd25519 => "sk-ssh-ed25519@openssh.com",
            Self::SkEcdsaP256 => "sk-ecdsa-sha2-nistp256@openssh.com",
        }
    }

    /// Whether signing needs a hardware token.
    pub const fn is_hardware(self) -> bool {
        matches!(self, Self::SkEd25519 | Self::SkEcdsaP256)
    }

    /// Whether a private key file of this kind can also decrypt (age's ssh recipients).
    pub const fn can_decrypt(self) -> bool {
        matches!(self, Self::Ed25519 | Self::Rsa)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a text is no public key for hangar.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Not `ALGORITHM BASE64 [COMMENT]`, or the base64 is not a key of that algorithm.
    #[error("not an OpenSSH public key (`ssh-ed25519 AAAA…`)")]
    Malformed,
    /// A certificate; its signer would be the CA, whom no policy names.
    #[error("`{0}` is a certificate; name the plain public key instead")]
    Certificate(String),
    /// A kind that is not accepted.
    #[error(
        "keys of kind `{0}` are not accepted; use ssh-ed25519, ecdsa-sha2-nistp256, ssh-rsa (3072 bits or more) or a FIDO key"
    )]
    Unsupported(String),
    /// RSA outside 3072 to 4096 bits.
    #[error("the RSA key has {0} bits; {MIN_RSA} to {MAX_RSA} are accepted")]
    RsaSize(usize),
    /// A key for which anybody can make signatures: a point of small order, or RSA with a bad
    /// exponent.
    #[error("the key is weak: anyone could sign for it")]
    Weak,
}

/// An accepted public key. Cheap to clone.
///
/// Invariant: the text is canonical (`ALGORITHM BASE64`, no comment), so that two values are equal
/// exactly when the keys are.
#[derive(Clone)]
pub struct PublicKey(Arc<Parts>);

/// A key, and what is computed of it once instead of for each of its signatures.
struct Parts {
    algorithm: Algorithm,
    text: String,
    wire: Vec<u8>,
    data: KeyData,
    /// The curve point of a plain or hardware ed25519 key.
    point: Option<VerifyingKey>,
    fingerprint: Fingerprint,
}

impl PublicKey {
    /// Reads the wire form (the part that stands in base64 in the text form).
    pub(super) fn from_wire(blob: &[u8]) -> Result<Self, KeyError> {
        let name = Reader::new(blob).text().map_err(|_| KeyError::Malformed)?;
        let algorithm = match name {
            "ssh-ed25519" => Algorithm::Ed25519,
            "ecdsa-sha2-nistp256" => Algorithm::EcdsaP256,
            "ssh-rsa" => Algorithm::Rsa,
            "sk-ssh-ed25519@openssh.com" => Algorithm::SkEd25519,
            "sk-ecdsa-sha2-nistp256@openssh.com" => Algorithm::SkEcdsaP256,
            other => return Err(refusal(other)),
        };
        let key = ssh_key::PublicKey::from_bytes(blob).map_err(|_| KeyError::Malformed)?;
        // One key, one spelling: padded integers or trailing bytes would make a second one.
        if key.to_bytes().ok().as_deref() != Some(blob) {
            return Err(KeyError::Malformed);
        }
        let data = key.key_data().clone();
        let point = check_strength(&data)?;
        Ok(Self(Arc::new(Parts {
            algorithm,
            text: format!("{algorithm} {}", BASE64.encode(blob)),
            wire: blob.to_vec(),
            data,
            point,
            fingerprint: fingerprint_of(blob),
        })))
    }

    pub(super) fn from_data(data: &KeyData) -> Result<Self, KeyError> {
        let blob = ssh_key::PublicKey::from(data.clone())
            .to_bytes()
            .map_err(|_| KeyError::Malformed)?;
        Self::from_wire(&blob)
    }

    pub(super) fn data(&self) -> &KeyData {
        &self.0.data
    }

    /// The wire form.
    pub(super) fn wire(&self) -> &[u8] {
        &self.0.wire
    }

    /// The curve point of an ed25519 key, plain or in a token.
    pub(super) fn point(&self) -> Option<&VerifyingKey> {
        self.0.point.as_ref()
    }

    /// The kind of key.
    pub fn algorithm(&self) -> Algorithm {
        self.0.algorithm
    }

    /// `ALGORITHM BASE64`, without a comment.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// `SHA256:` and 43 characters of base64, as `ssh-keygen -l` prints it.
    pub fn fingerprint(&self) -> Fingerprint {
        self.0.fingerprint.clone()
    }
}

fn fingerprint_of(wire: &[u8]) -> Fingerprint {
    format!("SHA256:{}", BASE64_NOPAD.encode(&Sha256::digest(wire)))
        .parse()
        .expect("a fingerprint is this prefix and the base64 of 32 bytes")
}

fn refusal(name: &str) -> KeyError {
    let shown: String = name
        .chars()
        .filter(char::is_ascii_graphic)
        .take(60)
        .collect();
    if name.contains("-cert-v0") {
        KeyError::Certificate(shown)
    } else {
        KeyError::Unsupported(shown)
    }
}

/// Refuses keys for which anybody can sign. Gives the point of an ed25519 key.
fn check_strength(data: &KeyData) -> Result<Option<VerifyingKey>, KeyError> {
    match data {
        KeyData::Ed25519(key) => check_point(&key.0).map(Some),
        KeyData::SkEd25519(key) => check_point(&key.public_key().0).map(Some),
        // OpenSSH writes points uncompressed; the short form would be a second spelling.
        KeyData::Ecdsa(key) if key.as_sec1_bytes().first() != Some(&4) => Err(KeyError::Malformed),
        KeyData::SkEcdsaSha2NistP256(key) if key.ec_point().as_bytes().first() != Some(&4) => {
            Err(KeyError::Malformed)
        }
        KeyData::Rsa(key) => {
            let n = key.n.as_positive_bytes().ok_or(KeyError::Malformed)?;
            let bits = n.len() * 8 - n.first().map_or(0, |b| b.leading_zeros() as usize);
            if !(MIN_RSA..=MAX_RSA).contains(&bits) {
                return Err(KeyError::RsaSize(bits));
            }
            let e = key.e.as_positive_bytes().ok_or(KeyError::Malformed)?;
            let odd = e.last().is_some_and(|b| b & 1 == 1);
            if !odd || e == [1] || e.len() > 4 || n.last().is_none_or(|b| b & 1 == 0) {
                return Err(KeyError::Weak);
            }
            Ok(None)
        }
        _ => Ok(None),
    }
}

fn check_point(bytes: &[u8; 32]) -> Result<VerifyingKey, KeyError> {
    let key = VerifyingKey::from_bytes(bytes).map_err(|_| KeyError::Malformed)?;
    if key.is_weak() {
        return Err(KeyError::Weak);
    }
    Ok(key)
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        if text.len() > MAX_TEXT || text.trim_end_matches('\n').contains(['\n', '\r', '\0']) {
            return Err(KeyError::Malformed);
        }
        let mut words = text.split_ascii_whitespace();
        let (Some(name), Some(base64)) = (words.next(), words.next()) else {
            return Err(KeyError::Malformed);
        };
        let blob = BASE64
            .decode(base64.as_bytes())
            .map_err(|_| KeyError::Malformed)?;
        if Reader::new(&blob).text() != Ok(name) {
            return Err(KeyError::Malformed);
        }
        Self::from_wire(&blob)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({} {})", self.algorithm(), self.fingerprint())
    }
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for PublicKey {}

impl std::hash::Hash for PublicKey {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.text.hash(state);
    }
}

impl PartialOrd for PublicKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PublicKey {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.text.cmp(&other.0.text)
    }
}

impl Serialize for PublicKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for PublicKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}
