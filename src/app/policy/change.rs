//! `hangar policy add`, `edit`, `rotate`, `sign`: new versions of the policy.

use crate::app::{Error, Here};
use crate::flow::decide::refuse_agents;
use crate::model::digest::Digest;
use crate::model::ids::Principal;
use crate::model::outcome::{Trust, Verdict};
use crate::model::policy::{
    Acceptance, Machine, MachineRole, Members, Person, Role, Root, RootKey,
};
use crate::seal::Recipient;
use crate::store::Store;
use crate::store::draft::Draft;
use crate::store::policy::Tally;
use crate::store::proposal::{self, Fate};
use crate::trust::{AskPassphrase, PublicKey, Signer};
use schemars::JsonSchema;
use serde::Serialize;

/// What became of a change.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Changed {
    /// Whether it is in force. Else it waits for signatures.
    pub in_force: bool,
    /// The version that it is or would be; the present one where nothing had to change.
    pub version: u64,
    /// Digest of its `members.toml`: names it in `hangar policy sign`.
    pub digest: Digest,
    /// What it still needs.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub needs: Vec<NeedView>,
    /// Whether sealed tests must be encrypted to somebody new (`hangar sealed reseal --all`).
    pub reseal: bool,
}

/// Signatures that a version needs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NeedView {
    /// Of which document, by whose keys.
    pub what: String,
    /// How many different people must sign.
    pub threshold: u32,
    /// Who has.
    pub signed: Vec<Principal>,
    /// Who else could.
    pub able: Vec<Principal>,
}

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

/// Values for `policy edit`; absent ones stay.
#[derive(Debug, Clone, Default)]
pub struct Edition {
    /// `person=role`.
    pub roles: Vec<(String, Role)>,
    /// Different people who must sign a new `root.toml`.
    pub root_threshold: Option<u32>,
    /// Different people who must sign a new `members.toml`.
    pub members_threshold: Option<u32>,
    /// The remote whose refs decide races; empty is this repository.
    pub arbiter: Option<String>,
    /// Acceptance settings as `name=value`.
    pub settings: Vec<(String, String)>,
}

/// Adds people, keys and machines.
pub fn add(here: &Here, add: &Addition, ask: &mut AskPassphrase<'_>) -> Result<Changed, Error> {
    refuse_agents(here.env.keys())?;
    let store = here.store()?;
    let signer = here.signer(&store, ask)?;
    let caller = store
        .policy
        .newest()
        .holder(&signer.public().fingerprint())
        .map(|(actor, _)| actor.person().clone());
    let draft = proposal::next_version(&store, |root, members| {
        apply(add, caller.as_ref(), root, members)
    })?;
    finish(&store, draft, &signer)
}

/// Changes roles, thresholds, the arbiter and acceptance settings.
pub fn edit(here: &Here, edit: &Edition, ask: &mut AskPassphrase<'_>) -> Result<Changed, Error> {
    refuse_agents(here.env.keys())?;
    let store = here.store()?;
    let draft =
        proposal::next_version(&store, |root, members| edit_documents(edit, root, members))?;
    let signer = here.signer(&store, ask)?;
    finish(&store, draft, &signer)
}

/// Signs a version that waits; the only one where none is named.
pub fn sign(
    here: &Here,
    digest: Option<&str>,
    ask: &mut AskPassphrase<'_>,
) -> Result<Changed, Error> {
    refuse_agents(here.env.keys())?;
    let store = here.store()?;
    let fits = |own: &Digest| {
        digest.is_none_or(|named| {
            let hex = named.strip_prefix("sha256:").unwrap_or(named);
            own.hex().starts_with(&hex.to_ascii_lowercase())
        })
    };
    let mut open = store.proposals()?;
    open.retain(|(proposal, _)| fits(&proposal.digest));
    let proposal = match open.as_slice() {
        [(proposal, _)] => proposal.clone(),
        [] => {
            return Err(Error::invalid(
                "no such version of the policy waits for signatures",
            ));
        }
        several => {
            let names: Vec<_> = several.iter().map(|(one, _)| one.digest.short()).collect();
            let names = names.join(", ");
            return Err(Error::invalid(format!(
                "name one of the versions that wait: {names}"
            )));
        }
    };
    let signer = here.signer(&store, ask)?;
    finish(&store, Some(proposal.draft), &signer)
}

fn finish(store: &Store, draft: Option<Draft>, signer: &Signer) -> Result<Changed, Error> {
    let before = store.policy.newest();
    let Some(draft) = draft else {
        return Ok(Changed {
            in_force: true,
            version: before.reference.version,
            digest: before.reference.digest,
            needs: Vec::new(),
            reseal: false,
        });
    };
    let recipients = |members: &Members| -> Vec<String> {
        let people = members.person.iter();
        let graders = members.machine.iter();
        let graders = graders.filter(|one| one.role == MachineRole::Grader);
        people
            .filter(|one| one.role >= Role::Approver)
            .flat_map(|one| one.recipients.clone())
            .chain(graders.map(|one| one.public.clone()))
            .collect()
    };
    let old = recipients(&before.members);
    let members: Members = crate::model::codec::decode(&draft.members)?;
    let reseal = recipients(&members).iter().any(|one| !old.contains(one));
    let version = before.reference.version + 1;
    Ok(match proposal::sign(store, draft, signer)? {
        Fate::InForce(reference) => Changed {
            in_force: true,
            version: reference.version,
            digest: reference.digest,
            needs: Vec::new(),
            reseal,
        },
        Fate::Waits { digest, needs } => Changed {
            in_force: false,
            version,
            digest,
            needs: needs
                .iter()
                .filter(|need| !need.suffices())
                .map(need)
                .collect(),
            reseal,
        },
    })
}

