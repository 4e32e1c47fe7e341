//! Whether a revision is what was delivered: `exact` (the same tree), `rebased` (the same patch on
//! another base), or no; and whether its trailers say what was signed.
//!
//! Cost: the trees of the revision and of the commit that it is compared with are read once; tasks
//! are read one by one until the patch is known to one of them.

use super::trees::Trees;
use super::{Error, Fault, LinkName, Unread, soften, trailers};
use crate::flow::delivery::{MANIFEST_TRAILER, SUITE_TRAILER, TASK_TRAILER, trailer};
use crate::git::TreeFiles;
use crate::model::digest::Digest;
use crate::model::ids::TaskId;
use crate::model::listing::{changes, patch_id};
use crate::model::object_id::ObjectId;
use crate::model::run::RunResult;
use crate::model::task::Delivery;
use crate::store::dossier::Dossier;
use crate::store::{self, Store};
use schemars::JsonSchema;
use serde::Serialize;
use std::rc::Rc;

/// Most commits of a branch whose messages are read for the task.
const MAX_COMMITS: usize = 1000;
/// Most commits of published suites that are left out.
const MAX_SUITES: usize = 100;
/// Paths that are named where a revision differs.
const MAX_PATHS: usize = 10;

/// How a revision compares with a recorded result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sameness {
    /// Its tree is the recorded result.
    Exact,
    /// It makes the recorded patch on another base.
    Rebased,
    /// It is something else.
    No,
}

/// What a revision is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RevisionAnswer {
    /// The commit.
    pub commit: ObjectId,
    /// How it compares.
    pub answer: Sameness,
    /// The task that it belongs to; absent when no task names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The commit that its patch was taken against; absent for a root commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<ObjectId>,
    /// Commits of published suites that were left out.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub left_out: Vec<ObjectId>,
    /// What was seen, in a sentence.
    pub detail: String,
    /// What its trailers say and what was not signed; of a revision that is no result, none.
    #[serde(skip)]
    pub faults: Vec<Fault>,
}

/// Gives the tips of the branch with this name, or of the default branch, the most trusted first.
pub type Upstream<'a> = dyn Fn(Option<&str>) -> Vec<ObjectId> + 'a;

/// Compares a commit with what tasks recorded. `upstream` finds the branch that the commit was cut
/// from: the one that its task names, else the default branch.
///
/// # Errors
/// Only trouble of this machine.
pub fn revision(
    store: &Store,
    commit: ObjectId,
    upstream: &Upstream<'_>,
) -> Result<RevisionAnswer, Error> {
    let mut trees = Trees::new(&store.repo);
    let begun = readable(begin(store, &mut trees, commit, upstream))?;
    let (suites, points) = match begun {
        Ok(begun) => begun,
        Err(reason) => return Ok(no(commit, None, reason.text)),
    };
    let mut first = None;
    for point in points {
        let look = readable(Look::new(store, &mut trees, commit, &suites, point))?;
        let answer = match look {
            Ok(look) => known(store, look)?,
            Err(reason) => no(commit, None, reason.text),
        };
        if answer.answer != Sameness::No {
            return Ok(answer);
        }
        first = first.or(Some(answer));
    }
    Ok(first.unwrap_or_else(|| no(commit, None, "there is nothing to compare it with".into())))
}

/// [`soften`], but what this clone leaves out stays an error: nobody can tell here, which is no answer.
fn readable<T>(result: Result<T, Error>) -> Result<Result<T, Unread>, Error> {
    match result {
        Err(Error::Git(error) | Error::Store(store::Error::Git(error))) if error.is_left_out() => {
            Err(error.into())
        }
        result => soften(result),
    }
}

/// What a revision is without published suites, and the points that its patch may be taken against.
fn begin(
    store: &Store,
    trees: &mut Trees<'_>,
    commit: ObjectId,
    upstream: &Upstream<'_>,
) -> Result<(Suites, Vec<Option<ObjectId>>), Error> {
    let suites = without_suites(store, trees, commit)?;
    let points = compared_with(store, suites.code, upstream)?;
    Ok((suites, points))
}

