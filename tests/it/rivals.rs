//! Versions of the policy that follow the same one: met by sync, named everywhere, resolved.

use super::cli_help::validate;
use super::common::TestEnv;
use super::common::hub::Team;
use serde_json::Value;
use std::path::Path;

fn json(env: &TestEnv, dir: &Path, args: &[&str]) -> Value {
    env.json(dir, args)
}

/// A person is added by somebody who knows of nothing else.
fn add(env: &TestEnv, dir: &Path, name: &str) -> Value {
    let key = env.add_key(name);
    json(
        env,
        dir,
        &["--offline", "policy", "add", name, "--key", &key],
    )
}

/// alice adds carol while bob adds dave.
fn apart() -> (Team, [Value; 2]) {
    let team = Team::with("admin");
    let both = go_apart(&team);
    (team, both)
}

fn go_apart(team: &Team) -> [Value; 2] {
    let one = add(team.alice(), &team.first, "carol");
    let two = add(&team.bob, &team.second, "dave");
    [one, two]
}

fn digests(rivals: &Value) -> Vec<&str> {
    let versions = rivals[0]["versions"].as_array().unwrap().iter();
    versions
        .map(|one| one["digest"].as_str().unwrap())
        .collect()
}

/// Both clones meet the other's version, the one that `alice_first` says first.
fn meet(team: &Team, alice_first: bool) {
    let mut sides = team.sides();
    if !alice_first {
        sides.reverse();
    }
    let [(one, here), (two, there)] = sides;
    // The first to publish learns nothing.
    one.hangar(here, &["sync"]).success();
    let met = two.hangar(there, &["sync", "--json"]).exits(4).json();
    validate("sync", &met);
    assert_eq!(met["joined"], serde_json::json!(["refs/hangar/policy"]));
    let also = one.hangar(here, &["sync", "--json"]).exits(4).json();
    assert_eq!(also["rivals"], met["rivals"]);
    two.hangar(there, &["sync"]).exits(4);
    assert_eq!(team.hub.refs(here), team.hub.refs(there));
}

#[test]
fn rival_versions_are_named_everywhere_and_nothing_is_decided() {
    named_everywhere(true);
}

#[test]
#[ignore = "heavy: dozens of commands, for the other order"]
fn rival_versions_met_in_the_other_order_are_named_everywhere() {
    named_everywhere(false);
}

fn named_everywhere(alice_first: bool) {
    let team = Team::with("admin");
    let task = team.hub.task(&team.first, "Before");
    team.sync();
    let made = go_apart(&team);
    meet(&team, alice_first);
    let mut expected: Vec<_> = made
        .iter()
        .map(|one| one["digest"].as_str().unwrap())
        .collect();
    expected.sort_unstable();
    let shown = team.shows();
    for show in &shown {
        validate("policy-show", show);
        assert_eq!(digests(&show["rivals"]), expected, "{show}");
        assert_eq!(show["rivals"][0]["after"], 2);
    }
    // Both say the same, whatever each saw first: what stands before the rivals.
    assert_eq!(shown[0], shown[1]);
    assert_eq!(shown[0]["version"], 2);
    assert_eq!(shown[0]["people"].as_array().unwrap().len(), 2);
    let logs = team
        .sides()
        .map(|(env, dir)| json(env, dir, &["policy", "log"]));
    assert_eq!(logs[0], logs[1]);
    assert_eq!(logs[0]["versions"].as_array().unwrap().len(), 2);
    for (env, dir) in team.sides() {
        for page in [&["policy", "show"][..], &["policy", "log"], &["sync"]] {
            let ran = env.hangar(dir, page);
            for part in [
                "Rival versions 3",
                &expected[0]["sha256:".len()..][..12],
                &expected[1]["sha256:".len()..][..12],
                "signed by alice",
                "signed by bob",
                "carol (member)",
                "hangar policy resolve DIGEST",
            ] {
                assert!(ran.stdout.contains(part), "{part}: {ran}");
            }
        }
        let verified = env.hangar(dir, &["verify", "--all", "--json"]).exits(1);
        let fault = &verified.json()["faults"][0];
        assert_eq!(fault["link"], "policy", "{fault}");
        for name in ["alice", "bob"] {
            let signed = format!("signed by {name}");
            assert!(fault["what"].as_str().unwrap().contains(&signed), "{fault}");
        }
        // What shows goes on; what signs is refused, with the way out.
        env.hangar(dir, &["task", "list"]).success();
        let key = env.add_key("eve");
        for refused in [
            &["task", "new", "x", "--plain"][..],
            &["task", "comment", &task, "x"],
            &["task", "enqueue", &task],
            &["policy", "add", "eve", "--key", &key],
            &["policy", "edit", "--set", "approvers=2"],
            &["policy", "remove", "bob", "--retired"],
        ] {
            let ran = env.hangar(dir, refused).exits(4);
            assert!(ran.stderr.contains("policy resolve"), "{ran}");
            assert!(ran.stderr.contains("signed by bob"), "{ran}");
        }
        let doctor = env.hangar(dir, &["doctor"]).exits(3);
        assert!(doctor.stdout.contains("rival versions 3"), "{doctor}");
    }
    // A clone that has seen neither takes no side.
    let third = team.hub.env.root().join("third");
    team.hub
        .env
        .git(team.hub.env.root(), &["clone", "-q", "hub.git", "third"]);
    team.alice().hangar(&third, &["init"]).exits(4);
    assert_eq!(team.hub.refs(&third), "");
}

