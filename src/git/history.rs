//! Questions about the graph of commits.

use super::error::{Error, store};
use super::repository::{Repository, from_gix, to_gix};
use crate::model::object_id::ObjectId;
use std::collections::{BTreeSet, VecDeque};
use std::num::NonZeroU32;

impl Repository {
    /// The best common ancestor of two commits; `None` when they share no history. In a shallow
    /// clone, where that cannot be known, an error.
    pub fn merge_base(&self, one: ObjectId, two: ObjectId) -> Result<Option<ObjectId>, Error> {
        let bases = self.merge_bases(one, two)?;
        match bases.first() {
            Some(base) => Ok(Some(*base)),
            None if self.is_shallow() => Err(Error::Shallow),
            None => Ok(None),
        }
    }

    /// Whether `old` is `new` or one of its ancestors. An error only where the history of `new` was cut
    /// off in this clone before that could be seen.
    pub fn is_ancestor(&self, old: ObjectId, new: ObjectId) -> Result<bool, Error> {
        if old == new {
            return Ok(true);
        }
        if self.merge_bases(old, new)?.contains(&old) {
            return Ok(true);
        }
        if self.is_cut(new)? {
            return Err(Error::Shallow);
        }
        Ok(false)
    }

    /// Whether the history of this commit was cut off in this clone. That of code may be, and that of
    /// hangar's refs whole.
    pub fn is_cut(&self, tip: ObjectId) -> Result<bool, Error> {
        Ok(!self.shallow_ends(tip, None)?.is_empty())
    }

    /// Whether history was cut off below this commit in this clone.
    pub fn ends_at(&self, commit: ObjectId) -> bool {
        let cut = self.inner.shallow_commits().ok().flatten();
        cut.is_some_and(|cut| cut.iter().any(|end| from_gix(end) == commit))
    }

    /// Commits reachable from `tip` and not from `base`, newest first, at most `limit`.
    pub fn commits_since(
        &self,
        base: ObjectId,
        tip: ObjectId,
        limit: usize,
    ) -> Result<Vec<ObjectId>, Error> {
        let walk = self
            .inner
            .rev_walk([to_gix(tip)])
            .with_hidden([to_gix(base)])
            .all()
            .map_err(store("walk history"))?;
        let mut out = Vec::new();
        for commit in walk {
            let commit = commit.map_err(store("walk history"))?;
            if out.len() == limit {
                return Err(Error::TooLarge {
                    what: "the history to look at".into(),
                    limit: format!("{limit} commits"),
                });
            }
            out.push(from_gix(commit.id));
        }
        Ok(out)
    }

    fn merge_bases(&self, one: ObjectId, two: ObjectId) -> Result<Vec<ObjectId>, Error> {
        for id in [one, two] {
            self.read_commit(id)?;
        }
        let bases = self
            .inner
            .merge_bases_many(to_gix(one), &[to_gix(two)])
            .map_err(store("find a common ancestor"))?;
        Ok(bases.into_iter().map(from_gix).collect())
    }

    /// Where a history of `depth` commits from `base` ends: the commits whose parents are left out.
    /// Where this clone itself is shallow, its own ends are among them.
    pub(super) fn shallow_ends(
        &self,
        base: ObjectId,
        depth: Option<NonZeroU32>,
    ) -> Result<Vec<ObjectId>, Error> {
        if depth.is_none() && !self.is_shallow() {
            return Ok(Vec::new());
        }
        let cut: BTreeSet<ObjectId> = self
            .inner
            .shallow_commits()
            .map_err(store("read where history ends"))?
            .map(|ends| ends.iter().map(from_gix).collect())
            .unwrap_or_default();
        let depth = depth.map_or(u32::MAX, NonZeroU32::get);
        let mut ends = Vec::new();
        let mut seen = BTreeSet::from([base]);
        let mut todo = VecDeque::from([(base, 1)]);
        while let Some((id, at)) = todo.pop_front() {
            let parents = self.read_commit(id)?.parents;
            if cut.contains(&id) || (at >= depth && !parents.is_empty()) {
                ends.push(id);
                continue;
            }
            for parent in parents {
                if seen.insert(parent) {
                    todo.push_back((parent, at + 1));
                }
            }
        }
        Ok(ends)
    }
}
