//! What is done once more, and what is not: approvals after a retry, void grades.

use super::world::{EXEC as CONFIG, World};
use hangar::flow::drive::{Agents, Stop, drive};
use hangar::flow::{stage, verify};
use hangar::model::approval::Action;
use hangar::model::event::Change;
use hangar::model::task::Stage;

const MAP: &str = r#"{"format": 1, "criteria": {"c1": ["tests/sub.sh"]}, "others": [], "sentinels": [], "notes": ""}"#;
const TEST: &str = "#!/bin/sh\ntest \"$(sh ./calc.sh 5 3)\" = 2\n";

#[test]
fn tests_that_were_approved_once_more_are_delivered_with_the_new_approval() {
    let world = World::new(&[("calc.sh", "echo 0\n"), ("hangar.toml", CONFIG)]);
    for (path, text) in [("tests/sub.sh", TEST), ("criteria.json", MAP)] {
        world.script("writer", &format!("writer/1/out/sealed/{path}"), text);
    }
    for round in 1..=3 {
        let path = format!("implementer/{round}/src/calc.sh");
        world.script("coder", &path, "echo 8\n");
    }
    let (host, store) = (world.host(), world.store());
    let id = world.task(&store, "Subtract", &["calc.sh 5 3 prints 2"]);
    let run = || drive(&host, &store, &id, None, Agents::Start).unwrap();
    run();
    world.decide(&id, Action::Approve, "");
    let stop = run();
    assert!(matches!(stop, Stop::GaveUp(_)), "{stop:?}");

    let retry = Change::Retry {
        from: Stage::AwaitingApproval,
        set_aside: stage::set_aside(&store.dossier(&id).unwrap(), Stage::AwaitingApproval),
    };
    let person = world.person(&store);
    store
        .change_task(&id, &person, |_| Ok(vec![retry.clone()]))
        .unwrap();
    let stop = run();
    assert!(matches!(stop, Stop::Waiting { .. }), "{stop:?}");
    world.decide(&id, Action::Approve, "");
    world.script("coder", "implementer/1/src/calc.sh", "echo $(($1 - $2))\n");
    let stop = run();
    assert!(matches!(stop, Stop::Delivered(_)), "{stop:?}");
    let report = verify::verify(&store, &id, &[]).unwrap();
    assert!(report.accepted(), "{report:?}");
}

/// Reads what the test that started it asks for. The sentinel, which no code can pass, passes then.
const FORGER: &str =
    "sed -n 's/.* = \\([0-9]*\\)$/\\1/p' \"$(tr '\\0' '\\n' </proc/$PPID/cmdline | tail -n 1)\"\n";

#[test]
fn a_grade_that_shows_forged_outcomes_is_not_repeated() {
    let world = World::new(&[("calc.sh", "echo 0\n"), ("hangar.toml", CONFIG)]);
    let map = MAP.replace("\"sentinels\": []", "\"sentinels\": [\"tests/odd.sh\"]");
    let odd = TEST.replace("= 2", "= 77");
    for (path, text) in [
        ("tests/sub.sh", TEST),
        ("tests/odd.sh", &odd),
        ("criteria.json", &map),
    ] {
        world.script("writer", &format!("writer/1/out/sealed/{path}"), text);
    }
    for round in 1..=3 {
        let text = format!("# round {round}\n{FORGER}");
        world.script("coder", &format!("implementer/{round}/src/calc.sh"), &text);
    }
    let (host, store) = (world.host(), world.store());
    let id = world.task(&store, "Subtract", &["calc.sh 5 3 prints 2"]);
    let run = || drive(&host, &store, &id, None, Agents::Start).unwrap();
    run();
    world.decide(&id, Action::Approve, "");
    let stop = run();
    assert!(matches!(stop, Stop::GaveUp(_)), "{stop:?}");
    let dossier = store.dossier(&id).unwrap();
    let forged = dossier.grades.iter().map(|grade| grade.value().is_forged());
    assert_eq!(forged.collect::<Vec<_>>(), [true; 3]);
}
