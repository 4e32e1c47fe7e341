//! Documents that were signed as they should and count no more: their key lost rights, or the version of
//! the policy that they name was set aside. An admin can let in those that are honest.

use super::chain::{self, Folder};
use super::check::{Document, check};
use super::policy::PolicyHistory;
use super::{Error, Store};
use crate::git::Repository;
use crate::model::approval::Approval;
use crate::model::digest::Digest;
use crate::model::event::Event;
use crate::model::grade::Grade;
use crate::model::manifest::{Manifest, Reseal};
use crate::model::object_id::ObjectId;
use crate::model::run::Run;
use std::collections::BTreeSet;

/// Those of one commit. What can't be read, or is not signed, is none.
pub(super) fn in_folder(
    policy: &PolicyHistory,
    repo: &Repository,
    folder: &Folder,
) -> BTreeSet<Digest> {
    fn one<T: Document>(
        policy: &PolicyHistory,
        repo: &Repository,
        folder: &Folder,
    ) -> Option<Digest> {
        let (bytes, signature) = folder.document(repo, T::NAME).ok()??;
        let checked = check::<T>(policy, bytes, signature, None).ok()?;
        checked.reduced?.adoptable()
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
            .collect())
    }
}
