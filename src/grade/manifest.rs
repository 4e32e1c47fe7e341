//! What the base says of itself: the modules it holds and the dependencies it declares.
//!
//! Used to tell a missing dependency (the environment's fault) from a missing part of the project
//! (what the patch is there to add). Readers are lenient: what can't be read declares nothing.

mod crates;
mod names;

pub use crates::{Crates, Meanings};

use crate::grade::protect::Globs;
use crate::model::plan::Framework;
use std::collections::{BTreeMap, BTreeSet};

/// Largest manifest that is read.
const MAX_BYTES: usize = 4 << 20;

/// Whether a path ends in `.extension`.
pub(crate) fn has_extension(path: &str, extension: &str) -> bool {
    std::path::Path::new(path)
        .extension()
        .is_some_and(|have| have == extension)
}

/// A tree of files to look at.
#[derive(Clone, Copy)]
pub struct Tree<'a> {
    /// Paths relative to the root, `/` between components.
    pub paths: &'a [String],
    /// Content of a path.
    pub read: &'a dyn Fn(&str) -> Option<Vec<u8>>,
}

impl std::fmt::Debug for Tree<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tree({} paths)", self.paths.len())
    }
}

impl Tree<'_> {
    /// Whether there is a file at `path`.
    pub fn has(&self, path: &str) -> bool {
        self.paths.iter().any(|have| have == path)
    }

    /// The text at `path`; `None` when it is not there, too large or not UTF-8.
    pub fn text(&self, path: &str) -> Option<String> {
        if !self.has(path) {
            return None;
        }
        let bytes = (self.read)(path)?;
        if bytes.len() > MAX_BYTES {
            return None;
        }
        String::from_utf8(bytes).ok()
    }
}

/// What a base holds and needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Project {
    /// Top-level modules (Python) of the project itself.
    pub own: BTreeSet<String>,
    /// Names under which declared dependencies are imported; for cargo and go, the crates or
    /// modules that come from outside the repository.
    pub declared: BTreeSet<String>,
    /// Test files of the base that a preflight collects; the caller narrows them to the plan.
    pub tests: Vec<String>,
    /// Files of modules of the base that are no tests (Python).
    pub code: Vec<String>,
    /// Files of the base that the plan protects.
    pub protected: Vec<String>,
    /// Requirement lists at the root (`requirements*.txt`).
    pub lists: Vec<String>,
    /// Name of the distribution that a Python project makes, where its manifest says it plainly.
    pub name: Option<String>,
    /// Packages without which the base's own tests can't run (Node): what the program depends on,
    /// and what those tests name. A linter among the dependencies is none of them.
    pub needed: BTreeSet<String>,
    /// What packages of the base itself are called (Node), or its modules (Go).
    pub names: BTreeSet<String>,
    /// What package.json at the root tells Babel; null where it says nothing.
    pub babel: serde_json::Value,
    /// Whether the repository itself holds a `node_modules` at its root.
    pub tracks_node_modules: bool,
    /// What cargo says of each package with tests, by its folder, once it was asked
    /// ([`crate::grade::adapter::Adapter::learn`]).
    pub crates: Option<BTreeMap<String, Meanings>>,
}

