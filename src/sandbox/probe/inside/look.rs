//! Attempts to see, reach or change what is not the sandbox's own.

use super::super::{KERNEL, Probe, calls};
use super::{ALIVE, Bait, Kernel, all_refused, refused};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs as _, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixStream};
use std::path::Path;
use std::time::Duration;

/// Makes every attempt, and at last leaves a process behind.
pub(super) fn look(bait: &Bait, tell: &mut dyn FnMut(&str, Probe)) {
    tell("descriptors", descriptors());
    files(bait, tell);
    network(bait, tell);
    sockets(bait, tell);
    tell("host-processes", host_processes(bait));
    tell(KERNEL, kernel(bait));
    supervisor(tell);
    tell("peer-memory", peer_memory());
    tell("capabilities", capabilities());
    tell("user-namespace", user_namespace());
    tell("kernel-surface", kernel_surface());
    tell("terminal", terminal());
    tell("supervisor-signal", supervisor_signal());
    leave_behind();
}

fn descriptors() -> Probe {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else {
        return Probe::unmeasured("/proc/self/fd cannot be read");
    };
    // 0 to 2, the channel on 3, our own copy of it, and this folder.
    let most = 6;
    let count = entries.count();
    if count <= most {
        Probe::held(format!("{count} open"))
    } else {
        Probe::open(format!("{count} open"))
    }
}

fn files(bait: &Bait, tell: &mut dyn FnMut(&str, Probe)) {
    tell(
        "host-file",
        refused(fs::read(&bait.file), "a file of the host was read"),
    );
    let secrets = [
        "/etc/shadow",
        "/proc/1/environ",
        "/proc/kcore",
        "/dev/mem",
        "/dev/vda",
        "/dev/sda",
    ];
    tell(
        "host-secrets",
        all_refused(secrets.map(|path| (path, readable(path)))),
    );
    let near = bait.file.with_file_name("written");
    let places = [
        ("/", Path::new("/.written")),
        ("/usr", Path::new("/usr/.written")),
        ("/etc", Path::new("/etc/.written")),
        ("/proc/sys", Path::new("/proc/sys/kernel/core_pattern")),
        ("next to a file of the host", &near),
    ];
    let write = |path: &Path| {
        let new = !path.starts_with("/proc");
        OpenOptions::new()
            .write(true)
            .create_new(new)
            .open(path)
            .is_ok()
    };
    tell(
        "write-outside",
        all_refused(places.map(|(name, path)| (name, write(path)))),
    );
}

fn readable(path: &str) -> bool {
    File::open(path).is_ok_and(|mut file| file.read(&mut [0; 1]).is_ok_and(|read| read > 0))
}

fn network(bait: &Bait, tell: &mut dyn FnMut(&str, Probe)) {
    // A datagram socket that is connected sends nothing: the kernel only looks for a route.
    let route = |bind: SocketAddr, to: SocketAddr| {
        UdpSocket::bind(bind).and_then(|socket| socket.connect(to))
    };
    let any4 = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let any6 = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
    let cloud = Ipv4Addr::new(169, 254, 169, 254);
    let six = Ipv6Addr::new(0x2606, 0x4700, 0x4700, 0, 0, 0, 0, 0x1111);
    tell(
        "route",
        all_refused([
            (
                "1.1.1.1",
                route(any4, (Ipv4Addr::new(1, 1, 1, 1), 53).into()).is_ok(),
            ),
            ("169.254.169.254", route(any4, (cloud, 80).into()).is_ok()),
            (
                "10.0.0.1",
                route(any4, (Ipv4Addr::new(10, 0, 0, 1), 80).into()).is_ok(),
            ),
            (
                "2606:4700:4700::1111",
                route(any6, (six, 53).into()).is_ok(),
            ),
        ]),
    );
    let host = SocketAddr::from((Ipv4Addr::LOCALHOST, bait.port));
    let short = Duration::from_millis(100);
    tell(
        "host-loopback",
        refused(
            TcpStream::connect_timeout(&host, short),
            "a port of the host answered",
        ),
    );
    tell(
        "resolve",
        refused(
            (bait.host.as_str(), 80).to_socket_addrs(),
            "a name was resolved",
        ),
    );
}

fn sockets(bait: &Bait, tell: &mut dyn FnMut(&str, Probe)) {
    tell(
        "host-socket",
        refused(
            UnixStream::connect(&bait.socket),
            "a socket of the host answered",
        ),
    );
    let name = UnixAddr::from_abstract_name(&bait.name)
        .and_then(|address| UnixStream::connect_addr(&address));
    tell(
        "host-abstract-socket",
        refused(name, "an abstract socket of the host answered"),
    );
}

