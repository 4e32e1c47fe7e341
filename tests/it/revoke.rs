//! Keys that lose rights: what they signed before, what they sign later, what is adopted.

use super::common::hub::Team;
use super::common::{Ran, TestEnv};
use serde_json::Value;
use std::path::Path;

/// A hub on which bob, an approver, has made a task, and his clone from before he lost his rights.
struct Parted {
    team: Team,
    task: String,
}

fn json(env: &TestEnv, dir: &Path, args: &[&str]) -> Value {
    env.hangar(dir, args).success().json()
}

impl Parted {
    fn new() -> Self {
        let team = Team::with("approver");
        let new = ["task", "new", "Before", "--plain", "--json"];
        let task = json(&team.bob, &team.second, &new);
        let task = task["id"].as_str().unwrap().to_owned();
        team.bob.hangar(&team.second, &["sync"]).success();
        team.alice().hangar(&team.first, &["sync"]).success();
        Self { team, task }
    }

    fn alice(&self, args: &[&str]) -> Ran {
        self.team.alice().hangar(&self.team.first, args)
    }

    fn bob(&self, args: &[&str]) -> Ran {
        self.team.bob.hangar(&self.team.second, args)
    }

    fn title(&self) -> Value {
        let args = ["task", "show", &self.task, "--json"];
        json(self.team.alice(), &self.team.first, &args)["title"].clone()
    }

    /// What bob does with his old clone, in which he still has his rights.
    fn bob_goes_on(&self) {
        let edit = ["task", "edit", &self.task, "--title", "Later"];
        self.bob(&edit).success();
        let git = |args: &[&str]| self.team.bob.git(&self.team.second, args);
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
        json(self.team.alice(), &self.team.first, &args)
    }
}

#[test]
fn a_server_that_checks_takes_nothing_more_of_a_key_that_is_out() {
    let parted = Parted::new();
    let hub = parted.team.alice().root().join("hub.git");
    let install = ["hook", "pre-receive", "--install"];
    parted.team.alice().hangar_found(&hub, &install).success();
    let name = format!("refs/hangar/tasks/{}", parted.task);
    let edit = |title| {
        let edit = ["task", "edit", &parted.task, "--title", title];
        parted.bob(&edit).success();
        let push = ["push", "origin", &format!("{name}:{name}")];
        parted.team.bob.git_said(&parted.team.second, &push)
    };
    edit("While he may").done();
    parted
        .team
        .alice()
        .hangar_found(&parted.team.first, &["sync"])
        .success();
    let remove = ["policy", "remove", "bob", "--retired"];
    parted
        .team
        .alice()
        .hangar_found(&parted.team.first, &remove)
        .success();
    edit("Later").refused(&name, "was retired in policy version 3");
    parted
        .team
        .alice()
        .hangar_found(&parted.team.first, &["sync"])
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
    let report = parted.alice(&["sync", "--json"]).exits(1).json();
    let one = &report["not_applied"][0];
    assert_eq!(one["kind"], "refused", "{report}");
    let why = one["why"].as_str().unwrap();
    assert!(why.contains("was retired in policy version 3"), "{why}");
    assert_eq!(parted.title(), "Before");
    let sheet = parted.alice(&["verify", &parted.task]).stdout;
    assert!(
        sheet.contains("each with a good signature; what 1 event asked for had no effect"),
        "{sheet}"
    );
    let all = parted.alice(&["verify", "--all"]).stdout;
    assert!(all.contains("1 note: `hangar verify"), "{all}");
    // alice goes on after it: nothing is lost with the refused event.
    let edit = ["task", "edit", &parted.task, "--title", "Hers"];
    parted.alice(&edit).success();
    parted.alice(&["sync"]).success();
    assert_eq!(parted.title(), "Hers");
    // With the new policy bob's own clone says so before he signs.
    parted.bob(&["sync"]).success();
    parted.bob(&["task", "new", "x", "--plain"]).exits(4);
    // Who was taken out can come back, and what was refused stays refused.
    let key = std::fs::read_to_string(parted.team.bob.home().join(".ssh/id_ed25519.pub")).unwrap();
    parted.policy(&["add", "bob", "--key", key.trim()]);
    assert_eq!(parted.title(), "Hers");
    parted.alice(&["sync"]).success();
    parted.bob(&["sync"]).success();
    parted.bob(&["task", "new", "x", "--plain"]).success();
}

