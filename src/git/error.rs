//! What can go wrong, by what the caller can do about it.

use super::trouble::RemoteTrouble;
use crate::base::process;
use crate::model::object_id::ObjectId;
use std::io;
use std::path::{Path, PathBuf};

/// Why a path of a tree, a patch or a work tree is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathFault {
    /// A component is empty, `.` or `..`, or holds `/` or NUL.
    #[error("is not a plain relative path")]
    NotRelative,
    /// A component is `.git`, also as HFS+ or NTFS would read it.
    #[error("has a component that some file systems read as `.git`")]
    DotGit,
    /// `.gitmodules` is a symbolic link.
    #[error("is a symbolic link with a name that Git reads")]
    SpecialLink,
    /// A component is longer than 255 bytes, or the whole path than 4096.
    #[error("is too long")]
    TooLong,
    /// More folders deep than a walk goes.
    #[error("is nested too deep")]
    TooDeep,
    /// Another path is the same where case or Unicode form do not count.
    #[error("is the same as `{other}` where case or Unicode form do not count", other = show(.0))]
    Collision(Vec<u8>),
    /// A FIFO, socket or device.
    #[error("is a FIFO, socket or device")]
    SpecialFile,
    /// It lies in, or replaces, a submodule.
    #[error("lies in a submodule or replaces one")]
    Submodule,
    /// It adds, moves or changes a submodule.
    #[error("adds or changes a submodule")]
    Gitlink,
    /// A symbolic link without a target, or with one longer than 4095 bytes or holding NUL.
    #[error("is a symbolic link without a usable target")]
    LinkTarget,
}

/// Why an object may be missing in a clone that is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absence {
    /// Nothing explains it: something was lost.
    Lost,
    /// It is a commit, and history ends early here (`git clone --depth`).
    Shallow,
    /// The clone leaves out what its remote promised to keep (`git clone --filter`).
    Partial,
}

/// Trouble with a repository.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No repository here or in a parent folder.
    #[error("{} is not in a Git repository", .0.display())]
    NotARepository(PathBuf),
    /// There is no folder of this name.
    #[error("there is no folder {}", .0.display())]
    NoFolder(PathBuf),
    /// The repository belongs to another user and is not in `safe.directory`.
    #[error("{} belongs to another user and is not listed in `safe.directory`", .0.display())]
    Untrusted(PathBuf),
    /// A repository that hangar cannot work with, in one sentence.
    #[error("{0}")]
    Unsupported(String),
    /// A commit is needed and there is none yet.
    #[error("this repository has no commit yet")]
    NoCommits,
    /// The operation needs a work tree and the repository is bare.
    #[error("this repository has no work tree")]
    NoWorkTree,
    /// History ends early here, so the question has no sure answer.
    #[error("this clone is shallow: its history does not reach far enough")]
    Shallow,
    /// A revision that a user named is not there.
    #[error("{0} is not there")]
    NotFound(String),
    /// An object that something names is not there.
    #[error("the object {id} {}", absent(*absence))]
    Gone {
        /// Which.
        id: ObjectId,
        /// Whether the kind of clone explains it.
        absence: Absence,
    },
    /// An object that is there is not what it has to be.
    #[error("the object {id} {fault}")]
    Damaged {
        /// Which.
        id: ObjectId,
        /// What is wrong, as the end of a sentence.
        fault: String,
    },
    /// A name that is not well formed.
    #[error("{what} `{name}` {why}")]
    Invalid {
        /// What was named: `ref`, `revision`, `branch`.
        what: &'static str,
        /// The name, shortened and escaped.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A path that is refused.
    #[error("the path `{}` {fault}", show(path))]
    Path {
        /// The path.
        path: Vec<u8>,
        /// Why.
        fault: PathFault,
    },
    /// Compare-and-swap lost: the ref is not where the caller saw it. Read again and decide again.
    #[error("{name} has moved")]
    Conflict {
        /// The ref.
        name: String,
        /// Where it is now.
        actual: Option<ObjectId>,
    },
    /// Git keeps refs as files and folders: `a` and `a/b` cannot both exist.
    #[error("{name} cannot be created while {other} exists")]
    NameTaken {
        /// The ref.
        name: String,
        /// The one in its way.
        other: String,
    },
    /// The ref stayed locked by another process. Trying again is safe.
    #[error("{name} is locked by another process ({})", lock.display())]
    Busy {
        /// The ref.
        name: String,
        /// The lock file.
        lock: PathBuf,
    },
    /// The branch is checked out in a work tree, which would then differ from it.
    #[error("the branch {branch} is checked out in {}", worktree.display())]
    CheckedOut {
        /// The branch, without `refs/heads/`.
        branch: String,
        /// Where.
        worktree: PathBuf,
    },
    /// A patch does not fit its base.
    #[error("the patch does not apply{}: {detail}", path.as_deref().map(|path| format!(" to `{path}`")).unwrap_or_default())]
    PatchDoesNotApply {
        /// The first file that did not fit, where git named one.
        path: Option<String>,
        /// What git said, first line.
        detail: String,
    },
    /// A patch that names a binary file without what is in it.
    #[error("the patch does not hold the content of the binary file `{path}`")]
    PatchWithoutContent {
        /// Which file.
        path: String,
    },
    /// More than a limit allows.
    #[error("{what} is larger than {limit}")]
    TooLarge {
        /// What: a path, or `all files together`.
        what: String,
        /// The limit with its unit.
        limit: String,
    },
    /// A file could not be read or written.
    #[error("cannot {action} {}", path.display())]
    File {
        /// What was tried, as a verb.
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// The refusal.
        #[source]
        source: io::Error,
    },
    /// The git program is missing, or did not end in time.
    #[error(transparent)]
    Process(#[from] process::Error),
    /// The git program said no.
    #[error("`git {command}` failed: {message}")]
    Program {
        /// The subcommand.
        command: String,
        /// Its message, shortened.
        message: String,
    },
    /// Another repository could not be reached, or refuses.
    #[error("{remote} {}: {message}", said(*trouble))]
    Remote {
        /// Its name or address, without a password.
        remote: String,
        /// Why, by what helps.
        trouble: RemoteTrouble,
        /// What git said, shortened.
        message: String,
    },
    /// The object database or the ref store is damaged or cannot be read.
    #[error("cannot {action}: {message}")]
    Store {
        /// What was tried.
        action: &'static str,
        /// What the store said.
        message: String,
    },
}

impl Error {
    /// Whether an object is only not in this clone, which was made without it.
    pub const fn is_left_out(&self) -> bool {
        matches!(
            self,
            Self::Shallow
                | Self::Gone {
                    absence: Absence::Shallow | Absence::Partial,
                    ..
                }
        )
    }
}

/// That an object is not there, as the end of a sentence.
const fn absent(absence: Absence) -> &'static str {
    match absence {
        Absence::Lost => "is not there",
        Absence::Shallow => "is not in this clone, which is shallow",
        Absence::Partial => {
            "is not there (this is a partial clone; `git fetch --refetch --no-filter` completes it)"
        }
    }
}

