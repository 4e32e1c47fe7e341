//! Getting objects to the disk before a ref names them. gix does neither that nor what Git does to
//! keep an object that is written twice from being pruned.

use super::error::{Error, file};
use super::repository::{Repository, from_gix};
use crate::model::object_id::ObjectId;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

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

/// How long nobody has written to a file that was left.
const LEFT: Duration = Duration::from_secs(24 * 60 * 60);

/// Removes what gix had begun to write where its process was killed. `git gc` knows files of Git's own names
/// only. `now` is when something was written just before, by the clock that stamps those files.
fn sweep(objects: &Path, now: SystemTime) {
    let Ok(entries) = std::fs::read_dir(objects) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let rest = name.as_encoded_bytes().strip_prefix(b".tmp");
        let is_name =
            rest.is_some_and(|rest| rest.len() == 6 && rest.iter().all(u8::is_ascii_alphanumeric));
        if !is_name {
            continue;
        }
        let Ok(meta) = entry.metadata() else { continue };
        let age = meta
            .modified()
            .ok()
            .and_then(|then| now.duration_since(then).ok());
        if meta.is_file() && age.is_some_and(|age| age > LEFT) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

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
        let written = paths.first().and_then(|path| path.metadata().ok());
        if let Some(now) = written.and_then(|meta| meta.modified().ok()) {
            sweep(objects, now);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};

    #[test]
    fn what_a_killed_process_had_begun_to_write_goes_after_a_day() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str, old: bool| {
            let path = folder.path().join(name);
            let file = File::create(&path).unwrap();
            let now = file.metadata().unwrap().modified().unwrap();
            if old {
                file.set_modified(now - LEFT - Duration::from_secs(60))
                    .unwrap();
            }
            (path, now)
        };
        let (old, now) = make(".tmpAb3xYz", true);
        let others = [
            make(".tmpAb3xYw", false),
            make(".tmpkeep", true),
            make(".tmp-b3xYz", true),
            make("tmp_obj_Ab3xYz", true),
        ];
        let dir = folder.path().join(".tmpAb3xYv");
        fs::create_dir(&dir).unwrap();
        sweep(folder.path(), now);
        assert!(!old.exists() && dir.exists());
        assert!(others.iter().all(|(path, _)| path.exists()));
    }
}