impl Project {
    /// Looks at a base. `tests` are the places of tests, as the plan names them.
    pub fn of(framework: Framework, tests: &Globs, tree: Tree<'_>) -> Self {
        let is_test = |path: &&String| tests.matches(path.as_bytes());
        let found = |ends: &[&str]| -> Vec<String> {
            let mut paths: Vec<String> = tree.paths.iter().filter(is_test).cloned().collect();
            paths.retain(|path| ends.iter().any(|end| path.ends_with(end)));
            paths
        };
        let tracks_node_modules = tree
            .paths
            .iter()
            .any(|path| path.starts_with("node_modules/"));
        let project = match framework {
            Framework::Pytest | Framework::Unittest => Self {
                own: python_modules(tree.paths),
                declared: python_dependencies(tree),
                tests: found(&[".py"]),
                code: python_code(tree.paths, tests),
                lists: requirement_lists(tree.paths),
                name: python_name(tree),
                ..Self::default()
            },
            Framework::Node | Framework::Mocha | Framework::Jest | Framework::Vitest => {
                let tests = found(&[".js", ".mjs", ".cjs", ".ts", ".mts", ".cts"]);
                Self {
                    declared: node_dependencies(tree),
                    needed: node_needed(tree, &tests),
                    names: names::of_node(tree),
                    babel: names::babel(tree),
                    tests,
                    ..Self::default()
                }
            }
            Framework::Cargo => Self {
                declared: cargo_dependencies(tree),
                ..Self::default()
            },
            Framework::Go => {
                let (declared, names) = names::of_go(tree);
                Self {
                    declared,
                    names,
                    ..Self::default()
                }
            }
            Framework::Ctest
            | Framework::Tap
            | Framework::Junit
            | Framework::Exec
            | Framework::External => Self::default(),
        };
        Self {
            tracks_node_modules,
            ..project
        }
    }

    /// The same with the files that the plan protects.
    #[must_use]
    pub fn protecting(mut self, protected: &Globs, tree: Tree<'_>) -> Self {
        let paths = tree.paths.iter();
        let paths = paths.filter(|path| protected.matches(path.as_bytes()));
        self.protected = paths.cloned().collect();
        self
    }

    /// Whether `module` is a declared dependency and no part of the project.
    pub fn is_declared_dependency(&self, module: &str) -> bool {
        let top = module.split('.').next().unwrap_or(module);
        !self.own.contains(top) && (self.declared.contains(top) || self.declared.contains(module))
    }
}

/// Files of modules that are no tests.
fn python_code(paths: &[String], tests: &Globs) -> Vec<String> {
    let is_code = |path: &&String| {
        let is_module = has_extension(path, "py") || has_extension(path, "so");
        is_module && !tests.matches(path.as_bytes())
    };
    paths.iter().filter(is_code).cloned().collect()
}

/// Top-level modules and packages at the root and below `src/`.
fn python_modules(paths: &[String]) -> BTreeSet<String> {
    let mut modules = BTreeSet::new();
    for path in paths {
        for path in [Some(path.as_str()), path.strip_prefix("src/")] {
            let Some((first, rest)) = path.map(|path| match path.split_once('/') {
                Some((first, rest)) => (first, Some(rest)),
                None => (path, None),
            }) else {
                continue;
            };
            match rest {
                None => {
                    if let Some(module) = first.strip_suffix(".py") {
                        modules.insert(module.to_owned());
                    }
                }
                Some(rest) if has_extension(rest, "py") => {
                    modules.insert(first.to_owned());
                }
                Some(_) => {}
            }
        }
    }
    modules
}

/// Distributions whose import name is not their own name.
const IMPORT_NAMES: &[(&str, &str)] = &[
    ("attrs", "attr"),
    ("beautifulsoup4", "bs4"),
    ("opencv-python", "cv2"),
    ("pillow", "PIL"),
    ("protobuf", "google"),
    ("pycryptodome", "Crypto"),
    ("pyjwt", "jwt"),
    ("pyserial", "serial"),
    ("python-dateutil", "dateutil"),
    ("python-dotenv", "dotenv"),
    ("pyyaml", "yaml"),
    ("pyzmq", "zmq"),
    ("scikit-learn", "sklearn"),
    ("setuptools", "pkg_resources"),
    ("typing-extensions", "typing_extensions"),
];

/// `requirements*.txt` and `.in` files at the root and in a `requirements/` folder.
fn requirement_lists(paths: &[String]) -> Vec<String> {
    let is_list = |path: &&String| {
        let list = has_extension(path, "txt") || has_extension(path, "in");
        let folder = path.strip_prefix("requirements/");
        let root = path.starts_with("requirements") && !path.contains('/');
        list && (root || folder.is_some_and(|rest| !rest.contains('/')))
    };
    paths.iter().filter(is_list).cloned().collect()
}

