//! Taking rights: which documents of a key still count when it loses them.

use super::dossier::Held;
use super::draft::Draft;
use super::holders::fingerprints;
use super::{Error, Store, chain, policy};
use crate::model::codec;
use crate::model::digest::Digest;
use crate::model::event::{Change, Event};
use crate::model::ids::{Fingerprint, Principal, TaskId};
use crate::model::policy::{Actor, Members};
use crate::model::reduction::{Reduction, Why, is_less, list_bytes, read_list};
use crate::model::signer::Signer;
use crate::trust::Unverified;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// What a version that takes rights rests on.
#[derive(Debug, Default)]
pub struct Reduced {
    /// The lists that its entries name.
    pub lists: Vec<Vec<u8>>,
    /// Tasks that could not be read: nothing in them is on a list.
    pub unread: Vec<TaskId>,
}

/// Adds an entry to `members` for every key that has less rights in it than in the version in
/// force, and gives the lists that the entries name. An entry that `members` calls compromised and the
/// version in force does not gets a new list. Reads every document of the repository when there is
/// such a key.
///
/// A retired key keeps what it signed so far. Of a compromised one only the course of the tasks
/// stays; what acceptance rests on (approvals, seals, runs, grades) does not, until somebody adopts
/// it.
pub fn reduce(store: &Store, members: &mut Members, how: Why) -> Result<Reduced, Error> {
    let before = store.policy.newest();
    let actors = members.key_texts().into_iter().map(|(_, actor)| actor);
    let now: BTreeMap<Fingerprint, Actor> =
        fingerprints(members)?.into_iter().zip(actors).collect();
    let less =
        |key: &Fingerprint, actor: &Actor| now.get(key).is_none_or(|now| is_less(actor, now));
    let lost: BTreeMap<Fingerprint, Actor> = before
        .holders()
        .filter(|(key, actor)| less(key, actor))
        .map(|(key, actor)| (key.clone(), actor.clone()))
        .collect();
    let condemned = condemned(&before.members, members);
    let wanted: BTreeMap<Fingerprint, Why> = condemned
        .iter()
        .map(|key| (key.clone(), Why::Compromised))
        .chain(lost.keys().map(|key| (key.clone(), how)))
        .collect();
    let (mut documents, unread) = documents_of(store, &wanted)?;
    let mut lists = Vec::new();
    for (key, actor) in lost {
        let mut listed = documents.remove(&key).unwrap_or_default();
        let earlier = members.reduced.iter().find(|entry| entry.key == key);
        // What counted before goes on counting, unless the key is now found to be compromised.
        if let Some(earlier) = earlier.filter(|earlier| how <= earlier.how) {
            listed.extend(store.policy.list(earlier.accepted).into_iter().flatten());
        }
        let how = earlier.map_or(how, |earlier| how.max(earlier.how));
        let bytes = list_bytes(&listed);
        members.reduced.retain(|entry| entry.key != key);
        members.reduced.push(Reduction {
            key,
            principal: actor.name().clone(),
            how,
            since: before.reference.version + 1,
            accepted: Digest::of(&bytes),
        });
        lists.push(bytes);
    }
    for entry in &mut members.reduced {
        if let Some(listed) = condemned.get(&entry.key).and(documents.remove(&entry.key)) {
            let bytes = list_bytes(&listed);
            entry.accepted = Digest::of(&bytes);
            lists.push(bytes);
        }
    }
    Ok(Reduced { lists, unread })
}

/// Keys whose entry says compromised in `after` and did not in `before`.
fn condemned(before: &Members, after: &Members) -> BTreeSet<Fingerprint> {
    let was = |key: &Fingerprint| {
        let mut entries = before.reduced.iter();
        entries
            .find(|entry| entry.key == *key)
            .map(|entry| entry.how)
    };
    let entries = after.reduced.iter();
    let worse = entries.filter(|entry| was(&entry.key).is_some_and(|was| was < entry.how));
    worse.map(|entry| entry.key.clone()).collect()
}

type Documents = BTreeMap<Fingerprint, BTreeSet<Digest>>;

/// The documents that a list of each of these keys would name now; every key has an entry. And the
/// tasks that could not be read.
fn documents_of(
    store: &Store,
    wanted: &BTreeMap<Fingerprint, Why>,
) -> Result<(Documents, Vec<TaskId>), Error> {
    let keys = wanted.keys().map(|key| (key.clone(), BTreeSet::new()));
    let (mut found, mut unread): (Documents, _) = (keys.collect(), Vec::new());
    if wanted.is_empty() {
        return Ok((found, unread));
    }
    let mut add = |key: &Fingerprint, digest: Digest, is_evidence: bool| {
        if let Some(how) = wanted.get(key)
            && (*how == Why::Retired || !is_evidence)
        {
            found.entry(key.clone()).or_default().insert(digest);
        }
    };
    for (id, tip) in store.all_task_refs()? {
        // A task that can't be read must not keep anybody from taking rights.
        let Ok(dossier) = store
            .task_at(&id, tip)
            .and_then(|one| store.dossier_of(one))
        else {
            unread.push(id);
            continue;
        };
        for record in &dossier.history.records {
            let event = record.event.value();
            // What did not count before does not begin to.
            if record.event.reduced.is_none() {
                add(&event.signer.key, record.event.digest(), is_evidence(event));
            }
        }
        macro_rules! all {
            ($($documents:ident),*) => {$(
                for held in dossier.$documents.iter().filter(|held| held.document.reduced.is_none()) {
                    add(&held.value().signer.key, Held::digest(held), true);
                }
            )*};
        }
        all!(seals, reseals, decisions, overruled, runs, grades);
    }
    Ok((found, unread))
}

