//! What says that the policy on the refs is the right one. Never the revision under verification:
//! whoever wrote that could have written another policy too.

use crate::app::landed::{branch_tips, remote};
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
    let tips = branch_tips(store, &remote(here, store), None);
    if let Some(tip) = tips.into_iter().find(|tip| Some(*tip) != under)
        && let Some(named) = here
            .config_at(&store.repo, tip)?
            .and_then(|config| config.repo)
    {
        let place = format!("hangar.toml at {}", tip.short());
        if named == store.policy.repo() {
            sources.push(place);
        } else {
            faults.push(Fault {
                link: LinkName::Pin,
                place: Some(place),
                what: format!(
                    "it pins the policy {}, the refs hold {}",
                    named.short(),
                    store.policy.repo().short()
                ),
                only_now: false,
            });
        }
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
