//! Versions of the policy that still collect signatures.
//!
//! A proposal lies on `policy-proposals/DIGEST`, named by the SHA-256 of its `members.toml`. Each
//! commit holds both documents and signatures; what counts are the signatures of all commits
//! together, so people can sign in any order and on different machines. Format: `docs/format.md`,
//! "Proposals".

use super::chain::{self, Note};
use super::draft::Draft;
use super::holders;
use super::identity::holder;
use super::policy::{self, Tally};
use super::reduce::{adopt, reduce};
use super::{Error, Store};
use crate::git::{self, Repository};
use crate::model::codec;
use crate::model::digest::Digest;
use crate::model::ids::{Principal, TaskId};
use crate::model::object_id::ObjectId;
use crate::model::policy::{Members, Policy, Root};
use crate::model::reduction::Why;
use crate::model::signer::PolicyRef;
use crate::trust::{PublicKey, Signer};
use std::collections::{BTreeMap, BTreeSet};

/// Most commits of one proposal that are read.
const MAX_COMMITS: usize = 1000;

/// A version that is not in force.
#[derive(Debug, Clone)]
pub struct Proposal {
    /// SHA-256 of its `members.toml`.
    pub digest: Digest,
    /// Both documents and the signatures so far.
    pub draft: Draft,
}

/// A version that can't be put in force any more: another one of its number was.
#[derive(Debug, Clone)]
pub struct Overtaken {
    /// Both documents and the signatures that it had.
    pub proposal: Proposal,
    /// Who with a say signed it.
    pub signed: BTreeSet<Principal>,
    /// The version in force that has its number.
    pub by: PolicyRef,
}

/// What became of a draft.
#[derive(Debug, Clone)]
pub enum Fate {
    /// It is the policy now.
    InForce(PolicyRef),
    /// It lies on its ref and waits.
    Waits {
        /// Names it.
        digest: Digest,
        /// What it needs, also what it has enough of.
        needs: Vec<Tally>,
    },
}

/// A version that nobody has signed yet.
#[derive(Debug, Clone)]
pub struct Next {
    /// The version.
    pub draft: Draft,
    /// Tasks that could not be read: what keys that lose rights signed there does not count.
    pub unread: Vec<TaskId>,
}

impl From<Draft> for Next {
    fn from(draft: Draft) -> Self {
        Self {
            draft,
            unread: Vec::new(),
        }
    }
}

/// The next version: the newest one with `edit` done to it, not signed yet. `None` where nothing
/// changes.
///
/// Keys that have less rights in it get an entry that says why (`how`) and which of their documents
/// still count.
pub fn next_version<E: From<Error>>(
    store: &Store,
    how: Why,
    edit: impl FnOnce(&mut Root, &mut Members) -> Result<(), E>,
) -> Result<Option<Next>, E> {
    let before = store.policy.decided()?;
    let (mut root, mut members) = (before.root.clone(), before.members.clone());
    edit(&mut root, &mut members)?;
    if root == before.root && members == before.members {
        return Ok(None);
    }
    holders::refuse_taken(before, &root, &members)?;
    let reduced = reduce(store, &mut members, how)?;
    let mut draft = draft_after(store, before, root, members)?;
    draft.accepted = reduced.lists;
    policy::open_needs(&store.policy, &draft)?;
    Ok(Some(Next {
        draft,
        unread: reduced.unread,
    }))
}

/// The next version, in which these documents count again that did not: their key lost rights, or
/// the version that they name was set aside. `None` where they did.
pub fn adopting(store: &Store, documents: &BTreeSet<Digest>) -> Result<Option<Draft>, Error> {
    let before = store.policy.decided()?;
    let mut members = before.members.clone();
    let accepted = adopt(store, &mut members, documents)?;
    if members == before.members {
        return Ok(None);
    }
    let mut draft = draft_after(store, before, before.root.clone(), members)?;
    draft.accepted = accepted;
    policy::open_needs(&store.policy, &draft)?;
    Ok(Some(draft))
}

/// The version that follows `before` with these two documents.
pub(super) fn draft_after(
    store: &Store,
    before: &Policy,
    mut root: Root,
    mut members: Members,
) -> Result<Draft, Error> {
    let root = if root == before.root {
        root_bytes(store, before)?
    } else {
        root.version = before.root.version + 1;
        root.previous = Some(before.root_digest);
        codec::encode(&root)?
    };
    members.version = before.reference.version + 1;
    members.previous = Some(before.reference.digest);
    members.root = Digest::of(&root);
    Ok(Draft::unsigned(root, codec::encode(&members)?))
}

