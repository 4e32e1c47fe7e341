//! Lays files from memory into the tree, and reads the tree when every process of it is dead.
//!
//! Invariants: a body is only ever written to tmpfs; no link is followed on the way; what is read
//! back is read by descriptor, and only regular files are opened.

use super::fault::{Doing as _, Fault};
use super::tree::{self, Ground, Owner};
use crate::base::redact::Secret;
use crate::sandbox::spec::{Collect, LaidFile, Spec};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, FileType, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;

/// What the functions below hand paths to may fail, and then the walk does.
type Done = Result<(), Fault>;

/// Deepest folder that is read back.
const MAX_DEPTH: usize = 200;
/// Most entries that are hashed.
const MAX_ENTRIES: usize = 500_000;
/// Most bytes that are hashed; a sparse file can claim any size.
const MAX_BYTES: u64 = 8 << 30;

/// Creates a file that must not be there yet.
pub(super) fn write_new(
    folder: &OwnedFd,
    name: &[u8],
    content: &[u8],
    mode: u32,
) -> Result<(), Errno> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, name, flags, Mode::from_raw_mode(mode & 0o7777))?;
    let mut file = File::from(file);
    file.write_all(content)
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// Lays `files` in order. Whatever stands at a file's path is unlinked; a link or a file where a
/// folder must be is refused. A file that its owner may write belongs to the sandbox's user, with
/// the folder it lies in.
pub(super) fn files(root: &OwnedFd, spec: &Spec, owner: Owner) -> Result<(), Fault> {
    spec.files
        .iter()
        .try_for_each(|file| lay(root, spec, file, owner))
}

fn lay(root: &OwnedFd, spec: &Spec, file: &LaidFile, owner: Owner) -> Result<(), Fault> {
    let path = &file.path;
    if tree::ground(spec, path) != Ground::Ours {
        return Err(Fault::blocked("lay a file outside tmpfs", path));
    }
    let (folder, name) = tree::parent(root, path, Ground::Ours)?;
    match rustix::fs::unlinkat(&folder, name.as_slice(), AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(Errno::ISDIR | Errno::PERM) => {
            return Err(Fault::blocked("replace a folder by a file", path));
        }
        Err(errno) => return Err(errno).doing_on("unlink", path),
    }
    write_new(&folder, &name, file.bytes.expose(), file.mode).doing_on("lay a file", path)?;
    if file.mode & 0o200 == 0 {
        return Ok(());
    }
    let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
    let no_link = AtFlags::SYMLINK_NOFOLLOW;
    rustix::fs::chownat(&folder, name.as_slice(), Some(uid), Some(gid), no_link)
        .and_then(|()| {
            let itself = AtFlags::EMPTY_PATH;
            rustix::fs::chownat(&folder, "", Some(uid), Some(gid), itself)
        })
        .doing_on("hand over", path)
}

/// What a walk over the finished tree finds.
pub(super) enum Found {
    /// A regular file.
    File {
        /// Opened for reading.
        file: File,
        /// Size when opened.
        size: u64,
        /// Whether its owner may execute it.
        executable: bool,
    },
    /// The folder that the walk begins in.
    Top,
    /// A link and its target text.
    Link(Vec<u8>),
    /// A device, socket or FIFO.
    Special,
    /// The walk stops here, for this reason.
    Cut(&'static str),
}

/// Walks everything below `path` in byte order and shows it to `see`.
pub(super) fn walk(
    root: &OwnedFd,
    path: &std::path::Path,
    see: &mut dyn FnMut(&[u8], Found) -> Done,
) -> Result<(), Fault> {
    let name = path.as_os_str().as_bytes();
    let relative = name.strip_prefix(b"/").unwrap_or(name);
    let relative: &[u8] = if relative.is_empty() { b"." } else { relative };
    match tree::open_folder(root, relative) {
        Ok(folder) => {
            see(name, Found::Top)?;
            let mut walker = Walker { entries: 0, see };
            walker.folder(&folder, name.strip_suffix(b"/").unwrap_or(name), 0)
        }
        Err(Errno::NOENT) => Ok(()),
        Err(Errno::NOTDIR) => {
            // A single file, or a file where a folder above it should be: then there is nothing.
            let (folder, last) = match tree::parent(root, path, Ground::Foreign) {
                Err(fault) if fault.blocked => return Ok(()),
                found => found?,
            };
            let mut walker = Walker { entries: 0, see };
            let last =
                std::ffi::CString::new(last).map_err(|_| Fault::blocked("read back", path))?;
            walker.entry(&folder, &last, name, 0)
        }
        Err(Errno::LOOP) => see(name, Found::Cut("a link stands in the way")),
        Err(errno) => Err(errno).doing_on("read back", path),
    }
}

fn list(folder: &OwnedFd) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    rustix::fs::openat(folder, ".", flags, Mode::empty())
}

/// Where programs took their own right to read away and we have no more than theirs: gives it back.
/// Nothing of theirs runs any more, so what stands at `name` is what was looked at.
fn readable(
    errno: Errno,
    folder: &OwnedFd,
    name: &std::ffi::CStr,
    stat: &rustix::fs::Stat,
) -> Result<(), Errno> {
    if errno != Errno::ACCESS {
        return Err(errno);
    }
    let mode = Mode::from_raw_mode((stat.st_mode & 0o7777) | 0o500);
    rustix::fs::chmodat(folder, name, mode, AtFlags::empty())
}