fn python_dependencies(tree: Tree<'_>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for path in requirement_lists(tree.paths) {
        if let Some(text) = tree.text(&path) {
            names.extend(text.lines().filter_map(requirement));
        }
    }
    if let Some(text) = tree.text("pyproject.toml")
        && let Ok(document) = text.parse::<toml::Table>()
    {
        names.extend(pyproject(&document));
    }
    if let Some(text) = tree.text("setup.cfg") {
        names.extend(setup_cfg(&text));
    }
    let mut modules = BTreeSet::new();
    for name in names {
        for (distribution, module) in IMPORT_NAMES {
            if name == *distribution {
                modules.insert((*module).to_owned());
            }
        }
        modules.insert(name.replace(['-', '.'], "_"));
    }
    modules
}

/// The distribution name at the start of a requirement (PEP 508), in lower case.
pub(crate) fn requirement(line: &str) -> Option<String> {
    let line = line.trim();
    let end = line
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')))
        .unwrap_or(line.len());
    let name = &line[..end];
    let fine = name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.len() <= 100;
    fine.then(|| name.to_ascii_lowercase().replace('_', "-"))
}

/// The name of the distribution, from `pyproject.toml`, `setup.cfg` or `setup.py`.
fn python_name(tree: Tree<'_>) -> Option<String> {
    let document = tree
        .text("pyproject.toml")
        .and_then(|text| text.parse::<toml::Table>().ok())
        .unwrap_or_default();
    let places = [
        document.get("project"),
        document.get("tool").and_then(|tool| tool.get("poetry")),
    ];
    let named = places
        .into_iter()
        .flatten()
        .find_map(|place| place.get("name")?.as_str().map(str::to_owned));
    named
        .or_else(|| {
            let text = tree.text("setup.cfg")?;
            let mut lines = text
                .lines()
                .skip_while(|line| line.trim() != "[metadata]")
                .skip(1)
                .take_while(|line| !line.starts_with('['));
            lines.find_map(|line| {
                let (key, value) = line.split_once('=')?;
                (key.trim() == "name").then(|| value.trim().to_owned())
            })
        })
        .or_else(|| {
            let text = tree.text("setup.py")?;
            text.lines().find_map(|line| {
                let value = line.trim().strip_prefix("name")?.trim_start();
                let value = value.strip_prefix('=')?.trim_start();
                let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
                value[1..].split(quote).next().map(str::to_owned)
            })
        })
        .filter(|name| !name.is_empty() && name.len() <= 100)
}

fn pyproject(document: &toml::Table) -> Vec<String> {
    let mut names = Vec::new();
    let texts = |value: &toml::Value| -> Vec<String> {
        value
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default()
            .iter()
            .filter_map(toml::Value::as_str)
            .filter_map(requirement)
            .collect()
    };
    let project = document.get("project").and_then(toml::Value::as_table);
    if let Some(project) = project {
        if let Some(list) = project.get("dependencies") {
            names.extend(texts(list));
        }
        let optional = project.get("optional-dependencies");
        for list in optional
            .and_then(toml::Value::as_table)
            .iter()
            .flat_map(|t| t.values())
        {
            names.extend(texts(list));
        }
    }
    let groups = document
        .get("dependency-groups")
        .and_then(toml::Value::as_table);
    for list in groups.iter().flat_map(|table| table.values()) {
        names.extend(texts(list));
    }
    let poetry = document
        .get("tool")
        .and_then(|tool| tool.get("poetry"))
        .and_then(|poetry| poetry.get("dependencies"))
        .and_then(toml::Value::as_table);
    for name in poetry.iter().flat_map(|table| table.keys()) {
        if name != "python" {
            names.extend(requirement(name));
        }
    }
    names
}

