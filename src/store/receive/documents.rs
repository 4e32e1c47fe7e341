//! What one commit of a push may hold: the names of its files, their sizes, and that what lies beside
//! a document is what the document names.

use super::{Judged, at, said};
use crate::git::{EntryKind, Repository, TreeEntry};
use crate::model::approval::Approval;
use crate::model::codec;
use crate::model::digest::Digest;
use crate::model::grade::Grade;
use crate::model::ids::{Principal, TaskId};
use crate::model::manifest::{Manifest, Reseal};
use crate::model::object_id::ObjectId;
use crate::model::run::Run;
use crate::store::Store;
use crate::store::chain::{Folder, MAX_FILE, MAX_SIGNATURE};
use crate::store::check::{Checked, Document, authorise, check};
use crate::store::layout::OfTask;
use crate::store::policy::{MAX_LIST, MAX_PARTS};
use std::collections::BTreeSet;

/// Most files beside an event.
const MAX_ATTACHED: usize = 100;

/// What the tree of a commit holds, names that are no text included.
fn entries(repo: &Repository, commit: ObjectId) -> Judged<Vec<TreeEntry>> {
    let tree = repo.read_commit(commit).map_err(said)?.tree;
    let entries = repo.read_tree(tree).map_err(said)?;
    let mut names = BTreeSet::new();
    match entries.iter().find(|entry| !names.insert(&entry.name)) {
        // Readers would differ in which of the two they take.
        Some(twice) => Err(unknown(commit, &twice.name)),
        None => Ok(entries),
    }
}

fn unknown(commit: ObjectId, name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name).escape_debug().to_string();
    at(commit, format!("`{name}` has no place there"))
}

/// The bytes of one file. Whatever is too large is named by its limit.
fn file(repo: &Repository, commit: ObjectId, entry: &TreeEntry, most: u64) -> Judged<Vec<u8>> {
    if entry.kind != EntryKind::Blob {
        return Err(unknown(commit, &entry.name));
    }
    let name = String::from_utf8_lossy(&entry.name)
        .escape_debug()
        .to_string();
    let bytes = repo.read_blob(entry.id, most);
    bytes.map_err(|error| at(commit, format!("{name}: {error}")))
}

/// Commits of a pushed policy, joins included: there are none on this ref.
pub(super) fn policy(repo: &Repository, old: Option<ObjectId>, new: ObjectId) -> Judged<()> {
    let mut open = vec![new];
    let mut seen = BTreeSet::from([new]);
    while let Some(commit) = open.pop().filter(|one| Some(*one) != old) {
        let parents = repo.read_commit(commit).map_err(said)?.parents;
        version(repo, commit)?;
        open.extend(parents.into_iter().filter(|parent| seen.insert(*parent)));
    }
    Ok(())
}

/// The files of one version of the policy, in force or proposed.
pub(super) fn policy_names(repo: &Repository, folder: &Folder) -> Judged<()> {
    version(repo, folder.commit)
}

fn version(repo: &Repository, commit: ObjectId) -> Judged<()> {
    for entry in entries(repo, commit)? {
        match entry.name.as_slice() {
            b"root.toml" | b"members.toml" => {
                file(repo, commit, &entry, codec::MAX_BYTES as u64)?;
            }
            b"root.sigs" | b"members.sigs" => parts(repo, commit, &entry, MAX_SIGNATURE)?,
            b"accepted" => parts(repo, commit, &entry, MAX_LIST)?,
            name => return Err(unknown(commit, name)),
        }
    }
    Ok(())
}

fn parts(repo: &Repository, commit: ObjectId, folder: &TreeEntry, most: u64) -> Judged<()> {
    if folder.kind != EntryKind::Tree {
        return Err(unknown(commit, &folder.name));
    }
    let files = repo.read_tree(folder.id).map_err(said)?;
    if files.len() > MAX_PARTS {
        let name = String::from_utf8_lossy(&folder.name).into_owned();
        return Err(at(
            commit,
            format!("{name} holds more than {MAX_PARTS} files"),
        ));
    }
    for entry in files {
        file(repo, commit, &entry, most)?;
    }
    Ok(())
}

/// The files of one event: document, signature, and attachments named by their SHA-256.
pub(super) fn event_names(repo: &Repository, folder: &Folder) -> Judged<()> {
    let commit = folder.commit;
    let found = entries(repo, commit)?;
    if found.len() > MAX_ATTACHED + 2 {
        return Err(at(
            commit,
            format!("it holds more than {MAX_ATTACHED} attachments"),
        ));
    }
    for entry in found {
        match entry.name.as_slice() {
            b"event.toml" => drop(file(repo, commit, &entry, codec::MAX_BYTES as u64)?),
            b"event.sig" => drop(file(repo, commit, &entry, MAX_SIGNATURE)?),
            name => {
                let bytes = file(repo, commit, &entry, codec::MAX_BYTES as u64)?;
                if Digest::of(&bytes).hex().as_bytes() != name {
                    return Err(unknown(commit, name));
                }
            }
        }
    }
    Ok(())
}

/// A ref with documents of one kind about one task.
pub(super) struct Place<'a> {
    pub(super) store: &'a Store,
    pub(super) task: &'a TaskId,
    pub(super) requester: &'a Principal,
    pub(super) name: &'a str,
    pub(super) kind: OfTask,
}

