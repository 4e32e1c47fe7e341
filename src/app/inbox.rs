//! `hangar inbox`: what waits for the caller.

use super::harness::ToMend;
use super::{Error, Here, sync};
use crate::flow::stage::{self, Next};
use crate::model::approval::Action;
use crate::model::authority::{Act, may};
use crate::model::digest::Digest;
use crate::model::ids::{Principal, TaskId};
use crate::model::policy::Actor;
use crate::model::task::State;
use crate::store::Store;
use crate::store::dossier::Dossier;
use crate::store::policy::Tally;
use crate::store::scan::TaskRefs;
use schemars::JsonSchema;
use serde::Serialize;

/// What waits.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Inbox {
    /// Whose inbox it is; absent for somebody without a key of the policy, who is shown what waits
    /// for anybody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub person: Option<Principal>,
    /// Newest first.
    pub items: Vec<Item>,
    /// Tasks that can't be read, each with the reason. Never hidden.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub faults: Vec<String>,
}

/// Something that a person must do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Item {
    /// What.
    pub kind: ItemKind,
    /// About which task; absent for the policy and agent programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// External key of the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Title of the task, or what the policy version changes.
    pub title: String,
    /// Claimed time since when; absent for the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The command that answers it.
    pub command: String,
}

/// Why something waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ItemKind {
    /// Hidden tests to read, to approve or reject.
    Review,
    /// Approved hidden tests that were written for another text than the task has now.
    Edited,
    /// A patch of guarded paths to allow.
    Patch,
    /// An accepted result that is on no branch yet, of a task of yours or one that a machine of yours holds.
    Deliver,
    /// Documents that contradict each other.
    Contradiction,
    /// A version of the policy to sign.
    Policy,
    /// One of several rival versions of the policy, of which holders of root keys keep one.
    Rival,
    /// A task of yours that ended without an accepted result.
    Failed,
    /// An agent program of this machine that is not logged in.
    Harness,
}

/// Looks for what waits for the caller, with the newest of the remote.
///
/// Reads every live task: the cost of `hangar verify` without its cryptography of tests.
pub fn inbox(here: &Here) -> Result<Inbox, Error> {
    let store = sync::fresh(here)?;
    let actor = here.known_actor(&store)?;
    let mut inbox = Inbox {
        person: actor.as_ref().map(|actor| actor.person().clone()),
        items: Vec::new(),
        faults: Vec::new(),
    };
    let look = |store: &Store, refs: &TaskRefs| {
        Ok::<_, Error>(match store.dossier_from(refs) {
            Ok(dossier) => Ok(of_task(store, &dossier, actor.as_ref())),
            Err(error) => Err(format!("task {}: {error}", refs.id.short())),
        })
    };
    for found in store.map_all(&store.listing()?, look, &mut |_| {})? {
        match found {
            Ok(item) => inbox.items.extend(item),
            Err(fault) => inbox.faults.push(fault),
        }
    }
    inbox.items.sort_by(|one, two| two.since.cmp(&one.since));
    let policy = of_policy(&store, inbox.person.as_ref())?;
    let rivals = of_rivals(&store, inbox.person.as_ref())?;
    inbox.items.splice(..0, rivals.into_iter().chain(policy));
    match super::harness::to_mend(here) {
        Ok(all) => {
            let items = all.into_iter().map(of_harness);
            inbox.items.splice(..0, items);
        }
        Err(error) => inbox.faults.push(format!("agent programs: {error}")),
    }
    Ok(inbox)
}

/// Who it is of the policy is nothing to a harness: it is this machine's.
fn of_harness(one: ToMend) -> Item {
    let ToMend {
        name,
        outage,
        login,
    } = one;
    let login = login.map_or_else(String::new, |login| format!(": {login}"));
    Item {
        kind: ItemKind::Harness,
        task: None,
        key: None,
        title: format!("{name} {outage}{login}"),
        since: Some(outage.since.to_string()),
        command: format!("hangar harness test {name}"),
    }
}

