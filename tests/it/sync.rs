//! Clones that share their state through a Git remote.

use super::common::hub::{Hub, task_ref};
use super::common::{Ran, write};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

#[test]
fn what_one_clone_writes_another_gets() {
    let (hub, first) = Hub::new();
    let second = hub.clone("second");
    let task = hub.task(&first, "Shared");
    let sent = hub.sync(&first).success().json();
    assert_eq!(sent["pushed"], serde_json::json!([task_ref(&task)]));
    let got = hub.sync(&second).success().json();
    assert_eq!(got["fetched"], serde_json::json!([task_ref(&task)]));
    assert_eq!(hub.show(&second, &task)["title"], "Shared");
    let idle = hub.sync(&second).success().json();
    for list in ["fetched", "joined", "pushed"] {
        assert_eq!(idle[list], serde_json::json!([]), "{list}");
    }
    let text = hub.env.hangar(&second, &["sync"]).success();
    assert_eq!(text.text(), "up to date with origin");
    assert_eq!(hub.refs(&first), hub.refs(&second));
}

#[test]
fn edits_apart_are_joined_and_every_clone_sees_the_same() {
    let (hub, first) = Hub::new();
    let task = hub.task(&first, "Shared");
    hub.sync(&first).success();
    let second = hub.clone("second");
    hub.edit(&first, &task, "From the first");
    hub.edit(&second, &task, "From the second");
    hub.sync(&first).success();
    let joined = hub.sync(&second).success().json();
    assert_eq!(joined["joined"], serde_json::json!([task_ref(&task)]));
    hub.sync(&first).success();
    assert_eq!(hub.show(&first, &task), hub.show(&second, &task));
    assert_eq!(hub.refs(&first), hub.refs(&second));
    assert_eq!(hub.refs(&first), hub.refs(&hub.bare));
    // Both edits are there, and the next one rests on both.
    hub.edit(&first, &task, "After the join");
    hub.sync(&first).success();
    hub.sync(&second).success();
    let show = hub.show(&second, &task);
    assert_eq!(show["title"], "After the join");
    assert_eq!(show["timeline"].as_array().unwrap().len(), 4);
    hub.env.git(&hub.bare, &["fsck", "--strict"]);
}

#[test]
fn a_remote_that_was_removed_is_asked_for_nothing() {
    let (hub, first) = Hub::new();
    hub.task(&first, "Shared");
    hub.sync(&first).success();
    hub.env.git(&first, &["remote", "remove", "origin"]);
    let ran = hub.env.hangar(&first, &["inbox"]).success();
    assert!(!ran.stderr.contains("origin"), "{ran}");
    // One that is there and does not answer is said.
    let nowhere = ["remote", "add", "origin", "/nowhere/at/all"];
    hub.env.git(&first, &nowhere);
    let ran = hub.env.hangar(&first, &["inbox"]).success();
    assert!(
        ran.stderr.contains("`origin` was not asked for news"),
        "{ran}"
    );
}

#[test]
fn two_clones_make_the_same_join_of_the_same_heads() {
    let (hub, first) = Hub::new();
    let task = hub.task(&first, "Shared");
    hub.sync(&first).success();
    let second = hub.clone("second");
    hub.edit(&first, &task, "From the first");
    hub.edit(&second, &task, "From the second");
    // Two hubs that each know one side; neither clone can push to the other's.
    hub.env.git(
        hub.env.root(),
        &["clone", "-q", "--mirror", "first", "one.git"],
    );
    hub.env.git(
        hub.env.root(),
        &["clone", "-q", "--mirror", "second", "two.git"],
    );
    let address = |name: &str| hub.env.root().join(name).display().to_string();
    for (clone, other) in [(&first, "two.git"), (&second, "one.git")] {
        let args = ["sync", &address(other), "--json"];
        let report = hub.env.hangar(clone, &args).success().json();
        assert_eq!(report["joined"], serde_json::json!([task_ref(&task)]));
    }
    assert_eq!(hub.refs(&first), hub.refs(&second));
    let join = hub
        .env
        .git(&first, &["cat-file", "commit", &task_ref(&task)]);
    let (head, message) = join.split_once("\n\n").unwrap();
    let lines: Vec<_> = head.lines().collect();
    assert_eq!(lines[0], "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904");
    assert!(
        lines[1].starts_with("parent ") && lines[1] < lines[2],
        "{join}"
    );
    assert_eq!(lines[3], "author hangar <join@hangar.invalid> 0 +0000");
    assert_eq!(lines[4], "committer hangar <join@hangar.invalid> 0 +0000");
    assert_eq!((lines.len(), message), (5, "join"));
}

