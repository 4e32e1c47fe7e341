//! Programs of this machine.

use super::{Check, State};
use crate::app::{Here, harness};
use crate::git::program::{MIN_VERSION, version};

/// The git program.
pub(super) fn git() -> Vec<Check> {
    let (major, minor) = MIN_VERSION;
    let check = match version() {
        Ok((have_major, have_minor, text)) if (have_major, have_minor) >= MIN_VERSION => {
            Check::ok("git", text)
        }
        Ok((.., text)) => Check::not(
            State::Missing,
            "git",
            format!("{text} is too old"),
            format!("install Git {major}.{minor} or later"),
        ),
        Err(error) => Check::not(
            State::Missing,
            "git",
            error.to_string(),
            format!("install Git {major}.{minor} or later"),
        ),
    };
    vec![check]
}

/// Agent programs. People can write tests and code themselves, so none of them is needed.
pub(super) fn harnesses(here: &Here) -> Vec<Check> {
    let list = match harness::list(here) {
        Ok(list) => list,
        Err(error) => {
            return vec![Check::not(
                State::Missing,
                "user configuration",
                error.to_string(),
                "correct the file",
            )];
        }
    };
    let mut checks: Vec<Check> = list
        .harnesses
        .iter()
        .map(|one| {
            let name = format!("harness {}", one.name);
            let detail = one.detail.clone().unwrap_or_else(|| one.kind.clone());
            if one.ready {
                Check::ok(&name, detail)
            } else {
                Check::not(State::Warn, &name, detail, "")
            }
        })
        .collect();
    let pair = &list.pair;
    checks.push(match (&pair.writer, &pair.implementer) {
        (Some(writer), Some(implementer)) => Check::ok(
            "lanes",
            format!("{writer} writes, {implementer} implements"),
        ),
        _ => Check::not(
            State::Warn,
            "lanes",
            // Without a lane of one's own the default ones are missing, which nobody asked for.
            if list.lanes.is_empty() && list.harnesses.is_empty() {
                "no agent program is installed or configured".to_owned()
            } else {
                pair.detail.clone().unwrap_or_default()
            },
            "install Claude Code and Codex, or configure two others (`hangar harness --help`); or \
             write tests yourself (`hangar seal --from`) and code yourself (`hangar submit`)",
        ),
    });
    checks
}
