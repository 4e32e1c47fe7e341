//! Versions of the policy that claim the same place, and those that were set aside.

use super::{Known, changes};
use crate::model::digest::Digest;
use crate::model::ids::Principal;
use crate::model::policy::Policy;
use crate::model::rival::Rival;
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
    /// Later versions that rest on it, oldest first: they stand or fall with it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub later: Vec<LaterView>,
}

/// A version that rests on a rival.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LaterView {
    /// Its number.
    pub version: u64,
    /// SHA-256 of its `members.toml`.
    pub digest: Digest,
    /// Who signed it.
    pub signed: Vec<Principal>,
    /// What it adds and removes against the version that it follows, one phrase each.
    pub changes: Vec<String>,
}

/// What holders of root keys can choose.
#[derive(Debug)]
pub(in crate::app) struct Choice {
    /// SHA-256 of the newest `members.toml` of one side: names that side in `hangar policy resolve`.
    pub(in crate::app) digest: Digest,
    /// Its number.
    pub(in crate::app) version: u64,
    /// Who signed the versions of that side.
    pub(in crate::app) signed: BTreeSet<Principal>,
    /// What they change, taken together.
    pub(in crate::app) changes: Vec<String>,
}

/// The sides of which one is to stand; none where that is decided.
pub(in crate::app) fn choices(policy: &PolicyHistory) -> Vec<Choice> {
    if policy.rivals().is_empty() {
        return Vec::new();
    }
    let shared = policy.newest();
    let choice = |end: &Policy| {
        let own = policy.resting_on(shared.reference.digest).into_iter();
        let own = own.filter(|one| policy.rests_on(end, one.reference.digest));
        Choice {
            digest: end.reference.digest,
            version: end.reference.version,
            signed: own
                .flat_map(|one| policy.signers(one.reference.digest))
                .collect(),
            changes: changes(shared, end, &Known::of(policy)),
        }
    };
    policy.ends().into_iter().map(choice).collect()
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
    let changed = |of: &Policy| {
        let before = of
            .members
            .previous
            .and_then(|before| policy.version(before));
        before.map_or_else(Vec::new, |before| changes(before, of, &Known::of(policy)))
    };
    let later = |of: &Policy| LaterView {
        version: of.reference.version,
        digest: of.reference.digest,
        signed: policy.signers(of.reference.digest).into_iter().collect(),
        changes: changed(of),
    };
    let view = |claim: &Claim| RivalView {
        version: claim.version,
        digest: claim.digest,
        signed: claim.signers.iter().cloned().collect(),
        changes: policy.version(claim.digest).map_or_else(Vec::new, changed),
        later: policy
            .resting_on(claim.digest)
            .into_iter()
            .map(later)
            .collect(),
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
