//! What a build step may not do: bend the tests' own folders or protected paths.
//!
//! The step runs code of the patch on a writable tree. Afterwards every process of it is dead, and
//! what lies where tests lie, or is protected, must still be what was put there before.

use super::Error;
use crate::base::files;
use crate::grade::protect::{Protection, parents};
use crate::model::listing::{Entry, Listing, Mode};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::{fs, io};

/// How many guarded paths of `tree` (a folder on the host) are not as `graded` has them: changed, gone, or
/// new; and what stands where a file of `sealed` goes. Links are looked at, never followed, and what a build
/// made unreadable is not as it was.
pub fn bent(
    tree: &Path,
    graded: &Listing,
    protection: &Protection,
    sealed: &[&[u8]],
) -> Result<usize, Error> {
    let sealed: BTreeSet<&[u8]> = sealed.iter().copied().collect();
    let above: BTreeSet<Vec<u8>> = sealed.iter().flat_map(|path| parents(path)).collect();
    let mut seen = BTreeSet::new();
    let mut bent = 0;
    walk(tree, |found| {
        let is_bent = match &found {
            Found::Unreadable => true,
            Found::Folder(path) => sealed.contains(path.as_slice()),
            Found::File(path) if above.contains(path) => true,
            Found::File(path) if protection.guards(path) => {
                seen.insert(path.clone());
                let file = tree.join(OsStr::from_bytes(path));
                match graded.get(path) {
                    Some(expected) => !is_same(&file, expected)?,
                    None => true,
                }
            }
            Found::File(_) => false,
        };
        bent += usize::from(is_bent);
        Ok(!is_bent)
    })?;
    let guarded = graded.iter().filter(|(path, _)| protection.guards(path));
    let gone = guarded.filter(|(path, _)| !seen.contains(*path)).count();
    Ok(bent + gone)
}

/// The paths of all that is no folder in `tree`, a folder on the host, as far as it can be read.
pub fn paths(tree: &Path) -> Result<Vec<Vec<u8>>, Error> {
    let mut paths = Vec::new();
    walk(tree, |found| {
        if let Found::File(path) = found {
            paths.push(path);
        }
        Ok(true)
    })?;
    Ok(paths)
}

/// What a walk comes upon.
enum Found {
    /// A folder whose rights were taken away, or that lies deeper than the kernel goes.
    Unreadable,
    Folder(Vec<u8>),
    /// Anything else; links too.
    File(Vec<u8>),
}

/// Folder by folder, with no more open and no more on the stack however deep the tree is. `each` says whether
/// to go into a folder.
fn walk(tree: &Path, mut each: impl FnMut(Found) -> Result<bool, Error>) -> Result<(), Error> {
    let mut folders = vec![Vec::new()];
    while let Some(above) = folders.pop() {
        let folder = tree.join(OsStr::from_bytes(&above));
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if is_of_the_tree(&error) => {
                each(Found::Unreadable)?;
                continue;
            }
            Err(source) => return Err(failed(&folder, source)),
        };
        for entry in entries {
            let entry = entry.map_err(|source| failed(&folder, source))?;
            let mut path = above.clone();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend(entry.file_name().as_bytes());
            let kind = entry.file_type();
            let kind = kind.map_err(|source| failed(&entry.path(), source))?;
            if !kind.is_dir() {
                each(Found::File(path))?;
            } else if each(Found::Folder(path.clone()))? {
                folders.push(path);
            }
        }
    }
    Ok(())
}

/// Whether a file on disk is this entry.
fn is_same(file: &Path, expected: &Entry) -> Result<bool, Error> {
    let meta = file
        .symlink_metadata()
        .map_err(|source| failed(file, source))?;
    let mode = if meta.is_symlink() {
        Mode::Symlink
    } else if !meta.is_file() {
        return Ok(false);
    } else if meta.permissions().mode() & 0o100 != 0 {
        Mode::Executable
    } else {
        Mode::Regular
    };
    // The length first: a file may be as large as the sandbox's disk.
    if mode != expected.mode || meta.len() != expected.len {
        return Ok(false);
    }
    let content = if mode == Mode::Symlink {
        fs::read_link(file).map(|target| target.into_os_string().into_vec())
    } else {
        fs::read(file)
    };
    match content {
        Ok(content) => Ok(Entry::of(mode, &content) == *expected),
        Err(error) if is_of_the_tree(&error) => Ok(false),
        Err(source) => Err(failed(file, source)),
    }
}

/// Whether the tree itself is why something can't be read: rights taken away, or a path longer than the
/// kernel takes.
fn is_of_the_tree(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidFilename
    )
}

fn failed(path: &Path, source: io::Error) -> Error {
    files::Error {
        action: "read",
        path: path.to_owned(),
        source,
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::files::write_atomic;
    use crate::flow::scratch::{remove, tests::dig};
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
        bent(dir, &listing(), &protection, &[b"tests/hidden/test_a.py"]).unwrap()
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

    #[test]
    fn nothing_may_stand_where_a_sealed_file_goes() {
        let file = tree();
        write_atomic(&file.path().join("tests/hidden"), b"", 0o644).unwrap();
        let folder = tree();
        fs::create_dir_all(folder.path().join("tests/hidden/test_a.py")).unwrap();
        let free = tree();
        fs::create_dir_all(free.path().join("tests/hidden")).unwrap();
        assert_eq!(count(free.path()), 0);
        for dir in [file, folder] {
            assert_eq!(count(dir.path()), 1, "{:?}", dir.path());
        }
    }

    #[test]
    fn a_tree_that_a_build_made_deep_is_read_to_where_the_kernel_goes() {
        let dir = tree();
        dig(dir.path(), 3000);
        assert_eq!(count(dir.path()), 1);
        remove(dir.path());
    }
}
