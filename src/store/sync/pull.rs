//! From the remote to this clone: list, fetch, join, move forward, look at what came.

use super::archives;
use super::plan::{self, Relation, Sides, Step};
use super::report::{NotApplied, Report};
use super::there::{self, Refs, There};
use super::{Wanted, tracking};
use crate::git::{self, Expected};
use crate::model::digest::Digest;
use crate::model::ids::TaskId;
use crate::model::object_id::ObjectId;
use crate::store::chain::{self, MAX_POLICY, MAX_TAKEN};
use crate::store::join::join;
use crate::store::layout::{Prefix, RefKind};
use crate::store::policy::PolicyHistory;
use crate::store::tasks::TaskHistory;
use crate::store::{Error, Store, high_water, pins, policy, proposal};
use std::collections::{BTreeMap, BTreeSet};

/// Most refs of one fetch: what an argument list holds.
const MANY: usize = 500;
/// Refs that Git refuses, one by one, before the rest is not tried.
const MAX_REFUSED: usize = 100;

/// Takes what the remote has. The store comes back with the policy that is in force then.
pub(super) fn pull(
    store: &Store,
    wanted: &Wanted<'_>,
    there: &There,
    report: &mut Report,
) -> Result<Store, Error> {
    report.begin_round();
    let place = tracking(wanted.remote);
    let prefix = store.layout.prefix().to_owned();
    let prefix = prefix.as_str();
    let shown: Refs = store.repo.list_refs(&place)?.into_iter().collect();
    let before = |name: &str| {
        let own = name.strip_prefix(prefix)?;
        shown.get(&format!("{place}{own}")).copied()
    };
    let here: Refs = store.repo.list_refs(prefix)?.into_iter().collect();
    let mut names: BTreeSet<&String> = there.refs.keys().collect();
    let lost = |name: &&String| before(name).is_some();
    names.extend(here.keys().filter(lost));
    let mut differing = Vec::new();
    for name in names {
        let sides = Sides {
            here: here.get(name).copied(),
            there: there.refs.get(name).copied(),
            before: before(name),
        };
        if sides.there.is_some() && sides.here == sides.there && sides.before == sides.there {
            continue;
        }
        match store.layout.kind_of(name) {
            Some(kind) => differing.push((kind, name.clone(), sides)),
            None => drop(report.unknown.insert(there.name(store, name))),
        }
    }
    bring(store, wanted, there.prefix, differing, report)
}

/// Fetches these refs from below a prefix of the remote, and takes them.
pub(super) fn bring(
    store: &Store,
    wanted: &Wanted<'_>,
    from: Prefix,
    mut differing: Vec<Differing>,
    report: &mut Report,
) -> Result<Store, Error> {
    // The policy first, then events, then what rests on them.
    differing.sort_by(|one, two| (&one.0, &one.1).cmp(&(&two.0, &two.1)));
    fetch(store, wanted, from, &differing, report)?;
    let store = reopen(store)?;
    let place = tracking(wanted.remote);
    let mut archived = BTreeSet::new();
    // The remote may have gone on since it was listed.
    let shown: Refs = store.repo.list_refs(&place)?.into_iter().collect();
    for (_, name, sides) in &mut differing {
        let own = store.layout.own(name).unwrap_or_default();
        let now = shown.get(&format!("{place}{own}")).copied();
        if sides.there.is_some() && now.is_some() && now != sides.before {
            sides.there = now;
        }
    }
    for (_, name, sides) in &differing {
        if let (None, Some(before)) = (sides.there, sides.before)
            && archives::holds_there(&store, &place, name, before)?
        {
            archived.extend(store.layout.owner(name));
            forget(&store, &place, name, before)?;
            continue;
        }
        // What has no history (a blob, say) is named when it can't be taken.
        if let Ok(Some(loss)) = plan::loss(*sides, |one, two| relation(&store, one, two)) {
            report.losses.insert(name.clone(), loss);
        }
    }
    let store = take_policy(store, &differing, report)?;
    let mut touched = BTreeMap::new();
    for (kind, name, sides) in &differing {
        if let RefKind::Archive(_) = kind {
            archived.extend(archives::take(&store, name, *sides, report)?);
            continue;
        }
        if let Some(task) = take(&store, kind, name, *sides, report)? {
            let known: &mut Known = touched.entry(task).or_default();
            known.heads.extend(sides.here);
            if matches!(kind, RefKind::Task(_)) {
                known.events = sides.here;
            }
        }
    }
    for (task, known) in touched {
        if let Err(error) = look(&store, &task, &known, report) {
            report.not_taken(&store.layout.task(&task), &error);
        }
    }
    archives::settle(&store, &archived, report)?;
    Ok(store)
}

/// What the remote showed and has put into its archive is not what it shows any more.
fn forget(store: &Store, place: &str, name: &str, before: ObjectId) -> Result<(), Error> {
    let own = store.layout.own(name).unwrap_or_default();
    let shown = format!("{place}{own}");
    Ok(store
        .repo
        .update_ref(&shown, Expected::At(before), None, "archive")?)
}

