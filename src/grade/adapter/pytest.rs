//! `pytest`: our plugin takes outcomes from the exceptions and writes them to descriptor 3.
//! Ids: `tests/test_x.py::Class::test_y`, without parameters.

use super::python_runner::PythonRunner;
use super::{Proposal, python, python_proposal};
use crate::grade::call::{Layout, Script};
use crate::grade::manifest::Tree;
use crate::model::plan::Framework;

/// The adapter.
#[derive(Debug)]
pub(super) struct Pytest;

/// Whether some test file holds test functions outside a class: only pytest runs those.
fn has_test_functions(tree: Tree<'_>) -> bool {
    let files = tree.paths.iter();
    files
        .filter(|path| python::is_test_file(path))
        .take(20)
        .filter_map(|path| tree.text(path))
        .any(|text| {
            text.lines()
                .any(|line| line.starts_with("def test_") || line.starts_with("import pytest"))
        })
}

impl PythonRunner for Pytest {
    const FRAMEWORK: Framework = Framework::Pytest;
    const TESTS: &'static [&'static str] = &["tests/"];
    // pytest.ini, tox.ini, setup.cfg and pyproject.toml are not read (`-c` names our own file), the
    // root does not come before the installed packages, and `-I` switches sitecustomize of the tree
    // and PYTHON* off. What is left is conftest.py above the tests: it is loaded, so it stays base.
    const PROTECTED: &'static [&'static str] = &["**/conftest.py"];
    const SCRIPT: &'static str = concat!(
        include_str!("../runners/python_common.py"),
        include_str!("../runners/pytest_run.py")
    );
    const PACKAGE: Option<&'static str> = Some("pytest");
    const NOTHING_RAN: Option<i32> = Some(5);

    fn proposal(&self, tree: Tree<'_>) -> Option<Proposal> {
        let named = ["pytest.ini", "conftest.py", "tests/conftest.py"];
        let mentions =
            |path: &str, word: &str| tree.text(path).is_some_and(|text| text.contains(word));
        let uses = named.iter().any(|path| tree.has(path))
            || mentions("pyproject.toml", "pytest")
            || mentions("setup.cfg", "pytest")
            || mentions("tox.ini", "pytest")
            || tree
                .paths
                .iter()
                .any(|path| path.starts_with("requirements") && mentions(path, "pytest"))
            || has_test_functions(tree);
        uses.then(|| python_proposal::proposal(self, tree, "python -m pytest -q"))
    }

    fn beside(&self, layout: &Layout) -> Vec<Script> {
        vec![Script {
            path: layout.runners.join("pytest.ini"),
            text: include_str!("../runners/pytest.ini"),
        }]
    }

    fn environment(&self) -> &'static [(&'static str, &'static str)] {
        &[("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")]
    }
}
