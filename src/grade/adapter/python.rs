//! What pytest and unittest share: the interpreter, the lister, and reading records.

use super::{Missing, Unlistable, python_imports};
use crate::base::words;
use crate::grade::call::{Call, End, Layout, Raw, Script, Tool};
use crate::grade::frames::{self, Frame};
use crate::grade::manifest::has_extension;
use crate::grade::protect::Globs;
use crate::grade::report::{Builder, Fault, RunReport};
use crate::grade::suite::Suite;
use crate::model::outcome::{FailureClass, Outcome, TestId};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::time::Duration;

const LIST: &str = concat!(
    include_str!("../runners/python_common.py"),
    include_str!("../runners/python_list.py")
);

/// The interpreter.
pub(super) fn interpreter() -> Tool {
    Tool {
        name: "python3".into(),
        prepared: Some("venv/bin/python"),
        remedy: "install Python 3.9 or later, or set `prepare` in hangar.toml so that it makes a \
                 virtual environment"
            .into(),
    }
}

/// The lister.
pub(super) fn lister(layout: &Layout) -> Script {
    Script {
        path: layout.runners.join("list.py"),
        text: LIST,
    }
}

/// `test_*.py` and `*_test.py`; unittest's habit `test*.py` too.
pub(super) fn is_test_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(".py")
        .is_some_and(|stem| stem.starts_with("test") || stem.ends_with("_test"))
}

/// Test files of the base that a preflight collects.
pub(super) fn base_tests(suite: &Suite) -> Vec<String> {
    let tests = suite.project.tests.iter();
    tests.filter(|path| is_test_file(path)).cloned().collect()
}

/// The sealed file before the first `::`.
pub(super) fn file_of<'a>(suite: &'a Suite, id: &TestId) -> Option<&'a str> {
    let path = id.as_str().split("::").next()?;
    suite.file(path).map(|file| file.path.as_str())
}

/// Files that hold these tests, each once, in the order of the tests.
pub(super) fn files_of<'a>(ids: impl IntoIterator<Item = &'a TestId>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    ids.into_iter()
        .filter_map(|id| id.as_str().split("::").next())
        .filter(|path| seen.insert((*path).to_owned()))
        .map(str::to_owned)
        .collect()
}

/// `-I`: no environment, no user packages, no working directory on the path. `-B`: no bytecode left
/// in the tree.
pub(super) fn call(
    suite: &Suite,
    script: &str,
    ids: &[TestId],
    timeout: Duration,
    request: &mut serde_json::Value,
) -> Call {
    let argv: Vec<OsString> = vec![
        suite.tools.path("python3").into(),
        "-I".into(),
        "-B".into(),
        suite.layout.runners.join(script).into(),
    ];
    let mut call = suite.call(argv, ids, timeout);
    request["nonce"] = call.nonce.clone().into();
    request["root"] = suite.layout.src.to_string_lossy().into();
    call.stdin = request.to_string().into_bytes();
    call.channel = true;
    call
}

/// The request of a run: what the script needs beside nonce and root.
pub(super) fn request(
    suite: &Suite,
    mode: &str,
    ids: &[TestId],
    files: &[String],
) -> serde_json::Value {
    let named = suite.plan.env.get("PYTHONPATH").map_or("", String::as_str);
    let named = named.split(':').filter(|part| !part.is_empty());
    let added = suite
        .added
        .places
        .iter()
        .map(|place| place.to_string_lossy());
    let path: Vec<Cow<'_, str>> = named.map(Cow::from).chain(added).collect();
    let (modules, folders) = own_modules(suite);
    let code = code_modules(suite);
    serde_json::json!({
        "modules": modules,
        "folders": folders,
        "code": code,
        "mode": mode,
        "ids": ids,
        "known": suite.known,
        "files": files,
        "path": path,
        "config": suite.layout.runners.join("pytest.ini").to_string_lossy(),
        "plugins": suite.plan.plugins,
        "options": suite.plan.options,
    })
}

