//! What `hangar init` writes for a Python repository.

use super::{Adapter, Proposal, places, pytest_path, pytest_plugins, python};
use crate::grade::manifest::{Tree, has_extension, requirement};
use crate::model::plan::Framework;
use std::collections::BTreeSet;

/// What `hangar init` writes for a Python repository.
pub(super) fn proposal(adapter: &dyn Adapter, tree: Tree<'_>, verify: &str) -> Proposal {
    let framework = adapter.framework();
    let runner = match framework {
        Framework::Pytest => " pytest",
        _ => "",
    };
    let lists: Vec<String> = tree
        .paths
        .iter()
        .filter(|path| path.starts_with("requirements") && has_extension(path, "txt"))
        .filter(|path| !path.contains('/') && !is_for_something_else(path))
        .cloned()
        .collect();
    let path = match framework {
        Framework::Pytest => pytest_path::folders(tree),
        _ => Vec::new(),
    };
    let editable = is_installed(tree, &path);
    let needs = !lists.is_empty() || !runner.is_empty() || editable;
    let extra = test_extra(tree).filter(|_| editable);
    let (plugins, options) = match framework {
        Framework::Pytest => {
            pytest_plugins::of(tree, &installed(tree, &lists, editable, extra.as_deref()))
        }
        _ => (Vec::new(), Vec::new()),
    };
    let lists = lists.iter().map(|path| format!(" -r {path}"));
    let lists = lists.collect::<String>();
    let editable = match (editable, extra) {
        (false, _) => String::new(),
        (true, None) => " -e .".to_owned(),
        (true, Some(extra)) => format!(" -e .[{extra}]"),
    };
    let env = match path.join(":") {
        path if path.is_empty() => Vec::new(),
        path => vec![("PYTHONPATH".to_owned(), path)],
    };
    Proposal {
        framework,
        verify: verify.into(),
        build: String::new(),
        options,
        plugins,
        env,
        prepare: if needs {
            format!("pip install{lists}{runner}{editable}")
        } else {
            String::new()
        },
        tests: tests(adapter, tree),
    }
}

/// Where the tests are: the usual folders at the root, folders of that name deeper, files beside the code.
fn tests(adapter: &dyn Adapter, tree: Tree<'_>) -> Vec<String> {
    let folders: Vec<String> = ["tests/", "test/"]
        .into_iter()
        .filter(|folder| tree.paths.iter().any(|path| path.starts_with(folder)))
        .map(str::to_owned)
        .collect();
    let files = tree.paths.iter();
    let outside: Vec<String> = files
        .filter(|path| python::is_test_file(path) && !places::is_below(path, &folders))
        .take(places::MAX_FILES)
        .filter(|path| holds_tests(tree, path))
        .filter_map(|path| pattern(path))
        .collect();
    places::patterns(folders, outside.into_iter(), adapter.default_tests())
}

/// Whether a file says that it holds tests: not each `test_data.py` of a program is one.
fn holds_tests(tree: Tree<'_>, path: &str) -> bool {
    let text = tree.text(path).unwrap_or_default();
    text.contains("def test") || text.contains("TestCase")
}

/// The pattern of the files that lie or are called like this one.
fn pattern(path: &str) -> Option<String> {
    if let Some(folder) = ["tests", "test"]
        .iter()
        .find(|folder| path.contains(&format!("/{folder}/")))
    {
        return Some(format!("**/{folder}/"));
    }
    let stem = path.rsplit('/').next()?.strip_suffix(".py")?;
    let name = if stem.starts_with("test_") {
        "test_*.py"
    } else if stem.ends_with("_test") {
        "*_test.py"
    } else {
        "test*.py"
    };
    Some(format!("**/{name}"))
}

