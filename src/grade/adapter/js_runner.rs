//! What mocha, jest and vitest do alike as adapters: one script of ours starts the framework from where
//! `prepare` left it, with the configuration that it says, and tells outcomes over descriptor 3.

use super::js::RunnerPackage;
use super::js_names::Dialect;
use super::{Adapter, Company, Listing, Missing, Proposal, Sides, Unlistable, js, js_package};
use crate::grade::call::{Call, Layout, Raw, Script, Tool};
use crate::grade::manifest::Tree;
use crate::grade::report::RunReport;
use crate::grade::suite::Suite;
use crate::model::outcome::{TestId, Verdict};
use crate::model::plan::{Framework, Plan};
use std::collections::BTreeSet;
use std::ffi::OsString;

const COMMON: &str = "common.cjs";

/// What one of them does in its own way.
pub(super) trait JsRunner: Sync {
    /// Which one.
    const FRAMEWORK: Framework;
    /// Its package.
    const PACKAGE: RunnerPackage;
    /// How a developer runs everything.
    const VERIFY: &'static str;
    /// Where tests lie by habit.
    const TESTS: &'static [&'static str];
    /// Globs of paths that would bend the runner.
    const PROTECTED: &'static [&'static str];
    /// Its words.
    const DIALECT: &'static Dialect;
    /// Options of Node.
    const NODE: &'static [&'static str];
    /// Our files by name and text; the first is started.
    const SCRIPTS: &'static [(&'static str, &'static str)];
    /// Whether all files share one process. Else a file is loaded with a sentinel's in pairs.
    const ONE_PROCESS: bool;

    /// Whether a sealed file holds tests.
    fn is_test_file(&self, suite: &Suite, path: &str) -> bool;
}

/// Makes an adapter of a runner.
#[derive(Debug)]
pub(super) struct Js<R>(pub(super) R);

impl<R: JsRunner> Js<R> {
    /// One start. `first` is a file that is loaded in the process of the others before them.
    fn start(suite: &Suite, ids: &[TestId], files: &[&str], first: Option<&str>) -> Call {
        let layout = &suite.layout;
        let mut argv: Vec<OsString> = vec![suite.tools.path("node").into()];
        argv.extend(R::NODE.iter().map(OsString::from));
        let script = R::SCRIPTS.first().map_or("", |(name, _)| name);
        argv.push(layout.runners.join(script).into());
        let mut call = suite.call(argv, ids, suite.timeout());
        call.channel = true;
        let inside = |path: &str| suite.inside(path).to_string_lossy().into_owned();
        call.stdin = serde_json::json!({
            "nonce": call.nonce,
            "root": layout.src.to_string_lossy(),
            "scratch": layout.scratch.to_string_lossy(),
            "modules": js::modules(suite),
            "scope": js::scope(suite),
            "files": files.iter().map(|file| inside(file)).collect::<Vec<_>>(),
            "first": first.map(inside),
            "options": suite.plan.options,
            "plugins": suite.plan.plugins,
        })
        .to_string()
        .into_bytes();
        call
    }
}

impl<R: JsRunner> Adapter for Js<R> {
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
        let package = js::package(tree)?;
        js::tests_by(&package, R::PACKAGE.name)
            .then(|| js::proposal(tree, &package, R::FRAMEWORK, R::VERIFY, R::TESTS))
    }

    fn tools(&self, _: &Plan) -> Vec<Tool> {
        vec![js::interpreter()]
    }

    fn scripts(&self, layout: &Layout) -> Vec<Script> {
        let shared = [
            (COMMON, include_str!("../runners/js_common.cjs")),
            (js::PREFLIGHT, js::PREFLIGHT_TEXT),
            (js::SCOPE, js::SCOPE_TEXT),
            (js::REQUEST, js::REQUEST_TEXT),
        ];
        let all = R::SCRIPTS.iter().chain(&shared);
        all.map(|(name, text)| Script {
            path: layout.runners.join(name),
            text,
        })
        .collect()
    }

    fn is_test_file(&self, suite: &Suite, path: &str) -> bool {
        self.0.is_test_file(suite, path)
    }

    fn file_of<'a>(&self, suite: &'a Suite, id: &TestId) -> Option<&'a str> {
        js::file_of(suite, id)
    }

    fn preflight(&self, suite: &Suite) -> Vec<Call> {
        vec![js::preflight(suite, Some(R::PACKAGE))]
    }

    fn read_preflight(&self, suite: &Suite, calls: &[(Call, Raw)]) -> Vec<Missing> {
        let missing =
            |(call, raw): &(Call, Raw)| js::read_preflight(suite, call, raw, Some(R::PACKAGE));
        calls.iter().flat_map(missing).collect()
    }

    fn defines_names(&self) -> &'static [&'static str] {
        &["package.json"]
    }

    fn redefined(&self, _: &Suite, sides: &Sides<'_>) -> BTreeSet<String> {
        js_package::redefined(sides)
    }

    fn list(&self, suite: &Suite) -> Result<Listing, Unlistable> {
        js::list(suite, R::DIALECT, |path| self.0.is_test_file(suite, path))
    }

    fn run(&self, suite: &Suite, ids: &[TestId]) -> Vec<Call> {
        let files = js::files_of(suite, ids);
        if files.is_empty() {
            return Vec::new();
        }
        vec![Self::start(suite, ids, &files, None)]
    }

    fn shares_process(&self) -> bool {
        R::ONE_PROCESS
    }

    fn company(
        &self,
        suite: &Suite,
        before: &[TestId],
        sentinels: &[TestId],
    ) -> Option<Vec<Company>> {
        let mut out = Vec::new();
        if R::ONE_PROCESS {
            // Tests run in the order in which their files are named.
            if !before.is_empty() {
                let ids = [before, sentinels].concat();
                let calls = self.run(suite, &ids).into_iter();
                out.extend(calls.map(|call| Company {
                    ids: ids.clone(),
                    call,
                }));
            }
            return Some(out);
        }
        for first in js::files_of(suite, before) {
            for file in js::files_of(suite, sentinels) {
                let lies_in = |id: &&TestId, file| js::file_of(suite, id) == Some(file);
                let asked = before.iter().filter(|id| lies_in(id, first));
                let wrong = sentinels.iter().filter(|id| lies_in(id, file));
                let ids: Vec<TestId> = asked.chain(wrong).cloned().collect();
                let call = Self::start(suite, &ids, &[file], Some(first));
                out.push(Company { ids, call });
            }
        }
        Some(out)
    }

    fn read(&self, suite: &Suite, ids: &[TestId], calls: &[(Call, Raw)]) -> RunReport {
        js::read(suite, ids, calls, R::ONE_PROCESS)
    }
}
