//! What an adapter asks to be run, and what comes back. Whoever calls maps both onto a sandbox;
//! this folder starts nothing itself.

use crate::model::outcome::TestId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where things lie inside the sandbox. The names say nothing of what runs there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Root of the tree under test.
    pub src: PathBuf,
    /// Folder of our own runner scripts.
    pub runners: PathBuf,
    /// Writable scratch folder, empty at the start.
    pub scratch: PathBuf,
    /// What `prepare` left (virtual environment, CARGO_HOME). It may be missing.
    pub prepared: PathBuf,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            src: "/src".into(),
            // In the root folder, which nothing inside can write to.
            runners: "/r".into(),
            scratch: "/tmp".into(),
            prepared: "/prepared".into(),
        }
    }
}

/// A file of ours, laid from memory, read-only, before anything runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// Absolute path inside.
    pub path: PathBuf,
    /// Content.
    pub text: &'static str,
}

/// One program to run inside, in a process tree that is dead before the next one starts. The file
/// tree stays between the calls of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Program by absolute path inside, and its arguments.
    pub argv: Vec<OsString>,
    /// The whole environment.
    pub env: BTreeMap<OsString, OsString>,
    /// Working directory inside.
    pub dir: PathBuf,
    /// Standard input; empty is `/dev/null`.
    pub stdin: Vec<u8>,
    /// Opens a channel for writing on descriptor 3.
    pub channel: bool,
    /// Wall clock of this call. Calls of one run may together take longer than the plan's timeout;
    /// whoever runs them bounds the sum.
    pub timeout: Duration,
    /// Tests that this call runs; empty for a build or a listing.
    pub ids: Vec<TestId>,
    /// What marks records as ours: known to this call's standard input and to the reader.
    pub nonce: String,
    /// What it sees of the tests and of the tree.
    pub room: Room,
}

/// In what kind of sandbox a call runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Room {
    /// The tree with the sealed files in it, as the calls before left it.
    #[default]
    Shared,
    /// The same for the calls of one part, which see nothing of what the others left.
    Part(usize),
    /// The tree without any sealed file.
    Code(Visit),
    /// The sealed files without the tree, and beside it a sandbox with the tree alone, in which it
    /// can start programs.
    Driver,
}

/// One program run over the tree alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Visit {
    /// Whether it finds the tree as the call before left it; else as nothing has touched it yet.
    pub goes_on: bool,
    /// Files laid before the first program runs, by path relative to the root of the tree. The
    /// programs may change them.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Files to hand back after the last program, by path relative to the root of the tree.
    pub kept: Vec<String>,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Exit status.
    Exited(i32),
    /// Killed by this signal.
    Signalled(i32),
    /// The wall clock ran out, or nothing moved for too long.
    TimedOut,
    /// It could not be started (errno).
    NotStarted(i32),
}

/// A bound of the sandbox that a call ran into.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Hit {
    /// Memory of the tree.
    Memory,
    /// Processes and threads.
    Processes,
    /// Output was cut.
    Output,
    /// Size of one file.
    FileSize,
    /// Scratch disk.
    Disk,
    /// Wall clock.
    Time,
}

/// What stands at a path after a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Left {
    /// A regular file.
    File(Vec<u8>),
    /// A folder, a link, a special file, or a file too large to look at.
    Other,
}

/// What a call left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raw {
    /// How it ended.
    pub end: End,
    /// Standard output, perhaps cut.
    pub stdout: Vec<u8>,
    /// Standard error, perhaps cut.
    pub stderr: Vec<u8>,
    /// What was written to descriptor 3, read to its end after every process was dead. Empty where
    /// no channel was asked for.
    pub channel: Vec<u8>,
    /// What stood where [`Visit::kept`] asked for a file; a path where nothing was is not in it.
    pub files: BTreeMap<String, Left>,
    /// Bounds hit.
    pub hits: Vec<Hit>,
}

/// A program that an adapter needs. The caller finds it on the machine (user configuration,
/// `prepare`), makes it visible inside, and answers with its absolute inside path in [`Tools`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// Name, as on `PATH`.
    pub name: String,
    /// Where `prepare` leaves it, below [`Layout::prepared`]; wins where it exists.
    pub prepared: Option<&'static str>,
    /// What to say when it is nowhere.
    pub remedy: String,
}

/// Programs by name, as absolute inside paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tools(BTreeMap<String, PathBuf>);

impl Tools {
    /// Adds a program.
    pub fn insert(&mut self, name: impl Into<String>, inside: impl Into<PathBuf>) {
        self.0.insert(name.into(), inside.into());
    }

    /// The absolute inside path of `name`; below `/usr/bin` where nobody gave one.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0
            .get(name)
            .cloned()
            .unwrap_or_else(|| Path::new("/usr/bin").join(name))
    }

    /// Every program by its name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.0
            .iter()
            .map(|(name, path)| (name.as_str(), path.as_path()))
    }

    /// Folders of all programs, for `PATH`.
    pub fn folders(&self) -> Vec<PathBuf> {
        let mut folders: Vec<PathBuf> = self
            .0
            .values()
            .filter_map(|path| path.parent().map(Path::to_owned))
            .collect();
        folders.dedup();
        folders
    }
}

impl<N: Into<String>, P: Into<PathBuf>> FromIterator<(N, P)> for Tools {
    fn from_iter<I: IntoIterator<Item = (N, P)>>(tools: I) -> Self {
        let mut out = Self::default();
        for (name, path) in tools {
            out.insert(name, path);
        }
        out
    }
}
