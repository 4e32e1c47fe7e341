//! The order of a task's documents: causes before what rests on them, the claimed time only between
//! documents that have nothing to do with each other.

use super::log::Entry;
use super::rounds;
use crate::model::approval::{Action, Approval};
use crate::model::digest::Digest;
use crate::model::event::Change;
use crate::model::manifest::Writer;
use crate::model::run::{Kind, Run, RunRole};
use crate::model::task::Sight;
use crate::store::dossier::{Dossier, Held};
use crate::store::tasks;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// Sorts entries, which come as events in causal order, then the other documents by kind.
pub(super) fn by_cause(dossier: &Dossier, entries: Vec<Entry>) -> Vec<Entry> {
    let causes = causes(dossier);
    let order = sorted(&entries, &causes, &ranks(dossier));
    let mut entries: Vec<Option<Entry>> = entries.into_iter().map(Some).collect();
    let taken = order.into_iter().filter_map(|index| entries[index].take());
    let mut out: Vec<Entry> = taken.collect();
    // None is left unless documents name each other in a circle, which digests don't allow.
    out.extend(entries.into_iter().flatten());
    out
}

type Causes = BTreeMap<Digest, BTreeSet<Digest>>;

/// What each document rests on.
fn causes(dossier: &Dossier) -> Causes {
    let mut causes = Causes::new();
    let mut add = |of: Digest, on: &mut dyn Iterator<Item = Digest>| {
        causes.entry(of).or_default().extend(on);
    };
    for record in &dossier.history.records {
        let value = record.event.value();
        add(record.event.digest(), &mut value.parents.iter().copied());
        let named = value.change.iter().flat_map(named);
        add(record.event.digest(), &mut named.into_iter());
    }
    let texts = texts(dossier);
    // Every document names the task, and the task is its first event.
    let first = dossier.history.records.first();
    let first = || first.map(|record| record.event.digest()).into_iter();
    for seal in &dossier.seals {
        let value = seal.value();
        let run = match &value.writer {
            Writer::Agent { run, .. } => Some(*run),
            Writer::Person { .. } => None,
        };
        let text = text_began(&texts, value.text);
        let mut rests_on = first().chain(value.previous).chain(run).chain(text);
        add(seal.digest(), &mut rests_on);
    }
    for reseal in &dossier.reseals {
        add(reseal.digest(), &mut [reseal.value().manifest].into_iter());
    }
    for held in dossier.decisions.iter().chain(&dossier.overruled) {
        let value = held.value();
        let taken_back = value.takes_back.iter().copied();
        add(held.digest(), &mut taken_back.chain([value.manifest]));
    }
    let mut before: Option<Digest> = None;
    let versions = rounds::versions(dossier);
    for (held, version) in dossier.runs.iter().zip(versions) {
        let run = held.value();
        // One chain holds them all. A later round begins with what the grade of the one before said.
        let graded = before.filter(|_| run.role == RunRole::Implementer);
        let graded = graded.and_then(|before| {
            let grade = dossier
                .grades
                .iter()
                .find(|grade| grade.value().run == Some(before));
            grade.map(Held::digest)
        });
        let begun = began(dossier, run, version);
        let mut rests_on = first()
            .chain(before)
            .chain(run.manifest)
            .chain(graded)
            .chain(begun);
        add(held.digest(), &mut rests_on);
        before = Some(held.digest());
    }
    let mut before: Option<Digest> = None;
    for held in &dossier.grades {
        let grade = held.value();
        let named = grade.approvals.iter().copied().chain([grade.manifest]);
        add(held.digest(), &mut named.chain(grade.run).chain(before));
        before = Some(held.digest());
    }
    causes
}

/// The digest of the task's text after each event.
fn texts(dossier: &Dossier) -> Vec<(Digest, Digest)> {
    let mut texts = Vec::new();
    let records = &dossier.history.records;
    tasks::refold(&dossier.history, &mut |at, sight, task| {
        if sight == Sight::Own {
            texts.push((task.text_digest(), records[at].event.digest()));
        }
    });
    texts
}

/// The event by which the task first had this text: no test is written for it before.
fn text_began(texts: &[(Digest, Digest)], text: Digest) -> Option<Digest> {
    let mut texts = texts.iter();
    texts.find(|(one, _)| *one == text).map(|(_, event)| *event)
}

