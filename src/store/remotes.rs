//! What this clone remembers of each remote: below which prefix it keeps its refs, and who can read it.
//!
//! `<common dir>/hangar/remotes.toml`. Nothing is decided by it: a clone that loses it finds the prefix
//! again and warns once more. It is therefore written where that is possible, and never a reason to fail.

use super::layout::Prefix;
use super::sync::tracking;
use crate::base::files;
use crate::git::Repository;
use crate::model::codec;
use crate::model::digest::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Who can read a remote, as far as that was found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Readers {
    /// Anyone who reaches it.
    Anyone,
    /// Those whom it lets in.
    Restricted,
    /// It can't be told from here.
    Unknown,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Memory {
    format: i64,
    #[serde(default)]
    remote: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// As in [`tracking`]: an address stands as its digest.
    name: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    prefix: Option<String>,
    /// Digest of the addresses that were asked; they may hold a token.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    addresses: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    readers: Option<Readers>,
}

fn path(repo: &Repository) -> PathBuf {
    repo.hangar_dir().join("remotes.toml")
}

fn read(repo: &Repository) -> Memory {
    let bytes = std::fs::read(path(repo)).unwrap_or_default();
    codec::decode(&bytes).unwrap_or_default()
}

fn change(repo: &Repository, remote: &str, set: impl FnOnce(&mut Entry)) {
    let mut memory = read(repo);
    let name = tracking(remote);
    let at = memory.remote.iter().position(|entry| entry.name == name);
    let at = at.unwrap_or_else(|| {
        memory.remote.push(Entry {
            name,
            prefix: None,
            addresses: None,
            readers: None,
        });
        memory.remote.len() - 1
    });
    let before = memory.remote[at].clone();
    set(&mut memory.remote[at]);
    if before == memory.remote[at] {
        return;
    }
    memory.format = codec::FORMAT;
    if let Ok(bytes) = codec::encode(&memory) {
        let _ = files::create_private_dir(&repo.hangar_dir());
        let _ = files::write_atomic(&path(repo), &bytes, 0o600);
    }
}

fn entry(repo: &Repository, remote: &str) -> Option<Entry> {
    let name = tracking(remote);
    let mut entries = read(repo).remote.into_iter();
    entries.find(|entry| entry.name == name)
}

/// Below which prefix the remote kept its refs when this clone last synced with it.
pub fn prefix(repo: &Repository, remote: &str) -> Option<Prefix> {
    entry(repo, remote)?.prefix?.parse().ok()
}

pub(super) fn note_prefix(repo: &Repository, remote: &str, prefix: Prefix) {
    change(repo, remote, |entry| {
        entry.prefix = Some(prefix.word().to_owned());
    });
}

/// Who could read the remote when this clone asked; `None` when it never asked these addresses.
pub fn readers(repo: &Repository, remote: &str, addresses: &[String]) -> Option<Readers> {
    let entry = entry(repo, remote)?;
    let same = entry.addresses == Some(digest(addresses));
    entry.readers.filter(|_| same)
}

/// Remembers who can read it.
pub fn note_readers(repo: &Repository, remote: &str, addresses: &[String], readers: Readers) {
    change(repo, remote, |entry| {
        entry.addresses = Some(digest(addresses));
        entry.readers = Some(readers);
    });
}

fn digest(addresses: &[String]) -> Digest {
    Digest::of(addresses.join("\n").as_bytes())
}
