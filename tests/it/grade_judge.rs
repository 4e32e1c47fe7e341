//! The judgement, rule by rule: each attack on it beside the honest control.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use crate::grade_kit::id;
use hangar::grade::call::Hit;
use hangar::grade::judge::{Evidence, Judgement, Reason, Void, judge};
use hangar::grade::report::{Fault, RunReport};
use hangar::model::criteria::Criteria;
use hangar::model::grade::TestOutcome;
use hangar::model::manifest::BaseStatus;
use hangar::model::outcome::{FailureClass, Outcome, TestId, Trust, Verdict};
use hangar::model::plan::{Framework, Plan};
use proptest::prelude::*;
use std::collections::BTreeMap;

const MAP: &str = r#"{"format": 1, "criteria": {"c1": ["fix"], "c2": ["new"]},
    "others": ["guard", "skip"], "sentinels": ["s"]}"#;
const ASSERTED: Outcome = Outcome::Failed(FailureClass::Assertion);

/// An honest grade; each test changes one thing.
struct World {
    criteria: Criteria,
    base: BTreeMap<TestId, BaseStatus>,
    plan: Plan,
    ceiling: Verdict,
    suite: RunReport,
    sentinels: Vec<RunReport>,
    company: Option<Vec<RunReport>>,
    touched: usize,
    trust: Trust,
    shielded: bool,
    tests_intact: bool,
    tree_intact: bool,
}

fn report(outcomes: &[(&str, Outcome)]) -> RunReport {
    RunReport {
        outcomes: outcomes.iter().map(|(name, o)| (id(name), *o)).collect(),
        ..RunReport::default()
    }
}

impl World {
    fn honest() -> Self {
        let base = [
            ("fix", BaseStatus::Fails),
            ("new", BaseStatus::Unconfirmed),
            ("guard", BaseStatus::Guard),
            ("skip", BaseStatus::Skipped),
        ];
        let mut plan = Plan::new(Framework::Pytest);
        plan.verdict = Verdict::Crosschecked;
        Self {
            criteria: Criteria::parse(MAP.as_bytes(), &["c1", "c2"].map(|id| id.parse().unwrap()))
                .unwrap(),
            base: base
                .iter()
                .map(|(name, result)| (id(name), *result))
                .collect(),
            plan,
            ceiling: Verdict::Crosschecked,
            suite: report(&[
                ("fix", Outcome::Passed),
                ("new", Outcome::Passed),
                ("guard", Outcome::Passed),
                ("skip", Outcome::Skipped),
            ]),
            sentinels: vec![
                report(&[("s", ASSERTED)]),
                report(&[("fix", Outcome::Passed), ("s", ASSERTED)]),
            ],
            company: Some(vec![report(&[("fix", Outcome::Passed), ("s", ASSERTED)])]),
            touched: 0,
            trust: Trust::Sealed,
            shielded: true,
            tests_intact: true,
            tree_intact: true,
        }
    }

    fn judge(&self) -> Judgement {
        judge(&Evidence {
            criteria: &self.criteria,
            base: &self.base,
            plan: &self.plan,
            ceiling: self.ceiling,
            suite: &self.suite,
            sentinels: &self.sentinels,
            company: self.company.as_deref(),
            touched: self.touched,
            trust: self.trust,
            shielded: self.shielded,
            tests_intact: self.tests_intact,
            tree_intact: self.tree_intact,
        })
    }

    fn with(change: impl FnOnce(&mut Self)) -> Judgement {
        let mut world = Self::honest();
        change(&mut world);
        world.judge()
    }
}

fn set(name: &str, outcome: Outcome) -> Judgement {
    World::with(|world| {
        world.suite.outcomes.insert(id(name), outcome);
        world.sentinels = vec![report(&[("s", ASSERTED)])];
        world.company = Some(Vec::new());
    })
}

#[test]
fn the_honest_grade_is_accepted() {
    let judgement = World::honest().judge();
    assert!(judgement.accepted && judgement.void.is_none());
    assert_eq!(judgement.reasons, []);
    assert_eq!(judgement.verdict, Verdict::Crosschecked);
    let aliases: Vec<String> = judgement
        .tests
        .iter()
        .map(|test| test.alias.to_string())
        .collect();
    assert_eq!(aliases, ["c1.1", "c2.1", "o1", "o2", "s1"]);
    assert_eq!((judgement.counts.expected, judgement.counts.passed), (4, 3));
}

#[test]
fn a_test_that_fails_is_a_plain_no() {
    let judgement = set("fix", ASSERTED);
    assert_eq!(judgement.reasons, [Reason::Failing(1)]);
    assert!(judgement.void.is_none());
    assert_eq!(judgement.failing.iter().collect::<Vec<_>>(), ["fix"]);
    assert_eq!(set("guard", ASSERTED).reasons, [Reason::Guards(1)]);
    assert_eq!(set("skip", ASSERTED).reasons, [Reason::Failing(1)]);
    assert!(set("skip", Outcome::Passed).accepted);
}

