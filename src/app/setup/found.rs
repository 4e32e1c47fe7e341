//! Version 1 of the policy of a new repository.

use super::person;
use crate::app::{Error, Here};
use crate::base::random;
use crate::git::Repository;
use crate::model::codec;
use crate::model::digest::Digest;
use crate::model::ids::Principal;
use crate::model::policy::{
    Acceptance, Machine, MachineRole, Members, Person, Role, Root, RootKey, Thresholds,
};
use crate::store::draft::Draft;
use crate::store::layout::Layout;
use crate::trust::{self, Candidate, MachineKey, PublicKey, Signer};
use std::path::Path;

/// Who founds, with what.
#[derive(Debug)]
pub(super) struct Founder<'a> {
    /// Name of the person.
    pub(super) name: Principal,
    /// Their key as it was found.
    pub(super) candidate: &'a Candidate,
    /// The same, ready to sign.
    pub(super) signer: &'a Signer,
    /// A root key for the day when the first is lost.
    pub(super) recovery: Option<PublicKey>,
}

/// What was founded.
#[derive(Debug)]
pub(super) struct Founded {
    /// SHA-256 of `root.toml`: the repository's id.
    pub(super) repo: Digest,
    /// Whether a native age identity was made.
    pub(super) age_identity: bool,
}

/// Makes the machine's keys and writes version 1 of the policy as the first commit of its ref.
pub(super) fn found(
    here: &Here,
    repo: &Repository,
    layout: &Layout,
    founder: &Founder<'_>,
) -> Result<Founded, Error> {
    let root = root(founder);
    let id = codec::digest(&codec::encode(&root)?);
    let dir = here.data_dir(&id)?;
    let recipient = person::recipient(founder.candidate, &dir)?;
    let members = members(founder, &recipient.text, id, &dir)?;
    let draft = Draft::founding(&root, members, founder.signer)?;
    draft.publish(repo, layout, None, founder.name.as_str(), here.clock)?;
    Ok(Founded {
        repo: id,
        age_identity: recipient.made,
    })
}

fn root(founder: &Founder<'_>) -> Root {
    let key = |public: &PublicKey, recovery| RootKey {
        principal: founder.name.clone(),
        public: public.as_str().to_owned(),
        recovery,
    };
    let own = key(&founder.candidate.public, false);
    let recovery = founder.recovery.as_ref().map(|public| key(public, true));
    Root {
        format: codec::FORMAT,
        version: 1,
        nonce: random::hex::<16>(),
        previous: None,
        thresholds: Thresholds {
            root: 1,
            members: 1,
        },
        acceptance: Acceptance::default(),
        key: std::iter::once(own).chain(recovery).collect(),
    }
}

fn members(
    founder: &Founder<'_>,
    recipient: &str,
    root: Digest,
    dir: &Path,
) -> Result<Members, Error> {
    let machine = |role: trust::MachineRole| -> Result<Machine, Error> {
        let key = MachineKey::load_or_create(dir, role)?;
        let policy_role = match role {
            trust::MachineRole::Worker => MachineRole::Worker,
            trust::MachineRole::Grader => MachineRole::Grader,
        };
        Ok(Machine {
            name: machine_name(&founder.name, role)?,
            role: policy_role,
            owner: founder.name.clone(),
            public: key.public().as_str().to_owned(),
        })
    };
    Ok(Members {
        format: codec::FORMAT,
        version: 1,
        previous: None,
        root,
        arbiter: String::new(),
        archive_days: None,
        person: vec![Person {
            name: founder.name.clone(),
            role: Role::Admin,
            keys: vec![founder.candidate.public.as_str().to_owned()],
            recipients: vec![recipient.to_owned()],
        }],
        machine: vec![
            machine(trust::MachineRole::Worker)?,
            machine(trust::MachineRole::Grader)?,
        ],
        reduced: Vec::new(),
        rival: Vec::new(),
    })
}

/// `alice-worker`, `alice-grader`.
fn machine_name(owner: &Principal, role: trust::MachineRole) -> Result<Principal, Error> {
    format!("{owner}-{}", role.file_name())
        .parse()
        .map_err(|_| Error::invalid(format!("the name `{owner}` is too long")))
}
