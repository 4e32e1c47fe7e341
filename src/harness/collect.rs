//! What an agent left in `out/`: bounds and names, from files that are already in memory.
//!
//! The sandbox reads them once all processes are dead, without following a link. What is checked
//! here is the content of a hostile folder: counts, sizes, kinds and names.

use super::exchange::{CRITERIA, PLACEHOLDER};
use crate::base::redact::Secret;
use crate::base::words::count;
use crate::model::complaint::Kind;
use crate::model::criteria::Criteria;
use crate::model::ids::CriterionId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use unicode_normalization::is_nfc;

/// One file or link that was found.
#[derive(Debug, Clone)]
pub struct CollectedFile {
    /// Path relative to the collected folder, raw bytes.
    pub path: Vec<u8>,
    /// `st_mode`: kind and permission bits. Without kind bits it is a regular file.
    pub mode: u32,
    /// Content.
    pub bytes: Secret,
}

impl CollectedFile {
    /// Takes a regular file by its absolute path; `None` when it does not lie below `root`.
    pub fn below(root: &Path, path: &[u8], executable: bool, bytes: Secret) -> Option<Self> {
        Some(Self {
            path: relative(root, path)?.to_vec(),
            mode: if executable { 0o100_755 } else { 0o100_644 },
            bytes,
        })
    }

    const fn is_regular(&self) -> bool {
        self.mode & 0o170_000 == 0o100_000 || self.mode & 0o170_000 == 0
    }

    fn is_placeholder(&self) -> bool {
        let name = self.path.rsplit(|byte| *byte == b'/').next();
        name == Some(PLACEHOLDER.as_bytes()) && self.bytes.expose().is_empty()
    }
}

/// Something that the sandbox found and did not hand back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Path relative to the collected folder, raw bytes.
    pub path: Vec<u8>,
    /// Why.
    pub why: String,
}

impl LeftOut {
    /// Takes an entry by its absolute path; `None` when it does not lie below `root`.
    pub fn below(root: &Path, path: &[u8], why: &str) -> Option<Self> {
        Some(Self {
            path: relative(root, path)?.to_vec(),
            why: why.to_owned(),
        })
    }

    fn text(&self) -> String {
        format!("`{}`: {}", String::from_utf8_lossy(&self.path), self.why)
    }
}

fn relative<'a>(root: &Path, path: &'a [u8]) -> Option<&'a [u8]> {
    path.strip_prefix(root.as_os_str().as_bytes())?
        .strip_prefix(b"/")
}

/// Bounds on a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of one file.
    pub file: u64,
    /// Bytes of all.
    pub total: u64,
    /// Number of files.
    pub files: usize,
}

/// Bounds on sealed tests.
pub const SEALED_BOUNDS: Bounds = Bounds {
    file: 10 << 20,
    total: 64 << 20,
    files: 2000,
};

/// Bounds on artifacts.
pub const ARTIFACT_BOUNDS: Bounds = Bounds {
    file: 10 << 20,
    total: 64 << 20,
    files: 200,
};

/// Largest `RESULT.md` and `report.json`, in bytes.
pub const MAX_REPORT: usize = 1 << 20;

/// What is wrong with an agent's output, word for word for its next turn.
///
/// For a writer it may name tests: it goes to that writer alone, so `Debug` shows a count.
#[derive(Default, Clone)]
pub struct Complaint {
    lines: Vec<String>,
    kinds: BTreeMap<Kind, u32>,
}

impl Complaint {
    /// Most complaints that are told at once.
    const MAX: usize = 30;

    /// A complaint of one sentence.
    pub fn one(kind: Kind, text: impl Into<String>) -> Self {
        let mut one = Self::default();
        one.add(kind, text);
        one
    }

    /// Adds a sentence, unless there are too many already; it is counted all the same.
    pub fn add(&mut self, kind: Kind, text: impl Into<String>) {
        *self.kinds.entry(kind).or_default() += 1;
        if self.lines.len() < Self::MAX {
            self.lines.push(text.into());
        }
    }

