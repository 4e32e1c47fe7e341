//! `hangar review --patch` and `hangar approve --patch`: a result that changes CI, hooks, Git's or
//! hangar's configuration is delivered only when an approver signed its patch id.

use super::decide::fits;
use super::run::{GradeWords, words};
use crate::app::{Error, Here, landed, sync};
use crate::base::files;
use crate::flow;
use crate::flow::decide;
use crate::flow::stage::{self, Next};
use crate::flow::subject::Subject;
use crate::git::{self, Repository};
use crate::grade::protect::guarded;
use crate::model::digest::Digest;
use crate::model::ids::{Principal, TaskId};
use crate::model::object_id::ObjectId;
use crate::model::run::Run;
use crate::store::Store;
use crate::store::dossier::{Dossier, Held};
use crate::store::identity::Identity;
use crate::trust::AskPassphrase;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Largest file whose difference is shown, in bytes.
const MAX_SHOWN: u64 = 1 << 20;

/// What an approver reads before they allow a patch.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PatchCard {
    /// Which task.
    pub id: TaskId,
    /// One line.
    pub title: String,
    /// What approving binds: the patch id.
    pub patch: Digest,
    /// Whose run made it.
    pub by: Principal,
    /// The commit that it changes.
    pub base: ObjectId,
    /// Why nothing says that the base was ever landed; absent where the default branch holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unlanded: Option<String>,
    /// The tree that it makes.
    pub tree: ObjectId,
    /// Paths that changed, all together.
    pub changed: usize,
    /// The grade that accepts it; absent for a plain task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grade: Option<GradeWords>,
    /// The changed paths for which it must be allowed, with their differences.
    pub guarded: Vec<GuardedChange>,
}

/// One change that must be allowed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct GuardedChange {
    /// Path.
    pub path: String,
    /// Unified difference; absent for what is no text, larger than 1 MiB, or changes
    /// only its mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

/// An approval of a patch that was signed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PatchApproved {
    /// Which task.
    pub id: TaskId,
    /// The patch id.
    pub patch: Digest,
    /// Who signed.
    pub by: Principal,
}

/// The patch that this person was shown last, kept on this machine.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Seen {
    format: u32,
    patch: Digest,
}

fn seen_path(store: &Store, id: &TaskId) -> PathBuf {
    let folder = store.repo.hangar_dir().join("reviews");
    folder.join(format!("{id}.patch.json"))
}

/// The patch that waits, as a card.
pub fn review(here: &Here, task: Option<&str>) -> Result<PatchCard, Error> {
    decide::hide_from_agents(here.env.keys())?;
    let store = sync::fresh(here)?;
    let dossier = dossier(&store, task)?;
    let (run, subject) = waiting(&store, &dossier)?;
    let changes = subject.changes();
    let card = PatchCard {
        id: dossier.id().clone(),
        title: dossier.history.task.title.clone(),
        patch: subject.patch,
        by: run.value().signer.principal.clone(),
        base: subject.base,
        unlanded: landed::unlanded(&store, &landed::remote(here, &store), subject.base),
        tree: subject.tree,
        changed: changes.len(),
        grade: dossier
            .grades
            .iter()
            .rfind(|held| held.value().subject.patch == subject.patch && held.value().accepted)
            .map(|held| words(held.value())),
        guarded: differences(&store.repo, &subject)?,
    };
    if let Err(error) = remember(&store, &card.id, card.patch) {
        super::review::not_noted(here, &error);
    }
    Ok(card)
}

fn remember(store: &Store, id: &TaskId, patch: Digest) -> Result<(), Error> {
    let seen = Seen { format: 1, patch };
    let path = seen_path(store, id);
    if let Some(folder) = path.parent() {
        files::create_private_dir(folder)?;
    }
    let bytes = serde_json::to_vec(&seen).expect("a digest and a number are JSON");
    Ok(files::write_atomic(&path, &bytes, 0o600)?)
}

/// The task that is meant, also where only one can be.
fn dossier(store: &Store, name: Option<&str>) -> Result<Dossier, Error> {
    let waits = |next: &Next| matches!(next, Next::AwaitPatchApproval { .. });
    super::pick::dossier_where(store, name, waits, "an approval of its patch")
}

