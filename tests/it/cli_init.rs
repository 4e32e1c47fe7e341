//! `hangar init` and `deinit`: what is founded, with which key, and what is printed.

use super::grade_kit::File;
use crate::cli_help::validate;
use crate::common::hub::Hub;
use crate::common::{TestEnv, write};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

#[test]
fn init_founds_a_policy_that_git_and_ssh_keygen_agree_with() {
    let env = TestEnv::new();
    let dir = env.repo("repo", &[("a.txt", "a\n")]);
    let report = env.json(&dir, &["init"]);
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

/// Another policy than `hangar.toml` names is not taken, and each hint leads on.
#[test]
fn a_clone_takes_no_policy_that_its_hangar_toml_does_not_name() {
    let (hub, first) = Hub::new();
    let env = &hub.env;
    env.git(&first, &["push", "-q", "origin", "HEAD"]);
    let other = env.ready("other");
    let bare = hub.bare.to_str().unwrap();
    let push = "+refs/hangar/policy:refs/hangar/policy";
    env.git(&other, &["push", "-q", bare, push]);
    let clone = |name: &str| {
        env.git(env.root(), &["clone", "-q", "hub.git", name]);
        env.root().join(name)
    };
    let refs = |dir: &Path| env.git(dir, &["for-each-ref", "refs/hangar"]);
    let (wrong, chosen) = (clone("wrong"), clone("chosen"));
    let ran = env.hangar(&wrong, &["init"]).exits(4);
    assert!(ran.stderr.contains("nothing was taken from there"), "{ran}");
    assert_eq!(refs(&wrong), "");
    // Where the remote is right.
    let ran = env.hangar(&chosen, &["init", "--new", "--json"]).success();
    let id = env.json(&other, &["init"])["repo"].clone();
    assert_eq!(ran.json()["repo"], id);
    let toml = fs::read_to_string(chosen.join("hangar.toml")).unwrap();
    assert!(toml.contains(id.as_str().unwrap()), "{toml}");
    // Where hangar.toml is.
    let from = first.to_str().unwrap();
    env.git(&wrong, &["fetch", "-q", from, &push[1..]]);
    env.hangar(&wrong, &["init"]).success();
    assert!(refs(&wrong).contains("refs/hangar/policy"));
}

#[test]
fn init_is_quiet_when_it_is_told_to_be() {
    let env = TestEnv::new();
    let dir = env.repo("repo", &[("a.txt", "a\n")]);
    for _ in 0..2 {
        let ran = env.hangar(&dir, &["-q", "init"]).success();
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    }
}

#[test]
fn init_twice_changes_nothing() {
    let env = TestEnv::new();
    let dir = env.repo("repo", &[]);
    env.hangar(&dir, &["init", "--agents"]).success();
    env.commit(&dir, "set up");
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
    let again = env.json(&dir, &["init", "--agents"]);
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
fn a_head_without_a_commit_beside_branches_is_told_to_take_one() {
    let env = TestEnv::new();
    let dir = env.repo("repo", &[]);
    env.git(&dir, &["branch", "-m", "main", "trunk"]);
    env.git(&dir, &["symbolic-ref", "HEAD", "refs/heads/gone"]);
    for command in ["init", "doctor"] {
        let ran = env.hangar(&dir, &[command]).exits(3);
        let said = ran.to_string();
        assert!(
            said.contains("HEAD names a branch that is not there"),
            "{ran}"
        );
        assert!(said.contains("git switch trunk"), "{ran}");
        assert!(!said.contains("--allow-empty"), "{ran}");
    }
    env.git(&dir, &["switch", "-q", "trunk"]);
    env.hangar(&dir, &["init"]).success();
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
    let report = env.json(&dir, &["init"]);
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
    let policy = env.json(&dir, &["policy", "show"]);
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
    let report = env.json(&dir, &["init"]);
    assert_eq!(report["key_source"], "Git's user.signingKey");
    env.git(&dir, &["config", "user.signingKey", "/nowhere/key.pub"]);
    let ran = env.hangar(&dir, &["task", "new", "x"]).exits(3);
    assert!(ran.stderr.contains("user.signingKey"), "{ran}");
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
        (
            "mocha",
            &[
                ("package.json", "{\"devDependencies\":{\"mocha\":\"11\"}}\n"),
                ("test/a.js", "it('a', () => {});\n"),
            ],
            "mocha",
        ),
        ("none", &[("README.md", "hello\n")], "exec"),
    ] {
        let dir = env.repo(name, files);
        let report = env.json(&dir, &["init"]);
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
fn deinit_asks_and_leaves_the_keys() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    env.hangar(&dir, &["task", "new", "x", "-c", "y"]).success();
    env.hangar(&dir, &["deinit"]).exits(6);
    assert_ne!(env.git(&dir, &["for-each-ref", "refs/hangar"]), "");
    let report = env.json(&dir, &["deinit", "--yes"]);
    validate("deinit", &report);
    assert_eq!((&report["refs"], &report["tasks"]), (&2.into(), &1.into()));
    assert_eq!(env.git(&dir, &["for-each-ref", "refs/hangar"]), "");
    assert!(!dir.join(".git/hangar").exists());
    assert!(env.home().join(".local/share/hangar").exists());
    env.hangar(&dir, &["task", "list"]).exits(3);
    env.hangar(&dir, &["init", "--new"]).success();
}

#[test]
fn deinit_counts_a_task_that_was_synced_once() {
    let (hub, first) = crate::common::hub::Hub::new();
    hub.task(&first, "Shared");
    hub.sync(&first).success();
    let report = hub.env.json(&first, &["deinit", "--yes"]);
    assert_eq!(report["tasks"], 1, "{report}");
}

#[test]
fn a_grader_key_that_was_lost_is_said_to_be_made_anew() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    let ran = env.hangar(&dir, &["init"]).success();
    assert!(
        ran.stdout.contains("Everything was set up already"),
        "{ran}"
    );
    let report = env.json(&dir, &["init"]);
    assert_eq!(report["machine_keys_made"], false, "{report}");
    let keys = report["keys_dir"].as_str().unwrap();
    fs::remove_file(Path::new(keys).join("grader")).unwrap();
    let ran = env.hangar(&dir, &["init"]).success();
    assert!(ran.stdout.contains("Made keys for this machine"), "{ran}");
}

#[test]
fn a_private_key_is_no_recovery_key_and_its_text_is_not_said() {
    let env = TestEnv::new();
    let dir = env.repo("repo", &[]);
    let file = env.home().join(".ssh/id_ed25519").display().to_string();
    let ran = env.hangar(&dir, &["init", "--recovery", &file]).exits(2);
    assert!(
        ran.stderr.contains("id_ed25519 holds no SSH public key"),
        "{ran}"
    );
    assert!(ran.stderr.contains("id_ed25519.pub"), "{ran}");
    assert!(!ran.stderr.contains("BEGIN"), "{ran}");
}

#[test]
fn a_recovery_key_is_another_key_and_comes_with_the_first_version() {
    let env = TestEnv::new();
    let dir = env.repo("repo", &[]);
    let own = env.home().join(".ssh/id_ed25519.pub").display().to_string();
    let ran = env.hangar(&dir, &["init", "--recovery", &own]).exits(2);
    assert!(
        ran.stderr.contains("is the key that you sign with"),
        "{ran}"
    );
    assert_eq!(env.git(&dir, &["for-each-ref", "refs/hangar"]), "");
    let file = env.home().join(".ssh/recovery.pub").display().to_string();
    let key = env.add_key("recovery");
    env.hangar(&dir, &["init"]).success();
    let ran = env.hangar(&dir, &["init", "--recovery", &file]).exits(2);
    assert!(ran.stderr.contains("`hangar policy add NAME"), "{ran}");
    env.hangar(
        &dir,
        &["policy", "add", "alice", "--recovery", "--key", &key],
    )
    .success();
    env.hangar(&dir, &["init", "--recovery", &file]).success();
}

#[test]
fn a_clone_that_has_lost_its_policy_founds_no_other_in_its_place() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    env.git(&dir, &["update-ref", "-d", "refs/hangar/policy"]);
    for args in [&["init"][..], &["init", "--new"]] {
        let ran = env.hangar(&dir, args).exits(3);
        assert!(ran.stderr.contains("(version 1) is gone"), "{ran}");
        assert!(ran.stderr.contains("`hangar sync REMOTE`"), "{ran}");
        assert!(ran.stderr.contains("`hangar deinit`"), "{ran}");
        assert_eq!(env.git(&dir, &["for-each-ref", "refs/hangar"]), "");
    }
    let doctor = env.hangar(&dir, &["doctor"]).exits(3);
    assert!(doctor.stdout.contains("(version 1) is gone"), "{doctor}");
    assert!(doctor.stdout.contains("`hangar sync`"), "{doctor}");
    // Where it is gone for good.
    env.hangar(&dir, &["deinit", "--yes"]).success();
    let new = env.hangar(&dir, &["init", "--new"]).success();
    let first = "Until that is committed every other command refuses";
    assert!(new.stdout.contains(first), "{new}");
    let refused = env.hangar(&dir, &["task", "list"]).exits(4);
    let flat = refused.stderr.split_whitespace().collect::<Vec<_>>();
    let flat = flat.join(" ");
    assert!(flat.contains("has to be committed then"), "{refused}");
    env.commit(&dir, "another policy");
    let again = env.hangar(&dir, &["init"]).success();
    assert!(!again.stdout.contains(first), "{again}");
    env.hangar(&dir, &["task", "new", "x", "--plain"]).success();
}

