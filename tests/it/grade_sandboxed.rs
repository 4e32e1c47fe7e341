//! The adapters inside the real sandbox: what they ask for works there, honest patches are accepted
//! and what only a sandbox can stop is stopped.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use crate::grade_kit::{Bench, Case, File, word};
use crate::sandbox::image;
use crate::sandbox::support::tried;
use crate::{evidence_attacks, grade_junit};
use crate::{
    grade_attacks_cargo, grade_attacks_ctest, grade_attacks_go, grade_attacks_js,
    grade_attacks_node, grade_attacks_python,
};
use hangar::base::redact::Secret;
use hangar::grade::call::{Call, End, Hit, Layout, Raw, Tools};
use hangar::grade::judge::{Judgement, Void};
use hangar::grade::report::RunReport;
use hangar::grade::suite::Suite;
use hangar::model::digest::Digest;
use hangar::model::outcome::TestId;
use hangar::model::plan::Framework;
use hangar::sandbox::spec::{self, LaidFile, Limits, Mount, Network, Spec, Step, StepOutcome};
use hangar::sandbox::{Cancel, Event, Launcher, Provider, provider, toolchain};
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Once;

/// Right and wrong code for a case.
struct Subject {
    case: Case<'static>,
    path: &'static str,
    good: &'static str,
    wrong: &'static str,
}

fn subjects() -> Vec<Subject> {
    let [pytest, unittest] = grade_attacks_python::cases();
    let python = |case| Subject {
        case,
        path: "calc.py",
        good: grade_attacks_python::GOOD,
        wrong: grade_attacks_python::WRONG,
    };
    let javascript = |case| Subject {
        case,
        path: "calc.mjs",
        good: grade_attacks_node::GOOD,
        wrong: grade_attacks_node::WRONG,
    };
    let mut subjects = vec![
        python(pytest),
        python(unittest),
        javascript(grade_attacks_node::case()),
        Subject {
            case: grade_attacks_cargo::case(),
            path: "src/lib.rs",
            good: grade_attacks_cargo::GOOD,
            wrong: grade_attacks_cargo::WRONG,
        },
    ];
    subjects.push(Subject {
        case: grade_attacks_ctest::case(),
        path: "add.c",
        good: grade_attacks_ctest::GOOD,
        wrong: grade_attacks_ctest::WRONG,
    });
    subjects.push(Subject {
        case: grade_attacks_go::case(),
        path: "add.go",
        good: grade_attacks_go::GOOD,
        wrong: grade_attacks_go::WRONG,
    });
    let runners = grade_attacks_js::RUNNERS.into_iter();
    subjects.extend(runners.map(grade_attacks_js::case).map(javascript));
    subjects
}

/// The suite as it is inside: neutral paths, programs behind their shims; and what they need.
fn inside(suite: &Suite) -> (Suite, Vec<Mount>) {
    // Where a case lays packages above its tree, they are there inside too.
    let has_packages = suite.layout.src.with_file_name("node_modules").exists();
    let mut suite = suite.clone();
    let mut tools = Tools::default();
    let mut folders = BTreeSet::new();
    for name in [
        "python3", "node", "cargo", "rustc", "go", "cmake", "ctest", "make", "cc", "sh",
    ] {
        let found = toolchain::find(&suite.tools.path(name));
        folders.extend(found.binds);
        tools.insert(name, found.program);
    }
    suite.tools = tools;
    suite.layout = Layout::default();
    let outer: Vec<&PathBuf> = folders
        .iter()
        .filter(|folder| {
            let within = |other: &&PathBuf| other != folder && folder.starts_with(other);
            !folders.iter().any(|other| within(&other))
        })
        .collect();
    let mut mounts: Vec<Mount> = outer
        .into_iter()
        .map(|folder| Mount::ReadOnly {
            host: folder.clone(),
            inside: folder.clone(),
        })
        .collect();
    if has_packages {
        mounts.push(Mount::ReadOnly {
            host: grade_attacks_js::modules(),
            inside: "/node_modules".into(),
        });
    }
    (suite, mounts)
}

