//! What pytest and unittest do alike as adapters: one process, which runs the tests in the order that
//! is asked for.

use super::{Adapter, Company, Listing, Missing, Proposal, Unlistable, python};
use crate::grade::call::{Call, Layout, Raw, Script, Tool};
use crate::grade::manifest::Tree;
use crate::grade::report::RunReport;
use crate::grade::suite::Suite;
use crate::model::outcome::{TestId, Verdict};
use crate::model::plan::{Framework, Plan};

/// What one of them does in its own way.
pub(super) trait PythonRunner: Sync {
    /// Which one.
    const FRAMEWORK: Framework;
    /// Where tests lie by habit.
    const TESTS: &'static [&'static str];
    /// Globs of paths that would bend the runner.
    const PROTECTED: &'static [&'static str];
    /// Our runner, `run.py`.
    const SCRIPT: &'static str;
    /// The package that must be installed.
    const PACKAGE: Option<&'static str>;
    /// The status of a run in which nothing was left to run.
    const NOTHING_RAN: Option<i32>;

    /// What to write for a repository that looks as if it used this framework.
    fn proposal(&self, tree: Tree<'_>) -> Option<Proposal>;

    /// Files beside the runner.
    fn beside(&self, _layout: &Layout) -> Vec<Script> {
        Vec::new()
    }

    /// What the runner needs in its environment.
    fn environment(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }
}

fn call<R: PythonRunner>(
    runner: &R,
    suite: &Suite,
    mode: &str,
    ids: &[TestId],
    files: &[String],
) -> Call {
    let mut request = python::request(suite, mode, ids, files);
    let mut call = python::call(suite, "run.py", ids, suite.timeout(), &mut request);
    let environment = runner.environment().iter();
    call.env
        .extend(environment.map(|(name, value)| ((*name).into(), (*value).into())));
    call
}

impl<R: PythonRunner> Adapter for R {
    fn framework(&self) -> Framework {
        R::FRAMEWORK
    }

    fn protected(&self) -> &'static [&'static str] {
        R::PROTECTED
    }

    fn default_tests(&self) -> &'static [&'static str] {
        R::TESTS
    }

    fn ceiling(&self) -> Verdict {
        Verdict::Crosschecked
    }

    fn detect(&self, tree: Tree<'_>) -> Option<Proposal> {
        self.proposal(tree)
    }

    fn tools(&self, _: &Plan) -> Vec<Tool> {
        vec![python::interpreter()]
    }

    fn scripts(&self, layout: &Layout) -> Vec<Script> {
        let run = Script {
            path: layout.runners.join("run.py"),
            text: R::SCRIPT,
        };
        let mut scripts = vec![python::lister(layout), run];
        scripts.extend(self.beside(layout));
        scripts
    }

    fn is_test_file(&self, _: &Suite, path: &str) -> bool {
        python::is_test_file(path)
    }

    fn file_of<'a>(&self, suite: &'a Suite, id: &TestId) -> Option<&'a str> {
        python::file_of(suite, id)
    }

    fn preflight(&self, suite: &Suite) -> Vec<Call> {
        let tests = python::base_tests(suite);
        vec![call(self, suite, "collect", &[], &tests)]
    }

    fn read_preflight(&self, suite: &Suite, calls: &[(Call, Raw)]) -> Vec<Missing> {
        python::read_preflight(suite, calls, R::PACKAGE)
    }

    fn list(&self, suite: &Suite) -> Result<Listing, Unlistable> {
        let style = R::FRAMEWORK.to_string();
        Ok(Listing::Ask(python::list(suite, &style)))
    }

    fn read_list(&self, _: &Suite, call: &Call, raw: &Raw) -> Result<Vec<TestId>, Unlistable> {
        python::read_list(call, raw)
    }

    fn run(&self, suite: &Suite, ids: &[TestId]) -> Vec<Call> {
        if ids.is_empty() {
            return Vec::new();
        }
        vec![call(self, suite, "run", ids, &python::files_of(ids))]
    }

    fn shares_process(&self) -> bool {
        true
    }

    // One process loads every file before the first test runs, and runs tests in the order that is
    // asked for: the sentinels come last.
    fn company(
        &self,
        suite: &Suite,
        before: &[TestId],
        sentinels: &[TestId],
    ) -> Option<Vec<Company>> {
        if before.is_empty() {
            return Some(Vec::new());
        }
        let ids = [before, sentinels].concat();
        let calls = self.run(suite, &ids).into_iter();
        let company = calls.map(|call| Company {
            ids: ids.clone(),
            call,
        });
        Some(company.collect())
    }

    fn read(&self, suite: &Suite, ids: &[TestId], calls: &[(Call, Raw)]) -> RunReport {
        python::read(suite, ids, calls, R::NOTHING_RAN)
    }
}
