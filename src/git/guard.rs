//! One writer of refs at a time among hangar's own processes, and what a killed one left.
//!
//! Git's lock of a ref is a file: a process that dies while it holds one leaves the ref locked for
//! ever. So each writer notes which lock files it is about to make; whoever holds the guard next
//! (the kernel frees it when a process dies) and finds such a note removes those files: at once
//! where they hold what the note says, else when they stay the same for some seconds, since the git
//! program may have made them in between.

use super::error::{Error, file};
use super::patch::put;
use super::repository::Repository;
use crate::base::files::{self, Attempt, Lock};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How long a lock file of unknown origin must stay the same to count as left behind.
const SETTLE: Duration = Duration::from_secs(3);

/// Held while a ref is changed.
pub(super) struct Guard {
    lock: Lock,
    note: PathBuf,
}

impl Repository {
    /// The guard, if no other process has it. Removes lock files that a killed holder left.
    pub(super) fn try_guard(&self) -> Result<Option<Guard>, Error> {
        let dir = self.hangar_dir();
        if !dir.is_dir() {
            files::create_private_dir(&dir)?;
        }
        let Attempt::Taken(lock) = files::try_lock(&self.guard_path())? else {
            return Ok(None);
        };
        let guard = Guard {
            lock,
            note: dir.join("refs.held"),
        };
        guard.recover()?;
        Ok(Some(guard))
    }

    /// The file whose lock is the guard. Its time is that of the last change that was done.
    pub(super) fn guard_path(&self) -> PathBuf {
        self.hangar_dir().join("refs.lock")
    }
}

impl Guard {
    /// Notes the lock files that this process is about to make, each with what it will write to it
    /// (nothing: not known). Before the first of them is made.
    pub(super) fn note(&self, locks: &[(PathBuf, String)]) -> Result<(), Error> {
        let lines: Vec<_> = locks
            .iter()
            .filter_map(|(lock, content)| Some(format!("{content} {}\n", lock.to_str()?)))
            .collect();
        put(&self.note, lines.concat().as_bytes())
    }

    /// The change is done: none is held any more, and those who wait see that it gets on.
    pub(super) fn done(self) -> Result<(), Error> {
        self.clear()?;
        // Who waits gives up a little sooner where this fails.
        let _ = self.lock.touch();
        Ok(())
    }

    /// None is held any more.
    pub(super) fn clear(&self) -> Result<(), Error> {
        match fs::remove_file(&self.note) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(file("remove", &self.note)(error))
            }
            _ => Ok(()),
        }
    }

    fn recover(&self) -> Result<(), Error> {
        let Ok(text) = fs::read_to_string(&self.note) else {
            return Ok(());
        };
        let mut unknown = Vec::new();
        for (content, path) in text.lines().filter_map(|line| line.split_once(' ')) {
            let path = Path::new(path);
            let Some(first) = identity(path) else {
                continue;
            };
            let found = fs::read(path).unwrap_or_default();
            if !content.is_empty() && found.trim_ascii() == content.as_bytes() {
                remove(path)?;
            } else {
                unknown.push((path.to_owned(), first));
            }
        }
        remove_if_dead(unknown)?;
        self.clear()
    }
}

/// Removes lock files that a killed writer announced and that stay as they were: without the announced
/// content they may be the git program's, which is done with them soon.
fn remove_if_dead(mut locks: Vec<(PathBuf, String)>) -> Result<(), Error> {
    let end = Instant::now() + SETTLE;
    while !locks.is_empty() && Instant::now() < end {
        thread::sleep(Duration::from_millis(10));
        locks.retain(|(path, first)| identity(path).as_ref() == Some(first));
    }
    locks.iter().try_for_each(|(path, _)| remove(path))
}

fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(file("remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// Which file this is, and whether its maker is at work: inode and time of the content. The git program
/// keeps `packed-refs.lock` empty while it writes `packed-refs.new` beside it.
fn identity(path: &Path) -> Option<String> {
    let meta = fs::symlink_metadata(path).ok()?;
    let beside = fs::symlink_metadata(path.with_extension("new")).ok();
    let times = [Some(meta), beside].map(|meta| {
        let meta = meta?;
        Some((meta.ino(), meta.mtime(), meta.mtime_nsec()))
    });
    Some(format!("{times:?}"))
}
