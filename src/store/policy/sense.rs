//! What no new version may do although its signatures would suffice.

use super::step::members_keys;
use crate::base::words;
use crate::model::policy::Policy;
use crate::store::Error;
use std::collections::BTreeSet;

/// Refuses a version after which nobody could make the next one, or which names strangers.
pub(super) fn check(policy: &Policy) -> Result<(), Error> {
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
