//! `node`: `node --test`. Each file runs in a process of its own; our reporter runs in the runner's
//! process, where the code under test is never loaded, and writes outcomes to descriptor 3.
//! Ids: `file > describe > test`.

use super::{Adapter, Company, Listing, Missing, Proposal, Unlistable, js_scan};
use crate::grade::call::{Call, End, Layout, Raw, Script, Tool};
use crate::grade::frames::{self, Frame};
use crate::grade::manifest::{Tree, has_extension};
use crate::grade::report::{Builder, Fault, RunReport};
use crate::grade::suite::Suite;
use crate::model::outcome::{FailureClass, Outcome, TestId, Verdict};
use crate::model::plan::{Framework, Plan};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::time::Duration;

/// The adapter.
#[derive(Debug)]
pub(super) struct Node;

const REPORTER: &str = "report.mjs";
const FIRST: &str = "first.mjs";
/// Names the file that is loaded before the one that runs.
const FIRST_VARIABLE: &str = "FIRST";
const PREFLIGHT: &str = "needs.mjs";
const EXTENSIONS: [&str; 6] = ["js", "mjs", "cjs", "ts", "mts", "cts"];

impl Adapter for Node {
    fn framework(&self) -> Framework {
        Framework::Node
    }

    // `node --test` reads no configuration of the tree, and neither npm nor a package script takes
    // part, so package.json and .npmrc bend nothing. A package laid into the tree would stand in
    // for one that the tests import.
    fn protected(&self) -> &'static [&'static str] {
        &["**/node_modules/"]
    }

    fn default_tests(&self) -> &'static [&'static str] {
        &["test/", "tests/"]
    }

    fn ceiling(&self) -> Verdict {
        Verdict::Crosschecked
    }

    fn detect(&self, tree: Tree<'_>) -> Option<Proposal> {
        let package = tree.text("package.json")?;
        let other = ["jest", "vitest", "mocha", "ava"];
        let package: serde_json::Value = serde_json::from_str(&package).ok()?;
        let script = package["scripts"]["test"].as_str().unwrap_or_default();
        let uses = script.contains("node --test")
            || script.contains("node:test")
            || (!other.iter().any(|name| script.contains(name))
                && tree.paths.iter().any(|path| is_test_name(path)));
        let locked = tree.has("package-lock.json") || tree.has("npm-shrinkwrap.json");
        let needs = ["dependencies", "devDependencies"].iter().any(|key| {
            package[key]
                .as_object()
                .is_some_and(|list| !list.is_empty())
        });
        let install = if locked { "npm ci" } else { "npm install" };
        let tests: Vec<String> = self
            .default_tests()
            .iter()
            .filter(|folder| tree.paths.iter().any(|path| path.starts_with(*folder)))
            .map(ToString::to_string)
            .collect();
        uses.then(|| Proposal {
            framework: Framework::Node,
            verify: "node --test".into(),
            build: String::new(),
            options: Vec::new(),
            prepare: if needs {
                format!("{install} --ignore-scripts")
            } else {
                String::new()
            },
            tests: if tests.is_empty() {
                vec!["test/".into()]
            } else {
                tests
            },
        })
    }

    fn tools(&self, _: &Plan) -> Vec<Tool> {
        vec![Tool {
            name: "node".into(),
            prepared: None,
            remedy: "install Node.js 20 or later".into(),
        }]
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
                path: layout.runners.join(PREFLIGHT),
                text: include_str!("../runners/node_preflight.mjs"),
            },
        ]
    }

    fn is_test_file(&self, _: &Suite, path: &str) -> bool {
        is_test_name(path)
    }

    fn file_of<'a>(&self, suite: &'a Suite, id: &TestId) -> Option<&'a str> {
        let (path, _) = id.as_str().split_once(" > ")?;
        suite.file(path).map(|file| file.path.as_str())
    }

    fn preflight(&self, suite: &Suite) -> Vec<Call> {
        let argv = vec![
            suite.tools.path("node").into(),
            suite.layout.runners.join(PREFLIGHT).into(),
        ];
        let mut call = suite.call(argv, &[], Duration::from_secs(60));
        call.channel = true;
        call.stdin = serde_json::json!({
            "nonce": call.nonce,
            "root": suite.layout.src.to_string_lossy(),
            "declared": suite.project.needed,
        })
        .to_string()
        .into_bytes();
        vec![call]
    }

    fn read_preflight(&self, suite: &Suite, calls: &[(Call, Raw)]) -> Vec<Missing> {
        calls
            .iter()
            .flat_map(|(call, raw)| needs(suite, call, raw))
            .collect()
    }

    fn list(&self, suite: &Suite) -> Result<Listing, Unlistable> {
        let mut ids = Vec::new();
        let mut faults = Vec::new();
        for file in suite.files.iter().filter(|file| is_test_name(&file.path)) {
            let Ok(text) = std::str::from_utf8(file.text.expose()) else {
                faults.push(format!("`{}` is not UTF-8", file.path));
                continue;
            };
            let scan = js_scan::scan(text);
            faults.extend(scan.unnamed.iter().take(5).map(|line| {
                format!(
                    "`{}` line {line}: the name of a test must be a plain string, so that it can \
                     be listed without running it",
                    file.path
                )
            }));
            for names in scan.tests {
                let id = TestId::new(format!("{} > {}", file.path, names.join(" > ")));
                match id {
                    Some(id) if !ids.contains(&id) => ids.push(id),
                    Some(id) => faults.push(format!("`{id}` stands twice")),
                    None => faults.push(format!(
                        "`{}` holds a test whose name can't be an id (line breaks, too long)",
                        file.path
                    )),
                }
            }
        }
        if faults.is_empty() {
            Ok(Listing::Known(ids))
        } else {
            Err(Unlistable(faults))
        }
    }

    fn read_list(&self, _: &Suite, _: &Call, _: &Raw) -> Result<Vec<TestId>, Unlistable> {
        Err(Unlistable(vec!["nothing was asked".into()]))
    }

    fn run(&self, suite: &Suite, ids: &[TestId]) -> Vec<Call> {
        let files = files_of(suite, ids);
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
        for first in files_of(suite, before) {
            for file in files_of(suite, sentinels) {
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
        let mut builder = Builder::new(ids);
        let [(call, raw)] = calls else {
            builder.fault(Fault::Runner);
            return builder.finish();
        };
        builder.limits(raw);
        let frames = frames::read(&raw.channel, &call.nonce);
        for fault in &frames.faults {
            builder.fault(*fault);
        }
        // A file runs all its tests; those of the suite that this run did not ask for are no
        // surprise.
        let asked: BTreeSet<&str> = ids.iter().map(TestId::as_str).collect();
        let known: BTreeSet<&str> = suite.known.iter().map(TestId::as_str).collect();
        let mut failed = false;
        for frame in &frames.tests {
            let Some(outcome) = outcome(suite, frame) else {
                builder.fault(Fault::Unreadable);
                continue;
            };
            failed |= !matches!(outcome, Outcome::Passed | Outcome::Skipped);
            if outcome == Outcome::Environment {
                builder.missing(&frame.module);
            }
            let id = frame.id.as_str();
            if asked.contains(id) || !known.contains(id) {
                builder.outcome(id, outcome);
            }
        }
        for frame in &frames.files {
            failed = true;
            let outcome = outcome(suite, frame).unwrap_or(Outcome::Failed(FailureClass::Error));
            if outcome == Outcome::Environment {
                builder.missing(&frame.module);
            }
            let path = frame.id.as_str();
            let belongs = |id: &TestId| {
                id.as_str()
                    .strip_prefix(path)
                    .is_some_and(|rest| rest.starts_with(" > "))
            };
            builder.outcome_of_file(belongs, outcome);
        }
        if let Some(said) = frames.status
            && ((said == 1) != failed || raw.end != End::Exited(said))
        {
            builder.fault(Fault::Status);
        }
        builder.finish()
    }
}

/// Files that hold these tests, each once, in the order of the tests.
fn files_of<'a>(suite: &'a Suite, ids: &[TestId]) -> Vec<&'a str> {
    let mut files: Vec<&str> = Vec::new();
    for id in ids {
        if let Some(file) = Node.file_of(suite, id)
            && !files.contains(&file)
        {
            files.push(file);
        }
    }
    files
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
    })
    .to_string()
    .into_bytes();
    call
}

