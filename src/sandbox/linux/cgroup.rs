//! Control groups: bounds on memory, processes and CPU of the whole tree.
//!
//! Version 2 where a group above ours is ours to divide (delegated, or as root) and offers the
//! controllers; version 1 where that is what is mounted and we are root. What no group can hold is
//! handed back, to be bounded per process (and the grade then says less).

mod around;

use super::fault::{Doing as _, Fault};
use super::sys;
use super::wire::{Reader, Writer};
use crate::sandbox::spec::Limits;
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// Bit of the bound on memory.
pub(in crate::sandbox) const MEMORY: u64 = 1;
/// Bit of the bound on processes.
pub(in crate::sandbox) const PROCESSES: u64 = 2;
/// Bit of the bound on CPU.
pub(in crate::sandbox) const CPU: u64 = 4;

/// Prefix of our groups' names; the launcher's process id follows.
const PREFIX: &str = "hangar-";
const CPU_PERIOD: u64 = 100_000;

/// What a group counted.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counters {
    /// Processes killed for want of memory.
    pub(super) killed: u64,
    /// Forks refused.
    pub(super) refused: u64,
    /// Highest memory use in bytes.
    pub(super) peak: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// One folder in a control-group file system.
struct Part {
    version: Version,
    /// Which bounds it holds.
    bounds: u64,
    folder: OwnedFd,
    /// The folder above it, and its name there; none where somebody else made it.
    ours: Option<(OwnedFd, String)>,
}

/// The groups of one sandbox. Dropping removes them, which works once every process is dead.
pub(super) struct Group {
    parts: Vec<Part>,
}

impl Group {
    /// Makes groups for `limits`, and says which bounds are left to other means.
    pub(super) fn make(limits: &Limits) -> Result<(Option<Self>, Limits), Fault> {
        let mut left = Limits {
            memory: limits.memory,
            processes: limits.processes,
            cpus: limits.cpus,
            ..Limits::default()
        };
        if left == Limits::default() {
            return Ok((None, left));
        }
        let mut parts = Vec::new();
        for place in Places::read().doing("read the mounted control groups")? {
            let bounds = place.bounds & wanted(&left);
            if bounds == 0 {
                continue;
            }
            sweep(&place.parent);
            let Ok(part) = Part::make(place, bounds, limits) else {
                continue;
            };
            for (bit, clear) in [(MEMORY, &mut left.memory), (PROCESSES, &mut left.processes)] {
                if part.bounds & bit != 0 {
                    *clear = None;
                }
            }
            if part.bounds & CPU != 0 {
                left.cpus = None;
            }
            parts.push(part);
        }
        let group = (!parts.is_empty()).then_some(Self { parts });
        Ok((group, left))
    }

    /// Hands the groups to the program that this process becomes: its descriptors stay open, and
    /// dropping does nothing here any more.
    pub(super) fn hand_over(self, out: &mut Writer) -> Result<(), Errno> {
        let parts: Vec<Part> = self.parts;
        let mut ours = Vec::new();
        for part in &parts {
            if let Some((parent, name)) = &part.ours {
                sys::keep(parent.as_fd())?;
                sys::keep(part.folder.as_fd())?;
                ours.push((part, parent, name));
            }
        }
        out.list(&ours, |out, (part, parent, name)| {
            out.number(u64::from(part.version == Version::Two))
                .number(part.bounds)
                .descriptor(parent)
                .bytes(name.as_bytes())
                .descriptor(&part.folder);
        });
        std::mem::forget(parts);
        Ok(())
    }

    /// Takes over what [`Self::hand_over`] wrote; none where there was none.
    pub(super) fn take_over(from: &mut Reader<'_>) -> std::io::Result<Option<Self>> {
        let parts = from.list(|from| {
            Ok(Part {
                version: match from.number()? {
                    0 => Version::One,
                    _ => Version::Two,
                },
                bounds: from.number()?,
                ours: Some((
                    from.descriptor()?,
                    String::from_utf8_lossy(from.bytes()?).into_owned(),
                )),
                folder: from.descriptor()?,
            })
        })?;
        Ok((!parts.is_empty()).then_some(Self { parts }))
    }

