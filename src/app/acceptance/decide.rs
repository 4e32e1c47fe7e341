//! `hangar approve`, `hangar reject`, `hangar adjudicate`.

use super::contradicting::{self, Contradicting};
use super::pick::{choose, dossier};
use super::seen::seen;
use crate::app::{Error, Here, sync};
use crate::flow;
use crate::flow::decide::{self, Look};
use crate::flow::stage::{self, Contradiction, Decision, Next};
use crate::harness::{self, lanes};
use crate::model::approval::Action;
use crate::model::digest::Digest;
use crate::model::ids::{Principal, TaskId};
use crate::model::lane::Role;
use crate::model::manifest::{Counts, Manifest};
use crate::store::Store;
use crate::store::dossier::{Dossier, Held};
use crate::store::identity::Identity;
use crate::trust::AskPassphrase;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;

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
    /// Whether the same person had decided so before: nothing was signed this time.
    pub already: bool,
    /// Whether what waits now is an approval of the patch.
    #[serde(skip)]
    pub patch_waits: bool,
    /// Whether so many versions were rejected that the task ends.
    #[serde(skip)]
    pub over: bool,
    /// Whether no agent program of this machine could implement the task.
    #[serde(skip)]
    pub by_hand: bool,
    /// People whose approval of it counts now.
    pub have: u32,
    /// People that the policy asks for.
    pub needed: u32,
    /// Decisions about it that contradict each other: nothing goes on until an approver says which of
    /// them stands.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub contradicting: Vec<Contradicting>,
}

/// What a decision of this person would be about: the newest version, if it is the one that they
/// were shown last.
pub fn pending(here: &Here, task: Option<&str>, digest: Option<&str>) -> Result<Pending, Error> {
    let store = here.store()?;
    decide::refuse_agents(here.env.keys())?;
    let dossier = dossier(&store, task)?;
    // Who may not is told so first, whatever else there is to say.
    if let Some(actor) = here.known_actor(&store)? {
        decide::may_decide(&actor, &dossier.history.task)?;
    }
    decide::is_open(&dossier.history.task)?;
    let seal = choose(&dossier, None)?;
    is_one(&store, &dossier)?;
    shown_last(&store, &dossier, seal.digest(), digest)?;
    Ok(Pending {
        id: dossier.id().clone(),
        title: dossier.history.task.title.clone(),
        version: seal.value().version,
        manifest: seal.digest(),
        counts: seal.value().counts,
    })
}

/// Refuses a decision about one of two versions with the same number: which one counts is to be said first.
fn is_one(store: &Store, dossier: &Dossier) -> Result<(), Error> {
    let Next::Blocked(Contradiction::Seals { documents }) = stage::next_now(store, dossier) else {
        return Ok(());
    };
    let id = dossier.id().short();
    let digests = documents.iter().map(Digest::short).collect::<Vec<_>>();
    Err(flow::Error::refused(
        "two versions of the hidden tests were sealed apart, under one number",
        format!(
            "an approver says first which one stands: `hangar adjudicate {id} DIGEST --reason TEXT`, of {}",
            digests.join(", ")
        ),
    )
    .into())
}

/// Refuses a decision about something that this person did not see.
fn shown_last(
    store: &Store,
    dossier: &Dossier,
    newest: Digest,
    named: Option<&str>,
) -> Result<(), Error> {
    if let Some(named) = named
        && !fits(newest, named)?
    {
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

/// Fewest characters that name a digest.
const MIN_DIGEST: usize = 12;

/// Whether a person's text names this digest: at least twelve of its characters, with or without
/// `sha256:`.
pub(super) fn fits(digest: Digest, named: &str) -> Result<bool, Error> {
    let hex = named.strip_prefix("sha256:").unwrap_or(named);
    if hex.is_empty() || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Error::invalid(format!("`{named}` is no digest")));
    }
    if hex.len() < MIN_DIGEST {
        return Err(Error::invalid(format!(
            "`{named}` is too short to name a digest: give at least {MIN_DIGEST} characters"
        )));
    }
    Ok(digest.begins_with(named))
}

