//! Taking what was fetched: refs move forward, many at a time.
//!
//! A batch of tasks is checked on all processors, the events of each once. Then its refs move
//! together, a task's events before what rests on them, and what came without effect is reported. A
//! ref that somebody moved meanwhile stays as it is and keeps no other back. Nothing moves that could
//! not be read. Must not know how refs were fetched.

use super::archives;
use super::plan::{self, Sides, Step};
use super::pull::{Differing, new_among, readable, relation};
use super::refused;
use super::report::{NotApplied, Report};
use crate::git::{Expected, RefMove};
use crate::model::ids::TaskId;
use crate::model::object_id::ObjectId;
use crate::store::join::join;
use crate::store::layout::{OfTask, RefKind};
use crate::store::tasks::TaskHistory;
use crate::store::{Error, Store, chain, growth, high_water};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

/// Tasks of one batch: they are held in memory, and wait together for the disk.
const BATCH: usize = 512;
/// Longest history that is held in memory until it was looked at; a longer one is read again.
const HELD: usize = 256;

/// A ref that is to move.
struct Wish<'a> {
    kind: &'a RefKind,
    name: &'a str,
    sides: Sides,
    target: ObjectId,
    joined: bool,
    /// Empty commits that came and are no joins.
    empty: Vec<ObjectId>,
}

/// What differs of one task.
#[derive(Default)]
struct Group<'a> {
    events: Option<&'a Differing>,
    rest: Vec<&'a Differing>,
}

/// What came for one task.
#[derive(Default)]
struct Came {
    /// Its events, where they are known already.
    history: Mutex<Option<TaskHistory>>,
    known: Known,
}

/// What of a task was here before.
#[derive(Default)]
struct Known {
    /// Heads of its refs.
    heads: Vec<ObjectId>,
    /// The head of its events.
    events: Option<ObjectId>,
}

/// Takes a version of the policy that collects signatures.
pub(super) fn proposal(
    store: &Store,
    differing: &Differing,
    report: &mut Report,
) -> Result<(), Error> {
    let wish = wish(store, differing, &mut || false, report)?;
    let (wishes, _) = checked(store, wish.into_iter().collect(), report)?;
    advance(store, wishes, report).map(drop)
}

/// Takes every ref of a task.
pub(super) fn tasks(
    store: &Store,
    differing: &[Differing],
    report: &mut Report,
) -> Result<(), Error> {
    let mut groups: BTreeMap<&TaskId, Group<'_>> = BTreeMap::new();
    for one in differing {
        match &one.0 {
            RefKind::Task(task) => groups.entry(task).or_default().events = Some(one),
            RefKind::OfTask(task) => groups.entry(task).or_default().rest.push(one),
            RefKind::Policy | RefKind::Proposal(_) | RefKind::Archive(_) => {}
        }
    }
    if groups.is_empty() {
        return Ok(());
    }
    let approvals = store.layout.folder(OfTask::Approvals);
    let mut approvals: BTreeMap<_, _> = store.repo.list_refs(&approvals)?.into_iter().collect();
    let groups: Vec<_> = groups.into_iter().collect();
    for batch in groups.chunks(BATCH) {
        batch_of(store, batch, &mut approvals, report)?;
    }
    Ok(())
}

