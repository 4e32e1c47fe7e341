//! The base check: how the hidden tests end on the untouched base, and whether they are fit to be
//! sealed.
//!
//! Pure. Complaints name tests: they go to the writer of the tests and to nobody else.

use crate::grade::report::{Fault, RunReport};
use crate::model::complaint::{Complaint, Kind};
use crate::model::criteria::Criteria;
use crate::model::ids::CriterionId;
use crate::model::manifest::{self, BaseStatus, Coverage};
use crate::model::outcome::{FailureClass, Outcome, TestId};
use std::collections::{BTreeMap, BTreeSet};

/// How a test ended on the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BaseResult {
    /// It fails, as a test of something that is not there yet must.
    Fails(FailureClass),
    /// It passes already and must go on passing.
    Guard,
    /// It was skipped, and may be skipped again.
    Skipped,
    /// What it needs is not there.
    Environment,
    /// The base does not compile with it, so it did not run. It counts as failing.
    Unconfirmed,
}

impl BaseResult {
    /// What an outcome on the base means.
    pub const fn of(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Passed => Self::Guard,
            Outcome::Skipped => Self::Skipped,
            Outcome::Environment => Self::Environment,
            Outcome::Failed(FailureClass::Compile) => Self::Unconfirmed,
            Outcome::Failed(class) => Self::Fails(class),
        }
    }

    /// The word for it in documents. `None`: there is nothing to document, it can't be sealed.
    pub const fn status(self) -> Option<BaseStatus> {
        match self {
            Self::Fails(_) => Some(BaseStatus::Fails),
            Self::Guard => Some(BaseStatus::Guard),
            Self::Skipped => Some(BaseStatus::Skipped),
            Self::Unconfirmed => Some(BaseStatus::Unconfirmed),
            Self::Environment => None,
        }
    }

    /// Class of a failure.
    pub const fn class(self) -> Option<FailureClass> {
        match self {
            Self::Fails(class) => Some(class),
            Self::Unconfirmed => Some(FailureClass::Compile),
            _ => None,
        }
    }

    /// Whether it counts as failing: it covers its criterion and must pass after the patch.
    pub const fn counts_as_failing(self) -> bool {
        matches!(self, Self::Fails(_) | Self::Unconfirmed)
    }
}

/// What the base check is made of.
#[derive(Debug)]
pub struct Evidence<'a> {
    /// The writer's map.
    pub criteria: &'a Criteria,
    /// Tests that the adapter found in the sealed files. `None` where only a run tells.
    pub listed: Option<&'a BTreeSet<TestId>>,
    /// Runs of all tests but the sentinels; more than one with `repeat`. Not empty.
    pub runs: &'a [RunReport],
    /// The run of the sentinels (others may be among them). `None` where there are none.
    pub sentinels: Option<&'a RunReport>,
    /// The sealed file of each test, where the adapter can tell.
    pub file_of: &'a BTreeMap<TestId, String>,
}

/// The base check's result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BaseCheck {
    /// Each test but the sentinels.
    pub results: BTreeMap<TestId, BaseResult>,
    /// Tests that ended differently when they were repeated.
    pub flakes: BTreeSet<TestId>,
    /// Criteria without a test that fails on the base.
    pub uncovered: Vec<CriterionId>,
    /// Declared dependencies that are not there: not the writer's fault, and the end of it.
    pub missing: BTreeSet<String>,
    /// Plugins of the runner that tests need, installed and not loaded: likewise.
    pub unloaded: BTreeSet<String>,
    /// What the runner said last that broke before it ran a test.
    pub broken: Option<String>,
    /// What the writer must change. Empty: the tests can be sealed.
    pub complaints: Vec<Complaint>,
}

impl BaseCheck {
    /// Whether the environment, not the writer, is at fault.
    pub fn is_environment(&self) -> bool {
        self.broken.is_some()
            || !self.missing.is_empty()
            || !self.unloaded.is_empty()
            || self.results.values().any(|r| *r == BaseResult::Environment)
    }

    /// What the manifest says of each test. Tests without a result, and sentinels, are left out.
    pub fn rows(&self, criteria: &Criteria) -> Vec<manifest::BaseResult> {
        let named = criteria.named().into_iter();
        named
            .filter_map(|(alias, id)| {
                let result = self.results.get(&id)?;
                Some(manifest::BaseResult {
                    alias,
                    status: result.status()?,
                    class: result.class(),
                    flaky: self.flakes.contains(&id),
                })
            })
            .collect()
    }

    /// What the manifest says of each criterion.
    pub fn coverage(&self, criteria: &Criteria) -> Vec<Coverage> {
        let fails = |id: &&TestId| self.results.get(*id).is_some_and(|r| r.counts_as_failing());
        criteria
            .criteria()
            .map(|(criterion, ids)| Coverage {
                criterion: criterion.clone(),
                tests: count(ids.len()),
                fails: count(ids.iter().filter(fails).count()),
            })
            .collect()
    }

