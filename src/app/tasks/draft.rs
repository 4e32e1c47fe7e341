//! A task as a person writes it down: a text with title, mandate and criteria, a checklist, or a
//! line of JSON.

use crate::app::Error;
use crate::base::words::count;
use crate::model::event::Criterion;
use crate::model::ids::CriterionId;
use crate::model::task::{Flow, MAX_CRITERIA, Mode};
use serde::Deserialize;
use std::fmt::Write as _;

/// Largest text that is read, in bytes.
pub const MAX_TEXT: u64 = 1 << 20;
/// Most tasks of one JSON lines file.
const MAX_LINES: usize = 1000;

/// What a person says about a new task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Draft {
    /// One line.
    pub title: String,
    /// Markdown.
    pub mandate: String,
    /// Criteria, in order.
    pub criteria: Vec<String>,
    /// Acceptance; `hangar.toml` decides where it is absent.
    pub flow: Option<Flow>,
    /// Kind of work.
    pub mode: Option<Mode>,
    /// 1 to 9.
    pub priority: Option<u8>,
    /// Revision to start from.
    pub base: Option<String>,
    /// External key.
    pub key: Option<String>,
    /// Capabilities a worker must have.
    pub tags: Vec<String>,
    /// Where it stands in a file of tasks, from 1.
    #[serde(skip)]
    pub line: Option<usize>,
}

/// Reads JSON lines: one object a line, empty lines left out. All or nothing.
pub fn read_lines(text: &str) -> Result<Vec<Draft>, Error> {
    let mut drafts = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        if drafts.len() == MAX_LINES {
            return Err(Error::invalid(format!("more than {MAX_LINES} tasks")));
        }
        let mut draft: Draft =
            serde_json::from_str(line).map_err(|error| malformed(index + 1, &error))?;
        draft.line = Some(index + 1);
        if draft.title.trim().is_empty() {
            return Err(Error::invalid(format!("line {}: no `title`", index + 1)));
        }
        drafts.push(draft);
    }
    Ok(drafts)
}

/// The parser counts lines of its own, of which there is one.
fn malformed(line: usize, error: &serde_json::Error) -> Error {
    let (own, column) = (error.line(), error.column());
    let text = error.to_string();
    let text = text.trim_end_matches(&format!(" at line {own} column {column}"));
    Error::invalid(format!("line {line}, column {column}: {text}"))
}

/// Criteria of a file: the items of its Markdown list (also with check boxes), or, where it has
/// none, one a line. Headings, rules, comments and empty lines are left out; an indented line goes
/// on with the item above it. Any other line beside a list is refused, for it could be a criterion.
pub fn read_criteria(text: &str) -> Result<Vec<String>, Error> {
    let text = blank_comments(text);
    let has_items = text.lines().any(|line| item(line).is_some());
    let mut criteria: Vec<String> = Vec::new();
    // Whether the last criterion can go on: not behind a heading.
    let mut open = false;
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if trimmed.starts_with('#') || is_rule(trimmed) {
            open = false;
            continue;
        }
        if trimmed.is_empty() {
            continue;
        }
        let goes_on = open && line.starts_with([' ', '\t']) && item(line).is_none();
        match (item(line), criteria.last_mut()) {
            (Some(text), _) => criteria.push(text.to_owned()),
            (None, Some(last)) if goes_on => {
                let _ = write!(last, " {trimmed}");
            }
            (None, _) if !has_items => criteria.push(trimmed.to_owned()),
            (None, _) => return Err(stray(index + 1, trimmed)),
        }
        open = true;
    }
    criteria.retain(|text| !text.is_empty());
    if criteria.len() > MAX_CRITERIA {
        return Err(Error::invalid(format!(
            "{}; at most {MAX_CRITERIA} are taken",
            count(criteria.len(), "criterion", "criteria")
        )));
    }
    Ok(criteria)
}

fn stray(line: usize, text: &str) -> Error {
    let short: String = text.chars().take(60).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    Error::invalid(format!(
        "line {line} of the criteria is no item of the list, no heading and not indented: \
         \"{short}{more}\". Begin it with `- ` to make it a criterion, indent it to go on with the \
         one above, or put it into the mandate"
    ))
}

/// A line across the page, or the underline of a heading.
fn is_rule(line: &str) -> bool {
    let first = line.chars().next().filter(|c| "-*_=".contains(*c));
    first.is_some_and(|first| line.len() >= 3 && line.chars().all(|c| c == first))
}

/// The text with every `<!-- comment -->` empty; lines keep their numbers.
fn blank_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = rest.find("<!--") {
        out.push_str(&rest[..begin]);
        let end = rest[begin..].find("-->").map(|end| begin + end + 3);
        let comment = &rest[begin..end.unwrap_or(rest.len())];
        out.extend(comment.chars().filter(|c| *c == '\n'));
        rest = end.map_or("", |end| &rest[end..]);
    }
    out.push_str(rest);
    out
}

/// The text of a list item: `- x`, `* x`, `+ x`, `1. x`, `1) x`, each also with `[ ]` or `[x]`.
fn item(line: &str) -> Option<&str> {
    let line = line.trim();
    let bullet = ["- ", "* ", "+ "]
        .iter()
        .find_map(|mark| line.strip_prefix(mark));
    let numbered = || {
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let is_number = rest.len() < line.len() && line.len() - rest.len() <= 3;
        let rest = rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") "));
        rest.filter(|_| is_number)
    };
    let empty = || ["-", "*", "+"].contains(&line).then_some("");
    let text = bullet.or_else(numbered).or_else(empty)?.trim_start();
    let checked = ["[ ]", "[x]", "[X]"]
        .iter()
        .find_map(|mark| text.strip_prefix(mark));
    Some(checked.unwrap_or(text).trim())
}

