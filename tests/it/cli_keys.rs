//! `hangar init` with every kind of key that a person may have.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use crate::common::TestEnv;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

/// An ssh-agent of this user, ended with the value.
struct Agent {
    child: Child,
    socket: PathBuf,
}

impl Agent {
    fn start(env: &TestEnv) -> Self {
        let socket = env.root().join("agent");
        let child = env
            .command("ssh-agent", env.root())
            .args(["-D", "-a"])
            .arg(&socket)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        for _ in 0..500 {
            if socket.exists() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Self { child, socket }
    }

    fn add(&self, env: &TestEnv, key: &Path, passphrase: &str) {
        let ask = env.root().join("askpass");
        crate::common::write(&ask, &format!("#!/bin/sh\necho '{passphrase}'\n"));
        let mode = env
            .command("chmod", env.root())
            .arg("+x")
            .arg(&ask)
            .status();
        assert!(mode.unwrap().success());
        let out = env
            .command("ssh-add", env.root())
            .arg(key)
            .env("SSH_AUTH_SOCK", &self.socket)
            .env("SSH_ASKPASS", &ask)
            .env("SSH_ASKPASS_REQUIRE", "force")
            .output()
            .unwrap();
        assert!(out.status.success(), "{out:?}");
    }

    fn vars(&self) -> [(&str, &str); 1] {
        [("SSH_AUTH_SOCK", self.socket.to_str().unwrap())]
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn keygen(env: &TestEnv, name: &str, kind: &str, passphrase: &str) -> PathBuf {
    let key = env.home().join(".ssh").join(name);
    let out = env
        .command("ssh-keygen", env.root())
        .args(["-q", "-t", kind, "-N", passphrase, "-f"])
        .arg(&key)
        .output()
        .unwrap();
    assert!(out.status.success(), "{out:?}");
    key
}

fn init(env: &TestEnv, dir: &Path, vars: &[(&str, &str)]) -> Value {
    env.hangar_with(dir, &["init", "--json"], vars, "")
        .success()
        .json()
}

#[test]
fn a_key_with_a_passphrase_signs_through_the_agent_that_holds_it() {
    let env = TestEnv::without_key();
    let dir = env.repo("repo", &[]);
    let key = keygen(&env, "id_ed25519", "ed25519", "secret words");
    // Nobody to ask: one clear error, nothing founded.
    let ran = env.hangar(&dir, &["init"]).exits(3);
    assert!(ran.stderr.contains("no passphrase was given"), "{ran}");
    assert_eq!(env.git(&dir, &["for-each-ref", "refs/hangar"]), "");
    let agent = Agent::start(&env);
    agent.add(&env, &key, "secret words");
    let report = init(&env, &dir, &agent.vars());
    assert!(
        report["key_source"]
            .as_str()
            .unwrap()
            .ends_with(", through the agent")
    );
    // The agent can't decrypt, so there is an age identity beside it.
    assert_eq!(report["age_identity_made"], true);
    env.commit(&dir, "set up");
    env.hangar_with(&dir, &["task", "new", "x", "-c", "y"], &agent.vars(), "")
        .success();
}

#[test]
fn a_literal_key_of_git_s_configuration_is_signed_for_by_the_agent_alone() {
    let env = TestEnv::without_key();
    let dir = env.repo("repo", &[]);
    let key = keygen(&env, "id_ecdsa", "ecdsa", "");
    let agent = Agent::start(&env);
    agent.add(&env, &key, "");
    let public = fs::read_to_string(key.with_extension("pub")).unwrap();
    fs::remove_dir_all(env.home().join(".ssh")).unwrap();
    env.git(&dir, &["config", "gpg.format", "ssh"]);
    env.git(
        &dir,
        &[
            "config",
            "user.signingKey",
            &format!("key::{}", public.trim()),
        ],
    );
    let report = init(&env, &dir, &agent.vars());
    assert_eq!(
        report["key_source"],
        "Git's user.signingKey, through the agent"
    );
    let gone = env.hangar(&dir, &["init"]).exits(3);
    assert!(
        gone.stderr.contains("no key file and no ssh-agent"),
        "{gone}"
    );
}

#[test]
fn an_agent_without_files_is_enough_and_a_dead_one_is_told() {
    let env = TestEnv::without_key();
    let dir = env.repo("repo", &[]);
    let key = keygen(&env, "k", "ed25519", "");
    let agent = Agent::start(&env);
    agent.add(&env, &key, "");
    fs::remove_file(&key).unwrap();
    let report = init(&env, &dir, &agent.vars());
    assert!(
        report["key_source"]
            .as_str()
            .unwrap()
            .starts_with("the agent")
    );
    env.commit(&dir, "set up");
    drop(agent);
    let dead = env.root().join("agent");
    let vars = [("SSH_AUTH_SOCK", dead.to_str().unwrap())];
    let ran = env
        .hangar_with(&dir, &["task", "new", "x"], &vars, "")
        .exits(3);
    assert!(ran.stderr.contains("no ssh-agent answers"), "{ran}");
    // Looking needs no key.
    env.hangar(&dir, &["task", "list"]).success();
}

#[test]
fn keys_that_are_not_accepted_are_named_with_the_reason() {
    let env = TestEnv::without_key();
    let dir = env.repo("repo", &[]);
    let out = env
        .command("ssh-keygen", env.root())
        .args(["-q", "-t", "rsa", "-b", "2048", "-N", "", "-f"])
        .arg(env.home().join(".ssh/id_rsa"))
        .output()
        .unwrap();
    assert!(out.status.success());
    let ran = env.hangar(&dir, &["init"]).exits(3);
    assert!(ran.stderr.contains("left out: the key in "), "{ran}");
    assert!(ran.stderr.contains("has 2048 bits"), "{ran}");
    crate::common::write(&env.home().join(".ssh/id_ed25519"), "nonsense\n");
    let path = env.home().join(".ssh/id_ed25519");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(path, mode).unwrap();
    let ran = env.hangar(&dir, &["init"]).exits(3);
    assert!(
        ran.stderr
            .contains("id_ed25519 is not a readable OpenSSH private key"),
        "{ran}"
    );
    crate::common::write(
        &env.home().join(".ssh/id_old"),
        "-----BEGIN RSA PRIVATE KEY-----\nx\n",
    );
    let list = env.json(&dir, &["key", "list"]);
    let skipped = list["skipped"].as_array().unwrap();
    assert_eq!(skipped.len(), 3, "{list:#}");
}

#[test]
fn a_key_that_the_policy_lost_signs_nothing_more() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    fs::remove_file(env.home().join(".ssh/id_ed25519")).unwrap();
    env.add_key("id_new");
    let ran = env.hangar(&dir, &["task", "new", "x"]).exits(4);
    assert!(
        ran.stderr.contains("belongs to nobody in the policy"),
        "{ran}"
    );
    assert!(ran.stderr.contains("hangar init"), "{ran}");
    let report = env.json(&dir, &["init"]);
    let line = report["admin_command"].as_str().unwrap();
    assert!(
        line.starts_with("hangar policy add alice --role member"),
        "{line}"
    );
}

#[test]
fn a_key_that_others_can_read_is_mended_before_another_is_made() {
    let env = TestEnv::new();
    let dir = env.repo("repo", &[]);
    let key = env.home().join(".ssh/id_ed25519");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let ran = env.hangar(&dir, &["init"]).exits(3);
    let at = |words: &str| {
        ran.stderr
            .find(words)
            .unwrap_or_else(|| panic!("{words}: {ran}"))
    };
    assert!(at("chmod 600") < at("hangar key new"), "{ran}");
    let doctor = env.hangar(&dir, &["doctor"]);
    assert!(doctor.stdout.contains("chmod 600"), "{doctor}");
}
