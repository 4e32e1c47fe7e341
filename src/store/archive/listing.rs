//! The files of an archive: which commit each ref of a task was at.
//!
//! The tree of an archive holds `AA/ID`, one file for each task, where `AA` are the second and third
//! character of its id. The file reads like `git show-ref` without the prefix of hangar's refs: a line
//! `COMMIT NAME` for each ref, sorted by name. Format: `docs/format.md`, "Archive".

use crate::git::{EntryKind, Repository, TreeEntry};
use crate::model::ids::TaskId;
use crate::model::object_id::ObjectId;
use crate::store::Error;
use std::collections::{BTreeMap, BTreeSet};

/// Largest file of a task.
const MAX_FILE: u64 = 1 << 20;

/// The refs of one task: name without the prefix (`tasks/…`), commit.
pub type Heads = BTreeMap<String, ObjectId>;

/// The name of a task's events.
pub(in crate::store) fn events(id: &TaskId) -> String {
    format!("tasks/{id}")
}

/// The folder that a task's file lies in.
fn shard(id: &TaskId) -> &str {
    &id.as_str()[1..3]
}

/// What the archive at `head` holds of one task; empty where it holds nothing.
pub(super) fn read(repo: &Repository, head: ObjectId, id: &TaskId) -> Result<Heads, Error> {
    let tree = repo.read_commit(head)?.tree;
    let shard = find(repo, tree, shard(id).as_bytes(), EntryKind::Tree)?;
    let Some(shard) = shard else {
        return Ok(Heads::new());
    };
    match find(repo, shard, id.as_str().as_bytes(), EntryKind::Blob)? {
        Some(blob) => file(repo, blob, id),
        None => Ok(Heads::new()),
    }
}

