//! The command line.

use std::process::ExitCode;

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    if crate::sandbox::is_launcher(std::env::args_os().skip(1)) {
        return crate::sandbox::launcher_main();
    }
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|word| word == crate::harness::script::SUBCOMMAND) {
        return crate::harness::script::play_main(args);
    }
    ExitCode::from(2)
}
