//! What a listing shows of one task: a row, made from its documents or taken from the index.
//!
//! Must not know filters, order or limits.

use super::list::{ListFault, RefFault, TaskLine};
use crate::app::Error;
use crate::flow::stage;
use crate::model::ids::{Principal, TaskId};
use crate::model::task::{Flow, Stage, State};
use crate::store::dossier::Dossier;
use crate::store::index::{self, Holds, Row, Source};
use crate::store::scan::TaskRefs;
use crate::store::tasks::TaskHistory;
use crate::store::{self, Store};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What a row says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Listed {
    /// A task.
    Task(Box<Dated>),
    /// One that can't be read.
    Fault(ListFault),
}

/// A task with the claimed time of the newest event that had an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dated {
    /// What is shown.
    pub(super) line: TaskLine,
    /// When it changed last.
    pub(super) updated: String,
}

/// What the index keeps: without names, since ten thousand of them are read at once. A change of it
/// needs another `FORMAT` there.
#[derive(Serialize, Deserialize)]
enum Kept {
    Task(Fields),
    Fault(ListFault),
}

/// Identity: id, key, title. Standing: state, stage. Then flow, priority and tags; requester and worker;
/// when it was made and when it changed. At the end why its creation does not count.
type Fields = (
    (TaskId, Option<String>, String),
    (State, Option<Stage>),
    (Flow, u8, Vec<String>),
    (Principal, Option<Principal>),
    (String, String),
    Option<String>,
);

impl Serialize for Listed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let kept = match self.clone() {
            Self::Fault(fault) => Kept::Fault(fault),
            Self::Task(dated) => {
                let Dated { line, updated } = *dated;
                Kept::Task((
                    (line.id, line.key, line.title),
                    (line.state, line.stage),
                    (line.flow, line.priority, line.tags),
                    (line.requester, line.worker),
                    (line.created, updated),
                    line.doubt,
                ))
            }
        };
        kept.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Listed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = match Kept::deserialize(deserializer)? {
            Kept::Fault(fault) => return Ok(Self::Fault(fault)),
            Kept::Task(fields) => fields,
        };
        let ((id, key, title), (state, stage), (flow, priority, tags), who, times, doubt) = fields;
        let (created, updated) = times;
        let (requester, worker) = who;
        let line = TaskLine {
            id,
            key,
            title,
            state,
            stage,
            flow,
            priority,
            tags,
            requester,
            worker,
            created,
            doubt,
        };
        Ok(Self::Task(Box::new(Dated { line, updated })))
    }
}

/// A row for every task, by id, and why the index was not used or kept.
pub(super) fn rows(
    store: &Store,
    text: bool,
    tick: &mut dyn FnMut(usize, usize),
) -> Result<index::Rows<Listed>, Error> {
    let refs = store.listing()?;
    index::rows(store, &refs, Source { text, make, tick })
}

/// A row for every archived task, and archives that can't be read. They do not change, and the index does
/// not know them.
pub(super) fn archived(
    store: &Store,
    tick: &mut dyn FnMut(usize, usize),
) -> Result<(Vec<Row<Listed>>, Vec<RefFault>), Error> {
    let found = store.archived_listing()?;
    let of = found.tasks.len();
    let rows = store.map_all(&found.tasks, make, &mut |done| tick(done, of))?;
    let fault = |(name, error): (String, store::Error)| RefFault {
        name,
        reason: error.to_string(),
    };
    Ok((rows, found.damaged.into_iter().map(fault).collect()))
}

fn make(store: &Store, refs: &TaskRefs) -> Result<Row<Listed>, Error> {
    let read = store.task_at(&refs.id, refs.tip);
    match read.and_then(|history| of(store, history, refs)) {
        Err(error) if error.is_of_documents() => Ok(Row {
            value: Listed::Fault(ListFault {
                id: refs.id.clone(),
                reason: error.to_string(),
            }),
            text: String::new(),
            holds: match error {
                // The same refs may be whole again.
                store::Error::Damaged { .. } => Holds::never(),
                _ => Holds::default(),
            },
        }),
        row => Ok(row?),
    }
}

fn of(store: &Store, history: TaskHistory, refs: &TaskRefs) -> Result<Row<Listed>, store::Error> {
    let effective = |refused: &[Option<String>]| refused.iter().any(Option::is_none);
    let newest = history
        .records
        .iter()
        .rfind(|record| effective(&record.refused));
    let updated = newest.map_or_else(
        || history.task.created.clone(),
        |record| record.event.value().signer.at.clone(),
    );
    let creation = history.records.first();
    let doubt = creation.and_then(|record| record.event.reduced.as_ref());
    let doubt = doubt.map(ToString::to_string);
    // Only a task that is worked on has a stage, which its other documents tell.
    let waits = matches!(history.task.state, State::Assigned | State::Working);
    let (stage, holds, task) = if waits {
        let dossier = store.dossier_at(history, refs)?;
        let now = store.clock.now();
        let settings = &store.policy.newest().root.acceptance;
        let next = stage::next(&dossier, settings, now);
        let holds = Holds::around(now, ends(&dossier));
        (next.stage(), holds, dossier.history.task)
    } else {
        (None, Holds::default(), history.task)
    };
    let mut text = task.mandate;
    for criterion in &task.criteria {
        text.push('\n');
        text.push_str(&criterion.text);
    }
    let line = TaskLine {
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
        doubt,
    };
    Ok(Row {
        value: Listed::Task(Box::new(Dated { line, updated })),
        text,
        holds,
    })
}

/// When approvals of the task expire: the only way in which time alone changes its stage.
fn ends(dossier: &Dossier) -> impl Iterator<Item = jiff::Timestamp> {
    let decisions = dossier.decisions.iter();
    decisions.filter_map(|held| stage::end(held.value()))
}
