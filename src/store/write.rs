//! Appending: one command, one signed document, one compare-and-swap.

use super::arbiter::{self, Submitted};
use super::chain::{self, Content, Note};
use super::check::Document;
use super::identity::Identity;
use super::tasks::TaskHistory;
use super::{Error, Store};
use crate::base::random;
use crate::git;
use crate::model::authority::may;
use crate::model::codec;
use crate::model::digest::Digest;
use crate::model::event::{Change, Event};
use crate::model::ids::TaskId;
use crate::model::object_id::ObjectId;
use crate::model::task::{Author, Refusal, Task};
use crate::trust::Namespace;
use serde::Serialize;
use std::time::Duration;

/// How often a lost race is tried again from a fresh read.
const TRIES: u32 = 30;

/// A document that was just written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// SHA-256 of its bytes.
    pub digest: Digest,
    /// The commit that holds it.
    pub commit: ObjectId,
}

impl Store {
    /// Creates a task. The change must be a [`Change::Create`].
    pub fn create_task(&self, identity: &Identity<'_>, create: Change) -> Result<TaskId, Error> {
        let event = self.event(None, Vec::new(), identity, vec![create]);
        let bytes = codec::encode(&event)?;
        let id = TaskId::of_creation(&bytes);
        let author = author(&event, Digest::of(&bytes));
        let task = Task::create(id.clone(), &event.change[0], author)?;
        Self::check_right(identity, &event.change[0], &task)?;
        let files = signed_files("event", bytes, identity, Namespace::Event)?;
        let note = format!("create: {}", task.title);
        let none = (None, None);
        self.append(&self.layout.task(&id), none, &files, identity, &note)?;
        Ok(id)
    }

    /// Appends what `decide` makes of the task's present state. After a lost race the whole
    /// decision is taken again; an empty list writes nothing.
    pub fn change_task(
        &self,
        id: &TaskId,
        identity: &Identity<'_>,
        mut decide: impl FnMut(&TaskHistory) -> Result<Vec<Change>, Error>,
    ) -> Result<Option<Written>, Error> {
        self.change_task_with(id, identity, |history| Ok((decide(history)?, Vec::new())))
    }

    /// The same with files attached, named by their SHA-256.
    pub fn change_task_with(
        &self,
        id: &TaskId,
        identity: &Identity<'_>,
        mut decide: impl FnMut(&TaskHistory) -> Result<(Vec<Change>, Vec<Vec<u8>>), Error>,
    ) -> Result<Option<Written>, Error> {
        let reference = self.layout.task(id);
        let (mut asked, mut behind) = (None, None);
        for attempt in 0..TRIES {
            // Absent where the task comes from the archive: the new event brings its ref back.
            let live = self.repo.read_ref(&reference)?;
            let history = match live {
                Some(tip) => self.task_at(id, tip)?,
                None => self.task(id)?,
            };
            let (changes, attachments) = decide(&history)?;
            if changes.is_empty() {
                return Ok(None);
            }
            let arbiter = self.arbiter_of(&changes)?;
            if let Some(arbiter) = arbiter.as_ref().filter(|_| asked != Some(attempt)) {
                // What the arbiter has may change the decision.
                self.ask(arbiter)?;
                asked = Some(attempt + 1);
                continue;
            }
            let event = self.event(Some(id.clone()), history.heads.clone(), identity, changes);
            let bytes = codec::encode(&event)?;
            let digest = Digest::of(&bytes);
            Self::rehearse(&history.task, &event, digest, identity)?;
            let mut files = signed_files("event", bytes, identity, Namespace::Event)?;
            files.extend(
                attachments
                    .into_iter()
                    .map(|bytes| (Digest::of(&bytes).hex(), Content::File(bytes))),
            );
            let names: Vec<_> = event.change.iter().map(Change::name).collect();
            let note = names.join(", ");
            if live.is_none() {
                self.take_out(id)?;
            }
            let commit = self.commit(Some(history.tip), &files, identity, &note)?;
            if let Some(arbiter) = &arbiter {
                match self.submit(arbiter, &reference, commit)? {
                    Submitted::Recorded => {}
                    // The same commit once more after it was asked for: it will not come.
                    Submitted::Behind(seen) if behind == Some(seen) => {
                        return Err(arbiter::unusable(arbiter));
                    }
                    other => {
                        if let Submitted::Behind(seen) = other {
                            behind = Some(seen);
                        }
                        pause(attempt);
                        continue;
                    }
                }
            }
            match (
                chain::advance(&self.repo, &reference, live, commit, &note),
                &arbiter,
            ) {
                (Ok(()), _) => return Ok(Some(Written { digest, commit })),
                // Recorded there; somebody wrote here meanwhile, so both are joined.
                (Err(Error::Git(git::Error::Conflict { .. })), Some(arbiter)) => {
                    self.ask(arbiter)?;
                    return Ok(Some(Written { digest, commit }));
                }
                (Err(Error::Git(git::Error::Conflict { .. } | git::Error::Busy { .. })), _) => {
                    pause(attempt);
                }
                (Err(error), _) => return Err(error),
            }
        }
        let last = self
            .task(id)
            .ok()
            .and_then(|mut history| history.records.pop());
        let by = last.map_or_else(String::new, |last| {
            let signer = &last.event.value().signer.principal;
            format!(" (last by {signer}, event {})", last.event.digest().short())
        });
        Err(Error::LostRace(format!("{reference}{by}")))
    }

