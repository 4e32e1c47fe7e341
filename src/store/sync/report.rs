//! What a sync did and what it could not do.

use super::plan::Loss;
use super::tracking;
use crate::git::{self, RemoteTrouble};
use crate::model::digest::Digest;
use crate::model::ids::TaskId;
use crate::model::object_id::ObjectId;
use crate::store::layout::Prefix;
use crate::store::tasks::Fault;
use crate::store::{Error, Store, growth};
use std::collections::{BTreeMap, BTreeSet};

/// What a sync did. Every name is a full local ref name.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Name or address of the remote.
    pub remote: String,
    /// Refs that took what the remote had.
    pub fetched: BTreeSet<String>,
    /// Refs whose heads had gone apart and were joined.
    pub joined: BTreeSet<String>,
    /// Refs that the remote got.
    pub pushed: BTreeSet<String>,
    /// Ended tasks whose refs went from here or from the remote, since an archive holds them.
    pub archived: BTreeSet<TaskId>,
    /// Why archived refs could not be deleted on the remote. They do no harm there.
    pub not_tidied: Option<String>,
    /// What the remote had lost.
    pub losses: BTreeMap<String, Loss>,
    /// What was not applied.
    pub not_applied: Vec<NotApplied>,
    /// What could not be taken of names that nothing here has: it keeps nothing else back.
    pub absent: Vec<Absent>,
    /// Refs under the prefix that this version does not know. They are left alone.
    pub unknown: BTreeSet<String>,
    /// Empty commits that came and are no joins, each with its ref. They mean nothing.
    pub empty: BTreeSet<(String, ObjectId)>,
    /// Another repository's policy that the remote keeps too, and below which prefix.
    pub other: Option<(Prefix, Digest)>,
    /// Whether the remote held nothing of hangar before.
    pub was_empty: bool,
    /// Below which prefix the remote keeps its refs.
    pub prefix: Option<Prefix>,
    /// Refs that the remote keeps below that prefix now and had below the other one before.
    pub moved: usize,
    /// Refs that stay below the other prefix, since they could not be taken.
    pub stayed: usize,
    /// Why nothing was moved to the other prefix although that was asked for.
    pub not_moved: Option<String>,
    /// To where the remote did not let its refs move, where that is what could not be pushed.
    pub move_refused: Option<Prefix>,
    /// Why something could not be pushed.
    pub not_pushed: Option<NotPushed>,
    /// What the remote lacks therefore.
    pub unpublished: BTreeSet<String>,
    /// Whether refs that are locked here are left by now, and no longer waited for.
    pub(super) leaves_locked: bool,
}

/// Why a push did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotPushed {
    /// What the remote or git said.
    pub why: String,
    /// What the remote did; `None` where it took the connection and refused refs.
    pub trouble: Option<RemoteTrouble>,
}

impl NotPushed {
    pub(super) const fn refused(why: String) -> Self {
        Self { why, trouble: None }
    }

    /// Nobody judged it: the remote could not be reached, or let nobody in.
    pub(super) const fn outside(why: String, trouble: RemoteTrouble) -> Self {
        let trouble = Some(trouble);
        Self { why, trouble }
    }
}

/// Something that came and has no effect here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotApplied {
    /// A ref that could not be taken.
    Ref {
        /// Its name.
        name: String,
        /// Why.
        why: String,
        /// Whether what the remote has there was looked at and is none of ours.
        junk: bool,
    },
    /// A ref whose file is locked in this clone. That says nothing about what the remote has.
    Locked {
        /// Its name.
        name: String,
        /// By which file, and what to do.
        why: String,
    },
    /// A ref of a task that is not here yet.
    Pending {
        /// Its name.
        name: String,
    },
    /// An event whose ancestors are not here yet.
    PendingEvent {
        /// Of which task.
        task: TaskId,
        /// The commit that holds it.
        commit: ObjectId,
    },
    /// A document that is not believed.
    Quarantined {
        /// Of which task.
        task: TaskId,
        /// What and why.
        fault: Fault,
    },
    /// A change that had no effect: its signer had no right to it, or the task's state forbids it.
    Refused {
        /// Of which task.
        task: TaskId,
        /// Digest of the event.
        event: Digest,
        /// Why.
        why: String,
        /// Whether an admin can let the event count all the same.
        adoptable: bool,
    },
}

