//! A bare repository that takes nothing unchecked, and a clone with one delivered task.

use super::{Said, path, path_without_hangar, said, said_with};
use crate::common::git::git;
use crate::verify::forge::Forged;
use crate::verify::plot::Plot;
use hangar::base::process::Run;
use std::path::{Path, PathBuf};

pub(crate) const ALL: &str = "refs/hangar/*:refs/hangar/*";
const POLICY: &str = "refs/hangar/policy:refs/hangar/policy";

pub(crate) struct Server {
    pub(crate) forged: Forged,
    pub(crate) hub: PathBuf,
}

/// The binary, as Git's hooks and an administrator run it.
pub(crate) fn hangar(dir: &Path, args: &[&str], lines: &str) -> Said {
    let out = Run::new(env!("CARGO_BIN_EXE_hangar"))
        .env("PATH", path())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HANGAR_NOW", "2026-01-03T00:00:00Z")
        .dir(dir)
        .args(args)
        .stdin(lines.as_bytes().to_vec())
        .output()
        .unwrap();
    Said {
        done: out.status.success(),
        text: String::from_utf8_lossy(&out.stdout).into_owned() + &out.stderr_text(),
    }
}

impl Server {
    /// Nothing is on the server.
    pub(crate) fn empty() -> Self {
        Self::of(Forged::honest())
    }

    pub(crate) fn of(forged: Forged) -> Self {
        let hub = forged.world.dir.path().join("hub.git");
        git(
            forged.world.dir.path(),
            &["init", "-q", "--bare", "hub.git"],
        );
        hangar(&hub, &["hook", "pre-receive", "--install"], "").done();
        let address = hub.to_str().unwrap();
        git(&forged.dir(), &["remote", "add", "origin", address]);
        Self { forged, hub }
    }

    /// The policy is on the server.
    pub(crate) fn founded() -> Self {
        let server = Self::empty();
        server.push(&[POLICY]).done();
        server
    }

    /// Everything is on the server.
    pub(crate) fn full() -> Self {
        let server = Self::of(Forged::new(&Plot::undelivered()));
        server.push(&[ALL]).done();
        server
    }

    pub(crate) fn push(&self, refspecs: &[&str]) -> Said {
        said(
            &self.forged.dir(),
            &[&["push", "origin"], refspecs].concat(),
        )
    }

    pub(crate) fn push_without_hangar(&self, refspecs: &[&str]) -> Said {
        let args = [&["push", "origin"], refspecs].concat();
        said_with(&self.forged.dir(), &args, &path_without_hangar())
    }

    /// Every ref of the server.
    pub(crate) fn refs(&self) -> String {
        git(
            &self.hub,
            &["for-each-ref", "--format=%(refname) %(objectname)"],
        )
    }

    /// What is done to the clone is refused for this ref when it is pushed, by whatever force, and
    /// changes nothing on the server. The ref comes back here to where it was.
    #[track_caller]
    pub(crate) fn refuses(&self, name: &str, why: &str, attack: impl FnOnce()) {
        let (refs, here) = (self.refs(), self.head(name));
        attack();
        self.push(&[&format!("+{name}:{name}")]).refused(name, why);
        assert_eq!(self.refs(), refs);
        match here.as_str() {
            "" => self.forged.git(&["update-ref", "-d", name]),
            here => self.forged.git(&["update-ref", name, here]),
        };
    }

    /// Where a ref is in the clone; empty where it is not.
    pub(crate) fn head(&self, name: &str) -> String {
        self.forged
            .git(&["for-each-ref", "--format=%(objectname)", name])
    }
}
