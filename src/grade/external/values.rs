//! Values that a case draws: the same for the same file and case, and foreseen by nobody who has not
//! read them.

use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// Values by name, and which of them were used so far.
#[derive(Debug, Default)]
pub(super) struct Values {
    drawn: BTreeMap<String, String>,
    used: RefCell<BTreeSet<String>>,
}

impl Values {
    /// A value that hangar gives; it need not be used.
    pub(super) fn give(&mut self, name: &str, value: &str) {
        self.drawn.insert(name.into(), value.into());
        self.used.get_mut().insert(name.into());
    }

    fn get(&self, name: &str) -> Option<&str> {
        let value = self.drawn.get(name)?;
        self.used.borrow_mut().insert(name.to_owned());
        Some(value)
    }

    /// The first that nothing was made with: where its name is mistyped, braces stay as they are.
    pub(super) fn unused(&self) -> Option<&str> {
        let used = self.used.borrow();
        let unused = self.drawn.keys().find(|name| !used.contains(*name));
        unused.map(String::as_str)
    }
}

/// Longest name of a value.
const MAX_NAME: usize = 64;
/// Longest word in letters.
const MAX_WORD: u32 = 10_000;
/// Deepest chain of values that are made from others.
const MAX_DEPTH: usize = 16;

/// Where a value comes from.
#[derive(Debug, Clone, Deserialize)]
#[serde(
    untagged,
    expecting = "a value is one of { from, to }, { word }, { pick }, { sum }, { product }, \
                 { difference }, { reversed }, { upper }, { length }"
)]
pub(super) enum Source {
    /// A whole number, both ends included.
    Number(Range),
    /// So many small letters.
    Word(Word),
    /// One of these.
    Pick(Pick),
    /// The sum of other values.
    Sum(Sum),
    /// The product of other values.
    Product(Product),
    /// The first of two values less the second.
    Difference(Difference),
    /// Another value, its characters from the last to the first.
    Reversed(Reversed),
    /// Another value in capitals.
    Upper(Upper),
    /// How many characters another value has.
    Length(Length),
}

macro_rules! source {
    ($($name:ident { $($field:ident: $type:ty),* })*) => {$(
        #[derive(Debug, Clone, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct $name { $($field: $type),* }
    )*};
}

source! {
    Range { from: i64, to: i64 }
    Word { word: u32 }
    Pick { pick: Vec<String> }
    Sum { sum: Vec<String> }
    Product { product: Vec<String> }
    Difference { difference: [String; 2] }
    Reversed { reversed: String }
    Upper { upper: String }
    Length { length: String }
}

/// Draws every value. `seed` is what nobody else knows: the file with its canary, and the case.
pub(super) fn draw(sources: &BTreeMap<String, Source>, seed: &[&[u8]]) -> Result<Values, String> {
    let mut values = Values::default();
    for name in sources.keys() {
        let fine = name.len() <= MAX_NAME && name.bytes().all(is_of_a_name) && !name.is_empty();
        if !fine {
            return Err(format!(
                "`{name}` is no name of a value (letters, digits and `_`)"
            ));
        }
        one(sources, seed, &mut values, name, 0)?;
    }
    Ok(values)
}

const fn is_of_a_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The value of `name`, drawn when it is first asked for.
fn one(
    sources: &BTreeMap<String, Source>,
    seed: &[&[u8]],
    values: &mut Values,
    name: &str,
    depth: usize,
) -> Result<String, String> {
    if let Some(value) = values.drawn.get(name) {
        return Ok(value.clone());
    }
    let source = sources
        .get(name)
        .ok_or_else(|| format!("no value is called `{name}`"))?;
    if depth > MAX_DEPTH {
        return Err(format!(
            "`{name}` is made from itself, or from too many others"
        ));
    }
    let mut text = |name: &String| {
        let value = one(sources, seed, values, name, depth + 1)?;
        values.get(name);
        Ok(value)
    };
    let value = match source {
        Source::Number(range) => number(range, seed, name)?,
        Source::Word(word) => letters(word.word, seed, name)?,
        Source::Pick(pick) => picked(pick, seed, name)?,
        Source::Sum(of) => folded(&of.sum, 0, i64::checked_add, &mut text)?,
        Source::Product(of) => folded(&of.product, 1, i64::checked_mul, &mut text)?,
        Source::Difference(of) => {
            let [first, second] = &of.difference;
            let (first, second) = (whole(first, &mut text)?, whole(second, &mut text)?);
            first.checked_sub(second).ok_or(TOO_LARGE)?.to_string()
        }
        Source::Reversed(of) => text(&of.reversed)?.chars().rev().collect(),
        Source::Upper(of) => text(&of.upper)?.to_uppercase(),
        Source::Length(of) => text(&of.length)?.chars().count().to_string(),
    };
    values.drawn.insert(name.to_owned(), value.clone());
    Ok(value)
}

