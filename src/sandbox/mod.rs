//! Sandboxes: what is asked for, what holds it, and what was measured.
//!
//! Owns namespaces, Landlock, seccomp, limits and the probes. Must not know what a test, a task or
//! an agent is: it runs argument lists on mounts. Docs: `docs/threat-model.md`.

mod check;
pub mod error;
pub mod linux;
pub mod spec;

pub use error::{Error, Unavailable};
pub use linux::Linux;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Hidden subcommand under which this binary is the launcher.
const LAUNCHER_COMMAND: &str = "__sandbox";

/// Whether the arguments of this process (without the program) ask for a hidden subcommand of the
/// sandbox. Then [`launcher_main`] is the whole program.
pub fn is_launcher(mut args: impl Iterator<Item = OsString>) -> bool {
    args.next().is_some_and(|arg| arg == LAUNCHER_COMMAND)
}

/// The hidden subcommands. Must be called before this process has a second thread.
pub fn launcher_main() -> ExitCode {
    linux::launcher_main()
}

/// The program that is started as the launcher: a hangar binary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    /// Path of the program.
    pub program: PathBuf,
}

impl Default for Launcher {
    /// This very program.
    fn default() -> Self {
        Self {
            program: PathBuf::from("/proc/self/exe"),
        }
    }
}

/// A flag that ends a run: everything inside dies and the run returns [`Error::Interrupted`].
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Ends the run. Safe in a signal handler.
    pub fn set(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether the run was cancelled.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// What happens while a sandbox runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The step with this index starts.
    Started(usize),
    /// A line of standard output, without its end.
    Stdout(Vec<u8>),
    /// A line of standard error, without its end.
    Stderr(Vec<u8>),
    /// The step with this index ended.
    Ended(usize),
}
