//! Pinned repositories: an agent's own clone that holds only what is reachable from one commit.
//!
//! No remote, no other ref, no alternates, no link into our files, an empty reflog. Made from a pack
//! that is cached under the common folder, so that a second one costs a copy.

use super::durable::NOW;
use super::error::{Error, file};
use super::patch::put;
use super::program::Git;
use super::repository::{ObjectFormat, Repository};
use crate::base::files;
use crate::model::object_id::ObjectId;
use std::fs::{self, File};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Packs kept in the cache; the ones used longest ago go first.
const KEEP: usize = 8;
/// How long git may take to make a pack.
const TIMEOUT: Duration = Duration::from_secs(1800);
/// The branch that the agent starts on.
const BRANCH: &str = "work";

/// A pack with everything reachable from one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedPack {
    /// The pack file.
    pub pack: PathBuf,
    /// Its index.
    pub index: PathBuf,
    /// The checksum that Git names such a pack by.
    pub checksum: String,
    /// Commits whose parents are not in it.
    pub shallow: Vec<ObjectId>,
}

impl Repository {
    /// The pack for `base` with at most `depth` commits of history in a line, from the cache
    /// (`<common folder>/hangar/pins`) or made now.
    pub fn pinned_pack(
        &self,
        base: ObjectId,
        depth: Option<NonZeroU32>,
    ) -> Result<PinnedPack, Error> {
        let dir = self.hangar_dir().join("pins");
        files::create_private_dir(&dir)?;
        let depth_text = depth.map(|depth| format!("-d{depth}")).unwrap_or_default();
        let name = format!("{base}{depth_text}");
        if let Some(found) = cached(&dir, &name) {
            return Ok(found);
        }
        let _lock = files::lock(&dir.join("lock"))?;
        if let Some(found) = cached(&dir, &name) {
            return Ok(found);
        }
        self.make_pack(base, depth, &dir, &name)?;
        drop_old(&dir, &name);
        cached(&dir, &name).ok_or_else(|| Error::Store {
            action: "pack a history",
            message: format!("the pack of {base} is not there"),
        })
    }

    fn make_pack(
        &self,
        base: ObjectId,
        depth: Option<NonZeroU32>,
        dir: &Path,
        name: &str,
    ) -> Result<(), Error> {
        use std::fmt::Write as _;
        sweep(dir);
        let ends = self.shallow_ends(base, depth)?;
        let mut wanted = String::new();
        let mut ends_text = String::new();
        for end in &ends {
            // Writing to a String cannot fail.
            let _ = writeln!(wanted, "--shallow {end}");
            let _ = writeln!(ends_text, "{end}");
        }
        let _ = writeln!(wanted, "{base}");
        let temp = tempfile::Builder::new()
            .prefix(".pack-")
            .tempdir_in(dir)
            .map_err(file("create a folder in", dir))?;
        let out = Git::isolated()
            .env("GIT_DIR", self.common_dir())
            .dir(self.common_dir())
            .setting("pack.packSizeLimit=0")
            .setting("pack.writeReverseIndex=false")
            .args(["pack-objects", "--revs", "--quiet", "--delta-base-offset"])
            .args([temp.path().join("pack")])
            .stdin(wanted.into_bytes())
            .timeout(TIMEOUT)
            .run()?;
        let hash = String::from_utf8_lossy(&out).trim().to_owned();
        for end in ["pack", "idx"] {
            let from = temp.path().join(format!("pack-{hash}.{end}"));
            let to = dir.join(format!("{name}.{end}"));
            fs::rename(&from, &to).map_err(file("write", &to))?;
        }
        // Last: its presence says that the other two are whole.
        let marker = format!("{hash}\n{ends_text}");
        Ok(files::write_atomic(
            &dir.join(format!("{name}.pin")),
            marker.as_bytes(),
            0o600,
        )?)
    }

