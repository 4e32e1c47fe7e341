//! Lists the tests of a Go test file by reading it: functions at the top level whose names begin as those
//! of tests and fuzz tests do.
//!
//! No Go parser: a scanner that knows strings, runes, comments and brackets.

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
    Mark(u8),
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 128
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut place = 0;
    while let Some(byte) = bytes.get(place).copied() {
        let rest = bytes.get(place..).unwrap_or_default();
        let length = match byte {
            b'/' if rest.starts_with(b"//") => until(rest, b"\n"),
            b'/' if rest.starts_with(b"/*") => 2 + until(rest.get(2..).unwrap_or_default(), b"*/"),
            b'`' => 1 + until(rest.get(1..).unwrap_or_default(), b"`"),
            b'"' | b'\'' => quoted(rest, byte),
            byte if is_word(byte) => {
                let length = rest.iter().take_while(|byte| is_word(**byte)).count();
                out.push(Token::Word(
                    text.get(place..place + length).unwrap_or_default(),
                ));
                length
            }
            byte => {
                if !byte.is_ascii_whitespace() {
                    out.push(Token::Mark(byte));
                }
                1
            }
        };
        place += length;
    }
    out
}

/// How many bytes there are up to the end of `end`.
fn until(bytes: &[u8], end: &[u8]) -> usize {
    let found = bytes.windows(end.len()).position(|window| window == end);
    found.map_or(bytes.len(), |at| at + end.len())
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

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn any_text_is_scanned_without_panic(text in ".{0,200}", code in "[a-z'\"`\\[\\](){}/\\\\ \n*]{0,80}") {
            scan(&text);
            scan(&code);
        }
    }
}
