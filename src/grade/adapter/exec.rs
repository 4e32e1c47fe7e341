//! `exec`: each sealed executable is one test, in a process of its own. Exit status 0 passes, 77
//! skips, everything else fails. Ids are paths.

use super::{Adapter, Listing, Proposal, Unlistable};
use crate::grade::call::{Call, End, Layout, Raw, Script, Tool};
use crate::grade::manifest::Tree;
use crate::grade::report::{Builder, Fault, RunReport};
use crate::grade::suite::Suite;
use crate::model::outcome::{FailureClass, Outcome, TestId, Verdict};
use crate::model::plan::{Framework, Plan};

/// The adapter.
#[derive(Debug)]
pub(super) struct Exec;

/// Exit status of a test that says it can't run here, as in automake.
const SKIP: i32 = 77;

impl Adapter for Exec {
    fn framework(&self) -> Framework {
        Framework::Exec
    }

    // The kernel is the runner: nothing in the tree configures it.
    fn protected(&self) -> &'static [&'static str] {
        &[]
    }

    fn default_tests(&self) -> &'static [&'static str] {
        &["tests/"]
    }

    fn ceiling(&self) -> Verdict {
        Verdict::Exit
    }

    // It fits everything, so it is never guessed.
    fn detect(&self, _: Tree<'_>) -> Option<Proposal> {
        None
    }

    fn tools(&self, _: &Plan) -> Vec<Tool> {
        Vec::new()
    }

    fn scripts(&self, _: &Layout) -> Vec<Script> {
        Vec::new()
    }

    fn is_test_file(&self, suite: &Suite, path: &str) -> bool {
        suite.file(path).is_some_and(|file| file.executable)
    }

    fn file_of<'a>(&self, suite: &'a Suite, id: &TestId) -> Option<&'a str> {
        suite.file(id.as_str()).map(|file| file.path.as_str())
    }

    fn list(&self, suite: &Suite) -> Result<Listing, Unlistable> {
        let ids: Vec<TestId> = suite
            .files
            .iter()
            .filter(|file| file.executable)
            .filter_map(|file| TestId::new(file.path.clone()))
            .collect();
        if ids.is_empty() {
            return Err(Unlistable(vec![
                "no sealed file is executable; each test must be an executable file \
                 (`chmod +x`) that exits with 0 when it passes"
                    .into(),
            ]));
        }
        Ok(Listing::Known(ids))
    }

    fn run(&self, suite: &Suite, ids: &[TestId]) -> Vec<Call> {
        let timeout = suite.share(ids.len());
        ids.iter()
            .map(|id| {
                let program = suite.inside(id.as_str()).into_os_string();
                suite.call(vec![program], std::slice::from_ref(id), timeout)
            })
            .collect()
    }

    fn read(&self, suite: &Suite, ids: &[TestId], calls: &[(Call, Raw)]) -> RunReport {
        let mut builder = Builder::new(ids);
        for (call, raw) in calls {
            builder.limits(raw);
            let Some(id) = call.ids.first() else {
                builder.fault(Fault::Runner);
                continue;
            };
            let outcome = outcome(raw.end);
            if outcome == Outcome::Environment {
                let mut files = suite.files.iter();
                if !files.any(|file| file.executable && file.path == id.as_str()) {
                    // Named by the map alone: no test, and no fault of the machine.
                    continue;
                }
                // The name of a hidden test has no place in an error.
                builder.missing("the interpreter of a test");
            }
            builder.outcome(id.as_str(), outcome);
        }
        builder.finish()
    }
}

/// What an exit status means. 126 and 127 are the shell's "can't be run" and "not found": the test
/// called a program of the project that is not there.
pub(super) fn outcome(end: End) -> Outcome {
    match end {
        End::Exited(0) => Outcome::Passed,
        End::Exited(SKIP) => Outcome::Skipped,
        End::Exited(126 | 127) => Outcome::Failed(FailureClass::MissingSymbol),
        End::Exited(_) => Outcome::Failed(FailureClass::Assertion),
        End::Signalled(_) => Outcome::Failed(FailureClass::Crash),
        End::TimedOut => Outcome::Failed(FailureClass::Timeout),
        End::NotStarted(_) => Outcome::Environment,
    }
}
