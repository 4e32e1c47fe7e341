//! Stage `delivering`: the result as one commit on a branch, with trailers that `verify` checks.

use super::Error;
use super::claim;
use super::host::Host;
use super::stage;
use super::subject::Subject;
use crate::git::{self, BranchCommit, CommitDraft, Expected};
use crate::grade::protect;
use crate::model::digest::Digest;
use crate::model::event::Change;
use crate::model::grade::Grade;
use crate::model::object_id::ObjectId;
use crate::model::run::Run;
use crate::model::task::{Flow, Task};
use crate::store::Store;
use crate::store::dossier::{Dossier, Held};
use crate::store::identity::Identity;

/// What was delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    /// Branch, without `refs/heads/`.
    pub branch: String,
    /// The commit.
    pub commit: ObjectId,
}

/// Trailer that names the task.
pub const TASK_TRAILER: &str = "Hangar-Task";
/// Trailer with `passed` or `none`.
pub const ACCEPTANCE_TRAILER: &str = "Hangar-Acceptance";
/// Trailer that names the grade.
pub const GRADE_TRAILER: &str = "Hangar-Grade";
/// Trailer that names the manifest.
pub const MANIFEST_TRAILER: &str = "Hangar-Manifest";
/// Trailer that names the run.
pub const RUN_TRAILER: &str = "Hangar-Run";
/// Trailer of the commit that lands a published suite.
pub const SUITE_TRAILER: &str = "Hangar-Suite";

/// Puts the result of `run` on the task's branch. Approval, run and grade are checked again from
/// the refs, and the patch from its trees. The same task updates the same branch.
pub fn deliver(
    host: &Host<'_>,
    store: &Store,
    dossier: &Dossier,
    run: Digest,
    grade: Option<Digest>,
    pattern: &str,
) -> Result<Delivered, Error> {
    let task = &dossier.history.task;
    let run = dossier
        .runs
        .iter()
        .find(|held| held.digest() == run)
        .ok_or_else(|| gone("run"))?;
    let grade = match grade {
        Some(digest) => Some(checked_grade(store, dossier, run, digest)?),
        None if task.flow == Flow::TestFirst => return Err(gone("grade")),
        None => None,
    };
    if !is_allowed(store, task, run)? {
        return Err(Error::refused(
            "the patch changes CI, hooks or configuration, and no approver signed it",
            format!("see `hangar review {} --patch`", task.id.short()),
        ));
    }
    let branch = branch_name(pattern, task);
    claim::confirm(host, store)?;
    let commit = commit_on_branch(store, task, run, grade, &branch)?;
    let worker = Identity::of(&store.policy, host.worker.signer())?;
    let change = Change::Deliver {
        branch: format!("refs/heads/{branch}"),
        commit,
        run: run.digest(),
        grade: grade.map(Held::digest),
        manifest: grade.map(|grade| grade.value().manifest),
    };
    store.change_task(dossier.id(), &worker, |_| Ok(vec![change.clone()]))?;
    Ok(Delivered { branch, commit })
}

/// Whether a result may go to a branch: it changes no guarded path, or an approver signed its patch
/// id. Computed from the trees, whatever the run document says.
fn is_allowed(store: &Store, task: &Task, run: &Held<Run>) -> Result<bool, Error> {
    let result = run.value().result.as_ref().ok_or_else(|| gone("result"))?;
    let subject = Subject::new(&store.repo, result.base, result.tree)?;
    let changes = subject.changes();
    let honest = result.patch == subject.patch && result.guarded == protect::named(&changes);
    if result.base != task.base || !honest {
        return Err(Error::refused(
            "the run's document and its trees don't belong together",
            format!("see `hangar verify {}`", task.id.short()),
        ));
    }
    Ok(result.guarded.is_empty() || task.approved_patches.contains(&subject.patch))
}

/// Whether the result could go to its branch, as far as that shows before anybody works on it.
pub fn preflight(store: &Store, task: &Task, pattern: &str) -> Result<(), Error> {
    let branch = branch_name(pattern, task);
    let reference = format!("refs/heads/{branch}");
    match store.repo.read_ref(&reference)? {
        Some(tip) => check_own(store, task, tip, &branch),
        None => Ok(store.repo.check_free(&reference)?),
    }
}

