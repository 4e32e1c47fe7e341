//! Files of the base that a plan's own words make part of how tests run: setup files, plugins and
//! configurations that its options name, folders from which cargo takes crates, and what Python loads
//! unasked. No patch may change them, so they stand among the protected paths of the plan that the approver
//! signs.
//!
//! Options are other programs' business, so no option is known here: a path of the tree that stands in one
//! as a word of its own is one that the runner reads. So is one that stands in a variable that holds options
//! or names a program for another one.

use crate::grade::call::Layout;
use crate::grade::manifest::Tree;
use crate::model::plan::{Framework, Plan};
use std::collections::BTreeSet;
use std::path::Path;

/// Patterns for the files that this plan names, in the order of the tree.
pub fn patterns(plan: &Plan, tree: Tree<'_>) -> Vec<String> {
    let texts = plan.options.iter().chain(&plan.plugins);
    let variables = plan.env.iter().filter(|(name, _)| is_of_programs(name));
    let texts: Vec<&String> = texts.chain(variables.map(|(_, value)| value)).collect();
    let modules = modules(plan);
    let mut out = customised(plan);
    for path in tree.paths {
        let stem = stem(path);
        if modules.iter().any(|module| loads(module, path)) {
            let stem = stem.strip_suffix("/__init__").unwrap_or(stem);
            // A folder or a library of that name would come first.
            out.extend([pattern(stem), pattern(stem) + ".*"]);
        } else if texts.iter().any(|text| is_word(text, path, false)) {
            out.push(pattern(path));
        } else if leaves_extensions_out(plan.framework)
            && texts.iter().any(|text| is_word(text, stem, true))
        {
            out.extend([pattern(stem), pattern(stem) + ".*"]);
        }
    }
    if plan.framework == Framework::Cargo {
        out.extend(sources(plan, tree));
    }
    let mut seen = BTreeSet::new();
    out.retain(|pattern| seen.insert(pattern.clone()));
    out
}

/// Whether a variable of this name holds options, or the program that another one starts in its place.
fn is_of_programs(name: &str) -> bool {
    let options = ["OPT", "OPTS", "OPTIONS", "FLAGS"];
    let programs = ["_WRAPPER", "_RUNNER", "_LINKER"];
    let names = [
        "AR", "CARGO", "CC", "CXX", "LD", "RUSTC", "RUSTDOC", "SHELL",
    ];
    let ends = |end: &&str| name.ends_with(*end);
    options.iter().any(ends) || programs.iter().any(ends) || names.contains(&name)
}

/// What Python loads unasked from the folders of `PYTHONPATH` that are in the tree, whether or not the base
/// has it.
fn customised(plan: &Plan) -> Vec<String> {
    let folders = plan.env.get("PYTHONPATH").map_or("", String::as_str);
    let root = Layout::default().src;
    let mut out = Vec::new();
    for folder in folders.split(':').filter(|folder| !folder.is_empty()) {
        let inside = Path::new(folder).strip_prefix(&root);
        let inside = inside.map_or(folder, |inside| inside.to_str().unwrap_or(folder));
        if inside.starts_with('/') {
            continue;
        }
        let folder = below("", inside).unwrap_or_default();
        for module in ["sitecustomize", "usercustomize"] {
            out.extend([format!("{folder}{module}"), format!("{folder}{module}.*")]);
        }
    }
    out
}

/// A path without the extension of its file, where that has one and a name beside it.
fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() && !extension.is_empty() => {
            &path[..path.len() - extension.len() - 1]
        }
        _ => path,
    }
}

/// Whether its options name modules as JavaScript does: with or without the extension.
const fn leaves_extensions_out(framework: Framework) -> bool {
    matches!(
        framework,
        Framework::Node | Framework::Mocha | Framework::Jest | Framework::Vitest
    )
}

/// A path as a pattern; what means something in patterns may be any character.
fn pattern(path: &str) -> String {
    path.replace(['*', '?', '[', ']', '{', '}', '\\', '!', ','], "?")
}

/// Python modules that pytest is told to load, started by hangar or by the command of `junit`.
fn modules(plan: &Plan) -> Vec<&str> {
    if !matches!(plan.framework, Framework::Pytest | Framework::Junit) {
        return Vec::new();
    }
    let options = plan.options.iter();
    let behind = options.zip(plan.options.iter().skip(1));
    let behind = behind.filter_map(|(option, next)| (option == "-p").then_some(next.as_str()));
    let glued = plan
        .options
        .iter()
        .filter_map(|option| option.strip_prefix("-p"));
    let plugins = plan.plugins.iter().map(String::as_str);
    plugins.chain(behind).chain(glued).collect()
}

/// Whether Python reads the file at `path` when it loads `module`, from the root or from a folder that
/// modules are in: the module itself, or a package above it.
fn loads(module: &str, path: &str) -> bool {
    let Some(stem) = path.strip_suffix(".py") else {
        return false;
    };
    let (stem, is_package) = match stem.strip_suffix("/__init__") {
        Some(package) => (package, true),
        None => (stem, false),
    };
    let parts: Vec<&str> = stem.split('/').collect();
    (0..parts.len()).any(|from| {
        let name = parts
            .iter()
            .skip(from)
            .copied()
            .collect::<Vec<_>>()
            .join(".");
        let rest = module.strip_prefix(&name);
        rest.is_some_and(|rest| rest.is_empty() || (is_package && rest.starts_with('.')))
    })
}

