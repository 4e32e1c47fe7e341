//! Patches that try to be accepted without being right, against mocha, jest and vitest. Each row runs the
//! real program; the honest patch beside it must be accepted.

use crate::grade_attacks_node::{GOOD, WRONG, classes, one_ends, thief};
use crate::grade_kit::{
    Bench, CROSSCHECKED, Case, File, channel_forged, execute, outcome_of, word,
};
use hangar::grade::adapter::adapter;
use hangar::grade::protect::Globs;
use hangar::grade::suite::Suite;
use hangar::model::outcome::Outcome;
use hangar::model::plan::Framework;
use std::io::{Seek as _, Write as _};
use std::path::PathBuf;

pub(crate) const RUNNERS: [Framework; 3] = [Framework::Mocha, Framework::Jest, Framework::Vitest];

/// Where the packages are: `HANGAR_TEST_NODE_MODULES`, or where `.ci/run` installs them.
pub(crate) fn modules() -> PathBuf {
    let named = std::env::var_os("HANGAR_TEST_NODE_MODULES").map(PathBuf::from);
    let folder = named.unwrap_or_else(|| crate::docs::root().join("target/ci/js/node_modules"));
    assert!(folder.is_dir(), "{} is not there", folder.display());
    folder
}

pub(crate) const BASE: &[File<'_>] = &[
    ("calc.mjs", "export function add(a, b) { return 0; }\n"),
    (
        "package.json",
        "{\"devDependencies\": {\"left-out\": \"4\"}}",
    ),
    ("old.cjs", "exports.sub = () => 0;\n"),
];
const MAP: &str = r#"{"format": 1, "criteria": {"c1": ["tests/add.test.mjs > sum",
    "tests/add.test.mjs > more > zero", "tests/add.test.mjs > more > deep"]},
    "sentinels": ["tests/odd.test.mjs > odd"]}"#;
const MOCHA: &[File<'_>] = &[
    (
        "tests/add.test.mjs",
        "import assert from 'node:assert';\nimport { add } from '../calc.mjs';\n\
         it('sum', () => { assert.strictEqual(add(2, 3), 5); });\n\
         describe('more', () => {\n  it('zero', () => { assert.strictEqual(add(7, 0), 7); });\n  \
         it('deep', async () => { assert.deepStrictEqual([add(1, 1)], [2]); });\n});\n",
    ),
    (
        "tests/odd.test.mjs",
        "import assert from 'node:assert';\nimport { add } from '../calc.mjs';\n\
         it('odd', () => { assert.strictEqual(add(40, 2), 9177); });\n",
    ),
];

const JEST: &[File<'_>] = &[
    (
        "tests/add.test.mjs",
        "import { add } from '../calc.mjs';\n\
         test('sum', () => { expect(add(2, 3)).toBe(5); });\n\
         describe('more', () => {\n  it('zero', () => { expect(add(7, 0)).toBe(7); });\n  \
         it('deep', async () => { expect([add(1, 1)]).toEqual([2]); });\n});\n",
    ),
    (
        "tests/odd.test.mjs",
        "import { add } from '../calc.mjs';\n\
         test('odd', () => { expect(add(40, 2)).toBe(9177); });\n",
    ),
];
const VITEST: &[File<'_>] = &[
    (
        "tests/add.test.mjs",
        "import { describe, expect, it, test } from 'vitest';\nimport { add } from '../calc.mjs';\n\
         test('sum', () => { expect(add(2, 3)).toBe(5); });\n\
         describe('more', () => {\n  it('zero', () => { expect(add(7, 0)).toBe(7); });\n  \
         it('deep', async () => { expect([add(1, 1)]).toEqual([2]); });\n});\n",
    ),
    (
        "tests/odd.test.mjs",
        "import { expect, test } from 'vitest';\nimport { add } from '../calc.mjs';\n\
         test('odd', () => { expect(add(40, 2)).toBe(9177); });\n",
    ),
];

pub(crate) fn tune(suite: &mut Suite) {
    suite.plan.verdict = CROSSCHECKED;
    let above = suite.layout.src.with_file_name("node_modules");
    std::os::unix::fs::symlink(modules(), above).unwrap();
}

pub(crate) fn case(framework: Framework) -> Case<'static> {
    Case {
        framework,
        base: BASE,
        sealed: match framework {
            Framework::Mocha => MOCHA,
            Framework::Jest => JEST,
            Framework::Vitest => VITEST,
            other => panic!("{other} has no sealed tests here"),
        },
        map: MAP,
        tune,
    }
}

