//! The launcher: the hidden single-threaded subcommand that makes a sandbox and runs its steps.
//!
//! It lives outside the steps' pid namespaces, in the sandbox's other namespaces. It is started by
//! [`super::host`], reads the specification from its standard input (a Unix socket) and reports
//! over it. It ends, with everything inside, when that socket ends.

use super::cgroup::{self, Group};
use super::fault::{Doing as _, Fault};
use super::filter;
use super::init::Common;
use super::step::{self, Ended, Outside};
use super::wire::{self, Receiver, Writer, kind};
use super::{Walls, codec, inner, lay, pin, sys, tree};
use crate::base::redact::Secret;
use crate::sandbox::spec::{End, Enforced, Limits, Network, Spec};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use rustix::process::{DumpableBehavior, Resource, Rlimit, Signal};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The user and group of sandboxed programs when hangar runs as root.
pub(in crate::sandbox) const NOBODY: u32 = 65_534;
/// The user and group inside a user namespace.
pub(super) const USER: u32 = 1_000;

/// Why the launcher stops early.
pub(super) enum Stop {
    /// Something failed; the host process is told.
    Fault(Fault),
    /// Nobody is there to be told.
    Gone,
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

pub(super) fn gone<E>(_: E) -> Stop {
    Stop::Gone
}

/// Runs the launcher on this process's standard input.
pub(super) fn main() -> ExitCode {
    serve(session)
}

/// Runs `session` on this process's standard input, and tells the host process why it failed.
pub(super) fn serve(session: impl FnOnce(&UnixStream) -> Result<(), Stop>) -> ExitCode {
    let Ok(control) = std::io::stdin().as_fd().try_clone_to_owned() else {
        return ExitCode::FAILURE;
    };
    serve_on(&UnixStream::from(control), session)
}

/// The same on another socket.
pub(super) fn serve_on(
    control: &UnixStream,
    session: impl FnOnce(&UnixStream) -> Result<(), Stop>,
) -> ExitCode {
    match session(control) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Stop::Gone) => ExitCode::FAILURE,
        Err(Stop::Fault(fault)) => {
            let _ = wire::send(control, kind::FAILED, &fault.encode());
            ExitCode::FAILURE
        }
    }
}

fn session(control: &UnixStream) -> Result<(), Stop> {
    let identity = isolate()?;
    let mut spec =
        codec::receive_spec(&mut Receiver::new(control)).doing("read the specification")?;
    loopback()?;
    listeners(control, &spec)?;
    sys::set_host_name("localhost").doing("set the host name")?;
    let (group, fallback) = Group::make(&spec.limits)?;
    let tree = tree::build(&spec, identity.files, identity.user_namespace)?;
    lay::files(&tree.root, &spec, identity.files)?;
    let pins = pin::wanted(&spec);
    // Bodies live on in tmpfs only.
    spec.files.clear();
    tree::enter(&tree)?;
    pin::make(&pins)?;
    let ready = Ready {
        spec: &spec,
        walls: Walls::Own,
        hide: false,
        root: &tree.root,
        group: group.as_ref(),
        held: group.as_ref().map_or(0, Group::controllers),
        fallback,
        become_user: identity.become_user,
        copied: tree.copied,
    };
    ready.carry_out(control)
}

/// A sandbox in which everything stands, and nothing has run yet.
pub(super) struct Ready<'a> {
    pub(super) spec: &'a Spec,
    pub(super) walls: Walls,
    /// Whether each process of ours must be hidden from the programs.
    pub(super) hide: bool,
    /// The tree's root folder.
    pub(super) root: &'a OwnedFd,
    pub(super) group: Option<&'a Group>,
    /// Bounds that a control group holds, as bits.
    pub(super) held: u64,
    /// Bounds that no control group holds.
    pub(super) fallback: Limits,
    /// Real user that steps must become.
    pub(super) become_user: Option<tree::Owner>,
    /// Whether a scratch folder is a copy.
    pub(super) copied: bool,
}

