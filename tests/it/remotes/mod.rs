//! Remotes other than a folder: ssh and http, several of them, read-only ones, ones that anyone can
//! read. All on the loopback interface.

mod http;
mod http_server;
mod readers;
pub(crate) mod refusing;
mod several;
mod ssh;
mod ssh_server;

use crate::common::hub::Hub;
use std::path::{Path, PathBuf};

/// Syncs of two clones with the hub at another address: first push, fetch, no-op, a lost race.
pub(crate) fn works_like_a_folder(hub: &Hub, first: &Path, address: &str) {
    let env = &hub.env;
    env.git(first, &["remote", "set-url", "origin", address]);
    let second = clone_at(hub, "second", address);
    let task = hub.task(first, "Shared");
    let name = crate::common::hub::task_ref(&task);
    let sent = hub.sync(first).success().json();
    assert_eq!(sent["pushed"], serde_json::json!([name]));
    let got = hub.sync(&second).success().json();
    assert_eq!(got["fetched"], serde_json::json!([name]));
    let idle = hub.sync(&second).success().json();
    for list in ["fetched", "joined", "pushed"] {
        assert_eq!(idle[list], serde_json::json!([]), "{list}");
    }
    // Edits apart are joined.
    hub.edit(first, &task, "From the first");
    hub.edit(&second, &task, "From the second");
    hub.sync(first).success();
    let joined = hub.sync(&second).success().json();
    assert_eq!(joined["joined"], serde_json::json!([name]));
    hub.sync(first).success();
    assert_eq!(hub.show(first, &task), hub.show(&second, &task));
    lost_race(hub, [first, &second], &task);
    env.git(&hub.bare, &["fsck", "--strict"]);
}

/// Both write and sync at the same time, several times; nobody gives up and nothing is lost.
fn lost_race(hub: &Hub, clones: [&Path; 2], task: &str) {
    let script = "for n in 1 2 3; do \"$H\" -q task comment \"$T\" \"$C-$n\" && \"$H\" -q sync || exit 1; done";
    let start = |(at, dir): (usize, &&Path)| {
        let mut command = hub.env.command("sh", dir);
        command
            .args(["-c", script])
            .env("H", env!("CARGO_BIN_EXE_hangar"))
            .env("T", task)
            .env("C", at.to_string())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::piped());
        command.spawn().unwrap()
    };
    let running: Vec<_> = clones.iter().enumerate().map(start).collect();
    crate::common::all_end_well(running);
    for dir in clones.iter().chain(&clones) {
        hub.sync(dir).success();
    }
    let shown = hub.show(clones[0], task);
    let timeline = shown["timeline"].as_array().unwrap().iter();
    assert_eq!(timeline.filter(|one| one.get("text").is_some()).count(), 6);
    assert_eq!(shown, hub.show(clones[1], task));
}

pub(crate) fn clone_at(hub: &Hub, name: &str, address: &str) -> PathBuf {
    let env = &hub.env;
    env.git(env.root(), &["clone", "-q", "hub.git", name]);
    let dir = env.root().join(name);
    env.git(&dir, &["remote", "set-url", "origin", address]);
    env.hangar(&dir, &["init", "--yes"]).success();
    hub.sync(&dir).success();
    dir
}

/// A push of several refs, one of which the server's hook refuses for good: the others arrive.
pub(crate) fn refuses_one(hub: &Hub, first: &Path) {
    let refused = hub.task(first, "Refused");
    let taken = hub.task(first, "Taken");
    let hook = format!("case $1 in */{refused}) exit 1;; esac");
    super::remotes::refusing::hook(&hub.bare, "update", &hook);
    let report = hub.sync(first).exits(7).json();
    let name = crate::common::hub::task_ref;
    assert_eq!(
        report["pushed"],
        serde_json::json!([name(&taken)]),
        "{report}"
    );
    assert_eq!(report["unpublished"], serde_json::json!([name(&refused)]));
    std::fs::remove_file(hub.bare.join("hooks/update")).unwrap();
    hub.sync(first).success();
}
