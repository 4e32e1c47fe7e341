//! Reads what go and the test binaries of its packages leave: builds, lists, and the text of one test's run.

use super::binary::{Executable, Record, records, status};
use crate::grade::call::{Call, End, Raw};
use crate::grade::manifest::Project;
use crate::grade::report::{Builder, Fault};
use crate::grade::suite::Suite;
use crate::model::outcome::{FailureClass, Outcome, TestId};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::Path;

/// Exit status of a binary of which a test failed.
const FAILED: i32 = 1;
/// Exit status of a Go program that panicked.
const PANICKED: i32 = 2;

/// What the builds made.
#[derive(Debug, Default)]
pub(super) struct Built {
    executables: BTreeMap<String, Executable>,
    lacks_modules: bool,
    unfinished: bool,
}

impl Built {
    /// The binary of a package, where it was built.
    pub(super) fn of(&self, package: &str) -> Option<&Executable> {
        self.executables.get(package)
    }

    /// Why a package is missing: modules that are not there, or code that does not compile. `None`: a
    /// build did not come to its end, and what ended it is told elsewhere.
    pub(super) fn failure(&self) -> Option<Outcome> {
        if self.unfinished {
            None
        } else if self.lacks_modules {
            Some(Outcome::Environment)
        } else {
            Some(Outcome::Failed(FailureClass::Compile))
        }
    }

    /// Takes the build of a package.
    pub(super) fn add(
        &mut self,
        suite: &Suite,
        package: &str,
        call: &Call,
        raw: &Raw,
        builder: &mut Builder,
    ) {
        let records = match records(call, raw) {
            Ok(records) => records,
            Err(fault) => return builder.fault(fault),
        };
        let (built, ended) = match records.as_slice() {
            [Record::Built(digest, path), Record::End(status)] => (Some((digest, path)), *status),
            [Record::End(status)] => (None, *status),
            [] | [Record::Built(..)] => {
                self.unfinished = true;
                return builder.fault(Fault::Incomplete);
            }
            _ => return builder.fault(Fault::NotOurs),
        };
        if raw.end != End::Exited(ended) {
            return builder.fault(Fault::Status);
        }
        match (built, ended) {
            (Some((digest, path)), 0) => {
                if replaces(suite, call, &raw.stdout) {
                    builder.fault(Fault::Replaced);
                }
                let executable = Executable {
                    path: (*path).to_owned(),
                    digest: (*digest).to_owned(),
                };
                let old = self.executables.insert(package.to_owned(), executable);
                if old.is_some() {
                    builder.fault(Fault::NotSealed);
                }
            }
            // It was built, and go could not say of what.
            (Some(_), _) => builder.fault(Fault::Runner),
            // go took none of the package's files for a test.
            (None, 0) => builder.fault(Fault::NotSealed),
            (None, _) => {
                if lacks_modules(&raw.stderr) {
                    self.lacks_modules = true;
                    builder.missing("a module that go.mod requires");
                }
            }
        }
    }
}

/// Whether a package that the base takes from outside was built from anything but what go downloaded. What
/// lies in `vendor` is the base's, since no patch may change it.
fn replaces(suite: &Suite, call: &Call, stdout: &[u8]) -> bool {
    let downloads = call.env.get(OsStr::new("GOMODCACHE")).map(Path::new);
    let text = String::from_utf8_lossy(stdout);
    text.lines().any(|line| {
        let parts = line.strip_prefix("package ");
        let Some((package, folder)) = parts.and_then(|rest| rest.split_once('\t')) else {
            return false;
        };
        // Behind the name may stand for whose tests it is built once more.
        let package = package.split(' ').next().unwrap_or(package);
        is_from_outside(&suite.project, package) && !is_kept(suite, downloads, Path::new(folder))
    })
}