/// Whether `name` stands in `text` as a path of its own. A name without its extension counts only where
/// it is written as a path.
fn is_word(text: &str, name: &str, is_stem: bool) -> bool {
    let part = |c: char| c.is_alphanumeric() || "_-/.".contains(c);
    let root = format!("{}/", Layout::default().src.display());
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        let rooted = ["./", "<rootDir>/", root.as_str()]
            .iter()
            .any(|prefix| before.ends_with(prefix));
        let is_glued = before.len() == 2 && before.starts_with('-') && before != "--";
        let begins = rooted || is_glued || !before.ends_with(part);
        let mut next = after.chars();
        let ends = match next.next() {
            Some('.') => !next.next().is_some_and(char::is_alphanumeric),
            Some(c) => !part(c),
            None => true,
        };
        begins && ends && (!is_stem || rooted || name.contains('/'))
    })
}

/// Folders from which the base's own configuration, or one that the options name, lets cargo take crates.
fn sources(plan: &Plan, tree: Tree<'_>) -> Vec<String> {
    let mut out = Vec::new();
    for path in tree.paths {
        let name = path.strip_suffix(".toml").unwrap_or(path);
        let own = name.strip_suffix(".cargo/config");
        let own = own.filter(|root| root.is_empty() || root.ends_with('/'));
        // Paths of a file that an option names are seen from where cargo starts, or from the file.
        let roots = if let Some(root) = own {
            vec![root]
        } else if plan
            .options
            .iter()
            .any(|option| is_word(option, path, false))
        {
            vec!["", path.rsplit_once('/').map_or("", |(folder, _)| folder)]
        } else {
            continue;
        };
        let text = tree.text(path).unwrap_or_default();
        let config: toml::Table = text.parse().unwrap_or_default();
        let sources = config.get("source").and_then(toml::Value::as_table);
        for source in sources.into_iter().flat_map(toml::Table::values) {
            let keys = ["directory", "local-registry"].into_iter();
            for folder in keys.filter_map(|key| source.get(key)?.as_str()) {
                out.extend(roots.iter().filter_map(|root| below(root, folder)));
            }
        }
    }
    out
}

