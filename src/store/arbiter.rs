//! What must not flip later takes effect on one ref only: a claim, the use of approvals, a delivery.
//!
//! Where the policy names an arbiter (the address of a remote), such an event is pushed there first,
//! and only if the task's ref is where it was read; then it becomes part of the task here. Of two
//! clones that claim one task, one is too late and sees the other's claim. Without an arbiter this
//! repository's own ref decides.

use super::sync::{self, Wanted};
use super::{Error, Store, growth, remotes};
use crate::git::{Expected, Lease, PushOutcome, shown_remote};
use crate::model::event::Change;
use crate::model::object_id::ObjectId;
use std::time::Duration;

/// How long the arbiter may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What came of a commit that was offered to the arbiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Submitted {
    /// It is recorded there.
    Recorded,
    /// Another was faster.
    Raced,
    /// The commit does not follow this one, which the arbiter has: it came while this clone wrote, or
    /// can't be taken here.
    Behind(ObjectId),
}

/// What the arbiter has, can't be taken here.
pub(super) fn unusable(arbiter: &str) -> Error {
    Error::Arbiter {
        arbiter: shown_remote(arbiter),
        why: "what it has of this task can't be taken here (`hangar sync` says why)".into(),
    }
}

impl Store {
    /// The remote that decides about these changes; `None` where this repository does.
    pub(super) fn arbiter_of(&self, changes: &[Change]) -> Result<Option<String>, Error> {
        let decides = changes.iter().any(|change| {
            matches!(
                change,
                Change::Claim { .. } | Change::Consume { .. } | Change::Deliver { .. }
            )
        });
        if !decides {
            return Ok(None);
        }
        let arbiter = self.arbiter()?;
        match arbiter {
            Some(_) if self.offline => Err(Error::ArbiterOffline {
                arbiter: shown_remote(&self.policy.newest().members.arbiter),
            }),
            arbiter => Ok(arbiter),
        }
    }

    /// The remote that the policy names: as it is called here, where it has a name.
    fn arbiter(&self) -> Result<Option<String>, Error> {
        let address = &self.policy.newest().members.arbiter;
        if address.is_empty() {
            return Ok(None);
        }
        let name = self.repo.remote_at(address)?;
        Ok(Some(name.unwrap_or_else(|| address.clone())))
    }

    /// Takes what the arbiter has; false where the policy names none, or nobody may be asked.
    pub fn ask_arbiter(&self) -> Result<bool, Error> {
        match self.arbiter()? {
            Some(arbiter) if !self.offline => self.ask(&arbiter).map(|()| true),
            _ => Ok(false),
        }
    }

    /// Takes what the arbiter has.
    pub(super) fn ask(&self, arbiter: &str) -> Result<(), Error> {
        sync::take_from(
            self,
            &Wanted {
                remote: arbiter,
                timeout: PATIENCE,
                push: false,
                prefix: None,
            },
        )
    }

    /// Pushes a commit that no ref here names yet, if the arbiter still has `reference` where this
    /// clone saw it.
    pub(super) fn submit(
        &self,
        arbiter: &str,
        reference: &str,
        commit: ObjectId,
    ) -> Result<Submitted, Error> {
        let own = reference
            .strip_prefix(self.layout.prefix())
            .unwrap_or_default();
        let seen = self
            .repo
            .read_ref(&format!("{}{own}", sync::tracking(arbiter)))?;
        // What holds no document gives way, as in a sync.
        if let Some(seen) = seen
            && !growth::is_junk(&self.repo, commit, seen)
            && !self.repo.is_ancestor(seen, commit)?
        {
            return Ok(Submitted::Behind(seen));
        }
        let lease = Lease {
            // It may keep its refs below another prefix; [`Store::ask`] has seen which.
            name: remotes::prefix(&self.repo, arbiter)
                .and_then(|prefix| self.layout.name_at(reference, prefix))
                .unwrap_or_else(|| reference.to_owned()),
            expected: Expected::from(seen),
            new: Some(commit),
        };
        match self.repo.push(arbiter, &[lease], PATIENCE)? {
            PushOutcome::Done => Ok(Submitted::Recorded),
            PushOutcome::Rejected(rejected) if sync::is_race(&rejected) => Ok(Submitted::Raced),
            PushOutcome::Rejected(rejected) => Err(Error::Arbiter {
                arbiter: shown_remote(arbiter),
                why: rejected.why(),
            }),
        }
    }
}
