//! Everything the refs hold about one task, checked: what `flow` derives the stage from and what
//! `verify` walks along.

use super::chain::{self, Folder};
use super::check::{Checked, Document, authorise, check};
use super::scan::TaskRefs;
use super::tasks::{Fault, TaskHistory};
use super::{Error, Store};
use crate::model::approval::{Action, Approval};
use crate::model::digest::Digest;
use crate::model::event::Change;
use crate::model::grade::Grade;
use crate::model::ids::{Principal, TaskId};
use crate::model::manifest::{Manifest, Reseal};
use crate::model::object_id::ObjectId;
use crate::model::run::Run;
use std::collections::{BTreeMap, BTreeSet};

/// A checked document with the commit that holds it.
#[derive(Debug, Clone)]
pub struct Held<T> {
    /// The document.
    pub document: Checked<T>,
    /// Its commit.
    pub commit: ObjectId,
    /// The other things in that commit.
    pub folder: Folder,
}

impl<T> Held<T> {
    /// The document.
    pub const fn value(&self) -> &T {
        self.document.value()
    }

    /// SHA-256 of its bytes.
    pub const fn digest(&self) -> Digest {
        self.document.digest()
    }
}

/// Decisions by several people.
type Decisions = Vec<Held<Approval>>;

/// Sealed versions, and later ciphertexts of them.
type Sealed = (Vec<Held<Manifest>>, Vec<Held<Reseal>>);

/// One task's documents.
#[derive(Debug)]
pub struct Dossier {
    /// Task and events.
    pub history: TaskHistory,
    /// Sealed versions, oldest first.
    pub seals: Vec<Held<Manifest>>,
    /// Ciphertexts for more recipients.
    pub reseals: Vec<Held<Reseal>>,
    /// Decisions; for one person and one manifest only the last.
    pub decisions: Vec<Held<Approval>>,
    /// Decisions that the same person took back by a later one.
    pub overruled: Vec<Held<Approval>>,
    /// Runs, oldest first.
    pub runs: Vec<Held<Run>>,
    /// Grades, oldest first.
    pub grades: Vec<Held<Grade>>,
    /// Documents that are not believed, the task's own included.
    pub faults: Vec<Fault>,
    /// Documents of keys that lost rights since, and that no list counts. They are held above, since
    /// they were good when they were used, and among the faults.
    pub reduced: BTreeSet<Digest>,
}

impl Store {
    /// Reads and checks everything about one task.
    pub fn dossier(&self, id: &TaskId) -> Result<Dossier, Error> {
        self.dossier_of(self.task(id)?)
    }

    /// The same for a task that was read already.
    pub fn dossier_of(&self, history: TaskHistory) -> Result<Dossier, Error> {
        let refs = self.refs_of(&history.task.id, history.tip)?;
        self.dossier_at(history, &refs)
    }

    /// The same for a task of a listing.
    pub fn dossier_from(&self, refs: &TaskRefs) -> Result<Dossier, Error> {
        self.dossier_at(self.task_at(&refs.id, refs.tip)?, refs)
    }

    /// The same where its refs are known.
    pub fn dossier_at(&self, history: TaskHistory, refs: &TaskRefs) -> Result<Dossier, Error> {
        let id = history.task.id.clone();
        let requester = history.task.requester.clone();
        let mut reader = Reader {
            store: self,
            task: &id,
            requester: &requester,
            faults: history.faults.clone(),
            reduced: BTreeSet::new(),
        };
        let of_sealed = reader.sealed(refs.sealed);
        let (seals, reseals) = of_sealed.map_err(|error| error.at(&self.layout.sealed(&id)))?;
        let (decisions, overruled) = reader.decisions(&refs.approvals)?;
        let runs = reader.all::<Run>(refs.runs);
        let runs = runs.map_err(|error| error.at(&self.layout.runs(&id)))?;
        let grades = reader.all::<Grade>(refs.grades);
        let grades = grades.map_err(|error| error.at(&self.layout.grades(&id)))?;
        let (faults, reduced) = (reader.faults, reader.reduced);
        Ok(Dossier {
            history,
            seals,
            reseals,
            decisions,
            overruled,
            runs,
            grades,
            faults,
            reduced,
        })
    }
}

