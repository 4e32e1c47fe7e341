//! `hangar review`: the card that a person reads before they decide.

use super::changes::Changes;
use super::contradicting::Contradicting;
use super::decide::opposed;
use super::pick::{choose, dossier};
use super::seen::remember;
use super::transcript::{Turn, transcript};
use crate::app::error::with_causes;
use crate::app::{Error, Here, keys, landed, sync};
use crate::flow;
use crate::flow::stage;
use crate::flow::version::{self, Opened};
use crate::grade::weak::{self, Finding, OnBase};
use crate::model::digest::Digest;
use crate::model::event::Criterion;
use crate::model::ids::{Alias, TaskId};
use crate::model::manifest::{BaseStatus, Counts, Manifest, Writer};
use crate::model::object_id::ObjectId;
use crate::model::outcome::{FailureClass, TestId};
use crate::model::plan::Plan;
use crate::model::policy::{Actor, Role};
use crate::store::Store;
use crate::store::dossier::{Dossier, Held};
use crate::trust::AskPassphrase;
use schemars::JsonSchema;
use serde::Serialize;

/// The approval card. It names tests: it is for somebody who can decrypt, and goes to their screen
/// alone.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Card {
    /// Which task.
    pub id: TaskId,
    /// One line.
    pub title: String,
    /// What is to be done.
    pub mandate: String,
    /// Sealed version.
    pub version: u32,
    /// What approving binds.
    pub manifest: Digest,
    /// Whether the task's text was edited after it was written.
    pub stale: bool,
    /// The newest version, where that is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<u32>,
    /// Decisions about it that contradict each other, or versions of the same number: nothing goes on
    /// until somebody says which stands.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub contradicting: Vec<Contradicting>,
    /// Versions whose tests got out, says a grade.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub leaked: Vec<u32>,
    /// Whether the task is over, so that nothing is left to decide.
    pub ended: bool,
    /// Whether it was sealed after code was seen.
    pub after_code: bool,
    /// The commit that the work starts from.
    pub base: ObjectId,
    /// Why nothing says that the base was ever landed; absent where the default branch holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unlanded: Option<String>,
    /// Criteria with their tests.
    pub criteria: Vec<CardCriterion>,
    /// Tests outside every criterion.
    pub others: Vec<CardTest>,
    /// Sentinels by id.
    pub sentinels: Vec<String>,
    /// What is worth a second look before signing. Hints, which block nothing.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub findings: Vec<Finding>,
    /// Numbers.
    pub counts: Counts,
    /// Sealed files with their size in bytes.
    pub files: Vec<CardFile>,
    /// What the writer wants the reviewer to know.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub notes: String,
    /// Who wrote the tests.
    pub writer: Writer,
    /// How they are run.
    pub plan: Plan,
    /// What was asked for, where it was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub shown: Vec<Shown>,
    /// What changed since the version before, or since the one that was asked for; absent where that
    /// one can't be opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<Changes>,
    /// Difference of the files to another version, in unified form; empty where no file differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The writer's transcript.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transcript: Option<String>,
}

/// A criterion on the card.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CardCriterion {
    /// The criterion.
    pub criterion: Criterion,
    /// Whether no test of it fails on the base.
    pub uncovered: bool,
    /// Its tests.
    pub tests: Vec<CardTest>,
}

/// A test on the card.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CardTest {
    /// Public name.
    pub alias: Alias,
    /// The framework's name.
    pub id: String,
    /// How it ended on the base.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<BaseStatus>,
    /// Class of a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<FailureClass>,
    /// Whether repeated runs differed.
    pub flaky: bool,
}

/// A sealed file on the card.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CardFile {
    /// Where it goes.
    pub path: String,
    /// Bytes.
    pub bytes: usize,
}

/// A sealed file's text.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Shown {
    /// Where it goes.
    pub path: String,
    /// Content, with what is no UTF-8 replaced.
    pub text: String,
}

/// What to show beside the card.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Task by any of its names; the only one that waits where none is named.
    pub task: Option<String>,
    /// Every file.
    pub tests: bool,
    /// These files.
    pub files: Vec<String>,
    /// The difference to this version.
    pub diff: Option<u32>,
    /// The writer's transcript.
    pub transcript: bool,
    /// Another version than the newest.
    pub version: Option<u32>,
}

