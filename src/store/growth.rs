//! What others may add to a ref: how long its history may get, commits that say nothing, and whether
//! anything would be lost with what somebody put in place of a ref.
//!
//! Somebody who can push, without a key, must neither fill a ref until nobody can read it nor keep its
//! news from everybody. Format: `docs/format.md`, "Join of two heads". Must not know how a ref is moved.

use super::chain::{MAX_COMMITS, link, reach};
use super::join::join;
use super::{Error, archive, check, policy};
use crate::git::{ObjectKind, Repository};
use crate::model::object_id::ObjectId;
use std::collections::{BTreeMap, BTreeSet};

/// Most commits of one ref that are taken from others; fewer than are read, so that the next honest
/// one fits.
pub(super) const MAX_TAKEN: usize = 20_000;
/// The same for the policy, which changes rarely.
pub(super) const MAX_POLICY: usize = 5_000;

/// Steps of looking for parents that are apart, for all joins of a history together.
const MAX_STEPS: usize = 2_000_000;

/// Empty commits that are no joins in a history that can be taken. They mean nothing, and whoever takes
/// it names them. An error where it has more than `most` commits.
pub(super) fn check(
    repo: &Repository,
    head: ObjectId,
    most: usize,
) -> Result<Vec<ObjectId>, Error> {
    Ok(look(repo, head, &BTreeSet::new(), most)?.empty)
}

/// The same for a server, to which nobody brings such commits alone: what they come with is judged by
/// itself. `known` is what it has already. Gives whether there are new documents, or sides to join: what is not
/// that makes a ref longer without end.
pub(super) fn check_honest(
    repo: &Repository,
    head: ObjectId,
    known: &BTreeSet<ObjectId>,
    most: usize,
) -> Result<bool, Error> {
    let found = look(repo, head, known, most)?;
    if !found.empty.is_empty() && found.trees.is_empty() {
        return Err(wrong(head, "it holds an empty commit that is no join"));
    }
    // What two clones wrote apart may be the same.
    let copies = !found.trees.is_empty() && !found.joins;
    Ok(!(copies && are_copies(repo, &found.trees, known)?))
}

