//! Holding a task: one worker at a time, by compare-and-swap on its ref.

use super::Error;
use super::host::Host;
use crate::base::files::{self, Attempt, Lock};
use crate::base::random;
use crate::model::event::Change;
use crate::model::ids::TaskId;
use crate::model::task::{Claim, Stage, State};
use crate::store::Store;
use crate::store::identity::Identity;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// How long a foreign claim is respected after it was seen to change last.
pub const LEASE: Duration = Duration::from_secs(30 * 60);
/// How often a claim is renewed.
pub const RENEWAL: Duration = Duration::from_secs(10 * 60);

/// A claim that this process holds. The local lock goes with the value; the claim stays on the ref
/// until it is released or taken over.
#[derive(Debug)]
pub struct Hold {
    lease: String,
    _lock: Lock,
}

impl Hold {
    /// The lease's name.
    pub fn lease(&self) -> &str {
        &self.lease
    }
}

/// What this clone has seen of a foreign claim, by its own clock.
#[derive(Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct Sighting {
    lease: String,
    event: String,
    at: i64,
}

/// Takes the task for this worker. A claim by the same worker key whose process is gone is taken
/// over at once; a foreign one only when it was seen unchanged for one lease.
pub fn take(host: &Host<'_>, store: &Store, id: &TaskId) -> Result<Hold, Error> {
    let dir = store.repo.hangar_dir().join("claims");
    files::create_private_dir(&dir)?;
    let worker = Identity::of(&store.policy, host.worker.signer())?;
    let Attempt::Taken(lock) = files::try_lock(&dir.join(format!("{id}.lock")))? else {
        return Err(Error::Held {
            holder: worker.principal().clone(),
            since: "this machine, now".into(),
        });
    };
    let lease = random::hex::<16>();
    let mut held = None;
    store.change_task(id, &worker, |history| {
        held = None;
        if let Some(claim) = &history.task.claim
            && claim.key != *worker.key()
            && !has_expired(host, store, &dir, id, claim)
        {
            held = Some(claim.worker.clone());
            return Ok(Vec::new());
        }
        Ok(vec![Change::Claim {
            lease: lease.clone(),
        }])
    })?;
    match held {
        Some(holder) => Err(Error::Held {
            holder,
            since: "it was last seen to change less than 30 minutes ago".into(),
        }),
        None => Ok(Hold { lease, _lock: lock }),
    }
}

/// Whether a foreign claim was seen unchanged for one lease. The first look only notes it.
fn has_expired(
    _host: &Host<'_>,
    store: &Store,
    dir: &std::path::Path,
    id: &TaskId,
    claim: &Claim,
) -> bool {
    let path: PathBuf = dir.join(format!("{id}.seen.json"));
    let now = store.clock.now().as_second();
    let seen: Option<Sighting> = std::fs::read(&path)
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let current = Sighting {
        lease: claim.lease.clone(),
        event: claim.event.to_string(),
        at: now,
    };
    match seen {
        Some(seen) if seen.lease == current.lease && seen.event == current.event => {
            let lease = i64::try_from(LEASE.as_secs()).unwrap_or(i64::MAX);
            now.saturating_sub(seen.at) >= lease
        }
        _ => {
            // A sighting that can't be kept only means that the claim is respected for longer.
            if let Ok(bytes) = serde_json::to_vec(&current) {
                let _ = files::write_atomic(&path, &bytes, 0o600);
            }
            false
        }
    }
}

/// Gives the task back. Nothing happens when the claim is no longer ours.
pub fn release(host: &Host<'_>, store: &Store, id: &TaskId, hold: &Hold) -> Result<(), Error> {
    let worker = Identity::of(&store.policy, host.worker.signer())?;
    store.change_task(id, &worker, |history| {
        let ours = history
            .task
            .claim
            .as_ref()
            .is_some_and(|claim| claim.lease == hold.lease);
        let open = matches!(history.task.state, State::Assigned | State::Working);
        Ok(if ours && open {
            vec![Change::Release {
                lease: hold.lease.clone(),
            }]
        } else {
            Vec::new()
        })
    })?;
    Ok(())
}

/// Says that the claim is alive. Fails where another worker took it.
pub fn renew(host: &Host<'_>, store: &Store, id: &TaskId, hold: &Hold) -> Result<(), Error> {
    let worker = Identity::of(&store.policy, host.worker.signer())?;
    store.change_task(id, &worker, |_| {
        Ok(vec![Change::Renew {
            lease: hold.lease.clone(),
        }])
    })?;
    Ok(())
}

/// Marks that a person is asked now, and gives the task back.
pub fn begin_waiting(
    host: &Host<'_>,
    store: &Store,
    id: &TaskId,
    hold: &Hold,
) -> Result<(), Error> {
    let worker = Identity::of(&store.policy, host.worker.signer())?;
    store.change_task(id, &worker, |history| {
        let ours = history
            .task
            .claim
            .as_ref()
            .is_some_and(|claim| claim.lease == hold.lease);
        if !ours {
            return Ok(Vec::new());
        }
        let stage = Change::Stage {
            stage: Stage::AwaitingApproval,
            documents: Vec::new(),
            note: String::new(),
        };
        Ok(vec![
            stage,
            Change::Release {
                lease: hold.lease.clone(),
            },
        ])
    })?;
    Ok(())
}
