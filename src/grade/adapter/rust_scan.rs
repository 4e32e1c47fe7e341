//! Lists the tests of a Rust integration test by reading it: functions under an attribute whose
//! path ends in `test`, with the modules around them.
//!
//! No Rust parser: a scanner that knows strings, characters, lifetimes, comments and brackets.
//! Tests that macros make, or that lie in other files, are not seen; the base check tells.

/// Names of the tests of a file, with their modules (`inner::adds`).
pub(super) fn scan(text: &str) -> Vec<String> {
    find(&tokens(text))
}

/// Every word of a file's code.
pub(super) fn words(text: &str) -> Vec<&str> {
    tokens(text)
        .into_iter()
        .filter_map(|token| match token {
            Token::Word(word) => Some(word),
            Token::Mark(_) | Token::Other => None,
        })
        .collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Mark(u8),
    /// A literal.
    Other,
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 128
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let bytes = text.as_bytes();
    let at = |place: usize| bytes.get(place).copied().unwrap_or(0);
    let mut out = Vec::new();
    let mut place = 0;
    while place < bytes.len() {
        let byte = at(place);
        let start = place;
        place = match byte {
            b'/' if at(place + 1) == b'/' => line_end(bytes, place),
            b'/' if at(place + 1) == b'*' => block_end(bytes, place),
            b'"' => {
                out.push(Token::Other);
                string_end(bytes, place + 1)
            }
            b'\'' => {
                out.push(Token::Other);
                quote_end(bytes, place)
            }
            byte if is_word(byte) => {
                while is_word(at(place)) && place < bytes.len() {
                    place += 1;
                }
                let word = text.get(start..place).unwrap_or_default();
                let raw = matches!(word, "r" | "br" | "cr") && matches!(at(place), b'"' | b'#');
                if let Some(end) = raw.then(|| raw_end(bytes, place)).flatten() {
                    out.push(Token::Other);
                    end
                } else {
                    out.push(Token::Word(word));
                    place
                }
            }
            byte => {
                if !byte.is_ascii_whitespace() {
                    out.push(Token::Mark(byte));
                }
                place + 1
            }
        };
    }
    out
}

fn line_end(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    let line = rest.iter().position(|byte| *byte == b'\n');
    from + line.unwrap_or(rest.len())
}

/// Block comments nest.
fn block_end(bytes: &[u8], from: usize) -> usize {
    let mut depth = 0_usize;
    let mut place = from;
    while place < bytes.len() {
        match bytes.get(place..place + 2) {
            Some(b"/*") => {
                depth += 1;
                place += 2;
            }
            Some(b"*/") => {
                depth -= 1;
                place += 2;
                if depth == 0 {
                    return place;
                }
            }
            _ => place += 1,
        }
    }
    bytes.len()
}

fn string_end(bytes: &[u8], from: usize) -> usize {
    let mut place = from;
    while let Some(byte) = bytes.get(place) {
        match byte {
            b'"' => return place + 1,
            b'\\' => place += 2,
            _ => place += 1,
        }
    }
    bytes.len()
}

/// `r"…"` and `r##"…"##`; `None` for a raw identifier (`r#fn`).
fn raw_end(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    let hashes = rest.iter().take_while(|byte| **byte == b'#').count();
    if rest.get(hashes) != Some(&b'"') {
        return None;
    }
    let mut end = vec![b'"'];
    end.resize(hashes + 1, b'#');
    let body = rest.get(hashes + 1..)?;
    let found = body
        .windows(end.len())
        .position(|window| window == end.as_slice());
    Some(match found {
        Some(place) => from + hashes + 1 + place + end.len(),
        None => bytes.len(),
    })
}

/// A character (`'a'`, `'\''`, `'\u{1}'`) or a lifetime (`'a`).
fn quote_end(bytes: &[u8], from: usize) -> usize {
    let at = |place: usize| bytes.get(place).copied().unwrap_or(0);
    if at(from + 1) == b'\\' {
        let mut place = from + 3;
        while place < bytes.len() && at(place) != b'\'' && at(place) != b'\n' {
            place += 1;
        }
        return (place + 1).min(bytes.len());
    }
    let mut place = from + 1;
    while place < bytes.len() && is_word(at(place)) {
        place += 1;
    }
    if place == from + 1 {
        // A mark such as `'('`.
        return (from + 3).min(bytes.len());
    }
    if at(place) == b'\'' { place + 1 } else { place }
}

fn find(tokens: &[Token<'_>]) -> Vec<String> {
    let mut names = Vec::new();
    let mut modules: Vec<(usize, &str)> = Vec::new();
    let mut depth = 0_usize;
    let mut pending = false;
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match token {
            Token::Mark(b'#') if is_attribute(tokens, at) => {
                let (end, is_test) = attribute(tokens, at + 1);
                pending |= is_test;
                at = end;
                continue;
            }
            Token::Word("mod") => {
                if let (Some(Token::Word(name)), Some(Token::Mark(b'{'))) =
                    (tokens.get(at + 1), tokens.get(at + 2))
                {
                    modules.push((depth, name));
                }
                pending = false;
            }
            Token::Word("fn") => {
                if let Some(Token::Word(name)) = tokens.get(at + 1).filter(|_| pending) {
                    let path = modules.iter().map(|(_, module)| *module);
                    names.push(path.chain([*name]).collect::<Vec<_>>().join("::"));
                }
                pending = false;
            }
            Token::Mark(b'{') => depth += 1,
            Token::Mark(b'}') => {
                depth = depth.saturating_sub(1);
                while modules.last().is_some_and(|(outside, _)| *outside >= depth) {
                    modules.pop();
                }
                pending = false;
            }
            _ => {}
        }
        at += 1;
    }
    names
}

fn is_attribute(tokens: &[Token<'_>], at: usize) -> bool {
    tokens.get(at + 1) == Some(&Token::Mark(b'['))
}

/// Reads `[…]` at `at`: the place behind it, and whether its path ends in `test`.
fn attribute(tokens: &[Token<'_>], at: usize) -> (usize, bool) {
    let mut depth = 0_usize;
    let mut last = "";
    let mut path_over = false;
    let mut place = at;
    while let Some(token) = tokens.get(place) {
        match token {
            Token::Mark(b'[') => depth += 1,
            Token::Mark(b']') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return (place + 1, last == "test");
                }
            }
            Token::Word(word) if !path_over => last = word,
            Token::Mark(b':') => {}
            _ => path_over = true,
        }
        place += 1;
    }
    (place, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tests_are_listed_with_their_modules() {
        let text = r##"
            //! #[test] fn no() {}
            /* #[test] /* fn no() {} */ fn no() {} */
            const S: &str = "#[test] fn no() {}"; const R: &str = r#"#[test] fn no() { " "#;
            fn helper<'a>(x: &'a str) -> char { '"' }
            #[test] fn one() { let c = '\''; let d = '{'; }
            #[tokio::test(flavor = "current_thread")] #[ignore] pub async fn two() {}
            mod inner {
                #[test]
                #[should_panic(expected = "x")]
                fn three() {}
                mod deep { #[test] fn r#four() {} }
                fn no() {}
            }
            #[cfg(test)] fn no_attribute() {}
            #[derive(Debug)] struct X { a: u8 }
            #[test] fn last() {}
        "##;
        assert_eq!(
            scan(text),
            ["one", "two", "inner::three", "inner::deep::r", "last"]
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn any_text_is_scanned_without_panic(text in ".{0,200}", code in "[a-z'\"#\\[\\](){}/\\\\ \n*]{0,80}") {
            scan(&text);
            scan(&code);
        }
    }
}
