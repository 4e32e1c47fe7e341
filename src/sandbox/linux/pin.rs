//! Keeps laid files in their place while programs run.
//!
//! A file without write permission can still be renamed, or replaced by another, by whoever owns its
//! folder, and put back before anybody looks. So the folder of every read-only laid file becomes a
//! read-only mount, and each folder above it a mount of its own: the kernel renames no mount point.

use super::fault::{Doing as _, Fault};
use super::sys;
use crate::sandbox::spec::{Mount, Spec};
use rustix::fd::AsFd as _;
use rustix::fs::{CWD, Mode, OFlags};
use std::collections::BTreeMap;
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
