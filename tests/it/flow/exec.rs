//! The whole flow with shell tests: no interpreter but `/bin/sh`.

use super::world::{EXEC as CONFIG, World};
use crate::common::git::git;
use hangar::flow::drive::{Agents, Stop, drive};
use hangar::model::approval::Action;
use hangar::model::outcome::{Secrecy, Trust};
use hangar::model::task::{Stage, State};

const TEST: &str = "#!/bin/sh\ntest \"$(sh ./calc.sh 5 3)\" = 2\n";
const GUARD: &str = "#!/bin/sh\ntest -e calc.sh\n";
const MAP: &str = r#"{"format": 1, "criteria": {"c1": ["tests/sub.sh"]}, "others": ["tests/guard.sh"], "sentinels": [], "notes": ""}"#;

fn world() -> World {
    let world = World::new(&[("calc.sh", "echo 0\n"), ("hangar.toml", CONFIG)]);
    world.script("writer", "writer/1/out/sealed/tests/sub.sh", TEST);
    world.script("writer", "writer/1/out/sealed/tests/guard.sh", GUARD);
    world.script("writer", "writer/1/out/sealed/criteria.json", MAP);
    world
}

#[test]
fn from_a_task_to_a_delivered_branch() {
    let world = world();
    world.script("coder", "implementer/1/src/calc.sh", "echo $(($1 + $2))\n");
    world.script("coder", "implementer/2/src/calc.sh", "echo $(($1 - $2))\n");
    let store = world.store();
    let id = world.task(&store, "Subtract", &["calc.sh 5 3 prints 2"]);
    let host = world.host();
    let stop = drive(&host, &store, &id, None, Agents::Start).unwrap();
    assert!(matches!(stop, Stop::Waiting { version: 1, .. }), "{stop:?}");
    world.decide(&id, Action::Approve, "");
    let stop = drive(&host, &store, &id, None, Agents::Start).unwrap();
    let Stop::Delivered(delivered) = stop else {
        panic!("{stop:?}")
    };
    assert_eq!(delivered.branch, "hangar/KAN-80");

    let dossier = store.dossier(&id).unwrap();
    assert_eq!(dossier.history.task.state, State::Done);
    assert!(dossier.faults.is_empty(), "{:?}", dossier.faults);
    assert_eq!(
        dossier.grades.len(),
        2,
        "the wrong patch was graded, then the right one"
    );
    assert!(!dossier.grades[0].value().accepted);
    let grade = dossier.grades[1].value();
    assert!(grade.accepted, "{:?}", grade.reasons);
    assert!(grade.trust >= Trust::Sealed, "{:?}", grade.sandbox);
    assert_eq!(grade.secrecy, Secrecy::Confined);
    assert_eq!(
        git(&world.repo_dir(), &["show", "hangar/KAN-80:calc.sh"]),
        "echo $(($1 - $2))"
    );
    git(&world.repo_dir(), &["fsck", "--strict"]);
    // No object of any ref holds a line of a hidden test.
    let objects = git(
        &world.repo_dir(),
        &["cat-file", "--batch-all-objects", "--batch", "--buffer"],
    );
    assert!(
        !objects.contains("calc.sh 5 3)"),
        "a hidden test is in the object database"
    );
}

#[test]
fn a_rejection_gives_a_second_version_and_a_run_can_stop_at_a_stage() {
    let world = world();
    world.script("coder", "implementer/1/src/calc.sh", "echo $(($1 - $2))\n");
    let store = world.store();
    let id = world.task(&store, "Subtract", &["calc.sh 5 3 prints 2"]);
    let host = world.host();
    drive(&host, &store, &id, None, Agents::Start).unwrap();
    world.decide(&id, Action::Reject, "test negative results too");
    let stop = drive(&host, &store, &id, None, Agents::Start).unwrap();
    assert!(matches!(stop, Stop::Waiting { version: 2, .. }), "{stop:?}");
    world.decide(&id, Action::Approve, "");
    let stop = drive(&host, &store, &id, Some(Stage::Implementing), Agents::Start).unwrap();
    assert_eq!(stop, Stop::Until(Stage::Implementing));
    let dossier = store.dossier(&id).unwrap();
    assert_eq!(dossier.seals.len(), 2);
    assert_eq!(
        dossier.seals[1].value().previous,
        Some(dossier.seals[0].digest())
    );
    assert_eq!(dossier.runs.len(), 3, "two writers and one implementer");
    assert!(dossier.history.task.claim.is_none());
}
