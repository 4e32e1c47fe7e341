//! `node`: `node --test`. Each file runs in a process of its own; our reporter runs in the runner's
//! process, where the code under test is never loaded, and writes outcomes to descriptor 3.
//! Ids: `file > describe > test`.

use super::js_names::NODE;
use super::{Adapter, Company, Listing, Missing, Proposal, Sides, Unlistable, js, js_package};
use crate::grade::call::{Call, Layout, Raw, Script, Tool};
use crate::grade::manifest::Tree;
use crate::grade::report::RunReport;
use crate::grade::suite::Suite;
use crate::model::outcome::{TestId, Verdict};
use crate::model::plan::{Framework, Plan};
use std::collections::BTreeSet;
use std::ffi::OsString;

/// The adapter.
#[derive(Debug)]
pub(super) struct Node;

const REPORTER: &str = "report.mjs";
const FIRST: &str = "first.mjs";
/// Names the file that is loaded before the one that runs.
const FIRST_VARIABLE: &str = "FIRST";

impl Adapter for Node {
    fn framework(&self) -> Framework {
        Framework::Node
    }

    // `node --test` reads no configuration of the tree, and neither npm nor a package script takes
    // part, so package.json and .npmrc bend nothing. A package laid into the tree would stand in
    // for one that the tests import.
    fn protected(&self) -> &'static [&'static str] {
        js::protected!()
    }

    fn default_tests(&self) -> &'static [&'static str] {
        &["test/", "tests/"]
    }

    fn ceiling(&self) -> Verdict {
        Verdict::Crosschecked
    }

    fn detect(&self, tree: Tree<'_>) -> Option<Proposal> {
        let package = js::package(tree)?;
        let other = ["jest", "vitest", "mocha", "ava"];
        let script = package["scripts"]["test"].as_str().unwrap_or_default();
        let uses = script.contains("node --test")
            || script.contains("node:test")
            || (!other.iter().any(|name| script.contains(name))
                && tree.paths.iter().any(|path| js::is_test_name(path)));
        let folders = self.default_tests();
        uses.then(|| js::proposal(tree, &package, Framework::Node, "node --test", folders))
    }

    fn tools(&self, _: &Plan) -> Vec<Tool> {
        vec![js::interpreter()]
    }

    fn scripts(&self, layout: &Layout) -> Vec<Script> {
        vec![
            Script {
                path: layout.runners.join(REPORTER),
                text: include_str!("../runners/node_report.mjs"),
            },
            Script {
                path: layout.runners.join(FIRST),
                text: include_str!("../runners/node_first.mjs"),
            },
            Script {
                path: layout.runners.join(js::PREFLIGHT),
                text: js::PREFLIGHT_TEXT,
            },
            Script {
                path: layout.runners.join(js::SCOPE),
                text: js::SCOPE_TEXT,
            },
            Script {
                path: layout.runners.join(js::REQUEST),
                text: js::REQUEST_TEXT,
            },
        ]
    }

    fn is_test_file(&self, _: &Suite, path: &str) -> bool {
        js::is_test_name(path)
    }

    fn file_of<'a>(&self, suite: &'a Suite, id: &TestId) -> Option<&'a str> {
        js::file_of(suite, id)
    }

    fn preflight(&self, suite: &Suite) -> Vec<Call> {
        vec![js::preflight(suite, None)]
    }

    fn read_preflight(&self, suite: &Suite, calls: &[(Call, Raw)]) -> Vec<Missing> {
        let missing = |(call, raw): &(Call, Raw)| js::read_preflight(suite, call, raw, None);
        calls.iter().flat_map(missing).collect()
    }

    fn defines_names(&self) -> &'static [&'static str] {
        &["package.json"]
    }

    fn redefined(&self, _: &Suite, sides: &Sides<'_>) -> BTreeSet<String> {
        js_package::redefined(sides)
    }

    fn list(&self, suite: &Suite) -> Result<Listing, Unlistable> {
        js::list(suite, &NODE, js::is_test_name)
    }

    fn run(&self, suite: &Suite, ids: &[TestId]) -> Vec<Call> {
        let files = js::files_of(suite, ids);
        if files.is_empty() {
            return Vec::new();
        }
        vec![invocation(suite, ids, &files, None)]
    }

    // Each file is a process of its own, so a sentinel's file is run with a file of the suite loaded
    // before it: node runs the tests of both in the order in which they were defined.
    fn company(
        &self,
        suite: &Suite,
        before: &[TestId],
        sentinels: &[TestId],
    ) -> Option<Vec<Company>> {
        let mut out = Vec::new();
        for first in js::files_of(suite, before) {
            for file in js::files_of(suite, sentinels) {
                let own = |id: &&TestId| self.file_of(suite, id) == Some(first);
                let wrong = |id: &&TestId| self.file_of(suite, id) == Some(file);
                let asked = before.iter().filter(own);
                let ids: Vec<TestId> = asked
                    .chain(sentinels.iter().filter(wrong))
                    .cloned()
                    .collect();
                let call = invocation(suite, &ids, &[file], Some(first));
                out.push(Company { ids, call });
            }
        }
        Some(out)
    }

    fn read(&self, suite: &Suite, ids: &[TestId], calls: &[(Call, Raw)]) -> RunReport {
        js::read(suite, ids, calls, false)
    }
}

/// One start of `node --test`. `first` is loaded in the process of each file before the file is.
fn invocation(suite: &Suite, ids: &[TestId], files: &[&str], first: Option<&str>) -> Call {
    let mut argv: Vec<OsString> = vec![suite.tools.path("node").into()];
    argv.extend(suite.plan.options.iter().map(OsString::from));
    argv.extend(
        suite
            .plan
            .plugins
            .iter()
            .map(|plugin| format!("--import={plugin}").into()),
    );
    if first.is_some() {
        let script = suite.layout.runners.join(FIRST);
        argv.push(format!("--import={}", script.display()).into());
    }
    let reporter = suite.layout.runners.join(REPORTER);
    argv.push("--test".into());
    argv.push(format!("--test-reporter={}", reporter.display()).into());
    argv.push("--test-reporter-destination=stdout".into());
    argv.extend(files.iter().map(|file| suite.inside(file).into()));
    let mut call = suite.call(argv, ids, suite.timeout());
    if let Some(first) = first {
        call.env
            .insert(FIRST_VARIABLE.into(), suite.inside(first).into());
    }
    call.channel = true;
    call.stdin = serde_json::json!({
        "nonce": call.nonce,
        "root": suite.layout.src.to_string_lossy(),
        "scope": js::scope(suite),
    })
    .to_string()
    .into_bytes();
    call
}
