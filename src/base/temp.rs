//! Temporary folders that are gone afterwards, also after a crash.
//!
//! Each holds a lock file that the kernel frees when its owner dies; the first folder that a
//! process makes sweeps those whose lock is free. Nothing secret lies in them.

use super::files::{self, Attempt, Lock};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Once;
use tempfile::TempDir;

/// Every name begins so.
const PREFIX: &str = "hangar-";
/// The lock file in each folder.
const LOCK: &str = "lock";

/// A folder below the temporary folder of the system, removed when the value goes.
#[derive(Debug)]
pub struct Folder {
    // Goes first: the lock is held until nothing is left.
    dir: TempDir,
    _lock: Lock,
}

impl Folder {
    /// Makes a folder of this mode. `name` tells people what it is for.
    pub fn new(name: &str, mode: u32) -> io::Result<Self> {
        static SWEPT: Once = Once::new();
        let parent = std::env::temp_dir();
        SWEPT.call_once(|| sweep(&parent));
        Self::new_in(&parent, name, mode)
    }

    fn new_in(parent: &Path, name: &str, mode: u32) -> io::Result<Self> {
        let mut last = None;
        // Another process may sweep what has no lock yet.
        for _ in 0..10 {
            let dir = tempfile::Builder::new()
                .prefix(&format!("{PREFIX}{name}-"))
                .permissions(Permissions::from_mode(mode))
                .tempdir_in(parent)?;
            match files::try_lock(&dir.path().join(LOCK)) {
                Ok(Attempt::Taken(lock)) if dir.path().join(LOCK).exists() => {
                    return Ok(Self { dir, _lock: lock });
                }
                Ok(_) => {}
                Err(error) => last = Some(error.source),
            }
        }
        Err(last.unwrap_or_else(|| io::Error::other("a temporary folder vanished")))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Removes this user's folders that nobody holds any more.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        if entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(PREFIX.as_bytes())
        {
            sweep_one(&entry.path());
        }
    }
}

fn sweep_one(path: &Path) {
    let own = rustix::process::geteuid().as_raw();
    let is_own_folder = |path: &Path| {
        let meta = path.symlink_metadata();
        meta.is_ok_and(|meta| meta.is_dir() && meta.uid() == own)
    };
    let lock: PathBuf = path.join(LOCK);
    if !is_own_folder(path) {
        return;
    }
    if !lock.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
        // Its owner died before it had the lock, or will make another. Only if it is empty.
        let _ = fs::remove_dir(path);
        return;
    }
    if let Ok(Attempt::Taken(_lock)) = files::try_lock(&lock) {
        let _ = fs::remove_dir_all(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_dead_process_left_is_swept_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let live = Folder::new_in(parent.path(), "live", 0o700).unwrap();
        let dead = parent.path().join("hangar-dead-x");
        let bare = parent.path().join("hangar-bare-x");
        let foreign = parent.path().join("hangar-foreign");
        let other = parent.path().join("other-x");
        for dir in [&dead, &bare, &foreign, &other] {
            fs::create_dir(dir).unwrap();
        }
        for file in [
            dead.join(LOCK),
            dead.join("rest"),
            foreign.join("file"),
            other.join(LOCK),
        ] {
            fs::File::create(file).unwrap();
        }
        std::os::unix::fs::symlink(&other, parent.path().join("hangar-link")).unwrap();
        sweep(parent.path());
        assert!(!dead.exists() && !bare.exists());
        assert!(live.path().exists() && foreign.exists() && other.join(LOCK).exists());
        let path = live.path().to_owned();
        drop(live);
        assert!(!path.exists());
    }
}