/// Files of modules that are the tests' own, sealed or as the base has them, with those that the plan
/// protects (plugins of the runner), and the folders above them in which everything is theirs: no file of a
/// patch is loaded in their place.
fn own_modules(suite: &Suite) -> (BTreeSet<String>, BTreeSet<String>) {
    let sealed = suite.files.iter().map(|file| &file.path);
    let project = &suite.project;
    let all = sealed.chain(&project.tests).chain(&project.protected);
    let modules: BTreeSet<String> = all
        .filter(|path| has_extension(path, "py"))
        .cloned()
        .collect();
    // Where any name at all would be a test's. Patterns that can't be read are met long before.
    let globs = Globs::new(&suite.plan.tests).ok();
    let is_theirs = |folder: &str| {
        let any = format!("{folder}/\u{1}");
        globs
            .as_ref()
            .is_some_and(|globs| globs.matches(any.as_bytes()))
    };
    let above = modules.iter().flat_map(|path| {
        let ends = path.match_indices('/');
        ends.map(|(end, _)| path[..end].to_owned())
    });
    let folders = above.collect::<BTreeSet<_>>().into_iter();
    let folders = folders.filter(|folder| is_theirs(folder)).collect();
    (modules, folders)
}

/// Top-level modules of the base that are no tests, by name, each with the folders where modules are looked
/// for that have it, relative to the root.
fn code_modules(suite: &Suite) -> BTreeMap<&str, BTreeSet<&str>> {
    let named = suite.plan.env.get("PYTHONPATH").map_or("", String::as_str);
    let root = suite.layout.src.to_str().unwrap_or_default();
    let named = named.split(':').map(|place| {
        let inside = place.strip_prefix(root).unwrap_or(place);
        inside.trim_matches('/')
    });
    let places: BTreeSet<&str> = ["", "src"].into_iter().chain(named).collect();
    let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for path in &suite.project.code {
        for place in &places {
            let below = match *place {
                "" => Some(path.as_str()),
                place => path
                    .strip_prefix(place)
                    .and_then(|rest| rest.strip_prefix('/')),
            };
            let first = below.and_then(|rest| rest.split('/').next());
            let name = first.and_then(|first| first.split('.').next());
            if let Some(name) = name {
                found.entry(name).or_default().insert(place);
            }
        }
    }
    found
}

/// Whether sealed files import what only the patch installs. The base's own modules come before that.
fn asks_for_added(suite: &Suite) -> bool {
    let names: BTreeSet<String> = &suite.added.names - &suite.project.own;
    let texts = suite.files.iter().map(|file| file.text.expose());
    let mut texts = texts.map(String::from_utf8_lossy);
    !names.is_empty() && texts.any(|text| python_imports::imports(&text, &names))
}

/// The call that lists the sealed files.
pub(super) fn list(suite: &Suite, style: &str) -> Call {
    let files: Vec<&str> = suite
        .files
        .iter()
        .map(|file| file.path.as_str())
        .filter(|path| is_test_file(path))
        .collect();
    let mut request = serde_json::json!({ "style": style, "files": files });
    call(suite, "list.py", &[], Duration::from_secs(60), &mut request)
}

#[derive(Deserialize)]
struct Listed {
    nonce: String,
    files: BTreeMap<String, ListedFile>,
}

#[derive(Deserialize)]
struct ListedFile {
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    error: String,
}

/// Reads the lister's answer.
pub(super) fn read_list(call: &Call, raw: &Raw) -> Result<Vec<TestId>, Unlistable> {
    let listed: Option<Listed> = serde_json::from_slice(&raw.channel).ok();
    let Some(listed) = listed.filter(|listed| listed.nonce == call.nonce) else {
        return Err(Unlistable(vec![
            "the test files could not be listed (the lister did not answer)".into(),
        ]));
    };
    let mut ids = Vec::new();
    let mut faults = Vec::new();
    for (path, file) in listed.files {
        if !file.error.is_empty() {
            faults.push(format!("`{path}` can't be read as Python: {}", file.error));
        }
        for name in file.names {
            match TestId::new(format!("{path}::{name}")) {
                Some(id) => ids.push(id),
                None => faults.push(format!("`{path}` holds a test with an impossible name")),
            }
        }
    }
    if faults.is_empty() {
        Ok(ids)
    } else {
        Err(Unlistable(faults))
    }
}

/// What a failure means. A module that was not found is the environment's fault only where the base
/// declares it as a dependency.
fn failure(suite: &Suite, frame: &Frame) -> Outcome {
    match frame.class.as_str() {
        "assertion" => Outcome::Failed(FailureClass::Assertion),
        "missing-module" if suite.project.is_declared_dependency(&frame.module) => {
            Outcome::Environment
        }
        "missing-plugin" => Outcome::Environment,
        "missing-module" | "missing-symbol" | "missing-fixture" => {
            Outcome::Failed(FailureClass::MissingSymbol)
        }
        "compile" => Outcome::Failed(FailureClass::Compile),
        _ => Outcome::Failed(FailureClass::Error),
    }
}