/// The names that `node --test` looks for by itself, and `.spec.`; TypeScript too.
fn is_test_name(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    if !EXTENSIONS
        .iter()
        .any(|extension| has_extension(name, extension))
    {
        return false;
    }
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    stem == "test"
        || stem.starts_with("test-")
        || [".test", "-test", "_test", ".spec"]
            .iter()
            .any(|end| stem.ends_with(end))
}

fn outcome(suite: &Suite, frame: &Frame) -> Option<Outcome> {
    Some(match frame.outcome.as_str() {
        "passed" => Outcome::Passed,
        "skipped" => Outcome::Skipped,
        "failed" => match frame.class.as_str() {
            "assertion" => Outcome::Failed(FailureClass::Assertion),
            "missing-module" if suite.project.declared.contains(&frame.module) => {
                Outcome::Environment
            }
            "missing-module" | "missing-symbol" => Outcome::Failed(FailureClass::MissingSymbol),
            "compile" => Outcome::Failed(FailureClass::Compile),
            _ => Outcome::Failed(FailureClass::Error),
        },
        _ => return None,
    })
}

#[derive(Deserialize)]
struct Needs {
    nonce: String,
    major: u32,
    missing: Vec<String>,
}

fn needs(suite: &Suite, call: &Call, raw: &Raw) -> Vec<Missing> {
    let answer: Option<Needs> = serde_json::from_slice(&raw.channel).ok();
    let Some(answer) = answer.filter(|answer| answer.nonce == call.nonce) else {
        return vec![Missing {
            what: "Node.js can't be started".into(),
            remedy: "install Node.js 20 or later".into(),
        }];
    };
    let mut missing = Vec::new();
    if answer.major < 20 {
        missing.push(Missing {
            what: format!("Node.js {} is too old for its test reporters", answer.major),
            remedy: "install Node.js 20 or later".into(),
        });
    }
    for name in answer.missing.into_iter().take(100) {
        let remedy = if suite.plan.prepare.is_empty() {
            // npm ci wants a lock file; what it leaves in `node_modules` is moved by the flow.
            "add to hangar.toml, under [grader]: prepare = \"npm ci --ignore-scripts\" (npm install \
             where there is no lock file)"
                .to_owned()
        } else {
            "make `prepare` in hangar.toml install it".to_owned()
        };
        missing.push(Missing {
            what: format!("the dependency {name} is declared but not installed"),
            remedy,
        });
    }
    missing
}
