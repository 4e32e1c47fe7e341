use super::*;

const LOGIN: Login = Login(7);

fn at(text: &str) -> Timestamp {
    format!("2026-01-02T{text}Z").parse().unwrap()
}

fn failed(known: Option<&Outage>, class: ErrorClass, now: &str) -> Outage {
    after_failure(known, class, at(now), LOGIN).unwrap()
}

#[test]
fn a_limit_ends_when_the_program_says_and_another_login_has_none() {
    let lifted = at("10:30:00");
    let limit = failed(None, ErrorClass::Limit(Some(lifted)), "03:00:00");
    assert_eq!(limit.until, Some(lifted));
    assert!(limit.stands(at("10:29:59"), LOGIN));
    assert!(!limit.stands(lifted, LOGIN));
    assert!(!limit.stands(at("03:00:01"), Login(8)));
    assert_eq!(
        limit.to_string(),
        "has reached its usage limit, until 2026-01-02 10:30 UTC"
    );
    let soon = ErrorClass::Limit(Some(at("03:00:01")));
    assert_eq!(failed(None, soon, "03:00:00").until, Some(at("03:01:00")));
    let untold = failed(None, ErrorClass::Limit(None), "03:00:00");
    assert_eq!(untold.until, Some(at("03:30:00")));
}

#[test]
fn waits_grow_from_failure_to_failure_up_to_a_bound() {
    for (class, waits) in [
        (ErrorClass::Overloaded, [1, 2, 4, 8, 16, 30, 30]),
        (ErrorClass::Rate, [1, 2, 4, 8, 16, 30, 30]),
        (
            ErrorClass::Billing,
            [60, 120, 240, 480, 960, 24 * 60, 24 * 60],
        ),
        (ErrorClass::Limit(None), [30, 60, 120, 240, 240, 240, 240]),
    ] {
        let (mut known, mut now) = (None, at("03:00:00"));
        for minutes in waits {
            let next = after_failure(known.as_ref(), class, now, LOGIN).unwrap();
            let until = next.until.unwrap();
            assert_eq!(
                until.duration_since(now),
                SignedDuration::from_mins(minutes)
            );
            now = until;
            known = Some(next);
        }
        // After a day of quiet it begins anew.
        now = later(now, ROW + SignedDuration::from_secs(1));
        let anew = after_failure(known.as_ref(), class, now, LOGIN).unwrap();
        assert_eq!(anew.times, 1);
    }
}

#[test]
fn what_another_run_met_neither_grows_nor_shortens_a_wait() {
    let first = failed(None, ErrorClass::Overloaded, "03:00:00");
    let same = failed(Some(&first), ErrorClass::Overloaded, "03:00:10");
    assert_eq!((same.times, same.until), (1, Some(at("03:01:10"))));
    let limit = failed(None, ErrorClass::Limit(Some(at("10:30:00"))), "03:00:00");
    assert_eq!(failed(Some(&limit), ErrorClass::Rate, "03:00:10"), limit);
    let auth = failed(Some(&limit), ErrorClass::Auth, "03:00:10");
    assert_eq!((auth.kind, auth.until), (Kind::Auth, None));
    assert_eq!(failed(Some(&auth), ErrorClass::Rate, "03:00:20"), auth);
}

#[test]
fn a_login_that_is_not_accepted_stands_until_it_changes() {
    let auth = failed(None, ErrorClass::Auth, "03:00:00");
    let later = "2031-01-01T00:00:00Z".parse().unwrap();
    assert!(auth.stands(later, LOGIN) && !auth.is_past(later));
    assert!(!auth.stands(later, Login(8)));
}

#[test]
fn what_is_no_outage_is_not_taken_for_one() {
    for class in [
        ErrorClass::Context,
        ErrorClass::Interrupted,
        ErrorClass::Protocol,
        ErrorClass::Unknown,
    ] {
        assert_eq!(after_failure(None, class, at("03:00:00"), LOGIN), None);
    }
}

#[test]
fn what_a_wrong_clock_recorded_stands_for_nothing() {
    let auth = failed(None, ErrorClass::Auth, "09:00:00");
    assert!(!auth.stands(at("08:00:00"), LOGIN));
    assert!(auth.stands(at("08:56:00"), LOGIN));
}

#[test]
fn a_served_turn_ends_only_what_was_met_before_it() {
    let limit = failed(None, ErrorClass::Limit(None), "03:00:00");
    assert!(is_over(&limit, at("03:00:00")));
    assert!(!is_over(&limit, at("02:59:59")));
}

#[test]
fn a_login_is_told_from_another_by_name_and_value_and_key() {
    let names = ["A".to_owned(), "B".to_owned()];
    let env = |pairs: &[(&str, &str)]| -> Environment {
        pairs.iter().map(|(k, v)| (k.into(), v.into())).collect()
    };
    let login = |key: &[u8], pairs: &[(&str, &str)]| Login::of(key, &names, &env(pairs));
    let one = login(b"k", &[("A", "x"), ("B", "y")]);
    assert_eq!(one, login(b"k", &[("A", "x"), ("B", "y"), ("C", "z")]));
    for other in [
        login(b"l", &[("A", "x"), ("B", "y")]),
        login(b"k", &[("A", "xy"), ("B", "")]),
        login(b"k", &[("A", "x")]),
        login(b"k", &[("A", "y"), ("B", "x")]),
    ] {
        assert_ne!(one, other);
    }
}
