//! What a writer said: the transcript of the run that wrote a version, or of a turn that left none.

use crate::app::{Error, Here, keys};
use crate::flow;
use crate::model::digest::Digest;
use crate::model::ids::TaskId;
use crate::model::manifest::{Manifest, Writer};
use crate::model::run::{Run, RunOutcome, RunRole};
use crate::seal::{self, Identity};
use crate::store::Store;
use crate::store::dossier::{Dossier, Held};
use crate::trust::AskPassphrase;
use schemars::JsonSchema;
use serde::Serialize;

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

/// The writer's last turn, where it left nothing that could be sealed.
pub fn last_turn(
    here: &Here,
    task: &str,
    ask: &mut AskPassphrase<'_>,
) -> Result<Option<Turn>, Error> {
    flow::decide::hide_from_agents(here.env.keys())?;
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
pub(super) fn transcript(
    store: &Store,
    dossier: &Dossier,
    seal: &Held<Manifest>,
    identities: &[Identity],
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
    identities: &[Identity],
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
        if let Ok(text) = seal::decrypt(&bytes, identity) {
            return Ok(Some(String::from_utf8_lossy(text.expose()).into_owned()));
        }
    }
    Ok(None)
}
