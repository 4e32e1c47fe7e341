//! The sealed versions: one chain, each with its ciphertext, and numbers that agree with the base
//! check that the grader signed.

use super::LinkName::Versions;
use super::{Case, Sheet, soften};
use crate::base::words;
use crate::flow::Error;
use crate::model::digest::Digest;
use crate::model::manifest::{BaseStatus, Counts, Manifest, Writer};
use crate::model::run::RunRole;
use crate::model::task::Flow;
use crate::store::chain::Folder;
use crate::store::dossier::Held;
use std::collections::BTreeSet;

/// A place name for people: the version and the digest that approvals name.
pub(super) fn place(seal: &Held<Manifest>) -> String {
    format!(
        "version {} ({})",
        seal.value().version,
        seal.digest().short()
    )
}

pub(super) fn check(case: &Case<'_>, sheet: &mut Sheet) -> Result<(), Error> {
    for seal in &case.dossier.seals {
        follows(case, seal, sheet);
        written_for(case, seal, sheet)?;
        ciphertext(
            case,
            &place(seal),
            &seal.folder,
            seal.value().ciphertext,
            sheet,
        )?;
        for wrong in numbers(seal.value()) {
            sheet.fault_at(Versions, place(seal), wrong);
        }
        writer(case, seal, sheet);
    }
    reseals(case, sheet)?;
    delivered(case, sheet);
    let count = case.dossier.seals.len();
    if count == 0 {
        let why = match case.dossier.history.task.flow {
            Flow::Plain => "a plain task has no hidden tests",
            Flow::TestFirst => "no tests are sealed yet",
        };
        sheet.skip(Versions, why);
    } else {
        let newest = case.dossier.seals.last().map_or_else(String::new, place);
        sheet.close(
            Versions,
            format!(
                "{} sealed, the newest is {newest}",
                words::count(count, "version", "versions")
            ),
        );
    }
    Ok(())
}

/// Each version but the first names the one before it.
fn follows(case: &Case<'_>, seal: &Held<Manifest>, sheet: &mut Sheet) {
    let value = seal.value();
    let before = value.previous.map(|digest| case.dossier.seal(digest));
    let wrong = match (value.version, before) {
        (1, None) => return,
        (1, Some(_)) => "the first version names one before it",
        (_, None) => "it names no version before it",
        (_, Some(None)) => {
            "the version that it follows is not here: the ref was rewritten, or that version is not believed"
        }
        (version, Some(Some(before))) if before.value().version + 1 == version => return,
        _ => "it does not follow the version that it names",
    };
    sheet.fault_at(Versions, place(seal), wrong);
}

/// Text and base are ones that the task had, and the base is what the manifest says.
fn written_for(case: &Case<'_>, seal: &Held<Manifest>, sheet: &mut Sheet) -> Result<(), Error> {
    let value = seal.value();
    let mut bases = case.past.texts.iter();
    if !bases.any(|(text, base)| *text == value.text && *base == value.base) {
        sheet.fault_at(
            Versions,
            place(seal),
            "the task never had the text and the base that it names",
        );
    }
    match soften(case.trees.borrow_mut().files_of(value.base))? {
        Ok(files) if files.listing.digest() == value.base_listing => {}
        Ok(_) => sheet.fault_at(
            Versions,
            place(seal),
            format!(
                "the files of the base {} are not the ones that it names",
                value.base.short()
            ),
        ),
        Err(reason) => sheet.unread(Versions, place(seal), "the base: ", &reason),
    }
    Ok(())
}

fn ciphertext(
    case: &Case<'_>,
    place: &str,
    folder: &Folder,
    named: Digest,
    sheet: &mut Sheet,
) -> Result<(), Error> {
    let wrong = match soften(folder.file(&case.store.repo, "sealed.age"))? {
        Ok(Some(bytes)) if Digest::of(&bytes) == named => return Ok(()),
        Ok(Some(_)) => "its sealed.age is not the ciphertext that it names".to_owned(),
        Ok(None) => "it has no sealed.age beside it".to_owned(),
        Err(reason) => {
            sheet.unread(Versions, place, "its sealed.age can't be read: ", &reason);
            return Ok(());
        }
    };
    sheet.fault_at(Versions, place, wrong);
    Ok(())
}

fn reseals(case: &Case<'_>, sheet: &mut Sheet) -> Result<(), Error> {
    for held in &case.dossier.reseals {
        let value = held.value();
        let place = format!("reseal {}", held.digest().short());
        if case.dossier.seal(value.manifest).is_none() {
            sheet.fault_at(
                Versions,
                &place,
                format!(
                    "it names manifest {}, which is no version of this task",
                    value.manifest.short()
                ),
            );
        }
        ciphertext(case, &place, &held.folder, value.ciphertext, sheet)?;
    }
    Ok(())
}