/// The bytes of a version's `root.toml`: they must stay the same while nothing in them changes.
fn root_bytes(store: &Store, of: &Policy) -> Result<Vec<u8>, Error> {
    let tip = store.repo.read_ref(&store.layout.policy())?;
    let wanted = of.root_digest;
    for folder in chain::read(&store.repo, tip.ok_or(Error::NoPolicy)?)?
        .iter()
        .rev()
    {
        if let Some(bytes) = folder.file(&store.repo, "root.toml")?
            && Digest::of(&bytes) == wanted
        {
            return Ok(bytes);
        }
    }
    Err(Error::NoPolicy)
}

/// Signs a draft with a key that counts for it, and puts it in force or on its ref. One that has every
/// signature already, because people signed it apart, is put in force as it is.
pub fn sign(store: &Store, mut draft: Draft, signer: &Signer) -> Result<Fate, Error> {
    let history = &store.policy;
    let count = |needs: &[Tally]| -> usize { needs.iter().map(|one| one.signed.len()).sum() };
    policy::prune(history, &mut draft)?;
    let before = policy::followed(history, &draft)?;
    let mut needs = policy::open_needs(history, &draft)?;
    if !needs.iter().all(Tally::suffices) {
        let without = count(&needs);
        if Digest::of(&draft.root) != before.root_digest {
            draft.sign_root(signer)?;
        }
        draft.sign_members(signer)?;
        needs = policy::open_needs(history, &draft)?;
        if count(&needs) == without {
            return Err(adds_nothing(before, &draft, signer, &needs));
        }
    }
    let by = holder(before, signer.public());
    let author = by.map_or_else(|_| "root".to_owned(), |(by, _)| by.name().to_string());
    if needs.iter().all(Tally::suffices) {
        put_in_force(store, &draft, &author)?;
        let (version, digest) = (before.reference.version + 1, Digest::of(&draft.members));
        return Ok(Fate::InForce(PolicyRef { version, digest }));
    }
    let digest = put(store, &draft, &author)?;
    Ok(Fate::Waits { digest, needs })
}

fn put_in_force(store: &Store, draft: &Draft, author: &str) -> Result<(), Error> {
    let tip = store.repo.read_ref(&store.layout.policy())?;
    draft.publish(&store.repo, &store.layout, tip, author, store.clock)?;
    Ok(())
}

