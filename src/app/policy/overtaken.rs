//! Versions of the policy that waited for signatures when another one of their number was put in force.

use super::proposed;
use crate::app::Error;
use crate::model::digest::Digest;
use crate::model::ids::Principal;
use crate::store::Store;
use crate::store::policy::backed;
use schemars::JsonSchema;
use serde::Serialize;

/// A version that can't be put in force any more. Whoever still wants it makes the change again.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OvertakenView {
    /// Digest of its `members.toml`.
    pub digest: Digest,
    /// The number that it would have had.
    pub version: u64,
    /// The version that has this number.
    pub by: Digest,
    /// Who had signed it.
    pub signed: Vec<Principal>,
    /// What it would have added and removed against the version before, one phrase each.
    pub changes: Vec<String>,
}

/// Every version that was overtaken.
pub(in crate::app) fn overtaken(store: &Store) -> Result<Vec<OvertakenView>, Error> {
    let mut views = Vec::new();
    for one in store.overtaken()? {
        // What makes no sense is nobody's change.
        let before = backed(&store.policy, &one.proposal.draft).map(|(before, _)| before);
        let changes = before.and_then(|before| proposed(store, before, &one.proposal).ok());
        views.extend(changes.map(|changes| OvertakenView {
            digest: one.proposal.digest,
            version: one.by.version,
            by: one.by.digest,
            signed: one.signed.into_iter().collect(),
            changes,
        }));
    }
    Ok(views)
}
