//! The two ref prefixes: a clone or a remote moves from one to the other, and nobody else has to.

use crate::common::TestEnv;
use crate::common::hub::{Hub, task_ref};
use crate::remotes::refusing::hook;
use serde_json::json;
use std::path::Path;

const BRANCHES: &str = "refs/heads/hangar-state/";

/// Refs of hangar by own name, and the prefixes that they lie below.
fn state(env: &TestEnv, dir: &Path, prefix: &str) -> Vec<String> {
    let format = "--format=%(objectname) %(refname)";
    let all = env.git(dir, &["for-each-ref", format, prefix]);
    all.lines().map(|line| line.replace(prefix, "")).collect()
}

fn init(hub: &Hub, dir: &Path, word: &str) -> serde_json::Value {
    hub.env.json(dir, &["init", "--prefix", word])
}

#[test]
fn one_of_two_clones_moves_and_both_go_on() {
    let (hub, first) = Hub::new();
    let env = &hub.env;
    let task = hub.task(&first, "Shared");
    hub.sync(&first).success();
    let second = hub.clone("second");
    let before = state(env, &first, "refs/hangar/");
    let report = init(&hub, &first, "branches");
    assert_eq!(report["outcome"], "moved");
    assert_eq!(report["moved"], 2);
    assert_eq!(report["prefix"], BRANCHES);
    assert_eq!(state(env, &first, BRANCHES), before);
    assert_eq!(state(env, &first, "refs/hangar/"), [""; 0]);
    // Once more: nothing to do.
    assert_eq!(init(&hub, &first, "branches")["outcome"], "unchanged");
    // It reads, writes and syncs with what still has the old prefix.
    hub.edit(&first, &task, "From branches");
    let sent = hub.sync(&first).success().json();
    assert_eq!(sent["prefix"], "refs/hangar/");
    assert_eq!(sent["pushed"], json!([format!("{BRANCHES}tasks/{task}")]));
    hub.edit(&second, &task, "From the usual place");
    hub.sync(&second).success();
    hub.sync(&first).success();
    assert_eq!(hub.show(&first, &task), hub.show(&second, &task));
    assert_eq!(
        state(env, &first, BRANCHES),
        state(env, &second, "refs/hangar/")
    );
    assert_eq!(state(env, &hub.bare, BRANCHES), [""; 0]);
    // What this clone has seen is remembered across the move.
    let verify = env.hangar(&first, &["verify", &task, "--json"]);
    assert!(!verify.stdout.contains("it is gone"), "{verify}");
    assert_eq!(init(&hub, &first, "hangar")["moved"], 2);
    assert_eq!(
        state(env, &first, "refs/hangar/"),
        state(env, &second, "refs/hangar/")
    );
    env.git(&first, &["fsck", "--strict"]);
}

#[test]
fn a_ref_that_goes_back_after_the_move_is_noticed() {
    let (hub, first) = Hub::new();
    let task = hub.task(&first, "Shared");
    hub.edit(&first, &task, "Edited");
    init(&hub, &first, "branches");
    let name = format!("{BRANCHES}tasks/{task}");
    hub.env
        .git(&first, &["update-ref", &name, &format!("{name}~1")]);
    let verify = hub.env.hangar(&first, &["--offline", "verify", &task]);
    assert!(
        verify.stdout.contains("it was put back or rewritten"),
        "{verify}"
    );
}

#[test]
fn a_remote_moves_and_every_clone_follows() {
    let (hub, first) = Hub::new();
    let env = &hub.env;
    let task = hub.task(&first, "Shared");
    hub.sync(&first).success();
    let second = hub.clone("second");
    hub.edit(&second, &task, "Not sent yet");
    let moved = env.json(&first, &["sync", "--prefix", "branches"]);
    assert_eq!(moved["moved"], 2);
    assert_eq!(moved["prefix"], BRANCHES);
    assert_eq!(
        state(env, &hub.bare, BRANCHES),
        state(env, &first, "refs/hangar/")
    );
    assert_eq!(state(env, &hub.bare, "refs/hangar/"), [""; 0]);
    // The other one notices, and takes nothing for lost.
    let report = hub.sync(&second).success().json();
    assert_eq!(report["prefix"], BRANCHES);
    assert_eq!(report.get("losses"), None, "{report}");
    assert_eq!(report["pushed"], json!([task_ref(&task)]));
    hub.sync(&first).success();
    assert_eq!(hub.show(&first, &task)["title"], "Not sent yet");
    // What it loses is put back where it was.
    hub.env
        .git(env.root(), &["clone", "-q", "--bare", "first", "x.git"]);
    for name in env
        .git(
            &hub.bare,
            &["for-each-ref", "--format=%(refname)", BRANCHES],
        )
        .lines()
    {
        env.git(&hub.bare, &["update-ref", "-d", name]);
    }
    hub.sync(&second).success();
    assert_eq!(
        state(env, &hub.bare, BRANCHES),
        state(env, &second, "refs/hangar/")
    );
    // And back.
    let back = env.json(&second, &["sync", "--prefix", "hangar"]);
    assert_eq!(back["moved"], 2);
    let idle = hub.sync(&first).success().json();
    assert_eq!(
        (idle["prefix"].as_str(), idle.get("losses")),
        (Some("refs/hangar/"), None)
    );
}

