//! Every value in force and where it comes from, and changing the user's file.
//!
//! Order, later wins: default, user, repository, environment, command line. User and repository
//! have no key in common, so neither can override the other.

use super::reader::{self, Source};
use super::repository::{self, Repository};
use super::user::{self, User};
use super::{Error, env_vars, nearest::nearest, paths::Env};
use crate::base::files;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use toml_edit::{DocumentMut, Item, Table, Value};

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Built in.
    Default,
    /// The user's file, with the line.
    User(PathBuf, usize),
    /// The repository's file, with the line.
    Repository(PathBuf, usize),
    /// A variable of the environment.
    Environment(&'static str),
    /// The command line.
    CommandLine,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::User(file, line) => write!(f, "user {}:{line}", file.display()),
            Self::Repository(file, line) => write!(f, "repository {}:{line}", file.display()),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::CommandLine => f.write_str("command line"),
        }
    }
}

/// One value in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Dotted key.
    pub key: String,
    /// Value as TOML text. What may be a credential is hidden.
    pub value: String,
    /// Where it comes from.
    pub origin: Origin,
}

/// All layers on top of each other.
#[derive(Debug, Clone, Default)]
pub struct Layers(BTreeMap<String, Entry>);

/// A file of a layer: how messages name it, and its text.
pub type File<'a> = (&'a Path, &'a str);

impl Layers {
    /// Puts the layers on top of each other. `overrides` are keys and TOML values of the command
    /// line. Both files must be valid.
    pub fn new(
        user: Option<File<'_>>,
        repository: Option<File<'_>>,
        env: &Env,
        overrides: &[(String, String)],
    ) -> Result<Self, Error> {
        let mut layers = Self::default();
        for (key, value) in DEFAULTS {
            layers.put((*key).to_owned(), (*value).to_owned(), Origin::Default);
        }
        if let Some((file, text)) = user {
            User::parse(file, text, None)?;
            layers.add_file(file, text, Origin::User)?;
        }
        if let Some((file, text)) = repository {
            Repository::parse(file, text)?;
            layers.add_file(file, text, Origin::Repository)?;
        }
        for (variable, key) in env_vars::OVERRIDES {
            if let Some(value) = env.get(std::ffi::OsStr::new(variable)) {
                let text = quote(&value.to_string_lossy());
                layers.put((*key).to_owned(), text, Origin::Environment(variable));
            }
        }
        for (key, value) in overrides {
            layers.put(key.clone(), value.clone(), Origin::CommandLine);
        }
        Ok(layers)
    }

    /// Every value in the order of the keys.
    pub fn list(&self) -> Vec<Entry> {
        self.0.values().cloned().collect()
    }

    /// One value.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.0.get(key)
    }

    /// Keys that have a value and may be meant by one that has none: those below it, else the nearest.
    pub fn near(&self, key: &str) -> Vec<String> {
        let below = format!("{key}.");
        let below = self.0.keys().filter(|one| one.starts_with(&below));
        let below: Vec<String> = below.cloned().collect();
        if !below.is_empty() {
            return below;
        }
        let near = nearest(key, self.0.keys().map(String::as_str));
        near.map(str::to_owned).into_iter().collect()
    }

    fn add_file(
        &mut self,
        file: &Path,
        text: &str,
        origin: fn(PathBuf, usize) -> Origin,
    ) -> Result<(), Error> {
        let source = Source::new(file, text);
        let table = source.parse()?;
        for (key, value, line) in reader::leaves(&source, table.get_ref()) {
            self.put(key, value, origin(file.to_owned(), line));
        }
        Ok(())
    }

    fn put(&mut self, key: String, value: String, origin: Origin) {
        let value = if is_secret(&key) {
            "\"(hidden)\"".to_owned()
        } else {
            value
        };
        let entry = Entry {
            key: key.clone(),
            value,
            origin,
        };
        self.0.insert(key, entry);
    }
}

const DEFAULTS: &[(&str, &str)] = &[
    ("deliver.as", "\"branch\""),
    ("deliver.branch", "\"hangar/{key}\""),
    ("grader.build", "\"\""),
    ("grader.limits.disk", "\"2G\""),
    ("grader.limits.memory", "\"4G\""),
    ("grader.limits.output", "\"64M\""),
    ("grader.limits.processes", "512"),
    ("grader.may_touch", "[]"),
    ("grader.options", "[]"),
    ("grader.plugins", "[]"),
    ("grader.prepare", "\"\""),
    ("grader.protected", "[]"),
    ("grader.repeat", "1"),
    ("grader.reprepare", "false"),
    ("grader.tests", "[\"tests/\"]"),
    ("grader.timeout", "\"10m\""),
    ("grader.trust", "\"sealed\""),
    ("grader.verdict", "\"exit\""),
    ("remote.name", "\"origin\""),
    ("task.flow", "\"plain\""),
];

