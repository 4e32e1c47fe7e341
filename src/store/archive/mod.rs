//! The archive: refs of finished tasks folded together, so that the live refs stay few.
//!
//! `refs/hangar/archive/A` holds the tasks whose id begins with `A`. Its tree lists where each of
//! their refs was, and its history reaches those commits. A ref that is gone and that an archive
//! reaches is archived, not lost: whatever reads a ref reads it from there, and a new document on top
//! brings the ref back. An archive is unsigned and decides nothing, so a task counts as archived only
//! while its own events say that it has ended.
//!
//! Cost: reading an archived task costs three small objects more than a live one. Refs that no one
//! touches cost nothing, however many tasks they hold.

mod commit;
pub mod due;
mod listing;

pub use listing::Heads;
pub(super) use listing::{events, lists};

use super::layout::{Layout, OfTask, RefKind};
use super::{Error, Store, high_water};
use crate::git::{self, Expected, RefChange, Repository};
use crate::model::ids::TaskId;
use crate::model::object_id::ObjectId;
use std::collections::BTreeMap;

/// Refs that are deleted together.
const BATCH: usize = 500;

/// How often a lost race for an archive is tried again.
const TRIES: u32 = 30;

impl Store {
    /// Where a ref of ours is: its own place, else what the archive has of it.
    pub fn head(&self, name: &str) -> Result<Option<ObjectId>, Error> {
        match self.repo.read_ref(name)? {
            Some(head) => Ok(Some(head)),
            None => self.archived_head(name),
        }
    }

    /// What the archive has of a ref.
    pub fn archived_head(&self, name: &str) -> Result<Option<ObjectId>, Error> {
        let (Some(task), Some(own)) = (self.layout.owner(name), self.layout.own(name)) else {
            return Ok(None);
        };
        Ok(self.archived(&task)?.get(own).copied())
    }

    /// What the archive has of a task, by names without the prefix.
    pub fn archived(&self, id: &TaskId) -> Result<Heads, Error> {
        let name = self.layout.archive(id);
        match self.repo.read_ref(&name)? {
            Some(head) => listing::read(&self.repo, head, id).map_err(|error| error.at(&name)),
            None => Ok(Heads::new()),
        }
    }

    /// Tasks that are in the archive and not live, of those whose id begins with `prefix`.
    pub fn archived_tasks(&self, prefix: &str) -> Result<Vec<(TaskId, ObjectId)>, Error> {
        let mut found = Vec::new();
        for (name, head) in self.repo.list_refs(&self.layout.archives())? {
            let letter = name
                .strip_prefix(&self.layout.archives())
                .unwrap_or_default();
            if !prefix.is_empty() && !prefix.starts_with(letter) {
                continue;
            }
            found.extend(self.tasks_of_archive(&name, head, prefix)?);
        }
        Ok(found)
    }

    /// The same of the archive `name`, which is at `head`.
    pub fn tasks_of_archive(
        &self,
        name: &str,
        head: ObjectId,
        prefix: &str,
    ) -> Result<Vec<(TaskId, ObjectId)>, Error> {
        let read = || {
            let mut found = Vec::new();
            let tree = self.repo.read_commit(head)?.tree;
            for (id, file) in listing::tasks(&self.repo, tree, prefix)? {
                if self.repo.read_ref(&self.layout.task(&id))?.is_some() {
                    continue;
                }
                let heads = listing::file(&self.repo, file, &id)?;
                found.extend(heads.get(&events(&id)).map(|tip| (id, *tip)));
            }
            Ok(found)
        };
        read().map_err(|error: Error| error.at(name))
    }

    /// The tree of the archive at `head`, and the tasks that it has and had not, or elsewhere, when its
    /// tree was `before`, each with the head of its events.
    pub(super) fn archive_since(
        &self,
        head: ObjectId,
        before: Option<ObjectId>,
    ) -> Result<(ObjectId, Vec<(TaskId, ObjectId)>), Error> {
        let tree = self.repo.read_commit(head)?.tree;
        if before == Some(tree) {
            return Ok((tree, Vec::new()));
        }
        let before = before.filter(|before| self.repo.has_object(*before));
        let mut found = Vec::new();
        for (id, file) in listing::newer(&self.repo, before, tree)? {
            let heads = listing::file(&self.repo, file, &id)?;
            found.extend(heads.get(&format!("tasks/{id}")).map(|tip| (id, *tip)));
        }
        Ok((tree, found))
    }

    /// Moves every ref of these tasks to the archive. One that somebody writes to meanwhile stays.
    /// Ended or not is not asked here.
    pub fn archive(&self, tasks: &[TaskId]) -> Result<(), Error> {
        let mut by_archive: BTreeMap<String, BTreeMap<TaskId, Heads>> = BTreeMap::new();
        let approvals = self.approvals()?;
        for id in tasks {
            let heads = self.live_heads(id, &approvals)?;
            // What rests on a task is found through it.
            let mut known = self.archived(id)?;
            known.extend(heads);
            if known.contains_key(&events(id)) {
                let of = by_archive.entry(self.layout.archive(id)).or_default();
                of.insert(id.clone(), known);
            }
        }
        for (name, tasks) in &by_archive {
            self.grow_archive(name, tasks)?;
        }
        self.drop_archived(by_archive.values().flat_map(BTreeMap::keys))
    }

    /// Brings what rests on a task back from the archive, for a new event that brings the task back.
    pub(super) fn take_out(&self, id: &TaskId) -> Result<(), Error> {
        for (own, head) in self.archived(id)? {
            let name = format!("{}{own}", self.layout.prefix());
            // A name of no form means nothing, and the task itself comes with its new event.
            if matches!(self.layout.kind_of(&name), Some(RefKind::OfTask(_))) {
                // Else somebody has it back already.
                self.move_if_still(&name, Expected::Absent, Some(head))?;
            }
        }
        Ok(())
    }

