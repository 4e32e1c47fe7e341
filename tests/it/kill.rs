//! `hangar run` is ended at every stage by every signal, and goes on afterwards: no half state, no
//! plaintext, process, mount or sandbox left, and nothing done twice.

use super::kill_scene::Scene;
use hangar::model::run::{RunOutcome, RunRole};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// When a run is ended.
#[derive(Debug, Clone, Copy)]
enum Point {
    /// After this many parts of a whole run's time.
    Time(u32, u32),
    /// When so many changes of refs were seen.
    Change(usize),
}

/// What is finished and must not be done again.
#[derive(Debug, PartialEq, Eq)]
struct Finished {
    seals: Vec<String>,
    runs: Vec<String>,
    grades: Vec<String>,
}

impl Finished {
    fn of(scene: &Scene) -> Self {
        let dossier = scene.dossier();
        let implementations = dossier.runs.iter().filter(|run| {
            run.value().role == RunRole::Implementer && run.value().outcome == RunOutcome::Completed
        });
        Self {
            seals: dossier
                .seals
                .iter()
                .map(|one| one.digest().to_string())
                .collect(),
            runs: implementations
                .map(|one| one.digest().to_string())
                .collect(),
            grades: dossier
                .grades
                .iter()
                .map(|one| one.digest().to_string())
                .collect(),
        }
    }

    /// Asserts that `later` holds all of it, and in the end one of each.
    fn check(&self, later: &Self, when: &str) {
        for (before, after) in [
            (&self.seals, &later.seals),
            (&self.runs, &later.runs),
            (&self.grades, &later.grades),
        ] {
            assert!(
                after.starts_with(before),
                "{when}: {before:?} became {after:?}"
            );
            assert_eq!(after.len(), 1, "{when}: something was done twice");
        }
    }
}

/// A scene at the beginning of a phase, to be put back after each kill.
struct Stage {
    scene: Scene,
    pristine: PathBuf,
    /// How long the phase takes undisturbed, and how many changes of refs it makes.
    length: Duration,
    changes: usize,
}

impl Stage {
    fn new(approved: bool) -> Self {
        let scene = Scene::new();
        if approved {
            scene.hangar(&["run", "KAN-80"]).exits(6);
            scene.approve();
        }
        let pristine = scene.env.root().join("pristine");
        copy(&scene.repo.join(".git"), &pristine);
        let mut child = scene.start(&["run", "KAN-80"]);
        let start = Instant::now();
        let mut seen = scene.quick_refs();
        let mut changes = 0;
        while child.try_wait().unwrap().is_none() {
            changes += usize::from(moved(&scene, &mut seen));
        }
        let length = start.elapsed();
        assert!(changes >= 4, "a run makes {changes} changes");
        Self {
            scene,
            pristine,
            length,
            changes,
        }
    }

    fn reset(&self) {
        let git = self.scene.repo.join(".git");
        fs::remove_dir_all(&git).unwrap();
        copy(&self.pristine, &git);
    }

    /// Starts a run, ends it at `point` and checks everything.
    fn kill(&self, point: Point, signal: &str) {
        let when = format!("{signal} at {point:?}");
        self.reset();
        let scene = &self.scene;
        let mut child = scene.start(&["run", "KAN-80"]);
        match point {
            Point::Time(part, parts) => std::thread::sleep(self.length * part / parts),
            Point::Change(number) => {
                let mut seen = scene.quick_refs();
                let mut changes = 0;
                while changes < number && child.try_wait().unwrap().is_none() {
                    changes += usize::from(moved(scene, &mut seen));
                }
            }
        }
        send(&child, signal);
        let output = child.wait_with_output().unwrap();
        let ran = scene.ran(&["run", "KAN-80"], &output);
        match (signal, ran.code) {
            // It was done already, or the signal came before it was listened to.
            (_, Some(0 | 6) | None) | ("INT" | "TERM", Some(130)) => {}
            _ => panic!("{when}: {ran}"),
        }
        scene.check_no_process(&when);
        scene.check_whole(&when);
        let before = Finished::of(scene);
        if signal != "KILL" {
            let claim = scene.dossier().history.task.claim;
            assert!(
                ran.code.is_none() || claim.is_none(),
                "{when}: the claim was kept"
            );
        }
        scene.finish();
        before.check(&Finished::of(scene), &when);
        scene.hangar(&["verify", "KAN-80"]).success();
        scene.check_no_process(&when);
        scene.check_whole(&when);
        scene.check_swept(&when);
    }
}

