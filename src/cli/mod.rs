//! The command line.

use std::process::ExitCode;

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    if crate::sandbox::is_launcher(std::env::args_os().skip(1)) {
        return crate::sandbox::launcher_main();
    }
    ExitCode::from(2)
}
