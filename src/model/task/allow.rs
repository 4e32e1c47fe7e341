//! What may be done with a task, to somebody who sees it as it is.

use super::rules::{check_criteria, check_priority, check_title};
use super::{Author, Flow, Refusal, State, Task};
use crate::model::event::Change;

impl Task {
    /// Whether an author who has seen exactly this state may make the change. That they have the
    /// right to it at all is asked elsewhere.
    pub(super) fn allows(&self, change: &Change, author: Author<'_>) -> Result<(), Refusal> {
        match change {
            Change::Create { .. } => Err(Refusal::Creation),
            Change::Edit { .. } => self.allows_edit(change),
            Change::Enqueue => self.allows_enqueue(),
            Change::Claim { .. } => self.in_state(
                &[State::Queued, State::Assigned, State::Working],
                "be claimed",
            ),
            Change::Renew { lease } | Change::Release { lease } => self.holds_lease(lease, author),
            Change::Stage { .. } => self.is_holder(author, "begin a stage"),
            Change::Consume { approvals, .. } => {
                self.is_holder(author, "use an approval")?;
                if approvals.is_empty() {
                    return Err(Refusal::Value("an implementation needs an approval".into()));
                }
                Ok(())
            }
            Change::ApprovePatch { .. } => self.is_open("have a patch approved"),
            Change::Deliver {
                grade, manifest, ..
            } => {
                self.is_holder(author, "be delivered")?;
                if self.flow == Flow::TestFirst && (grade.is_none() || manifest.is_none()) {
                    return Err(Refusal::Value(
                        "a test-first task is delivered with its grade and manifest".into(),
                    ));
                }
                Ok(())
            }
            Change::Fail { .. } | Change::Reject { .. } => self.is_holder(author, "end"),
            Change::Cancel { .. } => self.is_open("be cancelled"),
            Change::Retry { .. } => self.in_state(&[State::Failed, State::Rejected], "be retried"),
            Change::Adjudicate { stands, falls, .. } => {
                if falls.is_empty() || falls.contains(stands) {
                    return Err(Refusal::Value(
                        "an adjudication names others than the one that stands, which fall".into(),
                    ));
                }
                Ok(())
            }
            Change::Comment { .. } => Ok(()),
            Change::Publish { .. } => self.in_state(&[State::Done], "have its tests published"),
            Change::Delete => self.in_state(&[State::Draft], "be deleted"),
        }
    }

    pub(super) fn refuse(&self, what: &'static str) -> Refusal {
        Refusal::State {
            state: self.state,
            what,
            moved: self.moved.clone(),
        }
    }

    pub(super) fn in_state(&self, states: &[State], what: &'static str) -> Result<(), Refusal> {
        if states.contains(&self.state) {
            Ok(())
        } else {
            Err(self.refuse(what))
        }
    }

    pub(super) fn is_open(&self, what: &'static str) -> Result<(), Refusal> {
        if self.state.is_terminal() {
            Err(self.refuse(what))
        } else {
            Ok(())
        }
    }

    pub(super) fn holds_lease(&self, lease: &str, author: Author<'_>) -> Result<(), Refusal> {
        match &self.claim {
            Some(claim) if claim.lease == lease && claim.key == *author.key => Ok(()),
            _ => Err(Refusal::Lease(self.moved.clone())),
        }
    }

    /// Only the holder of the claim moves a task that is worked on.
    fn is_holder(&self, author: Author<'_>, what: &'static str) -> Result<(), Refusal> {
        self.in_state(&[State::Assigned, State::Working], what)?;
        match &self.claim {
            Some(claim) if claim.key == *author.key => Ok(()),
            Some(claim) => Err(Refusal::Held(claim.worker.clone(), claim.event)),
            None => Err(Refusal::Lease(self.moved.clone())),
        }
    }

    fn allows_enqueue(&self) -> Result<(), Refusal> {
        self.in_state(&[State::Draft], "be enqueued")?;
        if self.flow == Flow::TestFirst && self.criteria.is_empty() {
            return Err(Refusal::NoCriterion);
        }
        Ok(())
    }

    fn allows_edit(&self, change: &Change) -> Result<(), Refusal> {
        let Change::Edit {
            title,
            mandate,
            criteria,
            priority,
            tags,
            base,
        } = change
        else {
            return Err(Refusal::Creation);
        };
        let ended = self.state.is_terminal();
        let begun = !matches!(self.state, State::Draft | State::Queued);
        let text_locked = !self.text_is_open();
        self.check_unlocked("priority", priority.is_some(), ended)?;
        self.check_unlocked("tags", tags.is_some(), begun)?;
        self.check_unlocked("title", title.is_some(), text_locked)?;
        self.check_unlocked("mandate", mandate.is_some(), text_locked)?;
        self.check_unlocked("criteria", criteria.is_some(), text_locked)?;
        self.check_unlocked("base", base.is_some(), self.state != State::Draft)?;
        title.as_deref().map_or(Ok(()), check_title)?;
        criteria.as_deref().map_or(Ok(()), check_criteria)?;
        priority.map_or(Ok(()), check_priority)
    }

    /// Text can be edited in a draft, and in a test-first task that nobody holds before its tests
    /// were used: then the sealed version becomes stale.
    fn text_is_open(&self) -> bool {
        match self.state {
            State::Draft => true,
            State::Working => {
                self.flow == Flow::TestFirst && self.claim.is_none() && self.consumed.is_none()
            }
            State::Queued
            | State::Assigned
            | State::Done
            | State::Failed
            | State::Rejected
            | State::Deleted => false,
        }
    }

    fn check_unlocked(
        &self,
        field: &'static str,
        changed: bool,
        locked: bool,
    ) -> Result<(), Refusal> {
        if changed && locked {
            Err(Refusal::Locked {
                field,
                state: self.state,
            })
        } else {
            Ok(())
        }
    }
}
