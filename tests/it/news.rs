//! What a sync brings and nobody would look for: told once in every clone, and marked where it is seen.

use super::cli_flow::Place;
use super::cli_review::Colleague;

#[test]
fn the_rows_of_an_approver_whose_key_was_compromised_are_marked() {
    let place = Place::new();
    let bob = Colleague::join(&place, "bob", "approver");
    let sealed = place.seal();
    let digest = sealed["manifest"].as_str().unwrap();
    bob.hangar(&["review", "KAN-1"]).success();
    bob.hangar(&["approve", "KAN-1", "--digest", digest])
        .success();
    let marked = || {
        let task = place.json("task-show", &["task", "show", "KAN-1"], 0);
        let rows = task["timeline"].as_array().unwrap().clone();
        let rows = rows.into_iter().filter(|row| row.get("doubt").is_some());
        rows.map(|row| (row["kind"].clone(), row["by"].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(marked(), []);
    let remove = ["policy", "remove", "bob", "--compromised"];
    place.env.hangar(&place.dir, &remove).success();
    assert_eq!(marked(), [("approval".into(), "bob".into())]);
    let show = place.env.hangar(&place.dir, &["task", "show", "KAN-1"]);
    let text = show.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("approved version 1 does not count: its key was compromised"),
        "{show}"
    );
}
