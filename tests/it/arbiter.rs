//! Claims of several clones: the arbiter's ref decides.

use super::common::founded::clock;
use super::common::git::{git, git_input};
use super::flow::world::World;
use hangar::flow::host::Host;
use hangar::flow::{Error, claim};
use hangar::git::Repository;
use hangar::model::ids::TaskId;
use hangar::model::policy::{Machine, MachineRole};
use hangar::model::reduction::Why;
use hangar::store::Store;
use hangar::store::proposal;
use hangar::trust::{self, MachineKey};
use std::path::{Path, PathBuf};

/// A repository, the hub that its policy names, and another clone.
struct Arbitrated {
    world: World,
    second: PathBuf,
    tasks: Vec<TaskId>,
}

impl Arbitrated {
    fn new(arbiter: bool) -> Self {
        Self::with_workers(arbiter, &[])
    }

    /// With more machines of alice in the policy.
    fn with_workers(arbiter: bool, workers: &[MachineKey]) -> Self {
        let world = World::new(&[("calc.sh", "echo 0\n"), ("hangar.toml", "format = 1\n")]);
        let store = world.store();
        let root = world.dir.path();
        let hub = root.join("hub.git").display().to_string();
        if arbiter {
            let named = |_: &mut _, members: &mut hangar::model::policy::Members| {
                members.arbiter.clone_from(&hub);
                members
                    .machine
                    .extend(workers.iter().enumerate().map(machine));
                Ok::<(), hangar::store::Error>(())
            };
            let draft = proposal::next_version(&store, Why::Retired, named).unwrap();
            proposal::sign(&store, draft.unwrap().draft, world.person.signer()).unwrap();
        }
        let store = world.store();
        let task = |at: usize| world.task_called(&store, &format!("T-{at}"), "Race", &["x"]);
        let tasks = (0..4).map(task).collect();
        git(root, &["clone", "-q", "--mirror", "repo", "hub.git"]);
        git(root, &["clone", "-q", "hub.git", "second"]);
        let second = root.join("second");
        git(
            &second,
            &["fetch", "-q", "origin", "refs/hangar/*:refs/hangar/*"],
        );
        Self {
            world,
            second,
            tasks,
        }
    }

    /// One more clone of the hub.
    fn another(&self, name: &str) -> PathBuf {
        let root = self.world.dir.path();
        git(root, &["clone", "-q", "hub.git", name]);
        let dir = root.join(name);
        git(
            &dir,
            &["fetch", "-q", "origin", "refs/hangar/*:refs/hangar/*"],
        );
        dir
    }

    fn store(dir: &Path) -> Store {
        Store::open(Repository::discover(dir).unwrap(), clock()).unwrap()
    }

    /// Two machines in two clones claim every task; gives how many claims of each succeeded.
    fn race(&self) -> Vec<usize> {
        let first = self.world.repo_dir();
        let claim = |dir: &Path, second: bool| -> Vec<bool> {
            let store = Self::store(dir);
            let host = if second {
                self.world.second_host()
            } else {
                self.world.host()
            };
            let take = |id: &TaskId| match claim::take(&host, &store, id) {
                Ok(_) => true,
                Err(Error::Held { .. }) => false,
                Err(error) => panic!("{error}"),
            };
            self.tasks.iter().map(take).collect()
        };
        let (one, two) = std::thread::scope(|scope| {
            let one = scope.spawn(|| claim(&first, false));
            let two = scope.spawn(|| claim(&self.second, true));
            (one.join().unwrap(), two.join().unwrap())
        });
        let both = one.into_iter().zip(two);
        both.map(|(one, two)| usize::from(one) + usize::from(two))
            .collect()
    }
}

fn machine((number, key): (usize, &MachineKey)) -> Machine {
    Machine {
        name: format!("worker-{}", number + 3).parse().unwrap(),
        role: MachineRole::Worker,
        owner: "alice".parse().unwrap(),
        public: key.public().as_str().into(),
    }
}

