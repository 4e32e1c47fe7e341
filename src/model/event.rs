//! Events: what one command did to one object, as one signed document.
//!
//! Format: `docs/format.md`, "Events".

use crate::model::authority::Act;
use crate::model::digest::Digest;
use crate::model::ids::{CriterionId, Principal, TaskId};
use crate::model::object_id::ObjectId;
use crate::model::signer::Signer;
use crate::model::task::{Flow, Mode, Stage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `event.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// Document format, 1.
    pub format: i64,
    /// The repository: SHA-256 of `root.toml` version 1.
    pub repo: Digest,
    /// The task. Absent in a creation event, whose digest becomes the id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// 128 random bits in hex, so that two equal commands are two events.
    pub nonce: String,
    /// Digests of the events this one has seen last, sorted; empty only in a creation event.
    pub parents: Vec<Digest>,
    /// Who, when, under which policy.
    pub signer: Signer,
    /// What happened, in order.
    pub change: Vec<Change>,
}

/// A criterion with its text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Criterion {
    /// `c1`, `c2`, …
    pub id: CriterionId,
    /// One sentence that can be tested.
    pub text: String,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Change {
    /// The task comes into being, as a draft.
    Create {
        /// One line.
        title: String,
        /// What is to be done, in Markdown.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        mandate: String,
        /// Acceptance criteria.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        criteria: Vec<Criterion>,
        /// Plain or test-first.
        flow: Flow,
        /// What kind of work.
        mode: Mode,
        /// 1 (first) to 9 (last).
        priority: u8,
        /// The commit that the work starts from.
        base: ObjectId,
        /// The branch that `base` was taken from, if one was named.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        base_branch: String,
        /// The key by which another system knows the task (`KAN-80`).
        #[serde(default, skip_serializing_if = "String::is_empty")]
        external: String,
        /// Capabilities that a worker must have.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tags: Vec<String>,
        /// Who asked.
        requester: Principal,
    },
    /// Fields get new values; absent ones stay.
    Edit {
        /// One line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// Markdown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mandate: Option<String>,
        /// The whole new list.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        criteria: Option<Vec<Criterion>>,
        /// 1 to 9.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        priority: Option<u8>,
        /// The whole new list.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tags: Option<Vec<String>>,
        /// Another base.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        base: Option<ObjectId>,
    },
    /// The draft may be worked on.
    Enqueue,
    /// A worker takes the task.
    Claim {
        /// 128 random bits in hex; names this claim in `renew` and `release`.
        lease: String,
    },
    /// The claim is alive.
    Renew {
        /// Of which claim.
        lease: String,
    },
    /// The worker gives the task back, for instance while a person is asked.
    Release {
        /// Of which claim.
        lease: String,
    },
    /// A stage began. Shown; the stage in force is derived from the documents.
    Stage {
        /// Which.
        stage: Stage,
        /// Digests of the documents that this rests on.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        documents: Vec<Digest>,
        /// One line for people.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        note: String,
    },
    /// The approvals of a manifest are used up by beginning the implementation.
    Consume {
        /// Of which manifest.
        manifest: Digest,
        /// Digests of the approvals; their documents are attached to this event.
        approvals: Vec<Digest>,
    },
    /// An approver allows a patch that changes CI, hooks, Git's or hangar's configuration to be
    /// delivered.
    ApprovePatch {
        /// Its patch id.
        patch: Digest,
    },
    /// The work is on a branch. Ends the task as done.
    Deliver {
        /// Full ref name.
        branch: String,
        /// The delivered commit.
        commit: ObjectId,
        /// The run whose result this is.
        run: Digest,
        /// The grade it rests on; absent for a plain task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        grade: Option<Digest>,
        /// The approved manifest; absent for a plain task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        manifest: Option<Digest>,
    },
    /// The work ended without an accepted result.
    Fail {
        /// Why, in Markdown. First line is shown in lists.
        summary: String,
    },
    /// No version of the tests found consent. Ends the task as rejected.
    Reject {
        /// Why.
        summary: String,
    },
    /// A person stopped the task.
    Cancel {
        /// Why.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
    /// An ended task is queued again.
    Retry {
        /// Where it goes on.
        from: Stage,
        /// Digests of manifests, runs and grades that no longer count.
        set_aside: Vec<Digest>,
    },
    /// A remark.
    Comment {
        /// Markdown.
        text: String,
    },
    /// Which of two contradictory documents stands.
    Adjudicate {
        /// Digest of the decision, grade or manifest that stands.
        stands: Digest,
        /// Digests of those that fall.
        falls: Vec<Digest>,
        /// Why.
        reason: String,
    },
    /// The tests landed in the open after delivery.
    Publish {
        /// Of which manifest.
        manifest: Digest,
        /// The commit that holds them.
        commit: ObjectId,
    },
    /// The draft is gone.
    Delete,
}

impl Change {
    /// What right a signer needs for this change.
    pub const fn act(&self) -> Act {
        match self {
            Self::Create { .. } => Act::Create,
            Self::Edit { .. } => Act::Edit,
            Self::Enqueue => Act::Enqueue,
            Self::Claim { .. }
            | Self::Renew { .. }
            | Self::Release { .. }
            | Self::Stage { .. }
            | Self::Consume { .. }
            | Self::Deliver { .. }
            | Self::Fail { .. }
            | Self::Reject { .. } => Act::Work,
            Self::ApprovePatch { .. } => Act::ApprovePatch,
            Self::Cancel { .. } => Act::Cancel,
            Self::Retry { .. } => Act::Retry,
            Self::Comment { .. } => Act::Comment,
            Self::Adjudicate { .. } => Act::Adjudicate,
            Self::Publish { .. } => Act::Publish,
            Self::Delete => Act::Delete,
        }
    }

    /// Fields that an edit sets.
    pub fn fields(&self) -> Vec<&'static str> {
        let Self::Edit {
            title,
            mandate,
            criteria,
            priority,
            tags,
            base,
        } = self
        else {
            return Vec::new();
        };
        let set = [
            ("title", title.is_some()),
            ("mandate", mandate.is_some()),
            ("criteria", criteria.is_some()),
            ("priority", priority.is_some()),
            ("tags", tags.is_some()),
            ("base", base.is_some()),
        ];
        let set = set.into_iter().filter(|(_, set)| *set);
        set.map(|(name, _)| name).collect()
    }

    /// The change as a noun with its article, for people.
    pub const fn noun(&self) -> &'static str {
        match self {
            Self::Deliver { .. } => "the delivery",
            Self::Cancel { .. } => "the cancellation",
            Self::Delete => "the deletion",
            Self::Reject { .. } => "the rejection",
            Self::Fail { .. } => "the failure",
            Self::Create { .. } => "the creation",
            Self::Edit { .. } => "the edit",
            Self::Enqueue => "the enqueueing",
            Self::Claim { .. } | Self::Renew { .. } => "the claim",
            Self::Release { .. } => "the giving back",
            Self::Stage { .. } => "the stage",
            Self::Consume { .. } => "the use of approvals",
            Self::ApprovePatch { .. } => "the approval of a patch",
            Self::Retry { .. } => "the retry",
            Self::Comment { .. } => "the comment",
            Self::Adjudicate { .. } => "the adjudication",
            Self::Publish { .. } => "the publication",
        }
    }

    /// Whether it brings the task into another state, or to another holder.
    pub const fn moves(&self) -> bool {
        matches!(
            self,
            Self::Enqueue
                | Self::Claim { .. }
                | Self::Release { .. }
                | Self::Deliver { .. }
                | Self::Fail { .. }
                | Self::Reject { .. }
                | Self::Cancel { .. }
                | Self::Retry { .. }
                | Self::Delete
        )
    }

    /// The word in `kind`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Create { .. } => "create",
            Self::Edit { .. } => "edit",
            Self::Enqueue => "enqueue",
            Self::Claim { .. } => "claim",
            Self::Renew { .. } => "renew",
            Self::Release { .. } => "release",
            Self::Stage { .. } => "stage",
            Self::Consume { .. } => "consume",
            Self::ApprovePatch { .. } => "approve-patch",
            Self::Deliver { .. } => "deliver",
            Self::Fail { .. } => "fail",
            Self::Reject { .. } => "reject",
            Self::Cancel { .. } => "cancel",
            Self::Retry { .. } => "retry",
            Self::Comment { .. } => "comment",
            Self::Adjudicate { .. } => "adjudicate",
            Self::Publish { .. } => "publish",
            Self::Delete => "delete",
        }
    }
}
