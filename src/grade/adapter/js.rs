//! What the JavaScript adapters do alike: names of files, the list of tests, what is missing, and how
//! the records of their runners are read. Ids: `file > group > test`.

use super::js_names::Dialect;
use super::{Listing, Missing, Proposal, Unlistable, js_scan, places};
use crate::grade::call::{Call, End, Raw, Tool};
use crate::grade::frames::{self, Frame};
use crate::grade::manifest::{Tree, has_extension};
use crate::grade::report::{Builder, Fault, RunReport};
use crate::grade::suite::Suite;
use crate::model::outcome::{FailureClass, Outcome, TestId};
use crate::model::plan::Framework;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The script that says what is missing; each adapter lays it.
pub(super) const PREFLIGHT: &str = "needs.mjs";
/// Its text.
pub(super) const PREFLIGHT_TEXT: &str = include_str!("../runners/node_preflight.mjs");
/// The script that looks into package.json; each adapter lays it.
pub(super) const SCOPE: &str = "scope.cjs";
/// Its text.
pub(super) const SCOPE_TEXT: &str = include_str!("../runners/js_scope.cjs");
/// The module that reads what a runner is asked; each adapter lays it.
pub(super) const REQUEST: &str = "request.cjs";
/// Its text.
pub(super) const REQUEST_TEXT: &str = include_str!("../runners/js_request.cjs");
/// Globs of what no patch may change: what is installed, what says how source is turned into what runs (a
/// loader, a plugin or a transform of the plan may read it), and the runner's own.
macro_rules! protected {
    ($($own:literal),*) => {
        &[
            "**/node_modules/",
            "**/tsconfig.json",
            "**/tsconfig.*.json",
            "**/jsconfig.json",
            "**/.swcrc",
            "**/babel.config.*",
            "**/.babelrc",
            "**/.babelrc.*",
            $($own),*
        ]
    };
}
pub(super) use protected;

const EXTENSIONS: [&str; 6] = ["js", "mjs", "cjs", "ts", "mts", "cts"];

/// The interpreter.
pub(super) fn interpreter() -> Tool {
    Tool {
        name: "node".into(),
        prepared: None,
        remedy: "install Node.js 20 or later".into(),
    }
}

/// Whether a file holds JavaScript or TypeScript.
pub(super) fn is_script(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    EXTENSIONS
        .iter()
        .any(|extension| has_extension(name, extension))
}

/// The names that `node --test` looks for by itself, and `.spec.`; TypeScript too.
pub(super) fn is_test_name(path: &str) -> bool {
    if !is_script(path) {
        return false;
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    stem == "test"
        || stem.starts_with("test-")
        || [".test", "-test", "_test", ".spec"]
            .iter()
            .any(|end| stem.ends_with(end))
}

/// The sealed file that a test lies in.
pub(super) fn file_of<'a>(suite: &'a Suite, id: &TestId) -> Option<&'a str> {
    let (path, _) = id.as_str().split_once(" > ")?;
    suite.file(path).map(|file| file.path.as_str())
}

/// Files that hold these tests, each once, in the order of the tests.
pub(super) fn files_of<'a>(suite: &'a Suite, ids: &[TestId]) -> Vec<&'a str> {
    let mut files: Vec<&str> = Vec::new();
    for id in ids {
        if let Some(file) = file_of(suite, id)
            && !files.contains(&file)
        {
            files.push(file);
        }
    }
    files
}

