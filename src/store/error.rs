//! What can go wrong with the state, by what the caller can do.

use super::policy::Rivals;
use crate::base::files;
use crate::base::words::count;
use crate::git;
use crate::model::codec;
use crate::model::digest::Digest;
use crate::model::ids::{Fingerprint, Principal, TaskId};
use crate::model::task::Refusal;
use crate::trust::SignError;

/// Trouble with the state.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// hangar was never set up here.
    #[error("this repository has no hangar policy yet")]
    NoPolicy,
    /// The policy that this clone pinned is on no ref of it any more.
    #[error("the policy that this clone has seen (version {version}) is gone")]
    PolicyGone {
        /// The version that was pinned.
        version: u64,
    },
    /// Both ref prefixes hold a policy.
    #[error("both refs/hangar/ and refs/heads/hangar-state/ hold a policy")]
    TwoPrefixes,
    /// A remote keeps this repository's policy below both ref prefixes.
    #[error(
        "the remote {remote} holds the policy below both refs/hangar/ and refs/heads/hangar-state/"
    )]
    TwoPrefixesThere {
        /// Its name or address.
        remote: String,
    },
    /// A remote keeps two policies, one below each ref prefix.
    #[error(
        "the remote {remote} holds two policies: {one} below refs/hangar/ and {two} below refs/heads/hangar-state/"
    )]
    TwoStatesThere {
        /// Its name or address.
        remote: String,
        /// Repository id of the first.
        one: Digest,
        /// And of the second.
        two: Digest,
    },
    /// What a remote has in place of the policy is none.
    #[error("what the remote {remote} has as {name} is no policy that can be taken: {why}")]
    NoPolicyThere {
        /// Its name or address.
        remote: String,
        /// Name of the ref there.
        name: String,
        /// Why.
        why: String,
    },
    /// This clone and the remote were founded apart, and share nothing.
    #[error(
        "the remote {remote} has the policy {there}, and this clone founded another one: {here}"
    )]
    FoundedTwice {
        /// Its name or address.
        remote: String,
        /// Repository id in this clone.
        here: Digest,
        /// And on the remote.
        there: Digest,
    },
    /// A remote holds something else where this repository's state shall lie.
    #[error("the remote {remote} holds another state below {prefix}")]
    OtherStateThere {
        /// Its name or address.
        remote: String,
        /// Below which prefix.
        prefix: &'static str,
    },
    /// The policy chain can't be believed.
    #[error("the policy can't be trusted: {0}")]
    Policy(String),
    /// A change of the policy that makes no sense. The one in force is fine.
    #[error("this change can't be made: {0}")]
    Proposed(String),
    /// A version of the policy to which this person's signature adds nothing more.
    #[error("{principal} has signed this version of the policy already")]
    SignedAlready {
        /// Who.
        principal: Principal,
        /// Keys of theirs that the version brings, of which one must sign it too.
        new_keys: Vec<Fingerprint>,
        /// Names the version.
        digest: Digest,
    },
    /// Several versions of the policy follow the same one, and nobody has said which stands.
    #[error("nothing is decided under a policy in doubt: {}", list(rivals))]
    RivalPolicy {
        /// Where they are.
        rivals: Vec<Rivals>,
    },
    /// The policy is not the one that this clone or `hangar.toml` pinned.
    #[error("the policy is not the one that was pinned: {0}")]
    Pin(String),
    /// No task with this id, prefix or key.
    #[error("no task is called `{0}`")]
    NoTask(String),
    /// A prefix that fits several tasks.
    #[error("`{prefix}` fits {}", count(candidates.len(), "task", "tasks"))]
    Ambiguous {
        /// What was typed.
        prefix: String,
        /// Full ids and titles.
        candidates: Vec<(TaskId, String)>,
    },
    /// The task's rules refuse it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The policy gives this principal no right to it.
    #[error("{principal} may not {act}")]
    NotAllowed {
        /// Who.
        principal: Principal,
        /// What, as a verb phrase.
        act: String,
    },
    /// The key at hand is nobody's under the newest policy.
    #[error("the key {key} belongs to nobody in the policy")]
    UnknownKey {
        /// Fingerprint.
        key: Fingerprint,
    },
    /// Somebody else moved the ref first, again and again.
    #[error("{0} kept moving while this command tried to write")]
    LostRace(String),
    /// The remote that decides races refuses.
    #[error("the arbiter {arbiter} refuses: {why}")]
    Arbiter {
        /// The remote.
        arbiter: String,
        /// What it said.
        why: String,
    },
    /// Only the remote that decides races can tell, and no remote may be asked.
    #[error(
        "who claims, grades and delivers is decided by the arbiter {arbiter}, and --offline was given"
    )]
    ArbiterOffline {
        /// The remote.
        arbiter: String,
    },
    /// A document is not what its place says.
    #[error("{place} holds a document that can't be used: {reason}")]
    Document {
        /// Ref or object.
        place: String,
        /// Why.
        reason: String,
    },
    /// A task that rests on a version of the policy that came later than the newest here.
    #[error("{place} rests on version {version} of the policy, and the newest here is {newest}")]
    NewerPolicy {
        /// The ref.
        place: String,
        /// The version that its documents name.
        version: u64,
        /// The newest one that is here.
        newest: u64,
    },
    /// What a ref of ours reaches is lost or damaged.
    #[error("{place} can't be read: {source}")]
    Damaged {
        /// The ref.
        place: String,
        /// What is wrong with which object.
        source: git::Error,
    },
    /// A document can't be written or read.
    #[error(transparent)]
    Codec(#[from] codec::Error),
    /// A signature could not be made.
    #[error("cannot sign")]
    Sign(#[from] SignError),
    /// Trouble with Git.
    #[error(transparent)]
    Git(#[from] git::Error),
    /// Trouble with a local file.
    #[error(transparent)]
    File(#[from] files::Error),
}

fn list(rivals: &[Rivals]) -> String {
    let all: Vec<_> = rivals.iter().map(ToString::to_string).collect();
    all.join("; ")
}

impl Error {
    /// Damage of objects is damage of the ref that reaches them. What is only not in this clone, and
    /// trouble of this machine, stay what they are.
    #[must_use]
    pub(super) fn at(self, place: &str) -> Self {
        use git::Error as Git;
        match self {
            Self::Git(
                source @ (Git::Gone {
                    absence: git::Absence::Lost | git::Absence::Shallow,
                    ..
                }
                | Git::Damaged { .. }
                | Git::TooLarge { .. }
                | Git::Invalid { .. }),
            ) => Self::Damaged {
                place: place.to_owned(),
                source,
            },
            other => other,
        }
    }

    /// Whether it is about what lies on refs, so that another task may well be fine.
    pub const fn is_of_documents(&self) -> bool {
        matches!(
            self,
            Self::Document { .. } | Self::Damaged { .. } | Self::NewerPolicy { .. }
        )
    }

    /// Whether it says that what a remote shows is none of ours, so that it may go there. Not where that could
    /// not be read, or may be honest all the same.
    pub(super) const fn tells_of_junk(&self) -> bool {
        use git::Error as Git;
        let (Self::Git(source) | Self::Damaged { source, .. }) = self else {
            return !matches!(
                self,
                Self::NewerPolicy { .. } | Self::File(_) | Self::LostRace(_)
            );
        };
        !matches!(
            source,
            Git::Remote { .. }
                | Git::Busy { .. }
                | Git::Conflict { .. }
                | Git::Gone { .. }
                | Git::Shallow
                | Git::File { .. }
                | Git::Store { .. }
                | Git::Process(_)
                | Git::Program { .. }
        )
    }

    /// What is wrong with a version that is only proposed is no doubt about the one in force.
    pub(super) fn proposed(self) -> Self {
        match self {
            Self::Policy(why) => Self::Proposed(why),
            other => other,
        }
    }
}
