use super::*;
use crate::harness::finish::{ErrorClass, Failure};
use crate::harness::lanes;
use crate::model::lane::{HarnessSettings, LaneSettings};
use std::fs;

fn clock() -> Clock {
    Clock::Fixed("2026-01-02T03:04:05Z".parse().unwrap())
}

fn lane(name: &str) -> Lane {
    let harness = HarnessSettings {
        kind: "command".into(),
        command: vec!["/bin/true".into()],
        env: vec!["MY_KEY".into()],
        ..HarnessSettings::default()
    };
    let settings = LaneSettings {
        harnesses: [(name.to_owned(), harness)].into(),
        ..LaneSettings::default()
    };
    lanes::lane(&settings, name.parse().unwrap()).unwrap()
}

fn finish(class: Option<ErrorClass>) -> Finish {
    let failed = |class| {
        TurnEnd::Failed(Failure {
            class,
            why: String::new(),
            said: None,
        })
    };
    Finish {
        end: class.map_or(TurnEnd::Done, failed),
        usage: None,
        session: None,
        version: None,
    }
}

fn env(key: &str) -> Environment {
    [("MY_KEY".into(), key.into())].into()
}

/// Fails with this class, with the secret `key`.
fn fail(ledger: &Ledger, name: &str, class: ErrorClass, key: &str) {
    let now = ledger.now();
    ledger
        .note(&lane(name), &env(key), &finish(Some(class)), now)
        .unwrap();
}

fn is_out(ledger: &Ledger, name: &str, key: &str) -> bool {
    let names = lane(name).adapter.variables();
    let book = ledger.look();
    let outage = book.outage(name, &names, &env(key), ledger.now());
    outage.is_some()
}

#[test]
fn what_one_process_notes_another_reads_without_the_secret() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state/hangar");
    let one = Ledger::new(&state, clock());
    fail(&one, "a", ErrorClass::Auth, "sk-0123456789");
    fail(&one, "b", ErrorClass::Context, "sk-0123456789");
    let other = Ledger::new(&state, clock());
    assert!(is_out(&other, "a", "sk-0123456789"));
    assert!(!is_out(&other, "a", "sk-another"), "another login");
    assert!(!is_out(&other, "b", "sk-0123456789"));
    let text = fs::read_to_string(state.join(FILE)).unwrap();
    assert!(!text.contains("sk-"), "{text}");
    let hash = crate::model::digest::Digest::of(b"sk-0123456789").hex();
    assert!(!text.contains(&hash[..8]), "{text}");
    other.clear("a").unwrap();
    assert!(!is_out(&one, "a", "sk-0123456789"));
}

#[test]
fn a_served_turn_ends_an_outage_and_makes_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::new(dir.path(), clock());
    let served = || ledger.note(&lane("a"), &env("k"), &finish(None), ledger.now());
    served().unwrap();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    fail(&ledger, "a", ErrorClass::Overloaded, "k");
    assert!(is_out(&ledger, "a", "k"));
    served().unwrap();
    assert!(!is_out(&ledger, "a", "k"));
}

#[test]
fn processes_that_write_at_once_lose_nothing_of_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let name = |number: usize| format!("h{number}");
    std::thread::scope(|scope| {
        for number in 0..16 {
            let (dir, name) = (dir.path(), name(number));
            scope.spawn(move || fail(&Ledger::new(dir, clock()), &name, ErrorClass::Auth, "k"));
        }
    });
    let ledger = Ledger::new(dir.path(), clock());
    for number in 0..16 {
        assert!(is_out(&ledger, &name(number), "k"), "{number}");
    }
}

#[test]
fn damage_takes_no_more_than_it_hit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE);
    let ledger = Ledger::new(dir.path(), clock());
    fail(&ledger, "a", ErrorClass::Auth, "k");
    fail(&ledger, "b", ErrorClass::Rate, "k");
    let whole = fs::read_to_string(&path).unwrap();
    let put = |text: &[u8]| files::write_atomic(&path, text, 0o600).unwrap();
    put(whole.replace("\"rate\"", "\"odd\"").as_bytes());
    assert!(is_out(&ledger, "a", "k") && !is_out(&ledger, "b", "k"));
    let newer = whole.replace("\"format\": 1", "\"format\": 2");
    let keyless = whole.replace("\"key\": \"", "\"key\": \"no hex ");
    let cases = [
        &whole.as_bytes()[..whole.len() / 2],
        b"",
        b"\xff\xfe",
        b"[]",
    ];
    for text in cases
        .into_iter()
        .chain([newer.as_bytes(), keyless.as_bytes()])
    {
        put(text);
        assert!(!is_out(&ledger, "a", "k"));
        fail(&ledger, "c", ErrorClass::Auth, "k");
        assert!(is_out(&ledger, "c", "k"));
    }
}

#[test]
fn what_cannot_be_written_holds_for_this_process() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("no-folder");
    files::write_atomic(&state, b"", 0o600).unwrap();
    let ledger = Ledger::new(&state, clock());
    let ended = finish(Some(ErrorClass::Auth));
    let note = || ledger.note(&lane("a"), &env("k"), &ended, ledger.now());
    note().unwrap_err();
    assert!(is_out(&ledger, "a", "k"));
    note().unwrap();
    ledger.clear("a").unwrap();
    assert!(!is_out(&ledger, "a", "k"));
}
