//! `hangar init`, `deinit`, keys, policy and configuration.

use crate::cli_help::validate;
use crate::common::{TestEnv, write};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

#[test]
fn init_founds_a_policy_that_git_and_ssh_keygen_agree_with() {
    let env = TestEnv::new();
    let dir = env.repo("repo", &[("a.txt", "a\n")]);
    let report = env.hangar(&dir, &["init", "--json"]).success().json();
    validate("init", &report);
    assert_eq!(report["outcome"], "founded");
    assert_eq!(report["principal"], "alice");
    assert_eq!(report["to_commit"], serde_json::json!(["hangar.toml"]));
    assert_eq!(report["age_identity_made"], false);
    env.git(&dir, &["fsck", "--strict"]);
    let root = env.git(&dir, &["show", "refs/hangar/policy:root.toml"]) + "\n";
    write(&env.root().join("root.toml"), &root);
    let names = env.git(
        &dir,
        &["ls-tree", "--name-only", "refs/hangar/policy:root.sigs"],
    );
    let signature = env.git(
        &dir,
        &["show", &format!("refs/hangar/policy:root.sigs/{names}")],
    );
    write(&env.root().join("root.sig"), &(signature + "\n"));
    let public = fs::read_to_string(env.home().join(".ssh/id_ed25519.pub")).unwrap();
    write(&env.root().join("signers"), &format!("alice {public}"));
    let check = "ssh-keygen -Y verify -f signers -I alice -n hangar-root -s root.sig < root.toml";
    let out = env
        .command("/bin/sh", env.root())
        .args(["-c", check])
        .output()
        .unwrap();
    assert!(out.status.success(), "{out:?}");
    let keys = Path::new(report["keys_dir"].as_str().unwrap());
    for name in ["worker", "grader"] {
        let mode = fs::metadata(keys.join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert!(!keys.join("age-identity").exists());
}

#[test]
fn init_twice_changes_nothing() {
    let env = TestEnv::new();
    let dir = env.repo("repo", &[]);
    env.hangar(&dir, &["init", "--agents"]).success();
    env.git(&dir, &["add", "-A"]);
    env.git(&dir, &["commit", "-q", "-m", "set up"]);
    let state = || {
        let refs = env.git(&dir, &["for-each-ref"]);
        let status = env.git(&dir, &["status", "--porcelain"]);
        (
            refs,
            status,
            fs::read(dir.join(".git/hangar/trust.toml")).unwrap(),
        )
    };
    let before = state();
    let again = env
        .hangar(&dir, &["init", "--agents", "--json"])
        .success()
        .json();
    assert_eq!(again["outcome"], "unchanged");
    assert_eq!(again["to_commit"], serde_json::json!([]));
    assert!(again.get("admin_command").is_none());
    assert_eq!(before, state());
}

#[test]
fn what_init_prints() {
    let env = TestEnv::new();
    let dir = env.repo("repo", &[]);
    insta::assert_snapshot!("init_first", env.hangar(&dir, &["init"]).snapshot(&[]));
    insta::assert_snapshot!("init_again", env.hangar(&dir, &["init"]).snapshot(&[]));
}

#[test]
fn a_repository_without_a_commit_is_told_what_to_do() {
    let env = TestEnv::new();
    env.git(env.root(), &["init", "-q", "empty"]);
    let ran = env.hangar(&env.root().join("empty"), &["init"]).exits(3);
    insta::assert_snapshot!(ran.snapshot(&[]));
}

#[test]
fn without_a_key_init_offers_one_and_never_takes_it_for_granted() {
    let env = TestEnv::without_key();
    let dir = env.repo("repo", &[]);
    let ran = env.hangar(&dir, &["init"]).exits(3);
    assert!(ran.stderr.contains("no SSH key was found"), "{ran}");
    assert!(ran.stderr.contains("hangar key new"), "{ran}");
    assert!(!env.home().join(".ssh/id_ed25519_hangar").exists());
    env.hangar(&dir, &["init", "--yes"]).success();
    let key = env.home().join(".ssh/id_ed25519_hangar");
    let mode = fs::metadata(&key).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let out = env
        .command("ssh-keygen", env.root())
        .args(["-y", "-f"])
        .arg(&key)
        .output()
        .unwrap();
    let public = fs::read_to_string(key.with_extension("pub")).unwrap();
    let derived = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(public.starts_with(derived.split(" hangar").next().unwrap().trim()));
}

#[test]
fn an_encrypted_key_gets_an_age_identity_beside_it() {
    let env = TestEnv::without_key();
    let dir = env.repo("repo", &[]);
    let key = env.home().join(".ssh/id_ed25519");
    let made = env
        .command("ssh-keygen", env.root())
        .args(["-q", "-t", "ecdsa", "-b", "256", "-N", "", "-f"])
        .arg(&key)
        .output()
        .unwrap();
    assert!(made.status.success());
    let report = env.hangar(&dir, &["init", "--json"]).success().json();
    assert_eq!(report["age_identity_made"], true);
    let keys = Path::new(report["keys_dir"].as_str().unwrap());
    let file = keys.join("age-identity");
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(
        fs::read_to_string(file)
            .unwrap()
            .starts_with("AGE-SECRET-KEY-1")
    );
    let policy = env
        .hangar(&dir, &["policy", "show", "--json"])
        .success()
        .json();
    validate("policy-show", &policy);
    let recipient = policy["people"][0]["recipients"][0].as_str().unwrap();
    assert!(recipient.starts_with("age1"), "{recipient}");
}

#[test]
fn the_key_of_git_s_configuration_comes_first_and_no_other_is_taken_in_its_place() {
    let env = TestEnv::new();
    env.add_key("id_other");
    let dir = env.repo("repo", &[]);
    let other = env.home().join(".ssh/id_other.pub");
    env.git(&dir, &["config", "gpg.format", "ssh"]);
    env.git(
        &dir,
        &["config", "user.signingKey", &other.display().to_string()],
    );
    let report = env.hangar(&dir, &["init", "--json"]).success().json();
    assert_eq!(report["key_source"], "Git's user.signingKey");
    env.git(&dir, &["config", "user.signingKey", "/nowhere/key.pub"]);
    let ran = env.hangar(&dir, &["task", "new", "x"]).exits(3);
    assert!(ran.stderr.contains("user.signingKey"), "{ran}");
}

#[test]
fn a_second_clone_pins_the_policy_and_prints_the_admin_s_line() {
    let alice = TestEnv::new();
    let dir = alice.ready("repo");
    let hub = alice.root().join("hub.git");
    alice.git(alice.root(), &["init", "-q", "--bare", "hub.git"]);
    alice.git(
        &dir,
        &["remote", "add", "origin", &hub.display().to_string()],
    );
    alice.git(
        &dir,
        &["push", "-q", "origin", "main", "refs/hangar/policy"],
    );
    let bob = alice.user("bob");
    bob.git(
        bob.root(),
        &["clone", "-q", &hub.display().to_string(), "clone"],
    );
    let clone = bob.root().join("clone");
    let report = bob.hangar(&clone, &["init", "--json"]).success().json();
    validate("init", &report);
    assert_eq!(report["outcome"], "pinned");
    assert!(report.get("principal").is_none());
    let line = report["admin_command"].as_str().unwrap();
    for part in [
        "hangar policy add bob --role member --key 'ssh-ed25519 ",
        "--worker '",
        "--grader '",
    ] {
        assert!(line.contains(part), "{line}");
    }
    let policy = |env: &TestEnv, dir| env.git(dir, &["rev-parse", "refs/hangar/policy"]);
    assert_eq!(policy(&bob, &clone), policy(&alice, &dir));
    let ran = bob.hangar(&clone, &["task", "new", "x"]).exits(4);
    assert!(
        ran.stderr.contains("belongs to nobody in the policy"),
        "{ran}"
    );
    bob.hangar(&clone, &["task", "list"]).success();
}

#[test]
fn an_unreachable_remote_is_never_taken_for_an_empty_one() {
    let env = TestEnv::new();
    let dir = env.repo("repo", &[]);
    let gone = env.root().join("gone.git").display().to_string();
    env.git(&dir, &["remote", "add", "origin", &gone]);
    let ran = env.hangar(&dir, &["init"]).exits(3);
    assert!(ran.stderr.contains("hangar init --new"), "{ran}");
    env.hangar(&dir, &["init", "--offline"]).exits(3);
    let report = env
        .hangar(&dir, &["init", "--new", "--json"])
        .success()
        .json();
    assert_eq!(report["outcome"], "founded");
}

#[test]
fn a_forged_policy_on_the_remote_does_not_stay() {
    let env = TestEnv::new();
    let dir = env.repo("repo", &[]);
    env.git(env.root(), &["init", "-q", "--bare", "hub.git"]);
    let hub = env.root().join("hub.git").display().to_string();
    env.git(&dir, &["remote", "add", "origin", &hub]);
    env.git(&dir, &["push", "-q", "origin", "HEAD:refs/hangar/policy"]);
    let ran = env.hangar(&dir, &["init"]).exits(4);
    assert!(ran.stderr.contains("policy can't be trusted"), "{ran}");
    assert_eq!(env.git(&dir, &["for-each-ref", "refs/hangar"]), "");
}

#[test]
fn a_rival_policy_is_refused() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    env.git(&dir, &["update-ref", "-d", "refs/hangar/policy"]);
    let ran = env.hangar(&dir, &["init"]).exits(3);
    assert!(ran.stderr.contains("is not in this clone"), "{ran}");
    // The pin of this clone stands against it even with --new.
    let ran = env.hangar(&dir, &["init", "--new"]).exits(4);
    assert!(ran.stderr.contains("this clone trusts"), "{ran}");
}

#[test]
fn deinit_asks_and_leaves_the_keys() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    env.hangar(&dir, &["task", "new", "x", "-c", "y"]).success();
    env.hangar(&dir, &["deinit"]).exits(6);
    assert_ne!(env.git(&dir, &["for-each-ref", "refs/hangar"]), "");
    let report = env
        .hangar(&dir, &["deinit", "--yes", "--json"])
        .success()
        .json();
    validate("deinit", &report);
    assert_eq!((&report["refs"], &report["tasks"]), (&2.into(), &1.into()));
    assert_eq!(env.git(&dir, &["for-each-ref", "refs/hangar"]), "");
    assert!(!dir.join(".git/hangar").exists());
    assert!(env.home().join(".local/share/hangar").exists());
    env.hangar(&dir, &["task", "list"]).exits(3);
    env.hangar(&dir, &["init", "--new"]).success();
}

