//! Saying which of several rival versions of the policy stands. Format: `docs/format.md`, "Rivals".

use super::draft::Draft;
use super::policy::{self, Claim};
use super::proposal::draft_after;
use super::{Error, Store};
use crate::model::digest::Digest;
use crate::model::policy::Policy;
use crate::model::reduction::list_bytes;
use crate::model::rival::Rival;
use std::collections::BTreeSet;

/// Fewest characters that name a version.
const MIN_DIGEST: usize = 6;

/// The version that keeps the one that `named` begins the digest of, and sets its rivals aside. Nobody
/// has signed it.
pub fn resolving(store: &Store, named: &str) -> Result<Draft, Error> {
    let kept = kept(store, named)?;
    let mut members = kept.members.clone();
    let nothing = list_bytes(&BTreeSet::new());
    for digest in store.policy.against(kept) {
        members.rival.push(Rival {
            digest,
            accepted: Digest::of(&nothing),
        });
    }
    let mut draft = draft_after(store, kept, kept.root.clone(), members)?;
    draft.accepted = vec![nothing];
    policy::open_needs(&store.policy, &draft)?;
    Ok(draft)
}

/// The newest version that rests on the one that is named.
fn kept<'a>(store: &'a Store, named: &str) -> Result<&'a Policy, Error> {
    let history = &store.policy;
    let claims = history.rivals().iter().flat_map(|one| &one.versions);
    let claims: BTreeSet<Digest> = claims.map(|claim: &Claim| claim.digest).collect();
    if claims.is_empty() {
        return Err(Error::Proposed(
            "no versions of the policy rival each other here".into(),
        ));
    }
    let ends = history.ends();
    let hex = named.strip_prefix("sha256:").unwrap_or(named);
    let known = claims.iter().copied();
    let known: BTreeSet<Digest> = known
        .chain(ends.iter().map(|end| end.reference.digest))
        .collect();
    let fits = |digest: &&Digest| hex.len() >= MIN_DIGEST && digest.begins_with(named);
    let fitting: Vec<&Digest> = known.iter().filter(fits).collect();
    let list = |digests: &mut dyn Iterator<Item = Digest>| {
        let all: Vec<_> = digests.map(|digest| digest.short()).collect();
        all.join(", ")
    };
    let [digest] = fitting.as_slice() else {
        let choice = list(&mut known.iter().copied());
        return Err(Error::Proposed(if hex.len() < MIN_DIGEST {
            format!(
                "`{named}` is too short: at least {MIN_DIGEST} characters; choose one of {choice}"
            )
        } else {
            let count = fitting.len();
            format!("`{named}` names {count} of the rival versions; choose one of {choice}")
        }));
    };
    let resting: Vec<&Policy> = ends
        .into_iter()
        .filter(|end| history.rests_on(end, **digest))
        .collect();
    match resting.as_slice() {
        [kept] => Ok(*kept),
        several => {
            let choice = list(&mut several.iter().map(|end| end.reference.digest));
            Err(Error::Proposed(format!(
                "several rival versions rest on {}; choose one of {choice}",
                digest.short()
            )))
        }
    }
}
