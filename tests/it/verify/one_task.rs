//! `docs/verify/task.py`, a verifier of one task in one file, beside the binary: it is asked about each
//! task whenever the long one is ([`super::second`]).

use hangar::model::digest::Digest;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// How long it may be, header included, and how wide.
const LINES: usize = 200;
const COLUMNS: usize = 100;

/// The tests in which it leaves some answers to the long one, as it says of itself: tasks that did not go
/// straight ahead, policies that did more than grow, patches near guarded or protected paths, archives.
const LEFT: [&str; 40] = [
    "apart::what_a_clone_does_beside_a_delivery_is_shown_and_takes_nothing_back",
    "archive::an_ended_task_is_archived_found_and_verified",
    "archive::the_archive_moves_through_a_remote_and_no_ref_comes_back",
    "verify::archived::a_task_that_somebody_archived_before_it_ended",
    "verify::archived::an_archived_task_is_verified_as_before",
    "verify::concurrent::a_delivery_stands_whatever_is_done_beside_it",
    "verify::concurrent::of_each_pair_of_moves_both_verifiers_see_the_same_task",
    "verify::concurrent::tests_for_what_two_clones_made_of_a_draft",
    "verify::concurrent::what_was_done_beside_the_work_may_keep_it_from_being_delivered",
    "verify::concurrent::whatever_people_do_apart_both_verifiers_see_the_same_task",
    "verify::documents::a_document_that_somebody_put_on_top",
    "verify::documents::a_task_that_is_not_delivered_is_not_accepted_and_not_at_fault",
    "verify::forged::a_grade_that_differs_from_its_manifest",
    "verify::forged::a_grade_that_overlooks_a_protected_path",
    "verify::forged::a_patch_of_hooks_or_configuration_that_no_approver_signed",
    "verify::moved::a_grade_moved_to_another_task",
    "verify::moved::a_grade_of_an_earlier_round_for_a_later_patch",
    "verify::moved::a_rejection_after_the_approval",
    "verify::moved::a_reseal_for_another_manifest_or_of_another_payload",
    "verify::moved::an_approval_moved_to_another_task",
    "verify::moved::an_approval_moved_to_another_version",
    "verify::moved::an_approval_used_again_after_a_retry_set_it_aside",
    "verify::moved::an_older_version_offered_again",
    "verify::opposite::a_grade_that_comes_after_the_delivery_waits_for_a_word",
    "verify::opposite::another_grade_of_the_same_patch_that_says_the_opposite",
    "verify::policy::a_decision_of_a_retired_key_counts_by_its_place_and_one_of_a_compromised_key_does_not",
    "verify::policy::a_delivery_under_a_minimum_of_its_own_policy_was_never_valid",
    "verify::policy::an_approval_of_a_compromised_key_counts_again_when_it_is_adopted",
    "verify::policy::keys_that_are_gone_and_roles_that_no_longer_suffice",
    "verify::policy::raised_minimums_do_not_falsify_what_was_valid",
    "verify::repeated::a_document_that_is_pushed_again_counts_once",
    "verify::repeated::an_earlier_decision_that_is_pushed_again_takes_no_later_one_back",
    "verify::repeated::what_lies_beside_a_copy_takes_the_place_of_nothing",
    "verify::rewritten::a_clone_that_has_seen_a_ref_names_it_when_it_goes_back",
    "verify::rewritten::a_history_without_its_beginning",
    "verify::rewritten::an_event_taken_out_of_the_middle",
    "verify::rewritten::the_tasks_ref_put_back_to_before_the_approval_was_used",
    "verify::rewritten::the_tasks_ref_put_back_to_before_the_delivery",
    "verify::rivals::a_rival_that_nobody_with_a_say_set_aside",
    "verify::rivals::the_root_keys_keep_one_of_two_rivals",
];

fn program() -> PathBuf {
    crate::docs::root().join("docs/verify/task.py")
}

/// Asks about one task; what it ends with must be `expected`, or 2 where it leaves that to the long one.
/// Each answer is a line of `log`: `task`, what was expected, what it ended with, the test, what it said.
pub(super) fn compare(
    log: &OsStr,
    dir: &Path,
    home: &Path,
    task: &str,
    expected: i32,
    binary: &str,
) {
    let out = ask(dir, home, task, &told(dir, home));
    let said = String::from_utf8_lossy(&out.stdout);
    let errors = String::from_utf8_lossy(&out.stderr);
    let ended = out.status.code().unwrap();
    assert!(
        ended == 2 || ended == expected,
        "the verifier of one task says:\n{said}{errors}\nthe binary:\n{binary}"
    );
    let line = match ended {
        0 => "accepted\n",
        1 => "not accepted: ",
        _ => "not decided here: ",
    };
    // What it prints is an answer, never a trace.
    assert!(
        said.starts_with(line) && errors.is_empty(),
        "{said}{errors}"
    );
    let mut log = OpenOptions::new()
        .append(true)
        .create(true)
        .open(log)
        .unwrap();
    let current = std::thread::current();
    let test = current.name().unwrap_or("?");
    let said = said.trim_end().replace('\n', "; ");
    writeln!(log, "task {expected} {ended} {test} {said}").unwrap();
}

