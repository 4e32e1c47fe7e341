//! `external`: the tests run outside the sandbox of the program under test. Cases in TOML files
//! (`docs/reference/cases.md`) say what to start; what came of it is compared here, in hangar's own
//! process. Executable sealed files are drivers, each a test in a sandbox of its own, whose exit
//! status is read as with `exec`. Ids are `FILE > NAME`, of a driver its path.

use super::{Adapter, Company, Listing, Proposal, Unlistable, exec};
use crate::grade::call::{Call, Layout, Raw, Room, Script, Tool};
use crate::grade::external::{self, Case, Step};
use crate::grade::manifest::{Tree, has_extension};
use crate::grade::report::{Builder, Fault, RunReport};
use crate::grade::suite::Suite;
use crate::model::outcome::{Outcome, TestId, Verdict};
use crate::model::plan::{Framework, Plan};
use std::ffi::OsString;
use std::time::Duration;

/// The adapter.
#[derive(Debug)]
pub(super) struct External;

/// Seconds that a program may take where its case does not say.
const STEP_SECONDS: u64 = 10;

impl Adapter for External {
    fn framework(&self) -> Framework {
        Framework::External
    }

    // No runner lies in the tree, and none is configured by it.
    fn protected(&self) -> &'static [&'static str] {
        &[]
    }

    fn default_tests(&self) -> &'static [&'static str] {
        &["acceptance/"]
    }

    fn ceiling(&self) -> Verdict {
        Verdict::External
    }

    fn detect(&self, _: Tree<'_>) -> Option<Proposal> {
        None
    }

    // Which programs cases start, only the plan knows before they are there.
    fn tools(&self, plan: &Plan) -> Vec<Tool> {
        let tool = |name: &String| Tool {
            name: name.clone(),
            prepared: matches!(name.as_str(), "python" | "python3").then_some("venv/bin/python"),
            remedy: format!(
                "install it, name it under [toolchain] in the user's configuration, or take `{name}` \
                 out of `options` under [grader] in hangar.toml"
            ),
        };
        plan.options.iter().map(tool).collect()
    }

    fn scripts(&self, _: &Layout) -> Vec<Script> {
        Vec::new()
    }

    fn is_test_file(&self, suite: &Suite, path: &str) -> bool {
        suite
            .file(path)
            .is_some_and(|file| is_case_file(path) || file.executable)
    }

    fn file_of<'a>(&self, suite: &'a Suite, id: &TestId) -> Option<&'a str> {
        let path = id
            .as_str()
            .split_once(" > ")
            .map_or(id.as_str(), |(path, _)| path);
        suite.file(path).map(|file| file.path.as_str())
    }

    fn list(&self, suite: &Suite) -> Result<Listing, Unlistable> {
        let cases = cases(suite).map_err(Unlistable)?;
        let mut ids: Vec<TestId> = cases.into_iter().map(|case| case.id).collect();
        ids.extend(drivers(suite));
        if ids.is_empty() {
            return Err(Unlistable(vec![
                "no sealed file holds a case or is a driver; cases stand in files that end in \
                 `.toml`, each as a `[[case]]`, and a driver is an executable file"
                    .into(),
            ]));
        }
        Ok(Listing::Known(ids))
    }

    fn run(&self, suite: &Suite, ids: &[TestId]) -> Vec<Call> {
        // What can't be read was refused when it was listed.
        let cases = cases(suite).unwrap_or_default();
        let of_case = |case: &Case| -> Vec<Call> {
            let steps = case.steps.iter().enumerate();
            steps
                .map(|(index, step)| call(suite, case, index, step))
                .collect()
        };
        let of_test = |id: &TestId| match cases.iter().find(|case| case.id == *id) {
            Some(case) => of_case(case),
            None => vec![driver(suite, id, suite.share(ids.len()))],
        };
        ids.iter().flat_map(of_test).collect()
    }

    // A sentinel has nothing to meet: no code of the patch runs where outcomes are made.
    fn company(&self, _: &Suite, _: &[TestId], _: &[TestId]) -> Option<Vec<Company>> {
        None
    }

    fn read(&self, suite: &Suite, ids: &[TestId], calls: &[(Call, Raw)]) -> RunReport {
        let mut builder = Builder::new(ids);
        let Ok(cases) = cases(suite) else {
            builder.fault(Fault::Runner);
            return builder.finish();
        };
        for (_, raw) in calls {
            builder.limits(raw);
        }
        for case in cases.iter().filter(|case| ids.contains(&case.id)) {
            let raws = calls
                .iter()
                .filter(|(call, _)| call.ids.first() == Some(&case.id));
            let raws: Vec<&Raw> = raws.map(|(_, raw)| raw).collect();
            let Some(outcome) = case.judge(&raws) else {
                // The time was up before it ran.
                continue;
            };
            if outcome == Outcome::Environment {
                builder.missing(
                    "a program that a case starts by its name (`options` under [grader] names it)",
                );
            }
            builder.outcome(case.id.as_str(), outcome);
        }
        for (call, raw) in calls.iter().filter(|(call, _)| call.room == Room::Driver) {
            let test = call.ids.first();
            let Some(id) = test.filter(|id| drivers(suite).any(|one| one == **id)) else {
                // Named by the map alone: no test.
                continue;
            };
            let outcome = exec::outcome(raw.end);
            if outcome == Outcome::Environment {
                builder.missing("the interpreter of a driver");
            }
            builder.outcome(id.as_str(), outcome);
        }
        builder.finish()
    }
}

