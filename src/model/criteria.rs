//! `criteria.json`: which hidden test stands for which acceptance criterion, and the aliases by
//! which clear documents name tests.
//!
//! Format: `docs/format.md`, "criteria.json". Must not know how tests are run.

use crate::model::outcome::TestId;
use schemars::JsonSchema;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

/// Largest `criteria.json` in bytes.
pub const MAX_BYTES: usize = 1 << 20;
/// Most ids in one `criteria.json`.
const MAX_IDS: usize = 10_000;
/// Longest `notes` in bytes.
const MAX_NOTES: usize = 64 << 10;
/// Complaints that are spelt out; more are counted.
const MAX_COMPLAINTS: usize = 20;

/// The map from criteria to tests, checked.
///
/// Invariant: every id stands under one or more criteria, or in `others`, or in `sentinels`, and
/// once in each list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Criteria {
    lists: Vec<(String, Vec<TestId>)>,
    others: Vec<TestId>,
    sentinels: Vec<TestId>,
    notes: String,
    canary: String,
}

/// `criteria.json` is not as it must be. The text is meant for whoever wrote the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct Malformed {
    complaints: Vec<String>,
    more: usize,
}

impl Malformed {
    /// One complaint or several.
    pub fn new(mut complaints: Vec<String>) -> Self {
        let more = complaints.len().saturating_sub(MAX_COMPLAINTS);
        complaints.truncate(MAX_COMPLAINTS);
        Self { complaints, more }
    }

    /// Each fault in a sentence; at most twenty.
    pub fn complaints(&self) -> &[String] {
        &self.complaints
    }

    fn text(&self) -> String {
        let mut text = String::from("criteria.json is not as it must be:");
        for complaint in &self.complaints {
            text.push_str("\n- ");
            text.push_str(complaint);
        }
        if self.more > 0 {
            text.push_str("\n- and ");
            text.push_str(&self.more.to_string());
            text.push_str(" more");
        }
        text
    }
}

/// The file as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: u32,
    criteria: Lists,
    #[serde(default)]
    others: Vec<String>,
    #[serde(default)]
    sentinels: Vec<String>,
    #[serde(default)]
    notes: String,
    /// Only in a sealed version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    canary: String,
}

/// A JSON object of lists that refuses a key given twice.
struct Lists(Vec<(String, Vec<String>)>);

impl<'de> Deserialize<'de> for Lists {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListsVisitor;
        impl<'de> Visitor<'de> for ListsVisitor {
            type Value = Lists;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of criterion ids, each with a list of test ids")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Lists, A::Error> {
                let mut lists: Vec<(String, Vec<String>)> = Vec::new();
                let mut seen = BTreeSet::new();
                while let Some((key, ids)) = map.next_entry::<String, Vec<String>>()? {
                    if !seen.insert(key.clone()) {
                        return Err(de::Error::custom(format!("`{}` twice", short(&key))));
                    }
                    lists.push((key, ids));
                }
                Ok(Lists(lists))
            }
        }
        deserializer.deserialize_map(ListsVisitor)
    }
}

impl Serialize for Lists {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, ids)| (key, ids)))
    }
}

impl Criteria {
    /// Reads the file. `known` are the task's criterion ids, in the order of the task.
    pub fn parse<S: AsRef<str>>(bytes: &[u8], known: &[S]) -> Result<Self, Malformed> {
        if bytes.len() > MAX_BYTES {
            return Err(Malformed::new(vec![format!(
                "it has {} bytes; at most {MAX_BYTES} are allowed",
                bytes.len()
            )]));
        }
        let file: File = serde_json::from_slice(bytes).map_err(|error| {
            Malformed::new(vec![format!(
                "it can't be read: {error}. It must be {{\"format\": 1, \"criteria\": {{\"c1\": \
                 [test ids]}}, \"others\": [test ids], \"sentinels\": [test ids], \"notes\": \"\"}}"
            )])
        })?;
        if file.format != 1 {
            return Err(Malformed::new(vec![format!(
                "`format` is {}; it must be 1",
                file.format
            )]));
        }
        let mut reader = Reader::default();
        let found = reader.criteria(file.criteria, known);
        let lists = known
            .iter()
            .map(|id| {
                let ids = found.get(id.as_ref()).cloned().unwrap_or_default();
                (id.as_ref().to_owned(), ids)
            })
            .collect();
        let others = reader.list("others", &file.others);
        let sentinels = reader.list("sentinels", &file.sentinels);
        if file.notes.len() > MAX_NOTES {
            reader.complaints.push(format!(
                "`notes` has {} bytes; at most {MAX_NOTES} are allowed",
                file.notes.len()
            ));
        }
        reader.places();
        if reader.complaints.is_empty() {
            Ok(Self {
                lists,
                others,
                sentinels,
                notes: file.notes,
                canary: file.canary,
            })
        } else {
            Err(Malformed::new(reader.complaints))
        }
    }

