//! Putting hooks in place beside others, and taking them out again.

use crate::cli_help::validate;
use crate::common::TestEnv;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

/// Writes down its name, arguments and input, and ends with 9 when it is told so.
const OWN: &str = "#!/bin/sh\n{ echo \"$(cd \"$(dirname \"$0\")\" && pwd)\"; echo \"$@\"; cat; } > seen\ntest ! -e fail || exit 9\n";

fn script(path: &Path, text: &str, mode: u32) {
    crate::common::write(path, text);
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn ready() -> (TestEnv, PathBuf) {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    env.git(env.root(), &["init", "-q", "--bare", "hub.git"]);
    let hub = env.root().join("hub.git");
    env.git(&dir, &["remote", "add", "origin", hub.to_str().unwrap()]);
    (env, dir)
}

fn actions(report: &Value) -> Vec<(String, String, bool)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let hooks = report["hooks"].as_array().unwrap().iter();
    hooks
        .map(|hook| {
            let chained = hook["chained"].as_bool().unwrap();
            (text(&hook["name"]), text(&hook["action"]), chained)
        })
        .collect()
}

fn both(action: &str, chained: bool) -> Vec<(String, String, bool)> {
    let one = |name: &str| (name.to_owned(), action.to_owned(), chained);
    vec![one("pre-push"), one("reference-transaction")]
}

/// The files of a folder with their content and mode.
fn folder(dir: &Path) -> Vec<(String, Vec<u8>, u32)> {
    let mut all: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let mode = entry.metadata().unwrap().permissions().mode();
            (name, fs::read(entry.path()).unwrap_or_default(), mode)
        })
        .collect();
    all.sort();
    all
}

#[test]
fn a_hook_that_is_not_executable_is_not_said_to_run() {
    let (env, dir) = ready();
    let push = dir.join(".git/hooks/pre-push");
    script(&push, OWN, 0o644);
    let ran = env.hangar(&dir, &["init", "--hooks"]).success();
    let said = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("before-hangar is not executable"), "{ran}");
    assert!(said.contains("chmod +x"), "{ran}");
    assert!(!said.contains("runs after it"), "{ran}");
    let doctor = || env.hangar(&dir, &["doctor"]).stdout;
    assert!(doctor().contains("is not executable and does not run"));
    // Control: made executable it is said to run, and does.
    let before = dir.join(".git/hooks/pre-push.before-hangar");
    fs::set_permissions(&before, fs::Permissions::from_mode(0o755)).unwrap();
    let report = env.json(&dir, &["init", "--hooks"]);
    assert_eq!(report["hooks"][0]["chained"], true);
    assert!(!doctor().contains("is not executable"));
    // One that calls hangar by itself, and that Git would pass over.
    script(&push, "#!/bin/sh\nhangar hook pre-push \"$@\"\n", 0o644);
    assert!(doctor().contains("pre-push is not executable, so Git does not run it"));
    let ran = env.hangar(&dir, &["init", "--hooks"]).exits(4);
    assert!(ran.stdout.contains("is not executable"), "{ran}");
}

