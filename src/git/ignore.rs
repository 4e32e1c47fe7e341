//! Which new files of a work tree are left out, by the `.gitignore` files of the *base*.
//!
//! The user's global rules, `.git/info/exclude` and what the agent did to either have no say.

use super::error::{Error, file};
use super::objects::EntryKind;
use super::repository::Repository;
use super::trees::Leaf;
use gix::glob::pattern::Case;
use gix::ignore::Search;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Largest `.gitignore` that is read, in bytes.
pub(super) const MAX_RULES: u64 = 1 << 20;
/// A made-up root that rule files are placed under; never touched.
const ROOT: &str = "/tree";
/// The name of rule files.
pub(super) const RULE_FILE: &[u8] = b".gitignore";

/// Patterns of several folders; deeper ones decide first.
#[derive(Default)]
pub(super) struct Rules {
    search: Search,
}

impl Rules {
    /// The rules of a tree.
    pub(super) fn of_tree(
        repository: &Repository,
        leaves: &BTreeMap<Vec<u8>, Leaf>,
    ) -> Result<Self, Error> {
        let mut files: Vec<_> = leaves
            .iter()
            .filter(|(path, leaf)| {
                matches!(leaf.kind, EntryKind::Blob | EntryKind::Executable)
                    && path.rsplit(|byte| *byte == b'/').next() == Some(RULE_FILE)
            })
            .collect();
        files.sort_by_key(|(path, _)| path.split(|byte| *byte == b'/').count());
        let mut rules = Self::default();
        for (path, leaf) in files {
            let content = repository.read_blob(leaf.id, MAX_RULES)?;
            rules.add(path, &content)?;
        }
        Ok(rules)
    }

    /// Adds the rule file at `path`, which decides before those added earlier.
    pub(super) fn add(&mut self, path: &[u8], content: &[u8]) -> Result<(), Error> {
        let root = Path::new(ROOT);
        let source = root.join(OsStr::from_bytes(path));
        let parse = gix::ignore::search::Ignore {
            support_precious: false,
        };
        self.search
            .add_patterns_buffer(content, source.clone(), Some(root), parse)
            .map_err(file("read the rules of", &source))
    }

    /// Whether a rule leaves out `path` itself. Folders above it are the caller's to ask about.
    pub(super) fn leaves_out(&self, path: &[u8], is_folder: bool) -> bool {
        self.search
            .pattern_matching_relative_path(path.into(), Some(is_folder), Case::Sensitive)
            .is_some_and(|found| !found.pattern.is_negative())
    }
}
