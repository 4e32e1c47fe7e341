//! `hangar sync`: the same state here and on a Git remote.

use super::error::with_causes;
use super::here::shell_word;
use super::news;
use super::policy::{PolicyVersion, RivalsView, rivals, versions};
use super::remote;
use super::tasks::archive;
use super::{Error, Here};
use crate::base::words;
use crate::git::{RemoteTrouble, Repository, shown_remote};
use crate::model::digest::Digest;
use crate::model::ids::TaskId;
use crate::model::object_id::ObjectId;
use crate::model::reduction::Why;
use crate::store::layout::{Layout, Prefix};
use crate::store::remotes::Readers;
use crate::store::sync::{self, Loss, NotApplied, NotPushed, Report, Wanted};
use crate::store::{self, Store};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

mod lost;
mod telling;

pub use telling::shown;

/// How long one call of a remote may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// How long a command that only wants the newest waits for the remote.
const SHORT: Duration = Duration::from_secs(10);

/// What a sync did.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SyncView {
    /// Name or address of the remote.
    pub remote: String,
    /// Whether both sides hold the same and everything that came has its effect.
    pub whole: bool,
    /// Below which prefix the remote keeps its refs.
    pub prefix: String,
    /// Refs that it had below the other prefix until now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved: Option<usize>,
    /// Refs that stay below the other prefix there, since they could not be taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stayed: Option<usize>,
    /// Why nothing was moved below the prefix that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_moved: Option<String>,
    /// Who can read the remote; absent where it did not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readers: Option<Readers>,
    /// Refs that took what the remote had.
    pub fetched: Vec<String>,
    /// Refs whose heads had gone apart and were joined.
    pub joined: Vec<String>,
    /// Refs that the remote got.
    pub pushed: Vec<String>,
    /// Ended tasks whose refs went from here or from the remote, since an archive holds them.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub archived: Vec<TaskId>,
    /// Why archived refs could not be deleted on the remote; they do no harm there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_tidied: Option<String>,
    /// What the remote had lost, and whether it has it again.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub losses: Vec<LossView>,
    /// What came and was not applied.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub not_applied: Vec<NotAppliedView>,
    /// What the remote shows at names that nothing here has, and that can't be taken: it keeps nothing back.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub left_alone: Vec<NotAppliedView>,
    /// Commits that came, hold nothing and join nothing; they mean nothing.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub empty: Vec<EmptyView>,
    /// Refs that this version does not know; they are left alone.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unknown: Vec<String>,
    /// Versions of the policy that came, each with what it changed, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub policy: Vec<PolicyVersion>,
    /// Versions of the policy of which it is undecided which stands. Nothing is decided while there are
    /// any.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub rivals: Vec<RivalsView>,
    /// Why something could not be pushed; absent when everything was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_pushed: Option<String>,
    /// What the remote lacks therefore.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unpublished: Vec<String>,
    /// What can be done about it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub remedies: Vec<String>,
}

/// A ref that the remote had and has lost.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LossView {
    /// Its name.
    #[serde(rename = "ref")]
    pub name: String,
    /// `deleted`, `rolled-back`, `rewritten` or `replaced`.
    pub what: LossKind,
    /// Whether this sync put it back.
    pub healed: bool,
}

/// How a remote lost something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossKind {
    /// The ref is gone.
    Deleted,
    /// The ref went back to an earlier commit.
    RolledBack,
    /// The ref shows another history.
    Rewritten,
    /// The ref shows something else, without any document of hangar.
    Replaced,
}

/// A commit that holds nothing and joins nothing: somebody put it on top of a ref.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EmptyView {
    /// The ref.
    #[serde(rename = "ref")]
    pub name: String,
    /// The commit.
    pub commit: ObjectId,
}

