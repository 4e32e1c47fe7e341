//! `go`: tests of Go packages. The test binary of each package that holds a sealed file is built once; then
//! each test runs alone in a process of its own. Ids: `folder/file_test.go::TestName`; subtests are parts
//! of their test.
//!
//! The package `testing` prints text, from the process under test (`go test -json` is made of the same
//! text). What makes up for it is as with cargo: the binary is the same for every test (its SHA-256, taken
//! before each run) and lists the tests that stand in the sealed files, and text, exit status and the
//! records of the shell around it agree. No sentinel shares a process with another test.

use super::{Adapter, Listing, Missing, Proposal, Sides, Unlistable, go_scan, go_words, gotest};
use crate::grade::call::{Call, End, Layout, Raw, Script, Tool};
use crate::grade::manifest::Tree;
use crate::grade::report::{Builder, Fault, RunReport};
use crate::grade::suite::Suite;
use crate::model::outcome::{TestId, Verdict};
use crate::model::plan::{Framework, Plan};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::time::Duration;

/// The adapter.
#[derive(Debug)]
pub(super) struct Go;

const SCRIPT: &str = "step.sh";
/// Options of the plan that begin so are the test binary's, all others the build's.
const OF_THE_BINARY: &str = "-test.";

impl Adapter for Go {
    fn framework(&self) -> Framework {
        Framework::Go
    }

