//! System calls that `rustix` does not offer, each behind a safe function.
//!
//! Owns all `unsafe` of this crate. Everything here runs in the single-threaded launcher, its
//! pid 1 or the child that becomes the program.

#![expect(
    unsafe_code,
    reason = "namespaces, mount attributes and a fork without exec have no safe wrapper"
)]

use rustix::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::ptr;

/// New user namespace.
pub(super) const NEW_USER: i32 = libc::CLONE_NEWUSER;
/// New mount namespace.
pub(super) const NEW_MOUNTS: i32 = libc::CLONE_NEWNS;
/// New network namespace.
pub(super) const NEW_NETWORK: i32 = libc::CLONE_NEWNET;
/// New host name.
pub(super) const NEW_HOST_NAME: i32 = libc::CLONE_NEWUTS;
/// New System V IPC and message queues.
pub(super) const NEW_IPC: i32 = libc::CLONE_NEWIPC;
/// New view of control groups.
pub(super) const NEW_CGROUP: i32 = libc::CLONE_NEWCGROUP;
/// New process ids.
pub(super) const NEW_PIDS: i32 = libc::CLONE_NEWPID;

/// Mount attribute: read-only.
pub(super) const ATTR_READ_ONLY: u64 = 0x1;
/// Mount attribute: set-user-id bits are ignored.
pub(super) const ATTR_NO_SUID: u64 = 0x2;
/// Mount attribute: device nodes don't work.
pub(super) const ATTR_NO_DEV: u64 = 0x4;

/// Linux's own error as an errno, for results of raw calls.
fn last() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

fn check(result: libc::c_long) -> Result<libc::c_long, Errno> {
    if result < 0 { Err(last()) } else { Ok(result) }
}

/// Leaves the namespaces named by `flags` for new ones.
pub(super) fn unshare(flags: i32) -> Result<(), Errno> {
    // SAFETY: only namespace flags are passed (never CLONE_FILES); no memory is involved.
    check(unsafe { libc::syscall(libc::SYS_unshare, libc::c_long::from(flags)) }).map(drop)
}

/// Which side of a [`fork`] this is.
pub(super) enum Fork {
    /// The new process.
    Child,
    /// The old one, with the child's id and a descriptor that becomes readable at its end.
    Parent {
        /// Id of the child in our pid namespace.
        pid: i32,
        /// Its process descriptor, where the kernel has such.
        pidfd: Option<OwnedFd>,
    },
}

/// Forks into the new namespaces named by `flags`. The caller must be single-threaded.
pub(super) fn fork(flags: i32) -> Result<Fork, Errno> {
    match clone(flags | libc::CLONE_PIDFD) {
        // No such descriptors: Linux before 5.2, gVisor.
        Err(Errno::INVAL) => clone(flags),
        done => done,
    }
}

fn clone(flags: i32) -> Result<Fork, Errno> {
    let mut pidfd: RawFd = -1;
    let flags = libc::c_long::from(flags | libc::SIGCHLD);
    // SAFETY: without CLONE_VM and with a null stack this is fork(2): the child gets a copy of the
    // address space. The process has one thread, so no lock can be held by another. The third
    // argument is where the kernel stores the process descriptor; it lives on our stack.
    let result = unsafe {
        libc::syscall(
            libc::SYS_clone,
            flags,
            ptr::null_mut::<libc::c_void>(),
            &raw mut pidfd,
            ptr::null_mut::<libc::c_void>(),
            ptr::null_mut::<libc::c_void>(),
        )
    };
    let pid = check(result)?;
    if pid == 0 {
        return Ok(Fork::Child);
    }
    // SAFETY: the kernel just made this descriptor for us; nothing else owns it.
    let pidfd = (pidfd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(pidfd) });
    Ok(Fork::Parent {
        pid: i32::try_from(pid).unwrap_or(i32::MAX),
        pidfd,
    })
}

/// Ends this process at once: no destructors, no exit handlers, no unwinding into the caller's
/// code, which belongs to the parent.
pub(super) fn leave(status: i32) -> ! {
    // SAFETY: `_exit` touches no memory of ours.
    unsafe { libc::_exit(status) }
}

/// Becomes `program`. Returns only when that failed.
pub(super) fn exec(program: &CStr, argv: &[CString], env: &[CString]) -> Errno {
    let pointers = |list: &[CString]| -> Vec<*const libc::c_char> {
        list.iter()
            .map(|item| item.as_ptr())
            .chain(std::iter::once(ptr::null()))
            .collect()
    };
    let (argv, env) = (pointers(argv), pointers(env));
    // SAFETY: both arrays end with a null pointer and point to NUL-terminated strings that live
    // until the call returns.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    last()
}

#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    userns: u64,
}

/// Sets attributes on the mount that `fd` stands for, and on all below it when `recursive`.
pub(super) fn set_mount_attributes(
    fd: BorrowedFd<'_>,
    set: u64,
    recursive: bool,
) -> Result<(), Errno> {
    let attr = MountAttr {
        set,
        clear: 0,
        propagation: 0,
        userns: 0,
    };
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is an empty NUL-terminated string, the struct has the layout and the size
    // that the kernel reads (struct mount_attr, version 0).
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::c_long::from(fd.as_raw_fd()),
            c"".as_ptr(),
            libc::c_long::from(flags),
            &raw const attr,
            size_of::<MountAttr>(),
        )
    })
    .map(drop)
}