#[test]
fn a_move_that_the_remote_refuses_changes_nothing_there() {
    let (hub, first) = Hub::new();
    let env = &hub.env;
    hub.task(&first, "Shared");
    hub.sync(&first).success();
    hook(
        &hub.bare,
        "update",
        "case $3 in *[!0]*) ;; *) exit 1;; esac",
    );
    let before = env.git(&hub.bare, &["for-each-ref"]);
    let ran = env
        .hangar(&first, &["sync", "--prefix", "branches", "--json"])
        .exits(7);
    let why = ran.json()["not_pushed"].as_str().unwrap().to_owned();
    assert!(why.contains("hook declined"), "{why}");
    assert_eq!(env.git(&hub.bare, &["for-each-ref"]), before);
}

/// A host that begins to refuse refs that are neither branches nor tags.
#[test]
fn what_the_old_place_does_not_take_any_more_goes_to_the_new_one() {
    let (hub, first) = Hub::new();
    let env = &hub.env;
    let old = hub.task(&first, "Old");
    hub.sync(&first).success();
    let second = hub.clone("second");
    hook(
        &hub.bare,
        "pre-receive",
        "while read o n r; do case $r in refs/heads/*) ;; *) case $n in *[!0]*) echo denied; exit 1;; esac;; esac; done",
    );
    hub.edit(&first, &old, "Changed");
    let new = hub.task(&first, "New");
    let refused = hub.sync(&first).exits(7).json();
    let why = refused["not_pushed"].as_str().unwrap();
    assert!(why.contains("denied"), "{why}");
    let moved = env.json(&first, &["sync", "--prefix", "branches"]);
    assert_eq!(moved["moved"], 2, "{moved}");
    assert_eq!(moved["prefix"], BRANCHES, "{moved}");
    assert_eq!(moved.get("unpublished"), None, "{moved}");
    assert_eq!(state(env, &hub.bare, "refs/hangar/"), [""; 0]);
    assert_eq!(
        state(env, &hub.bare, BRANCHES),
        state(env, &first, "refs/hangar/")
    );
    hub.sync(&second).success();
    assert_eq!(hub.show(&second, &old)["title"], "Changed");
    assert_eq!(hub.show(&second, &new)["title"], "New");
}

#[test]
fn a_move_that_stopped_half_way_is_ended_by_asking_again() {
    let (hub, first) = Hub::new();
    let env = &hub.env;
    let task = hub.task(&first, "Shared");
    hub.sync(&first).success();
    let second = hub.clone("second");
    // As a killed move leaves it: everything new is there, the old too, and one old ref grew since.
    let copy = |dir: &Path| {
        for line in state(env, dir, "refs/hangar/") {
            let (id, own) = line.split_once(' ').unwrap();
            env.git(dir, &["update-ref", &format!("{BRANCHES}{own}"), id]);
        }
    };
    copy(&first);
    let ran = env.hangar(&first, &["task", "list"]).exits(4);
    assert!(ran.stderr.contains("hangar init --prefix hangar"), "{ran}");
    assert_eq!(init(&hub, &first, "branches")["moved"], 2);
    assert_eq!(hub.show(&first, &task)["title"], "Shared");
    init(&hub, &first, "hangar");
    // The same on the remote.
    copy(&hub.bare);
    hub.edit(&second, &task, "Meanwhile");
    let grown = env.git(&second, &["rev-parse", &task_ref(&task)]);
    env.git(
        &second,
        &[
            "push",
            "-q",
            "origin",
            &format!("{grown}:{}", task_ref(&task)),
        ],
    );
    let ran = env.hangar(&first, &["sync"]).exits(4);
    assert!(ran.stderr.contains("hangar sync REMOTE --prefix"), "{ran}");
    env.json(&first, &["sync", "--prefix", "branches"]);
    assert_eq!(state(env, &hub.bare, "refs/hangar/"), [""; 0]);
    assert_eq!(hub.show(&first, &task)["title"], "Meanwhile");
    hub.sync(&second).success();
    assert_eq!(
        state(env, &hub.bare, BRANCHES),
        state(env, &second, "refs/hangar/")
    );
}

