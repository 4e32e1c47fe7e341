//! What a `prepare` step left: put where it is looked for, or refused.
//!
//! The files were made by programs of strangers. Every process is dead by now; links are never
//! followed, and nothing that they name on this machine is read.

use super::Error;
use crate::base::files;
use crate::grade::manifest::Project;
use crate::model::plan::Plan;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

/// Largest metadata file of an installed distribution that is read.
const MAX_METADATA: u64 = 64 << 10;

fn fail(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| {
        files::Error {
            action,
            path,
            source,
        }
        .into()
    }
}

fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_dir())
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    if !is_folder(folder) {
        return Vec::new();
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// npm installs into the project's own folder; Node resolves upward, so it is kept one above, where
/// no patch can reach it. `src` is the project's folder inside.
pub(super) fn node_modules(from: &Path, to: &Path, src: &Path) -> Result<(), Error> {
    let installed = from.join("node_modules");
    let Ok(meta) = installed.symlink_metadata() else {
        return Ok(());
    };
    if !meta.is_dir() {
        return Err(Error::missing(
            "the `prepare` step left a `node_modules` that is no folder",
            "let npm make it (`npm ci`), not a link to a folder elsewhere",
        ));
    }
    if !entries(to).is_empty() {
        // The step itself put something there.
        return Ok(());
    }
    fs::rename(&installed, to).map_err(fail("move", &installed))?;
    for entry in entries(to) {
        let scoped = entry
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"@"));
        let packages = if scoped { entries(&entry) } else { vec![entry] };
        for package in packages {
            relink(&package, to, src)?;
        }
    }
    Ok(())
}

/// A package of the project's own workspace is a link into the project: it must lead to the tree
/// under test from its new place too.
fn relink(package: &Path, modules: &Path, src: &Path) -> Result<(), Error> {
    let (Ok(target), Ok(below)) = (fs::read_link(package), package.strip_prefix(modules)) else {
        return Ok(());
    };
    let before = src.join("node_modules");
    let old = before.join(below);
    let meant = plain(&old.parent().unwrap_or(src).join(target));
    if !meant.starts_with(src) || meant.starts_with(&before) {
        return Ok(());
    }
    fs::remove_file(package).map_err(fail("replace", package))?;
    symlink(meant, package).map_err(fail("replace", package))
}

/// `path` without `.` and `..`, by name alone.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

/// Refuses a virtual environment that holds a copy of the project: the tests would see it instead
/// of the patch.
pub(super) fn refuse_copies(prepared: &Path, project: &Project, plan: &Plan) -> Result<(), Error> {
    let own = project.name.as_deref().map(normal);
    for site in sites(prepared) {
        for installed in entries(&site) {
            let Some(name) = installed.file_name().and_then(OsStr::to_str) else {
                continue;
            };
            let Some(found) = distribution(name) else {
                continue;
            };
            let origin = origin(&installed);
            let is_own = own.as_deref() == Some(found.as_str());
            let copied = match origin {
                Origin::Editable => false,
                Origin::Project => true,
                Origin::Elsewhere => is_own && !name.ends_with(".egg-link"),
            };
            if copied {
                return Err(Error::missing(
                    format!(
                        "`prepare` installs {found} as a copy: the tests would see it instead of the patch"
                    ),
                    format!(
                        "install the project editable, in hangar.toml under [grader]: prepare = {}",
                        super::quoted(&editable(&plan.prepare))
                    ),
                ));
            }
        }
    }
    Ok(())
}

/// `site-packages` of the virtual environment.
pub(super) fn sites(prepared: &Path) -> Vec<PathBuf> {
    let mut path = prepared.to_owned();
    for part in ["venv", "lib"] {
        path.push(part);
        if !is_folder(&path) {
            return Vec::new();
        }
    }
    let versions = entries(&path).into_iter();
    versions
        .filter(|folder| is_folder(folder))
        .map(|folder| folder.join("site-packages"))
        .collect()
}

/// Names by which modules of a `site-packages` are imported.
pub(super) fn modules(site: &Path) -> BTreeSet<String> {
    let names = entries(site).into_iter().filter_map(|entry| {
        let name = entry.file_name()?.to_str()?;
        // `x`, `x.py`, `x.cpython-312-x86_64-linux-gnu.so`; not `x-1.0.dist-info` or `x.pth`.
        let (stem, end) = name.split_once('.').unwrap_or((name, ""));
        let is_module =
            end.is_empty() || ["py", "pyc", "so"].iter().any(|last| end.ends_with(last));
        let is_name = stem.chars().all(|c| c.is_alphanumeric() || c == '_');
        (is_module && is_name && stem != "__pycache__").then(|| stem.to_owned())
    });
    names.collect()
}

/// The distribution that a file or folder of `site-packages` stands for.
fn distribution(name: &str) -> Option<String> {
    let (stem, end) = name.rsplit_once('.')?;
    if !matches!(end, "dist-info" | "egg-info" | "egg" | "egg-link") {
        return None;
    }
    Some(normal(stem.split('-').next()?))
}

/// A distribution's name as indexes compare it (PEP 503).
fn normal(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if matches!(c, '-' | '_' | '.') {
            if !out.ends_with('-') {
                out.push('-');
            }
        } else {
            out.push(c.to_ascii_lowercase());
        }
    }
    out
}

