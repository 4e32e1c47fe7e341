//! Configuration: `hangar.toml` of a repository, the file of the user, the environment, and which
//! of them a value comes from.
//!
//! Owns reading and writing these files and nothing that they lead to: it starts no program except
//! to ask package clients for their settings, and must not know tasks, sandboxes or agents.
//! Reference: `docs/reference/configuration.md`.

pub mod env_vars;
pub mod layers;
mod nearest;
pub mod paths;
mod plan_env;
mod reader;
pub mod registries;
pub mod repository;
mod template;
pub mod units;
pub mod user;

use crate::base::files;
use std::fmt;
use std::path::{Path, PathBuf};

pub use template::{Template, template};

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is no TOML.
    #[error("{}:{line}: {message}", file.display())]
    Syntax {
        /// File as it was named to the reader.
        file: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What the parser says.
        message: String,
    },
    /// A value is of the wrong type or out of range.
    #[error("{}:{line}: `{key}` {message}", file.display())]
    Value {
        /// File as it was named to the reader.
        file: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Dotted key.
        key: String,
        /// What is wrong, and what is expected.
        message: String,
    },
    /// A value that was to be set does not fit.
    #[error("`{key}` {message}; nothing was set")]
    Unfit {
        /// Dotted key.
        key: String,
        /// What is wrong, and what is expected.
        message: String,
    },
    /// A file that the repository carries names something that is the user's or the policy's.
    #[error("{}:{line}: `{key}` may not be set by a repository; {belongs}", file.display())]
    Forbidden {
        /// File as it was named to the reader.
        file: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Dotted key.
        key: String,
        /// Where it belongs.
        belongs: &'static str,
    },
    /// A variable of the environment holds what can't be used.
    #[error("{variable} {message}")]
    Variable {
        /// Its name.
        variable: &'static str,
        /// What is wrong, and what is expected.
        message: &'static str,
    },
    /// Something needed is not set.
    #[error("{what} is not set; {remedy}")]
    Missing {
        /// What is missing.
        what: String,
        /// What to do.
        remedy: String,
    },
    /// The key is not one that `config set` may change.
    #[error("`{key}` is not a key of the user configuration; {hint}")]
    NotUserKey {
        /// The key.
        key: String,
        /// Where it belongs, or the nearest known key.
        hint: String,
    },
    /// A file that is no text.
    #[error("{} is no UTF-8 text", .0.display())]
    NotText(PathBuf),
    /// A file could not be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file could not be written.
    #[error("cannot write the configuration")]
    Write(#[from] crate::base::files::Error),
    /// A package client could not be asked.
    #[error("cannot ask `{client}` for its registry: {message}")]
    Client {
        /// The program.
        client: &'static str,
        /// What went wrong; never output of the program, which may hold credentials.
        message: String,
    },
}

/// A key that nobody reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// File as it was named to the reader.
    pub file: PathBuf,
    /// Line, from 1.
    pub line: usize,
    /// Dotted key.
    pub key: String,
    /// Nearest known key, where one is near enough.
    pub nearest: Option<String>,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, line, key) = (self.file.display(), self.line, &self.key);
        write!(f, "{file}:{line}: unknown key `{key}`")?;
        match &self.nearest {
            Some(nearest) => write!(f, " (did you mean `{nearest}`?)"),
            None => Ok(()),
        }
    }
}

/// Largest configuration file, in bytes.
pub const MAX_FILE: u64 = 1 << 20;

/// Reads a file of at most [`MAX_FILE`] bytes; `None` when it is not there.
pub fn read_file(path: &Path) -> Result<Option<String>, Error> {
    let fail = |source: std::io::Error| {
        let path = path.to_owned();
        match source.kind() {
            std::io::ErrorKind::InvalidData => Error::NotText(path),
            _ => Error::Read { path, source },
        }
    };
    match std::fs::File::open(path) {
        Ok(file) => files::whole_text(file, MAX_FILE).map(Some).map_err(fail),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(fail(error)),
    }
}
