//! Dependencies: fetched once per lockfile in a sandbox with registry egress, read-only afterwards.
//!
//! `prepare` sees the base alone, never a patch and never a test. What it leaves is kept under a
//! key made from everything that it could depend on.

use super::Error;
use super::host::Host;
use super::scratch::Scratch;
use super::tools::{Toolbox, find_program};
use crate::base::files;
use crate::config::registries::{self, Machine, Setup};
use crate::git::Repository;
use crate::grade::call::Layout;
use crate::harness::egress::{Config, Proxy};
use crate::model::digest::Digest;
use crate::model::object_id::ObjectId;
use crate::model::plan::Plan;
use crate::sandbox::spec::{Bridge, End, LaidFile, Mount, Network, Spec, Step};
use crate::sandbox::toolchain;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Wall clock for fetching and building dependencies.
const TIMEOUT: Duration = Duration::from_secs(1800);
/// Where the package clients' configuration is seen inside.
const CLIENTS: &str = "/run/clients";
/// Written last; a folder without it is unfinished and made anew.
const COMPLETE: &str = "complete";
/// Files at any depth that say which dependencies there are.
const MANIFESTS: [&str; 18] = [
    "requirements.txt",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "poetry.lock",
    "uv.lock",
    "pdm.lock",
    "Pipfile",
    "Pipfile.lock",
    "package.json",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "Cargo.toml",
    "Cargo.lock",
    "rust-toolchain.toml",
    "constraints.txt",
];

/// Dependencies on the host's disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    root: PathBuf,
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
    let key = key(repo, base, plan)?;
    let root = host.cache_folder("prepared", &[key.as_bytes()]);
    let prepared = Prepared { root: root.clone() };
    if root.join(COMPLETE).exists() {
        return Ok(Some(prepared));
    }
    let parent = root.parent().unwrap_or(Path::new("/"));
    files::create_private_dir(parent)?;
    let _lock = files::lock(&root.with_extension("lock"))?;
    if root.join(COMPLETE).exists() {
        return Ok(Some(prepared));
    }
    host.stage("preparing dependencies");
    let made = make(host, repo, base, plan)?;
    let renamed = fs::remove_dir_all(&root)
        .or_else(ignore_missing)
        .and_then(|()| fs::rename(made.path(), &root));
    renamed.map_err(|source| files::Error {
        action: "keep",
        path: root.clone(),
        source,
    })?;
    files::write_atomic(&root.join(COMPLETE), b"", 0o600)?;
    Ok(Some(prepared))
}

fn ignore_missing(error: std::io::Error) -> std::io::Result<()> {
    if error.kind() == std::io::ErrorKind::NotFound {
        Ok(())
    } else {
        Err(error)
    }
}

/// Everything that the result can depend on: the text of the step, every manifest and lockfile of
/// the base, the machine.
fn key(repo: &Repository, base: ObjectId, plan: &Plan) -> Result<Digest, Error> {
    let tree = repo.read_commit(base)?.tree;
    let mut bytes = b"hangar-prepared-1\n".to_vec();
    let mut add = |part: &[u8]| {
        bytes.extend((part.len() as u64).to_be_bytes());
        bytes.extend(part);
    };
    add(plan.prepare.as_bytes());
    add(std::env::consts::ARCH.as_bytes());
    add(&fs::read("/etc/os-release").unwrap_or_default());
    for name in ["python3", "node", "cargo"] {
        let program = crate::base::process::find(Path::new(name));
        let real = program.map(|program| toolchain::find(&program).program);
        add(real.unwrap_or_default().as_os_str().as_encoded_bytes());
    }
    for (path, entry) in repo.listing(tree)?.listing.iter() {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        let name = String::from_utf8_lossy(name);
        let counts = MANIFESTS.contains(&name.as_ref())
            || (name.starts_with("requirements") && name.ends_with(".txt"));
        if counts {
            add(path);
            add(entry.sha256.as_bytes());
        }
    }
    Ok(Digest::of(&bytes))
}

/// Runs the step in a new scratch folder that holds `prepared` and `node_modules` afterwards.
fn make(host: &Host<'_>, repo: &Repository, base: ObjectId, plan: &Plan) -> Result<Scratch, Error> {
    let machine = Machine {
        env: &host.env,
        toolchain: &host.user.toolchain,
        inside: Path::new(CLIENTS),
    };
    let setup = registries::ask_all(&machine, &host.user.prepare_hosts)?;
    let scratch = Scratch::new(&host.cache)?;
    let (prepared, modules, src) = (
        scratch.folder("prepared")?,
        scratch.folder("node_modules")?,
        scratch.folder("src")?,
    );
    let tree = repo.read_commit(base)?.tree;
    repo.materialise(tree, &src, Some(crate::sandbox::owner()))?;
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
    let mut toolbox = Toolbox::default();
    for name in ["python3", "pip", "node", "npm", "cargo", "git"] {
        if let Some(program) = find_program(host, name) {
            toolbox.add(name, &program);
        }
    }
    let mut mounts = vec![
        Mount::ReadWrite {
            host: prepared,
            inside: Layout::default().prepared,
        },
        Mount::ReadWrite {
            host: modules,
            inside: "/node_modules".into(),
        },
        Mount::ReadWrite {
            host: src.clone(),
            inside: Layout::default().src,
        },
    ];
    mounts.extend(toolbox.mounts());
    let shown = |path: &PathBuf| Mount::ReadOnly {
        host: path.clone(),
        inside: path.clone(),
    };
    mounts.extend(setup.read.iter().map(shown));
    let spec = Spec {
        mounts,
        files: client_files(&setup),
        network: Network::Bridged(bridges),
        limits: super::bench::limits(plan),
        inner_domain: true,
        hash_after: Vec::new(),
        collect: Vec::new(),
        steps: vec![step(plan, &toolbox, &setup, &proxy)],
        stop_on_failure: true,
        deadline: None,
    };
    let outcome = host.run_shown(&spec)?;
    let refused = proxy
        .finish()
        .into_iter()
        .filter(|record| !record.is_allowed())
        .count();
    let ended = outcome.steps.first().map(|step| step.end);
    if ended != Some(End::Exited(0)) {
        let tail = outcome
            .steps
            .first()
            .map(|step| last_line(&step.stderr))
            .unwrap_or_default();
        let mut what = format!("the `prepare` step failed: {tail}");
        if refused > 0 {
            what.push_str(&format!(
                " ({refused} requests to hosts outside the registries were refused)"
            ));
        }
        return Err(Error::missing(
            what,
            "run its commands by hand, then correct `grader.prepare` in hangar.toml",
        ));
    }
    fs::remove_dir_all(&src).map_err(|source| files::Error {
        action: "remove",
        path: src,
        source,
    })?;
    Ok(scratch)
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
        argv: vec!["/bin/sh".into(), "-euc".into(), script(plan).into()],
        env,
        dir: layout.src,
        stdin: Vec::new(),
        channel: false,
        timeout: TIMEOUT,
        idle: Some(Duration::from_secs(600)),
    }
}

/// The step's text. `pip` means the one of `/prepared/venv`, which is made on first use.
fn script(plan: &Plan) -> String {
    let venv = if plan.prepare.contains("pip") {
        "test -x /prepared/venv/bin/python || python3 -m venv /prepared/venv\n"
    } else {
        ""
    };
    format!("{venv}{}\n", plan.prepare)
}

fn last_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let line = text
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("no output");
    line.chars().take(200).collect()
}
