//! The policy: read here, changed in the modules below.

pub mod add;
pub mod change;
mod differences;
pub mod edit;
mod overtaken;
mod rivals;
pub mod take;
mod texts;

use super::{Error, Here};
use crate::model::digest::Digest;
use crate::model::ids::{Fingerprint, Principal};
use crate::model::outcome::{Trust, Verdict};
use crate::model::plan::Framework;
use crate::model::policy::{MachineRole, Policy, Role};
use crate::model::reduction::Why;
use crate::store::archive::due::DEFAULT_DAYS;
use crate::store::policy::{Tally, followed, policy_of};
use crate::store::proposal::Proposal;
use crate::store::{Store, reduce};
use crate::trust::PublicKey;
use change::{LeftOutView, NeedView};
use differences::{Known, changes};
pub use overtaken::OvertakenView;
pub(super) use overtaken::overtaken;
pub(super) use rivals::{Choice, choices, rivals};
pub use rivals::{LaterView, RivalView, RivalsView, SetAsideView};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;

/// A version of the policy for people and programs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PolicyView {
    /// The repository's id.
    pub repo: Digest,
    /// Version in force.
    pub version: u64,
    /// Its digest.
    pub digest: Digest,
    /// The remote that decides races; absent when this repository does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arbiter: Option<String>,
    /// Days after which an ended task goes to the archive; 0 is never.
    pub archive_days: u32,
    /// Root keys.
    pub root: Vec<RootKeyView>,
    /// How many people must sign a new `root.toml`.
    pub root_threshold: u32,
    /// How many admins must sign a new `members.toml`.
    pub members_threshold: u32,
    /// People.
    pub people: Vec<PersonView>,
    /// Workers, graders and agents.
    pub machines: Vec<MachineView>,
    /// Acceptance settings.
    pub acceptance: AcceptanceView,
    /// Keys that lost rights.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub reduced: Vec<ReducedView>,
    /// Versions that wait for signatures.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub proposals: Vec<ProposalView>,
    /// Versions that waited for signatures when the one in force took their number.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub overtaken: Vec<OvertakenView>,
    /// Versions of which it is undecided which stands. Nothing is decided while there are any.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub rivals: Vec<RivalsView>,
    /// Versions that were set aside.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub set_aside: Vec<SetAsideView>,
}

/// A key that lost rights.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReducedView {
    /// Fingerprint.
    pub key: Fingerprint,
    /// Who held it.
    pub principal: Principal,
    /// Why.
    pub how: Why,
    /// The version that took the rights.
    pub since: u64,
    /// How many documents of it that name an earlier version count.
    pub documents: usize,
}

/// A version that waits for signatures.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ProposalView {
    /// Digest of its `members.toml`.
    pub digest: Digest,
    /// What it still needs.
    pub needs: Vec<NeedView>,
    /// What it adds and removes against the version in force, one phrase each.
    pub changes: Vec<String>,
    /// Documents of keys that lose rights in it which came after it was made: they would not count.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub left_out: Vec<LeftOutView>,
}

/// A root key.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RootKeyView {
    /// Whose.
    pub principal: Principal,
    /// Fingerprint.
    pub key: Fingerprint,
    /// Kept away for emergencies.
    pub recovery: bool,
}

/// A person.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PersonView {
    /// Name.
    pub name: Principal,
    /// Role.
    pub role: Role,
    /// Fingerprints.
    pub keys: Vec<Fingerprint>,
    /// age recipients.
    pub recipients: Vec<String>,
}

/// A machine key.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MachineView {
    /// Name.
    pub name: Principal,
    /// What it is for.
    pub role: MachineRole,
    /// Who answers for it.
    pub owner: Principal,
    /// Fingerprint.
    pub key: Fingerprint,
}

