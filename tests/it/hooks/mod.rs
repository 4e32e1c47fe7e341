//! Hooks of a clone and of a server, called by the real git program.

mod install;
mod local;
mod page;
mod push;
mod receive;
pub(crate) mod server;
mod unseen;
mod way_out;

use crate::common::git::git_run;
use crate::common::{Ran, TestEnv};
use std::path::Path;

/// `PATH` with the tested binary in front.
pub(crate) fn path() -> String {
    let bin = Path::new(env!("CARGO_BIN_EXE_hangar")).parent().unwrap();
    format!("{}:{}", bin.display(), std::env::var("PATH").unwrap())
}

/// `PATH` without the folders in which a hangar is installed.
pub(crate) fn path_without_hangar() -> String {
    let path = std::env::var_os("PATH").unwrap();
    let without = |dir: &std::path::PathBuf| !dir.join("hangar").exists();
    let dirs = std::env::split_paths(&path).filter(without);
    std::env::join_paths(dirs).unwrap().into_string().unwrap()
}

/// What git said, and whether it did what it was asked.
pub(crate) struct Said {
    pub(crate) done: bool,
    pub(crate) text: String,
}

impl Said {
    #[track_caller]
    pub(crate) fn done(&self) -> &Self {
        assert!(self.done, "{}", self.text);
        self
    }

    /// Refused, and one line says that of this ref.
    #[track_caller]
    pub(crate) fn refused(&self, name: &str, why: &str) -> &Self {
        assert!(!self.done, "{}", self.text);
        let own = format!("hangar: {name}: ");
        let mut lines = self.text.lines().filter(|line| line.contains(&own));
        let line = lines.next().unwrap_or_default();
        assert!(
            line.contains(why),
            "no line of {name} says `{why}`:\n{}",
            self.text
        );
        assert_eq!(lines.next(), None, "{}", self.text);
        self
    }
}

/// Git with a hangar on `PATH`, in a repository whose user configures nothing.
pub(crate) fn said(dir: &Path, args: &[&str]) -> Said {
    said_with(dir, args, &path())
}

/// The same with this `PATH`.
pub(crate) fn said_with(dir: &Path, args: &[&str], path: &str) -> Said {
    let out = git_run(dir, args).env("PATH", path).output().unwrap();
    Said {
        done: out.status.success(),
        text: String::from_utf8_lossy(&out.stdout).into_owned() + &out.stderr_text(),
    }
}

impl TestEnv {
    /// Git as this user, with a hangar on `PATH`.
    pub(crate) fn git_said(&self, dir: &Path, args: &[&str]) -> Said {
        let mut command = self.command("git", dir);
        let out = command.env("PATH", path()).args(args).output().unwrap();
        let text = [out.stdout, out.stderr].concat();
        Said {
            done: out.status.success(),
            text: String::from_utf8_lossy(&text).into_owned(),
        }
    }

    /// Hangar where Git's hooks find it.
    pub(crate) fn hangar_found(&self, dir: &Path, args: &[&str]) -> Ran {
        self.hangar_with(dir, args, &[("PATH", &path())], "")
    }
}
