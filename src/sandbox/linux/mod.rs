//! The supervisor for Linux, and the providers that rest on it.
//!
//! Two processes work together: the host side ([`host`]) in hangar itself, and the launcher
//! ([`launcher`]), this same binary started again as a hidden single-threaded subcommand. For each
//! step the launcher starts a pid 1 ([`init`]), which starts the program.
//!
//! The embedded provider makes the walls itself: namespaces and mounts. In [`bwrap`], [`gvisor`] and
//! [`container`] another program makes them, and [`inside`] is what the launcher then does within.

mod bridge;
mod bwrap;
mod cgroup;
mod codec;
mod container;
mod copy;
mod fault;
mod filter;
mod gvisor;
mod handover;
mod host;
mod init;
mod inner;
mod inside;
mod launcher;
mod lay;
mod named;
mod pin;
mod provider;
mod step;
mod sys;
mod tree;
mod watch;
mod wire;

pub(super) use launcher::NOBODY;
pub(super) use provider::providers;

use std::ffi::OsString;
use std::process::ExitCode;

/// As the host side of a mount: the launcher's own binary.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// Who made the namespaces and mounts around the launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Walls {
    /// The launcher, which can make more for each step.
    Own,
    /// Another program. The launcher is the first process in them and can make no more.
    Given,
}

/// The hidden subcommand. `args` follow its name.
pub(super) fn launcher_main(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    match args.next() {
        None => launcher::main(),
        Some(word) if word == bwrap::WORD => bwrap::main(args.next()),
        Some(word) if word == inside::WORD => inside::main(args.next().as_deref()),
        Some(word) if word == inside::APART => inside::main_apart(args.next().as_deref()),
        Some(word) if word == inside::CONTAINED => inside::main_contained(),
        Some(word) if word == gvisor::WORD => gvisor::main(args.next(), args.next()),
        Some(_) => ExitCode::FAILURE,
    }
}

/// Whether the machine has swap, to which memory of a sandbox can be written.
pub(super) fn swap_is_on() -> bool {
    // The first line is a heading.
    std::fs::read_to_string("/proc/swaps").is_ok_and(|text| text.lines().count() > 1)
}