struct Walker<'see> {
    entries: usize,
    see: &'see mut dyn FnMut(&[u8], Found) -> Done,
}

impl Walker<'_> {
    fn folder(&mut self, folder: &OwnedFd, path: &[u8], depth: usize) -> Result<(), Fault> {
        if depth > MAX_DEPTH {
            return (self.see)(path, Found::Cut("too deep"));
        }
        let listed = list(folder).doing("read back what the programs left")?;
        let mut names = Vec::new();
        for entry in Dir::new(listed).doing("read back what the programs left")? {
            let entry = entry.doing("read back what the programs left")?;
            if matches!(entry.file_name().to_bytes(), b"." | b"..") {
                continue;
            }
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return (self.see)(path, Found::Cut("too many files"));
            }
            names.push(entry.file_name().to_owned());
        }
        names.sort_unstable();
        for name in names {
            let mut below = Vec::with_capacity(path.len() + 1 + name.to_bytes().len());
            below.extend_from_slice(path);
            below.push(b'/');
            below.extend_from_slice(name.to_bytes());
            self.entry(folder, &name, &below, depth)?;
        }
        Ok(())
    }

    fn entry(
        &mut self,
        folder: &OwnedFd,
        name: &std::ffi::CStr,
        path: &[u8],
        depth: usize,
    ) -> Result<(), Fault> {
        let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
            .doing("read back what the programs left")?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                let next =
                    tree::open_folder(folder, name).doing("read back what the programs left")?;
                let listed = list(&next).or_else(|errno| {
                    readable(errno, folder, name, &stat)?;
                    list(&next)
                });
                drop(next);
                self.folder(
                    &listed.doing("read back what the programs left")?,
                    path,
                    depth + 1,
                )
            }
            FileType::RegularFile => {
                let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY | OFlags::NONBLOCK;
                let open = || rustix::fs::openat(folder, name, flags, Mode::empty());
                let file = open()
                    .or_else(|errno| {
                        readable(errno, folder, name, &stat)?;
                        open()
                    })
                    .doing("read back what the programs left")?;
                let found = Found::File {
                    file: File::from(file),
                    size: u64::try_from(stat.st_size).unwrap_or(u64::MAX),
                    executable: stat.st_mode & 0o100 != 0,
                };
                (self.see)(path, found)
            }
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(folder, name, Vec::new())
                    .doing("read back what the programs left")?;
                (self.see)(path, Found::Link(target.into_bytes()))
            }
            _ => (self.see)(path, Found::Special),
        }
    }
}

/// Hashes everything below `path` (see `Outcome::hashes`). What lies too deep, is no file, or is past
/// [`MAX_BYTES`] has no hash. No fault names a path: names inside are chosen by the programs.
pub(super) fn hash(
    root: &OwnedFd,
    path: &std::path::Path,
    report: &mut dyn FnMut(&[u8], [u8; 32]) -> Done,
) -> Result<(), Fault> {
    let mut budget = MAX_BYTES;
    walk(root, path, &mut |path, found| {
        let digest: [u8; 32] = match found {
            Found::File { file, size, .. } => {
                let Some(left) = budget.checked_sub(size) else {
                    return Ok(());
                };
                budget = left;
                let mut hash = Sha256::new();
                let mut file = file.take(size);
                let mut buffer = vec![0; 256 << 10];
                loop {
                    let read = file
                        .read(&mut buffer)
                        .doing("hash what the programs left")?;
                    if read == 0 {
                        break;
                    }
                    hash.update(&buffer[..read]);
                }
                hash.finalize().into()
            }
            Found::Link(target) => Sha256::digest(&target).into(),
            // What has no hash is not what it was: the caller sees it missing.
            Found::Top | Found::Special | Found::Cut(_) => return Ok(()),
        };
        report(path, digest)
    })
}

/// Hands back the files below one `collect` folder (see `Outcome::collected`).
pub(super) fn collect(
    root: &OwnedFd,
    wanted: &Collect,
    give: &mut dyn FnMut(&[u8], bool, Secret) -> Done,
    leave: &mut dyn FnMut(&[u8], &str) -> Done,
) -> Result<(), Fault> {
    let (mut files, mut total) = (0usize, 0u64);
    // A folder with nothing to hand back is there all the same.
    let mut empty = false;
    walk(root, &wanted.path, &mut |path, found| {
        empty = matches!(found, Found::Top);
        match found {
            Found::Top => Ok(()),
            Found::Link(_) => leave(path, "a symbolic link"),
            Found::Special => leave(path, "a special file"),
            Found::Cut(reason) => leave(path, reason),
            Found::File { size, .. } if size > wanted.max_file => leave(path, "too large"),
            Found::File { .. } if files >= wanted.max_files => leave(path, "too many files"),
            Found::File { size, .. } if total.saturating_add(size) > wanted.max_total => {
                leave(path, "too much together")
            }
            Found::File {
                file,
                size,
                executable,
            } => {
                let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default() + 1);
                let read = file.take(size).read_to_end(&mut bytes);
                let bytes = Secret::new(bytes);
                read.doing("collect what the programs left")?;
                files += 1;
                total += size;
                give(path, executable, bytes)
            }
        }
    })?;
    if empty {
        leave(wanted.path.as_os_str().as_bytes(), "a folder without files")?;
    }
    Ok(())
}