/// What every task of the repository stands under.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AcceptanceView {
    /// Least trust of an accepted grade.
    pub trust: Trust,
    /// Least verdict of an accepted grade.
    pub verdict: Verdict,
    /// Follow-up rounds of an implementer.
    pub max_rounds: u32,
    /// Rejected versions after which a task is rejected.
    pub max_rejections: u32,
    /// Turns of a writer for one version.
    pub max_writer_turns: u32,
    /// Grades of one version that an implementer may learn of.
    pub max_grades: u32,
    /// Days for which an approval can be used.
    pub approval_days: u32,
    /// People who must approve.
    pub approvers: u32,
    /// Tasks that may wait for approval at one time.
    pub max_awaiting_approval: u32,
    /// Adapters that may grade; empty is all.
    pub adapters: Vec<Framework>,
    /// Whether tests sealed after some implementation may be used.
    pub after_code: bool,
    /// Whether a grade may be made with swap on.
    pub swap_exposed: bool,
}

/// The version in force; while rivals are undecided, the last one before them, in every clone.
pub fn show(here: &Here) -> Result<PolicyView, Error> {
    let store = here.store()?;
    let newest = store.policy.newest();
    let mut view = view(&store.policy.repo(), newest)?;
    let entries = newest.members.reduced.iter();
    view.reduced.extend(entries.map(|entry| ReducedView {
        key: entry.key.clone(),
        principal: entry.principal.clone(),
        how: entry.how,
        since: entry.since,
        documents: store.policy.list(entry.accepted).map_or(0, BTreeSet::len),
    }));
    for (proposal, needs) in store.proposals()? {
        view.proposals
            .push(proposal_view(&store, &proposal, &needs)?);
    }
    // Of those that an earlier version overtook tells the log.
    let own = |one: &OvertakenView| one.by == view.digest;
    view.overtaken = overtaken(&store)?.into_iter().filter(own).collect();
    view.rivals = rivals(&store.policy);
    view.set_aside = rivals::set_aside(&store.policy, newest);
    Ok(view)
}

pub(super) fn proposal_view(
    store: &Store,
    proposal: &Proposal,
    needs: &[Tally],
) -> Result<ProposalView, Error> {
    let before = followed(&store.policy, &proposal.draft)?;
    Ok(ProposalView {
        digest: proposal.digest,
        needs: needs
            .iter()
            .filter(|need| !need.suffices())
            .map(change::need)
            .collect(),
        changes: proposed(store, before, proposal)?,
        left_out: change::left_out(&reduce::left_out(store, &proposal.draft)?),
    })
}

/// What a proposal changes against the version that it follows.
fn proposed(store: &Store, before: &Policy, proposal: &Proposal) -> Result<Vec<String>, Error> {
    let after = policy_of(&proposal.draft)?;
    let known = Known::with(&store.policy, &proposal.draft);
    Ok(changes(before, &after, &known))
}

fn view(repo: &Digest, policy: &Policy) -> Result<PolicyView, Error> {
    let members = &policy.members;
    let root = policy.root.key.iter().map(|key| {
        Ok(RootKeyView {
            principal: key.principal.clone(),
            key: fingerprint(&key.public)?,
            recovery: key.recovery,
        })
    });
    let people = members.person.iter().map(|person| {
        Ok(PersonView {
            name: person.name.clone(),
            role: person.role,
            keys: person
                .keys
                .iter()
                .map(|key| fingerprint(key))
                .collect::<Result<_, Error>>()?,
            recipients: person.recipients.clone(),
        })
    });
    let machines = members.machine.iter().map(|machine| {
        Ok(MachineView {
            name: machine.name.clone(),
            role: machine.role,
            owner: machine.owner.clone(),
            key: fingerprint(&machine.public)?,
        })
    });
    Ok(PolicyView {
        repo: *repo,
        version: policy.reference.version,
        digest: policy.reference.digest,
        arbiter: Some(members.arbiter.clone()).filter(|arbiter| !arbiter.is_empty()),
        archive_days: members.archive_days.unwrap_or(DEFAULT_DAYS),
        root: root.collect::<Result<_, Error>>()?,
        root_threshold: policy.root.thresholds.root,
        members_threshold: policy.root.thresholds.members,
        people: people.collect::<Result<_, Error>>()?,
        machines: machines.collect::<Result<_, Error>>()?,
        acceptance: acceptance(policy),
        reduced: Vec::new(),
        proposals: Vec::new(),
        overtaken: Vec::new(),
        rivals: Vec::new(),
        set_aside: Vec::new(),
    })
}

