//! A driver: a sealed program that tests the program under test from a sandbox of its own.
//!
//! Two sandboxes run at one time. One holds the tree and none of the tests, the other the tests and
//! nothing of the tree. hangar moves the bytes of a connection between them.

use super::Error;
use super::bench::{Bench, limits, raw, sealed, step};
use crate::base::redact::Secret;
use crate::base::temp::Folder;
use crate::grade::call::{Call, Raw};
use crate::grade::external::{DIAL, FAR, NEAR, RUN};
use crate::grade::suite::Suite;
use crate::sandbox::spec::{Bridge, LaidFile, Mount, Network, Outcome, Spec, Step};
use crate::sandbox::{self, Cancel};
use std::io;
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Port of the connection inside both sandboxes.
const PORT: u16 = 4000;
/// How long the side of the code may take to notice that the driver has ended.
const LEAVING: Duration = Duration::from_secs(5);
/// Pause between two looks at it.
const TICK: Duration = Duration::from_millis(2);
/// Connections that wait for the next program.
const WAITING: usize = 4;
/// How long the side of the code may take to offer a connection for the next program.
const READY: Duration = Duration::from_secs(20);

/// Runs a driver to its end, beside the program under test.
pub(super) fn run(bench: &Bench<'_>, suite: &Suite, call: &Call) -> Result<Raw, Error> {
    let line = Line::new()?;
    let code = code_spec(bench, suite, call.timeout, line.far.clone());
    let driver = driver_spec(bench, suite, call, line.near.clone());
    let (provider, cancel) = (&*bench.host.provider, Cancel::default());
    thread::scope(|scope| {
        let beside = scope.spawn(|| provider.run(&code, &cancel, &mut |_| {}));
        let ended = provider.run(&driver, &bench.host.cancel, &mut |_| {});
        line.end();
        let started = Instant::now();
        while !beside.is_finished() && started.elapsed() < LEAVING {
            thread::sleep(TICK);
        }
        cancel.set();
        let beside = beside.join();
        let died = |_| unconnected(&io::Error::other("a thread of hangar died"));
        both(ended?, beside.map_err(died)?)
    })
}

/// What the driver left, with the bounds that the code under test hit.
fn both(driver: Outcome, code: Result<Outcome, sandbox::Error>) -> Result<Raw, Error> {
    let code = match code {
        Ok(outcome) => outcome.steps.into_iter().next().map(raw),
        // It had to be stopped.
        Err(sandbox::Error::Interrupted) => None,
        Err(error) => return Err(error.into()),
    };
    let mut left = raw(driver.steps.into_iter().next().unwrap_or_default());
    left.hits.extend(code.into_iter().flat_map(|raw| raw.hits));
    Ok(left)
}

/// The sandbox of the code under test. Probes run in a twin of it.
pub(super) fn code_spec(
    bench: &Bench<'_>,
    suite: &Suite,
    timeout: Duration,
    socket: PathBuf,
) -> Spec {
    let program = program(suite);
    let mut mounts = vec![
        Mount::Scratch {
            host: bench.tree.to_owned(),
            inside: suite.layout.src.clone(),
        },
        own_program(bench, &program),
    ];
    mounts.extend(bench.dependencies());
    let argv = vec![program.into(), FAR.into(), PORT.to_string().into()];
    Spec {
        mounts,
        ..spec(bench, suite, argv, timeout + LEAVING, socket)
    }
}

/// The sandbox of the driver: the sealed files at their places, and none of the tree. Probes run in a
/// twin of it, too.
pub(super) fn driver_spec(bench: &Bench<'_>, suite: &Suite, call: &Call, socket: PathBuf) -> Spec {
    let program = program(suite);
    let mut mounts = vec![own_program(bench, &program)];
    mounts.extend(bench.dependencies());
    let script = |name: &str, word: &str| LaidFile {
        path: suite.layout.runners.join(name),
        bytes: Secret::new(
            format!(
                "#!/bin/sh\nexec {} {NEAR} {PORT} {word} \"$@\"\n",
                program.display()
            )
            .into(),
        ),
        mode: 0o555,
    };
    let mut files = vec![script(RUN, "run"), script(DIAL, "dial")];
    files.extend(sealed(suite));
    Spec {
        mounts,
        files,
        steps: vec![step(call)],
        ..spec(bench, suite, Vec::new(), call.timeout, socket)
    }
}

