//! Whether it would do today: keys still held, roles still enough, minimums still met. What fails
//! here was valid when it happened.

use super::LinkName::Newest as Link;
use super::{Case, Sheet, grades};
use crate::base::words;
use crate::model::approval::Approval;
use crate::model::authority::{Act, may};
use crate::model::ids::Principal;
use crate::model::policy::Actor;
use crate::model::run::Kind;
use crate::model::signer::Signer;
use crate::model::task::Flow;
use crate::store::check::{Checked, Document};
use std::collections::BTreeSet;

/// `used` are the approvals that counted when they were used.
pub(super) fn check(case: &Case<'_>, used: &[Checked<Approval>], sheet: &mut Sheet) {
    let newest = case.store.policy.newest();
    if case.delivery().is_none() {
        sheet.skip(Link, "not delivered yet");
        return;
    }
    if let Some(record) = case.past.delivered() {
        still(case, "the delivery", &record.event, Act::Work, sheet);
    }
    if let Some(run) = case.delivered_run() {
        let act = match run.value().kind {
            Kind::Agent => Act::RecordRun,
            Kind::Submitted => Act::Submit,
        };
        still(case, "the run", &run.document, act, sheet);
    }
    if let Some(seal) = case.delivered_seal() {
        still(case, "the manifest", &seal.document, Act::Seal, sheet);
    }
    if let (Some(grade), Some(seal)) = (case.delivered_grade(), case.delivered_seal()) {
        still(case, "the grade", &grade.document, Act::Grade, sheet);
        let settings = &newest.root.acceptance;
        for wrong in grades::minimums(&seal.value().plan, settings, grade.value()) {
            sheet.fault_now(Link, format!("the grade: {wrong}"));
        }
    }
    if case.dossier.history.task.flow == Flow::TestFirst {
        approvers(case, used, sheet);
    }
    let version = newest.reference.version;
    let then = case.then.reference.version;
    let since = if version == then {
        format!("policy version {version}, the one of the delivery")
    } else {
        format!("policy version {version}; the delivery was under version {then}")
    };
    sheet.close(Link, since);
}

/// The key is still its holder's, and the holder may still do it; or it lost rights since, and the
/// version that took them counts this document for ever.
fn still<T: Document>(
    case: &Case<'_>,
    what: &str,
    document: &Checked<T>,
    act: Act,
    sheet: &mut Sheet,
) -> bool {
    let newest = case.store.policy.newest();
    let signer = document.value().signer();
    let requester = &case.dossier.history.task.requester;
    let version = newest.reference.version;
    let mut entries = newest.members.reduced.iter();
    let counted = entries
        .find(|entry| entry.key == signer.key)
        .is_some_and(|entry| signer.policy.version < entry.since);
    let wrong = match (&document.reduced, holder(case, signer)) {
        (Some(doubt), _) => format!("{what} does not count any more: {doubt}"),
        (None, _) if counted => return true,
        (None, None) => format!(
            "{what} was signed by {} with a key that policy version {version} does not give them",
            signer.principal
        ),
        (None, Some(actor)) if !may(actor, act, requester) => format!(
            "{what} was signed by {}, who has no right to it under policy version {version}",
            signer.principal
        ),
        (None, Some(_)) => return true,
    };
    sheet.fault_now(Link, wrong);
    false
}

fn holder<'a>(case: &Case<'a>, signer: &Signer) -> Option<&'a Actor> {
    let (actor, _) = case.store.policy.newest().holder(&signer.key)?;
    (*actor.name() == signer.principal).then_some(actor)
}

/// Enough of the people who approved then may still approve.
fn approvers(case: &Case<'_>, used: &[Checked<Approval>], sheet: &mut Sheet) {
    let mut people: BTreeSet<&Principal> = BTreeSet::new();
    for approval in used {
        if still(case, "an approval", approval, Act::Decide, sheet) {
            people.insert(approval.actor.person());
        }
    }
    let needed = case.store.policy.newest().root.acceptance.approvers.max(1) as usize;
    if people.len() < needed {
        sheet.fault_now(
            Link,
            format!(
                "{} of the {} that the policy asks for approved the tests",
                people.len(),
                words::count(needed, "person", "people")
            ),
        );
    }
}