/// Closes every descriptor above 2 but those in `keep`.
pub(super) fn close_all_but(keep: &[RawFd]) -> Result<(), Errno> {
    let mut keep: Vec<u32> = keep
        .iter()
        .filter_map(|fd| u32::try_from(*fd).ok())
        .filter(|fd| *fd > 2)
        .collect();
    keep.sort_unstable();
    let mut from = 3u32;
    // No descriptor is larger, and gVisor refuses a larger end.
    let end = i32::MAX.unsigned_abs();
    for fd in keep.into_iter().chain(std::iter::once(end)) {
        if fd > from {
            let to = if fd == end { fd } else { fd - 1 };
            // SAFETY: closing descriptors touches no memory. Owners of closed descriptors in this
            // process are never used or dropped again: the caller execs or leaves by `_exit`.
            check(unsafe { libc::syscall(libc::SYS_close_range, from, to, 0u32) })?;
        }
        from = fd.saturating_add(1);
    }
    Ok(())
}

/// Makes `target` name what `fd` names, open across exec.
pub(super) fn place(fd: BorrowedFd<'_>, target: RawFd) -> Result<(), Errno> {
    if fd.as_raw_fd() == target {
        // SAFETY: changes a flag of a descriptor that the caller holds.
        return check(unsafe { libc::fcntl(target, libc::F_SETFD, 0) }.into()).map(drop);
    }
    // SAFETY: replaces descriptor `target`, which the caller gave up.
    check(unsafe { libc::dup2(fd.as_raw_fd(), target) }.into()).map(drop)
}

/// Leaves `fd` open across exec.
pub(super) fn keep(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: changes a flag of a descriptor that the caller holds.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, 0) }.into()).map(drop)
}

/// Takes over a descriptor that this process inherited, and closes it across exec from now on.
pub(super) fn adopt(fd: RawFd) -> Result<OwnedFd, Errno> {
    if fd <= 2 {
        return Err(Errno::BADF);
    }
    // SAFETY: sets a flag; fails on what is no descriptor.
    check(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) }.into())?;
    // SAFETY: the descriptor is open, and whoever started this process named it to be ours. Callers
    // take each one once.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Makes this process the first of a session. Its id is not looked at: gVisor answers 0.
pub(super) fn new_session() -> Result<(), Errno> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::setsid() }.into()).map(drop)
}

/// Kills every other process of our pid namespace, whose first process we must be, and waits until
/// all are gone.
pub(super) fn kill_all_others() -> Result<(), Errno> {
    // Anywhere else this would end processes that are not ours.
    if rustix::process::getpid() != rustix::process::Pid::INIT {
        return Err(Errno::PERM);
    }
    // SAFETY: sends a signal; no memory is involved. A process that is forking just now is killed
    // before its child exists, or both are.
    let killed = check(unsafe { libc::kill(-1, libc::SIGKILL) }.into());
    match killed {
        // Nobody is there, which is as good.
        Ok(_) | Err(Errno::SRCH) => {}
        Err(errno) => return Err(errno),
    }
    loop {
        // What lost its parent is ours.
        match rustix::process::wait(rustix::process::WaitOptions::empty()) {
            Err(Errno::CHILD) => return Ok(()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// Default actions for every signal that our runtime changed, none blocked.
pub(super) fn reset_signals() {
    // SAFETY: an all-zero `sigset_t` is a valid argument for `sigemptyset`; SIG_DFL is a valid
    // action; failure leaves the signal as it was.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
        for signal in 1..=64 {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
}

/// Blocks SIGTERM, SIGINT and SIGHUP and returns a descriptor that becomes readable when one
/// arrives.
pub(super) fn watch_end_signals() -> Result<OwnedFd, Errno> {
    // SAFETY: the set is initialised by `sigemptyset` before use and outlives the calls; the
    // returned descriptor is ours alone.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            libc::sigaddset(&raw mut set, signal);
        }
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut());
        let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        check(fd.into())?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Brings the loopback interface of this network namespace up.
pub(super) fn loopback_up(socket: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: `ifreq` is plain data for which all zeroes is valid; the name fits with its NUL; the
    // kernel reads and writes within the struct only.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = libc::c_char::try_from(b'l').unwrap_or_default();
        request.ifr_name[1] = libc::c_char::try_from(b'o').unwrap_or_default();
        let up = libc::IFF_UP | libc::IFF_RUNNING;
        request.ifr_ifru.ifru_flags = libc::c_short::try_from(up).unwrap_or_default();
        let fd = socket.as_raw_fd();
        check(libc::ioctl(fd, libc::SIOCSIFFLAGS as _, &raw const request).into()).map(drop)
    }
}

/// Sets the host name of this UTS namespace.
pub(super) fn set_host_name(name: &str) -> Result<(), Errno> {
    // SAFETY: pointer and length describe one string slice.
    check(unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) }.into()).map(drop)
}

/// The kernel's Landlock interface version; 0 when there is none.
pub(super) fn landlock_abi() -> u32 {
    // SAFETY: with a null attribute, size 0 and the version flag (1) the call only returns a
    // number.
    let result = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            ptr::null::<libc::c_void>(),
            0usize,
            1u32,
        )
    };
    u32::try_from(result).unwrap_or(0)
}

/// Bytes in a page of memory.
pub(super) fn page_size() -> u64 {
    // SAFETY: only reads a constant of the system.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}
