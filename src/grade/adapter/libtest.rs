//! Reads what cargo and libtest leave: build records, lists, and the text of one test's run.

use super::binary::{Executable, Record, records, status};
use super::cargo::{Target, lacks_dependencies};
use crate::grade::call::{Call, End, Raw};
use crate::grade::report::{Builder, Fault};
use crate::grade::suite::Suite;
use crate::model::outcome::{FailureClass, Outcome, TestId};
use serde::Deserialize;
use std::collections::BTreeMap;

/// libtest's exit status when a test failed.
const FAILED: i32 = 101;
/// Longest line of cargo's JSON that is read (diagnostics can be long).
const MAX_LINE: usize = 4 << 20;

/// What the builds made.
#[derive(Debug, Default)]
pub(super) struct Built {
    executables: BTreeMap<String, Executable>,
    lacks_dependencies: bool,
    unfinished: bool,
}

#[derive(Deserialize)]
struct Artifact {
    reason: String,
    #[serde(default)]
    manifest_path: String,
    target: ArtifactTarget,
    #[serde(default)]
    profile: Profile,
    executable: Option<String>,
}

/// What a build script told cargo.
#[derive(Deserialize)]
struct Script {
    env: Vec<(String, String)>,
}

/// How it was compiled.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Profile {
    debug_assertions: bool,
    overflow_checks: bool,
}

#[derive(Deserialize)]
struct ArtifactTarget {
    kind: Vec<String>,
    name: String,
    src_path: String,
}

impl Built {
    /// The binary of a target, where it was built.
    pub(super) fn of(&self, target: &Target) -> Option<&Executable> {
        self.executables.get(&target.path)
    }

    /// Why targets are missing: dependencies that are not there, or code that does not compile. `None`: a
    /// build did not come to its end, and what ended it is told elsewhere.
    pub(super) fn failure(&self) -> Option<Outcome> {
        if self.unfinished {
            None
        } else if self.lacks_dependencies {
            Some(Outcome::Environment)
        } else {
            Some(Outcome::Failed(FailureClass::Compile))
        }
    }

    /// Takes one build. A target of the expected name that was built from another file is a fault.
    pub(super) fn add(
        &mut self,
        suite: &Suite,
        call: &Call,
        raw: &Raw,
        targets: &[Target],
        builder: &mut Builder,
    ) {
        let records = match records(call, raw) {
            Ok(records) => records,
            Err(fault) => return builder.fault(fault),
        };
        let Some(Record::End(status)) = records.last() else {
            self.unfinished = true;
            return builder.fault(Fault::Incomplete);
        };
        if raw.end != End::Exited(*status) {
            return builder.fault(Fault::Status);
        }
        if *status != 0 && lacks_dependencies(&raw.stderr) {
            self.lacks_dependencies = true;
            builder.missing("a crate that Cargo.toml declares");
        }
        if moves(&raw.stdout) {
            builder.fault(Fault::Moved);
        }
        for artifact in artifacts(&raw.stdout) {
            if artifact.target.kind != ["test"] {
                continue;
            }
            let by_name = targets
                .iter()
                .find(|target| target.name == artifact.target.name);
            let Some(target) = by_name else { continue };
            let source = suite.inside(&target.path);
            if source.as_os_str() != artifact.target.src_path.as_str() {
                // Another package may have a target of this name; ours is told by its folder.
                let package = suite.inside(&target.package);
                if artifact
                    .target
                    .src_path
                    .starts_with(&*package.to_string_lossy())
                {
                    builder.fault(Fault::NotSealed);
                }
                continue;
            }
            // Another package may name this very file as a target of its own.
            let manifest = suite.inside(&target.package).join("Cargo.toml");
            if manifest.as_os_str() != artifact.manifest_path.as_str() {
                builder.fault(Fault::NotSealed);
                continue;
            }
            let Some(path) = artifact.executable else {
                continue;
            };
            if !artifact.profile.is_checked(suite) {
                builder.fault(Fault::Unchecked);
            }
            let digest = records.iter().find_map(|record| match record {
                Record::Built(digest, have) if *have == path => Some((*digest).to_owned()),
                _ => None,
            });
            let Some(digest) = digest else {
                builder.fault(Fault::Sources);
                continue;
            };
            let executable = Executable { path, digest };
            let old = self.executables.insert(target.path.clone(), executable);
            if old.is_some() {
                builder.fault(Fault::NotSealed);
            }
        }
    }
}

impl Profile {
    /// Whether the checks are on that the plan itself does not turn off.
    fn is_checked(&self, suite: &Suite) -> bool {
        let is_off = |check: &str| {
            suite.plan.env.iter().any(|(name, value)| {
                name.starts_with("CARGO_PROFILE_") && name.ends_with(check) && value == "false"
            })
        };
        (self.debug_assertions || is_off("_DEBUG_ASSERTIONS"))
            && (self.overflow_checks || is_off("_OVERFLOW_CHECKS"))
    }
}