impl Place<'_> {
    /// Checks every commit that the push adds.
    pub(super) fn check(&self, old: &[Folder], new: &[Folder]) -> Judged<()> {
        for folder in new {
            match self.kind {
                OfTask::Sealed => self.sealed(folder)?,
                OfTask::Runs => self.run(folder)?,
                OfTask::Grades => drop(self.alone::<Grade>(folder)?),
                OfTask::Approvals => self.decision(folder)?,
            }
        }
        if self.kind == OfTask::Sealed {
            self.numbers(old, new)?;
        }
        Ok(())
    }

    /// A document that is believed, with the other files of its commit.
    fn believed<T: Document>(&self, folder: &Folder) -> Judged<(Checked<T>, Vec<TreeEntry>)> {
        let (repo, commit) = (&self.store.repo, folder.commit);
        let (mut bytes, mut signature) = (None, Vec::new());
        let (toml, sig) = (format!("{}.toml", T::NAME), format!("{}.sig", T::NAME));
        let mut others = Vec::new();
        for entry in entries(repo, commit)? {
            if entry.name == toml.as_bytes() {
                bytes = Some(file(repo, commit, &entry, codec::MAX_BYTES as u64)?);
            } else if entry.name == sig.as_bytes() {
                signature = file(repo, commit, &entry, MAX_SIGNATURE)?;
            } else {
                others.push(entry);
            }
        }
        let bytes = bytes.ok_or_else(|| at(commit, format!("it holds no {toml}")))?;
        let checked = check::<T>(&self.store.policy, bytes, signature, Some(self.task))
            .and_then(|checked| authorise(&checked, self.requester).map(|()| checked))
            .map_err(|doubt| at(commit, format!("{toml}: {doubt}")))?;
        match &checked.reduced {
            Some(doubt) => Err(at(commit, format!("{toml}: {doubt}"))),
            None => Ok((checked, others)),
        }
    }

    /// The same for a document beside which nothing lies.
    fn alone<T: Document>(&self, folder: &Folder) -> Judged<Checked<T>> {
        let (checked, others) = self.believed::<T>(folder)?;
        match others.first() {
            Some(other) => Err(unknown(folder.commit, &other.name)),
            None => Ok(checked),
        }
    }

    fn decision(&self, folder: &Folder) -> Judged<()> {
        let approval = self.alone::<Approval>(folder)?;
        let value = approval.value();
        let layout = &self.store.layout;
        if layout.approval(self.task, &value.manifest, &value.signer.key) == self.name {
            return Ok(());
        }
        Err(at(folder.commit, "it lies under another decision's name"))
    }

    fn sealed(&self, folder: &Folder) -> Judged<()> {
        let (named, others) = if folder.object("reseal.toml").is_some() {
            let (reseal, others) = self.believed::<Reseal>(folder)?;
            (reseal.value().ciphertext, others)
        } else {
            let (manifest, others) = self.believed::<Manifest>(folder)?;
            (manifest.value().ciphertext, others)
        };
        let commit = folder.commit;
        if let Some(other) = others.iter().find(|one| one.name != b"sealed.age") {
            return Err(unknown(commit, &other.name));
        }
        let Some(sealed) = others.first() else {
            return Err(at(commit, "it has no sealed.age beside it"));
        };
        let bytes = file(&self.store.repo, commit, sealed, MAX_FILE)?;
        if Digest::of(&bytes) == named {
            return Ok(());
        }
        Err(at(
            commit,
            "its sealed.age is not the ciphertext that it names",
        ))
    }

    fn run(&self, folder: &Folder) -> Judged<()> {
        let (run, others) = self.believed::<Run>(folder)?;
        let commit = folder.commit;
        for entry in others {
            if entry.name == b"result" && entry.kind == EntryKind::Tree {
                let result = run.value().result.as_ref();
                if result.is_none_or(|result| result.tree != entry.id) {
                    return Err(at(
                        commit,
                        "the tree beside it is not the result that it names",
                    ));
                }
                continue;
            }
            let mut named = run.value().attachment.iter();
            let Some(named) = named.find(|one| one.name.as_bytes() == entry.name) else {
                return Err(unknown(commit, &entry.name));
            };
            let bytes = file(&self.store.repo, commit, &entry, MAX_FILE)?;
            if Digest::of(&bytes) != named.sha256 {
                let name = named.name.escape_debug();
                return Err(at(
                    commit,
                    format!("its attachment `{name}` is not the one that it names"),
                ));
            }
        }
        Ok(())
    }

    /// A version never follows another of its number. Two that stand side by side were sealed by two
    /// clones that did not know of each other; an approver decides between them.
    fn numbers(&self, old: &[Folder], new: &[Folder]) -> Judged<()> {
        let added = self.versions(new)?;
        let all = [self.versions(old)?, added.clone()].concat();
        for (commit, version) in added {
            for (other, _) in all.iter().filter(|one| one.1 == version && one.0 != commit) {
                if self.store.repo.is_ancestor(*other, commit).map_err(said)? {
                    let other = other.short();
                    let why = format!("version {version} is sealed already, in commit {other}");
                    return Err(at(commit, why));
                }
            }
        }
        Ok(())
    }

    /// Commits with a manifest, and its number.
    fn versions(&self, folders: &[Folder]) -> Judged<Vec<(ObjectId, u32)>> {
        let mut found = Vec::new();
        for folder in folders {
            let document = folder
                .document(&self.store.repo, "manifest")
                .map_err(said)?;
            let manifest = document.and_then(|(bytes, _)| codec::decode::<Manifest>(&bytes).ok());
            found.extend(manifest.map(|manifest| (folder.commit, manifest.version)));
        }
        Ok(found)
    }
}