    // Packages in `vendor/` and modules that `go.work` names stand for those that the base fetches.
    // go.mod is left to the patch, since new dependencies are honest work: a `replace` in it, or a module
    // that takes another's name, shows in the folders of the packages. Neither file can name flags or programs; the environment names the toolchain.
    fn protected(&self) -> &'static [&'static str] {
        &["**/vendor/", "**/go.work"]
    }

    // Test files belong to the package that they test, and stand in its folder.
    fn default_tests(&self) -> &'static [&'static str] {
        &["**/*_test.go", "**/testdata/"]
    }

    fn ceiling(&self) -> Verdict {
        Verdict::Report
    }

    fn detect(&self, tree: Tree<'_>) -> Option<Proposal> {
        let module = tree.text("go.mod")?;
        let fetches = module.contains("require") && !tree.has("vendor/modules.txt");
        Some(Proposal {
            framework: Framework::Go,
            verify: "go test ./...".into(),
            prepare: if fetches { "go mod download" } else { "" }.into(),
            build: String::new(),
            tests: self
                .default_tests()
                .iter()
                .map(|glob| (*glob).into())
                .collect(),
            options: Vec::new(),
            plugins: Vec::new(),
            env: Vec::new(),
        })
    }

    fn tools(&self, _: &Plan) -> Vec<Tool> {
        vec![Tool {
            name: "go".into(),
            prepared: None,
            remedy: "install Go, or name its program in your config.toml: [toolchain] go = \"...\""
                .into(),
        }]
    }

    fn scripts(&self, layout: &Layout) -> Vec<Script> {
        vec![Script {
            path: layout.runners.join(SCRIPT),
            text: include_str!("../runners/go.sh"),
        }]
    }

    fn is_test_file(&self, _: &Suite, path: &str) -> bool {
        package(path).is_some()
    }

    fn file_of<'a>(&self, suite: &'a Suite, id: &TestId) -> Option<&'a str> {
        let (path, _) = id.as_str().split_once("::")?;
        let file = suite.file(path)?;
        package(path).map(|_| file.path.as_str())
    }

    fn preflight(&self, suite: &Suite) -> Vec<Call> {
        let mut argv: Vec<OsString> = vec![suite.tools.path("go").into()];
        argv.extend(["list", "-deps", "-test", "./..."].map(OsString::from));
        let mut call = suite.call(argv, &[], Duration::from_secs(120));
        environment(suite, &mut call);
        vec![call]
    }

    fn read_preflight(&self, suite: &Suite, calls: &[(Call, Raw)]) -> Vec<Missing> {
        let mut missing = Vec::new();
        for (_, raw) in calls {
            if let End::NotStarted(_) = raw.end {
                missing.push(Missing {
                    what: "go can't be started".into(),
                    remedy: "install Go".into(),
                });
            } else if raw.end != End::Exited(0) && gotest::lacks_modules(&raw.stderr) {
                missing.push(Missing {
                    what: "modules are required that are not downloaded".into(),
                    remedy: if suite.plan.prepare.is_empty() {
                        "add to hangar.toml, under [grader]: prepare = \"go mod download\"".into()
                    } else {
                        "make `prepare` in hangar.toml fetch them (`go mod download`)".into()
                    },
                });
            }
        }
        missing
    }

    fn defines_names(&self) -> &'static [&'static str] {
        &[".go", "go.mod"]
    }

    fn redefined(&self, suite: &Suite, sides: &Sides<'_>) -> BTreeSet<String> {
        go_words::redefined(suite, sides)
    }

    fn list(&self, suite: &Suite) -> Result<Listing, Unlistable> {
        let mut ids: Vec<TestId> = Vec::new();
        let mut faults = Vec::new();
        for file in &suite.files {
            if package(&file.path).is_none() {
                continue;
            }
            let Ok(text) = std::str::from_utf8(file.text.expose()) else {
                faults.push(format!("`{}` is not UTF-8", file.path));
                continue;
            };
            for test in go_scan::scan(text) {
                match TestId::new(format!("{}::{test}", file.path)) {
                    Some(id) if !ids.contains(&id) => ids.push(id),
                    _ => faults.push(format!("`{}`: `{test}` stands twice", file.path)),
                }
            }
        }
        if faults.is_empty() {
            Ok(Listing::Known(ids))
        } else {
            Err(Unlistable(faults))
        }
    }

    /// Builds each package, then asks each binary for its list, then runs each test.
    fn run(&self, suite: &Suite, ids: &[TestId]) -> Vec<Call> {
        let asked: BTreeSet<&str> = ids.iter().filter_map(|id| package_of(suite, id)).collect();
        let mut calls: Vec<Call> = asked.iter().map(|package| build(suite, package)).collect();
        for package in &asked {
            let arguments = ["-test.list=.*".to_owned()];
            calls.push(step(suite, package, &[], &arguments, suite.share(1)));
        }
        let timeout = suite.share(ids.len());
        for id in ids {
            if let Some(package) = package_of(suite, id) {
                let options = suite.plan.options.iter();
                let mut arguments: Vec<String> = options
                    .filter(|option| option.starts_with(OF_THE_BINARY))
                    .cloned()
                    .collect();
                // The last one counts.
                arguments.extend([
                    format!("-test.run=^{}$", gotest::name(id)),
                    "-test.v=true".into(),
                    "-test.count=1".into(),
                    "-test.timeout=0".into(),
                    "-test.paniconexit0".into(),
                ]);
                let own = std::slice::from_ref(id);
                calls.push(step(suite, package, own, &arguments, timeout));
            }
        }
        calls
    }

    fn read(&self, suite: &Suite, ids: &[TestId], calls: &[(Call, Raw)]) -> RunReport {
        let mut builder = Builder::new(ids);
        let packages = packages(suite);
        let package = |call: &Call| {
            let mut packages = packages.iter();
            packages.find(|package| suite.inside(package) == call.dir)
        };
        let mut built = gotest::Built::default();
        let mut listed: BTreeMap<&str, bool> = BTreeMap::new();
        for (call, raw) in calls {
            builder.limits(raw);
            let Some(package) = package(call) else {
                builder.fault(Fault::Runner);
                continue;
            };
            if is_build(call) {
                built.add(suite, package, call, raw, &mut builder);
                continue;
            }
            let Some(expected) = built.of(package) else {
                // go did not build it, and its list is none.
                if let (Some(id), Some(outcome)) = (call.ids.first(), built.failure()) {
                    builder.outcome(id.as_str(), outcome);
                }
                continue;
            };
            let Some(id) = call.ids.first() else {
                let known = suite.known.iter();
                let known: Vec<&TestId> = known
                    .filter(|id| package_of(suite, id) == Some(package))
                    .collect();
                let found = gotest::list(&known, call, raw, expected, &mut builder);
                listed.insert(package, found);
                continue;
            };
            if listed.get(package) != Some(&true) {
                // Its list was not read, so it is not known what this binary holds.
                builder.fault(Fault::Incomplete);
                continue;
            }
            match gotest::one(id, call, raw, expected) {
                Ok(outcome) => builder.outcome(id.as_str(), outcome),
                Err(fault) => builder.fault(fault),
            }
        }
        builder.finish()
    }
}

