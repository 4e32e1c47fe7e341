//! Which package registries the clients on this machine are configured for.
//!
//! A `prepare` step may reach these and nothing else. The clients are asked, so that a mirror that
//! the user set up for them is the one that is used; no registry is built in but the ones that the
//! clients' own documentation names. Credentials go into files that are laid from memory, never
//! into an environment, an argument or a message.

mod cargo;
mod go;
mod npm;
mod pip;
mod url;

use super::Error;
use super::paths::Env;
use crate::base::process::{self, Run};
use crate::base::redact::Secret;
use crate::model::endpoint::Endpoint;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A package client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Client {
    /// pip (Python)
    Pip,
    /// npm (Node.js)
    Npm,
    /// Cargo (Rust)
    Cargo,
    /// go (Go)
    Go,
}

impl Client {
    /// All clients that can be asked.
    pub const ALL: [Self; 4] = [Self::Pip, Self::Npm, Self::Cargo, Self::Go];

    /// Name of the program.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pip => "pip",
            Self::Npm => "npm",
            Self::Cargo => "cargo",
            Self::Go => "go",
        }
    }
}

/// Hosts that the clients' documentation names for a machine on which nothing is configured. A
/// host from a configuration may be a mirror in a private network; these may not.
const PUBLIC: &[&str] = &[
    "pypi.org",
    "files.pythonhosted.org",
    "registry.npmjs.org",
    "index.crates.io",
    "static.crates.io",
    "proxy.golang.org",
    "sum.golang.org",
];

/// A configuration file for the inside.
#[derive(Debug, Clone)]
pub struct SetupFile {
    /// Absolute path inside.
    pub path: PathBuf,
    /// Content; may hold credentials.
    pub bytes: Secret,
}

/// What a sandbox needs so that the clients inside reach what those outside do.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// Hosts to let through.
    pub hosts: Vec<Endpoint>,
    /// Variables; no credential is among them.
    pub env: BTreeMap<String, String>,
    /// Files to lay from memory.
    pub files: Vec<SetupFile>,
    /// Host paths to bind read-only at the same place: certificates, local package folders.
    pub read: Vec<PathBuf>,
}

impl Setup {
    fn host(&mut self, endpoint: Endpoint) {
        if !self.hosts.contains(&endpoint) {
            self.hosts.push(endpoint);
        }
    }

    /// A host path that is read inside; one that is relative, the root, or not there is left out.
    fn read(&mut self, path: &Path) {
        let known = self.read.iter().any(|known| known == path);
        if path.is_absolute() && path.file_name().is_some() && path.exists() && !known {
            self.read.push(path.to_owned());
        }
    }

    fn merge(&mut self, other: Self) {
        for host in other.hosts {
            self.host(host);
        }
        self.env.extend(other.env);
        self.files.extend(other.files);
        for path in other.read {
            self.read(&path);
        }
    }
}

/// Where the clients are asked.
#[derive(Debug, Clone, Copy)]
pub struct Machine<'a> {
    /// The user's environment.
    pub env: &'a Env,
    /// The user's toolchain: `pip`, `python`, `npm`, `cargo`, `go` are looked at.
    pub toolchain: &'a BTreeMap<String, PathBuf>,
    /// Folder inside for the clients' configuration, absolute.
    pub inside: &'a Path,
}

/// Asks one client. `None` when it is not on this machine.
pub fn ask(client: Client, machine: &Machine<'_>) -> Result<Option<Setup>, Error> {
    match client {
        Client::Pip => pip::ask(machine),
        Client::Npm => npm::ask(machine),
        Client::Cargo => cargo::ask(machine),
        Client::Go => go::ask(machine),
    }
}

/// Asks every client, and adds the hosts of `prepare.hosts` and the certificates that the user's
/// environment names.
pub fn ask_all(machine: &Machine<'_>, more: &[Endpoint]) -> Result<Setup, Error> {
    ask_for(machine, more, &|_| true)
}