struct Reader<'a> {
    store: &'a Store,
    task: &'a TaskId,
    requester: &'a Principal,
    faults: Vec<Fault>,
    reduced: BTreeSet<Digest>,
}

impl Reader<'_> {
    fn folders(&self, head: Option<ObjectId>) -> Result<Vec<Folder>, Error> {
        head.map_or_else(
            || Ok(Vec::new()),
            |head| chain::read(&self.store.repo, head),
        )
    }

    /// Documents of a ref that holds one kind.
    fn all<T: Beside>(&mut self, head: Option<ObjectId>) -> Result<Vec<Held<T>>, Error> {
        let folders = self.folders(head)?;
        self.documents::<T>(&folders, true)
    }

    /// Sealed versions, oldest first, and later ciphertexts of them.
    fn sealed(&mut self, head: Option<ObjectId>) -> Result<Sealed, Error> {
        let folders = self.folders(head)?;
        let mut seals = self.documents::<Manifest>(&folders, true)?;
        seals.sort_by_key(|seal| seal.value().version);
        Ok((seals, self.documents::<Reseal>(&folders, false)?))
    }

    /// Documents of one kind, each once: a copy of one adds nothing but what lies beside it. With
    /// `required`, a commit that holds neither this kind nor a reseal is a fault.
    fn documents<T: Beside>(
        &mut self,
        folders: &[Folder],
        required: bool,
    ) -> Result<Vec<Held<T>>, Error> {
        let mut found: Vec<Held<T>> = Vec::new();
        let mut places: BTreeMap<Digest, usize> = BTreeMap::new();
        for folder in folders {
            let Some((bytes, signature)) = folder.document(&self.store.repo, T::NAME)? else {
                if required && !folder.names().any(|name| name == "reseal.toml") {
                    let doubt =
                        super::check::Doubt::Bytes(format!("the commit holds no {}.toml", T::NAME));
                    self.faults.push(Fault {
                        kind: T::NAME,
                        commit: folder.commit,
                        doubt,
                    });
                }
                continue;
            };
            let checked = check::<T>(&self.store.policy, bytes, signature, Some(self.task))
                .and_then(|checked| authorise(&checked, self.requester).map(|()| checked));
            match checked {
                Ok(document) => {
                    if let Some(first) = places.get(&document.digest()) {
                        let (value, repo) = (document.value(), &self.store.repo);
                        let first = &mut found[*first].folder;
                        first.take_in(folder, repo, &value.files(), value.tree())?;
                        continue;
                    }
                    places.insert(document.digest(), found.len());
                    if let Some(doubt) = &document.reduced {
                        self.reduced.insert(document.digest());
                        self.faults.push(Fault {
                            kind: T::NAME,
                            commit: folder.commit,
                            doubt: doubt.clone(),
                        });
                    }
                    found.push(Held {
                        document,
                        commit: folder.commit,
                        folder: folder.clone(),
                    });
                }
                Err(doubt) => self.faults.push(Fault {
                    kind: T::NAME,
                    commit: folder.commit,
                    doubt,
                }),
            }
        }
        Ok(found)
    }

    /// Decisions that count, and those of the same people that a later one overruled.
    fn decisions(&mut self, refs: &[(String, ObjectId)]) -> Result<(Decisions, Decisions), Error> {
        let (mut decisions, mut overruled) = (Vec::new(), Vec::new());
        for (name, head) in refs {
            let of_ref = self.all::<Approval>(Some(*head));
            let mut of_ref = of_ref.map_err(|error| error.at(name))?;
            // A decision counts only under the name that its own content gives it, so that one
            // can't be shown in another's place.
            of_ref.retain(|held| {
                let value = held.value();
                let own = self
                    .store
                    .layout
                    .approval(self.task, &value.manifest, &value.signer.key);
                let fits = own == *name;
                if !fits {
                    let doubt =
                        super::check::Doubt::Bytes("it lies under another decision's name".into());
                    self.faults.push(Fault {
                        kind: Approval::NAME,
                        commit: held.commit,
                        doubt,
                    });
                }
                fits
            });
            // What a key signed after it lost its rights takes nothing back.
            let (counting, reduced): (Vec<_>, Vec<_>) = of_ref
                .into_iter()
                .partition(|held| held.document.reduced.is_none());
            decisions.extend(reduced);
            let (last, earlier) = last_word(counting);
            decisions.extend(last);
            overruled.extend(earlier);
        }
        Ok((decisions, overruled))
    }
}

