//! Setting up a clone where the remote is not as it should be: each refusal leads somewhere, and the way
//! that it tells works.

use super::common::TestEnv;
use super::common::hub::Hub;
use std::path::PathBuf;

/// A clone in which hangar was not set up yet.
fn fresh(hub: &Hub, name: &str) -> PathBuf {
    hub.env
        .git(hub.env.root(), &["clone", "-q", "hub.git", name]);
    hub.env.root().join(name)
}

const BOTH: &str = "refs/hangar/*:refs/heads/hangar-state/*";

#[test]
fn one_state_below_both_prefixes_is_joined_from_a_new_clone() {
    let (hub, first) = Hub::new();
    let env = &hub.env;
    env.git(&hub.bare, &["fetch", "-q", ".", BOTH]);
    // One place has come further.
    let task = hub.task(&first, "Later");
    let push = ["push", "-q", "origin", "refs/hangar/*:refs/hangar/*"];
    env.git(&first, &push);
    let new = fresh(&hub, "new");
    env.hangar(&new, &["init"]).success();
    let ran = env.hangar(&new, &["sync"]).exits(4);
    assert!(ran.stderr.contains("hangar sync REMOTE --prefix"), "{ran}");
    env.hangar(&new, &["sync", "origin", "--prefix", "hangar"])
        .success();
    assert_eq!(hub.show(&new, &task)["title"], "Later");
    let left = ["for-each-ref", "refs/heads/hangar-state/"];
    assert_eq!(env.git(&hub.bare, &left), "");
}

#[test]
fn two_states_below_both_prefixes_are_told_apart_by_hangar_toml() {
    let (hub, first) = Hub::new();
    let env = &hub.env;
    let other = env.ready("other");
    let spec = "refs/hangar/*:refs/heads/hangar-state/*";
    env.git(&hub.bare, &["fetch", "-q", other.to_str().unwrap(), spec]);
    let id = env.json(&first, &["policy", "show"])["repo"].clone();
    let id = id.as_str().unwrap();
    let new = fresh(&hub, "new");
    let path = new.join("hangar.toml");
    let named = std::fs::read_to_string(&path).unwrap();
    let without = named.replace(&format!("repo = \"{id}\""), "");
    assert_ne!(named, without);
    std::fs::write(&path, without).unwrap();
    let ran = env.hangar(&new, &["init"]).exits(4);
    assert!(ran.stderr.contains("holds two policies"), "{ran}");
    assert!(ran.stderr.contains("[trust] repo"), "{ran}");
    std::fs::write(&path, named).unwrap();
    env.hangar(&new, &["init"]).success();
    // Both in one clone: the way out that is told.
    let spec = "refs/heads/hangar-state/*:refs/heads/hangar-state/*";
    env.git(&new, &["fetch", "-q", "origin", spec]);
    let ran = env.hangar(&new, &["task", "list"]).exits(4);
    assert!(ran.stderr.contains("`hangar deinit` makes"), "{ran}");
    env.hangar(&new, &["deinit", "--yes"]).success();
    env.hangar(&new, &["init"]).success();
    env.hangar(&new, &["task", "list"]).success();
    assert_eq!(env.json(&new, &["policy", "show"])["repo"], id);
}

#[test]
fn a_remote_whose_policy_is_none_is_named_with_what_shows_it() {
    let (hub, first) = Hub::new();
    let env = &hub.env;
    let junk = hub.blob("nothing of ours");
    env.git(&hub.bare, &["update-ref", "refs/hangar/policy", &junk]);
    let new = fresh(&hub, "new");
    let ran = env.hangar(&new, &["init"]).exits(4);
    assert!(
        ran.stderr.contains("is no policy that can be taken"),
        "{ran}"
    );
    for told in [
        "`git fetch origin refs/hangar/policy`",
        "`git cat-file -p FETCH_HEAD`",
    ] {
        assert!(ran.stderr.contains(told), "{ran}");
        let told: Vec<&str> = told.trim_matches('`').split(' ').skip(1).collect();
        env.git(&new, &told);
    }
    hub.sync(&first).success();
    env.hangar(&new, &["init"]).success();
}

