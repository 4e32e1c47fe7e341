//! Kind `command`: any program. The exchange directory is the whole contract.
//!
//! It gets its role in `HANGAR_ROLE` beside `HANGAR_EXCHANGE`, nothing on standard input, and the
//! work tree as its directory. It has done its turn when it exits with 0; whether what it left is
//! any good is for the caller's checks.

use super::Error;
use super::adapter::Bind;
use super::adapter::{self, Adapter, Ended, Finish, Health, Launch, Settings, Turn};
use super::program::{self, Program};
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Word of the kind.
pub const KIND: &str = "command";

/// Where programs are looked for inside, after an interpreter's own folder.
const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

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

    fn check(&self) -> Health {
        match self.program(None) {
            Ok(_) => Health::Ok { version: None },
            Err(error) => Health::Missing {
                message: match std::error::Error::source(&error) {
                    Some(source) => format!("{error}: {source}"),
                    None => error.to_string(),
                },
            },
        }
    }

    fn launch(&self, turn: &Turn<'_>) -> Result<Launch, Error> {
        let home = turn.env.get(std::ffi::OsStr::new("HOME")).map(Path::new);
        let program = self.program(home)?;
        let mut env = adapter::environment(&self.name, &self.harness.env, turn)?;
        env.set("HANGAR_ROLE", turn.role.as_str());
        for (name, value) in [
            ("HANGAR_MODEL", &self.harness.model),
            ("HANGAR_EFFORT", &self.effort),
        ] {
            if let Some(value) = value {
                env.set(name, value);
            }
        }
        let mut path = OsString::new();
        if let Some(dir) = &program.path {
            path.push(dir);
            path.push(":");
        }
        path.push(SYSTEM_PATH);
        env.set("PATH", path);
        let mut read_only = program.binds;
        read_only.extend(self.harness.read.iter().map(Bind::same));
        Ok(Launch {
            argv: self.harness.command.iter().map(OsString::from).collect(),
            env,
            stdin: Vec::new(),
            read_only,
            hosts: self.harness.hosts.clone(),
            total: turn.total,
            idle: Some(turn.idle),
        })
    }

    fn read(&self, ended: &Ended<'_>) -> Finish {
        Finish::of_exit(ended.exit)
    }
}