/// The last word of one key over one manifest: what no other decision takes back. Where two clones decided
/// without each other, several are left: then a rejection wins, and of equal ones the first by digest. The
/// order of commits says nothing: anybody who can push makes it.
fn last_word(mut decisions: Vec<Held<Approval>>) -> (Option<Held<Approval>>, Vec<Held<Approval>>) {
    let taken_back: BTreeSet<Digest> = decisions
        .iter()
        .flat_map(|held| held.value().takes_back.iter().copied())
        .collect();
    let rank = |held: &Held<Approval>| (held.value().action == Action::Approve, held.digest());
    let left = decisions.iter().enumerate();
    let left = left.filter(|(_, held)| !taken_back.contains(&held.digest()));
    let last = left.min_by_key(|(_, held)| rank(held)).map(|(at, _)| at);
    let last = last.map(|at| decisions.remove(at));
    (last, decisions)
}

/// What a document names of what lies beside it.
trait Beside: Document {
    /// Digests of files.
    fn files(&self) -> Vec<Digest> {
        Vec::new()
    }

    /// A tree.
    fn tree(&self) -> Option<ObjectId> {
        None
    }
}

impl Beside for Approval {}

impl Beside for Grade {}

impl Beside for Manifest {
    fn files(&self) -> Vec<Digest> {
        vec![self.ciphertext]
    }
}

impl Beside for Reseal {
    fn files(&self) -> Vec<Digest> {
        vec![self.ciphertext]
    }
}

impl Beside for Run {
    fn files(&self) -> Vec<Digest> {
        self.attachment.iter().map(|one| one.sha256).collect()
    }

    fn tree(&self) -> Option<ObjectId> {
        self.result.as_ref().map(|result| result.tree)
    }
}

impl Dossier {
    /// The task's id.
    pub const fn id(&self) -> &TaskId {
        &self.history.task.id
    }

    /// The sealed version with this manifest digest.
    pub fn seal(&self, manifest: Digest) -> Option<&Held<Manifest>> {
        self.seals.iter().find(|seal| seal.digest() == manifest)
    }

    /// The version that took the place of this one: a later one that was not set aside.
    pub fn superseded_by(&self, seal: &Held<Manifest>) -> Option<u32> {
        let later = self.seals.iter().filter(|other| {
            other.value().version > seal.value().version && !self.is_aside(other.digest())
        });
        later.map(|other| other.value().version).max()
    }

    /// Whether the document was set aside by a retry or an adjudication, or because its key lost
    /// rights.
    pub fn is_aside(&self, digest: Digest) -> bool {
        self.reduced.contains(&digest) || self.history.task.set_aside.contains(&digest)
    }

    /// Whether somebody who had the right said that this document stands against others.
    pub fn was_chosen(&self, digest: Digest) -> bool {
        self.history.records.iter().any(|record| {
            let mut changes = record.event.value().change.iter().zip(&record.refused);
            changes.any(|(change, refused)| {
                let chosen =
                    matches!(change, Change::Adjudicate { stands, .. } if *stands == digest);
                chosen && refused.is_none()
            })
        })
    }

    /// Decisions that count over one manifest.
    pub fn decisions_on(
        &self,
        manifest: Digest,
        action: Action,
    ) -> impl Iterator<Item = &Held<Approval>> {
        self.decisions.iter().filter(move |held| {
            let value = held.value();
            value.manifest == manifest && value.action == action && !self.is_aside(held.digest())
        })
    }
}
