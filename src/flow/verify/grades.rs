//! The grade: about which subject, and whether its own rows and probes bear out what it says. A
//! grader that signs `accepted` over failing tests is noticed here.

use super::LinkName::Grade as Link;
use super::{Case, Sheet, soften};
use crate::base::words;
use crate::flow::Error;
use crate::flow::stage;
use crate::grade::adapter::adapter;
use crate::grade::protect::Protection;
use crate::model::digest::Digest;
use crate::model::grade::{Grade, GradeCounts, TestOutcome, TestResult};
use crate::model::ids::Alias;
use crate::model::listing::changes;
use crate::model::manifest::{BaseStatus, Manifest};
use crate::model::outcome::{FailureClass, Trust, Verdict};
use crate::model::plan::Plan;
use crate::model::policy::Acceptance;
use crate::model::run::SandboxRecord;
use crate::model::task::Flow;
use crate::sandbox::Probes;
use crate::sandbox::probe::Probe;
use crate::store::dossier::Held;
use std::collections::{BTreeMap, BTreeSet};

fn place(grade: &Held<Grade>) -> String {
    format!("grade {}", grade.digest().short())
}

pub(super) fn check(case: &Case<'_>, sheet: &mut Sheet) -> Result<(), Error> {
    if case.dossier.history.task.flow == Flow::Plain {
        sheet.skip(
            Link,
            "a plain task: nothing was graded, so nothing here shows that the work was done",
        );
        return Ok(());
    }
    for grade in &case.dossier.grades {
        for wrong in consistent(case, grade.value()) {
            sheet.fault_at(Link, place(grade), wrong);
        }
    }
    let Some(delivery) = case.delivery() else {
        of_another_text(case, sheet);
        sheet.skip(
            Link,
            format!(
                "{}, nothing delivered yet",
                words::count(case.dossier.grades.len(), "grade", "grades")
            ),
        );
        return Ok(());
    };
    match (delivery.grade, case.delivered_grade()) {
        (_, Some(grade)) => {
            delivered(case, grade, sheet);
            untouched(case, grade, sheet)?;
        }
        (Some(named), None) => sheet.fault(
            Link,
            format!(
                "the delivery names grade {}, which is no believed grade of this task",
                named.short()
            ),
        ),
        (None, None) => sheet.fault(Link, "the delivery names no grade"),
    }
    let detail = case.delivered_grade().map_or_else(String::new, |held| {
        let grade = held.value();
        format!(
            "grade {}: {} of {} passed; trust {}, verdict {}, secrecy {}",
            held.digest().short(),
            grade.counts.passed,
            words::count(grade.counts.expected, "hidden test", "hidden tests"),
            grade.trust,
            grade.verdict,
            grade.secrecy
        )
    });
    sheet.close(Link, detail);
    Ok(())
}

/// Before a delivery a text may still be edited, and then no grade of before can be delivered.
fn of_another_text(case: &Case<'_>, sheet: &mut Sheet) {
    let dossier = case.dossier;
    let counts = |held: &&Held<Grade>| held.value().accepted && !dossier.is_aside(held.digest());
    for held in dossier.grades.iter().filter(counts) {
        let seal = dossier.seal(held.value().manifest);
        if seal.is_some_and(|seal| stage::is_edited(&dossier.history.task, seal)) {
            sheet.note(format!(
                "{} accepts by tests that were written for another text than the task has: nothing can be delivered by it",
                place(held)
            ));
        }
    }
}

