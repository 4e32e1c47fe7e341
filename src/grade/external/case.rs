//! A case file: which programs are started with what, and what must come of it.

use super::expect::{Exit, Matcher};
use super::values::{self, Source, Values};
use crate::grade::call::{End, Hit, Left, Raw, Visit};
use crate::model::outcome::{FailureClass, Outcome, TestId};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// Newest format of case files that is known here.
const FORMAT: i64 = 1;
/// Largest case file in bytes.
const MAX_BYTES: usize = 1 << 20;
/// Most cases of a file.
const MAX_CASES: usize = 1_000;
/// Most steps of a case.
const MAX_STEPS: usize = 100;
/// Names that a case may not give to a value of its own.
const GIVEN: [&str; 1] = ["root"];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: i64,
    #[serde(default, rename = "case")]
    cases: Vec<Written>,
}

/// A case as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    #[serde(default)]
    values: BTreeMap<String, Source>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default, rename = "step")]
    steps: Vec<Step>,
}

/// One program run and what is expected of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::grade) struct Step {
    /// Program and arguments. A program with a `/` is relative to the root of the tree, another is
    /// looked for on `PATH`.
    pub(in crate::grade) run: Vec<String>,
    /// Standard input.
    #[serde(default)]
    pub(in crate::grade) stdin: String,
    /// Seconds that it may take.
    #[serde(default)]
    pub(in crate::grade) timeout: Option<u64>,
    #[serde(default)]
    exit: Exit,
    #[serde(default)]
    stdout: Option<Matcher>,
    #[serde(default)]
    stderr: Option<Matcher>,
    #[serde(default)]
    files: BTreeMap<String, Matcher>,
}

/// One test: programs that run one after the other over one tree, values filled in.
#[derive(Debug, Clone)]
pub(in crate::grade) struct Case {
    /// `FILE > NAME`.
    pub(in crate::grade) id: TestId,
    /// In order.
    pub(in crate::grade) steps: Vec<Step>,
    files: BTreeMap<String, Vec<u8>>,
}

/// Reads a case file. `root` is where the tree lies inside. The error is for whoever wrote the file.
pub(in crate::grade) fn read(
    path: &str,
    bytes: &[u8],
    root: &str,
) -> Result<Vec<Case>, Vec<String>> {
    let fault = |text: String| vec![format!("`{path}`: {text}")];
    if bytes.len() > MAX_BYTES {
        return Err(fault(format!("it has more than {MAX_BYTES} bytes")));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| fault("it is not UTF-8".into()))?;
    let file: File = toml::from_str(text).map_err(|error| fault(error.to_string()))?;
    if file.format != FORMAT {
        return Err(fault(format!(
            "`format` is {}; it must be {FORMAT}",
            file.format
        )));
    }
    if file.cases.len() > MAX_CASES {
        return Err(fault(format!("it has more than {MAX_CASES} cases")));
    }
    let mut names = BTreeSet::new();
    let (mut cases, mut faults) = (Vec::new(), Vec::new());
    for written in file.cases {
        if !names.insert(written.name.clone()) {
            faults.push(format!("`{path}`: two cases are called `{}`", written.name));
        }
        let name = written.name.clone();
        match written.filled(path, bytes, root) {
            Ok(case) => cases.push(case),
            Err(fault) => faults.push(format!("`{path}`, case `{name}`: {fault}")),
        }
    }
    if faults.is_empty() {
        Ok(cases)
    } else {
        Err(faults)
    }
}

impl Written {
    fn filled(self, path: &str, bytes: &[u8], root: &str) -> Result<Case, String> {
        let id = TestId::new(format!("{path} > {}", self.name))
            .filter(|_| !self.name.trim().is_empty() && !self.name.contains('['))
            .ok_or("its name is empty, too long, or holds `[` or a control character")?;
        if self.steps.is_empty() || self.steps.len() > MAX_STEPS {
            return Err(format!("it needs 1 to {MAX_STEPS} `[[case.step]]`"));
        }
        if let Some(name) = GIVEN.iter().find(|name| self.values.contains_key(**name)) {
            return Err(format!("`{name}` is given, and can't be a value"));
        }
        let mut values = values::draw(&self.values, &[bytes, self.name.as_bytes()])?;
        values.give("root", root);
        let files = self.files.iter().map(|(path, text)| {
            let path = relative(path)?;
            Ok((path, values::fill(text, &values).into_bytes()))
        });
        let files: BTreeMap<_, _> = files.collect::<Result<_, String>>()?;
        let below = |path: &String| files.keys().any(|other| is_below(path, other));
        if let Some(path) = files.keys().find(|path| below(path)) {
            return Err(format!("`files` has `{path}` below another file"));
        }
        let steps = self.steps.into_iter().map(|step| step.filled(&values));
        let steps: Vec<Step> = steps.collect::<Result<_, String>>()?;
        let before = steps.split_last().map_or(&[][..], |(_, before)| before);
        if before.iter().any(|step| !step.files.is_empty()) {
            return Err("`files` are looked at after the last step: expect them there".into());
        }
        if let Some(name) = values.unused() {
            return Err(format!(
                "nothing uses the value `{name}`: is `{{{name}}}` mistyped?"
            ));
        }
        Ok(Case { id, steps, files })
    }
}

