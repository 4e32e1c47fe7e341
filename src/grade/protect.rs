//! Which paths a patch may not change, and which are put back to base before tests are laid.
//!
//! Works on listings and byte paths only; whoever materialises a tree follows [`graded_tree`].

use crate::grade::links::{self, ReadLink};
use crate::grade::stand_ins::{belongs_to_a_run, is_snapshot, module_name, stood_in_for};
use crate::model::listing::{Change, Entry, Listing};
use crate::model::plan::Plan;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::LazyLock;

/// What configures Git, hooks, continuous integration and hangar itself. Nothing of it is read while
/// grading, so a change there ends no grade; it is delivered only when an approver signs the patch
/// id. No sealed file may lie there.
pub const GUARDED: &[&str] = &[
    "**/.gitattributes",
    "**/.gitmodules",
    ".lfsconfig",
    ".github/",
    ".gitlab/",
    ".gitlab-ci.yml",
    ".gitea/",
    ".forgejo/",
    ".circleci/",
    ".buildkite/",
    ".woodpecker/",
    ".woodpecker.yml",
    ".woodpecker.yaml",
    ".travis.yml",
    ".cirrus.yml",
    ".drone.yml",
    "appveyor.yml",
    ".appveyor.yml",
    "azure-pipelines.yml",
    "azure-pipelines.yaml",
    "bitbucket-pipelines.yml",
    "**/Jenkinsfile",
    "**/CODEOWNERS",
    ".githooks/",
    ".husky/",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    "lefthook.yaml",
    ".lefthook.yml",
    ".lefthook.yaml",
    "lefthook-local.yml",
    ".devcontainer/",
    ".vscode/",
    ".claude/",
    "hangar.toml",
];

/// How many guarded paths of a patch a run document names.
const MAX_NAMED: usize = 100;

/// Most patterns of one set and the longest pattern in bytes.
const MAX_PATTERNS: usize = 512;
const MAX_PATTERN: usize = 512;

/// A set of path patterns can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// One pattern is no glob.
    #[error("`{0}` is not a path pattern")]
    Pattern(String),
    /// There are too many.
    #[error("more than {MAX_PATTERNS} path patterns")]
    TooMany,
}

/// Path patterns, relative to the root: `*` stays within a component, `**` crosses them, and a
/// pattern that names a folder (`tests/`, or `tests` where that is one) means everything below it.
#[derive(Debug, Clone)]
pub struct Globs {
    set: GlobSet,
    /// Literal folders among the patterns, without the slash at the end.
    folders: BTreeSet<Vec<u8>>,
}

impl Globs {
    /// Compiles patterns.
    pub fn new<S: AsRef<str>>(patterns: &[S]) -> Result<Self, Error> {
        if patterns.len() > MAX_PATTERNS {
            return Err(Error::TooMany);
        }
        let mut set = GlobSetBuilder::new();
        let mut folders = BTreeSet::new();
        for pattern in patterns {
            let text = pattern.as_ref();
            let error = || Error::Pattern(text.chars().take(80).collect());
            let bare = text.trim_end_matches('/');
            let escapes = bare.split('/').any(|part| matches!(part, "" | "." | ".."));
            if escapes || text.len() > MAX_PATTERN {
                return Err(error());
            }
            let mut add = |text: &str| {
                let glob = GlobBuilder::new(text).literal_separator(true).build();
                glob.map(|glob| {
                    set.add(glob);
                })
            };
            if bare.len() == text.len() {
                add(bare).map_err(|_| error())?;
            }
            add(&format!("{bare}/**")).map_err(|_| error())?;
            folders.insert(bare.as_bytes().to_vec());
        }
        let set = set
            .build()
            .map_err(|_| Error::Pattern("these together".into()))?;
        Ok(Self { set, folders })
    }

    /// Whether a path is meant.
    pub fn matches(&self, path: &[u8]) -> bool {
        self.set.is_match(Path::new(OsStr::from_bytes(path)))
    }

    /// Whether `path`, were it a file or a link, would stand where a meant folder or one of its
    /// parents belongs.
    fn is_in_the_way(&self, path: &[u8]) -> bool {
        self.folders
            .iter()
            .any(|folder| is_same_or_above(path, folder))
    }
}

