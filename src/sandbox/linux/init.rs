//! pid 1 of one step, and the child that becomes the program.
//!
//! pid 1 holds no secret, runs no foreign code, has no capability and can't be traced: it starts
//! the program, reaps, and leaves when the program ends. Its end makes the kernel kill everything
//! else in the namespace. Inside another program's walls it is the same without that number, and
//! the launcher, which is pid 1 there, kills what is left.

use super::cgroup::{Group, MEMORY, PROCESSES};
use super::fault::{Doing as _, Fault};
use super::filter::Filters;
use super::watch::Watch;
use super::{Walls, inner, launcher, sys, tree};
use crate::sandbox::spec::{Limits, Mount, Spec, Step};
use rustix::fd::{AsFd as _, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{Gid, Mode, Uid};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MoveMountFlags, UnmountFlags,
};
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, Signal, WaitOptions, set_dumpable_behavior,
    set_parent_process_death_signal, setrlimit,
};
use rustix::thread::{CapabilitySet, CapabilitySets};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Record on the status pipe: the program's wait status follows.
pub(super) const ENDED: u8 = 1;
/// Record on the status pipe: the program could not be started; an errno follows.
pub(super) const NOT_STARTED: u8 = 2;
/// Record on the status pipe: the tree went over a bound that pid 1 watches (a bit of
/// [`super::cgroup`]).
pub(super) const OVER: u8 = 3;
/// Record on the status pipe: pid 1 could not set up the step; the length of a fault follows, then
/// the fault.
pub(super) const FAULT: u8 = 4;
/// Length of a record.
pub(super) const RECORD: usize = 5;

/// Descriptors of one step, as pid 1 and the program hold them.
pub(super) struct Ends {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    pub(super) channel: Option<OwnedFd>,
    /// Where records go.
    pub(super) status: OwnedFd,
    /// At its end when the launcher is gone; nothing ever comes.
    pub(super) launcher: OwnedFd,
}

/// What every step of a sandbox has in common.
pub(super) struct Common<'spec> {
    pub(super) spec: &'spec Spec,
    /// Who made the namespaces and mounts.
    pub(super) walls: Walls,
    /// Whether the kernel shows everybody what processes hold, so that ours must be hidden.
    pub(super) hide: bool,
    /// The tree's root folder.
    pub(super) root: &'spec OwnedFd,
    pub(super) filters: &'spec Filters,
    /// Control groups to join.
    pub(super) group: Option<&'spec Group>,
    /// Real user and group to become; `None` in a user namespace, where there is one id only.
    pub(super) become_user: Option<tree::Owner>,
    /// Whether the kernel's Landlock is there for the inner domain.
    pub(super) landlock: bool,
    /// Bounds that no control group holds and that this process must set for itself.
    pub(super) fallback: Limits,
}

/// Runs as pid 1 and never returns.
pub(super) fn main(common: &Common<'_>, step: &Step, ends: &Ends) -> ! {
    let status = match start(common, step, ends) {
        Ok(started) => started.reap(&ends.status),
        Err(fault) => {
            let bytes = fault.encode();
            let length = i32::try_from(bytes.len()).unwrap_or_default();
            // At once: whoever reads the first of it ends us.
            let whole = [head(FAULT, length).as_slice(), &bytes].concat();
            let _ = rustix::io::write(&ends.status, &whole);
            1
        }
    };
    sys::leave(status)
}

fn head(tag: u8, value: i32) -> [u8; RECORD] {
    let mut bytes = [tag, 0, 0, 0, 0];
    bytes[1..].copy_from_slice(&value.to_le_bytes());
    bytes
}

fn record(status: &OwnedFd, tag: u8, value: i32) {
    // Five bytes go into a pipe whole or not at all.
    let _ = rustix::io::write(status, &head(tag, value));
}

fn bits(bits: u64) -> i32 {
    i32::try_from(bits).unwrap_or_default()
}

