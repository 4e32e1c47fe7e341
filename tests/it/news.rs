//! What a sync brings and nobody would look for: told once in every clone, and marked where it is seen.

use super::cli_flow::Place;
use super::cli_help::validate;
use super::cli_review::Colleague;
use super::common::hub::{Hub, Team};
use super::common::{Ran, TestEnv};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn json(env: &TestEnv, dir: &Path, schema: &str, args: &[&str]) -> Value {
    let value = env.json(dir, args);
    validate(schema, &value);
    value
}

/// A team and another clone of alice's.
fn with_twin() -> (Team, PathBuf) {
    let team = Team::with("admin");
    let twin = team.hub.clone("twin");
    (team, twin)
}

#[test]
fn a_key_that_was_declared_compromised_is_told_once_elsewhere_and_its_tasks_are_marked() {
    let (team, twin) = with_twin();
    let (alice, bob) = (team.alice(), &team.bob);
    // What alice has not seen when she declares it is not on her list.
    let new = ["task", "new", "Sneaked in", "--plain", "--json"];
    let task = bob.hangar(&team.second, &new).success().json();
    let task = task["id"].as_str().unwrap();
    let remove = ["policy", "remove", "bob", "--compromised"];
    let own = alice.hangar(&team.first, &remove).success();
    let told = |ran: &Ran| {
        let stderr = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        stderr.matches("of bob compromised: nothing").count()
    };
    assert_eq!(told(&own), 0, "{own}");
    alice.hangar(&team.first, &["sync"]).success();
    let name = format!("refs/hangar/tasks/{task}");
    bob.git(
        &team.second,
        &["push", "-q", "origin", &format!("{name}:{name}")],
    );
    let ran = alice.hangar(&twin, &["sync"]);
    assert_eq!(told(&ran), 1, "{ran}");
    assert!(
        ran.stdout.contains("policy     version 3: - bob (admin)"),
        "{ran}"
    );
    for dir in [&twin, &team.first] {
        let again = alice.hangar(dir, &["sync"]);
        assert_eq!(told(&again), 0, "{again}");
        assert!(!again.stdout.contains("policy  "), "{again}");
    }
    alice
        .hangar(&twin, &["task", "new", "Honest", "--plain"])
        .success();
    // From the documents, and from the index.
    for _ in 0..2 {
        let list = json(alice, &twin, "task-list", &["task", "list"]);
        let doubts = |title: &str| {
            let mut tasks = list["tasks"].as_array().unwrap().iter();
            tasks.find(|one| one["title"] == title).unwrap()["doubt"].clone()
        };
        let doubt = doubts("Sneaked in");
        assert!(
            doubt.as_str().unwrap().contains("was compromised"),
            "{doubt}"
        );
        assert_eq!(doubts("Honest"), Value::Null);
    }
    let list = alice.hangar(&twin, &["task", "list"]).success();
    assert!(list.stdout.contains("bob (does not count)"), "{list}");
    let show = alice.hangar(&twin, &["task", "show", task]).success();
    assert!(
        show.stdout
            .contains("does not count: its key was compromised"),
        "{show}"
    );
}

