//! The base check, complaint by complaint.

use super::*;

fn id(text: &str) -> TestId {
    TestId::new(text).unwrap()
}

fn report(outcomes: &[(&str, Outcome)]) -> RunReport {
    RunReport {
        outcomes: outcomes.iter().map(|(name, o)| (id(name), *o)).collect(),
        ..RunReport::default()
    }
}

const MAP: &str =
    r#"{"format": 1, "criteria": {"c1": ["a"], "c2": ["b"]}, "others": ["o"], "sentinels": ["s"]}"#;
const FAILED: Outcome = Outcome::Failed(FailureClass::MissingSymbol);
const ASSERTED: Outcome = Outcome::Failed(FailureClass::Assertion);

struct Case {
    listed: Vec<&'static str>,
    runs: Vec<RunReport>,
    sentinel: Outcome,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            listed: vec!["a", "b", "o", "s"],
            runs: vec![report(&[
                ("a", FAILED),
                ("b", FAILED),
                ("o", Outcome::Passed),
            ])],
            sentinel: ASSERTED,
        }
    }
}

fn map() -> Criteria {
    let known = ["c1", "c2", "c3"].map(|id| id.parse().unwrap());
    Criteria::parse(MAP.as_bytes(), &known).unwrap()
}

fn uncovered(check: &BaseCheck) -> Vec<&str> {
    check.uncovered.iter().map(CriterionId::as_str).collect()
}

impl Case {
    fn check(&self) -> BaseCheck {
        check(&Evidence {
            criteria: &map(),
            listed: Some(&self.listed.iter().map(|name| id(name)).collect()),
            runs: &self.runs,
            sentinels: Some(&report(&[("s", self.sentinel)])),
            file_of: &BTreeMap::new(),
        })
    }
}

#[test]
fn a_fit_suite_has_no_complaint() {
    let check = Case::default().check();
    assert_eq!(check.complaints, []);
    assert_eq!(uncovered(&check), ["c3"]);
    assert_eq!(check.results[&id("o")], BaseResult::Guard);
    let counts = check.counts(&map(), 2);
    assert_eq!((counts.tests, counts.fails, counts.guards), (3, 2, 1));
    let rows = check.rows(&map());
    let aliases: Vec<&str> = rows.iter().map(|row| row.alias.as_str()).collect();
    assert_eq!(aliases, ["c1.1", "c2.1", "o1"]);
    let coverage = check.coverage(&map());
    assert_eq!(
        (coverage[0].tests, coverage[0].fails, coverage[2].tests),
        (1, 1, 0)
    );
}

#[test]
fn a_criterion_whose_test_passes_already_is_uncovered() {
    let runs = vec![report(&[
        ("a", FAILED),
        ("b", Outcome::Passed),
        ("o", Outcome::Passed),
    ])];
    let check = Case {
        runs,
        ..Case::default()
    }
    .check();
    assert_eq!(uncovered(&check), ["c2", "c3"]);
    assert!(check.complaints.is_empty());
}

#[test]
fn no_failing_test_at_all_is_a_complaint() {
    let pass = Outcome::Passed;
    let runs = vec![report(&[("a", pass), ("b", pass), ("o", pass)])];
    let check = Case {
        runs,
        ..Case::default()
    }
    .check();
    assert!(check.complaints[0].starts_with("no test fails on the base"));
}

#[test]
fn ids_that_are_no_tests_bring_no_complaints_about_what_comes_of_it() {
    let check = check(&Evidence {
        criteria: &map(),
        listed: Some(&[id("x.a"), id("x.b")].into()),
        runs: &[report(&[])],
        sentinels: Some(&report(&[])),
        file_of: &BTreeMap::new(),
    });
    let about = |one: &Complaint| matches!(one.kind, Kind::UnknownId | Kind::Unnamed);
    assert!(check.complaints.iter().all(about), "{:?}", check.complaints);
    assert_eq!(check.complaints.len(), 6);
    // One that is there and did not run is still named.
    let case = Case::default();
    let listed = case.listed.iter().map(|name| id(name)).collect();
    let silent = super::check(&Evidence {
        criteria: &map(),
        listed: Some(&listed),
        runs: &case.runs,
        sentinels: Some(&report(&[])),
        file_of: &BTreeMap::new(),
    });
    assert!(silent.complaints[0].contains("did not run on the base"));
}

#[test]
fn unlisted_and_unknown_ids_are_complaints() {
    let listed = vec!["a", "o", "s", "extra"];
    let check = Case {
        listed,
        ..Case::default()
    }
    .check();
    assert!(check.complaints.iter().any(|c| c.contains("names `b`")));
    assert!(
        check
            .complaints
            .iter()
            .any(|c| c.starts_with("`extra` stands in no list"))
    );
}

