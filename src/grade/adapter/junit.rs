//! `junit`: any program that runs tests and writes a report in JUnit's form. The plan's `options` are the
//! path of the report, the program, and its arguments; `{files}` among them stands for the sealed test
//! files. Ids: `classname::name`.
//!
//! The report comes from the process under test and nothing else speaks for it, so the verdict is
//! `report` at best. What the program reads of the repository is the plan's business.

use super::{Adapter, Listing, Proposal, Unlistable, handed, junit_xml};
use crate::grade::call::{Call, End, Layout, Raw, Script, Tool};
use crate::grade::manifest::Tree;
use crate::grade::report::{Builder, Fault, RunReport};
use crate::grade::suite::Suite;
use crate::model::outcome::{Outcome, TestId, Verdict};
use crate::model::plan::{Framework, Plan};
use std::collections::BTreeSet;
use std::ffi::OsString;

/// The adapter.
#[derive(Debug)]
pub(super) struct Junit;

const SCRIPT: &str = "step.sh";
/// Stands for the sealed test files.
const FILES: &str = "{files}";

impl Adapter for Junit {
    fn framework(&self) -> Framework {
        Framework::Junit
    }

    // Which program runs, and what it reads, only the plan knows.
    fn protected(&self) -> &'static [&'static str] {
        &[]
    }

    fn default_tests(&self) -> &'static [&'static str] {
        &["tests/"]
    }

    fn ceiling(&self) -> Verdict {
        Verdict::Report
    }

    // It fits everything, so it is never guessed.
    fn detect(&self, _: Tree<'_>) -> Option<Proposal> {
        None
    }

    fn tools(&self, plan: &Plan) -> Vec<Tool> {
        let program = plan.options.get(1).filter(|name| !name.contains('/'));
        let tool = |name: &String| Tool {
            name: name.clone(),
            prepared: matches!(name.as_str(), "python" | "python3").then_some("venv/bin/python"),
            remedy: format!("install {name}, or change `options` in hangar.toml"),
        };
        program.map(tool).into_iter().collect()
    }

    fn scripts(&self, layout: &Layout) -> Vec<Script> {
        vec![Script {
            path: layout.runners.join(SCRIPT),
            text: include_str!("../runners/junit.sh"),
        }]
    }

    fn is_test_file(&self, suite: &Suite, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        suite.file(path).is_some() && name.to_ascii_lowercase().contains("test")
    }

    fn file_of<'a>(&self, suite: &'a Suite, id: &TestId) -> Option<&'a str> {
        // What asks for all tests of a file.
        if let Some((path, _)) = id.as_str().split_once(" > ")
            && let Some(file) = suite.file(path)
        {
            return Some(file.path.as_str());
        }
        let (class, _) = id.as_str().split_once("::")?;
        let class = class.replace(['/', '\\'], ".");
        let files = suite.files.iter().map(|file| file.path.as_str());
        let tests = files.filter(|path| self.is_test_file(suite, path));
        let best = tests.max_by_key(|path| shared(path, &class))?;
        (shared(best, &class) > 0).then_some(best)
    }

    fn list(&self, suite: &Suite) -> Result<Listing, Unlistable> {
        let complain = |text: &str| Err(Unlistable(vec![text.into()]));
        if !is_usable(&suite.plan) {
            return complain(
                "`options` under [grader] in hangar.toml must be the path of the report (below the \
                 root of the tree), the program, and its arguments",
            );
        }
        let mut files = suite.files.iter();
        if !files.any(|file| self.is_test_file(suite, &file.path)) {
            return complain("no sealed file is a test: the name of a test file must hold `test`");
        }
        Ok(Listing::OnlyByRunning)
    }

    fn run(&self, suite: &Suite, ids: &[TestId]) -> Vec<Call> {
        let files = self.files(suite, ids);
        let [report, program, arguments @ ..] = suite.plan.options.as_slice() else {
            return Vec::new();
        };
        if files.is_empty() || !is_usable(&suite.plan) {
            return Vec::new();
        }
        let mut argv: Vec<OsString> = vec![
            "/bin/sh".into(),
            suite.layout.runners.join(SCRIPT).into(),
            suite.inside(report).into(),
            // An absolute path stays.
            if program.contains('/') {
                suite.inside(program).into()
            } else {
                suite.tools.path(program).into()
            },
        ];
        for argument in arguments {
            if argument == FILES {
                argv.extend(files.iter().map(OsString::from));
            } else {
                argv.push(argument.into());
            }
        }
        let mut call = suite.call(argv, ids, suite.timeout());
        call.channel = true;
        call.stdin = format!("{}\n", call.nonce).into_bytes();
        vec![call]
    }

    fn read(&self, suite: &Suite, ids: &[TestId], calls: &[(Call, Raw)]) -> RunReport {
        let mut builder = Builder::new(ids);
        let [(call, raw)] = calls else {
            builder.fault(Fault::Runner);
            return builder.finish();
        };
        builder.limits(raw);
        let told = match handed::read(&raw.channel, &call.nonce) {
            Ok(told) => told,
            Err(fault) => {
                builder.fault(fault);
                return builder.finish();
            }
        };
        let known: BTreeSet<&str> = suite.known.iter().map(TestId::as_str).collect();
        let asked: BTreeSet<&str> = ids.iter().map(TestId::as_str).collect();
        let mut failed = false;
        for text in &told.files {
            let Some(report) = std::str::from_utf8(text).ok().and_then(junit_xml::read) else {
                builder.fault(Fault::Unreadable);
                continue;
            };
            if report.miscounted {
                builder.fault(Fault::Sources);
            }
            for test in report.tests {
                failed |= test.outcome.is_failure();
                // A file runs all its tests; those of the suite that this run did not ask for are no
                // surprise.
                let name = test.name.as_str();
                if asked.contains(name) || !known.contains(name) {
                    builder.outcome(name, test.outcome);
                }
            }
        }
        match told.status {
            None => builder.fault(Fault::Incomplete),
            // What the shell can't start.
            Some(126 | 127) if told.files.is_empty() => {
                builder.missing("the program of the plan");
                builder.outcome_of_file(|_| true, Outcome::Environment);
            }
            Some(_) if told.files.is_empty() => builder.fault(Fault::Incomplete),
            // A program may end with 0 although tests failed; the report says so. The other way round
            // is a contradiction.
            Some(status) if raw.end != End::Exited(status) || (!failed && status != 0) => {
                builder.fault(Fault::Status);
            }
            Some(_) => {}
        }
        builder.finish()
    }
}

