//! `hangar grade`: the sealed grade of any patch.

use super::machine::{Watch, host};
use super::pick::numbered;
use super::taken_in;
use crate::app::{Error, Here};
use crate::flow;
use crate::flow::stage::{self, Contradiction, Next, Unfit};
use crate::flow::subject::Subject;
use crate::flow::verdict::{self, Author, Graded};
use crate::grade::adapter::tests_are_apart;
use crate::grade::protect::guarded;
use crate::model::digest::Digest;
use crate::model::grade::{Grade, GradeCounts, Timing};
use crate::model::ids::TaskId;
use crate::model::manifest::Manifest;
use crate::model::object_id::ObjectId;
use crate::model::outcome::{Secrecy, Trust, Verdict};
use crate::model::plan::Framework;
use crate::model::task::{Flow, State};
use crate::store::Store;
use crate::store::dossier::{Dossier, Held};
use schemars::JsonSchema;
use serde::Serialize;

/// Which patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Patch {
    /// A revision, compared with its merge base with the task's base.
    Revision(String),
    /// The text of a patch that applies to the task's base.
    Text(Vec<u8>),
}

/// A grade for people and programs.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct GradeView {
    /// Which task.
    pub id: TaskId,
    /// Whether every expectation held and nothing was in doubt.
    pub accepted: bool,
    /// Whether the grade says nothing about the patch.
    pub void: bool,
    /// What the sandbox held.
    pub trust: Trust,
    /// How the outcomes were learnt.
    pub verdict: Verdict,
    /// Why the verdict is below `crosschecked` although sentinels held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict_why: Option<String>,
    /// How well the tests were hidden from the author.
    pub secrecy: Secrecy,
    /// Numbers.
    pub counts: GradeCounts,
    /// Why not accepted; empty when it is.
    pub reasons: Vec<String>,
    /// Sealed version.
    pub version: u32,
    /// Its manifest.
    pub manifest: Digest,
    /// Whether that version is approved and decides. A dry run may use one that does not.
    pub approved: bool,
    /// Whether the task's text was edited after that version was written.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub stale: bool,
    /// The signed document; absent for a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grade: Option<Digest>,
    /// Patch id.
    pub patch: Digest,
    /// Whether the patch changes nothing: what was graded is the task's base.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub unchanged: bool,
    /// Whether packages that the patch asks for were there beside those of the base.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub reprepared: bool,
    /// Sandbox provider.
    pub provider: String,
    /// Protected paths that the patch touches beyond the plan.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub protected_touched: Vec<String>,
    /// Changed paths for which an approver must sign the patch id before it is delivered.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub guarded: Vec<String>,
    /// Paths where tests lie, caches of bytecode and snapshots, of which the base's were run: the patch's are
    /// delivered.
    pub put_back: u32,
    /// Limits that were hit.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub limits_hit: Vec<String>,
    /// Wall times.
    pub timing: Timing,
}

/// What to grade and how.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Task by any of its names.
    pub task: String,
    /// Patch.
    pub patch: Patch,
    /// Sealed version; the newest that counts where none is named.
    pub version: Option<u32>,
    /// Sandbox provider.
    pub provider: Option<String>,
    /// Least trust, beside what plan and policy ask for.
    pub require: Option<Trust>,
    /// Record nothing.
    pub dry_run: bool,
}

/// Grades a patch.
pub fn grade(here: &Here, wanted: &Wanted, watch: &Watch<'_>) -> Result<GradeView, Error> {
    let store = here.store()?;
    let dossier = store.dossier_of(store.find_task(&wanted.task)?)?;
    if dossier.history.task.flow == Flow::Plain {
        return Err(flow::Error::refused(
            "a plain task has no hidden tests",
            "there is nothing to grade with; `hangar task new --test-first` makes a task that has",
        )
        .into());
    }
    if let Patch::Text(text) = &wanted.patch
        && !is_patch(text)
    {
        return Err(Error::invalid(
            "this is no patch: it has no line `diff --git …` or `--- …` (`git diff` makes one)",
        ));
    }
    let seal = choose(&store, &dossier, wanted)?;
    let base = dossier.history.task.base;
    let mut of_commit = None;
    let subject = match &wanted.patch {
        Patch::Revision(rev) => {
            let commit = store.repo.resolve(rev)?;
            of_commit = Some(commit);
            subject_of_commit(&store, base, commit)?
        }
        Patch::Text(text) => {
            let tree = store.repo.read_commit(base)?.tree;
            Subject::new(&store.repo, base, store.repo.apply_patch(tree, text)?.tree)?
        }
    };
    let host = host(
        here,
        &store,
        watch,
        wanted.provider.as_deref(),
        wanted.require,
    )?;
    if let Some(commit) = of_commit {
        taken_in::tell(&host, &store, base, commit);
    }
    // A patch that was recorded as a run is graded as that run's.
    let run = dossier.runs.iter().rfind(|held| {
        let same = |result: &crate::model::run::RunResult| {
            result.patch == subject.patch && result.base == subject.base
        };
        held.value().result.as_ref().is_some_and(same)
    });
    let graded = verdict::grade(
        &host,
        &store,
        &dossier,
        seal,
        &subject,
        Author { run },
        wanted.dry_run,
    )?;
    if dossier.history.task.state == State::Done && graded.digest.is_some() {
        host.note("the task is done: this grade stands beside the one that it was delivered with");
    }
    let unfit = stage::fit_now(&store, &dossier, seal).err();
    Ok(view(&graded, &subject, seal, unfit))
}