#[test]
fn states_of_a_repository_that_init_and_task_list_take() {
    let env = TestEnv::new();
    let dir = env.ready("with space");
    env.git(&dir, &["checkout", "-q", "--detach"]);
    env.hangar(&dir.join("tests"), &["task", "new", "x", "-c", "y"])
        .success();
    env.git(&dir, &["worktree", "add", "-q", "../linked"]);
    let linked = env.root().join("linked");
    let list = env
        .hangar(&linked, &["task", "list", "--json"])
        .success()
        .json();
    assert_eq!(list["tasks"].as_array().unwrap().len(), 1);
    env.git(
        env.root(),
        &["clone", "-q", "--mirror", "with space", "bare.git"],
    );
    let bare = env.root().join("bare.git");
    let list = env
        .hangar(&bare, &["task", "list", "--json"])
        .success()
        .json();
    assert_eq!(list["tasks"].as_array().unwrap().len(), 1);
    let report = env.hangar(&bare, &["init", "--json"]).success().json();
    assert_eq!(report["bare"], true);
}

#[test]
fn what_stands_in_the_way_is_one_clear_error() {
    let env = TestEnv::new();
    let outside = env.root().join("outside");
    fs::create_dir(&outside).unwrap();
    let ran = env.hangar(&outside, &["task", "list"]).exits(3);
    assert!(ran.stderr.contains("is not in a Git repository"), "{ran}");
    let dir = env.repo("repo", &[]);
    let ran = env.hangar(&dir, &["task", "list"]).exits(3);
    assert!(ran.stderr.contains("hint: run `hangar init`"), "{ran}");
    let no_home = [("HOME", ""), ("XDG_CONFIG_HOME", ""), ("XDG_DATA_HOME", "")];
    let ran = env
        .hangar_with(&dir, &["config", "list"], &no_home, "")
        .exits(3);
    assert!(ran.stderr.contains("HOME is not set"), "{ran}");
    let key = env.home().join(".ssh/id_ed25519");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let ran = env.hangar(&dir, &["init"]).exits(3);
    assert!(ran.stderr.contains("chmod 600"), "{ran}");
}

