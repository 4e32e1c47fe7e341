//! The `junit` adapter: with a shell that writes reports, honest and hostile, and with real programs.

use crate::grade_attacks_js;
use crate::grade_attacks_python::{self, interpreter};
use crate::grade_kit::{Bench, Case, File, channel_forged, outcome_of, word};
use hangar::grade::report::Fault;
use hangar::model::outcome::{FailureClass, Outcome, Verdict};
use hangar::model::plan::Framework;

const BASE: &[File<'_>] = &[("add.sh", "add() { echo 0; }\n")];
const SEALED: &[File<'_>] = &[(
    "tests/add_test.sh",
    "one() {\n  echo \"<testcase classname='tests.add_test' name='$1'>\"\n  \
     [ \"$2\" = \"$3\" ] || echo '<failure/>'\n  echo '</testcase>'\n}\n\
     . ./add.sh\n\
     all=$(one sum \"$(add 2 3)\" 5; one zero \"$(add 7 0)\" 7)\n\
     echo \"<testsuite name='x'>$all$MORE</testsuite>\" > report.xml\n",
)];
pub(crate) const RIGHT: &str = "add() { echo $(($1 + $2)); }\n";
const SUM: &str = "<testcase classname='tests.add_test' name='sum'/>";
const ZERO: &str = "<testcase classname='tests.add_test' name='zero'/>";

pub(crate) fn case() -> Case<'static> {
    Case {
        framework: Framework::Junit,
        base: BASE,
        sealed: SEALED,
        map: r#"{"format": 1, "criteria": {"c1": ["tests.add_test::sum", "tests.add_test::zero"]}}"#,
        tune: |suite| {
            suite.plan.options = ["report.xml", "sh", "{files}"].map(str::to_owned).to_vec();
        },
    }
}

#[test]
fn an_honest_patch_is_accepted_by_report_and_a_wrong_one_is_not() {
    let good = case().grade(&[("add.sh", RIGHT)]);
    assert_eq!(word(&good), "accepted", "{:?}", good.reasons);
    assert_eq!(good.verdict, Verdict::Report);
    let wrong = case().grade(&[("add.sh", "add() { echo 5; }\n")]);
    assert_eq!(word(&wrong), "not accepted");
    assert_eq!((wrong.counts.passed, wrong.counts.failed), (1, 1));
}

/// Code that leaves this in place of the report and ends.
fn leaves(report: &str) -> String {
    format!("printf '%s' \"{report}\" > report.xml; exit 0\n")
}

#[test]
fn reports_that_are_cut_doubled_contradicted_or_hostile_are_void() {
    let bomb = "<!DOCTYPE x [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;'>]>";
    let whole = format!("<testsuite name='x'>{SUM}{ZERO}</testsuite>");
    for text in [
        "exit 0\n".to_owned(),
        leaves(""),
        leaves("<testsuite name='x'>"),
        leaves(&format!("<testsuite name='x'>{SUM}</testsuite>")),
        leaves(&format!("<testsuite name='x'>{SUM}{SUM}{ZERO}</testsuite>")),
        leaves(&format!(
            "<testsuite name='x' tests='3'>{SUM}{ZERO}</testsuite>"
        )),
        leaves(&format!(
            "<testsuite name='x' failures='1'>{SUM}{ZERO}</testsuite>"
        )),
        leaves(&format!("{whole}{whole}")),
        leaves(&format!("{bomb}{whole}")),
        leaves(&whole).replace("exit 0", "exit 3"),
        format!("MORE=\"<testcase classname='tests.add_test' name='more'/>\"\n{RIGHT}"),
        "ln -s /dev/zero report.xml; exit 0\n".to_owned(),
        "ln -s /etc/passwd report.xml; exit 0\n".to_owned(),
        "mkfifo report.xml; exit 0\n".to_owned(),
        "mkdir report.xml; exit 0\n".to_owned(),
        "head -c 40000000 /dev/zero > report.xml; exit 0\n".to_owned(),
    ] {
        let judgement = case().grade(&[("add.sh", &text)]);
        assert_eq!(word(&judgement), "void", "{text} {:?}", judgement.reasons);
    }
    let text = format!(
        "for fd in /proc/$PPID/fd/*; do case $(readlink $fd) in pipe*) echo forged > $fd;; esac; \
         done\n{RIGHT}"
    );
    let judgement = case().grade(&[("add.sh", &text)]);
    assert_eq!(
        word(&judgement),
        channel_forged(),
        "{:?}",
        judgement.reasons
    );
    // The honest control of what the code prints, and of a report that it writes before the tests do.
    for text in [
        format!("echo '{whole}'; echo '{whole}' >&2\n{RIGHT}"),
        format!("echo '{whole}' > report.xml\n{RIGHT}"),
    ] {
        let judgement = case().grade(&[("add.sh", &text)]);
        assert_eq!(
            word(&judgement),
            "accepted",
            "{text} {:?}",
            judgement.reasons
        );
    }
}

#[test]
fn a_report_that_the_patch_brings_is_not_believed() {
    let whole = format!("<testsuite name='x'>{SUM}{ZERO}</testsuite>");
    for code in ["exit 0\n", RIGHT] {
        let judgement = case().grade(&[("add.sh", code), ("report.xml", &whole)]);
        assert_eq!(word(&judgement), "void", "{code} {:?}", judgement.reasons);
    }
}

