//! One decision by one person over one manifest.
//!
//! Format: `docs/format.md`, "Approval".

use crate::model::digest::Digest;
use crate::model::ids::TaskId;
use crate::model::signer::Signer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `approval.toml`, signed in namespace `hangar-approval` by a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// Document format, 1.
    pub format: i64,
    /// The repository.
    pub repo: Digest,
    /// The task.
    pub task: TaskId,
    /// What is decided about: the SHA-256 of `manifest.toml`.
    pub manifest: Digest,
    /// Its version, for people; the digest decides.
    pub version: u32,
    /// Approve or reject.
    pub action: Action,
    /// Why; required to reject.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Decisions of the same key about the same manifest that this one takes back: those that counted where
    /// it was signed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub takes_back: Vec<Digest>,
    /// 128 random bits in hex.
    pub nonce: String,
    /// RFC 3339 time after which an approval can't be used any more. Absent for a rejection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_after: Option<String>,
    /// Seconds from the first look at the card to the decision, where measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// How many sealed files were opened before the decision.
    pub files_opened: u32,
    /// Who and when.
    pub signer: Signer,
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// These tests are the acceptance.
    Approve,
    /// They are not.
    Reject,
}