/// Of the lines that [`compare`] wrote: it answered itself but in [`LEFT`]. Gives a summary.
pub(super) fn answered(log: &str) -> String {
    let lines: Vec<Vec<&str>> = log
        .lines()
        .filter(|line| line.starts_with("task "))
        .map(|line| line.splitn(5, ' ').collect())
        .collect();
    let count = |expected, ended| {
        let of = |line: &&Vec<&str>| line[1] == expected && line[2] == ended;
        lines.iter().filter(of).count()
    };
    let (accepted, refused) = (count("0", "0"), count("1", "1"));
    let left: BTreeSet<&str> = lines
        .iter()
        .filter(|line| line[2] == "2")
        .map(|line| line[3])
        .collect();
    let summary = format!(
        "{accepted} accepted, {refused} refused; left to the long one: {} that are acceptable, {} that are not",
        count("0", "2"),
        count("1", "2")
    );
    assert_eq!(left, BTreeSet::from(LEFT), "{summary}");
    assert!(accepted > 30 && refused > 95, "{summary}");
    summary
}

/// What it says of a task in a repository that nobody tampered with.
pub(crate) fn said(dir: &Path, home: &Path, task: &str) -> String {
    let out = ask(dir, home, task, &told(dir, home));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

fn git(dir: &Path, home: &Path, args: &[&str]) -> Option<Vec<u8>> {
    let out = Command::new("git")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", home)
        .arg("-C")
        .arg(dir)
        .args(args)
        .output()
        .unwrap();
    out.status.success().then_some(out.stdout)
}

/// The repository id that a stranger would go by: what `hangar.toml` of the default branch pins, else
/// the one that the refs show.
fn told(dir: &Path, home: &Path) -> String {
    let pinned = ["origin/HEAD", "origin/main", "main", "master"]
        .iter()
        .find_map(|branch| git(dir, home, &["show", &format!("{branch}:hangar.toml")]))
        .and_then(|bytes| String::from_utf8(bytes).ok()?.parse::<toml::Table>().ok())
        .and_then(|table| Some(table.get("trust")?.get("repo")?.as_str()?.to_owned()));
    let shown = || {
        let args = ["rev-list", "--max-parents=0", "refs/hangar/policy"];
        let first = String::from_utf8(git(dir, home, &args)?).ok()?;
        let root = format!("{}:root.toml", first.lines().next()?);
        Some(Digest::of(&git(dir, home, &["show", &root])?).to_string())
    };
    pinned.or_else(shown).unwrap_or_default()
}

fn ask(dir: &Path, home: &Path, task: &str, id: &str) -> Output {
    Command::new("python3")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", home)
        .arg(program())
        .arg(dir)
        .args([task, id])
        .output()
        .unwrap()
}

#[test]
fn it_is_short_and_stands_alone() {
    let text = std::fs::read_to_string(program()).unwrap();
    let lines = text.lines().count();
    assert!(lines <= LINES, "{lines} lines");
    let longest = text.lines().map(|line| line.chars().count()).max();
    assert!(longest <= Some(COLUMNS), "{longest:?} columns");
    // It imports the standard library, and nothing that lies beside it.
    let beside = std::fs::read_dir(program().parent().unwrap()).unwrap();
    let beside: Vec<_> = beside
        .map(|file| file.unwrap().path().file_stem().unwrap().to_owned())
        .collect();
    for line in text.lines().filter(|line| line.contains("import ")) {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut names = line.split(|c| !is_word(c));
        assert!(
            names.all(|name| !beside.iter().any(|file| file == name)),
            "{line}"
        );
    }
}

#[test]
#[ignore = "heavy: python3"]
fn it_has_no_answer_without_a_repository_or_a_task() {
    let forged = super::forge::Forged::honest();
    let (dir, home) = (forged.dir(), forged.world.dir.path());
    let id = told(&dir, home);
    let code = |task: &str, id: &str| ask(&dir, home, task, id).status.code();
    assert_eq!(code(forged.id.as_str(), &id), Some(0));
    assert_eq!(code("no-such-task", &id), Some(2));
    // The policy is the one that a person told, or it is none.
    let other = format!("sha256:{}", "ab".repeat(32));
    assert_eq!(code(forged.id.as_str(), &other), Some(1));
    // Rules are asserts: without them it says nothing.
    let out = Command::new("python3")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg("-O")
        .arg(program())
        .arg(&dir)
        .args([forged.id.as_str(), &id])
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(2), "{out:?}");
}
