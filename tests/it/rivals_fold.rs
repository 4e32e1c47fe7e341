//! What clones show of tasks while rival versions of the policy are undecided: the same everywhere, and
//! nothing that counts because somebody made a rival. And who is asked to decide.

use super::cli_help::validate;
use super::common::TestEnv;
use super::common::hub::Team;
use serde_json::Value;
use std::path::Path;

/// A person is added by somebody who knows of nothing else.
fn add(env: &TestEnv, dir: &Path, name: &str) {
    let key = env.add_key(name);
    let add = ["--offline", "policy", "add", name, "--key", &key];
    env.hangar(dir, &add).success();
}

/// Both clones have both versions.
fn meet(team: &Team) {
    team.alice().hangar(&team.first, &["sync"]);
    for (env, dir) in [(&team.bob, &team.second), (team.alice(), &team.first)] {
        env.hangar(dir, &["sync"]).exits(4);
    }
    team.bob.hangar(&team.second, &["sync"]).exits(4);
}

fn edit(env: &TestEnv, dir: &Path, task: &str, title: &str) {
    let edit = ["task", "edit", task, "--title", title];
    env.hangar(dir, &edit).success();
}

#[test]
fn while_rivals_are_undecided_every_clone_shows_the_same_tasks() {
    let team = Team::with("admin");
    let (alice, bob) = (team.alice(), &team.bob);
    let task = team.hub.task(&team.first, "Before");
    team.sync();
    // Under the version that both know.
    edit(bob, &team.second, &task, "By bob, before");
    team.sync();
    let third = team.hub.clone("third");
    // Each works under a version of their own.
    add(alice, &team.first, "carol");
    add(bob, &team.second, "dave");
    edit(alice, &team.first, &task, "Under alice's");
    let mine = team.hub.task(&team.first, "Mine");
    let new = ["--offline", "task", "new", "His", "--plain"];
    let his = bob.json(&team.second, &new)["id"]
        .as_str()
        .unwrap()
        .to_owned();
    edit(bob, &team.second, &his, "His, under bob's");
    meet(&team);
    alice.hangar(&third, &["sync"]).exits(4);
    let clones = [
        (alice, team.first.as_path()),
        (bob, team.second.as_path()),
        (alice, third.as_path()),
    ];
    for args in [
        &["task", "list"][..],
        &["task", "log", &task],
        &["task", "log", &mine],
        &["task", "log", &his],
        &["task", "show", &task],
        &["task", "show", &his],
    ] {
        let shown = clones.map(|(env, dir)| env.json(dir, args));
        assert_eq!(shown[0], shown[1], "{args:?}");
        assert_eq!(shown[0], shown[2], "{args:?}");
    }
    let title = |task: &str| alice.json(&team.first, &["task", "show", task])["title"].clone();
    assert_eq!(
        (title(&task), title(&his)),
        ("By bob, before".into(), "His".into())
    );
    let log = alice.json(&team.first, &["task", "log", &task]).to_string();
    assert!(log.contains("which has an undecided rival"), "{log}");
    // Nothing is archived meanwhile: what has ended may be open under the other version.
    alice.hangar(&team.first, &["task", "archive"]).exits(4);
    // Where it is decided, what was signed under the version that stands counts.
    let page = alice.json(&team.first, &["policy", "show"]);
    let mut versions = page["rivals"][0]["versions"].as_array().unwrap().iter();
    let own = versions.find(|one| one["signed"][0] == "alice").unwrap();
    let keep = own["digest"].as_str().unwrap();
    alice
        .hangar(&team.first, &["policy", "resolve", keep])
        .success();
    for (env, dir) in clones {
        env.hangar(dir, &["sync"]);
        let shown = env.json(dir, &["task", "show", &task]);
        assert_eq!(shown["title"], "Under alice's");
    }
}

