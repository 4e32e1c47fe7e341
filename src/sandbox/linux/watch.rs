//! What pid 1 does for want of a control group: it adds up the memory of the tree at intervals.
//!
//! A bound that is watched can be overrun for a moment, so a sandbox that rests on it never counts
//! as limited.

use super::fault::{Doing as _, Fault};
use super::{Walls, sys};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::fs::{Dir, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};

/// Time between two looks.
const INTERVAL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// Watches the processes of our pid namespace.
pub(super) struct Watch {
    /// A `/proc` that nobody else has, in which no process can hide.
    proc: OwnedFd,
    /// Processes of ours that don't count, by their names there.
    ours: Vec<String>,
    memory: u64,
    processes: Option<u64>,
    full: bool,
    page: u64,
}

impl Watch {
    /// Bounds on the sum of memory (bytes) and on the number of processes.
    pub(super) fn new(memory: u64, processes: Option<u64>, walls: Walls) -> Result<Self, Fault> {
        let ours = rustix::process::getpid().as_raw_pid().to_string();
        Ok(Self {
            proc: match walls {
                Walls::Own => Self::private_proc()?,
                Walls::Given => {
                    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
                    rustix::fs::open("/proc", flags, Mode::empty()).doing("open /proc")?
                }
            },
            ours: vec!["1".to_owned(), ours],
            memory,
            processes,
            full: false,
            page: sys::page_size(),
        })
    }

    fn private_proc() -> Result<OwnedFd, Fault> {
        let fs = rustix::mount::fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC).doing("open /proc")?;
        rustix::mount::fsconfig_create(&fs).doing("make /proc")?;
        let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
            | MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        rustix::mount::fsmount(&fs, FsMountFlags::FSMOUNT_CLOEXEC, attributes).doing("mount /proc")
    }

    /// Waits for `program` or for the interval, then looks. True when there is too much memory.
    pub(super) fn tick(&mut self, program: Option<&OwnedFd>) -> bool {
        let mut fds: Vec<PollFd<'_>> = program
            .into_iter()
            .map(|program| PollFd::new(program, PollFlags::IN))
            .collect();
        if poll(&mut fds, Some(&INTERVAL)) != Ok(0) {
            return false;
        }
        let Ok((bytes, count)) = self.sum() else {
            return false;
        };
        self.full |= self.processes.is_some_and(|most| count >= most);
        bytes > self.memory
    }

    /// Whether there ever were as many processes as may be.
    pub(super) fn was_full(&self) -> bool {
        self.full
    }

    fn sum(&self) -> Result<(u64, u64), Errno> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let listed = rustix::fs::openat(&self.proc, ".", flags, Mode::empty())?;
        let (mut bytes, mut count) = (0u64, 0u64);
        for entry in Dir::new(listed)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            let ours = self.ours.iter().any(|ours| ours.as_bytes() == name);
            if !name.first().is_some_and(u8::is_ascii_digit) || ours {
                continue;
            }
            count += 1;
            bytes = bytes.saturating_add(self.resident(name).unwrap_or(0));
        }
        Ok((bytes, count))
    }

    /// Memory that this process shares with no file, in bytes.
    fn resident(&self, pid: &[u8]) -> Option<u64> {
        let path = [pid, b"/statm"].concat();
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.proc, path, flags, Mode::empty()).ok()?;
        let mut text = [0; 128];
        let length = rustix::io::read(&file, &mut text).ok()?;
        let text = std::str::from_utf8(&text[..length]).ok()?;
        let mut fields = text.split(' ').skip(1).map(str::parse::<u64>);
        let (resident, shared) = (fields.next()?.ok()?, fields.next()?.ok()?);
        Some(resident.saturating_sub(shared).saturating_mul(self.page))
    }
}
