//! Makes text that others wrote safe to show: nothing in it can move the cursor, change colours,
//! set the window title, ring, or reorder what stands around it.

use std::borrow::Cow;

/// For one line: line breaks and tabs are shown as `\n` and `\t` too.
pub fn line(text: &str) -> Cow<'_, str> {
    escape(text, |_| false)
}

/// For a block of lines: line breaks and tabs stay.
pub fn block(text: &str) -> Cow<'_, str> {
    escape(text, |c| matches!(c, '\n' | '\t'))
}

fn escape(text: &str, keep: fn(char) -> bool) -> Cow<'_, str> {
    let plain = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
    if text.bytes().all(plain) || !text.chars().any(|c| is_active(c) && !keep(c)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_active(c) && !keep(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Control characters (C0, DEL, C1) and what changes the direction of the text around it.
fn is_active(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_not_copied() {
        assert!(matches!(line("Grüße 世界 ✓"), Cow::Borrowed(_)));
    }

    #[test]
    fn escape_sequences_become_visible() {
        assert_eq!(
            line("a\u{1b}[2Jb\u{9b}1mc\rd"),
            "a\\u{1b}[2Jb\\u{9b}1mc\\rd"
        );
        assert_eq!(line("x\u{202e}y"), "x\\u{202e}y");
        assert_eq!(line("bell\u{7}del\u{7f}"), "bell\\u{7}del\\u{7f}");
    }

    #[test]
    fn a_block_keeps_its_lines_and_nothing_else() {
        assert_eq!(block("a\n\tb\r\u{8}"), "a\n\tb\\r\\u{8}");
        assert_eq!(line("a\nb"), "a\\nb");
    }
}
