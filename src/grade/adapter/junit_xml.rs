//! Reads one report in the form that JUnit made common: `testsuite` and `testcase` elements. It comes from
//! the process under test: no document type, no entity but XML's own five, limits on everything.

use crate::model::outcome::{FailureClass, Outcome, TestId};
use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

/// Deepest nesting of elements.
const MAX_DEPTH: usize = 32;
/// Most tests of one report.
const MAX_TESTS: usize = 100_000;

/// One `testcase`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TestCase {
    /// `classname::name`.
    pub(super) name: String,
    /// How it ended.
    pub(super) outcome: Outcome,
}

/// What a report holds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    /// Tests in their order.
    pub(super) tests: Vec<TestCase>,
    /// A group counts other tests than it holds.
    pub(super) miscounted: bool,
}

/// A group that is open.
#[derive(Debug, Default)]
struct Suite {
    name: String,
    counted: [Option<usize>; 4],
    found: [usize; 4],
}

const COUNTS: [&str; 4] = ["tests", "failures", "errors", "skipped"];

/// A test that is open.
struct Open {
    test: TestCase,
    depth: usize,
}

/// Reads a report. `None`: it is not one, or too large.
pub(super) fn read(text: &str) -> Option<Report> {
    let mut reader = Reader::from_str(text);
    let mut out = Report::default();
    let mut suites: Vec<Suite> = Vec::new();
    let mut open: Option<Open> = None;
    let mut depth = 0_usize;
    let mut rooted = false;
    loop {
        let event = reader.read_event().ok()?;
        let (element, is_empty) = match event {
            Event::Eof => break,
            Event::DocType(_) => return None,
            Event::Start(element) => (element, false),
            Event::Empty(element) => (element, true),
            Event::End(_) => {
                depth = depth.checked_sub(1)?;
                close(depth, &mut out, &mut suites, &mut open);
                continue;
            }
            _ => continue,
        };
        if depth == MAX_DEPTH || out.tests.len() == MAX_TESTS {
            return None;
        }
        match element.local_name().as_ref() {
            "testsuites" if depth == 0 && !rooted => suites.push(Suite::default()),
            "testsuite" if (depth == 0 && !rooted) || depth == suites.len() && depth > 0 => {
                suites.push(suite(&element)?);
            }
            _ if depth == 0 => return None,
            "testcase" if open.is_none() && depth == suites.len() => {
                let test = testcase(&element, suites.last()?)?;
                open = Some(Open { test, depth });
            }
            "testcase" | "testsuite" | "testsuites" => return None,
            tag => {
                if let Some(open) = open.as_mut().filter(|open| depth == open.depth + 1) {
                    open.test.outcome = worse(open.test.outcome, tag);
                }
            }
        }
        rooted = true;
        if is_empty {
            close(depth, &mut out, &mut suites, &mut open);
        } else {
            depth += 1;
        }
    }
    (depth == 0 && rooted).then_some(out)
}

/// The element at `depth` ends.
fn close(depth: usize, out: &mut Report, suites: &mut Vec<Suite>, open: &mut Option<Open>) {
    if let Some(done) = open.take_if(|open| open.depth == depth) {
        if let Some(suite) = suites.last_mut() {
            suite.count(done.test.outcome);
        }
        out.tests.push(done.test);
    } else if suites.len() == depth + 1
        && let Some(suite) = suites.pop()
    {
        out.miscounted |= suite.is_miscounted();
        if let Some(above) = suites.last_mut() {
            for (sum, found) in above.found.iter_mut().zip(suite.found) {
                *sum += found;
            }
        }
    }
}

impl Suite {
    fn count(&mut self, outcome: Outcome) {
        self.found[0] += 1;
        let which = match outcome {
            Outcome::Failed(FailureClass::Assertion) => 1,
            Outcome::Skipped => 3,
            Outcome::Passed => return,
            Outcome::Failed(_) | Outcome::Environment => 2,
        };
        self.found[which] += 1;
    }

    /// Producers differ in what they call a failure and what an error, so those are summed. Groups that
    /// count nothing are believed.
    fn is_miscounted(&self) -> bool {
        let [tests, failures, errors, _] = self.counted;
        let bad = failures.unwrap_or(0) + errors.unwrap_or(0);
        let bad_found = self.found[1] + self.found[2];
        let said = failures.is_some() || errors.is_some();
        tests.is_some_and(|tests| tests != self.found[0]) || (said && bad != bad_found)
    }
}

fn suite(element: &BytesStart<'_>) -> Option<Suite> {
    let mut suite = Suite {
        name: attribute(element, "name")?.unwrap_or_default(),
        ..Suite::default()
    };
    for (at, name) in COUNTS.iter().enumerate() {
        if let Some(text) = attribute(element, name)? {
            suite.counted[at] = Some(text.trim().parse().ok()?);
        }
    }
    Some(suite)
}

fn testcase(element: &BytesStart<'_>, suite: &Suite) -> Option<TestCase> {
    let name = attribute(element, "name")?.filter(|name| !name.is_empty())?;
    let class = attribute(element, "classname")?.filter(|class| !class.is_empty());
    let class = class.as_ref().unwrap_or(&suite.name);
    let full = format!("{class}::{name}");
    Some(TestCase {
        name: full
            .chars()
            .filter(|c| !c.is_control())
            .take(TestId::MAX)
            .collect(),
        // googletest and ctest say so of what was turned off.
        outcome: match attribute(element, "status")?.as_deref() {
            Some("notrun" | "disabled") => Outcome::Skipped,
            _ => Outcome::Passed,
        },
    })
}

