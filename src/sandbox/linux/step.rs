//! One step, from the launcher's side: start pid 1, move bytes, keep time, end everything.

use super::cgroup::{Counters, Group, MEMORY, PROCESSES};
use super::codec::StepEnd;
use super::fault::{Doing as _, Fault};
use super::init::{self, Common, Ends};
use super::tree::{self, Owner};
use super::wire::{self, CHUNK, kind};
use super::{Walls, sys};
use crate::sandbox::spec::{End, Hit, Step};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::{FileType, Gid, MemfdFlags, SealFlags, Uid};
use rustix::io::Errno;
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long streams may take to end once every process is dead. They end at once; this only keeps
/// a mistake from hanging.
const DRAIN: Duration = Duration::from_secs(5);

/// What the launcher watches for besides the step.
pub(super) struct Outside<'launcher> {
    /// At its end when the host process is gone or wants us to stop.
    pub(super) control: &'launcher UnixStream,
    /// Readable when a signal asks us to end.
    pub(super) signals: &'launcher OwnedFd,
}

/// How a step came to its end for the launcher.
pub(super) enum Ended {
    /// It ended; go on.
    Step(StepEnd),
    /// The host process is gone or wants us to stop. Everything inside is dead.
    Abandoned,
}

/// One stream out of the sandbox.
struct Stream {
    kind: u8,
    fd: Option<OwnedFd>,
    left: Option<u64>,
    cut: bool,
}

impl Stream {
    fn new(kind: u8, fd: OwnedFd, limit: Option<u64>) -> Result<Self, Fault> {
        rustix::io::ioctl_fionbio(&fd, true).doing("set up a pipe")?;
        Ok(Self {
            kind,
            fd: Some(fd),
            left: limit,
            cut: false,
        })
    }

    /// Forwards what is there. True when something was.
    fn forward(&mut self, control: &UnixStream, buffer: &mut [u8]) -> Result<bool, Gone> {
        let Some(fd) = &self.fd else {
            return Ok(false);
        };
        match rustix::io::read(fd, &mut *buffer) {
            Ok(0) => {
                self.fd = None;
                Ok(false)
            }
            Ok(read) => {
                let kept = self.left.map_or(read, |left| {
                    usize::try_from(left).map_or(read, |left| left.min(read))
                });
                self.cut |= kept < read;
                self.left = self.left.map(|left| left - kept as u64);
                if kept > 0 {
                    wire::send(control, self.kind, &buffer[..kept]).map_err(|_| Gone)?;
                }
                Ok(true)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(_) => {
                self.fd = None;
                Ok(false)
            }
        }
    }
}

/// The host process no longer listens.
struct Gone;

struct Running<'launcher> {
    outside: &'launcher Outside<'launcher>,
    walls: Walls,
    /// Of pid 1, where the kernel has such descriptors.
    pidfd: Option<OwnedFd>,
    status: OwnedFd,
    streams: Vec<Stream>,
    started: Instant,
    moved: Instant,
    /// Bits of bounds that pid 1 found exceeded.
    over: u64,
    buffer: Vec<u8>,
}

