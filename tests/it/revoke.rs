//! Keys that lose rights: what they signed before, what they sign later, what is adopted.

use super::common::TestEnv;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// alice's repository, and bob's clone of it from before he lost his rights.
struct Parted {
    alice: TestEnv,
    first: PathBuf,
    bob: TestEnv,
    second: PathBuf,
    task: String,
}

fn json(env: &TestEnv, dir: &Path, args: &[&str]) -> Value {
    env.hangar(dir, args).success().json()
}

impl Parted {
    /// bob is an approver and has commented on a task of his own.
    fn new() -> Self {
        let alice = TestEnv::new();
        let first = alice.ready("first");
        alice.git(alice.root(), &["clone", "-q", "--bare", "first", "hub.git"]);
        let hub = alice.root().join("hub.git").display().to_string();
        alice.git(&first, &["remote", "add", "origin", &hub]);
        let bob = alice.user("bob");
        let key = std::fs::read_to_string(bob.home().join(".ssh/id_ed25519.pub")).unwrap();
        let add = [
            "policy",
            "add",
            "bob",
            "--role",
            "approver",
            "--key",
            key.trim(),
        ];
        alice.hangar(&first, &add).success();
        alice.hangar(&first, &["sync"]).success();
        bob.git(bob.root(), &["clone", "-q", &hub, "second"]);
        let second = bob.root().join("second");
        bob.hangar(&second, &["init", "--yes"]).success();
        let new = ["task", "new", "Before", "--plain", "--json"];
        let task = json(&bob, &second, &new)["id"].as_str().unwrap().to_owned();
        bob.hangar(&second, &["sync"]).success();
        alice.hangar(&first, &["sync"]).success();
        Self {
            alice,
            first,
            bob,
            second,
            task,
        }
    }

    fn title(&self) -> Value {
        let args = ["task", "show", &self.task, "--json"];
        json(&self.alice, &self.first, &args)["title"].clone()
    }

    /// What bob does with his old clone, in which he still has his rights.
    fn bob_goes_on(&self) {
        let edit = ["task", "edit", &self.task, "--title", "Later"];
        self.bob.hangar(&self.second, &edit).success();
        let git = |args: &[&str]| self.bob.git(&self.second, args);
        let name = format!("refs/hangar/tasks/{}", self.task);
        git(&["push", "-q", "origin", &format!("{name}:{name}")]);
    }

    fn policy(&self, args: &[&str]) -> Value {
        let args: Vec<&str> = ["policy"]
            .iter()
            .chain(args)
            .chain(&["--json"])
            .copied()
            .collect();
        json(&self.alice, &self.first, &args)
    }
}

#[test]
fn a_server_that_checks_takes_nothing_more_of_a_key_that_is_out() {
    let parted = Parted::new();
    let hub = parted.alice.root().join("hub.git");
    let install = ["hook", "pre-receive", "--install"];
    parted.alice.hangar_found(&hub, &install).success();
    let name = format!("refs/hangar/tasks/{}", parted.task);
    let edit = |title| {
        let edit = ["task", "edit", &parted.task, "--title", title];
        parted.bob.hangar(&parted.second, &edit).success();
        let push = ["push", "origin", &format!("{name}:{name}")];
        parted.bob.git_said(&parted.second, &push)
    };
    edit("While he may").done();
    parted
        .alice
        .hangar_found(&parted.first, &["sync"])
        .success();
    let remove = ["policy", "remove", "bob", "--retired"];
    parted.alice.hangar_found(&parted.first, &remove).success();
    edit("Later").refused(&name, "was retired in policy version 3");
    parted
        .alice
        .hangar_found(&parted.first, &["sync"])
        .success();
    assert_eq!(parted.title(), "While he may");
}

