//! The policy: every version from the founding on, each verified by the one that it follows.
//!
//! Where two versions follow the same one, both stay on the ref, and which of them stands is for the
//! root keys to say ([`fork`]). Format: `docs/format.md`, "Policy". A commit holds `root.toml`,
//! `members.toml` and the folders `root.sigs` and `members.sigs` with one signature for each key,
//! named by the key's hex fingerprint.

mod fork;
mod sense;
mod step;

pub use fork::{Claim, Rivals};
pub(super) use step::draft_of;
pub(super) use step::{MAX_LIST, MAX_PARTS};
pub use step::{OWN_KEYS, Tally};

use super::draft::Draft;
use super::layout::Layout;
use super::{Error, chain};
use crate::git::Repository;
use crate::model::digest::Digest;
use crate::model::ids::{Fingerprint, Principal};
use crate::model::object_id::ObjectId;
use crate::model::policy::Policy;
use crate::model::reduction::{self, Reduction};
use crate::model::rival::{self, Rival};
use crate::model::signer::PolicyRef;
use crate::trust::KeyRing;
use fork::Selection;
use std::collections::{BTreeMap, BTreeSet};
use step::{Step, need, tally};

/// File names, without ending, of the two documents of a version.
pub(super) const NAMES: [&str; 2] = ["root", "members"];

/// Every version of the policy, and which of them are the chain.
///
/// Invariant: the chain is not empty, and each version was authorised by the one that it follows.
#[derive(Debug)]
pub struct PolicyHistory {
    repo: Digest,
    /// Each after the one that it follows.
    all: Vec<Version>,
    /// Places in `all` by digest.
    places: BTreeMap<Digest, usize>,
    /// Which of them stand.
    selection: Selection,
    /// Lists of documents that count although their key lost rights, or the version that they name
    /// was set aside, by digest.
    lists: BTreeMap<Digest, BTreeSet<Digest>>,
    /// The keys of all versions.
    keys: KeyRing,
}

/// One version and how it came to be.
#[derive(Debug)]
struct Version {
    policy: Policy,
    /// The version that it follows; `None` for the first.
    parent: Option<usize>,
    /// Who signed it.
    signers: BTreeSet<Principal>,
    /// Versions that it is the first to set aside.
    names: Vec<usize>,
}

impl PolicyHistory {
    /// The repository's id: SHA-256 of `root.toml` version 1.
    pub const fn repo(&self) -> Digest {
        self.repo
    }

    /// The version in force; while rivals are undecided, the last one before them.
    ///
    /// # Panics
    /// Never: the chain is not empty.
    pub fn newest(&self) -> &Policy {
        let last = self.selection.chain.last();
        let last = last.expect("a policy history has a first version");
        &self.all[*last].policy
    }

    /// The version in force, for whoever signs under it. Fails while rivals are undecided.
    pub fn decided(&self) -> Result<&Policy, Error> {
        if self.rivals().is_empty() {
            return Ok(self.newest());
        }
        Err(Error::RivalPolicy {
            rivals: self.rivals().to_vec(),
        })
    }

    /// Versions that follow the same one and of which it is undecided which stands.
    pub fn rivals(&self) -> &[Rivals] {
        &self.selection.rivals
    }

    /// The version that a document names, whether it stands or not.
    pub fn find(&self, reference: PolicyRef) -> Option<&Policy> {
        let policy = self.version(reference.digest)?;
        (policy.reference == reference).then_some(policy)
    }

    /// The keys of all versions, to verify signatures with.
    pub(super) const fn keys(&self) -> &KeyRing {
        &self.keys
    }

    /// The version with this digest, whether it stands or not.
    pub fn version(&self, digest: Digest) -> Option<&Policy> {
        let place = self.places.get(&digest)?;
        Some(&self.all[*place].policy)
    }

    /// Whether a version is in the chain: while rivals are undecided, whether it stands whichever of them
    /// will.
    pub fn stands(&self, digest: Digest) -> bool {
        let place = self.places.get(&digest);
        place.is_some_and(|place| self.selection.chain.contains(place))
    }

    /// Why a document by `key` that names `policy` does not count: the key lost rights in a later
    /// version, which does not list the document. While rivals are undecided, the word of each counts:
    /// whoever makes one gets nothing back by it that another took.
    pub fn reduction(
        &self,
        key: &Fingerprint,
        policy: PolicyRef,
        document: Digest,
    ) -> Option<&Reduction> {
        self.open().find_map(|end| {
            let mut entries = end.members.reduced.iter();
            let entry = entries.find(|entry| entry.key == *key)?;
            let listed = self.lists.get(&entry.accepted);
            let counts = policy.version >= entry.since
                || listed.is_some_and(|list| list.contains(&document));
            (!counts).then_some(entry)
        })
    }

