//! Agent programs as a person configures, lists and tries them, with stand-ins on `PATH` that play
//! recorded streams. The real ones are tried in `agents.rs`.

use crate::cli_flow::Place;
use crate::common::{Ran, TestEnv, write};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// A folder of programs with these names and shell texts.
pub(crate) fn programs(root: &Path, files: &[(&str, &str)]) -> PathBuf {
    let bin = root.join("bin");
    for (name, text) in files {
        let file = bin.join(name);
        write(&file, &format!("#!/bin/sh\n{text}\n"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    bin
}

const VERSIONS: [(&str, &str); 2] = [
    ("claude", "echo '9.8.7 (Claude Code)'"),
    ("codex", "echo 'codex-cli 0.9.8'"),
];

fn hangar(env: &TestEnv, dir: &Path, bin: &Path, args: &[&str], keys: &[(&str, &str)]) -> Ran {
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let vars = [&[("PATH", path.as_str())], keys].concat();
    env.hangar_with(dir, args, &vars, "")
}

pub(crate) const KEYS: [(&str, &str); 2] =
    [("ANTHROPIC_API_KEY", "a-key"), ("CODEX_API_KEY", "a-key")];

#[test]
fn without_configuration_claude_code_writes_and_codex_implements() {
    let env = TestEnv::new();
    let dir = env.repo("repo", &[]);
    let bin = programs(env.root(), &VERSIONS);
    let list = ["harness", "list", "--json"];
    let found = hangar(&env, &dir, &bin, &list, &KEYS).success().json();
    assert_eq!(found["lanes"]["writer"], serde_json::json!(["claude"]));
    assert_eq!(found["lanes"]["implementer"], serde_json::json!(["codex"]));
    assert_eq!(found["pair"]["ready"], true, "{found:#}");
    assert_eq!(found["harnesses"][0]["detail"], "9.8.7", "{found:#}");
    assert_eq!(found["harnesses"][1]["detail"], "0.9.8", "{found:#}");
    hangar(&env, &dir, &bin, &["harness", "test"], &KEYS).success();
    let doctor = hangar(&env, &dir, &bin, &["doctor"], &KEYS);
    assert!(
        doctor.stdout.contains("claude writes, codex implements"),
        "{doctor}"
    );
    // An empty value is none.
    let half = [KEYS[0], ("CODEX_API_KEY", "")];
    let found = hangar(&env, &dir, &bin, &["harness", "test", "--json"], &half);
    let found = found.exits(1).json();
    let detail = found["harnesses"][1]["detail"].as_str().unwrap();
    assert!(
        detail.contains("put an API key into CODEX_API_KEY"),
        "{detail}"
    );
    assert_eq!(found["pair"]["detail"], detail);
}

#[test]
fn a_task_without_a_program_or_a_login_is_refused_before_anything_runs() {
    let place = Place::new();
    let (env, dir) = (&place.env, &place.dir);
    let none = env.root().join("none");
    let run = ["run", "KAN-1", "--json"];
    let missing = |ran: Ran| {
        let error = ran.exits(3).json_error();
        error["error"]["message"].as_str().unwrap().to_owned()
    };
    let said = missing(hangar(env, dir, &none, &run, &KEYS));
    for part in [
        "no lane is configured for the writer",
        "`claude` is not on PATH",
        "npm install -g @anthropic-ai/claude-code",
    ] {
        assert!(said.contains(part), "{said}");
    }
    let bin = programs(env.root(), &VERSIONS[..1]);
    let said = missing(hangar(env, dir, &bin, &run, &KEYS));
    assert!(
        said.contains("for the implementer") && said.contains("`codex` is not on PATH"),
        "{said}"
    );
    let bin = programs(env.root(), &VERSIONS);
    let said = missing(hangar(env, dir, &bin, &run, &[]));
    assert!(
        said.contains("`claude` has nothing to log in with"),
        "{said}"
    );
    assert!(said.contains("`claude setup-token`"), "{said}");
    assert_eq!(
        place.json("task-show", &["task", "show", "KAN-1"], 0)["state"],
        "draft"
    );
}

#[test]
fn a_program_that_does_not_start_is_not_ready() {
    let env = TestEnv::new();
    let dir = env.repo("repo", &[]);
    let bin = programs(
        env.root(),
        &[("claude", "echo 'lost its other half' >&2; exit 1")],
    );
    let ran = hangar(
        &env,
        &dir,
        &bin,
        &["harness", "test", "claude", "--json"],
        &KEYS,
    );
    let found = ran.exits(1).json();
    let detail = found["harnesses"][0]["detail"].as_str().unwrap();
    assert!(
        detail.contains("it does not start: lost its other half"),
        "{detail}"
    );
}

/// What a stand-in does in a turn: takes its prompt, then plays a recorded stream.
fn plays(stream: &str, status: u8) -> String {
    let stream = crate::docs::page(&format!("tests/streams/{stream}.jsonl"));
    format!(
        "if [ \"$1\" = --version ]; then echo 9.8.7; exit; fi\n\
         grep -q 'You implement one task' || exit 9\n\
         echo 'echo $(($1 - $2))' > /src/calc.sh\n\
         cat <<'END-OF-STREAM'\n{stream}\nEND-OF-STREAM\nexit {status}"
    )
}

/// A task whose tests a person sealed and approved, run by a stand-in that plays this stream.
fn implemented(kind: &str, stream: &str, status: u8, code: i32) -> (Place, Ran) {
    let place = Place::new();
    let other = if kind == "claude" { "codex" } else { "claude" };
    let text = plays(stream, status);
    let bin = programs(place.env.root(), &[(kind, &text), (other, "exit 1")]);
    let config = format!("[lanes]\nwriter = [\"{other}\"]\nimplementer = [\"{kind}:high\"]\n");
    write(
        &place.env.home().join(".config/hangar/config.toml"),
        &config,
    );
    place.seal();
    place.approve();
    let run = ["run", "KAN-1", "--json"];
    let ran = hangar(&place.env, &place.dir, &bin, &run, &KEYS).exits(code);
    (place, ran)
}

/// The last run document of the task, as text.
fn run_document(place: &Place) -> String {
    let git = |args: &[&str]| place.env.git(&place.dir, args);
    let run = git(&["for-each-ref", "--format=%(refname)", "refs/hangar/runs"]);
    git(&["show", &format!("{run}:run.toml")])
}

#[test]
fn a_turn_that_says_it_is_done_is_graded_and_delivered() {
    for (kind, version) in [("claude", "2.1.197"), ("codex", "9.8.7")] {
        let (place, ran) = implemented(kind, &format!("{kind}-done"), 0, 0);
        assert_eq!(ran.json()["stopped"], "delivered", "{ran}");
        let document = run_document(&place);
        let harness = format!("kind = \"{kind}\"\nversion = \"{version}\"\n");
        assert!(document.contains(&harness), "{document}");
        assert!(document.contains("effort = \"high\""), "{document}");
    }
}

#[test]
fn a_limit_is_told_with_its_end_and_is_no_round() {
    for kind in ["claude", "codex"] {
        // An exit status of 0 makes no success of it.
        let (place, ran) = implemented(kind, &format!("{kind}-limit"), 0, 7);
        let error = ran.json_error();
        let message = error["error"]["message"].as_str().unwrap();
        let told = format!(
            "the implementer `{kind}:high` has reached its usage limit, until 2026-01-02 10:30 UTC"
        );
        assert!(message.starts_with(&told), "{ran}");
        let hint = error["error"]["hints"][0].as_str().unwrap();
        assert!(hint.contains("after that time: `hangar run"), "{ran}");
        let task = place.json("task-show", &["task", "show", "KAN-1"], 0);
        assert_eq!(task["next"], "implement", "{task:#}");
        assert!(run_document(&place).contains("outcome = \"failed\""));
    }
}
