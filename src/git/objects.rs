//! Reading and writing single objects.

use super::error::{Absence, Error, PathFault, damaged, show, store};
use super::names::check_component;
use super::repository::{Repository, from_gix, to_gix};
use crate::model::object_id::ObjectId;
use gix::bstr::ByteSlice as _;
use std::collections::BTreeSet;

/// Largest object that is read into memory, in bytes.
pub(super) const MAX_OBJECT: u64 = 1 << 30;
/// Largest commit that is read, in bytes.
const MAX_COMMIT: u64 = 16 << 20;

/// What a tree entry names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EntryKind {
    /// A file (100644).
    Blob,
    /// An executable file (100755).
    Executable,
    /// A symbolic link (120000).
    Link,
    /// A folder (040000).
    Tree,
    /// The commit of a submodule (160000).
    Gitlink,
}

/// One line of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    /// One path component, raw bytes.
    pub name: Vec<u8>,
    /// What it names.
    pub kind: EntryKind,
    /// The object.
    pub id: ObjectId,
}

/// A commit as it is stored. All of it is untrusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// The root tree.
    pub tree: ObjectId,
    /// Parents, in their order.
    pub parents: Vec<ObjectId>,
    /// The message, raw bytes.
    pub message: Vec<u8>,
}

/// A commit to be written. Equal drafts give equal ids, on every machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitDraft {
    /// The root tree.
    pub tree: ObjectId,
    /// Parents, in this order.
    pub parents: Vec<ObjectId>,
    /// Name of author and committer.
    pub author_name: String,
    /// Mail address of author and committer.
    pub author_email: String,
    /// Seconds since 1970, UTC.
    pub time_seconds: i64,
    /// The message.
    pub message: String,
}

impl Repository {
    /// Writes a blob.
    pub fn write_blob(&self, content: &[u8]) -> Result<ObjectId, Error> {
        let id = self
            .inner
            .write_blob(content)
            .map_err(store("write a blob"))?;
        Ok(self.written(id.detach()))
    }

    /// The id that `content` has as a blob, without writing it.
    pub(super) fn blob_id(&self, content: &[u8]) -> Result<ObjectId, Error> {
        gix::objs::compute_hash(self.inner.object_hash(), gix::objs::Kind::Blob, content)
            .map(from_gix)
            .map_err(store("hash a blob"))
    }

    /// Writes a tree. Entries may come in any order; a name twice, or one that
    /// [`check_component`] refuses, is an error.
    pub fn write_tree(&self, entries: &[TreeEntry]) -> Result<ObjectId, Error> {
        let mut names = BTreeSet::new();
        let mut out = Vec::with_capacity(entries.len());
        for entry in entries {
            let refuse = |fault| Error::Path {
                path: entry.name.clone(),
                fault,
            };
            check_component(&entry.name, entry.kind).map_err(refuse)?;
            if !names.insert(&entry.name) {
                return Err(refuse(PathFault::Collision(entry.name.clone())));
            }
            out.push(gix::objs::tree::Entry {
                mode: kind_to_gix(entry.kind).into(),
                filename: entry.name.clone().into(),
                oid: to_gix(entry.id),
            });
        }
        out.sort();
        let tree = gix::objs::Tree { entries: out };
        let id = self
            .inner
            .write_object(&tree)
            .map_err(store("write a tree"))?;
        Ok(self.written(id.detach()))
    }

    /// Writes a commit with the same author and committer. No signature, no encoding header.
    pub fn write_commit(&self, draft: &CommitDraft) -> Result<ObjectId, Error> {
        let clean = |text: &str| -> String {
            // What a signature line cannot hold.
            text.chars()
                .filter(|c| !c.is_control() && *c != '<' && *c != '>')
                .collect()
        };
        let who = gix::actor::Signature {
            name: clean(&draft.author_name).trim().into(),
            email: clean(&draft.author_email).trim().into(),
            // Git knows no time before 1970 and calls such a commit damaged.
            time: gix::date::Time::new(draft.time_seconds.max(0), 0),
        };
        let commit = gix::objs::Commit {
            tree: to_gix(draft.tree),
            parents: draft.parents.iter().copied().map(to_gix).collect(),
            author: who.clone(),
            committer: who,
            encoding: None,
            message: draft.message.replace('\0', "").into(),
            extra_headers: Vec::new(),
        };
        let id = self
            .inner
            .write_object(&commit)
            .map_err(store("write a commit"))?;
        Ok(self.written(id.detach()))
    }

