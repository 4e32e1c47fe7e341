//! Which versions stand where several follow the same one.
//!
//! An *end* is a version that no other follows. Of two ends one settles the other when a version on
//! its side sets the other side aside; that version needed the root keys of both sides. While no end
//! is left alone, nobody knows which versions stand, and they are *rivals*. Pure: looks at versions
//! that were verified already, and gives the same answer whatever the order in which they came.

use super::Version;
use crate::base::words::count;
use crate::model::digest::Digest;
use crate::model::ids::Principal;
use std::collections::BTreeSet;
use std::fmt;

/// Versions that follow the same one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rivals {
    /// Number of the version that they follow.
    pub after: u64,
    /// Sorted by digest.
    pub versions: Vec<Claim>,
}

/// One of several versions that claim the same place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claim {
    /// SHA-256 of its `members.toml`.
    pub digest: Digest,
    /// Its number.
    pub version: u64,
    /// Who signed it.
    pub signers: BTreeSet<Principal>,
    /// How many later versions rest on it.
    pub later: usize,
}

impl fmt::Display for Rivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = |claim: &Claim| {
            let signers: Vec<_> = claim.signers.iter().map(Principal::as_str).collect();
            let digest = claim.digest.short();
            let later = match claim.later {
                0 => String::new(),
                later => format!(", with {}", count(later, "later version", "later versions")),
            };
            format!("{digest}, signed by {}{later}", signers.join(" and "))
        };
        let all: Vec<_> = self.versions.iter().map(one).collect();
        let (after, version) = (self.after, self.after + 1);
        let all = all.join("; ");
        write!(
            f,
            "version {after} is followed by rival versions {version}: {all}"
        )
    }
}

/// What stands.
#[derive(Debug, Default)]
pub(super) struct Selection {
    /// Places of the versions of the chain, first to newest: of those that stand whichever rival will.
    pub(super) chain: Vec<usize>,
    /// Places of the ends that nothing settles, by their digests.
    pub(super) ends: Vec<usize>,
    /// Where it is undecided.
    pub(super) rivals: Vec<Rivals>,
}

/// Chooses. While rivals are undecided, the chain goes as far as all ends agree: what a clone saw first
/// decides nothing.
pub(super) fn select(all: &[Version]) -> Selection {
    let followed: BTreeSet<usize> = all.iter().filter_map(|one| one.parent).collect();
    let paths: Vec<Vec<usize>> = (0..all.len())
        .filter(|place| !followed.contains(place))
        .map(|end| path(all, end))
        .collect();
    let beaten = |own: &Vec<usize>| {
        let mut others = paths.iter().filter(|other| *other != own);
        others.any(|other| settles(all, other, own) && !settles(all, own, other))
    };
    let mut open: Vec<&Vec<usize>> = paths.iter().filter(|own| !beaten(own)).collect();
    if open.is_empty() {
        open = paths.iter().collect();
    }
    let ends = open.iter().filter_map(|one| one.last().copied());
    let mut ends: Vec<usize> = ends.collect();
    ends.sort_by_key(|end| all[*end].policy.reference.digest);
    Selection {
        chain: common(&open),
        ends,
        rivals: rivals(all, &open),
    }
}

/// Places from the first version to this one.
pub(super) fn path(all: &[Version], end: usize) -> Vec<usize> {
    let mut path: Vec<usize> =
        std::iter::successors(Some(end), |place| all[*place].parent).collect();
    path.reverse();
    path
}

fn common(paths: &[&Vec<usize>]) -> Vec<usize> {
    let Some((first, rest)) = paths.split_first() else {
        return Vec::new();
    };
    let shared =
        |(at, place): &(usize, &usize)| rest.iter().all(|one| one.get(*at) == Some(*place));
    let shared = first.iter().enumerate().take_while(shared);
    shared.map(|(_, place)| *place).collect()
}

/// Whether one side decided about the other, knowing everything that the other had decided about it.
fn settles(all: &[Version], own: &[usize], other: &[usize]) -> bool {
    let shared = own.iter().zip(other).take_while(|(one, two)| one == two);
    let shared = shared.count();
    let (own, other) = (&own[shared..], &other[shared..]);
    let names = |by: usize, side: &[usize]| all[by].names.iter().any(|name| side.contains(name));
    let said = other.iter().rposition(|by| names(*by, own));
    let named = other
        .iter()
        .rposition(|place| own.iter().any(|by| all[*by].names.contains(place)));
    if named.is_some_and(|named| said.is_none_or(|said| named >= said)) {
        return true;
    }
    // The same root keys decided about this place already: who was an admin once makes no new rival.
    said.is_none() && own.iter().any(|by| confirms(all, *by, other))
}

/// Whether `by` sets something aside, and the root keys that signed it are those of all of `other`.
fn confirms(all: &[Version], by: usize, other: &[usize]) -> bool {
    let root = |place: usize| all[place].policy.root_digest;
    let version = &all[by];
    let roots: BTreeSet<Digest> = version
        .names
        .iter()
        .copied()
        .chain(version.parent)
        .map(root)
        .collect();
    !version.names.is_empty() && other.iter().all(|place| roots.contains(&root(*place)))
}

