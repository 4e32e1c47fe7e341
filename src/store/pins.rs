//! What this clone has seen of the policy: it never goes back.
//!
//! `<common dir>/hangar/trust.toml` is not a cache. Losing it lowers rollback protection to the
//! `[trust] repo` line of `hangar.toml`.

use super::Error;
use super::layout::Layout;
use super::policy::{self, PolicyHistory};
use crate::base::files;
use crate::git::Repository;
use crate::model::codec;
use crate::model::digest::Digest;
use crate::model::signer::PolicyRef;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pin {
    format: i64,
    repo: Digest,
    policy: PolicyRef,
}

fn path(repo: &Repository) -> PathBuf {
    repo.hangar_dir().join("trust.toml")
}

fn read(repo: &Repository) -> Result<Option<Pin>, Error> {
    match std::fs::read(path(repo)) {
        Ok(bytes) => Ok(Some(
            codec::decode(&bytes).map_err(|error| Error::Pin(error.to_string()))?,
        )),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::Pin(error.to_string())),
    }
}

/// The repository id that this clone has pinned.
pub fn pinned(repo: &Repository) -> Result<Option<Digest>, Error> {
    Ok(read(repo)?.map(|pin| pin.repo))
}

/// Loads the policy of a clone and holds it against the pin. One that the clone has seen and lost is
/// told from one that never was.
pub fn load(repo: &Repository, layout: &Layout) -> Result<PolicyHistory, Error> {
    let Some(policy) = policy::load(repo, layout)? else {
        return Err(match read(repo)? {
            Some(pin) => Error::PolicyGone {
                version: pin.policy.version,
            },
            None => Error::NoPolicy,
        });
    };
    check(repo, &policy)?;
    Ok(policy)
}

/// Holds the loaded policy against the pin: same repository, and the pinned version still there.
pub fn check(repo: &Repository, policy: &PolicyHistory) -> Result<(), Error> {
    let Some(pin) = read(repo)? else {
        return Ok(());
    };
    if pin.repo != policy.repo() {
        return Err(Error::Pin(format!(
            "this clone trusts {}, the refs hold {}",
            pin.repo.short(),
            policy.repo().short()
        )));
    }
    if policy.find(pin.policy).is_none() {
        return Err(Error::Pin(format!(
            "this clone has seen policy version {}, which is no longer there",
            pin.policy.version
        )));
    }
    Ok(())
}

/// Records the policy as seen where this clone has pinned it already.
pub fn advance(repo: &Repository, policy: &PolicyHistory) -> Result<(), Error> {
    match read(repo)? {
        Some(_) => record(repo, policy),
        None => Ok(()),
    }
}

/// Records the policy as seen. Nothing is written when the pin is current, or while rivals are
/// undecided.
pub fn record(repo: &Repository, policy: &PolicyHistory) -> Result<(), Error> {
    check(repo, policy)?;
    if !policy.rivals().is_empty() {
        return Ok(());
    }
    let pin = Pin {
        format: 1,
        repo: policy.repo(),
        policy: policy.newest().reference,
    };
    if read(repo)?.as_ref() == Some(&pin) {
        return Ok(());
    }
    files::create_private_dir(&repo.hangar_dir())?;
    files::write_atomic(&path(repo), &codec::encode(&pin)?, 0o600)?;
    Ok(())
}
