//! Where the health of harnesses is kept on this machine: one file of the user's, which processes
//! write one after the other.
//!
//! A hint, no record: what can't be read counts as healthy, and what can't be written holds for this
//! process alone. No task and no ref depends on it.

use super::adapter::Environment;
use super::finish::{Finish, TurnEnd};
use super::health::{self, Kind, Login, Outage};
use super::lanes::Lane;
use crate::base::clock::Clock;
use crate::base::{files, random};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Version of the file. Another one is read as nothing.
const FORMAT: u32 = 1;
/// Name of the file.
const FILE: &str = "harness-health.json";
/// A larger file is damaged.
const MAX_FILE: u64 = 1 << 20;

/// The file as it stands. Entries are read one by one, so that a damaged one takes no other along.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    format: u32,
    key: String,
    harnesses: BTreeMap<String, serde_json::Value>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    class: String,
    since: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    times: u32,
    login: u16,
}

/// What was known at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Book {
    /// Key of the logins; empty while nothing is recorded.
    key: Vec<u8>,
    outages: BTreeMap<String, Outage>,
}

impl Book {
    /// What keeps a harness from working now. `names` are the variables that it gets of `env`.
    pub fn outage(
        &self,
        harness: &str,
        names: &[String],
        env: &Environment,
        now: Timestamp,
    ) -> Option<&Outage> {
        let outage = self.outages.get(harness)?;
        let login = Login::of(&self.key, names, env);
        outage.stands(now, login).then_some(outage)
    }

    /// Names of the harnesses that something is recorded of.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.outages.keys().map(String::as_str)
    }

    fn parse(text: &str) -> Self {
        let stored = serde_json::from_str::<Stored>(text).ok();
        let Some(stored) = stored.filter(|stored| stored.format == FORMAT) else {
            return Self::default();
        };
        let key = hex::decode(&stored.key).unwrap_or_default();
        if key.is_empty() {
            return Self::default();
        }
        let entry = |(name, value)| Some((name, read(serde_json::from_value(value).ok()?)?));
        let outages = stored.harnesses.into_iter().filter_map(entry).collect();
        Self { key, outages }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let entry = |(name, outage): (&String, &Outage)| {
            let value = serde_json::to_value(entry(outage)).unwrap_or_default();
            (name.clone(), value)
        };
        let stored = Stored {
            format: FORMAT,
            key: hex::encode(&self.key),
            harnesses: self.outages.iter().map(entry).collect(),
        };
        let mut bytes = serde_json::to_vec_pretty(&stored).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }
}

fn read(entry: Entry) -> Option<Outage> {
    let (kind, _) = Kind::ALL.iter().find(|(_, word)| *word == entry.class)?;
    let until = match entry.until {
        Some(until) => Some(until.parse().ok()?),
        None if *kind == Kind::Auth => None,
        None => return None,
    };
    Some(Outage {
        kind: *kind,
        since: entry.since.parse().ok()?,
        until,
        times: entry.times,
        login: Login(entry.login),
    })
}

fn entry(outage: &Outage) -> Entry {
    let word = Kind::ALL.iter().find(|(kind, _)| *kind == outage.kind);
    Entry {
        class: word.map_or_else(String::new, |(_, word)| (*word).to_owned()),
        since: outage.since.to_string(),
        until: outage.until.map(|until| until.to_string()),
        times: outage.times,
        login: outage.login.0,
    }
}

/// Health of the harnesses of this machine's user.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    clock: Clock,
    /// What this process knows, once it could not be written.
    unkept: Mutex<Option<Book>>,
}

impl Ledger {
    /// The one below a user's state folder. Nothing is read or made yet.
    pub fn new(state: &Path, clock: Clock) -> Self {
        Self {
            path: state.join(FILE),
            clock,
            unkept: Mutex::new(None),
        }
    }

    /// The time by which it judges.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// What is known now.
    pub fn look(&self) -> Book {
        let unkept = self.unkept.lock().unwrap_or_else(PoisonError::into_inner);
        unkept.clone().unwrap_or_else(|| self.read())
    }

    fn read(&self) -> Book {
        let file = std::fs::File::open(&self.path);
        let text = file.and_then(|file| files::whole_text(file, MAX_FILE));
        text.map_or_else(|_| Book::default(), |text| Book::parse(&text))
    }

    /// Notes what a turn that began at `started` says about the health of its harness. The error is
    /// that it could not be kept: it holds for this process all the same.
    pub fn note(
        &self,
        lane: &Lane,
        env: &Environment,
        finish: &Finish,
        started: Timestamp,
    ) -> Result<(), files::Error> {
        let name = lane.name.harness.as_str();
        match &finish.end {
            TurnEnd::Done => self.update(|book| {
                let over = |known: &Outage| health::is_over(known, started);
                if book.outages.get(name).is_some_and(over) {
                    book.outages.remove(name);
                }
            }),
            TurnEnd::Failed(failure) if Kind::of(failure.class).is_some() => {
                let now = self.now();
                let names = lane.adapter.variables();
                self.update(|book| {
                    if book.key.is_empty() {
                        book.key = random::bytes::<16>().to_vec();
                    }
                    let login = Login::of(&book.key, &names, env);
                    book.outages.retain(|_, outage| !outage.is_past(now));
                    let known = book.outages.get(name);
                    if let Some(outage) = health::after_failure(known, failure.class, now, login) {
                        book.outages.insert(name.to_owned(), outage);
                    }
                })
            }
            TurnEnd::Failed(_) => Ok(()),
        }
    }

    /// Forgets what is known of a harness: a person says that it is mended.
    pub fn clear(&self, harness: &str) -> Result<(), files::Error> {
        self.update(|book| {
            book.outages.remove(harness);
        })
    }

    /// Changes what is kept, one process after the other.
    fn update(&self, change: impl Fn(&mut Book)) -> Result<(), files::Error> {
        let mut unkept = self.unkept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut book = unkept.clone().unwrap_or_else(|| self.read());
        let before = book.clone();
        change(&mut book);
        // Most turns change nothing, and most machines have no file.
        if book == before {
            return Ok(());
        }
        if unkept.is_some() {
            *unkept = Some(book);
            return Ok(());
        }
        let kept = self.keep(&change);
        if kept.is_err() {
            *unkept = Some(book);
        }
        kept
    }

    fn keep(&self, change: impl Fn(&mut Book)) -> Result<(), files::Error> {
        if let Some(dir) = self.path.parent() {
            files::create_private_dir(dir)?;
        }
        let _lock = files::lock(&self.path.with_extension("lock"))?;
        let mut book = self.read();
        change(&mut book);
        files::write_atomic(&self.path, &book.to_bytes(), 0o600)
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
