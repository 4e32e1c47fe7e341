//! What a reviewer is told: who is still needed, what changed between versions, what was typed wrong.
//! Needs a sandbox.

use crate::cli_flow::Place;
use crate::cli_help::validate;
use crate::common::{Ran, TestEnv, write};
use serde_json::Value;
use std::fs;

/// What a user of their own sees in the repository of the place.
pub(crate) struct Colleague<'a> {
    place: &'a Place,
    pub(crate) env: TestEnv,
}

impl<'a> Colleague<'a> {
    pub(crate) fn join(place: &'a Place, name: &str, role: &str) -> Self {
        let env = place.env.user(name);
        let key = fs::read_to_string(env.home().join(".ssh/id_ed25519.pub")).unwrap();
        let add = ["policy", "add", name, "--role", role, "--key", key.trim()];
        place.env.hangar(&place.dir, &add).success();
        Self { place, env }
    }

    pub(crate) fn hangar(&self, args: &[&str]) -> Ran {
        self.env.hangar(&self.place.dir, args)
    }
}

/// Every decision that was ever signed: a commit each.
fn signed(place: &Place) -> String {
    let args = ["rev-list", "--count", "--glob=refs/hangar/approvals"];
    place.env.git(&place.dir, &args).trim().to_owned()
}

#[test]
fn two_approvers_are_counted_and_nobody_signs_twice() {
    let place = Place::new();
    let bob = Colleague::join(&place, "bob", "approver");
    let carol = Colleague::join(&place, "carol", "member");
    let two = ["policy", "edit", "--set", "approvers=2"];
    place.env.hangar(&place.dir, &two).success();
    let sealed = place.seal();
    let digest = sealed["manifest"].as_str().unwrap();
    let hex = digest.strip_prefix("sha256:").unwrap();

    let ran = carol.hangar(&["review", "KAN-1"]).exits(3);
    assert!(ran.stderr.contains("your role is member"), "{ran}");
    assert!(ran.stderr.contains("--role carol=approver"), "{ran}");

    let card = place.env.hangar(&place.dir, &["review", "KAN-1"]).success();
    assert_eq!(card.stdout.matches(digest).count(), 1, "{card}");
    let ran = place.env.hangar(&place.dir, &["approve", "KAN-1"]).exits(6);
    let hint = "--digest sha256:…`";
    assert!(
        ran.stderr.contains(hint) && !ran.stderr.contains("--yes"),
        "{ran}"
    );
    place.refused(
        &["approve", "--digest", &hex[..11]],
        2,
        "at least 12 characters",
    );
    place.refused(
        &["approve", "--digest", "the newest one"],
        2,
        "is no digest",
    );
    place.refused(
        &["approve", "--digest", "000000000000"],
        4,
        "not the one that was named",
    );

    let one = place
        .env
        .hangar(&place.dir, &["approve", "--digest", &hex[..12]]);
    let one = one.success();
    assert!(one.stdout.contains("by alice (1 of 2)"), "{one}");
    assert!(one.stdout.contains("next       another approver:"), "{one}");
    let again = place.json("approve", &["approve", "KAN-1", "--digest", digest], 0);
    assert_eq!(
        (&again["already"], &again["have"], &again["needed"]),
        (&true.into(), &1.into(), &2.into())
    );
    // Nothing is asked where nothing is left to sign.
    let again = place
        .env
        .hangar(&place.dir, &["approve", "KAN-1"])
        .success();
    assert!(
        again.stdout.starts_with("approved already version 1"),
        "{again}"
    );
    assert_eq!(signed(&place), "1");

    bob.hangar(&["review", "KAN-1"]).success();
    let both = bob
        .hangar(&["approve", "KAN-1", "--digest", digest])
        .success();
    assert!(both.stdout.contains("by bob (2 of 2)"), "{both}");
    // No agent program works here, so that what is next is a person's.
    assert!(both.stdout.contains("next       hangar submit"), "{both}");
    assert!(both.stdout.contains("hangar run"), "{both}");
    assert_eq!(signed(&place), "2");
}

