//! The user's pager, fed through a pipe. Nothing is written to a file, and `less` is told to keep
//! no history and to offer no way to save or edit: what is shown may be a hidden test.

use crate::base::process;
use anstream::adapter::strip_str;
use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::process::Stdio;

/// What a pager needs of the user's session.
const INHERITED: &[&str] = &[
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LESSCHARSET",
    "PATH",
    "TERM",
    "TERMINFO",
    "TERMINFO_DIRS",
    "XDG_CONFIG_HOME",
];

/// Shows `text`; whether that was possible.
pub(super) fn show(text: &str, color: bool) -> bool {
    let wanted = std::env::var("PAGER").unwrap_or_else(|_| "less".into());
    let wanted = wanted.trim();
    if wanted.is_empty() || wanted == "cat" {
        return false;
    }
    if wanted == "less" && process::find(Path::new("less")).is_none() {
        return false;
    }
    // As git does it: the variable is shell text.
    let mut command = process::command(Path::new("/bin/sh"));
    command.arg("-c").arg(wanted).stdin(Stdio::piped());
    for name in INHERITED {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    let less = std::env::var("LESS").unwrap_or_else(|_| "FRX".into());
    command
        .env("LESS", less)
        .env("LESSSECURE", "1")
        .env("LESSHISTFILE", "-");
    let Ok(mut child) = command.spawn() else {
        return false;
    };
    let stripped;
    let text = if color {
        text
    } else {
        stripped = strip_str(text).to_string();
        &stripped
    };
    let wrote = child
        .stdin
        .take()
        .map(|mut stdin| stdin.write_all(text.as_bytes()));
    let started = child.wait().is_ok_and(|status| {
        // 126 and 127 are the shell's: the pager could not be started.
        !matches!(status.code(), Some(126 | 127))
    });
    // A pager that was left before the end closes the pipe.
    let complete = match wrote {
        Some(Err(error)) => error.kind() == ErrorKind::BrokenPipe,
        Some(Ok(())) => true,
        None => false,
    };
    started && complete
}
