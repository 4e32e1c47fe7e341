//! `hangar task log`: the history of a task's documents.

use super::order;
use super::rounds;
use super::show::faults;
use crate::app::{Error, Here};
use crate::base::words::count;
use crate::model::approval::{Action, Approval};
use crate::model::digest::Digest;
use crate::model::event::Change;
use crate::model::ids::{Principal, TaskId};
use crate::model::object_id::ObjectId;
use crate::model::signer::Signer;
use crate::store::check::Document;
use crate::store::dossier::{Dossier, Held};
use crate::store::tasks::Record;
use schemars::JsonSchema;
use serde::Serialize;

/// A task's documents.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TaskLog {
    /// Which task.
    pub id: TaskId,
    /// Documents, each after those that it rests on; unrelated ones by claimed time.
    pub documents: Vec<Entry>,
    /// Documents that are not believed, each with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub faults: Vec<String>,
}

/// One signed document.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Entry {
    /// `event`, `manifest`, `reseal`, `approval`, `run` or `grade`.
    pub kind: String,
    /// Claimed time.
    pub at: String,
    /// Who signed.
    pub by: Principal,
    /// What it says, in a line.
    pub what: String,
    /// A longer text: a comment, a reason, a summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Why changes of it had no effect.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub refused: Vec<String>,
    /// Fields that somebody else set at the same time, and whose value counts.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub beside: Vec<String>,
    /// Why it does not count although it was signed as it should: its key lost rights since, or the policy
    /// version that it names does not stand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
    /// Whether its signer took it back by a later one.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub withdrawn: bool,
    /// SHA-256 of its bytes.
    pub digest: Digest,
    /// The commit that holds it.
    pub commit: ObjectId,
}

/// The history of the task that `name` means.
pub fn log(here: &Here, name: &str) -> Result<TaskLog, Error> {
    let store = here.store()?;
    let dossier = store.dossier_of(store.find_task(name)?)?;
    Ok(TaskLog {
        id: dossier.id().clone(),
        documents: entries(&dossier),
        faults: faults(&dossier),
    })
}

/// Every document as a line, each after those that it rests on.
pub(super) fn entries(dossier: &Dossier) -> Vec<Entry> {
    let mut all: Vec<Entry> = dossier.history.records.iter().map(event).collect();
    beside(&dossier.history.records, &mut all);
    all.extend(dossier.seals.iter().map(|seal| {
        let (version, counts) = (seal.value().version, seal.value().counts);
        let what = format!(
            "sealed version {version}: {}, {} on base, {}",
            count(counts.tests, "test", "tests"),
            count(counts.fails, "fails", "fail"),
            count(counts.guards, "guard", "guards")
        );
        entry(seal, what, None)
    }));
    all.extend(dossier.reseals.iter().map(|reseal| {
        let recipients = count(reseal.value().recipients.len(), "recipient", "recipients");
        entry(reseal, format!("resealed to {recipients}"), None)
    }));
    all.extend(dossier.overruled.iter().map(|held| Entry {
        withdrawn: true,
        ..decision(held)
    }));
    all.extend(dossier.decisions.iter().map(decision));
    let names = rounds::names(dossier);
    all.extend(dossier.runs.iter().zip(names).map(|(held, name)| {
        let run = held.value();
        let what = format!("{name}: {}", outcome(run.outcome));
        entry(held, what, Some(&run.note))
    }));
    all.extend(dossier.grades.iter().map(|held| {
        let grade = held.value();
        let answer = match (grade.accepted, grade.void) {
            (true, _) => "accepted",
            (false, true) => "void",
            (false, false) => "not accepted",
        };
        let counts = &grade.counts;
        let what = format!(
            "graded {answer}: {} of {} passed, trust {}, verdict {}",
            counts.passed, counts.expected, grade.trust, grade.verdict
        );
        entry(held, what, None)
    }));
    order::by_cause(dossier, all)
}

/// Marks on both sides that a field was set at the same time. The events are in order, so of several
/// the last one stands, and that one is named to all the others.
fn beside(records: &[Record], entries: &mut [Entry]) {
    for (at, record) in records.iter().enumerate() {
        for other in &record.beside {
            let field = other.field;
            let lost = records[..at]
                .iter()
                .position(|one| one.event.digest() == other.event);
            let Some(lost) = lost else { continue };
            let stands = last_word(records, at, field);
            let (winner, loser) = (by(&records[stands]), by(&records[lost]));
            let marks = [
                (
                    stands,
                    format!("{field}: {loser} set it at the same time; this value stands"),
                ),
                (
                    lost,
                    format!(
                        "{field}: {winner} set it at the same time, and that value stands; this one by {loser} does not"
                    ),
                ),
            ];
            for (place, mark) in marks {
                if !entries[place].beside.contains(&mark) {
                    entries[place].beside.push(mark);
                }
            }
        }
    }
}

