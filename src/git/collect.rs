//! What an agent left in its work tree, as a tree of ours.
//!
//! Only files are read. The agent's `.git` with its index, configuration, excludes, attributes,
//! hooks and monitors is hostile and skipped, wherever it lies; sizes, times and flags are not
//! believed, so every file is hashed. No symbolic link is followed.

use super::error::{Error, PathFault, file, show};
use super::ignore::{MAX_RULES, RULE_FILE, Rules};
use super::materialise::FOLDER;
use super::names::{Collisions, MAX_DEPTH, check_path};
use super::objects::{EntryKind, MAX_OBJECT, check_link_target};
use super::repository::{Repository, to_gix};
use super::trees::{Leaf, mode};
use crate::model::listing::{Entry, Listing};
use crate::model::object_id::ObjectId;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Most names in one folder; beyond that a folder counts as unreadable.
const MAX_NAMES: usize = 1_000_000;

/// Which `.gitignore` files decide what is left out. Files of the base are never left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IgnoreRules {
    /// Those of the base: the agent cannot hide new files.
    #[default]
    Base,
    /// Those of the base, then those that the agent wrote (a project that starts from nothing).
    BaseAndWork,
}

/// Limits and rules of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectOptions {
    /// Which rules leave out new files.
    pub ignore: IgnoreRules,
    /// Largest new or changed file, in bytes.
    pub max_file: u64,
    /// Most bytes in new and changed files together.
    pub max_total: u64,
    /// Most new files.
    pub max_new_files: usize,
}

impl Default for CollectOptions {
    fn default() -> Self {
        Self {
            ignore: IgnoreRules::Base,
            max_file: 64 << 20,
            max_total: 512 << 20,
            max_new_files: 100_000,
        }
    }
}

/// How a path differs from the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// Not in the base.
    Added,
    /// Other content.
    Modified,
    /// The same content, but executable, plain or a link where it was another of these.
    ModeChanged,
    /// In the base only.
    Deleted,
}

/// Something that cannot be in a tree and was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Where it is.
    pub path: Vec<u8>,
    /// Why.
    pub fault: PathFault,
}

/// What was collected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collected {
    /// The result tree, in our object database.
    pub tree: ObjectId,
    /// Its files.
    pub listing: Listing,
    /// What differs from the base, by path.
    pub changes: Vec<(Vec<u8>, ChangeKind)>,
    /// New files and whole folders that the rules left out.
    pub ignored: usize,
    /// Folders that hold a repository of their own; their files are taken, their `.git` is not.
    pub nested: Vec<Vec<u8>>,
    /// What was left out because no tree may hold it. A caller that wants a faithful result refuses
    /// a collection where this is not empty.
    pub refused: Vec<Refusal>,
}

impl Repository {
    /// Makes a tree of the files in `work_dir`, which began as a copy of `base_tree`. Nothing may
    /// still be running in there, and it must be the caller's own: what programs took their right to read
    /// away from gets it back.
    ///
    /// Submodules of the base stay as they are. A file that cannot be read, or more than the limits
    /// allow, is an error.
    pub fn collect(
        &self,
        base_tree: ObjectId,
        work_dir: &Path,
        options: &CollectOptions,
    ) -> Result<Collected, Error> {
        let base = self.leaves(base_tree)?;
        let root = rustix::fs::openat(CWD, work_dir, FOLDER, Mode::empty())
            .map_err(file("open", work_dir))?;
        let mut walk = Walk {
            repository: self,
            rules: Rules::of_tree(self, &base)?,
            base: &base,
            dir: work_dir,
            options,
            leaves: BTreeMap::new(),
            listing: Listing::new(),
            ignored: 0,
            nested: Vec::new(),
            refused: Vec::new(),
            new_files: 0,
            total: 0,
        };
        for (path, leaf) in &base {
            if leaf.kind == EntryKind::Gitlink {
                walk.leaves.insert(path.clone(), *leaf);
            }
        }
        walk.folder(&root, &[], 0, false)?;
        walk.refuse_collisions();
        let tree = self.write_leaves(&walk.leaves)?;
        Ok(Collected {
            tree,
            changes: changes(&base, &walk.leaves),
            listing: walk.listing,
            ignored: walk.ignored,
            nested: walk.nested,
            refused: walk.refused,
        })
    }
}

struct Walk<'a> {
    repository: &'a Repository,
    rules: Rules,
    base: &'a BTreeMap<Vec<u8>, Leaf>,
    dir: &'a Path,
    options: &'a CollectOptions,
    leaves: BTreeMap<Vec<u8>, Leaf>,
    listing: Listing,
    ignored: usize,
    nested: Vec<Vec<u8>>,
    refused: Vec<Refusal>,
    new_files: usize,
    total: u64,
}

