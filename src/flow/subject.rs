//! A patch as what it makes of a base: the two trees, their listings, the patch id.

use super::Error;
use crate::git::{EntryKind, Repository};
use crate::model::digest::Digest;
use crate::model::grade;
use crate::model::listing::{Change, Listing, changes, patch_id};
use crate::model::object_id::ObjectId;
use std::collections::BTreeMap;

/// Largest file that is read, in bytes.
const MAX_BLOB: u64 = 256 << 20;
/// Longest link, in bytes.
const MAX_LINK: u64 = 4096;

/// Base and result.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The base commit.
    pub base: ObjectId,
    /// Its tree.
    pub base_tree: ObjectId,
    /// The tree of base + patch.
    pub tree: ObjectId,
    /// Files of the base.
    pub base_listing: Listing,
    /// Files of base + patch.
    pub listing: Listing,
    /// The change apart from what stays.
    pub patch: Digest,
}

impl Subject {
    /// Reads both trees. A patch that adds or moves a submodule is refused: nothing here could
    /// test what is in it.
    pub fn new(repo: &Repository, base: ObjectId, tree: ObjectId) -> Result<Self, Error> {
        let base_tree = repo.read_commit(base)?.tree;
        let (before, after) = (repo.listing(base_tree)?, repo.listing(tree)?);
        if before.gitlinks != after.gitlinks {
            return Err(Error::refused(
                "the patch changes submodules",
                "leave `.gitmodules` and submodule commits as they are in the base",
            ));
        }
        let patch = patch_id(&before.listing, &after.listing);
        Ok(Self {
            base,
            base_tree,
            tree,
            base_listing: before.listing,
            listing: after.listing,
            patch,
        })
    }

    /// What the patch does, by path.
    pub fn changes(&self) -> BTreeMap<Vec<u8>, Change> {
        changes(&self.base_listing, &self.listing)
    }

    /// The text of a link of the base.
    pub fn base_link(&self, repo: &Repository, path: &[u8]) -> Option<Vec<u8>> {
        let path = std::str::from_utf8(path).ok()?;
        repo.link_at(self.base, path, MAX_LINK).ok().flatten()
    }

    /// The subject table of a grade.
    pub fn table(&self) -> grade::Subject {
        grade::Subject {
            base: self.base,
            base_listing: self.base_listing.digest(),
            tree: self.tree,
            listing: self.listing.digest(),
            patch: self.patch,
        }
    }

    /// The content of every file that the patch adds or changes.
    pub fn changed_contents(&self, repo: &Repository) -> Result<Vec<Vec<u8>>, Error> {
        let changed = self.changes();
        let mut contents = Vec::new();
        let wanted = |path: &[u8]| changed.contains_key(path);
        each_content(repo, self.tree, wanted, |content| {
            contents.push(content);
            true
        })?;
        Ok(contents)
    }

    /// Hands out the content of every file of the base, until it is told to stop.
    pub fn each_content_of_base(
        &self,
        repo: &Repository,
        mut with: impl FnMut(&[u8]) -> bool,
    ) -> Result<(), Error> {
        each_content(repo, self.base_tree, |_| true, |content| with(&content))
    }
}

/// Hands out the content of the files of a tree whose paths are wanted, until it is told to stop.
fn each_content(
    repo: &Repository,
    tree: ObjectId,
    wanted: impl Fn(&[u8]) -> bool,
    mut with: impl FnMut(Vec<u8>) -> bool,
) -> Result<(), Error> {
    let mut open = vec![(Vec::new(), tree)];
    while let Some((folder, tree)) = open.pop() {
        for entry in repo.read_tree(tree)? {
            let mut path: Vec<u8> = folder.clone();
            path.extend(&entry.name);
            match entry.kind {
                EntryKind::Tree => {
                    path.push(b'/');
                    open.push((path, entry.id));
                }
                EntryKind::Gitlink => {}
                EntryKind::Blob | EntryKind::Executable | EntryKind::Link => {
                    if wanted(&path) && !with(repo.read_blob(entry.id, MAX_BLOB)?) {
                        return Ok(());
                    }
                }
            }
        }
    }
    Ok(())
}