fn outcome(suite: &Suite, frame: &Frame) -> Option<Outcome> {
    match frame.outcome.as_str() {
        "passed" => Some(Outcome::Passed),
        "skipped" => Some(Outcome::Skipped),
        "failed" => Some(failure(suite, frame)),
        _ => None,
    }
}

/// Why the body of a test never ran, where no patch can change that: nothing here is said of the code. A
/// fixture may be the patch's to make only where something of the repository can define one.
fn why_not_run(suite: &Suite, frame: &Frame) -> Option<String> {
    let is_own = |plugin: &String| {
        let top = plugin.split('.').next().unwrap_or(plugin);
        suite.project.own.contains(top)
    };
    let plan = &suite.plan;
    match frame.class.as_str() {
        "missing-fixture" if plan.may_touch.is_empty() && !plan.plugins.iter().any(is_own) => {
            Some(format!(
                "there is no fixture `{}`: define it in a sealed file, or have a plugin that does named under \
                 `plugins` in hangar.toml",
                frame.module
            ))
        }
        "unrun" => Some(
            "it is an `async def` that no plugin takes: give it the plugin's mark, or run the coroutine in a \
             plain `def`"
                .to_owned(),
        ),
        _ => None,
    }
}

/// Reads one call that ran a whole suite. `empty` is the status that the runner uses when nothing
/// was left to run (every file skipped itself).
pub(super) fn read(
    suite: &Suite,
    ids: &[TestId],
    calls: &[(Call, Raw)],
    empty: Option<i32>,
) -> RunReport {
    let mut builder = Builder::new(ids);
    let [(call, raw)] = calls else {
        builder.fault(Fault::Runner);
        return builder.finish();
    };
    builder.limits(raw);
    if asks_for_added(suite) {
        builder.fault(Fault::Installed);
    }
    let frames = frames::read(&raw.channel, &call.nonce);
    for fault in &frames.faults {
        builder.fault(*fault);
    }
    if let Some(was_loaded) = broke(&frames, raw) {
        builder.broken(raw, was_loaded);
    }
    for name in &frames.extra {
        builder.unknown(name);
    }
    for frame in frames.tests.iter().chain(&frames.files) {
        let Some(outcome) = outcome(suite, frame) else {
            builder.fault(Fault::Unreadable);
            continue;
        };
        match (outcome, frame.class.as_str()) {
            (Outcome::Environment, "missing-plugin") => builder.unloaded(&frame.module),
            (Outcome::Environment, _) => builder.missing(&frame.module),
            _ => {}
        }
    }
    for frame in &frames.tests {
        if let Some(why) = why_not_run(suite, frame) {
            builder.not_run(&frame.id, why);
        } else if let Some(outcome) = outcome(suite, frame) {
            builder.outcome(&frame.id, outcome);
        }
    }
    for frame in &frames.files {
        if let Some(outcome) = outcome(suite, frame) {
            let path = frame.id.as_str();
            builder.outcome_of_file(|id| belongs(id, path), outcome);
        }
    }
    if let Some(status) = frames.status {
        let failed = |frame: &Frame| frame.outcome == "failed";
        let any = frames.tests.iter().chain(&frames.files).any(failed);
        let fine = match status {
            0 => !any,
            1 => any,
            _ => empty == Some(status) && frames.tests.is_empty(),
        };
        if !matches!(status, 0 | 1) && empty != Some(status) {
            builder.fault(Fault::Runner);
        } else if !fine || raw.end != End::Exited(status) {
            builder.fault(Fault::Status);
        }
    }
    builder.finish()
}

/// Whether the runner ended by itself, and whether tests may have been loaded then. A conftest.py that can't
/// be loaded is none of that: what it needs of the code may not be there yet.
fn broke(frames: &frames::Frames, raw: &Raw) -> Option<bool> {
    if frames.faults.contains(&Fault::NotStarted) {
        return Some(false);
    }
    let said = String::from_utf8_lossy(&raw.stderr);
    if !frames.tests.is_empty() || said.contains("while loading conftest") {
        return None;
    }
    match frames.status? {
        // pytest's own error.
        3 => Some(true),
        // One in how it was called, with a plugin or an option.
        4 => Some(false),
        _ => None,
    }
}

