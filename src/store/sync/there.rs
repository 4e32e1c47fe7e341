//! What a remote has, and below which prefix it keeps it. A remote's prefix need not be the one here.
//!
//! The prefix is where the policy lies that is this repository's. Somebody who can push can put a
//! branch that looks like a policy below the other prefix; it is looked at, and not taken for one.

use super::{Wanted, tracking};
use crate::git::{self, Expected, Repository};
use crate::model::digest::Digest;
use crate::model::object_id::ObjectId;
use crate::store::layout::{Layout, Prefix};
use crate::store::policy::{self, PolicyHistory};
use crate::store::{Error, Store, remotes};
use std::collections::BTreeMap;

/// Refs by local name.
pub(super) type Refs = BTreeMap<String, ObjectId>;

/// What the remote has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct There {
    /// Below which prefix it keeps the state.
    pub(super) prefix: Prefix,
    /// Its refs, by the name that they have here.
    pub(super) refs: Refs,
    /// Refs of ours below the other prefix, which a move left, by the name that they have here.
    pub(super) left: Refs,
    /// Another repository's policy below the other prefix.
    pub(super) other: Option<(Prefix, Digest)>,
}

impl There {
    /// A ref here as the remote calls it.
    pub(super) fn name(&self, store: &Store, name: &str) -> String {
        let there = store.layout.name_at(name, self.prefix);
        there.unwrap_or_else(|| name.to_owned())
    }
}

/// Refs of the remote below both prefixes, by full name.
fn ask(repo: &Repository, wanted: &Wanted<'_>) -> Result<Vec<(String, ObjectId)>, Error> {
    let patterns = Prefix::ALL.map(|prefix| format!("{}*", prefix.as_str()));
    let patterns: Vec<_> = patterns.iter().map(String::as_str).collect();
    Ok(repo.list_remote(wanted.remote, &patterns, wanted.patience())?)
}

/// Asks the remote.
pub(super) fn list(store: &Store, wanted: &Wanted<'_>) -> Result<There, Error> {
    let found = ask(&store.repo, wanted)?;
    let (prefix, other) = choose(store, wanted, &found)?;
    let here = store.layout.place();
    let below = |prefix: Prefix| {
        // A pattern means the end of a name as well: others' branches may look like ours.
        let names = found.iter();
        names.filter_map(move |(name, id)| Some((Layout::at(prefix).name_at(name, here)?, *id)))
    };
    let left = below(prefix.other());
    Ok(There {
        prefix,
        other,
        refs: below(prefix).collect(),
        left: left
            .filter(|(name, _)| store.layout.kind_of(name).is_some())
            .collect(),
    })
}

fn choose(
    store: &Store,
    wanted: &Wanted<'_>,
    found: &[(String, ObjectId)],
) -> Result<(Prefix, Option<(Prefix, Digest)>), Error> {
    let known = remotes::prefix(&store.repo, wanted.remote);
    let here = store.layout.place();
    let policies = policies(found);
    match policies.as_slice() {
        [(one, _)] if known.is_none_or(|known| known == *one) => return Ok((*one, None)),
        [] => {}
        _ => {
            let verified = policies.iter().filter_map(|(prefix, id)| {
                let policy = look(&store.repo, wanted, *prefix, *id).ok()?;
                Some((*prefix, policy.repo()))
            });
            let is_ours = |one: &(Prefix, Digest)| one.1 == store.policy.repo();
            let (ours, others): (Vec<_>, Vec<_>) = verified.partition(is_ours);
            match ours[..] {
                [(one, _)] => return Ok((one, others.first().copied())),
                [_, _] => {
                    let there = || Error::TwoPrefixesThere {
                        remote: git::shown_remote(wanted.remote),
                    };
                    return Ok((wanted.prefix.ok_or_else(there)?, None));
                }
                _ => {}
            }
        }
    }
    let mut holds = Prefix::ALL.into_iter().filter(|prefix| {
        let layout = Layout::at(*prefix);
        found.iter().any(|(name, _)| layout.kind_of(name).is_some())
    });
    let prefix = match holds.next() {
        // It lost its policy, or shows another: it gets ours where the rest lies.
        Some(first) => known.unwrap_or(first),
        None => wanted.prefix.or(known).unwrap_or(here),
    };
    Ok((prefix, None))
}

