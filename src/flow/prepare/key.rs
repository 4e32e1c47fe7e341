//! Under which name the dependencies of a base are kept: everything that they can depend on.

use super::Error;
use crate::flow::basecheck::project;
use crate::flow::tools::Toolbox;
use crate::git::Repository;
use crate::model::digest::Digest;
use crate::model::listing::Listing;
use crate::model::object_id::ObjectId;
use crate::model::plan::{Framework, Plan};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;

/// Files at any depth that say which dependencies there are, or of which version the tools are.
const MANIFESTS: [&str; 33] = [
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "poetry.lock",
    "uv.lock",
    "pylock.toml",
    "pdm.lock",
    "Pipfile",
    "Pipfile.lock",
    "tox.ini",
    "noxfile.py",
    ".python-version",
    "package.json",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "pnpm-workspace.yaml",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".nvmrc",
    ".node-version",
    "Cargo.toml",
    "Cargo.lock",
    "rust-toolchain",
    "rust-toolchain.toml",
    "config.toml",
    "go.mod",
    "go.sum",
    "go.work",
    "go.work.sum",
    "Makefile",
];

/// The key of a base and plan on this machine.
pub(super) fn key(
    repo: &Repository,
    base: ObjectId,
    plan: &Plan,
    toolbox: &Toolbox,
) -> Result<Digest, Error> {
    let tree = repo.read_commit(base)?.tree;
    let listing = repo.listing(tree)?.listing;
    let mut bytes = b"hangar-prepared-2\n".to_vec();
    let mut add = |part: &[u8]| {
        bytes.extend((part.len() as u64).to_be_bytes());
        bytes.extend(part);
    };
    add(plan.prepare.as_bytes());
    add(std::env::consts::ARCH.as_bytes());
    add(&fs::read("/etc/os-release").unwrap_or_default());
    for (name, program) in toolbox.tools.iter() {
        add(name.as_bytes());
        add(program.as_os_str().as_encoded_bytes());
        // A newer version of the system stands at the same path.
        if let Ok(meta) = fs::metadata(program) {
            add(&meta.size().to_be_bytes());
            add(&meta.mtime().to_be_bytes());
        }
    }
    for (path, digest) in inputs(&listing, &plan.prepare) {
        add(path);
        add(digest.as_bytes());
    }
    // An editable install keeps a list of the packages that it found.
    if matches!(plan.framework, Framework::Pytest | Framework::Unittest) {
        for module in project(repo, base, plan)?.own {
            add(module.as_bytes());
        }
    }
    Ok(Digest::of(&bytes))
}

/// Files of a tree that count.
pub(super) fn inputs<'a>(listing: &'a Listing, step: &str) -> Vec<(&'a [u8], Digest)> {
    let named = named(step);
    listing
        .iter()
        .filter(|(path, _)| is_manifest(path) || is_named(path, &named))
        .map(|(path, entry)| (path, entry.sha256))
        .collect()
}

fn is_manifest(path: &[u8]) -> bool {
    let path = String::from_utf8_lossy(path);
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let is_list = [".txt", ".in", ".pip"]
        .iter()
        .any(|end| name.ends_with(end))
        && (name.starts_with("requirements")
            || name.starts_with("constraints")
            || folder.rsplit('/').next() == Some("requirements"));
    MANIFESTS.contains(&name) || is_list
}

/// Words of the step that may be paths of the base.
fn named(step: &str) -> BTreeSet<String> {
    let is_between = |c: char| c.is_whitespace() || "\"'`;&|()<>{}=,".contains(c);
    let words = step.split(is_between).map(|word| {
        let word = word.split('[').next().unwrap_or(word);
        let word = word.trim_start_matches("./").trim_start_matches("/src/");
        word.trim_end_matches('/').to_owned()
    });
    words
        .filter(|word| !word.is_empty() && word != ".")
        .collect()
}

fn is_named(path: &[u8], named: &BTreeSet<String>) -> bool {
    named.iter().any(|word| {
        path.strip_prefix(word.as_bytes())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(step: &str, paths: &[&str]) -> Vec<String> {
        let named = named(step);
        let counts =
            |path: &&&str| is_manifest(path.as_bytes()) || is_named(path.as_bytes(), &named);
        paths
            .iter()
            .filter(counts)
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn manifests_lists_and_what_the_step_names_count() {
        let paths = [
            "Cargo.lock",
            "a/b/package.json",
            "requirements-dev.txt",
            "requirements/base.in",
            "deps.txt",
            "scripts/setup.sh",
            "vendor/one/x.whl",
            "src/main.rs",
            "docs/notes.txt",
            "vendored/y",
        ];
        assert_eq!(
            counted(
                "pip install -r ./deps.txt \"vendor/\"; sh scripts/setup.sh",
                &paths
            ),
            [
                "Cargo.lock",
                "a/b/package.json",
                "requirements-dev.txt",
                "requirements/base.in",
                "deps.txt",
                "scripts/setup.sh",
                "vendor/one/x.whl"
            ]
        );
    }

    #[test]
    fn the_root_is_no_named_file() {
        assert_eq!(
            counted("pip install -e .[tests] ./", &["a.py", "b/c.py"]),
            [""; 0]
        );
    }
}
