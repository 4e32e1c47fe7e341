//! Documents that contradict each other, and the word of a person that decides. Needs a sandbox.

use crate::cli_flow::Place;
use crate::cli_review::Colleague;
use serde_json::Value;
use std::path::PathBuf;

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
