//! Remotes that take less than everything: what is not published is named, with what helps.

use crate::common::hub::{Hub, task_ref};
use crate::common::write;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// A hook of a repository, in shell.
pub(crate) fn hook(bare: &Path, name: &str, body: &str) {
    let path = bare.join("hooks").join(name);
    write(&path, &format!("#!/bin/sh\n{body}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// As some hosts say it.
const BRANCHES_ONLY: &str =
    "case $1 in refs/heads/*) ;; *) echo '403: only branches' >&2; exit 1;; esac";

#[test]
fn a_remote_that_may_only_be_read_says_what_it_lacks() {
    let (hub, first) = Hub::new();
    let second = hub.clone("second");
    let task = hub.task(&first, "Shared");
    hub.sync(&first).success();
    hook(
        &hub.bare,
        "pre-receive",
        "echo read-only mirror >&2; exit 1",
    );
    let mine = hub.task(&second, "Mine");
    let report = hub.sync(&second).exits(7).json();
    assert_eq!(report["fetched"], json!([task_ref(&task)]));
    assert_eq!(report["unpublished"], json!([task_ref(&mine)]));
    assert_eq!(report["whole"], false);
    let ran = hub.env.hangar(&second, &["sync"]).exits(7);
    assert!(ran.stdout.contains("not pushed 1 ref: "), "{ran}");
    assert!(ran.stdout.contains(&task_ref(&mine)), "{ran}");
    assert!(
        ran.stdout.contains("the right to push refs/hangar/*"),
        "{ran}"
    );
    assert!(!ran.stdout.contains("--prefix"), "{ran}");
}

#[test]
fn a_host_that_takes_branches_only_gets_branches_by_one_command() {
    let (hub, first) = Hub::new();
    let env = &hub.env;
    let task = hub.task(&first, "Shared");
    env.git(env.root(), &["clone", "-q", "--bare", "first", "host.git"]);
    let host = env.root().join("host.git");
    env.git(&first, &["remote", "add", "host", host.to_str().unwrap()]);
    hook(&host, "update", BRANCHES_ONLY);
    let ran = env.hangar(&first, &["sync", "host"]).exits(7);
    assert!(
        ran.stdout.contains("hangar sync host --prefix branches"),
        "{ran}"
    );
    assert!(ran.stdout.contains("refs/heads/hangar-state/"), "{ran}");
    let moved = ["sync", "host", "--prefix", "branches", "--json"];
    let report = env.hangar(&first, &moved).success().json();
    assert_eq!(report["prefix"], "refs/heads/hangar-state/");
    assert_eq!(
        report["pushed"],
        json!(["refs/hangar/policy", task_ref(&task)])
    );
    let names = env.git(&host, &["for-each-ref", "--format=%(refname)"]);
    assert!(!names.contains("refs/hangar/"), "{names}");
    // The clone itself keeps its refs where they are, and so does one that joins.
    assert_eq!(env.git(&first, &["branch", "--list", "hangar-state/*"]), "");
    env.git(env.root(), &["clone", "-q", "host.git", "second"]);
    let second = env.root().join("second");
    env.hangar(&second, &["init", "--yes"]).success();
    hub.sync(&second).success();
    assert_eq!(hub.show(&second, &task)["title"], "Shared");
    hub.edit(&second, &task, "Edited");
    hub.sync(&second).success();
    env.hangar(&first, &["sync", "host"]).success();
    assert_eq!(hub.show(&first, &task)["title"], "Edited");
}

/// So many tasks from one file; their refs, in the order of a push.
fn tasks(hub: &Hub, dir: &Path, count: usize) -> Vec<String> {
    let line = |number| {
        format!(
            "{}\n",
            json!({"title": format!("Task {number}"), "flow": "plain"})
        )
    };
    let lines: String = (0..count).map(line).collect();
    let file = hub.env.root().join("tasks.jsonl");
    write(&file, &lines);
    let args = ["task", "new", "--from", file.to_str().unwrap()];
    hub.env.hangar(dir, &args).success();
    let refs = hub.env.git(
        dir,
        &["for-each-ref", "--format=%(refname)", "refs/hangar/tasks/"],
    );
    let mut refs: Vec<String> = refs.lines().map(str::to_owned).collect();
    refs.sort();
    refs
}

/// How often somebody pushed, by a line of a hook for each time.
fn pushes(bare: &Path) -> usize {
    fs::read_to_string(bare.join("pushes")).map_or(0, |lines| lines.lines().count())
}

#[test]
fn a_group_of_refs_that_is_refused_keeps_no_other_away() {
    let (hub, first) = Hub::new();
    let refs = tasks(&hub, &first, 40);
    let (bad, good) = refs.split_at(20);
    write(&hub.bare.join("bad"), &format!("{}\n", bad.join("\n")));
    let body = "if grep -qx \"$1\" bad; then echo 'not this one' >&2; exit 1; fi";
    hook(&hub.bare, "update", body);
    let report = hub.sync(&first).exits(7).json();
    assert_eq!(report["pushed"], json!(good));
    assert_eq!(report["unpublished"], json!(bad));
    assert_eq!(report["whole"], false);
}

#[test]
fn a_remote_that_takes_nothing_is_asked_a_few_times_only() {
    let (hub, first) = Hub::new();
    let refs = tasks(&hub, &first, 40);
    hook(&hub.bare, "pre-receive", "echo one >> pushes");
    hook(&hub.bare, "update", "echo 'nothing today' >&2; exit 1");
    let report = hub.sync(&first).exits(7).json();
    assert_eq!(report["unpublished"], json!(refs));
    let asked = pushes(&hub.bare);
    assert!((1..=32).contains(&asked), "{asked} pushes");
}

#[test]
fn refused_refs_that_lie_everywhere_keep_no_other_away_for_ever() {
    let (hub, first) = Hub::new();
    let refs = tasks(&hub, &first, 64);
    let of = |bad: bool| {
        let all = refs.iter().enumerate();
        let some = all.filter(move |(at, _)| (at % 4 == 1) == bad);
        some.map(|(_, name)| name.clone()).collect::<Vec<_>>()
    };
    let (bad, good) = (of(true), of(false));
    write(&hub.bare.join("bad"), &format!("{}\n", bad.join("\n")));
    // All of a push are refused where one is: every large piece holds one.
    let body = "while read -r old new name; do if grep -qx \"$name\" bad; then exit 1; fi; done";
    hook(&hub.bare, "pre-receive", body);
    for _ in 0..8 {
        if hub.refs(&hub.bare).lines().count() > good.len() {
            break;
        }
        hub.sync(&first).exits(7);
    }
    let there = hub.refs(&hub.bare);
    for name in &good {
        assert!(there.contains(name.as_str()), "{name} is not there");
    }
    for name in &bad {
        assert!(!there.contains(name.as_str()), "{name} is there");
    }
}
