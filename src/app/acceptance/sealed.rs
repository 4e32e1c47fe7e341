//! `hangar sealed list/show/reseal/publish`: manifests, recipients, landing the tests.

use super::machine::{Watch, host};
use super::pick::choose;
use crate::app::{Error, Here, keys};
use crate::flow;
use crate::flow::delivery::{MANIFEST_TRAILER, SUITE_TRAILER, TASK_TRAILER};
use crate::flow::version::Opened;
use crate::flow::{decide, sealing, stage, version};
use crate::git::{BranchCommit, CommitDraft, Expected};
use crate::model::approval::Action;
use crate::model::authority::{Act, may};
use crate::model::digest::Digest;
use crate::model::event::Change;
use crate::model::ids::{Principal, TaskId};
use crate::model::manifest::{Counts, Manifest};
use crate::model::object_id::ObjectId;
use crate::model::task::Task;
use crate::seal::FileMode;
use crate::store::Store;
use crate::store::dossier::{Dossier, Held};
use crate::store::identity::Identity;
use crate::trust::AskPassphrase;
use schemars::JsonSchema;
use serde::Serialize;

/// One sealed version in a list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SealedRow {
    /// Number.
    pub version: u32,
    /// Digest of the manifest.
    pub manifest: Digest,
    /// Claimed time.
    pub sealed: String,
    /// Numbers.
    pub counts: Counts,
    /// Who approved it.
    pub approved_by: Vec<Principal>,
    /// Those of them whose approval expired before it was used: it counts no more.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub expired: Vec<Principal>,
    /// Who rejected it.
    pub rejected_by: Vec<Principal>,
    /// Whether a retry or an adjudication set it aside.
    pub aside: bool,
    /// The newest version, where that is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<u32>,
    /// Whether the task's text was edited after it was written.
    pub stale: bool,
}

/// All versions of a task.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SealedList {
    /// Which task.
    pub id: TaskId,
    /// Oldest first.
    pub versions: Vec<SealedRow>,
}

/// Lists a task's sealed versions.
pub fn list(here: &Here, task: &str) -> Result<SealedList, Error> {
    let store = here.store()?;
    let dossier = store.dossier_of(store.find_task(task)?)?;
    let versions = dossier
        .seals
        .iter()
        .map(|seal| row(&store, &dossier, seal))
        .collect();
    Ok(SealedList {
        id: dossier.id().clone(),
        versions,
    })
}

fn row(store: &Store, dossier: &Dossier, seal: &Held<Manifest>) -> SealedRow {
    let by = |action| {
        let decisions = dossier.decisions_on(seal.digest(), action);
        decisions
            .map(|held| held.document.actor.name().clone())
            .collect()
    };
    let value = seal.value();
    SealedRow {
        version: value.version,
        manifest: seal.digest(),
        sealed: value.signer.at.clone(),
        counts: value.counts,
        approved_by: by(Action::Approve),
        expired: stage::expired(dossier, seal.digest(), store.clock.now())
            .iter()
            .map(|held| held.document.actor.name().clone())
            .collect(),
        rejected_by: by(Action::Reject),
        aside: dossier.is_aside(seal.digest()),
        superseded_by: dossier.superseded_by(seal),
        stale: stage::is_edited(&dossier.history.task, seal),
    }
}

/// A manifest as it was signed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SealedShow {
    /// Its digest.
    pub digest: Digest,
    /// What became of it.
    pub standing: SealedRow,
    /// The document.
    pub manifest: Manifest,
}

/// Shows one manifest.
pub fn show(here: &Here, task: &str, version: Option<u32>) -> Result<SealedShow, Error> {
    let store = here.store()?;
    let dossier = store.dossier_of(store.find_task(task)?)?;
    let seal = choose(&dossier, version)?;
    Ok(SealedShow {
        digest: seal.digest(),
        standing: row(&store, &dossier, seal),
        manifest: seal.value().clone(),
    })
}

/// What a reseal did.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Resealed {
    /// Tasks whose newest version got a new ciphertext.
    pub resealed: Vec<TaskId>,
    /// Tasks whose recipients were right already.
    pub unchanged: usize,
}

/// Encrypts the newest version of one task, or of every live one, to everybody who may read it.
pub fn reseal(here: &Here, task: Option<&str>, watch: &Watch<'_>) -> Result<Resealed, Error> {
    let store = here.store()?;
    let host = host(here, &store, watch, None, None)?;
    let ids = match task {
        Some(task) => vec![store.find_task(task)?.task.id],
        None => store.task_refs()?.into_iter().map(|(id, _)| id).collect(),
    };
    let mut out = Resealed {
        resealed: Vec::new(),
        unchanged: 0,
    };
    for id in ids {
        let dossier = store.dossier(&id)?;
        let Ok(seal) = choose(&dossier, None) else {
            continue;
        };
        match sealing::reseal(&host, &store, &dossier, seal)? {
            Some(_) => out.resealed.push(id),
            None => out.unchanged += 1,
        }
    }
    Ok(out)
}

