//! No mark of the hidden tests in what was delivered or is stored in clear. Needs no key: the
//! manifest names the mark's digest.

use super::LinkName::Canary as Link;
use super::{Case, Sheet, soften};
use crate::base::words;
use crate::flow::Error;
use crate::git::{self, EntryKind, Repository};
use crate::model::digest::Digest;
use crate::model::object_id::ObjectId;
use crate::model::run::Run;
use crate::seal;
use crate::store::dossier::Held;
use std::collections::BTreeSet;

/// Largest blob that is scanned, in bytes. Whatever is larger is a fault, not a blind spot.
const MAX_BLOB: u64 = 1 << 30;

pub(super) fn check(case: &Case<'_>, sheet: &mut Sheet) -> Result<(), Error> {
    let seals = case.dossier.seals.iter();
    let marks: BTreeSet<Digest> = seals.map(|seal| seal.value().canary).collect();
    if marks.is_empty() {
        sheet.skip(Link, "there is nothing sealed");
        return Ok(());
    }
    let mut scanned = attachments(case, &marks, sheet)?;
    let mut seen = None;
    if let Some(delivery) = case.delivery() {
        let place = format!("commit {}", delivery.commit.short());
        if let Ok(commit) = soften(case.store.repo.read_commit(delivery.commit))? {
            if holds(&commit.message, &marks) {
                sheet.fault_at(Link, &place, "its message holds the mark of a hidden test");
            }
            scanned += tree(case, commit.tree, &marks, &place, sheet)?;
            seen = Some(commit.tree);
        }
    }
    if let Some((_, result)) = super::runs::result(case).filter(|(_, one)| Some(one.tree) != seen) {
        scanned += tree(case, result.tree, &marks, "the delivered result", sheet)?;
    }
    sheet.close(
        Link,
        format!(
            "{} scanned, no mark found",
            words::count(scanned, "file", "files")
        ),
    );
    Ok(())
}

fn holds(bytes: &[u8], marks: &BTreeSet<Digest>) -> bool {
    seal::scan(bytes).any(|digest| marks.contains(&digest))
}

fn attachments(
    case: &Case<'_>,
    marks: &BTreeSet<Digest>,
    sheet: &mut Sheet,
) -> Result<usize, Error> {
    let mut scanned = 0;
    // What was set aside may be why other tests were sealed.
    let aside = |run: &&Held<Run>| {
        let digest = run.digest();
        match case.delivery() {
            Some(_) => case.past.aside_then.contains(&digest),
            None => case.dossier.is_aside(digest),
        }
    };
    for run in case.dossier.runs.iter().filter(|run| !aside(run)) {
        let clear = run.value().attachment.iter().filter(|one| !one.sealed);
        for attachment in clear {
            let Ok(Some(bytes)) = soften(run.folder.file(&case.store.repo, &attachment.name))?
            else {
                continue;
            };
            scanned += 1;
            if holds(&bytes, marks) {
                sheet.fault_at(
                    Link,
                    format!("run {}", run.digest().short()),
                    format!(
                        "its attachment `{}` holds the mark of a hidden test",
                        attachment.name.escape_debug()
                    ),
                );
            }
        }
    }
    Ok(scanned)
}

fn tree(
    case: &Case<'_>,
    tree: ObjectId,
    marks: &BTreeSet<Digest>,
    place: &str,
    sheet: &mut Sheet,
) -> Result<usize, Error> {
    match soften(scan(&case.store.repo, tree, marks))? {
        Ok((scanned, found)) => {
            for path in found {
                let path = String::from_utf8_lossy(&path).escape_debug().to_string();
                sheet.fault_at(
                    Link,
                    place,
                    format!("`{path}` holds the mark of a hidden test"),
                );
            }
            Ok(scanned)
        }
        Err(reason) => {
            sheet.unread(Link, place, "", &reason);
            Ok(0)
        }
    }
}

/// Files of a tree and the paths of those with a mark. Equal trees and files are looked at once, so
/// that a tree which holds itself often costs no more than its objects.
fn scan(
    repo: &Repository,
    tree: ObjectId,
    marks: &BTreeSet<Digest>,
) -> Result<(usize, Vec<Vec<u8>>), git::Error> {
    let mut seen = BTreeSet::from([tree]);
    let mut open = vec![(Vec::new(), tree)];
    let (mut scanned, mut found) = (0, Vec::new());
    while let Some((folder, tree)) = open.pop() {
        for entry in repo.read_tree(tree)? {
            let mut path: Vec<u8> = folder.clone();
            path.extend(&entry.name);
            let is_new = seen.insert(entry.id);
            if holds(&entry.name, marks) {
                found.push(path.clone());
            }
            match entry.kind {
                EntryKind::Tree if is_new => {
                    path.push(b'/');
                    open.push((path, entry.id));
                }
                EntryKind::Blob | EntryKind::Executable | EntryKind::Link if is_new => {
                    scanned += 1;
                    if holds(&repo.read_blob(entry.id, MAX_BLOB)?, marks) {
                        found.push(path);
                    }
                }
                _ => {}
            }
        }
    }
    Ok((scanned, found))
}