/// Sealed files that test by themselves.
fn drivers(suite: &Suite) -> impl Iterator<Item = TestId> {
    let files = suite.files.iter();
    files
        .filter(|file| file.executable && !is_case_file(&file.path))
        .filter_map(|file| TestId::new(file.path.clone()))
}

/// Whether a sealed file holds cases.
fn is_case_file(path: &str) -> bool {
    has_extension(path, "toml")
}

/// The cases of all sealed files, in their order.
fn cases(suite: &Suite) -> Result<Vec<Case>, Vec<String>> {
    let root = suite.layout.src.to_string_lossy();
    let (mut cases, mut faults) = (Vec::new(), Vec::new());
    for file in suite.files.iter().filter(|file| is_case_file(&file.path)) {
        match external::read(&file.path, file.text.expose(), &root) {
            Ok(found) => cases.extend(found),
            Err(found) => faults.extend(found),
        }
    }
    if faults.is_empty() {
        Ok(cases)
    } else {
        Err(faults)
    }
}

fn call(suite: &Suite, case: &Case, index: usize, step: &Step) -> Call {
    let program = step.run.first().map_or("", String::as_str);
    let program = if step.is_of_the_tree() {
        // An absolute path stays.
        suite.inside(program)
    } else {
        suite.tools.path(program)
    };
    let mut argv: Vec<OsString> = vec![program.into_os_string()];
    argv.extend(step.run.iter().skip(1).map(OsString::from));
    let seconds = step.timeout.unwrap_or(STEP_SECONDS);
    let timeout = Duration::from_secs(seconds).min(suite.timeout());
    Call {
        stdin: step.stdin.clone().into_bytes(),
        room: Room::Code(case.visit(index)),
        ..suite.call(argv, std::slice::from_ref(&case.id), timeout)
    }
}

/// A sealed program that tests from a sandbox of its own.
fn driver(suite: &Suite, id: &TestId, timeout: Duration) -> Call {
    let program = suite.inside(id.as_str()).into_os_string();
    let mut call = suite.call(vec![program], std::slice::from_ref(id), timeout);
    for (variable, name) in [("RUN", external::RUN), ("DIAL", external::DIAL)] {
        let program = suite.layout.runners.join(name);
        call.env.insert(variable.into(), program.into_os_string());
    }
    call.room = Room::Driver;
    call
}

