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
pub(super) mod tests {
    use super::*;
    use crate::model::listing::{Mode, changes};
    use crate::model::plan::Framework;
    use proptest::prelude::*;

    pub(crate) fn listing(files: &[(&str, &str)]) -> Listing {
        let mut listing = Listing::new();
        for (path, text) in files {
            listing.insert(*path, Entry::of(Mode::Regular, text.as_bytes()));
        }
        listing
    }

    fn paths(listing: &Listing) -> Vec<String> {
        let text = |path| String::from_utf8_lossy(path).into_owned();
        listing.iter().map(|(path, _)| text(path)).collect()
    }

    #[test]
    fn patterns_mean_folders_files_and_globs() {
        let globs = Globs::new(&["tests/", "crates/*/tests", "**/conftest.py", "a.py"]).unwrap();
        for path in [
            "tests/a",
            "tests/a/b",
            "crates/x/tests/t.rs",
            "conftest.py",
            "x/conftest.py",
            "a.py",
        ] {
            assert!(globs.matches(path.as_bytes()), "{path}");
        }
        for path in [
            "tests",
            "mytests/a",
            "crates/x/y/tests/t.rs",
            "b.py",
            "x/a.py",
        ] {
            assert!(!globs.matches(path.as_bytes()), "{path}");
        }
        for bad in ["", "/", "../x", "/tests", "a//b", "a/./b", "[", "{a"] {
            assert!(Globs::new(&[bad]).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_path_that_is_not_text_is_matched_too() {
        let globs = Globs::new(&["tests/"]).unwrap();
        assert!(globs.matches(b"tests/\xff\xfe"));
    }

    #[test]
    fn protected_changes_are_found_unless_allowed_or_among_the_tests() {
        let mut plan = Plan::new(Framework::Pytest);
        plan.protected = vec!["secret.txt".into()];
        plan.may_touch = vec!["deps.txt".into()];
        plan.protected.push("deps.txt".into());
        let protection = Protection::new(&plan, &["**/conftest.py"]).unwrap();
        let base = listing(&[("a.py", "1"), ("conftest.py", "1"), ("secret.txt", "1")]);
        let result = listing(&[
            ("a.py", "2"),
            ("conftest.py", "2"),
            ("tests/conftest.py", "2"),
            ("deps.txt", "2"),
            (".github/workflows/x.yml", "2"),
            ("sub/.gitattributes", "2"),
        ]);
        let touched = protection.touched(&changes(&base, &result));
        let expected: [&[u8]; 2] = [b"conftest.py", b"secret.txt"];
        assert_eq!(touched, expected);
    }

    #[test]
    fn links_in_place_of_protected_folders_and_plugins_of_the_plan_are_touched() {
        let mut plan = Plan::new(Framework::Go);
        plan.protected = vec!["fixed/".into()];
        plan.plugins = vec!["./setup.cjs".into(), "lib/one.cjs".into(), "[".into()];
        let protection = Protection::new(&plan, &["**/vendor/"]).unwrap();
        let changed = |path: &str| {
            let mut result = Listing::new();
            result.insert(path, Entry::of(Mode::Symlink, b"elsewhere"));
            protection.touched(&changes(&Listing::new(), &result)).len()
        };
        for path in [
            "vendor",
            "a/vendor",
            "fixed",
            "vendor/x",
            "fixed/x",
            "setup.cjs",
            "lib/one.cjs",
        ] {
            assert_eq!(changed(path), 1, "{path}");
        }
        for path in ["vendors", "vendor.go", "a/fixed", "lib/two.cjs"] {
            assert_eq!(changed(path), 0, "{path}");
        }
    }

    #[test]
    fn changes_of_ci_hooks_and_configuration_are_guarded_wherever_they_lie() {
        let base = listing(&[("a.py", "1"), ("hangar.toml", "1"), (".husky/x", "1")]);
        let result = listing(&[
            ("a.py", "2"),
            ("hangar.toml", "2"),
            (".github/workflows/x.yml", "2"),
            ("sub/.gitattributes", "2"),
            ("sub/hangar.toml", "2"),
            ("sub/.GitModules", "2"),
            ("github/x", "2"),
        ]);
        let expected = [
            ".github/workflows/x.yml",
            ".husky/x",
            "hangar.toml",
            "sub/.GitModules",
            "sub/.gitattributes",
        ];
        assert_eq!(guarded(&changes(&base, &result)), expected);
        let many: Vec<String> = (0..300).map(|n| format!(".github/{n}")).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|path| (path.as_str(), "")).collect();
        let all = guarded(&changes(&Listing::new(), &listing(&many)));
        assert_eq!(all.len(), 300);
        let mut linked = Listing::new();
        linked.insert(".githooks", Entry::of(Mode::Symlink, b"elsewhere"));
        assert_eq!(guarded(&changes(&Listing::new(), &linked)), [".githooks"]);
    }

    #[test]
    fn changes_among_the_tests_are_put_back() {
        let tests = Globs::new(&["tests/"]).unwrap();
        let base = listing(&[
            ("a.py", "1"),
            ("tests/help.py", "1"),
            ("tests/gone.py", "1"),
        ]);
        let result = listing(&[
            ("a.py", "2"),
            ("tests/help.py", "bent"),
            ("tests/new.py", "x"),
        ]);
        let graded = graded_tree(&base, &result, &tests, []);
        assert_eq!(
            graded.tree,
            listing(&[
                ("a.py", "2"),
                ("tests/help.py", "1"),
                ("tests/gone.py", "1")
            ])
        );
        assert_eq!(graded.put_back.len(), 3);
    }

    #[test]
    fn what_belongs_to_a_run_is_left_out_of_a_patch_and_stays_of_the_base() {
        let tests = Globs::new(&["src/**/test_*.py"]).unwrap();
        let base = listing(&[("src/__pycache__/old.cpython-311.pyc", "1")]);
        let result = listing(&[
            ("src/__pycache__/old.cpython-311.pyc", "2"),
            ("src/a/__pycache__/test_x.cpython-311.pyc", "x"),
            ("src/__snapshots__/a.test.js.snap", "x"),
            ("src/a/pycache.py", "x"),
        ]);
        let mut linked = result.clone();
        linked.insert("lib/__pycache__", Entry::of(Mode::Symlink, b"../src"));
        for result in [result, linked] {
            let graded = graded_tree(&base, &result, &tests, []);
            let expected = [base.clone(), listing(&[("src/a/pycache.py", "x")])];
            let expected: Listing = expected
                .iter()
                .flat_map(Listing::iter)
                .map(|(path, entry)| (path.to_vec(), *entry))
                .collect();
            assert_eq!(graded.tree, expected);
        }
    }

    #[test]
    fn what_links_among_the_tests_lead_to_is_protected() {
        let mut plan = Plan::new(Framework::Pytest);
        plan.tests = vec!["tests/".into()];
        plan.may_touch = vec!["shared/free.py".into()];
        let mut base = listing(&[("shared/check.py", "1"), ("tools/conftest.py", "1")]);
        let linked = [
            ("tests/check.py", "../shared/check.py"),
            ("tests/data", "../shared/data"),
            ("tests/free.py", "../shared/free.py"),
            ("conftest.py", "tools/conftest.py"),
            ("code.py", "tools/code.py"),
        ];
        for (path, target) in linked {
            base.insert(path, Entry::of(Mode::Symlink, target.as_bytes()));
        }
        let read = |path: &[u8]| {
            let found = linked.iter().find(|(have, _)| have.as_bytes() == path);
            found.map(|(_, target)| target.as_bytes().to_vec())
        };
        let protection = Protection::new(&plan, &["**/conftest.py"]).unwrap();
        let protection = protection.with_links(&base, &read);
        let touched = |path: &str| {
            let changed = changes(&Listing::new(), &listing(&[(path, "2")]));
            !protection.touched(&changed).is_empty()
        };
        for path in [
            "shared/check.py",
            "shared/data/rows.json",
            "shared/data",
            "tools/conftest.py",
        ] {
            assert!(
                touched(path) && protection.guards(path.as_bytes()),
                "{path}"
            );
        }
        for path in ["shared/other.py", "shared/free.py", "tools/code.py"] {
            assert!(
                !touched(path) && !protection.guards(path.as_bytes()),
                "{path}"
            );
        }
    }

    #[test]
    fn a_link_in_place_of_the_tests_folder_is_left_out() {
        let tests = Globs::new(&["pkg/tests/"]).unwrap();
        let base = listing(&[("pkg/tests/t.py", "1")]);
        for place in ["pkg/tests", "pkg"] {
            let mut result = listing(&[("a.py", "2")]);
            result.insert(place, Entry::of(Mode::Symlink, b"/etc"));
            let graded = graded_tree(&base, &result, &tests, []);
            assert_eq!(paths(&graded.tree), ["a.py", "pkg/tests/t.py"], "{place}");
        }
    }

    #[test]
    fn a_file_in_the_way_of_a_sealed_file_is_left_out() {
        let tests = Globs::new(&["**/hidden/*.py"]).unwrap();
        let result = listing(&[("a/hidden", "file")]);
        let sealed: [&[u8]; 1] = [b"a/hidden/t.py"];
        let graded = graded_tree(&Listing::new(), &result, &tests, sealed);
        assert!(graded.tree.is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_pattern_and_path_is_handled(
            patterns in proptest::collection::vec("[a/*?{},\\[\\]!.-]{0,12}", 0..4),
            path: Vec<u8>,
        ) {
            if let Ok(globs) = Globs::new(&patterns) {
                let _ = globs.matches(&path);
                let _ = globs.is_in_the_way(&path);
            }
        }

        #[test]
        fn where_tests_lie_the_graded_tree_is_the_base(
            base in proptest::collection::btree_map("(tests|src)/[ab]", "[xy]", 0..4),
            result in proptest::collection::btree_map("(tests|src)/[ab]|tests|src", "[xy]", 0..4),
        ) {
            let make = |files: &BTreeMap<String, String>| {
                let files: Vec<(&str, &str)> =
                    files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
                listing(&files)
            };
            let tests = Globs::new(&["tests/"]).unwrap();
            let base = make(&base);
            let graded = graded_tree(&base, &make(&result), &tests, []);
            let below = |listing: &Listing| -> Listing {
                listing.iter().filter(|(path, _)| path.starts_with(b"tests"))
                    .map(|(path, entry)| (path.to_vec(), *entry)).collect()
            };
            prop_assert_eq!(below(&graded.tree), below(&base));
        }
    }
}
