//! `hangar task edit`

use super::draft::numbered;
use super::new::{base, tags};
use crate::app::{Error, Here};
use crate::flow::stage;
use crate::model::event::{Change, Criterion};
use crate::model::ids::TaskId;
use crate::model::task::Task;
use crate::store::Store;
use crate::store::identity::Identity;
use crate::trust::AskPassphrase;
use schemars::JsonSchema;
use serde::Serialize;

/// New values; what is `None` stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edits {
    /// One line.
    pub title: Option<String>,
    /// Markdown.
    pub mandate: Option<String>,
    /// The whole new list.
    pub criteria: Option<Vec<String>>,
    /// 1 to 9.
    pub priority: Option<u8>,
    /// The whole new list.
    pub tags: Option<Vec<String>>,
    /// Another base revision.
    pub base: Option<String>,
}

impl Edits {
    /// Whether nothing is to be changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What was changed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Edited {
    /// Which task.
    pub id: TaskId,
    /// Fields that got another value; empty when all had it already.
    pub changed: Vec<String>,
    /// The sealed version that was written for the text before, so that it does not count now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale: Option<StaleView>,
    /// The sealed version that counts again, since the text is back that it was written for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restored: Option<u32>,
}

/// A sealed version that was written for another text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StaleView {
    /// Number.
    pub version: u32,
    /// Whether somebody approved it.
    pub approved: bool,
    /// What helps.
    pub remedy: String,
}

/// Gives fields of a task new values. Fields that have the value already are left out; what the
/// task's state locks is refused.
pub fn edit(
    here: &Here,
    task: &str,
    edits: &Edits,
    ask: &mut AskPassphrase<'_>,
) -> Result<Edited, Error> {
    let store = here.store()?;
    let id = store.find_task(task)?.task.id;
    let new_base = match &edits.base {
        None => None,
        Some(revision) => {
            let (commit, _) = base(&store.repo, Some(revision))?;
            here.config_at(&store.repo, commit)?
                .ok_or_else(|| Error::NoConfigAtBase {
                    base: revision.clone(),
                })?;
            Some(commit)
        }
    };
    let new_tags = edits.tags.as_deref().map(tags).transpose()?;
    let signer = here.signer(&store, ask)?;
    let identity = Identity::of(&store.policy, &signer)?;
    let before = stale(&store, &id)?;
    let mut changed = Vec::new();
    store.change_task(&id, &identity, |history| {
        let task = &history.task;
        let mut old_tags = task.tags.clone();
        old_tags.sort();
        let change = Change::Edit {
            title: differs(edits.title.as_ref(), &task.title),
            mandate: differs(edits.mandate.as_ref(), &task.mandate),
            criteria: edits
                .criteria
                .as_ref()
                .map(|texts| renumbered(task, texts))
                .filter(|new| *new != task.criteria),
            priority: differs(edits.priority.as_ref(), &task.priority),
            tags: differs(new_tags.as_ref(), &old_tags),
            base: differs(new_base.as_ref(), &task.base),
        };
        changed = change.fields();
        Ok(if changed.is_empty() {
            Vec::new()
        } else {
            vec![change]
        })
    })?;
    let now = stale(&store, &id)?;
    let differs = now != before;
    Ok(Edited {
        changed: changed.into_iter().map(str::to_owned).collect(),
        restored: before.filter(|_| now.is_none()).map(|one| one.version),
        stale: now.filter(|_| differs),
        id,
    })
}

/// The newest sealed version, where it was written for another text than the task has.
fn stale(store: &Store, id: &TaskId) -> Result<Option<StaleView>, Error> {
    let dossier = store.dossier(id)?;
    let seal = stage::edited_since(&dossier);
    Ok(seal.map(|seal| {
        let version = seal.value().version;
        StaleView {
            version,
            approved: stage::was_approved(&dossier, seal),
            remedy: stage::after_edit(id.short(), version),
        }
    }))
}

fn differs<T: Clone + PartialEq>(new: Option<&T>, old: &T) -> Option<T> {
    new.filter(|new| *new != old).cloned()
}

/// The new list. A criterion whose text stays keeps its id; a new one gets an id that the task has
/// not, so that one id never means two things in one version.
fn renumbered(task: &Task, texts: &[String]) -> Vec<Criterion> {
    let mut used: Vec<_> = task
        .criteria
        .iter()
        .map(|criterion| criterion.id.clone())
        .collect();
    let mut out: Vec<Criterion> = Vec::with_capacity(texts.len());
    let free = numbered(&vec![String::new(); texts.len() + task.criteria.len()]);
    for text in texts.iter().map(|text| text.trim()) {
        let kept = task
            .criteria
            .iter()
            .find(|old| old.text == text && !out.iter().any(|new| new.id == old.id));
        let id = if let Some(old) = kept {
            old.id.clone()
        } else {
            let unused = free.iter().find(|one| !used.contains(&one.id));
            let unused = unused.expect("there are as many ids as old and new criteria together");
            used.push(unused.id.clone());
            unused.id.clone()
        };
        out.push(Criterion {
            id,
            text: text.to_owned(),
        });
    }
    out
}

/// What an editor shows of a task.
pub fn current(here: &Here, task: &str) -> Result<super::draft::Draft, Error> {
    let task = here.store()?.find_task(task)?.task;
    Ok(super::draft::Draft {
        title: task.title,
        mandate: task.mandate,
        criteria: task.criteria.into_iter().map(|one| one.text).collect(),
        ..super::draft::Draft::default()
    })
}
