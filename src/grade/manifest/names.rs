//! What the base's own packages and modules are called. Where a name alone decides which code is loaded
//! (Go, Node), a patch could give its own code the name of something that the base takes from outside.

use super::Tree;
use std::collections::BTreeSet;

/// Modules that a go.mod requires and that are no folders of the repository; and those that are.
pub(super) fn of_go(tree: Tree<'_>) -> (BTreeSet<String>, BTreeSet<String>) {
    let paths = tree.paths.iter();
    let files = paths.filter(|path| *path == "go.mod" || path.ends_with("/go.mod"));
    let mut required = BTreeSet::new();
    let mut own = BTreeSet::new();
    for text in files.filter_map(|path| tree.text(path)) {
        let mut block = String::new();
        for line in text.lines() {
            let line = line.split("//").next().unwrap_or(line).trim();
            if line == ")" {
                block.clear();
                continue;
            }
            if let Some(word) = line.strip_suffix('(') {
                word.trim().clone_into(&mut block);
                continue;
            }
            let line = format!("{block} {line}");
            let words: Vec<&str> = line
                .split_whitespace()
                .map(|word| word.trim_matches(['"', '`']))
                .collect();
            match words.as_slice() {
                ["require", module, ..] => required.insert((*module).to_owned()),
                ["module", module] => own.insert((*module).to_owned()),
                ["replace", module, .., to] if to.starts_with(['.', '/']) => {
                    own.insert((*module).to_owned())
                }
                _ => false,
            };
        }
    }
    (&required - &own, own)
}

/// Names in the package.json files of the base, but for those of installed packages.
pub(super) fn of_node(tree: Tree<'_>) -> BTreeSet<String> {
    let paths = tree.paths.iter();
    let files = paths.filter(|path| {
        let mut parts = path.rsplit('/');
        parts.next() == Some("package.json") && !parts.any(|part| part == "node_modules")
    });
    let name = |path: &String| {
        let package: serde_json::Value = serde_json::from_str(&tree.text(path)?).ok()?;
        package["name"].as_str().map(str::to_owned)
    };
    files.filter_map(name).collect()
}

/// What package.json at the root tells Babel.
pub(super) fn babel(tree: Tree<'_>) -> serde_json::Value {
    let package = tree.text("package.json");
    let package = package.and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok());
    package.map_or_else(serde_json::Value::default, |package| {
        package["babel"].clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T>(files: &[(&str, &str)], of: impl Fn(Tree<'_>) -> T) -> T {
        let paths: Vec<String> = files.iter().map(|(path, _)| (*path).to_owned()).collect();
        let read = |path: &str| {
            let found = files.iter().find(|(have, _)| *have == path);
            found.map(|(_, text)| text.as_bytes().to_vec())
        };
        of(Tree {
            paths: &paths,
            read: &read,
        })
    }

    #[test]
    fn modules_from_outside_are_told_from_the_repository() {
        let module = "module a.example/own // x\ngo 1.18\nrequire a.example/one v1.0.0\n\
            require (\n\ta.example/two v1.0.0 // indirect\n\t\"a.example/three\" v1.0.0\n\
            a.example/near v1.0.0\n\ta.example/sub v1.0.0\n)\n\
            replace a.example/near v1.0.0 => ../near\nreplace a.example/two => a.example/fork v1.0.0\n";
        let files = [("go.mod", module), ("sub/go.mod", "module a.example/sub\n")];
        let (outside, own) = read(&files, of_go);
        assert_eq!(
            Vec::from_iter(outside),
            ["a.example/one", "a.example/three", "a.example/two"]
        );
        assert_eq!(
            Vec::from_iter(own),
            ["a.example/near", "a.example/own", "a.example/sub"]
        );
    }

    #[test]
    fn packages_of_the_repository_have_names() {
        let files = [
            ("package.json", r#"{"name": "a", "babel": {"presets": []}}"#),
            ("packages/b/package.json", r#"{"name": "@x/b"}"#),
            ("packages/c/package.json", "no JSON"),
            ("node_modules/d/package.json", r#"{"name": "d"}"#),
        ];
        assert_eq!(Vec::from_iter(read(&files, of_node)), ["@x/b", "a"]);
        assert_eq!(read(&files, babel), serde_json::json!({"presets": []}));
        assert_eq!(read(&files[1..], babel), serde_json::Value::Null);
    }
}
