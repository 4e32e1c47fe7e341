//! A package.json of the patch, or of its build step, that sends a helper of the tests elsewhere. The second
//! round of each is the honest control.

use super::world::World;
use crate::common::git::commit_all;

const CONFIG: &str = r#"
format = 1
[task]
flow = "test-first"
[grader]
framework = "node"
tests = ["**/*.test.js", "**/*.testlib.js"]
build = "node build.js"
[deliver]
as = "branch"
branch = "hangar/{key}"
"#;
const TEST: &str = "\
const test = require('node:test');
const { same } = require('#same');
const { sub } = require('./calc.js');
test('sub', () => same(sub(5, 3), 2));
";
const MAP: &str = r#"{"format": 1, "criteria": {"c1": ["src/calc.test.js > sub"]}, "others": [], "sentinels": [], "notes": ""}"#;
const MANIFEST: &str = r##"{"name": "calc", "imports": {"#same": "./src/same.testlib.js"}}"##;
const SAME: &str = "exports.same = (a, b) => { if (a !== b) throw new Error('no'); };\n";
const BENT: &str = "exports.same = () => {};\n";
const HONEST: &str = "exports.sub = (a, b) => a - b;\n";
const WRONG: &str = "exports.sub = (a, b) => a + b;\n";

/// The first round changes package.json, build.js and what a link of the tests leads to so; gives why it was refused, and the paths.
fn refused(manifest: &str, build: &str, shared: Option<&str>) -> (Vec<String>, Vec<String>) {
    let world = World::new(&[
        ("package.json", MANIFEST),
        ("src/calc.js", "exports.sub = () => 0;\n"),
        ("src/same.testlib.js", SAME),
        ("shared/data.js", "exports.five = 5;\n"),
        ("build.js", ""),
        ("hangar.toml", CONFIG),
    ]);
    let repo = world.repo_dir();
    std::os::unix::fs::symlink("../shared/data.js", repo.join("src/data.testlib.js")).unwrap();
    commit_all(&repo, "What the tests share");
    for (path, text) in [("src/calc.test.js", TEST), ("criteria.json", MAP)] {
        world.script("writer", &format!("writer/1/out/sealed/{path}"), text);
    }
    let round = |number: u8, path: &str, text: &str| {
        world.script("coder", &format!("implementer/{number}/src/{path}"), text);
    };
    round(1, "src/calc.js", WRONG);
    round(1, "src/bent.js", BENT);
    round(1, "build.js", build);
    round(1, "package.json", manifest);
    if let Some(shared) = shared {
        round(1, "shared/data.js", shared);
    }
    round(2, "src/calc.js", HONEST);
    let version = MANIFEST.replace("calc\"", "calc\", \"version\": \"2.0.0\"");
    round(2, "package.json", &version);
    round(2, "build.js", "");
    round(2, "shared/data.js", "exports.five = 5;\n");
    let first = world.refused_once("Subtract", "sub(5, 3) is 2");
    (first.reasons, first.protected_touched)
}

#[test]
#[ignore = "heavy: needs node"]
fn a_manifest_that_turns_a_name_of_the_tests_ends_the_grade() {
    let (reasons, paths) = refused(&MANIFEST.replace("same.testlib", "bent"), "", None);
    assert_eq!(paths, ["package.json"]);
    assert!(reasons[0].contains("another meaning"), "{reasons:?}");
}

#[test]
#[ignore = "heavy: needs node"]
fn so_does_one_that_the_build_step_writes() {
    let nearer = MANIFEST.replace("src/same.testlib", "bent");
    let build = format!("require('node:fs').writeFileSync('src/package.json', '{nearer}');");
    let (reasons, paths) = refused(MANIFEST, &build, None);
    assert_eq!(paths, ["src/package.json"]);
    assert!(reasons[0].contains("another meaning"), "{reasons:?}");
}

#[test]
#[ignore = "heavy: needs node"]
fn a_build_step_makes_nothing_that_is_found_before_a_helper_of_the_tests() {
    let build = "require('node:fs').writeFileSync('src/same.testlib', 'exports.same = () => {};');";
    let (reasons, _) = refused(MANIFEST, build, None);
    assert!(
        reasons[0].contains("the build step changes 1 path"),
        "{reasons:?}"
    );
}

#[test]
#[ignore = "heavy: needs node"]
fn what_a_link_among_the_tests_leads_to_is_protected() {
    let (reasons, paths) = refused(MANIFEST, "", Some("exports.five = 6;\n"));
    assert_eq!(paths, ["shared/data.js"]);
    assert!(reasons[0].contains("protected"), "{reasons:?}");
}