impl Ready<'_> {
    /// Runs the steps, reads back what they left, and reports all of it.
    pub(super) fn carry_out(self, control: &UnixStream) -> Result<(), Stop> {
        let landlock = inner::abi();
        let held = self.held;
        let facts = Enforced {
            other_user: self.become_user.is_some(),
            landlock,
            memory: held & cgroup::MEMORY != 0,
            processes: held & cgroup::PROCESSES != 0,
            cpus: held & cgroup::CPU != 0,
            copied: self.copied,
        };
        wire::send(control, kind::FACTS, &codec::encode_facts(&facts)).map_err(gone)?;
        let signals = sys::watch_end_signals().doing("watch signals")?;
        let filters = filter::compile()?;
        let common = Common {
            spec: self.spec,
            walls: self.walls,
            hide: self.hide,
            root: self.root,
            filters: &filters,
            group: self.group,
            become_user: self.become_user,
            landlock: landlock > 0,
            fallback: self.fallback,
        };
        let outside = Outside {
            control,
            signals: &signals,
        };
        steps(&common, &outside)?;
        read_back(self.root, self.spec, control)?;
        wire::send(control, kind::DONE, &[]).map_err(gone)
    }
}

/// Who the launcher is, after it left the host's namespaces.
struct Identity {
    /// Owner of the sandbox's own files.
    files: tree::Owner,
    /// Real user that steps must become.
    become_user: Option<tree::Owner>,
    /// Whether we are in a user namespace of our own.
    user_namespace: bool,
}

/// Ties this process to its parent and away from the terminal, and forbids dumps of its memory.
pub(super) fn calm() -> Result<(), Fault> {
    // Set before anything else, so that no moment is left in which we could outlive the parent.
    rustix::process::set_parent_process_death_signal(Some(Signal::TERM))
        .doing("tie to the parent")?;
    forbid_core_dumps().doing("forbid core dumps")?;
    // A runaway sandbox should be the kernel's first choice, not the user's editor.
    let _ = write_proc("/proc/self/oom_score_adj", "800");
    rustix::process::umask(rustix::fs::Mode::empty());
    // Out of the terminal's reach; a Ctrl-C is for the host process to handle. Fails when we
    // already lead a group.
    let _ = rustix::process::setsid();
    Ok(())
}

fn isolate() -> Result<Identity, Fault> {
    calm()?;
    let (uid, gid) = (
        rustix::process::geteuid().as_raw(),
        rustix::process::getegid().as_raw(),
    );
    let shared = sys::NEW_MOUNTS | sys::NEW_NETWORK | sys::NEW_HOST_NAME | sys::NEW_IPC;
    let identity = if uid == 0 {
        sys::unshare(shared).doing("make namespaces")?;
        let nobody = tree::Owner {
            uid: NOBODY,
            gid: NOBODY,
        };
        Identity {
            files: nobody,
            become_user: Some(nobody),
            user_namespace: false,
        }
    } else {
        sys::unshare(sys::NEW_USER).doing("make a user namespace")?;
        write_proc("/proc/self/setgroups", "deny").doing("set up the user namespace")?;
        write_proc("/proc/self/uid_map", &format!("{USER} {uid} 1"))
            .doing("set up the user namespace")?;
        write_proc("/proc/self/gid_map", &format!("{USER} {gid} 1"))
            .doing("set up the user namespace")?;
        sys::unshare(shared).doing("make namespaces")?;
        // Where /proc/sys may be written; the call filter forbids them all the same.
        let _ = write_proc("/proc/sys/user/max_user_namespaces", "0");
        Identity {
            files: tree::Owner {
                uid: USER,
                gid: USER,
            },
            become_user: None,
            user_namespace: true,
        }
    };
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).doing("hide memory")?;
    Ok(identity)
}

/// No core dump of this process or of any below it.
///
/// A bound of 0 stops files, but not a dump that is piped to a program; 1 byte stops both. The
/// filter, inherited as well, leaves nothing in a dump that is made all the same.
pub(super) fn forbid_core_dumps() -> Result<(), Errno> {
    let one = Rlimit {
        current: Some(1),
        maximum: Some(1),
    };
    rustix::process::setrlimit(Resource::Core, one)?;
    // Kernels can be built without it.
    let _ = write_proc("/proc/self/coredump_filter", "0");
    Ok(())
}

