//! Kinds of repositories, point by point: what hangar reads, writes and syncs in each of them.

use crate::common::hub::{Hub, task_ref};
use crate::common::write;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

/// A task is made in `dir` and reaches the first clone, and an edit comes back.
#[track_caller]
fn goes_round(hub: &Hub, first: &Path, dir: &Path) {
    let task = hub.task(dir, "Made here");
    hub.sync(dir).success();
    hub.sync(first).success();
    hub.edit(first, &task, "Edited there");
    hub.edit(dir, &task, "Edited here");
    hub.sync(first).success();
    let joined = hub.sync(dir).success().json();
    assert_eq!(joined["joined"].as_array().unwrap().len(), 1, "{joined}");
    hub.sync(first).success();
    assert_eq!(hub.show(first, &task), hub.show(dir, &task));
}

/// A clone of the hub made with these options, with its policy pinned.
fn clone(hub: &Hub, name: &str, options: &[&str]) -> PathBuf {
    let env = &hub.env;
    let url = format!("file://{}", hub.bare.display());
    let args = [&["clone", "-q"], options, &[&url, name]].concat();
    env.git(env.root(), &args);
    let dir = env.root().join(name);
    env.hangar(&dir, &["init", "--yes"]).success();
    hub.sync(&dir).success();
    dir
}

/// Two commits of code, so that a clone can be shallow.
fn with_history(hub: &Hub, first: &Path) {
    write(&first.join("more.txt"), "more\n");
    hub.env.commit(first, "more");
    hub.env.git(first, &["push", "-q", "origin", "HEAD:main"]);
}

#[test]
fn a_linked_work_tree_shares_the_state_and_syncs() {
    let (hub, first) = Hub::new();
    hub.env.git(
        &first,
        &["worktree", "add", "-q", "-b", "linked", "../linked tree"],
    );
    let linked = hub.env.root().join("linked tree");
    let second = hub.clone("second");
    goes_round(&hub, &second, &linked);
    assert!(!first.join(".git/worktrees/linked tree/hangar").exists());
    assert_eq!(hub.refs(&first), hub.refs(&linked));
}

#[test]
fn a_bare_clone_syncs() {
    let (hub, first) = Hub::new();
    let task = hub.task(&first, "Shared");
    hub.sync(&first).success();
    let bare = clone(&hub, "mine.git", &["--bare"]);
    assert_eq!(hub.show(&bare, &task)["title"], "Shared");
    hub.edit(&bare, &task, "From a bare one");
    hub.sync(&bare).success();
    hub.sync(&first).success();
    assert_eq!(hub.show(&first, &task)["title"], "From a bare one");
}

#[test]
fn packed_refs_are_read_moved_and_synced() {
    let (hub, first) = Hub::new();
    let second = hub.clone("second");
    for dir in [&first, &second, &hub.bare] {
        hub.env.git(dir, &["pack-refs", "--all", "--prune"]);
    }
    goes_round(&hub, &first, &second);
}

#[test]
fn sha256_repositories_sync_with_each_other() {
    let (hub, _) = Hub::new();
    let env = &hub.env;
    let init = ["init", "-q", "--object-format=sha256"];
    env.git(env.root(), &[&init[..], &["--bare", "long.git"]].concat());
    env.git(env.root(), &[&init[..], &["long"]].concat());
    let long = env.root().join("long");
    write(&long.join("a"), "x\n");
    env.commit(&long, "first");
    env.hangar(&long, &["init", "--yes"]).success();
    env.commit(&long, "set up");
    let hub256 = env.root().join("long.git");
    env.git(
        &long,
        &["remote", "add", "origin", hub256.to_str().unwrap()],
    );
    env.git(&long, &["push", "-q", "origin", "HEAD:main"]);
    hub.sync(&long).success();
    env.git(&hub256, &["symbolic-ref", "HEAD", "refs/heads/main"]);
    env.git(env.root(), &["clone", "-q", "long.git", "other"]);
    let other = env.root().join("other");
    env.hangar(&other, &["init", "--yes"]).success();
    hub.sync(&other).success();
    goes_round(&hub, &long, &other);
    // One of the other kind is no place for it, and says so.
    let ran = env.hangar(&long, &["sync", hub.bare.to_str().unwrap()]);
    assert!(ran.stderr.contains("by another hash"), "{ran}");
    assert_eq!(ran.code, Some(3), "{ran}");
    env.git(&long, &["fsck", "--strict"]);
}

