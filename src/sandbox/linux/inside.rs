//! The launcher inside walls that another program made.
//!
//! It is the first process of their pid namespace, and has no right to make more walls. It fills the
//! tree, runs the steps one after the other, and after each kills every process but itself.

use super::cgroup::Group;
use super::fault::{Doing as _, Fault};
use super::handover::{Copy, Handover};
use super::launcher::{self, NOBODY, Ready, Stop};
use super::wire::Receiver;
use super::{Walls, codec, container, copy, init, lay, pin, sys, tree};
use crate::sandbox::HOME;
use crate::sandbox::spec::{Limits, Mount, Spec};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Pid, set_dumpable_behavior};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Where the supervisor's own program is inside.
pub(super) const SUPERVISOR: &str = "/var/supervisor";
/// Rights that the supervisor keeps when it is root, to become another user and to end what that
/// one started. The steps keep none.
pub(super) const RIGHTS: [&str; 7] = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FOWNER",
    "CAP_KILL",
    "CAP_SETGID",
    "CAP_SETPCAP",
    "CAP_SETUID",
];

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
    begin()?;
    let handover = number
        .ok_or(Errno::BADF)
        .and_then(sys::adopt)
        .doing("find the specification")
        .and_then(|memory| Handover::read(memory).doing("read the specification"))?;
    let held = handover.group.as_ref().map_or(0, Group::controllers);
    work(control, handover, held, &BTreeMap::new(), false)
}

/// The word where the walls are a kernel of their own, through which no descriptor passes.
pub(super) const APART: &str = "apart";

/// Runs on this process's standard input, from which the specification comes; `held` are the bounds
/// that a control group holds from outside, as bits.
pub(super) fn main_apart(held: Option<&OsStr>) -> ExitCode {
    let held = held
        .and_then(OsStr::to_str)
        .and_then(|text| text.parse().ok());
    launcher::serve(|control| apart(control, held.unwrap_or(0)))
}

fn apart(control: &UnixStream, held: u64) -> Result<(), Stop> {
    begin()?;
    let spec = codec::receive_spec(&mut Receiver::new(control)).doing("read the specification")?;
    let pins = pin::wanted(&spec);
    let handover = Handover {
        // Memory is bounded from outside, together with the kernel.
        fallback: Limits {
            processes: spec.limits.processes,
            ..Limits::default()
        },
        copies: sources(&spec)?,
        spec,
        group: None,
    };
    // gVisor shows everybody the maps and descriptors of every process.
    init::hide()?;
    work(control, handover, held, &pins, true)
}

/// The word where a container engine made the walls.
pub(super) const CONTAINED: &str = "contained";
/// Where the host process's socket is for the supervisor, and nobody else.
pub(super) const DOOR: &str = "/var/door";

/// Connects to the host process, from which the specification comes.
pub(super) fn main_contained() -> ExitCode {
    match UnixStream::connect(Path::new(DOOR).join(container::SOCKET)) {
        Ok(control) => launcher::serve_on(&control, contained),
        // Nobody waits any more, and nobody can be told.
        Err(_) => ExitCode::FAILURE,
    }
}

fn contained(control: &UnixStream) -> Result<(), Stop> {
    begin()?;
    let spec = codec::receive_spec(&mut Receiver::new(control)).doing("read the specification")?;
    let pins = pin::wanted(&spec);
    let (group, fallback) = Group::around(&spec.limits);
    let held = group.as_ref().map_or(0, Group::controllers);
    let handover = Handover {
        copies: sources(&spec)?,
        spec,
        group,
        fallback,
    };
    work(control, handover, held, &pins, false)
}

/// The folders that scratch mounts are copied from.
fn sources(spec: &Spec) -> Result<Vec<Copy>, Fault> {
    let mut copies = Vec::new();
    for (index, mount) in spec.mounts.iter().enumerate() {
        if let Mount::Scratch { inside, .. } = mount {
            let source = Path::new(SOURCES).join(index.to_string());
            let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
            copies.push(Copy {
                source: rustix::fs::open(&source, flags, Mode::empty())
                    .doing_on("open", &source)?,
                inside: inside.clone(),
                but: BTreeSet::new(),
            });
        }
    }
    Ok(copies)
}

/// Where the folders lie that scratch mounts are copied from, each under the number of its mount.
pub(super) const SOURCES: &str = "/var/sources";

fn begin() -> Result<(), Fault> {
    if rustix::process::getpid() != Pid::INIT {
        return Err(Errno::PERM).doing("be the first process");
    }
    set_dumpable_behavior(DumpableBehavior::NotDumpable).doing("hide memory")?;
    launcher::forbid_core_dumps().doing("forbid core dumps")?;
    rustix::process::umask(Mode::empty());
    Ok(())
}

/// Fills the tree and carries the specification out.
fn work(
    control: &UnixStream,
    mut handover: Handover,
    held: u64,
    pins: &BTreeMap<PathBuf, bool>,
    hide: bool,
) -> Result<(), Stop> {
    launcher::listeners(control, &handover.spec)?;
    let root = rustix::process::geteuid().is_root();
    let owner = if root {
        tree::Owner {
            uid: NOBODY,
            gid: NOBODY,
        }
    } else {
        tree::Owner {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
        }
    };
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let top = rustix::fs::open("/", flags, Mode::empty()).doing("open the root")?;
    for place in ["/run", HOME] {
        give(place, owner.uid, owner.gid).doing("hand over a folder")?;
    }
    for copy in &handover.copies {
        fill(copy, owner)?;
    }
    let copied = !handover.copies.is_empty();
    handover.copies.clear();
    lay::files(&top, &handover.spec, owner)?;
    pin::make_by_owner(&top, &handover.spec, pins)?;
    // Bodies live on in tmpfs only.
    handover.spec.files.clear();
    let ready = Ready {
        spec: &handover.spec,
        walls: Walls::Given,
        hide,
        root: &top,
        group: handover.group.as_ref(),
        held,
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

/// Copies a folder of the host into its scratch mount. Whoever the top belongs to on the host is the
/// programs' user in here, as what it is called inside may be root.
fn fill(copy: &Copy, owner: tree::Owner) -> Result<(), Fault> {
    let inside = &copy.inside;
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    let to: OwnedFd = rustix::fs::open(inside, flags, Mode::empty()).doing_on("open", inside)?;
    let stat = rustix::fs::fstat(&copy.source).doing_on("look at", inside)?;
    let given = Some((stat.st_uid, owner));
    copy::tree(&copy.source, &to, &copy.but, given).doing_on("copy", inside)?;
    give(inside, owner.uid, owner.gid).doing_on("hand over", inside)?;
    rustix::fs::fchmod(&to, Mode::from_raw_mode(stat.st_mode & 0o7777)).doing_on("copy", inside)
}