    /// The content of a blob of at most `limit` bytes.
    pub fn read_blob(&self, id: ObjectId, limit: u64) -> Result<Vec<u8>, Error> {
        self.read(id, gix::objs::Kind::Blob, limit)
    }

    /// Reads a commit.
    pub fn read_commit(&self, id: ObjectId) -> Result<Commit, Error> {
        let data = self.read(id, gix::objs::Kind::Commit, MAX_COMMIT)?;
        let commit = gix::objs::CommitRef::from_bytes(&data, self.inner.object_hash())
            .map_err(damaged(id, "it is no commit"))?;
        Ok(Commit {
            tree: from_gix(commit.tree()),
            parents: commit.parents().map(from_gix).collect(),
            message: commit.message.to_vec(),
        })
    }

    /// Reads one tree, without its subtrees, in Git's order.
    pub fn read_tree(&self, id: ObjectId) -> Result<Vec<TreeEntry>, Error> {
        let data = self.read(id, gix::objs::Kind::Tree, MAX_OBJECT)?;
        let mut out = Vec::new();
        for entry in gix::objs::TreeRefIter::from_bytes(&data, self.inner.object_hash()) {
            let entry = entry.map_err(damaged(id, "it is no tree"))?;
            out.push(TreeEntry {
                name: entry.filename.to_vec(),
                kind: kind_from_gix(entry.mode.kind()),
                id: from_gix(entry.oid),
            });
        }
        Ok(out)
    }

    /// The content of the file at `path` in a commit; `None` when nothing is there. A folder, a
    /// link or a submodule there is an error: it is never followed.
    pub fn blob_at(
        &self,
        commit: ObjectId,
        path: &str,
        limit: u64,
    ) -> Result<Option<Vec<u8>>, Error> {
        self.blob_in(self.read_commit(commit)?.tree, path, limit)
    }

    /// The same in a tree.
    pub fn blob_in(
        &self,
        tree: ObjectId,
        path: &str,
        limit: u64,
    ) -> Result<Option<Vec<u8>>, Error> {
        match self.entry_in(tree, path)? {
            None => Ok(None),
            Some(entry) if matches!(entry.kind, EntryKind::Blob | EntryKind::Executable) => {
                self.read_blob(entry.id, limit).map(Some)
            }
            Some(_) => Err(Error::Invalid {
                what: "path",
                name: show(path.as_bytes()),
                why: "is not a regular file",
            }),
        }
    }

    /// The text of the symbolic link at `path` in a commit; `None` where none is there.
    pub fn link_at(
        &self,
        commit: ObjectId,
        path: &str,
        limit: u64,
    ) -> Result<Option<Vec<u8>>, Error> {
        let entry = self.entry_in(self.read_commit(commit)?.tree, path)?;
        let link = entry.filter(|entry| entry.kind == EntryKind::Link);
        link.map(|link| self.read_blob(link.id, limit)).transpose()
    }

    fn entry_in(&self, mut tree: ObjectId, path: &str) -> Result<Option<TreeEntry>, Error> {
        let mut parts = path.split('/').peekable();
        while let Some(part) = parts.next() {
            let mut entries = self.read_tree(tree)?.into_iter();
            let entry = entries.find(|entry| entry.name == part.as_bytes());
            match entry {
                Some(entry) if parts.peek().is_some() && entry.kind == EntryKind::Tree => {
                    tree = entry.id;
                }
                _ if parts.peek().is_some() => return Ok(None),
                entry => return Ok(entry),
            }
        }
        Ok(None)
    }