#[test]
fn reftable_is_refused_in_one_sentence_with_the_way_out() {
    let (hub, _) = Hub::new();
    let env = &hub.env;
    env.git(
        env.root(),
        &["init", "-q", "--ref-format=reftable", "tables"],
    );
    let dir = env.root().join("tables");
    env.git(&dir, &["commit", "-q", "--allow-empty", "-m", "first"]);
    for args in [&["init"][..], &["task", "list"], &["sync"]] {
        let ran = env.hangar(&dir, args).exits(3);
        assert!(
            ran.stderr.contains("git refs migrate --ref-format=files"),
            "{ran}"
        );
    }
    // A remote may be one: git reads it.
    env.git(
        env.root(),
        &[
            "init",
            "-q",
            "--ref-format=reftable",
            "--bare",
            "tables.git",
        ],
    );
    let first = env.root().join("first");
    let address = env.root().join("tables.git").display().to_string();
    env.hangar(&first, &["sync", &address]).success();
    // The way out; git 2.47 does it only where no reflog was written.
    env.git(
        env.root(),
        &[
            "-c",
            "core.logAllRefUpdates=false",
            "init",
            "-q",
            "--ref-format=reftable",
            "out",
        ],
    );
    let out = env.root().join("out");
    env.git(&out, &["config", "core.logAllRefUpdates", "false"]);
    env.git(&out, &["commit", "-q", "--allow-empty", "-m", "first"]);
    env.git(&out, &["refs", "migrate", "--ref-format=files"]);
    env.hangar(&out, &["init"]).success();
}

#[test]
fn a_shallow_clone_of_the_code_has_the_whole_state() {
    let (hub, first) = Hub::new();
    with_history(&hub, &first);
    let task = hub.task(&first, "Shared");
    hub.edit(&first, &task, "Grown");
    hub.sync(&first).success();
    let shallow = clone(&hub, "shallow", &["--depth=1"]);
    assert!(shallow.join(".git/shallow").exists());
    assert_eq!(hub.show(&shallow, &task)["title"], "Grown");
    goes_round(&hub, &first, &shallow);
}

#[test]
fn a_shallow_history_of_a_ref_of_ours_is_refused_with_the_way_out() {
    let (hub, first) = Hub::new();
    let env = &hub.env;
    let task = hub.task(&first, "Shared");
    hub.edit(&first, &task, "Grown");
    let key = env.add_key("carol");
    env.hangar(&first, &["policy", "add", "carol", "--key", &key])
        .success();
    hub.sync(&first).success();
    let url = format!("file://{}", hub.bare.display());
    env.git(env.root(), &["clone", "-q", &url, "cut"]);
    let cut = env.root().join("cut");
    env.git(
        &cut,
        &[
            "fetch",
            "-q",
            "--depth=1",
            "origin",
            "+refs/hangar/*:refs/hangar/*",
        ],
    );
    for args in [&["init"][..], &["task", "list"], &["sync"]] {
        let ran = env.hangar(&cut, args).exits(3);
        assert!(ran.stderr.contains("is shallow"), "{ran}");
        assert!(ran.stderr.contains("git fetch --unshallow"), "{ran}");
    }
    env.git(&cut, &["fetch", "-q", "--unshallow"]);
    env.hangar(&cut, &["init", "--yes"]).success();
    hub.sync(&cut).success();
    assert_eq!(hub.show(&cut, &task)["title"], "Grown");
    // A remote that is cut off itself gives nothing that could be believed.
    env.git(env.root(), &["clone", "-q", "--bare", &url, "cut.git"]);
    let remote = env.root().join("cut.git");
    env.git(
        &remote,
        &[
            "fetch",
            "-q",
            "--depth=1",
            "origin",
            "+refs/hangar/*:refs/hangar/*",
        ],
    );
    env.git(env.root(), &["clone", "-q", &url, "fresh"]);
    let fresh = env.root().join("fresh");
    env.git(
        &fresh,
        &[
            "remote",
            "set-url",
            "origin",
            &format!("file://{}", remote.display()),
        ],
    );
    let ran = env.hangar(&fresh, &["init"]);
    assert_ne!(ran.code, Some(0), "{ran}");
    assert_eq!(hub.refs(&fresh), "");
}

