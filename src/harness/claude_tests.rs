//! Turns of Claude Code that no recorded stream shows; those are in `tests/it/harness_streams.rs`.

use super::*;
use crate::harness::lanes;
use crate::model::lane::{HarnessSettings, LaneSettings, Role};
use std::path::Path;
use std::time::Duration;

fn read(stdout: &str, exit: Exit) -> Finish {
    read_with(stdout, "", exit)
}

fn read_with(stdout: &str, stderr: &str, exit: Exit) -> Finish {
    let mut seen = Seen::default();
    for event in stream::events(stdout.as_bytes()) {
        seen.take(event);
    }
    seen.finish(&Ended {
        exit,
        stdout: stdout.as_bytes(),
        stderr: stderr.as_bytes(),
        at: "2026-11-30T17:53:00Z".parse().unwrap(),
    })
}

fn class(finish: &Finish) -> Option<ErrorClass> {
    match &finish.end {
        TurnEnd::Done => None,
        TurnEnd::Failed(failure) => Some(failure.class),
    }
}

const RETRY: &str = r#"{"type":"system","subtype":"api_retry","attempt":1,"error_status":429,"error":"rate_limit"}"#;
const REJECTED: &str =
    r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1796065237}}"#;

#[test]
fn success_needs_the_last_event_and_both_its_words() {
    for (stream, class_of) in [
        (
            r#"{"type":"result","subtype":"success","is_error":false}"#,
            None,
        ),
        (
            r#"{"type":"result","subtype":"success"}"#,
            Some(ErrorClass::Unknown),
        ),
        (
            r#"{"type":"result","is_error":false}"#,
            Some(ErrorClass::Unknown),
        ),
        (
            r#"{"type":"result","subtype":"success","is_error":true}"#,
            Some(ErrorClass::Unknown),
        ),
        (
            r#"{"type":"result","subtype":"error_max_turns","is_error":false}"#,
            Some(ErrorClass::Unknown),
        ),
        (
            r#"{"type":"assistant","message":{}}"#,
            Some(ErrorClass::Protocol),
        ),
        ("", Some(ErrorClass::Protocol)),
    ] {
        assert_eq!(class(&read(stream, Exit::Code(0))), class_of, "{stream}");
    }
    // It said that it was done, and did not go.
    let done = r#"{"type":"result","subtype":"success","is_error":false}"#;
    assert_eq!(class(&read(done, Exit::Idle)), None);
    let not = class(&read(done, Exit::NotStarted(2)));
    assert_eq!(not, Some(ErrorClass::Protocol));
}

#[test]
fn what_the_model_or_a_tool_says_is_no_error_of_the_program() {
    let said = "You've hit your session limit · resets 6pm (UTC)";
    let stream = format!(
        "{{\"type\":\"assistant\",\"message\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{said}\"}}]}}}}\n\
         {{\"type\":\"user\",\"message\":{{\"content\":[{{\"type\":\"tool_result\",\"content\":\"{said}\"}}]}}}}\n"
    );
    assert_eq!(
        class(&read(&stream, Exit::Code(1))),
        Some(ErrorClass::Protocol)
    );
    let told = format!(
        "{stream}{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"{said}\"}}"
    );
    assert_eq!(class(&read(&told, Exit::Code(0))), None);
}

#[test]
fn one_that_waits_in_silence_is_stopped_for_what_it_waits_for() {
    let stopped = |stream: &str| class(&read(stream, Exit::Idle)).unwrap();
    assert_eq!(stopped(RETRY), ErrorClass::Rate);
    let later = format!("{RETRY}\n{{\"type\":\"assistant\",\"message\":{{}}}}\n");
    assert_eq!(stopped(&later), ErrorClass::Interrupted);
    let until = "2026-11-30T19:00:37Z".parse().unwrap();
    assert_eq!(stopped(REJECTED), ErrorClass::Limit(Some(until)));
}

#[test]
fn the_time_of_a_limit_is_the_number_rather_than_the_text() {
    let result = |text: &str| {
        format!(
            "{REJECTED}\n{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":true,\"api_error_status\":429,\"result\":\"{text}\"}}"
        )
    };
    let until = "2026-11-30T19:00:37Z".parse().unwrap();
    let text = "You've hit your session limit · resets 12am (UTC)";
    let found = class(&read(&result(text), Exit::Code(1)));
    assert_eq!(found, Some(ErrorClass::Limit(Some(until))));
    let unknown = class(&read(&result("No more today"), Exit::Code(1)));
    assert_eq!(unknown, Some(ErrorClass::Limit(Some(until))));
    let not = "API Error: Server is temporarily limiting requests (not your usage limit)";
    assert_eq!(
        class(&read(&result(not), Exit::Code(1))),
        Some(ErrorClass::Rate)
    );
}

