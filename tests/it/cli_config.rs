//! What is set up, as it is listed, checked and changed: keys, policy, configuration, harnesses.

use crate::cli_help::validate;
use crate::common::{TestEnv, write};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

#[test]
fn keys_are_listed_with_their_holder_and_made_without_overwriting() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    let list = env.json(&dir, &["key", "list"]);
    validate("key-list", &list);
    assert_eq!(list["keys"][0]["principal"], "alice");
    assert_eq!(list["machine"][1]["principal"], "alice-grader");
    let made = env.json(&dir, &["key", "new", "--file", "k"]);
    validate("key-new", &made);
    let before = fs::read(dir.join("k")).unwrap();
    let ran = env.hangar(&dir, &["key", "new", "--file", "k"]).exits(4);
    assert!(ran.stderr.contains("exists already"), "{ran}");
    assert_eq!(fs::read(dir.join("k")).unwrap(), before);
    // Listing needs no repository.
    env.hangar(env.home(), &["key", "list"]).success();
}

#[test]
fn the_policy_reads_as_a_page() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    insta::assert_snapshot!(env.hangar(&dir, &["policy", "show"]).snapshot(&[]));
    let log = env.json(&dir, &["policy", "log"]);
    validate("policy-log", &log);
    assert_eq!(log["versions"][0]["changes"][0], "founded");
}

#[test]
fn configuration_is_listed_with_its_origin_and_changed_for_the_user() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    let set = env.json(&dir, &["config", "set", "lanes.writer", "mine:high,codex"]);
    validate("config-set", &set);
    let list = env.json(&dir, &["config", "list"]);
    validate("config-list", &list);
    let value = |key: &str| {
        let all = list["values"].as_array().unwrap();
        all.iter().find(|one| one["key"] == key).unwrap().clone()
    };
    // A script gets JSON in any case.
    let ran = env.hangar(&dir, &["config", "get", "nope.x", "--json"]);
    let error = ran.exits(1).json_error();
    assert_eq!(error["error"]["code"], 1);
    let near = env.hangar(&dir, &["config", "get", "lanes.writr"]).exits(1);
    assert!(near.stderr.contains("`lanes.writr` is not set"), "{near}");
    assert!(near.stderr.contains("lanes.writer"), "{near}");
    let below = env.hangar(&dir, &["config", "get", "lanes"]).exits(1);
    assert!(below.stderr.contains("lanes.writer"), "{below}");
    assert_eq!(value("lanes.writer")["value"], "[\"mine:high\", \"codex\"]");
    let origin = value("lanes.writer")["origin"].as_str().unwrap().to_owned();
    assert!(
        origin.starts_with("user ") && origin.ends_with("config.toml:2"),
        "{origin}"
    );
    assert!(
        value("task.flow")["origin"]
            .as_str()
            .unwrap()
            .starts_with("repository hangar.toml:")
    );
    let ran = env
        .hangar(&dir, &["config", "list", "--show-origin"])
        .success();
    assert!(
        ran.stdout
            .contains("lanes.writer\t[\"mine:high\", \"codex\"]\tuser "),
        "{ran}"
    );
    let get = env.json(&dir, &["config", "get", "remote.name"]);
    validate("config-get", &get);
    env.hangar(&dir, &["config", "get", "no.such"]).exits(1);
    env.hangar(&dir, &["config", "set", "task.flow", "plain"])
        .exits(2);
    env.hangar(&dir, &["config", "set", "lanes.wirter", "x"])
        .exits(2);
    env.write_home(".config/hangar/config.toml", "[lane]\nwriter = [\"x\"]\n");
    let ran = env.hangar(&dir, &["config", "list"]).success();
    assert!(ran.stderr.contains("did you mean `lanes`"), "{ran}");
}

