//! The launcher inside walls that another program made.
//!
//! It is the first process of their pid namespace, and has no right to make more walls. It fills the
//! tree, runs the steps one after the other, and after each kills every process but itself.

use super::fault::{Doing as _, Fault};
use super::handover::{Copy, Handover};
use super::launcher::{self, NOBODY, Ready, Stop};
use super::{Walls, copy, lay, sys, tree};
use crate::sandbox::HOME;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Pid, set_dumpable_behavior};
use std::ffi::OsStr;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

/// The word after the hidden subcommand.
pub(super) const WORD: &str = "inside";

/// Runs on this process's standard input; `number` is the descriptor of the handover.
pub(super) fn main(number: Option<&OsStr>) -> ExitCode {
    let number = number
        .and_then(OsStr::to_str)
        .and_then(|text| text.parse().ok());
    launcher::serve(|control| session(control, number))
}

fn session(control: &UnixStream, number: Option<i32>) -> Result<(), Stop> {
    if rustix::process::getpid() != Pid::INIT {
        let fault: Result<(), Fault> = Err(Errno::PERM).doing("be the first process");
        fault?;
    }
    set_dumpable_behavior(DumpableBehavior::NotDumpable).doing("hide memory")?;
    launcher::forbid_core_dumps().doing("forbid core dumps")?;
    rustix::process::umask(Mode::empty());
    let mut handover = number
        .ok_or(Errno::BADF)
        .and_then(sys::adopt)
        .doing("find the specification")
        .and_then(|memory| Handover::read(memory).doing("read the specification"))?;
    launcher::listeners(control, &handover.spec)?;
    let root = rustix::process::geteuid().is_root();
    let owner = tree::Owner {
        uid: if root {
            NOBODY
        } else {
            rustix::process::geteuid().as_raw()
        },
        gid: if root {
            NOBODY
        } else {
            rustix::process::getegid().as_raw()
        },
    };
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let top = rustix::fs::open("/", flags, Mode::empty()).doing("open the root")?;
    for place in ["/run", HOME] {
        give(place, owner.uid, owner.gid).doing("hand over a folder")?;
    }
    for copy in &handover.copies {
        fill(copy)?;
    }
    let copied = !handover.copies.is_empty();
    handover.copies.clear();
    lay::files(&top, &handover.spec, owner)?;
    // Bodies live on in tmpfs only.
    handover.spec.files.clear();
    let ready = Ready {
        spec: &handover.spec,
        walls: Walls::Given,
        root: &top,
        group: handover.group.as_ref(),
        fallback: handover.fallback,
        become_user: root.then_some(owner),
        copied,
    };
    ready.carry_out(control)
}

fn give(path: impl rustix::path::Arg, uid: u32, gid: u32) -> Result<(), Errno> {
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    rustix::fs::chownat(CWD, path, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
}

/// Copies a folder of the host into its scratch mount. The top gets its owner and mode from it.
fn fill(copy: &Copy) -> Result<(), Fault> {
    let inside = &copy.inside;
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    let to: OwnedFd = rustix::fs::open(inside, flags, Mode::empty()).doing_on("open", inside)?;
    copy::tree(&copy.source, &to, &copy.but).doing_on("copy", inside)?;
    let stat = rustix::fs::fstat(&copy.source).doing_on("look at", inside)?;
    // An owner that our user namespace does not know stays ours.
    let _ = give(inside, stat.st_uid, stat.st_gid);
    rustix::fs::fchmod(&to, Mode::from_raw_mode(stat.st_mode & 0o7777)).doing_on("copy", inside)
}
