//! What every kind of agent program has in common.

use super::exchange::Laid;
use super::finish::{Ended, Finish};
use super::variables::Variables;
use super::{Error, claude, codex, command, script};
use crate::model::endpoint::Endpoint;
use crate::model::lane::{HarnessSettings, Role};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The user's environment.
pub type Environment = BTreeMap<OsString, OsString>;

/// One kind of agent program, with the settings of one harness.
pub trait Adapter: fmt::Debug + Send + Sync {
    /// Word of the kind in the configuration.
    fn kind(&self) -> &'static str;

    /// What makes two harnesses of this kind the same program.
    fn identity(&self) -> Result<String, Error>;

    /// Whether the program and what it logs in with are there. Starts nothing.
    fn check(&self, env: &Environment) -> Health;

    /// What the program says its version is, where this kind asks for it. Starts the program, with
    /// an empty home folder and no variable of the user's.
    fn version(&self) -> Result<Option<String>, Error> {
        Ok(None)
    }

    /// How a person gives it what it logs in with, where hangar knows.
    fn login(&self) -> Option<&'static str> {
        None
    }

    /// Names of the variables that it gets of the user's environment where they are set.
    fn variables(&self) -> Vec<String>;

    /// How one turn is started.
    fn launch(&self, turn: &Turn<'_>) -> Result<Launch, Error>;

    /// What a turn came to, from how its process ended and what it wrote.
    fn read(&self, ended: &Ended<'_>) -> Finish;

    /// A line that it wrote, as people are shown it; `None` where it says nothing to them.
    fn show(&self, line: &[u8]) -> Option<String> {
        Some(String::from_utf8_lossy(line).into_owned())
    }
}

/// Makes the adapter of a kind from the harness's name, its settings and its effort.
pub type Build = fn(&Settings<'_>) -> Result<Box<dyn Adapter>, Error>;

/// Every kind that this version supports: word and constructor.
pub const KINDS: &[(&str, Build)] = &[
    (claude::KIND, claude::build),
    (codex::KIND, codex::build),
    (command::KIND, command::build),
    (script::KIND, script::build),
];

/// What an adapter is made from.
#[derive(Debug, Clone, Copy)]
pub struct Settings<'a> {
    /// Name of the harness.
    pub name: &'a str,
    /// Its settings.
    pub harness: &'a HarnessSettings,
    /// Effort of the lane, or the harness's own.
    pub effort: Option<&'a str>,
}

/// Makes the adapter of a harness.
pub fn build(settings: &Settings<'_>) -> Result<Box<dyn Adapter>, Error> {
    let kind = &settings.harness.kind;
    match KINDS.iter().find(|(word, _)| word == kind) {
        Some((_, build)) => build(settings),
        None => Err(Error::UnsupportedKind {
            harness: settings.name.to_owned(),
            kind: kind.clone(),
        }),
    }
}

/// The supported kinds, for messages.
pub(super) fn supported() -> String {
    let mut words: Vec<_> = KINDS.iter().map(|(word, _)| format!("`{word}`")).collect();
    let last = words.pop().unwrap_or_default();
    format!("{} or {last}", words.join(", "))
}

/// Whether a program can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// It can.
    Ok,
    /// It is not, with what to do about it.
    Missing {
        /// What is missing and how to get it.
        message: String,
    },
}

impl Health {
    /// What an attempt to use it came to, with its causes.
    pub(super) fn of<T>(tried: Result<T, Error>) -> Self {
        let Err(error) = tried else { return Self::Ok };
        Self::Missing {
            message: match std::error::Error::source(&error) {
                Some(source) => format!("{error}: {source}"),
                None => error.to_string(),
            },
        }
    }
}

/// One turn of an agent.
#[derive(Debug, Clone, Copy)]
pub struct Turn<'a> {
    /// What the program is asked to be.
    pub role: Role,
    /// Number of the turn in its task and role, from 1.
    pub number: u32,
    /// Exchange directory inside the sandbox.
    pub exchange: &'a Path,
    /// Work tree inside the sandbox.
    pub work: &'a Path,
    /// Where the caller binds hangar's own binary read-only, inside. Kind `script` needs it.
    pub hangar: &'a Path,
    /// What it is told.
    pub prompt: &'a str,
    /// Its home folder inside, empty and writable.
    pub home: &'a Path,
    /// The user's environment, from which variables are passed on by name.
    pub env: &'a Environment,
    /// Wall clock for the turn.
    pub total: Duration,
    /// Longest silence.
    pub idle: Duration,
}

/// A host file or folder seen read-only inside.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bind {
    /// On the host, absolute.
    pub host: PathBuf,
    /// Inside, absolute.
    pub inside: PathBuf,
}

impl Bind {
    /// A path seen at the same place.
    pub fn same(path: impl Into<PathBuf>) -> Self {
        let host = path.into();
        Self {
            inside: host.clone(),
            host,
        }
    }
}

/// How a turn is started inside a sandbox. `HOME`, `PATH`, the proxy variables and locale are the
/// caller's.
#[derive(Debug, Clone)]
pub struct Launch {
    /// Program by absolute path inside, and its arguments.
    pub argv: Vec<OsString>,
    /// Environment.
    pub env: Variables,
    /// A folder to have on `PATH`, where its interpreter lies in one of its own.
    pub path: Option<PathBuf>,
    /// Standard input; empty is none.
    pub stdin: Vec<u8>,
    /// What of the host it needs beside the system: program, interpreter, `read`.
    pub read_only: Vec<Bind>,
    /// Files to lay into its home folder: settings, never a credential.
    pub files: Vec<Laid>,
    /// Where it may connect to.
    pub hosts: Vec<Endpoint>,
    /// Wall clock.
    pub total: Duration,
    /// Longest silence; `None` where a program of this kind may be silent.
    pub idle: Option<Duration>,
}
