//! Programs of this machine.

use super::{Check, State};
use crate::app::harness::{HarnessView, HealthWord};
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

/// One that is there, and is not asked now.
fn unwell(name: &str, one: &HarnessView) -> Check {
    let what = match one.health {
        HealthWord::Ok => "in order",
        HealthWord::Limited => "at its usage limit",
        HealthWord::Overloaded => "overloaded, or can't be reached",
        HealthWord::Unauthenticated => "not logged in, or its key is not accepted",
        HealthWord::Unpaid => "without credit",
    };
    let until = one
        .until
        .as_ref()
        .map_or_else(String::new, |until| format!(" until {until}"));
    let remedy = format!("once it is mended: `hangar harness test {}`", one.name);
    Check::not(State::Warn, name, format!("{what}{until}"), remedy)
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
            if one.ready && one.health == HealthWord::Ok {
                Check::ok(&name, detail)
            } else if one.ready {
                unwell(&name, one)
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
