//! The way out where a remote that checks does not take what lost its right since it was signed, nor what
//! was honestly signed on top of that; where something is in the way, and where nothing may move.

use crate::app::here::shell_word;
use crate::base::words::word;
use crate::git::shown_remote;
use crate::model::digest::Digest;
use crate::store::Store;
use crate::store::layout::Prefix;
use crate::store::sync::{Report, tracking};
use std::collections::BTreeSet;
use std::path::Path;

/// What helps where a branch, or another ref that is none of hangar's, is in the way of a name: git keeps refs
/// as files and folders.
pub(super) fn in_the_way(report: &Report) -> Option<String> {
    let why = &report.not_pushed.as_ref()?.why;
    let before = why
        .split("' exists; cannot create '")
        .next()
        .filter(|one| one.len() < why.len())?;
    let name = before.rsplit('\'').next()?;
    // Anybody who runs a remote can say anything.
    if !name.starts_with("refs/") || name.contains(char::is_whitespace) {
        return None;
    }
    let remote = shell_word(Path::new(&shown_remote(&report.remote)));
    let name = shell_word(Path::new(name));
    Some(format!(
        "{name} there is in the way of refs of hangar: rename it or take it away (`git push --no-verify {remote} --delete {name}`), then `hangar sync` again"
    ))
}

/// What helps where the remote does not let its refs move to another prefix.
pub(super) fn move_refused(from: Option<Prefix>, to: Prefix, checks: bool) -> String {
    let (from, word) = (from.unwrap_or(to.other()).as_str(), to.word());
    if checks {
        return format!(
            "a server with hangar's hook lets no push take its refs away: whoever runs it moves them there (`hangar init --prefix {word}` in that repository), and every clone follows with its next `hangar sync`; until then the state stays below {from}"
        );
    }
    format!(
        "ask whoever runs the remote for the right to push {}* and to delete {from}*; until then the state stays below {from}",
        to.as_str()
    )
}

/// What helps; nothing where it was refused for something else.
pub(super) fn remedies(store: &Store, report: &Report) -> Vec<String> {
    let place = tracking(&report.remote);
    let mut all: BTreeSet<Digest> = BTreeSet::new();
    let mut refs = Vec::new();
    for name in &report.unpublished {
        let own = store.layout.own(name).unwrap_or_default();
        let there = store.repo.read_ref(&format!("{place}{own}"));
        // What can't be read here is named by others.
        let lost = there.ok().and_then(|there| store.lost_on(name, there).ok());
        let lost = lost.unwrap_or_default();
        if !lost.is_empty() {
            let there = store
                .layout
                .name_at(name, report.prefix.unwrap_or(store.layout.place()));
            let there = there.unwrap_or_else(|| name.clone());
            refs.push(format!("{name}:{there}"));
            all.extend(lost);
        }
    }
    if all.is_empty() {
        return Vec::new();
    }
    let here = store.repo.work_tree().unwrap_or(store.repo.git_dir());
    let here = shell_word(here);
    let digests: Vec<_> = all.iter().map(ToString::to_string).collect();
    let count = all.len();
    let (documents, verb) = (
        word(count, "document", "documents"),
        word(count, "has", "have"),
    );
    vec![
        format!(
            "{count} {documents} there {verb} lost the right to count; where that is honest work, an admin lets it in, here or in a clone that took it from here (`hangar sync {here}`): `hangar policy adopt {}`",
            digests.join(" ")
        ),
        format!(
            "where it is not honest, whoever runs the remote takes it in as it is, without effect, and what rests on it: `git fetch {here} {}` there",
            refs.join(" ")
        ),
    ]
}