/// Opens a version and puts the card together.
pub fn review(here: &Here, wanted: &Wanted, ask: &mut AskPassphrase<'_>) -> Result<Card, Error> {
    flow::decide::hide_from_agents(here.env.keys())?;
    let store = sync::fresh(here)?;
    let dossier = dossier(&store, wanted.task.as_deref())?;
    let seal = choose(&dossier, wanted.version)?;
    let identities = [keys::identity(here, &store, ask)?];
    let opened = version::open(&store, &dossier, seal, &identities)
        .map_err(|error| unreadable(here, &store, &dossier, error))?;
    let shown = shown(&opened, wanted)?;
    let other = match wanted.diff {
        None => before(&store, &dossier, seal, &identities),
        Some(number) => {
            let other = choose(&dossier, Some(number))?;
            Some(version::open(&store, &dossier, other, &identities)?)
        }
    };
    let changes = other.as_ref().map(|other| Changes::between(other, &opened));
    let diff = other
        .filter(|_| wanted.diff.is_some())
        .map(|other| diff(&other, &opened));
    let transcript = if wanted.transcript {
        transcript(&store, &dossier, seal, &identities)?
    } else {
        None
    };
    let paths = shown.iter().map(|file| file.path.as_str());
    if let Err(error) = remember(&store, dossier.id(), seal.digest(), paths) {
        not_noted(here, &error);
    }
    let beside = Beside {
        contradicting: opposed(&store, &dossier, seal),
        shown,
        changes,
        diff,
        transcript,
        unlanded: landed::unlanded(&store, &landed::remote(here, &store), seal.value().base),
    };
    Ok(card(&dossier, seal, &opened, beside))
}

/// A review is for reading, also where nothing can be written.
pub(super) fn not_noted(here: &Here, error: &Error) {
    let why = with_causes(error);
    here.notices.say(&format!(
        "that you were shown this could not be noted, so nothing can be decided about it here: {why}"
    ));
}

/// The version that this one follows, where it can be opened here.
fn before(
    store: &Store,
    dossier: &Dossier,
    seal: &Held<Manifest>,
    identities: &[crate::seal::Identity],
) -> Option<Opened> {
    let previous = dossier.seal(seal.value().previous?)?;
    version::open(store, dossier, previous, identities).ok()
}

/// Says what helps somebody who can't decrypt: a reseal only where they should be a recipient.
fn unreadable(here: &Here, store: &Store, dossier: &Dossier, error: flow::Error) -> Error {
    if !matches!(error, flow::Error::Decrypt(_)) {
        return error.into();
    }
    let Ok(Some(Actor::Person { name, role })) = here.known_actor(store) else {
        return error.into();
    };
    let requester = &dossier.history.task.requester;
    let what = "these hidden tests are not encrypted to you";
    let remedy = if *requester == name || matches!(role, Role::Approver | Role::Admin) {
        format!(
            "you may read them: an approver or an admin runs `hangar sealed reseal {}`",
            dossier.id().short()
        )
    } else {
        format!(
            "your role is member; an approver reviews (`hangar policy edit --role {name}=approver`, then `hangar sealed reseal --all`)"
        )
    };
    flow::Error::missing(what, remedy).into()
}

fn shown(opened: &Opened, wanted: &Wanted) -> Result<Vec<Shown>, Error> {
    let text = |file: &crate::seal::SealedFile| Shown {
        path: file.path.clone(),
        text: String::from_utf8_lossy(file.bytes.expose()).into_owned(),
    };
    if wanted.tests {
        return Ok(opened.payload.files().iter().map(text).collect());
    }
    let one = |path: &String| {
        opened.payload.file(path).map(text).ok_or_else(|| {
            Error::invalid(format!(
                "there is no sealed file `{path}`; the card lists the files"
            ))
        })
    };
    wanted.files.iter().map(one).collect()
}

/// Both versions' files as one unified difference, without the canaries.
fn diff(old: &Opened, new: &Opened) -> String {
    let text = |opened: &Opened, path: &str| {
        let file = opened.payload.file(path)?;
        let clean = crate::seal::remove(file.bytes.expose(), &opened.canary);
        Some(String::from_utf8_lossy(&clean).into_owned())
    };
    let paths = |opened: &Opened| {
        opened
            .payload
            .files()
            .iter()
            .map(|file| file.path.clone())
            .collect::<Vec<_>>()
    };
    let mut all = paths(old);
    all.extend(paths(new));
    all.sort();
    all.dedup();
    let mut out = String::new();
    for path in all {
        let (before, after) = (text(old, &path), text(new, &path));
        if before == after {
            let mode = |opened: &Opened| opened.payload.file(&path).map(|file| file.mode);
            if mode(old) != mode(new) {
                out.extend([path.as_str(), ": only its mode changed\n"]);
            }
            continue;
        }
        let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
        let changes = similar::TextDiff::from_lines(before.as_str(), after.as_str());
        let header = (
            format!("v{}/{path}", old.manifest.version),
            format!("v{}/{path}", new.manifest.version),
        );
        out.push_str(
            &changes
                .unified_diff()
                .header(&header.0, &header.1)
                .to_string(),
        );
    }
    out
}

