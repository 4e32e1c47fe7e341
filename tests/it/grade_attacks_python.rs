//! Patches that try to be accepted without being right, against pytest and unittest. Each runs the
//! real interpreter; the honest patch beside them must be accepted, the honest wrong one refused.

use crate::grade_kit::{Bench, CROSSCHECKED, Case, File, id, outcome_of, path_of, word};
use hangar::grade::suite::Suite;
use hangar::model::outcome::{FailureClass, Outcome};
use hangar::model::plan::Framework;
use std::os::unix::fs::PermissionsExt as _;

const BASE: &[File<'_>] = &[
    ("calc.py", "def add(a, b):\n    return 0\n"),
    ("requirements.txt", "PyYAML\n"),
    ("tests/helper.py", "FIVE = 5\n"),
    ("tests/other.py", "FIVE = 5\n"),
];
const PYTEST: &[File<'_>] = &[
    (
        "tests/test_add.py",
        "import pytest\nfrom calc import add\nfrom helper import FIVE\nfrom tests.other import FIVE as SAME\nassert SAME == FIVE\n\n\
         def test_sum():\n    assert add(2, 3) == FIVE\n\n\
         class TestMore:\n    @pytest.mark.parametrize('a,b,c', [(1, 1, 2), (7, 0, 7)])\n    \
         def test_table(self, a, b, c):\n        assert add(a, b) == c\n",
    ),
    (
        "tests/test_odd.py",
        "from calc import add\n\ndef test_odd():\n    assert add(40, 2) == 9177\n",
    ),
];
const UNITTEST: &[File<'_>] = &[
    (
        "tests/test_add.py",
        "import unittest\nfrom calc import add\nfrom helper import FIVE\nfrom tests.other import FIVE as SAME\nassert SAME == FIVE\n\n\
         class Sum(unittest.TestCase):\n    def test_sum(self):\n        \
         self.assertEqual(add(2, 3), FIVE)\n\n\
         class More(unittest.TestCase):\n    def test_table(self):\n        \
         for a, b, c in [(1, 1, 2), (7, 0, 7)]:\n            with self.subTest(a=a):\n                \
         self.assertEqual(add(a, b), c)\n",
    ),
    (
        "tests/test_odd.py",
        "import unittest\nfrom calc import add\n\n\
         class Odd(unittest.TestCase):\n    def test_odd(self):\n        \
         self.assertEqual(add(40, 2), 9177)\n",
    ),
];
const PYTEST_MAP: &str = r#"{"format": 1, "criteria": {"c1":
    ["tests/test_add.py::test_sum", "tests/test_add.py::TestMore::test_table"]},
    "sentinels": ["tests/test_odd.py::test_odd"]}"#;
const UNITTEST_MAP: &str = r#"{"format": 1, "criteria": {"c1":
    ["tests/test_add.py::Sum::test_sum", "tests/test_add.py::More::test_table"]},
    "sentinels": ["tests/test_odd.py::Odd::test_odd"]}"#;

pub(crate) const GOOD: &str = "def add(a, b):\n    return a + b\n";
pub(crate) const WRONG: &str = "def add(a, b):\n    return a - b\n";

/// The interpreter that has pytest: `HANGAR_TEST_PYTHON`, or the first `python3`.
pub(crate) fn interpreter() -> std::path::PathBuf {
    std::env::var_os("HANGAR_TEST_PYTHON").map_or_else(|| path_of("python3"), Into::into)
}

fn tune(suite: &mut Suite) {
    suite.tools.insert("python3", interpreter());
    suite.plan.verdict = CROSSCHECKED;
}

pub(crate) fn cases() -> [Case<'static>; 2] {
    [
        Case {
            framework: Framework::Pytest,
            base: BASE,
            sealed: PYTEST,
            map: PYTEST_MAP,
            tune,
        },
        Case {
            framework: Framework::Unittest,
            base: BASE,
            sealed: UNITTEST,
            map: UNITTEST_MAP,
            tune,
        },
    ]
}

/// Wrong code that does `extra` when it is imported.
fn wrong_and(extra: &str) -> String {
    format!("{extra}\n{WRONG}")
}

