//! Ended tasks go to the archive and are found there; clones that share them agree.

use super::cli_help::validate;
use super::common::hub::Hub;
use super::common::write;
use super::hooks::{path, said, server};
use serde_json::{Value, json};
use std::path::Path;

fn refs(hub: &Hub, dir: &Path) -> Vec<String> {
    let format = "--format=%(refname)";
    let all = hub.env.git(dir, &["for-each-ref", format, "refs/hangar/"]);
    all.lines()
        .map(|line| line["refs/hangar/".len()..].to_owned())
        .collect()
}

/// A task of one clone that was cancelled.
fn ended(hub: &Hub, dir: &Path, title: &str) -> String {
    let id = hub.task(dir, title);
    hub.env
        .hangar(dir, &["task", "cancel", &id, "--reason", "done with it"])
        .success();
    id
}

fn archive(hub: &Hub, dir: &Path, tasks: &[&str]) -> Value {
    let mut args = vec!["task", "archive", "--json"];
    args.extend(tasks);
    hub.env.hangar(dir, &args).success().json()
}

fn synced(hub: &Hub, dir: &Path) -> Value {
    let report = hub.sync(dir).success().json();
    assert_eq!(report["whole"], true, "{report}");
    report
}

#[test]
fn who_gives_the_key_of_an_archived_task_is_told_of_that_task() {
    let (hub, dir) = Hub::new();
    let new = |title: &str, key: &str| {
        let args = ["task", "new", title, "--plain", "--json", "--key", key];
        hub.env.hangar(&dir, &args)
    };
    let id = new("First", "KAN-9").success().json()["id"].clone();
    let id = id.as_str().unwrap();
    let reason = ["task", "cancel", id, "--reason", "done with it"];
    hub.env.hangar(&dir, &reason).success();
    archive(&hub, &dir, &[id]);
    // How far the reading is can be heard.
    let repo = hangar::git::Repository::discover(&dir).unwrap();
    let mut store = hangar::store::Store::open(repo, super::common::founded::clock()).unwrap();
    let (heard, told) = std::sync::mpsc::channel();
    store.heard = hangar::store::Heard::by(move |done, of| heard.send((done, of)).unwrap());
    assert!(store.find_task("KAN-404").is_err());
    assert!(told.try_iter().any(|one| one == (1, 1)));
    let ran = new("Second", "kan-9").success();
    let said = format!("the archived task {} has the key `kan-9`", &id[..8]);
    assert!(ran.stderr.contains(&said), "{ran}");
    let ran = new("Third", "KAN-10").success();
    assert!(!ran.stderr.contains("archived"), "{ran}");
}

#[test]
fn an_ended_task_is_archived_found_and_verified() {
    let (hub, dir) = Hub::new();
    let open = hub.task(&dir, "Still open");
    let id = ended(&hub, &dir, "Over");
    let before = hub.show(&dir, &id);
    let verdict = hub.env.hangar(&dir, &["verify", &id]).stdout;
    hub.env.hangar(&dir, &["task", "archive", &open]).exits(4);
    assert_eq!(archive(&hub, &dir, &[&id])["archived"][0], id.as_str());
    let archive_ref = format!("archive/{}", &id[..1]);
    let now = refs(&hub, &dir);
    assert!(now.contains(&archive_ref), "{now:?}");
    assert!(!now.contains(&format!("tasks/{id}")), "{now:?}");
    assert!(now.contains(&format!("tasks/{open}")), "{now:?}");
    // By id, by prefix; nothing of it is different.
    assert_eq!(hub.show(&dir, &id), before);
    assert_eq!(hub.show(&dir, &id[..6]), before);
    assert_eq!(hub.env.hangar(&dir, &["verify", &id]).stdout, verdict);
    let all = hub.env.hangar(&dir, &["verify", "--all", "--json"]).json();
    assert_eq!(all["tasks"].as_array().unwrap().len(), 2, "{all}");
    assert_eq!(all["faults"], Value::Array(vec![]), "{all}");
    let listed = |args: &[&str]| {
        let list = hub.env.hangar(&dir, args).success().json();
        list["tasks"].as_array().unwrap().len()
    };
    assert_eq!(listed(&["task", "list", "--all", "--json"]), 1);
    assert_eq!(listed(&["task", "list", "--archived", "--json"]), 2);
    assert_eq!(listed(&["task", "list", "over", "--archived", "--json"]), 1);
    // Twice changes nothing.
    let head = hub
        .env
        .git(&dir, &["rev-parse", &format!("refs/hangar/{archive_ref}")]);
    archive(&hub, &dir, &[&id]);
    assert_eq!(
        hub.env
            .git(&dir, &["rev-parse", &format!("refs/hangar/{archive_ref}")]),
        head
    );
    // Git keeps it.
    hub.env
        .git(&dir, &["reflog", "expire", "--expire=now", "--all"]);
    hub.env.git(&dir, &["gc", "-q", "--prune=now"]);
    assert_eq!(hub.show(&dir, &id), before);
    hub.env.git(&dir, &["fsck", "--strict"]);
}

