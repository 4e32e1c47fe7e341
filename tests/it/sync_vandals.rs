//! What somebody who can push, without a key, does to the hub: it is named, and keeps nobody else from
//! syncing anything else.

use super::common::git::git_input;
use super::common::hub::{Hub, task_ref};
use std::fs;
use std::path::Path;

const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// An object of the hub as git would not make it.
fn object(hub: &Hub, kind: &str, bytes: &[u8]) -> String {
    let path = hub.env.root().join("object");
    fs::write(&path, bytes).unwrap();
    let path = path.to_str().unwrap();
    let args = ["hash-object", "-t", kind, "--literally", "-w", path];
    hub.env.git(&hub.bare, &args)
}

fn head(hub: &Hub, name: &str) -> String {
    hub.env.git(&hub.bare, &["rev-parse", name])
}

fn set(hub: &Hub, name: &str, object: &str) {
    hub.env.git(&hub.bare, &["update-ref", name, object]);
}

/// Two clones go on with another task; both say `code`, and everything else works.
#[track_caller]
fn go_on(act: impl FnOnce(&Hub, &str), code: i32) {
    let (hub, first) = Hub::new();
    let task = hub.task(&first, "Attacked");
    let other = hub.task(&first, "Other");
    hub.sync(&first).success();
    let second = hub.clone("second");
    act(&hub, &task);
    hub.edit(&first, &other, "Still shared");
    for dir in [&first, &second] {
        hub.sync(dir).exits(code);
    }
    for dir in [&first, &second] {
        assert_eq!(hub.show(dir, &other)["title"], "Still shared");
        assert_eq!(hub.show(dir, &task)["title"], "Attacked");
        hub.env.hangar(dir, &["task", "list"]).success();
        hub.env.hangar(dir, &["policy", "show"]).success();
    }
}

#[test]
fn a_blob_in_place_of_a_task() {
    go_on(
        |hub, task| set(hub, &task_ref(task), &object(hub, "blob", b"x")),
        0,
    );
}

#[test]
fn what_stays_unpublished_beside_a_ref_that_can_not_be_taken_is_said() {
    let (hub, first) = Hub::new();
    hub.sync(&first).success();
    let there = head(&hub, "refs/hangar/policy");
    let forged = hub.stranger(Some(&there), "members.toml", "x");
    set(&hub, "refs/hangar/policy", &forged);
    let more = ["policy", "edit", "--set", "max_rounds=4"];
    let changed = hub.env.hangar(&first, &more).success();
    let said = format!("{}{}", changed.stdout, changed.stderr);
    assert!(said.contains("not published"), "{changed}");
    // It fetched and published, and met it twice.
    let named = said.matches("without effect here").count();
    assert_eq!(named, 1, "{changed}");
    let report = hub.sync(&first).exits(1).json();
    assert_eq!(
        report["unpublished"],
        serde_json::json!(["refs/hangar/policy"])
    );
    let ran = hub.env.hangar(&first, &["sync"]).exits(1);
    assert!(ran.stdout.contains("not pushed 1 ref"), "{ran}");
    // The way out that was told.
    let out = "git push --no-verify --force origin refs/hangar/policy:refs/hangar/policy";
    assert!(ran.stdout.contains(out), "{ran}");
    // Deleted, a clone that is behind would put an old one in its place.
    assert!(!ran.stdout.contains("--delete"), "{ran}");
    hub.env.git(
        &first,
        &[
            "push",
            "-q",
            "--no-verify",
            "--force",
            "origin",
            "refs/hangar/policy:refs/hangar/policy",
        ],
    );
    let healed = hub.sync(&first).json();
    assert_eq!(healed.get("unpublished"), None, "{healed}");
    assert_eq!(
        head(&hub, "refs/hangar/policy"),
        hub.env.git(&first, &["rev-parse", "refs/hangar/policy"])
    );
}

#[test]
fn branches_that_look_like_ours() {
    for name in ["refs/hangar/policy", "hangar-state/policy"] {
        let branch = |hub: &Hub, _: &str| {
            hub.env.git(&hub.bare, &["branch", name, "main"]);
        };
        go_on(branch, 0);
    }
}

#[test]
fn an_object_that_git_refuses() {
    let act = |hub: &Hub, task: &str| {
        let head = head(hub, &task_ref(task));
        let text = format!("tree {EMPTY_TREE}\nparent {head}\nauthor x\n\nx\n");
        let commit = object(hub, "commit", text.as_bytes());
        fs::write(hub.bare.join(task_ref(task)), format!("{commit}\n")).unwrap();
    };
    go_on(act, 1);
}

#[test]
fn a_document_larger_than_the_format_allows() {
    let act = |hub: &Hub, task: &str| {
        let junk = hub.stranger(None, "run.toml", &"0".repeat(9 << 20));
        set(hub, &format!("refs/hangar/runs/{task}"), &junk);
    };
    go_on(act, 1);
}

#[test]
fn an_event_larger_than_the_format_allows_is_said_to_be_too_large() {
    let (hub, first) = Hub::new();
    let task = hub.task(&first, "Attacked");
    hub.sync(&first).success();
    let head = head(&hub, &task_ref(&task));
    let large = hub.stranger(Some(&head), "event.toml", &"0".repeat(2 << 20));
    set(&hub, &task_ref(&task), &large);
    let ran = hub.env.hangar(&first, &["sync"]).exits(1);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("larger than the format allows"), "{ran}");
    assert!(!flat.contains("is not signed"), "{ran}");
}

