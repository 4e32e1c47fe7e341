//! Tasks: from the commits of a ref to the folded state.

use super::chain::{self, Folder};
use super::check::{Checked, Doubt, check};
use super::{Error, Store};
use crate::model::authority::{Act, may};
use crate::model::digest::Digest;
use crate::model::event::{Change, Event};
use crate::model::ids::TaskId;
use crate::model::object_id::ObjectId;
use crate::model::task::{Author, Task};
use std::collections::{BTreeMap, BTreeSet};

/// A document that is not believed, and where it lies. Always reported, never skipped in silence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What it calls itself: `event`, `manifest`, …
    pub kind: &'static str,
    /// The commit that holds it.
    pub commit: ObjectId,
    /// Why it is not believed.
    pub doubt: Doubt,
}

/// One event with what came of it.
#[derive(Debug, Clone)]
pub struct Record {
    /// The event.
    pub event: Checked<Event>,
    /// The commit that holds it.
    pub commit: ObjectId,
    /// Why a change of it had no effect, in the order of the changes; `None` where it had.
    pub refused: Vec<Option<String>>,
}

/// A task, its events in order and what was wrong.
#[derive(Debug)]
pub struct TaskHistory {
    /// Folded state.
    pub task: Task,
    /// Events in causal order; concurrent ones by (depth, digest).
    pub records: Vec<Record>,
    /// Events that no other event has seen yet, sorted.
    pub heads: Vec<Digest>,
    /// Documents that are not believed.
    pub faults: Vec<Fault>,
    /// Commits with events that rest on others that are not here. They are in no order yet.
    pub pending: Vec<ObjectId>,
    /// Where the ref is.
    pub tip: ObjectId,
}

impl Store {
    /// Every live task's id and ref target.
    pub fn task_refs(&self) -> Result<Vec<(TaskId, ObjectId)>, Error> {
        let refs = self.repo.list_refs(&self.layout.tasks())?;
        Ok(refs
            .into_iter()
            .filter_map(|(name, tip)| Some((self.layout.task_of(&name)?, tip)))
            .collect())
    }

    /// The same with those in the archive.
    pub fn all_task_refs(&self) -> Result<Vec<(TaskId, ObjectId)>, Error> {
        let mut all = self.task_refs()?;
        all.extend(self.archived_tasks("")?);
        all.sort_unstable();
        Ok(all)
    }

    /// Live and archived tasks whose id begins with `prefix`, which has at least four characters,
    /// else none.
    pub fn tasks_by_prefix(&self, prefix: &str) -> Result<Vec<(TaskId, ObjectId)>, Error> {
        let prefix = prefix.to_ascii_lowercase();
        if prefix.len() < 4 {
            return Ok(Vec::new());
        }
        let mut found = self.task_refs()?;
        found.retain(|(id, _)| id.as_str().starts_with(&prefix));
        found.extend(self.archived_tasks(&prefix)?);
        Ok(found)
    }

    /// Reads, checks and folds one task.
    pub fn task(&self, id: &TaskId) -> Result<TaskHistory, Error> {
        let tip = self.head(&self.layout.task(id))?;
        self.task_at(id, tip.ok_or_else(|| Error::NoTask(id.to_string()))?)
    }

    /// The same for a ref target that is known.
    pub fn task_at(&self, id: &TaskId, tip: ObjectId) -> Result<TaskHistory, Error> {
        let mut faults = Vec::new();
        let mut events = BTreeMap::new();
        for folder in chain::read(&self.repo, tip)? {
            match self.read_event(id, &folder)? {
                Ok(event) => {
                    if let Some(doubt) = event
                        .reduced
                        .clone()
                        .filter(|_| event.value().task.is_none())
                    {
                        faults.push(Fault {
                            kind: "event",
                            commit: folder.commit,
                            doubt,
                        });
                    }
                    events.insert(event.digest(), (event, folder.commit));
                }
                Err(doubt) => faults.push(Fault {
                    kind: "event",
                    commit: folder.commit,
                    doubt,
                }),
            }
        }
        let order = causal_order(&events);
        let seen: BTreeSet<Digest> = order
            .iter()
            .flat_map(|digest| events[digest].0.value().parents.clone())
            .collect();
        let heads = order
            .iter()
            .filter(|digest| !seen.contains(digest))
            .copied()
            .collect::<BTreeSet<_>>();
        let mut ordered = Vec::with_capacity(order.len());
        for digest in order {
            ordered.extend(events.remove(&digest));
        }
        let pending = events.into_values().map(|(_, commit)| commit).collect();
        let (task, records) = fold(id, ordered).ok_or_else(|| Error::Document {
            place: self.layout.task(id),
            reason: faults
                .first()
                .map_or("it holds no creation event".into(), |fault| {
                    fault.doubt.to_string()
                }),
        })?;
        Ok(TaskHistory {
            task,
            records,
            heads: heads.into_iter().collect(),
            faults,
            pending,
            tip,
        })
    }

