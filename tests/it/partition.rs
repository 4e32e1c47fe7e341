//! Several clones of one remote, cut off from each other and from it, stopped in the middle of a sync,
//! and doing whatever they like. Against a model that only knows which events were written: in the end
//! every clone holds all of them and shows the same.
//!
//! What is tried, where and when hangs on the seed alone. Ids and signatures are new each time, and so
//! is, in the heavy test, the moment at which a process is killed.

use super::common::founded::{clock, create};
use super::common::git::{git, git_run};
use super::flow::world::World;
use hangar::git::Repository;
use hangar::model::digest::Digest;
use hangar::model::event::Change;
use hangar::model::ids::TaskId;
use hangar::model::task::{Stage, State, Task};
use hangar::store::identity::Identity;
use hangar::store::sync::{Report, Wanted, sync, tracking};
use hangar::store::{Error, Store};
use hangar::trust::MachineKey;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Numbers that hang on a seed alone (SplitMix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let word = (word ^ (word >> 31)) >> 32;
        usize::try_from(word).unwrap() % end
    }
}

struct Cluster {
    world: World,
    hub: PathBuf,
    clones: Vec<PathBuf>,
    workers: [MachineKey; 2],
    dice: Dice,
    seed: u64,
    /// The model: every event that was written, by task.
    written: BTreeMap<TaskId, BTreeSet<Digest>>,
    /// Tasks in the order in which they were made.
    tasks: Vec<TaskId>,
    /// Tasks that some clone delivered.
    delivered: BTreeSet<TaskId>,
    joins: usize,
}

fn store(dir: &Path) -> Store {
    Store::open(Repository::discover(dir).unwrap(), clock()).unwrap()
}

impl Cluster {
    fn new(count: usize, seed: u64) -> Self {
        let world = World::new(&[("calc.sh", "echo 0\n"), ("hangar.toml", "format = 1\n")]);
        let root = world.dir.path().to_owned();
        git(&root, &["clone", "-q", "--mirror", "repo", "hub.git"]);
        let clones: Vec<_> = (0..count)
            .map(|number| {
                let name = format!("clone-{number}");
                git(&root, &["clone", "-q", "hub.git", &name]);
                let dir = root.join(&name);
                git(
                    &dir,
                    &["fetch", "-q", "origin", "refs/hangar/*:refs/hangar/*"],
                );
                dir
            })
            .collect();
        let worker = |host: hangar::flow::host::Host<'static>| host.worker;
        Self {
            workers: [worker(world.host()), worker(world.second_host())],
            hub: root.join("hub.git"),
            world,
            clones,
            dice: Dice(seed),
            seed,
            written: BTreeMap::new(),
            tasks: Vec::new(),
            delivered: BTreeSet::new(),
            joins: 0,
        }
    }

