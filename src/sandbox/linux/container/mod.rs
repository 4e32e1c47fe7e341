//! The providers `podman` and `docker`: a container engine makes the walls from an image that the
//! user pinned, and hangar's own supervisor works in them.
//!
//! Nothing of a test goes through the engine. The supervisor, the container's first process,
//! connects to a socket of this process; that is accepted once, and then nobody listens there.

mod client;
mod line;

use super::provider::Kind;
use super::{OWN_PROGRAM, host};
use crate::base::random;
use crate::base::temp::Folder;
use crate::base::words;
use crate::sandbox::program::Program;
use crate::sandbox::spec::{Outcome, Spec};
use crate::sandbox::{Cancel, Error, Event, Launcher, Unavailable};
use client::Client;
pub(super) use line::SOCKET;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::{self, DirBuilder};
use std::io::Read as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

/// How long an engine may take until the supervisor speaks.
const STARTING: Duration = Duration::from_secs(120);
/// How often a cancellation and the engine's end are looked for.
const TICK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};
/// In our folder: what the container sees of it as [`super::inside::DOOR`].
const DESK: &str = "desk";

/// A container engine.
struct Engine {
    program: Program,
    /// Options that only it has.
    words: &'static [&'static str],
    /// The same of each tmpfs.
    tmpfs: &'static str,
    /// Whether its program only talks to another one.
    daemon: bool,
}

const PODMAN_ENGINE: Engine = Engine {
    program: Program {
        provider: "podman",
        name: "podman",
        package: "podman",
    },
    // All that is writable is ours.
    words: &["--read-only-tmpfs=false"],
    // Nothing of the image is copied into it.
    tmpfs: ",notmpcopyup",
    daemon: false,
};

const DOCKER_ENGINE: Engine = Engine {
    program: Program {
        provider: "docker",
        name: "docker",
        package: "docker.io",
    },
    words: &[],
    tmpfs: "",
    daemon: true,
};

pub(super) const PODMAN: Kind = Kind {
    name: "podman",
    program: Some(PODMAN_ENGINE.program),
    image: true,
    ready: |launcher| client::ready(&PODMAN_ENGINE, launcher),
    remedy,
    beside: line::beside,
    run: |launcher, spec, cancel, events| run(&PODMAN_ENGINE, launcher, spec, cancel, events),
};

pub(super) const DOCKER: Kind = Kind {
    name: "docker",
    program: Some(DOCKER_ENGINE.program),
    image: true,
    ready: |launcher| client::ready(&DOCKER_ENGINE, launcher),
    remedy,
    beside: line::beside,
    run: |launcher, spec, cancel, events| run(&DOCKER_ENGINE, launcher, spec, cancel, events),
};

/// What would help, by the engine's own words.
fn remedy(reason: &str) -> Option<String> {
    let text = if reason.contains(super::inside::SUPERVISOR)
        && (reason.contains("no such file") || reason.contains("not found"))
    {
        "the image lacks the C library that this hangar program was built with: take an image with \
         the GNU C library, as new as this machine's, or a hangar program that is linked statically"
    } else {
        return None;
    };
    Some(text.to_owned())
}

fn run(
    engine: &Engine,
    launcher: &Launcher,
    spec: &Spec,
    cancel: &Cancel,
    events: &mut dyn FnMut(Event),
) -> Result<Outcome, Error> {
    let provider = engine.program.provider;
    let client = Client::find(engine)?;
    let image = client::image(engine, launcher)?;
    let folder = Folder::new(provider, 0o711).map_err(Error::Start)?;
    let desk = folder.path().join(DESK);
    // For the supervisor alone: programs inside are another user.
    DirBuilder::new()
        .mode(0o700)
        .create(&desk)
        .map_err(Error::Start)?;
    let listener = UnixListener::bind(desk.join(SOCKET)).map_err(Error::Start)?;
    let name = format!("hangar-{}", random::hex::<8>());
    let own = own_program(launcher)?;
    let words = line::of(
        &line::Ask {
            engine,
            image,
            name: &name,
            own: &own,
            folder: folder.path(),
        },
        spec,
    )?;
    let mut child = client.start(&words, folder.path()).map_err(Error::Start)?;
    let socket = match meet(provider, &listener, &mut child, cancel) {
        Ok(socket) => socket,
        Err(error) => {
            // It may be about to start.
            let _ = child.kill();
            let _ = child.wait();
            client.remove(&name);
            return Err(error);
        }
    };
    drop(listener);
    let _ = fs::remove_file(desk.join(SOCKET));
    let mut session = host::Session::new(provider, socket, child, spec);
    session.ask(spec, 1);
    let result = session.run(spec, cancel, events);
    if !session.stop() {
        client.remove(&name);
    }
    result.map(|()| session.outcome())
}

/// Waits until the supervisor connects.
fn meet(
    provider: &'static str,
    listener: &UnixListener,
    child: &mut Child,
    cancel: &Cancel,
) -> Result<UnixStream, Error> {
    let limit = Instant::now() + STARTING;
    loop {
        if cancel.is_set() {
            return Err(Error::Interrupted);
        }
        let ended = child.try_wait().map_err(Error::Start)?;
        let mut fds = [PollFd::new(listener, PollFlags::IN)];
        match poll(&mut fds, Some(&TICK)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => {
                return listener
                    .accept()
                    .map(|(socket, _)| socket)
                    .map_err(Error::Start);
            }
            Err(errno) => return Err(Error::Start(errno.into())),
        }
        if let Some(status) = ended {
            return Err(refused(provider, child, &status.to_string()).into());
        }
        if Instant::now() >= limit {
            return Err(Error::Lost(
                "the container did not start in time".to_owned(),
            ));
        }
    }
}

/// The engine ended before the supervisor spoke. Its last words tell why.
fn refused(provider: &'static str, child: &mut Child, status: &str) -> Unavailable {
    let mut said = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        let _ = stderr.take(64 << 10).read_to_end(&mut said);
    }
    let last = words::last_line(&said)
        .unwrap_or_else(|| format!("it ended before the supervisor spoke ({status})"));
    Unavailable {
        provider,
        reason: format!("the container did not start: {last}"),
        remedy: remedy(&last).unwrap_or_else(|| {
            format!(
                "the engine must run on this machine and see the folder for temporary files, {}; \
                 or use another provider",
                std::env::temp_dir().display()
            )
        }),
    }
}

/// The program that is the supervisor inside.
fn own_program(launcher: &Launcher) -> Result<std::path::PathBuf, Error> {
    let program = &launcher.program;
    if program == Path::new(OWN_PROGRAM) {
        return fs::read_link(program).map_err(Error::Start);
    }
    Ok(program.clone())
}
