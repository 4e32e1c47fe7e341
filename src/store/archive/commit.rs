//! The commits of an archive: growing one, joining two, and looking at one that somebody offers.
//!
//! They are unsigned, like joins: an archive says nothing, it only keeps histories reachable. From
//! the same heads every clone makes the same commits. Parents are the archive before and the commits
//! that the listing took up, so that whoever has the archive has every history in it.

use super::listing::{self, Heads};
use crate::git::{Commit, CommitDraft, Repository};
use crate::model::ids::TaskId;
use crate::model::object_id::ObjectId;
use crate::store::Error;
use crate::store::join::{self, join};
use std::collections::{BTreeMap, BTreeSet};

/// Message of every commit of an archive.
const MESSAGE: &str = "archive\n";
/// Commits that one commit of an archive takes up before another begins.
const WIDTH: usize = 64;
/// Most commits of an archive that are walked.
const MAX_SPINE: usize = 100_000;

/// The archive with these tasks put in. Where it holds other commits of them, both are kept.
pub(super) fn grow(
    repo: &Repository,
    head: Option<ObjectId>,
    tasks: &BTreeMap<TaskId, Heads>,
) -> Result<Option<ObjectId>, Error> {
    let mut merged = BTreeMap::new();
    for (id, heads) in tasks {
        let old = match head {
            Some(head) => listing::read(repo, head, id)?,
            None => Heads::new(),
        };
        let new = merge(repo, &old, heads)?;
        if new != old {
            merged.insert(id, new);
        }
    }
    let mut at = head;
    let mut chunk = BTreeMap::new();
    let mut taken = BTreeSet::new();
    let mut rest = merged.iter().peekable();
    while let Some((id, heads)) = rest.next() {
        chunk.insert(*id, heads);
        taken.extend(heads.values().copied());
        if taken.len() >= WIDTH || rest.peek().is_none() {
            at = Some(commit(repo, at.as_slice(), &chunk, &taken)?);
            chunk.clear();
            taken.clear();
        }
    }
    Ok(at)
}

/// Both archives as one, the same from either side.
pub(super) fn union(repo: &Repository, one: ObjectId, two: ObjectId) -> Result<ObjectId, Error> {
    let (low, high) = (one.min(two), one.max(two));
    let base = repo.read_commit(low)?.tree;
    let mut merged = BTreeMap::new();
    let mut taken = BTreeSet::new();
    for (id, blob) in listing::newer(repo, Some(base), repo.read_commit(high)?.tree)? {
        let (ours, theirs) = (
            listing::read(repo, low, &id)?,
            listing::file(repo, blob, &id)?,
        );
        let heads = merge(repo, &ours, &theirs)?;
        let old: BTreeSet<_> = ours.values().chain(theirs.values()).collect();
        taken.extend(heads.values().filter(|head| !old.contains(head)).copied());
        merged.insert(id, heads);
    }
    let chunk = merged.iter().collect();
    commit(repo, &[low, high], &chunk, &taken)
}

/// The tasks that an archive has and `old` has not, or has otherwise. An error where its listing is
/// malformed, where it names a commit that it does not reach (a garbage collection could lose it), or where it
/// reaches one that it does not name (nobody would ever look at that).
pub(super) fn offered(
    repo: &Repository,
    old: Option<ObjectId>,
    new: ObjectId,
) -> Result<BTreeMap<TaskId, Heads>, Error> {
    let spine = spine(repo, old, new)?;
    let parents = spine.values().flat_map(|commit| &commit.parents);
    let reached: BTreeSet<&ObjectId> = parents.collect();
    let before = old.map(|old| repo.read_commit(old)).transpose()?;
    let before = before.map(|commit| commit.tree);
    let mut found = BTreeMap::new();
    for (id, blob) in listing::newer(repo, before, repo.read_commit(new)?.tree)? {
        let heads = listing::file(repo, blob, &id)?;
        let known = match old {
            Some(old) => listing::read(repo, old, &id)?,
            None => Heads::new(),
        };
        for (name, commit) in &heads {
            if known.get(name) != Some(commit) && !reached.contains(commit) {
                return Err(malformed(format!(
                    "it does not hold commit {} of {name}",
                    commit.short()
                )));
            }
        }
        found.insert(id, heads);
    }
    let is_archive = |id: &ObjectId| spine.contains_key(id) || Some(*id) == old;
    for commit in spine.values() {
        let (above, taken): (Vec<ObjectId>, Vec<ObjectId>) =
            commit.parents.iter().partition(|id| is_archive(id));
        let first = above.first().map(|first| repo.read_commit(*first));
        let first = first.transpose()?.map(|first| first.tree);
        let named = named(repo, first, commit.tree, new, &found)?;
        if let Some(stray) = taken.iter().find(|id| !named.contains(id)) {
            return Err(malformed(format!(
                "it holds commit {}, which it does not name",
                stray.short()
            )));
        }
        if above.is_empty() && named.is_empty() {
            return Err(malformed("it begins without a task".into()));
        }
    }
    Ok(found)
}

