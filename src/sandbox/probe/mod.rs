//! What a sandbox really holds, measured by trying to get out of a twin of it.
//!
//! [`outside`] lays the bait on the host and starts the twin; [`inside`] is the hidden subcommand
//! that runs in it. Configuration decides nothing here: a bound that was set but did not stop the
//! probe counts as open.

mod calls;
pub(super) mod inside;
pub(super) mod outside;

use crate::model::outcome::Trust;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How one attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The attempt failed, as it should.
    Held,
    /// The attempt succeeded.
    Open,
    /// It could not be tried.
    Unmeasured,
}

/// One attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Probe {
    /// How it ended.
    pub state: State,
    /// What was seen, in a few words.
    pub detail: String,
}

impl Probe {
    /// The attempt failed.
    pub fn held(detail: impl Into<String>) -> Self {
        Self::new(State::Held, detail)
    }

    /// The attempt succeeded.
    pub fn open(detail: impl Into<String>) -> Self {
        Self::new(State::Open, detail)
    }

    /// It could not be tried.
    pub fn unmeasured(detail: impl Into<String>) -> Self {
        Self::new(State::Unmeasured, detail)
    }

    fn new(state: State, detail: impl Into<String>) -> Self {
        let mut detail: String = detail.into();
        if let Some((end, _)) = detail.char_indices().nth(120) {
            detail.truncate(end);
        }
        Self { state, detail }
    }
}

/// Attempts that must fail for `confined`: no network, no file that is not listed.
pub const CONFINED: &[&str] = &[
    "host-file",
    "host-secrets",
    "write-outside",
    "route",
    "host-loopback",
    "resolve",
];
/// Attempts that must fail for `sealed` as well: nothing of the host's processes and sockets, no
/// more privilege, nothing left behind.
pub const SEALED: &[&str] = &[
    "host-processes",
    "supervisor-signal",
    "supervisor-trace",
    "supervisor-memory",
    "peer-memory",
    "host-socket",
    "host-abstract-socket",
    "capabilities",
    "user-namespace",
    "kernel-surface",
    "descriptors",
    "terminal",
    "survivor",
];
/// Bounds that must hold for `sealed+limits` as well.
pub const LIMITS: &[&str] = &["memory", "processes", "cpu", "disk", "file-size", "output"];
/// Whether the programs talk to another kernel than the host's: a look, and no attempt to get out.
pub const KERNEL: &str = "kernel";
/// What must hold for `isolated` as well.
pub const ISOLATED: &[&str] = &[KERNEL];

/// Every level with the attempts that must fail for it, beside those of the levels before.
pub const LEVELS: [(&[&str], Trust); 4] = [
    (CONFINED, Trust::Confined),
    (SEALED, Trust::Sealed),
    (LIMITS, Trust::SealedLimits),
    (ISOLATED, Trust::Isolated),
];

/// Everything that was tried, stored with a grade.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Probes {
    /// Name of the provider.
    pub provider: String,
    /// Its version.
    pub version: String,
    /// Whether memory of the sandbox could have been written to swap.
    pub swap_exposed: bool,
    /// Attempts by name.
    pub results: BTreeMap<String, Probe>,
}

impl Probes {
    /// The highest level of which every attempt was made and failed.
    pub fn trust(&self) -> Trust {
        LEVELS
            .into_iter()
            .take_while(|(names, _)| names.iter().all(|name| self.holds(name)))
            .last()
            .map_or(Trust::None, |(_, trust)| trust)
    }

    /// Names of the attempts that keep trust below `wanted`, for a message.
    pub fn missing(&self, wanted: Trust) -> Vec<&'static str> {
        LEVELS
            .into_iter()
            .filter(|(_, level)| *level <= wanted)
            .flat_map(|(names, _)| names.iter().copied())
            .filter(|name| !self.holds(name))
            .collect()
    }

    /// What both this sandbox and another one hold: of each attempt the worse end.
    #[must_use]
    pub fn weaker(mut self, mut other: Self) -> Self {
        self.swap_exposed |= other.swap_exposed;
        self.results = std::mem::take(&mut self.results)
            .into_iter()
            .filter_map(|(name, one)| {
                let other = other.results.remove(&name)?;
                let worse = if one.state == State::Held { other } else { one };
                Some((name, worse))
            })
            .collect();
        self
    }

    fn holds(&self, name: &str) -> bool {
        self.results
            .get(name)
            .is_some_and(|probe| probe.state == State::Held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_held() -> Probes {
        let names = LEVELS.into_iter().flat_map(|(names, _)| names);
        Probes {
            provider: "linux".to_owned(),
            version: String::new(),
            swap_exposed: false,
            results: names
                .map(|name| ((*name).to_owned(), Probe::held("")))
                .collect(),
        }
    }

    #[test]
    fn two_sandboxes_hold_what_each_of_them_holds() {
        let with = |name: &str, probe: Probe| {
            let mut probes = all_held();
            probes.results.insert(name.to_owned(), probe);
            probes
        };
        let bad = [Probe::open("seen"), Probe::unmeasured("seen")];
        for (name, probe) in ["route", "survivor"].into_iter().zip(bad) {
            for (one, other) in [
                (with(name, probe.clone()), all_held()),
                (all_held(), with(name, probe.clone())),
            ] {
                let both = one.weaker(other);
                assert_eq!(both.results[name], probe);
                assert_eq!(both.missing(Trust::Isolated), [name]);
            }
        }
        let mut less = all_held();
        less.results.remove("route");
        less.swap_exposed = true;
        for both in [all_held().weaker(less.clone()), less.weaker(all_held())] {
            assert_eq!(both.missing(Trust::Isolated), ["route"]);
            assert!(both.swap_exposed);
        }
        assert_eq!(all_held().weaker(all_held()), all_held());
    }

    #[test]
    fn trust_is_the_weakest_level_that_every_attempt_supports() {
        assert_eq!(all_held().trust(), Trust::Isolated);
        for (names, trust) in [
            (CONFINED, Trust::None),
            (SEALED, Trust::Confined),
            (LIMITS, Trust::Sealed),
            (ISOLATED, Trust::SealedLimits),
        ] {
            for name in names {
                for probe in [Probe::open(""), Probe::unmeasured("")] {
                    let mut probes = all_held();
                    probes.results.insert((*name).to_owned(), probe);
                    assert_eq!(probes.trust(), trust, "{name}");
                    assert_eq!(probes.missing(Trust::Isolated), [*name]);
                }
                let mut probes = all_held();
                probes.results.remove(*name);
                assert_eq!(probes.trust(), trust, "{name} was not tried");
            }
        }
    }
}