#[test]
fn the_root_keys_say_which_version_stands_and_every_clone_follows() {
    alice_keeps(0);
}

#[test]
#[ignore = "heavy: dozens of commands, for the other version"]
fn the_root_keys_may_keep_the_other_version() {
    alice_keeps(1);
}

/// alice, whose root key it is, keeps her own version or the other one.
fn alice_keeps(kept: usize) {
    let (team, made) = apart();
    meet(&team, true);
    let named = made[kept]["digest"].as_str().unwrap();
    let bobs = team.bob.hangar(&team.second, &["policy", "resolve", named]);
    let waits = bobs.exits(6);
    assert!(waits.stdout.contains("by root keys; can: alice"), "{waits}");
    for (wrong, code) in [("sha256:00", 4), ("zzzzzz", 4)] {
        let ran = team
            .alice()
            .hangar(&team.first, &["policy", "resolve", wrong]);
        assert!(ran.exits(code).stderr.contains("choose one of"));
    }
    // bob's proposal came with the sync; or she makes the same one herself.
    let short = &named["sha256:".len()..][..12];
    let done = json(team.alice(), &team.first, &["policy", "resolve", short]);
    validate("policy-resolve", &done);
    assert_eq!(
        (&done["in_force"], &done["version"]),
        (&true.into(), &4.into())
    );
    team.sync();
    let [one, two] = team.shows();
    assert_eq!(one, two);
    assert_eq!(one["rivals"], Value::Null);
    assert_eq!(one["people"][2]["name"], ["carol", "dave"][kept]);
    let signer = ["bob", "alice"][kept];
    let aside = &one["set_aside"][0];
    assert_eq!(aside["digest"], made[1 - kept]["digest"]);
    assert_eq!(aside["signed"], serde_json::json!([signer]));
    assert_eq!(team.hub.refs(&team.first), team.hub.refs(&team.second));
    assert_eq!(team.hub.refs(&team.first), team.hub.refs(&team.hub.bare));
    team.hub.env.git(&team.hub.bare, &["fsck", "--strict"]);
    // Everybody goes on.
    for (env, dir) in team.sides() {
        env.hangar(dir, &["verify", "--all"]).success();
        env.hangar(dir, &["task", "new", "x", "--plain"]).success();
    }
    add(&team.bob, &team.second, "erin");
    team.sync();
    assert_eq!(team.shows()[0]["version"], 5);
    let ran = team
        .alice()
        .hangar(&team.first, &["policy", "resolve", short]);
    assert!(
        ran.exits(4)
            .stderr
            .contains("no versions of the policy rival")
    );
}

#[test]
fn versions_made_one_after_the_other_are_no_rivals() {
    let team = Team::with("admin");
    add(team.alice(), &team.first, "carol");
    team.sync();
    add(&team.bob, &team.second, "dave");
    add(&team.bob, &team.second, "erin");
    team.sync();
    let [one, two] = team.shows();
    assert_eq!(one, two);
    assert_eq!((&one["version"], &one["rivals"]), (&5.into(), &Value::Null));
}

