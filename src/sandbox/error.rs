//! Why a sandbox did not do what was asked.

use std::io;
use std::path::PathBuf;

/// A provider that this machine can't offer, with what a person can do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the sandbox provider `{provider}` does not work here: {reason}")]
pub struct Unavailable {
    /// Name of the provider.
    pub provider: &'static str,
    /// What was tried and refused.
    pub reason: String,
    /// What would make it work.
    pub remedy: String,
}

/// Why a run has no outcome. Whichever it is, nothing of the sandbox is left.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller cancelled.
    #[error("the sandbox was interrupted")]
    Interrupted,
    /// The machine does not let this provider work.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// The provider can't hold what the specification asks for.
    #[error("the sandbox provider `{provider}` cannot {what}")]
    Unsupported {
        /// Name of the provider.
        provider: &'static str,
        /// What was asked for, as a verb phrase.
        what: String,
    },
    /// The file tree stands in the way: a link or file where a folder must be, a mount point in a
    /// bound tree.
    #[error("cannot {what}: {}", path.display())]
    Blocked {
        /// What was tried, as a verb phrase.
        what: String,
        /// Absolute path inside.
        path: PathBuf,
    },
    /// A step of the set-up failed.
    #[error("cannot {what} for the sandbox{}", on(path.as_ref()))]
    Setup {
        /// What was tried, as a verb phrase.
        what: String,
        /// On which path.
        path: Option<PathBuf>,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// The launcher could not be started.
    #[error("cannot start the sandbox")]
    Start(#[source] io::Error),
    /// The launcher ended without a report.
    #[error("the sandbox's launcher was lost: {0}")]
    Lost(String),
}

fn on(path: Option<&PathBuf>) -> String {
    path.map_or_else(String::new, |path| format!(" ({})", path.display()))
}
