//! What a reviewer is told: who is still needed, what changed between versions, what was typed wrong.
//! Needs a sandbox.

use crate::cli_flow::Place;
use crate::cli_help::validate;
use crate::common::{Ran, TestEnv, write};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

/// What a user of their own sees in the repository of the place.
pub(crate) struct Colleague<'a> {
    place: &'a Place,
    env: TestEnv,
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
    assert!(both.stdout.contains("next       hangar run"), "{both}");
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
fn an_approval_against_a_colleague_s_rejection_names_the_way_out() {
    let place = Place::new();
    let bob = Colleague::join(&place, "bob", "approver");
    let sealed = place.seal();
    let digest = sealed["manifest"].as_str().unwrap();
    bob.hangar(&["review", "KAN-1"]).success();
    let reject = ["reject", "KAN-1", "--reason", "too few", "--digest", digest];
    let rejected = bob.hangar(&reject).success();
    assert!(
        rejected.stdout.contains("next       hangar run"),
        "{rejected}"
    );
    place.env.hangar(&place.dir, &["review", "KAN-1"]).success();
    let approve = ["approve", "KAN-1", "--digest", digest];
    let approved = place.env.hangar(&place.dir, &approve).success();
    for part in ["approved by alice", "rejected by bob", "hangar adjudicate"] {
        assert!(approved.stdout.contains(part), "{part}: {approved}");
    }
    assert!(!approved.stdout.contains("hangar run"), "{approved}");
    let again = place.json("approve", &approve, 0);
    assert_eq!(again["contradicting"].as_array().unwrap().len(), 2);
    let waits = place.env.hangar(&place.dir, &["run", "KAN-1"]);
    assert_eq!(waits.code, Some(6), "{waits}");
    for part in ["approved by alice", "rejected by bob"] {
        assert!(waits.stdout.contains(part), "{part}: {waits}");
    }
    // Which one stands is nobody's proposal.
    let inbox = place.env.hangar(&place.dir, &["inbox"]).success();
    assert!(inbox.stdout.contains("hangar task show "), "{inbox}");
    // Wherever the task is looked at, both documents are there with their digests.
    for look in [&["task", "show", "KAN-1"][..], &["review", "KAN-1"]] {
        let page = place.env.hangar(&place.dir, look).success();
        for one in again["contradicting"].as_array().unwrap() {
            let digest = &one["document"].as_str().unwrap()[7..19];
            assert!(page.stdout.contains(digest), "{digest}: {page}");
        }
        assert!(page.stdout.contains("hangar adjudicate "), "{page}");
        assert!(!page.stdout.contains("hangar approve "), "{page}");
    }
    place.refused(&["grade", "KAN-1"], 4, "contradict each other");
    // The digest that was printed is the one that the command takes.
    let mut lines = approved.stdout.lines();
    let mine = lines.find(|line| line.contains("approved by alice"));
    let named = mine.unwrap().split_whitespace().nth(1).unwrap();
    let stands = ["adjudicate", "KAN-1", named, "--reason", "they are enough"];
    place.env.hangar(&place.dir, &stands).success();
    let again = place.json("approve", &approve, 0);
    assert_eq!(again.get("contradicting"), None);
}