/// The delivered patch leaves the plan's protected paths alone, whatever the grade says.
fn untouched(case: &Case<'_>, grade: &Held<Grade>, sheet: &mut Sheet) -> Result<(), Error> {
    let (Some(seal), Some((base, result))) = (
        case.dossier.seal(grade.value().manifest),
        super::runs::result(case),
    ) else {
        return Ok(());
    };
    let plan = &seal.value().plan;
    let framework = adapter(plan.framework);
    let protection = match Protection::new(plan, framework.protected()) {
        Ok(protection) => protection,
        Err(error) => {
            sheet.fault_at(Link, place(grade), format!("its plan: {error}"));
            return Ok(());
        }
    };
    let mut trees = case.trees.borrow_mut();
    let base = soften(trees.files_of(base))?;
    let tree = soften(trees.files(result.tree))?;
    let (base, tree) = match (base, tree) {
        (Ok(base), Ok(tree)) => (base, tree),
        (Err(reason), _) | (_, Err(reason)) if reason.left_out => {
            sheet.unread(Link, place(grade), "its base and result: ", &reason);
            return Ok(());
        }
        // The run's own link names it.
        _ => return Ok(()),
    };
    let changes = changes(&base.listing, &tree.listing);
    let unrun = protection.unrun(&changes);
    if let Some(first) = unrun.first() {
        let first = String::from_utf8_lossy(first).escape_debug().to_string();
        sheet.note(format!(
            "of {} where tests lie the grade says nothing: delivered as the patch has {}, run as the base has {1} (`{first}`{})",
            words::count(unrun.len(), "path", "paths"),
            words::word(unrun.len(), "it", "them"),
            if unrun.len() > 1 { ", …" } else { "" }
        ));
    }
    for path in protection.touched(&changes) {
        let path = String::from_utf8_lossy(&path).escape_debug().to_string();
        sheet.fault_at(
            Link,
            place(grade),
            format!("the delivered patch changes the protected path `{path}`"),
        );
    }
    Ok(())
}

/// What any grade must show, whether it was delivered or not.
fn consistent(case: &Case<'_>, grade: &Grade) -> Vec<String> {
    let Some(seal) = case.dossier.seal(grade.manifest) else {
        return vec![format!(
            "it is about manifest {}, which is no believed version of this task",
            grade.manifest.short()
        )];
    };
    let manifest = seal.value();
    let mut wrong = numbers(manifest, grade);
    if grade.accepted {
        wrong.extend(acceptable(manifest, grade));
    }
    if grade.subject.base != manifest.base || grade.subject.base_listing != manifest.base_listing {
        wrong.push("its base is not the one of the base check".into());
    }
    if grade.reprepared && !manifest.plan.reprepare {
        wrong.push("it has packages of the patch, which its plan does not allow".into());
    }
    if grade.after_code != manifest.after_code {
        wrong.push("it disagrees with its manifest on whether code was seen first".into());
    }
    if grade.signer.policy.version < manifest.signer.policy.version {
        wrong.push("it names an older policy version than its manifest".into());
    }
    if let Some(named) = grade.run {
        match case.run(named).map(Held::value) {
            None => wrong.push(format!("run {} that it names is not here", named.short())),
            Some(run) => wrong.extend(of_run(grade, run)),
        }
    }
    wrong
}

/// A grade and the run that it names are about one result.
fn of_run(grade: &Grade, run: &crate::model::run::Run) -> Vec<String> {
    let mut wrong = Vec::new();
    let subject = &grade.subject;
    let same = run.result.as_ref().is_some_and(|result| {
        result.base == subject.base
            && result.base_listing == subject.base_listing
            && result.tree == subject.tree
            && result.listing == subject.listing
            && result.patch == subject.patch
    });
    if !same {
        wrong.push(
            "it is about another base or patch than the result of the run that it names".into(),
        );
    }
    if run.manifest != Some(grade.manifest) {
        wrong.push("its run was made under another manifest".into());
    }
    if run.secrecy != grade.secrecy {
        wrong.push("it claims another secrecy than its run".into());
    }
    wrong
}

/// The grade that the delivery rests on.
fn delivered(case: &Case<'_>, grade: &Held<Grade>, sheet: &mut Sheet) {
    let value = grade.value();
    let mut fault = |what: &str| sheet.fault_at(Link, place(grade), what);
    if value.void {
        fault("it is void");
    } else if !value.accepted {
        fault("it does not accept");
    }
    let delivery = case.delivery();
    if delivery.and_then(|delivery| delivery.manifest) != Some(value.manifest) {
        fault("it is about another manifest than the delivered one");
    }
    if let Some((_, result)) = super::runs::result(case) {
        let subject = &value.subject;
        let same = subject.base == result.base
            && subject.listing == result.listing
            && subject.tree == result.tree
            && subject.patch == result.patch;
        if !same {
            fault("it is about another base or patch than the delivered result");
        }
    }
    if case.past.aside_then.contains(&grade.digest()) {
        fault("it was set aside before the delivery");
    }
    match (value.run, delivery.map(|delivery| delivery.run)) {
        (Some(named), Some(run)) if named != run => {
            fault("it names another run than the delivered one");
        }
        (None, _) => sheet.note("the grade names no run: the patch was graded by itself"),
        _ => {}
    }
    if let Some(seal) = case.dossier.seal(value.manifest) {
        let settings = &case.then.root.acceptance;
        for wrong in minimums(&seal.value().plan, settings, value) {
            sheet.fault_at(Link, place(grade), wrong);
        }
    }
    contradicted(case, grade, sheet);
}