/// Whether a task knows the revision, as it is from one point on.
fn known(store: &Store, look: Look) -> Result<RevisionAnswer, Error> {
    let commit = look.commit;
    let mut nearest: Option<RevisionAnswer> = None;
    let claimed = look.claimed(store)?;
    for id in &claimed {
        let Some(answer) = look.compare_by_id(store, id)? else {
            continue;
        };
        if answer.answer != Sameness::No {
            return Ok(answer);
        }
        nearest = nearest.or(Some(answer));
    }
    if let Some(answer) = nearest {
        return Ok(answer);
    }
    // No trailer that names a task: the patch itself may still be known.
    for (id, _) in store.all_task_refs()? {
        match look.compare_by_id(store, &id)? {
            Some(answer) if answer.answer != Sameness::No => return Ok(answer),
            _ => {}
        }
    }
    let named = match claimed.first() {
        None => "it names none".to_owned(),
        Some(id) => format!("the task {id} that it names is not here"),
    };
    let mut answer = no(
        commit,
        None,
        format!("no task delivered it: {named}, and no recorded result has its tree or its patch"),
    );
    answer.against = look.against;
    answer.left_out = look.left_out;
    Ok(answer)
}

fn no(commit: ObjectId, task: Option<TaskId>, detail: String) -> RevisionAnswer {
    RevisionAnswer {
        commit,
        answer: Sameness::No,
        task,
        against: None,
        left_out: Vec::new(),
        detail,
        faults: Vec::new(),
    }
}

/// A revision, read.
struct Look {
    commit: ObjectId,
    /// The revision without the commits of published suites.
    code: ObjectId,
    left_out: Vec<ObjectId>,
    /// What trailers of commits that were left out say and what was not signed.
    suite_faults: Vec<Fault>,
    against: Option<ObjectId>,
    tree: ObjectId,
    files: Rc<TreeFiles>,
    patch: Digest,
}

impl Look {
    fn new(
        store: &Store,
        trees: &mut Trees<'_>,
        commit: ObjectId,
        suites: &Suites,
        against: Option<ObjectId>,
    ) -> Result<Self, Error> {
        let code = suites.code;
        let tree = store.repo.read_commit(code)?.tree;
        let files = trees.files(tree)?;
        let before = match against {
            Some(against) => trees.files_of(against)?,
            None => Rc::default(),
        };
        let patch = patch_id(&before.listing, &files.listing);
        Ok(Self {
            commit,
            code,
            left_out: suites.left_out.clone(),
            suite_faults: suites.faults.clone(),
            against,
            tree,
            files,
            patch,
        })
    }

    /// Messages of the commits of the revision, its own first.
    fn messages(&self, store: &Store) -> Result<Vec<(ObjectId, String)>, Error> {
        let mut commits = vec![self.code];
        if let Some(against) = self.against
            && let Ok(more) = soften(store.repo.commits_since(against, self.code, MAX_COMMITS))?
        {
            commits.extend(more.into_iter().filter(|id| *id != self.code));
        }
        let mut found = Vec::new();
        for id in commits {
            if let Ok(commit) = soften(store.repo.read_commit(id))? {
                let text = String::from_utf8_lossy(&commit.message).into_owned();
                found.push((id, text));
            }
        }
        Ok(found)
    }

    /// Tasks that commits of the revision name, the newest commit's first.
    fn claimed(&self, store: &Store) -> Result<Vec<TaskId>, Error> {
        let mut found = Vec::new();
        for (_, text) in self.messages(store)? {
            found.extend(named(&text).filter(|id| !found.contains(id)));
        }
        Ok(found)
    }

