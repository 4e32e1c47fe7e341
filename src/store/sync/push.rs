//! From this clone to the remote: what it lacks, each ref only if it is where it was seen.

use super::archives;
use super::pull::Refs;
use super::report::Report;
use super::{Wanted, tracking};
use crate::git::{self, Expected, Lease, PushOutcome};
use crate::model::object_id::ObjectId;
use crate::store::layout::RefKind;
use crate::store::{Error, Store};
use std::collections::BTreeMap;

/// Most refs of one push: what an argument list holds.
const BATCH: usize = 1000;

/// Words by which servers refuse a ref that another writer moved meanwhile.
const RACES: [&str; 6] = [
    "stale info",
    "fetch first",
    "non-fast-forward",
    "failed to update ref",
    "cannot lock ref",
    "atomic transaction failed",
];

/// Whether another writer moved one of the refs meanwhile.
pub(in crate::store) fn is_race(rejected: &[(String, String)]) -> bool {
    let race = |(_, why): &(String, String)| RACES.iter().any(|word| why.contains(word));
    rejected.iter().any(race)
}

/// How a push ended.
#[derive(Debug)]
pub(super) enum Pushed {
    /// The remote has everything that it takes.
    All,
    /// Another writer was faster, or something on the remote says so.
    Race(String),
}

/// Pushes what the remote lacks.
pub(super) fn push(
    store: &Store,
    wanted: &Wanted<'_>,
    there: &Refs,
    report: &mut Report,
) -> Result<Pushed, Error> {
    let here: BTreeMap<_, _> = store
        .repo
        .list_refs(store.layout.prefix())?
        .into_iter()
        .collect();
    let mut leases: Vec<(RefKind, Lease)> = Vec::new();
    for (name, id) in &here {
        let at = there.get(name).copied();
        let Some(kind) = store.layout.kind_of(name).filter(|_| at != Some(*id)) else {
            continue;
        };
        if let Some(at) = at
            && !holds(store, *id, at)
        {
            // What the remote has could not be taken, or somebody wrote here meanwhile: pushing
            // would drop it there.
            if report.leaves(name) {
                continue;
            }
            return Ok(Pushed::Race(format!("{name} moved meanwhile")));
        }
        let lease = Lease {
            name: name.clone(),
            expected: Expected::from(at),
            new: Some(*id),
        };
        leases.push((kind, lease));
    }
    // The policy first, then a task's events before what rests on them, one task after the other.
    leases.sort_by(|one, two| order(&one.0).cmp(&order(&two.0)));
    let leases: Vec<Lease> = leases.into_iter().map(|(_, lease)| lease).collect();
    report.not_pushed = None;
    for batch in leases.chunks(BATCH) {
        if let Some(race) = push_some(store, wanted, batch, report)? {
            return Ok(Pushed::Race(race));
        }
    }
    tidy(store, wanted, there, report)
}

/// Deletes what the remote's archive holds by now. Where it does not let refs be deleted, they stay.
fn tidy(
    store: &Store,
    wanted: &Wanted<'_>,
    there: &Refs,
    report: &mut Report,
) -> Result<Pushed, Error> {
    report.not_tidied = None;
    for batch in archives::leftovers(store, there, report)?.chunks(BATCH) {
        match store.repo.push(wanted.remote, batch, wanted.timeout) {
            Ok(PushOutcome::Done) => {
                note(store, wanted, batch)?;
                let tasks = batch.iter().filter_map(|one| store.layout.owner(&one.name));
                report.archived.extend(tasks);
            }
            Ok(PushOutcome::Rejected(rejected)) if is_race(&rejected) => {
                return Ok(Pushed::Race("an archived ref moved meanwhile".into()));
            }
            Ok(PushOutcome::Rejected(rejected)) => {
                report.not_tidied = rejected.into_iter().next().map(|(_, why)| why);
                break;
            }
            Err(git::Error::Program { message, .. }) => {
                report.not_tidied = Some(message);
                break;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Pushed::All)
}

/// Pushes these refs together; where the remote refuses one for good, each half by itself, so that one
/// ref that it does not take keeps no other away. Gives why another writer was faster.
fn push_some(
    store: &Store,
    wanted: &Wanted<'_>,
    batch: &[Lease],
    report: &mut Report,
) -> Result<Option<String>, Error> {
    let why = match store.repo.push(wanted.remote, batch, wanted.timeout) {
        Ok(PushOutcome::Done) => return done(store, wanted, batch, report).map(|()| None),
        Ok(PushOutcome::Rejected(rejected)) => {
            let first = rejected.first().map(|(name, why)| format!("{name}: {why}"));
            let why = first.unwrap_or_default();
            if is_race(&rejected) {
                return Ok(Some(why));
            }
            why
        }
        Err(git::Error::Program { message, .. }) => {
            report.not_pushed = Some(message);
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    let pushed = report.pushed.len();
    if batch.len() > 1 {
        let (one, two) = batch.split_at(batch.len() / 2);
        if let Some(race) = push_some(store, wanted, one, report)? {
            return Ok(Some(race));
        }
        // A remote that takes nothing at all is not asked for every ref.
        if report.pushed.len() > pushed || one.len() == 1 {
            return push_some(store, wanted, two, report);
        }
    }
    report.not_pushed.get_or_insert(why);
    Ok(None)
}

/// Whether a head here reaches what the remote has.
fn holds(store: &Store, here: ObjectId, there: ObjectId) -> bool {
    // What is no commit is reached by nothing.
    store.repo.has_object(there) && store.repo.is_ancestor(there, here).unwrap_or(false)
}

const fn order(kind: &RefKind) -> (u8, Option<&crate::model::ids::TaskId>, u8) {
    match kind {
        RefKind::Policy | RefKind::Proposal(_) | RefKind::Archive(_) => (0, None, 0),
        RefKind::Task(task) => (1, Some(task), 0),
        RefKind::OfTask(task) => (1, Some(task), 1),
    }
}

/// Notes what the remote has now.
fn done(
    store: &Store,
    wanted: &Wanted<'_>,
    batch: &[Lease],
    report: &mut Report,
) -> Result<(), Error> {
    note(store, wanted, batch)?;
    let names = batch.iter().map(|lease| lease.name.clone());
    report.pushed.extend(names);
    Ok(())
}

fn note(store: &Store, wanted: &Wanted<'_>, batch: &[Lease]) -> Result<(), Error> {
    let place = tracking(wanted.remote);
    for lease in batch {
        let Some(own) = lease.name.strip_prefix(store.layout.prefix()) else {
            continue;
        };
        let name = format!("{place}{own}");
        let old = Expected::from(store.repo.read_ref(&name)?);
        store.repo.update_ref(&name, old, lease.new, "push")?;
    }
    Ok(())
}
