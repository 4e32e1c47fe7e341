//! `unittest`: our runner loads the sealed files itself and writes outcomes to descriptor 3.
//! Ids: `tests/test_x.py::Class::test_y`.

use super::python_runner::PythonRunner;
use super::{Proposal, python};
use crate::grade::manifest::Tree;
use crate::model::plan::Framework;

/// The adapter.
#[derive(Debug)]
pub(super) struct Unittest;

impl PythonRunner for Unittest {
    const FRAMEWORK: Framework = Framework::Unittest;
    const TESTS: &'static [&'static str] = &["tests/", "test/"];
    // unittest has no configuration, and `-I` switches what Python itself would read off.
    const PROTECTED: &'static [&'static str] = &[];
    const SCRIPT: &'static str = concat!(
        include_str!("../runners/python_common.py"),
        include_str!("../runners/unittest_run.py")
    );
    const PACKAGE: Option<&'static str> = None;
    const NOTHING_RAN: Option<i32> = None;

    fn proposal(&self, tree: Tree<'_>) -> Option<Proposal> {
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
}
