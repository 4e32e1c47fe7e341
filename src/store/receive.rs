//! What a server asks of a push before any ref moves.
//!
//! Refs of ours only grow; what grows is signed by somebody who may, lies where its content says, and
//! is no larger than the format allows; the policy follows the one that is there; a sealed version is
//! never followed by another of its number. What other refs hold is not looked at. Only new commits
//! are judged: what a server has taken before stays as it is.
//!
//! Must not know hooks or how a push is shown. Rules for people: `docs/how-to/hooks.md`.

mod archives;
mod documents;

use super::chain::{self, Folder};
use super::growth::{self, MAX_POLICY, MAX_TAKEN};
use super::layout::{Layout, OfTask, Prefix, RefKind};
use super::policy::{self, PolicyHistory};
use super::tasks::TaskHistory;
use super::{Error, Store, lost, pins, proposal};
use crate::base::clock::Clock;
use crate::git::Repository;
use crate::model::digest::Digest;
use crate::model::event::Event;
use crate::model::ids::TaskId;
use crate::model::object_id::ObjectId;
use documents::Place;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// One ref that a push would move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    /// Full name.
    pub name: String,
    /// Where it is, as the pusher saw it; Git moves it only if that is so.
    pub old: Option<ObjectId>,
    /// Where it would be; `None` deletes it.
    pub new: Option<ObjectId>,
}

/// A ref that must not move, and why, in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Full name.
    pub name: String,
    /// Why.
    pub why: String,
    /// Documents of it that count no more and that an admin can let in.
    pub lost: BTreeSet<Digest>,
}

impl Refused {
    /// This ref must not move.
    pub fn new(name: &str, why: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            why: why.into(),
            lost: BTreeSet::new(),
        }
    }
}

/// Why a ref can't go.
pub const NEVER: &str = "a ref of hangar is never deleted, unless an archive holds it";

/// What is wrong with a name.
const UNKNOWN: &str = "no ref of hangar has this name; a newer hangar on the server may know it";

/// What is wrong with commits that say again what others say.
const COPIES: &str = "it adds only copies of documents that are on the ref already";

/// What is wrong with one ref.
type Judged<T> = Result<T, String>;

/// Judges a push. `wanted` is the repository that this server is for, where it was told; else the
/// first policy that comes decides that.
pub fn judge(
    repo: Repository,
    updates: &[Update],
    wanted: Option<Digest>,
    clock: Clock,
) -> Result<Vec<Refused>, Error> {
    let layout = layout(&repo, updates)?;
    let mut refused = Vec::new();
    let mut good = Vec::new();
    let mut deleted = Vec::new();
    for update in updates {
        if update.new.is_none() && layout.owner(&update.name).is_some() {
            deleted.push(update);
            continue;
        }
        match shape(&repo, &layout, update) {
            Ok(Some(one)) => good.push(one),
            Ok(None) => {}
            Err(why) => refused.push(Refused::new(&update.name, why)),
        }
    }
    // The policy first, then events, then what rests on them.
    good.sort_by(|one, two| (&one.kind, one.name).cmp(&(&two.kind, two.name)));
    let mut policy = match policy::load(&repo, &layout) {
        // What can't be read and holds no version counts as none: the push puts one in its place.
        Err(_) if replaces_junk(&repo, &layout, updates)? => None,
        loaded => loaded?,
    };
    if let (Some(policy), Some(wanted)) = (&policy, wanted)
        && policy.repo() != wanted
    {
        return Err(Error::Pin(other_repository(policy, wanted)));
    }
    if let Some(pushed) = good.iter().find(|one| one.kind == RefKind::Policy) {
        let here = repo
            .read_ref(&layout.policy())?
            .filter(|_| policy.is_some());
        match offered(&repo, here, pushed, wanted) {
            Ok(offered) => policy = Some(offered),
            Err(why) => {
                refused.push(Refused::new(pushed.name, why));
                good.retain(|one| one.kind != RefKind::Policy);
            }
        }
    }
    let Some(policy) = policy else {
        let why = "there is no policy here for it yet; `hangar sync` pushes that first";
        refused.extend(good.iter().map(|one| Refused::new(one.name, why)));
        return Ok(refused);
    };
    let mut judge = Judge {
        store: Store {
            repo,
            layout,
            policy: Arc::new(policy),
            clock,
            heard: super::Heard::default(),
            brought: super::Brought::default(),
            offline: false,
        },
        tasks: BTreeMap::new(),
        tips: BTreeMap::new(),
    };
    for one in &good {
        match judge.content(one) {
            Ok(()) => drop(judge.tips.insert(one.name.to_owned(), one.new)),
            Err(why) => refused.push(Refused {
                lost: judge.lost(one),
                ..Refused::new(one.name, why)
            }),
        }
    }
    for one in deleted {
        if let Err(why) = judge.deletion(one) {
            refused.push(Refused::new(&one.name, why));
        }
    }
    Ok(refused)
}