#[test]
fn what_a_retired_key_signed_stays_and_what_it_signs_later_has_no_effect() {
    let parted = Parted::new();
    parted.policy(&["remove", "bob", "--retired"]);
    let shown = parted.policy(&["show"]);
    let out = &shown["reduced"][0];
    assert_eq!(
        (&out["principal"], &out["how"]),
        (&"bob".into(), &"retired".into())
    );
    assert_eq!((&out["since"], &out["documents"]), (&3.into(), &1.into()));
    assert_eq!(parted.title(), "Before");
    parted.bob_goes_on();
    let report = parted
        .alice
        .hangar(&parted.first, &["sync", "--json"])
        .exits(1)
        .json();
    let one = &report["not_applied"][0];
    assert_eq!(one["kind"], "refused", "{report}");
    let why = one["why"].as_str().unwrap();
    assert!(why.contains("was retired in policy version 3"), "{why}");
    assert_eq!(parted.title(), "Before");
    // alice goes on after it: nothing is lost with the refused event.
    let edit = ["task", "edit", &parted.task, "--title", "Hers"];
    parted.alice.hangar(&parted.first, &edit).success();
    parted.alice.hangar(&parted.first, &["sync"]).success();
    assert_eq!(parted.title(), "Hers");
    // With the new policy bob's own clone says so before he signs.
    parted.bob.hangar(&parted.second, &["sync"]).success();
    parted
        .bob
        .hangar(&parted.second, &["task", "new", "x", "--plain"])
        .exits(4);
    // Who was taken out can come back, and what was refused stays refused.
    let key = std::fs::read_to_string(parted.bob.home().join(".ssh/id_ed25519.pub")).unwrap();
    parted.policy(&["add", "bob", "--key", key.trim()]);
    assert_eq!(parted.title(), "Hers");
    parted.alice.hangar(&parted.first, &["sync"]).success();
    parted.bob.hangar(&parted.second, &["sync"]).success();
    parted
        .bob
        .hangar(&parted.second, &["task", "new", "x", "--plain"])
        .success();
}

#[test]
fn a_lower_role_takes_effect_on_documents_that_name_an_older_version() {
    let parted = Parted::new();
    let new = ["task", "new", "Of alice", "--plain", "--json"];
    let other = json(&parted.alice, &parted.first, &new);
    let other = other["id"].as_str().unwrap();
    parted.alice.hangar(&parted.first, &["sync"]).success();
    parted.bob.hangar(&parted.second, &["sync"]).success();
    parted.policy(&["edit", "--role", "bob=member"]);
    // Only an approver edits another's task; bob's clone still takes him for one.
    let edit = ["task", "edit", other, "--title", "By bob"];
    parted.bob.hangar(&parted.second, &edit).success();
    let name = format!("refs/hangar/tasks/{other}");
    parted.bob.git(
        &parted.second,
        &["push", "-q", "origin", &format!("{name}:{name}")],
    );
    parted.alice.hangar(&parted.first, &["sync"]).exits(1);
    let show = json(
        &parted.alice,
        &parted.first,
        &["task", "show", other, "--json"],
    );
    assert_eq!(show["title"], "Of alice");
    // As a member he still makes tasks of his own.
    parted.alice.hangar(&parted.first, &["sync"]).success();
    parted.bob.hangar(&parted.second, &["sync"]).success();
    parted
        .bob
        .hangar(&parted.second, &["task", "new", "x", "--plain"])
        .success();
}

