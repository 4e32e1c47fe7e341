//! Archives in a push: they only grow, by tasks that have ended and whose documents count; and what one
//! holds may go.

use super::{Growth, Judge, Judged, NEVER, Update, known_commits, said};
use crate::model::ids::TaskId;
use crate::model::object_id::ObjectId;
use crate::store::archive;
use crate::store::growth::{self, MAX_TAKEN};

impl Judge {
    /// An archive that a push moves forward. Every history that is new in it is judged as if its own
    /// ref had been pushed.
    pub(super) fn archive(&mut self, one: &Growth<'_>) -> Judged<()> {
        let offered = archive::grown(&self.store.repo, one.old, one.new).map_err(said)?;
        for (task, heads) in offered {
            for (own, head) in &heads {
                let name = format!("{}{own}", self.store.layout.prefix());
                let known = self.known(one, &name, own)?;
                if known == Some(*head) {
                    continue;
                }
                let Some(kind) = self.store.layout.kind_of(&name) else {
                    continue;
                };
                let before = known_commits(&self.store.repo, known)?;
                let adds = growth::check_honest(&self.store.repo, *head, &before, MAX_TAKEN);
                let adds = adds.map_err(said)?;
                let growth = Growth {
                    name: &name,
                    kind,
                    old: known,
                    new: *head,
                    adds,
                };
                self.content(&growth)?;
            }
            let tip = heads.get(&archive::events(&task)).copied();
            if !tip.is_some_and(|tip| self.has_ended(&task, tip)) {
                return Err(format!("task {} has not ended", task.short()));
            }
        }
        Ok(())
    }

    /// Where the server has the history that an archive takes up: live, or in the archive before.
    fn known(&self, one: &Growth<'_>, name: &str, own: &str) -> Judged<Option<ObjectId>> {
        let repo = &self.store.repo;
        let live = repo.read_ref(name).map_err(said)?;
        let task = self.store.layout.owner(name);
        let (None, Some(old), Some(task)) = (live, one.old, task) else {
            return Ok(live);
        };
        archive::head_in(repo, old, &task, own).map_err(said)
    }

    fn has_ended(&self, task: &TaskId, tip: ObjectId) -> bool {
        let history = self.store.task_at(task, tip);
        history.is_ok_and(|history| history.task.state.is_terminal())
    }

    /// A ref goes only when an archive that is here, or comes with this push, holds all of it.
    pub(super) fn deletion(&self, one: &Update) -> Judged<()> {
        let (repo, layout) = (&self.store.repo, &self.store.layout);
        let (Some(task), Some(own)) = (layout.owner(&one.name), layout.own(&one.name)) else {
            return Err(NEVER.into());
        };
        let Some(here) = repo.read_ref(&one.name).map_err(said)? else {
            return Ok(());
        };
        let name = layout.archive(&task);
        let archive = match self.tips.get(&name) {
            Some(tip) => Some(*tip),
            None => repo.read_ref(&name).map_err(said)?,
        };
        let Some(archive) = archive else {
            return Err(NEVER.into());
        };
        let head = |own: &str| archive::head_in(repo, archive, &task, own).map_err(said);
        let kept = head(own)?;
        let held = match kept {
            Some(kept) => repo.is_ancestor(here, kept).map_err(said)?,
            None => false,
        };
        let events = head(&archive::events(&task))?;
        if held && events.is_some_and(|tip| self.has_ended(&task, tip)) {
            Ok(())
        } else {
            Err(NEVER.into())
        }
    }
}