/// Puts the branch of a delivered task back where somebody deleted it; one that is there stays as it is.
pub fn put_back(store: &Store, dossier: &Dossier) -> Result<(), Error> {
    let Some(delivery) = &dossier.history.task.delivery else {
        return Ok(());
    };
    // The name is from a document: nothing but a branch is made from it.
    if !is_branch(&delivery.branch) {
        return Err(Error::refused(
            format!(
                "the delivery names {:?}, which is no branch",
                delivery.branch
            ),
            "see `hangar task log`, who recorded it",
        ));
    }
    if store.repo.read_ref(&delivery.branch)?.is_some() {
        return Ok(());
    }
    if !store.repo.has_object(delivery.commit) {
        let branch = delivery.branch.trim_start_matches("refs/heads/");
        return Err(Error::missing(
            format!(
                "the branch `{branch}` and its commit {} are not in this clone",
                delivery.commit.short()
            ),
            format!("fetch it from where it was published: git fetch REMOTE {branch}:{branch}"),
        ));
    }
    let (absent, commit) = (Expected::Absent, Some(delivery.commit));
    let message = "hangar: put a delivered branch back";
    Ok(store
        .repo
        .update_ref(&delivery.branch, absent, commit, message)?)
}

/// Whether a ref is a branch that a person can type.
fn is_branch(name: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "/._-+,@%=".contains(c);
    name.strip_prefix("refs/heads/")
        .is_some_and(|branch| !branch.is_empty() && branch.chars().all(plain))
        && !name.contains("..")
        && !name.contains("//")
}

/// Only this task's own branch is ever moved.
fn check_own(store: &Store, task: &Task, tip: ObjectId, branch: &str) -> Result<(), Error> {
    let message = store.repo.read_commit(tip)?.message;
    let text = String::from_utf8_lossy(&message);
    if trailer(&text, TASK_TRAILER).as_deref() == Some(task.id.as_str()) {
        return Ok(());
    }
    Err(Error::refused(
        format!(
            "the branch `{branch}` is at {}, which this task did not make",
            tip.short()
        ),
        format!(
            "keep what is there under another name, then run it again: git branch -m {branch} NAME"
        ),
    ))
}

/// Puts a result that was not accepted on the task's branch, marked as such, and ends the task as
/// failed. A patch that an approver has to allow first goes to no branch.
pub fn give_up(
    host: &Host<'_>,
    store: &Store,
    dossier: &Dossier,
    run: Digest,
    grade: Digest,
    pattern: &str,
) -> Result<Option<Delivered>, Error> {
    let task = &dossier.history.task;
    let run = dossier
        .runs
        .iter()
        .find(|held| held.digest() == run)
        .ok_or_else(|| gone("run"))?;
    let grade = dossier
        .grades
        .iter()
        .find(|held| held.digest() == grade)
        .ok_or_else(|| gone("grade"))?;
    let branch = branch_name(pattern, task);
    claim::confirm(host, store)?;
    let delivered = if is_allowed(store, task, run)? {
        let commit = commit_on_branch(store, task, run, Some(grade), &branch)?;
        Some(Delivered { branch, commit })
    } else {
        None
    };
    let place = match &delivered {
        Some(delivered) => format!("the last result is on `{}`", delivered.branch),
        None => "the last result changes CI, hooks or configuration and is on no branch".to_owned(),
    };
    let counts = grade.value().counts;
    let summary = format!(
        "acceptance: failed ({} of {} hidden tests passed); {place}",
        counts.passed, counts.expected
    );
    let worker = Identity::of(&store.policy, host.worker.signer())?;
    store.change_task(dossier.id(), &worker, |_| {
        Ok(vec![Change::Fail {
            summary: summary.clone(),
        }])
    })?;
    Ok(delivered)
}

fn gone(what: &str) -> Error {
    Error::refused(
        format!("the {what} that the delivery rests on is not there"),
        "run the task again",
    )
}