/// Gives everything below a folder to the sandbox's user. Files with their digests.
fn give(folder: &Path) -> Vec<(PathBuf, Digest)> {
    let (uid, gid) = hangar::sandbox::owner();
    let mut files = Vec::new();
    std::os::unix::fs::chown(folder, Some(uid), Some(gid)).unwrap();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(give(&path));
        } else {
            std::os::unix::fs::chown(&path, Some(uid), Some(gid)).unwrap();
            let digest = Digest::of(&std::fs::read(&path).unwrap());
            files.push((path, digest));
        }
    }
    files
}

/// Runs tests of the tree in `bench` in one sandbox. Also: whether its files stayed the same.
fn run(
    provider: &dyn Provider,
    bench: &Bench,
    ids: &[TestId],
    make: &dyn Fn(&Suite) -> Vec<Call>,
) -> (RunReport, bool) {
    let (suite, mut mounts) = inside(&bench.suite);
    let tree = &bench.suite.layout.src;
    let before = give(tree);
    mounts.push(Mount::Scratch {
        host: tree.clone(),
        inside: suite.layout.src.clone(),
    });
    let calls = make(&suite);
    let spec = Spec {
        mounts,
        files: files(bench, &suite),
        network: Network::None,
        limits: Limits {
            output: Some(16 << 20),
            memory: Some(2 << 30),
            processes: Some(256),
            disk: Some(1 << 30),
            ..Limits::default()
        },
        inner_domain: true,
        hash_after: vec![suite.layout.src.clone()],
        collect: Vec::new(),
        steps: calls.iter().map(step).collect(),
        stop_on_failure: false,
        deadline: None,
    };
    if evidence_attacks::recorded().is_some() {
        // Once for each process is enough: the sandboxes are alike.
        static MEASURED: Once = Once::new();
        MEASURED.call_once(|| {
            let probes = provider.probe(&spec, &Cancel::default()).unwrap();
            evidence_attacks::record_trust(probes.trust());
        });
    }
    let outcome = provider
        .run(&spec, &Cancel::default(), &mut |_: Event| {})
        .unwrap();
    let sealed = suite
        .files
        .iter()
        .map(|file| (suite.inside(&file.path), Digest::of(file.text.expose())));
    let rest = before.into_iter().map(|(path, digest)| {
        let path = path.strip_prefix(tree).unwrap();
        (suite.layout.src.join(path), digest)
    });
    let intact = sealed.chain(rest).all(|(path, digest)| {
        outcome.hashes.get(path.as_os_str().as_bytes()) == Some(digest.as_bytes())
    });
    let done: Vec<(Call, Raw)> = calls
        .into_iter()
        .zip(outcome.steps.into_iter().map(raw))
        .collect();
    (bench.adapter().read(&suite, ids, &done), intact)
}

fn files(bench: &Bench, suite: &Suite) -> Vec<LaidFile> {
    let laid = |path: &Path, bytes: &[u8], mode| LaidFile {
        path: path.to_owned(),
        bytes: Secret::new(bytes.to_vec()),
        mode,
    };
    let scripts = bench.adapter().scripts(&suite.layout);
    let scripts = scripts
        .iter()
        .map(|script| laid(&script.path, script.text.as_bytes(), 0o444));
    let sealed = suite.files.iter().map(|file| {
        let mode = if file.executable { 0o555 } else { 0o444 };
        laid(&suite.inside(&file.path), file.text.expose(), mode)
    });
    scripts.chain(sealed).collect()
}

fn step(call: &Call) -> Step {
    Step {
        argv: call.argv.clone(),
        env: call.env.clone(),
        dir: call.dir.clone(),
        stdin: call.stdin.clone(),
        channel: call.channel,
        timeout: call.timeout,
        idle: None,
    }
}

fn raw(step: StepOutcome) -> Raw {
    let end = match step.end {
        spec::End::Exited(code) => End::Exited(code),
        spec::End::Signalled(signal) => End::Signalled(signal),
        spec::End::TimedOut | spec::End::Idle => End::TimedOut,
        spec::End::NotStarted(errno) => End::NotStarted(errno),
    };
    let hits = step.hits.iter().map(|hit| match hit {
        spec::Hit::Memory => Hit::Memory,
        spec::Hit::Processes => Hit::Processes,
        spec::Hit::Output => Hit::Output,
        spec::Hit::FileSize => Hit::FileSize,
        spec::Hit::Disk => Hit::Disk,
    });
    Raw {
        end,
        hits: hits.collect(),
        stdout: step.stdout,
        stderr: step.stderr,
        channel: step.channel.unwrap_or_default(),
        files: std::collections::BTreeMap::new(),
    }
}

