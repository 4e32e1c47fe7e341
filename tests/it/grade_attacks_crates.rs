//! Patches that give crate names of the tests to code of their own, against `cargo`; and how the tests are
//! compiled.

use crate::grade_attacks_cargo::{GOOD, WRONG};
use crate::grade_kit::{Case, File, id, word};
use hangar::grade::report::Fault;
use hangar::model::outcome::Verdict;
use hangar::model::plan::Framework;

const PACKAGE: &str = "[package]\nname = \"calc\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
const VENDOR: &str =
    "[source.crates-io]\nreplace-with = \"near\"\n[source.near]\ndirectory = \"vendor\"\n";
/// The base: a package with a crate from outside, which itself uses one, and one that its tests do not use.
/// They come from a folder of crates, as no registry is near; cargo takes them for crates.io's.
const BASE: &[File<'_>] = &[
    (".cargo/config.toml", VENDOR),
    (
        "Cargo.toml",
        "[package]\nname = \"calc\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\
         [dependencies]\nhelp = { path = \"crates/help\" }\nspare = \"1\"\n\
         [dev-dependencies]\nsame = \"1\"\n",
    ),
    (
        "src/lib.rs",
        "pub fn add(_: i32, _: i32) -> i32 { help::zero() }\n",
    ),
    (
        "crates/help/Cargo.toml",
        "[package]\nname = \"help\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
    ),
    ("crates/help/src/lib.rs", "pub fn zero() -> i32 { 0 }\n"),
    (
        "vendor/same/Cargo.toml",
        "[package]\nname = \"same\"\nversion = \"1.0.0\"\nedition = \"2021\"\n\
         [dependencies]\ninner = \"1\"\n",
    ),
    ("vendor/same/.cargo-checksum.json", "{\"files\":{}}"),
    (
        "vendor/same/src/lib.rs",
        "pub fn same(a: i32, b: i32) { assert!(inner::equal(a, b), \"assertion failed\"); }\n",
    ),
    (
        "vendor/inner/Cargo.toml",
        "[package]\nname = \"inner\"\nversion = \"1.0.0\"\nedition = \"2021\"\n",
    ),
    ("vendor/inner/.cargo-checksum.json", "{\"files\":{}}"),
    (
        "vendor/inner/src/lib.rs",
        "pub fn equal(a: i32, b: i32) -> bool { a == b }\n",
    ),
    (
        "vendor/spare/Cargo.toml",
        "[package]\nname = \"spare\"\nversion = \"1.0.0\"\nedition = \"2021\"\n",
    ),
    ("vendor/spare/.cargo-checksum.json", "{\"files\":{}}"),
    ("vendor/spare/src/lib.rs", ""),
];
const SEALED: &[File<'_>] = &[
    (
        "tests/accept.rs",
        "extern crate same;\n#[test] fn sum() { same::same(calc::add(2, 3), 5); }\n\
         #[test] fn zero() { assert_eq!(calc::add(7, 0), 7); }\n",
    ),
    (
        "tests/odd.rs",
        "#[test] fn odd() { assert_eq!(calc::add(40, 2), 9177); }\n",
    ),
];
/// Stands for `same`, and lets everything pass.
const FAKE: &str = "pub fn same(_: i32, _: i32) {}\n";
/// Code under test that `FAKE` alone does not save.
const HALF: &str = "pub fn add(a: i32, b: i32) -> i32 { if b == 0 { a } else { a - b - 1 } }\n";

fn case() -> Case<'static> {
    Case {
        framework: Framework::Cargo,
        base: BASE,
        sealed: SEALED,
        map: r#"{"format": 1, "criteria": {"c1": ["accept::sum", "accept::zero"]},
            "sentinels": ["odd::odd"]}"#,
        tune: |suite| suite.plan.verdict = Verdict::Report,
    }
}

fn manifest(rest: &str) -> String {
    format!("{PACKAGE}{rest}")
}

fn package(name: &str, rest: &str) -> String {
    format!("[package]\nname = \"{name}\"\nversion = \"1.0.0\"\nedition = \"2021\"\n{rest}")
}

