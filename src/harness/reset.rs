//! When a limit is lifted, from the words of a program.
//!
//! Times of day are those of the sandbox, which is in UTC. A time in another zone is not guessed at.

use jiff::civil::{Date, Time};
use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp, ToSpan as _};

/// Words after which a time stands.
const MARKS: &[&str] = &[
    "try again at ",
    "resets on ",
    "reset at ",
    "resets ",
    "try again in ",
];
const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
/// No limit lasts longer; what is later was misread.
const LONGEST: SignedDuration = SignedDuration::from_hours(24 * 100);

/// The time in a text that is in lower case and single-spaced, as seen at `now`. `None` where there is
/// none that can be read for sure.
pub(super) fn until(text: &str, now: Timestamp) -> Option<Timestamp> {
    let found = match text.split_once("reached|") {
        Some((_, seconds)) => unix(seconds),
        None => MARKS.iter().find_map(|mark| {
            let (_, rest) = text.split_once(mark)?;
            if *mark == "try again in " {
                after(rest, now)
            } else {
                at(rest, now)
            }
        }),
    }?;
    let ahead = found.duration_since(now);
    (ahead > SignedDuration::ZERO && ahead < LONGEST).then_some(found)
}

fn unix(text: &str) -> Option<Timestamp> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    Timestamp::from_second(text[..end].parse().ok()?).ok()
}

/// `5 days 22 hours 11 minutes`, `1.5s`
fn after(text: &str, now: Timestamp) -> Option<Timestamp> {
    let mut seconds = 0.0_f64;
    let mut words = text.split(' ').peekable();
    let mut any = false;
    while let Some(word) = words.next() {
        let word = word.trim_end_matches(['.', ',']);
        let end = word
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(word.len());
        let Ok(number) = word[..end].parse::<f64>() else {
            break;
        };
        let unit = match &word[end..] {
            "" => words.next().unwrap_or_default(),
            unit => unit,
        };
        seconds += number * unit_seconds(unit.trim_end_matches(['.', ',']))?;
        any = true;
    }
    let span = SignedDuration::try_from_secs_f64(seconds).ok()?;
    any.then(|| now.checked_add(span).ok()).flatten()
}

fn unit_seconds(unit: &str) -> Option<f64> {
    Some(match unit {
        "s" | "sec" | "second" | "seconds" => 1.0,
        "m" | "min" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86400.0,
        _ => return None,
    })
}

/// `1:38pm (utc)`, `3:51 pm.`, `dec 3 at 4pm (utc)`, `sep 8th, 2026 7:58 pm`
fn at(text: &str, now: Timestamp) -> Option<Timestamp> {
    let words: Vec<&str> = text
        .split([' ', ','])
        .filter(|word| !word.is_empty() && *word != "at")
        .collect();
    let today = Offset::UTC.to_datetime(now).date();
    let (date, rest) = date(&words, today)?;
    let (time, rest) = time(rest)?;
    let zone = rest.first().and_then(|word| word.strip_prefix('('));
    if zone.is_some_and(|zone| !matches!(zone.trim_end_matches([')', '.']), "utc" | "gmt")) {
        return None;
    }
    let on = |date: Date| Offset::UTC.to_timestamp(date.to_datetime(time)).ok();
    match date {
        Some(date) => on(date),
        None => on(today)
            .filter(|found| *found > now)
            .or_else(|| on(today.checked_add(1.day()).ok()?)),
    }
}

type Rest<'a, 'b> = &'b [&'a str];

/// A date, where the words begin with one.
fn date<'a, 'b>(words: Rest<'a, 'b>, today: Date) -> Option<(Option<Date>, Rest<'a, 'b>)> {
    let [month, day, rest @ ..] = words else {
        return Some((None, words));
    };
    let Some(month) = MONTHS.iter().position(|name| month.starts_with(name)) else {
        return Some((None, words));
    };
    let month = i8::try_from(month + 1).ok()?;
    let day = day.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let day: i8 = day.parse().ok()?;
    let year = rest.first().filter(|word| word.len() == 4);
    if let Some(year) = year.and_then(|word| word.parse::<i16>().ok()) {
        return Some((Some(Date::new(year, month, day).ok()?), &rest[1..]));
    }
    let this = Date::new(today.year(), month, day).ok()?;
    let date = if this < today {
        Date::new(today.year() + 1, month, day).ok()?
    } else {
        this
    };
    Some((Some(date), rest))
}

/// A time of day with `am` or `pm`, in the same word or the next.
fn time<'a, 'b>(words: Rest<'a, 'b>) -> Option<(Time, Rest<'a, 'b>)> {
    let (first, rest) = words.split_first()?;
    let end = first
        .find(|c: char| !c.is_ascii_digit() && c != ':')
        .unwrap_or(first.len());
    let (digits, half) = first.split_at(end);
    let (half, rest) = match (half, rest.split_first()) {
        ("", Some((next, rest))) => (*next, rest),
        ("", None) => return None,
        (half, _) => (half, rest),
    };
    let half = half.trim_end_matches('.');
    let (hour, minute) = digits.split_once(':').unwrap_or((digits, "0"));
    let (hour, minute): (i8, i8) = (hour.parse().ok()?, minute.parse().ok()?);
    let hour = match (half, hour) {
        ("am", 12) => 0,
        ("am", 1..=11) | ("pm", 12) => hour,
        ("pm", 1..=11) => hour + 12,
        _ => return None,
    };
    Some((Time::new(hour, minute, 0, 0).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<String> {
        let now = "2026-11-30T17:53:00Z".parse().unwrap();
        until(text, now).map(|time| time.to_string())
    }

    #[test]
    fn times_are_read_as_the_next_such_time() {
        for (text, expected) in [
            ("try again at 6:53 pm.", "2026-11-30T18:53:00Z"),
            ("try again at 12:05 am.", "2026-12-01T00:05:00Z"),
            ("resets 5pm (utc)", "2026-12-01T17:00:00Z"),
            ("resets jan 2 at 12pm (utc)", "2027-01-02T12:00:00Z"),
            (
                "try again at dec 8th, 2026 7:58 pm.",
                "2026-12-08T19:58:00Z",
            ),
            ("please try again in 1.5s.", "2026-11-30T17:53:01.5Z"),
            ("try again in 2 hours.", "2026-11-30T19:53:00Z"),
        ] {
            assert_eq!(read(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_read_for_sure_is_no_time() {
        for text in [
            "try again later.",
            "resets 3pm (asia/seoul)",
            "resets soon",
            "resets 25:00 pm",
            "resets feb 31 at 3pm (utc)",
            "try again in 3 fortnights",
            "try again in 400 days",
            "try again at 13 pm",
            "limit reached|1",
            "limit reached|99999999999999999999",
            "try again in 99999999999999999999999 days",
            "try again at dec 8th, 2025 7:58 pm.",
            "",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
