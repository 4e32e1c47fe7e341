//! The grading plan: how the tests of a task are run. The approver signs it with the manifest.

use crate::model::outcome::{Trust, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A test framework that hangar can drive.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Framework {
    /// pytest
    Pytest,
    /// Python's unittest
    Unittest,
    /// cargo test (libtest)
    Cargo,
    /// go test
    Go,
    /// node --test
    Node,
    /// mocha
    Mocha,
    /// jest
    Jest,
    /// vitest
    Vitest,
    /// ctest (CMake)
    Ctest,
    /// Any program that prints TAP
    Tap,
    /// Any program that writes a report in JUnit's form
    Junit,
    /// Each sealed executable is one test
    Exec,
    /// Cases outside the sandbox of the program under test
    External,
}

super::outcome::text_form!(Framework: Pytest = "pytest", Unittest = "unittest", Cargo = "cargo", Go = "go", Node = "node", Mocha = "mocha", Jest = "jest", Vitest = "vitest", Ctest = "ctest", Tap = "tap", Junit = "junit", Exec = "exec", External = "external");

/// Bounds on a grade. Sizes are texts such as `4G`, as in `hangar.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanLimits {
    /// Bytes of memory for the whole tree.
    pub memory: u64,
    /// Processes and threads.
    pub processes: u64,
    /// Bytes kept of each output stream.
    pub output: u64,
    /// Bytes of scratch disk.
    pub disk: u64,
    /// Seconds of wall clock for one run of the suite.
    pub timeout: u64,
}

impl Default for PlanLimits {
    fn default() -> Self {
        Self {
            memory: 4 << 30,
            processes: 512,
            output: 64 << 20,
            disk: 2 << 30,
            timeout: 600,
        }
    }
}

/// How the sealed tests are run and what a grade must at least show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Adapter.
    pub framework: Framework,
    /// Shell text run at the base with registry egress before anything else; empty is none.
    pub prepare: String,
    /// Whether `prepare` runs once more for a patch that changes what it reads, to add packages that the
    /// base lacks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reprepare: bool,
    /// Shell text run on base + patch without tests and without egress; empty is none.
    pub build: String,
    /// Globs of paths where hidden tests may lie and that are put back to base for grading.
    pub tests: Vec<String>,
    /// Globs of protected paths, the adapter's own included.
    pub protected: Vec<String>,
    /// Globs of protected paths that a patch may change all the same.
    pub may_touch: Vec<String>,
    /// Runner options that the suite really needs.
    pub options: Vec<String>,
    /// Runner plugins that the suite really needs.
    pub plugins: Vec<String>,
    /// Environment that the suite really needs.
    pub env: BTreeMap<String, String>,
    /// How often the base check runs each test to find flakes.
    pub repeat: u32,
    /// Bounds.
    pub limits: PlanLimits,
    /// Least trust of an accepted grade.
    pub trust: Trust,
    /// Least verdict of an accepted grade.
    pub verdict: Verdict,
}

impl Plan {
    /// A plan with the defaults of a framework.
    pub fn new(framework: Framework) -> Self {
        Self {
            framework,
            prepare: String::new(),
            reprepare: false,
            build: String::new(),
            tests: vec!["tests/".into()],
            protected: Vec::new(),
            may_touch: Vec::new(),
            options: Vec::new(),
            plugins: Vec::new(),
            env: BTreeMap::new(),
            repeat: 1,
            limits: PlanLimits::default(),
            trust: Trust::Sealed,
            verdict: Verdict::Exit,
        }
    }
}
