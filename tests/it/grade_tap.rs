//! The `tap` adapter with real processes (a shell is enough), and what `init` proposes.

use crate::grade_kit::{Bench, Case, File, outcome_of, word};
use hangar::grade::detect_framework;
use hangar::grade::manifest::Tree;
use hangar::grade::report::Fault;
use hangar::model::outcome::{Outcome, Verdict};
use hangar::model::plan::Framework;

const BASE: &[File<'_>] = &[("add.sh", "add() { echo 0; }\n")];
const SEALED: &[File<'_>] = &[(
    "tests/add.t",
    "echo 1..2\n. ./add.sh\n\
     is() { if [ \"$1\" = \"$2\" ]; then echo \"ok $3\"; else echo \"not ok $3\"; fi; }\n\
     is \"$(add 2 3)\" 5 '1 - sum'\nis \"$(add 7 0)\" 7 '2 - zero'\n",
)];
const GOOD: &str = "add() { echo $(($1 + $2)); }\n";

pub(crate) fn case() -> Case<'static> {
    Case {
        framework: Framework::Tap,
        base: BASE,
        sealed: SEALED,
        map: r#"{"format": 1, "criteria": {"c1": ["tests/add.t > sum", "tests/add.t > zero"]}}"#,
        tune: |suite| suite.plan.options = vec!["sh".into()],
    }
}

#[test]
fn an_honest_patch_is_accepted_by_report_and_a_wrong_one_is_not() {
    let good = case().grade(&[("add.sh", GOOD)]);
    assert_eq!(word(&good), "accepted", "{:?}", good.reasons);
    assert_eq!(good.verdict, Verdict::Report);
    let wrong = case().grade(&[("add.sh", "add() { echo 5; }\n")]);
    assert_eq!(word(&wrong), "not accepted");
    assert_eq!((wrong.counts.passed, wrong.counts.failed), (1, 1));
}

#[test]
fn reports_that_are_cut_doubled_or_contradicted_are_void() {
    for text in [
        "exit 0\n",
        "echo ok 1 - sum; exit 0\n",
        "echo ok 1 - sum; echo ok 2 - zero; echo 1..2; exit 0\n",
        "add() { echo $(($1 + $2)); }; trap 'exit 1' EXIT\n",
        "echo 'Bail out!'; exit 0\n",
        "echo ok 3 - more; add() { echo $(($1 + $2)); }\n",
    ] {
        let judgement = case().grade(&[("add.sh", text)]);
        assert_eq!(word(&judgement), "void", "{text} {:?}", judgement.reasons);
    }
}

#[test]
fn skips_and_todos_are_no_pass() {
    let text = "#!/bin/sh\necho 1..2\necho 'ok 1 - a # SKIP x'\necho 'not ok 2 - b # TODO x'\n";
    let mut bench = Bench::new(Framework::Tap, &[], &[("tests/t!", text)]);
    bench.lay(&[], true);
    let ids = ["tests/t > a", "tests/t > b"].map(crate::grade_kit::id);
    bench.suite.known = ids.to_vec();
    let report = bench.run(&ids);
    assert!(report.is_sound(), "{:?}", report.faults);
    for id in &ids {
        assert_eq!(outcome_of(&report, id.as_str()), Some(Outcome::Skipped));
    }
    let none = Bench::new(Framework::Tap, &[], &[("tests/lib.sh", "")]);
    assert!(none.adapter().list(&none.suite).is_err());
}

#[test]
fn a_test_that_was_not_asked_for_is_unknown() {
    let text = "#!/bin/sh\necho 1..2\necho 'ok 1 - a'\necho 'ok 2 - b'\n";
    let mut bench = Bench::new(Framework::Tap, &[], &[("tests/t!", text)]);
    bench.lay(&[], true);
    let ids = [crate::grade_kit::id("tests/t > a")];
    bench.suite.known = ids.to_vec();
    assert!(bench.run(&ids).faults.contains(&Fault::Unknown(1)));
}