#[test]
fn an_archived_task_is_found_by_its_key() {
    let (hub, dir) = Hub::new();
    let new = |key: &str| {
        let args = ["task", "new", "Over", "--plain", "--key", key, "--json"];
        let new = hub.env.hangar(&dir, &args).success().json();
        new["id"].as_str().unwrap().to_owned()
    };
    let end = |id: &str| {
        hub.env.hangar(&dir, &["task", "cancel", id]).success();
        archive(&hub, &dir, &[id]);
    };
    let (old, other) = (new("KAN-80"), new("KAN-81"));
    end(&old);
    assert_eq!(hub.show(&dir, "kan-80")["id"], old.as_str());
    assert_eq!(hub.show(&dir, "KAN-81")["id"], other.as_str());
    // One that is archived after the index was made, and one that comes from elsewhere.
    end(&other);
    assert_eq!(hub.show(&dir, "KAN-81")["id"], other.as_str());
    synced(&hub, &dir);
    let second = hub.clone("second");
    let ran = hub.env.hangar(&second, &["verify", "KAN-80"]);
    assert!(ran.stdout.contains(&old[..8]), "{ran}");
    hub.env.hangar(&dir, &["task", "show", "KAN-82"]).exits(2);
    // A live task takes the key over; the old one is found by its id, and again once both have ended
    // and are named.
    let newer = new("KAN-80");
    assert_eq!(hub.show(&dir, "KAN-80")["id"], newer.as_str());
    assert_eq!(hub.show(&dir, &old[..8])["id"], old.as_str());
    end(&newer);
    let ran = hub.env.hangar(&dir, &["task", "show", "KAN-80"]).exits(2);
    for id in [&old, &newer] {
        assert!(ran.stderr.contains(&id[..8]), "{ran}");
    }
    // Taken up again it is a live one.
    hub.env.hangar(&dir, &["task", "retry", &old]).success();
    assert_eq!(hub.show(&dir, "KAN-80")["id"], old.as_str());
    // The index is a cache: without it, and with rubbish in it, the answer is the same.
    let index = dir.join(".git/hangar/index.db");
    for rubbish in [None, Some("rubbish")] {
        std::fs::remove_file(&index).unwrap();
        if let Some(rubbish) = rubbish {
            write(&index, rubbish);
        }
        assert_eq!(hub.show(&dir, "KAN-81")["id"], other.as_str());
    }
}