/// Whether a package belongs to a module that the base requires. What names a longer part of its path wins:
/// a module of the base's own may lie below one from outside.
fn is_from_outside(project: &Project, package: &str) -> bool {
    let is_above = |name: &&String| {
        let rest = package.strip_prefix(name.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let longest = |names: &BTreeSet<String>| names.iter().filter(is_above).map(String::len).max();
    longest(&project.declared) > longest(&project.names)
}

/// Whether a folder is one of those that no patch can change.
fn is_kept(suite: &Suite, downloads: Option<&Path>, folder: &Path) -> bool {
    let has = |path: &Path, part: &str| path.components().any(|have| have.as_os_str() == part);
    let inside = folder.strip_prefix(&suite.layout.src);
    let is_below = downloads.is_some_and(|downloads| folder.starts_with(downloads));
    !has(folder, "..") && (is_below || inside.is_ok_and(|path| has(path, "vendor")))
}

/// Whether go failed because a module is not downloaded.
pub(super) fn lacks_modules(stderr: &[u8]) -> bool {
    String::from_utf8_lossy(stderr).contains("module lookup disabled by GOPROXY=off")
}

/// The name of a test in its binary.
pub(super) fn name(id: &TestId) -> &str {
    let found = id.as_str().rsplit_once("::");
    found.map_or(id.as_str(), |(_, name)| name)
}

/// Reads a list: whether it holds every known test of the package. Others are those of the base.
pub(super) fn list(
    known: &[&TestId],
    call: &Call,
    raw: &Raw,
    expected: &Executable,
    builder: &mut Builder,
) -> bool {
    match status(call, raw, expected) {
        Ok(Some(0)) => {}
        Ok(None) => return false,
        Ok(Some(_)) => {
            builder.fault(Fault::Runner);
            return false;
        }
        Err(fault) => {
            builder.fault(fault);
            return false;
        }
    }
    let text = String::from_utf8_lossy(&raw.stdout);
    let holds = |id: &&TestId| text.lines().filter(|line| *line == name(id)).count() == 1;
    if !known.iter().all(holds) {
        builder.fault(Fault::NotSealed);
    }
    true
}

/// Reads the run of one test. A pass needs exit status 0, and that the text tells of exactly this test, once.
pub(super) fn one(
    id: &TestId,
    call: &Call,
    raw: &Raw,
    expected: &Executable,
) -> Result<Outcome, Fault> {
    let Some(status) = status(call, raw, expected)? else {
        return Ok(Outcome::Failed(FailureClass::Timeout));
    };
    let text = String::from_utf8_lossy(&raw.stdout);
    let told = Told::of(&text, name(id));
    match (status, told) {
        (0, Some(Told::Passed)) => Ok(Outcome::Passed),
        (0, Some(Told::Skipped)) => Ok(Outcome::Skipped),
        (FAILED, Some(Told::Failed)) => Ok(Outcome::Failed(FailureClass::Assertion)),
        // It left with success before `testing` said how the test ended.
        (0, _) => Err(Fault::Incomplete),
        (_, Some(Told::Passed | Told::Skipped)) => Err(Fault::Status),
        (PANICKED, _) if panicked(&raw.stderr) => Ok(Outcome::Failed(FailureClass::Error)),
        (_, _) => Ok(Outcome::Failed(FailureClass::Crash)),
    }
}

/// Whether a test raised something, and did not just end its process.
fn panicked(stderr: &[u8]) -> bool {
    let text = String::from_utf8_lossy(stderr);
    text.contains("panic: ") && !text.contains("unexpected call to os.Exit(0) during test")
}

/// What the text of `-test.v` says of one test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Passed,
    Failed,
    Skipped,
}

impl Told {
    /// `None` where it was not started and ended exactly once, or the binary did not say that it was done.
    fn of(text: &str, name: &str) -> Option<Self> {
        // Output of the code itself may stand in front, on the same line. Subtests have a path behind the
        // name.
        let begins = text.matches(&format!("=== RUN   {name}\n")).count();
        let words = [
            (Self::Passed, "PASS"),
            (Self::Failed, "FAIL"),
            (Self::Skipped, "SKIP"),
        ];
        let mut ends = words.into_iter().flat_map(|(told, word)| {
            let line = format!("--- {word}: {name} (");
            let found: Vec<usize> = text.match_indices(&line).map(|(at, _)| at).collect();
            found.into_iter().map(move |at| (told, at))
        });
        let (Some((told, at)), None) = (ends.next(), ends.next()) else {
            return None;
        };
        // `TestMain` may go on after that and print.
        let mut rest = text.get(at..)?.lines().skip(1);
        let done = rest.find(|line| matches!(*line, "PASS" | "FAIL"))?;
        let agrees = (told == Self::Failed) == (done == "FAIL");
        (begins == 1 && agrees).then_some(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PASSED: &str = "=== RUN   TestA\n=== RUN   TestA/sub\n--- PASS: TestA (0.00s)\n    \
                          --- PASS: TestA/sub (0.00s)\nPASS\n";

    #[test]
    fn a_text_tells_of_one_test_once() {
        let failed = PASSED.replace("PASS", "FAIL");
        let skipped = PASSED.replace("--- PASS: TestA (", "--- SKIP: TestA (");
        let glued = format!(
            "said{}",
            PASSED.replace("--- PASS: TestA (", "more--- PASS: TestA (")
        );
        for (text, told) in [
            (PASSED, Some(Told::Passed)),
            (&failed, Some(Told::Failed)),
            (&skipped, Some(Told::Skipped)),
            (&glued, Some(Told::Passed)),
            (&format!("{PASSED}done\n"), Some(Told::Passed)),
            (&format!("{PASSED}{PASSED}"), None),
            (&format!("{PASSED}{failed}"), None),
            (&PASSED.replace("PASS\n", "FAIL\n"), None),
            (&PASSED.replace("\nPASS\n", "\n"), None),
            (&PASSED.replace("=== RUN   TestA\n", ""), None),
            (&PASSED.replace("TestA", "TestB"), None),
            ("", None),
        ] {
            assert_eq!(Told::of(text, "TestA"), told, "{text}");
        }
    }

    #[test]
    fn the_longest_name_tells_where_a_package_comes_from() {
        let names = |all: &[&str]| all.iter().map(|name| (*name).to_owned()).collect();
        let project = Project {
            declared: names(&["a.example/x", "b.example/own/dep"]),
            names: names(&["b.example/own", "a.example/x/v2"]),
            ..Project::default()
        };
        for (package, expected) in [
            ("a.example/x", true),
            ("a.example/x/sub", true),
            ("a.example/xy", false),
            ("a.example/x/v2/sub", false),
            ("b.example/own/dep/sub", true),
            ("b.example/own", false),
            ("c.example", false),
        ] {
            assert_eq!(is_from_outside(&project, package), expected, "{package}");
        }
    }

    #[test]
    fn a_panic_is_an_error_and_an_early_end_is_none() {
        assert!(panicked(b"panic: x [recovered]\n"));
        assert!(!panicked(
            b"panic: unexpected call to os.Exit(0) during test\n"
        ));
        assert!(!panicked(b""));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn any_text_is_read_without_panic(text in ".{0,80}", name in "[A-Za-z]{0,3}") {
            Told::of(&text, &name);
            Told::of(&format!("--- PASS: {name} ({text}"), &name);
        }
    }
}
