//! Agent programs and lanes as the user configured them: plain data that `config` reads and
//! `harness` gives meaning to.

use crate::model::endpoint::Endpoint;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// What an agent program is asked to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Writes the hidden tests.
    Writer,
    /// Writes the patch.
    Implementer,
    /// Judges a patch; its workspace is read-only.
    Judge,
    /// Runs a goal.
    Orchestrator,
}

impl Role {
    /// All roles, in the order of the documentation.
    pub const ALL: [Self; 4] = [
        Self::Writer,
        Self::Implementer,
        Self::Judge,
        Self::Orchestrator,
    ];

    /// The word used in configuration and output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Writer => "writer",
            Self::Implementer => "implementer",
            Self::Judge => "judge",
            Self::Orchestrator => "orchestrator",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// `name` or `name:effort` in a list of lanes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LaneName {
    /// Name of a harness.
    pub harness: String,
    /// Effort that this lane asks for instead of the harness's own.
    pub effort: Option<String>,
}

impl FromStr for LaneName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (harness, effort) = match text.split_once(':') {
            Some((harness, effort)) => (harness, Some(effort)),
            None => (text, None),
        };
        let word = |part: &str| {
            !part.is_empty()
                && part.len() <= 64
                && part
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        };
        if !word(harness) || effort.is_some_and(|effort| !word(effort)) {
            return Err("a lane is `name` or `name:effort`".into());
        }
        Ok(Self {
            harness: harness.into(),
            effort: effort.map(Into::into),
        })
    }
}

impl fmt::Display for LaneName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.effort {
            Some(effort) => write!(f, "{}:{effort}", self.harness),
            None => f.write_str(&self.harness),
        }
    }
}

/// One `[harness.NAME]` of the user configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HarnessSettings {
    /// Adapter kind; the name where it is not given.
    pub kind: String,
    /// Model, in the program's own words.
    pub model: Option<String>,
    /// Effort, in the program's own words.
    pub effort: Option<String>,
    /// Program and arguments; for a program that has a kind of its own, its file where `PATH` does not
    /// have it, and arguments before hangar's own.
    pub command: Vec<String>,
    /// Folder of prepared turns (kind `script`), absolute.
    pub dir: Option<PathBuf>,
    /// Where its egress may go. Where it is empty, the adapter's own places.
    pub hosts: Vec<Endpoint>,
    /// Names of variables of the user's environment that are passed through.
    pub env: Vec<String>,
    /// Host paths bound read-only, absolute.
    pub read: Vec<PathBuf>,
    /// Wall clock of one turn, instead of hangar's own.
    pub timeout: Option<Duration>,
    /// Longest silence of one turn, instead of hangar's own.
    pub idle: Option<Duration>,
}

/// Harnesses and lanes of one user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaneSettings {
    /// Harnesses by name.
    pub harnesses: BTreeMap<String, HarnessSettings>,
    /// Ordered lanes per role. A role that is not there has the defaults.
    pub lanes: BTreeMap<Role, Vec<LaneName>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lane_names_round_trip() {
        for text in ["claude", "codex:xhigh"] {
            assert_eq!(text.parse::<LaneName>().unwrap().to_string(), text);
        }
        for bad in ["", ":high", "a:", "a b", "a:b:c", "../x"] {
            assert!(bad.parse::<LaneName>().is_err(), "{bad:?} was taken");
        }
    }
}