#[test]
fn a_lower_role_takes_effect_on_documents_that_name_an_older_version() {
    let parted = Parted::new();
    let new = ["task", "new", "Of alice", "--plain", "--json"];
    let other = json(parted.team.alice(), &parted.team.first, &new);
    let other = other["id"].as_str().unwrap();
    parted.alice(&["sync"]).success();
    parted.bob(&["sync"]).success();
    parted.policy(&["edit", "--role", "bob=member"]);
    // Only an approver edits another's task; bob's clone still takes him for one.
    let edit = ["task", "edit", other, "--title", "By bob"];
    parted.bob(&edit).success();
    let name = format!("refs/hangar/tasks/{other}");
    parted.team.bob.git(
        &parted.team.second,
        &["push", "-q", "origin", &format!("{name}:{name}")],
    );
    parted.alice(&["sync"]).exits(1);
    let show = json(
        parted.team.alice(),
        &parted.team.first,
        &["task", "show", other, "--json"],
    );
    assert_eq!(show["title"], "Of alice");
    // As a member he still makes tasks of his own.
    parted.alice(&["sync"]).success();
    parted.bob(&["sync"]).success();
    parted.bob(&["task", "new", "x", "--plain"]).success();
}

#[test]
fn an_event_of_a_compromised_key_counts_again_once_it_is_adopted() {
    let parted = Parted::new();
    parted.bob_goes_on();
    // alice does not know of it yet.
    let remove = ["--offline", "policy", "remove", "bob", "--compromised"];
    parted.alice(&remove).success();
    let report = parted.alice(&["sync", "--json"]).exits(1).json();
    let event = report["not_applied"][0]["event"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(parted.title(), "Before");
    let unknown = format!("sha256:{}", "0".repeat(64));
    let adopt = ["policy", "adopt", &unknown];
    parted.alice(&adopt).exits(4);
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
    let carol = parted.team.alice().add_key("carol");
    for change in [
        &["add", "carol", "--role", "admin", "--key", &carol][..],
        &["edit", "--members-threshold", "2"],
    ] {
        parted.policy(change);
    }
    let dave = parted.team.alice().add_key("dave");
    let add = ["policy", "add", "dave", "--key", &dave];
    parted.alice(&add).exits(6);
    parted.alice(&["sync"]).success();
    parted.bob(&["sync"]).success();
    let open = json(
        &parted.team.bob,
        &parted.team.second,
        &["policy", "show", "--json"],
    );
    let digest = open["proposals"][0]["digest"].as_str().unwrap().to_owned();
    let sign = ["policy", "sign", &digest];
    let ran = parted.bob(&sign);
    let ran = ran.exits(4);
    assert!(
        ran.stderr.contains("bob may not sign this version"),
        "{ran}"
    );
    assert!(!ran.stderr.contains("already"), "{ran}");
}

#[test]
fn whose_key_was_declared_compromised_is_told_until_another_one_counts() {
    let parted = Parted::new();
    let told = |ran: &Ran| ran.stderr.matches("was declared compromised").count();
    assert_eq!(told(&parted.bob(&["sync"])), 0);
    parted.policy(&["remove", "bob", "--compromised"]);
    parted.alice(&["sync"]).success();
    let ran = parted.bob(&["sync"]);
    assert_eq!(told(&ran), 1, "{ran}");
    assert!(ran.stderr.contains("hangar key new"), "{ran}");
    // Nobody else is.
    assert_eq!(told(&parted.alice(&["sync"])), 0);
    // And nobody any more who did what it says.
    assert_eq!(told(&parted.bob(&["sync"])), 1);
    parted.bob(&["key", "new"]).success();
    let new = parted.team.bob.home().join(".ssh/id_ed25519_hangar.pub");
    let new = std::fs::read_to_string(new).unwrap();
    parted.policy(&["add", "bob", "--key", new.trim()]);
    parted.alice(&["sync"]).success();
    for _ in 0..2 {
        let ran = parted.bob(&["sync"]);
        assert_eq!(told(&ran), 0, "{ran}");
    }
}

#[test]
fn a_key_that_was_retired_is_found_to_be_compromised_later() {
    let parted = Parted::new();
    parted.policy(&["remove", "bob", "--retired"]);
    let reduced = |parted: &Parted| parted.policy(&["show"])["reduced"][0].clone();
    assert_eq!(reduced(&parted)["how"], "retired");
    parted.policy(&["remove", "bob", "--compromised"]);
    let entry = reduced(&parted);
    assert_eq!(entry["how"], "compromised");
    let log = parted.policy(&["log"])["versions"][0]["changes"].to_string();
    assert!(log.contains("compromised; 1 of its documents"), "{log}");
    // The course of his task stays, and what he signs later still does not count.
    assert_eq!(
        (&entry["since"], &entry["documents"]),
        (&3.into(), &1.into())
    );
    assert_eq!(parted.title(), "Before");
    parted.bob_goes_on();
    let (alice, first) = (parted.team.alice(), &parted.team.first);
    alice.hangar(first, &["sync"]).exits(1);
    assert_eq!(parted.title(), "Before");
    let again = parted.policy(&["remove", "bob", "--compromised"]);
    assert_eq!(again["unchanged"], true);
    // It is not taken back.
    let back = alice.hangar(first, &["policy", "remove", "bob", "--retired"]);
    let back = back.exits(2);
    assert!(
        back.stderr.contains("taken out already, in version 3"),
        "{back}"
    );
    alice
        .hangar(first, &["policy", "remove", "nobody", "--compromised"])
        .exits(2);
}

#[test]
fn who_had_a_lower_role_before_the_key_was_compromised_keeps_what_was_listed() {
    let parted = Parted::new();
    let (alice, first) = (parted.team.alice(), &parted.team.first);
    let (bob, second) = (&parted.team.bob, &parted.team.second);
    let new = ["task", "new", "Of alice", "--plain", "--json"];
    let other = json(alice, first, &new)["id"].as_str().unwrap().to_owned();
    parted.team.sync();
    let title = || json(alice, first, &["task", "show", &other, "--json"])["title"].clone();
    let edit = |title: &str| {
        let edit = ["task", "edit", &other, "--title", title];
        bob.hangar(second, &edit).success();
    };
    // As an approver.
    edit("By bob");
    parted.team.sync();
    parted.policy(&["edit", "--role", "bob=member"]);
    assert_eq!(title(), "By bob");
    parted.policy(&["remove", "bob", "--compromised"]);
    let entry = parted.policy(&["show"])["reduced"][0].clone();
    assert_eq!(
        (&entry["since"], &entry["documents"]),
        (&4.into(), &2.into())
    );
    assert_eq!(title(), "By bob");
    // His clone still takes him for an approver.
    edit("Later");
    let name = format!("refs/hangar/tasks/{other}");
    bob.git(second, &["push", "-q", "origin", &format!("{name}:{name}")]);
    alice.hangar(first, &["sync"]).exits(1);
    assert_eq!(title(), "By bob");
}

#[test]
fn a_removal_that_waits_says_what_was_signed_meanwhile() {
    let team = Team::with("admin");
    let (alice, first) = (team.alice(), &team.first);
    let dave = alice.user("dave");
    let key = dave.public_key();
    let add = ["policy", "add", "dave", "--role", "approver", "--key", &key];
    alice.hangar(first, &add).success();
    let two = ["policy", "edit", "--members-threshold", "2"];
    alice.hangar(first, &two).success();
    team.sync();
    let hub = team.hub.bare.to_str().unwrap();
    dave.git(dave.root(), &["clone", "-q", hub, "third"]);
    let third = dave.root().join("third");
    dave.hangar(&third, &["init", "--yes"]).success();
    dave.hangar(&third, &["sync"]).success();
    let remove = ["policy", "remove", "dave", "--retired", "--json"];
    let waits = alice.hangar(first, &remove).exits(6).json();
    assert_eq!(waits["left_out"], Value::Null, "{waits}");
    // Whoever signs is told why the key goes, not only that it does.
    team.sync();
    let changes = |env: &TestEnv, dir: &Path| {
        let view = json(env, dir, &["policy", "show", "--json"]);
        view["proposals"][0]["changes"].to_string()
    };
    let said = changes(&team.bob, &team.second);
    assert!(said.contains("retired; 0 of its documents"), "{said}");
    // dave does not know yet.
    let new = ["--offline", "task", "new", "Meanwhile", "--plain", "--json"];
    let task = json(&dave, &third, &new)["id"].as_str().unwrap().to_owned();
    dave.hangar(&third, &["sync"]).success();
    team.bob.hangar(&team.second, &["sync"]).success();
    let digest = waits["digest"].as_str().unwrap();
    let says = "1 document that dave signed after this version was made is not in its list";
    let shown = team.bob.hangar(&team.second, &["policy", "show"]).success();
    assert!(shown.stdout.contains(says), "{shown}");
    let signed = team.bob.hangar(&team.second, &["policy", "sign", digest]);
    let signed = signed.success();
    assert!(signed.stderr.contains(says), "{signed}");
    assert!(signed.stdout.contains(says), "{signed}");
    let next = signed
        .stdout
        .lines()
        .find(|line| line.contains("policy adopt"));
    let named = next.unwrap().rsplit(' ').next().unwrap();
    let event = super::common::git::file_at(
        &team.second,
        &format!("refs/hangar/tasks/{task}:event.toml"),
    );
    let event = hangar::model::digest::Digest::of(&event).to_string();
    assert_eq!(named, event);
    let log = |env: &TestEnv, dir: &Path| json(env, dir, &["task", "log", &task, "--json"]);
    let bobs = log(&team.bob, &team.second);
    assert!(bobs.to_string().contains("was retired"), "{bobs}");
    // What is honest is let in by the two.
    let adopt = ["policy", "adopt", named, "--json"];
    let waits = team.bob.hangar(&team.second, &adopt).exits(6).json();
    for (env, dir) in team.sides() {
        env.hangar(dir, &["sync"]);
    }
    let said = changes(alice, first);
    assert!(said.contains(&format!("{named} counts")), "{said}");
    let digest = waits["digest"].as_str().unwrap();
    alice.hangar(first, &["policy", "sign", digest]).success();
    let hers = log(alice, first);
    assert!(!hers.to_string().contains("was retired"), "{hers}");
}

#[test]
fn a_task_that_can_not_be_read_is_named_when_rights_are_taken() {
    let parted = Parted::new();
    let (alice, first) = (parted.team.alice(), &parted.team.first);
    let damaged = "a".repeat(52);
    let head = alice.git(first, &["rev-parse", "HEAD"]);
    let name = format!("refs/hangar/tasks/{damaged}");
    alice.git(first, &["update-ref", &name, &head]);
    let carol = alice.add_key("carol");
    let added = parted.policy(&["add", "carol", "--key", &carol]);
    assert_eq!(added["unread"], Value::Null);
    let ran = alice.hangar(first, &["policy", "remove", "bob", "--retired"]);
    let ran = ran.success();
    assert!(ran.stdout.contains("not read   task aaaaaaaa"), "{ran}");
    let removed = parted.policy(&["remove", "carol", "--retired"]);
    assert_eq!(removed["unread"], serde_json::json!([damaged]));
}

#[test]
fn a_recovery_key_that_becomes_the_working_key_stands_once() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    let spare = env.add_key("id_spare");
    let add = ["policy", "add", "alice", "--recovery", "--key", &spare];
    env.hangar(&dir, &add).success();
    let done = env.json(&dir, &["policy", "rotate", "--to", &spare]);
    assert_eq!(done["in_force"], true);
    let shown = env.json(&dir, &["policy", "show"]);
    assert_eq!(shown["root"].as_array().unwrap().len(), 1, "{shown}");
    assert_eq!(shown["root"][0]["recovery"], false);
    assert_eq!(shown["root"][0]["key"], shown["people"][0]["keys"][0]);
    env.hangar(&dir, &["task", "new", "x", "--plain"]).success();
}

