//! Who holds which key under a version of the policy: no key has two holders, and no machine's key
//! is a root key. Must not know signatures or thresholds.

use super::Error;
use crate::model::ids::{Fingerprint, Principal};
use crate::model::policy::{Actor, Members, Policy, Root};
use crate::trust::PublicKey;
use std::collections::{BTreeMap, BTreeSet};

/// Fingerprints of every key text, in the order of [`Members::key_texts`].
pub fn fingerprints(members: &Members) -> Result<Vec<Fingerprint>, Error> {
    let version = members.version;
    let fingerprint = |text: &str| {
        print_of(text)
            .map_err(|why| Error::Policy(format!("version {version} has a bad key: {why}")))
    };
    let all: Vec<Fingerprint> = members
        .key_texts()
        .iter()
        .map(|(text, _)| fingerprint(text))
        .collect::<Result<_, _>>()?;
    let people = members.person.iter().map(|person| &person.name);
    let machines = members.machine.iter().map(|machine| &machine.name);
    let mut names = BTreeSet::new();
    if let Some(name) = people.chain(machines).find(|name| !names.insert(*name)) {
        return Err(Error::Policy(format!(
            "version {version} has two holders called {name}"
        )));
    }
    Ok(all)
}

/// Refuses a version in which a key has two holders. Gives the fingerprints of [`fingerprints`].
pub fn check(root: &Root, members: &Members) -> Result<Vec<Fingerprint>, Error> {
    let prints = fingerprints(members)?;
    match clash(root, members, &prints) {
        Some((key, one, two)) => Err(Error::Policy(format!(
            "version {} gives the key {key} to {one} and to {two}",
            members.version
        ))),
        None => Ok(prints),
    }
}

/// Refuses a change that gives a key away that somebody has in `before`, and says who.
pub fn refuse_taken(before: &Policy, root: &Root, members: &Members) -> Result<(), Error> {
    let prints = fingerprints(members).map_err(Error::proposed)?;
    let Some((key, one, two)) = clash(root, members, &prints) else {
        return Ok(());
    };
    let held = before.holder(&key).map(|(actor, _)| actor.name());
    Err(Error::Proposed(
        match (held, root_holder(&before.root, &key)) {
            (Some(holder), _) => format!("the key {key} belongs to {holder} already"),
            (None, Some(holder)) => format!("the key {key} is a root key of {holder} already"),
            (None, None) => format!("the key {key} would belong to {one} and to {two}"),
        },
    ))
}

/// Whose root key this is.
pub fn root_holder<'a>(root: &'a Root, key: &Fingerprint) -> Option<&'a Principal> {
    let mut keys = root.key.iter();
    keys.find(|one| print_of(&one.public).is_ok_and(|print| print == *key))
        .map(|one| &one.principal)
}

/// The first key that two holders share. A root key may be a key of the same person.
fn clash(
    root: &Root,
    members: &Members,
    prints: &[Fingerprint],
) -> Option<(Fingerprint, Principal, Principal)> {
    let mut seen: BTreeMap<Fingerprint, (Principal, bool)> = BTreeMap::new();
    for ((_, actor), key) in members.key_texts().into_iter().zip(prints) {
        let is_person = matches!(actor, Actor::Person { .. });
        let name = actor.name().clone();
        if let Some((other, _)) = seen.insert(key.clone(), (name.clone(), is_person)) {
            return Some((key.clone(), other, name));
        }
    }
    for one in &root.key {
        // A text that is no key signs nothing.
        let Ok(key) = print_of(&one.public) else {
            continue;
        };
        let own = (one.principal.clone(), true);
        let holder = seen.entry(key.clone()).or_insert_with(|| own.clone());
        if *holder != own {
            return Some((key, holder.0.clone(), own.0));
        }
    }
    None
}

fn print_of(text: &str) -> Result<Fingerprint, crate::trust::KeyError> {
    text.parse().map(|key: PublicKey| key.fingerprint())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::founding::{machine, person, root};
    use crate::model::policy::{MachineRole, Role};
    use crate::trust::generate_machine_key;

    fn key() -> String {
        generate_machine_key().1.as_str().to_owned()
    }

    fn members(alice: &str, worker: &str) -> Members {
        crate::founding::members(
            vec![person("alice", Role::Admin, alice)],
            vec![machine("worker", MachineRole::Worker, worker)],
        )
    }

    #[test]
    fn a_key_has_one_holder_and_a_root_key_is_a_persons_own() {
        let keys = [key(), key(), key()];
        let [alice, worker, spare] = keys.each_ref().map(String::as_str);
        let members_of = |machine| members(alice, machine);
        let own = [("alice", alice), ("alice", spare)];
        check(&root(&own), &members_of(worker)).unwrap();
        for (keys, machine) in [
            // One key of a person and of a machine.
            (&own[..], alice),
            // A machine's key that is a root key, also of its owner.
            (&[("alice", alice), ("alice", worker)], worker),
            // A person's key as another's root key.
            (&[("bob", alice)], worker),
            // One root key of two people would count twice.
            (&[("alice", spare), ("bob", spare)], worker),
        ] {
            let refused = check(&root(keys), &members_of(machine)).unwrap_err();
            assert!(matches!(refused, Error::Policy(_)), "{refused}");
        }
    }
}
