//! Git repositories as scenes, made by the git program.

use crate::anchor;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// git in `dir`, without the settings of whoever runs this.
pub(crate) fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = anchor::command("git", args);
    command
        .current_dir(dir)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
    command
}

/// Runs git in `dir`; it must succeed.
pub(crate) fn run(dir: &Path, args: &[&str]) {
    anchor::run(&mut command(dir, args));
}

/// Makes an empty repository at `dir` and puts the commits of a `git fast-import` stream into it, as
/// one pack. Loose objects would be written one by one, which takes much longer.
pub(crate) fn import(dir: &Path, stream: &[u8]) {
    run(dir, &["init", "-q", "-b", "main", "."]);
    import_with(dir, &[], stream);
}

/// The same for a repository that is there, with more options.
pub(crate) fn import_with(dir: &Path, options: &[&str], stream: &[u8]) {
    let settings = ["-c", "fastimport.unpackLimit=0"];
    let mut command = command(dir, &settings);
    command
        .args(["fast-import", "--quiet"])
        .args(options)
        .stdin(Stdio::piped());
    let mut child = command.spawn().expect("git starts");
    let mut stdin = child.stdin.take().expect("it is a pipe");
    stdin.write_all(stream).expect("git reads");
    drop(stdin);
    assert!(child.wait().is_ok_and(|status| status.success()));
}
