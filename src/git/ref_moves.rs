//! Many refs at a time, each for itself: one that is elsewhere than expected keeps no other back.
//!
//! What a ref at a time costs is the disk: each waits for its own file to be on it. Here all of them
//! are locked and written first, one sync puts them on disk, and then each takes its place. A process
//! that is killed in between leaves every ref as it was or moved. Must not know what a ref is for.

use super::durable::SYNC_EACH;
use super::error::Error;
use super::patience::Patience;
use super::refs::{Expected, Failure, commit, edit, full_name};
use super::repository::Repository;
use crate::model::object_id::ObjectId;
use gix::lock::acquire::Fail;
use gix::refs::FullName;
use std::collections::{BTreeMap, BTreeSet};

/// One ref that moves, or comes into being.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefMove {
    /// Full name.
    pub name: String,
    /// Where it must be.
    pub expected: Expected,
    /// What it becomes.
    pub new: ObjectId,
}

/// Those that stayed as they are.
#[derive(Debug, Default)]
pub struct Stayed {
    /// They are elsewhere than expected.
    pub elsewhere: BTreeSet<String>,
    /// Their lock was held all the time; each with [`Error::Busy`].
    pub locked: Vec<(String, Error)>,
}

/// One that was not decided yet.
type Open<'a> = (FullName, &'a RefMove);

impl Repository {
    /// Moves each of these refs that is where the caller expects it and that nobody holds the lock of, and
    /// gives the others, which stay as they are. No name stands twice. Waits a few seconds for a lock.
    ///
    /// The objects and everything written through this value are on disk before a ref names them; the
    /// refs themselves are on disk when this returns.
    pub fn move_refs(&self, moves: &[RefMove], message: &str) -> Result<Stayed, Error> {
        let mut open: Vec<Open<'_>> = Vec::with_capacity(moves.len());
        for one in moves {
            if !self.has_object(one.new) {
                return Err(self.gone(one.new, None));
            }
            open.push((full_name(&one.name)?, one));
        }
        let mut stayed = Stayed::default();
        self.leave_out_lost(&mut open, &mut stayed.elsewhere)?;
        for (_, one) in open
            .iter()
            .filter(|(_, one)| one.expected == Expected::Absent)
        {
            self.check_free(&one.name)?;
        }
        let new: Vec<_> = open.iter().map(|(_, one)| one.new).collect();
        self.sync_objects(&new)?;
        let mut patience = Patience::default();
        while !open.is_empty() {
            match self.try_moves(&open, message) {
                Ok(()) => break,
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Locked) if patience.wait(self) => {}
                Err(Failure::Locked) => {
                    self.leave_out_held(&mut open, &mut stayed.locked)?;
                    patience = Patience::default();
                }
            }
            // Somebody moved one of them, or holds its lock.
            self.leave_out_lost(&mut open, &mut stayed.elsewhere)?;
        }
        Ok(stayed)
    }

    /// Takes those out whose lock somebody holds. An error where it is another lock that keeps all of them.
    fn leave_out_held(
        &self,
        open: &mut Vec<Open<'_>>,
        locked: &mut Vec<(String, Error)>,
    ) -> Result<(), Error> {
        let before = open.len();
        open.retain(|(name, one)| {
            let is_free = self.held(&[name]).is_none();
            if !is_free {
                locked.push((one.name.clone(), self.busy(&[name])));
            }
            is_free
        });
        if open.len() == before {
            return Err(self.busy(&names(open)));
        }
        Ok(())
    }

    /// Takes those out that are elsewhere than expected.
    fn leave_out_lost(
        &self,
        open: &mut Vec<Open<'_>>,
        lost: &mut BTreeSet<String>,
    ) -> Result<(), Error> {
        self.refresh_packed(false)?;
        let mut still = Vec::with_capacity(open.len());
        for (name, one) in open.drain(..) {
            match self.check_expected(&name, one.expected) {
                Ok(()) => still.push((name, one)),
                Err(Error::Conflict { name, .. }) => drop(lost.insert(name)),
                Err(error) => return Err(error),
            }
        }
        *open = still;
        Ok(())
    }

    /// Moves all of them, or none and says that it is worth another try.
    fn try_moves(&self, open: &[Open<'_>], message: &str) -> Result<(), Failure> {
        let Some(guard) = self.try_guard()? else {
            return Err(Failure::Locked);
        };
        let becomes = open.iter().map(|(name, one)| (name, Some(one.new)));
        guard.note(&self.future_locks(becomes))?;
        let edits = open.iter();
        let edits =
            edits.filter_map(|(name, one)| edit(name, one.expected, Some(one.new), message));
        let transaction = self.inner.refs.transaction();
        let transaction = match transaction.prepare(edits, Fail::Immediately, Fail::Immediately) {
            Ok(transaction) => transaction,
            Err(error) => {
                guard.clear()?;
                self.refresh_packed(true)?;
                for (name, one) in open {
                    match self.check_expected(name, one.expected) {
                        Ok(()) => {}
                        Err(Error::Conflict { .. }) => return Err(Failure::Locked),
                        Err(error) => return Err(error.into()),
                    }
                }
                return Err(match open {
                    [] => Failure::Locked,
                    [(name, _), ..] => {
                        self.classify(self.held(&names(open)).unwrap_or(name), &error)
                    }
                });
            }
        };
        // The locks are ours: what is read now stays.
        self.refresh_packed(true)?;
        let ready = open
            .iter()
            .try_for_each(|(name, one)| self.check_expected(name, one.expected))
            .and_then(|()| self.sync_locks(open));
        if let Err(error) = ready {
            transaction.rollback();
            guard.clear()?;
            return Err(match error {
                Error::Conflict { .. } => Failure::Locked,
                other => other.into(),
            });
        }
        commit(transaction)?;
        guard.done()?;
        // A sync of one ref's folder is one of all that lie in it.
        let folder = |name: &FullName| {
            let text = name.as_bstr().to_string();
            text.rsplit_once('/').map(|(folder, _)| folder.to_owned())
        };
        let folders: BTreeMap<_, _> = open.iter().map(|(name, _)| (folder(name), name)).collect();
        for name in folders.into_values() {
            self.sync_ref_folder(name)?;
        }
        Ok(())
    }

    /// The lock files become the refs by a rename; their content must be on disk before.
    fn sync_locks(&self, open: &[Open<'_>]) -> Result<(), Error> {
        if open.len() <= SYNC_EACH {
            return open.iter().try_for_each(|(name, _)| self.sync_lock(name));
        }
        self.sync_everything()
    }
}

fn names<'a>(open: &'a [Open<'_>]) -> Vec<&'a FullName> {
    open.iter().map(|(name, _)| name).collect()
}
