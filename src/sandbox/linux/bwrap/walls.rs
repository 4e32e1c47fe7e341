//! A specification as options of `bwrap`: namespaces, and the same file tree as everywhere.

use super::super::fault::{Doing as _, Fault};
use super::super::handover::Copy;
use super::super::inside::{RIGHTS, SUPERVISOR};
use super::super::launcher::USER;
use super::super::named::{place, size};
use super::super::tree::{self, DEVICES, ETC, Ground, HOST, Owner, own_places};
use super::super::{OWN_PROGRAM, pin};
use super::line::Line;
use super::pinned;
use crate::sandbox::spec::{LaidFile, Mount, Spec};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The options for `spec`, in which only those files stay that are to be laid inside, and the
/// folders to be copied there.
pub(super) fn of(spec: &mut Spec) -> Result<(Line, Vec<Copy>), Fault> {
    let mut line = Line::default();
    let root = rustix::process::geteuid().is_root();
    namespaces(&mut line, root);
    let owner = if root {
        Owner {
            uid: super::super::NOBODY,
            gid: super::super::NOBODY,
        }
    } else {
        Owner {
            uid: USER,
            gid: USER,
        }
    };
    fixed(&mut line, owner)?;
    let pins = pin::wanted(spec);
    let spines = pins.values().filter(|read_only| !**read_only).count();
    // bwrap makes one tmpfs for each place, so each gets its part of what they may hold together.
    let parts = own_places(spec).count() + spines;
    let share = spec.limits.disk.unwrap_or(tree::DEFAULT_DISK) / u64::try_from(parts).unwrap_or(1);
    for (path, mode) in tree::OWN {
        line.tmpfs(mode, share, Path::new(path));
    }
    let mut copies = Vec::new();
    for mount in &spec.mounts {
        copies.extend(named(&mut line, spec, mount, share)?);
    }
    let files: Vec<LaidFile> = std::mem::take(&mut spec.files);
    let mut pinned = pinned::Pinned {
        line: &mut line,
        spec,
        pins: &pins,
        files: &files,
        copies: &mut copies,
        share,
    };
    pinned.folders()?;
    let by_program = pinned.files()?;
    for file in files {
        let path = &file.path;
        if tree::ground(spec, path) != Ground::Ours {
            return Err(Fault::blocked("lay a file outside tmpfs", path));
        }
        if !by_program.contains(path) {
            spec.files.push(file);
        }
    }
    line.pair("--ro-bind", &own_program()?, Path::new(SUPERVISOR));
    for (path, _) in pins
        .iter()
        .filter(|(path, read_only)| **read_only && !by_program.contains(*path))
    {
        line.path("--remount-ro", path);
    }
    line.words(&["--remount-ro", "/proc", "--remount-ro", "/"]);
    Ok((line, copies))
}

fn namespaces(line: &mut Line, root: bool) {
    line.words(&[
        "--unshare-pid",
        "--unshare-net",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--as-pid-1",
        "--die-with-parent",
        "--hostname",
        "localhost",
        "--cap-drop",
        "ALL",
    ]);
    if root {
        for right in RIGHTS {
            line.words(&["--cap-add", right]);
        }
    } else {
        let user = USER.to_string();
        line.words(&["--unshare-user", "--uid", &user, "--gid", &user]);
    }
}

/// What every sandbox has.
fn fixed(line: &mut Line, owner: Owner) -> Result<(), Fault> {
    for path in HOST.map(Path::new) {
        if let Ok(target) = fs::read_link(path) {
            line.pair("--symlink", &target, path);
        } else if path.exists() {
            line.pair("--ro-bind", path, path);
        }
    }
    for name in ETC {
        let path = Path::new("/etc").join(name);
        if path.exists() {
            line.pair("--ro-bind", &path, &path);
        }
    }
    for (path, content) in tree::neutral_files(owner) {
        line.bytes("--file", 0o444, content.as_bytes(), Path::new(path))?;
    }
    for (path, target) in tree::LINKS {
        line.pair("--symlink", Path::new(target), Path::new(path));
    }
    for name in DEVICES {
        let path = Path::new("/dev").join(name);
        line.pair("--dev-bind", &path, &path);
    }
    line.words(&["--proc", "/proc"]);
    Ok(())
}

/// One mount of the caller's; a scratch mount leaves what is to be copied into it.
fn named(line: &mut Line, spec: &Spec, mount: &Mount, share: u64) -> Result<Option<Copy>, Fault> {
    let (Mount::ReadOnly { host, inside }
    | Mount::ReadWrite { host, inside }
    | Mount::Scratch { host, inside }) = mount;
    place(spec, inside)?;
    let own = host == Path::new(OWN_PROGRAM);
    let host = if own { own_program()? } else { host.clone() };
    let source = rustix::fs::open(&host, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        .doing_on("bind", &host)?;
    match mount {
        Mount::ReadOnly { .. } => line.pair("--ro-bind", &host, inside),
        Mount::ReadWrite { .. } => line.pair("--bind", &host, inside),
        Mount::Scratch { .. } => {
            let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
            let source = match rustix::fs::openat(&source, ".", flags, Mode::empty()) {
                Err(Errno::NOTDIR) => {
                    return Err(Fault::blocked(
                        "make a scratch copy of a single file",
                        inside,
                    ));
                }
                opened => opened.doing_on("bind", &host)?,
            };
            let size = share + size(&source).doing_on("measure", &host)?;
            line.tmpfs(0o755, size, inside);
            return Ok(Some(Copy {
                source,
                inside: inside.clone(),
                but: BTreeSet::new(),
            }));
        }
    }
    Ok(None)
}

/// This program, by a path that is still right where bwrap looks for it.
fn own_program() -> Result<PathBuf, Fault> {
    fs::read_link(OWN_PROGRAM).doing("find our own program")
}
