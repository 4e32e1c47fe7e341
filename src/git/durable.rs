//! Getting objects to the disk before a ref names them. gix does neither that nor what Git does to
//! keep an object that is written twice from being pruned.

use super::error::{Error, file};
use super::repository::{Repository, from_gix};
use crate::model::object_id::ObjectId;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;

/// From so many objects on, one sync of the file system is cheaper than one per file.
pub(super) const SYNC_EACH: usize = 32;

/// Both times of a file, as "now".
pub(super) const NOW: rustix::fs::Timestamps = rustix::fs::Timestamps {
    last_access: NOW_SPEC,
    last_modification: NOW_SPEC,
};
const NOW_SPEC: rustix::fs::Timespec = rustix::fs::Timespec {
    tv_sec: 0,
    tv_nsec: rustix::fs::UTIME_NOW,
};

impl Repository {
    /// Puts these objects and everything written through this value on disk. Called by every ref
    /// update; objects in packs were synced by whoever wrote the pack.
    pub fn sync_objects(&self, ids: &[ObjectId]) -> Result<(), Error> {
        let mut pending = std::mem::take(&mut *self.unsynced.borrow_mut());
        pending.extend(ids);
        let result = self.sync(&pending);
        if result.is_err() {
            self.unsynced.borrow_mut().extend(pending);
        }
        result
    }

    fn sync(&self, ids: &BTreeSet<ObjectId>) -> Result<(), Error> {
        let objects = self.inner.objects.store_ref().path();
        // The others are packed, or in an alternate.
        let paths = ids.iter().map(|id| self.loose_path(*id));
        let there = |path: &PathBuf| !matches!(path.try_exists(), Ok(false));
        let paths: Vec<_> = paths.filter(there).collect();
        if paths.len() > SYNC_EACH {
            let dir = File::open(objects).map_err(file("open", objects))?;
            return rustix::fs::syncfs(&dir).map_err(file("sync", objects));
        }
        let mut folders = BTreeSet::new();
        for path in paths {
            match File::open(&path) {
                Ok(object) => object.sync_all().map_err(file("sync", &path))?,
                // It was packed just now.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(file("sync", &path)(error)),
            }
            folders.extend(path.parent().map(PathBuf::from));
        }
        if !folders.is_empty() {
            folders.insert(objects.to_owned());
        }
        for folder in folders {
            crate::base::files::sync_dir(&folder)?;
        }
        Ok(())
    }

    /// Puts on disk whatever was written to the file system of the repository.
    pub(super) fn sync_everything(&self) -> Result<(), Error> {
        let path = self.common_dir();
        let dir = File::open(path).map_err(file("open", path))?;
        rustix::fs::syncfs(&dir).map_err(file("sync", path))
    }

    /// Takes away refs below a folder (`refs/x/`) whose files a power cut left empty. Only for refs that
    /// somebody else has as well. Whether there were any.
    pub fn drop_torn_refs(&self, prefix: &str) -> Result<bool, Error> {
        let mut open = vec![self.common_dir().join(prefix)];
        let mut any = false;
        while let Some(folder) = open.pop() {
            let entries = std::fs::read_dir(&folder).map_err(file("read", &folder))?;
            for entry in entries.flatten() {
                let path = entry.path();
                let Ok(meta) = std::fs::symlink_metadata(&path) else {
                    continue;
                };
                let lock = path.extension().is_some_and(|end| end == "lock");
                if meta.is_dir() {
                    open.push(path);
                } else if meta.is_file() && meta.len() == 0 && !lock {
                    std::fs::remove_file(&path).map_err(file("remove", &path))?;
                    any = true;
                }
            }
        }
        Ok(any)
    }

    fn loose_path(&self, id: ObjectId) -> PathBuf {
        let hex = id.to_string();
        let (folder, rest) = hex.split_at(2);
        self.inner
            .objects
            .store_ref()
            .path()
            .join(folder)
            .join(rest)
    }

    /// Notes an object that was just written.
    pub(super) fn written(&self, id: gix::ObjectId) -> ObjectId {
        let id = from_gix(id);
        // An object that was there already may be old enough for `git gc` to prune; Git itself
        // makes it young again when it is written twice.
        if let Ok(object) = File::open(self.loose_path(id)) {
            let _ = rustix::fs::futimens(&object, &NOW);
        }
        self.unsynced.borrow_mut().insert(id);
        id
    }
}
