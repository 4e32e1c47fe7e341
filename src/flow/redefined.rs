//! Files of a graded tree by which words or names of the tests come to mean something else than on the base.
//! Looked for when the plan's build step is done, since that may write such files too.

use super::Error;
use super::frozen;
use super::subject::Subject;
use crate::git::Repository;
use crate::grade::adapter::{Sides, adapter};
use crate::grade::links;
use crate::grade::manifest::Tree;
use crate::grade::protect::Protection;
use crate::grade::suite::Suite;
use crate::model::listing::{Listing, Mode};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Largest file that is read.
const MAX_BYTES: u64 = 4 << 20;

/// What was built, and from what.
pub(super) struct Built<'a> {
    /// Where it lies on the host.
    pub(super) tree: &'a Path,
    /// What it was made of.
    pub(super) graded: &'a Listing,
    /// Whether a build step ran in it.
    pub(super) by_a_step: bool,
}

/// The paths, in order, but for those that the plan lets a patch change.
pub(super) fn redefined(
    repo: &Repository,
    subject: &Subject,
    suite: &Suite,
    protection: &Protection,
    built: &Built<'_>,
) -> Result<Vec<String>, Error> {
    let framework = adapter(suite.plan.framework);
    let ends = framework.defines_names();
    let counts = |path: &[u8]| ends.iter().any(|end| path.ends_with(end.as_bytes()));
    let mut base = subject.base_listing.iter();
    // What a link leads to has any name.
    let has_links = base.any(|(path, entry)| entry.mode == Mode::Symlink && counts(path));
    let changes = subject.changes();
    if !built.by_a_step && !has_links && !changes.keys().any(|path| counts(path)) {
        return Ok(Vec::new());
    }
    let text = |path: &[u8]| String::from_utf8(path.to_vec()).ok();
    let base_paths: Vec<String> = subject
        .base_listing
        .iter()
        .filter_map(|(path, _)| text(path))
        .collect();
    let graded_paths: Vec<String> = if built.by_a_step {
        let paths = frozen::paths(built.tree)?;
        paths
            .into_iter()
            .filter(|path| counts(path))
            .filter_map(|path| text(&path))
            .collect()
    } else {
        built
            .graded
            .iter()
            .filter_map(|(path, _)| text(path))
            .collect()
    };
    let kept = base_paths
        .iter()
        .filter(|path| protection.guards(path.as_bytes()));
    let mut kept: BTreeSet<String> = kept.cloned().collect();
    kept.extend(suite.files.iter().map(|file| file.path.clone()));
    let read_link = |path: &[u8]| subject.base_link(repo, path);
    let of_base = |path: &str| {
        let places = links::followed(&subject.base_listing, &read_link, path.as_bytes());
        let place = places
            .first()
            .and_then(|place| std::str::from_utf8(place).ok());
        let path = place.unwrap_or(path);
        repo.blob_at(subject.base, path, MAX_BYTES).ok().flatten()
    };
    let of_graded = |path: &str| read(built.tree, path);
    let found = framework.redefined(
        suite,
        &Sides {
            base: Tree {
                paths: &base_paths,
                read: &of_base,
            },
            graded: Tree {
                paths: &graded_paths,
                read: &of_graded,
            },
            kept: &kept,
        },
    );
    let found = found.into_iter();
    Ok(found
        .filter(|path| !protection.may_touch(path.as_bytes()))
        .collect())
}

/// A file of the tree, also by a link that stays in it. All that could change it is dead by now.
fn read(tree: &Path, path: &str) -> Option<Vec<u8>> {
    let root = tree.canonicalize().ok()?;
    let file = tree.join(path).canonicalize().ok()?;
    let meta = file.metadata().ok()?;
    let is_ours = file.starts_with(&root) && meta.is_file() && meta.len() <= MAX_BYTES;
    is_ours.then(|| fs::read(&file).ok())?
}
