//! The task's own events: what is not believed, what is missing, what had no effect, and what the
//! history tells about texts, consumed approvals and the delivery.

use super::{Case, Sheet, soften};
use crate::base::words;
use crate::flow::Error;
use crate::flow::verify::LinkName::{Documents, History};
use crate::model::digest::Digest;
use crate::model::event::{Change, Event};
use crate::model::object_id::ObjectId;
use crate::model::run::Kind;
use crate::model::task::Sight;
use crate::store::Store;
use crate::store::chain::{self, Folder};
use crate::store::check::{Document as _, Doubt};
use crate::store::dossier::{Dossier, Held};
use crate::store::high_water;
use crate::store::tasks::{self, Record};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// One use of approvals.
#[derive(Debug)]
pub(super) struct Consumption<'a> {
    /// The event.
    pub(super) record: &'a Record,
    /// Position of the event in the history.
    pub(super) at: usize,
    /// Of which manifest.
    pub(super) manifest: Digest,
    /// Which.
    pub(super) approvals: &'a [Digest],
}

/// What the task's history tells.
#[derive(Debug, Default)]
pub(super) struct Past<'a> {
    /// Every text that the task had, by digest, with the base of that time.
    pub(super) texts: BTreeSet<(Digest, ObjectId)>,
    /// Uses of approvals that had effect.
    pub(super) consumptions: Vec<Consumption<'a>>,
    /// The delivery's event and its position.
    delivered: Option<(usize, &'a Record)>,
    /// What had been set aside when the result was delivered.
    pub(super) aside_then: BTreeSet<Digest>,
    /// Patch ids that an approver had signed when the result was delivered.
    pub(super) patches_then: BTreeSet<Digest>,
    /// Events by digest, with what lies beside them.
    folders: BTreeMap<Digest, Folder>,
}

impl<'a> Past<'a> {
    pub(super) fn of(store: &Store, dossier: &'a Dossier) -> Result<Self, Error> {
        let mut past = Self::default();
        past.read_folders(store, dossier)?;
        for (at, record) in dossier.history.records.iter().enumerate() {
            let changes = record.event.value().change.iter();
            for (change, refused) in changes.zip(&record.refused) {
                if refused.is_none() {
                    past.note_change(at, record, change);
                }
            }
        }
        let delivered = past.delivered.map(|(at, _)| at);
        tasks::refold(&dossier.history, &mut |at, sight, task| {
            // Tests may have been written for what one clone had, before it knew of another.
            past.texts.insert((task.text_digest(), task.base));
            // The delivery was right or not by what it had seen.
            if sight == Sight::Own && Some(at) == delivered {
                past.aside_then.clone_from(&task.set_aside);
                past.patches_then.clone_from(&task.approved_patches);
            }
        });
        Ok(past)
    }

    fn read_folders(&mut self, store: &Store, dossier: &Dossier) -> Result<(), Error> {
        for folder in chain::read(&store.repo, dossier.history.tip)? {
            let Some((bytes, _)) = folder.document(&store.repo, Event::NAME)? else {
                continue;
            };
            match self.folders.entry(Digest::of(&bytes)) {
                Entry::Vacant(place) => drop(place.insert(folder)),
                Entry::Occupied(mut first) => {
                    first.get_mut().take_in(&folder, &store.repo, &[], None)?;
                }
            }
        }
        Ok(())
    }

    fn note_change(&mut self, at: usize, record: &'a Record, change: &'a Change) {
        match change {
            Change::Consume {
                manifest,
                approvals,
            } => self.consumptions.push(Consumption {
                record,
                at,
                manifest: *manifest,
                approvals,
            }),
            Change::Deliver { .. } => self.delivered = Some((at, record)),
            _ => {}
        }
    }

    /// The event that delivered.
    pub(super) fn delivered(&self) -> Option<&'a Record> {
        self.delivered.map(|(_, record)| record)
    }

    /// The last use of a manifest's approvals before the delivery.
    pub(super) fn consumption(&self, manifest: Digest) -> Option<&Consumption<'a>> {
        let end = self.delivered.map_or(usize::MAX, |(at, _)| at);
        let mut uses = self.consumptions.iter().rev();
        uses.find(|one| one.manifest == manifest && one.at < end)
    }

    /// What else lies beside an event.
    pub(super) fn folder(&self, record: &Record) -> Option<&Folder> {
        self.folders.get(&record.event.digest())
    }
}

