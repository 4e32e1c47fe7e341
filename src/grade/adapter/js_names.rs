//! What a framework calls its functions, and what a file calls them: `const t = require("node:test")`,
//! `import { test as t } from "node:test"` and the like.

use super::js_scan::Token;
use std::collections::{BTreeMap, BTreeSet};

/// Most tokens of one import that are read.
const MAX_IMPORT: usize = 200;

/// What a framework calls its functions.
#[derive(Debug)]
pub(super) struct Dialect {
    /// The module that they are imported from.
    pub(super) module: &'static str,
    tests: &'static [&'static str],
    groups: &'static [&'static str],
    /// Words behind a dot that leave the name where it is: `test.skip("x")`.
    pub(super) chained: &'static [&'static str],
    /// Words behind a dot that make tests of which only a run knows the names: `test.each(rows)("x")`.
    pub(super) computed: &'static [&'static str],
    /// Whether the first parameter of a callback makes tests: `test("x", t => t.test("y"))`.
    pub(super) subtests: bool,
}

/// `node --test`.
pub(super) const NODE: Dialect = Dialect {
    module: "node:test",
    tests: &["test", "it"],
    groups: &["describe", "suite"],
    chained: &["skip", "todo", "only"],
    computed: &[],
    subtests: true,
};

/// mocha with any of its own interfaces that name tests by calls.
pub(super) const MOCHA: Dialect = Dialect {
    module: "mocha",
    tests: &["it", "specify", "test", "xit", "xspecify"],
    groups: &["describe", "context", "suite", "xdescribe", "xcontext"],
    chained: &["skip", "only"],
    computed: &[],
    subtests: false,
};

/// jest.
pub(super) const JEST: Dialect = Dialect {
    module: "@jest/globals",
    tests: &["test", "it", "xtest", "xit", "fit"],
    groups: &["describe", "xdescribe", "fdescribe"],
    chained: &["skip", "only", "todo", "concurrent", "failing"],
    computed: &["each"],
    subtests: false,
};

/// vitest.
pub(super) const VITEST: Dialect = Dialect {
    module: "vitest",
    tests: &["test", "it"],
    groups: &["describe", "suite"],
    chained: &["skip", "only", "todo", "concurrent", "sequential", "fails"],
    computed: &["each", "for", "skipIf", "runIf"],
    subtests: false,
};

impl Dialect {
    /// Whether a function makes a test (else a group).
    pub(super) fn is_test(&self, function: &str) -> Option<bool> {
        let is_test = self.tests.contains(&function);
        (is_test || self.groups.contains(&function)).then_some(is_test)
    }
}

/// Names that a file gives to the module and to its functions.
#[derive(Debug)]
pub(super) struct Names<'a> {
    dialect: &'static Dialect,
    /// Names of the module; it is a function too, and calls `test`.
    pub(super) modules: BTreeSet<&'a str>,
    /// Names of its functions: whether they make a test (else a group).
    functions: BTreeMap<&'a str, bool>,
}

type Tokens<'t, 'a> = &'t [(Token<'a>, usize)];

impl<'a> Names<'a> {
    /// Reads the imports of a file.
    pub(super) fn of_file(tokens: Tokens<'_, 'a>, dialect: &'static Dialect) -> Self {
        let mut names = Self {
            dialect,
            modules: BTreeSet::new(),
            functions: BTreeMap::new(),
        };
        for at in 0..tokens.len() {
            let Some((Token::Text(module), _)) = tokens.get(at) else {
                continue;
            };
            if module == dialect.module {
                names.read(tokens, at);
            }
        }
        names
    }

    /// Whether `name` makes a test (`Some(true)`) or a group.
    pub(super) fn of(&self, name: &str) -> Option<bool> {
        let module = self.modules.contains(name).then_some(true);
        module.or_else(|| self.functions.get(name).copied())
    }

    /// The import whose module's name stands at `at`.
    fn read(&mut self, tokens: Tokens<'_, 'a>, at: usize) {
        let mark = |at: Option<usize>, mark: u8| is_mark(tokens, at, mark);
        let word = |at: Option<usize>| word(tokens, at);
        if word(at.checked_sub(1)) == Some("from") {
            let end = at - 1;
            let from = end.saturating_sub(MAX_IMPORT);
            let begin = (from..end)
                .rev()
                .find(|at| word(Some(*at)) == Some("import"));
            if let Some(begin) = begin {
                self.bind(tokens, begin + 1, end);
            }
            return;
        }
        // NAME = require("MODULE"), perhaps `.test` behind it.
        let requires = mark(at.checked_sub(1), b'(') && word(at.checked_sub(2)) == Some("require");
        let Some(end) = at
            .checked_sub(3)
            .filter(|at| requires && mark(Some(*at), b'='))
        else {
            return;
        };
        if mark(Some(at + 1), b')') && mark(Some(at + 2), b'.') {
            if let (Some(name), Some(function)) = (word(end.checked_sub(1)), word(Some(at + 3))) {
                self.function(function, name);
            }
            return;
        }
        let before = end.checked_sub(1);
        if mark(before, b'}') {
            let from = end.saturating_sub(MAX_IMPORT);
            let begin = (from..end).rev().find(|at| mark(Some(*at), b'{'));
            self.bind(tokens, begin.unwrap_or(end), end);
        } else if let Some(name) = word(before) {
            self.modules.insert(name);
        }
    }

    /// What stands between `import` and `from`, or in the braces before `=`.
    fn bind(&mut self, tokens: Tokens<'_, 'a>, from: usize, end: usize) {
        let mut inside = false;
        let mut at = from;
        while at < end {
            match &tokens[at].0 {
                Token::Mark(b'{') => inside = true,
                Token::Mark(b'}') => inside = false,
                Token::Word(name) if inside => {
                    // `test as t`, `test: t`, or `test` alone.
                    let renamed = word(tokens, Some(at + 1)) == Some("as")
                        || is_mark(tokens, Some(at + 1), b':');
                    let own = word(tokens, Some(at + 2)).filter(|_| renamed && at + 2 < end);
                    self.function(name, own.unwrap_or(name));
                    at += if own.is_some() { 2 } else { 0 };
                }
                Token::Word("as") => {}
                Token::Word(name) => {
                    self.modules.insert(name);
                }
                _ => {}
            }
            at += 1;
        }
    }

    fn function(&mut self, function: &str, name: &'a str) {
        if function == "default" {
            self.modules.insert(name);
        } else if let Some(makes_test) = self.dialect.is_test(function) {
            self.functions.insert(name, makes_test);
        }
    }
}

fn word<'a>(tokens: Tokens<'_, 'a>, at: Option<usize>) -> Option<&'a str> {
    match tokens.get(at?)?.0 {
        Token::Word(word) => Some(word),
        _ => None,
    }
}

fn is_mark(tokens: Tokens<'_, '_>, at: Option<usize>, mark: u8) -> bool {
    at.and_then(|at| tokens.get(at))
        .is_some_and(|(token, _)| *token == Token::Mark(mark))
}
