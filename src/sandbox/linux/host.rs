//! The host side of a sandbox: starts the launcher, feeds it, and reads its reports.

use super::bridge::Bridges;
use super::cgroup;
use super::codec::{self, StepEnd};
use super::fault::Fault;
use super::wire::{Frame, Reader, Receiver, kind};
use crate::base::process;
use crate::base::redact::Secret;
use crate::sandbox::error::{Error, Unavailable};
use crate::sandbox::spec::{CollectedFile, End, Hit, Network, Outcome, Spec, StepOutcome};
use crate::sandbox::{Cancel, Event, Launcher};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Time for setting up, copying and reading back, beside the steps' own.
pub(super) const SLACK: Duration = Duration::from_secs(600);
/// How long a launcher may take to end what it runs when it is told to stop.
const STOPPING: Duration = Duration::from_secs(5);
/// How often a cancellation is looked for.
const TICK: Duration = Duration::from_millis(25);
/// Longest line that an [`Event`] carries; a longer one comes in pieces.
const MAX_LINE: usize = 16 << 10;

/// How a launcher is started for a provider.
pub(super) struct Start<'a> {
    pub(super) provider: &'static str,
    pub(super) launcher: &'a Launcher,
    /// What follows the hidden subcommand.
    pub(super) words: &'a [OsString],
    /// How often it reads the specification.
    pub(super) copies: usize,
    /// Whether it dies with everything inside when memory runs out.
    pub(super) dies_of_memory: bool,
}

impl Start<'_> {
    /// Runs `spec` to its end. When this returns, also with an error, the launcher is gone.
    pub(super) fn run(
        &self,
        spec: &Spec,
        cancel: &Cancel,
        events: &mut dyn FnMut(Event),
    ) -> Result<Outcome, Error> {
        let (ours, theirs) = UnixStream::pair().map_err(Error::Start)?;
        let mut command = process::command(&self.launcher.program);
        command
            .arg0("sandbox")
            .arg(super::super::LAUNCHER_COMMAND)
            .args(self.words)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let child = command.spawn().map_err(Error::Start)?;
        // The command holds the other end of the socket.
        drop(command);
        let owner = child.id();
        let mut session = Session::new(self.provider, ours, child, spec);
        session.ask(spec, self.copies);
        match session.run(spec, cancel, events) {
            Err(Error::Lost(_)) if self.dies_of_memory && cgroup::was_killed(owner) => {
                session.out_of_memory();
            }
            ended => ended?,
        }
        // Before the caller hears of the outcome, the launcher is gone too.
        session.stop();
        Ok(session.outcome())
    }
}

/// One sandbox, from the first word to the last.
pub(super) struct Session {
    provider: &'static str,
    socket: UnixStream,
    /// What was started, and ends with everything inside.
    child: Option<Child>,
    /// Whether that had to be killed.
    killed: bool,
    outcome: Outcome,
    running: bool,
    /// Of every step that has not started: whether it has a channel.
    steps: std::vec::IntoIter<bool>,
    /// Unfinished lines of stdout and stderr.
    lines: [VecDeque<u8>; 2],
    bridges: Bridges,
}

impl Session {
    /// The sandbox that `child` is, with the launcher at the other end of `socket`.
    pub(super) fn new(
        provider: &'static str,
        socket: UnixStream,
        child: Child,
        spec: &Spec,
    ) -> Self {
        let channels: Vec<bool> = spec.steps.iter().map(|step| step.channel).collect();
        Self {
            provider,
            socket,
            child: Some(child),
            killed: false,
            outcome: Outcome::default(),
            running: false,
            steps: channels.into_iter(),
            lines: [VecDeque::new(), VecDeque::new()],
            bridges: Bridges::default(),
        }
    }

    /// Says what is to be done, as often as it is read.
    pub(super) fn ask(&self, spec: &Spec, copies: usize) {
        // A launcher that fails at once reads nothing; its report tells why.
        for _ in 0..copies {
            let _ = codec::send_spec(&self.socket, spec);
        }
    }

