//! Joins: how two heads of one ref become one without a signature.
//!
//! A join is a commit with an empty tree, its parents sorted by object name, a fixed author, date and
//! message. Anyone can make it, also a clone without a key, and two clones make the same one from
//! the same heads. It says nothing; it only makes both histories reachable. Format:
//! `docs/format.md`, "Join of two heads".

use super::Error;
use crate::git::{CommitDraft, Repository};
use crate::model::object_id::ObjectId;

/// Author and committer of every join.
pub(super) const AUTHOR: &str = "hangar";
/// Their address.
pub(super) const EMAIL: &str = "join@hangar.invalid";
/// Message of every join.
const MESSAGE: &str = "join\n";

/// The commit that joins two heads, neither of which reaches the other.
pub fn join(repo: &Repository, one: ObjectId, two: ObjectId) -> Result<ObjectId, Error> {
    let mut parents = vec![one, two];
    parents.sort_unstable();
    Ok(repo.write_commit(&CommitDraft {
        tree: repo.write_tree(&[])?,
        parents,
        author_name: AUTHOR.into(),
        author_email: EMAIL.into(),
        time_seconds: 0,
        message: MESSAGE.into(),
    })?)
}
