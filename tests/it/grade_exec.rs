//! The `exec` adapter with real processes: it needs nothing but a shell.

use crate::grade_kit::{Bench, Case, File, outcome_of, word};
use hangar::grade::adapter::Listing;
use hangar::grade::call::Hit;
use hangar::model::outcome::{FailureClass, Outcome, TestId, Verdict};
use hangar::model::plan::Framework;

const BASE: &[File<'_>] = &[("add.sh!", "#!/bin/sh\necho 0\n")];
const SEALED: &[File<'_>] = &[
    (
        "tests/sum!",
        "#!/bin/sh\n. tests/lib.sh\ncheck 5 \"$(sh ./add.sh 2 3)\"\n",
    ),
    (
        "tests/zero!",
        "#!/bin/sh\n. tests/lib.sh\ncheck 7 \"$(sh ./add.sh 7 0)\"\n",
    ),
    (
        "tests/lib.sh",
        "check() { [ \"$1\" = \"$2\" ] || exit 1; }\n",
    ),
];
const GOOD: File<'_> = ("add.sh", "echo $(($1 + $2))\n");

pub(crate) fn case() -> Case<'static> {
    Case {
        framework: Framework::Exec,
        base: BASE,
        sealed: SEALED,
        map: r#"{"format": 1, "criteria": {"c1": ["tests/sum", "tests/zero"]}}"#,
        tune: |_| {},
    }
}

#[test]
fn an_honest_patch_is_accepted_by_exit_status() {
    let judgement = case().grade(&[GOOD]);
    assert_eq!(word(&judgement), "accepted", "{:?}", judgement.reasons);
    assert_eq!(judgement.verdict, Verdict::Exit);
    assert_eq!(judgement.counts.passed, 2);
}

#[test]
fn a_wrong_patch_is_not() {
    let judgement = case().grade(&[("add.sh", "echo 5\n")]);
    assert_eq!(word(&judgement), "not accepted");
    assert_eq!((judgement.counts.passed, judgement.counts.failed), (1, 1));
    assert_eq!(judgement.failing.iter().collect::<Vec<_>>(), ["tests/zero"]);
}

#[test]
fn only_executables_are_tests() {
    let (bench, _) = case().bench();
    let Ok(Listing::Known(ids)) = bench.adapter().list(&bench.suite) else {
        panic!("exec knows its tests");
    };
    let ids: Vec<&str> = ids.iter().map(TestId::as_str).collect();
    assert_eq!(ids, ["tests/sum", "tests/zero"]);
    let none = Bench::new(Framework::Exec, BASE, &[("tests/lib.sh", "")]);
    assert!(none.adapter().list(&none.suite).is_err());
}

#[test]
fn each_way_to_end_has_its_class() {
    let failed = |class| Some(Outcome::Failed(class));
    let table = [
        ("exit 0", Some(Outcome::Passed)),
        ("exit 77", Some(Outcome::Skipped)),
        ("exit 3", failed(FailureClass::Assertion)),
        ("no-such-program-here", failed(FailureClass::MissingSymbol)),
        ("kill -SEGV $$", failed(FailureClass::Crash)),
    ];
    for (line, expected) in table {
        let text = format!("#!/bin/sh\n{line}\n");
        let mut bench = Bench::new(Framework::Exec, &[], &[("tests/t!", &text)]);
        bench.lay(&[], true);
        let ids = bench.list();
        assert_eq!(outcome_of(&bench.run(&ids), "tests/t"), expected, "{line}");
    }
}

#[test]
fn a_test_that_does_not_end_fails_by_timeout() {
    let mut bench = Bench::new(
        Framework::Exec,
        &[],
        &[("tests/t!", "#!/bin/sh\nsleep 60\n")],
    );
    bench.suite.plan.limits.timeout = 1;
    bench.lay(&[], true);
    let ids = bench.list();
    let report = bench.run(&ids);
    let timeout = Some(Outcome::Failed(FailureClass::Timeout));
    assert_eq!(outcome_of(&report, "tests/t"), timeout);
    assert!(report.cut && report.hits.contains(&Hit::Time) && report.is_sound());
}

#[test]
fn nothing_of_our_own_environment_reaches_a_test() {
    let text = "#!/bin/sh\n[ \"$USER\" = user ] && [ -z \"$CARGO\" ] && [ \"$X\" = 1 ]\n";
    let mut bench = Bench::new(Framework::Exec, &[], &[("tests/t!", text)]);
    bench.suite.plan.env.insert("X".into(), "1".into());
    bench.lay(&[], true);
    let ids = bench.list();
    assert_eq!(
        outcome_of(&bench.run(&ids), "tests/t"),
        Some(Outcome::Passed)
    );
}
