//! Listings of trees, read and hashed once each.

use crate::git::{self, Repository, TreeFiles};
use crate::model::object_id::ObjectId;
use std::collections::HashMap;
use std::rc::Rc;

/// Trees that were read.
#[derive(Debug)]
pub(super) struct Trees<'a> {
    repo: &'a Repository,
    known: HashMap<ObjectId, Rc<TreeFiles>>,
}

impl<'a> Trees<'a> {
    pub(super) fn new(repo: &'a Repository) -> Self {
        Self {
            repo,
            known: HashMap::new(),
        }
    }

    /// Every file of a tree.
    pub(super) fn files(&mut self, tree: ObjectId) -> Result<Rc<TreeFiles>, git::Error> {
        if let Some(files) = self.known.get(&tree) {
            return Ok(Rc::clone(files));
        }
        let files = Rc::new(self.repo.listing(tree)?);
        self.known.insert(tree, Rc::clone(&files));
        Ok(files)
    }

    /// Every file of a commit's tree.
    pub(super) fn files_of(&mut self, commit: ObjectId) -> Result<Rc<TreeFiles>, git::Error> {
        let tree = self.repo.read_commit(commit)?.tree;
        self.files(tree)
    }
}
