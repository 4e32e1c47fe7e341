//! Toolchains outside `/usr`, for real.

use super::support::{Who, out, sh, spec};
use hangar::base::process;
use hangar::sandbox::spec::{End, Mount, Spec};
use hangar::sandbox::toolchain::{self, Toolchain};
use std::ffi::OsString;
use std::path::Path;

fn found(name: &str) -> Toolchain {
    let program = process::find(Path::new(name)).expect("the program is installed");
    toolchain::find(&program)
}

fn mounts(toolchain: &Toolchain) -> Vec<Mount> {
    toolchain
        .binds
        .iter()
        .map(|path| Mount::ReadOnly {
            host: path.clone(),
            inside: path.clone(),
        })
        .collect()
}

#[test]
#[ignore = "heavy: needs python3"]
fn python_runs() {
    let python = found("python3");
    let mut step = sh("");
    step.argv = [python.program.as_os_str(), "-I".as_ref(), "-c".as_ref()]
        .map(OsString::from)
        .to_vec();
    step.argv.push("import json, ssl, sys, tempfile, subprocess, multiprocessing; \
         print(subprocess.run([sys.executable, '-c', 'print(6 * 7)'], capture_output=True, text=True).stdout)".into());
    let outcome = Who::Us
        .run(&Spec {
            mounts: mounts(&python),
            steps: vec![step],
            ..spec()
        })
        .unwrap();
    assert_eq!(out(&outcome), "42\n\n", "{outcome:?}");
}

#[test]
#[ignore = "heavy: needs node"]
fn node_runs() {
    let node = found("node");
    let mut step = sh("");
    step.argv = vec![
        node.program.clone().into(),
        "-e".into(),
        "require('fs').promises.readFile('/etc/hosts').then(() => \
         console.log(require('os').userInfo().username, require('os').hostname()))"
            .into(),
    ];
    let outcome = Who::Us
        .run(&Spec {
            mounts: mounts(&node),
            steps: vec![step],
            ..spec()
        })
        .unwrap();
    assert_eq!(out(&outcome), "user localhost\n", "{outcome:?}");
}

#[test]
#[ignore = "heavy: needs cargo and a linker"]
fn cargo_builds_and_tests() {
    let cargo = found("cargo");
    let bin = cargo.program.parent().unwrap().display().to_string();
    let mut step = sh(
        "cd /tmp && cargo init -q --lib --vcs none --name x --edition 2021 x && cd x && cargo test -q",
    );
    step.env = [
        ("PATH", format!("{bin}:/usr/bin:/bin")),
        ("HOME", hangar::sandbox::HOME.to_owned()),
    ]
    .map(|(key, value)| (key.into(), value.into()))
    .into();
    let outcome = Who::Us
        .run(&Spec {
            mounts: mounts(&cargo),
            steps: vec![step],
            ..spec()
        })
        .unwrap();
    assert_eq!(outcome.steps[0].end, End::Exited(0), "{outcome:?}");
    assert!(out(&outcome).contains("1 passed"), "{outcome:?}");
}
