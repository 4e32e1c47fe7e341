//! `reference-transaction`: in this clone refs of hangar go forward only.
//!
//! What hangar itself does to refs runs no hook.

use super::{Verdict, object, unread};
use crate::app::Error;
use crate::git::Repository;
use crate::model::object_id::ObjectId;
use crate::store;
use crate::store::archive;
use crate::store::layout::Layout;
use crate::store::receive::{NEVER, Refused};

/// The only state of a transaction in which it can be refused.
const PREPARED: &str = "prepared";

const HINT: &str =
    "`hangar deinit` takes hangar out of a clone; `hangar sync` takes what a remote has";

pub(super) fn check(repo: &Repository, state: &str, lines: &str) -> Result<Verdict, Error> {
    let mut verdict = Verdict::default();
    if state != PREPARED {
        return Ok(verdict);
    }
    let layout = match Layout::of(repo) {
        Ok(layout) => layout,
        // Nothing can be read until one of the two is taken away.
        Err(store::Error::TwoPrefixes) => return Ok(verdict),
        Err(error) => return Err(error.into()),
    };
    for line in lines.lines() {
        let mut parts = line.splitn(3, ' ');
        let mut next = || parts.next().ok_or_else(unread);
        let (_, new, name) = (next()?, next()?, next()?);
        if let Some(why) = fault(repo, &layout, new, name)? {
            verdict.refused.push(Refused::new(name, why));
        }
    }
    if !verdict.refused.is_empty() {
        verdict.hints.push(HINT.to_owned());
    }
    Ok(verdict)
}

/// What a move of this ref would lose.
fn fault(
    repo: &Repository,
    layout: &Layout,
    new: &str,
    name: &str,
) -> Result<Option<String>, Error> {
    if name == layout.rival() && repo.read_ref(&layout.policy())?.is_some() {
        let prefix = layout.prefix();
        return Ok(Some(format!(
            "the state of this repository lies under {prefix}"
        )));
    }
    if !layout.concerns(name) {
        return Ok(None);
    }
    let Some(here) = repo.read_ref(name)? else {
        return Ok(None);
    };
    if new.starts_with("ref:") {
        return Ok(Some("a ref of hangar is never symbolic".into()));
    }
    Ok(match object(new)? {
        None if repo.is_being_packed(name)? => None,
        None if archive::holds(repo, layout, name, here) => None,
        None => Some(NEVER.into()),
        Some(new) if holds(repo, here, new) => None,
        Some(_) => Some(format!("it would lose {}", here.short())),
    })
}

/// Whether nothing is lost on the way. What is no commit holds nothing.
fn holds(repo: &Repository, here: ObjectId, new: ObjectId) -> bool {
    repo.is_ancestor(here, new).unwrap_or(false)
}
