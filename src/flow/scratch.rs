//! Work folders on the host that are gone afterwards, also after a crash.
//!
//! Each folder has a lock that the kernel frees when its owner dies; a new scratch sweeps folders
//! whose lock is free. Nothing secret lies here: trees of the repository and an agent's work.

use super::Error;
use crate::base::files::{self, Attempt, Lock};
use crate::base::random;
use crate::sandbox;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// A folder that is removed when the value goes.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    lock_path: PathBuf,
    _lock: Lock,
}

impl Scratch {
    /// Makes an empty folder below `cache/work`, given to the user that sandboxes run as.
    pub fn new(cache: &Path) -> Result<Self, Error> {
        let root = cache.join("work");
        files::create_private_dir(&root)?;
        sweep(&root);
        let name = random::hex::<8>();
        let lock_path = root.join(format!("{name}.lock"));
        let Attempt::Taken(lock) = files::try_lock(&lock_path)? else {
            return Err(Error::missing(
                "the work folder is in use",
                "run the command again",
            ));
        };
        let path = root.join(name);
        files::create_private_dir(&path)?;
        Ok(Self {
            path,
            lock_path,
            _lock: lock,
        })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A new empty folder inside, owned by the user that sandboxes run as.
    pub fn folder(&self, name: &str) -> Result<PathBuf, Error> {
        let path = self.path.join(name);
        let action = |source| files::Error {
            action: "create",
            path: path.clone(),
            source,
        };
        fs::create_dir(&path).map_err(action)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(action)?;
        let (user, group) = sandbox::owner();
        std::os::unix::fs::chown(&path, Some(user), Some(group)).map_err(action)?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.path);
        let _ = fs::remove_file(&self.lock_path);
    }
}

/// Removes what owners left that are no longer alive.
fn sweep(root: &Path) {
    let Ok(entries) = fs::read_dir(root) else {
        return;
    };
    for entry in entries.flatten() {
        let lock_path = entry.path();
        if lock_path.extension().is_none_or(|end| end != "lock") {
            continue;
        }
        if let Ok(Attempt::Taken(_lock)) = files::try_lock(&lock_path) {
            remove(&lock_path.with_extension(""));
            let _ = fs::remove_file(&lock_path);
        }
    }
}

/// Removes a folder, also where a program inside took its own write permission away or went very deep.
pub(super) fn remove(path: &Path) {
    if fs::remove_dir_all(path).is_ok() || !path.exists() {
        return;
    }
    make_removable(path);
    let _ = fs::remove_dir_all(path);
}

/// So many levels of the longest names fit into a path that the kernel takes.
const DEEP: usize = 10;

/// Gives its owner every folder back, and hangs what lies deeper at the top: what removes a tree holds a
/// descriptor for each level.
fn make_removable(path: &Path) {
    let mut folders = vec![(path.to_owned(), 0)];
    let mut hung = 0;
    while let Some((mut folder, mut depth)) = folders.pop() {
        let _ = fs::set_permissions(&folder, fs::Permissions::from_mode(0o700));
        if depth >= DEEP {
            let top = path.join(format!("deep-{hung}"));
            hung += 1;
            if fs::rename(&folder, &top).is_ok() {
                (folder, depth) = (top, 1);
            }
        }
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push((entry.path(), depth + 1));
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    #[test]
    fn a_scratch_goes_with_its_value_and_a_dead_one_is_swept() {
        let cache = tempfile::tempdir().unwrap();
        let first = Scratch::new(cache.path()).unwrap();
        let live = first.folder("x").unwrap();
        // What a killed process leaves: a folder and a lock that nobody holds.
        let root = cache.path().join("work");
        fs::create_dir_all(root.join("dead/sub")).unwrap();
        fs::File::create(root.join("dead.lock")).unwrap();
        let second = Scratch::new(cache.path()).unwrap();
        assert!(!root.join("dead").exists());
        assert!(live.exists(), "a live scratch must stay");
        drop((first, second));
        assert_eq!(fs::read_dir(root).unwrap().count(), 0);
    }

    #[test]
    fn a_tree_deeper_than_there_are_descriptors_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("dir");
        fs::create_dir(&dir).unwrap();
        dig(&dir, 3000);
        remove(&dir);
        assert!(!dir.exists());
    }

    /// Folders in each other, made as a program makes them: longer than any path.
    pub(crate) fn dig(dir: &Path, levels: usize) {
        use rustix::fs::{Mode, OFlags, mkdirat, openat};
        let mut at = rustix::fs::open(dir, OFlags::DIRECTORY, Mode::empty()).unwrap();
        for _ in 0..levels {
            mkdirat(&at, "a-folder", Mode::RWXU).unwrap();
            at = openat(&at, "a-folder", OFlags::DIRECTORY, Mode::empty()).unwrap();
        }
    }
}
