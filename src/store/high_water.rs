//! High-water marks: where each ref was when this clone last moved it.
//!
//! A ref of ours only grows. One that does not reach its mark any more was put back, rewritten or
//! deleted behind our back, and what it lost (a rejection, say) may have mattered. `heads.log` in
//! hangar's folder is no cache: losing it loses this memory, and nothing else. A line that is lost in
//! a crash only makes a mark older.

use super::Error;
use super::layout::Layout;
use crate::base::files;
use crate::git::Repository;
use crate::model::object_id::ObjectId;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// From so many bytes on, the file is written anew with one line for each ref.
const COMPACT: usize = 1 << 20;

fn path(repo: &Repository) -> PathBuf {
    repo.hangar_dir().join("heads.log")
}

/// Notes where a ref is now. The ref has moved already, so a full disk must not make that look like a
/// failure: the mark only stays older.
pub(super) fn note(repo: &Repository, name: &str, at: ObjectId) {
    note_all(repo, [(name, at)]);
}

/// The same for several refs.
pub(super) fn note_all<'a>(
    repo: &Repository,
    marks: impl IntoIterator<Item = (&'a str, ObjectId)>,
) {
    let marks = marks.into_iter();
    let lines: Vec<_> = marks.map(|(name, at)| format!("{at} {name}\n")).collect();
    if !lines.is_empty() {
        let _ = files::append(&path(repo), lines.concat().as_bytes(), 0o600);
    }
}

/// The mark of every ref, by its name in this layout: marks outlive a move to another prefix.
pub fn marks(repo: &Repository, layout: &Layout) -> Result<BTreeMap<String, ObjectId>, Error> {
    let text = match std::fs::read_to_string(path(repo)) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(Error::Pin(format!("its memory can't be read: {error}"))),
    };
    let mut marks = BTreeMap::new();
    for line in text.lines() {
        // A line that a crash cut short says nothing.
        if let Some((at, name)) = line.split_once(' ')
            && let Ok(at) = at.parse()
        {
            let moved = Layout::at(layout.place().other()).name_at(name, layout.place());
            marks.insert(moved.unwrap_or_else(|| name.to_owned()), at);
        }
    }
    if text.len() > COMPACT {
        let lines: Vec<String> = marks
            .iter()
            .map(|(name, at)| format!("{at} {name}\n"))
            .collect();
        files::write_atomic(&path(repo), lines.concat().as_bytes(), 0o600)?;
    }
    Ok(marks)
}
