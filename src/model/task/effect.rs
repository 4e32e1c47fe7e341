//! What a change does to a task at its place in the order, when it is allowed to its author and
//! nothing made at the same time outweighs it.
//!
//! The task may hold more here than the author had seen. What depends on what they had seen was read
//! off before, as a [`Step`].

use super::merge::{Beside, SetStep};
use super::rules::MAX_CRITERIA;
use super::{Author, Claim, Comment, Delivery, Fallen, Moved, Refusal, State, Task};
use crate::model::digest::Digest;
use crate::model::event::{Change, Criterion};

/// What a change means to an author who had seen one state of the task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Step {
    /// Values that an edit replaces, by their events.
    title: Vec<Digest>,
    mandate: Vec<Digest>,
    priority: Vec<Digest>,
    base: Vec<Digest>,
    criteria: Option<SetStep<Criterion>>,
    tags: Option<SetStep<String>>,
    fallen: Option<SetStep<Fallen>>,
}

impl Task {
    /// Reads off what the change means to an author who sees this state.
    pub(super) fn step(&self, change: &Change) -> Step {
        match change {
            Change::Edit { criteria, tags, .. } => Step {
                title: self.written.title.events(),
                mandate: self.written.mandate.events(),
                priority: self.written.priority.events(),
                base: self.written.base.events(),
                criteria: criteria.as_ref().map(|new| self.written.criteria.step(new)),
                tags: tags.as_ref().map(|new| self.written.tags.step(new)),
                ..Step::default()
            },
            // Who enqueues stands by the criteria: nobody who has not seen it takes one out.
            Change::Enqueue => Step {
                criteria: Some(self.written.criteria.confirmation()),
                ..Step::default()
            },
            // Of opposite words that had not seen each other neither takes the other back; who has seen
            // both decides. A word about other documents takes back nothing.
            Change::Adjudicate { stands, falls, .. } => {
                let pair = |one: Digest, by: Digest| Fallen { one, by };
                let new: Vec<_> = falls.iter().map(|falls| pair(*falls, *stands)).collect();
                let back: Vec<_> = falls.iter().map(|falls| pair(*stands, *falls)).collect();
                Step {
                    fallen: Some(self.written.fallen.swap(&new, &back)),
                    ..Step::default()
                }
            }
            _ => Step::default(),
        }
    }

    /// Does it. Gives the values set at the same time that gave way.
    pub(super) fn enact(
        &mut self,
        change: &Change,
        author: Author<'_>,
        step: &Step,
    ) -> Result<Vec<Beside>, Refusal> {
        let beside = self.effect(change, author, step)?;
        if change.moves() {
            self.moved = Some(Moved {
                what: change.noun(),
                by: author.principal.clone(),
                event: author.event,
            });
        }
        Ok(beside)
    }

    fn effect(
        &mut self,
        change: &Change,
        author: Author<'_>,
        step: &Step,
    ) -> Result<Vec<Beside>, Refusal> {
        match change {
            Change::Create { .. } => return Err(Refusal::Creation),
            Change::Edit { .. } => return self.edit(change, author, step),
            Change::Enqueue => self.enqueue(author, step)?,
            Change::Claim { lease } => self.take(lease, author)?,
            Change::Renew { lease } => {
                self.holds_lease(lease, author)?;
                if let Some(claim) = &mut self.claim {
                    claim.event = author.event;
                }
            }
            Change::Release { lease } => {
                self.holds_lease(lease, author)?;
                self.claim = None;
            }
            Change::Stage { stage, .. } => {
                self.in_state(&[State::Assigned, State::Working], "begin a stage")?;
                self.state = State::Working;
                self.last_stage = Some(*stage);
            }
            Change::Consume {
                manifest,
                approvals,
            } => {
                if !self.set_aside.contains(manifest) {
                    self.consumed = Some((*manifest, approvals.clone()));
                }
            }
            Change::ApprovePatch { patch } => drop(self.approved_patches.insert(*patch)),
            Change::Deliver { .. } => self.deliver(change)?,
            Change::Fail { summary } => self.end(State::Failed, "end", summary.clone())?,
            Change::Reject { summary } => self.end(State::Rejected, "end", summary.clone())?,
            Change::Cancel { reason } => {
                let summary = match reason.as_str() {
                    "" => "cancelled".into(),
                    reason => format!("cancelled: {reason}"),
                };
                self.end(State::Failed, "be cancelled", summary)?;
            }
            Change::Retry { set_aside, .. } => self.retry(set_aside, author),
            Change::Comment { text } => self.comment(text, author),
            Change::Adjudicate { .. } => {
                if let Some(set) = &step.fallen {
                    self.written.fallen.take(set, author.event);
                    self.show_aside();
                }
            }
            Change::Publish { manifest, commit } => self.published = Some((*manifest, *commit)),
            Change::Delete => self.end(State::Deleted, "be deleted", String::new())?,
        }
        Ok(Vec::new())
    }