/// The decision of this person that counts already, where nothing is left for them to sign: an approval,
/// or a rejection with this very reason.
pub fn decided_already(
    here: &Here,
    pending: &Pending,
    action: Action,
    reason: &str,
) -> Result<Option<Decided>, Error> {
    let store = here.store()?;
    let dossier = store.dossier(&pending.id)?;
    let seal = choose(&dossier, None)?;
    let task = &dossier.history.task;
    let open = !task.state.is_terminal() && !stage::is_edited(task, seal);
    if !open || seal.digest() != pending.manifest {
        return Ok(None);
    }
    let Some(actor) = here.known_actor(&store)? else {
        return Ok(None);
    };
    decide::may_decide(&actor, task)?;
    let next = stage::next_now(&store, &dossier);
    let decisions = match action {
        Action::Approve => stage::usable(&dossier, seal.digest(), store.clock.now()),
        Action::Reject => dossier.decisions_on(seal.digest(), action).collect(),
    };
    let own = decisions
        .into_iter()
        .find(|held| held.document.actor.name() == actor.name() && held.value().reason == reason);
    Ok(own.map(|held| Decided {
        id: pending.id.clone(),
        action,
        manifest: pending.manifest,
        version: pending.version,
        decision: held.digest(),
        by: held.document.actor.name().clone(),
        already: true,
        patch_waits: matches!(next, Next::AwaitPatchApproval { .. }),
        over: matches!(next, Next::RejectTask { .. }),
        by_hand: by_hand(here),
        have: people(&store, &dossier, seal),
        needed: needed(&store),
        contradicting: opposed(&store, &dossier, seal),
    }))
}

/// The decisions about a version, where they contradict each other, or the versions beside which it was
/// sealed.
pub(super) fn opposed(
    store: &Store,
    dossier: &Dossier,
    seal: &Held<Manifest>,
) -> Vec<Contradicting> {
    let manifest = seal.digest();
    let open = stage::contradictions_now(store, dossier);
    let about = |one: &&Contradiction| match one {
        Contradiction::Seals { documents } => documents.contains(&manifest),
        Contradiction::Decisions {
            manifest: about, ..
        } => *about == manifest,
        Contradiction::Grades { .. } => false,
    };
    if let Some(one) = open.iter().find(about) {
        return contradicting::of(dossier, one);
    }
    match stage::standing_now(store, dossier, seal) {
        Decision::Contradicted(documents) => {
            let decisions = Contradiction::Decisions {
                manifest,
                documents,
            };
            contradicting::of(dossier, &decisions)
        }
        _ => Vec::new(),
    }
}

/// Whether this machine has no lane for an implementer. Nothing is started.
fn by_hand(here: &Here) -> bool {
    let lanes = here
        .user()
        .map(|user| lanes::resolve(&user.lanes, Role::Implementer));
    matches!(lanes, Ok(Err(harness::Error::NoLane { .. })))
}

fn people(store: &Store, dossier: &Dossier, seal: &Held<Manifest>) -> u32 {
    let approvals = stage::usable(dossier, seal.digest(), store.clock.now());
    let people = approvals.iter().map(|held| held.document.actor.person());
    u32::try_from(people.collect::<BTreeSet<_>>().len()).unwrap_or(u32::MAX)
}

fn needed(store: &Store) -> u32 {
    store.policy.newest().root.acceptance.approvers.max(1)
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
    let dossier = store.dossier(&pending.id)?;
    let seal = choose(&dossier, Some(pending.version))?;
    Ok(Decided {
        already: false,
        patch_waits: false,
        over: matches!(stage::next_now(&store, &dossier), Next::RejectTask { .. }),
        by_hand: by_hand(here),
        have: people(&store, &dossier, seal),
        needed: needed(&store),
        contradicting: opposed(&store, &dossier, seal),
        id: pending.id.clone(),
        action,
        manifest: pending.manifest,
        version: pending.version,
        decision: written.digest,
        by: person.principal().clone(),
    })
}
