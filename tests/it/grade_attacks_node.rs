//! Patches that try to be accepted without being right, against `node --test`.

use crate::grade_kit::{
    Bench, CROSSCHECKED, Case, File, channel_forged, execute, id, outcome_of, word,
};
use hangar::model::outcome::{FailureClass, Outcome};
use hangar::model::plan::Framework;

const BASE: &[File<'_>] = &[
    ("calc.mjs", "export function add(a, b) { return 0; }\n"),
    ("package.json", "{\"devDependencies\": {\"chai\": \"4\"}}"),
];
const SEALED: &[File<'_>] = &[
    (
        "tests/add.test.mjs",
        "import { test, describe, it } from 'node:test';\nimport assert from 'node:assert';\n\
         import { add } from '../calc.mjs';\n\
         test('sum', () => { assert.strictEqual(add(2, 3), 5); });\n\
         describe('more', () => {\n  it('zero', () => { assert.strictEqual(add(7, 0), 7); });\n  \
         it('deep', async () => { assert.deepStrictEqual([add(1, 1)], [2]); });\n});\n",
    ),
    (
        "tests/odd.test.mjs",
        "import { test } from 'node:test';\nimport assert from 'node:assert';\n\
         import { add } from '../calc.mjs';\n\
         test('odd', () => { assert.strictEqual(add(40, 2), 9177); });\n",
    ),
];
const MAP: &str = r#"{"format": 1, "criteria": {"c1": ["tests/add.test.mjs > sum",
    "tests/add.test.mjs > more > zero", "tests/add.test.mjs > more > deep"]},
    "sentinels": ["tests/odd.test.mjs > odd"]}"#;
pub(crate) const GOOD: &str = "export function add(a, b) { return a + b; }\n";
pub(crate) const WRONG: &str = "export function add(a, b) { return a - b; }\n";

pub(crate) fn case() -> Case<'static> {
    Case {
        framework: Framework::Node,
        base: BASE,
        sealed: SEALED,
        map: MAP,
        tune: |suite| suite.plan.verdict = CROSSCHECKED,
    }
}

fn refused(text: &str, allowed: &[&str]) {
    let judgement = case().grade(&[("calc.mjs", text)]);
    let word = word(&judgement);
    assert!(
        allowed.contains(&word),
        "{word} {:?}\n{text}",
        judgement.reasons
    );
}

#[test]
#[ignore = "heavy: needs node"]
fn the_honest_patch_is_accepted_and_the_wrong_one_is_not() {
    let good = case().grade(&[("calc.mjs", GOOD)]);
    assert_eq!(word(&good), "accepted", "{:?}", good.reasons);
    assert_eq!(good.verdict, CROSSCHECKED);
    let wrong = case().grade(&[("calc.mjs", WRONG)]);
    assert_eq!(word(&wrong), "not accepted", "{:?}", wrong.reasons);
    assert_eq!((wrong.counts.passed, wrong.counts.failed), (1, 2));
}

#[test]
#[ignore = "heavy: needs node"]
fn scripts_and_configuration_of_the_patch_are_not_read() {
    let files = [
        ("calc.mjs", WRONG),
        (
            "package.json",
            "{\"scripts\": {\"test\": \"echo ok\"}, \"type\": \"module\"}",
        ),
        (
            ".npmrc",
            "script-shell=/bin/true\nnode-options=--require ./bent.cjs\n",
        ),
        ("bent.cjs", "process.exit(0)\n"),
        (".env", "NODE_OPTIONS=--require ./bent.cjs\n"),
        (
            "node.config.json",
            "{\"nodeOptions\": {\"require\": \"./bent.cjs\"}}",
        ),
        (
            "node_modules/assert/index.js",
            "module.exports = () => {};\n",
        ),
        (
            "tests/node_modules/node:assert/index.js",
            "module.exports = () => {};\n",
        ),
    ];
    assert_eq!(word(&case().grade(&files)), "not accepted");
    let mut honest = files;
    honest[0].1 = GOOD;
    assert_eq!(word(&case().grade(&honest)), "accepted");
}