#[test]
fn a_test_that_ran_but_is_in_no_list_is_complained_about_once() {
    let listed = vec!["a", "b", "o", "s", "extra"];
    let mut runs = Case::default().runs;
    runs[0].unknown = ["extra[1]".to_owned(), "hidden".to_owned()].into();
    let check = Case {
        listed,
        runs,
        ..Case::default()
    }
    .check();
    assert_eq!(check.complaints.len(), 2, "{:?}", check.complaints);
    assert!(check.complaints[1].starts_with("`hidden` ran but can't be listed"));
}

#[test]
fn a_sentinel_that_does_not_fail_by_assertion_is_a_complaint() {
    for (sentinel, word) in [
        (Outcome::Passed, "passes"),
        (FAILED, "fails by missing-symbol"),
    ] {
        let check = Case {
            sentinel,
            ..Case::default()
        }
        .check();
        assert!(check.complaints[0].contains(word), "{:?}", check.complaints);
    }
}

#[test]
fn what_does_not_compile_is_unconfirmed_and_counts_as_failing() {
    let compile = Outcome::Failed(FailureClass::Compile);
    let runs = vec![report(&[("a", compile), ("b", compile), ("o", compile)])];
    let check = Case {
        runs,
        ..Case::default()
    }
    .check();
    assert_eq!(uncovered(&check), ["c3"]);
    assert_eq!(check.counts(&map(), 1).unconfirmed, 3);
    assert!(check.complaints.is_empty());
}

#[test]
fn repeats_show_flakes_and_count_as_failing() {
    let first = report(&[("a", FAILED), ("b", FAILED), ("o", Outcome::Passed)]);
    let second = report(&[
        ("a", Outcome::Passed),
        ("b", FAILED),
        ("o", Outcome::Passed),
    ]);
    let check = Case {
        runs: vec![second, first],
        ..Case::default()
    }
    .check();
    assert_eq!(check.flakes, BTreeSet::from([id("a")]));
    assert_eq!(
        check.results[&id("a")],
        BaseResult::Fails(FailureClass::MissingSymbol)
    );
}

#[test]
fn a_missing_dependency_is_nobodys_complaint() {
    let gone = Outcome::Environment;
    let runs = vec![report(&[("a", gone), ("b", gone), ("o", gone)])];
    let check = Case {
        runs,
        ..Case::default()
    }
    .check();
    assert!(check.is_environment());
    assert!(check.complaints.is_empty());
}

#[test]
fn a_runner_that_broke_is_nobodys_complaint_and_no_failure() {
    let mut run = report(&[]);
    run.absent = ["a", "b", "o"].map(id).into();
    run.faults = [Fault::NotStarted, Fault::Absent(3)].into();
    run.broken = Some("Error: no such module".into());
    let check = Case {
        runs: vec![run],
        ..Case::default()
    }
    .check();
    assert!(check.is_environment());
    assert_eq!(check.broken.as_deref(), Some("Error: no such module"));
}

#[test]
fn what_never_ran_is_said_with_the_reason_and_fails_nothing() {
    let mut run = report(&[("b", FAILED), ("o", Outcome::Passed)]);
    run.absent = [id("a")].into();
    run.not_run = [(id("a"), "no fixture".to_owned())].into();
    run.faults = [Fault::Absent(1), Fault::Runner].into();
    let runs = vec![run];
    let check = Case {
        runs,
        ..Case::default()
    }
    .check();
    let said: Vec<&str> = check.complaints.iter().map(|one| &**one).collect();
    assert_eq!(said, ["`a` did not run on the base (no fixture)"]);
    assert!(!check.results.contains_key(&id("a")));
    let mut run = report(&[]);
    run.unloaded = ["pytest_mock".to_owned()].into();
    let runs = vec![run];
    let check = Case {
        runs,
        ..Case::default()
    }
    .check();
    assert!(check.is_environment());
}

#[test]
fn what_died_on_the_base_fails_by_crash() {
    let mut run = report(&[("o", Outcome::Passed)]);
    run.absent = [id("a"), id("b")].into();
    run.faults = [Fault::Incomplete, Fault::Absent(2)].into();
    let check = Case {
        runs: vec![run],
        ..Case::default()
    }
    .check();
    assert_eq!(
        check.results[&id("a")],
        BaseResult::Fails(FailureClass::Crash)
    );
    assert!(check.complaints.is_empty());
}