const TOO_LARGE: &str = "a value has more than 64 bits";

type Text<'a> = &'a mut dyn FnMut(&String) -> Result<String, String>;

fn whole(name: &String, text: Text<'_>) -> Result<i64, String> {
    let value = text(name)?;
    value
        .parse()
        .map_err(|_| format!("`{name}` is no whole number"))
}

fn folded(
    names: &[String],
    start: i64,
    with: fn(i64, i64) -> Option<i64>,
    text: Text<'_>,
) -> Result<String, String> {
    let mut out = start;
    for name in names {
        out = with(out, whole(name, text)?).ok_or(TOO_LARGE)?;
    }
    Ok(out.to_string())
}

/// The `index`th draw of the value `name`, of 64 bits.
fn word(seed: &[&[u8]], name: &str, index: u64) -> u64 {
    let mut hash = Sha256::new();
    hash.update(b"hangar case value 1\0");
    for part in seed.iter().copied().chain([name.as_bytes()]) {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.update(index.to_be_bytes());
    let digest: [u8; 32] = hash.finalize().into();
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    u64::from_be_bytes(first)
}

/// A number below `end`, which is not 0. The few that come more often than others do no harm here.
fn below(seed: &[&[u8]], name: &str, index: u64, end: u128) -> u64 {
    u64::try_from(u128::from(word(seed, name, index)) % end).unwrap_or_default()
}

fn number(range: &Range, seed: &[&[u8]], name: &str) -> Result<String, String> {
    if range.from > range.to {
        return Err(format!("`{name}`: `from` is more than `to`"));
    }
    let count = i128::from(range.to) - i128::from(range.from) + 1;
    let step = below(seed, name, 0, count.unsigned_abs());
    Ok((i128::from(range.from) + i128::from(step)).to_string())
}

fn letters(count: u32, seed: &[&[u8]], name: &str) -> Result<String, String> {
    if count == 0 || count > MAX_WORD {
        return Err(format!("`{name}`: a word has 1 to {MAX_WORD} letters"));
    }
    let letter = |index: u32| {
        let drawn = below(seed, name, index.into(), 26);
        char::from(b'a' + u8::try_from(drawn).unwrap_or_default())
    };
    Ok((0..count).map(letter).collect())
}

fn picked(pick: &Pick, seed: &[&[u8]], name: &str) -> Result<String, String> {
    if pick.pick.is_empty() {
        return Err(format!("`{name}` has nothing to pick from"));
    }
    let index = below(seed, name, 0, pick.pick.len() as u128);
    let picked = usize::try_from(index)
        .ok()
        .and_then(|index| pick.pick.get(index));
    Ok(picked.cloned().unwrap_or_default())
}

/// `text` with values in place of `{name}`. Braces around anything else stay as they are.
pub(super) fn fill(text: &str, values: &Values) -> String {
    fill_with(text, values, str::to_owned)
}

/// The same, with each value changed before it is put in. One pass: what a value holds is never
/// filled in again.
pub(super) fn fill_with(text: &str, values: &Values, change: impl Fn(&str) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let named = after
            .split_once('}')
            .and_then(|(name, behind)| Some((values.get(name)?, behind)));
        if let Some((value, behind)) = named {
            out.push_str(&change(value));
            rest = behind;
        } else {
            out.push('{');
            rest = after;
        }
    }
    out.push_str(rest);
    out
}