#[test]
fn clones_that_borrow_objects_work() {
    let (hub, first) = Hub::new();
    let env = &hub.env;
    hub.task(&first, "Shared");
    hub.sync(&first).success();
    env.git(
        env.root(),
        &["clone", "-q", "--shared", "hub.git", "shared"],
    );
    let shared = env.root().join("shared");
    env.hangar(&shared, &["init", "--yes"]).success();
    hub.sync(&shared).success();
    goes_round(&hub, &first, &shared);
    let reference = first.display().to_string();
    let borrowing = clone(&hub, "reference", &["--reference", &reference]);
    goes_round(&hub, &first, &borrowing);
}

#[test]
fn a_partial_clone_gets_the_state_whole() {
    let (hub, first) = Hub::new();
    let env = &hub.env;
    env.git(&hub.bare, &["config", "uploadpack.allowFilter", "true"]);
    with_history(&hub, &first);
    let task = hub.task(&first, "Shared");
    hub.sync(&first).success();
    let partial = clone(&hub, "partial", &["--filter=blob:none"]);
    assert_eq!(hub.show(&partial, &task)["title"], "Shared");
    goes_round(&hub, &first, &partial);
    // What the filter left out is named with the way to get it: the file is not in the first commit's
    // checkout.
    let missing = env.git(
        &partial,
        &["rev-list", "--objects", "--missing=print", "HEAD"],
    );
    let missing = missing.lines().find(|line| line.starts_with('?'));
    if let Some(id) = missing {
        let repo = hangar::git::Repository::discover(&partial).unwrap();
        // A push looks at what is here: what was left out is on a remote already.
        let head = env.git(&partial, &["rev-parse", "HEAD"]);
        let pushed = repo.outgoing(&[head.trim().parse().unwrap()], &[]).unwrap();
        let left_out = id[1..].parse().unwrap();
        assert!(!pushed.iter().any(|object| object.id == left_out));
        let error = repo
            .read_blob(id[1..].parse().unwrap(), 1 << 20)
            .unwrap_err();
        assert!(error.to_string().contains("partial clone"), "{error}");
        env.git(&partial, &["fetch", "-q", "--refetch", "--no-filter"]);
        let repo = repo.reopen().unwrap();
        repo.read_blob(id[1..].parse().unwrap(), 1 << 20).unwrap();
    }
}

