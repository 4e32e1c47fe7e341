//! Specifications and runs for the sandbox tests.

use hangar::sandbox::Provider as _;
use hangar::sandbox::spec::{Limits, Network, Outcome, Spec, Step};
use hangar::sandbox::{Cancel, Error, Event, Launcher, Linux};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// The binary under test as the launcher.
pub(crate) fn provider() -> Linux {
    Linux::new(Launcher {
        program: std::env::var_os("PROG").map_or_else(
            || PathBuf::from(env!("CARGO_BIN_EXE_hangar")),
            PathBuf::from,
        ),
    })
}

/// A sandbox of nothing but the fixed parts.
pub(crate) fn spec() -> Spec {
    Spec {
        mounts: Vec::new(),
        files: Vec::new(),
        network: Network::None,
        limits: Limits {
            output: Some(1 << 20),
            ..Limits::default()
        },
        inner_domain: true,
        hash_after: Vec::new(),
        collect: Vec::new(),
        steps: Vec::new(),
        stop_on_failure: false,
    }
}

/// A step that runs a shell script.
pub(crate) fn sh(script: &str) -> Step {
    Step {
        argv: vec!["/bin/sh".into(), "-c".into(), script.into()],
        env: BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())]),
        dir: PathBuf::from("/"),
        stdin: Vec::new(),
        channel: false,
        timeout: Duration::from_secs(20),
        idle: None,
    }
}

/// Runs it.
pub(crate) fn run(spec: &Spec) -> Result<Outcome, Error> {
    provider().run(spec, &Cancel::default(), &mut |_: Event| {})
}

/// Runs one script in an otherwise empty sandbox.
pub(crate) fn script(text: &str) -> Outcome {
    let mut spec = spec();
    spec.steps.push(sh(text));
    run(&spec).unwrap()
}

/// Standard output of the first step as text.
pub(crate) fn out(outcome: &Outcome) -> String {
    String::from_utf8_lossy(&outcome.steps[0].stdout).into_owned()
}
