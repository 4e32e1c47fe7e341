//! What a plan and a grade know of the base before a patched tree of Rust is run.

use super::world::World;
use hangar::flow::drive::{Agents, drive};
use hangar::flow::project::Project;
use hangar::model::approval::Action;

const CONFIG: &str = r#"
format = 1
[task]
flow = "test-first"
[grader]
framework = "cargo"
tests = ["tests/"]
options = ["--config=tools/extra.toml"]
[deliver]
as = "branch"
branch = "hangar/{key}"
"#;
const NEAR: &str =
    "[source.crates-io]\nreplace-with = \"near\"\n[source.near]\ndirectory = \"near\"\n";
const MANIFEST: &str = "[package]\nname = \"calc\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
const SAME: &str = "[package]\nname = \"same\"\nversion = \"1.0.0\"\nedition = \"2021\"\n";
const CHECK: &str = "pub fn same(a: i32, b: i32) { assert_eq!(a, b); }\n";
const FAKE: &str = "pub fn same(_: i32, _: i32) {}\n";
const WRONG: &str = "pub fn add(_: i32, _: i32) -> i32 { 1 }\n";
const GOOD: &str = "pub fn add(a: i32, b: i32) -> i32 { a + b }\n";
const TEST: &str = "#[test] fn sum() { same::same(calc::add(2, 3), 5); }\n";
const ODD: &str = "#[test] fn odd() { assert_eq!(calc::add(2, 3), 9177); }\n";
const MAP: &str = r#"{"format": 1, "criteria": {"c1": ["accept::sum"]}, "others": [], "sentinels": ["odd::odd"], "notes": ""}"#;

fn world() -> World {
    let manifest = format!("{MANIFEST}[dev-dependencies]\nsame = \"1\"\n");
    World::new(&[
        ("hangar.toml", CONFIG),
        (".cargo/config.toml", NEAR),
        ("tools/extra.toml", "[term]\nquiet = true\n"),
        ("Cargo.toml", &manifest),
        ("src/lib.rs", "pub fn add(_: i32, _: i32) -> i32 { 0 }\n"),
        ("near/same/Cargo.toml", SAME),
        ("near/same/.cargo-checksum.json", "{\"files\":{}}"),
        ("near/same/src/lib.rs", CHECK),
    ])
}

/// Whether the first patch is accepted, and the reasons against it.
fn graded(patch: &[(&str, &str)]) -> (bool, String) {
    let sealed = [
        ("tests/accept.rs", TEST),
        ("tests/odd.rs", ODD),
        ("criteria.json", MAP),
    ];
    graded_in(&world(), &sealed, patch)
}

fn graded_in(world: &World, sealed: &[(&str, &str)], patch: &[(&str, &str)]) -> (bool, String) {
    for (path, text) in sealed {
        world.script("writer", &format!("writer/1/out/sealed/{path}"), text);
    }
    for (path, text) in patch {
        world.script("coder", &format!("implementer/1/src/{path}"), text);
    }
    let store = world.store();
    let id = world.task(&store, "Add", &["add(2, 3) is 5"]);
    let host = world.host();
    drive(&host, &store, &id, None, Agents::Start).unwrap();
    world.decide(&id, Action::Approve, "");
    // Where it goes on after a first grade is of no interest.
    let _ = drive(&host, &store, &id, None, Agents::Start);
    let dossier = store.dossier(&id).unwrap();
    let first = dossier.grades.first().unwrap().value();
    (first.accepted, first.reasons.join("\n"))
}

#[test]
#[ignore = "heavy: builds with cargo"]
fn names_of_the_tests_are_compared_with_the_base_in_a_grade() {
    let (accepted, reasons) = graded(&[("src/lib.rs", GOOD)]);
    assert!(accepted, "{reasons}");
    let manifest =
        format!("{MANIFEST}[dev-dependencies]\nsame = {{ path = \"fake\", package = \"fake\" }}\n");
    let fake = SAME.replace("same", "fake");
    let (accepted, reasons) = graded(&[
        ("src/lib.rs", WRONG),
        ("Cargo.toml", &manifest),
        ("fake/Cargo.toml", &fake),
        ("fake/src/lib.rs", FAKE),
    ]);
    assert!(!accepted);
    assert!(
        reasons.contains("replaced by code of the patch"),
        "{reasons}"
    );
    let (accepted, reasons) = graded(&[("src/lib.rs", WRONG), ("near/same/src/lib.rs", FAKE)]);
    assert!(!accepted);
    assert!(reasons.contains("1 protected path"), "{reasons}");
}

#[test]
fn what_the_options_of_a_plan_name_is_protected_in_it() {
    let world = world();
    let store = world.store();
    let id = world.task(&store, "Add", &["add(2, 3) is 5"]);
    let dossier = store.dossier(&id).unwrap();
    let project = Project::at_base(&store, &dossier.history.task).unwrap();
    let protected = &project.plan().unwrap().protected;
    for pattern in ["**/.cargo/", "tools/extra.toml", "near/"] {
        assert!(protected.iter().any(|one| one == pattern), "{protected:?}");
    }
    assert_eq!(protected.len(), 5, "{protected:?}");
}

#[test]
#[ignore = "heavy: builds with cargo"]
fn code_of_one_package_does_not_decide_how_another_is_built() {
    let config = CONFIG
        .replace("[\"tests/\"]", "[\"one/tests/\", \"two/tests/\"]")
        .replace("options = [\"--config=tools/extra.toml\"]\n", "");
    let manifest = |name: &str| MANIFEST.replace("calc", name);
    let (one, two) = (manifest("one"), manifest("two"));
    let test = |name: &str| format!("#[test] fn sum() {{ assert_eq!({name}::add(2, 3), 5); }}\n");
    let (first, second) = (test("one"), test("two"));
    let map = r#"{"format": 1, "criteria": {"c1": ["first::sum", "second::sum"]}, "others": [], "sentinels": [], "notes": ""}"#;
    let sealed = [
        ("one/tests/first.rs", first.as_str()),
        ("two/tests/second.rs", &second),
        ("criteria.json", map),
    ];
    let zero = "pub fn add(_: i32, _: i32) -> i32 { 0 }\n";
    let world = || {
        World::new(&[
            ("hangar.toml", &config),
            ("Cargo.toml", "[workspace]\nmembers = [\"one\", \"two\"]\n"),
            ("one/Cargo.toml", &one),
            ("one/src/lib.rs", zero),
            ("two/Cargo.toml", &two),
            ("two/src/lib.rs", zero),
        ])
    };
    let honest = [("one/src/lib.rs", GOOD), ("two/src/lib.rs", GOOD)];
    let (accepted, reasons) = graded_in(&world(), &sealed, &honest);
    assert!(accepted, "{reasons}");
    let bent = [
        ("one/src/lib.rs", GOOD),
        (
            "two/src/lib.rs",
            "pub fn add(a: i32, b: i32) -> i32 { if cfg!(good) { a + b } else { 0 } }\n",
        ),
        (
            "one/build.rs",
            "fn main() { std::fs::create_dir_all(\"../two/.cargo\").unwrap(); std::fs::write(\
             \"../two/.cargo/config.toml\", \"[build]\\nrustflags = [\\\"--cfg=good\\\"]\\n\").unwrap(); }\n",
        ),
    ];
    let (accepted, reasons) = graded_in(&world(), &sealed, &bent);
    assert!(!accepted, "{reasons}");
    assert!(reasons.contains("fail"), "{reasons}");
}
