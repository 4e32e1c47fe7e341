//! What is expected of an exit status, a stream or a file.

use super::values::{self, Values};
use serde::Deserialize;

/// Expected exit statuses.
#[derive(Debug, Clone, Deserialize)]
#[serde(
    untagged,
    expecting = "`exit` is a status, a list of them, or \"failure\""
)]
pub(super) enum Exit {
    /// This one.
    One(i32),
    /// Any of these.
    Any(Vec<i32>),
    /// `"failure"`: any but 0.
    Word(Failure),
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Failure {
    Failure,
}

impl Default for Exit {
    fn default() -> Self {
        Self::One(0)
    }
}

impl Exit {
    /// Whether only 0 will do.
    pub(super) fn is_success(&self) -> bool {
        matches!(self, Self::One(0))
    }

    /// Refuses what no program can end with.
    pub(super) fn check(&self) -> Result<(), String> {
        let fine = |status: &i32| (0..=255).contains(status);
        let possible = match self {
            Self::One(one) => fine(one),
            Self::Any(any) => !any.is_empty() && any.iter().all(fine),
            Self::Word(_) => true,
        };
        possible
            .then_some(())
            .ok_or_else(|| "an `exit` status is 0 to 255".into())
    }

    pub(super) fn holds(&self, status: i32) -> bool {
        match self {
            Self::One(one) => *one == status,
            Self::Any(any) => any.contains(&status),
            Self::Word(Failure::Failure) => status != 0,
        }
    }
}

/// What bytes must be: a text is the whole of them, a table holds conditions of which all must hold.
#[derive(Debug, Clone, Deserialize)]
#[serde(
    untagged,
    expecting = "what is expected is a text, or a table of `equals`, `contains`, `lacks`, `matches`, \
                 `lines`, `json`, `absent`"
)]
pub(super) enum Matcher {
    /// Exactly this.
    Whole(String),
    /// All of these.
    Conditions(Conditions),
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Conditions {
    /// Exactly this.
    equals: Option<String>,
    /// Each of these stands somewhere in it.
    contains: Vec<String>,
    /// None of these stands in it.
    lacks: Vec<String>,
    /// A regular expression that matches somewhere in it.
    matches: Option<String>,
    /// These lines, in any order, and no other.
    lines: Option<Vec<String>>,
    /// The same JSON value.
    json: Option<String>,
    /// Of a file: it is not there.
    absent: bool,
}

impl Matcher {
    /// Puts values in, and refuses what can't be compared.
    pub(super) fn fill(&mut self, values: &Values) -> Result<(), String> {
        let conditions = match self {
            Self::Whole(text) => {
                *text = values::fill(text, values);
                return Ok(());
            }
            Self::Conditions(conditions) => conditions,
        };
        let texts = conditions.equals.iter_mut().chain(&mut conditions.json);
        let lists = conditions.contains.iter_mut().chain(&mut conditions.lacks);
        let lines = conditions.lines.iter_mut().flatten();
        for text in texts.chain(lists).chain(lines) {
            *text = values::fill(text, values);
        }
        conditions.matches = conditions
            .matches
            .as_ref()
            .map(|text| values::fill_with(text, values, regex::escape));
        conditions.check()
    }

    /// Whether it says that a file is not there.
    pub(super) const fn is_absent(&self) -> bool {
        matches!(self, Self::Conditions(conditions) if conditions.absent)
    }

    /// Whether bytes are as expected; `None` is a file that is not there.
    pub(super) fn holds(&self, bytes: Option<&[u8]>) -> bool {
        match (self, bytes) {
            (Self::Whole(text), Some(bytes)) => bytes == text.as_bytes(),
            (Self::Conditions(conditions), Some(bytes)) => conditions.hold(bytes),
            (Self::Conditions(conditions), None) => conditions.absent,
            (Self::Whole(_), None) => false,
        }
    }
}

impl Conditions {
    fn check(&self) -> Result<(), String> {
        if let Some(pattern) = &self.matches {
            regex::bytes::Regex::new(pattern)
                .map_err(|_| "`matches` is no regular expression".to_owned())?;
        }
        if let Some(json) = &self.json {
            serde_json::from_str::<serde_json::Value>(json)
                .map_err(|error| format!("`json` is no JSON: {error}"))?;
        }
        let others = self.equals.is_some()
            || self.matches.is_some()
            || self.lines.is_some()
            || self.json.is_some()
            || !self.contains.is_empty()
            || !self.lacks.is_empty();
        match (self.absent, others) {
            (true, true) => Err("what is `absent` can't be anything else".into()),
            (false, false) => Err("a table of conditions is empty".into()),
            _ => Ok(()),
        }
    }

    fn hold(&self, bytes: &[u8]) -> bool {
        let has = |text: &String| {
            text.is_empty()
                || bytes
                    .windows(text.len())
                    .any(|part| part == text.as_bytes())
        };
        !self.absent
            && self
                .equals
                .as_ref()
                .is_none_or(|text| bytes == text.as_bytes())
            && self.contains.iter().all(has)
            && !self.lacks.iter().any(has)
            && self.matches.as_ref().is_none_or(|pattern| {
                regex::bytes::Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(bytes))
            })
            && self
                .lines
                .as_ref()
                .is_none_or(|lines| same_lines(lines, bytes))
            && self.json.as_ref().is_none_or(|json| same_json(json, bytes))
    }
}

fn same_lines(lines: &[String], bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let (mut found, mut wanted): (Vec<&str>, Vec<&str>) = (
        text.lines().collect(),
        lines.iter().map(String::as_str).collect(),
    );
    found.sort_unstable();
    wanted.sort_unstable();
    found == wanted
}

fn same_json(json: &str, bytes: &[u8]) -> bool {
    let value = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).ok();
    value(bytes).is_some_and(|found| value(json.as_bytes()) == Some(found))
}
