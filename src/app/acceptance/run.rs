//! `hangar run`, `hangar submit`, `hangar deliver`: driving a task.

use super::contradicting::{self, Contradicting};
use super::machine::{Watch, host};
use super::taken_in;
use crate::app::{Error, Here, sync};
use crate::flow;
use crate::flow::drive::{Agents, Stop, drive};
use crate::flow::outage::Patience;
use crate::flow::stage::{self, Next, Unfit};
use crate::flow::subject::Subject;
use crate::model::authority::{Act, may};
use crate::model::digest::Digest;
use crate::model::event::Change;
use crate::model::grade::Grade;
use crate::model::ids::TaskId;
use crate::model::object_id::ObjectId;
use crate::model::outcome::{Secrecy, Trust, Verdict};
use crate::model::task::{Stage, State};
use crate::store::Store;
use crate::store::dossier::{Dossier, Held};
use crate::store::identity::Identity;
use crate::trust::AskPassphrase;
use schemars::JsonSchema;
use serde::Serialize;

/// Where a run stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunView {
    /// Which task.
    pub id: TaskId,
    /// Where it is in its life.
    pub state: State,
    /// Where the work on it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<Stage>,
    /// The stage that was to be reached, and is.
    #[serde(skip)]
    pub until: Option<Stage>,
    /// Why the run stopped.
    pub stopped: Stopped,
    /// The manifest that a person must decide about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Digest>,
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// The id of the patch that an approver must allow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<Digest>,
    /// The changed paths for which it must be allowed.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub guarded: Vec<String>,
    /// Documents one of which must be chosen.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub contradicting: Vec<Contradicting>,
    /// The branch that holds the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Whether that branch is not in this clone (any more).
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub branch_gone: bool,
    /// Its commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<ObjectId>,
    /// Trust, verdict and secrecy of the last grade.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grade: Option<GradeWords>,
    /// Rounds that are left for an implementation, where one is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds_left: Option<u32>,
    /// Why a task ended, as its events say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// The three words that a grade stands on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GradeWords {
    /// Whether it accepts.
    pub accepted: bool,
    /// Tests that passed.
    pub passed: u32,
    /// Tests that were expected.
    pub expected: u32,
    /// What the sandbox held.
    pub trust: Trust,
    /// How the outcomes were learnt.
    pub verdict: Verdict,
    /// How well the tests were hidden.
    pub secrecy: Secrecy,
    /// Why it does not accept; empty when it does.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub reasons: Vec<String>,
    /// Protected paths that the patch touches beyond the plan.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub protected_touched: Vec<String>,
}

/// Why a run stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stopped {
    /// A person must approve or reject.
    WaitingForApproval,
    /// An approver must allow the patch: it changes CI, hooks or configuration.
    WaitingForPatchApproval,
    /// A person must adjudicate.
    Contradiction,
    /// An agent must work, and this command starts none.
    NeedsAgent,
    /// The stage that was asked for is reached.
    Stage,
    /// The result is on its branch.
    Delivered,
    /// All rounds are used.
    NotAccepted,
    /// Hidden tests got out: new ones must be sealed.
    Leaked,
    /// Too many versions of the tests were rejected.
    Rejected,
    /// The task had ended before.
    Ended,
}

/// How far a run goes.
#[derive(Debug, Clone, Copy, Default)]
pub struct How {
    /// Stop before the first step after this stage.
    pub until: Option<Stage>,
    /// What to do where no agent program can work now.
    pub patience: Patience,
}

/// Drives a task to the next point where a person is needed, or to its end.
pub fn run(
    here: &Here,
    task: &str,
    how: How,
    ask: &mut AskPassphrase<'_>,
    watch: &Watch<'_>,
) -> Result<RunView, Error> {
    let ran = run_it(here, task, how, ask, watch);
    sync::tell_brought(here);
    ran
}

