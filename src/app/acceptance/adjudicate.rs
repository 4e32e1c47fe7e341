//! `hangar adjudicate`: which of several documents stands, also after somebody said it before.

use crate::app::{Error, Here, sync};
use crate::flow::stage::{self, Contradiction};
use crate::flow::{self, decide};
use crate::model::digest::Digest;
use crate::model::ids::TaskId;
use crate::store::dossier::Dossier;
use crate::store::identity::Identity;
use crate::trust::AskPassphrase;
use schemars::JsonSchema;
use serde::Serialize;

/// What was adjudicated.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Adjudicated {
    /// Which task.
    pub id: TaskId,
    /// The document that stands.
    pub stands: Digest,
}

/// Says which of contradictory documents stands.
pub fn adjudicate(
    here: &Here,
    task: &str,
    digest: &str,
    reason: &str,
    ask: &mut AskPassphrase<'_>,
) -> Result<Adjudicated, Error> {
    decide::refuse_agents(here.env.keys())?;
    let store = here.store()?;
    let dossier = store.dossier_of(store.find_task(task)?)?;
    let open = stage::contradictions_now(&store, &dossier);
    let stands = named(&dossier, &open, digest)?;
    let documents = documents(&dossier, &open, stands)?;
    let signer = here.signer(&store, ask)?;
    let person = Identity::of(&store.policy, &signer)?;
    decide::adjudicate(&store, &dossier, &person, stands, &documents, reason)?;
    sync::publish(here)?;
    Ok(Adjudicated {
        id: dossier.id().clone(),
        stands,
    })
}

/// The document that is meant: of those that contradict each other, or of which somebody said before which
/// one stands.
fn named(dossier: &Dossier, open: &[Contradiction], digest: &str) -> Result<Digest, Error> {
    let waiting: Vec<Digest> = open
        .iter()
        .flat_map(Contradiction::documents)
        .copied()
        .collect();
    let mut all = stage::adjudicated(dossier);
    all.extend(&waiting);
    if all.is_empty() {
        return Err(flow::Error::refused(
            "nothing contradicts itself in this task",
            format!("see `hangar task show {}`", dossier.id().short()),
        )
        .into());
    }
    let fits: Vec<Digest> = all
        .iter()
        .filter(|one| one.begins_with(digest))
        .copied()
        .collect();
    if let [one] = fits.as_slice() {
        return Ok(*one);
    }
    let choices = if waiting.is_empty() {
        all.into_iter().collect()
    } else {
        waiting
    };
    let choices: Vec<_> = choices.iter().map(Digest::short).collect();
    Err(flow::Error::refused(
        format!(
            "`{digest}` names {} of the contradicting documents",
            fits.len()
        ),
        format!("choose one of {}", choices.join(", ")),
    )
    .into())
}

/// The document with those that fall where it stands: what waits for a word, or a later word about what was
/// decided before.
fn documents(
    dossier: &Dossier,
    open: &[Contradiction],
    stands: Digest,
) -> Result<Vec<Digest>, Error> {
    let mut open = open.iter().map(Contradiction::documents);
    if let Some(documents) = open.find(|documents| documents.contains(&stands)) {
        return Ok(documents.to_vec());
    }
    let refused = |why: &str| {
        let see = format!("see `hangar task show {}`", dossier.id().short());
        flow::Error::refused(format!("{} {why}", stands.short()), see).into()
    };
    if dossier.history.task.was_retried(stands) {
        return Err(refused(
            "was set aside by a retry, and no word brings it back",
        ));
    }
    if dossier.reduced.contains(&stands) {
        return Err(refused("does not count: its key lost the right to sign it"));
    }
    if !dossier.is_aside(stands) {
        return Err(refused("stands already: somebody said so before"));
    }
    Ok(stage::rivals(dossier, stands)
        .into_iter()
        .chain([stands])
        .collect())
}