    /// Whether the object is in the database.
    pub fn has_object(&self, id: ObjectId) -> bool {
        self.inner.has_object(to_gix(id))
    }

    /// Whether this clone leaves out objects that its remote promised (`git clone --filter`).
    pub fn is_partial(&self) -> bool {
        let names = self.remote_names().into_iter();
        let mut promisors = names.map(|name| format!("remote.{name}.promisor"));
        self.config_value("extensions.partialClone").is_some()
            || promisors.any(|key| self.config_value(&key).is_some_and(|value| value == "true"))
    }

    /// That an object is not here, and what explains it.
    pub(super) fn gone(&self, id: ObjectId, kind: Option<gix::objs::Kind>) -> Error {
        let absence = if self.is_partial() {
            Absence::Partial
        } else if kind == Some(gix::objs::Kind::Commit) && self.is_shallow() {
            Absence::Shallow
        } else {
            Absence::Lost
        };
        Error::Gone { id, absence }
    }

    fn read(&self, id: ObjectId, kind: gix::objs::Kind, limit: u64) -> Result<Vec<u8>, Error> {
        let missing = || self.gone(id, Some(kind));
        if id.as_bytes().len() != self.inner.object_hash().len_in_bytes() {
            return Err(missing());
        }
        let checked = |found: gix::objs::Kind, size: u64| {
            if found != kind {
                return Err(Error::Damaged {
                    id,
                    fault: format!("is a {found}, not a {kind}"),
                });
            }
            if size > limit {
                return Err(Error::TooLarge {
                    what: format!("the object {id}"),
                    limit: format!("{limit} bytes"),
                });
            }
            Ok(())
        };
        // Objects that were written together lie together.
        if self.loose.get()
            && let Some(found) = self.small_loose(id)
        {
            checked(found.kind, found.data.len() as u64)?;
            return Ok(found.data);
        }
        let gix_id = to_gix(id);
        let header = self
            .inner
            .try_find_header(gix_id)
            .map_err(damaged(id, "it can't be read"))?
            .ok_or_else(missing)?;
        let is_loose = matches!(header, gix::odb::find::Header::Loose { .. });
        self.loose.set(is_loose);
        checked(header.kind(), header.size())?;
        let mut object = self
            .inner
            .find_object(gix_id)
            .map_err(damaged(id, "it can't be read"))?;
        Ok(std::mem::take(&mut object.data))
    }
}

/// An object that was read.
pub(super) struct Found {
    pub(super) kind: gix::objs::Kind,
    pub(super) data: Vec<u8>,
}

/// Whether `content` is a usable target of a symbolic link.
pub(super) fn check_link_target(content: &[u8]) -> Result<(), PathFault> {
    if content.is_empty() || content.len() > 4095 || content.find_byte(0).is_some() {
        return Err(PathFault::LinkTarget);
    }
    Ok(())
}

fn kind_to_gix(kind: EntryKind) -> gix::objs::tree::EntryKind {
    match kind {
        EntryKind::Blob => gix::objs::tree::EntryKind::Blob,
        EntryKind::Executable => gix::objs::tree::EntryKind::BlobExecutable,
        EntryKind::Link => gix::objs::tree::EntryKind::Link,
        EntryKind::Tree => gix::objs::tree::EntryKind::Tree,
        EntryKind::Gitlink => gix::objs::tree::EntryKind::Commit,
    }
}

fn kind_from_gix(kind: gix::objs::tree::EntryKind) -> EntryKind {
    match kind {
        gix::objs::tree::EntryKind::Blob => EntryKind::Blob,
        gix::objs::tree::EntryKind::BlobExecutable => EntryKind::Executable,
        gix::objs::tree::EntryKind::Link => EntryKind::Link,
        gix::objs::tree::EntryKind::Tree => EntryKind::Tree,
        gix::objs::tree::EntryKind::Commit => EntryKind::Gitlink,
    }
}