/// In a pid namespace of our own the only others may be those that started us.
fn host_processes(bait: &Bait) -> Probe {
    let Ok(namespace) = fs::read_link("/proc/self/ns/pid") else {
        return Probe::unmeasured("/proc/self/ns/pid cannot be read");
    };
    if namespace.as_os_str() == bait.processes_of.as_str() {
        return Probe::open("processes are numbered together with the host's");
    }
    let Ok(entries) = fs::read_dir("/proc") else {
        return Probe::unmeasured("/proc cannot be read");
    };
    let own = ancestors();
    let others: Vec<i32> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != own[0])
        .collect();
    let foreign = others.iter().filter(|pid| !own.contains(pid)).count();
    if others.is_empty() {
        Probe::held("no other process is visible")
    } else if foreign == 0 {
        Probe::held("only the sandbox's own supervisor is visible")
    } else {
        Probe::open(format!("{foreign} other processes are visible"))
    }
}

/// Our own id, that of the first process, our parent's and so on, as far as they are visible.
fn ancestors() -> Vec<i32> {
    let own = rustix::process::getpid().as_raw_pid();
    let mut found = vec![own, 1, own];
    let parent = |pid: i32| -> Option<i32> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
        line.trim().parse().ok().filter(|parent| *parent > 0)
    };
    while let Some(next) = found.last().copied().and_then(parent) {
        found.push(next);
    }
    found
}

/// Whether another kernel than the host's answers. Nothing of what is compared can be set by
/// whoever makes namespaces.
fn kernel(bait: &Bait) -> Probe {
    let here = Kernel::here();
    if here.name == bait.kernel.name {
        Probe::open(format!("the host's own: {}", here.name))
    } else if !here.boot.is_empty() && here.boot == bait.kernel.boot {
        Probe::open("another name, but started together with the host's")
    } else {
        Probe::held(format!("another one: {}", here.name))
    }
}

/// Whether `pid` can be traced. Seized, not attached: that would stop it for good.
fn trace(pid: i32) -> bool {
    const SEIZE: i64 = 0x4206;
    calls::raw(libc::SYS_ptrace, [SEIZE, pid.into(), 0, 0]).is_ok()
}

/// pid 1 and our parent, which may be one, are the processes of ours that are in reach at all.
fn supervisor(tell: &mut dyn FnMut(&str, Probe)) {
    let parent = rustix::process::getppid().map_or(1, Pid::as_raw_pid);
    let pids = [1, parent];
    tell(
        "supervisor-trace",
        all_refused(pids.into_iter().flat_map(|pid| {
            [
                ("ptrace", trace(pid)),
                ("pidfd_getfd", take_descriptor(pid)),
            ]
        })),
    );
    let open = |path: &str, write: bool| {
        OpenOptions::new()
            .read(true)
            .write(write)
            .open(path)
            .is_ok()
    };
    let memory = |pid: i32| {
        let at = |name: &str| format!("/proc/{pid}/{name}");
        [
            ("read memory", open(&at("mem"), false)),
            ("write memory", open(&at("mem"), true)),
            ("maps", readable(&at("maps"))),
            ("root", fs::read_dir(at("root/")).is_ok()),
            ("descriptors", fs::read_dir(at("fd")).is_ok()),
        ]
    };
    tell(
        "supervisor-memory",
        all_refused(pids.into_iter().flat_map(memory)),
    );
}

/// A killed pid 1 takes this probe with it, and what is not told counts as unmeasured.
fn supervisor_signal() -> Probe {
    if let Err(error) = rustix::process::kill_process(Pid::INIT, Signal::KILL) {
        return Probe::held(error.to_string());
    }
    std::thread::sleep(Duration::from_millis(5));
    Probe::held("pid 1 is not impressed")
}

fn take_descriptor(pid: i32) -> bool {
    let Ok(pidfd) = calls::raw(libc::SYS_pidfd_open, [pid.into(), 0, 0, 0]) else {
        return false;
    };
    calls::raw(libc::SYS_pidfd_getfd, [pidfd, 0, 0, 0]).is_ok()
}

/// A child tries to open the memory of its parent, as patched code would that of the runner.
fn peer_memory() -> Probe {
    match calls::fork() {
        Ok(None) => {
            let parent = rustix::process::getppid().map_or(0, rustix::process::Pid::as_raw_pid);
            let path = format!("/proc/{parent}/mem");
            let memory = OpenOptions::new().write(true).open(path).is_ok();
            calls::leave(i32::from(memory || trace(parent)))
        }
        Ok(Some(pid)) => match wait_for(pid) {
            Some(0) => Probe::held("a child was refused its parent's memory"),
            Some(_) => Probe::open("a child may write its parent's memory"),
            None => Probe::unmeasured("the child was lost"),
        },
        Err(error) => Probe::unmeasured(error.to_string()),
    }
}

fn wait_for(pid: i32) -> Option<i32> {
    let pid = Pid::from_raw(pid)?;
    let (_, status) = rustix::process::waitpid(Some(pid), WaitOptions::empty()).ok()??;
    status.exit_status()
}