/// Runs `step` to its end. When this returns, every process of it is dead and waited for.
pub(super) fn run(common: &Common<'_>, step: &Step, outside: &Outside<'_>) -> Result<Ended, Fault> {
    let limit = common.spec.limits.output;
    let pipe = || pipe_with(PipeFlags::CLOEXEC).doing("make a pipe");
    let (stdout, stdout_end) = pipe()?;
    let (stderr, stderr_end) = pipe()?;
    let (status, status_end) = pipe()?;
    let (launcher_end, launcher) = pipe()?;
    let channel = step.channel.then(channel).transpose()?;
    let (channel, channel_end) = channel.unzip();
    let mut streams = vec![
        Stream::new(kind::STDOUT, stdout, limit)?,
        Stream::new(kind::STDERR, stderr, limit)?,
    ];
    if let Some(channel) = channel {
        streams.push(Stream::new(kind::CHANNEL, channel, limit)?);
    }
    let ends = Ends {
        stdin: stdin(&step.stdin)?,
        stdout: stdout_end,
        stderr: stderr_end,
        channel: channel_end,
        status: status_end,
        launcher: launcher_end,
    };
    if let Some(owner) = common.become_user {
        // A program may open its own streams anew, by `/dev/stdout`.
        let streams = [&ends.stdin, &ends.stdout, &ends.stderr];
        for end in streams.into_iter().chain(&ends.channel) {
            match give(end, owner) {
                // gVisor's pipes have no owner to change.
                Err(_) if common.walls == Walls::Given => {}
                given => given?,
            }
        }
    }
    let before = common.group.map(Group::counters);
    let flags = match common.walls {
        Walls::Own => sys::NEW_PIDS | sys::NEW_MOUNTS | sys::NEW_IPC,
        Walls::Given => 0,
    };
    let pidfd = match sys::fork(flags).doing("start pid 1")? {
        sys::Fork::Child => init::main(common, step, &ends),
        sys::Fork::Parent { pidfd, .. } => pidfd,
    };
    drop(ends);
    let now = Instant::now();
    let mut running = Running {
        outside,
        walls: common.walls,
        pidfd,
        status,
        streams,
        started: now,
        moved: now,
        over: 0,
        buffer: vec![0; CHUNK],
    };
    let end = running.watch(step);
    running.kill()?;
    drop(launcher);
    let Ok(end) = end.and_then(|end| running.drain().map(|()| end)) else {
        return Ok(Ended::Abandoned);
    };
    let wall = running.started.elapsed();
    let end = end.map_or_else(|| running.recorded(), Ok)?;
    let after = common.group.map(Group::counters);
    Ok(Ended::Step(StepEnd {
        end,
        hits: running.hits(end, common, before, after),
        wall,
        peak_memory: after.and_then(|after| after.peak),
    }))
}

/// Our end and the program's. Unlike a pipe, a socket can't be opened anew by way of `/proc/PID/fd`: who was
/// not given the descriptor writes nothing.
fn channel() -> Result<(OwnedFd, OwnedFd), Fault> {
    let (ours, theirs) = socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .doing("make the channel")?;
    shutdown(&ours, Shutdown::Write).doing("make the channel")?;
    Ok((ours, theirs))
}

/// Whether a writable part of ours is full. What was full and is emptied is not seen.
fn is_full(common: &Common<'_>) -> bool {
    // Not every file system counts both.
    let none = |free: u64, of: u64| of > 0 && free == 0;
    let full =
        |fs: rustix::fs::StatFs| none(fs.f_bfree, fs.f_blocks) || none(fs.f_ffree, fs.f_files);
    match common.walls {
        // All of them are one tmpfs.
        Walls::Own => rustix::fs::fstatfs(common.root).is_ok_and(full),
        Walls::Given => {
            tree::own_places(common.spec).any(|place| rustix::fs::statfs(place).is_ok_and(full))
        }
    }
}

/// What is left of `time` since `start`; `None` when it is over.
fn left(time: Duration, start: Instant) -> Option<Duration> {
    time.checked_sub(start.elapsed())
        .filter(|left| !left.is_zero())
}

/// Hands a pipe or memory file to the user whom the program runs as. `/dev/null` stays.
fn give(end: &OwnedFd, owner: Owner) -> Result<(), Fault> {
    let stat = rustix::fs::fstat(end).doing("look at a stream")?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice {
        return Ok(());
    }
    let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
    rustix::fs::fchown(end, Some(uid), Some(gid)).doing("hand over a stream")
}

/// Standard input: `/dev/null`, or a sealed copy in memory.
fn stdin(bytes: &[u8]) -> Result<OwnedFd, Fault> {
    if bytes.is_empty() {
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC;
        return rustix::fs::open("/dev/null", flags, rustix::fs::Mode::empty())
            .doing("open /dev/null");
    }
    let memory = rustix::fs::memfd_create("stdin", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
        .doing("make standard input")?;
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = rustix::io::write(&memory, rest).doing("write standard input")?;
        rest = &rest[written..];
    }
    rustix::fs::seek(&memory, rustix::fs::SeekFrom::Start(0)).doing("rewind standard input")?;
    rustix::fs::fcntl_add_seals(
        &memory,
        SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL,
    )
    .doing("seal standard input")?;
    Ok(memory)
}

