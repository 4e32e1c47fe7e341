use super::*;
use crate::grade::call::{End, Hit, Left, Raw};
use crate::model::outcome::{FailureClass, Outcome};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn raw(status: i32, stdout: &str) -> Raw {
    Raw {
        end: End::Exited(status),
        stdout: stdout.into(),
        stderr: b"warning\n".to_vec(),
        channel: Vec::new(),
        files: BTreeMap::new(),
        hits: Vec::new(),
    }
}

fn cases(text: &str) -> Result<Vec<Case>, Vec<String>> {
    read("t.toml", text.as_bytes(), "/src")
}

/// One step with these expectations.
fn step(expected: &str) -> Case {
    let text =
        format!("format = 1\n[[case]]\nname = \"x\"\n[[case.step]]\nrun = [\"./x\"]\n{expected}\n");
    cases(&text).unwrap().remove(0)
}

fn passes(expected: &str, raw: &Raw) -> bool {
    step(expected).judge(&[raw]) == Some(Outcome::Passed)
}

#[test]
fn every_condition_holds_for_what_it_says_and_for_nothing_else() {
    let out = raw(0, "one\ntwo\n");
    let json = raw(0, " {\"b\": [1, 2], \"a\": null}\n");
    let rows = [
        ("", &out, true),
        ("stdout = \"one\\ntwo\\n\"", &out, true),
        ("stdout = \"one\\ntwo\"", &out, false),
        ("stdout = { equals = \"one\\ntwo\\n\" }", &out, true),
        ("stdout = { equals = \"one\" }", &out, false),
        ("stdout = { contains = [\"ne\", \"tw\"] }", &out, true),
        ("stdout = { contains = [\"ne\", \"three\"] }", &out, false),
        ("stdout = { lacks = [\"three\"] }", &out, true),
        ("stdout = { lacks = [\"three\", \"two\"] }", &out, false),
        ("stdout = { matches = \"(?m)^t.o$\" }", &out, true),
        ("stdout = { matches = \"^t.o$\" }", &out, false),
        ("stdout = { lines = [\"two\", \"one\"] }", &out, true),
        ("stdout = { lines = [\"two\"] }", &out, false),
        (
            "stdout = { json = '{\"a\": null, \"b\": [1, 2]}' }",
            &json,
            true,
        ),
        (
            "stdout = { json = '{\"a\": null, \"b\": [2, 1]}' }",
            &json,
            false,
        ),
        ("stderr = \"warning\\n\"", &out, true),
        ("stderr = \"\"", &out, false),
        ("exit = 0", &out, true),
        ("exit = 3", &raw(3, ""), true),
        ("", &raw(3, ""), false),
        ("exit = [2, 3]", &raw(3, ""), true),
        ("exit = [2, 4]", &raw(3, ""), false),
        ("exit = \"failure\"", &raw(3, ""), true),
        ("exit = \"failure\"", &raw(0, ""), false),
        ("files = { a = { absent = true } }", &out, true),
        ("files = { a = \"x\" }", &out, false),
    ];
    for (expected, raw, holds) in rows {
        assert_eq!(passes(expected, raw), holds, "{expected}");
    }
    let mut left = raw(0, "");
    left.files.insert("a".into(), Left::File(b"x".to_vec()));
    assert!(passes("files = { a = \"x\" }", &left));
    assert!(!passes("files = { a = { absent = true } }", &left));
}

#[test]
fn what_is_no_file_is_there_and_holds_no_text() {
    let mut left = raw(0, "");
    left.files.insert("a".into(), Left::Other);
    for expected in ["{ absent = true }", "\"\"", "{ lacks = [\"x\"] }"] {
        assert!(!passes(&format!("files = {{ a = {expected} }}"), &left));
    }
}

#[test]
fn a_stream_that_was_cut_is_no_ground_to_pass() {
    let mut cut = raw(0, "one\n");
    assert!(passes("stdout = { lacks = [\"two\"] }", &cut));
    cut.hits.push(Hit::Output);
    assert!(!passes("stdout = { lacks = [\"two\"] }", &cut));
    assert!(!passes("", &cut));
}

