//! Would a stranger accept this? Every link from the policy to the delivered commit, read from the
//! refs alone, and every fault with its place.
//!
//! Starts no sandbox, asks no network and writes nothing. Cost: each document of the task is read
//! and its signature checked once (linear in documents); base and result trees are read in full
//! once each, since every blob is hashed again (linear in the bytes of the two trees); each sealed
//! version is decrypted once where a key is at hand. Must not know how an answer is shown.
//!
//! Two answers: *valid then*, under the policy versions that the documents themselves name, and
//! *acceptable now*, under the newest. A fault counts against both unless it is marked
//! [`Fault::only_now`].

mod approvals;
mod canary;
mod commit;
mod grades;
mod history;
mod newest;
mod payload;
pub mod revision;
mod runs;
mod sheet;
mod trailers;
mod trees;
mod versions;

pub use revision::{RevisionAnswer, Sameness, revision};
pub use sheet::{Fault, Link, LinkName, LinkState};

use super::Error;
use crate::model::digest::Digest;
use crate::model::grade::Grade;
use crate::model::ids::TaskId;
use crate::model::manifest::Manifest;
use crate::model::object_id::ObjectId;
use crate::model::policy::Policy;
use crate::model::run::Run;
use crate::model::task::{Delivery, Flow, State};
use crate::seal::Identity;
use crate::store::dossier::{Dossier, Held};
use crate::store::{self, Store};
use history::Past;
use schemars::JsonSchema;
use serde::Serialize;
use sheet::Sheet;
use std::cell::RefCell;
use std::fmt;
use trees::Trees;

/// What was found out about one task.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Report {
    /// The task.
    pub task: TaskId,
    /// External key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// One line; absent when the history can't be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Where it is in its life; absent when the history can't be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// The commit that the work starts from; absent when the history can't be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<ObjectId>,
    /// What was delivered; absent when nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered: Option<DeliveredView>,
    /// Every link, in the order of the chain.
    pub links: Vec<Link>,
    /// Whether everything holds under the policy that was in force.
    pub valid_then: bool,
    /// Whether it would do under the newest policy as well. Never without `valid_then`.
    pub acceptable_now: bool,
    /// What does not hold. Without any, an answer is no only because nothing was delivered yet, or
    /// because a plain task was delivered ungraded.
    pub faults: Vec<Fault>,
    /// What this shallow or partial clone leaves out, so that a link can't be checked here. Where there
    /// is any, neither answer is yes.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub not_here: Vec<String>,
    /// What a reader should know and what is no fault.
    pub notes: Vec<String>,
}

/// What was delivered, as the signed event names it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DeliveredView {
    /// Full ref name.
    pub branch: String,
    /// The commit.
    pub commit: ObjectId,
    /// The run.
    pub run: Digest,
    /// The grade; absent for a plain task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grade: Option<Digest>,
    /// The manifest; absent for a plain task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Digest>,
    /// Policy version that the delivery names: the one of `valid_then`.
    pub policy_version: u64,
}

impl Report {
    /// Whether a stranger would accept it: both answers are yes.
    pub const fn accepted(&self) -> bool {
        self.valid_then && self.acceptable_now
    }
}

/// Everything that the links are checked against.
struct Case<'a> {
    store: &'a Store,
    dossier: &'a Dossier,
    past: Past<'a>,
    identities: &'a [Identity],
    trees: RefCell<Trees<'a>>,
    /// The policy in force at delivery, by the delivery's own words; else the newest.
    then: &'a Policy,
}

impl<'a> Case<'a> {
    fn delivery(&self) -> Option<&'a Delivery> {
        self.dossier.history.task.delivery.as_ref()
    }

    fn run(&self, digest: Digest) -> Option<&'a Held<Run>> {
        let mut runs = self.dossier.runs.iter();
        runs.find(|held| held.digest() == digest)
    }

    fn grade(&self, digest: Digest) -> Option<&'a Held<Grade>> {
        let mut grades = self.dossier.grades.iter();
        grades.find(|held| held.digest() == digest)
    }

    fn delivered_run(&self) -> Option<&'a Held<Run>> {
        self.run(self.delivery()?.run)
    }

    fn delivered_grade(&self) -> Option<&'a Held<Grade>> {
        self.grade(self.delivery()?.grade?)
    }

    fn delivered_seal(&self) -> Option<&'a Held<Manifest>> {
        self.dossier.seal(self.delivery()?.manifest?)
    }
}