/// A ref that is not the same in both places, by its name here.
pub(super) type Differing = (RefKind, String, Sides);

fn fetch(
    store: &Store,
    wanted: &Wanted<'_>,
    from: Prefix,
    differing: &[Differing],
    report: &mut Report,
) -> Result<(), Error> {
    let new: Vec<&str> = differing
        .iter()
        .filter(|(_, _, sides)| sides.there.is_some() && sides.there != sides.before)
        .map(|(_, name, _)| name.as_str())
        .collect();
    for names in new.chunks(MANY) {
        fetch_some(store, wanted, from, names, report)?;
    }
    Ok(())
}

/// Fetches these refs together; where that fails although the remote answers, each half by itself, so
/// that one ref that Git refuses keeps no other away.
fn fetch_some(
    store: &Store,
    wanted: &Wanted<'_>,
    from: Prefix,
    names: &[&str],
    report: &mut Report,
) -> Result<(), Error> {
    let (prefix, place) = (store.layout.prefix(), tracking(wanted.remote));
    let own = names.iter().filter_map(|name| name.strip_prefix(prefix));
    let specs: Vec<String> = own
        .map(|name| format!("+{}{name}:{place}{name}", from.as_str()))
        .collect();
    let specs: Vec<_> = specs.iter().map(String::as_str).collect();
    let Err(error) = store.repo.fetch(wanted.remote, &specs, wanted.timeout) else {
        return Ok(());
    };
    if let [name] = names {
        if report.not_applied.len() > MAX_REFUSED {
            return Err(error.into());
        }
        report.not_taken(name, &error.into());
        return Ok(());
    }
    // A remote that is away fails here.
    there::list(store, wanted)?;
    let (one, two) = names.split_at(names.len() / 2);
    fetch_some(store, wanted, from, one, report)?;
    fetch_some(store, wanted, from, two, report)
}

/// The same store after the git program changed objects and refs.
fn reopen(store: &Store) -> Result<Store, Error> {
    Store::open(store.repo.reopen()?, store.clock)
}

fn relation(store: &Store, one: ObjectId, two: ObjectId) -> Result<Relation, Error> {
    // An object that is gone has no history any more.
    if !store.repo.has_object(one) || !store.repo.has_object(two) {
        return Ok(Relation::Apart);
    }
    Ok(if store.repo.is_ancestor(one, two)? {
        Relation::Behind
    } else if store.repo.is_ancestor(two, one)? {
        Relation::Ahead
    } else {
        Relation::Apart
    })
}

/// What the remote has of the policy. Two heads are joined as those of any other ref; versions that
/// rival each other then lie on it together, and nobody decides until the root keys did.
fn take_policy(store: Store, differing: &[Differing], report: &mut Report) -> Result<Store, Error> {
    let Some((_, name, sides)) = differing
        .iter()
        .find(|(kind, _, _)| *kind == RefKind::Policy)
    else {
        return Ok(store);
    };
    let step = plan::step(*sides, |one, two| relation(&store, one, two));
    // One that does not verify is no policy, whoever put it there: the one here stays.
    let taken = step.and_then(|step| match step {
        Step::Keep => Ok(None),
        Step::Take(there) => verified(&store, there, None).map(Some),
        Step::Join(here, there) => verified(&store, there, Some(here)).map(Some),
    });
    let (target, offered) = match taken {
        Ok(None) => return Ok(store),
        Ok(Some(taken)) => taken,
        Err(error) => {
            report.not_taken(name, &error);
            return Ok(store);
        }
    };
    let expected = Expected::from(sides.here);
    store
        .repo
        .update_ref(name, expected, Some(target), "sync")?;
    high_water::note(&store.repo, name, target);
    pins::record(&store.repo, &offered)?;
    let joined = sides.there != Some(target);
    let done = if joined {
        &mut report.joined
    } else {
        &mut report.fetched
    };
    done.insert(name.clone());
    reopen(&store)
}

/// The remote's policy, verified, by itself or joined with the one here.
fn verified(
    store: &Store,
    there: ObjectId,
    here: Option<ObjectId>,
) -> Result<(ObjectId, PolicyHistory), Error> {
    chain::check_growth(&store.repo, there, MAX_POLICY)?;
    let mut target = there;
    let mut offered = policy::load_at(&store.repo, there)?;
    if offered.repo() != store.policy.repo() {
        pins::check(&store.repo, &offered)?;
    }
    if let Some(here) = here {
        target = join(&store.repo, here, there)?;
        offered = policy::load_at(&store.repo, target)?;
    }
    Ok((target, pins::seen(&store.repo, offered)?))
}

