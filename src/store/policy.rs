//! The policy chain: from the founding to the newest version, each verified by the one before.
//!
//! Format: `docs/format.md`, "Policy". A commit holds `root.toml`, `members.toml` and the folders
//! `root.sigs` and `members.sigs` with one signature for each key, named by the key's hex
//! fingerprint.

use super::Error;
use super::chain::{self, Folder};
use super::draft::Draft;
use super::holders;
use super::layout::Layout;
use crate::git::{self, EntryKind, Repository};
use crate::model::codec;
use crate::model::digest::Digest;
use crate::model::ids::{Fingerprint, Principal};
use crate::model::object_id::ObjectId;
use crate::model::policy::{Members, Policy, Role, Root};
use crate::model::reduction::{self, Reduction};
use crate::model::signer::PolicyRef;
use crate::trust::{KeyRing, Namespace, PublicKey, verify};
use std::collections::{BTreeMap, BTreeSet};

/// Largest signature file.
const MAX_SIGNATURE: u64 = 8 << 10;
/// Largest list of documents that count.
const MAX_LIST: u64 = 80 << 20;
/// Most signatures of one document that are looked at.
const MAX_SIGNATURES: usize = 256;

/// Every version of the policy, oldest first.
///
/// Invariant: not empty, and each version was authorised by the one before it.
#[derive(Debug)]
pub struct PolicyHistory {
    repo: Digest,
    versions: Vec<Policy>,
    /// Lists of documents that count although their key lost rights, by digest.
    lists: BTreeMap<Digest, BTreeSet<Digest>>,
    /// The keys of all versions.
    keys: KeyRing,
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
        // Versions are counted from 1 without a gap.
        let index = usize::try_from(reference.version.checked_sub(1)?).ok()?;
        let version = self.versions.get(index)?;
        (version.reference == reference).then_some(version)
    }

    /// The keys of all versions, to verify signatures with.
    pub(super) const fn keys(&self) -> &KeyRing {
        &self.keys
    }

    /// Why a document by `key` that names `policy` does not count: the key lost rights in a later
    /// version, which does not list the document.
    pub fn reduction(
        &self,
        key: &Fingerprint,
        policy: PolicyRef,
        document: Digest,
    ) -> Option<&Reduction> {
        let mut entries = self.newest().members.reduced.iter();
        let entry = entries.find(|entry| entry.key == *key)?;
        let listed = self.lists.get(&entry.accepted);
        let counts =
            policy.version >= entry.since || listed.is_some_and(|list| list.contains(&document));
        (!counts).then_some(entry)
    }

    /// The documents of a key that count although it lost rights.
    pub fn list(&self, digest: Digest) -> Option<&BTreeSet<Digest>> {
        self.lists.get(&digest)
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
    let mut history = history.ok_or_else(|| Error::Policy("the chain holds no version".into()))?;
    let texts = history.versions.iter().flat_map(Policy::key_texts);
    // Every text was read as a key when its version was checked.
    history.keys = texts.filter_map(|text| text.parse().ok()).collect();
    Ok(history)
}

/// Verifies a version that is about to be written as it will be verified when it is read.
pub fn rehearse(before: Option<PolicyHistory>, draft: &Draft) -> Result<PolicyHistory, Error> {
    let step = Step::of(draft)?;
    match before {
        None => found(&step),
        Some(history) => follow(history, &step),
    }
}

/// A draft as the policy that it would be.
pub fn policy_of(draft: &Draft) -> Result<Policy, Error> {
    Step::of(draft)?.policy()
}

/// What a draft needs before it can follow `before`. Fails where it does not follow, or makes no
/// sense by itself.
pub fn open_needs(before: &Policy, draft: &Draft) -> Result<Vec<Tally>, Error> {
    needs_of(before, draft).map_err(Error::proposed)
}

fn needs_of(before: &Policy, draft: &Draft) -> Result<Vec<Tally>, Error> {
    let step = Step::of(draft)?;
    check_links(before, &step)?;
    let after = step.policy()?;
    reduction::check(before, &after).map_err(Error::Policy)?;
    check_sense(&after)?;
    Ok(tally(Some(before), &step))
}

/// Refuses a version after which nobody could make the next one, or which names strangers.
fn check_sense(policy: &Policy) -> Result<(), Error> {
    let (root, members) = (&policy.root, &policy.members);
    let wrong = |text: String| Err(Error::Policy(text));
    let root_people: BTreeSet<_> = root.key.iter().map(|key| &key.principal).collect();
    let needed = root.thresholds.root.max(1) as usize;
    if root_people.len() < needed {
        return wrong(format!(
            "{needed} people would have to sign a new root.toml, and only {} would have a root key",
            root_people.len()
        ));
    }
    let able: BTreeSet<_> = members_keys(root, members)
        .into_iter()
        .map(|(principal, _)| principal)
        .collect();
    let needed = root.thresholds.members.max(1) as usize;
    if able.len() < needed {
        return wrong(format!(
            "{needed} people would have to sign a new members.toml, and only {} could",
            able.len()
        ));
    }
    let stranger = members
        .machine
        .iter()
        .find(|machine| policy.person(&machine.owner).is_none());
    match stranger {
        Some(machine) => wrong(format!(
            "the machine {} would belong to {}, who is nobody here",
            machine.name, machine.owner
        )),
        None => Ok(()),
    }
}

