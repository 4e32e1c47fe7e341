//! Documents about which people adjudicated the opposite, without knowing of each other: all are set
//! aside, and none stands in their place until somebody who has seen both says which.

use crate::model::approval::{Action, Approval};
use crate::model::digest::Digest;
use crate::model::event::Change;
use crate::model::grade::Grade;
use crate::model::ids::Principal;
use crate::store::dossier::{Dossier, Held};
use std::collections::BTreeSet;

/// What somebody said, with effect, about documents that contradicted each other.
pub(super) struct Adjudication<'a> {
    /// Who.
    pub(super) by: &'a Principal,
    /// What stands by these words.
    pub(super) stands: Digest,
    /// What does not.
    pub(super) falls: &'a [Digest],
}

/// Every adjudication that had an effect, in the order of events.
pub(super) fn adjudications(dossier: &Dossier) -> impl Iterator<Item = Adjudication<'_>> {
    dossier.history.records.iter().flat_map(|record| {
        let event = record.event.value();
        let changes = event.change.iter().zip(&record.refused);
        changes.filter_map(|(change, refused)| match change {
            Change::Adjudicate { stands, falls, .. } if refused.is_none() => Some(Adjudication {
                by: &event.signer.principal,
                stands: *stands,
                falls,
            }),
            _ => None,
        })
    })
}

/// Documents of adjudications of which no document is left standing, whatever was signed since. What a
/// retry set aside, or what a key signed that lost its rights, is decided.
pub fn undecided(dossier: &Dossier) -> BTreeSet<Digest> {
    let task = &dossier.history.task;
    let groups = adjudications(dossier).map(|said| {
        let documents = said.falls.iter().copied().chain([said.stands]);
        documents.collect::<BTreeSet<_>>()
    });
    let settled = |one: &Digest| task.was_retried(*one) || dossier.reduced.contains(one);
    let is_open = |one: &Digest| task.set_aside.contains(one) && !settled(one);
    let (open, closed): (Vec<_>, Vec<_>) = groups.partition(|group| group.iter().all(is_open));
    // A document was chosen over one of these: that decided them. It need not name those that their own
    // authors have withdrawn.
    let settled = |group: &BTreeSet<Digest>| closed.iter().any(|one| !one.is_disjoint(group));
    open.into_iter()
        .filter(|group| !settled(group))
        .flatten()
        .collect()
}

/// The decisions about a manifest of which it is undecided whether the approvals or the rejections stand,
/// with those that are `new` since: who signs anew withdraws an own one, and that ends nothing.
pub(super) fn decisions<'a>(
    dossier: &'a Dossier,
    manifest: Digest,
    new: impl Iterator<Item = &'a Held<Approval>>,
) -> Vec<Digest> {
    let undecided = undecided(dossier);
    let held = dossier.decisions.iter();
    let held = held.filter(|held| held.value().manifest == manifest);
    let open: Vec<_> = held
        .filter(|held| undecided.contains(&held.digest()))
        .collect();
    if open.is_empty() {
        return Vec::new();
    }
    let all: Vec<_> = open.into_iter().chain(new).collect();
    let is = |action| all.iter().any(|held| held.value().action == action);
    if is(Action::Approve) && is(Action::Reject) {
        return all.iter().map(|held| held.digest()).collect();
    }
    Vec::new()
}

/// The grades of one patch of which it is undecided which stands.
pub(super) fn grades<'a>(
    dossier: &Dossier,
    about: impl Iterator<Item = &'a Held<Grade>>,
) -> Vec<Digest> {
    let undecided = undecided(dossier);
    let open: Vec<_> = about
        .filter(|held| undecided.contains(&held.digest()) && held.value().is_firm())
        .collect();
    let is = |accepted| open.iter().any(|held| held.value().accepted == accepted);
    if is(true) && is(false) {
        return open.iter().map(|held| held.digest()).collect();
    }
    Vec::new()
}
