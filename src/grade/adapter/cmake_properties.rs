//! Reads what a sealed CMakeLists.txt says of the properties that turn the result of a test, and compares it
//! with what CMake made of it: the patch's own CMakeLists.txt runs before and after, and can set them too.

use super::cmake_scan::{Token, tokens};
use serde_json::Value;

/// Properties that give an exit status or an output another meaning, or make something else run in the program
/// of the test or before it.
pub(super) const TURNING: [&str; 9] = [
    "WILL_FAIL",
    "PASS_REGULAR_EXPRESSION",
    "FAIL_REGULAR_EXPRESSION",
    "SKIP_RETURN_CODE",
    "SKIP_REGULAR_EXPRESSION",
    "DISABLED",
    "ENVIRONMENT",
    "ENVIRONMENT_MODIFICATION",
    "FIXTURES_REQUIRED",
];

/// One property in one call.
#[derive(Debug, PartialEq, Eq)]
struct Set {
    tests: Vec<String>,
    property: String,
    /// `None`: only CMake knows.
    value: Option<String>,
    /// It stands in no condition, loop or function.
    always: bool,
}

/// Words that begin what may run never or more than once.
const BLOCKS: [&str; 6] = ["if", "foreach", "while", "function", "macro", "block"];

/// What a file says of its tests.
#[derive(Debug)]
pub(super) struct Said(Vec<Set>);

impl Said {
    /// Reads a file.
    pub(super) fn of(text: &str) -> Self {
        let tokens = tokens(text);
        let mut sets = Vec::new();
        let mut depth = 0_usize;
        for (at, token) in tokens.iter().enumerate() {
            let Token::Word(word) = token else { continue };
            if tokens.get(at + 1) != Some(&Token::Open) {
                continue;
            }
            let word = word.to_ascii_lowercase();
            if BLOCKS.contains(&word.as_str()) {
                depth += 1;
            } else if word
                .strip_prefix("end")
                .is_some_and(|of| BLOCKS.contains(&of))
            {
                depth = depth.saturating_sub(1);
            } else if word == "set_tests_properties" || word == "set_property" {
                let rest = tokens.get(at + 2..).unwrap_or_default();
                let arguments: Vec<&str> = rest
                    .iter()
                    .map_while(|token| match token {
                        Token::Word(text) | Token::Text(text) => Some(*text),
                        Token::Open | Token::Close => None,
                    })
                    .collect();
                read(&word, &arguments, depth == 0, &mut sets);
            }
        }
        Self(sets)
    }

    /// Whether a property of a test is what this file says, as far as that can be told by reading it.
    pub(super) fn agrees(&self, test: &str, property: &str, have: Option<&Value>) -> bool {
        let mut sets = self.0.iter().filter(|set| {
            let names = |name: &String| name == test || name.contains('$');
            set.property == property && set.tests.iter().any(names)
        });
        let fits = |set: &Set| match (&set.value, have) {
            (None, _) => true,
            (Some(said), Some(have)) => is_same(said, have),
            (Some(said), None) => is_off(property, said),
        };
        match have {
            Some(_) => sets.any(fits),
            // What comes last counts; what may not have run says nothing.
            None => sets.next_back().is_none_or(|last| {
                !last.always || !last.tests.iter().any(|name| name == test) || fits(last)
            }),
        }
    }
}

fn read(call: &str, arguments: &[&str], always: bool, sets: &mut Vec<Set>) {
    let is_pairs = call == "set_tests_properties";
    let (arguments, word) = match arguments {
        ["TEST", rest @ ..] if !is_pairs => (rest, "PROPERTY"),
        _ if is_pairs => (arguments, "PROPERTIES"),
        _ => return,
    };
    let mut halves = arguments.splitn(2, |argument| *argument == word);
    let (Some(tests), Some(rest)) = (halves.next(), halves.next()) else {
        return;
    };
    let adds = tests.iter().any(|one| one.starts_with("APPEND"));
    let tests: Vec<String> = tests.iter().map(|one| (*one).to_owned()).collect();
    let mut set = |property: &str, value: String| {
        sets.push(Set {
            tests: tests.clone(),
            property: property.to_owned(),
            value: Some(value).filter(|value| !adds && !value.contains('$')),
            always,
        });
    };
    if is_pairs {
        for pair in rest.chunks(2) {
            set(
                pair[0],
                pair.get(1)
                    .map_or_else(String::new, |value| (*value).to_owned()),
            );
        }
    } else if let [property, values @ ..] = rest {
        set(property, values.join(";"));
    }
}

