//! `docs/evidence/attacks.md`: what became of every patch of the attack tests, in real sandboxes.
//!
//! The attack tests themselves run with plain processes, so that they are quick and need nothing. The
//! one test here runs them once more for each provider, with variables by which [`recorded`] is asked
//! for: then every patch is graded in a sandbox, and its end is written down.

use crate::grade_kit::word;
use hangar::grade::judge::Judgement;
use hangar::model::outcome::Trust;
use hangar::model::plan::Framework;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::process::Command;

/// Names the file to which each grade adds a line.
const RECORD: &str = "HANGAR_TEST_ATTACKS";
/// Names the provider in which those grades are made.
const PROVIDER: &str = "HANGAR_TEST_ATTACKS_IN";
/// The providers of the page's columns. A run in another one takes its name here, and its time.
const PROVIDERS: [&str; 1] = ["linux"];

/// The provider in which grades are to be made, where they are to be written down.
pub(crate) fn recorded() -> Option<String> {
    std::env::var_os(RECORD)?;
    Some(std::env::var(PROVIDER).unwrap())
}

/// Writes a grade down under the name of the test that made it.
pub(crate) fn record(framework: Framework, judgement: &Judgement) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or_default();
    let test = test.rsplit("::").next().unwrap_or_default();
    let (end, verdict) = (word(judgement), &judgement.verdict);
    add(&format!("grade\t{test}\t{framework}\t{end}\t{verdict}\n"));
}

/// Writes down what the sandbox of such a grade was measured to hold.
pub(crate) fn record_trust(trust: Trust) {
    add(&format!("trust\t{trust}\n"));
}

fn add(line: &str) {
    let Some(path) = std::env::var_os(RECORD) else {
        return;
    };
    let file = OpenOptions::new().append(true).create(true).open(path);
    file.unwrap().write_all(line.as_bytes()).unwrap();
}

/// Patches of one test in one framework, in one provider.
#[derive(Default, Clone)]
struct Cell {
    refused: usize,
    verdicts: Vec<String>,
}

impl Cell {
    fn patches(&self) -> usize {
        self.refused + self.verdicts.len()
    }

    /// How many were accepted, and with which verdicts.
    fn accepted(&self) -> String {
        let kinds: BTreeSet<&String> = self.verdicts.iter().collect();
        let kinds: Vec<String> = kinds.iter().map(|kind| format!("`{kind}`")).collect();
        match self.verdicts.len() {
            0 => "0".to_owned(),
            count => format!("{count} ({})", kinds.join(", ")),
        }
    }
}

/// What a run in one provider gave.
#[derive(Default)]
struct Column {
    trust: BTreeSet<String>,
    cells: BTreeMap<(String, String), Cell>,
}

const HEAD: &str = "\
# What became of hostile patches

Each line is an attack test of `tests/it/` and a framework: how many patches it grades, and how many of
them were accepted in each provider of sandboxes. What was accepted should be: it is the honest control of
the test, or, in the lines marked \\*, what the [threat model](../threat-model.md#not-defended) says is not
defended. Verdicts are those of what was accepted.

Every patch was judged by the code that `hangar grade` uses. What goes through the whole flow instead
(protected paths, build steps, names in errors, `external` tests) is `tests/it/flow/`; tampering with
records is `tests/it/verify/`; leaving the sandbox is `tests/it/sandbox/`.

Made by, and compared with, this command, as root; it needs node, cargo, go, cmake, a Python with
pytest (`HANGAR_TEST_PYTHON`) and the packages that `.ci/run` installs (`HANGAR_TEST_NODE_MODULES`):

```sh
HANGAR_WRITE_DOCS=1 cargo test --locked --test it evidence_attacks -- --ignored
```

";

/// Tests that show what is *not* defended.
const UNDEFENDED: [&str; 2] = [
    "a_result_that_equals_everything_passes_where_no_sentinel_calls_for_it",
    "a_build_description_that_singles_tests_out_passes",
];

#[test]
#[ignore = "heavy: runs the attack tests again, in sandboxes"]
fn the_page_of_attacks_is_what_a_run_gives() {
    let columns = PROVIDERS.map(column);
    crate::docs::keep("docs/evidence/attacks.md", &page(&columns));
}

/// Runs every attack test in the sandboxes of a provider.
fn column(provider: &str) -> Column {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("graded");
    let out = Command::new(std::env::current_exe().unwrap())
        .args([
            "grade_attacks",
            "grade_tap",
            "grade_exec",
            "grade_junit::an_honest",
            "grade_junit::a_report_that",
            "grade_junit::reports_that",
            "--include-ignored",
        ])
        .envs([(RECORD, log.as_os_str()), (PROVIDER, provider.as_ref())])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{provider}: {text}");
    let mut column = Column::default();
    for line in fs::read_to_string(&log).unwrap().lines() {
        match line.split('\t').collect::<Vec<_>>()[..] {
            ["trust", trust] => {
                column.trust.insert(trust.to_owned());
            }
            ["grade", test, framework, word, verdict] => {
                let cell = column.cells.entry((test.into(), framework.into()));
                let cell = cell.or_default();
                match word {
                    "accepted" => cell.verdicts.push(verdict.to_owned()),
                    _ => cell.refused += 1,
                }
            }
            _ => panic!("{line}"),
        }
    }
    let patches: usize = column.cells.values().map(Cell::patches).sum();
    assert!(patches > 60, "{provider}: {patches} patches: {text}");
    column
}

fn page(columns: &[Column]) -> String {
    let mut page = HEAD.to_owned();
    page.push_str("| provider | measured trust |\n|---|---|\n");
    for (provider, column) in PROVIDERS.iter().zip(columns) {
        let trust: Vec<&str> = column.trust.iter().map(String::as_str).collect();
        let _ = writeln!(page, "| `{provider}` | `{}` |", trust.join("`, `"));
    }
    let names: Vec<String> = PROVIDERS.map(|name| format!("`{name}`")).to_vec();
    let names = names.join(" | ");
    let _ = writeln!(page, "\n| attack | framework | patches | {names} |");
    let _ = writeln!(page, "|---|---|---|{}", "---|".repeat(PROVIDERS.len()));
    let keys: BTreeSet<&(String, String)> =
        columns.iter().flat_map(|one| one.cells.keys()).collect();
    for key in keys {
        let (test, framework) = key;
        let mark = if UNDEFENDED.contains(&test.as_str()) {
            " \\*"
        } else {
            ""
        };
        let cell = |column: &Column| column.cells.get(key).cloned().unwrap_or_default();
        let patches = columns.iter().map(|one| cell(one).patches()).max();
        let accepted: Vec<String> = columns.iter().map(|one| cell(one).accepted()).collect();
        let _ = writeln!(
            page,
            "| {}{mark} | `{framework}` | {} | {} |",
            test.replace('_', " "),
            patches.unwrap_or_default(),
            accepted.join(" | ")
        );
    }
    page
}
