//! `hangar task archive`, and the same by itself once a day in a sync.

use crate::app::{Error, Here};
use crate::base::files;
use crate::flow;
use crate::model::ids::TaskId;
use crate::store::Store;
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

/// When a sync looks for ended tasks again.
const EVERY: SignedDuration = SignedDuration::from_hours(24);
/// In hangar's folder: when it last did.
const STAMP: &str = "archived";

/// Tasks that went to the archive.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Archived {
    /// Their ids.
    pub archived: Vec<TaskId>,
}

/// Archives these tasks, which must have ended; without any, those that ended as long ago as the
/// policy says.
pub fn archive(here: &Here, tasks: &[String]) -> Result<Archived, Error> {
    let store = here.store()?;
    // What has ended while rivals are undecided may be open under the one that will stand.
    store.policy.decided()?;
    let mut wanted = Vec::new();
    for name in tasks {
        let task = store.find_task(name)?.task;
        if !task.state.is_terminal() {
            return Err(flow::Error::refused(
                format!(
                    "task {} is {}: only ended tasks are archived",
                    task.id.short(),
                    task.state
                ),
                format!("end it first: `hangar task cancel {}`", task.id.short()),
            )
            .into());
        }
        wanted.push(task.id);
    }
    if tasks.is_empty() {
        wanted = store.due(here.clock.now())?;
    }
    store.archive(&wanted)?;
    Ok(Archived { archived: wanted })
}

/// Archives what is due, at most once a day: looking costs a read of every live task.
pub fn daily(here: &Here, store: &Store) -> Result<(), Error> {
    if !store.policy.rivals().is_empty() {
        return Ok(());
    }
    let stamp = store.repo.hangar_dir().join(STAMP);
    let now = here.clock.now();
    let last = std::fs::read_to_string(&stamp);
    let last: Option<Timestamp> = last.ok().and_then(|text| text.trim().parse().ok());
    if last.is_some_and(|last| now.duration_since(last).abs() < EVERY) {
        return Ok(());
    }
    store.archive(&store.due(now)?)?;
    // Without it, the next sync looks again.
    let _ = files::write_atomic(&stamp, format!("{now}\n").as_bytes(), 0o600);
    Ok(())
}