#[test]
fn a_skip_is_a_pass_only_where_the_base_skipped() {
    for name in ["fix", "new", "guard"] {
        let judgement = set(name, Outcome::Skipped);
        assert_eq!(judgement.reasons, [Reason::Skipped(1)], "{name}");
    }
    let judgement = set("fix", Outcome::Environment);
    assert_eq!(judgement.reasons, [Reason::Environment(1)]);
}

#[test]
fn an_absent_test_is_void_even_if_the_reader_did_not_notice() {
    let judgement = World::with(|world| {
        world.suite.outcomes.remove(&id("new"));
    });
    assert_eq!(judgement.void, Some(Void::Sources));
    assert!(judgement.reasons.contains(&Reason::Fault(Fault::Absent(1))));
}

#[test]
fn tests_that_no_run_reported_are_one_reason() {
    let judgement = World::with(|world| {
        world.sentinels[0].faults.insert(Fault::Absent(2));
        world.sentinels[1].faults.insert(Fault::Absent(3));
        world.sentinels[1].faults.insert(Fault::Unknown(1));
    });
    assert_eq!(judgement.void, Some(Void::Sources));
    let absent = |reason: &&Reason| matches!(reason, Reason::Fault(_));
    let reasons: Vec<_> = judgement.reasons.iter().filter(absent).collect();
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(reasons.contains(&&Reason::Fault(Fault::AbsentBeside(3))));
}

#[test]
fn the_number_of_absent_tests_is_the_one_that_the_grade_counts() {
    let judgement = World::with(|world| {
        world.suite.outcomes.clear();
        let expected = world.suite.absent.len().max(1);
        world.suite.faults.insert(Fault::Absent(expected));
        for run in &mut world.sentinels {
            // The sentinel is one more.
            run.faults.insert(Fault::Absent(expected + 1));
        }
    });
    let missing = judgement.counts.missing as usize;
    assert!(missing > 0);
    let faults: Vec<_> = judgement
        .reasons
        .iter()
        .filter(|one| matches!(one, Reason::Fault(_)))
        .collect();
    assert_eq!(faults, [&Reason::Fault(Fault::Absent(missing))]);
}

#[test]
fn a_suite_whose_time_was_up_is_refused_without_sentinels() {
    let timeout = Outcome::Failed(FailureClass::Timeout);
    let judgement = World::with(|world| {
        world.plan.verdict = Verdict::Exit;
        world.suite.hits.insert(Hit::Time);
        world.suite.cut = true;
        for outcome in world.suite.outcomes.values_mut() {
            *outcome = timeout;
        }
        (world.sentinels, world.company) = (Vec::new(), None);
    });
    assert!(!judgement.accepted);
    assert_eq!(judgement.void, None);
    // Nor where what was reported before all passed.
    let judgement = World::with(|world| {
        world.plan.verdict = Verdict::Exit;
        world.suite.hits.insert(Hit::Time);
        world.suite.cut = true;
        (world.sentinels, world.company) = (Vec::new(), None);
    });
    assert!(!judgement.accepted);
}

#[test]
fn every_contradiction_is_void_in_either_run() {
    for fault in [
        Fault::Incomplete,
        Fault::Unreadable,
        Fault::NotOurs,
        Fault::Status,
        Fault::Sources,
        Fault::Runner,
        Fault::NotSealed,
        Fault::Duplicate(1),
        Fault::Unknown(1),
    ] {
        let suite = World::with(|world| {
            world.suite.faults.insert(fault);
        });
        let sentinels = World::with(|world| {
            world.sentinels.last_mut().unwrap().faults.insert(fault);
        });
        for judgement in [suite, sentinels] {
            assert_eq!(judgement.void, Some(Void::Sources), "{fault}");
            assert!(!judgement.accepted);
            assert_eq!(judgement.verdict, Verdict::Report);
        }
    }
}

#[test]
fn changed_tests_or_tree_are_void() {
    let tests = World::with(|world| world.tests_intact = false);
    assert_eq!(tests.void, Some(Void::TestsChanged));
    let tree = World::with(|world| world.tree_intact = false);
    assert_eq!(tree.void, Some(Void::TreeChanged));
    assert!(!tests.accepted && !tree.accepted);
}

#[test]
fn a_sentinel_that_passes_shows_forged_outcomes() {
    let judgement = World::with(|world| {
        let run = world.sentinels.last_mut().unwrap();
        run.outcomes.insert(id("s"), Outcome::Passed);
    });
    assert_eq!(judgement.void, Some(Void::Forged));
    assert!(!judgement.accepted);
}

