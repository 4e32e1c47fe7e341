//! What came and has no effect, until a person has seen it. A command that was asked for something else
//! names a few, and leaves the rest to `hangar sync`; each change that was refused is named once.

use super::{NotAppliedKind, NotAppliedView, SyncView, not_applied};
use crate::app::Here;
use crate::base::words::count;
use crate::git::{Repository, shown_remote};
use crate::model::digest::Digest;
use crate::store::dossier::Dossier;
use crate::store::sync::{Absent, Report};
use crate::store::{Store, told};
use std::collections::BTreeSet;

/// Most documents without effect that a command names that was asked for something else.
const NAMED: usize = 3;

/// What a refused change is remembered as when it was named. Everything else comes up once, or in every
/// sync until it is mended.
fn key(one: &NotAppliedView) -> Option<String> {
    if one.told_as.is_some() {
        return one.told_as.clone();
    }
    let event = one.event.filter(|_| one.kind == NotAppliedKind::Refused)?;
    let why = Digest::of(one.why.as_bytes());
    Some(format!("{}{event} {why}", told::REFUSED))
}

/// What the remote shows at names that nothing here has keeps nothing back. What may be a document came
/// and has no effect, when it is seen first; it is left alone, and noted, when it was named, and so is at
/// once what is none.
pub(super) fn absent(store: &Store, absent: Vec<Absent>, view: &mut SyncView) {
    let keyed = absent.into_iter().map(|one| {
        let mut view = not_applied(one.what);
        let text = format!("{:?} {:?} {}", view.name, one.object, view.why);
        let key = format!(
            "{}alone {}",
            told::REFUSED,
            Digest::of(text.as_bytes()).hex()
        );
        view.told_as = Some(key);
        (one.object, view)
    });
    let keyed: Vec<_> = keyed.collect();
    let keys = keyed.iter().filter_map(|(_, one)| key(one));
    let new = told::untold(&store.repo.hangar_dir(), keys);
    for (object, one) in keyed {
        let is_new = key(&one).is_some_and(|key| new.contains(&key));
        if is_new && !object.is_some_and(|object| store.holds_nothing(object)) {
            view.not_applied.push(one);
        } else {
            view.left_alone.push(one);
        }
    }
}

/// Leaves out what was named before: it comes up with whatever comes for its task.
fn only_untold(repo: &Repository, all: &mut Vec<NotAppliedView>) {
    let new = told::untold(&repo.hangar_dir(), all.iter().filter_map(key));
    all.retain(|one| key(one).is_none_or(|key| new.contains(&key)));
}

/// Tells what a command that only fetched or published brought and could not apply.
pub(super) fn in_passing(here: &Here, store: &Store, report: &Report) {
    let all = report.not_applied.iter().cloned();
    let mut all: Vec<_> = all.map(not_applied).collect();
    only_untold(&store.repo, &mut all);
    let (named, left) = all.split_at(all.len().min(NAMED));
    for one in named {
        let place = one.task.as_ref();
        let place = place.map(|task| format!("task {}", task.short()));
        let place = place.or_else(|| one.name.clone()).unwrap_or_default();
        // A command that fetches and publishes meets it twice.
        let what = match one.kind {
            NotAppliedKind::Locked => "left as it was",
            _ => "without effect here",
        };
        let text = format!("{what}: {place}: {}", one.why);
        here.notices.once(&text, &text);
    }
    told::tell(&store.repo.hangar_dir(), named.iter().filter_map(key));
    if !left.is_empty() {
        // Of a whole ref every sync tells anew.
        let owed = left.iter().filter(|one| one.task.is_some());
        told::owe(&store.repo.hangar_dir(), owed.filter_map(line));
        here.notices.say(&format!(
            "without effect here: {} of `{}`; `hangar sync` names {}",
            count(left.len(), "more thing", "more things"),
            shown_remote(&report.remote),
            if left.len() == 1 { "it" } else { "them" },
        ));
    }
}

fn line(one: &NotAppliedView) -> Option<String> {
    serde_json::to_string(one).ok()
}

/// What a sync found, without what was named before and with what other commands left to be named.
pub(super) fn all(store: &Store, view: &mut SyncView) {
    let mut past = BTreeSet::new();
    for line in told::owed(&store.repo.hangar_dir()) {
        match serde_json::from_str::<NotAppliedView>(&line) {
            Ok(one) if holds(store, &one) => {
                if !view.not_applied.contains(&one) {
                    view.not_applied.push(one);
                }
            }
            _ => drop(past.insert(line)),
        }
    }
    told::settle(&store.repo.hangar_dir(), &past);
    only_untold(&store.repo, &mut view.not_applied);
}

/// Whether what was found is still so. What can't be read is told by others.
fn holds(store: &Store, one: &NotAppliedView) -> bool {
    let dossier = one.task.as_ref().map(|task| store.dossier(task));
    let Some(Ok(Dossier {
        history, faults, ..
    })) = dossier
    else {
        return false;
    };
    match one.kind {
        NotAppliedKind::Refused => history.records.iter().any(|record| {
            let refused = record.refused.iter().any(Option::is_some);
            Some(record.event.digest()) == one.event && refused
        }),
        NotAppliedKind::Quarantined => faults.iter().any(|fault| Some(fault.commit) == one.commit),
        NotAppliedKind::Pending => one.commit.is_some_and(|one| history.pending.contains(&one)),
        NotAppliedKind::Ref | NotAppliedKind::Locked => false,
    }
}

/// The answer of a sync was shown: what it names is not named again.
pub fn shown(here: &Here, view: &SyncView) {
    let Ok(repo) = here.repository() else {
        return;
    };
    let named = view.not_applied.iter().chain(&view.left_alone);
    told::tell(&repo.hangar_dir(), named.filter_map(key));
    told::settle(
        &repo.hangar_dir(),
        &view.not_applied.iter().filter_map(line).collect(),
    );
}
