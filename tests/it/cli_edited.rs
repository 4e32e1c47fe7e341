//! A task whose text was edited after its hidden tests were approved: no command goes by those tests, and
//! each says why.

use crate::cli_flow::Place;

const RIGHT: &str = "echo $(($1 - $2))\n";
const EDITED: &str = "version 1 of the tests was approved, but the task's text was edited since";

/// A task with approved tests and a patch that they accept.
pub(crate) fn approved() -> Place {
    let place = Place::new();
    place.seal();
    place.approve();
    place.commit(RIGHT);
    place
}

pub(crate) fn retitle(place: &Place, title: &str) {
    let args = ["task", "edit", "KAN-1", "--title", title];
    place.json("task-edit", &args, 0);
}

#[test]
fn no_command_goes_by_tests_of_another_text() {
    let place = approved();
    let criterion = ["-c", "calc.sh 5 3 prints 8"];
    let edit = [&["task", "edit", "KAN-1"][..], &criterion].concat();
    place.json("task-edit", &edit, 0);
    for args in [
        &["grade", "KAN-1"][..],
        &["grade", "KAN-1", "--version", "1"],
    ] {
        place.refused(args, 4, EDITED);
        place.refused(args, 4, "put the text back");
    }
    place.refused(&["deliver", "KAN-1"], 4, "no accepted result");
    let task = place.json("task-show", &["task", "show", "KAN-1"], 0);
    assert!(task.get("grades").is_none(), "{task}");
    // A dry run shows what they say, and that they decide about nothing.
    let tried = place.json("grade", &["grade", "KAN-1", "--dry-run"], 0);
    assert_eq!(
        (&tried["approved"], &tried["stale"]),
        (&false.into(), &true.into())
    );
    // The control: with the text back, they count again.
    let back = ["task", "edit", "KAN-1", "-c", "calc.sh 5 3 prints 2"];
    place.json("task-edit", &back, 0);
    retitle(&place, "Take away");
    place.refused(&["grade", "KAN-1"], 4, EDITED);
    retitle(&place, "Subtract");
    let graded = place.json("grade", &["grade", "KAN-1"], 0);
    assert_eq!(graded["approved"], true);
    place.json("submit", &["submit", "KAN-1"], 0);
}

#[test]
fn a_grade_that_accepts_under_another_text_gets_no_yes() {
    let place = approved();
    place.json("grade", &["grade", "KAN-1"], 0);
    retitle(&place, "Take away");
    let report = place.json("verify", &["verify", "KAN-1"], 1);
    let notes = report.to_string();
    assert!(notes.contains("written for another text"), "{report}");
    place.refused(&["deliver", "KAN-1"], 4, "no accepted result");
}

#[test]
fn an_ended_task_takes_no_grade_unless_it_was_delivered() {
    let place = approved();
    place.json("task-cancel", &["task", "cancel", "KAN-1"], 0);
    let args = ["grade", "KAN-1"];
    place.refused(&args, 4, "the task is failed: no grade of it would count");
    place.json("grade", &["grade", "KAN-1", "--dry-run"], 0);
    place.json("task-retry", &["task", "retry", "KAN-1"], 0);
    place.json("grade", &args, 0);
    place.json("submit", &["submit", "KAN-1"], 0);
    // CI grades what was delivered once more.
    place.json("grade", &args, 0);
}

#[test]
fn an_edit_says_what_it_does_to_approved_tests_and_so_does_every_page() {
    let place = approved();
    let hangar = |args: &[&str]| place.env.hangar(&place.dir, args);
    // What changes no text says nothing of tests.
    let other = ["task", "edit", "KAN-1", "--priority", "2"];
    let ran = hangar(&other).success();
    assert!(!ran.stderr.contains("tests"), "{ran}");
    let edit = ["task", "edit", "KAN-1", "--title", "Take away"];
    let ran = hangar(&edit).success();
    for part in [
        "version 1 of the hidden tests was approved",
        "put the text back",
        "counts again",
    ] {
        assert!(ran.stderr.contains(part), "{ran}");
    }
    let shown = hangar(&["task", "show", "KAN-1"]).success();
    let since = "approved, but the text was edited since";
    assert!(shown.stdout.contains(since), "{shown}");
    assert!(shown.stdout.contains("Next: put the text back"), "{shown}");
    place.refused(&["submit", "KAN-1"], 4, EDITED);
    place.refused(&["submit", "KAN-1"], 4, "put the text back");
    let inbox = place.json("inbox", &["inbox"], 0);
    assert_eq!(inbox["items"][0]["kind"], "edited", "{inbox}");
    let card = hangar(&["review", "KAN-1"]).success();
    assert!(card.stdout.contains("text put back"), "{card}");
    // The control: with the text back, the tests count, and nothing waits.
    let edit = ["task", "edit", "KAN-1", "--title", "Subtract"];
    let back = place.json("task-edit", &edit, 0);
    assert_eq!((&back["restored"], back.get("stale")), (&1.into(), None));
    let inbox = place.json("inbox", &["inbox"], 0);
    assert_eq!(inbox["items"], serde_json::json!([]));
    place.json("submit", &["submit", "KAN-1"], 0);
}

#[test]
fn what_was_done_in_one_second_is_told_in_its_order() {
    let place = Place::new();
    place.seal();
    let card = place.json("review", &["review", "KAN-1", "--tests"], 0);
    let digest = card["manifest"].as_str().unwrap();
    let now = [("HANGAR_NOW", "2026-03-04T05:06:07Z")];
    for args in [
        &["approve", "KAN-1", "--digest", digest][..],
        &["task", "edit", "KAN-1", "--title", "Take away"],
        &["task", "cancel", "KAN-1"],
    ] {
        place.env.hangar_with(&place.dir, args, &now, "").success();
    }
    let task = place.json("task-show", &["task", "show", "KAN-1"], 0);
    let told = task["timeline"].as_array().unwrap().iter();
    let told: Vec<_> = told.map(|one| one["what"].as_str().unwrap()).collect();
    assert_eq!(
        told[told.len() - 3..],
        ["approved version 1", "edited title", "cancelled"]
    );
}
