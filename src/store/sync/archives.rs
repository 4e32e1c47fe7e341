//! Archives in a sync: taking the remote's, letting go of refs that they hold, on both sides.
//!
//! A task counts as archived only while its own events say that it has ended. What somebody put into
//! an archive too early stays live here, and is pushed again.

use super::plan::Sides;
use super::pull::{new_among, readable};
use super::report::{NotApplied, Report};
use super::there::{Refs, There};
use crate::git::{self, Expected, Lease};
use crate::model::ids::TaskId;
use crate::model::object_id::ObjectId;
use crate::store::archive::{self, Heads};
use crate::store::join::join;
use crate::store::{Error, Store, high_water};
use std::collections::{BTreeMap, BTreeSet};

/// Joins the remote's archive with the one here. Gives the tasks that are new in it.
pub(super) fn take(
    store: &Store,
    name: &str,
    sides: Sides,
    report: &mut Report,
) -> Result<BTreeSet<TaskId>, Error> {
    let Some(there) = sides.there else {
        return Ok(BTreeSet::new());
    };
    let taken = archive::take(&store.repo, sides.here, there)
        .and_then(|taken| check_known(store, &taken.1).map(|empty| (taken, empty)));
    let ((target, tasks), empty) = match taken {
        Ok(taken) => taken,
        Err(error) => {
            report.not_taken(name, &error);
            return Ok(BTreeSet::new());
        }
    };
    if Some(target) != sides.here {
        let expected = Expected::from(sides.here);
        match store.repo.update_ref(name, expected, Some(target), "sync") {
            Err(busy @ git::Error::Busy { .. }) => {
                report.locked(name, &busy);
                return Ok(BTreeSet::new());
            }
            moved => moved?,
        }
        high_water::note(&store.repo, name, target);
        let done = if target == there {
            &mut report.fetched
        } else {
            &mut report.joined
        };
        done.insert(name.to_owned());
        for (name, commits) in empty {
            report.empty(&name, commits);
        }
    }
    Ok(tasks.into_keys().collect())
}

/// What is offered for tasks that are here can be read. Tasks that are new here are looked at when
/// somebody asks for them. Gives empty commits that come with it.
fn check_known(
    store: &Store,
    tasks: &BTreeMap<TaskId, Heads>,
) -> Result<BTreeMap<String, Vec<ObjectId>>, Error> {
    let mut empty = BTreeMap::new();
    for (task, heads) in tasks {
        if store.head(&store.layout.task(task))?.is_none() {
            continue;
        }
        for (own, head) in heads {
            let name = format!("{}{own}", store.layout.prefix());
            let known = store.head(&name)?;
            let kind = store.layout.kind_of(&name);
            if let Some(kind) = kind.filter(|_| known != Some(*head)) {
                let read = readable(store, &kind, *head)?;
                empty.insert(name, new_among(store, known, read.empty)?);
            }
        }
    }
    Ok(empty)
}

/// Whether a ref that the remote had is in the archive that it shows now. `place` is where this clone
/// keeps what the remote shows.
pub(super) fn holds_there(
    store: &Store,
    place: &str,
    name: &str,
    before: ObjectId,
) -> Result<bool, Error> {
    let (Some(task), Some(own)) = (store.layout.owner(name), store.layout.own(name)) else {
        return Ok(false);
    };
    let shown = store.layout.archive(&task);
    let shown = format!("{place}{}", store.layout.own(&shown).unwrap_or_default());
    let Some(shown) = store.repo.read_ref(&shown)? else {
        return Ok(false);
    };
    let Ok(Some(head)) = archive::head_in(&store.repo, shown, &task, own) else {
        return Ok(false);
    };
    Ok(store.repo.has_object(before)
        && store.repo.has_object(head)
        && store.repo.is_ancestor(before, head)?)
}

