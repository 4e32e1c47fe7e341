//! Why a step of the flow did not go on, by what the caller can do.

use crate::model::ids::Principal;
use crate::{base, config, git, grade, harness, sandbox, seal, store, trust};

/// Trouble in the flow. The comment on each variant names the exit code that `cli` gives it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something that this machine or the base must have is not there (3).
    #[error("{what}")]
    Missing {
        /// What is missing, in a sentence.
        what: String,
        /// What to do about it.
        remedy: String,
    },
    /// The rules, the policy or the state forbid it (4).
    #[error("{what}")]
    Refused {
        /// What is refused and why.
        what: String,
        /// What to do instead.
        remedy: String,
    },
    /// Another worker holds the task (5).
    #[error("the task is held by {holder}")]
    Held {
        /// Who.
        holder: Principal,
        /// What to do.
        remedy: String,
    },
    /// This process had the task and does not have it any more (5).
    #[error("this run has lost the task: {why}")]
    Lost {
        /// To whom, or why.
        why: String,
    },
    /// An agent program failed, or left what can't be used, again and again (7).
    #[error("{what}")]
    Agent {
        /// What happened.
        what: String,
        /// What to do.
        remedy: String,
    },
    /// An agent program was not served; another lane may go on (7).
    #[error("{}", .0.what)]
    Stopped(super::outage::Stopped),
    /// Trouble outside this machine, such as a registry that can't be reached; running it again is
    /// safe (7).
    #[error("{what}")]
    Outside {
        /// What happened.
        what: String,
        /// What to do.
        remedy: String,
    },
    /// A person stopped it (130).
    #[error("interrupted")]
    Interrupted,
    /// Trouble with the state.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Trouble with Git.
    #[error(transparent)]
    Git(#[from] git::Error),
    /// Trouble with a sandbox.
    #[error(transparent)]
    Sandbox(sandbox::Error),
    /// Trouble with the configuration.
    #[error(transparent)]
    Config(#[from] config::Error),
    /// Trouble with lanes or an agent program's set-up.
    #[error(transparent)]
    Harness(#[from] harness::Error),
    /// A signature could not be made.
    #[error("cannot sign")]
    Sign(#[from] trust::SignError),
    /// A key could not be loaded.
    #[error(transparent)]
    Key(#[from] trust::MachineKeyError),
    /// The sealed tests can't be packed or unpacked.
    #[error(transparent)]
    Bundle(#[from] seal::BundleError),
    /// The sealed tests can't be opened here.
    #[error(transparent)]
    Decrypt(#[from] seal::DecryptError),
    /// The sealed tests can't be encrypted.
    #[error(transparent)]
    Encrypt(#[from] seal::EncryptError),
    /// Nothing can be encrypted to a recipient of the policy.
    #[error("the sealed tests can't be encrypted to {holder}")]
    Recipient {
        /// Who it is in the policy.
        holder: Principal,
        /// Whether it is a grader, whose own key is its recipient.
        is_grader: bool,
        /// Why.
        #[source]
        source: seal::RecipientError,
    },
    /// A pattern of the plan is malformed.
    #[error(transparent)]
    Pattern(#[from] grade::protect::Error),
    /// A document can't be written.
    #[error(transparent)]
    Codec(#[from] crate::model::codec::Error),
    /// Trouble with a local file.
    #[error(transparent)]
    File(#[from] base::files::Error),
}

impl From<sandbox::Error> for Error {
    fn from(error: sandbox::Error) -> Self {
        match error {
            sandbox::Error::Interrupted => Self::Interrupted,
            other => Self::Sandbox(other),
        }
    }
}

impl Error {
    /// Something is missing.
    pub fn missing(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Missing {
            what: what.into(),
            remedy: remedy.into(),
        }
    }

    /// Something is refused.
    pub fn refused(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Refused {
            what: what.into(),
            remedy: remedy.into(),
        }
    }

    /// Something outside does not answer.
    pub fn outside(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Outside {
            what: what.into(),
            remedy: remedy.into(),
        }
    }
}
