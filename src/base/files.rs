//! Files that are whole or not there: atomic writes, private folders, locks.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// An I/O failure with the path it happened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}", path.display())]
pub struct Error {
    /// What was tried, as a verb: `write`, `create`, `lock`.
    pub action: &'static str,
    /// On which path.
    pub path: PathBuf,
    /// Why the operating system refused.
    #[source]
    pub source: io::Error,
}

fn fail<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Error + use<'a> {
    move |source| Error {
        action,
        path: path.to_owned(),
        source,
    }
}

/// All the text that a reader gives, of at most `most` bytes. More is an error: what is cut off would
/// be taken for the whole.
pub fn whole_text(reader: impl Read, most: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    reader
        .take(most.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let limit = match most >> 20 {
            0 => format!("{most} bytes"),
            mib => format!("{mib} MiB"),
        };
        return Err(io::Error::other(format!("it is larger than {limit}")));
    }
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no UTF-8 text"))
}

/// Appends bytes to a file, which is made with `mode` where it is not there. Not synced: for what may
/// be lost in a crash.
pub fn append(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Error> {
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(mode)
        .open(path)
        .map_err(fail("open", path))?;
    file.write_all(bytes).map_err(fail("write", path))
}

/// Writes `bytes` to `path` so that a reader, also after a crash, sees the old or the new content.
/// `mode` is the permission of a new file (`0o600` for secrets).
pub fn write_atomic(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Error> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut temp = tempfile::Builder::new()
        .prefix(".hangar-")
        .permissions(fs::Permissions::from_mode(mode))
        .tempfile_in(dir)
        .map_err(fail("write", path))?;
    temp.write_all(bytes).map_err(fail("write", path))?;
    temp.as_file().sync_all().map_err(fail("sync", path))?;
    temp.persist(path).map_err(|error| Error {
        action: "write",
        path: path.to_owned(),
        source: error.error,
    })?;
    sync_dir(dir)
}

/// Puts a file out of the way, to the first name beside it that is free: `NAME.WORD`, `NAME.WORD-2`, …
/// Gives that path. Whoever calls holds the lock under which such files are made.
pub fn set_aside(path: &Path, word: &str) -> Result<PathBuf, Error> {
    let named = |ending: String| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let (mut to, mut number) = (named(format!(".{word}")), 2);
    while to.symlink_metadata().is_ok() {
        to = named(format!(".{word}-{number}"));
        number += 1;
    }
    fs::rename(path, &to).map_err(fail("rename", path))?;
    sync_dir(path.parent().unwrap_or(Path::new(".")))?;
    Ok(to)
}

/// Makes a rename or creation in `dir` durable.
pub fn sync_dir(dir: &Path) -> Result<(), Error> {
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(fail("sync", dir))
}

/// Creates `path` and its parents, readable by this user alone (mode 0700).
pub fn create_private_dir(path: &Path) -> Result<(), Error> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(fail("create", path))
}

/// A lock held while the value lives. The kernel frees it when the process dies.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Lock {
    /// Sets the time of the lock file to now, for those who wait: somebody was here.
    pub fn touch(&self) -> io::Result<()> {
        let at = |tv_nsec| rustix::fs::Timespec { tv_sec: 0, tv_nsec };
        let times = rustix::fs::Timestamps {
            last_access: at(rustix::fs::UTIME_OMIT),
            last_modification: at(rustix::fs::UTIME_NOW),
        };
        Ok(rustix::fs::futimens(&self.file, &times)?)
    }
}

/// What came of trying to take a lock.
#[derive(Debug)]
pub enum Attempt {
    /// It is ours until dropped.
    Taken(Lock),
    /// Another process holds it.
    Busy,
}

/// Takes the lock file at `path` without waiting (`flock`, never a PID file).
pub fn try_lock(path: &Path) -> Result<Attempt, Error> {
    let file = open_lock(path)?;
    match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Attempt::Taken(Lock { file })),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(Attempt::Busy),
        Err(errno) => Err(Error {
            action: "lock",
            path: path.to_owned(),
            source: errno.into(),
        }),
    }
}

/// The same, with a little patience: a process that just died may live on for a moment in a child
/// that was being started, which holds its locks until it becomes another program.
pub fn try_lock_patiently(path: &Path) -> Result<Attempt, Error> {
    for _ in 0..10 {
        if let Attempt::Taken(lock) = try_lock(path)? {
            return Ok(Attempt::Taken(lock));
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    try_lock(path)
}

/// Takes the lock file at `path`, waiting for its holder.
pub fn lock(path: &Path) -> Result<Lock, Error> {
    let file = open_lock(path)?;
    loop {
        match rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive) {
            Ok(()) => return Ok(Lock { file }),
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => {
                return Err(Error {
                    action: "lock",
                    path: path.to_owned(),
                    source: errno.into(),
                });
            }
        }
    }
}

fn open_lock(path: &Path) -> Result<File, Error> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path)
        .map_err(fail("lock", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_whole_or_not_at_all() {
        let lines = "0 1 refs/heads/a\n0 1 refs/heads/ä\n";
        let most = lines.len() as u64;
        assert_eq!(whole_text(lines.as_bytes(), most).unwrap(), lines);
        // Also where it would be cut at the end of a line, or in a character.
        for less in [17, most - 1, most - 2, most - 3] {
            let error = whole_text(lines.as_bytes(), less).unwrap_err();
            assert!(error.to_string().contains("larger than"), "{less}: {error}");
        }
        let binary = whole_text(&b"a\xff"[..], 10).unwrap_err();
        assert_eq!(binary.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn atomic_write_replaces_and_sets_the_mode() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        write_atomic(&path, b"one", 0o600).unwrap();
        write_atomic(&path, b"two", 0o600).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_set_aside_takes_the_place_of_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        for (text, name) in [("one", "key.old"), ("two", "key.old-2")] {
            write_atomic(&path, text.as_bytes(), 0o600).unwrap();
            let to = set_aside(&path, "old").unwrap();
            assert_eq!(to, dir.path().join(name));
        }
        assert_eq!(fs::read(dir.path().join("key.old")).unwrap(), b"one");
        assert!(!path.exists());
    }

    #[test]
    fn second_lock_is_busy_until_the_first_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let Attempt::Taken(first) = try_lock(&path).unwrap() else {
            panic!("free lock was busy")
        };
        assert!(matches!(try_lock(&path).unwrap(), Attempt::Busy));
        drop(first);
        assert!(matches!(try_lock(&path).unwrap(), Attempt::Taken(_)));
    }

    #[test]
    fn an_error_names_path_and_action() {
        let error = write_atomic(Path::new("/nonexistent/dir/file"), b"", 0o600).unwrap_err();
        assert_eq!(error.to_string(), "cannot write /nonexistent/dir/file");
    }
}