    /// What trailers say and what was not signed: of the revision's own commit, and of the others in it
    /// that name the task. Of the recorded commit the task's own report tells.
    fn trailer_faults(
        &self,
        store: &Store,
        dossier: &Dossier,
        delivery: &Delivery,
    ) -> Result<Vec<Fault>, Error> {
        let signed = trailers::of_revision(dossier, delivery);
        let mut found = self.suite_faults.clone();
        for (id, text) in self.messages(store)? {
            let speaks = id == self.code || named(&text).as_ref() == Some(dossier.id());
            if speaks && id != delivery.commit {
                found.extend(faults(id, &text, &signed));
            }
        }
        Ok(found)
    }

    /// Compares with what a task recorded; `None` where there is no such task or it recorded
    /// nothing.
    fn compare_by_id(&self, store: &Store, id: &TaskId) -> Result<Option<RevisionAnswer>, Error> {
        if store.head(&store.layout.task(id))?.is_none() {
            return Ok(None);
        }
        match soften(store.dossier(id))? {
            Ok(dossier) => self.compare(store, &dossier).map(Some),
            Err(reason) => Ok(Some(no(self.commit, Some(id.clone()), reason.text))),
        }
    }

    fn compare(&self, store: &Store, dossier: &Dossier) -> Result<RevisionAnswer, Error> {
        let id = dossier.id().clone();
        let delivered = dossier.history.task.delivery.as_ref();
        let run = delivered.and_then(|delivery| {
            let mut runs = dossier.runs.iter();
            runs.find(|held| held.digest() == delivery.run)
        });
        let result = run.and_then(|held| held.value().result.as_ref());
        let (answer, detail) = match result {
            None => (
                Sameness::No,
                "it names a task whose delivery the refs don't record".to_owned(),
            ),
            Some(result) => self.compare_result(store, result)?,
        };
        let faults = match delivered {
            Some(delivery) if answer != Sameness::No => {
                self.trailer_faults(store, dossier, delivery)?
            }
            _ => Vec::new(),
        };
        Ok(RevisionAnswer {
            faults,
            commit: self.commit,
            answer,
            task: Some(id),
            against: self.against,
            left_out: self.left_out.clone(),
            detail,
        })
    }

    fn compare_result(
        &self,
        store: &Store,
        result: &RunResult,
    ) -> Result<(Sameness, String), Error> {
        if self.tree == result.tree && self.files.listing.digest() == result.listing {
            return Ok((Sameness::Exact, "its tree is the recorded result".into()));
        }
        if self.patch == result.patch {
            let against = self.against.map_or_else(String::new, |id| id.short());
            return Ok((
                Sameness::Rebased,
                format!("it makes the recorded patch on {against}"),
            ));
        }
        let recorded = match soften(store.repo.listing(result.tree))? {
            Ok(files) => files,
            Err(reason) => return Ok((Sameness::No, reason.text)),
        };
        let differs = changes(&recorded.listing, &self.files.listing);
        let names: Vec<String> = differs
            .keys()
            .take(MAX_PATHS)
            .map(|path| String::from_utf8_lossy(path).escape_debug().to_string())
            .collect();
        let more = differs.len().saturating_sub(names.len());
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        Ok((
            Sameness::No,
            format!(
                "it differs from the recorded result in {}{more}, and makes another patch",
                names.join(", ")
            ),
        ))
    }
}

/// The task that the trailer of a message names.
fn named(message: &str) -> Option<TaskId> {
    trailer(message, TASK_TRAILER)?.parse().ok()
}

fn faults(commit: ObjectId, message: &str, signed: &[trailers::Signed]) -> Vec<Fault> {
    let fault = |what| Fault {
        link: LinkName::Delivery,
        place: Some(format!("commit {}", commit.short())),
        what,
        only_now: false,
    };
    let found = trailers::contradicted(message, signed).into_iter();
    found.map(fault).collect()
}

/// A revision without the commits of published suites on top of it.
struct Suites {
    code: ObjectId,
    left_out: Vec<ObjectId>,
    faults: Vec<Fault>,
}

