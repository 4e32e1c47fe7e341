//! `hangar task list`

use super::row::{self, Dated, Listed};
use crate::app::{Error, Here};
use crate::model::ids::{Principal, TaskId};
use crate::model::task::{Flow, Stage, State};
use crate::store::Store;
use crate::store::identity::holder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::str::FromStr;

/// Which tasks are wanted. Every filter that is set must fit.
#[derive(Debug, Default)]
pub struct Filter {
    /// In one of these states or stages; empty is every state but the ended ones, unless `all`.
    pub states: Vec<Standing>,
    /// In one of these stages; empty is every stage.
    pub stages: Vec<Stage>,
    /// Ended tasks too.
    pub all: bool,
    /// Archived tasks too; of the states, all are wanted then.
    pub archived: bool,
    /// Asked for by the caller, or held by a machine of theirs.
    pub mine: bool,
    /// With all of these tags.
    pub tags: Vec<String>,
    /// With this text in title, mandate, criteria, key or id, whatever the case.
    pub text: Option<String>,
    /// In which order.
    pub sort: Sort,
    /// At most so many.
    pub limit: Option<usize>,
}

/// Where a task stands: in its life, or in the work on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Where it is in its life.
    State(State),
    /// Where the work on it is.
    Stage(Stage),
}

impl FromStr for Standing {
    type Err = <State as FromStr>::Err;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        word.parse()
            .map(Self::Stage)
            .or_else(|_: <Stage as FromStr>::Err| word.parse().map(Self::State))
    }
}

/// The order of a listing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sort {
    /// First by priority, then by age.
    #[default]
    Priority,
    /// The newest first.
    Newest,
    /// The oldest first.
    Oldest,
    /// The one that changed last first.
    Updated,
    /// By state in the order of a life, then by stage, priority and age.
    State,
    /// By title, whatever the case.
    Title,
}

/// The listing.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TaskList {
    /// Tasks: first by priority, then by age, unless another order was asked for.
    pub tasks: Vec<TaskLine>,
    /// How many more fit the filter, beyond the limit that was asked for.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub more: usize,
    /// Refs whose task can't be read, each with the reason. Never hidden.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub faults: Vec<ListFault>,
    /// Archives that can't be read, each with the reason: their tasks are missing here.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub damaged: Vec<RefFault>,
    /// Why the index was not used, or not kept.
    #[serde(skip)]
    pub trouble: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
const fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// A task that can't be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListFault {
    /// Its id.
    pub id: TaskId,
    /// Why.
    pub reason: String,
}

/// A ref that can't be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RefFault {
    /// Its name.
    #[serde(rename = "ref")]
    pub name: String,
    /// Why.
    pub reason: String,
}

/// One task of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
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
    /// Why its creation does not count: the key that signed it lost rights since, or the policy version
    /// that it names does not stand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
}

/// Lists the tasks of the repository. `tick` hears how many were read, of how many that the index does
/// not know.
pub fn list(
    here: &Here,
    filter: &Filter,
    tick: &mut dyn FnMut(usize, usize),
) -> Result<TaskList, Error> {
    let store = here.store()?;
    let mine = if filter.mine {
        Some(names_of_caller(here, &store)?)
    } else {
        None
    };
    let mut all = row::rows(&store, filter.text.is_some(), tick)?;
    let mut damaged = Vec::new();
    if filter.archived {
        let archived = row::archived(&store, tick)?;
        all.rows.extend(archived.0);
        damaged = archived.1;
    }
    let mut tasks = Vec::new();
    let mut faults = Vec::new();
    for row in all.rows {
        match row.value {
            Listed::Fault(fault) => faults.push(fault),
            Listed::Task(task) if fits(&task.line, &row.text, filter, mine.as_ref()) => {
                tasks.push(task);
            }
            Listed::Task(_) => {}
        }
    }
    tasks.sort_by(|a, b| {
        order(filter.sort, a, b)
            .then_with(|| by_priority(&a.line, &b.line))
            .then_with(|| a.line.id.cmp(&b.line.id))
    });
    let count = tasks.len();
    tasks.truncate(filter.limit.unwrap_or(usize::MAX));
    Ok(TaskList {
        more: count - tasks.len(),
        tasks: tasks.into_iter().map(|task| task.line).collect(),
        faults,
        damaged,
        trouble: all.trouble,
    })
}

