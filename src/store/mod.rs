//! State on refs: where each document lies, how it is read, checked, ordered, folded and appended.
//!
//! Everything read from a ref is doubted until [`check`] has verified signature and authority.
//! Must not know what a stage of the flow does. Formats: `docs/format.md`.

mod arbiter;
pub mod archive;
pub mod chain;
pub mod check;
pub mod dossier;
pub mod draft;
pub mod error;
mod growth;
pub mod high_water;
pub mod holders;
pub mod identity;
pub mod index;
pub mod join;
pub mod layout;
pub mod lost;
pub mod pins;
pub mod policy;
pub mod proposal;
pub mod receive;
pub mod reduce;
pub mod relocate;
pub mod remotes;
pub mod resolve;
pub mod scan;
pub mod sync;
pub mod tasks;
pub mod told;
pub mod write;

pub use error::Error;

use crate::base::clock::Clock;
use crate::git::Repository;
use layout::Layout;
use policy::PolicyHistory;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A repository with its verified policy: what every command that reads state starts from.
#[derive(Debug)]
pub struct Store {
    /// The Git repository.
    pub repo: Repository,
    /// Names of refs.
    pub layout: Layout,
    /// Every version of the policy, verified.
    pub policy: Arc<PolicyHistory>,
    /// The time for new documents.
    pub clock: Clock,
    /// Who hears how far a reading of many tasks is.
    pub heard: Heard,
    /// What came from the arbiter while something was written.
    pub brought: Brought,
    /// Whether no remote may be asked, the arbiter neither.
    pub offline: bool,
}

/// What the arbiter was found to have, until somebody tells it. Copies share it.
#[derive(Debug, Clone, Default)]
pub struct Brought(Arc<Mutex<Vec<sync::Report>>>);

impl Brought {
    pub(crate) fn note(&self, report: sync::Report) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(report);
    }

    /// What came since this was asked last.
    pub fn take(&self) -> Vec<sync::Report> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Who hears how far a reading of many tasks is: how many were read, of how many. Nobody by default.
#[derive(Clone, Default)]
pub struct Heard(Option<Arc<Hears>>);

type Hears = dyn Fn(usize, usize) + Send + Sync;

impl Heard {
    /// Everything is told to `hears`; at the end of a reading both numbers are the same.
    pub fn by(hears: impl Fn(usize, usize) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hears)))
    }

    pub(crate) fn tell(&self, done: usize, of: usize) {
        if let Some(hears) = &self.0 {
            hears(done, of);
        }
    }
}

impl fmt::Debug for Heard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Heard").finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the state of `repo`: loads and verifies the policy chain and holds it against the pin
    /// of this clone. What is pinned already moves on with it; the first pin is [`Self::pin`].
    pub fn open(repo: Repository, clock: Clock) -> Result<Self, Error> {
        let layout = Layout::of(&repo)?;
        let policy = pins::load(&repo, &layout)?;
        // Seen once is seen for ever. A repository that can't be written to is still read.
        let _ = pins::advance(&repo, &policy);
        Ok(Self {
            repo,
            layout,
            policy: Arc::new(policy),
            clock,
            heard: Heard::default(),
            brought: Brought::default(),
            offline: false,
        })
    }

    /// Pins the policy in this clone: for whoever held it against what names it here. A repository that
    /// can't be written to is still read.
    pub fn pin(&self) {
        let _ = pins::record(&self.repo, &self.policy);
    }
}