#[test]
fn keys_are_listed_with_their_holder_and_made_without_overwriting() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    let list = env
        .hangar(&dir, &["key", "list", "--json"])
        .success()
        .json();
    validate("key-list", &list);
    assert_eq!(list["keys"][0]["principal"], "alice");
    assert_eq!(list["machine"][1]["principal"], "alice-grader");
    let made = env
        .hangar(&dir, &["key", "new", "--file", "k", "--json"])
        .success()
        .json();
    validate("key-new", &made);
    let before = fs::read(dir.join("k")).unwrap();
    let ran = env.hangar(&dir, &["key", "new", "--file", "k"]).exits(4);
    assert!(ran.stderr.contains("exists already"), "{ran}");
    assert_eq!(fs::read(dir.join("k")).unwrap(), before);
    // Listing needs no repository.
    env.hangar(env.home(), &["key", "list"]).success();
}

#[test]
fn the_policy_reads_as_a_page() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    insta::assert_snapshot!(env.hangar(&dir, &["policy", "show"]).snapshot(&[]));
    let log = env
        .hangar(&dir, &["policy", "log", "--json"])
        .success()
        .json();
    validate("policy-log", &log);
    assert_eq!(log["versions"][0]["changes"][0], "founded");
}

#[test]
fn configuration_is_listed_with_its_origin_and_changed_for_the_user() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    let set = env
        .hangar(
            &dir,
            &["config", "set", "lanes.writer", "mine:high,codex", "--json"],
        )
        .success()
        .json();
    validate("config-set", &set);
    let list = env
        .hangar(&dir, &["config", "list", "--json"])
        .success()
        .json();
    validate("config-list", &list);
    let value = |key: &str| {
        let all = list["values"].as_array().unwrap();
        all.iter().find(|one| one["key"] == key).unwrap().clone()
    };
    assert_eq!(value("lanes.writer")["value"], "[\"mine:high\", \"codex\"]");
    let origin = value("lanes.writer")["origin"].as_str().unwrap().to_owned();
    assert!(
        origin.starts_with("user ") && origin.ends_with("config.toml:2"),
        "{origin}"
    );
    assert!(
        value("task.flow")["origin"]
            .as_str()
            .unwrap()
            .starts_with("repository hangar.toml:")
    );
    let ran = env
        .hangar(&dir, &["config", "list", "--show-origin"])
        .success();
    assert!(
        ran.stdout
            .contains("lanes.writer\t[\"mine:high\", \"codex\"]\tuser "),
        "{ran}"
    );
    let get = env
        .hangar(&dir, &["config", "get", "remote.name", "--json"])
        .success()
        .json();
    validate("config-get", &get);
    env.hangar(&dir, &["config", "get", "no.such"]).exits(1);
    env.hangar(&dir, &["config", "set", "task.flow", "plain"])
        .exits(2);
    env.hangar(&dir, &["config", "set", "lanes.wirter", "x"])
        .exits(2);
    env.write_home(".config/hangar/config.toml", "[lane]\nwriter = [\"x\"]\n");
    let ran = env.hangar(&dir, &["config", "list"]).success();
    assert!(ran.stderr.contains("did you mean `lanes`"), "{ran}");
}

