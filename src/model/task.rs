//! The task and its one transition function.
//!
//! A task's state is the fold of its authorised events in causal order. What is decided on other
//! refs (approvals, runs, grades) is not part of it; `flow::stage` joins the two.

use crate::model::digest::Digest;
use crate::model::event::{Change, Criterion};
use crate::model::ids::{Fingerprint, Principal, TaskId};
use crate::model::object_id::ObjectId;
use crate::model::outcome::text_form;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

pub use rules::{MAX_CRITERIA, MAX_TITLE, text_digest};
use rules::{check_criteria, check_priority, check_title, overwrite};

/// How acceptance works for a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Flow {
    /// Implemented and delivered ungraded.
    Plain,
    /// Hidden tests first.
    TestFirst,
}
text_form!(Flow: Plain = "plain", TestFirst = "test-first");

/// What kind of work a task is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Change the code.
    #[default]
    Implement,
    /// Find something out.
    Investigate,
    /// Read and judge.
    Review,
    /// Write or run tests.
    Test,
    /// Drive other tasks.
    Orchestrate,
}
text_form!(Mode: Implement = "implement", Investigate = "investigate", Review = "review", Test = "test", Orchestrate = "orchestrate");

/// Where a task that is worked on stands.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// The writer turns criteria into hidden tests.
    Writing,
    /// The tests run on the untouched base.
    Checking,
    /// A version goes into the sealed store.
    Sealing,
    /// A person reads and signs.
    AwaitingApproval,
    /// The implementer writes code.
    Implementing,
    /// The approved tests run on base + patch.
    Verifying,
    /// The result goes to a branch.
    Delivering,
}
text_form!(Stage: Writing = "writing", Checking = "checking", Sealing = "sealing", AwaitingApproval = "awaiting-approval", Implementing = "implementing", Verifying = "verifying", Delivering = "delivering");

/// Where a task is in its life, as its own events tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Not yet meant to be worked on.
    Draft,
    /// Waits for a worker.
    Queued,
    /// A worker took it.
    Assigned,
    /// In one of the [`Stage`]s.
    Working,
    /// Delivered.
    Done,
    /// Ended without an accepted result, or cancelled.
    Failed,
    /// No version of its tests found consent.
    Rejected,
    /// Deleted while a draft.
    Deleted,
}
text_form!(State: Draft = "draft", Queued = "queued", Assigned = "assigned", Working = "working", Done = "done", Failed = "failed", Rejected = "rejected", Deleted = "deleted");

impl State {
    /// Whether nothing but a retry or a comment can follow.
    pub const fn is_terminal(self) -> bool {
        matches!(
            self,
            Self::Done | Self::Failed | Self::Rejected | Self::Deleted
        )
    }
}

/// Who holds a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Worker.
    pub worker: Principal,
    /// Its key.
    pub key: Fingerprint,
    /// Names the claim.
    pub lease: String,
    /// The event that made or last renewed it.
    pub event: Digest,
}

/// Where the result went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Full ref name.
    pub branch: String,
    /// The commit.
    pub commit: ObjectId,
    /// The run whose result it is.
    pub run: Digest,
    /// The grade, for a test-first task.
    pub grade: Option<Digest>,
    /// The approved manifest, for a test-first task.
    pub manifest: Option<Digest>,
}

/// A comment with its author.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// Who.
    pub by: Principal,
    /// Claimed time.
    pub at: String,
    /// Markdown.
    pub text: String,
}