/// The key to work with is lost, and the other one signs: what is printed then leads out, word for word.
#[test]
fn who_has_the_recovery_key_alone_gets_another_key_to_work_with() {
    for format in ["sha1", "sha256"] {
        let env = TestEnv::new();
        let dir = env.root().join("repo");
        let long = format!("--object-format={format}");
        env.git(env.root(), &["init", "-q", &long, "repo"]);
        env.git(&dir, &["commit", "-q", "--allow-empty", "-m", "first"]);
        env.hangar(&dir, &["init", "--yes"]).success();
        env.commit(&dir, "set up");
        let lost = env.public_key();
        let spare = env.add_key("id_spare");
        let add = ["policy", "add", "alice", "--recovery", "--key", &spare];
        env.hangar(&dir, &add).success();
        for name in ["id_ed25519", "id_ed25519.pub"] {
            std::fs::remove_file(env.home().join(".ssh").join(name)).unwrap();
        }
        let signs_with = |name: &str| {
            let file = env.home().join(".ssh").join(name);
            env.git(&dir, &["config", "gpg.format", "ssh"]);
            let file = file.to_str().unwrap();
            env.git(&dir, &["config", "user.signingKey", file]);
        };
        signs_with("id_spare.pub");
        let new = env.add_key("id_new");
        let rotate = ["policy", "rotate", "--to", &new];
        let ran = env.hangar(&dir, &rotate).exits(4);
        let flat = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains("is kept by alice for emergencies"), "{ran}");
        let add = format!("policy add alice --root --key '{new}'");
        assert!(flat.contains(&format!("`hangar {add}`")), "{ran}");
        let add = ["policy", "add", "alice", "--root", "--key", &new];
        env.hangar(&dir, &add).success();
        signs_with("id_new.pub");
        env.hangar(&dir, &["task", "new", "x", "--plain"]).success();
        let remove = ["policy", "remove", "alice", "--key", &lost, "--retired"];
        env.hangar(&dir, &remove).success();
        let shown = env.json(&dir, &["policy", "show"]);
        assert_eq!(shown["root"].as_array().unwrap().len(), 2, "{shown}");
        assert_eq!(shown["people"][0]["keys"].as_array().unwrap().len(), 1);
        env.hangar(&dir, &["verify", "--all"]).success();
    }
}

