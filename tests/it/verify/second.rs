//! `docs/verify`, the second verifier, beside the binary: on every repository that [`TESTS`] make,
//! honest or forged, both must give the same answer. So must its file for one task ([`one_task`]).
//!
//! The one test here runs the others once more, with a variable by which [`compare`] asks the second
//! verifier whatever the binary was asked.

use super::answer::Answer;
use super::forge::Forged;
use super::one_task;
use crate::common::{Ran, TestEnv};
use hangar::model::ids::TaskId;
use serde_json::Value;
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output};

/// Names the file to which each comparison adds a line: the exit status and what was said.
const COMPARE: &str = "HANGAR_TEST_SECOND_VERIFIER";

/// The tests that ask `hangar verify` about honest, forged, archived and divided repositories.
const TESTS: [&str; 5] = [
    "verify::",
    "apart::",
    "archive::",
    "rivals::",
    "patch_approval::",
];

/// Asks the second verifier the same, where the tests run for that.
pub(crate) fn compare(forged: &Forged, args: &[&str], answer: &Answer) {
    let Some(log) = std::env::var_os(COMPARE) else {
        return;
    };
    let Some((subject, expected)) = expected(forged, args, answer) else {
        return;
    };
    let tasks = match subject.as_str() {
        "--all" => each(answer),
        task => vec![(task.to_owned(), expected)],
    };
    for (task, expected) in tasks {
        let (dir, home) = (forged.dir(), forged.world.dir.path());
        one_task::compare(&log, &dir, home, &task, expected, &answer.text);
    }
    let out = second(forged, &subject, &[]);
    let said = agrees(&log, &out, expected, &answer.text);
    // Where it is undecided which policy stands, it reads no task.
    if said.contains("fault: policy: ") {
        return;
    }
    for task in answer.json["tasks"].as_array().into_iter().flatten() {
        if let Some(line) = task["task"].as_str().and_then(|id| as_folded(forged, id)) {
            assert!(said.contains(&line), "no `{line}` in:\n{said}");
        }
    }
}

/// The same for a command of a user; a task is asked for by its whole id.
pub(crate) fn compare_command(env: &TestEnv, dir: &Path, args: &[&str], ran: &Ran) {
    let Some(log) = std::env::var_os(COMPARE) else {
        return;
    };
    let whole = |arg: &&&str| **arg == "--all" || arg.parse::<TaskId>().is_ok();
    let (true, Some(subject)) = (args.contains(&"verify"), args.iter().find(whole)) else {
        return;
    };
    if let Some(expected @ (0 | 1)) = ran.code {
        if *subject != "--all" {
            one_task::compare(&log, dir, env.home(), subject, expected, &ran.to_string());
        }
        let out = ask(dir, env.home(), subject, &[]);
        agrees(&log, &out, expected, &ran.to_string());
    }
}

/// It ended as it should; gives what it said.
fn agrees(log: &OsStr, out: &Output, expected: i32, binary: &str) -> String {
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    );
    assert_eq!(
        out.status.code(),
        Some(expected),
        "the second verifier says:\n{said}\nthe binary:\n{binary}"
    );
    // What it prints is an answer, never a trace.
    assert!(said.ends_with("accepted\n"), "{said}");
    assert_eq!(expected == 1, said.contains("not accepted"), "{said}");
    let mut log = OpenOptions::new()
        .append(true)
        .create(true)
        .open(log)
        .unwrap();
    writeln!(log, "{expected} {}", said.trim_end().replace('\n', "; ")).unwrap();
    said
}

/// How it tells the task that its own fold made; `None` where the binary can't fold it.
fn as_folded(forged: &Forged, id: &str) -> Option<String> {
    let task = forged.store().task(&id.parse().ok()?).ok()?.task;
    let tags = format!("{:?}", task.tags).replace('"', "'");
    Some(format!(
        "task {id} is {}: text {}, base {}, priority {}, tags {tags}\n",
        task.state,
        task.text_digest(),
        task.base,
        task.priority,
    ))
}

/// What it is asked about, and what it should end with; `None` where it has no answer: about revisions.
fn expected(forged: &Forged, args: &[&str], answer: &Answer) -> Option<(String, i32)> {
    // A policy that is not to be believed leaves no task.
    let tasks = answer.json["tasks"].as_array()?;
    if answer.json.get("revision").is_some() || !matches!(answer.code, Some(0 | 1)) {
        return None;
    }
    let is_clean = !answer.faults().iter().any(seen);
    let (subject, accepted) = match tasks.as_slice() {
        _ if args == ["--all"] => ("--all", is_clean),
        [task] => {
            let graded = task["delivered"]["grade"].is_string();
            (task["task"].as_str()?, is_clean && graded)
        }
        _ => (forged.id.as_str(), false),
    };
    Some((subject.to_owned(), i32::from(!accepted)))
}