fn refused(patch: &[File<'_>], allowed: &[&str]) {
    for case in cases() {
        let judgement = case.grade(patch);
        let word = word(&judgement);
        assert!(
            allowed.contains(&word),
            "{} gave {word} {:?}",
            case.framework,
            judgement.reasons
        );
    }
}

#[test]
#[ignore = "heavy: needs python3 with pytest"]
fn the_honest_patch_is_accepted_and_the_wrong_one_is_not() {
    for case in cases() {
        let good = case.grade(&[("calc.py", GOOD)]);
        assert_eq!(word(&good), "accepted", "{} {:?}", case.framework, good);
        assert_eq!(good.verdict, CROSSCHECKED);
        let wrong = case.grade(&[("calc.py", WRONG)]);
        assert_eq!(word(&wrong), "not accepted", "{:?}", wrong.reasons);
        assert_eq!(wrong.counts.failed, 2);
        let none = case.grade(&[]);
        assert_eq!(word(&none), "not accepted");
    }
}

#[test]
#[ignore = "heavy: needs python3 with pytest"]
fn configuration_of_the_patch_is_not_read() {
    let bent = "import pytest\n\
        @pytest.hookimpl(hookwrapper=True)\n\
        def pytest_runtest_makereport(item, call):\n    \
        out = yield\n    report = out.get_result()\n    report.outcome = 'passed'\n";
    let files = [
        ("calc.py", WRONG),
        ("bent.py", bent),
        ("pytest.ini", "[pytest]\naddopts = -p bent\n"),
        ("tox.ini", "[pytest]\naddopts = -p bent -k none\n"),
        ("setup.cfg", "[tool:pytest]\naddopts = -p bent\n"),
        (
            "pyproject.toml",
            "[tool.pytest.ini_options]\naddopts = '-p bent'\n",
        ),
        ("sitecustomize.py", "import os\nos._exit(0)\n"),
        ("usercustomize.py", "import os\nos._exit(0)\n"),
    ];
    refused(&files, &["not accepted"]);
    let mut honest = files;
    honest[0].1 = GOOD;
    for case in cases() {
        let judgement = case.grade(&honest);
        assert_eq!(word(&judgement), "accepted", "{:?}", judgement.reasons);
    }
}

#[test]
#[ignore = "heavy: needs python3 with pytest"]
fn modules_of_the_patch_shadow_nothing_of_the_runner() {
    let fake = "import os\nprint('2 passed')\nos._exit(0)\n";
    let mut files = vec![("calc.py", GOOD)];
    for name in [
        "pytest.py",
        "json.py",
        "_json.py",
        "_pytest/__init__.py",
        "unittest/__init__.py",
        "pluggy.py",
        "difflib.py",
        "ast.py",
        "traceback.py",
        "asyncio.py",
        "src/json.py",
    ] {
        files.push((name, fake));
    }
    for case in cases() {
        let judgement = case.grade(&files);
        assert_eq!(word(&judgement), "accepted", "{:?}", judgement.reasons);
        files[0].1 = WRONG;
        assert_eq!(word(&case.grade(&files)), "not accepted");
        files[0].1 = GOOD;
    }
}

#[test]
#[ignore = "heavy: needs python3 with pytest"]
fn modules_of_the_patch_shadow_no_helper_of_the_tests() {
    // WRONG gives -1 for the sum.
    let files = [
        ("calc.py", WRONG),
        ("helper.py", "FIVE = -1\n"),
        ("src/helper.py", "FIVE = -1\n"),
        ("tests.py", "__path__ = ['bent']\n"),
        ("bent/other.py", "FIVE = -1\n"),
        ("src/tests/__init__.py", ""),
        ("src/tests/other.py", "FIVE = -1\n"),
    ];
    for case in cases() {
        let judgement = case.grade(&files);
        assert_eq!(judgement.counts.failed, 2, "{:?}", judgement.reasons);
        let mut honest = files;
        honest[0].1 = GOOD;
        assert_eq!(word(&case.grade(&honest)), "accepted");
    }
}

#[test]
#[ignore = "heavy: needs python3 with pytest"]
fn leaving_early_is_never_a_pass() {
    for exit in [
        "import os\nos._exit(0)",
        "import os\nprint('2 passed in 0.01s')\nos._exit(0)",
        "import sys\nsys.exit(0)",
        "raise SystemExit(0)",
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    ] {
        refused(&[("calc.py", &wrong_and(exit))], &["void", "not accepted"]);
    }
    let in_the_test = "import os\ndef add(a, b):\n    os._exit(0)\n";
    refused(&[("calc.py", in_the_test)], &["void"]);
}

#[test]
#[ignore = "heavy: needs python3 with pytest"]
fn a_status_flipped_at_exit_changes_nothing() {
    let flip = "import atexit, os\natexit.register(lambda: os._exit(0))";
    refused(&[("calc.py", &wrong_and(flip))], &["not accepted"]);
    let replaced = "import os, sys\nos._exit = lambda code: None\nsys.exit = lambda code=0: None";
    refused(&[("calc.py", &wrong_and(replaced))], &["not accepted"]);
    // The same in right code does no harm.
    for case in cases() {
        let good = format!("import atexit, os\natexit.register(lambda: os._exit(9))\n{GOOD}");
        assert_eq!(word(&case.grade(&[("calc.py", &good)])), "accepted");
    }
}

#[test]
#[ignore = "heavy: needs python3 with pytest"]
fn skips_and_expected_failures_raised_by_the_code_are_no_pass() {
    for raise in [
        "import unittest\n    raise unittest.SkipTest('x')",
        "import pytest\n    pytest.skip('x')",
        "import pytest\n    pytest.xfail('x')",
    ] {
        let text = format!("def add(a, b):\n    {raise}\n");
        refused(&[("calc.py", &text)], &["not accepted"]);
    }
    let at_import = "import unittest\nraise unittest.SkipTest('x')\n";
    refused(&[("calc.py", at_import)], &["not accepted"]);
}

#[test]
#[ignore = "heavy: needs python3 with pytest"]
fn patched_frameworks_are_caught_by_the_sentinel() {
    let pytest_reports = "try:\n    from _pytest.reports import TestReport\n    \
        old = TestReport.from_item_and_call.__func__\n    \
        def new(cls, item, call):\n        report = old(cls, item, call)\n        \
        report.outcome = 'passed'\n        report.longrepr = None\n        return report\n    \
        TestReport.from_item_and_call = classmethod(new)\nexcept ImportError:\n    pass\n\
        import unittest\nfor name in ('assertEqual',):\n    \
        setattr(unittest.TestCase, name, lambda *a, **k: None)\n";
    refused(&[("calc.py", &wrong_and(pytest_reports))], &["void"]);
    let no_exception = "try:\n    from _pytest.runner import CallInfo\n    \
        old = CallInfo.from_call.__func__\n    \
        def new(cls, func, when, reraise=None):\n        \
        call = old(cls, func, when, reraise)\n        \
        call.excinfo = None\n        call._result = None\n        return call\n    \
        CallInfo.from_call = classmethod(new)\nexcept ImportError:\n    pass\n\
        import unittest.case\nunittest.case.TestCase._callTestMethod = lambda self, method: None\n";
    refused(&[("calc.py", &wrong_and(no_exception))], &["void"]);
    let equal = "class Any:\n    def __eq__(self, other):\n        return True\n    \
        __hash__ = None\ndef add(a, b):\n    return Any()\n";
    refused(&[("calc.py", equal)], &["void"]);
    let stack = "import sys, linecache, re\ndef add(a, b):\n    \
        for depth in range(1, 12):\n        \
        try:\n            frame = sys._getframe(depth)\n        \
        except ValueError:\n            break\n        \
        for value in (9177, 5, 2, 7):\n            \
        if value in frame.f_code.co_consts:\n                return value\n    return 0\n";
    refused(&[("calc.py", stack)], &["void", "not accepted"]);
}

/// Cases whose sentinel touches nothing of the project.
fn apart(case: &Case<'_>, run: impl Fn(&Case<'_>)) {
    let odd = "import unittest\n\nclass Odd(unittest.TestCase):\n    def test_odd(self):\n        \
               self.assertEqual(40 + 2, 9177)\n";
    let sealed = [case.sealed[0], ("tests/test_odd.py", odd)];
    let map = case
        .map
        .replace("odd.py::test_odd", "odd.py::Odd::test_odd");
    run(&Case {
        framework: case.framework,
        base: case.base,
        sealed: &sealed,
        map: &map,
        tune: case.tune,
    });
}

