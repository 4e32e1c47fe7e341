//! Kind `command`: any program. The exchange directory is the whole contract.
//!
//! It gets its role in `HANGAR_ROLE` beside `HANGAR_EXCHANGE`, nothing on standard input, and the
//! work tree as its directory. It has done its turn when it exits with 0; whether what it left is
//! any good is for the caller's checks.

use super::Error;
use super::adapter::{Adapter, Environment, Health, Launch, Settings, Turn};
use super::finish::{Ended, Finish};
use super::program::{self, Program};
use super::variables::{self, environment};
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Word of the kind.
pub const KIND: &str = "command";

#[derive(Debug)]
struct Command {
    name: String,
    harness: crate::model::lane::HarnessSettings,
    effort: Option<String>,
}

/// Makes the adapter.
pub fn build(settings: &Settings<'_>) -> Result<Box<dyn Adapter>, Error> {
    let first = settings.harness.command.first();
    if !first.is_some_and(|program| Path::new(program).is_absolute()) {
        return Err(Error::Settings {
            harness: settings.name.to_owned(),
            message: format!("kind `{KIND}` needs `command = [\"/absolute/path/of/program\", …]`"),
        });
    }
    Ok(Box::new(Command {
        name: settings.name.to_owned(),
        harness: settings.harness.clone(),
        effort: settings.effort.map(Into::into),
    }))
}

impl Command {
    fn program(&self, home: Option<&Path>) -> Result<Program, Error> {
        let path = Path::new(self.harness.command.first().map_or("", String::as_str));
        program::locate(path, home).map_err(|source| Error::Program {
            harness: self.name.clone(),
            path: path.to_owned(),
            source,
        })
    }
}

impl Adapter for Command {
    fn kind(&self) -> &'static str {
        KIND
    }

    /// The file itself, so that a link or a second name of it makes no second harness.
    fn identity(&self) -> Result<String, Error> {
        let program = self.program(None)?;
        let meta = program
            .canonical
            .metadata()
            .map_err(|source| Error::Program {
                harness: self.name.clone(),
                path: program.canonical.clone(),
                source,
            })?;
        Ok(format!("{KIND} file {}:{}", meta.dev(), meta.ino()))
    }

    fn check(&self, env: &Environment) -> Health {
        let set = || variables::are_set(&self.name, &self.harness.env, env);
        let read =
            |program: Program| program::with_read(&self.name, program.binds, &self.harness.read);
        Health::of(self.program(None).and_then(read).and_then(|_| set()))
    }

    fn variables(&self) -> Vec<String> {
        self.harness.env.clone()
    }

    fn launch(&self, turn: &Turn<'_>) -> Result<Launch, Error> {
        let home = turn.env.get(std::ffi::OsStr::new("HOME")).map(Path::new);
        let program = self.program(home)?;
        let mut env = environment(&self.name, &self.harness.env, turn)?;
        env.set("HANGAR_ROLE", turn.role.as_str());
        for (name, value) in [
            ("HANGAR_MODEL", &self.harness.model),
            ("HANGAR_EFFORT", &self.effort),
        ] {
            if let Some(value) = value {
                env.set(name, value);
            }
        }
        let arguments = self.harness.command.iter().skip(1).map(OsString::from);
        let read_only = program::with_read(&self.name, program.binds, &self.harness.read)?;
        Ok(Launch {
            argv: [program.start.into()]
                .into_iter()
                .chain(arguments)
                .collect(),
            env,
            path: program.path,
            stdin: Vec::new(),
            read_only,
            files: Vec::new(),
            hosts: self.harness.hosts.clone(),
            total: turn.total,
            idle: Some(turn.idle),
        })
    }

    fn read(&self, ended: &Ended<'_>) -> Finish {
        Finish::of_exit(ended.exit)
    }
}
