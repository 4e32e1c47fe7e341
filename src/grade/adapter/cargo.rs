//! `cargo`: libtest integration tests. The test binaries are built once; then each test runs alone
//! in a process of its own (`NAME --exact`). Ids: `target::module::test`.
//!
//! libtest of a stable toolchain prints text only, from the process under test. What makes up for
//! it: the binary was built from the sealed file (cargo's JSON names the source), is the same for
//! every test (its SHA-256, taken before each run), lists exactly the tests that stand in the
//! source, and text, exit status and the records of the shell around it agree. Cargo says what each
//! crate name in a package means, on the base and in the graded tree, apart from what is built.

use super::libtest;
use super::{Adapter, Listing, Missing, Proposal, Unlistable, rust_scan};
use crate::grade::call::{Call, End, Layout, Raw, Room, Script, Tool};
use crate::grade::manifest::{Crates, Meanings, Tree};
use crate::grade::report::{Builder, Fault, RunReport};
use crate::grade::suite::Suite;
use crate::model::outcome::{TestId, Verdict};
use crate::model::plan::{Framework, Plan};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::time::Duration;

/// The adapter.
#[derive(Debug)]
pub(super) struct Cargo;

const SCRIPT: &str = "step.sh";
/// The mode of the script that builds.
const BUILD: &str = "build";
/// How long cargo may take to read manifests.
const ASKING: Duration = Duration::from_secs(120);

/// A sealed file that is an integration test target.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Target {
    /// Folder of the package, relative to the root; empty is the root.
    pub(super) package: String,
    /// Name of the target.
    pub(super) name: String,
    /// The file.
    pub(super) path: String,
}

impl Adapter for Cargo {
    fn framework(&self) -> Framework {
        Framework::Cargo
    }

