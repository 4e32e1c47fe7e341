//! From this clone to the remote: what it lacks, each ref only if it is where it was seen.

use super::archives;
use super::report::{NotPushed, Report};
use super::there::{Refs, There};
use super::{Wanted, tracking};
use crate::git::{self, Expected, Lease, PushOutcome, RefChange, Rejected};
use crate::model::object_id::ObjectId;
use crate::store::layout::{Layout, Prefix, RefKind};
use crate::store::{Error, Store, growth};
use std::collections::VecDeque;

/// Most refs of one push: what an argument list holds.
pub(super) const BATCH: usize = 1000;

/// Refused pushes of one batch after which the rest waits for the next sync: once something was taken, and
/// where nothing was.
const MOST_REFUSED: usize = 64;
const MOST_REFUSED_OF_ALL: usize = 32;
/// Refused pushes after which single refs are tried, where nothing was taken yet.
const SEARCH: usize = 16;

/// What git says of a ref that is not where it was expected.
const STALE: &str = "stale info";

/// Words by which servers refuse a ref that another writer moved meanwhile.
const RACES: [&str; 6] = [
    STALE,
    "fetch first",
    "non-fast-forward",
    "failed to update ref",
    "cannot lock ref",
    "atomic transaction failed",
];

/// Whether another writer moved one of the refs meanwhile.
pub(in crate::store) fn is_race(rejected: &Rejected) -> bool {
    let race = |(_, why): &(String, String)| RACES.iter().any(|word| why.contains(word));
    rejected.refs.iter().any(race)
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
    there: &There,
    report: &mut Report,
) -> Result<Pushed, Error> {
    let here = store.repo.list_refs(store.layout.prefix())?;
    let here: Refs = here.into_iter().collect();
    let mut leases: Vec<(RefKind, Lease)> = Vec::new();
    let mut barred = Vec::new();
    for (name, id) in &here {
        let at = there.refs.get(name).copied();
        let Some(kind) = store.layout.kind_of(name).filter(|_| at != Some(*id)) else {
            continue;
        };
        if let Some(at) = at
            && !holds(store, *id, at)
        {
            // What the remote has could not be taken, or somebody wrote here meanwhile: pushing
            // would drop it there.
            if report.leaves(name) {
                barred.push((name.clone(), *id, at));
                continue;
            }
            return Ok(Pushed::Race(format!("{name} moved meanwhile")));
        }
        let lease = Lease {
            name: there.name(store, name),
            expected: Expected::from(at),
            new: Some(*id),
        };
        leases.push((kind, lease));
    }
    // The policy first, then a task's events before what rests on them, one task after the other.
    leases.sort_by(|one, two| order(&one.0).cmp(&order(&two.0)));
    let leases: Vec<Lease> = leases.into_iter().map(|(_, lease)| lease).collect();
    report.not_pushed = None;
    let pushed = push_all(store, wanted, &leases, report)?;
    let local = Layout::at(there.prefix);
    let names = leases.iter();
    report.unpublished = names
        .filter_map(|lease| local.name_at(&lease.name, store.layout.place()))
        .filter(|name| !report.pushed.contains(name))
        .chain(barred.iter().map(|(name, _, _)| name.clone()))
        .collect();
    // One that forbids everything, or is gone, lets nothing be replaced or deleted either.
    let gone = |not: &NotPushed| not.trouble.is_some();
    match pushed {
        Pushed::All if !report.not_pushed.as_ref().is_some_and(gone) => {
            match put_back(store, wanted, there, &barred, report)? {
                Pushed::All => tidy(store, wanted, there, &here, report),
                race @ Pushed::Race(_) => Ok(race),
            }
        }
        pushed => Ok(pushed),
    }
}

