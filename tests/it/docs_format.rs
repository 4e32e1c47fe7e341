//! `docs/format.md` against the code: every field, word, namespace, limit and frozen digest.

use crate::docs::{Section, page, sections};
use hangar::flow::delivery;
use hangar::flow::version::{Meta, MetaTest};
use hangar::grade::call::Hit;
use hangar::model::approval::Approval;
use hangar::model::codec;

use hangar::model::event::{Criterion, Event};
use hangar::model::grade::Grade;
use hangar::model::ids::{Alias, CriterionId};
use hangar::model::listing::{Entry, Listing, Mode, patch_id};
use hangar::model::manifest::{BaseStatus, Manifest, Reseal};
use hangar::model::outcome::TestId;
use hangar::model::policy::{Members, Root};
use hangar::model::run::Run;
use hangar::model::task::{MAX_CRITERIA, MAX_TITLE, text_digest};
use hangar::seal::{Canary, MAX_CIPHERTEXT, MAX_FILE, MAX_FILES, MAX_TOTAL};
use hangar::store::chain::MAX_COMMITS;
use hangar::store::check::Document;
use hangar::trust::{MAX_SIGNATURE, Namespace};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Rust type → heading of its table.
const HEADINGS: &[(&str, &str)] = &[
    ("Root", "Root"),
    ("Thresholds", "Thresholds"),
    ("Acceptance", "Acceptance"),
    ("RootKey", "Root key"),
    ("Members", "Members"),
    ("Person", "Person"),
    ("Machine", "Machine"),
    ("Reduction", "Reduced"),
    ("Rival", "Rivals"),
    ("Signer", "Signer"),
    ("PolicyRef", "Policy reference"),
    ("Event", "Events"),
    ("Criterion", "Criterion"),
    ("Manifest", "Manifest"),
    ("Counts", "Counts"),
    ("Plan", "Plan"),
    ("PlanLimits", "Plan limits"),
    ("BaseResult", "Base check"),
    ("Coverage", "Coverage"),
    ("Reseal", "Reseal"),
    ("Approval", "Approval"),
    ("Run", "Run"),
    ("Harness", "Harness"),
    ("SandboxRecord", "Sandbox"),
    ("RunResult", "Result"),
    ("Egress", "Egress"),
    ("Attachment", "Attachment"),
    ("Grade", "Grade"),
    ("Subject", "Subject"),
    ("GradeCounts", "Grade counts"),
    ("Timing", "Timing"),
    ("TestResult", "Test"),
];

/// Schemas of all documents, by type name.
fn schemas() -> BTreeMap<String, Value> {
    let mut out = BTreeMap::new();
    let documents = [
        schemars::schema_for!(Root),
        schemars::schema_for!(Members),
        schemars::schema_for!(Event),
        schemars::schema_for!(Manifest),
        schemars::schema_for!(Reseal),
        schemars::schema_for!(Approval),
        schemars::schema_for!(Run),
        schemars::schema_for!(Grade),
    ];
    for schema in documents {
        let mut value = schema.to_value();
        let nested = value.as_object_mut().unwrap().remove("$defs");
        let title = value["title"].as_str().unwrap().to_owned();
        out.insert(title, value);
        if let Some(Value::Object(nested)) = nested {
            out.extend(nested);
        }
    }
    out
}

/// Fields of a schema with whether they must be there; `kind` is described in the text.
fn fields(schema: &Value) -> BTreeMap<String, bool> {
    let required: BTreeSet<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties
        .filter(|(name, value)| !(*name == "kind" && value.get("const").is_some()))
        .map(|(name, _)| (name.clone(), required.contains(name.as_str())))
        .collect()
}

fn compare(heading: &str, section: Option<&Section>, fields: &BTreeMap<String, bool>) {
    let section = section.unwrap_or_else(|| panic!("no section `{heading}`"));
    let written: BTreeSet<_> = section.rows.keys().collect();
    let real: BTreeSet<_> = fields.keys().collect();
    assert_eq!(written, real, "fields under `{heading}`");
    for (name, required) in fields {
        let cells: Vec<_> = section.rows[name].split('|').collect();
        assert_eq!(
            !cells[2].contains("optional"),
            *required,
            "`{heading}`: is `{name}` optional? {}",
            section.rows[name]
        );
    }
}

/// The page's word for an integer of this size.
fn integers(heading: &str, section: &Section, schema: &Value) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let word = match field["format"].as_str() {
            Some("uint8") => "small integer",
            Some("uint32" | "int64") => "integer",
            Some("uint64") => "large integer",
            _ => continue,
        };
        let kind = section.rows[name].split('|').nth(2).unwrap().trim();
        let kind = kind.trim_end_matches(", optional");
        assert_eq!(kind, word, "`{name}` under `{heading}`");
    }
}