#[test]
fn how_a_program_ended_says_why_a_case_failed() {
    let ended = |end| Raw { end, ..raw(0, "") };
    let rows = [
        (End::Signalled(11), Outcome::Failed(FailureClass::Crash)),
        (End::TimedOut, Outcome::Failed(FailureClass::Timeout)),
        (
            End::NotStarted(2),
            Outcome::Failed(FailureClass::MissingSymbol),
        ),
        (End::Exited(1), Outcome::Failed(FailureClass::Assertion)),
    ];
    for (end, outcome) in rows {
        assert_eq!(step("").judge(&[&ended(end)]), Some(outcome));
    }
    let text = "format = 1\n[[case]]\nname = \"x\"\n[[case.step]]\nrun = [\"python3\"]\n";
    let case = cases(text).unwrap().remove(0);
    assert_eq!(
        case.judge(&[&ended(End::NotStarted(2))]),
        Some(Outcome::Environment)
    );
    // It is there; what the steps before did to the tree is in its way.
    assert_eq!(
        case.judge(&[&ended(End::NotStarted(13))]),
        Some(Outcome::Failed(FailureClass::Crash))
    );
}

#[test]
fn a_case_whose_steps_did_not_all_run_has_no_outcome() {
    let text = "format = 1\n[[case]]\nname = \"x\"\n[[case.step]]\nrun = [\"./a\"]\n\
                [[case.step]]\nrun = [\"./b\"]\n";
    let case = cases(text).unwrap().remove(0);
    let (good, bad) = (raw(0, ""), raw(1, ""));
    assert_eq!(case.judge(&[&good]), None);
    assert_eq!(case.judge(&[&good, &good]), Some(Outcome::Passed));
    assert_eq!(
        case.judge(&[&bad]),
        Some(Outcome::Failed(FailureClass::Assertion))
    );
    assert!(!case.visit(0).goes_on && case.visit(1).goes_on);
}

#[test]
fn values_are_drawn_from_the_file_and_put_in_everywhere() {
    let text = r#"
format = 1
[[case]]
name = "x"
files = { "in.txt" = "{w} {unknown}" }
[case.values]
a = { from = -5, to = 900000 }
b = { from = 7, to = 7 }
w = { word = 12 }
p = { pick = ["l", "r"] }
sum = { sum = ["a", "b"] }
product = { product = ["b", "b"] }
less = { difference = ["sum", "b"] }
back = { reversed = "w" }
loud = { upper = "w" }
long = { length = "w" }
[[case.step]]
run = ["./x", "{a}", "{b}", "{sum}", "{less}", "{w}", "{back}", "{loud}", "{product}", "{long}", "{p}", "{root}"]
stdin = '{"a": {a}}'
"#;
    let case = cases(text).unwrap().remove(0);
    let run = &case.steps[0].run;
    let number = |at: usize| run[at].parse::<i64>().unwrap();
    assert!((-5..=900_000).contains(&number(1)));
    assert_eq!((number(2), number(3)), (7, number(1) + 7));
    assert_eq!(number(4), number(1));
    assert_eq!(run[5].len(), 12);
    assert_eq!(run[6].chars().rev().collect::<String>(), run[5]);
    assert_eq!(run[7].to_lowercase(), run[5]);
    assert_eq!(run[8..10], ["49", "12"]);
    assert!(["l", "r"].contains(&run[10].as_str()));
    assert_eq!(run[11], "/src");
    assert_eq!(case.steps[0].stdin, format!("{{\"a\": {}}}", run[1]));
    let file = String::from_utf8(case.visit(0).files["in.txt"].clone()).unwrap();
    assert_eq!(file, format!("{} {{unknown}}", run[5]));
    // The same again; others as soon as the file is another, as with a new canary.
    assert_eq!(cases(text).unwrap()[0].steps[0].run, *run);
    let other = cases(&format!("# other\n{text}")).unwrap().remove(0);
    assert_ne!(other.steps[0].run[5], run[5]);
}

#[test]
fn a_value_in_a_pattern_is_no_pattern() {
    let text = "format = 1\n[[case]]\nname = \"x\"\nvalues = { v = { pick = [\"a.c\"] } }\n\
                [[case.step]]\nrun = [\"./x\"]\nstdout = { matches = \"^{v}$\" }\n";
    let case = cases(text).unwrap().remove(0);
    assert_eq!(case.judge(&[&raw(0, "a.c")]), Some(Outcome::Passed));
    assert_ne!(case.judge(&[&raw(0, "abc")]), Some(Outcome::Passed));
}