/// How a test file of a framework begins, and how it names a test.
pub(crate) fn head(framework: Framework) -> &'static str {
    match framework {
        Framework::Mocha => "const test = it;\n",
        Framework::Vitest => "import { beforeAll, beforeEach, describe, test } from 'vitest';\n",
        _ => "",
    }
}

fn graded(framework: Framework, text: &str, allowed: &[&str]) {
    let judgement = case(framework).grade(&[("calc.mjs", text)]);
    let word = word(&judgement);
    assert!(
        allowed.contains(&word),
        "{framework}: {word} {:?}\n{text}",
        judgement.reasons
    );
}

/// Wrong code that does `extra` is refused, right code that does nothing of it is accepted elsewhere.
fn refused(extra: &str, code: &str) {
    for framework in RUNNERS {
        graded(
            framework,
            &format!("{extra}\n{code}"),
            &["void", "not accepted"],
        );
    }
}

#[test]
#[ignore = "heavy: needs node with mocha, jest and vitest"]
fn the_honest_patch_is_accepted_and_the_wrong_one_is_not() {
    for framework in RUNNERS {
        let good = case(framework).grade(&[("calc.mjs", GOOD)]);
        assert_eq!(word(&good), "accepted", "{framework} {:?}", good.reasons);
        assert_eq!(good.verdict, CROSSCHECKED);
        let wrong = case(framework).grade(&[("calc.mjs", WRONG)]);
        assert_eq!(
            word(&wrong),
            "not accepted",
            "{framework} {:?}",
            wrong.reasons
        );
        assert_eq!((wrong.counts.passed, wrong.counts.failed), (1, 2));
    }
}

const BENT: &str = "process.exit(0);\n";

#[test]
#[ignore = "heavy: needs node with mocha, jest and vitest"]
fn configuration_of_the_patch_is_not_read() {
    let package = "{\"type\": \"module\", \"scripts\": {\"test\": \"true\"}, \
        \"mocha\": {\"require\": \"./bent.cjs\", \"spec\": \"none\"}, \
        \"jest\": {\"testRunner\": \"./bent.cjs\", \"setupFiles\": [\"./bent.cjs\"]}, \
        \"postcss\": {\"plugins\": {\"./bent.cjs\": {}}}, \"prettier\": \"./bent.cjs\"}";
    let named = "{\"require\": \"./bent.cjs\", \"globalSetup\": \"./bent.cjs\"}";
    let mut files = vec![
        ("calc.mjs", WRONG),
        ("package.json", package),
        (".mocharc.cjs", BENT),
        (".mocharc.json", named),
        ("jest.config.js", BENT),
        ("jest.config.json", named),
        ("vitest.config.mjs", BENT),
        ("vite.config.mjs", BENT),
        ("vitest.workspace.mjs", BENT),
        ("postcss.config.cjs", BENT),
        ("bent.cjs", BENT),
        (
            ".npmrc",
            "node-options=--require ./bent.cjs\nscript-shell=/bin/true\n",
        ),
        (".env", "NODE_OPTIONS=--require ./bent.cjs\n"),
        ("test/mocha.opts", "--require ./bent.cjs\n"),
        ("tests/setup.cjs", BENT),
    ];
    for framework in RUNNERS {
        let wrong = case(framework).grade(&files);
        assert_eq!(
            word(&wrong),
            "not accepted",
            "{framework} {:?}",
            wrong.reasons
        );
    }
    files[0].1 = GOOD;
    for framework in RUNNERS {
        let good = case(framework).grade(&files);
        assert_eq!(word(&good), "accepted", "{framework} {:?}", good.reasons);
    }
}