#[test]
fn an_approval_after_one_s_own_rejection_is_signed_again() {
    let place = Place::new();
    let sealed = place.seal();
    let digest = sealed["manifest"].as_str().unwrap();
    place.approve();
    let reject = ["reject", "KAN-1", "--reason", "a slip", "--digest", digest];
    place.json("reject", &reject, 0);
    let args = ["approve", "KAN-1", "--digest", digest];
    let decided = place.json("approve", &args, 0);
    assert_eq!(decided["already"], false);
    assert_eq!(signed(&place), "3");
}

fn seal(place: &Place, more: &[&str]) -> Value {
    let args = [&["seal", "KAN-1", "--from", "../hidden"][..], more].concat();
    place.json("seal", &args, 0)
}

#[test]
fn a_test_that_moves_is_shown_although_no_file_differs() {
    let place = Place::new();
    let hidden = place.env.root().join("hidden/tests");
    write(&hidden.join("never.sh"), "#!/bin/sh\nexit 1\n");
    let status = place
        .env
        .command("chmod", &hidden)
        .args(["+x", "never.sh"])
        .status();
    assert!(status.unwrap().success());
    let map = ["--map", "c1=tests/sub.sh"];
    seal(
        &place,
        &[&map[..], &["--sentinel", "tests/never.sh"]].concat(),
    );
    let first = place.json("review", &["review", "KAN-1"], 0);
    assert!(first.get("changes").is_none());
    let own = place
        .env
        .hangar(&place.dir, &["review", "KAN-1", "--diff", "1"]);
    let own = own.success();
    assert!(own.stdout.contains("this version itself"), "{own}");
    assert!(own.stdout.contains("Difference\nno file differs"), "{own}");

    // The same files; what had to fail is now asked for.
    seal(
        &place,
        &[&map[..], &["--map", "c1=tests/never.sh"]].concat(),
    );
    let card = place.json("review", &["review", "KAN-1", "--diff", "1"], 0);
    assert_eq!(card["diff"], "");
    let changes = &card["changes"];
    assert_eq!(changes["since"], 1);
    assert_eq!(
        changes["tests"],
        serde_json::json!([
            {"id": "tests/never.sh", "before": ["sentinel"], "after": ["c1"]}
        ])
    );
    let card = place.env.hangar(&place.dir, &["review", "KAN-1"]).success();
    for part in [
        "Changed since version 1\n  no file differs\n",
        "tests/never.sh: sentinel → c1",
        "tests/guard.sh  ",
    ] {
        assert!(card.stdout.contains(part), "{part}: {card}");
    }
    let card = place
        .env
        .hangar(&place.dir, &["review", "KAN-1", "--tests"]);
    assert!(!card.success().stdout.contains("Read the files:"));
}

#[test]
fn the_card_says_what_is_worth_a_second_look_and_blocks_nothing() {
    let place = Place::new();
    let map = ["--map", "c1=tests/sub.sh"];
    seal(&place, &map);
    let card = place.json("review", &["review", "KAN-1"], 0);
    assert!(card.get("findings").is_none(), "{card}");

    let hidden = place.env.root().join("hidden/tests/sub.sh");
    let text = fs::read_to_string(&hidden).unwrap();
    fs::write(&hidden, text.replacen('\n', "\nsleep 0\n", 1)).unwrap();
    seal(&place, &map);
    let card = place.json("review", &["review", "KAN-1"], 0);
    let found = &card["findings"][0];
    assert_eq!(
        (&found["kind"], &found["about"]),
        (&"clock".into(), &"tests/sub.sh".into())
    );
    let card = place.env.hangar(&place.dir, &["review", "KAN-1"]).success();
    let line = "Worth a second look\n  tests/sub.sh: reads the clock or waits (`sleep`)\n";
    assert!(card.stdout.contains(line), "{card}");
    place.approve();
}

