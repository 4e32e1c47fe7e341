//! From people to the manifest: who approved it, and whether that was used as it may be.

use super::LinkName::Approval as Link;
use super::grades::decided;
use super::history::{Consumption, embedded};
use super::{Case, Sheet};
use crate::base::words;
use crate::flow::Error;
use crate::model::approval::{Action, Approval};
use crate::model::digest::Digest;
use crate::model::ids::Principal;
use crate::model::manifest::Manifest;
use crate::model::policy::Actor;
use crate::model::task::Flow;
use crate::store::chain;
use crate::store::check::{Checked, authorise, check as check_document};
use crate::store::dossier::Held;
use jiff::Timestamp;
use std::collections::BTreeSet;

/// Gives the approvals that were used and count.
pub(super) fn check(case: &Case<'_>, sheet: &mut Sheet) -> Result<Vec<Checked<Approval>>, Error> {
    if case.dossier.history.task.flow == Flow::Plain {
        sheet.skip(Link, "a plain task has nothing to approve");
        return Ok(Vec::new());
    }
    strays(case, sheet);
    let Some(seal) = case.delivered_seal() else {
        sheet.skip(Link, "nothing was delivered under an approved version");
        return Ok(Vec::new());
    };
    rejections(case, seal, sheet);
    let Some(consumption) = case.past.consumption(seal.digest()) else {
        sheet.fault(
            Link,
            format!(
                "the history never used approvals of manifest {} before it was delivered",
                seal.digest().short()
            ),
        );
        sheet.close(Link, "");
        return Ok(Vec::new());
    };
    let mut counted = Vec::new();
    for approval in consumption.approvals {
        counted.extend(used(case, seal, consumption, *approval, sheet)?);
    }
    let people: BTreeSet<&Principal> = counted.iter().map(|one| one.actor.person()).collect();
    graded_under(case, seal, consumption, sheet);
    own_machine(case, &people, sheet);
    let needed = case.then.root.acceptance.approvers.max(1) as usize;
    if people.len() < needed {
        sheet.fault(
            Link,
            format!(
                "{} of {} approved manifest {}",
                people.len(),
                words::count(needed, "person", "people"),
                seal.digest().short()
            ),
        );
    }
    let names: Vec<_> = people.iter().map(|name| name.as_str()).collect();
    let detail = format!(
        "{} approved manifest {}",
        names.join(", "),
        seal.digest().short()
    );
    sheet.close(Link, detail);
    Ok(counted)
}

/// Decisions about manifests that are no version of this task.
fn strays(case: &Case<'_>, sheet: &mut Sheet) {
    for held in &case.dossier.decisions {
        let value = held.value();
        match case.dossier.seal(value.manifest).map(Held::value) {
            None => sheet.fault_at(
                Link,
                decision(held.digest()),
                format!(
                    "it decides about manifest {}, which is no believed version of this task",
                    value.manifest.short()
                ),
            ),
            Some(manifest) if manifest.version != value.version => sheet.fault_at(
                Link,
                decision(held.digest()),
                "it calls the manifest by another version number",
            ),
            Some(_) => {}
        }
    }
}

fn decision(digest: Digest) -> String {
    format!("decision {}", digest.short())
}

/// A rejection that nobody set aside stands against any approval.
fn rejections(case: &Case<'_>, seal: &Held<Manifest>, sheet: &mut Sheet) {
    for held in case.dossier.decisions_on(seal.digest(), Action::Reject) {
        sheet.fault_at(
            Link,
            decision(held.digest()),
            format!(
                "{} rejected this manifest, and {}",
                held.value().signer.principal,
                decided(case, held.digest())
            ),
        );
    }
}

/// One approval that the implementation used; `None` when it does not count.
fn used(
    case: &Case<'_>,
    seal: &Held<Manifest>,
    consumption: &Consumption<'_>,
    digest: Digest,
    sheet: &mut Sheet,
) -> Result<Option<Checked<Approval>>, Error> {
    let embedded = from_event(case, consumption, digest, sheet)?;
    let on_ref = on_its_ref(case, seal, digest, embedded.as_ref(), sheet)?;
    let Some(approval) = embedded.or(on_ref) else {
        sheet.fault_at(
            Link,
            decision(digest),
            "the implementation used it, and no believed document with this digest is here",
        );
        return Ok(None);
    };
    let at = &consumption.record.event.value().signer.at;
    let faults = counts(case, seal, &approval, digest, at);
    let fine = faults.is_empty();
    for fault in faults {
        sheet.fault_at(Link, decision(digest), fault);
    }
    Ok(fine.then_some(approval))
}

