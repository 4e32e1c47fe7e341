//! Every value in force, where it comes from, and changing the user's.

use super::{Error, Here};
use crate::config::layers::{self, Entry, Layers};
use crate::config::{MAX_FILE, Warning, read_file, repository, user};
use crate::git::{self, Repository};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Every value in force.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConfigList {
    /// By key.
    pub values: Vec<ConfigValue>,
    /// Keys that nobody reads.
    pub warnings: Vec<String>,
}

/// One value.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConfigValue {
    /// Dotted key.
    pub key: String,
    /// TOML text; what may be a credential is hidden.
    pub value: String,
    /// Where it comes from: `default`, `user FILE:LINE`, `repository FILE:LINE`, …
    pub origin: String,
}

impl From<&Entry> for ConfigValue {
    fn from(entry: &Entry) -> Self {
        Self {
            key: entry.key.clone(),
            value: entry.value.clone(),
            origin: entry.origin.to_string(),
        }
    }
}

/// Lists them. Works outside a repository too, without its layer.
pub fn list(here: &Here) -> Result<ConfigList, Error> {
    let (layers, warnings) = load(here)?;
    Ok(ConfigList {
        values: layers.list().iter().map(ConfigValue::from).collect(),
        warnings: warnings.iter().map(ToString::to_string).collect(),
    })
}

/// One of them; where it is not set, the keys that may have been meant: those below it, else the nearest.
pub fn get(here: &Here, key: &str) -> Result<Result<ConfigValue, Vec<String>>, Error> {
    let (layers, _) = load(here)?;
    Ok(match layers.get(key) {
        Some(entry) => Ok(ConfigValue::from(entry)),
        None => Err(layers.near(key)),
    })
}

/// A value that was set.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConfigSet {
    /// Dotted key.
    pub key: String,
    /// The file that holds it.
    pub file: PathBuf,
}

/// Sets one in the user's file.
pub fn set(here: &Here, key: &str, value: &str) -> Result<ConfigSet, Error> {
    let file = here.paths()?.config_file;
    layers::set_in_file(&file, key, value)?;
    Ok(ConfigSet {
        key: key.to_owned(),
        file,
    })
}

/// Unknown keys are told, and returned.
fn load(here: &Here) -> Result<(Layers, Vec<Warning>), Error> {
    let file = here.paths()?.config_file;
    let user_text = read_file(&file)?;
    let repository_text = match here.repository() {
        Ok(repo) => repository_file(&repo)?,
        Err(Error::Git(git::Error::NotARepository(_))) => None,
        Err(error) => return Err(error),
    };
    let name = Path::new(repository::FILE);
    let layers = Layers::new(
        user_text.as_deref().map(|text| (file.as_path(), text)),
        repository_text.as_deref().map(|text| (name, text)),
        &here.env,
        &[],
    )?;
    let mut warnings = Vec::new();
    if let Some(text) = &user_text {
        warnings.extend(user::User::parse(&file, text, here.home().as_deref())?.warnings);
    }
    if let Some(text) = &repository_text {
        warnings.extend(repository::Repository::parse(name, text)?.warnings);
    }
    here.notices.unknown_keys(&warnings);
    Ok((layers, warnings))
}

/// The file in the work tree; in a bare repository the one at `HEAD`.
fn repository_file(repo: &Repository) -> Result<Option<String>, Error> {
    if let Some(work_tree) = repo.work_tree() {
        return Ok(read_file(&work_tree.join(repository::FILE))?);
    }
    let Some(head) = repo.head()? else {
        return Ok(None);
    };
    let bytes = repo.blob_at(head, repository::FILE, MAX_FILE)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}
