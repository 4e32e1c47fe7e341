//! Which policy `hangar.toml` names, and whether the refs hold that one. Owns the comparison before
//! anything is pinned. Reads that one key: what else is wrong with the file is told, and stops only
//! what needs the file.

use super::error::with_causes;
use super::{Error, Here, landed};
use crate::config::MAX_FILE;
use crate::config::repository::{self, FILE, Repository as Config};
use crate::git::Repository;
use crate::model::digest::Digest;
use crate::model::object_id::ObjectId;
use crate::store::{Store, pins};
use std::path::Path;

/// The policy that `hangar.toml` names at a commit; `None` where it names none, or is not there.
pub(super) fn named_at(
    here: &Here,
    repo: &Repository,
    commit: ObjectId,
) -> Result<Option<Digest>, Error> {
    let Some(bytes) = repo.blob_at(commit, FILE, MAX_FILE)? else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(&bytes);
    let name = format!("{}:{FILE}", commit.short());
    let named = repository::named_policy(Path::new(&name), &text)?;
    match Config::parse(Path::new(&name), &text) {
        Ok(config) => here.tell(&config),
        Err(error) => here.notices.once(
            &name,
            &format!(
                "{}: it has no effect here, and what needs {FILE} of this commit fails until it is mended",
                with_causes(&error)
            ),
        ),
    }
    Ok(named)
}

/// Holds the policy on the refs against what the checked-out commit names, and before the first pin
/// also against the remote's default branch: whoever wrote the checked-out commit could have written
/// another policy too.
pub(super) fn compare(here: &Here, store: &Store) -> Result<(), Error> {
    let repo = &store.repo;
    let is_pinned = pins::pinned(repo)?.is_some();
    let mut is_named = !is_pinned && default_branch(here, store)?;
    if let Some(head) = repo.head()? {
        is_named |= match holds(here, store, "of HEAD", head) {
            Err(Error::NamesUnreadable { source, .. }) if is_pinned => {
                tell_unreadable(here, head, &source);
                false
            }
            named => named?,
        };
    }
    if !is_pinned && !is_named {
        here.notices.once("pinned", &format!(
            "NOTHING here names the policy, and this clone trusts {} from now on: compare it with what an admin tells you",
            store.policy.repo()
        ));
    }
    Ok(())
}

/// Holds the policy against what the remote's default branch names, as this clone last saw it. Whether
/// it names one.
pub(super) fn default_branch(here: &Here, store: &Store) -> Result<bool, Error> {
    match landed::remote_default(here, &store.repo)? {
        Some((name, tip)) => holds(here, store, &format!("of {name}"), tip),
        None => Ok(false),
    }
}

/// Says that the pin alone counts, because the file at a commit can't be read.
pub(super) fn tell_unreadable(here: &Here, commit: ObjectId, why: &Error) {
    let counts = "this clone goes by the policy that it has pinned";
    tell(here, commit, counts, why);
}

/// Says that the work tree's word is taken, because the file at a commit can't be read.
pub(super) fn tell_work_tree(here: &Here, commit: ObjectId, why: &Error) {
    let counts = "the policy that the work tree's file names is pinned";
    tell(here, commit, counts, why);
}

fn tell(here: &Here, commit: ObjectId, counts: &str, why: &Error) {
    here.notices.once(
        &format!("{}:{FILE}", commit.short()),
        &format!(
            "{FILE} at {} can't be read, so {counts}; mend and commit the file: {}",
            commit.short(),
            with_causes(why)
        ),
    );
}

fn holds(here: &Here, store: &Store, place: &str, commit: ObjectId) -> Result<bool, Error> {
    let found = store.policy.repo();
    let named = named_at(here, &store.repo, commit);
    let place = place.to_owned();
    match named {
        Ok(None) => Ok(false),
        Ok(Some(named)) if named == found => Ok(true),
        Ok(Some(named)) => Err(Error::OtherPolicy {
            place,
            named,
            found,
        }),
        Err(source) => Err(Error::NamesUnreadable {
            place,
            commit,
            source: Box::new(source),
        }),
    }
}