    /// The file's bytes.
    ///
    /// # Panics
    /// Never: strings and lists always have a JSON form.
    pub fn to_bytes(&self) -> Vec<u8> {
        let texts = |ids: &[TestId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
        let file = File {
            format: 1,
            criteria: Lists(
                self.lists
                    .iter()
                    .map(|(id, ids)| (id.clone(), texts(ids)))
                    .collect(),
            ),
            others: texts(&self.others),
            sentinels: texts(&self.sentinels),
            notes: self.notes.clone(),
            canary: self.canary.clone(),
        };
        let mut bytes = serde_json::to_vec_pretty(&file).expect("strings and lists are JSON");
        bytes.push(b'\n');
        bytes
    }

    /// Criteria in the order of the task, each with its tests; an empty list is *uncovered*.
    pub fn criteria(&self) -> impl Iterator<Item = (&str, &[TestId])> {
        self.lists
            .iter()
            .map(|(id, ids)| (id.as_str(), ids.as_slice()))
    }

    /// Tests that stand for no criterion.
    pub fn others(&self) -> &[TestId] {
        &self.others
    }

    /// Tests that any implementation must fail by assertion.
    pub fn sentinels(&self) -> &[TestId] {
        &self.sentinels
    }

    /// What the writer wanted to say.
    pub fn notes(&self) -> &str {
        &self.notes
    }

    /// The canary of a sealed version; empty in a writer's own file.
    pub fn canary(&self) -> &str {
        &self.canary
    }

    /// The map with the canary of a sealed version.
    #[must_use]
    pub fn with_canary(mut self, token: &str) -> Self {
        token.clone_into(&mut self.canary);
        self
    }

    /// Every test that a patch must satisfy: all but the sentinels.
    pub fn expected(&self) -> BTreeSet<TestId> {
        self.lists
            .iter()
            .flat_map(|(_, ids)| ids)
            .chain(&self.others)
            .cloned()
            .collect()
    }

    /// The name of each test in clear documents: criterion and position in the first criterion
    /// that lists it, or the position in `others` or `sentinels`. Positions count from 1.
    pub fn aliases(&self) -> BTreeMap<TestId, Alias> {
        let mut aliases = BTreeMap::new();
        for (criterion, ids) in &self.lists {
            for (id, ordinal) in ids.iter().zip(1..) {
                aliases
                    .entry(id.clone())
                    .or_insert_with(|| Alias::Criterion(criterion.clone(), ordinal));
            }
        }
        for (id, ordinal) in self.others.iter().zip(1..) {
            aliases.insert(id.clone(), Alias::Other(ordinal));
        }
        for (id, ordinal) in self.sentinels.iter().zip(1..) {
            aliases.insert(id.clone(), Alias::Sentinel(ordinal));
        }
        aliases
    }
}

/// Collects faults while the lists are read.
#[derive(Default)]
struct Reader {
    complaints: Vec<String>,
    /// Where each id stands: `criteria`, `others` or `sentinels`.
    places: BTreeMap<TestId, BTreeSet<&'static str>>,
}

impl Reader {
    fn criteria<S: AsRef<str>>(
        &mut self,
        lists: Lists,
        known: &[S],
    ) -> BTreeMap<String, Vec<TestId>> {
        let mut found = BTreeMap::new();
        for (criterion, ids) in lists.0 {
            if known.iter().any(|id| id.as_ref() == criterion) {
                let ids = self.read(&criterion, "criteria", &ids);
                found.insert(criterion, ids);
            } else {
                let known: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
                self.complaints.push(format!(
                    "the task has no criterion `{}`; it has {}",
                    short(&criterion),
                    known.join(", ")
                ));
            }
        }
        found
    }

    fn list(&mut self, name: &'static str, ids: &[String]) -> Vec<TestId> {
        self.read(name, name, ids)
    }

    fn read(&mut self, name: &str, place: &'static str, ids: &[String]) -> Vec<TestId> {
        let mut seen = BTreeSet::new();
        let mut out = Vec::new();
        if ids.len() > MAX_IDS {
            self.complaints.push(format!(
                "`{name}` lists {} ids; at most {MAX_IDS} are allowed",
                ids.len()
            ));
        }
        for text in ids.iter().take(MAX_IDS) {
            let Some(id) = TestId::new(text.clone()) else {
                self.complaints.push(format!(
                    "`{name}` lists `{}`, which is no test id (1 to {} bytes, no control characters)",
                    short(text),
                    TestId::MAX
                ));
                continue;
            };
            if !seen.insert(id.clone()) {
                self.complaints.push(format!("`{name}` lists `{id}` twice"));
                continue;
            }
            self.places.entry(id.clone()).or_default().insert(place);
            out.push(id);
        }
        out
    }