    /// Deletes the refs of these tasks that their archive reaches. One that somebody writes to lives.
    pub(super) fn drop_archived<'a>(
        &self,
        tasks: impl IntoIterator<Item = &'a TaskId>,
    ) -> Result<(), Error> {
        let approvals = self.approvals()?;
        let mut gone = Vec::new();
        for id in tasks {
            let archived = self.archived(id)?;
            for (own, head) in self.live_heads(id, &approvals)? {
                if let Some(kept) = archived.get(&own)
                    && self.repo.is_ancestor(head, *kept)?
                {
                    gone.push(RefChange {
                        name: format!("{}{own}", self.layout.prefix()),
                        expected: Expected::At(head),
                        new: None,
                    });
                }
            }
        }
        for batch in gone.chunks(BATCH) {
            match self.repo.change_refs(batch, "archive") {
                Ok(()) => {}
                Err(git::Error::Conflict { .. } | git::Error::Busy { .. }) => {
                    self.drop_each(batch)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The same one by one, since one of them is written to.
    fn drop_each(&self, gone: &[RefChange]) -> Result<(), Error> {
        gone.iter()
            .try_for_each(|one| self.move_if_still(&one.name, one.expected, None))
    }

    /// Moves a ref, unless it is elsewhere by now.
    fn move_if_still(
        &self,
        name: &str,
        expected: Expected,
        new: Option<ObjectId>,
    ) -> Result<(), Error> {
        match self.repo.update_ref(name, expected, new, "archive") {
            Ok(()) | Err(git::Error::Conflict { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// All live decisions.
    fn approvals(&self) -> Result<Heads, Error> {
        let all = self
            .repo
            .list_refs(&self.layout.folder(OfTask::Approvals))?;
        Ok(all.into_iter().collect())
    }

    /// The live refs of a task, by names without the prefix. `approvals` are all of that folder.
    fn live_heads(&self, id: &TaskId, approvals: &Heads) -> Result<Heads, Error> {
        let layout = &self.layout;
        let prefix = layout.approvals_of(id);
        let of_task = approvals.range(prefix.clone()..);
        let of_task = of_task.take_while(|(name, _)| name.starts_with(&prefix));
        let mut names = vec![
            layout.task(id),
            layout.sealed(id),
            layout.runs(id),
            layout.grades(id),
        ];
        names.extend(of_task.map(|(name, _)| name.clone()));
        let mut heads = Heads::new();
        for name in names {
            if let (Some(head), Some(own)) = (self.repo.read_ref(&name)?, layout.own(&name)) {
                heads.insert(own.to_owned(), head);
            }
        }
        Ok(heads)
    }

    fn grow_archive(&self, name: &str, tasks: &BTreeMap<TaskId, Heads>) -> Result<(), Error> {
        for _ in 0..TRIES {
            let old = self.repo.read_ref(name)?;
            let new = commit::grow(&self.repo, old, tasks)?;
            if new == old {
                return Ok(());
            }
            match self
                .repo
                .update_ref(name, Expected::from(old), new, "archive")
            {
                Ok(()) => {
                    if let Some(new) = new {
                        high_water::note(&self.repo, name, new);
                    }
                    return Ok(());
                }
                Err(git::Error::Conflict { .. } | git::Error::Busy { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::LostRace(name.to_owned()))
    }
}

/// An archive that a remote shows, looked at: where ours goes, and the tasks that are new to us.
pub(super) fn take(
    repo: &Repository,
    here: Option<ObjectId>,
    there: ObjectId,
) -> Result<(ObjectId, BTreeMap<TaskId, Heads>), Error> {
    let offered = commit::offered(repo, here, there)?;
    let target = match here {
        None => there,
        Some(here) if repo.is_ancestor(there, here)? => here,
        // One that follows ours and holds less was not made by an honest clone: ours is put back.
        Some(here) if repo.is_ancestor(here, there)? && commit::holds_all(repo, here, there)? => {
            there
        }
        Some(here) => commit::union(repo, here, there)?,
    };
    Ok((target, offered))
}

/// The tasks that are new in an archive that follows another. An error where it lost something.
pub(super) fn grown(
    repo: &Repository,
    old: Option<ObjectId>,
    new: ObjectId,
) -> Result<BTreeMap<TaskId, Heads>, Error> {
    let offered = commit::offered(repo, old, new)?;
    if offered.is_empty() {
        return Err(Error::Document {
            place: "the archive".into(),
            reason: "nothing came to it".into(),
        });
    }
    if let Some(old) = old
        && !commit::holds_all(repo, old, new)?
    {
        return Err(Error::Document {
            place: "the archive".into(),
            reason: "it lost something that the one before holds".into(),
        });
    }
    Ok(offered)
}

/// Whether an archive here holds all of a ref that is at `at`.
pub fn holds(repo: &Repository, layout: &Layout, name: &str, at: ObjectId) -> bool {
    let kept = || -> Option<ObjectId> {
        let (task, own) = (layout.owner(name)?, layout.own(name)?);
        let archive = repo.read_ref(&layout.archive(&task)).ok()??;
        head_in(repo, archive, &task, own).ok()?
    };
    kept().is_some_and(|kept| repo.is_ancestor(at, kept).unwrap_or(false))
}

/// What an archive has of one ref, given without its prefix.
pub(super) fn head_in(
    repo: &Repository,
    archive: ObjectId,
    id: &TaskId,
    own: &str,
) -> Result<Option<ObjectId>, Error> {
    Ok(listing::read(repo, archive, id)?.get(own).copied())
}