/// The prefix that is in use, or that the push brings into use.
fn layout(repo: &Repository, updates: &[Update]) -> Result<Layout, Error> {
    let layout = Layout::of(repo)?;
    if layout.place() == Prefix::Hangar && repo.read_ref(&layout.policy())?.is_none() {
        let brings = |name: &str| updates.iter().any(|one| one.name == name);
        if brings(&layout.rival()) && !brings(&layout.policy()) {
            return Ok(Layout::at(Prefix::Branches));
        }
    }
    Ok(layout)
}

/// A ref of ours that goes forward.
struct Growth<'a> {
    name: &'a str,
    kind: RefKind,
    old: Option<ObjectId>,
    new: ObjectId,
    /// Whether it is more than copies of what is there.
    adds: bool,
}

/// What can be said without reading documents: the name, and that nothing is lost. `None` for a ref
/// that is not ours.
fn shape<'a>(repo: &Repository, layout: &Layout, update: &'a Update) -> Judged<Option<Growth<'a>>> {
    let name = update.name.as_str();
    if below_other(layout, update) {
        return Err(format!(
            "the state of this repository lies under {}; to move it, whoever runs this server types `hangar init --prefix {}` in it",
            layout.prefix(),
            layout.place().other().word()
        ));
    }
    if !layout.concerns(name) {
        return Ok(None);
    }
    let Some(new) = update.new else {
        return Err(NEVER.into());
    };
    let kind = layout.kind_of(name).ok_or(UNKNOWN)?;
    // What somebody put there before there was this hook gives way where nothing is lost with it.
    let old = match update.old {
        Some(old) if grows(repo, old, new) => Some(old),
        Some(old) if growth::is_junk_here(repo, old, new) => None,
        Some(old) => return Err(loses(old)),
        None => None,
    };
    let known = known_commits(repo, old)?;
    let most = match kind {
        RefKind::Policy => Some(MAX_POLICY),
        // Each history in it is looked at by itself.
        RefKind::Archive(_) => None,
        _ => Some(MAX_TAKEN),
    };
    let adds = match most {
        Some(most) => growth::check_honest(repo, new, &known, most).map_err(said)?,
        None => true,
    };
    Ok(Some(Growth {
        name,
        kind,
        old,
        new,
        adds,
    }))
}

fn grows(repo: &Repository, old: ObjectId, new: ObjectId) -> bool {
    repo.has_object(old) && repo.is_ancestor(old, new).unwrap_or(false)
}

/// Every commit that is here already, of a ref that was here before.
fn known_commits(repo: &Repository, old: Option<ObjectId>) -> Judged<BTreeSet<ObjectId>> {
    old.map_or_else(
        || Ok(BTreeSet::new()),
        |old| chain::reach(repo, old).map_err(said),
    )
}

