//! Commands that hangar starts itself with. They come before the argument parser: a launcher
//! inside a sandbox must read nothing that it does not need.

use crate::grade::external;
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs a hidden command, if the first argument names one.
pub(super) fn run(args: &[OsString]) -> Option<ExitCode> {
    if crate::sandbox::is_launcher(args.iter().skip(1).cloned()) {
        return Some(crate::sandbox::launcher_main());
    }
    let word = args.get(1)?.to_str()?;
    let rest = args.iter().skip(2).cloned();
    match word {
        external::FAR => Some(external::far_main(rest)),
        external::NEAR => Some(external::near_main(rest)),
        crate::harness::script::SUBCOMMAND => Some(crate::harness::script::play_main(rest)),
        "__schemas" => Some(super::commands::schemas::run(args.get(2))),
        _ => None,
    }
}
