//! One worker at a time: claims, leases, and many processes at once.

use super::flow::world::{World, clock_at};
use super::kill_scene::{HIDDEN_ID, NEEDLE, Scene, contains};
use hangar::flow::claim::{self, LEASE};
use hangar::flow::{Error, host::Host};
use hangar::git::Repository;
use hangar::model::event::Change;
use hangar::model::ids::TaskId;
use hangar::model::run::RunRole;
use hangar::model::task::State;
use hangar::store::Store;
use hangar::store::identity::Identity;
use std::fs;
use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

fn world() -> (World, TaskId) {
    let world = World::new(&[("calc.sh", "echo 0\n"), ("hangar.toml", "format = 1\n")]);
    let store = world.store();
    let id = world.task(&store, "Subtract", &["5 3 gives 2"]);
    (world, id)
}

/// The state, at so many seconds after the first moment.
fn store_at(world: &World, seconds: i64) -> Store {
    let repo = Repository::discover(&world.repo_dir()).unwrap();
    Store::open(repo, clock_at(seconds)).unwrap()
}

/// Takes the task as a process that dies without giving it back.
fn take_and_die(host: &Host<'_>, store: &Store, id: &TaskId) -> String {
    let hold = claim::take(host, store, id).unwrap();
    let lease = hold.lease().to_owned();
    drop(hold);
    *host.holding.borrow_mut() = None;
    lease
}

