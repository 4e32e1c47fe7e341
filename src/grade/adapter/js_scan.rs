//! Lists the tests of a JavaScript file by reading it: calls of `test`, `it`, `describe` and what else a
//! framework calls them, with a plain string as name, and where it has them of `t.test` inside; also
//! under another name that the file gives to the framework's module or to one of these.
//!
//! No JavaScript parser: a scanner that knows strings, templates, comments, regular expressions and
//! brackets. What it can't name it counts, so that the writer is told.

use super::js_names::{Dialect, Names};

/// What a file holds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Scan {
    /// Names of tests, with the names of their groups before them.
    pub(super) tests: Vec<Vec<String>>,
    /// Lines of calls whose name is no plain string.
    pub(super) unnamed: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Word(&'a str),
    /// A string without substitutions.
    Text(String),
    /// A template with substitutions, a number, a regular expression.
    Other,
    Mark(u8),
}

struct Scanner<'a> {
    bytes: &'a [u8],
    text: &'a str,
    at: usize,
    line: usize,
    tokens: Vec<(Token<'a>, usize)>,
}

/// Deepest nesting of templates.
const MAX_DEPTH: usize = 64;

/// Reads a file.
pub(super) fn scan(text: &str, dialect: &'static Dialect) -> Scan {
    let mut scanner = Scanner {
        bytes: text.as_bytes(),
        text,
        at: 0,
        line: 1,
        tokens: Vec::new(),
    };
    scanner.code(0, None);
    find(&scanner.tokens, dialect)
}

impl<'a> Scanner<'a> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn push(&mut self, token: Token<'a>) {
        self.tokens.push((token, self.line));
    }

    fn step(&mut self) {
        if self.peek(0) == b'\n' {
            self.line += 1;
        }
        self.at += 1;
    }

    /// Reads code to the end, or to the `}` that closes a substitution.
    fn code(&mut self, depth: usize, closing: Option<u8>) {
        let mut braces = 0_usize;
        while self.at < self.bytes.len() {
            let byte = self.peek(0);
            match byte {
                b'/' if self.peek(1) == b'/' => self.skip_line(),
                b'/' if self.peek(1) == b'*' => self.skip_block(),
                b'/' if self.is_regex() => self.regex(),
                b'\'' | b'"' => self.string(byte),
                b'`' => self.template(depth),
                b'{' => {
                    braces += 1;
                    self.mark(byte);
                }
                b'}' if closing == Some(b'}') && braces == 0 => {
                    self.step();
                    return;
                }
                b'}' => {
                    braces = braces.saturating_sub(1);
                    self.mark(byte);
                }
                byte if byte.is_ascii_whitespace() => self.step(),
                byte if is_word(byte) => self.word(),
                _ => self.mark(byte),
            }
        }
    }

    fn mark(&mut self, byte: u8) {
        self.push(Token::Mark(byte));
        self.step();
    }

    fn skip_line(&mut self) {
        while self.at < self.bytes.len() && self.peek(0) != b'\n' {
            self.at += 1;
        }
    }

    fn skip_block(&mut self) {
        self.at += 2;
        while self.at < self.bytes.len() && !(self.peek(0) == b'*' && self.peek(1) == b'/') {
            self.step();
        }
        self.at = (self.at + 2).min(self.bytes.len());
    }

    /// Whether a `/` begins a regular expression: it follows no value.
    fn is_regex(&self) -> bool {
        match self.tokens.last() {
            None => true,
            Some((Token::Word(word), _)) => {
                matches!(
                    *word,
                    "return" | "typeof" | "case" | "in" | "of" | "await" | "void"
                )
            }
            Some((Token::Text(_) | Token::Other, _)) => false,
            Some((Token::Mark(mark), _)) => !matches!(mark, b')' | b']' | b'}'),
        }
    }

    fn regex(&mut self) {
        self.at += 1;
        let mut in_class = false;
        while self.at < self.bytes.len() {
            match self.peek(0) {
                b'\n' => break,
                b'\\' => self.at += 1,
                b'[' => in_class = true,
                b']' => in_class = false,
                b'/' if !in_class => {
                    self.at += 1;
                    break;
                }
                _ => {}
            }
            self.at += 1;
        }
        self.at = self.at.min(self.bytes.len());
        self.push(Token::Other);
    }

    fn word(&mut self) {
        let start = self.at;
        while is_word(self.peek(0)) && self.at < self.bytes.len() {
            self.at += 1;
        }
        // Words are made of whole characters: bytes above 127 all belong to them.
        let word = self.text.get(start..self.at).unwrap_or_default();
        let token = if word.starts_with(|c: char| c.is_ascii_digit()) {
            Token::Other
        } else {
            Token::Word(word)
        };
        self.push(token);
    }

    fn string(&mut self, quote: u8) {
        let mut out = Vec::new();
        self.at += 1;
        while self.at < self.bytes.len() {
            match self.peek(0) {
                b'\n' => break,
                byte if byte == quote => {
                    self.at += 1;
                    break;
                }
                b'\\' => self.escape(&mut out),
                byte => {
                    out.push(byte);
                    self.at += 1;
                }
            }
        }
        self.push(Token::Text(String::from_utf8_lossy(&out).into_owned()));
    }

    fn escape(&mut self, out: &mut Vec<u8>) {
        self.at += 1;
        let byte = self.peek(0);
        out.push(match byte {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            // \x and \u: not decoded; the name then differs from what runs, and that is reported.
            other => other,
        });
        if self.at < self.bytes.len() {
            self.step();
        }
    }

    fn template(&mut self, depth: usize) {
        let mut out = Vec::new();
        let mut plain = true;
        self.at += 1;
        let line = self.line;
        let kept = self.tokens.len();
        while self.at < self.bytes.len() {
            match self.peek(0) {
                b'`' => {
                    self.at += 1;
                    break;
                }
                b'\\' => self.escape(&mut out),
                b'$' if self.peek(1) == b'{' => {
                    plain = false;
                    self.at += 2;
                    if depth < MAX_DEPTH {
                        self.code(depth + 1, Some(b'}'));
                    }
                }
                byte => {
                    out.push(byte);
                    self.step();
                }
            }
        }
        // What stands inside substitutions is no test.
        self.tokens.truncate(kept);
        let token = if plain {
            Token::Text(String::from_utf8_lossy(&out).into_owned())
        } else {
            Token::Other
        };
        self.tokens.push((token, line));
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 128
}