pub(super) fn check(case: &Case<'_>, sheet: &mut Sheet) -> Result<(), Error> {
    for fault in &case.dossier.faults {
        let place = format!("{} in commit {}", fault.kind, fault.commit.short());
        let what = fault.doubt.to_string();
        // What a key signed that has lost its rights is no fault by itself: only where something rests
        // on it, which the other links say.
        if matches!(fault.doubt, Doubt::Reduced { .. }) {
            sheet.note(format!("{place} does not count: {what}"));
        } else {
            sheet.fault_at(Documents, place, what);
        }
    }
    let dossier = case.dossier;
    let count = dossier.history.records.len()
        + dossier.seals.len()
        + dossier.reseals.len()
        + dossier.decisions.len()
        + dossier.runs.len()
        + dossier.grades.len();
    let count = words::count(count, "document", "documents");
    let records = dossier.history.records.iter();
    let idle = records
        .filter(|record| record.refused.iter().any(Option::is_some))
        .count();
    let signed = match idle {
        0 => format!("{count}, each signed by who may sign it"),
        _ => format!(
            "{count}, each with a good signature; what {} asked for had no effect, as noted",
            words::count(idle, "event", "events")
        ),
    };
    sheet.close(Documents, signed);
    pending(case, sheet);
    hidden(case, sheet)?;
    refused(case, sheet);
    backdated(case, sheet);
    cut_back(case, sheet);
    went_back(case, sheet)?;
    adjudicated(case, sheet);
    let events = dossier.history.records.len();
    let events = words::count(events, "event", "events");
    sheet.close(History, format!("{events}, none missing"));
    Ok(())
}

/// What somebody declared not to count is told, and whether that was taken back.
fn adjudicated(case: &Case<'_>, sheet: &mut Sheet) {
    let aside = &case.dossier.history.task.set_aside;
    for record in &case.dossier.history.records {
        let event = record.event.value();
        for (change, refused) in event.change.iter().zip(&record.refused) {
            if let (Change::Adjudicate { falls, reason, .. }, None) = (change, refused) {
                let (stay, back): (Vec<Digest>, Vec<Digest>) =
                    falls.iter().partition(|falls| aside.contains(falls));
                for (falls, since) in [(stay, ""), (back, " (taken back since)")] {
                    let falls: Vec<_> = falls.iter().map(Digest::short).collect();
                    if !falls.is_empty() {
                        sheet.note(format!(
                            "{} declared that {} does not count{since}: {reason}",
                            event.signer.principal,
                            falls.join(", ")
                        ));
                    }
                }
            }
        }
    }
}

/// Every ref of the task still reaches what this clone has seen of it.
fn went_back(case: &Case<'_>, sheet: &mut Sheet) -> Result<(), Error> {
    let (repo, layout, id) = (&case.store.repo, &case.store.layout, case.dossier.id());
    let own = [
        layout.task(id),
        layout.sealed(id),
        layout.runs(id),
        layout.grades(id),
    ];
    let decisions = layout.approvals_of(id);
    for (name, mark) in high_water::marks(repo, layout)? {
        if !own.contains(&name) && !name.starts_with(&decisions) {
            continue;
        }
        let lost = match case.store.head(&name)? {
            None => Some("it is gone"),
            Some(now) if now == mark => None,
            Some(now) if repo.has_object(mark) => match soften(repo.is_ancestor(mark, now))? {
                Ok(true) => None,
                Ok(false) => Some("it was put back or rewritten"),
                Err(reason) => {
                    sheet.unread(History, name, "", &reason);
                    continue;
                }
            },
            Some(_) => Some("it was put back or rewritten"),
        };
        if let Some(lost) = lost {
            let what = format!("{lost}: this clone has seen commit {} on it", mark.short());
            sheet.fault_at(History, name, what);
        }
    }
    Ok(())
}

fn pending(case: &Case<'_>, sheet: &mut Sheet) {
    for commit in &case.dossier.history.pending {
        let place = format!("event in commit {}", commit.short());
        sheet.fault_at(
            History,
            place,
            "it follows an event that is not here: the ref was rewritten or fetched in part",
        );
    }
}

/// Only what has ended goes to the archive; an archive is not signed, so anybody may have put it there.
fn hidden(case: &Case<'_>, sheet: &mut Sheet) -> Result<(), Error> {
    let own = case.store.layout.task(case.dossier.id());
    let is_archived = matches!(soften(case.store.repo.read_ref(&own))?, Ok(None));
    if is_archived && !case.dossier.history.task.state.is_terminal() {
        let what = "it lies in the archive, and has not ended: its ref was taken away";
        sheet.fault_at(History, own, what);
    }
    Ok(())
}

