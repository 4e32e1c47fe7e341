//! The provider `bwrap`: the bubblewrap program makes the walls, hangar's own supervisor works in
//! them.
//!
//! For machines that let that program make user namespaces and no other (AppArmor on some
//! distributions). Every mount point is made in a tmpfs of bubblewrap's own, before anything of a
//! tree is there, so no link in a tree can lead it elsewhere, whatever the version.

mod line;
mod pinned;
mod walls;

use super::cgroup::Group;
use super::fault::{Doing as _, Fault};
use super::handover::Handover;
use super::launcher::{self, Stop};
use super::provider::Kind;
use super::wire::Receiver;
use super::{codec, host, inside, sys};
use crate::sandbox::program::Program;
use crate::sandbox::spec::{Outcome, Spec};
use crate::sandbox::{Cancel, Error, Event, LAUNCHER_COMMAND, Launcher};
use rustix::fd::AsRawFd as _;
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior};
use std::convert::Infallible;
use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

/// The name in configuration and grades, and the word after the hidden subcommand.
pub(super) const WORD: &str = "bwrap";
const PROGRAM: Program = Program {
    provider: WORD,
    name: "bwrap",
    package: "bubblewrap",
};

pub(super) const KIND: Kind = Kind {
    name: WORD,
    program: Some(PROGRAM),
    image: false,
    ready: |_| PROGRAM.find().map(drop),
    remedy,
    beside: |_| 0,
    run,
};

fn run(
    launcher: &Launcher,
    spec: &Spec,
    cancel: &Cancel,
    events: &mut dyn FnMut(Event),
) -> Result<Outcome, Error> {
    let program = PROGRAM.find()?.into_os_string();
    host::Start {
        provider: WORD,
        launcher,
        words: &[WORD.into(), program],
        copies: 1,
        dies_of_memory: false,
    }
    .run(spec, cancel, events)
}

/// What would help, by the program's own words.
fn remedy(reason: &str) -> Option<String> {
    let text = if reason.contains("Unknown option") {
        "this bubblewrap is too old: install version 0.8.0 or later"
    } else if reason.contains("setuid mode") {
        "this bubblewrap is installed set-user-ID: allow user namespaces and take that bit away, \
         or use another provider"
    } else if reason.contains("uid map") || reason.contains("new namespace") {
        "the kernel refuses user namespaces to bubblewrap too: allow them (on Ubuntu \
         `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`, until the next boot, or \
         an AppArmor profile for bwrap), or use another provider"
    } else {
        return None;
    };
    Some(text.to_owned())
}

/// The hidden subcommand: reads the specification and becomes `program`.
pub(super) fn main(program: Option<OsString>) -> ExitCode {
    launcher::serve(|control| {
        let Some(program) = program else {
            return Err(Stop::Gone);
        };
        become_program(control, &program)?;
        Ok(())
    })
}

fn become_program(control: &UnixStream, program: &OsString) -> Result<Infallible, Fault> {
    launcher::calm()?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).doing("hide memory")?;
    rustix::process::umask(Mode::empty());
    many_descriptors();
    let mut spec =
        codec::receive_spec(&mut Receiver::new(control)).doing("read the specification")?;
    let (line, copies) = walls::of(&mut spec)?;
    let (group, fallback) = Group::make(&spec.limits)?;
    let handover = Handover {
        spec,
        copies,
        group,
        fallback,
    };
    let memory = handover.write()?;
    let options = line.finish()?;
    let text = |bytes: &[u8]| CString::new(bytes).map_err(|_| Errno::INVAL);
    let argv = [
        b"bwrap".as_slice(),
        b"--args",
        options.as_raw_fd().to_string().as_bytes(),
        b"--",
        inside::SUPERVISOR.as_bytes(),
        LAUNCHER_COMMAND.as_bytes(),
        inside::WORD.as_bytes(),
        memory.as_raw_fd().to_string().as_bytes(),
    ]
    .map(text)
    .into_iter()
    .collect::<Result<Vec<_>, _>>()
    .doing("start bwrap")?;
    let program = text(program.as_bytes()).doing("start bwrap")?;
    Err(sys::exec(&program, &argv, &[])).doing("start bwrap")
}

/// Each file that is laid by the program is a descriptor until then.
fn many_descriptors() {
    let maximum = rustix::process::getrlimit(Resource::Nofile).maximum;
    // Fewer may be enough.
    let _ = rustix::process::setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    );
}