/// How cargo begins a line about a build script.
const SCRIPT_LINE: &[u8] = b"{\"reason\":\"build-script-executed\"";

/// Whether a build script says that a package lies elsewhere, or can't be read. Tests find their files by
/// that.
fn moves(stdout: &[u8]) -> bool {
    let lines = stdout.split(|byte| *byte == b'\n');
    let mut lines = lines.filter(|line| line.starts_with(SCRIPT_LINE));
    let folder = |(name, _): &(String, String)| {
        matches!(name.as_str(), "CARGO_MANIFEST_DIR" | "CARGO_MANIFEST_PATH")
    };
    lines.any(|line| {
        line.len() > MAX_LINE
            || serde_json::from_slice::<Script>(line)
                .map_or(true, |script| script.env.iter().any(folder))
    })
}

/// Artifacts in cargo's JSON. Lines that are no such artifacts are skipped.
fn artifacts(stdout: &[u8]) -> Vec<Artifact> {
    stdout
        .split(|byte| *byte == b'\n')
        .filter(|line| line.len() <= MAX_LINE && line.starts_with(b"{"))
        .filter_map(|line| serde_json::from_slice::<Artifact>(line).ok())
        .filter(|artifact| artifact.reason == "compiler-artifact")
        .collect()
}

/// Reads a `--list`: the number of tests. One that is not in the source is unknown; one of the
/// source that is not in the binary is a fault.
pub(super) fn list(
    suite: &Suite,
    target: &Target,
    call: &Call,
    raw: &Raw,
    built: &Built,
    builder: &mut Builder,
) -> Option<usize> {
    // What was not built has no list; its tests say so.
    let expected = built.of(target)?;
    match status(call, raw, expected) {
        Ok(Some(0)) => {}
        Ok(None) => return None,
        Ok(Some(_)) => {
            builder.fault(Fault::Runner);
            return None;
        }
        Err(fault) => {
            builder.fault(fault);
            return None;
        }
    }
    let text = String::from_utf8_lossy(&raw.stdout);
    let names: Vec<String> = text
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .map(|name| format!("{}::{name}", target.name))
        .collect();
    let known: Vec<&str> = suite
        .known
        .iter()
        .map(TestId::as_str)
        .filter(|id| id.split("::").next() == Some(target.name.as_str()))
        .collect();
    for name in &names {
        if !known.contains(&name.as_str()) {
            builder.unknown(name);
        }
    }
    if known.iter().any(|id| !names.iter().any(|name| name == id)) {
        builder.fault(Fault::NotSealed);
    }
    Some(names.len())
}

/// Reads the run of one test among `count` of its binary. A pass needs exit status 0 and libtest's
/// summary of exactly this one test.
pub(super) fn one(
    id: &TestId,
    count: usize,
    call: &Call,
    raw: &Raw,
    expected: &Executable,
) -> Result<Outcome, Fault> {
    let Some(status) = status(call, raw, expected)? else {
        return Ok(Outcome::Failed(FailureClass::Timeout));
    };
    let text = String::from_utf8_lossy(&raw.stdout);
    let name = id.as_str().split_once("::").map_or("", |(_, name)| name);
    let summary = Summary::of(&text, name, count);
    match (status, summary) {
        (0, Some(Summary::Passed)) => Ok(Outcome::Passed),
        (0, Some(Summary::Ignored)) => Ok(Outcome::Skipped),
        (FAILED, Some(Summary::Failed)) => Ok(Outcome::Failed(class(&text))),
        // It left with success before libtest said how the test ended.
        (0, _) => Err(Fault::Incomplete),
        (_, Some(Summary::Passed | Summary::Ignored)) => Err(Fault::Status),
        (_, _) => Ok(Outcome::Failed(FailureClass::Crash)),
    }
}

/// The line at the end of libtest's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Summary {
    Passed,
    Failed,
    Ignored,
}

impl Summary {
    /// `None` when there is not exactly one summary, for exactly one test, with the right number
    /// left out.
    fn of(text: &str, name: &str, count: usize) -> Option<Self> {
        let begins = text
            .lines()
            .filter(|line| *line == "running 1 test")
            .count();
        // Output of the code itself may stand on the same line, before the result.
        let starts = [
            format!("test {name} ..."),
            format!("test {name} - should panic ..."),
        ];
        let told = text
            .lines()
            .any(|line| starts.iter().any(|start| line.starts_with(start)));
        let mut ends = text
            .lines()
            .filter_map(|line| line.strip_prefix("test result: "));
        let (end, more) = (ends.next()?, ends.next());
        if begins != 1 || !told || more.is_some() {
            return None;
        }
        let rest = count.checked_sub(1)?;
        let left_out = format!(" 0 measured; {rest} filtered out");
        let (head, _) = end.split_once(&left_out)?;
        match head {
            "ok. 1 passed; 0 failed; 0 ignored;" => Some(Self::Passed),
            "ok. 0 passed; 0 failed; 1 ignored;" => Some(Self::Ignored),
            "FAILED. 0 passed; 1 failed; 0 ignored;" => Some(Self::Failed),
            _ => None,
        }
    }
}