/// The same where only some clients must answer: one that is broken and not needed is left out.
pub fn ask_for(
    machine: &Machine<'_>,
    more: &[Endpoint],
    is_needed: &dyn Fn(Client) -> bool,
) -> Result<Setup, Error> {
    let mut setup = Setup::default();
    for client in Client::ALL {
        match ask(client, machine) {
            Ok(Some(found)) => setup.merge(found),
            Err(error) if is_needed(client) => return Err(error),
            Ok(None) | Err(_) => {}
        }
    }
    for host in more {
        setup.host(host.clone());
    }
    add_certificates(machine, &mut setup);
    Ok(setup)
}

fn add_certificates(machine: &Machine<'_>, setup: &mut Setup) {
    for name in CERTIFICATES {
        if let Some(value) = machine.text(name)
            && Path::new(value).is_absolute()
            && Path::new(value).exists()
        {
            setup.env.insert((*name).to_owned(), value.to_owned());
            setup.read(Path::new(value));
        }
    }
}

/// What code may know that nobody has looked at: pip's index alone, and none that wants a credential.
pub fn ask_openly(machine: &Machine<'_>) -> Result<Setup, Error> {
    let mut setup = pip::ask_openly(machine)?.unwrap_or_default();
    add_certificates(machine, &mut setup);
    Ok(setup)
}

/// Variables that name certificates, in the words of OpenSSL, Node.js, Requests and Cargo.
const CERTIFICATES: &[&str] = &[
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CARGO_HTTP_CAINFO",
];

/// Variables that a client needs to find its configuration. Those with its own prefix come on top.
const NEEDED: &[&str] = &[
    "HOME",
    "PATH",
    "XDG_CONFIG_HOME",
    "XDG_CONFIG_DIRS",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "NVM_DIR",
];

impl Machine<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        self.env.get(OsStr::new(name))?.to_str()
    }

    fn home(&self) -> Option<&Path> {
        self.text("HOME")
            .map(Path::new)
            .filter(|home| home.is_absolute())
    }

    /// The client's program and leading arguments; `None` when it is not there.
    fn program(&self, client: Client) -> Option<(PathBuf, Vec<OsString>)> {
        if let Some(path) = self.toolchain.get(client.as_str()) {
            return Some((path.clone(), Vec::new()));
        }
        match (client, self.toolchain.get("python")) {
            (Client::Pip, Some(python)) => Some((python.clone(), vec!["-m".into(), "pip".into()])),
            _ => process::find(Path::new(client.as_str())).map(|path| (path, Vec::new())),
        }
    }

    /// Runs the client outside any project and returns what it prints; `None` when it is not there.
    fn run(&self, client: Client, args: &[&str], prefix: &str) -> Result<Option<Secret>, Error> {
        let Some((program, first)) = self.program(client) else {
            return Ok(None);
        };
        let mut run = Run::new(program)
            .args(first)
            .args(args)
            .dir("/")
            .timeout(Duration::from_secs(60));
        for (name, value) in self.env {
            let text = name.to_string_lossy();
            let own = text
                .get(..prefix.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(prefix));
            if own || NEEDED.contains(&text.as_ref()) {
                run = run.env(name, value);
            }
        }
        let fail = |message: String| Error::Client {
            client: client.as_str(),
            message,
        };
        match run.output() {
            Ok(output) if output.status.success() => Ok(Some(Secret::new(output.stdout))),
            // Its messages may quote a URL with a password in it.
            Ok(output) => Err(fail(format!("it ended with {}", output.status))),
            Err(process::Error::NotFound(_)) => Ok(None),
            Err(error) => Err(fail(error.to_string())),
        }
    }
}

/// Text that a client printed.
fn text(client: Client, bytes: &Secret) -> Result<&str, Error> {
    std::str::from_utf8(bytes.expose()).map_err(|_| Error::Client {
        client: client.as_str(),
        message: "what it prints is no UTF-8".into(),
    })
}

fn unreadable(client: Client, what: &str) -> Error {
    Error::Client {
        client: client.as_str(),
        message: format!("its {what} cannot be read"),
    }
}
