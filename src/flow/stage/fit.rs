//! Which sealed version may decide about a patch, and why another may not. `run`, `submit`, `grade` and
//! `deliver` ask here, so that none of them goes by tests that another one refuses.

use super::{Decision, expired, standing};
use crate::flow::Error;
use crate::model::approval::Action;
use crate::model::digest::Digest;
use crate::model::manifest::Manifest;
use crate::model::policy::Acceptance;
use crate::model::task::{State, Task};
use crate::store::Store;
use crate::store::dossier::{Dossier, Held};
use jiff::Timestamp;

/// Why a version decides about nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfit {
    /// A retry or an adjudication set it aside.
    SetAside,
    /// One with this number was sealed after it.
    Superseded(u32),
    /// The task's text or base is another than the one that it was written for.
    Edited,
    /// Too few people approved it.
    Open,
    /// They did, and that was not used in time.
    Expired,
    /// It was rejected.
    Rejected,
    /// Some approved and some rejected it.
    Contradicted,
}

/// The approvals by which a version decides now, under the policy in force.
pub fn fit_now(
    store: &Store,
    dossier: &Dossier,
    seal: &Held<Manifest>,
) -> Result<Vec<Digest>, Unfit> {
    let settings = &store.policy.newest().root.acceptance;
    fit(dossier, seal, settings, store.clock.now())
}

/// The approvals by which a version decides.
pub fn fit(
    dossier: &Dossier,
    seal: &Held<Manifest>,
    settings: &Acceptance,
    now: Timestamp,
) -> Result<Vec<Digest>, Unfit> {
    if dossier.is_aside(seal.digest()) {
        return Err(Unfit::SetAside);
    }
    if let Some(newer) = dossier.superseded_by(seal) {
        return Err(Unfit::Superseded(newer));
    }
    if is_edited(&dossier.history.task, seal) {
        return Err(Unfit::Edited);
    }
    match standing(dossier, seal, settings, now) {
        Decision::Approved(approvals) => Ok(approvals),
        Decision::Open if expired(dossier, seal.digest(), now).is_empty() => Err(Unfit::Open),
        Decision::Open => Err(Unfit::Expired),
        Decision::Rejected(_) => Err(Unfit::Rejected),
        Decision::Contradicted(_) => Err(Unfit::Contradicted),
    }
}

/// Whether the task's text or base is another than the one that a version was written for.
pub fn is_edited(task: &Task, seal: &Held<Manifest>) -> bool {
    seal.value().text != task.text_digest() || seal.value().base != task.base
}

/// The newest version that counts, where the task's text was edited after it was written.
pub fn edited_since(dossier: &Dossier) -> Option<&Held<Manifest>> {
    let counts = |seal: &&Held<Manifest>| !dossier.is_aside(seal.digest());
    let last = dossier.seals.iter().rfind(counts)?;
    is_edited(&dossier.history.task, last).then_some(last)
}

/// Refuses to sign a grade for a task that ended without a result. Nothing would rest on it, and a retry
/// would find it there. What was delivered is graded again by CI.
pub fn takes_grades(task: &Task) -> Result<(), Error> {
    let state = task.state;
    if !matches!(state, State::Failed | State::Rejected | State::Deleted) {
        return Ok(());
    }
    let id = task.id.short();
    Err(Error::refused(
        format!("the task is {state}: no grade of it would count"),
        format!("queue it again first (`hangar task retry {id}`), or try the patch with --dry-run"),
    ))
}

/// Whether somebody approved it, whatever came after.
pub fn was_approved(dossier: &Dossier, seal: &Held<Manifest>) -> bool {
    let mut approvals = dossier.decisions_on(seal.digest(), Action::Approve);
    approvals.next().is_some()
}

impl Unfit {
    /// The refusal, with what helps.
    pub fn error(self, dossier: &Dossier, seal: &Held<Manifest>) -> Error {
        let (id, version) = (dossier.id().short(), seal.value().version);
        let what = match self {
            Self::SetAside => format!("version {version} of the tests was set aside"),
            Self::Superseded(newer) => {
                format!("version {newer} of the tests was sealed after version {version}")
            }
            Self::Edited if was_approved(dossier, seal) => format!(
                "version {version} of the tests was approved, but the task's text was edited since"
            ),
            Self::Edited => format!(
                "the task's text was edited after these tests were written (version {version})"
            ),
            Self::Open => format!("version {version} of the tests is not approved"),
            Self::Expired => "the approval of the hidden tests has expired".to_owned(),
            Self::Rejected => format!("version {version} of the tests was rejected"),
            Self::Contradicted => {
                format!("version {version} of the tests was approved and rejected")
            }
        };
        let remedy = match self {
            Self::SetAside | Self::Superseded(_) => format!(
                "the newest version is the one that decides (`hangar sealed list {id}` lists them); an older one can be tried with `hangar grade {id} --dry-run --version {version}`"
            ),
            Self::Edited => after_edit(id, version),
            Self::Open => format!(
                "approve it first (`hangar review {id}`, then `hangar approve {id}`); `hangar grade --dry-run` may use it as it is"
            ),
            Self::Expired => {
                format!("approve them again: `hangar review {id}`, then `hangar approve {id}`")
            }
            Self::Rejected => format!(
                "seal other tests (`hangar seal {id} --from DIR`), or have them written (`hangar run {id}`)"
            ),
            Self::Contradicted => {
                format!("see `hangar task show {id}`, then `hangar adjudicate`")
            }
        };
        Error::refused(what, remedy)
    }
}

/// What helps where a text was edited after tests were written for it.
pub fn after_edit(id: &str, version: u32) -> String {
    format!(
        "put the text back (`hangar task edit {id}`), and version {version} counts again; or seal tests for the new text (`hangar seal {id} --from DIR`, or `hangar run {id}` has them written)"
    )
}