#[test]
fn every_field_of_every_document_has_its_row() {
    let page = sections(&page("docs/format.md"));
    let headings: BTreeMap<_, _> = HEADINGS.iter().copied().collect();
    let mut seen = BTreeSet::new();
    for (name, schema) in schemas() {
        if let Some(variants) = schema["oneOf"].as_array() {
            for variant in variants {
                let Some(kind) = variant["properties"]["kind"]["const"].as_str() else {
                    continue;
                };
                let heading = match (name.as_str(), kind) {
                    ("Change", kind) => kind,
                    ("Writer", "agent") => "Writer",
                    ("Writer", "person") => "Writer, a person",
                    other => panic!("no section is known for {other:?}"),
                };
                compare(heading, page.get(heading), &fields(variant));
                integers(heading, &page[heading], variant);
            }
        } else if schema.get("properties").is_some() {
            let heading = headings
                .get(name.as_str())
                .unwrap_or_else(|| panic!("no section is known for {name}"));
            compare(heading, page.get(*heading), &fields(&schema));
            integers(heading, &page[*heading], &schema);
            seen.insert(name);
        }
    }
    let known: BTreeSet<_> = headings.keys().map(|name| (*name).to_owned()).collect();
    assert_eq!(seen, known, "types that are no longer part of a document");
}

#[test]
fn every_word_is_named() {
    let text = page("docs/format.md");
    fn words(value: &Value, out: &mut BTreeSet<String>) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    match (key.as_str(), value) {
                        ("const", Value::String(word)) => {
                            out.insert(word.clone());
                        }
                        ("enum", Value::Array(list)) => {
                            out.extend(list.iter().filter_map(Value::as_str).map(Into::into));
                        }
                        _ => words(value, out),
                    }
                }
            }
            Value::Array(list) => list.iter().for_each(|value| words(value, out)),
            _ => {}
        }
    }
    let mut all = BTreeSet::new();
    for schema in schemas().values() {
        words(schema, &mut all);
    }
    assert!(all.contains("sealed+limits") && all.contains("unconfirmed"));
    for word in all {
        assert!(text.contains(&format!("`{word}`")), "`{word}` is not named");
    }
}

#[test]
fn every_namespace_is_named_with_its_document() {
    let rows = &sections(&page("docs/format.md"))["Signatures"].rows;
    let mut of: BTreeMap<&str, Namespace> = BTreeMap::new();
    of.insert("root.toml", Namespace::Root);
    of.insert("members.toml", Namespace::Members);
    of.insert("event.toml", Event::NAMESPACE);
    of.insert("manifest.toml", Manifest::NAMESPACE);
    of.insert("reseal.toml", Reseal::NAMESPACE);
    of.insert("approval.toml", Approval::NAMESPACE);
    of.insert("run.toml", Run::NAMESPACE);
    of.insert("grade.toml", Grade::NAMESPACE);
    assert_eq!(of.len(), Namespace::ALL.len());
    for (file, namespace) in of {
        assert!(rows[file].contains(&format!("| `{namespace}` |")), "{file}");
    }
}

#[test]
fn frozen_digests_are_the_ones_of_the_page() {
    let text = page("docs/format.md");
    let mut three = Listing::new();
    let entry = Entry::of(Mode::Regular, b"assert True\n");
    three.insert("tests/test_a.py", entry);
    three.insert("run", Entry::of(Mode::Executable, b"#!/bin/sh\n"));
    three.insert("link", Entry::of(Mode::Symlink, b"run"));
    let criterion = Criterion {
        id: CriterionId::at(0),
        text: "The total is printed".into(),
    };
    for (what, digest) in [
        ("the empty listing", Listing::new().digest()),
        ("three files", three.digest()),
        ("their patch id", patch_id(&Listing::new(), &three)),
        (
            "a task's text",
            text_digest("Add a total", "", &[criterion]),
        ),
    ] {
        assert!(text.contains(&digest.hex()), "{what} is {}", digest.hex());
    }
}

#[test]
fn limits_are_the_ones_of_the_page() {
    let limits = &sections(&page("docs/format.md"))["Limits"].text;
    let mib = |bytes: usize| format!("{} MiB", bytes >> 20);
    let commas = |number: usize| format!("{},{:03}", number / 1000, number % 1000);
    for text in [
        format!("| a document | {},", mib(codec::MAX_BYTES)),
        format!("{} levels of nesting", codec::MAX_DEPTH),
        format!("{} values", commas(codec::MAX_VALUES)),
        format!("| a signature | {} KiB", MAX_SIGNATURE >> 10),
        format!("| commits of one ref | {}", commas(MAX_COMMITS)),
        format!("| sealed files | {MAX_FILES}, each {}", mib(MAX_FILE)),
        format!("the archive {}", mib(MAX_TOTAL)),
        format!("| a ciphertext | {}", mib(MAX_CIPHERTEXT)),
        format!("| a title | {MAX_TITLE} bytes"),
        format!("| criteria of a task | {MAX_CRITERIA}"),
    ] {
        assert!(limits.contains(&text), "`{text}` is not in {limits}");
    }
}