/// Whether any ref moved since the last look.
fn moved(scene: &Scene, seen: &mut BTreeMap<PathBuf, String>) -> bool {
    let now = scene.quick_refs();
    let moved = now != *seen;
    *seen = now;
    moved
}

fn send(child: &Child, signal: &str) {
    let status = Command::new("kill")
        .arg(format!("-{signal}"))
        .arg(child.id().to_string())
        .output();
    // It may be gone already.
    let _ = status.unwrap();
}

fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp")
        .arg("-a")
        .arg(from)
        .arg(to)
        .status()
        .unwrap();
    assert!(status.success());
}

fn matrix(approved: bool, signal: &str) {
    let stage = Stage::new(approved);
    for number in 1..=stage.changes {
        stage.kill(Point::Change(number), signal);
    }
    for part in 0..8 {
        stage.kill(Point::Time(part, 8), signal);
    }
}

#[test]
#[ignore = "heavy: kills a run at some fifteen points and drives it to its end each time"]
fn sigkill_while_tests_are_written_and_sealed() {
    matrix(false, "KILL");
}

#[test]
#[ignore = "heavy: kills a run at some fifteen points and drives it to its end each time"]
fn sigkill_while_a_patch_is_written_graded_and_delivered() {
    matrix(true, "KILL");
}

#[test]
#[ignore = "heavy: interrupts a run at some fifteen points and drives it to its end each time"]
fn sigint_while_tests_are_written_and_sealed() {
    matrix(false, "INT");
}

#[test]
#[ignore = "heavy: interrupts a run at some fifteen points and drives it to its end each time"]
fn sigint_while_a_patch_is_written_graded_and_delivered() {
    matrix(true, "INT");
}

#[test]
#[ignore = "heavy: ends a run at some fifteen points and drives it to its end each time"]
fn sigterm_at_every_point() {
    matrix(false, "TERM");
    matrix(true, "TERM");
}

/// The state of all refs after each write of a whole flow, as a power loss could leave it: newer
/// objects may be there, newer refs are not.
#[test]
#[ignore = "heavy: drives a task to its end from each of some twenty states"]
fn a_flow_goes_on_from_the_state_between_any_two_writes() {
    let scene = Scene::new();
    let mut states = vec![scene.refs()];
    for approved in [false, true] {
        if approved {
            scene.approve();
            states.push(scene.refs());
        }
        watch(&scene, &mut states);
    }
    let last = Finished::of(&scene);
    assert!(states.len() > 12, "{} states were seen", states.len());
    let pristine = scene.env.root().join("pristine");
    copy(&scene.repo.join(".git"), &pristine);
    for (number, state) in states.iter().enumerate() {
        let when = format!("after write {number}");
        let git = scene.repo.join(".git");
        fs::remove_dir_all(&git).unwrap();
        copy(&pristine, &git);
        // A mark is written after the ref that it is about, so it never knows more.
        fs::remove_file(git.join("hangar/heads.log")).unwrap();
        for name in scene
            .refs()
            .keys()
            .filter(|name| !state.contains_key(*name))
        {
            scene.env.git(&scene.repo, &["update-ref", "-d", name]);
        }
        for (name, id) in state {
            scene.env.git(&scene.repo, &["update-ref", name, id]);
        }
        scene.check_whole(&when);
        let before = Finished::of(&scene);
        assert!(last.seals.starts_with(&before.seals), "{when}");
        scene.finish();
        before.check(&Finished::of(&scene), &when);
        scene.hangar(&["verify", "KAN-80"]).success();
        scene.check_whole(&when);
    }
}

/// Runs the task and notes the refs after each change.
fn watch(scene: &Scene, states: &mut Vec<BTreeMap<String, String>>) {
    let mut child = scene.start(&["run", "KAN-80"]);
    let git = scene.repo.join(".git");
    loop {
        let ended = child.try_wait().unwrap().is_some();
        let now: BTreeMap<String, String> = scene
            .quick_refs()
            .into_iter()
            .filter_map(|(path, id)| {
                let name = path.strip_prefix(&git).ok()?.to_str()?.to_owned();
                Some((name, id.trim().to_owned()))
            })
            .collect();
        if states.last() != Some(&now) {
            states.push(now);
        }
        if ended {
            return;
        }
    }
}