/// Somebody who can push offers an archive with a task of theirs that has another's key.
#[test]
fn a_key_in_an_archive_counts_by_what_is_believed() {
    let (hub, dir) = Hub::new();
    let args = [
        "task", "new", "Over", "--plain", "--key", "KAN-80", "--json",
    ];
    let id = hub.env.hangar(&dir, &args).success().json()["id"].clone();
    let id = id.as_str().unwrap();
    let creation = hub.env.git(
        &dir,
        &["show", &format!("refs/hangar/tasks/{id}:event.toml")],
    );
    hub.env.hangar(&dir, &["task", "cancel", id]).success();
    archive(&hub, &dir, &[id]);
    synced(&hub, &dir);
    // The same creation in other words, without a signature: another task, with the same key.
    let forged = creation.replace("Over", "Forged") + "\n";
    let forged_id = hangar::model::ids::TaskId::of_creation(forged.as_bytes()).to_string();
    let bare = |args: &[&str]| hub.env.git(&hub.bare, args);
    let commit = hub.stranger(None, "event.toml", &forged);
    let blob = hub.blob(&format!("{commit} tasks/{forged_id}\n"));
    let folder = hub.tree(&format!("100644 blob {blob}\t{forged_id}\n"));
    let mut root = format!("040000 tree {folder}\t{}\n", &forged_id[1..3]);
    let name = format!("refs/hangar/archive/{}", &forged_id[..1]);
    let mut parents = vec!["-p", commit.as_str()];
    let before = if forged_id[..1] == id[..1] {
        root += &bare(&["ls-tree", &name]);
        bare(&["rev-parse", &name])
    } else {
        String::new()
    };
    if !before.is_empty() {
        parents.extend(["-p", before.as_str()]);
    }
    let tree = hub.tree(&root);
    let mut args = vec!["commit-tree", tree.as_str(), "-m", "archive"];
    args.extend(parents);
    bare(&["update-ref", &name, &bare(&args)]);
    hub.sync(&dir);
    let held = hub.env.git(
        &dir,
        &["show", &format!("{name}:{}/{forged_id}", &forged_id[1..3])],
    );
    assert!(
        held.contains(&commit),
        "the forged one is in the archive here"
    );
    assert_eq!(hub.show(&dir, "KAN-80")["id"], id);
}

#[test]
fn the_archive_moves_through_a_remote_and_no_ref_comes_back() {
    let (hub, first) = Hub::new();
    let id = ended(&hub, &first, "Over");
    synced(&hub, &first);
    let second = hub.clone("second");
    assert!(refs(&hub, &second).contains(&format!("tasks/{id}")));
    archive(&hub, &first, &[&id]);
    let report = synced(&hub, &first);
    assert_eq!(report["archived"][0], id.as_str());
    for place in [&first, &second, &hub.bare] {
        synced(&hub, &second);
        let now = refs(&hub, place);
        assert!(!now.contains(&format!("tasks/{id}")), "{place:?} {now:?}");
        assert!(now.contains(&format!("archive/{}", &id[..1])), "{now:?}");
    }
    assert_eq!(hub.show(&second, &id), hub.show(&first, &id));
    // Nothing is left to do, and a clone made now sees the same.
    for dir in [&first, &second] {
        let report = synced(&hub, dir);
        assert_eq!(
            (&report["pushed"], &report["fetched"]),
            (&Value::Array(vec![]), &Value::Array(vec![]))
        );
        assert!(
            report.get("archived").is_none() && report.get("losses").is_none(),
            "{report}"
        );
    }
    let third = hub.clone("third");
    assert_eq!(hub.show(&third, &id), hub.show(&first, &id));
    let verify = |dir: &Path| hub.env.hangar(dir, &["verify", &id]).stdout;
    assert_eq!(verify(&third), verify(&first));
}

#[test]
fn two_clones_that_archive_apart_make_one_archive() {
    let (hub, first) = Hub::new();
    let ids: Vec<_> = (0..4)
        .map(|n| ended(&hub, &first, &format!("Over {n}")))
        .collect();
    synced(&hub, &first);
    let second = hub.clone("second");
    archive(&hub, &first, &[&ids[0], &ids[1]]);
    archive(&hub, &second, &[&ids[1], &ids[2], &ids[3]]);
    for dir in [&first, &second, &first, &second] {
        synced(&hub, dir);
    }
    assert_eq!(refs(&hub, &first), refs(&hub, &second));
    assert_eq!(refs(&hub, &first), refs(&hub, &hub.bare));
    assert!(
        refs(&hub, &first)
            .iter()
            .all(|name| !name.starts_with("tasks/"))
    );
    for id in &ids {
        assert_eq!(
            hub.show(&first, id)["title"],
            hub.show(&second, id)["title"]
        );
    }
}

