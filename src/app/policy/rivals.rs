//! Versions of the policy that claim the same place, and those that were set aside.

use super::changes;
use crate::model::digest::Digest;
use crate::model::ids::Principal;
use crate::model::policy::Policy;
use crate::model::rival::{self, Rival};
use crate::store::policy::{Claim, PolicyHistory};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;

/// Versions that follow the same one.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RivalsView {
    /// Number of the version that they follow.
    pub after: u64,
    /// The versions.
    pub versions: Vec<RivalView>,
}

/// One of several versions that claim the same place.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RivalView {
    /// Its number.
    pub version: u64,
    /// SHA-256 of its `members.toml`: names it in `hangar policy resolve`.
    pub digest: Digest,
    /// Who signed it.
    pub signed: Vec<Principal>,
    /// What it adds and removes against the version that it follows, one phrase each.
    pub changes: Vec<String>,
}

/// A version that was set aside for a rival of it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SetAsideView {
    /// Its number.
    pub version: u64,
    /// SHA-256 of its `members.toml`.
    pub digest: Digest,
    /// Who signed it.
    pub signed: Vec<Principal>,
    /// How many documents count although they name it.
    pub documents: usize,
}

/// Rival versions of a policy, for people and programs.
pub(in crate::app) fn rivals(policy: &PolicyHistory) -> Vec<RivalsView> {
    let view = |claim: &Claim| {
        let of = policy.version(claim.digest);
        let before = of.and_then(|of| policy.version(of.members.previous?));
        RivalView {
            version: claim.version,
            digest: claim.digest,
            signed: claim.signers.iter().cloned().collect(),
            changes: before.zip(of).map_or_else(Vec::new, |(before, of)| {
                changes(before, of, &|digest| policy.list(digest))
            }),
        }
    };
    let all = policy.rivals().iter();
    all.map(|one| RivalsView {
        after: one.after,
        versions: one.versions.iter().map(view).collect(),
    })
    .collect()
}

/// Versions that `newest` has set aside.
pub(super) fn set_aside(policy: &PolicyHistory, newest: &Policy) -> Vec<SetAsideView> {
    let entries = newest.members.rival.iter();
    let view = |entry: &Rival| {
        Some(SetAsideView {
            version: policy.version(entry.digest)?.reference.version,
            digest: entry.digest,
            signed: policy.signers(entry.digest).into_iter().collect(),
            documents: policy.list(entry.accepted).map_or(0, BTreeSet::len),
        })
    };
    entries.filter_map(view).collect()
}

/// Versions that `after` is the first to set aside.
pub(super) fn aside(before: &Policy, after: &Policy) -> Vec<String> {
    let added = rival::added(&before.members, &after.members).into_iter();
    added
        .map(|entry| format!("sets aside {}", entry.digest))
        .collect()
}
