//! What every kind of agent program has in common.

use super::{Error, command, script};
use crate::model::endpoint::Endpoint;
use crate::model::lane::{HarnessSettings, Role};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One kind of agent program, with the settings of one harness.
pub trait Adapter: fmt::Debug + Send + Sync {
    /// Word of the kind in the configuration.
    fn kind(&self) -> &'static str;

    /// What makes two harnesses of this kind the same program.
    fn identity(&self) -> Result<String, Error>;

    /// Whether the program is there. Starts no turn.
    fn check(&self) -> Health;

    /// How one turn is started.
    fn launch(&self, turn: &Turn<'_>) -> Result<Launch, Error>;

    /// What a turn came to, from how its process ended and what it wrote.
    fn read(&self, ended: &Ended<'_>) -> Finish;
}

/// Makes the adapter of a kind from the harness's name, its settings and its effort.
pub type Build = fn(&Settings<'_>) -> Result<Box<dyn Adapter>, Error>;

/// Every kind that this version supports: word and constructor.
pub const KINDS: &[(&str, Build)] = &[
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
    let words: Vec<_> = KINDS.iter().map(|(word, _)| format!("`{word}`")).collect();
    words.join(" or ")
}

/// Whether a program can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// It is there.
    Ok {
        /// What it says its version is, where it was asked.
        version: Option<String>,
    },
    /// It is not, with what to do about it.
    Missing {
        /// What is missing and how to get it.
        message: String,
    },
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
    /// The user's environment, from which variables are passed on by name.
    pub env: &'a BTreeMap<OsString, OsString>,
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

/// Variables whose values may be credentials: `Debug` shows their names alone.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Variables(BTreeMap<OsString, OsString>);

impl Variables {
    /// Sets one.
    pub fn set(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) {
        let (name, value) = (name.as_ref().to_owned(), value.as_ref().to_owned());
        self.0.insert(name, value);
    }

    /// The value of one.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// All of them, for the process that gets them.
    pub fn expose(&self) -> &BTreeMap<OsString, OsString> {
        &self.0
    }
}

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// How a turn is started inside a sandbox. `HOME`, the proxy variables and locale are the
/// caller's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// Program by absolute path inside, and its arguments.
    pub argv: Vec<OsString>,
    /// Environment.
    pub env: Variables,
    /// Standard input; empty is none.
    pub stdin: Vec<u8>,
    /// What of the host it needs beside the system: program, interpreter, `read`.
    pub read_only: Vec<Bind>,
    /// Where it may connect to.
    pub hosts: Vec<Endpoint>,
    /// Wall clock.
    pub total: Duration,
    /// Longest silence; `None` where a program of this kind may be silent.
    pub idle: Option<Duration>,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Exit status.
    Code(i32),
    /// Killed by this signal.
    Signal(i32),
    /// The wall clock ran out.
    TimedOut,
    /// Nothing moved for the idle time.
    Idle,
    /// It could not be started (errno).
    NotStarted(i32),
}

/// A process that has ended, with its streams.
#[derive(Debug, Clone, Copy)]
pub struct Ended<'a> {
    /// How.
    pub exit: Exit,
    /// Standard output.
    pub stdout: &'a [u8],
    /// Standard error.
    pub stderr: &'a [u8],
}

/// Class of a failure: decides whether another lane takes over, and whether it counts as an
/// attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErrorClass {
    /// A usage limit; the text is the program's time of reset.
    Limit(Option<String>),
    /// Too many requests.
    Rate,
    /// The provider is overloaded or out.
    Overloaded,
    /// Not logged in, or a key that is not accepted.
    Auth,
    /// Payment.
    Billing,
    /// The context is full.
    Context,
    /// Stopped: by a signal, by a timer, by the person.
    Interrupted,
    /// It did not keep to what its kind promises.
    Protocol,
    /// Anything else.
    Unknown,
}

/// What a turn came to, as far as the program tells. The caller's own checks decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnEnd {
    /// The program says that it did what it was asked.
    Done,
    /// It did not.
    Failed(ErrorClass, String),
}

/// Tokens of one turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Read.
    pub input: u64,
    /// Written.
    pub output: u64,
}

/// What was learnt from a finished turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// How it ended.
    pub end: TurnEnd,
    /// Tokens, where the program tells.
    pub usage: Option<Usage>,
    /// The program's own name of the session, for a resume.
    pub session: Option<String>,
}

impl Finish {
    /// What an exit alone says. No text of the program is part of it.
    pub(super) fn of_exit(exit: Exit) -> Self {
        let failed = |class, text: String| TurnEnd::Failed(class, text);
        let end = match exit {
            Exit::Code(0) => TurnEnd::Done,
            Exit::Code(code) => failed(ErrorClass::Unknown, format!("exit status {code}")),
            Exit::Signal(signal) => {
                failed(ErrorClass::Interrupted, format!("ended by signal {signal}"))
            }
            Exit::TimedOut => failed(
                ErrorClass::Interrupted,
                "the time for the turn ran out".into(),
            ),
            Exit::Idle => failed(ErrorClass::Interrupted, "it was silent for too long".into()),
            Exit::NotStarted(errno) => {
                let why = std::io::Error::from_raw_os_error(errno);
                failed(
                    ErrorClass::Protocol,
                    format!("it could not be started: {why}"),
                )
            }
        };
        Self {
            end,
            usage: None,
            session: None,
        }
    }
}

/// Variables that every kind gets, and those that the harness passes on by name.
pub(super) fn environment(
    settings: &str,
    pass: &[String],
    turn: &Turn<'_>,
) -> Result<Variables, Error> {
    let mut env = Variables::default();
    for name in pass {
        let value = turn
            .env
            .get(OsStr::new(name))
            .ok_or_else(|| Error::MissingVariable {
                harness: settings.to_owned(),
                variable: name.clone(),
            })?;
        env.set(name, value);
    }
    env.set(super::exchange::VARIABLE, turn.exchange);
    Ok(env)
}