#[test]
fn what_the_remote_lost_is_said_and_put_back() {
    let (hub, first) = Hub::new();
    let task = hub.task(&first, "Shared");
    hub.edit(&first, &task, "Edited");
    hub.sync(&first).success();
    let (whole, name) = (hub.refs(&hub.bare), task_ref(&task));
    let git = |args: &[&str]| hub.env.git(&hub.bare, args);
    let heal = |what: &str| {
        let report = hub.sync(&first).success().json();
        let losses = report["losses"].as_array().unwrap();
        let loss = losses.iter().find(|loss| loss["ref"] == name.as_str());
        assert_eq!(loss.unwrap()["what"], what, "{report}");
        assert_eq!(loss.unwrap()["healed"], true, "{report}");
        assert_eq!(hub.refs(&hub.bare), whole, "{what}");
        hub.sync(&first).success().json()["losses"].clone()
    };
    git(&["update-ref", "-d", &name]);
    assert_eq!(heal("deleted"), Value::Null);
    git(&["update-ref", &name, &format!("{name}~1")]);
    assert_eq!(heal("rolled-back"), Value::Null);
    // An ordinary clone that mirrors what it has empties everything.
    hub.env
        .git(hub.env.root(), &["clone", "-q", "hub.git", "plain"]);
    let plain = hub.env.root().join("plain");
    hub.env.git(&plain, &["push", "-q", "--mirror", "origin"]);
    assert_eq!(hub.refs(&hub.bare), "");
    heal("deleted");
    // A history without the events that were there.
    let other = hub.stranger(None, "event.toml", "x");
    git(&["update-ref", &name, &other]);
    let report = hub.sync(&first).exits(1).json();
    assert_eq!(report["losses"][0]["what"], "rewritten", "{report}");
    assert_eq!(report["not_applied"][0]["kind"], "quarantined", "{report}");
    assert_eq!(hub.show(&first, &task)["title"], "Edited");
    hub.sync(&first).success();
}

#[test]
fn what_is_not_believed_is_named_and_changes_nothing() {
    let (hub, first) = Hub::new();
    let task = hub.task(&first, "Shared");
    hub.sync(&first).success();
    let before = hub.show(&first, &task);
    let git = |args: &[&str]| hub.env.git(&hub.bare, args);
    let head = git(&["rev-parse", &task_ref(&task)]);
    let junk = hub.stranger(Some(&head), "event.toml", "format = 1\n");
    git(&["update-ref", &task_ref(&task), &junk]);
    let foreign = "a".repeat(52);
    git(&["update-ref", &task_ref(&foreign), &junk]);
    git(&[
        "update-ref",
        &format!("refs/hangar/sealed/{foreign}"),
        &junk,
    ]);
    git(&["update-ref", "refs/hangar/tasks/x", &junk]);

    let report = hub.sync(&first).exits(1).json();
    let mut kinds: Vec<_> = report["not_applied"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["kind"].as_str().unwrap())
        .collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["pending", "quarantined", "ref"], "{report}");
    assert_eq!(
        report["unknown"],
        serde_json::json!(["refs/hangar/tasks/x"])
    );
    let mut after = hub.show(&first, &task);
    let faults = after.as_object_mut().unwrap().remove("faults");
    assert_eq!(faults.unwrap().as_array().unwrap().len(), 1);
    assert_eq!(after, before);
    // What could not be taken stays as it is there.
    assert_eq!(git(&["rev-parse", &task_ref(&foreign)]), junk);
    hub.edit(&first, &task, "Goes on");
    // It was named.
    let report = hub.sync(&first).success().json();
    assert_eq!(
        report["left_alone"].as_array().unwrap().len(),
        2,
        "{report}"
    );
    assert_eq!(git(&["rev-parse", &task_ref(&foreign)]), junk);
    let second = hub.env.root().join("second");
    hub.env
        .git(hub.env.root(), &["clone", "-q", "hub.git", "second"]);
    hub.env.hangar(&second, &["init", "--yes"]).success();
    hub.sync(&second).exits(1);
    assert_eq!(hub.show(&second, &task)["title"], "Goes on");
}

