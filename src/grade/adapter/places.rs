//! Where the tests of a repository lie, as patterns for its plan.

use std::collections::BTreeSet;

/// Most test files outside the usual folders that are looked at.
pub(super) const MAX_FILES: usize = 50;

/// The folders that hold files, and a pattern for each kind of test file outside them; `habit` where
/// there is no test yet.
pub(super) fn patterns(
    folders: Vec<String>,
    outside: impl Iterator<Item = String>,
    habit: &[&str],
) -> Vec<String> {
    let outside: BTreeSet<String> = outside.collect();
    let named = |folder: &String| !outside.contains(&format!("**/{folder}"));
    let mut found: Vec<String> = folders.into_iter().filter(named).collect();
    found.extend(outside.iter().cloned());
    if found.is_empty() {
        found = habit.iter().map(ToString::to_string).collect();
    }
    found
}

/// Whether a path lies below one of these folders, which may begin with `**/`.
pub(super) fn is_below(path: &str, folders: &[String]) -> bool {
    folders
        .iter()
        .any(|folder| match folder.strip_prefix("**/") {
            Some(name) => path.starts_with(name) || path.contains(&format!("/{name}")),
            None => path.starts_with(folder.as_str()),
        })
}