/// What a run begins on besides what it names: the use of the approvals, for an implementer; for a
/// writer, the rejections of earlier versions until then.
fn began(dossier: &Dossier, run: &Run, version: Option<u32>) -> Vec<Digest> {
    let Some(manifest) = run.manifest else {
        let rejects = |held: &&Held<Approval>| held.value().action == Action::Reject;
        let before = |held: &&Held<Approval>| {
            held.value().signer.at <= run.started && Some(held.value().version) < version
        };
        let decisions = dossier.decisions.iter().filter(rejects).filter(before);
        let writes = run.role == RunRole::Writer;
        return decisions.filter(|_| writes).map(Held::digest).collect();
    };
    let uses =
        |change: &Change| matches!(change, Change::Consume { manifest: of, .. } if *of == manifest);
    let mut records = dossier.history.records.iter();
    let first = records.find(|record| record.event.value().change.iter().any(uses));
    let agents = run.kind == Kind::Agent;
    first
        .filter(|_| agents)
        .map(|record| record.event.digest())
        .into_iter()
        .collect()
}

/// Documents that a change names.
fn named(change: &Change) -> Vec<Digest> {
    match change {
        Change::Stage { documents, .. } => documents.clone(),
        Change::Consume {
            manifest,
            approvals,
        } => [*manifest].into_iter().chain(approvals.clone()).collect(),
        Change::Deliver {
            run,
            grade,
            manifest,
            ..
        } => [*run].into_iter().chain(*grade).chain(*manifest).collect(),
        Change::Retry { set_aside, .. } => set_aside.clone(),
        Change::Adjudicate { stands, falls, .. } => {
            [*stands].into_iter().chain(falls.clone()).collect()
        }
        Change::Publish { manifest, .. } => vec![*manifest],
        _ => Vec::new(),
    }
}

/// Which of one second comes first, where nothing else says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// An event: those that tell of a document name it.
    Event,
    /// A decision.
    Decision,
    /// Somebody takes the task: it names nothing of what it is taken for, and follows the decision that the
    /// task waited for.
    Claim,
    /// What is made under a claim.
    Made,
    /// An edit or an end. It names nothing either, and nothing is decided, made or graded for a text that was
    /// replaced, or a task that has ended.
    Closing,
}

/// The ranks of events that are not simply events.
fn ranks(dossier: &Dossier) -> BTreeMap<Digest, Rank> {
    let rank = |change: &Change| match change {
        Change::Claim { .. } => Some(Rank::Claim),
        Change::Edit { .. }
        | Change::Fail { .. }
        | Change::Reject { .. }
        | Change::Cancel { .. }
        | Change::Delete => Some(Rank::Closing),
        _ => None,
    };
    let records = dossier.history.records.iter();
    let ranked = records.filter_map(|record| {
        let ranks = record.event.value().change.iter().filter_map(rank);
        Some((record.event.digest(), ranks.max()?))
    });
    ranked.collect()
}

