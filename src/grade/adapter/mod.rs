//! Adapters: one file for each test framework. An adapter says what to run and reads what came
//! out; it starts nothing and sees no sandbox.
//!
//! Adding one: a file here, a variant of [`Framework`], a line in [`adapter`] and in [`ALL`]
//! (`docs/how-to/new-adapter.md`).

mod binary;
mod cargo;
mod cmake_command;
mod cmake_properties;
mod cmake_scan;
mod ctest;
mod ctest_read;
mod exec;
mod external;
mod go;
mod go_scan;
mod go_words;
mod gotest;
mod handed;
mod jest;
mod js;
mod js_names;
mod js_package;
mod js_runner;
mod js_scan;
mod junit;
mod junit_xml;
mod libtest;
mod mocha;
mod node;
mod places;
mod pytest;
mod pytest_path;
mod pytest_plugins;
mod python;
mod python_imports;
mod python_proposal;
mod python_runner;
mod rust_scan;
mod tap;
mod unittest;
mod vitest;

use crate::grade::call::{Call, Layout, Raw, Script, Tool};
use crate::grade::manifest::Tree;
use crate::grade::report::RunReport;
use crate::grade::suite::Suite;
use crate::model::outcome::{TestId, Verdict};
use crate::model::plan::{Framework, Plan};
use std::collections::BTreeSet;

/// Something that the base needs and that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// What is missing, in a sentence.
    pub what: String,
    /// What to do, for example the line to add to `hangar.toml`.
    pub remedy: String,
}

/// The tests of the sealed files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listing {
    /// Known without running anything.
    Known(Vec<TestId>),
    /// A call lists them; [`Adapter::read_list`] reads its answer.
    Ask(Call),
    /// Only a run tells: the ids of `criteria.json` stand until the base check has run.
    OnlyByRunning,
}

/// The sealed files can't be listed. The text is meant for their writer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct Unlistable(pub Vec<String>);

/// What `hangar init` proposes for a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The framework.
    pub framework: Framework,
    /// The implementer's own loop.
    pub verify: String,
    /// How dependencies are fetched; empty is not at all.
    pub prepare: String,
    /// How it is built; empty is not at all.
    pub build: String,
    /// Where tests lie.
    pub tests: Vec<String>,
    /// Runner options.
    pub options: Vec<String>,
    /// Plugins of the runner.
    pub plugins: Vec<String>,
    /// Variables of the plan.
    pub env: Vec<(String, String)>,
}

/// The two trees of a grade, before the sealed files lie in one of them.
#[derive(Debug, Clone, Copy)]
pub struct Sides<'a> {
    /// The base.
    pub base: Tree<'a>,
    /// The graded tree, built.
    pub graded: Tree<'a>,
    /// Files of the base, and the sealed ones, that no patch may change.
    pub kept: &'a BTreeSet<String>,
}

/// Sentinels behind tests of the suite, in one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Company {
    /// Every test that is asked for, sentinels included.
    pub ids: Vec<TestId>,
    /// What runs them.
    pub call: Call,
}

/// One test framework.
pub trait Adapter: Sync {
    /// Which one.
    fn framework(&self) -> Framework;

    /// Globs of paths that would bend the runner and that a patch may not touch.
    fn protected(&self) -> &'static [&'static str];

    /// Where tests lie by habit.
    fn default_tests(&self) -> &'static [&'static str];

    /// The best verdict that its evidence supports.
    fn ceiling(&self) -> Verdict;

    /// Whether a repository looks as if it used this framework, and what to write for it.
    fn detect(&self, tree: Tree<'_>) -> Option<Proposal>;

    /// Programs that are needed.
    fn tools(&self, plan: &Plan) -> Vec<Tool>;

    /// Files of ours to lay before anything runs.
    fn scripts(&self, layout: &Layout) -> Vec<Script>;

    /// Whether a sealed file at this path can hold tests (others are helpers).
    fn is_test_file(&self, suite: &Suite, path: &str) -> bool;

    /// The sealed file that a test lies in.
    fn file_of<'a>(&self, suite: &'a Suite, id: &TestId) -> Option<&'a str>;

    /// Calls that show on the untouched base whether the runner and the dependencies are there. None
    /// where only the sealed files tell what is needed.
    fn preflight(&self, _suite: &Suite) -> Vec<Call> {
        Vec::new()
    }

    /// What the preflight found missing.
    fn read_preflight(&self, _suite: &Suite, _calls: &[(Call, Raw)]) -> Vec<Missing> {
        Vec::new()
    }

    /// Questions that are asked of the untouched base and of the graded tree, each in a fresh copy with
    /// the sealed files in it; none of them runs the tree's code.
    fn ask(&self, _suite: &Suite) -> Vec<Call> {
        Vec::new()
    }

    /// What [`Adapter::read`] compares: the answers to [`Adapter::ask`] of the base and of the graded tree.
    fn learn(&self, _suite: &mut Suite, _base: &[(Call, Raw)], _graded: &[(Call, Raw)]) {}

    /// How the paths end of the files that [`Adapter::redefined`] looks at. None: at no file.
    fn defines_names(&self) -> &'static [&'static str] {
        &[]
    }

    /// Files of the graded tree that give words or names of the kept files another meaning than the base.
    fn redefined(&self, _suite: &Suite, _sides: &Sides<'_>) -> BTreeSet<String> {
        BTreeSet::new()
    }

    /// How the tests of the sealed files are listed.
    fn list(&self, suite: &Suite) -> Result<Listing, Unlistable>;

    /// Reads the answer to [`Listing::Ask`].
    fn read_list(
        &self,
        _suite: &Suite,
        _call: &Call,
        _raw: &Raw,
    ) -> Result<Vec<TestId>, Unlistable> {
        Err(Unlistable(vec!["nothing was asked".into()]))
    }

    /// Calls that run these tests, in order, in one file tree.
    fn run(&self, suite: &Suite, ids: &[TestId]) -> Vec<Call>;

    /// Whether one process runs tests of several files, in the order in which they are asked for.
    fn shares_process(&self) -> bool {
        false
    }

    /// Calls that run the sentinels behind `before`, tests of the suite that passed or were skipped:
    /// each in a process in which the code under test was loaded and called as those tests do it, so
    /// that what it does to its process meets a sentinel. Each tested file is met by each sentinel.
    /// `None`: every test is a process of its own, and no sentinel can meet what another test met.
    fn company(
        &self,
        _suite: &Suite,
        _before: &[TestId],
        _sentinels: &[TestId],
    ) -> Option<Vec<Company>> {
        None
    }

    /// Reads what the calls of [`Adapter::run`] left. Calls that were never started are left out by
    /// the caller; their tests count as absent, which is why `ids` is given again.
    fn read(&self, suite: &Suite, ids: &[TestId], calls: &[(Call, Raw)]) -> RunReport;
}