#[test]
fn a_file_that_is_too_long_to_be_read_whole_is_not_cut_off() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    for (file, args, size) in [
        ("hangar.toml", &["init"][..], 1 << 20),
        ("AGENTS.md", &["init", "--agents"], 4 << 20),
    ] {
        let path = dir.join(file);
        let kept = fs::read(&path).unwrap_or_default();
        let text = "# long\n".repeat(size / 7 + 1) + "# the end\n";
        fs::write(&path, &text).unwrap();
        let ran = env.hangar(&dir, args);
        assert_ne!(ran.code, Some(0), "{ran}");
        assert!(ran.stderr.contains("larger than"), "{ran}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        fs::write(&path, kept).unwrap();
    }
    env.hangar(&dir, &["init", "--agents"]).success();
}

#[test]
fn init_writes_settings_that_fit_tests_beside_the_code_and_a_path_of_pytest() {
    let case = "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\n";
    let path = "[project]\nname = \"calc\"\n[tool.pytest.ini_options]\npythonpath = [\"src\"]\n";
    let package = r#"{"scripts": {"test": "node --test"}}"#;
    let repositories: [(&[File<'_>], &[&str]); 3] = [
        (
            &[("calc/__init__.py", ""), ("calc/test_add.py", case)],
            &["framework = \"unittest\"", "tests = [\"**/test_*.py\"]"],
        ),
        (
            &[
                ("package.json", package),
                ("src/a.test.js", ""),
                ("src/b.spec.mjs", ""),
            ],
            &[
                "framework = \"node\"",
                "tests = [\"**/*.spec.mjs\", \"**/*.test.js\"]",
            ],
        ),
        (
            &[
                ("pyproject.toml", path),
                ("src/calc/__init__.py", ""),
                ("tests/test_a.py", ""),
            ],
            &[
                "framework = \"pytest\"",
                "prepare = \"pip install pytest\"",
                "tests = [\"tests/\"]",
                "env = { PYTHONPATH = \"src\" }",
            ],
        ),
    ];
    for (files, lines) in repositories {
        let env = TestEnv::new();
        let dir = env.repo("repo", files);
        env.hangar(&dir, &["init"]).success();
        let text = fs::read_to_string(dir.join("hangar.toml")).unwrap();
        for line in lines {
            assert!(text.lines().any(|one| one == *line), "{line}: {text}");
        }
    }
}

#[test]
fn projects_below_a_root_that_is_none_are_named_with_what_to_write() {
    let env = TestEnv::new();
    let files: &[File<'_>] = &[
        (
            "a/Cargo.toml",
            "[package]\nname = \"a\"\nversion = \"1.0.0\"\n",
        ),
        (
            "b/package.json",
            "{\"scripts\": {\"test\": \"node --test\"}}\n",
        ),
    ];
    let dir = env.repo("repo", files);
    let ran = env.hangar(&dir, &["init"]).success();
    let told = "none recognised; `grader.framework` in hangar.toml names one";
    assert!(ran.stdout.contains(told), "{ran}");
    let needs = "a/ it needs a Cargo.toml at the root with [workspace] members = [\"a\"]";
    assert!(ran.stdout.contains(needs), "{ran}");
    let write = "b/ framework = \"node\", tests = [\"b/test/\"]";
    assert!(ran.stdout.contains(write), "{ran}");
    let other = TestEnv::new();
    let dir = other.repo("repo", files);
    let report = other.json(&dir, &["init"]);
    validate("init", &report);
    assert_eq!(report["below"][0]["framework"], "cargo", "{report}");
}

/// What gix had begun to write goes with the next write, after a day.
#[test]
fn an_object_that_a_killed_process_began_is_cleared_away() {
    let env = TestEnv::new();
    let dir = env.repo("repo", &[("a.txt", "a\n")]);
    let left = dir.join(".git/objects/.tmpQ7x3Zb");
    let young = dir.join(".git/objects/.tmpQ7x3Zc");
    for path in [&left, &young] {
        write(path, "x");
    }
    let file = fs::File::options().write(true).open(&left).unwrap();
    let then = file.metadata().unwrap().modified().unwrap();
    let days = std::time::Duration::from_secs(2 * 24 * 60 * 60);
    file.set_modified(then - days).unwrap();
    env.hangar(&dir, &["init"]).success();
    assert!(!left.exists() && young.exists());
}
