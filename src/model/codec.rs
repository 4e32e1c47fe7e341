//! The subset of TOML 1.0 that signed documents use, read strictly.
//!
//! Format: `docs/format.md`, "Documents". Bytes are signed, hashed and checked as stored; nothing
//! here writes a document again in order to verify it.

use crate::model::digest::Digest;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Write as _;
use toml::de::{DeInteger, DeTable, DeValue};
use toml_parser::Source;
use toml_parser::lexer::TokenKind;

/// Largest document in bytes.
pub const MAX_BYTES: usize = 1 << 20;
/// Deepest nesting of tables and arrays.
pub const MAX_DEPTH: usize = 8;
/// Most values in one document.
pub const MAX_VALUES: usize = 50_000;

/// Why bytes are not a document of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A limit of the format was passed.
    #[error("document is larger than the format allows: {0}")]
    TooLarge(&'static str),
    /// The bytes are outside the TOML subset.
    #[error("document is outside the TOML subset: {what} (byte {at})")]
    Subset {
        /// What was found.
        what: &'static str,
        /// Where.
        at: usize,
    },
    /// TOML syntax, an unknown or missing key, or a value of the wrong type.
    #[error("malformed document: {0}")]
    Malformed(String),
    /// The document was written in a newer format than this program knows.
    #[error("document has format {found}, this program knows up to {known}; use a newer hangar")]
    Newer {
        /// Format number of the document.
        found: i64,
        /// Newest format known here.
        known: i64,
    },
}

/// Newest format number that this program reads and the only one that it writes.
pub const FORMAT: i64 = 1;

/// Reads a document: limits, subset, format number, then exactly the keys of `T`.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    if bytes.len() > MAX_BYTES {
        return Err(Error::TooLarge("bytes"));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| Error::Subset {
        what: "invalid UTF-8",
        at: error.valid_up_to(),
    })?;
    if text.starts_with('\u{feff}') {
        return Err(Error::Subset {
            what: "a byte order mark",
            at: 0,
        });
    }
    check_tokens(text)?;
    let parsed = DeTable::parse(text).map_err(|error| malformed(&error))?;
    let table = parsed.get_ref();
    let mut values = 0;
    for value in table.values() {
        check_value(value.get_ref(), 1, &mut values)?;
    }
    let format = table
        .get("format")
        .and_then(|value| value.get_ref().as_integer());
    match format.and_then(integer) {
        None => return Err(Error::Malformed("no format number".into())),
        Some(found) if found > FORMAT => {
            return Err(Error::Newer {
                found,
                known: FORMAT,
            });
        }
        Some(FORMAT) => {}
        Some(found) => return Err(Error::Malformed(format!("unknown format {found}"))),
    }
    T::deserialize(toml::Deserializer::from(parsed)).map_err(|error| malformed(&error))
}

/// Writes a document. The caller signs, hashes and stores exactly these bytes.
///
/// # Errors
/// [`Error::Malformed`] or [`Error::TooLarge`] when the value could not be read back.
pub fn encode<T: Serialize + DeserializeOwned>(value: &T) -> Result<Vec<u8>, Error> {
    let text = toml::to_string(value).map_err(|error| Error::Malformed(error.to_string()))?;
    decode::<T>(text.as_bytes())?;
    Ok(text.into_bytes())
}

/// The digest of a document: SHA-256 of its bytes.
pub fn digest(bytes: &[u8]) -> Digest {
    Digest::of(bytes)
}

fn malformed(error: &toml::de::Error) -> Error {
    let mut text = error.message().replace('\n', " ");
    if let Some(span) = error.span() {
        let _ = write!(text, " (byte {})", span.start);
    }
    Error::Malformed(text)
}

