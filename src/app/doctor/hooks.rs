//! Whether the hooks of a clone are in place and current.

use super::{Check, State};
use crate::app::error::with_causes;
use crate::app::hooks::install::{Standing, idle, look as standings};
use crate::base::process;
use crate::git::Repository;
use std::path::Path;

const NAME: &str = "hooks";
const REMEDY: &str = "run `hangar init --hooks`";

/// Hooks are a choice: a clone without them is fine.
pub(super) fn look(repo: &Repository) -> Check {
    let found = match standings(repo) {
        Ok(found) => found,
        Err(error) => return Check::not(State::Warn, NAME, with_causes(&error), ""),
    };
    let names = |wanted: &[Standing]| {
        let matching = found.iter().filter(|(_, one)| wanted.contains(one));
        matching.map(|(hook, _)| hook.name()).collect::<Vec<_>>()
    };
    let held = names(&[Standing::Current, Standing::Called]);
    let old = names(&[Standing::Outdated]);
    let open = names(&[Standing::Missing, Standing::Foreign]);
    let asleep = names(&[Standing::Asleep]);
    if !asleep.is_empty() {
        let detail = format!(
            "{} is not executable, so Git does not run it",
            asleep.join(", ")
        );
        return Check::not(
            State::Warn,
            NAME,
            detail,
            "make it executable with `chmod +x`",
        );
    }
    if !old.is_empty() {
        let detail = format!("{} is not as this version writes it", old.join(", "));
        return Check::not(State::Warn, NAME, detail, REMEDY);
    }
    if held.is_empty() {
        return Check::ok(NAME, "none; `hangar init --hooks` puts them in place");
    }
    if !open.is_empty() {
        let detail = format!("{} in place, {} not", held.join(", "), open.join(", "));
        return Check::not(State::Warn, NAME, detail, REMEDY);
    }
    if let Ok([first, ..]) = idle(repo).as_deref() {
        let detail = format!(
            "{} in place; {} is not executable and does not run",
            held.join(", "),
            first.display()
        );
        return Check::not(
            State::Warn,
            NAME,
            detail,
            "make it executable with `chmod +x`",
        );
    }
    if process::find(Path::new("hangar")).is_none() {
        let detail = "in place, but no program hangar is on PATH for them to call";
        return Check::not(State::Warn, NAME, detail, "put hangar on PATH");
    }
    Check::ok(NAME, format!("{} in place", held.join(", ")))
}