    // `.cargo/` names wrappers, runners and flags, and the toolchain file names the compiler.
    // Cargo.toml is left to the patch, since new dependencies are honest work: what it could bend
    // (`[[test]]` with another path, `harness = false`, a profile without checks, a path in place of a
    // fetched dependency) shows in cargo's JSON and in the list. build.rs and macros are graded as patched.
    fn protected(&self) -> &'static [&'static str] {
        &["**/.cargo/", "**/rust-toolchain", "**/rust-toolchain.toml"]
    }

    fn default_tests(&self) -> &'static [&'static str] {
        &["tests/"]
    }

    fn ceiling(&self) -> Verdict {
        Verdict::Crosschecked
    }

    fn detect(&self, tree: Tree<'_>) -> Option<Proposal> {
        let manifest = tree.text("Cargo.toml")?;
        let packages: Vec<&str> = tree
            .paths
            .iter()
            .filter_map(|path| path.strip_suffix("/Cargo.toml"))
            .collect();
        let is_package = manifest.contains("[package]");
        let mut tests: Vec<String> = if is_package {
            vec!["tests/".into()]
        } else {
            Vec::new()
        };
        tests.extend(
            packages
                .iter()
                .take(50)
                .map(|package| format!("{package}/tests/")),
        );
        let depends = manifest.contains("dependencies") || !packages.is_empty();
        Some(Proposal {
            framework: Framework::Cargo,
            verify: "cargo test".into(),
            build: String::new(),
            options: Vec::new(),
            plugins: Vec::new(),
            env: Vec::new(),
            prepare: if depends {
                "cargo fetch".into()
            } else {
                String::new()
            },
            tests,
        })
    }

    fn tools(&self, _: &Plan) -> Vec<Tool> {
        let tool = |name: &str, remedy: &str| Tool {
            name: name.into(),
            prepared: None,
            remedy: remedy.into(),
        };
        vec![
            tool(
                "cargo",
                "install a Rust toolchain (the real one of rustup, not its proxy, is used)",
            ),
            tool(
                "rustc",
                "install a Rust toolchain (the real one of rustup, not its proxy, is used)",
            ),
            tool("cc", "install a C compiler; rustc links with it"),
        ]
    }

    fn scripts(&self, layout: &Layout) -> Vec<Script> {
        vec![Script {
            path: layout.runners.join(SCRIPT),
            text: include_str!("../runners/cargo.sh"),
        }]
    }

    fn is_test_file(&self, _: &Suite, path: &str) -> bool {
        target(path).is_some()
    }

    fn file_of<'a>(&self, suite: &'a Suite, id: &TestId) -> Option<&'a str> {
        let (name, _) = id.as_str().split_once("::")?;
        suite
            .files
            .iter()
            .map(|file| file.path.as_str())
            .find(|path| target(path).is_some_and(|target| target.name == name))
    }

    fn preflight(&self, suite: &Suite) -> Vec<Call> {
        vec![metadata(suite, ASKING)]
    }

    fn read_preflight(&self, suite: &Suite, calls: &[(Call, Raw)]) -> Vec<Missing> {
        let mut missing = Vec::new();
        for (_, raw) in calls {
            if let End::NotStarted(_) = raw.end {
                missing.push(Missing {
                    what: "cargo can't be started".into(),
                    remedy: "install a Rust toolchain".into(),
                });
            } else if raw.end != End::Exited(0) && lacks_dependencies(&raw.stderr) {
                missing.push(Missing {
                    what: "dependencies are declared that are not downloaded".into(),
                    remedy: if suite.plan.prepare.is_empty() {
                        "add to hangar.toml, under [grader]: prepare = \"cargo fetch\"".into()
                    } else {
                        "make `prepare` in hangar.toml fetch them (`cargo fetch`)".into()
                    },
                });
            }
        }
        missing
    }

    fn ask(&self, suite: &Suite) -> Vec<Call> {
        let targets = suite.files.iter().filter_map(|file| target(&file.path));
        let packages: BTreeSet<String> = targets.map(|target| target.package).collect();
        packages
            .iter()
            .map(|package| graph(suite, package))
            .collect()
    }

    fn learn(&self, suite: &mut Suite, base: &[(Call, Raw)], graded: &[(Call, Raw)]) {
        let mut crates: BTreeMap<String, Meanings> = BTreeMap::new();
        for (call, raw) in base {
            let text = String::from_utf8_lossy(&raw.stderr);
            // What the patch adds, nothing is known of.
            let is_new = text.contains("manifest path `") && text.contains("` does not exist");
            let told = if is_new {
                Some(Crates::default())
            } else {
                told(suite, raw)
            };
            crates.entry(package_of(suite, call)).or_default().base = told;
        }
        for (call, raw) in graded {
            let meanings = crates.entry(package_of(suite, call)).or_default();
            meanings.graded = told(suite, raw);
        }
        suite.project.crates = Some(crates);
    }

    fn list(&self, suite: &Suite) -> Result<Listing, Unlistable> {
        let mut ids: Vec<TestId> = Vec::new();
        let mut names: BTreeMap<String, String> = BTreeMap::new();
        let mut faults = Vec::new();
        for file in &suite.files {
            let Some(target) = target(&file.path) else {
                continue;
            };
            if !is_plain(&file.path) {
                faults.push(format!(
                    "`{}`: letters, digits, `_`, `-`, `.` and `/` only",
                    file.path
                ));
                continue;
            }
            if let Some(other) = names.insert(target.name.clone(), file.path.clone()) {
                faults.push(format!(
                    "`{other}` and `{}` are test targets of the same name",
                    file.path
                ));
            }
            let Ok(text) = std::str::from_utf8(file.text.expose()) else {
                faults.push(format!("`{}` is not UTF-8", file.path));
                continue;
            };
            for test in rust_scan::scan(text) {
                match TestId::new(format!("{}::{test}", target.name)) {
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

    /// Each package in a sandbox of its own: the build, then for each target its list and each test. Code
    /// of one package decides nothing about another.
    fn run(&self, suite: &Suite, ids: &[TestId]) -> Vec<Call> {
        let targets = targets_of(suite, ids);
        let mut packages: BTreeMap<&str, Vec<&Target>> = BTreeMap::new();
        for target in &targets {
            packages.entry(&target.package).or_default().push(target);
        }
        let timeout = suite.share(ids.len());
        let mut calls = Vec::new();
        for (part, (package, targets)) in packages.iter().enumerate() {
            let mut own = vec![build(suite, package, targets)];
            for target in targets {
                own.push(step(suite, target, &[], &["--list"], suite.share(1)));
            }
            for id in ids {
                let name = id.as_str().split_once("::");
                let found = name.and_then(|(target, test)| {
                    let target = targets.iter().find(|have| have.name == target)?;
                    Some((target, test))
                });
                if let Some((target, test)) = found {
                    let arguments = [test, "--exact", "--test-threads=1", "--color=never"];
                    let id = std::slice::from_ref(id);
                    own.push(step(suite, target, id, &arguments, timeout));
                }
            }
            for call in &mut own {
                call.room = Room::Part(part);
            }
            calls.extend(own);
        }
        calls
    }

    fn read(&self, suite: &Suite, ids: &[TestId], calls: &[(Call, Raw)]) -> RunReport {
        let mut builder = Builder::new(ids);
        let targets = targets_of(suite, ids);
        let mut built = libtest::Built::default();
        for (call, raw) in calls.iter().filter(|(call, _)| is(call, BUILD)) {
            built.add(suite, call, raw, &targets, &mut builder);
        }
        for fault in replaced(suite, &targets, &built) {
            builder.fault(fault);
        }
        let mut lists: BTreeMap<&str, usize> = BTreeMap::new();
        for (call, raw) in calls {
            builder.limits(raw);
            if is(call, BUILD) {
                continue;
            }
            let Some(target) = target_of(suite, call, &targets) else {
                builder.fault(Fault::Runner);
                continue;
            };
            let Some(id) = call.ids.first() else {
                if let Some(count) = libtest::list(suite, target, call, raw, &built, &mut builder) {
                    lists.insert(&target.name, count);
                }
                continue;
            };
            let Some(expected) = built.of(target) else {
                // cargo did not build it.
                if let Some(outcome) = built.failure() {
                    builder.outcome(id.as_str(), outcome);
                }
                continue;
            };
            let count = lists.get(target.name.as_str()).copied().unwrap_or(0);
            match libtest::one(id, count, call, raw, expected) {
                Ok(outcome) => builder.outcome(id.as_str(), outcome),
                Err(fault) => builder.fault(fault),
            }
        }
        builder.finish()
    }
}

/// `tests/NAME.rs` or `tests/NAME/main.rs`, at the root or in a package.
pub(super) fn target(path: &str) -> Option<Target> {
    let (package, rest) = match path.rsplit_once("/tests/") {
        Some((package, rest)) => (package, rest),
        None => ("", path.strip_prefix("tests/")?),
    };
    let name = match rest.split_once('/') {
        Some((name, "main.rs")) => name,
        Some(_) => return None,
        None => rest.strip_suffix(".rs")?,
    };
    (!name.is_empty()).then(|| Target {
        package: package.to_owned(),
        name: name.to_owned(),
        path: path.to_owned(),
    })
}

/// Paths are looked up in JSON by a shell; anything that would need quoting is refused.
fn is_plain(path: &str) -> bool {
    path.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/'))
}

/// Targets that hold these tests, each once.
fn targets_of(suite: &Suite, ids: &[TestId]) -> Vec<Target> {
    let mut targets: Vec<Target> = ids
        .iter()
        .filter_map(|id| Cargo.file_of(suite, id))
        .filter_map(target)
        .collect();
    targets.sort();
    targets.dedup();
    targets
}

/// The target that a step belongs to, from the source in its arguments.
fn target_of<'a>(suite: &Suite, call: &Call, targets: &'a [Target]) -> Option<&'a Target> {
    let source = call.argv.get(4)?;
    targets
        .iter()
        .find(|target| suite.inside(&target.path).as_os_str() == source)
}

/// Whether a call is our script in this mode.
fn is(call: &Call, mode: &str) -> bool {
    call.argv.get(2).is_some_and(|have| have == mode)
}

/// The package that a call of cargo is about: where it starts.
fn package_of(suite: &Suite, call: &Call) -> String {
    let folder = call.dir.strip_prefix(&suite.layout.src);
    folder.unwrap_or(&call.dir).to_string_lossy().into_owned()
}

/// What cargo said of the names in a package.
fn told(suite: &Suite, raw: &Raw) -> Option<Crates> {
    if raw.end != End::Exited(0) {
        return None;
    }
    Crates::read(&raw.stdout, &suite.layout.src)
}

/// Where names mean other code in the graded tree than on the base, if that was asked. A package whose
/// build failed fails its tests, whatever names mean.
fn replaced(suite: &Suite, targets: &[Target], built: &libtest::Built) -> Vec<Fault> {
    let Some(known) = &suite.project.crates else {
        return Vec::new();
    };
    // Helpers of the tests may lie anywhere.
    let texts = suite
        .files
        .iter()
        .filter_map(|file| std::str::from_utf8(file.text.expose()).ok());
    let words = texts.flat_map(rust_scan::words).collect();
    let built = targets
        .iter()
        .filter(|target| built.of(target).is_some())
        .map(|target| target.package.as_str());
    let packages: BTreeSet<&str> = built.collect();
    let fault = |package: &str| match known.get(package) {
        Some(Meanings {
            base: Some(base),
            graded: Some(graded),
        }) => graded
            .replaces(base, package, &suite.project.declared, &words)
            .then_some(Fault::Replaced),
        _ => Some(Fault::Names),
    };
    packages.into_iter().filter_map(fault).collect()
}

/// Where the JSON of a package's build is kept between the steps.
fn record(suite: &Suite, package: &str) -> OsString {
    let name = format!("build-{}.json", package.replace('/', "-"));
    suite.layout.scratch.join(name).into()
}

fn script(suite: &Suite, mode: &str, package: &str) -> Vec<OsString> {
    vec![
        "/bin/sh".into(),
        suite.layout.runners.join(SCRIPT).into(),
        mode.into(),
        record(suite, package),
    ]
}

/// Asks cargo what crate names mean in a package, with what the plan's options choose.
fn graph(suite: &Suite, package: &str) -> Call {
    let mut call = metadata(suite, suite.timeout().min(ASKING));
    call.argv.push("--manifest-path".into());
    let manifest = suite.inside(package).join("Cargo.toml");
    call.argv.push(manifest.into());
    call.dir = suite.inside(package);
    call
}

/// Asks cargo what it makes of the manifests, with what the plan's options choose.
fn metadata(suite: &Suite, timeout: Duration) -> Call {
    let mut argv: Vec<OsString> = vec![suite.tools.path("cargo").into()];
    argv.extend(["metadata", "--offline", "--format-version=1"].map(OsString::from));
    argv.extend(choices(&suite.plan.options).map(OsString::from));
    let mut call = suite.call(argv, &[], timeout);
    environment(suite, &mut call);
    call
}

/// The options by which a build takes other code: features and configuration.
fn choices(options: &[String]) -> impl Iterator<Item = &String> {
    let mut is_value = false;
    options.iter().filter(move |option| {
        let takes = is_value;
        is_value = matches!(option.as_str(), "--features" | "-F" | "--config");
        let alone = ["--all-features", "--no-default-features"].contains(&option.as_str());
        let glued = ["--features=", "-F", "--config="];
        takes || is_value || alone || glued.iter().any(|start| option.starts_with(start))
    })
}

fn build(suite: &Suite, package: &str, targets: &[&Target]) -> Call {
    let mut argv = script(suite, BUILD, package);
    let manifest = suite.inside(package).join("Cargo.toml");
    argv.push(suite.tools.path("cargo").into());
    argv.extend(
        [
            "build",
            "--offline",
            "--keep-going",
            "--message-format=json",
        ]
        .into_iter()
        .map(OsString::from),
    );
    argv.push("--manifest-path".into());
    argv.push(manifest.into());
    argv.extend(suite.plan.options.iter().map(OsString::from));
    for target in targets {
        argv.push("--test".into());
        argv.push(target.name.clone().into());
    }
    let mut call = suite.call(argv, &[], suite.timeout());
    environment(suite, &mut call);
    call.dir = suite.inside(package);
    call.channel = true;
    call.stdin = format!("{}\n", call.nonce).into_bytes();
    call
}

fn step(
    suite: &Suite,
    target: &Target,
    ids: &[TestId],
    arguments: &[&str],
    timeout: Duration,
) -> Call {
    let mut argv = script(suite, "run", &target.package);
    argv.push(suite.inside(&target.path).into());
    argv.extend(arguments.iter().map(OsString::from));
    let mut call = suite.call(argv, ids, timeout);
    environment(suite, &mut call);
    // Where cargo itself would start an integration test.
    call.dir = suite.inside(&target.package);
    call.env
        .insert("CARGO_MANIFEST_DIR".into(), call.dir.clone().into());
    call.channel = true;
    call.stdin = format!("{}\n", call.nonce).into_bytes();
    call
}

/// cargo's environment: everything in scratch, no network, no wrapper, checks on. What the plan
/// names wins.
fn environment(suite: &Suite, call: &mut Call) {
    let scratch = &suite.layout.scratch;
    let home = if suite.plan.prepare.is_empty() {
        scratch.join("cargo")
    } else {
        suite.layout.prepared.join("cargo")
    };
    let fixed: [(&str, OsString); 17] = [
        ("CARGO_HOME", home.into()),
        ("CARGO_TARGET_DIR", scratch.join("target").into()),
        ("CARGO_NET_OFFLINE", "true".into()),
        ("CARGO_TERM_COLOR", "never".into()),
        ("CARGO_INCREMENTAL", "0".into()),
        ("RUSTC", suite.tools.path("rustc").into()),
        ("RUSTC_WRAPPER", "".into()),
        ("RUSTC_WORKSPACE_WRAPPER", "".into()),
        ("CARGO_PROFILE_DEV_DEBUG_ASSERTIONS", "true".into()),
        ("CARGO_PROFILE_DEV_OVERFLOW_CHECKS", "true".into()),
        ("CARGO_PROFILE_TEST_DEBUG_ASSERTIONS", "true".into()),
        ("CARGO_PROFILE_TEST_OVERFLOW_CHECKS", "true".into()),
        ("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true".into()),
        ("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "true".into()),
        ("CARGO_PROFILE_BENCH_DEBUG_ASSERTIONS", "true".into()),
        ("CARGO_PROFILE_BENCH_OVERFLOW_CHECKS", "true".into()),
        ("RUST_BACKTRACE", "0".into()),
    ];
    for (key, value) in fixed {
        call.env.entry(key.into()).or_insert(value);
    }
}

/// Whether cargo failed because something is not downloaded.
pub(super) fn lacks_dependencies(stderr: &[u8]) -> bool {
    let text = String::from_utf8_lossy(stderr);
    [
        "no matching package named",
        "failed to download",
        "--offline was specified",
        "you're using offline mode",
        "can't checkout from",
        "unable to update registry",
    ]
    .iter()
    .any(|part| text.contains(part))
}