/// Lines of `install_requires`, `tests_require` and extras.
fn setup_cfg(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut inside = false;
    let mut extras = false;
    for line in text.lines() {
        if line.starts_with('[') {
            extras = line.trim() == "[options.extras_require]";
            inside = false;
        } else if let Some((key, value)) = line
            .split_once('=')
            .filter(|_| !line.starts_with([' ', '\t']))
        {
            inside = extras || matches!(key.trim(), "install_requires" | "tests_require");
            if inside {
                names.extend(requirement(value));
            }
        } else if inside {
            names.extend(requirement(line));
        }
    }
    names
}

/// Crates with a source in a lock file; without one, those that a manifest names by version.
fn cargo_dependencies(tree: Tree<'_>) -> BTreeSet<String> {
    let named = |file: &str| {
        let ends = format!("/{file}");
        let paths = tree.paths.iter();
        let found = paths.filter(move |path| *path == file || path.ends_with(&ends));
        found
            .filter_map(|path| tree.text(path)?.parse::<toml::Table>().ok())
            .collect::<Vec<_>>()
    };
    let mut names = BTreeSet::new();
    for lock in named("Cargo.lock") {
        let packages = lock.get("package").and_then(toml::Value::as_array);
        for package in packages.into_iter().flatten() {
            let name = package.get("name").and_then(toml::Value::as_str);
            if let Some(name) = name.filter(|_| package.get("source").is_some()) {
                names.insert(name.to_owned());
            }
        }
    }
    for manifest in named("Cargo.toml") {
        for key in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let list = manifest.get(key).and_then(toml::Value::as_table);
            for (name, how) in list.into_iter().flatten() {
                if how.get("path").is_none() && how.get("workspace").is_none() {
                    let real = how.get("package").and_then(toml::Value::as_str);
                    names.insert(real.unwrap_or(name).to_owned());
                }
            }
        }
    }
    names
}

fn node_dependencies(tree: Tree<'_>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let Some(package) = tree
        .text("package.json")
        .and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok())
    else {
        return names;
    };
    for key in [
        "dependencies",
        "devDependencies",
        "peerDependencies",
        "optionalDependencies",
    ] {
        let list = package.get(key).and_then(serde_json::Value::as_object);
        names.extend(list.iter().flat_map(|list| list.keys().cloned()));
    }
    names
}

/// See [`Project::needed`].
fn node_needed(tree: Tree<'_>, tests: &[String]) -> BTreeSet<String> {
    let package: serde_json::Value = tree
        .text("package.json")
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let names = |key: &str| -> BTreeSet<String> {
        let list = package.get(key).and_then(serde_json::Value::as_object);
        list.into_iter()
            .flat_map(|list| list.keys().cloned())
            .collect()
    };
    let optional = names("optionalDependencies");
    let mut needed: BTreeSet<String> = &names("dependencies") - &optional;
    let mut open: BTreeSet<String> = &node_dependencies(tree) - &needed;
    for path in tests {
        if open.is_empty() {
            break;
        }
        let text = tree.text(path).unwrap_or_default();
        let named: Vec<String> = open
            .iter()
            .filter(|name| imports(&text, name))
            .cloned()
            .collect();
        for name in named {
            open.remove(&name);
            needed.insert(name);
        }
    }
    needed
}