#[test]
#[ignore = "heavy: needs python3 with pytest"]
fn a_sentinel_that_touches_nothing_meets_what_the_tests_called() {
    let bend = "import unittest\n    \
        unittest.TestCase._getAssertEqualityFunc = lambda *a: lambda *b, **k: None\n    ";
    let text = format!("def add(a, b):\n    {bend}return 0\n");
    let unittest = &cases()[1];
    apart(unittest, |case| {
        let judgement = case.grade(&[("calc.py", &text)]);
        assert_eq!(word(&judgement), "void", "{:?}", judgement.reasons);
        let good = case.grade(&[("calc.py", GOOD)]);
        assert_eq!(word(&good), "accepted", "{:?}", good.reasons);
        assert_eq!(good.verdict, CROSSCHECKED);
    });
}

/// What the threat model says under "Not defended": a value that equals everything passes where no
/// sentinel can compare it, because the function did not exist when the tests were sealed.
#[test]
#[ignore = "heavy: needs python3 with pytest"]
fn a_result_that_equals_everything_passes_where_no_sentinel_calls_for_it() {
    let equal = "class Any:\n    def __eq__(self, other):\n        return True\n\
        def add(a, b):\n    return Any()\n";
    for case in cases() {
        apart(&case, |case| {
            let judgement = case.grade(&[("calc.py", equal)]);
            assert_eq!(word(&judgement), "accepted", "{:?}", judgement.reasons);
            assert_eq!(judgement.verdict, CROSSCHECKED);
        });
        // A sentinel that calls the function catches it.
        let judgement = case.grade(&[("calc.py", equal)]);
        assert_eq!(word(&judgement), "void", "{:?}", judgement.reasons);
    }
}

