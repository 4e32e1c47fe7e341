//! One commit of the policy: its documents, who signed them, and how many people must.

use crate::git::{self, EntryKind, Repository};
use crate::model::codec;
use crate::model::digest::Digest;
use crate::model::ids::Principal;
use crate::model::policy::{Members, Policy, Role, Root};
use crate::model::reduction;
use crate::model::signer::PolicyRef;
use crate::store::chain::{Folder, MAX_SIGNATURE};
use crate::store::draft::Draft;
use crate::store::{Error, holders};
use crate::trust::{Namespace, PublicKey, verify};
use std::collections::{BTreeMap, BTreeSet};

/// Largest list of documents that count.
pub(in crate::store) const MAX_LIST: u64 = 80 << 20;
/// Most signatures of one document, and most lists of one version, that are looked at.
pub(in crate::store) const MAX_PARTS: usize = 256;

/// One commit of the policy, parsed but not believed.
pub(super) struct Step {
    pub(super) root_bytes: Vec<u8>,
    pub(super) members_bytes: Vec<u8>,
    pub(super) root: Root,
    pub(super) members: Members,
    root_signatures: Vec<Vec<u8>>,
    members_signatures: Vec<Vec<u8>>,
    pub(super) lists: BTreeMap<Digest, BTreeSet<Digest>>,
}

