//! Recorded streams of real agent programs, read as a turn reads them. The heavy tests in `agents.rs`
//! record them: `HANGAR_WRITE_DOCS=1 cargo test --test it agents -- --ignored`.

use hangar::harness::adapter::Adapter;
use hangar::harness::finish::{Ended, ErrorClass, Exit, Finish, TurnEnd};
use hangar::harness::lanes;
use hangar::model::lane::LaneSettings;
use std::sync::Arc;

fn adapter(kind: &str) -> Arc<dyn Adapter> {
    let lane = lanes::lane(&LaneSettings::default(), kind.parse().unwrap());
    lane.unwrap().adapter
}

fn stream(name: &str) -> String {
    crate::docs::page(&format!("tests/streams/{name}.jsonl"))
}

fn read(kind: &str, stdout: &str, exit: Exit) -> Finish {
    adapter(kind).read(&Ended {
        exit,
        stdout: stdout.as_bytes(),
        stderr: b"",
        at: "2026-01-02T03:04:05Z".parse().unwrap(),
    })
}

fn class(finish: &Finish) -> Option<ErrorClass> {
    match &finish.end {
        TurnEnd::Done => None,
        TurnEnd::Failed(failure) => Some(failure.class),
    }
}

const KINDS: [&str; 2] = ["claude", "codex"];

/// Cases that are recorded of each program, with what the model did.
const CASES: [(&str, &str); 6] = [
    ("limit", "429 with the time of a reset"),
    ("rate", "429"),
    ("overloaded", "529 or 503"),
    ("auth", "401"),
    ("died", "broke off in the middle of an answer"),
    ("hung", "answered no more"),
];

/// The table of the page of evidence is what is read from the streams.
#[test]
fn the_page_of_agents_is_what_the_streams_say() {
    let mut table = String::from("| program | the model | `hangar run` says |\n|---|---|---|\n");
    for kind in KINDS {
        for (name, model) in CASES {
            let exit = if name == "hung" {
                Exit::Idle
            } else {
                Exit::Code(1)
            };
            let TurnEnd::Failed(failure) = read(kind, &stream(&format!("{kind}-{name}")), exit).end
            else {
                panic!()
            };
            let words = failure.words(true);
            let port = words.find("127.0.0.1:").map(|at| at + "127.0.0.1:".len());
            let words = match port {
                Some(at) => {
                    let rest = words[at..].trim_start_matches(|c: char| c.is_ascii_digit());
                    format!("{}PORT{rest}", &words[..at])
                }
                None => words,
            };
            table.extend([
                "| `",
                kind,
                "` | ",
                model,
                " | the implementer `",
                kind,
                "` ",
                &words,
                " |\n",
            ]);
        }
    }
    crate::docs::keep_part("docs/evidence/agents.md", "failures", &table);
}

#[test]
fn a_turn_that_is_done_tells_session_tokens_and_version() {
    for kind in KINDS {
        let finish = read(kind, &stream(&format!("{kind}-done")), Exit::Code(0));
        assert_eq!(finish.end, TurnEnd::Done);
        let usage = finish.usage.unwrap();
        assert_eq!((usage.input, usage.output), (4000, 200), "{kind}");
        assert_eq!(finish.session.unwrap().len(), 36);
        let version = (kind == "claude").then(|| "2.1.197".to_owned());
        assert_eq!(finish.version, version);
    }
}

#[test]
fn each_failure_has_its_class() {
    let lifted = "2026-01-02T10:30:00Z".parse().unwrap();
    for kind in KINDS {
        for (name, expected) in [
            ("limit", ErrorClass::Limit(Some(lifted))),
            ("rate", ErrorClass::Rate),
            ("overloaded", ErrorClass::Overloaded),
            ("auth", ErrorClass::Auth),
            ("died", ErrorClass::Overloaded),
        ] {
            let stream = stream(&format!("{kind}-{name}"));
            let finish = read(kind, &stream, Exit::Code(1));
            assert_eq!(class(&finish), Some(expected), "{kind} {name}");
            let TurnEnd::Failed(failure) = &finish.end else {
                panic!()
            };
            assert!(
                failure.said.as_ref().unwrap().known,
                "{kind} {name}: {failure:?}"
            );
        }
        let hung = stream(&format!("{kind}-hung"));
        let finish = read(kind, &hung, Exit::Idle);
        assert_eq!(class(&finish), Some(ErrorClass::Interrupted), "{kind}");
    }
}

/// Wherever a stream breaks off, and whatever stands in between, it is never taken for a success, and
/// what nobody knows changes nothing.
#[test]
fn a_half_stream_is_no_success_and_unknown_events_change_nothing() {
    for kind in KINDS {
        let whole = stream(&format!("{kind}-done"));
        let lines: Vec<&str> = whole.trim_end().lines().collect();
        let last = whole.trim_end().rfind('\n').unwrap();
        for end in [0, 1, last / 2, last, last + 30, whole.trim_end().len() - 1] {
            let half = String::from_utf8_lossy(&whole.as_bytes()[..end]);
            let finish = read(kind, &half, Exit::Code(0));
            assert_eq!(class(&finish), Some(ErrorClass::Protocol), "{kind} {end}");
        }
        let odd = "{\"type\":\"brand_new\",\"is_error\":true}\nnot json\n{\"type\":7}\n";
        let mixed = [odd, &lines.join(&format!("\n{odd}")), "\n"].concat();
        let plain = read(kind, &whole, Exit::Code(0));
        assert_eq!(read(kind, &mixed, Exit::Code(0)), plain, "{kind}");
    }
}

#[test]
fn people_are_shown_no_event() {
    for kind in KINDS {
        let adapter = adapter(kind);
        let whole = stream(&format!("{kind}-done"));
        let shown: Vec<String> = whole
            .lines()
            .filter_map(|line| adapter.show(line.as_bytes()))
            .collect();
        assert!(
            shown.iter().any(|line| line.contains("calc.sh")),
            "{shown:?}"
        );
        assert!(shown.iter().any(|line| line == "All done."), "{shown:?}");
        assert!(
            !shown.iter().any(|line| line.contains("\"type\"")),
            "{shown:?}"
        );
    }
}