#[test]
fn a_stale_text_is_run_again_and_several_that_wait_are_listed() {
    let place = Place::new();
    place.seal();
    let edit = ["task", "edit", "KAN-1", "--title", "Subtract two numbers"];
    place.env.hangar(&place.dir, &edit).success();
    let card = place.env.hangar(&place.dir, &["review", "KAN-1"]).success();
    assert!(!card.stdout.contains("hangar approve"), "{card}");
    assert!(
        card.stdout.contains("Then:            hangar run"),
        "{card}"
    );
    for look in [&["task", "show", "KAN-1"][..], &["sealed", "list", "KAN-1"]] {
        let page = place.env.hangar(&place.dir, look).success();
        assert!(page.stdout.contains("stale"), "{page}");
        assert!(page.stdout.contains("text was edited"), "{page}");
    }
    let task = place.json("task-show", &["task", "show", "KAN-1"], 0);
    assert_eq!(task["versions"][0]["stale"], true, "{task}");

    let place = Place::new();
    place.seal();
    let new = [
        "task",
        "new",
        "Subtract more",
        "-c",
        "5 3 gives 2",
        "--key",
        "KAN-2",
    ];
    place.json("task-new", &new, 0);
    let args = [
        "seal",
        "KAN-2",
        "--from",
        "../hidden",
        "--map",
        "c1=tests/sub.sh",
    ];
    place.json("seal", &args, 0);
    let ran = place.env.hangar(&place.dir, &["review"]).exits(4);
    assert!(ran.stderr.contains("  Subtract\n"), "{ran}");
    assert!(ran.stderr.contains("  Subtract more\n"), "{ran}");
}

#[test]
fn what_seal_and_grade_can_t_use_is_named() {
    let place = Place::new();
    let map = ["--map", "c1=tests/sub.sh"];
    let from = |folder: &'static str, more: &[&'static str]| {
        [&["seal", "KAN-1", "--from", folder][..], more].concat()
    };
    place.refused(
        &from("/nonexist", &map),
        2,
        "there is no folder `/nonexist`",
    );
    place.refused(&from("calc.sh", &map), 2, "is no folder");
    fs::create_dir(place.env.root().join("empty")).unwrap();
    place.refused(&from("../empty", &map), 2, "holds no file");
    let unknown = ["--map", "c1=tests/sub.sh", "--map", "c9=tests/guard.sh"];
    let ran = place
        .env
        .hangar(&place.dir, &from("../hidden", &unknown))
        .exits(2);
    assert!(ran.stderr.contains("no criterion `c9`"), "{ran}");
    assert!(!ran.stderr.contains("criteria.json"), "{ran}");

    let new = [
        "task", "new", "Two", "-c", "one", "-c", "two", "--key", "KAN-2",
    ];
    place.json("task-new", &new, 0);
    let args = [
        "seal",
        "KAN-2",
        "--from",
        "../hidden",
        "--map",
        "c1=tests/sub.sh",
    ];
    let ran = place.env.hangar(&place.dir, &args).success();
    assert!(ran.stdout.contains("uncovered  c2:"), "{ran}");

    place.seal();
    place.approve_task("KAN-1");
    write(&place.env.root().join("garbage"), "this is\nno patch\n");
    let garbage = ["grade", "KAN-1", "--patch", "../garbage"];
    place.refused(&garbage, 2, "this is no patch");
    place.json(
        "task-new",
        &["task", "new", "Plain", "--plain", "--key", "KAN-3"],
        0,
    );
    place.refused(&["grade", "KAN-3"], 4, "a plain task has no hidden tests");
}

#[test]
fn an_open_task_says_that_nothing_was_delivered() {
    let place = Place::new();
    place.seal();
    let ran = place.env.hangar(&place.dir, &["verify", "KAN-1"]).exits(1);
    assert_eq!(
        ran.stdout.matches("nothing was delivered yet").count(),
        2,
        "{ran}"
    );
    assert!(ran.stdout.contains("1 version opened:"), "{ran}");
    let ran = place.env.hangar(&place.dir, &["verify", "HEAD"]).exits(1);
    assert!(
        ran.stdout.contains("would not accept this revision"),
        "{ran}"
    );

    place.json(
        "task-new",
        &["task", "new", "Plain", "--plain", "--key", "KAN-2"],
        0,
    );
    place.commit("echo $(($1 - $2))\n");
    place.env.hangar(&place.dir, &["submit", "KAN-2"]).success();
    let export = ["verify", "KAN-2", "--export", "in-toto"];
    place.refused(&export, 1, "nothing was graded");
}

#[test]
fn a_demo_that_is_gone_afterwards_names_no_folder() {
    let env = TestEnv::without_key();
    let ran = env.hangar(env.root(), &["demo"]).success();
    assert!(!ran.stderr.contains("next "), "{ran}");
    assert!(!ran.stdout.contains("next "), "{ran}");
    let kept = env
        .hangar(env.root(), &["demo", "--keep", "kept"])
        .success();
    assert!(kept.stderr.contains("next       hangar -C "), "{kept}");
    let view = env.hangar(env.root(), &["demo", "--json"]).success().json();
    validate("demo", &view);
    assert!(view.get("repository").is_none());
}