/// A ref of the remote that can't be taken, and of which there is nothing here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absent {
    /// Its name, and why.
    pub what: NotApplied,
    /// What the remote shows, where it could be fetched.
    pub object: Option<ObjectId>,
}

impl NotApplied {
    /// The ref, where a whole one was left.
    pub fn ref_name(&self) -> Option<&str> {
        match self {
            Self::Ref { name, .. } | Self::Locked { name, .. } | Self::Pending { name } => {
                Some(name)
            }
            _ => None,
        }
    }
}

impl Store {
    /// Whether an object that a remote shows holds nothing that may be a document of ours.
    pub fn holds_nothing(&self, object: ObjectId) -> bool {
        growth::holds_nothing(&self.repo, object)
    }
}

impl Report {
    pub(super) fn new(remote: &str) -> Self {
        Self {
            remote: remote.to_owned(),
            ..Self::default()
        }
    }

    /// A round looks at everything that is not applied anew.
    pub(super) fn begin_round(&mut self) {
        self.not_applied.retain(|one| one.ref_name().is_none());
    }

    /// A ref that stays as it was since its file is locked here, and by what.
    pub(super) fn locked(&mut self, name: &str, busy: &git::Error) {
        self.not_applied.push(NotApplied::Locked {
            name: name.to_owned(),
            why: format!(
                "{busy}; where no git and no hangar runs in this clone, a stopped one left that file: take it away, then run `hangar sync` again"
            ),
        });
    }

    /// Whether a ref of the remote is left as it is only because its file is locked here.
    pub fn is_locked(&self, name: &str) -> bool {
        let mut all = self.not_applied.iter();
        all.any(|one| matches!(one, NotApplied::Locked { name: own, .. } if own == name))
    }

    /// Why this ref could not be pushed although the remote refused nothing.
    pub fn why_barred(&self, name: &str) -> String {
        let remote = git::shown_remote(&self.remote);
        if self.is_locked(name) {
            return format!(
                "{name} is locked in this clone, so what {remote} has of it was not taken"
            );
        }
        format!("what {remote} has in place of {name} can't be taken")
    }

    /// A ref that stays as it was here, and why.
    pub(super) fn not_taken(&mut self, name: &str, error: &Error) {
        self.not_applied.push(NotApplied::Ref {
            name: name.to_owned(),
            why: match error {
                Error::NewerPolicy { version, .. } => format!(
                    "{error}: somebody put the policy there back, or it is still to come; `hangar sync` in a clone that has version {version} brings it, then run it here again"
                ),
                error => error.to_string(),
            },
            junk: error.tells_of_junk(),
        });
    }

    /// Empty commits that came with a ref.
    pub(super) fn empty(&mut self, name: &str, commits: Vec<ObjectId>) {
        let one = |commit| (name.to_owned(), commit);
        self.empty.extend(commits.into_iter().map(one));
    }

    /// What somebody had put in place of a ref of the remote is gone: the ref is there again.
    pub(super) fn put_back(&mut self, name: &str) {
        self.not_applied
            .retain(|one| !matches!(one, NotApplied::Ref { name: own, .. } if own == name));
        self.losses.insert(name.to_owned(), Loss::Replaced);
    }

    /// Parts what keeps something back from what does not, at the end of a sync.
    pub(super) fn part(&mut self, store: &Store) -> Result<(), Error> {
        let place = tracking(&self.remote);
        for one in std::mem::take(&mut self.not_applied) {
            let own = match one.ref_name() {
                // It is not known what the remote has.
                _ if matches!(one, NotApplied::Locked { .. }) => None,
                Some(name) if store.repo.read_ref(name)?.is_none() => store.layout.own(name),
                _ => None,
            };
            match own {
                Some(own) => {
                    let object = store.repo.read_ref(&format!("{place}{own}"))?;
                    self.absent.push(Absent { what: one, object });
                }
                None => self.not_applied.push(one),
            }
        }
        Ok(())
    }

    /// Whether a ref of the remote is left as it is because it could not be taken.
    pub(super) fn leaves(&self, name: &str) -> bool {
        let mut all = self.not_applied.iter();
        all.any(|one| one.ref_name() == Some(name))
    }

    /// Whether both sides hold the same and everything that came has its effect.
    pub fn is_whole(&self) -> bool {
        self.not_applied.is_empty() && self.not_pushed.is_none() && self.not_moved.is_none()
    }
}
