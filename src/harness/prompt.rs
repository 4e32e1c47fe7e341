//! What agents are told. The texts lie in `prompts/`; this fills them in.
//!
//! An implementer's prompt is made from types that have no field for anything of the sealed store
//! but counts and the names of failing tests.

use super::collect::Complaint;
use super::exchange::Criterion;
use crate::model::digest::Digest;
use crate::model::outcome::TestId;
use crate::model::plan::Framework;
use std::fmt::Write as _;

const WRITER: &str = include_str!("prompts/writer.md");
const WRITER_EXTERNAL: &str = include_str!("prompts/writer_external.md");
const WRITER_FOLLOW_UP: &str = include_str!("prompts/writer_follow_up.md");
const WRITER_REWRITE: &str = include_str!("prompts/writer_rewrite.md");
const IMPLEMENTER: &str = include_str!("prompts/implementer.md");
const IMPLEMENTER_FOLLOW_UP: &str = include_str!("prompts/implementer_follow_up.md");
const TAKEN_OVER: &str = include_str!("prompts/taken_over.md");

/// The task, as both sides see it.
#[derive(Debug, Clone, Copy)]
pub struct Brief<'a> {
    /// Title.
    pub title: &'a str,
    /// What is to be done.
    pub mandate: &'a str,
    /// Acceptance criteria.
    pub criteria: &'a [Criterion<'a>],
    /// Work tree inside the sandbox.
    pub work: &'a str,
    /// Exchange directory inside the sandbox.
    pub exchange: &'a str,
}

/// What only a writer is told.
#[derive(Debug, Clone, Copy)]
pub struct WriterBrief<'a> {
    /// The task.
    pub brief: Brief<'a>,
    /// Framework of the tests.
    pub framework: Framework,
    /// Shell text that runs one test, with `ID` for its id.
    pub one_test: &'a str,
    /// Paths where tests may go.
    pub tests: &'a [String],
}

/// What only an implementer is told.
#[derive(Debug, Clone, Copy)]
pub struct ImplementerBrief<'a> {
    /// The task.
    pub brief: Brief<'a>,
    /// Globs that the patch may not touch.
    pub protected: &'a [String],
    /// Globs that the patch may touch when an approver allows it.
    pub guarded: &'a [String],
    /// The repository's own check, shell text.
    pub verify: Option<&'a str>,
    /// Rounds left after this one.
    pub rounds_left: u32,
}

/// A prompt and the digest of the texts that it was made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// What the agent reads.
    pub text: String,
    /// SHA-256 of the template files, version headers included; the task is no part of it.
    pub template: Digest,
}

/// A writer's first turn.
pub fn writer(brief: &WriterBrief<'_>) -> Prompt {
    made(writer_text(brief), &[WRITER, form(brief.framework)])
}

/// A writer's next turn after output that cannot be used.
pub fn writer_follow_up(brief: &WriterBrief<'_>, complaint: &Complaint) -> Prompt {
    let text = fill(
        WRITER_FOLLOW_UP,
        &[
            ("exchange", brief.brief.exchange),
            ("complaint", &complaint.for_writer()),
            ("brief", &writer_text(brief)),
        ],
    );
    made(text, &[WRITER_FOLLOW_UP, WRITER, form(brief.framework)])
}

/// A fresh writer's turn after a person's reject.
pub fn writer_rewrite(brief: &WriterBrief<'_>, reason: &str) -> Prompt {
    let text = fill(
        WRITER_REWRITE,
        &[
            ("exchange", brief.brief.exchange),
            ("reason", reason),
            ("brief", &writer_text(brief)),
        ],
    );
    made(text, &[WRITER_REWRITE, WRITER, form(brief.framework)])
}

/// An implementer's first turn.
pub fn implementer(brief: &ImplementerBrief<'_>) -> Prompt {
    made(implementer_text(brief), &[IMPLEMENTER])
}

/// An implementer's next round after a grade that did not accept. Parameters are cut from the ids:
/// they often are the expected values.
pub fn implementer_follow_up(
    brief: &ImplementerBrief<'_>,
    total: usize,
    failing: &[TestId],
) -> Prompt {
    let mut names: Vec<_> = failing.iter().map(TestId::without_parameters).collect();
    names.sort_unstable();
    names.dedup();
    let list: String = names.iter().fold(String::new(), |mut list, name| {
        // Writing to a String cannot fail.
        let _ = writeln!(list, "- {name}");
        list
    });
    let text = fill(
        IMPLEMENTER_FOLLOW_UP,
        &[
            ("failed", &failing.len().to_string()),
            ("total", &total.to_string()),
            ("failing", &list),
            ("rounds_left", &brief.rounds_left.to_string()),
            ("brief", &implementer_text(brief)),
        ],
    );
    made(text, &[IMPLEMENTER_FOLLOW_UP, IMPLEMENTER])
}

