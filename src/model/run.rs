//! One round of one role: who worked, on what, with which result.
//!
//! Format: `docs/format.md`, "Run".

use crate::model::digest::Digest;
use crate::model::ids::TaskId;
use crate::model::object_id::ObjectId;
use crate::model::outcome::{Secrecy, Trust, text_form};
use crate::model::signer::Signer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// `run.toml`, signed in namespace `hangar-run` by a worker, or by the person who submits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Document format, 1.
    pub format: i64,
    /// The repository.
    pub repo: Digest,
    /// The task.
    pub task: TaskId,
    /// Agent's run or a person's patch.
    pub kind: Kind,
    /// In which role.
    pub role: RunRole,
    /// Turn or round of that role, from 1.
    pub round: u32,
    /// The manifest it worked under; absent for writers and plain tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Digest>,
    /// How it ended.
    pub outcome: RunOutcome,
    /// One line for people; never text from a model.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// How far the tests were out of the author's reach.
    pub secrecy: Secrecy,
    /// Claimed start, RFC 3339.
    pub started: String,
    /// Claimed end, RFC 3339.
    pub ended: String,
    /// Who and when.
    pub signer: Signer,
    /// The agent program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harness: Option<Harness>,
    /// What it was run in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxRecord>,
    /// The resulting tree; absent for writers and failed runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<RunResult>,
    /// Requests that left or tried to leave the sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress: Option<Egress>,
    /// Files beside this document.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachment: Vec<Attachment>,
}

/// Who made the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// An agent program that hangar ran.
    Agent,
    /// A person handed it in.
    Submitted,
}

/// Role of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunRole {
    /// Wrote hidden tests.
    Writer,
    /// Wrote code.
    Implementer,
}
text_form!(RunRole: Writer = "writer", Implementer = "implementer");

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunOutcome {
    /// The program says it is done and our checks agree.
    Completed,
    /// What it left could not be used.
    Malformed,
    /// The program failed.
    Failed,
    /// It was stopped: time, idle, or a person.
    Interrupted,
}

/// The agent program of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Harness {
    /// Name in the user's configuration.
    pub name: String,
    /// Kind.
    pub kind: String,
    /// Version of the program, where it tells.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Model, where known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Effort, where set.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub effort: String,
    /// SHA-256 of the prompt's text before the task was put in.
    pub prompt: Digest,
}

/// What a sandbox held, as measured by its probes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SandboxRecord {
    /// Provider.
    pub provider: String,
    /// Its version.
    pub version: String,
    /// The weakest level that every probe supports.
    pub trust: Trust,
    /// Whether memory of the sandbox could have been written to a swap device.
    pub swap_exposed: bool,
    /// Probe → `held`, `open` or `unmeasured`.
    pub probes: BTreeMap<String, String>,
}

/// A tree and its relation to the base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunResult {
    /// The commit that was worked on.
    pub base: ObjectId,
    /// Listing digest of the base's tree.
    pub base_listing: Digest,
    /// Git tree of the result.
    pub tree: ObjectId,
    /// Listing digest of the result.
    pub listing: Digest,
    /// Patch id: the change apart from what stays.
    pub patch: Digest,
    /// Paths that changed.
    pub changed: u32,
    /// Ignored files that were left out.
    pub ignored: u32,
    /// Changed paths that are delivered only when an approver signs the patch id: the first of
    /// them in order, as text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guarded: Vec<String>,
}

/// What went through the egress proxy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Egress {
    /// Requests that were let through.
    pub allowed: u32,
    /// Requests that were refused.
    pub refused: u32,
}

/// A file of the run's commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Attachment {
    /// Name in the commit's tree.
    pub name: String,
    /// SHA-256 of the stored bytes.
    pub sha256: Digest,
    /// Whether it is age-encrypted to the task's recipients.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sealed: bool,
}
