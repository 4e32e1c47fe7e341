//! The policy chain: from the founding to the newest version, each verified by the one before.
//!
//! Format: `docs/format.md`, "Policy". A commit holds `root.toml`, `members.toml` and the folders
//! `root.sigs` and `members.sigs` with one signature for each key, named by the key's hex
//! fingerprint.

use super::Error;
use super::chain::{self, Folder};
use super::found::Draft;
use super::layout::Layout;
use crate::git::{EntryKind, Repository};
use crate::model::codec;
use crate::model::digest::Digest;
use crate::model::ids::{Fingerprint, Principal};
use crate::model::object_id::ObjectId;
use crate::model::policy::{Members, Policy, Role, Root};
use crate::model::signer::PolicyRef;
use crate::trust::{Namespace, PublicKey, verify};
use std::collections::BTreeSet;

/// Largest signature file.
const MAX_SIGNATURE: u64 = 8 << 10;

/// Every version of the policy, oldest first.
///
/// Invariant: not empty, and each version was authorised by the one before it.
#[derive(Debug)]
pub struct PolicyHistory {
    repo: Digest,
    versions: Vec<Policy>,
}

impl PolicyHistory {
    /// The repository's id: SHA-256 of `root.toml` version 1.
    pub const fn repo(&self) -> Digest {
        self.repo
    }

    /// The version in force.
    ///
    /// # Panics
    /// Never: the history is not empty.
    pub fn newest(&self) -> &Policy {
        self.versions
            .last()
            .expect("a policy history has a first version")
    }

    /// The version that a document names.
    pub fn find(&self, reference: PolicyRef) -> Option<&Policy> {
        self.versions
            .iter()
            .find(|version| version.reference == reference)
    }

    /// All versions, oldest first.
    pub fn versions(&self) -> &[Policy] {
        &self.versions
    }
}

/// Loads and verifies the chain; `None` where there is none.
pub fn load(repo: &Repository, layout: &Layout) -> Result<Option<PolicyHistory>, Error> {
    let head = repo.read_ref(&layout.policy())?;
    head.map(|head| load_at(repo, head)).transpose()
}

/// The same for a head that is on no ref of ours yet.
pub fn load_at(repo: &Repository, head: ObjectId) -> Result<PolicyHistory, Error> {
    let mut history: Option<PolicyHistory> = None;
    for folder in chain::read(repo, head)? {
        let step = Step::read(repo, &folder)?;
        history = Some(match history {
            None => found(&step)?,
            Some(history) => follow(history, &step)?,
        });
    }
    history.ok_or_else(|| Error::Policy("the chain holds no version".into()))
}

/// Verifies a version that is about to be written as it will be verified when it is read.
pub fn rehearse(before: Option<PolicyHistory>, draft: &Draft) -> Result<PolicyHistory, Error> {
    let signatures =
        |signed: &[(String, Vec<u8>)]| signed.iter().map(|(_, bytes)| bytes.clone()).collect();
    let step = Step::parse(
        draft.root.clone(),
        draft.members.clone(),
        signatures(&draft.root_signatures),
        signatures(&draft.members_signatures),
    )?;
    match before {
        None => found(&step),
        Some(history) => follow(history, &step),
    }
}

/// One commit of the chain, parsed but not believed.
struct Step {
    root_bytes: Vec<u8>,
    members_bytes: Vec<u8>,
    root: Root,
    members: Members,
    root_signatures: Vec<Vec<u8>>,
    members_signatures: Vec<Vec<u8>>,
}

impl Step {
    fn read(repo: &Repository, folder: &Folder) -> Result<Self, Error> {
        let file = |name: &str| {
            folder.file(repo, name)?.ok_or_else(|| {
                Error::Policy(format!("commit {} lacks {name}", folder.commit.short()))
            })
        };
        Self::parse(
            file("root.toml")?,
            file("members.toml")?,
            signatures(repo, folder, "root.sigs")?,
            signatures(repo, folder, "members.sigs")?,
        )
    }

    fn parse(
        root_bytes: Vec<u8>,
        members_bytes: Vec<u8>,
        root_signatures: Vec<Vec<u8>>,
        members_signatures: Vec<Vec<u8>>,
    ) -> Result<Self, Error> {
        let parse = |error: codec::Error| Error::Policy(error.to_string());
        Ok(Self {
            root: codec::decode(&root_bytes).map_err(parse)?,
            members: codec::decode(&members_bytes).map_err(parse)?,
            root_signatures,
            members_signatures,
            root_bytes,
            members_bytes,
        })
    }

    fn policy(&self) -> Result<Policy, Error> {
        let fingerprints = fingerprints(&self.members)?;
        let reference = PolicyRef {
            version: self.members.version,
            digest: Digest::of(&self.members_bytes),
        };
        let root_digest = Digest::of(&self.root_bytes);
        if self.members.root != root_digest {
            return Err(Error::Policy(format!(
                "version {} names another root.toml",
                self.members.version
            )));
        }
        Ok(Policy::new(
            reference,
            self.root.clone(),
            root_digest,
            self.members.clone(),
            &fingerprints,
        ))
    }

