//! Syncing with a remote in a folder, at several numbers of live tasks of eight events each: where nothing
//! changed, where one task changed here or there, and the first time. Anchors: `git fetch` and `git push`
//! of the same refs.

#[path = "common/anchor.rs"]
mod anchor;
#[path = "common/git.rs"]
mod git;
#[path = "common/hub.rs"]
mod hub;
#[path = "../tests/it/common/policy.rs"]
mod policy;
#[path = "common/tasks.rs"]
mod tasks;

use criterion::{BatchSize, BenchmarkId, Criterion};
use hangar::git::Repository;
use hangar::model::ids::TaskId;
use std::cell::Cell;
use std::path::{Path, PathBuf};
use tasks::{EVENTS, Lying, Scene};

/// A repository, a hub that has the same, and which task changes next.
struct Shared {
    scene: Scene,
    hub: PathBuf,
    next: Cell<usize>,
}

impl Shared {
    fn new(count: usize, lying: Lying) -> Self {
        let scene = Scene::new(count, lying);
        let hub = hub::mirror(&scene);
        if lying == Lying::Packed {
            git::run(&scene.repo, &["pack-refs", "--all"]);
        }
        Self {
            scene,
            hub,
            next: Cell::new(0),
        }
    }

    /// One event more on a task; which one.
    fn change(&self) -> TaskId {
        let at = self.next.get();
        self.next.set(at + 1);
        let id = self.scene.tasks[at * 7 % self.scene.tasks.len()].clone();
        hub::remark(&self.scene, &id);
        id
    }
}

/// Where nothing changed.
fn idle(criterion: &mut Criterion, shared: &Shared, name: &str) {
    let mut group = criterion.benchmark_group("sync-idle");
    group.bench_function(BenchmarkId::new("hangar", name), |bencher| {
        bencher.iter(|| {
            let report = hub::run(&shared.scene.repo, &shared.hub);
            assert!(report.pushed.is_empty() && report.fetched.is_empty());
        });
    });
    group.bench_function(BenchmarkId::new("anchor-git-fetch", name), |bencher| {
        let hub = shared.hub.to_str().expect("a plain path");
        let args = [
            "fetch",
            "-q",
            "--no-tags",
            hub,
            "+refs/hangar/*:refs/anchor/*",
        ];
        git::run(&shared.scene.repo, &args);
        bencher.iter(|| git::run(&shared.scene.repo, &args));
        forget(&shared.scene.repo, "refs/anchor/");
    });
    group.finish();
}

/// Deletes the refs of an anchor, which would stand in the way of what is measured next.
fn forget(dir: &Path, prefix: &str) {
    let repo = Repository::discover(dir).expect("it is a repository");
    let refs = repo.list_refs(prefix).expect("refs are listed");
    let gone = refs.into_iter().map(|(name, id)| hangar::git::RefChange {
        name,
        expected: hangar::git::Expected::At(id),
        new: None,
    });
    let gone: Vec<_> = gone.collect();
    repo.change_refs(&gone, "").expect("they are deleted");
}

/// One task changed: here, which is pushed, and there, which is fetched.
fn one(criterion: &mut Criterion, shared: &Shared, name: &str) {
    let mut group = criterion.benchmark_group("sync-push-one");
    group.bench_function(BenchmarkId::new("hangar", name), |bencher| {
        let push = |_| {
            let report = hub::run(&shared.scene.repo, &shared.hub);
            assert_eq!(report.pushed.len(), 1);
        };
        bencher.iter_batched(|| shared.change(), push, BatchSize::PerIteration);
    });
    group.bench_function(BenchmarkId::new("anchor-git-push", name), |bencher| {
        let push = |id: TaskId| {
            let name = format!("refs/hangar/tasks/{id}");
            let hub = shared.hub.to_str().expect("a plain path");
            git::run(&shared.scene.repo, &["push", "-q", hub, &name]);
        };
        bencher.iter_batched(|| shared.change(), push, BatchSize::PerIteration);
    });
    group.finish();
}

/// A clone that has the policy takes everything: it is fetched, verified and written.
fn first(criterion: &mut Criterion, shared: &Shared, name: &str, count: usize) {
    let mut group = criterion.benchmark_group("sync-first");
    group.bench_function(BenchmarkId::new("hangar", name), |bencher| {
        let take = |dir: tempfile::TempDir| {
            let report = hub::run(dir.path(), &shared.hub);
            assert_eq!(report.fetched.len(), count);
            dir
        };
        bencher.iter_batched(|| hub::newcomer(&shared.hub), take, BatchSize::PerIteration);
    });
    group.bench_function(BenchmarkId::new("anchor-git-fetch", name), |bencher| {
        let take = |dir: tempfile::TempDir| {
            let hub = shared.hub.to_str().expect("a plain path");
            git::run(
                dir.path(),
                &["fetch", "-q", hub, "refs/hangar/*:refs/hangar/*"],
            );
            dir
        };
        bencher.iter_batched(|| hub::newcomer(&shared.hub), take, BatchSize::PerIteration);
    });
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().sample_size(10).configure_from_args();
    assert_eq!(EVENTS, 8);
    for (count, lying) in [
        (100, Lying::Packed),
        (1_000, Lying::Packed),
        (1_000, Lying::Loose),
        (10_000, Lying::Packed),
    ] {
        let shared = Shared::new(count, lying);
        let name = format!("{count}-{}", lying.name());
        if count < 10_000 {
            first(&mut criterion, &shared, &name, count);
        }
        idle(&mut criterion, &shared, &name);
        one(&mut criterion, &shared, &name);
    }
    criterion.final_summary();
}
