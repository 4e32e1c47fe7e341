//! Lines that fit the terminal.
//!
//! What a person copies stays whole: a word, a path, an id, anything between backticks, anything
//! in the style of a command. A line that has columns goes on in the column where its text began.

use super::style::{Label, paint};
use std::borrow::Cow;
use unicode_width::UnicodeWidthChar as _;

/// Narrower than this, breaking makes a text harder to read than the terminal's own wrapping.
const MIN_WIDTH: usize = 30;

/// `text` in lines of at most `width` columns where its words allow that; as it is without a width.
pub(super) fn wrap(text: &str, width: Option<usize>) -> Cow<'_, str> {
    let Some(width) = width.filter(|width| *width >= MIN_WIDTH) else {
        return Cow::Borrowed(text);
    };
    if text.lines().all(|line| columns(line) <= width) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 64);
    for line in text.split_inclusive('\n') {
        let (line, end) = match line.strip_suffix('\n') {
            Some(line) => (line, "\n"),
            None => (line, ""),
        };
        fold(line, width, &mut out);
        out.push_str(end);
    }
    Cow::Owned(out)
}

/// Columns of a line, without its colours.
fn columns(line: &str) -> usize {
    pieces(line).iter().map(|piece| piece.columns).sum()
}

/// A word or the gap between two.
#[derive(Debug)]
struct Piece<'t> {
    text: &'t str,
    columns: usize,
    is_gap: bool,
}

/// Splits a line into words and gaps. A colour belongs to the word that it touches.
fn pieces(line: &str) -> Vec<Piece<'_>> {
    let command = paint(Label::Command, "|");
    let (begin, end) = command.split_once('|').unwrap_or_default();
    let mut out: Vec<Piece<'_>> = Vec::new();
    let (mut at, mut start, mut columns, mut was_gap) = (0, 0, 0, false);
    while at < line.len() {
        let rest = &line[at..];
        let (len, wide, is_gap) = if rest.starts_with(begin) {
            let len = rest
                .find(end)
                .map_or(begin.len(), |found| found + end.len());
            (len, visible(&rest[..len]), false)
        } else if let Some(len) = escape_sequence(rest) {
            (len, 0, false)
        } else if let Some(len) = quoted(rest) {
            (len, visible(&rest[..len]), false)
        } else {
            let c = rest.chars().next().unwrap_or_default();
            (c.len_utf8(), c.width().unwrap_or(0), c == ' ')
        };
        if is_gap != was_gap && at > start {
            out.push(Piece {
                text: &line[start..at],
                columns,
                is_gap: was_gap,
            });
            (start, columns) = (at, 0);
        }
        was_gap = is_gap;
        columns += wide;
        at += len;
    }
    if at > start {
        out.push(Piece {
            text: &line[start..],
            columns,
            is_gap: was_gap,
        });
    }
    out
}

/// Length of the escape sequence at the beginning.
fn escape_sequence(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("\u{1b}[")?;
    let end = rest.find(|c: char| c.is_ascii_alphabetic())?;
    Some(text.len() - rest.len() + end + 1)
}

/// Length of what stands between two backticks at the beginning.
fn quoted(text: &str) -> Option<usize> {
    let rest = text.strip_prefix('`')?;
    rest.find('`').map(|end| end + 2)
}

fn visible(text: &str) -> usize {
    let (mut at, mut columns) = (0, 0);
    while at < text.len() {
        let rest = &text[at..];
        if let Some(len) = escape_sequence(rest) {
            at += len;
        } else {
            let c = rest.chars().next().unwrap_or_default();
            columns += c.width().unwrap_or(0);
            at += c.len_utf8();
        }
    }
    columns
}

/// Where the lines after the first begin: behind the last gap of two or more columns in the first
/// half, else behind the label (`hint:`) of a message, else below the first word.
fn hang(pieces: &[Piece<'_>], width: usize) -> usize {
    let (mut column, mut hang) = (0, 0);
    for (index, piece) in pieces.iter().enumerate() {
        column += piece.columns;
        let wide = piece.is_gap && (piece.columns > 1 || index == 0);
        let is_label = |before: &Piece<'_>| {
            let text = anstream::adapter::strip_str(before.text).to_string();
            ["error:", "warning:", "hint:", "note:", "fault:"].contains(&text.as_str())
        };
        let after_label = piece.is_gap && index > 0 && index < 3 && is_label(&pieces[index - 1]);
        if (wide || after_label) && column <= width / 2 {
            hang = column;
        }
    }
    hang
}

fn fold(line: &str, width: usize, out: &mut String) {
    let pieces = pieces(line);
    let hang = hang(&pieces, width);
    let mut column = 0;
    let mut gap: Option<&Piece<'_>> = None;
    for piece in &pieces {
        if piece.is_gap {
            gap = Some(piece);
            continue;
        }
        let before = gap.take();
        let space = before.map_or(0, |gap| gap.columns);
        if column > hang && column + space + piece.columns > width {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', hang));
            column = hang;
        } else if let Some(gap) = before {
            out.push_str(gap.text);
            column += space;
        }
        out.push_str(piece.text);
        column += piece.columns;
    }
    if let Some(gap) = gap {
        out.push_str(gap.text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn a_sentence_goes_on_under_its_first_word() {
        let text = "hint: this sentence is longer than thirty columns";
        assert_eq!(
            wrap(text, Some(30)),
            "hint: this sentence is longer\n      than thirty columns"
        );
        assert_eq!(wrap(text, None), text);
        assert_eq!(wrap(text, Some(49)), text);
    }

    #[test]
    fn columns_stay_columns() {
        let label = paint(Label::Good, "ok");
        let text = format!("{label}     git    a detail that does not fit here\nshort\n");
        assert_eq!(
            plain(&wrap(&text, Some(30))),
            "ok     git    a detail that\n              does not fit\n              here\nshort\n"
        );
    }

    #[test]
    fn what_is_copied_stays_whole() {
        let command = paint(
            Label::Command,
            "hangar review KAN-80 && hangar approve KAN-80",
        );
        let text = format!("next       {command}");
        assert_eq!(plain(&wrap(&text, Some(40))), plain(&text));
        let text = "then type `git commit --allow-empty -m Begin` in it";
        assert_eq!(
            wrap(text, Some(30)),
            "then type\n`git commit --allow-empty -m Begin`\nin it"
        );
        let path = format!("see /{}/x for more", "long".repeat(10));
        assert_eq!(
            wrap(&path, Some(30)),
            format!("see\n/{}/x\nfor more", "long".repeat(10))
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn nothing_but_white_space_changes(text in "[a-z `\u{1b}\\[m世]{0,200}", width in 30..90_usize) {
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            prop_assert_eq!(words(&wrap(&text, Some(width))), words(&text));
        }
    }
}