#[test]
fn examples_of_names_are_names() {
    let text = page("docs/format.md");
    for alias in ["c1.2", "o3", "s1"] {
        assert!(alias.parse::<Alias>().is_ok() && text.contains(&format!("`{alias}`")));
    }
    // The line of a canary in the page is the one that is put into files.
    let token = format!("hgc1_{}", "a2".repeat(16));
    let canary = Canary::parse(&token).unwrap();
    let file = hangar::seal::insert("test.py", b"x = 1\n", &canary);
    let line = String::from_utf8(file).unwrap();
    assert!(text.contains(line.lines().next().unwrap()));
}

#[test]
fn trailers_and_base_results_are_the_ones_of_the_page() {
    let text = page("docs/format.md");
    let rows = &sections(&text)["Delivered commit"].rows;
    let trailers: BTreeSet<_> = [
        delivery::TASK_TRAILER,
        delivery::ACCEPTANCE_TRAILER,
        delivery::GRADE_TRAILER,
        delivery::MANIFEST_TRAILER,
        delivery::RUN_TRAILER,
        delivery::SUITE_TRAILER,
    ]
    .into();
    let named: BTreeSet<_> = rows.keys().map(String::as_str).collect();
    assert_eq!(named, trailers);

    let meta = Meta {
        format: 1,
        tests: vec![MetaTest {
            id: TestId::new("tests/test_a.py::test_one").unwrap(),
            alias: "c1.1".parse().unwrap(),
            base: BaseStatus::Fails,
            flaky: false,
        }],
    };
    assert!(text.contains(&serde_json::to_string(&meta).unwrap()));

    for hit in [
        Hit::Memory,
        Hit::Processes,
        Hit::Output,
        Hit::FileSize,
        Hit::Disk,
        Hit::Time,
    ] {
        let word = serde_json::to_value(hit).unwrap();
        assert!(text.contains(&format!("`{}`", word.as_str().unwrap())));
    }
}

#[test]
fn the_subset_is_the_one_of_the_page() {
    // One document of each kind that the page rules out, beside one that it allows.
    #[derive(Debug, serde::Serialize, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Any {
        format: i64,
        #[serde(default)]
        v: Option<toml::Value>,
    }
    let read = |value: &str| codec::decode::<Any>(format!("format = 1\nv = {value}\n").as_bytes());
    for good in [
        "\"x\"",
        "'x'",
        "\"\"\"a\nb\"\"\"",
        "-1",
        "0",
        "true",
        "[1, 2]",
        "{ a = 1 }",
        "[{ a = [] }]",
    ] {
        assert!(read(good).is_ok(), "{good}: {:?}", read(good));
    }
    assert!(codec::decode::<Any>("\u{feff}format = 1\n".as_bytes()).is_err());
    for bad in [
        "1.5",
        "inf",
        "2026-01-01",
        "07:00:00",
        "0x10",
        "0o7",
        "0b1",
        "1_000",
        "+1",
        "[1.5]",
        "[0x10]",
        "[[1_000]]",
        "[2026-01-01]",
        "1 # note",
        "\"\\e\"",
        "\"\\x41\"",
        "{ a = 1, }",
        "{ a = 1,\n b = 2 }",
        "\"a\"\r",
        "1\nv = 2",
    ] {
        assert!(read(bad).is_err(), "{bad} was taken");
    }
}

#[test]
fn the_examples_of_the_configuration_page_are_read_without_a_warning() {
    let examples = crate::docs::blocks(&page("docs/reference/configuration.md"), "toml");
    let [repository, pytest, junit, user] = examples.as_slice() else {
        panic!("{} examples", examples.len())
    };
    let path = std::path::Path::new("x.toml");
    for text in [repository, pytest, junit] {
        let read = hangar::config::repository::Repository::parse(path, text).unwrap();
        assert!(read.warnings.is_empty(), "{:?}", read.warnings);
    }
    let user = hangar::config::user::User::parse(path, user, None).unwrap();
    assert!(user.warnings.is_empty(), "{:?}", user.warnings);
    for (name, _) in hangar::config::env_vars::ALL {
        assert!(page("docs/reference/configuration.md").contains(&format!("| `{name}` |")));
    }
}
