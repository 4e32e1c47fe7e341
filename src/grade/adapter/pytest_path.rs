//! Settings of a repository's pytest configuration, `pythonpath` above all: hangar reads none of it when it
//! grades, so `hangar init` writes them into the plan.

use crate::grade::manifest::Tree;

/// The folders that pytest puts on the path, but for the root, which is there anyway. Read from the file
/// that pytest would take.
pub(super) fn folders(tree: Tree<'_>) -> Vec<String> {
    let plain = |folder: String| {
        let folder = folder.trim_start_matches("./").trim_end_matches('/');
        let is_plain = !folder.starts_with('/')
            && !folder.contains([':', '\\', '"', '\''])
            && folder.split('/').all(|part| part != "..");
        (is_plain && !matches!(folder, "" | ".")).then(|| folder.to_owned())
    };
    setting(tree, "pythonpath")
        .into_iter()
        .filter_map(plain)
        .collect()
}

/// The words of one setting, read from the file that pytest would take.
pub(super) fn setting(tree: Tree<'_>, key: &str) -> Vec<String> {
    of_ini(tree, "pytest.ini", "pytest", key)
        .or_else(|| of_pyproject(tree, key))
        .or_else(|| of_ini(tree, "tox.ini", "pytest", key))
        .or_else(|| of_ini(tree, "setup.cfg", "tool:pytest", key))
        .unwrap_or_default()
}

/// `None` where the file does not configure pytest.
fn of_pyproject(tree: Tree<'_>, key: &str) -> Option<Vec<String>> {
    let document: toml::Table = tree.text("pyproject.toml")?.parse().ok()?;
    let pytest = document.get("tool")?.get("pytest")?;
    let options = pytest.get("ini_options").unwrap_or(pytest);
    let texts = match options.get(key) {
        Some(toml::Value::String(text)) => text.split_whitespace().map(str::to_owned).collect(),
        Some(toml::Value::Array(all)) => {
            let texts = all.iter().filter_map(toml::Value::as_str);
            texts.map(str::to_owned).collect()
        }
        _ => Vec::new(),
    };
    Some(texts)
}

/// `None` where there is no such section. A value goes on in indented lines.
fn of_ini(tree: Tree<'_>, file: &str, section: &str, key: &str) -> Option<Vec<String>> {
    let text = tree.text(file)?;
    let (mut is_in, mut is_open, mut seen) = (false, false, false);
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with(['#', ';']) {
            continue;
        }
        if line.starts_with([' ', '\t']) {
            if is_in && is_open {
                found.extend(line.split_whitespace().map(str::to_owned));
            }
            continue;
        }
        let name = line.trim().strip_prefix('[');
        if let Some(name) = name.and_then(|rest| rest.strip_suffix(']')) {
            is_in = name == section;
            seen |= is_in;
        }
        is_open = false;
        if let Some((name, value)) = line.split_once('=')
            && is_in
            && name.trim() == key
        {
            is_open = true;
            found.extend(value.split_whitespace().map(str::to_owned));
        }
    }
    seen.then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(file: &str, text: &str) -> Vec<String> {
        let paths = [file.to_owned()];
        let read = |_: &str| Some(text.as_bytes().to_vec());
        folders(Tree {
            paths: &paths,
            read: &read,
        })
    }

    #[test]
    fn each_place_of_the_configuration_is_read() {
        let toml = "[tool.pytest.ini_options]\npythonpath = ['src', './lib/', '.']\n";
        assert_eq!(of("pyproject.toml", toml), ["src", "lib"]);
        let text = "[tool.pytest.ini_options]\npythonpath = 'src lib'\n";
        assert_eq!(of("pyproject.toml", text), ["src", "lib"]);
        let native = "[tool.pytest]\npythonpath = ['src']\n";
        assert_eq!(of("pyproject.toml", native), ["src"]);
        assert_eq!(of("pytest.ini", "[pytest]\npythonpath = src\n"), ["src"]);
        let lines = "[metadata]\npythonpath = no\n[tool:pytest]\n# why\npythonpath =\n  src\n  lib\naddopts = -q\n";
        assert_eq!(of("setup.cfg", lines), ["src", "lib"]);
        assert_eq!(of("tox.ini", "[pytest]\npythonpath = src\n"), ["src"]);
    }

    #[test]
    fn what_is_no_folder_of_the_tree_is_left_out() {
        let odd = "[pytest]\npythonpath = /abs ../up a:b .\n";
        assert!(of("pytest.ini", odd).is_empty());
        assert!(of("pytest.ini", "[other]\npythonpath = src\n").is_empty());
        assert!(of("pyproject.toml", "not toml [").is_empty());
    }
}