    fn read_event(
        &self,
        id: &TaskId,
        folder: &Folder,
    ) -> Result<Result<Checked<Event>, Doubt>, Error> {
        let Some((bytes, signature)) = folder.document(&self.repo, "event")? else {
            return Ok(Err(Doubt::Bytes("the commit holds no event.toml".into())));
        };
        let event = match check::<Event>(&self.policy, bytes, signature, Some(id)) {
            Ok(event) => event,
            Err(doubt) => return Ok(Err(doubt)),
        };
        // A creation event names no task; its own digest is the name.
        let creates = event.value().task.is_none();
        if creates && TaskId::of_creation(event.original.bytes()) != *id {
            return Ok(Err(Doubt::OtherTask));
        }
        Ok(Ok(event))
    }

    /// The one task that `name` means: a full id, a unique prefix of at least four characters, or
    /// the external key of a live task.
    pub fn find_task(&self, name: &str) -> Result<TaskHistory, Error> {
        let name = name.trim();
        if let Ok(id) = name.parse::<TaskId>() {
            return self.task(&id);
        }
        let mut found = Vec::new();
        for (id, tip) in self.tasks_by_prefix(name)? {
            found.push(self.task_at(&id, tip)?);
        }
        if found.is_empty() {
            for (id, tip) in self.task_refs()? {
                let history = self.task_at(&id, tip)?;
                if !history.task.external.is_empty()
                    && history.task.external.eq_ignore_ascii_case(name)
                {
                    found.push(history);
                }
            }
        }
        if found.len() > 1 {
            let candidates = found
                .iter()
                .map(|one| (one.task.id.clone(), one.task.title.clone()))
                .collect();
            return Err(Error::Ambiguous {
                prefix: name.to_owned(),
                candidates,
            });
        }
        found.pop().ok_or_else(|| Error::NoTask(name.to_owned()))
    }
}

/// Digests in causal order. An event whose ancestors are missing waits and is left out.
fn causal_order(events: &BTreeMap<Digest, (Checked<Event>, ObjectId)>) -> Vec<Digest> {
    let mut missing: BTreeMap<Digest, BTreeSet<Digest>> = BTreeMap::new();
    let mut children: BTreeMap<Digest, Vec<Digest>> = BTreeMap::new();
    for (digest, (event, _)) in events {
        let parents: BTreeSet<Digest> = event.value().parents.iter().copied().collect();
        for parent in &parents {
            children.entry(*parent).or_default().push(*digest);
        }
        missing.insert(*digest, parents);
    }
    let mut depth: BTreeMap<Digest, usize> = BTreeMap::new();
    let mut ready: Vec<Digest> = missing
        .iter()
        .filter(|(_, parents)| parents.is_empty())
        .map(|(digest, _)| *digest)
        .collect();
    while let Some(digest) = ready.pop() {
        let own = depth.get(&digest).copied().unwrap_or_default();
        depth.insert(digest, own);
        for child in children.get(&digest).into_iter().flatten() {
            let deepest = depth.entry(*child).or_default();
            *deepest = (*deepest).max(own + 1);
            let open = missing.get_mut(child).expect("every child is an event");
            open.remove(&digest);
            if open.is_empty() {
                ready.push(*child);
            }
        }
    }
    let complete = depth
        .into_iter()
        .filter(|(digest, _)| missing[digest].is_empty());
    let mut order: Vec<_> = complete.map(|(digest, depth)| (depth, digest)).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, digest)| digest).collect()
}

fn fold(id: &TaskId, events: Vec<(Checked<Event>, ObjectId)>) -> Option<(Task, Vec<Record>)> {
    let mut task: Option<Task> = None;
    let mut records = Vec::with_capacity(events.len());
    for (event, commit) in events {
        let refused = event
            .value()
            .change
            .iter()
            .map(|change| step(&mut task, id, &event, change).err())
            .collect();
        records.push(Record {
            event,
            commit,
            refused,
        });
    }
    task.map(|task| (task, records))
}

/// Applies one change if its signer had the right to it.
fn step(
    task: &mut Option<Task>,
    id: &TaskId,
    event: &Checked<Event>,
    change: &Change,
) -> Result<(), String> {
    let value = event.value();
    let author = Author {
        principal: &value.signer.principal,
        key: &value.signer.key,
        at: &value.signer.at,
        event: event.digest(),
    };
    let creates = matches!(change, Change::Create { .. });
    let requester = match (&task, change) {
        (Some(task), _) => task.requester.clone(),
        (None, Change::Create { requester, .. }) => requester.clone(),
        (None, _) => return Err("the task does not exist yet".into()),
    };
    if creates != value.task.is_none() {
        return Err("creation must be the first event and only there".into());
    }
    // It keeps its place in the order: what rests on it is not lost with it.
    // A task that such a key made stays readable; it is named as not believed.
    if let Some(doubt) = event.reduced.as_ref().filter(|_| !creates) {
        return Err(doubt.to_string());
    }
    if !may(&event.actor, change.act(), &requester) {
        let act: Act = change.act();
        return Err(format!("{} has no right to {act:?}", event.actor.name()));
    }
    match task {
        None => {
            *task = Some(
                Task::create(id.clone(), change, author).map_err(|refusal| refusal.to_string())?,
            );
        }
        Some(task) => task
            .apply(change, author)
            .map_err(|refusal| refusal.to_string())?,
    }
    Ok(())
}