impl Walk<'_> {
    fn folder(
        &mut self,
        folder: &OwnedFd,
        prefix: &[u8],
        depth: usize,
        left_out: bool,
    ) -> Result<(), Error> {
        let names = self.names(folder, prefix)?;
        if self.options.ignore == IgnoreRules::BaseAndWork {
            self.add_rules(folder, prefix, &names)?;
        }
        for name in names {
            if name == b".git" {
                if depth > 0 {
                    self.nested.push(prefix.to_vec());
                }
                continue;
            }
            let path = join(prefix, &name);
            let stat = rustix::fs::statat(folder, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW)
                .map_err(file("read", &self.at(&path)))?;
            let kind = FileType::from_raw_mode(stat.st_mode);
            if self.base.get(&path).map(|leaf| leaf.kind) == Some(EntryKind::Gitlink) {
                self.submodule(folder, &name, path, kind)?;
            } else if kind == FileType::Directory {
                self.subfolder(folder, &name, path, depth, left_out)?;
            } else if !self.base.contains_key(&path)
                && (left_out || self.rules.leaves_out(&path, false))
            {
                self.ignored += 1;
            } else {
                self.leaf(folder, &name, path, &stat)?;
            }
        }
        Ok(())
    }

    fn subfolder(
        &mut self,
        parent: &OwnedFd,
        name: &[u8],
        path: Vec<u8>,
        depth: usize,
        left_out: bool,
    ) -> Result<(), Error> {
        let left_out = left_out || self.rules.leaves_out(&path, true);
        if left_out && !self.holds_base_files(&path) {
            self.ignored += 1;
            return Ok(());
        }
        // One less than a path may have, since a file follows.
        let fault = if depth + 2 > MAX_DEPTH {
            Err(PathFault::TooDeep)
        } else {
            check_path(&path, EntryKind::Tree)
        };
        if let Err(fault) = fault {
            self.refused.push(Refusal { path, fault });
            return Ok(());
        }
        let folder = open(parent, name, FOLDER).map_err(file("open", &self.at(&path)))?;
        self.folder(&folder, &path, depth + 1, left_out)
    }

    /// A submodule of the base stays what it was; work inside it cannot be collected.
    fn submodule(
        &mut self,
        parent: &OwnedFd,
        name: &[u8],
        path: Vec<u8>,
        kind: FileType,
    ) -> Result<(), Error> {
        if kind == FileType::Directory {
            let folder = open(parent, name, FOLDER).map_err(file("open", &self.at(&path)))?;
            let inside = self.names(&folder, &path)?;
            if inside.iter().all(|name| name == b".git") {
                return Ok(());
            }
        }
        self.refused.push(Refusal {
            path,
            fault: PathFault::Submodule,
        });
        Ok(())
    }

    fn leaf(
        &mut self,
        folder: &OwnedFd,
        name: &[u8],
        path: Vec<u8>,
        stat: &rustix::fs::Stat,
    ) -> Result<(), Error> {
        let (kind, content) = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(folder, name, Vec::new())
                    .map_err(file("read", &self.at(&path)))?;
                (EntryKind::Link, target.into_bytes())
            }
            FileType::RegularFile => {
                let executable = stat.st_mode & 0o100 != 0;
                let kind = if executable {
                    EntryKind::Executable
                } else {
                    EntryKind::Blob
                };
                match self.read(folder, name, &path)? {
                    Some(content) => (kind, content),
                    None => return Ok(()),
                }
            }
            _ => {
                let fault = PathFault::SpecialFile;
                self.refused.push(Refusal { path, fault });
                return Ok(());
            }
        };
        let fault = check_path(&path, kind).and_then(|()| match kind {
            EntryKind::Link => check_link_target(&content),
            _ => Ok(()),
        });
        if let Err(fault) = fault {
            self.refused.push(Refusal { path, fault });
            return Ok(());
        }
        self.keep(path, kind, &content)
    }

    fn keep(&mut self, path: Vec<u8>, kind: EntryKind, content: &[u8]) -> Result<(), Error> {
        let mut id = self.repository.blob_id(content)?;
        let old = self.base.get(&path);
        if old.is_none() {
            self.new_files += 1;
            if self.new_files > self.options.max_new_files {
                return Err(Error::TooLarge {
                    what: "the number of new files".into(),
                    limit: self.options.max_new_files.to_string(),
                });
            }
        }
        if old.map(|old| old.id) != Some(id) {
            let len = content.len() as u64;
            self.total += len;
            if len > self.options.max_file {
                return Err(too_large(show(&path), self.options.max_file));
            }
            if self.total > self.options.max_total {
                let what = "all changed files together";
                return Err(too_large(what.into(), self.options.max_total));
            }
            id = self.repository.write_blob(content)?;
        }
        if let Some(mode) = mode(kind) {
            self.listing.insert(path.clone(), Entry::of(mode, content));
        }
        self.leaves.insert(path, Leaf { kind, id });
        Ok(())
    }

    /// The content of a regular file; `None` when it turned out to be something else.
    fn read(
        &mut self,
        folder: &OwnedFd,
        name: &[u8],
        path: &[u8],
    ) -> Result<Option<Vec<u8>>, Error> {
        // NONBLOCK: a FIFO put there in between must not hold us up.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let at = self.at(path);
        let fd = open(folder, name, flags).map_err(file("read", &at))?;
        let stat = rustix::fs::fstat(&fd).map_err(file("read", &at))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            self.refused.push(Refusal {
                path: path.to_vec(),
                fault: PathFault::SpecialFile,
            });
            return Ok(None);
        }
        // A large file of the base may stay; a new or changed one must keep to the limit.
        let limit = self
            .options
            .max_file
            .max(self.base_size(path))
            .min(MAX_OBJECT);
        let mut content = Vec::new();
        std::fs::File::from(fd)
            .take(limit + 1)
            .read_to_end(&mut content)
            .map_err(file("read", &at))?;
        if content.len() as u64 > limit {
            return Err(too_large(show(path), self.options.max_file));
        }
        Ok(Some(content))
    }

    fn base_size(&self, path: &[u8]) -> u64 {
        let header = self
            .base
            .get(path)
            .and_then(|leaf| self.repository.inner.try_find_header(to_gix(leaf.id)).ok());
        header.flatten().map_or(0, |header| header.size())
    }

    fn add_rules(
        &mut self,
        folder: &OwnedFd,
        prefix: &[u8],
        names: &[Vec<u8>],
    ) -> Result<(), Error> {
        if !names.iter().any(|name| name == RULE_FILE) {
            return Ok(());
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        // A link or something odd is no rule file; the walk will say what it is.
        let Ok(fd) = open(folder, RULE_FILE, flags) else {
            return Ok(());
        };
        let regular = rustix::fs::fstat(&fd)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
        if !regular {
            return Ok(());
        }
        let path = join(prefix, RULE_FILE);
        let mut content = Vec::new();
        std::fs::File::from(fd)
            .take(MAX_RULES)
            .read_to_end(&mut content)
            .map_err(file("read", &self.at(&path)))?;
        self.rules.add(&path, &content)
    }

    fn holds_base_files(&self, folder: &[u8]) -> bool {
        let start = join(folder, b"");
        self.base
            .range(start.clone()..)
            .next()
            .is_some_and(|(path, _)| path.starts_with(&start))
    }

    /// Files of the base come first, so that a new file never pushes out an old one.
    fn refuse_collisions(&mut self) {
        let mut seen = Collisions::default();
        for path in self
            .leaves
            .keys()
            .filter(|path| self.base.contains_key(*path))
        {
            // The base is as its owner made it.
            let _ = seen.add(path);
        }
        let new: Vec<_> = self
            .leaves
            .keys()
            .filter(|path| !self.base.contains_key(*path))
            .cloned()
            .collect();
        for path in new {
            if let Err(fault) = seen.add(&path) {
                self.leaves.remove(&path);
                self.listing.remove(&path);
                self.refused.push(Refusal { path, fault });
            }
        }
    }

    /// What a folder holds, in the order of bytes.
    fn names(&self, folder: &OwnedFd, path: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        let at = self.at(path);
        let mut out = Vec::new();
        for entry in Dir::read_from(folder).map_err(file("read", &at))? {
            let entry = entry.map_err(file("read", &at))?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                out.push(name.to_vec());
            }
            if out.len() > MAX_NAMES {
                return Err(Error::TooLarge {
                    what: format!("the folder `{}`", show(path)),
                    limit: format!("{MAX_NAMES} names"),
                });
            }
        }
        out.sort();
        Ok(out)
    }

    fn at(&self, path: &[u8]) -> PathBuf {
        self.dir.join(show(path))
    }
}