/// Who has the last word where this event set a field at the same time as others.
fn last_word(records: &[Record], at: usize, field: &str) -> usize {
    let own = records[at].event.digest();
    let gave_way = |one: &Record| {
        let mut beside = one.beside.iter();
        beside.any(|other| other.event == own && other.field == field)
    };
    let later = records.iter().rposition(gave_way);
    later
        .filter(|later| *later > at)
        .map_or(at, |later| last_word(records, later, field))
}

fn by(record: &Record) -> &Principal {
    &record.event.value().signer.principal
}

fn decision(held: &Held<Approval>) -> Entry {
    let approval = held.value();
    let word = match approval.action {
        Action::Approve => "approved",
        Action::Reject => "rejected",
    };
    let what = format!("{word} version {}", approval.version);
    entry(held, what, Some(&approval.reason))
}

fn outcome(outcome: crate::model::run::RunOutcome) -> &'static str {
    use crate::model::run::RunOutcome as O;
    match outcome {
        O::Completed => "completed",
        O::Malformed => "malformed",
        O::Failed => "failed",
        O::Interrupted => "interrupted",
    }
}

fn entry<T: Document>(held: &Held<T>, what: String, text: Option<&String>) -> Entry {
    let signer: &Signer = held.value().signer();
    Entry {
        kind: T::NAME.to_owned(),
        at: signer.at.clone(),
        by: signer.principal.clone(),
        what,
        text: text.filter(|text| !text.is_empty()).cloned(),
        refused: Vec::new(),
        beside: Vec::new(),
        doubt: held.document.reduced.as_ref().map(ToString::to_string),
        withdrawn: false,
        digest: held.digest(),
        commit: held.commit,
    }
}

fn event(record: &Record) -> Entry {
    let value = record.event.value();
    let words: Vec<_> = value.change.iter().map(describe).collect();
    let texts: Vec<_> = value.change.iter().filter_map(long_text).collect();
    Entry {
        kind: "event".into(),
        at: value.signer.at.clone(),
        by: value.signer.principal.clone(),
        what: words.join(", "),
        text: Some(texts.join("\n\n")).filter(|text| !text.is_empty()),
        refused: record.refused.iter().flatten().cloned().collect(),
        beside: Vec::new(),
        doubt: record.event.reduced.as_ref().map(ToString::to_string),
        withdrawn: false,
        digest: record.event.digest(),
        commit: record.commit,
    }
}

fn describe(change: &Change) -> String {
    match change {
        Change::Create { title, .. } => format!("created: {title}"),
        Change::Edit { .. } => format!("edited {}", change.fields().join(", ")),
        Change::Enqueue => "enqueued".into(),
        Change::Claim { .. } => "claimed".into(),
        Change::Renew { .. } => "renewed the claim".into(),
        Change::Release { .. } => "gave the task back".into(),
        Change::Stage { stage, note, .. } if note.is_empty() => format!("stage {stage}"),
        Change::Stage { stage, note, .. } => format!("stage {stage}: {note}"),
        Change::Consume { manifest, .. } => format!("uses the approval of {}", manifest.short()),
        Change::ApprovePatch { patch } => format!("approved the patch {}", patch.short()),
        Change::Deliver { branch, commit, .. } => {
            let branch = branch.trim_start_matches("refs/heads/");
            format!("delivered {} to {branch}", commit.short())
        }
        Change::Fail { .. } => "failed".into(),
        Change::Reject { .. } => "rejected".into(),
        Change::Cancel { .. } => "cancelled".into(),
        Change::Retry { from, .. } => format!("retried from {from}"),
        Change::Comment { .. } => "commented".into(),
        Change::Adjudicate { stands, .. } => format!("adjudicated: {} stands", stands.short()),
        Change::Publish { commit, .. } => format!("published the tests in {}", commit.short()),
        Change::Delete => "deleted".into(),
    }
}

fn long_text(change: &Change) -> Option<&str> {
    let text = match change {
        Change::Fail { summary } | Change::Reject { summary } => summary,
        Change::Cancel { reason } | Change::Adjudicate { reason, .. } => reason,
        Change::Comment { text } => text,
        _ => return None,
    };
    (!text.is_empty()).then_some(text.as_str())
}
