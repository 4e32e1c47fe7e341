//! A patch that changes what is installed: it is graded with the environment of the base, or, where the
//! plan allows it, with what it adds behind that.

use super::world::World;
use crate::common::git::commit_all;
use hangar::flow::drive::{Agents, drive};
use hangar::model::approval::Action;
use hangar::model::grade::Grade;
use std::path::Path;
use std::process::Command;

const CONFIG: &str = r#"
format = 1
[task]
flow = "test-first"
[grader]
framework = "unittest"
prepare = "pip install --no-index --find-links wheels -r requirements.txt"
tests = ["tests/"]
[deliver]
as = "branch"
branch = "hangar/{key}"
"#;
const TEST: &str = "\
import unittest, calc
class Sub(unittest.TestCase):
    def test_sub(self):
        self.assertEqual(calc.sub(5, 3), 2)
";
const MAP: &str = r#"{"format": 1, "criteria": {"c1": ["tests/test_sub.py::Sub::test_sub"]}, "others": [], "sentinels": [], "notes": ""}"#;
const HONEST: &str = "import helper\ndef sub(a, b): return a - b + helper.OFF - 1\n";
const BASE: &str = "import helper\ndef sub(a, b): return a - b + helper.OFF\n";

/// Makes a wheel of one module, as a zip file that pip takes.
fn wheel(folder: &Path, name: &str, version: u32, module: &str) {
    let make = "\
import sys, zipfile, pathlib
folder, name, version, text = sys.argv[1:]
pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
info = f'{name}-{version}.dist-info'
files = {
    f'{name}.py': text,
    f'{info}/METADATA': f'Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n',
    f'{info}/WHEEL': 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n',
}
files[f'{info}/RECORD'] = ''.join(f'{path},,\\n' for path in [*files, f'{info}/RECORD'])
with zipfile.ZipFile(f'{folder}/{name}-{version}-py3-none-any.whl', 'w') as made:
    for path, text in files.items():
        made.writestr(zipfile.ZipInfo(path), text)
";
    let args = [
        make,
        folder.to_str().unwrap(),
        name,
        &version.to_string(),
        module,
    ];
    let done = Command::new("python3").arg("-c").args(args).status();
    assert!(done.unwrap().success());
}

/// A task on a base whose environment has `helper` 1, and a first round that leaves what `change` puts
/// into the tree; the second round is honest.
fn refused(change: impl Fn(&World, &Path)) {
    let world = World::new(&[
        ("calc.py", BASE),
        ("requirements.txt", "helper\n"),
        ("hangar.toml", CONFIG),
    ]);
    let repo = world.repo_dir();
    wheel(&repo.join("wheels"), "helper", 1, "OFF = 1\n");
    commit_all(&repo, "The helper");
    for (path, text) in [("tests/test_sub.py", TEST), ("criteria.json", MAP)] {
        world.script("writer", &format!("writer/1/out/sealed/{path}"), text);
    }
    let tree = world.dir.path().join("coder/implementer/1/src");
    world.script("coder", "implementer/1/src/calc.py", BASE);
    change(&world, &tree);
    world.script("coder", "implementer/2/src/calc.py", HONEST);
    // What the first round left is taken back.
    world.script("coder", "implementer/2/src/requirements.txt", "helper\n");
    world.refused_once("Subtract", "calc.sub(5, 3) is 2");
}

#[test]
#[ignore = "heavy: python3 with venv and pip"]
fn another_version_of_a_dependency_is_not_installed() {
    refused(|world, tree| {
        wheel(&tree.join("wheels"), "helper", 2, "OFF = 0\n");
        world.script(
            "coder",
            "implementer/1/src/requirements.txt",
            "helper == 2\n",
        );
    });
}

#[test]
#[ignore = "heavy: python3 with venv and pip"]
fn a_dependency_with_the_name_of_the_runner_is_not_installed() {
    let runner = "import os\nclass TestCase: pass\ndef main(*_, **__): os._exit(0)\n";
    refused(|world, tree| {
        wheel(&tree.join("wheels"), "unittest", 9, runner);
        world.script(
            "coder",
            "implementer/1/src/requirements.txt",
            "helper\nunittest\n",
        );
    });
}

#[test]
#[ignore = "heavy: python3 with venv and pip"]
fn what_is_installed_can_not_be_changed_by_the_code_under_test() {
    refused(|world, _| {
        let poison = "\
import helper, pathlib, sys
for text in {helper.__file__, *sys.path}:
    try:
        path = pathlib.Path(text)
        path = path if path.suffix == '.py' else path / 'helper.py'
        path.write_text('OFF = 0\\n')
    except OSError:
        pass
def sub(a, b): return a - b + helper.OFF
";
        world.script("coder", "implementer/1/src/calc.py", poison);
    });
}

