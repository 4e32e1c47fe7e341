//! Changes that a sync found to have no effect: what is said of them, and what several of them come to.

use super::report::NotApplied;
use crate::model::digest::Digest;
use crate::model::ids::{Principal, TaskId};
use crate::model::object_id::ObjectId;
use crate::store::tasks::{Record, TaskHistory};
use crate::store::{Error, Store};
use std::collections::{BTreeMap, BTreeSet};

/// Finds changes without effect that had not been without it here before. `known` is where the events
/// were then.
pub(super) fn find(
    store: &Store,
    task: &TaskId,
    history: &TaskHistory,
    known: Option<ObjectId>,
    found: &mut Vec<NotApplied>,
) -> Result<(), Error> {
    let without_effect = |history: &TaskHistory| -> BTreeSet<(Digest, usize)> {
        let mut found = BTreeSet::new();
        for record in &history.records {
            let refused = record.refused.iter().enumerate();
            let refused = refused.filter(|(_, why)| why.is_some());
            found.extend(refused.map(|(at, _)| (record.event.digest(), at)));
        }
        found
    };
    let now = without_effect(history);
    if now.is_empty() {
        return Ok(());
    }
    // Something that was done here may be outweighed by what came.
    let before = match known {
        Some(head) => without_effect(&store.task_at(task, head)?),
        None => BTreeSet::new(),
    };
    let mut lost = Lost::default();
    for record in &history.records {
        let event = record.event.digest();
        for (at, why) in record.refused.iter().enumerate() {
            let Some(why) = why.as_ref().filter(|_| !before.contains(&(event, at))) else {
                continue;
            };
            match record.gave_way.get(&at) {
                // What stands rests on it: nobody lost anything.
                Some(gave_way) if gave_way.follows => {}
                Some(gave_way) => lost.note(gave_way.to, record, at, why),
                None => found.push(NotApplied::Refused {
                    task: task.clone(),
                    event,
                    why: why.clone(),
                    adoptable: adoptable(record),
                }),
            }
        }
    }
    lost.tell(task, history, found);
    Ok(())
}

fn adoptable(record: &Record) -> bool {
    let doubt = record.event.reduced.as_ref();
    doubt.is_some_and(|doubt| doubt.adoptable().is_some())
}

/// What one side did that gave way to one move of another, in the order of its events.
struct Side<'a> {
    /// The last event, and why the last change has no effect.
    event: Digest,
    why: &'a str,
    what: Vec<&'static str>,
}

/// Lost races: by the move that stands and who gave way to it.
#[derive(Default)]
struct Lost<'a>(BTreeMap<(Digest, &'a Principal), Side<'a>>);

impl<'a> Lost<'a> {
    fn note(&mut self, to: Digest, record: &'a Record, at: usize, why: &'a str) {
        let event = record.event.value();
        let key = (to, &event.signer.principal);
        let side = self.0.entry(key).or_insert_with(|| Side {
            event: record.event.digest(),
            why,
            what: Vec::new(),
        });
        (side.event, side.why) = (record.event.digest(), why);
        let what = event.change[at].noun();
        if !side.what.contains(&what) {
            side.what.push(what);
        }
    }

    /// One line for each side that lost, which names the move that stands.
    fn tell(self, task: &TaskId, history: &TaskHistory, found: &mut Vec<NotApplied>) {
        for ((to, loser), side) in self.0 {
            let mut records = history.records.iter();
            let winner = records.find(|record| record.event.digest() == to);
            let stands = winner.and_then(|record| {
                let event = record.event.value();
                let moves = event.change.iter().find(|change| change.power() > 0)?;
                Some((moves.noun(), &event.signer.principal))
            });
            let why = match (side.what.split_last(), stands) {
                (Some((last, rest)), Some((what, by))) if !rest.is_empty() => format!(
                    "{what} by {by} was recorded at the same time and stands (event {}); {} and {last} by {loser} give way (event {})",
                    to.short(),
                    rest.join(", "),
                    side.event.short()
                ),
                _ => side.why.to_owned(),
            };
            found.push(NotApplied::Refused {
                task: task.clone(),
                event: side.event,
                why,
                adoptable: false,
            });
        }
    }
}
