//! The policy: who may do what, and what suffices.
//!
//! Format: `docs/format.md`, "Policy". A version is two documents; `members.toml` names the
//! `root.toml` it stands under, so its digest is the digest of the version.

use crate::model::digest::Digest;
use crate::model::ids::{Fingerprint, Principal};
use crate::model::outcome::{Trust, Verdict};
use crate::model::plan::Framework;
use crate::model::reduction::{Reduction, Why};
use crate::model::rival::Rival;
use crate::model::signer::PolicyRef;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `root.toml`: root keys and what no file of the repository may change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Root {
    /// Document format, 1.
    pub format: i64,
    /// Version of this document, from 1.
    pub version: u64,
    /// 128 random bits in hex; makes the repository id unique.
    pub nonce: String,
    /// Digest of the `root.toml` before; absent in version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Digest>,
    /// How many different people must sign.
    pub thresholds: Thresholds,
    /// Acceptance settings.
    pub acceptance: Acceptance,
    /// Root and recovery keys.
    pub key: Vec<RootKey>,
}

/// How many different people must sign a new version of each document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Thresholds {
    /// For `root.toml`, of the people with root keys.
    pub root: u32,
    /// For `members.toml`, of the admins.
    pub members: u32,
}

/// One root key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RootKey {
    /// Whose.
    pub principal: Principal,
    /// OpenSSH public key text.
    pub public: String,
    /// Kept away for the day the others are lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recovery: bool,
}

/// Acceptance settings. Every task of the repository stands under them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Acceptance {
    /// Least trust of an accepted grade.
    pub trust: Trust,
    /// Least verdict of an accepted grade.
    pub verdict: Verdict,
    /// Follow-up rounds of an implementer.
    pub max_rounds: u32,
    /// Rejected versions after which a task is rejected.
    pub max_rejections: u32,
    /// Turns of a writer for one version, the first included.
    pub max_writer_turns: u32,
    /// Grades of one version whose outcome reached an implementer.
    pub max_grades: u32,
    /// Days for which an approval can be used.
    pub approval_days: u32,
    /// People who must approve a manifest.
    pub approvers: u32,
    /// Tasks that may wait for an approval at one time.
    pub max_awaiting_approval: u32,
    /// Adapters that may grade; empty is all.
    pub adapters: Vec<Framework>,
    /// Whether tests sealed after some implementation was seen may be used.
    pub after_code: bool,
    /// Whether a grade may be made while the host has swap on.
    pub swap_exposed: bool,
}

impl Default for Acceptance {
    fn default() -> Self {
        Self {
            trust: Trust::Sealed,
            verdict: Verdict::Exit,
            max_rounds: 2,
            max_rejections: 3,
            max_writer_turns: 3,
            max_grades: 100,
            approval_days: 30,
            approvers: 1,
            max_awaiting_approval: 50,
            adapters: Vec::new(),
            after_code: true,
            swap_exposed: true,
        }
    }
}

/// `members.toml`: people and machines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Members {
    /// Document format, 1.
    pub format: i64,
    /// Version of the policy, from 1.
    pub version: u64,
    /// Digest of the `members.toml` before; absent in version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Digest>,
    /// Digest of the `root.toml` that this version stands under.
    pub root: Digest,
    /// The remote whose refs decide races; empty is this repository.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arbiter: String,
    /// Days after which an ended task goes to the archive; 0 is never, absent is 30.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive_days: Option<u32>,
    /// People.
    pub person: Vec<Person>,
    /// Workers, graders and agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machine: Vec<Machine>,
    /// Keys that lost rights.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reduced: Vec<Reduction>,
    /// Versions that rivalled one of this chain and do not stand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rival: Vec<Rival>,
}

/// What a person may do. Each role includes those below it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Creates and runs tasks.
    Member,
    /// Decides about any task.
    Approver,
    /// Changes `members.toml`.
    Admin,
}

/// A person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Person {
    /// Name, unique among people and machines.
    pub name: Principal,
    /// Role.
    pub role: Role,
    /// OpenSSH public key texts.
    pub keys: Vec<String>,
    /// age recipients for what this person may read: native ones, or one of the keys above.
    pub recipients: Vec<String>,
}

/// What a machine key is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MachineRole {
    /// Signs claims, stages and runs.
    Worker,
    /// Signs base checks, manifests and grades, and can open sealed tests.
    Grader,
    /// An agent program's own key.
    Agent,
}

/// A machine key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Name, unique among people and machines.
    pub name: Principal,
    /// What it is for.
    pub role: MachineRole,
    /// The person who answers for it.
    pub owner: Principal,
    /// OpenSSH public key text; a grader's ssh-ed25519 key is its age recipient too.
    pub public: String,
}