/// Something that has no effect here.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotAppliedView {
    /// `ref`, `locked`, `pending`, `quarantined` or `refused`.
    pub kind: NotAppliedKind,
    /// The ref, where a whole ref was left.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The task, where it is about a document of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The commit that holds the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<ObjectId>,
    /// Digest of the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<Digest>,
    /// Why.
    pub why: String,
    /// The document, where an admin can let it count all the same (`hangar policy adopt`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub adopt: Option<Digest>,
    /// What it is remembered as when it was named, where that is not by its event.
    #[serde(skip)]
    told_as: Option<String>,
    /// Whether what the remote has there was looked at and is none of ours.
    #[serde(skip)]
    junk: bool,
}

impl NotAppliedView {
    /// Whether it is a ref of the remote of which there is nothing here.
    pub const fn is_absent(&self) -> bool {
        self.told_as.is_some()
    }

    /// Whether what the remote has there may be taken away there: it was looked at, and is none of ours.
    pub const fn may_go(&self) -> bool {
        self.junk
    }
}

/// Why something has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NotAppliedKind {
    /// A whole ref could not be taken.
    Ref,
    /// A ref whose file is locked in this clone.
    Locked,
    /// It waits for something that is not here.
    Pending,
    /// A document that is not believed.
    Quarantined,
    /// A change that its signer had no right to, or that the task's state forbids.
    Refused,
}

/// Syncs with the named remote, else the one that is meant without a name. With `prefix`, the remote
/// keeps its refs below that one from now on.
pub fn sync(here: &Here, remote: Option<&str>, prefix: Option<Prefix>) -> Result<SyncView, Error> {
    if here.offline {
        return Err(Error::invalid("--offline and sync exclude each other"));
    }
    let (store, remote, restored) = open_or_restore(here, remote)?;
    check_known(&store.repo, &remote)?;
    tell_of_strays(here, &store)?;
    let readers = remote::readers(here, &store.repo, &remote);
    let wanted = Wanted {
        remote: &remote,
        timeout: PATIENCE,
        push: true,
        prefix,
    };
    archive::daily(here, &store)?;
    let policy = store.layout.policy();
    let known: Vec<Digest> = store
        .policy
        .versions()
        .map(|one| one.reference.digest)
        .collect();
    let before = store.policy.newest().reference.version;
    let (store, mut report) = sync::sync(store, &wanted)?;
    if restored {
        report.fetched.insert(policy);
    }
    tell_of_compromise(here, &store, before);
    tell_of_other(here, &report);
    tell_news(here, &store, &report);
    let absent = std::mem::take(&mut report.absent);
    let mut view = view(&store, report);
    telling::absent(&store, absent, &mut view);
    telling::all(&store, &mut view);
    view.readers = readers;
    if !known.contains(&store.policy.newest().reference.digest) {
        view.policy = versions(&store);
        view.policy.retain(|one| !known.contains(&one.digest));
    }
    view.rivals = rivals(&store.policy);
    let all = view.not_applied.is_empty() && view.not_pushed.is_none() && view.not_moved.is_none();
    view.whole = all && view.rivals.is_empty();
    Ok(view)
}

/// The state here and the remote that is meant. A policy that this clone has lost is taken from there
/// first.
fn open_or_restore(here: &Here, remote: Option<&str>) -> Result<(Store, String, bool), Error> {
    let named = |repo: &Repository, store: Option<&Store>| match remote {
        Some(remote) => Ok(remote.to_owned()),
        None => remote::chosen(here, repo, store.map(|store| &*store.policy)),
    };
    match here.store() {
        Err(Error::Store(gone @ store::Error::PolicyGone { .. })) => {
            let repo = here.repository()?;
            let remote = named(&repo, None)?;
            check_known(&repo, &remote)?;
            let wanted = Wanted {
                remote: &remote,
                timeout: PATIENCE,
                push: false,
                prefix: None,
            };
            if !sync::restore_policy(&repo, &wanted)? {
                return Err(gone.into());
            }
            Ok((here.store()?, remote, true))
        }
        opened => {
            let store = opened?;
            let remote = named(&store.repo, Some(&store))?;
            Ok((store, remote, false))
        }
    }
}

