//! Claims of several clones: the arbiter's ref decides.

use super::common::founded::clock;
use super::common::git::git;
use super::flow::world::World;
use hangar::flow::{Error, claim};
use hangar::git::Repository;
use hangar::model::ids::TaskId;
use hangar::model::reduction::Why;
use hangar::store::Store;
use hangar::store::proposal;
use std::path::{Path, PathBuf};

/// A repository, the hub that its policy names, and another clone.
struct Arbitrated {
    world: World,
    second: PathBuf,
    tasks: Vec<TaskId>,
}

impl Arbitrated {
    fn new(arbiter: bool) -> Self {
        let world = World::new(&[("calc.sh", "echo 0\n"), ("hangar.toml", "format = 1\n")]);
        let store = world.store();
        let root = world.dir.path();
        let hub = root.join("hub.git").display().to_string();
        if arbiter {
            let named = |_: &mut _, members: &mut hangar::model::policy::Members| {
                members.arbiter.clone_from(&hub);
                Ok::<(), hangar::store::Error>(())
            };
            let draft = proposal::next_version(&store, Why::Retired, named).unwrap();
            proposal::sign(&store, draft.unwrap(), world.person.signer()).unwrap();
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
