//! Versions of the policy that were set aside: of two that follow the same one, only one stands.
//! Format: `docs/format.md`, "Rivals".

use crate::model::digest::Digest;
use crate::model::policy::Members;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// `[[rival]]` of `members.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rival {
    /// SHA-256 of the `members.toml` that does not stand.
    pub digest: Digest,
    /// SHA-256 of the list of documents that count although they name it.
    pub accepted: Digest,
}

/// What `after` sets aside and `before` did not.
pub fn added<'a>(before: &Members, after: &'a Members) -> Vec<&'a Rival> {
    let known: BTreeSet<_> = before.rival.iter().map(|one| one.digest).collect();
    let entries = after.rival.iter();
    entries.filter(|one| !known.contains(&one.digest)).collect()
}

/// Why a version can't follow another: an entry went, or stands twice.
pub fn check(before: &Members, after: &Members) -> Result<(), String> {
    let named: BTreeSet<_> = after.rival.iter().map(|one| one.digest).collect();
    if named.len() != after.rival.len() {
        return Err("a version that was set aside has two entries".into());
    }
    match before.rival.iter().find(|one| !named.contains(&one.digest)) {
        Some(gone) => Err(format!(
            "the entry about the version {}, which was set aside, went",
            gone.digest.short()
        )),
        None => Ok(()),
    }
}
