//! What every adapter must do, whatever it runs: one table for all of them. A new framework gets an
//! entry in [`specimen`], and the rows below say whether its adapter may be believed.
//!
//! What only one framework can be attacked by stands in its own file.

use crate::grade_kit::{Case, File, id, word};
use crate::{
    docs, grade_attacks_cargo, grade_attacks_ctest, grade_attacks_go, grade_attacks_js,
    grade_attacks_node, grade_attacks_python,
};
use crate::{grade_exec, grade_junit, grade_tap};
use hangar::grade::adapter::{ALL, Listing, adapter, best_verdict, one_test};
use hangar::grade::call::{Call, End, Hit, Left, Raw};
use hangar::grade::protect::Globs;
use hangar::grade::report::{Fault, RunReport};
use hangar::model::outcome::{FailureClass, Outcome, TestId};
use hangar::model::plan::Framework;

/// One small project for a framework: tests of a function `add`, and codes for it.
struct Specimen {
    case: Case<'static>,
    /// The file of the function.
    path: &'static str,
    right: &'static str,
    wrong: &'static str,
    /// Ends the process with status 0 before a test could end.
    early: &'static str,
    /// Ends the process by a signal.
    crash: &'static str,
    /// Never ends.
    endless: &'static str,
    /// Skips the test that calls it. `None`: code under test can't.
    skip: Option<&'static str>,
}

const CASES: &[File<'_>] = &[(
    "acceptance/add.toml",
    "format = 1\n[[case]]\nname = \"sum\"\n[[case.step]]\nrun = [\"sh\", \"./add.sh\", \"2\", \"3\"]\n\
     stdout = \"5\\n\"\n",
)];

fn specimen(framework: Framework) -> Specimen {
    match framework {
        Framework::Pytest => python(0, "import pytest\ndef add(a, b):\n    pytest.skip('x')\n"),
        Framework::Unittest => python(
            1,
            "import unittest\ndef add(a, b):\n    raise unittest.SkipTest('x')\n",
        ),
        Framework::Cargo => Specimen {
            case: grade_attacks_cargo::case(),
            path: "src/lib.rs",
            right: grade_attacks_cargo::GOOD,
            wrong: grade_attacks_cargo::WRONG,
            early: "pub fn add(_: i32, _: i32) -> i32 { std::process::exit(0) }\n",
            crash: "pub fn add(_: i32, _: i32) -> i32 { std::process::abort() }\n",
            endless: "pub fn add(_: i32, _: i32) -> i32 { loop { std::thread::yield_now() } }\n",
            skip: None,
        },
        Framework::Go => Specimen {
            case: grade_attacks_go::case(),
            path: "add.go",
            right: grade_attacks_go::GOOD,
            wrong: grade_attacks_go::WRONG,
            early: "package calc\n\nimport \"syscall\"\n\n\
                    func Add(_, _ int) int { syscall.Exit(0); return 0 }\n",
            crash: "package calc\n\nimport \"syscall\"\n\n\
                    func Add(_, _ int) int { syscall.Kill(syscall.Getpid(), syscall.SIGKILL); select {} }\n",
            endless: "package calc\n\nfunc Add(_, _ int) int { for { } }\n",
            skip: None,
        },
        Framework::Node => javascript(grade_attacks_node::case()),
        Framework::Mocha | Framework::Jest | Framework::Vitest => {
            javascript(grade_attacks_js::case(framework))
        }
        Framework::Ctest => Specimen {
            case: grade_attacks_ctest::case(),
            path: "add.c",
            right: grade_attacks_ctest::GOOD,
            wrong: grade_attacks_ctest::WRONG,
            early: "#include <stdlib.h>\nint add(int a, int b) { exit(0); }\n",
            crash: "#include <stdlib.h>\nint add(int a, int b) { abort(); }\n",
            endless: "int add(int a, int b) { for (;;); }\n",
            skip: None,
        },
        Framework::Tap => Specimen {
            case: grade_tap::case(),
            path: "add.sh",
            right: "add() { echo $(($1 + $2)); }\n",
            wrong: "add() { echo 5; }\n",
            early: "exit 0\n",
            crash: "kill -KILL $$\n",
            endless: "while :; do :; done\n",
            skip: Some("echo 'ok 1 - sum # SKIP'; echo 'ok 2 - zero # SKIP'; exit 0\n"),
        },
        Framework::Junit => Specimen {
            case: grade_junit::case(),
            path: "add.sh",
            right: grade_junit::RIGHT,
            wrong: "add() { echo 5; }\n",
            early: "exit 0\n",
            crash: "kill -KILL $$\n",
            endless: "while :; do :; done\n",
            skip: Some(
                "for n in sum zero; do echo \"<testcase classname='tests.add_test' name='$n'>\
                 <skipped/></testcase>\"; done > x; (echo '<testsuite>'; cat x; \
                 echo '</testsuite>') > report.xml; exit 0\n",
            ),
        },
        Framework::Exec => Specimen {
            case: grade_exec::case(),
            ..program()
        },
        Framework::External => program(),
    }
}