/// Whether something would lie under the prefix that is not in use: nobody would judge it, and every clone
/// would meet it. A branch that was there before may go.
fn below_other(layout: &Layout, update: &Update) -> bool {
    let other = layout.place().other();
    if other == Prefix::Hangar {
        return Layout::at(other).concerns(&update.name);
    }
    let lower = update.name.to_ascii_lowercase();
    update.new.is_some() && lower.starts_with(other.as_str())
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Whether a push replaces what somebody put in place of the policy, which is what the pusher says it
/// is: otherwise Git would refuse the policy, and the rest of the push must not be judged by it.
fn replaces_junk(repo: &Repository, layout: &Layout, updates: &[Update]) -> Result<bool, Error> {
    let name = layout.policy();
    let Some(here) = repo.read_ref(&name)? else {
        return Ok(false);
    };
    let mut replaced = updates.iter();
    Ok(replaced.any(|one| {
        let junk = |new| growth::is_junk_here(repo, here, new);
        one.name == name && one.old == Some(here) && one.new.is_some_and(junk)
    }))
}

/// The policy that a push brings; `here` is the one that is there.
fn offered(
    repo: &Repository,
    here: Option<ObjectId>,
    pushed: &Growth<'_>,
    wanted: Option<Digest>,
) -> Judged<PolicyHistory> {
    // What the pusher says was here decides nothing: other refs of the push are judged by this policy,
    // and could be taken while Git refuses the policy itself.
    if let Some(here) = here
        && !repo.is_ancestor(here, pushed.new).map_err(said)?
    {
        return Err(loses(here));
    }
    documents::policy(repo, pushed.old, pushed.new)?;
    let offered = policy::load_at(repo, pushed.new).map_err(said)?;
    pins::check(repo, &offered).map_err(said)?;
    match wanted {
        Some(wanted) if wanted != offered.repo() => Err(other_repository(&offered, wanted)),
        _ => Ok(offered),
    }
}

fn other_repository(policy: &PolicyHistory, wanted: Digest) -> String {
    format!(
        "it is the policy of the repository {}, and `hangar.repo` of this server is {wanted}",
        policy.repo()
    )
}

fn loses(here: ObjectId) -> String {
    format!(
        "it would lose {}, which is here; `hangar sync` joins both",
        here.short()
    )
}

/// The state of the server with what the push adds to it.
struct Judge {
    store: Store,
    /// Tasks that were read, as they would be after the push.
    tasks: BTreeMap<TaskId, TaskHistory>,
    /// Where refs would be that were found good.
    tips: BTreeMap<String, ObjectId>,
}

impl Judge {
    fn content(&mut self, one: &Growth<'_>) -> Judged<()> {
        match &one.kind {
            // Judged before everything else.
            RefKind::Policy => {}
            RefKind::Proposal(digest) => self.proposal(*digest, one)?,
            RefKind::Archive(_) => self.archive(one)?,
            RefKind::Task(task) => self.events(task, one)?,
            RefKind::OfTask(task) => self.documents(task, one)?,
        }
        if one.adds { Ok(()) } else { Err(COPIES.into()) }
    }

    /// Commits with documents: those that are here, and those that the push adds.
    fn folders(&self, one: &Growth<'_>) -> Judged<(Vec<Folder>, Vec<Folder>)> {
        let known = known_commits(&self.store.repo, one.old)?;
        let all = chain::read(&self.store.repo, one.new).map_err(said)?;
        Ok(all.into_iter().partition(|one| known.contains(&one.commit)))
    }

    /// New documents that count no more. Whatever keeps a ref out beside them, they have to be let in.
    fn lost(&self, one: &Growth<'_>) -> BTreeSet<Digest> {
        let new = self.folders(one).map(|(_, new)| new).unwrap_or_default();
        let of = |folder| lost::in_folder(&self.store.policy, &self.store.repo, folder);
        let lost = new.iter().flat_map(of);
        lost.map(|lost| lost.document).collect()
    }

    fn proposal(&self, digest: Digest, one: &Growth<'_>) -> Judged<()> {
        let repo = &self.store.repo;
        for folder in self.folders(one)?.1 {
            documents::policy_names(repo, &folder)?;
        }
        let proposal = proposal::read(repo, digest, one.new).map_err(said)?;
        if policy::is_signed(&self.store.policy, &proposal.draft) {
            Ok(())
        } else {
            Err("nobody who has a say signed this version of the policy".into())
        }
    }

    fn events(&mut self, id: &TaskId, one: &Growth<'_>) -> Judged<()> {
        let new: BTreeSet<ObjectId> = {
            let folders = self.folders(one)?.1;
            for folder in &folders {
                documents::event_names(&self.store.repo, folder)?;
            }
            folders.iter().map(|folder| folder.commit).collect()
        };
        let history = self.store.task_at(id, one.new).map_err(said)?;
        let mut faults = history.faults.iter();
        if let Some(fault) = faults.find(|fault| new.contains(&fault.commit)) {
            return Err(at(fault.commit, &fault.doubt));
        }
        if let Some(commit) = history.pending.iter().find(|one| new.contains(one)) {
            return Err(at(*commit, "an event that it rests on is not here"));
        }
        for record in &history.records {
            if new.contains(&record.commit) {
                rightful(&history, &record.event).map_err(|why| at(record.commit, why))?;
            }
        }
        self.tasks.insert(id.clone(), history);
        Ok(())
    }

    fn documents(&mut self, id: &TaskId, one: &Growth<'_>) -> Judged<()> {
        let (old, new) = self.folders(one)?;
        let requester = self.task(id)?.task.requester.clone();
        let mut kinds = OfTask::ALL.into_iter();
        let kind = kinds.find(|kind| self.store.layout.task_in(*kind, one.name).is_some());
        let place = Place {
            store: &self.store,
            task: id,
            requester: &requester,
            name: one.name,
            kind: kind.ok_or(UNKNOWN)?,
        };
        place.check(&old, &new)
    }

    /// A task as it would be after the push.
    fn task(&mut self, id: &TaskId) -> Judged<&TaskHistory> {
        let name = self.store.layout.task(id);
        if !self.tasks.contains_key(id) {
            let here = self.store.head(&name).map_err(said)?;
            let tip = self.tips.get(&name).copied().or(here);
            let tip = tip.ok_or("the task that it is about is not here")?;
            let history = self.store.task_at(id, tip).map_err(said)?;
            self.tasks.insert(id.clone(), history);
        }
        Ok(&self.tasks[id])
    }
}

/// Whether the signer had the right to every change, whatever the task's state made of it: of two
/// clones that changed a task at the same time one may have come too late.
fn rightful(history: &TaskHistory, event: &super::check::Checked<Event>) -> Judged<()> {
    if let Some(doubt) = &event.reduced {
        return Err(doubt.to_string());
    }
    let requester = &history.task.requester;
    let mut changes = event.value().change.iter();
    changes
        .try_for_each(|change| event.may(change.act(), requester))
        .map_err(said)
}

fn at(commit: ObjectId, why: impl std::fmt::Display) -> String {
    format!("commit {}: {why}", commit.short())
}