#[test]
fn who_lost_rights_gets_none_back_by_making_a_rival() {
    let team = Team::with("admin");
    let (alice, bob) = (team.alice(), &team.bob);
    let task = team.hub.task(&team.first, "Before");
    let other = team.hub.task(&team.first, "Other");
    team.sync();
    edit(bob, &team.second, &other, "While he may");
    team.sync();
    let third = team.hub.clone("third");
    let remove = ["policy", "remove", "bob", "--compromised"];
    alice.hangar(&team.first, &remove).success();
    // He names the version in which he was an admin, which a rival of the one that took his rights would
    // bring back.
    edit(bob, &team.second, &task, "By bob");
    // A clone that knows of nothing else yet has it, and lists it.
    let from = team.second.to_str().unwrap();
    alice.hangar(&third, &["sync", from]).success();
    let listed = || alice.json(&third, &["task", "list"]).to_string();
    assert!(listed().contains("By bob"));
    add(bob, &team.second, "mallory");
    meet(&team);
    alice.hangar(&third, &["sync"]).exits(4);
    assert!(!listed().contains("By bob"));
    for (env, dir) in team.sides() {
        let title = |task: &str| env.json(dir, &["task", "show", task])["title"].clone();
        assert_eq!(title(&task), "Before");
        assert_eq!(title(&other), "While he may");
    }
    let show = alice.json(&team.first, &["policy", "show"]);
    let mut versions = show["rivals"][0]["versions"].as_array().unwrap().iter();
    let own = versions.find(|one| one["signed"][0] == "alice").unwrap();
    let keep = own["digest"].as_str().unwrap();
    alice
        .hangar(&team.first, &["policy", "resolve", keep])
        .success();
    let shown = alice.json(&team.first, &["task", "show", &task]);
    assert_eq!(shown["title"], "Before");
}

fn rivals_in(inbox: &Value) -> Vec<(String, String)> {
    let items = inbox["items"].as_array().unwrap().iter();
    let own = items.filter(|item| item["kind"] == "rival");
    let text = |item: &Value, name: &str| item[name].as_str().unwrap().to_owned();
    own.map(|item| (text(item, "title"), text(item, "command")))
        .collect()
}

#[test]
fn who_can_decide_between_rivals_finds_them_in_the_inbox_with_their_later_versions() {
    let team = Team::with("admin");
    let (alice, bob) = (team.alice(), &team.bob);
    add(alice, &team.first, "carol");
    add(bob, &team.second, "dave");
    add(bob, &team.second, "erin");
    meet(&team);
    for (env, dir) in team.sides() {
        let page = env.json(dir, &["policy", "show"]);
        validate("policy-show", &page);
        let mut versions = page["rivals"][0]["versions"].as_array().unwrap().iter();
        let bobs = versions.find(|one| one["signed"][0] == "bob").unwrap();
        let later = &bobs["later"][0];
        assert_eq!(
            (&later["version"], &later["signed"][0]),
            (&4.into(), &"bob".into())
        );
        assert!(later["changes"].to_string().contains("+ erin"), "{later}");
        for page in [&["policy", "show"][..], &["sync"]] {
            let ran = env.hangar(dir, page);
            assert!(ran.stdout.contains("then version 4"), "{ran}");
            assert!(ran.stdout.contains("+ erin (member)"), "{ran}");
        }
        let refused = env.hangar(dir, &["task", "new", "x", "--plain"]).exits(4);
        assert!(refused.stderr.contains("with 1 later version"), "{refused}");
    }
    let inbox = |env: &TestEnv, dir: &Path| {
        let inbox = env.json(dir, &["inbox"]);
        validate("inbox", &inbox);
        rivals_in(&inbox)
    };
    // bob, an admin without a root key, can't decide.
    assert_eq!(inbox(bob, &team.second), []);
    let found = inbox(alice, &team.first);
    assert_eq!(found.len(), 2, "{found:?}");
    let bobs = found
        .iter()
        .find(|(title, _)| title.contains("by bob"))
        .unwrap();
    for part in ["version 4 by bob", "+ dave", "+ erin"] {
        assert!(bobs.0.contains(part), "{bobs:?}");
    }
    let typed: Vec<&str> = bobs.1.split(' ').skip(1).collect();
    alice.hangar(&team.first, &typed).success();
    assert_eq!(inbox(alice, &team.first), []);
    team.sync();
    assert_eq!(team.shows()[0]["version"], 5);
}