#[test]
fn a_task_that_is_taken_up_again_comes_back_everywhere() {
    let (hub, first) = Hub::new();
    let id = ended(&hub, &first, "Over");
    archive(&hub, &first, &[&id]);
    synced(&hub, &first);
    let second = hub.clone("second");
    hub.env.hangar(&second, &["task", "retry", &id]).success();
    assert!(refs(&hub, &second).contains(&format!("tasks/{id}")));
    synced(&hub, &second);
    synced(&hub, &first);
    assert!(refs(&hub, &first).contains(&format!("tasks/{id}")));
    assert_eq!(hub.show(&first, &id)["state"], "queued");
    // It ends again and goes again.
    hub.env.hangar(&first, &["task", "cancel", &id]).success();
    archive(&hub, &first, &[&id]);
    synced(&hub, &first);
    synced(&hub, &second);
    assert!(!refs(&hub, &second).contains(&format!("tasks/{id}")));
    assert_eq!(hub.show(&second, &id)["state"], "failed");
}

#[test]
fn a_retry_in_one_clone_outlives_the_archiving_in_another() {
    let (hub, first) = Hub::new();
    let id = ended(&hub, &first, "Over");
    synced(&hub, &first);
    let second = hub.clone("second");
    hub.env.hangar(&second, &["task", "retry", &id]).success();
    archive(&hub, &first, &[&id]);
    for dir in [&first, &second, &first] {
        synced(&hub, dir);
    }
    for dir in [&first, &second] {
        assert!(refs(&hub, dir).contains(&format!("tasks/{id}")));
        assert_eq!(hub.show(dir, &id)["state"], "queued");
    }
}

/// Somebody who can push puts something into the archive that nobody could read any more.
#[test]
fn an_archived_task_stays_readable() {
    let (hub, first) = Hub::new();
    let id = ended(&hub, &first, "Over");
    archive(&hub, &first, &[&id]);
    synced(&hub, &first);
    let name = format!("refs/hangar/archive/{}", &id[..1]);
    let place = format!("{}/{id}", &id[1..3]);
    let bare = |args: &[&str]| hub.env.git(&hub.bare, args);
    let line = bare(&["show", &format!("{name}:{place}")]);
    let tip = line.split_once(' ').unwrap().0.to_owned();
    // Commits without a document that are no joins, on top of the honest ones.
    let file = hub.env.root().join("line");
    let grow = |count: usize| {
        let junk = hub.empty(&tip, count, "junk");
        write(&file, &format!("{junk} tasks/{id}\n"));
        let blob = bare(&["hash-object", "-w", file.to_str().unwrap()]);
        let folder = mktree(&hub, &format!("100644 blob {blob}\t{id}\n"));
        let tree = mktree(&hub, &format!("040000 tree {folder}\t{}\n", &id[1..3]));
        let before = bare(&["rev-parse", &name]);
        let parents = ["-p", &before, "-p", &junk];
        let args = [&["commit-tree", &tree][..], &parents, &["-m", "archive"]].concat();
        bare(&["update-ref", &name, &bare(&args)]);
        junk
    };
    // A few mean nothing.
    let few = grow(1);
    let report = hub.sync(&first).success().json();
    let left = json!([{"ref": format!("refs/hangar/tasks/{id}"), "commit": few}]);
    assert_eq!(report["empty"], left, "{report}");
    assert_eq!(hub.show(&first, &id)["title"], "Over");
    let line = hub.env.git(&first, &["show", &format!("{name}:{place}")]);
    // As many as somebody may need to fill it are not taken, and hold nothing that would be lost.
    let there = bare(&["rev-parse", &name]);
    grow(20_000);
    let report = hub.sync(&first).success().json();
    let loss = json!([{"ref": name, "what": "replaced", "healed": true}]);
    assert_eq!(report["losses"], loss, "{report}");
    assert_eq!(bare(&["rev-parse", &name]), there);
    assert_eq!(hub.show(&first, &id)["title"], "Over");
    let ours = hub.env.git(&first, &["show", &format!("{name}:{place}")]);
    assert_eq!(ours, line);
}

