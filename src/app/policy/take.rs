//! `hangar policy remove`, `rotate`, `adopt`, `resolve`: keys that lose rights, versions that do not
//! stand, and documents that count all the same.

use super::change::{Changed, finish};
use super::texts::{add_new, key_text, name_of, recipient_text};
use crate::app::{Error, Here, sync};
use crate::flow::{self, decide::refuse_agents};
use crate::model::digest::Digest;
use crate::model::ids::Fingerprint;
use crate::model::policy::{Members, Root, RootKey};
use crate::model::reduction::{Reduction, Why};
use crate::store::policy::{OWN_KEYS, PolicyHistory};
use crate::store::proposal;
use crate::store::resolve::resolving;
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
    let condemned = condemned(removal, &store.policy)?;
    let draft = proposal::next_version(&store, removal.how, |root, members| {
        if condemned.is_empty() {
            return take_out(removal, root, members);
        }
        for entry in &mut members.reduced {
            if condemned.contains(&entry.key) {
                entry.how = Why::Compromised;
            }
        }
        Ok(())
    })?;
    let signer = here.signer(&store, ask)?;
    finish(here, &store, draft, &signer)
}

/// Keys that are out already and are found to be compromised only now.
fn condemned(removal: &Removal, policy: &PolicyHistory) -> Result<BTreeSet<Fingerprint>, Error> {
    if removal.how != Why::Compromised {
        return Ok(BTreeSet::new());
    }
    let name = name_of(&removal.name)?;
    let newest = policy.newest();
    let only = removal.key.as_deref().map(key_text).transpose()?;
    let only = only.and_then(|text| text.parse().ok());
    let only = only.map(|key: PublicKey| key.fingerprint());
    let machines = newest.members.machine.iter();
    let is_here =
        newest.person(&name).is_some() || machines.map(|one| &one.name).any(|one| *one == name);
    if only.is_none() && is_here {
        return Ok(BTreeSet::new());
    }
    // A person's machines went with the person.
    let owned = |entry: &Reduction| {
        let mut versions = policy.versions();
        let before = versions.find(|one| one.reference.version + 1 == entry.since);
        let mut machines = before.into_iter().flat_map(|one| &one.members.machine);
        machines.any(|one| one.name == entry.principal && one.owner == name)
    };
    let entries = newest.members.reduced.iter();
    let fitting = entries.filter(|entry| match &only {
        Some(key) => entry.key == *key && entry.principal == name,
        None => entry.principal == name || owned(entry),
    });
    let gone = fitting.filter(|entry| newest.holder(&entry.key).is_none());
    Ok(gone.map(|entry| entry.key.clone()).collect())
}

fn take_out(removal: &Removal, root: &mut Root, members: &mut Members) -> Result<(), Error> {
    let name = name_of(&removal.name)?;
    let unknown = || {
        let mut out = members.reduced.iter();
        Error::invalid(match out.find(|entry| entry.principal == name) {
            Some(entry) => format!("{name} was taken out already, in version {}", entry.since),
            None => format!("nobody here is called `{name}`"),
        })
    };
    let unknown = unknown();
    if let Some(key) = &removal.key {
        let key = key_text(key)?;
        let person = members
            .person
            .iter_mut()
            .find(|one| one.name == name)
            .ok_or(unknown)?;
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
        return Err(unknown);
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
    let mut next = draft;
    let candidate = keys.find(|one| one.public.as_str() == new);
    if let Some(candidate) = &candidate {
        let signer = candidate.open(ask)?;
        next.draft.sign_root(&signer)?;
    }
    let mut changed = finish(here, &store, Some(next), &signer)?;
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
        .ok_or_else(|| no_working_key(old, new, root))?;
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
    let name = person.name.clone();
    if root.key.iter().any(|key| key.public == old) {
        // One that was kept for emergencies takes the place of the old one, and stands once.
        root.key
            .retain(|key| key.public != new || key.principal != name);
    }
    for key in root.key.iter_mut().filter(|key| key.public == old) {
        new.clone_into(&mut key.public);
    }
    Ok(())
}

/// Why nothing takes the place of this key. One that was kept for emergencies is somebody's, and no key to work
/// with: what is lost there is another one.
fn no_working_key(old: &str, new: &str, root: &Root) -> Error {
    let mut kept = root.key.iter();
    let Some(RootKey { principal, .. }) = kept.find(|key| key.public == old) else {
        return Error::invalid("the key that you sign with is nobody's here");
    };
    let what = format!(
        "the key that you sign with is kept by {principal} for emergencies, and is no key to work with that another could take the place of"
    );
    let next = format!(
        "`hangar policy add {principal} --root --key '{new}'` makes the other one a key to work with; then sign with that one (`git config user.signingKey FILE`), and `hangar policy remove {principal} --key KEY --retired` (or `--compromised`) takes the one out that is lost (`hangar policy show` names it)"
    );
    flow::Error::refused(what, next).into()
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
    finish(here, &store, draft.map(Into::into), &signer)
}

/// Says which of rival versions stands: the one whose digest begins so. The others are set aside.
pub fn resolve(here: &Here, digest: &str, ask: &mut AskPassphrase<'_>) -> Result<Changed, Error> {
    refuse_agents(here.env.keys())?;
    let store = sync::fresh(here)?;
    let draft = resolving(&store, digest)?;
    let signer = here.signer(&store, ask)?;
    finish(here, &store, Some(draft.into()), &signer)
}
