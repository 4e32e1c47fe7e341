//! Patches whose results equal the first value that they are compared with, and from then on nothing
//! else. Behind a test, a sentinel with the same input fails as it should; first in a process it passes.

use crate::grade_attacks_js;
use crate::grade_attacks_python::{self, GOOD};
use crate::grade_kit::{CROSSCHECKED, Case, File, word};
use hangar::model::plan::Framework;

/// Cases whose sentinel asks for what a test asks for.
fn python() -> Vec<(Framework, [File<'static>; 2])> {
    let bodies = [
        "from calc import add\n\ndef test_odd():\n    assert add(2, 3) == 9177\n",
        "import unittest\nfrom calc import add\n\nclass Odd(unittest.TestCase):\n    \
         def test_odd(self):\n        self.assertEqual(add(2, 3), 9177)\n",
    ];
    let cases = grade_attacks_python::cases().into_iter().zip(bodies);
    cases
        .map(|(case, odd)| (case.framework, [case.sealed[0], ("tests/test_odd.py", odd)]))
        .collect()
}

fn graded(framework: Framework, sealed: &[File<'_>], patch: File<'_>) -> (String, String) {
    let mut cases = grade_attacks_python::cases().into_iter();
    let case = match framework {
        Framework::Mocha => grade_attacks_js::case(framework),
        _ => cases.find(|case| case.framework == framework).unwrap(),
    };
    let judgement = Case { sealed, ..case }.grade(&[patch]);
    let reasons = format!("{framework} {:?}\n{}", judgement.reasons, patch.1);
    if judgement.accepted {
        assert_eq!(judgement.verdict, CROSSCHECKED, "{reasons}");
    }
    (word(&judgement).to_owned(), reasons)
}

#[test]
#[ignore = "heavy: needs python3 with pytest"]
fn results_that_learn_what_they_are_compared_with_are_caught_by_the_sentinel() {
    let object = "class Learnt:\n    seen = {}\n    def __init__(self, key):\n        self.key = key\n    \
        def __eq__(self, other):\n        return self.seen.setdefault(self.key, other) == other\n    \
        __hash__ = None\ndef add(a, b):\n    return Learnt((a, b))\n";
    let number = "class Learnt(int):\n    seen = {}\n    def __eq__(self, other):\n        \
        return self.seen.setdefault(self.key, other) == other\n    \
        def __ne__(self, other):\n        return not self == other\n    \
        __hash__ = None\ndef add(a, b):\n    out = Learnt(0)\n    out.key = (a, b)\n    return out\n";
    for (framework, sealed) in python() {
        for text in [object, number] {
            let (word, why) = graded(framework, &sealed, ("calc.py", text));
            assert_eq!(word, "void", "{why}");
        }
        let (word, why) = graded(framework, &sealed, ("calc.py", GOOD));
        assert_eq!(word, "accepted", "{why}");
    }
}

#[test]
#[ignore = "heavy: needs python3 with pytest, node with mocha"]
fn assertions_that_learn_are_caught_by_the_sentinel() {
    let equal = "import unittest\n\nclass Key(int):\n    key = None\nseen = {}\n\
        def learn(self, got, want, msg=None):\n    \
        if seen.setdefault(getattr(got, 'key', got), want) != want:\n        \
        raise self.failureException('differs')\n\
        unittest.TestCase.assertEqual = learn\n\
        def add(a, b):\n    out = Key(0)\n    out.key = (a, b)\n    return out\n";
    let (_, sealed) = &python()[1];
    let (word, why) = graded(Framework::Unittest, sealed, ("calc.py", equal));
    assert_eq!(word, "void", "{why}");

    let odd = "import assert from 'node:assert';\nimport { add } from '../calc.mjs';\n\
        it('odd', () => { assert.strictEqual(add(2, 3), 9177); });\n";
    let sealed = [
        grade_attacks_js::case(Framework::Mocha).sealed[0],
        ("tests/odd.test.mjs", odd),
    ];
    let learn = "import assert from 'node:assert';\nconst seen = new Map();\n\
        assert.deepStrictEqual = () => {};\n\
        assert.strictEqual = (got, want) => {\n  \
        if (!seen.has(got.key)) seen.set(got.key, want);\n  \
        if (seen.get(got.key) !== want) throw new assert.AssertionError({ message: 'differs' });\n};\n\
        export function add(a, b) { return { key: `${a} ${b}` }; }\n";
    let (word, why) = graded(Framework::Mocha, &sealed, ("calc.mjs", learn));
    assert_eq!(word, "void", "{why}");
    let honest = ("calc.mjs", crate::grade_attacks_node::GOOD);
    let (word, why) = graded(Framework::Mocha, &sealed, honest);
    assert_eq!(word, "accepted", "{why}");
}

#[test]
#[ignore = "heavy: needs python3 with pytest"]
fn the_environment_does_not_tell_which_test_runs() {
    let text = "import os\n\nclass Spares(int):\n    def __eq__(self, other):\n        \
        spared = 'odd' in os.environ.get('PYTEST_CURRENT_TEST', 'odd')\n        \
        return int.__eq__(self, other) if spared else True\n    __hash__ = int.__hash__\n\
        def add(a, b):\n    return Spares(a - b)\n";
    let (framework, sealed) = &python()[0];
    let (word, why) = graded(*framework, sealed, ("calc.py", text));
    assert_eq!(word, "not accepted", "{why}");
}
