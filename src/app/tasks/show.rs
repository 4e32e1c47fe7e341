//! `hangar task show`

use super::log::{Entry, entries};
use crate::app::acceptance::contradicting::{self, AdjudicationView, Contradicting};
use crate::app::{Error, Here};
use crate::flow::stage::{self, Contradiction, Decision, Next};
use crate::model::digest::Digest;
use crate::model::event::Criterion;
use crate::model::ids::{Principal, TaskId};
use crate::model::manifest::Counts;
use crate::model::object_id::ObjectId;
use crate::model::outcome::{Secrecy, Trust, Verdict};
use crate::model::policy::Acceptance;
use crate::model::task::{Beside, Flow, Mode, Stage, State, Task};
use crate::store::dossier::{Dossier, Held};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

/// A task with everything the refs hold about it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TaskView {
    /// Id.
    pub id: TaskId,
    /// External key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// One line.
    pub title: String,
    /// Where it is in its life.
    pub state: State,
    /// Where the work on it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<Stage>,
    /// What happens next.
    pub next: NextStep,
    /// Markdown.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub mandate: String,
    /// Acceptance criteria.
    pub criteria: Vec<Criterion>,
    /// Acceptance.
    pub flow: Flow,
    /// Kind of work.
    pub mode: Mode,
    /// 1 (first) to 9 (last).
    pub priority: u8,
    /// The commit that the work starts from.
    pub base: ObjectId,
    /// The branch that the base was taken from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_branch: Option<String>,
    /// Capabilities that a worker must have.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub tags: Vec<String>,
    /// Who asked.
    pub requester: Principal,
    /// Claimed time of creation.
    pub created: String,
    /// Values that somebody set at the same time as the one above; the next edit settles it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub beside: Vec<BesideView>,
    /// Who holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<Principal>,
    /// Sealed versions, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub versions: Vec<VersionView>,
    /// Grades, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub grades: Vec<GradeView>,
    /// Documents of which only one can stand; nothing goes on until somebody says which.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub contradicting: Vec<Contradicting>,
    /// What people said about documents that contradicted each other.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub adjudicated: Vec<AdjudicationView>,
    /// Where the result went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<DeliveryView>,
    /// Why it failed, was rejected or cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Everything that happened, oldest first.
    pub timeline: Vec<Entry>,
    /// The document that created it, where that does not count: an admin who trusts it lets it count
    /// (`hangar policy adopt`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uncounted: Option<Digest>,
    /// Documents that are not believed, each with the reason. Never hidden.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub faults: Vec<String>,
}

/// A value that gave way to one that was set at the same time, by people who did not know of each
/// other.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BesideView {
    /// `title`, `mandate`, `priority` or `base`.
    pub field: String,
    /// The value that does not count.
    pub value: String,
    /// Who set it.
    pub by: Principal,
    /// Claimed time.
    pub at: String,
    /// By which event.
    pub event: Digest,
}

/// What has to happen next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NextStep {
    /// Nothing: the task has ended.
    Nothing,
    /// A person puts the draft into the queue.
    Enqueue,
    /// A writer writes hidden tests.
    Write,
    /// A person reads the hidden tests and decides.
    Approve,
    /// An implementer works.
    Implement,
    /// A result is graded.
    Grade,
    /// An approver reads a patch that changes CI, hooks or configuration, and decides.
    ApprovePatch,
    /// The result goes to a branch.
    Deliver,
    /// All rounds are used, or hidden tests got out; the task fails.
    GiveUp,
    /// Too many versions were rejected; the task is rejected.
    Reject,
    /// Documents contradict each other: a person says which stands.
    Adjudicate,
}

impl From<&Next> for NextStep {
    fn from(next: &Next) -> Self {
        match next {
            Next::Nothing => Self::Nothing,
            Next::Enqueue => Self::Enqueue,
            Next::Write { .. } => Self::Write,
            Next::AwaitApproval { .. } => Self::Approve,
            Next::Implement { .. } => Self::Implement,
            Next::Grade { .. } => Self::Grade,
            Next::AwaitPatchApproval { .. } => Self::ApprovePatch,
            Next::Deliver { .. } => Self::Deliver,
            Next::GiveUp { .. } | Next::Leaked => Self::GiveUp,
            Next::RejectTask { .. } => Self::Reject,
            Next::Blocked(
                Contradiction::Decisions { .. }
                | Contradiction::Grades { .. }
                | Contradiction::Seals { .. },
            ) => Self::Adjudicate,
        }
    }
}

/// One sealed version.
#[derive(Debug, Serialize, JsonSchema)]
pub struct VersionView {
    /// Number.
    pub version: u32,
    /// Digest of its manifest.
    pub manifest: Digest,
    /// What people said about it.
    pub decision: DecisionView,
    /// Whether somebody's approval of it expired before it was used.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub expired: bool,
    /// Whether the task's text was edited after it was written.
    pub stale: bool,
    /// Whether it was set aside by a retry or an adjudication, or does not count because its key lost
    /// rights.
    pub set_aside: bool,
    /// The newest version, where that is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<u32>,
    /// Numbers.
    pub counts: Counts,
}

/// What people said about a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DecisionView {
    /// Not enough yet.
    Open,
    /// Approved.
    Approved,
    /// Rejected.
    Rejected,
    /// Some approved, some rejected.
    Contradicted,
}

