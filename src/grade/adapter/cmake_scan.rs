//! Lists the tests of a CMakeLists.txt by reading it: calls of `add_test`.
//!
//! No CMake interpreter: a scanner that knows comments, quoted and bracket arguments and parentheses.

/// The names given to `add_test`, as they are written.
pub(super) fn scan(text: &str) -> Vec<String> {
    let tokens = tokens(text);
    let mut names = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let is_call = matches!(token, Token::Word(word) if word.eq_ignore_ascii_case("add_test"))
            && tokens.get(at + 1) == Some(&Token::Open);
        let argument = |place: usize| match tokens.get(at + place) {
            Some(Token::Word(text) | Token::Text(text)) => Some(*text),
            _ => None,
        };
        let named = tokens.get(at + 2) == Some(&Token::Word("NAME"));
        let name = argument(if named { 3 } else { 2 }).filter(|_| is_call);
        names.extend(name.map(str::to_owned));
    }
    names
}

/// A piece of a CMakeLists.txt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// Without quotes.
    Word(&'a str),
    /// In quotes or brackets.
    Text(&'a str),
    /// `(`
    Open,
    /// `)`
    Close,
}

/// What a file is made of.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let mut length = first.len_utf8();
        if first == '#' {
            length = bracket(&rest[1..])
                .map_or_else(|| rest.find('\n').unwrap_or(rest.len()), |(_, end)| end + 1);
        } else if let Some((inside, end)) = bracket(rest) {
            out.push(Token::Text(inside));
            length = end;
        } else if first == '"' {
            let end = quote_end(rest);
            out.push(Token::Text(rest.get(1..end).unwrap_or_default()));
            length = (end + 1).min(rest.len());
        } else if first == '(' {
            out.push(Token::Open);
        } else if first == ')' {
            out.push(Token::Close);
        } else if !first.is_whitespace() {
            let ends = |c: char| c.is_whitespace() || "()#\"".contains(c);
            length = rest.find(ends).unwrap_or(rest.len());
            out.push(Token::Word(&rest[..length]));
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    out
}

/// `[[…]]` or `[==[…]==]` at the start: what is inside, and where it ends.
fn bracket(text: &str) -> Option<(&str, usize)> {
    let equals = text.strip_prefix('[')?;
    let count = equals.len() - equals.trim_start_matches('=').len();
    let inside = equals.get(count..)?.strip_prefix('[')?;
    let close = format!("]{}]", "=".repeat(count));
    let length = inside.find(&close);
    let from = count + 2;
    Some(match length {
        Some(length) => (&inside[..length], from + length + close.len()),
        None => (inside, text.len()),
    })
}

/// Where the quote that closes the first one stands.
fn quote_end(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if c == '"' && !is_escaped {
            return at;
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn calls_of_add_test_are_listed() {
        let text = r#"
            # add_test(NAME comment COMMAND x)
            #[[ add_test(NAME block COMMAND x) ]] ADD_TEST ( NAME one COMMAND x ) #[x
            message("add_test(NAME quoted COMMAND \"x\")" [=[ add_test(NAME raw) ]] ]=])
            add_test(two x)
            add_test(NAME "three \" of it" COMMAND sum (a))
            if(UNIX)
              add_test(NAME ${computed} COMMAND y)
            endif()
            my_add_test(NAME no)
            add_test
        "#;
        let names = ["one", "two", "three \\\" of it", "${computed}"];
        assert_eq!(scan(text), names);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn any_text_is_scanned_without_panic(text in ".{0,120}", code in "(add_test|[#\\[\\]=\"()\\\\ä\n ]){0,40}") {
            scan(&text);
            scan(&code);
        }
    }
}