/// The run whose patch waits, and the patch as its trees have it. What the run's document says of
/// itself is not believed here: a person signs what these trees are.
fn waiting<'a>(store: &Store, dossier: &'a Dossier) -> Result<(&'a Held<Run>, Subject), Error> {
    let next = stage::next_now(store, dossier);
    let found = match next {
        Next::AwaitPatchApproval { run } => dossier.runs.iter().find(|held| held.digest() == run),
        _ => None,
    };
    let id = dossier.id().short();
    let Some((run, result)) = found.and_then(|run| Some((run, run.value().result.as_ref()?)))
    else {
        let what = "no patch of this task waits for an approval";
        return Err(flow::Error::refused(what, format!("see `hangar task show {id}`")).into());
    };
    let subject = Subject::new(&store.repo, result.base, result.tree)?;
    if subject.patch != result.patch {
        let what = "the run's document names another patch than its trees make";
        return Err(flow::Error::refused(what, format!("see `hangar verify {id}`")).into());
    }
    Ok((run, subject))
}

fn differences(repo: &Repository, subject: &Subject) -> Result<Vec<GuardedChange>, Error> {
    let one = |path: String| {
        let diff = difference(repo, subject.base_tree, subject.tree, &path)?;
        Ok(GuardedChange { path, diff })
    };
    guarded(&subject.changes()).into_iter().map(one).collect()
}

fn difference(
    repo: &Repository,
    base: ObjectId,
    tree: ObjectId,
    path: &str,
) -> Result<Option<String>, Error> {
    let text = |tree| -> Result<Option<String>, Error> {
        let bytes = match repo.blob_in(tree, path, MAX_SHOWN) {
            Ok(bytes) => bytes.unwrap_or_default(),
            // Too large, or a link or a folder: it is named without its content.
            Err(git::Error::TooLarge { .. } | git::Error::Invalid { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // What is no UTF-8 is shown with replacements; a file with NUL bytes is no text.
        let text = || String::from_utf8_lossy(&bytes).into_owned();
        Ok((!bytes.contains(&0)).then(text))
    };
    let (Some(before), Some(after)) = (text(base)?, text(tree)?) else {
        return Ok(None);
    };
    let changes = similar::TextDiff::from_lines(before.as_str(), after.as_str());
    let header = (format!("a/{path}"), format!("b/{path}"));
    let diff = changes
        .unified_diff()
        .header(&header.0, &header.1)
        .to_string();
    Ok(Some(diff).filter(|diff| !diff.is_empty()))
}

/// The patch that an approval of this person would be about: the waiting one, if it is the one that
/// they were shown last. `digest` names it where no terminal asks.
pub fn pending(here: &Here, task: Option<&str>, digest: Option<&str>) -> Result<PatchCard, Error> {
    decide::refuse_agents(here.env.keys())?;
    let store = here.store()?;
    let dossier = dossier(&store, task)?;
    if let Some(actor) = here.known_actor(&store)? {
        decide::may_approve_patch(&actor, &dossier.history.task)?;
    }
    let (_, subject) = waiting(&store, &dossier)?;
    let patch = subject.patch;
    if let Some(named) = digest
        && !fits(patch, named)?
    {
        let what = format!("the waiting patch is {}, not {named}", patch.short());
        return Err(flow::Error::refused(what, "review it, then decide").into());
    }
    let seen = std::fs::read(seen_path(&store, dossier.id())).ok();
    let seen = seen.and_then(|bytes| serde_json::from_slice::<Seen>(&bytes).ok());
    if seen.is_none_or(|seen| seen.patch != patch) {
        let remedy = format!(
            "review it first: hangar review {} --patch",
            dossier.id().short()
        );
        return Err(flow::Error::refused("you have not reviewed this patch here", remedy).into());
    }
    review(here, task)
}

/// Signs that exactly this patch may be delivered.
pub fn approve(
    here: &Here,
    card: &PatchCard,
    ask: &mut AskPassphrase<'_>,
) -> Result<PatchApproved, Error> {
    let store = here.store()?;
    let dossier = store.dossier(&card.id)?;
    let (_, subject) = waiting(&store, &dossier)?;
    if subject.patch != card.patch {
        let remedy = format!("review it first: hangar review {} --patch", card.id.short());
        return Err(flow::Error::refused("another patch waits now", remedy).into());
    }
    let signer = here.signer(&store, ask)?;
    let person = Identity::of(&store.policy, &signer)?;
    decide::approve_patch(&store, &dossier, &person, card.patch)?;
    sync::publish(here)?;
    Ok(PatchApproved {
        id: card.id.clone(),
        patch: card.patch,
        by: person.principal().clone(),
    })
}
