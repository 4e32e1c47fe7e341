//! What people do with a task apart from its text: enqueue, cancel, retry, delete, comment.

use crate::app::{Error, Here};
use crate::flow::{self, stage};
use crate::model::event::Change;
use crate::model::ids::TaskId;
use crate::model::task::{Flow, Stage, State};
use crate::store::Store;
use crate::store::dossier::Dossier;
use crate::store::identity::Identity;
use crate::store::tasks::TaskHistory;
use crate::trust::AskPassphrase;
use schemars::JsonSchema;
use serde::Serialize;

/// Longest comment in bytes.
const MAX_COMMENT: usize = 256 << 10;

/// A task after something was done with it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Acted {
    /// Which task.
    pub id: TaskId,
    /// Where it is in its life now.
    pub state: State,
    /// Where a retried task goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<Stage>,
}

/// Puts a draft into the queue.
pub fn enqueue(here: &Here, task: &str, ask: &mut AskPassphrase<'_>) -> Result<Acted, Error> {
    act(here, task, ask, |_, _| Ok(Change::Enqueue))
}

/// Stops a task.
pub fn cancel(
    here: &Here,
    task: &str,
    reason: &str,
    ask: &mut AskPassphrase<'_>,
) -> Result<Acted, Error> {
    let reason = reason.trim().to_owned();
    act(here, task, ask, move |_, _| {
        Ok(Change::Cancel {
            reason: reason.clone(),
        })
    })
}

/// Deletes a draft.
pub fn delete(here: &Here, task: &str, ask: &mut AskPassphrase<'_>) -> Result<Acted, Error> {
    act(here, task, ask, |_, _| Ok(Change::Delete))
}

/// Writes a comment.
pub fn comment(
    here: &Here,
    task: &str,
    text: &str,
    ask: &mut AskPassphrase<'_>,
) -> Result<Acted, Error> {
    let text = text.trim().to_owned();
    if text.is_empty() || text.len() > MAX_COMMENT {
        return Err(Error::invalid(format!(
            "a comment has 1 to {MAX_COMMENT} bytes"
        )));
    }
    act(here, task, ask, move |_, _| {
        Ok(Change::Comment { text: text.clone() })
    })
}

/// Queues a failed or rejected task again. What was made at `from` or after it no longer counts;
/// without `from` the task goes on where it ended.
pub fn retry(
    here: &Here,
    task: &str,
    from: Option<Stage>,
    ask: &mut AskPassphrase<'_>,
) -> Result<Acted, Error> {
    let store = here.store()?;
    let history = store.find_task(task)?;
    if let Some(stage) = from {
        has_stage(&history, stage)?;
    }
    has_ended(&history)?;
    if let Some(stage) = from {
        let dossier = store.dossier_of(history)?;
        are_hidden(&dossier, stage)?;
        can_deliver(&store, &dossier, stage)?;
    }
    let mut chosen = None;
    let mut acted = act(here, task, ask, |store, history| {
        let dossier = store.dossier(&history.task.id)?;
        let settings = &store.policy.newest().root.acceptance;
        let (stage, set_aside) = match from {
            Some(stage) => (stage, stage::set_aside(&dossier, stage)),
            None => stage::resumption(&dossier, settings, store.clock.now()),
        };
        chosen = Some(stage);
        Ok(Change::Retry {
            from: stage,
            set_aside,
        })
    })?;
    acted.stage = chosen;
    Ok(acted)
}

/// Refuses a task that needs no retry, and says what goes on with it.
fn has_ended(history: &TaskHistory) -> Result<(), Error> {
    let (state, id) = (history.task.state, history.task.id.short());
    let remedy = match state {
        State::Failed | State::Rejected => return Ok(()),
        State::Draft | State::Queued | State::Assigned | State::Working => {
            format!("`hangar run {id}` goes on with it")
        }
        State::Done | State::Deleted => "more work is a new task: `hangar task new`".to_owned(),
    };
    let what = format!("only a failed or rejected task is retried; this one is {state}");
    Err(flow::Error::refused(what, remedy).into())
}

/// Refuses a stage that the task's flow does not have.
fn has_stage(history: &TaskHistory, stage: Stage) -> Result<(), Error> {
    let plain = matches!(stage, Stage::Implementing | Stage::Delivering);
    if history.task.flow == Flow::TestFirst || plain {
        return Ok(());
    }
    Err(flow::Error::refused(
        format!("a plain task has no stage `{stage}`: it has no hidden tests"),
        "its stages are `implementing` and `delivering`",
    )
    .into())
}

/// Refuses a stage that uses tests which got out.
fn are_hidden(dossier: &Dossier, stage: Stage) -> Result<(), Error> {
    let mut standing = dossier.seals.iter().rev();
    // One that was set aside before is used by nothing any more.
    let last = standing.find(|seal| !dossier.is_aside(seal.digest()));
    let uses = last.is_some_and(|seal| {
        let aside = stage::set_aside(dossier, stage).contains(&seal.digest());
        !aside && stage::is_leaked(dossier, seal.digest())
    });
    if !uses {
        return Ok(());
    }
    Err(flow::Error::refused(
        "the hidden tests of the newest version got out",
        "retry without --from: then new ones are written",
    )
    .into())
}

/// Refuses to go on with a delivery where there is nothing to deliver: the next run would end the task again,
/// and until then no other stage can be chosen.
fn can_deliver(store: &Store, dossier: &Dossier, stage: Stage) -> Result<(), Error> {
    let settings = &store.policy.newest().root.acceptance;
    let goes_on = stage::resumption(dossier, settings, store.clock.now()).0;
    if stage != Stage::Delivering || goes_on == Stage::Delivering {
        return Ok(());
    }
    let id = dossier.id().short();
    Err(flow::Error::refused(
        "there is no accepted result to deliver",
        format!(
            "`hangar task retry {id}` goes on where it can, and `--from implementing` with another patch"
        ),
    )
    .into())
}

fn act(
    here: &Here,
    task: &str,
    ask: &mut AskPassphrase<'_>,
    mut decide: impl FnMut(&Store, &TaskHistory) -> Result<Change, crate::store::Error>,
) -> Result<Acted, Error> {
    let store = here.store()?;
    let id = store.find_task(task)?.task.id;
    let signer = here.signer(&store, ask)?;
    let identity = Identity::of(&store.policy, &signer)?;
    store.change_task(&id, &identity, |history| Ok(vec![decide(&store, history)?]))?;
    let state = store.task(&id)?.task.state;
    Ok(Acted {
        id,
        state,
        stage: None,
    })
}
