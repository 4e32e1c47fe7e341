//! Rights that a key lost: by position, not by date.
//!
//! A key that leaves the policy, or whose holder may do less, could still sign documents that name an
//! old version of the policy. So the version that takes the rights binds the list of documents by
//! that key that count; any other one that names an earlier version does not. Format:
//! `docs/format.md`, "Reduced".

use crate::model::digest::Digest;
use crate::model::ids::{Fingerprint, Principal};
use crate::model::policy::{Actor, Policy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Most documents of one key that a list names.
const MAX_LISTED: usize = 1_000_000;

/// `[[reduced]]` of `members.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reduction {
    /// The key.
    pub key: Fingerprint,
    /// Who held it.
    pub principal: Principal,
    /// Why it lost rights.
    pub how: Why,
    /// The version that took them: a document of this key that names an earlier one counts only
    /// when it is listed.
    pub since: u64,
    /// SHA-256 of the list of documents that count.
    pub accepted: Digest,
}

/// Why a key lost rights.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// It is not used any more, or its holder may do less.
    Retired,
    /// Somebody else may have used it.
    Compromised,
}

impl Why {
    /// The word in documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Retired => "retired",
            Self::Compromised => "compromised",
        }
    }
}

/// The list as bytes: one digest a line, sorted.
pub fn list_bytes(documents: &BTreeSet<Digest>) -> Vec<u8> {
    let lines: String = documents.iter().fold(String::new(), |mut text, digest| {
        text.push_str(&digest.to_string());
        text.push('\n');
        text
    });
    lines.into_bytes()
}

/// Reads a list; `None` where the bytes are not exactly what [`list_bytes`] writes.
pub fn read_list(bytes: &[u8]) -> Option<BTreeSet<Digest>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let documents: Option<BTreeSet<Digest>> = text
        .lines()
        .take(MAX_LISTED + 1)
        .map(|line| line.parse().ok())
        .collect();
    let documents = documents?;
    (documents.len() <= MAX_LISTED && list_bytes(&documents) == bytes).then_some(documents)
}

/// Why a version can't follow another: rights went without an entry, or an entry went.
pub fn check(before: &Policy, after: &Policy) -> Result<(), String> {
    let version = after.reference.version;
    let entry = |key: &Fingerprint| {
        let mut entries = after.members.reduced.iter();
        entries.find(|entry| entry.key == *key)
    };
    for (key, actor) in before.holders() {
        let less = match after.holder(key) {
            None => true,
            Some((now, _)) => is_less(actor, now),
        };
        let said = entry(key).is_some_and(|entry| entry.since == version);
        if less && !said {
            return Err(format!(
                "the key {key} of {} loses rights without an entry that says which documents still count",
                actor.name()
            ));
        }
    }
    for old in &before.members.reduced {
        let kept = entry(&old.key).is_some_and(|new| new.since >= old.since && new.how >= old.how);
        if !kept {
            return Err(format!("the entry about the key {} went", old.key));
        }
    }
    let keys: BTreeSet<_> = after.members.reduced.iter().map(|one| &one.key).collect();
    if keys.len() != after.members.reduced.len() {
        return Err("a key has two entries".into());
    }
    match after.members.reduced.iter().find(|one| one.since > version) {
        Some(entry) => Err(format!(
            "the entry about {} is of a later version",
            entry.key
        )),
        None => Ok(()),
    }
}

/// Whether a holder may do less than before, or is another.
pub fn is_less(before: &Actor, now: &Actor) -> bool {
    match (before, now) {
        (
            Actor::Person {
                name: old,
                role: was,
            },
            Actor::Person { name, role },
        ) => old != name || role < was,
        (one, other) => one != other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_one_form() {
        let documents: BTreeSet<Digest> = [b"a", b"b"].map(|text| Digest::of(text)).into();
        let bytes = list_bytes(&documents);
        assert_eq!(read_list(&bytes), Some(documents));
        assert_eq!(read_list(b""), Some(BTreeSet::new()));
        let text = String::from_utf8(bytes).unwrap();
        let lines: Vec<_> = text.lines().collect();
        for bad in [
            format!("{}\n{}\n", lines[1], lines[0]),
            format!("{}\n{}\n", lines[0], lines[0]),
            format!("{}\n{}", lines[0], lines[1]),
            format!("{}\n\n", lines[0]),
            "x\n".into(),
        ] {
            assert_eq!(read_list(bad.as_bytes()), None, "{bad}");
        }
    }
}