    /// Makes a repository at `dest` (absent or an empty folder) with the files of `base` checked
    /// out as they are stored, on the branch `work`. All is given to `owner` where one is named.
    pub fn make_pinned(
        &self,
        base: ObjectId,
        dest: &Path,
        depth: Option<NonZeroU32>,
        owner: Option<(u32, u32)>,
    ) -> Result<(), Error> {
        let tree = self.read_commit(base)?.tree;
        if !dest.exists() {
            fs::create_dir(dest).map_err(file("create", dest))?;
        }
        self.materialise(tree, dest, owner)?;
        let git_dir = dest.join(".git");
        for folder in [
            "",
            "objects/info",
            "objects/pack",
            "refs/heads",
            "refs/tags",
            "info",
        ] {
            let path = git_dir.join(folder);
            fs::create_dir_all(&path).map_err(file("create", &path))?;
        }
        let pack = self.copy_pack(base, depth, &git_dir)?;
        if !pack.shallow.is_empty() {
            let ends: Vec<_> = pack.shallow.iter().map(ToString::to_string).collect();
            put(
                &git_dir.join("shallow"),
                (ends.join("\n") + "\n").as_bytes(),
            )?;
        }
        put(
            &git_dir.join("config"),
            config(self.object_format()).as_bytes(),
        )?;
        put(
            &git_dir.join("HEAD"),
            format!("ref: refs/heads/{BRANCH}\n").as_bytes(),
        )?;
        let head = git_dir.join("refs/heads").join(BRANCH);
        put(&head, format!("{base}\n").as_bytes())?;
        // Files are as stored; Git must not see them through the attributes of the tree.
        let raw = b"* -text -ident -filter -working-tree-encoding\n";
        put(&git_dir.join("info/attributes"), raw)?;
        self.write_index(&self.leaves(tree)?, dest, &git_dir.join("index"))?;
        match owner {
            Some((user, group)) => give(&git_dir, user, group),
            None => Ok(()),
        }
    }

    fn copy_pack(
        &self,
        base: ObjectId,
        depth: Option<NonZeroU32>,
        git_dir: &Path,
    ) -> Result<PinnedPack, Error> {
        let folder = git_dir.join("objects/pack");
        let mut tries = 0;
        loop {
            let pack = self.pinned_pack(base, depth)?;
            let copied = [(&pack.pack, "pack"), (&pack.index, "idx")]
                .into_iter()
                .try_for_each(|(from, end)| {
                    let to = folder.join(format!("pack-{}.{end}", pack.checksum));
                    fs::copy(from, &to).map(drop)
                });
            match copied {
                Ok(()) => return Ok(pack),
                // Another process made room in the cache.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound && tries < 3 => {
                    tries += 1;
                }
                Err(error) => return Err(file("copy", &pack.pack)(error)),
            }
        }
    }
}

fn cached(dir: &Path, name: &str) -> Option<PinnedPack> {
    let marker = dir.join(format!("{name}.pin"));
    let (pack, index) = (
        dir.join(format!("{name}.pack")),
        dir.join(format!("{name}.idx")),
    );
    let text = fs::read_to_string(&marker).ok()?;
    if !pack.is_file() || !index.is_file() {
        return None;
    }
    let mut lines = text.lines();
    let checksum = lines.next().unwrap_or_default().to_owned();
    if checksum.len() < 40 || !checksum.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut shallow = Vec::new();
    for line in lines {
        shallow.push(line.parse().ok()?);
    }
    // Says "used just now"; when it fails the pack is only dropped earlier.
    if let Ok(marker) = File::open(&marker) {
        let _ = rustix::fs::futimens(&marker, &NOW);
    }
    Some(PinnedPack {
        pack,
        index,
        checksum,
        shallow,
    })
}

/// Removes what a killed process left. Whoever calls holds the lock, so nobody is using it.
fn sweep(dir: &Path) {
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(b".pack-") {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Keeps the cache small. What can't be removed stays; the next call tries again.
fn drop_old(dir: &Path, keep: &str) {
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    let mut pins: Vec<_> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let name = name.strip_suffix(".pin")?.to_owned();
            let used = entry.metadata().ok()?.modified().ok()?;
            Some((used, name))
        })
        .filter(|(_, name)| name != keep)
        .collect();
    pins.sort();
    let surplus = (pins.len() + 1).saturating_sub(KEEP);
    for (_, name) in pins.into_iter().take(surplus) {
        for end in ["pin", "pack", "idx"] {
            let _ = fs::remove_file(dir.join(format!("{name}.{end}")));
        }
    }
}

fn config(format: ObjectFormat) -> String {
    let (version, extension) = match format {
        ObjectFormat::Sha1 => (0, ""),
        ObjectFormat::Sha256 => (1, "[extensions]\n\tobjectFormat = sha256\n"),
    };
    format!(
        "[core]\n\trepositoryformatversion = {version}\n\tfilemode = true\n\tbare = false\n\
         \tlogallrefupdates = true\n\tautocrlf = false\n\tsymlinks = true\n{extension}\
         [user]\n\tname = user\n\temail = user@localhost\n[commit]\n\tgpgSign = false\n\
         [gc]\n\tauto = 0\n"
    )
}

fn give(path: &Path, user: u32, group: u32) -> Result<(), Error> {
    std::os::unix::fs::lchown(path, Some(user), Some(group))
        .map_err(file("change the owner of", path))?;
    if path.is_dir() {
        for entry in fs::read_dir(path).map_err(file("read", path))? {
            let entry = entry.map_err(file("read", path))?;
            give(&entry.path(), user, group)?;
        }
    }
    Ok(())
}