/// Whether a tree with these entries is that of an archive that holds a task.
pub(in crate::store) fn lists(repo: &Repository, entries: &[TreeEntry]) -> Result<bool, Error> {
    let shards = entries
        .iter()
        .filter(|one| one.kind == EntryKind::Tree && one.name.len() == 2);
    for shard in shards {
        let is_task = |entry: TreeEntry| {
            let id: Option<TaskId> = String::from_utf8_lossy(&entry.name).parse().ok();
            id.is_some_and(|id| self::shard(&id).as_bytes() == shard.name)
        };
        if repo.read_tree(shard.id)?.into_iter().any(is_task) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Every task of an archive whose id begins with `prefix`, with its file.
pub(super) fn tasks(
    repo: &Repository,
    tree: ObjectId,
    prefix: &str,
) -> Result<BTreeMap<TaskId, ObjectId>, Error> {
    let wanted = prefix.get(1..3);
    let mut found = BTreeMap::new();
    for entry in repo.read_tree(tree)? {
        if wanted.is_none_or(|wanted| entry.name == wanted.as_bytes()) {
            found.extend(of_shard(repo, Some(&entry))?);
        }
    }
    found.retain(|id, _| id.as_str().starts_with(prefix));
    Ok(found)
}

/// Every task whose file differs between two trees, with its file in the second. What only the
/// first has is left out.
pub(super) fn newer(
    repo: &Repository,
    old: Option<ObjectId>,
    new: ObjectId,
) -> Result<BTreeMap<TaskId, ObjectId>, Error> {
    let read = |tree: Option<ObjectId>| tree.map_or(Ok(Vec::new()), |tree| repo.read_tree(tree));
    let old = read(old)?;
    let mut found = BTreeMap::new();
    for entry in read(Some(new))? {
        let before = old.iter().find(|other| other.name == entry.name);
        if before.is_some_and(|before| before.id == entry.id) {
            continue;
        }
        let before = of_shard(repo, before)?;
        let after = of_shard(repo, Some(&entry))?;
        found.extend(
            after
                .into_iter()
                .filter(|(id, file)| before.get(id) != Some(file)),
        );
    }
    Ok(found)
}

/// The tree with the files of these tasks put in.
pub(super) fn with(
    repo: &Repository,
    tree: Option<ObjectId>,
    changed: &BTreeMap<&TaskId, &Heads>,
) -> Result<ObjectId, Error> {
    let mut root = by_name(repo, tree)?;
    let shards: BTreeSet<&str> = changed.keys().map(|id| shard(id)).collect();
    for name in shards {
        let old = root.get(name.as_bytes()).map(|entry| entry.id);
        let mut files = by_name(repo, old)?;
        for (id, heads) in changed.iter().filter(|(id, _)| shard(id) == name) {
            let entry = TreeEntry {
                name: id.as_str().as_bytes().to_vec(),
                kind: EntryKind::Blob,
                id: repo.write_blob(text(heads).as_bytes())?,
            };
            files.insert(entry.name.clone(), entry);
        }
        let entry = TreeEntry {
            name: name.as_bytes().to_vec(),
            kind: EntryKind::Tree,
            id: repo.write_tree(&files.into_values().collect::<Vec<_>>())?,
        };
        root.insert(entry.name.clone(), entry);
    }
    Ok(repo.write_tree(&root.into_values().collect::<Vec<_>>())?)
}

/// One task's file. A line that is not in its one form is an error: bytes that two readers could
/// understand differently are none.
pub(super) fn file(repo: &Repository, blob: ObjectId, id: &TaskId) -> Result<Heads, Error> {
    let bytes = repo.read_blob(blob, MAX_FILE)?;
    let text = String::from_utf8_lossy(&bytes);
    let line = |line: &str| {
        let (commit, name) = line.split_once(' ')?;
        let commit: ObjectId = commit.parse().ok()?;
        is_of(name, id).then(|| (name.to_owned(), commit))
    };
    let heads: Option<Heads> = text.lines().map(line).collect();
    heads
        .filter(|heads| self::text(heads).as_bytes() == bytes)
        .filter(|heads| heads.contains_key(&events(id)))
        .ok_or_else(|| malformed(&format!("the file of task {id}")))
}

/// Whether a ref without its prefix belongs to the task.
fn is_of(name: &str, id: &TaskId) -> bool {
    match name.split_once('/') {
        Some(("tasks" | "sealed" | "runs" | "grades", rest)) => rest == id.as_str(),
        Some(("approvals", rest)) => rest
            .strip_prefix(id.as_str())
            .is_some_and(|rest| rest.starts_with('-')),
        _ => false,
    }
}

fn text(heads: &Heads) -> String {
    let lines = heads
        .iter()
        .map(|(name, commit)| format!("{commit} {name}\n"));
    lines.collect()
}

fn malformed(what: &str) -> Error {
    Error::Document {
        place: "the archive".into(),
        reason: format!("{what} is not in the form of an archive"),
    }
}

fn find(
    repo: &Repository,
    tree: ObjectId,
    name: &[u8],
    kind: EntryKind,
) -> Result<Option<ObjectId>, Error> {
    let mut entries = repo.read_tree(tree)?.into_iter();
    let found = entries.find(|entry| entry.name == name && entry.kind == kind);
    Ok(found.map(|entry| entry.id))
}

fn by_name(
    repo: &Repository,
    tree: Option<ObjectId>,
) -> Result<BTreeMap<Vec<u8>, TreeEntry>, Error> {
    let entries = tree.map_or(Ok(Vec::new()), |tree| repo.read_tree(tree))?;
    let named = entries.into_iter().map(|entry| (entry.name.clone(), entry));
    Ok(named.collect())
}

/// The tasks of one folder, with their files.
fn of_shard(
    repo: &Repository,
    folder: Option<&TreeEntry>,
) -> Result<BTreeMap<TaskId, ObjectId>, Error> {
    let Some(folder) = folder else {
        return Ok(BTreeMap::new());
    };
    let name = String::from_utf8_lossy(&folder.name);
    if folder.kind != EntryKind::Tree {
        return Err(malformed(&name));
    }
    let mut found = BTreeMap::new();
    for entry in repo.read_tree(folder.id)? {
        let id: Option<TaskId> = String::from_utf8_lossy(&entry.name).parse().ok();
        match id.filter(|id| shard(id) == name && entry.kind == EntryKind::Blob) {
            Some(id) => drop(found.insert(id, entry.id)),
            None => return Err(malformed(&String::from_utf8_lossy(&entry.name))),
        }
    }
    Ok(found)
}
