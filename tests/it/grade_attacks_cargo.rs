//! Patches that try to be accepted without being right, against `cargo`.

use crate::grade_kit::{Bench, Case, File, channel_forged, execute, outcome_of, word};
use hangar::model::outcome::{FailureClass, Outcome, Verdict};
use hangar::model::plan::Framework;

const MANIFEST: &str = "[package]\nname = \"calc\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
const BASE: &[File<'_>] = &[
    ("Cargo.toml", MANIFEST),
    (
        "Cargo.lock",
        "version = 3\n\n[[package]]\nname = \"calc\"\nversion = \"0.1.0\"\n",
    ),
    ("src/lib.rs", "pub fn add(_: i32, _: i32) -> i32 { 0 }\n"),
];
const SEALED: &[File<'_>] = &[
    (
        "tests/accept.rs",
        "use calc::add;\n#[test] fn sum() { assert_eq!(add(2, 3), 5); }\n\
         mod more { use super::*; #[test] fn zero() { assert_eq!(add(7, 0), 7); } }\n",
    ),
    (
        "tests/odd.rs",
        "#[test] fn odd() { assert_eq!(calc::add(40, 2), 9177); }\n",
    ),
];
const MAP: &str = r#"{"format": 1, "criteria": {"c1": ["accept::sum", "accept::more::zero"]},
    "sentinels": ["odd::odd"]}"#;
pub(crate) const GOOD: &str = "pub fn add(a: i32, b: i32) -> i32 { a + b }\n";
pub(crate) const WRONG: &str = "pub fn add(a: i32, b: i32) -> i32 { a - b - 1 }\n";

pub(crate) fn case() -> Case<'static> {
    Case {
        framework: Framework::Cargo,
        base: BASE,
        sealed: SEALED,
        map: MAP,
        tune: |suite| suite.plan.verdict = Verdict::Report,
    }
}