/// The same for an implementer that goes on with what another one left.
pub fn taken_over(prompt: &Prompt, exchange: &str) -> Prompt {
    let more = fill(TAKEN_OVER, &[("exchange", exchange)]);
    Prompt {
        text: [&prompt.text, more.as_str()].concat(),
        template: Digest::of(format!("{}\n{TAKEN_OVER}", prompt.template).as_bytes()),
    }
}

fn writer_text(writer: &WriterBrief<'_>) -> String {
    let (test, sentinel) = examples(writer.framework);
    let tests = writer.tests.iter().map(|path| format!("`{path}`"));
    let mut values = common(&writer.brief);
    values.extend([
        ("tests", tests.collect::<Vec<_>>().join(", ")),
        ("framework", writer.framework.to_string()),
        ("form", form(writer.framework).to_owned()),
        ("one_test", writer.one_test.to_owned()),
        ("example_id", test.to_owned()),
        ("example_sentinel", sentinel.to_owned()),
    ]);
    fill_owned(WRITER, &values)
}

fn implementer_text(implementer: &ImplementerBrief<'_>) -> String {
    let list = |globs: &[String]| {
        let globs: Vec<_> = globs.iter().map(|glob| format!("`{glob}`")).collect();
        globs.join(", ")
    };
    let protected = list(implementer.protected);
    let verify = match implementer.verify {
        Some(command) => format!("The repository's own check must pass: `{command}`."),
        None => "The repository's own tests must still pass.".to_owned(),
    };
    let mut values = common(&implementer.brief);
    values.extend([
        (
            "protected",
            if protected.is_empty() {
                "none".into()
            } else {
                protected
            },
        ),
        ("guarded", list(implementer.guarded)),
        ("verify", verify),
        ("rounds_left", implementer.rounds_left.to_string()),
    ]);
    fill_owned(IMPLEMENTER, &values)
}

fn common(brief: &Brief<'_>) -> Vec<(&'static str, String)> {
    let criteria = brief.criteria.iter().map(|criterion| {
        let text = criterion.text.trim().replace('\n', "\n  ");
        format!("- {}: {text}", criterion.id)
    });
    vec![
        ("title", brief.title.to_owned()),
        ("mandate", brief.mandate.trim().to_owned()),
        ("criteria", criteria.collect::<Vec<_>>().join("\n")),
        ("work", brief.work.to_owned()),
        ("exchange", brief.exchange.to_owned()),
    ]
}

/// What a writer has to know of the form of tests that is no framework's own.
fn form(framework: Framework) -> &'static str {
    match framework {
        Framework::External => without_header(WRITER_EXTERNAL),
        _ => "",
    }
}

/// Ids of a test and of a sentinel, as each framework spells them.
const fn examples(framework: Framework) -> (&'static str, &'static str) {
    match framework {
        Framework::Pytest | Framework::Unittest => (
            "tests/test_sum.py::TestSum::test_empty",
            "tests/test_sentinel.py::TestSentinel::test_wrong",
        ),
        Framework::Cargo => ("sum::empty_is_zero", "sentinel::wrong_on_purpose"),
        Framework::Go => (
            "sum/sum_test.go::TestEmptyIsZero",
            "sentinel/wrong_test.go::TestWrongOnPurpose",
        ),
        Framework::Node | Framework::Mocha | Framework::Jest | Framework::Vitest => (
            "tests/sum.test.js > sum > empty is zero",
            "tests/sentinel.test.js > wrong on purpose",
        ),
        Framework::Ctest => (
            "tests/CMakeLists.txt > empty is zero",
            "tests/sentinel/CMakeLists.txt > wrong on purpose",
        ),
        Framework::Tap => (
            "tests/sum.t > empty is zero",
            "tests/sentinel.t > wrong on purpose",
        ),
        Framework::Junit => (
            "tests.test_sum.TestSum::test_empty",
            "tests.test_sentinel.TestSentinel::test_wrong",
        ),
        Framework::Exec => ("tests/sum_empty.sh", "tests/sentinel.sh"),
        Framework::External => (
            "acceptance/sum.toml > empty is zero",
            "acceptance/sentinel.toml > wrong on purpose",
        ),
    }
}

fn made(text: String, templates: &[&str]) -> Prompt {
    Prompt {
        text,
        template: Digest::of(templates.concat().as_bytes()),
    }
}

fn fill_owned(template: &str, values: &[(&str, String)]) -> String {
    let values: Vec<_> = values
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    fill(template, &values)
}

/// Puts values in place of `{{name}}`, in one pass: what a value holds is never filled in again.
fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut rest = without_header(template);
    let mut out = String::with_capacity(rest.len());
    while let Some((before, after)) = rest.split_once("{{") {
        out.push_str(before);
        let Some((name, after)) = after.split_once("}}") else {
            out.push_str("{{");
            rest = after;
            continue;
        };
        let value = values.iter().find(|(known, _)| *known == name);
        debug_assert!(value.is_some(), "no value for {name}");
        out.push_str(value.map_or("", |(_, value)| value));
        rest = after;
    }
    out.push_str(rest);
    out
}