/// Takes the refs of these tasks. `approvals` are all decisions that are here.
fn batch_of(
    store: &Store,
    groups: &[(&TaskId, Group<'_>)],
    approvals: &mut BTreeMap<String, ObjectId>,
    report: &mut Report,
) -> Result<(), Error> {
    let mut came: BTreeMap<&TaskId, Came> = BTreeMap::new();
    let mut wishes = Vec::new();
    for (task, group) in groups {
        if let Some(one) = group.events {
            let ended = &mut || archives::has_ended(store, task);
            wishes.extend(wish(store, one, ended, report)?);
        }
    }
    let (wishes, histories) = checked(store, wishes, report)?;
    let moved = advance(store, wishes, report)?;
    for wish in moved {
        if let RefKind::Task(task) = wish.kind {
            let history = histories.get(wish.name);
            let history = history.and_then(|held| held.lock().ok()?.take());
            let came = came.entry(task).or_default();
            came.history = Mutex::new(history);
            came.known.heads.extend(wish.sides.here);
            came.known.events = wish.sides.here;
        }
    }
    let mut wishes = Vec::new();
    for (task, group) in groups {
        let mut over = None;
        let mut ended = || *over.get_or_insert_with(|| archives::has_ended(store, task));
        for one in &group.rest {
            wishes.extend(wish(store, one, &mut ended, report)?);
        }
    }
    let (mut wishes, _) = checked(store, wishes, report)?;
    let mut missing = BTreeSet::new();
    for wish in &wishes {
        if let RefKind::OfTask(task) = wish.kind
            && store.head(&store.layout.task(task))?.is_none()
        {
            missing.insert(wish.name);
        }
    }
    wishes.retain(|wish| !missing.contains(wish.name));
    let pending = missing.into_iter().map(|name| NotApplied::Pending {
        name: name.to_owned(),
    });
    report.not_applied.extend(pending);
    for wish in advance(store, wishes, report)? {
        if let RefKind::OfTask(task) = wish.kind {
            let came = came.entry(task).or_default();
            came.known.heads.extend(wish.sides.here);
            if store.layout.task_in(OfTask::Approvals, wish.name).is_some() {
                approvals.insert(wish.name.to_owned(), wish.target);
            }
        }
    }
    report_on(store, &came, approvals, report)
}

/// Where one ref is to go; `None` where it stays. `ended` says whether its task has ended.
fn wish<'a>(
    store: &Store,
    differing: &'a Differing,
    ended: &mut dyn FnMut() -> bool,
    report: &mut Report,
) -> Result<Option<Wish<'a>>, Error> {
    let (kind, name, sides) = differing;
    // What is in the archive is here, unless it was put there before its end.
    let archived = match sides.here {
        None => store.archived_head(name)?.filter(|_| ended()),
        Some(_) => None,
    };
    let known = Sides {
        here: sides.here.or(archived),
        ..*sides
    };
    let step = plan::step(known, |one, two| relation(store, one, two));
    let target = step.and_then(|step| match step {
        Step::Keep => Ok(None),
        Step::Take(there) => Ok(Some((there, false))),
        Step::Join(here, there) if is_foreign(store, here, there)? => Err(foreign(name)),
        Step::Join(here, there) => Ok(Some((join(&store.repo, here, there)?, true))),
    });
    Ok(match target {
        Ok(target) => target.map(|(target, joined)| Wish {
            kind,
            name,
            sides: *sides,
            target,
            joined,
            empty: Vec::new(),
        }),
        Err(error) => {
            report.not_taken(name, &error);
            None
        }
    })
}

/// Whether a history shares nothing with the one here and holds no document: a branch, say. Joined, it
/// would be read with the ref for ever.
fn is_foreign(store: &Store, here: ObjectId, there: ObjectId) -> Result<bool, Error> {
    let base = store.repo.merge_base(here, there)?;
    Ok(base.is_none() && growth::is_junk(&store.repo, here, there))
}

fn foreign(name: &str) -> Error {
    Error::Document {
        place: name.to_owned(),
        reason: "it is another history, without any document of hangar".into(),
    }
}

/// Events of tasks that were read, by the name of the ref.
type Histories<'a> = BTreeMap<&'a str, Mutex<Option<TaskHistory>>>;