#[test]
fn documents_under_a_version_that_was_set_aside_count_only_when_they_are_adopted() {
    let (team, made) = apart();
    // Both work under their own version before they meet.
    let mine = team.hub.task(&team.first, "Under alice's");
    let new = ["task", "new", "Under bob's", "--plain"];
    let his = json(&team.bob, &team.second, &new)["id"]
        .as_str()
        .unwrap()
        .to_owned();
    team.bob
        .hangar(&team.second, &["task", "edit", &his, "--title", "Edited"])
        .success();
    meet(&team, true);
    let keep = made[0]["digest"].as_str().unwrap();
    team.alice()
        .hangar(&team.first, &["policy", "resolve", keep])
        .success();
    for (env, dir) in team.sides() {
        env.hangar(dir, &["sync"]);
    }
    for (env, dir) in team.sides() {
        // The task can be read, is named as not believed, and the edit has no effect.
        let shown = json(env, dir, &["task", "show", &his]);
        assert_eq!(shown["title"], "Under bob's");
        let log = json(env, dir, &["task", "log", &his]);
        assert!(log.to_string().contains("was set aside"), "{log}");
        assert_eq!(
            json(env, dir, &["task", "show", &mine])["title"],
            "Under alice's"
        );
        env.hangar(dir, &["verify", "--all"]).exits(1);
    }
    let show = |name: &str| {
        let commits = format!("refs/hangar/tasks/{his}");
        let args = ["rev-list", "--reverse", &commits];
        let commits = team.bob.git(&team.second, &args);
        let at = usize::from(name != "create");
        let commit = commits.lines().nth(at).unwrap();
        let file = format!("{commit}:event.toml");
        let bytes = super::common::git::file_at(&team.second, &file);
        hangar::model::digest::Digest::of(&bytes).to_string()
    };
    let (create, edit) = (show("create"), show("edit"));
    team.alice()
        .hangar(&team.first, &["policy", "adopt", &create, &edit])
        .success();
    for (env, dir) in team.sides().into_iter().chain(team.sides()) {
        env.hangar(dir, &["sync"]);
    }
    for (env, dir) in team.sides() {
        assert_eq!(json(env, dir, &["task", "show", &his])["title"], "Edited");
        env.hangar(dir, &["verify", "--all"]).success();
    }
    assert_eq!(team.shows()[1]["set_aside"][0]["documents"], 2);
}

#[test]
fn the_root_keys_of_both_sides_must_agree() {
    let team = Team::with("admin");
    let (alice, bob) = (team.alice(), &team.bob);
    // In another clone of alice's bob gets a root key, and two people must sign from then on.
    alice.git(alice.root(), &["clone", "-q", "hub.git", "other"]);
    let other = alice.root().join("other");
    alice.hangar(&other, &["init", "--yes"]).success();
    let key = bob.public_key();
    let root = ["--offline", "policy", "add", "bob", "--root", "--key", &key];
    let theirs = json(alice, &other, &root);
    let two = ["--offline", "policy", "edit", "--root-threshold", "2"];
    let waits = json_of(alice, &other, &two);
    let mine = add(alice, &team.first, "carol");
    let address = other.display().to_string();
    bob.hangar(&team.second, &["sync", &address]).success();
    let digest = waits["digest"].as_str().unwrap();
    bob.hangar(&team.second, &["policy", "sign", digest])
        .success();
    bob.hangar(&team.second, &["sync"]).success();
    let met = alice.hangar(&team.first, &["sync", "--json"]);
    let met = met.exits(4).json();
    let mut expected = [&mine, &theirs].map(|one| one["digest"].as_str().unwrap());
    expected.sort_unstable();
    assert_eq!(digests(&met["rivals"]), expected);
    // Her own root.toml asks for her alone; that of the other side for both of them.
    let keep = mine["digest"].as_str().unwrap();
    let waits = json_of(alice, &team.first, &["policy", "resolve", keep]);
    let need = &waits["needs"][0];
    assert_eq!(need["threshold"], 2, "{waits}");
    assert_eq!(need["able"], serde_json::json!(["bob"]));
    // bob says the opposite: alice is told whose versions would fall, and that she signed otherwise.
    bob.hangar(&team.second, &["sync"]).exits(4);
    let other = theirs["digest"].as_str().unwrap();
    let opposite = json_of(
        bob,
        &team.second,
        &["--offline", "policy", "resolve", other],
    );
    for (env, dir) in [team.sides(), team.sides()].concat() {
        env.hangar(dir, &["sync"]).exits(4);
    }
    let digest = waits["digest"].as_str().unwrap();
    let inbox = json(alice, &team.first, &["inbox"]);
    let title = inbox["items"][0]["title"].as_str().unwrap();
    let mine = &digest["sha256:".len()..][..12];
    assert!(
        title.starts_with(&format!("in place of {mine}, which you signed: ")),
        "{title}"
    );
    let aside = "sets aside version 3 by alice (+ carol (member) ";
    assert!(title.contains(aside), "{title}");
    let command = inbox["items"][0]["command"].as_str().unwrap();
    let theirs = &opposite["digest"].as_str().unwrap()["sha256:".len()..][..12];
    assert_eq!(command, format!("hangar policy sign {theirs}"));
    bob.hangar(&team.second, &["policy", "sign", digest])
        .success();
    team.sync();
    let [one, two] = team.shows();
    assert_eq!(one, two);
    assert_eq!(
        (&one["version"], &one["root_threshold"]),
        (&4.into(), &1.into())
    );
    assert_eq!(one["set_aside"].as_array().unwrap().len(), 2);
    for (env, dir) in team.sides() {
        env.hangar(dir, &["verify", "--all"]).success();
    }
}

