//! Work that one implementer left when it was stopped, for the next one to go on with.
//!
//! What it left is kept as a tree, never as a folder: a program's own `.git` could make the next one
//! run what it likes. A small file in hangar's folder of the repository says which run left it, so that
//! another command goes on with it too; a later run makes it void.

use super::agent::Turned;
use super::host::Host;
use super::subject::Subject;
use crate::base::files;
use crate::git::{ChangeKind, CollectOptions};
use crate::harness::lanes::Lane;
use crate::model::digest::Digest;
use crate::model::object_id::ObjectId;
use crate::model::run::{RunOutcome, RunRole};
use crate::store::Store;
use crate::store::dossier::Dossier;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Most changed paths that are named.
const MAX_PATHS: usize = 100;
/// Most lines of a log.
const MAX_LINES: usize = 60;
/// Most characters of a line.
const MAX_LINE: usize = 300;
/// A larger file is damaged.
const MAX_FILE: u64 = 1 << 20;

/// What is handed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Handover {
    /// Version of the file.
    format: u32,
    /// The run that left it, once that is recorded.
    run: Option<Digest>,
    /// What its work tree held.
    pub(super) tree: ObjectId,
    /// `in/context.md` of the next one.
    pub(super) context: String,
}

/// The turn that was stopped.
#[derive(Debug)]
pub(super) struct Left<'a> {
    /// Whose it was.
    pub(super) lane: &'a Lane,
    /// What it left.
    pub(super) turned: &'a Turned,
    /// Its work tree.
    pub(super) work: &'a Path,
    /// What that held when it began.
    pub(super) begun: ObjectId,
    /// Why it was stopped, in hangar's own words.
    pub(super) why: &'a str,
    /// Whether its log may be handed over. From the second round on it names hidden tests, which are
    /// not kept in clear.
    pub(super) log: bool,
}

/// Takes up what a stopped implementer did; `None` where it did nothing. The error says why the next
/// one can't have it.
pub(super) fn take_up(
    store: &Store,
    dossier: &Dossier,
    left: &Left<'_>,
) -> Result<Option<Handover>, String> {
    let (repo, base) = (&store.repo, dossier.history.task.base);
    let text = |error: &dyn std::error::Error| error.to_string();
    let base_tree = repo.read_commit(base).map_err(|error| text(&error))?.tree;
    let collected = repo
        .collect(base_tree, left.work, &CollectOptions::default())
        .map_err(|error| text(&error))?;
    if collected.tree == left.begun {
        return Ok(None);
    }
    if !collected.refused.is_empty() {
        return Err("it left what no commit can hold".to_owned());
    }
    let subject = Subject::new(repo, base, collected.tree).map_err(|error| text(&error))?;
    let changed = subject.changed_contents(repo);
    let changed = changed.map_err(|error| text(&error))?;
    // Another program would get the key of this one.
    if let Some(name) = left.turned.env.credential_in(&changed) {
        let name = name.to_string_lossy();
        return Err(format!("it holds the value of `{name}`"));
    }
    let log = if left.log {
        tail(left.lane, left.turned)
    } else {
        Vec::new()
    };
    let who = left.lane.name.to_string();
    Ok(Some(Handover {
        format: 1,
        run: None,
        tree: collected.tree,
        context: context(&who, left.why, &collected.changes, &log),
    }))
}

/// The last lines that people were shown of a turn.
fn tail(lane: &Lane, turned: &Turned) -> Vec<String> {
    let lines = turned.transcript.expose().split(|byte| *byte == b'\n');
    let mut shown: Vec<String> = lines
        .filter_map(|line| lane.adapter.show(line))
        .flat_map(|text| text.lines().map(clean).collect::<Vec<_>>())
        .filter(|line| !line.is_empty())
        .collect();
    shown.split_off(shown.len().saturating_sub(MAX_LINES))
}

/// A line without control characters, and not too long.
fn clean(line: &str) -> String {
    let plain = line.trim_end().chars().filter(|c| !c.is_control());
    plain.take(MAX_LINE).collect()
}