/// The adapter of a framework.
pub fn adapter(framework: Framework) -> &'static dyn Adapter {
    match framework {
        Framework::Pytest => &pytest::Pytest,
        Framework::Unittest => &unittest::Unittest,
        Framework::Cargo => &cargo::Cargo,
        Framework::Go => &go::Go,
        Framework::Node => &node::Node,
        Framework::Mocha => &mocha::ADAPTER,
        Framework::Jest => &jest::ADAPTER,
        Framework::Vitest => &vitest::ADAPTER,
        Framework::Ctest => &ctest::Ctest,
        Framework::Tap => &tap::Tap,
        Framework::Junit => &junit::Junit,
        Framework::Exec => &exec::Exec,
        Framework::External => &external::External,
    }
}

/// Shell text that runs one test by hand, with `ID` for its id. For prompts.
pub const fn one_test(framework: Framework) -> &'static str {
    match framework {
        Framework::Pytest => "python -m pytest ID",
        Framework::Unittest => "python -m unittest FILE -k NAME",
        Framework::Cargo => "cargo test --test TARGET NAME -- --exact",
        Framework::Go => "go test ./FOLDER -run '^NAME$'",
        Framework::Node => "node --test FILE",
        Framework::Mocha => "npx mocha FILE -g NAME",
        Framework::Jest => "npx jest FILE -t NAME",
        Framework::Vitest => "npx vitest run FILE -t NAME",
        Framework::Ctest => "ctest --test-dir build -R '^NAME$'",
        Framework::Tap => "the file itself, or its interpreter with the file",
        Framework::Junit => "the program of the plan with the file",
        Framework::Exec => "the file itself: exit status 0 passes, 77 skips, anything else fails",
        Framework::External => "the programs of its steps, by hand",
    }
}

/// Whether no sentinel can be put behind tests in a process that both share, so that
/// [`Adapter::company`] gives none.
pub const fn tests_are_apart(framework: Framework) -> bool {
    matches!(
        framework,
        Framework::Cargo
            | Framework::Go
            | Framework::Ctest
            | Framework::Tap
            | Framework::Junit
            | Framework::Exec
            | Framework::External
    )
}

/// The best verdict that a grade can reach with this framework, with or without sentinels.
pub fn best_verdict(framework: Framework, sentinels: bool) -> Verdict {
    let ceiling = adapter(framework).ceiling();
    let met = sentinels && !tests_are_apart(framework);
    if met || ceiling == Verdict::External {
        ceiling
    } else {
        ceiling.min(Verdict::Report)
    }
}

/// Every framework, in the order in which a repository is asked for it.
pub const ALL: [Framework; 13] = [
    Framework::Cargo,
    Framework::Go,
    Framework::Pytest,
    Framework::Mocha,
    Framework::Jest,
    Framework::Vitest,
    Framework::Node,
    Framework::Unittest,
    Framework::Ctest,
    Framework::Tap,
    Framework::Junit,
    Framework::External,
    Framework::Exec,
];

/// The framework that a repository seems to use; of what is a command line and no library, `external`,
/// since nothing in it can bend those tests. `exec` fits any repository, so it is proposed only
/// when nothing else fits and the caller wants a fallback.
pub fn detect_framework(tree: Tree<'_>) -> Option<Proposal> {
    let found = ALL
        .iter()
        .find_map(|framework| adapter(*framework).detect(tree));
    external::of_a_command_line(tree, found.as_ref()).or(found)
}