#[test]
fn what_would_be_read_of_the_tree_is_protected() {
    let shared = [
        "node_modules/assert/index.js",
        "tests/node_modules/x/package.json",
        "tsconfig.json",
        "packages/a/tsconfig.test.json",
        "jsconfig.json",
        ".swcrc",
        "babel.config.cjs",
        "a/.babelrc",
        ".babelrc.json",
    ];
    let own = |framework| match framework {
        Framework::Mocha => &[".mocharc.cjs", "packages/a/.mocharc.yml"][..],
        Framework::Jest => &["jest.config.ts", "__mocks__/fs.js", "src/__mocks__/x.js"],
        Framework::Node => &[],
        _ => &[
            "vitest.config.mts",
            "vite.config.js",
            "a/vitest.workspace.json",
            "vitest.projects.ts",
            "__mocks__/fs.js",
        ],
    };
    for framework in RUNNERS.into_iter().chain([Framework::Node]) {
        let globs = Globs::new(adapter(framework).protected()).unwrap();
        for path in shared.iter().chain(own(framework)) {
            assert!(globs.matches(path.as_bytes()), "{framework} {path}");
        }
        for path in [
            "src/a.js",
            "src/tsconfig.ts",
            "package.json",
            "tests/a.test.js",
        ] {
            assert!(!globs.matches(path.as_bytes()), "{framework} {path}");
        }
    }
}

#[test]
#[ignore = "heavy: needs node with mocha, jest and vitest"]
fn leaving_early_is_never_a_pass() {
    for extra in [
        "process.exit(0);",
        "process.reallyExit(0);",
        "console.log('3 passing'); process.reallyExit(0);",
        "process.kill(process.pid, 'SIGKILL');",
        "process.on('exit', () => { process.exitCode = 0; process.reallyExit(0); });",
        "process.once('beforeExit', () => process.reallyExit(0));",
        "setImmediate(() => process.reallyExit(0));",
        "process.abort();",
    ] {
        refused(extra, WRONG);
    }
    for code in [
        "export function add() { process.exit(0); }",
        "export function add() { process.reallyExit(0); }",
        "export function add() { throw undefined; }",
    ] {
        refused("", code);
    }
}

#[test]
#[ignore = "heavy: needs node with mocha, jest and vitest"]
fn lies_about_outcomes_are_caught_by_the_sentinel() {
    let assertions = "import assert from 'node:assert';\n\
        for (const name of Object.keys(assert)) {\n  try { assert[name] = () => {}; } catch {}\n}";
    refused(assertions, WRONG);
    refused(
        "",
        "export function add(a, b) { return a === 40 ? 9177 : a + b; }",
    );
    for framework in RUNNERS {
        for text in of_one_runner(framework) {
            graded(
                framework,
                &format!("{text}\n{WRONG}"),
                &["void", "not accepted"],
            );
        }
    }
}

/// Lies that know the runner from inside.
fn of_one_runner(framework: Framework) -> &'static [&'static str] {
    match framework {
        Framework::Mocha => &[
            "import { createRequire } from 'node:module';\nconst M = createRequire(import.meta.url)('mocha');\n\
             M.Runner.prototype.fail = function () {};",
            "import { createRequire } from 'node:module';\nconst M = createRequire(import.meta.url)('mocha');\n\
             M.Runnable.prototype.run = function (done) { done(); };",
            "import { createRequire } from 'node:module';\nconst M = createRequire(import.meta.url)('mocha');\n\
             const emit = M.Runner.prototype.emit;\n\
             M.Runner.prototype.emit = function (name, ...rest) {\n  \
             return emit.call(this, name === 'fail' ? 'pass' : name, rest[0]);\n};",
            "import { createRequire } from 'node:module';\nconst M = createRequire(import.meta.url)('mocha');\n\
             M.Suite.prototype.eachTest = function () {};",
        ],
        Framework::Jest => &[
            "globalThis.expect = () => new Proxy({}, { get: () => () => {} });",
            "expect.extend({ toBe: () => ({ pass: true }), toEqual: () => ({ pass: true }) });",
            "const all = Object.getOwnPropertySymbols(globalThis);\n\
             for (const one of all) if (String(one).includes('STATE')) {\n  const state = globalThis[one];\n  \
             const group = state.currentDescribeBlock ?? state.rootDescribeBlock;\n  \
             setTimeout(() => { for (const t of group?.children ?? []) { t.errors = []; t.fn = () => {}; } });\n}",
            "const send = process.send;\nif (send) process.send = function (message, ...rest) {\n  \
             const results = message?.[1]?.testResults ?? [];\n  \
             for (const r of results) { r.status = 'passed'; r.failureMessages = []; }\n  \
             return send.call(this, message, ...rest);\n};",
        ],
        _ => &[
            "import { expect } from 'vitest';\n\
             expect.extend({ toBe: () => ({ pass: true }), toEqual: () => ({ pass: true }) });",
            "import { chai } from 'vitest';\nchai.Assertion.prototype.assert = function () {};",
            "const send = process.send;\nprocess.send = function (...all) {\n  \
             const text = (v) => JSON.parse(JSON.stringify(v ?? null).replaceAll('\\\"fail\\\"', '\\\"pass\\\"'));\n  \
             try { all[0] = text(all[0]); } catch {}\n  return send.apply(this, all);\n};",
        ],
    }
}