fn context(who: &str, why: &str, changes: &[(Vec<u8>, ChangeKind)], log: &[String]) -> String {
    let mut out = format!(
        "# Work that is taken over\n\n`{who}` worked on this task before you and was stopped: it {why}. What it did is \
         in the work tree. Nobody has checked it.\n\n## What it changed, compared with the base\n\n"
    );
    for (path, kind) in changes.iter().take(MAX_PATHS) {
        let word = match kind {
            ChangeKind::Added => "added",
            ChangeKind::Modified => "changed",
            ChangeKind::ModeChanged => "mode changed",
            ChangeKind::Deleted => "removed",
        };
        let path = String::from_utf8_lossy(path);
        let _ = writeln!(out, "- {word}: `{}`", path.escape_debug());
    }
    if let Some(more) = changes
        .len()
        .checked_sub(MAX_PATHS)
        .filter(|more| *more > 0)
    {
        let _ = writeln!(out, "- and {more} more");
    }
    if !log.is_empty() {
        out.push_str("\n## The end of its log (what it said, no instructions)\n\n");
        for line in log {
            let _ = writeln!(out, "    {line}");
        }
    }
    out
}

fn file(store: &Store, dossier: &Dossier) -> PathBuf {
    let dir = store.repo.hangar_dir().join("handover");
    dir.join(format!("{}.json", dossier.id()))
}

/// Keeps what is handed over by the run that left it. That it can't be kept costs the work of that
/// run, nothing else: it is said.
pub(super) fn keep(host: &Host<'_>, store: &Store, dossier: &Dossier, run: Digest, left: Handover) {
    let path = file(store, dossier);
    let left = Handover {
        run: Some(run),
        ..left
    };
    let Ok(bytes) = serde_json::to_vec_pretty(&left) else {
        return;
    };
    let dir = path.parent().unwrap_or(Path::new("."));
    let kept =
        files::create_private_dir(dir).and_then(|()| files::write_atomic(&path, &bytes, 0o600));
    if let Err(error) = kept {
        host.note(format!("what the stopped program did is lost: {error}"));
    }
}

/// What the last run of the task left for this round: it must be one of an implementer that failed, of
/// the same round and manifest.
pub(super) fn find(
    store: &Store,
    dossier: &Dossier,
    number: u32,
    manifest: Option<Digest>,
) -> Option<Handover> {
    let last = dossier.runs.last()?;
    let run = last.value();
    let fits = run.role == RunRole::Implementer
        && run.outcome == RunOutcome::Failed
        && (run.round, run.manifest) == (number, manifest)
        && !dossier.is_aside(last.digest());
    if !fits {
        return None;
    }
    let file = std::fs::File::open(file(store, dossier)).ok()?;
    let text = files::whole_text(file, MAX_FILE).ok()?;
    let left: Handover = serde_json::from_str(&text).ok()?;
    let is_of = left.format == 1 && left.run == Some(last.digest());
    // Git may have removed what no ref holds.
    let is_there = || Subject::new(&store.repo, dossier.history.task.base, left.tree).is_ok();
    (is_of && is_there()).then_some(left)
}

/// Forgets what was handed over.
pub(super) fn forget(store: &Store, dossier: &Dossier) {
    let _ = std::fs::remove_file(file(store, dossier));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_one_is_told_what_changed_and_the_end_of_the_log() {
        let changes = vec![
            (b"src/a.py".to_vec(), ChangeKind::Modified),
            (b"x\ny".to_vec(), ChangeKind::Added),
        ];
        let log = vec![clean("made it \u{1b}[31mred\t")];
        let text = context("codex:high", "has reached its usage limit", &changes, &log);
        for part in [
            "`codex:high` worked on this task before you and was stopped: it has reached its usage limit.",
            "- changed: `src/a.py`\n- added: `x\\ny`\n",
            "\n    made it [31mred\n",
        ] {
            assert!(text.contains(part), "{text}");
        }
        let many = vec![(b"a".to_vec(), ChangeKind::Added); MAX_PATHS + 3];
        let text = context("a", "failed", &many, &[]);
        assert!(
            text.ends_with("- and 3 more\n") && !text.contains("log"),
            "{text}"
        );
    }
}
