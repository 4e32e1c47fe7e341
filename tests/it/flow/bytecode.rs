//! Bytecode in place of a hidden test: Python runs what a cache holds without a look at the source where the
//! cache says so (PEP 552). The second round of each is the honest control.

use super::world::World;
use std::path::Path;
use std::process::Command;

const CONFIG: &str = r#"
format = 1
[task]
flow = "test-first"
[grader]
framework = "unittest"
tests = ["calc/test_*.py"]
BUILD
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
const MAP: &str = r#"{"format": 1, "criteria": {"c1": ["calc/test_sub.py::Sub::test_sub"]}, "others": [], "sentinels": [], "notes": ""}"#;
const HONEST: &str = "def sub(a, b): return a - b\n";
const WRONG: &str = "def sub(a, b): return a + b\n";

/// Leaves, in the folder where it is started, a cache of `calc/test_sub.py` that says nothing of its source.
const FORGE: &str = "\
import os, py_compile
os.makedirs('calc', exist_ok=True)
with open('calc/test_sub.py', 'w') as file:
    file.write('import unittest\\nclass Sub(unittest.TestCase):\\n    def test_sub(self): pass\\n')
py_compile.compile('calc/test_sub.py', invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
os.remove('calc/test_sub.py')
";

/// Runs a first round that leaves what `forge` puts into the tree and an honest second one; gives the reasons
/// against the first.
fn refused(build: &str, forge: impl Fn(&World, &Path)) -> Vec<String> {
    let world = World::new(&[
        ("calc/__init__.py", "def sub(a, b): return 0\n"),
        ("build.py", ""),
        ("hangar.toml", &CONFIG.replace("BUILD", build)),
    ]);
    for (path, text) in [("calc/test_sub.py", TEST), ("criteria.json", MAP)] {
        world.script("writer", &format!("writer/1/out/sealed/{path}"), text);
    }
    world.script("coder", "implementer/1/src/calc/__init__.py", WRONG);
    forge(&world, &world.dir.path().join("coder/implementer/1/src"));
    world.script("coder", "implementer/2/src/calc/__init__.py", HONEST);
    world.script("coder", "implementer/2/src/build.py", "");
    world
        .refused_once("Subtract", "calc.sub(5, 3) is 2")
        .reasons
}

#[test]
#[ignore = "heavy: needs python3"]
fn bytecode_of_the_patch_runs_for_no_hidden_test() {
    refused("", |_, tree| {
        let mut python = Command::new("python3");
        let done = python.args(["-c", FORGE]).current_dir(tree).status();
        assert!(done.unwrap().success());
        let left = std::fs::read_dir(tree.join("calc/__pycache__")).unwrap();
        assert_eq!(left.count(), 1);
    });
}

#[test]
#[ignore = "heavy: needs python3"]
fn bytecode_of_a_build_step_runs_for_no_hidden_test() {
    let reasons = refused("build = \"python3 build.py\"", |world, _| {
        world.script("coder", "implementer/1/src/build.py", FORGE);
    });
    assert!(
        reasons[0].contains("the build step changes 1 path"),
        "{reasons:?}"
    );
}
