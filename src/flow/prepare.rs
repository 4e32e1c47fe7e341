//! Dependencies: fetched once per lockfile in a sandbox with registry egress, read-only afterwards.
//!
//! `prepare` sees the base alone, never a patch and never a test. What it leaves is kept under a
//! key made from everything that it could depend on. Where the plan allows it, it runs once more for a
//! patch, apart from that (`patch.rs`).

mod cargo;
mod key;
mod left;
mod patch;
mod why;

pub use patch::{Added, Reprepared, reprepare};

use super::Error;
use super::basecheck::project;
use super::host::Host;
use super::need;
use super::scratch::Scratch;
use super::tools::{Toolbox, find_program};
use crate::base::files::{self, Attempt, Lock};
use crate::config::registries::{self, Client, Machine, Setup};
use crate::git::Repository;
use crate::grade::call::Layout;
use crate::harness::egress::{Config, EgressRecord, Proxy};
use crate::model::object_id::ObjectId;
use crate::model::plan::Plan;
use crate::sandbox::spec::{Bridge, End, LaidFile, Mount, Network, Spec, Step, StepOutcome};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Wall clock for fetching and building dependencies.
const TIMEOUT: Duration = Duration::from_secs(1800);
/// How often a lock that another process holds is tried.
const LOCK_TURN: Duration = Duration::from_millis(100);
/// Where the package clients' configuration is seen inside.
const CLIENTS: &str = "/run/clients";
/// Written last; a folder without it is unfinished and made anew.
const COMPLETE: &str = "complete";
/// Programs that a step can use, where they are there.
const PROGRAMS: [&str; 9] = [
    "python3", "pip", "node", "npm", "cargo", "rustc", "go", "git", "uv",
];

/// Dependencies on the host's disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    root: PathBuf,
    /// Where packages lie that a patch adds.
    added: Option<PathBuf>,
}

impl Prepared {
    /// The folder that is `/prepared` inside.
    pub fn folder(&self) -> PathBuf {
        self.root.join("prepared")
    }

    /// Whether `path` is there.
    pub fn has(&self, path: &str) -> bool {
        self.folder().join(path).symlink_metadata().is_ok()
    }

    /// How a sandbox sees it.
    pub fn mounts(&self) -> Vec<Mount> {
        let modules = self.root.join("node_modules");
        let mut mounts = vec![Mount::ReadOnly {
            host: self.folder(),
            inside: Layout::default().prepared,
        }];
        if fs::read_dir(&modules).is_ok_and(|mut entries| entries.next().is_some()) {
            mounts.push(Mount::ReadOnly {
                host: modules,
                inside: "/node_modules".into(),
            });
        }
        mounts.extend(cargo::folders(&self.root));
        mounts.extend(self.added.iter().map(|root| Mount::ReadOnly {
            host: root.join("prepared"),
            inside: patch::INSIDE.into(),
        }));
        mounts
    }
}

/// What `prepare` leaves for this base: from the cache, or made now. `None` where the plan has no
/// such step.
pub fn prepare(
    host: &Host<'_>,
    repo: &Repository,
    base: ObjectId,
    plan: &Plan,
) -> Result<Option<Prepared>, Error> {
    if plan.prepare.trim().is_empty() {
        return Ok(None);
    }
    let toolbox = toolbox(host, plan)?;
    let key = key::key(repo, base, plan, &toolbox)?;
    let root = host.cache_folder("prepared", &[key.as_bytes()]);
    kept(host, &root, "preparing dependencies", || {
        make(host, repo, base, plan, &toolbox).map(Some)
    })?;
    Ok(Some(Prepared { root, added: None }))
}

/// Makes the folder of a key where it is not there yet. `false`: there was nothing to keep.
fn kept(
    host: &Host<'_>,
    root: &Path,
    stage: &str,
    make: impl FnOnce() -> Result<Option<Scratch>, Error>,
) -> Result<bool, Error> {
    if root.join(COMPLETE).exists() {
        return Ok(true);
    }
    files::create_private_dir(root.parent().unwrap_or(Path::new("/")))?;
    let _lock = lock(host, &root.with_extension("lock"))?;
    if root.join(COMPLETE).exists() {
        return Ok(true);
    }
    host.stage(stage);
    let Some(made) = make()? else {
        return Ok(false);
    };
    let renamed = fs::remove_dir_all(root)
        .or_else(ignore_missing)
        .and_then(|()| fs::rename(made.path(), root));
    renamed.map_err(|source| files::Error {
        action: "keep",
        path: root.to_owned(),
        source,
    })?;
    files::write_atomic(&root.join(COMPLETE), b"", 0o600)?;
    Ok(true)
}