/// Pushes refs in place of what somebody else put there, where nothing is lost with that: each by itself,
/// and only if it is still what was looked at.
fn put_back(
    store: &Store,
    wanted: &Wanted<'_>,
    there: &There,
    barred: &[(String, ObjectId, ObjectId)],
    report: &mut Report,
) -> Result<Pushed, Error> {
    for (name, here, at) in barred {
        if !growth::is_junk(&store.repo, *here, *at) {
            continue;
        }
        let lease = [Lease {
            name: there.name(store, name),
            expected: Expected::At(*at),
            new: Some(*here),
        }];
        match store.repo.push(wanted.remote, &lease, wanted.timeout) {
            Ok(PushOutcome::Done) => {
                done(store, wanted, &lease, report)?;
                report.unpublished.remove(name);
                report.put_back(name);
            }
            Ok(PushOutcome::Rejected(rejected)) if rejected.named().contains(STALE) => {
                return Ok(Pushed::Race(rejected.named()));
            }
            // A remote that takes no such push keeps nothing else back.
            Ok(PushOutcome::Rejected(rejected)) => {
                let refused = NotPushed::refused(rejected.named());
                report.not_pushed.get_or_insert(refused);
            }
            Err(git::Error::Remote {
                trouble, message, ..
            }) => {
                report.not_pushed = Some(NotPushed::outside(message, trouble));
                break;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Pushed::All)
}

/// Pushes these refs, as many together as an argument list holds.
pub(super) fn push_all(
    store: &Store,
    wanted: &Wanted<'_>,
    leases: &[Lease],
    report: &mut Report,
) -> Result<Pushed, Error> {
    for batch in leases.chunks(BATCH) {
        if let Some(race) = push_some(store, wanted, batch, report)? {
            return Ok(Pushed::Race(race));
        }
        // One that forbids everything, or is gone, is not asked for every ref.
        if report
            .not_pushed
            .as_ref()
            .is_some_and(|no| no.trouble.is_some())
        {
            break;
        }
    }
    Ok(Pushed::All)
}

/// Deletes what the remote's archive holds by now. Where it does not let refs be deleted, they stay.
fn tidy(
    store: &Store,
    wanted: &Wanted<'_>,
    there: &There,
    here: &Refs,
    report: &mut Report,
) -> Result<Pushed, Error> {
    report.not_tidied = None;
    for batch in archives::leftovers(store, there, here, report)?.chunks(BATCH) {
        match store.repo.push(wanted.remote, batch, wanted.timeout) {
            Ok(PushOutcome::Done) => {
                note(store, wanted, batch)?;
                let layout = Layout::at(there.prefix);
                let tasks = batch.iter().filter_map(|one| layout.owner(&one.name));
                report.archived.extend(tasks);
            }
            Ok(PushOutcome::Rejected(rejected)) if is_race(&rejected) => {
                return Ok(Pushed::Race("an archived ref moved meanwhile".into()));
            }
            Ok(PushOutcome::Rejected(rejected)) => {
                report.not_tidied = Some(rejected.why());
                break;
            }
            Err(git::Error::Remote { message, .. }) => {
                report.not_tidied = Some(message);
                break;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Pushed::All)
}

/// Pushes these refs together; where the remote refuses one for good, each half by itself, and so on, the
/// larger pieces first, so that a group that it does not take keeps few others away. Where no piece was
/// taken for long, it looks for a single ref that is: with one, the rest has its turn in this sync or the
/// next ones. Pieces keep the order of `batch` inside, not among each other: until the last one is there,
/// a remote may have what rests on an event that it lacks. Gives why another writer was faster.
fn push_some(
    store: &Store,
    wanted: &Wanted<'_>,
    batch: &[Lease],
    report: &mut Report,
) -> Result<Option<String>, Error> {
    let before = report.pushed.len();
    let mut pieces = VecDeque::from([batch]);
    let mut refused: Vec<(usize, String)> = Vec::new();
    loop {
        let none_taken = report.pushed.len() == before;
        let piece = if none_taken && refused.len() >= SEARCH {
            pieces.pop_back()
        } else {
            pieces.pop_front()
        };
        let Some(piece) = piece else { break };
        match store.repo.push(wanted.remote, piece, wanted.timeout) {
            Ok(PushOutcome::Done) => done(store, wanted, piece, report)?,
            Ok(PushOutcome::Rejected(rejected)) if is_race(&rejected) => {
                return Ok(Some(rejected.named()));
            }
            Ok(PushOutcome::Rejected(rejected)) => {
                refused.push((piece.len(), rejected.named()));
                if piece.len() > 1 {
                    let (one, two) = piece.split_at(piece.len() / 2);
                    pieces.extend([one, two]);
                }
            }
            Err(git::Error::Remote {
                trouble, message, ..
            }) => {
                report.not_pushed = Some(NotPushed::outside(message, trouble));
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        }
        // A remote that takes nothing at all is not asked for every ref.
        let most = if report.pushed.len() > before {
            MOST_REFUSED
        } else {
            MOST_REFUSED_OF_ALL
        };
        if refused.len() >= most {
            break;
        }
    }
    // Of a small piece it is the surest which ref was meant.
    if let Some((_, why)) = refused.into_iter().min_by_key(|(size, _)| *size) {
        report.not_pushed.get_or_insert(NotPushed::refused(why));
    }
    Ok(None)
}

/// Whether a head here reaches what the remote has.
pub(super) fn holds(store: &Store, here: ObjectId, there: ObjectId) -> bool {
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
    // A ref that a move took away is there below the other prefix.
    let made = batch.iter().filter(|lease| lease.new.is_some());
    let made: Vec<Lease> = made.cloned().collect();
    note(store, wanted, &made)?;
    let names = made.iter().filter_map(|lease| own(&lease.name));
    let names = names.map(|own| format!("{}{own}", store.layout.prefix()));
    report.pushed.extend(names);
    Ok(())
}

/// A ref name of the remote without the prefix.
fn own(name: &str) -> Option<&str> {
    let mut all = Prefix::ALL.into_iter();
    all.find_map(|prefix| name.strip_prefix(prefix.as_str()))
}

/// Notes where these refs of the remote are now, or that they are gone.
fn note(store: &Store, wanted: &Wanted<'_>, batch: &[Lease]) -> Result<(), Error> {
    let place = tracking(wanted.remote);
    let mut changes = Vec::new();
    for lease in batch {
        let Some(own) = own(&lease.name) else {
            continue;
        };
        let name = format!("{place}{own}");
        changes.push(RefChange {
            expected: Expected::from(store.repo.read_ref(&name)?),
            name,
            new: lease.new,
        });
    }
    match store.repo.change_refs(&changes, "push") {
        // Another sync of this clone notes it as well; what is noted only saves work.
        Err(git::Error::Conflict { .. } | git::Error::Busy { .. }) => Ok(()),
        result => Ok(result?),
    }
}