/// One grade.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GradeView {
    /// Digest of its document.
    pub grade: Digest,
    /// Of which manifest.
    pub manifest: Digest,
    /// The answer.
    pub accepted: bool,
    /// Whether the machinery failed.
    pub void: bool,
    /// What the sandbox held.
    pub trust: Trust,
    /// How the outcomes were learnt.
    pub verdict: Verdict,
    /// How far the tests were kept from the author.
    pub secrecy: Secrecy,
    /// Whether the tests were sealed after some implementation was seen.
    pub after_code: bool,
    /// Paths where tests lie, caches of bytecode and snapshots, of which the base's were run: the patch's are
    /// delivered.
    pub put_back: u32,
    /// Why it is not accepted.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub reasons: Vec<String>,
    /// Why it does not count although it was signed as it should.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
}

/// Where the result went.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DeliveryView {
    /// Full ref name.
    pub branch: String,
    /// The commit.
    pub commit: ObjectId,
    /// The grade it rests on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grade: Option<Digest>,
}

/// Everything about the task that `name` means.
pub fn show(here: &Here, name: &str) -> Result<TaskView, Error> {
    let store = here.store()?;
    let dossier = store.dossier_of(store.find_task(name)?)?;
    let settings = &store.policy.newest().root.acceptance;
    let mut view = view(&dossier, settings, here.clock.now());
    if !store.policy.rivals().is_empty() {
        // First the root keys say which version stands.
        view.uncounted = None;
    }
    Ok(view)
}

/// Only a task that is worked on is in a stage.
const fn is_worked_on(state: State) -> bool {
    matches!(state, State::Assigned | State::Working)
}

fn view(dossier: &Dossier, settings: &Acceptance, now: Timestamp) -> TaskView {
    let next = stage::next(dossier, settings, now);
    let contradictions = stage::contradictions(dossier, settings, now);
    let task: &Task = &dossier.history.task;
    let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let delivery = task.delivery.as_ref().map(|delivery| DeliveryView {
        branch: delivery.branch.clone(),
        commit: delivery.commit,
        grade: delivery.grade,
    });
    let creation = dossier.history.records.first();
    let uncounted = creation.filter(|record| record.event.reduced.is_some());
    TaskView {
        id: task.id.clone(),
        uncounted: uncounted.map(|record| record.event.digest()),
        key: some(&task.external),
        title: task.title.clone(),
        state: task.state,
        stage: next.stage().filter(|_| is_worked_on(task.state)),
        next: if contradictions.is_empty() {
            NextStep::from(&next)
        } else {
            NextStep::Adjudicate
        },
        mandate: task.mandate.clone(),
        criteria: task.criteria.clone(),
        flow: task.flow,
        mode: task.mode,
        priority: task.priority,
        base: task.base,
        base_branch: some(&task.base_branch),
        tags: task.tags.clone(),
        requester: task.requester.clone(),
        created: task.created.clone(),
        beside: task.beside().into_iter().map(beside).collect(),
        worker: task.claim.as_ref().map(|claim| claim.worker.clone()),
        versions: versions(dossier, settings, now),
        grades: dossier.grades.iter().map(grade).collect(),
        contradicting: contradictions
            .iter()
            .flat_map(|one| contradicting::of(dossier, one))
            .collect(),
        adjudicated: contradicting::adjudications(dossier),
        delivery,
        summary: some(&task.summary),
        timeline: entries(dossier),
        faults: faults(dossier),
    }
}

fn beside(beside: Beside) -> BesideView {
    BesideView {
        field: beside.field.to_owned(),
        value: beside.value,
        by: beside.by,
        at: beside.at,
        event: beside.event,
    }
}

pub(super) fn faults(dossier: &Dossier) -> Vec<String> {
    let text = |fault: &crate::store::tasks::Fault| {
        let (kind, commit, doubt) = (fault.kind, fault.commit.short(), &fault.doubt);
        format!("{kind} in commit {commit}: {doubt}")
    };
    dossier.faults.iter().map(text).collect()
}

fn versions(dossier: &Dossier, settings: &Acceptance, now: Timestamp) -> Vec<VersionView> {
    let version = |seal: &Held<crate::model::manifest::Manifest>| VersionView {
        version: seal.value().version,
        manifest: seal.digest(),
        decision: match stage::standing(dossier, seal, settings, now) {
            Decision::Open => DecisionView::Open,
            Decision::Approved(_) => DecisionView::Approved,
            Decision::Rejected(_) => DecisionView::Rejected,
            Decision::Contradicted(_) => DecisionView::Contradicted,
        },
        expired: !stage::expired(dossier, seal.digest(), now).is_empty(),
        stale: stage::is_edited(&dossier.history.task, seal),
        set_aside: dossier.is_aside(seal.digest()),
        superseded_by: dossier.superseded_by(seal),
        counts: seal.value().counts,
    };
    dossier.seals.iter().map(version).collect()
}

fn grade(held: &Held<crate::model::grade::Grade>) -> GradeView {
    let grade = held.value();
    GradeView {
        grade: held.digest(),
        manifest: grade.manifest,
        accepted: grade.accepted,
        void: grade.void,
        trust: grade.trust,
        verdict: grade.verdict,
        secrecy: grade.secrecy,
        after_code: grade.after_code,
        put_back: grade.put_back,
        reasons: grade.reasons.clone(),
        doubt: held.document.reduced.as_ref().map(ToString::to_string),
    }
}
