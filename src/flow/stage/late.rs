//! What contradicts a delivery: a rejection that came after the approval was used, a grade that says the
//! opposite of the same patch. Nothing is to be done next in such a task, and it waits for a word all the
//! same.

use super::undecided::{self, adjudications};
use super::{Contradiction, Next, next, usable};
use crate::model::approval::Action;
use crate::model::digest::Digest;
use crate::model::grade::Grade;
use crate::model::ids::Principal;
use crate::model::policy::Acceptance;
use crate::store::Store;
use crate::store::dossier::{Dossier, Held};
use jiff::Timestamp;
use std::collections::BTreeSet;

/// [`contradictions`] now, under the policy in force.
pub fn contradictions_now(store: &Store, dossier: &Dossier) -> Vec<Contradiction> {
    let settings = &store.policy.newest().root.acceptance;
    contradictions(dossier, settings, store.clock.now())
}

/// Everything that waits for a person to say which document stands: what keeps the task from going on, or
/// contradicts what was delivered.
pub fn contradictions(
    dossier: &Dossier,
    settings: &Acceptance,
    now: Timestamp,
) -> Vec<Contradiction> {
    match next(dossier, settings, now) {
        Next::Blocked(contradiction) => vec![contradiction],
        Next::Nothing => {
            let found = [decisions(dossier, now), grades(dossier)];
            found.into_iter().flatten().collect()
        }
        _ => Vec::new(),
    }
}

/// Approvals of the delivered manifest and rejections of it. Where either side has fallen as a whole, it is
/// decided.
fn decisions(dossier: &Dossier, now: Timestamp) -> Option<Contradiction> {
    let task = &dossier.history.task;
    let manifest = task.delivery.as_ref()?.manifest?;
    let approvals = usable(dossier, manifest, now);
    let rejects: Vec<_> = dossier.decisions_on(manifest, Action::Reject).collect();
    let new = approvals.iter().chain(&rejects).copied();
    let open = undecided::decisions(dossier, manifest, new);
    if !open.is_empty() {
        return Some(Contradiction::Decisions {
            manifest,
            documents: open,
        });
    }
    // What was used stays good although the same person rejected later.
    let used = task.consumed.iter();
    let used = used.filter(|(consumed, _)| *consumed == manifest);
    let used = used.flat_map(|(_, used)| used.iter().copied());
    let mut documents: Vec<Digest> = used.filter(|one| !dossier.is_aside(*one)).collect();
    for held in approvals {
        if !documents.contains(&held.digest()) {
            documents.push(held.digest());
        }
    }
    if documents.is_empty() || rejects.is_empty() {
        return None;
    }
    documents.extend(rejects.iter().map(|held| held.digest()));
    Some(Contradiction::Decisions {
        manifest,
        documents,
    })
}

/// The grade with which a task was delivered and those that say the opposite of the same patch.
fn grades(dossier: &Dossier) -> Option<Contradiction> {
    let delivered = dossier.history.task.delivery.as_ref()?.grade?;
    let mut all = dossier.grades.iter();
    let own = all.find(|held| held.digest() == delivered)?;
    let about = dossier.grades.iter();
    let about = about.filter(|held| held.value().is_of_same(own.value()));
    let open = undecided::grades(dossier, about.clone());
    if !open.is_empty() {
        return Some(Contradiction::Grades { documents: open });
    }
    let against = against(dossier, own);
    if against.is_empty() || dossier.is_aside(delivered) || !own.value().is_firm() {
        return None;
    }
    let counts = |held: &&Held<Grade>| held.value().is_firm() && !dossier.is_aside(held.digest());
    let alike = about.filter(counts);
    let alike = alike.filter(|held| held.value().accepted == own.value().accepted);
    let all = alike.chain(against);
    Some(Contradiction::Grades {
        documents: all.map(Held::digest).collect(),
    })
}

/// Grades that count and say the opposite of this one about the same patch.
pub fn against<'a>(dossier: &'a Dossier, own: &Held<Grade>) -> Vec<&'a Held<Grade>> {
    let own = own.value();
    let counts = |held: &&Held<Grade>| {
        let value = held.value();
        let opposite = value.is_of_same(own) && value.accepted != own.accepted;
        opposite && value.is_firm() && !dossier.is_aside(held.digest())
    };
    dossier.grades.iter().filter(counts).collect()
}

/// Who said last, with effect, that this document stands.
pub fn chosen_by(dossier: &Dossier, document: Digest) -> Option<&Principal> {
    let said = adjudications(dossier).filter(|said| said.stands == document);
    said.last().map(|said| said.by)
}

/// The documents beside this one in all adjudications that it was part of: a later word for it says that they
/// fall. Empty where nobody decided about it.
pub fn rivals(dossier: &Dossier, document: Digest) -> BTreeSet<Digest> {
    let said = adjudications(dossier);
    let about = said.filter(|said| said.stands == document || said.falls.contains(&document));
    let mut rivals: BTreeSet<_> = about
        .flat_map(|said| said.falls.iter().copied().chain([said.stands]))
        .collect();
    rivals.remove(&document);
    rivals
}

/// Every document about which somebody adjudicated.
pub fn adjudicated(dossier: &Dossier) -> BTreeSet<Digest> {
    adjudications(dossier)
        .flat_map(|said| said.falls.iter().copied().chain([said.stands]))
        .collect()
}
