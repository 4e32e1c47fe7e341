//! The signed grade of one patch against one sealed version.
//!
//! Format: `docs/format.md`, "Grade". It holds for exactly the base and the result it names.

use crate::model::digest::Digest;
use crate::model::ids::Alias;
use crate::model::ids::TaskId;
use crate::model::object_id::ObjectId;
use crate::model::outcome::{FailureClass, Secrecy, Trust, Verdict};
use crate::model::run::SandboxRecord;
use crate::model::signer::Signer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `grade.toml`, signed in namespace `hangar-grade` by a grader key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Grade {
    /// Document format, 1.
    pub format: i64,
    /// The repository.
    pub repo: Digest,
    /// The task.
    pub task: TaskId,
    /// The sealed version that ran.
    pub manifest: Digest,
    /// The approvals it rests on.
    pub approvals: Vec<Digest>,
    /// The run whose result was graded; absent for a grade of any other patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Digest>,
    /// Whether every expectation held and nothing was in doubt.
    pub accepted: bool,
    /// Whether the sources disagreed or the machinery failed.
    pub void: bool,
    /// Why not accepted, one text for each reason; no test id among them.
    pub reasons: Vec<String>,
    /// What the sandbox held.
    pub trust: Trust,
    /// How the outcomes were learnt.
    pub verdict: Verdict,
    /// How far the tests were out of the author's reach.
    pub secrecy: Secrecy,
    /// Whether the version was sealed after any run of the task.
    pub after_code: bool,
    /// Whether hidden tests had got out: a canary, or a long piece of them, was found in what was
    /// scanned. Then the grade is void.
    pub canary_found: bool,
    /// Protected paths that the patch touches beyond the plan.
    pub protected_touched: Vec<String>,
    /// Paths under the plan's tests that were put back to base.
    pub put_back: u32,
    /// Whether packages that the patch asks for were there beside those of the base.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reprepared: bool,
    /// Limits that were hit.
    pub limits_hit: Vec<String>,
    /// Who and when.
    pub signer: Signer,
    /// Base and result.
    pub subject: Subject,
    /// Numbers.
    pub counts: GradeCounts,
    /// Wall times in milliseconds, rounded to tenths of a second.
    pub timing: Timing,
    /// The sandbox and its probes.
    pub sandbox: SandboxRecord,
    /// Outcome per alias.
    pub test: Vec<TestResult>,
}

impl Grade {
    /// Whether a sentinel passed: no implementation can make that happen.
    pub fn is_forged(&self) -> bool {
        let passed = |test: &TestResult| test.outcome == TestOutcome::Passed;
        self.void
            && self
                .test
                .iter()
                .any(|test| test.alias.is_sentinel() && passed(test))
    }

    /// Whether it says something for or against a patch: it is not void, or void because outcomes are
    /// forged.
    pub fn is_firm(&self) -> bool {
        !self.void || self.is_forged()
    }

    /// Whether both are about the same patch on the same base, under the same manifest.
    pub fn is_of_same(&self, other: &Self) -> bool {
        let of = |grade: &Self| (grade.manifest, grade.subject.listing, grade.subject.base);
        of(self) == of(other)
    }
}

/// What was graded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// Base commit.
    pub base: ObjectId,
    /// Listing digest of the base's tree.
    pub base_listing: Digest,
    /// Git tree of base + patch.
    pub tree: ObjectId,
    /// Listing digest of base + patch.
    pub listing: Digest,
    /// Patch id.
    pub patch: Digest,
}

/// Numbers of a grade.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GradeCounts {
    /// Expected tests, sentinels not counted.
    pub expected: u32,
    /// Passed.
    pub passed: u32,
    /// Failed.
    pub failed: u32,
    /// Skipped.
    pub skipped: u32,
    /// Expected and not reported.
    pub missing: u32,
    /// Sentinels that failed by assertion, as they must.
    pub sentinels_held: u32,
    /// Sentinels.
    pub sentinels: u32,
}

/// Wall times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// Build step.
    pub build_ms: u64,
    /// Suite.
    pub suite_ms: u64,
    /// Everything.
    pub total_ms: u64,
}

/// How one hidden test ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TestResult {
    /// Public name.
    pub alias: Alias,
    /// How it ended.
    pub outcome: TestOutcome,
    /// Class of a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<FailureClass>,
}

/// The word for one hidden test in a grade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TestOutcome {
    /// It passed.
    Passed,
    /// It failed.
    Failed,
    /// It was skipped.
    Skipped,
    /// It was not reported.
    Missing,
}