/// Whether `above` is `path` or one of its parent folders.
fn is_same_or_above(above: &[u8], path: &[u8]) -> bool {
    path.strip_prefix(above)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// The changed paths among [`GUARDED`], in order, as text.
pub fn guarded(changes: &BTreeMap<Vec<u8>, Change>) -> Vec<String> {
    // In any case of letters: on some file systems they name the same file. A folder's name alone is
    // meant too: a link of that name makes another folder's files the ones that count.
    static GLOBS: LazyLock<Globs> = LazyLock::new(|| {
        let lower = GUARDED.iter().map(|glob| glob.to_lowercase());
        let all: Vec<String> = lower
            .flat_map(|glob| [glob.trim_end_matches('/').to_owned(), glob])
            .collect();
        Globs::new(&all).expect("a test compiles these patterns")
    });
    changes
        .keys()
        .filter(|path| GLOBS.matches(&path.to_ascii_lowercase()))
        .map(|path| String::from_utf8_lossy(path).into_owned())
        .collect()
}

/// The first of them, as a run document names them.
pub fn named(changes: &BTreeMap<Vec<u8>, Change>) -> Vec<String> {
    let mut paths = guarded(changes);
    paths.truncate(MAX_NAMED);
    paths
}

/// The patterns of one plan, compiled.
#[derive(Debug, Clone)]
pub struct Protection {
    tests: Globs,
    protected: Globs,
    may_touch: Globs,
    /// What links of the base among them lead to.
    linked: BTreeSet<Vec<u8>>,
}

impl Protection {
    /// Compiles a plan's patterns. `adapter` are the framework's own protected paths.
    pub fn new(plan: &Plan, adapter: &[&str]) -> Result<Self, Error> {
        // A folder's name alone is meant too: a link of that name makes another folder's files the ones
        // that count.
        let own = plan.protected.iter().map(String::as_str);
        let protected = adapter.iter().copied().chain(own);
        let mut protected: Vec<&str> = protected.map(|glob| glob.trim_end_matches('/')).collect();
        // A plugin may be a file of the tree, which the runner loads before the tests.
        let plugins = plan.plugins.iter().map(|one| one.trim_start_matches("./"));
        protected.extend(plugins.filter(|one| Globs::new(&[one]).is_ok()));
        Ok(Self {
            tests: Globs::new(&plan.tests)?,
            protected: Globs::new(&protected)?,
            may_touch: Globs::new(&plan.may_touch)?,
            linked: BTreeSet::new(),
        })
    }

    /// The same, with what links of the base that lie where tests lie or are protected lead to: no patch may
    /// change that either.
    #[must_use]
    pub fn with_links(mut self, base: &Listing, read: &ReadLink<'_>) -> Self {
        self.linked = links::targets(base, read, |path| self.guards(path));
        self
    }

    /// Whether a link of the base leads to this path, or to a folder above it.
    fn is_linked(&self, path: &[u8]) -> bool {
        let mut linked = self.linked.iter();
        linked.any(|place| is_same_or_above(place, path)) && !self.may_touch.matches(path)
    }

    /// Where hidden tests may lie.
    pub fn tests(&self) -> &Globs {
        &self.tests
    }

    /// Whether a sealed file may lie at `path`: below the plan's tests, and nowhere protected for
    /// everybody. (The adapter's own protection binds patches, not sealed files.)
    pub fn may_hold_a_sealed_file(&self, path: &[u8]) -> bool {
        self.tests.matches(path)
    }

    /// Whether a path may not change once the graded tree stands: it lies where tests lie, is in
    /// their way, or is protected; or Python would load it in place of such a file.
    pub fn guards(&self, path: &[u8]) -> bool {
        let guards = |path: &[u8]| {
            let protected = self.protected.matches(path) && !self.may_touch.matches(path);
            protected || self.tests.matches(path)
        };
        let module = stood_in_for(path);
        guards(path)
            || is_snapshot(path)
            || self.is_linked(path)
            || self.tests.is_in_the_way(path)
            || module.is_some_and(|path| guards(&path))
    }

    /// Whether the plan lets a patch change a path, although it is protected.
    pub fn may_touch(&self, path: &[u8]) -> bool {
        self.may_touch.matches(path)
    }

    /// Protected paths that a patch changes without leave, and what Python would load in their place. What
    /// lies where tests lie is not among them, nor a cache of bytecode or a snapshot: they are put back to base
    /// and never run.
    pub fn touched(&self, changes: &BTreeMap<Vec<u8>, Change>) -> Vec<Vec<u8>> {
        let protected = |path: &[u8]| self.protected.matches(path) && !self.may_touch.matches(path);
        let stands_in = |path: &[u8]| stood_in_for(path).is_some_and(|module| protected(&module));
        let paths = changes
            .keys()
            .filter(|path| !is_put_back(&self.tests, path));
        paths
            .filter(|path| {
                protected(path)
                    || self.is_linked(path)
                    || stands_in(path) && !self.may_touch.matches(path)
            })
            .cloned()
            .collect()
    }

    /// Changed paths that are delivered as the patch has them and were run as the base has them.
    pub fn unrun(&self, changes: &BTreeMap<Vec<u8>, Change>) -> Vec<Vec<u8>> {
        let paths = changes.keys();
        let paths = paths.filter(|path| is_put_back(&self.tests, path));
        paths.cloned().collect()
    }

    /// Whether a path would be taken for one of the kept modules where JavaScript names that without its
    /// extension, or as a folder. `sealed` are the paths of the sealed files.
    pub fn stand_ins<'a>(
        &'a self,
        base: &'a Listing,
        sealed: impl IntoIterator<Item = &'a [u8]>,
    ) -> impl Fn(&[u8]) -> bool {
        let is_kept = |path: &[u8]| {
            let protected = self.protected.matches(path) && !self.may_touch.matches(path);
            protected || self.tests.matches(path)
        };
        let own = base.iter().map(|(path, _)| path);
        let own = own.filter(|path| is_kept(path)).chain(sealed);
        let names: BTreeSet<&[u8]> = own.filter_map(module_name).collect();
        move |path| {
            let names_it = |name: Option<&[u8]>| name.is_some_and(|name| names.contains(name));
            let folder = path.strip_suffix(b"/package.json");
            let free = self.tests.matches(path) || self.may_touch.matches(path);
            !free && (names_it(Some(path)) || names_it(folder) || names_it(module_name(path)))
        }
    }

    /// Paths of the patch that stand in so.
    pub fn standing_in<'a>(
        &'a self,
        base: &'a Listing,
        changes: &BTreeMap<Vec<u8>, Change>,
        sealed: impl IntoIterator<Item = &'a [u8]>,
    ) -> Vec<Vec<u8>> {
        let stands_in = self.stand_ins(base, sealed);
        let there = changes.iter().filter(|(_, (_, after))| after.is_some());
        let paths = there.map(|(path, _)| path);
        let paths = paths.filter(|path| stands_in(path) && !self.protected.matches(path));
        paths.cloned().collect()
    }
}

