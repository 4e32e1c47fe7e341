//! The verdict on a patch: accepted, not accepted, or void.
//!
//! Pure. Fails closed: whatever is not shown is not held. Reasons name no test, only counts: they
//! stand in clear documents.

use crate::base::words::count;
use crate::grade::call::Hit;
use crate::grade::report::{Fault, RunReport};
use crate::model::criteria::Criteria;
use crate::model::grade::{GradeCounts, TestOutcome, TestResult};
use crate::model::manifest::BaseStatus;
use crate::model::outcome::{FailureClass, Outcome, TestId, Trust, Verdict};
use crate::model::plan::Plan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::mem::discriminant;

/// Everything that a grade rests on.
#[derive(Debug)]
pub struct Evidence<'a> {
    /// The approved map.
    pub criteria: &'a Criteria,
    /// The base check of the approved version.
    pub base: &'a BTreeMap<TestId, BaseStatus>,
    /// The approved plan.
    pub plan: &'a Plan,
    /// The best verdict that the adapter's evidence supports.
    pub ceiling: Verdict,
    /// The whole suite, without the sentinels.
    pub suite: &'a RunReport,
    /// The sentinels, first in a process that tests share and among a sample of the others. Empty: not
    /// run.
    pub sentinels: &'a [RunReport],
    /// The sentinels behind tests of the suite, each run in one process. `None`: every test of this
    /// framework is a process of its own.
    pub company: Option<&'a [RunReport]>,
    /// Protected paths that the patch changes beyond the plan.
    pub touched: usize,
    /// What the probes showed.
    pub trust: Trust,
    /// Whether patched code and runner could not reach the supervisor (the inner domain held).
    pub shielded: bool,
    /// Whether the sealed files were the same after the run.
    pub tests_intact: bool,
    /// Whether the rest of the graded tree was the same after the run.
    pub tree_intact: bool,
}

impl<'a> Evidence<'a> {
    fn company(&self) -> impl Iterator<Item = &'a RunReport> {
        self.company.into_iter().flatten()
    }

    fn runs(&self) -> impl Iterator<Item = &'a RunReport> {
        let own = [self.suite].into_iter().chain(self.sentinels);
        own.chain(self.company())
    }
}

/// How a sentinel must end.
const ASSERTED: Outcome = Outcome::Failed(FailureClass::Assertion);

/// Why a grade says nothing.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error,
)]
#[serde(rename_all = "kebab-case")]
pub enum Void {
    /// Sealed files changed while they ran.
    #[error("the sealed tests were changed while they ran")]
    TestsChanged,
    /// The graded tree changed while it was tested.
    #[error("the tree was changed while it was tested")]
    TreeChanged,
    /// A sentinel passed.
    #[error("a test that no implementation can pass was reported as passed: outcomes are forged")]
    Forged,
    /// A test ended one way in the suite and another way beside the sentinels.
    #[error("tests ended differently when they ran again beside the sentinels")]
    Unstable,
    /// The base check knows nothing of an expected test.
    #[error("the base check does not cover every expected test")]
    NoBase,
    /// A run contradicts itself.
    #[error("the run contradicts itself")]
    Sources,
}

/// Why a patch is not accepted, or why a grade is void.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The grade is void.
    #[error("void: {0}")]
    Void(Void),
    /// What contradicts what.
    #[error("void: {0}")]
    Fault(Fault),
    /// Tests that failed on the base still fail.
    #[error("{}", count(*.0, "test fails", "tests fail"))]
    Failing(usize),
    /// Tests that passed on the base fail.
    #[error("{}", count(*.0, "test fails that passed on the base", "tests fail that passed on the base"))]
    Guards(usize),
    /// Tests were skipped that were not skipped on the base.
    #[error("{}", count(*.0, "test was skipped that may not be", "tests were skipped that may not be"))]
    Skipped(usize),
    /// Tests could not run for want of a dependency.
    #[error("{}", count(*.0, "test could not run because something that it needs is missing", "tests could not run because something that they need is missing"))]
    Environment(usize),
    /// A bound ended the run.
    #[error("the run hit its limit of {}", hit_name(*.0))]
    Limit(Hit),
    /// Protected paths were changed.
    #[error("the patch changes {}", count(*.0, "protected path", "protected paths"))]
    Touched(usize),
    /// The sandbox held less than the plan asks.
    #[error("trust is `{have}`; the plan asks for `{need}`")]
    Trust {
        /// Shown.
        have: Trust,
        /// Asked.
        need: Trust,
    },
    /// The evidence is weaker than the plan asks.
    #[error("the verdict is `{have}`; the plan asks for `{need}`{}", why_lower(*.apart))]
    Verdict {
        /// Shown.
        have: Verdict,
        /// Asked.
        need: Verdict,
        /// No sentinel ran in a process in which the code under test had been used.
        apart: bool,
    },
    /// There is nothing to accept by.
    #[error("there is no test that failed on the base")]
    Nothing,
}

