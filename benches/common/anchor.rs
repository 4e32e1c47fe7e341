//! Programs that figures are compared with, started the way hangar starts its own.

use hangar::base::process;
use std::path::Path;
use std::process::{Command, Stdio};

/// A program with an empty environment but for `PATH`, and without output.
pub(crate) fn command(program: &str, args: &[&str]) -> Command {
    let mut command = process::command(Path::new(program));
    command
        .args(args)
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Runs it to its end; it must succeed.
pub(crate) fn run(command: &mut Command) {
    let status = command.status();
    let succeeded = status.as_ref().is_ok_and(std::process::ExitStatus::success);
    assert!(succeeded, "{command:?}: {status:?}");
}
