//! What a build step may not do: bend the tests' own folders or protected paths.
//!
//! The step runs code of the patch on a writable tree. Afterwards every process of it is dead, and
//! what lies where tests lie, or is protected, must still be what was put there before.

use super::Error;
use crate::base::files;
use crate::grade::protect::Protection;
use crate::model::listing::{Entry, Listing, Mode};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// How many guarded paths of `tree` (a folder on the host) are not as `graded` has them: changed,
/// gone, or new. Links are looked at, never followed.
pub fn bent(tree: &Path, graded: &Listing, protection: &Protection) -> Result<usize, Error> {
    let mut walk = Walk {
        graded,
        protection,
        seen: BTreeSet::new(),
        bent: 0,
    };
    walk.folder(tree, &[])?;
    let guarded = graded.iter().filter(|(path, _)| protection.guards(path));
    let gone = guarded
        .filter(|(path, _)| !walk.seen.contains(*path))
        .count();
    Ok(walk.bent + gone)
}

struct Walk<'a> {
    graded: &'a Listing,
    protection: &'a Protection,
    seen: BTreeSet<Vec<u8>>,
    bent: usize,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Path, above: &[u8]) -> Result<(), Error> {
        let fail = |source| files::Error {
            action: "read",
            path: folder.to_owned(),
            source,
        };
        for entry in fs::read_dir(folder).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let mut path = above.to_vec();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend(entry.file_name().as_bytes());
            let kind = entry.file_type().map_err(fail)?;
            if kind.is_dir() {
                self.folder(&entry.path(), &path)?;
            } else if self.protection.guards(&path) {
                self.leaf(&entry.path(), path)?;
            }
        }
        Ok(())
    }

    fn leaf(&mut self, file: &Path, path: Vec<u8>) -> Result<(), Error> {
        let same = self.graded.get(&path).copied() == entry(file)?;
        if !same {
            self.bent += 1;
        }
        self.seen.insert(path);
        Ok(())
    }
}

/// The entry that a file on disk would have; `None` for what no tree can hold.
fn entry(file: &Path) -> Result<Option<Entry>, Error> {
    let fail = |source| files::Error {
        action: "read",
        path: file.to_owned(),
        source,
    };
    let meta = file.symlink_metadata().map_err(fail)?;
    if meta.is_symlink() {
        let target = fs::read_link(file).map_err(fail)?;
        return Ok(Some(Entry::of(
            Mode::Symlink,
            target.as_os_str().as_bytes(),
        )));
    }
    if !meta.is_file() {
        return Ok(None);
    }
    let executable = meta.permissions().mode() & 0o100 != 0;
    let mode = if executable {
        Mode::Executable
    } else {
        Mode::Regular
    };
    Ok(Some(Entry::of(mode, &fs::read(file).map_err(fail)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::files::write_atomic;
    use crate::model::plan::{Framework, Plan};

    fn listing() -> Listing {
        let mut listing = Listing::new();
        listing.insert("tests/helper.py", Entry::of(Mode::Regular, b"FIVE = 5\n"));
        listing.insert("calc.py", Entry::of(Mode::Regular, b"x\n"));
        listing
    }

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("tests")).unwrap();
        write_atomic(&dir.path().join("tests/helper.py"), b"FIVE = 5\n", 0o644).unwrap();
        write_atomic(&dir.path().join("calc.py"), b"x\n", 0o644).unwrap();
        dir
    }

    fn count(dir: &Path) -> usize {
        let plan = Plan::new(Framework::Pytest);
        let protection = Protection::new(&plan, &["**/conftest.py"]).unwrap();
        bent(dir, &listing(), &protection).unwrap()
    }

    #[test]
    fn what_a_build_makes_elsewhere_is_its_own_affair() {
        let dir = tree();
        write_atomic(&dir.path().join("calc.py"), b"built\n", 0o644).unwrap();
        write_atomic(&dir.path().join("calc.so"), b"built\n", 0o644).unwrap();
        assert_eq!(count(dir.path()), 0);
    }

    #[test]
    fn tests_and_protected_paths_may_not_change_appear_or_go() {
        let changed = tree();
        write_atomic(
            &changed.path().join("tests/helper.py"),
            b"FIVE = Any()\n",
            0o644,
        )
        .unwrap();
        let appeared = tree();
        write_atomic(
            &appeared.path().join("conftest.py"),
            b"import pytest\n",
            0o644,
        )
        .unwrap();
        let gone = tree();
        fs::remove_file(gone.path().join("tests/helper.py")).unwrap();
        let linked = tree();
        fs::rename(linked.path().join("tests"), linked.path().join("old")).unwrap();
        std::os::unix::fs::symlink("old", linked.path().join("tests")).unwrap();
        for dir in [changed, appeared, gone, linked] {
            assert!(count(dir.path()) > 0, "{:?}", dir.path());
        }
    }
}
