//! The normative table: who may sign what. Default deny.
//!
//! The same table stands in `docs/concepts.md`, written by a test from this file.

use crate::model::ids::Principal;
use crate::model::policy::{Actor, MachineRole, Role};
use std::fmt;

/// What a signature does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Act {
    /// Create a task.
    Create,
    /// Change a task's text, criteria, priority or tags.
    Edit,
    /// Put a draft into the queue.
    Enqueue,
    /// Take, renew or give back a claim; record a stage, a failure of the machinery.
    Work,
    /// Stop a task.
    Cancel,
    /// Queue an ended task again.
    Retry,
    /// Delete a draft.
    Delete,
    /// Write a comment.
    Comment,
    /// Approve or reject a manifest.
    Decide,
    /// Allow the delivery of a patch that changes CI, hooks, Git's or hangar's configuration.
    ApprovePatch,
    /// Say which of two contradictory documents stands.
    Adjudicate,
    /// Land the tests after delivery.
    Publish,
    /// Sign a sealed manifest and its base check.
    Seal,
    /// Add recipients to a sealed version.
    Reseal,
    /// Record an agent's run.
    RecordRun,
    /// Record a person's own patch.
    Submit,
    /// Sign a grade.
    Grade,
}

impl fmt::Display for Act {
    /// What it is, as a verb phrase: the table's words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "create a task",
            Self::Edit => "change its text, criteria, priority or tags",
            Self::Enqueue => "put a draft into the queue",
            Self::Work => "claim it, record stages, deliver or end it",
            Self::Cancel => "cancel it",
            Self::Retry => "queue an ended task again",
            Self::Delete => "delete a draft",
            Self::Comment => "comment",
            Self::Decide => "approve or reject sealed tests",
            Self::Adjudicate => "say which of two contradictory documents stands",
            Self::Publish => "publish the tests after delivery",
            Self::Seal => "sign a manifest and its base check",
            Self::Reseal => "add recipients to a sealed version",
            Self::RecordRun => "record an agent's run",
            Self::Submit => "submit an own patch",
            Self::Grade => "sign a grade",
            Self::ApprovePatch => "allow a patch that changes guarded paths",
        })
    }
}

/// Every act, in the order of the table.
pub const ACTS: [Act; 17] = [
    Act::Create,
    Act::Edit,
    Act::Enqueue,
    Act::Work,
    Act::Cancel,
    Act::Retry,
    Act::Delete,
    Act::Comment,
    Act::Decide,
    Act::ApprovePatch,
    Act::Adjudicate,
    Act::Publish,
    Act::Seal,
    Act::Reseal,
    Act::RecordRun,
    Act::Submit,
    Act::Grade,
];

/// Whether `actor` may do `act` on a task that `requester` asked for.
pub fn may(actor: &Actor, act: Act, requester: &Principal) -> bool {
    match actor {
        Actor::Person { name, role } => person_may(*role, act, name == requester),
        Actor::Machine { role, .. } => machine_may(*role, act),
    }
}

fn person_may(role: Role, act: Act, is_requester: bool) -> bool {
    match act {
        Act::Create | Act::Enqueue | Act::Comment | Act::Submit => true,
        Act::Edit | Act::Cancel | Act::Retry | Act::Delete | Act::Decide => {
            is_requester || role >= Role::Approver
        }
        // A requester's word against an approver's is for an approver to weigh.
        Act::Adjudicate | Act::ApprovePatch | Act::Publish | Act::Reseal => role >= Role::Approver,
        Act::Work | Act::Seal | Act::RecordRun | Act::Grade => false,
    }
}

fn machine_may(role: MachineRole, act: Act) -> bool {
    match role {
        MachineRole::Worker => matches!(act, Act::Work | Act::RecordRun | Act::Comment),
        MachineRole::Grader => matches!(act, Act::Seal | Act::Reseal | Act::Grade),
        MachineRole::Agent => matches!(act, Act::Comment),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Principal {
        text.parse().unwrap()
    }

    fn machine(role: MachineRole) -> Actor {
        Actor::Machine {
            name: name("m"),
            role,
            owner: name("alice"),
        }
    }

    // The table of docs/design "Policy and trust": a machine decides nothing, whoever owns it.
    #[test]
    fn no_machine_key_ever_decides() {
        for role in [MachineRole::Worker, MachineRole::Grader, MachineRole::Agent] {
            for act in [
                Act::Decide,
                Act::ApprovePatch,
                Act::Adjudicate,
                Act::Publish,
                Act::Create,
                Act::Edit,
                Act::Submit,
            ] {
                assert!(!may(&machine(role), act, &name("m")), "{role:?} {act:?}");
            }
        }
    }

    #[test]
    fn the_requester_and_approvers_decide_other_members_do_not() {
        let person = |who: &str, role| Actor::Person {
            name: name(who),
            role,
        };
        let requester = name("alice");
        assert!(may(&person("alice", Role::Member), Act::Decide, &requester));
        assert!(may(&person("bob", Role::Approver), Act::Decide, &requester));
        assert!(may(&person("bob", Role::Admin), Act::Decide, &requester));
        assert!(!may(&person("bob", Role::Member), Act::Decide, &requester));
        // The requester confirms criteria; that a workflow may change is for an approver.
        let patch = Act::ApprovePatch;
        assert!(!may(&person("alice", Role::Member), patch, &requester));
        assert!(may(&person("bob", Role::Approver), patch, &requester));
    }

    #[test]
    fn no_person_signs_for_a_machine() {
        for act in [Act::Work, Act::Seal, Act::RecordRun, Act::Grade] {
            let admin = Actor::Person {
                name: name("root"),
                role: Role::Admin,
            };
            assert!(!may(&admin, act, &name("root")), "{act:?}");
        }
    }
}