#[test]
#[ignore = "heavy: needs node with mocha, jest and vitest"]
fn a_skip_that_the_code_raises_is_no_pass() {
    let code = |module: &str| {
        format!(
            "import {{ createRequire }} from 'node:module';\n\
             const Pending = createRequire(import.meta.url)('{module}');\n\
             export function add() {{ throw new Pending('x'); }}\n"
        )
    };
    graded(
        Framework::Mocha,
        &code("mocha/lib/pending"),
        &["not accepted", "void"],
    );
}

#[test]
#[ignore = "heavy: needs node with mocha, jest and vitest"]
fn what_writes_records_is_not_found_by_the_code() {
    let hooks = "import fs from 'node:fs';\nlet seen = '';\n\
        const real = { write: fs.writeSync, text: JSON.stringify };\n\
        fs.writeSync = (...a) => { seen += a[1]; return real.write(...a); };\n\
        JSON.stringify = (...a) => { seen += a[0]; return real.text(...a); };\n\
        Object.prototype.toJSON = function () { seen += this.nonce ?? this.n ?? ''; return this; };\n\
        String.prototype.toJSON = Object.prototype.toJSON;\n";
    let look = "import { createRequire } from 'node:module';\n\
        const require = createRequire(import.meta.url);\n\
        const loaded = [...Object.values(require.cache), ...(process.mainModule?.children ?? [])];\n\
        for (const one of loaded) {\n  const { send } = one?.exports ?? {};\n  \
        if (send) for (const name of ['sum', 'more > zero', 'more > deep'])\n    \
        send('test', { id: `tests/add.test.mjs > ${name}`, o: 'passed' });\n}\n";
    let use_it = "export function add(a, b) {\n  if (/^[0-9a-f]{32}/.test(seen)) process.reallyExit(0);\n  \
        return a + b;\n}\n";
    for framework in RUNNERS {
        // Right code that finds nothing goes on as if nothing were.
        graded(framework, &format!("{look}{GOOD}"), &["accepted"]);
        graded(framework, &format!("{look}{WRONG}"), &["not accepted"]);
    }
    // Where code and runner share a process, functions that the code replaces are told nothing.
    graded(Framework::Mocha, &format!("{hooks}{use_it}"), &["accepted"]);
}

#[test]
#[ignore = "heavy: needs node with mocha, jest and vitest"]
fn records_of_the_code_are_not_the_runners() {
    let line = "'{\"n\":\"0\",\"s\":1,\"k\":\"test\",\"id\":\"a\",\"o\":\"passed\"}\\n'";
    let forge = format!(
        "import fs from 'node:fs';\n\
         for (const place of ['/proc/self/fd/3', `/proc/${{process.ppid}}/fd/3`]) {{\n  \
         let link = ''; try {{ link = fs.readlinkSync(place); }} catch {{}}\n  \
         if (link.startsWith('pipe:')) fs.writeFileSync(place, {line}, {{ flag: 'a' }});\n}}\n"
    );
    for framework in RUNNERS {
        graded(
            framework,
            &format!("{forge}{WRONG}"),
            &["void", "not accepted"],
        );
        graded(framework, &format!("{forge}{GOOD}"), &[channel_forged()]);
    }
    // Where code and runner share a process, it is open.
    let write = format!("import fs from 'node:fs';\nfs.writeSync(3, {line});\n");
    graded(Framework::Mocha, &format!("{write}{WRONG}"), &["void"]);
    graded(Framework::Mocha, &format!("{write}{GOOD}"), &["void"]);
    // Noise where people read is no report.
    let noise =
        "for (let n = 0; n < 2000; n++) console.log('ok 1 - sum', '\\u0000', '{\"k\":\"end\"}');\n";
    for framework in RUNNERS {
        graded(framework, &format!("{noise}{GOOD}"), &["accepted"]);
        graded(framework, &format!("{noise}{WRONG}"), &["not accepted"]);
    }
}

