//! Whether a text repeats a long piece of other texts: the same tokens in the same order, whatever the
//! layout.
//!
//! Shingles are short runs of tokens (Broder, "On the resemblance and containment of documents", 1997);
//! a piece is a long row of them, each overlapping the next. Must not know what the texts are.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hasher as _};

/// Tokens of a shingle: about a line of code.
const SHINGLE: usize = 12;
/// Shingles of a piece: with the rest of its last one 211 tokens in a row, some 25 lines of code. Two people
/// who write a loop over a table of cases, or the Roman numerals, write 50 to 110 equal ones in a row and
/// know nothing of each other.
const PIECE: usize = 200;
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

    /// So many tests of one function.
    fn tests(numbers: std::ops::Range<u32>) -> String {
        let test = |number: u32| {
            let sum = number + 3;
            format!(
                "    def test_of_{number}(self):\n        self.assertEqual(add({number}, 3), {sum})\n"
            )
        };
        numbers.map(test).collect()
    }

    fn of(text: &str) -> Shingles {
        let mut shingles = Shingles::default();
        shingles.add(text.as_bytes());
        shingles
    }

    #[test]
    fn a_piece_is_found_whatever_its_layout_and_surroundings() {
        let piece = tests(10..25).replace(['\n', ' '], "\t  ");
        let other = format!("x = 1\n{piece}\nmore");
        assert!(of(&tests(0..30)).has_piece_in(other.as_bytes()));
    }

    #[test]
    fn a_short_piece_and_another_order_are_none() {
        let hidden = of(&tests(0..30));
        assert!(!hidden.has_piece_in(tests(10..18).as_bytes()));
        let text = tests(0..30);
        let mut lines: Vec<_> = text.lines().collect();
        lines.reverse();
        assert!(!hidden.has_piece_in(lines.join("\n").as_bytes()));
    }

    #[test]
    fn what_is_known_or_says_nothing_is_no_piece() {
        let mut hidden = of(&tests(0..30));
        assert!(hidden.has_piece_in(tests(0..30).as_bytes()));
        // All but the last five are known.
        hidden.subtract(tests(0..25).as_bytes());
        assert!(!hidden.is_empty());
        assert!(!hidden.has_piece_in(tests(0..30).as_bytes()));
        let table = "0, 0, 0, 1, 0, 0, ".repeat(100);
        assert!(!of(&table).has_piece_in(table.as_bytes()));
    }

    /// What everybody writes alike.
    #[test]
    fn a_loop_over_a_table_of_cases_with_other_data_is_no_piece() {
        let table = |cases: &str| {
            format!(
                "package calc\n\nimport \"testing\"\n\nfunc TestSub(t *testing.T) {{\n\
                 tests := []struct {{\n name string\n a int\n b int\n want int\n }}{{\n{cases}}}\n\
                 for _, tt := range tests {{\n t.Run(tt.name, func(t *testing.T) {{\n\
                 got := Sub(tt.a, tt.b)\n if got != tt.want {{\n\
                 t.Errorf(\"Sub(%d, %d) = %d, want %d\", tt.a, tt.b, got, tt.want)\n }}\n }})\n }}\n}}\n"
            )
        };
        let hidden = of(&table("{\"small\", 5, 3, 2},\n{\"below\", 3, 7, -4},\n"));
        let own = table("{\"positive\", 9, 1, 8},\n{\"zero\", 0, 0, 0},\n");
        assert!(!hidden.has_piece_in(own.as_bytes()));
        let numerals = "I II III IV V VI VII VIII IX X ".repeat(2) + "L C D M CM CD XC XL XXX";
        assert!(!of(&numerals).has_piece_in(numerals.as_bytes()));
    }
}