fn run_it(
    here: &Here,
    task: &str,
    how: How,
    ask: &mut AskPassphrase<'_>,
    watch: &Watch<'_>,
) -> Result<RunView, Error> {
    let How { until, patience } = how;
    let store = here.store()?;
    let history = store.find_task(task)?;
    let id = history.task.id.clone();
    let host = host(here, &store, watch, None, None)?;
    let dossier = store.dossier_of(history)?;
    let config = here.config_at(&store.repo, dossier.history.task.base)?;
    // Before anything is signed: a task that can't be served here stays as it is.
    let next = stage::next_now(&store, &dossier);
    let begins = |until: Stage| next.stage().is_none_or(|stage| stage <= until);
    if until.is_none_or(begins) {
        flow::outage::ready(&host, &dossier, &next, patience)?;
    }
    if let Some(config) = config
        && matches!(
            next,
            Next::Enqueue | Next::Write { .. } | Next::Implement { .. }
        )
    {
        flow::delivery::preflight(&store, &dossier.history.task, &config.deliver.branch)?;
    }
    enqueue(here, &store, &dossier, ask)?;
    let agents = match patience {
        Patience::None => Agents::Start,
        Patience::Wait => Agents::Await,
    };
    let stop = drive(&host, &store, &id, until, agents)?;
    view(&store, &id, stop)
}

/// Puts a draft into the queue as the person who runs it.
fn enqueue(
    here: &Here,
    store: &Store,
    dossier: &Dossier,
    ask: &mut AskPassphrase<'_>,
) -> Result<(), Error> {
    if dossier.history.task.state != State::Draft {
        return Ok(());
    }
    let signer = here.signer(store, ask)?;
    let person = Identity::of(&store.policy, &signer)?;
    store.change_task(dossier.id(), &person, |history| {
        Ok(if history.task.state == State::Draft {
            vec![Change::Enqueue]
        } else {
            Vec::new()
        })
    })?;
    Ok(())
}

/// Hands in a person's own patch, grades it and delivers what is accepted.
pub fn submit(
    here: &Here,
    task: &str,
    rev: &str,
    ask: &mut AskPassphrase<'_>,
    watch: &Watch<'_>,
) -> Result<RunView, Error> {
    let submitted = submit_it(here, task, rev, ask, watch);
    sync::tell_brought(here);
    submitted
}

fn submit_it(
    here: &Here,
    task: &str,
    rev: &str,
    ask: &mut AskPassphrase<'_>,
    watch: &Watch<'_>,
) -> Result<RunView, Error> {
    let store = here.store()?;
    let dossier = store.dossier_of(store.find_task(task)?)?;
    let subject = || -> Result<_, Error> {
        let commit = store.repo.resolve(rev)?;
        super::grade::subject_of_commit(&store, dossier.history.task.base, commit)
    };
    match stage::next_now(&store, &dossier) {
        Next::Implement { .. } => {}
        Next::Enqueue if dossier.history.task.flow == crate::model::task::Flow::Plain => {}
        // It was interrupted after the patch was recorded, and goes on.
        next @ (Next::Grade { .. } | Next::Deliver { .. })
            if flow::drive::is_recorded(&dossier, &next, &subject()?) => {}
        Next::AwaitApproval { manifest, .. }
            if !stage::expired(&dossier, manifest, store.clock.now()).is_empty() =>
        {
            let id = dossier.id().short();
            return Err(flow::Error::refused(
                "the approval of the hidden tests has expired",
                format!("approve them again: `hangar review {id}`, then `hangar approve {id}`"),
            )
            .into());
        }
        // It was interrupted after the delivery, or typed once more.
        Next::Nothing if is_delivered(&dossier, &subject()?) => {
            return view(&store, dossier.id(), Stop::Ended);
        }
        other => return Err(not_now(&other, &dossier).into()),
    }
    let signer = here.signer(&store, ask)?;
    let person = Identity::of(&store.policy, &signer)?;
    if !may(&person.actor, Act::Submit, &dossier.history.task.requester) {
        let what = format!("{} may not submit a patch", person.principal());
        return Err(
            flow::Error::refused(what, "ask an admin to add you (`hangar policy add`)").into(),
        );
    }
    // Before anything is signed: a result that can't go to its branch is not graded first.
    if let Some(config) = here.config_at(&store.repo, dossier.history.task.base)? {
        flow::delivery::preflight(&store, &dossier.history.task, &config.deliver.branch)?;
    }
    let host = host(here, &store, watch, None, None)?;
    enqueue(here, &store, &dossier, ask)?;
    let subject = subject()?;
    let commit = store.repo.resolve(rev)?;
    taken_in::tell(&host, &store, dossier.history.task.base, commit);
    let id = dossier.id().clone();
    let stop = flow::drive::submit(&host, &store, &id, &person, &subject)?;
    view(&store, &id, stop)
}

