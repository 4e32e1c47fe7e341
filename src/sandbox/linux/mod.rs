//! The embedded Linux provider: namespaces, mounts, Landlock, seccomp and control groups.
//!
//! Two processes work together: the host side ([`host`]) in hangar itself, and the launcher
//! ([`launcher`]), this same binary started again as a hidden single-threaded subcommand. For each
//! step the launcher starts a pid 1 ([`init`]), which starts the program.

mod bridge;
mod cgroup;
mod codec;
mod copy;
mod fault;
mod filter;
mod host;
mod init;
mod inner;
mod launcher;
mod lay;
mod pin;
mod step;
mod sys;
mod tree;
mod watch;
mod wire;

pub use host::Linux;
pub(super) use launcher::{NOBODY, main as launcher_main};

/// As the host side of a mount: the launcher's own binary.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// Whether the machine has swap, to which memory of a sandbox can be written.
pub(super) fn swap_is_on() -> bool {
    // The first line is a heading.
    std::fs::read_to_string("/proc/swaps").is_ok_and(|text| text.lines().count() > 1)
}
