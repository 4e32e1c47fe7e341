//! Code under test that takes all it can of one thing. Its grade is a plain no that names the bound, and
//! the round after it, on the same machine, is graded as if nothing had been.

use super::world::World;
use hangar::flow::drive::{Agents, Stop, drive};
use hangar::model::approval::Action;
use hangar::model::outcome::Trust;

const CONFIG: &str = r#"
format = 1
[task]
flow = "test-first"
[grader]
framework = "exec"
tests = ["tests/"]
timeout = "10s"
limits = { memory = "256M", processes = 64, output = "1M", disk = "32M" }
[deliver]
as = "branch"
branch = "hangar/{key}"
"#;
const TEST: &str = "#!/bin/sh\nout=$(sh ./calc.sh 5 3)\ntest \"$out\" = 2\n";
/// What the code says goes where the tests' own output goes.
const LOUD: &str = "#!/bin/sh\nsh ./calc.sh 5 3 | tee /dev/stderr | grep -qx 2\n";
const MAP: &str = r#"{"format": 1, "criteria": {"c1": ["tests/sub.sh"]}, "others": [], "sentinels": [], "notes": ""}"#;
const HONEST: &str = "echo $(($1 - $2))\n";

/// Grades a bomb, then an honest patch; gives the bounds that the bomb hit, and what the sandbox held.
fn bounds(test: &str, bomb: &str) -> (Vec<String>, Trust) {
    let world = World::new(&[("calc.sh", "echo 0\n"), ("hangar.toml", CONFIG)]);
    for (path, text) in [("tests/sub.sh", test), ("criteria.json", MAP)] {
        world.script("writer", &format!("writer/1/out/sealed/{path}"), text);
    }
    world.script("coder", "implementer/1/src/calc.sh", bomb);
    world.script("coder", "implementer/2/src/calc.sh", HONEST);
    let store = world.store();
    let id = world.task(&store, "Subtract", &["calc.sh 5 3 prints 2"]);
    let host = world.host();
    drive(&host, &store, &id, None, Agents::Start).unwrap();
    world.decide(&id, Action::Approve, "");
    let stop = drive(&host, &store, &id, None, Agents::Start).unwrap();
    assert!(
        matches!(stop, Stop::Delivered(_)),
        "the honest patch must pass after `{bomb}`: {stop:?}"
    );
    let dossier = store.dossier(&id).unwrap();
    let first = dossier.grades[0].value();
    assert!(!first.accepted && !first.void, "{bomb}: {first:?}");
    (first.limits_hit.clone(), first.trust)
}

#[test]
#[ignore = "heavy: takes what the bounds allow"]
fn a_bomb_of_each_kind_is_a_plain_no_and_the_next_grade_is_as_ever() {
    let cases = [
        ("memory", TEST, "x=0123456789; while :; do x=$x$x; done\n"),
        ("processes", TEST, "f() { f | f & }; f; sleep 5; echo 8\n"),
        ("disk", TEST, "head -c 64M /dev/zero > /tmp/x; echo 8\n"),
        (
            "disk",
            TEST,
            "i=0; while : > /tmp/$i; do i=$((i + 1)); done; echo 8\n",
        ),
        ("output", LOUD, "yes\n"),
        ("time", TEST, "while :; do :; done\n"),
        ("time", TEST, "sleep 1000\n"),
    ];
    for (bound, test, bomb) in cases {
        let (hit, trust) = bounds(test, bomb);
        // Where the host bounds no tree of processes, nobody counts for all of them.
        let counted = trust >= Trust::SealedLimits || !["memory", "processes"].contains(&bound);
        let named = hit.iter().any(|hit| hit == bound);
        assert!(named || !counted, "{bomb}: {hit:?}");
    }
}

#[test]
#[ignore = "heavy: waits for the time that the plan gives"]
fn a_patch_that_hangs_is_spared_the_sentinels_and_one_that_fails_is_not() {
    let map = MAP.replace("\"sentinels\": []", "\"sentinels\": [\"tests/odd.sh\"]");
    for (calc, held) in [("sleep 1000\n", 0), ("echo 8\n", 1)] {
        let config = CONFIG.replace("10s", "3s");
        let world = World::new(&[("calc.sh", "echo 0\n"), ("hangar.toml", &config)]);
        for (path, text) in [
            ("tests/sub.sh", TEST),
            ("tests/odd.sh", "#!/bin/sh\nexit 1\n"),
            ("criteria.json", &map),
        ] {
            world.script("writer", &format!("writer/1/out/sealed/{path}"), text);
        }
        world.script("coder", "implementer/1/src/calc.sh", calc);
        world.script("coder", "implementer/2/src/calc.sh", HONEST);
        let store = world.store();
        let id = world.task(&store, "Subtract", &["calc.sh 5 3 prints 2"]);
        let host = world.host();
        drive(&host, &store, &id, None, Agents::Start).unwrap();
        world.decide(&id, Action::Approve, "");
        let stop = drive(&host, &store, &id, None, Agents::Start).unwrap();
        assert!(matches!(stop, Stop::Delivered(_)), "{calc}: {stop:?}");
        let dossier = store.dossier(&id).unwrap();
        let first = dossier.grades[0].value();
        assert!(!first.accepted && !first.void, "{calc}: {first:?}");
        assert_eq!(first.counts.sentinels_held, held, "{calc}: {first:?}");
        let report = hangar::flow::verify::verify(&store, &id, &[]).unwrap();
        assert!(report.faults.is_empty(), "{calc}: {:?}", report.faults);
    }
}