/// What becomes of a patch that leaves what `change` puts into the tree, with a plan that lets the step
/// run again or does not; then of the untouched base's own requirements. `test` is the hidden test.
fn graded(again: bool, test: &str, change: impl Fn(&World, &Path)) -> Grade {
    let config = CONFIG.replace("prepare = ", &format!("reprepare = {again}\nprepare = "));
    let world = World::new(&[
        ("calc.py", BASE),
        ("requirements.txt", "helper\n"),
        ("hangar.toml", &config),
    ]);
    let repo = world.repo_dir();
    wheel(&repo.join("wheels"), "helper", 1, "OFF = 1\n");
    commit_all(&repo, "The helper");
    for (path, text) in [("tests/test_sub.py", test), ("criteria.json", MAP)] {
        world.script("writer", &format!("writer/1/out/sealed/{path}"), text);
    }
    let tree = world.dir.path().join("coder/implementer/1/src");
    change(&world, &tree);
    let store = world.store();
    let id = world.task(&store, "Subtract", &["calc.sub(5, 3) is 2"]);
    let mut host = world.host();
    host.env = std::env::vars_os().collect();
    drive(&host, &store, &id, None, Agents::Start).unwrap();
    world.decide(&id, Action::Approve, "");
    // Where it goes on after a first grade is of no interest.
    let _ = drive(&host, &store, &id, None, Agents::Start);
    let report = hangar::flow::verify::verify(&store, &id, &[]).unwrap();
    assert!(report.faults.is_empty(), "{:?}", report.faults);
    store.dossier(&id).unwrap().grades[0].value().clone()
}

/// A patch that needs a package which the base lacks.
fn new_package(world: &World, tree: &Path) {
    wheel(
        &tree.join("wheels"),
        "minus",
        1,
        "def minus(a, b): return a - b\n",
    );
    let requirements = "helper\nminus\n";
    world.script("coder", "implementer/1/src/requirements.txt", requirements);
    let code = "import helper, minus\ndef sub(a, b): return minus.minus(a, b) + helper.OFF - 1\n";
    world.script("coder", "implementer/1/src/calc.py", code);
}

#[test]
#[ignore = "heavy: python3 with venv and pip"]
fn a_new_dependency_is_there_where_the_plan_allows_it() {
    let with = graded(true, TEST, new_package);
    assert!(with.accepted && with.reprepared, "{with:?}");
    let without = graded(false, TEST, new_package);
    assert!(!without.accepted && !without.reprepared, "{without:?}");
    // A patch that leaves the requirements alone has the base's packages and no others.
    let honest = |world: &World, _: &Path| {
        world.script("coder", "implementer/1/src/calc.py", HONEST);
    };
    let plain = graded(true, TEST, honest);
    assert!(plain.accepted && !plain.reprepared, "{plain:?}");
    // What can't be installed is a reason against the patch.
    let lost = graded(true, TEST, |world, _| {
        world.script("coder", "implementer/1/src/calc.py", HONEST);
        world.script(
            "coder",
            "implementer/1/src/requirements.txt",
            "helper\nnowhere\n",
        );
    });
    assert!(!lost.accepted && !lost.void, "{lost:?}");
    assert!(lost.reasons[0].contains("prepare"), "{lost:?}");
}

#[test]
#[ignore = "heavy: python3 with venv and pip"]
fn what_a_patch_installs_takes_no_place_of_what_the_base_has() {
    let newer = graded(true, TEST, |world, tree| {
        wheel(&tree.join("wheels"), "helper", 2, "OFF = 0\n");
        world.script("coder", "implementer/1/src/calc.py", BASE);
        world.script(
            "coder",
            "implementer/1/src/requirements.txt",
            "helper == 2\n",
        );
    });
    assert!(newer.reprepared && !newer.accepted, "{newer:?}");
    let runner = "import os\nclass TestCase: pass\ndef main(*_, **__): os._exit(0)\n";
    let taken = graded(true, TEST, |world, tree| {
        wheel(&tree.join("wheels"), "unittest", 9, runner);
        world.script("coder", "implementer/1/src/calc.py", BASE);
        world.script(
            "coder",
            "implementer/1/src/requirements.txt",
            "helper\nunittest\n",
        );
    });
    assert!(taken.reprepared && !taken.accepted, "{taken:?}");
    // What Python would run at its start, were it among the base's packages.
    let start = |code: &'static str| {
        move |world: &World, tree: &Path| {
            wheel(
                &tree.join("wheels"),
                "sitecustomize",
                1,
                "import os\nos._exit(0)\n",
            );
            world.script("coder", "implementer/1/src/calc.py", code);
            let requirements = "helper\nsitecustomize\n";
            world.script("coder", "implementer/1/src/requirements.txt", requirements);
        }
    };
    let early = graded(true, TEST, start(BASE));
    assert!(early.reprepared && !early.void, "{early:?}");
    assert_eq!(
        (early.accepted, early.counts.failed),
        (false, 1),
        "{early:?}"
    );
    let honest = graded(true, TEST, start(HONEST));
    assert!(honest.reprepared && honest.accepted, "{honest:?}");
}

#[test]
#[ignore = "heavy: python3 with venv and pip"]
fn tests_that_import_what_the_patch_installs_are_void() {
    let test = TEST.replace("import unittest, calc", "import unittest, calc, minus");
    let grade = graded(true, &test, new_package);
    assert!(grade.void && !grade.accepted, "{grade:?}");
    assert!(
        grade.reasons[0].contains("only the patch installs"),
        "{grade:?}"
    );
}
