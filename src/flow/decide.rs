//! What a person decides: approve, reject, adjudicate.

use super::Error;
use super::stage::{self, Unfit};
use crate::base::random;
use crate::model::approval::{Action, Approval};
use crate::model::authority::{Act, may};
use crate::model::digest::Digest;
use crate::model::event::Change;
use crate::model::ids::Fingerprint;
use crate::model::manifest::Manifest;
use crate::model::policy::Actor;
use crate::model::task::Task;
use crate::store::Store;
use crate::store::dossier::{Dossier, Held};
use crate::store::identity::Identity;
use crate::store::write::Written;
use jiff::ToSpan as _;

/// How a person came to a decision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Look {
    /// Seconds from the first look at the card.
    pub seconds: Option<u64>,
    /// Sealed files opened.
    pub files_opened: u32,
}

/// Variables that agent programs set for the commands that they run. A decision from such an
/// environment is refused, whatever key it holds. What an editor also sets in a person's own terminal,
/// as `CURSOR_TRACE_ID`, is not among them.
pub const AGENT_VARIABLES: [&str; 15] = [
    "HANGAR_EXCHANGE",
    "AI_AGENT",
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "CODEX_THREAD_ID",
    "CODEX_CI",
    "GEMINI_CLI",
    "OPENCODE",
    "CURSOR_AGENT",
    "COPILOT_CLI",
    "QWEN_CODE",
    "AMP_CURRENT_THREAD_ID",
    "CLINE_ACTIVE",
];

/// Refuses to decide in an agent's environment.
pub fn refuse_agents<K: AsRef<std::ffi::OsStr>>(
    names: impl IntoIterator<Item = K>,
) -> Result<(), Error> {
    persons_only(names, "no agent decides", "decide")
}

/// Refuses to show hidden tests in an agent's environment: what is shown there, a person did not see.
pub fn hide_from_agents<K: AsRef<std::ffi::OsStr>>(
    names: impl IntoIterator<Item = K>,
) -> Result<(), Error> {
    persons_only(
        names,
        "no agent is shown what a person decides about",
        "review",
    )
}

/// Refuses to remove in an agent's environment what nobody else may have.
pub fn keep_from_agents<K: AsRef<std::ffi::OsStr>>(
    names: impl IntoIterator<Item = K>,
) -> Result<(), Error> {
    persons_only(names, "no agent removes hangar and its tasks", "do it")
}

fn persons_only<K: AsRef<std::ffi::OsStr>>(
    names: impl IntoIterator<Item = K>,
    rule: &str,
    verb: &str,
) -> Result<(), Error> {
    let agent = names
        .into_iter()
        .find(|name| AGENT_VARIABLES.iter().any(|known| name.as_ref() == *known));
    match agent {
        None => Ok(()),
        Some(name) => Err(Error::refused(
            format!(
                "this is an agent's environment ({} is set), and {rule}",
                name.as_ref().display()
            ),
            format!("{verb} in a terminal of your own"),
        )),
    }
}

/// Refuses whoever may not decide about a task's tests.
pub fn may_decide(actor: &Actor, task: &Task) -> Result<(), Error> {
    if may(actor, Act::Decide, &task.requester) {
        return Ok(());
    }
    Err(Error::refused(
        format!("{} may not decide about this task", actor.name()),
        format!(
            "its requester {}, an approver or an admin can",
            task.requester
        ),
    ))
}

/// Refuses a decision about a task that has ended.
pub fn is_open(task: &Task) -> Result<(), Error> {
    let state = task.state;
    if !state.is_terminal() {
        return Ok(());
    }
    Err(Error::refused(
        format!("the task is {state}; there is nothing to decide"),
        "see `hangar task show`",
    ))
}

/// Refuses whoever may not allow the delivery of a patch.
pub fn may_approve_patch(actor: &Actor, task: &Task) -> Result<(), Error> {
    if may(actor, Act::ApprovePatch, &task.requester) {
        return Ok(());
    }
    Err(Error::refused(
        format!("{} may not approve a patch", actor.name()),
        "an approver or an admin can",
    ))
}