#[test]
#[ignore = "heavy: dozens of commands"]
fn one_version_that_two_people_completed_apart_is_one() {
    let team = Team::with("admin");
    let alice = team.alice();
    // A third admin, alice's other key in a clone of its own, so that two of three can sign.
    let carol = alice.user("carol");
    let key = carol.public_key();
    let add = ["policy", "add", "carol", "--role", "admin", "--key", &key];
    alice.hangar(&team.first, &add).success();
    alice
        .hangar(&team.first, &["policy", "edit", "--members-threshold", "2"])
        .success();
    let third = carol.root().join("third");
    let hub = team.hub.bare.to_str().unwrap();
    carol.git(carol.root(), &["clone", "-q", hub, "third"]);
    carol.hangar(&third, &["init", "--yes"]).success();
    let everyone = [
        (alice, team.first.as_path()),
        (&team.bob, team.second.as_path()),
        (&carol, third.as_path()),
    ];
    let sync = |times: usize| {
        for (env, dir) in everyone.iter().cycle().take(3 * times) {
            env.hangar(dir, &["sync"]).success();
        }
    };
    sync(2);
    let dave = alice.add_key("dave");
    let add = ["policy", "add", "dave", "--key", &dave, "--json"];
    let waits = alice.hangar(&team.first, &add).exits(6).json();
    sync(2);
    // bob and carol each are the second to sign.
    let digest = waits["digest"].as_str().unwrap();
    for (env, dir) in &everyone[1..] {
        let sign = ["--offline", "policy", "sign", digest];
        env.hangar(dir, &sign).success();
    }
    sync(3);
    let shows = everyone.map(|(env, dir)| json(env, dir, &["policy", "show"]));
    assert_eq!(shows[0], shows[1]);
    assert_eq!(shows[1], shows[2]);
    assert_eq!(
        (&shows[0]["version"], &shows[0]["rivals"]),
        (&5.into(), &Value::Null)
    );
    // Signed apart by two people of whom each thought that another was missing: complete, and put in
    // force by the sync that brings both together.
    let erin = alice.add_key("erin");
    let add = [
        "--offline",
        "policy",
        "add",
        "erin",
        "--key",
        &erin,
        "--json",
    ];
    let one = alice.hangar(&team.first, &add).exits(6).json();
    let two = team.bob.hangar(&team.second, &add).exits(6).json();
    assert_eq!(one["digest"], two["digest"]);
    sync(2);
    assert_eq!(json(&carol, &third, &["policy", "show"])["version"], 6);
    carol.hangar(&third, &["verify", "--all"]).success();
}