/// Refuses what TOML 1.1 added, what readers disagree on, and what could hide text: comments,
/// carriage returns, line breaks and trailing commas in inline tables, `\e` and `\x` escapes,
/// numbers other than decimal integers, dates.
fn check_tokens(text: &str) -> Result<(), Error> {
    let mut depth = 0_usize;
    let mut open: Vec<Bracket> = Vec::new();
    let mut last_significant = None;
    for token in Source::new(text).lex() {
        let (start, end) = (token.span().start(), token.span().end());
        let raw = text.get(start..end).unwrap_or_default();
        let refuse = |what| Err(Error::Subset { what, at: start });
        match token.kind() {
            TokenKind::Comment => return refuse("a comment"),
            TokenKind::Newline if raw.contains('\r') => return refuse("a carriage return"),
            TokenKind::Newline if open.last() == Some(&Bracket::Inline) => {
                return refuse("a line break in an inline table");
            }
            TokenKind::LeftCurlyBracket | TokenKind::LeftSquareBracket => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err(Error::TooLarge("nesting"));
                }
                open.push(Bracket::of(token.kind(), open.last(), last_significant));
            }
            TokenKind::RightCurlyBracket | TokenKind::RightSquareBracket => {
                if last_significant == Some(TokenKind::Comma)
                    && open.last() == Some(&Bracket::Inline)
                {
                    return refuse("a trailing comma in an inline table");
                }
                open.pop();
                depth = depth.saturating_sub(1);
            }
            TokenKind::BasicString | TokenKind::MlBasicString if has_new_escape(raw) => {
                return refuse("an escape that TOML 1.0 does not know");
            }
            TokenKind::MlBasicString | TokenKind::MlLiteralString if raw.contains('\r') => {
                return refuse("a carriage return");
            }
            TokenKind::Dot
            | TokenKind::Equals
            | TokenKind::Comma
            | TokenKind::Whitespace
            | TokenKind::Newline
            | TokenKind::LiteralString
            | TokenKind::BasicString
            | TokenKind::MlLiteralString
            | TokenKind::MlBasicString
            | TokenKind::Atom
            | TokenKind::Eof => {}
        }
        let is_value =
            last_significant == Some(TokenKind::Equals) || open.last() == Some(&Bracket::Array);
        if is_value && token.kind() == TokenKind::Atom && !is_plain_atom(raw) {
            return refuse("a value other than a string, a decimal integer or a boolean");
        }
        if !matches!(token.kind(), TokenKind::Whitespace | TokenKind::Newline) {
            last_significant = Some(token.kind());
        }
    }
    Ok(())
}

/// What an open bracket began.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bracket {
    /// A `[table]` or `[[table]]` heading.
    Heading,
    /// An array.
    Array,
    /// An inline table.
    Inline,
}

impl Bracket {
    fn of(kind: TokenKind, around: Option<&Self>, before: Option<TokenKind>) -> Self {
        match (kind, around) {
            (TokenKind::LeftCurlyBracket, _) => Self::Inline,
            (_, Some(Self::Heading)) => Self::Heading,
            // Outside of everything, only what follows `=` is a value.
            (_, None) if before != Some(TokenKind::Equals) => Self::Heading,
            _ => Self::Array,
        }
    }
}

fn has_new_escape(raw: &str) -> bool {
    let mut bytes = raw.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'\\' && matches!(bytes.next(), Some(b'e' | b'x')) {
            return true;
        }
    }
    false
}

