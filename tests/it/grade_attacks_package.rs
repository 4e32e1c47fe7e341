//! Patches that try to be accepted by what they say in package.json, against `node`, mocha, jest and vitest.

use crate::grade_attacks_js::{BASE, RUNNERS, head, tune};
use crate::grade_attacks_node::{GOOD, WRONG};
use crate::grade_kit::{Case, File, word};
use hangar::model::plan::Framework;

#[test]
#[ignore = "heavy: needs node with mocha, jest and vitest"]
fn a_package_of_the_patch_does_not_take_the_name_of_an_installed_one() {
    // What is installed as `chai` is one of the runner's own packages; the sentinel does not use it.
    let fake = "export const expect = () => ({ to: { equal() {} } });\n";
    let real = "export const expect = (a) => ({ to: { equal(b) { if (a !== b) throw new Error('no'); } } });\n";
    for framework in RUNNERS.into_iter().chain([Framework::Node]) {
        let heads = match framework {
            Framework::Node => "import test from 'node:test';\n",
            other => head(other),
        };
        let test = |name: &str, imports: &str, body: &str| {
            format!(
                "{heads}{imports}import {{ add }} from '../calc.mjs';\ntest('{name}', () => {{ {body} }});\n"
            )
        };
        let sum = |from: &str| {
            let imports = format!("import {{ expect as e }} from '{from}';\n");
            test("sum", &imports, "e(add(2, 3)).to.equal(5);")
        };
        let odd = test(
            "odd",
            "import assert from 'node:assert';\n",
            "assert.strictEqual(add(40, 2), 9177);",
        );
        let graded = |from: &str, base_name: &str, patch: &[File<'_>]| {
            let package =
                format!("{{\"name\": \"{base_name}\", \"exports\": {{\".\": \"./own.mjs\"}}}}");
            let sum = sum(from);
            let case = Case {
                framework,
                base: &[("package.json", &package), BASE[0], ("own.mjs", real)],
                sealed: &[("tests/sum.test.mjs", &sum), ("tests/odd.test.mjs", &odd)],
                map: r#"{"format": 1, "criteria": {"c1": ["tests/sum.test.mjs > sum"]},
                    "sentinels": ["tests/odd.test.mjs > odd"]}"#,
                tune,
            };
            let judgement = case.grade(patch);
            (
                word(&judgement),
                format!("{framework} {:?}", judgement.reasons),
            )
        };
        let taken = r#"{"name": "chai", "exports": {".": "./fake.mjs"}}"#;
        let bent = [
            ("calc.mjs", WRONG),
            ("package.json", taken),
            ("fake.mjs", fake),
        ];
        let (word, why) = graded("chai", "own", &bent);
        assert_eq!(word, "void", "{why}");
        // The honest controls: what is installed is used; a package's own name goes on meaning itself, also
        // where it changes to one that nothing installed has.
        let (word, why) = graded("chai", "own", &[("calc.mjs", GOOD)]);
        assert_eq!(word, "accepted", "{why}");
        let (word, why) = graded("chai", "chai", &[("calc.mjs", GOOD)]);
        assert_eq!(word, "accepted", "{why}");
        let renamed = r#"{"name": "other-one", "exports": {".": "./own.mjs"}}"#;
        let patch = [("calc.mjs", GOOD), ("package.json", renamed)];
        let (word, why) = graded("other-one", "own", &patch);
        assert_eq!(word, "accepted", "{why}");
    }
}

#[test]
#[ignore = "heavy: needs node with mocha, jest and vitest"]
fn package_json_of_the_patch_tells_babel_nothing() {
    let odd = "test('odd', () => { expect(40 + 2).toBe(9177); });\n";
    let sum = "const { add } = require('../calc.js');\n\
               test('sum', () => { const want = 5; expect(add(2, 3)).toBe(want); });\n";
    let plugin = "module.exports = () => ({ visitor: { Identifier(path) {\n  \
                  if (path.node.name === 'add' && path.parent.type === 'CallExpression') path.parentPath.replaceWithSourceString('5');\n\
                  } } });\n";
    let told = r#"{"babel": {"plugins": ["./turn.cjs"]}}"#;
    let case = |package: &'static str, patch: &[File<'_>]| {
        let case = Case {
            framework: Framework::Jest,
            base: &[
                ("package.json", package),
                ("calc.js", "exports.add = () => 0;\n"),
                ("turn.cjs", "module.exports = () => ({ visitor: {} });\n"),
            ],
            sealed: &[("tests/sum.test.js", sum), ("tests/odd.test.js", odd)],
            map: r#"{"format": 1, "criteria": {"c1": ["tests/sum.test.js > sum"]},
                "sentinels": ["tests/odd.test.js > odd"]}"#,
            tune,
        };
        let judgement = case.grade(patch);
        (word(&judgement), judgement.reasons)
    };
    let good = ("calc.js", "exports.add = (a, b) => a + b;\n");
    let (word, why) = case("{}", &[("package.json", told), ("turn.cjs", plugin)]);
    assert_eq!(word, "void", "{why:?}");
    let (word, why) = case(told, &[good, ("package.json", "{}")]);
    assert_eq!(word, "void", "{why:?}");
    // The honest controls: what the base told Babel, and other lines of package.json.
    let (word, why) = case(told, &[good]);
    assert_eq!(word, "accepted", "{why:?}");
    let (word, why) = case("{}", &[good, ("package.json", "{\"version\": \"2\"}")]);
    assert_eq!(word, "accepted", "{why:?}");
}

