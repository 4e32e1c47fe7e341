//! `hangar doctor`: what works on this machine and in this repository, measured.
//!
//! Every check answers by itself: trouble in one never hides another. Nothing is changed.

mod hooks;
mod machine;
mod place;
mod sandboxes;

use super::Here;
use crate::model::outcome::Trust;
use crate::sandbox::Cancel;
use schemars::JsonSchema;
use serde::Serialize;

pub use sandboxes::ProviderView;

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Fine.
    Ok,
    /// The main job works, something beside it does not.
    Warn,
    /// The main job cannot run.
    Missing,
}

/// One check.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Check {
    /// What was looked at.
    pub name: String,
    /// How it ended.
    pub state: State,
    /// What was found.
    pub detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Check {
    fn ok(name: &str, detail: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            state: State::Ok,
            detail: detail.into(),
            remedy: None,
        }
    }

    fn not(state: State, name: &str, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        let remedy = remedy.into();
        Self {
            name: name.to_owned(),
            state,
            detail: detail.into(),
            remedy: (!remedy.is_empty()).then_some(remedy),
        }
    }
}

/// Everything that was found.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Report {
    /// Whether the main job could run: seal, approve, grade, deliver, verify.
    pub ready: bool,
    /// Checks, in the order in which their trouble should be solved.
    pub checks: Vec<Check>,
    /// Sandbox providers with what they were measured to hold.
    pub providers: Vec<ProviderView>,
    /// Commands that need no sandbox.
    pub without_sandbox: Vec<&'static str>,
}

/// Commands that work where no sandbox does.
const WITHOUT_SANDBOX: &[&str] = &[
    "init",
    "task",
    "review",
    "approve",
    "reject",
    "sealed",
    "submit",
    "adjudicate",
    "deliver",
    "verify",
    "sync",
    "policy",
    "key",
    "config",
    "harness",
    "hook",
    "doctor",
    "completions",
    "man",
];

/// Looks at everything. Sandboxes are probed for real, which takes a few seconds; `progress` hears
/// what is looked at.
pub fn doctor(here: &Here, cancel: &Cancel, progress: &dyn Fn(&str)) -> Report {
    progress("git and the repository");
    let mut checks = machine::git();
    let found = place::look(here, &mut checks);
    checks.extend(machine::harnesses(here));
    let wanted = found.least_trust.unwrap_or(Trust::Sealed);
    let (providers, verdict) = sandboxes::look(here, wanted, cancel, progress);
    checks.push(verdict);
    progress("the remote");
    checks.extend(place::remote(here, found.repo.as_ref()));
    Report {
        ready: checks.iter().all(|check| check.state != State::Missing),
        checks,
        providers,
        without_sandbox: WITHOUT_SANDBOX.to_vec(),
    }
}
