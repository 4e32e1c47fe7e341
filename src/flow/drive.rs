//! Driving a task to the next point where a person is needed, or to its end.
//!
//! Every turn of the loop reads the refs again and does the one thing that comes next, so it can
//! be stopped anywhere and goes on from what was recorded.

use super::Error;
use super::claim;
use super::delivery::{self, Delivered};
use super::host::Host;
use super::implementer::{self, Round};
use super::outage::{self, Resting};
use super::pairing::{self, first_pair, implementer_lane};
use super::project::Project;
use super::stage::{self, Contradiction, Next};
use super::subject::Subject;
use super::verdict::{self, Author};
use super::writer::{self, Cause};
use crate::base::words;
use crate::model::digest::Digest;
use crate::model::event::Change;
use crate::model::ids::TaskId;
use crate::model::task::Stage;
use crate::store::Store;
use crate::store::dossier::Dossier;
use crate::store::identity::Identity;
use crate::store::scan::TaskRefs;

/// Where a drive stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// A person must approve or reject.
    Waiting {
        /// About this manifest.
        manifest: Digest,
        /// Its version.
        version: u32,
    },
    /// An approver must allow the patch of this run, which changes guarded paths.
    WaitingForPatch {
        /// The run.
        run: Digest,
    },
    /// A person must say which of contradictory documents stands.
    Blocked(Contradiction),
    /// A person must enqueue the draft.
    Draft,
    /// An agent program would have to work.
    NeedsAgent,
    /// The stage that was asked for is reached.
    Until(Stage),
    /// The result is on a branch.
    Delivered(Delivered),
    /// All rounds are used. The last result is on a branch, marked as failed, unless its patch waits
    /// for an approver.
    GaveUp(Option<Delivered>),
    /// Hidden tests got out. The result that holds them is on no branch.
    Leaked,
    /// Too many versions of the tests were rejected.
    Rejected,
    /// The task had ended before.
    Ended,
}

/// Whether agent programs may be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agents {
    /// Where one is needed.
    Start,
    /// The same; where none can work now, wait for the first that can.
    Await,
    /// Never: stop where one would be needed.
    Refuse,
}

/// Drives a task. `until` stops before the first step of a later stage.
pub fn drive(
    host: &Host<'_>,
    store: &Store,
    id: &TaskId,
    until: Option<Stage>,
    agents: Agents,
) -> Result<Stop, Error> {
    let dossier = store.dossier(id)?;
    if dossier.history.task.state.is_terminal() {
        return Ok(Stop::Ended);
    }
    if let Some(stop) = waits_already(store, &dossier) {
        return Ok(stop);
    }
    let hold = claim::take(host, store, id)?;
    let stopped = claim::keep(host, store, id, &hold, claim::RENEWAL, || {
        steps(host, store, id, until, agents)
    });
    // Also after an error the claim is given back: nothing goes on here any more.
    let released = match &stopped {
        Ok(Stop::Waiting { manifest, .. }) => {
            claim::begin_waiting(host, store, id, &hold, *manifest)
        }
        _ => claim::release(host, store, id, &hold),
    };
    let stop = stopped?;
    released?;
    Ok(stop)
}

/// Where a task stops that nobody holds and that waits for a person, who was asked already: looking at
/// it once more records nothing.
fn waits_already(store: &Store, dossier: &Dossier) -> Option<Stop> {
    let task = &dossier.history.task;
    if task.claim.is_some() {
        return None;
    }
    match stage::next_now(store, dossier) {
        Next::AwaitApproval { manifest, version }
            if task.last_stage == Some(Stage::AwaitingApproval) =>
        {
            Some(Stop::Waiting { manifest, version })
        }
        Next::AwaitPatchApproval { run } => Some(Stop::WaitingForPatch { run }),
        Next::Blocked(contradiction) => Some(Stop::Blocked(contradiction)),
        _ => None,
    }
}

/// Hands in a person's own patch and goes on without agents. The task is claimed first, so that a
/// patch that comes while somebody works leaves nothing behind.
pub fn submit(
    host: &Host<'_>,
    store: &Store,
    id: &TaskId,
    person: &Identity<'_>,
    subject: &Subject,
) -> Result<Stop, Error> {
    let hold = claim::take(host, store, id)?;
    let stopped = hand_in(store, id, person, subject)
        .and_then(|()| steps(host, store, id, None, Agents::Refuse));
    let released = claim::release(host, store, id, &hold);
    let stop = stopped?;
    released?;
    Ok(stop)
}