/// Whether acceptance rests on an event itself.
fn is_evidence(event: &Event) -> bool {
    event.change.iter().any(|change| {
        matches!(
            change,
            Change::ApprovePatch { .. } | Change::Adjudicate { .. } | Change::Publish { .. }
        )
    })
}

/// Documents that a version leaves out because they came after it was made: its lists are bound by its
/// signatures, so they can't grow while it waits for more.
#[derive(Debug, Default, Clone)]
pub struct LeftOut {
    /// By who signed them.
    pub documents: BTreeMap<Principal, BTreeSet<Digest>>,
    /// Tasks that could not be read.
    pub unread: Vec<TaskId>,
}

/// What a version that takes rights would list if it were made now, and does not.
pub fn left_out(store: &Store, draft: &Draft) -> Result<LeftOut, Error> {
    let before = policy::followed(&store.policy, draft)?;
    let members: Members = codec::decode(&draft.members)?;
    let entries: Vec<(&Reduction, Why)> = members
        .reduced
        .iter()
        .filter_map(|entry| {
            let mut old = before.members.reduced.iter();
            let old = old.find(|old| old.key == entry.key);
            let is_new = old.is_none_or(|old| (old.since, old.how) != (entry.since, entry.how));
            // An entry that said compromised before does not say why the key loses rights now.
            let how = match old {
                Some(old) if old.how == entry.how => Why::Retired,
                _ => entry.how,
            };
            is_new.then_some((entry, how))
        })
        .collect();
    let wanted = entries.iter().map(|(entry, how)| (entry.key.clone(), *how));
    let (found, unread) = documents_of(store, &wanted.collect())?;
    let list = |digest: Digest| {
        let mut own = draft.accepted.iter();
        let own = own.find(|bytes| Digest::of(bytes) == digest);
        own.and_then(|bytes| read_list(bytes))
            .or_else(|| store.policy.list(digest).cloned())
            .unwrap_or_default()
    };
    let mut out = LeftOut {
        documents: BTreeMap::new(),
        unread,
    };
    for (entry, _) in entries {
        let listed = list(entry.accepted);
        let documents = found.get(&entry.key).into_iter().flatten();
        let left: Vec<_> = documents.filter(|one| !listed.contains(one)).collect();
        if !left.is_empty() {
            let all = out.documents.entry(entry.principal.clone()).or_default();
            all.extend(left);
        }
    }
    Ok(out)
}

/// What every signed document says of its signer.
#[derive(Deserialize)]
struct Signed {
    signer: Signer,
}

/// Adds documents to the lists of the keys that signed them, or of the versions that were set aside
/// and that they name. Gives the new lists.
pub fn adopt(
    store: &Store,
    members: &mut Members,
    wanted: &BTreeSet<Digest>,
) -> Result<Vec<Vec<u8>>, Error> {
    let mut left = wanted.clone();
    let mut of_keys = Documents::new();
    let mut of_rivals: BTreeMap<Digest, BTreeSet<Digest>> = BTreeMap::new();
    // What came from a remote and was not taken is looked at too.
    let mut refs = store.repo.list_refs(store.layout.prefix())?;
    for (id, _) in store.archived_tasks("")? {
        refs.extend(store.archived(&id)?);
    }
    refs.extend(store.repo.list_refs("refs/hangar-remote/")?);
    for (_, head) in refs {
        // A remote shows what it likes; what can't be read holds nothing to adopt.
        for folder in chain::read(&store.repo, head).unwrap_or_default() {
            for name in ["event", "manifest", "reseal", "approval", "run", "grade"] {
                let Some((bytes, signature)) = folder.document(&store.repo, name)? else {
                    continue;
                };
                let digest = Digest::of(&bytes);
                if !wanted.contains(&digest) {
                    continue;
                }
                let named = codec::decode::<Signed>(&bytes);
                let Ok(key) = Unverified::new(bytes, signature).claimed_key() else {
                    continue;
                };
                left.remove(&digest);
                let version = named.ok().map(|one| one.signer.policy.digest);
                match version.and_then(|version| store.policy.entry_of(version)) {
                    Some(rival) => of_rivals.entry(rival).or_default().insert(digest),
                    None => of_keys.entry(key.fingerprint()).or_default().insert(digest),
                };
            }
        }
    }
    if let Some(digest) = left.first() {
        return Err(Error::Document {
            place: "no ref".into(),
            reason: format!("there is no document {}", digest.short()),
        });
    }
    let mut lists = Vec::new();
    let mut grow = |accepted: &mut Digest, more: &BTreeSet<Digest>| {
        let old = store.policy.list(*accepted).cloned().unwrap_or_default();
        let bytes = list_bytes(&old.into_iter().chain(more.iter().copied()).collect());
        *accepted = Digest::of(&bytes);
        lists.push(bytes);
    };
    for entry in &mut members.reduced {
        if let Some(more) = of_keys.get(&entry.key) {
            grow(&mut entry.accepted, more);
        }
    }
    for entry in &mut members.rival {
        if let Some(more) = of_rivals.get(&entry.digest) {
            grow(&mut entry.accepted, more);
        }
    }
    Ok(lists)
}