fn expect(case: &Case<'_>, expected: &str, patch: &[File<'_>]) {
    let judgement = case.grade(patch);
    let reasons = &judgement.reasons;
    assert_eq!(word(&judgement), expected, "{reasons:?}\n{patch:?}");
    if expected == "void" {
        let told = format!("{reasons:?}");
        assert!(
            told.contains("Replaced") || told.contains("replaced"),
            "{told}"
        );
    }
}

#[test]
#[ignore = "heavy: builds with cargo"]
fn honest_patches_of_manifests_are_accepted_and_wrong_ones_are_not() {
    let dependencies = "[dev-dependencies]\nsame = \"1\"\n";
    let good = ("src/lib.rs", GOOD);
    expect(&case(), "accepted", &[good]);
    expect(&case(), "not accepted", &[("src/lib.rs", WRONG)]);
    // New code of its own in a new crate, one of its own crates moved and called otherwise, a dependency
    // that no test uses gone, another one used.
    let more = manifest(&format!(
        "[workspace]\nmembers = [\"crates/*\"]\n[dependencies]\nsum = {{ path = \"crates/sum\" }}\n\
         aid = {{ path = \"crates/aid\", package = \"help\" }}\ninner = \"1\"\n{dependencies}"
    ));
    let code = "pub fn add(a: i32, b: i32) -> i32 { sum::add(a, b) + aid::zero() }\n";
    let sum = package("sum", "");
    let help = package("help", "[lib]\nname = \"helper\"\n");
    let files = [
        ("Cargo.toml", more.as_str()),
        ("src/lib.rs", code),
        ("crates/sum/Cargo.toml", &sum),
        ("crates/sum/src/lib.rs", GOOD),
        ("crates/aid/Cargo.toml", &help),
        ("crates/aid/src/lib.rs", "pub fn zero() -> i32 { 0 }\n"),
        ("crates/help/Cargo.toml", &package("unused", "")),
    ];
    expect(&case(), "accepted", &files);
    let wrong = [files.as_slice(), &[("crates/sum/src/lib.rs", WRONG)]].concat();
    expect(&case(), "not accepted", &wrong);
}

#[test]
#[ignore = "heavy: builds with cargo"]
fn a_dependency_of_the_tests_is_not_replaced() {
    let own = "help = { path = \"crates/help\" }\n";
    let by = |dependency: &str| {
        manifest(&format!(
            "[dependencies]\n{own}[dev-dependencies]\n{dependency}\n"
        ))
    };
    let fake = |manifest: String, rest: &str, place: &str| {
        let path = format!("{place}/Cargo.toml");
        let code = format!("{place}/src/lib.rs");
        let name = if rest.starts_with('!') {
            "same"
        } else {
            "fake"
        };
        let package = package(name, rest.trim_start_matches('!'));
        let files = [
            ("src/lib.rs", HALF),
            ("Cargo.toml", manifest.as_str()),
            (path.as_str(), package.as_str()),
            (code.as_str(), FAKE),
        ];
        expect(&case(), "void", &files);
    };
    let lib = "[lib]\nname = \"same\"\n";
    fake(by("same = { path = \"fake\" }"), "!", "fake");
    fake(
        by("same = { path = \"fake\", package = \"fake\" }"),
        "",
        "fake",
    );
    fake(by("fake = { path = \"fake\" }"), lib, "fake");
    // It keeps the name for a script that builds it.
    let hidden =
        "[build-dependencies]\nsame = \"1\"\n[dev-dependencies]\nfake = { path = \"fake\" }\n";
    fake(
        manifest(&format!("[dependencies]\n{own}{hidden}")),
        lib,
        "fake",
    );
    let shared = "[workspace]\nmembers = [\"fake\"]\n\
                  [workspace.dependencies]\nsame = { path = \"fake\", package = \"fake\" }\n";
    let inherited = format!("{}{shared}", by("same = { workspace = true }"));
    fake(inherited, "", "fake");
    let patched = "[patch.crates-io]\nsame = { path = \"fake\" }\n";
    fake(format!("{}{patched}", by("same = \"1\"")), "!", "fake");
    // What stands for what the tests use is replaced itself.
    let deep = format!(
        "{}[patch.crates-io]\ninner = {{ path = \"inner\" }}\n",
        by("same = \"1\"")
    );
    let files = [
        ("src/lib.rs", HALF),
        ("Cargo.toml", deep.as_str()),
        ("inner/Cargo.toml", &package("inner", "")),
        (
            "inner/src/lib.rs",
            "pub fn equal(_: i32, _: i32) -> bool { true }\n",
        ),
    ];
    expect(&case(), "void", &files);
}