/// What a remote did, as the middle of a sentence.
const fn said(trouble: RemoteTrouble) -> &'static str {
    match trouble {
        RemoteTrouble::Login => "does not let you in",
        RemoteTrouble::HostKey => "is not known to ssh",
        RemoteTrouble::Forbidden => "forbids this",
        RemoteTrouble::NotThere => "shows no repository",
        RemoteTrouble::Away => "can't be reached",
        RemoteTrouble::Silent => "does not answer",
        RemoteTrouble::Other => "can't be used",
    }
}

impl From<crate::base::files::Error> for Error {
    fn from(error: crate::base::files::Error) -> Self {
        Self::File {
            action: error.action,
            path: error.path,
            source: error.source,
        }
    }
}

/// Turns trouble of the store into an error that says what was tried, and what the operating
/// system said where that is the root of it (a full disk, a read-only file system).
pub(super) fn store<E: std::error::Error>(action: &'static str) -> impl FnOnce(E) -> Error {
    move |error| {
        let mut message = error.to_string();
        let mut next = error.source();
        let mut last = None;
        while let Some(cause) = next {
            last = Some(cause.to_string());
            next = cause.source();
        }
        if let Some(last) = last.filter(|last| !message.contains(last)) {
            message = format!("{message}: {last}");
        }
        Error::Store {
            action,
            message: message.chars().take(400).collect(),
        }
    }
}

/// Turns what came of reading an object into damage of it, unless the operating system refused to read.
pub(super) fn damaged<E: std::error::Error + 'static>(
    id: ObjectId,
    what: &'static str,
) -> impl FnOnce(E) -> Error {
    move |error| {
        let mut next: Option<&(dyn std::error::Error + 'static)> = Some(&error);
        while let Some(cause) = next {
            let refused = cause.downcast_ref::<io::Error>();
            let refused = refused.and_then(io::Error::raw_os_error);
            // An empty file can't be mapped into memory.
            if refused.is_some_and(|code| code != rustix::io::Errno::INVAL.raw_os_error()) {
                return store("read an object")(error);
            }
            next = cause.source();
        }
        let said: String = error.to_string().chars().take(200).collect();
        Error::Damaged {
            id,
            fault: format!("is damaged: {what}: {said}"),
        }
    }
}

/// Turns an I/O error into one that names the path.
pub(super) fn file<'a, E: Into<io::Error>>(
    action: &'static str,
    path: &'a Path,
) -> impl FnOnce(E) -> Error + use<'a, E> {
    move |source| Error::File {
        action,
        path: path.to_owned(),
        source: source.into(),
    }
}

/// A path for people: control characters escaped, odd bytes replaced, cut at 200 characters.
pub(super) fn show(path: &[u8]) -> String {
    let text = String::from_utf8_lossy(path);
    let mut out: String = text
        .chars()
        .take(200)
        .flat_map(|c| {
            let escaped = c.is_control();
            let plain = (!escaped).then_some(c);
            plain
                .into_iter()
                .chain(escaped.then(|| c.escape_default()).into_iter().flatten())
        })
        .collect();
    if text.chars().count() > 200 {
        out.push('…');
    }
    out
}
