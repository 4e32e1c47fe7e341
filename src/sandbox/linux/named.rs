//! The caller's mounts, where another program makes them: whether their places can be made without a
//! look into a tree, and how much a copy takes.

use super::fault::Fault;
use crate::sandbox::spec::{Mount, Spec};
use rustix::fd::OwnedFd;
use rustix::fs::{Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::path::{Component, Path};

/// Whether a mount point can be made at `inside` without looking into a tree.
pub(super) fn place(spec: &Spec, inside: &Path) -> Result<(), Fault> {
    let mut components = inside.components();
    if components.next() != Some(Component::RootDir) {
        return Err(Fault::blocked("use a path that is not absolute", inside));
    }
    if components.clone().next().is_none() {
        return Err(Fault::blocked("replace the root", inside));
    }
    if components.any(|part| !matches!(part, Component::Normal(_))) {
        return Err(Fault::blocked("use a path with `..`", inside));
    }
    if inside.starts_with("/proc") {
        return Err(Fault::blocked("mount over /proc", inside));
    }
    let nested = spec.mounts.iter().any(|other| {
        let (Mount::ReadOnly { inside: above, .. }
        | Mount::ReadWrite { inside: above, .. }
        | Mount::Scratch { inside: above, .. }) = other;
        inside != above && inside.starts_with(above)
    });
    if nested {
        return Err(Fault::blocked(
            "make a mount point in a bound folder",
            inside,
        ));
    }
    Ok(())
}

/// Bytes that a copy of this folder takes, generously.
pub(super) fn size(folder: &OwnedFd) -> Result<u64, Errno> {
    const PAGE: u64 = 4096;
    let mut total = 0u64;
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let stat = rustix::fs::statat(folder, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?;
        total += 2 * PAGE;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
                let below = rustix::fs::openat(folder, name, flags, Mode::empty())?;
                total = total.saturating_add(size(&below)?);
            }
            FileType::RegularFile => {
                total = total.saturating_add(u64::try_from(stat.st_size).unwrap_or(0));
            }
            _ => {}
        }
    }
    Ok(total)
}
