//! Who is refused a decision, before anything else is said, and what stderr holds beside JSON.

use crate::cli_flow::Place;
use crate::common::write;
use std::path::{Path, PathBuf};

/// The private file of this machine's key with this role.
fn machine_key(place: &Place, role: &str) -> PathBuf {
    let data = place.env.home().join(".local/share/hangar");
    let repos = std::fs::read_dir(&data).unwrap();
    let mut found = repos.map(|entry| entry.unwrap().path().join(role));
    found.find(|path| path.is_file()).unwrap()
}

fn sign_with(place: &Place, key: Option<&Path>) {
    let config = |args: &[&str]| place.env.git(&place.dir, &[&["config"][..], args].concat());
    match key {
        Some(key) => {
            config(&["gpg.format", "ssh"]);
            config(&["user.signingKey", &key.display().to_string()]);
        }
        None => {
            config(&["--unset", "user.signingKey"]);
        }
    }
}

#[test]
fn a_machine_key_is_refused_also_when_its_owner_has_approved() {
    let place = Place::new();
    place.seal();
    place.approve();
    for role in ["worker", "grader"] {
        sign_with(&place, Some(&machine_key(&place, role)));
        for command in ["approve", "reject"] {
            let args = [command, "KAN-1", "--reason", "no"];
            let args = if command == "approve" {
                &args[..2]
            } else {
                &args[..]
            };
            place.refused(args, 4, "may not decide about this task");
        }
        sign_with(&place, None);
    }
    // The control: the person who approved is told so, by name.
    let again = place.json("approve", &["approve", "KAN-1"], 0);
    assert_eq!(
        (&again["already"], &again["by"]),
        (&true.into(), &"alice".into())
    );
}

#[test]
fn an_ended_task_is_decided_about_by_neither_word() {
    let place = Place::new();
    place.seal();
    place.approve();
    place.commit("echo $(($1 - $2))\n");
    place.json("submit", &["submit", "KAN-1"], 0);
    let said = "the task is done; there is nothing to decide";
    place.refused(&["approve", "KAN-1"], 4, said);
    place.refused(&["reject", "KAN-1", "--reason", "no"], 4, said);
}

#[test]
fn beside_json_stderr_holds_the_error_and_nothing_else() {
    let place = Place::new();
    place.seal();
    place.json("review", &["review", "KAN-1"], 0);
    let ran = place
        .env
        .hangar(&place.dir, &["approve", "KAN-1", "--json"]);
    let error = ran.exits(6).json_error();
    assert_eq!(error["error"]["code"], 6);
    // What was warned of is in the error too.
    let file = place.env.home().join(".config/hangar/config.toml");
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    write(&file, &format!("{text}\n[notknown]\nx = 1\n"));
    let ran = place
        .env
        .hangar(&place.dir, &["approve", "KAN-1", "--json"]);
    let error = ran.exits(6).json_error();
    assert_eq!(error["error"]["code"], 6);
    let ran = place
        .env
        .hangar(&place.dir, &["harness", "test", "none", "--json"]);
    let error = ran.exits(2).json_error();
    let warned = error["error"]["warnings"][0].as_str().unwrap();
    assert!(warned.contains("notknown"), "{error}");
}

#[test]
fn tap_tests_that_no_map_names_are_guards() {
    let place = Place::new();
    let config = std::fs::read_to_string(place.dir.join("hangar.toml")).unwrap();
    let lines = config.lines().filter(|line| {
        !["framework", "tests", "options"]
            .iter()
            .any(|key| line.starts_with(key))
    });
    let text: Vec<&str> = lines.collect();
    let text = text.join("\n").replace(
        "[grader]",
        "[grader]\nframework = \"tap\"\ntests = [\"t/\"]\noptions = [\"sh\"]",
    );
    write(&place.dir.join("hangar.toml"), &text);
    place.env.git(&place.dir, &["commit", "-qam", "tap"]);
    let task = [
        "task",
        "new",
        "More",
        "-c",
        "5 3 prints 2",
        "--key",
        "TAP-1",
    ];
    place.json("task-new", &task, 0);
    write(
        &place.env.root().join("taps/t/sub.t"),
        "echo 1..2\ntest \"$(sh ./calc.sh 5 3)\" = 2 && echo 'ok 1 - sub' || echo 'not ok 1 - sub'\n\
         test -e calc.sh && echo 'ok 2 - there' || echo 'not ok 2 - there'\n",
    );
    let seal = [
        "seal",
        "TAP-1",
        "--from",
        "../taps",
        "--map",
        "c1=t/sub.t > sub",
    ];
    let sealed = place.json("seal", &seal, 0);
    let counts = &sealed["counts"];
    assert_eq!(
        (&counts["tests"], &counts["guards"]),
        (&2.into(), &1.into())
    );
}