#[test]
fn init_puts_hooks_in_place_once_and_deinit_takes_them_out() {
    let (env, dir) = ready();
    let hooks = dir.join(".git/hooks");
    let before = folder(&hooks);
    let report = env.json(&dir, &["init", "--hooks"]);
    validate("init", &report);
    assert_eq!(actions(&report), both("installed", false));
    assert_eq!(report["outcome"], "pinned");
    let made = folder(&hooks);
    let again = env.json(&dir, &["init", "--hooks"]);
    assert_eq!(actions(&again), both("kept", false));
    assert_eq!(again["outcome"], "unchanged");
    assert_eq!(folder(&hooks), made);
    // Another version, and one that cannot run.
    let push = hooks.join("pre-push");
    let text = fs::read_to_string(&push).unwrap() + "# older\n";
    script(&push, &text, 0o755);
    let transaction = hooks.join("reference-transaction");
    fs::set_permissions(&transaction, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(
        actions(&env.json(&dir, &["init", "--hooks"])),
        both("updated", false)
    );
    assert_eq!(folder(&hooks), made);
    let report = env.json(&dir, &["deinit", "--yes"]);
    validate("deinit", &report);
    assert_eq!(report["hooks"].as_array().unwrap().len(), 2);
    assert_eq!(folder(&hooks), before);
    // Hooks alone are something to take out, too.
    env.hangar(&dir, &["hook", "pre-push", "--install"])
        .success();
    let ran = env.hangar(&dir, &["deinit", "--yes"]).success();
    assert!(ran.stdout.contains("Removed 0 refs and 1 hook"), "{ran}");
    assert_eq!(folder(&hooks), before);
}

#[test]
fn a_hook_that_is_there_runs_after_ours_with_its_input_and_exit_code() {
    let (env, dir) = ready();
    let own = dir.join(".git/hooks/pre-push");
    script(&own, OWN, 0o750);
    let before = folder(&dir.join(".git/hooks"));
    let report = env.json(&dir, &["init", "--hooks"]);
    assert_eq!(
        actions(&report)[0],
        ("pre-push".into(), "installed".into(), true)
    );
    env.git_said(&dir, &["push", "origin", "main"]).done();
    let seen = fs::read_to_string(dir.join("seen")).unwrap();
    let lines: Vec<_> = seen.lines().collect();
    let hub = env.root().join("hub.git").display().to_string();
    assert_eq!(lines[0], dir.join(".git/hooks").display().to_string());
    assert_eq!(lines[1], format!("origin {hub}"));
    let head = env.git(&dir, &["rev-parse", "main"]);
    let line = format!("refs/heads/main {head} refs/heads/main {}", "0".repeat(40));
    assert_eq!(lines[2..], [line.as_str()]);
    // What it says goes.
    fs::write(dir.join("fail"), "").unwrap();
    let said = env.git_said(&dir, &["push", "origin", "main:x"]);
    assert!(!said.done, "{}", said.text);
    // What ours refuses does not reach it.
    env.hangar_found(&dir, &["sync"]).success();
    fs::remove_file(dir.join("seen")).unwrap();
    let said = env.git_said(&dir, &["push", "origin", ":refs/hangar/policy"]);
    said.refused("refs/hangar/policy", "is never deleted");
    assert!(!dir.join("seen").exists());
    let ran = env
        .hangar(&dir, &["hook", "pre-push", "--remove"])
        .success();
    assert!(ran.stdout.contains("the hook from before is back"), "{ran}");
    env.hangar(&dir, &["hook", "reference-transaction", "--remove"])
        .success();
    assert_eq!(folder(&dir.join(".git/hooks")), before);
}

#[test]
fn hooks_that_git_did_not_run_stay_so_and_links_stay_links() {
    let (env, dir) = ready();
    let hooks = dir.join(".git/hooks");
    script(&hooks.join("pre-push"), OWN, 0o644);
    crate::common::write(&dir.join("tools/check"), OWN);
    env.commit(&dir, "a hook of the project");
    symlink("../../tools/check", hooks.join("reference-transaction")).unwrap();
    env.hangar(&dir, &["init", "--hooks"]).success();
    env.git_said(&dir, &["push", "origin", "main"]).done();
    assert!(!dir.join("seen").exists());
    // The project's file was not written to.
    assert_eq!(env.git(&dir, &["status", "--porcelain"]), "");
    env.hangar(&dir, &["deinit", "--yes"]).success();
    let link = fs::read_link(hooks.join("reference-transaction")).unwrap();
    assert_eq!(link, Path::new("../../tools/check"));
    assert_eq!(fs::read_to_string(hooks.join("pre-push")).unwrap(), OWN);
}

#[test]
fn hooks_that_cannot_run_under_another_name_are_left_alone() {
    let (env, dir) = ready();
    let hooks = dir.join(".git/hooks");
    let by_name = "#!/bin/sh\nexec run-hooks \"$(basename \"$0\")\" \"$@\"\n";
    script(&hooks.join("pre-push"), by_name, 0o755);
    script(&hooks.join("reference-transaction"), OWN, 0o755);
    script(
        &hooks.join("reference-transaction.before-hangar"),
        OWN,
        0o755,
    );
    let before = folder(&hooks);
    let ran = env.hangar(&dir, &["init", "--hooks", "--json"]).exits(4);
    let report = ran.json();
    assert_eq!(actions(&report), both("refused", false));
    let why = |index: usize| report["hooks"][index]["why"].as_str().unwrap().to_owned();
    assert!(why(0).contains("looks at its own name"), "{}", why(0));
    assert!(
        why(0).contains("hangar hook pre-push \"$@\" || exit"),
        "{}",
        why(0)
    );
    assert!(why(1).contains("take one of them away first"), "{}", why(1));
    assert_eq!(folder(&hooks), before);
    // A line in the hook itself is as good.
    let line = "#!/bin/sh\nhangar hook pre-push \"$@\" || exit\n";
    script(&hooks.join("pre-push"), line, 0o755);
    let report = env
        .hangar(&dir, &["init", "--hooks", "--json"])
        .exits(4)
        .json();
    assert_eq!(report["hooks"][0]["action"], "kept");
    env.hangar(&dir, &["deinit", "--yes"]).success();
    assert_eq!(fs::read_to_string(hooks.join("pre-push")).unwrap(), line);
}

#[test]
fn a_folder_that_comes_with_the_code_or_serves_others_is_not_written_to() {
    let (env, dir) = ready();
    script(&dir.join(".husky/_/pre-push"), OWN, 0o755);
    env.commit(&dir, "hooks of the project");
    let refused = |words: &str| {
        let report = env
            .hangar(&dir, &["init", "--hooks", "--json"])
            .exits(4)
            .json();
        assert_eq!(actions(&report), both("refused", false));
        let why = report["hooks"][0]["why"].as_str().unwrap().to_owned();
        assert!(
            why.contains(words) && why.contains("hangar hook pre-push"),
            "{why}"
        );
        assert_eq!(env.git(&dir, &["status", "--porcelain"]), "");
        assert!(!dir.join(".git/hooks/pre-push").exists());
    };
    env.git(&dir, &["config", "core.hooksPath", ".husky/_"]);
    refused("what is there comes with the code");
    env.git(&dir, &["config", "--unset", "core.hooksPath"]);
    env.git(&dir, &["config", "--global", "core.hooksPath", "~/hooks"]);
    refused("is set for other repositories too");
    assert!(!env.home().join("hooks").exists());
    // Somebody's own hook there that calls hangar does.
    for name in ["pre-push", "reference-transaction"] {
        let text = format!("#!/bin/sh\nhangar hook {name} \"$@\" || exit\n");
        script(&env.home().join("hooks").join(name), &text, 0o755);
    }
    let report = env.json(&dir, &["init", "--hooks"]);
    assert_eq!(actions(&report), both("kept", false));
    env.hangar_found(&dir, &["sync"]).success();
    let said = env.git_said(&dir, &["push", "origin", ":refs/hangar/policy"]);
    said.refused("refs/hangar/policy", "is never deleted");
}

#[test]
fn hooks_that_are_turned_off_are_said_and_stop_nothing_else() {
    let (env, dir) = ready();
    env.git(&dir, &["config", "core.hooksPath", "/dev/null"]);
    let report = env.hangar(&dir, &["init", "--hooks", "--json"]).exits(4);
    assert!(report.stdout.contains("Git runs no hooks here"), "{report}");
    env.hangar(&dir, &["deinit", "--yes"]).success();
}

#[test]
fn a_folder_of_this_repository_alone_is_used() {
    let (env, dir) = ready();
    let own = env.root().join("own-hooks");
    env.git(&dir, &["config", "core.hooksPath", own.to_str().unwrap()]);
    assert_eq!(
        actions(&env.json(&dir, &["init", "--hooks"])),
        both("installed", false)
    );
    assert!(own.join("pre-push").exists() && !dir.join(".git/hooks/pre-push").exists());
    // What lies in the folder that Git no longer uses goes, too.
    env.git(&dir, &["config", "--unset", "core.hooksPath"]);
    env.hangar(&dir, &["init", "--hooks"]).success();
    env.git(&dir, &["config", "core.hooksPath", own.to_str().unwrap()]);
    env.hangar(&dir, &["deinit", "--yes"]).success();
    assert!(!own.join("pre-push").exists() && !dir.join(".git/hooks/pre-push").exists());
}

#[test]
fn linked_work_trees_and_bare_repositories_are_guarded_too() {
    let (env, dir) = ready();
    env.git(
        &dir,
        &["worktree", "add", "-q", "../linked", "-b", "linked"],
    );
    let linked = env.root().join("linked");
    assert_eq!(
        actions(&env.json(&linked, &["init", "--hooks"])),
        both("installed", false)
    );
    assert!(dir.join(".git/hooks/pre-push").exists());
    env.hangar_found(&dir, &["sync"]).success();
    for place in [&dir, &linked, &dir.join("tests")] {
        let said = env.git_said(place, &["update-ref", "-d", "refs/hangar/policy"]);
        said.refused("refs/hangar/policy", "is never deleted");
        let said = env.git_said(place, &["push", "origin", ":refs/hangar/policy"]);
        said.refused("refs/hangar/policy", "is never deleted");
    }
    // A repository that is named apart from its work tree.
    let git_dir = dir.join(".git").display().to_string();
    let apart = ["--git-dir", &git_dir, "--work-tree", dir.to_str().unwrap()];
    let args = [&apart[..], &["update-ref", "-d", "refs/hangar/policy"]].concat();
    let said = env.git_said(env.root(), &args);
    said.refused("refs/hangar/policy", "is never deleted");

    env.git(env.root(), &["clone", "-q", "--mirror", "repo", "bare.git"]);
    let bare = env.root().join("bare.git");
    let report = env.json(&bare, &["init", "--hooks"]);
    assert_eq!(actions(&report), both("installed", false));
    let said = env.git_said(&bare, &["update-ref", "-d", "refs/hangar/policy"]);
    said.refused("refs/hangar/policy", "is never deleted");
    env.hangar(&bare, &["deinit", "--yes"]).success();
    assert!(!bare.join("hooks/pre-push").exists());
}

#[test]
fn doctor_says_whether_hooks_are_in_place() {
    let (env, dir) = ready();
    let check = |found: bool| {
        let args = ["doctor", "--json"];
        let ran = if found {
            env.hangar_found(&dir, &args)
        } else {
            env.hangar(&dir, &args)
        };
        let checks = ran.json()["checks"].as_array().unwrap().clone();
        let check = checks
            .into_iter()
            .find(|check| check["name"] == "hooks")
            .unwrap();
        (
            check["state"].clone(),
            check["detail"].as_str().unwrap().to_owned(),
        )
    };
    let (state, detail) = check(true);
    assert!(
        state == "ok" && detail.contains("hangar init --hooks"),
        "{detail}"
    );
    env.hangar(&dir, &["init", "--hooks"]).success();
    let (state, detail) = check(true);
    assert_eq!(
        (state, detail.as_str()),
        (json!("ok"), "pre-push, reference-transaction in place")
    );
    let (state, detail) = check(false);
    assert!(state == "warn" && detail.contains("PATH"), "{detail}");
    let push = dir.join(".git/hooks/pre-push");
    let text = fs::read_to_string(&push).unwrap() + "# older\n";
    script(&push, &text, 0o755);
    let (state, detail) = check(true);
    assert!(
        state == "warn" && detail.contains("pre-push is not as this version"),
        "{detail}"
    );
    script(&push, OWN, 0o755);
    let (state, detail) = check(true);
    assert!(
        state == "warn" && detail.contains("pre-push not"),
        "{detail}"
    );
}
