use super::*;
use crate::model::listing::{Mode, changes};
use crate::model::plan::Framework;
use proptest::prelude::*;

pub(crate) fn listing(files: &[(&str, &str)]) -> Listing {
    let mut listing = Listing::new();
    for (path, text) in files {
        listing.insert(*path, Entry::of(Mode::Regular, text.as_bytes()));
    }
    listing
}

fn paths(listing: &Listing) -> Vec<String> {
    let text = |path| String::from_utf8_lossy(path).into_owned();
    listing.iter().map(|(path, _)| text(path)).collect()
}

#[test]
fn patterns_mean_folders_files_and_globs() {
    let globs = Globs::new(&["tests/", "crates/*/tests", "**/conftest.py", "a.py"]).unwrap();
    for path in [
        "tests/a",
        "tests/a/b",
        "crates/x/tests/t.rs",
        "conftest.py",
        "x/conftest.py",
        "a.py",
    ] {
        assert!(globs.matches(path.as_bytes()), "{path}");
    }
    for path in [
        "tests",
        "mytests/a",
        "crates/x/y/tests/t.rs",
        "b.py",
        "x/a.py",
    ] {
        assert!(!globs.matches(path.as_bytes()), "{path}");
    }
    for bad in ["", "/", "../x", "/tests", "a//b", "a/./b", "[", "{a"] {
        assert!(Globs::new(&[bad]).is_err(), "{bad}");
    }
}

#[test]
fn a_path_that_is_not_text_is_matched_too() {
    let globs = Globs::new(&["tests/"]).unwrap();
    assert!(globs.matches(b"tests/\xff\xfe"));
}

#[test]
fn protected_changes_are_found_unless_allowed_or_among_the_tests() {
    let mut plan = Plan::new(Framework::Pytest);
    plan.protected = vec!["secret.txt".into()];
    plan.may_touch = vec!["deps.txt".into()];
    plan.protected.push("deps.txt".into());
    let protection = Protection::new(&plan, &["**/conftest.py"]).unwrap();
    let base = listing(&[("a.py", "1"), ("conftest.py", "1"), ("secret.txt", "1")]);
    let result = listing(&[
        ("a.py", "2"),
        ("conftest.py", "2"),
        ("tests/conftest.py", "2"),
        ("deps.txt", "2"),
        (".github/workflows/x.yml", "2"),
        ("sub/.gitattributes", "2"),
    ]);
    let touched = protection.touched(&changes(&base, &result));
    let expected: [&[u8]; 2] = [b"conftest.py", b"secret.txt"];
    assert_eq!(touched, expected);
}

#[test]
fn links_in_place_of_protected_folders_and_plugins_of_the_plan_are_touched() {
    let mut plan = Plan::new(Framework::Go);
    plan.protected = vec!["fixed/".into()];
    plan.plugins = vec!["./setup.cjs".into(), "lib/one.cjs".into(), "[".into()];
    let protection = Protection::new(&plan, &["**/vendor/"]).unwrap();
    let changed = |path: &str| {
        let mut result = Listing::new();
        result.insert(path, Entry::of(Mode::Symlink, b"elsewhere"));
        protection.touched(&changes(&Listing::new(), &result)).len()
    };
    for path in [
        "vendor",
        "a/vendor",
        "fixed",
        "vendor/x",
        "fixed/x",
        "setup.cjs",
        "lib/one.cjs",
    ] {
        assert_eq!(changed(path), 1, "{path}");
    }
    for path in ["vendors", "vendor.go", "a/fixed", "lib/two.cjs"] {
        assert_eq!(changed(path), 0, "{path}");
    }
}

#[test]
fn changes_of_ci_hooks_and_configuration_are_guarded_wherever_they_lie() {
    let base = listing(&[("a.py", "1"), ("hangar.toml", "1"), (".husky/x", "1")]);
    let result = listing(&[
        ("a.py", "2"),
        ("hangar.toml", "2"),
        (".github/workflows/x.yml", "2"),
        ("sub/.gitattributes", "2"),
        ("sub/hangar.toml", "2"),
        ("sub/.GitModules", "2"),
        ("github/x", "2"),
    ]);
    let expected = [
        ".github/workflows/x.yml",
        ".husky/x",
        "hangar.toml",
        "sub/.GitModules",
        "sub/.gitattributes",
    ];
    assert_eq!(guarded(&changes(&base, &result)), expected);
    let many: Vec<String> = (0..300).map(|n| format!(".github/{n}")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|path| (path.as_str(), "")).collect();
    let all = guarded(&changes(&Listing::new(), &listing(&many)));
    assert_eq!(all.len(), 300);
    let mut linked = Listing::new();
    linked.insert(".githooks", Entry::of(Mode::Symlink, b"elsewhere"));
    assert_eq!(guarded(&changes(&Listing::new(), &linked)), [".githooks"]);
}

#[test]
fn changes_among_the_tests_are_put_back() {
    let tests = Globs::new(&["tests/"]).unwrap();
    let base = listing(&[
        ("a.py", "1"),
        ("tests/help.py", "1"),
        ("tests/gone.py", "1"),
    ]);
    let result = listing(&[
        ("a.py", "2"),
        ("tests/help.py", "bent"),
        ("tests/new.py", "x"),
    ]);
    let graded = graded_tree(&base, &result, &tests, []);
    assert_eq!(
        graded.tree,
        listing(&[
            ("a.py", "2"),
            ("tests/help.py", "1"),
            ("tests/gone.py", "1")
        ])
    );
    assert_eq!(graded.put_back.len(), 3);
}