impl Junit {
    /// Files that hold these tests, each once; every test file where that can't be told of one.
    fn files<'a>(&self, suite: &'a Suite, ids: &[TestId]) -> Vec<&'a str> {
        let mut files: Vec<&str> = Vec::new();
        for id in ids {
            let Some(file) = self.file_of(suite, id) else {
                let all = suite.files.iter().map(|file| file.path.as_str());
                return all.filter(|path| self.is_test_file(suite, path)).collect();
            };
            if !files.contains(&file) {
                files.push(file);
            }
        }
        files
    }
}

/// Whether a plan names a report below the root, and a program.
fn is_usable(plan: &Plan) -> bool {
    let [report, program, ..] = plan.options.as_slice() else {
        return false;
    };
    let path = report.strip_suffix('/').unwrap_or(report);
    let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    path.split('/').all(plain) && !program.is_empty()
}

/// How much of the end of a file's path a class name begins with, in bytes; 0 is nothing.
fn shared(path: &str, class: &str) -> usize {
    let stem = match path.rsplit_once('.') {
        Some((stem, end)) if !end.contains('/') => stem,
        _ => path,
    };
    let begins = |name: &str| {
        class
            .strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let mut best = 0;
    for whole in [path, stem] {
        let dotted = whole.replace('/', ".");
        let starts = whole.match_indices('/').map(|(at, _)| at + 1);
        for at in starts.chain([0]) {
            let name = &dotted[at..];
            if begins(name) {
                best = best.max(name.len());
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_class_name_tells_its_file() {
        for (path, class, is_its) in [
            ("tests/test_add.py", "tests.test_add", true),
            ("tests/test_add.py", "tests.test_add.TestMore", true),
            ("tests/test_add.py", "test_add.TestMore", true),
            ("tests/test_add.py", "tests.test_adder", false),
            ("src/test/java/calc/AddTest.java", "calc.AddTest", true),
            ("src/test/java/calc/AddTest.java", "other.AddTest", false),
            ("tests/add.test.js", "tests.add.test.js", true),
            ("tests/add.test.js", "sum", false),
        ] {
            assert_eq!(shared(path, class) > 0, is_its, "{path} {class}");
        }
    }

    proptest! {
        #[test]
        fn any_name_is_compared_without_panic(path in ".{0,20}", class in ".{0,20}") {
            shared(&path, &class);
        }
    }
}