/// Notification targets are addresses that anyone who knows them can post to; of the rest, what
/// its name calls a credential.
fn is_secret(key: &str) -> bool {
    let last = key.rsplit('.').next().unwrap_or(key).to_ascii_lowercase();
    let named = ["token", "secret", "password", "webhook"]
        .iter()
        .any(|word| last.contains(word));
    named || (key.starts_with("notify.") && (last.contains("url") || last.contains("key")))
}

/// The user's file with `key` set to `value`, comments and order kept. The result is validated.
///
/// `value` is TOML (`["claude:high"]`, `"linux"`), or plain text for a text.
pub fn edit(file: &Path, text: &str, key: &str, value: &str) -> Result<String, Error> {
    let parts = user_key(key)?;
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        let offset = error.span().map_or(0, |span| span.start);
        Error::Syntax {
            file: file.to_owned(),
            line: Source::new(file, text).line(offset),
            message: error.message().to_owned(),
        }
    })?;
    let mut table = document.as_table_mut();
    let (last, parents) = parts.split_last().ok_or_else(|| not_user(key))?;
    for parent in parents {
        let item = table.entry(parent).or_insert_with(|| {
            let mut new = Table::new();
            new.set_implicit(true);
            Item::Table(new)
        });
        table = item.as_table_mut().ok_or_else(|| Error::NotUserKey {
            key: key.to_owned(),
            hint: format!(
                "`{parent}` is written as an inline value in {}; edit it there",
                file.display()
            ),
        })?;
    }
    set(table, last, to_value(key, value));
    let out = document.to_string();
    match User::parse(file, &out, None) {
        // Its line is one of the text that is not written.
        Err(Error::Value { key, message, .. }) if User::parse(file, text, None).is_ok() => {
            Err(Error::Unfit { key, message })
        }
        Err(error) => Err(error),
        Ok(_) => Ok(out),
    }
}

/// [`edit`] on the file itself: read, changed, written atomically. A symbolic link stays one.
pub fn set_in_file(file: &Path, key: &str, value: &str) -> Result<(), Error> {
    let text = super::read_file(file)?.unwrap_or_default();
    let out = edit(file, &text, key, value)?;
    let target = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    if let Some(dir) = target.parent() {
        files::create_private_dir(dir)?;
    }
    files::write_atomic(&target, out.as_bytes(), 0o600)?;
    Ok(())
}

fn set(table: &mut Table, key: &str, mut value: Value) {
    if let Some(Item::Value(old)) = table.get(key) {
        *value.decor_mut() = old.decor().clone();
    }
    table.insert(key, Item::Value(value));
}

/// A TOML value where the text is one and the key does not want a text; else the text itself.
fn to_value(key: &str, text: &str) -> Value {
    let last = key.rsplit('.').next().unwrap_or(key);
    let list = key.starts_with("lanes.") || ["command", "hosts", "env", "read"].contains(&last);
    match text.trim().parse::<Value>() {
        Ok(value) if value.is_array() || value.is_str() => value,
        Ok(value) if key.starts_with("notify.") || key.starts_with("remote.") => value,
        _ if list => {
            let items = text
                .split(',')
                .map(str::trim)
                .filter(|item| !item.is_empty());
            Value::Array(items.collect())
        }
        _ => Value::from(text),
    }
}

fn user_key(key: &str) -> Result<Vec<&str>, Error> {
    let parts: Vec<&str> = key.split('.').collect();
    let plain = |part: &&str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    };
    if !parts.iter().all(plain) {
        return Err(not_user(key));
    }
    let fine = match parts.as_slice() {
        ["harness", _, last] => user::HARNESS.contains(last),
        ["lanes", last] => user::LANES.contains(last),
        ["sandbox", last] => user::SANDBOX.contains(last),
        ["prepare", last] => user::PREPARE.contains(last),
        ["toolchain", _] | ["remote" | "notify", _, ..] => true,
        _ => false,
    };
    if fine { Ok(parts) } else { Err(not_user(key)) }
}

fn not_user(key: &str) -> Error {
    let first = key.split('.').next().unwrap_or(key);
    let known = user::LANES
        .iter()
        .map(|word| format!("lanes.{word}"))
        .chain(user::SANDBOX.iter().map(|word| format!("sandbox.{word}")))
        .chain(["prepare.hosts".to_owned()])
        .chain(
            user::HARNESS
                .iter()
                .map(|word| format!("harness.NAME.{word}")),
        )
        .collect::<Vec<_>>();
    let hint = if repository::ROOT.contains(&first) {
        format!(
            "it belongs in {}, which is edited by hand and landed like code",
            repository::FILE
        )
    } else if let Some(near) = nearest(key, known.iter().map(String::as_str)) {
        format!("did you mean `{near}`?")
    } else {
        "known are harness.NAME.…, lanes.…, sandbox.provider, sandbox.image, toolchain.NAME, prepare.hosts, remote.…, notify.…".into()
    };
    Error::NotUserKey {
        key: key.to_owned(),
        hint,
    }
}

fn quote(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
#[path = "layers_tests.rs"]
mod tests;