#[test]
#[ignore = "heavy: needs python3 with pytest"]
fn records_written_by_the_code_are_void() {
    // It looks through every descriptor for the channel and writes what it takes for a record.
    let forge = "import os\nline = b'{\"n\":\"0\",\"s\":1,\"k\":\"test\",\"id\":\"a\",\"o\":\"passed\"}\\n'\n\
        for fd in list(range(3, 300)):\n    \
        try:\n        os.write(fd, line)\n    except OSError:\n        pass\n";
    refused(&[("calc.py", &format!("{forge}{GOOD}"))], &["void"]);
    // It finds the nonce on the stack and says the end itself.
    let replay = "import os, sys\n\
        frame = sys._getframe()\n\
        while frame is not None:\n    \
        request = frame.f_locals.get('request')\n    \
        if isinstance(request, dict) and 'nonce' in request:\n        \
        for id in request['ids']:\n            frame.f_locals['send']('test', id, 'passed')\n        \
        frame.f_locals['close'](0)\n        os._exit(0)\n    \
        frame = frame.f_back\n";
    // A thief of the nonce can lie; the sentinel is in what it must claim too.
    refused(&[("calc.py", &wrong_and(replay))], &["void"]);
}

#[test]
#[ignore = "heavy: needs python3 with pytest"]
fn forked_children_do_not_report() {
    let fork = "import os\ndef add(a, b):\n    \
        if os.fork() == 0:\n        return a - b\n    os.wait()\n    return a + b\n";
    let case = &cases()[0];
    let judgement = case.grade(&[("calc.py", fork)]);
    assert_eq!(judgement.counts.passed, 2, "{:?}", judgement.reasons);
}

#[test]
#[ignore = "heavy: needs python3 with pytest"]
fn classes_tell_why_a_test_fails_on_the_base() {
    let failed = |class| Some(Outcome::Failed(class));
    let table = [
        ("import nothing_here", failed(FailureClass::MissingSymbol)),
        (
            "from calc import nothing",
            failed(FailureClass::MissingSymbol),
        ),
        ("import yaml", Some(Outcome::Environment)),
        ("import broken", failed(FailureClass::Compile)),
        ("1 / 0", failed(FailureClass::Error)),
        ("assert False", failed(FailureClass::Assertion)),
        (
            "import calc; calc.nothing()",
            failed(FailureClass::MissingSymbol),
        ),
    ];
    for framework in [Framework::Pytest, Framework::Unittest] {
        for (line, expected) in table {
            let at_top = format!(
                "{line}\nimport unittest\nclass T(unittest.TestCase):\n    def test_x(self):\n        pass\n"
            );
            let inside = format!(
                "import unittest\nclass T(unittest.TestCase):\n    def test_x(self):\n        {line}\n"
            );
            for text in [at_top, inside] {
                let base = [BASE, &[("broken.py", "def (")]].concat();
                let mut bench = Bench::new(framework, &base, &[("tests/test_a.py", &text)]);
                tune(&mut bench.suite);
                bench.lay(&[], true);
                let ids = bench.list();
                assert_eq!(ids, [id("tests/test_a.py::T::test_x")]);
                let report = bench.run(&ids);
                assert_eq!(
                    outcome_of(&report, "tests/test_a.py::T::test_x"),
                    expected,
                    "{framework} {text}"
                );
                assert!(report.is_sound(), "{framework} {text} {:?}", report.faults);
            }
        }
    }
}

