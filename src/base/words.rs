//! Words for people that depend on a number.

use std::fmt::Display;

/// The last line of a program's output that says something, cut to what fits into a message.
pub fn last_line(output: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(output);
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(line.trim().chars().take(200).collect())
}

/// The last line of a program's output that says what went wrong, else the last of all, cut likewise: what
/// stands behind it often only says where.
pub fn error_line(output: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(output);
    let says = |line: &&str| {
        let line = line.trim_start();
        line.contains("rror: ") || line.starts_with("ERROR") || line.starts_with("Error ")
    };
    match text.lines().rev().find(says) {
        Some(line) => last_line(line.as_bytes()),
        None => last_line(output),
    }
}

/// A number with its word: `1 test`, `0 tests`, `2 criteria`. Every count that is printed goes
/// through here.
pub fn count<N>(number: N, one: &str, many: &str) -> String
where
    N: Copy + Display + PartialEq + From<u8>,
{
    let word = word(number, one, many);
    format!("{number} {word}")
}

/// The word alone, where something stands between it and its number.
pub fn word<'a, N>(number: N, one: &'a str, many: &'a str) -> &'a str
where
    N: Copy + PartialEq + From<u8>,
{
    if number == N::from(1) { one } else { many }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_says_what_went_wrong() {
        let node = "node:internal:1\n  throw err;\n  ^\n\nError: Cannot find module 'x'\n    at y {\n}\n\nNode.js v20\n";
        assert_eq!(
            error_line(node.as_bytes()).as_deref(),
            Some("Error: Cannot find module 'x'")
        );
        let pytest =
            "ERROR: usage: run.py\nrun.py: error: unrecognized arguments: --x\n  rootdir: /src\n";
        assert_eq!(
            error_line(pytest.as_bytes()).as_deref(),
            Some("run.py: error: unrecognized arguments: --x")
        );
        assert_eq!(error_line(b"one\ntwo\n").as_deref(), Some("two"));
        assert_eq!(error_line(b"\n"), None);
    }

    #[test]
    fn one_is_singular_and_everything_else_plural() {
        assert_eq!(count(1_u32, "test fails", "tests fail"), "1 test fails");
        assert_eq!(count(0_usize, "criterion", "criteria"), "0 criteria");
        assert_eq!(count(21_u64, "person", "people"), "21 people");
        assert_eq!(word(1_usize, "was", "were"), "was");
    }
}