#[track_caller]
fn is_held(host: &Host<'_>, store: &Store, id: &TaskId) {
    match claim::take(host, store, id) {
        Err(Error::Held { holder, .. }) => assert_eq!(holder.as_str(), "worker"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_claim_of_the_same_key_is_retaken_at_once_when_its_process_is_gone() {
    let (world, id) = world();
    let (store, host) = (world.store(), world.host());
    let first = claim::take(&host, &store, &id).unwrap();
    is_held(&host, &store, &id);
    let lease = first.lease().to_owned();
    drop(first);
    let second = claim::take(&host, &store, &id).unwrap();
    assert_ne!(second.lease(), lease);
    let claim = store.task(&id).unwrap().task.claim.unwrap();
    assert_eq!(claim.lease, second.lease());
}

#[test]
fn clones_on_one_machine_share_a_key_and_do_not_take_a_task_from_each_other() {
    let (world, id) = world();
    let (store, host) = (world.store(), world.host());
    let first = claim::take(&host, &store, &id).unwrap();
    let twin = world.dir.path().join("twin");
    let copy = ["-r", "repo", "twin"];
    let copied = std::process::Command::new("cp")
        .args(copy)
        .current_dir(world.dir.path())
        .status();
    assert!(copied.unwrap().success());
    let open = || Store::open(Repository::discover(&twin).unwrap(), clock_at(0)).unwrap();
    is_held(&world.host(), &open(), &id);
    drop(first);
    claim::take(&world.host(), &open(), &id).unwrap();
}

#[test]
fn a_claim_that_another_process_with_the_same_key_took_over_is_lost() {
    let (world, id) = world();
    let (store, host) = (world.store(), world.host());
    let _hold = claim::take(&host, &store, &id).unwrap();
    claim::confirm(&host, &store).unwrap();
    let worker = Identity::of(&store.policy, host.worker.signer()).unwrap();
    let again = Change::Claim {
        lease: "another".repeat(4),
    };
    store
        .change_task(&id, &worker, |_| Ok(vec![again.clone()]))
        .unwrap();
    match claim::confirm(&host, &store) {
        Err(Error::Lost { why }) => assert!(why.contains("the same key"), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_foreign_claim_is_respected_until_it_was_seen_unchanged_for_a_lease() {
    let (world, id) = world();
    let (one, two) = (world.host(), world.second_host());
    take_and_die(&one, &world.store(), &id);
    let lease = i64::try_from(LEASE.as_secs()).unwrap();
    is_held(&two, &store_at(&world, 0), &id);
    is_held(&two, &store_at(&world, lease - 1), &id);
    let hold = claim::take(&two, &store_at(&world, lease), &id).unwrap();
    let claim = world.store().task(&id).unwrap().task.claim.unwrap();
    assert_eq!(
        (claim.worker.as_str(), claim.lease.as_str()),
        ("worker-two", hold.lease())
    );
}

#[test]
fn a_renewed_claim_is_respected_for_another_lease() {
    let (world, id) = world();
    let (one, two) = (world.host(), world.second_host());
    let lease = take_and_die(&one, &world.store(), &id);
    let length = i64::try_from(LEASE.as_secs()).unwrap();
    is_held(&two, &store_at(&world, 0), &id);
    claim::renew(&world.store(), one.worker.signer(), &id, &lease).unwrap();
    is_held(&two, &store_at(&world, length), &id);
    is_held(&two, &store_at(&world, 2 * length - 1), &id);
    claim::take(&two, &store_at(&world, 2 * length), &id).unwrap();
}

#[test]
fn a_look_made_under_a_wrong_clock_does_not_hold_a_task_for_ever() {
    let (world, id) = world();
    let (one, two) = (world.host(), world.second_host());
    take_and_die(&one, &world.store(), &id);
    let length = i64::try_from(LEASE.as_secs()).unwrap();
    is_held(&two, &store_at(&world, 1_000_000_000), &id);
    is_held(&two, &store_at(&world, 0), &id);
    claim::take(&two, &store_at(&world, length), &id).unwrap();
}

#[test]
fn a_live_run_renews_its_claim() {
    let (world, id) = world();
    let (store, host) = (world.store(), world.host());
    let hold = claim::take(&host, &store, &id).unwrap();
    let renewals = || {
        let records = world.store().task(&id).unwrap().records;
        let changes = records
            .iter()
            .flat_map(|record| record.event.value().change.clone());
        changes
            .filter(|change| matches!(change, Change::Renew { .. }))
            .count()
    };
    let every = Duration::from_millis(5);
    claim::keep(&host, &store, &id, &hold, every, || {
        while renewals() < 2 {
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    })
    .unwrap();
    claim::confirm(&host, &store).unwrap();
    let after = renewals();
    claim::release(&host, &store, &id, &hold).unwrap();
    assert_eq!(renewals(), after, "nobody renews when the work is done");
    assert!(!host.cancel.is_set());
}

#[test]
fn a_run_that_lost_its_claim_is_stopped_and_writes_nothing_more() {
    let (world, id) = world();
    let (store, host, two) = (world.store(), world.host(), world.second_host());
    let hold = claim::take(&host, &store, &id).unwrap();
    let every = Duration::from_millis(5);
    let error = claim::keep(&host, &store, &id, &hold, every, || -> Result<(), Error> {
        // As a machine does that has not seen the claim change for a lease.
        let store = world.store();
        let other = Identity::of(&store.policy, two.worker.signer()).unwrap();
        let taken = Change::Claim {
            lease: "00".repeat(16),
        };
        store
            .change_task(&id, &other, |_| Ok(vec![taken.clone()]))
            .unwrap();
        while !host.cancel.is_set() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let refused = claim::confirm(&host, &store).unwrap_err();
        assert!(matches!(refused, Error::Lost { .. }), "{refused:?}");
        Err(Error::Interrupted)
    })
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "this run has lost the task: worker-two took it over"
    );
}

#[test]
fn a_task_that_a_person_cancels_stops_its_run() {
    let (world, id) = world();
    let (store, host) = (world.store(), world.host());
    let hold = claim::take(&host, &store, &id).unwrap();
    let every = Duration::from_millis(5);
    let error = claim::keep(&host, &store, &id, &hold, every, || -> Result<(), Error> {
        let store = world.store();
        let alice = world.person(&store);
        let cancel = Change::Cancel {
            reason: String::new(),
        };
        store
            .change_task(&id, &alice, |_| Ok(vec![cancel.clone()]))
            .unwrap();
        while !host.cancel.is_set() {
            std::thread::sleep(Duration::from_millis(5));
        }
        Err(Error::Interrupted)
    })
    .unwrap_err();
    let why =
        "this run has lost the task: it is failed now, since the cancellation by alice, event ";
    assert!(error.to_string().starts_with(why), "{error}");
    // Giving back what is not ours any more changes nothing.
    claim::release(&host, &store, &id, &hold).unwrap();
    assert_eq!(store.task(&id).unwrap().task.state, State::Failed);
}

#[test]
#[ignore = "heavy: starts twenty runs at once"]
fn of_twenty_runs_exactly_one_works() {
    let scene = Scene::new();
    scene.script("writer/writer/1/sleep", "2s");
    let runs: Vec<Child> = (0..20).map(|_| scene.start(&["run", "KAN-80"])).collect();
    let mut codes = Vec::new();
    for run in runs {
        let ran = scene.ran(&["run"], &run.wait_with_output().unwrap());
        assert!(matches!(ran.code, Some(5 | 6)), "{ran}");
        if ran.code == Some(5) {
            assert!(ran.stderr.contains("the task is held by"), "{ran}");
        }
        codes.push(ran.code);
    }
    assert!(
        codes.contains(&Some(6)) && codes.contains(&Some(5)),
        "{codes:?}"
    );
    let dossier = scene.dossier();
    assert_eq!(dossier.seals.len(), 1);
    let writers = dossier
        .runs
        .iter()
        .filter(|run| run.value().role == RunRole::Writer);
    assert_eq!(writers.count(), 1, "one writer was started");
    scene.check_whole("after twenty runs");
    scene.check_swept("after twenty runs");
}

#[test]
#[ignore = "heavy: starts forty processes at once"]
fn of_twenty_writers_none_is_lost() {
    let scene = Scene::new();
    let mut all: Vec<Child> = Vec::new();
    for number in 0..20 {
        let text = format!("remark {number}");
        all.push(scene.start(&["task", "comment", "KAN-80", &text]));
        all.push(scene.start(&["task", "new", &text, "--criterion", "c"]));
    }
    for child in all {
        scene
            .ran(&["task"], &child.wait_with_output().unwrap())
            .success();
    }
    let ran = scene
        .hangar(&["task", "show", "KAN-80", "--json"])
        .success();
    for number in 0..20 {
        let text = format!("\"remark {number}\"");
        assert_eq!(ran.stdout.matches(&text).count(), 1, "{ran}");
    }
    let list = scene
        .hangar(&["task", "list", "--all", "--json"])
        .success()
        .stdout;
    for number in 0..20 {
        assert!(list.contains(&format!("\"remark {number}\"")), "{list}");
    }
    scene
        .env
        .git(&scene.repo, &["fsck", "--strict", "--no-dangling"]);
}

/// While everything runs: nothing secret in the arguments or the environment of a process that
/// other users or the sandbox's host can see, and no process that could leave a core dump.
#[test]
#[ignore = "heavy: watches every process of a whole flow"]
fn no_process_shows_a_secret() {
    let scene = Scene::new();
    scene.script("coder/implementer/1/src/calc.sh", "echo 7\n");
    scene.script("coder/implementer/2/src/calc.sh", "echo $(($1 - $2))\n");
    let keys = secrets(&scene);
    for phase in [6, 0] {
        let mut child = scene.start(&["-v", "run", "KAN-80"]);
        let (mut looks, mut bounded) = (0, false);
        while child.try_wait().unwrap().is_none() {
            for (pid, _) in scene.processes() {
                look_at(pid, &keys);
                looks += 1;
            }
            bounded |= leaves_no_core(child.id());
        }
        assert!(
            looks > 10 && bounded,
            "{looks} looks, core dumps bounded: {bounded}"
        );
        let ran = scene
            .ran(&["run"], &child.wait_with_output().unwrap())
            .exits(phase);
        for key in &keys {
            assert!(!ran.stdout.contains(key) && !ran.stderr.contains(key));
        }
        if phase == 6 {
            scene.approve();
        }
    }
    assert_eq!(
        scene.dossier().grades.len(),
        2,
        "a second round told about failing tests"
    );
    scene.check_whole("after the flow");
}

/// Lines of every private key of the scene.
fn secrets(scene: &Scene) -> Vec<String> {
    let mut found = vec![NEEDLE.to_owned()];
    super::kill_scene::walk(scene.env.home(), &mut |path| {
        let text = fs::read_to_string(path).unwrap_or_default();
        if text.contains("PRIVATE KEY") {
            found.extend(
                text.lines()
                    .filter(|line| line.len() > 40)
                    .map(str::to_owned),
            );
        }
    });
    assert!(found.len() > 6, "keys were found");
    found
}

/// Whether a process may write no core dump of more than a byte.
fn leaves_no_core(pid: u32) -> bool {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap_or_default();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max core file size"));
    let soft = line.and_then(|line| line.split_whitespace().nth(4));
    matches!(soft, Some("0" | "1"))
}

fn look_at(pid: u32, secrets: &[String]) {
    let proc = PathBuf::from(format!("/proc/{pid}"));
    let words = fs::read(proc.join("cmdline")).unwrap_or_default();
    let environment = fs::read(proc.join("environ")).unwrap_or_default();
    for secret in secrets {
        let shown = String::from_utf8_lossy(&words).into_owned();
        assert!(!contains(&words, secret), "in the arguments: {shown}");
        assert!(
            !contains(&environment, secret),
            "in the environment of: {shown}"
        );
    }
    // Inside a sandbox a test that is a program is started by its name.
    let here = fs::read_link("/proc/self/ns/mnt").unwrap();
    if fs::read_link(proc.join("ns/mnt")).is_ok_and(|there| there == here) {
        assert!(!contains(&words, HIDDEN_ID) && !contains(&environment, HIDDEN_ID));
    }
}
