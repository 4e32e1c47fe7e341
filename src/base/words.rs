//! Words for people that depend on a number.

use std::fmt::Display;

/// The last line of a program's output that says something, cut to what fits into a message.
pub fn last_line(output: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(output);
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(line.trim().chars().take(200).collect())
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
    fn one_is_singular_and_everything_else_plural() {
        assert_eq!(count(1_u32, "test fails", "tests fail"), "1 test fails");
        assert_eq!(count(0_usize, "criterion", "criteria"), "0 criteria");
        assert_eq!(count(21_u64, "person", "people"), "21 people");
        assert_eq!(word(1_usize, "was", "were"), "was");
    }
}