/// The documents and signatures of one commit; `None` where it holds no version.
pub(super) fn draft_of(repo: &Repository, folder: &Folder) -> Result<Option<Draft>, Error> {
    let root = folder.file(repo, "root.toml")?;
    let members = folder.file(repo, "members.toml")?;
    let (Some(root), Some(members)) = (root, members) else {
        return Ok(None);
    };
    Ok(Some(Draft {
        root,
        members,
        root_signatures: signatures(repo, folder, "root.sigs")?,
        members_signatures: signatures(repo, folder, "members.sigs")?,
        accepted: lists(repo, folder)?,
    }))
}

/// The lists of one commit: documents that count although their key lost rights.
fn lists(repo: &Repository, folder: &Folder) -> Result<Vec<Vec<u8>>, Error> {
    let Some(tree) = folder.object("accepted") else {
        return Ok(Vec::new());
    };
    let blobs = repo.read_tree(tree)?.into_iter();
    blobs
        .filter(|entry| entry.kind == EntryKind::Blob)
        .take(MAX_SIGNATURES)
        .map(|entry| Ok(repo.read_blob(entry.id, MAX_LIST)?))
        .collect()
}

/// One commit of the chain, parsed but not believed.
struct Step {
    root_bytes: Vec<u8>,
    members_bytes: Vec<u8>,
    root: Root,
    members: Members,
    root_signatures: Vec<Vec<u8>>,
    members_signatures: Vec<Vec<u8>>,
    lists: BTreeMap<Digest, BTreeSet<Digest>>,
}

impl Step {
    fn of(draft: &Draft) -> Result<Self, Error> {
        let parse = |error: codec::Error| Error::Policy(error.to_string());
        let signatures = |signed: &BTreeMap<String, Vec<u8>>| signed.values().cloned().collect();
        let list = |bytes: &Vec<u8>| {
            let list = reduction::read_list(bytes)?;
            Some((Digest::of(bytes), list))
        };
        Ok(Self {
            root: codec::decode(&draft.root).map_err(parse)?,
            members: codec::decode(&draft.members).map_err(parse)?,
            root_signatures: signatures(&draft.root_signatures),
            members_signatures: signatures(&draft.members_signatures),
            root_bytes: draft.root.clone(),
            members_bytes: draft.members.clone(),
            lists: draft.accepted.iter().filter_map(list).collect(),
        })
    }

    fn read(repo: &Repository, folder: &Folder) -> Result<Self, Error> {
        let draft = draft_of(repo, folder)?.ok_or_else(|| {
            Error::Policy(format!(
                "commit {} lacks root.toml or members.toml",
                folder.commit.short()
            ))
        })?;
        Self::of(&draft)
    }

    fn policy(&self) -> Result<Policy, Error> {
        let fingerprints = holders::check(&self.root, &self.members)?;
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
        Self::signers(
            &self.members_bytes,
            &self.members_signatures,
            Namespace::Members,
            &members_keys(root, members),
        )
    }
}

/// Keys whose signature counts for the next `members.toml`: those of admins, and root keys.
fn members_keys<'a>(root: &'a Root, members: &'a Members) -> Vec<(&'a Principal, &'a str)> {
    let admins = members
        .person
        .iter()
        .filter(|person| person.role == Role::Admin);
    let admin_keys = admins.flat_map(|person| {
        let keys = person.keys.iter();
        keys.map(move |key| (&person.name, key.as_str()))
    });
    let root_keys = root
        .key
        .iter()
        .map(|key| (&key.principal, key.public.as_str()));
    admin_keys.chain(root_keys).collect()
}

