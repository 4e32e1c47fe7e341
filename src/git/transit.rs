//! Objects on their way: what a push brings to this repository before any ref names it, and what a
//! push would take out of it.

use super::error::{Error, damaged, store};
use super::objects::MAX_OBJECT;
use super::program::Git;
use super::repository::{Repository, from_gix, to_gix};
use crate::model::object_id::ObjectId;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

/// Most bytes of a list of objects: what one call of a program gives.
const MAX_LIST: usize = 256 << 20;
/// How long listing objects may take.
const PATIENCE: Duration = Duration::from_secs(3600);

/// What kind of object it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectKind {
    /// A file's content.
    Blob,
    /// Names of files.
    Tree,
    /// A commit with its message.
    Commit,
    /// An annotated tag with its message.
    Tag,
}

/// An object that the other side lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The object.
    pub id: ObjectId,
    /// A path that leads to it; empty for commits, tags and root trees.
    pub path: Vec<u8>,
}

impl Repository {
    /// The same repository, which also reads objects from these folders (Git's quarantine of a push,
    /// and what it names as alternates) and keeps what it writes in memory: nothing that a check
    /// makes stays behind.
    pub fn reading_also(mut self, folders: &[PathBuf]) -> Result<Self, Error> {
        let unreadable = |error: std::io::Error| store("read the objects of the push")(error);
        let hash = self.inner.object_hash();
        let own = self.common_dir().join("objects");
        let mut list = Vec::new();
        for folder in folders.iter().chain([&own]) {
            let folder = std::fs::canonicalize(folder).map_err(unreadable)?;
            let bytes = std::os::unix::ffi::OsStrExt::as_bytes(folder.as_os_str());
            if bytes.contains(&b'\n') {
                return Err(Error::Unsupported(
                    "a folder of objects has a line break in its name".into(),
                ));
            }
            list.extend(bytes);
            list.push(b'\n');
        }
        let scratch = tempfile::tempdir().map_err(unreadable)?;
        let info = scratch.path().join("info");
        std::fs::create_dir(&info).map_err(unreadable)?;
        crate::base::files::append(&info.join("alternates"), &list, 0o600)?;
        let objects = gix::odb::at(scratch.path(), hash).map_err(unreadable)?;
        self.inner.objects = objects.into();
        self.scratch = Some(scratch);
        Ok(self)
    }

    /// What a push of these objects would take along that nothing in `known` reaches.
    pub fn outgoing(&self, new: &[ObjectId], known: &[ObjectId]) -> Result<Vec<Outgoing>, Error> {
        if new.is_empty() {
            return Ok(Vec::new());
        }
        let mut revisions = String::new();
        for id in new {
            let _ = writeln!(revisions, "{id}");
        }
        for id in known.iter().filter(|id| self.has_object(**id)) {
            let _ = writeln!(revisions, "^{id}");
        }
        let mut args = vec!["rev-list", "--objects", "--stdin"];
        if self.is_partial() {
            // What was left out came from a remote.
            args.push("--exclude-promisor-objects");
        }
        let out = Git::isolated()
            .env("GIT_DIR", self.git_dir())
            .dir(self.git_dir())
            .timeout(PATIENCE)
            .args(args)
            .stdin(revisions.into_bytes())
            .run()?;
        if out.len() >= MAX_LIST {
            return Err(Error::TooLarge {
                what: "the list of objects of this push".into(),
                limit: format!("{MAX_LIST} bytes"),
            });
        }
        Ok(out.split(|byte| *byte == b'\n').filter_map(line).collect())
    }

    /// The bytes of an object, whatever it is.
    pub fn read_any(&self, id: ObjectId) -> Result<(ObjectKind, Vec<u8>), Error> {
        let missing = || self.gone(id, None);
        let header = self
            .inner
            .try_find_header(to_gix(id))
            .map_err(damaged(id, "it can't be read"))?
            .ok_or_else(missing)?;
        if header.size() > MAX_OBJECT {
            return Err(Error::TooLarge {
                what: format!("the object {id}"),
                limit: format!("{MAX_OBJECT} bytes"),
            });
        }
        let kind = match header.kind() {
            gix::objs::Kind::Blob => ObjectKind::Blob,
            gix::objs::Kind::Tree => ObjectKind::Tree,
            gix::objs::Kind::Commit => ObjectKind::Commit,
            gix::objs::Kind::Tag => ObjectKind::Tag,
        };
        let mut object = self
            .inner
            .find_object(to_gix(id))
            .map_err(damaged(id, "it can't be read"))?;
        debug_assert_eq!(from_gix(object.id), id);
        Ok((kind, std::mem::take(&mut object.data)))
    }
}

/// `ID PATH`, or `ID`.
fn line(line: &[u8]) -> Option<Outgoing> {
    let end = line.iter().position(|byte| *byte == b' ');
    let (id, path) = line.split_at(end.unwrap_or(line.len()));
    Some(Outgoing {
        id: std::str::from_utf8(id).ok()?.parse().ok()?,
        path: path.get(1..).unwrap_or_default().to_vec(),
    })
}