/// A need for people and programs.
pub fn need(tally: &Tally) -> NeedView {
    let left = tally.able.difference(&tally.signed);
    NeedView {
        what: tally.what.to_owned(),
        threshold: tally.threshold.max(1),
        signed: tally.signed.iter().cloned().collect(),
        able: left.cloned().collect(),
    }
}

fn name_of(text: &str) -> Result<Principal, Error> {
    text.parse()
        .map_err(|error| Error::invalid(format!("`{text}` is no name: {error}")))
}

/// A public key as the policy keeps it: kind and base64, no comment.
fn key_text(text: &str) -> Result<String, Error> {
    let mut words = text.split_ascii_whitespace();
    let plain = match (words.next(), words.next()) {
        (Some(kind), Some(base64)) => format!("{kind} {base64}"),
        _ => text.trim().to_owned(),
    };
    let key: Result<PublicKey, _> = plain.parse();
    key.map(|key| key.as_str().to_owned())
        .map_err(|error| Error::invalid(format!("`{text}` is no public key: {error}")))
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
    if is_person && !add.recovery {
        add_person(add, &name, &keys, members)?;
    }
    if add.root || add.recovery {
        if keys.is_empty() {
            return Err(Error::invalid("a root key is named with --key"));
        }
        root.key.extend(keys.iter().map(|public| RootKey {
            principal: name.clone(),
            public: public.clone(),
            recovery: add.recovery,
        }));
    }
    let owner = match (&add.owner, is_person, caller) {
        (Some(owner), _, _) => name_of(owner)?,
        (None, true, _) => name.clone(),
        (None, false, Some(caller)) => caller.clone(),
        (None, false, None) => return Err(Error::invalid("name the owner with --owner")),
    };
    for (role, key) in &add.machines {
        let wanted = if is_person {
            format!("{name}-{}", super::machine_word(*role))
        } else {
            name.to_string()
        };
        let machine = Machine {
            name: free_name(members, &wanted)?,
            role: *role,
            owner: owner.clone(),
            public: key_text(key)?,
        };
        members.machine.push(machine);
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

fn recipient_text(text: &str) -> Result<String, Error> {
    let recipient: Result<Recipient, _> = text.parse();
    recipient
        .map(|recipient| recipient.as_str().to_owned())
        .map_err(|error| Error::invalid(format!("`{text}` is no age recipient: {error}")))
}

fn add_new(all: &mut Vec<String>, more: &[String]) {
    for text in more {
        if !all.contains(text) {
            all.push(text.clone());
        }
    }
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

fn edit_documents(edit: &Edition, root: &mut Root, members: &mut Members) -> Result<(), Error> {
    for (name, role) in &edit.roles {
        let person = members
            .person
            .iter_mut()
            .find(|one| one.name.as_str() == name)
            .ok_or_else(|| Error::invalid(format!("nobody here is called `{name}`")))?;
        person.role = *role;
    }
    if let Some(threshold) = edit.root_threshold {
        root.thresholds.root = threshold;
    }
    if let Some(threshold) = edit.members_threshold {
        root.thresholds.members = threshold;
    }
    if let Some(arbiter) = &edit.arbiter {
        members.arbiter.clone_from(arbiter);
    }
    for (name, value) in &edit.settings {
        set(&mut root.acceptance, name, value)?;
    }
    Ok(())
}

/// Sets one acceptance setting from text.
fn set(settings: &mut Acceptance, name: &str, value: &str) -> Result<(), Error> {
    let wrong = |what: &str| Error::invalid(format!("`{name}` takes {what}, not `{value}`"));
    let number = || value.parse::<u32>().map_err(|_| wrong("a number"));
    let yes = || match value {
        "yes" | "true" => Ok(true),
        "no" | "false" => Ok(false),
        _ => Err(wrong("yes or no")),
    };
    match name {
        "trust" => settings.trust = value.parse::<Trust>().map_err(|_| wrong("a trust level"))?,
        "verdict" => {
            settings.verdict = value
                .parse::<Verdict>()
                .map_err(|_| wrong("a verdict class"))?;
        }
        "max_rounds" => settings.max_rounds = number()?,
        "max_rejections" => settings.max_rejections = number()?,
        "max_writer_turns" => settings.max_writer_turns = number()?,
        "max_grades" => settings.max_grades = number()?,
        "approval_days" => settings.approval_days = number()?,
        "approvers" => settings.approvers = number()?,
        "max_awaiting_approval" => settings.max_awaiting_approval = number()?,
        "adapters" => {
            let names = value.split(',').filter(|name| !name.is_empty());
            settings.adapters = names
                .map(|name| {
                    name.trim()
                        .parse()
                        .map_err(|_| wrong("names of frameworks"))
                })
                .collect::<Result<_, _>>()?;
        }
        "after_code" => settings.after_code = yes()?,
        "swap_exposed" => settings.swap_exposed = yes()?,
        _ => {
            return Err(Error::invalid(format!(
                "there is no acceptance setting `{name}`"
            )));
        }
    }
    Ok(())
}
