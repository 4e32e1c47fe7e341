//! Sync: the same refs here and on a Git remote, without losing anything on either side.
//!
//! One round lists the remote's refs, fetches those that differ into `refs/hangar-remote/NAME/…`,
//! moves the local refs forward (never back; two heads are joined) and pushes what the remote lacks,
//! each ref only if it is still where it was seen. A lost race begins a new round. What a remote
//! deleted or rolled back is reported and pushed again, never obeyed. So is what somebody put in place of
//! a ref, where it holds nothing that could be lost.
//!
//! Cost: one listing of the remote's refs where nothing changed; else work in proportion to the refs
//! that differ. Must not know stages of the flow.

mod archives;
mod moving;
pub mod plan;
mod pull;
mod push;
mod refused;
mod report;
mod take;
mod there;

pub use plan::Loss;
use push::Pushed;
pub(super) use push::is_race;
pub use report::{Absent, NotApplied, NotPushed, Report};
use there::There;
pub use there::{Offer, offered};

use super::layout::{Layout, Prefix};
use super::{Error, Store, pins, proposal, remotes};
use crate::base::random;
use crate::git::{self, Expected, Repository, shown_remote};
use crate::model::digest::Digest;
use std::time::{Duration, Instant};

/// Rounds before a lost race is given up, and how long it is tried at least where time allows: among
/// many writers somebody has to be last.
const ROUNDS: u32 = 64;
const PERSISTENCE: Duration = Duration::from_secs(120);

/// Rounds after which a remote on which nothing moves is taken to refuse.
const UNMOVED: u32 = 3;

/// How long a remote may take to say what it has.
const ANSWER: Duration = Duration::from_secs(60);

/// What to sync with.
#[derive(Debug, Clone)]
pub struct Wanted<'a> {
    /// Name or address of the remote.
    pub remote: &'a str,
    /// How long one transfer may take.
    pub timeout: Duration,
    /// Whether to push; else only take what the remote has.
    pub push: bool,
    /// Below which prefix the remote shall keep its refs, whatever it does now.
    pub prefix: Option<Prefix>,
}

impl Wanted<'_> {
    /// How long the remote may take to say what it has.
    fn patience(&self) -> Duration {
        self.timeout.min(ANSWER)
    }
}

/// Brings both sides to the same state.
pub fn sync(store: Store, wanted: &Wanted<'_>) -> Result<(Store, Report), Error> {
    let (store, mut report) = rounds(store, wanted)?;
    report.part(&store)?;
    Ok((store, report))
}

fn rounds(store: Store, wanted: &Wanted<'_>) -> Result<(Store, Report), Error> {
    let mut report = Report::new(wanted.remote);
    let mut store = store;
    let mut last = None;
    let mut unmoved = 0;
    let end = Instant::now() + wanted.timeout.min(PERSISTENCE);
    for round in 0.. {
        if round >= ROUNDS && Instant::now() >= end {
            break;
        }
        let (new, there) = take(&store, wanted, &mut report)?;
        store = new;
        report.prefix = Some(there.prefix);
        report.other = there.other;
        report.was_empty |= round == 0 && there.refs.is_empty();
        remotes::note_prefix(&store.repo, wanted.remote, there.prefix);
        if !wanted.push {
            return Ok((store, report));
        }
        if proposal::complete(&store)? {
            store = Store::open(store.repo.reopen()?, store.clock)?;
        }
        let mut pushed = push::push(&store, wanted, &there, &mut report)?;
        // Refs that it refuses below the old prefix may be welcome below the new one.
        let refused = report.not_pushed.take_if(|not| {
            let moves = wanted.prefix.is_some_and(|to| to != there.prefix);
            moves && not.trouble.is_none()
        });
        if let (Pushed::All, Some(to), None) = (&pushed, wanted.prefix, &report.not_pushed) {
            let mut unpublished = report.unpublished.iter();
            pushed = match unpublished.find(|name| refused.is_none() || report.leaves(name)) {
                // What stands in its place would stay, and both places would count for a while.
                Some(name) => {
                    let why = report.why_barred(name);
                    report.not_moved = (there.prefix != to).then_some(why);
                    pushed
                }
                None => moving::move_there(&store, wanted, to, &mut report)?,
            };
        }
        if refused.is_some() {
            let moved = report.prefix == wanted.prefix;
            if moved && matches!(pushed, Pushed::All) {
                // What the old place had not taken is pushed to the new one.
                continue;
            }
            report.not_pushed = report.not_pushed.or(refused);
        }
        let Pushed::Race(why) = pushed else {
            pack(&store, &report);
            return Ok((store, report));
        };
        // Refused as if somebody had been faster, and nothing moves there: it is refused for good.
        unmoved = if last.as_ref() == Some(&there) {
            unmoved + 1
        } else {
            0
        };
        if unmoved >= UNMOVED {
            report.not_pushed = Some(NotPushed::refused(why));
            return Ok((store, report));
        }
        last = Some(there);
        pause(round);
    }
    Err(Error::LostRace(format!(
        "the remote `{}`",
        shown_remote(wanted.remote)
    )))
}

/// Tries of taking what the remote has, where other processes of this clone do the same.
const TRIES: u32 = 8;

/// Takes what the remote has, as it was listed. Where another sync of this clone was faster, or the remote has
/// gone on meanwhile, it is listed anew: that says nothing about what lies there. A ref that stays locked
/// is left in the end, and keeps no other back but where it is the policy.
fn take(store: &Store, wanted: &Wanted<'_>, report: &mut Report) -> Result<(Store, There), Error> {
    for round in 0.. {
        report.leaves_locked = round >= TRIES;
        let there = there::list(store, wanted)?;
        match pull::pull(store, wanted, &there, report) {
            Err(error) if is_overtaken(&error) && round < TRIES => pause(round),
            taken => return Ok((taken?, there)),
        }
    }
    Err(Error::LostRace(shown_remote(wanted.remote)))
}

/// Whether another process did something at the same time: trying again is safe.
const fn is_overtaken(error: &Error) -> bool {
    matches!(
        error,
        Error::LostRace(_) | Error::Git(git::Error::Conflict { .. } | git::Error::Busy { .. })
    )
}

/// From so many changed refs on they are packed.
const MANY: usize = 1000;

/// Thousands of refs that were made one by one are slow to read, and nothing else of ours packs them.
fn pack(store: &Store, report: &Report) {
    if report.fetched.len() + report.pushed.len() >= MANY {
        // Only slower without.
        let _ = store.repo.pack_refs();
    }
}

/// Takes what the remote has. Whoever writes has no room to say what that is: it is kept for them.
pub(super) fn take_from(store: &Store, wanted: &Wanted<'_>) -> Result<(), Error> {
    let mut report = Report::new(wanted.remote);
    let (_, there) = take(store, wanted, &mut report)?;
    report.part(store)?;
    store.brought.note(report);
    remotes::note_prefix(&store.repo, wanted.remote, there.prefix);
    Ok(())
}

/// Puts a policy that this clone has seen and lost back in place, where the remote has it. Whether it
/// has. What the pin does not fit stays out.
pub fn restore_policy(repo: &Repository, wanted: &Wanted<'_>) -> Result<bool, Error> {
    let Some(offer) = offered(repo, wanted, pins::pinned(repo)?)? else {
        return Ok(false);
    };
    let repo = repo.reopen()?;
    pins::check(&repo, &offer.policy)?;
    let name = Layout::of(&repo)?.policy();
    repo.update_ref(&name, Expected::Absent, Some(offer.head), "sync")?;
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