    fn wanted(&self, push: bool) -> Wanted<'_> {
        Wanted {
            remote: self.hub.to_str().unwrap(),
            timeout: Duration::from_secs(60),
            prefix: None,
            push,
        }
    }

    fn sync(&mut self, clone: usize, push: bool) -> Report {
        let (_, report) = sync(store(&self.clones[clone]), &self.wanted(push)).unwrap();
        self.joins += report.joined.len();
        report
    }

    /// A task that every clone has.
    fn shared(count: usize, seed: u64) -> Self {
        let mut clones = Self::new(count, seed);
        clones.create(0);
        (0..count).for_each(|clone| drop(clones.sync(clone, true)));
        clones
    }

    fn create(&mut self, clone: usize) {
        let store = store(&self.clones[clone]);
        let alice = Identity::of(&store.policy, self.world.person.signer()).unwrap();
        let key = format!("T-{}", self.tasks.len());
        let made = create(&store, &key, "A task", &["one", "two"]);
        let id = store.create_task(&alice, made).unwrap();
        let first = store.task(&id).unwrap().records[0].event.digest();
        self.written.entry(id.clone()).or_default().insert(first);
        self.tasks.push(id);
    }

    /// A task that this clone has.
    fn some_task(&mut self, clone: usize) -> TaskId {
        let store = store(&self.clones[clone]);
        let here = |id: &&TaskId| store.task(id).is_ok();
        let here: Vec<_> = self.tasks.iter().filter(here).collect();
        here[self.dice.below(here.len())].clone()
    }

    fn step(&mut self, number: u64) {
        // What one step does with its dice changes nothing of the next.
        self.dice = Dice(self.seed << 32 | number);
        let clone = self.dice.below(self.clones.len());
        match self.dice.below(12) {
            0..=7 => self.act(clone),
            8 | 9 => drop(self.sync(clone, true)),
            _ => self.half_a_sync(clone),
        }
    }

    /// What is left where a sync was stopped.
    fn half_a_sync(&mut self, clone: usize) {
        let dir = self.clones[clone].clone();
        let name = format!("tasks/{}", self.some_task(clone));
        match self.dice.below(3) {
            // After it had taken what the remote has.
            0 => drop(self.sync(clone, false)),
            // After one ref was fetched, before any moved.
            1 => {
                let place = tracking(self.hub.to_str().unwrap());
                let spec = format!("+refs/hangar/{name}:{place}{name}");
                let args = ["fetch", "-q", self.hub.to_str().unwrap(), &spec];
                git_run(&dir, &args).output().unwrap();
            }
            // After one ref was pushed, before that was noted.
            _ => {
                let spec = format!("refs/hangar/{name}:refs/hangar/{name}");
                let args = ["push", "-q", self.hub.to_str().unwrap(), &spec];
                git_run(&dir, &args).output().unwrap();
            }
        }
    }

    /// Somebody does something in a clone.
    fn act(&mut self, clone: usize) {
        let store = store(&self.clones[clone]);
        if self.tasks.len() < 3 && self.dice.below(10) == 0 {
            return self.create(clone);
        }
        let id = self.some_task(clone);
        let task = store.task(&id).unwrap().task;
        // What the task does not allow to whoever tries it is not written: then something else.
        for _ in 0..10 {
            let who = self.dice.below(3);
            let (change, signer) = match who {
                0 => (as_person(&mut self.dice, &task), self.world.person.signer()),
                who => (
                    as_worker(&mut self.dice, &task),
                    self.workers[who - 1].signer(),
                ),
            };
            let identity = Identity::of(&store.policy, signer).unwrap();
            match store.change_task(&id, &identity, |_| Ok(vec![change.clone()])) {
                Ok(written) => {
                    let digest = written.unwrap().digest;
                    assert!(self.written.entry(id.clone()).or_default().insert(digest));
                    if matches!(change, Change::Deliver { .. }) {
                        self.delivered.insert(id);
                    }
                    return;
                }
                Err(Error::Refused(_)) => {}
                Err(error) => panic!("{}: {error}", change.name()),
            }
        }
    }

    /// Everybody meets until nothing moves; then all hold the same, and everything.
    fn meet(mut self) -> Self {
        for round in 0.. {
            let moved = (0..self.clones.len()).filter(|clone| {
                let report = self.sync(*clone, true);
                !(report.fetched.is_empty() && report.joined.is_empty() && report.pushed.is_empty())
            });
            if moved.count() == 0 {
                break;
            }
            assert!(round < 5, "the clones do not come to rest");
        }
        let refs = |dir: &Path| git(dir, &["for-each-ref", "refs/hangar/"]);
        let all = refs(&self.hub);
        let stores: Vec<_> = self.clones.iter().map(|dir| store(dir)).collect();
        for (dir, store) in self.clones.iter().zip(&stores) {
            assert_eq!(refs(dir), all);
            for (id, written) in &self.written {
                let history = store.task(id).unwrap();
                let events = history.records.iter();
                let events: BTreeSet<_> = events.map(|record| record.event.digest()).collect();
                assert_eq!(events, *written, "events of {id}");
                assert!(history.pending.is_empty() && history.faults.is_empty());
                let first = stores[0].task(id).unwrap();
                assert_eq!(history.task, first.task);
                let outcome = |history: &hangar::store::tasks::TaskHistory| -> Vec<_> {
                    let records = history.records.iter();
                    records
                        .map(|one| (one.refused.clone(), one.beside.clone()))
                        .collect()
                };
                assert_eq!(outcome(&history), outcome(&first));
                if self.delivered.contains(id) {
                    assert_eq!(history.task.state, State::Done, "{id} was delivered");
                }
            }
            assert_eq!(store.task_refs().unwrap().len(), self.written.len());
        }
        git(&self.hub, &["fsck", "--strict", "--no-dangling"]);
        self
    }

    /// Starts the binary's own sync and kills it after a while.
    fn killed_sync(&mut self, clone: usize) {
        let home = self.world.dir.path().join("home");
        let mut child = Command::new(env!("CARGO_BIN_EXE_hangar"))
            .current_dir(&self.clones[clone])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", home)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            // The documents' own day: on a later one a sync archives what has ended.
            .env("HANGAR_NOW", clock().now().to_string())
            .args(["sync", self.hub.to_str().unwrap()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let millis = u64::try_from(self.dice.below(120)).unwrap();
        std::thread::sleep(Duration::from_millis(millis));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

fn as_person(dice: &mut Dice, task: &Task) -> Change {
    let number = dice.below(1000);
    let mut edit = Change::Edit {
        title: None,
        mandate: None,
        criteria: None,
        priority: None,
        tags: None,
        base: None,
    };
    if let Change::Edit {
        title,
        criteria,
        priority,
        tags,
        ..
    } = &mut edit
    {
        match number % 4 {
            0 => *title = Some(format!("Title {number}")),
            1 => *priority = u8::try_from(number % 9 + 1).ok(),
            2 => *tags = Some((0..number % 5).map(|tag| format!("t{tag}")).collect()),
            _ => *criteria = Some(task.criteria[..task.criteria.len().min(1)].to_vec()),
        }
    }
    match dice.below(12) {
        0..=3 => edit,
        4..=6 => Change::Enqueue,
        7 => Change::Cancel {
            reason: format!("reason {number}"),
        },
        8 | 9 => Change::Retry {
            from: Stage::Writing,
            set_aside: vec![Digest::of(&[u8::try_from(number % 7).unwrap()])],
        },
        10 if number.is_multiple_of(3) => Change::Delete,
        _ => Change::Comment {
            text: format!("remark {number}"),
        },
    }
}

fn as_worker(dice: &mut Dice, task: &Task) -> Change {
    let number = dice.below(1000);
    let document = |number: usize| Digest::of(&number.to_be_bytes());
    let lease = task.claim.as_ref().map(|claim| claim.lease.clone());
    match dice.below(10) {
        0..=3 => Change::Claim {
            lease: format!("{number:032x}"),
        },
        4 => Change::Renew {
            lease: lease.unwrap_or_default(),
        },
        5 => Change::Release {
            lease: lease.unwrap_or_default(),
        },
        6 => Change::Stage {
            stage: Stage::Implementing,
            documents: Vec::new(),
            note: String::new(),
        },
        7 => Change::Consume {
            manifest: document(number % 3),
            approvals: vec![document(9)],
        },
        8 => Change::Fail {
            summary: format!("failure {number}"),
        },
        _ => Change::Deliver {
            branch: "refs/heads/x".into(),
            commit: task.base,
            run: document(number),
            grade: Some(document(1)),
            manifest: Some(document(2)),
        },
    }
}

#[test]
fn clones_that_were_cut_off_hold_and_show_the_same_in_the_end() {
    let mut clones = Cluster::shared(3, 1);
    (0..40).for_each(|number| clones.step(number));
    let clones = clones.meet();
    let events: usize = clones.written.values().map(BTreeSet::len).sum();
    assert!(
        events > 15 && clones.joins > 0,
        "{events}, {}",
        clones.joins
    );
}

#[test]
#[ignore = "heavy: five longer histories of four clones, with killed processes"]
fn clones_whose_syncs_are_killed_hold_and_show_the_same_in_the_end() {
    let mut delivered = 0;
    for seed in 100..105 {
        let mut clones = Cluster::shared(4, seed);
        for step in 0..80 {
            clones.step(step);
            if step % 8 == 0 {
                let clone = clones.dice.below(4);
                clones.killed_sync(clone);
            }
        }
        delivered += clones.meet().delivered.len();
    }
    assert!(delivered > 0, "the histories hold deliveries: {delivered}");
}

#[test]
#[ignore = "heavy: twenty clones sync at one time"]
fn of_twenty_clones_that_sync_at_one_time_nothing_is_lost() {
    let mut clones = Cluster::shared(20, 7);
    let id = clones.tasks[0].clone();
    let written: Vec<Digest> = std::thread::scope(|scope| {
        let (clones, id) = (&clones, &id);
        let threads: Vec<_> = clones
            .clones
            .iter()
            .enumerate()
            .map(|(number, dir)| {
                scope.spawn(move || {
                    let signer = clones.world.person.signer();
                    let mut written = Vec::new();
                    for round in 0..2 {
                        let store = store(dir);
                        let alice = Identity::of(&store.policy, signer).unwrap();
                        let text = format!("remark {number} {round}");
                        let comment = Change::Comment { text };
                        let done = store.change_task(id, &alice, |_| Ok(vec![comment.clone()]));
                        written.push(done.unwrap().unwrap().digest);
                        sync(store, &clones.wanted(true)).unwrap();
                    }
                    written
                })
            })
            .collect();
        let threads = threads.into_iter();
        threads.flat_map(|thread| thread.join().unwrap()).collect()
    });
    clones.written.entry(id).or_default().extend(written);
    let clones = clones.meet();
    assert_eq!(clones.written.values().next().unwrap().len(), 41);
}
