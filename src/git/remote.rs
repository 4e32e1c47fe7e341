//! Other repositories: listing, fetching and pushing refs with the git program, so that
//! credentials, ssh and proxies work as the user set them.
//!
//! Refspecs are always given in full; nothing is pruned, no tag follows, no configured refspec or
//! maintenance runs.

use super::error::{Error, show};
use super::program::{Git, message};
use super::refs::{Expected, check_ref_name};
use super::repository::Repository;
use crate::model::object_id::ObjectId;
use std::time::Duration;

/// One ref to push, and where it must be on the remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Full name on the remote.
    pub name: String,
    /// Where the remote must have it.
    pub expected: Expected,
    /// What it becomes; `None` deletes it.
    pub new: Option<ObjectId>,
}

/// What came of a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PushOutcome {
    /// The remote has everything.
    Done,
    /// These refs were elsewhere than expected (or the remote refused them): (name, reason). With a
    /// server that knows atomic pushes nothing was changed.
    Rejected(Vec<(String, String)>),
}

impl Repository {
    /// The configured remote with this address.
    pub fn remote_at(&self, address: &str) -> Result<Option<String>, Error> {
        for name in self.inner.remote_names() {
            let name = name.to_string();
            let url = self.config_value(&format!("remote.{name}.url"));
            if url.as_deref() == Some(address) {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// Refs of the remote that match a pattern such as `refs/hangar/*`, sorted by name.
    pub fn list_remote(
        &self,
        remote: &str,
        patterns: &[&str],
        timeout: Duration,
    ) -> Result<Vec<(String, ObjectId)>, Error> {
        check_remote(remote)?;
        let out = self
            .remote_git(timeout)
            .args(["ls-remote", "--refs", "--", remote])
            .args(patterns)
            .run()?;
        let mut refs = Vec::new();
        for line in String::from_utf8_lossy(&out).lines() {
            let Some((id, name)) = line.split_once('\t') else {
                continue;
            };
            if let (Ok(id), Ok(())) = (id.parse(), check_ref_name(name)) {
                refs.push((name.to_owned(), id));
            }
        }
        refs.sort();
        Ok(refs)
    }

    /// Fetches by these refspecs (`+refs/hangar/*:refs/hangar-remote/origin/*`) and nothing else.
    /// Every object is checked before it is taken in.
    pub fn fetch(&self, remote: &str, refspecs: &[&str], timeout: Duration) -> Result<(), Error> {
        check_remote(remote)?;
        self.remote_git(timeout)
            .setting("transfer.fsckObjects=true")
            .setting("fetch.fsckObjects=true")
            .args([
                "fetch",
                "--quiet",
                "--no-tags",
                "--no-write-fetch-head",
                "--refmap=",
                "--no-prune",
                "--no-auto-maintenance",
                "--no-recurse-submodules",
                "--",
                remote,
            ])
            .args(refspecs)
            .run()?;
        self.refresh_packed(true)
    }

    /// Pushes these refs in one go, each only if the remote has it where expected.
    pub fn push(
        &self,
        remote: &str,
        leases: &[Lease],
        timeout: Duration,
    ) -> Result<PushOutcome, Error> {
        check_remote(remote)?;
        for lease in leases {
            check_ref_name(&lease.name)?;
        }
        if leases.is_empty() {
            return Ok(PushOutcome::Done);
        }
        match self.push_once(remote, leases, timeout, true) {
            Err(Error::Program { message, .. }) if message.contains("atomic") => {
                self.push_once(remote, leases, timeout, false)
            }
            result => result,
        }
    }

    fn push_once(
        &self,
        remote: &str,
        leases: &[Lease],
        timeout: Duration,
        atomic: bool,
    ) -> Result<PushOutcome, Error> {
        let mut args = vec![
            "push".to_owned(),
            "--porcelain".into(),
            "--no-follow-tags".into(),
        ];
        args.push("--recurse-submodules=no".into());
        if atomic {
            args.push("--atomic".into());
        }
        for lease in leases {
            let at = match lease.expected {
                Expected::Absent => String::new(),
                Expected::At(id) => id.to_string(),
            };
            args.push(format!("--force-with-lease={}:{at}", lease.name));
        }
        args.extend(["--".into(), remote.to_owned()]);
        for lease in leases {
            let new = lease.new.map(|id| id.to_string()).unwrap_or_default();
            args.push(format!("{new}:{}", lease.name));
        }
        let out = self.remote_git(timeout).args(args).output()?;
        let rejected = rejected(&String::from_utf8_lossy(&out.stdout));
        if out.status.success() {
            Ok(PushOutcome::Done)
        } else if rejected.is_empty() {
            Err(Error::Program {
                command: "push".into(),
                message: message(&out),
            })
        } else {
            Ok(PushOutcome::Rejected(rejected))
        }
    }

    fn remote_git(&self, timeout: Duration) -> Git {
        Git::with_user_config()
            .env("GIT_DIR", self.git_dir())
            // A relative address in the configuration counts from the root of the work tree.
            .dir(self.work_tree().unwrap_or_else(|| self.git_dir()))
            .timeout(timeout)
    }
}

/// Lines of `push --porcelain` that begin with `!`: (ref on the remote, reason).
fn rejected(porcelain: &str) -> Vec<(String, String)> {
    porcelain
        .lines()
        .filter_map(|line| {
            let mut fields = line.strip_prefix("!\t")?.splitn(2, '\t');
            let (_, name) = fields.next()?.rsplit_once(':')?;
            let reason = fields.next().unwrap_or_default();
            Some((name.to_owned(), show(reason.as_bytes())))
        })
        .collect()
}

/// A remote is a name or an address that git does not take for an option or a command.
fn check_remote(remote: &str) -> Result<(), Error> {
    let invalid = |why| Error::Invalid {
        what: "remote",
        name: show(remote.as_bytes()),
        why,
    };
    if remote.is_empty() || remote.starts_with('-') {
        return Err(invalid("is empty or begins with `-`"));
    }
    if remote.bytes().any(|byte| byte.is_ascii_control()) {
        return Err(invalid("holds control characters"));
    }
    if remote.contains("::") {
        return Err(invalid("names a remote helper program"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_is_never_an_option_or_a_command() {
        for remote in ["", "--upload-pack=x", "ext::sh -c x", "a\nb"] {
            assert!(check_remote(remote).is_err(), "{remote:?}");
        }
        for remote in [
            "origin",
            "https://h.example/r.git",
            "git@h.example:o/r",
            "/srv/my repo",
        ] {
            assert!(check_remote(remote).is_ok(), "{remote}");
        }
    }

    #[test]
    fn rejections_are_read_from_the_porcelain() {
        let text = "To /r\n!\tabc:refs/hangar/a\t[rejected] (stale info)\n=\tx:refs/b\t[up to date]\nDone\n";
        assert_eq!(
            rejected(text),
            [(
                "refs/hangar/a".to_owned(),
                "[rejected] (stale info)".to_owned()
            )]
        );
    }
}
