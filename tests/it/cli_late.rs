//! What comes after a delivery and speaks against it, and the word that settles it. Needs a sandbox.

use crate::cli_flow::Place;
use crate::cli_review::Colleague;
use crate::common::Ran;
use serde_json::Value;

/// What the inbox and the page of the task show of a contradiction.
fn shown(place: &Place) -> (usize, usize, Value) {
    let inbox = place.json("inbox", &["inbox"], 0);
    let items = inbox["items"].as_array().unwrap().iter();
    let waiting = items.filter(|item| item["kind"] == "contradiction").count();
    let task = place.json("task-show", &["task", "show", "KAN-1"], 0);
    let documents = task.get("contradicting").and_then(Value::as_array);
    let documents = documents.map_or(0, Vec::len);
    (waiting, documents, task["next"].clone())
}

#[test]
fn a_rejection_that_comes_after_the_delivery_waits_for_a_word_and_either_can_stand() {
    let place = Place::new();
    let bob = Colleague::join(&place, "bob", "approver");
    let sealed = place.seal();
    let digest = sealed["manifest"].as_str().unwrap();
    let hangar = |args: &[&str]| place.env.hangar(&place.dir, args);
    place.approve();
    let twin = place.env.root().join("twin");
    let copy = ["-r", place.dir.to_str().unwrap(), twin.to_str().unwrap()];
    let mut cp = place.env.command("cp", place.env.root());
    assert!(cp.args(copy).status().unwrap().success());
    bob.env.hangar(&twin, &["review", "KAN-1"]).success();
    let reject = ["reject", "KAN-1", "--reason", "too few", "--digest", digest];
    bob.env.hangar(&twin, &reject).success();

    place.commit("echo $(($1 - $2))\n");
    hangar(&["submit", "KAN-1"]).success();
    hangar(&["verify", "KAN-1"]).success();
    assert_eq!(shown(&place), (0, 0, "nothing".into()));
    let told = |ran: &Ran| {
        let words: Vec<_> = ran.stderr.split_whitespace().collect();
        let said = "was delivered, and a rejection by bob speaks against that";
        words.join(" ").matches(said).count()
    };
    let came = hangar(&["sync", twin.to_str().unwrap()]);
    assert_eq!(told(&came), 1, "{came}");
    let again = hangar(&["sync", twin.to_str().unwrap()]);
    assert_eq!(told(&again), 0, "{again}");
    let no = hangar(&["verify", "KAN-1"]).exits(1);
    let said = "bob rejected this manifest, and nobody adjudicated (`hangar adjudicate ";
    assert!(no.stdout.contains(said), "{no}");
    assert_eq!(shown(&place), (1, 2, "adjudicate".into()));
    let inbox = bob.hangar(&["inbox"]).success();
    assert!(inbox.stdout.contains("hangar task show "), "{inbox}");
    for look in [&["task", "show", "KAN-1"][..], &["review", "KAN-1"]] {
        let page = hangar(look).success();
        assert!(page.stdout.contains("hangar adjudicate "), "{page}");
    }

    let task = place.json("task-show", &["task", "show", "KAN-1"], 0);
    let of = |says: &str| {
        let mut all = task["contradicting"].as_array().unwrap().iter();
        let one = all.find(|one| one["says"] == says).unwrap();
        one["document"].as_str().unwrap()[7..19].to_owned()
    };
    let (approval, rejection) = (of("approved"), of("rejected"));
    let word =
        |stands: &str| ["adjudicate", "KAN-1", stands, "--reason", "read"].map(str::to_owned);
    let says = |stands: &str| {
        let args = word(stands);
        hangar(&args.each_ref().map(String::as_str))
    };
    says(&approval).success();
    hangar(&["verify", "KAN-1"]).success();
    assert_eq!(shown(&place), (0, 0, "nothing".into()));
    let again = says(&approval).exits(4);
    assert!(again.stderr.contains("stands already"), "{again}");
    let unknown = says("000000000000").exits(4);
    assert!(unknown.stderr.contains("choose one of"), "{unknown}");

    // A later word of another approver counts, and so does the one after it.
    let args = word(&rejection);
    bob.hangar(&args.each_ref().map(String::as_str)).success();
    let no = hangar(&["verify", "KAN-1"]).exits(1);
    let said = "bob rejected this manifest, and bob said that this is what stands";
    assert!(no.stdout.contains(said), "{no}");
    assert!(!no.stdout.contains("nobody adjudicated"), "{no}");
    assert_eq!(shown(&place), (0, 0, "nothing".into()));
    says(&approval).success();
    hangar(&["verify", "KAN-1"]).success();
    // Whose word does not stand is told so where it comes.
    let learns = bob
        .env
        .hangar(&twin, &["sync", place.dir.to_str().unwrap()]);
    let words: Vec<_> = learns.stderr.split_whitespace().collect();
    let said = "alice said that a rejection of yours does not stand";
    assert!(words.join(" ").contains(said), "{learns}");
}
