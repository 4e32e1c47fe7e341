//! `hangar approve`, `hangar reject`, `hangar adjudicate`.

use super::review::{choose, dossier, seen};
use crate::app::{Error, Here, sync};
use crate::flow;
use crate::flow::decide::{self, Look};
use crate::flow::stage::{self, Next};
use crate::model::approval::Action;
use crate::model::digest::Digest;
use crate::model::ids::{Principal, TaskId};
use crate::model::manifest::Counts;
use crate::store::Store;
use crate::store::dossier::Dossier;
use crate::store::identity::Identity;
use crate::trust::AskPassphrase;
use schemars::JsonSchema;
use serde::Serialize;

/// What a decision would be about, for the question on a terminal.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Pending {
    /// Which task.
    pub id: TaskId,
    /// One line.
    pub title: String,
    /// Sealed version.
    pub version: u32,
    /// What is bound.
    pub manifest: Digest,
    /// Numbers.
    pub counts: Counts,
}

/// A decision that was signed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Decided {
    /// Which task.
    pub id: TaskId,
    /// `approve` or `reject`.
    pub action: Action,
    /// About this manifest.
    pub manifest: Digest,
    /// Its version.
    pub version: u32,
    /// Digest of the signed document.
    pub decision: Digest,
    /// Who decided.
    pub by: Principal,
}

/// What a decision of this person would be about: the newest version, if it is the one that they
/// were shown last.
pub fn pending(here: &Here, task: Option<&str>, digest: Option<&str>) -> Result<Pending, Error> {
    let store = here.store()?;
    decide::refuse_agents(here.env.keys())?;
    let dossier = dossier(&store, task)?;
    let seal = choose(&dossier, None)?;
    shown_last(&store, &dossier, seal.digest(), digest)?;
    Ok(Pending {
        id: dossier.id().clone(),
        title: dossier.history.task.title.clone(),
        version: seal.value().version,
        manifest: seal.digest(),
        counts: seal.value().counts,
    })
}

/// Refuses a decision about something that this person did not see.
fn shown_last(
    store: &Store,
    dossier: &Dossier,
    newest: Digest,
    named: Option<&str>,
) -> Result<(), Error> {
    if named.is_some_and(|named| !fits(newest, named)) {
        return Err(flow::Error::refused(
            format!(
                "the newest version is {}, not the one that was named",
                newest.short()
            ),
            "review the newest version, then decide",
        )
        .into());
    }
    match seen(store, dossier.id()) {
        Some(seen) if seen.manifest == newest => Ok(()),
        Some(_) => Err(flow::Error::refused(
            "there is a newer version than the one that you were shown last",
            format!("review it first: hangar review {}", dossier.id().short()),
        )
        .into()),
        None => Err(flow::Error::refused(
            "you have not reviewed these tests here",
            format!("review them first: hangar review {}", dossier.id().short()),
        )
        .into()),
    }
}

/// Whether a person's text names this digest: at least twelve of its characters.
pub(super) fn fits(digest: Digest, named: &str) -> bool {
    let hex = named.strip_prefix("sha256:").unwrap_or(named);
    hex.len() >= 12 && digest.hex().starts_with(&hex.to_ascii_lowercase())
}

/// Signs a decision about exactly this manifest.
pub fn decide(
    here: &Here,
    pending: &Pending,
    action: Action,
    reason: &str,
    ask: &mut AskPassphrase<'_>,
) -> Result<Decided, Error> {
    let store = here.store()?;
    let dossier = store.dossier(&pending.id)?;
    let seal = choose(&dossier, None)?;
    if seal.digest() != pending.manifest {
        let remedy = format!("review it first: hangar review {}", pending.id.short());
        return Err(flow::Error::refused("a newer version was sealed meanwhile", remedy).into());
    }
    let signer = here.signer(&store, ask)?;
    let person = Identity::of(&store.policy, &signer)?;
    let look = seen(&store, &pending.id).map_or_else(Look::default, |seen| Look {
        seconds: u64::try_from(store.clock.now().as_second() - seen.first).ok(),
        files_opened: u32::try_from(seen.files.len()).unwrap_or(u32::MAX),
    });
    let written = decide::decide(&store, &dossier, seal, &person, action, reason, look)?;
    sync::publish(here)?;
    Ok(Decided {
        id: pending.id.clone(),
        action,
        manifest: pending.manifest,
        version: pending.version,
        decision: written.digest,
        by: person.principal().clone(),
    })
}

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
    let settings = &store.policy.newest().root.acceptance;
    let Next::Blocked(contradiction) = stage::next(&dossier, settings, store.clock.now()) else {
        return Err(flow::Error::refused(
            "nothing contradicts itself in this task",
            "see `hangar task show`",
        )
        .into());
    };
    let documents = contradiction.documents();
    let hex = digest
        .strip_prefix("sha256:")
        .unwrap_or(digest)
        .to_ascii_lowercase();
    let fits: Vec<Digest> = documents
        .iter()
        .copied()
        .filter(|one| one.hex().starts_with(&hex))
        .collect();
    let [stands] = fits.as_slice() else {
        let list = documents
            .iter()
            .map(Digest::short)
            .collect::<Vec<_>>()
            .join(", ");
        return Err(flow::Error::refused(
            format!(
                "`{digest}` names {} of the contradicting documents",
                fits.len()
            ),
            format!("choose one of {list}"),
        )
        .into());
    };
    let signer = here.signer(&store, ask)?;
    let person = Identity::of(&store.policy, &signer)?;
    decide::adjudicate(&store, &dossier, &person, *stands, documents, reason)?;
    sync::publish(here)?;
    Ok(Adjudicated {
        id: dossier.id().clone(),
        stands: *stands,
    })
}