/// Who signs with a key that was declared compromised is told what that means and what to do: when it came,
/// after version `before`, and as long as no other key of theirs counts here.
fn tell_of_compromise(here: &Here, store: &Store, before: u64) {
    let Ok(found) = here.keys(Some(&store.repo)) else {
        return;
    };
    let is_helped = matches!(here.known_actor(store), Ok(Some(_)));
    let newest = store.policy.newest();
    let entries = newest.members.reduced.iter();
    let lost = entries
        .filter(|entry| entry.how == Why::Compromised && newest.holder(&entry.key).is_none());
    for entry in lost {
        let mut own = found.candidates.iter();
        let is_told = is_helped && entry.since <= before;
        if !is_told && own.any(|candidate| candidate.public.fingerprint() == entry.key) {
            here.notices.say(&format!(
                "your key {} was declared compromised in version {} of the policy: nothing new that it signs counts, and of what it signed before only what an admin listed. Use it no more: make another (`hangar key new`, then `git config user.signingKey FILE`), have `hangar init` print the line by which an admin adds it, and ask for `hangar policy adopt` where honest documents of yours do not count",
                entry.key, store.policy.declared(entry)
            ));
        }
    }
}

/// Two who founded apart and share a remote would go on side by side without knowing.
fn tell_of_other(here: &Here, report: &Report) {
    let Some((prefix, repo)) = report.other else {
        return;
    };
    let remote = shown_remote(&report.remote);
    let word = shell_word(Path::new(&remote));
    let policy = Layout::at(prefix).policy();
    here.notices.say(&format!(
        "`{remote}` holds another policy too, {repo} below {}: somebody founded it apart from this one, and who uses it shares nothing with this clone. Agree on which of the two stays; hangar.toml on the default branch names it. Whoever may write there takes the other away: `git push --no-verify {word} --delete {policy}`",
        prefix.as_str()
    ));
}

/// A command that ran while the refs were moved may have written below the old prefix.
fn tell_of_strays(here: &Here, store: &Store) -> Result<(), Error> {
    let place = store.layout.place();
    let strays = Layout::at(place.other()).refs(&store.repo)?.count();
    if strays > 0 {
        here.notices.say(&format!(
            "{} below {} as well and not synced: `hangar init --prefix {}` joins them",
            words::count(strays, "ref of hangar lies", "refs of hangar lie"),
            place.other().as_str(),
            place.word()
        ));
    }
    Ok(())
}

/// The state here with what the remote has, for commands that show what others did.
pub fn fresh(here: &Here) -> Result<Store, Error> {
    refresh(here, here.store()?)
}

/// The same for a store that is open.
pub fn refresh(here: &Here, store: Store) -> Result<Store, Error> {
    let Some(remote) = partner(here, &store)?.filter(|_| !here.offline) else {
        return Ok(store);
    };
    match exchange(here, store, &remote, false) {
        Ok((store, _)) => Ok(store),
        Err(error) => {
            let why = with_causes(&error);
            here.notices.say(&format!(
                "`{}` was not asked for news, this is what was known before: {why}",
                shown_remote(&remote)
            ));
            Ok(Store::open(here.repository()?, here.clock)?)
        }
    }
}

/// Pushes what was just decided. What stays unpublished is said; it is recorded here all the same.
pub fn publish(here: &Here) -> Result<(), Error> {
    let store = here.store()?;
    let Some(remote) = partner(here, &store)? else {
        return Ok(());
    };
    if here.offline {
        here.notices.say(&format!(
            "recorded here and not published to `{}`, since --offline was given: `hangar sync` does it",
            shown_remote(&remote)
        ));
        return Ok(());
    }
    let why = match exchange(here, store, &remote, true) {
        Ok((_, report)) => {
            let barred = report.unpublished.first();
            let barred = barred.map(|name| report.why_barred(name));
            report.not_pushed.map(|not| not.why).or(barred)
        }
        Err(error) => Some(with_causes(&error)),
    };
    if let Some(why) = why {
        here.notices.say(&format!(
            "recorded here and not published to `{}`, `hangar sync` does it: {why}",
            shown_remote(&remote)
        ));
    }
    Ok(())
}

