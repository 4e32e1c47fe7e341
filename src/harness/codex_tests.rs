//! Turns of Codex that no recorded stream shows; those are in `tests/it/harness_streams.rs`.

use super::*;
use crate::harness::lanes;
use crate::model::lane::{HarnessSettings, LaneSettings, Role};
use std::path::Path;
use std::time::Duration;

fn read(stdout: &str, exit: Exit) -> Finish {
    let mut seen = Seen::default();
    for event in stream::events(stdout.as_bytes()) {
        seen.take(&event);
    }
    seen.finish(&Ended {
        exit,
        stdout: stdout.as_bytes(),
        stderr: b"",
        at: "2026-11-30T17:53:00Z".parse().unwrap(),
    })
}

fn class(finish: &Finish) -> Option<ErrorClass> {
    match &finish.end {
        TurnEnd::Done => None,
        TurnEnd::Failed(failure) => Some(failure.class),
    }
}

const RECONNECTING: &str = r#"{"type":"error","message":"Reconnecting... 1/5 (stream disconnected before completion: x)"}"#;
const COMPLETED: &str = r#"{"type":"turn.completed","usage":{"input_tokens":2000,"cached_input_tokens":200,"output_tokens":100}}"#;

#[test]
fn an_error_event_is_not_the_end() {
    let stream = format!("{RECONNECTING}\n{COMPLETED}\n");
    let finish = read(&stream, Exit::Code(0));
    assert_eq!(class(&finish), None);
    let usage = finish.usage.unwrap();
    assert_eq!((usage.input, usage.output), (2000, 100));
}

#[test]
fn without_an_end_a_status_of_0_proves_nothing() {
    let started = r#"{"type":"thread.started","thread_id":"t1"}"#;
    let finish = read(started, Exit::Code(0));
    assert_eq!(class(&finish), Some(ErrorClass::Protocol));
    assert_eq!(finish.session.as_deref(), Some("t1"));
    for exit in [Exit::Code(143), Exit::Signal(9), Exit::TimedOut] {
        assert_eq!(class(&read(started, exit)), Some(ErrorClass::Interrupted));
    }
}

#[test]
fn one_that_waits_is_stopped_for_what_it_waits_for() {
    let stopped = |stream: &str| class(&read(stream, Exit::Idle)).unwrap();
    assert_eq!(stopped(RECONNECTING), ErrorClass::Overloaded);
    let later = format!("{RECONNECTING}\n{{\"type\":\"item.started\",\"item\":{{}}}}\n");
    assert_eq!(stopped(&later), ErrorClass::Interrupted);
}

#[test]
fn what_the_model_or_a_tool_says_is_no_error_of_the_program() {
    let said = "You've hit your usage limit. Try again at 6:53 PM.";
    let stream = format!(
        "{{\"type\":\"item.completed\",\"item\":{{\"type\":\"agent_message\",\"text\":\"{said}\"}}}}\n\
         {{\"type\":\"item.completed\",\"item\":{{\"type\":\"command_execution\",\"aggregated_output\":\"{said}\"}}}}\n"
    );
    assert_eq!(
        class(&read(&stream, Exit::Code(1))),
        Some(ErrorClass::Protocol)
    );
    assert_eq!(
        class(&read(&stream, Exit::Idle)),
        Some(ErrorClass::Interrupted)
    );
}

#[test]
fn a_text_that_nobody_knows_is_not_taken_for_hangars_own() {
    let stream = r#"{"type":"turn.failed","error":{"message":"something\nnew"}}"#;
    let TurnEnd::Failed(failure) = read(stream, Exit::Code(1)).end else {
        panic!()
    };
    assert_eq!(failure.class, ErrorClass::Unknown);
    assert_eq!(failure.words(true), "failed (it says: something new)");
    assert_eq!(failure.words(false), "failed");
}

#[test]
fn a_launch_lays_settings_without_a_credential() {
    let harness = HarnessSettings {
        kind: KIND.into(),
        command: vec!["/bin/sh".into()],
        hosts: vec!["127.0.0.1:9911".parse().unwrap()],
        ..HarnessSettings::default()
    };
    let settings = LaneSettings {
        harnesses: [(KIND.into(), harness)].into(),
        ..LaneSettings::default()
    };
    let lane = lanes::lane(&settings, "codex:xhigh".parse().unwrap()).unwrap();
    let env = [("CODEX_API_KEY".into(), "sk-key-123".into())].into();
    let launch = lane
        .adapter
        .launch(&Turn {
            role: Role::Writer,
            number: 1,
            exchange: Path::new("/run/exchange"),
            work: Path::new("/src"),
            hangar: Path::new("/hangar/bin"),
            prompt: "do it",
            home: Path::new("/home/user"),
            env: &env,
            total: Duration::from_secs(60),
            idle: Duration::from_secs(30),
        })
        .unwrap();
    let argv: Vec<_> = launch
        .argv
        .iter()
        .map(|arg| arg.to_str().unwrap())
        .collect();
    assert!(
        argv.contains(&"model_reasoning_effort=\"xhigh\""),
        "{argv:?}"
    );
    assert_eq!(argv.last(), Some(&"-"));
    assert_eq!(launch.hosts, ["127.0.0.1:9911".parse().unwrap()]);
    assert_eq!(launch.env.get("CODEX_HOME").unwrap(), "/home/user/.codex");
    let file = &launch.files[0];
    assert_eq!(file.path, Path::new("/home/user/.codex/config.toml"));
    let text = String::from_utf8(file.bytes.expose().to_vec()).unwrap();
    assert!(!text.contains("sk-key"), "{text}");
    let config: toml::Table = text.parse().unwrap();
    assert!(!config.contains_key("projects"));
    assert_eq!(config["features"]["plugins"].as_bool(), Some(false));
}

#[test]
fn people_are_shown_words_and_commands_instead_of_events() {
    let settings = HarnessSettings::default();
    let settings = Settings {
        name: KIND,
        harness: &settings,
        effort: None,
    };
    let adapter = build(&settings).unwrap();
    let show = |line: &str| adapter.show(line.as_bytes());
    let started =
        r#"{"type":"item.started","item":{"type":"command_execution","command":"bash -lc ls"}}"#;
    assert_eq!(show(started).unwrap(), "$ bash -lc ls");
    let changed = r#"{"type":"item.completed","item":{"type":"file_change","changes":[{"path":"a","kind":"add"},{"path":"b"}]}}"#;
    assert_eq!(show(changed).unwrap(), "changed a, b");
    assert_eq!(show(RECONNECTING).unwrap()[..12], *"Reconnecting");
    assert_eq!(show(COMPLETED), None);
}
