//! `hangar deinit`: takes hangar out of this clone. Keys stay, and so does everything that others
//! have.

use crate::app::hooks::Hook;
use crate::app::hooks::install;
use crate::app::{Error, Here};
use crate::base::files;
use crate::config::repository;
use crate::flow::decide::keep_from_agents;
use crate::git::{Expected, Repository};
use crate::store::layout::{BRANCH_PREFIX, DEFAULT_PREFIX};
use crate::trust;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What is there to be removed, and what stays.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DeinitReport {
    /// Refs of hangar in this clone.
    pub refs: usize,
    /// Tasks among them.
    pub tasks: usize,
    /// Hooks of hangar in this clone.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub hooks: Vec<PathBuf>,
    /// Whether this clone remembers a policy that it has seen.
    pub remembers: bool,
    /// Whether they were removed.
    pub removed: bool,
    /// What stays and where.
    pub kept: Vec<String>,
}

/// Looks, removes nothing.
pub fn survey(here: &Here) -> Result<DeinitReport, Error> {
    let repo = here.repository()?;
    let names = names(&repo)?;
    // What the remote showed of a task is the same task.
    let tasks = names.iter().filter_map(|(name, _)| {
        let (_, id) = name.rsplit_once("/tasks/")?;
        Some(id)
    });
    let tasks: BTreeSet<&str> = tasks.collect();
    let mut kept = Vec::new();
    if let Some(work_tree) = repo.work_tree() {
        let (config, agents) = (repository::FILE, super::agents::FILE);
        if work_tree.join(config).exists() {
            kept.push(config_file(&repo, work_tree)?);
        }
        if work_tree.join(agents).exists() {
            kept.push(format!("{agents} in the work tree"));
        }
    }
    let pinned = crate::store::pins::pinned(&repo)?;
    if let Some(id) = pinned {
        let dir = here.data_dir(&id)?;
        if dir.join(trust::MachineRole::Grader.file_name()).exists() {
            kept.push(format!("keys in {}", dir.display()));
        }
    }
    kept.push("what other clones and the remote hold".into());
    Ok(DeinitReport {
        refs: names.len(),
        tasks: tasks.len(),
        hooks: install::installed(&repo)?,
        remembers: pinned.is_some(),
        removed: false,
        kept,
    })
}

/// `hangar.toml` names the policy that this clone forgets. Another one that comes with the code finds it in its
/// way.
fn config_file(repo: &Repository, work_tree: &Path) -> Result<String, Error> {
    let file = repository::FILE;
    let committed = match repo.head()? {
        Some(head) => repo.blob_at(head, file, crate::config::MAX_FILE)?.is_some(),
        None => false,
    };
    let away = if committed {
        format!("`git rm -f {file} && git commit -m \"Take hangar out\" {file}`")
    } else {
        format!("`rm {file}`")
    };
    let folder = work_tree.display();
    Ok(format!(
        "{file} in the work tree; before `git pull` brings another one, in {folder}: {away}"
    ))
}

/// Removes hooks, refs and hangar's own folder of this clone.
pub fn deinit(here: &Here) -> Result<DeinitReport, Error> {
    keep_from_agents(here.env.keys())?;
    let mut report = survey(here)?;
    let repo = here.repository()?;
    install::remove(&repo, &Hook::ALL)?;
    // The policy goes last: until then every command still finds a verified state.
    let mut all = names(&repo)?;
    all.sort_by_key(|(name, _)| name.ends_with("/policy"));
    for (name, id) in &all {
        repo.update_ref(name, Expected::At(*id), None, "hangar deinit")?;
    }
    remove_dir(&repo.hangar_dir())?;
    report.removed = true;
    Ok(report)
}

fn names(repo: &Repository) -> Result<Vec<(String, crate::model::object_id::ObjectId)>, Error> {
    let mut all = Vec::new();
    for prefix in [DEFAULT_PREFIX, BRANCH_PREFIX, "refs/hangar-remote/"] {
        all.extend(repo.list_refs(prefix)?);
    }
    Ok(all)
}

fn remove_dir(dir: &PathBuf) -> Result<(), Error> {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(files::Error {
            action: "remove",
            path: dir.clone(),
            source: error,
        }
        .into()),
        _ => Ok(()),
    }
}
