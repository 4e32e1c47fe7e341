//! `hangar review`: the card that a person reads before they decide.

use super::changes::Changes;
use crate::app::here::choose as choose_key;
use crate::app::{Error, Here, keys, landed, sync};
use crate::base::files;
use crate::base::words;
use crate::flow;
use crate::flow::stage::{self, Next};
use crate::flow::version::{self, Opened};
use crate::model::digest::Digest;
use crate::model::event::Criterion;
use crate::model::ids::{Alias, TaskId};
use crate::model::manifest::{BaseStatus, Counts, Manifest, Writer};
use crate::model::object_id::ObjectId;
use crate::model::outcome::FailureClass;
use crate::model::plan::Plan;
use crate::model::policy::{Actor, Role};
use crate::model::run::{Run, RunOutcome, RunRole};
use crate::store::Store;
use crate::store::dossier::{Dossier, Held};
use crate::store::identity::holder;
use crate::store::scan::TaskRefs;
use crate::trust::AskPassphrase;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

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

/// What this person was shown, kept on this machine: a decision is about what was shown last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seen {
    /// Format, 1.
    pub format: u32,
    /// The manifest that was shown last.
    pub manifest: Digest,
    /// First look at it, in seconds since 1970.
    pub first: i64,
    /// Files that were opened, each as a digest of manifest and path: names of tests stay inside.
    pub files: Vec<Digest>,
}

fn seen_path(store: &Store, id: &TaskId) -> PathBuf {
    store
        .repo
        .hangar_dir()
        .join("reviews")
        .join(format!("{id}.json"))
}