/// Whether the result that is to be graded or delivered next is this very patch.
pub fn is_recorded(dossier: &Dossier, next: &Next, subject: &Subject) -> bool {
    let (Next::Grade { run, .. } | Next::Deliver { run, .. }) = next else {
        return false;
    };
    let run = dossier.runs.iter().find(|held| held.digest() == *run);
    let result = run.and_then(|held| held.value().result.as_ref());
    result.is_some_and(|result| result.patch == subject.patch)
}

fn hand_in(
    store: &Store,
    id: &TaskId,
    person: &Identity<'_>,
    subject: &Subject,
) -> Result<(), Error> {
    let dossier = store.dossier(id)?;
    let next = stage::next_now(store, &dossier);
    if is_recorded(&dossier, &next, subject) {
        return Ok(());
    }
    let Next::Implement { manifest, .. } = next else {
        let moved = dossier.history.task.moved.as_ref();
        let by = moved.map_or_else(String::new, |moved| format!(" ({moved})"));
        return Err(Error::refused(
            format!("the task moved on meanwhile{by}"),
            "see `hangar task show`",
        ));
    };
    if subject.changes().is_empty() {
        return Err(Error::refused(
            "the revision changes nothing compared with the task's base",
            "commit your work, then submit it",
        ));
    }
    let before = stage::completed_runs(&dossier, manifest);
    let same = before.iter().any(|run| {
        let result = run.value().result.as_ref();
        result.is_some_and(|result| result.patch == subject.patch)
    });
    if same {
        return Err(Error::refused(
            "this very patch was handed in before and not accepted",
            "see `hangar task show`; submit another patch",
        ));
    }
    implementer::submit(store, &dossier, person, manifest, subject)?;
    Ok(())
}

fn steps(
    host: &Host<'_>,
    store: &Store,
    id: &TaskId,
    until: Option<Stage>,
    agents: Agents,
) -> Result<Stop, Error> {
    let (mut stopped, mut told) = (None, String::new());
    loop {
        host.check_cancel()?;
        let dossier = store.dossier(id)?;
        let next = stage::next_now(store, &dossier);
        if let (Some(until), Some(stage)) = (until, next.stage())
            && stage > until
        {
            return Ok(Stop::Until(until));
        }
        let needs_agent = matches!(next, Next::Write { .. } | Next::Implement { .. });
        if needs_agent && agents == Agents::Refuse {
            return Ok(Stop::NeedsAgent);
        }
        match step(host, store, &dossier, next.clone()) {
            Ok(Some(stop)) => return Ok(stop),
            Ok(None) => stopped = None,
            // Recorded, and no round: the next lane that can work goes on.
            Err(Error::Stopped(one)) => {
                if pairing::check(host, &dossier, &next).is_ok() {
                    host.note(format!("{}; the next lane goes on", one.what));
                }
                stopped = Some(one);
            }
            Err(error) => {
                let resting = Resting::of(error)?;
                if agents != Agents::Await || !resting.ends() {
                    return Err(resting.error(id, stopped.as_ref()));
                }
                outage::pause(host, &resting, &mut told)?;
            }
        }
    }
}

