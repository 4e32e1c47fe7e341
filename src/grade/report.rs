//! What one run of tests said, brought into one form for every framework.
//!
//! Faults are contradictions between sources (report, exit status, completion, expected ids). Their
//! texts name no test: they stand in clear documents.

use crate::base::words::{self, count};
use crate::grade::call::{End, Hit, Raw};
use crate::model::outcome::{FailureClass, Outcome, TestId};
use std::collections::{BTreeMap, BTreeSet};

/// Why a run can't be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
pub enum Fault {
    /// The runner did not say that it came to its end.
    #[error("the runner did not come to its end")]
    Incomplete,
    /// The runner ended before it began to load tests.
    #[error("the runner broke before it loaded a test")]
    NotStarted,
    /// A record can't be read.
    #[error("a record of the run can't be read")]
    Unreadable,
    /// A record was not written by our runner, or records are missing in between.
    #[error("records of the run are missing, out of order or not the runner's own")]
    NotOurs,
    /// Report and exit status contradict each other.
    #[error("the exit status contradicts the report")]
    Status,
    /// Two sources inside the runner contradict each other.
    #[error("the runner's own sources contradict each other")]
    Sources,
    /// The runner itself failed.
    #[error("the runner failed by itself")]
    Runner,
    /// What ran is not what was sealed.
    #[error("what ran was not built from the sealed file")]
    NotSealed,
    /// A dependency that the base fetches was built from files of the tree.
    #[error("a dependency was replaced by code of the patch")]
    Replaced,
    /// It can't be told whether one was.
    #[error(
        "it can't be told whether the names that the tests use mean the same code as in the base"
    )]
    Names,
    /// The tests import a package that the base does not have and the patch installs.
    #[error("the tests import a package that only the patch installs")]
    Installed,
    /// Tests were compiled without checks that they rely on.
    #[error("the tests were compiled with their checks turned off")]
    Unchecked,
    /// A build script told the compiler that the tests' package lies in another folder.
    #[error("a build script gave the tests another folder than their own")]
    Moved,
    /// A test was reported more than once.
    #[error("{}", count(*.0, "test was reported more than once", "tests were reported more than once"))]
    Duplicate(usize),
    /// Tests were reported that nobody asked for.
    #[error("{}", count(*.0, "test was reported that nobody asked for", "tests were reported that nobody asked for"))]
    Unknown(usize),
    /// Expected tests were not reported.
    #[error("{}", count(*.0, "expected test was not reported", "expected tests were not reported"))]
    Absent(usize),
    /// Tests that ran once more beside the sentinels, or sentinels, were not reported there.
    #[error("{}", count(*.0, "test was not reported when tests and sentinels ran together", "tests were not reported when tests and sentinels ran together"))]
    AbsentBeside(usize),
}

impl Fault {
    /// Whether a bound that the code ran into explains it.
    pub const fn follows_from_a_limit(self) -> bool {
        matches!(
            self,
            Self::Incomplete
                | Self::NotStarted
                | Self::Absent(_)
                | Self::AbsentBeside(_)
                | Self::Status
                | Self::Runner
        )
    }
}

/// One run, read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunReport {
    /// How each expected test ended. Tests that a limit cut off stand here as failed.
    pub outcomes: BTreeMap<TestId, Outcome>,
    /// Expected tests without an outcome.
    pub absent: BTreeSet<TestId>,
    /// Names reported more than once.
    pub duplicates: BTreeSet<String>,
    /// Names reported that nobody asked for.
    pub unknown: BTreeSet<String>,
    /// Tests that ended differently for different parameters, skips among them.
    pub mixed: BTreeSet<TestId>,
    /// Declared dependencies that were not there, by module name.
    pub missing: BTreeSet<String>,
    /// Plugins of the runner that tests need, and that are installed and not loaded.
    pub unloaded: BTreeSet<String>,
    /// Tests whose body never ran, each with the reason: it may name a fixture of theirs.
    pub not_run: BTreeMap<TestId, String>,
    /// Contradictions, each once.
    pub faults: BTreeSet<Fault>,
    /// Bounds that were hit.
    pub hits: BTreeSet<Hit>,
    /// A bound ended it early: it failed, whatever was reported before.
    pub cut: bool,
    /// The runner ended by itself before it told of any test, and what it said last.
    pub broken: Option<String>,
}

