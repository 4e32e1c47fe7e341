//! What came with a sync, changes what people may rely on, and is said by no answer of a later command:
//! each is told once in a clone. Must not know how the sync went.

mod of_tasks;

use super::Here;
use super::policy::overtaken;
use crate::base::words::{count, word};
use crate::model::digest::Digest;
use crate::model::ids::{Fingerprint, TaskId};
use crate::model::reduction::{Reduction, Why};
use crate::store::index::keys;
use crate::store::lost::Lost;
use crate::store::{Store, told};
use crate::trust::{MachineKey, MachineRole};
use std::collections::{BTreeMap, BTreeSet};

/// What is told, by what it is remembered as.
type News = BTreeMap<String, String>;

/// Tells what is new in this clone. `tasks` came just now.
pub(super) fn tell(here: &Here, store: &Store, tasks: &[TaskId]) {
    let mut news = compromised(store);
    news.extend(overtaken_versions(store));
    news.extend(shared_keys(store, tasks));
    news.extend(of_tasks::of_tasks(here, store, tasks));
    let new = told::untold(&store.repo.hangar_dir(), news.keys().cloned());
    for key in &new {
        if let Some(text) = news.get(key) {
            here.notices.say(text);
        }
    }
    told::tell(&store.repo.hangar_dir(), new);
}

/// Most documents that are described one by one.
const DESCRIBED: usize = 3;

/// A version of the policy came. Whoever signed what counts no more because of it is told, and how it may count
/// again; nobody else's page would say that to them.
pub(super) fn tell_of_lost(here: &Here, store: &Store) {
    let own = own_keys(here, store);
    let ends = store.policy.ends();
    let mut entries = ends.iter().flat_map(|end| &end.members.reduced);
    let concerns = entries.any(|entry| own.contains(&entry.key))
        || ends.iter().any(|end| !end.members.rival.is_empty());
    if own.is_empty() || !concerns {
        return;
    }
    // What can't be read is no news.
    let lost = store.lost_by(&own).unwrap_or_default();
    let key = |lost: &Lost| format!("lost {}", lost.document);
    let new = told::untold(
        &store.repo.hangar_dir(),
        lost.iter().map(|(_, one)| key(one)),
    );
    let lost: Vec<_> = lost
        .iter()
        .filter(|(_, one)| new.contains(&key(one)))
        .collect();
    if lost.is_empty() {
        return;
    }
    let described = lost.iter().take(DESCRIBED);
    let described: Vec<_> = described
        .map(|(task, one)| format!("of task {}: {}", task.short(), one.doubt))
        .collect();
    let more = match lost.len() - described.len() {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let documents: BTreeSet<_> = lost
        .iter()
        .map(|(_, one)| one.document.to_string())
        .collect();
    let documents: Vec<_> = documents.into_iter().collect();
    here.notices.say(&format!(
        "{} that you signed, or your machine, {} no more ({}{more}). Where that is honest work, an admin who has it lets it count: `hangar policy adopt {}`",
        count(lost.len(), "document", "documents"),
        word(lost.len(), "counts", "count"),
        described.join("; "),
        documents.join(" ")
    ));
    told::tell(&store.repo.hangar_dir(), new);
}

/// Fingerprints of the person's keys and of this machine's.
fn own_keys(here: &Here, store: &Store) -> BTreeSet<Fingerprint> {
    let found = here.keys(Some(&store.repo)).map(|found| found.candidates);
    let people = found.unwrap_or_default();
    let mut own: BTreeSet<_> = people.iter().map(|one| one.public.fingerprint()).collect();
    if let Ok(dir) = here.data_dir(&store.policy.repo()) {
        let machines = [MachineRole::Worker, MachineRole::Grader];
        let machines = machines.map(|role| MachineKey::load(&dir, role));
        let machines = machines.iter().flatten();
        own.extend(machines.map(|key| key.public().fingerprint()));
    }
    own
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
            store.policy.declared(entry),
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
            "the version {version} of the policy that {} signed ({}: {}) was overtaken: another version {version} was put in force. Whoever still wants it makes the change again on top of that (`hangar policy log` shows both)",
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
        if let Some(key) = key.filter(|key| !key.is_empty()) {
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
