//! `docs/how-to/reviewers-without-hangar.md`: its commands, run by somebody who has no hangar, make an
//! approval that hangar goes on with; the same with something wrong in it has no effect and is named.

use crate::common::{Ran, TestEnv};
use crate::docs::{blocks, page, root};
use crate::kill_scene::{NEEDLE, Scene, contains, walk};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

const PAGE: &str = "docs/how-to/reviewers-without-hangar.md";

/// A task whose tests wait for an approval, published on a hub. bob is an approver, mallory a member,
/// carol nobody.
struct Waiting {
    scene: Scene,
    people: Vec<TestEnv>,
}

impl Waiting {
    fn new() -> Self {
        let scene = Scene::new();
        let people: Vec<TestEnv> = ["bob", "mallory", "carol"]
            .map(|name| scene.env.user(name))
            .into();
        let key = |env: &TestEnv| {
            let text = fs::read_to_string(env.home().join(".ssh/id_ed25519.pub")).unwrap();
            text.trim().to_owned()
        };
        for (name, role, env) in [
            ("bob", "approver", &people[0]),
            ("mallory", "member", &people[1]),
        ] {
            let key = key(env);
            let add = ["policy", "add", name, "--role", role, "--key", &key];
            scene.hangar(&add).success();
        }
        let hub = scene.env.root().join("hub.git");
        let hub = hub.to_str().unwrap();
        let git = |args: &[&str]| scene.env.git(&scene.repo, args);
        git(&["clone", "-q", "--bare", ".", hub]);
        git(&["remote", "add", "origin", hub]);
        git(&["fetch", "-q", "origin"]);
        scene.hangar(&["run", "KAN-80"]).exits(6);
        scene.hangar(&["sync"]).success();
        Self { scene, people }
    }

    /// Somebody's clone, with hangar's sources (not the program) in their home.
    fn clone_of(&self, env: &TestEnv) -> PathBuf {
        let hub = self.scene.env.root().join("hub.git");
        env.git(env.root(), &["clone", "-q", hub.to_str().unwrap(), "clone"]);
        std::os::unix::fs::symlink(root(), env.home().join("hangar")).unwrap();
        // A clock that stands where the scene's does.
        let date = "#!/bin/sh\n# date -u [-d OFFSET] +FORMAT\nshift\nif test \"$1\" = -d; then offset=$2; shift 2; fi\n\
                    PATH=/usr/bin:/bin exec date -u -d \"2026-01-02 03:30:00 UTC $offset\" \"$1\"\n";
        env.write_home("bin/date", date);
        let file = env.home().join("bin/date");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        env.root().join("clone")
    }

    /// Runs the page's commands as this person, with `change` done to them.
    fn review(&self, who: usize, change: &dyn Fn(String) -> String) -> Ran {
        let env = &self.people[who];
        let script = change(blocks(&page(PAGE), "sh").concat());
        let dir = self.clone_of(env);
        let path = std::env::var("PATH").unwrap();
        let out = env
            .command("bash", &dir)
            .args(["-eu", "-o", "pipefail", "-c", &script])
            .env("PATH", format!("{}/bin:{path}", env.home().display()))
            .env("TMPDIR", env.root())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .output()
            .unwrap();
        env.ran(&["the page"], &out)
    }

    /// What a sync does not apply, with the reasons.
    fn synced(&self) -> Vec<String> {
        let ran = self.scene.hangar(&["sync", "--json"]);
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        let not = report["not_applied"].as_array().cloned();
        let why = |one: &Value| one["why"].as_str().unwrap().to_owned();
        not.unwrap_or_default().iter().map(why).collect()
    }
}

#[test]
#[ignore = "heavy: needs age, zstd, ssh-keygen, python3 and a sandbox"]
fn an_approval_made_with_git_age_and_ssh_keygen_is_one() {
    let waiting = Waiting::new();
    let ran = waiting.review(0, &|script| script).success();
    assert!(ran.stdout.contains("Good \"hangar-seal\""), "{ran}");
    assert!(ran.stdout.contains(NEEDLE), "the tests are shown: {ran}");
    assert!(ran.stdout.contains("files/tests/guard.sh"), "{ran}");
    // No plaintext stays behind.
    walk(waiting.people[0].root(), &mut |path| {
        let bytes = fs::read(path).unwrap_or_default();
        assert!(!contains(&bytes, NEEDLE), "{}", path.display());
    });
    assert_eq!(waiting.synced(), Vec::<String>::new());
    let scene = &waiting.scene;
    scene.hangar(&["run", "KAN-80"]).success();
    let ran = scene.hangar(&["verify", "KAN-80"]).success();
    assert!(ran.stdout.contains("bob approved manifest"), "{ran}");
}

#[test]
#[ignore = "heavy: needs age, zstd, ssh-keygen, python3 and a sandbox"]
fn an_approval_with_something_wrong_in_it_is_named_and_has_no_effect() {
    let mallory = |script: String| script.replace("me=bob", "me=mallory");
    // What they sign can be opened by bob only; they sign it unseen, and their own check fails last.
    let unseen = |script: String| {
        let script = script.replace("opened() {", "opened() { return 0;");
        let unread = |line: &&str| !line.contains("opened |") || line.starts_with("files_opened");
        let lines: Vec<&str> = script.lines().filter(unread).collect();
        lines
            .join("\n")
            .replace("$(opened | zstd -dc | tar -t | grep -c '^files/')", "0")
    };
    let other = format!("sha256:{}", "ab".repeat(32));
    type Case<'a> = (usize, &'a dyn Fn(String) -> String, &'a str);
    let cases: [Case<'_>; 3] = [
        (
            0,
            &|script| {
                script.replace(
                    "manifest = \"$manifest\"",
                    &format!("manifest = \"{other}\""),
                )
            },
            "another decision's name",
        ),
        (1, &|script| unseen(mallory(script)), "mallory had no right"),
        (2, &unseen, "does not give bob this key"),
    ];
    for (who, change, why) in cases {
        let waiting = Waiting::new();
        let ran = waiting.review(who, change);
        // The page's last command names it before anybody else does.
        assert_eq!(ran.code, Some(1), "{ran}");
        assert!(ran.stdout.ends_with("not accepted\n"), "{ran}");
        let told = waiting.synced();
        assert!(told.iter().any(|one| one.contains(why)), "{why}: {told:?}");
        let scene = &waiting.scene;
        scene.hangar(&["run", "KAN-80"]).exits(6);
        let ran = scene.hangar(&["verify", "--all"]).exits(1);
        assert!(ran.stdout.contains(why), "{why}: {ran}");
    }
}