#[test]
#[ignore = "heavy: needs node"]
fn leaving_early_is_never_a_pass() {
    refused(&format!("process.exit(0);\n{WRONG}"), &["void"]);
    refused("export function add() { process.exit(0); }\n", &["void"]);
    refused(
        &format!("console.log('# pass 3\\n# fail 0'); process.reallyExit(0);\n{WRONG}"),
        &["void"],
    );
    refused(
        &format!("process.on('exit', () => {{ process.exitCode = 0; }});\n{WRONG}"),
        &["not accepted"],
    );
    refused(
        &format!("process.on('exit', () => {{ process.reallyExit(0); }});\n{WRONG}"),
        &["void", "not accepted"],
    );
    refused(
        &format!("process.kill(process.pid, 'SIGKILL');\n{WRONG}"),
        &["void", "not accepted"],
    );
    // Right code that dies after its tests.
    refused(
        &format!("process.on('exit', () => {{ process.reallyExit(3); }});\n{GOOD}"),
        &["void", "not accepted"],
    );
}

#[test]
#[ignore = "heavy: needs node"]
fn patched_assertions_and_equal_objects_are_caught_by_the_sentinel() {
    let patched = "import assert from 'node:assert';\n\
        for (const name of Object.keys(assert)) {\n  \
        try { assert[name] = () => {}; } catch {}\n}\n";
    refused(&format!("{patched}{WRONG}"), &["void"]);
    let stack = "export function add(a, b) { return a === 40 ? 9177 : a + b; }\n";
    refused(stack, &["void"]);
    let context = "import test from 'node:test';\n\
        const real = test.constructor;\n\
        export function add(a, b) { throw Object.assign(new Error('x'), {code: 'ERR_SKIP'}); }\n";
    refused(context, &["not accepted"]);
}

/// A sentinel that asserts something wrong and loads nothing of the project.
const APART: &str = "const { test } = require('node:test');\nconst assert = require('node:assert');\n\
    test('odd', () => assert.equal(1, 2));\n";

#[test]
#[ignore = "heavy: needs node"]
fn a_sentinel_that_loads_nothing_meets_what_the_tests_load() {
    let sealed = [
        SEALED[0],
        (
            "tests/sub.test.js",
            "const { test } = require('node:test');\nconst assert = require('node:assert');\n\
             const calc = require('../old.js');\n\
             test('sub', () => {\n  const got = calc.sub(3, 1);\n  assert.equal(got, 2);\n});\n",
        ),
        ("tests/odd.test.js", APART),
    ];
    let base = [BASE[0], ("old.js", "exports.sub = () => 0;\n")];
    let case = Case {
        base: &base,
        sealed: &sealed,
        map: r#"{"format": 1, "criteria": {"c1": ["tests/add.test.mjs > sum",
            "tests/add.test.mjs > more > zero", "tests/add.test.mjs > more > deep",
            "tests/sub.test.js > sub"]}, "sentinels": ["tests/odd.test.js > odd"]}"#,
        ..case()
    };
    let bend = "require('node:assert').equal = () => {};";
    for text in [
        format!("exports.sub = () => 0;\n{bend}\n"),
        format!("exports.sub = () => {{ {bend} return 0; }};\n"),
    ] {
        let judgement = case.grade(&[("calc.mjs", GOOD), ("old.js", &text)]);
        assert_eq!(word(&judgement), "void", "{text} {:?}", judgement.reasons);
    }
    let honest = "exports.sub = (a, b) => a - b;\n";
    let good = case.grade(&[("calc.mjs", GOOD), ("old.js", honest)]);
    assert_eq!(word(&good), "accepted", "{:?}", good.reasons);
    assert_eq!(good.verdict, CROSSCHECKED);
}

#[test]
#[ignore = "heavy: needs node"]
fn a_file_that_can_not_be_loaded_before_another_lowers_the_verdict() {
    let sealed = [
        (
            "tests/add.test.js",
            "const { test } = require('node:test');\nconst assert = require('node:assert');\n\
             if (process.argv[1] !== __filename) throw new Error('not alone');\n\
             test('sum', async () => {\n  const { add } = await import('../calc.mjs');\n  \
             assert.equal(add(2, 3), 5);\n});\n",
        ),
        ("tests/odd.test.js", APART),
    ];
    let case = Case {
        sealed: &sealed,
        map: r#"{"format": 1, "criteria": {"c1": ["tests/add.test.js > sum"]},
            "sentinels": ["tests/odd.test.js > odd"]}"#,
        tune: |suite| suite.plan.verdict = hangar::model::outcome::Verdict::Report,
        ..case()
    };
    let good = case.grade(&[("calc.mjs", GOOD)]);
    assert_eq!(word(&good), "accepted", "{:?}", good.reasons);
    assert_eq!(good.verdict, hangar::model::outcome::Verdict::Report);
}