const fn why_lower(apart: bool) -> &'static str {
    if apart {
        " (each test is a process of its own here, so no sentinel met the code under test)"
    } else {
        ""
    }
}

const fn hit_name(hit: Hit) -> &'static str {
    match hit {
        Hit::Memory => "memory",
        Hit::Processes => "processes",
        Hit::Output => "output",
        Hit::FileSize => "file size",
        Hit::Disk => "scratch disk",
        Hit::Time => "time",
    }
}

/// The verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// Everything holds that must.
    pub accepted: bool,
    /// The grade says nothing about the patch. Never together with `accepted`.
    pub void: Option<Void>,
    /// Why it is not accepted. Empty exactly when it is.
    pub reasons: Vec<Reason>,
    /// How the outcomes were learnt.
    pub verdict: Verdict,
    /// Each expected test and each sentinel, by alias.
    pub tests: Vec<TestResult>,
    /// Numbers.
    pub counts: GradeCounts,
    /// Names of the tests that stand in the way, without parameter values: for the implementer's
    /// next round, and for no clear document.
    pub failing: BTreeSet<String>,
    /// Bounds that were hit.
    pub hits: BTreeSet<Hit>,
}

/// Judges a patch.
pub fn judge(evidence: &Evidence<'_>) -> Judgement {
    let expected = evidence.criteria.expected();
    let mut reasons = Vec::new();
    let void = void(evidence, &expected, &mut reasons);
    let verdict = verdict(evidence);
    let failing = tests_hold(evidence, &expected, &mut reasons);
    conditions_hold(evidence, verdict, &mut reasons);
    let mut hits = evidence.suite.hits.clone();
    hits.extend(evidence.sentinels.iter().flat_map(|run| &run.hits));
    Judgement {
        accepted: reasons.is_empty(),
        void,
        reasons,
        verdict,
        tests: tests(evidence, &expected),
        counts: counts(evidence, &expected),
        failing,
        hits,
    }
}

/// Whether the sources agree. The gravest reason is the one that is named.
fn void(
    evidence: &Evidence<'_>,
    expected: &BTreeSet<TestId>,
    reasons: &mut Vec<Reason>,
) -> Option<Void> {
    let mut voids = Vec::new();
    if !evidence.tests_intact {
        voids.push(Void::TestsChanged);
    }
    if !evidence.tree_intact {
        voids.push(Void::TreeChanged);
    }
    let passed = |id: &TestId| sentinel(evidence, id) == Some(&Outcome::Passed);
    if evidence.criteria.sentinels().iter().any(passed) {
        voids.push(Void::Forged);
    }
    let own = [evidence.suite].into_iter().chain(evidence.sentinels);
    let all = own.chain(evidence.company()).flat_map(|run| &run.faults);
    // A test that can't be run in company lowers the verdict and no more.
    let mut faults: BTreeSet<Fault> = all
        .filter(|fault| not_reported(fault) == 0)
        .copied()
        .collect();
    faults.extend(absent(evidence, expected));
    if !faults.is_empty() {
        voids.push(Void::Sources);
    }
    let again = evidence.sentinels.iter().chain(evidence.company());
    if again
        .filter(|run| !run.cut)
        .any(|run| differs(evidence.suite, run, expected))
    {
        voids.push(Void::Unstable);
    }
    if expected.iter().any(|id| !evidence.base.contains_key(id)) {
        voids.push(Void::NoBase);
    }
    reasons.extend(
        voids
            .iter()
            .filter(|void| **void != Void::Sources)
            .map(|void| Reason::Void(*void)),
    );
    // Each run counts by itself; the most says it.
    let kinds: Vec<Fault> = faults.into_iter().collect();
    let same = kinds.chunk_by(|one, two| discriminant(one) == discriminant(two));
    reasons.extend(same.filter_map(|same| same.last().copied().map(Reason::Fault)));
    voids.first().copied()
}

