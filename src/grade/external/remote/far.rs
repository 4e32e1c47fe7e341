//! The side where the code under test is: starts what it is asked to, and passes the streams.

use super::{kind, pump, receive, send};
use crate::base::process;
use rustix::process::{Pid, Signal};
use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ExitCode, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a service may take to open its socket.
const READY: Duration = Duration::from_secs(10);
/// Pause between two looks for it.
const PAUSE: Duration = Duration::from_millis(20);
/// Exit statuses of a shell: not to be executed, not found.
const NOT_EXECUTABLE: i32 = 126;
const NOT_FOUND: i32 = 127;

/// Keeps one connection open for the next program until the driver has ended.
pub fn main(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let port = args
        .next()
        .and_then(|arg| arg.to_str()?.parse::<u16>().ok());
    let Some(port) = port else {
        return ExitCode::FAILURE;
    };
    loop {
        let Ok(line) = TcpStream::connect(("127.0.0.1", port)) else {
            return ExitCode::FAILURE;
        };
        let _ = line.set_nodelay(true);
        match receive(&line) {
            Ok(Some((asked, content))) => {
                thread::spawn(move || serve(&Line::new(line), asked, &content));
            }
            _ => return ExitCode::SUCCESS,
        }
    }
}

/// A connection that several threads write to.
#[derive(Clone)]
struct Line(Arc<(TcpStream, Mutex<()>)>);

impl Line {
    fn new(stream: TcpStream) -> Self {
        Self(Arc::new((stream, Mutex::new(()))))
    }

    fn send(&self, kind: u8, content: &[u8]) -> io::Result<()> {
        let _turn = self.0.1.lock().unwrap_or_else(PoisonError::into_inner);
        send(&self.0.0, kind, content)
    }

    fn receive(&self) -> Option<(u8, Vec<u8>)> {
        receive(&self.0.0).ok().flatten()
    }

    fn end(&self, status: i32) {
        let _ = self.send(kind::EXIT, &status.to_le_bytes());
        let _ = self.0.0.shutdown(Shutdown::Both);
    }
}

fn serve(line: &Line, asked: u8, content: &[u8]) {
    match asked {
        kind::RUN => run(line, content),
        kind::DIAL => dial(line, Path::new(OsStr::from_bytes(content))),
        _ => line.end(NOT_EXECUTABLE),
    }
}

fn run(line: &Line, content: &[u8]) {
    let mut args = content.split(|byte| *byte == 0).map(OsStr::from_bytes);
    let program = Path::new(args.next().unwrap_or_default());
    let mut command = process::command(program);
    command
        .args(args)
        .envs(std::env::vars_os())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    match process::spawn(&mut command) {
        Ok(child) => line.end(attended(line, child)),
        Err(error) => {
            let text = format!("{}: {error}\n", program.display());
            let _ = line.send(kind::ERR, text.as_bytes());
            let missing = error.kind() == io::ErrorKind::NotFound;
            line.end(if missing { NOT_FOUND } else { NOT_EXECUTABLE });
        }
    }
}

/// Passes the streams of a program until it has ended and nobody writes to them any more.
fn attended(line: &Line, mut child: Child) -> i32 {
    let out = child
        .stdout
        .take()
        .map(|from| passed(line, from, kind::OUT));
    let err = child
        .stderr
        .take()
        .map(|from| passed(line, from, kind::ERR));
    let ended = Arc::new(AtomicBool::new(false));
    let group = Pid::from_child(&child);
    thread::spawn({
        let (line, stdin, ended) = (line.clone(), child.stdin.take(), Arc::clone(&ended));
        move || {
            feed(&line, stdin);
            // The driver ended its program; without this one it would live on.
            if !ended.load(Ordering::SeqCst) {
                let _ = rustix::process::kill_process_group(group, Signal::TERM);
            }
        }
    });
    let status = child.wait();
    ended.store(true, Ordering::SeqCst);
    for thread in [out, err].into_iter().flatten() {
        let _ = thread.join();
    }
    status.map_or(NOT_EXECUTABLE, as_a_shell_says_it)
}

/// Passes the driver's input until the line is closed, also where nobody takes it any more: a program
/// that does not read its input closes the pipe; that is its right.
fn feed(line: &Line, mut stdin: Option<ChildStdin>) {
    while let Some((kind::IN, bytes)) = line.receive() {
        stdin = stdin.filter(|_| !bytes.is_empty());
        if let Some(pipe) = &mut stdin
            && pipe.write_all(&bytes).is_err()
        {
            stdin = None;
        }
    }
}

fn passed(line: &Line, from: impl io::Read + Send + 'static, kind: u8) -> thread::JoinHandle<()> {
    let line = line.clone();
    thread::spawn(move || pump(from, kind, |kind, bytes| line.send(kind, bytes)))
}

fn as_a_shell_says_it(status: ExitStatus) -> i32 {
    status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Passes bytes between the line and a socket that a service of the code under test opens.
fn dial(line: &Line, path: &Path) {
    let started = Instant::now();
    let socket = loop {
        match UnixStream::connect(path) {
            Ok(socket) => break socket,
            Err(_) if started.elapsed() < READY => thread::sleep(PAUSE),
            Err(error) => {
                let text = format!("{}: {error}\n", path.display());
                let _ = line.send(kind::ERR, text.as_bytes());
                return line.end(1);
            }
        }
    };
    let Ok(mut to) = socket.try_clone() else {
        return line.end(1);
    };
    let from_driver = line.clone();
    thread::spawn(move || {
        while let Some((kind::IN, bytes)) = from_driver.receive() {
            if bytes.is_empty() || to.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    });
    pump(&socket, kind::OUT, |kind, bytes| line.send(kind, bytes));
    line.end(0);
}