#[test]
fn the_card_names_a_base_that_was_never_landed() {
    let place = Place::new();
    place.seal();
    let card = place.json("review", &["review", "KAN-1"], 0);
    assert_eq!(card["unlanded"], Value::Null);
    let git = |args: &[&str]| place.env.git(&place.dir, args);
    git(&["branch", "aside"]);
    let other = git(&["commit-tree", "-m", "another root", "main^{tree}"]);
    git(&["update-ref", "refs/heads/main", &other]);
    let card = place.json("review", &["review", "KAN-1"], 0);
    let unlanded = card["unlanded"].as_str().unwrap();
    assert!(unlanded.contains("was never landed on main"), "{card}");
    let text = place.env.hangar(&place.dir, &["review", "KAN-1"]).success();
    let text = text.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(unlanded), "{text}");
}

#[test]
fn a_review_that_cannot_be_noted_is_shown_and_decides_nothing() {
    let place = Place::new();
    let sealed = seal(&place, &["--map", "c1=tests/sub.sh"]);
    let digest = sealed["manifest"].as_str().unwrap();
    // A file where the notes would lie, as in a repository that can't be written to.
    let notes = place.dir.join(".git/hangar/reviews");
    let _ = std::fs::remove_dir_all(&notes);
    write(&notes, "");
    let args = ["review", "KAN-1", "--tests"];
    let shown = place.env.hangar(&place.dir, &args).success();
    assert!(shown.stdout.contains("calc.sh 5 3"), "{shown}");
    assert!(shown.stderr.contains("could not be noted"), "{shown}");
    let approve = ["approve", "KAN-1", "--digest", digest];
    place.refused(&approve, 4, "you have not reviewed");
    std::fs::remove_file(&notes).unwrap();
    place.approve();
}

#[test]
fn an_approval_that_expired_is_called_so() {
    let place = Place::new();
    seal(&place, &["--map", "c1=tests/sub.sh"]);
    place.approve();
    let hangar = |args: &[&str]| place.env.hangar(&place.dir, args);
    let list = ["sealed", "list", "KAN-1"];
    assert!(hangar(&list).success().stdout.contains("approved by alice"));
    place.env.pass_days(400);
    let ran = hangar(&list).success();
    let expired = "the approval by alice has expired";
    assert!(ran.stdout.contains(expired), "{ran}");
    let row = place.json("sealed-list", &list, 0);
    assert_eq!(row["versions"][0]["expired"], serde_json::json!(["alice"]));
    let ran = hangar(&["task", "show", "KAN-1"]).success();
    assert!(ran.stdout.contains("its approval has expired"), "{ran}");
    place.commit("echo $(($1 - $2))\n");
    let said = "the approval of the hidden tests has expired";
    place.refused(&["grade", "KAN-1"], 4, said);
    place.refused(&["submit", "KAN-1"], 4, said);
    place.approve();
    hangar(&["submit", "KAN-1"]).success();
}

#[test]
fn a_time_that_is_none_is_refused_with_its_range() {
    let place = TestEnv::new();
    let vars = [("HANGAR_NOW", "9999-12-31T23:59:59Z")];
    let ran = place.hangar_with(place.root(), &["key", "list"], &vars, "");
    let ran = ran.exits(2);
    assert!(ran.stderr.contains("before 9999-12-30T22:00:00Z"), "{ran}");
    let vars = [("HANGAR_NOW", "9999-12-30T21:59:59Z")];
    let ran = place.hangar_with(place.root(), &["key", "list"], &vars, "");
    ran.success();
}

#[test]
fn what_a_killed_demo_left_goes_with_the_next_one() {
    let env = TestEnv::without_key();
    let temporary = env.root().join("tmp");
    let dead = temporary.join("hangar-demo-Ab3xYz");
    write(&dead.join("lock"), "");
    write(&dead.join("repo/file"), "x\n");
    let place = temporary.to_str().unwrap();
    env.hangar_with(env.root(), &["demo"], &[("TMPDIR", place)], "")
        .success();
    let left: Vec<_> = std::fs::read_dir(&temporary).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}