fn spec(
    bench: &Bench<'_>,
    suite: &Suite,
    argv: Vec<std::ffi::OsString>,
    timeout: Duration,
    socket: PathBuf,
) -> Spec {
    Spec {
        mounts: Vec::new(),
        files: Vec::new(),
        network: Network::Bridged(vec![Bridge { port: PORT, socket }]),
        limits: limits(&bench.plan.limits),
        inner_domain: true,
        hash_after: Vec::new(),
        collect: Vec::new(),
        steps: vec![Step {
            argv,
            env: suite.env(),
            dir: suite.layout.src.clone(),
            stdin: Vec::new(),
            channel: false,
            timeout,
            idle: None,
        }],
        stop_on_failure: false,
        deadline: None,
    }
}

fn program(suite: &Suite) -> PathBuf {
    suite.layout.runners.join("p")
}

fn own_program(bench: &Bench<'_>, inside: &Path) -> Mount {
    Mount::ReadOnly {
        host: bench.host.binary.clone(),
        inside: inside.to_owned(),
    }
}

/// Two sockets on the host, and the threads that join each connection of the driver's to one that
/// the side of the code keeps open for the next program.
struct Line {
    _folder: Folder,
    near: PathBuf,
    far: PathBuf,
    ended: Arc<AtomicBool>,
}

impl Line {
    fn new() -> Result<Self, Error> {
        let folder = Folder::new("line", 0o700).map_err(|error| unconnected(&error))?;
        let (near, far) = (folder.path().join("near"), folder.path().join("far"));
        let listen = |path: &Path| UnixListener::bind(path).map_err(|error| unconnected(&error));
        let (from_driver, from_code) = (listen(&near)?, listen(&far)?);
        let (waiting, taken) = mpsc::sync_channel(WAITING);
        let ended = Arc::new(AtomicBool::new(false));
        let (one, other) = (Arc::clone(&ended), Arc::clone(&ended));
        thread::spawn(move || each(&from_code, &one, |line| waiting.send(line).is_ok()));
        thread::spawn(move || {
            each(&from_driver, &other, |near| {
                if let Ok(far) = taken.recv_timeout(READY) {
                    thread::spawn(move || join(&near, &far));
                }
                true
            });
        });
        Ok(Self {
            _folder: folder,
            near,
            far,
            ended,
        })
    }

    /// Nothing more is started. The side of the code sees its waiting connection end, and leaves.
    fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        for path in [&self.near, &self.far] {
            // Wakes the thread that waits in `accept`.
            let _ = UnixStream::connect(path);
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.end();
    }
}

/// Hands on each connection until the end, or until `take` wants no more.
fn each(listener: &UnixListener, ended: &AtomicBool, mut take: impl FnMut(UnixStream) -> bool) {
    for stream in listener.incoming() {
        let (false, Ok(stream)) = (ended.load(Ordering::SeqCst), stream) else {
            return;
        };
        if !take(stream) {
            return;
        }
    }
}

/// Moves bytes both ways until both sides are done. When the driver's side is gone, so is the other.
fn join(near: &UnixStream, far: &UnixStream) {
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = io::copy(&mut &*near, &mut &*far);
            let _ = far.shutdown(Shutdown::Write);
        });
        let _ = io::copy(&mut &*far, &mut &*near);
        let _ = near.shutdown(Shutdown::Both);
    });
    let _ = far.shutdown(Shutdown::Both);
}

fn unconnected(error: &io::Error) -> Error {
    Error::missing(
        format!("the two sandboxes can't be connected: {error}"),
        "look at the folder for temporary files, then run the command again",
    )
}