/// Whether CMake's value is the one that is written.
fn is_same(said: &str, have: &Value) -> bool {
    // Brackets keep a backslash as it is, quotes do not.
    let plain = said.replace("\\\\", "\\").replace("\\\"", "\"");
    let texts = [said, plain.as_str()];
    match have {
        Value::Bool(have) => *have != is_off("WILL_FAIL", said),
        Value::Array(parts) => {
            let parts: Vec<&str> = parts.iter().filter_map(Value::as_str).collect();
            let parts = parts.join(";");
            texts.iter().any(|text| *text == parts)
        }
        Value::String(have) => texts.contains(&have.as_str()),
        Value::Number(have) => have.to_string() == said.trim(),
        Value::Null | Value::Object(_) => false,
    }
}

/// Whether a value is the same as none.
fn is_off(property: &str, said: &str) -> bool {
    let words = ["0", "OFF", "NO", "FALSE", "N", "IGNORE", "NOTFOUND"];
    let is_switch = matches!(property, "WILL_FAIL" | "DISABLED");
    said.is_empty() || is_switch && words.contains(&said.to_ascii_uppercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn properties_are_those_of_the_file() {
        let said = Said::of(
            r#"set_tests_properties(a b PROPERTIES WILL_FAIL ON TIMEOUT 3 PASS_REGULAR_EXPRESSION "x;a\\.b \"q\"")
            set_tests_properties(b PROPERTIES WILL_FAIL "")
            SET_PROPERTY(TEST c PROPERTY SKIP_RETURN_CODE 77)
            set_property(TEST c APPEND PROPERTY SKIP_REGULAR_EXPRESSION no)
            set_property(TARGET c PROPERTY DISABLED 1)
            if(UNIX)
              set_tests_properties(d PROPERTIES DISABLED yes)
            endif()
            set_tests_properties(${all} PROPERTIES FAIL_REGULAR_EXPRESSION [[c\.d]])
            set_tests_properties(e PROPERTIES FAIL_REGULAR_EXPRESSION ${what})"#,
        );
        let same = json!(["x", "a\\.b \"q\""]);
        for (test, property, have, expected) in [
            ("a", "WILL_FAIL", Some(json!(true)), true),
            ("a", "WILL_FAIL", None, false),
            ("a", "PASS_REGULAR_EXPRESSION", Some(same), true),
            ("a", "PASS_REGULAR_EXPRESSION", Some(json!([".*"])), false),
            ("a", "PASS_REGULAR_EXPRESSION", None, false),
            ("a", "SKIP_RETURN_CODE", None, true),
            ("a", "SKIP_RETURN_CODE", Some(json!(77)), false),
            ("b", "WILL_FAIL", None, true),
            ("c", "SKIP_RETURN_CODE", Some(json!(77)), true),
            ("c", "SKIP_RETURN_CODE", Some(json!(1)), false),
            ("c", "SKIP_REGULAR_EXPRESSION", Some(json!(["no"])), true),
            ("c", "DISABLED", Some(json!(true)), false),
            ("d", "DISABLED", Some(json!(true)), true),
            ("d", "DISABLED", None, true),
            ("d", "WILL_FAIL", Some(json!(true)), false),
            ("d", "FAIL_REGULAR_EXPRESSION", Some(json!(["c\\.d"])), true),
            ("d", "FAIL_REGULAR_EXPRESSION", Some(json!(["x"])), false),
            ("d", "FAIL_REGULAR_EXPRESSION", None, true),
            ("e", "FAIL_REGULAR_EXPRESSION", Some(json!(["x"])), true),
        ] {
            let found = said.agrees(test, property, have.as_ref());
            assert_eq!(found, expected, "{test} {property} {have:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn any_text_is_read_without_panic(text in "(set_property|set_tests_properties|TEST|PROPERT(Y|IES)|if|[()\" ${}a]){0,40}") {
            Said::of(&text).agrees("a", "WILL_FAIL", None);
        }
    }
}
