//! What waits for whom. Needs a sandbox.

use crate::cli_flow::Place;
use crate::cli_help::validate;
use crate::cli_review::Colleague;
use crate::common::{Ran, write};
use crate::verify::forge::Forged;
use crate::verify::plot::Plot;

/// Kind and command of each item.
fn items(ran: Ran) -> Vec<(String, String)> {
    let inbox = ran.success().json();
    validate("inbox", &inbox);
    let items = inbox["items"].as_array().unwrap().iter();
    let text = |item: &serde_json::Value, name: &str| item[name].as_str().unwrap().to_owned();
    items
        .map(|item| (text(item, "kind"), text(item, "command")))
        .collect()
}

#[test]
fn everybody_sees_what_waits_for_them_and_no_more() {
    let place = Place::new();
    let bob = Colleague::join(&place, "bob", "admin");
    let carol = Colleague::join(&place, "carol", "member");
    let alice = |args: &[&str]| place.env.hangar(&place.dir, args);
    let inbox = ["inbox", "--json"];
    assert_eq!(items(alice(&inbox)), []);
    let ran = alice(&["inbox"]).success();
    assert!(ran.stderr.contains("nothing waits for you"), "{ran}");

    alice(&["policy", "edit", "--set", "approvers=2"]).success();
    let sealed = place.seal();
    let id = sealed["id"].as_str().or(sealed["task"].as_str()).unwrap()[..8].to_owned();
    let review = [("review".to_owned(), format!("hangar review {id}"))];
    assert_eq!(items(alice(&inbox)), review);
    assert_eq!(items(bob.hangar(&inbox)), review);
    assert_eq!(items(carol.hangar(&inbox)), []);
    // Whoever has decided waits for the other.
    let digest = sealed["manifest"].as_str().unwrap();
    alice(&["review", "KAN-1"]).success();
    alice(&["approve", "KAN-1", "--digest", digest]).success();
    assert_eq!(items(alice(&inbox)), []);
    assert_eq!(items(bob.hangar(&inbox)), review);

    // A version of the policy waits for the admin who has not signed it.
    alice(&["policy", "edit", "--members-threshold", "2"]).success();
    alice(&["policy", "edit", "--role", "carol=approver"]).exits(6);
    assert_eq!(items(alice(&inbox)), []);
    let found = items(bob.hangar(&inbox));
    assert_eq!(found[0].0, "policy", "{found:?}");
    let sign: Vec<&str> = found[0].1.split(' ').skip(1).chain(["--yes"]).collect();
    bob.hangar(&sign).success();
    assert_eq!(items(bob.hangar(&inbox)), review);
    let table = bob.hangar(&["inbox"]).success();
    assert!(table.stdout.starts_with("review\t"), "{table}");
}

#[test]
fn an_accepted_result_that_is_on_no_branch_waits_with_its_command() {
    let forged = Forged::new(&Plot::undelivered());
    let dir = forged.dir();
    let command = format!("hangar deliver {}", &forged.id.as_str()[..8]);
    let waits = || {
        let answer = forged.hangar(&dir, &["inbox"]);
        assert_eq!(answer.code, Some(0), "{}", answer.text);
        let items = answer.json["items"].as_array().unwrap().clone();
        items
            .iter()
            .map(|item| (item["kind"].clone(), item["command"].clone()))
            .collect::<Vec<_>>()
    };
    forged.git(&["branch", "hangar"]);
    // What is hinted at works.
    let refused = forged.hangar(&dir, &["deliver", "KAN-80"]);
    assert_eq!(refused.code, Some(4), "{}", refused.text);
    let way = "git branch -m hangar NAME";
    assert!(refused.text.contains(way), "{}", refused.text);
    assert!(!refused.text.contains("hangar.toml"), "{}", refused.text);
    assert_eq!(waits(), [("deliver".into(), command.into())]);
    forged.git(&["branch", "-m", "hangar", "away"]);
    let delivered = forged.hangar(&dir, &["deliver", "KAN-80"]);
    assert_eq!(delivered.code, Some(0), "{}", delivered.text);
    assert_eq!(waits(), []);
}

#[test]
fn a_branch_in_the_way_of_a_patch_is_found_before_it_is_taken() {
    let place = Place::new();
    let hangar = |args: &[&str]| place.env.hangar(&place.dir, args);
    hangar(&["task", "new", "Other", "--plain", "--key", "KAN-2"]).success();
    write(&place.dir.join("calc.sh"), "echo 2\n");
    place.env.commit(&place.dir, "work");
    place.env.git(&place.dir, &["branch", "hangar"]);
    let submit = ["submit", "KAN-2", "--rev", "HEAD"];
    let ran = hangar(&submit).exits(4);
    assert!(ran.stderr.contains("git branch -m hangar NAME"), "{ran}");
    let runs = ["for-each-ref", "refs/hangar/runs"];
    assert_eq!(place.env.git(&place.dir, &runs), "");
    place
        .env
        .git(&place.dir, &["branch", "-m", "hangar", "away"]);
    hangar(&submit).success();
    assert_ne!(place.env.git(&place.dir, &runs), "");
}
