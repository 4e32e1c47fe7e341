//! Git's index file for a work tree that hangar just wrote, so that `git status` starts out clean.

use super::error::{Error, file, store};
use super::objects::EntryKind;
use super::repository::{Repository, to_gix};
use super::trees::Leaf;
use gix::index::entry::{Flags, Mode, Stat};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

impl Repository {
    /// Writes the index of `work_tree` to `path`. The files must be as `materialise` left them.
    pub(super) fn write_index(
        &self,
        leaves: &BTreeMap<Vec<u8>, Leaf>,
        work_tree: &Path,
        path: &Path,
    ) -> Result<(), Error> {
        let mut state = gix::index::State::new(self.inner.object_hash());
        for (name, leaf) in leaves {
            let at = work_tree.join(OsStr::from_bytes(name));
            let stat =
                gix::index::fs::Metadata::from_path_no_follow(&at).map_err(file("read", &at))?;
            let (mode, stat) = match leaf.kind {
                EntryKind::Blob | EntryKind::Tree => (Mode::FILE, Stat::from_fs(&stat)),
                EntryKind::Executable => (Mode::FILE_EXECUTABLE, Stat::from_fs(&stat)),
                EntryKind::Link => (Mode::SYMLINK, Stat::from_fs(&stat)),
                EntryKind::Gitlink => (Mode::COMMIT, Ok(Stat::default())),
            };
            let stat = stat.map_err(store("read a file's time"))?;
            state.dangerously_push_entry(
                stat,
                to_gix(leaf.id),
                Flags::empty(),
                mode,
                name.as_slice().into(),
            );
        }
        state.sort_entries();
        gix::index::File::from_state(state, path.to_owned())
            .write(gix::index::write::Options::default())
            .map_err(store("write an index"))
    }
}