#[test]
fn harnesses_are_listed_and_checked() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    let (one, two) = (env.root().join("one"), env.root().join("two"));
    for file in [&one, &two] {
        write(file, "#!/bin/sh\n");
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let config = format!(
        "[harness.a]\nkind = \"command\"\ncommand = [\"{}\"]\n[harness.b]\nkind = \"command\"\ncommand = [\"{}\"]\n[lanes]\nwriter = [\"a\"]\nimplementer = [\"b\"]\n",
        one.display(),
        two.display()
    );
    env.write_home(".config/hangar/config.toml", &config);
    let list = env.json(&dir, &["harness", "list"]);
    validate("harness-list", &list);
    assert_eq!(list["pair"]["ready"], true, "{list:#}");
    let test = env.json(&dir, &["harness", "test"]);
    validate("harness-test", &test);
    fs::remove_file(&two).unwrap();
    env.hangar(&dir, &["harness", "test", "a"]).success();
    env.hangar(&dir, &["harness", "test", "b"]).exits(1);
    env.hangar(&dir, &["harness", "test", "c"]).exits(2);
    // A lane without a harness is named by its own name.
    env.json(&dir, &["config", "set", "lanes.writer", "x, y"]);
    let list = env.json(&dir, &["harness", "list"]);
    for name in ["x", "y"] {
        let rows = list["harnesses"].as_array().unwrap();
        let row = rows.iter().find(|row| row["name"] == name).unwrap();
        let detail = row["detail"].as_str().unwrap();
        assert!(detail.contains(&format!("`{name}`")), "{detail}");
    }
    let list = env.json(&dir, &["harness", "list"]);
    assert_eq!(list["pair"]["ready"], false);
}

#[test]
fn doctor_says_what_is_missing_and_ends_with_3_until_nothing_is() {
    let env = TestEnv::new();
    let dir = env.repo("repo", &[("tests/test_a.py", "import unittest\n")]);
    let check = |report: &serde_json::Value, name: &str| {
        let all = report["checks"].as_array().unwrap();
        let found = all.iter().find(|check| check["name"] == name);
        found.map_or("absent".to_owned(), |check| {
            check["state"].as_str().unwrap().to_owned()
        })
    };
    let report = env.hangar(&dir, &["doctor", "--json"]).exits(3).json();
    validate("doctor", &report);
    assert_eq!(report["ready"], false);
    assert_eq!(check(&report, "git"), "ok");
    assert_eq!(check(&report, "policy"), "missing");
    assert!(
        report["without_sandbox"]
            .as_array()
            .unwrap()
            .contains(&"verify".into())
    );
    env.hangar(&dir, &["init"]).success();
    let report = env.hangar(&dir, &["doctor", "--json"]).exits(3).json();
    assert_eq!(check(&report, "policy"), "ok");
    assert_eq!(check(&report, "hangar.toml"), "missing");
    let text = env.hangar(&dir, &["doctor"]).exits(3);
    assert!(
        text.stdout.contains("git add hangar.toml && git commit"),
        "{text}"
    );
    env.commit(&dir, "set up");
    let ran = env.hangar(&dir, &["doctor", "--json"]);
    let report = ran.json();
    for name in [
        "your key",
        "worker key",
        "grader key",
        "hangar.toml",
        "reading hidden tests",
    ] {
        assert_eq!(check(&report, name), "ok", "{name}");
    }
    // Whether sandboxes work is the machine's; the answer and the exit code must agree.
    let ready = report["ready"].as_bool().unwrap();
    assert_eq!(ran.code, Some(if ready { 0 } else { 3 }), "{ran}");
    let text = env.hangar(&dir, &["doctor"]);
    assert!(
        text.stdout
            .contains("sandbox provider none: isolates nothing\n"),
        "{text}"
    );
    for part in ["0 of 1", "no limit was asked for", "not tried"] {
        assert!(!text.stdout.contains(part), "{part}: {text}");
    }
    // Nothing was changed by looking.
    assert_eq!(env.git(&dir, &["status", "--porcelain"]), "");
    let outside = env
        .hangar(env.home(), &["doctor", "--json"])
        .exits(3)
        .json();
    assert_eq!(check(&outside, "repository"), "missing");
}

#[test]
fn a_pull_request_is_said_to_be_a_branch() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    let file = dir.join("hangar.toml");
    let text = fs::read_to_string(&file).unwrap();
    assert!(!text.contains("draft pull request"), "{text}");
    let quiet = env.hangar(&dir, &["task", "new", "x", "--plain"]).success();
    assert!(!quiet.stderr.contains("pull requests"), "{quiet}");
    write(&file, &text.replace("as = \"branch\"", "as = \"pr\""));
    env.commit(&dir, "pull requests");
    let said = "pull requests are not made yet; a branch is delivered";
    let ran = env.hangar(&dir, &["task", "new", "y", "--plain"]).success();
    assert_eq!(ran.stderr.matches(said).count(), 1, "{ran}");
    let ran = env.hangar(&dir, &["doctor"]);
    assert!(ran.stdout.contains(said), "{ran}");
}

#[test]
fn nobody_is_told_about_programs_that_they_never_configured() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    for args in [&["harness", "list"][..], &["doctor"]] {
        let ran = env.hangar(&dir, args);
        for text in [&ran.stdout, &ran.stderr] {
            assert!(!text.contains("claude") && !text.contains("codex"), "{ran}");
        }
    }
}
