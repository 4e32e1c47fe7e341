//! The manifest of one version of sealed tests: what is approved.
//!
//! Format: `docs/format.md`, "Manifest". Nothing in it tells what a test does.

use crate::model::digest::Digest;
use crate::model::ids::Alias;
use crate::model::ids::{CriterionId, Principal, TaskId};
use crate::model::object_id::ObjectId;
use crate::model::outcome::FailureClass;
use crate::model::plan::Plan;
use crate::model::signer::Signer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `manifest.toml`, signed in namespace `hangar-seal` by a grader key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Document format, 1.
    pub format: i64,
    /// The repository.
    pub repo: Digest,
    /// The task.
    pub task: TaskId,
    /// Version, from 1.
    pub version: u32,
    /// The manifest before this one; absent in version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Digest>,
    /// Listing digest of the sealed files, `criteria.json` and canaries included.
    pub files: Digest,
    /// SHA-256 of the payload inside the ciphertext.
    pub payload: Digest,
    /// SHA-256 of the first ciphertext (`sealed.age`).
    pub ciphertext: Digest,
    /// SHA-256 of the canary.
    pub canary: Digest,
    /// SHA-256 over title, mandate and criteria that the tests were written for.
    pub text: Digest,
    /// The commit that the base check ran on.
    pub base: ObjectId,
    /// Listing digest of that commit's tree.
    pub base_listing: Digest,
    /// age recipients of the first ciphertext.
    pub recipients: Vec<String>,
    /// Whether any run of the task was known when this version was sealed.
    pub after_code: bool,
    /// Who and when.
    pub signer: Signer,
    /// Who wrote the tests.
    pub writer: Writer,
    /// Numbers for lists, cards and pull requests.
    pub counts: Counts,
    /// How the tests are run.
    pub plan: Plan,
    /// Base result per alias.
    pub base_check: Vec<BaseResult>,
    /// Criteria with the number of tests that cover them.
    pub coverage: Vec<Coverage>,
}

/// Who wrote the sealed tests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Writer {
    /// An agent program.
    Agent {
        /// Name of the harness in the user's configuration.
        harness: String,
        /// Its kind.
        program: String,
        /// Model, where the program tells or the configuration names it.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        model: String,
        /// SHA-256 of the prompt's text before the task was put in.
        prompt: Digest,
        /// The writer's run document.
        run: Digest,
    },
    /// A person, by `hangar seal --from`.
    Person {
        /// Who.
        name: Principal,
    },
}

/// Numbers of a version.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Criteria of the task.
    pub criteria: u32,
    /// Criteria without a test that fails on base.
    pub uncovered: u32,
    /// Sealed files, `criteria.json` not counted.
    pub files: u32,
    /// Test ids, sentinels not counted.
    pub tests: u32,
    /// Sentinels.
    pub sentinels: u32,
    /// Tests that fail on base, the unconfirmed ones included.
    pub fails: u32,
    /// Tests that pass on base.
    pub guards: u32,
    /// Tests skipped on base.
    pub skipped: u32,
    /// Tests whose file does not compile on base.
    pub unconfirmed: u32,
    /// Tests with differing results in repeated runs.
    pub flaky: u32,
}

/// How a hidden test ended on the untouched base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BaseStatus {
    /// It fails: the patch must make it pass.
    Fails,
    /// It passes and must go on passing.
    Guard,
    /// It is skipped and may go on being skipped.
    Skipped,
    /// Its file does not compile with the base; it must pass with the patch.
    Unconfirmed,
}

/// Base result of one test, by alias.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BaseResult {
    /// Public name.
    pub alias: Alias,
    /// How it ended.
    pub status: BaseStatus,
    /// Class of the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<FailureClass>,
    /// Whether repeated runs differed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub flaky: bool,
}

/// A criterion and its tests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Coverage {
    /// Criterion.
    pub criterion: CriterionId,
    /// Tests under it.
    pub tests: u32,
    /// Of these, failing on base.
    pub fails: u32,
}

/// `reseal.toml`, namespace `hangar-reseal`: the same payload for more recipients. Approvals of the
/// manifest stay valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reseal {
    /// Document format, 1.
    pub format: i64,
    /// The repository.
    pub repo: Digest,
    /// The task.
    pub task: TaskId,
    /// Whose payload it is.
    pub manifest: Digest,
    /// SHA-256 of the new ciphertext.
    pub ciphertext: Digest,
    /// Its recipients.
    pub recipients: Vec<String>,
    /// Who and when.
    pub signer: Signer,
}