/// Moves one ref forward. Gives the task whose documents changed.
fn take(
    store: &Store,
    kind: &RefKind,
    name: &str,
    sides: Sides,
    report: &mut Report,
) -> Result<Option<TaskId>, Error> {
    let task = match kind {
        RefKind::Policy | RefKind::Archive(_) => return Ok(None),
        RefKind::Proposal(_) => None,
        RefKind::Task(task) | RefKind::OfTask(task) => Some(task),
    };
    // What is in the archive is here, unless it was put there before its end.
    let archived = match (sides.here, task) {
        (None, Some(task)) if archives::has_ended(store, task) => store.archived_head(name)?,
        _ => None,
    };
    let known = Sides {
        here: sides.here.or(archived),
        ..sides
    };
    let step = plan::step(known, |one, two| relation(store, one, two));
    let target = step.and_then(|step| match step {
        Step::Keep => Ok(None),
        Step::Take(there) => Ok(Some((there, false))),
        Step::Join(here, there) => Ok(Some((join(&store.repo, here, there)?, true))),
    });
    let (target, joined) = match target {
        Ok(None) => return Ok(None),
        Ok(Some(target)) => target,
        Err(error) => {
            report.not_taken(name, &error);
            return Ok(None);
        }
    };
    if let Err(error) = readable(store, kind, target) {
        report.not_taken(name, &error);
        return Ok(None);
    }
    if let RefKind::OfTask(task) = kind
        && store.head(&store.layout.task(task))?.is_none()
    {
        report.not_applied.push(NotApplied::Pending {
            name: name.to_owned(),
        });
        return Ok(None);
    }
    let expected = Expected::from(sides.here);
    match store.repo.update_ref(name, expected, Some(target), "sync") {
        Ok(()) => high_water::note(&store.repo, name, target),
        // Somebody wrote here meanwhile: the next round sees it.
        Err(git::Error::Conflict { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let done = if joined {
        &mut report.joined
    } else {
        &mut report.fetched
    };
    done.insert(name.to_owned());
    Ok(task.cloned())
}

/// Whether a ref could be read with this target. What can't be would make everything unreadable.
pub(super) fn readable(store: &Store, kind: &RefKind, target: ObjectId) -> Result<(), Error> {
    chain::check_growth(&store.repo, target, MAX_TAKEN)?;
    match kind {
        RefKind::Task(task) => store.task_at(task, target).map(drop),
        RefKind::Proposal(digest) => proposal::read(&store.repo, *digest, target).map(drop),
        RefKind::Policy | RefKind::Archive(_) | RefKind::OfTask(_) => {
            chain::read(&store.repo, target).map(drop)
        }
    }
}

/// What of a task was here before.
#[derive(Debug, Default)]
struct Known {
    /// Heads of its refs.
    heads: Vec<ObjectId>,
    /// The head of its events.
    events: Option<ObjectId>,
}

/// Reports what came for a task and has no effect, and what was here and has none any more.
fn look(store: &Store, task: &TaskId, known: &Known, report: &mut Report) -> Result<(), Error> {
    let mut commits = BTreeSet::new();
    for head in &known.heads {
        let folders = chain::read(&store.repo, *head)?;
        commits.extend(folders.into_iter().map(|one| one.commit));
    }
    let dossier = store.dossier(task)?;
    let new = |commit: &ObjectId| !commits.contains(commit);
    let faults = dossier.faults.iter().filter(|fault| new(&fault.commit));
    report
        .not_applied
        .extend(faults.map(|fault| NotApplied::Quarantined {
            task: task.clone(),
            fault: fault.clone(),
        }));
    refused(store, task, &dossier.history, known, report)?;
    let pending = dossier.history.pending.iter().filter(|commit| new(commit));
    report
        .not_applied
        .extend(pending.map(|commit| NotApplied::PendingEvent {
            task: task.clone(),
            commit: *commit,
        }));
    Ok(())
}

/// Reports changes without effect that had not been without it here before.
fn refused(
    store: &Store,
    task: &TaskId,
    history: &TaskHistory,
    known: &Known,
    report: &mut Report,
) -> Result<(), Error> {
    let without_effect = |history: &TaskHistory| -> BTreeSet<(Digest, usize)> {
        let mut found = BTreeSet::new();
        for record in &history.records {
            let refused = record.refused.iter().enumerate();
            let refused = refused.filter(|(_, why)| why.is_some());
            found.extend(refused.map(|(at, _)| (record.event.digest(), at)));
        }
        found
    };
    let now = without_effect(history);
    if now.is_empty() {
        return Ok(());
    }
    // Something that was done here may be outweighed by what came.
    let before = match known.events {
        Some(head) => without_effect(&store.task_at(task, head)?),
        None => BTreeSet::new(),
    };
    for record in &history.records {
        let event = record.event.digest();
        for (at, why) in record.refused.iter().enumerate() {
            if let Some(why) = why.as_ref().filter(|_| !before.contains(&(event, at))) {
                report.not_applied.push(NotApplied::Refused {
                    task: task.clone(),
                    event,
                    why: why.clone(),
                });
            }
        }
    }
    Ok(())
}
