//! Event streams: one JSON object a line, as agent programs write them.
//!
//! Hostile and unfinished: lines that are no object, half lines and events that nobody knows are
//! passed over; a line of any length costs no more than itself.

use super::finish::Said;
use serde_json::Value;

/// Longest line that is read. An event that decides is far shorter.
const MAX_LINE: usize = 4 << 20;
/// Longest text that is told.
const MAX_TEXT: usize = 200;
/// How much of the end of standard error is looked at.
const TAIL: usize = 4 << 10;

/// Every object of a stream, in order.
pub(super) fn events(stream: &[u8]) -> impl Iterator<Item = Value> + '_ {
    stream.split(|byte| *byte == b'\n').filter_map(event)
}

/// The object of one line.
pub(super) fn event(line: &[u8]) -> Option<Value> {
    let line = line.trim_ascii();
    if line.first() != Some(&b'{') || line.len() > MAX_LINE {
        return None;
    }
    serde_json::from_slice(line).ok()
}

/// A text below an event, by a JSON pointer.
pub(super) fn text<'v>(event: &'v Value, pointer: &str) -> Option<&'v str> {
    event.pointer(pointer)?.as_str()
}

/// A count below an event; 0 where there is none.
pub(super) fn count(event: &Value, pointer: &str) -> u64 {
    event.pointer(pointer).and_then(Value::as_u64).unwrap_or(0)
}

/// A text as one short line without control characters.
pub(super) fn line(text: &str) -> String {
    let mut out = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        if word.is_empty() {
            continue;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.extend(word.chars().take(MAX_TEXT + 1));
        if out.chars().count() > MAX_TEXT {
            return out.chars().take(MAX_TEXT).chain(['…']).collect();
        }
    }
    out
}

/// What a program said about its failure; nothing where that is empty.
pub(super) fn said(text: &str, known: bool) -> Option<Said> {
    let text = line(text);
    (!text.is_empty()).then_some(Said { text, known })
}

/// The end of standard error.
pub(super) fn tail(stderr: &[u8]) -> String {
    let from = stderr.len().saturating_sub(TAIL);
    String::from_utf8_lossy(&stderr[from..]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_event_is_passed_over() {
        let stream = b"warning: x\n{\"a\":1}\n[1]\n\n{\"b\":\n  {\"c\":{\"d\":\"e\"}} \r\n\xff\xfe\n{\"half\":tr";
        let found: Vec<Value> = events(stream).collect();
        assert_eq!(found.len(), 2);
        assert_eq!(count(&found[0], "/a"), 1);
        assert_eq!(text(&found[1], "/c/d"), Some("e"));
        assert_eq!(count(&found[1], "/c/d"), 0);
    }

    #[test]
    fn a_line_that_never_ends_or_nests_without_end_is_passed_over() {
        let mut long = b"{\"a\":\"".to_vec();
        long.resize(MAX_LINE + 10, b'x');
        long.extend(b"\"}\n{\"b\":2}\n");
        long.extend([b"{\"a\":".repeat(10_000), b"\n".to_vec()].concat());
        assert_eq!(events(&long).count(), 1);
    }

    #[test]
    fn a_told_text_is_one_short_line() {
        assert_eq!(line(" a\n\tb\u{1b}[31m c "), "a b [31m c");
        assert_eq!(line(&"é".repeat(900)).chars().count(), MAX_TEXT + 1);
        assert_eq!(said(" \n", true), None);
        assert_eq!(tail(&[b'a'; 9000]).len(), TAIL);
    }
}