    fn edit(
        &mut self,
        change: &Change,
        author: Author<'_>,
        step: &Step,
    ) -> Result<Vec<Beside>, Refusal> {
        let Change::Edit {
            title,
            mandate,
            priority,
            base,
            ..
        } = change
        else {
            return Err(Refusal::Creation);
        };
        if let Some(set) = &step.criteria {
            let mut criteria = self.written.criteria.clone();
            criteria.take(set, author.event);
            if criteria.len() > MAX_CRITERIA {
                let why = format!(
                    "with those added at the same time it has over {MAX_CRITERIA} criteria"
                );
                return Err(Refusal::Value(why));
            }
            self.written.criteria = criteria;
            self.show_criteria();
        }
        if let Some(set) = &step.tags {
            self.written.tags.take(set, author.event);
            self.tags = self.written.tags.list();
        }
        let mut beside = Vec::new();
        let written = &mut self.written;
        if let Some(new) = title {
            beside.extend(written.title.set("title", new, author, &step.title));
            self.title.clone_from(new);
        }
        if let Some(new) = mandate {
            beside.extend(written.mandate.set("mandate", new, author, &step.mandate));
            self.mandate.clone_from(new);
        }
        if let Some(new) = priority {
            beside.extend(
                written
                    .priority
                    .set("priority", new, author, &step.priority),
            );
            self.priority = *new;
        }
        if let Some(new) = base {
            beside.extend(written.base.set("base", new, author, &step.base));
            self.base = *new;
        }
        Ok(beside)
    }

    fn enqueue(&mut self, author: Author<'_>, step: &Step) -> Result<(), Refusal> {
        if let Some(confirmed) = &step.criteria {
            self.written.criteria.take(confirmed, author.event);
            self.show_criteria();
        }
        self.in_state(&[State::Draft], "be enqueued")?;
        self.state = State::Queued;
        Ok(())
    }

    fn take(&mut self, lease: &str, author: Author<'_>) -> Result<(), Refusal> {
        let states = [State::Queued, State::Assigned, State::Working];
        self.in_state(&states, "be claimed")?;
        if self.state == State::Queued {
            self.state = State::Assigned;
        }
        self.claim = Some(Claim {
            worker: author.principal.clone(),
            key: author.key.clone(),
            lease: lease.to_owned(),
            event: author.event,
        });
        Ok(())
    }

    fn deliver(&mut self, change: &Change) -> Result<(), Refusal> {
        let Change::Deliver {
            branch,
            commit,
            run,
            grade,
            manifest,
        } = change
        else {
            return Err(Refusal::Creation);
        };
        if self.state == State::Done {
            return Err(self.refuse("be delivered"));
        }
        self.state = State::Done;
        self.claim = None;
        self.summary.clear();
        self.delivery = Some(Delivery {
            branch: branch.clone(),
            commit: *commit,
            run: *run,
            grade: *grade,
            manifest: *manifest,
        });
        Ok(())
    }

    /// Ends the task. Who ended it held it, or had the right to; that somebody else claimed it at
    /// the same time is outweighed.
    fn end(&mut self, state: State, what: &'static str, summary: String) -> Result<(), Refusal> {
        self.is_open(what)?;
        self.state = state;
        self.claim = None;
        self.summary = summary;
        Ok(())
    }

    /// Two people may retry at the same time; what either sets aside does not count any more.
    fn retry(&mut self, set_aside: &[Digest], author: Author<'_>) {
        let summary = std::mem::take(&mut self.summary);
        if !summary.is_empty() {
            self.comment(&summary, author);
        }
        self.comment(&format!("Task retried by {}", author.principal), author);
        self.written.retried.extend(set_aside);
        self.show_aside();
        let consumed = self.consumed.as_ref();
        if consumed.is_some_and(|(manifest, _)| self.set_aside.contains(manifest)) {
            self.consumed = None;
        }
        if matches!(self.state, State::Failed | State::Rejected) {
            self.state = State::Queued;
            self.last_stage = None;
        }
    }

    fn comment(&mut self, text: &str, author: Author<'_>) {
        self.comments.push(Comment {
            by: author.principal.clone(),
            at: author.at.to_owned(),
            text: text.to_owned(),
        });
    }
}