#[test]
fn empty_commits_that_are_no_joins() {
    for name in ["tasks", "policy"] {
        let act = |hub: &Hub, task: &str| {
            let name = match name {
                "tasks" => task_ref(task),
                _ => "refs/hangar/policy".to_owned(),
            };
            let head = head(hub, &name);
            let args = ["commit-tree", EMPTY_TREE, "-p", &head, "-m", "join"];
            let empty = hub.env.git(&hub.bare, &args);
            set(hub, &name, &empty);
        };
        go_on(act, 0);
    }
}

#[test]
fn a_ref_in_the_way_of_others() {
    let act = |hub: &Hub, _: &str| set(hub, "refs/hangar/sealed", &head(hub, "main"));
    go_on(act, 0);
}

/// Refs of tasks that are nowhere, so many that they are not fetched name by name.
fn many(hub: &Hub) {
    let junk = hub.stranger(None, "run.toml", "x");
    let id = |number: usize| {
        let digits = format!("{number:04}").into_bytes().into_iter();
        let letters: String = digits
            .map(|digit| char::from(digit - b'0' + b'b'))
            .collect();
        format!("{letters:a>52}")
    };
    let line = |number| format!("create refs/hangar/runs/{} {junk}\n", id(number));
    let lines: Vec<String> = (0..600).map(line).collect();
    git_input(
        &hub.bare,
        &["update-ref", "--stdin"],
        lines.concat().as_bytes(),
    );
}

/// What the clone last saw of the hub.
fn seen(hub: &Hub, dir: &Path, folder: &str) -> usize {
    let place = format!("refs/hangar-remote/origin/{folder}");
    let all = hub
        .env
        .git(dir, &["for-each-ref", "--format=%(refname)", &place]);
    all.lines().count()
}

#[test]
fn among_many_refs_one_that_git_refuses_or_that_is_in_the_way() {
    let broken = |hub: &Hub, task: &str| {
        let text = format!("tree {EMPTY_TREE}\nauthor x\n\nx\n");
        let commit = object(hub, "commit", text.as_bytes());
        fs::write(hub.bare.join(task_ref(task)), format!("{commit}\n")).unwrap();
    };
    let in_the_way = |hub: &Hub, _: &str| set(hub, "refs/hangar/sealed", &head(hub, "main"));
    let nothing = |_: &Hub, _: &str| {};
    type Act<'a> = &'a dyn Fn(&Hub, &str);
    let acts: [Act<'_>; 3] = [&nothing, &broken, &in_the_way];
    for act in acts {
        let (hub, first) = Hub::new();
        let task = hub.task(&first, "Attacked");
        hub.sync(&first).success();
        let second = hub.clone("second");
        let other = hub.task(&first, "Other");
        hub.sync(&first).success();
        many(&hub);
        act(&hub, &task);
        let report = hub.sync(&second).exits(1).json();
        assert_eq!(report["fetched"], serde_json::json!([task_ref(&other)]));
        let left = report["not_applied"].as_array().unwrap().iter();
        let (pending, odd): (Vec<_>, Vec<_>) = left.partition(|one| one["kind"] == "pending");
        assert_eq!(pending.len(), 600);
        let of_task = |one: &&serde_json::Value| one["ref"] == task_ref(&task);
        assert!(odd.iter().all(of_task), "{odd:?}");
        assert_eq!(seen(&hub, &second, "runs/"), 600);
        // It would keep every sealed version away.
        assert_eq!(seen(&hub, &second, "sealed"), 0);
        assert_eq!(hub.show(&second, &task)["title"], "Attacked");
    }
}

/// What a remote last showed is not worth waiting for the disk; a power cut may leave it empty.
#[test]
fn a_ref_of_the_remote_that_a_power_cut_left_empty() {
    let (hub, first) = Hub::new();
    let task = hub.task(&first, "Shared");
    hub.sync(&first).success();
    let second = hub.clone("second");
    hub.edit(&first, &task, "Edited");
    hub.sync(&first).success();
    hub.env.git(&second, &["pack-refs", "--all"]);
    let place = second.join(".git/refs/hangar-remote/origin/tasks");
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join(&task), "").unwrap();
    hub.sync(&second).success();
    assert_eq!(hub.show(&second, &task)["title"], "Edited");
    assert_eq!(hub.refs(&first), hub.refs(&second));
    // One of our own is never taken away.
    let own = second.join(".git").join(task_ref(&task));
    fs::write(&own, "").unwrap();
    assert_ne!(hub.sync(&second).code, Some(0));
    assert!(own.exists());
}

/// What Git does not let in was not looked at: it may be somebody's work.
#[test]
fn what_git_refuses_is_named_and_nobody_is_told_to_take_it_away() {
    let (hub, first) = Hub::new();
    let task = hub.task(&first, "Shared");
    hub.sync(&first).success();
    let before = head(&hub, &task_ref(&task));
    let text = format!("tree {EMPTY_TREE}\nparent {before}\nauthor x\n\nx\n");
    let commit = object(&hub, "commit", text.as_bytes());
    fs::write(hub.bare.join(task_ref(&task)), format!("{commit}\n")).unwrap();
    for _ in 0..2 {
        let ran = hub.env.hangar(&first, &["sync"]).exits(1);
        assert!(ran.stdout.contains("not pushed 1 ref"), "{ran}");
        assert!(!ran.stdout.contains("--delete"), "{ran}");
    }
}
