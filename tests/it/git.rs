//! Repositories made with the real git program, which is also the second opinion.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests stop where they can't go on"
)]

mod collect;
mod discover;
mod history;
mod objects;
mod patch;
mod pinned;
mod refs;
mod trees;

use hangar::base::process::{Output, Run};
use hangar::git::Repository;
use hangar::model::object_id::ObjectId;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A repository in a folder of its own, with a space in its name.
pub(crate) struct Sample {
    root: TempDir,
}

impl Sample {
    pub(crate) fn new() -> Self {
        Self::init(&[])
    }

    pub(crate) fn init(args: &[&str]) -> Self {
        let root = tempfile::Builder::new()
            .prefix("hangar it ")
            .tempdir()
            .unwrap();
        let sample = Self { root };
        fs::create_dir(sample.dir()).unwrap();
        let args = [&["init", "-q", "-b", "main"], args].concat();
        git(&sample.dir(), &args);
        sample
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn dir(&self) -> PathBuf {
        self.root.path().join("repo")
    }

    pub(crate) fn open(&self) -> Repository {
        Repository::discover(&self.dir()).unwrap()
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        git(&self.dir(), args)
    }

    pub(crate) fn put(&self, path: &str, content: impl AsRef<[u8]>) -> &Self {
        put(&self.dir(), path, content);
        self
    }

    /// Commits everything and returns the commit.
    pub(crate) fn commit(&self) -> ObjectId {
        self.git(&["add", "-A", "-f"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "a change"]);
        self.git(&["rev-parse", "HEAD"]).parse().unwrap()
    }

    pub(crate) fn tree(&self) -> ObjectId {
        self.git(&["rev-parse", "HEAD^{tree}"]).parse().unwrap()
    }

    /// An empty folder beside the repository.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        let dir = self.root().join(name);
        fs::create_dir(&dir).unwrap();
        dir
    }

    /// The tree that `git mktree` makes of these lines, with no check of ours or theirs.
    pub(crate) fn mktree(&self, lines: &str) -> ObjectId {
        let out = git_run(&self.dir(), &["mktree", "--missing"])
            .stdin(lines.as_bytes().to_vec())
            .output()
            .unwrap();
        text(out).parse().unwrap()
    }

    pub(crate) fn blob(&self, content: &str) -> ObjectId {
        self.open().write_blob(content.as_bytes()).unwrap()
    }
}

pub(crate) fn put(dir: &Path, path: &str, content: impl AsRef<[u8]>) {
    let path = dir.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _ = fs::remove_file(&path);
    hangar::base::files::write_atomic(&path, content.as_ref(), 0o644).unwrap();
}

pub(crate) fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

pub(crate) fn git_run(dir: &Path, args: &[&str]) -> Run {
    Run::new("git")
        .inherit(&["PATH"])
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "A")
        .env("GIT_AUTHOR_EMAIL", "a@example.org")
        .env("GIT_AUTHOR_DATE", "1700000000 +0000")
        .env("GIT_COMMITTER_NAME", "A")
        .env("GIT_COMMITTER_EMAIL", "a@example.org")
        .env("GIT_COMMITTER_DATE", "1700000000 +0000")
        .args(["-c", "protocol.file.allow=always"])
        .args(args)
        .dir(dir)
}

pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
    text(git_run(dir, args).output().unwrap())
}

fn text(out: Output) -> String {
    assert!(out.status.success(), "{}", out.stderr_text());
    String::from_utf8(out.stdout).unwrap().trim_end().to_owned()
}

/// `git fsck --strict` has nothing to say.
pub(crate) fn fsck(dir: &Path) {
    let out = git_run(dir, &["fsck", "--strict", "--no-dangling", "--no-progress"])
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", out.stderr_text());
    assert_eq!(out.stderr_text(), "");
}