/// `folder` as seen from `root`, as a pattern; `None` where it is not in the tree.
fn below(root: &str, folder: &str) -> Option<String> {
    let mut parts: Vec<&str> = root.split('/').filter(|part| !part.is_empty()).collect();
    if folder.starts_with('/') {
        return None;
    }
    for part in folder.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| format!("{}/", pattern(&parts.join("/"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(
        framework: Framework,
        options: &[&str],
        plugins: &[&str],
        paths: &[&str],
    ) -> Vec<String> {
        let mut plan = Plan::new(framework);
        plan.options = options.iter().map(ToString::to_string).collect();
        plan.plugins = plugins.iter().map(ToString::to_string).collect();
        let paths: Vec<String> = paths.iter().map(ToString::to_string).collect();
        let read = |_: &str| None;
        patterns(
            &plan,
            Tree {
                paths: &paths,
                read: &read,
            },
        )
    }

    #[test]
    fn a_folder_is_no_file_without_its_extension() {
        let tree = [
            "manual/.nojekyll",
            "manual/guide.md",
            ".gitignore",
            ".github/CODEOWNERS",
            "src/calc.py",
        ];
        for framework in [Framework::Jest, Framework::Pytest] {
            for option in [
                "--ignore=manual/",
                "--rootdir=./",
                "--roots=<rootDir>/",
                "--ignore=./manual/",
            ] {
                let found = named(framework, &[option], &[], &tree);
                assert!(found.is_empty(), "{framework} {option}: {found:?}");
            }
        }
        // Code under test: Python's options name files as they are.
        let found = named(Framework::Pytest, &["--cov=src/calc"], &[], &tree);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn folders_of_a_configuration_that_an_option_names_are_sources() {
        let mut plan = Plan::new(Framework::Cargo);
        plan.options = vec!["--config=tools/extra.toml".to_owned()];
        let paths = [
            "tools/extra.toml".to_owned(),
            "vendor/a/Cargo.toml".to_owned(),
        ];
        let text = "[source.vendored]\ndirectory = \"vendor\"\n";
        let read = |path: &str| (path == "tools/extra.toml").then(|| text.as_bytes().to_vec());
        let tree = Tree {
            paths: &paths,
            read: &read,
        };
        let found = patterns(&plan, tree);
        for pattern in ["tools/extra.toml", "vendor/", "tools/vendor/"] {
            assert!(
                found.iter().any(|one| one == pattern),
                "{pattern}: {found:?}"
            );
        }
    }

    #[test]
    fn files_that_options_name_are_found_however_they_are_written() {
        let tree = ["tools/setup.js", "setup.js", "lib/setup.js", "a/[x].js"];
        for (option, expected) in [
            ("--setupFiles=./setup.js", "setup.js"),
            ("--setupFilesAfterEnv=<rootDir>/setup.js", "setup.js"),
            ("-r./setup.js", "setup.js"),
            ("-rsetup.js", "setup.js"),
            ("setup.js", "setup.js"),
            ("/src/setup.js", "setup.js"),
            (
                "--transform={\"^.+$\":\"./tools/setup.js\"}",
                "tools/setup.js",
            ),
            ("--config tools/setup.js --bail", "tools/setup.js"),
            ("a/[x].js", "a/?x?.js"),
        ] {
            assert_eq!(
                named(Framework::Jest, &[option], &[], &tree),
                [expected],
                "{option}"
            );
        }
        for option in ["./setup", "--require=./setup"] {
            assert_eq!(
                named(Framework::Mocha, &[option], &[], &tree),
                ["setup", "setup.*"],
                "{option}"
            );
        }
        for option in [
            "--globals",
            "setup",
            "setup.json",
            "my-setup.js",
            "x/setup.js",
            "--setup.js",
        ] {
            let found = named(
                Framework::Vitest,
                &[option],
                &[],
                &["setup.js", "globals.js"],
            );
            assert_eq!(found, [""; 0], "{option}");
        }
    }

    #[test]
    fn modules_that_pytest_loads_are_found_with_their_packages() {
        let tree = [
            "tools/__init__.py",
            "tools/plug.py",
            "src/more/plug.py",
            "plug.txt",
            "tools/other.py",
        ];
        let expected = ["tools", "tools.*", "tools/plug", "tools/plug.*"];
        let framework = Framework::Pytest;
        assert_eq!(
            named(framework, &["-p", "tools.plug"], &[], &tree),
            expected
        );
        assert_eq!(named(framework, &["-ptools.plug"], &[], &tree), expected);
        assert_eq!(named(framework, &[], &["tools.plug"], &tree), expected);
        assert_eq!(
            named(framework, &[], &["more.plug"], &tree),
            ["src/more/plug", "src/more/plug.*"]
        );
        assert_eq!(
            named(framework, &["-p", "no:randomly"], &[], &tree),
            [""; 0]
        );
    }

    #[test]
    fn what_variables_load_is_protected_and_what_the_code_reads_is_not() {
        let found = |framework, name: &str, value: &str| {
            let mut plan = Plan::new(framework);
            plan.env.insert(name.to_owned(), value.to_owned());
            let paths = ["tools/wrap.sh".to_owned(), "setup.cjs".to_owned()];
            let read = |_: &str| None;
            let paths = &paths;
            patterns(&plan, Tree { paths, read: &read })
        };
        for (name, value) in [
            ("RUSTC_WRAPPER", "/src/tools/wrap.sh"),
            (
                "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER",
                "tools/wrap.sh",
            ),
            ("RUSTFLAGS", "-C linker=/src/tools/wrap.sh"),
            ("GOFLAGS", "-toolexec=/src/tools/wrap.sh"),
            ("JAVA_TOOL_OPTIONS", "-javaagent:tools/wrap.sh"),
            ("CC", "./tools/wrap.sh"),
        ] {
            assert_eq!(
                found(Framework::Cargo, name, value),
                ["tools/wrap.sh"],
                "{name}"
            );
        }
        let node = found(Framework::Node, "NODE_OPTIONS", "--require ./setup.cjs");
        assert_eq!(node, ["setup.cjs"]);
        let code = found(Framework::Exec, "FLASK_APP", "tools/wrap.sh");
        assert_eq!(code, [""; 0]);
        let of = |folder: &str| {
            ["sitecustomize", "usercustomize"]
                .map(|module| [format!("{folder}{module}"), format!("{folder}{module}.*")])
                .concat()
        };
        for (value, expected) in [
            ("/src/tools", of("tools/")),
            ("tools/", of("tools/")),
            (".", of("")),
            ("/src", of("")),
            ("/opt/x:lib", of("lib/")),
            ("/opt/x", Vec::new()),
        ] {
            assert_eq!(
                found(Framework::Tap, "PYTHONPATH", value),
                expected,
                "{value}"
            );
        }
    }

    #[test]
    fn folders_of_crates_are_those_of_the_configuration() {
        let text = "[source.crates-io]\nreplace-with = \"near\"\n\
                    [source.near]\ndirectory = \"third/party\"\n\
                    [source.far]\nlocal-registry = \"../far\"\n[source.out]\ndirectory = \"/x\"\n";
        let paths = [
            ".cargo/config.toml".to_owned(),
            "sub/.cargo/config".to_owned(),
        ];
        let read = |_: &str| Some(text.as_bytes().to_vec());
        let tree = Tree {
            paths: &paths,
            read: &read,
        };
        assert_eq!(
            patterns(&Plan::new(Framework::Cargo), tree),
            ["third/party/", "far/", "sub/third/party/"]
        );
    }
}
