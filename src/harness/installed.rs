//! What the adapters of particular programs share: where the program is, what it logs in with, and
//! the part of a launch that is the same for all.

use super::Error;
use super::adapter::{Environment, Health, Launch, Settings, Turn};
use super::program::{self, Program};
use super::variables::{are_set, environment};
use crate::base::process::{self, Run};
use crate::base::temp::Folder;
use crate::model::endpoint::Endpoint;
use crate::model::lane::HarnessSettings;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

/// How long a program may take to say its version.
const VERSION_LIMIT: Duration = Duration::from_secs(15);
/// Longest version that is taken.
const MAX_VERSION: usize = 40;

/// What is known of a program.
#[derive(Debug)]
pub(super) struct Facts {
    /// Its file on `PATH`.
    pub(super) program: &'static str,
    /// How to get it.
    pub(super) get: &'static str,
    /// Variables one of which it logs in with.
    pub(super) credentials: &'static [&'static str],
    /// Further variables of the user's that it gets where they are set.
    pub(super) variables: &'static [&'static str],
    /// How to log in.
    pub(super) login: &'static str,
}

/// One harness whose program is known.
#[derive(Debug)]
pub(super) struct Installed {
    facts: &'static Facts,
    name: String,
    pub(super) settings: HarnessSettings,
    pub(super) effort: Option<String>,
    version: OnceLock<Option<String>>,
}

impl Installed {
    pub(super) fn new(facts: &'static Facts, settings: &Settings<'_>) -> Self {
        Self {
            facts,
            name: settings.name.to_owned(),
            settings: settings.harness.clone(),
            effort: settings.effort.map(Into::into),
            version: OnceLock::new(),
        }
    }

    /// The program: the first word of `command`, else what `PATH` has.
    pub(super) fn program(&self, home: Option<&Path>) -> Result<Program, Error> {
        let path = match self.settings.command.first() {
            Some(named) => PathBuf::from(named),
            None => {
                process::find(Path::new(self.facts.program)).ok_or_else(|| Error::NotInstalled {
                    harness: self.name.clone(),
                    program: self.facts.program,
                    get: self.facts.get,
                })?
            }
        };
        program::locate(&path, home).map_err(|source| self.unusable(path, source))
    }

    fn unusable(&self, path: PathBuf, source: io::Error) -> Error {
        Error::Program {
            harness: self.name.clone(),
            path,
            source,
        }
    }

    /// Whether the program, and something to log in with, is there.
    pub(super) fn check(&self, env: &Environment) -> Health {
        let read =
            |program: Program| program::with_read(&self.name, program.binds, &self.settings.read);
        let found = self.program(None).and_then(read);
        Health::of(found.and_then(|_| self.credential(env)))
    }

    /// A harness that names variables of its own knows what it logs in with.
    fn credential(&self, env: &Environment) -> Result<(), Error> {
        are_set(&self.name, &self.settings.env, env)?;
        let set = |name: &&str| {
            env.get(OsStr::new(name))
                .is_some_and(|value| !value.is_empty())
        };
        if !self.settings.env.is_empty() || self.facts.credentials.iter().any(set) {
            return Ok(());
        }
        Err(Error::NoCredential {
            harness: self.name.clone(),
            login: self.facts.login,
        })
    }

    /// What the program says to `--version`. Asked once.
    pub(super) fn version(&self) -> Result<Option<String>, Error> {
        if let Some(known) = self.version.get() {
            return Ok(known.clone());
        }
        let program = self.program(None)?;
        let fail = |source| self.unusable(program.start.clone(), source);
        let home = Folder::new("version", 0o700).map_err(fail)?;
        let folders = program.path.iter().map(PathBuf::as_path);
        let system = ["/usr/local/bin", "/usr/bin", "/bin"].map(Path::new);
        let path = std::env::join_paths(folders.chain(system)).unwrap_or_default();
        let output = Run::new(&program.start)
            .arg("--version")
            .env("HOME", home.path())
            .env("PATH", path)
            .dir(home.path())
            .timeout(VERSION_LIMIT)
            .output()
            .map_err(|error| fail(io::Error::other(error)))?;
        if !output.status.success() {
            let text = super::stream::line(&output.stderr_text());
            return Err(fail(io::Error::other(format!("it does not start: {text}"))));
        }
        let version = version_in(&String::from_utf8_lossy(&output.stdout));
        Ok(self.version.get_or_init(|| version).clone())
    }