#[test]
fn a_sentinel_that_passed_in_any_run_is_told_as_passed() {
    let pass: [fn(&mut World); 5] = [
        |world| {
            let run = &mut world.suite;
            run.outcomes.insert(id("s"), Outcome::Passed);
        },
        // An odd end before it hides nothing.
        |world| {
            world.sentinels[0].outcomes.remove(&id("s"));
            let run = &mut world.sentinels[1];
            run.outcomes.insert(id("s"), Outcome::Passed);
        },
        |world| {
            let run = &mut world.sentinels[0];
            run.outcomes.insert(id("s"), Outcome::Passed);
        },
        |world| {
            let run = &mut world.sentinels[1];
            run.outcomes.insert(id("s"), Outcome::Passed);
        },
        |world| {
            let run = &mut world.company.as_mut().unwrap()[0];
            run.outcomes.insert(id("s"), Outcome::Passed);
        },
    ];
    let told = |judgement: &Judgement| {
        let row = judgement.tests.iter().find(|row| row.alias.is_sentinel());
        (row.unwrap().outcome, judgement.counts.sentinels_held)
    };
    for pass in pass {
        let judgement = World::with(pass);
        assert_eq!(judgement.void, Some(Void::Forged));
        assert_eq!(told(&judgement), (TestOutcome::Passed, 0));
    }
    let honest = World::with(|_| {});
    assert_eq!(told(&honest), (TestOutcome::Failed, 1));
}

#[test]
fn crosschecked_needs_a_sentinel_that_failed_by_assertion() {
    for outcome in [Outcome::Failed(FailureClass::Error), Outcome::Skipped] {
        let judgement = World::with(|world| {
            let run = world.sentinels.last_mut().unwrap();
            run.outcomes.insert(id("s"), outcome);
        });
        assert_eq!(judgement.verdict, Verdict::Report);
        assert!(!judgement.accepted);
    }
    let judgement = World::with(|world| {
        world.sentinels.clear();
        world.plan.verdict = Verdict::Report;
    });
    assert_eq!(judgement.verdict, Verdict::Report);
    assert!(judgement.accepted);
}

#[test]
fn crosschecked_needs_sentinels_that_held_where_the_code_had_been_used() {
    let lowered: [fn(&mut World); 4] = [
        // Each test is a process of its own.
        |world| world.company = None,
        |world| world.company = Some(vec![report(&[("fix", Outcome::Passed)])]),
        |world| {
            let error = Outcome::Failed(FailureClass::Error);
            world.company = Some(vec![report(&[("fix", Outcome::Passed), ("s", error)])]);
        },
        |world| {
            let run = &mut world.company.as_mut().unwrap()[0];
            run.outcomes.remove(&id("fix"));
            run.faults.insert(Fault::Absent(1));
        },
    ];
    for lower in lowered {
        let judgement = World::with(lower);
        assert_eq!(judgement.verdict, Verdict::Report);
        assert!(!judgement.accepted && judgement.void.is_none());
        let judgement = World::with(|world| {
            lower(world);
            world.plan.verdict = Verdict::Report;
        });
        assert!(judgement.accepted, "{:?}", judgement.reasons);
    }
    let apart = World::with(|world| world.company = None);
    assert!(
        apart.reasons[0]
            .to_string()
            .contains("a process of its own")
    );
}

#[test]
fn frameworks_whose_tests_are_apart_are_those_without_company() {
    for framework in hangar::grade::adapter::ALL {
        let bench = crate::grade_kit::Bench::new(framework, &[], &[]);
        let company = bench.adapter().company(&bench.suite, &[], &[]);
        let apart = hangar::grade::adapter::tests_are_apart(framework);
        assert_eq!(company.is_none(), apart, "{framework}");
        let best = |sentinels| hangar::grade::adapter::best_verdict(framework, sentinels);
        if framework == Framework::External {
            // No code of the patch runs where outcomes are made: nothing to meet.
            assert_eq!(
                (best(false), best(true)),
                (Verdict::External, Verdict::External)
            );
            continue;
        }
        assert!(best(false) <= Verdict::Report, "{framework}");
        assert_eq!(best(true) == Verdict::Crosschecked, !apart, "{framework}");
    }
}

#[test]
fn what_bends_the_process_of_the_suite_is_caught_there() {
    let forged = World::with(|world| {
        let run = &mut world.company.as_mut().unwrap()[0];
        run.outcomes.insert(id("s"), Outcome::Passed);
    });
    assert_eq!(forged.void, Some(Void::Forged));
    let unstable = World::with(|world| {
        let run = &mut world.company.as_mut().unwrap()[0];
        run.outcomes.insert(id("fix"), ASSERTED);
    });
    assert_eq!(unstable.void, Some(Void::Unstable));
    let fault = World::with(|world| {
        let run = &mut world.company.as_mut().unwrap()[0];
        run.faults.insert(Fault::NotOurs);
    });
    assert_eq!(fault.void, Some(Void::Sources));
}

