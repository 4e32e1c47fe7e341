//! Sync: the same refs here and on a Git remote, without losing anything on either side.
//!
//! One round lists the remote's refs, fetches those that differ into `refs/hangar-remote/NAME/…`,
//! moves the local refs forward (never back; two heads are joined) and pushes what the remote lacks,
//! each ref only if it is still where it was seen. A lost race begins a new round. What a remote
//! deleted or rolled back is reported and pushed again, never obeyed.
//!
//! Cost: one listing of the remote's refs where nothing changed; else work in proportion to the refs
//! that differ. Must not know stages of the flow.

mod archives;
pub mod plan;
mod pull;
mod push;
mod report;

pub use plan::Loss;
use push::Pushed;
pub(super) use push::is_race;
pub use report::{NotApplied, Report};

use super::layout::{BRANCH_PREFIX, DEFAULT_PREFIX};
use super::{Error, Store, pins, policy};
use crate::base::random;
use crate::git::{Expected, Repository};
use crate::model::digest::Digest;
use std::time::Duration;

/// Rounds before a lost race is given up. Each lost one is somebody else's progress, so it takes about
/// as many as there are clones that sync at one time.
const ROUNDS: u32 = 64;

/// Rounds after which a remote on which nothing moves is taken to refuse.
const UNMOVED: u32 = 3;

/// What to sync with.
#[derive(Debug, Clone)]
pub struct Wanted<'a> {
    /// Name or address of the remote.
    pub remote: &'a str,
    /// How long one call of the remote may take.
    pub timeout: Duration,
    /// Whether to push; else only take what the remote has.
    pub push: bool,
}

/// Brings both sides to the same state.
pub fn sync(store: Store, wanted: &Wanted<'_>) -> Result<(Store, Report), Error> {
    let mut report = Report::new(wanted.remote);
    let mut store = store;
    let mut last = None;
    let mut unmoved = 0;
    for round in 0..ROUNDS {
        let there = pull::list(&store, wanted)?;
        store = pull::pull(&store, wanted, &there, &mut report)?;
        if !wanted.push {
            return Ok((store, report));
        }
        let Pushed::Race(why) = push::push(&store, wanted, &there, &mut report)? else {
            return Ok((store, report));
        };
        // Refused as if somebody had been faster, and nothing moves there: it is refused for good.
        unmoved = if last.as_ref() == Some(&there) {
            unmoved + 1
        } else {
            0
        };
        if unmoved >= UNMOVED {
            report.not_pushed = Some(why);
            return Ok((store, report));
        }
        last = Some(there);
        pause(round);
    }
    Err(Error::LostRace(format!("the remote `{}`", wanted.remote)))
}

/// Takes what the remote has, and says nothing about it.
pub(super) fn take_from(store: &Store, wanted: &Wanted<'_>) -> Result<(), Error> {
    let there = pull::list(store, wanted)?;
    pull::pull(store, wanted, &there, &mut Report::new(wanted.remote)).map(drop)
}

/// Puts a policy that this clone has seen and lost back in place, where the remote has it. Whether it
/// has. What the pin does not fit stays out.
pub fn restore_policy(repo: &Repository, wanted: &Wanted<'_>) -> Result<bool, Error> {
    let names = [DEFAULT_PREFIX, BRANCH_PREFIX].map(|prefix| format!("{prefix}policy"));
    let patterns = [names[0].as_str(), names[1].as_str()];
    let mut found = repo.list_remote(wanted.remote, &patterns, wanted.timeout)?;
    found.retain(|(name, _)| names.contains(name));
    let (name, head) = match found.as_slice() {
        [] => return Ok(false),
        [one] => one.clone(),
        _ => return Err(Error::TwoPrefixes),
    };
    let spec = format!("+{name}:{}policy", tracking(wanted.remote));
    repo.fetch(wanted.remote, &[&spec], wanted.timeout)?;
    let repo = repo.reopen()?;
    let offered = policy::load_at(&repo, head)?;
    pins::check(&repo, &offered)?;
    repo.update_ref(&name, Expected::Absent, Some(head), "sync")?;
    Ok(true)
}

/// Where this clone keeps what the remote last showed: `refs/hangar-remote/NAME/`. An address, which
/// is no ref name, stands as its digest.
pub fn tracking(remote: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if !remote.is_empty() && remote.len() <= 64 && remote.bytes().all(plain) {
        return format!("refs/hangar-remote/{remote}/");
    }
    let digest = Digest::of(remote.as_bytes()).hex();
    format!("refs/hangar-remote/url-{}/", &digest[..16])
}

/// A random pause that grows, so that clones that met do not meet again.
fn pause(round: u32) {
    let [low, high] = random::bytes::<2>();
    let most = 50_u64 << round.min(6);
    let millis = u64::from(u16::from_le_bytes([low, high])) % most;
    std::thread::sleep(Duration::from_millis(millis));
}
