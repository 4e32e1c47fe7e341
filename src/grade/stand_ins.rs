//! What a language would load in place of another file. Must not know which files are protected.

/// The folder in which Python keeps compiled modules. It can be told to run what lies there without a look
/// at the source (PEP 552, unchecked hash-based `.pyc`).
const BYTECODE_CACHE: &[u8] = b"__pycache__";

/// The folder of snapshots beside the tests that they belong to. Jest and Vitest run what lies there as code.
const SNAPSHOTS: &[u8] = b"__snapshots__";

/// Whether a path lies in a cache of bytecode or among snapshots, or is such a folder's name.
pub(super) fn belongs_to_a_run(path: &[u8]) -> bool {
    let mut parts = path.split(|byte| *byte == b'/');
    parts.any(|part| part == BYTECODE_CACHE || part == SNAPSHOTS)
}

/// Whether a path lies among snapshots.
pub(super) fn is_snapshot(path: &[u8]) -> bool {
    let mut parts = path.split(|byte| *byte == b'/');
    parts.any(|part| part == SNAPSHOTS)
}

/// The Python module in whose place this file would be loaded: a package or an extension of its name comes
/// before it, bytecode of it instead of it.
pub(super) fn stood_in_for(path: &[u8]) -> Option<Vec<u8>> {
    let (folder, name) = match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&[][..], path),
    };
    let stem = name.split(|byte| *byte == b'.').next().unwrap_or(name);
    let in_folder = |folder: &[u8], stem: &[u8]| {
        let slash: &[u8] = if folder.is_empty() { b"" } else { b"/" };
        Some([folder, slash, stem, b".py"].concat())
    };
    let above = |suffix: &[u8]| {
        let rest = folder.strip_suffix(suffix)?;
        rest.is_empty()
            .then_some(rest)
            .or_else(|| rest.strip_suffix(b"/"))
    };
    if let Some(above) = above(BYTECODE_CACHE) {
        return in_folder(above, stem);
    }
    if stem == b"__init__" && !folder.is_empty() {
        return Some([folder, b".py"].concat());
    }
    (name.ends_with(b".so") && !stem.is_empty()).then(|| in_folder(folder, stem))?
}

/// Extensions that JavaScript's ways to find a module add to its name.
const MODULE_EXTENSIONS: &[&str] = &[
    "cjs", "cts", "js", "json", "jsx", "mjs", "mts", "node", "ts", "tsx",
];

/// What a module of JavaScript may be called without its extension: its path without it, or the folder of
/// which it is the index.
pub(super) fn module_name(path: &[u8]) -> Option<&[u8]> {
    let dot = path.iter().rposition(|byte| *byte == b'.')?;
    let (name, extension) = (&path[..dot], &path[dot + 1..]);
    let known = MODULE_EXTENSIONS
        .iter()
        .any(|one| one.as_bytes() == extension);
    known.then(|| name.strip_suffix(b"/index").unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use crate::grade::protect::{Protection, tests::listing};
    use crate::model::listing::{Listing, changes};
    use crate::model::plan::{Framework, Plan};

    #[test]
    fn what_python_would_load_in_place_of_a_protected_module_is_protected_too() {
        let mut plan = Plan::new(Framework::Pytest);
        plan.tests = vec!["src/**/test_*.py".into()];
        plan.protected = vec!["tools/check.py".into()];
        let protection = Protection::new(&plan, &["**/conftest.py"]).unwrap();
        let touches = |path: &str| {
            let changed = listing(&[(path, "1")]);
            !protection
                .touched(&changes(&Listing::new(), &changed))
                .is_empty()
        };
        for path in [
            "tools/check.cpython-311-x86_64-linux-gnu.so",
            "tools/check.so",
            "tools/check/__init__.py",
            "conftest/__init__.py",
        ] {
            assert!(touches(path), "{path}");
            assert!(protection.guards(path.as_bytes()), "{path}");
        }
        // Not run, so no reason to refuse a patch that has it by accident; a build may not make it.
        for path in [
            "tools/__pycache__/check.cpython-311.pyc",
            "__pycache__/conftest.cpython-311-pytest-8.3.4.pyc",
            "src/a/__pycache__/test_x.cpython-311.pyc",
        ] {
            assert!(!touches(path), "{path}");
            assert!(protection.guards(path.as_bytes()), "{path}");
        }
        for path in [
            "tools/checks.so",
            "tools/check/data.py",
            "tools/other/__init__.py",
            "src/a/test_data/rows.json",
            "src/a/__pycache__/calc.cpython-311.pyc",
            "__init__.py",
        ] {
            assert!(!touches(path), "{path}");
            assert!(!protection.guards(path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn protected_modules_are_stood_in_for_by_nothing_either() {
        let mut plan = Plan::new(Framework::Node);
        plan.tests = vec!["tests/".into()];
        plan.protected = vec!["testkit/".into(), "lib/check.js".into()];
        plan.may_touch = vec!["lib/check.ts".into()];
        let protection = Protection::new(&plan, &[]).unwrap();
        let base = listing(&[("testkit/index.js", "1"), ("lib/check.js", "1")]);
        let stands_in = protection.stand_ins(&base, []);
        for path in [
            "testkit.js",
            "lib/check",
            "lib/check.mjs",
            "lib/check/index.js",
        ] {
            assert!(stands_in(path.as_bytes()), "{path}");
        }
        for path in ["testkits.js", "lib/check.ts", "lib/checks", "tests/x.js"] {
            assert!(!stands_in(path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn what_javascript_would_take_for_a_module_of_the_tests_is_found() {
        let mut plan = Plan::new(Framework::Node);
        plan.tests = vec!["**/*.test.js".into(), "**/*.testlib.js".into()];
        let protection = Protection::new(&plan, &[]).unwrap();
        let base = listing(&[("src/old.testlib.js", "1"), ("src/gone", "1")]);
        let found = |path: &str| {
            let changed = changes(&Listing::new(), &listing(&[(path, "1")]));
            let sealed: [&[u8]; 1] = [b"src/help.testlib.js"];
            protection.standing_in(&base, &changed, sealed).len()
        };
        for path in [
            "src/help.testlib",
            "src/old.testlib",
            "src/help.testlib.cjs",
            "src/help.testlib.json",
            "src/help.testlib/index.js",
            "src/help.testlib/package.json",
        ] {
            assert_eq!(found(path), 1, "{path}");
        }
        for path in [
            "src/help.testlib.js",
            "src/help.testlib/other.js",
            "src/help.js",
            "help.testlib",
            "src/new.testlib",
            "package.json",
        ] {
            assert_eq!(found(path), 0, "{path}");
        }
        let gone = changes(&listing(&[("src/help.testlib", "1")]), &Listing::new());
        let sealed: [&[u8]; 1] = [b"src/help.testlib.js"];
        assert!(protection.standing_in(&base, &gone, sealed).is_empty());
    }
}