#[test]
fn an_adapter_or_a_sandbox_can_only_lower_the_verdict() {
    let low = World::with(|world| world.ceiling = Verdict::Exit);
    assert_eq!(low.verdict, Verdict::Exit);
    assert!(!low.accepted);
    let open = World::with(|world| world.shielded = false);
    assert_eq!(open.verdict, Verdict::Report);
    let external = World::with(|world| world.ceiling = Verdict::External);
    assert_eq!(external.verdict, Verdict::External);
}

#[test]
fn a_test_that_ends_differently_beside_the_sentinels_is_void() {
    let judgement = World::with(|world| {
        let run = world.sentinels.last_mut().unwrap();
        run.outcomes.insert(id("fix"), ASSERTED);
    });
    assert_eq!(judgement.void, Some(Void::Unstable));
}

#[test]
fn a_limit_is_a_fail_and_not_void() {
    let judgement = World::with(|world| {
        world.suite.hits.insert(Hit::Time);
        world.suite.cut = true;
    });
    assert_eq!(judgement.reasons, [Reason::Limit(Hit::Time)]);
    assert!(judgement.void.is_none() && !judgement.accepted);
    // One that was hit while tests failed may be why, and is said.
    let killed = World::with(|world| {
        world.suite.hits.insert(Hit::Memory);
        world.suite.outcomes.insert(id("fix"), ASSERTED);
        world.sentinels = vec![report(&[("s", ASSERTED)])];
        world.company = Some(Vec::new());
    });
    assert_eq!(
        killed.reasons,
        [Reason::Failing(1), Reason::Limit(Hit::Memory)]
    );
    // Also where nothing failed by it here.
    let noisy = World::with(|world| {
        world.suite.hits.insert(Hit::Output);
    });
    assert_eq!(noisy.reasons, [Reason::Limit(Hit::Output)]);
    assert!(noisy.void.is_none() && noisy.hits.contains(&Hit::Output));
}

#[test]
fn everything_else_that_the_plan_asks_must_hold() {
    let need = Trust::Sealed;
    let cases: [(Judgement, Reason); 2] = [
        (World::with(|world| world.touched = 2), Reason::Touched(2)),
        (
            World::with(|world| world.trust = Trust::Confined),
            Reason::Trust {
                have: Trust::Confined,
                need,
            },
        ),
    ];
    for (judgement, reason) in cases {
        assert_eq!(judgement.reasons, [reason]);
        assert!(judgement.void.is_none() && !judgement.accepted);
    }
}

#[test]
fn a_base_check_that_shows_nothing_accepts_nothing() {
    let guards = World::with(|world| {
        for result in world.base.values_mut() {
            *result = BaseStatus::Guard;
        }
        world.suite.outcomes.insert(id("skip"), Outcome::Passed);
    });
    assert_eq!(guards.reasons, [Reason::Nothing]);
    let unknown = World::with(|world| {
        world.base.remove(&id("guard"));
    });
    assert_eq!(unknown.void, Some(Void::NoBase));
}

#[test]
fn reasons_name_no_test() {
    let judgement = World::with(|world| {
        for name in ["fix", "new", "guard", "skip"] {
            world.suite.outcomes.insert(id(name), ASSERTED);
        }
        world.suite.unknown.insert("secret-name".into());
        world.suite.faults.insert(Fault::Unknown(1));
    });
    let text: String = judgement.reasons.iter().map(ToString::to_string).collect();
    assert!(
        !text.contains("fix") && !text.contains("secret-name"),
        "{text}"
    );
}

proptest! {
    // Whatever the outcomes are: accepted exactly when every test that must pass did.
    #[test]
    fn nothing_but_passes_is_ever_accepted(words in proptest::collection::vec(0..5u8, 4)) {
        let outcome = |word| match word {
            0 => Some(Outcome::Passed),
            1 => Some(ASSERTED),
            2 => Some(Outcome::Skipped),
            3 => Some(Outcome::Environment),
            _ => None,
        };
        let judgement = World::with(|world| {
            world.sentinels = vec![report(&[("s", ASSERTED)])];
            world.company = Some(Vec::new());
            for (name, word) in ["fix", "new", "guard", "skip"].iter().zip(&words) {
                match outcome(*word) {
                    Some(outcome) => world.suite.outcomes.insert(id(name), outcome),
                    None => world.suite.outcomes.remove(&id(name)),
                };
            }
        });
        let good = words[..3].iter().all(|word| *word == 0) && matches!(words[3], 0 | 2);
        prop_assert_eq!(judgement.accepted, good);
        prop_assert_eq!(judgement.void.is_some(), words.contains(&4));
        prop_assert_eq!(judgement.accepted, judgement.reasons.is_empty());
    }
}