/// The agent's run that wrote the tests is recorded, under the harness that the manifest names.
fn writer(case: &Case<'_>, seal: &Held<Manifest>, sheet: &mut Sheet) {
    let Writer::Agent { harness, run, .. } = &seal.value().writer else {
        return;
    };
    let wrong = match case.run(*run).map(Held::value) {
        None => "the writer's run that it names is not here",
        Some(run) if run.role != RunRole::Writer => "the run that it names is not a writer's",
        Some(run)
            if run
                .harness
                .as_ref()
                .is_none_or(|table| table.name != *harness) =>
        {
            "the writer's run names another harness"
        }
        Some(_) => return,
    };
    sheet.fault_at(Versions, place(seal), wrong);
}

/// The version that was delivered under is the last one that counted, written for the task's text.
fn delivered(case: &Case<'_>, sheet: &mut Sheet) {
    let Some(delivery) = case.delivery() else {
        return;
    };
    let Some(manifest) = delivery.manifest else {
        return;
    };
    let Some(seal) = case.dossier.seal(manifest) else {
        sheet.fault(
            Versions,
            format!(
                "the delivery names manifest {}, which is no believed version of this task",
                manifest.short()
            ),
        );
        return;
    };
    let task = &case.dossier.history.task;
    let value = seal.value();
    if value.text != task.text_digest() || value.base != task.base {
        sheet.fault_at(
            Versions,
            place(seal),
            "it was not written for the text and base that the task was delivered with",
        );
    }
    if case.past.aside_then.contains(&manifest) {
        sheet.fault_at(
            Versions,
            place(seal),
            "it was set aside before the delivery",
        );
    }
    let newer = case.dossier.seals.iter().find(|other| {
        let rival = other.value().version >= value.version && other.digest() != manifest;
        rival && !case.dossier.is_aside(other.digest())
    });
    if let Some(newer) = newer {
        sheet.fault_at(
            Versions,
            place(seal),
            format!("{} stands beside or after it", place(newer)),
        );
    }
}

/// What does not add up in a manifest: counts against base check and coverage.
pub(super) fn numbers(manifest: &Manifest) -> Vec<String> {
    let mut wrong = Vec::new();
    let rows = &manifest.base_check;
    let count = |wanted: &[BaseStatus]| {
        let rows = rows.iter().filter(|row| wanted.contains(&row.status));
        number(rows.count())
    };
    let real = Counts {
        criteria: number(manifest.coverage.len()),
        uncovered: number(
            manifest
                .coverage
                .iter()
                .filter(|one| one.fails == 0)
                .count(),
        ),
        tests: number(rows.len()),
        fails: count(&[BaseStatus::Fails, BaseStatus::Unconfirmed]),
        guards: count(&[BaseStatus::Guard]),
        skipped: count(&[BaseStatus::Skipped]),
        unconfirmed: count(&[BaseStatus::Unconfirmed]),
        flaky: number(rows.iter().filter(|row| row.flaky).count()),
        files: manifest.counts.files,
        sentinels: manifest.counts.sentinels,
    };
    for (name, said, found) in pairs(&manifest.counts, &real) {
        if said != found {
            wrong.push(format!(
                "its base check is forged or damaged: its count of {name} is {said}, its own rows show {found}"
            ));
        }
    }
    let aliases: BTreeSet<_> = rows.iter().map(|row| &row.alias).collect();
    if aliases.len() != rows.len() {
        wrong.push("its base check lists a test twice".into());
    }
    if real.fails == 0 {
        wrong.push(
            "no test of it fails on the base, so it can't tell whether the work was done".into(),
        );
    }
    wrong.extend(coverage(manifest));
    wrong
}

fn pairs(said: &Counts, found: &Counts) -> [(&'static str, u32, u32); 8] {
    [
        ("criteria", said.criteria, found.criteria),
        ("uncovered criteria", said.uncovered, found.uncovered),
        ("tests", said.tests, found.tests),
        ("tests that fail on the base", said.fails, found.fails),
        ("guards", said.guards, found.guards),
        ("skipped tests", said.skipped, found.skipped),
        ("unconfirmed tests", said.unconfirmed, found.unconfirmed),
        ("flaky tests", said.flaky, found.flaky),
    ]
}

/// A test may stand under several criteria but has one alias, so coverage counts at least the rows
/// with the criterion's own aliases.
fn coverage(manifest: &Manifest) -> Vec<String> {
    let mut wrong = Vec::new();
    let failing = manifest.base_check.iter().filter(|row| fails(row.status));
    let failing = number(failing.count());
    for one in &manifest.coverage {
        let prefix = format!("{}.", one.criterion);
        let own = manifest
            .base_check
            .iter()
            .filter(|row| row.alias.as_str().starts_with(&prefix));
        let (tests, own_fails) = own.fold((0, 0), |(tests, failed), row| {
            (tests + 1, failed + u32::from(fails(row.status)))
        });
        let fits = one.tests >= tests
            && one.fails >= own_fails
            && one.fails <= one.tests
            && one.fails <= failing;
        if !fits {
            wrong.push(format!(
                "its base check is forged or damaged: {} is said to have {}, {} of them failing, and its rows show otherwise",
                one.criterion,
                words::count(one.tests, "test", "tests"),
                one.fails
            ));
        }
    }
    wrong
}

/// Whether the patch must turn such a test.
pub(super) const fn fails(status: BaseStatus) -> bool {
    matches!(status, BaseStatus::Fails | BaseStatus::Unconfirmed)
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