fn is_plain_atom(raw: &str) -> bool {
    let digits = raw.strip_prefix('-').unwrap_or(raw);
    raw == "true"
        || raw == "false"
        || (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn check_value(value: &DeValue<'_>, depth: usize, count: &mut usize) -> Result<(), Error> {
    *count += 1;
    if *count > MAX_VALUES {
        return Err(Error::TooLarge("values"));
    }
    if depth > MAX_DEPTH {
        return Err(Error::TooLarge("nesting"));
    }
    match value {
        DeValue::String(_) | DeValue::Boolean(_) => Ok(()),
        DeValue::Integer(value) if integer(value).is_some() => Ok(()),
        DeValue::Integer(_) => Err(Error::Malformed("a number of more than 64 bits".into())),
        DeValue::Float(_) => Err(Error::Malformed("a floating point number".into())),
        DeValue::Datetime(_) => Err(Error::Malformed("a date".into())),
        DeValue::Array(items) => items
            .iter()
            .try_for_each(|item| check_value(item.get_ref(), depth + 1, count)),
        DeValue::Table(table) => table
            .values()
            .try_for_each(|item| check_value(item.get_ref(), depth + 1, count)),
    }
}

fn integer(value: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(value.as_str(), value.radix()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        format: i64,
        text: String,
        list: Vec<i64>,
    }

    fn sample() -> Sample {
        Sample {
            format: 1,
            text: "a \"b\"\nc\u{1b}\\".into(),
            list: vec![1, -2],
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let bytes = encode(&sample()).unwrap();
        assert_eq!(decode::<Sample>(&bytes).unwrap(), sample());
    }

    #[test]
    fn an_honest_document_is_read() {
        assert!(decode::<Sample>(b"format = 1\ntext = \"x\"\nlist = [1,\n 2,\n]\n").is_ok());
    }

    #[test]
    fn everything_outside_the_subset_is_refused() {
        for (text, word) in [
            (
                "\u{feff}format = 1\ntext = \"x\"\nlist = []\n",
                "order mark",
            ),
            ("format = 1\ntext = \"x\" # note\nlist = []\n", "comment"),
            (
                "format = 1\r\ntext = \"x\"\r\nlist = []\r\n",
                "carriage return",
            ),
            ("format = 1\ntext = \"\\e\"\nlist = []\n", "escape"),
            ("format = 1\ntext = \"\\x41\"\nlist = []\n", "escape"),
            (
                "format = 1\ntext = \"x\"\nlist = []\nmore = 0x1\n",
                "decimal",
            ),
            ("format = 1\ntext = \"x\"\nlist = [0x10]\n", "decimal"),
            ("format = 1\ntext = \"x\"\nlist = [1, [+2]]\n", "decimal"),
            (
                "format = 1\ntext = \"x\"\nlist = []\nat = 2026-01-01\n",
                "value",
            ),
            (
                "format = 1\ntext = \"x\"\nlist = []\nt = { a = 1, }\n",
                "trailing comma",
            ),
            (
                "format = 1\ntext = \"x\"\nlist = []\nt = { a = 1,\n b = 2 }\n",
                "line break",
            ),
            (
                "format = 1\ntext = \"x\"\nlist = []\nlist = []\n",
                "duplicate",
            ),
            (
                "format = 1\ntext = \"x\"\nlist = []\nextra = 1\n",
                "unknown field",
            ),
            ("text = \"x\"\nlist = []\n", "no format"),
            (
                "format = 2\ntext = \"x\"\nlist = []\nextra = 1\n",
                "newer hangar",
            ),
        ] {
            let error = decode::<Sample>(text.as_bytes()).unwrap_err().to_string();
            assert!(
                error.contains(word),
                "{text:?} gave {error:?}, wanted {word:?}"
            );
        }
    }

    #[test]
    fn nesting_and_size_are_bounded() {
        let deep = format!(
            "format = 1\ntext = \"x\"\nlist = {}{}\n",
            "[".repeat(5000),
            "]".repeat(5000)
        );
        assert_eq!(
            decode::<Sample>(deep.as_bytes()).unwrap_err(),
            Error::TooLarge("nesting")
        );
        let large = vec![b'a'; MAX_BYTES + 1];
        assert_eq!(
            decode::<Sample>(&large).unwrap_err(),
            Error::TooLarge("bytes")
        );
    }

    proptest! {
        #[test]
        fn any_bytes_give_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = decode::<Sample>(&bytes);
        }

        #[test]
        fn any_text_survives(text in "\\PC*", list in proptest::collection::vec(any::<i64>(), 0..5)) {
            let value = Sample { format: 1, text, list };
            let bytes = encode(&value).unwrap();
            prop_assert_eq!(decode::<Sample>(&bytes).unwrap(), value);
        }
    }
}