#[test]
fn what_a_command_wrote_below_the_old_prefix_is_said_and_joined() {
    let (hub, first) = Hub::new();
    let env = &hub.env;
    let task = hub.task(&first, "Left behind");
    let id = env.git(&first, &["rev-parse", &task_ref(&task)]);
    init(&hub, &first, "branches");
    env.git(&first, &["update-ref", &task_ref(&task), &id]);
    env.git(
        &first,
        &["update-ref", "-d", &format!("{BRANCHES}tasks/{task}")],
    );
    let ran = env.hangar(&first, &["sync"]).success();
    assert!(
        ran.stderr.contains("hangar init --prefix branches"),
        "{ran}"
    );
    assert_eq!(init(&hub, &first, "branches")["moved"], 1);
    assert_eq!(hub.show(&first, &task)["title"], "Left behind");
}

#[test]
fn two_states_are_never_taken_for_one() {
    let (hub, first) = Hub::new();
    let env = &hub.env;
    let other = env.ready("other");
    let url = other.display().to_string();
    let spec = format!("+refs/hangar/policy:{BRANCHES}policy");
    // Another policy below the other prefix, in a clone.
    env.git(&first, &["fetch", "-q", &url, &spec]);
    let before = env.git(&first, &["for-each-ref"]);
    for word in ["hangar", "branches"] {
        env.hangar(&first, &["init", "--prefix", word]).exits(4);
        env.hangar(&first, &["task", "list"]).exits(4);
    }
    assert_eq!(env.git(&first, &["for-each-ref"]), before);
    env.git(&first, &["update-ref", "-d", &format!("{BRANCHES}policy")]);
    // On the remote it is not ours, and left alone; also by a clone that has not seen it before.
    env.git(&hub.bare, &["fetch", "-q", &url, &spec]);
    let foreign = env.git(&hub.bare, &["rev-parse", &format!("{BRANCHES}policy")]);
    let task = hub.task(&first, "Ours");
    for _ in 0..2 {
        let ran = hub.sync(&first).success();
        assert_eq!(ran.json()["prefix"], "refs/hangar/");
        // Nobody goes on beside it without knowing.
        assert!(ran.stderr.contains("holds another policy too"), "{ran}");
        let out = format!("git push --no-verify origin --delete {BRANCHES}policy");
        let flat = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(&out), "{ran}");
    }
    let ran = env
        .hangar(&first, &["sync", "--prefix", "branches"])
        .exits(4);
    assert!(
        ran.stderr.contains("holds another state below refs/heads/"),
        "{ran}"
    );
    assert_eq!(
        env.git(&hub.bare, &["rev-parse", &format!("{BRANCHES}policy")]),
        foreign
    );
    assert_eq!(
        state(env, &hub.bare, "refs/hangar/"),
        state(env, &first, "refs/hangar/")
    );
    // The code says which one is meant; where it does not, nobody guesses.
    let third = hub.clone("third");
    assert_eq!(hub.show(&third, &task)["title"], "Ours");
    let bare = env.repo("bare of settings", &[]);
    env.git(
        &bare,
        &["remote", "add", "origin", hub.bare.to_str().unwrap()],
    );
    let ran = env.hangar(&bare, &["init"]).exits(4);
    assert!(ran.stderr.contains("holds two policies"), "{ran}");
    assert_eq!(hub.show(&first, &task)["title"], "Ours");
}

#[test]
fn a_repository_may_begin_below_branches_and_a_branch_in_the_way_is_named() {
    let env = TestEnv::new();
    let dir = env.repo("repo", &[]);
    let report = env.json(&dir, &["init", "--prefix", "branches"]);
    assert_eq!(
        (report["outcome"].as_str(), report["prefix"].as_str()),
        (Some("founded"), Some(BRANCHES))
    );
    env.commit(&dir, "set up");
    env.hangar(&dir, &["task", "new", "x", "--plain"]).success();
    env.json(&dir, &["init", "--prefix", "hangar"]);
    env.git(&dir, &["branch", "hangar-state"]);
    let before = env.git(&dir, &["for-each-ref"]);
    let ran = env.hangar(&dir, &["init", "--prefix", "branches"]).exits(4);
    assert!(
        ran.stderr.contains("refs/heads/hangar-state exists"),
        "{ran}"
    );
    assert_eq!(env.git(&dir, &["for-each-ref"]), before);
    env.hangar(&dir, &["task", "list"]).success();
    // The way out that is told.
    let told = typed(&ran.stderr, "git branch");
    let told = told.replace("NAME", "mine");
    env.git(&dir, &told.split(' ').skip(1).collect::<Vec<_>>());
    env.hangar(&dir, &["init", "--prefix", "branches"])
        .success();
}