pub(super) fn write_proc(path: &str, text: &str) -> Result<(), Errno> {
    let flags = rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, rustix::fs::Mode::empty())?;
    rustix::io::write(&file, text.as_bytes()).map(drop)
}

fn socket(kind: SocketType) -> Result<OwnedFd, Fault> {
    rustix::net::socket_with(AddressFamily::INET, kind, SocketFlags::CLOEXEC, None)
        .doing("make a socket")
}

fn loopback() -> Result<(), Fault> {
    let plain = socket(SocketType::DGRAM)?;
    sys::loopback_up(plain.as_fd()).doing("bring loopback up")
}

/// Hands a listener for every bridge to the host process: it accepts from outside, so that nothing
/// of the bridge runs where sandboxed code is.
pub(super) fn listeners(control: &UnixStream, spec: &Spec) -> Result<(), Stop> {
    let Network::Bridged(bridges) = &spec.network else {
        return Ok(());
    };
    for bridge in bridges {
        let listener: OwnedFd = socket(SocketType::STREAM)?;
        sockopt::set_socket_reuseaddr(&listener, true).doing("listen for a bridge")?;
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, bridge.port);
        rustix::net::bind(&listener, &address).doing("listen for a bridge")?;
        rustix::net::listen(&listener, 128).doing("listen for a bridge")?;
        wire::send_with(control, kind::LISTENER, &[], &listener).map_err(gone)?;
    }
    Ok(())
}

fn steps(common: &Common<'_>, outside: &Outside<'_>) -> Result<(), Stop> {
    let begun = Instant::now();
    for step in &common.spec.steps {
        wire::send(outside.control, kind::STARTED, &[]).map_err(gone)?;
        let mut step = step.clone();
        if let Some(deadline) = common.spec.deadline {
            let left = deadline.saturating_sub(begun.elapsed());
            // Nothing left: it is started all the same, so that it ends as one that had no time.
            step.timeout = step.timeout.min(left.max(Duration::from_millis(1)));
        }
        match step::run(common, &step, outside)? {
            Ended::Abandoned => return Err(Stop::Gone),
            Ended::Step(end) => {
                wire::send(outside.control, kind::ENDED, &end.encode()).map_err(gone)?;
                if common.spec.stop_on_failure && end.end != End::Exited(0) {
                    break;
                }
            }
        }
    }
    Ok(())
}

/// Hashes and collects. Every process of the sandbox is dead by now.
fn read_back(root: &OwnedFd, spec: &Spec, control: &UnixStream) -> Result<(), Stop> {
    // A listener that went away is found at the next frame; until then it costs only time.
    let lost = |_| Fault {
        what: "report".to_owned(),
        path: None,
        errno: Errno::PIPE.raw_os_error(),
        blocked: false,
    };
    for path in &spec.hash_after {
        lay::hash(root, path, &mut |path, digest| {
            let mut out = Writer::default();
            out.bytes(path).bytes(&digest);
            wire::send(control, kind::HASH, &out.finish()).map_err(lost)
        })?;
    }
    for wanted in &spec.collect {
        let mut give = |path: &[u8], executable: bool, bytes: Secret| {
            let mut head = Writer::default();
            head.number(executable.into()).bytes(path);
            let parts = [head.finish(), Vec::new()];
            let parts = [parts[0].as_slice(), bytes.expose()];
            wire::send_parts(&mut &*control, kind::FILE, &parts).map_err(lost)
        };
        let mut leave = |path: &[u8], reason: &str| {
            let mut out = Writer::default();
            out.bytes(path).bytes(reason.as_bytes());
            wire::send(control, kind::LEFT, &out.finish()).map_err(lost)
        };
        lay::collect(root, wanted, &mut give, &mut leave)?;
    }
    Ok(())
}
