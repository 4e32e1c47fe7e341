//! Finding and opening a repository, and questions about it as a whole.

use super::delta_bases::DeltaBases;
use super::error::{Error, damaged, show, store};
use super::program::Git;
use crate::model::object_id::ObjectId;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

/// Longest revision that a user may type, in bytes.
const MAX_REVISION: usize = 1024;

/// The hash function that names objects in one repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectFormat {
    /// Git's default.
    Sha1,
    /// `git init --object-format=sha256`.
    Sha256,
}

impl ObjectFormat {
    /// The word that `extensions.objectFormat` and `--object-format` use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
        }
    }
}

/// An open repository. Cheap to open; one per thread.
///
/// Invariant: every object written through this value is on disk (fsync) before a ref changed
/// through it.
pub struct Repository {
    pub(super) inner: gix::Repository,
    /// Written, and perhaps not yet on disk.
    pub(super) unsynced: RefCell<BTreeSet<ObjectId>>,
    pub(super) packed_seen: Cell<Option<super::refs::PackedStamp>>,
    /// A folder of its own, where objects are read from more than one place.
    pub(super) scratch: Option<tempfile::TempDir>,
    /// Whether the object that was looked up last was in a file of its own.
    pub(super) loose: Cell<bool>,
}

impl fmt::Debug for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Repository")
            .field("git_dir", &self.git_dir())
            .finish_non_exhaustive()
    }
}

impl Repository {
    /// Opens the repository that `dir` lies in: a folder of a work tree, a linked work tree, a
    /// `.git` or a bare repository. Reads the configuration of system, user and repository.
    pub fn discover(dir: &Path) -> Result<Self, Error> {
        let start = std::fs::canonicalize(dir).map_err(|_| Error::NoFolder(dir.to_owned()))?;
        let options = || {
            gix::open::Options::default()
                .config_overrides(["core.useReplaceRefs=false"])
                .bail_if_untrusted(false)
        };
        let map = gix::sec::trust::Mapping {
            full: options(),
            reduced: options(),
        };
        let found = gix::discover::upwards(&start);
        if found.is_err() {
            return Err(Error::NotARepository(dir.to_owned()));
        }
        let mut inner = gix::ThreadSafeRepository::discover_opts(
            &start,
            gix::discover::upwards::Options::default(),
            map,
        )
        .map_err(|error| refused(&error))?
        .to_thread_local();
        let bases = || -> Box<gix::odb::cache::PackCache> { Box::<DeltaBases>::default() };
        inner.objects.set_pack_cache(bases);
        let repository = Self {
            inner,
            unsynced: RefCell::default(),
            packed_seen: Cell::default(),
            scratch: None,
            loose: Cell::default(),
        };
        repository.check_supported()?;
        Ok(repository)
    }

    /// Opens the same repository again, for another thread or after others wrote to it.
    pub fn reopen(&self) -> Result<Self, Error> {
        Self::discover(self.work_tree().unwrap_or_else(|| self.git_dir()))
    }

    fn check_supported(&self) -> Result<(), Error> {
        if self.inner.git_dir_trust() != gix::sec::Trust::Full {
            let dir = self.work_tree().unwrap_or_else(|| self.git_dir());
            return Err(Error::Untrusted(dir.to_owned()));
        }
        let storage = self.config_value("extensions.refStorage");
        if storage.is_some_and(|storage| !storage.eq_ignore_ascii_case("files")) {
            return Err(Error::Unsupported(
                "this repository keeps its refs in the reftable format, which hangar cannot read yet; `git refs migrate --ref-format=files` changes that"
                    .into(),
            ));
        }
        Ok(())
    }

    /// The folder that linked work trees share: objects, refs, configuration. Absolute.
    pub fn common_dir(&self) -> &Path {
        self.inner.common_dir()
    }

    /// The folder of this work tree's `HEAD` and index. Absolute.
    pub fn git_dir(&self) -> &Path {
        self.inner.git_dir()
    }

    /// The root of the work tree; `None` in a bare repository.
    pub fn work_tree(&self) -> Option<&Path> {
        self.inner.workdir()
    }

    /// Whether there is no work tree.
    pub fn is_bare(&self) -> bool {
        self.work_tree().is_none()
    }

    /// Whether history was cut off (`git clone --depth`), or that cannot be told.
    pub fn is_shallow(&self) -> bool {
        self.inner.is_shallow().unwrap_or(true)
    }