/// Tests that landed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Published {
    /// Which task.
    pub id: TaskId,
    /// On which branch.
    pub branch: String,
    /// The commit.
    pub commit: ObjectId,
    /// Files.
    pub files: usize,
}

/// Lands the tests of a delivered task as one commit, canaries removed.
pub fn publish(
    here: &Here,
    task: &str,
    branch: Option<&str>,
    ask: &mut AskPassphrase<'_>,
) -> Result<Published, Error> {
    decide::refuse_agents(here.env.keys())?;
    let store = here.store()?;
    let dossier = store.dossier_of(store.find_task(task)?)?;
    let signer = here.signer(&store, ask)?;
    let person = Identity::of(&store.policy, &signer)?;
    let state = &dossier.history.task;
    if !may(&person.actor, Act::Publish, &state.requester) {
        let what = format!("{} may not publish tests", person.principal());
        return Err(flow::Error::refused(what, "an approver or an admin can").into());
    }
    let delivery = state.delivery.as_ref().ok_or_else(|| {
        flow::Error::refused(
            "the task is not delivered yet",
            format!(
                "publish the tests after delivery; `hangar task show {}` says where it stands",
                dossier.id().short()
            ),
        )
    })?;
    let manifest = delivery
        .manifest
        .and_then(|digest| dossier.seal(digest))
        .ok_or_else(|| {
            flow::Error::refused(
                "the task was delivered without sealed tests",
                "there is nothing to publish",
            )
        })?;
    if let Some((published, commit)) = &state.published {
        return Err(flow::Error::refused(
            format!(
                "the tests {} were published already, as {}",
                published.short(),
                commit.short()
            ),
            "there is nothing left to do",
        )
        .into());
    }
    let opened = version::open(
        &store,
        &dossier,
        manifest,
        &[keys::identity(here, &store, ask)?],
    )?;
    let delivered = delivery.branch.trim_start_matches("refs/heads/");
    let branch = branch.unwrap_or(delivered).to_owned();
    let commit = land(&store, state, &opened, &person, &branch)?;
    let change = Change::Publish {
        manifest: manifest.digest(),
        commit,
    };
    store.change_task(dossier.id(), &person, |_| Ok(vec![change.clone()]))?;
    let files = opened.payload.files().len();
    Ok(Published {
        id: dossier.id().clone(),
        branch,
        commit,
        files,
    })
}

/// One commit on `branch` with the sealed files as their writer left them.
fn land(
    store: &Store,
    task: &Task,
    opened: &Opened,
    person: &Identity<'_>,
    branch: &str,
) -> Result<ObjectId, Error> {
    let tip = store
        .repo
        .read_ref(&format!("refs/heads/{branch}"))?
        .ok_or_else(|| {
            flow::Error::refused(
                format!("there is no branch `{branch}`"),
                "name one with --branch",
            )
        })?;
    let clean = |file: &crate::seal::SealedFile| {
        let bytes = crate::seal::remove(file.bytes.expose(), &opened.canary);
        (file.path.clone(), file.mode == FileMode::Executable, bytes)
    };
    let clean: Vec<_> = opened.payload.files().iter().map(clean).collect();
    let files = clean
        .iter()
        .map(|(path, executable, bytes)| (path.as_str(), *executable, bytes.as_slice()));
    let tests = store.repo.write_files(files)?;
    let paths: Vec<&[u8]> = clean.iter().map(|(path, ..)| path.as_bytes()).collect();
    let tree = store.repo.read_commit(tip)?.tree;
    let tree = store
        .repo
        .with_paths_from(tree, tests, &|path| paths.contains(&path))?;
    let draft = CommitDraft {
        tree,
        parents: vec![tip],
        author_name: person.principal().as_str().to_owned(),
        author_email: format!("{}@hangar.invalid", person.principal()),
        time_seconds: store.clock.now().as_second(),
        message: format!(
            "Publish the acceptance tests of {}\n\n{TASK_TRAILER}: {}\n{SUITE_TRAILER}: published\n{MANIFEST_TRAILER}: {}\n",
            task.title, task.id, opened.digest
        ),
    };
    let expected = Expected::At(tip);
    Ok(store.repo.commit_on_branch(&BranchCommit {
        branch,
        expected,
        draft: &draft,
    })?)
}
