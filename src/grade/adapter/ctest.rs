//! `ctest`: tests that a sealed CMakeLists.txt registers by `add_test`. The tree is configured and compiled
//! once, with the sealed files in it; then ctest runs each test by itself. Ids: `tests/CMakeLists.txt > name`.
//!
//! CMakeLists.txt of the patch is a program that says how the tests are built, so the sealed files are not
//! all that a test is made of. ctest's JSON tells from which file each test comes, how it is started and what
//! gives its exit status another meaning, and what was built must be the same before and after each test. It
//! still runs beside the compiler, and can make something else of one test than of the others. How a test
//! ended is the exit status of one process of the code: the verdict is `exit`, and only a sentinel that calls
//! the code sees that it leaves early with success.

use super::{Adapter, Listing, Proposal, Unlistable, cmake_scan, ctest_read, handed};
use crate::grade::call::{Call, End, Layout, Raw, Script, Tool};
use crate::grade::manifest::Tree;
use crate::grade::report::{Builder, Fault, RunReport};
use crate::grade::suite::Suite;
use crate::model::outcome::{TestId, Verdict};
use crate::model::plan::{Framework, Plan};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;

/// The adapter.
#[derive(Debug)]
pub(super) struct Ctest;

const SCRIPT: &str = "step.sh";
const LISTS: &str = "CMakeLists.txt";

impl Adapter for Ctest {
    fn framework(&self) -> Framework {
        Framework::Ctest
    }