#[test]
fn who_was_an_admin_once_makes_one_rival_and_no_second() {
    let team = Team::with("admin");
    // bob keeps a clone of the day when he was an admin.
    let old = team.bob.root().join("old");
    let copy = |name: &str| {
        let to = team.bob.root().join(name);
        let from = old.to_str().unwrap();
        team.bob
            .git(team.bob.root(), &["clone", "-q", "--mirror", from, name]);
        to
    };
    team.bob.git(
        team.bob.root(),
        &[
            "clone",
            "-q",
            "--mirror",
            team.second.to_str().unwrap(),
            "old",
        ],
    );
    let remove = ["policy", "remove", "bob", "--compromised"];
    team.alice().hangar(&team.first, &remove).success();
    team.alice().hangar(&team.first, &["sync"]).success();
    let attack = |name: &str| {
        let dir = copy(name);
        let made = add(&team.bob, &dir, name);
        // He pushes it in the place of the policy.
        let hub = team.hub.bare.to_str().unwrap();
        let force = "+refs/hangar/policy:refs/hangar/policy";
        team.bob.git(&dir, &["push", "-q", hub, force]);
        made
    };
    let verify = |code| {
        let ran = team.alice().hangar(&team.first, &["verify", "--all"]);
        ran.exits(code);
    };
    verify(0);
    let own = json(team.alice(), &team.first, &["policy", "show"]);
    let keep = own["digest"].as_str().unwrap();
    attack("mallory");
    let report = team.alice().hangar(&team.first, &["sync", "--json"]);
    let report = report.exits(4).json();
    assert_eq!(report["losses"][0]["what"], "rewritten");
    assert_eq!(digests(&report["rivals"]).len(), 2);
    verify(1);
    team.alice()
        .hangar(&team.first, &["policy", "resolve", keep])
        .success();
    team.alice().hangar(&team.first, &["sync"]).success();
    verify(0);
    // The same root keys decided about that place: another one changes nothing.
    attack("trudy");
    let report = team.alice().hangar(&team.first, &["sync", "--json"]);
    let report = report.success().json();
    assert_eq!(report["rivals"], Value::Null);
    let shown = json(team.alice(), &team.first, &["policy", "show"]);
    assert_eq!(
        (
            &shown["version"],
            &shown["people"].as_array().unwrap().len()
        ),
        (&4.into(), &1)
    );
    team.alice()
        .hangar(&team.first, &["task", "new", "x", "--plain"])
        .success();
    verify(0);
}

#[test]
#[ignore = "heavy: dozens of commands"]
fn a_change_of_the_root_document_is_signed_by_two_people_in_either_order() {
    let team = Team::with("admin");
    let key = team.bob.public_key();
    let root = ["policy", "add", "bob", "--root", "--key", &key];
    team.alice().hangar(&team.first, &root).success();
    let two = ["policy", "edit", "--root-threshold", "2"];
    let waits = json_of(team.alice(), &team.first, &two);
    team.sync();
    // The new root.toml asks for two of its own keys already.
    let digest = waits["digest"].as_str().unwrap();
    team.bob
        .hangar(&team.second, &["policy", "sign", digest])
        .success();
    team.sync();
    for turn in 0..2 {
        let mut sides = team.sides();
        if turn == 1 {
            sides.reverse();
        }
        let [(one, here), (two, there)] = sides;
        let set = format!("max_rounds={}", 5 + turn);
        let edit = ["policy", "edit", "--set", &set];
        let waits = json_of(one, here, &edit);
        assert_eq!(waits["needs"][0]["what"], "root.toml by the keys before");
        team.sync();
        let digest = waits["digest"].as_str().unwrap();
        two.hangar(there, &["policy", "sign", digest]).success();
        team.sync();
        let [one, two] = team.shows();
        assert_eq!(one, two);
        assert_eq!(one["acceptance"]["max_rounds"], 5 + turn);
    }
    // Both make the same change on their own machine, and neither knows of the other.
    let edit = ["--offline", "policy", "edit", "--set", "max_rounds=9"];
    for (env, dir) in team.sides() {
        json_of(env, dir, &edit);
    }
    team.sync();
    // The sync that brings the last signature puts it in force: nobody else would.
    let [one, two] = team.shows();
    assert_eq!(one, two);
    assert_eq!(one["acceptance"]["max_rounds"], 9);
}

/// What a change that waits for others answers.
fn json_of(env: &TestEnv, dir: &Path, args: &[&str]) -> Value {
    let args = [args, &["--json"]].concat();
    env.hangar(dir, &args).exits(6).json()
}