/// The command in backticks that begins so.
fn typed(text: &str, word: &str) -> String {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut quoted = flat.split('`').skip(1).step_by(2);
    let own = quoted.find(|one| one.starts_with(word));
    own.unwrap_or_else(|| panic!("{text}")).to_owned()
}

#[test]
fn a_ref_in_the_way_of_others_goes_by_the_command_that_is_told() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    // Hooks of hangar let no such ref go.
    env.hangar_found(&dir, &["init", "--hooks"]).success();
    let unhooked = ["-c", "core.hooksPath=/dev/null", "update-ref"];
    let set = [&unhooked[..], &["refs/hangar/tasks", "HEAD"]].concat();
    env.git(&dir, &set);
    let new = ["task", "new", "x", "--plain"];
    let ran = env.hangar(&dir, &new).exits(4);
    assert!(ran.stderr.contains("refs/hangar/tasks exists"), "{ran}");
    assert!(!ran.stderr.contains("deliver.branch"), "{ran}");
    let told = typed(&ran.stderr, "git -c");
    let words: Vec<_> = told.split(' ').skip(1).collect();
    env.git_said(&dir, &words).done();
    env.hangar(&dir, &new).success();
    // The same on a remote.
    let (hub, first) = Hub::new();
    hub.task(&first, "Shared");
    hub.env.git(&hub.bare, &["branch", "hangar-state", "main"]);
    let there = ["sync", "--prefix", "branches"];
    hub.env.hangar(&first, &["sync"]).success();
    let ran = hub.env.hangar(&first, &there).exits(7);
    assert!(!ran.stdout.contains("the right to push"), "{ran}");
    let told = typed(&ran.stdout, "git push");
    hub.env
        .git(&first, &told.split(' ').skip(1).collect::<Vec<_>>());
    hub.env.hangar(&first, &there).success();
    assert_eq!(state(&hub.env, &hub.bare, "refs/hangar/"), [""; 0]);
}

#[test]
fn what_stands_in_the_new_place_of_one_ref_keeps_all_where_they_are() {
    let (hub, first) = Hub::new();
    let env = &hub.env;
    let task = hub.task(&first, "Shared");
    hub.task(&first, "Other");
    hub.sync(&first).success();
    let before = state(env, &hub.bare, "refs/hangar/");
    let name = format!("{BRANCHES}tasks/{task}");
    let signed = hub.stranger(None, "event.toml", "x");
    env.git(&hub.bare, &["update-ref", &name, &signed]);
    let there = ["sync", "--prefix", "branches"];
    let ran = env.hangar(&first, &there).exits(1);
    assert!(ran.stdout.contains("nothing was moved"), "{ran}");
    assert_eq!(state(env, &hub.bare, "refs/hangar/"), before);
    assert_eq!(state(env, &hub.bare, BRANCHES).len(), 1);
    let told = typed(&ran.stdout, "git push");
    env.git(&first, &told.split(' ').skip(1).collect::<Vec<_>>());
    // A branch without any document gives way.
    let main = env.git(&hub.bare, &["rev-parse", "main"]);
    env.git(&hub.bare, &["update-ref", &name, &main]);
    let moved = env.json(&first, &there);
    assert_eq!(moved["moved"], before.len());
    assert_eq!(state(env, &hub.bare, BRANCHES), before);
    assert_eq!(state(env, &hub.bare, "refs/hangar/"), [""; 0]);
}