    /// People whose key signed these bytes, each counted once.
    fn signers<'a>(
        bytes: &[u8],
        signatures: &[Vec<u8>],
        namespace: Namespace,
        keys: &[(&'a Principal, &'a str)],
    ) -> BTreeSet<Principal> {
        let mut people = BTreeSet::new();
        for signature in signatures {
            for (principal, text) in keys {
                let Ok(key) = text.parse::<PublicKey>() else {
                    continue;
                };
                if verify(&key, namespace, bytes, signature).is_ok() {
                    people.insert((*principal).clone());
                }
            }
        }
        people
    }

    fn root_signers(&self, root: &Root) -> BTreeSet<Principal> {
        let keys: Vec<_> = root
            .key
            .iter()
            .map(|key| (&key.principal, key.public.as_str()))
            .collect();
        Self::signers(
            &self.root_bytes,
            &self.root_signatures,
            Namespace::Root,
            &keys,
        )
    }

    fn members_signers(&self, root: &Root, members: &Members) -> BTreeSet<Principal> {
        let admins = members
            .person
            .iter()
            .filter(|person| person.role == Role::Admin);
        let admin_keys = admins.flat_map(|person| {
            person
                .keys
                .iter()
                .map(move |key| (&person.name, key.as_str()))
        });
        let root_keys = root
            .key
            .iter()
            .map(|key| (&key.principal, key.public.as_str()));
        Self::signers(
            &self.members_bytes,
            &self.members_signatures,
            Namespace::Members,
            &admin_keys.chain(root_keys).collect::<Vec<_>>(),
        )
    }
}

fn signatures(repo: &Repository, folder: &Folder, name: &str) -> Result<Vec<Vec<u8>>, Error> {
    let Some(tree) = folder.object(name) else {
        return Ok(Vec::new());
    };
    let blobs = repo
        .read_tree(tree)?
        .into_iter()
        .filter(|entry| entry.kind == EntryKind::Blob);
    blobs
        .map(|entry| Ok(repo.read_blob(entry.id, MAX_SIGNATURE)?))
        .collect()
}

/// Fingerprints of every key text, in the order of [`Members::key_texts`].
pub fn fingerprints(members: &Members) -> Result<Vec<Fingerprint>, Error> {
    let fingerprint = |text: &str| -> Result<Fingerprint, Error> {
        let key: PublicKey = text.parse().map_err(|error| {
            Error::Policy(format!(
                "version {} has a bad key: {error}",
                members.version
            ))
        })?;
        Ok(key.fingerprint())
    };
    let all: Vec<Fingerprint> = members
        .key_texts()
        .iter()
        .map(|(text, _)| fingerprint(text))
        .collect::<Result<_, _>>()?;
    if all.iter().collect::<BTreeSet<_>>().len() != all.len() {
        return Err(Error::Policy(format!(
            "version {} gives one key to two holders",
            members.version
        )));
    }
    let people = members.person.iter().map(|person| &person.name);
    let names: Vec<_> = people
        .chain(members.machine.iter().map(|machine| &machine.name))
        .collect();
    if names.iter().collect::<BTreeSet<_>>().len() != names.len() {
        return Err(Error::Policy(format!(
            "version {} has two holders of one name",
            members.version
        )));
    }
    Ok(all)
}

fn need(version: u64, what: &str, have: usize, threshold: u32) -> Result<(), Error> {
    let threshold = threshold.max(1) as usize;
    if have >= threshold {
        return Ok(());
    }
    Err(Error::Policy(format!(
        "version {version} has {have} of {threshold} needed signatures of {what}"
    )))
}

fn found(step: &Step) -> Result<PolicyHistory, Error> {
    let first = step.members.version == 1
        && step.root.version == 1
        && step.members.previous.is_none()
        && step.root.previous.is_none();
    if !first {
        return Err(Error::Policy(
            "the chain does not begin with version 1".into(),
        ));
    }
    need(
        1,
        "root.toml",
        step.root_signers(&step.root).len(),
        step.root.thresholds.root,
    )?;
    let members = step.members_signers(&step.root, &step.members).len();
    need(1, "members.toml", members, step.root.thresholds.members)?;
    Ok(PolicyHistory {
        repo: Digest::of(&step.root_bytes),
        versions: vec![step.policy()?],
    })
}

fn follow(mut history: PolicyHistory, step: &Step) -> Result<PolicyHistory, Error> {
    let before = history.newest();
    let version = before.reference.version + 1;
    let linked =
        step.members.version == version && step.members.previous == Some(before.reference.digest);
    if !linked {
        return Err(Error::Policy(format!(
            "version {version} does not follow the one before it"
        )));
    }
    let root_digest = Digest::of(&step.root_bytes);
    if root_digest != before.root_digest {
        let linked = step.root.version == before.root.version + 1
            && step.root.previous == Some(before.root_digest);
        if !linked {
            return Err(Error::Policy(format!(
                "root.toml of version {version} does not follow the one before it"
            )));
        }
        let old = step.root_signers(&before.root).len();
        need(
            version,
            "root.toml by the keys before",
            old,
            before.root.thresholds.root,
        )?;
        let new = step.root_signers(&step.root).len();
        need(
            version,
            "root.toml by its own keys",
            new,
            step.root.thresholds.root,
        )?;
    }
    let signed = step.members_signers(&before.root, &before.members).len();
    need(
        version,
        "members.toml",
        signed,
        before.root.thresholds.members,
    )?;
    history.versions.push(step.policy()?);
    Ok(history)
}
