//! Reading state from refs: list, check and fold at several sizes, with and without the index, one
//! task, one document; and what appending one event costs. Anchors: `git for-each-ref` over the same
//! refs, `git log` over the same commits, `ssh-keygen -Y verify` and `git verify-commit` on one
//! document.

#[path = "common/anchor.rs"]
mod anchor;
#[path = "common/git.rs"]
mod git;
#[path = "../tests/it/common/policy.rs"]
mod policy;
#[path = "common/tasks.rs"]
mod tasks;

use criterion::{BenchmarkId, Criterion, Throughput};
use hangar::app::tasks::list;
use hangar::app::{Here, Notices};
use hangar::base::files;
use hangar::config::paths::Env;
use hangar::model::event::{Change, Event};
use hangar::model::ids::TaskId;
use hangar::model::object_id::ObjectId;
use hangar::store::check::check;
use hangar::store::identity::Identity;
use hangar::store::{self, Store};
use hangar::trust::Namespace;
use std::cell::OnceCell;
use std::fs::{self, File};
use std::hint::black_box;
use std::path::Path;
use std::process::Stdio;
use tasks::{EVENTS, Lying, Scene};

/// A scene that is made when the first figure needs it, so that a filter on names is quick.
struct Lazy {
    count: usize,
    lying: Lying,
    scene: OnceCell<Scene>,
}

impl Lazy {
    const fn new(count: usize, lying: Lying) -> Self {
        Self {
            count,
            lying,
            scene: OnceCell::new(),
        }
    }

    fn get(&self) -> &Scene {
        self.scene
            .get_or_init(|| Scene::new(self.count, self.lying))
    }

    fn name(&self) -> String {
        format!("{}-{}", self.count, self.lying.name())
    }
}

/// Reads every task with a store that was opened anew, on all processors: nothing is remembered from
/// before.
fn fold_all(scene: &Scene) -> usize {
    let store = scene.store();
    let refs = store.task_refs().expect("refs are listed");
    let events = |store: &Store, (id, tip): &(TaskId, ObjectId)| {
        let history = store.task_at(id, *tip)?;
        Ok::<_, store::Error>(history.records.len())
    };
    let all = store.map_all(&refs, events, &mut |_| {});
    all.expect("all are read").into_iter().sum()
}

/// The same on one.
fn fold_all_alone(scene: &Scene) -> usize {
    let store = scene.store();
    let refs = store.task_refs().expect("refs are listed");
    let events = refs.iter().map(|(id, tip)| {
        let history = store.task_at(id, *tip).expect("it is read");
        history.records.len()
    });
    events.sum()
}

/// What `hangar task list` does before it prints.
fn task_list(scene: &Scene) -> usize {
    let here = Here {
        dir: scene.repo.clone(),
        env: Env::new(),
        clock: tasks::clock(),
        offline: true,
        notices: Notices::default(),
    };
    let list = list::list(&here, &list::Filter::default(), &mut |_, _| {});
    list.expect("they are listed").tasks.len()
}

fn reading(criterion: &mut Criterion, lazy: &Lazy) {
    let name = lazy.name();
    let mut group = criterion.benchmark_group("store-open");
    group.bench_function(BenchmarkId::new("hangar", &name), |bencher| {
        let scene = lazy.get();
        bencher.iter(|| black_box(scene.store()));
    });
    group.finish();

    let mut group = criterion.benchmark_group("store-list");
    group.bench_function(BenchmarkId::new("hangar", &name), |bencher| {
        let scene = lazy.get();
        bencher.iter(|| black_box(scene.store().task_refs().expect("refs are listed")));
    });
    group.bench_function(BenchmarkId::new("anchor-for-each-ref", &name), |bencher| {
        let dir = &lazy.get().repo;
        bencher.iter(|| git::run(dir, &["for-each-ref", "refs/hangar/"]));
    });
    group.finish();

    let mut group = criterion.benchmark_group("store-fold-all");
    group.throughput(Throughput::Elements((lazy.count * EVENTS) as u64));
    group.bench_function(BenchmarkId::new("hangar", &name), |bencher| {
        let scene = lazy.get();
        bencher.iter(|| assert_eq!(fold_all(scene), lazy.count * EVENTS));
    });
    group.bench_function(BenchmarkId::new("hangar-one-thread", &name), |bencher| {
        let scene = lazy.get();
        bencher.iter(|| assert_eq!(fold_all_alone(scene), lazy.count * EVENTS));
    });
    // Reads the same commits and trees, and checks no signature.
    group.bench_function(BenchmarkId::new("anchor-git-log", &name), |bencher| {
        let dir = &lazy.get().repo;
        let args = ["log", "--glob=refs/hangar/tasks", "--name-only"];
        bencher.iter(|| git::run(dir, &args));
    });
    group.finish();

    let mut group = criterion.benchmark_group("task-list");
    group.bench_function(BenchmarkId::new("hangar-with-index", &name), |bencher| {
        let scene = lazy.get();
        bencher.iter(|| assert_eq!(task_list(scene), lazy.count));
    });
    group.bench_function(BenchmarkId::new("hangar-without-index", &name), |bencher| {
        let scene = lazy.get();
        let remove = || {
            // Not there the first time.
            let _ = fs::remove_file(scene.repo.join(".git/hangar/index.db"));
        };
        let size = criterion::BatchSize::PerIteration;
        bencher.iter_batched(remove, |()| assert_eq!(task_list(scene), lazy.count), size);
    });
    group.finish();

    let mut group = criterion.benchmark_group("store-fold-one");
    group.bench_function(BenchmarkId::new("hangar", &name), |bencher| {
        let scene = lazy.get();
        let id = &scene.tasks[scene.tasks.len() / 2];
        bencher.iter(|| black_box(scene.store().task(id).expect("it is read")));
    });
    group.finish();
}

