//! A right patch that also changes CI: accepted, and delivered only when an approver signed it.

use super::kill_scene::Scene;
use serde_json::Value;

const WORKFLOW: &str = ".github/workflows/ci.yml";

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// A task whose accepted patch also writes a workflow.
fn waiting() -> Scene {
    let scene = Scene::new();
    let path = format!("coder/implementer/1/src/{WORKFLOW}");
    scene.script(&path, "on: \u{1b}[31mpush\n");
    scene.hangar(&["run", "KAN-80"]).exits(6);
    scene.approve();
    scene
}

fn branches(scene: &Scene) -> String {
    scene
        .env
        .git(&scene.repo, &["branch", "--list", "hangar/*"])
}

#[test]
fn a_patch_that_changes_ci_waits_for_an_approver() {
    let scene = waiting();
    let ran = scene.hangar(&["run", "KAN-80"]).exits(6);
    assert!(ran.stderr.contains("grade: accepted"), "{ran}");
    assert!(ran.stdout.contains(WORKFLOW), "{ran}");
    assert!(ran.stdout.contains("hangar approve"), "{ran}");
    // Asking again records nothing.
    let before = scene.refs();
    scene.hangar(&["run", "KAN-80"]).exits(6);
    scene.hangar(&["deliver", "KAN-80"]).exits(6);
    assert_eq!(scene.refs(), before);
    assert_eq!(branches(&scene), "");
    assert!(scene.dossier().history.task.claim.is_none());
    let show = scene
        .hangar(&["task", "show", "KAN-80", "--json"])
        .success();
    assert_eq!(json(&show.stdout)["next"], "approve-patch");

    // The approval of the tests was given; what waits is named.
    let told = scene.hangar(&["approve", "KAN-80"]).success();
    assert!(told.stdout.contains("--patch"), "{told}");

    let waits = json(&scene.hangar(&["run", "KAN-80", "--json"]).exits(6).stdout);
    assert_eq!(waits["stopped"], "waiting-for-patch-approval");
    let patch = waits["patch"].as_str().unwrap().to_owned();
    let approve = ["approve", "KAN-80", "--patch", "--digest", &patch];
    scene.hangar(&approve).exits(4);

    let card = scene.hangar(&["review", "--patch"]).success();
    assert!(card.stdout.contains("+on: "), "{card}");
    assert!(!card.stdout.contains('\u{1b}'), "{card}");
    let card = json(
        &scene
            .hangar(&["review", "--patch", "--json"])
            .success()
            .stdout,
    );
    assert_eq!(card["patch"], waits["patch"]);
    assert_eq!(card["guarded"][0]["path"], WORKFLOW);

    let mut agent = scene.command(&approve);
    agent.env("HANGAR_EXCHANGE", "x");
    let refused = scene.ran(&approve, &agent.output().unwrap());
    refused.exits(4);
    scene
        .hangar(&["approve", "--patch", "--digest", "sha256:000000000000"])
        .exits(4);
    scene.hangar(&approve).success();
    scene.hangar(&["run", "KAN-80"]).success();
    assert_eq!(branches(&scene).trim(), "hangar/KAN-80");
    scene.hangar(&["verify", "KAN-80"]).success();
    scene.hangar(&["review", "KAN-80", "--patch"]).exits(4);
}

#[test]
fn a_failed_result_that_changes_ci_goes_to_no_branch() {
    let scene = waiting();
    for round in 1..=3 {
        let path = format!("coder/implementer/{round}/src/calc.sh");
        scene.script(&path, &format!("echo {round}00\n"));
    }
    let ran = scene.hangar(&["run", "KAN-80"]).exits(1);
    assert!(!ran.stdout.contains("on hangar/"), "{ran}");
    assert_eq!(branches(&scene), "");
    let summary = scene.dossier().history.task.summary;
    assert!(summary.contains("is on no branch"), "{summary}");
}