    /// Numbers for the manifest. `files` is the number of sealed files.
    pub fn counts(&self, criteria: &Criteria, files: usize) -> manifest::Counts {
        let mut counts = manifest::Counts {
            criteria: count(criteria.criteria().count()),
            uncovered: count(self.uncovered.len()),
            files: count(files),
            tests: count(criteria.expected().len()),
            sentinels: count(criteria.sentinels().len()),
            flaky: count(self.flakes.len()),
            ..manifest::Counts::default()
        };
        for result in self.results.values() {
            match result {
                BaseResult::Fails(_) => counts.fails += 1,
                BaseResult::Guard => counts.guards += 1,
                BaseResult::Skipped => counts.skipped += 1,
                BaseResult::Unconfirmed => {
                    counts.fails += 1;
                    counts.unconfirmed += 1;
                }
                BaseResult::Environment => {}
            }
        }
        counts
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Checks hidden tests against the base.
pub fn check(evidence: &Evidence<'_>) -> BaseCheck {
    let mut out = BaseCheck::default();
    let expected = evidence.criteria.expected();
    ids_are_known(evidence, &expected, &mut out.complaints);
    for id in &expected {
        classify(id, evidence, &mut out);
    }
    for run in evidence.runs.iter().chain(evidence.sentinels) {
        out.missing.extend(run.missing.iter().cloned());
        out.unloaded.extend(run.unloaded.iter().cloned());
        out.broken = out.broken.or_else(|| run.broken.clone());
        runs_are_sound(run, evidence.listed, &mut out.complaints);
    }
    for (criterion, ids) in evidence.criteria.criteria() {
        let covers = |id: &TestId| out.results.get(id).is_some_and(|r| r.counts_as_failing());
        if !ids.iter().any(covers) {
            out.uncovered.push(criterion.clone());
        }
    }
    if !out
        .results
        .values()
        .any(|result| result.counts_as_failing())
        && !out.is_environment()
        && !names_are_wrong(&out.complaints)
    {
        out.complaints.push(Complaint::new(
            Kind::NoneFails,
            "no test fails on the base: tests that pass before the work is done can't tell whether \
             it was done. Write tests that fail now and pass once the criteria hold",
        ));
    }
    sentinels_fail(evidence, &mut out.complaints);
    out.complaints.dedup();
    out
}

/// Whether tests of the map never ran: that no test fails may come of that alone.
fn names_are_wrong(complaints: &[Complaint]) -> bool {
    let wrong = [Kind::UnknownId, Kind::NotRun];
    complaints.iter().any(|one| wrong.contains(&one.kind))
}

/// Names of the tests that there are, as far as that helps.
fn the_tests(listed: &BTreeSet<TestId>) -> String {
    const MOST: usize = 8;
    let names: Vec<String> = listed
        .iter()
        .take(MOST)
        .map(|id| format!("`{id}`"))
        .collect();
    match names.as_slice() {
        [] => " (there is none)".to_owned(),
        names if listed.len() > MOST => format!(" (the tests are {}, …)", names.join(", ")),
        names => format!(" (the tests are {})", names.join(", ")),
    }
}

/// Every id of the map is a test, and every test is in the map.
fn ids_are_known(
    evidence: &Evidence<'_>,
    expected: &BTreeSet<TestId>,
    complaints: &mut Vec<Complaint>,
) {
    let Some(listed) = evidence.listed else {
        return;
    };
    let named: BTreeSet<&TestId> = expected
        .iter()
        .chain(evidence.criteria.sentinels())
        .collect();
    for id in &named {
        if listed.contains(*id) {
            continue;
        }
        let bare = TestId::new(id.without_parameters());
        let hint = match bare.filter(|bare| listed.contains(bare)) {
            Some(bare) => format!(" (list it without its parameters: `{bare}`)"),
            None => the_tests(listed),
        };
        complaints.push(Complaint::new(
            Kind::UnknownId,
            format!("criteria.json names `{id}`, which is no test of the files{hint}"),
        ));
    }
    for id in listed {
        if !named.contains(id) {
            complaints.push(Complaint::new(Kind::Unnamed, format!(
                "`{id}` stands in no list of criteria.json; put it under a criterion, in `others` \
                 or in `sentinels`"
            )));
        }
    }
}

fn classify(id: &TestId, evidence: &Evidence<'_>, out: &mut BaseCheck) {
    let mut seen: BTreeSet<BaseResult> = BTreeSet::new();
    for run in evidence.runs {
        if let Some(outcome) = run.outcomes.get(id) {
            seen.insert(BaseResult::of(*outcome));
        } else if run.absent.contains(id) && !run.not_run.contains_key(id) {
            let crashed = run.faults.iter().any(|fault| {
                matches!(fault, Fault::Incomplete | Fault::NotStarted | Fault::Runner)
            });
            if crashed {
                seen.insert(BaseResult::Fails(FailureClass::Crash));
            }
        }
    }
    let Some(result) = seen.first().copied() else {
        // An id that the files don't hold was complained about already.
        if evidence.listed.is_none_or(|listed| listed.contains(id)) {
            let why = evidence.runs.iter().find_map(|run| why(run, id));
            out.complaints.push(Complaint::new(
                Kind::NotRun,
                format!("`{id}` did not run on the base{}", why.unwrap_or_default()),
            ));
        }
        return;
    };
    if seen.len() > 1 {
        out.flakes.insert(id.clone());
    }
    if evidence.runs.iter().any(|run| run.mixed.contains(id)) {
        out.complaints.push(Complaint::new(Kind::PartlySkipped, format!(
            "`{id}` skips for some of its parameters only; a test is skipped as a whole or not at all"
        )));
    }
    // The first in order is a failure where there is one.
    out.results.insert(id.clone(), result);
}

/// What follows "did not run", where the runner tells.
fn why(run: &RunReport, id: &TestId) -> Option<String> {
    run.not_run.get(id).map(|why| format!(" ({why})"))
}

/// Names that a run reported although nobody listed them, or twice.
fn runs_are_sound(
    run: &RunReport,
    listed: Option<&BTreeSet<TestId>>,
    complaints: &mut Vec<Complaint>,
) {
    // One that the files do hold was complained about already: the map lacks it.
    let is_listed = |name: &&String| {
        let id = TestId::new(name.as_str());
        let bare = id.and_then(|id| TestId::new(id.without_parameters()));
        listed.is_some_and(|listed| bare.is_some_and(|bare| listed.contains(&bare)))
    };
    let unknown = run.unknown.iter().filter(|name| !is_listed(name));
    for name in unknown.take(20) {
        let name = printable(name);
        complaints.push(if listed.is_some() {
            Complaint::new(Kind::Unlisted, format!(
                "`{name}` ran but can't be listed by reading the files; define tests directly in a \
                 sealed test file, under a plain name"
            ))
        } else {
            Complaint::new(Kind::Unnamed, format!(
                "`{name}` ran and stands in no list of criteria.json; put it under a criterion, in \
                 `others` or in `sentinels`"
            ))
        });
    }
    for name in run.duplicates.iter().take(20) {
        complaints.push(Complaint::new(
            Kind::Twice,
            format!(
                "`{}` was reported more than once; every test needs a name of its own",
                printable(name)
            ),
        ));
    }
    for fault in &run.faults {
        if *fault == Fault::Unchecked {
            complaints.push(Complaint::new(
                Kind::Untrusted,
                "the tests are compiled without overflow checks or debug assertions: turn them on in the \
                 profile, or off in `grader.env` (`CARGO_PROFILE_TEST_OVERFLOW_CHECKS = \"false\"` and \
                 the like), so that whoever approves sees it",
            ));
        } else if matches!(
            fault,
            Fault::NotSealed | Fault::Sources | Fault::Status | Fault::Moved
        ) {
            complaints.push(Complaint::new(
                Kind::Untrusted,
                format!("the run on the base can't be believed: {fault}"),
            ));
        }
    }
}

/// Sentinels fail by assertion, and lie in files of their own.
fn sentinels_fail(evidence: &Evidence<'_>, complaints: &mut Vec<Complaint>) {
    let sentinels = evidence.criteria.sentinels();
    let files: BTreeSet<&String> = evidence
        .criteria
        .expected()
        .iter()
        .filter_map(|id| evidence.file_of.get(id))
        .collect();
    for id in sentinels {
        if evidence
            .file_of
            .get(id)
            .is_some_and(|file| files.contains(file))
        {
            complaints.push(Complaint::new(Kind::SentinelPlace, format!(
                "the sentinel `{id}` shares a file with other tests; sentinels lie in a file of their own"
            )));
        }
        let outcome = evidence
            .sentinels
            .and_then(|run| run.outcomes.get(id).copied());
        let fault = match outcome {
            Some(Outcome::Failed(FailureClass::Assertion) | Outcome::Environment) => continue,
            Some(Outcome::Passed) => "passes".to_owned(),
            Some(Outcome::Skipped) => "is skipped".to_owned(),
            Some(Outcome::Failed(class)) => format!("fails by {class}"),
            // One that the files don't hold was complained about already.
            None if evidence.listed.is_some_and(|listed| !listed.contains(id)) => continue,
            None => {
                let why = evidence.sentinels.and_then(|run| why(run, id));
                format!("did not run{}", why.unwrap_or_default())
            }
        };
        complaints.push(Complaint::new(Kind::Sentinel, format!(
            "the sentinel `{id}` {fault} on the base; a sentinel must fail by assertion with any \
             implementation (an expected value that is wrong on purpose)"
        )));
    }
}

fn printable(name: &str) -> String {
    name.chars()
        .take(300)
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

#[cfg(test)]
mod tests;
