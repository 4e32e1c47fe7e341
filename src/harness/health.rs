//! Health of a harness: what a failure does to it, and when the harness is asked again.
//!
//! Pure: times and logins are given. `ledger` keeps it. A turn that was served, however bad what it
//! left is, is no outage.

use super::adapter::Environment;
use super::finish::{ErrorClass, minute};
use crate::model::digest::Digest;
use jiff::{SignedDuration, Timestamp};
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;

/// What is recorded from further ahead than this was recorded by a wrong clock.
const SLACK: SignedDuration = SignedDuration::from_mins(5);
/// Failures that lie further apart are not in a row.
const ROW: SignedDuration = SignedDuration::from_hours(24);
/// A limit is respected for so long at least, also where it is said to be lifted at once.
const SHORTEST: SignedDuration = SignedDuration::from_mins(1);

/// What keeps a harness from working.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A usage limit.
    Limit,
    /// Too many requests.
    Rate,
    /// Its provider is overloaded or can't be reached.
    Overloaded,
    /// Not logged in, or a key that is not accepted.
    Auth,
    /// Its account has no credit left.
    Billing,
}

impl Kind {
    /// All of them, with their words in the file.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Limit, "limit"),
        (Self::Rate, "rate"),
        (Self::Overloaded, "overloaded"),
        (Self::Auth, "auth"),
        (Self::Billing, "billing"),
    ];

    /// The kind of a failure; `None` for one that says nothing about the next turn.
    pub const fn of(class: ErrorClass) -> Option<Self> {
        match class {
            ErrorClass::Limit(_) => Some(Self::Limit),
            ErrorClass::Rate => Some(Self::Rate),
            ErrorClass::Overloaded => Some(Self::Overloaded),
            ErrorClass::Auth => Some(Self::Auth),
            ErrorClass::Billing => Some(Self::Billing),
            ErrorClass::Context
            | ErrorClass::Interrupted
            | ErrorClass::Protocol
            | ErrorClass::Unknown => None,
        }
    }

    const fn class(self) -> ErrorClass {
        match self {
            Self::Limit => ErrorClass::Limit(None),
            Self::Rate => ErrorClass::Rate,
            Self::Overloaded => ErrorClass::Overloaded,
            Self::Auth => ErrorClass::Auth,
            Self::Billing => ErrorClass::Billing,
        }
    }

    /// The first wait where no time is told, and the longest; `None` where waiting mends nothing.
    const fn waits(self) -> Option<(SignedDuration, SignedDuration)> {
        let (first, most) = match self {
            Self::Limit => (30, 4 * 60),
            Self::Rate | Self::Overloaded => (1, 30),
            Self::Billing => (60, 24 * 60),
            Self::Auth => return None,
        };
        Some((
            SignedDuration::from_mins(first),
            SignedDuration::from_mins(most),
        ))
    }
}

/// What the variables say that a harness gets of the user's environment, in 16 bits under a key of
/// this machine.
///
/// So few bits tell nearly every change of a login, and too little to find one by, also for whoever has
/// the key: one of 65 536 guesses fits by chance. The same login always gives the same bits, so that
/// many records tell no more than one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Login(pub u16);

impl Login {
    /// Of the variables with these names.
    pub fn of(key: &[u8], names: &[String], env: &Environment) -> Self {
        let mut bytes = b"hangar-login\0".to_vec();
        bytes.extend((key.len() as u64).to_be_bytes());
        bytes.extend(key);
        for name in names {
            let value = env.get(OsStr::new(name));
            bytes.push(u8::from(value.is_some()));
            for part in [name.as_bytes(), value.map_or(&[], |value| value.as_bytes())] {
                bytes.extend((part.len() as u64).to_be_bytes());
                bytes.extend(part);
            }
        }
        let [first, second, ..] = *Digest::of(&bytes).as_bytes();
        Self(u16::from_be_bytes([first, second]))
    }
}

/// What keeps a harness from working for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    /// What it is.
    pub kind: Kind,
    /// When it was seen.
    pub since: Timestamp,
    /// When the harness is asked again; `None` where only a person can mend it.
    pub until: Option<Timestamp>,
    /// Failures in a row.
    pub times: u32,
    /// The login that it happened with.
    pub login: Login,
}

impl Outage {
    /// Whether the harness is left alone now. Another login is another account.
    pub fn stands(&self, now: Timestamp, login: Login) -> bool {
        self.login == login
            && self.since.duration_since(now) <= SLACK
            && self.until.is_none_or(|until| now < until)
    }

    /// Whether nothing follows from it any more.
    pub fn is_past(&self, now: Timestamp) -> bool {
        let past = |until: Timestamp| now.duration_since(until) > ROW;
        self.until.is_some_and(past) || self.since.duration_since(now) > SLACK
    }
}

impl fmt::Display for Outage {
    /// What it is, after the name of a program.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind.class())?;
        match (self.until, self.kind) {
            (None, _) => Ok(()),
            (Some(until), Kind::Limit) => write!(f, ", until {}", minute(until)),
            (Some(until), _) => write!(f, "; it is asked again after {}", minute(until)),
        }
    }
}

/// What a failure at `now` leaves, with what was known before; `None` where it is no outage.
pub fn after_failure(
    known: Option<&Outage>,
    class: ErrorClass,
    now: Timestamp,
    login: Login,
) -> Option<Outage> {
    let kind = Kind::of(class)?;
    let known = known.filter(|known| known.login == login && !known.is_past(now));
    let standing = known.filter(|known| known.stands(now, login));
    let times = match known {
        // Another run met the same outage.
        Some(known) if standing.is_some() => known.times,
        Some(known) => known.times.saturating_add(1),
        None => 1,
    };
    let until = match class {
        ErrorClass::Limit(Some(lifted)) => Some(lifted.max(later(now, SHORTEST))),
        _ => kind.waits().map(|(first, most)| {
            let doubled = 2_i32.saturating_pow(times.saturating_sub(1).min(20));
            later(now, first.saturating_mul(doubled).min(most))
        }),
    };
    // One that lasts longer is not shortened by what another run met meanwhile.
    let longer = |known: &&Outage| match (known.until, until) {
        (None, _) => true,
        (Some(known), Some(new)) => known > new,
        (Some(_), None) => false,
    };
    Some(standing.filter(longer).cloned().unwrap_or(Outage {
        kind,
        since: now,
        until,
        times,
        login,
    }))
}

fn later(now: Timestamp, span: SignedDuration) -> Timestamp {
    now.checked_add(span).unwrap_or(Timestamp::MAX)
}

/// Whether an outage is over because a turn that began at `started` was served. One that another run
/// met since then is not.
pub fn is_over(known: &Outage, started: Timestamp) -> bool {
    known.since <= started
}

#[cfg(test)]
#[path = "health_tests.rs"]
mod tests;
