//! From the remote to this clone: list, fetch, take the policy, the archives and then the rest.

use super::archives;
use super::plan::{self, Relation, Sides, Step};
use super::push::holds;
use super::report::Report;
use super::there::{self, Refs, There};
use super::{Wanted, is_overtaken, take, tracking};
use crate::git::{self, Expected};
use crate::model::object_id::ObjectId;
use crate::store::chain;
use crate::store::growth::{self, MAX_POLICY, MAX_TAKEN};
use crate::store::join::join;
use crate::store::layout::{Prefix, RefKind};
use crate::store::policy::PolicyHistory;
use crate::store::tasks::TaskHistory;
use crate::store::{Error, Store, high_water, pins, policy, proposal, remotes};
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
    // A power cut may have torn what was just being noted.
    let shown = store.repo.list_refs(&place);
    let shown = match shown {
        Err(git::Error::Store { .. }) if store.repo.drop_torn_refs(&place)? => {
            store.repo.list_refs(&place)
        }
        other => other,
    };
    let shown: Refs = shown?.into_iter().collect();
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
    let ours = report.unknown.is_empty();
    let store = bring(store, wanted, (there.prefix, ours), differing, report)?;
    if remotes::prefix(&store.repo, wanted.remote).is_none() {
        check_founder(&store, wanted, there, report)?;
    }
    Ok(store)
}

/// A remote that this clone meets for the first time may have been founded by somebody else meanwhile.
/// Nothing is pushed to it then: nobody there could believe it. Where both had met, somebody replaced the
/// policy there, which keeps nothing else back.
fn check_founder(
    store: &Store,
    wanted: &Wanted<'_>,
    there: &There,
    report: &Report,
) -> Result<(), Error> {
    let name = store.layout.policy();
    let Some(at) = there.refs.get(&name).filter(|_| report.leaves(&name)) else {
        return Ok(());
    };
    let here = store.policy.repo();
    match policy::load_at(&store.repo, *at) {
        Ok(offered) if offered.repo() != here => Err(Error::FoundedTwice {
            remote: git::shown_remote(wanted.remote),
            here,
            there: offered.repo(),
        }),
        _ => Ok(()),
    }
}

/// Fetches these refs from below a prefix of the remote, and takes them. `from` is that prefix, and
/// whether nothing but refs of ours was seen below it.
pub(super) fn bring(
    store: &Store,
    wanted: &Wanted<'_>,
    from: (Prefix, bool),
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
    let mut marks = None;
    for (_, name, sides) in &differing {
        if let (None, Some(before)) = (sides.there, sides.before)
            && archives::holds_there(&store, &place, name, before)?
        {
            archived.extend(store.layout.owner(name));
            forget(&store, &place, name, before)?;
            continue;
        }
        let sides = as_taken(&store, name, *sides, &mut marks)?;
        // What has no history (a blob, say) is named when it can't be taken.
        if let Ok(Some(loss)) = plan::loss(sides, |one, two| relation(&store, one, two)) {
            report.losses.insert(name.clone(), loss);
        }
    }
    let store = take_policy(store, &differing, report)?;
    for one in &differing {
        match &one.0 {
            RefKind::Archive(_) => archived.extend(archives::take(&store, &one.1, one.2, report)?),
            RefKind::Proposal(_) => take::proposal(&store, one, report)?,
            RefKind::Policy | RefKind::Task(_) | RefKind::OfTask(_) => {}
        }
    }
    take::tasks(&store, &differing, report)?;
    archives::settle(&store, &archived, report)?;
    Ok(store)
}

/// The same ref, held against what this clone took of the remote: what it could not take, and somebody
/// removed again since, is no loss. `marks` are read when they are needed.
fn as_taken(
    store: &Store,
    name: &str,
    sides: Sides,
    marks: &mut Option<BTreeMap<String, ObjectId>>,
) -> Result<Sides, Error> {
    let (Some(here), Some(there), Some(before)) = (sides.here, sides.there, sides.before) else {
        return Ok(sides);
    };
    if there == before || !store.repo.has_object(before) || holds(store, here, before) {
        return Ok(sides);
    }
    let marks = match marks {
        Some(marks) => marks,
        None => marks.insert(high_water::marks(&store.repo, &store.layout)?),
    };
    // The ref may have been put back here as well.
    let mark = marks.get(name).filter(|mark| store.repo.has_object(**mark));
    let known = mark.copied().filter(|mark| holds(store, *mark, here));
    let known = known.unwrap_or(here);
    if holds(store, known, before) {
        return Ok(sides);
    }
    // What is no commit shares nothing with it.
    let base = store.repo.merge_base(known, before).unwrap_or_default();
    Ok(Sides {
        before: base,
        ..sides
    })
}

/// What the remote showed and has put into its archive is not what it shows any more.
fn forget(store: &Store, place: &str, name: &str, before: ObjectId) -> Result<(), Error> {
    let own = store.layout.own(name).unwrap_or_default();
    let shown = format!("{place}{own}");
    let (expected, why) = (Expected::At(before), "archive");
    match store.repo.update_ref(&shown, expected, None, why) {
        // The next sync comes by here again.
        Err(git::Error::Busy { .. }) => Ok(()),
        result => Ok(result?),
    }
}

/// A ref that is not the same in both places, by its name here.
pub(super) type Differing = (RefKind, String, Sides);

