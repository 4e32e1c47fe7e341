//! This machine: its keys, its sandbox provider, its programs and folders.

use super::Error;
use super::claim::Holding;
use crate::config::user::User;
use crate::harness::ledger::Ledger;
use crate::model::digest::Digest;
use crate::model::outcome::Trust;
use crate::sandbox::spec::{Outcome, Spec};
use crate::sandbox::{Cancel, Event, Provider};
use crate::seal::Identity;
use crate::trust::{MachineKey, MachineRole};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// What a step says while it works. Never a test body, a test id or a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// A stage began, with a few words for people.
    Stage(String),
    /// Something worth a line that stays on the screen.
    Note(String),
    /// A line that an agent program or a package client wrote.
    Output(String),
}

/// What every step of the flow needs of this machine.
pub struct Host<'a> {
    /// Signs claims, stages and runs.
    pub worker: MachineKey,
    /// Signs base checks, manifests and grades; opens sealed tests.
    pub grader: MachineKey,
    /// Where sandboxes come from.
    pub provider: Box<dyn Provider>,
    /// Least trust that a grade of this command needs, beside what plan and policy ask for.
    pub require: Trust,
    /// This very program, seen by sandboxes that need a part of it.
    pub binary: PathBuf,
    /// The user's configuration.
    pub user: User,
    /// The user's environment, from which agent programs get variables by name.
    pub env: BTreeMap<OsString, OsString>,
    /// The folder of the machine keys: `$XDG_DATA_HOME/hangar/<repo id>`.
    pub data: PathBuf,
    /// `$XDG_CACHE_HOME/hangar`.
    pub cache: PathBuf,
    /// Health of the agent programs.
    pub health: Ledger,
    /// Set when the person wants to stop.
    pub cancel: Cancel,
    /// Where progress goes.
    pub progress: &'a dyn Fn(Progress),
    /// The task that this process has claimed; set by `claim`.
    pub holding: RefCell<Option<Holding>>,
}

impl std::fmt::Debug for Host<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host")
            .field("provider", &self.provider.name())
            .field("cache", &self.cache)
            .finish_non_exhaustive()
    }
}

impl Host<'_> {
    /// Loads both machine keys of a repository from its data folder.
    pub fn keys(data: &std::path::Path) -> Result<(MachineKey, MachineKey), Error> {
        Ok((
            MachineKey::load(data, MachineRole::Worker)?,
            MachineKey::load(data, MachineRole::Grader)?,
        ))
    }

    /// The grader key as what opens sealed tests.
    pub fn grader_identity(&self) -> Result<Identity, Error> {
        Identity::openssh(self.grader.secret(), &mut || None).map_err(|error| {
            Error::missing(
                format!("the grader key can't open sealed tests: {error}"),
                "run `hangar doctor`",
            )
        })
    }

    /// Says that a stage began.
    pub fn stage(&self, text: impl Into<String>) {
        (self.progress)(Progress::Stage(text.into()));
    }

    /// Says something that stays.
    pub fn note(&self, text: impl Into<String>) {
        (self.progress)(Progress::Note(text.into()));
    }

    /// Runs a sandbox without showing what its programs write.
    pub fn run_silent(&self, spec: &Spec) -> Result<Outcome, Error> {
        Ok(self.provider.run(spec, &self.cancel, &mut |_| {})?)
    }

    /// Runs a sandbox and shows what its programs write.
    pub fn run_shown(&self, spec: &Spec) -> Result<Outcome, Error> {
        let progress = self.progress;
        let mut show = |event: Event| {
            if let Event::Stdout(line) | Event::Stderr(line) = event {
                progress(Progress::Output(
                    String::from_utf8_lossy(&line).into_owned(),
                ));
            }
        };
        Ok(self.provider.run(spec, &self.cancel, &mut show)?)
    }

    /// Stops where the person asked for it.
    pub fn check_cancel(&self) -> Result<(), Error> {
        if self.cancel.is_set() {
            Err(Error::Interrupted)
        } else {
            Ok(())
        }
    }

    /// Folder for what is kept between runs under a name made from `parts`.
    pub fn cache_folder(&self, kind: &str, parts: &[&[u8]]) -> PathBuf {
        let mut bytes = Vec::new();
        for part in parts {
            bytes.extend((part.len() as u64).to_be_bytes());
            bytes.extend(*part);
        }
        self.cache.join(kind).join(Digest::of(&bytes).hex())
    }
}