/// The ids `c1`, `c2`, … for new criteria.
pub fn numbered(texts: &[String]) -> Vec<Criterion> {
    let criterion = |(index, text): (usize, &String)| Criterion {
        id: CriterionId::at(index),
        text: text.trim().to_owned(),
    };
    texts.iter().enumerate().map(criterion).collect()
}

const HEADING: &str = "## Criteria";

/// The text that opens in an editor.
pub fn template(draft: &Draft) -> String {
    let mut out = format!(
        "<!-- Title on the first line. Comments like this one are left out. No title: no task. -->\n{}\n\n\
         <!-- What is to be done, in Markdown. -->\n{}\n\n{HEADING}\n\
         <!-- One a line: what can be tested. Hidden tests are written from these. -->\n",
        draft.title,
        draft.mandate.trim_end()
    );
    for text in &draft.criteria {
        let _ = writeln!(out, "- {text}");
    }
    if draft.criteria.is_empty() {
        out.push_str("- \n");
    }
    out
}

/// Reads an edited template: title, mandate, criteria. `None` when there is no title.
pub fn read_template(text: &str) -> Result<Option<(String, String, Vec<String>)>, Error> {
    let text = without_comments(text);
    let is_heading = |line: &str| {
        let name = line.trim_start_matches('#').trim().to_ascii_lowercase();
        line.starts_with('#') && (name == "criteria" || name == "acceptance criteria")
    };
    let mut lines = text.lines().skip_while(|line| line.trim().is_empty());
    let Some(first) = lines.next().filter(|line| !is_heading(line)) else {
        return Ok(None);
    };
    let title = first.trim().trim_start_matches('#').trim().to_owned();
    let rest: Vec<&str> = lines.collect();
    let at = rest.iter().position(|line| is_heading(line));
    let (mandate, criteria) = match at {
        Some(at) => (&rest[..at], &rest[at + 1..]),
        None => (&rest[..], &[][..]),
    };
    let criteria = read_criteria(&criteria.join("\n"))?;
    Ok(Some((
        title,
        mandate.join("\n").trim().to_owned(),
        criteria,
    )))
}

fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = rest.find("<!--") {
        out.push_str(&rest[..begin]);
        match rest[begin..].find("-->") {
            Some(end) => {
                rest = &rest[begin + end + 3..];
                // A comment that stood on lines of its own leaves none behind.
                if out.is_empty() || out.ends_with('\n') {
                    rest = rest.strip_prefix('\n').unwrap_or(rest);
                }
            }
            None => rest = "",
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checklist_gives_its_items_and_a_plain_file_its_lines() {
        let list = "# Criteria\n\n- [ ] adds\n  two numbers\n* [x] `1+1` is 2\n3. last\n-\n";
        assert_eq!(
            read_criteria(list).unwrap(),
            ["adds two numbers", "`1+1` is 2", "last"]
        );
        assert_eq!(read_criteria("one\n\ntwo\n").unwrap(), ["one", "two"]);
        assert_eq!(
            read_criteria("2026 is a year\n").unwrap(),
            ["2026 is a year"]
        );
        let noted = "Head\n===\n<!-- one\n- two -->\n- a\n\n  more\n## End\n";
        assert_eq!(
            read_criteria(&noted.replace("Head\n", "")).unwrap(),
            ["a more"]
        );
        let many = "- x\n".repeat(MAX_CRITERIA + 1);
        assert!(read_criteria(&many).is_err());
    }

    #[test]
    fn a_line_beside_a_list_is_named_and_never_dropped() {
        for (text, line) in [
            ("- adds\nsubtracts\n", "line 2 of the criteria"),
            ("The parser:\n- reads\n", "line 1 of the criteria"),
            ("- adds\n# More\n  words\n", "line 3 of the criteria"),
            ("<!--\n\n-->\n- adds\n\nmore\n", "line 6 of the criteria"),
        ] {
            let error = read_criteria(text).unwrap_err().to_string();
            assert!(error.contains(line), "{text}: {error}");
        }
    }

    #[test]
    fn a_template_reads_back_as_it_was_written() {
        let draft = Draft {
            title: "Add a parser".into(),
            mandate: "Read the file.\n\n## Notes\n\nBe quick.".into(),
            criteria: vec!["reads".into(), "fails well".into()],
            ..Draft::default()
        };
        let (title, mandate, criteria) = read_template(&template(&draft)).unwrap().unwrap();
        assert_eq!(
            (title, mandate, criteria),
            (draft.title, draft.mandate, draft.criteria)
        );
        assert_eq!(read_template(&template(&Draft::default())).unwrap(), None);
        assert_eq!(read_template("<!-- never closed").unwrap(), None);
    }

    #[test]
    fn json_lines_are_all_or_nothing_and_name_the_line() {
        let good =
            "{\"title\":\"a\",\"criteria\":[\"x\"],\"flow\":\"test-first\"}\n\n{\"title\":\"b\"}\n";
        let drafts = read_lines(good).unwrap();
        assert_eq!(drafts.len(), 2);
        assert_eq!(drafts[0].flow, Some(Flow::TestFirst));
        for (bad, part) in [
            ("{\"title\":\"a\"}\n{\"titel\":\"b\"}", "line 2"),
            ("{\"mandate\":\"a\"}", "line 1: no `title`"),
            ("no json", "line 1"),
        ] {
            let error = read_lines(bad).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
