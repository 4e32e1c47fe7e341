//! Places in a tree: reached component by component, following no link.

use super::super::fault::{Doing as _, Fault};
use super::super::sys;
use super::{Ground, Owner};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, ResolveFlags, Uid};
use rustix::io::Errno;
use rustix::mount::{MoveMountFlags, OpenTreeFlags};
use std::ffi::CStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

/// The folder that holds `inside`, reached below `root` without following any link, and the last
/// name. Missing folders are made when the ground is ours.
pub(in super::super) fn parent(
    root: &OwnedFd,
    inside: &Path,
    ground: Ground,
) -> Result<(OwnedFd, Vec<u8>), Fault> {
    let mut names = Vec::new();
    let mut components = inside.components();
    if components.next() != Some(Component::RootDir) {
        return Err(Fault::blocked("use a path that is not absolute", inside));
    }
    for component in components {
        match component {
            Component::Normal(name) => names.push(name.as_bytes().to_vec()),
            _ => return Err(Fault::blocked("use a path with `..`", inside)),
        }
    }
    let Some(last) = names.pop() else {
        return Err(Fault::blocked("replace the root", inside));
    };
    let mut folder = open_folder(root, ".").doing("open the root")?;
    for name in names {
        folder = match open_folder(&folder, name.as_slice()) {
            Ok(next) => next,
            Err(Errno::NOENT) if ground == Ground::Ours => {
                make_folder(&folder, name.as_slice(), 0o755).doing_on("make a folder", inside)?;
                open_folder(&folder, name.as_slice()).doing_on("open a folder", inside)?
            }
            Err(Errno::LOOP | Errno::NOTDIR | Errno::XDEV | Errno::NOENT) => {
                return Err(Fault::blocked("reach through what is no folder", inside));
            }
            Err(errno) => return Err(errno).doing_on("open a folder", inside),
        };
    }
    Ok((folder, last))
}

/// Opens one folder below `folder`, following no link of any kind.
pub(in super::super) fn open_folder(
    folder: &OwnedFd,
    name: impl rustix::path::Arg,
) -> Result<OwnedFd, Errno> {
    name.into_with_c_str(|name| match at_once(folder, name) {
        Err(Errno::NOSYS) => step_by_step(folder, name),
        opened => opened,
    })
}

fn at_once(folder: &OwnedFd, name: &CStr) -> Result<OwnedFd, Errno> {
    rustix::fs::openat2(
        folder,
        name,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
    )
}

/// The same on kernels that don't know that call: Linux before 5.6, gVisor.
fn step_by_step(folder: &OwnedFd, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut at = rustix::fs::openat(folder, ".", flags, Mode::empty())?;
    if name.to_bytes().starts_with(b"/") {
        return Err(Errno::XDEV);
    }
    for part in name.to_bytes().split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => return Err(Errno::XDEV),
            part => at = rustix::fs::openat(&at, part, flags, Mode::empty())?,
        }
    }
    Ok(at)
}

/// Opens whatever stands at `name`, a link itself included.
pub(super) fn open_any(folder: &OwnedFd, name: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(folder, name, flags, Mode::empty())
}

pub(super) fn make_folder(
    folder: &OwnedFd,
    name: impl rustix::path::Arg,
    mode: u32,
) -> Result<(), Errno> {
    // The umask is 0 while the tree is built.
    rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(mode))
}

pub(super) fn give(folder: &OwnedFd, name: &str, owner: Owner) -> Result<(), Errno> {
    rustix::fs::chownat(
        folder,
        name,
        Some(Uid::from_raw(owner.uid)),
        Some(Gid::from_raw(owner.gid)),
        AtFlags::SYMLINK_NOFOLLOW,
    )
}

/// A new mount of the folder `name`.
pub(super) fn clone_below(folder: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    rustix::mount::open_tree(
        folder,
        name,
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC,
    )
}

pub(super) fn attach(source: &OwnedFd, target: &OwnedFd) -> Result<(), Errno> {
    rustix::mount::move_mount(
        source,
        "",
        target,
        "",
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH,
    )
}

pub(super) fn read_only(tree: &OwnedFd, more: u64) -> Result<(), Errno> {
    let attributes = sys::ATTR_READ_ONLY | sys::ATTR_NO_SUID | more;
    sys::set_mount_attributes(tree.as_fd(), attributes, true)
}
