//! Which of some modules a Python test file imports, by reading it. In doubt it does: a comment that
//! looks like an import counts as one.

use std::collections::BTreeSet;

/// Functions and names by which a module is imported whose name is a text.
const BY_TEXT: [&str; 5] = [
    "import_module",
    "importorskip",
    "__import__",
    "pytest_plugins",
    "patch",
];

/// Whether a file imports one of these top-level modules.
pub(super) fn imports(text: &str, names: &BTreeSet<String>) -> bool {
    let text = text.replace("\\\n", " ");
    let is_named = |path: &str| names.contains(path.trim().split('.').next().unwrap_or_default());
    let by_statement = text
        .split(['\n', ';'])
        .any(|line| statement(line, &is_named));
    by_statement || (BY_TEXT.iter().any(|word| text.contains(word)) && by_text(&text, &is_named))
}

/// `import a.b as c, d` and `from a.b import c`, wherever they stand in a line.
fn statement(line: &str, is_named: &dyn Fn(&str) -> bool) -> bool {
    let line = line.replace(['\t', '#', ':', '(', ')'], " ");
    let words: Vec<&str> = line.split_whitespace().collect();
    words.iter().enumerate().any(|(at, word)| {
        let next = words.get(at + 1).copied().unwrap_or_default();
        match *word {
            "from" => is_named(next),
            // Behind `from` stand names of what is in the module.
            "import" if at < 2 || words.get(at - 2) != Some(&"from") => {
                let rest = words.get(at + 1..).unwrap_or_default().join(" ");
                rest.split(',')
                    .any(|one| is_named(one.split_whitespace().next().unwrap_or_default()))
            }
            _ => false,
        }
    })
}

/// A text in quotes that is the path of a module.
fn by_text(text: &str, is_named: &dyn Fn(&str) -> bool) -> bool {
    text.split(['"', '\'']).any(is_named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn imports_are_found_in_every_form() {
        let names = BTreeSet::from(["emoji".to_owned()]);
        for text in [
            "import emoji",
            "import os, emoji.core as e",
            "    from emoji.core import x",
            "import os; import emoji",
            "try: import emoji",
            "import os, \\\n  emoji",
            "x = importlib.import_module(\"emoji.core\")",
            "e = pytest.importorskip('emoji')",
            "with mock.patch('emoji.demojize'): pass",
        ] {
            assert!(imports(text, &names), "{text}");
        }
        for text in [
            "import os\nfrom calc import emoji",
            "import emojis",
            "assert calc.kind() == 'emoji'",
            "emoji = 1",
            "from .emoji import x",
        ] {
            assert!(!imports(text, &names), "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_text_is_read_without_panic(text in ".{0,200}") {
            imports(&text, &BTreeSet::from(["a".to_owned()]));
        }
    }
}