/// A task as its events left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Id.
    pub id: TaskId,
    /// One line.
    pub title: String,
    /// Markdown.
    pub mandate: String,
    /// Acceptance criteria.
    pub criteria: Vec<Criterion>,
    /// Plain or test-first.
    pub flow: Flow,
    /// Kind of work.
    pub mode: Mode,
    /// 1 to 9.
    pub priority: u8,
    /// Where the work starts.
    pub base: ObjectId,
    /// The branch that the base was taken from; may be empty.
    pub base_branch: String,
    /// External key; may be empty.
    pub external: String,
    /// Capabilities a worker must have.
    pub tags: Vec<String>,
    /// Who asked.
    pub requester: Principal,
    /// Claimed time of creation.
    pub created: String,
    /// Where it is in its life.
    pub state: State,
    /// The stage last begun; shown only.
    pub last_stage: Option<Stage>,
    /// Who holds it.
    pub claim: Option<Claim>,
    /// Manifest and approvals used up by the implementation.
    pub consumed: Option<(Digest, Vec<Digest>)>,
    /// Patch ids that an approver allowed to change CI, hooks, Git's or hangar's configuration.
    pub approved_patches: BTreeSet<Digest>,
    /// Documents that no longer count.
    pub set_aside: BTreeSet<Digest>,
    /// Where the result went.
    pub delivery: Option<Delivery>,
    /// Published tests: manifest and commit.
    pub published: Option<(Digest, ObjectId)>,
    /// Why it failed, was rejected or cancelled; empty otherwise.
    pub summary: String,
    /// Comments, oldest first.
    pub comments: Vec<Comment>,
}

/// Who signed the event that a change stands in.
#[derive(Debug, Clone, Copy)]
pub struct Author<'a> {
    /// Principal.
    pub principal: &'a Principal,
    /// Key.
    pub key: &'a Fingerprint,
    /// Claimed time.
    pub at: &'a str,
    /// Digest of the event.
    pub event: Digest,
}

/// Why a change has no effect. It stays in the history.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The task is in a state in which this can't be done.
    #[error("a task that is {state} can't {what}")]
    State {
        /// State of the task.
        state: State,
        /// What was tried, as a verb phrase.
        what: &'static str,
    },
    /// Another worker holds it.
    #[error("the task is held by {0}")]
    Held(Principal),
    /// The lease is not the one in force.
    #[error("the claim is not the one in force")]
    Lease,
    /// A field is locked now.
    #[error("{field} can't be changed while the task is {state}")]
    Locked {
        /// Field.
        field: &'static str,
        /// State of the task.
        state: State,
    },
    /// A value breaks a rule of the format.
    #[error("{0}")]
    Value(String),
    /// A creation event that is not first, or a first event that creates nothing.
    #[error("creation must be the first event and only there")]
    Creation,
}

impl Task {
    /// The task that a creation event makes.
    pub fn create(id: TaskId, change: &Change, author: Author<'_>) -> Result<Self, Refusal> {
        let Change::Create {
            title,
            mandate,
            criteria,
            flow,
            mode,
            priority,
            base,
            base_branch,
            external,
            tags,
            requester,
        } = change
        else {
            return Err(Refusal::Creation);
        };
        check_title(title)?;
        check_criteria(criteria)?;
        check_priority(*priority)?;
        Ok(Self {
            id,
            title: title.clone(),
            mandate: mandate.clone(),
            criteria: criteria.clone(),
            flow: *flow,
            mode: *mode,
            priority: *priority,
            base: *base,
            base_branch: base_branch.clone(),
            external: external.clone(),
            tags: tags.clone(),
            requester: requester.clone(),
            created: author.at.to_owned(),
            state: State::Draft,
            last_stage: None,
            claim: None,
            consumed: None,
            approved_patches: BTreeSet::new(),
            set_aside: BTreeSet::new(),
            delivery: None,
            published: None,
            summary: String::new(),
            comments: Vec::new(),
        })
    }