#[test]
fn what_can_not_be_a_case_is_refused_in_words() {
    let one = |rest: &str| format!("format = 1\n[[case]]\nname = \"x\"\n{rest}");
    let step = |rest: &str| one(&format!("[[case.step]]\nrun = [\"./x\"]\n{rest}"));
    // What hangs on no value but is made of one counts; what only stands there does not.
    let drawn = "values = { a = { word = 3 }, b = { upper = \"a\" } }\n";
    let used = |text: &str| {
        one(&format!(
            "{drawn}[[case.step]]\nrun = [\"./x\", \"{text}\"]"
        ))
    };
    assert!(cases(&used("{b}")).is_ok());
    let faults = cases(&used("{a} {B}")).unwrap_err();
    assert!(
        faults[0].contains("nothing uses the value `b`"),
        "{faults:?}"
    );
    let valued = |values: &str| {
        one(&format!(
            "values = {values}\n[[case.step]]\nrun = [\"./x\"]"
        ))
    };
    let rows = [
        ("format = 2".to_owned(), "must be 1"),
        ("case = 3".to_owned(), "invalid type"),
        (one(""), "[[case.step]]"),
        (one("[[case.step]]\nrun = []"), "no program"),
        (step("other = 1"), "other"),
        (step("timeout = 0"), "at least 1"),
        (step("exit = \"x\""), "`exit` is"),
        (step("exit = 256"), "0 to 255"),
        (step("exit = [0, -1]"), "0 to 255"),
        (step("exit = []"), "0 to 255"),
        (step("stdout = { absent = true }"), "for files"),
        (step("stdout = {}"), "empty"),
        (step("stdout = 3"), "what is expected is"),
        (step("stdout = { matches = \"(\" }"), "regular expression"),
        (step("stdout = { json = \"{\" }"), "no JSON"),
        (step("files = { \"../x\" = \"\" }"), "below the root"),
        (
            step("files = { a = { absent = true, contains = [\"x\"] } }"),
            "absent",
        ),
        (
            one("files = { \"/etc/x\" = \"\" }\n[[case.step]]\nrun = [\"./x\"]"),
            "below the root",
        ),
        (
            one("files = { a = \"\", \"a/b\" = \"\" }\n[[case.step]]\nrun = [\"./x\"]"),
            "`a/b` below another",
        ),
        (
            step("files = { a = \"\" }\n[[case.step]]\nrun = [\"./y\"]"),
            "after the last step",
        ),
        (
            step("") + "[[case]]\nname = \"x\"\n[[case.step]]\nrun = [\"./x\"]",
            "two cases",
        ),
        (valued("{ a = { sum = [\"a\"] } }"), "made from itself"),
        (valued("{ a = { sum = [\"b\"] } }"), "no value is called"),
        (valued("{ a = { from = 2, to = 1 } }"), "more than"),
        (valued("{ a = { word = 0 } }"), "letters"),
        (valued("{ a = { pick = [] } }"), "nothing to pick"),
        (
            valued("{ a = { word = 3 }, b = { sum = [\"a\"] } }"),
            "no whole number",
        ),
        (valued("{ \"a b\" = { word = 3 } }"), "no name of a value"),
        (valued("{ root = { word = 3 } }"), "is given"),
        (valued("{ a = { other = 3 } }"), "a value is one of"),
    ];
    for (text, said) in rows {
        let complaints = cases(&text).unwrap_err().join("\n");
        assert!(complaints.contains(said), "{said}: {complaints}");
        assert!(complaints.starts_with("`t.toml`"), "{complaints}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_text_and_any_output_are_read_without_panic(
        text in "(format = 1\n)?(\\[\\[case\\]\\]\n|name = \"x\"\n|\\[\\[case.step\\]\\]\n|run = \\[\"./x\"\\]\n|.{0,20}){0,8}",
        stdout: Vec<u8>,
    ) {
        let _ = cases(&text);
        let raw = Raw { stdout, ..raw(0, "") };
        for expected in ["stdout = { json = '1' }", "stdout = { lines = [\"a\"] }", "stdout = { matches = \"(a|b)+$\" }"] {
            let _ = step(expected).judge(&[&raw]);
        }
    }
}