/// Whether a text names a package as an import does: in quotes, perhaps with a path behind it.
fn imports(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        matches!(before, Some('"' | '\'' | '`')) && matches!(after, Some('"' | '\'' | '`' | '/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn project(framework: Framework, files: &[(&str, &str)]) -> Project {
        let paths: Vec<String> = files.iter().map(|(path, _)| (*path).to_owned()).collect();
        let read = |path: &str| {
            let found = files.iter().find(|(have, _)| *have == path);
            found.map(|(_, text)| text.as_bytes().to_vec())
        };
        Project::of(
            framework,
            &Globs::new(&["tests/"]).unwrap(),
            Tree {
                paths: &paths,
                read: &read,
            },
        )
    }

    #[test]
    fn python_dependencies_and_own_modules_are_told_apart() {
        let project = project(
            Framework::Pytest,
            &[
                (
                    "requirements-dev.txt",
                    "PyYAML>=6 # x\n-r other\nnumpy[x]\ncalc\n",
                ),
                (
                    "pyproject.toml",
                    "[project]\ndependencies = ['requests>=2']\n[project.optional-dependencies]\ndev = ['hypothesis']\n",
                ),
                (
                    "setup.cfg",
                    "[options]\ninstall_requires =\n    click>8\npackages = x\n",
                ),
                ("src/calc/__init__.py", ""),
                ("main.py", ""),
            ],
        );
        for module in ["yaml", "numpy", "requests", "hypothesis", "click"] {
            assert!(project.is_declared_dependency(module), "{module}");
        }
        for module in ["calc", "calc.new", "main", "other", "packages", "nothing"] {
            assert!(!project.is_declared_dependency(module), "{module}");
        }
    }

    #[test]
    fn node_dependencies_are_read() {
        let text = r#"{"dependencies": {"@a/b": "1"}, "devDependencies": {"chai": "4"}}"#;
        let project = project(Framework::Node, &[("package.json", text)]);
        assert!(project.is_declared_dependency("@a/b"));
        assert!(project.is_declared_dependency("chai"));
        assert!(!project.is_declared_dependency("other"));
    }

    #[test]
    fn a_linter_among_the_dependencies_is_not_needed_by_tests() {
        let text = r#"{"dependencies": {"a": "1", "maybe": "1"}, "optionalDependencies": {"maybe": "1"},
            "devDependencies": {"eslint": "9", "tape": "5", "@x/y": "1", "tap": "1"}}"#;
        let test = "const test = require('tape'); import z from \"@x/y/z.js\"; // eslint-disable";
        let files = [("package.json", text), ("tests/a.test.js", test)];
        let needed = project(Framework::Node, &files).needed;
        let names: Vec<&str> = needed.iter().map(String::as_str).collect();
        assert_eq!(names, ["@x/y", "a", "tape"]);
    }

    #[test]
    fn the_name_of_a_python_project_is_found_where_it_stands_plainly() {
        let name = |file: (&str, &str)| project(Framework::Pytest, &[file]).name;
        for (path, text) in [
            ("pyproject.toml", "[project]\nname = 'My.Tool'\n"),
            ("pyproject.toml", "[tool.poetry]\nname = 'My.Tool'\n"),
            ("setup.cfg", "[x]\nname = no\n[metadata]\nname = My.Tool\n"),
            ("setup.py", "setup(\n    name='My.Tool',\n)\n"),
        ] {
            assert_eq!(name((path, text)).as_deref(), Some("My.Tool"), "{text}");
        }
        assert_eq!(name(("setup.py", "setup(name=NAME)")), None);
    }

    #[test]
    fn crates_from_outside_are_told_from_the_workspace() {
        let lock =
            "[[package]]\nname = 'serde'\nsource = 'registry+x'\n[[package]]\nname = 'own'\n";
        let manifest = "[dependencies]\na = '1'\nown = { path = 'own' }\n\
                        b = { version = '1', package = 'c' }\n";
        let files = [("Cargo.lock", lock), ("x/Cargo.toml", manifest)];
        let declared = project(Framework::Cargo, &files).declared;
        let names: Vec<&str> = declared.iter().map(String::as_str).collect();
        assert_eq!(names, ["a", "c", "serde"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_manifest_is_read_without_panic(text: String) {
            for path in ["requirements.txt", "pyproject.toml", "setup.cfg"] {
                project(Framework::Pytest, &[(path, &text)]);
            }
            project(Framework::Node, &[("package.json", &text)]);
            project(Framework::Go, &[("go.mod", &text)]);
            project(Framework::Cargo, &[("Cargo.toml", &text), ("Cargo.lock", &text)]);
        }
    }
}
