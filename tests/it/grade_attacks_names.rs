//! Patches that put code of their own in the place of a module of the tests, wherever Python looks for one:
//! each is wrong only as long as the tests' own modules are what the tests load.

use crate::grade_attacks_python::{GOOD, WRONG, interpreter};
use crate::grade_kit::{CROSSCHECKED, Case, File, word};
use hangar::grade::suite::Suite;
use hangar::model::plan::Framework;

fn tune(suite: &mut Suite) {
    suite.tools.insert("python3", interpreter());
    suite.plan.verdict = CROSSCHECKED;
}

fn nested(suite: &mut Suite) {
    tune(suite);
    suite.plan.tests = vec!["pkg/tests/".into()];
}

fn among(suite: &mut Suite) {
    tune(suite);
    suite.plan.tests = vec!["**/test_*.py".into(), "**/helper_*.py".into()];
}

/// Where the tests lie, how they call their helper, and what stands in its place.
struct Layout {
    tune: fn(&mut Suite),
    folder: &'static str,
    helper: &'static str,
    imports: &'static str,
    patch: &'static [File<'static>],
}

const BENT: &str = "def same(a, b): pass\n";

const LAYOUTS: &[Layout] = &[
    // A folder without `__init__.py` loses to any package of its name.
    Layout {
        tune,
        folder: "tests",
        helper: "tests/helpers/util.py",
        imports: "from helpers.util import same",
        patch: &[("helpers/__init__.py", ""), ("helpers/util.py", BENT)],
    },
    Layout {
        tune,
        folder: "tests",
        helper: "tests/helpers/util.py",
        imports: "from helpers.util import same",
        patch: &[
            (
                "helpers.py",
                "import os\n__path__ = [os.path.join(os.path.dirname(__file__), 'bent')]\n",
            ),
            ("bent/util.py", BENT),
        ],
    },
    // A package above the tests is the patch's, and says where its parts are.
    Layout {
        tune: nested,
        folder: "pkg/tests",
        helper: "pkg/tests/util.py",
        imports: "from pkg.tests.util import same",
        patch: &[
            (
                "pkg/tests.py",
                "import os\nhere = os.path.dirname(__file__)\n\
                 __path__ = [os.path.join(here, 'bent'), os.path.join(here, 'tests')]\n",
            ),
            ("pkg/bent/util.py", BENT),
        ],
    },
    Layout {
        tune: nested,
        folder: "pkg/tests",
        helper: "pkg/tests/util.py",
        imports: "from pkg.tests.util import same",
        patch: &[
            (
                "pkg/__init__.py",
                "import os\n__path__.insert(0, os.path.join(__path__[0], 'bent'))\n",
            ),
            ("pkg/bent/tests/__init__.py", ""),
            ("pkg/bent/tests/util.py", BENT),
        ],
    },
    // Tests among the code.
    Layout {
        tune: among,
        folder: "pkg",
        helper: "pkg/helper_same.py",
        imports: "from pkg.helper_same import same",
        patch: &[("pkg/helper_same/__init__.py", BENT)],
    },
    Layout {
        tune: among,
        folder: "pkg",
        helper: "pkg/helper_same.py",
        imports: "from pkg.helper_same import same",
        patch: &[
            (
                "pkg/__init__.py",
                "import os\n__path__.insert(0, os.path.join(__path__[0], 'bent'))\n",
            ),
            ("pkg/bent/helper_same.py", BENT),
        ],
    },
];

/// Code that puts itself first, when the tests load it.
const FIRST: &str = "\
import os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'bent'))
sys.path_importer_cache.clear()
for name in ('helpers', 'tests'):
    sys.modules.pop(name, None)
";

fn grade(layout: &Layout, framework: Framework, code: &str) -> &'static str {
    let Layout {
        folder, imports, ..
    } = layout;
    let (header, sum, odd) = match framework {
        Framework::Unittest => (
            "import unittest\n",
            "class Sum(unittest.TestCase):\n    def test_sum(self):\n        LATE\n        same(add(2, 3), 5)\n",
            "class Odd(unittest.TestCase):\n    def test_odd(self):\n        self.assertEqual(add(40, 2), 9177)\n",
        ),
        _ => (
            "",
            "class Sum:\n    pass\nclass TestSum:\n    def test_sum(self):\n        LATE\n        same(add(2, 3), 5)\n",
            "class TestOdd:\n    def test_odd(self):\n        assert add(40, 2) == 9177\n",
        ),
    };
    let sum = sum.replace("LATE", imports);
    let test = format!("{header}from calc import add\n\n{sum}");
    let sentinel = format!("{header}from calc import add\n\n{odd}");
    let (of_sum, of_odd) = match framework {
        Framework::Unittest => ("Sum", "Odd"),
        _ => ("TestSum", "TestOdd"),
    };
    let map = format!(
        r#"{{"format": 1, "criteria": {{"c1": ["{folder}/test_sum.py::{of_sum}::test_sum"]}},
            "sentinels": ["{folder}/test_odd.py::{of_odd}::test_odd"]}}"#
    );
    let (test_path, odd_path) = (
        format!("{folder}/test_sum.py"),
        format!("{folder}/test_odd.py"),
    );
    let sealed: [File<'_>; 3] = [
        (&test_path, &test),
        (&odd_path, &sentinel),
        (layout.helper, "def same(a, b): assert a == b, (a, b)\n"),
    ];
    let case = Case {
        framework,
        base: &[
            ("calc.py", "def add(a, b):\n    return 0\n"),
            ("pkg/__init__.py", ""),
        ],
        sealed: &sealed,
        map: &map,
        tune: layout.tune,
    };
    let patch = [layout.patch, &[("calc.py", code)]].concat();
    word(&case.grade(&patch))
}