/// The caller's name under the policy in force, and those of their machines. No signature is needed to
/// look.
fn names_of_caller(here: &Here, store: &Store) -> Result<BTreeSet<Principal>, Error> {
    let found = here.keys(Some(&store.repo))?;
    let candidate =
        crate::app::here::choose(&found, store).ok_or_else(|| crate::app::here::no_key(&found))?;
    let newest = store.policy.newest();
    let (actor, _) = holder(newest, &candidate.public)?;
    let me = actor.person().clone();
    let machines = newest.members.machine.iter();
    let own = machines.filter(|machine| machine.owner == me);
    let mut names: BTreeSet<Principal> = own.map(|machine| machine.name.clone()).collect();
    names.insert(me);
    Ok(names)
}

fn fits(task: &TaskLine, body: &str, filter: &Filter, mine: Option<&BTreeSet<Principal>>) -> bool {
    let is = |standing: &Standing| match standing {
        Standing::State(state) => task.state == *state,
        Standing::Stage(stage) => task.stage == Some(*stage),
    };
    let standing = if filter.states.is_empty() {
        task.state != State::Deleted && (filter.all || filter.archived || !task.state.is_terminal())
    } else {
        filter.states.iter().any(is)
    };
    let stages = &filter.stages;
    let stage = stages.is_empty() || task.stage.is_some_and(|stage| stages.contains(&stage));
    let mine = mine.is_none_or(|names| {
        names.contains(&task.requester)
            || task
                .worker
                .as_ref()
                .is_some_and(|worker| names.contains(worker))
    });
    let tags = filter.tags.iter().all(|tag| task.tags.contains(tag));
    let text = filter.text.as_ref().is_none_or(|text| {
        let text = text.to_lowercase();
        let key = task.key.as_deref().unwrap_or_default();
        let parts = [&task.title, key, task.id.as_str(), body];
        parts.iter().any(|part| part.to_lowercase().contains(&text))
    });
    standing && stage && mine && tags && text
}

fn order(sort: Sort, a: &Dated, b: &Dated) -> Ordering {
    let (one, two) = (&a.line, &b.line);
    match sort {
        Sort::Priority => Ordering::Equal,
        Sort::Newest => two.created.cmp(&one.created),
        Sort::Oldest => one.created.cmp(&two.created),
        Sort::Updated => b.updated.cmp(&a.updated),
        Sort::State => (one.state as u8, one.stage).cmp(&(two.state as u8, two.stage)),
        Sort::Title => one.title.to_lowercase().cmp(&two.title.to_lowercase()),
    }
}

fn by_priority(a: &TaskLine, b: &TaskLine) -> Ordering {
    (a.priority, &a.created).cmp(&(b.priority, &b.created))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mine_is_what_i_asked_for_or_what_my_machine_holds() {
        let name = |name: &str| name.parse::<Principal>().unwrap();
        let line = |requester: &str, worker: Option<&str>| TaskLine {
            id: TaskId::of_creation(b"x"),
            key: None,
            title: "T".into(),
            state: State::Assigned,
            stage: None,
            flow: Flow::Plain,
            priority: 5,
            tags: Vec::new(),
            requester: name(requester),
            worker: worker.map(name),
            created: String::new(),
            doubt: None,
        };
        let mine = BTreeSet::from([name("alice"), name("alice-worker")]);
        for (line, expected) in [
            (line("alice", None), true),
            (line("bob", Some("alice-worker")), true),
            (line("bob", Some("bob-worker")), false),
            (line("bob", None), false),
        ] {
            assert_eq!(fits(&line, "", &Filter::default(), Some(&mine)), expected);
            assert!(fits(&line, "", &Filter::default(), None));
        }
    }
}
