//! What differs between two sealed versions: files, what each test stands for, and how they are run.
//! For somebody who can decrypt both.

use crate::flow::version::Opened;
use crate::model::outcome::TestId;
use crate::model::plan::Plan;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What changed since another version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Changes {
    /// That version.
    pub since: u32,
    /// Files that it did not have.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub added: Vec<String>,
    /// Files with another content or mode.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub changed: Vec<String>,
    /// Files that are gone.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub removed: Vec<String>,
    /// Tests that stand for something else, that came or that went.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub tests: Vec<TestChange>,
    /// Fields of the grading plan with another value, and the base.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub plan: Vec<PlanChange>,
}

/// A test that moved in the map.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TestChange {
    /// The framework's name.
    pub id: String,
    /// What it stood for: criteria, `other`, `sentinel`; empty for a new test.
    pub before: Vec<String>,
    /// What it stands for; empty for a test that is gone.
    pub after: Vec<String>,
}

/// A field of the plan with another value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanChange {
    /// Its name.
    pub field: String,
    /// Before.
    pub before: String,
    /// Now.
    pub after: String,
}

impl Changes {
    /// From the old version to the new one.
    pub(super) fn between(old: &Opened, new: &Opened) -> Self {
        let (before, after) = (files(old), files(new));
        let names = |keep: &dyn Fn(&str) -> bool, of: &BTreeMap<String, (bool, Vec<u8>)>| {
            of.keys().filter(|path| keep(path)).cloned().collect()
        };
        Self {
            since: old.manifest.version,
            added: names(&|path| !before.contains_key(path), &after),
            changed: names(
                &|path| {
                    before
                        .get(path)
                        .is_some_and(|file| after.get(path) != Some(file))
                        && after.contains_key(path)
                },
                &after,
            ),
            removed: names(&|path| !after.contains_key(path), &before),
            tests: tests(old, new),
            plan: plan(old, new),
        }
    }

    /// Whether no file came, went or changed.
    pub fn same_files(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }

    /// Whether nothing differs at all.
    pub fn is_empty(&self) -> bool {
        self.same_files() && self.tests.is_empty() && self.plan.is_empty()
    }
}

/// Each file's mode and content, without the canary, which is another in every version.
fn files(opened: &Opened) -> BTreeMap<String, (bool, Vec<u8>)> {
    let files = opened.payload.files().iter();
    files
        .map(|file| {
            let bytes = crate::seal::remove(file.bytes.expose(), &opened.canary);
            let executable = file.mode == crate::seal::FileMode::Executable;
            (file.path.clone(), (executable, bytes))
        })
        .collect()
}

/// What each test stands for.
fn places(opened: &Opened) -> BTreeMap<TestId, Vec<String>> {
    let mut found: BTreeMap<TestId, Vec<String>> = BTreeMap::new();
    let criteria = &opened.criteria;
    let lists = criteria
        .criteria()
        .map(|(id, tests)| (id.to_string(), tests))
        .chain([
            ("other".to_owned(), criteria.others()),
            ("sentinel".to_owned(), criteria.sentinels()),
        ]);
    for (name, tests) in lists {
        for test in tests {
            found.entry(test.clone()).or_default().push(name.clone());
        }
    }
    found
}

fn tests(old: &Opened, new: &Opened) -> Vec<TestChange> {
    let (before, after) = (places(old), places(new));
    let ids: BTreeSet<&TestId> = before.keys().chain(after.keys()).collect();
    let place = |of: &BTreeMap<TestId, Vec<String>>, id| of.get(id).cloned().unwrap_or_default();
    ids.into_iter()
        .map(|id| TestChange {
            id: id.to_string(),
            before: place(&before, id),
            after: place(&after, id),
        })
        .filter(|change| change.before != change.after)
        .collect()
}

fn plan(old: &Opened, new: &Opened) -> Vec<PlanChange> {
    let fields = |one: &Opened| fields(&one.manifest.plan, one.manifest.base.short());
    differences(&fields(old), &fields(new))
}

fn differences(
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) -> Vec<PlanChange> {
    let text = |of: &BTreeMap<String, String>, name| of.get(name).cloned().unwrap_or_default();
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    names
        .into_iter()
        .map(|name| PlanChange {
            field: name.clone(),
            before: text(before, name),
            after: text(after, name),
        })
        .filter(|change| change.before != change.after)
        .collect()
}

/// The plan and the base, flat: `limits.memory` is a field of its own.
fn fields(plan: &Plan, base: String) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    let plan = serde_json::to_value(plan).expect("texts, numbers and words are JSON");
    flatten("", &plan, &mut out);
    out.insert("base".to_owned(), base);
    out
}

fn flatten(name: &str, value: &Value, out: &mut BTreeMap<String, String>) {
    let text = match value {
        Value::Object(table) => {
            for (key, value) in table {
                let name = match name {
                    "" => key.clone(),
                    above => format!("{above}.{key}"),
                };
                flatten(&name, value, out);
            }
            return;
        }
        Value::Array(list) => {
            let text = |one: &Value| one.as_str().map_or_else(|| one.to_string(), str::to_owned);
            list.iter().map(text).collect::<Vec<_>>().join(", ")
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    out.insert(name.to_owned(), text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::outcome::Trust;
    use crate::model::plan::Framework;

    #[test]
    fn each_field_of_the_plan_that_changed_is_named_with_both_values() {
        let old = Plan::new(Framework::Exec);
        let mut new = old.clone();
        new.trust = Trust::None;
        new.limits.timeout = 5;
        new.may_touch = vec!["a".into(), "b".into()];
        let changes = differences(&fields(&old, "1".into()), &fields(&new, "2".into()));
        let texts: Vec<_> = changes
            .iter()
            .map(|one| format!("{}: {} > {}", one.field, one.before, one.after))
            .collect();
        assert_eq!(
            texts,
            [
                "base: 1 > 2",
                "limits.timeout: 600 > 5",
                "may_touch:  > a, b",
                "trust: sealed > none"
            ]
        );
        let same = fields(&old, "1".into());
        assert_eq!(differences(&same, &same), []);
    }
}
