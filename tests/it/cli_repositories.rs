//! Clones, remotes and odd repositories: which policy is taken, and what works where.

use crate::cli_help::validate;
use crate::common::{TestEnv, write};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

#[test]
fn a_second_clone_pins_the_policy_and_prints_the_admin_s_line() {
    let alice = TestEnv::new();
    let dir = alice.ready("repo");
    let hub = alice.root().join("hub.git");
    alice.git(alice.root(), &["init", "-q", "--bare", "hub.git"]);
    alice.git(
        &dir,
        &["remote", "add", "origin", &hub.display().to_string()],
    );
    alice.git(
        &dir,
        &["push", "-q", "origin", "main", "refs/hangar/policy"],
    );
    let bob = alice.user("bob");
    bob.git(
        bob.root(),
        &["clone", "-q", &hub.display().to_string(), "clone"],
    );
    let clone = bob.root().join("clone");
    let ran = bob.hangar(&clone, &["sync"]).exits(3);
    assert!(ran.stderr.contains("run `hangar init` first"), "{ran}");
    bob.git(
        bob.root(),
        &["clone", "-q", &hub.display().to_string(), "other"],
    );
    let ran = bob.hangar(&bob.root().join("other"), &["init"]).success();
    assert!(
        ran.stdout.contains("Then `hangar sync` brings the tasks."),
        "{ran}"
    );
    let report = bob.json(&clone, &["init"]);
    validate("init", &report);
    assert_eq!(report["fetched_from"], "origin");
    assert_eq!(report["outcome"], "pinned");
    assert!(report.get("principal").is_none());
    let line = report["admin_command"].as_str().unwrap();
    for part in [
        "hangar policy add bob --role member --key 'ssh-ed25519 ",
        "--worker '",
        "--grader '",
    ] {
        assert!(line.contains(part), "{line}");
    }
    let policy = |env: &TestEnv, dir| env.git(dir, &["rev-parse", "refs/hangar/policy"]);
    assert_eq!(policy(&bob, &clone), policy(&alice, &dir));
    let ran = bob.hangar(&clone, &["task", "new", "x"]).exits(4);
    assert!(
        ran.stderr.contains("belongs to nobody in the policy"),
        "{ran}"
    );
    bob.hangar(&clone, &["task", "list"]).success();
}

#[test]
fn an_unreachable_remote_is_never_taken_for_an_empty_one() {
    let env = TestEnv::new();
    let dir = env.repo("repo", &[]);
    let gone = env.root().join("gone.git").display().to_string();
    env.git(&dir, &["remote", "add", "origin", &gone]);
    let ran = env.hangar(&dir, &["init"]).exits(3);
    assert!(ran.stderr.contains("hangar init --new"), "{ran}");
    env.hangar(&dir, &["init", "--offline"]).exits(3);
    let report = env.json(&dir, &["init", "--new"]);
    assert_eq!(report["outcome"], "founded");
}

#[test]
fn a_forged_policy_on_the_remote_does_not_stay() {
    let env = TestEnv::new();
    let dir = env.repo("repo", &[]);
    env.git(env.root(), &["init", "-q", "--bare", "hub.git"]);
    let hub = env.root().join("hub.git").display().to_string();
    env.git(&dir, &["remote", "add", "origin", &hub]);
    env.git(&dir, &["push", "-q", "origin", "HEAD:refs/hangar/policy"]);
    let ran = env.hangar(&dir, &["init"]).exits(4);
    assert!(ran.stderr.contains("policy can't be trusted"), "{ran}");
    assert_eq!(env.git(&dir, &["for-each-ref", "refs/hangar"]), "");
}

#[test]
fn a_rival_policy_is_refused() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    env.git(&dir, &["update-ref", "-d", "refs/hangar/policy"]);
    // The pin of this clone stands against another one, even with --new.
    for args in [&["init"][..], &["init", "--new"]] {
        let ran = env.hangar(&dir, args).exits(3);
        assert!(ran.stderr.contains("is gone"), "{ran}");
    }
    assert_eq!(env.git(&dir, &["for-each-ref", "refs/hangar"]), "");
}

