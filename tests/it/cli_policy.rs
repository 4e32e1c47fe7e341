//! `hangar policy add`, `edit` and `sign`, alone and by several people through a remote.

use super::common::TestEnv;
use super::common::hub::Team;
use hangar::trust::{MachineKey, MachineRole, Namespace};
use serde_json::Value;
use std::path::Path;

/// bob runs `init`; alice runs the line that it prints, with another role.
fn add_bob(team: &Team, role: &str) {
    let report = team.bob.json(&team.second, &["init"]);
    let line = report["admin_command"]
        .as_str()
        .unwrap()
        .replace("--role member", &format!("--role {role}"));
    let words = shell_words(&line);
    assert_eq!(words[..3], ["hangar", "policy", "add"], "{line}");
    let words: Vec<_> = words[1..].iter().map(String::as_str).collect();
    team.alice().hangar(&team.first, &words).success();
    team.sync();
}

fn show(env: &TestEnv, dir: &Path) -> Value {
    env.json(dir, &["policy", "show"])
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
    add_bob(&team, "member");
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
    let list = team
        .alice()
        .hangar(&team.first, &["task", "list"])
        .success();
    assert!(list.stdout.contains("Mine"), "{list}");
    // A member may not change the policy, nor may anyone in an agent's environment.
    let add = ["policy", "edit", "--role", "bob=admin"];
    team.bob.hangar(&team.second, &add).exits(4);
    let agent = [("HANGAR_EXCHANGE", "x")];
    team.alice()
        .hangar_with(&team.first, &add, &agent, "")
        .exits(4);
    team.alice().hangar(&team.first, &add).success();
    let again = team.alice().hangar(&team.first, &add).success();
    assert!(again.stdout.contains("version 3"), "{again}");
}

