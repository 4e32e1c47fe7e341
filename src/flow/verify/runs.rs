//! From a run to its trees: every listing and patch id is computed again from Git's objects.

use super::LinkName::Run as Link;
use super::{Case, Sheet, soften};
use crate::base::words;
use crate::flow::Error;
use crate::grade::protect;
use crate::model::digest::Digest;
use crate::model::listing::{changes, patch_id};
use crate::model::manifest::Writer;
use crate::model::object_id::ObjectId;
use crate::model::outcome::Secrecy;
use crate::model::run::{Kind, Run, RunOutcome, RunResult, RunRole};
use crate::store::dossier::Held;

fn place(run: &Held<Run>) -> String {
    format!("run {}", run.digest().short())
}

pub(super) fn check(case: &Case<'_>, sheet: &mut Sheet) -> Result<(), Error> {
    for run in &case.dossier.runs {
        attachments(case, run, sheet)?;
        if let Some(result) = &run.value().result {
            kept(run, result, sheet);
            recomputed(case, run, result, sheet)?;
        }
    }
    let Some(delivery) = case.delivery() else {
        sheet.skip(
            Link,
            format!(
                "{}, none delivered yet",
                words::count(case.dossier.runs.len(), "run", "runs")
            ),
        );
        return Ok(());
    };
    let Some(run) = case.delivered_run() else {
        sheet.fault(
            Link,
            format!(
                "the delivery names run {}, which is no believed run of this task",
                delivery.run.short()
            ),
        );
        sheet.close(Link, "");
        return Ok(());
    };
    for wrong in delivered(case, run) {
        sheet.fault_at(Link, place(run), wrong);
    }
    let value = run.value();
    let who = match (value.kind, &value.harness) {
        (Kind::Agent, Some(harness)) => format!("`{}`", harness.name),
        _ => value.signer.principal.to_string(),
    };
    let changed = value.result.as_ref().map_or(0, |result| result.changed);
    sheet.close(
        Link,
        format!(
            "run {} by {who}: {} changed, trees and patch computed again, secrecy {}",
            run.digest().short(),
            words::count(changed, "path", "paths"),
            value.secrecy
        ),
    );
    Ok(())
}

/// The result tree lies beside the document, so that it is never collected.
fn kept(run: &Held<Run>, result: &RunResult, sheet: &mut Sheet) {
    if run.folder.object("result") != Some(result.tree) {
        sheet.fault_at(
            Link,
            place(run),
            "the tree beside it is not the result that it names",
        );
    }
}

fn attachments(case: &Case<'_>, run: &Held<Run>, sheet: &mut Sheet) -> Result<(), Error> {
    for attachment in &run.value().attachment {
        let wrong = match soften(run.folder.file(&case.store.repo, &attachment.name))? {
            Ok(Some(bytes)) if Digest::of(&bytes) == attachment.sha256 => continue,
            Ok(Some(_)) => "is not the one that it names".to_owned(),
            Ok(None) => {
                sheet.note(format!("an attachment of {} was pruned", place(run)));
                continue;
            }
            Err(reason) => {
                let name = attachment.name.escape_debug();
                let what = format!("its attachment `{name}` can't be read: ");
                sheet.unread(Link, place(run), &what, &reason);
                continue;
            }
        };
        sheet.fault_at(
            Link,
            place(run),
            format!(
                "its attachment `{}` {wrong}",
                attachment.name.escape_debug()
            ),
        );
    }
    Ok(())
}

/// What differs between a result table and the objects that it names.
fn recomputed(
    case: &Case<'_>,
    run: &Held<Run>,
    result: &RunResult,
    sheet: &mut Sheet,
) -> Result<(), Error> {
    let mut trees = case.trees.borrow_mut();
    let base = match soften(trees.files_of(result.base))? {
        Ok(files) => files,
        Err(reason) => {
            sheet.unread(Link, place(run), "its base: ", &reason);
            return Ok(());
        }
    };
    let tree = match soften(trees.files(result.tree))? {
        Ok(files) => files,
        Err(reason) => {
            sheet.unread(Link, place(run), "its result: ", &reason);
            return Ok(());
        }
    };
    let mut compare = |same: bool, what: &str| {
        if !same {
            sheet.fault_at(Link, place(run), what);
        }
    };
    compare(
        base.listing.digest() == result.base_listing,
        "the files of its base are not the ones that it names",
    );
    compare(
        tree.listing.digest() == result.listing,
        "the files of its result tree are not the ones that it names",
    );
    compare(
        patch_id(&base.listing, &tree.listing) == result.patch,
        "its patch id is not the one of its trees",
    );
    compare(
        changes(&base.listing, &tree.listing).len() == result.changed as usize,
        "it counts the changed paths wrongly",
    );
    compare(
        protect::named(&changes(&base.listing, &tree.listing)) == result.guarded,
        "it names the changes of CI, hooks and configuration wrongly",
    );
    compare(
        base.gitlinks == tree.gitlinks,
        "its result changes submodules, which no listing counts",
    );
    Ok(())
}

/// What keeps a run from being what was delivered.
fn delivered(case: &Case<'_>, run: &Held<Run>) -> Vec<String> {
    let mut wrong = Vec::new();
    let value = run.value();
    let task = &case.dossier.history.task;
    if value.role != RunRole::Implementer || value.outcome != RunOutcome::Completed {
        wrong.push("it is no completed implementation".to_owned());
    }
    if value.manifest != case.delivery().and_then(|delivery| delivery.manifest) {
        wrong.push("it was not made under the delivered manifest".to_owned());
    }
    match &value.result {
        None => wrong.push("it has no result".to_owned()),
        Some(result) if result.base != task.base => wrong.push(format!(
            "its base {} is not the task's ({})",
            result.base.short(),
            task.base.short()
        )),
        Some(result)
            if !result.guarded.is_empty() && !case.past.patches_then.contains(&result.patch) =>
        {
            wrong.push(format!(
                "its patch changes {}, and no approver had signed the patch id",
                first_of(&result.guarded)
            ));
        }
        Some(_) => {}
    }
    if case.past.aside_then.contains(&run.digest()) {
        wrong.push("it was set aside before the delivery".to_owned());
    }
    if value.kind == Kind::Submitted && value.secrecy > Secrecy::Policy {
        wrong.push("a person's own patch can't claim more secrecy than `policy`".to_owned());
    }
    wrong.extend(same_harness(case, value));
    wrong
}

/// The first of some paths, and how many more there are.
fn first_of(paths: &[String]) -> String {
    let first = paths.first().map(|path| path.escape_debug().to_string());
    let first = first.unwrap_or_default();
    match paths.len() {
        0 | 1 => format!("`{first}`"),
        count => format!("`{first}` and {} more", count - 1),
    }
}

/// Writer and implementer are different harnesses.
fn same_harness(case: &Case<'_>, run: &Run) -> Option<String> {
    let seal = case.delivered_seal()?;
    let Writer::Agent { harness, .. } = &seal.value().writer else {
        return None;
    };
    let own = run.harness.as_ref()?;
    (own.name == *harness).then(|| format!("`{harness}` wrote both the tests and the patch"))
}

/// The trees of the delivered result: base tree's commit and result tree.
pub(super) fn result<'a>(case: &Case<'a>) -> Option<(ObjectId, &'a RunResult)> {
    let result = case.delivered_run()?.value().result.as_ref()?;
    Some((result.base, result))
}