impl Running<'_> {
    /// Moves bytes until the step is over. `None` when pid 1 knows how it ended; the error means
    /// that nobody listens any more.
    fn watch(&mut self, step: &Step) -> Result<Option<End>, Gone> {
        loop {
            let Some(mut wait) = left(step.timeout, self.started) else {
                return Ok(Some(End::TimedOut));
            };
            if let Some(idle) = step.idle {
                let Some(still) = left(idle, self.moved) else {
                    return Ok(Some(End::Idle));
                };
                wait = wait.min(still);
            }
            let ready = self.poll(wait)?;
            for stream in &mut self.streams {
                if stream.forward(self.outside.control, &mut self.buffer)? {
                    self.moved = Instant::now();
                }
            }
            if ready {
                return Ok(None);
            }
        }
    }

    /// Waits for anything. True when pid 1 has something to say or is dead.
    fn poll(&self, wait: Duration) -> Result<bool, Gone> {
        let timeout = Timespec {
            tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: wait.subsec_nanos().into(),
        };
        let mut fds = vec![
            PollFd::new(self.outside.control, PollFlags::IN),
            PollFd::new(self.outside.signals, PollFlags::IN),
            // At its end, too, when pid 1 is gone.
            PollFd::new(&self.status, PollFlags::IN),
        ];
        let begin = fds.len();
        fds.extend(self.pidfd.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
        let known = fds.len();
        let streams = self.streams.iter().filter_map(|stream| stream.fd.as_ref());
        fds.extend(streams.map(|fd| PollFd::new(fd, PollFlags::IN)));
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return Err(Gone),
        }
        let said = |index: usize| !fds[index].revents().is_empty();
        if said(0) || said(1) {
            return Err(Gone);
        }
        Ok(said(2) || (begin..known).any(said))
    }

    /// What pid 1 wrote; killed when it said nothing of an end.
    fn recorded(&mut self) -> Result<End, Fault> {
        loop {
            let mut record = [0; init::RECORD];
            if rustix::io::read(&self.status, &mut record) != Ok(init::RECORD) {
                return Ok(End::Signalled(libc::SIGKILL));
            }
            let mut value = [0; 4];
            value.copy_from_slice(&record[1..]);
            let value = i32::from_le_bytes(value);
            match record[0] {
                init::NOT_STARTED => return Ok(End::NotStarted(value)),
                init::OVER => self.over |= u64::from(value.unsigned_abs()),
                init::FAULT => {
                    let mut bytes = vec![0; usize::try_from(value).unwrap_or(0).min(4096)];
                    let read = rustix::io::read(&self.status, &mut bytes).unwrap_or(0);
                    let fault = Fault::decode(&bytes[..read]).doing("set up the step")?;
                    return Err(fault);
                }
                _ if libc::WIFEXITED(value) => return Ok(End::Exited(libc::WEXITSTATUS(value))),
                _ => return Ok(End::Signalled(libc::WTERMSIG(value))),
            }
        }
    }

    /// Kills pid 1 and waits for it. The kernel lets it go only after everything else in its
    /// namespace is dead.
    fn kill(&self) -> Result<(), Fault> {
        if self.walls == Walls::Given {
            return sys::kill_all_others().doing("end the step");
        }
        let pidfd = self
            .pidfd
            .as_ref()
            .ok_or(Errno::NOSYS)
            .doing("end the step")?;
        // It may be gone already.
        let _ = pidfd_send_signal(pidfd, Signal::KILL);
        loop {
            match waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED) {
                Err(Errno::INTR) => {}
                other => return other.map(drop).doing("wait for the end of the step"),
            }
        }
    }

    fn hits(
        &self,
        end: End,
        common: &Common<'_>,
        before: Option<Counters>,
        after: Option<Counters>,
    ) -> Vec<Hit> {
        let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
        let memory = after.killed > before.killed || self.over & MEMORY != 0;
        let processes = after.refused > before.refused || self.over & PROCESSES != 0;
        let full = is_full(common);
        [
            (memory, Hit::Memory),
            (processes, Hit::Processes),
            (self.streams.iter().any(|stream| stream.cut), Hit::Output),
            (end == End::Signalled(libc::SIGXFSZ), Hit::FileSize),
            (full, Hit::Disk),
        ]
        .into_iter()
        .filter_map(|(hit, which)| hit.then_some(which))
        .collect()
    }

    /// Reads every stream to its end.
    fn drain(&mut self) -> Result<(), Gone> {
        let limit = Instant::now() + DRAIN;
        for stream in &mut self.streams {
            while stream.fd.is_some() && Instant::now() < limit {
                stream.forward(self.outside.control, &mut self.buffer)?;
            }
        }
        Ok(())
    }
}