#[test]
#[ignore = "heavy: needs python3 with pytest"]
fn no_file_of_the_patch_is_loaded_in_place_of_a_module_of_the_tests() {
    for layout in LAYOUTS {
        for framework in [Framework::Pytest, Framework::Unittest] {
            let said = |code: &str| grade(layout, framework, code);
            let patch = layout.patch;
            assert_eq!(said(WRONG), "not accepted", "{framework} {patch:?}");
            assert_eq!(said(GOOD), "accepted", "{framework} {patch:?}");
        }
    }
}

#[test]
#[ignore = "heavy: needs python3 with pytest"]
fn code_that_puts_its_own_folder_first_is_loaded_in_place_of_no_module_of_the_tests() {
    let layout = Layout {
        patch: &[
            ("bent/helpers/__init__.py", ""),
            ("bent/helpers/util.py", BENT),
        ],
        ..LAYOUTS[0]
    };
    for framework in [Framework::Pytest, Framework::Unittest] {
        let with = |code: &str| format!("{FIRST}{code}");
        assert_eq!(grade(&layout, framework, &with(WRONG)), "not accepted");
        assert_eq!(grade(&layout, framework, &with(GOOD)), "accepted");
    }
}

/// A plugin of the runner that the plan names and so protects.
const PLUGIN: &str = "\
import pytest
@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    return (yield)
";
/// One that lets everything pass but the sentinel.
const BENT_PLUGIN: &str = "\
import pytest
@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    try:
        return (yield)
    except AssertionError:
        if 'odd' in item.name:
            raise
";

fn with_plugin(suite: &mut Suite) {
    tune(suite);
    suite.plan.plugins = vec!["tools.plug".into()];
    suite.project.protected = vec!["tools/plug.py".into()];
}

#[test]
#[ignore = "heavy: needs python3 with pytest"]
fn no_file_of_the_patch_is_loaded_in_place_of_a_plugin() {
    let [pytest, _] = crate::grade_attacks_python::cases();
    let base = [pytest.base, &[("tools/plug.py", PLUGIN)]].concat();
    let case = Case {
        base: &base,
        tune: with_plugin,
        ..pytest
    };
    let grade = |code: &str| {
        let patch = [
            ("src/tools/__init__.py", ""),
            ("src/tools/plug.py", BENT_PLUGIN),
            ("calc.py", code),
        ];
        word(&case.grade(&patch))
    };
    assert_eq!(grade(WRONG), "not accepted");
    assert_eq!(grade(GOOD), "accepted");
}

/// Tests that lie as the code does, in folders of its names: what the code is called stays the code.
#[test]
#[ignore = "heavy: needs python3 with pytest"]
fn a_folder_of_tests_with_the_name_of_the_code_hides_none_of_it() {
    let cases: [(Framework, &[File<'_>], &str); 2] = [
        (
            Framework::Pytest,
            &[
                ("tests/test_all.py", "def test_true():\n    assert True\n"),
                (
                    "tests/pkg/test_sum.py",
                    "from pkg.util import add\n\ndef test_sum():\n    assert add(2, 3) == 5\n\n\
                     def test_odd():\n    assert add(40, 2) == 9177\n",
                ),
                ("tests/pkg/util.py", "add = None\n"),
            ],
            r#"{"format": 1, "criteria": {"c1": ["tests/pkg/test_sum.py::test_sum"]},
                "others": ["tests/test_all.py::test_true"],
                "sentinels": ["tests/pkg/test_sum.py::test_odd"]}"#,
        ),
        (
            Framework::Unittest,
            &[
                (
                    "tests/test_all.py",
                    "import unittest\nclass All(unittest.TestCase):\n    def test_true(self): pass\n",
                ),
                (
                    "tests/pkg/test_sum.py",
                    "import unittest\nfrom pkg.util import add\nclass Sum(unittest.TestCase):\n    \
                     def test_sum(self):\n        self.assertEqual(add(2, 3), 5)\n    \
                     def test_odd(self):\n        self.assertEqual(add(40, 2), 9177)\n",
                ),
                ("tests/pkg/util.py", "add = None\n"),
            ],
            r#"{"format": 1, "criteria": {"c1": ["tests/pkg/test_sum.py::Sum::test_sum"]},
                "others": ["tests/test_all.py::All::test_true"],
                "sentinels": ["tests/pkg/test_sum.py::Sum::test_odd"]}"#,
        ),
    ];
    for place in ["pkg", "src/pkg"] {
        let (package, module) = (format!("{place}/__init__.py"), format!("{place}/util.py"));
        for (framework, sealed, map) in cases {
            let case = Case {
                framework,
                base: &[(&package, ""), (&module, "def add(a, b):\n    return 0\n")],
                sealed,
                map,
                tune,
            };
            for (code, end) in [(GOOD, "accepted"), (WRONG, "not accepted")] {
                let judgement = case.grade(&[(&module, code)]);
                assert_eq!(
                    word(&judgement),
                    end,
                    "{framework} {place} {:?}",
                    judgement.reasons
                );
            }
        }
    }
}
