//! What became of a new version of the policy: in force, or waiting for signatures.

use super::ProposalView;
use crate::app::{Error, Here, news, sync};
use crate::flow::{self, decide::refuse_agents};
use crate::model::codec;
use crate::model::digest::Digest;
use crate::model::ids::{Fingerprint, Principal, TaskId};
use crate::model::policy::{MachineRole, Members, Role};
use crate::store::Store;
use crate::store::policy::Tally;
use crate::store::proposal::{self, Fate, Next, Proposal};
use crate::store::reduce::{self, LeftOut};
use crate::trust::{AskPassphrase, Signer};
use schemars::JsonSchema;
use serde::Serialize;

/// What became of a change.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Changed {
    /// Whether it is in force. Else it waits for signatures.
    pub in_force: bool,
    /// Whether nothing had to change.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub unchanged: bool,
    /// The version that it is or would be; the present one where nothing had to change.
    pub version: u64,
    /// Digest of its `members.toml`: names it in `hangar policy sign`.
    pub digest: Digest,
    /// What it still needs.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub needs: Vec<NeedView>,
    /// The caller's new key, where it must sign the version too and was not at hand.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub new_key: Option<Fingerprint>,
    /// Whether sealed tests must be encrypted to somebody new (`hangar sealed reseal --all`).
    pub reseal: bool,
    /// Documents of keys that lose rights which came after the version was made: its lists leave them
    /// out, so they do not count until they are adopted.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub left_out: Vec<LeftOutView>,
    /// Tasks that could not be read: what keys that lose rights signed there does not count.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unread: Vec<TaskId>,
}

/// Documents of one signer that a version leaves out.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LeftOutView {
    /// Who signed them.
    pub principal: Principal,
    /// Their digests.
    pub documents: Vec<Digest>,
}

pub(super) fn left_out(left: &LeftOut) -> Vec<LeftOutView> {
    let each = left.documents.iter();
    each.map(|(principal, documents)| LeftOutView {
        principal: principal.clone(),
        documents: documents.iter().copied().collect(),
    })
    .collect()
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

/// The version that `digest` names; the only one that waits where none is named.
pub fn waiting(here: &Here, digest: Option<&str>) -> Result<ProposalView, Error> {
    refuse_agents(here.env.keys())?;
    let store = sync::fresh(here)?;
    let (proposal, needs) = find(&store, digest)?;
    super::proposal_view(&store, &proposal, &needs)
}

/// Signs exactly this version.
pub fn sign(here: &Here, digest: Digest, ask: &mut AskPassphrase<'_>) -> Result<Changed, Error> {
    refuse_agents(here.env.keys())?;
    let store = here.store()?;
    let (proposal, _) = find(&store, Some(&digest.to_string()))?;
    let signer = here.signer(&store, ask)?;
    finish(here, &store, Some(proposal.draft.into()), &signer)
}

fn find(store: &Store, digest: Option<&str>) -> Result<(Proposal, Vec<Tally>), Error> {
    let fits = |own: &Digest| digest.is_none_or(|named| own.begins_with(named));
    let mut open = store.proposals()?;
    if let Some(named) = digest
        && !open.iter().any(|(proposal, _)| fits(&proposal.digest))
        && let Some(past) = store.proposals_named(named)?.first()
    {
        return Err(not_open(store, past)?);
    }
    if open.is_empty() {
        return Err(Error::invalid(
            "no version of the policy waits for signatures",
        ));
    }
    open.retain(|(proposal, _)| fits(&proposal.digest));
    match open.as_slice() {
        [found] => Ok(found.clone()),
        [] => {
            let named = digest.unwrap_or_default();
            Err(Error::invalid(format!(
                "no version `{named}` of the policy waits for signatures; `hangar policy show` lists those that do"
            )))
        }
        several => {
            let names: Vec<_> = several.iter().map(|(one, _)| one.digest.short()).collect();
            let names = names.join(", ");
            Err(Error::invalid(format!(
                "name one of the versions that wait: {names}"
            )))
        }
    }
}

/// Why a proposal that is here takes no more signatures, and what to do.
fn not_open(store: &Store, past: &Proposal) -> Result<Error, Error> {
    let short = past.digest.short();
    let version = codec::decode::<Members>(&past.draft.members)?.version;
    let in_force = store.policy.newest().reference.version;
    let mut chain = store.policy.versions();
    let (what, next) = if chain.any(|one| one.reference.digest == past.digest) {
        let what = format!("{short} is version {version} of the policy already");
        (what, "it needs no more signatures; see `hangar policy log`")
    } else if version <= in_force {
        let what = format!(
            "{short} was overtaken: it would be version {version}, and another version {version} was put in force (version {in_force} is in force)"
        );
        let next = "make the change again on top of it (`hangar policy log` shows what came between), and have the new one signed; the old one stays as history";
        (what, next)
    } else {
        let what = format!(
            "{short} is signed by nobody with a say, or follows a version that is not here"
        );
        (
            what,
            "fetch what is missing (`hangar sync`), or have its author propose it again",
        )
    };
    Ok(flow::Error::refused(what, next).into())
}

pub(super) fn finish(
    here: &Here,
    store: &Store,
    next: Option<Next>,
    signer: &Signer,
) -> Result<Changed, Error> {
    let before = store.policy.newest();
    let mut changed = Changed {
        in_force: true,
        unchanged: true,
        version: before.reference.version,
        digest: before.reference.digest,
        needs: Vec::new(),
        new_key: None,
        reseal: false,
        left_out: Vec::new(),
        unread: Vec::new(),
    };
    let Some(Next { draft, unread }) = next else {
        return Ok(changed);
    };
    let left = reduce::left_out(store, &draft)?;
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
    let members: Members = codec::decode(&draft.members)?;
    changed.unchanged = false;
    changed.reseal = recipients(&members).iter().any(|one| !old.contains(one));
    changed.version = members.version;
    changed.left_out = left_out(&left);
    changed.unread = unread;
    changed.unread.extend(left.unread);
    changed.unread.sort();
    changed.unread.dedup();
    let fate = proposal::sign(store, draft, signer)?;
    if matches!(fate, Fate::InForce(_)) {
        news::know(&here.store()?, changed.version);
    }
    sync::publish(here)?;
    match fate {
        Fate::InForce(reference) => changed.digest = reference.digest,
        Fate::Waits { digest, needs } => {
            changed.in_force = false;
            changed.digest = digest;
            let open = needs.iter().filter(|need| !need.suffices());
            changed.needs = open.map(need).collect();
        }
    }
    Ok(changed)
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