    /// What may be said in the open: kinds and counts, nothing that the writer named.
    pub fn in_the_open(&self) -> String {
        let one = |(kind, number): (&Kind, &u32)| match kind.words() {
            Some((one, many)) => count(*number, one, many),
            None => kind.sentence().to_owned(),
        };
        self.kinds.iter().map(one).collect::<Vec<_>>().join("; ")
    }

    /// The sentences as a list in Markdown.
    pub fn for_writer(&self) -> String {
        self.lines.iter().map(|line| one_line(line)).collect()
    }

    /// `value` when there is nothing to complain about.
    pub(super) fn or<T>(self, value: T) -> Result<T, Self> {
        if self.kinds.is_empty() {
            Ok(value)
        } else {
            Err(self)
        }
    }
}

/// A list item without line breaks or control characters.
fn one_line(text: &str) -> String {
    let clean: String = text.chars().filter(|c| !c.is_control()).take(500).collect();
    format!("- {clean}\n")
}

impl fmt::Debug for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Complaint({})",
            count(self.lines.len(), "fault", "faults")
        )
    }
}

/// One sealed file.
#[derive(Debug, Clone)]
pub struct SealedFile {
    /// Whether it may be run.
    pub executable: bool,
    /// Content.
    pub bytes: Secret,
}

/// What a writer left, checked but for what only the framework can tell.
#[derive(Clone)]
pub struct SealedOutput {
    /// Test files by path relative to the root of the repository.
    pub files: BTreeMap<String, SealedFile>,
    /// The map of criteria.
    pub criteria: Criteria,
    /// `criteria.json` as it was written.
    pub criteria_bytes: Secret,
}

impl fmt::Debug for SealedOutput {
    /// Names are as secret as the tests.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "SealedOutput({})",
            count(self.files.len(), "file", "files")
        )
    }
}

/// Which paths the plan lets a sealed file take. The caller knows how its globs are read.
pub struct Paths<'a> {
    /// The plan's `tests`, for the complaint.
    pub tests: &'a [String],
    /// Whether a path lies under them.
    pub allowed: &'a dyn Fn(&str) -> bool,
    /// Whether a path is protected against sealed files too.
    pub protected: &'a dyn Fn(&str) -> bool,
}

/// Checks what lay in `out/sealed`. `criteria` are the ids of the task's criteria. What was left
/// out is a fault: a writer that placed a link wants to be told.
pub fn sealed(
    files: Vec<CollectedFile>,
    left_out: &[LeftOut],
    criteria: &[CriterionId],
    paths: &Paths<'_>,
) -> Result<SealedOutput, Complaint> {
    let most = SEALED_BOUNDS.files;
    let all = files.len() + left_out.len();
    // What was left out is then no fault by itself, and the map may be among it.
    if all > most {
        let text = format!("out/sealed holds more than {most} files: {all}");
        return Err(Complaint::one(Kind::File, text));
    }
    let mut complaint = Complaint::default();
    for entry in left_out {
        complaint.add(Kind::File, entry.text());
    }
    let any = !files.is_empty();
    let mut files = named(files, SEALED_BOUNDS, &mut complaint);
    // Where the files were not looked at one by one, none of them is missing.
    if any && files.is_empty() && complaint.kinds.contains_key(&Kind::File) {
        return Err(complaint);
    }
    let Some(map) = files.remove(CRITERIA) else {
        complaint.add(Kind::NoMap, "out/sealed/criteria.json is not there");
        return Err(complaint);
    };
    if files.is_empty() {
        complaint.add(Kind::NoFile, "out/sealed holds no test file");
    }
    for path in files.keys() {
        if !(paths.allowed)(path) {
            let tests = paths.tests.join(", ");
            complaint.add(
                Kind::Place,
                format!("`{path}` does not lie under the paths for tests ({tests})"),
            );
        } else if (paths.protected)(path) {
            complaint.add(Kind::Place, format!("`{path}` is a protected path"));
        }
    }
    let criteria = match Criteria::parse(map.bytes.expose(), criteria) {
        Ok(criteria) if !criteria.canary().is_empty() => {
            return Err(Complaint::one(
                Kind::Map,
                "criteria.json: `canary` is not yours to set",
            ));
        }
        Ok(criteria) => complaint.or(criteria)?,
        Err(malformed) => {
            for line in malformed.complaints() {
                complaint.add(Kind::Map, format!("criteria.json: {line}"));
            }
            return Err(complaint);
        }
    };
    Ok(SealedOutput {
        files,
        criteria,
        criteria_bytes: map.bytes,
    })
}