#[test]
fn the_rows_of_an_approver_whose_key_was_compromised_are_marked() {
    let place = Place::new();
    let bob = Colleague::join(&place, "bob", "approver");
    let sealed = place.seal();
    let digest = sealed["manifest"].as_str().unwrap();
    bob.hangar(&["review", "KAN-1"]).success();
    bob.hangar(&["approve", "KAN-1", "--digest", digest])
        .success();
    let marked = || {
        let task = place.json("task-show", &["task", "show", "KAN-1"], 0);
        let rows = task["timeline"].as_array().unwrap().clone();
        let rows = rows.into_iter().filter(|row| row.get("doubt").is_some());
        rows.map(|row| (row["kind"].clone(), row["by"].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(marked(), []);
    let remove = ["policy", "remove", "bob", "--compromised"];
    place.env.hangar(&place.dir, &remove).success();
    assert_eq!(marked(), [("approval".into(), "bob".into())]);
    let show = place.env.hangar(&place.dir, &["task", "show", "KAN-1"]);
    let text = show.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("approved version 1 does not count: its key was compromised"),
        "{show}"
    );
}

#[test]
fn a_version_of_the_policy_that_was_overtaken_is_told_once_and_stays_in_the_log() {
    let team = Team::with("admin");
    let (alice, bob) = (team.alice(), &team.bob);
    let two = ["policy", "edit", "--members-threshold", "2"];
    alice.hangar(&team.first, &two).success();
    let sync = |env: &TestEnv, dir: &Path| env.hangar(dir, &["sync"]).success();
    sync(alice, &team.first);
    sync(bob, &team.second);
    let propose = |env: &TestEnv, dir: &Path, name: &str| {
        let key = alice.add_key(name);
        let add = ["policy", "add", name, "--key", &key, "--json"];
        let waits = env.hangar(dir, &add).exits(6).json();
        waits["digest"].as_str().unwrap().to_owned()
    };
    let carol = propose(alice, &team.first, "carol");
    let dave = propose(bob, &team.second, "dave");
    sync(bob, &team.second);
    let told = |ran: &Ran| ran.stderr.matches("was overtaken").count();
    let early = sync(alice, &team.first);
    assert_eq!(told(&early), 0, "{early}");
    // bob puts alice's in force, which takes the number of his own: it is told right then.
    let signed = bob
        .hangar(&team.second, &["policy", "sign", &carol])
        .success();
    assert_eq!(told(&signed), 1, "{signed}");
    // A command that fetches tells it, too.
    let inbox = alice.hangar(&team.first, &["inbox"]).success();
    assert_eq!(told(&inbox), 1, "{inbox}");
    for part in [
        &dave[7..15],
        "bob signed",
        "+ dave (member)",
        "makes the change again",
    ] {
        let text = inbox
            .stderr
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(text.contains(part), "{part}: {inbox}");
    }
    for (env, dir) in [(alice, &team.first), (bob, &team.second)] {
        assert_eq!(told(&sync(env, dir)), 0);
        for page in ["show", "log"] {
            let args = ["policy", page];
            let page = env.hangar(dir, &args).success();
            assert!(page.stdout.contains("overtaken: "), "{page}");
        }
    }
    let log = json(alice, &team.first, "policy-log", &["policy", "log"]);
    assert_eq!(
        log["versions"][0]["overtaken"][0]["digest"],
        dave.as_str(),
        "{log}"
    );
    assert_eq!(log["versions"][1].get("overtaken"), None, "{log}");
    // Of a version that a newer one has followed tells the log alone.
    let one = ["policy", "edit", "--members-threshold", "1", "--json"];
    let waits = alice.hangar(&team.first, &one).exits(6).json();
    sync(alice, &team.first);
    sync(bob, &team.second);
    let sign = ["policy", "sign", waits["digest"].as_str().unwrap()];
    bob.hangar(&team.second, &sign).success();
    let show = json(bob, &team.second, "policy-show", &["policy", "show"]);
    assert_eq!(show.get("overtaken"), None, "{show}");
    let log = json(bob, &team.second, "policy-log", &["policy", "log"]);
    assert_eq!(
        log["versions"][1]["overtaken"][0]["digest"],
        dave.as_str(),
        "{log}"
    );
}

#[test]
fn an_external_key_that_two_clones_gave_is_told_once_in_each() {
    let (hub, first) = Hub::new();
    let second = hub.clone("second");
    let new = |dir: &Path, title: &str, key: &str| {
        let args = ["task", "new", title, "--plain", "--json", "--key", key];
        let made = hub.env.hangar(dir, &args).success().json();
        made["id"].as_str().unwrap()[..8].to_owned()
    };
    let one = new(&first, "One", "KAN-7");
    let two = new(&second, "Two", "kan-7");
    new(&second, "Another", "KAN-8");
    let told = |ran: &Ran| ran.stderr.matches("2 tasks have the key").count();
    assert_eq!(told(&hub.sync(&first)), 0);
    let ran = hub.sync(&second);
    assert_eq!(told(&ran), 1, "{ran}");
    for part in [&one, &two, "One", "Two"] {
        assert!(ran.stderr.contains(part), "{part}: {ran}");
    }
    assert_eq!(told(&hub.sync(&second)), 0);
    let ran = hub.sync(&first);
    assert_eq!(told(&ran), 1, "{ran}");
    hub.edit(&second, &two, "Two, edited");
    hub.sync(&second);
    assert_eq!(told(&hub.sync(&first)), 0);
}
