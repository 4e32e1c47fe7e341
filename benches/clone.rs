//! An agent's own clone of a repository with 10,000 commits: the first, which makes the pack, and
//! the next ones, which copy it. Anchors: `git clone --single-branch`, once through the transport
//! (which packs anew) and once by copying the object files; both check out, as a pinned clone does.

#[path = "common/anchor.rs"]
mod anchor;
#[path = "common/git.rs"]
mod git;

use criterion::{BatchSize, Criterion};
use hangar::git::Repository;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const COMMITS: usize = 10_000;
/// Files of the tree; each commit changes one.
const FILES: usize = 200;

/// The history as `git fast-import` takes it.
fn history() -> String {
    let mut out = String::new();
    for commit in 0..COMMITS {
        let seconds = 1_700_000_000 + commit;
        let (file, text) = (commit % FILES, format!("line {commit}\n").repeat(40));
        // Writing to a String cannot fail.
        let _ = write!(
            out,
            "commit refs/heads/main\ncommitter t <t@example.com> {seconds} +0000\ndata 2\nc\n\
             M 100644 inline src/{}/file{file}.txt\ndata {}\n{text}\n",
            file % 20,
            text.len()
        );
    }
    out
}

struct Scene {
    dir: TempDir,
    repo: Repository,
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let source = dir.path().join("source");
        fs::create_dir(&source).expect("a folder");
        git::import(&source, history().as_bytes());
        git::run(&source, &["repack", "-a", "-d", "-q"]);
        git::run(&source, &["reset", "-q", "--hard"]);
        let repo = Repository::discover(&source).expect("it is a repository");
        Self { dir, repo }
    }

    /// A path that does not exist yet, in a folder that goes when it is dropped.
    fn target(&self) -> (TempDir, PathBuf) {
        let dir = tempfile::tempdir_in(self.dir.path()).expect("a temporary folder");
        let path = dir.path().join("clone");
        (dir, path)
    }

    fn forget_packs(&self) {
        let _ = fs::remove_dir_all(self.repo.hangar_dir().join("pins"));
    }

    fn pinned(&self, dest: &Path) {
        let base = self.repo.head().expect("it is read").expect("it is there");
        let made = self.repo.make_pinned(base, dest, None, None);
        made.expect("it is cloned");
    }

    fn anchor(&self, how: &str, dest: &Path) {
        let dest = dest.to_str().expect("a plain path");
        git::run(
            self.dir.path(),
            &["clone", "-q", how, "--single-branch", "source", dest],
        );
    }
}

fn main() {
    let mut criterion = Criterion::default().sample_size(20).configure_from_args();
    let scene = Scene::new();
    let mut group = criterion.benchmark_group("clone-10000-commits");
    // The folder is handed back, so that removing it is not measured.
    group.bench_function("hangar-first", |bencher| {
        let prepare = || {
            scene.forget_packs();
            scene.target()
        };
        let clone = |(dir, path): (TempDir, PathBuf)| {
            scene.pinned(&path);
            dir
        };
        bencher.iter_batched(prepare, clone, BatchSize::PerIteration);
    });
    group.bench_function("hangar-next", |bencher| {
        scene.pinned(&scene.target().1);
        let clone = |(dir, path): (TempDir, PathBuf)| {
            scene.pinned(&path);
            dir
        };
        bencher.iter_batched(|| scene.target(), clone, BatchSize::PerIteration);
    });
    for (name, how) in [
        ("anchor-git-no-local", "--no-local"),
        ("anchor-git-no-hardlinks", "--no-hardlinks"),
    ] {
        group.bench_function(name, |bencher| {
            let clone = |(dir, path): (TempDir, PathBuf)| {
                scene.anchor(how, &path);
                dir
            };
            bencher.iter_batched(|| scene.target(), clone, BatchSize::PerIteration);
        });
    }
    group.finish();
    criterion.final_summary();
}