#[test]
fn a_policy_that_goes_back_is_refused() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    // Another policy under the same ref: founded by the same person elsewhere.
    let other = env.ready("other");
    let url = other.display().to_string();
    env.git(
        &dir,
        &[
            "fetch",
            "-q",
            &url,
            "+refs/hangar/policy:refs/hangar/policy",
        ],
    );
    for args in [
        &["task", "list"][..],
        &["task", "new", "x"],
        &["init"],
        &["policy", "show"],
    ] {
        let ran = env.hangar(&dir, args).exits(4);
        assert!(ran.stderr.contains("not the one that was pinned"), "{ran}");
    }
}

#[test]
fn states_of_a_repository_that_init_and_task_list_take() {
    let env = TestEnv::new();
    let dir = env.ready("with space");
    env.git(&dir, &["checkout", "-q", "--detach"]);
    env.hangar(&dir.join("tests"), &["task", "new", "x", "-c", "y"])
        .success();
    env.git(&dir, &["worktree", "add", "-q", "../linked"]);
    let linked = env.root().join("linked");
    let list = env.json(&linked, &["task", "list"]);
    assert_eq!(list["tasks"].as_array().unwrap().len(), 1);
    env.git(
        env.root(),
        &["clone", "-q", "--mirror", "with space", "bare.git"],
    );
    let bare = env.root().join("bare.git");
    let list = env.json(&bare, &["task", "list"]);
    assert_eq!(list["tasks"].as_array().unwrap().len(), 1);
    let report = env.json(&bare, &["init"]);
    assert_eq!(report["bare"], true);
}

#[test]
fn odd_repositories_work_or_say_why_not() {
    use std::os::unix::ffi::OsStrExt as _;
    let env = TestEnv::new();
    // Named by SHA-256.
    let dir = env.root().join("long");
    env.git(
        env.root(),
        &["init", "-q", "--object-format=sha256", "long"],
    );
    env.git(&dir, &["commit", "-q", "--allow-empty", "-m", "first"]);
    env.hangar(&dir, &["init"]).success();
    env.commit(&dir, "set up");
    let made = env.json(&dir, &["task", "new", "x", "--plain"]);
    assert_eq!(made["base"].as_str().unwrap().len(), 64);
    env.git(&dir, &["fsck", "--strict"]);
    // A name that is not UTF-8, a dirty work tree, and a branch called hangar.
    let odd = env
        .root()
        .join(std::ffi::OsStr::from_bytes(b"odd \xff name"));
    fs::rename(env.ready("plain"), &odd).unwrap();
    env.git(&odd, &["branch", "hangar"]);
    write(&odd.join("calc.py"), "changed\n");
    env.hangar(&odd, &["task", "new", "x", "-c", "y"]).success();
    env.hangar(&odd, &["task", "list"]).success();
    // Cut off.
    let url = format!("file://{}", dir.display());
    env.git(env.root(), &["clone", "-q", "--depth=1", &url, "shallow"]);
    let shallow = env.root().join("shallow");
    let report = env.json(&shallow, &["init"]);
    assert_eq!(report["outcome"], "pinned");
    env.hangar(&shallow, &["task", "new", "x", "--plain"])
        .success();
    // A policy below refs/heads beside the usual one.
    env.git(
        &dir,
        &[
            "update-ref",
            "refs/heads/hangar-state/policy",
            "refs/hangar/policy",
        ],
    );
    let ran = env.hangar(&dir, &["task", "list"]).exits(4);
    assert!(ran.stderr.contains("both refs/hangar/"), "{ran}");
}

#[test]
fn what_stands_in_the_way_is_one_clear_error() {
    let env = TestEnv::new();
    let outside = env.root().join("outside");
    fs::create_dir(&outside).unwrap();
    let ran = env.hangar(&outside, &["task", "list"]).exits(3);
    assert!(ran.stderr.contains("is not in a Git repository"), "{ran}");
    let dir = env.repo("repo", &[]);
    let ran = env.hangar(&dir, &["task", "list"]).exits(3);
    assert!(ran.stderr.contains("hint: run `hangar init`"), "{ran}");
    let no_home = [("HOME", ""), ("XDG_CONFIG_HOME", ""), ("XDG_DATA_HOME", "")];
    let ran = env
        .hangar_with(&dir, &["config", "list"], &no_home, "")
        .exits(3);
    assert!(ran.stderr.contains("HOME is not set"), "{ran}");
    let key = env.home().join(".ssh/id_ed25519");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let ran = env.hangar(&dir, &["init"]).exits(3);
    assert!(ran.stderr.contains("chmod 600"), "{ran}");
}
