//! What one version of the policy changes against the one before, in words for whoever signs it or
//! reads the log. Owns which fields are said; must not know how a version is shown.

use super::{fingerprint, machine_word, role_word};
use crate::model::digest::Digest;
use crate::model::ids::Principal;
use crate::model::policy::{Actor, Policy};
use crate::model::reduction::read_list;
use crate::model::rival;
use crate::store::archive::due::DEFAULT_DAYS;
use crate::store::draft::Draft;
use crate::store::policy::PolicyHistory;
use std::collections::{BTreeMap, BTreeSet};

/// What the digests in a version mean.
pub(super) struct Known<'a> {
    policy: &'a PolicyHistory,
    /// Lists of documents that a version brings along: they are not among the policy's yet.
    brought: BTreeMap<Digest, BTreeSet<Digest>>,
}

impl<'a> Known<'a> {
    /// What this policy holds.
    pub(super) const fn of(policy: &'a PolicyHistory) -> Self {
        Self {
            policy,
            brought: BTreeMap::new(),
        }
    }

    /// That, and what a draft brings along.
    pub(super) fn with(policy: &'a PolicyHistory, draft: &Draft) -> Self {
        let brought = draft.accepted.iter();
        let brought = brought.filter_map(|bytes| Some((Digest::of(bytes), read_list(bytes)?)));
        Self {
            policy,
            brought: brought.collect(),
        }
    }

    fn list(&self, digest: Digest) -> Option<&BTreeSet<Digest>> {
        let held = self.policy.list(digest);
        held.or_else(|| self.brought.get(&digest))
    }
}

/// Most documents that are named one by one.
const MAX_NAMED: usize = 20;

/// What `after` changes, one phrase each: everything that whoever signs it must know.
pub(super) fn changes(before: &Policy, after: &Policy, known: &Known<'_>) -> Vec<String> {
    let (old, new) = (holders(before), holders(after));
    let removed = old
        .iter()
        .filter(|holder| !new.contains(holder))
        .map(|holder| format!("- {holder}"));
    let added = new
        .iter()
        .filter(|holder| !old.contains(holder))
        .map(|holder| format!("+ {holder}"));
    removed
        .chain(added)
        .chain(recipients(before, after))
        .chain(reduced(before, after, known))
        .chain(settings(before, after))
        .chain(aside(before, after, known))
        .chain(adopted(before, after, known))
        .collect()
}

/// What changed of thresholds, root keys, the arbiter and acceptance settings.
fn settings(before: &Policy, after: &Policy) -> Vec<String> {
    let (old, new) = (settings_of(before), settings_of(after));
    let changed = new
        .iter()
        .filter(|(name, value)| old.get(*name) != Some(value));
    let said = changed.map(|(name, value)| match old.get(name) {
        Some(old) => format!("{name}: {old} → {value}"),
        None => format!("+ {name}: {value}"),
    });
    let gone = old.keys().filter(|name| !new.contains_key(*name));
    said.chain(gone.map(|name| format!("- {name}"))).collect()
}

fn settings_of(policy: &Policy) -> BTreeMap<String, String> {
    let root = &policy.root;
    let mut all = BTreeMap::new();
    // What the document says, field by field, so that no setting can be forgotten here.
    if let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(&root.acceptance) {
        all.extend(
            fields
                .into_iter()
                .map(|(name, value)| (name, value.to_string())),
        );
    }
    all.insert("root threshold".into(), root.thresholds.root.to_string());
    all.insert(
        "members threshold".into(),
        root.thresholds.members.to_string(),
    );
    all.insert("arbiter".into(), policy.members.arbiter.clone());
    let days = policy.members.archive_days.unwrap_or(DEFAULT_DAYS);
    all.insert("archive_days".into(), days.to_string());
    for key in &root.key {
        if let Ok(print) = fingerprint(&key.public) {
            let kind = if key.recovery { "recovery" } else { "ordinary" };
            all.insert(
                format!("root key of {} {print}", key.principal),
                kind.into(),
            );
        }
    }
    all
}