/// What was shown last of a task.
pub fn seen(store: &Store, id: &TaskId) -> Option<Seen> {
    let bytes = std::fs::read(seen_path(store, id)).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Opens a version and puts the card together.
pub fn review(here: &Here, wanted: &Wanted, ask: &mut AskPassphrase<'_>) -> Result<Card, Error> {
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
    remember(&store, &dossier, seal, &shown)?;
    let beside = Beside {
        shown,
        changes,
        diff,
        transcript,
        unlanded: landed::unlanded(&store, &landed::remote(here, &store), seal.value().base),
    };
    Ok(card(&dossier, seal, &opened, beside))
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
    let newest = store.policy.newest();
    let found = here.keys(Some(&store.repo)).ok();
    let actor = found
        .as_ref()
        .and_then(|found| choose_key(found, store))
        .and_then(|candidate| holder(newest, &candidate.public).ok());
    let Some((Actor::Person { name, role }, _)) = actor else {
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

/// The task that is meant, also where only one can be.
pub fn dossier(store: &Store, name: Option<&str>) -> Result<Dossier, Error> {
    let waits = |next: &Next| matches!(next, Next::AwaitApproval { .. });
    dossier_where(store, name, waits, "an approval")
}

/// The named task, else the only one whose next step `waits` for `what`.
pub(super) fn dossier_where(
    store: &Store,
    name: Option<&str>,
    waits: impl Fn(&Next) -> bool + Sync,
    what: &str,
) -> Result<Dossier, Error> {
    if let Some(name) = name {
        return Ok(store.dossier_of(store.find_task(name)?)?);
    }
    let waiting = |store: &Store, refs: &TaskRefs| {
        let dossier = store.dossier_at(store.task_at(&refs.id, refs.tip)?, refs)?;
        let settings = &store.policy.newest().root.acceptance;
        let next = stage::next(&dossier, settings, store.clock.now());
        Ok::<_, Error>(waits(&next).then_some(dossier))
    };
    let all = store.map_all(&store.listing()?, waiting, &mut |_| {})?;
    let mut waiting: Vec<Dossier> = all.into_iter().flatten().collect();
    match waiting.len() {
        1 => Ok(waiting.remove(0)),
        0 => Err(flow::Error::refused(
            format!("no task waits for {what}"),
            "see `hangar task list`",
        )
        .into()),
        count => Err(flow::Error::refused(
            format!(
                "{} for {what}",
                words::count(count, "task waits", "tasks wait")
            ),
            format!("name the one you mean:{}", named(&waiting)),
        )
        .into()),
    }
}

/// Id and title of each, a line for one.
fn named(waiting: &[Dossier]) -> String {
    let line = |dossier: &Dossier| {
        let (id, title) = (dossier.id().short(), &dossier.history.task.title);
        format!("\n  {id}  {title}")
    };
    waiting.iter().map(line).collect()
}

/// A version by number, or the newest that counts.
pub fn choose(dossier: &Dossier, version: Option<u32>) -> Result<&Held<Manifest>, Error> {
    let found = match version {
        Some(version) => dossier
            .seals
            .iter()
            .find(|seal| seal.value().version == version),
        None => dossier
            .seals
            .iter()
            .rfind(|seal| !dossier.is_aside(seal.digest())),
    };
    found.ok_or_else(|| {
        let what = version.map_or("the task has no sealed tests yet".to_owned(), |version| {
            format!("the task has no sealed version {version}")
        });
        flow::Error::refused(what, "see `hangar sealed list` and `hangar task show`").into()
    })
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
            flow::Error::refused(
                format!("there is no sealed file `{path}`"),
                "the card lists the files",
            )
            .into()
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

/// A writer's turn of which no version was sealed. It names tests, as the card does.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Turn {
    /// Which task.
    pub id: TaskId,
    /// One line.
    pub title: String,
    /// The turn's run.
    pub run: Digest,
    /// Its number.
    pub turn: u32,
    /// How it ended.
    pub outcome: RunOutcome,
    /// What the program said, and what was wrong with the tests.
    pub transcript: String,
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

/// The writer's last turn, where it left nothing that could be sealed.
pub fn last_turn(
    here: &Here,
    task: &str,
    ask: &mut AskPassphrase<'_>,
) -> Result<Option<Turn>, Error> {
    let store = here.store()?;
    let dossier = store.dossier_of(store.find_task(task)?)?;
    let writes = |held: &&Held<Run>| held.value().role == RunRole::Writer;
    let Some(last) = dossier.runs.iter().rfind(writes) else {
        return Ok(None);
    };
    let sealed = dossier.seals.iter().any(
        |seal| matches!(&seal.value().writer, Writer::Agent { run, .. } if *run == last.digest()),
    );
    if sealed {
        return Ok(None);
    }
    let identities = [keys::identity(here, &store, ask)?];
    let transcript = transcript_of(&store, last, &identities)?.ok_or_else(|| {
        flow::Error::refused(
            "the transcript of the last turn can't be opened with your key",
            "it was encrypted to those who could decide about the task then; ask one of them",
        )
    })?;
    Ok(Some(Turn {
        id: dossier.id().clone(),
        title: dossier.history.task.title.clone(),
        run: last.digest(),
        turn: last.value().round,
        outcome: last.value().outcome,
        transcript,
    }))
}

/// The transcript of the run that wrote a version.
fn transcript(
    store: &Store,
    dossier: &Dossier,
    seal: &Held<Manifest>,
    identities: &[crate::seal::Identity],
) -> Result<Option<String>, Error> {
    let Writer::Agent { run, .. } = &seal.value().writer else {
        return Ok(None);
    };
    match dossier.runs.iter().find(|held| held.digest() == *run) {
        Some(held) => transcript_of(store, held, identities),
        None => Ok(None),
    }
}

fn transcript_of(
    store: &Store,
    held: &Held<Run>,
    identities: &[crate::seal::Identity],
) -> Result<Option<String>, Error> {
    let Some(attachment) = held
        .value()
        .attachment
        .iter()
        .find(|one| one.name.starts_with("transcript"))
    else {
        return Ok(None);
    };
    let Some(bytes) = held.folder.file(&store.repo, &attachment.name)? else {
        return Ok(None);
    };
    for identity in identities {
        if let Ok(text) = crate::seal::decrypt(&bytes, identity) {
            return Ok(Some(String::from_utf8_lossy(text.expose()).into_owned()));
        }
    }
    Ok(None)
}

fn remember(
    store: &Store,
    dossier: &Dossier,
    seal: &Held<Manifest>,
    shown: &[Shown],
) -> Result<(), Error> {
    let id = dossier.id();
    let before = seen(store, id).filter(|seen| seen.manifest == seal.digest());
    let mut now = before.unwrap_or_else(|| Seen {
        format: 1,
        manifest: seal.digest(),
        first: store.clock.now().as_second(),
        files: Vec::new(),
    });
    let mark = |file: &Shown| Digest::of(format!("{} {}", seal.digest(), file.path).as_bytes());
    now.files.extend(shown.iter().map(mark));
    now.files.sort();
    now.files.dedup();
    let path = seen_path(store, id);
    if let Some(folder) = path.parent() {
        files::create_private_dir(folder)?;
    }
    let bytes = serde_json::to_vec(&now).expect("digests, numbers and names are JSON");
    Ok(files::write_atomic(&path, &bytes, 0o600)?)
}

/// What is shown beside the card itself.
struct Beside {
    shown: Vec<Shown>,
    changes: Option<Changes>,
    diff: Option<String>,
    transcript: Option<String>,
    unlanded: Option<String>,
}

fn card(dossier: &Dossier, seal: &Held<Manifest>, opened: &Opened, beside: Beside) -> Card {
    let (task, manifest) = (&dossier.history.task, seal.value());
    let aliases = opened.criteria.aliases();
    let test = |id: &crate::model::outcome::TestId| {
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
        stale: manifest.text != task.text_digest(),
        superseded_by: dossier.superseded_by(seal),
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