/// Whether a fault is one that it can see: it has no key, and no memory of the clone's.
fn seen(fault: &Value) -> bool {
    let what = fault["what"].as_str().unwrap_or_default();
    fault["link"] != "payload" && !what.contains("this clone has seen commit")
}

/// What the verifier of one task should end with for each task of an answer about all.
fn each(answer: &Answer) -> Vec<(String, i32)> {
    let list = |of: &Value| of.as_array().cloned().unwrap_or_default();
    let doubts_all = |fault: &Value| fault["link"] == "policy" || fault["link"] == "pin";
    let doubtful = list(&answer.json["faults"]).iter().any(doubts_all);
    let expected = |task: &Value| {
        let accepted = !doubtful
            && task["delivered"]["grade"].is_string()
            && !list(&task["faults"]).iter().any(seen);
        let id = task["task"].as_str()?.to_owned();
        Some((id, i32::from(!accepted)))
    };
    let tasks = list(&answer.json["tasks"]);
    tasks.iter().filter_map(expected).collect()
}

fn second(forged: &Forged, subject: &str, more: &[&str]) -> Output {
    ask(&forged.dir(), forged.world.dir.path(), subject, more)
}

/// What the second verifier says of a repository.
pub(crate) fn ask(dir: &Path, home: &Path, subject: &str, more: &[&str]) -> Output {
    let program = crate::docs::root().join("docs/verify");
    Command::new("python3")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", home)
        .arg(program)
        .arg(dir)
        .arg(subject)
        .args(more)
        .output()
        .unwrap()
}

#[test]
#[ignore = "heavy: runs the tests that verify again, with python3 and ssh-keygen"]
fn the_second_verifier_gives_the_same_answer_on_every_tampering() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("compared");
    let out = Command::new(std::env::current_exe().unwrap())
        .args(TESTS)
        .args(["--include-ignored", "--skip", "verify::second"])
        .args(["--test-threads", "2"])
        .env(COMPARE, &log)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{text}");
    let compared = fs::read_to_string(&log).unwrap();
    let of = |answer: &str| {
        compared
            .lines()
            .filter(|line| line.starts_with(answer))
            .count()
    };
    let (yes, no) = (of("0"), of("1"));
    assert!(yes > 20 && no > 80, "{yes} accepted, {no} not: {text}");
    println!("{}", one_task::answered(&compared));
}

#[test]
#[ignore = "heavy: python3 and ssh-keygen"]
fn the_second_verifier_compares_the_policy_with_what_somebody_told() {
    let forged = Forged::honest();
    let own = forged.store().policy.repo().to_string();
    let other = format!("sha256:{}", "ab".repeat(32));
    let ask = |told: &str| second(&forged, forged.id.as_str(), &[told]);
    let out = ask(&own);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    let out = ask(&other);
    assert_eq!(out.status.code(), Some(1), "{out:?}");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(text.contains(&own), "{text}");
    let none = second(&forged, "no-such-task", &[]);
    assert_eq!(none.status.code(), Some(2), "{none:?}");
}

/// A clone's own file and refs that would show other histories than the ones that are there.
#[test]
#[ignore = "heavy: python3 and ssh-keygen"]
fn grafts_and_replacements_of_a_clone_change_no_answer() {
    let forged = Forged::honest();
    let tip = |name: &str| forged.git(&["rev-parse", name]);
    let (events, base) = (tip(&forged.events()), tip("main"));
    forged.verify(&[forged.id.as_str()]).is_yes();
    let dir = forged.dir();
    fs::create_dir_all(dir.join(".git/info")).unwrap();
    // Without its parents, the newest event is a history without its beginning.
    fs::write(dir.join(".git/info/grafts"), format!("{events}\n")).unwrap();
    forged.git(&["replace", "-f", "hangar/KAN-80", &base]);
    let parents = forged.git(&["rev-list", "--parents", "-n1", &forged.events()]);
    assert_eq!(parents, events, "git itself follows the graft");
    forged.verify(&[forged.id.as_str()]).is_yes();
    let out = second(&forged, forged.id.as_str(), &[]);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    let said = one_task::said(&dir, forged.world.dir.path(), forged.id.as_str());
    assert_eq!(said, "accepted\n");
}

#[test]
fn each_file_of_the_second_verifier_is_short() {
    for file in fs::read_dir(crate::docs::root().join("docs/verify")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|ext| ext == "py") && !path.ends_with("task.py") {
            let text = fs::read_to_string(&path).unwrap();
            let lines = text.lines().count();
            assert!(lines <= 200, "{} has {lines} lines", path.display());
            let longest = text.lines().map(str::len).max().unwrap_or_default();
            assert!(longest <= 120, "{}: {longest} columns", path.display());
        }
    }
}
