//! The tables of `docs/concepts.md`, `docs/threat-model.md` and `docs/format.md` that are written from
//! the code, and the tests that the second names.

use crate::docs::{keep_part, page, root, sections};
use hangar::grade::protect::GUARDED;
use hangar::model::authority::{ACTS, may};
use hangar::model::ids::Principal;
use hangar::model::outcome::{Secrecy, Trust, Verdict};
use hangar::model::policy::{Actor, MachineRole, Role};
use hangar::model::task::Stage;
use hangar::sandbox::probe::LEVELS;
use std::fmt::Write as _;
use std::path::Path;

const PAGE: &str = "docs/concepts.md";
const THREATS: &str = "docs/threat-model.md";
const FORMAT: &str = "docs/format.md";

#[test]
fn the_table_of_rights_is_current() {
    let requester: Principal = "requester".parse().unwrap();
    let other: Principal = "other".parse().unwrap();
    let person = |name: &Principal, role| Actor::Person {
        name: name.clone(),
        role,
    };
    let machine = |role| Actor::Machine {
        name: "machine".parse().unwrap(),
        role,
        // The requester's own machine has no more rights than any other.
        owner: requester.clone(),
    };
    let columns = [
        ("requester", person(&requester, Role::Member)),
        ("member", person(&other, Role::Member)),
        ("approver", person(&other, Role::Approver)),
        ("admin", person(&other, Role::Admin)),
        ("worker", machine(MachineRole::Worker)),
        ("grader", machine(MachineRole::Grader)),
        ("agent", machine(MachineRole::Agent)),
    ];
    let mut out = String::from("\n| act |");
    for (name, _) in &columns {
        let _ = write!(out, " {name} |");
    }
    out.push_str("\n|---|");
    out.push_str(&"---|".repeat(columns.len()));
    out.push('\n');
    for act in ACTS {
        let _ = write!(out, "| {act} |");
        for (_, actor) in &columns {
            let mark = if may(actor, act, &requester) {
                " ✓ |"
            } else {
                "  |"
            };
            out.push_str(mark);
        }
        out.push('\n');
    }
    out.push('\n');
    keep_part(PAGE, "authority", &out);
    keep_part(FORMAT, "authority", &out);
}

#[test]
fn the_list_of_guarded_paths_is_current() {
    let paths: Vec<_> = GUARDED.iter().map(|path| format!("`{path}`")).collect();
    let out = format!("\n{}\n\n", paths.join(", "));
    keep_part(PAGE, "guarded", &out);
    keep_part(FORMAT, "guarded", &out);
}

#[test]
fn every_stage_and_level_is_explained() {
    let page = sections(&page(PAGE));
    for stage in [
        Stage::Writing,
        Stage::Checking,
        Stage::Sealing,
        Stage::AwaitingApproval,
        Stage::Implementing,
        Stage::Verifying,
        Stage::Delivering,
    ] {
        assert!(
            page["The flow"].rows.contains_key(stage.as_str()),
            "{stage}"
        );
    }
    let says = &page["How far to trust it"].text;
    let position = |word: &str| says.find(&format!("| `{word}` |")).unwrap();
    let trust = [
        Trust::None,
        Trust::Confined,
        Trust::Sealed,
        Trust::SealedLimits,
        Trust::Isolated,
    ];
    assert!(trust.is_sorted());
    for pair in trust.windows(2) {
        assert!(position(pair[0].as_str()) < position(pair[1].as_str()));
    }
    for verdict in [
        Verdict::Exit,
        Verdict::Report,
        Verdict::Crosschecked,
        Verdict::External,
    ] {
        position(verdict.as_str());
    }
    for secrecy in [Secrecy::Policy, Secrecy::Filtered, Secrecy::SeparateHost] {
        position(secrecy.as_str());
    }
}

#[test]
fn the_list_of_probes_is_current() {
    let mut out = String::from("\n| for | attempts |\n|---|---|\n");
    for (names, trust) in LEVELS {
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        let _ = writeln!(out, "| `{trust}` | {} |", names.join(", "));
    }
    out.push('\n');
    keep_part(THREATS, "probes", &out);
    keep_part(FORMAT, "probes", &out);
}

/// The text of every file with tests.
fn test_sources() -> String {
    fn add(dir: &Path, out: &mut String) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                add(&path, out);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                out.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }
    let mut out = String::new();
    add(&root().join("tests/it"), &mut out);
    add(&root().join("src"), &mut out);
    out
}

#[test]
fn every_test_that_the_threat_model_names_is_there() {
    let tests = test_sources();
    let mut names = 0;
    for line in page(THREATS).lines().filter(|line| line.starts_with("| ")) {
        // `attack | defence | shown by`
        let Some(shown) = line.split('|').nth(3) else {
            continue;
        };
        for name in shown.split('`').skip(1).step_by(2) {
            let is_test =
                name.contains('_') && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
            if is_test {
                names += 1;
                assert!(
                    tests.contains(&format!("fn {name}()")),
                    "there is no test {name}"
                );
            }
        }
    }
    assert!(names > 30, "only {names} tests were found");
}
