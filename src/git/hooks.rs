//! Where Git looks for hooks here, and whose folder that is.

use super::error::{Error, store};
use super::repository::Repository;
use gix::config::Source;
use std::path::{Path, PathBuf};

/// Whose folder Git takes hooks from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HooksOwner {
    /// This repository's alone: its own `hooks`, or what its own configuration names.
    Repository,
    /// It lies in the work tree: what is in it comes with the code.
    WorkTree,
    /// Named outside this repository's configuration: other repositories use it too.
    Shared,
}

/// The folder that Git takes hooks from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HooksFolder {
    /// Absolute.
    pub path: PathBuf,
    /// Whose it is.
    pub owner: HooksOwner,
}

impl Repository {
    /// The folder of hooks that lies in the repository itself, which linked work trees share.
    pub fn own_hooks(&self) -> PathBuf {
        self.common_dir().join("hooks")
    }

    /// The folder that Git takes hooks from: `core.hooksPath`, else the repository's own.
    pub fn hooks_folder(&self) -> Result<HooksFolder, Error> {
        let snapshot = self.inner.config_snapshot();
        let sections = snapshot.plumbing().sections_by_name("core");
        let named = sections.into_iter().flatten().filter_map(|section| {
            let own = section.header().subsection_name().is_none();
            let set = own && section.value("hooksPath").is_some();
            set.then(|| section.meta().source)
        });
        let Some(source) = named.last() else {
            return Ok(HooksFolder {
                path: self.own_hooks(),
                owner: HooksOwner::Repository,
            });
        };
        let path = snapshot
            .trusted_path("core.hooksPath")
            .map_err(store("read core.hooksPath"))?
            .unwrap_or_default();
        // Relative to where hooks run.
        let path = plain(
            &self
                .work_tree()
                .unwrap_or_else(|| self.git_dir())
                .join(path),
        );
        let inside = |dir: &Path| path.starts_with(plain(dir));
        let in_work_tree = self.work_tree().is_some_and(inside);
        let owner = if in_work_tree && !inside(self.common_dir()) && !inside(self.git_dir()) {
            HooksOwner::WorkTree
        } else if matches!(source, Source::Local | Source::Worktree) {
            HooksOwner::Repository
        } else {
            HooksOwner::Shared
        };
        Ok(HooksFolder { path, owner })
    }
}

/// A path without links, as far as it is there.
fn plain(path: &Path) -> PathBuf {
    for above in path.ancestors() {
        if let Ok(real) = std::fs::canonicalize(above) {
            let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
            return real.join(rest);
        }
    }
    path.to_owned()
}
