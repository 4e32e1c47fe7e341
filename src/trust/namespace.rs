//! What a signature is for.

use std::fmt;

/// The use that a signature is made for. It is part of the signed bytes, so that a signature for
/// one use can't serve as another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Namespace {
    /// An `event.toml`.
    Event,
    /// The manifest of a sealed version.
    Seal,
    /// New recipients for a sealed version.
    Reseal,
    /// One decision by one person over one manifest.
    Approval,
    /// A run document.
    Run,
    /// A grade.
    Grade,
    /// The policy's `root.toml`.
    Root,
    /// The policy's `members.toml`.
    Members,
}

impl Namespace {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Event,
        Self::Seal,
        Self::Reseal,
        Self::Approval,
        Self::Run,
        Self::Grade,
        Self::Root,
        Self::Members,
    ];

    /// The text that is signed and that `ssh-keygen -Y verify -n` takes.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Event => "hangar-event",
            Self::Seal => "hangar-seal",
            Self::Reseal => "hangar-reseal",
            Self::Approval => "hangar-approval",
            Self::Run => "hangar-run",
            Self::Grade => "hangar-grade",
            Self::Root => "hangar-root",
            Self::Members => "hangar-members",
        }
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