    // ctest reads what CMake wrote into the build folder, and nothing of the tree. Presets are read only
    // where they are asked for. CMakeLists.txt is left to the patch: a new file has to be named in it.
    fn protected(&self) -> &'static [&'static str] {
        &[]
    }

    fn default_tests(&self) -> &'static [&'static str] {
        &["test/", "tests/"]
    }

    fn ceiling(&self) -> Verdict {
        Verdict::Exit
    }

    fn detect(&self, tree: Tree<'_>) -> Option<Proposal> {
        let text = tree.text(LISTS)?.to_ascii_lowercase();
        let registers = ["enable_testing", "include(ctest)"];
        let found = registers.iter().any(|part| text.contains(part));
        let folders = self.default_tests().iter().filter(|folder| {
            let mut paths = tree.paths.iter();
            paths.any(|path| path.starts_with(**folder))
        });
        let mut tests: Vec<String> = folders.map(|folder| (*folder).to_owned()).collect();
        if tests.is_empty() {
            tests.push("tests/".into());
        }
        found.then(|| Proposal {
            framework: Framework::Ctest,
            verify: "cmake -B build && cmake --build build && ctest --test-dir build".into(),
            prepare: String::new(),
            build: String::new(),
            options: Vec::new(),
            plugins: Vec::new(),
            env: Vec::new(),
            tests,
        })
    }

    fn tools(&self, plan: &Plan) -> Vec<Tool> {
        let names_generator = plan.options.iter().any(|option| option.starts_with("-G"));
        let tools = [
            ("cmake", "install CMake (3.21 or newer)"),
            (
                "ctest",
                "install CMake (3.21 or newer); ctest comes with it",
            ),
            ("cc", "install a C compiler"),
            (
                "make",
                "install make, or name another generator: options = [\"-GNinja\"] under [grader]",
            ),
        ];
        let needed = tools
            .into_iter()
            .filter(|(name, _)| *name != "make" || !names_generator);
        needed
            .map(|(name, remedy)| Tool {
                name: name.into(),
                prepared: None,
                remedy: remedy.into(),
            })
            .collect()
    }

    fn scripts(&self, layout: &Layout) -> Vec<Script> {
        vec![Script {
            path: layout.runners.join(SCRIPT),
            text: include_str!("../runners/ctest.sh"),
        }]
    }

    fn is_test_file(&self, _: &Suite, path: &str) -> bool {
        path.rsplit('/').next() == Some(LISTS)
    }

    fn file_of<'a>(&self, suite: &'a Suite, id: &TestId) -> Option<&'a str> {
        let (path, _) = id.as_str().split_once(" > ")?;
        let file = suite.file(path)?;
        self.is_test_file(suite, path).then_some(file.path.as_str())
    }

    fn list(&self, suite: &Suite) -> Result<Listing, Unlistable> {
        let mut ids: Vec<TestId> = Vec::new();
        let mut names = BTreeSet::new();
        let mut faults = Vec::new();
        for file in &suite.files {
            if !self.is_test_file(suite, &file.path) {
                continue;
            }
            let path = &file.path;
            let Ok(text) = std::str::from_utf8(file.text.expose()) else {
                faults.push(format!("`{path}` is not UTF-8"));
                continue;
            };
            for name in cmake_scan::scan(text) {
                if !name.chars().all(is_plain) {
                    faults.push(format!(
                        "`{path}`: the name `{name}` of a test must be written out, in letters, digits \
                         and `_`, `-`, `.`, `+`, `/`, `:`, `=`"
                    ));
                    continue;
                }
                // ctest is asked for a test by its name alone.
                if !names.insert(name.clone()) {
                    faults.push(format!("`{path}`: `{name}` is the name of two tests"));
                }
                ids.extend(TestId::new(format!("{path} > {name}")));
            }
        }
        if faults.is_empty() {
            Ok(Listing::Known(ids))
        } else {
            Err(Unlistable(faults))
        }
    }

    fn run(&self, suite: &Suite, ids: &[TestId]) -> Vec<Call> {
        let asked: Vec<&TestId> = ids
            .iter()
            .filter(|id| self.file_of(suite, id).is_some())
            .collect();
        if asked.is_empty() {
            return Vec::new();
        }
        let mut rest: Vec<OsString> = vec![
            suite.tools.path("ctest").into(),
            suite.tools.path("cmake").into(),
        ];
        rest.extend(suite.plan.options.iter().map(OsString::from));
        let mut calls = vec![call(suite, "build", rest, &[])];
        for id in asked {
            let rest = vec![
                suite.layout.scratch.join("report.xml").into(),
                suite.tools.path("ctest").into(),
                expression(ctest_read::name(id)).into(),
            ];
            let mut one = call(suite, "run", rest, std::slice::from_ref(id));
            one.timeout = suite.share(ids.len());
            calls.push(one);
        }
        calls
    }

    fn read(&self, suite: &Suite, ids: &[TestId], calls: &[(Call, Raw)]) -> RunReport {
        let mut builder = Builder::new(ids);
        let mut made = None;
        for (call, raw) in calls {
            builder.limits(raw);
            let told = match handed::read(&raw.channel, &call.nonce) {
                Ok(told) => told,
                Err(fault) => {
                    builder.fault(fault);
                    continue;
                }
            };
            let Some(status) = told.status else {
                builder.fault(Fault::Incomplete);
                continue;
            };
            if raw.end != End::Exited(status) {
                builder.fault(Fault::Status);
                continue;
            }
            let Some(id) = call.ids.first() else {
                made = ctest_read::made(suite, ids, &told, &mut builder);
                continue;
            };
            let Some(made) = &made else {
                builder.fault(Fault::Incomplete);
                continue;
            };
            match ctest_read::one(id, made, &told, status, &raw.stdout) {
                Ok(Some(outcome)) => builder.outcome(id.as_str(), outcome),
                Ok(None) => {}
                Err(fault) => builder.fault(fault),
            }
        }
        builder.finish()
    }
}

/// What a name may hold, so that an expression can ask for it, and CMake of any age writes it down as it is.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-.+/:=".contains(c)
}

/// A regular expression for exactly this name.
fn expression(name: &str) -> String {
    let name = name.replace('.', "[.]").replace('+', "[+]");
    format!("^{name}$")
}

/// Where CMake builds.
pub(super) fn build_folder(suite: &Suite) -> PathBuf {
    suite.layout.scratch.join("build")
}

fn call(suite: &Suite, mode: &str, rest: Vec<OsString>, ids: &[TestId]) -> Call {
    let mut argv: Vec<OsString> = vec![
        "/bin/sh".into(),
        suite.layout.runners.join(SCRIPT).into(),
        mode.into(),
        build_folder(suite).into(),
    ];
    argv.extend(rest);
    let mut call = suite.call(argv, ids, suite.timeout());
    call.env
        .entry("CC".into())
        .or_insert_with(|| suite.tools.path("cc").into());
    call.channel = true;
    call.stdin = format!("{}\n", call.nonce).into_bytes();
    call
}
