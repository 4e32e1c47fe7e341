//! `unittest`: our runner loads the sealed files itself and writes outcomes to descriptor 3.
//! Ids: `tests/test_x.py::Class::test_y`.

use super::python_runner::PythonRunner;
use super::{Proposal, python, python_proposal};
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
        let is_in_folder = |path: &str| path.starts_with("tests/") || path.starts_with("test/");
        // Beside code of another language a test in Python is one of some tool.
        let others = ["CMakeLists.txt", "Makefile.PL", "pom.xml", "build.gradle"];
        let is_python = !others.iter().any(|file| tree.has(file));
        let uses = tree
            .paths
            .iter()
            .filter(|path| is_python || is_in_folder(path))
            .filter(|path| python::is_test_file(path))
            .take(20)
            .any(|path| {
                tree.text(path).is_some_and(|text| {
                    text.contains("import unittest")
                        || text.contains("from unittest")
                        || (text.contains("TestCase") && is_in_folder(path))
                })
            });
        uses.then(|| python_proposal::proposal(self, tree, "python -m unittest discover"))
    }
}