fn grade(case: &Case<'_>, patch: &[File<'_>]) -> Judgement {
    grade_in(tried(), case, patch)
}

/// Grades in the sandboxes of a provider.
pub(crate) fn grade_in(name: &str, case: &Case<'_>, patch: &[File<'_>]) -> Judgement {
    let launcher = Launcher {
        program: PathBuf::from(env!("CARGO_BIN_EXE_hangar")),
        image: image::of(name),
    };
    let provider = provider(name, &launcher).unwrap();
    case.grade_with(patch, |bench, ids, make| {
        bench.lay(patch, false);
        run(provider.as_ref(), bench, ids, make)
    })
}

#[test]
#[ignore = "heavy: needs namespaces, python3 with pytest, node with mocha, jest and vitest, cargo, go and cmake"]
fn honest_patches_are_accepted_and_wrong_ones_are_not() {
    for subject in subjects() {
        let name = subject.case.framework;
        let good = grade(&subject.case, &[(subject.path, subject.good)]);
        assert_eq!(word(&good), "accepted", "{name} {:?}", good.reasons);
        let wrong = grade(&subject.case, &[(subject.path, subject.wrong)]);
        assert_eq!(word(&wrong), "not accepted", "{name} {:?}", wrong.reasons);
    }
}

/// Also tried in containers.
pub(crate) fn an_honest_patch_is_accepted_and_a_wrong_or_lying_one_is_not() {
    let [_, case] = grade_attacks_python::cases();
    let good = grade(&case, &[("calc.py", grade_attacks_python::GOOD)]);
    assert_eq!(word(&good), "accepted", "{good:?}");
    let lie = format!(
        "import os, sys\nos.write(3, b'passed')\nprint('OK')\n{}",
        grade_attacks_python::WRONG
    );
    for text in [grade_attacks_python::WRONG, &lie] {
        let wrong = grade(&case, &[("calc.py", text)]);
        assert_ne!(word(&wrong), "accepted", "{:?}", wrong.reasons);
    }
}

/// Code of each language that runs a shell line when it is loaded or first called, then goes on as
/// right code.
fn with_shell(subject: &Subject, line: &str) -> String {
    let (path, good) = (subject.path, subject.good);
    if path == "calc.py" {
        format!("import subprocess\nsubprocess.call(['/bin/sh', '-c', {line:?}])\n{good}")
    } else if path == "calc.mjs" {
        let call = format!("spawnSync('/bin/sh', ['-c', {line:?}], {{ stdio: 'ignore' }});");
        format!("import {{ spawnSync }} from 'node:child_process';\n{call}\n{good}")
    } else if path == "add.c" {
        let call = format!("if (system({line:?})) {{}}");
        format!("#include <stdlib.h>\nint add(int a, int b) {{ {call} return a + b; }}\n")
    } else if path == "add.go" {
        let call = format!("exec.Command(\"/bin/sh\", \"-c\", {line:?}).Run()");
        let import = "package calc\n\nimport \"os/exec\"\n\n";
        format!("{import}func Add(a, b int) int {{\n\t{call}\n\treturn a + b\n}}\n")
    } else {
        format!(
            "pub fn add(a: i32, b: i32) -> i32 {{\n  let _ = std::process::Command::new(\"/bin/sh\")\
             .arg(\"-c\").arg({line:?}).status();\n  a + b\n}}\n"
        )
    }
}

#[test]
#[ignore = "heavy: needs namespaces, python3 with pytest, node with mocha, jest and vitest, cargo, go and cmake"]
fn sealed_files_can_not_be_changed_unseen() {
    let line = "for f in /src/tests/* /src/*_test.go /src/odd/*; do [ -e $f ] || continue; rm -f $f; echo > $f; \
        done; rm -rf /src/tests /src/odd";
    for subject in subjects() {
        let patch = with_shell(&subject, line);
        let judgement = grade(&subject.case, &[(subject.path, &patch)]);
        let name = subject.case.framework;
        // Either they can't be touched, or it is noticed; a changed test never counts.
        match judgement.void {
            None => assert!(judgement.accepted, "{name} {:?}", judgement.reasons),
            Some(_) => assert!(!judgement.accepted),
        }
        assert_ne!(judgement.void, Some(Void::Forged));
    }
}

