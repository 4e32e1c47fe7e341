//! Small mistakes of a user are named as what they are, and stop nothing else.

use crate::cli_flow::Place;
use crate::common::TestEnv;

#[test]
fn a_bad_line_of_an_unused_harness_stops_no_init() {
    let env = TestEnv::new();
    let dir = env.repo("repo", &[]);
    let config = "[harness.old]\nkind = \"script\"\ndir = \"/opt/../turns\"\n";
    env.write_home(".config/hangar/config.toml", config);
    let ran = env.hangar(&dir, &["init"]).success();
    assert!(ran.stderr.contains("`harness.old.dir`"), "{ran}");
    env.commit(&dir, "set up");
    env.hangar(&dir, &["task", "list"]).success();
    // What needs the harness names the line, and no page that is not at hand.
    let list = env.hangar(&dir, &["harness", "list"]).exits(2);
    assert!(list.stderr.contains("config.toml:3"), "{list}");
    assert!(list.stderr.contains("hangar help config"), "{list}");
    assert!(!list.stderr.contains("docs/"), "{list}");
}

#[test]
fn a_submission_that_was_interrupted_before_its_grade_goes_on() {
    let place = Place::new();
    place.seal();
    place.approve();
    place.commit("echo $(($1 - $2))\n");
    place.env.hangar(&place.dir, &["submit", "KAN-1"]).success();
    let git = |args: &[&str]| place.env.git(&place.dir, args);
    // As it was left when the process ended there: claimed, the patch recorded, no grade.
    let task = place.json("task-show", &["task", "show", "KAN-1"], 0);
    let id = task["id"].as_str().unwrap();
    let tasks = format!("refs/hangar/tasks/{id}");
    let log = git(&["log", "--format=%H %s", &tasks]);
    let claim = log.lines().find(|line| line.contains("claim"));
    let claim = claim.expect(&log).split(' ').next().unwrap();
    git(&["update-ref", &tasks, claim]);
    git(&["update-ref", "-d", &format!("refs/hangar/grades/{id}")]);
    git(&["branch", "-D", "hangar/KAN-1"]);
    // Another patch has to wait for it.
    place.commit("echo $(($1 - $2)) # another\n");
    place.refused(&["submit", "KAN-1"], 4, "hangar run");
    let again = ["submit", "KAN-1", "--rev", "HEAD~1"];
    let again = place.env.hangar(&place.dir, &again).success();
    assert!(again.stdout.contains("delivered"), "{again}");
    let runs = format!("refs/hangar/runs/{id}");
    assert_eq!(git(&["rev-list", "--count", &runs]), "1");
}
