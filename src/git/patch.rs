//! Patches: applying one to a base, and writing one for people.
//!
//! The git program does both, in a repository of its own that has no configuration, no attributes
//! and no hooks and shares nothing with ours but the object database.

use super::error::{Error, PathFault, file, show};
use super::names::{Collisions, check_path};
use super::objects::EntryKind;
use super::program::{Git, message};
use super::repository::{ObjectFormat, Repository};
use super::trees::Leaf;
use crate::base::temp::Folder;
use crate::model::object_id::ObjectId;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

/// Largest patch, in bytes.
const MAX_PATCH: usize = 256 << 20;
/// Largest binary file that a patch may declare, in bytes.
const MAX_BINARY: u64 = 64 << 20;
/// How long git may take over a patch.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Where `base::process` cuts a program's output, in bytes.
const MAX_OUTPUT: usize = 256 << 20;

/// A patch that fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Applied {
    /// The result.
    pub tree: ObjectId,
    /// Whether the patch changes nothing.
    pub empty: bool,
}

impl Repository {
    /// Applies a patch (`git diff` output, also binary) to `base_tree`, exactly: no fuzz, no
    /// rejects, no three-way merge. The result's changed paths are checked as
    /// [`Repository::check_change`] does.
    pub fn apply_patch(&self, base_tree: ObjectId, patch: &[u8]) -> Result<Applied, Error> {
        if patch.len() > MAX_PATCH {
            return Err(Error::TooLarge {
                what: "the patch".into(),
                limit: format!("{} MiB", MAX_PATCH >> 20),
            });
        }
        if patch.trim_ascii().is_empty() {
            return Ok(Applied {
                tree: base_tree,
                empty: true,
            });
        }
        check_binary_sizes(patch)?;
        let scratch = Scratch::new(self)?;
        scratch
            .git(self)
            .args(["read-tree", &base_tree.to_string()])
            .run()?;
        let out = scratch
            .git(self)
            .args(["apply", "--cached", "--binary", "--whitespace=nowarn", "-"])
            .stdin(patch.to_vec())
            .timeout(TIMEOUT)
            .output()?;
        if !out.status.success() {
            return Err(refusal(&out.stderr_text(), message(&out)));
        }
        let written = scratch.git(self).args(["write-tree"]).run()?;
        let text = String::from_utf8_lossy(&written);
        let tree: ObjectId = text.trim().parse().map_err(|_| Error::Program {
            command: "write-tree".into(),
            message: show(text.as_bytes()),
        })?;
        self.check_change(base_tree, tree)?;
        Ok(Applied {
            tree,
            empty: tree == base_tree,
        })
    }

    /// Checks that what `result_tree` changes may be changed: plain paths, no collisions with what
    /// is there, no submodule added, moved or dropped.
    pub fn check_change(&self, base_tree: ObjectId, result_tree: ObjectId) -> Result<(), Error> {
        let base = self.leaves(base_tree)?;
        let result = self.leaves(result_tree)?;
        let refuse = |path: &[u8], fault| Error::Path {
            path: path.to_vec(),
            fault,
        };
        let gitlink = |leaf: Option<&Leaf>| {
            leaf.filter(|leaf| leaf.kind == EntryKind::Gitlink)
                .map(|leaf| leaf.id)
        };
        let mut seen = Collisions::default();
        for path in result.keys().filter(|path| base.contains_key(*path)) {
            // The base is as its owner made it.
            let _ = seen.add(path);
        }
        for (path, _) in super::collect::changes(&base, &result) {
            if gitlink(base.get(&path)) != gitlink(result.get(&path)) {
                return Err(refuse(&path, PathFault::Gitlink));
            }
            let Some(leaf) = result.get(&path) else {
                continue;
            };
            check_path(&path, leaf.kind).map_err(|fault| refuse(&path, fault))?;
            if !base.contains_key(&path) {
                seen.add(&path).map_err(|fault| refuse(&path, fault))?;
            }
        }
        self.check_links(&base, &result)
    }

    fn check_links(
        &self,
        base: &BTreeMap<Vec<u8>, Leaf>,
        result: &BTreeMap<Vec<u8>, Leaf>,
    ) -> Result<(), Error> {
        let links = result
            .iter()
            .filter(|(path, leaf)| leaf.kind == EntryKind::Link && base.get(*path) != Some(*leaf));
        for (path, leaf) in links {
            let target = self.read_blob(leaf.id, 1 << 20)?;
            super::objects::check_link_target(&target).map_err(|fault| Error::Path {
                path: path.clone(),
                fault,
            })?;
        }
        Ok(())
    }

    /// The difference of two trees as a patch that [`Repository::apply_patch`] takes: full object
    /// names, binary files whole, no renames, no attribute or driver asked.
    pub fn diff_text(&self, base_tree: ObjectId, result_tree: ObjectId) -> Result<Vec<u8>, Error> {
        let scratch = Scratch::new(self)?;
        let (base, result) = (base_tree.to_string(), result_tree.to_string());
        let out = scratch
            .git(self)
            .args([
                "diff-tree",
                "-r",
                "-p",
                "--binary",
                "--full-index",
                "--no-renames",
                "--no-ext-diff",
                "--no-textconv",
                "--no-color",
                "--src-prefix=a/",
                "--dst-prefix=b/",
                &base,
                &result,
            ])
            .timeout(TIMEOUT)
            .run()?;
        if out.len() >= MAX_OUTPUT {
            return Err(Error::TooLarge {
                what: "the patch".into(),
                limit: format!("{} MiB", MAX_OUTPUT >> 20),
            });
        }
        Ok(out)
    }
}