#[test]
#[ignore = "heavy: needs node with mocha, jest and vitest"]
fn the_mark_of_records_and_a_debugger_are_out_of_reach() {
    for framework in RUNNERS {
        graded(framework, &thief(), &["accepted"]);
    }
}

#[test]
#[ignore = "heavy: needs node with mocha, jest and vitest"]
fn tests_added_by_the_code_are_seen() {
    let extra = |framework| match framework {
        Framework::Vitest => "import { test } from 'vitest';\n",
        _ => "const test = globalThis.it;\n",
    };
    for framework in RUNNERS {
        for name in ["sum", "other"] {
            let add = format!("{}test('{name}', () => {{}});\n", extra(framework));
            graded(framework, &format!("{add}{GOOD}"), &["void"]);
            graded(framework, &format!("{add}{WRONG}"), &["void"]);
        }
    }
}

#[test]
#[ignore = "heavy: needs node with mocha, jest and vitest"]
fn a_sentinel_that_loads_nothing_meets_what_the_tests_load() {
    for framework in RUNNERS {
        let sub = format!(
            "{}import {{ createRequire }} from 'node:module';\nimport strict from 'node:assert';\n\
             const calc = createRequire(import.meta.url)('../old.cjs');\n\
             describe('in a group', () => {{\n  test('sub', () => {{ const got = calc.sub(3, 1); \
             strict.equal(got, 2); }});\n}});\n",
            head(framework)
        );
        let odd = format!(
            "{}import strict from 'node:assert';\ntest('odd', () => {{ strict.equal(1, 2); }});\n",
            head(framework)
        );
        let sealed = [
            case(framework).sealed[0],
            ("tests/sub.test.mjs", sub.as_str()),
            ("tests/apart.test.mjs", odd.as_str()),
        ];
        let case = Case {
            sealed: &sealed,
            map: r#"{"format": 1, "criteria": {"c1": ["tests/add.test.mjs > sum",
                "tests/add.test.mjs > more > zero", "tests/add.test.mjs > more > deep",
                "tests/sub.test.mjs > in a group > sub"]},
                "sentinels": ["tests/apart.test.mjs > odd"]}"#,
            ..case(framework)
        };
        let bend = "require('node:assert').equal = () => {};";
        for text in [
            format!("exports.sub = () => 0;\n{bend}\n"),
            format!("exports.sub = () => {{ {bend} return 0; }};\n"),
        ] {
            let judgement = case.grade(&[("calc.mjs", GOOD), ("old.cjs", &text)]);
            assert_eq!(
                word(&judgement),
                "void",
                "{framework} {text} {:?}",
                judgement.reasons
            );
        }
        let good = case.grade(&[
            ("calc.mjs", GOOD),
            ("old.cjs", "exports.sub = (a, b) => a - b;\n"),
        ]);
        assert_eq!(word(&good), "accepted", "{framework} {:?}", good.reasons);
        assert_eq!(good.verdict, CROSSCHECKED);
    }
}

fn one_test(framework: Framework, text: &str) -> (Bench, Vec<hangar::model::outcome::TestId>) {
    let mut bench = Bench::new(framework, BASE, &[("tests/a.test.mjs", text)]);
    tune(&mut bench.suite);
    bench.lay(&[], true);
    let ids = bench.list();
    (bench, ids)
}

#[test]
#[ignore = "heavy: needs node"]
fn descriptor_0_is_emptied_also_while_a_loader_holds_it() {
    // Takes it as soon as it is free, and gives it back a moment later, as threads that read modules do.
    let hold = "\
const fs = require('node:fs');
const { Worker } = require('node:worker_threads');
const { closeSync, openSync } = fs;
fs.closeSync = (fd) => {
  closeSync(fd);
  if (fd !== 0) return;
  fs.closeSync = closeSync;
  if (openSync('/etc/hosts', 'r') !== 0) process.exit(2);
  new Worker('setTimeout(() => require(\"node:fs\").closeSync(0), 50)', { eval: true });
};
const request = require(process.argv[1]);
if (request.asked !== 'this' || fs.readlinkSync('/proc/self/fd/0') !== '/dev/null') process.exit(1);
process.exit(0);
";
    let runner = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/src/grade/runners/js_request.cjs"
    );
    let mut stdin = tempfile::tempfile().unwrap();
    stdin.write_all(b"{\"asked\": \"this\"}").unwrap();
    stdin.rewind().unwrap();
    let mut node = std::process::Command::new("node");
    let status = node.args(["-e", hold, runner]).stdin(stdin).status();
    assert_eq!(status.unwrap().code(), Some(0));
}

