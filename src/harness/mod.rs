//! Agent programs: lanes, adapters, the exchange directory, prompts and the egress proxy.
//!
//! Owns how a program is started, what it is told, what it may leave and where it may connect to.
//! Must not know tasks, refs or sandboxes: an adapter returns a [`adapter::Launch`] that a caller
//! puts into a sandbox. Adding an agent program is one file and one line in [`adapter::KINDS`].
//! Docs: `docs/reference/harnesses.md`.

pub mod adapter;
mod classify;
pub mod claude;
pub mod codex;
pub mod collect;
pub mod command;
pub mod egress;
pub mod exchange;
pub mod finish;
pub mod health;
mod installed;
pub mod lanes;
pub mod ledger;
mod npm;
mod program;
pub mod prompt;
mod reset;
pub mod script;
mod stream;
pub mod variables;

use std::path::PathBuf;

/// Why an agent program cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This version has no adapter for the kind.
    #[error(
        "harness kind `{kind}` (harness `{harness}`) is not supported by this version; configure \
         `[harness.NAME]` with kind {} and name it in `[lanes]` of the user configuration",
        adapter::supported()
    )]
    UnsupportedKind {
        /// Name of the harness.
        harness: String,
        /// Its kind.
        kind: String,
    },
    /// A lane names a harness that is not configured.
    #[error("lane `{lane}` names a harness that is not configured; add `[harness.{lane}]`")]
    UnknownHarness {
        /// The name.
        lane: String,
    },
    /// A setting that the kind needs is missing or makes no sense.
    #[error("harness `{harness}`: {message}")]
    Settings {
        /// Name of the harness.
        harness: String,
        /// What is wrong and what to set.
        message: String,
    },
    /// The program or folder is not there.
    #[error("harness `{harness}`: cannot use {}", path.display())]
    Program {
        /// Name of the harness.
        harness: String,
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A program that has its own adapter is not there.
    #[error(
        "harness `{harness}`: `{program}` is not on PATH; install it (`{get}`), or name its file: \
         `command = [\"/path/of/{program}\"]` under [harness.{harness}] of the user configuration"
    )]
    NotInstalled {
        /// Name of the harness.
        harness: String,
        /// The file that is looked for.
        program: &'static str,
        /// How to get it.
        get: &'static str,
    },
    /// A program has nothing to log in with.
    #[error("harness `{harness}` has nothing to log in with: {login}")]
    NoCredential {
        /// Name of the harness.
        harness: String,
        /// How a person gets a value for one.
        login: &'static str,
    },
    /// A role has no lane, and its default cannot be used.
    #[error(
        "no lane is configured for the {role}{}; name a harness of kind {} in `lanes.{role}`, under \
         [lanes] of the user configuration",
        .why.as_ref().map_or_else(String::new, |why| format!(", and its default cannot be used ({why})")),
        adapter::supported()
    )]
    NoLane {
        /// The role.
        role: crate::model::lane::Role,
        /// Why its default cannot be used, where it has one.
        why: Option<String>,
    },
    /// No lane can be used now.
    #[error("{message}")]
    NotReady {
        /// What is missing and how to get it.
        message: String,
    },
    /// Lanes are there, and none of them works now.
    #[error("no {role} can work now: {}", names(.resting))]
    Resting {
        /// The role.
        role: crate::model::lane::Role,
        /// What keeps each lane from working, best lane first.
        resting: Vec<(crate::model::lane::LaneName, health::Outage)>,
        /// When the first of them is asked again; `None` where a person must mend them all.
        soonest: Option<jiff::Timestamp>,
    },
    /// Writer and implementer would be the same program.
    #[error(
        "writer and implementer must be different harnesses, but every pair of lanes is one and \
         the same: {0}"
    )]
    SameHarness(String),
    /// A variable that is passed through by name is not set.
    #[error("harness `{harness}` passes on `{variable}`, which is not set")]
    MissingVariable {
        /// Name of the harness.
        harness: String,
        /// Name of the variable.
        variable: String,
    },
}

/// Lanes that do not work, each with the reason.
fn names(resting: &[(crate::model::lane::LaneName, health::Outage)]) -> String {
    let one = |(name, outage): &(_, health::Outage)| format!("`{name}` {outage}");
    let all: Vec<String> = resting.iter().map(one).collect();
    all.join("; ")
}
