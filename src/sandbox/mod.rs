//! Sandboxes: what is asked for, what holds it, and what was measured.
//!
//! Owns namespaces, Landlock, seccomp, limits and the probes. Must not know what a test, a task or
//! an agent is: it runs argument lists on mounts. Docs: `docs/threat-model.md`.
//!
//! A caller asks [`providers`] or [`provider`] for a [`Provider`], hands it a [`spec::Spec`], and
//! believes of what held only what [`Provider::probe`] measured.

mod check;
pub mod error;
pub mod linux;
pub mod none;
pub mod probe;
mod program;
pub mod spec;
pub mod toolchain;

pub use error::{Error, Unavailable};
pub use none::None;
pub use probe::Probes;

use crate::model::image::Image;
use spec::{Outcome, Spec};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Hidden subcommand under which this binary is the launcher.
const LAUNCHER_COMMAND: &str = "__sandbox";
/// Hidden subcommand under which this binary, inside a sandbox, tries to get out.
const PROBE_COMMAND: &str = "__probe";

/// HOME inside every sandbox.
pub const HOME: &str = "/home/user";

/// Whether the arguments of this process (without the program) ask for a hidden subcommand of the
/// sandbox. Then [`launcher_main`] is the whole program.
pub fn is_launcher(mut args: impl Iterator<Item = OsString>) -> bool {
    args.next()
        .is_some_and(|arg| arg == LAUNCHER_COMMAND || arg == PROBE_COMMAND)
}

/// The hidden subcommands. Must be called before this process has a second thread.
pub fn launcher_main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|arg| arg == PROBE_COMMAND) {
        return probe::inside::main(args.next().as_deref());
    }
    linux::launcher_main(args)
}

/// What sandboxes are started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    /// Path of the program that is started as the launcher: a hangar binary.
    pub program: PathBuf,
    /// The image of providers that make containers.
    pub image: Option<Image>,
}

impl Default for Launcher {
    /// This very program, and no image.
    fn default() -> Self {
        Self {
            program: PathBuf::from("/proc/self/exe"),
            image: Option::None,
        }
    }
}

/// Something that runs a [`Spec`].
pub trait Provider: Send + Sync {
    /// Its name in configuration and grades.
    fn name(&self) -> &'static str;

    /// What exactly ran, for the record: version of the provider and of what it rests on.
    fn version(&self) -> String;

    /// Whether it works on this machine, tried for real.
    fn check(&self) -> Result<(), Unavailable>;

    /// Runs `spec` to its end. When this returns, also with an error, everything inside is dead.
    fn run(
        &self,
        spec: &Spec,
        cancel: &Cancel,
        events: &mut dyn FnMut(Event),
    ) -> Result<Outcome, Error>;

    /// Measures what a twin of the sandbox of `spec` holds: the same mounts, network and user,
    /// without its files and steps, and with limits small enough to be exceeded at no cost.
    fn probe(&self, spec: &Spec, cancel: &Cancel) -> Result<Probes, Error>;
}

/// Every provider, in the order of choice. `none` is last and only used when asked for by name.
pub fn providers(launcher: &Launcher) -> Vec<Box<dyn Provider>> {
    let none: Box<dyn Provider> = Box::new(None);
    linux::providers(launcher).chain([none]).collect()
}

/// The provider of that name.
pub fn provider(name: &str, launcher: &Launcher) -> Option<Box<dyn Provider>> {
    providers(launcher)
        .into_iter()
        .find(|provider| provider.name() == name)
}

/// Why a provider that can be named is not part of this version.
pub fn absent(name: &str) -> Option<Unavailable> {
    let (provider, lacks) = match name {
        "landlock" => (
            "landlock",
            "without namespaces every file lies at its own path on this machine, while the parts of \
             a grade have fixed places (`/src`, `/r`, `/prepared`), and other processes stay in sight",
        ),
        "kubernetes" => ("kubernetes", "grades run on this machine only"),
        _ => return Option::None,
    };
    Some(Unavailable {
        provider,
        reason: format!("it is not part of this version: {lacks}"),
        remedy:
            "use `linux`; `bwrap` where only that program may make user namespaces; or `podman` \
                 or `docker` where none may"
                .to_owned(),
    })
}

/// User and group id, on the host, of programs in sandboxes. Folders that a sandbox may change
/// ([`spec::Mount::ReadWrite`], and the top of a [`spec::Mount::Scratch`]) must belong to them.
pub fn owner() -> (u32, u32) {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    if uid.is_root() {
        (linux::NOBODY, linux::NOBODY)
    } else {
        (uid.as_raw(), gid.as_raw())
    }
}

/// Keeps the memory of this process out of core dumps and out of reach of other processes of the
/// same user. For a process that handles test bodies or keys; the launcher does so by itself.
pub fn protect_memory() -> std::io::Result<()> {
    use rustix::process::{DumpableBehavior, Resource, Rlimit};
    // One byte: see the launcher.
    let bound = Rlimit {
        current: Some(1),
        maximum: rustix::process::getrlimit(Resource::Core).maximum,
    };
    // A hard bound below that is as good.
    let _ = rustix::process::setrlimit(Resource::Core, bound);
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// A flag that ends a run: everything inside dies and the run returns [`Error::Interrupted`].
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Ends the run. Safe in a signal handler.
    pub fn set(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// The flag itself, for whoever registers signal handlers.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// Whether the run was cancelled.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// What happens while a sandbox runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The step with this index starts.
    Started(usize),
    /// A line of standard output, without its end.
    Stdout(Vec<u8>),
    /// A line of standard error, without its end.
    Stderr(Vec<u8>),
    /// The step with this index ended.
    Ended(usize),
}
