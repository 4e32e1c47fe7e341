//! Moving what a remote keeps from one ref prefix to the other.
//!
//! Where it fits into one atomic push, that is the move. Else the policy moves last of what is made and
//! first of what is deleted: other clones look for it, so they see the old place whole or the new one
//! whole. A move that stopped in between is ended by asking for it again. Nothing is deleted that this
//! clone does not hold.

use super::archives;
use super::pull::{Differing, bring};
use super::push::{BATCH, Pushed, holds, is_race, push_all};
use super::report::{NotPushed, Report};
use super::there::{self, Refs, There};
use super::{Wanted, plan};
use crate::git::{self, Expected, Lease, PushOutcome};
use crate::model::object_id::ObjectId;
use crate::store::layout::{Prefix, RefKind};
use crate::store::{Error, Store, archive, growth, remotes};

/// What to push, one step after the other.
#[derive(Default)]
struct Move {
    /// Refs below the new prefix, the policy not among them.
    made: Vec<Lease>,
    /// The policy below the new prefix.
    policy_made: Vec<Lease>,
    /// The policy below the old one.
    policy_gone: Vec<Lease>,
    /// Old refs.
    gone: Vec<Lease>,
    /// Old refs that could not be taken.
    stays: usize,
    /// What is in the way below the new prefix, by its name there.
    barred: Option<String>,
}

impl Move {
    fn steps(&self) -> [&[Lease]; 4] {
        [&self.made, &self.policy_made, &self.policy_gone, &self.gone]
    }
}

/// Moves the refs of the remote to this prefix. Both sides hold the same below the one in use.
pub(super) fn move_there(
    store: &Store,
    wanted: &Wanted<'_>,
    to: Prefix,
    report: &mut Report,
) -> Result<Pushed, Error> {
    let mut there = there::list(store, wanted)?;
    let reopened;
    let mut store = store;
    if there.prefix == to && !there.left.is_empty() {
        reopened = take_left(store, wanted, &there, report)?;
        store = &reopened;
        there = there::list(store, wanted)?;
    }
    let plan = plan_of(store, wanted, &there, to)?;
    let count = plan.gone.len() + plan.policy_gone.len();
    if let Some(name) = &plan.barred {
        // A state in two halves is worse than one in the old place.
        let remote = git::shown_remote(wanted.remote);
        report.not_moved = Some(format!(
            "{name} is there already and holds none of this state, so nothing was moved: look at it (`git fetch {remote} {name}`, then `git log FETCH_HEAD`), rename it or take it away there (`git push --no-verify {remote} --delete {name}`), then run this again"
        ));
        return Ok(Pushed::All);
    }
    report.stayed = plan.stays;
    if count == 0 {
        return Ok(Pushed::All);
    }
    let pushed = carry_out(store, wanted, &plan, report)?;
    let refuses = |not: &NotPushed| not.trouble.is_none();
    report.move_refused = report
        .not_pushed
        .as_ref()
        .is_some_and(refuses)
        .then_some(to);
    if matches!(pushed, Pushed::All) && report.not_pushed.is_none() {
        report.moved += count;
        report.prefix = Some(to);
        remotes::note_prefix(&store.repo, wanted.remote, to);
    }
    Ok(pushed)
}

/// Takes what somebody pushed below the old prefix after it was moved.
fn take_left(
    store: &Store,
    wanted: &Wanted<'_>,
    there: &There,
    report: &mut Report,
) -> Result<Store, Error> {
    let mut differing: Vec<Differing> = Vec::new();
    for (name, id) in &there.left {
        let here = store.repo.read_ref(name)?;
        let held = match here {
            Some(here) => holds(store, here, *id),
            None => archived_here(store, name, *id),
        };
        if let Some(kind) = store.layout.kind_of(name).filter(|_| !held) {
            let sides = plan::Sides {
                here,
                there: Some(*id),
                before: None,
            };
            differing.push((kind, name.clone(), sides));
        }
    }
    let from = (there.prefix.other(), false);
    bring(store, wanted, from, differing, report)
}

