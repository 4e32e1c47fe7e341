//! Several processes of one clone that sync at once.

use super::cli_help::validate;
use super::common::hub::{Hub, task_ref};
use super::common::{Ran, write};
use std::fs;
use std::path::Path;
use std::time::Duration;

#[test]
fn a_ref_that_another_sync_of_this_clone_holds_is_waited_for_and_is_no_junk_of_the_remote() {
    let (hub, first) = Hub::new();
    let task = hub.task(&first, "Shared");
    hub.sync(&first).success();
    let second = hub.clone("second");
    hub.edit(&first, &task, "New");
    let other = hub.task(&first, "Other");
    hub.sync(&first).success();
    let lock = format!(".git/refs/hangar-remote/origin/tasks/{task}.lock");
    let lock = second.join(lock);
    write(&lock, "");
    // One that somebody left is named with its place here, and nothing is said against the remote.
    // The others come and go.
    let own = hub.task(&second, "Own");
    let held = hub.env.hangar(&second, &["sync"]).exits(1);
    names_lock(&held, &lock);
    assert_eq!(hub.show(&second, &other)["title"], "Other");
    assert!(hub.refs(&hub.bare).contains(&own), "{held}");
    let inbox = hub.env.hangar(&second, &["inbox"]).success();
    for ran in [&held, &inbox] {
        let all = format!("{}{}", ran.stdout, ran.stderr);
        for word in ["--delete", "without effect", "left alone"] {
            assert!(!all.contains(word), "{word}: {ran}");
        }
    }
    let free = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(700));
        fs::remove_file(lock).unwrap();
    });
    hub.sync(&second).success();
    free.join().unwrap();
    assert_eq!(hub.show(&second, &task)["title"], "New");
}

#[track_caller]
fn names_lock(ran: &Ran, lock: &Path) {
    let flat = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("is locked by another process"), "{ran}");
    assert!(flat.contains(lock.to_str().unwrap()), "{ran}");
    assert!(
        flat.contains("take it away, then run `hangar sync` again"),
        "{ran}"
    );
    assert!(!flat.contains("--delete"), "{ran}");
}

#[test]
fn a_ref_here_that_stays_locked_keeps_no_other_back_and_is_named() {
    let (hub, first) = Hub::new();
    let task = hub.task(&first, "Shared");
    hub.sync(&first).success();
    let second = hub.clone("second");
    let other = hub.task(&first, "Other");
    hub.edit(&first, &task, "New");
    hub.sync(&first).success();
    hub.edit(&second, &task, "Here too");
    let lock = second.join(format!(".git/{}.lock", task_ref(&task)));
    write(&lock, "");
    for _ in 0..2 {
        let held = hub.env.hangar(&second, &["sync"]).exits(1);
        names_lock(&held, &lock);
    }
    let report = hub.sync(&second).exits(1).json();
    validate("sync", &report);
    assert_eq!(report["not_applied"][0]["kind"], "locked", "{report}");
    assert_eq!(report["unpublished"], serde_json::json!([task_ref(&task)]));
    assert_eq!(hub.show(&second, &other)["title"], "Other");
    fs::remove_file(lock).unwrap();
    hub.sync(&second).success();
    hub.sync(&first).success();
    assert_eq!(hub.refs(&first), hub.refs(&second));
}

#[test]
#[ignore = "heavy: races forty syncs of one clone"]
fn many_syncs_of_one_clone_while_another_pushes_all_end_well() {
    let (hub, first) = Hub::new();
    let task = hub.task(&first, "Hot");
    hub.sync(&first).success();
    let second = hub.clone("second");
    let run = |dir: &std::path::Path, script: &str| {
        let mut command = hub.env.command("sh", dir);
        command
            .args(["-c", script])
            .env("H", env!("CARGO_BIN_EXE_hangar"))
            .env("T", &task)
            .stderr(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null());
        command.spawn().unwrap()
    };
    let ten = "for n in 1 2 3 4 5 6 7 8 9 10; do";
    let sync = format!("{ten} \"$H\" -q sync || exit 1; done");
    let write =
        format!("{ten} \"$H\" -q task comment \"$T\" \"$n\" && \"$H\" -q sync || exit 1; done");
    let mut running = vec![run(&first, &write)];
    running.extend((0..4).map(|_| run(&second, &sync)));
    super::common::all_end_well(running);
    hub.sync(&second).success();
    assert_eq!(hub.refs(&first), hub.refs(&second));
}