fn policies(found: &[(String, ObjectId)]) -> Vec<(Prefix, ObjectId)> {
    let at = |prefix: Prefix| {
        let name = Layout::at(prefix).policy();
        let found = found.iter().find(|(other, _)| *other == name)?;
        Some((prefix, found.1))
    };
    Prefix::ALL.into_iter().filter_map(at).collect()
}

/// The policy that a remote offers below this prefix, verified. Where it has to be fetched for that, no
/// ref keeps it.
fn look(
    repo: &Repository,
    wanted: &Wanted<'_>,
    prefix: Prefix,
    id: ObjectId,
) -> Result<PolicyHistory, Error> {
    if repo.has_object(id) {
        return policy::load_at(repo, id);
    }
    let place = format!("{}offered", tracking(wanted.remote));
    let spec = format!("+{}:{place}", Layout::at(prefix).policy());
    repo.fetch(wanted.remote, &[&spec], wanted.timeout)?;
    let repo = repo.reopen()?;
    let policy = policy::load_at(&repo, id);
    let at = repo.read_ref(&place)?;
    repo.update_ref(&place, Expected::from(at), None, "looked at")?;
    policy
}

/// A policy that a remote offers.
#[derive(Debug)]
pub struct Offer {
    /// Below which prefix it lies there.
    pub prefix: Prefix,
    /// Its newest commit, which is in this clone now.
    pub head: ObjectId,
    /// The policy, verified.
    pub policy: PolicyHistory,
}

/// The policy that a remote offers to a clone that has none; with `repo_id`, that of this repository
/// only. Of two policies none is taken; of one in two places, the newer.
pub fn offered(
    repo: &Repository,
    wanted: &Wanted<'_>,
    repo_id: Option<Digest>,
) -> Result<Option<Offer>, Error> {
    let policies = policies(&ask(repo, wanted)?);
    let alone = policies.len() == 1;
    let mut offers = Vec::new();
    for (prefix, head) in policies {
        match look(repo, wanted, prefix, head) {
            Ok(policy) if repo_id.is_none_or(|id| id == policy.repo()) || alone => {
                offers.push(Offer {
                    prefix,
                    head,
                    policy,
                });
            }
            Err(error @ Error::Git(git::Error::Remote { .. })) if alone => return Err(error),
            Err(error) if alone => {
                return Err(Error::NoPolicyThere {
                    remote: git::shown_remote(wanted.remote),
                    name: Layout::at(prefix).policy(),
                    why: error.to_string(),
                });
            }
            // Beside another one it may be anybody's branch.
            Ok(_) | Err(_) => {}
        }
    }
    let Some(last) = offers.pop() else {
        return Ok(None);
    };
    match offers.pop() {
        None => Ok(Some(last)),
        Some(first) => further(repo, wanted, first, last).map(Some),
    }
}

/// Of the two places of one state, which a move left, the one that has come further.
fn further(
    repo: &Repository,
    wanted: &Wanted<'_>,
    first: Offer,
    last: Offer,
) -> Result<Offer, Error> {
    let remote = git::shown_remote(wanted.remote);
    if first.policy.repo() != last.policy.repo() {
        return Err(Error::TwoStatesThere {
            remote,
            one: first.policy.repo(),
            two: last.policy.repo(),
        });
    }
    let repo = repo.reopen()?;
    if repo.is_ancestor(last.head, first.head)? {
        Ok(first)
    } else if repo.is_ancestor(first.head, last.head)? {
        Ok(last)
    } else {
        Err(Error::TwoPrefixesThere { remote })
    }
}