/// Why an approval does not count for a manifest at a (claimed) time.
fn counts(
    case: &Case<'_>,
    seal: &Held<Manifest>,
    approval: &Checked<Approval>,
    digest: Digest,
    at: &str,
) -> Vec<String> {
    let value = approval.value();
    let mut faults = Vec::new();
    if value.action != Action::Approve {
        faults.push("it is a rejection".to_owned());
    }
    if value.manifest != seal.digest() {
        faults.push(format!(
            "it is about manifest {}, not the delivered one",
            value.manifest.short()
        ));
    }
    if value.signer.policy.version < seal.value().signer.policy.version {
        faults.push("it names an older policy version than the manifest".to_owned());
    }
    if case.past.aside_then.contains(&digest) {
        faults.push("it was set aside before the delivery, and used again".to_owned());
    }
    let end = value.not_after.as_deref().map(str::parse::<Timestamp>);
    match (end, at.parse::<Timestamp>()) {
        (Some(Ok(end)), Ok(at)) if at <= end => {}
        (Some(Ok(end)), Ok(at)) => {
            faults.push(format!(
                "it was used at {at}, after it had expired at {end}"
            ));
        }
        (Some(_), _) => faults.push("its end or the time of its use can't be read".to_owned()),
        (None, _) => faults.push("it names no time after which it can't be used".to_owned()),
    }
    faults
}

/// The copy in the consuming event. That event must name and embed what it rests on.
fn from_event(
    case: &Case<'_>,
    consumption: &Consumption<'_>,
    digest: Digest,
    sheet: &mut Sheet,
) -> Result<Option<Checked<Approval>>, Error> {
    let place = format!("event {}", consumption.record.event.digest().short());
    let Some((bytes, signatures)) = embedded(case, consumption.record, digest)? else {
        sheet.fault_at(
            Link,
            place,
            format!("it uses approval {} and does not embed it", digest.short()),
        );
        return Ok(None);
    };
    for signature in signatures {
        let checked = believed(case, bytes.clone(), signature);
        if checked.is_some() {
            return Ok(checked);
        }
    }
    sheet.fault_at(
        Link,
        place,
        format!(
            "the copy of approval {} in it is not believed",
            digest.short()
        ),
    );
    Ok(None)
}

fn believed(case: &Case<'_>, bytes: Vec<u8>, signature: Vec<u8>) -> Option<Checked<Approval>> {
    let task = &case.dossier.history.task;
    let checked = check_document(&case.store.policy, bytes, signature, Some(&task.id)).ok()?;
    authorise(&checked, &task.requester).ok()?;
    Some(checked)
}

/// The document on its own ref. A ref only grows, so what was used once must still be there.
fn on_its_ref(
    case: &Case<'_>,
    seal: &Held<Manifest>,
    digest: Digest,
    embedded: Option<&Checked<Approval>>,
    sheet: &mut Sheet,
) -> Result<Option<Checked<Approval>>, Error> {
    let decisions = &case.dossier.decisions;
    if let Some(held) = decisions.iter().find(|held| held.digest() == digest) {
        return Ok(Some(held.document.clone()));
    }
    let Some(approval) = embedded else {
        return Ok(None);
    };
    let value = approval.value();
    let layout = &case.store.layout;
    let name = layout.approval(case.dossier.id(), &seal.digest(), &value.signer.key);
    let found = match case.store.head(&name)? {
        None => None,
        Some(head) => super::soften(chain::read(&case.store.repo, head))?.ok(),
    };
    for folder in found.iter().flatten() {
        let bytes = super::soften(folder.file(&case.store.repo, "approval.toml"))?;
        if matches!(bytes, Ok(Some(bytes)) if Digest::of(&bytes) == digest) {
            return Ok(None);
        }
    }
    sheet.fault_at(
        Link,
        decision(digest),
        "it was used, but is no longer on its own ref: that ref was deleted or rewritten",
    );
    Ok(None)
}

/// The grade names the approvals that it rests on: each must count.
fn graded_under(
    case: &Case<'_>,
    seal: &Held<Manifest>,
    consumption: &Consumption<'_>,
    sheet: &mut Sheet,
) {
    let Some(grade) = case.delivered_grade() else {
        return;
    };
    let value = grade.value();
    let place = format!("grade {}", grade.digest().short());
    if value.approvals.is_empty() {
        sheet.fault_at(Link, &place, "it names no approval");
    }
    for digest in &value.approvals {
        if consumption.approvals.contains(digest) {
            continue;
        }
        let mut decisions = case.dossier.decisions.iter();
        let Some(held) = decisions.find(|held| held.digest() == *digest) else {
            let what = format!("it rests on approval {}, which is not here", digest.short());
            sheet.fault_at(Link, &place, what);
            continue;
        };
        for fault in counts(case, seal, &held.document, *digest, &value.signer.at) {
            sheet.fault_at(Link, decision(*digest), fault);
        }
    }
}

/// Says when one person stands behind both the approval and the grade, or the patch.
fn own_machine(case: &Case<'_>, people: &BTreeSet<&Principal>, sheet: &mut Sheet) {
    let grade = case
        .delivered_grade()
        .map(|held| held.document.actor.person());
    if let Some(person) = grade.filter(|person| people.contains(person)) {
        sheet.note(format!(
            "the grade was signed on a machine of {person}, who also approved the tests"
        ));
    }
    let run = case.delivered_run().map(|held| &held.document.actor);
    if let Some(Actor::Person { name, .. }) = run
        && people.contains(name)
    {
        sheet.note(format!("{name} approved the tests and handed in the patch"));
    }
}
