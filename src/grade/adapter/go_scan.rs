//! Reads a Go file without running it: the tests of a test file (functions at the top level whose names begin
//! as those of tests and fuzz tests do), and the names that a file declares for its package.
//!
//! No Go parser: a scanner that knows strings, runes, comments, brackets and where statements end.

use std::collections::BTreeSet;

/// What a file says to the other files of its package.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Source<'a> {
    /// The name of its package.
    pub(super) package: &'a str,
    /// What it declares at the top level.
    pub(super) declares: BTreeSet<&'a str>,
    /// Every word in it.
    pub(super) words: BTreeSet<&'a str>,
}

impl<'a> Source<'a> {
    /// Reads a file.
    pub(super) fn read(text: &'a str) -> Self {
        // Go takes a byte order mark at the begin of a file for nothing.
        let tokens = tokens(text.trim_start_matches('\u{feff}'));
        let mut source = Self::default();
        let mut depth = 0_usize;
        for (at, token) in tokens.iter().enumerate() {
            let rest = tokens.get(at + 1..).unwrap_or_default();
            match token {
                Token::Mark(b'(' | b'[' | b'{') => depth += 1,
                Token::Mark(b')' | b']' | b'}') => depth = depth.saturating_sub(1),
                Token::Word("package") if source.package.is_empty() => {
                    source.package = names(rest).next().unwrap_or_default();
                }
                // A method's receiver stands where the name would.
                Token::Word("func") if depth == 0 => source.declares.extend(names(rest).next()),
                Token::Word("var" | "const" | "type") if depth == 0 => {
                    source.declares.extend(declared(rest));
                }
                _ => {}
            }
            if let Token::Word(word) = token {
                source.words.insert(word);
            }
        }
        source
    }
}

/// What a declaration names: a list, or a group of lists.
fn declared<'a>(tokens: &[Token<'a>]) -> Vec<&'a str> {
    let Some((Token::Mark(b'('), group)) = tokens.split_first() else {
        return names(tokens).collect();
    };
    let mut found: Vec<&str> = names(group).collect();
    let mut depth = 1_usize;
    for (at, token) in group.iter().enumerate() {
        match token {
            Token::Mark(b'(' | b'[' | b'{') => depth += 1,
            Token::Mark(b')' | b']' | b'}') => depth -= 1,
            Token::End if depth == 1 => {
                found.extend(names(group.get(at + 1..).unwrap_or_default()));
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    found
}

/// The names of a list that begins here.
fn names<'t, 'a>(tokens: &'t [Token<'a>]) -> impl Iterator<Item = &'a str> + 't {
    let parts = tokens.chunks(2);
    let mut more = true;
    parts.map_while(move |part| match part {
        [Token::Word(name), rest @ ..] if more => {
            more = rest == [Token::Mark(b',')];
            Some(*name)
        }
        _ => None,
    })
}

/// Names of the tests of a file.
pub(super) fn scan(text: &str) -> Vec<String> {
    let tokens = tokens(text);
    let mut names = Vec::new();
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Mark(b'(' | b'[' | b'{') => depth += 1,
            Token::Mark(b')' | b']' | b'}') => depth = depth.saturating_sub(1),
            Token::Word("func") if depth == 0 => {
                // A method has its receiver where the name would stand.
                if let (Some(Token::Word(name)), Some(Token::Mark(b'('))) =
                    (tokens.get(at + 1), tokens.get(at + 2))
                    && is_test(name)
                {
                    names.push((*name).to_owned());
                }
            }
            _ => {}
        }
    }
    names
}

/// As `go test` has it: `TestMain` sets up, and `Testable` is a word.
fn is_test(name: &str) -> bool {
    let rest = name
        .strip_prefix("Test")
        .or_else(|| name.strip_prefix("Fuzz"));
    let is_word = |rest: &str| rest.chars().next().is_some_and(char::is_lowercase);
    rest.is_some_and(|rest| !is_word(rest)) && name != "TestMain"
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    /// A string, a rune or a number.
    Literal,
    Mark(u8),
    /// A statement ends: a semicolon, or a line behind what can end one.
    End,
}