    /// The hash function that names objects here.
    pub fn object_format(&self) -> ObjectFormat {
        match self.inner.object_hash() {
            gix::hash::Kind::Sha256 => ObjectFormat::Sha256,
            _ => ObjectFormat::Sha1,
        }
    }

    /// Hangar's own folder for caches and locks, shared by all work trees. Not created.
    pub fn hangar_dir(&self) -> PathBuf {
        self.common_dir().join("hangar")
    }

    /// The commit that `HEAD` names; `None` before the first commit.
    pub fn head(&self) -> Result<Option<ObjectId>, Error> {
        let mut head = self.inner.head().map_err(store("read HEAD"))?;
        if head.is_unborn() {
            return Ok(None);
        }
        let commit = head.peel_to_commit().map_err(store("read HEAD"))?;
        Ok(Some(from_gix(commit.id)))
    }

    /// The branch that `HEAD` is on, without `refs/heads/`; `None` when detached. Also set before
    /// the first commit.
    pub fn head_branch(&self) -> Result<Option<String>, Error> {
        let name = self.inner.head_name().map_err(store("read HEAD"))?;
        Ok(name.and_then(|name| {
            let full = name.as_bstr().to_string();
            full.strip_prefix("refs/heads/").map(str::to_owned)
        }))
    }

    /// The commit that a user means by `revision` (a branch, tag, id, `HEAD~2`). Tags are peeled.
    /// The text is parsed here and never given to a program.
    pub fn resolve(&self, revision: &str) -> Result<ObjectId, Error> {
        let invalid = |why| Error::Invalid {
            what: "revision",
            name: show(revision.as_bytes()),
            why,
        };
        if revision.is_empty() || revision.len() > MAX_REVISION {
            return Err(invalid("is empty or too long"));
        }
        if revision.bytes().any(|byte| byte.is_ascii_control()) {
            return Err(invalid("holds control characters"));
        }
        let is_head = revision == "HEAD" || revision == "@";
        if is_head && self.head()?.is_none() {
            return Err(Error::NoCommits);
        }
        let missing = || Error::NotFound(format!("the revision `{}`", show(revision.as_bytes())));
        let id = self
            .inner
            .rev_parse_single(revision)
            .map_err(|_| missing())?;
        // Whoever types a whole id names the object itself.
        let full = from_gix(id.detach());
        if full.to_string() == revision.to_ascii_lowercase() && !self.has_object(full) {
            return Err(missing());
        }
        let object = id.object().map_err(|error| {
            if self.has_object(full) {
                damaged(full, "it can't be read")(error)
            } else {
                self.gone(full, Some(gix::objs::Kind::Commit))
            }
        })?;
        let commit = object
            .peel_to_commit()
            .map_err(|_| invalid("does not name a commit"))?;
        Ok(from_gix(commit.id))
    }

    /// A value of Git's configuration (system, user, repository), such as `user.signingKey`.
    /// `None` when unset or not text.
    pub fn config_value(&self, key: &str) -> Option<String> {
        let snapshot = self.inner.config_snapshot();
        let value = snapshot.string(key)?;
        String::from_utf8(value.to_vec()).ok()
    }

    /// How many paths of the work tree the last commit does not hold as they are: changed, staged or new
    /// files. Uses the user's own configuration, since their filters decide what "changed" means.
    pub fn uncommitted(&self) -> Result<usize, Error> {
        let dir = self.work_tree().ok_or(Error::NoWorkTree)?;
        let out = Git::with_user_config()
            .dir(dir)
            .args(["status", "--porcelain", "--ignore-submodules=none"])
            .run()?;
        Ok(out
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .count())
    }
}

/// What opening said, for people.
fn refused(error: &gix::Error) -> Error {
    let message = error.to_string();
    if message.contains("objectFormat") || message.contains("object format") {
        return Error::Unsupported(
            "this repository names its objects by a hash function that hangar does not know".into(),
        );
    }
    Error::Store {
        action: "open the repository",
        message,
    }
}

/// Our id of theirs.
pub(super) fn from_gix(id: impl AsRef<gix::oid>) -> ObjectId {
    ObjectId::from_bytes(id.as_ref().as_bytes()).expect("gix ids have 20 or 32 bytes")
}

/// Their id of ours.
pub(super) fn to_gix(id: ObjectId) -> gix::ObjectId {
    gix::ObjectId::try_from(id.as_bytes()).expect("an ObjectId has 20 or 32 bytes")
}
