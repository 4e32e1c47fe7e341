//! Programs that tests, package clients and agents need: found on the host, seen at the same path
//! inside.

use super::Error;
use super::host::Host;
use super::prepare::{Prepared, prepare};
use crate::base::process;
use crate::config::user::User;
use crate::git::Repository;
use crate::grade::adapter::{Adapter, adapter};
use crate::grade::call::{Layout, Tools};
use crate::model::object_id::ObjectId;
use crate::model::plan::Plan;
use crate::sandbox::spec::Mount;
use crate::sandbox::toolchain;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Folders that every sandbox has anyway.
const SYSTEM: [&str; 5] = ["/usr", "/bin", "/sbin", "/lib", "/lib64"];

/// Programs by name, and the host folders that they need beside the system's own.
#[derive(Debug, Clone, Default)]
pub struct Toolbox {
    /// Absolute inside paths by name.
    pub tools: Tools,
    folders: BTreeSet<PathBuf>,
}

impl Toolbox {
    /// Finds what an adapter needs. What `prepare` left wins, then the user configuration, then
    /// `PATH`.
    pub fn find(
        host: &Host<'_>,
        adapter: &dyn Adapter,
        plan: &Plan,
        prepared: Option<&Prepared>,
    ) -> Result<Self, Error> {
        let mut toolbox = Self::default();
        for tool in adapter.tools(plan) {
            let inside = Layout::default().prepared;
            let from_prepared = prepared
                .zip(tool.prepared)
                .filter(|(prepared, path)| prepared.has(path));
            if let Some((prepared, path)) = from_prepared {
                toolbox.tools.insert(&tool.name, inside.join(path));
                toolbox.bind_all(&prepared.folder().join(path));
                continue;
            }
            let program = find_program(&host.user, &tool.name)?.ok_or_else(|| {
                Error::missing(
                    format!("`{}` is not on this machine", tool.name),
                    tool.remedy.clone(),
                )
            })?;
            toolbox.add(&tool.name, &program);
        }
        Ok(toolbox)
    }

    /// Adds a program of the host.
    pub fn add(&mut self, name: &str, program: &Path) {
        let found = toolchain::find(program);
        self.folders.extend(found.binds);
        self.tools.insert(name, found.program);
    }

    fn bind_all(&mut self, program: &Path) {
        self.folders.extend(toolchain::binds(program));
    }

    /// The folders as mounts, nothing inside another.
    pub fn mounts(&self) -> Vec<Mount> {
        let needed: Vec<&PathBuf> = self
            .folders
            .iter()
            .filter(|folder| !SYSTEM.iter().any(|system| folder.starts_with(system)))
            .collect();
        let outer = needed.iter().filter(|folder| {
            !needed
                .iter()
                .any(|other| *other != **folder && folder.starts_with(other))
        });
        outer
            .map(|folder| Mount::ReadOnly {
                host: (*folder).clone(),
                inside: (*folder).clone(),
            })
            .collect()
    }
}

/// A program by the user's configuration, else by `PATH`. One that is configured and is not there is no
/// reason to take another.
pub fn find_program(user: &User, name: &str) -> Result<Option<PathBuf>, Error> {
    // The documented key is `python`; `python3` is what is looked for on `PATH`.
    let keys = [Some(name), (name == "python3").then_some("python")];
    let mut keys = keys.into_iter().flatten();
    let named = keys.find_map(|key| Some((key, user.toolchain.get(key)?)));
    match named {
        Some((_, program)) if program.is_file() => Ok(Some(program.clone())),
        Some((key, program)) => Err(Error::missing(
            format!(
                "`toolchain.{key}` names {}, which is no file",
                program.display()
            ),
            format!("name the right one: hangar config set toolchain.{key} PATH"),
        )),
        None => Ok(process::find(Path::new(name))),
    }
}

/// What the project's own tests need to run: programs of this machine and what `prepare` left.
#[derive(Debug)]
pub struct Tooling {
    /// Programs.
    pub toolbox: Toolbox,
    /// Dependencies.
    pub prepared: Option<Prepared>,
}

impl Tooling {
    /// Finds what a plan needs at this base.
    pub fn find(
        host: &Host<'_>,
        repo: &Repository,
        base: ObjectId,
        plan: &Plan,
    ) -> Result<Self, Error> {
        let prepared = prepare(host, repo, base, plan)?;
        let toolbox = Toolbox::find(host, adapter(plan.framework), plan, prepared.as_ref())?;
        Ok(Self { toolbox, prepared })
    }

    /// How a sandbox sees them.
    pub fn mounts(&self) -> impl Iterator<Item = Mount> {
        let prepared = self.prepared.iter().flat_map(Prepared::mounts);
        self.toolbox.mounts().into_iter().chain(prepared)
    }

    /// Folders of the programs inside, for `PATH`.
    pub fn folders(&self) -> Vec<PathBuf> {
        self.toolbox.tools.folders()
    }
}