/// Whether a line that ends behind this token ends a statement ("Semicolons" in the specification of Go).
fn ends_a_statement(token: &Token<'_>) -> bool {
    const GO_ON: [&str; 21] = [
        "case",
        "chan",
        "const",
        "default",
        "defer",
        "else",
        "for",
        "func",
        "go",
        "goto",
        "if",
        "import",
        "interface",
        "map",
        "package",
        "range",
        "select",
        "struct",
        "switch",
        "type",
        "var",
    ];
    match token {
        Token::Word(word) => !GO_ON.contains(word),
        Token::Literal => true,
        // `++` and `--` end one, `+` and `-` do not; neither stands at the top level.
        Token::Mark(mark) => matches!(mark, b')' | b']' | b'}'),
        Token::End => false,
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 128
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let bytes = text.as_bytes();
    let mut out: Vec<Token<'_>> = Vec::new();
    let mut place = 0;
    while let Some(byte) = bytes.get(place).copied() {
        let rest = bytes.get(place..).unwrap_or_default();
        let (length, token) = match byte {
            b'/' if rest.starts_with(b"//") => (until(rest, b"\n") - 1, None),
            b'/' if rest.starts_with(b"/*") => {
                let length = 2 + until(rest.get(2..).unwrap_or_default(), b"*/");
                let is_long = rest.iter().take(length).any(|byte| *byte == b'\n');
                (length, is_long.then_some(Token::End))
            }
            b'`' => {
                let length = 1 + until(rest.get(1..).unwrap_or_default(), b"`");
                (length, Some(Token::Literal))
            }
            b'"' | b'\'' => (quoted(rest, byte), Some(Token::Literal)),
            byte if byte.is_ascii_digit() => (number(rest), Some(Token::Literal)),
            byte if is_word(byte) => {
                let length = rest.iter().take_while(|byte| is_word(**byte)).count();
                let word = text.get(place..place + length).unwrap_or_default();
                (length, Some(Token::Word(word)))
            }
            b'\n' | b';' => (1, Some(Token::End)),
            byte => (
                1,
                (!byte.is_ascii_whitespace()).then_some(Token::Mark(byte)),
            ),
        };
        let is_empty = |token: &Token<'_>| {
            *token == Token::End && byte != b';' && !out.last().is_some_and(ends_a_statement)
        };
        out.extend(token.filter(|token| !is_empty(token)));
        place += length;
    }
    out
}

/// How many bytes there are up to the end of `end`.
fn until(bytes: &[u8], end: &[u8]) -> usize {
    let found = bytes.windows(end.len()).position(|window| window == end);
    found.map_or(bytes.len(), |at| at + end.len())
}

/// Length of a number: `1.` and `0x1p-2` are whole ones.
fn number(bytes: &[u8]) -> usize {
    let mut before = 0;
    let is_part = |byte: &&u8| {
        let sign = matches!(**byte, b'+' | b'-') && matches!(before, b'e' | b'E' | b'p' | b'P');
        before = **byte;
        sign || is_word(**byte) || **byte == b'.'
    };
    bytes.iter().take_while(is_part).count()
}

/// Length of a string or rune, which ends on its line.
fn quoted(bytes: &[u8], quote: u8) -> usize {
    let mut place = 1;
    while let Some(byte) = bytes.get(place) {
        match byte {
            b'\\' => place += 2,
            b'\n' => return place,
            byte if *byte == quote => return place + 1,
            _ => place += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tests_at_the_top_level_are_listed() {
        let text = r#"
            package x // func TestComment(t *testing.T) {}
            /* func TestBlock(t *testing.T) {} */
            const s, r, c = "func TestString(", `
            func TestRaw(t *testing.T) {}`, '"'
            func TestMain(m *testing.M) { os.Exit(m.Run()) }
            func Test(t *testing.T) {}
            func TestOne(t *testing.T) { f := func() {}; t.Run("sub", func(t *testing.T) { f() }) }
            func Test_two(t *testing.T) {}
            func Testable() {}
            func (s suite) TestMethod(t *testing.T) {}
            func TestÄ(t *testing.T) {}
            func TestGeneric[T any](t *testing.T) {}
            func helper(t *testing.T) { var TestInner = func(t *testing.T) {}; TestInner(t) }
            func FuzzThree(f *testing.F) {}
            func BenchmarkFour(b *testing.B) {}
            func ExampleFive() {
            }
        "#;
        assert_eq!(
            scan(text),
            ["Test", "TestOne", "Test_two", "TestÄ", "FuzzThree"]
        );
    }

    #[test]
    fn what_a_package_is_told_is_read() {
        let text = "\u{feff}// package no\npackage calc\nimport (\n\tin \"fmt\"\n)\n\
            const a, b = 1, // c\n\t2\n\
            var (\n\td = e +\n\t\tf(g, h)\n\ti, j /* k */ int; l string\n\t\
            p1 = 1.\n\tp2 = 0x1p-2\n\tm = func() {\n\tn := 1\n\t}\n)\n\
            type o struct{ p int }\ntype (\n\tq = r\n\ts[t any] []t\n)\n\
            func u(v int) { var w = 1 }\nfunc (x o) y() {}\nfunc\nz() {}\nvar é = `\nvar no = 1`\n";
        let source = Source::read(text);
        assert_eq!(source.package, "calc");
        let expected = [
            "a", "b", "d", "i", "j", "l", "m", "o", "p1", "p2", "q", "s", "u", "z", "é",
        ];
        assert_eq!(Vec::from_iter(source.declares), expected);
        assert!(source.words.contains("w") && !source.words.contains("no"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn any_text_is_scanned_without_panic(text in ".{0,200}", code in "[a-z'\"`\\[\\](){}/\\\\ \n*]{0,80}") {
            scan(&text);
            scan(&code);
            Source::read(&text);
            Source::read(&code);
        }
    }
}