#[test]
fn harnesses_are_listed_and_checked() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    let (one, two) = (env.root().join("one"), env.root().join("two"));
    for file in [&one, &two] {
        write(file, "#!/bin/sh\n");
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let config = format!(
        "[harness.a]\nkind = \"command\"\ncommand = [\"{}\"]\n[harness.b]\nkind = \"command\"\ncommand = [\"{}\"]\n[lanes]\nwriter = [\"a\"]\nimplementer = [\"b\"]\n",
        one.display(),
        two.display()
    );
    env.write_home(".config/hangar/config.toml", &config);
    let list = env
        .hangar(&dir, &["harness", "list", "--json"])
        .success()
        .json();
    validate("harness-list", &list);
    assert_eq!(list["pair"]["ready"], true, "{list:#}");
    let test = env
        .hangar(&dir, &["harness", "test", "--json"])
        .success()
        .json();
    validate("harness-test", &test);
    fs::remove_file(&two).unwrap();
    env.hangar(&dir, &["harness", "test", "a"]).success();
    env.hangar(&dir, &["harness", "test", "b"]).exits(1);
    env.hangar(&dir, &["harness", "test", "c"]).exits(2);
    let list = env
        .hangar(&dir, &["harness", "list", "--json"])
        .success()
        .json();
    assert_eq!(list["pair"]["ready"], false);
}

