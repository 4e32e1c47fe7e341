//! Reads what CMake and ctest leave: the tests that were registered, what was built, and the report of one
//! test's run.

use super::cmake_command::Command;
use super::cmake_properties::{Said, TURNING};
use super::handed::Told;
use super::junit_xml;
use crate::grade::report::{Builder, Fault};
use crate::grade::suite::Suite;
use crate::model::outcome::{FailureClass, Outcome, TestId};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// ctest's exit status when a test did not pass.
const FAILED: i32 = 8;

/// What the build made.
#[derive(Debug)]
pub(super) struct Made {
    /// CMake came to its end. Else nothing was built.
    configured: bool,
    /// Lines of digests and paths.
    digests: BTreeSet<String>,
    /// Tests of sealed files whose program was not there.
    unbuilt: BTreeSet<String>,
}

/// ctest's answer to `--show-only=json-v1`, as far as it is needed.
#[derive(Deserialize)]
struct Answer {
    #[serde(rename = "backtraceGraph", default)]
    graph: Graph,
    tests: Vec<Test>,
}

#[derive(Default, Deserialize)]
struct Graph {
    files: Vec<String>,
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    file: usize,
}

#[derive(Deserialize)]
struct Test {
    name: String,
    backtrace: Option<usize>,
    /// Program and arguments; none where the program is not there.
    #[serde(default)]
    command: Vec<String>,
    #[serde(default)]
    properties: Vec<Property>,
}

#[derive(Deserialize)]
struct Property {
    name: String,
    #[serde(default)]
    value: serde_json::Value,
}

impl Answer {
    /// The file that registers a test, relative to the root of the tree.
    fn file(&self, suite: &Suite, test: &Test) -> Option<String> {
        let node = self.graph.nodes.get(test.backtrace?)?;
        let path = Path::new(self.graph.files.get(node.file)?);
        let path = path.strip_prefix(&suite.layout.src).ok()?;
        path.to_str().map(str::to_owned)
    }
}

/// The name of a test for ctest.
pub(super) fn name(id: &TestId) -> &str {
    let found = id.as_str().split_once(" > ");
    found.map_or(id.as_str(), |(_, name)| name)
}

/// Reads a build. A test that was asked for and comes from another file is a fault, and one that is started in
/// another way, or whose exit status means something else, than its file says; a test of a sealed file that
/// nobody listed is unknown.
pub(super) fn made(
    suite: &Suite,
    ids: &[TestId],
    told: &Told,
    builder: &mut Builder,
) -> Option<Made> {
    let [answer, digests] = told.files.as_slice() else {
        if told.files.is_empty() && told.status != Some(0) {
            return Some(Made {
                configured: false,
                digests: BTreeSet::new(),
                unbuilt: BTreeSet::new(),
            });
        }
        builder.fault(Fault::Incomplete);
        return None;
    };
    let Ok(answer) = serde_json::from_slice::<Answer>(answer) else {
        builder.fault(Fault::Unreadable);
        return None;
    };
    let digests = lines(digests);
    let files = digests.iter().filter_map(|line| line.split_once("  "));
    let built: BTreeSet<&str> = files.map(|(_, path)| path).collect();
    let mut unbuilt = BTreeSet::new();
    let mut places: BTreeMap<&str, Vec<Option<String>>> = BTreeMap::new();
    for test in &answer.tests {
        let file = answer.file(suite, test);
        if let Some(sealed) = file.as_ref().and_then(|file| suite.file(file)) {
            let full = format!("{} > {}", sealed.path, test.name);
            if !suite.known.iter().any(|id| id.as_str() == full) {
                builder.unknown(&full);
            }
            let text = String::from_utf8_lossy(sealed.text.expose());
            if test.command.is_empty() {
                unbuilt.insert(test.name.clone());
            } else if !is_started_as_said(suite, test, &text, &built) {
                builder.fault(Fault::NotSealed);
            }
            if !is_as_said(test, &Said::of(&text)) {
                builder.fault(Fault::NotSealed);
            }
        }
        places.entry(&test.name).or_default().push(file);
    }
    for id in ids {
        let file = id.as_str().split_once(" > ").map(|(file, _)| file);
        let is_ours = |have: &[Option<String>]| matches!(have, [one] if one.as_deref() == file);
        if places.get(name(id)).is_some_and(|have| !is_ours(have)) {
            builder.fault(Fault::NotSealed);
        }
    }
    Some(Made {
        configured: true,
        unbuilt,
        digests,
    })
}

