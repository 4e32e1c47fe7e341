//! What of an npm package must be seen so that its program runs: the package and its parts, never
//! the folder that the user keeps it in.

use super::adapter::Bind;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Folder that holds packages.
const MODULES: &str = "node_modules";
/// Largest `package.json` that is read.
const MAX_MANIFEST: u64 = 1 << 20;
/// Most parts that are looked for.
const MAX_PARTS: usize = 64;

/// The parts of a `package.json` that say what else is needed.
#[derive(Debug, Default, Deserialize)]
struct Manifest {
    #[serde(default)]
    dependencies: BTreeMap<String, serde_json::Value>,
    #[serde(default, rename = "optionalDependencies")]
    optional: BTreeMap<String, serde_json::Value>,
}

/// What to bind for the package that `file` lies in; nothing where it is in none.
///
/// A package that needs no others is bound with those of its optional parts that are there (a native
/// program for this machine), each alone. One that needs others is bound with the whole folder of
/// packages around it.
pub(super) fn package(file: &Path, home: Option<&Path>) -> io::Result<Vec<Bind>> {
    let Some(root) = root(file) else {
        return Ok(Vec::new());
    };
    let manifest = manifest(&root.join("package.json"))?;
    let required = manifest
        .dependencies
        .keys()
        .any(|name| !manifest.optional.contains_key(name));
    if required {
        let around = root.ancestors().filter(|dir| dir.ends_with(MODULES)).last();
        let narrow = |dir: &&Path| home.is_none_or(|home| !home.starts_with(dir));
        return Ok(around.filter(narrow).map(Bind::same).into_iter().collect());
    }
    let mut binds = vec![Bind::same(&root)];
    for name in manifest.optional.keys().take(MAX_PARTS) {
        let Some(named) = part(&root, name) else {
            continue;
        };
        let real = named.canonicalize()?;
        binds.push(Bind::same(&real));
        if real != named {
            binds.push(Bind {
                host: real,
                inside: named,
            });
        }
    }
    Ok(binds)
}

/// The folder of the package: the nearest one with a `package.json` that lies directly below a folder of
/// packages, or below a scope in it.
fn root(file: &Path) -> Option<PathBuf> {
    let is_package = |dir: &&Path| {
        let above = |levels: usize| dir.ancestors().nth(levels);
        let named = |dir: Option<&Path>, test: fn(&str) -> bool| {
            dir.and_then(Path::file_name)
                .and_then(|name| name.to_str())
                .is_some_and(test)
        };
        let plain = named(above(1), |name| name == MODULES);
        let scoped = named(above(1), |name| name.starts_with('@'))
            && named(above(2), |name| name == MODULES);
        (plain || scoped) && dir.join("package.json").is_file()
    };
    file.ancestors()
        .skip(1)
        .find(is_package)
        .map(Path::to_owned)
}

fn manifest(file: &Path) -> io::Result<Manifest> {
    if file.metadata()?.len() > MAX_MANIFEST {
        return Err(io::Error::other("its package.json is too large"));
    }
    Ok(serde_json::from_slice(&fs::read(file)?).unwrap_or_default())
}

/// Where node finds a package of that name from `root` on upwards.
fn part(root: &Path, name: &str) -> Option<PathBuf> {
    let plain = |part: &str| !part.is_empty() && !part.starts_with('.');
    if !name.split('/').all(plain) || name.contains(['\\', '\0']) {
        return None;
    }
    root.ancestors()
        .filter(|dir| !dir.ends_with(MODULES))
        .map(|dir| dir.join(MODULES).join(name))
        .find(|dir| dir.join("package.json").is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::files::write_atomic;

    fn put(dir: &Path, manifest: &str) {
        fs::create_dir_all(dir).unwrap();
        write_atomic(&dir.join("package.json"), manifest.as_bytes(), 0o644).unwrap();
    }

    fn scene() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        (dir, home)
    }

    #[test]
    fn a_package_brings_its_part_for_this_machine_and_nothing_beside_it() {
        let (_dir, home) = scene();
        let modules = home.join("js/node_modules");
        let root = modules.join("@maker/agent");
        put(
            &root,
            r#"{"optionalDependencies": {"@maker/agent-linux": "1", "@maker/agent-mac": "1", "../../up": "1"}}"#,
        );
        put(&modules.join("@maker/agent-linux"), "{}");
        put(&modules.join("other"), "{}");
        let binds = package(&root.join("bin/agent.js"), Some(&home)).unwrap();
        let linux = modules.join("@maker/agent-linux");
        assert_eq!(binds, [Bind::same(&root), Bind::same(linux)]);
    }

    #[test]
    fn a_part_may_lie_in_the_package_or_behind_a_link() {
        let (_dir, home) = scene();
        let root = home.join("store/agent@1/node_modules/agent");
        let real = home.join("store/agent-linux@1/node_modules/agent-linux");
        put(
            &root,
            r#"{"optionalDependencies": {"agent-linux": "1", "inner": "1"}}"#,
        );
        put(&root.join("node_modules/inner"), "{}");
        put(&real, "{}");
        let named = home.join("store/agent@1/node_modules/agent-linux");
        std::os::unix::fs::symlink(&real, &named).unwrap();
        let binds = package(&root.join("agent.js"), None).unwrap();
        let link = Bind {
            host: real.clone(),
            inside: named,
        };
        let inner = Bind::same(root.join("node_modules/inner"));
        assert_eq!(binds, [Bind::same(&root), Bind::same(real), link, inner]);
    }

    #[test]
    fn a_package_that_needs_others_brings_the_folder_around_it() {
        let (_dir, home) = scene();
        let modules = home.join("js/node_modules");
        put(
            &modules.join("agent"),
            r#"{"dependencies": {"other": "1"}}"#,
        );
        let binds = package(&modules.join("agent/agent.js"), Some(&home)).unwrap();
        assert_eq!(binds, [Bind::same(&modules)]);
        let inside = home.join("js/node_modules/agent/home");
        assert!(
            package(&modules.join("agent/agent.js"), Some(&inside))
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn a_script_beside_a_manifest_of_a_project_is_in_no_package() {
        let (_dir, home) = scene();
        put(&home, r#"{"dependencies": {"other": "1"}}"#);
        assert!(package(&home.join("agent.js"), None).unwrap().is_empty());
        assert!(
            package(&home.join("node_modules/x.js"), None)
                .unwrap()
                .is_empty()
        );
    }
}
