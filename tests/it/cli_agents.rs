//! In an agent's environment nobody decides, is shown hidden tests, or removes tasks. Needs a sandbox.

use crate::cli_flow::Place;
use crate::common::{TestEnv, write};
use hangar::flow::decide::AGENT_VARIABLES;
use std::path::Path;

#[test]
fn what_an_agent_was_shown_no_person_has_seen() {
    let place = Place::new();
    let sealed = place.seal();
    let digest = sealed["manifest"].as_str().unwrap();
    for name in ["CLAUDECODE", "CODEX_THREAD_ID"] {
        for args in [
            &["review", "KAN-1"][..],
            &["review", "KAN-1", "--tests"],
            &["review", "KAN-1", "--transcript"],
            &["review", "KAN-1", "--patch"],
            &["approve", "KAN-1", "--digest", digest],
        ] {
            let ran = place
                .env
                .hangar_with(&place.dir, args, &[(name, "1")], "")
                .exits(4);
            assert!(ran.stderr.contains(&format!("({name} is set)")), "{ran}");
            assert_eq!(ran.stdout, "", "{ran}");
        }
    }
    let approve = ["approve", "KAN-1", "--digest", digest];
    place.refused(&approve, 4, "you have not reviewed these tests here");
    place.approve();
}

#[test]
fn hangar_and_its_tasks_are_not_removed_in_an_agent_s_environment() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    let refs = env.git(&dir, &["for-each-ref", "refs/hangar"]);
    let deinit = ["deinit", "--yes"];
    let refused = env.hangar_with(&dir, &deinit, &[("AI_AGENT", "1")], "");
    let refused = refused.exits(4);
    assert!(refused.stderr.contains("(AI_AGENT is set)"), "{refused}");
    assert_eq!(env.git(&dir, &["for-each-ref", "refs/hangar"]), refs);
    env.hangar(&dir, &deinit).success();
    assert_eq!(env.git(&dir, &["for-each-ref", "refs/hangar"]), "");
}

#[test]
fn the_page_lists_every_variable_that_marks_an_agent() {
    let page = include_str!("../../docs/reference/configuration.md");
    for name in AGENT_VARIABLES {
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn no_agent_is_shown_a_key_or_the_repository_whatever_is_to_be_read() {
    let place = Place::new();
    let home = place.env.home().to_owned();
    let extra = place.env.root().join("extra");
    std::fs::create_dir_all(&extra).unwrap();
    let linked = place.env.root().join("linked");
    std::os::unix::fs::symlink(&home, &linked).unwrap();
    let run = |read: &Path| {
        let harness = |name: &str| {
            format!(
                "[harness.{name}]\nkind = \"command\"\ncommand = [\"/bin/{name}\"]\nread = [\"{}\"]\n",
                read.display()
            )
        };
        let text = format!(
            "{}{}[lanes]\nwriter = [\"true\"]\nimplementer = [\"false\"]\n",
            harness("true"),
            harness("false")
        );
        write(&home.join(".config/hangar/config.toml"), &text);
        place.env.hangar(&place.dir, &["run", "KAN-1"])
    };
    for (read, what) in [
        (home.clone(), "keys of "),
        (linked, "keys of "),
        (home.join(".ssh"), "keys of yours"),
        (home.join(".local/share/hangar"), "keys of this machine"),
        (place.dir.clone(), "the repository, with the sealed tests"),
        (
            place.dir.join(".git/refs"),
            "the repository, with the sealed tests",
        ),
    ] {
        let refused = run(&read).exits(4);
        let shows = refused.stderr.contains(what) && refused.stderr.contains("harness.NAME.read");
        assert!(shows, "{}: {refused}", read.display());
    }
    // This one gets its turn, and leaves nothing.
    run(&extra).exits(7);
}

/// Where no agent program is configured, that is said before anybody holds the task.
#[test]
fn a_task_that_no_lane_serves_is_claimed_by_nobody() {
    let place = Place::new();
    let new = ["task", "new", "Plain", "--plain", "--key", "KAN-2"];
    place.json("task-new", &new, 0);
    let documents = |task: &str| {
        let log = place.json("task-log", &["task", "log", task], 0);
        log["documents"].as_array().unwrap().len()
    };
    place.refused(
        &["run", "KAN-2"],
        3,
        "no lane is configured for the implementer",
    );
    assert_eq!(documents("KAN-2"), 1);
    let enqueue = ["task", "enqueue", "KAN-2"];
    place.env.hangar(&place.dir, &enqueue).success();
    place.refused(
        &["run", "KAN-2"],
        3,
        "no lane is configured for the implementer",
    );
    assert_eq!(documents("KAN-2"), 2);
    // The same once tests of a person's own are approved.
    place.seal();
    place.approve();
    let before = documents("KAN-1");
    place.refused(
        &["run", "KAN-1"],
        3,
        "no lane is configured for the implementer",
    );
    assert_eq!(documents("KAN-1"), before);
}