fn acceptance(policy: &Policy) -> AcceptanceView {
    let settings = &policy.root.acceptance;
    AcceptanceView {
        trust: settings.trust,
        verdict: settings.verdict,
        max_rounds: settings.max_rounds,
        max_rejections: settings.max_rejections,
        max_writer_turns: settings.max_writer_turns,
        max_grades: settings.max_grades,
        approval_days: settings.approval_days,
        approvers: settings.approvers,
        max_awaiting_approval: settings.max_awaiting_approval,
        adapters: settings.adapters.clone(),
        after_code: settings.after_code,
        swap_exposed: settings.swap_exposed,
    }
}

fn fingerprint(text: &str) -> Result<Fingerprint, Error> {
    let key: Result<PublicKey, _> = text.parse();
    key.map(|key| key.fingerprint())
        .map_err(|error| Error::invalid(error.to_string()))
}

/// The chain of versions.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PolicyLog {
    /// The repository's id.
    pub repo: Digest,
    /// Versions, newest first.
    pub versions: Vec<PolicyVersion>,
    /// Versions of which it is undecided which stands.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub rivals: Vec<RivalsView>,
    /// Versions that were set aside.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub set_aside: Vec<SetAsideView>,
}

/// One version.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PolicyVersion {
    /// Number.
    pub version: u64,
    /// SHA-256 of its `members.toml`.
    pub digest: Digest,
    /// SHA-256 of the `root.toml` it stands under.
    pub root: Digest,
    /// What it adds and removes against the version before, one phrase each.
    pub changes: Vec<String>,
    /// Versions that waited for signatures when this one took their number.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub overtaken: Vec<OvertakenView>,
}

/// Every version with what it changed, oldest first, up to undecided rivals.
pub(super) fn versions(store: &Store) -> Vec<PolicyVersion> {
    let mut versions = Vec::new();
    let mut before: Option<&Policy> = None;
    for policy in store.policy.versions() {
        versions.push(PolicyVersion {
            version: policy.reference.version,
            digest: policy.reference.digest,
            root: policy.root_digest,
            changes: before.map_or_else(
                || vec!["founded".to_owned()],
                |before| changes(before, policy, &Known::of(&store.policy)),
            ),
            overtaken: Vec::new(),
        });
        before = Some(policy);
    }
    versions
}

/// Every version with what it changed and what it overtook.
pub fn log(here: &Here) -> Result<PolicyLog, Error> {
    let store = here.store()?;
    let mut versions = versions(&store);
    for one in overtaken(&store)? {
        let mut all = versions.iter_mut();
        if let Some(version) = all.find(|version| version.digest == one.by) {
            version.overtaken.push(one);
        }
    }
    versions.reverse();
    let newest = store.policy.newest();
    Ok(PolicyLog {
        repo: store.policy.repo(),
        versions,
        rivals: rivals(&store.policy),
        set_aside: rivals::set_aside(&store.policy, newest),
    })
}

/// The word for a role.
pub const fn role_word(role: Role) -> &'static str {
    match role {
        Role::Member => "member",
        Role::Approver => "approver",
        Role::Admin => "admin",
    }
}

/// The word for a machine's role.
pub const fn machine_word(role: MachineRole) -> &'static str {
    match role {
        MachineRole::Worker => "worker",
        MachineRole::Grader => "grader",
        MachineRole::Agent => "agent",
    }
}