    /// Applies one authorised change. On a refusal the task is as before.
    pub fn apply(&mut self, change: &Change, author: Author<'_>) -> Result<(), Refusal> {
        match change {
            Change::Create { .. } => Err(Refusal::Creation),
            Change::Edit { .. } => self.edit(change),
            Change::Enqueue => self.enqueue(),
            Change::Claim { lease } => self.take(lease, author),
            Change::Renew { lease } => self.renew(lease, author),
            Change::Release { lease } => self.release(lease, author),
            Change::Stage { stage, .. } => self.begin(*stage, author),
            Change::Consume {
                manifest,
                approvals,
            } => self.consume(*manifest, approvals, author),
            Change::ApprovePatch { patch } => self.approve_patch(*patch),
            Change::Deliver {
                branch,
                commit,
                run,
                grade,
                manifest,
            } => {
                let delivery = Delivery {
                    branch: branch.clone(),
                    commit: *commit,
                    run: *run,
                    grade: *grade,
                    manifest: *manifest,
                };
                self.deliver(delivery, author)
            }
            Change::Fail { summary } => self.end(State::Failed, summary, author),
            Change::Reject { summary } => self.end(State::Rejected, summary, author),
            Change::Cancel { reason } => self.cancel(reason),
            Change::Retry { set_aside, .. } => self.retry(set_aside, author),
            Change::Comment { text } => {
                self.comment(text, author);
                Ok(())
            }
            Change::Adjudicate { falls, .. } => {
                self.set_aside.extend(falls);
                Ok(())
            }
            Change::Publish { manifest, commit } => self.publish(*manifest, *commit),
            Change::Delete => self.delete(),
        }
    }

    /// SHA-256 over title, mandate and criteria: what a sealed version was written for.
    pub fn text_digest(&self) -> Digest {
        text_digest(&self.title, &self.mandate, &self.criteria)
    }

    fn refuse(&self, what: &'static str) -> Refusal {
        Refusal::State {
            state: self.state,
            what,
        }
    }