#[test]
fn what_belongs_to_a_run_is_left_out_of_a_patch_and_stays_of_the_base() {
    let tests = Globs::new(&["src/**/test_*.py"]).unwrap();
    let base = listing(&[("src/__pycache__/old.cpython-311.pyc", "1")]);
    let result = listing(&[
        ("src/__pycache__/old.cpython-311.pyc", "2"),
        ("src/a/__pycache__/test_x.cpython-311.pyc", "x"),
        ("src/__snapshots__/a.test.js.snap", "x"),
        ("src/a/pycache.py", "x"),
    ]);
    let mut linked = result.clone();
    linked.insert("lib/__pycache__", Entry::of(Mode::Symlink, b"../src"));
    for result in [result, linked] {
        let graded = graded_tree(&base, &result, &tests, []);
        let expected = [base.clone(), listing(&[("src/a/pycache.py", "x")])];
        let expected: Listing = expected
            .iter()
            .flat_map(Listing::iter)
            .map(|(path, entry)| (path.to_vec(), *entry))
            .collect();
        assert_eq!(graded.tree, expected);
    }
}

#[test]
fn what_links_among_the_tests_lead_to_is_protected() {
    let mut plan = Plan::new(Framework::Pytest);
    plan.tests = vec!["tests/".into()];
    plan.may_touch = vec!["shared/free.py".into()];
    let mut base = listing(&[("shared/check.py", "1"), ("tools/conftest.py", "1")]);
    let linked = [
        ("tests/check.py", "../shared/check.py"),
        ("tests/data", "../shared/data"),
        ("tests/free.py", "../shared/free.py"),
        ("conftest.py", "tools/conftest.py"),
        ("code.py", "tools/code.py"),
    ];
    for (path, target) in linked {
        base.insert(path, Entry::of(Mode::Symlink, target.as_bytes()));
    }
    let read = |path: &[u8]| {
        let found = linked.iter().find(|(have, _)| have.as_bytes() == path);
        found.map(|(_, target)| target.as_bytes().to_vec())
    };
    let protection = Protection::new(&plan, &["**/conftest.py"]).unwrap();
    let protection = protection.with_links(&base, &read);
    let touched = |path: &str| {
        let changed = changes(&Listing::new(), &listing(&[(path, "2")]));
        !protection.touched(&changed).is_empty()
    };
    for path in [
        "shared/check.py",
        "shared/data/rows.json",
        "shared/data",
        "tools/conftest.py",
    ] {
        assert!(
            touched(path) && protection.guards(path.as_bytes()),
            "{path}"
        );
    }
    for path in ["shared/other.py", "shared/free.py", "tools/code.py"] {
        assert!(
            !touched(path) && !protection.guards(path.as_bytes()),
            "{path}"
        );
    }
}

#[test]
fn a_link_in_place_of_the_tests_folder_is_left_out() {
    let tests = Globs::new(&["pkg/tests/"]).unwrap();
    let base = listing(&[("pkg/tests/t.py", "1")]);
    for place in ["pkg/tests", "pkg"] {
        let mut result = listing(&[("a.py", "2")]);
        result.insert(place, Entry::of(Mode::Symlink, b"/etc"));
        let graded = graded_tree(&base, &result, &tests, []);
        assert_eq!(paths(&graded.tree), ["a.py", "pkg/tests/t.py"], "{place}");
    }
}

#[test]
fn a_file_in_the_way_of_a_sealed_file_is_left_out() {
    let tests = Globs::new(&["**/hidden/*.py"]).unwrap();
    let result = listing(&[("a/hidden", "file")]);
    let sealed: [&[u8]; 1] = [b"a/hidden/t.py"];
    let graded = graded_tree(&Listing::new(), &result, &tests, sealed);
    assert!(graded.tree.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_pattern_and_path_is_handled(
        patterns in proptest::collection::vec("[a/*?{},\\[\\]!.-]{0,12}", 0..4),
        path: Vec<u8>,
    ) {
        if let Ok(globs) = Globs::new(&patterns) {
            let _ = globs.matches(&path);
            let _ = globs.is_in_the_way(&path);
        }
    }

    #[test]
    fn where_tests_lie_the_graded_tree_is_the_base(
        base in proptest::collection::btree_map("(tests|src)/[ab]", "[xy]", 0..4),
        result in proptest::collection::btree_map("(tests|src)/[ab]|tests|src", "[xy]", 0..4),
    ) {
        let make = |files: &BTreeMap<String, String>| {
            let files: Vec<(&str, &str)> =
                files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
            listing(&files)
        };
        let tests = Globs::new(&["tests/"]).unwrap();
        let base = make(&base);
        let graded = graded_tree(&base, &make(&result), &tests, []);
        let below = |listing: &Listing| -> Listing {
            listing.iter().filter(|(path, _)| path.starts_with(b"tests"))
                .map(|(path, entry)| (path.to_vec(), *entry)).collect()
        };
        prop_assert_eq!(below(&graded.tree), below(&base));
    }
}
