//! Tasks: from the commits of a ref to the folded state.

use super::chain::{self, Folder};
use super::check::{Checked, Doubt, check};
use super::index::keys;
use super::{Error, Store};
use crate::model::digest::Digest;
use crate::model::event::{Change, Event};
use crate::model::ids::{Principal, TaskId};
use crate::model::object_id::ObjectId;
use crate::model::task::{Author, Beside, Folded, GaveWay, Node, Sight, Task, fold};
use std::collections::BTreeMap;

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
    /// Values of fields that were set at the same time and that gave way to this event's.
    pub beside: Vec<Beside>,
    /// To what a change without effect gave way, by its place among the changes.
    pub gave_way: BTreeMap<usize, GaveWay>,
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

/// Fewest characters of an id that name a task.
pub const MIN_PREFIX: usize = 4;

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
        if prefix.len() < MIN_PREFIX {
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
        let read = self.history(id, tip);
        read.map_err(|error| error.at(&self.layout.task(id)))
    }

    fn history(&self, id: &TaskId, tip: ObjectId) -> Result<TaskHistory, Error> {
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
                    let first = events.entry(event.digest());
                    first.or_insert((event, folder.commit));
                }
                Err(doubt) => faults.push(Fault {
                    kind: "event",
                    commit: folder.commit,
                    doubt,
                }),
            }
        }
        let (events, commits): (Vec<_>, Vec<_>) = events.into_values().unzip();
        let folded = folded(id, &events.iter().collect::<Vec<_>>(), &mut |_, _, _| ());
        let task = folded.task.ok_or_else(|| self.no_creation(id, &faults))?;
        let mut events: Vec<_> = events.into_iter().map(Some).collect();
        let ordered = folded.order.iter().zip(folded.outcomes);
        let records = ordered.filter_map(|(at, outcome)| {
            Some(Record {
                event: events[*at].take()?,
                commit: commits[*at],
                refused: outcome.refused,
                beside: outcome.beside,
                gave_way: outcome.gave_way,
            })
        });
        let records = records.collect();
        let waits = |(event, commit): (&Option<_>, _)| event.is_some().then_some(commit);
        let pending = events.iter().zip(commits).filter_map(waits).collect();
        Ok(TaskHistory {
            task,
            records,
            heads: folded.heads,
            faults,
            pending,
            tip,
        })
    }

    /// Why a ref holds no task.
    fn no_creation(&self, id: &TaskId, faults: &[Fault]) -> Error {
        let (place, newest) = (self.layout.task(id), self.policy.newest().reference.version);
        let mut versions = faults.iter().filter_map(|fault| match fault.doubt {
            Doubt::OtherPolicy(version) => Some(version),
            _ => None,
        });
        if let Some(version) = versions.find(|version| *version > newest) {
            return Error::NewerPolicy {
                place,
                version,
                newest,
            };
        }
        let reason = faults.first().map(|fault| fault.doubt.to_string());
        Error::Document {
            place,
            reason: reason.unwrap_or_else(|| "it holds no creation event".into()),
        }
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

    /// Tasks that have this external key, as their documents say: live ones, else archived ones. An
    /// error where none has it and one that may have it can't be read.
    pub fn tasks_by_key(&self, key: &str) -> Result<Vec<TaskHistory>, Error> {
        let folded = key.to_ascii_lowercase();
        if folded.is_empty() {
            return Ok(Vec::new());
        }
        let live = keys::live(self)?;
        let with = |own: Option<&str>| {
            let fits = live.iter().filter(move |(_, key)| key.as_deref() == own);
            fits.map(|(tip, _)| tip.clone()).collect::<Vec<_>>()
        };
        let mut found = self.having_key(with(Some(&folded)), key)?;
        if found.is_empty() {
            let archived = keys::archived(self, &[folded.clone()].into())?.into_iter();
            found = self.having_key(archived.map(|(tip, _)| tip).collect(), key)?;
        }
        if found.is_empty() {
            // One that is damaged may be the one that is meant.
            let damage = |(id, tip): (TaskId, ObjectId)| match self.task_at(&id, tip) {
                Err(error @ Error::Damaged { .. }) => Err(error),
                _ => Ok(()),
            };
            with(None).into_iter().try_for_each(damage)?;
        }
        Ok(found)
    }

    fn having_key(
        &self,
        tips: Vec<(TaskId, ObjectId)>,
        key: &str,
    ) -> Result<Vec<TaskHistory>, Error> {
        let mut found = Vec::new();
        let mut trouble = None;
        for (id, tip) in tips {
            match self.task_at(&id, tip) {
                Ok(history) if history.task.external.eq_ignore_ascii_case(key) => {
                    found.push(history);
                }
                Ok(_) => {}
                Err(error) if error.is_of_documents() => drop(trouble.get_or_insert(error)),
                Err(error) => return Err(error),
            }
        }
        match trouble {
            Some(error) if found.is_empty() => Err(error),
            _ => Ok(found),
        }
    }

    /// The one task that `name` means: a full id, a unique prefix of at least four characters, or
    /// the external key of a live task, or else of an archived one.
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
            found = self.tasks_by_key(name)?;
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

/// Folds the history anew. `watch` sees the states on the way, with the
/// place of the record.
pub fn refold(history: &TaskHistory, watch: &mut dyn FnMut(usize, Sight, &Task)) {
    let events: Vec<_> = history.records.iter().map(|record| &record.event).collect();
    folded(&history.task.id, &events, watch);
}

fn folded(
    id: &TaskId,
    events: &[&Checked<Event>],
    watch: &mut dyn FnMut(usize, Sight, &Task),
) -> Folded {
    let nodes: Vec<_> = events.iter().copied().map(node).collect();
    fold(
        id,
        &nodes,
        &|index, change, requester| barred(events[index], change, requester),
        watch,
    )
}

fn node(event: &Checked<Event>) -> Node<'_> {
    let value = event.value();
    Node {
        parents: &value.parents,
        creates: value.task.is_none(),
        author: Author {
            principal: &value.signer.principal,
            key: &value.signer.key,
            at: &value.signer.at,
            event: event.digest(),
        },
        changes: &value.change,
    }
}

/// Why the signer had no right to the change.
fn barred(event: &Checked<Event>, change: &Change, requester: &Principal) -> Option<String> {
    // It keeps its place in the order: what rests on it is not lost with it.
    // A task that such a key made stays readable; it is named as not believed.
    let creates = matches!(change, Change::Create { .. });
    if let Some(doubt) = event.reduced.as_ref().filter(|_| !creates) {
        return Some(doubt.to_string());
    }
    let allowed = event.may(change.act(), requester);
    allowed.err().map(|doubt| doubt.to_string())
}