/// The folder of the package that a test file belongs to; the root is the empty text. `None`: go does not
/// take it for a test file.
fn package(path: &str) -> Option<&str> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let is_left_out =
        |part: &str| part.starts_with(['_', '.']) || matches!(part, "testdata" | "vendor");
    let is_its = name.ends_with("_test.go") && !path.split('/').any(is_left_out);
    is_its.then_some(folder)
}

fn package_of<'a>(suite: &'a Suite, id: &TestId) -> Option<&'a str> {
    package(Go.file_of(suite, id)?)
}

/// All packages that hold sealed test files.
fn packages(suite: &Suite) -> BTreeSet<&str> {
    let files = suite.files.iter();
    files.filter_map(|file| package(&file.path)).collect()
}

fn is_build(call: &Call) -> bool {
    call.argv.get(2).is_some_and(|mode| mode == "build")
}

/// A call of our script for a package, in its folder, where go itself would start its tests.
fn script(
    suite: &Suite,
    mode: &str,
    package: &str,
    rest: impl IntoIterator<Item = OsString>,
    ids: &[TestId],
    timeout: Duration,
) -> Call {
    let at = packages(suite).iter().position(|have| *have == package);
    let binary = format!("test-{}", at.unwrap_or_default());
    let mut argv: Vec<OsString> = vec![
        "/bin/sh".into(),
        suite.layout.runners.join(SCRIPT).into(),
        mode.into(),
        suite.layout.scratch.join(binary).into(),
    ];
    argv.extend(rest);
    let mut call = suite.call(argv, ids, timeout);
    environment(suite, &mut call);
    call.dir = suite.inside(package);
    call.channel = true;
    call.stdin = format!("{}\n", call.nonce).into_bytes();
    call
}

fn build(suite: &Suite, package: &str) -> Call {
    let mut rest: Vec<OsString> = vec![
        suite.layout.prepared.join("go-build").into(),
        suite.tools.path("go").into(),
        "-buildvcs=false".into(),
        // Each compiler has threads of its own, and those are counted.
        "-p=4".into(),
    ];
    let options = suite.plan.options.iter();
    let options = options.filter(|option| !option.starts_with(OF_THE_BINARY));
    rest.extend(options.map(OsString::from));
    script(suite, "build", package, rest, &[], suite.timeout())
}

fn step(
    suite: &Suite,
    package: &str,
    ids: &[TestId],
    arguments: &[String],
    timeout: Duration,
) -> Call {
    let rest = arguments.iter().map(OsString::from);
    script(suite, "run", package, rest, ids, timeout)
}

/// go's environment: everything in scratch, no network, no settings of a user, the toolchain that is
/// there. What the plan names wins.
fn environment(suite: &Suite, call: &mut Call) {
    let scratch = &suite.layout.scratch;
    let modules = if suite.plan.prepare.is_empty() {
        scratch.join("go/pkg/mod")
    } else {
        suite.layout.prepared.join("go")
    };
    let fixed: [(&str, OsString); 10] = [
        ("GOPATH", scratch.join("go").into()),
        ("GOMODCACHE", modules.into()),
        ("GOCACHE", scratch.join("go-build").into()),
        ("GOENV", "off".into()),
        ("GOFLAGS", "".into()),
        ("GO111MODULE", "on".into()),
        ("GOPROXY", "off".into()),
        ("GOSUMDB", "off".into()),
        ("GOTOOLCHAIN", "local".into()),
        ("GOTELEMETRY", "off".into()),
    ];
    for (key, value) in fixed {
        call.env.entry(key.into()).or_insert(value);
    }
}