/// Every version of these paths that several of the next ones follow.
fn rivals(all: &[Version], open: &[&Vec<usize>]) -> Vec<Rivals> {
    let parents: BTreeSet<usize> = open.iter().flat_map(|path| path.iter().copied()).collect();
    let next = |parent: usize| -> BTreeSet<usize> {
        let steps = open.iter().flat_map(|path| path.windows(2));
        steps
            .filter(|pair| pair[0] == parent)
            .map(|pair| pair[1])
            .collect()
    };
    let claim = |place: usize| {
        let version = &all[place];
        let above = open.iter().filter_map(|path| {
            let at = path.iter().position(|one| *one == place)?;
            Some(&path[at + 1..])
        });
        let later: BTreeSet<&usize> = above.flatten().collect();
        Claim {
            later: later.len(),
            digest: version.policy.reference.digest,
            version: version.policy.reference.version,
            signers: version.signers.clone(),
        }
    };
    let mut found = Vec::new();
    for parent in parents {
        let next = next(parent);
        if next.len() > 1 {
            let mut versions: Vec<Claim> = next.into_iter().map(claim).collect();
            versions.sort();
            found.push(Rivals {
                after: all[parent].policy.reference.version,
                versions,
            });
        }
    }
    found.sort_by(|one, two| (one.after, &one.versions).cmp(&(two.after, &two.versions)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::founding;
    use crate::model::policy::Policy;
    use crate::model::signer::PolicyRef;

    /// Versions by number in this list: what each follows, what it sets aside, its root document.
    fn versions(list: &[(Option<usize>, &[usize], u8)]) -> Vec<Version> {
        let version = |(at, (parent, names, root)): (usize, &(Option<usize>, &[usize], u8))| {
            let depth = std::iter::successors(*parent, |at| list[*at].0).count() as u64;
            let reference = PolicyRef {
                version: depth + 1,
                digest: Digest::of(&[u8::try_from(at).unwrap()]),
            };
            let (document, members) = (founding::root(&[]), founding::members(vec![], vec![]));
            let root_digest = Digest::of(&[b'r', *root]);
            Version {
                policy: Policy::new(reference, document, root_digest, members, &[]),
                parent: *parent,
                signers: BTreeSet::new(),
                names: names.to_vec(),
            }
        };
        list.iter().enumerate().map(version).collect()
    }

    #[track_caller]
    fn stands(list: &[(Option<usize>, &[usize], u8)], chain: &[usize], rivals: usize) {
        let found = select(&versions(list));
        assert_eq!(
            (found.chain.as_slice(), found.rivals.len()),
            (chain, rivals)
        );
    }

    #[test]
    fn a_chain_stands_and_two_that_follow_the_same_one_do_not() {
        stands(&[(None, &[], 0), (Some(0), &[], 0)], &[0, 1], 0);
        let fork = [(None, &[][..], 0), (Some(0), &[], 0), (Some(0), &[], 0)];
        stands(&fork, &[0], 1);
        // A fork on one side of a fork is named too.
        let nested = [&fork[..], &[(Some(1), &[], 0), (Some(1), &[], 0)]].concat();
        stands(&nested, &[0], 2);
    }

    #[test]
    fn the_last_word_that_knows_the_others_stands() {
        // 1 and 2 are rivals; 3 keeps 1, and 4, made apart, keeps 2.
        let one = [
            (None, &[][..], 0),
            (Some(0), &[][..], 0),
            (Some(0), &[], 1),
            (Some(1), &[2][..], 0),
        ];
        stands(&one, &[0, 1, 3], 0);
        let both = [&one[..], &[(Some(2), &[1][..], 1)]].concat();
        stands(&both, &[0], 1);
        // Naming the rival alone says nothing about what was said of it; naming that does.
        let blind = [&both[..], &[(Some(3), &[][..], 0)]].concat();
        stands(&blind, &[0], 1);
        let last = [&both[..], &[(Some(3), &[4][..], 0)]].concat();
        stands(&last, &[0, 1, 3, 5], 0);
        // What follows the side that fell later does not bring it back.
        let later = [&last[..], &[(Some(4), &[][..], 1)]].concat();
        stands(&later, &[0, 1, 3, 5], 0);
    }

    #[test]
    fn only_the_same_root_keys_settle_what_they_do_not_name() {
        // 3 keeps 1 and sets 2 aside, all under one root document; 4 is new at the same place.
        let settled = |root| {
            [
                (None, &[][..], 0),
                (Some(0), &[][..], 0),
                (Some(0), &[], 0),
                (Some(1), &[2][..], 0),
                (Some(0), &[], root),
            ]
        };
        stands(&settled(0), &[0, 1, 3], 0);
        stands(&settled(1), &[0], 1);
        // Before anybody set anything aside nothing is settled.
        let ordinary = [
            (None, &[][..], 0),
            (Some(0), &[][..], 0),
            (Some(1), &[], 0),
            (Some(0), &[], 0),
        ];
        stands(&ordinary, &[0], 1);
    }
}
