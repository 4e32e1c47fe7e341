//! Where a task stands and what comes next, derived from its documents alone.
//!
//! No stage is stored, so a crash, a reboot or another clone can't disagree with the refs.

use crate::model::approval::{Action, Approval};
use crate::model::digest::Digest;
use crate::model::grade::Grade;
use crate::model::ids::Principal;
use crate::model::manifest::Manifest;
use crate::model::policy::Acceptance;
use crate::model::run::{Run, RunOutcome, RunRole};
use crate::model::task::{Flow, Stage, State};
use crate::store::Store;
use crate::store::dossier::{Dossier, Held};
use jiff::Timestamp;
use std::collections::BTreeSet;

mod fit;
mod late;
mod undecided;

pub use fit::{
    Unfit, after_edit, edited_since, fit, fit_now, is_edited, takes_grades, was_approved,
};
pub use late::{adjudicated, against, chosen_by, contradictions, contradictions_now, rivals};
pub use undecided::undecided;

/// What has to happen next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Nothing: the task has ended.
    Nothing,
    /// A person must put the draft into the queue.
    Enqueue,
    /// A writer makes a version.
    Write {
        /// Its number.
        version: u32,
        /// The manifest before it.
        previous: Option<Digest>,
        /// Why the version before is not the last: the reasons of its rejection.
        reasons: Vec<String>,
    },
    /// A person decides.
    AwaitApproval {
        /// About this manifest.
        manifest: Digest,
        /// Its version.
        version: u32,
    },
    /// An implementer works.
    Implement {
        /// Under this manifest; `None` for a plain task.
        manifest: Option<Digest>,
        /// Round, from 1.
        round: u32,
        /// The grade of the round before.
        feedback: Option<Digest>,
    },
    /// A run's result is graded.
    Grade {
        /// Under this manifest.
        manifest: Digest,
        /// Which run.
        run: Digest,
    },
    /// An approver signs the id of a patch that changes CI, hooks, Git's or hangar's configuration.
    AwaitPatchApproval {
        /// Whose result.
        run: Digest,
    },
    /// The result goes to a branch.
    Deliver {
        /// Whose result.
        run: Digest,
        /// The accepted grade; `None` for a plain task.
        grade: Option<Digest>,
    },
    /// All rounds are used: the result becomes a draft, the task fails.
    GiveUp {
        /// The last run.
        run: Digest,
        /// Its grade.
        grade: Digest,
    },
    /// Hidden tests got out, says a grade: the task fails, and a retry seals new ones.
    Leaked,
    /// Too many versions were rejected.
    RejectTask {
        /// How many.
        rejections: u32,
    },
    /// Documents contradict each other; a person must say which stands.
    Blocked(Contradiction),
}

/// Documents of which only one can stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contradiction {
    /// One person approved the manifest, another rejected it.
    Decisions {
        /// About what.
        manifest: Digest,
        /// Digests of the decisions.
        documents: Vec<Digest>,
    },
    /// One patch has an accepted and a refused grade.
    Grades {
        /// Digests of the grades.
        documents: Vec<Digest>,
    },
    /// Two versions follow the same one.
    Seals {
        /// Digests of the manifests.
        documents: Vec<Digest>,
    },
}

impl Contradiction {
    /// The documents one of which must stand.
    pub fn documents(&self) -> &[Digest] {
        match self {
            Self::Decisions { documents, .. }
            | Self::Grades { documents }
            | Self::Seals { documents } => documents,
        }
    }
}

impl Next {
    /// The stage that this is part of, for lists.
    pub const fn stage(&self) -> Option<Stage> {
        match self {
            Self::Nothing | Self::Enqueue | Self::RejectTask { .. } => None,
            Self::Write { .. } => Some(Stage::Writing),
            Self::AwaitApproval { .. } => Some(Stage::AwaitingApproval),
            Self::Implement { .. } => Some(Stage::Implementing),
            Self::Grade { .. } | Self::GiveUp { .. } | Self::Leaked => Some(Stage::Verifying),
            Self::AwaitPatchApproval { .. } | Self::Deliver { .. } => Some(Stage::Delivering),
            Self::Blocked(contradiction) => Some(match contradiction {
                Contradiction::Seals { .. } | Contradiction::Decisions { .. } => {
                    Stage::AwaitingApproval
                }
                Contradiction::Grades { .. } => Stage::Verifying,
            }),
        }
    }
}

/// What comes next, now and under the policy in force.
pub fn next_now(store: &Store, dossier: &Dossier) -> Next {
    let settings = &store.policy.newest().root.acceptance;
    next(dossier, settings, store.clock.now())
}