/// The remote keeps branches, one clone the usual refs, the other branches as well.
#[test]
fn tasks_are_archived_through_a_remote_below_the_other_prefix() {
    let (hub, first) = Hub::new();
    let env = &hub.env;
    let task = hub.task(&first, "Over");
    let cancel = ["task", "cancel", &task, "--reason", "done with it"];
    env.hangar(&first, &cancel).success();
    let head = env.git(&first, &["rev-parse", &task_ref(&task)]);
    env.json(&first, &["sync", "--prefix", "branches"]);
    let second = hub.clone("second");
    init(&hub, &second, "branches");
    env.json(&first, &["task", "archive", &task]);
    assert_eq!(env.json(&first, &["sync"])["archived"], json!([task]));
    let there = state(env, &hub.bare, BRANCHES);
    let has = |refs: &[String], own: &str| refs.iter().any(|line| line.ends_with(own));
    assert!(
        has(&there, &format!(" archive/{}", &task[..1])),
        "{there:?}"
    );
    assert!(!has(&there, &format!(" tasks/{task}")), "{there:?}");
    assert_eq!(state(env, &hub.bare, "refs/hangar/"), [""; 0]);
    // The other clone lets go of its ref too, and takes nothing for lost.
    let report = env.json(&second, &["sync"]);
    assert_eq!(report["archived"], json!([task]), "{report}");
    assert_eq!(report.get("losses"), None, "{report}");
    assert_eq!(state(env, &second, BRANCHES), there);
    assert_eq!(state(env, &first, "refs/hangar/"), there);
    assert_eq!(hub.show(&second, &task), hub.show(&first, &task));
    for dir in [&first, &second] {
        let shown = state(env, dir, "refs/hangar-remote/origin/");
        assert!(!has(&shown, &format!(" tasks/{task}")), "{shown:?}");
        let idle = env.json(dir, &["sync"]);
        assert_eq!(
            (&idle["pushed"], &idle["fetched"]),
            (&json!([]), &json!([]))
        );
        assert_eq!((idle.get("archived"), idle.get("losses")), (None, None));
    }
    // The archive moves along, and takes up what somebody pushed to the old place afterwards.
    env.json(&first, &["sync", "--prefix", "hangar"]);
    assert_eq!(state(env, &hub.bare, "refs/hangar/"), there);
    let late = format!("{BRANCHES}tasks/{task}");
    env.git(&hub.bare, &["update-ref", &late, &head]);
    assert_eq!(
        env.json(&second, &["sync", "--prefix", "hangar"])["moved"],
        1
    );
    assert_eq!(state(env, &hub.bare, BRANCHES), [""; 0]);
    assert_eq!(state(env, &hub.bare, "refs/hangar/"), there);
    assert_eq!(state(env, &second, BRANCHES), there);
}

/// The program that moves the refs dies at some moment; whatever it left, the same command ends the move,
/// and no ref is lost.
#[test]
#[ignore = "heavy: waits for lock files of killed processes"]
fn a_move_that_is_killed_at_any_moment_is_ended_by_asking_again() {
    let (hub, first) = Hub::new();
    let env = &hub.env;
    let task = hub.task(&first, "Shared");
    let id = env.git(&first, &["rev-parse", &task_ref(&task)]);
    let letter = |at: usize| char::from(b"abcdefghijklmnopqrstuvwxyz"[at % 26]);
    for at in 0..400 {
        let other = format!("{}{}{}", letter(at), letter(at / 26), "a".repeat(50));
        env.git(&first, &["update-ref", &task_ref(&other), &id]);
    }
    let all = state(env, &first, "refs/hangar/");
    assert_eq!(all.len(), 402);
    let real = env.git(&first, &["--exec-path"]);
    let folder = env.root().join("bin");
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    // How long a whole move takes here; the kills are spread over that.
    let begun = std::time::Instant::now();
    init(&hub, &first, "branches");
    init(&hub, &first, "hangar");
    let whole = begun.elapsed() / 2;
    let (mut killed, mut torn) = (0, 0);
    for (round, word) in ["branches", "hangar"]
        .into_iter()
        .cycle()
        .take(12)
        .enumerate()
    {
        let script = format!(
            "#!/bin/sh\ncase \" $* \" in *' update-ref '*) exec 3<&0; '{real}/git' \"$@\" <&3 & \
             sleep {:.3}; kill -9 $! && kill -9 $$; wait $!; exit;; esac\nexec '{real}/git' \"$@\"\n",
            (whole / 12 * u32::try_from(round).unwrap()).as_secs_f64()
        );
        crate::common::write(&folder.join("git"), &script);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(folder.join("git"), mode).unwrap();
        let args = ["init", "--prefix", word];
        let ran = env.hangar_with(&first, &args, &[("PATH", &path)], "");
        killed += usize::from(ran.code != Some(0));
        let left = [
            state(env, &first, "refs/hangar/"),
            state(env, &first, BRANCHES),
        ];
        torn += usize::from(left.iter().all(|some| !some.is_empty()));
        env.hangar(&first, &args).success();
        let (here, gone) = match word {
            "branches" => (BRANCHES, "refs/hangar/"),
            _ => ("refs/hangar/", BRANCHES),
        };
        assert_eq!(state(env, &first, here), all, "round {round}");
        assert_eq!(state(env, &first, gone), [""; 0], "round {round}");
    }
    assert!(killed > 0, "nothing was killed");
    println!("{killed} killed, {torn} of them in the middle");
}