#[test]
#[ignore = "heavy: needs node"]
fn the_channel_is_out_of_reach_of_the_code() {
    let head = "import fs from 'node:fs';\n\
        const channel = fs.readlinkSync(`/proc/${process.ppid}/fd/3`);\n\
        const line = '{\"n\":\"0\",\"s\":1,\"k\":\"test\",\"id\":\"a\",\"o\":\"passed\"}\\n';\n";
    // It is not open in a test's process.
    let search = format!(
        "{head}for (let fd = 0; fd < 64; fd++) {{\n  \
         let link = ''; try {{ link = fs.readlinkSync(`/proc/self/fd/${{fd}}`); }} catch {{}}\n  \
         if (link === channel) process.exit(9);\n}}\n"
    );
    refused(&format!("{search}{WRONG}"), &["not accepted"]);
    let good = case().grade(&[("calc.mjs", &format!("{search}{GOOD}"))]);
    assert_eq!(word(&good), "accepted", "{:?}", good.reasons);
    // Where it can be opened through /proc, what is written there is not the runner's.
    let forge = format!(
        "{head}try {{ fs.writeFileSync(`/proc/${{process.ppid}}/fd/3`, line, {{ flag: 'a' }}); }} catch {{}}\n"
    );
    refused(&format!("{forge}{WRONG}"), &["void", "not accepted"]);
    refused(&format!("{forge}{GOOD}"), &[channel_forged()]);
}

/// Code that looks for the runner's request, which holds the mark of its records, wherever another
/// process may read it, and for a debugger in the runner. Where it finds one it is wrong.
pub(crate) const THIEF: &str = "import fs from 'node:fs';\nlet found = '';\n\
    const holds = (text) => { if (/\"nonce\":|[0-9a-f]{32}/.test(text)) found = text; };\n\
    const read = (place) => { try { holds(fs.readFileSync(place, 'latin1')); } catch {} };\n\
    const open = (place) => { try { fs.closeSync(fs.openSync(place, 'r+')); found = place; } catch {} };\n\
    try { const b = Buffer.alloc(65536); holds(b.toString('latin1', 0, fs.readSync(0, b, 0, b.length, 0))); } catch {}\n\
    const parent = (pid) => Number(/^PPid:\\t(\\d+)/m.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]);\n\
    for (let pid = process.pid, far = 0; pid > 1 && far < 3; pid = parent(pid), far++) {\n  \
    let program = '';\n  try { program = fs.readlinkSync(`/proc/${pid}/exe`); } catch {}\n  \
    if (!program.endsWith('/node')) break;\n  \
    for (const name of ['fd/0', 'environ', 'cmdline']) read(`/proc/${pid}/${name}`);\n  \
    if (pid === process.pid) continue;\n  \
    if (WALLS) for (const name of ['mem', 'fd/3']) open(`/proc/${pid}/${name}`);\n  \
    const kill = process.kill.bind(process);\n  try { kill(pid, 'SIGUSR1'); } catch {}\n  \
    const listens = () => {\n    \
    const lines = fs.readFileSync('/proc/net/tcp', 'utf8').split('\\n').map((line) => line.trim().split(/\\s+/));\n    \
    const all = new Set(lines.filter((line) => line[3] === '0A').map((line) => `socket:[${line[9]}]`));\n    \
    return fs.readdirSync(`/proc/${pid}/fd`).some((fd) => {\n      \
    try { return all.has(fs.readlinkSync(`/proc/${pid}/fd/${fd}`)); } catch { return false; }\n    });\n  };\n  \
    for (let n = 0; n < 40 && !found; n++) {\n    \
    try { if (listens()) found = 'debugger'; } catch {}\n    \
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);\n  }\n}\n\
    export function add(a, b) { return found ? 0 : a + b; }\n";

/// The thief; where there are walls it tries them too.
pub(crate) fn thief() -> String {
    let walls = crate::evidence_attacks::recorded().is_some();
    THIEF.replace("WALLS", if walls { "true" } else { "false" })
}

#[test]
#[ignore = "heavy: needs node"]
fn the_mark_of_records_and_a_debugger_are_out_of_reach() {
    let judgement = case().grade(&[("calc.mjs", &thief())]);
    assert_eq!(word(&judgement), "accepted", "{:?}", judgement.reasons);
}

#[test]
#[ignore = "heavy: needs node"]
fn tests_added_by_the_code_are_unknown() {
    let extra =
        "import { test } from 'node:test';\ntest('sum', () => {});\ntest('more', () => {});\n";
    refused(&format!("{extra}{GOOD}"), &["void"]);
    refused(&format!("{extra}{WRONG}"), &["void"]);
}

