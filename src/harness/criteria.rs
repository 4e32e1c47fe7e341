//! `criteria.json`: which test shows which criterion. Format: `docs/format.md`, "criteria.json".

use super::collect::Complaint;
use crate::model::outcome::TestId;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Largest number of test ids.
pub const MAX_IDS: usize = 20_000;

/// The map, checked: every id is well formed and stands in exactly one of the three parts, under
/// one or more criteria where it is the first.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct Criteria {
    /// Version of the format.
    format: u32,
    /// Tests by criterion.
    pub criteria: BTreeMap<String, BTreeSet<TestId>>,
    /// Tests of no criterion.
    pub others: BTreeSet<TestId>,
    /// Tests that any implementation must fail.
    pub sentinels: BTreeSet<TestId>,
    /// What the writer wants the reviewer to know.
    pub notes: String,
}

impl fmt::Debug for Criteria {
    /// Ids are as secret as the tests.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Criteria({} ids)", self.ids().len())
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    format: u32,
    #[serde(deserialize_with = "unique_keys")]
    criteria: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    others: Vec<String>,
    #[serde(default)]
    sentinels: Vec<String>,
    #[serde(default)]
    notes: String,
}

impl Criteria {
    /// Reads the file. `known` are the ids of the task's criteria.
    pub fn parse(bytes: &[u8], known: &[&str]) -> Result<Self, Complaint> {
        let raw: Raw = serde_json::from_slice(bytes)
            .map_err(|error| Complaint::one(format!("criteria.json cannot be read: {error}")))?;
        let mut complaint = Complaint::default();
        if raw.format != 1 {
            complaint.add("criteria.json: `format` must be 1");
        }
        let count = raw.criteria.values().map(Vec::len).sum::<usize>();
        if count + raw.others.len() + raw.sentinels.len() > MAX_IDS {
            return Err(Complaint::one(format!(
                "criteria.json lists more than {MAX_IDS} ids"
            )));
        }
        let mut criteria = BTreeMap::new();
        for (name, ids) in raw.criteria {
            if !known.contains(&name.as_str()) {
                let all = known.join(", ");
                complaint.add(format!(
                    "criteria.json: `{name}` is no criterion of this task ({all})"
                ));
            }
            let ids = read_ids(ids, &mut complaint);
            criteria.insert(name, ids);
        }
        let out = Self {
            format: 1,
            criteria,
            others: read_ids(raw.others, &mut complaint),
            sentinels: read_ids(raw.sentinels, &mut complaint),
            notes: raw.notes,
        };
        out.check_parts(&mut complaint);
        complaint.or(out)
    }

    /// Every id of the three parts.
    pub fn ids(&self) -> BTreeSet<&TestId> {
        let listed = self.criteria.values().flatten();
        listed.chain(&self.others).chain(&self.sentinels).collect()
    }

    /// Compares the map with the ids that the framework found in the sealed files.
    pub fn check_found(&self, found: &BTreeSet<TestId>) -> Result<(), Complaint> {
        let mut complaint = Complaint::default();
        let listed = self.ids();
        for id in listed.iter().filter(|id| !found.contains(**id)) {
            complaint.add(format!(
                "criteria.json lists `{id}`, which is no test in the files"
            ));
        }
        for id in found.iter().filter(|id| !listed.contains(*id)) {
            complaint.add(format!("the test `{id}` is not listed in criteria.json"));
        }
        complaint.or(())
    }

    fn check_parts(&self, complaint: &mut Complaint) {
        let shown: BTreeSet<_> = self.criteria.values().flatten().collect();
        for id in &self.others {
            if shown.contains(id) {
                complaint.add(format!("`{id}` stands under a criterion and in `others`"));
            }
        }
        for id in &self.sentinels {
            if shown.contains(id) || self.others.contains(id) {
                complaint.add(format!("`{id}` stands in `sentinels` and somewhere else"));
            }
        }
        if shown.is_empty() {
            complaint.add("criteria.json names no test for any criterion");
        }
    }
}