/// Verifies one task. `identities` are what can open sealed versions here; none is fine.
///
/// # Errors
/// Only trouble of this machine. What is wrong with documents and objects stands in the report.
pub fn verify(store: &Store, id: &TaskId, identities: &[Identity]) -> Result<Report, Error> {
    match store.dossier(id) {
        Ok(dossier) => verify_dossier(store, &dossier, identities),
        Err(store::Error::Damaged { place, source }) => {
            Ok(unreadable(id, &place, &source.to_string().into()))
        }
        Err(error) => {
            let reason = soften(Err::<(), _>(error))?.err().unwrap_or_default();
            Ok(unreadable(id, &store.layout.task(id), &reason))
        }
    }
}

/// The report on a task whose history can't be read.
fn unreadable(id: &TaskId, place: &str, reason: &Unread) -> Report {
    let mut sheet = Sheet::default();
    sheet.unread(LinkName::History, place, "", reason);
    sheet.end_unread(LinkName::History);
    Report {
        task: id.clone(),
        key: None,
        title: None,
        state: None,
        base: None,
        delivered: None,
        links: sheet.links,
        valid_then: false,
        acceptable_now: false,
        faults: sheet.faults,
        not_here: sheet.not_here,
        notes: sheet.notes,
    }
}

/// Verifies a task whose documents were read already.
pub fn verify_dossier(
    store: &Store,
    dossier: &Dossier,
    identities: &[Identity],
) -> Result<Report, Error> {
    let mut sheet = Sheet::default();
    let past = Past::of(store, dossier)?;
    let named = past
        .delivered()
        .and_then(|record| store.policy.find(record.event.value().signer.policy));
    let case = Case {
        store,
        dossier,
        then: named.unwrap_or_else(|| store.policy.newest()),
        past,
        identities,
        trees: RefCell::new(Trees::new(&store.repo)),
    };
    history::check(&case, &mut sheet)?;
    versions::check(&case, &mut sheet)?;
    payload::check(&case, &mut sheet)?;
    let used = approvals::check(&case, &mut sheet)?;
    runs::check(&case, &mut sheet)?;
    grades::check(&case, &mut sheet)?;
    commit::check(&case, &mut sheet)?;
    canary::check(&case, &mut sheet)?;
    newest::check(&case, &used, &mut sheet);
    Ok(report(&case, sheet))
}

fn report(case: &Case<'_>, sheet: Sheet) -> Report {
    let task = &case.dossier.history.task;
    let delivered = case.delivery().map(|delivery| DeliveredView {
        branch: delivery.branch.clone(),
        commit: delivery.commit,
        run: delivery.run,
        grade: delivery.grade,
        manifest: delivery.manifest,
        policy_version: case.then.reference.version,
    });
    let graded = delivered.is_some() && task.flow == Flow::TestFirst;
    let valid_then =
        graded && sheet.not_here.is_empty() && sheet.faults.iter().all(|fault| fault.only_now);
    Report {
        task: task.id.clone(),
        key: Some(task.external.clone()).filter(|key| !key.is_empty()),
        title: Some(task.title.clone()),
        state: Some(task.state),
        base: Some(task.base),
        delivered,
        valid_then,
        acceptable_now: valid_then && sheet.faults.is_empty(),
        links: sheet.links,
        faults: sheet.faults,
        not_here: sheet.not_here,
        notes: sheet.notes,
    }
}

/// Why something can't be read.
#[derive(Debug, Default)]
struct Unread {
    text: String,
    /// Whether it is only that this clone was made without it.
    left_out: bool,
}

impl From<String> for Unread {
    fn from(text: String) -> Self {
        Self {
            text,
            left_out: false,
        }
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Turns trouble with documents and objects into a finding; trouble of the machine stays an error.
fn soften<T, E: Into<Error>>(result: Result<T, E>) -> Result<Result<T, Unread>, Error> {
    let error = match result {
        Ok(value) => return Ok(Ok(value)),
        Err(error) => error.into(),
    };
    match &error {
        Error::Git(git) | Error::Store(store::Error::Git(git)) if is_machine_trouble(git) => {
            Err(error)
        }
        Error::Git(git) | Error::Store(store::Error::Git(git)) => Ok(Err(Unread {
            text: error.to_string(),
            left_out: git.is_left_out(),
        })),
        Error::Store(
            store::Error::Document { .. }
            | store::Error::Damaged { .. }
            | store::Error::NewerPolicy { .. },
        )
        | Error::Refused { .. }
        | Error::Bundle(_)
        | Error::Decrypt(_) => Ok(Err(error.to_string().into())),
        _ => Err(error),
    }
}

const fn is_machine_trouble(error: &crate::git::Error) -> bool {
    use crate::git::Error as Git;
    matches!(
        error,
        Git::File { .. } | Git::Process(_) | Git::Program { .. } | Git::Busy { .. }
    )
}