    /// How a person gives it something to log in with.
    pub(super) const fn login(&self) -> &'static str {
        self.facts.login
    }

    /// Names of the variables of the user's that it gets where they are set.
    pub(super) fn variables(&self) -> Vec<String> {
        let known = self.facts.credentials.iter().chain(self.facts.variables);
        let known = known.map(|name| (*name).to_owned());
        known.chain(self.settings.env.iter().cloned()).collect()
    }

    /// The launch of a program with these arguments after the user's own. It may reach `hosts`, unless
    /// the user named others.
    pub(super) fn launch(
        &self,
        turn: &Turn<'_>,
        arguments: Vec<OsString>,
        hosts: Vec<Endpoint>,
    ) -> Result<Launch, Error> {
        let home = turn.env.get(OsStr::new("HOME")).map(Path::new);
        let program = self.program(home)?;
        self.credential(turn.env)?;
        let mut env = environment(&self.name, &self.settings.env, turn)?;
        for name in self.facts.credentials.iter().chain(self.facts.variables) {
            if let Some(value) = turn
                .env
                .get(OsStr::new(name))
                .filter(|value| !value.is_empty())
            {
                env.pass(name, value);
            }
        }
        let mut argv = vec![program.start.into_os_string()];
        argv.extend(self.settings.command.iter().skip(1).map(OsString::from));
        argv.extend(arguments);
        let read_only = program::with_read(&self.name, program.binds, &self.settings.read)?;
        Ok(Launch {
            argv,
            env,
            path: program.path,
            stdin: turn.prompt.as_bytes().to_vec(),
            read_only,
            files: Vec::new(),
            hosts: if self.settings.hosts.is_empty() {
                hosts
            } else {
                self.settings.hosts.clone()
            },
            total: turn.total,
            idle: Some(turn.idle),
        })
    }
}

/// The first word that begins like a version.
fn version_in(text: &str) -> Option<String> {
    let begins = |word: &&str| {
        let word = word.strip_prefix('v').unwrap_or(word);
        word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.')
    };
    let word = text.split_whitespace().find(begins)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '_');
    (word.len() <= MAX_VERSION && word.chars().all(plain)).then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::files::write_atomic;

    static FACTS: Facts = Facts {
        program: "no-such-agent-here",
        get: "npm install agent",
        credentials: &["AGENT_KEY"],
        variables: &["AGENT_URL"],
        login: "make a key",
    };

    fn installed(dir: &Path, text: &str, env: &[&str]) -> Installed {
        let file = dir.join("agent");
        write_atomic(&file, text.as_bytes(), 0o755).unwrap();
        let harness = HarnessSettings {
            command: vec![file.display().to_string()],
            env: env.iter().map(|name| (*name).to_owned()).collect(),
            ..HarnessSettings::default()
        };
        let settings = Settings {
            name: "agent",
            harness: &harness,
            effort: None,
        };
        Installed::new(&FACTS, &settings)
    }

    #[test]
    fn a_version_is_a_short_plain_word() {
        for (text, version) in [
            ("2.1.197 (Claude Code)\n", Some("2.1.197")),
            ("codex-cli 0.171.0\n", Some("0.171.0")),
            ("agent v1.2-beta", Some("v1.2-beta")),
            ("agent 1.2\u{1b}[31m", None),
            ("no version", None),
        ] {
            assert_eq!(version_in(text).as_deref(), version, "{text:?}");
        }
    }

    #[test]
    fn it_is_asked_for_its_version_with_an_empty_home_and_no_variable() {
        let dir = tempfile::tempdir().unwrap();
        let text = "#!/bin/sh\n[ -z \"$(ls \"$HOME\" | grep -v lock)\" ] || exit 1\n\
                    [ \"$(env | cut -d= -f1 | grep -v -e HOME -e PATH -e PWD -e SHLVL -e _)\" = '' ] || exit 1\n\
                    echo agent 3.4.5\n";
        let agent = installed(dir.path(), text, &[]);
        assert_eq!(agent.version().unwrap().as_deref(), Some("3.4.5"));
        let broken = installed(dir.path(), "#!/bin/sh\necho lost >&2; exit 1\n", &[]);
        let error = broken.version().unwrap_err();
        let why = std::error::Error::source(&error).unwrap().to_string();
        assert_eq!(why, "it does not start: lost");
    }

    #[test]
    fn without_a_program_or_a_credential_it_says_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let agent = installed(dir.path(), "#!/bin/sh\n", &[]);
        let missing = |health| match health {
            Health::Missing { message } => message,
            Health::Ok => String::new(),
        };
        let said = missing(agent.check(&Environment::new()));
        assert!(
            said.ends_with("nothing to log in with: make a key"),
            "{said}"
        );
        let empty = [("AGENT_KEY".into(), "".into())].into();
        assert!(matches!(agent.check(&empty), Health::Missing { .. }));
        let key: Environment = [("AGENT_KEY".into(), "k".into())].into();
        assert_eq!(agent.check(&key), Health::Ok);
        let own = installed(dir.path(), "#!/bin/sh\n", &["MINE"]);
        let said = missing(own.check(&key));
        assert!(said.contains("`MINE`, which is not set"), "{said}");
        assert_eq!(own.check(&[("MINE".into(), "k".into())].into()), Health::Ok);
        let harness = HarnessSettings::default();
        let settings = Settings {
            name: "agent",
            harness: &harness,
            effort: None,
        };
        let said = missing(Installed::new(&FACTS, &settings).check(&key));
        assert!(
            said.contains("is not on PATH") && said.contains("npm install agent"),
            "{said}"
        );
    }
}