/// Why a test failed, from the message of its panic.
fn class(text: &str) -> FailureClass {
    let asserted = [
        "assertion failed",
        "assertion `",
        "test did not panic as expected",
        "panic did not contain expected string",
    ];
    if asserted.iter().any(|part| text.contains(part)) {
        FailureClass::Assertion
    } else {
        FailureClass::Error
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PASSED: &str = "\nrunning 1 test\ntest a::b ... ok\n\ntest result: ok. 1 passed; 0 failed; \
                          0 ignored; 0 measured; 3 filtered out; finished in 0.00s\n\n";

    fn call() -> Call {
        Call {
            argv: Vec::new(),
            env: BTreeMap::new(),
            dir: "/".into(),
            stdin: Vec::new(),
            channel: true,
            timeout: std::time::Duration::from_secs(1),
            ids: Vec::new(),
            nonce: "n".into(),
            room: crate::grade::call::Room::Shared,
        }
    }

    fn read(channel: &str, stdout: &str, end: End) -> Result<Outcome, Fault> {
        let expected = Executable {
            path: "/t/x".into(),
            digest: "d".into(),
        };
        let raw = Raw {
            end,
            stdout: stdout.into(),
            stderr: Vec::new(),
            channel: channel.into(),
            files: BTreeMap::new(),
            hits: Vec::new(),
        };
        one(
            &TestId::new("t::a::b").unwrap(),
            4,
            &call(),
            &raw,
            &expected,
        )
    }

    #[test]
    fn a_pass_needs_all_sources() {
        let good = "n start d /t/x\nn end 0\n";
        assert_eq!(read(good, PASSED, End::Exited(0)), Ok(Outcome::Passed));
        let faults = [
            ("n start e /t/x\nn end 0\n", PASSED, 0, Fault::NotSealed),
            ("n start d /t/y\nn end 0\n", PASSED, 0, Fault::NotSealed),
            ("n none\n", PASSED, 0, Fault::NotSealed),
            ("n start d /t/x\n", PASSED, 0, Fault::Incomplete),
            ("", PASSED, 0, Fault::Incomplete),
            ("n start d /t/x\nm end 0\n", PASSED, 0, Fault::NotOurs),
            (
                "n start d /t/x\nn end 0\nn end 0\n",
                PASSED,
                0,
                Fault::NotOurs,
            ),
            (good, PASSED, 1, Fault::Status),
            (good, "", 0, Fault::Incomplete),
            ("n start d /t/x\nn end 3\n", PASSED, 3, Fault::Status),
        ];
        for (channel, stdout, status, fault) in faults {
            assert_eq!(
                read(channel, stdout, End::Exited(status)),
                Err(fault),
                "{channel}"
            );
        }
        let doubled = format!("{PASSED}{PASSED}");
        let wrong_count = PASSED.replace("3 filtered", "2 filtered");
        let two = PASSED.replace("1 passed", "2 passed");
        let other = PASSED.replace("a::b", "a::c");
        for text in [doubled, wrong_count, two, other] {
            assert_eq!(
                read(good, &text, End::Exited(0)),
                Err(Fault::Incomplete),
                "{text}"
            );
        }
    }

    #[test]
    fn a_build_script_that_names_another_folder_is_found_however_much_it_says() {
        let line = |env: &str| {
            let start = "{\"reason\":\"build-script-executed\",\"package_id\":\"p\",";
            format!("{{\"reason\":\"compiler-artifact\"}}\n{start}\"env\":[{env}]}}\n").into_bytes()
        };
        assert!(!moves(&line("")));
        assert!(!moves(&line("[\"PAD\",\"x\"]")));
        assert!(moves(&line("[\"CARGO_MANIFEST_DIR\",\"/src/other\"]")));
        let pad = format!("[\"PAD\",\"{}\"]", "x".repeat(MAX_LINE));
        assert!(moves(&line(&pad)));
        assert!(moves(&line("[1]")));
    }

    #[test]
    fn a_death_is_a_crash_and_a_timeout_a_timeout() {
        let crash = Ok(Outcome::Failed(FailureClass::Crash));
        assert_eq!(
            read("n start d /t/x\nn end 134\n", "", End::Exited(134)),
            crash
        );
        let timeout = Ok(Outcome::Failed(FailureClass::Timeout));
        assert_eq!(read("n start d /t/x\n", "", End::TimedOut), timeout);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn any_output_is_read_without_panic(channel: Vec<u8>, stdout: Vec<u8>) {
            let raw = Raw { end: End::Exited(0), stdout, stderr: Vec::new(), channel, files: BTreeMap::new(), hits: Vec::new() };
            let expected = Executable { path: String::new(), digest: String::new() };
            let _ = one(&TestId::new("t::a").unwrap(), 1, &call(), &raw, &expected);
            artifacts(&raw.stdout);
        }
    }
}
