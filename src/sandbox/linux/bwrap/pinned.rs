//! Folders that programs must not change, filled by `bwrap` itself: only it can make them
//! read-only, and only before anything runs.
//!
//! Each folder above one is a tmpfs of its own, since the kernel renames no mount point (see
//! [`super::super::pin`]). Links of the tree are laid after everything else, so that no file is laid
//! through one.

use super::super::fault::{Doing as _, Fault};
use super::super::handover::Copy;
use super::super::tree::{self, own_places};
use super::line::Line;
use crate::sandbox::spec::{LaidFile, Spec};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Deepest folder that is laid so.
const MAX_DEPTH: usize = 64;

pub(super) struct Pinned<'a> {
    pub(super) line: &'a mut Line,
    pub(super) spec: &'a Spec,
    pub(super) pins: &'a BTreeMap<PathBuf, bool>,
    pub(super) files: &'a [LaidFile],
    pub(super) copies: &'a mut Vec<Copy>,
    /// Bytes for each tmpfs beside what is copied into it.
    pub(super) share: u64,
}

impl Pinned<'_> {
    /// The folders, parents first, and what the tree has in those that become read-only.
    pub(super) fn folders(&mut self) -> Result<(), Fault> {
        let mut links = Vec::new();
        for (path, read_only) in self.pins {
            if self.is_file(path) {
                continue;
            }
            let (copy, below) = self.scratch(path)?;
            let laid = self.files.iter().find(|file| file.path.starts_with(path));
            let told = laid.map_or(path, |file| &file.path);
            let source = real_folder(&self.copies[copy].source, &below, told)?;
            let stat = source.as_ref().map(rustix::fs::fstat).transpose();
            let mode = stat
                .doing_on("look at", path)?
                .map_or(0o755, |stat| stat.st_mode & 0o7777);
            if !*read_only {
                let tree = super::super::named::size(&self.copies[copy].source)
                    .doing_on("measure", path)?;
                self.line
                    .tmpfs(mode | 0o700, self.share.saturating_add(tree), path);
                continue;
            }
            self.line.tmpfs(mode | 0o700, u64::from(u32::MAX), path);
            self.copies[copy]
                .but
                .insert(below.as_os_str().as_bytes().to_vec());
            if let Some(source) = source {
                self.content(&source, path, &mut links, 0)?;
            }
        }
        for (path, target) in links {
            self.line.pair("--symlink", &target, &path);
        }
        Ok(())
    }

    /// The files that only `bwrap` can lay. Their paths are returned.
    pub(super) fn files(&mut self) -> Result<BTreeSet<PathBuf>, Fault> {
        // Of two at one path the last counts.
        let files: BTreeMap<&Path, &LaidFile> = self
            .files
            .iter()
            .map(|file| (file.path.as_path(), file))
            .collect();
        let mut laid = BTreeSet::new();
        for (path, file) in files {
            let option = if self.is_file(path) {
                "--ro-bind-data"
            } else if self.in_pinned(path)
                || !own_places(self.spec).any(|own| path.starts_with(own))
            {
                "--file"
            } else {
                continue;
            };
            if own_places(self.spec).any(|own| path.starts_with(own)) {
                let (copy, below) = self.scratch(path)?;
                let source = &self.copies[copy].source;
                let above = below.parent().unwrap_or(Path::new(""));
                if let Some(folder) = real_folder(source, above, path)? {
                    replaceable(&folder, &below, path)?;
                }
                self.copies[copy]
                    .but
                    .insert(below.as_os_str().as_bytes().to_vec());
            }
            self.line
                .bytes(option, file.mode & 0o777, file.bytes.expose(), path)?;
            laid.insert(path.to_owned());
        }
        Ok(laid)
    }

    /// Whether a single file is pinned at `path`.
    fn is_file(&self, path: &Path) -> bool {
        self.pins.get(path) == Some(&true) && self.files.iter().any(|file| file.path == path)
    }

    /// Whether `path` lies in a folder that becomes read-only.
    fn in_pinned(&self, path: &Path) -> bool {
        path.ancestors()
            .skip(1)
            .any(|folder| self.pins.get(folder) == Some(&true))
    }

    /// The scratch mount that `path` lies in, and the rest of the path.
    fn scratch(&self, path: &Path) -> Result<(usize, PathBuf), Fault> {
        let found = self.copies.iter().enumerate().find_map(|(index, copy)| {
            let below = path.strip_prefix(&copy.inside).ok()?;
            Some((index, below.to_owned()))
        });
        found.ok_or_else(|| Fault::blocked("lay a file outside tmpfs", path))
    }

    /// What the tree has in a folder that becomes read-only, but for what takes its place.
    fn content(
        &mut self,
        folder: &OwnedFd,
        at: &Path,
        links: &mut Vec<(PathBuf, PathBuf)>,
        depth: usize,
    ) -> Result<(), Fault> {
        if depth > MAX_DEPTH {
            return Err(Fault::blocked("lay a folder that is so deep", at));
        }
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
        let listed = rustix::fs::openat(folder, ".", flags, Mode::empty())
            .and_then(Dir::new)
            .doing_on("read", at)?;
        for entry in listed {
            let entry = entry.doing_on("read", at)?;
            let name: &CStr = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let path = at.join(OsStr::from_bytes(name.to_bytes()));
            let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
                .doing_on("look at", &path)?;
            let kind = FileType::from_raw_mode(stat.st_mode);
            let replaced = self.files.iter().any(|file| file.path == path);
            if self.pins.contains_key(&path) || (replaced && !kind.is_dir()) {
                continue;
            }
            match kind {
                FileType::Directory => {
                    self.line.folder(stat.st_mode | 0o700, &path);
                    let next = tree::open_folder(folder, name).doing_on("read", &path)?;
                    self.content(&next, &path, links, depth + 1)?;
                }
                FileType::RegularFile => {
                    let flags =
                        OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
                    let file = rustix::fs::openat(folder, name, flags, Mode::empty())
                        .doing_on("read", &path)?;
                    self.line
                        .file("--file", stat.st_mode & 0o777, file, &path)?;
                }
                FileType::Symlink => {
                    let target =
                        rustix::fs::readlinkat(folder, name, Vec::new()).doing_on("read", &path)?;
                    links.push((path, OsStr::from_bytes(target.to_bytes()).into()));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// The folder `below` of a tree, reached without following a link; `None` where there is none.
fn real_folder(tree: &OwnedFd, below: &Path, path: &Path) -> Result<Option<OwnedFd>, Fault> {
    let mut folder = tree::open_folder(tree, ".").doing_on("open", path)?;
    for name in below {
        folder = match tree::open_folder(&folder, name) {
            Ok(next) => next,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR | Errno::XDEV) => {
                return Err(Fault::blocked("reach through what is no folder", path));
            }
            Err(errno) => return Err(errno).doing_on("open", path),
        };
    }
    Ok(Some(folder))
}

/// Fails where the tree has a folder at the place of a file.
fn replaceable(folder: &OwnedFd, below: &Path, path: &Path) -> Result<(), Fault> {
    let name = below.file_name().unwrap_or_default();
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode).is_dir() => {
            Err(Fault::blocked("replace a folder by a file", path))
        }
        Ok(_) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno).doing_on("look at", path),
    }
}
