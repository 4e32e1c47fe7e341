//! What Git asks before it pushes, takes a push, or moves a ref; and putting that in place.
//!
//! The scripts lie in `hooks/` at the top of the repository. Each hands Git's question to
//! `hangar hook NAME` and then runs the hook that was there before. What the hooks hold and what they
//! don't: `docs/how-to/hooks.md`.

pub mod install;
mod push;
mod receive;
mod transaction;

use super::{Error, Here};
use crate::git::Repository;
use crate::model::object_id::ObjectId;
use crate::store::receive::Refused;
use std::path::PathBuf;

/// A question that Git asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// In a clone, before a push.
    PrePush,
    /// On a server, before it takes a push.
    PreReceive,
    /// In a clone, before refs move.
    ReferenceTransaction,
}

impl Hook {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::PrePush, Self::PreReceive, Self::ReferenceTransaction];
    /// Those of a clone.
    pub const OF_CLONE: [Self; 2] = [Self::PrePush, Self::ReferenceTransaction];

    /// The name that Git gives it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PrePush => "pre-push",
            Self::PreReceive => "pre-receive",
            Self::ReferenceTransaction => "reference-transaction",
        }
    }

    /// The hook with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|hook| hook.name() == name)
    }

    const fn script(self) -> &'static str {
        match self {
            Self::PrePush => include_str!("../../hooks/pre-push"),
            Self::PreReceive => include_str!("../../hooks/pre-receive"),
            Self::ReferenceTransaction => include_str!("../../hooks/reference-transaction"),
        }
    }
}

/// What a hook found.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Refs that must not move; Git goes on where there are none.
    pub refused: Vec<Refused>,
    /// What to do about it.
    pub hints: Vec<String>,
}

/// Answers Git: `args` and `lines` are what it gives the hook. `progress` hears what takes long.
pub fn answer(
    here: &Here,
    hook: Hook,
    args: &[String],
    lines: &str,
    progress: &dyn Fn(&str),
) -> Result<Verdict, Error> {
    let repo = repository(here)?;
    let first = args.first().map_or("", String::as_str);
    match hook {
        Hook::PrePush => push::check(here, &repo, first, lines, progress),
        Hook::PreReceive => receive::check(here, repo, lines),
        Hook::ReferenceTransaction => transaction::check(&repo, first, lines),
    }
}

/// The repository that Git runs the hook for: it says so where that is not the current folder's.
fn repository(here: &Here) -> Result<Repository, Error> {
    match here.var("GIT_DIR") {
        Some(dir) => Ok(Repository::discover(&here.dir.join(PathBuf::from(dir)))?),
        None => here.repository(),
    }
}

/// An object name as Git writes it; `None` where it is all zeros.
fn object(text: &str) -> Result<Option<ObjectId>, Error> {
    if !text.is_empty() && text.bytes().all(|byte| byte == b'0') {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| unread())
}

fn unread() -> Error {
    Error::invalid("what Git said to the hook can't be read")
}
