//! Keeps laid files in their place while programs run.
//!
//! A file without write permission can still be renamed, or replaced by another, by whoever owns its
//! folder, and put back before anybody looks. So the folder of every read-only laid file becomes a
//! read-only mount, and each folder above it a mount of its own: the kernel renames no mount point.

use super::fault::{Doing as _, Fault};
use super::sys;
use super::tree::{self, Ground};
use crate::sandbox::spec::{Mount, Spec};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::path::{Path, PathBuf};

/// Folders and files to pin, parents first, each with whether it becomes read-only.
pub(super) fn wanted(spec: &Spec) -> BTreeMap<PathBuf, bool> {
    let mut pins = BTreeMap::new();
    let read_only = spec.files.iter().filter(|file| file.mode & 0o222 == 0);
    for file in read_only {
        // Elsewhere the tree is read-only anyway, or what is laid is the programs' own.
        let Some(top) = scratch_above(spec, &file.path) else {
            continue;
        };
        let Some(parent) = file.path.parent() else {
            continue;
        };
        if parent == top {
            pins.insert(file.path.clone(), true);
            continue;
        }
        let above = parent
            .ancestors()
            .skip(1)
            .take_while(|folder| *folder != top);
        for folder in above {
            pins.entry(folder.to_owned()).or_insert(false);
        }
        pins.insert(parent.to_owned(), true);
    }
    pins
}

/// The scratch mount that `path` lies in.
fn scratch_above<'a>(spec: &'a Spec, path: &Path) -> Option<&'a Path> {
    let scratch = spec.mounts.iter().filter_map(|mount| match mount {
        Mount::Scratch { inside, .. } => Some(inside.as_path()),
        Mount::ReadOnly { .. } | Mount::ReadWrite { .. } => None,
    });
    scratch
        .filter(|inside| path.starts_with(inside) && path != *inside)
        .max_by_key(|inside| inside.as_os_str().len())
}

/// Makes the pins. The tree is this process's root, and nothing of a patch has run in it yet.
pub(super) fn make(pins: &BTreeMap<PathBuf, bool>) -> Result<(), Fault> {
    for (path, read_only) in pins {
        rustix::mount::mount_bind(path, path).doing_on("pin", path)?;
        if *read_only {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mount =
                rustix::fs::openat(CWD, path, flags, Mode::empty()).doing_on("pin", path)?;
            sys::set_mount_attributes(mount.as_fd(), sys::ATTR_READ_ONLY, false)
                .doing_on("pin", path)?;
        }
    }
    Ok(())
}

/// The same where the launcher is another user than the programs and can't mount: what is pinned
/// becomes its own, and the folders above sticky, so that only it can rename or remove in them what
/// is its own.
pub(super) fn make_by_owner(
    root: &OwnedFd,
    spec: &Spec,
    pins: &BTreeMap<PathBuf, bool>,
) -> Result<(), Fault> {
    for (path, read_only) in pins {
        if let Some(top) = scratch_above(spec, path) {
            sticky(root, top).doing_on("pin", top)?;
        }
        let (folder, name) = tree::parent(root, path, Ground::Ours)?;
        if *read_only {
            keep(
                &folder,
                &CString::new(name).map_err(|_| Fault::blocked("pin", path))?,
            )
            .doing_on("pin", path)?;
        } else {
            sticky(root, path).doing_on("pin", path)?;
        }
    }
    Ok(())
}

fn sticky(root: &OwnedFd, path: &Path) -> Result<(), Errno> {
    let below = path.strip_prefix("/").unwrap_or(path);
    let folder = tree::open_folder(root, below)?;
    take(&folder, c".")?;
    rustix::fs::chmodat(&folder, c".", Mode::from_raw_mode(0o1777), AtFlags::empty())
}

fn take(folder: &OwnedFd, name: &CStr) -> Result<(), Errno> {
    let (uid, gid) = (Some(Uid::ROOT), Some(Gid::ROOT));
    rustix::fs::chownat(folder, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)
}

/// Takes `name`, and everything below it, away from the programs.
fn keep(folder: &OwnedFd, name: &CStr) -> Result<(), Errno> {
    take(folder, name)?;
    let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    if kind.is_symlink() {
        return Ok(());
    }
    let mode = Mode::from_raw_mode(stat.st_mode & 0o755);
    rustix::fs::chmodat(folder, name, mode, AtFlags::empty())?;
    if !kind.is_dir() {
        return Ok(());
    }
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    let below = rustix::fs::openat(folder, name, flags, Mode::empty())?;
    for entry in Dir::read_from(&below)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            keep(&below, entry.file_name())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::redact::Secret;
    use crate::sandbox::spec::{LaidFile, Limits, Network};

    #[test]
    fn folders_of_sealed_files_and_those_above_them_are_pinned() {
        let file = |path: &str, mode| LaidFile {
            path: path.into(),
            bytes: Secret::new(Vec::new()),
            mode,
        };
        let spec = Spec {
            mounts: vec![Mount::Scratch {
                host: "/host".into(),
                inside: "/src".into(),
            }],
            files: vec![
                file("/src/a/tests/t.rs", 0o444),
                file("/src/top.py", 0o444),
                file("/src/own/file", 0o644),
                file("/r/runner.py", 0o444),
            ],
            network: Network::None,
            limits: Limits::default(),
            inner_domain: true,
            hash_after: Vec::new(),
            collect: Vec::new(),
            deadline: None,
            steps: Vec::new(),
            stop_on_failure: false,
        };
        let pins: Vec<_> = wanted(&spec).into_iter().collect();
        let expected = [
            ("/src/a", false),
            ("/src/a/tests", true),
            ("/src/top.py", true),
        ];
        assert_eq!(
            pins,
            expected.map(|(path, read_only)| (PathBuf::from(path), read_only))
        );
    }
}
