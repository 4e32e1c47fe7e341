//! `hangar task list`

use crate::app::{Error, Here};
use crate::flow::stage;
use crate::model::ids::{Principal, TaskId};
use crate::model::task::{Flow, Stage, State, Task};
use crate::store::Store;
use crate::store::identity::holder;
use crate::store::tasks::TaskHistory;
use schemars::JsonSchema;
use serde::Serialize;

/// Which tasks are wanted. Every filter that is set must fit.
#[derive(Debug, Default)]
pub struct Filter {
    /// In one of these states; empty is every state but the ended ones, unless `all`.
    pub states: Vec<State>,
    /// In one of these stages; empty is every stage.
    pub stages: Vec<Stage>,
    /// Ended tasks too.
    pub all: bool,
    /// Asked for, or held, by the caller.
    pub mine: bool,
    /// With all of these tags.
    pub tags: Vec<String>,
    /// With this text in title, mandate, key or id, whatever the case.
    pub text: Option<String>,
}

/// The listing.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TaskList {
    /// Tasks: first by priority, then by age.
    pub tasks: Vec<TaskLine>,
    /// Refs whose task can't be read, each with the reason. Never hidden.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub faults: Vec<ListFault>,
}

/// A task that can't be read.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ListFault {
    /// Its id.
    pub id: TaskId,
    /// Why.
    pub reason: String,
}

/// One task of a listing.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TaskLine {
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
    /// Acceptance.
    pub flow: Flow,
    /// 1 (first) to 9 (last).
    pub priority: u8,
    /// Capabilities that a worker must have.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub tags: Vec<String>,
    /// Who asked.
    pub requester: Principal,
    /// Who holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<Principal>,
    /// Claimed time of creation.
    pub created: String,
}

/// Lists the tasks of the repository.
pub fn list(here: &Here, filter: &Filter) -> Result<TaskList, Error> {
    let store = here.store()?;
    let me = if filter.mine {
        Some(caller(here, &store)?)
    } else {
        None
    };
    let mut tasks = Vec::new();
    let mut faults = Vec::new();
    for (id, tip) in store.task_refs()? {
        match store.task_at(&id, tip) {
            Ok(history) if fits(&history.task, filter, me.as_ref()) => {
                let line = line(here, &store, history)?;
                let stages = &filter.stages;
                if stages.is_empty() || line.stage.is_some_and(|stage| stages.contains(&stage)) {
                    tasks.push(line);
                }
            }
            Ok(_) => {}
            Err(error @ crate::store::Error::Document { .. }) => faults.push(ListFault {
                id,
                reason: error.to_string(),
            }),
            Err(error) => return Err(error.into()),
        }
    }
    tasks.sort_by(|a, b| (a.priority, &a.created, &a.id).cmp(&(b.priority, &b.created, &b.id)));
    Ok(TaskList { tasks, faults })
}

/// The caller's name under the policy in force. No signature is needed to look.
fn caller(here: &Here, store: &Store) -> Result<Principal, Error> {
    let found = here.keys(Some(&store.repo))?;
    let candidate =
        crate::app::here::choose(&found, store).ok_or_else(|| crate::app::here::no_key(&found))?;
    let (actor, _) = holder(store.policy.newest(), &candidate.public)?;
    Ok(actor.person().clone())
}

fn fits(task: &Task, filter: &Filter, me: Option<&Principal>) -> bool {
    let state = if filter.states.is_empty() {
        task.state != State::Deleted && (filter.all || !task.state.is_terminal())
    } else {
        filter.states.contains(&task.state)
    };
    let mine = me.is_none_or(|me| {
        task.requester == *me || task.claim.as_ref().is_some_and(|claim| claim.worker == *me)
    });
    let tags = filter.tags.iter().all(|tag| task.tags.contains(tag));
    let text = filter.text.as_ref().is_none_or(|text| {
        let text = text.to_lowercase();
        let parts = [
            &task.title,
            &task.mandate,
            &task.external,
            &task.id.to_string(),
        ];
        parts.iter().any(|part| part.to_lowercase().contains(&text))
    });
    state && mine && tags && text
}

fn line(here: &Here, store: &Store, history: TaskHistory) -> Result<TaskLine, Error> {
    // Only a task that is worked on has a stage, which its other documents tell.
    let waits = matches!(history.task.state, State::Assigned | State::Working);
    let (stage, task) = if waits {
        let dossier = store.dossier_of(history)?;
        let settings = &store.policy.newest().root.acceptance;
        let next = stage::next(&dossier, settings, here.clock.now());
        (next.stage(), dossier.history.task)
    } else {
        (None, history.task)
    };
    Ok(TaskLine {
        id: task.id,
        key: Some(task.external).filter(|key| !key.is_empty()),
        title: task.title,
        state: task.state,
        stage,
        flow: task.flow,
        priority: task.priority,
        tags: task.tags,
        requester: task.requester,
        worker: task.claim.map(|claim| claim.worker),
        created: task.created,
    })
}