    /// An id may stand in one of the three places only.
    fn places(&mut self) {
        for (id, places) in &self.places {
            if places.len() > 1 {
                let places: Vec<&str> = places.iter().copied().collect();
                self.complaints.push(format!(
                    "`{id}` stands in {}; a test stands in one of them",
                    places.join(" and in ")
                ));
            }
        }
    }
}

/// Text from outside, cut and without control characters, for a message.
fn short(text: &str) -> String {
    text.chars()
        .take(120)
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

/// The name of a test in clear documents. Written `c1.2`, `o3` or `s1`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Alias {
    /// Criterion id and position in its list, from 1.
    Criterion(String, u32),
    /// Position in `others`, from 1.
    Other(u32),
    /// Position in `sentinels`, from 1.
    Sentinel(u32),
}

impl fmt::Display for Alias {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Criterion(criterion, ordinal) => write!(f, "{criterion}.{ordinal}"),
            Self::Other(ordinal) => write!(f, "o{ordinal}"),
            Self::Sentinel(ordinal) => write!(f, "s{ordinal}"),
        }
    }
}

impl FromStr for Alias {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |digits: &str| {
            let canonical = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
            digits.parse::<u32>().ok().filter(|_| canonical)
        };
        let parsed = if let Some((criterion, ordinal)) = text.rsplit_once('.') {
            let fine = !criterion.is_empty()
                && criterion.len() <= 32
                && criterion.bytes().all(|b| b.is_ascii_alphanumeric());
            number(ordinal)
                .filter(|_| fine)
                .map(|ordinal| Self::Criterion(criterion.to_owned(), ordinal))
        } else if let Some(digits) = text.strip_prefix('o') {
            number(digits).map(Self::Other)
        } else {
            text.strip_prefix('s').and_then(number).map(Self::Sentinel)
        };
        parsed.ok_or_else(|| format!("`{}` is no test alias (`c1.2`, `o3` or `s1`)", short(text)))
    }
}

impl Serialize for Alias {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Alias {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

impl JsonSchema for Alias {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Alias".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "pattern": "^([0-9A-Za-z]{1,32}\\.[1-9][0-9]*|[os][1-9][0-9]*)$"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KNOWN: [&str; 3] = ["c1", "c2", "c10"];

    fn parse(text: &str) -> Result<Criteria, Malformed> {
        Criteria::parse(text.as_bytes(), &KNOWN)
    }

    #[test]
    fn tests_get_the_alias_of_the_first_criterion_that_lists_them() {
        let criteria = parse(
            r#"{"format": 1, "criteria": {"c10": ["a", "d"], "c2": ["b", "a"]},
                "others": ["o"], "sentinels": ["s"], "notes": "n"}"#,
        )
        .unwrap();
        let aliases: Vec<String> = criteria
            .aliases()
            .iter()
            .map(|(id, alias)| format!("{id}={alias}"))
            .collect();
        assert_eq!(aliases, ["a=c2.2", "b=c2.1", "d=c10.2", "o=o1", "s=s1"]);
        assert_eq!(criteria.expected().len(), 4);
        let uncovered: Vec<&str> = criteria
            .criteria()
            .filter(|(_, ids)| ids.is_empty())
            .map(|(id, _)| id)
            .collect();
        assert_eq!(uncovered, ["c1"]);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let criteria =
            parse(r#"{"format": 1, "criteria": {"c1": ["a"], "c2": [], "c10": []}}"#).unwrap();
        assert_eq!(
            Criteria::parse(&criteria.to_bytes(), &KNOWN).unwrap(),
            criteria
        );
    }

    #[test]
    fn every_fault_is_named_at_once() {
        let error = parse(
            r#"{"format": 1, "criteria": {"c1": ["a", "a"], "c7": ["x"]},
                "others": ["a", "b\n"], "sentinels": ["b"]}"#,
        )
        .unwrap_err()
        .to_string();
        for part in [
            "`c1` lists `a` twice",
            "no criterion `c7`; it has c1, c2, c10",
            "`others` lists `b?`, which is no test id",
            "`a` stands in criteria and in others",
        ] {
            assert!(error.contains(part), "{part} in {error}");
        }
    }

    #[test]
    fn other_forms_are_refused() {
        for text in [
            "",
            "[]",
            r#"{"format": 2, "criteria": {}}"#,
            r#"{"format": 1, "criteria": {}, "extra": 1}"#,
            r#"{"format": 1, "criteria": {"c1": ["a"], "c1": ["b"]}}"#,
            r#"{"format": 1, "criteria": {"c1": "a"}}"#,
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(Criteria::parse(&vec![b' '; MAX_BYTES + 1], &KNOWN).is_err());
    }

    #[test]
    fn aliases_have_one_spelling() {
        for text in ["c1.2", "o3", "s1", "c10.11"] {
            assert_eq!(text.parse::<Alias>().unwrap().to_string(), text);
        }
        for text in ["", "c1", "c1.0", "c1.02", "o", "o+1", ".1", "x3", "c1.2.3"] {
            assert!(text.parse::<Alias>().is_err(), "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>) {
            let _ = Criteria::parse(&bytes, &KNOWN);
        }

        #[test]
        fn any_lists_are_read_without_panic(
            a in proptest::collection::vec(".{0,20}", 0..4),
            b in proptest::collection::vec(".{0,20}", 0..4),
            key in ".{0,8}",
        ) {
            let text = serde_json::json!({
                "format": 1, "criteria": {"c1": a, key: b}, "others": b, "sentinels": a
            });
            let _ = Criteria::parse(text.to_string().as_bytes(), &KNOWN);
        }
    }
}