/// The decisions of a key about a version that its next one takes back.
fn takes_back(dossier: &Dossier, seal: &Held<Manifest>, key: &Fingerprint) -> Vec<Digest> {
    let all = dossier.decisions.iter().chain(&dossier.overruled);
    let own: Vec<_> = all
        .filter(|held| held.value().manifest == seal.digest() && held.value().signer.key == *key)
        .filter(|held| held.document.reduced.is_none())
        .collect();
    let stands = |held: &&&Held<Approval>| {
        let names = |other: &&Held<Approval>| other.value().takes_back.contains(&held.digest());
        !own.iter().any(names)
    };
    let mut found: Vec<_> = own
        .iter()
        .filter(stands)
        .map(|held| held.digest())
        .collect();
    found.sort_unstable();
    found
}

/// Signs a decision about a manifest.
pub fn decide(
    store: &Store,
    dossier: &Dossier,
    seal: &Held<Manifest>,
    person: &Identity<'_>,
    action: Action,
    reason: &str,
    look: Look,
) -> Result<Written, Error> {
    let task = &dossier.history.task;
    may_decide(&person.actor, task)?;
    is_open(task)?;
    if action == Action::Approve && stage::is_edited(task, seal) {
        return Err(Unfit::Edited.error(dossier, seal));
    }
    if action == Action::Reject && reason.trim().is_empty() {
        return Err(Error::refused(
            "a rejection needs a reason",
            "give it with --reason",
        ));
    }
    let now = store.clock.now();
    // A century is for ever, and more is no time that a clock can hold.
    let days = i64::from(
        store
            .policy
            .newest()
            .root
            .acceptance
            .approval_days
            .min(36_500),
    );
    let not_after = now.checked_add((days * 24).hours()).unwrap_or(now);
    let approval = Approval {
        format: 1,
        repo: store.policy.repo(),
        task: task.id.clone(),
        manifest: seal.digest(),
        version: seal.value().version,
        action,
        reason: reason.trim().to_owned(),
        takes_back: takes_back(dossier, seal, person.key()),
        nonce: random::hex::<16>(),
        not_after: (action == Action::Approve).then(|| not_after.to_string()),
        seconds: look.seconds,
        files_opened: look.files_opened,
        signer: person.table(now),
    };
    let reference = store
        .layout
        .approval(&task.id, &seal.digest(), person.key());
    let note = match action {
        Action::Approve => "approve",
        Action::Reject => "reject",
    };
    Ok(store.append_document(&reference, person, &approval, Vec::new(), note)?)
}

/// Signs that a patch may be delivered although it changes what
/// [`GUARDED`](crate::grade::protect::GUARDED) names.
pub fn approve_patch(
    store: &Store,
    dossier: &Dossier,
    person: &Identity<'_>,
    patch: Digest,
) -> Result<(), Error> {
    may_approve_patch(&person.actor, &dossier.history.task)?;
    let change = Change::ApprovePatch { patch };
    store.change_task(dossier.id(), person, |_| Ok(vec![change.clone()]))?;
    Ok(())
}

/// Says which of contradictory documents stands.
pub fn adjudicate(
    store: &Store,
    dossier: &Dossier,
    person: &Identity<'_>,
    stands: Digest,
    documents: &[Digest],
    reason: &str,
) -> Result<(), Error> {
    if !documents.contains(&stands) {
        return Err(Error::refused(
            "this document is not one of those that contradict each other",
            format!(
                "choose one of {}",
                documents
                    .iter()
                    .map(Digest::short)
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        ));
    }
    let falls: Vec<Digest> = documents
        .iter()
        .copied()
        .filter(|digest| *digest != stands)
        .collect();
    let change = Change::Adjudicate {
        stands,
        falls,
        reason: reason.to_owned(),
    };
    store.change_task(dossier.id(), person, |_| Ok(vec![change.clone()]))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agents_environment_is_refused_and_a_persons_is_not() {
        assert!(refuse_agents(["PATH", "HOME", "TERM"]).is_ok());
        for name in AGENT_VARIABLES {
            assert!(refuse_agents(["PATH", name]).is_err(), "{name}");
        }
    }
}
