//! How long to wait for a lock of refs.
//!
//! A lock that somebody left is never free, so waiting must end. Many writers at one ref are something
//! else: on a slow disk the last of twenty waits long while all get on. So what counts is the time in
//! which no writer ended its change.

use super::repository::Repository;
use crate::base::random;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// Longest wait in which nobody gets on.
const STANDSTILL: Duration = Duration::from_secs(5);
/// Longest wait in all.
const LONGEST: Duration = Duration::from_secs(60);
/// First and longest pause between two tries.
const PAUSES: [Duration; 2] = [Duration::from_micros(500), Duration::from_millis(32)];

/// The waiting of one writer. It begins with the first try that failed: that one may have looked for
/// some seconds after what a killed process left.
#[derive(Default)]
pub(super) struct Patience {
    waiting: Option<Waiting>,
}

struct Waiting {
    since: Instant,
    /// When somebody got on, as far as seen here.
    moved: Instant,
    /// The time of the last change that somebody ended.
    last_change: Option<SystemTime>,
    pause: Duration,
}

impl Patience {
    /// Waits a moment, of a random length that grows from one to the next; false when it was long
    /// enough.
    pub(super) fn wait(&mut self, repository: &Repository) -> bool {
        let now = Instant::now();
        let last_change = last_change(repository);
        let waiting = self.waiting.get_or_insert(Waiting {
            since: now,
            moved: now,
            last_change,
            pause: PAUSES[0],
        });
        if waiting.last_change != last_change {
            waiting.last_change = last_change;
            waiting.moved = now;
        }
        if now - waiting.moved >= STANDSTILL || now - waiting.since >= LONGEST {
            return false;
        }
        let [jitter] = random::bytes::<1>();
        thread::sleep(waiting.pause + Duration::from_micros(u64::from(jitter) * 8));
        waiting.pause = (waiting.pause * 2).min(PAUSES[1]);
        true
    }
}

fn last_change(repository: &Repository) -> Option<SystemTime> {
    let meta = repository.guard_path().metadata().ok()?;
    meta.modified().ok()
}
