//! The only place that starts programs.
//!
//! Every child gets a cleared environment and only what the caller names. What runs untrusted code
//! goes through `sandbox`, which builds on [`command`].

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Why a program did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is not on `PATH`, or the path names no executable.
    #[error("cannot find the program `{0}`")]
    NotFound(String),
    /// The operating system refused to start it or to talk to it.
    #[error("cannot run `{program}`")]
    Io {
        /// The program.
        program: String,
        /// The refusal.
        #[source]
        source: io::Error,
    },
    /// It did not end in time and was killed with its process group.
    #[error("`{program}` did not end within {seconds} s and was stopped")]
    TimedOut {
        /// The program.
        program: String,
        /// The limit that was hit.
        seconds: u64,
    },
}

/// What a finished program left.
#[derive(Debug)]
pub struct Output {
    /// Exit code or signal.
    pub status: ExitStatus,
    /// Standard output, cut at the limit.
    pub stdout: Vec<u8>,
    /// Standard error, cut at the limit.
    pub stderr: Vec<u8>,
}

impl Output {
    /// Standard error as text without the trailing line break, for messages.
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).trim_end().to_owned()
    }
}

/// A program to run to its end, with its output collected.
#[derive(Debug, Clone)]
pub struct Run {
    program: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    dir: Option<PathBuf>,
    stdin: Vec<u8>,
    timeout: Duration,
    limit: usize,
}

impl Run {
    /// Runs `program` (an absolute path, or a name looked up on `PATH`).
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            dir: None,
            stdin: Vec::new(),
            timeout: Duration::from_secs(600),
            limit: 256 << 20,
        }
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args
            .extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets one variable of the otherwise empty environment.
    #[must_use]
    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env
            .push((key.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Copies variables of our own environment, where they are set.
    #[must_use]
    pub fn inherit(mut self, keys: &[&str]) -> Self {
        for key in keys {
            if let Some(value) = std::env::var_os(key) {
                self.env.push((key.into(), value));
            }
        }
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = Some(dir.into());
        self
    }

    /// Bytes for standard input (default: none, at once at its end).
    #[must_use]
    pub fn stdin(mut self, bytes: Vec<u8>) -> Self {
        self.stdin = bytes;
        self
    }

    /// Wall-clock limit (default ten minutes).
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Runs it and collects both streams.
    pub fn output(self) -> Result<Output, Error> {
        let name = self.program.display().to_string();
        let io_error = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => Error::NotFound(name.clone()),
            _ => Error::Io {
                program: name.clone(),
                source,
            },
        };
        let mut command = command(&self.program);
        command
            .args(&self.args)
            .envs(self.env.iter().map(|(key, value)| (key, value)));
        if let Some(dir) = &self.dir {
            command.current_dir(dir);
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let mut child = spawn(&mut command).map_err(io_error)?;
        let stdin = child.stdin.take();
        let bytes = self.stdin;
        let writer = thread::spawn(move || {
            // A child that does not read its input closes the pipe; that is its right.
            if let Some(mut stdin) = stdin {
                let _ = stdin.write_all(&bytes);
            }
        });
        let stdout = collect(child.stdout.take(), self.limit);
        let stderr = collect(child.stderr.take(), self.limit);
        let status = wait(&mut child, self.timeout).map_err(io_error)?;
        let _ = writer.join();
        let Some(status) = status else {
            return Err(Error::TimedOut {
                program: name,
                seconds: self.timeout.as_secs(),
            });
        };
        let join = |reader: thread::JoinHandle<Vec<u8>>| reader.join().unwrap_or_default();
        Ok(Output {
            status,
            stdout: join(stdout),
            stderr: join(stderr),
        })
    }
}

/// Starts `command`, waiting out a program file that is still open for writing (`ETXTBSY`).
///
/// A file that this process wrote and closed can stay open in a child that another thread forked in
/// between, until that child reaches its own `exec`. The wait is bounded by two seconds.
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    const TRIES: u32 = 200;
    for _ in 1..TRIES {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                thread::sleep(Duration::from_millis(10));
            }
            done => return done,
        }
    }
    command.spawn()
}