/// Events without effect are shown. They are no fault: two people may act at one time.
fn refused(case: &Case<'_>, sheet: &mut Sheet) {
    for record in &case.dossier.history.records {
        let event = record.event.value();
        for (change, refused) in event.change.iter().zip(&record.refused) {
            if let Some(reason) = refused {
                sheet.note(format!(
                    "`{}` by {} (event {}) had no effect: {reason}",
                    change.name(),
                    event.signer.principal,
                    record.event.digest().short()
                ));
            }
        }
    }
}

/// Nobody acts under an older policy than the one that they had seen.
fn backdated(case: &Case<'_>, sheet: &mut Sheet) {
    let versions: BTreeMap<Digest, u64> = case
        .dossier
        .history
        .records
        .iter()
        .map(|record| {
            let version = record.event.value().signer.policy.version;
            (record.event.digest(), version)
        })
        .collect();
    let has_effect = |record: &&Record| record.refused.iter().any(Option::is_none);
    for record in case.dossier.history.records.iter().filter(has_effect) {
        let event = record.event.value();
        let own = event.signer.policy.version;
        let seen = event
            .parents
            .iter()
            .filter_map(|parent| versions.get(parent));
        if let Some(seen) = seen.max().filter(|seen| **seen > own) {
            let place = format!("event {}", record.event.digest().short());
            sheet.fault_at(
                History,
                place,
                format!("it names policy version {own}, but follows an event under version {seen}"),
            );
        }
    }
    let Some(record) = case.past.delivered() else {
        return;
    };
    let own = record.event.value().signer.policy.version;
    for (what, version) in rests_on(case) {
        if version > own {
            sheet.fault(
                History,
                format!(
                    "the delivery names policy version {own}, but rests on a {what} under version {version}"
                ),
            );
        }
    }
}

/// The documents that the delivery rests on, with the policy versions that they name.
fn rests_on(case: &Case<'_>) -> Vec<(&'static str, u64)> {
    let mut found = Vec::new();
    let run = case.delivered_run();
    found.extend(run.map(|held| ("run", held.value().signer.policy.version)));
    let seal = case.delivered_seal();
    found.extend(seal.map(|held| ("manifest", held.value().signer.policy.version)));
    let grade = case.delivered_grade();
    found.extend(grade.map(|held| ("grade", held.value().signer.policy.version)));
    found
}

/// An agent works under a manifest only after its approvals were used. A run without that use means
/// that the task's ref was put back to an older state.
fn cut_back(case: &Case<'_>, sheet: &mut Sheet) {
    let is_agents = |held: &&Held<crate::model::run::Run>| held.value().kind == Kind::Agent;
    for held in case.dossier.runs.iter().filter(is_agents) {
        let Some(manifest) = held.value().manifest else {
            continue;
        };
        let used = case
            .past
            .consumptions
            .iter()
            .any(|one| one.manifest == manifest);
        if !used {
            let place = format!("run {}", held.digest().short());
            sheet.fault_at(
                History,
                place,
                format!(
                    "it was made under manifest {}, whose approvals this history never used: the task's ref was put back or rewritten",
                    manifest.short()
                ),
            );
        }
    }
}

/// A document embedded in an event: its bytes, and every signature that lies beside it.
type Embedded = (Vec<u8>, Vec<Vec<u8>>);

/// The document with this digest that an event embeds.
pub(super) fn embedded(
    case: &Case<'_>,
    record: &Record,
    digest: Digest,
) -> Result<Option<Embedded>, Error> {
    let Some(folder) = case.past.folder(record) else {
        return Ok(None);
    };
    let repo = &case.store.repo;
    let Ok(Some(bytes)) = soften(folder.file(repo, &digest.hex()))? else {
        return Ok(None);
    };
    if Digest::of(&bytes) != digest {
        return Ok(None);
    }
    let mut signatures = Vec::new();
    for name in folder.names().filter(|name| name.len() == 64) {
        if let Ok(Some(bytes)) = soften(folder.file(repo, name))?
            && bytes.starts_with(b"-----BEGIN SSH SIGNATURE-----")
        {
            signatures.push(bytes);
        }
    }
    Ok(Some((bytes, signatures)))
}