/// Somebody who can push takes a task that is being worked on out of the way.
#[test]
fn a_task_that_has_not_ended_can_not_be_archived_away() {
    let (hub, first) = Hub::new();
    let open = hub.task(&first, "Open");
    // In another archive than the first.
    let over = loop {
        let id = ended(&hub, &first, "Over");
        if id[..1] != open[..1] {
            break id;
        }
    };
    synced(&hub, &first);
    let second = hub.clone("second");
    // The attacker's archives are made as ours are; only one is not due.
    for id in [&open, &over] {
        put_away(&hub, id, |tip| format!("{tip} tasks/{id}\n"));
    }
    let report = hub.sync(&second).exits(1).json();
    let text = report.to_string();
    assert!(text.contains("has not ended"), "{text}");
    assert!(refs(&hub, &second).contains(&format!("tasks/{open}")));
    assert!(
        refs(&hub, &hub.bare).contains(&format!("tasks/{open}")),
        "healed"
    );
    // The honest control: the one that had ended is archived.
    assert!(!refs(&hub, &second).contains(&format!("tasks/{over}")));
    // A clone made now is told once, and has it too.
    let third = hub.env.root().join("third");
    hub.env
        .git(hub.env.root(), &["clone", "-q", "hub.git", "third"]);
    hub.env.hangar(&third, &["init", "--yes"]).success();
    hub.sync(&third).exits(1);
    synced(&hub, &third);
    assert!(refs(&hub, &third).contains(&format!("tasks/{open}")));
    assert_eq!(hub.show(&third, &open)["state"], "draft");
}

/// On the remote, puts an archive in place of a task's ref, with these lines about its commit.
fn put_away(hub: &Hub, id: &str, lines: impl Fn(&str) -> String) {
    let bare = |args: &[&str]| hub.env.git(&hub.bare, args);
    let tip = bare(&["rev-parse", &format!("refs/hangar/tasks/{id}")]);
    let file = hub.env.root().join("lines");
    write(&file, &lines(&tip));
    let blob = bare(&["hash-object", "-w", file.to_str().unwrap()]);
    let folder = mktree(hub, &format!("100644 blob {blob}\t{id}\n"));
    let tree = mktree(hub, &format!("040000 tree {folder}\t{}\n", &id[1..3]));
    let commit = bare(&["commit-tree", &tree, "-p", &tip, "-m", "archive"]);
    let archive = format!("refs/hangar/archive/{}", &id[..1]);
    bare(&["update-ref", &archive, &commit]);
    bare(&["update-ref", "-d", &format!("refs/hangar/tasks/{id}")]);
}

#[test]
fn a_name_in_an_archive_that_means_nothing_becomes_no_ref() {
    let (hub, first) = Hub::new();
    let id = ended(&hub, &first, "Over");
    synced(&hub, &first);
    put_away(&hub, &id, |tip| {
        format!("{tip} approvals/{id}-odd\n{tip} tasks/{id}\n")
    });
    synced(&hub, &first);
    assert!(!refs(&hub, &first).contains(&format!("tasks/{id}")));
    hub.env
        .hangar(&first, &["task", "comment", &id, "Once more"])
        .success();
    let now = refs(&hub, &first);
    assert!(now.contains(&format!("tasks/{id}")), "{now:?}");
    assert!(!now.iter().any(|name| name.starts_with("approvals/")));
}

fn mktree(hub: &Hub, lines: &str) -> String {
    write(&hub.env.root().join("tree"), lines);
    let mut command = hub.env.command("sh", &hub.bare);
    let out = command
        .args(["-c", "git mktree < ../tree"])
        .output()
        .unwrap();
    String::from_utf8(out.stdout).unwrap().trim().to_owned()
}

#[test]
fn an_archive_that_lost_or_lacks_something_is_refused_or_put_right() {
    let (hub, first) = Hub::new();
    let id = ended(&hub, &first, "Over");
    archive(&hub, &first, &[&id]);
    synced(&hub, &first);
    let name = format!("refs/hangar/archive/{}", &id[..1]);
    let head = hub.env.git(&first, &["rev-parse", &name]).trim().to_owned();
    let bare = |args: &[&str]| hub.env.git(&hub.bare, args);
    // One that follows ours and holds nothing.
    let empty = mktree(&hub, "");
    let emptied = bare(&["commit-tree", &empty, "-p", &head, "-m", "archive"]);
    bare(&["update-ref", &name, &emptied]);
    synced(&hub, &first);
    assert_eq!(hub.show(&first, &id)["title"], "Over");
    let healed = bare(&["rev-parse", &name]);
    assert_ne!(healed, emptied);
    let second = hub.clone("second");
    assert_eq!(hub.show(&second, &id)["title"], "Over");
    // One that names a commit that its history does not hold.
    let tree = bare(&["rev-parse", &format!("{healed}^{{tree}}")]);
    let loose = bare(&["commit-tree", &tree, "-m", "archive"]);
    bare(&["update-ref", &name, &loose]);
    let third = hub.env.root().join("third");
    hub.env
        .git(hub.env.root(), &["clone", "-q", "hub.git", "third"]);
    hub.env.hangar(&third, &["init", "--yes"]).success();
    let text = hub.sync(&third).exits(1).json().to_string();
    assert!(text.contains("does not hold commit"), "{text}");
    // A deleted one is healed by whoever has it.
    bare(&["update-ref", "-d", &name]);
    let report = hub.sync(&first).success().json();
    assert_eq!(report["losses"][0]["healed"], true, "{report}");
}