/// The configured remote, where this clone has synced with it before. No command begins to share
/// the state by itself.
fn partner(here: &Here, store: &Store) -> Result<Option<String>, Error> {
    let remote = match remote::chosen(here, &store.repo, Some(&store.policy)) {
        // `hangar sync NAME` still works.
        Err(Error::WhichRemote(_)) => return Ok(None),
        chosen => chosen?,
    };
    let known = format!("{}policy", sync::tracking(&remote));
    // What a remote showed stays when it is removed; an address needs no remote.
    let is_name = remote.chars().all(|c| !matches!(c, '/' | ':'));
    let is_gone = is_name && !store.repo.remote_names().contains(&remote);
    if is_gone || store.repo.read_ref(&known)?.is_none() {
        return Ok(None);
    }
    Ok(Some(remote))
}

fn exchange(
    here: &Here,
    store: Store,
    remote: &str,
    push: bool,
) -> Result<(Store, Report), store::Error> {
    if push {
        remote::readers(here, &store.repo, remote);
    }
    let wanted = Wanted {
        remote,
        timeout: SHORT,
        push,
        prefix: None,
    };
    let (store, report) = sync::sync(store, &wanted)?;
    tell_news(here, &store, &report);
    telling::in_passing(here, &store, &report);
    Ok((store, report))
}

/// Tells what came from the arbiter while a command wrote: no later sync would find it new.
pub(super) fn tell_brought(here: &Here) {
    let reports = here.notices.brought().take();
    // What can't be read is told by others.
    let Some(store) = (!reports.is_empty()).then(|| here.store().ok()).flatten() else {
        return;
    };
    for report in reports {
        tell_news(here, &store, &report);
        telling::in_passing(here, &store, &report);
    }
}

fn tell_news(here: &Here, store: &Store, report: &Report) {
    let came = report.fetched.iter().chain(&report.joined);
    let tasks: BTreeSet<TaskId> = came.filter_map(|name| store.layout.owner(name)).collect();
    let policy = store.layout.policy();
    if report.fetched.contains(&policy) || report.joined.contains(&policy) {
        news::tell_of_lost(here, store);
    }
    news::tell(here, store, &tasks.into_iter().collect::<Vec<_>>());
}

/// A plain name must be a configured remote: git would take it for a folder.
fn check_known(repo: &Repository, remote: &str) -> Result<(), Error> {
    let is_address = remote.contains(['/', ':']) || remote == ".";
    let url = repo.config_value(&format!("remote.{remote}.url"));
    if is_address || url.is_some_and(|url| !url.is_empty()) {
        return Ok(());
    }
    Err(Error::NoRemote(shown_remote(remote)))
}

fn view(store: &Store, report: Report) -> SyncView {
    let losses = report.losses.iter().map(|(name, loss)| LossView {
        name: name.clone(),
        what: match loss {
            Loss::Deleted => LossKind::Deleted,
            Loss::RolledBack => LossKind::RolledBack,
            Loss::Rewritten => LossKind::Rewritten,
            Loss::Replaced => LossKind::Replaced,
        },
        healed: report.pushed.contains(name),
    });
    let remedies = report.not_pushed.as_ref().map(|not| match not.trouble {
        Some(trouble) if trouble != RemoteTrouble::Forbidden => remote::remedies(trouble),
        _ => refused(store, &report),
    });
    let empty = report.empty.into_iter();
    let empty = empty.map(|(name, commit)| EmptyView { name, commit });
    SyncView {
        whole: false,
        losses: losses.collect(),
        archived: report.archived.into_iter().collect(),
        not_tidied: report.not_tidied,
        prefix: report.prefix.unwrap_or(Prefix::Hangar).as_str().to_owned(),
        moved: (report.moved > 0).then_some(report.moved),
        stayed: (report.stayed > 0).then_some(report.stayed),
        not_moved: report.not_moved,
        readers: None,
        unpublished: report.unpublished.into_iter().collect(),
        remedies: remedies.unwrap_or_default(),
        remote: shown_remote(&report.remote),
        fetched: report.fetched.into_iter().collect(),
        joined: report.joined.into_iter().collect(),
        pushed: report.pushed.into_iter().collect(),
        not_applied: report.not_applied.into_iter().map(not_applied).collect(),
        left_alone: Vec::new(),
        empty: empty.collect(),
        unknown: report.unknown.into_iter().collect(),
        policy: Vec::new(),
        rivals: Vec::new(),
        not_pushed: report.not_pushed.map(|not| not.why),
    }
}