/// Files by name, those that keep the bounds and have a fit name; the rest is complained about.
fn named(
    files: Vec<CollectedFile>,
    bounds: Bounds,
    complaint: &mut Complaint,
) -> BTreeMap<String, SealedFile> {
    let mut out = BTreeMap::new();
    let mut names = Names::default();
    let mut total = 0_u64;
    if files.len() > bounds.files {
        complaint.add(Kind::File, format!("more than {} files", bounds.files));
        return out;
    }
    for file in files.into_iter().filter(|file| !file.is_placeholder()) {
        let name = match names.take(&file.path) {
            Ok(name) => name,
            Err(why) => {
                complaint.add(Kind::File, why);
                continue;
            }
        };
        let len = file.bytes.expose().len() as u64;
        total = total.saturating_add(len);
        if !file.is_regular() {
            complaint.add(Kind::File, format!("`{name}` is no regular file"));
        } else if len > bounds.file {
            complaint.add(
                Kind::File,
                format!("`{name}` is larger than {} MiB", bounds.file >> 20),
            );
        } else {
            let executable = file.mode & 0o100 != 0;
            let bytes = file.bytes;
            out.insert(name, SealedFile { executable, bytes });
        }
    }
    if total > bounds.total {
        let text = format!(
            "the files are larger than {} MiB together",
            bounds.total >> 20
        );
        complaint.add(Kind::File, text);
        out.clear();
    }
    out
}

/// Names taken so far, by the form in which a file system without case would see them.
#[derive(Default)]
struct Names {
    /// Folded path or folder → its spelling.
    seen: BTreeMap<String, String>,
    files: BTreeSet<String>,
}

impl Names {
    /// Checks a path against the rules and against those before it.
    fn take(&mut self, path: &[u8]) -> Result<String, String> {
        let shown = || String::from_utf8_lossy(path).into_owned();
        let name =
            std::str::from_utf8(path).map_err(|_| format!("`{}` is no UTF-8 name", shown()))?;
        if let Some(why) = unfit(name) {
            return Err(format!("`{name}` {why}"));
        }
        let ends = name.match_indices('/').map(|(at, _)| at);
        for end in ends.chain([name.len()]) {
            let part = &name[..end];
            let spelled = self
                .seen
                .entry(fold(part))
                .or_insert_with(|| part.to_owned());
            if spelled != part {
                return Err(format!("`{part}` and `{spelled}` differ in case alone"));
            }
            if end < name.len() && self.files.contains(&fold(part)) {
                return Err(format!("`{part}` is both a file and a folder"));
            }
        }
        if !self.files.insert(fold(name)) {
            return Err(format!("`{name}` is there twice"));
        }
        Ok(name.to_owned())
    }
}

fn fold(name: &str) -> String {
    name.to_uppercase().to_lowercase()
}

/// Why a relative path cannot be a file of a repository on every system.
fn unfit(name: &str) -> Option<&'static str> {
    if name.is_empty() || name.len() > 1024 {
        return Some("is empty or too long");
    }
    if !is_nfc(name) {
        return Some("is not in Unicode normal form C");
    }
    // Format characters are invisible, and some systems leave them out: `.g\u{200c}it` is `.git`.
    let odd = |c: char| {
        c.is_control()
            || c == '\\'
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    if name.contains(odd) {
        return Some("has a backslash or an invisible character");
    }
    let mut parts = name.split('/');
    if parts.any(|part| part.is_empty() || part == "." || part == ".." || part.len() > 255) {
        return Some("does not lie below the root of the repository");
    }
    let git = |part: &str| part.eq_ignore_ascii_case(".git") || part.eq_ignore_ascii_case("git~1");
    name.split('/').any(git).then_some("lies in a Git folder")
}