/// A call that is open while its arguments are read.
struct Open<'a> {
    /// Depth of round brackets outside it.
    depth: usize,
    name: String,
    /// First parameter of its callback: the context of subtests.
    context: Option<&'a str>,
}

/// What is called at some place.
enum Called {
    /// A test or group that is named behind the bracket at `bracket`.
    Named { is_test: bool, bracket: usize },
    /// Tests of which only a run knows the names.
    Computed,
}

fn find(tokens: &[(Token<'_>, usize)], dialect: &'static Dialect) -> Scan {
    let mut out = Scan::default();
    let names = Names::of_file(tokens, dialect);
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some((token, line)) = tokens.get(at) {
        match token {
            Token::Mark(b'(') => depth += 1,
            Token::Mark(b')') => {
                depth = depth.saturating_sub(1);
                while open.last().is_some_and(|call| call.depth >= depth) {
                    open.pop();
                }
            }
            Token::Word(word) => match call_at(tokens, at, word, &open, &names, dialect) {
                Some(Called::Named { is_test, bracket }) => {
                    if let Some((Token::Text(name), _)) = tokens.get(bracket + 1) {
                        let names = open.iter().map(|call| call.name.clone());
                        if is_test {
                            out.tests.push(names.chain([name.clone()]).collect());
                        }
                        let parameter = || context(tokens, bracket + 2);
                        open.push(Open {
                            depth,
                            name: name.clone(),
                            context: dialect.subtests.then(parameter).flatten(),
                        });
                    } else {
                        out.unnamed.push(*line);
                    }
                    // Goes on behind the bracket, which is counted here.
                    depth += 1;
                    at = bracket;
                }
                Some(Called::Computed) => out.unnamed.push(*line),
                None => {}
            },
            _ => {}
        }
        at += 1;
    }
    out
}

/// Whether a test or group is called at `at`.
fn call_at(
    tokens: &[(Token<'_>, usize)],
    at: usize,
    word: &str,
    open: &[Open<'_>],
    names: &Names<'_>,
    dialect: &Dialect,
) -> Option<Called> {
    let token = |at: usize| tokens.get(at).map(|(token, _)| token);
    let before = at.checked_sub(1).and_then(token);
    if before == Some(&Token::Word("function")) || before == Some(&Token::Mark(b'#')) {
        return None;
    }
    if before == Some(&Token::Mark(b'.')) {
        // `t.test(…)` where `t` is the context of an open test; `pattern.test(…)` is none.
        let object = at.checked_sub(2).and_then(token);
        let is_context = open.iter().any(|call| {
            call.context
                .is_some_and(|name| object == Some(&Token::Word(name)))
        });
        let is_module = matches!(object, Some(Token::Word(name)) if names.modules.contains(name));
        if !is_context && !is_module {
            return None;
        }
    }
    let is_context = open.iter().any(|call| call.context == Some(word));
    let renamed = before != Some(&Token::Mark(b'.')) && !is_context;
    let is_test = dialect
        .is_test(word)
        .or_else(|| names.of(word).filter(|_| renamed))?;
    let mut bracket = at + 1;
    while token(bracket) == Some(&Token::Mark(b'.')) {
        match token(bracket + 1) {
            Some(Token::Word(word)) if dialect.chained.contains(word) => bracket += 2,
            Some(Token::Word(word)) if dialect.computed.contains(word) => {
                return Some(Called::Computed);
            }
            _ => return None,
        }
    }
    if token(bracket) != Some(&Token::Mark(b'(')) {
        return None;
    }
    // `test() {` is a method, `test(x)` without a string or function is something else.
    match token(bracket + 1) {
        Some(Token::Mark(b')')) | None => None,
        _ => Some(Called::Named { is_test, bracket }),
    }
}

/// The first parameter of the callback of a call, looked for in the tokens before its body.
fn context<'a>(tokens: &[(Token<'a>, usize)], from: usize) -> Option<&'a str> {
    let mut at = from;
    let end = from + 40;
    while at < end {
        match tokens.get(at).map(|(token, _)| token)? {
            Token::Word("function") => {
                let after = tokens.get(at + 1..)?;
                let bracket = after
                    .iter()
                    .position(|(token, _)| *token == Token::Mark(b'('))?;
                return word_at(tokens, at + 1 + bracket + 1);
            }
            Token::Word(name) if tokens.get(at + 1)?.0 == Token::Mark(b'=') => {
                return Some(name).copied();
            }
            Token::Mark(b'(') => return word_at(tokens, at + 1),
            _ => at += 1,
        }
    }
    None
}

fn word_at<'a>(tokens: &[(Token<'a>, usize)], at: usize) -> Option<&'a str> {
    match tokens.get(at)?.0 {
        Token::Word(name) => Some(name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grade::adapter::js_names::{JEST, MOCHA, NODE, VITEST};
    use proptest::prelude::*;

    fn names(text: &str) -> Vec<String> {
        let scan = scan(text, &NODE);
        scan.tests.iter().map(|names| names.join(" > ")).collect()
    }

    #[test]
    fn tests_groups_and_subtests_are_listed() {
        let text = r#"
            import { test, it, describe } from 'node:test';
            // test('comment', () => {});
            /* test('block', () => {}); */
            const s = "test('string')", r = /test('regex')\//g, q = a / b;
            test('one', () => { if (/x/.test('no') || s.test('no')) {} });
            describe('group', () => {
              it('two (a)', { timeout: 5 }, async () => {});
              describe("inner", function () { it.skip(`three`, () => {}); });
            });
            test('parent', async (t) => {
              await t.test('child', async t2 => { await t2.test('grandchild', () => {}); });
            });
            test.todo('later');
            obj.it('no'); function test(a) {} class X { test() {} }
        "#;
        assert_eq!(
            names(text),
            [
                "one",
                "group > two (a)",
                "group > inner > three",
                "parent",
                "parent > child",
                "parent > child > grandchild",
                "later"
            ]
        );
    }

    #[test]
    fn tests_under_the_files_own_names_are_listed() {
        for head in [
            r#"const t = require("node:test");"#,
            "import t from 'node:test';",
            "import t, { it } from 'node:test';",
            "import { test as t } from 'node:test';",
            "const { test: t, describe: d } = require('node:test');",
            "const t = require('node:test').test;",
            "const { before, it: t } = require('node:test');",
        ] {
            let text = format!(
                "{head} t('one', async (c) => {{ await c.test('two', f); c.skip('no'); }}); x('no');"
            );
            assert_eq!(names(&text), ["one", "one > two"], "{head}");
        }
        let group =
            "import * as n from 'node:test'; n.describe('g', () => { n.it('a', f); }); m.it('no');";
        assert_eq!(names(group), ["g > a"]);
        let renamed = "import { describe as d } from 'node:test'; d('g', () => { it('a', f); });";
        assert_eq!(names(renamed), ["g > a"]);
        let shadowed = "const t = require('node:test'); t('one', (t) => { t.skip('why'); });";
        assert_eq!(names(shadowed), ["one"]);
        // Another module's names are not taken for tests.
        assert!(names("const t = require('assert'); t('no');").is_empty());
    }

    #[test]
    fn names_that_are_no_plain_strings_are_counted() {
        let found = scan(
            "for (const n of x) {\n test(`case ${n}`, () => {});\n test(n, f);\n}\n",
            &NODE,
        );
        assert_eq!(found.unnamed, [2, 3]);
        assert!(found.tests.is_empty());
    }

    #[test]
    fn each_framework_has_words_of_its_own() {
        let text = "context('g', () => { specify('a', function (done) { done.test('no'); }); \
                    xit('b'); it.only('c', f); });";
        let found = scan(text, &MOCHA);
        let names: Vec<String> = found.tests.iter().map(|names| names.join(" > ")).collect();
        assert_eq!(names, ["g > a", "g > b", "g > c"]);
        assert!(scan(text, &NODE).tests.iter().all(|names| names == &["c"]));
        let text = "import { it as t } from 'vitest'; t.concurrent.skip('a', f);\n\
                    describe('g', () => { test('b', f); });\ntest.each([1])('c %i', f);";
        for (dialect, tests) in [(&VITEST, 2), (&JEST, 1)] {
            let found = scan(text, dialect);
            assert_eq!((found.tests.len(), found.unnamed), (tests, vec![3]));
        }
    }

    #[test]
    fn a_template_does_not_end_the_scan() {
        assert_eq!(
            names("x = `a ${ { b: `}` } } c`; test('t', () => {})"),
            ["t"]
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn any_text_is_scanned_without_panic(text in ".{0,200}", code in "[a-z'\"`$(){}/\\\\ \n*.\\[]{0,80}") {
            scan(&text, &NODE);
            scan(&code, &MOCHA);
        }
    }
}
