//! Attempts to exceed every bound, and the look for the process that was left behind.

use super::super::{Probe, calls};
use super::{ALIVE, Bait, refused};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, WaitOptions};
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

fn survivor() -> Probe {
    match File::open(ALIVE) {
        Err(_) => Probe::unmeasured("no process could be left behind"),
        Ok(file) => match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Probe::held("the process left behind is dead"),
            Err(_) => Probe::open("the process left behind lives"),
        },
    }
}

/// Everything that needs no step of its own.
pub(super) fn bounds(bait: &Bait, tell: &mut dyn FnMut(&str, Probe)) {
    tell("survivor", survivor());
    if let Some(limit) = bait.file_size {
        tell("file-size", file_size(limit));
    }
    if let Some(limit) = bait.disk {
        tell("disk", disk(limit));
    }
    if let Some(limit) = bait.output {
        let line = [b'x'; 4096];
        let mut stdout = io::stdout().lock();
        for _ in 0..=limit.saturating_mul(2) / 4096 {
            let _ = stdout.write_all(&line);
        }
    }
}

fn file_size(limit: u64) -> Probe {
    calls::ignore_file_size_signal();
    let attempt = File::create("/tmp/large").and_then(|file| file.write_all_at(b"x", limit));
    let _ = fs::remove_file("/tmp/large");
    refused(attempt, "a larger file was written")
}

/// Fills every writable place; together they must not take more than the limit.
fn disk(limit: u64) -> Probe {
    const PIECE: usize = 64 << 10;
    let block = vec![1u8; PIECE];
    let mut written = 0u64;
    let mut full = 0;
    let places = ["/tmp", "/dev/shm", "/run", crate::sandbox::HOME];
    for place in places {
        // In pieces, so that no bound on single files is hit.
        for index in 0.. {
            let path = format!("{place}/fill{index}");
            let Ok(mut file) = File::create(&path) else {
                full += 1;
                break;
            };
            let _ = file.seek(SeekFrom::Start(0));
            if file.write_all(&block).is_err() {
                full += 1;
                break;
            }
            written += PIECE as u64;
            if written > limit {
                break;
            }
        }
    }
    for place in places {
        for index in 0..=written / PIECE as u64 {
            let _ = fs::remove_file(format!("{place}/fill{index}"));
        }
    }
    if written <= limit && full == places.len() {
        Probe::held(format!("full after {written} bytes"))
    } else {
        Probe::open(format!("{written} bytes were written"))
    }
}

/// Looks, two milliseconds apart, before memory counts as not to be had.
const PATIENCE: usize = 1000;

/// Three processes that together want a third more than the limit, none of them alone.
pub(super) fn memory(limit: u64) -> Probe {
    let Ok((mut done, mut tell)) = io::pipe() else {
        return Probe::unmeasured("no pipe");
    };
    let mut children = Vec::new();
    for _ in 0..3 {
        match calls::fork() {
            Ok(None) => {
                let bytes = usize::try_from(limit / 20 * 9).unwrap_or(usize::MAX);
                if calls::touch(bytes).is_ok() {
                    let _ = tell.write_all(&[1]);
                    std::thread::sleep(Duration::from_secs(60));
                }
                calls::leave(1);
            }
            Ok(Some(pid)) => children.push(pid),
            Err(error) => return Probe::unmeasured(error.to_string()),
        }
    }
    drop(tell);
    // Whoever is killed never tells.
    let mut got = 0;
    for _ in 0..PATIENCE {
        if got == children.len() || children.iter().any(|pid| gone(*pid)) {
            break;
        }
        if wait_readable(&done) && done.read(&mut [0]).is_ok_and(|read| read == 1) {
            got += 1;
        }
    }
    let all = got == children.len();
    for pid in children.into_iter().filter_map(Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
    if all {
        Probe::open("three processes together went over it")
    } else {
        Probe::held("a process was killed")
    }
}

fn gone(pid: i32) -> bool {
    Pid::from_raw(pid).is_some_and(|pid| {
        !matches!(
            rustix::process::waitpid(Some(pid), WaitOptions::NOHANG),
            Ok(None)
        )
    })
}

fn wait_readable(pipe: &io::PipeReader) -> bool {
    let mut fds = [rustix::event::PollFd::new(
        pipe,
        rustix::event::PollFlags::IN,
    )];
    let timeout = rustix::event::Timespec {
        tv_sec: 0,
        tv_nsec: 2_000_000,
    };
    rustix::event::poll(&mut fds, Some(&timeout)).is_ok_and(|count| count > 0)
}

/// Forks until it is refused.
pub(super) fn processes(limit: u64) -> Probe {
    let mut children = Vec::new();
    let refused = loop {
        if children.len() as u64 > limit {
            break false;
        }
        match calls::fork() {
            Ok(None) => {
                std::thread::sleep(Duration::from_secs(60));
                calls::leave(0);
            }
            Ok(Some(pid)) => children.push(pid),
            Err(_) => break true,
        }
    };
    let count = children.len();
    for pid in children.into_iter().filter_map(Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
    if refused {
        Probe::held(format!("a fork was refused after {count}"))
    } else {
        Probe::open(format!("{count} processes were started"))
    }
}