/// Whether this very patch is the one that was delivered.
fn is_delivered(dossier: &Dossier, subject: &Subject) -> bool {
    let delivery = dossier.history.task.delivery.as_ref();
    let run = delivery.and_then(|to| dossier.runs.iter().find(|held| held.digest() == to.run));
    let result = run.and_then(|held| held.value().result.as_ref());
    result.is_some_and(|result| result.patch == subject.patch)
}

/// Why no patch is taken now, and what to do first.
pub(super) fn not_now(next: &Next, dossier: &Dossier) -> flow::Error {
    let id = dossier.id().short();
    if let (Next::Write { .. }, Some(seal)) = (next, stage::edited_since(dossier)) {
        return Unfit::Edited.error(dossier, seal);
    }
    let (what, remedy) = match next {
        Next::Enqueue | Next::Write { .. } => (
            "the hidden tests are not there yet",
            format!(
                "seal tests of your own (`hangar seal {id} --from DIR`), or have them written (`hangar run {id}`)"
            ),
        ),
        Next::AwaitApproval { .. } => (
            "the hidden tests are not approved yet",
            format!("see `hangar review {id}`"),
        ),
        Next::Blocked(_) => (
            "documents contradict each other",
            format!("see `hangar task show {id}`, then `hangar adjudicate`"),
        ),
        Next::AwaitPatchApproval { .. } => (
            "an accepted patch waits for an approver",
            format!("see `hangar review {id} --patch`"),
        ),
        Next::Grade { .. } => (
            "the patch before has no grade that says anything yet",
            format!("grade it first: `hangar run {id}`"),
        ),
        Next::Deliver { .. } => (
            "a patch is accepted already",
            format!("deliver it: `hangar deliver {id}`"),
        ),
        Next::GiveUp { .. } => (
            "all rounds are used",
            format!("end the task (`hangar run {id}`), then `hangar task retry {id}`"),
        ),
        Next::Leaked => (
            "the hidden tests got out",
            format!(
                "end the task (`hangar run {id}`), then `hangar task retry {id}`: new ones are written"
            ),
        ),
        Next::RejectTask { .. } => (
            "too many versions of the hidden tests were rejected",
            format!("end the task (`hangar run {id}`), then `hangar task retry {id}`"),
        ),
        Next::Nothing if dossier.history.task.delivery.is_some() => (
            "another patch was delivered already",
            format!(
                "see it with `hangar task show {id}`; more work is a new task: `hangar task new`"
            ),
        ),
        Next::Implement { .. } | Next::Nothing => {
            ("the task has ended", format!("see `hangar task show {id}`"))
        }
    };
    flow::Error::refused(what, remedy)
}

/// Why there is nothing to deliver, and what to do first.
fn nothing_to_deliver(dossier: &Dossier, next: &Next) -> flow::Error {
    let id = dossier.id().short();
    let accepts = |version: &Option<Digest>| {
        let stands = |held: &Held<Grade>| {
            let grade = held.value();
            let is_of = Some(grade.manifest) == *version;
            grade.accepted && is_of && grade.run.is_none() && !dossier.is_aside(held.digest())
        };
        dossier.grades.iter().any(stands)
    };
    match next {
        Next::Implement { manifest, .. } if accepts(manifest) => flow::Error::refused(
            "a grade accepts a patch that nobody has handed in",
            format!("hand it in, which delivers it: `hangar submit {id} --rev REV`"),
        ),
        _ => flow::Error::refused(
            "there is no accepted result to deliver",
            format!("see `hangar task show {id}`"),
        ),
    }
}

