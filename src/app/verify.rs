//! `hangar verify`: a task, a revision, or everything.

mod in_toto;
mod pin;

use super::{Error, Here, keys, landed, sync};
use crate::flow::verify::{
    self, Fault, Link, LinkName, LinkState, Report, RevisionAnswer, Sameness,
};
use crate::git;
use crate::model::ids::TaskId;
use crate::model::object_id::ObjectId;
use crate::model::task::State;
use crate::seal::Identity;
use crate::store::layout::OfTask;
use crate::store::{self, Store, pins};
use crate::trust::{MachineKey, MachineRole};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

pub use in_toto::{Statement, statement};

/// What is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject<'a> {
    /// A task or a revision, as a person typed it.
    Named(&'a str),
    /// Every task.
    All,
}

/// Would a stranger accept this?
#[derive(Debug, Serialize, JsonSchema)]
pub struct Answer {
    /// Yes or no. For every task together: no fault anywhere, and whatever was delivered graded is
    /// acceptable.
    pub accepted: bool,
    /// Links that all tasks share: the policy and what pins it.
    pub links: Vec<Link>,
    /// Faults that belong to no single task.
    pub faults: Vec<Fault>,
    /// What the revision is, where one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<RevisionAnswer>,
    /// What fetches what this shallow or partial clone leaves out, as commands.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub remedies: Vec<String>,
    /// The tasks. None where the policy can't be believed, or no task names the revision.
    pub tasks: Vec<Report>,
}

impl Answer {
    /// Whether there is no answer in this clone: nothing is at fault, and something that it leaves out
    /// would have to be looked at.
    pub fn is_open(&self) -> bool {
        let at_fault =
            !self.faults.is_empty() || self.tasks.iter().any(|task| !task.faults.is_empty());
        let left_out = self.tasks.iter().any(|task| !task.not_here.is_empty());
        let other = self.revision.as_ref();
        !at_fault && left_out && other.is_none_or(|one| one.answer != Sameness::No)
    }

    fn new(links: Vec<Link>, faults: Vec<Fault>) -> Self {
        Self {
            accepted: false,
            links,
            faults,
            revision: None,
            remedies: Vec::new(),
            tasks: Vec::new(),
        }
    }
}

/// What a name means.
enum Target {
    Task(TaskId),
    /// Tasks that can't be read: one of them may have the name, and none of the others has.
    Unreadable(Vec<TaskId>),
    Revision(ObjectId),
}

/// Verifies. Writes nothing and asks nobody.
pub fn verify(here: &Here, subject: Subject<'_>) -> Result<Answer, Error> {
    let store = match Store::open(here.repository()?, here.clock) {
        // Before the first pin nothing comes from outside: what is here is held against it first.
        Ok(store) if pins::pinned(&store.repo)?.is_none() => store,
        Ok(store) => sync::refresh(here, store)?,
        Err(error) => return distrusted(error),
    };
    let target = match subject {
        Subject::Named(name) => match resolve(&store, name) {
            Err(Error::Store(error @ store::Error::Damaged { .. })) => return distrusted(error),
            target => Some(target?),
        },
        Subject::All => None,
    };
    let under = match &target {
        Some(Target::Revision(commit)) => Some(*commit),
        Some(Target::Task(_) | Target::Unreadable(_)) | None => None,
    };
    let mut faults = Vec::new();
    let mut links = vec![policy_link(&store, &mut faults)];
    let pin = pin::check(here, &store, under, &mut faults)?;
    // What nothing here names, or what differs from it, is not this clone's policy.
    if faults.is_empty() && pin.state == LinkState::Held {
        store.pin();
    }
    links.push(pin);
    let mut answer = Answer::new(links, faults);
    let identities = identities(here, &store);
    match target {
        None => all(&store, &identities, &mut answer)?,
        Some(Target::Task(id)) => answer.tasks.push(verify::verify(&store, &id, &identities)?),
        Some(Target::Unreadable(ids)) => {
            for id in ids {
                answer.tasks.push(verify::verify(&store, &id, &identities)?);
            }
        }
        Some(Target::Revision(commit)) => {
            revision(here, &store, commit, &identities, &mut answer)?;
        }
    }
    note_bases(here, &store, &mut answer);
    answer.remedies = remedies(here, &store, &answer.tasks);
    answer.accepted = answer.faults.is_empty() && holds(&answer, subject);
    Ok(answer)
}