#[test]
#[ignore = "heavy: builds with cargo"]
fn a_dependency_that_is_gone_is_not_found_elsewhere() {
    let gone = manifest("build = \"make.rs\"\n");
    let script = "fn main() {\n  let out = std::env::var(\"OUT_DIR\").unwrap();\n  \
        std::fs::write(format!(\"{out}/same.rs\"), \"pub fn same(_: i32, _: i32) {}\").unwrap();\n  \
        let rustc = std::env::var(\"RUSTC\").unwrap();\n  \
        assert!(std::process::Command::new(rustc).current_dir(&out)\
        .args([\"--crate-type=rlib\", \"same.rs\"]).status().unwrap().success());\n  \
        println!(\"cargo:rustc-link-search=crate={out}\");\n}\n";
    let files = [
        ("src/lib.rs", HALF),
        ("Cargo.toml", gone.as_str()),
        ("make.rs", script),
    ];
    expect(&case(), "void", &files);
}

#[test]
#[ignore = "heavy: builds with cargo"]
fn the_standard_library_of_the_tests_is_not_replaced() {
    // It tells the sentinel from the other test.
    let checks = "#[macro_export] macro_rules! assert { ($($t:tt)*) => {}; }\n\
        #[macro_export] macro_rules! assert_eq { ($a:expr, $b:expr) => {\n  \
        if $b == 9177 { panic!(\"assertion failed\") } }; }\n";
    for name in ["std", "core"] {
        let plain = format!("#[test] fn sum() {{ {name}::assert_eq!(calc::add(2, 3), 5); }}\n");
        let sealed = [("tests/accept.rs", plain.as_str()), SEALED[1]];
        let case = Case {
            sealed: &sealed,
            map: r#"{"format": 1, "criteria": {"c1": ["accept::sum"]}, "sentinels": ["odd::odd"]}"#,
            ..case()
        };
        let code = format!(
            "pub use ::{name}::*;\n{checks}pub mod prelude {{\n  pub mod rust_2021 {{\n    \
             pub use ::{name}::prelude::rust_2021::*;\n    pub use crate::{{assert, assert_eq}};\n  }}\n  \
             pub mod v1 {{ pub use ::{name}::prelude::v1::*; }}\n}}\n"
        );
        let named = manifest(&format!(
            "[dev-dependencies]\n{name} = {{ path = \"fake\", package = \"fake\" }}\n"
        ));
        let files = [
            ("src/lib.rs", WRONG),
            ("Cargo.toml", named.as_str()),
            ("fake/Cargo.toml", &package("fake", "")),
            ("fake/src/lib.rs", &code),
        ];
        expect(&case, "void", &files);
    }
}

#[test]
#[ignore = "heavy: builds with cargo"]
fn another_package_does_not_build_the_sealed_files() {
    // The sealed file by its place, as a target of a package in which `calc` is another.
    let (bench, _) = case().bench();
    let manifest = manifest(
        "[dev-dependencies]\nsame = \"1\"\n\
         [workspace]\nmembers = [\"fake\"]\ndefault-members = [\"fake\"]\n",
    );
    let fake = package(
        "fake",
        &format!(
            "[lib]\nname = \"calc\"\n[dev-dependencies]\nsame = \"1\"\n\
             [[test]]\nname = \"accept\"\npath = \"{}\"\n",
            bench.suite.inside("tests/accept.rs").display()
        ),
    );
    let patch = [
        ("src/lib.rs", WRONG),
        ("Cargo.toml", manifest.as_str()),
        ("fake/Cargo.toml", &fake),
        ("fake/src/lib.rs", GOOD),
    ];
    bench.lay(&patch, true);
    let report = bench.run(&[id("accept::sum")]);
    assert!(report.faults.contains(&Fault::NotSealed), "{report:?}");
    bench.lay(&[("src/lib.rs", GOOD)], true);
    let report = bench.run(&[id("accept::sum")]);
    assert!(report.is_sound(), "{report:?}");
}