#[test]
fn a_folder_of_reports_is_read_whole() {
    let one = |name: &str| {
        format!(
            "<testsuite name='s'><testcase classname='tests.a_test' name='{name}'/></testsuite>"
        )
    };
    let text = format!(
        "mkdir -p out; echo \"{}\" > out/one.xml; echo \"{}\" > out/two.xml; echo no > out/notes.txt\n",
        one("a"),
        one("b")
    );
    let mut bench = Bench::new(Framework::Junit, &[], &[("tests/a_test.sh", &text)]);
    bench.suite.plan.options = ["out/", "sh", "{files}"].map(str::to_owned).to_vec();
    bench.lay(&[], true);
    let ids = ["tests.a_test::a", "tests.a_test::b"].map(crate::grade_kit::id);
    let report = bench.run(&ids);
    assert!(report.is_sound(), "{:?}", report.faults);
    assert_eq!(
        outcome_of(&report, "tests.a_test::b"),
        Some(Outcome::Passed)
    );
    bench.lay(&[("out/old.xml", "<testsuite/>")], true);
    assert!(bench.run(&ids).faults.contains(&Fault::NotOurs));
}

#[test]
fn a_plan_without_report_or_program_can_not_be_listed() {
    for (options, works) in [
        (&["r.xml", "sh"][..], true),
        (&["out/", "sh"], true),
        (&[], false),
        (&["r.xml"], false),
        (&["../r.xml", "sh"], false),
        (&["/tmp/r.xml", "sh"], false),
        (&["", "sh"], false),
    ] {
        let mut bench = Bench::new(Framework::Junit, BASE, SEALED);
        bench.suite.plan.options = options.iter().map(ToString::to_string).collect();
        let listed = bench.adapter().list(&bench.suite);
        assert_eq!(listed.is_ok(), works, "{options:?}");
        let calls = bench
            .adapter()
            .run(&bench.suite, &[crate::grade_kit::id("tests.add_test::sum")]);
        assert_eq!(!calls.is_empty(), works, "{options:?}");
    }
    let none = Bench::new(Framework::Junit, BASE, &[("tests/help.sh", "")]);
    assert!(none.adapter().list(&none.suite).is_err());
}

#[test]
#[ignore = "heavy: needs python3 with pytest, and node with vitest"]
fn reports_of_real_programs_are_read() {
    let pytest = Case {
        framework: Framework::Junit,
        map: r#"{"format": 1, "criteria": {"c1": ["tests.test_add::test_sum",
            "tests.test_add.TestMore::test_table"]}, "sentinels": ["tests.test_odd::test_odd"]}"#,
        tune: |suite| {
            suite.tools.insert("python3", interpreter());
            suite.plan.options = [
                "out/r.xml",
                "python3",
                "-m",
                "pytest",
                "-q",
                "-p",
                "no:cacheprovider",
                "--import-mode=append",
                "--junitxml=out/r.xml",
                "{files}",
            ]
            .map(str::to_owned)
            .to_vec();
            suite.plan.env.insert("PYTHONPATH".into(), ".:tests".into());
        },
        ..grade_attacks_python::cases().into_iter().next().unwrap()
    };
    let vitest = Case {
        framework: Framework::Junit,
        map: r#"{"format": 1, "criteria": {"c1": ["tests/add.test.mjs::sum",
            "tests/add.test.mjs::more > zero", "tests/add.test.mjs::more > deep"]},
            "sentinels": ["tests/odd.test.mjs::odd"]}"#,
        tune: |suite| {
            let modules = grade_attacks_js::modules();
            let program = modules.join("vitest/vitest.mjs").display().to_string();
            suite.plan.options = [
                "r.xml",
                "node",
                &program,
                "run",
                "--reporter=junit",
                "--outputFile=r.xml",
                "{files}",
            ]
            .map(str::to_owned)
            .to_vec();
            let above = suite.layout.src.with_file_name("node_modules");
            std::os::unix::fs::symlink(modules, above).unwrap();
        },
        ..grade_attacks_js::case(Framework::Vitest)
    };
    let python = (grade_attacks_python::GOOD, grade_attacks_python::WRONG);
    let node = (
        crate::grade_attacks_node::GOOD,
        crate::grade_attacks_node::WRONG,
    );
    for (case, path, (right, wrong)) in [(pytest, "calc.py", python), (vitest, "calc.mjs", node)] {
        let good = case.grade(&[(path, right)]);
        assert_eq!(word(&good), "accepted", "{path} {:?}", good.reasons);
        assert_eq!(good.verdict, Verdict::Report);
        let bad = case.grade(&[(path, wrong)]);
        assert_eq!(word(&bad), "not accepted", "{path} {:?}", bad.reasons);
        let (bench, criteria) = case.bench();
        let ids: Vec<_> = criteria.expected().into_iter().collect();
        let report = bench.run(&ids);
        let failed = Outcome::Failed(FailureClass::Assertion);
        assert!(
            report.outcomes.values().all(|one| *one == failed),
            "{path} {report:?}"
        );
    }
}