/// Whether it could be a patch at all. Nothing is one: it changes nothing.
fn is_patch(text: &[u8]) -> bool {
    let begins = |line: &[u8]| line.starts_with(b"diff --git ") || line.starts_with(b"--- ");
    text.trim_ascii().is_empty() || text.split(|byte| *byte == b'\n').any(begins)
}

/// The version to grade with.
fn choose<'a>(
    store: &Store,
    dossier: &'a Dossier,
    wanted: &Wanted,
) -> Result<&'a Held<Manifest>, Error> {
    let id = dossier.id().short();
    let blocked = matches!(
        stage::next_now(store, dossier),
        Next::Blocked(Contradiction::Seals { .. } | Contradiction::Decisions { .. })
    );
    if blocked && !wanted.dry_run {
        return Err(flow::Error::refused(
            "documents about the hidden tests contradict each other",
            format!("see `hangar task show {id}`, then `hangar adjudicate`"),
        )
        .into());
    }
    if let Some(version) = wanted.version {
        return numbered(dossier, version);
    }
    let mut seals = dossier.seals.iter();
    let newest = seals.rfind(|seal| !dossier.is_aside(seal.digest()));
    newest.ok_or_else(|| {
        flow::Error::refused(
            "the hidden tests are not there yet",
            format!("see `hangar task show {id}`"),
        )
        .into()
    })
}

/// What a commit makes of the task's base: its difference to their merge base, on the base.
pub fn subject_of_commit(
    store: &Store,
    base: ObjectId,
    commit: ObjectId,
) -> Result<Subject, Error> {
    let merge_base = store.repo.merge_base(base, commit)?.ok_or_else(|| {
        flow::Error::refused(
            "the revision and the task's base have no common commit",
            "give a revision that was made on top of the base",
        )
    })?;
    let tree = store.repo.read_commit(commit)?.tree;
    if merge_base == base {
        return Ok(Subject::new(&store.repo, base, tree)?);
    }
    let old = store.repo.read_commit(merge_base)?.tree;
    let patch = store.repo.diff_text(old, tree)?;
    let base_tree = store.repo.read_commit(base)?.tree;
    let applied = store.repo.apply_patch(base_tree, &patch)?;
    Ok(Subject::new(&store.repo, base, applied.tree)?)
}

/// Why sentinels that held did not make the verdict `crosschecked`.
fn verdict_why(grade: &Grade, framework: Framework) -> Option<&'static str> {
    let counts = grade.counts;
    let held = counts.sentinels > 0 && counts.sentinels_held == counts.sentinels;
    if !held || !grade.accepted || grade.verdict >= Verdict::Crosschecked {
        None
    } else if tests_are_apart(framework) {
        Some(
            "each test is a process of its own, so no sentinel shared one with the code under test",
        )
    } else {
        Some("a sentinel did not fail as it must behind the tests, or they could not run beside it")
    }
}

fn view(
    graded: &Graded,
    subject: &Subject,
    seal: &Held<Manifest>,
    unfit: Option<Unfit>,
) -> GradeView {
    let grade = &graded.grade;
    GradeView {
        id: grade.task.clone(),
        accepted: grade.accepted,
        void: grade.void,
        trust: grade.trust,
        verdict: grade.verdict,
        verdict_why: verdict_why(grade, seal.value().plan.framework).map(str::to_owned),
        secrecy: grade.secrecy,
        counts: grade.counts,
        reasons: grade.reasons.clone(),
        version: seal.value().version,
        manifest: grade.manifest,
        approved: unfit.is_none(),
        stale: unfit == Some(Unfit::Edited),
        grade: graded.digest,
        patch: grade.subject.patch,
        unchanged: subject.tree == subject.base_tree,
        reprepared: grade.reprepared,
        provider: grade.sandbox.provider.clone(),
        protected_touched: grade.protected_touched.clone(),
        guarded: guarded(&subject.changes()),
        put_back: grade.put_back,
        limits_hit: grade.limits_hit.clone(),
        timing: grade.timing,
    }
}