/// How the tests call their helper, and what of a patch makes that name lead elsewhere.
const TURNED: &[(&str, &str, &[File<'static>])] = &[
    (
        "#check",
        r##"{"name": "calc", "imports": {"#check": "./tests/check.cjs"}}"##,
        &[(
            "package.json",
            r##"{"name": "calc", "imports": {"#check": "./bent.cjs"}}"##,
        )],
    ),
    (
        "calc/check",
        r#"{"name": "calc", "exports": {"./*": "./tests/*.cjs", "./calc": "./calc.mjs"}}"#,
        &[(
            "package.json",
            r#"{"name": "calc", "exports": {"./*": "./tests/*.cjs", "./check": "./bent.cjs"}}"#,
        )],
    ),
];

#[test]
#[ignore = "heavy: needs node with mocha, jest and vitest"]
fn a_manifest_of_the_patch_sends_no_helper_of_the_tests_elsewhere() {
    for framework in RUNNERS.into_iter().chain([Framework::Node]) {
        for (name, manifest, patch) in TURNED {
            let heads = match framework {
                Framework::Node => "import test from 'node:test';\n",
                other => head(other),
            };
            let sum = format!(
                "{heads}import check from '{name}';\nimport {{ add }} from '../calc.mjs';\n\
                 test('sum', () => {{ check.same(add(2, 3), 5); }});\n"
            );
            let odd = format!(
                "{heads}import assert from 'node:assert';\nimport {{ add }} from '../calc.mjs';\n\
                 test('odd', () => {{ assert.strictEqual(add(40, 2), 9177); }});\n"
            );
            let check = "exports.same = (a, b) => { if (a !== b) throw new Error('no'); };\n";
            let case = Case {
                framework,
                base: &[
                    ("package.json", manifest),
                    BASE[0],
                    ("tests/check.cjs", check),
                ],
                sealed: &[("tests/sum.test.mjs", &sum), ("tests/odd.test.mjs", &odd)],
                map: r#"{"format": 1, "criteria": {"c1": ["tests/sum.test.mjs > sum"]},
                    "sentinels": ["tests/odd.test.mjs > odd"]}"#,
                tune,
            };
            let graded = |patch: &[File<'_>]| {
                let judgement = case.grade(patch);
                let why = format!("{framework} {name} {:?}", judgement.reasons);
                (word(&judgement), why)
            };
            let bent = ("bent.cjs", "exports.same = () => {};\n");
            let turned = [&[("calc.mjs", WRONG), bent], *patch].concat();
            let (word, why) = graded(&turned);
            assert_eq!(word, "not accepted", "{why}");
            // The honest controls: other code beside the manifest, and other lines in it.
            let (word, why) = graded(&[("calc.mjs", GOOD), bent]);
            assert_eq!(word, "accepted", "{why}");
            let more = manifest.replace("\"name\"", "\"version\": \"2.0.0\", \"name\"");
            let (word, why) = graded(&[("calc.mjs", GOOD), ("package.json", &more)]);
            assert_eq!(word, "accepted", "{why}");
            let (word, why) = graded(&[("calc.mjs", WRONG), ("package.json", &more)]);
            assert_eq!(word, "not accepted", "{why}");
        }
    }
}

#[test]
#[ignore = "heavy: needs node with mocha"]
fn a_package_of_the_patch_is_not_called_like_what_the_tests_ask_for() {
    // Node.js compares the name of the package with all that is asked for, before it looks at paths.
    for framework in [Framework::Mocha, Framework::Node] {
        let heads = match framework {
            Framework::Node => "const test = require('node:test');\n",
            _ => "const test = it;\n",
        };
        let text = |name: &str, body: &str| {
            format!(
                "{heads}const assert = require('node:assert');\nconst {{ add }} = require('../calc.js');\n\
                 test('{name}', () => assert.strictEqual({body}));\n"
            )
        };
        let (sum, odd) = (text("sum", "add(2, 3), 5"), text("odd", "add(40, 2), 9177"));
        let case = Case {
            framework,
            base: &[
                ("package.json", r#"{"name": "calc"}"#),
                ("calc.js", "exports.add = () => 0;\n"),
            ],
            sealed: &[("tests/sum.test.js", &sum), ("tests/odd.test.js", &odd)],
            map: r#"{"format": 1, "criteria": {"c1": ["tests/sum.test.js > sum"]},
                "sentinels": ["tests/odd.test.js > odd"]}"#,
            tune,
        };
        let right = "exports.add = (a, b) => a + b;\n";
        let wrong = ("calc.js", "exports.add = (a, b) => a * b;\n");
        let named = |name: &str| format!(r#"{{"name": "{name}", "exports": "./other.js"}}"#);
        let taken = named("../calc.js");
        let judgement = case.grade(&[wrong, ("other.js", right), ("package.json", &taken)]);
        assert_eq!(
            word(&judgement),
            "not accepted",
            "{framework} {:?}",
            judgement.reasons
        );
        // The honest control.
        let other = named("other-one");
        let judgement = case.grade(&[
            ("calc.js", right),
            ("other.js", ""),
            ("package.json", &other),
        ]);
        assert_eq!(
            word(&judgement),
            "accepted",
            "{framework} {:?}",
            judgement.reasons
        );
    }
}