/// A repository without configuration, for one operation, with our objects.
struct Scratch {
    dir: Folder,
}

impl Scratch {
    fn new(repository: &Repository) -> Result<Self, Error> {
        let dir =
            Folder::new("git", 0o700).map_err(file("create a folder in", &std::env::temp_dir()))?;
        let root = dir.path();
        for folder in ["objects", "refs"] {
            let path = root.join(folder);
            fs::create_dir(&path).map_err(file("create", &path))?;
        }
        put(&root.join("HEAD"), b"ref: refs/heads/none\n")?;
        let config = bare_config(repository.object_format());
        put(&root.join("config"), config.as_bytes())?;
        Ok(Self { dir })
    }

    fn git(&self, repository: &Repository) -> Git {
        let root = self.dir.path();
        Git::isolated()
            .env("GIT_DIR", root)
            .env("GIT_INDEX_FILE", root.join("index"))
            .env(
                "GIT_OBJECT_DIRECTORY",
                repository.inner.objects.store_ref().path(),
            )
            .setting("core.fsync=all")
            .dir(root)
    }
}

fn bare_config(format: ObjectFormat) -> &'static str {
    match format {
        ObjectFormat::Sha1 => "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
        ObjectFormat::Sha256 => {
            "[core]\n\trepositoryformatversion = 1\n\tbare = true\n\
             [extensions]\n\tobjectFormat = sha256\n"
        }
    }
}

/// Writes a file of a folder that only we use; nothing there needs to survive a crash.
pub(super) fn put(path: &Path, content: &[u8]) -> Result<(), Error> {
    File::create(path)
        .and_then(|mut out| out.write_all(content))
        .map_err(file("write", path))
}

/// Binary hunks say how large they unpack; git believes them and takes the memory.
fn check_binary_sizes(patch: &[u8]) -> Result<(), Error> {
    for line in patch.split(|byte| *byte == b'\n') {
        let Some(size) = line
            .strip_prefix(b"literal ")
            .or_else(|| line.strip_prefix(b"delta "))
        else {
            continue;
        };
        let size = std::str::from_utf8(size.trim_ascii()).ok();
        let size = size.filter(|size| size.bytes().all(|byte| byte.is_ascii_digit()));
        // A line of text that only looks like one is no size.
        let Some(size) = size.filter(|size| !size.is_empty()) else {
            continue;
        };
        if size.parse::<u64>().map_or(true, |size| size > MAX_BINARY) {
            return Err(Error::TooLarge {
                what: "a binary file in the patch".into(),
                limit: format!("{} MiB", MAX_BINARY >> 20),
            });
        }
    }
    Ok(())
}

/// What `git apply` said, with the file that it named first.
fn refusal(stderr: &str, detail: String) -> Error {
    let binary = stderr.lines().find_map(|line| {
        let rest = line.strip_prefix("error: cannot apply binary patch to '")?;
        rest.strip_suffix("' without full index line")
    });
    if let Some(path) = binary {
        let path = show(path.as_bytes());
        return Error::PatchWithoutContent { path };
    }
    let path = stderr.lines().find_map(|line| {
        let line = line.strip_prefix("error: ")?;
        if let Some(rest) = line.strip_prefix("patch failed: ") {
            return rest.rsplit_once(':').map(|(path, _)| path.to_owned());
        }
        if let Some(rest) = line.strip_prefix("invalid path '") {
            return rest.strip_suffix('\'').map(str::to_owned);
        }
        let (path, reason) = line.split_once(": ")?;
        let known = [
            "does not exist",
            "already exists",
            "patch does not apply",
            "wrong type",
        ];
        known
            .iter()
            .any(|known| reason.starts_with(known))
            .then(|| path.to_owned())
    });
    Error::PatchDoesNotApply {
        path: path.map(|path| show(path.as_bytes())),
        detail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_file_that_does_not_fit_is_named() {
        for (stderr, path) in [
            (
                "error: patch failed: a b.txt:1\nerror: a b.txt: patch does not apply",
                Some("a b.txt"),
            ),
            ("error: new.txt: already exists in index", Some("new.txt")),
            ("error: invalid path '.git/hooks/x'", Some(".git/hooks/x")),
            ("error: corrupt patch at line 3", None),
        ] {
            let Error::PatchDoesNotApply { path: found, .. } = refusal(stderr, String::new())
            else {
                panic!("wrong kind")
            };
            assert_eq!(found.as_deref(), path);
        }
    }

    #[test]
    fn a_binary_hunk_cannot_ask_for_much_memory() {
        assert!(check_binary_sizes(b"GIT binary patch\nliteral 99999999999\n").is_err());
        assert!(
            check_binary_sizes(b"GIT binary patch\nliteral 99999999999999999999999\n").is_err()
        );
        assert!(check_binary_sizes(b"+text\nliteral 12\nliteral x\ndelta 5\n").is_ok());
    }
}
