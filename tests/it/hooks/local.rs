//! `reference-transaction`: refs of hangar in a clone go forward, and nothing else is in the way.

use super::{path, path_without_hangar};
use crate::common::TestEnv;
use crate::common::hub::{Hub, task_ref};
use std::path::PathBuf;

/// A clone with hooks and one task that was edited.
fn guarded() -> (TestEnv, PathBuf, String) {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    let id = env.hangar(&dir, &["task", "new", "x", "--plain"]).success();
    let id = id.text().to_owned();
    env.hangar(&dir, &["task", "edit", &id, "--title", "y"])
        .success();
    env.hangar(&dir, &["init", "--hooks"]).success();
    let name = env.git(
        &dir,
        &["for-each-ref", "--format=%(refname)", "refs/hangar/tasks"],
    );
    (env, dir, name)
}

#[test]
fn nothing_is_deleted_or_put_back_by_git() {
    let (env, dir, name) = guarded();
    let refs = env.git(&dir, &["for-each-ref"]);
    let refused = |args: &[&str], why: &str| {
        env.git_said(&dir, args).refused(&name, why);
        assert_eq!(env.git(&dir, &["for-each-ref"]), refs, "{args:?}");
    };
    refused(&["update-ref", "-d", &name], "is never deleted");
    refused(
        &["update-ref", &name, &format!("{name}~1")],
        "it would lose",
    );
    refused(&["update-ref", &name, "main"], "it would lose");
    refused(&["fetch", ".", &format!("+main:{name}")], "it would lose");
    // Packed, too.
    env.git_said(&dir, &["pack-refs", "--all"]).done();
    refused(&["update-ref", "-d", &name], "is never deleted");
    let policy = "refs/hangar/policy";
    let said = env.git_said(&dir, &["update-ref", "-d", policy]);
    said.refused(policy, "is never deleted");
    let rival = "refs/heads/hangar-state/policy";
    let said = env.git_said(&dir, &["update-ref", rival, "main"]);
    said.refused(rival, "lies under refs/hangar/");
    assert_eq!(env.git(&dir, &["for-each-ref"]), refs);
}

#[test]
fn everything_else_goes_on() {
    let (env, dir, name) = guarded();
    let git = |args: &[&str]| env.git_said(&dir, args).done().text.clone();
    std::fs::write(dir.join("a"), "a").unwrap();
    git(&["add", "a"]);
    git(&["commit", "-q", "-m", "a"]);
    git(&["branch", "side"]);
    git(&["tag", "v1"]);
    git(&["rebase", "-q", "--force-rebase", "HEAD~1"]);
    git(&["branch", "-D", "side"]);
    git(&["pack-refs", "--all", "--prune"]);
    assert!(!dir.join(".git").join(&name).exists());
    git(&["gc", "-q", "--prune=now"]);
    // Forward.
    let tree = env.git(&dir, &["rev-parse", &format!("{name}^{{tree}}")]);
    let before = env.git(&dir, &["rev-parse", &name]);
    let next = env.git(&dir, &["commit-tree", &tree, "-p", &name, "-m", "x"]);
    git(&["update-ref", &name, &next]);
    env.git(
        &dir,
        &[
            "-c",
            "core.hooksPath=/dev/null",
            "update-ref",
            &name,
            &before,
        ],
    );
    git(&["update-ref", "refs/hangar-remote/origin/policy", "main"]);
    git(&["update-ref", "-d", "refs/hangar-remote/origin/policy"]);
    let id = name.rsplit('/').next().unwrap();
    env.hangar(&dir, &["task", "edit", id, "--title", "z"])
        .success();
    env.hangar_found(&dir, &["deinit", "--yes"]).success();
    assert_eq!(env.git(&dir, &["for-each-ref", "refs/hangar/"]), "");
    git(&["update-ref", "refs/hangar/policy", "main"]);
    git(&["update-ref", "-d", "refs/hangar/policy"]);
}

#[test]
fn a_fetch_by_force_does_not_take_over_what_a_remote_lost() {
    let (hub, first) = Hub::new();
    let task = hub.task(&first, "Shared");
    hub.edit(&first, &task, "Edited");
    hub.sync(&first).success();
    hub.env.hangar(&first, &["init", "--hooks"]).success();
    let name = task_ref(&task);
    let head = hub.env.git(&first, &["rev-parse", &name]);
    hub.env
        .git(&hub.bare, &["update-ref", &name, &format!("{name}~1")]);
    let fetch = ["fetch", "origin", "+refs/hangar/*:refs/hangar/*"];
    hub.env
        .git_said(&first, &fetch)
        .refused(&name, "it would lose");
    let prune = ["fetch", "--prune", "origin", "refs/hangar/*:refs/hangar/*"];
    hub.env.git(&hub.bare, &["update-ref", "-d", &name]);
    hub.env
        .git_said(&first, &prune)
        .refused(&name, "is never deleted");
    assert_eq!(hub.env.git(&first, &["rev-parse", &name]), head);
    // Into the place for what remotes show everything may go.
    let aside = [
        "fetch",
        "--prune",
        "origin",
        "+refs/hangar/*:refs/hangar-remote/origin/*",
    ];
    hub.env.git_said(&first, &aside).done();
    hub.env.hangar_found(&first, &["sync"]).success();
    assert_eq!(hub.env.git(&hub.bare, &["rev-parse", &name]), head);
}

/// `pack-refs` asks the hook before it takes the file of a ref away that it has packed.
#[test]
fn a_ref_that_was_packed_may_lose_its_file() {
    let (env, dir, name) = guarded();
    let head = env.git(&dir, &["rev-parse", &name]);
    let ask = |lines: &str| {
        let args = ["hook", "reference-transaction", "prepared"];
        env.hangar_with(&dir, &args, &[("PATH", &path())], lines)
    };
    let gone = format!("{head} {} {name}\n", "0".repeat(40));
    ask(&gone).exits(1);
    env.git_said(&dir, &["pack-refs", "--all", "--no-prune"])
        .done();
    ask(&gone).success();
    std::fs::write(dir.join(".git/packed-refs.lock"), "").unwrap();
    ask(&gone).exits(1);
    std::fs::remove_file(dir.join(".git/packed-refs.lock")).unwrap();
    // Other states are told, not asked.
    for state in ["committed", "aborted", "preparing"] {
        let args = ["hook", "reference-transaction", state];
        env.hangar_with(&dir, &args, &[], &gone).success();
    }
    ask(&format!("{head} ref:refs/heads/main {name}\n")).exits(1);
    ask("nonsense\n").exits(2);
}

#[test]
fn without_hangar_on_the_path_only_its_own_refs_stand_still() {
    let (env, dir, name) = guarded();
    std::fs::write(dir.join("a"), "a").unwrap();
    env.commit(&dir, "a");
    let git = |args: &[&str]| {
        let mut command = env.command("git", &dir);
        command.env("PATH", path_without_hangar());
        command.args(args).output().unwrap()
    };
    for round in 0..2 {
        for args in [
            &["update-ref", "-d", &name][..],
            &["update-ref", &name, &format!("{name}~1")],
        ] {
            let out = git(args);
            let text = String::from_utf8_lossy(&out.stderr).into_owned();
            let held = text.contains("no program hangar is on PATH");
            assert!(!out.status.success() && held, "{round} {args:?}: {text}");
        }
        // Packed or not.
        for args in [&["pack-refs", "--all"][..], &["gc", "-q"]] {
            let out = git(args);
            assert!(out.status.success(), "{args:?}: {out:?}");
        }
        assert!(!dir.join(".git").join(&name).exists());
    }
}
