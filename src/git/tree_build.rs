//! Writing the trees that hold a set of files.

use super::error::Error;
use super::objects::{EntryKind, TreeEntry};
use super::repository::Repository;
use super::trees::Leaf;
use crate::model::object_id::ObjectId;
use std::collections::BTreeMap;

#[derive(Default)]
struct Folder {
    files: BTreeMap<Vec<u8>, Leaf>,
    folders: BTreeMap<Vec<u8>, Self>,
}

impl Repository {
    /// Writes a blob for each file and the trees above them. `files` are (path, executable,
    /// content); a path that is not plain, or both a file and a folder, is an error.
    pub fn write_files<'a>(
        &self,
        files: impl IntoIterator<Item = (&'a str, bool, &'a [u8])>,
    ) -> Result<ObjectId, Error> {
        let mut leaves = BTreeMap::new();
        for (path, executable, content) in files {
            let kind = if executable {
                EntryKind::Executable
            } else {
                EntryKind::Blob
            };
            let id = self.write_blob(content)?;
            leaves.insert(path.as_bytes().to_vec(), Leaf { kind, id });
        }
        self.write_leaves(&leaves)
    }

    /// The tree `tree` with every path that `from_other` means as `other` has it: taken over, or
    /// taken out where it has none.
    pub fn with_paths_from(
        &self,
        tree: ObjectId,
        other: ObjectId,
        from_other: &dyn Fn(&[u8]) -> bool,
    ) -> Result<ObjectId, Error> {
        let mut leaves = self.leaves(tree)?;
        leaves.retain(|path, _| !from_other(path));
        leaves.extend(
            self.leaves(other)?
                .into_iter()
                .filter(|(path, _)| from_other(path)),
        );
        self.write_leaves(&leaves)
    }

    /// Writes the trees above these leaves and returns the root. Paths are checked by component.
    pub(super) fn write_leaves(&self, leaves: &BTreeMap<Vec<u8>, Leaf>) -> Result<ObjectId, Error> {
        let mut root = Folder::default();
        for (path, leaf) in leaves {
            super::names::check_path(path, leaf.kind).map_err(|fault| Error::Path {
                path: path.clone(),
                fault,
            })?;
            let mut folder = &mut root;
            let mut parts = path.split(|byte| *byte == b'/').peekable();
            while let Some(part) = parts.next() {
                if parts.peek().is_some() {
                    folder = folder.folders.entry(part.to_vec()).or_default();
                } else {
                    folder.files.insert(part.to_vec(), *leaf);
                }
            }
        }
        self.write_folder(&root)
    }

    fn write_folder(&self, folder: &Folder) -> Result<ObjectId, Error> {
        let mut entries = Vec::with_capacity(folder.files.len() + folder.folders.len());
        for (name, leaf) in &folder.files {
            entries.push(TreeEntry {
                name: name.clone(),
                kind: leaf.kind,
                id: leaf.id,
            });
        }
        for (name, sub) in &folder.folders {
            entries.push(TreeEntry {
                name: name.clone(),
                kind: EntryKind::Tree,
                id: self.write_folder(sub)?,
            });
        }
        self.write_tree(&entries)
    }
}
