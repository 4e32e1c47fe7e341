//! What a caller asks of a sandbox, and what it gets back.
//!
//! One sandbox is one private file tree plus a sequence of [`Step`]s. Every step runs in a pid
//! namespace of its own that is dead before the next one starts; the file tree stays.

use crate::base::redact::Secret;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// A file laid into the sandbox from memory. It exists only in the sandbox's tmpfs.
#[derive(Debug, Clone)]
pub struct LaidFile {
    /// Absolute path inside. Parents are created; whatever stands there is unlinked first, never
    /// followed.
    pub path: PathBuf,
    /// Content.
    pub bytes: Secret,
    /// Permission bits, for example `0o444`. With the owner's write bit (`0o200`) the file and the
    /// folder that it lies in belong to the programs inside, else they can't change them.
    pub mode: u32,
}

/// Where part of the sandbox's file tree comes from.
///
/// A mount point inside an earlier mount must be there already, as a real folder or file: a bound
/// tree never decides where something lands. Unix sockets that lie in a read-only or writable
/// mount stay connectable, so a folder with sockets must not be one. The path on the host can be
/// read inside (`/proc/self/mountinfo`), so it should tell nothing; that of a scratch mount can only in
/// a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mount {
    /// A host file or folder, read-only.
    ReadOnly {
        /// On the host, absolute.
        host: PathBuf,
        /// Inside, absolute.
        inside: PathBuf,
    },
    /// A host folder that the sandbox may change; changes stay on the host.
    ReadWrite {
        /// On the host, absolute.
        host: PathBuf,
        /// Inside, absolute.
        inside: PathBuf,
    },
    /// A host folder that the sandbox sees and may change, with the changes in tmpfs only
    /// (overlayfs; a copy into tmpfs where the kernel refuses it).
    Scratch {
        /// On the host, absolute.
        host: PathBuf,
        /// Inside, absolute.
        inside: PathBuf,
    },
}

/// What of the network a sandbox may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Network {
    /// Nothing but its own loopback.
    None,
    /// Its own loopback, on which bridges lead to Unix sockets of the host process.
    Bridged(Vec<Bridge>),
}

/// `127.0.0.1:port` inside leads to a Unix socket outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bridge {
    /// Port inside.
    pub port: u16,
    /// Unix socket of the host process. It is not visible as a path inside.
    pub socket: PathBuf,
}

/// Bounds on the whole tree of processes. `None` is unbounded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory, swap excluded.
    pub memory: Option<u64>,
    /// Processes and threads at one time.
    pub processes: Option<u64>,
    /// Bytes in all tmpfs of the sandbox together; what goes to a writable mount does not count.
    pub disk: Option<u64>,
    /// Bytes kept of each of stdout, stderr and the channel.
    pub output: Option<u64>,
    /// Largest single file, in bytes.
    pub file: Option<u64>,
    /// Processors' worth of CPU (`2.0` = two processors).
    pub cpus: Option<u32>,
}

/// One program run inside.
#[derive(Debug, Clone)]
pub struct Step {
    /// Program by absolute path inside, and its arguments.
    pub argv: Vec<OsString>,
    /// The whole environment.
    pub env: BTreeMap<OsString, OsString>,
    /// Working directory inside.
    pub dir: PathBuf,
    /// Bytes on standard input; empty is `/dev/null`.
    pub stdin: Vec<u8>,
    /// Opens a socket for writing on descriptor 3, which no other process can open anew; what is
    /// written comes back as [`StepOutcome::channel`].
    pub channel: bool,
    /// Wall clock.
    pub timeout: Duration,
    /// Ends the step when neither stream nor channel moved for so long.
    pub idle: Option<Duration>,
}

