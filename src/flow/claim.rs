//! Holding a task: one worker at a time, by compare-and-swap on its ref.
//!
//! While a drive lives, a thread of its own renews the claim ([`keep`]); every document that a
//! drive writes goes through [`append`], which looks at the claim once more. So a worker that slept
//! for longer than a lease stops instead of writing beside the one that took over.

use super::Error;
use super::host::Host;
use crate::base::clock::Clock;
use crate::base::files::{self, Attempt, Lock};
use crate::base::random;
use crate::git::Repository;
use crate::model::digest::Digest;
use crate::model::event::Change;
use crate::model::ids::{Fingerprint, TaskId};
use crate::model::task::{Claim, Refusal, Stage, State, Task};
use crate::sandbox::Cancel;
use crate::store::chain::Content;
use crate::store::check::Document;
use crate::store::identity::Identity;
use crate::store::write::Written;
use crate::store::{self, Store};
use crate::trust::Signer;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

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

    /// Whether the task is still held by it.
    fn stands(&self, task: &Task) -> bool {
        let claim = task.claim.as_ref();
        claim.is_some_and(|claim| claim.lease == self.lease)
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

/// What a process says that it holds.
#[derive(Debug, Clone)]
pub struct Holding {
    task: TaskId,
    lease: String,
}

/// Takes the task for this worker. A claim by the same worker key whose process is gone is taken
/// over at once; a foreign one only when it was seen unchanged for one lease.
pub fn take(host: &Host<'_>, store: &Store, id: &TaskId) -> Result<Hold, Error> {
    let dir = store.repo.hangar_dir().join("claims");
    files::create_private_dir(&dir)?;
    // Beside the key, not in the clone: all clones on this machine claim with one key.
    let locks = host.data.join("claims");
    files::create_private_dir(&locks)?;
    let worker = Identity::of(&store.policy, host.worker.signer())?;
    let Attempt::Taken(lock) = files::try_lock_patiently(&locks.join(format!("{id}.lock")))? else {
        return Err(Error::Held {
            holder: worker.principal().clone(),
            remedy: "it is being worked on in another process on this machine; wait for that, or stop it".into(),
        });
    };
    let lease = random::hex::<16>();
    let claim = || {
        let mut held = None;
        store.change_task(id, &worker, |history| {
            held = None;
            if let Some(claim) = &history.task.claim
                && claim.key != *worker.key()
                && !has_expired(store, &dir, id, claim)
            {
                held = Some(claim.worker.clone());
                return Ok(Vec::new());
            }
            Ok(vec![Change::Claim {
                lease: lease.clone(),
            }])
        })?;
        Ok::<_, Error>(held)
    };
    let mut held = claim()?;
    // What is known here may be old: the task may have been given back or delivered since.
    if held.is_some() && store.ask_arbiter()? {
        held = claim()?;
    }
    if let Some(holder) = held {
        return Err(Error::Held {
            holder,
            remedy: "it is taken over when its claim was seen unchanged for 30 minutes: run it again then".into(),
        });
    }
    *host.holding.borrow_mut() = Some(Holding {
        task: id.clone(),
        lease: lease.clone(),
    });
    Ok(Hold { lease, _lock: lock })
}

/// Whether a foreign claim was seen unchanged for one lease. The first look only notes it.
fn has_expired(store: &Store, dir: &Path, id: &TaskId, claim: &Claim) -> bool {
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
        // A look from the future was a wrong clock: it starts anew.
        Some(seen)
            if seen.lease == current.lease && seen.event == current.event && seen.at <= now =>
        {
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
    host.holding.borrow_mut().take();
    let worker = Identity::of(&store.policy, host.worker.signer())?;
    store.change_task(id, &worker, |history| {
        let ours = hold.stands(&history.task);
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

/// Says that the claim is alive. Fails where another worker took it, or a person ended the task.
pub fn renew(store: &Store, signer: &Signer, id: &TaskId, lease: &str) -> Result<(), Error> {
    let worker = Identity::of(&store.policy, signer)?;
    store.change_task(id, &worker, |_| {
        Ok(vec![Change::Renew {
            lease: lease.to_owned(),
        }])
    })?;
    Ok(())
}

/// Appends a document that a drive made, if the task is still ours. A command that holds no task
/// (such as `hangar grade`) appends as it is.
pub fn append<T: Document + Serialize>(
    host: &Host<'_>,
    store: &Store,
    reference: &str,
    identity: &Identity<'_>,
    document: &T,
    more: Vec<(String, Content)>,
    note: &str,
) -> Result<Written, Error> {
    confirm(host, store)?;
    Ok(store.append_document(reference, identity, document, more, note)?)
}

/// Fails where the task that this process works on is not claimed by it any more.
pub fn confirm(host: &Host<'_>, store: &Store) -> Result<(), Error> {
    let Some(held) = host.holding.borrow().clone() else {
        return Ok(());
    };
    let task = store.task(&held.task)?.task;
    let ours = host.worker.public().fingerprint();
    match why_lost(&task, &ours, &held.lease) {
        None => Ok(()),
        Some(why) => Err(Error::Lost { why }),
    }
}

/// Why a task is not held under this lease of the worker key `ours`; `None` where it is.
fn why_lost(task: &Task, ours: &Fingerprint, lease: &str) -> Option<String> {
    match &task.claim {
        Some(claim) if claim.lease == *lease => None,
        Some(claim) if claim.key == *ours => {
            Some("another process with the same key took it over".into())
        }
        Some(claim) => Some(format!("{} took it over", claim.worker)),
        None => Some(match &task.moved {
            Some(moved) => format!("it is {} now, since {moved}", task.state),
            None => format!("it is {} now", task.state),
        }),
    }
}

/// What the renewing thread needs; nothing of it is shared with the thread that works.
struct Keeper<'a> {
    /// Git's common folder: the thread opens a repository of its own.
    dir: PathBuf,
    clock: Clock,
    signer: &'a Signer,
    id: &'a TaskId,
    lease: &'a str,
    cancel: &'a Cancel,
    every: Duration,
}

/// Ends the renewing thread, also when the work panics.
#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    wake: Condvar,
}

struct RingOnDrop<'a>(&'a Bell);

impl Drop for RingOnDrop<'_> {
    fn drop(&mut self) {
        *self.0.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.wake.notify_all();
    }
}

impl Bell {
    /// Waits for `time`, or until it is rung; says whether it was.
    fn wait(&self, time: Duration) -> bool {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .wake
            .wait_timeout_while(rung, time, |rung| !*rung)
            .unwrap_or_else(PoisonError::into_inner);
        *waited.0
    }
}

/// Does `work` while the claim is renewed `every` so often ([`RENEWAL`]). Where the claim is lost,
/// the work is interrupted, and the error says why.
pub fn keep<T>(
    host: &Host<'_>,
    store: &Store,
    id: &TaskId,
    hold: &Hold,
    every: Duration,
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    let bell = Bell::default();
    let keeper = Keeper {
        dir: store.repo.common_dir().to_owned(),
        clock: store.clock,
        signer: host.worker.signer(),
        id,
        lease: &hold.lease,
        cancel: &host.cancel,
        every,
    };
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| keeper.run(&bell));
        let result = {
            let _ring = RingOnDrop(&bell);
            work()
        };
        let lost = thread.join().unwrap_or_default();
        match (result, lost) {
            (Err(Error::Interrupted), Some(why)) => Err(Error::Lost { why }),
            (result, _) => result,
        }
    })
}