/// A proposal to test a repository from outside, where it declares a command line and is no library.
/// How it installs and checks itself is as in `other`.
pub(super) fn of_a_command_line(tree: Tree<'_>, other: Option<&Proposal>) -> Option<Proposal> {
    let other = other?;
    let programs: &[&str] = match other.framework {
        Framework::Cargo if is_rust_program(tree) => &["cargo", "rustc", "cc"],
        Framework::Node | Framework::Mocha | Framework::Jest | Framework::Vitest
            if is_node_program(tree) =>
        {
            &["node"]
        }
        Framework::Pytest | Framework::Unittest if is_python_program(tree) => &["python3"],
        _ => return None,
    };
    // The build step has no home folder; what `prepare` fetched is found by name.
    let home = if other.prepare.is_empty() {
        ""
    } else {
        "CARGO_HOME=/prepared/cargo "
    };
    let build = match other.framework {
        Framework::Cargo => format!("{home}cargo build --offline"),
        _ => String::new(),
    };
    Some(Proposal {
        framework: Framework::External,
        build,
        tests: External
            .default_tests()
            .iter()
            .map(ToString::to_string)
            .collect(),
        options: programs.iter().map(ToString::to_string).collect(),
        plugins: Vec::new(),
        ..other.clone()
    })
}

fn is_rust_program(tree: Tree<'_>) -> bool {
    tree.has("src/main.rs") && !tree.has("src/lib.rs")
}

fn is_node_program(tree: Tree<'_>) -> bool {
    let package = tree.text("package.json");
    let package = package.and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok());
    package.is_some_and(|package| {
        let has = |key: &str| package.get(key).is_some();
        has("bin") && !has("main") && !has("exports")
    })
}

/// Python packages can be imported whether they are meant to be or not: what counts is the script.
fn is_python_program(tree: Tree<'_>) -> bool {
    let project = tree.text("pyproject.toml");
    let project = project.and_then(|text| text.parse::<toml::Table>().ok());
    let scripts = project
        .as_ref()
        .and_then(|project| project.get("project")?.get("scripts"));
    scripts
        .and_then(toml::Value::as_table)
        .is_some_and(|scripts| !scripts.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grade::detect_framework;

    fn detected(files: &[(&str, &str)]) -> Framework {
        let paths: Vec<String> = files.iter().map(|(path, _)| (*path).to_owned()).collect();
        let read = |path: &str| {
            let found = files.iter().find(|(have, _)| *have == path);
            found.map(|(_, text)| text.as_bytes().to_vec())
        };
        let tree = Tree {
            paths: &paths,
            read: &read,
        };
        detect_framework(tree).unwrap().framework
    }

    #[test]
    fn a_command_line_is_tested_from_outside_and_a_library_is_not() {
        let package = ("Cargo.toml", "[package]\nname = \"x\"\n");
        let (main, lib) = (("src/main.rs", ""), ("src/lib.rs", ""));
        let node = |rest: &str| {
            format!("{{\"scripts\": {{\"test\": \"node --test\"}}, \"bin\": \"x.js\"{rest}}}")
        };
        let python = ("tests/test_x.py", "def test_x():\n    pass\n");
        let script = "[project]\nname = \"x\"\n[project.scripts]\nx = \"x:main\"\n";
        let rows = [
            (detected(&[package, main]), Framework::External),
            (detected(&[package, main, lib]), Framework::Cargo),
            (detected(&[package, lib]), Framework::Cargo),
            (
                detected(&[("package.json", &node(""))]),
                Framework::External,
            ),
            (
                detected(&[("package.json", &node(", \"main\": \"x.js\""))]),
                Framework::Node,
            ),
            (
                detected(&[python, ("pyproject.toml", script)]),
                Framework::External,
            ),
            (
                detected(&[python, ("pyproject.toml", "[project]\nname = \"x\"\n")]),
                Framework::Pytest,
            ),
        ];
        for (found, expected) in rows {
            assert_eq!(found, expected);
        }
    }
}
