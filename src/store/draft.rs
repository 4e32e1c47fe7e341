//! Writing a version of the policy.

use super::chain::{self, Content, Note};
use super::layout::Layout;
use super::{Error, policy};
use crate::base::clock::Clock;
use crate::git::{EntryKind, Repository, TreeEntry};
use crate::model::codec;
use crate::model::digest::Digest;
use crate::model::object_id::ObjectId;
use crate::model::policy::{Members, Root};
use crate::trust::{Namespace, Signer};
use std::collections::BTreeMap;

/// A version to be written: both documents as signed bytes, and the signatures so far.
#[derive(Debug, Clone)]
pub struct Draft {
    /// Bytes of `root.toml`.
    pub root: Vec<u8>,
    /// Bytes of `members.toml`.
    pub members: Vec<u8>,
    /// Key fingerprints in hex with armoured signatures over `root.toml`.
    pub root_signatures: BTreeMap<String, Vec<u8>>,
    /// The same over `members.toml`.
    pub members_signatures: BTreeMap<String, Vec<u8>>,
    /// Lists of documents that count although their key lost rights.
    pub accepted: Vec<Vec<u8>>,
}

impl Draft {
    /// Two documents that nobody has signed.
    pub const fn unsigned(root: Vec<u8>, members: Vec<u8>) -> Self {
        Self {
            root,
            members,
            root_signatures: BTreeMap::new(),
            members_signatures: BTreeMap::new(),
            accepted: Vec::new(),
        }
    }

    /// Version 1 of a new repository. `members.root` is set here.
    pub fn founding(root: &Root, mut members: Members, signer: &Signer) -> Result<Self, Error> {
        let root = codec::encode(root)?;
        members.root = codec::digest(&root);
        let members = codec::encode(&members)?;
        let mut draft = Self::unsigned(root, members);
        draft.sign_root(signer)?;
        draft.sign_members(signer)?;
        Ok(draft)
    }

    /// Adds a signature over `root.toml`.
    pub fn sign_root(&mut self, signer: &Signer) -> Result<(), Error> {
        let signature = signer.sign(Namespace::Root, &self.root)?;
        self.root_signatures.insert(name(signer), signature);
        Ok(())
    }

    /// Adds a signature over `members.toml`.
    pub fn sign_members(&mut self, signer: &Signer) -> Result<(), Error> {
        let signature = signer.sign(Namespace::Members, &self.members)?;
        self.members_signatures.insert(name(signer), signature);
        Ok(())
    }

    /// Appends it to the chain, if the chain is still at `tip`. What was written is read back and
    /// verified as a stranger would; a version that does not verify never becomes the tip.
    pub fn publish(
        &self,
        repo: &Repository,
        layout: &Layout,
        tip: Option<ObjectId>,
        by: &str,
        clock: Clock,
    ) -> Result<ObjectId, Error> {
        let name = layout.policy();
        let before = tip.map(|tip| policy::load_at(repo, tip)).transpose();
        let before = before.map_err(|error| error.at(&name))?;
        policy::rehearse(before, self)?;
        let files = self.files(repo)?;
        let note = Note {
            author: by,
            seconds: clock.now().as_second(),
            message: "policy",
        };
        let commit = chain::commit(repo, tip, &files, &note)?;
        let written = policy::load_at(repo, commit)?;
        if written.decided()?.reference.digest != Digest::of(&self.members) {
            return Err(Error::Policy("the version was not written as it is".into()));
        }
        chain::advance(repo, &name, tip, commit, note.message)?;
        Ok(commit)
    }

    /// What a commit with it holds.
    pub(super) fn files(&self, repo: &Repository) -> Result<Vec<(String, Content)>, Error> {
        let mut files = vec![
            ("root.toml".into(), Content::File(self.root.clone())),
            ("members.toml".into(), Content::File(self.members.clone())),
            (
                "root.sigs".into(),
                Content::Tree(folder(repo, &self.root_signatures)?),
            ),
            (
                "members.sigs".into(),
                Content::Tree(folder(repo, &self.members_signatures)?),
            ),
        ];
        if !self.accepted.is_empty() {
            let named = |bytes: &Vec<u8>| (Digest::of(bytes).hex(), bytes.clone());
            let lists = self.accepted.iter().map(named).collect();
            files.push(("accepted".into(), Content::Tree(folder(repo, &lists)?)));
        }
        Ok(files)
    }
}

fn name(signer: &Signer) -> String {
    signer.public().fingerprint().hex()
}

fn folder(repo: &Repository, signatures: &BTreeMap<String, Vec<u8>>) -> Result<ObjectId, Error> {
    let mut entries = Vec::with_capacity(signatures.len());
    for (name, bytes) in signatures {
        let id = repo.write_blob(bytes)?;
        entries.push(TreeEntry {
            name: name.clone().into_bytes(),
            kind: EntryKind::Blob,
            id,
        });
    }
    Ok(repo.write_tree(&entries)?)
}