/// Whether the graded tree has the base's file at this path, whatever the patch says.
fn is_put_back(tests: &Globs, path: &[u8]) -> bool {
    tests.matches(path) || belongs_to_a_run(path)
}

/// The tree that is graded, and what of the patch is not in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GradedTree {
    /// Base + patch, with everything where tests lie as in the base, without the sealed files.
    pub tree: Listing,
    /// Paths whose change in the patch is delivered but not run.
    pub put_back: BTreeSet<Vec<u8>>,
}

/// The graded tree: `result`, with every path that `tests` means, and every cache of Python's bytecode and snapshot, as
/// `base` has it.
///
/// A file or link of the patch that stands where a folder of tests or a sealed file needs a folder
/// (`tests` replaced by a link) is left out too. `sealed` are the paths of the sealed files.
pub fn graded_tree<'a>(
    base: &Listing,
    result: &Listing,
    tests: &Globs,
    sealed: impl IntoIterator<Item = &'a [u8]>,
) -> GradedTree {
    let is_back = |path: &[u8]| is_put_back(tests, path);
    let mut needed: BTreeSet<Vec<u8>> = BTreeSet::new();
    let from_base: BTreeMap<Vec<u8>, Entry> = base
        .iter()
        .filter(|(path, _)| is_back(path))
        .map(|(path, entry)| (path.to_vec(), *entry))
        .collect();
    for path in from_base.keys() {
        needed.extend(parents(path));
    }
    for path in sealed {
        needed.extend(parents(path));
    }
    let mut out = GradedTree::default();
    for (path, entry) in result.iter() {
        if is_back(path) {
            if from_base.get(path) != Some(entry) {
                out.put_back.insert(path.to_vec());
            }
        } else if base.get(path) != Some(entry)
            && (needed.contains(path) || tests.is_in_the_way(path))
        {
            out.put_back.insert(path.to_vec());
        } else {
            out.tree.insert(path, *entry);
        }
    }
    for (path, entry) in from_base {
        if result.get(&path).is_none() {
            out.put_back.insert(path.clone());
        }
        out.tree.insert(path, entry);
    }
    out
}

/// Parent folders of a path.
pub fn parents(path: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    path.iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'/')
        .map(|(end, _)| path[..end].to_vec())
}

#[cfg(test)]
pub(super) mod tests;