#[test]
fn two_people_sign_one_version_in_either_order() {
    let team = Team::new();
    add_bob(&team, "admin");
    let (alice, bob) = (team.alice(), &team.bob);
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
        let digest = waits["digest"].as_str().unwrap().to_owned();
        env.hangar(dir, &["policy", "sign", &digest]).exits(4);
        // Nobody signs what they were not shown.
        let blind = env.hangar(dir, &["policy", "sign"]).exits(6);
        assert!(
            blind.stderr.contains(&format!("+ {name} (member)")),
            "{blind}"
        );
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
fn who_signs_a_version_that_was_overtaken_is_told_so_and_what_to_do() {
    let team = Team::new();
    add_bob(&team, "admin");
    let (alice, bob) = (team.alice(), &team.bob);
    let two = ["policy", "edit", "--members-threshold", "2"];
    alice.hangar(&team.first, &two).success();
    team.sync();
    let propose = |env: &TestEnv, dir: &Path, name: &str| {
        let key = alice.add_key(name);
        let add = ["policy", "add", name, "--key", &key, "--json"];
        let waits = env.hangar(dir, &add).exits(6).json();
        waits["digest"].as_str().unwrap().to_owned()
    };
    let carol = propose(alice, &team.first, "carol");
    let dave = propose(bob, &team.second, "dave");
    team.sync();
    let sign = |digest: &str| bob.hangar(&team.second, &["policy", "sign", digest]);
    sign(&carol).success();
    let late = alice
        .hangar(&team.first, &["policy", "sign", &dave])
        .exits(4);
    for part in ["was overtaken", "version 4", "make the change again"] {
        assert!(late.stderr.contains(part), "{part}: {late}");
    }
    let again = sign(&carol).exits(4);
    assert!(
        again.stderr.contains("is version 4 of the policy already"),
        "{again}"
    );
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
    let taken = env.hangar(&dir, &["policy", "add", "eve", "--key", &key]);
    let taken = taken.exits(4);
    assert!(
        taken.stderr.contains("this change can't be made"),
        "{taken}"
    );
    assert!(taken.stderr.contains("belongs to ci already"), "{taken}");
    assert!(taken.stderr.contains("nothing was changed"), "{taken}");
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

#[test]
fn what_changes_nothing_says_so_and_what_lacks_something_says_what() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    let (dan, agent) = (env.add_key("dan"), env.add_key("agent"));
    let add = ["policy", "add", "dan", "--key", &dan, "--agent", &agent];
    env.hangar(&dir, &add).success();
    let machine = env.add_key("ci");
    let add_ci = ["policy", "add", "ci", "--grader", &machine];
    env.hangar(&dir, &add_ci).success();
    let recovery = env.add_key("recovery");
    let add_root = ["policy", "add", "alice", "--recovery", "--key", &recovery];
    env.hangar(&dir, &add_root).success();
    for again in [
        &add[..],
        &add_ci,
        &add_root,
        &["policy", "add", "dan", "--role", "member"],
        &["policy", "edit", "--set", "approvers=1"],
    ] {
        let again = env.hangar(&dir, again).success();
        assert!(
            again.stdout.starts_with("unchanged  policy version 4"),
            "{again}"
        );
    }
    for (wrong, why) in [
        (&["policy", "add", "eve"][..], "eve needs a key"),
        (&["policy", "add", "dan"], "dan needs a key"),
        (
            &["policy", "add", "eve", "--role", "admin"],
            "needs a --key",
        ),
        (&["policy", "edit"], "name what to change"),
        (
            &["policy", "edit", "--set", "bogus=1"],
            "max_awaiting_approval",
        ),
        (&["policy", "sign"], "no version of the policy waits"),
    ] {
        let ran = env.hangar(&dir, wrong).exits(2);
        assert!(ran.stderr.contains(why), "{ran}");
    }
    assert_eq!(show(&env, &dir)["version"], 4);
    let page = env.hangar(&dir, &["policy", "show"]).success();
    let settings = page.stdout.split("Acceptance").nth(1).unwrap();
    assert!(settings.contains("max_rounds"), "{page}");
    let narrow = |line: &str| line.chars().count() <= 80;
    assert!(page.stdout.lines().all(narrow), "{page}");
    for part in [
        "  dan, member\n    SHA256:",
        "  ci, grader of alice\n    SHA256:",
    ] {
        assert!(page.stdout.contains(part), "{part}: {page}");
    }
}

#[test]
fn a_root_key_is_no_machines_key_and_nobody_elses() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    let spare = env.add_key("spare");
    let recovery = ["policy", "add", "alice", "--recovery", "--key", &spare];
    env.hangar(&dir, &recovery).success();
    let dan = env.add_key("dan");
    let before = show(&env, &dir);
    for machine in ["--agent", "--worker", "--grader"] {
        let add = ["policy", "add", "dan", "--key", &dan, machine, &spare];
        let ran = env.hangar(&dir, &add).exits(4);
        assert!(
            ran.stderr.contains("is a root key of alice already"),
            "{ran}"
        );
    }
    let add = ["policy", "add", "dan", "--key", &spare];
    env.hangar(&dir, &add).exits(4);
    let (ci, bob) = (env.add_key("ci"), env.add_key("bob"));
    env.hangar(&dir, &["policy", "add", "ci", "--agent", &ci])
        .success();
    env.hangar(&dir, &["policy", "add", "bob", "--key", &bob])
        .success();
    for (key, holder) in [(&ci, "ci"), (&bob, "bob")] {
        let add = ["policy", "add", "alice", "--recovery", "--key", key];
        let ran = env.hangar(&dir, &add).exits(4);
        let why = format!("belongs to {holder} already");
        assert!(ran.stderr.contains(&why), "{ran}");
    }
    // A key of alice's own may be both.
    let own = ["policy", "add", "alice", "--root", "--key", &dan];
    env.hangar(&dir, &own).success();
    let after = show(&env, &dir);
    assert_eq!(before["version"], 2);
    assert_eq!(after["version"], 5);
}

#[test]
fn two_signatures_of_one_person_count_once() {
    let team = Team::new();
    add_bob(&team, "admin");
    let alice = team.alice();
    let second = alice.add_key("second");
    let add = ["policy", "add", "alice", "--key", &second];
    alice.hangar(&team.first, &add).success();
    let two = ["policy", "edit", "--members-threshold", "2"];
    alice.hangar(&team.first, &two).success();
    alice.hangar(&team.first, &["sync"]).success();
    // Her other clone signs with her other key.
    alice.git(alice.root(), &["clone", "-q", "hub.git", "third"]);
    let third = alice.root().join("third");
    let key = alice.home().join(".ssh/second.pub").display().to_string();
    alice.git(&third, &["config", "gpg.format", "ssh"]);
    alice.git(&third, &["config", "user.signingKey", &key]);
    alice.hangar(&third, &["init"]).success();
    let carol = alice.add_key("carol");
    let add = [
        "policy",
        "add",
        "carol",
        "--key",
        &carol,
        "--offline",
        "--json",
    ];
    let one = alice.hangar(&team.first, &add).exits(6).json();
    let other = alice.hangar(&third, &add).exits(6).json();
    assert_eq!(one["digest"], other["digest"]);
    for _ in 0..2 {
        alice.hangar(&team.first, &["sync"]).success();
        alice.hangar(&third, &["sync"]).success();
    }
    let digest = one["digest"].as_str().unwrap();
    let hex = digest.strip_prefix("sha256:").unwrap();
    let signatures = format!("refs/hangar/policy-proposals/{hex}");
    let commits = alice.git(&third, &["rev-list", "--count", &signatures]);
    assert_ne!(commits.trim(), "1");
    for dir in [&team.first, &third] {
        let shown = show(alice, dir);
        let need = &shown["proposals"][0]["needs"][0];
        assert_eq!(need["signed"], serde_json::json!(["alice"]), "{shown}");
        assert_eq!(need["threshold"], 2);
        let ran = alice.hangar(dir, &["policy", "sign", digest]).exits(4);
        assert!(
            ran.stderr.contains("alice has signed this version"),
            "{ran}"
        );
    }
    // bob, who may sign, does; the honest control.
    team.bob.hangar(&team.second, &["sync"]).success();
    team.bob
        .hangar(&team.second, &["policy", "sign", digest])
        .success();
    let carols = &show(&team.bob, &team.second)["people"][2]["name"];
    assert_eq!(carols, "carol");
}

