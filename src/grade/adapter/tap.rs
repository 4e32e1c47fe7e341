//! `tap`: each sealed test file is run and prints TAP 13 or 14 on standard output.
//! Ids: `file > description`.
//!
//! The report comes from the process under test and nothing else speaks for it, so the verdict is
//! `report` at best.

use super::{Adapter, Listing, Proposal, Unlistable};
use crate::grade::call::{Call, End, Layout, Raw, Script, Tool};
use crate::grade::manifest::{Tree, has_extension};
use crate::grade::report::{Builder, Fault, RunReport};
use crate::grade::suite::Suite;
use crate::model::outcome::{FailureClass, Outcome, TestId, Verdict};
use crate::model::plan::{Framework, Plan};
use std::collections::BTreeSet;
use std::ffi::OsString;

/// The adapter.
#[derive(Debug)]
pub(super) struct Tap;

/// Most points of one file.
const MAX_POINTS: usize = 100_000;

impl Adapter for Tap {
    fn framework(&self) -> Framework {
        Framework::Tap
    }

    // The files are started by their own path, or by the interpreter that the plan names.
    fn protected(&self) -> &'static [&'static str] {
        &[]
    }

    fn default_tests(&self) -> &'static [&'static str] {
        &["t/", "tests/"]
    }

    fn ceiling(&self) -> Verdict {
        Verdict::Report
    }

    fn detect(&self, tree: Tree<'_>) -> Option<Proposal> {
        let uses = tree
            .paths
            .iter()
            .any(|path| path.starts_with("t/") && has_extension(path, "t"));
        uses.then(|| Proposal {
            framework: Framework::Tap,
            verify: "prove -r t".into(),
            build: String::new(),
            options: Vec::new(),
            plugins: Vec::new(),
            env: Vec::new(),
            prepare: String::new(),
            tests: vec!["t/".into()],
        })
    }

    // `options` are the interpreter and its arguments; without them files run by themselves.
    fn tools(&self, plan: &Plan) -> Vec<Tool> {
        let interpreter = plan.options.first().filter(|name| !name.contains('/'));
        interpreter
            .map(|name| Tool {
                name: name.clone(),
                prepared: None,
                remedy: format!("install {name}, or change `options` in hangar.toml"),
            })
            .into_iter()
            .collect()
    }

    fn scripts(&self, _: &Layout) -> Vec<Script> {
        Vec::new()
    }

    // With an interpreter nothing needs to be executable: `*.t` files, or those with "test" in
    // their names.
    fn is_test_file(&self, suite: &Suite, path: &str) -> bool {
        let Some(file) = suite.file(path) else {
            return false;
        };
        let name = path.rsplit('/').next().unwrap_or(path);
        let named = has_extension(name, "t") || name.to_ascii_lowercase().contains("test");
        file.executable || (!suite.plan.options.is_empty() && named)
    }

    fn file_of<'a>(&self, suite: &'a Suite, id: &TestId) -> Option<&'a str> {
        let (path, _) = id.as_str().split_once(" > ")?;
        suite.file(path).map(|file| file.path.as_str())
    }

    fn list(&self, suite: &Suite) -> Result<Listing, Unlistable> {
        let tests = suite
            .files
            .iter()
            .any(|file| self.is_test_file(suite, &file.path));
        if tests {
            Ok(Listing::OnlyByRunning)
        } else {
            Err(Unlistable(vec![
                "no sealed file is a test: make each test file executable, or name it `*.t` where \
                 the plan names an interpreter"
                    .into(),
            ]))
        }
    }

    fn run(&self, suite: &Suite, ids: &[TestId]) -> Vec<Call> {
        let mut files: Vec<&str> = Vec::new();
        for id in ids {
            if let Some(file) = self.file_of(suite, id)
                && !files.contains(&file)
            {
                files.push(file);
            }
        }
        let timeout = suite.share(files.len());
        files
            .iter()
            .map(|file| {
                let mut argv: Vec<OsString> = Vec::new();
                if let Some((interpreter, arguments)) = suite.plan.options.split_first() {
                    argv.push(if interpreter.starts_with('/') {
                        interpreter.into()
                    } else {
                        suite.tools.path(interpreter).into()
                    });
                    argv.extend(arguments.iter().map(OsString::from));
                }
                argv.push(suite.inside(file).into());
                let own: Vec<TestId> = ids
                    .iter()
                    .filter(|id| self.file_of(suite, id) == Some(file))
                    .cloned()
                    .collect();
                suite.call(argv, &own, timeout)
            })
            .collect()
    }

    fn read(&self, suite: &Suite, ids: &[TestId], calls: &[(Call, Raw)]) -> RunReport {
        let mut builder = Builder::new(ids);
        let known: BTreeSet<&TestId> = suite.known.iter().collect();
        for (call, raw) in calls {
            builder.limits(raw);
            let file = call.ids.first().and_then(|id| self.file_of(suite, id));
            let Some(file) = file else {
                builder.fault(Fault::Runner);
                continue;
            };
            if let End::NotStarted(_) = raw.end {
                builder.missing("the interpreter of a test");
                builder.outcome_of_file(|id| call.ids.contains(id), Outcome::Environment);
                continue;
            }
            read_file(&mut builder, file, raw, |name| {
                // A file prints all its tests; those of the suite that this run did not ask for
                // are no surprise.
                TestId::new(name).is_some_and(|id| known.contains(&id) && !ids.contains(&id))
            });
        }
        builder.finish()
    }
}