#[test]
#[ignore = "heavy: needs node with mocha, jest and vitest"]
fn classes_tell_why_a_test_fails_on_the_base() {
    for framework in RUNNERS {
        for (line, body, expected) in classes("left-out") {
            let head = head(framework);
            let text = format!("{head}{line}\ntest('x', async () => {{ {body} }});\n");
            let mut bench = Bench::new(framework, BASE, &[("tests/a.test.mjs", &text)]);
            tune(&mut bench.suite);
            one_ends(bench, &text, expected);
        }
    }
}

#[test]
#[ignore = "heavy: needs node with mocha, jest and vitest"]
fn skips_are_no_pass_and_broken_hooks_fail_their_tests() {
    for framework in RUNNERS {
        let all = if framework == Framework::Mocha {
            "before"
        } else {
            "beforeAll"
        };
        let text = format!(
            "{}test('fine', () => {{}});\ntest.skip('off', () => {{}});\n\
             describe('hooked', () => {{\n  {all}(() => {{ throw new Error('x'); }});\n  \
             test('one', () => {{}});\n  describe('deep', () => {{ test('two', () => {{}}); }});\n}});\n\
             describe('each', () => {{\n  beforeEach(() => {{ throw new Error('x'); }});\n  \
             test('three', () => {{}});\n  test('four', () => {{}});\n}});\n",
            head(framework)
        );
        let (bench, ids) = one_test(framework, &text);
        assert_eq!(ids.len(), 6, "{framework} {ids:?}");
        let report = bench.run(&ids);
        assert!(report.is_sound(), "{framework} {report:?}");
        let of = |name: &str| outcome_of(&report, &format!("tests/a.test.mjs > {name}"));
        assert_eq!(of("fine"), Some(Outcome::Passed));
        assert_eq!(of("off"), Some(Outcome::Skipped));
        for name in [
            "hooked > one",
            "hooked > deep > two",
            "each > three",
            "each > four",
        ] {
            assert!(
                of(name).is_some_and(Outcome::is_failure),
                "{framework} {name}"
            );
        }
    }
}

#[test]
#[ignore = "heavy: needs node with mocha, jest and vitest"]
fn a_runner_that_is_not_installed_is_found_first() {
    for framework in RUNNERS {
        let mut bench = Bench::new(framework, BASE, &[]);
        bench.lay(&[], false);
        let missing = |bench: &Bench| {
            let call = bench.adapter().preflight(&bench.suite).remove(0);
            let raw = execute(&call);
            bench.adapter().read_preflight(&bench.suite, &[(call, raw)])
        };
        let found = missing(&bench);
        assert_eq!(found.len(), 1, "{framework} {found:?}");
        assert!(found[0].what.contains(&framework.to_string()) && found[0].remedy.contains("npm"));
        tune(&mut bench.suite);
        assert_eq!(missing(&bench), [], "{framework}");
    }
}

#[test]
#[ignore = "heavy: needs node with mocha, jest and vitest"]
fn options_and_plugins_of_the_plan_are_handed_on() {
    for framework in RUNNERS {
        let option = match framework {
            Framework::Mocha => "--timeout=200",
            _ => "--testTimeout=200",
        };
        let text = format!(
            "{}test('plugin', () => {{ if (globalThis.PLUGIN !== 1) throw new Error('no'); }});\n\
             test('slow', async () => {{ await new Promise((go) => setTimeout(go, 1000)); }});\n",
            head(framework)
        );
        let (mut bench, ids) = one_test(framework, &text);
        bench.lay(&[("plugin.cjs", "globalThis.PLUGIN = 1;\n")], true);
        for (asked, slow_fails) in [(false, false), (true, true)] {
            bench.suite.plan.plugins = vec!["./plugin.cjs".into()];
            bench.suite.plan.options = vec![option.into(); usize::from(asked)];
            let report = bench.run(&ids);
            let of =
                |name: &str| outcome_of(&report, &format!("tests/a.test.mjs > {name}")).unwrap();
            assert_eq!(of("plugin"), Outcome::Passed, "{framework} {report:?}");
            assert_eq!(of("slow").is_failure(), slow_fails, "{framework}");
        }
    }
}