/// The outer `None`: the element can't be read.
#[expect(clippy::option_option, reason = "absent is not unreadable")]
fn attribute(element: &BytesStart<'_>, name: &str) -> Option<Option<String>> {
    let mut found = None;
    for attribute in element.attributes() {
        let attribute = attribute.ok()?;
        if attribute.key.as_ref() == name {
            let value = attribute.normalized_value(XmlVersion::Implicit1_0).ok()?;
            found = Some(value.into_owned());
        }
    }
    Some(found)
}

/// What an element in a test adds to how it ended.
fn worse(before: Outcome, tag: &str) -> Outcome {
    match (tag, before) {
        ("failure", Outcome::Passed | Outcome::Skipped) => Outcome::Failed(FailureClass::Assertion),
        ("error", Outcome::Passed | Outcome::Skipped) => Outcome::Failed(FailureClass::Error),
        ("skipped", Outcome::Passed) => Outcome::Skipped,
        _ => before,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn outcomes(text: &str) -> Option<Vec<(String, Outcome)>> {
        let tests = read(text)?.tests.into_iter();
        Some(tests.map(|test| (test.name, test.outcome)).collect())
    }

    #[test]
    fn tests_of_nested_groups_are_read() {
        let text = "<?xml version=\"1.0\"?><testsuites tests=\"6\"><testsuite name=\"s\" tests=\"4\" \
            failures=\"1\" errors=\"1\" skipped=\"1\"><properties><property name=\"a\"/></properties>\
            <testcase classname=\"c\" name=\"a &lt;1&gt;\"/><testcase name=\"b\"><system-out>\
            <![CDATA[<testcase name=\"no\"/>]]></system-out><failure message=\"x\">y</failure></testcase>\
            <testcase classname=\"c\" name=\"d\"><error/><failure/></testcase>\
            <testsuite name=\"t\"><testcase name=\"e\"><skipped/></testcase></testsuite></testsuite>\
            <testsuite name=\"u\"><testcase name=\"f\"/><testcase name=\"g\" status=\"notrun\"/>\
            </testsuite></testsuites>";
        let failed = |class| Outcome::Failed(class);
        let expected = [
            ("c::a <1>", Outcome::Passed),
            ("s::b", failed(FailureClass::Assertion)),
            ("c::d", failed(FailureClass::Error)),
            ("t::e", Outcome::Skipped),
            ("u::f", Outcome::Passed),
            ("u::g", Outcome::Skipped),
        ]
        .map(|(name, outcome)| (name.to_owned(), outcome));
        assert_eq!(outcomes(text).unwrap(), expected);
        assert!(!read(text).unwrap().miscounted);
    }

    #[test]
    fn hostile_and_broken_reports_are_no_reports() {
        let case = "<testcase classname=\"c\" name=\"a\"/>";
        let suite = |inside: &str| format!("<testsuite name=\"s\">{inside}</testsuite>");
        assert!(read(&suite(case)).is_some());
        let bomb = format!(
            "<!DOCTYPE x [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;\">]>{}",
            suite("<testcase name=\"&b;\"/>")
        );
        let deep = format!("{}{}", "<a>".repeat(90_000), "</a>".repeat(90_000));
        let deep_suites = "<testsuite>".repeat(40) + &"</testsuite>".repeat(40);
        for text in [
            String::new(),
            "no XML".to_owned(),
            bomb,
            format!(
                "<!DOCTYPE testsuite SYSTEM \"file:///etc/passwd\">{}",
                suite(case)
            ),
            suite("<testcase name=\"&unknown;\"/>"),
            suite("<testcase name=\"a\" name=\"b\"/>"),
            suite("<testcase classname=\"c\"/>"),
            suite(&deep),
            deep_suites,
            suite(case) + &suite(case),
            case.to_owned(),
            suite("<testcase name=\"a\"><testcase name=\"b\"/></testcase>"),
            suite("<x><testcase name=\"a\"/></x>"),
            format!("<testsuite>{case}"),
            format!("{}</testsuite>", suite(case)),
            format!("<testsuite tests=\"many\">{case}</testsuite>"),
            suite("<testcase name=\"a\"></testsuite>"),
        ] {
            assert_eq!(read(&text), None, "{}", &text[..text.len().min(200)]);
        }
    }

    #[test]
    fn groups_that_count_otherwise_are_noticed() {
        for counts in [
            "tests=\"2\"",
            "failures=\"1\"",
            "errors=\"1\"",
            "tests=\"0\"",
        ] {
            let text = format!("<testsuite {counts}><testcase name=\"a\"/></testsuite>");
            assert!(read(&text).unwrap().miscounted, "{counts}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(
            text in ".{0,100}",
            xml in "(</?(testsuites?|testcase|a)( (name|tests)=\"[0-9&;<]{0,3}\")?/?>){0,8}",
        ) {
            read(&text);
            read(&xml);
        }
    }
}
