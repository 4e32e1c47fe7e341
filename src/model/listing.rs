//! The listing: the digest of a set of files that no line-ending, attribute or locale rule touches.
//!
//! Format: `docs/format.md`, "Listing".

use crate::model::digest::Digest;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

/// First bytes of every listing, so that its digest can serve as nothing else.
const DOMAIN: &[u8] = b"hangar-listing-1\n";

/// Kind of a file: exactly the three that Git stores for content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// 100644
    Regular,
    /// 100755
    Executable,
    /// 120000; the content is the target path.
    Symlink,
}

impl Mode {
    /// The six octal digits that Git uses.
    pub const fn octal(self) -> &'static str {
        match self {
            Self::Regular => "100644",
            Self::Executable => "100755",
            Self::Symlink => "120000",
        }
    }
}

/// One file of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Kind.
    pub mode: Mode,
    /// Length of the content in bytes.
    pub len: u64,
    /// SHA-256 of the content.
    pub sha256: Digest,
}

impl Entry {
    /// The entry of a file with this content.
    pub fn of(mode: Mode, content: &[u8]) -> Self {
        Self {
            mode,
            len: content.len() as u64,
            sha256: Digest::of(content),
        }
    }
}

/// Files by path (raw bytes, `/` between components, relative to the root).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing(BTreeMap<Vec<u8>, Entry>);

impl Listing {
    /// An empty listing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces a file.
    pub fn insert(&mut self, path: impl Into<Vec<u8>>, entry: Entry) {
        self.0.insert(path.into(), entry);
    }

    /// Takes out a file.
    pub fn remove(&mut self, path: &[u8]) -> Option<Entry> {
        self.0.remove(path)
    }

    /// The entry at `path`.
    pub fn get(&self, path: &[u8]) -> Option<&Entry> {
        self.0.get(path)
    }

    /// Entries in the order of their path bytes.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &Entry)> {
        self.0.iter().map(|(path, entry)| (path.as_slice(), entry))
    }

    /// Number of files.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no file.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// SHA-256 over the domain tag and, for each file in the order of path bytes: path length
    /// (u64, big endian), path, mode (six octal digits), content length (u64, big endian),
    /// SHA-256 of the content.
    pub fn digest(&self) -> Digest {
        let mut hash = Sha256::new();
        hash.update(DOMAIN);
        for (path, entry) in &self.0 {
            hash.update((path.len() as u64).to_be_bytes());
            hash.update(path);
            hash.update(entry.mode.octal());
            hash.update(entry.len.to_be_bytes());
            hash.update(entry.sha256.as_bytes());
        }
        Digest::from_bytes(hash.finalize().into())
    }
}

impl FromIterator<(Vec<u8>, Entry)> for Listing {
    fn from_iter<I: IntoIterator<Item = (Vec<u8>, Entry)>>(entries: I) -> Self {
        Self(entries.into_iter().collect())
    }
}

/// What a patch does to one path: the entry before and after (`None` is "not there").
pub type Change = (Option<Entry>, Option<Entry>);

const PATCH_DOMAIN: &[u8] = b"hangar-patch-1\n";

/// The patch id: SHA-256 over the domain tag and, for each changed path in byte order: path length
/// (u64, big endian), path, then old and new entry, each one byte 0 (absent) or 1 followed by mode,
/// length and SHA-256 as in [`Listing::digest`].
///
/// Two patches with the same id make the same change to the same content, whatever else the two
/// trees hold.
pub fn patch_id(base: &Listing, result: &Listing) -> Digest {
    let mut hash = Sha256::new();
    hash.update(PATCH_DOMAIN);
    for (path, (old, new)) in changes(base, result) {
        hash.update((path.len() as u64).to_be_bytes());
        hash.update(path);
        for entry in [old, new] {
            match entry {
                None => hash.update([0]),
                Some(entry) => {
                    hash.update([1]);
                    hash.update(entry.mode.octal());
                    hash.update(entry.len.to_be_bytes());
                    hash.update(entry.sha256.as_bytes());
                }
            }
        }
    }
    Digest::from_bytes(hash.finalize().into())
}

/// Paths whose entry differs between the two, with both entries, in byte order.
pub fn changes(base: &Listing, result: &Listing) -> BTreeMap<Vec<u8>, Change> {
    let mut out = BTreeMap::new();
    for (path, old) in base.iter() {
        let new = result.get(path).copied();
        if new != Some(*old) {
            out.insert(path.to_vec(), (Some(*old), new));
        }
    }
    for (path, new) in result.iter() {
        if base.get(path).is_none() {
            out.insert(path.to_vec(), (None, Some(*new)));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Listing {
        let mut listing = Listing::new();
        listing.insert(
            "tests/test_a.py",
            Entry::of(Mode::Regular, b"assert True\n"),
        );
        listing.insert("run", Entry::of(Mode::Executable, b"#!/bin/sh\n"));
        listing.insert("link", Entry::of(Mode::Symlink, b"run"));
        listing
    }

    // Frozen vectors: a change here is a change of the format.
    #[test]
    fn digest_vectors_hold() {
        assert_eq!(
            Listing::new().digest().hex(),
            include_str!("../../tests/vectors/listing-empty.sha256").trim()
        );
        assert_eq!(
            sample().digest().hex(),
            include_str!("../../tests/vectors/listing-three.sha256").trim()
        );
    }

    #[test]
    fn mode_length_and_order_count() {
        let base = sample().digest();
        let mut other = sample();
        other.insert("run", Entry::of(Mode::Regular, b"#!/bin/sh\n"));
        assert_ne!(base, other.digest());
    }

    #[test]
    fn patch_id_ignores_the_files_that_stay() {
        let (mut base, mut result) = (sample(), sample());
        result.insert("run", Entry::of(Mode::Executable, b"#!/bin/sh\nexit 1\n"));
        let id = patch_id(&base, &result);
        for listing in [&mut base, &mut result] {
            listing.insert("unrelated", Entry::of(Mode::Regular, b"x"));
        }
        assert_eq!(patch_id(&base, &result), id);
    }

    #[test]
    fn deleting_and_adding_differ() {
        let mut with = sample();
        with.insert("new", Entry::of(Mode::Regular, b"x"));
        assert_ne!(patch_id(&sample(), &with), patch_id(&with, &sample()));
    }
}