    /// Which bounds are held, as bits.
    pub(super) fn controllers(&self) -> u64 {
        self.parts.iter().fold(0, |bits, part| bits | part.bounds)
    }

    /// Moves this process in, and starts the record of its memory anew. Groups that somebody else made
    /// we are in already.
    pub(super) fn join(&self) -> Result<(), Fault> {
        for part in self.parts.iter().filter(|part| part.ours.is_some()) {
            if part.bounds & MEMORY != 0 {
                let (file, text) = match part.version {
                    Version::One => ("memory.max_usage_in_bytes", "0"),
                    Version::Two => ("memory.peak", "reset"),
                };
                // Kernels before 6.12 keep the peak of version 2 over all steps.
                let _ = write(&part.folder, file, text);
            }
            // A thread that moves itself (0) takes no lock of the whole machine, which is worth
            // milliseconds. Version 2 moves processes only.
            let file = match part.version {
                Version::One => "tasks",
                Version::Two => "cgroup.procs",
            };
            write(&part.folder, file, "0").doing("join a control group")?;
        }
        Ok(())
    }

    /// What was counted so far.
    pub(super) fn counters(&self) -> Counters {
        let mut counters = Counters::default();
        for part in &self.parts {
            if part.bounds & MEMORY != 0 {
                let (events, peak) = match part.version {
                    Version::One => ("memory.oom_control", "memory.max_usage_in_bytes"),
                    Version::Two => ("memory.events", "memory.peak"),
                };
                counters.killed = field(&part.folder, events, "oom_kill");
                counters.peak = read(&part.folder, peak)
                    .ok()
                    .and_then(|text| text.trim().parse().ok());
            }
            if part.bounds & PROCESSES != 0 {
                counters.refused = field(&part.folder, "pids.events", "max");
            }
        }
        counters
    }
}

fn wanted(limits: &Limits) -> u64 {
    [
        (limits.memory.is_some(), MEMORY),
        (limits.processes.is_some(), PROCESSES),
        (limits.cpus.is_some(), CPU),
    ]
    .into_iter()
    .fold(
        0,
        |bits, (asked, bit)| if asked { bits | bit } else { bits },
    )
}

impl Part {
    fn make(place: Place, bounds: u64, limits: &Limits) -> Result<Self, Errno> {
        let name = format!(
            "{PREFIX}{}-{}",
            rustix::process::getpid().as_raw_pid(),
            bounds
        );
        rustix::fs::mkdirat(&place.parent, name.as_str(), Mode::from_raw_mode(0o755))?;
        let folder = open(place.parent.as_fd(), Path::new(&name))?;
        let mut part = Self {
            version: place.version,
            bounds,
            folder,
            ours: Some((place.parent, name)),
        };
        part.set(limits)?;
        Ok(part)
    }

    fn set(&mut self, limits: &Limits) -> Result<(), Errno> {
        let folder = &self.folder;
        let one = self.version == Version::One;
        if let (true, Some(bytes)) = (self.bounds & MEMORY != 0, limits.memory) {
            let bytes = bytes.to_string();
            let swap = if one {
                write(folder, "memory.limit_in_bytes", &bytes)?;
                write(folder, "memory.memsw.limit_in_bytes", &bytes)
            } else {
                write(folder, "memory.max", &bytes)?;
                write(folder, "memory.swap.max", "0")
            };
            // A bound that swap can stretch is none.
            if swap.is_err() && super::swap_is_on() {
                self.bounds &= !MEMORY;
            }
        }
        if let (true, Some(count)) = (self.bounds & PROCESSES != 0, limits.processes) {
            // pid 1 is ours and does not count.
            write(folder, "pids.max", &count.saturating_add(1).to_string())?;
        }
        if let (true, Some(cpus)) = (self.bounds & CPU != 0, limits.cpus) {
            let quota = u64::from(cpus.max(1)) * CPU_PERIOD;
            if one {
                write(folder, "cpu.cfs_period_us", &CPU_PERIOD.to_string())?;
                write(folder, "cpu.cfs_quota_us", &quota.to_string())?;
            } else {
                write(folder, "cpu.max", &format!("{quota} {CPU_PERIOD}"))?;
            }
        }
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let Some((parent, name)) = &self.ours else {
            return;
        };
        for _ in 0..50 {
            match rustix::fs::unlinkat(parent, name.as_str(), AtFlags::REMOVEDIR) {
                Err(Errno::BUSY) => std::thread::sleep(std::time::Duration::from_millis(2)),
                // Gone, or for the sweep of a later sandbox.
                _ => return,
            }
        }
    }
}

