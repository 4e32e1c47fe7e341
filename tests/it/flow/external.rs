//! The whole flow with cases that run outside the sandbox of the program under test.

use super::world::World;
use hangar::flow::drive::{Agents, Stop, drive};
use hangar::model::approval::Action;
use hangar::model::grade::Grade;
use hangar::model::outcome::{Trust, Verdict};

fn config(framework: &str) -> String {
    format!(
        "format = 1\n[task]\nflow = \"test-first\"\n[grader]\nframework = \"{framework}\"\n\
         tests = [\"acceptance/\"]\n[deliver]\nas = \"branch\"\nbranch = \"hangar/{{key}}\"\n"
    )
}

const CASES: &str = r#"
format = 1

[[case]]
name = "subtracts"
values = { a = { from = 100, to = 900 }, b = { from = 1, to = 99 }, less = { difference = ["a", "b"] } }
[[case.step]]
run = ["./calc.sh", "{a}", "{b}"]
stdout = "{less}\n"

[[case]]
name = "remembers in a file"
files = { "log.txt" = "before\n" }
[[case.step]]
run = ["./calc.sh", "5", "3"]
stdout = { contains = ["2"] }
[[case.step]]
run = ["sh", "-c", "cat >> {root}/log.txt"]
stdin = "after\n"
files = { "log.txt" = { lines = ["before", "2", "after"] }, "gone.txt" = { absent = true } }

[[case]]
name = "starts"
[[case.step]]
run = ["./calc.sh", "1", "1"]
"#;

const SENTINEL: &str = r#"
format = 1
[[case]]
name = "wrong on purpose"
[[case.step]]
run = ["./calc.sh", "1", "1"]
stdout = "never\n"
"#;

const MAP: &str = r#"{"format": 1,
  "criteria": {"c1": ["acceptance/calc.toml > subtracts", "acceptance/calc.toml > remembers in a file"]},
  "others": ["acceptance/calc.toml > starts"],
  "sentinels": ["acceptance/sentinel.toml > wrong on purpose"], "notes": ""}"#;

const HONEST: &str =
    "#!/bin/sh\necho $(($1 - $2))\n[ -e log.txt ] && echo $(($1 - $2)) >> log.txt\nexit 0\n";

/// Grades of a first round with `patch` and an honest second one.
fn grades(patch: &str) -> Vec<Grade> {
    let world = World::new(&[
        ("calc.sh", "#!/bin/sh\necho 0\n"),
        ("hangar.toml", &config("external")),
    ]);
    for (path, text) in [
        ("acceptance/calc.toml", CASES),
        ("acceptance/sentinel.toml", SENTINEL),
        ("criteria.json", MAP),
    ] {
        world.script("writer", &format!("writer/1/out/sealed/{path}"), text);
    }
    world.script("coder", "implementer/1/src/calc.sh", patch);
    world.script("coder", "implementer/2/src/calc.sh", HONEST);
    let store = world.store();
    let id = world.task(&store, "Subtract", &["calc.sh 5 3 prints 2"]);
    let host = world.host();
    let stop = drive(&host, &store, &id, None, Agents::Start).unwrap();
    assert!(matches!(stop, Stop::Waiting { .. }), "{stop:?}");
    world.decide(&id, Action::Approve, "");
    let stop = drive(&host, &store, &id, None, Agents::Start).unwrap();
    assert!(matches!(stop, Stop::Delivered(_)), "{stop:?}");
    let dossier = store.dossier(&id).unwrap();
    dossier
        .grades
        .iter()
        .map(|one| one.value().clone())
        .collect()
}

#[test]
fn a_right_program_is_accepted_with_the_best_verdict() {
    let grades = grades(HONEST);
    let [grade] = grades.as_slice() else {
        panic!("{grades:?}")
    };
    assert!(grade.accepted, "{:?}", grade.reasons);
    assert_eq!(grade.verdict, Verdict::External);
    assert!(grade.trust >= Trust::Sealed, "{:?}", grade.sandbox);
    assert_eq!((grade.counts.expected, grade.counts.passed), (3, 3));
}

#[test]
fn a_program_that_looks_for_what_is_expected_finds_nothing() {
    let look = "#!/bin/sh\n\
        grep -rh -e less -e stdout -e subtracts / 2> /dev/null | grep -v 'grep -rh'\n\
        [ -e log.txt ] && echo 2 >> log.txt\nls -R /src /r /tmp > log.txt 2>&1\nexit 0\n";
    for patch in [
        look,
        "#!/bin/sh\nexit 0\n",
        "#!/bin/sh\nkill -9 -1\nkill -9 $PPID\n",
    ] {
        let grades = grades(patch);
        assert_eq!(grades.len(), 2);
        assert!(!grades[0].accepted);
        assert!(grades[1].accepted, "{:?}", grades[1].reasons);
    }
}
