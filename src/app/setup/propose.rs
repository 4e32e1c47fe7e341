//! What a `hangar.toml` for this repository should say.

use super::below::{self, Below};
use crate::app::Error;
use crate::git::{EntryKind, Repository};
use crate::grade::manifest::Tree;
use crate::grade::{adapter, detect_framework};
use crate::model::object_id::ObjectId;
use crate::model::plan::Framework;

/// Most paths that are looked at.
const MAX_PATHS: usize = 50_000;
/// Deepest folder that is looked into.
const MAX_DEPTH: usize = 12;
/// Largest file that is read.
const MAX_FILE: u64 = 4 << 20;

/// A proposal for `[task]` and `[grader]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Proposal {
    /// The framework.
    pub(super) framework: Framework,
    /// Whether the repository looks as if it used it.
    pub(super) found: bool,
    /// The implementer's own loop.
    pub(super) verify: String,
    /// How dependencies are fetched.
    pub(super) prepare: String,
    /// How it is built.
    pub(super) build: String,
    /// Where hidden tests may go.
    pub(super) tests: Vec<String>,
    /// Runner options.
    pub(super) options: Vec<String>,
    /// Plugins of the runner.
    pub(super) plugins: Vec<String>,
    /// Variables of the plan.
    pub(super) env: Vec<(String, String)>,
    /// Projects in folders, where the root is none.
    pub(super) below: Vec<Below>,
}

/// Looks at the files of a commit. Where nothing is recognised, `exec` is proposed: it fits any
/// repository.
pub(super) fn propose(repo: &Repository, commit: ObjectId) -> Result<Proposal, Error> {
    let mut paths = Vec::new();
    let tree = repo.read_commit(commit)?.tree;
    walk(repo, tree, "", 0, &mut paths)?;
    // What can't be read is taken for not being there.
    let read = |path: &str| repo.blob_at(commit, path, MAX_FILE).ok().flatten();
    let found = detect_framework(Tree {
        paths: &paths,
        read: &read,
    });
    Ok(match found {
        Some(found) => Proposal {
            framework: found.framework,
            found: true,
            verify: found.verify,
            prepare: found.prepare,
            build: found.build,
            options: found.options,
            plugins: found.plugins,
            env: found.env,
            tests: found.tests,
            below: Vec::new(),
        },
        None => Proposal {
            framework: Framework::Exec,
            found: false,
            verify: String::new(),
            prepare: String::new(),
            build: String::new(),
            options: Vec::new(),
            plugins: Vec::new(),
            env: Vec::new(),
            tests: owned(adapter(Framework::Exec).default_tests()),
            below: below::projects(&paths, &read),
        },
    })
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn walk(
    repo: &Repository,
    tree: ObjectId,
    above: &str,
    depth: usize,
    paths: &mut Vec<String>,
) -> Result<(), Error> {
    for entry in repo.read_tree(tree)? {
        if paths.len() >= MAX_PATHS {
            break;
        }
        // A name that is not UTF-8 tells nothing about a framework.
        let Ok(name) = String::from_utf8(entry.name) else {
            continue;
        };
        let path = format!("{above}{name}");
        match entry.kind {
            EntryKind::Tree if depth < MAX_DEPTH => {
                walk(repo, entry.id, &format!("{path}/"), depth + 1, paths)?;
            }
            EntryKind::Blob | EntryKind::Executable => paths.push(path),
            EntryKind::Tree | EntryKind::Link | EntryKind::Gitlink => {}
        }
    }
    Ok(())
}