/// Without a key, by force, and with every history that the archive reaches: a server does not take it for
/// what replaces junk.
#[test]
fn a_server_takes_no_archive_that_lists_less_in_place_of_another() {
    let (hub, first) = Hub::new();
    let id = ended(&hub, &first, "Over");
    archive(&hub, &first, &[&id]);
    synced(&hub, &first);
    let name = format!("refs/hangar/archive/{}", &id[..1]);
    server::hangar(&hub.bare, &["hook", "pre-receive", "--install"], "").done();
    let git = |args: &[&str]| hub.env.git(&first, args);
    let before = hub.env.git(&hub.bare, &["rev-parse", &name]);
    let held = git(&["rev-parse", &format!("{name}^@")]);
    let tree = mktree(&hub, "");
    let mut args = vec!["commit-tree", tree.as_str(), "-m", "archive"];
    args.extend(held.lines().flat_map(|parent| ["-p", parent]));
    let less = hub.env.git(&hub.bare, &args);
    let shown = "refs/heads/less";
    hub.env.git(&hub.bare, &["update-ref", shown, &less]);
    git(&["fetch", "-q", "origin", shown]);
    let push = format!("+{less}:{name}");
    let said = said(&first, &["push", "--no-verify", "origin", &push]);
    said.refused(&name, "it would lose");
    assert_eq!(hub.env.git(&hub.bare, &["rev-parse", &name]), before);
    // The honest control: one that grows is taken.
    let next = ended(&hub, &first, "Next");
    archive(&hub, &first, &[&next]);
    let env = [("PATH", &*path())];
    let ran = hub.env.hangar_with(&first, &["sync", "--json"], &env, "");
    ran.success();
    let grown = format!("refs/hangar/archive/{}:{}/{next}", &next[..1], &next[1..3]);
    hub.env.git(&hub.bare, &["cat-file", "-e", &grown]);
}

/// Without a key: commits that no task names, brought along by an archive.
#[test]
fn an_archive_brings_nothing_that_it_does_not_name() {
    let (hub, first) = Hub::new();
    let id = ended(&hub, &first, "Over");
    archive(&hub, &first, &[&id]);
    synced(&hub, &first);
    let bare = |args: &[&str]| hub.env.git(&hub.bare, args);
    let ours = format!("refs/hangar/archive/{}", &id[..1]);
    let head = bare(&["rev-parse", &ours]).trim().to_owned();
    let tree = bare(&["rev-parse", &format!("{head}^{{tree}}")]);
    let (tree, none) = (tree.trim(), mktree(&hub, ""));
    let junk = bare(&["commit-tree", &none, "-m", "foreign"]);
    let other = if id.starts_with('y') { "z" } else { "y" };
    let other = format!("refs/hangar/archive/{other}");
    let offers: [(&str, &[&str], &str); 5] = [
        (
            &other,
            &["commit-tree", &none, "-p", &junk, "-m", "archive"],
            "does not name",
        ),
        (
            &other,
            &["commit-tree", &none, "-m", "archive"],
            "begins without a task",
        ),
        (
            &other,
            &["commit-tree", &none, "-p", &junk, "-m", "junk"],
            "is no archive",
        ),
        (
            &ours,
            &[
                "commit-tree",
                tree,
                "-p",
                &head,
                "-p",
                &junk,
                "-m",
                "archive",
            ],
            "does not name",
        ),
        (
            &ours,
            &["commit-tree", tree, "-p", &head, "-m", "archive"],
            "nothing came to it",
        ),
    ];
    for (name, make, why) in offers {
        let offer = bare(make);
        let kept = bare(&["for-each-ref", "--format=%(objectname)", name]);
        // A clone takes none of the first four.
        if why != "nothing came to it" {
            bare(&["update-ref", name, &offer]);
            let text = hub.sync(&first).json().to_string();
            assert!(text.contains(why) || text.contains("replaced"), "{text}");
            let here = hub
                .env
                .git(&first, &["for-each-ref", "--format=%(objectname)", name]);
            assert_eq!(here, kept);
        }
        if kept.is_empty() {
            bare(&["update-ref", "-d", name]);
        } else {
            bare(&["update-ref", name, &head]);
        }
        // Nor does a server with the hook.
        bare(&["update-ref", "refs/heads/offer", &offer]);
        hub.env
            .git(&first, &["fetch", "-q", "origin", "refs/heads/offer"]);
        bare(&["update-ref", "-d", "refs/heads/offer"]);
        server::hangar(&hub.bare, &["hook", "pre-receive", "--install"], "").done();
        let said = said(
            &first,
            &["push", "--no-verify", "origin", &format!("{offer}:{name}")],
        );
        said.refused(name, why);
        server::hangar(&hub.bare, &["hook", "pre-receive", "--remove"], "").done();
    }
    // The honest control.
    let next = ended(&hub, &first, "Next");
    archive(&hub, &first, &[&next]);
    synced(&hub, &first);
}