/// Derives what comes next. `now` only judges whether an unused approval has expired.
pub fn next(dossier: &Dossier, settings: &Acceptance, now: Timestamp) -> Next {
    let task = &dossier.history.task;
    match task.state {
        State::Draft => Next::Enqueue,
        State::Done | State::Failed | State::Rejected | State::Deleted => Next::Nothing,
        State::Queued | State::Assigned | State::Working => next_open(dossier, settings, now),
    }
}

/// What comes next for a task that is worked on.
fn next_open(dossier: &Dossier, settings: &Acceptance, now: Timestamp) -> Next {
    match dossier.history.task.flow {
        Flow::Plain => next_plain(dossier),
        Flow::TestFirst => next_test_first(dossier, settings, now),
    }
}

fn next_plain(dossier: &Dossier) -> Next {
    match completed_runs(dossier, None).last() {
        Some(run) => deliver(dossier, run, None),
        None => Next::Implement {
            manifest: None,
            round: 1,
            feedback: None,
        },
    }
}

/// A result may be delivered, unless a person has to allow its patch first.
fn deliver(dossier: &Dossier, run: &Held<Run>, grade: Option<Digest>) -> Next {
    let waits = run.value().result.as_ref().is_some_and(|result| {
        let approved = &dossier.history.task.approved_patches;
        !result.guarded.is_empty() && !approved.contains(&result.patch)
    });
    let run = run.digest();
    if waits {
        Next::AwaitPatchApproval { run }
    } else {
        Next::Deliver { run, grade }
    }
}

fn next_test_first(dossier: &Dossier, settings: &Acceptance, now: Timestamp) -> Next {
    let task = &dossier.history.task;
    let versions: Vec<_> = dossier
        .seals
        .iter()
        .filter(|seal| !dossier.is_aside(seal.digest()))
        .collect();
    let rejected = |seal: &Held<Manifest>| {
        dossier
            .decisions_on(seal.digest(), Action::Reject)
            .next()
            .is_some()
    };
    let rejections = versions.iter().filter(|seal| rejected(seal)).count();
    if rejections >= settings.max_rejections as usize {
        return Next::RejectTask {
            rejections: u32::try_from(rejections).unwrap_or(u32::MAX),
        };
    }
    if let Some(contradiction) = forked(dossier, &versions) {
        return Next::Blocked(contradiction);
    }
    let Some(last) = versions.last() else {
        let version = dossier
            .seals
            .iter()
            .map(|seal| seal.value().version)
            .max()
            .unwrap_or(0)
            .saturating_add(1);
        let previous = dossier.seals.last().map(Held::digest);
        return Next::Write {
            version,
            previous,
            reasons: Vec::new(),
        };
    };
    let rewrite = |reasons| Next::Write {
        version: last.value().version.saturating_add(1),
        previous: Some(last.digest()),
        reasons,
    };
    if is_edited(task, last) {
        return rewrite(vec![
            "The task's text was edited after this version was written.".into(),
        ]);
    }
    match standing(dossier, last, settings, now) {
        Decision::Contradicted(documents) => Next::Blocked(Contradiction::Decisions {
            manifest: last.digest(),
            documents,
        }),
        Decision::Rejected(reasons) => rewrite(reasons),
        Decision::Open => Next::AwaitApproval {
            manifest: last.digest(),
            version: last.value().version,
        },
        Decision::Approved(_) => next_round(dossier, last.digest(), settings),
    }
}

/// Two versions that follow the same one: made by two clones that did not know of each other. Where
/// people said the opposite of which one stands, both still wait for a word.
fn forked(dossier: &Dossier, standing: &[&Held<Manifest>]) -> Option<Contradiction> {
    let number = |seal: &Held<Manifest>| seal.value().version;
    let newest = standing.last().map_or(0, |seal| number(seal));
    let undecided = undecided(dossier);
    let open = dossier.seals.iter();
    let open = open.filter(|seal| undecided.contains(&seal.digest()) && number(seal) > newest);
    let open: Vec<_> = open.collect();
    let versions = if open.len() > 1 { &open } else { standing };
    let last = versions.last()?;
    let rivals: Vec<_> = versions
        .iter()
        .filter(|seal| seal.value().version == last.value().version)
        .collect();
    (rivals.len() > 1).then(|| Contradiction::Seals {
        documents: rivals.iter().map(|seal| seal.digest()).collect(),
    })
}