/// A whole sandbox.
#[derive(Debug, Clone)]
pub struct Spec {
    /// File tree beside the fixed parts (`/usr`, `/proc`, `/dev`, tmpfs `/tmp` and HOME).
    pub mounts: Vec<Mount>,
    /// Files from memory, laid last, in this order.
    pub files: Vec<LaidFile>,
    /// Network.
    pub network: Network,
    /// Limits.
    pub limits: Limits,
    /// Run the steps inside an inner Landlock domain that can't reach the supervisor. On for
    /// grading. Agent programs and package managers get it too where it does not break them.
    pub inner_domain: bool,
    /// After all steps and after every process is dead: hash every regular file below these
    /// absolute inside paths (see [`Outcome::hashes`]).
    pub hash_after: Vec<PathBuf>,
    /// After all steps and after every process is dead: hand back every file below these absolute
    /// inside paths (see [`Outcome::collected`]). For what must never touch the host's disk, such
    /// as a writer's tests.
    pub collect: Vec<Collect>,
    /// Wall clock for all steps together. A step that is running when it passes ends as
    /// [`End::TimedOut`], and so does every step after it.
    pub deadline: Option<Duration>,
    /// Steps, in order. The rest is skipped after one that did not exit with 0 when
    /// `stop_on_failure` is set.
    pub steps: Vec<Step>,
    /// See `steps`.
    pub stop_on_failure: bool,
}

/// A folder inside whose files are handed back through memory. Links are never followed; what is
/// neither a regular file nor a folder is named in [`Outcome::not_collected`], and so is this folder
/// itself where it is there without any of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collect {
    /// Absolute folder inside.
    pub path: PathBuf,
    /// Largest file in bytes; a larger one is named in [`Outcome::not_collected`].
    pub max_file: u64,
    /// Most bytes together.
    pub max_total: u64,
    /// Most files.
    pub max_files: usize,
}

/// A file handed back by [`Collect`].
#[derive(Debug, Clone)]
pub struct CollectedFile {
    /// Absolute path inside (raw bytes).
    pub path: Vec<u8>,
    /// Whether the owner may execute it.
    pub executable: bool,
    /// Content.
    pub bytes: Secret,
}

/// How one step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Exit status.
    Exited(i32),
    /// Killed by this signal.
    Signalled(i32),
    /// The wall clock ran out.
    TimedOut,
    /// Nothing moved for the idle time.
    Idle,
    /// It could not be started (errno).
    NotStarted(i32),
}

impl Default for End {
    /// Nothing ran.
    fn default() -> Self {
        Self::NotStarted(0)
    }
}

/// A bound that was hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hit {
    /// Out-of-memory kill inside.
    Memory,
    /// A fork was refused.
    Processes,
    /// Output was cut.
    Output,
    /// A file reached the largest size (SIGXFSZ).
    FileSize,
    /// The sandbox's tmpfs ran out of bytes or of files.
    Disk,
}

/// What one step left.
#[derive(Debug, Clone, Default)]
pub struct StepOutcome {
    /// How it ended.
    pub end: End,
    /// Standard output, cut at the limit.
    pub stdout: Vec<u8>,
    /// Standard error, cut at the limit.
    pub stderr: Vec<u8>,
    /// Everything written to descriptor 3, complete: read to its end after all processes were
    /// dead. `None` where no channel was asked for.
    pub channel: Option<Vec<u8>>,
    /// Bounds hit.
    pub hits: Vec<Hit>,
    /// Wall time.
    pub wall: Duration,
    /// Highest memory of the tree in bytes, where the host can tell.
    pub peak_memory: Option<u64>,
}

/// What held a sandbox, as its provider set it up. Whether it *does* hold is for the probes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Enforced {
    /// Whether programs ran as another real user; else in a user namespace of their own.
    pub other_user: bool,
    /// The kernel's Landlock interface; 0 when there is none (then there is no inner domain).
    pub landlock: u32,
    /// A control group bounds the memory of the whole tree.
    pub memory: bool,
    /// A control group bounds the processes of the whole tree.
    pub processes: bool,
    /// A control group bounds the CPU of the whole tree.
    pub cpus: bool,
    /// A scratch folder was copied into tmpfs, because the kernel refused an overlay.
    pub copied: bool,
}

/// What a sandbox left. By the time it exists, every process of it is dead and its tmpfs is gone.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// What held it.
    pub enforced: Enforced,
    /// One per step that was started.
    pub steps: Vec<StepOutcome>,
    /// For every regular file under `hash_after`: absolute inside path (raw bytes) → SHA-256.
    /// A symlink is listed with the hash of its target text.
    pub hashes: BTreeMap<Vec<u8>, [u8; 32]>,
    /// Files below the `collect` folders.
    pub collected: Vec<CollectedFile>,
    /// Paths below the `collect` folders that were not handed back, each with the reason (link,
    /// special file, too large, too many).
    pub not_collected: Vec<(Vec<u8>, String)>,
}