fn start(common: &Common<'_>, step: &Step, ends: &Ends) -> Result<Started, Fault> {
    if let Some(group) = common.group {
        group.join()?;
    }
    let mut keep: Vec<i32> = [
        &ends.stdin,
        &ends.stdout,
        &ends.stderr,
        &ends.status,
        &ends.launcher,
    ]
    .map(AsRawFd::as_raw_fd)
    .to_vec();
    keep.extend(ends.channel.as_ref().map(AsRawFd::as_raw_fd));
    sys::close_all_but(&keep).doing("close descriptors")?;
    set_parent_process_death_signal(Some(Signal::KILL)).doing("tie to the launcher")?;
    let watch = match common.fallback.memory {
        Some(memory) => Some(Watch::new(memory, common.fallback.processes, common.walls)?),
        None => None,
    };
    if common.walls == Walls::Own {
        own_proc()?;
        // In our control group, so that it shows as the top.
        sys::unshare(sys::NEW_CGROUP).doing("make a cgroup namespace")?;
    }
    if common.hide {
        hide()?;
    }
    if common.walls == Walls::Given {
        // The launcher may be in the same control group: it is to live longer than the programs.
        let _ = launcher::write_proc("/proc/self/oom_score_adj", "1000");
    }
    limits(&common.spec.limits, &common.fallback)?;
    drop_privileges(common.become_user)?;
    still_wanted(ends.launcher.as_fd())?;
    match sys::fork(0).doing("start the program")? {
        sys::Fork::Child => {
            let errno = program(common, step, ends);
            record(&ends.status, NOT_STARTED, errno.raw_os_error());
            sys::leave(127)
        }
        sys::Fork::Parent { pid, pidfd } => Ok(Started { pid, pidfd, watch }),
    }
}

/// A `/proc` of this pid namespace, read-only and without other users' processes, in place of the
/// one that the tree was built with.
fn own_proc() -> Result<(), Fault> {
    let fs = rustix::mount::fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC).doing("open /proc")?;
    // Hides what a program may not trace: pid 1 above all.
    rustix::mount::fsconfig_set_string(&fs, "hidepid", "2").doing("hide processes")?;
    rustix::mount::fsconfig_create(&fs).doing("make /proc")?;
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let mount = rustix::mount::fsmount(&fs, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
        .doing("mount /proc")?;
    rustix::mount::unmount("/proc", UnmountFlags::DETACH).doing("leave the old /proc")?;
    rustix::mount::move_mount(
        &mount,
        "",
        rustix::fs::CWD,
        "/proc",
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
    )
    .doing("mount /proc")
}

/// Puts an empty folder over what `/proc` shows of this process.
pub(super) fn hide() -> Result<(), Fault> {
    let own = format!("/proc/{}", rustix::process::getpid().as_raw_pid());
    let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    rustix::mount::mount("none", own, "tmpfs", flags, c"mode=0555,size=4096")
        .doing("hide the supervisor")
}

fn limits(limits: &Limits, fallback: &Limits) -> Result<(), Fault> {
    let set = |resource, value: Option<u64>| {
        let bound = Rlimit {
            current: value,
            maximum: value,
        };
        setrlimit(resource, bound).doing("set a limit")
    };
    if limits.file.is_some() {
        set(Resource::Fsize, limits.file)?;
    }
    let files = rustix::process::getrlimit(Resource::Nofile);
    set(
        Resource::Nofile,
        Some(files.maximum.unwrap_or(4096).min(4096)),
    )?;
    if fallback.memory.is_some() {
        set(Resource::Data, fallback.memory)?;
    }
    if fallback.processes.is_some() {
        set(Resource::Nproc, fallback.processes)?;
    }
    Ok(())
}

fn drop_privileges(become_user: Option<tree::Owner>) -> Result<(), Fault> {
    for bit in 0..64u32 {
        let Some(capability) = CapabilitySet::from_bits(1 << bit) else {
            break;
        };
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // Past the last one that this kernel knows.
            Err(Errno::INVAL) => break,
            // Whoever made the walls took it away before, or it is past the last one.
            Err(Errno::PERM)
                if rustix::thread::capability_is_in_bounding_set(capability) != Ok(true) => {}
            Err(errno) => return Err(errno).doing("drop capabilities"),
        }
    }
    match rustix::thread::clear_ambient_capability_set() {
        // A kernel without them: gVisor.
        Ok(()) | Err(Errno::INVAL) => {}
        Err(errno) => return Err(errno).doing("drop capabilities"),
    }
    if let Some(owner) = become_user {
        let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
        rustix::thread::set_thread_groups(&[]).doing("drop groups")?;
        rustix::thread::set_thread_res_gid(gid, gid, gid).doing("become another group")?;
        rustix::thread::set_thread_res_uid(uid, uid, uid).doing("become another user")?;
    }
    let none = CapabilitySet::empty();
    let sets = CapabilitySets {
        effective: none,
        permitted: none,
        inheritable: none,
    };
    rustix::thread::set_capabilities(None, sets).doing("drop capabilities")?;
    rustix::thread::set_no_new_privs(true).doing("forbid new privileges")?;
    // A change of user clears both.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).doing("hide memory")?;
    set_parent_process_death_signal(Some(Signal::KILL)).doing("tie to the launcher")
}