/// Whether every file of these trees lies in a known commit, under the same name.
fn are_copies(
    repo: &Repository,
    trees: &[ObjectId],
    known: &BTreeSet<ObjectId>,
) -> Result<bool, Error> {
    let mut files = BTreeSet::new();
    let read = |tree: ObjectId| {
        let entries = repo.read_tree(tree)?.into_iter();
        Ok::<_, Error>(
            entries
                .map(|entry| (entry.name, entry.id))
                .collect::<Vec<_>>(),
        )
    };
    for commit in known {
        files.extend(read(repo.read_commit(*commit)?.tree)?);
    }
    for tree in trees {
        if read(*tree)?.iter().any(|file| !files.contains(file)) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn wrong(head: ObjectId, reason: &str) -> Error {
    Error::Document {
        place: format!("the history of {}", head.short()),
        reason: reason.into(),
    }
}

/// What a history holds beside what is known.
#[derive(Default)]
struct Found {
    /// Empty commits that are no joins.
    empty: Vec<ObjectId>,
    /// Trees of commits that are not empty.
    trees: Vec<ObjectId>,
    /// Whether there are joins of what went apart.
    joins: bool,
}

fn look(
    repo: &Repository,
    head: ObjectId,
    known: &BTreeSet<ObjectId>,
    most: usize,
) -> Result<Found, Error> {
    let mut found = Found::default();
    let mut history = History::new();
    let mut joins = Vec::new();
    let mut seen = BTreeSet::from([head]);
    let mut open = vec![(head, None)];
    while let Some((id, child)) = open.pop() {
        let commit = link(repo, id, child)?;
        if !known.contains(&id) {
            if !repo.read_tree(commit.tree)?.is_empty() {
                found.trees.push(commit.tree);
            } else if let Some((one, two)) = joined(repo, id, &commit.parents)? {
                joins.push((id, one, two));
            } else {
                found.empty.push(id);
            }
        }
        let parents = commit.parents.iter().copied();
        let new = parents.filter(|parent| seen.insert(*parent));
        open.extend(new.map(|parent| (parent, Some(id))));
        history.insert(id, commit.parents);
        if seen.len() > most {
            return Err(wrong(head, "it is too long"));
        }
    }
    if !joins.is_empty() {
        let mut apart = Apart::new(&history, head);
        for (id, one, two) in joins {
            if apart.are(one, two) {
                found.joins = true;
            } else {
                found.empty.push(id);
            }
        }
    }
    Ok(found)
}

/// The two parents of an empty commit that is written as their join is. It joins them only if they are
/// apart.
fn joined(
    repo: &Repository,
    id: ObjectId,
    parents: &[ObjectId],
) -> Result<Option<(ObjectId, ObjectId)>, Error> {
    match parents {
        [one, two] if join(repo, *one, *two)? == id => Ok(Some((*one, *two))),
        _ => Ok(None),
    }
}

/// A whole history: commits and their parents.
type History = BTreeMap<ObjectId, Vec<ObjectId>>;

/// Which commits of a history went apart.
struct Apart<'a> {
    history: &'a History,
    /// Commits on the longest way down, itself included.
    depths: BTreeMap<ObjectId, usize>,
    /// Steps that are left.
    steps: usize,
}

impl<'a> Apart<'a> {
    fn new(history: &'a History, head: ObjectId) -> Self {
        let mut depths = BTreeMap::new();
        let mut open = vec![head];
        while let Some(id) = open.last().copied() {
            let parents = history.get(&id).map_or(&[][..], Vec::as_slice);
            let before = open.len();
            open.extend(parents.iter().filter(|one| !depths.contains_key(*one)));
            if open.len() == before {
                let below = parents.iter().filter_map(|one| depths.get(one)).max();
                let depth = below.map_or(1, |below| below + 1);
                depths.insert(id, depth);
                open.pop();
            }
        }
        Self {
            history,
            depths,
            steps: MAX_STEPS,
        }
    }

    /// Whether neither reaches the other. Where that takes too long to find out, they count as not apart.
    fn are(&mut self, one: ObjectId, two: ObjectId) -> bool {
        let depth = |id: &ObjectId| self.depths.get(id).copied().unwrap_or_default();
        // Only the deeper one can reach the other, by commits that are all deeper than that.
        let (top, low) = if depth(&one) > depth(&two) {
            (one, two)
        } else {
            (two, one)
        };
        let floor = depth(&low);
        let mut seen = BTreeSet::from([top]);
        let mut open = vec![top];
        while let Some(id) = open.pop() {
            if id == low || self.steps == 0 {
                return false;
            }
            self.steps -= 1;
            let parents = self.history.get(&id).into_iter().flatten().copied();
            let deep = |id: &ObjectId| self.depths.get(id).is_some_and(|depth| *depth >= floor);
            open.extend(parents.filter(|one| deep(one) && seen.insert(*one)));
        }
        true
    }
}

/// Whether what somebody put in place of a ref of ours can be replaced by `here`: it holds nothing that
/// looks like a document of ours beside what `here` reaches. Where that can't be known, it can't.
pub(super) fn is_junk(repo: &Repository, here: ObjectId, there: ObjectId) -> bool {
    gives_way(repo, Some(here), there, false)
}

/// The same for a server, which does not know whether `new` comes from an honest clone: there an archive
/// that holds a task is none either, whose documents `new` may reach and not list.
pub(super) fn is_junk_here(repo: &Repository, old: ObjectId, new: ObjectId) -> bool {
    gives_way(repo, Some(new), old, true)
}

/// Whether what somebody put at a name that nothing here has holds nothing that looks like a document of
/// ours, nor an archive.
pub(super) fn holds_nothing(repo: &Repository, there: ObjectId) -> bool {
    gives_way(repo, None, there, true)
}

fn gives_way(repo: &Repository, here: Option<ObjectId>, there: ObjectId, archives: bool) -> bool {
    if !repo.has_object(there) {
        return false;
    }
    match repo.read_any(there) {
        Ok((ObjectKind::Blob | ObjectKind::Tree, _)) => true,
        Ok((ObjectKind::Commit, _)) => {
            only_junk(repo, here, there, (MAX_COMMITS, archives)).unwrap_or(false)
        }
        Ok((ObjectKind::Tag, _)) | Err(_) => false,
    }
}

/// Looks at no more than `most` commits: what lies below them may be a document. With `archives` an archive
/// is no junk.
fn only_junk(
    repo: &Repository,
    here: Option<ObjectId>,
    there: ObjectId,
    (most, archives): (usize, bool),
) -> Result<bool, Error> {
    let known = match here {
        Some(here) => reach(repo, here)?,
        None => BTreeSet::new(),
    };
    if known.contains(&there) {
        return Ok(false);
    }
    let mut seen = BTreeSet::from([there]);
    let mut open = vec![(there, None)];
    while let Some((id, child)) = open.pop() {
        if seen.len() > most {
            return Ok(false);
        }
        let commit = link(repo, id, child)?;
        let entries = repo.read_tree(commit.tree)?;
        if entries.iter().any(|one| is_document(&one.name)) {
            return Ok(false);
        }
        if archives && archive::lists(repo, &entries)? {
            return Ok(false);
        }
        let parents = commit.parents.into_iter();
        let new = parents.filter(|parent| !known.contains(parent) && seen.insert(*parent));
        open.extend(new.map(|parent| (parent, Some(id))));
    }
    Ok(true)
}

/// Whether a file at the top of a commit may be a document, or belongs to one. A newer hangar may know
/// documents that this one does not: they are signed like all others.
pub(super) fn is_document(name: &[u8]) -> bool {
    let Ok(name) = std::str::from_utf8(name) else {
        return false;
    };
    match name.rsplit_once('.') {
        Some((stem, "toml")) => check::NAMES.contains(&stem) || policy::NAMES.contains(&stem),
        Some((_, "sig" | "sigs" | "age")) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::process::Run;
    use crate::git::{CommitDraft, EntryKind, TreeEntry};

    fn repository() -> (tempfile::TempDir, Repository) {
        let dir = tempfile::tempdir().unwrap();
        let run = Run::new("git").inherit(&["PATH"]).dir(dir.path());
        let out = run.args(["init", "-q", "--bare", "."]).output().unwrap();
        assert!(out.status.success());
        let repo = Repository::discover(dir.path()).unwrap();
        (dir, repo)
    }

    /// A commit with these files, all of them the same.
    fn commit(repo: &Repository, files: &[&str], parents: &[ObjectId]) -> ObjectId {
        let id = repo.write_blob(b"x").unwrap();
        let entry = |name: &&str| TreeEntry {
            name: name.as_bytes().to_vec(),
            kind: EntryKind::Blob,
            id,
        };
        let tree = files.iter().map(entry).collect::<Vec<_>>();
        let draft = CommitDraft {
            tree: repo.write_tree(&tree).unwrap(),
            parents: parents.to_vec(),
            author_name: "x".into(),
            author_email: "x".into(),
            time_seconds: 0,
            message: "x\n".into(),
        };
        repo.write_commit(&draft).unwrap()
    }

    #[test]
    fn what_lies_below_more_commits_than_are_looked_at_is_no_junk() {
        let (_dir, repo) = repository();
        let base = commit(&repo, &["event.toml", "event.sig"], &[]);
        let here = commit(&repo, &["run.toml", "run.sig"], &[base]);
        let only = |there, most| only_junk(&repo, Some(here), there, (most, false)).unwrap();
        let tail = |from| (0..5).fold(from, |at, _| commit(&repo, &[], &[at]));
        let signed = commit(&repo, &["grade.toml", "grade.sig"], &[base]);
        let over_document = tail(signed);
        for most in 1..10 {
            assert!(!only(over_document, most), "{most}");
        }
        // The same tail over what is here is junk, where all of it was looked at.
        let over_base = tail(base);
        for most in 1..10 {
            assert_eq!(only(over_base, most), most >= 5, "{most}");
        }
        assert!(!only(base, 10), "nothing stands in the way of what is here");
    }

    #[test]
    fn what_a_newer_hangar_may_have_signed_is_no_junk() {
        let (_dir, repo) = repository();
        let here = commit(&repo, &["event.toml", "event.sig"], &[]);
        for (files, junk) in [
            (&["hangar.toml", "Cargo.toml", "README.md"][..], true),
            (&["verdict.toml", "verdict.sig"], false),
            (&["sealed.age"], false),
            (&["members.toml"], false),
            (&["manifest.toml"], false),
        ] {
            let there = commit(&repo, files, &[here]);
            assert_eq!(is_junk(&repo, here, there), junk, "{files:?}");
            let alone = commit(&repo, files, &[]);
            assert_eq!(holds_nothing(&repo, alone), junk, "{files:?}");
        }
    }

    #[test]
    fn a_join_joins_only_what_is_apart() {
        let (_dir, repo) = repository();
        let base = commit(&repo, &["event.toml"], &[]);
        let one = commit(&repo, &["event.toml"], &[base]);
        let two = commit(&repo, &["event.toml", "event.sig"], &[base]);
        let joined = join(&repo, one, two).unwrap();
        let next = commit(&repo, &["event.toml"], &[joined]);
        assert_eq!(check(&repo, next, 10).unwrap(), []);
        // Of what reaches the other, however far below it lies.
        for old in [joined, two, base] {
            let idle = join(&repo, next, old).unwrap();
            let above = commit(&repo, &["event.toml"], &[idle]);
            assert_eq!(check(&repo, above, 10).unwrap(), [idle]);
            let known = reach(&repo, next).unwrap();
            assert!(check_honest(&repo, idle, &known, 10).is_err());
            assert!(check_honest(&repo, above, &known, 10).is_ok());
        }
        let known = BTreeSet::from([base, one, two]);
        assert!(check_honest(&repo, joined, &known, 10).is_ok());
        assert!(check(&repo, next, 4).is_err(), "5 commits");
        // What was joined another way here is no loss either.
        let here = commit(&repo, &["event.toml"], &[one, two]);
        assert!(is_junk(&repo, here, joined));
        assert!(!is_junk(&repo, one, joined));
    }
}