/// Puts the proposal that has every signature in force, where people signed it apart and nobody else does;
/// whether there was one. Of several it is for people to say which.
pub fn complete(store: &Store) -> Result<bool, Error> {
    let mut open = store.proposals()?;
    open.retain(|(_, needs)| needs.iter().all(Tally::suffices));
    let [(proposal, needs)] = open.as_mut_slice() else {
        return Ok(false);
    };
    policy::prune(&store.policy, &mut proposal.draft)?;
    let mut signed = needs.iter().flat_map(|need| &need.signed);
    let author = signed.next().map_or("root", |one| one.as_str());
    match put_in_force(store, &proposal.draft, author) {
        Ok(()) => Ok(true),
        // Somebody else in this clone was faster: it has moved, or goes on from another version by now. What
        // can't be put in force keeps no sync back.
        Err(Error::Git(git::Error::Conflict { .. }) | Error::Policy(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Why a signature by this key changes nothing: it may not sign, or has.
fn adds_nothing(before: &Policy, draft: &Draft, signer: &Signer, needs: &[Tally]) -> Error {
    let key = signer.public().fingerprint();
    let after = codec::decode::<Root>(&draft.root).unwrap_or_else(|_| before.root.clone());
    let held = before.holder(&key).map(|(actor, _)| actor.name());
    let of_root = |root| holders::root_holder(root, &key);
    let Some(principal) = held
        .or_else(|| of_root(&before.root))
        .or_else(|| of_root(&after))
        .cloned()
    else {
        return Error::UnknownKey { key };
    };
    if !needs.iter().any(|need| need.signed.contains(&principal)) {
        return Error::NotAllowed {
            principal,
            act: "sign this version of the policy".into(),
        };
    }
    let lacks = |need: &Tally| {
        !need.suffices() && need.able.contains(&principal) && !need.signed.contains(&principal)
    };
    let mut new_keys = Vec::new();
    if needs.iter().any(lacks) {
        let own = after.key.iter().filter(|one| one.principal == principal);
        let own = own.filter_map(|one| one.public.parse::<PublicKey>().ok());
        new_keys.extend(own.map(|one| one.fingerprint()).filter(|one| *one != key));
    }
    Error::SignedAlready {
        principal,
        new_keys,
        digest: Digest::of(&draft.members),
    }
}

/// Appends a draft with its signatures to its ref.
fn put(store: &Store, draft: &Draft, author: &str) -> Result<Digest, Error> {
    let digest = Digest::of(&draft.members);
    let reference = store.layout.proposal(&digest);
    let files = draft.files(&store.repo)?;
    let note = Note {
        author,
        seconds: store.clock.now().as_second(),
        message: "propose a policy",
    };
    loop {
        let tip = store.repo.read_ref(&reference)?;
        match chain::append(&store.repo, &reference, tip, &files, &note) {
            Ok(_) => return Ok(digest),
            Err(Error::Git(git::Error::Conflict { .. })) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Reads a proposal: the documents that its name binds, with the signatures of every commit.
pub fn read(repo: &Repository, digest: Digest, head: ObjectId) -> Result<Proposal, Error> {
    let folders = chain::read_up_to(repo, head, MAX_COMMITS)?;
    let wrong = |reason: &str| Error::Document {
        place: format!("the proposal {}", digest.short()),
        reason: reason.into(),
    };
    let mut found: Option<Draft> = None;
    for folder in &folders {
        let Some(draft) = policy::draft_of(repo, folder)? else {
            continue;
        };
        let own = Digest::of(&draft.members) == digest
            && codec::decode::<Members>(&draft.members)
                .is_ok_and(|members| members.root == Digest::of(&draft.root));
        match &mut found {
            _ if !own => {}
            None => found = Some(draft),
            Some(found) => {
                for list in draft.accepted {
                    if !found.accepted.contains(&list) {
                        found.accepted.push(list);
                    }
                }
                add(&mut found.root_signatures, draft.root_signatures);
                add(&mut found.members_signatures, draft.members_signatures);
            }
        }
    }
    let draft = found.ok_or_else(|| wrong("it holds no version of that digest"))?;
    Ok(Proposal { digest, draft })
}

/// Keeps every signature: one of another commit never stands in place of one that is there.
fn add(all: &mut BTreeMap<String, Vec<u8>>, more: BTreeMap<String, Vec<u8>>) {
    for (name, bytes) in more {
        let taken = all.get(&name).is_some_and(|own| *own != bytes);
        let name = if taken {
            format!("{name}-{}", Digest::of(&bytes).hex())
        } else {
            name
        };
        all.insert(name, bytes);
    }
}

impl Store {
    /// Proposals that are here under a digest that begins so, also those that are history.
    pub fn proposals_named(&self, named: &str) -> Result<Vec<Proposal>, Error> {
        let refs = self.repo.list_refs(&self.layout.proposals())?.into_iter();
        let digests = refs.filter_map(|(name, head)| Some((self.layout.proposal_of(&name)?, head)));
        let fitting = digests.filter(|(digest, _)| digest.begins_with(named));
        Ok(fitting
            .filter_map(|(digest, head)| read(&self.repo, digest, head).ok())
            .collect())
    }

    /// Proposals that could follow the newest version, with what each needs; while rivals are undecided,
    /// those that decide. Others are history.
    pub fn proposals(&self) -> Result<Vec<(Proposal, Vec<Tally>)>, Error> {
        let mut open = Vec::new();
        for (name, head) in self.repo.list_refs(&self.layout.proposals())? {
            let Some(digest) = self.layout.proposal_of(&name) else {
                continue;
            };
            let Ok(proposal) = read(&self.repo, digest, head) else {
                continue;
            };
            // One that nobody with a say has signed is nobody's proposal.
            let needs = policy::open_needs(&self.policy, &proposal.draft);
            if let Ok(needs) = needs
                && needs.iter().any(|need| !need.signed.is_empty())
            {
                open.push((proposal, needs));
            }
        }
        Ok(open)
    }

    /// Proposals that were overtaken, in the order of their numbers. None while rivals are undecided.
    pub fn overtaken(&self) -> Result<Vec<Overtaken>, Error> {
        let mut found = Vec::new();
        if !self.policy.rivals().is_empty() {
            return Ok(found);
        }
        for (name, head) in self.repo.list_refs(&self.layout.proposals())? {
            let digest = self.layout.proposal_of(&name);
            let digest = digest.filter(|digest| self.policy.version(*digest).is_none());
            let Some(Ok(proposal)) = digest.map(|digest| read(&self.repo, digest, head)) else {
                continue;
            };
            let Some((before, signed)) = policy::backed(&self.policy, &proposal.draft) else {
                continue;
            };
            let number = before.reference.version + 1;
            let mut chain = self.policy.versions().map(|one| one.reference);
            if let Some(by) = chain.find(|one| one.version == number)
                && self.policy.stands(before.reference.digest)
            {
                found.push(Overtaken {
                    proposal,
                    signed,
                    by,
                });
            }
        }
        found.sort_by_key(|one| (one.by.version, one.proposal.digest));
        Ok(found)
    }
}