/// What people said about one manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Not enough was said.
    Open,
    /// These approvals suffice.
    Approved(Vec<Digest>),
    /// It was rejected, for these reasons.
    Rejected(Vec<String>),
    /// Some approved, some rejected.
    Contradicted(Vec<Digest>),
}

/// [`standing`] now, under the policy in force.
pub fn standing_now(store: &Store, dossier: &Dossier, seal: &Held<Manifest>) -> Decision {
    let settings = &store.policy.newest().root.acceptance;
    standing(dossier, seal, settings, store.clock.now())
}

/// Whether a manifest is approved, and by which documents. Counts people, not keys.
pub fn standing(
    dossier: &Dossier,
    seal: &Held<Manifest>,
    settings: &Acceptance,
    now: Timestamp,
) -> Decision {
    let manifest = seal.digest();
    let rejects: Vec<_> = dossier.decisions_on(manifest, Action::Reject).collect();
    let approvals = usable(dossier, manifest, now);
    // A new decision settles nothing: it is one more to choose from.
    let new = approvals.iter().chain(&rejects).copied();
    let open = undecided::decisions(dossier, manifest, new);
    if !open.is_empty() {
        return Decision::Contradicted(open);
    }
    if !rejects.is_empty() {
        return if approvals.is_empty() {
            Decision::Rejected(
                rejects
                    .iter()
                    .map(|held| held.value().reason.clone())
                    .collect(),
            )
        } else {
            Decision::Contradicted(
                approvals
                    .iter()
                    .chain(&rejects)
                    .map(|held| held.digest())
                    .collect(),
            )
        };
    }
    let people: BTreeSet<&Principal> = approvals
        .iter()
        .map(|held| held.document.actor.person())
        .collect();
    if people.len() >= settings.approvers.max(1) as usize {
        Decision::Approved(approvals.iter().map(|held| held.digest()).collect())
    } else {
        Decision::Open
    }
}

/// Approvals of a manifest that count at `now`. One that the task's own events have used stays good
/// after it has expired.
pub fn usable(dossier: &Dossier, manifest: Digest, now: Timestamp) -> Vec<&Held<Approval>> {
    let used: &[Digest] = match &dossier.history.task.consumed {
        Some((consumed, approvals)) if *consumed == manifest => approvals,
        _ => &[],
    };
    dossier
        .decisions_on(manifest, Action::Approve)
        .filter(|held| used.contains(&held.digest()) || is_fresh(held.value(), now))
        .collect()
}

/// Approvals of a manifest that expired before they were used.
pub fn expired(dossier: &Dossier, manifest: Digest, now: Timestamp) -> Vec<&Held<Approval>> {
    let usable: BTreeSet<Digest> = usable(dossier, manifest, now)
        .iter()
        .map(|held| held.digest())
        .collect();
    dossier
        .decisions_on(manifest, Action::Approve)
        .filter(|held| !usable.contains(&held.digest()))
        .collect()
}

/// Whether an approval can still be used at `now`.
pub fn is_fresh(approval: &Approval, now: Timestamp) -> bool {
    end(approval).is_some_and(|end| now <= end)
}

/// The last moment in which an approval can be used.
pub fn end(approval: &Approval) -> Option<Timestamp> {
    approval.not_after.as_deref()?.parse().ok()
}

fn next_round(dossier: &Dossier, manifest: Digest, settings: &Acceptance) -> Next {
    if is_leaked(dossier, manifest) {
        return Next::Leaked;
    }
    let runs = completed_runs(dossier, Some(manifest));
    let Some(last) = runs.last() else {
        return Next::Implement {
            manifest: Some(manifest),
            round: 1,
            feedback: None,
        };
    };
    let grades: Vec<_> = grades_of(dossier, manifest, last).collect();
    let firm: Vec<_> = grades
        .iter()
        .filter(|grade| grade.value().is_firm())
        .collect();
    let both = firm.iter().any(|grade| grade.value().accepted)
        && firm.iter().any(|grade| !grade.value().accepted);
    let mut contradicting = undecided::grades(dossier, about(dossier, manifest, last));
    if both || !contradicting.is_empty() {
        contradicting.extend(firm.iter().map(|grade| grade.digest()));
    }
    if !contradicting.is_empty() {
        return Next::Blocked(Contradiction::Grades {
            documents: contradicting,
        });
    }
    // A grade of the same patch that was asked for before this run rests on no run: it can
    // contradict, and it is no round's until a person says that it stands.
    let chosen =
        |grade: &&Held<Grade>| grade.value().run.is_none() && dossier.was_chosen(grade.digest());
    let own: Vec<_> = grades
        .iter()
        .filter(|grade| grade.value().run == Some(last.digest()) || chosen(grade))
        .collect();
    let firm: Vec<_> = own.iter().filter(|grade| grade.value().is_firm()).collect();
    if let Some(accepted) = firm.iter().find(|grade| grade.value().accepted) {
        return deliver(dossier, last, Some(accepted.digest()));
    }
    // A void grade is repeated once; void again costs a round like a failure. A sentinel that passed is no
    // accident of the machine: another try would be another chance for the forger.
    let settled = firm.first().copied().or_else(|| own.get(1));
    let Some(settled) = settled else {
        return Next::Grade {
            manifest,
            run: last.digest(),
        };
    };
    let round = u32::try_from(runs.len()).unwrap_or(u32::MAX);
    if round > settings.max_rounds {
        return Next::GiveUp {
            run: last.digest(),
            grade: settled.digest(),
        };
    }
    Next::Implement {
        manifest: Some(manifest),
        round: round + 1,
        feedback: Some(settled.digest()),
    }
}

