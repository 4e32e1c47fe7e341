//! What `hangar.toml` names and what a clone pins: a broken file stops only what needs it, and no
//! command that refuses pins anything.

use crate::common::{Ran, TestEnv, write};
use std::fs;
use std::path::{Path, PathBuf};

/// What a command said, with its line breaks taken out.
fn said(ran: &Ran) -> String {
    let said = format!("{}{}", ran.stdout, ran.stderr);
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn says(ran: &Ran, part: &str) {
    assert!(said(ran).contains(part), "`{part}` is not said: {ran}");
}

/// Runs hangar, apart from the second verifier: what a clone pins is this program's alone.
fn alone(env: &TestEnv, dir: &Path, args: &[&str]) -> Ran {
    env.hangar_with(dir, args, &[("ALONE", "1")], "")
}

fn pin(dir: &Path) -> bool {
    dir.join(".git/hangar/trust.toml").exists()
}

fn named(dir: &Path) -> String {
    let text = fs::read_to_string(dir.join("hangar.toml")).unwrap();
    let line = text.lines().find(|line| line.starts_with("repo = "));
    line.unwrap().split('"').nth(1).unwrap().to_owned()
}

/// A repository with one task.
fn place() -> (TestEnv, PathBuf) {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    let new = ["task", "new", "One", "--plain", "--key", "KAN-1"];
    env.hangar(&dir, &new).success();
    (env, dir)
}

/// A clone of `from`, with the refs of hangar that `refs` has.
fn clone(env: &TestEnv, from: &Path, branch: &str, refs: &Path) -> PathBuf {
    let ci = env.root().join("ci");
    let from = from.display().to_string();
    env.git(env.root(), &["clone", "-q", "-b", branch, &from, "ci"]);
    fetch(env, &ci, refs);
    ci
}

fn fetch(env: &TestEnv, ci: &Path, from: &Path) {
    let from = from.display().to_string();
    let refs = "+refs/hangar/*:refs/hangar/*";
    env.git(ci, &["fetch", "-q", "--prune", &from, refs]);
}

/// Another repository with a policy of its own.
fn evil(env: &TestEnv) -> PathBuf {
    env.ready("evil")
}

#[test]
fn a_broken_file_stops_only_what_needs_it() {
    let (env, dir) = place();
    let file = dir.join("hangar.toml");
    let good = fs::read_to_string(&file).unwrap();
    let pinned = "goes by the policy that it has pinned";
    let cobol = good.replace("framework = \"", "framework = \"cobol-");
    assert_ne!(cobol, good);
    let digest = good.replace("repo = \"sha256:", "repo = \"md5:");
    for (bad, part, code) in [
        ("this is no TOML\n".to_owned(), pinned, 2),
        (digest, pinned, 2),
        (cobol, "`grader.framework`", 2),
        (
            format!("{good}\n[sandbox]\nprovider = \"none\"\n"),
            "`sandbox` may not be set by a repository",
            4,
        ),
    ] {
        write(&file, &bad);
        env.commit(&dir, "broken");
        for args in [
            &["task", "list"][..],
            &["task", "show", "KAN-1"],
            &["task", "log", "KAN-1"],
            &["task", "comment", "KAN-1", "seen"],
            &["inbox"],
            &["policy", "show"],
            &["sealed", "list", "KAN-1"],
            &["verify", "--all"],
        ] {
            let ran = alone(&env, &dir, args).success();
            says(&ran, part);
            says(&ran, "hangar.toml");
        }
        alone(&env, &dir, &["task", "new", "Two"]).exits(code);
    }
}

#[test]
fn a_clone_without_a_pin_takes_none_where_the_file_is_broken() {
    let (env, dir) = place();
    let file = dir.join("hangar.toml");
    let good = fs::read_to_string(&file).unwrap();
    write(&file, "this is no TOML\n");
    env.commit(&dir, "broken");
    let ci = clone(&env, &dir, "main", &dir);
    let refused = alone(&env, &ci, &["task", "list"]).exits(4);
    says(&refused, "can't be read");
    says(&refused, "hangar init");
    let verified = alone(&env, &ci, &["verify", "--all"]).exits(1);
    says(&verified, "can't be read");
    assert!(!pin(&ci));
    // The way out that was told.
    write(&ci.join("hangar.toml"), &good);
    let joined = alone(&env, &ci, &["init"]).success();
    says(&joined, "the work tree's file names is pinned");
    assert!(pin(&ci));
    alone(&env, &ci, &["task", "list"]).success();
}

#[test]
fn a_command_that_refuses_a_policy_does_not_pin_it() {
    let (env, dir) = place();
    let evil = evil(&env);
    let ci = clone(&env, &dir, "main", &evil);
    for args in [
        &["task", "list"][..],
        &["inbox"],
        &["init"],
        &["policy", "show"],
    ] {
        let refused = alone(&env, &ci, args).exits(4);
        says(&refused, &named(&dir));
        says(&refused, &named(&evil));
    }
    alone(&env, &ci, &["verify", "--all"]).exits(1);
    alone(&env, &ci, &["verify", "HEAD"]).exits(1);
    alone(&env, &ci, &["key", "list"]).success();
    assert!(!pin(&ci));
    // With the right refs all is well.
    fetch(&env, &ci, &dir);
    alone(&env, &ci, &["verify", "--all"]).success();
    assert!(pin(&ci));
    alone(&env, &ci, &["task", "list"]).success();
}

#[test]
fn a_first_pin_is_held_against_the_default_branch() {
    let (env, dir) = place();
    let evil = evil(&env);
    env.git(&dir, &["checkout", "-q", "-b", "proposal"]);
    fs::copy(evil.join("hangar.toml"), dir.join("hangar.toml")).unwrap();
    env.commit(&dir, "another policy");
    env.git(&dir, &["checkout", "-q", "main"]);
    let ci = clone(&env, &dir, "proposal", &evil);
    // With the refs of the proposal's policy, and with the right ones.
    for refs in [&evil, &dir] {
        fetch(&env, &ci, refs);
        for args in [&["task", "list"][..], &["inbox"], &["init"], &["sync"]] {
            let refused = alone(&env, &ci, args).exits(4);
            says(&refused, &named(&dir));
            says(&refused, &named(&evil));
            says(&refused, "check out the default branch");
        }
        assert!(!pin(&ci));
    }
    env.git(&ci, &["checkout", "-q", "main"]);
    alone(&env, &ci, &["task", "list"]).success();
    assert!(pin(&ci));
}

#[test]
fn a_proposal_names_no_policy_where_the_default_branch_is_broken_or_not_known() {
    let (env, dir) = place();
    let evil = evil(&env);
    env.git(&dir, &["checkout", "-q", "-b", "proposal"]);
    fs::copy(evil.join("hangar.toml"), dir.join("hangar.toml")).unwrap();
    env.commit(&dir, "another policy");
    env.git(&dir, &["checkout", "-q", "main"]);
    // Nobody says which of the two branches is the default one.
    env.git(&dir, &["branch", "-q", "-m", "main", "trunk"]);
    let ci = clone(&env, &dir, "proposal", &evil);
    env.git(&ci, &["remote", "set-head", "origin", "--delete"]);
    for args in [&["task", "list"][..], &["init"]] {
        let refused = alone(&env, &ci, args).exits(4);
        says(&refused, "git remote set-head origin --auto");
    }
    let verified = alone(&env, &ci, &["verify", "--all"]);
    says(&verified, "NOTHING here pins the policy");
    assert!(!pin(&ci));
    fs::remove_dir_all(&ci).unwrap();

    env.git(&dir, &["branch", "-q", "-m", "trunk", "main"]);
    write(&dir.join("hangar.toml"), "this is no TOML\n");
    env.commit(&dir, "broken");
    let ci = clone(&env, &dir, "proposal", &evil);
    for args in [&["task", "list"][..], &["init"]] {
        let refused = alone(&env, &ci, args).exits(4);
        says(&refused, "can't be read");
    }
    alone(&env, &ci, &["verify", "--all"]).exits(1);
    assert!(!pin(&ci));
}

#[test]
fn a_policy_that_is_gone_is_a_no_of_verify() {
    let (env, dir) = place();
    alone(&env, &dir, &["verify", "--all"]).success();
    env.git(&dir, &["update-ref", "-d", "refs/hangar/policy"]);
    let gone = alone(&env, &dir, &["verify", "--all"]).exits(1);
    says(
        &gone,
        "the policy that this clone has seen (version 1) is gone",
    );
    // Where none was ever seen, something is missing.
    let bare = env.repo("bare", &[]);
    alone(&env, &bare, &["verify", "--all"]).exits(3);
}
