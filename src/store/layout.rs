//! Names of refs. Signed bytes never hold one, so the prefix can move.

use super::Error;
use crate::git::Repository;
use crate::model::digest::Digest;
use crate::model::ids::{Fingerprint, TaskId};

/// The usual prefix.
pub const DEFAULT_PREFIX: &str = "refs/hangar/";
/// The prefix for hosts that accept only branches.
pub const BRANCH_PREFIX: &str = "refs/heads/hangar-state/";

/// The prefix in use, and the names below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    prefix: &'static str,
}

impl Layout {
    /// The layout that `repo` uses. Both prefixes at once are refused: two states would be
    /// mistaken for one.
    pub fn of(repo: &Repository) -> Result<Self, Error> {
        let has = |prefix: &str| {
            repo.read_ref(&format!("{prefix}policy"))
                .map(|id| id.is_some())
        };
        match (has(DEFAULT_PREFIX)?, has(BRANCH_PREFIX)?) {
            (true, true) => Err(Error::TwoPrefixes),
            (false, true) => Ok(Self {
                prefix: BRANCH_PREFIX,
            }),
            (_, false) => Ok(Self {
                prefix: DEFAULT_PREFIX,
            }),
        }
    }

    /// The chain of the policy.
    pub fn policy(&self) -> String {
        format!("{}policy", self.prefix)
    }

    /// All tasks.
    pub fn tasks(&self) -> String {
        format!("{}tasks/", self.prefix)
    }

    /// One task's events.
    pub fn task(&self, task: &TaskId) -> String {
        format!("{}tasks/{task}", self.prefix)
    }

    /// The task that a ref name under [`Layout::tasks`] is of.
    pub fn task_of(&self, name: &str) -> Option<TaskId> {
        name.strip_prefix(&self.tasks())?.parse().ok()
    }

    /// One task's sealed versions.
    pub fn sealed(&self, task: &TaskId) -> String {
        format!("{}sealed/{task}", self.prefix)
    }

    /// One task's runs.
    pub fn runs(&self, task: &TaskId) -> String {
        format!("{}runs/{task}", self.prefix)
    }

    /// One task's grades.
    pub fn grades(&self, task: &TaskId) -> String {
        format!("{}grades/{task}", self.prefix)
    }

    /// All decisions.
    pub fn approvals(&self) -> String {
        format!("{}approvals/", self.prefix)
    }

    /// What the names of one task's decisions begin with.
    pub fn approvals_of(&self, task: &TaskId) -> String {
        format!("{}approvals/{task}-", self.prefix)
    }

    /// The decisions of one key over one manifest.
    pub fn approval(&self, task: &TaskId, manifest: &Digest, key: &Fingerprint) -> String {
        format!(
            "{}{}-{}",
            self.approvals_of(task),
            manifest.hex(),
            key.hex()
        )
    }

    /// Everything.
    pub const fn prefix(&self) -> &'static str {
        self.prefix
    }
}