/// What `hangar review` answers with.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Reviewed {
    /// A sealed version.
    Card(Box<Card>),
    /// The last turn, where no version came of it and only the transcript was asked for.
    Turn(Turn),
}

/// What is shown beside the card itself.
struct Beside {
    shown: Vec<Shown>,
    changes: Option<Changes>,
    diff: Option<String>,
    transcript: Option<String>,
    unlanded: Option<String>,
    contradicting: Vec<Contradicting>,
}

/// How strong the tests look.
fn findings(manifest: &Manifest, opened: &Opened) -> Vec<Finding> {
    let aliases = opened.criteria.aliases();
    let base = |id: &TestId| {
        let alias = aliases.get(id)?;
        let row = manifest.base_check.iter().find(|row| row.alias == *alias)?;
        Some(OnBase {
            status: row.status,
            class: row.class,
            flaky: row.flaky,
        })
    };
    weak::findings(&weak::Version {
        framework: manifest.plan.framework,
        files: &opened.files(),
        criteria: &opened.criteria,
        base: &base,
    })
}

/// The numbers of the versions that are known to have got out.
fn leaked(dossier: &Dossier) -> Vec<u32> {
    let got_out = |seal: &&Held<Manifest>| stage::is_leaked(dossier, seal.digest());
    let seals = dossier.seals.iter().filter(got_out);
    seals.map(|seal| seal.value().version).collect()
}

fn card(dossier: &Dossier, seal: &Held<Manifest>, opened: &Opened, beside: Beside) -> Card {
    let (task, manifest) = (&dossier.history.task, seal.value());
    let aliases = opened.criteria.aliases();
    let test = |id: &TestId| {
        let alias = aliases.get(id)?.clone();
        let row = manifest.base_check.iter().find(|row| row.alias == alias);
        Some(CardTest {
            id: id.to_string(),
            base: row.map(|row| row.status),
            class: row.and_then(|row| row.class),
            flaky: row.is_some_and(|row| row.flaky),
            alias,
        })
    };
    let criteria = task.criteria.iter().map(|criterion| {
        let ids = opened
            .criteria
            .criteria()
            .find(|(id, _)| **id == criterion.id);
        let tests: Vec<_> = ids
            .into_iter()
            .flat_map(|(_, ids)| ids)
            .filter_map(test)
            .collect();
        let covers = |test: &CardTest| {
            matches!(test.base, Some(BaseStatus::Fails | BaseStatus::Unconfirmed))
        };
        CardCriterion {
            criterion: criterion.clone(),
            uncovered: !tests.iter().any(covers),
            tests,
        }
    });
    Card {
        id: task.id.clone(),
        title: task.title.clone(),
        mandate: task.mandate.clone(),
        version: manifest.version,
        manifest: seal.digest(),
        stale: stage::is_edited(task, seal),
        superseded_by: dossier.superseded_by(seal),
        contradicting: beside.contradicting,
        leaked: leaked(dossier),
        ended: task.state.is_terminal(),
        after_code: manifest.after_code,
        base: manifest.base,
        unlanded: beside.unlanded,
        criteria: criteria.collect(),
        others: opened.criteria.others().iter().filter_map(test).collect(),
        sentinels: opened
            .criteria
            .sentinels()
            .iter()
            .map(ToString::to_string)
            .collect(),
        findings: findings(manifest, opened),
        counts: manifest.counts,
        files: opened
            .payload
            .files()
            .iter()
            .map(|file| CardFile {
                path: file.path.clone(),
                bytes: file.bytes.expose().len(),
            })
            .collect(),
        notes: opened.criteria.notes().to_owned(),
        writer: manifest.writer.clone(),
        plan: manifest.plan.clone(),
        shown: beside.shown,
        changes: beside.changes,
        diff: beside.diff,
        transcript: beside.transcript,
    }
}