/// Does what comes next; `None` when there is more to do.
fn step(
    host: &Host<'_>,
    store: &Store,
    dossier: &Dossier,
    next: Next,
) -> Result<Option<Stop>, Error> {
    let task = &dossier.history.task;
    let project = || Project::at_base(store, task);
    match next {
        Next::Nothing => return Ok(Some(Stop::Ended)),
        Next::Enqueue => return Ok(Some(Stop::Draft)),
        Next::AwaitApproval { manifest, version } => {
            return Ok(Some(Stop::Waiting { manifest, version }));
        }
        Next::AwaitPatchApproval { run } => return Ok(Some(Stop::WaitingForPatch { run })),
        Next::Blocked(contradiction) => return Ok(Some(Stop::Blocked(contradiction))),
        Next::Write {
            previous, reasons, ..
        } => {
            let project = project()?;
            let (lane, _) = first_pair(host)?;
            check_room(store, dossier.id())?;
            delivery::preflight(store, task, &project.config.deliver.branch)?;
            announce(host, store, dossier, Stage::Writing, previous.into_iter())?;
            writer::write(
                host,
                store,
                dossier,
                &lane,
                project.plan()?,
                &Cause { previous, reasons },
            )?;
        }
        Next::Implement {
            manifest,
            round,
            feedback,
        } => {
            implement(host, store, dossier, &project()?, manifest, round, feedback)?;
        }
        Next::Grade { manifest, run } => grade(host, store, dossier, manifest, run)?,
        Next::Deliver { run, grade } => {
            if let Some(manifest) = rests_on_unused(dossier, grade) {
                // A person chose a grade that was made before the approvals were used.
                consume(host, store, dossier, manifest)?;
                return Ok(None);
            }
            announce(
                host,
                store,
                dossier,
                Stage::Delivering,
                [run].into_iter().chain(grade),
            )?;
            let branch = project()?.config.deliver.branch;
            let delivered = delivery::deliver(host, store, dossier, run, grade, &branch)?;
            return Ok(Some(Stop::Delivered(delivered)));
        }
        Next::GiveUp { run, grade } => {
            let branch = project()?.config.deliver.branch;
            let delivered = delivery::give_up(host, store, dossier, run, grade, &branch)?;
            return Ok(Some(Stop::GaveUp(delivered)));
        }
        Next::Leaked => {
            let summary =
                "hidden tests got out; the result that holds them is on no branch".to_owned();
            end(host, store, dossier, &Change::Fail { summary })?;
            return Ok(Some(Stop::Leaked));
        }
        Next::RejectTask { rejections } => {
            let count = words::count(rejections, "version", "versions");
            let verb = words::word(rejections, "was", "were");
            let summary = format!("{count} of the hidden tests {verb} rejected");
            end(host, store, dossier, &Change::Reject { summary })?;
            return Ok(Some(Stop::Rejected));
        }
    }
    Ok(None)
}

fn end(host: &Host<'_>, store: &Store, dossier: &Dossier, change: &Change) -> Result<(), Error> {
    let worker = Identity::of(&store.policy, host.worker.signer())?;
    store.change_task(dossier.id(), &worker, |_| Ok(vec![change.clone()]))?;
    Ok(())
}

/// Refuses to write more tests than people keep up with: the policy bounds how many tasks wait.
fn check_room(store: &Store, id: &TaskId) -> Result<(), Error> {
    let most = store.policy.newest().root.acceptance.max_awaiting_approval;
    let others = store.listing()?.into_iter().filter(|refs| refs.id != *id);
    let others: Vec<TaskRefs> = others.collect();
    let waits = |store: &Store, refs: &TaskRefs| {
        let dossier = match store.dossier_from(refs) {
            // Nobody can decide about it, and it keeps no other task from going on.
            Err(error) if error.is_of_documents() => return Ok(false),
            dossier => dossier?,
        };
        let next = stage::next_now(store, &dossier);
        Ok::<_, Error>(matches!(next, Next::AwaitApproval { .. }))
    };
    let all = store.map_all(&others, waits, &mut |_| {})?;
    let waiting = all.into_iter().filter(|waits| *waits).count();
    if waiting < most as usize {
        return Ok(());
    }
    Err(Error::refused(
        format!(
            "{} for an approval, and the policy allows {most} at a time",
            words::count(waiting, "task waits", "tasks wait")
        ),
        "decide about some of them first (`hangar task list`)",
    ))
}

/// Records that a stage begins, once, and the documents that it rests on.
fn announce(
    host: &Host<'_>,
    store: &Store,
    dossier: &Dossier,
    stage: Stage,
    documents: impl Iterator<Item = Digest>,
) -> Result<(), Error> {
    if dossier.history.task.last_stage == Some(stage) {
        return Ok(());
    }
    let worker = Identity::of(&store.policy, host.worker.signer())?;
    let change = Change::Stage {
        stage,
        documents: documents.collect(),
        note: String::new(),
    };
    store.change_task(dossier.id(), &worker, |_| Ok(vec![change.clone()]))?;
    Ok(())
}

fn implement(
    host: &Host<'_>,
    store: &Store,
    dossier: &Dossier,
    project: &Project,
    manifest: Option<Digest>,
    number: u32,
    feedback: Option<Digest>,
) -> Result<(), Error> {
    let lane = implementer_lane(host, dossier, manifest)?;
    let task = &dossier.history.task;
    delivery::preflight(store, task, &project.config.deliver.branch)?;
    let goes_on = manifest.is_none_or(|manifest| is_in_use(dossier, manifest));
    if let Some(manifest) = manifest {
        consume(host, store, dossier, manifest)?;
    }
    // Using up the approvals says that the stage begins.
    if goes_on {
        let rests_on = feedback.into_iter();
        announce(host, store, dossier, Stage::Implementing, rests_on)?;
    }
    let rounds = store.policy.newest().root.acceptance.max_rounds + 1;
    let round = Round {
        lane: &lane,
        number,
        left: rounds.saturating_sub(number),
        manifest,
        feedback,
        plan: project.plan.as_ref(),
        verify: project.config.verify.as_deref(),
    };
    implementer::implement(host, store, dossier, &round)?;
    Ok(())
}

