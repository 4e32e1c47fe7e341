//! The real git program, as somebody runs it whose machine configures nothing. A test with a user of
//! its own takes [`super::TestEnv::git`].

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests stop where they can't go on"
)]

use hangar::base::process::{Output, Run};
use std::path::Path;

/// A program that starts others: a git below it sees no configuration either.
pub(crate) fn isolated(program: &str, dir: &Path) -> Run {
    Run::new(program)
        .inherit(&["PATH"])
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "A")
        .env("GIT_AUTHOR_EMAIL", "a@example.org")
        .env("GIT_AUTHOR_DATE", "1700000000 +0000")
        .env("GIT_COMMITTER_NAME", "A")
        .env("GIT_COMMITTER_EMAIL", "a@example.org")
        .env("GIT_COMMITTER_DATE", "1700000000 +0000")
        .dir(dir)
}

/// Git, to be run to whatever end it takes.
pub(crate) fn git_run(dir: &Path, args: &[&str]) -> Run {
    isolated("git", dir)
        .args(["-c", "protocol.file.allow=always"])
        .args(args)
}

/// What git prints, without the last line break; it must succeed.
#[track_caller]
pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
    git_input(dir, args, b"")
}

/// The same with this input.
#[track_caller]
pub(crate) fn git_input(dir: &Path, args: &[&str], input: &[u8]) -> String {
    let out = succeeded(args, git_run(dir, args).stdin(input.to_vec()));
    String::from_utf8_lossy(&out.stdout).trim_end().to_owned()
}

/// The bytes of a file: `REVISION:PATH`.
#[track_caller]
pub(crate) fn file_at(dir: &Path, name: &str) -> Vec<u8> {
    let args = ["cat-file", "blob", name];
    succeeded(&args, git_run(dir, &args)).stdout
}

/// Commits everything that is not ignored.
#[track_caller]
pub(crate) fn commit_all(dir: &Path, message: &str) {
    git(dir, &["add", "-A"]);
    git(dir, &["commit", "-q", "--allow-empty", "-m", message]);
}

#[track_caller]
fn succeeded(args: &[&str], run: Run) -> Output {
    let out = run.output().unwrap();
    assert!(out.status.success(), "git {args:?}: {}", out.stderr_text());
    out
}
