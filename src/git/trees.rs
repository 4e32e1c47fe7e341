//! Whole trees: every file with its digest, and what is not a file.

use super::error::{Error, PathFault};
use super::names::MAX_DEPTH;
use super::objects::{EntryKind, MAX_OBJECT, TreeEntry};
use super::repository::Repository;
use crate::model::listing::{Entry, Listing, Mode};
use crate::model::object_id::ObjectId;
use std::collections::{BTreeMap, HashMap, hash_map};

/// Most entries of a tree that a walk visits. A tree that holds itself often (a "tree bomb") ends
/// here.
const MAX_ENTRIES: usize = 2_000_000;

/// A submodule: a commit of another repository, opaque to hangar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gitlink {
    /// Where it is mounted.
    pub path: Vec<u8>,
    /// The commit it names.
    pub commit: ObjectId,
}

/// What a tree holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeFiles {
    /// Files and symbolic links, by the bytes that are stored.
    pub listing: Listing,
    /// Submodules, which no listing counts.
    pub gitlinks: Vec<Gitlink>,
}

/// A file, link or submodule with its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Leaf {
    pub(super) kind: EntryKind,
    pub(super) id: ObjectId,
}

impl Repository {
    /// Every file of `tree` with the SHA-256 of its stored bytes: no filter, attribute or line
    /// ending rule is applied.
    pub fn listing(&self, tree: ObjectId) -> Result<TreeFiles, Error> {
        let mut out = TreeFiles::default();
        let mut known: HashMap<ObjectId, (u64, crate::model::digest::Digest)> = HashMap::new();
        for (path, leaf) in self.leaves(tree)? {
            let Some(mode) = mode(leaf.kind) else {
                out.gitlinks.push(Gitlink {
                    path,
                    commit: leaf.id,
                });
                continue;
            };
            let (len, sha256) = if let Some(known) = known.get(&leaf.id) {
                *known
            } else {
                let content = self.read_blob(leaf.id, MAX_OBJECT)?;
                let entry = Entry::of(mode, &content);
                known.insert(leaf.id, (entry.len, entry.sha256));
                (entry.len, entry.sha256)
            };
            out.listing.insert(path, Entry { mode, len, sha256 });
        }
        Ok(out)
    }

    /// Files, links and submodules of a tree by path, without reading their content.
    pub(super) fn leaves(&self, tree: ObjectId) -> Result<BTreeMap<Vec<u8>, Leaf>, Error> {
        let mut out = BTreeMap::new();
        let mut trees: HashMap<ObjectId, Vec<TreeEntry>> = HashMap::new();
        let mut visited = 0;
        let mut todo = vec![(Vec::new(), tree, 0)];
        while let Some((prefix, id, depth)) = todo.pop() {
            if depth >= MAX_DEPTH {
                return Err(Error::Path {
                    path: prefix,
                    fault: PathFault::TooDeep,
                });
            }
            let entries = match trees.entry(id) {
                hash_map::Entry::Occupied(known) => known.into_mut(),
                hash_map::Entry::Vacant(new) => new.insert(self.read_tree(id)?),
            };
            visited += entries.len();
            if visited > MAX_ENTRIES {
                return Err(Error::TooLarge {
                    what: format!("the tree {tree}"),
                    limit: format!("{MAX_ENTRIES} entries"),
                });
            }
            for entry in entries.iter() {
                let mut path = prefix.clone();
                if !prefix.is_empty() {
                    path.push(b'/');
                }
                path.extend_from_slice(&entry.name);
                if entry.kind == EntryKind::Tree {
                    todo.push((path, entry.id, depth + 1));
                    continue;
                }
                let leaf = Leaf {
                    kind: entry.kind,
                    id: entry.id,
                };
                // A tree that names a path twice means different things to different readers.
                if out.insert(path.clone(), leaf).is_some() {
                    return Err(Error::Path {
                        path: path.clone(),
                        fault: PathFault::Collision(path),
                    });
                }
            }
        }
        Ok(out)
    }
}

/// The mode that a listing counts; `None` for what is not a file.
pub(super) fn mode(kind: EntryKind) -> Option<Mode> {
    match kind {
        EntryKind::Blob => Some(Mode::Regular),
        EntryKind::Executable => Some(Mode::Executable),
        EntryKind::Link => Some(Mode::Symlink),
        EntryKind::Tree | EntryKind::Gitlink => None,
    }
}