/// Another firm grade of the same patch under the same manifest that says no.
fn contradicted(case: &Case<'_>, grade: &Held<Grade>, sheet: &mut Sheet) {
    let against = stage::against(case.dossier, grade);
    let chosen = |held: &Held<Grade>| stage::chosen_by(case.dossier, held.digest());
    let other = against.iter().find(|held| chosen(held).is_some());
    if let Some(other) = other.or_else(|| against.first()) {
        sheet.fault_at(
            Link,
            place(grade),
            format!(
                "{} says the opposite of the same patch, and {}",
                place(other),
                decided(case, other.digest())
            ),
        );
    }
}

/// Who said that a document stands which speaks against the delivery.
pub(super) fn decided(case: &Case<'_>, document: Digest) -> String {
    stage::chosen_by(case.dossier, document).map_or_else(
        || {
            let id = case.dossier.id().short();
            format!("nobody adjudicated (`hangar adjudicate {id} DIGEST --reason TEXT`)")
        },
        |by| format!("{by} said that this is what stands"),
    )
}

/// What the policy asks of an accepted grade, beyond the plan.
pub(super) fn minimums(plan: &Plan, settings: &Acceptance, grade: &Grade) -> Vec<String> {
    let mut wrong = Vec::new();
    let trust = plan.trust.max(settings.trust);
    if grade.trust < trust {
        wrong.push(format!(
            "its trust is `{}`, and `{trust}` is asked for",
            grade.trust
        ));
    }
    let verdict = plan.verdict.max(settings.verdict);
    if grade.verdict < verdict {
        wrong.push(format!(
            "its verdict is `{}`, and `{verdict}` is asked for",
            grade.verdict
        ));
    }
    if !settings.adapters.is_empty() && !settings.adapters.contains(&plan.framework) {
        wrong.push(format!(
            "the policy does not allow {} grades",
            plan.framework
        ));
    }
    if grade.after_code && !settings.after_code {
        wrong.push(
            "its tests were sealed after code was seen, which the policy does not allow".into(),
        );
    }
    if grade.sandbox.swap_exposed && !settings.swap_exposed {
        wrong.push("it was made with swap on, which the policy does not allow".into());
    }
    wrong
}

/// What an accepted grade's own rows and flags must be.
fn acceptable(manifest: &Manifest, grade: &Grade) -> Vec<String> {
    let mut wrong = Vec::new();
    if grade.void {
        wrong.push("it is accepted and void at once".to_owned());
    }
    if !grade.reasons.is_empty() {
        wrong.push("it is accepted and gives reasons against it".to_owned());
    }
    if grade.canary_found {
        wrong.push("it is accepted although it found the mark of the hidden tests".to_owned());
    }
    if !grade.protected_touched.is_empty() {
        wrong.push("it is accepted although the patch changes protected paths".to_owned());
    }
    let base: BTreeMap<&Alias, BaseStatus> = manifest
        .base_check
        .iter()
        .map(|row| (&row.alias, row.status))
        .collect();
    for row in &grade.test {
        let Some(status) = base.get(&row.alias) else {
            continue;
        };
        let fine = row.outcome == TestOutcome::Passed
            || (row.outcome == TestOutcome::Skipped && *status == BaseStatus::Skipped);
        if !fine {
            wrong.push(format!(
                "it is accepted although hidden test {} did not pass",
                row.alias
            ));
        }
    }
    let sentinel_passed = grade
        .test
        .iter()
        .any(|row| !base.contains_key(&row.alias) && row.outcome == TestOutcome::Passed);
    if sentinel_passed {
        wrong.push("it is accepted although a test that must fail passed".to_owned());
    }
    wrong
}