fn python(which: usize, skip: &'static str) -> Specimen {
    let case = grade_attacks_python::cases().into_iter().nth(which);
    Specimen {
        case: case.unwrap(),
        path: "calc.py",
        right: grade_attacks_python::GOOD,
        wrong: grade_attacks_python::WRONG,
        early: "import os\ndef add(a, b):\n    os._exit(0)\n",
        crash: "import os\ndef add(a, b):\n    os.abort()\n",
        endless: "def add(a, b):\n    while True:\n        pass\n",
        skip: Some(skip),
    }
}

fn javascript(case: Case<'static>) -> Specimen {
    Specimen {
        case,
        path: "calc.mjs",
        right: grade_attacks_node::GOOD,
        wrong: grade_attacks_node::WRONG,
        early: "export function add() { process.reallyExit(0); }\n",
        crash: "export function add() { process.kill(process.pid, 'SIGKILL'); for (;;); }\n",
        endless: "export function add() { for (;;); }\n",
        skip: None,
    }
}

/// A program that is started anew for each test.
fn program() -> Specimen {
    Specimen {
        case: Case {
            framework: Framework::External,
            base: &[("add.sh", "echo 0\n")],
            sealed: CASES,
            map: r#"{"format": 1, "criteria": {"c1": ["acceptance/add.toml > sum"]}}"#,
            tune: |_| {},
        },
        path: "add.sh",
        right: "echo $(($1 + $2))\n",
        wrong: "echo 4\n",
        early: "exit 0\n",
        crash: "kill -KILL $$\n",
        endless: "while :; do :; done\n",
        skip: None,
    }
}

fn needs_a_shell_only(framework: Framework) -> bool {
    matches!(
        framework,
        Framework::Tap | Framework::Junit | Framework::Exec | Framework::External
    )
}

#[test]
fn adapters_that_need_a_shell_only_conform() {
    for framework in ALL.into_iter().filter(|one| needs_a_shell_only(*one)) {
        conforms(framework);
    }
}

#[test]
#[ignore = "heavy: needs every framework that hangar can drive"]
fn adapters_of_programs_conform() {
    for framework in ALL.into_iter().filter(|one| !needs_a_shell_only(*one)) {
        conforms(framework);
    }
}

#[test]
#[ignore = "heavy: waits, and needs every framework that hangar can drive"]
fn an_endless_run_fails_and_is_no_void() {
    ALL.into_iter().for_each(endless_runs_fail);
}

fn conforms(framework: Framework) {
    lists_what_is_sealed(framework);
    judges_by_what_the_code_does(framework);
    believes_no_report_that_was_tampered_with(framework);
}

