//! What came with a sync, changes what people may rely on, and is said by no answer of a later command:
//! each is told once in a clone. Must not know how the sync went.

use super::Here;
use super::policy::overtaken;
use crate::base::words::count;
use crate::model::digest::Digest;
use crate::model::ids::TaskId;
use crate::model::reduction::{Reduction, Why};
use crate::store::index::keys;
use crate::store::{Store, told};
use std::collections::{BTreeMap, BTreeSet};

/// What is told, by what it is remembered as.
type News = BTreeMap<String, String>;

/// Tells what is new in this clone. `tasks` came just now.
pub(super) fn tell(here: &Here, store: &Store, tasks: &[TaskId]) {
    let mut news = compromised(store);
    news.extend(overtaken_versions(store));
    news.extend(shared_keys(store, tasks));
    let new = told::untold(&store.repo.hangar_dir(), news.keys().cloned());
    for key in &new {
        if let Some(text) = news.get(key) {
            here.notices.say(text);
        }
    }
    told::tell(&store.repo.hangar_dir(), new);
}

/// What whoever makes this version of the policy sees while they do it is not told them afterwards.
pub(super) fn know(store: &Store, version: u64) {
    let own = |entry: &&Reduction| entry.since == version;
    let own = compromised_keys(store).filter(own).map(compromised_as);
    told::tell(&store.repo.hangar_dir(), own);
}

fn compromised_keys(store: &Store) -> impl Iterator<Item = &Reduction> {
    let entries = store.policy.newest().members.reduced.iter();
    entries.filter(|entry| entry.how == Why::Compromised)
}

fn compromised_as(entry: &Reduction) -> String {
    format!("compromised {} {}", entry.since, entry.key)
}

/// Keys that were declared compromised.
fn compromised(store: &Store) -> News {
    let one = |entry: &Reduction| {
        let counting = store.policy.list(entry.accepted).map_or(0, BTreeSet::len);
        let text = format!(
            "version {} of the policy declares the key {} of {} compromised: nothing that it signed counts but the {} that the version lists. `hangar task list` and `hangar task show` mark the rest, and `hangar verify --all` names what rested on it",
            entry.since,
            entry.key,
            entry.principal,
            count(counting, "document", "documents"),
        );
        (compromised_as(entry), text)
    };
    compromised_keys(store).map(one).collect()
}

/// Proposed versions of the policy that can't be put in force any more.
fn overtaken_versions(store: &Store) -> News {
    // What can't be read is no news.
    let all = overtaken(store).unwrap_or_default();
    let one = |one: super::policy::OvertakenView| {
        let signed: Vec<_> = one.signed.iter().map(ToString::to_string).collect();
        let text = format!(
            "the version {version} of the policy that {} signed ({}: {}) was overtaken: another version {version} was put in force before it had its signatures. Whoever still wants it makes the change again on top of that (`hangar policy log` shows both)",
            signed.join(" and "),
            one.digest.short(),
            one.changes.join("; "),
            version = one.version,
        );
        (format!("overtaken {}", one.digest), text)
    };
    all.into_iter().map(one).collect()
}

/// External keys that one of these tasks has and another live task too: clones gave them apart.
fn shared_keys(store: &Store, tasks: &[TaskId]) -> News {
    let mut by_key: BTreeMap<String, Vec<TaskId>> = BTreeMap::new();
    let live = if tasks.is_empty() {
        Vec::new()
    } else {
        keys::live(store).unwrap_or_default()
    };
    for ((id, _), key) in live {
        if !key.is_empty() {
            by_key.entry(key).or_default().push(id);
        }
    }
    let shared = by_key.into_iter();
    let shared = shared.filter(|(_, ids)| ids.len() > 1 && ids.iter().any(|id| tasks.contains(id)));
    let mut news = News::new();
    for (key, ids) in shared {
        news.extend([shared_key(store, key, &ids)]);
    }
    news
}

fn shared_key(store: &Store, mut key: String, ids: &[TaskId]) -> (String, String) {
    let mut named = Vec::new();
    for id in ids {
        // One that can't be read has the key all the same.
        let Ok(history) = store.task(id) else {
            named.push(format!("{} (can't be read)", id.short()));
            continue;
        };
        let task = history.task;
        named.push(format!(
            "{} by {} ({})",
            id.short(),
            task.requester,
            task.title
        ));
        key = task.external;
    }
    let whole: Vec<_> = ids.iter().map(TaskId::as_str).collect();
    let text = format!(
        "{} have the key `{key}`, given in clones that did not know of each other: {}. The key alone names none of them; use their ids, and cancel or delete one where they are the same",
        count(ids.len(), "task", "tasks"),
        named.join(" and "),
    );
    (
        format!("key {}", Digest::of(whole.join(" ").as_bytes())),
        text,
    )
}