fn signatures(
    repo: &Repository,
    folder: &Folder,
    name: &str,
) -> Result<BTreeMap<String, Vec<u8>>, Error> {
    let Some(tree) = folder.object(name) else {
        return Ok(BTreeMap::new());
    };
    let blobs = repo
        .read_tree(tree)?
        .into_iter()
        .filter(|entry| entry.kind == EntryKind::Blob)
        .take(MAX_SIGNATURES);
    let mut found = BTreeMap::new();
    for entry in blobs {
        let name = String::from_utf8_lossy(&entry.name).into_owned();
        match repo.read_blob(entry.id, MAX_SIGNATURE) {
            Ok(bytes) => drop(found.insert(name, bytes)),
            // What is larger than any signature is none.
            Err(git::Error::TooLarge { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}

/// Leaves of a draft only signatures that count for it and lists that it names: whoever can push adds
/// anything to a proposal.
pub(super) fn prune(before: &Policy, draft: &mut Draft) -> Result<(), Error> {
    let step = Step::of(draft)?;
    let counts = |bytes: &[u8], namespace, keys: &[(&Principal, &str)], signature: &Vec<u8>| {
        let one = std::slice::from_ref(signature);
        !Step::signers(bytes, one, namespace, keys).is_empty()
    };
    let root_keys: Vec<_> = before
        .root
        .key
        .iter()
        .chain(&step.root.key)
        .map(|key| (&key.principal, key.public.as_str()))
        .collect();
    let root = draft.root.clone();
    draft
        .root_signatures
        .retain(|_, signature| counts(&root, Namespace::Root, &root_keys, signature));
    let members_keys = members_keys(&before.root, &before.members);
    let members = draft.members.clone();
    draft
        .members_signatures
        .retain(|_, signature| counts(&members, Namespace::Members, &members_keys, signature));
    let named: BTreeSet<Digest> = step
        .members
        .reduced
        .iter()
        .map(|entry| entry.accepted)
        .collect();
    draft
        .accepted
        .retain(|list| named.contains(&Digest::of(list)));
    Ok(())
}

/// What a [`Tally`] of a new `root.toml` by the keys in it is about.
pub const OWN_KEYS: &str = "root.toml by its own keys";

/// Who has signed one of the two documents of a version, and how many people must.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    /// Which document, and by whose keys.
    pub what: &'static str,
    /// People who signed.
    pub signed: BTreeSet<Principal>,
    /// People who could.
    pub able: BTreeSet<Principal>,
    /// How many must.
    pub threshold: u32,
}

impl Tally {
    /// Whether enough people signed.
    pub fn suffices(&self) -> bool {
        self.signed.len() >= self.threshold.max(1) as usize
    }
}

/// What a version still needs, given the one before it. Not whether it follows that one.
fn tally(before: Option<&Policy>, step: &Step) -> Vec<Tally> {
    let root = |what, root: &Root| Tally {
        what,
        signed: step.root_signers(root),
        able: root.key.iter().map(|key| key.principal.clone()).collect(),
        threshold: root.thresholds.root,
    };
    let members = |root: &Root, members: &Members| Tally {
        what: "members.toml",
        signed: step.members_signers(root, members),
        able: members_keys(root, members)
            .into_iter()
            .map(|(principal, _)| principal.clone())
            .collect(),
        threshold: root.thresholds.members,
    };
    match before {
        None => vec![
            root("root.toml", &step.root),
            members(&step.root, &step.members),
        ],
        Some(before) => {
            let mut all = vec![members(&before.root, &before.members)];
            if Digest::of(&step.root_bytes) != before.root_digest {
                all.push(root("root.toml by the keys before", &before.root));
                all.push(root(OWN_KEYS, &step.root));
            }
            all
        }
    }
}

fn need(version: u64, tallies: &[Tally]) -> Result<(), Error> {
    let Some(open) = tallies.iter().find(|tally| !tally.suffices()) else {
        return Ok(());
    };
    Err(Error::Policy(format!(
        "version {version} has {} of {} needed signatures of {}",
        open.signed.len(),
        open.threshold.max(1),
        open.what
    )))
}

fn found(step: &Step) -> Result<PolicyHistory, Error> {
    let first = step.members.version == 1
        && step.root.version == 1
        && step.members.previous.is_none()
        && step.root.previous.is_none();
    if !first || !step.members.reduced.is_empty() {
        return Err(Error::Policy(
            "the chain does not begin with version 1".into(),
        ));
    }
    need(1, &tally(None, step))?;
    Ok(PolicyHistory {
        repo: Digest::of(&step.root_bytes),
        versions: vec![step.policy()?],
        lists: BTreeMap::new(),
        keys: KeyRing::default(),
    })
}

fn follow(mut history: PolicyHistory, step: &Step) -> Result<PolicyHistory, Error> {
    let before = history.newest();
    check_links(before, step)?;
    need(step.members.version, &tally(Some(before), step))?;
    let after = step.policy()?;
    reduction::check(before, &after).map_err(Error::Policy)?;
    history.lists.extend(step.lists.clone());
    let mut entries = after.members.reduced.iter();
    if let Some(entry) = entries.find(|entry| !history.lists.contains_key(&entry.accepted)) {
        return Err(Error::Policy(format!(
            "the list of documents of {} that count is not there",
            entry.key
        )));
    }
    history.versions.push(after);
    Ok(history)
}

/// Whether a version follows the one before it.
fn check_links(before: &Policy, step: &Step) -> Result<(), Error> {
    let version = before.reference.version + 1;
    let linked =
        step.members.version == version && step.members.previous == Some(before.reference.digest);
    if !linked {
        return Err(Error::Policy(format!(
            "version {version} does not follow the one before it"
        )));
    }
    if Digest::of(&step.root_bytes) != before.root_digest {
        let linked = step.root.version == before.root.version + 1
            && step.root.previous == Some(before.root_digest);
        if !linked {
            return Err(Error::Policy(format!(
                "root.toml of version {version} does not follow the one before it"
            )));
        }
    }
    Ok(())
}
