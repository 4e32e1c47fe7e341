//! Whether hidden tests got out: into a patch, or into what came out of its author's sandbox with it.
//!
//! The mark of any version of the task is looked for in everything. Where the author was kept from the
//! tests, so is a long piece of their text that stands in nothing that the author was given. A text
//! that was encoded, or written anew in other words, is not found.

use super::Error;
use super::agent;
use super::subject::Subject;
use super::version::Opened;
use crate::grade::shingles::Shingles;
use crate::model::digest::Digest;
use crate::model::outcome::Secrecy;
use crate::model::run::Run;
use crate::model::task::Task;
use crate::seal::{self, Identity};
use crate::store::Store;
use crate::store::dossier::{Dossier, Held};
use std::fmt;

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leak {
    /// The canary of one of the task's versions.
    Mark,
    /// A long piece of the tests' text.
    Piece,
}

impl fmt::Display for Leak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            Self::Mark => "the mark of the hidden tests",
            Self::Piece => "a long piece of the hidden tests",
        };
        write!(
            f,
            "the patch, or what came with it, holds {what}: they got out, and new ones must be sealed"
        )
    }
}

/// Looks through the patch and what came with it.
pub(super) fn find(
    store: &Store,
    dossier: &Dossier,
    opened: &Opened,
    subject: &Subject,
    run: Option<&Held<Run>>,
    grader: &Identity,
) -> Result<Option<Leak>, Error> {
    let mut texts: Vec<Vec<u8>> = subject.changes().into_keys().collect();
    texts.extend(subject.changed_contents(&store.repo)?);
    if let Some(run) = run {
        texts.extend(attachments(store, run, grader)?);
    }
    if holds_mark(&texts, &agent::canaries(dossier)) {
        return Ok(Some(Leak::Mark));
    }
    let kept_apart = run.is_some_and(|run| run.value().secrecy >= Secrecy::Filtered);
    if kept_apart && holds_piece(store, &dossier.history.task, opened, subject, &texts)? {
        return Ok(Some(Leak::Piece));
    }
    Ok(None)
}

/// What came with a run. From the second round on it is sealed, since it may hold ids of tests. What was
/// sealed before this grader was there can't be looked at.
fn attachments(store: &Store, run: &Held<Run>, grader: &Identity) -> Result<Vec<Vec<u8>>, Error> {
    let mut found = Vec::new();
    for attachment in &run.value().attachment {
        let Some(stored) = run.folder.file(&store.repo, &attachment.name)? else {
            continue;
        };
        if !attachment.sealed {
            found.push(stored);
        } else if let Ok(text) = seal::decrypt(&stored, grader) {
            found.push(text.expose().to_vec());
        }
    }
    Ok(found)
}

fn holds_mark(texts: &[Vec<u8>], canaries: &[Digest]) -> bool {
    let is_mark = |digest| canaries.contains(&digest);
    texts.iter().any(|text| seal::scan(text).any(is_mark))
}

fn holds_piece(
    store: &Store,
    task: &Task,
    opened: &Opened,
    subject: &Subject,
    texts: &[Vec<u8>],
) -> Result<bool, Error> {
    let mut tests = Shingles::default();
    for file in opened.payload.files() {
        tests.add(file.bytes.expose());
    }
    let holds = |tests: &Shingles| {
        let holds = |text: &Vec<u8>| {
            let escaped = text.contains(&b'\\');
            tests.has_piece_in(text) || escaped && tests.has_piece_in(&unescaped(text))
        };
        texts.iter().any(holds)
    };
    if !holds(&tests) {
        return Ok(false);
    }
    // Only now, since it may be large: what the author was given is no secret.
    let criteria = task.criteria.iter().map(|one| one.text.as_str());
    let given = [task.title.as_str(), &task.mandate].into_iter();
    let given: Vec<_> = given.chain(criteria).collect();
    tests.subtract(given.join("\n").as_bytes());
    subject.each_content_of_base(&store.repo, |content| {
        tests.subtract(content);
        !tests.is_empty()
    })?;
    Ok(holds(&tests))
}

/// The text that a JSON string holds, as far as layout goes: transcripts are JSON.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'\\' => match bytes.next() {
                Some(b'n' | b't' | b'r') => b' ',
                Some(other) => *other,
                None => b'\\',
            },
            other => *other,
        });
    }
    out
}