#[test]
fn doctor_says_what_is_missing_and_ends_with_3_until_nothing_is() {
    let env = TestEnv::new();
    let dir = env.repo("repo", &[("tests/test_a.py", "import unittest\n")]);
    let check = |report: &serde_json::Value, name: &str| {
        let all = report["checks"].as_array().unwrap();
        let found = all.iter().find(|check| check["name"] == name);
        found.map_or("absent".to_owned(), |check| {
            check["state"].as_str().unwrap().to_owned()
        })
    };
    let report = env.hangar(&dir, &["doctor", "--json"]).exits(3).json();
    validate("doctor", &report);
    assert_eq!(report["ready"], false);
    assert_eq!(check(&report, "git"), "ok");
    assert_eq!(check(&report, "policy"), "missing");
    assert!(
        report["without_sandbox"]
            .as_array()
            .unwrap()
            .contains(&"verify".into())
    );
    env.hangar(&dir, &["init"]).success();
    let report = env.hangar(&dir, &["doctor", "--json"]).exits(3).json();
    assert_eq!(check(&report, "policy"), "ok");
    assert_eq!(check(&report, "hangar.toml"), "missing");
    env.git(&dir, &["add", "-A"]);
    env.git(&dir, &["commit", "-q", "-m", "set up"]);
    let ran = env.hangar(&dir, &["doctor", "--json"]);
    let report = ran.json();
    for name in [
        "your key",
        "worker key",
        "grader key",
        "hangar.toml",
        "reading hidden tests",
    ] {
        assert_eq!(check(&report, name), "ok", "{name}");
    }
    // Whether sandboxes work is the machine's; the answer and the exit code must agree.
    let ready = report["ready"].as_bool().unwrap();
    assert_eq!(ran.code, Some(if ready { 0 } else { 3 }), "{ran}");
    // Nothing was changed by looking.
    assert_eq!(env.git(&dir, &["status", "--porcelain"]), "");
    let outside = env
        .hangar(env.home(), &["doctor", "--json"])
        .exits(3)
        .json();
    assert_eq!(check(&outside, "repository"), "missing");
}