/// What helps where the remote answers and does not take what it is given.
fn refused(store: &Store, report: &Report) -> Vec<String> {
    // Anybody who runs a remote can say anything; these words choose a hint, and nothing else.
    let judged = |not: &NotPushed| not.why.contains("it says: hangar: ");
    if let Some(to) = report.move_refused {
        let checks = report.not_pushed.as_ref().is_some_and(judged);
        return vec![lost::move_refused(report.prefix, to, checks)];
    }
    if report.not_pushed.as_ref().is_some_and(judged) {
        let mut remedies = vec![
            "a check of the remote refused it, for the reason that it says; that is no question of rights, and what is here stays".to_owned(),
        ];
        let lost = lost::remedies(store, report);
        if !lost.is_empty() {
            remedies.extend(lost);
            return remedies;
        }
        remedies.push(
            "what can't be mended here, somebody who runs the remote has to look at: `hangar verify` names what readers do not believe".to_owned(),
        );
        return remedies;
    }
    if let Some(way) = lost::in_the_way(report) {
        return vec![way];
    }
    let prefix = report.prefix.unwrap_or(Prefix::Hangar);
    let mut remedies = vec![format!(
        "ask whoever runs the remote for the right to push {}*; until then this clone can only read it",
        prefix.as_str()
    )];
    if report.was_empty && report.pushed.is_empty() && prefix == Prefix::Hangar {
        remedies.push(format!(
            "if it takes branches only: `hangar sync {} --prefix branches` keeps the state below {} there",
            shell_word(Path::new(&shown_remote(&report.remote))),
            Prefix::Branches.as_str()
        ));
    }
    remedies
}

fn not_applied(one: NotApplied) -> NotAppliedView {
    let none = NotAppliedView {
        kind: NotAppliedKind::Pending,
        name: None,
        task: None,
        commit: None,
        event: None,
        why: String::new(),
        adopt: None,
        told_as: None,
        junk: false,
    };
    match one {
        NotApplied::Ref { name, why, junk } => NotAppliedView {
            kind: NotAppliedKind::Ref,
            name: Some(name),
            why,
            junk,
            ..none
        },
        NotApplied::Locked { name, why } => NotAppliedView {
            kind: NotAppliedKind::Locked,
            name: Some(name),
            why,
            ..none
        },
        NotApplied::Pending { name } => NotAppliedView {
            name: Some(name),
            why: "its task is not here".into(),
            ..none
        },
        NotApplied::PendingEvent { task, commit } => NotAppliedView {
            task: Some(task),
            commit: Some(commit),
            why: "an event that it rests on is not here".into(),
            ..none
        },
        NotApplied::Quarantined { task, fault } => NotAppliedView {
            kind: NotAppliedKind::Quarantined,
            task: Some(task),
            commit: Some(fault.commit),
            adopt: fault.doubt.adoptable(),
            why: format!("{}: {}", fault.kind, fault.doubt),
            ..none
        },
        NotApplied::Refused {
            task,
            event,
            why,
            adoptable,
        } => NotAppliedView {
            kind: NotAppliedKind::Refused,
            task: Some(task),
            event: Some(event),
            adopt: adoptable.then_some(event),
            why,
            ..none
        },
    }
}
