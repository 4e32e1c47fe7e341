//! `hangar policy add`, `edit` and `sign`, alone and by several people through a remote.

use super::common::TestEnv;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// alice's repository, a hub, and bob's clone of it.
struct Team {
    alice: TestEnv,
    first: PathBuf,
    bob: TestEnv,
    second: PathBuf,
}

impl Team {
    fn new() -> Self {
        let alice = TestEnv::new();
        let first = alice.ready("first");
        alice.git(alice.root(), &["clone", "-q", "--bare", "first", "hub.git"]);
        let hub = alice.root().join("hub.git").display().to_string();
        alice.git(&first, &["remote", "add", "origin", &hub]);
        alice.hangar(&first, &["sync"]).success();
        let bob = alice.user("bob");
        bob.git(bob.root(), &["clone", "-q", &hub, "second"]);
        let second = bob.root().join("second");
        Self {
            alice,
            first,
            bob,
            second,
        }
    }

    /// bob runs `init`; alice runs the line that it prints, with another role.
    fn add_bob(&self, role: &str) {
        let report = self.bob.hangar(&self.second, &["init", "--json"]);
        let report = report.success().json();
        let line = report["admin_command"]
            .as_str()
            .unwrap()
            .replace("--role member", &format!("--role {role}"));
        let words = shell_words(&line);
        assert_eq!(words[..3], ["hangar", "policy", "add"], "{line}");
        let words: Vec<_> = words[1..].iter().map(String::as_str).collect();
        self.alice.hangar(&self.first, &words).success();
        self.sync();
    }

    fn sync(&self) {
        for _ in 0..2 {
            self.alice.hangar(&self.first, &["sync"]).success();
            self.bob.hangar(&self.second, &["sync"]).success();
        }
    }

    fn shows(&self) -> [Value; 2] {
        [(&self.alice, &self.first), (&self.bob, &self.second)].map(|(env, dir)| show(env, dir))
    }
}

fn show(env: &TestEnv, dir: &Path) -> Value {
    env.hangar(dir, &["policy", "show", "--json"])
        .success()
        .json()
}

/// Words of a line as a shell reads it; nothing but single quotes occurs.
fn shell_words(line: &str) -> Vec<String> {
    let parts = line.split('\'').enumerate();
    parts
        .flat_map(|(at, part)| match at % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        })
        .collect()
}

#[test]
fn the_line_that_init_prints_adds_a_person_and_their_machine() {
    let team = Team::new();
    team.bob.hangar(&team.second, &["init"]).success();
    team.bob
        .hangar(&team.second, &["task", "new", "x", "--plain"])
        .exits(4);
    team.add_bob("member");
    let [one, two] = team.shows();
    assert_eq!(one, two);
    assert_eq!(one["version"], 2);
    assert_eq!(one["people"][1]["name"], "bob");
    let machines = one["machines"].as_array().unwrap();
    let names: Vec<_> = machines
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["alice-worker", "alice-grader", "bob-worker", "bob-grader"]
    );
    team.bob
        .hangar(&team.second, &["task", "new", "Mine", "--plain"])
        .success();
    team.sync();
    let list = team.alice.hangar(&team.first, &["task", "list"]).success();
    assert!(list.stdout.contains("Mine"), "{list}");
    // A member may not change the policy, nor may anyone in an agent's environment.
    let add = ["policy", "edit", "--role", "bob=admin"];
    team.bob.hangar(&team.second, &add).exits(4);
    let agent = [("HANGAR_EXCHANGE", "x")];
    team.alice
        .hangar_with(&team.first, &add, &agent, "")
        .exits(4);
    team.alice.hangar(&team.first, &add).success();
    let again = team.alice.hangar(&team.first, &add).success();
    assert!(again.stdout.contains("version 3"), "{again}");
}

#[test]
fn two_people_sign_one_version_in_either_order() {
    let team = Team::new();
    team.add_bob("admin");
    let (alice, bob) = (&team.alice, &team.bob);
    let two = ["policy", "edit", "--members-threshold", "2"];
    alice.hangar(&team.first, &two).success();
    team.sync();
    for (env, dir, other, elsewhere, name) in [
        (alice, &team.first, bob, &team.second, "carol"),
        (bob, &team.second, alice, &team.first, "dave"),
    ] {
        let key = alice.add_key(name);
        let add = ["policy", "add", name, "--key", &key, "--json"];
        let waits = env.hangar(dir, &add).exits(6).json();
        assert_eq!(waits["needs"][0]["threshold"], 2, "{waits}");
        // Signing alone a second time adds nothing.
        env.hangar(dir, &["policy", "sign"]).exits(4);
        team.sync();
        let [one, two] = team.shows();
        assert_eq!(one, two);
        assert_eq!(one["proposals"][0]["digest"], waits["digest"]);
        let digest = waits["digest"].as_str().unwrap();
        other
            .hangar(elsewhere, &["policy", "sign", digest])
            .success();
        team.sync();
        let [one, two] = team.shows();
        assert_eq!(one, two);
        assert_eq!(one["version"], waits["version"]);
        assert_eq!(one["proposals"], Value::Null);
    }
    let log = alice.hangar(&team.first, &["policy", "log"]).success();
    assert!(log.stdout.contains("members threshold: 1 → 2"), "{log}");
}

#[test]
fn rival_versions_stop_a_sync_and_change_nothing() {
    let team = Team::new();
    team.add_bob("admin");
    let (alice, bob) = (&team.alice, &team.bob);
    for (env, dir, name) in [(alice, &team.first, "carol"), (bob, &team.second, "dave")] {
        let key = alice.add_key(name);
        env.hangar(dir, &["--offline", "policy", "add", name, "--key", &key])
            .success();
    }
    alice.hangar(&team.first, &["sync"]).success();
    let before = show(bob, &team.second);
    let rival = bob.hangar(&team.second, &["sync"]).exits(4);
    assert!(rival.stderr.contains("went apart"), "{rival}");
    assert_eq!(show(bob, &team.second), before);
}

#[test]
fn a_policy_that_nobody_could_change_any_more_is_refused() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    for option in ["--members-threshold", "--root-threshold"] {
        let ran = env.hangar(&dir, &["policy", "edit", option, "2"]).exits(4);
        assert!(ran.stderr.contains("2 people would have to sign"), "{ran}");
    }
    let key = env.add_key("ci");
    let stranger = ["policy", "add", "ci", "--grader", &key, "--owner", "nobody"];
    env.hangar(&dir, &stranger).exits(4);
    env.hangar(&dir, &["policy", "add", "ci", "--grader", &key])
        .success();
    // One key has one holder.
    env.hangar(&dir, &["policy", "add", "eve", "--key", &key])
        .exits(4);
    for bad in [
        ["policy", "edit", "--set", "trust=much"],
        ["policy", "edit", "--set", "truth=1"],
        ["policy", "edit", "--role", "nobody=admin"],
        ["policy", "add", "Bad Name", "--role=member"],
    ] {
        env.hangar(&dir, &bad).exits(2);
    }
    env.hangar(&dir, &["policy", "edit", "--set", "trust=sealed+limits"])
        .success();
    let show = show(&env, &dir);
    assert_eq!(show["acceptance"]["trust"], "sealed+limits");
    assert_eq!(show["machines"][2]["name"], "ci");
    assert_eq!(show["machines"][2]["owner"], "alice");
}