    /// Takes the reports, to the last.
    pub(super) fn run(
        &mut self,
        spec: &Spec,
        cancel: &Cancel,
        events: &mut dyn FnMut(Event),
    ) -> Result<(), Error> {
        let socket = self.socket.try_clone().map_err(Error::Start)?;
        let steps: Duration = spec.steps.iter().map(|step| step.timeout).sum();
        let limit = Instant::now().checked_add(steps.saturating_add(SLACK));
        let mut receiver = Receiver::new(&socket);
        let mut bridges: VecDeque<_> = match &spec.network {
            Network::None => VecDeque::new(),
            Network::Bridged(bridges) => bridges.iter().map(|bridge| &bridge.socket).collect(),
        };
        loop {
            wait(&socket, cancel, limit)?;
            let Some(frame) = receiver.next().map_err(|_| self.lost())? else {
                return Err(self.lost());
            };
            match frame.kind {
                kind::LISTENER => {
                    let (Some(fd), Some(path)) = (receiver.take_fd(), bridges.pop_front()) else {
                        return Err(self.lost());
                    };
                    self.bridges.serve(fd, path.clone()).map_err(Error::Start)?;
                }
                kind::DONE => return Ok(()),
                kind::FAILED => {
                    let fault = Fault::decode(frame.payload.expose()).map_err(|_| self.lost())?;
                    return Err(fault.told(self.provider));
                }
                _ => self.take(&frame, events).map_err(|error| {
                    if error.kind() == io::ErrorKind::InvalidData {
                        self.lost()
                    } else {
                        Error::Start(error)
                    }
                })?,
            }
        }
    }

    /// Takes one report into the outcome.
    fn take(&mut self, frame: &Frame, events: &mut dyn FnMut(Event)) -> io::Result<()> {
        let payload = frame.payload.expose();
        let invalid = || io::Error::from(io::ErrorKind::InvalidData);
        match frame.kind {
            kind::FACTS => self.outcome.enforced = codec::decode_facts(payload)?,
            kind::STARTED => {
                let step = self.steps.next().ok_or_else(invalid)?;
                self.outcome.steps.push(StepOutcome {
                    channel: step.then(Vec::new),
                    ..StepOutcome::default()
                });
                self.running = true;
                events(Event::Started(self.outcome.steps.len() - 1));
            }
            kind::STDOUT | kind::STDERR | kind::CHANNEL => {
                let step = self.outcome.steps.last_mut().filter(|_| self.running);
                let step = step.ok_or_else(invalid)?;
                match frame.kind {
                    kind::STDOUT => step.stdout.extend_from_slice(payload),
                    kind::STDERR => step.stderr.extend_from_slice(payload),
                    _ => step
                        .channel
                        .get_or_insert_default()
                        .extend_from_slice(payload),
                }
                if frame.kind != kind::CHANNEL {
                    let stream = usize::from(frame.kind == kind::STDERR);
                    show(&mut self.lines[stream], payload, stream == 1, events);
                }
            }
            kind::ENDED => {
                let ended = StepEnd::decode(payload)?;
                let step = self.outcome.steps.last_mut().filter(|_| self.running);
                let step = step.ok_or_else(invalid)?;
                step.end = ended.end;
                step.hits = ended.hits;
                step.wall = ended.wall;
                step.peak_memory = ended.peak_memory;
                self.running = false;
                for (stream, line) in self.lines.iter_mut().enumerate() {
                    if !line.is_empty() {
                        let line = line.drain(..).collect();
                        events(line_event(line, stream == 1));
                    }
                }
                events(Event::Ended(self.outcome.steps.len() - 1));
            }
            kind::HASH => {
                let mut from = Reader::new(payload);
                let path = from.bytes()?.to_vec();
                let digest = from.bytes()?.try_into().map_err(|_| invalid())?;
                self.outcome.hashes.insert(path, digest);
            }
            kind::FILE => {
                let mut from = Reader::new(payload);
                let executable = from.number()? != 0;
                let path = from.bytes()?.to_vec();
                self.outcome.collected.push(CollectedFile {
                    path,
                    executable,
                    bytes: Secret::new(from.rest().to_vec()),
                });
            }
            kind::LEFT => {
                let mut from = Reader::new(payload);
                let path = from.bytes()?.to_vec();
                let reason = String::from_utf8_lossy(from.bytes()?).into_owned();
                self.outcome.not_collected.push((path, reason));
            }
            _ => return Err(invalid()),
        }
        Ok(())
    }