    /// Appends a signed document to a chain that only grows. A lost race is tried again: what a
    /// chain's documents mean does not depend on their neighbours.
    pub fn append_document<T: Document + Serialize>(
        &self,
        reference: &str,
        identity: &Identity<'_>,
        document: &T,
        more: Vec<(String, Content)>,
        note: &str,
    ) -> Result<Written, Error> {
        let bytes = codec::encode(document)?;
        let digest = Digest::of(&bytes);
        let mut files = signed_files(T::NAME, bytes, identity, T::NAMESPACE)?;
        files.extend(more);
        for attempt in 0..TRIES {
            let live = self.repo.read_ref(reference)?;
            let tip = live.map_or_else(|| self.archived_head(reference), |tip| Ok(Some(tip)))?;
            match self.append(reference, (tip, live), &files, identity, note) {
                Ok(commit) => return Ok(Written { digest, commit }),
                Err(Error::Git(git::Error::Conflict { .. } | git::Error::Busy { .. })) => {
                    pause(attempt);
                }
                Err(error) => return Err(error),
            }
        }
        Err(Error::LostRace(reference.to_owned()))
    }

    /// Puts a commit on top of `tip`, if the ref is still at `live`.
    fn append(
        &self,
        reference: &str,
        (tip, live): (Option<ObjectId>, Option<ObjectId>),
        files: &[(String, Content)],
        identity: &Identity<'_>,
        message: &str,
    ) -> Result<ObjectId, Error> {
        let commit = self.commit(tip, files, identity, message)?;
        chain::advance(&self.repo, reference, live, commit, message)?;
        Ok(commit)
    }

    /// Writes a commit that no ref names yet.
    fn commit(
        &self,
        tip: Option<ObjectId>,
        files: &[(String, Content)],
        identity: &Identity<'_>,
        message: &str,
    ) -> Result<ObjectId, Error> {
        let author = identity.principal().as_str();
        let note = Note {
            author,
            seconds: self.clock.now().as_second(),
            message,
        };
        chain::commit(&self.repo, tip, files, &note)
    }

    fn event(
        &self,
        task: Option<TaskId>,
        parents: Vec<Digest>,
        identity: &Identity<'_>,
        change: Vec<Change>,
    ) -> Event {
        Event {
            format: codec::FORMAT,
            repo: self.policy.repo(),
            task,
            nonce: random::hex::<16>(),
            parents,
            signer: identity.table(self.clock.now()),
            change,
        }
    }

    /// Plays the event on a copy, so that nothing is written that the fold would refuse.
    fn rehearse(
        task: &Task,
        event: &Event,
        digest: Digest,
        identity: &Identity<'_>,
    ) -> Result<(), Error> {
        let mut copy = task.clone();
        for change in &event.change {
            Self::check_right(identity, change, &copy)?;
            copy.apply(change, author(event, digest))?;
        }
        Ok(())
    }

    fn check_right(identity: &Identity<'_>, change: &Change, task: &Task) -> Result<(), Error> {
        if may(&identity.actor, change.act(), &task.requester) {
            return Ok(());
        }
        Err(Error::NotAllowed {
            principal: identity.principal().clone(),
            act: format!("{} this task", change.name()),
        })
    }
}

fn author(event: &Event, digest: Digest) -> Author<'_> {
    Author {
        principal: &event.signer.principal,
        key: &event.signer.key,
        at: &event.signer.at,
        event: digest,
    }
}

fn signed_files(
    name: &str,
    bytes: Vec<u8>,
    identity: &Identity<'_>,
    namespace: Namespace,
) -> Result<Vec<(String, Content)>, Error> {
    let signature = identity.sign(namespace, &bytes)?;
    Ok(vec![
        (format!("{name}.toml"), Content::File(bytes)),
        (format!("{name}.sig"), Content::File(signature)),
    ])
}

/// Waits a little, longer each time and never the same, so that racers do not march in step.
fn pause(attempt: u32) {
    let spread = u64::from(random::bytes::<1>()[0]);
    std::thread::sleep(Duration::from_millis(
        u64::from(attempt.min(10)) * 5 + spread / 16,
    ));
}

/// Whether a refusal came from the state of the task rather than from a value.
pub fn is_state_refusal(error: &Error) -> bool {
    matches!(
        error,
        Error::Refused(Refusal::State { .. } | Refusal::Held(..) | Refusal::Lease(_))
    )
}