#[test]
fn a_compromised_key_is_not_given_rights_again() {
    let parted = Parted::new();
    let home = parted.team.bob.home();
    let key = std::fs::read_to_string(home.join(".ssh/id_ed25519.pub")).unwrap();
    parted.policy(&["remove", "bob", "--compromised"]);
    for role in ["--key", "--worker"] {
        let ran = parted
            .alice(&["policy", "add", "bob", role, key.trim()])
            .exits(4);
        assert!(
            ran.stderr.contains("was declared compromised in version 3"),
            "{ran}"
        );
    }
    parted.bob(&["key", "new"]).success();
    let new = std::fs::read_to_string(home.join(".ssh/id_ed25519_hangar.pub")).unwrap();
    parted.policy(&["add", "bob", "--key", new.trim()]);
}

#[test]
fn keys_of_a_machine_that_were_declared_compromised_are_made_anew_and_the_printed_line_works() {
    let team = Team::new();
    let (alice, bob) = (team.alice(), &team.bob);
    let init = || bob.json(&team.second, &["init", "--yes"]);
    let add = |report: &Value| {
        let line = report["admin_command"].as_str().unwrap().to_owned();
        let mut shell = alice.command("sh", &team.first);
        shell.args(["-c", &line]).env("PATH", super::hooks::path());
        let ran = alice.ran(&["sh"], &shell.output().unwrap()).success();
        team.sync();
        (line, ran)
    };
    let first = init();
    assert_eq!(first["old_keys"], Value::Null);
    let (old_line, _) = add(&first);
    let file = |role: &str| Path::new(first["keys_dir"].as_str().unwrap()).join(role);
    let bytes = |path: &Path| std::fs::read(path).unwrap();
    let old = ["worker", "grader"].map(|role| bytes(&file(role)));
    // Nothing changes while nobody says so.
    assert_eq!(init()["old_keys"], Value::Null);
    let remove = ["policy", "remove", "bob", "--compromised"];
    alice.hangar(&team.first, &remove).success();
    team.sync();
    let ran = bob.hangar(&team.second, &["init", "--json"]).success();
    let report = ran.json();
    super::cli_help::validate("init", &report);
    let aside: Vec<_> = report["old_keys"].as_array().unwrap().iter().collect();
    assert_eq!(aside.len(), 2, "{report}");
    for (path, old) in aside.iter().zip(&old) {
        assert_eq!(&bytes(Path::new(path.as_str().unwrap())), old);
    }
    // Their own key is out as well; a line that names it would be refused.
    assert_eq!(report["admin_command"], Value::Null, "{report}");
    assert!(ran.stderr.contains("hangar key new"), "{ran}");
    bob.hangar(&team.second, &["key", "new"]).success();
    let again = init();
    assert_eq!(again["old_keys"], Value::Null);
    let (line, _) = add(&again);
    let keys = |line: &str| -> Vec<String> {
        let words = line.split(['\'', ' ']);
        words
            .filter(|word| word.starts_with("AAAA"))
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(keys(&line).len(), 3, "{line}");
    assert!(
        keys(&line).iter().all(|key| !old_line.contains(key)),
        "{line}"
    );
    bob.hangar(&team.second, &["task", "new", "x", "--plain"])
        .success();
    assert_eq!(init()["admin_command"], Value::Null);
}

#[test]
fn who_signed_what_counts_no_more_is_told_once_and_by_which_command_it_may_count() {
    let parted = Parted::new();
    let (alice, bob) = (parted.team.alice(), &parted.team.bob);
    let edit = ["task", "edit", &parted.task, "--title", "Later"];
    parted.bob(&edit).success();
    // alice does not know of it.
    parted.policy(&["remove", "bob", "--retired"]);
    let told = |ran: &Ran| {
        let flat = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut quoted = flat.split('`').skip(1).step_by(2);
        let adopt = quoted.find(|one| one.starts_with("hangar policy adopt"));
        adopt
            .filter(|_| flat.contains("1 document that you signed"))
            .map(str::to_owned)
    };
    let ran = bob.hangar(&parted.team.second, &["sync"]);
    let adopt = told(&ran).unwrap_or_else(|| panic!("{ran}"));
    assert_eq!(told(&parted.bob(&["sync"])), None);
    // Nobody else is told that it was theirs.
    assert_eq!(told(&parted.alice(&["sync"])), None);
    assert_eq!(parted.title(), "Before");
    let words: Vec<_> = adopt.split(' ').skip(1).collect();
    alice.hangar(&parted.team.first, &words).success();
    assert_eq!(parted.title(), "Later");
}
