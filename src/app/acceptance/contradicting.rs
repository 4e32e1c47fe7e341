//! Documents of which only one can stand, each with what it says.

use crate::flow::stage::{Contradiction, undecided};
use crate::model::approval::Action;
use crate::model::digest::Digest;
use crate::model::event::Change;
use crate::model::ids::Principal;
use crate::store::dossier::Dossier;
use schemars::JsonSchema;
use serde::Serialize;

/// One of several documents that contradict each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Contradicting {
    /// Digest of the signed document: names it in `hangar adjudicate`.
    pub document: Digest,
    /// What it says.
    pub says: Says,
    /// Who signed it.
    pub by: Principal,
}

/// What one of them says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Says {
    /// An approval of a version.
    Approved,
    /// A rejection of it.
    Rejected,
    /// A grade that accepts a patch.
    Accepted,
    /// A grade that does not accept it.
    NotAccepted,
    /// A version of the tests beside another one of the same number.
    Sealed,
}

/// What somebody said about documents that contradicted each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AdjudicationView {
    /// The document that stands by these words.
    pub stands: Digest,
    /// Who said it.
    pub by: Principal,
    /// Why.
    pub reason: String,
    /// Whether it does stand: nobody said that it falls, or somebody who knew that said once more that it
    /// stands; and no retry set it aside.
    pub in_force: bool,
    /// Who said that it falls; absent where a retry set it aside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<Principal>,
    /// Whether those words and these take each other back, so that neither document stands.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub opposite: bool,
}

/// Every adjudication that had an effect, in order.
pub(in crate::app) fn adjudications(dossier: &Dossier) -> Vec<AdjudicationView> {
    let mut said = Vec::new();
    for record in &dossier.history.records {
        let event = record.event.value();
        for (change, refused) in event.change.iter().zip(&record.refused) {
            if let (
                Change::Adjudicate {
                    stands,
                    falls,
                    reason,
                },
                None,
            ) = (change, refused)
            {
                said.push((&event.signer.principal, *stands, falls, reason));
            }
        }
    }
    let task = &dossier.history.task;
    let undecided = undecided(dossier);
    let view = |(by, stands, falls, reason): &(&Principal, Digest, &Vec<Digest>, &String)| {
        let is_out = task.set_aside.contains(stands);
        let is_over = task.was_retried(*stands);
        // The last one that said so: who stood by it again before that is overruled too.
        let mut later = said.iter().rev().filter(|_| is_out && !is_over);
        let against = later.find(|(_, _, other, _)| other.contains(stands));
        AdjudicationView {
            stands: *stands,
            by: (*by).clone(),
            reason: (*reason).clone(),
            in_force: against.is_none() && !is_over,
            against: against.map(|(by, ..)| (*by).clone()),
            opposite: against.is_some_and(|(_, other, ..)| {
                falls.contains(other) && undecided.contains(other) && undecided.contains(stands)
            }),
        }
    };
    said.iter().map(view).collect()
}

/// Every document of a contradiction that is here.
pub(in crate::app) fn of(dossier: &Dossier, contradiction: &Contradiction) -> Vec<Contradicting> {
    let documents = contradiction.documents().iter();
    documents
        .filter_map(|document| one(dossier, *document))
        .collect()
}

/// One document that people can adjudicate about.
pub(in crate::app) fn one(dossier: &Dossier, document: Digest) -> Option<Contradicting> {
    // An approval that was used can be one that its own author overruled later.
    let decisions = dossier.decisions.iter().chain(&dossier.overruled);
    let decisions = decisions.map(|held| {
        let says = match held.value().action {
            Action::Approve => Says::Approved,
            Action::Reject => Says::Rejected,
        };
        (held.digest(), says, held.document.actor.person())
    });
    let grades = dossier.grades.iter().map(|held| {
        let says = if held.value().accepted {
            Says::Accepted
        } else {
            Says::NotAccepted
        };
        (held.digest(), says, held.document.actor.person())
    });
    let seals = dossier.seals.iter();
    let seals = seals.map(|held| (held.digest(), Says::Sealed, held.document.actor.person()));
    let (_, says, by) = decisions
        .chain(grades)
        .chain(seals)
        .find(|(digest, ..)| *digest == document)?;
    Some(Contradicting {
        document,
        says,
        by: by.clone(),
    })
}