/// Whether rows, counts, probes and levels of a grade agree with each other and the manifest.
fn numbers(manifest: &Manifest, grade: &Grade) -> Vec<String> {
    let mut wrong = Vec::new();
    // A patch that was refused before anything ran has no rows.
    let ran = !grade.test.is_empty() || grade.accepted;
    let expected: BTreeSet<&Alias> = manifest.base_check.iter().map(|row| &row.alias).collect();
    let reported: Vec<&TestResult> = grade
        .test
        .iter()
        .filter(|row| expected.contains(&row.alias))
        .collect();
    let distinct: BTreeSet<&Alias> = reported.iter().map(|row| &row.alias).collect();
    if ran && (distinct != expected || reported.len() != expected.len()) {
        wrong.push("its rows are not exactly the hidden tests of the manifest".to_owned());
    }
    let others: Vec<&TestResult> = grade
        .test
        .iter()
        .filter(|row| !expected.contains(&row.alias))
        .collect();
    if ran
        && (others.len() != manifest.counts.sentinels as usize
            || !others.iter().all(|row| row.alias.is_sentinel()))
    {
        wrong.push("its rows are not exactly the sentinels of the manifest".to_owned());
    }
    if ran && counted(&reported, &others) != grade.counts {
        wrong.push("its counts are not the ones of its rows".to_owned());
    }
    if grade.counts.expected != manifest.counts.tests {
        wrong.push(format!(
            "it expects {}, the manifest has {}",
            words::count(grade.counts.expected, "test", "tests"),
            manifest.counts.tests
        ));
    }
    wrong.extend(levels(manifest, grade));
    wrong
}

fn counted(expected: &[&TestResult], sentinels: &[&TestResult]) -> GradeCounts {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let of = |outcome: TestOutcome| {
        let rows = expected.iter().filter(|row| row.outcome == outcome);
        number(rows.count())
    };
    let held = sentinels.iter().filter(|row| {
        row.outcome == TestOutcome::Failed && row.class == Some(FailureClass::Assertion)
    });
    GradeCounts {
        expected: number(expected.len()),
        passed: of(TestOutcome::Passed),
        failed: of(TestOutcome::Failed),
        skipped: of(TestOutcome::Skipped),
        missing: of(TestOutcome::Missing),
        sentinels_held: number(held.count()),
        sentinels: number(sentinels.len()),
    }
}

/// Trust and verdict are no more than probes, adapter and sentinels support.
fn levels(manifest: &Manifest, grade: &Grade) -> Vec<String> {
    let mut wrong = Vec::new();
    if grade.trust != grade.sandbox.trust {
        wrong.push("its trust is not the one of its sandbox".to_owned());
    }
    let shown = shown_trust(&grade.sandbox);
    if grade.trust > shown {
        wrong.push(format!(
            "it claims trust `{}`, its probes show `{shown}`",
            grade.trust
        ));
    }
    let ceiling = adapter(manifest.plan.framework).ceiling();
    if grade.verdict > ceiling {
        wrong.push(format!(
            "it claims verdict `{}`; {} grades reach `{ceiling}`",
            grade.verdict, manifest.plan.framework
        ));
    }
    // An external one is not made where the patch's code runs: a sentinel has nothing to meet.
    if grade.verdict == Verdict::Crosschecked && grade.counts.sentinels_held == 0 {
        wrong.push("it claims a crosschecked verdict without a sentinel that held".to_owned());
    }
    wrong
}

/// The level that the recorded probes support, by the rule that a grader itself goes by.
fn shown_trust(record: &SandboxRecord) -> Trust {
    let probe = |word: &String| match word.as_str() {
        "held" => Probe::held(""),
        "open" => Probe::open(""),
        _ => Probe::unmeasured(""),
    };
    let probes = Probes {
        provider: record.provider.clone(),
        version: record.version.clone(),
        swap_exposed: record.swap_exposed,
        results: record
            .probes
            .iter()
            .map(|(name, word)| (name.clone(), probe(word)))
            .collect(),
    };
    probes.trust()
}