impl RunReport {
    /// Whether nothing speaks against believing it.
    pub fn is_sound(&self) -> bool {
        self.faults.is_empty()
    }
}

/// Collects what a run said and closes it into a [`RunReport`].
#[derive(Debug)]
pub(crate) struct Builder {
    expected: BTreeSet<TestId>,
    seen: BTreeMap<String, TestId>,
    skipped: BTreeSet<TestId>,
    ran: BTreeSet<TestId>,
    report: RunReport,
}

impl Builder {
    /// A run that should report `expected`.
    pub(crate) fn new<'a>(expected: impl IntoIterator<Item = &'a TestId>) -> Self {
        Self {
            expected: expected.into_iter().cloned().collect(),
            seen: BTreeMap::new(),
            skipped: BTreeSet::new(),
            ran: BTreeSet::new(),
            report: RunReport::default(),
        }
    }

    /// The expected test that a reported name means: itself, or itself with parameters.
    fn resolve(&self, name: &str) -> Option<TestId> {
        let id = TestId::new(name)?;
        if self.expected.contains(&id) {
            return Some(id);
        }
        let bare = TestId::new(id.without_parameters())?;
        self.expected.contains(&bare).then_some(bare)
    }

    /// Takes one reported outcome. Several of one test with different parameters count as the
    /// worst of them.
    pub(crate) fn outcome(&mut self, name: &str, outcome: Outcome) {
        let Some(id) = self.resolve(name) else {
            self.unknown(name);
            return;
        };
        if self.seen.insert(name.to_owned(), id.clone()).is_some() {
            self.report.duplicates.insert(name.to_owned());
        }
        if outcome == Outcome::Skipped {
            self.skipped.insert(id.clone());
        } else {
            self.ran.insert(id.clone());
        }
        self.report
            .outcomes
            .entry(id)
            .and_modify(|old| *old = worse(*old, outcome))
            .or_insert(outcome);
    }

    /// Takes one outcome for every expected test of which `belongs` is true. A test among them that
    /// was reported by itself is a contradiction.
    pub(crate) fn outcome_of_file(&mut self, belongs: impl Fn(&TestId) -> bool, outcome: Outcome) {
        for id in self.expected.iter().filter(|id| belongs(id)) {
            if self.report.outcomes.insert(id.clone(), outcome).is_some() {
                self.report.faults.insert(Fault::Sources);
            }
        }
    }

    /// Takes a reported test that nobody asked for.
    pub(crate) fn unknown(&mut self, name: &str) {
        self.report
            .unknown
            .insert(name.chars().take(TestId::MAX).collect());
    }

    /// Takes a dependency that is not there.
    pub(crate) fn missing(&mut self, module: &str) {
        self.report.missing.insert(module.to_owned());
    }

    /// Takes a contradiction.
    pub(crate) fn fault(&mut self, fault: Fault) {
        self.report.faults.insert(fault);
    }

    /// Takes the bounds that a call hit.
    pub(crate) fn limits(&mut self, raw: &Raw) {
        self.report.hits.extend(raw.hits.iter().copied());
        if raw.end == End::TimedOut {
            self.report.hits.insert(Hit::Time);
        }
    }

    /// Takes a runner that ended by itself and told of no test. What it said is taken only where no test
    /// was loaded: it could be a line of one.
    pub(crate) fn broken(&mut self, raw: &Raw, was_loaded: bool) {
        if !raw.hits.is_empty() || raw.end == End::TimedOut {
            return;
        }
        let said = (!was_loaded).then(|| words::error_line(&raw.stderr));
        self.report.broken = Some(match (said.flatten(), raw.end) {
            (Some(said), _) => said,
            (None, End::Exited(status)) => format!("it ended with status {status}"),
            (None, _) => "it was ended".to_owned(),
        });
    }

    /// Takes a plugin of the runner that a test needs, and that is installed and not loaded.
    pub(crate) fn unloaded(&mut self, module: &str) {
        self.report.unloaded.insert(module.to_owned());
    }

    /// Takes a test that the runner ended before its body ran.
    pub(crate) fn not_run(&mut self, name: &str, why: String) {
        match self.resolve(name) {
            Some(id) => drop(self.report.not_run.insert(id, why)),
            None => self.unknown(name),
        }
    }

    /// Closes the run. Tests that are absent because a bound was hit failed by it.
    pub(crate) fn finish(self) -> RunReport {
        let mut report = self.report;
        let absent: BTreeSet<TestId> = self
            .expected
            .iter()
            .filter(|id| !report.outcomes.contains_key(id))
            .cloned()
            .collect();
        let class = if report.hits.contains(&Hit::Time) {
            Some(FailureClass::Timeout)
        } else if report.hits.is_empty() {
            None
        } else {
            Some(FailureClass::Crash)
        };
        if let Some(class) = class {
            report.cut = report.hits.contains(&Hit::Time)
                || !absent.is_empty()
                || report
                    .faults
                    .iter()
                    .any(|fault| fault.follows_from_a_limit());
            for id in absent {
                report.outcomes.insert(id, Outcome::Failed(class));
            }
            report.faults.retain(|fault| !fault.follows_from_a_limit());
        } else {
            report.absent = absent;
        }
        report.mixed = self.skipped.intersection(&self.ran).cloned().collect();
        let counted = [
            (report.absent.len(), Fault::Absent as fn(usize) -> Fault),
            (report.duplicates.len(), Fault::Duplicate),
            (report.unknown.len(), Fault::Unknown),
        ];
        for (count, fault) in counted {
            if count > 0 {
                report.faults.insert(fault(count));
            }
        }
        report
    }
}