/// Joins the live refs of tasks with what the archive holds of them now, and lets go of those that
/// have nothing more than it.
pub(super) fn settle(
    store: &Store,
    tasks: &BTreeSet<TaskId>,
    report: &mut Report,
) -> Result<(), Error> {
    if tasks.is_empty() {
        return Ok(());
    }
    // What has ended is known once it is decided which version of the policy stands.
    let decided = store.policy.rivals().is_empty();
    let prefix = store.layout.prefix();
    let mut live: BTreeMap<TaskId, Vec<(String, ObjectId)>> = BTreeMap::new();
    for (name, head) in store.repo.list_refs(prefix)? {
        if let Some(task) = store
            .layout
            .owner(&name)
            .filter(|task| tasks.contains(task))
        {
            live.entry(task).or_default().push((name, head));
        }
    }
    let mut over = BTreeSet::new();
    for (task, refs) in live {
        let archived = store.archived(&task)?;
        for (name, head) in refs {
            let own = store.layout.own(&name).unwrap_or_default();
            if let Some(kept) = archived.get(own) {
                match bring_up(store, &name, head, *kept) {
                    Err(Error::Git(busy @ git::Error::Busy { .. })) => report.locked(&name, &busy),
                    done => done?,
                }
            }
        }
        if !decided {
            continue;
        }
        if has_ended(store, &task) {
            over.insert(task);
        } else if was_live(store, &task)? {
            report.not_applied.push(NotApplied::Ref {
                name: store.layout.task(&task),
                why: "somebody put it into the archive, and it has not ended: it stays".into(),
                junk: false,
            });
        }
    }
    store.drop_archived(&over)?;
    report.archived.extend(over);
    Ok(())
}

/// Moves a live ref forward to what the archive has of it.
fn bring_up(store: &Store, name: &str, head: ObjectId, kept: ObjectId) -> Result<(), Error> {
    let target = if store.repo.is_ancestor(kept, head)? {
        return Ok(());
    } else if store.repo.is_ancestor(head, kept)? {
        kept
    } else {
        join(&store.repo, head, kept)?
    };
    match store
        .repo
        .update_ref(name, Expected::At(head), Some(target), "archive")
    {
        Ok(()) => high_water::note(&store.repo, name, target),
        // Somebody wrote here meanwhile: what the archive has more comes with the next sync.
        Err(git::Error::Conflict { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Whether the archive holds all that there is of a task. Then nobody took it up again: it was put
/// there too early.
fn was_live(store: &Store, task: &TaskId) -> Result<bool, Error> {
    let name = store.layout.task(task);
    Ok(store.repo.read_ref(&name)? == store.archived_head(&name)?)
}

/// Whether the task's own events say that it has ended.
pub(super) fn has_ended(store: &Store, task: &TaskId) -> bool {
    let history = store.task(task);
    history.is_ok_and(|history| history.task.state.is_terminal())
}

/// Refs of the remote that its archive holds by now, to be deleted there. `here` are those that were
/// live here when the push began.
pub(super) fn leftovers(
    store: &Store,
    there: &There,
    here: &Refs,
    report: &Report,
) -> Result<Vec<Lease>, Error> {
    let mut ended = BTreeMap::new();
    let mut leases = Vec::new();
    if !store.policy.rivals().is_empty() {
        return Ok(leases);
    }
    // Nearly all are live, and looked at no further.
    for (name, at) in there
        .refs
        .iter()
        .filter(|(name, _)| !here.contains_key(*name))
    {
        let Some(task) = store.layout.owner(name) else {
            continue;
        };
        let archive = store.layout.archive(&task);
        let Some(ours) = store.repo.read_ref(&archive)? else {
            continue;
        };
        // Only what the remote's own archive holds may go from it.
        if there.refs.get(&archive) != Some(&ours) && !report.pushed.contains(&archive) {
            continue;
        }
        // Somebody may have taken it up again just now.
        if store.repo.read_ref(name)?.is_some() {
            continue;
        }
        let Some(kept) = store.archived_head(name)? else {
            continue;
        };
        let holds = store.repo.has_object(*at) && store.repo.is_ancestor(*at, kept)?;
        let over = *ended
            .entry(task.clone())
            .or_insert_with(|| has_ended(store, &task));
        if holds && over {
            leases.push(Lease {
                name: there.name(store, name),
                expected: Expected::At(*at),
                new: None,
            });
        }
    }
    Ok(leases)
}
