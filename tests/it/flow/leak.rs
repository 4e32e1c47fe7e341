//! Hidden tests that stand in a patch, or in what came with it: the grade is void, the task ends, and a
//! retry has new tests written. What an author may know, or says in a few words of its own, is no leak.

use super::world::{EXEC as CONFIG, World};
use hangar::flow::drive::{Agents, Stop, drive};
use hangar::flow::{stage, verify, version};
use hangar::model::approval::Action;
use hangar::model::grade::Grade;
use hangar::model::ids::TaskId;
use hangar::model::task::{Stage, State};

const MAP: &str = r#"{"format": 1, "criteria": {"c1": ["tests/sub.sh"]}, "others": [], "sentinels": [], "notes": ""}"#;
/// Part of the base, and of the tests.
const KNOWN: &str = "\
say() { printf '%s: wanted %s, got %s\\n' \"$name\" \"$want\" \"$got\" >&2; }
check() { name=$1 want=$2 got=$3; if [ \"$want\" != \"$got\" ]; then say; failed=1; fi; }
";
const HONEST: &str = "echo $(($1 - $2))\n";

/// Twenty-four checks.
fn body() -> String {
    let check = |number: u32| {
        let larger = number + 5;
        format!("check n{number} {number} \"$(sh ./calc.sh {larger} 5)\"\n")
    };
    (0..24).map(check).collect::<String>() + "exit \"${failed:-0}\"\n"
}

struct Scene {
    world: World,
    id: TaskId,
}

impl Scene {
    /// A task whose coder leaves these files in its first round.
    fn new(files: &[(&str, &str)]) -> Self {
        let world = World::new(&[
            ("calc.sh", "echo 0\n"),
            ("lib.sh", KNOWN),
            ("hangar.toml", CONFIG),
        ]);
        let test = format!("#!/bin/sh\n{KNOWN}{}", body());
        for version in 1..=2 {
            for (path, text) in [("tests/sub.sh", test.as_str()), ("criteria.json", MAP)] {
                let path = format!("writer/{version}/out/sealed/{path}");
                world.script("writer", &path, text);
            }
        }
        world.script("coder", "implementer/1/src/calc.sh", HONEST);
        for (path, text) in files {
            world.script("coder", &format!("implementer/1/{path}"), text);
        }
        let store = world.store();
        let id = world.task(&store, "Subtract", &["calc.sh 5 3 prints 2"]);
        let scene = Self { world, id };
        scene.drive();
        scene
    }

    fn drive(&self) -> Stop {
        let (host, store) = (self.world.host(), self.world.store());
        drive(&host, &store, &self.id, None, Agents::Start).unwrap()
    }

    /// Approves the tests, lets the coder work and the patch be graded.
    fn approved(&self) -> (Stop, Grade) {
        self.world.decide(&self.id, Action::Approve, "");
        let stop = self.drive();
        let dossier = self.world.store().dossier(&self.id).unwrap();
        (stop, dossier.grades[0].value().clone())
    }

    fn leaks(&self, what: &str) {
        let (stop, grade) = self.approved();
        assert!(matches!(stop, Stop::Leaked), "{stop:?}");
        assert!(grade.void && grade.canary_found && !grade.accepted);
        assert!(grade.reasons[0].contains(what), "{:?}", grade.reasons);
        let store = self.world.store();
        let dossier = store.dossier(&self.id).unwrap();
        assert_eq!(dossier.history.task.state, State::Failed);
        assert_eq!(dossier.grades.len(), 1, "no round follows");
        let branch = store.repo.read_ref("refs/heads/hangar/KAN-80").unwrap();
        assert_eq!(branch, None, "what leaked is on no branch");
        let settings = &store.policy.newest().root.acceptance;
        let (from, aside) = stage::resumption(&dossier, settings, store.clock.now());
        assert_eq!(from, Stage::Writing);
        assert!(aside.contains(&dossier.seals[0].digest()));
        // Setting the grade aside does not hide the tests again.
        let from_later = stage::set_aside(&dossier, Stage::Implementing);
        let retry = hangar::model::event::Change::Retry {
            from: Stage::Implementing,
            set_aside: from_later,
        };
        let person = self.world.person(&store);
        store
            .change_task(&self.id, &person, |_| Ok(vec![retry.clone()]))
            .unwrap();
        let stop = self.drive();
        assert!(matches!(stop, Stop::Leaked), "{stop:?}");
    }
}

#[test]
fn a_piece_of_the_tests_in_the_patch_ends_the_task() {
    Scene::new(&[("src/notes.txt", &body())]).leaks("a long piece of the hidden tests");
}

#[test]
fn a_piece_of_the_tests_in_what_came_with_the_patch_ends_the_task() {
    let told = format!(
        "{{\"note\": {:?}}}\n",
        format!("as it was said:\n{}", body())
    );
    Scene::new(&[("out/RESULT.md", &told)]).leaks("a long piece of the hidden tests");
}

#[test]
fn a_piece_of_the_tests_in_what_came_with_a_later_patch_ends_the_task() {
    // From the second round on what comes with a patch is sealed.
    let scene = Scene::new(&[("src/calc.sh", "echo 1\n")]);
    let script = |path: &str, text: &str| scene.world.script("coder", path, text);
    script("implementer/2/src/calc.sh", HONEST);
    script("implementer/2/out/RESULT.md", &body());
    let (stop, first) = scene.approved();
    assert!(!first.accepted && !first.canary_found, "{first:?}");
    assert!(matches!(stop, Stop::Leaked), "{stop:?}");
    let dossier = scene.world.store().dossier(&scene.id).unwrap();
    let second = dossier.grades[1].value();
    assert!(second.void && second.canary_found, "{second:?}");
    assert!(dossier.runs.last().unwrap().value().attachment[0].sealed);
}

#[test]
fn what_the_base_holds_and_a_few_equal_lines_are_no_leak() {
    let own = format!(
        "{KNOWN}{}",
        body().lines().take(8).collect::<Vec<_>>().join("\n")
    );
    let scene = Scene::new(&[("src/own.sh", &own), ("out/RESULT.md", KNOWN)]);
    let (stop, grade) = scene.approved();
    assert!(matches!(stop, Stop::Delivered(_)), "{stop:?}");
    assert!(grade.accepted && !grade.canary_found);
}

/// A task whose first coder repeated the mark of a version that had been rejected, retried and delivered.
fn delivered_after_a_leak() -> Scene {
    let scene = Scene::new(&[]);
    let (host, store) = (scene.world.host(), scene.world.store());
    let dossier = store.dossier(&scene.id).unwrap();
    let key = host.grader_identity().unwrap();
    let first = version::open(&store, &dossier, &dossier.seals[0], &[key]).unwrap();
    let round = |mark: &str| {
        let file = |path: &str, text: &str| {
            let path = format!("implementer/1/{path}");
            scene.world.script("coder", &path, text);
        };
        file("src/calc.sh", &format!("# {mark}\n{HONEST}"));
        file("out/RESULT.md", &format!("Done. {mark}\n"));
    };
    round(first.canary.token());
    scene
        .world
        .decide(&scene.id, Action::Reject, "more of them");
    scene.drive();
    scene.leaks("the mark of the hidden tests");

    let person = scene.world.person(&store);
    let dossier = store.dossier(&scene.id).unwrap();
    let settings = &store.policy.newest().root.acceptance;
    let (from, set_aside) = stage::resumption(&dossier, settings, store.clock.now());
    let retry = hangar::model::event::Change::Retry { from, set_aside };
    store
        .change_task(&scene.id, &person, |_| Ok(vec![retry.clone()]))
        .unwrap();
    round("no mark");
    scene.drive();
    scene.world.decide(&scene.id, Action::Approve, "");
    let stop = scene.drive();
    assert!(matches!(stop, Stop::Delivered(_)), "{stop:?}");
    scene
}

#[test]
fn the_mark_of_any_version_ends_the_task_and_new_tests_are_accepted_after_it() {
    let scene = delivered_after_a_leak();
    // What leaked once is set aside, and stands in no way.
    let report = verify::verify(&scene.world.store(), &scene.id, &[]).unwrap();
    assert!(report.accepted(), "{report:?}");
}

#[test]
#[ignore = "heavy: python3 and ssh-keygen"]
fn the_second_verifier_accepts_what_was_delivered_after_a_leak() {
    let scene = delivered_after_a_leak();
    let (dir, home) = (scene.world.repo_dir(), scene.world.dir.path());
    let out = crate::verify::second::ask(&dir, home, scene.id.as_str(), &[]);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
}
