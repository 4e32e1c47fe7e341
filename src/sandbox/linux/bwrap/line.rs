//! The options of one call of `bwrap`, which are carried out in their order.

use super::super::fault::{Doing as _, Fault};
use super::super::sys;
use rustix::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// A growing list of options, and the descriptors that it names.
#[derive(Default)]
pub(super) struct Line {
    words: Vec<u8>,
    fds: Vec<OwnedFd>,
    /// What stands already.
    made: BTreeSet<PathBuf>,
}

impl Line {
    /// Plain words.
    pub(super) fn words(&mut self, words: &[&str]) {
        for word in words {
            self.word(word.as_bytes());
        }
    }

    fn word(&mut self, word: &[u8]) {
        self.words.extend_from_slice(word);
        self.words.push(0);
    }

    /// An option with one path, that makes nothing.
    pub(super) fn path(&mut self, option: &str, path: &Path) {
        self.word(option.as_bytes());
        self.word(path.as_os_str().as_bytes());
    }

    /// An option with a path, or the text of a link, and a path inside.
    pub(super) fn pair(&mut self, option: &str, first: &Path, inside: &Path) {
        self.above(inside);
        self.path(option, first);
        self.word(inside.as_os_str().as_bytes());
    }

    /// The folders above `path`, open to everyone: left to itself bwrap makes them for its own user
    /// alone.
    fn above(&mut self, path: &Path) {
        let mut folders: Vec<&Path> = path
            .ancestors()
            .skip(1)
            .take_while(|folder| !self.made.contains(*folder))
            .filter(|folder| *folder != Path::new("/"))
            .collect();
        while let Some(folder) = folders.pop() {
            self.words(&["--perms", "0755"]);
            self.path("--dir", folder);
            self.made.insert(folder.to_owned());
        }
        self.made.insert(path.to_owned());
    }

    fn mode(&mut self, mode: u32) {
        self.words(&["--perms", &format!("{:04o}", mode & 0o7777)]);
    }

    /// A folder.
    pub(super) fn folder(&mut self, mode: u32, path: &Path) {
        self.above(path);
        self.mode(mode);
        self.path("--dir", path);
    }

    /// A tmpfs of at most `size` bytes.
    pub(super) fn tmpfs(&mut self, mode: u32, size: u64, path: &Path) {
        self.above(path);
        self.mode(mode);
        // 0 would be no bound.
        self.words(&["--size", &size.max(4096).to_string()]);
        self.path("--tmpfs", path);
    }

    /// A file with what `fd` holds. `option` says how it is laid.
    pub(super) fn file(
        &mut self,
        option: &str,
        mode: u32,
        fd: OwnedFd,
        path: &Path,
    ) -> Result<(), Fault> {
        sys::keep(fd.as_fd()).doing("hand over a file")?;
        self.above(path);
        self.mode(mode);
        self.words(&[option, &fd.as_raw_fd().to_string()]);
        self.word(path.as_os_str().as_bytes());
        self.fds.push(fd);
        Ok(())
    }

    /// A file with these bytes.
    pub(super) fn bytes(
        &mut self,
        option: &str,
        mode: u32,
        bytes: &[u8],
        path: &Path,
    ) -> Result<(), Fault> {
        self.file(option, mode, memory(bytes)?, path)
    }

    /// All options as a file in memory that stays open across exec, like all that it names.
    pub(super) fn finish(self) -> Result<OwnedFd, Fault> {
        let options = memory(&self.words)?;
        sys::keep(options.as_fd()).doing("hand over options")?;
        std::mem::forget(self.fds);
        Ok(options)
    }
}

fn memory(bytes: &[u8]) -> Result<OwnedFd, Fault> {
    let memory =
        rustix::fs::memfd_create("options", MemfdFlags::CLOEXEC).doing("make a file in memory")?;
    let mut file = File::from(memory);
    file.write_all(bytes)
        .and_then(|()| file.seek(SeekFrom::Start(0)))
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
        .doing("write a file in memory")?;
    Ok(file.into())
}