fn not_reported(fault: &Fault) -> usize {
    match fault {
        Fault::Absent(number) => *number,
        _ => 0,
    }
}

/// How many tests were not reported: of the suite, as the grade counts them; where all of those were,
/// of the tests and sentinels that ran together.
fn absent(evidence: &Evidence<'_>, expected: &BTreeSet<TestId>) -> Option<Fault> {
    let of = |run: &RunReport| run.faults.iter().map(not_reported).max().unwrap_or(0);
    let unseen = |id: &&TestId| !evidence.suite.outcomes.contains_key(*id);
    // A reader that forgot to say so is caught here.
    let suite = match expected.iter().filter(unseen).count() {
        0 => of(evidence.suite),
        number => number,
    };
    let beside = evidence.sentinels.iter().map(of).max().unwrap_or(0);
    match (suite, beside) {
        (0, 0) => None,
        (0, number) => Some(Fault::AbsentBeside(number)),
        (number, _) => Some(Fault::Absent(number)),
    }
}

/// Whether a test of the sample passed in one run and not in the other.
fn differs(suite: &RunReport, sample: &RunReport, expected: &BTreeSet<TestId>) -> bool {
    sample.outcomes.iter().any(|(id, outcome)| {
        expected.contains(id)
            && suite
                .outcomes
                .get(id)
                .is_some_and(|first| (*first == Outcome::Passed) != (*outcome == Outcome::Passed))
    })
}

/// How the outcomes were learnt: the adapter's best, and no more than the sentinels and the sandbox
/// support.
fn verdict(evidence: &Evidence<'_>) -> Verdict {
    let mut verdict = evidence.ceiling;
    if verdict == Verdict::Crosschecked {
        let sentinels = evidence.criteria.sentinels();
        let caught = sentinels.iter().any(|id| held(evidence, id));
        let agree = evidence.suite.is_sound() && evidence.sentinels.iter().all(RunReport::is_sound);
        let met =
            evidence.company.is_some() && evidence.company().all(|run| is_met(run, sentinels));
        if !caught || !agree || !met {
            verdict = Verdict::Report;
        }
    }
    if evidence.shielded {
        verdict
    } else {
        verdict.min(Verdict::Report)
    }
}

/// Whether sentinels held behind the tests that were to run before them.
fn is_met(run: &RunReport, sentinels: &[TestId]) -> bool {
    let held = |id: &TestId| run.outcomes.get(id) == Some(&ASSERTED);
    run.is_sound() && !run.cut && sentinels.iter().any(held)
}

/// Whether every expected test ended as it must. Gives the names of those that did not.
fn tests_hold(
    evidence: &Evidence<'_>,
    expected: &BTreeSet<TestId>,
    reasons: &mut Vec<Reason>,
) -> BTreeSet<String> {
    let (mut failing, mut guards, mut skipped, mut environment) = (0, 0, 0, 0);
    let mut names = BTreeSet::new();
    for id in expected {
        let base = evidence.base.get(id).copied();
        let counter = match evidence.suite.outcomes.get(id) {
            Some(Outcome::Passed) | None => continue,
            Some(Outcome::Skipped) if base == Some(BaseStatus::Skipped) => continue,
            Some(Outcome::Skipped) => &mut skipped,
            Some(Outcome::Environment) => &mut environment,
            Some(Outcome::Failed(_)) if base == Some(BaseStatus::Guard) => &mut guards,
            Some(Outcome::Failed(_)) => &mut failing,
        };
        *counter += 1;
        names.insert(id.without_parameters().to_owned());
    }
    let counted = [
        (failing, Reason::Failing as fn(usize) -> Reason),
        (guards, Reason::Guards),
        (skipped, Reason::Skipped),
        (environment, Reason::Environment),
    ];
    reasons.extend(
        counted
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, reason)| reason(count)),
    );
    let runs = [evidence.suite].into_iter().chain(evidence.sentinels);
    // Also where every test passed: another machine, whose bounds end a process, would see it fail.
    let hits = runs.flat_map(|run| &run.hits);
    let hits: BTreeSet<Hit> = hits.copied().collect();
    reasons.extend(hits.into_iter().map(Reason::Limit));
    names
}