#[test]
#[ignore = "heavy: needs python3 with pytest"]
fn tests_are_listed_without_running_them() {
    let text = "raise SystemExit\nimport unittest\n\
        def test_a(): pass\n\
        def helper(): pass\n\
        if True:\n    async def test_b(): pass\n\
        class Mixin:\n    def test_c(self): pass\n\
        class TestX(Mixin):\n    def test_d(self): pass\n    class TestInner:\n        def test_e(self): pass\n\
        class TestInit:\n    def __init__(self): pass\n    def test_no(self): pass\n\
        class Y(Mixin, unittest.TestCase):\n    def test_f(self): pass\n\
        class TestOff:\n    __test__ = False\n    def test_no(self): pass\n";
    let names = |framework| {
        let mut bench = Bench::new(framework, BASE, &[("tests/test_a.py", text)]);
        tune(&mut bench.suite);
        bench.lay(&[], true);
        let ids = bench.list();
        ids.iter()
            .map(|id| {
                id.as_str()
                    .trim_start_matches("tests/test_a.py::")
                    .to_owned()
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names(Framework::Pytest),
        [
            "test_a",
            "test_b",
            "TestX::test_d",
            "TestX::test_c",
            "TestX::TestInner::test_e",
            "Y::test_f",
            "Y::test_c"
        ]
    );
    assert_eq!(names(Framework::Unittest), ["Y::test_f", "Y::test_c"]);
}

#[test]
#[ignore = "heavy: needs python3 with pytest"]
fn a_missing_runner_or_dependency_is_found_before_anything_else() {
    let base = [
        BASE,
        &[("tests/test_old.py", "import yaml\ndef test_x(): pass\n")],
    ]
    .concat();
    let bench = |python: &str| {
        let mut bench = Bench::new(Framework::Pytest, &base, &[]);
        tune(&mut bench.suite);
        if !python.is_empty() {
            bench.suite.tools.insert("python3", python);
        }
        bench.lay(&[], false);
        let done: Vec<_> = bench
            .adapter()
            .preflight(&bench.suite)
            .into_iter()
            .map(|call| {
                let raw = crate::grade_kit::execute(&call);
                (call, raw)
            })
            .collect();
        bench.adapter().read_preflight(&bench.suite, &done)
    };
    let missing = bench("");
    assert_eq!(missing.len(), 1, "{missing:?}");
    assert!(missing[0].what.contains("yaml"));
    assert!(
        missing[0]
            .remedy
            .contains("pip install -r requirements.txt")
    );
    // The same interpreter, without the packages that are installed for it.
    let dir = tempfile::tempdir().unwrap();
    let bare = dir.path().join("python3");
    let script = format!("#!/bin/sh\nexec {} -S \"$@\"\n", interpreter().display());
    crate::common::write(&bare, &script);
    let runs = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&bare, runs).unwrap();
    let missing = bench(bare.to_str().unwrap());
    assert_eq!(missing.len(), 1, "{missing:?}");
    assert_eq!(missing[0].what, "the test runner pytest is not installed");
    assert!(missing[0].remedy.contains(" pytest"), "{missing:?}");
}

#[test]
#[ignore = "heavy: needs python3 with pytest"]
fn a_run_that_does_not_end_fails_by_timeout() {
    for case in cases() {
        let (mut bench, criteria) = case.bench();
        bench.suite.plan.limits.timeout = 3;
        let hang = "import time\ndef add(a, b):\n    time.sleep(600)\n";
        bench.lay(&[("calc.py", hang)], true);
        let ids: Vec<_> = criteria.expected().into_iter().collect();
        let report = bench.run(&ids);
        assert!(report.is_sound() && report.cut, "{:?}", report.faults);
        let timeout = Outcome::Failed(FailureClass::Timeout);
        assert!(report.outcomes.values().all(|outcome| *outcome == timeout));
    }
}
