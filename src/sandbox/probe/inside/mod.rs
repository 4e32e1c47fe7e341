//! The hidden subcommand that runs in a twin of a sandbox and tries to get out.
//!
//! Every attempt is harmless when it succeeds: it opens, connects or asks, and changes nothing
//! that is not the probe's own.

mod bounds;
mod look;

use super::Probe;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

/// What lies ready on the host, and the bounds to be exceeded.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Bait {
    /// A file that everyone on the host may read.
    pub(super) file: PathBuf,
    /// A Unix socket that everyone on the host may connect to.
    pub(super) socket: PathBuf,
    /// Name of an abstract Unix socket.
    pub(super) name: String,
    /// A name to resolve.
    pub(super) host: String,
    /// Port of a listener on the host's loopback.
    pub(super) port: u16,
    /// The host's own pid namespace, by the name that its `/proc` gives it.
    #[serde(default)]
    pub(super) processes_of: String,
    /// The host's kernel.
    #[serde(default)]
    pub(super) kernel: Kernel,
    /// Bytes of memory.
    pub(super) memory: Option<u64>,
    /// Processes.
    pub(super) processes: Option<u64>,
    /// Bytes of tmpfs.
    pub(super) disk: Option<u64>,
    /// Bytes in a file.
    pub(super) file_size: Option<u64>,
    /// Bytes of output.
    pub(super) output: Option<u64>,
}

/// What a kernel tells of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kernel {
    /// Release and version.
    pub(super) name: String,
    /// Drawn at random when it started; empty where it can't be read.
    pub(super) boot: String,
}

impl Kernel {
    /// The one that this process talks to.
    pub(super) fn here() -> Self {
        let system = rustix::system::uname();
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
        Self {
            name: format!(
                "{} {}",
                system.release().to_string_lossy(),
                system.version().to_string_lossy()
            ),
            boot: boot.unwrap_or_default().trim().to_owned(),
        }
    }
}

/// Steps of a probe run, by the argument that selects them.
pub(super) const LOOK: &str = "look";
/// See [`LOOK`].
pub(super) const BOUNDS: &str = "bounds";
/// See [`LOOK`].
pub(super) const MEMORY: &str = "memory";
/// See [`LOOK`].
pub(super) const PROCESSES: &str = "processes";

/// Where the process that is left behind shows that it lives.
const ALIVE: &str = "/tmp/.alive";

/// Runs the step named by the argument.
pub(crate) fn main(step: Option<&OsStr>) -> ExitCode {
    let mut text = Vec::new();
    let bait: Bait = match io::stdin()
        .take(64 << 10)
        .read_to_end(&mut text)
        .ok()
        .and_then(|_| serde_json::from_slice(&text).ok())
    {
        Some(bait) => bait,
        None => return ExitCode::FAILURE,
    };
    let Ok(report) = super::calls::channel() else {
        return ExitCode::FAILURE;
    };
    let mut report = std::fs::File::from(report);
    let mut tell = |name: &str, probe: Probe| {
        let line = serde_json::to_string(&(name, probe)).unwrap_or_default();
        let _ = writeln!(report, "{line}");
    };
    match step.and_then(OsStr::to_str) {
        Some(LOOK) => look::look(&bait, &mut tell),
        Some(BOUNDS) => bounds::bounds(&bait, &mut tell),
        Some(MEMORY) => tell(MEMORY, bounds::memory(bait.memory.unwrap_or(0))),
        Some(PROCESSES) => tell(PROCESSES, bounds::processes(bait.processes.unwrap_or(0))),
        _ => return ExitCode::FAILURE,
    }
    ExitCode::SUCCESS
}

/// Held when the attempt failed.
fn refused<T>(attempt: Result<T, impl std::fmt::Display>, open: &str) -> Probe {
    match attempt {
        Ok(_) => Probe::open(open),
        Err(error) => Probe::held(error.to_string()),
    }
}

/// Held when every attempt failed.
fn all_refused(attempts: impl IntoIterator<Item = (&'static str, bool)>) -> Probe {
    let through: Vec<&str> = attempts
        .into_iter()
        .filter_map(|(name, succeeded)| succeeded.then_some(name))
        .collect();
    if through.is_empty() {
        Probe::held("all refused")
    } else {
        Probe::open(through.join(", "))
    }
}