impl Step {
    pub(super) fn of(draft: &Draft) -> Result<Self, Error> {
        let parse = |error: codec::Error| Error::Policy(error.to_string());
        let signatures = |signed: &BTreeMap<String, Vec<u8>>| signed.values().cloned().collect();
        let list = |bytes: &Vec<u8>| {
            let list = reduction::read_list(bytes)?;
            Some((Digest::of(bytes), list))
        };
        // Readers would miss the others, and believe nothing of the policy for it.
        if draft.accepted.len() > MAX_PARTS {
            return Err(Error::Policy(format!(
                "it has more than {MAX_PARTS} lists of documents: take out fewer keys at a time"
            )));
        }
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

    pub(super) fn read(repo: &Repository, folder: &Folder) -> Result<Self, Error> {
        let draft = draft_of(repo, folder)?.ok_or_else(|| {
            Error::Policy(format!(
                "commit {} lacks root.toml or members.toml",
                folder.commit.short()
            ))
        })?;
        Self::of(&draft)
    }

    pub(super) fn policy(&self) -> Result<Policy, Error> {
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

    /// Whether it follows the version before it.
    pub(super) fn check_links(&self, before: &Policy) -> Result<(), Error> {
        let version = before.reference.version + 1;
        let linked = self.members.version == version
            && self.members.previous == Some(before.reference.digest);
        if !linked {
            return Err(super::does_not_follow(version));
        }
        if Digest::of(&self.root_bytes) != before.root_digest {
            let linked = self.root.version == before.root.version + 1
                && self.root.previous == Some(before.root_digest);
            if !linked {
                return Err(Error::Policy(format!(
                    "root.toml of version {version} does not follow the one before it"
                )));
            }
        }
        Ok(())
    }

    /// People whose key signed these bytes, each counted once.
    fn signers(
        bytes: &[u8],
        signatures: &[Vec<u8>],
        namespace: Namespace,
        keys: &[(&Principal, &str)],
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
        Self::signers(
            &self.root_bytes,
            &self.root_signatures,
            Namespace::Root,
            &root_keys(root),
        )
    }

    fn members_signers(&self, keys: &[(&Principal, &str)]) -> BTreeSet<Principal> {
        Self::signers(
            &self.members_bytes,
            &self.members_signatures,
            Namespace::Members,
            keys,
        )
    }

    /// Leaves of its draft only signatures that count and lists that it names.
    pub(super) fn prune(&self, before: &Policy, named: &[&Policy], draft: &mut Draft) {
        let counts = |bytes: &[u8], namespace, keys: &[(&Principal, &str)], signature: &Vec<u8>| {
            let one = std::slice::from_ref(signature);
            !Self::signers(bytes, one, namespace, keys).is_empty()
        };
        let mut keys = root_keys(&before.root);
        keys.extend(root_keys(&self.root));
        draft
            .root_signatures
            .retain(|_, one| counts(&self.root_bytes, Namespace::Root, &keys, one));
        let mut keys = members_keys(&before.root, &before.members);
        keys.extend(named.iter().flat_map(|other| root_keys(&other.root)));
        draft
            .members_signatures
            .retain(|_, one| counts(&self.members_bytes, Namespace::Members, &keys, one));
        let lists: BTreeSet<Digest> = self.members.lists().map(|(_, list)| list).collect();
        draft
            .accepted
            .retain(|list| lists.contains(&Digest::of(list)));
    }
}

/// Keys whose signature counts for the next `members.toml`: those of admins, and root keys.
pub(super) fn members_keys<'a>(
    root: &'a Root,
    members: &'a Members,
) -> Vec<(&'a Principal, &'a str)> {
    let admins = members
        .person
        .iter()
        .filter(|person| person.role == Role::Admin);
    let admin_keys = admins.flat_map(|person| {
        let keys = person.keys.iter();
        keys.map(move |key| (&person.name, key.as_str()))
    });
    admin_keys.chain(root_keys(root)).collect()
}

fn root_keys(root: &Root) -> Vec<(&Principal, &str)> {
    let keys = root.key.iter();
    keys.map(|key| (&key.principal, key.public.as_str()))
        .collect()
}

/// The documents and signatures of one commit; `None` where it holds no version.
pub(in crate::store) fn draft_of(
    repo: &Repository,
    folder: &Folder,
) -> Result<Option<Draft>, Error> {
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

/// The lists of one commit: documents that count although their key lost rights, or the version that
/// they name does not stand.
fn lists(repo: &Repository, folder: &Folder) -> Result<Vec<Vec<u8>>, Error> {
    let Some(tree) = folder.object("accepted") else {
        return Ok(Vec::new());
    };
    let blobs = repo.read_tree(tree)?.into_iter();
    blobs
        .filter(|entry| entry.kind == EntryKind::Blob)
        .take(MAX_PARTS)
        .map(|entry| Ok(repo.read_blob(entry.id, MAX_LIST)?))
        .collect()
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
        .take(MAX_PARTS);
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

/// What a version still needs, given the one before it and those that it is the first to set aside.
/// Not whether it follows.
pub(super) fn tally(before: Option<&Policy>, step: &Step, named: &[&Policy]) -> Vec<Tally> {
    let root = |what, root: &Root| Tally {
        what,
        signed: step.root_signers(root),
        able: people(&root_keys(root)),
        threshold: root.thresholds.root,
    };
    let members = |what, keys: &[(&Principal, &str)], threshold| Tally {
        what,
        signed: step.members_signers(keys),
        able: people(keys),
        threshold,
    };
    let by_root = |what, root: &Root| members(what, &root_keys(root), root.thresholds.root);
    let by_admins = |root: &Root, of: &Members| {
        let threshold = root.thresholds.members;
        members("members.toml", &members_keys(root, of), threshold)
    };
    let Some(before) = before else {
        return vec![
            root("root.toml", &step.root),
            by_admins(&step.root, &step.members),
        ];
    };
    let mut all = vec![by_admins(&before.root, &before.members)];
    if Digest::of(&step.root_bytes) != before.root_digest {
        all.push(root("root.toml by the keys before", &before.root));
        all.push(root(OWN_KEYS, &step.root));
    }
    if !named.is_empty() {
        all.push(by_root("members.toml by root keys", &before.root));
    }
    let mut seen = BTreeSet::from([before.root_digest]);
    for other in named.iter().filter(|other| seen.insert(other.root_digest)) {
        let what = "members.toml by root keys of the version set aside";
        all.push(by_root(what, &other.root));
    }
    all
}

fn people(keys: &[(&Principal, &str)]) -> BTreeSet<Principal> {
    keys.iter().map(|(name, _)| (*name).clone()).collect()
}

pub(super) fn need(version: u64, tallies: &[Tally]) -> Result<(), Error> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::founding;
    use crate::model::reduction::list_bytes;

    #[test]
    fn a_version_with_more_lists_than_are_read_is_refused_before_it_is_written() {
        let root = codec::encode(&founding::root(&[])).unwrap();
        let members = codec::encode(&founding::members(vec![], vec![])).unwrap();
        let mut draft = Draft::unsigned(root, members);
        let list = |number: usize| list_bytes(&BTreeSet::from([Digest::of(&number.to_be_bytes())]));
        draft.accepted = (0..MAX_PARTS).map(list).collect();
        assert_eq!(Step::of(&draft).unwrap().lists.len(), MAX_PARTS);
        draft.accepted.push(list(MAX_PARTS));
        let error = Step::of(&draft).err().unwrap().to_string();
        assert!(error.contains("take out fewer keys"), "{error}");
    }
}