#[test]
#[ignore = "heavy: needs namespaces, python3 with pytest, node with mocha, jest and vitest, cargo, go and cmake"]
fn runner_and_channel_are_out_of_reach() {
    // The runner's scripts, and the channel by way of every process that can be seen.
    let line = "rm -rf /run/r; for f in /run/r/*; do echo exit > $f; done; \
        for fd in /proc/[0-9]*/fd/*; do case $(readlink $fd) in pipe*) \
        timeout 1 sh -c \"echo forged > $fd\" ;; esac; done";
    for subject in subjects() {
        let patch = with_shell(&subject, line);
        let judgement = grade(&subject.case, &[(subject.path, &patch)]);
        let name = subject.case.framework;
        // What can be written to the channel is not ours; what can't leaves an honest grade.
        let word = word(&judgement);
        assert!(
            matches!(word, "accepted" | "void"),
            "{name} {word} {:?}",
            judgement.reasons
        );
    }
}

#[test]
#[ignore = "heavy: needs namespaces, python3 with pytest, node with mocha, jest and vitest, cargo, go and cmake"]
fn survivors_and_noise_change_nothing() {
    let line = "(setsid sh -c 'while :; do echo noise; sleep 0.01; done' >/dev/null 2>&1 &) ; \
        (setsid sleep 600 &)";
    for subject in subjects() {
        let name = subject.case.framework;
        // ctest waits for everybody who holds the output of a test.
        let line = match name {
            Framework::Ctest => line.replace("600 &", "600 >/dev/null 2>&1 &"),
            _ => line.to_owned(),
        };
        let patch = with_shell(&subject, &line);
        let judgement = grade(&subject.case, &[(subject.path, &patch)]);
        assert_eq!(
            word(&judgement),
            "accepted",
            "{name} {:?}",
            judgement.reasons
        );
    }
}

#[test]
#[ignore = "heavy: needs namespaces"]
fn a_report_that_a_program_writes_is_read() {
    let case = grade_junit::case();
    let good = grade(&case, &[("add.sh", grade_junit::RIGHT)]);
    assert_eq!(word(&good), "accepted", "{:?}", good.reasons);
    let wrong = grade(&case, &[("add.sh", "add() { echo 5; }\n")]);
    assert_eq!(word(&wrong), "not accepted", "{:?}", wrong.reasons);
    // Who changes the report after the program has ended is dead before it is read, or too late.
    let late = format!(
        "(setsid sh -c 'while :; do echo \"<testsuite/>\" > report.xml; done' >/dev/null 2>&1 &)\n{}",
        "add() { echo 5; }\n"
    );
    assert!(!grade(&case, &[("add.sh", &late)]).accepted);
}

/// Runs while the sealed files are there, as the user that owns the tree.
const SWAPPING_BUILD: &str = r#"
use std::fs;
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for entry in fs::read_dir("tests").into_iter().flatten().flatten() {
        let path = entry.path();
        let text = fs::read_to_string(&path).unwrap_or_default();
        if fs::rename(&path, path.with_extension("bak")).is_ok() {
            let deaf = "macro_rules! assert_eq { ($($t:tt)*) => {} }\n";
            let _ = fs::write(&path, format!("{deaf}{text}"));
        }
    }
    let _ = fs::rename("tests", "old");
    for dir in ["/r", "/run/r"] {
        let _ = fs::rename(dir, "/run/o");
        let _ = fs::create_dir_all(dir);
        let _ = fs::write(format!("{dir}/cargo.sh"), "echo 'test result: ok. 1 passed'\n");
    }
}
"#;

#[test]
#[ignore = "heavy: needs namespaces and cargo"]
fn a_build_script_can_not_swap_sealed_sources_or_our_scripts() {
    let case = grade_attacks_cargo::case();
    let judged = |code| grade(&case, &[("src/lib.rs", code), ("build.rs", SWAPPING_BUILD)]);
    let wrong = judged(grade_attacks_cargo::WRONG);
    assert!(!wrong.accepted);
    assert_eq!(
        wrong.void, None,
        "nothing may even have changed: {:?}",
        wrong.reasons
    );
    // The honest control: the same build script over right code, which it can't harm either.
    let right = judged(grade_attacks_cargo::GOOD);
    assert!(right.accepted, "{:?}", right.reasons);
}