/// The grade, if it is accepted, about this run's result, under an approved manifest.
fn checked_grade<'a>(
    store: &Store,
    dossier: &'a Dossier,
    run: &Held<Run>,
    digest: Digest,
) -> Result<&'a Held<Grade>, Error> {
    let grade = dossier
        .grades
        .iter()
        .find(|held| held.digest() == digest)
        .ok_or_else(|| gone("grade"))?;
    let value = grade.value();
    let same = run.value().result.as_ref().is_some_and(|result| {
        result.listing == value.subject.listing && result.base_listing == value.subject.base_listing
    });
    if !value.accepted || value.void || !same {
        return Err(Error::refused(
            "the grade does not accept this result",
            "grade it again (`hangar run`)",
        ));
    }
    let seal = dossier
        .seal(value.manifest)
        .ok_or_else(|| gone("manifest"))?;
    match stage::fit_now(store, dossier, seal) {
        Ok(_) => Ok(grade),
        Err(unfit) => Err(unfit.error(dossier, seal)),
    }
}

/// The branch of a task: `{key}` is its external key, else its short id.
pub fn branch_name(pattern: &str, task: &Task) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' || c == '_' {
            c
        } else {
            '-'
        }
    };
    let key: String = task.external.chars().map(plain).collect();
    // A key without a letter that a branch may have says nothing.
    let key = match key.trim_matches('-') {
        "" => task.id.short(),
        key => key,
    };
    pattern
        .replace("{key}", key)
        .replace("{id}", task.id.short())
}

fn commit_on_branch(
    store: &Store,
    task: &Task,
    run: &Held<Run>,
    grade: Option<&Held<Grade>>,
    branch: &str,
) -> Result<ObjectId, Error> {
    let result = run.value().result.as_ref().ok_or_else(|| gone("result"))?;
    let reference = format!("refs/heads/{branch}");
    let tip = store.repo.read_ref(&reference)?;
    let draft = CommitDraft {
        tree: result.tree,
        parents: vec![result.base],
        author_name: run.document.actor.person().as_str().to_owned(),
        author_email: format!("{}@hangar.invalid", run.document.actor.person()),
        // From the run document, so that delivering again gives the same commit.
        time_seconds: run
            .value()
            .ended
            .parse::<jiff::Timestamp>()
            .map_or(0, jiff::Timestamp::as_second),
        message: message(task, run, grade),
    };
    if let Some(tip) = tip {
        let own = store.repo.read_commit(tip)?;
        if own.tree == draft.tree
            && own.parents == draft.parents
            && own.message == draft.message.as_bytes()
        {
            return Ok(tip);
        }
        check_own(store, task, tip, branch)?;
    }
    match store.repo.commit_on_branch(&BranchCommit {
        branch,
        expected: Expected::from(tip),
        draft: &draft,
    }) {
        Err(git::Error::CheckedOut { branch, worktree }) => Err(Error::refused(
            format!(
                "the branch `{branch}` is checked out in {}",
                worktree.display()
            ),
            "switch to another branch there, then run the task again",
        )),
        other => Ok(other?),
    }
}

fn message(task: &Task, run: &Held<Run>, grade: Option<&Held<Grade>>) -> String {
    let mut lines = vec![task.title.clone(), String::new()];
    if !task.external.is_empty() {
        lines.extend([format!("Task {}.", task.external), String::new()]);
    }
    let mut add = |name: &str, value: String| lines.push(format!("{name}: {value}"));
    add(TASK_TRAILER, task.id.to_string());
    match grade {
        None => add(ACCEPTANCE_TRAILER, "none".into()),
        Some(grade) => {
            let value = grade.value();
            let word = if value.accepted { "passed" } else { "failed" };
            let words = format!(
                "{word}; trust={}; verdict={}; secrecy={}",
                value.trust, value.verdict, value.secrecy
            );
            add(ACCEPTANCE_TRAILER, words);
            add(MANIFEST_TRAILER, value.manifest.to_string());
            add(GRADE_TRAILER, grade.digest().to_string());
        }
    }
    add(RUN_TRAILER, run.digest().to_string());
    lines.join("\n") + "\n"
}

/// The value of a trailer in the last paragraph of a commit message.
pub fn trailer(message: &str, name: &str) -> Option<String> {
    let last = message.trim_end().rsplit("\n\n").next()?;
    let value = last
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(value.trim().to_owned())
}