fn plan_of(store: &Store, wanted: &Wanted<'_>, there: &There, to: Prefix) -> Result<Move, Error> {
    let (old, new) = if there.prefix == to {
        (&there.left, &there.refs)
    } else {
        (&there.refs, &there.left)
    };
    let full = |prefix: Prefix, name: &str| {
        let moved = store.layout.name_at(name, prefix);
        moved.unwrap_or_else(|| name.to_owned())
    };
    let gone = |name: &str, id: ObjectId| Lease {
        name: full(to.other(), name),
        expected: Expected::At(id),
        new: None,
    };
    let mut plan = Move::default();
    for (name, id) in old {
        let here: Option<ObjectId> = store.repo.read_ref(name)?;
        if here.is_none() && archived(store, old, new, name, *id)? {
            plan.gone.push(gone(name, *id));
            continue;
        }
        let kind = store.layout.kind_of(name);
        let Some((here, kind)) = here.filter(|here| holds(store, *here, *id)).zip(kind) else {
            // What could not be taken stays as it is there.
            plan.stays += usize::from(store.layout.kind_of(name).is_some());
            continue;
        };
        let at = new.get(name).copied();
        // What holds no document gives way, as in a sync.
        let gives_way = |at| holds(store, here, at) || growth::is_junk(&store.repo, here, at);
        if at.is_some_and(|at| !gives_way(at)) {
            if kind == RefKind::Policy {
                return Err(Error::OtherStateThere {
                    remote: git::shown_remote(wanted.remote),
                    prefix: to.as_str(),
                });
            }
            plan.barred.get_or_insert_with(|| full(to, name));
            continue;
        }
        let made = (at != Some(here)).then(|| Lease {
            name: full(to, name),
            expected: Expected::from(at),
            new: Some(here),
        });
        if kind == RefKind::Policy {
            plan.policy_made.extend(made);
            plan.policy_gone.push(gone(name, *id));
        } else {
            plan.made.extend(made);
            plan.gone.push(gone(name, *id));
        }
    }
    Ok(plan)
}

/// Whether an old ref of a task that has ended is in the archive that the remote has, or gets, below
/// the new prefix.
fn archived(
    store: &Store,
    old: &Refs,
    new: &Refs,
    name: &str,
    id: ObjectId,
) -> Result<bool, Error> {
    let Some(task) = store.layout.owner(name) else {
        return Ok(false);
    };
    let archive = store.layout.archive(&task);
    let Some(ours) = store.repo.read_ref(&archive)? else {
        return Ok(false);
    };
    let holds_all = |at: &ObjectId| holds(store, ours, *at);
    let there = new.get(&archive) == Some(&ours)
        || (old.get(&archive).is_some_and(holds_all) && new.get(&archive).is_none_or(holds_all));
    Ok(there && archived_here(store, name, id))
}

/// Whether a ref of a task that has ended is in the archive here.
fn archived_here(store: &Store, name: &str, id: ObjectId) -> bool {
    let task = store.layout.owner(name);
    let ended = task.is_some_and(|task| archives::has_ended(store, &task));
    ended && archive::holds(&store.repo, &store.layout, name, id)
}

fn carry_out(
    store: &Store,
    wanted: &Wanted<'_>,
    plan: &Move,
    report: &mut Report,
) -> Result<Pushed, Error> {
    let all = plan.steps().concat();
    if all.len() <= BATCH {
        match store.repo.push_whole(wanted.remote, &all, wanted.timeout) {
            Ok(Some(outcome)) => return Ok(ended(outcome, report)),
            // The server has no atomic push.
            Ok(None) => {}
            Err(error) => return not_reached(error, report),
        }
    }
    for step in plan.steps() {
        let pushed = push_all(store, wanted, step, report)?;
        if matches!(pushed, Pushed::Race(_)) || report.not_pushed.is_some() {
            return Ok(pushed);
        }
    }
    Ok(Pushed::All)
}

fn ended(outcome: PushOutcome, report: &mut Report) -> Pushed {
    let PushOutcome::Rejected(rejected) = outcome else {
        return Pushed::All;
    };
    if is_race(&rejected) {
        return Pushed::Race(rejected.named());
    }
    report.not_pushed = Some(NotPushed::refused(rejected.named()));
    Pushed::All
}

fn not_reached(error: git::Error, report: &mut Report) -> Result<Pushed, Error> {
    match error {
        git::Error::Remote {
            trouble, message, ..
        } => {
            report.not_pushed = Some(NotPushed {
                why: message,
                trouble: Some(trouble),
            });
            Ok(Pushed::All)
        }
        other => Err(other.into()),
    }
}
