//! Commits of a ref as folders of documents.
//!
//! A commit's tree holds what one command wrote; parents only make the history reachable. Author,
//! date, message and parents decide nothing. A commit with an empty tree says nothing: it is a join of two
//! heads, or somebody else's.

use super::{Error, high_water};
use crate::git::{self, Commit, CommitDraft, EntryKind, Expected, Repository, TreeEntry};
use crate::model::codec;
use crate::model::digest::Digest;
use crate::model::object_id::ObjectId;
use crate::{seal, trust};
use std::collections::{BTreeMap, BTreeSet};

/// Most commits of one ref that are read.
pub const MAX_COMMITS: usize = 100_000;
/// Largest file of a commit: that of a ciphertext.
pub(super) const MAX_FILE: u64 = seal::MAX_CIPHERTEXT as u64;
/// Largest signature file.
pub(super) const MAX_SIGNATURE: u64 = trust::MAX_SIGNATURE as u64;

/// A document's bytes and its signature, empty where there is none.
pub type SignedBytes = (Vec<u8>, Vec<u8>);

/// One commit that holds documents.
#[derive(Debug, Clone)]
pub struct Folder {
    /// The commit.
    pub commit: ObjectId,
    /// Names in its tree.
    entries: BTreeMap<String, (EntryKind, ObjectId)>,
}

impl Folder {
    /// Names in the tree, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// The object called `name`.
    pub fn object(&self, name: &str) -> Option<ObjectId> {
        self.entries.get(name).map(|(_, id)| *id)
    }

    /// The bytes of the file `name`.
    pub fn file(&self, repo: &Repository, name: &str) -> Result<Option<Vec<u8>>, Error> {
        self.file_up_to(repo, name, MAX_FILE)
    }

    fn file_up_to(
        &self,
        repo: &Repository,
        name: &str,
        most: u64,
    ) -> Result<Option<Vec<u8>>, Error> {
        match self.entries.get(name) {
            Some((EntryKind::Blob, id)) => Ok(Some(repo.read_blob(*id, most)?)),
            _ => Ok(None),
        }
    }

    /// A document and its detached signature: `NAME.toml` and `NAME.sig`. One that is larger than the
    /// format allows comes back empty: it is not believed, and keeps nothing else from being read.
    pub fn document(&self, repo: &Repository, name: &str) -> Result<Option<SignedBytes>, Error> {
        let read = |file: String, most| match self.file_up_to(repo, &file, most) {
            Err(Error::Git(git::Error::TooLarge { .. })) => Ok(Some(Vec::new())),
            other => other,
        };
        let bytes = read(format!("{name}.toml"), codec::MAX_BYTES as u64)?;
        let signature = read(format!("{name}.sig"), MAX_SIGNATURE)?;
        Ok(bytes.map(|bytes| (bytes, signature.unwrap_or_default())))
    }
}

impl Folder {
    /// Takes in what lies beside a copy of the same document: files that the document names by these
    /// digests, or that their own names do, and the tree that it names. What is here and right already stays.
    pub fn take_in(
        &mut self,
        copy: &Self,
        repo: &Repository,
        named: &[Digest],
        tree: Option<ObjectId>,
    ) -> Result<(), Error> {
        let right = |name: &str, kind: EntryKind, id: ObjectId| {
            Ok::<_, Error>(match kind {
                EntryKind::Tree => tree == Some(id),
                EntryKind::Blob => match repo.read_blob(id, MAX_FILE) {
                    Ok(bytes) => {
                        let digest = Digest::of(&bytes);
                        named.contains(&digest) || digest.hex() == name
                    }
                    // Nothing that a document names is so large: it keeps nothing else from being read.
                    Err(git::Error::TooLarge { .. }) => false,
                    Err(error) => return Err(error.into()),
                },
                _ => false,
            })
        };
        for (name, (kind, id)) in &copy.entries {
            let here = match self.entries.get(name) {
                Some((_, own)) if own == id => continue,
                Some((kind, own)) => right(name, *kind, *own)?,
                None => false,
            };
            if !here && right(name, *kind, *id)? {
                self.entries.insert(name.clone(), (*kind, *id));
            }
        }
        Ok(())
    }
}

/// Every commit with documents that `head` reaches, parents before children.
pub fn read(repo: &Repository, head: ObjectId) -> Result<Vec<Folder>, Error> {
    read_up_to(repo, head, MAX_COMMITS)
}