/// Delivers a result that is accepted.
pub fn deliver(here: &Here, task: &str, watch: &Watch<'_>) -> Result<RunView, Error> {
    let store = here.store()?;
    let dossier = store.dossier_of(store.find_task(task)?)?;
    match stage::next_now(&store, &dossier) {
        Next::Deliver { .. } | Next::AwaitPatchApproval { .. } => {}
        Next::Nothing if dossier.history.task.delivery.is_some() => {
            flow::delivery::put_back(&store, &dossier)?;
            return view(&store, dossier.id(), Stop::Ended);
        }
        other => return Err(nothing_to_deliver(&dossier, &other).into()),
    }
    let host = host(here, &store, watch, None, None)?;
    let stop = drive(&host, &store, dossier.id(), None, Agents::Refuse);
    sync::tell_brought(here);
    let stop = stop?;
    view(&store, dossier.id(), stop)
}

fn view(store: &Store, id: &TaskId, stop: Stop) -> Result<RunView, Error> {
    let dossier = store.dossier(id)?;
    let task = &dossier.history.task;
    let next = stage::next_now(store, &dossier);
    let max_rounds = store.policy.newest().root.acceptance.max_rounds;
    let mut view = RunView {
        until: None,
        id: id.clone(),
        state: task.state,
        stage: next.stage(),
        stopped: Stopped::Ended,
        manifest: None,
        version: None,
        patch: None,
        guarded: Vec::new(),
        contradicting: Vec::new(),
        branch: task
            .delivery
            .as_ref()
            .map(|delivery| short_branch(&delivery.branch)),
        branch_gone: match &task.delivery {
            Some(delivery) => store.repo.read_ref(&delivery.branch)?.is_none(),
            None => false,
        },
        commit: task.delivery.as_ref().map(|delivery| delivery.commit),
        grade: grade_of(&dossier).map(|held| words(held.value())),
        rounds_left: match next {
            Next::Implement {
                round,
                manifest: Some(_),
                ..
            } => Some((max_rounds + 2).saturating_sub(round)),
            _ => None,
        },
        summary: (!task.summary.is_empty()).then(|| task.summary.clone()),
    };
    view.stopped = match stop {
        Stop::Waiting { manifest, version } => {
            (view.manifest, view.version) = (Some(manifest), Some(version));
            Stopped::WaitingForApproval
        }
        Stop::WaitingForPatch { run } => {
            let run = dossier.runs.iter().find(|held| held.digest() == run);
            if let Some(result) = run.and_then(|held| held.value().result.as_ref()) {
                (view.patch, view.guarded) = (Some(result.patch), result.guarded.clone());
            }
            Stopped::WaitingForPatchApproval
        }
        Stop::Blocked(contradiction) => {
            view.contradicting = contradicting::of(&dossier, &contradiction);
            Stopped::Contradiction
        }
        Stop::Draft | Stop::NeedsAgent => Stopped::NeedsAgent,
        Stop::Until(stage) => {
            view.until = Some(stage);
            Stopped::Stage
        }
        Stop::Delivered(_) => Stopped::Delivered,
        Stop::GaveUp(delivered) => {
            if let Some(delivered) = delivered {
                (view.branch, view.commit) = (Some(delivered.branch), Some(delivered.commit));
            }
            Stopped::NotAccepted
        }
        Stop::Leaked => Stopped::Leaked,
        Stop::Rejected => Stopped::Rejected,
        Stop::Ended => Stopped::Ended,
    };
    Ok(view)
}

/// The grade that the delivery rests on, else the last one that no retry set aside.
fn grade_of(dossier: &Dossier) -> Option<&Held<Grade>> {
    let delivery = dossier.history.task.delivery.as_ref();
    let delivered = delivery.and_then(|delivery| delivery.grade);
    let counts = |held: &&Held<Grade>| match delivered {
        Some(digest) => held.digest() == digest,
        None => !dossier.is_aside(held.digest()),
    };
    dossier.grades.iter().rfind(counts)
}

fn short_branch(full: &str) -> String {
    full.trim_start_matches("refs/heads/").to_owned()
}

/// What is said of a grade in one line.
pub(super) fn words(grade: &crate::model::grade::Grade) -> GradeWords {
    GradeWords {
        accepted: grade.accepted,
        passed: grade.counts.passed,
        expected: grade.counts.expected,
        trust: grade.trust,
        verdict: grade.verdict,
        secrecy: grade.secrecy,
        reasons: grade.reasons.clone(),
        protected_touched: grade.protected_touched.clone(),
    }
}