fn is_below(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder);
    rest.is_some_and(|rest| rest.starts_with('/'))
}

/// Whether a program could not be started because it is not there.
fn is_missing(errno: i32) -> bool {
    std::io::Error::from_raw_os_error(errno).kind() == std::io::ErrorKind::NotFound
}

/// A path inside the tree, as it is written.
fn relative(path: &str) -> Result<String, String> {
    let fine = |part: &str| !matches!(part, "" | "." | ".." | ".git");
    let inside = path.split('/').all(fine) && !path.chars().any(char::is_control);
    inside
        .then(|| path.to_owned())
        .ok_or_else(|| format!("`{path}` is no path below the root of the tree"))
}

impl Step {
    fn filled(mut self, values: &Values) -> Result<Self, String> {
        if self.run.first().is_none_or(String::is_empty) {
            return Err("`run` names no program".into());
        }
        if self.timeout == Some(0) {
            return Err("`timeout` is at least 1 second".into());
        }
        for part in self.run.iter_mut().chain([&mut self.stdin]) {
            *part = values::fill(part, values);
        }
        if self.run.iter().any(|part| part.contains('\0')) {
            return Err("`run` holds a NUL".into());
        }
        for path in self.files.keys() {
            relative(path)?;
        }
        self.exit.check()?;
        let mut streams = self.stdout.iter().chain(&self.stderr);
        if streams.any(Matcher::is_absent) {
            return Err(
                "`absent` is for files: a stream is always there, `\"\"` is an empty one".into(),
            );
        }
        let matchers = self.stdout.iter_mut().chain(&mut self.stderr);
        for matcher in matchers.chain(self.files.values_mut()) {
            matcher.fill(values)?;
        }
        Ok(self)
    }

    /// Whether this run ended as expected; else how it failed.
    fn judge(&self, raw: &Raw) -> Outcome {
        let status = match raw.end {
            End::Exited(status) => status,
            End::Signalled(_) => return Outcome::Failed(FailureClass::Crash),
            End::TimedOut => return Outcome::Failed(FailureClass::Timeout),
            // A program of the tree that is not there yet, or a program of the machine.
            End::NotStarted(_) if self.is_of_the_tree() => {
                return Outcome::Failed(FailureClass::MissingSymbol);
            }
            // What is found and not started is in the way of the tree's own doing.
            End::NotStarted(errno) if !is_missing(errno) => {
                return Outcome::Failed(FailureClass::Crash);
            }
            End::NotStarted(_) => return Outcome::Environment,
        };
        // What was cut can't be compared: what must not stand in it may stand in the rest.
        if raw.hits.contains(&Hit::Output) {
            return Outcome::Failed(FailureClass::Crash);
        }
        let streams = [(&self.stdout, &raw.stdout), (&self.stderr, &raw.stderr)];
        let said = streams
            .into_iter()
            .all(|(matcher, bytes)| matcher.as_ref().is_none_or(|one| one.holds(Some(bytes))));
        let left = self
            .files
            .iter()
            .all(|(path, matcher)| match raw.files.get(path) {
                Some(Left::File(bytes)) => matcher.holds(Some(bytes)),
                // Neither a text nor absent.
                Some(Left::Other) => false,
                None => matcher.holds(None),
            });
        if self.exit.holds(status) && said && left {
            Outcome::Passed
        } else {
            Outcome::Failed(FailureClass::Assertion)
        }
    }

    /// How many things are expected beside that it ends well.
    pub(in crate::grade) fn expectations(&self) -> usize {
        let exit = usize::from(!self.exit.is_success());
        let streams = self.stdout.iter().chain(&self.stderr).count();
        exit + streams + self.files.len()
    }

    /// Whether the program lies in the tree.
    pub(in crate::grade) fn is_of_the_tree(&self) -> bool {
        self.run
            .first()
            .is_some_and(|program| program.contains('/'))
    }
}

impl Case {
    /// What the `index`th step sees and leaves.
    pub(in crate::grade) fn visit(&self, index: usize) -> Visit {
        let last = index + 1 == self.steps.len();
        let kept = self.steps.get(index).filter(|_| last);
        Visit {
            goes_on: index > 0,
            files: if index == 0 {
                self.files.clone()
            } else {
                BTreeMap::new()
            },
            kept: kept
                .into_iter()
                .flat_map(|step| step.files.keys().cloned())
                .collect(),
        }
    }

    /// How the case ended. Steps that did not run are no reason to pass.
    pub(in crate::grade) fn judge(&self, raws: &[&Raw]) -> Option<Outcome> {
        let ended = self
            .steps
            .iter()
            .zip(raws)
            .map(|(step, raw)| step.judge(raw));
        let failed = ended
            .into_iter()
            .find(|outcome| *outcome != Outcome::Passed);
        failed.or_else(|| (raws.len() == self.steps.len()).then_some(Outcome::Passed))
    }
}