#[test]
fn a_sync_archives_what_is_due_by_the_policy() {
    let (hub, first) = Hub::new();
    let id = ended(&hub, &first, "Over");
    hub.env.pass_days(29);
    synced(&hub, &first);
    assert!(refs(&hub, &first).contains(&format!("tasks/{id}")));
    let never = ["policy", "edit", "--archive-days", "0"];
    hub.env.hangar(&first, &never).success();
    hub.env.pass_days(2);
    synced(&hub, &first);
    assert!(refs(&hub, &first).contains(&format!("tasks/{id}")));
    let days = ["policy", "edit", "--archive-days", "31"];
    hub.env.hangar(&first, &days).success();
    let page = hub.env.hangar(&first, &["policy", "show"]).success();
    assert!(page.stdout.contains("archived after 31 days"), "{page}");
    hub.env.pass_days(1);
    synced(&hub, &first);
    assert!(!refs(&hub, &first).contains(&format!("tasks/{id}")));
    assert!(!refs(&hub, &hub.bare).contains(&format!("tasks/{id}")));
    assert_eq!(hub.show(&first, &id)["title"], "Over");
}

/// A commit of the archive is lost: its tasks are missing, that is said, and the others are listed.
#[test]
fn one_archive_that_can_not_be_read_keeps_no_other_from_being_listed() {
    let (hub, dir) = Hub::new();
    let (mut one, mut two) = (ended(&hub, &dir, "One"), ended(&hub, &dir, "Two"));
    while one[..1] == two[..1] {
        two = ended(&hub, &dir, "Two");
    }
    for (id, object) in [(&mut one, ""), (&mut two, "^{tree}")] {
        archive(&hub, &dir, &[id]);
        let name = format!("refs/hangar/archive/{}", &id[..1]);
        let lost = format!("{name}{object}");
        let object = hub.env.git(&dir, &["rev-parse", &lost]);
        let file = dir.join(format!(".git/objects/{}/{}", &object[..2], &object[2..]));
        let away = dir.join("away");
        std::fs::rename(&file, &away).unwrap();
        let list = ["task", "list", "--archived"];
        let view = hub.env.json(&dir, &list);
        validate("task-list", &view);
        assert_eq!(view["damaged"][0]["ref"], name.as_str(), "{view}");
        let other = view["tasks"].as_array().unwrap().iter();
        assert!(
            other.clone().all(|task| task["id"] != id.as_str()),
            "{view}"
        );
        let ran = hub.env.hangar(&dir, &list).success();
        assert!(ran.stderr.contains(&name), "{ran}");
        std::fs::rename(&away, &file).unwrap();
    }
    let view = hub.env.json(&dir, &["task", "list", "--archived"]);
    assert_eq!(view.get("damaged"), None, "{view}");
    assert_eq!(view["tasks"].as_array().unwrap().len(), 2, "{view}");
}