fn document(criterion: &mut Criterion, lazy: &Lazy) {
    let mut group = criterion.benchmark_group("store-check-document");
    group.bench_function("hangar", |bencher| {
        let scene = lazy.get();
        let policy = scene.store().policy;
        let (bytes, signature) = &scene.sample;
        bencher.iter(|| {
            check::<Event>(&policy, bytes.clone(), signature.clone(), None).expect("it is good")
        });
    });
    group.bench_function("anchor-ssh-keygen", |bencher| {
        let scene = lazy.get();
        let at = |name: &str| scene.path(name);
        let key = scene.person.public().as_str();
        let allowed = format!("alice {key}\n");
        for (name, bytes) in [
            ("event.toml", scene.sample.0.as_slice()),
            ("event.sig", scene.sample.1.as_slice()),
            ("allowed", allowed.as_bytes()),
        ] {
            files::write_atomic(&at(name), bytes, 0o600).expect("a file");
        }
        let (signature, allowed) = (at("event.sig"), at("allowed"));
        bencher.iter(|| {
            let document = File::open(at("event.toml")).expect("it was written");
            let mut command = anchor::command("ssh-keygen", &["-Y", "verify", "-I", "alice"]);
            command.args(["-n", Namespace::Event.as_str(), "-s"]);
            command.arg(&signature).arg("-f").arg(&allowed);
            anchor::run(command.stdin(Stdio::from(document)));
        });
    });
    group.bench_function("anchor-git-verify-commit", |bencher| {
        let scene = lazy.get();
        let at = |name: &str| scene.path(name).display().to_string();
        let allowed = format!("alice {}\n", scene.person.public().as_str());
        files::write_atomic(&scene.path("allowed"), allowed.as_bytes(), 0o600).expect("a file");
        let key = format!("user.signingKey={}", at("alice/worker"));
        let allowed = format!("gpg.ssh.allowedSignersFile={}", at("allowed"));
        let sign = ["-c", "gpg.format=ssh", "-c", &key, "-c", "user.name=alice"];
        let commit = ["commit", "-q", "-S", "--allow-empty", "-m", "signed"];
        let email = ["-c", "user.email=alice@example.com"];
        git::run(&scene.repo, &[&sign[..], &email, &commit].concat());
        let verify = ["-c", &allowed, "verify-commit", "HEAD"];
        bencher.iter(|| git::run(&scene.repo, &verify));
    });
    group.finish();
}

/// One event more: read the task, sign, write, sync to disk, move the ref. The task is made anew
/// for every sample, so that it stays short.
fn appending(criterion: &mut Criterion, lazy: &Lazy) {
    let mut group = criterion.benchmark_group("store-append");
    group.bench_function("hangar", |bencher| {
        let store = lazy.get().store();
        let alice = Identity::of(&store.policy, lazy.get().person.signer()).expect("she is known");
        let create = || {
            let change = tasks::create("Append", store.repo.head());
            store.create_task(&alice, change).expect("it is made")
        };
        let comment = |id| {
            let text = "a remark".to_owned();
            store.change_task(&id, &alice, |_| {
                Ok(vec![Change::Comment { text: text.clone() }])
            })
        };
        bencher.iter_batched(create, comment, criterion::BatchSize::PerIteration);
    });
    group.finish();
}

/// Makes the repository of a figure of whole commands, for `benches/listing`, and nothing else.
fn lay(dir: &Path, count: usize) {
    let scene = Scene::new(count, Lying::Packed);
    fs::rename(&scene.repo, dir).expect("it is moved: take a folder on the same file system");
}

fn main() {
    if let Some(dir) = std::env::var_os("HANGAR_BENCH_LAY") {
        let count = std::env::var("HANGAR_BENCH_TASKS").ok();
        let count = count.and_then(|count| count.parse().ok());
        return lay(
            Path::new(&dir),
            count.expect("HANGAR_BENCH_TASKS is a number"),
        );
    }
    let mut criterion = Criterion::default().sample_size(10).configure_from_args();
    let scenes = [
        Lazy::new(100, Lying::Packed),
        Lazy::new(1_000, Lying::Packed),
        Lazy::new(1_000, Lying::Loose),
        Lazy::new(10_000, Lying::Packed),
    ];
    for lazy in &scenes {
        reading(&mut criterion, lazy);
    }
    document(&mut criterion, &scenes[0]);
    // Last: it adds tasks to its scene.
    appending(&mut criterion, &scenes[0]);
    criterion.final_summary();
}