fn capabilities() -> Probe {
    let Ok(status) = fs::read_to_string("/proc/self/status") else {
        return Probe::unmeasured("/proc/self/status cannot be read");
    };
    let field = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .map(str::trim)
    };
    let none = |name: &str| field(name).is_some_and(|value| value.bytes().all(|byte| byte == b'0'));
    let sets = ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"];
    // A kernel without ambient rights has no such line, and says so when it is asked.
    let unknown = |set: &str| {
        set == "CapAmb:" && field(set).is_none() && calls::ambient() == Err(Errno::INVAL)
    };
    if let Some(set) = sets.into_iter().find(|set| !none(set) && !unknown(set)) {
        return Probe::open(format!("{set} is not empty"));
    }
    if !rustix::thread::no_new_privs().unwrap_or(false) {
        return Probe::open("privileges can be gained by exec");
    }
    if rustix::process::geteuid().is_root() {
        return Probe::open("programs run as root");
    }
    all_refused([
        ("chroot", rustix::process::chroot("/").is_ok()),
        (
            "set-user-id",
            calls::raw(libc::SYS_setuid, [0, 0, 0, 0]).is_ok(),
        ),
    ])
}

fn user_namespace() -> Probe {
    let user = i64::from(libc::CLONE_NEWUSER);
    let clone = |number, flags| match calls::raw(number, [flags, 0, 0, 0]) {
        Ok(0) => calls::leave(0),
        Ok(pid) => {
            wait_for(i32::try_from(pid).unwrap_or(0));
            true
        }
        Err(_) => false,
    };
    all_refused([
        (
            "clone",
            clone(libc::SYS_clone, user | i64::from(libc::SIGCHLD)),
        ),
        // A null argument is refused by the filter before it is looked at.
        (
            "clone3",
            calls::raw(libc::SYS_clone3, [0, 88, 0, 0]) != Err(Errno::NOSYS),
        ),
        (
            "unshare",
            calls::raw(libc::SYS_unshare, [user, 0, 0, 0]).is_ok(),
        ),
        (
            "setns",
            calls::raw(libc::SYS_setns, [0, user, 0, 0]) != Err(Errno::PERM),
        ),
    ])
}

/// Calls that a filter must refuse: here the answer matters, not only that it is an error.
fn kernel_surface() -> Probe {
    let filtered = |number, args| {
        matches!(
            calls::raw(number, args),
            Err(Errno::PERM | Errno::NOSYS | Errno::ACCESS)
        )
    };
    let socket = |family: i32, kind: i32, protocol: i32| {
        calls::raw(
            libc::SYS_socket,
            [family.into(), kind.into(), protocol.into(), 0],
        )
        .is_ok()
    };
    let ring = matches!(calls::io_uring(), Err(Errno::PERM | Errno::NOSYS));
    all_refused([
        ("io_uring", !ring),
        ("keyctl", !filtered(libc::SYS_keyctl, [0, -3, 1, 0])),
        ("bpf", !filtered(libc::SYS_bpf, [0, 0, 0, 0])),
        (
            "perf_event_open",
            !filtered(libc::SYS_perf_event_open, [0, 0, 0, 0]),
        ),
        (
            "userfaultfd",
            !filtered(libc::SYS_userfaultfd, [0, 0, 0, 0]),
        ),
        ("mount", !filtered(libc::SYS_mount, [0, 0, 0, 0])),
        ("open_tree", !filtered(libc::SYS_open_tree, [0, 0, 0, 0])),
        ("fsopen", !filtered(libc::SYS_fsopen, [0, 0, 0, 0])),
        (
            "process_vm_writev",
            !filtered(libc::SYS_process_vm_writev, [1, 0, 0, 0]),
        ),
        ("vsock", socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0)),
        ("packet", socket(libc::AF_PACKET, libc::SOCK_RAW, 0)),
        (
            "kernel keys socket",
            socket(libc::AF_ALG, libc::SOCK_SEQPACKET, 0),
        ),
        (
            "netlink audit",
            socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_AUDIT),
        ),
    ])
}

fn terminal() -> Probe {
    all_refused([
        ("/dev/tty", File::open("/dev/tty").is_ok()),
        ("input", calls::push_input() != Err(Errno::PERM)),
    ])
}

/// Leaves a process behind in a session of its own, which shows that it lives by holding a lock.
fn leave_behind() {
    let Ok((ready, mut held)) = io::pipe() else {
        return;
    };
    if !matches!(calls::fork(), Ok(None)) {
        drop(held);
        // At its end when the lock is held (or the child is gone).
        let _ = { ready }.read(&mut [0; 1]);
        return;
    }
    let _ = calls::raw(libc::SYS_setsid, [0; 4]);
    if !matches!(calls::fork(), Ok(None)) {
        calls::leave(0);
    }
    if let Ok(file) = File::create(ALIVE) {
        let _ = flock(&file, FlockOperation::LockExclusive);
        let _ = held.write_all(&[1]);
        std::thread::sleep(Duration::from_secs(60));
    }
    calls::leave(0)
}
