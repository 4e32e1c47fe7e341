//! The SSHSIG container (OpenSSH `PROTOCOL.sshsig`): armour, fields, and the bytes that are signed.
//!
//! Only the form that `ssh-keygen -Y sign` writes is read: one block, base64 in lines of 70
//! characters, nothing before or after. So a signature has exactly one spelling, and two readers
//! can't disagree about which block counts.

use super::wire::{Malformed, Reader, put_string};
use data_encoding::BASE64;
use sha2::{Digest as _, Sha256, Sha512};

const MAGIC: &[u8] = b"SSHSIG";
const BEGIN: &str = "-----BEGIN SSH SIGNATURE-----\n";
const END: &str = "-----END SSH SIGNATURE-----\n";
const LINE: usize = 70;

/// Hash over the message, named inside the signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hash {
    Sha256,
    Sha512,
}

impl Hash {
    const fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    fn digest(self, message: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha256 => Sha256::digest(message).to_vec(),
            Self::Sha512 => Sha512::digest(message).to_vec(),
        }
    }
}

/// The fields of an SSHSIG blob, unverified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SshSig {
    /// Public key in wire form.
    pub(super) key: Vec<u8>,
    pub(super) namespace: String,
    pub(super) hash: Hash,
    /// Signature in wire form: algorithm name, then what the algorithm defines.
    pub(super) signature: Vec<u8>,
}

/// Why the container could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ArmourError {
    Malformed,
    Version(u32),
    Reserved,
    Hash(String),
}

impl From<Malformed> for ArmourError {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

impl SshSig {
    /// Reads the armoured form.
    pub(super) fn parse(armoured: &[u8]) -> Result<Self, ArmourError> {
        let text = std::str::from_utf8(armoured).map_err(|_| ArmourError::Malformed)?;
        let body = text
            .strip_prefix(BEGIN)
            .and_then(|rest| rest.strip_suffix(END))
            .ok_or(ArmourError::Malformed)?;
        let base64: String = body.split('\n').collect();
        let blob = BASE64
            .decode(base64.as_bytes())
            .map_err(|_| ArmourError::Malformed)?;
        if armour(&blob).as_bytes() != armoured {
            return Err(ArmourError::Malformed);
        }
        Self::decode(&blob)
    }

    fn decode(blob: &[u8]) -> Result<Self, ArmourError> {
        let mut reader = Reader::new(blob);
        if reader.bytes(MAGIC.len())? != MAGIC {
            return Err(ArmourError::Malformed);
        }
        match reader.u32()? {
            1 => {}
            other => return Err(ArmourError::Version(other)),
        }
        let key = reader.string()?.to_vec();
        let namespace = reader.text()?.to_owned();
        if !reader.string()?.is_empty() {
            return Err(ArmourError::Reserved);
        }
        let hash = match reader.text()? {
            "sha256" => Hash::Sha256,
            "sha512" => Hash::Sha512,
            other => return Err(ArmourError::Hash(other.chars().take(20).collect())),
        };
        let signature = reader.string()?.to_vec();
        reader.finish()?;
        Ok(Self {
            key,
            namespace,
            hash,
            signature,
        })
    }

    /// Writes the armoured form.
    pub(super) fn to_armoured(&self) -> Vec<u8> {
        let mut blob = MAGIC.to_vec();
        blob.extend(1_u32.to_be_bytes());
        put_string(&mut blob, &self.key);
        put_string(&mut blob, self.namespace.as_bytes());
        put_string(&mut blob, b"");
        put_string(&mut blob, self.hash.name().as_bytes());
        put_string(&mut blob, &self.signature);
        armour(&blob).into_bytes()
    }
}

/// The bytes that the key signs: not the message, but its hash bound to namespace and hash name.
pub(super) fn signed_data(namespace: &str, hash: Hash, message: &[u8]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    put_string(&mut out, namespace.as_bytes());
    put_string(&mut out, b"");
    put_string(&mut out, hash.name().as_bytes());
    put_string(&mut out, &hash.digest(message));
    out
}

fn armour(blob: &[u8]) -> String {
    let base64 = BASE64.encode(blob);
    let mut out = String::from(BEGIN);
    let mut rest = base64.as_str();
    while !rest.is_empty() {
        let (line, tail) = rest.split_at(rest.len().min(LINE));
        out.push_str(line);
        out.push('\n');
        rest = tail;
    }
    out.push_str(END);
    out
}
