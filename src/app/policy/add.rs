//! `hangar policy add`: people, keys, machines.

use super::change::{Changed, finish};
use super::texts::{add_new, key_text, name_of, recipient_text};
use crate::app::{Error, Here, sync};
use crate::flow;
use crate::flow::decide::refuse_agents;
use crate::model::ids::Principal;
use crate::model::policy::{Machine, MachineRole, Members, Person, Role, Root, RootKey};
use crate::model::reduction::Why;
use crate::store::proposal;
use crate::trust::{AskPassphrase, PublicKey};

/// Keys for `policy add`.
#[derive(Debug, Clone, Default)]
pub struct Addition {
    /// A person, or the owner or name of a machine.
    pub name: String,
    /// The person's role; where the person is new, member.
    pub role: Option<Role>,
    /// The person's keys.
    pub keys: Vec<String>,
    /// What the person can decrypt with, where it is no key of theirs.
    pub recipients: Vec<String>,
    /// Machine keys with what each is for.
    pub machines: Vec<(MachineRole, String)>,
    /// The person who answers for machines; `name` where that is a person, else the caller.
    pub owner: Option<String>,
    /// Whether the keys are root keys too.
    pub root: bool,
    /// Whether the root keys are recovery keys, and no ordinary keys of the person.
    pub recovery: bool,
}

/// Adds people, keys and machines.
pub fn add(here: &Here, add: &Addition, ask: &mut AskPassphrase<'_>) -> Result<Changed, Error> {
    refuse_agents(here.env.keys())?;
    let store = sync::fresh(here)?;
    let signer = here.signer(&store, ask)?;
    let caller = store
        .policy
        .newest()
        .holder(&signer.public().fingerprint())
        .map(|(actor, _)| actor.person().clone());
    let draft = proposal::next_version(&store, Why::Retired, |root, members| {
        refuse_compromised(add, members)?;
        apply(add, caller.as_ref(), root, members)
    })?;
    finish(here, &store, draft, &signer)
}

/// Somebody else may sign with such a key for ever.
fn refuse_compromised(add: &Addition, members: &Members) -> Result<(), Error> {
    let machines = add.machines.iter().map(|(_, key)| key);
    for text in add.keys.iter().chain(machines) {
        let Ok(key) = key_text(text)?.parse::<PublicKey>() else {
            continue;
        };
        if let Some(lost) = members.compromised(&key.fingerprint()) {
            let error = format!(
                "the key {} was declared compromised in version {} of the policy",
                lost.key, lost.since
            );
            let remedy = "its owner makes another: `hangar key new` and `git config user.signingKey FILE`; for the keys of a machine `hangar sync` and then `hangar init` there make new ones, and print the line for you";
            return Err(flow::Error::refused(error, remedy).into());
        }
    }
    Ok(())
}

fn apply(
    add: &Addition,
    caller: Option<&Principal>,
    root: &mut Root,
    members: &mut Members,
) -> Result<(), Error> {
    let name = name_of(&add.name)?;
    let keys: Vec<String> = add
        .keys
        .iter()
        .map(|text| key_text(text))
        .collect::<Result<_, _>>()?;
    let known = members.person.iter().any(|person| person.name == name);
    let is_person = known || add.role.is_some() || !keys.is_empty();
    let more = known && (add.role.is_some() || !add.recipients.is_empty());
    if keys.is_empty() && add.machines.is_empty() && (add.role.is_none() || add.recovery) && !more {
        return Err(Error::invalid(format!(
            "{name} needs a key: --key, --worker, --grader or --agent"
        )));
    }
    if !is_person && !add.recipients.is_empty() {
        return Err(Error::invalid(format!(
            "{name} would be a machine, and a --recipient belongs to a person: give a --key too"
        )));
    }
    if is_person && !add.recovery {
        add_person(add, &name, &keys, members)?;
    }
    if add.root || add.recovery {
        if keys.is_empty() {
            return Err(Error::invalid("a root key is named with --key"));
        }
        for public in &keys {
            add_root_key(&name, public, add.recovery, root)?;
        }
    }
    let owner = match (&add.owner, is_person, caller) {
        (Some(owner), _, _) => name_of(owner)?,
        (None, true, _) => name.clone(),
        (None, false, Some(caller)) => caller.clone(),
        (None, false, None) => return Err(Error::invalid("name the owner with --owner")),
    };
    for (role, key) in &add.machines {
        let public = key_text(key)?;
        if *role == MachineRole::Grader {
            // What is sealed is encrypted to it.
            recipient_text(&public)?;
        }
        let is_there = members.machine.iter().any(|one| {
            let owned = one.owner == owner || (add.owner.is_none() && one.name == name);
            one.public == public && one.role == *role && owned
        });
        if is_there {
            continue;
        }
        let wanted = if is_person {
            format!("{name}-{}", super::machine_word(*role))
        } else {
            name.to_string()
        };
        let machine = Machine {
            name: free_name(members, &wanted)?,
            role: *role,
            owner: owner.clone(),
            public,
        };
        members.machine.push(machine);
    }
    Ok(())
}

/// Makes a key a root key; one that is there already stays.
fn add_root_key(
    name: &Principal,
    public: &str,
    recovery: bool,
    root: &mut Root,
) -> Result<(), Error> {
    let mut own = root.key.iter().filter(|one| one.principal == *name);
    match own.find(|one| one.public == public) {
        Some(one) if one.recovery == recovery => {}
        Some(_) => {
            return Err(Error::invalid(format!(
                "this is a root key of {name} already: take it out first (`hangar policy remove {name} --key …`)"
            )));
        }
        None => root.key.push(RootKey {
            principal: name.clone(),
            public: public.to_owned(),
            recovery,
        }),
    }
    Ok(())
}

fn add_person(
    add: &Addition,
    name: &Principal,
    keys: &[String],
    members: &mut Members,
) -> Result<(), Error> {
    let recipients: Vec<String> = add
        .recipients
        .iter()
        .map(|text| recipient_text(text))
        .collect::<Result<_, _>>()?;
    if let Some(person) = members.person.iter_mut().find(|one| one.name == *name) {
        if add.role.is_some_and(|role| role != person.role) {
            let what = format!(
                "{name} is there already; `hangar policy edit --role {name}=ROLE` changes the role"
            );
            return Err(Error::invalid(what));
        }
        add_new(&mut person.keys, keys);
        add_new(&mut person.recipients, &recipients);
        return Ok(());
    }
    if keys.is_empty() {
        return Err(Error::invalid(format!("{name} is new and needs a --key")));
    }
    let recipients = if recipients.is_empty() {
        let own = keys.iter().filter(|key| recipient_text(key).is_ok());
        own.cloned().collect()
    } else {
        recipients
    };
    if recipients.is_empty() {
        return Err(Error::invalid(format!(
            "{name} could decrypt nothing with this kind of key: give a --recipient (age1…), which `hangar init` makes in their clone"
        )));
    }
    members.person.push(Person {
        name: name.clone(),
        role: add.role.unwrap_or(Role::Member),
        keys: keys.to_vec(),
        recipients,
    });
    Ok(())
}

/// `alice-worker`, else `alice-worker-2`, …
fn free_name(members: &Members, wanted: &str) -> Result<Principal, Error> {
    let taken = |name: &str| {
        members.person.iter().any(|one| one.name.as_str() == name)
            || members.machine.iter().any(|one| one.name.as_str() == name)
    };
    let numbered = (2..).map(|number| format!("{wanted}-{number}"));
    let free = std::iter::once(wanted.to_owned())
        .chain(numbered)
        .find(|name| !taken(name));
    name_of(&free.unwrap_or_default())
}