fn ignore_missing(error: std::io::Error) -> std::io::Result<()> {
    if error.kind() == std::io::ErrorKind::NotFound {
        Ok(())
    } else {
        Err(error)
    }
}

/// The lock of one cache entry. Another process may hold it for as long as its own step takes.
fn lock(host: &Host<'_>, path: &Path) -> Result<Lock, Error> {
    let mut told = false;
    loop {
        if let Attempt::Taken(lock) = files::try_lock(path)? {
            return Ok(lock);
        }
        host.check_cancel()?;
        if !told {
            host.stage("waiting for another process that prepares the same dependencies");
            told = true;
        }
        std::thread::sleep(LOCK_TURN);
    }
}

fn toolbox(host: &Host<'_>, plan: &Plan) -> Result<Toolbox, Error> {
    let mut toolbox = Toolbox::default();
    for name in PROGRAMS {
        match find_program(&host.user, name) {
            Ok(Some(program)) => toolbox.add(name, &program),
            // What is configured wrongly stands in the way of steps that use it alone.
            Err(error) if names(&plan.prepare, name) => return Err(error),
            Ok(None) | Err(_) => {}
        }
    }
    Ok(toolbox)
}

/// Runs the step in a new scratch folder that holds `prepared` and `node_modules` afterwards.
fn make(
    host: &Host<'_>,
    repo: &Repository,
    base: ObjectId,
    plan: &Plan,
    toolbox: &Toolbox,
) -> Result<Scratch, Error> {
    let machine = Machine {
        env: &host.env,
        toolchain: &host.user.toolchain,
        inside: Path::new(CLIENTS),
    };
    let is_named = |client: Client| names(&plan.prepare, client.as_str());
    let setup = registries::ask_for(&machine, &host.user.prepare_hosts, &is_named)?;
    let scratch = Scratch::new(&host.cache)?;
    let folders = Folders::new(&scratch)?;
    let tree = repo.read_commit(base)?.tree;
    repo.materialise(tree, &folders.src, Some(crate::sandbox::owner()))?;
    let (step, records) = run(host, plan, toolbox, &setup, &folders)?;
    if step.as_ref().map(|step| step.end) != Some(End::Exited(0)) {
        return Err(why::failed(plan, step.as_ref(), &records));
    }
    let refused = why::refused(&records);
    if !refused.is_empty() {
        host.note(format!(
            "`prepare` was refused hosts that are no registries, and ended well: {}",
            refused.join(", ")
        ));
    }
    let project = project(repo, base, plan)?;
    left::refuse_copies(&folders.prepared, &project, plan)?;
    if !project.tracks_node_modules {
        left::node_modules(&folders.src, &folders.modules, &Layout::default().src)?;
    }
    cargo::keep(&setup, &folders.prepared, scratch.path())?;
    crate::flow::scratch::remove(&folders.src);
    Ok(scratch)
}

/// What the step sees and may change, on the host.
struct Folders {
    prepared: PathBuf,
    modules: PathBuf,
    src: PathBuf,
}

impl Folders {
    fn new(scratch: &Scratch) -> Result<Self, Error> {
        Ok(Self {
            prepared: scratch.folder("prepared")?,
            modules: scratch.folder("node_modules")?,
            src: scratch.folder("src")?,
        })
    }
}

