//! Values whose signature was checked, as a type.

use super::key::PublicKey;
use super::namespace::Namespace;
use super::verify::{KeyRing, SignatureError, claimed_key, verify, verify_claimed};
use crate::model::digest::Digest;

/// Why bytes did not become a [`Verified`] value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckError<E> {
    /// The signature does not count.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// The signature is good, but the bytes are not what they should be.
    #[error(transparent)]
    Parse(E),
}

/// Who signed, as far as mathematics can tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedBy {
    /// The key.
    pub key: PublicKey,
    /// The use that it signed for.
    pub namespace: Namespace,
}

/// A value parsed from bytes after their signature was verified.
///
/// Invariant: only [`Verified::check`] and [`Unverified::verify_claimed`] make one. It proves possession of `key`, not authority:
/// whether that key may say this is decided in `store` with the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified<T> {
    value: T,
    digest: Digest,
    signer: SignedBy,
}

impl<T> Verified<T> {
    /// Verifies `signature` by `key` over `bytes`, and only then parses them.
    pub fn check<E>(
        bytes: &[u8],
        signature: &[u8],
        namespace: Namespace,
        key: &PublicKey,
        parse: impl FnOnce(&[u8]) -> Result<T, E>,
    ) -> Result<Self, CheckError<E>> {
        verify(key, namespace, bytes, signature)?;
        Self::parsed(bytes, namespace, key.clone(), parse)
    }

    /// What becomes of bytes whose signature was verified.
    fn parsed<E>(
        bytes: &[u8],
        namespace: Namespace,
        key: PublicKey,
        parse: impl FnOnce(&[u8]) -> Result<T, E>,
    ) -> Result<Self, CheckError<E>> {
        Ok(Self {
            value: parse(bytes).map_err(CheckError::Parse)?,
            digest: Digest::of(bytes),
            signer: SignedBy { key, namespace },
        })
    }

    /// The value.
    pub const fn value(&self) -> &T {
        &self.value
    }

    /// The value, given away; it is then no longer marked as verified.
    pub fn into_value(self) -> T {
        self.value
    }

    /// SHA-256 of the signed bytes.
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// Key and use of the signature.
    pub const fn signer(&self) -> &SignedBy {
        &self.signer
    }
}

/// Bytes and signature as read from a ref, not believed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unverified {
    bytes: Vec<u8>,
    signature: Vec<u8>,
}

impl Unverified {
    /// Holds what was read.
    pub const fn new(bytes: Vec<u8>, signature: Vec<u8>) -> Self {
        Self { bytes, signature }
    }

    /// SHA-256 of the bytes. It names the document also when nobody believes it.
    pub fn digest(&self) -> Digest {
        Digest::of(&self.bytes)
    }

    /// The bytes, for reports about what was refused, and for passing them on unchanged.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The armoured signature, for passing it on unchanged.
    pub fn signature(&self) -> &[u8] {
        &self.signature
    }

    /// The key that the signature names, unverified.
    pub fn claimed_key(&self) -> Result<PublicKey, SignatureError> {
        claimed_key(&self.signature)
    }

    /// Verifies and parses; see [`Verified::check`].
    pub fn verify<T, E>(
        &self,
        namespace: Namespace,
        key: &PublicKey,
        parse: impl FnOnce(&[u8]) -> Result<T, E>,
    ) -> Result<Verified<T>, CheckError<E>> {
        Verified::check(&self.bytes, &self.signature, namespace, key, parse)
    }

    /// The same against the key that the signature names. `keys` saves reading a known one again.
    pub fn verify_claimed<T, E>(
        &self,
        keys: &KeyRing,
        namespace: Namespace,
        parse: impl FnOnce(&[u8]) -> Result<T, E>,
    ) -> Result<Verified<T>, CheckError<E>> {
        let key = verify_claimed(keys, namespace, &self.bytes, &self.signature)?;
        Verified::parsed(&self.bytes, namespace, key, parse)
    }
}