/// Whether the tests need the repository installed as a package. Where pytest's own configuration puts its
/// folders on the path, that is for what comes with it alone: dependencies and scripts.
fn is_installed(tree: Tree<'_>, path: &[String]) -> bool {
    let declared = tree.has("pyproject.toml") || tree.has("setup.py");
    if path.is_empty() || tree.has("setup.py") || tree.has("setup.cfg") {
        return declared;
    }
    let Some(document) = tree
        .text("pyproject.toml")
        .and_then(|text| text.parse::<toml::Table>().ok())
    else {
        return declared;
    };
    let has = |table: &str, key: &str| {
        let table = document.get(table).and_then(toml::Value::as_table);
        table.and_then(|table| table.get(key)).is_some_and(|value| {
            let count = value.as_array().map(Vec::len);
            count.or(value.as_table().map(toml::Table::len)) != Some(0)
        })
    };
    let brings = [
        "dependencies",
        "optional-dependencies",
        "dynamic",
        "scripts",
        "gui-scripts",
        "entry-points",
    ];
    brings.iter().any(|key| has("project", key)) || has("tool", "poetry")
}

/// Distributions that the proposed `prepare` installs by name.
fn installed(
    tree: Tree<'_>,
    lists: &[String],
    editable: bool,
    extra: Option<&str>,
) -> BTreeSet<String> {
    let texts = lists.iter().filter_map(|path| tree.text(path));
    let mut lines: Vec<String> = texts
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let document = tree.text("pyproject.toml");
    let document = document.and_then(|text| text.parse::<toml::Table>().ok());
    if let Some(project) = document.as_ref().and_then(|all| all.get("project"))
        && editable
    {
        let own = project.get("dependencies");
        let extras = project.get("optional-dependencies");
        let of_extra = extra.and_then(|extra| extras?.get(extra));
        let named = own.into_iter().chain(of_extra);
        let named = named.filter_map(toml::Value::as_array).flatten();
        lines.extend(named.filter_map(|one| one.as_str().map(str::to_owned)));
    }
    lines.iter().filter_map(|line| requirement(line)).collect()
}

/// Whether a requirement list is, by its name, for a checker, the documents or a release.
fn is_for_something_else(path: &str) -> bool {
    let words = [
        "mypy", "lint", "ruff", "format", "doc", "typ", "release", "build", "bench", "publish",
    ];
    let name = path.trim_start_matches("requirements");
    words.iter().any(|word| name.contains(word))
}