fn lists_what_is_sealed(framework: Framework) {
    let (mut bench, criteria) = specimen(framework).case.bench();
    let suite = &bench.suite;
    for id in criteria.expected().iter().chain(criteria.sentinels()) {
        let file = bench.adapter().file_of(suite, id);
        let file = file.unwrap_or_else(|| panic!("{framework}: {id} lies in no sealed file"));
        assert!(bench.adapter().is_test_file(suite, file), "{framework}");
        let by_running = matches!(bench.adapter().list(suite), Ok(Listing::OnlyByRunning));
        assert!(by_running || suite.known.contains(id), "{framework} {id}");
    }
    let stray = bench.adapter().file_of(suite, &id("nowhere/else > x"));
    assert_eq!(stray, None, "{framework}");
    bench.suite.files.clear();
    if let Ok(Listing::Known(ids)) = bench.adapter().list(&bench.suite) {
        assert!(ids.is_empty(), "{framework}");
    }
}

fn judges_by_what_the_code_does(framework: Framework) {
    let subject = specimen(framework);
    let graded = |code| subject.case.grade(&[(subject.path, code)]);
    let right = graded(subject.right);
    assert_eq!(word(&right), "accepted", "{framework} {:?}", right.reasons);
    let (bench, criteria) = subject.case.bench();
    let best = best_verdict(framework, !criteria.sentinels().is_empty());
    assert_eq!(right.verdict, best, "{framework}");
    let wrong = graded(subject.wrong);
    let reasons = &wrong.reasons;
    assert_eq!(word(&wrong), "not accepted", "{framework} {reasons:?}");
    assert_eq!(word(&subject.case.grade(&[])), "not accepted");
    for code in [subject.early, subject.crash] {
        assert!(!graded(code).accepted, "{framework} {code}");
    }
    if let Some(code) = subject.skip {
        assert!(!graded(code).accepted, "{framework} {code}");
    }
    // Beside the sealed files a patch can add what it likes.
    let preflight = bench.adapter().preflight(&bench.suite);
    assert!(preflight.iter().all(|call| call.ids.is_empty()));
}

/// What is done to what a run left.
type Edit = fn(&mut Vec<(Call, Raw)>);

/// Each leaves less, more or other than an honest run. `true`: it edits the report, which `exec` has
/// none of.
const EDITS: &[(&str, bool, Edit)] = &[
    ("nothing was started", false, Vec::clear),
    ("the last call is missing", false, |calls| {
        calls.pop();
    }),
    ("the report is empty", true, |calls| {
        report(calls, Vec::clear);
    }),
    ("the report is cut", true, |calls| {
        report(calls, |bytes| bytes.truncate(bytes.len() / 2));
    }),
    ("the report is there twice", true, |calls| {
        report(calls, |bytes| bytes.extend_from_within(..));
    }),
    ("something else is in front of the report", true, |calls| {
        report(calls, |bytes| {
            bytes.splice(0..0, *b"not ok\n");
        });
    }),
    ("the report is another call's", true, |calls| {
        for (call, _) in calls.iter_mut() {
            call.nonce = "0".repeat(32);
        }
        if !calls.iter().any(|(call, _)| call.channel) {
            report(calls, Vec::clear);
        }
    }),
    ("another status", false, |calls| {
        last(calls).end = End::Exited(3);
    }),
    ("killed", false, |calls| last(calls).end = End::Signalled(9)),
    ("not started", false, |calls| {
        let raw = last(calls);
        raw.end = End::NotStarted(2);
        for bytes in [&mut raw.stdout, &mut raw.stderr, &mut raw.channel] {
            bytes.clear();
        }
        raw.files.clear();
    }),
    ("the time was up", false, |calls| {
        let raw = last(calls);
        raw.end = End::TimedOut;
        raw.hits.push(Hit::Time);
    }),
];

fn last(calls: &mut [(Call, Raw)]) -> &mut Raw {
    &mut calls.last_mut().unwrap().1
}

fn report(calls: &mut [(Call, Raw)], edit: impl Fn(&mut Vec<u8>)) {
    for (_, raw) in calls {
        edit(&mut raw.stdout);
        edit(&mut raw.channel);
        for left in raw.files.values_mut() {
            if let Left::File(bytes) = left {
                edit(bytes);
            }
        }
    }
}

