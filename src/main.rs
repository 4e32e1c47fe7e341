//! The `hangar` binary: everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    hangar::cli::main()
}
