//! What says that the policy on the refs is the right one. Never the revision under verification:
//! whoever wrote that could have written another policy too.

use crate::app::error::with_causes;
use crate::app::landed::{branch_tips, remote, remote_default};
use crate::app::named::{named_at, tell_unreadable};
use crate::app::{Error, Here};
use crate::base::words;
use crate::flow::verify::{Fault, Link, LinkName, LinkState};
use crate::model::object_id::ObjectId;
use crate::store::{Store, pins};

/// Holds the policy against this clone's pin and against `hangar.toml` on the default branch.
/// `under` is the revision under verification.
pub(super) fn check(
    here: &Here,
    store: &Store,
    under: Option<ObjectId>,
    faults: &mut Vec<Fault>,
) -> Result<Link, Error> {
    let known = faults.len();
    let mut sources = Vec::new();
    // What differs from it was refused when the store was opened.
    if pins::pinned(&store.repo)?.is_some() {
        sources.push("this clone's own pin".to_owned());
    }
    // Where none is known, none of the remote's branches speaks: it is said that nothing pins the policy.
    let default = remote_default(here, &store.repo).ok().flatten();
    let default = default.map(|(_, tip)| tip);
    let tips = branch_tips(store, &remote(here, store), None);
    let mut tips = default.into_iter().chain(tips);
    if let Some(tip) = tips.find(|tip| Some(*tip) != under) {
        let place = format!("hangar.toml at {}", tip.short());
        let found = store.policy.repo();
        let what = match named_at(here, &store.repo, tip) {
            Ok(None) => None,
            Ok(Some(named)) if named == found => {
                sources.push(place.clone());
                None
            }
            Ok(Some(named)) => Some(format!(
                "it pins the policy {}, the refs hold {}",
                named.short(),
                found.short()
            )),
            Err(error) if !sources.is_empty() => {
                tell_unreadable(here, tip, &error);
                None
            }
            Err(error) => Some(format!(
                "it can't be read, and this clone has no pin of its own: {}",
                with_causes(&error)
            )),
        };
        faults.extend(what.map(|what| Fault {
            link: LinkName::Pin,
            place: Some(place),
            what,
            only_now: false,
        }));
    }
    let (state, detail) = match (faults.len() == known, sources.is_empty()) {
        (false, _) => (LinkState::Broken, words::count(1_u8, "fault", "faults")),
        (true, false) => (LinkState::Held, sources.join(" and ")),
        (true, true) => (
            LinkState::NotChecked,
            format!(
                "NOTHING here pins the policy: compare {} with what an admin tells you",
                store.policy.repo()
            ),
        ),
    };
    Ok(Link {
        name: LinkName::Pin,
        state,
        detail,
    })
}