fn of_task(store: &Store, dossier: &Dossier, actor: Option<&Actor>) -> Option<Item> {
    let task = &dossier.history.task;
    let can = |act| actor.is_none_or(|actor| may(actor, act, &task.requester));
    let short = task.id.short();
    let item = |kind, since: &str, command: String| Item {
        kind,
        task: Some(task.id.clone()),
        key: Some(task.external.clone()).filter(|key| !key.is_empty()),
        title: task.title.clone(),
        since: Some(since.to_owned()),
        command,
    };
    let last = dossier.history.records.last();
    let last = last.map_or(task.created.as_str(), |one| {
        one.event.value().signer.at.as_str()
    });
    let next = stage::next_now(store, dossier);
    // A delivered one waits for a word too, where something speaks against what was delivered.
    if !stage::contradictions_now(store, dossier).is_empty() {
        // Which of them stands is for the person: the page lists them with their digests.
        return can(Act::Adjudicate).then(|| {
            let command = format!("hangar task show {short}");
            item(ItemKind::Contradiction, last, command)
        });
    }
    match next {
        Next::AwaitApproval { manifest, .. } => {
            let since = dossier.seal(manifest).map(|seal| &seal.value().signer.at);
            let waits = can(Act::Decide) && !has_decided(dossier, manifest, actor);
            waits.then(|| {
                let since = since.map_or(last, String::as_str);
                item(ItemKind::Review, since, format!("hangar review {short}"))
            })
        }
        Next::Write { .. } if task.claim.is_none() => {
            let stale = stage::edited_since(dossier);
            let stale = stale.filter(|seal| stage::was_approved(dossier, seal));
            stale.filter(|_| can(Act::Edit)).map(|_| {
                let command = format!("hangar task show {short}");
                item(ItemKind::Edited, last, command)
            })
        }
        Next::AwaitPatchApproval { .. } => can(Act::ApprovePatch).then(|| {
            let command = format!("hangar review {short} --patch");
            item(ItemKind::Patch, last, command)
        }),
        // While a machine works it goes on by itself; what is in its way is said where it is asked to.
        Next::Deliver { .. } => is_theirs(store, dossier, actor)
            .then(|| item(ItemKind::Deliver, last, format!("hangar deliver {short}"))),
        _ if matches!(task.state, State::Failed | State::Rejected) => {
            let mine = actor.is_none_or(|actor| *actor.person() == task.requester);
            // Who cancelled it knows.
            let gave_up = !was_cancelled(dossier);
            (mine && gave_up)
                .then(|| item(ItemKind::Failed, last, format!("hangar task show {short}")))
        }
        _ => None,
    }
}

/// Whether the caller asked for the task, or owns the machine that holds it.
fn is_theirs(store: &Store, dossier: &Dossier, actor: Option<&Actor>) -> bool {
    let task = &dossier.history.task;
    let Some(person) = actor.map(Actor::person) else {
        return true;
    };
    let holder = task.claim.as_ref().map(|claim| &claim.worker);
    let mut machines = store.policy.newest().members.machine.iter();
    *person == task.requester
        || machines.any(|one| Some(&one.name) == holder && one.owner == *person)
}

/// Whether this person has signed a decision about the manifest already.
fn has_decided(dossier: &Dossier, manifest: Digest, actor: Option<&Actor>) -> bool {
    let Some(actor) = actor else { return false };
    let mut decisions = dossier.decisions_on(manifest, Action::Approve);
    decisions.any(|held| held.value().signer.principal == *actor.person())
}

fn was_cancelled(dossier: &Dossier) -> bool {
    use crate::model::event::Change;
    let ending = dossier.history.records.iter().rev().find_map(|record| {
        let changes = record.event.value().change.iter().zip(&record.refused);
        let mut took_effect = changes.filter(|(_, refused)| refused.is_none());
        took_effect.find_map(|(change, _)| match change {
            Change::Cancel { .. } => Some(true),
            Change::Fail { .. } | Change::Reject { .. } => Some(false),
            _ => None,
        })
    });
    ending == Some(true)
}

/// One line for each side that could stand. Whoever has signed which one does waits for others.
fn of_rivals(store: &Store, person: Option<&Principal>) -> Result<Vec<Item>, Error> {
    let choices = super::policy::choices(&store.policy);
    let ends = store.policy.ends().into_iter();
    let mut holders = ends.flat_map(|end| &end.root.key).map(|key| &key.principal);
    if choices.is_empty() || !person.is_none_or(|person| holders.any(|one| one == person)) {
        return Ok(Vec::new());
    }
    let signed = |(_, needs): &(_, Vec<Tally>)| {
        let mut needs = needs.iter();
        needs.any(|need| person.is_some_and(|person| need.signed.contains(person)))
    };
    if store.proposals()?.iter().any(signed) {
        return Ok(Vec::new());
    }
    let item = |choice: super::policy::Choice| {
        let signed: Vec<_> = choice.signed.iter().map(Principal::as_str).collect();
        Item {
            kind: ItemKind::Rival,
            task: None,
            key: None,
            title: format!(
                "version {} by {} stands: {}",
                choice.version,
                signed.join(" and "),
                choice.changes.join("; ")
            ),
            since: None,
            command: format!("hangar policy resolve {}", choice.digest.short()),
        }
    };
    Ok(choices.into_iter().map(item).collect())
}

fn of_policy(store: &Store, person: Option<&Principal>) -> Result<Vec<Item>, Error> {
    let proposals = store.proposals()?;
    let mut items = Vec::new();
    for (proposal, needs) in &proposals {
        let view = super::policy::proposal_view(store, proposal, needs)?;
        let waits = |need: &super::policy::change::NeedView| {
            let missing = (need.signed.len() as u64) < u64::from(need.threshold);
            let theirs = person.is_none_or(|person| need.able.contains(person));
            missing && theirs
        };
        if view.needs.iter().any(waits) {
            // Versions that wait at one time exclude each other, and people forget what they signed.
            let own = proposals.iter().find(|(other, needs)| {
                let mut signed = needs.iter().flat_map(|need| &need.signed);
                other.digest != proposal.digest && signed.any(|one| Some(one) == person)
            });
            let instead = own.map_or_else(String::new, |(own, _)| {
                format!("in place of {}, which you signed: ", own.digest.short())
            });
            items.push(Item {
                kind: ItemKind::Policy,
                task: None,
                key: None,
                title: format!("{instead}{}", view.changes.join("; ")),
                since: None,
                command: format!("hangar policy sign {}", view.digest.short()),
            });
        }
    }
    Ok(items)
}