/// `alice (admin) SHA256:…` for each key.
fn holders(policy: &Policy) -> Vec<String> {
    let line = |(text, actor): (String, Actor)| {
        let key = fingerprint(&text).ok()?;
        Some(match actor {
            Actor::Person { name, role } => format!("{name} ({}) {key}", role_word(role)),
            Actor::Machine { name, role, owner } => {
                format!("{name} ({} of {owner}) {key}", machine_word(role))
            }
        })
    };
    policy
        .members
        .key_texts()
        .into_iter()
        .filter_map(line)
        .collect()
}

/// Who can open hidden tests with what is no key of theirs.
fn recipients(before: &Policy, after: &Policy) -> Vec<String> {
    let lines = |policy: &Policy| -> BTreeSet<String> {
        let people = policy.members.person.iter();
        let all = people.flat_map(|person| {
            let others = person.recipients.iter();
            let others = others.filter(|one| !person.keys.contains(one));
            others.map(|one| format!("recipient of {}: {one}", person.name))
        });
        all.collect()
    };
    let (old, new) = (lines(before), lines(after));
    let gone = old.difference(&new).map(|line| format!("- {line}"));
    let come = new.difference(&old).map(|line| format!("+ {line}"));
    gone.chain(come).collect()
}

/// Keys that lose rights, why, and what of them counts all the same.
fn reduced(before: &Policy, after: &Policy, known: &Known<'_>) -> Vec<String> {
    let mut said = Vec::new();
    for entry in &after.members.reduced {
        let mut old = before.members.reduced.iter();
        let old = old.find(|old| old.key == entry.key);
        let whose = format!("{} {}", entry.principal, entry.key);
        match old {
            Some(old) if (old.how, old.since) == (entry.how, entry.since) => {
                said.extend(relisted(&whose, old.accepted, entry.accepted, known));
            }
            _ => {
                let count = known.list(entry.accepted).map_or(0, BTreeSet::len);
                let how = entry.how.as_str();
                said.push(format!(
                    "{whose}: {how}; {count} of its documents so far count"
                ));
            }
        }
    }
    said
}

/// Versions that `after` is the first to set aside: whose they are and what they would have changed, since
/// nobody knows them by their digests.
fn aside(before: &Policy, after: &Policy, known: &Known<'_>) -> Vec<String> {
    let added = rival::added(&before.members, &after.members).into_iter();
    added.map(|entry| set_aside(entry.digest, known)).collect()
}

fn set_aside(digest: Digest, known: &Known<'_>) -> String {
    let Some(aside) = known.policy.version(digest) else {
        return format!("sets aside {digest}");
    };
    let followed = aside.members.previous;
    let followed = followed.and_then(|before| known.policy.version(before));
    let lost = followed.map_or_else(Vec::new, |before| changes(before, aside, known));
    let signed = known.policy.signers(digest);
    let signed: Vec<_> = signed.iter().map(Principal::as_str).collect();
    format!(
        "sets aside version {} by {} ({}): {digest}",
        aside.reference.version,
        signed.join(" and "),
        lost.join("; ")
    )
}

/// Documents of a version that was set aside which count from now on.
fn adopted(before: &Policy, after: &Policy, known: &Known<'_>) -> Vec<String> {
    let mut said = Vec::new();
    for entry in &after.members.rival {
        let mut old = before.members.rival.iter();
        if let Some(old) = old.find(|old| old.digest == entry.digest) {
            let whose = format!("under {}", entry.digest.short());
            said.extend(relisted(&whose, old.accepted, entry.accepted, known));
        }
    }
    said
}

/// What another list in place of one changes.
fn relisted(whose: &str, old: Digest, new: Digest, known: &Known<'_>) -> Vec<String> {
    if old == new {
        return Vec::new();
    }
    let (Some(old), Some(new)) = (known.list(old), known.list(new)) else {
        return vec![format!("{whose}: other documents count")];
    };
    let come = new.difference(old).map(|one| ("counts", one));
    let gone = old.difference(new).map(|one| ("counts no more", one));
    let all: Vec<_> = come.chain(gone).collect();
    let rest = all.len().saturating_sub(MAX_NAMED);
    let mut said: Vec<String> = all
        .iter()
        .take(MAX_NAMED)
        .map(|(how, one)| format!("{whose}: {one} {how}"))
        .collect();
    if rest > 0 {
        said.push(format!("{whose}: {rest} more documents"));
    }
    said
}