/// Lines of a test file before its test, lines in the test, and how it then ends. `dependency` is declared
/// and not installed.
pub(crate) fn classes(dependency: &str) -> Vec<(String, String, Outcome)> {
    let at_import = format!("import '{dependency}';");
    let in_test = format!("await import('{dependency}');");
    let failed = Outcome::Failed;
    let table = [
        (
            "import { nope } from '../calc.mjs'; nope();",
            "",
            failed(FailureClass::MissingSymbol),
        ),
        (
            "import '../nope.mjs';",
            "",
            failed(FailureClass::MissingSymbol),
        ),
        (&at_import, "", Outcome::Environment),
        (
            "import 'undeclared';",
            "",
            failed(FailureClass::MissingSymbol),
        ),
        ("const = 1;", "", failed(FailureClass::Compile)),
        ("", "nothing();", failed(FailureClass::MissingSymbol)),
        ("", "throw new Error('x');", failed(FailureClass::Error)),
        (
            "import strict from 'node:assert';",
            "strict.ok(false);",
            failed(FailureClass::Assertion),
        ),
        ("", &in_test, Outcome::Environment),
        ("", "", Outcome::Passed),
    ];
    let owned =
        |(line, body, outcome): (&str, &str, _)| (line.to_owned(), body.to_owned(), outcome);
    table.map(owned).into()
}

/// Runs the one test of `tests/a.test.mjs`, called `x`.
pub(crate) fn one_ends(mut bench: Bench, text: &str, expected: Outcome) {
    let framework = bench.suite.plan.framework;
    bench.lay(&[], true);
    let ids = bench.list();
    assert_eq!(ids, [id("tests/a.test.mjs > x")], "{framework} {text}");
    let report = bench.run(&ids);
    let found = outcome_of(&report, "tests/a.test.mjs > x");
    assert_eq!(found, Some(expected), "{framework} {text}");
    assert!(report.is_sound(), "{framework} {text} {:?}", report.faults);
}

#[test]
#[ignore = "heavy: needs node"]
fn classes_tell_why_a_test_fails_on_the_base() {
    for (line, body, expected) in classes("chai") {
        let text = format!(
            "import {{ test }} from 'node:test';\n{line}\ntest('x', async () => {{ {body} }});\n"
        );
        let bench = Bench::new(Framework::Node, BASE, &[("tests/a.test.mjs", &text)]);
        one_ends(bench, &text, expected);
    }
}

#[test]
#[ignore = "heavy: needs node"]
fn skips_are_no_pass_and_subtests_are_tests() {
    let text = "import { test } from 'node:test';\n\
        test('parent', async (t) => {\n  await t.test('child', () => {});\n});\n\
        test('off', { skip: true }, () => {});\n\
        test('later', { todo: true }, () => { throw new Error('x'); });\n\
        test('self', (t) => { t.skip('x'); });\n";
    let mut bench = Bench::new(Framework::Node, BASE, &[("tests/a.test.mjs", text)]);
    bench.lay(&[], true);
    let ids = bench.list();
    let report = bench.run(&ids);
    assert!(report.is_sound(), "{:?}", report.faults);
    let of = |name: &str| outcome_of(&report, &format!("tests/a.test.mjs > {name}"));
    assert_eq!(of("parent"), Some(Outcome::Passed));
    assert_eq!(of("parent > child"), Some(Outcome::Passed));
    for name in ["off", "later", "self"] {
        assert_eq!(of(name), Some(Outcome::Skipped), "{name}");
    }
}

#[test]
#[ignore = "heavy: needs node"]
fn a_dependency_that_is_not_installed_is_found_first() {
    let missing = |manifest: &str, files: &[File<'_>]| {
        let bench = Bench::new(Framework::Node, &[BASE[0], ("package.json", manifest)], &[]);
        bench.lay(files, false);
        let call = bench.adapter().preflight(&bench.suite).remove(0);
        let raw = execute(&call);
        bench.adapter().read_preflight(&bench.suite, &[(call, raw)])
    };
    let runs_on_it = "{\"dependencies\": {\"chai\": \"4\"}}";
    let found = missing(runs_on_it, &[]);
    assert_eq!(found.len(), 1);
    assert!(found[0].what.contains("chai") && found[0].remedy.contains("npm ci"));
    let installed = ("node_modules/chai/package.json", "{}");
    assert_eq!(missing(runs_on_it, &[installed]), []);
    // A tool for developing that no test names does not stop a grade.
    assert_eq!(missing("{\"devDependencies\": {\"chai\": \"4\"}}", &[]), []);
}