    /// Whether a document counts although the version that it names does not stand: the newest version
    /// lists it under that one, or the nearest before it that has an entry. While rivals are undecided,
    /// each of them must.
    pub fn counts_aside(&self, policy: PolicyRef, document: Digest) -> bool {
        self.open().all(|end| {
            let entry = self.entry_under(end, policy.digest);
            let list = entry.and_then(|entry| self.lists.get(&entry.accepted));
            list.is_some_and(|list| list.contains(&document))
        })
    }

    /// The version whose entry speaks of documents that name `digest`, which does not stand.
    pub(super) fn entry_of(&self, digest: Digest) -> Option<Digest> {
        let place = *self.places.get(&digest)?;
        if self.selection.chain.contains(&place) {
            return None;
        }
        let entry = self.entry_under(self.newest(), digest);
        entry.map(|entry| entry.digest)
    }

    /// The entry of `end` that speaks of documents that name `digest`.
    fn entry_under<'a>(&self, end: &'a Policy, digest: Digest) -> Option<&'a Rival> {
        let own = |place: &usize| end.members.rival(self.all[*place].policy.reference.digest);
        self.path_of(digest).iter().rev().find_map(own)
    }

    /// Whether a version is one of undecided rivals, or one of them rests on it.
    pub fn is_undecided(&self, digest: Digest) -> bool {
        !self.stands(digest) && self.open().any(|end| self.rests_on(end, digest))
    }

    /// The documents of a list, by the digest of the list.
    pub fn list(&self, digest: Digest) -> Option<&BTreeSet<Digest>> {
        self.lists.get(&digest)
    }

    /// The versions of the chain, oldest first.
    pub fn versions(&self) -> impl DoubleEndedIterator<Item = &Policy> {
        let chain = self.selection.chain.iter();
        chain.map(|place| &self.all[*place].policy)
    }

    /// The version that said first what this entry says of its key; `since` is when its rights ended.
    pub fn declared(&self, entry: &Reduction) -> u64 {
        let says = |policy: &&Policy| {
            let mut entries = policy.members.reduced.iter();
            entries.any(|one| one.key == entry.key && one.how == entry.how)
        };
        let first = self.versions().find(says);
        first.map_or(entry.since, |policy| policy.reference.version)
    }

    /// Who signed a version.
    pub fn signers(&self, digest: Digest) -> BTreeSet<Principal> {
        let place = self.places.get(&digest);
        place.map_or_else(BTreeSet::new, |place| self.all[*place].signers.clone())
    }

    /// Versions that others could follow: the newest; while rivals are undecided, the newest of each.
    pub fn ends(&self) -> Vec<&Policy> {
        self.open().collect()
    }

    fn open(&self) -> impl Iterator<Item = &Policy> {
        let ends = self.selection.ends.iter();
        ends.map(|place| &self.all[*place].policy)
    }

    /// Versions that do not stand if `end` does, oldest first; those that `end` knows of are left out.
    pub(super) fn against(&self, end: &Policy) -> Vec<Digest> {
        let own = self.path_of(end.reference.digest);
        let ends = self.selection.ends.iter();
        let places: BTreeSet<usize> = ends
            .flat_map(|end| fork::path(&self.all, *end))
            .filter(|place| !own.contains(place))
            .collect();
        let digests = places
            .iter()
            .map(|place| self.all[*place].policy.reference.digest);
        digests
            .filter(|digest| end.members.rival(*digest).is_none())
            .collect()
    }

    /// Whether `end` is `digest`, or a version that rests on it.
    pub fn rests_on(&self, end: &Policy, digest: Digest) -> bool {
        let place = self.places.get(&digest);
        place.is_some_and(|place| self.path_of(end.reference.digest).contains(place))
    }

    /// Versions that rest on `digest`, itself not among them, and that may stand; by their numbers.
    pub fn resting_on(&self, digest: Digest) -> Vec<&Policy> {
        let Some(place) = self.places.get(&digest) else {
            return Vec::new();
        };
        let ends = self.selection.ends.iter();
        let above = ends.filter_map(|end| {
            let path = fork::path(&self.all, *end);
            let at = path.iter().position(|one| one == place)?;
            Some(path[at + 1..].to_vec())
        });
        let places: BTreeSet<usize> = above.flatten().collect();
        let mut found: Vec<&Policy> = places.iter().map(|at| &self.all[*at].policy).collect();
        found.sort_by_key(|one| (one.reference.version, one.reference.digest));
        found
    }

    fn path_of(&self, digest: Digest) -> Vec<usize> {
        let place = self.places.get(&digest);
        place.map_or_else(Vec::new, |place| fork::path(&self.all, *place))
    }

    /// The same with the versions that stand chosen.
    fn chosen(mut self) -> Self {
        self.selection = fork::select(&self.all);
        self
    }

    fn found(step: &Step) -> Result<Self, Error> {
        let first = step.members.version == 1
            && step.root.version == 1
            && step.members.previous.is_none()
            && step.root.previous.is_none();
        if !first || !step.members.reduced.is_empty() || !step.members.rival.is_empty() {
            return Err(Error::Policy(
                "the chain does not begin with version 1".into(),
            ));
        }
        let needs = tally(None, step, &[]);
        need(1, &needs)?;
        let mut history = Self {
            repo: Digest::of(&step.root_bytes),
            all: Vec::new(),
            places: BTreeMap::new(),
            selection: Selection::default(),
            lists: BTreeMap::new(),
            keys: KeyRing::default(),
        };
        history.push(step.policy()?, None, &needs, Vec::new());
        Ok(history)
    }

    /// Adds a version that follows one that is here. The same version twice, with signatures of
    /// others, is one.
    fn follow(&mut self, step: &Step) -> Result<(), Error> {
        let digest = Digest::of(&step.members_bytes);
        if let Some(place) = self.places.get(&digest) {
            // As whole as the first time: nobody without a say makes the ref longer.
            let same = &self.all[*place];
            let before = same.parent.map(|parent| &self.all[parent].policy);
            step.policy()?;
            let needs = tally(before, step, &self.policies(&same.names));
            need(step.members.version, &needs)?;
            self.lists.extend(step.lists.clone());
            return Ok(());
        }
        let previous = step.members.previous;
        let parent = previous.and_then(|digest| self.places.get(&digest));
        let parent = *parent.ok_or_else(|| does_not_follow(step.members.version))?;
        let before = &self.all[parent].policy;
        let after = check_step(before, step)?;
        let named = self.named(before, &after)?;
        let needs = tally(Some(before), step, &self.policies(&named));
        need(step.members.version, &needs)?;
        self.lists.extend(step.lists.clone());
        let missing = |list: &(String, Digest)| !self.lists.contains_key(&list.1);
        let missing = after.members.lists().find(missing);
        if let Some((of, _)) = missing {
            return Err(Error::Policy(format!(
                "the list of documents of {of} that count is not there"
            )));
        }
        self.push(after, Some(parent), &needs, named);
        Ok(())
    }

    fn push(&mut self, policy: Policy, parent: Option<usize>, needs: &[Tally], names: Vec<usize>) {
        let signers = needs.iter().flat_map(|need| need.signed.clone()).collect();
        self.places.insert(policy.reference.digest, self.all.len());
        self.all.push(Version {
            policy,
            parent,
            signers,
            names,
        });
    }

    /// Places of the versions that `after` is the first to set aside. They must be here, and not be
    /// what it rests on.
    fn named(&self, before: &Policy, after: &Policy) -> Result<Vec<usize>, Error> {
        let own = self.path_of(before.reference.digest);
        let added = rival::added(&before.members, &after.members);
        let place = |digest: Digest| {
            let place = self.places.get(&digest).copied();
            place.filter(|place| !own.contains(place)).ok_or_else(|| {
                Error::Policy(format!(
                    "version {} sets aside {}, which is no rival of it here",
                    after.reference.version,
                    digest.short()
                ))
            })
        };
        added.into_iter().map(|entry| place(entry.digest)).collect()
    }

    fn policies(&self, places: &[usize]) -> Vec<&Policy> {
        places.iter().map(|at| &self.all[*at].policy).collect()
    }
}

