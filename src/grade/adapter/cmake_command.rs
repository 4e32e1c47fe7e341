//! Reads how a sealed CMakeLists.txt starts a test, and compares it with what ctest would start: a launcher
//! that the patch gives to chosen tests (CROSSCOMPILING_EMULATOR, TEST_LAUNCHER) stands before their programs.

use super::cmake_scan::{Token, tokens};
use std::collections::BTreeSet;
use std::path::Path;

/// Variables of CMake that hold one folder or program.
const SINGLE: [&str; 4] = ["_DIR}", "_COMMAND}", "_EXECUTABLE}", "_VERSION}"];
/// What ends the arguments of a call with a name.
const WORDS: [&str; 3] = [
    "CONFIGURATIONS",
    "WORKING_DIRECTORY",
    "COMMAND_EXPAND_LISTS",
];

/// One word of a command, as far as it can be told by reading.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// As it is written. In brackets a backslash stands for itself, elsewhere not.
    Plain(String),
    /// Only CMake knows what it is.
    One,
    /// Only CMake knows what it is, and how many.
    Many,
}

/// The command of a test as its sealed file says it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Command(Vec<Part>);

impl Command {
    /// Reads the call that adds `test`.
    pub(super) fn of(text: &str, test: &str) -> Option<Self> {
        let tokens = tokens(text);
        let calls = tokens.iter().enumerate().filter(|(at, token)| {
            matches!(token, Token::Word(word) if word.eq_ignore_ascii_case("add_test"))
                && tokens.get(at + 1) == Some(&Token::Open)
        });
        calls
            .map(|(at, _)| inside(&tokens[at + 2..]))
            .find_map(|call| read(&call, test))
    }

    /// Whether ctest starts this. `built` are the files that were digested after the build, `build` and `src`
    /// the folders of build and tree.
    pub(super) fn is(
        &self,
        have: &[String],
        built: &BTreeSet<&str>,
        build: &Path,
        src: &Path,
    ) -> bool {
        let (Some(program), [first, rest @ ..]) = (have.first(), self.0.as_slice()) else {
            return false;
        };
        let place = Path::new(program);
        let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
        let is_named = |said: &str| name(said) == name(program);
        let is_open = rest.contains(&Part::Many);
        let starts = match first {
            // Where the number of words is open, another program could have come before it.
            Part::Plain(said) if is_open => is_named(said) && !names_again(&have[1..], said, built),
            Part::Plain(said) => is_named(said) || built.contains(program.as_str()),
            Part::One | Part::Many => built.contains(program.as_str()) || !place.starts_with(build),
        };
        // What lies in the tree is started where the sealed file names it.
        let is_theirs = place.starts_with(src) && !place.starts_with(build);
        let may = !is_theirs || !matches!(first, Part::Plain(said) if !said.contains('/'));
        starts && may && fits(rest, &have[1..])
    }
}

/// Whether the program of the sealed file stands behind another one.
fn names_again(rest: &[String], said: &str, built: &BTreeSet<&str>) -> bool {
    let ends = format!("/{}", said.rsplit('/').next().unwrap_or(said));
    rest.iter()
        .any(|word| word.ends_with(&ends) && built.contains(word.as_str()))
}

/// The tokens of a call up to its end. Parentheses inside are words.
fn inside<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut depth = 0_usize;
    let mut out = Vec::new();
    for token in tokens {
        match token {
            Token::Open => depth += 1,
            Token::Close if depth == 0 => break,
            Token::Close => depth -= 1,
            Token::Word(_) | Token::Text(_) => {}
        }
        out.push(match token {
            Token::Open => Token::Text("("),
            Token::Close => Token::Text(")"),
            other => *other,
        });
    }
    out
}

