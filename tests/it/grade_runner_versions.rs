//! JavaScript runners by their major version: those that hangar drives, and others.

use crate::grade_attacks_js::{BASE, RUNNERS, case, head, modules};
use crate::grade_attacks_node::{GOOD, WRONG, classes, one_ends};
use crate::grade_kit::{Bench, CROSSCHECKED, execute, word, write};
use hangar::grade::adapter::Missing;
use hangar::grade::report::Fault;
use hangar::grade::suite::Suite;
use hangar::model::plan::Framework;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

/// Where newer major versions are: `HANGAR_TEST_NODE_MODULES_NEWER`, or where `.ci/run` installs them.
fn newer() -> PathBuf {
    let named = std::env::var_os("HANGAR_TEST_NODE_MODULES_NEWER").map(PathBuf::from);
    let beside = || modules().join("../../js-newer/node_modules");
    let folder = named.unwrap_or_else(beside);
    assert!(folder.is_dir(), "{} is not there", folder.display());
    folder
}

fn with_newer(suite: &mut Suite) {
    suite.plan.verdict = CROSSCHECKED;
    let above = suite.layout.src.with_file_name("node_modules");
    symlink(newer(), above).unwrap();
}

const TWO_VERSIONS: [Framework; 2] = [Framework::Mocha, Framework::Vitest];

#[test]
#[ignore = "heavy: needs node with newer versions of mocha and vitest"]
fn newer_versions_judge_alike() {
    for framework in TWO_VERSIONS {
        let mut case = case(framework);
        case.tune = with_newer;
        let good = case.grade(&[("calc.mjs", GOOD)]);
        assert_eq!(word(&good), "accepted", "{framework} {:?}", good.reasons);
        assert_eq!(good.verdict, CROSSCHECKED, "{framework}");
        let wrong = case.grade(&[("calc.mjs", WRONG)]);
        let reasons = &wrong.reasons;
        assert_eq!(word(&wrong), "not accepted", "{framework} {reasons:?}");
        assert_eq!((wrong.counts.passed, wrong.counts.failed), (1, 2));
    }
}

#[test]
#[ignore = "heavy: needs node with newer versions of mocha and vitest"]
fn newer_versions_tell_alike_why_a_test_fails() {
    for framework in TWO_VERSIONS {
        for (line, body, expected) in classes("left-out") {
            let head = head(framework);
            let text = format!("{head}{line}\ntest('x', async () => {{ {body} }});\n");
            let mut bench = Bench::new(framework, BASE, &[("tests/a.test.mjs", &text)]);
            with_newer(&mut bench.suite);
            one_ends(bench, &text, expected);
        }
    }
}

/// What the preflight says where the runner's package has this version.
fn missing_with(framework: Framework, version: &str) -> Vec<Missing> {
    let bench = Bench::new(framework, BASE, &[]);
    bench.lay(&[], false);
    let above = bench.suite.layout.src.with_file_name("node_modules");
    let folder = above.join(framework.to_string());
    let text = format!("{{\"version\": \"{version}\"}}");
    write(&folder.join("package.json"), text.as_bytes(), false);
    let call = bench.adapter().preflight(&bench.suite).remove(0);
    let raw = execute(&call);
    bench.adapter().read_preflight(&bench.suite, &[(call, raw)])
}

#[test]
#[ignore = "heavy: needs node"]
fn a_version_that_was_never_tried_is_said_before_a_test_runs() {
    for (framework, last) in RUNNERS.into_iter().zip([12, 30, 5]) {
        let next = last + 1;
        let found = missing_with(framework, &format!("{next}.0.0-rc.1"));
        let [one] = found.as_slice() else {
            panic!("{framework} {found:?}");
        };
        let said = format!("{framework} {next} is not supported");
        assert!(one.what.starts_with(&said), "{found:?}");
        let remedy = format!("install {framework}@{last}");
        assert!(one.remedy.starts_with(&remedy), "{found:?}");
        assert_eq!(missing_with(framework, &format!("{last}.9.1")), []);
    }
}

/// A base with one hidden test, whose runner's package is this file.
fn with_runner(framework: Framework, index: &str) -> hangar::grade::report::RunReport {
    let name = framework.to_string();
    let text = format!("{}test('x', () => {{}});\n", head(framework));
    let mut bench = Bench::new(framework, BASE, &[("tests/a.test.mjs", &text)]);
    bench.lay(&[], true);
    let folder = bench
        .suite
        .layout
        .src
        .with_file_name("node_modules")
        .join(&name);
    for (path, text) in [
        (
            "package.json",
            "{\"main\": \"index.js\", \"version\": \"30.0.0\"}",
        ),
        ("index.js", index),
    ] {
        write(&folder.join(path), text.as_bytes(), false);
    }
    let ids = bench.list();
    bench.run(&ids)
}

#[test]
#[ignore = "heavy: needs node"]
fn a_runner_that_breaks_by_itself_is_told_from_a_test_that_fails() {
    for framework in RUNNERS {
        let report = with_runner(framework, "");
        let said = report.broken.as_deref().unwrap_or_default();
        let words = ["is not a function", "Cannot find module"];
        let told = framework == Framework::Jest || words.iter().any(|word| said.contains(word));
        assert!(told && !said.is_empty(), "{framework} {report:?}");
    }
    let silent = with_runner(Framework::Jest, "exports.run = () => process.exit(7);");
    assert_eq!(silent.broken.as_deref(), Some("it ended with status 7"));
    let absent = with_runner(Framework::Mocha, "");
    assert!(absent.faults.contains(&Fault::NotStarted), "{absent:?}");
}

#[test]
#[ignore = "heavy: needs node with mocha"]
fn code_that_ends_the_process_of_its_tests_breaks_no_runner() {
    let text = "import '../calc.mjs';\nit('x', () => {});\n";
    let base: &[crate::grade_kit::File<'_>] = &[("calc.mjs", "process.reallyExit(1);\n")];
    let mut bench = Bench::new(Framework::Mocha, base, &[("tests/a.test.mjs", text)]);
    crate::grade_attacks_js::tune(&mut bench.suite);
    bench.lay(&[], true);
    let ids = bench.list();
    let report = bench.run(&ids);
    assert_eq!(report.broken, None);
    assert!(report.faults.contains(&Fault::Incomplete), "{report:?}");
}