/// Notes where the base of a task that is open or done was not landed. It is no fault: what is verified
/// is the patch.
fn note_bases(here: &Here, store: &Store, answer: &mut Answer) {
    let remote = landed::remote(here, store);
    let mut known = BTreeMap::new();
    for report in &mut answer.tasks {
        let ended = matches!(
            report.state,
            None | Some(State::Failed | State::Rejected | State::Deleted)
        );
        if let Some(base) = report.base.filter(|_| !ended) {
            let note = known
                .entry(base)
                .or_insert_with(|| landed::unlanded(store, &remote, base));
            report.notes.extend(note.clone());
        }
    }
}

/// What brings what this clone leaves out.
fn remedies(here: &Here, store: &Store, tasks: &[Report]) -> Vec<String> {
    let mut found = Vec::new();
    let repo = &store.repo;
    for report in tasks.iter().filter(|report| !report.not_here.is_empty()) {
        if repo.is_partial() {
            found.push("git fetch --refetch --no-filter".to_owned());
        }
        if repo.is_shallow() {
            found.push("git fetch --unshallow".to_owned());
        }
        // It lies on a branch that a clone of one branch does not fetch.
        if let Some(delivered) = &report.delivered
            && !repo.has_object(delivered.commit)
        {
            let remote = landed::remote(here, store);
            found.push(format!("git fetch {remote} {}", delivered.branch));
        }
    }
    let mut known = BTreeSet::new();
    found.retain(|one| known.insert(one.clone()));
    found
}

/// Whether what was asked for is acceptable, apart from faults that belong to no task.
fn holds(answer: &Answer, subject: Subject<'_>) -> bool {
    let known = answer
        .revision
        .as_ref()
        .is_none_or(|revision| revision.answer != Sameness::No);
    match subject {
        // Open tasks and plain ones claim nothing, so they are no fault.
        Subject::All => {
            let mut tasks = answer.tasks.iter();
            tasks.all(|report| report.faults.is_empty() && report.not_here.is_empty())
        }
        Subject::Named(_) => {
            known && !answer.tasks.is_empty() && answer.tasks.iter().all(Report::accepted)
        }
    }
}

/// The answer where the policy itself is not to be believed, or where what was named is not found
/// because of damage.
fn distrusted(error: store::Error) -> Result<Answer, Error> {
    let link = match &error {
        store::Error::Policy(_) | store::Error::TwoPrefixes | store::Error::PolicyGone { .. } => {
            LinkName::Policy
        }
        store::Error::Damaged { place, .. } if place.ends_with("/policy") => LinkName::Policy,
        store::Error::Damaged { .. } => LinkName::Documents,
        store::Error::Pin(_) => LinkName::Pin,
        _ => return Err(error.into()),
    };
    let fault = damage(link, error);
    let broken = Link {
        name: link,
        state: LinkState::Broken,
        detail: "nothing that rests on it can be believed".into(),
    };
    Ok(Answer::new(vec![broken], vec![fault]))
}

/// The fault that an error is.
fn damage(link: LinkName, error: store::Error) -> Fault {
    let (place, what) = match error {
        store::Error::Damaged { place, source } => (Some(place), source.to_string()),
        error => (None, error.to_string()),
    };
    Fault {
        link,
        place,
        what,
        only_now: false,
    }
}

fn policy_link(store: &Store, faults: &mut Vec<Fault>) -> Link {
    let newest = store.policy.newest().reference;
    let rivals = store.policy.rivals();
    if !rivals.is_empty() {
        faults.extend(rivals.iter().map(|one| Fault {
            link: LinkName::Policy,
            place: Some(store.layout.policy()),
            what: format!(
                "{one}; `hangar policy resolve DIGEST` says which stands, with the root keys"
            ),
            only_now: false,
        }));
        return Link {
            name: LinkName::Policy,
            state: LinkState::Broken,
            detail: format!(
                "version {} of {} has undecided rivals",
                newest.version,
                store.policy.repo().short()
            ),
        };
    }
    Link {
        name: LinkName::Policy,
        state: LinkState::Held,
        detail: format!(
            "version {} of {}, each version signed by the one before it",
            newest.version,
            store.policy.repo().short()
        ),
    }
}

/// What opens sealed versions here without asking anybody.
fn identities(here: &Here, store: &Store) -> Vec<Identity> {
    let mut found = Vec::new();
    if let Ok(dir) = here.data_dir(&store.policy.repo())
        && let Ok(grader) = MachineKey::load(&dir, MachineRole::Grader)
    {
        found.extend(Identity::openssh(grader.secret(), &mut || None));
    }
    found.extend(keys::identity(here, store, &mut |_| None));
    found
}