/// Whether approvals of this manifest are in use that a retry did not set aside.
fn is_in_use(dossier: &Dossier, manifest: Digest) -> bool {
    let consumed = dossier.history.task.consumed.as_ref();
    consumed.is_some_and(|(used, approvals)| {
        *used == manifest && !approvals.iter().any(|one| dossier.is_aside(*one))
    })
}

/// The manifest of a grade whose approvals nothing used yet.
fn rests_on_unused(dossier: &Dossier, grade: Option<Digest>) -> Option<Digest> {
    let mut grades = dossier.grades.iter();
    let grade = grades.find(|held| Some(held.digest()) == grade)?;
    let manifest = grade.value().manifest;
    (!is_in_use(dossier, manifest)).then_some(manifest)
}

/// Uses up the approvals of a manifest, with their documents attached.
pub fn consume(
    host: &Host<'_>,
    store: &Store,
    dossier: &Dossier,
    manifest: Digest,
) -> Result<(), Error> {
    if is_in_use(dossier, manifest) {
        return Ok(());
    }
    let seal = dossier
        .seal(manifest)
        .ok_or_else(|| Error::missing("the sealed version is not there", "run the task again"))?;
    let approvals = stage::fit_now(store, dossier, seal);
    let approvals = approvals.map_err(|unfit| unfit.error(dossier, seal))?;
    let attachments: Vec<Vec<u8>> = dossier
        .decisions
        .iter()
        .filter(|held| approvals.contains(&held.digest()))
        .flat_map(|held| {
            [
                held.document.original.bytes().to_vec(),
                held.document.original.signature().to_vec(),
            ]
        })
        .collect();
    let worker = Identity::of(&store.policy, host.worker.signer())?;
    let stage = Change::Stage {
        stage: Stage::Implementing,
        documents: approvals.clone(),
        note: String::new(),
    };
    let consume = Change::Consume {
        manifest,
        approvals,
    };
    store.change_task_with(dossier.id(), &worker, |_| {
        Ok((vec![stage.clone(), consume.clone()], attachments.clone()))
    })?;
    Ok(())
}

fn grade(
    host: &Host<'_>,
    store: &Store,
    dossier: &Dossier,
    manifest: Digest,
    run: Digest,
) -> Result<(), Error> {
    consume(host, store, dossier, manifest)?;
    announce(host, store, dossier, Stage::Verifying, [run].into_iter())?;
    let lost = || {
        Error::missing(
            "a document that the grade needs is not there",
            "run `hangar verify`",
        )
    };
    let seal = dossier.seal(manifest).ok_or_else(lost)?;
    let run = dossier
        .runs
        .iter()
        .find(|held| held.digest() == run)
        .ok_or_else(lost)?;
    let result = run.value().result.as_ref().ok_or_else(lost)?;
    let subject = Subject::new(&store.repo, result.base, result.tree)?;
    if subject.listing.digest() != result.listing
        || subject.base_listing.digest() != result.base_listing
    {
        return Err(Error::refused(
            "the run's result tree is not the one that its document names",
            "run `hangar verify`",
        ));
    }
    let graded = verdict::grade(
        host,
        store,
        dossier,
        seal,
        &subject,
        Author { run: Some(run) },
        false,
    )?;
    let word = if graded.grade.accepted {
        "accepted"
    } else if graded.grade.void {
        "void"
    } else {
        "not accepted"
    };
    let counts = graded.grade.counts;
    // Reasons stand in the clear document too; they name no test, and the paths are the patch's own.
    let mut why = graded.grade.reasons.clone();
    why.extend(graded.grade.protected_touched.iter().cloned());
    let why = if why.is_empty() {
        String::new()
    } else {
        format!(": {}", why.join("; "))
    };
    host.note(format!(
        "grade: {word} ({} of {} passed){why}",
        counts.passed, counts.expected
    ));
    Ok(())
}