/// Who holds a key under one version of the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actor {
    /// A person.
    Person {
        /// Name.
        name: Principal,
        /// Role.
        role: Role,
    },
    /// A machine.
    Machine {
        /// Name.
        name: Principal,
        /// What it is for.
        role: MachineRole,
        /// Who answers for it.
        owner: Principal,
    },
}

impl Actor {
    /// The name in documents.
    pub const fn name(&self) -> &Principal {
        match self {
            Self::Person { name, .. } | Self::Machine { name, .. } => name,
        }
    }

    /// The person behind it: itself, or a machine's owner.
    pub const fn person(&self) -> &Principal {
        match self {
            Self::Person { name, .. } => name,
            Self::Machine { owner, .. } => owner,
        }
    }
}

/// One verified version: both documents and the reference that other documents name it by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Version and digest.
    pub reference: PolicyRef,
    /// Digest of `root.toml`.
    pub root_digest: Digest,
    /// `root.toml`.
    pub root: Root,
    /// `members.toml`.
    pub members: Members,
    keys: Vec<(Fingerprint, String, Actor)>,
}

impl Policy {
    /// Joins the two documents. `fingerprints` are those of every key text of `members`, in the
    /// order of [`Members::key_texts`].
    pub fn new(
        reference: PolicyRef,
        root: Root,
        root_digest: Digest,
        members: Members,
        fingerprints: &[Fingerprint],
    ) -> Self {
        let keys = members
            .key_texts()
            .into_iter()
            .zip(fingerprints)
            .map(|((text, actor), fingerprint)| (fingerprint.clone(), text, actor))
            .collect();
        Self {
            reference,
            root_digest,
            root,
            members,
            keys,
        }
    }

    /// Who holds the key with this fingerprint, and its OpenSSH text.
    pub fn holder(&self, key: &Fingerprint) -> Option<(&Actor, &str)> {
        self.keys
            .iter()
            .find(|(fingerprint, ..)| fingerprint == key)
            .map(|(_, text, actor)| (actor, text.as_str()))
    }

    /// The OpenSSH text of every key.
    pub fn key_texts(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(|(_, text, _)| text.as_str())
    }

    /// Every key with its holder.
    pub fn holders(&self) -> impl Iterator<Item = (&Fingerprint, &Actor)> {
        self.keys.iter().map(|(key, _, actor)| (key, actor))
    }

    /// The person called `name`.
    pub fn person(&self, name: &Principal) -> Option<&Person> {
        self.members
            .person
            .iter()
            .find(|person| person.name == *name)
    }

    /// age recipients of a task's sealed tests: every grader, every approver or admin, and the
    /// requester. Sorted, without repeats.
    pub fn recipients(&self, requester: &Principal) -> Vec<String> {
        let people = self.members.person.iter();
        let deciders =
            people.filter(|person| person.role >= Role::Approver || person.name == *requester);
        let graders = self
            .members
            .machine
            .iter()
            .filter(|machine| machine.role == MachineRole::Grader);
        let mut all: Vec<String> = deciders
            .flat_map(|person| person.recipients.iter().cloned())
            .chain(graders.map(|grader| grader.public.clone()))
            .collect();
        all.sort();
        all.dedup();
        all
    }
}

impl Members {
    /// The entry that declares a key compromised.
    pub fn compromised(&self, key: &Fingerprint) -> Option<&Reduction> {
        let mut entries = self.reduced.iter();
        entries.find(|entry| entry.key == *key && entry.how == Why::Compromised)
    }

    /// The entry about a version that was set aside.
    pub fn rival(&self, version: Digest) -> Option<&Rival> {
        self.rival.iter().find(|entry| entry.digest == version)
    }

    /// The lists of documents that count all the same: whose they are, and their digests.
    pub fn lists(&self) -> impl Iterator<Item = (String, Digest)> + '_ {
        let reduced = self.reduced.iter();
        let reduced = reduced.map(|entry| (entry.key.to_string(), entry.accepted));
        let rival = self.rival.iter();
        reduced.chain(rival.map(|entry| (entry.digest.short(), entry.accepted)))
    }

    /// Every key text with its holder, people first, in document order.
    pub fn key_texts(&self) -> Vec<(String, Actor)> {
        let people = self.person.iter().flat_map(|person| {
            let actor = Actor::Person {
                name: person.name.clone(),
                role: person.role,
            };
            person
                .keys
                .iter()
                .map(move |key| (key.clone(), actor.clone()))
        });
        let machines = self.machine.iter().map(|machine| {
            let actor = Actor::Machine {
                name: machine.name.clone(),
                role: machine.role,
                owner: machine.owner.clone(),
            };
            (machine.public.clone(), actor)
        });
        people.chain(machines).collect()
    }
}