#[test]
#[ignore = "heavy: twenty clones claim at one time"]
fn of_twenty_clones_that_claim_a_task_exactly_one_gets_it() {
    let keys = tempfile::tempdir().unwrap();
    let key = |number: usize| {
        let dir = keys.path().join(number.to_string());
        MachineKey::load_or_create(&dir, trust::MachineRole::Worker).unwrap()
    };
    let workers: Vec<_> = (0..20).map(key).collect();
    let arbitrated = Arbitrated::with_workers(true, &workers);
    let name = |number: usize| format!("clone-{number}");
    let clones: Vec<_> = (0..20).map(|at| arbitrated.another(&name(at))).collect();
    let won: Vec<Vec<TaskId>> = std::thread::scope(|scope| {
        let arbitrated = &arbitrated;
        let race = |(dir, worker): (PathBuf, MachineKey)| {
            scope.spawn(move || {
                let store = Arbitrated::store(&dir);
                let host = Host {
                    worker,
                    // Twenty machines: each has its own.
                    data: dir.join(".git"),
                    ..arbitrated.world.host()
                };
                let mut won = Vec::new();
                for id in &arbitrated.tasks {
                    match claim::take(&host, &store, id) {
                        Ok(_) => won.push(id.clone()),
                        Err(Error::Held { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
                won
            })
        };
        let threads: Vec<_> = clones.into_iter().zip(workers).map(race).collect();
        let threads = threads.into_iter();
        threads.map(|thread| thread.join().unwrap()).collect()
    });
    let mut won: Vec<_> = won.into_iter().flatten().collect();
    won.sort();
    let mut tasks = arbitrated.tasks.clone();
    tasks.sort();
    assert_eq!(won, tasks, "one winner for each task");
}

#[test]
fn of_two_clones_that_claim_one_task_exactly_one_gets_it() {
    let arbitrated = Arbitrated::new(true);
    assert_eq!(arbitrated.race(), [1; 4]);
    // Both clones name the same holder, and so does the hub.
    let second = Arbitrated::store(&arbitrated.second);
    let first = arbitrated.world.store();
    for id in &arbitrated.tasks {
        let claims = [&first, &second].map(|store| store.task(id).unwrap().task.claim);
        let held: Vec<_> = claims.iter().flatten().map(|claim| &claim.lease).collect();
        assert!(!held.is_empty());
        assert!(held.windows(2).all(|pair| pair[0] == pair[1]), "{claims:?}");
    }
}

#[test]
fn a_claim_that_has_ended_at_the_arbiter_keeps_nobody_off() {
    let arbitrated = Arbitrated::new(true);
    let (id, first) = (&arbitrated.tasks[0], arbitrated.world.store());
    let (host, other) = (arbitrated.world.host(), arbitrated.world.second_host());
    let hold = claim::take(&host, &first, id).unwrap();
    let name = format!("refs/hangar/tasks/{id}");
    let both = format!("{name}:{name}");
    git(&arbitrated.second, &["fetch", "-q", "origin", &both]);
    let second = Arbitrated::store(&arbitrated.second);
    let held = || claim::take(&other, &second, id);
    assert!(matches!(held(), Err(Error::Held { .. })));
    claim::release(&host, &first, id, &hold).unwrap();
    let hub = arbitrated.world.dir.path().join("hub.git");
    let push = ["push", "-q", hub.to_str().unwrap(), &both];
    git(&arbitrated.world.repo_dir(), &push);
    assert!(second.task(id).unwrap().task.claim.is_some(), "it is old");
    held().unwrap();
}

#[test]
fn offline_the_arbiter_is_not_asked_and_nothing_is_claimed() {
    let arbitrated = Arbitrated::new(true);
    let refs = || {
        git(
            &arbitrated.world.dir.path().join("hub.git"),
            &["for-each-ref"],
        )
    };
    let (before, id) = (refs(), &arbitrated.tasks[0]);
    let mut store = arbitrated.world.store();
    store.offline = true;
    let error = claim::take(&arbitrated.world.host(), &store, id).unwrap_err();
    assert!(error.to_string().contains("--offline was given"), "{error}");
    assert!(store.task(id).unwrap().task.claim.is_none());
    assert_eq!(refs(), before);
    store.offline = false;
    claim::take(&arbitrated.world.host(), &store, id).unwrap();
    assert_ne!(refs(), before);
}

/// A hub may keep its refs below the other prefix: claims are pushed there.
#[test]
fn an_arbiter_that_takes_branches_only_decides_as_well() {
    let arbitrated = Arbitrated::new(true);
    let hub = arbitrated.world.dir.path().join("hub.git");
    let format = "--format=%(refname)";
    let names = git(&hub, &["for-each-ref", format, "refs/hangar/"]);
    for name in names.lines() {
        let moved = name.replace("refs/hangar/", "refs/heads/hangar-state/");
        git(&hub, &["update-ref", &moved, name]);
        git(&hub, &["update-ref", "-d", name]);
    }
    assert_eq!(arbitrated.race(), [1; 4]);
    assert_eq!(git(&hub, &["for-each-ref", format, "refs/hangar/"]), "");
}

#[test]
fn without_an_arbiter_each_clone_has_its_own_say() {
    assert_eq!(Arbitrated::new(false).race(), [2; 4]);
}

#[test]
fn an_arbiter_that_is_away_gives_no_claim() {
    let arbitrated = Arbitrated::new(true);
    let hub = arbitrated.world.dir.path().join("hub.git");
    std::fs::rename(&hub, hub.with_extension("away")).unwrap();
    let store = arbitrated.world.store();
    let host = arbitrated.world.host();
    let id = &arbitrated.tasks[0];
    assert!(claim::take(&host, &store, id).is_err());
    assert!(store.task(id).unwrap().task.claim.is_none());
    std::fs::rename(hub.with_extension("away"), &hub).unwrap();
    claim::take(&host, &store, id).unwrap();
    assert!(store.task(id).unwrap().task.claim.is_some());
}

/// What somebody put in place of the task's ref there gives way to a claim, if nothing is lost with it.
#[test]
fn an_arbiter_with_something_else_in_place_of_a_task_still_decides() {
    let arbitrated = Arbitrated::new(true);
    let hub = arbitrated.world.dir.path().join("hub.git");
    let names: Vec<_> = arbitrated
        .tasks
        .iter()
        .map(|id| format!("refs/hangar/tasks/{id}"))
        .collect();
    let blob = git_input(&hub, &["hash-object", "-w", "--stdin"], b"x");
    let tree = git(&hub, &["rev-parse", "main^{tree}"]);
    let branch = git(&hub, &["commit-tree", &tree, "-m", "x"]);
    let top = git(&hub, &["commit-tree", &tree, "-p", &names[2], "-m", "x"]);
    for (name, junk) in names.iter().zip([&blob, &branch, &top]) {
        git(&hub, &["update-ref", name, junk]);
    }
    assert_eq!(arbitrated.race(), [1; 4]);
    let first = arbitrated.world.store();
    for (id, name) in arbitrated.tasks.iter().zip(&names) {
        let there = git(&hub, &["rev-parse", name]).parse().unwrap();
        // The winner's clone is the hub's newest word; the other one follows.
        let known = first.task(id).unwrap().tip == there;
        let second = Arbitrated::store(&arbitrated.second);
        assert!(known || second.task(id).unwrap().tip == there);
    }
}