fn fetch(
    store: &Store,
    wanted: &Wanted<'_>,
    (from, ours): (Prefix, bool),
    differing: &[Differing],
    report: &mut Report,
) -> Result<(), Error> {
    let new: Vec<&str> = differing
        .iter()
        .filter(|(_, _, sides)| sides.there.is_some() && sides.there != sides.before)
        .map(|(_, name, _)| name.as_str())
        .collect();
    // Git holds each name against each: one pattern for many is much quicker. Where that fails, the
    // names tell what is wrong.
    if new.len() > MANY && ours {
        match fetch_all(store, wanted, from) {
            Ok(()) => return Ok(()),
            Err(error) if is_overtaken(&error) && !is_left(report, &error) => return Err(error),
            Err(_) => {}
        }
    }
    for names in new.chunks(MANY) {
        fetch_some(store, wanted, from, names, report)?;
    }
    Ok(())
}

/// Fetches everything below a prefix of the remote.
fn fetch_all(store: &Store, wanted: &Wanted<'_>, from: Prefix) -> Result<(), Error> {
    let place = tracking(wanted.remote);
    let all = format!("+{}*:{place}*", from.as_str());
    store.repo.fetch(wanted.remote, &[&all], wanted.timeout)?;
    // What somebody put there just now must not stand in the way of a name of ours for ever.
    let repo = store.repo.reopen()?;
    for (name, id) in repo.list_refs(&place)? {
        let own = name.strip_prefix(&place).unwrap_or_default();
        let local = format!("{}{own}", store.layout.prefix());
        if store.layout.kind_of(&local).is_none() {
            repo.update_ref(&name, Expected::At(id), None, "sync")?;
        }
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
    let error = Error::from(error);
    // Another sync of this clone was at the refs here: nothing was read that could speak against the remote.
    let is_left = is_left(report, &error);
    if is_overtaken(&error) && !is_left {
        return Err(error);
    }
    // A remote that is away fails here.
    let there = there::list(store, wanted)?;
    if let [name] = names {
        // It went while it was fetched: somebody archived it, say.
        let shown = if there.prefix == from {
            &there.refs
        } else {
            &there.left
        };
        if !shown.contains_key(*name) {
            return Err(Error::LostRace(there.name(store, name)));
        }
        // Everything rests on the policy.
        let is_policy = *name == store.layout.policy();
        if report.not_applied.len() > MAX_REFUSED || (is_left && is_policy) {
            return Err(error);
        }
        match &error {
            Error::Git(busy @ git::Error::Busy { .. }) => report.locked(name, busy),
            error => report.not_taken(name, error),
        }
        return Ok(());
    }
    let (one, two) = names.split_at(names.len() / 2);
    fetch_some(store, wanted, from, one, report)?;
    fetch_some(store, wanted, from, two, report)
}

/// Whether it is a lock that was waited for long enough.
fn is_left(report: &Report, error: &Error) -> bool {
    report.leaves_locked && matches!(error, Error::Git(git::Error::Busy { .. }))
}

/// The same store after the git program changed objects and refs.
fn reopen(store: &Store) -> Result<Store, Error> {
    Store::open(store.repo.reopen()?, store.clock)
}

pub(super) fn relation(store: &Store, one: ObjectId, two: ObjectId) -> Result<Relation, Error> {
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
    let (target, offered, empty) = match taken {
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
    report.empty(name, new_among(&store, sides.here, empty)?);
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
) -> Result<(ObjectId, PolicyHistory, Vec<ObjectId>), Error> {
    growth::check(&store.repo, there, MAX_POLICY)?;
    let mut target = there;
    let mut offered = policy::load_at(&store.repo, there)?;
    if offered.repo() != store.policy.repo() {
        pins::check(&store.repo, &offered)?;
    }
    if let Some(here) = here {
        target = join(&store.repo, here, there)?;
        offered = policy::load_at(&store.repo, target)?;
    }
    let empty = growth::check(&store.repo, target, MAX_POLICY)?;
    pins::check(&store.repo, &offered)?;
    Ok((target, offered, empty))
}

/// Of these commits, those that a head here does not reach.
pub(super) fn new_among(
    store: &Store,
    here: Option<ObjectId>,
    mut commits: Vec<ObjectId>,
) -> Result<Vec<ObjectId>, Error> {
    if let Some(here) = here.filter(|_| !commits.is_empty()) {
        let known = chain::reach(&store.repo, here)?;
        commits.retain(|one| !known.contains(one));
    }
    Ok(commits)
}

/// A commit of something else, once taken, would be a fault of its task for ever.
fn documents_only(folders: &[chain::Folder]) -> Result<(), Error> {
    let holds = |folder: &chain::Folder| {
        let mut names = folder.names();
        names.any(|name| growth::is_document(name.as_bytes()))
    };
    match folders.iter().find(|folder| !holds(folder)) {
        Some(folder) => Err(Error::Document {
            place: format!("commit {}", folder.commit.short()),
            reason: "it holds no document of hangar".into(),
        }),
        None => Ok(()),
    }
}

/// What a ref would hold with a target.
pub(super) struct Readable {
    /// What a task's events say.
    pub(super) history: Option<TaskHistory>,
    /// Empty commits that are no joins.
    pub(super) empty: Vec<ObjectId>,
}

/// Whether a ref could be read with this target. What can't be would make everything unreadable.
pub(super) fn readable(store: &Store, kind: &RefKind, target: ObjectId) -> Result<Readable, Error> {
    let empty = growth::check(&store.repo, target, MAX_TAKEN)?;
    let mut history = None;
    match kind {
        RefKind::Task(task) => history = Some(store.task_at(task, target)?),
        RefKind::Proposal(digest) => drop(proposal::read(&store.repo, *digest, target)?),
        RefKind::Policy | RefKind::Archive(_) => drop(chain::read(&store.repo, target)?),
        RefKind::OfTask(_) => documents_only(&chain::read(&store.repo, target)?)?,
    }
    Ok(Readable { history, empty })
}
