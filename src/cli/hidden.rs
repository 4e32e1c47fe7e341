//! Commands that hangar starts itself with. They come before the argument parser: a launcher
//! inside a sandbox must read nothing that it does not need.

use std::ffi::OsString;
use std::process::ExitCode;

/// Runs a hidden command, if the first argument names one.
pub(super) fn run(args: &[OsString]) -> Option<ExitCode> {
    if crate::sandbox::is_launcher(args.iter().skip(1).cloned()) {
        return Some(crate::sandbox::launcher_main());
    }
    let word = args.get(1)?.to_str()?;
    match word {
        "__schemas" => Some(super::commands::schemas::run(args.get(2))),
        _ => None,
    }
}
