//! `hangar.toml` in the work tree: written once, later only its `[trust]` line.

use super::below::Below;
use super::propose::propose;
use crate::app::{Error, Here};
use crate::base::files;
use crate::config::repository::{FILE, Repository as Config};
use crate::config::{MAX_FILE, Template, read_file, template};
use crate::git::Repository;
use crate::model::digest::Digest;
use crate::model::object_id::ObjectId;
use std::path::Path;
use toml_edit::{DocumentMut, Item, Table, value};

/// What was done with a file of the work tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAction {
    /// It was not there.
    Created,
    /// Something was added or replaced in it.
    Changed,
    /// It was right already.
    Kept,
}

/// Refuses to write a file where a symbolic link stands: what it points to may lie outside of the repository,
/// and to put a file in its place would take away what somebody shares.
pub(super) fn refuse_link(work_tree: &Path, name: &str) -> Result<(), Error> {
    match work_tree.join(name).symlink_metadata() {
        Ok(found) if found.is_symlink() => Err(Error::invalid(format!(
            "`{name}` is a symbolic link, and hangar writes a file of that name: put a regular file in its place, then run `hangar init` again"
        ))),
        _ => Ok(()),
    }
}

/// What came of [`ensure`].
#[derive(Debug)]
pub(super) struct Ensured {
    /// What was done.
    pub(super) action: FileAction,
    /// The framework that was recognised, or that the file names.
    pub(super) framework: Option<String>,
    /// Projects in folders, where none was recognised.
    pub(super) below: Vec<Below>,
}

/// Writes `hangar.toml`, or puts the policy's digest into the one that is there. Comments and
/// order of an existing file are kept.
pub(super) fn ensure(
    here: &Here,
    repo: &Repository,
    work_tree: &Path,
    commit: ObjectId,
    policy: Digest,
) -> Result<Ensured, Error> {
    let path = work_tree.join(FILE);
    let Some(text) = read_file(&path)? else {
        let found = propose(repo, commit)?;
        let tests: Vec<_> = found.tests.iter().map(String::as_str).collect();
        let text = template(&Template {
            repo: policy,
            framework: found.framework,
            verify: &found.verify,
            prepare: &found.prepare,
            build: &found.build,
            tests: &tests,
            options: &found.options,
            plugins: &found.plugins,
            env: &found.env,
        });
        files::write_atomic(&path, text.as_bytes(), 0o644)?;
        let framework = found.found.then(|| found.framework.to_string());
        return Ok(Ensured {
            action: FileAction::Created,
            framework,
            below: found.below,
        });
    };
    let config = parse(&text)?;
    here.notices.unknown_keys(&config.warnings);
    here.deliverable(&config);
    let framework = config.framework().map(|one| one.to_string());
    let action = match with_policy(&text, policy)? {
        None => FileAction::Kept,
        Some(changed) => {
            files::write_atomic(&path, changed.as_bytes(), 0o644)?;
            FileAction::Changed
        }
    };
    Ok(Ensured {
        action,
        framework,
        below: Vec::new(),
    })
}

/// The policy that the file in the work tree names.
pub(super) fn named_policy(work_tree: &Path) -> Result<Option<Digest>, Error> {
    let path = work_tree.join(FILE);
    let Some(text) = read_file(&path)? else {
        return Ok(None);
    };
    Ok(parse(&text)?.repo)
}

/// Whether the commit holds the file as it is in the work tree, line endings apart.
pub(super) fn is_committed(
    repo: &Repository,
    work_tree: &Path,
    commit: ObjectId,
) -> Result<bool, Error> {
    let Some(here) = read_file(&work_tree.join(FILE))? else {
        return Ok(true);
    };
    let there = repo.blob_at(commit, FILE, MAX_FILE)?;
    let plain = |text: &str| text.replace("\r\n", "\n");
    Ok(there.is_some_and(|there| plain(&String::from_utf8_lossy(&there)) == plain(&here)))
}

fn parse(text: &str) -> Result<Config, Error> {
    Ok(Config::parse(Path::new(FILE), text)?)
}

fn with_policy(text: &str, policy: Digest) -> Result<Option<String>, Error> {
    // The reader's message names the line.
    let config = parse(text)?;
    if config.repo == Some(policy) {
        return Ok(None);
    }
    let mut document: DocumentMut = text
        .parse()
        .map_err(|error: toml_edit::TomlError| Error::invalid(error.message()))?;
    let trust = document
        .entry("trust")
        .or_insert_with(|| Item::Table(Table::new()));
    trust["repo"] = value(policy.to_string());
    Ok(Some(document.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_existing_file_keeps_its_comments() {
        let policy = Digest::of(b"policy");
        let text = "# mine\nformat = 1\n\n[task]\nflow = \"plain\" # for now\n";
        let changed = with_policy(text, policy).unwrap().unwrap();
        assert!(changed.starts_with(text), "{changed}");
        assert!(changed.contains(&format!("[trust]\nrepo = \"{policy}\"")));
        assert_eq!(with_policy(&changed, policy).unwrap(), None);
    }
}
