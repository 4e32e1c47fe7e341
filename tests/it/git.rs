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

use crate::common::git::{git, git_input, git_run};
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
        let args = ["mktree", "--missing"];
        let id = git_input(&self.dir(), &args, lines.as_bytes());
        id.parse().unwrap()
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

/// `git fsck --strict` has nothing to say.
pub(crate) fn fsck(dir: &Path) {
    let out = git_run(dir, &["fsck", "--strict", "--no-dangling", "--no-progress"])
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", out.stderr_text());
    assert_eq!(out.stderr_text(), "");
}