#[test]
fn an_event_of_a_compromised_key_counts_again_once_it_is_adopted() {
    let parted = Parted::new();
    parted.bob_goes_on();
    // alice does not know of it yet.
    let remove = ["--offline", "policy", "remove", "bob", "--compromised"];
    parted.alice.hangar(&parted.first, &remove).success();
    let report = parted
        .alice
        .hangar(&parted.first, &["sync", "--json"])
        .exits(1)
        .json();
    let event = report["not_applied"][0]["event"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(parted.title(), "Before");
    let unknown = format!("sha256:{}", "0".repeat(64));
    let adopt = ["policy", "adopt", &unknown];
    parted.alice.hangar(&parted.first, &adopt).exits(4);
    parted.policy(&["adopt", &event]);
    assert_eq!(parted.title(), "Later");
    let twice = parted.policy(&["adopt", &event]);
    assert_eq!(twice["version"], 4, "{twice}");
}

#[test]
fn a_key_is_rotated_and_the_old_one_is_out() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    let before = json(&env, &dir, &["task", "new", "Old key", "--plain", "--json"]);
    let id = before["id"].as_str().unwrap();
    let new = env.add_key("id_new");
    // Away from where keys are found: its signature under root.toml, whose only key it will be, is
    // missing.
    let (found, away) = (env.home().join(".ssh/id_new"), env.root().join("id_new"));
    std::fs::rename(&found, &away).unwrap();
    let rotate = ["policy", "rotate", "--to", &new, "--json"];
    let waits = env.hangar(&dir, &rotate).exits(6).json();
    assert_eq!(waits["needs"][0]["what"], "root.toml by its own keys");
    std::fs::rename(&away, &found).unwrap();
    let done = env.hangar(&dir, &rotate).success().json();
    assert_eq!(done["version"], 2);
    assert_eq!(
        json(&env, &dir, &["task", "show", id, "--json"])["title"],
        "Old key"
    );
    env.hangar(&dir, &["task", "edit", id, "--title", "New key"])
        .success();
    std::fs::remove_file(&found).unwrap();
    env.hangar(&dir, &["task", "edit", id, "--title", "Old again"])
        .exits(4);
}

#[test]
fn a_new_key_away_from_the_others_signs_its_rotation_when_git_names_it() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    let new = env.add_key("id_new");
    let (found, away) = (env.home().join(".ssh/id_new"), env.root().join("id_new"));
    std::fs::rename(&found, &away).unwrap();
    std::fs::rename(found.with_extension("pub"), away.with_extension("pub")).unwrap();
    let waits = env
        .hangar(&dir, &["policy", "rotate", "--to", &new])
        .exits(6);
    assert!(!waits.stdout.contains("hangar sync"), "{waits}");
    // The old key has signed, and is told what is missing.
    let open = json(&env, &dir, &["policy", "show", "--json"]);
    let digest = open["proposals"][0]["digest"].as_str().unwrap().to_owned();
    let again = env.hangar(&dir, &["policy", "sign", &digest]).exits(4);
    assert!(
        again.stderr.contains("alice has signed this version"),
        "{again}"
    );
    assert!(again.stderr.contains("user.signingKey"), "{again}");
    // Word for word what was printed.
    let public = away.with_extension("pub").display().to_string();
    let lines = waits.stdout.lines().map(str::trim);
    let typed: Vec<String> = lines
        .filter(|line| line.starts_with("git ") || line.starts_with("hangar "))
        .map(|line| line.replace("NEWKEY.pub", &public))
        .collect();
    assert_eq!(typed.len(), 3, "{waits}");
    for line in typed {
        let words: Vec<_> = line.split(' ').collect();
        if words[0] == "git" {
            env.git(&dir, &words[1..]);
        } else {
            env.hangar(&dir, &words[1..]).success();
        }
    }
    let show = ["policy", "show", "--json"];
    assert_eq!(json(&env, &dir, &show)["version"], 2);
}

#[test]
fn who_may_not_sign_a_version_that_waits_is_told_so() {
    let parted = Parted::new();
    let carol = parted.alice.add_key("carol");
    for change in [
        &["add", "carol", "--role", "admin", "--key", &carol][..],
        &["edit", "--members-threshold", "2"],
    ] {
        parted.policy(change);
    }
    let dave = parted.alice.add_key("dave");
    let add = ["policy", "add", "dave", "--key", &dave];
    parted.alice.hangar(&parted.first, &add).exits(6);
    parted.alice.hangar(&parted.first, &["sync"]).success();
    parted.bob.hangar(&parted.second, &["sync"]).success();
    let open = json(&parted.bob, &parted.second, &["policy", "show", "--json"]);
    let digest = open["proposals"][0]["digest"].as_str().unwrap().to_owned();
    let sign = ["policy", "sign", &digest];
    let ran = parted.bob.hangar(&parted.second, &sign);
    let ran = ran.exits(4);
    assert!(
        ran.stderr.contains("bob may not sign this version"),
        "{ran}"
    );
    assert!(!ran.stderr.contains("already"), "{ran}");
}