fn refused(patch: &[File<'_>], allowed: &[&str]) {
    let judgement = case().grade(patch);
    let word = word(&judgement);
    assert!(
        allowed.contains(&word),
        "{word} {:?}\n{patch:?}",
        judgement.reasons
    );
}

#[test]
#[ignore = "heavy: builds with cargo"]
fn the_honest_patch_is_accepted_and_the_wrong_one_is_not() {
    let good = case().grade(&[("src/lib.rs", GOOD)]);
    assert_eq!(word(&good), "accepted", "{:?}", good.reasons);
    // Each test is a process of its own: no sentinel meets what another test brought in.
    assert_eq!(good.verdict, Verdict::Report);
    let strict = Case {
        tune: |suite| suite.plan.verdict = Verdict::Crosschecked,
        ..case()
    };
    let strict = strict.grade(&[("src/lib.rs", GOOD)]);
    assert_eq!(word(&strict), "not accepted");
    assert!(
        strict.reasons[0]
            .to_string()
            .contains("a process of its own")
    );
    let wrong = case().grade(&[("src/lib.rs", WRONG)]);
    assert_eq!(word(&wrong), "not accepted", "{:?}", wrong.reasons);
    assert_eq!(wrong.counts.failed, 2);
}

#[test]
#[ignore = "heavy: builds with cargo"]
fn targets_of_the_manifest_do_not_replace_sealed_files() {
    let fake = "#[test] fn sum() {}\nmod more { #[test] fn zero() {} }\n";
    let odd = "#[test] fn odd() { assert_eq!(1, 2); }\n";
    let moved = format!(
        "{MANIFEST}[[test]]\nname = \"accept\"\npath = \"fake/f.rs\"\n\
         [[test]]\nname = \"odd\"\npath = \"fake/o.rs\"\n"
    );
    let files = [
        ("src/lib.rs", WRONG),
        ("Cargo.toml", moved.as_str()),
        ("fake/f.rs", fake),
        ("fake/o.rs", odd),
    ];
    refused(&files, &["void"]);
    let no_harness = format!(
        "{MANIFEST}[[test]]\nname = \"accept\"\npath = \"tests/accept.rs\"\nharness = false\n"
    );
    refused(
        &[("src/lib.rs", GOOD), ("Cargo.toml", &no_harness)],
        &["not accepted", "void"],
    );
    let off = format!("{MANIFEST}autotests = false\n");
    refused(
        &[("src/lib.rs", GOOD), ("Cargo.toml", &off)],
        &["not accepted", "void"],
    );
    // The same file under another name takes the target away.
    let renamed = format!("{MANIFEST}[[test]]\nname = \"again\"\npath = \"tests/accept.rs\"\n");
    refused(
        &[("src/lib.rs", GOOD), ("Cargo.toml", &renamed)],
        &["not accepted"],
    );
}

#[test]
#[ignore = "heavy: builds with cargo"]
fn leaving_early_is_never_a_pass() {
    let exit = "pub fn add(_: i32, _: i32) -> i32 { std::process::exit(0) }\n";
    refused(&[("src/lib.rs", exit)], &["void"]);
    let printed = "pub fn add(_: i32, _: i32) -> i32 {\n  use std::io::Write;\n  \
        let mut out = std::io::stdout();\n  \
        out.write_all(b\"ok\\n\\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\\n\").unwrap();\n  \
        out.flush().unwrap();\n  std::process::exit(0)\n}\n";
    refused(&[("src/lib.rs", printed)], &["void"]);
    let hook = "pub fn add(a: i32, b: i32) -> i32 {\n  \
        std::panic::set_hook(Box::new(|_| std::process::exit(0)));\n  a - b - 1\n}\n";
    refused(&[("src/lib.rs", hook)], &["void"]);
    let abort = "pub fn add(_: i32, _: i32) -> i32 { std::process::abort() }\n";
    refused(&[("src/lib.rs", abort)], &["not accepted"]);
    let odd = "pub fn add(_: i32, _: i32) -> i32 { std::process::exit(3) }\n";
    refused(&[("src/lib.rs", odd)], &["not accepted"]);
}

#[test]
#[ignore = "heavy: builds with cargo"]
fn a_summary_that_is_forged_in_full_is_caught_by_the_sentinel() {
    // It knows the number of tests and the name, and prints what libtest would.
    let forged = "pub fn add(_: i32, _: i32) -> i32 {\n  use std::io::Write;\n  \
        let name = std::env::args().nth(1).unwrap();\n  \
        let rest = if name == \"odd\" { 0 } else { 1 };\n  \
        let mut out = std::fs::OpenOptions::new().append(true).open(\"/dev/stdout\").unwrap();\n  \
        write!(out, \"ok\\n\\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; {rest} filtered out; finished in 0.00s\\n\\n\").unwrap();\n  \
        std::process::exit(0)\n}\n";
    refused(&[("src/lib.rs", forged)], &["void"]);
    let equal = "pub struct Any;\nimpl PartialEq<i32> for Any { fn eq(&self, _: &i32) -> bool { true } }\n\
        impl std::fmt::Debug for Any { fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str(\"5\") } }\n\
        pub fn add(_: i32, _: i32) -> Any { Any }\n";
    refused(&[("src/lib.rs", equal)], &["void"]);
}

#[test]
#[ignore = "heavy: builds with cargo"]
fn a_binary_swapped_between_two_tests_is_void() {
    // The first test puts a program in place of the test binary that says yes to everything.
    let swap = "pub fn add(a: i32, b: i32) -> i32 {\n  \
        let me = std::env::current_exe().unwrap();\n  \
        let yes = \"#!/bin/sh\\nprintf '\\\\nrunning 1 test\\\\ntest %s ... ok\\\\n\\\\n\
        test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 1 filtered out; finished\\\\n' \\\"$1\\\"\\n\";\n  \
        std::fs::remove_file(&me).unwrap();\n  std::fs::write(&me, yes).unwrap();\n  \
        use std::os::unix::fs::PermissionsExt;\n  \
        std::fs::set_permissions(&me, std::fs::Permissions::from_mode(0o755)).unwrap();\n  \
        a + b\n}\n";
    refused(&[("src/lib.rs", swap)], &["void"]);
}

#[test]
#[ignore = "heavy: builds with cargo"]
fn the_channel_is_out_of_reach_of_the_code() {
    let forge = "pub fn add(a: i32, b: i32) -> i32 {\n  \
        let status = std::fs::read_to_string(\"/proc/self/stat\").unwrap();\n  \
        let parent = status.rsplit(\") \").next().unwrap().split(' ').nth(1).unwrap().to_owned();\n  \
        for fd in [3].into_iter().chain(10..20) {\n    \
        let path = format!(\"/proc/{parent}/fd/{fd}\");\n    \
        let pipe = std::fs::read_link(&path).is_ok_and(|to| to.to_string_lossy().starts_with(\"pipe\"));\n    \
        if pipe { let _ = std::fs::write(path, \"0 end 0\\n\"); }\n  }\n  a + b\n}\n";
    refused(&[("src/lib.rs", forge)], &[channel_forged()]);
    let open = "pub fn add(a: i32, b: i32) -> i32 {\n  \
        assert!(std::fs::read_link(\"/proc/self/fd/3\").map_or(true, |to| ![\"pipe\", \"socket\"].iter().any(|kind| to.to_string_lossy().starts_with(kind))));\n  \
        a + b\n}\n";
    let judgement = case().grade(&[("src/lib.rs", open)]);
    assert_eq!(word(&judgement), "accepted", "{:?}", judgement.reasons);
}

#[test]
#[ignore = "heavy: builds with cargo"]
fn what_does_not_compile_is_a_plain_fail_and_spares_other_targets() {
    let mut bench = Bench::new(
        Framework::Cargo,
        BASE,
        &[
            ("tests/new.rs", "#[test] fn a() { calc::not_there(); }\n"),
            (
                "tests/old.rs",
                "#[test] fn b() { assert_eq!(calc::add(1, 2), 0); }\n#[test] #[ignore] fn c() {}\n\
                 #[test] #[should_panic] fn d() { panic!() }\n\
                 #[test] fn e() -> Result<(), String> { Err(\"x\".into()) }\n",
            ),
        ],
    );
    bench.lay(&[], true);
    let ids = bench.list();
    let report = bench.run(&ids);
    assert!(report.is_sound(), "{:?}", report.faults);
    let failed = |class| Some(Outcome::Failed(class));
    let table = [
        ("new::a", failed(FailureClass::Compile)),
        ("old::b", Some(Outcome::Passed)),
        ("old::c", Some(Outcome::Skipped)),
        ("old::d", Some(Outcome::Passed)),
        ("old::e", failed(FailureClass::Error)),
    ];
    for (name, expected) in table {
        assert_eq!(outcome_of(&report, name), expected, "{name}");
    }
}

#[test]
#[ignore = "heavy: builds with cargo"]
fn crates_that_are_not_downloaded_are_the_environments_fault() {
    let manifest = format!("{MANIFEST}[dependencies]\nno-such-crate-here = \"1\"\n");
    let base = [("Cargo.toml", manifest.as_str()), ("src/lib.rs", GOOD)];
    let mut bench = Bench::new(Framework::Cargo, &base, SEALED);
    bench.lay(&[], true);
    let call = bench.adapter().preflight(&bench.suite).remove(0);
    let raw = execute(&call);
    let missing = bench.adapter().read_preflight(&bench.suite, &[(call, raw)]);
    assert_eq!(missing.len(), 1);
    assert!(missing[0].remedy.contains("cargo fetch"));
    let ids = bench.list();
    let report = bench.run(&ids);
    assert_eq!(
        outcome_of(&report, "accept::sum"),
        Some(Outcome::Environment)
    );
    let fine = Bench::new(Framework::Cargo, BASE, SEALED);
    fine.lay(&[], false);
    let call = fine.adapter().preflight(&fine.suite).remove(0);
    let raw = execute(&call);
    assert_eq!(
        fine.adapter().read_preflight(&fine.suite, &[(call, raw)]),
        []
    );
}
