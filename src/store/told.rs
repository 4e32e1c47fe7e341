//! What this clone has told once and need not tell again: a line each in `told.log` of hangar's folder. And
//! what came in passing and nobody has seen yet: a line each in `owed.log`. `dir` is that folder.
//!
//! Nothing is decided by either. A clone that loses them tells something once more, or not at all what
//! `hangar task log` has too, and one that can't write them goes on: they are no reason to fail.

use crate::base::files;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// From this size on `told.log` is rewritten.
const MAX: usize = 256 << 10;

/// How much of it stays of what comes up only with new documents, the newest of it.
const KEPT: usize = MAX / 2;

/// Such lines begin with this.
pub const REFUSED: &str = "refused ";

fn told_log(dir: &Path) -> PathBuf {
    dir.join("told.log")
}

fn owed_log(dir: &Path) -> PathBuf {
    dir.join("owed.log")
}

/// Held while one of the files is changed: what another process adds meanwhile would be lost. Where there can
/// be no lock, the files can't be written either.
fn lock(dir: &Path) -> Option<files::Lock> {
    files::create_private_dir(dir).ok()?;
    files::lock(&dir.join("told.lock")).ok()
}

/// The lines of a file. One that a crash or a full disk tore is like none, and so is a file that is not
/// there.
fn lines(path: &Path) -> (Vec<String>, usize, bool) {
    let bytes = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let whole = bytes.last().is_none_or(|last| *last == b'\n');
    (
        text.lines().map(str::to_owned).collect(),
        bytes.len(),
        whole,
    )
}

/// Adds lines. A torn last line does not swallow the first of them.
fn add(path: &Path, new: &BTreeSet<String>, is_whole: bool) {
    let mut text = String::from(if is_whole { "" } else { "\n" });
    for line in new {
        text.push_str(line);
        text.push('\n');
    }
    let _ = files::append(path, text.as_bytes(), 0o600);
}

/// Those of these that were not told yet.
pub fn untold(dir: &Path, news: impl IntoIterator<Item = String>) -> BTreeSet<String> {
    let mut new: BTreeSet<String> = news.into_iter().collect();
    if new.is_empty() {
        return new;
    }
    for line in lines(&told_log(dir)).0 {
        new.remove(&line);
    }
    new
}

/// These were told now.
pub fn tell(dir: &Path, told: impl IntoIterator<Item = String>) {
    let mut new: BTreeSet<String> = told.into_iter().collect();
    if new.is_empty() {
        return;
    }
    let _lock = lock(dir);
    let path = told_log(dir);
    let (known, size, is_whole) = lines(&path);
    for line in &known {
        new.remove(line);
    }
    if new.is_empty() {
        return;
    }
    add(&path, &new, is_whole);
    if size > MAX {
        let all = known.into_iter().chain(new);
        let _ = files::write_atomic(&path, compacted(all).as_bytes(), 0o600);
    }
}

/// Each line once, and of what comes up only with new documents the newest.
fn compacted(all: impl DoubleEndedIterator<Item = String>) -> String {
    let (mut met, mut kept, mut size) = (BTreeSet::new(), Vec::new(), 0);
    for line in all.rev() {
        let stays = !line.starts_with(REFUSED) || size + line.len() < KEPT;
        if stays && met.insert(line.clone()) {
            size += line.len() + 1;
            kept.push(line + "\n");
        }
    }
    kept.reverse();
    kept.concat()
}

/// What was left to be told, oldest first.
pub fn owed(dir: &Path) -> Vec<String> {
    lines(&owed_log(dir)).0
}

/// These are left to be told. Where there is too much already, they are not kept.
pub fn owe(dir: &Path, left: impl IntoIterator<Item = String>) {
    let mut new: BTreeSet<String> = left.into_iter().collect();
    if new.is_empty() {
        return;
    }
    let _lock = lock(dir);
    let path = owed_log(dir);
    let (known, size, is_whole) = lines(&path);
    for line in &known {
        new.remove(line);
    }
    if size <= MAX && !new.is_empty() {
        add(&path, &new, is_whole);
    }
}

/// These are owed no more.
pub fn settle(dir: &Path, settled: &BTreeSet<String>) {
    if settled.is_empty() {
        return;
    }
    let _lock = lock(dir);
    let mut all = owed(dir);
    let before = all.len();
    all.retain(|line| !settled.contains(line));
    if all.len() < before {
        let text: Vec<String> = all.into_iter().map(|line| line + "\n").collect();
        let _ = files::write_atomic(&owed_log(dir), text.concat().as_bytes(), 0o600);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(lines: &[&str]) -> BTreeSet<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    #[test]
    fn a_torn_line_costs_itself_alone() {
        let dir = tempfile::tempdir().unwrap();
        tell(dir.path(), set(&["one", "two"]));
        let torn = b"caf\xc3";
        files::append(&told_log(dir.path()), torn, 0o600).unwrap();
        tell(dir.path(), set(&["three"]));
        let all = set(&["one", "two", "three", "four"]);
        assert_eq!(untold(dir.path(), all), set(&["four"]));
    }

    #[test]
    fn what_is_asked_for_is_not_told_by_that() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(untold(dir.path(), set(&["one"])), set(&["one"]));
        assert_eq!(untold(dir.path(), set(&["one"])), set(&["one"]));
        tell(dir.path(), set(&["one"]));
        assert_eq!(untold(dir.path(), set(&["one"])), set(&[]));
    }

    #[test]
    fn a_large_log_is_rewritten_without_its_oldest_refusals() {
        let dir = tempfile::tempdir().unwrap();
        tell(dir.path(), set(&["compromised 2 key"]));
        let line = |at: usize| format!("{REFUSED}{at:0100}");
        let count = MAX / line(0).len() + 1;
        tell(dir.path(), (0..count).map(line));
        tell(dir.path(), set(&["last"]));
        let size = std::fs::metadata(told_log(dir.path())).unwrap().len();
        assert!(size < MAX as u64, "{size}");
        let asked = set(&["compromised 2 key", "last", &line(0), &line(count - 1)]);
        assert_eq!(untold(dir.path(), asked), set(&[&line(0)]));
    }

    #[test]
    fn what_several_leave_and_settle_at_once_is_lost_for_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path();
        std::thread::scope(|scope| {
            for own in ["a", "b", "c"] {
                scope.spawn(move || {
                    for number in 0..40 {
                        let (kept, gone) =
                            (format!("{own} {number}"), format!("{own} done {number}"));
                        owe(path, set(&[&kept, &gone]));
                        settle(path, &set(&[&gone]));
                    }
                });
            }
        });
        assert_eq!(owed(path).len(), 120);
    }

    #[test]
    fn what_is_owed_is_kept_until_it_is_settled() {
        let dir = tempfile::tempdir().unwrap();
        owe(dir.path(), set(&["one", "two"]));
        owe(dir.path(), set(&["two"]));
        assert_eq!(owed(dir.path()), ["one", "two"]);
        settle(dir.path(), &set(&["one", "three"]));
        assert_eq!(owed(dir.path()), ["two"]);
    }
}