/// Fails when the launcher died before our parent-death signal was set.
fn still_wanted(launcher: BorrowedFd<'_>) -> Result<(), Fault> {
    let mut fds = [rustix::event::PollFd::new(
        &launcher,
        rustix::event::PollFlags::IN,
    )];
    let now = rustix::event::Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    match rustix::event::poll(&mut fds, Some(&now)) {
        Ok(0) => Ok(()),
        _ => Err(Errno::CANCELED).doing("find the launcher alive"),
    }
}

/// Becomes the program; returns why it could not.
fn program(common: &Common<'_>, step: &Step, ends: &Ends) -> Errno {
    prepare(common, step, ends).map_or_else(
        |errno| errno,
        |call| sys::exec(&call.program, &call.argv, &call.env),
    )
}

struct Call {
    program: CString,
    argv: Vec<CString>,
    env: Vec<CString>,
}

fn prepare(common: &Common<'_>, step: &Step, ends: &Ends) -> Result<Call, Errno> {
    let text = |bytes: &[u8]| CString::new(bytes).map_err(|_| Errno::INVAL);
    let argv: Vec<CString> = step
        .argv
        .iter()
        .map(|arg| text(arg.as_bytes()))
        .collect::<Result<_, _>>()?;
    let program = argv.first().cloned().ok_or(Errno::INVAL)?;
    if !program.to_bytes().starts_with(b"/") {
        return Err(Errno::INVAL);
    }
    let env = step
        .env
        .iter()
        .map(|(key, value)| {
            let mut line = key.as_bytes().to_vec();
            line.push(b'=');
            line.extend_from_slice(value.as_bytes());
            text(&line)
        })
        .collect::<Result<_, _>>()?;
    // The launcher keeps 3 for itself, so that no end of a pipe is overwritten below.
    let lowest = [&ends.stdin, &ends.stdout, &ends.stderr, &ends.status]
        .into_iter()
        .chain(&ends.channel)
        .map(AsRawFd::as_raw_fd)
        .min();
    if lowest.is_none_or(|fd| fd <= 3) {
        return Err(Errno::BADF);
    }
    sys::new_session()?;
    sys::reset_signals();
    rustix::process::umask(Mode::from_raw_mode(0o022));
    rustix::process::chdir(&step.dir)?;
    sys::place(ends.stdin.as_fd(), 0)?;
    sys::place(ends.stdout.as_fd(), 1)?;
    sys::place(ends.stderr.as_fd(), 2)?;
    if let Some(channel) = &ends.channel {
        sys::place(channel.as_fd(), 3)?;
        sys::close_all_but(&[3, ends.status.as_raw_fd()])?;
    } else {
        sys::close_all_but(&[ends.status.as_raw_fd()])?;
    }
    if common.spec.inner_domain && common.landlock {
        inner::enter(writable(common.spec))?;
    }
    common.filters.apply()?;
    Ok(Call { program, argv, env })
}

/// What programs may change, where it exists.
pub(super) fn writable(spec: &Spec) -> impl Iterator<Item = &Path> {
    let named = spec.mounts.iter().filter_map(|mount| match mount {
        Mount::ReadOnly { .. } => None,
        Mount::ReadWrite { inside, .. } | Mount::Scratch { inside, .. } => Some(inside.as_path()),
    });
    ["/tmp", "/run", crate::sandbox::HOME, "/dev"]
        .into_iter()
        .map(Path::new)
        .chain(named)
}

/// The program, once it runs.
struct Started {
    pid: i32,
    pidfd: Option<OwnedFd>,
    watch: Option<Watch>,
}

impl Started {
    /// Reaps until the program ends, and reports how it did. Its status is ours.
    fn reap(mut self, status: &OwnedFd) -> i32 {
        loop {
            let options = if self.watch.is_some() {
                WaitOptions::NOHANG
            } else {
                WaitOptions::empty()
            };
            match rustix::process::wait(options) {
                Ok(Some((pid, ended))) if pid.as_raw_pid() == self.pid => {
                    if self.watch.as_ref().is_some_and(Watch::was_full) {
                        record(status, OVER, bits(PROCESSES));
                    }
                    record(status, ENDED, ended.as_raw());
                    return 0;
                }
                Ok(None) => {
                    if self
                        .watch
                        .as_mut()
                        .is_some_and(|watch| watch.tick(self.pidfd.as_ref()))
                    {
                        record(status, OVER, bits(MEMORY));
                        return 1;
                    }
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Err(_) => return 1,
            }
        }
    }
}
