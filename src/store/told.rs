//! What this clone has told once and need not tell again: a line each in `told.log` of hangar's folder.
//!
//! Nothing is decided by it. A clone that loses it tells everything once more, and one that can't write
//! it tells it again, so it is no reason to fail.

use crate::base::files;
use crate::git::Repository;
use std::collections::BTreeSet;
use std::path::PathBuf;

fn path(repo: &Repository) -> PathBuf {
    repo.hangar_dir().join("told.log")
}

/// Those of these that were not told yet. They count as told from now on.
pub fn untold(repo: &Repository, news: impl IntoIterator<Item = String>) -> BTreeSet<String> {
    let mut new: BTreeSet<String> = news.into_iter().collect();
    if new.is_empty() {
        return new;
    }
    let known = std::fs::read_to_string(path(repo)).unwrap_or_default();
    for line in known.lines() {
        new.remove(line);
    }
    if !new.is_empty() {
        let lines: Vec<String> = new.iter().map(|line| format!("{line}\n")).collect();
        let _ = files::create_private_dir(&repo.hangar_dir());
        let _ = files::append(&path(repo), lines.concat().as_bytes(), 0o600);
    }
    new
}
