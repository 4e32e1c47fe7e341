//! `pytest`: our plugin takes outcomes from the exceptions and writes them to descriptor 3.
//! Ids: `tests/test_x.py::Class::test_y`, without parameters.

use super::{Adapter, Company, Listing, Missing, Proposal, Unlistable, python};
use crate::grade::call::{Call, Layout, Raw, Script, Tool};
use crate::grade::manifest::Tree;
use crate::grade::report::RunReport;
use crate::grade::suite::Suite;
use crate::model::outcome::{TestId, Verdict};
use crate::model::plan::{Framework, Plan};

/// The adapter.
#[derive(Debug)]
pub(super) struct Pytest;

const RUN: &str = concat!(
    include_str!("../runners/python_common.py"),
    include_str!("../runners/pytest_run.py")
);
/// pytest's exit status when no test was collected.
const NOTHING_COLLECTED: i32 = 5;

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

impl Adapter for Pytest {
    fn framework(&self) -> Framework {
        Framework::Pytest
    }

    // pytest.ini, tox.ini, setup.cfg and pyproject.toml are not read (`-c` names our own file), the
    // root does not come before the installed packages, and `-I` switches sitecustomize of the tree
    // and PYTHON* off. What is left is conftest.py above the tests: it is loaded, so it stays base.
    fn protected(&self) -> &'static [&'static str] {
        &["**/conftest.py"]
    }

    fn default_tests(&self) -> &'static [&'static str] {
        &["tests/"]
    }

    fn ceiling(&self) -> Verdict {
        Verdict::Crosschecked
    }

    fn detect(&self, tree: Tree<'_>) -> Option<Proposal> {
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
        uses.then(|| python::proposal(self, tree, "python -m pytest -q"))
    }

    fn tools(&self, _: &Plan) -> Vec<Tool> {
        vec![python::interpreter()]
    }

    fn scripts(&self, layout: &Layout) -> Vec<Script> {
        vec![
            python::lister(layout),
            Script {
                path: layout.runners.join("run.py"),
                text: RUN,
            },
            Script {
                path: layout.runners.join("pytest.ini"),
                text: include_str!("../runners/pytest.ini"),
            },
        ]
    }

    fn is_test_file(&self, _: &Suite, path: &str) -> bool {
        python::is_test_file(path)
    }

    fn file_of<'a>(&self, suite: &'a Suite, id: &TestId) -> Option<&'a str> {
        python::file_of(suite, id)
    }

    fn preflight(&self, suite: &Suite) -> Vec<Call> {
        vec![run(suite, "collect", &[], &python::base_tests(suite))]
    }

    fn read_preflight(&self, suite: &Suite, calls: &[(Call, Raw)]) -> Vec<Missing> {
        python::read_preflight(suite, calls, Some("pytest"))
    }

    fn list(&self, suite: &Suite) -> Result<Listing, Unlistable> {
        Ok(Listing::Ask(python::list(suite, "pytest")))
    }

    fn read_list(&self, _: &Suite, call: &Call, raw: &Raw) -> Result<Vec<TestId>, Unlistable> {
        python::read_list(call, raw)
    }

    fn run(&self, suite: &Suite, ids: &[TestId]) -> Vec<Call> {
        if ids.is_empty() {
            return Vec::new();
        }
        vec![run(suite, "run", ids, &python::files_of(ids))]
    }

    fn company(
        &self,
        suite: &Suite,
        before: &[TestId],
        sentinels: &[TestId],
    ) -> Option<Vec<Company>> {
        Some(python::company(before, sentinels, |ids| {
            self.run(suite, ids)
        }))
    }

    fn read(&self, suite: &Suite, ids: &[TestId], calls: &[(Call, Raw)]) -> RunReport {
        python::read(suite, ids, calls, Some(NOTHING_COLLECTED))
    }
}

fn run(suite: &Suite, mode: &str, ids: &[TestId], files: &[String]) -> Call {
    let mut request = python::request(suite, mode, ids, files);
    let mut call = python::call(suite, "run.py", ids, suite.timeout(), &mut request);
    call.env
        .insert("PYTEST_DISABLE_PLUGIN_AUTOLOAD".into(), "1".into());
    call
}
