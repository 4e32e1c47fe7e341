//! Whether a text repeats a long piece of other texts: the same tokens in the same order, whatever the
//! layout.
//!
//! Shingles are short runs of tokens (Broder, "On the resemblance and containment of documents", 1997);
//! a piece is a long row of them, each overlapping the next. Must not know what the texts are.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hasher as _};

/// Tokens of a shingle: about a line of code.
const SHINGLE: usize = 12;
/// Shingles of a piece: it has this many tokens and a shingle's more, about five lines of code. Where it
/// stands between known code, which makes shingles with it, 29 tokens of it are its own.
const PIECE: usize = 40;
/// Different tokens that a piece must begin to have: tables of zeroes and lines of dashes say nothing.
const DISTINCT: usize = 12;

/// The shingles of some texts.
#[derive(Debug, Default)]
pub struct Shingles(HashSet<u64>);

impl Shingles {
    /// Takes those of one more text in.
    pub fn add(&mut self, text: &[u8]) {
        self.0.extend(shingles(&tokens(text)));
    }

    /// Takes those out that this text has, too.
    pub fn subtract(&mut self, text: &[u8]) {
        for shingle in shingles(&tokens(text)) {
            self.0.remove(&shingle);
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the text holds a long row of these.
    pub fn has_piece_in(&self, text: &[u8]) -> bool {
        let tokens = tokens(text);
        let mut row = 0;
        shingles(&tokens).enumerate().any(|(at, shingle)| {
            row = if self.0.contains(&shingle) {
                row + 1
            } else {
                0
            };
            row >= PIECE && {
                let piece = tokens.get(at + 1 - PIECE..at + SHINGLE);
                let distinct: HashSet<&u64> = piece.into_iter().flatten().collect();
                distinct.len() >= DISTINCT
            }
        })
    }
}

/// The hash of every run of so many tokens.
fn shingles(tokens: &[u64]) -> impl Iterator<Item = u64> + '_ {
    tokens.windows(SHINGLE).map(|run| hash(&run))
}

fn tokens(text: &[u8]) -> Vec<u64> {
    words(text).map(|word| hash(&word)).collect()
}

/// Words (letters, digits, `_`, anything beyond ASCII) and single other bytes; white space parts them.
fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii();
    let pieces = text.chunk_by(move |one, two| is_word(*one) && is_word(*two));
    pieces.filter(|piece| !piece.iter().all(u8::is_ascii_whitespace))
}

fn hash(what: &impl std::hash::Hash) -> u64 {
    // Not secret, and the same for both texts within one process: that is all that is needed.
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TESTS: &str = "\
import unittest
from calc import add

class Adding(unittest.TestCase):
    def test_of_two(self):
        self.assertEqual(add(2, 3), 5)
        self.assertEqual(add(-7, 3), -4)
    def test_of_none(self):
        self.assertEqual(add(), 0)
        with self.assertRaises(TypeError):
            add('one', 2)
";

    fn of(text: &str) -> Shingles {
        let mut shingles = Shingles::default();
        shingles.add(text.as_bytes());
        shingles
    }

    #[test]
    fn a_piece_is_found_whatever_its_layout_and_surroundings() {
        let tests = of(TESTS);
        let piece = &TESTS[TESTS.find("self.assert").unwrap()..];
        let other = format!("x = 1\n{}\nmore", piece.replace(['\n', ' '], "\t  "));
        assert!(tests.has_piece_in(other.as_bytes()));
    }

    #[test]
    fn a_short_piece_and_another_order_are_none() {
        let tests = of(TESTS);
        let line = "self.assertEqual(add(2, 3), 5)\n self.assertEqual(add(-7, 3), -4)";
        assert!(!tests.has_piece_in(line.as_bytes()));
        let mut lines: Vec<_> = TESTS.lines().collect();
        lines.reverse();
        assert!(!tests.has_piece_in(lines.join("\n").as_bytes()));
    }

    #[test]
    fn what_is_known_or_says_nothing_is_no_piece() {
        let mut tests = of(TESTS);
        assert!(tests.has_piece_in(TESTS.as_bytes()));
        // All but the last test is known: what follows it in both is short.
        let known = &TESTS[..TESTS.find("    def test_of_none").unwrap()];
        tests.subtract(known.as_bytes());
        assert!(!tests.is_empty());
        let more = format!("{known}    def test_of_none(self):\n        pass");
        assert!(!tests.has_piece_in(more.as_bytes()));
        let table = "0, 0, 0, 1, 0, 0, ".repeat(40);
        assert!(!of(&table).has_piece_in(table.as_bytes()));
    }
}