/// Whether something of the groups that the process `owner` made was killed for want of memory.
pub(super) fn was_killed(owner: u32) -> bool {
    let name = format!("{PREFIX}{owner}-");
    let killed = |place: Place| -> Option<u64> {
        let listed = open(place.parent.as_fd(), Path::new("."))
            .and_then(Dir::new)
            .ok()?;
        let entry = listed
            .flatten()
            .find(|entry| entry.file_name().to_bytes().starts_with(name.as_bytes()))?;
        let folder = open(
            place.parent.as_fd(),
            Path::new(entry.file_name().to_str().ok()?),
        )
        .ok()?;
        let events = match place.version {
            Version::One => "memory.oom_control",
            Version::Two => "memory.events",
        };
        Some(field(&folder, events, "oom_kill"))
    };
    let places = Places::read().unwrap_or_default().into_iter();
    places.filter_map(killed).any(|count| count > 0)
}

/// Removes groups that nobody is left to remove, wherever we may make some.
pub(super) fn sweep_all() {
    // Without control groups there is nothing to remove.
    for place in Places::read().unwrap_or_default() {
        sweep(&place.parent);
    }
}

/// Removes groups whose launcher is dead (killed before it could remove them).
fn sweep(parent: &OwnedFd) {
    let Ok(entries) = rustix::fs::openat(
        parent,
        ".",
        OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .and_then(Dir::new) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name
            .to_str()
            .ok()
            .and_then(|name| name.strip_prefix(PREFIX))
            .and_then(|rest| rest.split('-').next())
            .and_then(|pid| pid.parse::<u32>().ok());
        let Some(owner) = owner else { continue };
        if !Path::new("/proc").join(owner.to_string()).exists() {
            let _ = rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR);
        }
    }
}

/// A group below which we may make one.
struct Place {
    version: Version,
    bounds: u64,
    parent: OwnedFd,
}

struct Places;

impl Places {
    fn read() -> std::io::Result<Vec<Place>> {
        let own = std::fs::read_to_string("/proc/self/cgroup")?;
        let mounts = std::fs::read_to_string("/proc/self/mounts")?;
        let mut places = Vec::new();
        for line in mounts.lines() {
            let mut fields = line.split(' ');
            let (at, fs, options) = (fields.nth(1), fields.next(), fields.next());
            let (Some(at), Some(fs), Some(options)) = (at, fs, options) else {
                continue;
            };
            match fs {
                "cgroup2" => places.extend(second(Path::new(at), &own)),
                "cgroup" => places.extend(first(Path::new(at), options, &own)),
                _ => {}
            }
        }
        // A controller is mounted in one version only, so the order decides nothing but cost.
        Ok(places)
    }
}

fn bit(controller: &str) -> u64 {
    match controller {
        "memory" => MEMORY,
        "pids" => PROCESSES,
        "cpu" => CPU,
        _ => 0,
    }
}

/// Version 1: below our own group, for which we must be root.
fn first(at: &Path, options: &str, own: &str) -> Option<Place> {
    let bounds = options.split(',').map(bit).fold(0, |bits, bit| bits | bit);
    if bounds == 0 {
        return None;
    }
    let path = own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let ours = controllers.split(',').any(|name| bit(name) & bounds != 0);
        ours.then_some(path)
    })?;
    let folder = at.join(path.trim_start_matches('/'));
    Some(Place {
        version: Version::One,
        bounds,
        parent: open(rustix::fs::CWD, &folder).ok()?,
    })
}