#[test]
fn a_new_decision_ends_no_contradiction_of_opposite_words() {
    let place = Place::new();
    let bob = Colleague::join(&place, "bob", "approver");
    let sealed = place.seal();
    let digest = sealed["manifest"].as_str().unwrap();
    bob.hangar(&["review", "KAN-1"]).success();
    let reject = ["reject", "KAN-1", "--reason", "too few", "--digest", digest];
    bob.hangar(&reject).success();
    place.env.hangar(&place.dir, &["review", "KAN-1"]).success();
    let approve = ["approve", "KAN-1", "--digest", digest];
    let decided = place.json("approve", &approve, 0);
    let by = |decided: &Value, who: &str| -> Vec<String> {
        let all = decided["contradicting"].as_array().unwrap().iter();
        let own = all.filter(|one| one["by"] == who);
        own.map(|one| one["document"].as_str().unwrap().to_owned())
            .collect()
    };
    let (mine, his) = (by(&decided, "alice"), by(&decided, "bob"));
    // Each says that their own stands, not knowing of the other.
    let twin = place.env.root().join("twin");
    let copy = ["-r", place.dir.to_str().unwrap(), twin.to_str().unwrap()];
    let copied = place
        .env
        .command("cp", place.env.root())
        .args(copy)
        .status();
    assert!(copied.unwrap().success());
    let word =
        |stands: &str| ["adjudicate", "KAN-1", stands, "--reason", "mine"].map(str::to_owned);
    let words = |args: &[String; 5]| {
        args.iter()
            .map(String::as_str)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let run = |ran: Vec<String>, dir: &std::path::Path, of_bob: bool| {
        let args: Vec<&str> = ran.iter().map(String::as_str).collect();
        let env = if of_bob { &bob.env } else { &place.env };
        env.hangar(dir, &args).success()
    };
    run(words(&word(&mine[0])), &place.dir, false);
    run(words(&word(&his[0])), &twin, true);
    place
        .env
        .hangar(&place.dir, &["sync", twin.to_str().unwrap()]);
    let next = || place.json("task-show", &["task", "show", "KAN-1"], 0)["next"].clone();
    assert_eq!(next(), "adjudicate");
    let again = place.json("approve", &approve, 0);
    assert_eq!(
        (again["already"].clone(), next()),
        (Value::from(false), "adjudicate".into())
    );
    let new: Vec<_> = by(&again, "alice")
        .into_iter()
        .filter(|one| *one != mine[0])
        .collect();
    run(words(&word(&new[0])), &place.dir, false);
    assert_eq!(next(), "implement");
}

/// A place and a clone of it that both sealed a first version, not knowing of each other, and met. With
/// the digests of the two manifests.
fn sealed_apart() -> (Place, PathBuf, [String; 2]) {
    let place = Place::new();
    let env = &place.env;
    env.git(env.root(), &["clone", "-q", "--bare", "repo", "hub.git"]);
    let hub = env.root().join("hub.git");
    let remote = ["remote", "add", "origin", hub.to_str().unwrap()];
    env.git(&place.dir, &remote);
    env.hangar(&place.dir, &["sync"]).success();
    env.git(env.root(), &["clone", "-q", "hub.git", "twin"]);
    let twin = env.root().join("twin");
    env.hangar(&twin, &["init", "--yes"]).success();
    env.hangar(&twin, &["sync"]).success();
    let args = ["seal", "KAN-1", "--from", "../hidden", "--offline"];
    let args = [&args[..], &["--map", "c1=tests/sub.sh", "--json"]].concat();
    let digests = [&place.dir, &twin].map(|dir| {
        let sealed = env.hangar(dir, &args).success().json();
        sealed["manifest"].as_str().unwrap().to_owned()
    });
    assert_ne!(digests[0], digests[1]);
    env.hangar(&twin, &["sync"]);
    env.hangar(&place.dir, &["sync"]);
    (place, twin, digests)
}

/// Which versions are not set aside.
fn standing(task: &Value) -> Vec<&str> {
    let versions = task["versions"].as_array().unwrap().iter();
    let stand = versions.filter(|version| version["set_aside"] == false);
    stand
        .map(|version| version["manifest"].as_str().unwrap())
        .collect()
}

#[test]
fn opposite_words_about_versions_sealed_apart_wait_for_a_word_of_somebody_who_knows_both() {
    let (place, twin, digests) = sealed_apart();
    let env = &place.env;
    env.hangar(&twin, &["sync"]);
    for (dir, digest) in [&place.dir, &twin].into_iter().zip(&digests) {
        let args = [
            "adjudicate",
            "KAN-1",
            digest,
            "--reason",
            "mine",
            "--offline",
        ];
        env.hangar(dir, &args).success();
    }
    for dir in [&twin, &place.dir, &twin] {
        env.hangar(dir, &["sync"]);
    }
    let task = place.json("task-show", &["task", "show", "KAN-1"], 0);
    assert_eq!(standing(&task), [""; 0], "{task}");
    assert_eq!(task["next"], "adjudicate", "{task}");
    let inbox = place.json("inbox", &["inbox"], 0);
    assert_eq!(inbox["items"][0]["kind"], "contradiction", "{inbox}");
    assert_eq!(env.hangar(&place.dir, &["run", "KAN-1"]).code, Some(6));
    let approve = ["approve", "KAN-1", "--digest", &digests[1]];
    place.refused(&approve, 4, "were sealed apart");

    let args = [
        "adjudicate",
        "KAN-1",
        &digests[1],
        "--reason",
        "both are read",
    ];
    env.hangar(&twin, &args).success();
    env.hangar(&place.dir, &["sync"]);
    let task = place.json("task-show", &["task", "show", "KAN-1"], 0);
    assert_eq!(standing(&task), [digests[1].as_str()], "{task}");
    let said = task["adjudicated"].as_array().unwrap().iter();
    let said: Vec<_> = said
        .map(|one| (&one["in_force"], one.get("opposite")))
        .collect();
    let yes = &Value::from(true);
    let mut forces: Vec<_> = said.iter().map(|one| one.0 == yes).collect();
    forces.sort_unstable();
    assert_eq!(forces, [false, true, true], "{task}");
    assert!(said.iter().all(|one| one.1.is_none()), "{task}");
    let inbox = place.json("inbox", &["inbox"], 0);
    assert_eq!(inbox["items"][0]["kind"], "review", "{inbox}");
    place.approve();
}

#[test]
fn a_retry_goes_on_where_people_said_the_opposite() {
    let (place, twin, digests) = sealed_apart();
    let env = &place.env;
    env.hangar(&twin, &["sync"]);
    for (dir, digest) in [&place.dir, &twin].into_iter().zip(&digests) {
        let args = ["adjudicate", "KAN-1", digest, "--reason", "mine"];
        let args = [&args[..], &["--offline"]].concat();
        env.hangar(dir, &args).success();
    }
    for dir in [&twin, &place.dir] {
        env.hangar(dir, &["sync"]);
    }
    let show = || place.json("task-show", &["task", "show", "KAN-1"], 0);
    let opposite = |task: &Value| {
        let said = task["adjudicated"].as_array().unwrap().iter();
        said.filter(|one| one.get("opposite").is_some()).count()
    };
    let task = show();
    assert_eq!((&task["next"], opposite(&task)), (&"adjudicate".into(), 2));
    let hangar = |args: &[&str]| env.hangar(&place.dir, args).success();
    hangar(&["task", "cancel", "KAN-1"]);
    hangar(&["task", "retry", "KAN-1", "--from", "writing"]);
    let task = show();
    assert_eq!(task["next"], "write", "{task}");
    // Nobody has to say any more which one stands.
    assert_eq!(opposite(&task), 0, "{task}");
    let said = task["adjudicated"].as_array().unwrap().iter();
    assert!(said.clone().all(|one| one["in_force"] == false), "{task}");
    let text = hangar(&["task", "show", "KAN-1"]).stdout;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(
        text.matches("does not stand any more: a retry set it aside")
            .count(),
        2,
        "{text}"
    );
    place.seal();
    place.approve();
}

#[test]
fn of_two_versions_sealed_apart_none_is_approved_before_one_was_picked() {
    let (place, _, digests) = sealed_apart();
    let env = &place.env;
    let card = env.hangar(&place.dir, &["review", "KAN-1"]).success();
    assert!(card.stdout.contains("hangar adjudicate "), "{card}");
    for (word, more) in [("approve", &[][..]), ("reject", &["--reason", "no"])] {
        for digest in &digests {
            let args = [&[word, "KAN-1", "--digest", digest], more].concat();
            place.refused(&args, 4, "were sealed apart");
        }
    }
    let args = ["adjudicate", "KAN-1", &digests[1], "--reason", "it is read"];
    env.hangar(&place.dir, &args).success();
    place.approve();
    let task = place.json("task-show", &["task", "show", "KAN-1"], 0);
    let approved = task["versions"].as_array().unwrap().iter();
    let approved = approved.filter(|version| version["decision"] == "approved");
    let digests_of: Vec<_> = approved.map(|version| &version["manifest"]).collect();
    assert_eq!(digests_of, [digests[1].as_str()], "{task}");
}
