//! What waits for whom. Needs a sandbox.

use crate::cli_flow::Place;
use crate::cli_help::validate;
use crate::cli_review::Colleague;
use crate::common::Ran;

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