/// Whether a test lies in what a file record names: a file, or a class in it.
fn belongs(id: &TestId, node: &str) -> bool {
    id.as_str()
        .strip_prefix(node)
        .is_some_and(|rest| rest.starts_with("::"))
}

/// What a preflight found missing.
pub(super) fn read_preflight(
    suite: &Suite,
    calls: &[(Call, Raw)],
    runner: Option<&str>,
) -> Vec<Missing> {
    let mut missing = Vec::new();
    for (call, raw) in calls {
        if let End::NotStarted(_) = raw.end {
            missing.push(Missing {
                what: "Python can't be started".into(),
                remedy: interpreter().remedy,
            });
            continue;
        }
        let frames = frames::read(&raw.channel, &call.nonce);
        let stderr = String::from_utf8_lossy(&raw.stderr);
        if raw.channel.is_empty() {
            missing.push(no_runner(suite, &stderr, runner));
            continue;
        }
        let modules: BTreeSet<&str> = frames
            .files
            .iter()
            .filter(|frame| failure(suite, frame) == Outcome::Environment)
            .map(|frame| frame.module.as_str())
            .collect();
        if modules.is_empty() {
            missing.extend(nothing_loads(suite, &frames, &stderr));
        }
        for module in modules {
            missing.push(Missing {
                what: format!("the dependency {module} is declared but not installed"),
                remedy: format!(
                    "add to hangar.toml, under [grader]: {}",
                    prepare_line(suite, runner)
                ),
            });
        }
    }
    missing
}

/// Why our runner sent nothing at all: it could not be loaded.
fn no_runner(suite: &Suite, stderr: &str, runner: Option<&str>) -> Missing {
    let lacks = |runner: &&str| stderr.contains(&format!("No module named '{runner}'"));
    if let Some(runner) = runner.filter(lacks) {
        return Missing {
            what: format!("the test runner {runner} is not installed"),
            remedy: format!(
                "add to hangar.toml, under [grader]: {}",
                prepare_line(suite, Some(runner))
            ),
        };
    }
    Missing {
        what: format!(
            "the test runner does not start: {}",
            words::last_line(stderr.as_bytes()).unwrap_or_default()
        ),
        remedy: interpreter().remedy,
    }
}

/// A base none of whose own test files can be loaded says nothing about hidden tests: what they
/// need (a generated file, an undeclared package, a plugin) is not there.
fn nothing_loads(suite: &Suite, frames: &frames::Frames, stderr: &str) -> Option<Missing> {
    let remedy = "let `prepare` install it, `build` generate it, or `plugins`, `options` and `env` \
                  name it, in hangar.toml under [grader]";
    let found = |why: String| {
        Some(Missing {
            what: format!("the base's own tests can't be loaded: {why}"),
            remedy: remedy.into(),
        })
    };
    // Internal error and usage error: the runner itself stopped, for example in a conftest.py.
    if let Some(status @ (3 | 4)) = frames.status {
        let said = words::error_line(stderr.as_bytes()).unwrap_or_default();
        return found(format!("the runner stops with status {status}: {said}"));
    }
    let files: BTreeSet<&str> = suite
        .project
        .tests
        .iter()
        .map(String::as_str)
        .filter(|path| is_test_file(path))
        .collect();
    let failed: Vec<&Frame> = frames
        .files
        .iter()
        .filter(|frame| frame.outcome == "failed" && files.contains(frame.id.as_str()))
        .collect();
    if files.is_empty() || failed.len() < files.len() {
        return None;
    }
    let modules: BTreeSet<&str> = failed
        .iter()
        .map(|frame| frame.module.as_str())
        .filter(|module| !module.is_empty())
        .collect();
    let why = if modules.is_empty() {
        "each file fails while it is imported".to_owned()
    } else {
        let modules: Vec<&str> = modules.into_iter().take(5).collect();
        format!("there is no module {}", modules.join(", "))
    };
    found(why)
}

fn prepare_line(suite: &Suite, runner: Option<&str>) -> String {
    // `pip` is the one of the virtual environment that `prepare` makes.
    let mut line = String::from("pip install");
    if !suite.plan.prepare.is_empty() {
        line = format!("{} && {line}", suite.plan.prepare);
    }
    for list in &suite.project.lists {
        line.push_str(" -r ");
        line.push_str(list);
    }
    if let Some(runner) = runner {
        line.push(' ');
        line.push_str(runner);
    }
    format!("prepare = \"{line}\"")
}
