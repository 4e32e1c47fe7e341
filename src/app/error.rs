//! What a use case can fail with: the errors of the modules below, and its own.

use crate::base::files;
use crate::model::digest::Digest;
use crate::model::object_id::ObjectId;
use crate::{config, flow, git, harness, model, sandbox, seal, store, trust};
use std::path::PathBuf;

/// Trouble with a use case.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The state on refs.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Git.
    #[error(transparent)]
    Git(#[from] git::Error),
    /// A step of the acceptance flow.
    #[error(transparent)]
    Flow(#[from] flow::Error),
    /// A sandbox.
    #[error(transparent)]
    Sandbox(#[from] sandbox::Error),
    /// Configuration.
    #[error(transparent)]
    Config(#[from] config::Error),
    /// Agent programs.
    #[error(transparent)]
    Harness(#[from] harness::Error),
    /// The key that the user named can't be used.
    #[error(transparent)]
    Discover(#[from] trust::DiscoverError),
    /// A signature.
    #[error("cannot sign")]
    Sign(#[from] trust::SignError),
    /// The machine's own keys.
    #[error(transparent)]
    MachineKey(#[from] trust::MachineKeyError),
    /// The person's age identity.
    #[error("the age identity {} can't be used", path.display())]
    AgeIdentity {
        /// Its file.
        path: PathBuf,
        /// Why.
        #[source]
        source: seal::IdentityError,
    },
    /// The person's key can't decrypt and no age identity is there.
    #[error("there is nothing to decrypt with: your key can't, and {} is not there", .0.display())]
    NoIdentity(PathBuf),
    /// A document that can't be written or read.
    #[error(transparent)]
    Codec(#[from] model::codec::Error),
    /// A file.
    #[error(transparent)]
    File(#[from] files::Error),
    /// A repository without a commit, or one with none at HEAD.
    #[error("{}", if *.elsewhere { "HEAD names a branch that is not there" } else { "this repository has no commit yet" })]
    Unborn {
        /// Whether other branches have commits.
        elsewhere: bool,
        /// What gives HEAD a commit.
        remedies: Vec<String>,
    },
    /// A file that was named can't be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Nothing to sign with was found.
    #[error("no SSH key was found to sign with")]
    NoKey {
        /// What looked like a key and was left out, each with the reason.
        skipped: Vec<String>,
        /// What makes one of those a key that can be used.
        mend: Option<String>,
    },
    /// A key file would be overwritten.
    #[error("{} exists already", .0.display())]
    KeyExists(PathBuf),
    /// No remote of this name is configured.
    #[error("there is no remote called `{0}`")]
    NoRemote(String),
    /// Several remotes, and nothing says which one is meant.
    #[error("which remote is meant? There are {}, and none is called `origin`", .0.join(", "))]
    WhichRemote(Vec<String>),
    /// Variables of the environment name another repository than the folder lies in.
    #[error("{variable} names another repository than the one of {}", dir.display())]
    OtherRepository {
        /// Which variable.
        variable: &'static str,
        /// Where hangar works.
        dir: PathBuf,
    },
    /// The remote did not answer, so nobody knows whether it holds a policy.
    #[error("the remote `{remote}` can't be reached, so it is unknown whether it holds a policy")]
    RemoteUnreachable {
        /// Name of the remote.
        remote: String,
        /// What Git said.
        #[source]
        source: git::Error,
    },
    /// The policy that this clone has seen is gone, and `init` found it nowhere.
    #[error(transparent)]
    PolicyLost(store::Error),
    /// `hangar.toml` names a policy that is not here.
    #[error("hangar.toml names the policy {wanted}, which is not in this clone")]
    PolicyElsewhere {
        /// Digest of its version 1.
        wanted: Digest,
    },
    /// `hangar.toml` and the refs name two policies.
    #[error("hangar.toml {place} names the policy {named}, but the refs hold {found}")]
    OtherPolicy {
        /// Which `hangar.toml`: `of HEAD`, `of refs/remotes/origin/main`, `in the work tree`.
        place: String,
        /// In `hangar.toml`.
        named: Digest,
        /// On the refs.
        found: Digest,
    },
    /// `hangar.toml` names another policy than a remote shows. Nothing was taken from there.
    #[error(
        "hangar.toml names the policy {named}, but `{remote}` shows {found}; nothing was taken from there"
    )]
    OtherPolicyThere {
        /// The remote.
        remote: String,
        /// In `hangar.toml`.
        named: Digest,
        /// On the remote.
        found: Digest,
    },
    /// Nothing is pinned yet, and several branches of the remote could name the policy.
    #[error(
        "which policy is the right one can't be known: which branch of `{remote}` is its default one is not known here"
    )]
    NoDefaultBranch {
        /// The remote.
        remote: String,
    },
    /// Nothing is pinned yet, and the file that would name the policy can't be read.
    #[error(
        "which policy is the right one can't be known: hangar.toml {place} ({}) can't be read",
        commit.short()
    )]
    NamesUnreadable {
        /// Which `hangar.toml`, as in [`Self::OtherPolicy`].
        place: String,
        /// The commit that holds it.
        commit: ObjectId,
        /// Why.
        source: Box<Self>,
    },
    /// A base without `hangar.toml`: nobody knows how its code is tested.
    #[error("there is no hangar.toml in {base}")]
    NoConfigAtBase {
        /// The revision as the user named it.
        base: String,
    },
    /// Something that one line of a file of tasks asks for.
    #[error("line {line}")]
    Line {
        /// Which, from 1.
        line: usize,
        /// What is wrong.
        source: Box<Self>,
    },
    /// Another task has this external key.
    #[error("{by} has the key `{key}` already")]
    KeyTaken {
        /// The key.
        key: String,
        /// Who has it.
        by: String,
    },
    /// A value that makes no sense.
    #[error("{0}")]
    Invalid(String),
}

impl Error {
    /// The same, with the line of a file of tasks that it comes from.
    #[must_use]
    pub fn in_line(self, line: Option<usize>) -> Self {
        match line {
            Some(line) => Self::Line {
                line,
                source: Box::new(self),
            },
            None => self,
        }
    }

    /// A value that makes no sense, in a sentence.
    pub fn invalid(text: impl Into<String>) -> Self {
        Self::Invalid(text.into())
    }
}

/// An error with its causes as one sentence.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}