/// Where a distribution was installed from.
enum Origin {
    /// From the tree itself, and it stays there.
    Editable,
    /// A copy of a folder of the tree.
    Project,
    /// An index, or nothing says it.
    Elsewhere,
}

/// Reads `direct_url.json` (PEP 610).
fn origin(installed: &Path) -> Origin {
    let path = installed.join("direct_url.json");
    let small = |meta: &fs::Metadata| meta.is_file() && meta.len() <= MAX_METADATA;
    let readable = is_folder(installed) && path.symlink_metadata().is_ok_and(|meta| small(&meta));
    let text = if readable { fs::read(&path).ok() } else { None };
    let Some(direct) =
        text.and_then(|text| serde_json::from_slice::<serde_json::Value>(&text).ok())
    else {
        return Origin::Elsewhere;
    };
    if direct["dir_info"]["editable"].as_bool() == Some(true) {
        return Origin::Editable;
    }
    let url = direct["url"].as_str().unwrap_or_default();
    let of_tree = url == "file:///src" || url.starts_with("file:///src/");
    if of_tree && direct["dir_info"].is_object() {
        Origin::Project
    } else {
        Origin::Elsewhere
    }
}

/// The step with the project installed editable.
fn editable(step: &str) -> String {
    let is_root = |word: &str| word == "." || word == "./" || word.starts_with(".[");
    let mut changed = false;
    let words: Vec<String> = step
        .split(' ')
        .map(|word| {
            let bare = word.trim_matches(['\'', '"']);
            if is_root(bare) {
                changed = true;
                format!("-e {word}")
            } else {
                word.to_owned()
            }
        })
        .collect();
    if changed {
        words.join(" ")
    } else {
        format!("{} && pip install -e .", step.trim())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::plan::Framework;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        files::write_atomic(path, text.as_bytes(), 0o644).unwrap();
    }

    #[test]
    fn node_modules_move_and_workspace_links_still_lead_to_the_tree() {
        let dir = folder();
        let (src, to) = (dir.path().join("src"), dir.path().join("modules"));
        fs::create_dir(&to).unwrap();
        let modules = src.join("node_modules");
        write(&modules.join("dep/index.js"), "");
        fs::create_dir_all(modules.join("@own")).unwrap();
        symlink("../../packages/one", modules.join("@own/one")).unwrap();
        symlink("../packages/two", modules.join("two")).unwrap();
        symlink("dep", modules.join("alias")).unwrap();
        symlink("../../etc", modules.join("out")).unwrap();
        node_modules(&src, &to, Path::new("/src")).unwrap();
        let link = |path: &str| fs::read_link(to.join(path)).unwrap();
        assert!(to.join("dep/index.js").is_file() && !modules.exists());
        assert_eq!(link("@own/one"), Path::new("/src/packages/one"));
        assert_eq!(link("two"), Path::new("/src/packages/two"));
        assert_eq!(link("alias"), Path::new("dep"));
        assert_eq!(link("out"), Path::new("../../etc"));
    }

    #[test]
    fn a_link_in_place_of_node_modules_is_refused() {
        let dir = folder();
        let (src, to) = (dir.path().join("src"), dir.path().join("modules"));
        fs::create_dir_all(&src).unwrap();
        fs::create_dir(&to).unwrap();
        symlink("/usr", src.join("node_modules")).unwrap();
        assert!(node_modules(&src, &to, Path::new("/src")).is_err());
        assert_eq!(fs::read_dir(&to).unwrap().count(), 0);
    }

    #[test]
    fn copies_of_the_project_are_told_from_editable_installs() {
        let project = Project {
            name: Some("My.Tool".into()),
            ..Project::default()
        };
        let mut plan = Plan::new(Framework::Pytest);
        plan.prepare = "pip install pytest '.[tests]'".into();
        let check = |name: &str, origin: Option<&str>| {
            let dir = folder();
            let site = dir.path().join("venv/lib/python3.11/site-packages");
            write(&site.join(name).join("METADATA"), "");
            if let Some(origin) = origin {
                write(&site.join(name).join("direct_url.json"), origin);
            }
            refuse_copies(dir.path(), &project, &plan).err()
        };
        let copy = r#"{"url": "file:///src", "dir_info": {}}"#;
        let linked = r#"{"url": "file:///src", "dir_info": {"editable": true}}"#;
        let part = r#"{"url": "file:///src/part", "dir_info": {}}"#;
        let index = r#"{"url": "https://example.org/x.whl", "archive_info": {}}"#;
        assert!(check("my_tool-1.0.dist-info", Some(linked)).is_none());
        assert!(check("other-1.0.dist-info", None).is_none());
        assert!(check("other-1.0.dist-info", Some(index)).is_none());
        assert!(check("part-1.0.dist-info", Some(part)).is_some());
        assert!(check("my_tool-1.0.dist-info", None).is_some());
        let Some(Error::Missing { what, remedy }) = check("my_tool-1.0.dist-info", Some(copy))
        else {
            panic!("a copy was let through")
        };
        assert!(what.contains("my-tool"), "{what}");
        assert!(
            remedy.ends_with("prepare = \"pip install pytest -e '.[tests]'\""),
            "{remedy}"
        );
    }
}