/// The worse of two outcomes: failed, environment, skipped, passed.
fn worse(a: Outcome, b: Outcome) -> Outcome {
    let rank = |outcome| match outcome {
        Outcome::Failed(_) => 3,
        Outcome::Environment => 2,
        Outcome::Skipped => 1,
        Outcome::Passed => 0,
    };
    if rank(b) > rank(a) { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> TestId {
        TestId::new(text).unwrap()
    }

    fn raw(end: End) -> Raw {
        Raw {
            end,
            stdout: Vec::new(),
            stderr: Vec::new(),
            channel: Vec::new(),
            files: BTreeMap::new(),
            hits: Vec::new(),
        }
    }

    #[test]
    fn parameters_count_as_the_worst() {
        let ids = [id("a"), id("b")];
        let mut builder = Builder::new(&ids);
        builder.outcome("a[1]", Outcome::Passed);
        builder.outcome("a[2]", Outcome::Skipped);
        builder.outcome("b", Outcome::Passed);
        let report = builder.finish();
        assert_eq!(report.outcomes[&ids[0]], Outcome::Skipped);
        assert_eq!(report.mixed, BTreeSet::from([ids[0].clone()]));
        assert!(report.is_sound());
    }

    #[test]
    fn dropped_doubled_and_invented_tests_are_faults() {
        let ids = [id("a"), id("b")];
        let mut builder = Builder::new(&ids);
        builder.outcome("a", Outcome::Passed);
        builder.outcome("a", Outcome::Passed);
        builder.outcome("c", Outcome::Passed);
        let report = builder.finish();
        let faults = [Fault::Duplicate(1), Fault::Unknown(1), Fault::Absent(1)];
        assert_eq!(report.faults, BTreeSet::from(faults));
    }

    #[test]
    fn what_a_timeout_cut_off_failed() {
        let ids = [id("a"), id("b")];
        let mut builder = Builder::new(&ids);
        builder.outcome("a", Outcome::Passed);
        builder.fault(Fault::Incomplete);
        builder.limits(&raw(End::TimedOut));
        let report = builder.finish();
        assert!(report.is_sound() && report.cut);
        let timeout = Outcome::Failed(FailureClass::Timeout);
        assert_eq!(report.outcomes[&ids[1]], timeout);
        assert_eq!(report.hits, BTreeSet::from([Hit::Time]));
    }

    #[test]
    fn a_timeout_does_not_excuse_a_forged_record() {
        let ids = [id("a")];
        let mut builder = Builder::new(&ids);
        builder.fault(Fault::NotOurs);
        builder.limits(&raw(End::TimedOut));
        assert!(!builder.finish().is_sound());
    }
}
