//! Packages that a patch asks for, where the approved plan allows it (`reprepare`).
//!
//! The step runs once more, on the graded tree before any test is there, in a sandbox of its own. What it
//! runs there is code that nobody has looked at: it sees no credential, reaches the package index alone,
//! and what it leaves is kept under the digest of everything that it was made from, apart from what the base
//! has. In a grade it lies behind the base's packages and behind the tree, as one more folder of modules:
//! whatever the base has stays what it is, and what is new has no more say than code of the patch.

use super::{Folders, Prepared, key, left, run, toolbox};
use crate::config::registries::{self, Machine};
use crate::flow::Error;
use crate::flow::host::Host;
use crate::flow::scratch::Scratch;
use crate::git::Repository;
use crate::grade::suite;
use crate::model::object_id::ObjectId;
use crate::model::plan::Plan;
use crate::sandbox::spec::End;
use std::path::{Path, PathBuf};

/// Where a grade sees what the step left.
pub(super) const INSIDE: &str = "/added";

/// What became of the step.
#[derive(Debug, PartialEq, Eq)]
pub enum Reprepared {
    /// It was not needed: the patch leaves alone what the step reads, or the plan does not allow it.
    No,
    /// The base's packages, and behind them what the patch adds.
    Yes(Added),
    /// The step fails with the patch.
    Fails,
}

/// Packages that only the patch's own step installs.
#[derive(Debug, PartialEq, Eq)]
pub struct Added {
    root: PathBuf,
    /// What of it a grade uses: modules that the base's packages do not have.
    pub modules: suite::Added,
}

impl Prepared {
    /// The base's packages with those that a patch adds behind them.
    #[must_use]
    pub fn with(&self, added: &Added) -> Self {
        Self {
            added: Some(added.root.clone()),
            ..self.clone()
        }
    }
}

/// Runs the step of a plan on the graded tree, where it may and must be run. `base` is what it left there.
pub fn reprepare(
    host: &Host<'_>,
    repo: &Repository,
    trees: (ObjectId, ObjectId),
    plan: &Plan,
    base: Option<&Prepared>,
) -> Result<Reprepared, Error> {
    let (base_tree, tree) = trees;
    let Some(base) = base.filter(|_| plan.reprepare) else {
        return Ok(Reprepared::No);
    };
    let (before, after) = (
        repo.listing(base_tree)?.listing,
        repo.listing(tree)?.listing,
    );
    if key::inputs(&before, &plan.prepare) == key::inputs(&after, &plan.prepare) {
        return Ok(Reprepared::No);
    }
    // Its code is in the tree: every file counts.
    let made_from = [
        base.root.as_os_str().as_encoded_bytes(),
        after.digest().as_bytes(),
    ]
    .concat();
    let root = host.cache_folder("prepared-of-patch", &[&made_from]);
    let made = super::kept(host, &root, "preparing what the patch asks for", || {
        make(host, repo, tree, plan)
    })?;
    Ok(if made {
        Reprepared::Yes(added(root, base))
    } else {
        Reprepared::Fails
    })
}

/// Runs the step. `None` where it ends badly by itself.
fn make(
    host: &Host<'_>,
    repo: &Repository,
    tree: ObjectId,
    plan: &Plan,
) -> Result<Option<Scratch>, Error> {
    let machine = Machine {
        env: &host.env,
        toolchain: &host.user.toolchain,
        inside: Path::new(super::CLIENTS),
    };
    let setup = registries::ask_openly(&machine)?;
    let scratch = Scratch::new(&host.cache)?;
    let folders = Folders::new(&scratch)?;
    repo.materialise(tree, &folders.src, Some(crate::sandbox::owner()))?;
    let (step, records) = run(host, plan, &toolbox(host, plan)?, &setup, &folders)?;
    crate::flow::scratch::remove(&folders.src);
    if step.as_ref().map(|step| step.end) == Some(End::Exited(0)) {
        return Ok(Some(scratch));
    }
    match super::why::unreachable(step.as_ref(), &records) {
        Some(error) => Err(error),
        None => Ok(None),
    }
}

/// Looks at what the step left, by names alone: nothing in it is opened, no link followed.
fn added(root: PathBuf, base: &Prepared) -> Added {
    let folder = root.join("prepared");
    let mut modules = suite::Added::default();
    // Where a link stands in for one of its folders, nobody would have seen the names.
    let found = left::sites(&folder);
    for site in left::sites(&base.folder()) {
        let Ok(below) = site.strip_prefix(base.folder()) else {
            continue;
        };
        let theirs = folder.join(below);
        if !found.contains(&theirs) {
            continue;
        }
        modules.places.push(Path::new(INSIDE).join(below));
        let known = left::modules(&site);
        // A folder without `__init__.py` is one that other folders of the same name add to.
        let is_shared = |name: &String| {
            let package = site.join(name);
            package.is_dir() && !package.join("__init__.py").exists()
        };
        let new = left::modules(&theirs).into_iter();
        modules
            .names
            .extend(new.filter(|name| !known.contains(name) || is_shared(name)));
    }
    Added { root, modules }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::files;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn prepared(root: &Path, files: &[&str]) -> Prepared {
        let site = root.join("prepared/venv/lib/python3.12/site-packages");
        for path in files {
            let path = site.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            files::write_atomic(&path, b"", 0o644).unwrap();
        }
        Prepared {
            root: root.to_owned(),
            added: None,
        }
    }

    #[test]
    fn names_are_those_that_the_base_lacks_or_shares() {
        let dir = tempfile::tempdir().unwrap();
        let base = prepared(
            &dir.path().join("base"),
            &["helper.py", "shared/one/__init__.py", "whole/__init__.py"],
        );
        let theirs = prepared(
            &dir.path().join("theirs"),
            &[
                "helper.py",
                "shared/two/__init__.py",
                "whole/__init__.py",
                "minus.cpython-312-x86_64-linux-gnu.so",
                "plus/__init__.py",
                "plus-1.0.dist-info/METADATA",
                "start.pth",
                "__pycache__/x.pyc",
            ],
        );
        let found = added(theirs.root, &base).modules;
        assert_eq!(Vec::from_iter(&found.names), ["minus", "plus", "shared"]);
        let place = "/added/venv/lib/python3.12/site-packages";
        assert_eq!(found.places, [PathBuf::from(place)]);
    }

    #[test]
    fn links_in_place_of_its_folders_add_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let base = prepared(&dir.path().join("base"), &["helper.py"]);
        let theirs = prepared(&dir.path().join("theirs"), &["minus.py"]);
        let folder = theirs.root.join("prepared");
        fs::rename(folder.join("venv"), folder.join("other")).unwrap();
        symlink("other", folder.join("venv")).unwrap();
        assert_eq!(added(theirs.root, &base).modules, suite::Added::default());
    }
}
