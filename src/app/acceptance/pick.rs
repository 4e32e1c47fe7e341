//! Which task and which sealed version a command means.

use crate::app::Error;
use crate::base::words;
use crate::flow;
use crate::flow::stage::{self, Next};
use crate::model::digest::Digest;
use crate::model::manifest::Manifest;
use crate::store::Store;
use crate::store::dossier::{Dossier, Held};
use crate::store::scan::TaskRefs;

/// The task that is meant, also where only one can be.
pub(super) fn dossier(store: &Store, name: Option<&str>) -> Result<Dossier, Error> {
    let waits = |next: &Next| matches!(next, Next::AwaitApproval { .. });
    dossier_where(store, name, waits, "an approval")
}

/// The named task, else the only one whose next step `waits` for `what`.
pub(super) fn dossier_where(
    store: &Store,
    name: Option<&str>,
    waits: impl Fn(&Next) -> bool + Sync,
    what: &str,
) -> Result<Dossier, Error> {
    if let Some(name) = name {
        return Ok(store.dossier_of(store.find_task(name)?)?);
    }
    let waiting = |store: &Store, refs: &TaskRefs| {
        let dossier = match store.dossier_from(refs) {
            // Nothing can be decided about it; `hangar task list` names it.
            Err(error) if error.is_of_documents() => return Ok(None),
            dossier => dossier?,
        };
        let next = stage::next_now(store, &dossier);
        Ok::<_, Error>(waits(&next).then_some(dossier))
    };
    let all = store.map_all(&store.listing()?, waiting, &mut |_| {})?;
    let mut waiting: Vec<Dossier> = all.into_iter().flatten().collect();
    match waiting.len() {
        1 => Ok(waiting.remove(0)),
        0 => Err(flow::Error::refused(
            format!("no task waits for {what}"),
            "see `hangar task list`",
        )
        .into()),
        count => Err(flow::Error::refused(
            format!(
                "{} for {what}",
                words::count(count, "task waits", "tasks wait")
            ),
            format!("name the one you mean:{}", named(&waiting)),
        )
        .into()),
    }
}

/// Id and title of each, a line for one.
fn named(waiting: &[Dossier]) -> String {
    let line = |dossier: &Dossier| {
        let (id, title) = (dossier.id().short(), &dossier.history.task.title);
        format!("\n  {id}  {title}")
    };
    waiting.iter().map(line).collect()
}

/// A version by number, or the newest that counts; else the newest of those about which people said the
/// opposite.
pub(super) fn choose(dossier: &Dossier, version: Option<u32>) -> Result<&Held<Manifest>, Error> {
    if let Some(version) = version {
        return numbered(dossier, version);
    }
    let undecided = stage::undecided(dossier);
    let newest = |counts: &dyn Fn(Digest) -> bool| {
        let mut seals = dossier.seals.iter();
        seals.rfind(|seal| counts(seal.digest()))
    };
    let found = newest(&|digest| !dossier.is_aside(digest));
    let found = found.or_else(|| newest(&|digest| undecided.contains(&digest)));
    found.ok_or_else(|| {
        let what = "the task has no sealed tests yet";
        flow::Error::refused(what, "see `hangar task show`").into()
    })
}

/// A version by number.
pub(super) fn numbered(dossier: &Dossier, version: u32) -> Result<&Held<Manifest>, Error> {
    let mut seals = dossier.seals.iter();
    let found = seals.find(|seal| seal.value().version == version);
    found.ok_or_else(|| {
        Error::invalid(format!(
            "the task has no sealed version {version}; `hangar sealed list {}` shows those it has",
            dossier.id().short()
        ))
    })
}