/// The same for a ref that is never longer than `most` commits.
pub(super) fn read_up_to(
    repo: &Repository,
    head: ObjectId,
    most: usize,
) -> Result<Vec<Folder>, Error> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    // Depth first; a commit is taken once everything above it was.
    let mut open = vec![Visit::Enter(head, None)];
    while let Some(visit) = open.pop() {
        match visit {
            Visit::Leave(folder) => found.push(folder),
            Visit::Enter(id, _) if !seen.insert(id) => {}
            Visit::Enter(id, child) => {
                if seen.len() > most {
                    return Err(Error::Document {
                        place: id.to_string(),
                        reason: "its history is too long".into(),
                    });
                }
                let commit = link(repo, id, child)?;
                let entries = folder_entries(repo.read_tree(commit.tree)?);
                if !entries.is_empty() {
                    open.push(Visit::Leave(Folder {
                        commit: id,
                        entries,
                    }));
                }
                let parents = commit.parents.into_iter();
                open.extend(parents.map(|parent| Visit::Enter(parent, Some(id))));
            }
        }
    }
    Ok(found)
}

/// A commit of a chain, reached from `child`. That one is missing where history ends is what a shallow
/// fetch of our refs leaves; anywhere else it was lost.
pub(super) fn link(
    repo: &Repository,
    id: ObjectId,
    child: Option<ObjectId>,
) -> Result<Commit, Error> {
    match repo.read_commit(id) {
        Err(git::Error::Gone { .. }) if child.is_some_and(|child| repo.ends_at(child)) => {
            Err(git::Error::Shallow.into())
        }
        commit => Ok(commit?),
    }
}

/// Every commit that `head` reaches, itself included.
pub(super) fn reach(repo: &Repository, head: ObjectId) -> Result<BTreeSet<ObjectId>, Error> {
    let mut seen = BTreeSet::from([head]);
    let mut open = vec![head];
    while let Some(id) = open.pop() {
        let parents = repo.read_commit(id)?.parents.into_iter();
        open.extend(parents.filter(|parent| seen.insert(*parent)));
    }
    Ok(seen)
}

/// A step of the walk.
enum Visit {
    /// Look at a commit and its parents; the second is the commit that led to it.
    Enter(ObjectId, Option<ObjectId>),
    /// All its parents were looked at.
    Leave(Folder),
}

fn folder_entries(tree: Vec<TreeEntry>) -> BTreeMap<String, (EntryKind, ObjectId)> {
    tree.into_iter()
        .filter_map(|entry| Some((String::from_utf8(entry.name).ok()?, (entry.kind, entry.id))))
        .collect()
}

/// What a new commit holds under one name.
#[derive(Debug, Clone)]
pub enum Content {
    /// A file.
    File(Vec<u8>),
    /// A tree that exists already, such as a run's result.
    Tree(ObjectId),
}

/// Appends one commit with these files to `reference`, if it is still at `tip`.
pub fn append(
    repo: &Repository,
    reference: &str,
    tip: Option<ObjectId>,
    files: &[(String, Content)],
    note: &Note<'_>,
) -> Result<ObjectId, Error> {
    let commit = commit(repo, tip, files, note)?;
    advance(repo, reference, tip, commit, note.message)?;
    Ok(commit)
}

/// Moves `reference` from `tip` to a commit on top of it, and remembers that.
pub fn advance(
    repo: &Repository,
    reference: &str,
    tip: Option<ObjectId>,
    commit: ObjectId,
    message: &str,
) -> Result<(), Error> {
    repo.update_ref(reference, Expected::from(tip), Some(commit), message)?;
    high_water::note(repo, reference, commit);
    Ok(())
}

/// Writes one commit with these files on top of `tip`. No ref names it.
pub fn commit(
    repo: &Repository,
    tip: Option<ObjectId>,
    files: &[(String, Content)],
    note: &Note<'_>,
) -> Result<ObjectId, Error> {
    let mut entries = Vec::with_capacity(files.len());
    for (name, content) in files {
        let (kind, id) = match content {
            Content::File(bytes) => (EntryKind::Blob, repo.write_blob(bytes)?),
            Content::Tree(id) => (EntryKind::Tree, *id),
        };
        entries.push(TreeEntry {
            name: name.clone().into_bytes(),
            kind,
            id,
        });
    }
    let tree = repo.write_tree(&entries)?;
    Ok(repo.write_commit(&CommitDraft {
        tree,
        parents: tip.into_iter().collect(),
        author_name: note.author.to_owned(),
        author_email: format!("{}@hangar.invalid", note.author),
        time_seconds: note.seconds,
        message: format!("{}\n", note.message),
    })?)
}

/// What `git log` shows of a commit. Nobody decides by it.
#[derive(Debug, Clone, Copy)]
pub struct Note<'a> {
    /// Principal.
    pub author: &'a str,
    /// Seconds since 1970.
    pub seconds: i64,
    /// One line.
    pub message: &'a str,
}
