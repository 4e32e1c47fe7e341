//! `docs/evidence/attacks.md`: what became of every patch of the attack tests, in real sandboxes.
//!
//! The attack tests themselves run with plain processes, so that they are quick and need nothing. The
//! one test here runs them once more with a variable by which [`recorded`] is asked for: then every
//! patch is graded in the sandbox, and its end is written down.

use crate::grade_kit::word;
use hangar::grade::judge::Judgement;
use hangar::model::plan::Framework;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::process::Command;

/// Names the file to which each grade adds a line.
const RECORD: &str = "HANGAR_TEST_ATTACKS";

/// Whether grades are to be made in sandboxes and written down.
pub(crate) fn recorded() -> bool {
    std::env::var_os(RECORD).is_some()
}

/// Writes a grade down under the name of the test that made it.
pub(crate) fn record(framework: Framework, judgement: &Judgement) {
    let Some(path) = std::env::var_os(RECORD) else {
        return;
    };
    let thread = std::thread::current();
    let test = thread.name().unwrap_or_default();
    let test = test.rsplit("::").next().unwrap_or_default();
    let line = format!(
        "{test}\t{framework}\t{}\t{}\n",
        word(judgement),
        judgement.verdict
    );
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .unwrap();
    file.write_all(line.as_bytes()).unwrap();
}

/// Patches of one test in one framework.
#[derive(Default)]
struct Row {
    patches: usize,
    refused: usize,
    verdicts: Vec<String>,
}

const HEAD: &str = "\
# What became of hostile patches

Each line is an attack test of `tests/it/` and a framework: how many patches it grades, and how many of
them were not accepted. The rest was accepted, and should be: it is the honest control of the test, or, in
the lines marked \\*, what the [threat model](../threat-model.md#not-defended) says is not defended.
Verdicts are those of what was accepted.

Every patch ran in the embedded sandbox (`linux`) and was judged by the code that `hangar grade` uses. What
goes through the whole flow instead (protected paths, build steps, names in errors, `external` tests) is
`tests/it/flow/`; tampering with records is `tests/it/verify/`; leaving the sandbox is `tests/it/sandbox/`.

Made by, and compared with, this command; it needs node, cargo, go, cmake, a Python with pytest
(`HANGAR_TEST_PYTHON`) and the packages that `.ci/run` installs (`HANGAR_TEST_NODE_MODULES`):

```sh
HANGAR_WRITE_DOCS=1 cargo test --locked --test it evidence_attacks -- --ignored
```

| attack | framework | patches | not accepted | accepted |
|---|---|---|---|---|
";

/// Tests that show what is *not* defended.
const UNDEFENDED: [&str; 1] =
    ["a_result_that_equals_everything_passes_where_no_sentinel_calls_for_it"];

#[test]
#[ignore = "heavy: runs the attack tests again, in sandboxes"]
fn the_page_of_attacks_is_what_a_run_gives() {
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
        .env(RECORD, &log)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{text}");
    let mut rows: BTreeMap<(String, String), Row> = BTreeMap::new();
    for line in fs::read_to_string(&log).unwrap().lines() {
        let [test, framework, word, verdict] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let row = rows.entry((test.into(), framework.into())).or_default();
        row.patches += 1;
        if word == "accepted" {
            row.verdicts.push(verdict.to_owned());
        } else {
            row.refused += 1;
        }
    }
    let patches: usize = rows.values().map(|row| row.patches).sum();
    assert!(patches > 60, "{patches} patches: {text}");
    crate::docs::keep("docs/evidence/attacks.md", &page(&rows));
}

fn page(rows: &BTreeMap<(String, String), Row>) -> String {
    let mut page = HEAD.to_owned();
    for ((test, framework), row) in rows {
        let mark = if UNDEFENDED.contains(&test.as_str()) {
            " \\*"
        } else {
            ""
        };
        let mut verdicts = row.verdicts.clone();
        verdicts.sort();
        verdicts.dedup();
        let accepted = if verdicts.is_empty() {
            "0".to_owned()
        } else {
            format!("{} (`{}`)", row.verdicts.len(), verdicts.join("`, `"))
        };
        let _ = writeln!(
            page,
            "| {}{mark} | `{framework}` | {} | {} | {accepted} |",
            test.replace('_', " "),
            row.patches,
            row.refused
        );
    }
    page
}