/// Those that can be read. The others stay, and are named.
fn checked<'a>(
    store: &Store,
    wishes: Vec<Wish<'a>>,
    report: &mut Report,
) -> Result<(Vec<Wish<'a>>, Histories<'a>), Error> {
    let read = |store: &Store, wish: &Wish<'_>| {
        let read = readable(store, wish.kind, wish.target);
        let short = |history: &TaskHistory| history.records.len() <= HELD;
        let read = read.and_then(|read| {
            let empty = new_among(store, wish.sides.here, read.empty)?;
            Ok((read.history.filter(short), empty))
        });
        Ok::<_, Error>(read)
    };
    let results = store.map_all(&wishes, read, &mut |_| {})?;
    let mut good = Vec::new();
    let mut histories = Histories::new();
    for (mut wish, result) in wishes.into_iter().zip(results) {
        match result {
            Ok((history, empty)) => {
                histories.insert(wish.name, Mutex::new(history));
                wish.empty = empty;
                good.push(wish);
            }
            Err(error) => report.not_taken(wish.name, &error),
        }
    }
    Ok((good, histories))
}

/// Moves these refs together. Gives those that moved: where somebody wrote here meanwhile, the next
/// round sees it.
fn advance<'a>(
    store: &Store,
    wishes: Vec<Wish<'a>>,
    report: &mut Report,
) -> Result<Vec<Wish<'a>>, Error> {
    let moves = wishes.iter().map(|wish| RefMove {
        name: wish.name.to_owned(),
        expected: Expected::from(wish.sides.here),
        new: wish.target,
    });
    let moves: Vec<_> = moves.collect();
    let stayed = store.repo.move_refs(&moves, "sync")?;
    let mut lost = stayed.elsewhere;
    for (name, busy) in stayed.locked {
        report.locked(&name, &busy);
        lost.insert(name);
    }
    let mut moved = wishes;
    moved.retain(|wish| !lost.contains(wish.name));
    let marks = moved.iter().map(|wish| (wish.name, wish.target));
    high_water::note_all(&store.repo, marks);
    for wish in &moved {
        let done = if wish.joined {
            &mut report.joined
        } else {
            &mut report.fetched
        };
        done.insert(wish.name.to_owned());
        report.empty(wish.name, wish.empty.clone());
    }
    Ok(moved)
}

/// Reports what came for these tasks and has no effect, and what was here and has none any more.
fn report_on(
    store: &Store,
    came: &BTreeMap<&TaskId, Came>,
    approvals: &BTreeMap<String, ObjectId>,
    report: &mut Report,
) -> Result<(), Error> {
    let came: Vec<_> = came.iter().collect();
    let look = |store: &Store, (task, came): &(&&TaskId, &Came)| {
        Ok::<_, Error>(look(store, task, came, approvals))
    };
    let found = store.map_all(&came, look, &mut |_| {})?;
    for ((task, _), found) in came.into_iter().zip(found) {
        match found {
            Ok(found) => report.not_applied.extend(found),
            Err(error) => report.not_taken(&store.layout.task(task), &error),
        }
    }
    Ok(())
}

fn look(
    store: &Store,
    task: &TaskId,
    came: &Came,
    approvals: &BTreeMap<String, ObjectId>,
) -> Result<Vec<NotApplied>, Error> {
    let mut commits = BTreeSet::new();
    for head in &came.known.heads {
        let folders = chain::read(&store.repo, *head)?;
        commits.extend(folders.into_iter().map(|one| one.commit));
    }
    let history = came.history.lock().ok().and_then(|mut held| held.take());
    let history = history.map_or_else(|| store.task(task), Ok)?;
    let refs = store.refs_among(task, history.tip, approvals)?;
    let dossier = store.dossier_at(history, &refs)?;
    let new = |commit: &ObjectId| !commits.contains(commit);
    let faults = dossier.faults.iter().filter(|fault| new(&fault.commit));
    let faults = faults.map(|fault| NotApplied::Quarantined {
        task: task.clone(),
        fault: fault.clone(),
    });
    let mut found: Vec<_> = faults.collect();
    let before = came.known.events;
    refused::find(store, task, &dossier.history, before, &mut found)?;
    let pending = dossier.history.pending.iter().filter(|commit| new(commit));
    found.extend(pending.map(|commit| NotApplied::PendingEvent {
        task: task.clone(),
        commit: *commit,
    }));
    Ok(found)
}
