//! What archived tasks cost everything else: a hundred live tasks of eight events each beside 100 to
//! 100,000 archived ones of two, in a repository and on a remote in a folder. Only what names an
//! archived task, or adds one, has to do with them at all.

#[path = "common/anchor.rs"]
mod anchor;
#[path = "common/archived.rs"]
mod archived;
#[path = "common/git.rs"]
mod git;
#[path = "common/hub.rs"]
mod hub;
#[path = "../tests/it/common/policy.rs"]
mod policy;
#[expect(
    dead_code,
    reason = "objects in files of their own are not measured here"
)]
#[path = "common/tasks.rs"]
mod tasks;

use criterion::{BatchSize, BenchmarkId, Criterion};
use hangar::app::tasks::{list, show};
use hangar::app::{Here, Notices};
use hangar::config::paths::Env;
use hangar::model::event::Change;
use hangar::model::ids::TaskId;
use hangar::store::identity::Identity;
use std::cell::Cell;
use std::fs;
use std::path::PathBuf;
use tasks::{Lying, Scene};

/// Live tasks.
const LIVE: usize = 100;

struct Shared {
    scene: Scene,
    hub: PathBuf,
    archived: Vec<TaskId>,
    next: Cell<usize>,
}

impl Shared {
    fn new(count: usize) -> Self {
        let scene = Scene::new(LIVE, Lying::Packed);
        let archived = archived::fill(&scene, count);
        let hub = hub::mirror(&scene);
        let shared = Self {
            scene,
            hub,
            archived,
            next: Cell::new(0),
        };
        shared.check();
        shared
    }

    /// A figure over something that is no archive would mean nothing.
    fn check(&self) {
        let store = self.scene.store();
        for id in self
            .archived
            .iter()
            .step_by(self.archived.len().div_ceil(20))
        {
            let history = store.task(id).expect("it is read");
            assert!(history.faults.is_empty(), "{:?}", history.faults);
            assert!(history.task.state.is_terminal());
        }
        let all = store.archived_tasks("").expect("they are listed");
        assert_eq!(all.len(), self.archived.len());
    }

    fn here(&self) -> Here {
        Here {
            dir: self.scene.repo.clone(),
            env: Env::new(),
            clock: tasks::clock(),
            offline: true,
            notices: Notices::default(),
        }
    }

    fn some<'a>(&self, of: &'a [TaskId]) -> &'a TaskId {
        let at = self.next.get();
        self.next.set(at + 1);
        &of[at * 7 % of.len()]
    }

    /// A task that has just ended.
    fn ended(&self) -> TaskId {
        let store = self.scene.store();
        let alice = Identity::of(&store.policy, self.scene.person.signer()).expect("she is known");
        let create = tasks::create("One more", store.repo.head());
        let id = store.create_task(&alice, create).expect("it is made");
        let reason = || "done".to_owned();
        let cancel = |_: &_| Ok(vec![Change::Cancel { reason: reason() }]);
        store.change_task(&id, &alice, cancel).expect("it is ended");
        id
    }

    fn archive(&self, id: TaskId) {
        self.scene.store().archive(&[id]).expect("it is archived");
    }
}

/// What has nothing to do with the archive.
fn beside(criterion: &mut Criterion, shared: &Shared, name: &str) {
    let repo = &shared.scene.repo;
    let mut group = criterion.benchmark_group("archive");
    group.bench_function(BenchmarkId::new("list-live", name), |bencher| {
        let here = shared.here();
        bencher.iter(|| {
            let listed = list::list(&here, &list::Filter::default(), &mut |_, _| {});
            assert_eq!(listed.expect("they are listed").tasks.len(), LIVE);
        });
    });
    group.bench_function(BenchmarkId::new("sync-idle", name), |bencher| {
        bencher.iter(|| {
            let report = hub::run(repo, &shared.hub);
            assert!(report.pushed.is_empty() && report.fetched.is_empty());
        });
    });
    group.bench_function(BenchmarkId::new("sync-push-one", name), |bencher| {
        let change = || hub::remark(&shared.scene, shared.some(&shared.scene.tasks));
        let push = |()| assert_eq!(hub::run(repo, &shared.hub).pushed.len(), 1);
        bencher.iter_batched(change, push, BatchSize::PerIteration);
    });
    group.finish();
}

/// What is about one archived task.
fn within(criterion: &mut Criterion, shared: &Shared, name: &str) {
    let repo = &shared.scene.repo;
    let here = shared.here();
    let mut group = criterion.benchmark_group("archive");
    group.bench_function(BenchmarkId::new("show-by-id", name), |bencher| {
        bencher.iter(|| {
            let id = shared.some(&shared.archived);
            show::show(&here, id.as_str()).expect("it is shown")
        });
    });
    let by_key = |()| {
        let key = format!("OLD-{}", shared.archived.len() / 2);
        show::show(&here, &key).expect("it is shown")
    };
    group.bench_function(BenchmarkId::new("show-by-key", name), |bencher| {
        by_key(());
        bencher.iter(|| by_key(()));
    });
    group.bench_function(BenchmarkId::new("show-by-key-first", name), |bencher| {
        let index = repo.join(".git/hangar/index.db");
        let forget = || fs::remove_file(&index).expect("it is there");
        bencher.iter_batched(forget, by_key, BatchSize::PerIteration);
    });
    group.bench_function(BenchmarkId::new("add-one", name), |bencher| {
        let add = |id| shared.archive(id);
        bencher.iter_batched(|| shared.ended(), add, BatchSize::PerIteration);
    });
    hub::run(repo, &shared.hub);
    group.bench_function(BenchmarkId::new("sync-added-one", name), |bencher| {
        let add = || shared.archive(shared.ended());
        let push = |()| assert_eq!(hub::run(repo, &shared.hub).pushed.len(), 1);
        bencher.iter_batched(add, push, BatchSize::PerIteration);
    });
    group.bench_function(BenchmarkId::new("sync-first", name), |bencher| {
        let take = |dir: tempfile::TempDir| {
            hub::run(dir.path(), &shared.hub);
            dir
        };
        let new = || hub::newcomer(&shared.hub);
        bencher.iter_batched(new, take, BatchSize::PerIteration);
    });
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().sample_size(10).configure_from_args();
    let sizes = std::env::var("HANGAR_BENCH_SIZES").unwrap_or_default();
    let sizes: Vec<usize> = sizes
        .split_whitespace()
        .map(|size| size.parse().expect("HANGAR_BENCH_SIZES are numbers"))
        .collect();
    let all = [100, 1_000, 10_000, 100_000];
    for count in if sizes.is_empty() { &all[..] } else { &sizes } {
        let shared = Shared::new(*count);
        let name = count.to_string();
        beside(&mut criterion, &shared, &name);
        within(&mut criterion, &shared, &name);
    }
    criterion.final_summary();
}