/// Opens what lies in a folder. Where a program took its own right to read away, and we have no more than
/// its, that right is given back.
fn open(folder: &OwnedFd, name: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let open = || rustix::fs::openat(folder, name, flags, Mode::empty());
    let errno = match open() {
        Err(errno @ rustix::io::Errno::ACCESS) => errno,
        opened => return opened,
    };
    let mode = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode;
    // Nothing runs in there any more, so what is changed is what was looked at.
    let more = match FileType::from_raw_mode(mode) {
        FileType::Directory => 0o500,
        FileType::RegularFile => 0o400,
        _ => return Err(errno),
    };
    let mode = Mode::from_raw_mode((mode & 0o7777) | more);
    rustix::fs::chmodat(folder, name, mode, AtFlags::empty())?;
    open()
}

fn join(prefix: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = prefix.to_vec();
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

fn too_large(what: String, limit: u64) -> Error {
    Error::TooLarge {
        what,
        limit: format!("{} MiB", limit >> 20),
    }
}

/// What differs between two sets of leaves, by path.
pub(super) fn changes(
    base: &BTreeMap<Vec<u8>, Leaf>,
    result: &BTreeMap<Vec<u8>, Leaf>,
) -> Vec<(Vec<u8>, ChangeKind)> {
    let mut out: Vec<_> = base
        .iter()
        .filter_map(|(path, old)| {
            let kind = match result.get(path) {
                None => ChangeKind::Deleted,
                Some(new) if new.id != old.id => ChangeKind::Modified,
                Some(new) if new.kind != old.kind => ChangeKind::ModeChanged,
                Some(_) => return None,
            };
            Some((path.clone(), kind))
        })
        .collect();
    let added = result.keys().filter(|path| !base.contains_key(*path));
    out.extend(added.map(|path| (path.clone(), ChangeKind::Added)));
    out.sort_by(|a, b| a.0.cmp(&b.0));
    out
}
