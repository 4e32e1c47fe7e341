//! One set of sealed tests over one tree: everything an adapter needs to say what to run.

use crate::base::random;
use crate::base::redact::Secret;
use crate::grade::call::{Call, Layout, Room, Tools};
use crate::grade::manifest::Project;
use crate::model::outcome::TestId;
use crate::model::plan::Plan;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// One sealed file.
#[derive(Debug, Clone)]
pub struct SealedFile {
    /// Path relative to the root, `/` between components.
    pub path: String,
    /// Whether its mode is 100755.
    pub executable: bool,
    /// Content.
    pub text: Secret,
}

/// Packages that only a patch installs (`reprepare` of the plan).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Added {
    /// Folders of modules, as absolute inside paths. They come last where modules are looked for.
    pub places: Vec<PathBuf>,
    /// What modules there are called.
    pub names: BTreeSet<String>,
}

/// What is run where.
#[derive(Debug, Clone)]
pub struct Suite {
    /// How the approver said that it is run.
    pub plan: Plan,
    /// Programs, as the caller resolved them.
    pub tools: Tools,
    /// Where things lie.
    pub layout: Layout,
    /// The sealed files (empty for a preflight).
    pub files: Vec<SealedFile>,
    /// What the base says of itself.
    pub project: Project,
    /// Every test id of the sealed files, sentinels included. Empty while they are being listed.
    pub known: Vec<TestId>,
    /// What the patch adds to what `prepare` left.
    pub added: Added,
}

impl Suite {
    /// The sealed file that `path` names.
    pub fn file(&self, path: &str) -> Option<&SealedFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Absolute inside path of a file of the tree.
    pub fn inside(&self, path: &str) -> PathBuf {
        self.layout.src.join(path)
    }

    /// Wall clock for all calls of a run together.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.plan.limits.timeout.max(1))
    }

    /// Wall clock for one of `count` calls: its share, but never less than a minute (or the whole,
    /// where that is shorter).
    pub fn share(&self, count: usize) -> Duration {
        let whole = self.timeout();
        let share = whole / u32::try_from(count.max(1)).unwrap_or(u32::MAX);
        share.max(whole.min(Duration::from_secs(60)))
    }

    /// The environment of every call: fixed neutral values, then what the plan names. HOME is the
    /// scratch folder, so that nothing depends on who runs it.
    pub fn env(&self) -> BTreeMap<OsString, OsString> {
        let mut path: Vec<PathBuf> = self.tools.folders();
        path.extend(["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from));
        let mut seen = std::collections::BTreeSet::new();
        path.retain(|folder| seen.insert(folder.clone()));
        let path = std::env::join_paths(path).unwrap_or_else(|_| "/usr/bin:/bin".into());
        let scratch = self.layout.scratch.clone().into_os_string();
        let mut env: BTreeMap<OsString, OsString> = [
            ("PATH", path),
            ("HOME", scratch.clone()),
            ("TMPDIR", scratch),
            ("LANG", "C.UTF-8".into()),
            ("LC_ALL", "C.UTF-8".into()),
            ("TZ", "UTC".into()),
            ("USER", "user".into()),
            ("LOGNAME", "user".into()),
        ]
        .into_iter()
        .map(|(key, value)| (key.into(), value))
        .collect();
        for (key, value) in &self.plan.env {
            env.insert(key.into(), value.into());
        }
        env
    }

    /// A call at the root of the tree with the neutral environment and a new nonce.
    pub fn call(&self, argv: Vec<OsString>, ids: &[TestId], timeout: Duration) -> Call {
        Call {
            argv,
            env: self.env(),
            dir: self.layout.src.clone(),
            stdin: Vec::new(),
            channel: false,
            timeout,
            ids: ids.to_vec(),
            nonce: random::hex::<16>(),
            room: Room::Shared,
        }
    }
}