fn read(call: &[Token<'_>], test: &str) -> Option<Command> {
    let is_test =
        |token: &Token<'_>| matches!(token, Token::Word(text) | Token::Text(text) if *text == test);
    let (words, lists) = match call {
        [Token::Word("NAME"), name, rest @ ..] if is_test(name) => {
            let at = rest.iter().position(|one| *one == Token::Word("COMMAND"))?;
            let ends = |one: &Token<'_>| matches!(one, Token::Word(word) if WORDS.contains(word));
            let rest = rest.get(at + 1..)?;
            let end = rest.iter().position(ends).unwrap_or(rest.len());
            let lists = call.contains(&Token::Word("COMMAND_EXPAND_LISTS"));
            (&rest[..end], lists)
        }
        [name, rest @ ..] if is_test(name) => (rest, false),
        _ => return None,
    };
    Some(Command(
        words.iter().flat_map(|word| parts(word, lists)).collect(),
    ))
}

/// What a word stands for. `lists`: lists are taken apart after CMake knows them.
fn parts(token: &Token<'_>, lists: bool) -> Vec<Part> {
    let (text, quoted) = match token {
        Token::Word(text) => (*text, false),
        Token::Text(text) => (*text, true),
        Token::Open | Token::Close => return Vec::new(),
    };
    let one = |text: &str| {
        if !text.contains('$') {
            return Part::Plain(text.to_owned());
        }
        let is_single = |text: &str| SINGLE.iter().any(|end| text.contains(end));
        let is_list = text.contains("${") && !quoted && !is_single(text);
        if is_list || lists {
            Part::Many
        } else {
            Part::One
        }
    };
    let is_whole = if lists { text.contains('$') } else { quoted };
    if is_whole {
        return vec![one(text)];
    }
    text.split(';')
        .filter(|text| !text.is_empty() || quoted)
        .map(one)
        .collect()
}

/// Whether these words can be those parts.
fn fits(parts: &[Part], words: &[String]) -> bool {
    // Whether the first words can be the parts so far, by their number.
    let mut ends: Vec<bool> = std::iter::once(true)
        .chain(words.iter().map(|_| false))
        .collect();
    for part in parts {
        let mut next = vec![false; ends.len()];
        for (at, can) in ends.iter().enumerate() {
            if !can {
                continue;
            }
            match (part, words.get(at)) {
                (Part::Many, _) => next[at..].fill(true),
                (Part::One, Some(_)) => next[at + 1] = true,
                (Part::Plain(said), Some(word)) if is_same(said, word) => next[at + 1] = true,
                _ => {}
            }
        }
        ends = next;
    }
    ends.last() == Some(&true)
}

/// Whether a word is what is written.
fn is_same(said: &str, have: &str) -> bool {
    said == have || plain(said) == have
}

/// Without the backslashes of CMake.
fn plain(said: &str) -> String {
    let mut out = String::new();
    let mut chars = said.chars();
    while let Some(c) = chars.next() {
        let escaped = if c == '\\' { chars.next() } else { None };
        out.push(match escaped {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('\n') => continue,
            Some(other) => other,
            None => c,
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = r#"
        add_test(NAME plain COMMAND sum)
        add_test(old sum x "a b" "q\"r" [[w\x]] a;b)
        add_test(NAME words CONFIGURATIONS Debug COMMAND sum (a) 1 WORKING_DIRECTORY /w)
        add_test(NAME vary COMMAND sum ${MORE} z)
        add_test(NAME file COMMAND sum ${CMAKE_CURRENT_SOURCE_DIR}/x "${MORE}" $<TARGET_FILE:sum>)
        add_test(NAME lists COMMAND sum "$<1:x;y>" COMMAND_EXPAND_LISTS)
        add_test(NAME away COMMAND sh -c "exit 0")
        add_test(NAME script COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/x.sh 1)
        add_test(NAME python COMMAND ${Python3_EXECUTABLE} x.py)
        add_test(NAME target COMMAND $<TARGET_FILE:sum>)"#;

    #[test]
    fn commands_are_those_of_the_file() {
        let built = BTreeSet::from(["/b/t/sum", "/b/t/other", "/b/fake", "/b/fake/sum"]);
        let sum = "/b/t/sum";
        for (test, have, expected) in [
            ("plain", &[sum][..], true),
            ("plain", &["/b/t/other"], true),
            ("plain", &["/b/t/unknown"], false),
            ("plain", &["/bin/true"], false),
            ("plain", &["/s/sum"], false),
            ("plain", &["/bin/true", sum], false),
            ("plain", &["/b/fake", sum], false),
            ("plain", &[], false),
            ("old", &[sum, "x", "a b", "q\"r", "w\\x", "a", "b"], true),
            ("old", &[sum, "x", "a b", "q\"r", "w\\x", "a"], false),
            ("old", &[sum, "y", "a b", "q\"r", "w\\x", "a", "b"], false),
            ("words", &[sum, "(", "a", ")", "1"], true),
            ("words", &[sum, "1"], false),
            ("vary", &[sum, "z"], true),
            ("vary", &[sum, "x", "y", "z"], true),
            ("vary", &["/b/t/other", "z"], false),
            ("vary", &["/b/fake", sum, "z"], false),
            ("vary", &["/b/fake/sum", sum, "z"], false),
            ("file", &[sum, "/s/x", "", sum], true),
            ("file", &["/b/fake", sum, "/s/x", "", sum], false),
            ("lists", &[sum, "x", "y"], true),
            ("lists", &["/b/fake/sum", sum, "x", "y"], false),
            ("away", &["/usr/bin/sh", "-c", "exit 0"], true),
            ("away", &["/bin/true", "-c", "exit 0"], false),
            ("away", &["/s/sh", "-c", "exit 0"], false),
            ("script", &["/s/x.sh", "1"], true),
            ("script", &["/bin/true", "/s/x.sh", "1"], false),
            ("python", &["/usr/bin/python3", "x.py"], true),
            ("python", &["/bin/true", "/usr/bin/python3", "x.py"], false),
            ("target", &[sum], true),
            ("target", &["/bin/true", sum], false),
        ] {
            let have: Vec<String> = have.iter().map(|word| (*word).to_owned()).collect();
            let said = Command::of(TEXT, test).unwrap();
            let found = said.is(&have, &built, Path::new("/b"), Path::new("/s"));
            assert_eq!(found, expected, "{test} {have:?} {said:?}");
        }
        assert_eq!(Command::of(TEXT, "nobody"), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn any_text_is_read_without_panic(
            text in "add_test\\((NAME |a|COMMAND |[()\" ;\\\\$\\{\\}]){0,40}",
            have in proptest::collection::vec("[a/;]{0,4}", 0..6),
        ) {
            if let Some(said) = Command::of(&text, "a") {
                said.is(&have, &BTreeSet::new(), Path::new("/b"), Path::new("/s"));
            }
        }
    }
}