impl Keeper<'_> {
    /// Renews until the bell rings. Returns why the claim was lost, having stopped the work.
    fn run(&self, bell: &Bell) -> Option<String> {
        let mut renewed = Instant::now();
        let mut pause = self.every;
        while !bell.wait(pause) {
            match self.renew() {
                Ok(None) => {
                    renewed = Instant::now();
                    pause = self.every;
                }
                Ok(Some(why)) => {
                    self.cancel.set();
                    return Some(why);
                }
                // A full disk or a busy ref may pass; a whole lease without a renewal may not.
                Err(error) if renewed.elapsed() >= LEASE => {
                    self.cancel.set();
                    return Some(format!("its claim could not be renewed: {error}"));
                }
                Err(_) => pause = self.every / 20,
            }
        }
        None
    }

    /// Renews once; the inner text says why the claim is gone for good.
    fn renew(&self) -> Result<Option<String>, Error> {
        let repo = Repository::discover(&self.dir)?;
        let store = Store::open(repo, self.clock)?;
        match renew(&store, self.signer, self.id, self.lease) {
            Ok(()) => Ok(None),
            Err(Error::Store(store::Error::Refused(
                Refusal::Lease(_) | Refusal::Held(..) | Refusal::State { .. },
            ))) => {
                let task = store.task(self.id)?.task;
                let ours = self.signer.public().fingerprint();
                let why = why_lost(&task, &ours, self.lease);
                Ok(Some(why.unwrap_or_else(|| {
                    "its claim could not be renewed".into()
                })))
            }
            Err(error) => Err(error),
        }
    }
}

/// Marks that a person is asked now about a manifest, and gives the task back.
pub fn begin_waiting(
    host: &Host<'_>,
    store: &Store,
    id: &TaskId,
    hold: &Hold,
    manifest: Digest,
) -> Result<(), Error> {
    host.holding.borrow_mut().take();
    let worker = Identity::of(&store.policy, host.worker.signer())?;
    store.change_task(id, &worker, |history| {
        let ours = hold.stands(&history.task);
        if !ours {
            return Ok(Vec::new());
        }
        let stage = Change::Stage {
            stage: Stage::AwaitingApproval,
            documents: vec![manifest],
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
