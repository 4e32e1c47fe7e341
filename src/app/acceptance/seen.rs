//! What a person was shown of hidden tests, kept on their machine.

use crate::app::Error;
use crate::base::files;
use crate::model::digest::Digest;
use crate::model::ids::TaskId;
use crate::store::Store;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What this person was shown, kept on this machine: a decision is about what was shown last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Seen {
    /// Format, 1.
    pub(super) format: u32,
    /// The manifest that was shown last.
    pub(super) manifest: Digest,
    /// First look at it, in seconds since 1970.
    pub(super) first: i64,
    /// Files that were opened, each as a digest of manifest and path: names of tests stay inside.
    pub(super) files: Vec<Digest>,
}

fn seen_path(store: &Store, id: &TaskId) -> PathBuf {
    store
        .repo
        .hangar_dir()
        .join("reviews")
        .join(format!("{id}.json"))
}

/// What was shown last of a task.
pub(super) fn seen(store: &Store, id: &TaskId) -> Option<Seen> {
    let bytes = std::fs::read(seen_path(store, id)).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Remembers that these files of a version were shown.
pub(super) fn remember<'a>(
    store: &Store,
    id: &TaskId,
    manifest: Digest,
    paths: impl Iterator<Item = &'a str>,
) -> Result<(), Error> {
    let before = seen(store, id).filter(|seen| seen.manifest == manifest);
    let mut now = before.unwrap_or_else(|| Seen {
        format: 1,
        manifest,
        first: store.clock.now().as_second(),
        files: Vec::new(),
    });
    let mark = |path: &str| Digest::of(format!("{manifest} {path}").as_bytes());
    now.files.extend(paths.map(mark));
    now.files.sort();
    now.files.dedup();
    let path = seen_path(store, id);
    if let Some(folder) = path.parent() {
        files::create_private_dir(folder)?;
    }
    let bytes = serde_json::to_vec(&now).expect("digests, numbers and names are JSON");
    Ok(files::write_atomic(&path, &bytes, 0o600)?)
}