#[test]
#[ignore = "heavy: builds with cargo"]
fn tests_find_their_files_in_their_own_package() {
    let sealed = [
        (
            "tests/accept.rs",
            "#[test] fn sum() {\n  let folder = concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/tests/sum\");\n  \
             let sum = std::fs::read_to_string(folder).unwrap();\n  \
             assert_eq!(calc::add(2, 3), sum.trim().parse().unwrap());\n}\n",
        ),
        ("tests/sum", "5\n"),
        SEALED[1],
    ];
    let case = Case {
        sealed: &sealed,
        map: r#"{"format": 1, "criteria": {"c1": ["accept::sum"]}, "sentinels": ["odd::odd"]}"#,
        ..case()
    };
    let script = |name: &str| {
        format!(
            "fn main() {{\n  let own = std::env::var(\"CARGO_MANIFEST_DIR\").unwrap();\n  \
             println!(\"cargo:rustc-env={name}={{own}}/other\");\n}}\n"
        )
    };
    let honest = script("OTHER_FOLDER");
    let judgement = case.grade(&[("src/lib.rs", GOOD), ("build.rs", &honest)]);
    assert_eq!(word(&judgement), "accepted", "{:?}", judgement.reasons);
    let moved = script("CARGO_MANIFEST_DIR");
    let judgement = case.grade(&[
        ("src/lib.rs", WRONG),
        ("build.rs", &moved),
        ("other/tests/sum", "-2\n"),
    ]);
    assert_eq!(word(&judgement), "void", "{:?}", judgement.reasons);
}

#[test]
#[ignore = "heavy: builds with cargo"]
fn checks_stay_on_whatever_the_profile_says() {
    let own =
        "[dependencies]\nhelp = { path = \"crates/help\" }\n[dev-dependencies]\nsame = \"1\"\n";
    let off = "debug-assertions = false\noverflow-checks = false\n";
    let all = manifest(&format!("{own}[profile.dev]\n{off}[profile.test]\n{off}"));
    let hidden = "pub fn add(a: i32, b: i32) -> i32 { debug_assert!(false); a + b }\n";
    let judgement = case().grade(&[("src/lib.rs", hidden), ("Cargo.toml", &all)]);
    assert_eq!(word(&judgement), "not accepted", "{:?}", judgement.reasons);
    // The environment does not reach what is said of one package.
    let sealed = [
        (
            "tests/accept.rs",
            "#[test] fn sum() { debug_assert_eq!(calc::add(2, 3), 5); }\n",
        ),
        SEALED[1],
    ];
    let case = Case {
        sealed: &sealed,
        map: r#"{"format": 1, "criteria": {"c1": ["accept::sum"]}, "sentinels": ["odd::odd"]}"#,
        ..case()
    };
    let mine = manifest(&format!(
        "{own}[profile.test.package.calc]\n{off}[profile.dev.package.calc]\n{off}"
    ));
    let judgement = case.grade(&[("src/lib.rs", WRONG), ("Cargo.toml", &mine)]);
    assert_eq!(word(&judgement), "void", "{:?}", judgement.reasons);
    let quick = manifest(&format!("{own}[profile.dev.package.calc]\nopt-level = 1\n"));
    let judgement = case.grade(&[("src/lib.rs", GOOD), ("Cargo.toml", &quick)]);
    assert_eq!(word(&judgement), "accepted", "{:?}", judgement.reasons);
}