/// `report.json`: what an agent says about its turn. Nothing in it is believed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "report.json")]
pub struct Report {
    /// `completed`, `blocked` or `failed`.
    pub status: String,
    /// What was done.
    pub summary: String,
    /// Paths that were changed.
    pub changed_files: Vec<String>,
    /// Commands or tests that were run.
    pub tests_run: Vec<String>,
    /// Paths below `out/artifacts`.
    pub artifacts: Vec<String>,
    /// Defects and remarks.
    pub findings: Vec<String>,
    /// What stands in the way; empty when completed.
    pub blockers: Vec<String>,
}

/// The JSON schema of `report.json`.
pub fn report_schema() -> schemars::Schema {
    schemars::schema_for!(Report)
}

/// What an implementer, judge or goal agent left.
#[derive(Debug, Clone, Default)]
pub struct WorkOutput {
    /// `RESULT.md`
    pub result: Option<String>,
    /// `report.json`, where it keeps to the schema.
    pub report: Option<Report>,
    /// Artifacts by path below `out/artifacts`.
    pub artifacts: BTreeMap<String, Secret>,
    /// What stands in the way, from the report and from `RESULT.md`.
    pub blockers: Vec<String>,
    /// What was left out or cannot be read, and why.
    pub dropped: Vec<String>,
}

/// Sorts what lay in `out/` after a turn that is not a writer's. What breaks a rule is left out
/// and named; it never fails the turn.
pub fn work(files: Vec<CollectedFile>, left_out: &[LeftOut]) -> WorkOutput {
    let mut out = WorkOutput {
        dropped: left_out.iter().map(LeftOut::text).collect(),
        ..WorkOutput::default()
    };
    let mut artifacts = Vec::new();
    for mut file in files {
        if let Some(rest) = file.path.strip_prefix(b"artifacts/") {
            file.path = rest.to_vec();
            artifacts.push(file);
            continue;
        }
        let fits = file.is_regular() && file.bytes.expose().len() <= MAX_REPORT;
        match (file.path.as_slice(), fits) {
            (b"RESULT.md", true) => {
                out.result = Some(String::from_utf8_lossy(file.bytes.expose()).into_owned());
            }
            (b"report.json", true) => match serde_json::from_slice(file.bytes.expose()) {
                Ok(report) => out.report = Some(report),
                Err(error) => out.dropped.push(format!("report.json: {error}")),
            },
            (path, false) => {
                let name = String::from_utf8_lossy(path);
                out.dropped
                    .push(format!("{name}: no regular file, or larger than 1 MiB"));
            }
            // The folder is the agent's own; what has no meaning is not kept.
            (_, true) => {}
        }
    }
    let mut complaint = Complaint::default();
    let kept = named(artifacts, ARTIFACT_BOUNDS, &mut complaint);
    out.artifacts = kept
        .into_iter()
        .map(|(name, file)| (name, file.bytes))
        .collect();
    out.dropped.extend(complaint.lines);
    out.blockers = blockers(out.report.as_ref(), out.result.as_deref());
    out
}

/// Blockers of the report, and the list items under a `Blockers` heading of `RESULT.md`.
fn blockers(report: Option<&Report>, result: Option<&str>) -> Vec<String> {
    let mut out = report
        .map(|report| report.blockers.clone())
        .unwrap_or_default();
    let mut inside = false;
    for line in result.unwrap_or_default().lines() {
        if let Some(heading) = line.strip_prefix('#') {
            inside = heading
                .trim_start_matches('#')
                .trim()
                .eq_ignore_ascii_case("blockers");
        } else if inside {
            let item = line.trim().trim_start_matches(['-', '*']).trim();
            let none = item.is_empty() || item.trim_end_matches('.').eq_ignore_ascii_case("none");
            if !none && !out.iter().any(|known| known == item) {
                out.push(item.to_owned());
            }
        }
    }
    out
}

#[cfg(test)]
#[path = "collect_tests.rs"]
mod tests;