/// Indexes of entries. Of those whose causes are told, the earliest comes first, and in the same second
/// the one with the lowest [`Rank`].
fn sorted(entries: &[Entry], causes: &Causes, ranks: &BTreeMap<Digest, Rank>) -> Vec<usize> {
    let index: BTreeMap<Digest, usize> = entries
        .iter()
        .enumerate()
        .map(|(index, entry)| (entry.digest, index))
        .collect();
    let mut open = vec![0_usize; entries.len()];
    let mut effects: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (at, entry) in entries.iter().enumerate() {
        let of_entry = causes.get(&entry.digest).into_iter().flatten();
        for cause in of_entry.filter_map(|cause| index.get(cause)) {
            open[at] += 1;
            effects.entry(*cause).or_default().push(at);
        }
    }
    let rank = |entry: &Entry| match entry.kind.as_str() {
        "event" => ranks.get(&entry.digest).copied().unwrap_or(Rank::Event),
        "approval" => Rank::Decision,
        _ => Rank::Made,
    };
    let key = |at: usize| Reverse((entries[at].at.as_str(), rank(&entries[at]), at));
    let ready = (0..entries.len()).filter(|at| open[*at] == 0);
    let mut ready: BinaryHeap<_> = ready.map(key).collect();
    let mut out = Vec::with_capacity(entries.len());
    while let Some(Reverse((_, _, at))) = ready.pop() {
        out.push(at);
        for effect in effects.remove(&at).unwrap_or_default() {
            open[effect] -= 1;
            if open[effect] == 0 {
                ready.push(key(effect));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: &str, at: &str, name: &str) -> Entry {
        Entry {
            kind: kind.into(),
            at: at.into(),
            by: "alice".parse().unwrap(),
            what: name.into(),
            text: None,
            refused: Vec::new(),
            beside: Vec::new(),
            doubt: None,
            withdrawn: false,
            digest: Digest::of(name.as_bytes()),
            commit: "0".repeat(40).parse().unwrap(),
        }
    }

    fn told(entries: &[Entry], causes: &[(&str, &str)]) -> String {
        let mut all = Causes::new();
        for (of, on) in causes {
            let on = Digest::of(on.as_bytes());
            all.entry(Digest::of(of.as_bytes())).or_default().insert(on);
        }
        let rank = |entry: &Entry| match entry.what.as_str() {
            what if what.starts_with("claim") => Some((entry.digest, Rank::Claim)),
            "edited" | "cancelled" | "failed" => Some((entry.digest, Rank::Closing)),
            _ => None,
        };
        let ranks = entries.iter().filter_map(rank).collect();
        let names = sorted(entries, &all, &ranks).into_iter();
        let names: Vec<_> = names.map(|at| entries[at].what.as_str()).collect();
        names.join(" ")
    }

    #[test]
    fn a_document_follows_what_it_rests_on_even_where_its_clock_says_otherwise() {
        let all = [
            entry("event", "2026-01-01T00:00:05Z", "created"),
            entry("event", "2026-01-01T00:00:05Z", "waits"),
            entry("manifest", "2026-01-01T00:00:05Z", "v1"),
            entry("approval", "2026-01-01T00:00:05Z", "approved"),
            entry("run", "2026-01-01T00:00:01Z", "run"),
        ];
        let causes = [
            ("waits", "created"),
            ("waits", "v1"),
            ("v1", "run"),
            ("run", "created"),
            ("approved", "v1"),
        ];
        assert_eq!(told(&all, &causes), "created run v1 waits approved");
    }

    #[test]
    fn a_claim_follows_the_decision_of_its_second_and_precedes_what_is_made_under_it() {
        let at = "2026-01-01T00:00:05Z";
        let all = [
            entry("event", at, "claim1"),
            entry("event", at, "waits"),
            entry("event", at, "claim2"),
            entry("manifest", at, "v1"),
            entry("approval", at, "approved"),
            entry("run", at, "run"),
        ];
        let causes = [
            ("waits", "claim1"),
            ("waits", "v1"),
            ("claim2", "waits"),
            ("approved", "v1"),
            ("run", "approved"),
        ];
        assert_eq!(told(&all, &causes), "claim1 v1 waits approved claim2 run");
    }

    #[test]
    fn an_edit_and_an_end_follow_what_was_decided_and_made_in_their_second() {
        let at = "2026-01-01T00:00:05Z";
        let all = [
            entry("event", at, "created"),
            entry("event", at, "edited"),
            entry("event", at, "cancelled"),
            entry("manifest", at, "v1"),
            entry("approval", at, "approved"),
        ];
        let causes = [
            ("edited", "created"),
            ("cancelled", "edited"),
            ("v1", "created"),
            ("approved", "v1"),
        ];
        assert_eq!(told(&all, &causes), "created v1 approved edited cancelled");
        // Tests of the new text follow the edit.
        let causes = [&causes[..], &[("v1", "edited")]].concat();
        assert_eq!(told(&all, &causes), "created edited v1 approved cancelled");
        let all = [
            entry("event", at, "created"),
            entry("event", at, "failed"),
            entry("run", at, "run"),
            entry("grade", at, "grade"),
        ];
        let causes = [("failed", "created"), ("run", "created"), ("grade", "run")];
        assert_eq!(told(&all, &causes), "created run grade failed");
    }

    #[test]
    fn time_decides_between_unrelated_documents() {
        let all = [
            entry("event", "2026-01-01T00:00:03Z", "late"),
            entry("run", "2026-01-01T00:00:02Z", "early"),
            entry("grade", "2026-01-01T00:00:03Z", "same"),
        ];
        assert_eq!(told(&all, &[]), "early late same");
    }
}
