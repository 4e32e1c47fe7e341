//! The git program: the one place that starts it, and always the same way.
//!
//! The environment is cleared; hooks, fsmonitor, external diff programs, replacement objects,
//! grafts, lazy fetching, prompts and the `ext` transport are off. What a caller needs beyond that
//! it asks for by name.

use super::error::{Error, show};
use crate::base::process::{Output, Run};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

/// The oldest git that hangar works with: `--no-write-fetch-head`, `push --atomic` with leases and
/// SHA-256 repositories are all there.
pub const MIN_VERSION: (u32, u32) = (2, 30);

/// Settings that hold for every call, before any configuration file.
const SETTINGS: [&str; 9] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.protectHFS=true",
    "core.protectNTFS=true",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.detachedHead=false",
];

/// Variables that a call with the user's configuration keeps: where configuration, credentials and
/// agents are found.
const USER_VARIABLES: [&str; 17] = [
    "HOME",
    "USER",
    "LOGNAME",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_CACHE_HOME",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "SSH_AUTH_SOCK",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "GIT_SSL_CAINFO",
];

/// Variables that say how the network is reached.
const PROXIES: [&str; 8] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
];

/// One call of the git program.
#[derive(Debug, Clone)]
pub struct Git {
    run: Run,
    command: String,
}

impl Git {
    /// A call that reads no configuration of the system or the user.
    pub fn isolated() -> Self {
        Self::base(|run| {
            run.env("GIT_CONFIG_GLOBAL", "/dev/null")
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .env("GIT_ATTR_NOSYSTEM", "1")
        })
        .setting("core.attributesFile=/dev/null")
        .setting("core.excludesFile=/dev/null")
    }

    /// A call that sees the user's configuration and credentials: for their own work tree and for
    /// their remotes.
    pub fn with_user_config() -> Self {
        Self::base(|run| run.inherit(&USER_VARIABLES)).proxies()
    }

    /// Adds the user's proxies, without the rest of their configuration.
    #[must_use]
    pub fn proxies(mut self) -> Self {
        self.run = self.run.inherit(&PROXIES);
        self
    }

    fn base(environment: impl FnOnce(Run) -> Run) -> Self {
        let run = Run::new("git")
            .inherit(&["PATH", "TMPDIR"])
            .env("LC_ALL", "C")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_GRAFT_FILE", "/dev/null")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_PAGER", "cat")
            .env("GIT_EDITOR", "false");
        let git = Self {
            run: environment(run),
            command: String::new(),
        };
        SETTINGS
            .iter()
            .fold(git, |git, setting| git.setting(setting))
    }

    /// Sets one configuration value for this call (`key=value`).
    #[must_use]
    pub fn setting(mut self, setting: &str) -> Self {
        self.run = self.run.arg("-c").arg(setting);
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        self.run = self.run.env(key, value);
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.run = self.run.dir(dir);
        self
    }

    /// Adds the subcommand and its arguments.
    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        for arg in args {
            if self.command.is_empty() {
                self.command = arg.as_ref().to_string_lossy().into_owned();
            }
            self.run = self.run.arg(arg);
        }
        self
    }

    /// Bytes for standard input.
    #[must_use]
    pub fn stdin(mut self, bytes: Vec<u8>) -> Self {
        self.run = self.run.stdin(bytes);
        self
    }

    /// Wall-clock limit (default ten minutes).
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.run = self.run.timeout(timeout);
        self
    }

    /// Runs it and returns status and both streams, whatever the status.
    pub fn output(self) -> Result<Output, Error> {
        Ok(self.run.output()?)
    }

    /// Runs it; an exit status other than 0 is an error with git's own words. Returns standard
    /// output.
    pub fn run(self) -> Result<Vec<u8>, Error> {
        let command = self.command.clone();
        let out = self.run.output()?;
        if out.status.success() {
            return Ok(out.stdout);
        }
        Err(Error::Program {
            command,
            message: message(&out),
        })
    }
}

/// What git said, for people: the first lines, escaped, without addresses' passwords.
pub(super) fn message(out: &Output) -> String {
    let text = out.stderr_text();
    let lines: Vec<_> = text
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with("hint:"))
        .take(3)
        .map(|line| show(hide_password(&line.replace('\t', " ")).as_bytes()))
        .collect();
    if lines.is_empty() {
        return out.status.to_string();
    }
    lines.join("; ")
}

/// `https://user:secret@host` → `https://…@host`.
pub(super) fn hide_password(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let end = after
            .find(|c: char| c == '/' || c.is_whitespace() || c == '\'' || c == '"')
            .unwrap_or(after.len());
        let (host, tail) = after.split_at(end);
        match host.rsplit_once('@') {
            Some((_, host)) => {
                out.push_str("…@");
                out.push_str(host);
            }
            None => out.push_str(host),
        }
        rest = tail;
    }
    out.push_str(rest);
    out
}

/// The version of the git program: major, minor, and the whole text.
pub fn version() -> Result<(u32, u32, String), Error> {
    let out = Git::isolated()
        .args(["--version"])
        .timeout(Duration::from_secs(10))
        .run()?;
    let text = String::from_utf8_lossy(&out).trim().to_owned();
    let number = text.strip_prefix("git version ").unwrap_or(&text);
    let mut parts = number.split('.').map(|part| part.parse::<u32>().ok());
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(major), Some(minor)) => Ok((major, minor, number.to_owned())),
        _ => Err(Error::Program {
            command: "--version".into(),
            message: show(text.as_bytes()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_new_enough_to_test_with() {
        let (major, minor, _) = version().unwrap();
        assert!((major, minor) >= MIN_VERSION);
    }

    #[test]
    fn passwords_in_addresses_are_not_shown() {
        assert_eq!(
            hide_password("fatal: unable to access 'https://me:tok@h.example/r.git/': no"),
            "fatal: unable to access 'https://…@h.example/r.git/': no"
        );
    }
}