    fn edit(&mut self, change: &Change) -> Result<(), Refusal> {
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
        self.check_unlocked("priority", priority.is_some(), self.state.is_terminal())?;
        self.check_unlocked(
            "tags",
            tags.is_some(),
            !matches!(self.state, State::Draft | State::Queued),
        )?;
        let text_locked = !self.text_is_open();
        self.check_unlocked("title", title.is_some(), text_locked)?;
        self.check_unlocked("mandate", mandate.is_some(), text_locked)?;
        self.check_unlocked("criteria", criteria.is_some(), text_locked)?;
        self.check_unlocked("base", base.is_some(), self.state != State::Draft)?;
        if let Some(title) = title {
            check_title(title)?;
        }
        if let Some(criteria) = criteria {
            check_criteria(criteria)?;
        }
        if let Some(priority) = priority {
            check_priority(*priority)?;
        }
        overwrite(&mut self.title, title.as_ref());
        overwrite(&mut self.mandate, mandate.as_ref());
        overwrite(&mut self.criteria, criteria.as_ref());
        overwrite(&mut self.priority, priority.as_ref());
        overwrite(&mut self.tags, tags.as_ref());
        overwrite(&mut self.base, base.as_ref());
        Ok(())
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

    fn enqueue(&mut self) -> Result<(), Refusal> {
        if self.state != State::Draft {
            return Err(self.refuse("be enqueued"));
        }
        if self.flow == Flow::TestFirst && self.criteria.is_empty() {
            return Err(Refusal::Value(
                "a test-first task needs at least one criterion".into(),
            ));
        }
        self.state = State::Queued;
        Ok(())
    }

    fn take(&mut self, lease: &str, author: Author<'_>) -> Result<(), Refusal> {
        if !matches!(self.state, State::Queued | State::Assigned | State::Working) {
            return Err(self.refuse("be claimed"));
        }
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

    fn renew(&mut self, lease: &str, author: Author<'_>) -> Result<(), Refusal> {
        match &mut self.claim {
            Some(claim) if claim.lease == lease && claim.key == *author.key => {
                claim.event = author.event;
                Ok(())
            }
            _ => Err(Refusal::Lease),
        }
    }

    fn release(&mut self, lease: &str, author: Author<'_>) -> Result<(), Refusal> {
        match &self.claim {
            Some(claim) if claim.lease == lease && claim.key == *author.key => {
                self.claim = None;
                Ok(())
            }
            _ => Err(Refusal::Lease),
        }
    }

    /// Only the holder of the claim moves a task that is worked on.
    fn check_holder(&self, author: Author<'_>, what: &'static str) -> Result<(), Refusal> {
        if !matches!(self.state, State::Assigned | State::Working) {
            return Err(self.refuse(what));
        }
        match &self.claim {
            Some(claim) if claim.key == *author.key => Ok(()),
            Some(claim) => Err(Refusal::Held(claim.worker.clone())),
            None => Err(Refusal::Lease),
        }
    }

    fn begin(&mut self, stage: Stage, author: Author<'_>) -> Result<(), Refusal> {
        self.check_holder(author, "begin a stage")?;
        self.state = State::Working;
        self.last_stage = Some(stage);
        Ok(())
    }

    fn consume(
        &mut self,
        manifest: Digest,
        approvals: &[Digest],
        author: Author<'_>,
    ) -> Result<(), Refusal> {
        self.check_holder(author, "use an approval")?;
        if approvals.is_empty() {
            return Err(Refusal::Value("an implementation needs an approval".into()));
        }
        self.consumed = Some((manifest, approvals.to_vec()));
        Ok(())
    }

    fn approve_patch(&mut self, patch: Digest) -> Result<(), Refusal> {
        if self.state.is_terminal() {
            return Err(self.refuse("have a patch approved"));
        }
        self.approved_patches.insert(patch);
        Ok(())
    }

    fn deliver(&mut self, delivery: Delivery, author: Author<'_>) -> Result<(), Refusal> {
        self.check_holder(author, "be delivered")?;
        if self.flow == Flow::TestFirst && (delivery.grade.is_none() || delivery.manifest.is_none())
        {
            return Err(Refusal::Value(
                "a test-first task is delivered with its grade and manifest".into(),
            ));
        }
        self.state = State::Done;
        self.claim = None;
        self.summary.clear();
        self.delivery = Some(delivery);
        Ok(())
    }

    fn end(&mut self, state: State, summary: &str, author: Author<'_>) -> Result<(), Refusal> {
        self.check_holder(author, "end")?;
        self.state = state;
        self.claim = None;
        summary.clone_into(&mut self.summary);
        Ok(())
    }

    fn cancel(&mut self, reason: &str) -> Result<(), Refusal> {
        if self.state.is_terminal() {
            return Err(self.refuse("be cancelled"));
        }
        self.state = State::Failed;
        self.claim = None;
        self.summary = if reason.is_empty() {
            "cancelled".into()
        } else {
            format!("cancelled: {reason}")
        };
        Ok(())
    }

    fn retry(&mut self, set_aside: &[Digest], author: Author<'_>) -> Result<(), Refusal> {
        if !matches!(self.state, State::Failed | State::Rejected) {
            return Err(self.refuse("be retried"));
        }
        let summary = std::mem::take(&mut self.summary);
        if !summary.is_empty() {
            self.comment(&summary, author);
        }
        self.comment(&format!("Task retried by {}", author.principal), author);
        self.state = State::Queued;
        self.set_aside.extend(set_aside);
        if self
            .consumed
            .as_ref()
            .is_some_and(|(manifest, _)| self.set_aside.contains(manifest))
        {
            self.consumed = None;
        }
        self.last_stage = None;
        Ok(())
    }

    fn comment(&mut self, text: &str, author: Author<'_>) {
        self.comments.push(Comment {
            by: author.principal.clone(),
            at: author.at.to_owned(),
            text: text.to_owned(),
        });
    }

    fn publish(&mut self, manifest: Digest, commit: ObjectId) -> Result<(), Refusal> {
        if self.state != State::Done {
            return Err(self.refuse("have its tests published"));
        }
        self.published = Some((manifest, commit));
        Ok(())
    }

    fn delete(&mut self) -> Result<(), Refusal> {
        if self.state != State::Draft {
            return Err(self.refuse("be deleted"));
        }
        self.state = State::Deleted;
        Ok(())
    }
}

mod rules;
#[cfg(test)]
mod tests;