/// What a person means by a name. One that fits both a task and a revision is refused: the answers
/// differ, and a script would not notice.
fn resolve(store: &Store, name: &str) -> Result<Target, Error> {
    if let Ok(id) = name.parse::<TaskId>() {
        let known = store.head(&store.layout.task(&id))?.is_some();
        return if known {
            Ok(Target::Task(id))
        } else {
            Err(store::Error::NoTask(name.to_owned()).into())
        };
    }
    let task = find_task(store, name)?;
    let commit = match store.repo.resolve(name) {
        Ok(commit) => Some(commit),
        Err(git::Error::NotFound(_) | git::Error::Invalid { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    match (task, commit) {
        (Some(id), None) => Ok(Target::Task(id)),
        (None, Some(commit)) => Ok(Target::Revision(commit)),
        (Some(id), Some(_)) => Err(Error::invalid(format!(
            "`{name}` is both the task {} and a revision; give the task's whole id ({id}) or the whole name (refs/heads/…)",
            id.short()
        ))),
        (None, None) => {
            let damaged = unreadable(store)?;
            if damaged.is_empty() {
                return Err(Error::invalid(format!(
                    "`{name}` is neither a task nor a revision of this repository"
                )));
            }
            Ok(Target::Unreadable(damaged))
        }
    }
}

/// A task by prefix or external key. A damaged task is no reason not to find another.
fn find_task(store: &Store, name: &str) -> Result<Option<TaskId>, Error> {
    let by_prefix = store.tasks_by_prefix(name)?.into_iter();
    let mut found: Vec<_> = by_prefix.map(|(id, _)| (id, String::new())).collect();
    if found.is_empty() {
        match store.tasks_by_key(name) {
            Ok(all) => found.extend(all.into_iter().map(|one| (one.task.id, one.task.title))),
            Err(error) if error.is_of_documents() => {}
            Err(error) => return Err(error.into()),
        }
    }
    if found.len() > 1 {
        return Err(store::Error::Ambiguous {
            prefix: name.to_owned(),
            candidates: found,
        }
        .into());
    }
    Ok(found.pop().map(|(id, _)| id))
}

/// Tasks whose history can't be read, and whose external key is therefore not known.
fn unreadable(store: &Store) -> Result<Vec<TaskId>, Error> {
    let failed = |store: &Store, (id, tip): &(TaskId, ObjectId)| {
        Ok::<_, Error>(store.task_at(id, *tip).is_err().then(|| id.clone()))
    };
    let found = store.map_all(&store.task_refs()?, failed, &mut |_| {})?;
    Ok(found.into_iter().flatten().collect())
}

fn all(store: &Store, identities: &[Identity], answer: &mut Answer) -> Result<(), Error> {
    let mut refs = store.task_refs()?;
    for (name, head) in store.repo.list_refs(&store.layout.archives())? {
        match store.tasks_of_archive(&name, head, "") {
            Ok(archived) => refs.extend(archived),
            Err(error @ store::Error::Damaged { .. }) => {
                answer.faults.push(damage(LinkName::Documents, error));
            }
            Err(error) => return Err(error.into()),
        }
    }
    refs.sort_unstable();
    for (id, _) in &refs {
        answer.tasks.push(verify::verify(store, id, identities)?);
    }
    let known: BTreeSet<&TaskId> = refs.iter().map(|(id, _)| id).collect();
    for kind in OfTask::ALL {
        for (name, _) in store.repo.list_refs(&store.layout.folder(kind))? {
            let owner = store.layout.task_in(kind, &name);
            if owner.is_none_or(|id| !known.contains(&id)) {
                answer.faults.push(Fault {
                    link: LinkName::Documents,
                    place: Some(name),
                    what: "it belongs to a task that is not here: the task's ref was deleted, or this one was renamed".into(),
                    only_now: false,
                });
            }
        }
    }
    Ok(())
}

fn revision(
    here: &Here,
    store: &Store,
    commit: ObjectId,
    identities: &[Identity],
    answer: &mut Answer,
) -> Result<(), Error> {
    let remote = landed::remote(here, store);
    let mut found = verify::revision(store, commit, &|branch| {
        landed::grounds(store, &remote, branch)
    })?;
    if let Some(task) = &found.task
        && store.head(&store.layout.task(task))?.is_some()
    {
        answer.tasks.push(verify::verify(store, task, identities)?);
    }
    answer.faults.append(&mut found.faults);
    answer.revision = Some(found);
    Ok(())
}