/// Whether the command of a test is what its sealed file says. Else the patch has put a launcher before it.
fn is_started_as_said(suite: &Suite, test: &Test, text: &str, built: &BTreeSet<&str>) -> bool {
    let (build, src) = (&super::ctest::build_folder(suite), &suite.layout.src);
    Command::of(text, &test.name).is_some_and(|said| said.is(&test.command, built, build, src))
}

/// Whether every property that turns the result of a test is what its sealed file says. Else the patch has
/// set it, or taken it away.
fn is_as_said(test: &Test, said: &Said) -> bool {
    TURNING.iter().all(|property| {
        let mut have = test.properties.iter().filter(|one| one.name == *property);
        said.agrees(&test.name, property, have.next().map(|one| &one.value))
    })
}

fn lines(bytes: &[u8]) -> BTreeSet<String> {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

/// Reads the run of one test. `None`: ctest knows no test of this name.
pub(super) fn one(
    id: &TestId,
    made: &Made,
    told: &Told,
    status: i32,
    stdout: &[u8],
) -> Result<Option<Outcome>, Fault> {
    if !made.configured {
        return Ok(Some(Outcome::Failed(FailureClass::Compile)));
    }
    let [before, report, after] = told.files.as_slice() else {
        return Err(Fault::Incomplete);
    };
    let is_whole = |digests: &[u8]| made.digests.is_subset(&lines(digests));
    if !is_whole(before) || !is_whole(after) {
        return Err(Fault::NotSealed);
    }
    let text = std::str::from_utf8(report).map_err(|_| Fault::Unreadable)?;
    let report = junit_xml::read(text).ok_or(Fault::Unreadable)?;
    if report.miscounted {
        return Err(Fault::Sources);
    }
    // Tests that set something up for this one are reported too.
    let full = format!("{0}::{0}", name(id));
    let mut found = report.tests.iter().filter(|test| test.name == full);
    let outcome = match (found.next(), found.next()) {
        (Some(test), None) => test.outcome,
        (None, _) => return Ok(None),
        (Some(_), Some(_)) => return Err(Fault::Sources),
    };
    // Nobody knows what was started.
    if outcome == Outcome::Passed && made.unbuilt.contains(name(id)) {
        return Err(Fault::NotSealed);
    }
    match (status, outcome) {
        (0, Outcome::Passed | Outcome::Skipped) => Ok(Some(outcome)),
        (FAILED, Outcome::Failed(_)) => Ok(Some(Outcome::Failed(class(stdout)))),
        // Its program was not built.
        (FAILED, Outcome::Skipped) => Ok(Some(Outcome::Failed(FailureClass::Compile))),
        _ => Err(Fault::Status),
    }
}

/// Why a test failed, from ctest's line about it. A failed `assert` of C aborts.
fn class(stdout: &[u8]) -> FailureClass {
    let text = String::from_utf8_lossy(stdout);
    let classes = [
        ("***Timeout", FailureClass::Timeout),
        ("Subprocess aborted***Exception", FailureClass::Assertion),
        ("***Exception", FailureClass::Crash),
    ];
    let found = classes.iter().find(|(part, _)| text.contains(part));
    found.map_or(FailureClass::Assertion, |(_, class)| *class)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> TestId {
        TestId::new("tests/CMakeLists.txt > a").unwrap()
    }

    const SAME: &str = "2  /b/lib.so\n1  /b/a\n3  /b/more\n";

    fn read(digests: &str, cases: &str, status: i32) -> Result<Option<Outcome>, Fault> {
        ended([digests, SAME], cases, status, &[])
    }

    fn ended(
        [before, after]: [&str; 2],
        cases: &str,
        status: i32,
        unbuilt: &[&str],
    ) -> Result<Option<Outcome>, Fault> {
        let made = Made {
            configured: true,
            digests: lines(b"1  /b/a\n2  /b/lib.so\n"),
            unbuilt: unbuilt.iter().map(|name| (*name).to_owned()).collect(),
        };
        let report = format!("<testsuite name=\"x\">{cases}</testsuite>");
        let told = Told {
            files: vec![before.into(), report.into(), after.into()],
            status: Some(status),
        };
        one(&id(), &made, &told, status, b"1/1 Test #1: a ...***Failed")
    }

    #[test]
    fn report_status_and_digests_must_agree() {
        let same = SAME;
        let passed = "<testcase name=\"a\" classname=\"a\" status=\"run\"/>";
        let failed = "<testcase name=\"a\" classname=\"a\" status=\"fail\"><failure/></testcase>";
        let missing =
            "<testcase name=\"a\" classname=\"a\" status=\"notrun\"><skipped/></testcase>";
        let ends = |class| Ok(Some(Outcome::Failed(class)));
        let two = format!("{passed}{passed}");
        for (digests, cases, status, expected) in [
            (same, passed, 0, Ok(Some(Outcome::Passed))),
            (same, failed, 8, ends(FailureClass::Assertion)),
            (same, missing, 8, ends(FailureClass::Compile)),
            (same, missing, 0, Ok(Some(Outcome::Skipped))),
            (same, "", 0, Ok(None)),
            (same, passed, 8, Err(Fault::Status)),
            (same, failed, 0, Err(Fault::Status)),
            (same, two.as_str(), 0, Err(Fault::Sources)),
            (same, "<testcase>", 0, Err(Fault::Unreadable)),
            ("1  /b/a\n", passed, 0, Err(Fault::NotSealed)),
            ("1  /b/a\n9  /b/lib.so\n", passed, 0, Err(Fault::NotSealed)),
        ] {
            assert_eq!(read(digests, cases, status), expected, "{cases} {status}");
        }
    }

    #[test]
    fn what_was_started_is_what_was_built() {
        let passed = "<testcase name=\"a\" classname=\"a\" status=\"run\"/>";
        let failed = "<testcase name=\"a\" classname=\"a\" status=\"fail\"><failure/></testcase>";
        let swapped = "1  /b/a\n9  /b/lib.so\n";
        let fault = Err(Fault::NotSealed);
        assert_eq!(ended([SAME, swapped], passed, 0, &[]), fault);
        assert_eq!(ended([SAME, SAME], passed, 0, &["a"]), fault);
        let plain = Ok(Some(Outcome::Failed(FailureClass::Assertion)));
        assert_eq!(ended([SAME, SAME], failed, 8, &["a"]), plain);
        let passes = Ok(Some(Outcome::Passed));
        assert_eq!(ended([SAME, SAME], passed, 0, &["b"]), passes);
    }

    #[test]
    fn the_way_a_test_ended_tells_its_class() {
        for (line, expected) in [
            (
                "1/1 Test #1: a ....***Failed    0.00 sec",
                FailureClass::Assertion,
            ),
            (
                "a ...Subprocess aborted***Exception:   0.01 sec",
                FailureClass::Assertion,
            ),
            ("a ...***Exception: SegFault  0.01 sec", FailureClass::Crash),
            ("a ...***Timeout   1.01 sec", FailureClass::Timeout),
        ] {
            assert_eq!(class(line.as_bytes()), expected, "{line}");
        }
    }
}