/// The commits that a tree of an archive names beyond the one before. All of them must be in the listing of
/// `new` too, as far or further; `found` is what that has anew.
fn named(
    repo: &Repository,
    before: Option<ObjectId>,
    tree: ObjectId,
    new: ObjectId,
    found: &BTreeMap<TaskId, Heads>,
) -> Result<BTreeSet<ObjectId>, Error> {
    let mut named = BTreeSet::new();
    for (id, blob) in listing::newer(repo, before, tree)? {
        let last = match found.get(&id) {
            Some(heads) => heads.clone(),
            None => listing::read(repo, new, &id)?,
        };
        for (name, head) in listing::file(repo, blob, &id)? {
            let held = match last.get(&name) {
                Some(last) => *last == head || repo.is_ancestor(head, *last)?,
                None => false,
            };
            if !held {
                return Err(malformed(format!(
                    "it named commit {} of {name}, and does no longer",
                    head.short()
                )));
            }
            named.insert(head);
        }
    }
    Ok(named)
}

fn malformed(reason: String) -> Error {
    Error::Document {
        place: "the archive".into(),
        reason,
    }
}

/// Whether every task of `old` is in `new`, as far as it was or further.
pub(super) fn holds_all(repo: &Repository, old: ObjectId, new: ObjectId) -> Result<bool, Error> {
    let (before, after) = (repo.read_commit(old)?.tree, repo.read_commit(new)?.tree);
    for (id, blob) in listing::newer(repo, Some(after), before)? {
        let (heads, newer) = (
            listing::file(repo, blob, &id)?,
            listing::read(repo, new, &id)?,
        );
        if merge(repo, &heads, &newer)? != newer {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The commits of the archive itself since `old`.
fn spine(
    repo: &Repository,
    old: Option<ObjectId>,
    new: ObjectId,
) -> Result<BTreeMap<ObjectId, Commit>, Error> {
    let mut spine = BTreeMap::new();
    let mut seen = BTreeSet::from([new]);
    let mut open = vec![new];
    while let Some(id) = open.pop() {
        if Some(id) == old {
            continue;
        }
        let commit = repo.read_commit(id)?;
        if commit.message != MESSAGE.as_bytes() {
            if id == new {
                return Err(malformed("it is no archive".into()));
            }
            continue;
        }
        if spine.len() >= MAX_SPINE {
            return Err(malformed("its history is too long".into()));
        }
        let parents = commit.parents.iter().copied();
        open.extend(parents.filter(|parent| seen.insert(*parent)));
        spine.insert(id, commit);
    }
    Ok(spine)
}

/// For each ref the commit that reaches both, made by a join where neither does.
fn merge(repo: &Repository, one: &Heads, two: &Heads) -> Result<Heads, Error> {
    let mut merged = one.clone();
    for (name, new) in two {
        let head = match merged.get(name) {
            None => *new,
            Some(old) if old == new || repo.is_ancestor(*new, *old)? => continue,
            Some(old) if repo.is_ancestor(*old, *new)? => *new,
            Some(old) => join(repo, *old, *new)?,
        };
        merged.insert(name.clone(), head);
    }
    Ok(merged)
}

fn commit(
    repo: &Repository,
    before: &[ObjectId],
    changed: &BTreeMap<&TaskId, &Heads>,
    taken: &BTreeSet<ObjectId>,
) -> Result<ObjectId, Error> {
    let tree = match before {
        [] => None,
        [first, ..] => Some(repo.read_commit(*first)?.tree),
    };
    let mut parents = before.to_vec();
    parents.extend(taken);
    Ok(repo.write_commit(&CommitDraft {
        tree: listing::with(repo, tree, changed)?,
        parents,
        author_name: join::AUTHOR.into(),
        author_email: join::EMAIL.into(),
        time_seconds: 0,
        message: MESSAGE.into(),
    })?)
}
