//! The task and its one transition function.
//!
//! A task's state is the [`fold`] of its authorised events: each change is judged by what its author
//! had seen ([`Task::apply`]), and of moves made at the same time the more careful one stands. What
//! is decided on other refs (approvals, runs, grades) is not part of it; `flow::stage` joins the two.

use crate::model::digest::Digest;
use crate::model::event::{Change, Criterion};
use crate::model::ids::{Fingerprint, Principal, TaskId};
use crate::model::object_id::ObjectId;
use crate::model::outcome::text_form;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

pub use fold::{Folded, GaveWay, Node, Outcome, Sight, fold};
pub use merge::Beside;
use merge::{Kept, Register};
pub use rules::{MAX_CRITERIA, MAX_TITLE, text_digest};
use rules::{check_criteria, check_priority, check_title, renumbered};

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
    /// What brought it where it stands, where that is more than its creation.
    pub moved: Option<Moved>,
    /// Where the result went.
    pub delivery: Option<Delivery>,
    /// Published tests: manifest and commit.
    pub published: Option<(Digest, ObjectId)>,
    /// Why it failed, was rejected or cancelled; empty otherwise.
    pub summary: String,
    /// Comments, oldest first.
    pub comments: Vec<Comment>,
    /// Which event wrote what of the fields above.
    written: Written,
}

/// What can be edited or taken back, with the events that wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Written {
    title: Register<String>,
    mandate: Register<String>,
    priority: Register<u8>,
    base: Register<ObjectId>,
    criteria: Kept<Criterion>,
    tags: Kept<String>,
    /// What a retry set aside, for good.
    retried: BTreeSet<Digest>,
    /// What falls by an adjudication, until one that has seen that says the reverse.
    fallen: Kept<Fallen>,
}

/// A document that fell by an adjudication, and the one that stands against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Fallen {
    one: Digest,
    by: Digest,
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

/// A move that brought a task where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// As a noun.
    pub what: &'static str,
    /// Who made it.
    pub by: Principal,
    /// Its event.
    pub event: Digest,
}

impl fmt::Display for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, by, event } = self;
        write!(f, "{what} by {by}, event {}", event.short())
    }
}

/// ` (since the claim by NAME, event DIGEST)`, where there is something to name.
fn since(moved: Option<&Moved>) -> String {
    moved.map_or_else(String::new, |moved| format!(" (since {moved})"))
}

/// Why a change has no effect. It stays in the history.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The task is in a state in which this can't be done.
    #[error("a task that is {state} can't {what}{}", since(.moved.as_ref()))]
    State {
        /// State of the task.
        state: State,
        /// What was tried, as a verb phrase.
        what: &'static str,
        /// What brought it there.
        moved: Option<Moved>,
    },
    /// Another worker holds it, by this event.
    #[error("the task is held by {0} (event {event})", event = .1.short())]
    Held(Principal, Digest),
    /// The lease is not the one in force; what came since.
    #[error("the claim is not the one in force{}", since(.0.as_ref()))]
    Lease(Option<Moved>),
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
    /// A test-first task that says nothing about acceptance.
    #[error("a test-first task needs at least one criterion")]
    NoCriterion,
    /// A creation event that is not first, or a first event that creates nothing.
    #[error("creation must be the first event and only there")]
    Creation,
    /// A more careful move was made at the same time.
    #[error(
        "{what} by {by} was recorded at the same time and stands (event {}); {lost} by {loser} gives way",
        .event.short()
    )]
    Outweighed {
        /// The move that stands, as a noun.
        what: &'static str,
        /// Who made it.
        by: Principal,
        /// Its event.
        event: Digest,
        /// What has no effect, as a noun.
        lost: &'static str,
        /// Who made that.
        loser: Principal,
    },
    /// A move that rests on this one stands against another that was recorded at the same time.
    #[error(
        "{what} by {by}, which follows it, stands against others of that time (event {}); with it {lost} by {loser} is over",
        .event.short()
    )]
    Followed {
        /// The move that stands, as a noun.
        what: &'static str,
        /// Who made it.
        by: Principal,
        /// Its event.
        event: Digest,
        /// What has no effect of its own, as a noun.
        lost: &'static str,
        /// Who made that.
        loser: Principal,
    },
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
        let written = Written {
            title: Register::new(title.clone(), author),
            mandate: Register::new(mandate.clone(), author),
            priority: Register::new(*priority, author),
            base: Register::new(*base, author),
            criteria: Kept::new(criteria, author.event),
            tags: Kept::new(tags, author.event),
            retried: BTreeSet::new(),
            fallen: Kept::new(&[], author.event),
        };
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
            tags: written.tags.list(),
            requester: requester.clone(),
            created: author.at.to_owned(),
            state: State::Draft,
            last_stage: None,
            claim: None,
            consumed: None,
            approved_patches: BTreeSet::new(),
            set_aside: BTreeSet::new(),
            moved: None,
            delivery: None,
            published: None,
            summary: String::new(),
            comments: Vec::new(),
            written,
        })
    }

    /// Applies one authorised change of somebody who has seen exactly this state. On a refusal the
    /// task is as before.
    pub fn apply(&mut self, change: &Change, author: Author<'_>) -> Result<(), Refusal> {
        self.allows(change, author)?;
        let step = self.step(change);
        self.enact(change, author, &step).map(drop)
    }

    /// SHA-256 over title, mandate and criteria: what a sealed version was written for.
    pub fn text_digest(&self) -> Digest {
        text_digest(&self.title, &self.mandate, &self.criteria)
    }

    /// Whether a person means the task by this external key, whatever the case.
    pub fn has_key(&self, key: &str) -> bool {
        !self.external.is_empty() && self.external.eq_ignore_ascii_case(key)
    }

    /// Values of fields that were set at the same time as the one that counts, by people who did not
    /// know of each other. An edit that has seen them settles it.
    pub fn beside(&self) -> Vec<Beside> {
        let written = &self.written;
        let mut all = written.title.others("title");
        all.extend(written.mandate.others("mandate"));
        all.extend(written.priority.others("priority"));
        all.extend(written.base.others("base"));
        all
    }

    /// Whether a retry set a document aside: for good, whatever is adjudicated.
    pub fn was_retried(&self, document: Digest) -> bool {
        self.written.retried.contains(&document)
    }

    /// The same task for judging what somebody who sees it may do: words are left out.
    fn without_comments(&mut self) -> Self {
        let comments = std::mem::take(&mut self.comments);
        let copy = self.clone();
        self.comments = comments;
        copy
    }

    fn show_criteria(&mut self) {
        self.criteria = renumbered(self.written.criteria.list());
    }

    fn show_aside(&mut self) {
        let fallen = self.written.fallen.list();
        let fallen = fallen.into_iter().map(|fallen| fallen.one);
        self.set_aside = self.written.retried.iter().copied().chain(fallen).collect();
    }
}

mod allow;
#[cfg(test)]
mod apart;
mod causal;
mod effect;
mod fold;
#[cfg(test)]
mod laws;
mod merge;
mod rules;
#[cfg(test)]
mod tests;
mod weight;
