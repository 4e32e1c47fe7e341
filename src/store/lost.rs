//! Documents that were signed as they should and count no more: their key lost rights, or the version of
//! the policy that they name was set aside. An admin can let in those that are honest.

use super::chain::{self, Folder};
use super::check::{Document, Doubt, check};
use super::policy::PolicyHistory;
use super::{Error, Store};
use crate::git::Repository;
use crate::model::approval::Approval;
use crate::model::digest::Digest;
use crate::model::event::Event;
use crate::model::grade::Grade;
use crate::model::ids::{Fingerprint, TaskId};
use crate::model::manifest::{Manifest, Reseal};
use crate::model::object_id::ObjectId;
use crate::model::run::Run;
use std::collections::BTreeSet;

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// Its digest.
    pub document: Digest,
    /// The key that signed it.
    pub key: Fingerprint,
    /// Why it does not count.
    pub doubt: Doubt,
}

/// Those of one commit. What can't be read, or is not signed, is none.
pub(super) fn in_folder(policy: &PolicyHistory, repo: &Repository, folder: &Folder) -> Vec<Lost> {
    fn one<T: Document>(
        policy: &PolicyHistory,
        repo: &Repository,
        folder: &Folder,
    ) -> Option<Lost> {
        let (bytes, signature) = folder.document(repo, T::NAME).ok()??;
        let checked = check::<T>(policy, bytes, signature, None).ok()?;
        let key = checked.value().signer().key.clone();
        let doubt = checked.reduced?;
        let document = doubt.adoptable()?;
        Some(Lost {
            document,
            key,
            doubt,
        })
    }
    let all = [
        one::<Event>(policy, repo, folder),
        one::<Manifest>(policy, repo, folder),
        one::<Reseal>(policy, repo, folder),
        one::<Approval>(policy, repo, folder),
        one::<Run>(policy, repo, folder),
        one::<Grade>(policy, repo, folder),
    ];
    all.into_iter().flatten().collect()
}

impl Store {
    /// Those of a ref here that are not below `known`.
    pub fn lost_on(&self, name: &str, known: Option<ObjectId>) -> Result<BTreeSet<Digest>, Error> {
        let Some(head) = self.repo.read_ref(name)? else {
            return Ok(BTreeSet::new());
        };
        let known = match known.filter(|known| self.repo.has_object(*known)) {
            Some(known) => chain::reach(&self.repo, known)?,
            None => BTreeSet::new(),
        };
        let folders = chain::read(&self.repo, head)?.into_iter();
        let new = folders.filter(|folder| !known.contains(&folder.commit));
        Ok(new
            .flat_map(|folder| in_folder(&self.policy, &self.repo, &folder))
            .map(|lost| lost.document)
            .collect())
    }

    /// Those of live tasks that one of these keys signed. Reads every document.
    pub fn lost_by(&self, keys: &BTreeSet<Fingerprint>) -> Result<Vec<(TaskId, Lost)>, Error> {
        let refs = self.repo.list_refs(self.layout.prefix())?.into_iter();
        let refs = refs.filter_map(|(name, head)| Some((self.layout.owner(&name)?, head)));
        let refs: Vec<(TaskId, ObjectId)> = refs.collect();
        let look = |store: &Self, (task, head): &(TaskId, ObjectId)| {
            // What can't be read is named by others.
            let folders = chain::read(&store.repo, *head).unwrap_or_default();
            let lost = folders.iter();
            let lost = lost.flat_map(|folder| in_folder(&store.policy, &store.repo, folder));
            let own = lost.filter(|lost| keys.contains(&lost.key));
            Ok::<_, Error>(own.map(|lost| (task.clone(), lost)).collect::<Vec<_>>())
        };
        let found = self.map_all(&refs, look, &mut |_| {})?;
        Ok(found.into_iter().flatten().collect())
    }
}