fn does_not_follow(version: u64) -> Error {
    Error::Policy(format!(
        "version {version} does not follow the one before it"
    ))
}

/// What holds between a version and the one that it follows, signatures apart.
fn check_step(before: &Policy, step: &Step) -> Result<Policy, Error> {
    step.check_links(before)?;
    let after = step.policy()?;
    reduction::check(before, &after).map_err(Error::Policy)?;
    rival::check(&before.members, &after.members).map_err(Error::Policy)?;
    Ok(after)
}

/// Loads and verifies the policy; `None` where there is none.
pub fn load(repo: &Repository, layout: &Layout) -> Result<Option<PolicyHistory>, Error> {
    let name = layout.policy();
    let head = repo.read_ref(&name)?;
    let loaded = head.map(|head| load_at(repo, head)).transpose();
    loaded.map_err(|error| error.at(&name))
}

/// The same for a head that is on no ref of ours yet.
pub fn load_at(repo: &Repository, head: ObjectId) -> Result<PolicyHistory, Error> {
    let mut history: Option<PolicyHistory> = None;
    for folder in chain::read(repo, head)? {
        let step = Step::read(repo, &folder)?;
        match &mut history {
            None => history = Some(PolicyHistory::found(&step)?),
            Some(history) => history.follow(&step)?,
        }
    }
    let mut history = history.ok_or_else(|| Error::Policy("the chain holds no version".into()))?;
    let policies = history.all.iter().map(|version| &version.policy);
    let texts = policies.flat_map(Policy::key_texts);
    // Every text was read as a key when its version was checked.
    history.keys = texts.filter_map(|text| text.parse().ok()).collect();
    Ok(history.chosen())
}

