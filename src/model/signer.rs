//! Who signed a document, as the document itself says it.

use crate::model::digest::Digest;
use crate::model::ids::{Fingerprint, Principal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The `[signer]` table that every document but the policy carries.
///
/// It is a claim until `store` has checked it: the key must have made the signature, and the named
/// policy version must give the principal that key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Signer {
    /// Who.
    pub principal: Principal,
    /// With which key.
    pub key: Fingerprint,
    /// Claimed time, RFC 3339 in UTC. Shown, never decides anything.
    pub at: String,
    /// The policy version that the signer acted under.
    pub policy: PolicyRef,
}

/// A version of the policy: its number and the digest of its `members.toml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyRef {
    /// Version, from 1.
    pub version: u64,
    /// SHA-256 of that version's `members.toml`, which names its `root.toml`.
    pub digest: Digest,
}