/// The revision under commits of published suites. The trailer alone leaves nothing out: the commit
/// must make exactly the change of the commit that a signed event published.
fn without_suites(store: &Store, trees: &mut Trees<'_>, tip: ObjectId) -> Result<Suites, Error> {
    let mut found = Suites {
        code: tip,
        left_out: Vec::new(),
        faults: Vec::new(),
    };
    while found.left_out.len() < MAX_SUITES {
        let at = found.code;
        let commit = store.repo.read_commit(at)?;
        let text = String::from_utf8_lossy(&commit.message);
        let [parent] = commit.parents[..] else {
            break;
        };
        if trailer(&text, SUITE_TRAILER).is_none() {
            break;
        }
        let Some(id) = named(&text) else {
            break;
        };
        let Some((manifest, published)) = published(store, &id) else {
            break;
        };
        if at != published && own_patch(store, trees, at)? != own_patch(store, trees, published)? {
            break;
        }
        let signed = [
            (TASK_TRAILER, id.to_string()),
            (SUITE_TRAILER, "published".to_owned()),
            (MANIFEST_TRAILER, manifest.to_string()),
        ];
        found.faults.extend(faults(at, &text, &signed));
        found.left_out.push(at);
        found.code = parent;
    }
    Ok(found)
}

/// The tests of a task that were published and the commit that did it, as its history says.
fn published(store: &Store, id: &TaskId) -> Option<(Digest, ObjectId)> {
    store.task(id).ok()?.task.published
}

fn own_patch(
    store: &Store,
    trees: &mut Trees<'_>,
    commit: ObjectId,
) -> Result<Option<Digest>, Error> {
    let [parent] = store.repo.read_commit(commit)?.parents[..] else {
        return Ok(None);
    };
    let before = trees.files_of(parent)?;
    let after = trees.files_of(commit)?;
    Ok(Some(patch_id(&before.listing, &after.listing)))
}

/// What the revision's patch may be taken against: where it left the branch that it was cut from, as the
/// remote last showed that branch, and as it is here, where somebody may have commits that are not pushed
/// yet; where the branch holds it already, its first parent. Of a merge that goes on from a commit of the
/// branch (what a merge button makes) it is that commit, whichever tip of the branch holds it. At least one.
fn compared_with(
    store: &Store,
    commit: ObjectId,
    upstream: &Upstream<'_>,
) -> Result<Vec<Option<ObjectId>>, Error> {
    let own = store.repo.read_commit(commit)?;
    // A merge's message names no task, the message of what it merges does.
    let mut messages = vec![own.message.clone()];
    if let [_, second] = own.parents[..] {
        messages.push(store.repo.read_commit(second)?.message);
    }
    let mut texts = messages
        .iter()
        .map(|message| String::from_utf8_lossy(message));
    let task = texts
        .find_map(|text| named(&text))
        .and_then(|id| store.task(&id).ok())
        .map(|history| history.task);
    let branch = task
        .map(|task| task.base_branch)
        .filter(|name| !name.is_empty());
    // Another branch is asked only where that one is not here: its commits are not the task's ground.
    let tips = [
        branch.map_or_else(Vec::new, |name| upstream(Some(&name))),
        upstream(None),
    ];
    if let [first, _] = own.parents[..] {
        for tip in tips.iter().flatten() {
            if store.repo.merge_base(first, *tip)? == Some(first) {
                return Ok(vec![Some(first)]);
            }
        }
    }
    let first = own.parents.first().copied();
    for tips in tips {
        let mut points = Vec::new();
        for tip in tips {
            if let Some(base) = store.repo.merge_base(commit, tip)? {
                let point = if base == commit { first } else { Some(base) };
                if !points.contains(&point) {
                    points.push(point);
                }
            }
        }
        if !points.is_empty() {
            return Ok(points);
        }
    }
    Ok(vec![first])
}