fn read_ids(ids: Vec<String>, complaint: &mut Complaint) -> BTreeSet<TestId> {
    let mut out = BTreeSet::new();
    for id in ids {
        match TestId::new(id.as_str()) {
            Some(valid) => {
                if !out.insert(valid) {
                    complaint.add(format!("criteria.json lists `{id}` twice in one list"));
                }
            }
            None => {
                complaint.add("criteria.json lists an id that is empty, too long or not printable");
            }
        }
    }
    out
}

/// A map whose keys may not repeat: which of two equal keys counts would depend on the reader.
fn unique_keys<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, Vec<String>>, D::Error> {
    struct Unique;
    impl<'de> Visitor<'de> for Unique {
        type Value = BTreeMap<String, Vec<String>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map of criteria to lists of test ids")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut out = BTreeMap::new();
            while let Some((key, value)) = map.next_entry::<String, Vec<String>>()? {
                if out.insert(key.clone(), value).is_some() {
                    return Err(de::Error::custom(format!("`{key}` stands there twice")));
                }
            }
            Ok(out)
        }
    }
    deserializer.deserialize_map(Unique)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Criteria, String> {
        Criteria::parse(text.as_bytes(), &["c1", "c2"]).map_err(|complaint| complaint.for_writer())
    }

    const GOOD: &str = r#"{"format": 1, "criteria": {"c1": ["t::a", "t::b"], "c2": ["t::a"]},
        "others": ["t::c"], "sentinels": ["s::x"], "notes": "n"}"#;

    #[test]
    fn a_good_map_is_read_and_compared() {
        let criteria = read(GOOD).unwrap();
        assert_eq!(criteria.ids().len(), 4);
        let found = |ids: &[&str]| ids.iter().map(|id| TestId::new(*id).unwrap()).collect();
        criteria
            .check_found(&found(&["t::a", "t::b", "t::c", "s::x"]))
            .unwrap();
        let complaint = criteria
            .check_found(&found(&["t::a", "t::b", "t::c", "t::new"]))
            .unwrap_err()
            .for_writer();
        assert!(complaint.contains("lists `s::x`") && complaint.contains("`t::new` is not listed"));
    }

    #[test]
    fn malformed_maps_are_told_exactly() {
        for (bad, part) in [
            ("", "cannot be read"),
            (r#"{"format": 2, "criteria": {"c1": ["a"]}}"#, "must be 1"),
            (r#"{"format": 1, "criteria": {}}"#, "names no test"),
            (
                r#"{"format": 1, "criteria": {"c9": ["a"]}}"#,
                "no criterion of this task (c1, c2)",
            ),
            (
                r#"{"format": 1, "criteria": {"c1": ["a"], "c1": ["b"]}}"#,
                "twice",
            ),
            (
                r#"{"format": 1, "criteria": {"c1": ["a", "a"]}}"#,
                "twice in one list",
            ),
            (
                r#"{"format": 1, "criteria": {"c1": ["a"]}, "others": ["a"]}"#,
                "in `others`",
            ),
            (
                r#"{"format": 1, "criteria": {"c1": ["a"]}, "sentinels": ["a"]}"#,
                "in `sentinels`",
            ),
            (
                r#"{"format": 1, "criteria": {"c1": ["a\n"]}}"#,
                "not printable",
            ),
            (
                r#"{"format": 1, "criteria": {"c1": ["a"]}, "extra": 1}"#,
                "unknown field",
            ),
        ] {
            let text = read(bad).unwrap_err();
            assert!(text.contains(part), "{bad}: {text}");
        }
    }

    #[test]
    fn ids_are_not_shown_by_debug() {
        assert_eq!(format!("{:?}", read(GOOD).unwrap()), "Criteria(4 ids)");
    }
}