/// The extra that brings what the tests need, by its habitual names.
fn test_extra(tree: Tree<'_>) -> Option<String> {
    let document: toml::Table = tree.text("pyproject.toml")?.parse().ok()?;
    let extras = document
        .get("project")?
        .get("optional-dependencies")?
        .as_table()?;
    ["test", "tests", "testing", "dev"]
        .iter()
        .find(|name| extras.contains_key(**name))
        .map(ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grade::adapter::pytest::Pytest;
    use crate::grade::adapter::unittest::Unittest;

    fn proposal_of(adapter: &dyn Adapter, files: &[(&str, &str)]) -> Proposal {
        let paths: Vec<String> = files.iter().map(|(path, _)| (*path).to_owned()).collect();
        let read = |path: &str| {
            let found = files.iter().find(|(have, _)| *have == path);
            found.map(|(_, text)| text.as_bytes().to_vec())
        };
        let tree = Tree {
            paths: &paths,
            read: &read,
        };
        proposal(adapter, tree, "pytest")
    }

    fn proposed(files: &[(&str, &str)]) -> String {
        proposal_of(&Pytest, files).prepare
    }

    #[test]
    fn tests_are_proposed_where_the_base_has_them() {
        let of = |paths: &[&str]| {
            let files: Vec<_> = paths
                .iter()
                .map(|path| (*path, "def test_a(): pass"))
                .collect();
            proposal_of(&Unittest, &files).tests
        };
        assert_eq!(of(&["calc/test_add.py", "calc/add.py"]), ["**/test_*.py"]);
        assert_eq!(
            of(&["calc/add_test.py", "tests/x.py"]),
            ["tests/", "**/*_test.py"]
        );
        assert_eq!(
            of(&["calc/tests/test_a.py", "tests/test_b.py"]),
            ["**/tests/"]
        );
        assert_eq!(of(&["tests/test_b.py", "tests/deep/test_c.py"]), ["tests/"]);
        assert_eq!(of(&["calc/add.py"]), ["tests/", "test/"]);
        let data = [("calc/test_data.py", "DATA = 1"), ("tests/test_a.py", "")];
        assert_eq!(proposal_of(&Unittest, &data).tests, ["tests/"]);
    }

    #[test]
    fn the_path_of_pytest_stands_in_the_plan_and_installs_nothing() {
        let path = "[tool.pytest.ini_options]\npythonpath = ['src']\n";
        let of = |project: &str| {
            let text = format!("[project]\nname = 'x'\n{project}{path}");
            let found = proposal_of(&Pytest, &[("pyproject.toml", &text), ("src/x.py", "")]);
            assert_eq!(found.env, [("PYTHONPATH".to_owned(), "src".to_owned())]);
            found.prepare
        };
        assert_eq!(of(""), "pip install pytest");
        assert_eq!(of("dependencies = []\n"), "pip install pytest");
        // What comes with the package only comes with its installation.
        assert_eq!(of("dependencies = ['a']\n"), "pip install pytest -e .");
        let none = proposal_of(&Pytest, &[("pyproject.toml", "[project]\nname = 'x'\n")]);
        assert_eq!(
            (none.prepare.as_str(), none.env.len()),
            ("pip install pytest -e .", 0)
        );
    }

    #[test]
    fn lists_and_extras_of_the_tests_are_proposed_and_no_others() {
        let project = "[project]\nname = 'x'\n[project.optional-dependencies]\ntests = ['a']\n";
        assert_eq!(
            proposed(&[("pyproject.toml", project), ("requirements-mypy.txt", "")]),
            "pip install pytest -e .[tests]"
        );
        assert_eq!(
            proposed(&[
                ("setup.py", ""),
                ("requirements.txt", ""),
                ("requirements-dev.txt", "")
            ]),
            "pip install -r requirements.txt -r requirements-dev.txt pytest -e ."
        );
        assert_eq!(
            proposed(&[("requirements-docs.txt", ""), ("a.py", "")]),
            "pip install pytest"
        );
    }
    #[test]
    fn plugins_that_are_installed_are_named_with_what_they_need_set() {
        let project = "[project]\nname = 'x'\n[project.optional-dependencies]\n\
            test = ['pytest', 'pytest_asyncio>=1', 'pytest-mock', 'pytest-cov']\ndocs = ['respx']\n\
            [tool.pytest.ini_options]\nasyncio_mode = 'auto'\n";
        let found = proposal_of(&Pytest, &[("pyproject.toml", project)]);
        assert_eq!(found.plugins, ["pytest_asyncio.plugin", "pytest_mock"]);
        assert_eq!(found.options, ["--override-ini=asyncio_mode=auto"]);
        let listed = [
            (
                "requirements-dev.txt",
                "pytest-django==4.11 # web\n-r other.txt\n",
            ),
            (
                "setup.cfg",
                "[tool:pytest]\nDJANGO_SETTINGS_MODULE = site.settings\n",
            ),
        ];
        let found = proposal_of(&Pytest, &listed);
        assert_eq!(found.plugins, ["pytest_django.plugin"]);
        assert_eq!(
            found.options,
            ["--override-ini=DJANGO_SETTINGS_MODULE=site.settings"]
        );
        // What `prepare` does not install can't be loaded.
        let other = "[dependency-groups]\ntest = ['pytest-mock']\n";
        assert!(
            proposal_of(&Pytest, &[("pyproject.toml", other)])
                .plugins
                .is_empty()
        );
        assert!(proposal_of(&Unittest, &listed).plugins.is_empty());
    }
}
