//! Taking rights: which documents of a key still count when it loses them.

use super::dossier::Held;
use super::holders::fingerprints;
use super::{Error, Store, chain};
use crate::model::digest::Digest;
use crate::model::event::{Change, Event};
use crate::model::ids::Fingerprint;
use crate::model::policy::{Actor, Members};
use crate::model::reduction::{Reduction, Why, is_less, list_bytes};
use crate::trust::Unverified;
use std::collections::{BTreeMap, BTreeSet};

/// Adds an entry to `members` for every key that has less rights in it than in the version in
/// force, and gives the lists that the entries name. Reads every document of the repository when
/// there is such a key.
///
/// A retired key keeps what it signed so far. Of a compromised one only the course of the tasks
/// stays; what acceptance rests on (approvals, seals, runs, grades) does not, until somebody adopts
/// it.
pub fn reduce(store: &Store, members: &mut Members, how: Why) -> Result<Vec<Vec<u8>>, Error> {
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
    if lost.is_empty() {
        return Ok(Vec::new());
    }
    let mut documents = documents_of(store, &lost.keys().collect(), how)?;
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
    Ok(lists)
}

type Documents = BTreeMap<Fingerprint, BTreeSet<Digest>>;

fn documents_of(
    store: &Store,
    keys: &BTreeSet<&Fingerprint>,
    how: Why,
) -> Result<Documents, Error> {
    let mut found = Documents::new();
    let mut add = |key: &Fingerprint, digest: Digest| {
        if keys.contains(key) {
            found.entry(key.clone()).or_default().insert(digest);
        }
    };
    for (id, tip) in store.all_task_refs()? {
        // A task that can't be read must not keep anybody from taking rights.
        let Ok(dossier) = store
            .task_at(&id, tip)
            .and_then(|one| store.dossier_of(one))
        else {
            continue;
        };
        for record in &dossier.history.records {
            let event = record.event.value();
            // What did not count before does not begin to.
            if record.event.reduced.is_some() {
                continue;
            }
            if how == Why::Retired || !is_evidence(event) {
                add(&event.signer.key, record.event.digest());
            }
        }
        if how == Why::Compromised {
            continue;
        }
        macro_rules! all {
            ($($documents:ident),*) => {$(
                for held in dossier.$documents.iter().filter(|held| held.document.reduced.is_none()) {
                    add(&held.value().signer.key, Held::digest(held));
                }
            )*};
        }
        all!(seals, reseals, decisions, overruled, runs, grades);
    }
    Ok(found)
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

/// Adds documents to the lists of the keys that signed them. Gives the new lists.
pub fn adopt(
    store: &Store,
    members: &mut Members,
    wanted: &BTreeSet<Digest>,
) -> Result<Vec<Vec<u8>>, Error> {
    let mut left = wanted.clone();
    let mut more = Documents::new();
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
                if let Ok(key) = Unverified::new(bytes, signature).claimed_key() {
                    left.remove(&digest);
                    more.entry(key.fingerprint()).or_default().insert(digest);
                }
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
    for (key, documents) in more {
        let Some(entry) = members.reduced.iter_mut().find(|entry| entry.key == key) else {
            continue;
        };
        let old = store.policy.list(entry.accepted).cloned();
        let listed = old
            .unwrap_or_default()
            .into_iter()
            .chain(documents)
            .collect();
        let bytes = list_bytes(&listed);
        entry.accepted = Digest::of(&bytes);
        lists.push(bytes);
    }
    Ok(lists)
}