#[test]
fn collecting_garbage_loses_nothing_of_ours() {
    let (hub, first) = Hub::new();
    let second = hub.clone("second");
    let task = hub.task(&first, "Shared");
    hub.sync(&first).success();
    // A document that is not believed is kept as well, with what the remote last showed.
    let head = hub.env.git(&hub.bare, &["rev-parse", &task_ref(&task)]);
    let junk = hub.stranger(Some(&head), "event.toml", "format = 1\n");
    hub.env
        .git(&hub.bare, &["update-ref", &task_ref(&task), &junk]);
    hub.sync(&second).exits(1);
    let before = (hub.show(&second, &task), hub.refs(&second));
    for args in [
        &["gc", "-q", "--prune=now"][..],
        &["repack", "-a", "-d", "-q"],
        &["prune", "--expire=now"],
    ] {
        hub.env.git(&second, args);
    }
    assert_eq!((hub.show(&second, &task), hub.refs(&second)), before);
    assert_eq!(
        hub.show(&second, &task)["faults"].as_array().unwrap().len(),
        1
    );
    let idle = hub.sync(&second).success().json();
    assert_eq!(
        (idle["fetched"].clone(), idle["pushed"].clone()),
        (json!([]), json!([]))
    );
    hub.edit(&second, &task, "Goes on");
    hub.sync(&second).success();
}

#[test]
fn a_submodule_has_a_state_of_its_own() {
    let (hub, first) = Hub::new();
    let env = &hub.env;
    let outer = env.repo("outer", &[("a", "x\n")]);
    let url = hub.bare.display().to_string();
    let add = [
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "-q",
        &url,
        "inner",
    ];
    env.git(&outer, &add);
    let inner = outer.join("inner");
    env.hangar(&inner, &["init", "--yes"]).success();
    hub.sync(&inner).success();
    goes_round(&hub, &first, &inner);
    assert_eq!(hub.refs(&outer), "");
    env.hangar(&outer, &["task", "list"]).exits(3);
}

#[test]
fn variables_of_git_that_name_another_repository_stop_everything() {
    let (hub, first) = Hub::new();
    let env = &hub.env;
    let other = env.repo("other", &[]);
    let run = |dir: &Path, vars: &[(&str, &str)]| env.hangar_with(dir, &["task", "list"], vars, "");
    let git_dir = other.join(".git").display().to_string();
    let ran = run(&first, &[("GIT_DIR", &git_dir)]).exits(2);
    assert!(
        ran.stderr.contains("GIT_DIR names another repository"),
        "{ran}"
    );
    let tree = other.display().to_string();
    let ran = run(&first, &[("GIT_WORK_TREE", &tree)]).exits(2);
    assert!(ran.stderr.contains("GIT_WORK_TREE"), "{ran}");
    // The same one, as git sets it for hooks and aliases.
    run(&first, &[("GIT_DIR", ".git"), ("GIT_WORK_TREE", ".")]).success();
    env.git(&first, &["worktree", "add", "-q", "../linked"]);
    let linked = env.root().join("linked");
    let own = env.git(&linked, &["rev-parse", "--git-dir"]);
    run(&linked, &[("GIT_DIR", &own)]).success();
    run(&hub.bare, &[("GIT_DIR", ".")]).success();
}

#[test]
fn a_path_with_spaces_and_odd_bytes_syncs() {
    use std::os::unix::ffi::OsStrExt as _;
    let (hub, first) = Hub::new();
    let odd = std::ffi::OsStr::from_bytes(b"odd \xff 'name'");
    let moved = hub.env.root().join(odd);
    fs::rename(hub.clone("second"), &moved).unwrap();
    goes_round(&hub, &first, &moved);
    // The remote too.
    let folder = hub.env.root().join("hub with spaces.git");
    fs::rename(&hub.bare, &folder).unwrap();
    let ran = hub.env.hangar(&first, &["sync", folder.to_str().unwrap()]);
    ran.success();
}

#[test]
fn another_user_s_repository_is_one_clear_error() {
    let (hub, first) = Hub::new();
    // Only root can give files away.
    if std::os::unix::fs::chown(first.join(".git"), Some(12345), None).is_err() {
        return;
    }
    std::os::unix::fs::chown(&first, Some(12345), None).unwrap();
    let ran = hub.env.hangar(&first, &["sync"]).exits(4);
    assert!(ran.stderr.contains("belongs to another user"), "{ran}");
    assert!(ran.stderr.contains("safe.directory"), "{ran}");
}