/// Whether a run speaks for the code: everything passed and nothing is odd.
fn speaks_for_the_code(report: &RunReport, ids: &[TestId]) -> bool {
    let passed = |id| report.outcomes.get(id) == Some(&Outcome::Passed);
    report.is_sound() && !report.cut && ids.iter().all(passed)
}

fn believes_no_report_that_was_tampered_with(framework: Framework) {
    let subject = specimen(framework);
    let (bench, criteria) = subject.case.bench();
    let ids: Vec<TestId> = criteria.expected().into_iter().collect();
    bench.lay(&[(subject.path, subject.right)], true);
    let honest = bench.start(&ids);
    let read = |ids: &[TestId], calls: &[_]| bench.adapter().read(&bench.suite, ids, calls);
    let untouched = read(&ids, &honest);
    assert!(
        speaks_for_the_code(&untouched, &ids),
        "{framework} {untouched:?}"
    );
    // It leaves no report that could be edited.
    let by_exit = framework == Framework::Exec;
    for (what, is_report, edit) in EDITS {
        let mut edited = honest.clone();
        edit(&mut edited);
        let report = read(&ids, &edited);
        let believed = speaks_for_the_code(&report, &ids);
        assert_eq!(believed, *is_report && by_exit, "{framework}: {what}");
    }
    let file = bench.adapter().file_of(&bench.suite, &ids[0]).unwrap();
    for ghost in [format!("{file} > ghost"), format!("{file}::ghost")] {
        let more = [&ids[..], &[id(&ghost)]].concat();
        let report = read(&more, &honest);
        assert!(report.faults.contains(&Fault::Absent(1)), "{framework}");
    }
}

fn endless_runs_fail(framework: Framework) {
    let subject = specimen(framework);
    let (mut bench, criteria) = subject.case.bench();
    let ids: Vec<TestId> = criteria.expected().into_iter().collect();
    bench.suite.plan.limits.timeout = 4;
    bench.lay(&[(subject.path, subject.endless)], true);
    let report = bench.run(&ids);
    assert!(report.is_sound() && report.cut, "{framework} {report:?}");
    let timeout = Outcome::Failed(FailureClass::Timeout);
    let mut outcomes = report.outcomes.values();
    assert!(outcomes.any(|outcome| *outcome == timeout), "{framework}");
}

#[test]
fn every_adapter_stands_on_the_pages() {
    let format = docs::page("docs/format.md");
    let sections = docs::sections(&format);
    let configuration = docs::page("docs/reference/configuration.md");
    let found = docs::sections(&configuration)["How hidden tests are found"]
        .text
        .clone();
    let line = |text: &str, start: &str| -> String {
        let mut lines = text.lines();
        lines
            .find(|line| line.starts_with(start))
            .unwrap()
            .to_owned()
    };
    let template = include_str!("../../src/config/template.rs");
    for framework in ALL {
        let one = adapter(framework);
        assert_eq!(one.framework(), framework);
        assert!(Globs::new(one.protected()).is_ok(), "{framework}");
        assert!(!one.default_tests().is_empty() && !one_test(framework).is_empty());
        let name = framework.to_string();
        assert_eq!(name.parse::<Framework>().ok(), Some(framework));
        let row = &sections["Test ids"].rows[&name];
        let cells: Vec<&str> = row.split(" | ").collect();
        assert_eq!(cells[2], format!("`{}`", one.ceiling()), "{row}");
        let protected: Vec<String> = one
            .protected()
            .iter()
            .map(|glob| format!("`{glob}`"))
            .collect();
        let told = cells[3].trim_end_matches('|').trim();
        assert_eq!(told, protected.join(", "), "{name}");
        let quoted = format!("`{name}`");
        assert!(
            sections["Plan"].rows["framework"].contains(&quoted),
            "{name}"
        );
        assert!(line(&configuration, "| `grader.framework` |").contains(&quoted));
        assert!(found.contains(&quoted), "{name}");
        assert!(template.contains(&name), "{name}");
    }
}
