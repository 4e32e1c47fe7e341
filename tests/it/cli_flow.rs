//! The acceptance flow as a person types it, with shell tests: every answer as JSON and every exit
//! code. Needs a sandbox.

use crate::cli_help::validate;
use crate::common::{TestEnv, write};
use serde_json::Value;
use std::path::{Path, PathBuf};

const TEST: &str = "#!/bin/sh\ntest \"$(sh ./calc.sh 5 3)\" = 2\n";
const GUARD: &str = "#!/bin/sh\ntest -e calc.sh\n";

pub(crate) struct Place {
    pub(crate) env: TestEnv,
    pub(crate) dir: PathBuf,
}

impl Place {
    /// A repository that is set up, with hidden tests in a folder beside it and one task, KAN-1.
    pub(crate) fn new() -> Self {
        let env = TestEnv::new();
        let dir = env.repo("repo", &[("calc.sh", "echo 0\n")]);
        env.hangar(&dir, &["init"]).success();
        env.commit(&dir, "set up");
        let hidden = env.root().join("hidden/tests");
        for (name, text) in [("sub.sh", TEST), ("guard.sh", GUARD)] {
            write(&hidden.join(name), text);
            let out = env.command("chmod", &hidden).args(["+x", name]).status();
            assert!(out.unwrap().success());
        }
        let place = Self { env, dir };
        place.json(
            "task-new",
            &[
                "task",
                "new",
                "Subtract",
                "-c",
                "calc.sh 5 3 prints 2",
                "--key",
                "KAN-1",
            ],
            0,
        );
        place
    }

    /// Runs a command with `--json` and checks exit code and schema.
    #[track_caller]
    pub(crate) fn json(&self, schema: &str, args: &[&str], code: i32) -> Value {
        let args = [args, &["--json"]].concat();
        let value = self.env.hangar(&self.dir, &args).exits(code).json();
        validate(schema, &value);
        value
    }

    #[track_caller]
    pub(crate) fn refused(&self, args: &[&str], code: i32, part: &str) {
        let ran = self.env.hangar(&self.dir, args).exits(code);
        assert!(ran.stderr.contains(part), "{ran}");
        assert_eq!(ran.stdout, "", "{ran}");
    }

    pub(crate) fn seal(&self) -> Value {
        let map = ["--map", "c1=tests/sub.sh", "--map", "c1=tests/guard.sh"];
        let args = [&["seal", "KAN-1", "--from", "../hidden"][..], &map].concat();
        self.json("seal", &args, 0)
    }

    pub(crate) fn approve(&self) {
        self.approve_task("KAN-1");
    }

    pub(crate) fn approve_task(&self, task: &str) {
        let card = self.json("review", &["review", task, "--tests"], 0);
        let digest = card["manifest"].as_str().unwrap();
        let decided = self.json("approve", &["approve", task, "--digest", digest], 0);
        assert_eq!(decided["by"], "alice");
    }

    pub(crate) fn commit(&self, calc: &str) {
        write(&self.dir.join("calc.sh"), calc);
        self.env.git(&self.dir, &["commit", "-qam", "a patch"]);
    }

    fn task(&self) -> Value {
        self.json("task-show", &["task", "show", "KAN-1"], 0)
    }
}

fn list(dir: &Path, env: &TestEnv) -> String {
    env.git(
        dir,
        &["cat-file", "--batch-all-objects", "--batch", "--buffer"],
    )
}

