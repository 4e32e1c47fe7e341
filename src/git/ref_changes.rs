//! Many refs in one transaction: all of them change, or none does.
//!
//! The git program does it. It makes every new ref before it takes an old one away, so that a process
//! that is killed in between leaves both, never neither. Must not know what a ref is for.

use super::error::{Error, show, store};
use super::patience::Patience;
use super::program::Git;
use super::refs::{Expected, full_name};
use super::repository::{Repository, from_gix};
use crate::base::clock::Clock;
use crate::model::object_id::ObjectId;

/// One ref of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefChange {
    /// Full name.
    pub name: String,
    /// Where it must be.
    pub expected: Expected,
    /// What it becomes; `None` deletes it.
    pub new: Option<ObjectId>,
}

impl Repository {
    /// Changes these refs together, if all of them are where the caller expects them. What they name
    /// and the refs themselves are on disk when this returns.
    pub fn change_refs(&self, changes: &[RefChange], message: &str) -> Result<(), Error> {
        if changes.is_empty() {
            return Ok(());
        }
        let mut names = Vec::with_capacity(changes.len());
        // Without its last word nothing is done: git may live on when this process is killed while it
        // writes, and must not take a part for the whole.
        let mut input = b"start\0".to_vec();
        for change in changes {
            names.push(full_name(&change.name)?);
            input.extend(line(change));
        }
        input.extend(b"commit\0");
        let new: Vec<_> = changes.iter().filter_map(|change| change.new).collect();
        self.sync_objects(&new)?;
        let mut patience = Patience::default();
        let guard = loop {
            match self.try_guard()? {
                Some(guard) => break guard,
                None if patience.wait(self) => {}
                None => return Err(self.busy(&names.iter().collect::<Vec<_>>())),
            }
        };
        // The git program writes them, in its own time: no content is ours.
        let becomes = names.iter().map(|name| (name, None));
        guard.note(&self.future_locks(becomes))?;
        let now = Clock::from_env().now().as_second().max(0);
        let out = Git::isolated()
            .env("GIT_DIR", self.git_dir())
            .env("GIT_COMMITTER_NAME", "hangar")
            .env("GIT_COMMITTER_EMAIL", "hangar@localhost")
            .env("GIT_COMMITTER_DATE", format!("{now} +0000"))
            .setting("core.fsync=committed")
            .args(["update-ref", "--no-deref", "-z", "-m"])
            // Git refuses an empty one.
            .args([format!("hangar: {}", message.replace(['\n', '\r'], " "))])
            .args(["--stdin"])
            .stdin(input)
            .output()?;
        // A git that was killed left its lock files: whoever comes next looks after them.
        if out.status.success() {
            guard.done()?;
        } else if out.status.code().is_some() {
            guard.clear()?;
        }
        self.refresh_packed(true)?;
        if out.status.success() {
            return Ok(());
        }
        Err(refused(&out.stderr_text()))
    }

    /// Puts all refs into `packed-refs`, as `git gc` does: thousands of small files are slow to read.
    pub fn pack_refs(&self) -> Result<(), Error> {
        Git::isolated()
            .env("GIT_DIR", self.git_dir())
            .args(["pack-refs", "--all", "--prune"])
            .run()?;
        self.refresh_packed(true)
    }

    /// Whether a transaction that takes this ref away only takes its file, because the ref is in
    /// `packed-refs` now: `git pack-refs` asks hooks for that too. Whoever deletes such a ref holds the
    /// lock of `packed-refs`.
    pub fn is_being_packed(&self, name: &str) -> Result<bool, Error> {
        let here = self.read_ref(name)?;
        let packed = self
            .inner
            .refs
            .cached_packed_buffer()
            .map_err(store("read packed-refs"))?;
        let found = packed
            .as_ref()
            .and_then(|packed| packed.find(name).ok())
            .map(|found| from_gix(found.target()));
        Ok(found.is_some() && found == here && !self.packed_lock().exists())
    }
}

/// One change as `git update-ref -z --stdin` reads it.
fn line(change: &RefChange) -> Vec<u8> {
    let old = match (change.expected, change.new) {
        (Expected::At(old), _) => old.to_string(),
        (Expected::Absent, Some(new)) => "0".repeat(new.to_string().len()),
        // Nothing is there and nothing is wanted.
        (Expected::Absent, None) => return Vec::new(),
    };
    let name = &change.name;
    match change.new {
        Some(new) => format!("update {name}\0{new}\0{old}\0"),
        None => format!("delete {name}\0{old}\0"),
    }
    .into_bytes()
}

/// What git said, by what the caller can do. The names stand in quotes: the ref, then what is in its way.
fn refused(said: &str) -> Error {
    let mut quoted = said.split('\'').skip(1).step_by(2).map(str::to_owned);
    let name = quoted.next().unwrap_or_default();
    let other = quoted.next().unwrap_or_default();
    let has = |words: &str| said.contains(words);
    if has("but expected") || has("reference already exists") || has("unable to resolve") {
        return Error::Conflict { name, actual: None };
    }
    if has("exists; cannot create") {
        return Error::NameTaken { name, other };
    }
    if has("File exists") {
        let lock = said.split_once("create '").map(|(_, rest)| rest);
        let lock = lock.and_then(|rest| rest.split('\'').next());
        return Error::Busy {
            name,
            lock: lock.unwrap_or_default().into(),
        };
    }
    Error::Program {
        command: "update-ref".into(),
        message: show(said.lines().next().unwrap_or_default().as_bytes()),
    }
}
