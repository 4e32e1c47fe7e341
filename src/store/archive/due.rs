//! Which tasks are to be archived: ended for as long as the policy says.

use crate::model::ids::TaskId;
use crate::model::object_id::ObjectId;
use crate::store::tasks::TaskHistory;
use crate::store::{Error, Store};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeSet;

/// Days after which an ended task is archived, where the policy names none.
pub const DEFAULT_DAYS: u32 = 30;

impl Store {
    /// Tasks that ended long enough before `now`, and archived ones that something new belongs to
    /// although they stay ended. Reads every live task.
    ///
    /// The time of an event is what its signer claims. Archived too early is found as before, so
    /// nothing hangs on it.
    pub fn due(&self, now: Timestamp) -> Result<Vec<TaskId>, Error> {
        let days = self.policy.newest().members.archive_days;
        let days = days.unwrap_or(DEFAULT_DAYS);
        if days == 0 {
            return Ok(Vec::new());
        }
        let age = SignedDuration::from_hours(i64::from(days) * 24);
        let mut found = BTreeSet::new();
        let live = self.task_refs()?;
        let is_due = |store: &Self, (id, tip): &(TaskId, ObjectId)| {
            // One that can't be read is named by others; it stays.
            let due = store.task_at(id, *tip).is_ok_and(|history| {
                let old = last(&history).is_none_or(|at| now.duration_since(at) >= age);
                history.task.state.is_terminal() && old
            });
            Ok::<_, Error>(due.then(|| id.clone()))
        };
        let all = self.map_all(&live, is_due, &mut |_| {})?;
        found.extend(all.into_iter().flatten());
        let live: BTreeSet<_> = live.into_iter().map(|(id, _)| id).collect();
        for (name, _) in self.repo.list_refs(self.layout.prefix())? {
            if let Some(id) = self.layout.owner(&name).filter(|id| !live.contains(id))
                && self
                    .task(&id)
                    .is_ok_and(|history| history.task.state.is_terminal())
            {
                found.insert(id);
            }
        }
        Ok(found.into_iter().collect())
    }
}

/// When its last event says that it was made.
fn last(history: &TaskHistory) -> Option<Timestamp> {
    let times = history.records.iter();
    let times = times.filter_map(|record| record.event.value().signer.at.parse().ok());
    times.max()
}