/// Reads what one file printed.
fn read_file(builder: &mut Builder, file: &str, raw: &Raw, is_other: impl Fn(&str) -> bool) {
    let output = parse(&raw.stdout);
    let mut failed = output.bailed;
    for point in &output.points {
        let name = format!("{file} > {}", point.name);
        failed |= point.outcome.is_failure();
        if !is_other(&name) {
            builder.outcome(&name, point.outcome);
        }
    }
    if output.bailed || output.planned != Some(output.points.len()) {
        builder.fault(Fault::Incomplete);
    }
    // A producer may exit with 0 although points failed; the points say so. The other way round is
    // a contradiction.
    if !failed && raw.end != End::Exited(0) {
        builder.fault(Fault::Status);
    }
}

/// One `ok` or `not ok` line at the outermost level.
#[derive(Debug, PartialEq, Eq)]
struct Point {
    name: String,
    outcome: Outcome,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Output {
    points: Vec<Point>,
    planned: Option<usize>,
    bailed: bool,
}

/// Reads TAP leniently: what is no TAP is skipped, subtests (indented) count by their parent.
fn parse(bytes: &[u8]) -> Output {
    let text = String::from_utf8_lossy(bytes);
    let mut out = Output::default();
    let mut plans = 0;
    for line in text.lines() {
        let line = line.trim_end();
        if let Some(point) = point(line, out.points.len() + 1) {
            if out.points.len() == MAX_POINTS {
                out.planned = None;
                return out;
            }
            out.points.push(point);
        } else if let Some(plan) = line.strip_prefix("1..") {
            let number = plan.split([' ', '#']).next().unwrap_or_default();
            out.planned = number.parse().ok();
            plans += 1;
        } else if line.starts_with("Bail out!") {
            out.bailed = true;
            return out;
        }
    }
    if plans > 1 {
        out.planned = None;
    }
    out
}

fn point(line: &str, number: usize) -> Option<Point> {
    let (ok, rest) = match line.strip_prefix("not ok") {
        Some(rest) => (false, rest),
        None => (true, line.strip_prefix("ok")?),
    };
    if !rest.is_empty() && !rest.starts_with(' ') {
        return None;
    }
    let rest = rest.trim_start();
    let rest = rest
        .trim_start_matches(|c: char| c.is_ascii_digit())
        .trim_start();
    let rest = rest.strip_prefix("- ").unwrap_or(rest);
    let (name, directive) = match rest.find(" #") {
        Some(at) => (&rest[..at], rest[at + 2..].trim_start()),
        None => match rest.strip_prefix('#') {
            Some(directive) => ("", directive.trim_start()),
            None => (rest, ""),
        },
    };
    let word: String = directive.chars().take(4).collect();
    let skipped = word.eq_ignore_ascii_case("skip") || word.eq_ignore_ascii_case("todo");
    let name: String = name
        .trim()
        .chars()
        .filter(|c| !c.is_control())
        .take(900)
        .collect();
    Some(Point {
        name: if name.is_empty() {
            format!("#{number}")
        } else {
            name
        },
        outcome: if skipped {
            Outcome::Skipped
        } else if ok {
            Outcome::Passed
        } else {
            Outcome::Failed(FailureClass::Assertion)
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(text: &str) -> Vec<(String, Outcome)> {
        let points = parse(text.as_bytes()).points;
        points.into_iter().map(|p| (p.name, p.outcome)).collect()
    }

    #[test]
    fn points_directives_and_plans_are_read() {
        let text = "TAP version 14\n1..5\nok 1 - a b # not a directive word\nnot ok 2 c\n\
                    ok 3 - d # SKIP why\nnot ok 4 - e # TODO later\n    not ok 1 - inner\nok\n# note\n";
        let failed = Outcome::Failed(FailureClass::Assertion);
        assert_eq!(
            names(text),
            [
                ("a b".to_owned(), Outcome::Passed),
                ("c".to_owned(), failed),
                ("d".to_owned(), Outcome::Skipped),
                ("e".to_owned(), Outcome::Skipped),
                ("#5".to_owned(), Outcome::Passed),
            ]
        );
        assert_eq!(parse(text.as_bytes()).planned, Some(5));
    }

    #[test]
    fn two_plans_or_a_bail_out_are_no_completion() {
        assert_eq!(parse(b"1..1\nok 1 - a\n1..1\n").planned, None);
        assert!(parse(b"1..2\nok 1 - a\nBail out! no\n").bailed);
        assert_eq!(names("okay then\nnot okay\n"), []);
    }

    proptest! {
        #[test]
        fn any_output_is_read_without_panic(bytes: Vec<u8>, text in "((not )?ok ?[0-9]*( - .{0,9})?( #.{0,9})?\n){0,4}") {
            parse(&bytes);
            parse(text.as_bytes());
        }
    }
}
