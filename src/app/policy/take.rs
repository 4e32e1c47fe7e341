//! `hangar policy remove`, `rotate`, `adopt`: keys that lose rights, and documents that count all the
//! same.

use super::change::{Changed, finish};
use super::texts::{add_new, key_text, name_of, recipient_text};
use crate::app::{Error, Here, sync};
use crate::flow::decide::refuse_agents;
use crate::model::digest::Digest;
use crate::model::policy::{Members, Root};
use crate::model::reduction::Why;
use crate::store::policy::OWN_KEYS;
use crate::store::proposal;
use crate::trust::{AskPassphrase, PublicKey};
use std::collections::BTreeSet;

/// What `policy remove` takes away.
#[derive(Debug, Clone)]
pub struct Removal {
    /// A person with their machines, or a machine.
    pub name: String,
    /// Only this key of the person.
    pub key: Option<String>,
    /// Why.
    pub how: Why,
}

/// Takes a person, one of their keys, or a machine out of the policy.
pub fn remove(
    here: &Here,
    removal: &Removal,
    ask: &mut AskPassphrase<'_>,
) -> Result<Changed, Error> {
    refuse_agents(here.env.keys())?;
    let store = sync::fresh(here)?;
    let draft = proposal::next_version(&store, removal.how, |root, members| {
        take_out(removal, root, members)
    })?;
    let signer = here.signer(&store, ask)?;
    finish(here, &store, draft, &signer)
}

fn take_out(removal: &Removal, root: &mut Root, members: &mut Members) -> Result<(), Error> {
    let name = name_of(&removal.name)?;
    let unknown = || Error::invalid(format!("nobody here is called `{name}`"));
    if let Some(key) = &removal.key {
        let key = key_text(key)?;
        let person = members
            .person
            .iter_mut()
            .find(|one| one.name == name)
            .ok_or_else(unknown)?;
        let had = person.keys.len();
        person.keys.retain(|one| *one != key);
        person.recipients.retain(|one| *one != key);
        let roots = root.key.len();
        root.key
            .retain(|one| one.public != key || one.principal != name);
        if person.keys.len() == had && root.key.len() == roots {
            return Err(Error::invalid(format!("this is no key of {name}")));
        }
        if person.keys.is_empty() {
            return Err(Error::invalid(format!(
                "{name} would have no key left: remove {name} as a whole, or add another key first"
            )));
        }
        return Ok(());
    }
    let people = members.person.len();
    members.person.retain(|one| one.name != name);
    let is_person = members.person.len() < people;
    let machines = members.machine.len();
    members
        .machine
        .retain(|one| one.name != name && !(is_person && one.owner == name));
    if !is_person && members.machine.len() == machines {
        return Err(unknown());
    }
    root.key.retain(|one| one.principal != name);
    Ok(())
}

/// Puts another key of the caller in place of the one that they sign with.
pub fn rotate(
    here: &Here,
    to: &str,
    recipient: Option<&str>,
    how: Why,
    ask: &mut AskPassphrase<'_>,
) -> Result<Changed, Error> {
    refuse_agents(here.env.keys())?;
    let store = sync::fresh(here)?;
    let signer = here.signer(&store, ask)?;
    let old = signer.public().as_str().to_owned();
    let new = key_text(to)?;
    let recipient = match recipient {
        Some(text) => Some(recipient_text(text)?),
        None => recipient_text(&new).ok(),
    };
    let draft = proposal::next_version(&store, how, |root, members| {
        swap(&old, &new, recipient.as_deref(), root, members)
    })?;
    let Some(draft) = draft else {
        return finish(here, &store, None, &signer);
    };
    // The new key's own signature counts too, where root.toml changes.
    let mut keys = here.keys(Some(&store.repo))?.candidates.into_iter();
    let mut draft = draft;
    let candidate = keys.find(|one| one.public.as_str() == new);
    if let Some(candidate) = &candidate {
        let signer = candidate.open(ask)?;
        draft.sign_root(&signer)?;
    }
    let mut changed = finish(here, &store, Some(draft), &signer)?;
    let waits = changed.needs.iter().any(|need| need.what == OWN_KEYS);
    if candidate.is_none() && waits {
        changed.new_key = new.parse().ok().map(|key: PublicKey| key.fingerprint());
    }
    Ok(changed)
}

fn swap(
    old: &str,
    new: &str,
    recipient: Option<&str>,
    root: &mut Root,
    members: &mut Members,
) -> Result<(), Error> {
    let person = members
        .person
        .iter_mut()
        .find(|one| one.keys.iter().any(|key| key == old))
        .ok_or_else(|| Error::invalid("the key that you sign with is nobody's here"))?;
    person.keys.retain(|key| key != old);
    add_new(&mut person.keys, &[new.to_owned()]);
    person.recipients.retain(|one| one != old);
    add_new(
        &mut person.recipients,
        &recipient.map(str::to_owned).into_iter().collect::<Vec<_>>(),
    );
    if person.recipients.is_empty() {
        return Err(Error::invalid(
            "you could decrypt nothing with this kind of key: give a --recipient (age1…)",
        ));
    }
    for key in root.key.iter_mut().filter(|key| key.public == old) {
        new.clone_into(&mut key.public);
    }
    Ok(())
}

/// Lets documents of keys that lost rights count again.
pub fn adopt(
    here: &Here,
    documents: &[String],
    ask: &mut AskPassphrase<'_>,
) -> Result<Changed, Error> {
    refuse_agents(here.env.keys())?;
    let store = sync::fresh(here)?;
    let digest = |text: &String| -> Result<Digest, Error> {
        text.parse()
            .map_err(|_| Error::invalid(format!("`{text}` is no digest (sha256:…)")))
    };
    let documents: BTreeSet<Digest> = documents.iter().map(digest).collect::<Result<_, _>>()?;
    let draft = proposal::adopting(&store, &documents)?;
    let signer = here.signer(&store, ask)?;
    finish(here, &store, draft, &signer)
}