#[test]
fn fields_tell_what_no_text_does() {
    for (fields, expected) in [
        (
            r#""terminal_reason":"prompt_too_long""#,
            ErrorClass::Context,
        ),
        (r#""api_error_status":401"#, ErrorClass::Auth),
        (r#""api_error_status":503"#, ErrorClass::Overloaded),
        (r#""api_error_status":400"#, ErrorClass::Unknown),
        (
            r#""api_error":"usage_limit_reached","api_error_status":429"#,
            ErrorClass::Limit(None),
        ),
    ] {
        let stream = format!(
            r#"{{"type":"result","subtype":"success","is_error":true,"result":"x",{fields}}}"#
        );
        assert_eq!(
            class(&read(&stream, Exit::Code(1))),
            Some(expected),
            "{fields}"
        );
    }
    let stream = r#"{"type":"assistant","error":"billing_error"}
{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["x"]}"#;
    assert_eq!(
        class(&read(stream, Exit::Code(1))),
        Some(ErrorClass::Billing)
    );
}

#[test]
fn one_that_never_began_says_why_on_standard_error() {
    let finish = read_with(
        "",
        "Invalid API key · Fix external API key\n",
        Exit::Code(1),
    );
    assert_eq!(class(&finish), Some(ErrorClass::Auth));
    let TurnEnd::Failed(failure) = read_with("", "error: unknown option\n", Exit::Code(1)).end
    else {
        panic!()
    };
    assert_eq!(failure.class, ErrorClass::Protocol);
    assert!(!failure.said.unwrap().known);
}

#[test]
fn it_goes_to_the_place_that_the_environment_names() {
    for (url, expected) in [
        ("http://127.0.0.1:9911", "127.0.0.1:9911"),
        ("https://gateway.example.org/v1", "gateway.example.org:443"),
        ("http://gateway.example.org", "gateway.example.org:80"),
        ("https://[::1]:8443/x", "[::1]:8443"),
        ("ftp://gateway.example.org", "api.anthropic.com:443"),
        ("no url", "api.anthropic.com:443"),
        ("https://user@gateway.example.org", "api.anthropic.com:443"),
    ] {
        let hosts = hosts(&[(BASE_URL.into(), url.into())].into());
        let text: Vec<String> = hosts.iter().map(ToString::to_string).collect();
        assert_eq!(text, [expected], "{url}");
    }
}

/// What a turn is started with: nothing of the user's but what is named, and no key in an argument.
#[test]
fn a_launch_names_model_effort_and_credentials_and_nothing_else() {
    let harness = HarnessSettings {
        kind: KIND.into(),
        command: vec!["/bin/sh".into(), "--extra".into()],
        model: Some("opus".into()),
        ..HarnessSettings::default()
    };
    let settings = LaneSettings {
        harnesses: [(KIND.into(), harness)].into(),
        ..LaneSettings::default()
    };
    let lane = lanes::lane(&settings, "claude:high".parse().unwrap()).unwrap();
    let env = [("ANTHROPIC_API_KEY", "sk-key-123"), ("OTHER", "x")]
        .map(|(name, value)| (name.into(), value.into()))
        .into();
    let launch = lane
        .adapter
        .launch(&Turn {
            role: Role::Implementer,
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
    assert_eq!(argv[..3], ["/bin/sh", "--extra", "-p"]);
    for pair in [
        ["--model", "opus"],
        ["--effort", "high"],
        ["--setting-sources", "user"],
    ] {
        assert!(argv.windows(2).any(|two| two == pair), "{argv:?}");
    }
    assert!(
        !argv
            .iter()
            .any(|arg| arg.contains("sk-key") || arg.contains("do it"))
    );
    assert_eq!(launch.stdin, b"do it");
    assert_eq!(launch.env.get("ANTHROPIC_API_KEY").unwrap(), "sk-key-123");
    assert!(launch.env.get("OTHER").is_none());
    assert_eq!(launch.hosts, ["api.anthropic.com:443".parse().unwrap()]);
}

#[test]
fn people_are_shown_words_and_commands_instead_of_events() {
    let show = |line: &str| {
        let settings = HarnessSettings::default();
        let settings = Settings {
            name: KIND,
            harness: &settings,
            effort: None,
        };
        build(&settings).unwrap().show(line.as_bytes())
    };
    let message = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"Now\nthe tests."},{"type":"tool_use","name":"Bash","input":{"command":"ls -l"}}]}}"#;
    assert_eq!(show(message).unwrap(), "Now the tests. Bash: ls -l");
    assert_eq!(show(r#"{"type":"result"}"#), None);
    assert_eq!(show("plain").unwrap(), "plain");
}