/// Lists the tests of the sealed files that `is_test` names, by reading them.
pub(super) fn list(
    suite: &Suite,
    dialect: &'static Dialect,
    is_test: impl Fn(&str) -> bool,
) -> Result<Listing, Unlistable> {
    let mut ids = Vec::new();
    let mut faults = Vec::new();
    for file in suite.files.iter().filter(|file| is_test(&file.path)) {
        let Ok(text) = std::str::from_utf8(file.text.expose()) else {
            faults.push(format!("`{}` is not UTF-8", file.path));
            continue;
        };
        let scan = js_scan::scan(text, dialect);
        faults.extend(scan.unnamed.iter().take(5).map(|line| {
            format!(
                "`{}` line {line}: the name of a test must be a plain string, so that it can be \
                 listed without running it",
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

/// Folders of installed packages. `prepare` leaves them above the tree, where no patch can reach them. Where
/// the repository holds them itself they are protected.
pub(super) fn modules(suite: &Suite) -> Vec<PathBuf> {
    let src = &suite.layout.src;
    let mut modules = vec![src.with_file_name("node_modules")];
    if suite.project.tracks_node_modules {
        modules.push(src.join("node_modules"));
    }
    modules
}

/// What [`SCOPE`] has to know.
pub(super) fn scope(suite: &Suite) -> serde_json::Value {
    let folders = suite.files.iter().map(|file| suite.inside(&file.path));
    let folders: BTreeSet<PathBuf> = folders
        .filter_map(|file| file.parent().map(Path::to_owned))
        .collect();
    serde_json::json!({
        "root": suite.layout.src.to_string_lossy(),
        "modules": modules(suite),
        "folders": folders,
        "names": suite.project.names,
        "babel": suite.project.babel,
    })
}

/// A package that runs tests.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunnerPackage {
    /// Its name.
    pub(super) name: &'static str,
    /// The first and the last major version that was tried.
    pub(super) majors: (u32, u32),
}

impl RunnerPackage {
    /// Another version may be started in another way, and tests that never ran would look like tests
    /// that fail.
    fn unknown(self, major: u32) -> Option<Missing> {
        let (first, last) = self.majors;
        if (first..=last).contains(&major) {
            return None;
        }
        let name = self.name;
        let nearest = major.clamp(first, last);
        Some(Missing {
            what: format!(
                "{name} {major} is not supported: hangar drives {name} {first} to {last}"
            ),
            remedy: format!("install {name}@{nearest} (`npm install --save-dev {name}@{nearest}`)"),
        })
    }
}

/// Asks what is missing: of what the base's own tests need, and the runner.
pub(super) fn preflight(suite: &Suite, runner: Option<RunnerPackage>) -> Call {
    let argv = vec![
        suite.tools.path("node").into(),
        suite.layout.runners.join(PREFLIGHT).into(),
    ];
    let needed = suite.project.needed.iter().map(String::as_str);
    let needed: BTreeSet<&str> = needed.chain(runner.map(|runner| runner.name)).collect();
    let mut call = suite.call(argv, &[], Duration::from_secs(60));
    call.channel = true;
    call.stdin = serde_json::json!({
        "nonce": call.nonce,
        "root": suite.layout.src.to_string_lossy(),
        "declared": needed,
        "runner": runner.map(|runner| runner.name),
    })
    .to_string()
    .into_bytes();
    call
}

#[derive(Deserialize)]
struct Needs {
    nonce: String,
    major: u32,
    runner: Option<u32>,
    missing: Vec<String>,
}

/// Reads the answer to [`preflight`].
pub(super) fn read_preflight(
    suite: &Suite,
    call: &Call,
    raw: &Raw,
    runner: Option<RunnerPackage>,
) -> Vec<Missing> {
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
    let found = runner.zip(answer.runner);
    missing.extend(found.and_then(|(runner, major)| runner.unknown(major)));
    for name in answer.missing.into_iter().take(100) {
        let remedy = if suite.plan.prepare.is_empty() {
            // npm ci wants a lock file; what it leaves in `node_modules` is moved by the flow.
            "add to hangar.toml, under [grader]: prepare = \"npm ci --ignore-scripts\" (npm install \
             where there is no lock file)"
                .to_owned()
        } else {
            "make `prepare` in hangar.toml install it".to_owned()
        };
        let declared = suite.project.declared.contains(&name);
        missing.push(Missing {
            what: if declared {
                format!("the dependency {name} is declared but not installed")
            } else {
                format!("{name} is not installed, and package.json does not declare it")
            },
            remedy,
        });
    }
    missing
}

/// Reads what one run of tests left. `shared`: the runner's process loads the code under test.
pub(super) fn read(
    suite: &Suite,
    ids: &[TestId],
    calls: &[(Call, Raw)],
    shared: bool,
) -> RunReport {
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
    // Its own process loads no code of the project: nothing but itself can have ended it.
    let alone = !shared && matches!(raw.end, End::Exited(_));
    let told = !frames.tests.is_empty() || !frames.files.is_empty();
    let never = frames.faults.contains(&Fault::NotStarted);
    if never || (alone && !told && frames.status.is_none()) {
        builder.broken(raw, !never);
    }
    // A file runs all its tests; those of the suite that this run did not ask for are no surprise.
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

/// `package.json` at the root.
pub(super) fn package(tree: Tree<'_>) -> Option<serde_json::Value> {
    serde_json::from_str(&tree.text("package.json")?).ok()
}

/// Names of test runners that a script of a package may start.
const RUNNERS: [&str; 6] = ["jest", "vitest", "mocha", "ava", "node --test", "node:test"];

/// Whether a package tests itself by the runner `name`: its script starts that one and no other, or it
/// starts none that is known and the package depends on this one.
pub(super) fn tests_by(package: &serde_json::Value, name: &str) -> bool {
    let script = package["scripts"]["test"].as_str().unwrap_or_default();
    let mut named = RUNNERS.iter().filter(|runner| script.contains(**runner));
    match named.next() {
        Some(first) => *first == name && named.next().is_none(),
        None => ["dependencies", "devDependencies"]
            .iter()
            .any(|key| package[key].get(name).is_some()),
    }
}

/// What to write for a package that tests itself by this framework.
pub(super) fn proposal(
    tree: Tree<'_>,
    package: &serde_json::Value,
    framework: Framework,
    verify: &str,
    folders: &[&str],
) -> Proposal {
    let locked = tree.has("package-lock.json") || tree.has("npm-shrinkwrap.json");
    let needs = ["dependencies", "devDependencies"].iter().any(|key| {
        package[key]
            .as_object()
            .is_some_and(|list| !list.is_empty())
    });
    let install = if locked { "npm ci" } else { "npm install" };
    let is_there = |folder: &&&str| match folder.strip_prefix("**/") {
        Some(name) => tree.paths.iter().any(|path| path.contains(name)),
        None => tree.paths.iter().any(|path| path.starts_with(**folder)),
    };
    let folders: Vec<String> = folders
        .iter()
        .filter(is_there)
        .map(ToString::to_string)
        .collect();
    let files = tree.paths.iter().filter(|path| {
        is_test_name(path) && !places::is_below(path, &folders) && !path.contains("node_modules/")
    });
    let outside: Vec<String> = files
        .take(places::MAX_FILES)
        .filter_map(|path| pattern(path))
        .collect();
    Proposal {
        framework,
        verify: verify.into(),
        build: String::new(),
        options: Vec::new(),
        plugins: Vec::new(),
        env: Vec::new(),
        prepare: if needs {
            format!("{install} --ignore-scripts")
        } else {
            String::new()
        },
        tests: places::patterns(folders, outside.into_iter(), &["test/"]),
    }
}

/// The pattern of all test files that are called like this one: `**/*.test.js`.
fn pattern(path: &str) -> Option<String> {
    let name = path.rsplit('/').next()?;
    let (stem, extension) = name.rsplit_once('.')?;
    let ends = [".test", "-test", "_test", ".spec"];
    if let Some(end) = ends.iter().find(|end| stem.ends_with(**end)) {
        return Some(format!("**/*{end}.{extension}"));
    }
    let stem = if stem == "test" { "test" } else { "test-*" };
    Some(format!("**/{stem}.{extension}"))
}