#[test]
fn of_two_who_founded_at_the_same_time_the_later_one_is_told_how_to_give_way() {
    let (hub, first) = Hub::new();
    let env = &hub.env;
    let task = hub.task(&first, "Theirs");
    hub.sync(&first).success();
    let late = env.ready("late");
    let mine = hub.task(&late, "Mine");
    env.git(&late, &["remote", "add", "origin", "../hub.git"]);
    let before = hub.refs(&hub.bare);
    for _ in 0..2 {
        let ran = env.hangar(&late, &["sync"]).exits(4);
        assert!(ran.stderr.contains("founded another one"), "{ran}");
        assert!(ran.stderr.contains("`hangar deinit` here"), "{ran}");
        assert!(!ran.stderr.contains("--delete"), "{ran}");
    }
    assert_eq!(hub.refs(&hub.bare), before);
    // The doctor says so as well, and nothing of the kind where it is this clone's.
    let sick = env.hangar(&late, &["doctor"]).exits(3);
    assert!(sick.stdout.contains("which is not this clone's"), "{sick}");
    let well = env.hangar(&first, &["doctor"]);
    assert!(
        well.stdout.contains("origin answers and holds a policy"),
        "{well}"
    );
    assert_eq!(hub.show(&late, &mine)["title"], "Mine");
    // The way that is told.
    env.hangar(&late, &["deinit", "--yes"]).success();
    env.git(&late, &["fetch", "-q", "origin"]);
    env.git(&late, &["checkout", "-q", "-B", "main", "origin/main"]);
    env.hangar(&late, &["init"]).success();
    hub.sync(&late).success();
    assert_eq!(hub.show(&late, &task)["title"], "Theirs");
}

/// The file that the second founder wrote stands in the way of the one that comes with the code.
#[test]
fn a_second_founder_gives_way_by_the_commands_that_are_told() {
    for committed in [true, false] {
        let env = TestEnv::new();
        let code = env.repo("code", &[("calc.py", "x = 1\n")]);
        let root = env.root().to_owned();
        env.git(&root, &["clone", "-q", "--bare", "code", "hub.git"]);
        let [one, two] = ["one", "two"].map(|name| {
            env.git(&root, &["clone", "-q", "hub.git", name]);
            let dir = root.join(name);
            env.hangar(&dir, &["init", "--yes"]).success();
            dir
        });
        drop(code);
        env.commit(&one, "set up");
        env.git(&one, &["push", "-q", "origin", "main"]);
        env.hangar(&one, &["sync"]).success();
        if committed {
            env.commit(&two, "set up too");
        }
        let ran = env.hangar(&two, &["sync"]).exits(4);
        assert!(ran.stderr.contains("`hangar deinit` here"), "{ran}");
        let out = env.hangar(&two, &["deinit", "--yes"]).success();
        let told = out.stdout.split('`').filter(|one| one.contains("rm "));
        let told: Vec<_> = told.collect();
        let [told] = told.as_slice() else {
            panic!("{out}");
        };
        let shell = env.command("sh", &two).args(["-c", told]).output().unwrap();
        env.ran(&["sh"], &shell).success();
        env.git(&two, &["pull", "-q", "--no-rebase", "--no-edit"]);
        env.hangar(&two, &["init", "--yes"]).success();
        env.hangar(&two, &["sync"]).success();
    }
}

/// Where both had met, a foreign policy is somebody's mischief, and keeps nothing else back.
#[test]
fn a_policy_that_was_replaced_later_is_no_second_founding() {
    let (hub, first) = Hub::new();
    let env = &hub.env;
    let other = env.ready("other");
    let spec = "+refs/hangar/policy:refs/hangar/policy";
    env.git(&hub.bare, &["fetch", "-q", other.to_str().unwrap(), spec]);
    let task = hub.task(&first, "Goes on");
    for _ in 0..2 {
        let report = hub.sync(&first).exits(1).json();
        let left = &report["not_applied"][0];
        assert_eq!(left["ref"], "refs/hangar/policy", "{report}");
    }
    let there = hub.refs(&hub.bare);
    assert!(there.contains(&task), "{there}");
}

#[test]
fn on_somebody_s_branch_a_new_clone_is_told_to_check_out_the_default_one() {
    let (hub, _) = Hub::new();
    let env = &hub.env;
    let new = fresh(&hub, "new");
    let path = new.join("hangar.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let at = text.find("sha256:").unwrap();
    let evil = format!(
        "{}sha256:{}{}",
        &text[..at],
        "0".repeat(64),
        &text[at + 71..]
    );
    env.git(&new, &["checkout", "-q", "-b", "proposal"]);
    std::fs::write(&path, evil).unwrap();
    env.git(&new, &["commit", "-q", "-a", "-m", "Trust me"]);
    let ran = env.hangar(&new, &["init"]).exits(4);
    assert!(ran.stderr.contains("check out the default branch"), "{ran}");
    env.git(&new, &["checkout", "-q", "main"]);
    env.hangar(&new, &["init"]).success();
}
