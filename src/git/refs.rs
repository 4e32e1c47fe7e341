//! Refs: reading, listing, and compare-and-swap of one ref.
//!
//! gix reads `packed-refs` before it takes the lock of a ref, so that a `git pack-refs` in between
//! could show an older value. Each update therefore reads the ref once more while it holds the lock.

use super::error::{Error, show, store};
use super::patience::Patience;
use super::repository::{Repository, from_gix, to_gix};
use crate::base::clock::Clock;
use crate::model::object_id::ObjectId;
use gix::lock::acquire::Fail;
use gix::refs::transaction::{Change, LogChange, PreviousValue, RefEdit, RefLog};
use gix::refs::{FullName, Target};
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

/// Longest ref name, in bytes.
const MAX_NAME: usize = 1024;

/// Where a ref must be for an update to take effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// It must not exist.
    Absent,
    /// It must name this object.
    At(ObjectId),
}

impl From<Option<ObjectId>> for Expected {
    /// What [`Repository::read_ref`] returned.
    fn from(id: Option<ObjectId>) -> Self {
        id.map_or(Self::Absent, Self::At)
    }
}

/// Which `packed-refs` file was read last, to notice another.
pub(super) type PackedStamp = (u64, u64, i64, i64, u64);

/// Why one attempt did not succeed.
pub(super) enum Failure {
    Locked,
    Final(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

/// Checks that `name` is a full ref name (`refs/…`) as `git check-ref-format` has it.
pub fn check_ref_name(name: &str) -> Result<(), Error> {
    full_name(name).map(drop)
}

pub(super) fn full_name(name: &str) -> Result<FullName, Error> {
    let invalid = |why| Error::Invalid {
        what: "ref",
        name: show(name.as_bytes()),
        why,
    };
    if !name.starts_with("refs/") {
        return Err(invalid("does not begin with `refs/`"));
    }
    if name.len() > MAX_NAME || name.split('/').any(|part| part.len() > 240) {
        return Err(invalid("is too long"));
    }
    FullName::try_from(name).map_err(|_| invalid("is not a well-formed ref name"))
}

impl Repository {
    /// The object that the ref names; `None` when it does not exist. A symbolic ref is an error,
    /// since a compare-and-swap of it would be one of another ref.
    pub fn read_ref(&self, name: &str) -> Result<Option<ObjectId>, Error> {
        let full = full_name(name)?;
        if let Some(id) = self.read_loose(&full)? {
            return Ok(Some(id));
        }
        // Only now: a ref that was packed in between is in the new file.
        self.refresh_packed(false)?;
        let packed = self
            .inner
            .refs
            .cached_packed_buffer()
            .map_err(store("read packed-refs"))?;
        let Some(packed) = packed else {
            return Ok(None);
        };
        let found = packed
            .try_find(full.as_ref())
            .map_err(store("read packed-refs"))?;
        Ok(found.map(|found| from_gix(found.target())))
    }

    /// All refs whose name starts with `prefix`, a folder (`refs/x/`) or the beginning of names in one
    /// (`refs/x/y-`), sorted by name. Symbolic refs are left out; one that cannot be read is an error.
    pub fn list_refs(&self, prefix: &str) -> Result<Vec<(String, ObjectId)>, Error> {
        full_name(&format!("{prefix}x"))?;
        // A listing during which refs were packed may have missed some: take it again.
        for _ in 0..100 {
            self.refresh_packed(false)?;
            let before = self.packed_stamp();
            match self.list_once(prefix)? {
                Some(refs) if self.packed_stamp() == before => return Ok(refs),
                _ => {}
            }
        }
        Err(Error::Busy {
            name: "packed-refs".into(),
            lock: self.inner.refs.packed_refs_path(),
        })
    }

    /// Moves, creates or (`new` = `None`) deletes one ref, if it is where the caller expects it.
    /// `message` goes to the reflog where the ref has one. Waits a few seconds for a lock.
    ///
    /// The object and everything written through this value are on disk before the ref names it;
    /// the ref itself is on disk when this returns.
    pub fn update_ref(
        &self,
        name: &str,
        expected: Expected,
        new: Option<ObjectId>,
        message: &str,
    ) -> Result<(), Error> {
        let full = full_name(name)?;
        if let Some(new) = new {
            if !self.has_object(new) {
                return Err(self.gone(new, None));
            }
            // A race that is lost already needs no sync.
            self.refresh_packed(false)?;
            self.check_expected(&full, expected)?;
            if expected == Expected::Absent {
                self.check_free(name)?;
            }
            self.sync_objects(&[new])?;
        }
        let mut patience = Patience::default();
        loop {
            match self.try_update(&full, expected, new, message) {
                Ok(()) => return Ok(()),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Locked) if patience.wait(self) => {}
                Err(Failure::Locked) => return Err(self.busy(&[&full])),
            }
        }
    }

    fn try_update(
        &self,
        name: &FullName,
        expected: Expected,
        new: Option<ObjectId>,
        message: &str,
    ) -> Result<(), Failure> {
        self.refresh_packed(false)?;
        self.check_expected(name, expected)?;
        let Some(edit) = edit(name, expected, new, message) else {
            return Ok(());
        };
        let Some(guard) = self.try_guard()? else {
            return Err(Failure::Locked);
        };
        guard.note(&self.future_locks([(name, new)].into_iter()))?;
        let prepared =
            self.inner
                .refs
                .transaction()
                .prepare([edit], Fail::Immediately, Fail::Immediately);
        let transaction = match prepared {
            Ok(transaction) => transaction,
            Err(error) => {
                guard.clear()?;
                self.refresh_packed(true)?;
                self.check_expected(name, expected)?;
                return Err(self.classify(name, &error));
            }
        };
        // The lock is ours: what is read now stays.
        self.refresh_packed(true)?;
        let ready = self
            .check_expected(name, expected)
            .and_then(|()| match new {
                Some(_) => self.sync_lock(name),
                None => Ok(()),
            });
        if let Err(error) = ready {
            transaction.rollback();
            guard.clear()?;
            return Err(error.into());
        }
        commit(transaction)?;
        guard.done()?;
        Ok(self.sync_ref_folder(name)?)
    }

    /// No ref stands where a folder of this name would be, and none below it.
    pub fn check_free(&self, name: &str) -> Result<(), Error> {
        let taken = |other: String| Error::NameTaken {
            name: name.to_owned(),
            other,
        };
        for (end, _) in name.match_indices('/').skip(1) {
            let above = &name[..end];
            if self.read_ref(above)?.is_some() {
                return Err(taken(above.to_owned()));
            }
        }
        match self.list_refs(&format!("{name}/"))?.into_iter().next() {
            Some((below, _)) => Err(taken(below)),
            None => Ok(()),
        }
    }

    pub(super) fn check_expected(&self, name: &FullName, expected: Expected) -> Result<(), Error> {
        let text = name.as_bstr().to_string();
        let actual = self.read_ref(&text)?;
        if Expected::from(actual) == expected {
            Ok(())
        } else {
            Err(Error::Conflict { name: text, actual })
        }
    }

    /// A held lock is worth another try; anything else is not.
    pub(super) fn classify(&self, name: &FullName, error: &gix::Error) -> Failure {
        let locks = [self.lock_path(name), self.packed_lock()];
        let exists = error.iter_errors().any(|error| {
            let io = error.downcast_ref::<std::io::Error>();
            // A folder that another process removed as empty while we made the lock in it.
            io.is_some_and(|io| {
                matches!(
                    io.kind(),
                    std::io::ErrorKind::AlreadyExists | std::io::ErrorKind::NotFound
                )
            })
        });
        if exists || error.can_retry_lenient() || locks.iter().any(|lock| lock.exists()) {
            return Failure::Locked;
        }
        Failure::Final(store("update a ref")(error))
    }

    /// The first of these whose lock somebody holds.
    pub(super) fn held<'a>(&self, names: &[&'a FullName]) -> Option<&'a FullName> {
        let mut names = names.iter();
        names.find(|name| self.lock_path(name).exists()).copied()
    }

    /// What keeps these refs from moving, for whoever looks after it.
    pub(super) fn busy(&self, names: &[&FullName]) -> Error {
        let held = self.held(names);
        let packed = self.packed_lock();
        let lock = match held {
            Some(name) => self.lock_path(name),
            None if packed.exists() => packed,
            None => self.guard_path(),
        };
        let name = held.or(names.first().copied());
        Error::Busy {
            name: name.map_or_else(String::new, |name| name.as_bstr().to_string()),
            lock,
        }
    }

    fn read_loose(&self, name: &FullName) -> Result<Option<ObjectId>, Error> {
        let found = self
            .inner
            .refs
            .try_find_loose(name.as_ref())
            .map_err(store("read a ref"))?;
        // A lookup also tries `refs/tags/refs/…` and the like; those are other refs.
        let Some(found) = found.filter(|found| found.name == *name) else {
            return Ok(None);
        };
        match found.target {
            Target::Object(id) => Ok(Some(from_gix(id))),
            Target::Symbolic(_) => Err(Error::Unsupported(format!(
                "{} is a symbolic ref, which hangar does not follow",
                name.as_bstr()
            ))),
        }
    }

    /// `None` when a ref vanished meanwhile.
    fn list_once(&self, prefix: &str) -> Result<Option<Vec<(String, ObjectId)>>, Error> {
        let platform = self.inner.references().map_err(store("list refs"))?;
        let mut out = Vec::new();
        for found in platform
            .prefixed(prefix.as_bytes())
            .map_err(store("list refs"))?
        {
            let found = match found {
                Ok(found) => found,
                // A loose ref was there and is gone: deleted, or packed just now.
                Err(error) if error.is_not_found() => return Ok(None),
                Err(error) => return Err(store("list refs")(error)),
            };
            let Some(id) = found.try_id() else { continue };
            let Ok(name) = String::from_utf8(found.name().as_bstr().to_vec()) else {
                continue;
            };
            out.push((name, from_gix(id)));
        }
        out.sort();
        Ok(Some(out))
    }

    fn packed_stamp(&self) -> Option<PackedStamp> {
        let meta = self.inner.refs.packed_refs_path().metadata().ok()?;
        let (mtime, ctime) = (meta.mtime_nsec(), meta.ctime_nsec());
        Some((
            meta.ino(),
            meta.size(),
            mtime,
            ctime,
            meta.mtime().unsigned_abs(),
        ))
    }

    /// Reads `packed-refs` again if it is another file than the last time. gix looks at its time
    /// alone, which two writes within one tick of the clock share.
    pub(super) fn refresh_packed(&self, always: bool) -> Result<(), Error> {
        let stamp = self.packed_stamp();
        if !always && self.packed_seen.get() == stamp {
            return Ok(());
        }
        // Without the file there is nothing to read, which gix sees by itself.
        if stamp.is_some() {
            self.inner
                .refs
                .force_refresh_packed_buffer()
                .map_err(store("read packed-refs"))?;
        }
        self.packed_seen.set(stamp);
        Ok(())
    }

    pub(super) fn packed_lock(&self) -> PathBuf {
        self.inner.refs.packed_refs_path().with_extension("lock")
    }

    pub(super) fn lock_path(&self, name: &FullName) -> PathBuf {
        let mut path = self
            .common_dir()
            .join(name.as_bstr().to_string())
            .into_os_string();
        path.push(".lock");
        path.into()
    }

    /// The lock files that a transaction will make, each with its content where that is known. gix
    /// locks `packed-refs`, too, wherever there is one.
    pub(super) fn future_locks<'a>(
        &self,
        refs: impl Iterator<Item = (&'a FullName, Option<ObjectId>)>,
    ) -> Vec<(PathBuf, String)> {
        let content = |new: ObjectId| new.to_string();
        let loose = refs.map(|(name, new)| {
            let content = new.map(content).unwrap_or_default();
            (self.lock_path(name), content)
        });
        let packed = (self.packed_lock(), String::new());
        loose.chain([packed]).collect()
    }

    /// The lock file becomes the ref by a rename; its content must be on disk before.
    pub(super) fn sync_lock(&self, name: &FullName) -> Result<(), Error> {
        let path = self.lock_path(name);
        match File::open(&path).and_then(|lock| lock.sync_all()) {
            Ok(()) => Ok(()),
            // Nothing to write: the ref names the new object already.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(super::error::file("sync", &path)(error)),
        }
    }

    pub(super) fn sync_ref_folder(&self, name: &FullName) -> Result<(), Error> {
        let path = self.common_dir().join(name.as_bstr().to_string());
        // The folder is gone when the last ref in it was deleted; then its parent tells.
        for folder in path.ancestors().skip(1) {
            match crate::base::files::sync_dir(folder) {
                Err(error) if error.source.kind() == std::io::ErrorKind::NotFound => {}
                result => return Ok(result?),
            }
        }
        Ok(())
    }
}