#[test]
fn hangar_toml_is_tuned_to_the_framework_that_is_found() {
    let env = TestEnv::new();
    for (name, files, framework) in [
        (
            "py",
            &[
                ("pyproject.toml", "[tool.pytest.ini_options]\n"),
                ("tests/test_a.py", "def test_a():\n    pass\n"),
            ][..],
            "pytest",
        ),
        (
            "bare-py",
            &[("tests/test_a.py", "def test_a():\n    assert True\n")],
            "pytest",
        ),
        (
            "unit",
            &[(
                "tests/test_a.py",
                "import unittest\n\nclass A(unittest.TestCase):\n    pass\n",
            )],
            "unittest",
        ),
        (
            "rs",
            &[
                (
                    "Cargo.toml",
                    "[package]\nname = \"x\"\nversion = \"0.1.0\"\n",
                ),
                ("src/lib.rs", ""),
            ],
            "cargo",
        ),
        (
            "js",
            &[
                ("package.json", "{\"scripts\":{\"test\":\"node --test\"}}\n"),
                ("test/a.test.js", "require('node:test');\n"),
            ],
            "node",
        ),
        ("none", &[("README.md", "hello\n")], "exec"),
    ] {
        let dir = env.repo(name, files);
        let report = env.hangar(&dir, &["init", "--json"]).success().json();
        let text = fs::read_to_string(dir.join("hangar.toml")).unwrap();
        let line = format!("\nframework = \"{framework}\"\n");
        assert!(text.contains(&line), "{name}: {text}");
        let told = report.get("framework").and_then(|word| word.as_str());
        assert_eq!(told, (framework != "exec").then_some(framework), "{name}");
        let list = env.hangar(&dir, &["config", "list"]).success();
        assert_eq!(list.stderr, "", "{name}");
    }
}

#[test]
fn odd_repositories_work_or_say_why_not() {
    use std::os::unix::ffi::OsStrExt as _;
    let env = TestEnv::new();
    // Named by SHA-256.
    let dir = env.root().join("long");
    env.git(
        env.root(),
        &["init", "-q", "--object-format=sha256", "long"],
    );
    env.git(&dir, &["commit", "-q", "--allow-empty", "-m", "first"]);
    env.hangar(&dir, &["init"]).success();
    env.git(&dir, &["add", "-A"]);
    env.git(&dir, &["commit", "-q", "-m", "set up"]);
    let made = env
        .hangar(&dir, &["task", "new", "x", "--plain", "--json"])
        .success()
        .json();
    assert_eq!(made["base"].as_str().unwrap().len(), 64);
    env.git(&dir, &["fsck", "--strict"]);
    // A name that is not UTF-8, a dirty work tree, and a branch called hangar.
    let odd = env
        .root()
        .join(std::ffi::OsStr::from_bytes(b"odd \xff name"));
    fs::rename(env.ready("plain"), &odd).unwrap();
    env.git(&odd, &["branch", "hangar"]);
    write(&odd.join("calc.py"), "changed\n");
    env.hangar(&odd, &["task", "new", "x", "-c", "y"]).success();
    env.hangar(&odd, &["task", "list"]).success();
    // Cut off.
    let url = format!("file://{}", dir.display());
    env.git(env.root(), &["clone", "-q", "--depth=1", &url, "shallow"]);
    let shallow = env.root().join("shallow");
    let report = env.hangar(&shallow, &["init", "--json"]).success().json();
    assert_eq!(report["outcome"], "pinned");
    env.hangar(&shallow, &["task", "new", "x", "--plain"])
        .success();
    // A policy below refs/heads beside the usual one.
    env.git(
        &dir,
        &[
            "update-ref",
            "refs/heads/hangar-state/policy",
            "refs/hangar/policy",
        ],
    );
    let ran = env.hangar(&dir, &["task", "list"]).exits(4);
    assert!(ran.stderr.contains("both refs/hangar/"), "{ran}");
}

#[test]
fn a_policy_that_goes_back_is_refused() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    // Another policy under the same ref: founded by the same person elsewhere.
    let other = env.ready("other");
    let url = other.display().to_string();
    env.git(
        &dir,
        &[
            "fetch",
            "-q",
            &url,
            "+refs/hangar/policy:refs/hangar/policy",
        ],
    );
    for args in [
        &["task", "list"][..],
        &["task", "new", "x"],
        &["init"],
        &["policy", "show"],
    ] {
        let ran = env.hangar(&dir, args).exits(4);
        assert!(ran.stderr.contains("not the one that was pinned"), "{ran}");
    }
}