/// Verifies a version that is about to be written as it will be verified when it is read.
pub fn rehearse(before: Option<PolicyHistory>, draft: &Draft) -> Result<PolicyHistory, Error> {
    let step = Step::of(draft)?;
    let history = match before {
        None => PolicyHistory::found(&step)?,
        Some(mut history) => {
            history.follow(&step)?;
            history
        }
    };
    Ok(history.chosen())
}

/// A draft as the policy that it would be.
pub fn policy_of(draft: &Draft) -> Result<Policy, Error> {
    Step::of(draft)?.policy()
}

/// The version that a draft would follow: the newest; while rivals are undecided, the newest of one
/// of them, and only where the draft sets the others aside.
pub fn followed<'a>(history: &'a PolicyHistory, draft: &Draft) -> Result<&'a Policy, Error> {
    let step = Step::of(draft)?;
    follows(history, &step).map_err(Error::proposed)
}

fn follows<'a>(history: &'a PolicyHistory, step: &Step) -> Result<&'a Policy, Error> {
    let previous = step.members.previous;
    let mut ends = history.ends().into_iter();
    let before = ends.find(|end| Some(end.reference.digest) == previous);
    let before = before.ok_or_else(|| does_not_follow(step.members.version))?;
    let against = history.against(before);
    let is_aside = |digest: &Digest| step.members.rival(*digest).is_some();
    if against.iter().all(is_aside) {
        return Ok(before);
    }
    history.decided()
}

/// What a draft needs before it can follow. Fails where it does not follow, or makes no sense by
/// itself.
pub fn open_needs(history: &PolicyHistory, draft: &Draft) -> Result<Vec<Tally>, Error> {
    needs_of(history, draft).map_err(Error::proposed)
}

/// The version that a draft would have followed, whatever came since, and who with a say under it signed
/// it. `None` where it follows no version that is here, or nobody with a say signed.
pub fn backed<'a>(
    history: &'a PolicyHistory,
    draft: &Draft,
) -> Option<(&'a Policy, BTreeSet<Principal>)> {
    let step = Step::of(draft).ok()?;
    let before = history.version(step.members.previous?)?;
    let needs = tally(Some(before), &step, &[]);
    let signed: BTreeSet<_> = needs.into_iter().flat_map(|need| need.signed).collect();
    (!signed.is_empty()).then_some((before, signed))
}

/// Whether somebody who had a say under one of the versions signed the draft.
pub fn is_signed(history: &PolicyHistory, draft: &Draft) -> bool {
    let Ok(step) = Step::of(draft) else {
        return false;
    };
    let mut versions = history.all.iter();
    versions.any(|before| {
        let needs = tally(Some(&before.policy), &step, &[]);
        needs.iter().any(|need| !need.signed.is_empty())
    })
}

fn needs_of(history: &PolicyHistory, draft: &Draft) -> Result<Vec<Tally>, Error> {
    let step = Step::of(draft)?;
    let before = follows(history, &step)?;
    let after = check_step(before, &step)?;
    sense::check(before, &after)?;
    let named = history.named(before, &after)?;
    Ok(tally(Some(before), &step, &history.policies(&named)))
}

/// Leaves of a draft only signatures that count for it and lists that it names: whoever can push adds
/// anything to a proposal.
pub(super) fn prune(history: &PolicyHistory, draft: &mut Draft) -> Result<(), Error> {
    let step = Step::of(draft)?;
    let before = follows(history, &step).map_err(Error::proposed)?;
    let added = rival::added(&before.members, &step.members);
    let named: Vec<&Policy> = added
        .iter()
        .filter_map(|entry| history.version(entry.digest))
        .collect();
    step.prune(before, &named, draft);
    Ok(())
}
