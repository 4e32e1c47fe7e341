//! Copies a folder into the sandbox's tmpfs, for kernels that refuse an overlay.

use super::tree::Owner;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;

/// Deepest folder that is copied.
const MAX_DEPTH: usize = 256;

/// Copies regular files, links and folders below `from` into `to`. Links stay links; anything else
/// is left out, and so is what lies at a path of `but`, relative to `from`. A folder that stands
/// there already is filled. `given` names a user of the source whose files belong to another in the copy.
pub(super) fn tree(
    from: &OwnedFd,
    to: &OwnedFd,
    but: &BTreeSet<Vec<u8>>,
    given: Option<(u32, Owner)>,
) -> Result<(), Errno> {
    copy(from, to, &[], &Rules { but, given }, 0)
}

struct Rules<'a> {
    but: &'a BTreeSet<Vec<u8>>,
    given: Option<(u32, Owner)>,
}

fn copy(
    from: &OwnedFd,
    to: &OwnedFd,
    at: &[u8],
    rules: &Rules<'_>,
    depth: usize,
) -> Result<(), Errno> {
    if depth > MAX_DEPTH {
        return Err(Errno::NAMETOOLONG);
    }
    let folder = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    let listed = rustix::fs::openat(from, ".", folder, Mode::empty())?;
    for entry in Dir::read_from(&listed)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let path = [at, name.to_bytes()].concat();
        if rules.but.contains(&path) {
            continue;
        }
        let stat = rustix::fs::statat(from, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let mode = Mode::from_raw_mode(stat.st_mode & 0o7777);
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                match rustix::fs::mkdirat(to, name, Mode::RWXU) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(errno),
                }
                let source = rustix::fs::openat(from, name, folder, Mode::empty())?;
                let target = rustix::fs::openat(to, name, folder, Mode::empty())?;
                copy(
                    &source,
                    &target,
                    &[&path[..], b"/"].concat(),
                    rules,
                    depth + 1,
                )?;
                rules.own(to, name, &stat);
                rustix::fs::fchmod(&target, mode)?;
                date(to, name, &stat)?;
            }
            FileType::RegularFile => {
                let read = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY | OFlags::NONBLOCK;
                let source = rustix::fs::openat(from, name, read, Mode::empty())?;
                let write = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
                let target = rustix::fs::openat(to, name, write, Mode::RUSR | Mode::WUSR)?;
                let (source, mut target) =
                    (std::fs::File::from(source), std::fs::File::from(target));
                std::io::copy(&mut &source, &mut target)
                    .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
                rules.own(to, name, &stat);
                rustix::fs::fchmod(&target, mode)?;
                date(to, name, &stat)?;
            }
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(from, name, Vec::new())?;
                let target = std::ffi::OsStr::from_bytes(target.to_bytes());
                rustix::fs::symlinkat(target, to, name)?;
                rules.own(to, name, &stat);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Keeps the time of the last change: build tools compare it.
fn date(to: &OwnedFd, name: &std::ffi::CStr, stat: &rustix::fs::Stat) -> Result<(), Errno> {
    let nanoseconds = i64::try_from(stat.st_mtime_nsec).map_err(|_| Errno::INVAL)?;
    let time = Timespec {
        tv_sec: stat.st_mtime,
        tv_nsec: nanoseconds,
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    rustix::fs::utimensat(to, name, &times, AtFlags::SYMLINK_NOFOLLOW)
}

impl Rules<'_> {
    /// Keeps the owner, if it is not to be another, where our user namespace knows it; otherwise the copy
    /// is the launcher's own.
    fn own(&self, to: &OwnedFd, name: &std::ffi::CStr, stat: &rustix::fs::Stat) {
        let (uid, gid) = match self.given {
            Some((from, to)) if from == stat.st_uid => (to.uid, to.gid),
            _ => (stat.st_uid, stat.st_gid),
        };
        let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
        let _ = rustix::fs::chownat(to, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::path::Path;

    fn open(path: &Path) -> OwnedFd {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        rustix::fs::open(path, flags, Mode::empty()).unwrap()
    }

    #[test]
    fn files_links_and_modes_are_kept_and_nothing_is_followed() {
        let from = tempfile::tempdir().unwrap();
        let to = tempfile::tempdir().unwrap();
        let path = from.path();
        fs::create_dir(path.join("d")).unwrap();
        crate::base::files::write_atomic(&path.join("d/tool"), b"code", 0o755).unwrap();
        crate::base::files::write_atomic(&path.join("d/left"), b"out", 0o644).unwrap();
        crate::base::files::write_atomic(&path.join("secret"), b"x", 0o600).unwrap();
        symlink("/etc", path.join("link")).unwrap();
        let pipe = path.join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::RUSR, 0).unwrap();
        fs::set_permissions(path.join("d"), fs::Permissions::from_mode(0o500)).unwrap();

        let but = BTreeSet::from([b"d/left".to_vec()]);
        tree(&open(path), &open(to.path()), &but, None).unwrap();

        let mode = |name: &str| {
            let meta = fs::symlink_metadata(to.path().join(name)).unwrap();
            meta.permissions().mode() & 0o7777
        };
        assert_eq!(fs::read(to.path().join("d/tool")).unwrap(), b"code");
        assert_eq!(
            (mode("d"), mode("d/tool"), mode("secret")),
            (0o500, 0o755, 0o600)
        );
        let link = fs::read_link(to.path().join("link")).unwrap();
        assert_eq!(link, Path::new("/etc"));
        assert!(!to.path().join("pipe").exists());
        assert!(!to.path().join("d/left").exists());
        let changed = |root: &Path, name: &str| {
            let meta = fs::symlink_metadata(root.join(name)).unwrap();
            meta.modified().unwrap()
        };
        for name in ["d", "d/tool", "secret"] {
            assert_eq!(changed(path, name), changed(to.path(), name), "{name}");
        }
        // So that the folders can be removed by an ordinary user.
        for root in [path, to.path()] {
            fs::set_permissions(root.join("d"), fs::Permissions::from_mode(0o700)).unwrap();
        }
    }
}
