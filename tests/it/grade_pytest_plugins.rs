//! Plugins of pytest that the plan does not name, and tests that pytest ends before their body ran.

use crate::grade_attacks_python::interpreter;
use crate::grade_kit::{Bench, File, id, outcome_of, write};
use hangar::grade::report::{Fault, RunReport};
use hangar::model::outcome::{FailureClass, Outcome};
use hangar::model::plan::Framework;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is installed beside pytest, and named by an entry point each: one plugin that is loaded where the plan
/// names it, one that bears the name of a plugin that runs coroutines.
const INSTALLED: &[File<'_>] = &[
    (
        "helper_mock/plugin.py",
        "import pytest\n@pytest.fixture(name='mocker')\ndef _mocker():\n    return 7\n",
    ),
    ("helper_mock/__init__.py", ""),
    ("pytest_asyncio/__init__.py", ""),
    ("pytest_asyncio/plugin.py", ""),
    (
        "helper_mock-1.dist-info/entry_points.txt",
        "[pytest11]\nhelper = helper_mock.plugin\nasyncio = pytest_asyncio.plugin\n",
    ),
    (
        "helper_mock-1.dist-info/METADATA",
        "Metadata-Version: 2.1\nName: helper-mock\nVersion: 1\n",
    ),
];

fn output(program: &Path, args: &[&str]) -> String {
    #[expect(clippy::disallowed_methods, reason = "a program of the test")]
    let output = Command::new(program).args(args).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// An interpreter that finds pytest, and these files beside it.
fn environment(folder: &Path, files: &[File<'_>]) -> PathBuf {
    let base = interpreter();
    let site = "import sysconfig; print(sysconfig.get_paths()['purelib'])";
    let with_pytest = "import os, pytest; print(os.path.dirname(os.path.dirname(pytest.__file__)))";
    let place = output(&base, &["-I", "-c", with_pytest]);
    let made = folder.to_str().unwrap();
    output(&base, &["-I", "-m", "venv", "--without-pip", made]);
    let python = folder.join("bin/python");
    let packages = PathBuf::from(output(&python, &["-I", "-c", site]));
    write(&packages.join("more.pth"), place.as_bytes(), false);
    for (path, text) in files {
        write(&packages.join(path), text.as_bytes(), false);
    }
    python
}

/// How the tests of one file end with these files installed and these plugins named.
fn run(text: &str, installed: &[File<'_>], plugins: &[&str]) -> RunReport {
    let folder = tempfile::tempdir().unwrap();
    let base: &[File<'_>] = &[("calc.py", "def add(a, b):\n    return 0\n")];
    let mut bench = Bench::new(Framework::Pytest, base, &[("tests/test_a.py", text)]);
    let python = environment(&folder.path().join("venv"), installed);
    bench.suite.tools.insert("python3", python);
    bench.suite.plan.plugins = plugins.iter().map(ToString::to_string).collect();
    bench.lay(&[], true);
    let ids = bench.list();
    bench.run(&ids)
}

fn name(test: &str) -> String {
    format!("tests/test_a.py::{test}")
}

#[test]
#[ignore = "heavy: needs python3 with pytest"]
fn a_plugin_that_is_installed_and_not_named_is_no_failure() {
    let text = "def test_x(mocker):\n    assert mocker == 7\n";
    let report = run(text, INSTALLED, &[]);
    assert_eq!(report.unloaded, ["helper_mock.plugin".to_owned()].into());
    let x = outcome_of(&report, &name("test_x"));
    assert_eq!(x, Some(Outcome::Environment), "{report:?}");
    assert!(report.is_sound(), "{report:?}");
    let report = run(text, INSTALLED, &["helper_mock.plugin"]);
    let x = outcome_of(&report, &name("test_x"));
    assert_eq!(x, Some(Outcome::Passed), "{report:?}");
    let text = "async def test_x():\n    assert True\n";
    let report = run(text, INSTALLED, &[]);
    assert_eq!(report.unloaded, ["pytest_asyncio.plugin".to_owned()].into());
}

#[test]
#[ignore = "heavy: needs python3 with pytest"]
fn what_never_ran_did_not_fail() {
    let text = "import pytest\ndef test_x(nothing):\n    assert False\n\
                async def test_y():\n    assert False\n\
                class TestZ:\n    async def test_z(self):\n        assert False\n\
                def test_ran():\n    assert False\n";
    let report = run(text, &[], &[]);
    let never = ["test_x", "test_y", "TestZ::test_z"].map(|test| id(&name(test)));
    let said: Vec<_> = report.not_run.keys().cloned().collect();
    let mut sorted = never.to_vec();
    sorted.sort();
    assert_eq!(said, sorted, "{report:?}");
    assert!(report.not_run[&never[0]].contains("`nothing`"));
    assert_eq!(report.faults, [Fault::Absent(3)].into(), "{report:?}");
    let ran = outcome_of(&report, &name("test_ran"));
    assert_eq!(ran, Some(Outcome::Failed(FailureClass::Assertion)));
}

#[test]
#[ignore = "heavy: needs python3 with pytest"]
fn a_fixture_that_the_patch_may_define_is_missing_code() {
    let report = run("def test_x(nothing):\n    pass\n", &[], &["calc"]);
    let missing = Outcome::Failed(FailureClass::MissingSymbol);
    assert_eq!(
        outcome_of(&report, &name("test_x")),
        Some(missing),
        "{report:?}"
    );
}

#[test]
#[ignore = "heavy: needs python3 with pytest"]
fn what_pytest_says_of_a_plugin_it_can_not_load_is_told() {
    let report = run("def test_x():\n    pass\n", &[], &["nothing_here"]);
    let said = report.broken.unwrap();
    assert!(
        said.contains("nothing_here") && said.contains("Error"),
        "{said}"
    );
}

#[test]
#[ignore = "heavy: needs python3 with pytest"]
fn only_an_assertion_of_the_body_fails_by_assertion() {
    let text = "import pytest\n\
                @pytest.fixture\ndef wrong():\n    assert False\n\
                @pytest.fixture\ndef late():\n    yield\n    assert False\n\
                @pytest.mark.xfail(strict=True)\ndef test_strict():\n    assert True\n\
                def test_fixture(wrong):\n    pass\n\
                def test_late(late):\n    pass\n\
                def test_body():\n    assert 1 == 2\n\
                def test_raises():\n    with pytest.raises(ValueError):\n        pass\n";
    let report = run(text, &[], &[]);
    let assertion = Some(Outcome::Failed(FailureClass::Assertion));
    let error = Some(Outcome::Failed(FailureClass::Error));
    for (test, expected) in [
        ("test_strict", error),
        ("test_fixture", error),
        ("test_late", error),
        ("test_body", assertion),
        ("test_raises", assertion),
    ] {
        let found = outcome_of(&report, &name(test));
        assert_eq!(found, expected, "{test} {report:?}");
    }
}