/// A command with an empty environment. Callers add what the child needs.
#[expect(clippy::disallowed_methods, reason = "this is the wrapper")]
pub fn command(program: &Path) -> Command {
    let resolved = if program.components().count() == 1 {
        find(program)
    } else {
        None
    };
    let mut command = Command::new(resolved.as_deref().unwrap_or(program));
    command.env_clear();
    command
}

/// The first executable file called `name` in the absolute folders of our `PATH`.
pub fn find(name: &Path) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join(name))
        .find(|file| is_executable(file))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Ends `child` and everything in its process group.
pub fn kill_group(child: &mut Child) {
    let pid = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        // The group may be gone already.
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
    let _ = child.wait();
}

fn collect(
    stream: Option<impl Read + Send + 'static>,
    limit: usize,
) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut out = Vec::new();
        if let Some(mut stream) = stream {
            let _ = stream.by_ref().take(limit as u64).read_to_end(&mut out);
            let _ = io::copy(&mut stream, &mut io::sink());
        }
        out
    })
}

/// How long a program that is stopped may take to put its lock files away.
const GRACE: Duration = Duration::from_secs(2);

/// Asks everything in the process group of `child` to end, and ends what does not.
fn stop_group(child: &mut Child) -> io::Result<()> {
    let pid = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        // The group may be gone already.
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::TERM);
    }
    let end = Instant::now() + GRACE;
    while child.try_wait()?.is_none() && Instant::now() < end {
        thread::sleep(Duration::from_millis(5));
    }
    kill_group(child);
    Ok(())
}

/// Waits for `child`; `None` when the limit passed and the group was stopped.
fn wait(child: &mut Child, timeout: Duration) -> io::Result<Option<ExitStatus>> {
    let end = Instant::now() + timeout;
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            stop_group(child)?;
            return Ok(None);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_is_empty_but_for_what_is_named() {
        let out = Run::new("/usr/bin/env")
            .env("ONLY", "this")
            .output()
            .unwrap();
        assert_eq!(out.stdout, b"ONLY=this\n");
    }

    #[test]
    fn input_reaches_the_program() {
        let out = Run::new("cat").stdin(b"hello".to_vec()).output().unwrap();
        assert_eq!(out.stdout, b"hello");
    }

    #[test]
    fn a_program_that_does_not_end_is_stopped() {
        let error = Run::new("sleep")
            .arg("60")
            .timeout(Duration::from_millis(50))
            .output()
            .unwrap_err();
        assert!(matches!(error, Error::TimedOut { .. }));
    }

    #[test]
    fn a_program_that_is_stopped_may_clean_up_and_takes_its_children_along() {
        let dir = tempfile::tempdir().unwrap();
        let script =
            "sleep 60 & echo $! > child; touch lock ready; trap 'rm lock; exit' TERM; wait";
        let error = Run::new("sh")
            .args(["-c", script])
            .dir(dir.path())
            .inherit(&["PATH"])
            .timeout(Duration::from_secs(1))
            .output()
            .unwrap_err();
        assert!(matches!(error, Error::TimedOut { .. }));
        assert!(dir.path().join("ready").exists());
        assert!(!dir.path().join("lock").exists());
        let child = std::fs::read_to_string(dir.path().join("child")).unwrap();
        // It was killed; on a busy machine it takes a moment until it is gone.
        let stat = format!("/proc/{}/stat", child.trim());
        let lives = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
        let gone = (0..2000).any(|_| {
            thread::sleep(Duration::from_millis(5));
            !lives()
        });
        assert!(gone);
    }

    #[test]
    fn a_program_file_still_open_for_writing_is_waited_for() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("script");
        let mut writer = std::fs::File::create(&path).unwrap();
        writer.write_all(b"#!/bin/sh\necho ran\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let closer = thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            drop(writer);
        });
        let out = Run::new(&path).output().unwrap();
        closer.join().unwrap();
        assert_eq!(out.stdout, b"ran\n");
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = Run::new("no-such-program-here").output().unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot find the program `no-such-program-here`"
        );
    }
}