#[test]
fn a_remote_that_takes_nothing_is_still_read() {
    let (hub, first) = Hub::new();
    let second = hub.clone("second");
    let task = hub.task(&first, "Shared");
    hub.sync(&first).success();
    let hook = hub.bare.join("hooks/pre-receive");
    write(
        &hook,
        "#!/bin/sh\nprintf 'go \\033[2Jaway\\n' >&2\necho stale info on page 3 >&2\nexit 1\n",
    );
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    hub.sync(&second).success();
    hub.edit(&second, &task, "Mine");
    let report = hub.sync(&second).exits(7).json();
    let why = report["not_pushed"].as_str().unwrap();
    assert!(why.contains("pre-receive hook declined"), "{why}");
    // What the server says of itself is shown, and decides nothing.
    assert!(
        why.ends_with("it says: go [2Jaway; stale info on page 3"),
        "{why}"
    );
    let ran = hub.env.hangar(&second, &["sync"]).exits(7);
    assert!(ran.stdout.contains("go [2Jaway; stale info"), "{ran}");
    fs::remove_file(&hook).unwrap();
    hub.sync(&second).success();
    hub.sync(&first).success();
    assert_eq!(hub.show(&first, &task)["title"], "Mine");
}

/// A batch is one transaction here; one ref that can't be taken, or that somebody holds back, is none of
/// the others' business.
#[test]
fn many_tasks_come_at_once_and_the_odd_one_is_named() {
    let (hub, first) = Hub::new();
    let second = hub.clone("second");
    let mut tasks: Vec<_> = (0..3)
        .map(|n| hub.task(&first, &format!("Task {n}")))
        .collect();
    tasks.sort();
    let both = hub.task(&first, "Both");
    hub.sync(&first).success();
    hub.sync(&second).success();
    hub.edit(&first, &both, "From the first");
    hub.edit(&second, &both, "From the second");
    let more: Vec<_> = (0..40)
        .map(|n| hub.task(&first, &format!("More {n}")))
        .collect();
    hub.edit(&first, &tasks[0], "Edited");
    hub.sync(&first).success();
    let git = |args: &[&str]| hub.env.git(&hub.bare, args);
    let junk = hub.stranger(None, "event.toml", "format = 1\n");
    git(&["update-ref", &task_ref(&more[7]), &junk]);
    let report = hub.sync(&second).exits(1).json();
    assert_eq!(report["not_applied"][0]["ref"], task_ref(&more[7]));
    assert_eq!(report["not_applied"].as_array().unwrap().len(), 1);
    assert_eq!(report["fetched"].as_array().unwrap().len(), 40, "{report}");
    assert_eq!(report["joined"], serde_json::json!([task_ref(&both)]));
    for (at, id) in more.iter().enumerate().filter(|(at, _)| *at != 7) {
        assert_eq!(hub.show(&second, id)["title"], format!("More {at}"));
    }
    assert_eq!(hub.show(&second, &tasks[0])["title"], "Edited");
    hub.env
        .hangar(&second, &["task", "show", &more[7]])
        .exits(2);
    // The first joins it with what it has and names it; then everybody has everything.
    hub.sync(&first).exits(1);
    hub.sync(&second).exits(1);
    assert_eq!(hub.show(&second, &more[7])["title"], "More 7");
    assert_eq!(hub.refs(&first), hub.refs(&second));
    // Every mark was noted.
    let marks = fs::read_to_string(second.join(".git/hangar/heads.log")).unwrap();
    for id in &more {
        assert!(marks.contains(&task_ref(id)), "{marks}");
    }
}

