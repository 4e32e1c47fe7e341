//! Moving the state of a clone from one ref prefix to the other.
//!
//! All refs move in one transaction, which makes every new ref before it takes an old one away. A move
//! that was killed in between leaves both policies, which nothing else accepts; moving again ends it, in
//! either direction. Signed bytes hold no ref name, so nothing is signed anew.

use super::layout::{Layout, Prefix, RefKind};
use super::policy::{self, PolicyHistory};
use super::{Error, archive, join, pins};
use crate::git::{Expected, RefChange, Repository};
use crate::model::object_id::ObjectId;

/// Moves every ref of ours to this prefix; how many were moved. `None` when there is no state here.
pub fn relocate(repo: &Repository, to: Prefix) -> Result<Option<usize>, Error> {
    let (source, target) = (Layout::at(to.other()), Layout::at(to));
    let policy = |layout: &Layout| policy::load(repo, layout);
    match (policy(&source)?, policy(&target)?) {
        (None, None) => return Ok(None),
        (Some(one), Some(two)) => same(repo, [&source, &target], &one, &two)?,
        (Some(one), None) | (None, Some(one)) => pins::check(repo, &one)?,
    }
    let (mut made, mut gone) = (Vec::new(), Vec::new());
    for (name, id) in source.refs(repo)? {
        let Some(moved) = source.name_at(&name, to) else {
            continue;
        };
        let there = repo.read_ref(&moved)?;
        let archive = matches!(source.kind_of(&name), Some(RefKind::Archive(_)));
        let new = match there {
            // Archives are joined by what they hold.
            Some(there) if archive => archive::take(repo, Some(there), id)?.0,
            there => both(repo, id, there)?,
        };
        if there != Some(new) {
            made.push(RefChange {
                name: moved,
                expected: Expected::from(there),
                new: Some(new),
            });
        }
        gone.push(RefChange {
            name,
            expected: Expected::At(id),
            new: None,
        });
    }
    if let Some(first) = made.first() {
        repo.check_free(&first.name)?;
    }
    let count = gone.len();
    made.extend(gone);
    repo.change_refs(&made, "move hangar's refs")?;
    Ok(Some(count))
}

/// Two policies are one state where one of them follows the other.
fn same(
    repo: &Repository,
    layouts: [&Layout; 2],
    one: &PolicyHistory,
    two: &PolicyHistory,
) -> Result<(), Error> {
    pins::check(repo, one)?;
    pins::check(repo, two)?;
    let heads = layouts.map(|layout| repo.read_ref(&layout.policy()));
    let [Ok(Some(one_head)), Ok(Some(two_head))] = heads else {
        return Err(Error::TwoPrefixes);
    };
    let follows = repo.is_ancestor(one_head, two_head)? || repo.is_ancestor(two_head, one_head)?;
    if one.repo() == two.repo() && follows {
        Ok(())
    } else {
        Err(Error::TwoPrefixes)
    }
}

/// A head that reaches both.
fn both(repo: &Repository, id: ObjectId, there: Option<ObjectId>) -> Result<ObjectId, Error> {
    match there {
        Some(there) if repo.is_ancestor(id, there)? => Ok(there),
        Some(there) if !repo.is_ancestor(there, id)? => join::join(repo, id, there),
        _ => Ok(id),
    }
}
