//! Writing a tree's files into an empty folder, exactly as they are stored.
//!
//! No filter, attribute, line ending or hook has a say. Every component is made here, in folders
//! that are held open, so that no symbolic link is ever walked through.

use super::error::{Error, PathFault, file, show};
use super::names::check_all;
use super::objects::{EntryKind, MAX_OBJECT, check_link_target};
use super::repository::Repository;
use super::trees::Leaf;
use crate::model::object_id::ObjectId;
use rustix::fs::{AtFlags, CWD, Dir, Gid, Mode, OFlags, Uid};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::Path;

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Materialised {
    /// Files and symbolic links.
    pub files: usize,
    /// Bytes of their content.
    pub bytes: u64,
    /// Submodules, which became empty folders.
    pub gitlinks: usize,
}

impl Repository {
    /// Writes the files of `tree` into `dir`, which must be an empty folder and no link. Folders
    /// are 0755, files 0644 or 0755; all is given to `owner` (user, group) where one is named.
    ///
    /// Nothing is written when a path is refused: `..`, `.git` in any spelling, names over 255
    /// bytes, or two paths that some file system takes for one.
    pub fn materialise(
        &self,
        tree: ObjectId,
        dir: &Path,
        owner: Option<(u32, u32)>,
    ) -> Result<Materialised, Error> {
        let leaves = self.leaves(tree)?;
        check_all(
            leaves
                .iter()
                .map(|(path, leaf)| (path.as_slice(), leaf.kind)),
        )?;
        let root =
            rustix::fs::openat(CWD, dir, FOLDER, Mode::empty()).map_err(file("open", dir))?;
        if !is_empty(&root).map_err(file("read", dir))? {
            return Err(Error::Invalid {
                what: "folder",
                name: dir.display().to_string(),
                why: "is not empty",
            });
        }
        let mut writer = Writer {
            repository: self,
            dir,
            owner: owner.map(|(user, group)| (Uid::from_raw(user), Gid::from_raw(group))),
            root,
            open: Vec::new(),
            done: Materialised::default(),
        };
        writer.all(&leaves)?;
        Ok(writer.done)
    }
}

/// How folders are opened: never through a link.
pub(super) const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

fn is_empty(folder: &OwnedFd) -> rustix::io::Result<bool> {
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            return Ok(false);
        }
    }
    Ok(true)
}

struct Writer<'a> {
    repository: &'a Repository,
    dir: &'a Path,
    owner: Option<(Uid, Gid)>,
    root: OwnedFd,
    /// The folders between the root and the file written last.
    open: Vec<(Vec<u8>, OwnedFd)>,
    done: Materialised,
}

impl Writer<'_> {
    fn all(&mut self, leaves: &BTreeMap<Vec<u8>, Leaf>) -> Result<(), Error> {
        if let Some((user, group)) = self.owner {
            rustix::fs::fchown(&self.root, Some(user), Some(group))
                .map_err(file("change the owner of", self.dir))?;
        }
        // Paths with one folder in common follow each other in the order of their bytes.
        for (path, leaf) in leaves {
            let mut parts: Vec<_> = path.split(|byte| *byte == b'/').collect();
            let Some(name) = parts.pop() else { continue };
            self.enter(&parts)
                .and_then(|()| self.leaf(name, *leaf))
                .map_err(|error| match error {
                    Failure::Io(errno) => file("write", &self.dir.join(show(path)))(errno),
                    Failure::Path(fault) => Error::Path {
                        path: path.clone(),
                        fault,
                    },
                    Failure::Other(error) => error,
                })?;
        }
        Ok(())
    }

    fn folder(&self) -> &OwnedFd {
        self.open.last().map_or(&self.root, |(_, fd)| fd)
    }

    fn enter(&mut self, parts: &[&[u8]]) -> Result<(), Failure> {
        let shared = self
            .open
            .iter()
            .zip(parts)
            .take_while(|((name, _), part)| name == *part)
            .count();
        self.open.truncate(shared);
        for part in &parts[shared..] {
            let fd = self.make_folder(part)?;
            self.open.push((part.to_vec(), fd));
        }
        Ok(())
    }

    fn make_folder(&self, name: &[u8]) -> Result<OwnedFd, Failure> {
        let parent = self.folder();
        rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o755))?;
        let fd = rustix::fs::openat(parent, name, FOLDER, Mode::empty())?;
        rustix::fs::fchmod(&fd, Mode::from_raw_mode(0o755))?;
        if let Some((user, group)) = self.owner {
            rustix::fs::fchown(&fd, Some(user), Some(group))?;
        }
        Ok(fd)
    }

    fn leaf(&mut self, name: &[u8], leaf: Leaf) -> Result<(), Failure> {
        let mode = match leaf.kind {
            EntryKind::Gitlink | EntryKind::Tree => {
                self.make_folder(name)?;
                self.done.gitlinks += 1;
                return Ok(());
            }
            EntryKind::Blob | EntryKind::Link => 0o644,
            EntryKind::Executable => 0o755,
        };
        let content = self
            .repository
            .read_blob(leaf.id, MAX_OBJECT)
            .map_err(Failure::Other)?;
        let folder = self.folder();
        if leaf.kind == EntryKind::Link {
            check_link_target(&content).map_err(Failure::Path)?;
            rustix::fs::symlinkat(content.as_slice(), folder, name)?;
            if let Some((user, group)) = self.owner {
                let flags = AtFlags::SYMLINK_NOFOLLOW;
                rustix::fs::chownat(folder, name, Some(user), Some(group), flags)?;
            }
        } else {
            let flags =
                OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let fd = rustix::fs::openat(folder, name, flags, Mode::from_raw_mode(mode))?;
            let mut out = std::fs::File::from(fd);
            out.write_all(&content)?;
            rustix::fs::fchmod(&out, Mode::from_raw_mode(mode))?;
            if let Some((user, group)) = self.owner {
                rustix::fs::fchown(&out, Some(user), Some(group))?;
            }
        }
        self.done.files += 1;
        self.done.bytes += content.len() as u64;
        Ok(())
    }
}

enum Failure {
    Io(std::io::Error),
    Path(PathFault),
    Other(Error),
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<rustix::io::Errno> for Failure {
    fn from(error: rustix::io::Errno) -> Self {
        Self::Io(error.into())
    }
}