#[test]
#[expect(clippy::too_many_lines, reason = "one task, told in order")]
fn a_person_seals_approves_submits_and_gets_a_delivery() {
    let place = Place::new();
    place.refused(
        &["submit", "KAN-1"],
        4,
        "the hidden tests are not there yet",
    );
    place.refused(&["review"], 4, "no task waits for an approval");
    let sealed = place.seal();
    assert_eq!(sealed["counts"]["fails"], 1);
    assert_eq!(sealed["counts"]["guards"], 1);
    let task = place.task();
    assert_eq!(
        (&task["stage"], &task["next"]),
        (&"awaiting-approval".into(), &"approve".into())
    );
    let waiting = ["task", "list", "--stage", "awaiting-approval"];
    let waiting = place.json("task-list", &waiting, 0);
    assert_eq!(waiting["tasks"].as_array().unwrap().len(), 1);
    let writing = place.json("task-list", &["task", "list", "--stage", "writing"], 0);
    assert_eq!(writing["tasks"].as_array().unwrap().len(), 0);
    let manifest = sealed["manifest"].as_str().unwrap();
    place.refused(
        &["approve", "--digest", manifest],
        4,
        "you have not reviewed",
    );
    let run = place.json("run", &["run", "KAN-1"], 6);
    assert_eq!(run["stopped"], "waiting-for-approval");
    place.refused(
        &["grade", "KAN-1"],
        4,
        "version 1 of the tests is not approved",
    );
    let dry = place.json("grade", &["grade", "KAN-1", "--dry-run"], 1);
    assert_eq!(
        (&dry["approved"], &dry["accepted"]),
        (&false.into(), &false.into())
    );
    assert!(dry.get("grade").is_none());
    place.approve();
    let rows = place.json("sealed-list", &["sealed", "list", "KAN-1"], 0);
    assert_eq!(
        rows["versions"][0]["approved_by"],
        serde_json::json!(["alice"])
    );
    place.json("sealed-show", &["sealed", "show", "KAN-1"], 0);

    place.commit("echo $(($1 + $2))\n");
    let graded = place.json("grade", &["grade", "KAN-1"], 1);
    assert_eq!(
        (&graded["accepted"], &graded["void"]),
        (&false.into(), &false.into())
    );
    place.commit("echo $(($1 - $2))\n");
    let run = place.json("submit", &["submit", "KAN-1"], 0);
    assert_eq!(
        (&run["stopped"], &run["branch"]),
        (&"delivered".into(), &"hangar/KAN-1".into())
    );
    assert_eq!(run["grade"]["accepted"], true);
    let task = place.task();
    assert_eq!(task["state"], "done");
    assert_eq!(task["versions"][0]["decision"], "approved");
    assert_eq!(task["grades"].as_array().unwrap().len(), 2);
    assert!(task.get("faults").is_none(), "{task:#}");
    place.json("deliver", &["deliver", "KAN-1"], 0);
    let log = place.json("task-log", &["task", "log", "KAN-1"], 0);
    let kinds: Vec<_> = log["documents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["kind"].as_str().unwrap())
        .collect();
    for kind in ["event", "manifest", "approval", "run", "grade"] {
        assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
    }
    place.env.git(&place.dir, &["fsck", "--strict"]);
    assert!(
        !list(&place.dir, &place.env).contains("calc.sh 5 3)"),
        "a hidden test is in the object database"
    );
    let resealed = place.json("sealed-reseal", &["sealed", "reseal", "--all"], 0);
    assert_eq!(resealed["unchanged"], 1);
    let published = place.json("sealed-publish", &["sealed", "publish", "KAN-1"], 0);
    assert_eq!(published["files"], 2);
}

#[test]
fn a_rejection_asks_for_another_version_and_decides_only_on_what_was_shown() {
    let place = Place::new();
    place.seal();
    let card = place.json("review", &["review", "KAN-1"], 0);
    let digest = card["manifest"].as_str().unwrap();
    place.refused(&["reject", "KAN-1"], 2, "--reason");
    place.refused(
        &["sealed", "show", "KAN-1", "--version", "7"],
        2,
        "no sealed version 7",
    );
    place.refused(
        &["grade", "KAN-1", "--version", "7", "--dry-run"],
        2,
        "no sealed version 7",
    );
    place.refused(
        &["grade", "KAN-1", "--provider", "odd", "--dry-run"],
        2,
        "called `odd`",
    );
    place.refused(
        &["review", "KAN-1", "--file", "odd"],
        2,
        "no sealed file `odd`",
    );
    // Nobody to type the six characters.
    place.refused(&["approve", "KAN-1"], 6, "needs a terminal");
    place.refused(&["approve", "KAN-1", "--yes"], 6, "needs a terminal");
    let agent = [("HANGAR_EXCHANGE", "/x")];
    let ran = place
        .env
        .hangar_with(&place.dir, &["approve", "--digest", digest], &agent, "")
        .exits(4);
    assert!(ran.stderr.contains("no agent decides"), "{ran}");
    let decided = place.json(
        "reject",
        &[
            "reject",
            "KAN-1",
            "--reason",
            "negative numbers",
            "--digest",
            digest,
        ],
        0,
    );
    assert_eq!(decided["action"], "reject");
    assert_eq!(decided["already"], false);
    let again = [
        "reject",
        "KAN-1",
        "--reason",
        "negative numbers",
        "--digest",
        digest,
    ];
    let ran = place.env.hangar(&place.dir, &again).success();
    assert!(ran.stdout.starts_with("rejected already"), "{ran}");
    let task = place.task();
    assert_eq!(
        (&task["next"], &task["versions"][0]["decision"]),
        (&"write".into(), &"rejected".into())
    );
    write(
        &place.env.root().join("hidden/tests/sub.sh"),
        "#!/bin/sh\ntest \"$(sh ./calc.sh 3 5)\" = -2\n",
    );
    let second = place.seal();
    assert_eq!(second["version"], 2);
    // What was shown last is version 1.
    let newest = second["manifest"].as_str().unwrap();
    place.refused(&["approve", "--digest", newest], 4, "newer version");
    let card = place.json("review", &["review", "--diff", "1"], 0);
    assert!(
        card["diff"]
            .as_str()
            .unwrap()
            .contains("+test \"$(sh ./calc.sh 3 5)\" = -2")
    );
    place.json("approve", &["approve", "--digest", newest], 0);
}

#[test]
fn the_demo_shows_a_refusal_and_a_delivery() {
    let env = TestEnv::without_key();
    let ran = env
        .hangar(env.root(), &["demo", "--keep", "kept", "--json"])
        .success();
    let view = ran.json();
    validate("demo", &view);
    assert_eq!(view["wrong_patch_refused"], true);
    assert!(
        !env.home().join(".local").exists(),
        "the demo touched the home folder"
    );
    assert!(
        view["repository"]
            .as_str()
            .unwrap()
            .ends_with("/kept/repository")
    );
    env.hangar(env.root(), &["demo", "--keep", "kept"]).exits(2);
}
