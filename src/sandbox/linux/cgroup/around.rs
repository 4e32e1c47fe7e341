//! The control groups that a container engine put a whole sandbox into, as they show in it: which bounds
//! they hold is read from them, not believed.

use super::{CPU, Group, MEMORY, PROCESSES, Part, Version, open, read};
use crate::sandbox::spec::Limits;
use rustix::fd::OwnedFd;
use rustix::fs::CWD;
use std::path::Path;

/// Where an engine mounts them.
const MOUNTED: &str = "/sys/fs/cgroup";
/// A bound of version 1 that is none: about all that the number can hold.
const NO_BOUND: u64 = 1 << 60;

impl Group {
    /// The groups around this process, and which bounds of `limits` they leave to other means.
    pub(in super::super) fn around(limits: &Limits) -> (Option<Self>, Limits) {
        Self::at(Path::new(MOUNTED), limits)
    }

    fn at(mounted: &Path, limits: &Limits) -> (Option<Self>, Limits) {
        let wanted = super::wanted(limits);
        let part = |folder: &Path, version, bounds: u64| {
            let folder = open(CWD, folder).ok()?;
            let held = [MEMORY, PROCESSES, CPU]
                .into_iter()
                .filter(|bit| wanted & bounds & bit != 0 && holds(&folder, version, *bit))
                .fold(0, |bits, bit| bits | bit);
            (held != 0).then_some(Part {
                version,
                bounds: held,
                folder,
                ours: None,
            })
        };
        let parts: Vec<Part> = if mounted.join("cgroup.controllers").exists() {
            let all = MEMORY | PROCESSES | CPU;
            part(mounted, Version::Two, all).into_iter().collect()
        } else {
            [("memory", MEMORY), ("pids", PROCESSES), ("cpu", CPU)]
                .into_iter()
                .filter_map(|(name, bit)| part(&mounted.join(name), Version::One, bit))
                .collect()
        };
        let group = Self { parts };
        let held = group.controllers();
        let left = Limits {
            memory: limits.memory.filter(|_| held & MEMORY == 0),
            processes: limits.processes.filter(|_| held & PROCESSES == 0),
            cpus: limits.cpus.filter(|_| held & CPU == 0),
            ..Limits::default()
        };
        ((held != 0).then_some(group), left)
    }
}

/// Whether the group has a bound of that kind.
fn holds(folder: &OwnedFd, version: Version, bit: u64) -> bool {
    let number = |file: &str| -> Option<u64> {
        let text = read(folder, file).ok()?;
        let number = text.split_whitespace().next()?.parse().ok()?;
        Some(number).filter(|number| *number < NO_BOUND)
    };
    match (bit, version) {
        (MEMORY, Version::One) => number("memory.limit_in_bytes").is_some_and(|bytes| {
            // A bound that swap can stretch is none.
            number("memory.memsw.limit_in_bytes") == Some(bytes) || !super::super::swap_is_on()
        }),
        (MEMORY, Version::Two) => {
            number("memory.max").is_some()
                && (number("memory.swap.max") == Some(0) || !super::super::swap_is_on())
        }
        (PROCESSES, _) => number("pids.max").is_some(),
        (_, Version::One) => number("cpu.cfs_quota_us").is_some(),
        (_, Version::Two) => number("cpu.max").is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::files;
    use std::fs;

    const ALL: Limits = Limits {
        memory: Some(1 << 20),
        processes: Some(10),
        cpus: Some(1),
        disk: None,
        output: None,
        file: None,
    };

    fn lay(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            files::write_atomic(&path, text.as_bytes(), 0o644).unwrap();
        }
        folder
    }

    #[test]
    fn only_bounds_that_are_there_are_held() {
        let first = lay(&[
            ("memory/memory.limit_in_bytes", "67108864\n"),
            ("memory/memory.memsw.limit_in_bytes", "67108864\n"),
            ("pids/pids.max", "12\n"),
            ("cpu/cpu.cfs_quota_us", "-1\n"),
        ]);
        let (group, left) = Group::at(first.path(), &ALL);
        assert_eq!(group.unwrap().controllers(), MEMORY | PROCESSES);
        assert_eq!(
            (left.memory, left.processes, left.cpus),
            (None, None, Some(1))
        );
        let second = lay(&[
            ("cgroup.controllers", "cpu memory pids\n"),
            ("memory.max", "67108864\n"),
            ("memory.swap.max", "0\n"),
            ("pids.max", "max\n"),
            ("cpu.max", "100000 100000\n"),
        ]);
        let (group, left) = Group::at(second.path(), &ALL);
        assert_eq!(group.unwrap().controllers(), MEMORY | CPU);
        assert_eq!(
            (left.memory, left.processes, left.cpus),
            (None, Some(10), None)
        );
        let open = lay(&[("memory/memory.limit_in_bytes", "9223372036854771712\n")]);
        let (group, left) = Group::at(open.path(), &ALL);
        assert!(group.is_none());
        assert_eq!(left.memory, ALL.memory);
        // What was not asked for is not said to be held.
        assert!(Group::at(first.path(), &Limits::default()).0.is_none());
    }
}
