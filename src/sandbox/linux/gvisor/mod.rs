//! The provider `gvisor`: the program `runsc` runs a kernel of its own in user space, and hangar's own
//! supervisor works on it.
//!
//! No descriptor passes into that kernel but the supervisor's own socket. What it can't do is refused:
//! a bridge to a socket of the host.

mod bundle;

use super::cgroup::{self, Group};
use super::fault::{Doing as _, Fault};
use super::launcher::{self, Stop};
use super::provider::Kind;
use super::wire::Receiver;
use super::{codec, host, inside, sys};
use crate::base::temp::Folder;
use crate::sandbox::program::Program;
use crate::sandbox::spec::{Limits, Network, Outcome, Spec};
use crate::sandbox::{Cancel, Error, Event, Launcher};
use rustix::io::Errno;
use std::convert::Infallible;
use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;

/// The name in configuration and grades, and the word after the hidden subcommand.
pub(super) const WORD: &str = "gvisor";
const PROGRAM: Program = Program {
    provider: WORD,
    name: "runsc",
    package: "runsc",
};
/// What gVisor itself takes of the memory that its control group bounds.
const KERNEL_MEMORY: u64 = 192 << 20;

pub(super) const KIND: Kind = Kind {
    name: WORD,
    program: Some(PROGRAM),
    image: false,
    ready: |_| PROGRAM.find().map(drop),
    remedy: |_| None,
    beside: |_| KERNEL_MEMORY,
    run,
};

fn run(
    launcher: &Launcher,
    spec: &Spec,
    cancel: &Cancel,
    events: &mut dyn FnMut(Event),
) -> Result<Outcome, Error> {
    let program = PROGRAM.find()?.into_os_string();
    refuse(spec)?;
    let folder = Folder::new(WORD, 0o711).map_err(Error::Start)?;
    bundle::write(folder.path(), spec)?;
    let outcome = host::Start {
        provider: WORD,
        launcher,
        words: &[WORD.into(), program, folder.path().into()],
        // Once for the launcher, and once for its part inside.
        copies: 2,
        dies_of_memory: true,
    }
    .run(spec, cancel, events);
    // The launcher became another program, which does not know of them.
    cgroup::sweep_all();
    outcome
}

fn refuse(spec: &Spec) -> Result<(), Error> {
    if spec.network == Network::None {
        return Ok(());
    }
    Err(Error::Unsupported {
        provider: WORD,
        what: "lead connections out to a socket of the host".to_owned(),
    })
}

/// The hidden subcommand: bounds itself and becomes `program` over the bundle in `folder`.
pub(super) fn main(program: Option<OsString>, folder: Option<OsString>) -> ExitCode {
    launcher::serve(|control| {
        let (Some(program), Some(folder)) = (program, folder) else {
            return Err(Stop::Gone);
        };
        become_program(control, &program, Path::new(&folder))?;
        Ok(())
    })
}

fn become_program(
    control: &UnixStream,
    program: &OsString,
    folder: &Path,
) -> Result<Infallible, Fault> {
    launcher::calm()?;
    let spec = codec::receive_spec(&mut Receiver::new(control)).doing("read the specification")?;
    let limits = Limits {
        memory: spec
            .limits
            .memory
            .map(|bytes| bytes.saturating_add(KERNEL_MEMORY)),
        cpus: spec.limits.cpus,
        ..Limits::default()
    };
    let (group, _) = Group::make(&limits)?;
    let held = group.as_ref().map_or(0, Group::controllers);
    if let Some(group) = &group {
        group.join()?;
    }
    bundle::complete(folder, held).doing("write the bundle")?;
    let state = folder.join("state");
    let mut words = vec![
        b"runsc".to_vec(),
        [b"--root=".as_slice(), state.as_os_str().as_bytes()].concat(),
        b"--network=none".to_vec(),
        b"--ignore-cgroups".to_vec(),
    ];
    if !rustix::process::geteuid().is_root() {
        words.push(b"--rootless".to_vec());
    }
    words.extend([
        b"run".to_vec(),
        b"--bundle".to_vec(),
        folder.as_os_str().as_bytes().to_vec(),
    ]);
    // The name must be this sandbox's own on the whole machine.
    words.push(folder.file_name().unwrap_or_default().as_bytes().to_vec());
    let text = |bytes: Vec<u8>| CString::new(bytes).map_err(|_| Errno::INVAL);
    let argv = words
        .into_iter()
        .map(text)
        .collect::<Result<Vec<_>, _>>()
        .doing("start runsc")?;
    let program = text(program.as_bytes().to_vec()).doing("start runsc")?;
    // It is for whoever sweeps: this process is in it until its end.
    std::mem::forget(group);
    Err(sys::exec(&program, &argv, &[])).doing("start runsc")
}

/// The arguments of the supervisor inside.
fn supervisor(held: u64) -> [String; 4] {
    [
        inside::SUPERVISOR.to_owned(),
        crate::sandbox::LAUNCHER_COMMAND.to_owned(),
        inside::APART.to_owned(),
        held.to_string(),
    ]
}
