//! `criteria.json`: which hidden test stands for which acceptance criterion, and the aliases by
//! which clear documents name tests.
//!
//! Format: `docs/format.md`, "criteria.json". Must not know how tests are run.

use crate::model::ids::{Alias, CriterionId};
use crate::model::outcome::TestId;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

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
    lists: Vec<(CriterionId, Vec<TestId>)>,
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
    pub fn parse(bytes: &[u8], known: &[CriterionId]) -> Result<Self, Malformed> {
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
                let ids = found.get(id.as_str()).cloned().unwrap_or_default();
                (id.clone(), ids)
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
                    .map(|(id, ids)| (id.to_string(), texts(ids)))
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
    pub fn criteria(&self) -> impl Iterator<Item = (&CriterionId, &[TestId])> {
        self.lists.iter().map(|(id, ids)| (id, ids.as_slice()))
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

    /// Every test once with its public name, criteria first, then others, then sentinels. The name
    /// is criterion and position in the first criterion that lists it (`c1.2`), or the position in
    /// `others` (`o3`) or `sentinels` (`s1`). Positions count from 1.
    pub fn named(&self) -> Vec<(Alias, TestId)> {
        let mut seen = BTreeSet::new();
        let mut named = Vec::new();
        let lists = self
            .lists
            .iter()
            .map(|(criterion, ids)| (format!("{criterion}."), ids))
            .chain([
                ("o".to_owned(), &self.others),
                ("s".to_owned(), &self.sentinels),
            ]);
        for (prefix, ids) in lists {
            for (ordinal, id) in ids.iter().enumerate() {
                let alias = format!("{prefix}{}", ordinal + 1).parse::<Alias>();
                if let Some(alias) = alias.ok().filter(|_| seen.insert(id.clone())) {
                    named.push((alias, id.clone()));
                }
            }
        }
        named
    }

    /// The public name of each test, see [`Criteria::named`].
    pub fn aliases(&self) -> BTreeMap<TestId, Alias> {
        let named = self.named().into_iter();
        named.map(|(alias, id)| (id, alias)).collect()
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
    fn criteria(&mut self, lists: Lists, known: &[CriterionId]) -> BTreeMap<String, Vec<TestId>> {
        let mut found = BTreeMap::new();
        for (criterion, ids) in lists.0 {
            if known.iter().any(|id| id.as_str() == criterion) {
                let ids = self.read(&criterion, "criteria", &ids);
                found.insert(criterion, ids);
            } else {
                let known: Vec<&str> = known.iter().map(CriterionId::as_str).collect();
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn known() -> Vec<CriterionId> {
        let known = ["c1", "c2", "c10"];
        known.iter().map(|id| id.parse().unwrap()).collect()
    }

    fn parse(text: &str) -> Result<Criteria, Malformed> {
        Criteria::parse(text.as_bytes(), &known())
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
            .map(|(id, _)| id.as_str())
            .collect();
        assert_eq!(uncovered, ["c1"]);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let criteria =
            parse(r#"{"format": 1, "criteria": {"c1": ["a"], "c2": [], "c10": []}}"#).unwrap();
        assert_eq!(
            Criteria::parse(&criteria.to_bytes(), &known()).unwrap(),
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
        assert!(Criteria::parse(&vec![b' '; MAX_BYTES + 1], &known()).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>) {
            let _ = Criteria::parse(&bytes, &known());
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
            let _ = Criteria::parse(text.to_string().as_bytes(), &known());
        }
    }
}