/// The text after the comment in the first line that holds its name and version.
fn without_header(template: &str) -> &str {
    match template.split_once('\n') {
        Some((first, rest)) if first.starts_with("<!--") => rest,
        _ => template,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CRITERIA: [Criterion<'static>; 2] = [
        Criterion {
            id: "c1",
            text: "The sum of nothing is 0.",
        },
        Criterion {
            id: "c2",
            text: "Negative numbers work.\nAlso {{mandate}}.",
        },
    ];

    fn brief() -> Brief<'static> {
        Brief {
            title: "Sum",
            mandate: "Write `sum`.",
            criteria: &CRITERIA,
            work: "/src",
            exchange: "/exchange",
        }
    }

    fn for_writer(tests: &[String]) -> WriterBrief<'_> {
        WriterBrief {
            brief: brief(),
            framework: Framework::Pytest,
            one_test: "python -m pytest ID",
            tests,
        }
    }

    fn for_implementer() -> ImplementerBrief<'static> {
        ImplementerBrief {
            brief: brief(),
            protected: &[],
            guarded: &[],
            verify: Some("python -m pytest -q"),
            rounds_left: 1,
        }
    }

    fn id(text: &str) -> TestId {
        TestId::new(text).unwrap()
    }

    #[test]
    fn a_writer_is_told_what_to_leave_and_what_is_judged() {
        let tests = ["tests/".to_owned()];
        let text = writer(&for_writer(&tests)).text;
        for part in [
            "# Task: Sum",
            "- c1: The sum of nothing is 0.",
            "Framework: pytest",
            "under: `tests/`",
            "python -m pytest ID",
            "/exchange/out/sealed/",
            "fail on the base",
            "Sentinels",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert!(text.starts_with("You write") && !text.contains("version 1"));
        let example = text.split("```json\n").nth(1).unwrap();
        let example = example.split("```").next().unwrap();
        crate::model::criteria::Criteria::parse(example.as_bytes(), &["c1".parse().unwrap()])
            .unwrap();
    }

    #[test]
    fn every_framework_has_an_example_that_is_read() {
        let tests = ["tests/".to_owned()];
        for framework in [
            Framework::Unittest,
            Framework::Cargo,
            Framework::Go,
            Framework::Node,
            Framework::Mocha,
            Framework::Jest,
            Framework::Vitest,
            Framework::Ctest,
            Framework::Tap,
            Framework::Junit,
            Framework::Exec,
            Framework::External,
        ] {
            let text = writer(&WriterBrief {
                framework,
                ..for_writer(&tests)
            })
            .text;
            assert!(text.contains(&format!("Framework: {framework}.")));
        }
    }

    #[test]
    fn values_are_never_filled_in_again() {
        let text = implementer(&for_implementer()).text;
        assert!(text.contains("Also {{mandate}}."), "{text}");
    }

    #[test]
    fn an_implementer_reads_counts_and_names_without_parameters() {
        let failing = [id("t.py::test_sum[3-4-7]"), id("t.py::test_sum[1-1-2]")];
        let text = implementer_follow_up(&for_implementer(), 9, &failing).text;
        assert!(text.contains("2 of 9 hidden tests"));
        assert!(text.contains("- t.py::test_sum\n"));
        assert!(!text.contains("3-4-7") && !text.contains("1-1-2"));
    }

    // The words of the sealed side: none of them may be told to an implementer.
    #[test]
    fn an_implementers_prompt_knows_nothing_of_the_store() {
        let text = implementer(&for_implementer()).text;
        for word in [
            "sealed/",
            "criteria.json",
            "sentinel",
            "canary",
            "hgc1_",
            "previous/",
            "refs/hangar",
        ] {
            assert!(!text.contains(word), "{word}");
        }
        assert!(text.contains("## Blockers") && text.contains("do not guess"));
    }

    #[test]
    fn follow_ups_carry_the_complaint_the_reason_and_the_brief() {
        let tests = ["tests/".to_owned()];
        let text = writer_follow_up(
            &for_writer(&tests),
            &Complaint::one(crate::model::complaint::Kind::NoMap, "no map"),
        )
        .text;
        assert!(text.contains("- no map\n") && text.contains("# Task: Sum"));
        let text = writer_rewrite(&for_writer(&tests), "too lenient {{brief}}").text;
        assert!(text.contains("too lenient {{brief}}") && text.contains("in/previous/"));
    }

    #[test]
    fn the_digest_is_the_templates_alone() {
        let one = implementer(&for_implementer());
        let other = implementer(&ImplementerBrief {
            rounds_left: 0,
            ..for_implementer()
        });
        assert_eq!(one.template, other.template);
        assert_ne!(one.text, other.text);
        assert_ne!(
            one.template,
            implementer_follow_up(&for_implementer(), 1, &[]).template
        );
    }
}
