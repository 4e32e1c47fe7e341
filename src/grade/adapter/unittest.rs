//! `unittest`: our runner loads the sealed files itself and writes outcomes to descriptor 3.
//! Ids: `tests/test_x.py::Class::test_y`.

use super::{Adapter, Company, Listing, Missing, Proposal, Unlistable, python};
use crate::grade::call::{Call, Layout, Raw, Script, Tool};
use crate::grade::manifest::Tree;
use crate::grade::report::RunReport;
use crate::grade::suite::Suite;
use crate::model::outcome::{TestId, Verdict};
use crate::model::plan::{Framework, Plan};

/// The adapter.
#[derive(Debug)]
pub(super) struct Unittest;

const RUN: &str = concat!(
    include_str!("../runners/python_common.py"),
    include_str!("../runners/unittest_run.py")
);

impl Adapter for Unittest {
    fn framework(&self) -> Framework {
        Framework::Unittest
    }

    // unittest has no configuration, and `-I` switches what Python itself would read off.
    fn protected(&self) -> &'static [&'static str] {
        &[]
    }

    fn default_tests(&self) -> &'static [&'static str] {
        &["tests/", "test/"]
    }

    fn ceiling(&self) -> Verdict {
        Verdict::Crosschecked
    }

    fn detect(&self, tree: Tree<'_>) -> Option<Proposal> {
        let folder = |path: &&String| path.starts_with("tests/") || path.starts_with("test/");
        let uses = tree
            .paths
            .iter()
            .filter(folder)
            .filter(|path| python::is_test_file(path))
            .take(20)
            .any(|path| {
                tree.text(path).is_some_and(|text| {
                    text.contains("import unittest") || text.contains("TestCase")
                })
            });
        uses.then(|| python::proposal(self, tree, "python -m unittest discover"))
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
        python::read_preflight(suite, calls, None)
    }

    fn list(&self, suite: &Suite) -> Result<Listing, Unlistable> {
        Ok(Listing::Ask(python::list(suite, "unittest")))
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
        python::read(suite, ids, calls, None)
    }
}

fn run(suite: &Suite, mode: &str, ids: &[TestId], files: &[String]) -> Call {
    let mut request = python::request(suite, mode, ids, files);
    python::call(suite, "run.py", ids, suite.timeout(), &mut request)
}