/// Runs the step: what it left, and what it asked of the network.
fn run(
    host: &Host<'_>,
    plan: &Plan,
    toolbox: &Toolbox,
    setup: &Setup,
    folders: &Folders,
) -> Result<(Option<StepOutcome>, Vec<EgressRecord>), Error> {
    let proxy = Proxy::start(Config::new("prepare", setup.hosts.clone()))
        .map_err(|error| Error::missing(error.to_string(), "run the command again"))?;
    let bridges = proxy
        .bridges()
        .iter()
        .map(|bridge| Bridge {
            port: bridge.port,
            socket: bridge.socket.clone(),
        })
        .collect();
    let layout = Layout::default();
    let writable = |host: &Path, inside: PathBuf| Mount::ReadWrite {
        host: host.to_owned(),
        inside,
    };
    let mut mounts = vec![
        writable(&folders.prepared, layout.prepared),
        writable(&folders.modules, "/node_modules".into()),
        writable(&folders.src, layout.src),
    ];
    mounts.extend(toolbox.mounts());
    let shown = |path: &PathBuf| Mount::ReadOnly {
        host: path.clone(),
        inside: path.clone(),
    };
    mounts.extend(setup.read.iter().map(shown));
    let spec = Spec {
        mounts,
        files: client_files(setup),
        network: Network::Bridged(bridges),
        limits: super::bench::limits(&plan.limits),
        inner_domain: true,
        hash_after: Vec::new(),
        collect: Vec::new(),
        steps: vec![step(plan, toolbox, setup, &proxy)],
        stop_on_failure: true,
        deadline: None,
    };
    let probes = host.provider.probe(&spec, &host.cancel)?;
    need::met(&probes, need::LISTED, "`prepare`")?;
    let outcome = host.run_shown(&spec)?;
    Ok((outcome.steps.into_iter().next(), proxy.finish()))
}

/// Configuration of the package clients, laid from memory: it may hold credentials.
fn client_files(setup: &Setup) -> Vec<LaidFile> {
    let file = |file: &registries::SetupFile| LaidFile {
        path: file.path.clone(),
        bytes: file.bytes.clone(),
        mode: 0o444,
    };
    setup.files.iter().map(file).collect()
}

fn step(plan: &Plan, toolbox: &Toolbox, setup: &Setup, proxy: &Proxy) -> Step {
    let layout = Layout::default();
    let mut path: Vec<PathBuf> = vec![layout.prepared.join("venv/bin")];
    path.extend(toolbox.tools.folders());
    path.extend(["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from));
    let mut env: BTreeMap<OsString, OsString> = BTreeMap::new();
    for (name, value) in proxy.environment() {
        env.insert(name.into(), value.into());
    }
    for (name, value) in [
        ("PATH", std::env::join_paths(path).unwrap_or_default()),
        ("HOME", "/home/user".into()),
        ("LANG", "C.UTF-8".into()),
        ("CARGO_HOME", "/prepared/cargo".into()),
        ("GOMODCACHE", "/prepared/go".into()),
        // What it compiles is used again in a grade.
        ("GOCACHE", "/prepared/go-build".into()),
        // Folders that can't be written can't be cleared away.
        ("GOFLAGS", "-modcacherw".into()),
        ("VIRTUAL_ENV", "/prepared/venv".into()),
        ("UV_PROJECT_ENVIRONMENT", "/prepared/venv".into()),
        ("PIP_DISABLE_PIP_VERSION_CHECK", "1".into()),
        ("npm_config_update_notifier", "false".into()),
        ("npm_config_cache", "/tmp/npm".into()),
    ] {
        env.insert(name.into(), value);
    }
    env.extend(
        setup
            .env
            .iter()
            .map(|(name, value)| (name.into(), value.into())),
    );
    Step {
        argv: vec![
            "/bin/sh".into(),
            "-euc".into(),
            script(plan, toolbox).into(),
        ],
        env,
        dir: layout.src,
        stdin: Vec::new(),
        channel: false,
        timeout: TIMEOUT,
        idle: Some(Duration::from_secs(600)),
    }
}

/// The step's text. `pip` means the one of `/prepared/venv`, which is made before.
fn script(plan: &Plan, toolbox: &Toolbox) -> String {
    if !names(&plan.prepare, "pip") {
        return format!("{}\n", plan.prepare);
    }
    let python = toolbox.tools.path("python3");
    format!(
        "test -x /prepared/venv/bin/python || '{}' -m venv /prepared/venv\n{}\n",
        python.display(),
        plan.prepare
    )
}

/// Whether a step calls a program: by its name, or with a 3 behind it.
fn names(step: &str, program: &str) -> bool {
    let is_between = |c: char| c.is_whitespace() || ";&|()'\"`/".contains(c);
    step.split(is_between)
        .any(|word| word.strip_suffix('3').unwrap_or(word) == program)
}

/// A text as TOML writes it.
fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_named_as_words() {
        for step in [
            "pip install x",
            "a && pip3 x",
            "python -m pip x",
            "/prepared/venv/bin/pip x",
        ] {
            assert!(names(step, "pip"), "{step}");
        }
        for step in ["npm run pipeline", "pipx x", "cargo fetch"] {
            assert!(!names(step, "pip"), "{step}");
        }
    }
}