/// Everything beside the tests themselves.
fn conditions_hold(evidence: &Evidence<'_>, verdict: Verdict, reasons: &mut Vec<Reason>) {
    if !evidence
        .base
        .values()
        .any(|status| matches!(status, BaseStatus::Fails | BaseStatus::Unconfirmed))
    {
        reasons.push(Reason::Nothing);
    }
    if evidence.touched > 0 {
        reasons.push(Reason::Touched(evidence.touched));
    }
    let plan = evidence.plan;
    if evidence.trust < plan.trust {
        reasons.push(Reason::Trust {
            have: evidence.trust,
            need: plan.trust,
        });
    }
    if verdict < plan.verdict {
        reasons.push(Reason::Verdict {
            have: verdict,
            need: plan.verdict,
            apart: evidence.ceiling == Verdict::Crosschecked
                && plan.verdict == Verdict::Crosschecked
                && evidence.company.is_none(),
        });
    }
}

fn tests(evidence: &Evidence<'_>, expected: &BTreeSet<TestId>) -> Vec<TestResult> {
    let named = evidence.criteria.named().into_iter();
    named
        .map(|(alias, id)| {
            let outcome = if expected.contains(&id) {
                evidence.suite.outcomes.get(&id)
            } else {
                sentinel(evidence, &id)
            };
            let (outcome, class) = match outcome {
                Some(Outcome::Passed) => (TestOutcome::Passed, None),
                Some(Outcome::Failed(class)) => (TestOutcome::Failed, Some(*class)),
                Some(Outcome::Environment) => (TestOutcome::Failed, Some(FailureClass::Error)),
                Some(Outcome::Skipped) => (TestOutcome::Skipped, None),
                None => (TestOutcome::Missing, None),
            };
            TestResult {
                alias,
                outcome,
                class,
            }
        })
        .collect()
}

fn counts(evidence: &Evidence<'_>, expected: &BTreeSet<TestId>) -> GradeCounts {
    let mut counts = GradeCounts::default();
    for id in expected {
        counts.expected += 1;
        *match evidence.suite.outcomes.get(id) {
            Some(Outcome::Passed) => &mut counts.passed,
            Some(Outcome::Failed(_) | Outcome::Environment) => &mut counts.failed,
            Some(Outcome::Skipped) => &mut counts.skipped,
            None => &mut counts.missing,
        } += 1;
    }
    for id in evidence.criteria.sentinels() {
        counts.sentinels += 1;
        if held(evidence, id) {
            counts.sentinels_held += 1;
        }
    }
    counts
}

/// How a sentinel ended: passed where it passed in any run, else as in the first of its own runs in which
/// it did not end as it must.
fn sentinel<'a>(evidence: &Evidence<'a>, id: &TestId) -> Option<&'a Outcome> {
    let mut all = evidence.runs().filter_map(|run| run.outcomes.get(id));
    let own = || evidence.sentinels.iter().map(|run| run.outcomes.get(id));
    let passed = all.find(|outcome| **outcome == Outcome::Passed);
    let odd = || own().find(|outcome| *outcome != Some(&ASSERTED));
    passed.or_else(|| odd().or_else(|| own().next()).flatten())
}

/// Whether a sentinel failed by assertion, as it must.
fn held(evidence: &Evidence<'_>, id: &TestId) -> bool {
    sentinel(evidence, id) == Some(&ASSERTED)
}