/// Whether a grade says that the tests of this version got out. Whose patch it was does not matter, nor
/// whether the grade was set aside: tests that are known are hidden from nobody. What a key says that lost
/// its rights does not count.
pub fn is_leaked(dossier: &Dossier, manifest: Digest) -> bool {
    let counts = |held: &&Held<Grade>| !dossier.reduced.contains(&held.digest());
    let mut grades = dossier.grades.iter().filter(counts).map(Held::value);
    grades.any(|grade| grade.manifest == manifest && grade.canary_found)
}

/// Finished implementations under a manifest, oldest first.
pub fn completed_runs(dossier: &Dossier, manifest: Option<Digest>) -> Vec<&Held<Run>> {
    let counts = |held: &&Held<Run>| {
        let run = held.value();
        run.role == RunRole::Implementer
            && run.outcome == RunOutcome::Completed
            && run
                .result
                .as_ref()
                .is_some_and(|result| result.base == dossier.history.task.base)
            && run.manifest == manifest
            && !dossier.is_aside(held.digest())
    };
    dossier.runs.iter().filter(counts).collect()
}

/// Those of [`about`] that count.
fn grades_of<'a>(
    dossier: &'a Dossier,
    manifest: Digest,
    run: &'a Held<Run>,
) -> impl Iterator<Item = &'a Held<Grade>> {
    about(dossier, manifest, run).filter(|held| !dossier.is_aside(held.digest()))
}

/// Grades that speak about this run's patch on this base, whoever asked for them.
fn about<'a>(
    dossier: &'a Dossier,
    manifest: Digest,
    run: &'a Held<Run>,
) -> impl Iterator<Item = &'a Held<Grade>> {
    let result = run.value().result.as_ref();
    dossier.grades.iter().filter(move |held| {
        let grade = held.value();
        let same = result.is_some_and(|result| {
            result.listing == grade.subject.listing && result.base == grade.subject.base
        });
        grade.manifest == manifest && same
    })
}

/// What a retry from a stage sets aside: everything that was made at or after it. What fell by an
/// adjudication, or with the rights of its key, is named too: either can be taken back, a retry not.
pub fn set_aside(dossier: &Dossier, from: Stage) -> Vec<Digest> {
    let mut aside = Vec::new();
    if from <= Stage::Verifying {
        aside.extend(dossier.grades.iter().map(Held::digest));
    }
    if from <= Stage::Implementing {
        aside.extend(
            dossier
                .runs
                .iter()
                .filter(|run| run.value().role == RunRole::Implementer)
                .map(Held::digest),
        );
    }
    if from < Stage::AwaitingApproval {
        aside.extend(dossier.seals.iter().map(Held::digest));
    } else if from == Stage::AwaitingApproval {
        aside.extend(dossier.decisions.iter().map(Held::digest));
    }
    aside.retain(|digest| !dossier.history.task.was_retried(*digest));
    aside
}

/// Where a retry goes on when the person names no stage, and what it sets aside: nothing, unless the
/// rounds or the versions are used up, or the tests got out.
pub fn resumption(
    dossier: &Dossier,
    settings: &Acceptance,
    now: Timestamp,
) -> (Stage, Vec<Digest>) {
    let next = next_open(dossier, settings, now);
    match next {
        Next::GiveUp { .. } => (Stage::Implementing, set_aside(dossier, Stage::Implementing)),
        Next::RejectTask { .. } | Next::Leaked => {
            (Stage::Writing, set_aside(dossier, Stage::Writing))
        }
        next => (next.stage().unwrap_or(Stage::Writing), Vec::new()),
    }
}
