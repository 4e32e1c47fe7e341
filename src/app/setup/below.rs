//! Projects in folders of a repository whose root is none: what `hangar init` says of them.

use crate::grade::detect_framework;
use crate::grade::manifest::Tree;
use crate::model::plan::Framework;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;

/// Files that a project has at its own root.
const MANIFESTS: [&str; 7] = [
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "go.mod",
    "CMakeLists.txt",
];
/// Folders of other people's code.
const FOREIGN: [&str; 3] = ["node_modules", "vendor", "third_party"];
/// Deepest folder that is looked at, and most that are named.
const MAX_DEPTH: usize = 3;
const MAX_FOLDERS: usize = 8;

/// A project in a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Below {
    /// Its folder, with `/` at the end.
    pub folder: String,
    /// The framework of its tests.
    pub framework: String,
    /// What to write so that hangar can run them from the root.
    pub write: String,
}

/// The outermost folders with a project whose tests hangar can drive.
pub(super) fn projects(paths: &[String], read: &dyn Fn(&str) -> Option<Vec<u8>>) -> Vec<Below> {
    let mut folders: BTreeSet<&str> = BTreeSet::new();
    for path in paths {
        let Some((folder, name)) = path.rsplit_once('/') else {
            continue;
        };
        let parts = || folder.split('/');
        let is_foreign = parts().any(|part| FOREIGN.contains(&part) || part.starts_with('.'));
        if MANIFESTS.contains(&name) && !is_foreign && parts().count() <= MAX_DEPTH {
            folders.insert(folder);
        }
    }
    let inside = |folder: &str, other: &str| {
        let rest = folder.strip_prefix(other);
        rest.is_some_and(|rest| rest.starts_with('/'))
    };
    let outermost = folders
        .iter()
        .filter(|folder| !folders.iter().any(|other| inside(folder, other)));
    let found = outermost.filter_map(|folder| project(folder, paths, read));
    found.take(MAX_FOLDERS).collect()
}

fn project(
    folder: &str,
    paths: &[String],
    read: &dyn Fn(&str) -> Option<Vec<u8>>,
) -> Option<Below> {
    let above = format!("{folder}/");
    let own = paths.iter().filter_map(|path| path.strip_prefix(&above));
    let own: Vec<String> = own.map(str::to_owned).collect();
    let found = detect_framework(Tree {
        paths: &own,
        read: &|path| read(&format!("{above}{path}")),
    })?;
    let line = |key: &str, value: toml::Value| format!("{key} = {value}");
    let tests = found
        .tests
        .iter()
        .map(|glob| format!("{above}{glob}").into());
    let mut lines = vec![
        line("framework", found.framework.to_string().into()),
        line("tests", toml::Value::Array(tests.collect())),
    ];
    let needs = match found.framework {
        Framework::Cargo => Some(format!(
            "a Cargo.toml at the root with [workspace] members = [\"{folder}\"]"
        )),
        Framework::Go => Some("a go.mod at the root".to_owned()),
        Framework::Ctest => Some(format!(
            "a CMakeLists.txt at the root with add_subdirectory({folder})"
        )),
        Framework::Node | Framework::Mocha | Framework::Jest | Framework::Vitest
            if !found.prepare.is_empty() =>
        {
            Some(format!(
                "a package.json at the root with \"workspaces\": [\"{folder}\"]"
            ))
        }
        Framework::Pytest | Framework::Unittest => {
            let prepare = found.prepare.replace(" -r ", &format!(" -r {above}"));
            let prepare = prepare.replace(" -e .", &format!(" -e ./{folder}"));
            lines.push(line("prepare", prepare.into()));
            None
        }
        _ => None,
    };
    let write = match needs {
        Some(needs) => format!("it needs {needs}; then {}", lines.join(", ")),
        None => lines.join(", "),
    };
    Some(Below {
        folder: above,
        framework: found.framework.to_string(),
        write,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Vec<Below> {
        let paths: Vec<String> = files.iter().map(|(path, _)| (*path).to_owned()).collect();
        let read = |path: &str| {
            let found = files.iter().find(|(have, _)| *have == path);
            found.map(|(_, text)| text.as_bytes().to_vec())
        };
        projects(&paths, &read)
    }

    #[test]
    fn each_folder_is_named_with_what_to_write() {
        let found = of(&[
            ("a/Cargo.toml", "[package]\nname = \"a\"\n"),
            ("a/src/lib.rs", ""),
            ("b/package.json", r#"{"devDependencies": {"mocha": "12"}}"#),
            (
                "b/node_modules/x/package.json",
                r#"{"devDependencies": {"jest": "1"}}"#,
            ),
            ("c/pyproject.toml", "[project]\nname = \"c\"\n"),
            ("c/tests/test_a.py", "def test_a(): pass\n"),
            ("d/deep/go.mod", "module d\n"),
            ("readme.md", ""),
        ]);
        let named: Vec<(&str, &str)> = found
            .iter()
            .map(|one| (one.folder.as_str(), one.framework.as_str()))
            .collect();
        assert_eq!(
            named,
            [
                ("a/", "cargo"),
                ("b/", "mocha"),
                ("c/", "pytest"),
                ("d/deep/", "go")
            ]
        );
        assert!(found[0].write.contains("members = [\"a\"]"), "{found:?}");
        assert!(
            found[1].write.contains("\"workspaces\": [\"b\"]"),
            "{found:?}"
        );
        assert_eq!(
            found[2].write,
            "framework = \"pytest\", tests = [\"c/tests/\"], prepare = \"pip install pytest -e ./c\""
        );
        assert!(of(&[("a/readme.md", ""), ("go.mod", "module x\n")]).is_empty());
    }
}