#[test]
fn a_lost_policy_is_missed_and_comes_back_from_the_remote() {
    let team = Team::new();
    let (alice, dir) = (team.alice(), &team.first);
    let lose = ["update-ref", "-d", "refs/hangar/policy"];
    let before = show(alice, dir);
    alice.git(dir, &lose);
    let ran = alice.hangar(dir, &["task", "list"]).exits(3);
    assert!(
        ran.stderr
            .contains("that this clone has seen (version 1) is gone"),
        "{ran}"
    );
    alice.hangar(dir, &["key", "list"]).success();
    let report = alice.hangar(dir, &["sync", "--json"]).success().json();
    assert_eq!(report["fetched"], serde_json::json!(["refs/hangar/policy"]));
    assert_eq!(show(alice, dir), before);
    // Another policy in its place stays out.
    alice.git(dir, &lose);
    let hub = alice.root().join("hub.git");
    let other = alice.ready("other");
    alice.git(&hub, &lose);
    let push = ["push", "-q", hub.to_str().unwrap(), "refs/hangar/policy"];
    alice.git(&other, &push);
    alice.hangar(dir, &["sync"]).exits(4);
    alice.hangar(dir, &["task", "list"]).exits(3);
    // Nowhere at all.
    alice.git(&hub, &lose);
    alice.hangar(dir, &["sync"]).exits(3);
}

#[test]
fn junk_in_a_proposal_is_left_out_and_the_honest_signature_completes_it() {
    let team = Team::new();
    add_bob(&team, "admin");
    let alice = team.alice();
    let two = ["policy", "edit", "--members-threshold", "2"];
    alice.hangar(&team.first, &two).success();
    team.sync();
    let carol = alice.add_key("carol");
    let add = ["policy", "add", "carol", "--key", &carol, "--json"];
    let waits = alice.hangar(&team.first, &add).exits(6).json();
    let digest = waits["digest"].as_str().unwrap();
    let hex = digest.strip_prefix("sha256:").unwrap();
    let name = format!("refs/hangar/policy-proposals/{hex}");
    // Whoever can push adds many, huge and foreign signatures, and lists of their own.
    let hub = &team.hub;
    let line = |blob: &str, name: &str| format!("100644 blob {blob}\t{name}\n");
    let many: Vec<_> = (0..300)
        .map(|at| line(&hub.blob(&format!("junk {at}")), &format!("{at:04}")))
        .collect();
    let huge = line(&hub.blob(&"x".repeat(9 << 10)), "huge");
    let members = hub
        .env
        .git(&hub.bare, &["show", &format!("{name}:members.toml")])
        + "\n";
    let stranger = MachineKey::load_or_create(alice.root(), MachineRole::Worker).unwrap();
    let signer = stranger.signer();
    let foreign = signer.sign(Namespace::Members, members.as_bytes());
    let foreign = String::from_utf8(foreign.unwrap()).unwrap();
    let foreign = line(&hub.blob(&foreign), "foreign");
    let signatures = hub.tree(&format!("{}{foreign}{huge}", many.concat()));
    let list = hub.tree(&line(
        &hub.blob(&format!("sha256:{}\n", "0".repeat(64))),
        "list",
    ));
    let whole = hub.env.git(&hub.bare, &["ls-tree", &name]);
    let kept = whole.lines().filter(|line| line.contains(".toml"));
    let kept: Vec<_> = kept.collect();
    let kept = kept.join("\n") + "\n";
    let tree = hub.tree(&format!(
        "{kept}040000 tree {signatures}\tmembers.sigs\n040000 tree {signatures}\troot.sigs\n040000 tree {list}\taccepted\n"
    ));
    let junk = hub
        .env
        .git(&hub.bare, &["commit-tree", &tree, "-p", &name, "-m", "x"]);
    hub.env.git(&hub.bare, &["update-ref", &name, &junk]);
    team.sync();
    let [one, two] = team.shows();
    assert_eq!(one, two);
    let need = &one["proposals"][0]["needs"][0];
    assert_eq!(need["signed"], serde_json::json!(["alice"]));
    team.bob
        .hangar(&team.second, &["policy", "sign", digest])
        .success();
    team.sync();
    assert_eq!(team.shows()[0]["people"][2]["name"], "carol");
    let count = |folder: &str| {
        let name = format!("refs/hangar/policy:{folder}");
        let args = ["ls-tree", "--name-only", &name];
        alice.git(&team.first, &args).lines().count()
    };
    assert_eq!((count("members.sigs"), count("root.sigs")), (2, 0));
    let names = alice.git(
        &team.first,
        &["ls-tree", "--name-only", "refs/hangar/policy"],
    );
    assert!(!names.contains("accepted"), "{names}");
}