#[test]
fn a_remote_that_is_not_there_is_said() {
    let (hub, first) = Hub::new();
    let none = hub.env.hangar(&first, &["sync", "nowhere"]).exits(3);
    assert!(none.stderr.contains("no remote called `nowhere`"), "{none}");
    let gone = hub.env.root().join("gone.git").display().to_string();
    hub.env.hangar(&first, &["sync", &gone]).exits(7);
    hub.env.hangar(&first, &["sync", "--offline"]).exits(2);
}

#[test]
fn commands_that_decide_publish_and_those_that_show_fetch() {
    let (hub, first) = Hub::new();
    let second = hub.clone("second");
    let key = hub.env.add_key("carol");
    let add = ["policy", "add", "carol", "--key", &key];
    hub.env.hangar(&first, &add).success();
    // The other clone shows it without a sync of its own, unless it is told to stay offline.
    let verify = |options: &[&str]| {
        let args: Vec<_> = options
            .iter()
            .chain(&["verify", "--all", "--json"])
            .copied()
            .collect();
        hub.env.hangar(&second, &args)
    };
    let says = |ran: Ran, version: u32| {
        let text = format!("version {version} ");
        assert!(ran.stdout.contains(&text), "{text}: {ran}");
    };
    says(verify(&["--offline"]), 1);
    says(verify(&[]), 2);
    // What can't be published or fetched is said, and nothing else fails.
    fs::rename(&hub.bare, hub.env.root().join("away")).unwrap();
    let key = hub.env.add_key("dave");
    let add = ["policy", "add", "dave", "--key", &key];
    let ran = hub.env.hangar(&first, &add).success();
    assert!(ran.stderr.contains("was not asked for news"), "{ran}");
    assert!(
        ran.stderr.contains("recorded here and not published"),
        "{ran}"
    );
    let quiet = hub.env.hangar(&first, &["--offline", "verify", "--all"]);
    assert_eq!(quiet.stderr, "");
    fs::rename(hub.env.root().join("away"), &hub.bare).unwrap();
    hub.sync(&first).success();
    says(verify(&[]), 3);
    // Who asked for that is told what is left to do.
    let key = hub.env.add_key("erin");
    let add = ["--offline", "policy", "add", "erin", "--key", &key];
    let ran = hub.env.hangar(&first, &add).success();
    let left = "not published to `origin`, since --offline was given";
    assert!(ran.stderr.contains(left), "{ran}");
}

#[test]
#[ignore = "heavy: twelve clones with a dozen processes each"]
fn twelve_clones_that_write_and_sync_at_once_lose_nothing() {
    let (hub, first) = Hub::new();
    let task = hub.task(&first, "Shared");
    hub.sync(&first).success();
    let clones: Vec<_> = (0..12)
        .map(|at| hub.clone(&format!("clone-{at}")))
        .collect();
    let script = "for n in 1 2 3 4; do \"$H\" -q task comment \"$T\" \"$C-$n\" && \"$H\" -q sync || exit 1; done";
    let start = |(at, dir): (usize, &PathBuf)| {
        let mut command = hub.env.command("sh", dir);
        command
            .args(["-c", script])
            .env("H", env!("CARGO_BIN_EXE_hangar"))
            .env("T", &task)
            .env("C", at.to_string())
            .stderr(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null());
        command.spawn().unwrap()
    };
    let running: Vec<_> = clones.iter().enumerate().map(start).collect();
    super::common::all_end_well(running);
    for dir in &clones {
        hub.sync(dir).success();
    }
    let (shown, refs) = (hub.show(&clones[0], &task), hub.refs(&clones[0]));
    let comments = shown["timeline"].as_array().unwrap().iter();
    let texts: std::collections::BTreeSet<_> =
        comments.filter_map(|one| one["text"].as_str()).collect();
    assert_eq!(texts.len(), 48, "{texts:?}");
    for dir in &clones {
        assert_eq!(hub.show(dir, &task), shown);
        assert_eq!(hub.refs(dir), refs);
    }
    hub.env.git(&hub.bare, &["fsck", "--strict"]);
}
