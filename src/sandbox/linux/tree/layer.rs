//! Scratch mounts: a folder of the host, with the changes in our tmpfs.

use super::super::fault::{Doing as _, Fault};
use super::super::{copy, sys};
use super::place::{attach, clone_below, make_folder, open_folder, read_only};
use super::source::Source;
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};
use std::collections::BTreeSet;
use std::path::Path;

/// Where layers are kept.
pub(super) struct Layers<'stage> {
    /// Top folder of our tmpfs.
    pub(super) base: &'stage OwnedFd,
    /// The same, by path.
    pub(super) at: &'stage Path,
    /// Whether the overlay must do with a user's rights.
    pub(super) as_user: bool,
}

/// A finished layer.
pub(super) struct Layer {
    pub(super) mount: OwnedFd,
    /// Whether it is a copy, because the kernel refused an overlay.
    pub(super) copied: bool,
}

impl Layers<'_> {
    /// A copy-on-write view of `source`. `name` is its own among the layers.
    pub(super) fn make(&self, source: &Source, inside: &Path, name: &str) -> Result<Layer, Fault> {
        if !source.folder {
            return Err(Fault::blocked(
                "make a scratch copy of a single file",
                inside,
            ));
        }
        read_only(&source.tree, sys::ATTR_NO_DEV).doing_on("bind", inside)?;
        let low = self.folder("low", name).doing("make a layer")?;
        let up = self.folder("up", name).doing("make a layer")?;
        make_folder(&up, "w", 0o755).doing("make a layer")?;
        let upper = upper(&up, source).doing_on("make a layer", inside)?;
        attach(&source.tree, &low).doing("mount a layer")?;
        let lower = self.at.join("low").join(name);
        if let Ok(mount) = overlay(&lower, &self.at.join("up").join(name), self.as_user) {
            return Ok(Layer {
                mount,
                copied: false,
            });
        }
        copy::tree(&source.tree, &upper, &BTreeSet::new(), None).doing_on("copy", inside)?;
        let mount = clone_below(&up, "u").doing("bind a copy")?;
        let attributes = sys::ATTR_NO_SUID | sys::ATTR_NO_DEV;
        sys::set_mount_attributes(mount.as_fd(), attributes, false).doing("bind a copy")?;
        Ok(Layer {
            mount,
            copied: true,
        })
    }

    fn folder(&self, part: &str, name: &str) -> Result<OwnedFd, Errno> {
        let folder = open_folder(self.base, part)?;
        make_folder(&folder, name, 0o755)?;
        open_folder(&folder, name)
    }
}

/// The upper folder. The layer's top gets its owner and mode from it.
fn upper(up: &OwnedFd, source: &Source) -> Result<OwnedFd, Errno> {
    make_folder(up, "u", 0o755)?;
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let upper = rustix::fs::openat(up, "u", flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&source.tree)?;
    let (uid, gid) = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
    // An owner that our user namespace does not know stays ours.
    let _ = rustix::fs::chownat(&upper, "", Some(uid), Some(gid), AtFlags::EMPTY_PATH);
    rustix::fs::fchmod(&upper, Mode::from_raw_mode(stat.st_mode & 0o7777))?;
    Ok(upper)
}

fn overlay(lower: &Path, base: &Path, as_user: bool) -> Result<OwnedFd, Errno> {
    let fs = rustix::mount::fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_set_string(&fs, "lowerdir", lower)?;
    rustix::mount::fsconfig_set_string(&fs, "upperdir", base.join("u"))?;
    rustix::mount::fsconfig_set_string(&fs, "workdir", base.join("w"))?;
    if as_user {
        rustix::mount::fsconfig_set_flag(&fs, "userxattr")?;
    } else {
        // Lets a folder of the lower layer be renamed, as a plain file system does.
        rustix::mount::fsconfig_set_string(&fs, "redirect_dir", "on")?;
    }
    rustix::mount::fsconfig_create(&fs)?;
    rustix::mount::fsmount(
        &fs,
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV,
    )
}