fn proposed(files: &[File<'_>]) -> Option<(Framework, String, Vec<String>)> {
    let paths: Vec<String> = files.iter().map(|(path, _)| (*path).to_owned()).collect();
    let read = |path: &str| {
        let found = files.iter().find(|(have, _)| *have == path);
        found.map(|(_, text)| text.as_bytes().to_vec())
    };
    let tree = Tree {
        paths: &paths,
        read: &read,
    };
    detect_framework(tree).map(|found| (found.framework, found.prepare, found.tests))
}

#[test]
fn a_package_gets_the_runner_that_it_starts_or_depends_on() {
    let rows = [
        (
            "\"scripts\": {\"test\": \"mocha --exit\"}",
            Framework::Mocha,
        ),
        (
            "\"devDependencies\": {\"mocha\": \"^11\"}",
            Framework::Mocha,
        ),
        (
            "\"scripts\": {\"test\": \"npm run unit\"}, \"devDependencies\": {\"mocha\": \"^11\"}",
            Framework::Mocha,
        ),
        (
            "\"scripts\": {\"test\": \"node --test\"}, \"devDependencies\": {\"mocha\": \"^11\"}",
            Framework::Node,
        ),
    ];
    let others = [("jest", Framework::Jest), ("vitest", Framework::Vitest)];
    for (name, framework) in others {
        let package = format!("{{\"devDependencies\": {{\"{name}\": \"*\", \"tap\": \"1\"}}}}");
        let files = [
            ("package.json", package.as_str()),
            ("src/__tests__/a.js", ""),
        ];
        let (found, _, tests) = proposed(&files).expect("a runner is named");
        assert_eq!(
            (found, tests),
            (framework, vec!["**/__tests__/".to_owned()])
        );
    }
    for (rest, expected) in rows {
        let package = format!("{{{rest}}}");
        let files = [("package.json", package.as_str()), ("test/a.test.js", "")];
        let (found, _, tests) = proposed(&files).expect("a runner is named");
        assert_eq!(
            (found, tests),
            (expected, vec!["test/".to_owned()]),
            "{rest}"
        );
    }
}

#[test]
fn repositories_get_the_framework_that_they_use() {
    let (framework, prepare, tests) = proposed(&[
        ("requirements.txt", "pytest\n"),
        ("tests/test_a.py", "def test_a(): pass\n"),
    ])
    .expect("pytest is mentioned");
    assert_eq!(
        (framework, tests),
        (Framework::Pytest, vec!["tests/".to_owned()])
    );
    assert!(
        prepare.contains("pip install -r requirements.txt pytest"),
        "{prepare}"
    );
    let (framework, prepare, _) =
        proposed(&[("test/test_a.py", "import unittest\n")]).expect("unittest is imported");
    assert_eq!((framework, prepare.as_str()), (Framework::Unittest, ""));
    let package = "{\"scripts\": {\"test\": \"node --test\"}, \"dependencies\": {\"a\": \"1\"}}";
    let (framework, prepare, tests) = proposed(&[
        ("package.json", package),
        ("package-lock.json", "{}"),
        ("test/a.test.js", ""),
    ])
    .expect("the script says so");
    assert_eq!(
        (framework, tests),
        (Framework::Node, vec!["test/".to_owned()])
    );
    assert!(prepare.starts_with("npm ci"), "{prepare}");
    let ava = "{\"scripts\": {\"test\": \"ava\"}}";
    assert_eq!(proposed(&[("package.json", ava), ("a.test.js", "")]), None);
    let module = "module a\nrequire b v1.0.0\n";
    let (framework, prepare, tests) =
        proposed(&[("go.mod", module), ("a.go", "")]).expect("a module is there");
    assert_eq!(
        (framework, prepare.as_str(), tests[0].as_str()),
        (Framework::Go, "go mod download", "**/*_test.go")
    );
    let vendored = [("go.mod", module), ("vendor/modules.txt", "")];
    assert_eq!(proposed(&vendored).expect("a module is there").1, "");
    let lists = "project(a C)\ninclude(CTest)\n";
    let (framework, _, tests) =
        proposed(&[("CMakeLists.txt", lists), ("test/CMakeLists.txt", "")]).expect("tests are on");
    assert_eq!(
        (framework, tests),
        (Framework::Ctest, vec!["test/".to_owned()])
    );
    assert_eq!(proposed(&[("CMakeLists.txt", "project(a C)\n")]), None);
    let (framework, _, tests) = proposed(&[
        ("Cargo.toml", "[workspace]\n"),
        ("crates/a/Cargo.toml", "[package]\n"),
    ])
    .expect("a manifest is there");
    assert_eq!(
        (framework, tests),
        (Framework::Cargo, vec!["crates/a/tests/".to_owned()])
    );
    assert_eq!(proposed(&[("README.md", "")]), None);
}