#[test]
fn a_recipient_that_is_no_key_of_the_person_is_said() {
    let team = Team::new();
    add_bob(&team, "approver");
    let recipient = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p";
    let add = ["policy", "add", "bob", "--recipient", recipient];
    team.alice().hangar(&team.first, &add).success();
    let log = team.alice().json(&team.first, &["policy", "log"]);
    let changes = &log["versions"][0]["changes"];
    assert_eq!(changes[0], format!("+ recipient of bob: {recipient}"));
    // Who reads the page sees to whom tests are encrypted besides the keys.
    let page = team.alice().hangar(&team.first, &["policy", "show"]);
    assert!(page.stdout.contains(recipient), "{page}");
}

#[test]
fn a_grader_key_that_can_not_decrypt_is_refused() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    let path = env.root().join("ecdsa");
    let made = env
        .command("ssh-keygen", env.root())
        .args(["-q", "-t", "ecdsa", "-b", "256", "-N", "", "-f"])
        .arg(&path)
        .output()
        .unwrap();
    assert!(made.status.success());
    let key = std::fs::read_to_string(path.with_extension("pub")).unwrap();
    let add = |option: &str| env.hangar(&dir, &["policy", "add", "ci", option, key.trim()]);
    let ran = add("--grader").exits(2);
    assert!(ran.stderr.contains("can't decrypt"), "{ran}");
    add("--worker").success();
}

#[test]
fn a_secret_key_that_is_given_for_a_public_one_is_not_repeated() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    let ssh = std::fs::read_to_string(env.home().join(".ssh/id_ed25519")).unwrap();
    let body = ssh.lines().nth(1).unwrap();
    let age = "AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ";
    let two_words = format!("{age} bob's");
    for secret in [ssh.as_str(), body, age, &two_words, "c2VjcmV0 d29yZA=="] {
        for option in ["--key", "--recipient", "--worker", "--grader"] {
            for json in [&[][..], &["--json"]] {
                let args = [&["policy", "add", "bob", option, secret][..], json].concat();
                let ran = env.hangar(&dir, &args).exits(2);
                let said = format!("{}{}", ran.stdout, ran.stderr);
                for word in secret.split_whitespace().filter(|word| word.len() > 7) {
                    assert!(!said.contains(word), "{option}: {said}");
                }
            }
        }
    }
    // The honest control.
    let key = env.add_key("bob");
    env.hangar(&dir, &["policy", "add", "bob", "--key", &key])
        .success();
}

#[test]
fn more_approvers_or_signers_than_there_are_people_are_refused_with_their_number() {
    let team = Team::with("member");
    let alice = |args: &[&str]| {
        let args = [&["policy", "edit"], args].concat();
        team.alice().hangar(&team.first, &args)
    };
    for (args, said) in [
        (
            ["--set", "approvers=99"],
            "99 people would have to approve, and at most 2 could",
        ),
        (
            ["--set", "approvers=3"],
            "3 people would have to approve, and at most 2 could",
        ),
        (
            ["--root-threshold", "99"],
            "and only 1 would have a root key",
        ),
        (["--members-threshold", "99"], "and only 1 could"),
    ] {
        let ran = alice(&args).exits(4);
        let flat = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(said), "{said}: {ran}");
    }
    // A member decides about what they asked for, beside an approver.
    alice(&["--set", "approvers=2"]).success();
    // Who must go goes, and what can be done about the rest is done after.
    let remove = ["policy", "remove", "bob", "--compromised"];
    team.alice().hangar(&team.first, &remove).success();
    alice(&["--set", "approvers=1"]).success();
}