/// Version 2: the nearest group from ours upwards that hands controllers to its children and that
/// we may write to.
fn second(at: &Path, own: &str) -> Option<Place> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mut relative = PathBuf::from(path.trim_start_matches('/'));
    loop {
        let folder = open(rustix::fs::CWD, &at.join(&relative)).ok()?;
        let bounds = read(&folder, "cgroup.subtree_control")
            .unwrap_or_default()
            .split_whitespace()
            .map(bit)
            .fold(0, |bits, bit| bits | bit);
        let ours = rustix::fs::accessat(
            &folder,
            "cgroup.procs",
            rustix::fs::Access::WRITE_OK,
            AtFlags::EACCESS,
        )
        .is_ok();
        if ours && bounds != 0 {
            return Some(Place {
                version: Version::Two,
                bounds,
                parent: folder,
            });
        }
        if !relative.pop() {
            return None;
        }
    }
}

fn open(at: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    rustix::fs::openat(at, path, flags, Mode::empty())
}

fn write(folder: &OwnedFd, file: &str, text: &str) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, file, flags, Mode::empty())?;
    rustix::io::write(&file, text.as_bytes()).map(drop)
}

fn read(folder: &OwnedFd, file: &str) -> Result<String, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, file, flags, Mode::empty())?;
    let mut buffer = [0; 4096];
    let length = rustix::io::read(&file, &mut buffer)?;
    Ok(String::from_utf8_lossy(&buffer[..length]).into_owned())
}

fn field(folder: &OwnedFd, file: &str, name: &str) -> u64 {
    read(folder, file)
        .unwrap_or_default()
        .lines()
        .filter_map(|line| line.split_once(' '))
        .find(|(key, _)| *key == name)
        .and_then(|(_, value)| value.trim().parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn group(at: &Path, name: &str, subtree: &str) {
        let folder = at.join(name);
        fs::create_dir_all(&folder).unwrap();
        let write = |file: &str, text: &str| {
            crate::base::files::write_atomic(&folder.join(file), text.as_bytes(), 0o644).unwrap();
        };
        write("cgroup.procs", "");
        write("cgroup.subtree_control", subtree);
    }

    fn place(at: &Path, own: &str) -> Option<(PathBuf, u64)> {
        second(at, own).map(|place| {
            let path = format!(
                "/proc/self/fd/{}",
                rustix::fd::AsRawFd::as_raw_fd(&place.parent)
            );
            (fs::read_link(path).unwrap(), place.bounds)
        })
    }

    #[test]
    fn version_two_is_used_where_controllers_are_handed_down() {
        let folder = tempfile::tempdir().unwrap();
        let at = fs::canonicalize(folder.path()).unwrap();
        group(&at, "", "");
        group(&at, "user", "cpu memory pids\n");
        group(&at, "user/app", "memory\n");
        group(&at, "user/app/shell", "");
        let own = "1:name=systemd:/x\n0::/user/app/shell\n";
        assert_eq!(place(&at, own), Some((at.join("user/app"), MEMORY)));
        let all = MEMORY | PROCESSES | CPU;
        assert_eq!(place(&at, "0::/user\n"), Some((at.join("user"), all)));
        // A mount without controllers bounds nothing.
        assert_eq!(place(&at, "0::/\n"), None);
        assert_eq!(place(&at, "4:memory:/user\n"), None);
    }

    #[test]
    fn version_one_is_used_below_our_own_group() {
        let folder = tempfile::tempdir().unwrap();
        group(folder.path(), "mine", "");
        let own = "5:devices:/\n4:memory:/mine\n";
        let options = "rw,relatime,memory";
        assert_eq!(first(folder.path(), options, own).unwrap().bounds, MEMORY);
        assert!(first(folder.path(), "rw,freezer", own).is_none());
        assert!(first(folder.path(), options, "4:memory:/gone\n").is_none());
    }

    #[test]
    fn groups_of_dead_launchers_are_swept() {
        let folder = tempfile::tempdir().unwrap();
        let ours = format!("hangar-{}-1", std::process::id());
        // No process has this id: it is above the kernel's largest.
        for name in ["hangar-4194999-1", ours.as_str(), "other-4194999-1"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        sweep(&open(rustix::fs::CWD, folder.path()).unwrap());
        let mut left: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        let mut expected = vec![ours, "other-4194999-1".to_owned()];
        expected.sort();
        assert_eq!(left, expected);
    }
}