    /// The step that runs is over, and no other one will be: everything inside was killed.
    fn out_of_memory(&mut self) {
        if let Some(step) = self.outcome.steps.last_mut().filter(|_| self.running) {
            step.end = End::Signalled(libc::SIGKILL);
            step.hits.push(Hit::Memory);
        }
    }

    /// The launcher ended or spoke nonsense. Its last words are in its standard error.
    fn lost(&mut self) -> Error {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        let mut words = Vec::new();
        if let Some(mut child) = self.child.take() {
            let stderr = child.stderr.take();
            self.killed |= !reap(&mut child);
            if let Some(stderr) = stderr {
                let _ = stderr.take(4096).read_to_end(&mut words);
            }
        }
        Error::Lost(String::from_utf8_lossy(&words).trim().to_owned())
    }

    /// Tells the launcher to stop, if it still runs, and waits for it. False where it had to be
    /// killed.
    pub(super) fn stop(&mut self) -> bool {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        if let Some(mut child) = self.child.take() {
            self.killed |= !reap(&mut child);
        }
        !self.killed
    }

    /// What the sandbox left.
    pub(super) fn outcome(&mut self) -> Outcome {
        std::mem::take(&mut self.outcome)
    }
}

impl Drop for Session {
    /// Also after an error or a panic nothing is left.
    fn drop(&mut self) {
        self.stop();
    }
}

/// Waits for the launcher's end; kills it when it takes too long (what it runs dies with it). Whether
/// it ended by itself.
fn reap(child: &mut Child) -> bool {
    let limit = Instant::now() + STOPPING;
    let mut pause = Duration::from_micros(50);
    while Instant::now() < limit {
        if !matches!(child.try_wait(), Ok(None)) {
            return true;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
    let _ = child.kill();
    let _ = child.wait();
    false
}

/// Waits until the launcher has something to say.
fn wait(socket: &UnixStream, cancel: &Cancel, limit: Option<Instant>) -> Result<(), Error> {
    let timeout = Timespec {
        tv_sec: 0,
        tv_nsec: TICK.subsec_nanos().into(),
    };
    loop {
        if cancel.is_set() {
            return Err(Error::Interrupted);
        }
        let mut fds = [PollFd::new(socket, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(errno) => return Err(Error::Start(errno.into())),
        }
        if limit.is_some_and(|limit| Instant::now() >= limit) {
            return Err(Error::Lost("it did not end in time".to_owned()));
        }
    }
}

fn line_event(line: Vec<u8>, error: bool) -> Event {
    if error {
        Event::Stderr(line)
    } else {
        Event::Stdout(line)
    }
}

/// Cuts a stream into lines.
fn show(pending: &mut VecDeque<u8>, bytes: &[u8], error: bool, events: &mut dyn FnMut(Event)) {
    for byte in bytes {
        if *byte != b'\n' {
            pending.push_back(*byte);
        }
        if *byte == b'\n' || pending.len() >= MAX_LINE {
            events(line_event(pending.drain(..).collect(), error));
        }
    }
}

impl Fault {
    /// As the caller of `provider` hears it.
    pub(super) fn told(self, provider: &'static str) -> Error {
        if self.blocked {
            return Error::Blocked {
                what: self.what,
                path: self.path.unwrap_or_default(),
            };
        }
        let source = io::Error::from_raw_os_error(self.errno);
        if let Some(remedy) = super::super::check::remedy(&self.what, self.errno) {
            return Error::Unavailable(Unavailable {
                provider,
                reason: format!("cannot {}: {source}", self.what),
                remedy,
            });
        }
        Error::Setup {
            what: self.what,
            path: self.path,
            source,
        }
    }
}
