//! What no new version may do although its signatures would suffice.

use super::step::members_keys;
use crate::base::words;
use crate::model::policy::{Policy, Role};
use crate::store::Error;
use std::collections::BTreeSet;

/// Refuses a version after which nobody could make the next one, or approve anything any more, or which names
/// strangers.
pub(super) fn check(before: &Policy, policy: &Policy) -> Result<(), Error> {
    approvers(before, policy)?;
    let (root, members) = (&policy.root, &policy.members);
    let wrong = |text: String| Err(Error::Policy(text));
    let root_people: BTreeSet<_> = root.key.iter().map(|key| &key.principal).collect();
    let needed = root.thresholds.root.max(1) as usize;
    if root_people.len() < needed {
        return wrong(format!(
            "{} would have to sign a new root.toml, and only {} would have a root key",
            words::count(needed, "person", "people"),
            root_people.len()
        ));
    }
    let able: BTreeSet<_> = members_keys(root, members)
        .into_iter()
        .map(|(principal, _)| principal)
        .collect();
    let needed = root.thresholds.members.max(1) as usize;
    if able.len() < needed {
        return wrong(format!(
            "{} would have to sign a new members.toml, and only {} could",
            words::count(needed, "person", "people"),
            able.len()
        ));
    }
    let stranger = members
        .machine
        .iter()
        .find(|machine| policy.person(&machine.owner).is_none());
    match stranger {
        Some(machine) => wrong(format!(
            "the machine {} would belong to {}, who is nobody here",
            machine.name, machine.owner
        )),
        None => Ok(()),
    }
}

/// Refuses a setting by which more people would have to approve than could, the requester included. Only where
/// it is raised: whoever must lose a role at once loses it, whatever remains.
fn approvers(before: &Policy, policy: &Policy) -> Result<(), Error> {
    let needed = policy.root.acceptance.approvers;
    if needed <= before.root.acceptance.approvers {
        return Ok(());
    }
    let people = &policy.members.person;
    let able = people.iter().filter(|one| one.role >= Role::Approver);
    let able = able.count();
    // A member decides about what they asked for themselves.
    let most = able + usize::from(able < people.len());
    if needed as usize <= most {
        return Ok(());
    }
    Err(Error::Policy(format!(
        "{} would have to approve, and at most {most} could: add approvers first (`hangar policy add NAME --role approver --key KEY`)",
        words::count(needed as usize, "person", "people"),
    )))
}