/// Makes what was prepared visible. The name in a reflog is hangar's.
pub(super) fn commit(transaction: gix::refs::file::Transaction<'_, '_>) -> Result<(), Error> {
    let who = gix::actor::Signature {
        name: "hangar".into(),
        email: "hangar@localhost".into(),
        time: gix::date::Time::new(Clock::from_env().now().as_second().max(0), 0),
    };
    let mut buffer = gix::date::parse::TimeBuf::default();
    let done = transaction.commit(who.to_ref(&mut buffer));
    done.map(drop).map_err(store("update a ref"))
}

/// The edit that gix understands; `None` when there is nothing to do.
pub(super) fn edit(
    name: &FullName,
    expected: Expected,
    new: Option<ObjectId>,
    message: &str,
) -> Option<RefEdit> {
    let expected = match expected {
        Expected::Absent => PreviousValue::MustNotExist,
        Expected::At(id) => PreviousValue::MustExistAndMatch(Target::Object(to_gix(id))),
    };
    let change = match new {
        Some(new) => Change::Update {
            log: LogChange {
                mode: RefLog::AndReference,
                force_create_reflog: false,
                message: message.replace(['\n', '\r'], " ").into(),
            },
            expected,
            new: Target::Object(to_gix(new)),
        },
        None if expected == PreviousValue::MustNotExist => return None,
        None => Change::Delete {
            expected,
            log: RefLog::AndReference,
        },
    };
    Some(RefEdit {
        change,
        name: name.clone(),
        deref: false,
    })
}
