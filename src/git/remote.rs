//! Other repositories: listing, fetching and pushing refs with the git program, so that
//! credentials, ssh and proxies work as the user set them.
//!
//! Refspecs are always given in full; nothing is pruned, no tag follows, no configured refspec or
//! maintenance runs.

use super::durable::SYNC_EACH;
use super::error::{Error, show};
use super::program::{Git, hide_password, message};
use super::refs::{Expected, check_ref_name};
use super::rejected::Rejected;
use super::repository::{ObjectFormat, Repository};
use super::trouble::RemoteTrouble;
use crate::base::process::{self, Output};
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
    /// Some refs were elsewhere than expected, or the remote refused them. With a server that knows
    /// atomic pushes nothing was changed.
    Rejected(Rejected),
}

impl Repository {
    /// Names of the configured remotes, sorted.
    pub fn remote_names(&self) -> Vec<String> {
        let names = self.inner.remote_names();
        names.iter().map(ToString::to_string).collect()
    }

    /// The configured remote with this address.
    pub fn remote_at(&self, address: &str) -> Result<Option<String>, Error> {
        for name in self.remote_names() {
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
        let git = self.remote_git(timeout);
        let git = git.args(["ls-remote", "--refs", "--", remote]);
        let out = talk(remote, timeout, git.args(patterns))?;
        let mut refs = Vec::new();
        for line in String::from_utf8_lossy(&out).lines() {
            let Some((id, name)) = line.split_once('\t') else {
                continue;
            };
            if let (Ok(id), Ok(())) = (id.parse::<ObjectId>(), check_ref_name(name)) {
                self.check_format(remote, id)?;
                refs.push((name.to_owned(), id));
            }
        }
        refs.sort();
        Ok(refs)
    }

    /// Git moves no objects between repositories that name them by different hashes.
    fn check_format(&self, remote: &str, id: ObjectId) -> Result<(), Error> {
        let own = self.object_format();
        let is_long = id.as_bytes().len() == 32;
        if is_long == (own == ObjectFormat::Sha256) {
            return Ok(());
        }
        let (remote, own) = (shown(remote), own.name());
        Err(Error::Unsupported(format!(
            "{remote} names objects by another hash than this repository ({own}): Git exchanges nothing between the two"
        )))
    }

    /// Fetches by these refspecs (`+refs/hangar/*:refs/hangar-remote/origin/*`) and nothing else.
    /// Every object is checked before it is taken in, comes whole also into a partial clone, and is on
    /// disk before a ref names it. The refs are on disk when this returns; a power cut before may
    /// tear one ([`Repository::drop_torn_refs`]). [`Error::Conflict`] or [`Error::Busy`] where another process
    /// of this repository was at one of the refs here: trying again is safe.
    pub fn fetch(&self, remote: &str, refspecs: &[&str], timeout: Duration) -> Result<(), Error> {
        check_remote(remote)?;
        // Each of many refs by itself takes longer than everything else.
        let many = refspecs.len() > SYNC_EACH || refspecs.iter().any(|spec| spec.contains('*'));
        let git = self
            .remote_git(timeout)
            .setting("transfer.fsckObjects=true")
            .setting("fetch.fsckObjects=true")
            .setting(if many {
                "core.fsync=objects,-reference"
            } else {
                "core.fsync=committed"
            })
            .args([
                "fetch",
                "--quiet",
                "--no-tags",
                "--no-filter",
                "--no-write-fetch-head",
                "--refmap=",
                "--no-prune",
                "--no-auto-maintenance",
                "--no-recurse-submodules",
                "--",
                remote,
            ]);
        let out = answer(remote, timeout, git.args(refspecs))?;
        if !out.status.success() {
            let overtaken = self.overtaken(&out.stderr_text());
            return Err(overtaken.unwrap_or_else(|| refused(remote, &out)));
        }
        if many {
            self.sync_everything()?;
        }
        self.refresh_packed(true)
    }

    /// What git could not fetch since a ref here moved or was locked meanwhile says nothing about the remote.
    fn overtaken(&self, said: &str) -> Option<Error> {
        let (name, locked) = lost_lock(said)?;
        let name = name.to_owned();
        Some(if locked {
            let lock = self.common_dir().join(format!("{name}.lock"));
            Error::Busy { name, lock }
        } else {
            let actual = self.read_ref(&name).ok().flatten();
            Error::Conflict { name, actual }
        })
    }

    /// Pushes these refs in one go, each only if the remote has it where expected.
    pub fn push(
        &self,
        remote: &str,
        leases: &[Lease],
        timeout: Duration,
    ) -> Result<PushOutcome, Error> {
        match self.push_whole(remote, leases, timeout)? {
            Some(outcome) => Ok(outcome),
            None => self.push_once(remote, leases, timeout, false),
        }
    }

    /// The same, all of them or none. `None` where the server can't do that; nothing was pushed then.
    pub fn push_whole(
        &self,
        remote: &str,
        leases: &[Lease],
        timeout: Duration,
    ) -> Result<Option<PushOutcome>, Error> {
        check_remote(remote)?;
        for lease in leases {
            check_ref_name(&lease.name)?;
        }
        if leases.is_empty() {
            return Ok(Some(PushOutcome::Done));
        }
        match self.push_once(remote, leases, timeout, true) {
            Err(Error::Remote { message, .. }) if message.contains("does not support --atomic") => {
                Ok(None)
            }
            result => result.map(Some),
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
        let out = answer(remote, timeout, self.remote_git(timeout).args(args))?;
        let rejected = Rejected::of(&out);
        if out.status.success() {
            Ok(PushOutcome::Done)
        } else if rejected.refs.is_empty() {
            Err(refused(remote, &out))
        } else {
            Ok(PushOutcome::Rejected(rejected))
        }
    }

    /// Where a push to this remote goes, as it is configured.
    pub fn push_urls(&self, remote: &str) -> Vec<String> {
        let snapshot = self.inner.config_snapshot();
        let values = |key: &str| {
            let found = snapshot
                .plumbing()
                .strings(format!("remote.{remote}.{key}").as_str());
            let texts = found.unwrap_or_default();
            texts.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let mut urls = values("pushurl");
        if urls.is_empty() {
            urls = values("url");
        }
        if urls.is_empty() {
            urls.push(remote.to_owned());
        }
        urls
    }

    /// The same as git resolves it (`url.BASE.insteadOf`). Asks nobody.
    pub fn push_addresses(&self, remote: &str) -> Result<Vec<String>, Error> {
        check_remote(remote)?;
        let named = self.remote_names().iter().any(|name| name == remote);
        let args: &[&str] = if named {
            &["remote", "get-url", "--push", "--all", "--", remote]
        } else {
            &["ls-remote", "--get-url", "--", remote]
        };
        let out = self.remote_git(LOCAL).args(args).run()?;
        let text = String::from_utf8_lossy(&out);
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// The git program for a remote, with the user's configuration. It never asks a question: nobody
    /// would see it.
    fn remote_git(&self, timeout: Duration) -> Git {
        let git = Git::with_user_config()
            .env("GIT_DIR", self.git_dir())
            // A relative address in the configuration counts from the root of the work tree.
            .dir(self.work_tree().unwrap_or_else(|| self.git_dir()))
            .timeout(timeout);
        let var = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        if var("SSH_ASKPASS").is_some() {
            return git.env("SSH_ASKPASS_REQUIRE", "force");
        }
        let named = match (var("GIT_SSH_COMMAND"), var("GIT_SSH")) {
            (None, Some(_)) => return git,
            (Some(command), _) => Some(command),
            (None, None) => self.config_value("core.sshCommand"),
        };
        match without_questions(named.as_deref().unwrap_or("ssh")) {
            Some(command) => git.env("GIT_SSH_COMMAND", command),
            None => git,
        }
    }
}

/// How long a question may take that git answers by itself.
const LOCAL: Duration = Duration::from_secs(10);

/// Whether a server lets anyone read: it answers without a login, a key or a cookie of this user.
/// `None` where that can't be found out.
pub fn answers_anyone(address: &str, timeout: Duration) -> Option<bool> {
    check_remote(address).ok()?;
    let git = Git::isolated()
        .env("GIT_DIR", "/dev/null")
        .env("GIT_ASKPASS", "false")
        .proxies()
        .setting("credential.helper=")
        .setting("protocol.allow=never")
        .setting("protocol.https.allow=always")
        .setting("protocol.http.allow=always")
        .setting("protocol.git.allow=always")
        .setting("http.followRedirects=initial")
        .dir("/")
        .timeout(timeout)
        .args(["ls-remote", "--quiet", "--", address, "HEAD"]);
    match talk(address, timeout, git) {
        Ok(_) => Some(true),
        Err(Error::Remote { trouble, .. }) => match trouble {
            // Hosts answer so for what exists and is not shown.
            RemoteTrouble::Login | RemoteTrouble::Forbidden | RemoteTrouble::NotThere => {
                Some(false)
            }
            _ => None,
        },
        Err(_) => None,
    }
}

/// An ssh command that fails where it would ask. `None` for programs whose options are not known.
fn without_questions(command: &str) -> Option<String> {
    let program = command.split_whitespace().next()?;
    let name = program.rsplit('/').next()?;
    (name == "ssh").then(|| format!("{command} -o BatchMode=yes"))
}

/// Runs git to its end; a status other than 0 is trouble with the remote.
fn talk(remote: &str, timeout: Duration, git: Git) -> Result<Vec<u8>, Error> {
    let out = answer(remote, timeout, git)?;
    if out.status.success() {
        Ok(out.stdout)
    } else {
        Err(refused(remote, &out))
    }
}

/// Runs git to its end, or to the end of the time that the remote has.
fn answer(remote: &str, timeout: Duration, git: Git) -> Result<Output, Error> {
    match git.output() {
        Err(Error::Process(process::Error::TimedOut { .. })) => Err(Error::Remote {
            remote: shown(remote),
            trouble: RemoteTrouble::Silent,
            message: format!("it was given {} s", timeout.as_secs()),
        }),
        other => other,
    }
}

/// The ref here that git could not move since another process did, and whether it is locked by one still. Not
/// where a name is in the way of another, which does not pass.
fn lost_lock(said: &str) -> Option<(&str, bool)> {
    let (_, rest) = said.split_once("cannot lock ref '")?;
    let (name, why) = rest.split_once("': ")?;
    let moved = ["is at ", "reference already exists", "reference is missing"];
    if why.starts_with("Unable to create '") && why.contains("File exists") {
        return Some((name, true));
    }
    let moved = moved.iter().any(|words| why.starts_with(words));
    moved.then_some((name, false))
}

fn refused(remote: &str, out: &Output) -> Error {
    Error::Remote {
        remote: shown(remote),
        trouble: RemoteTrouble::of(&out.stderr_text()),
        message: message(out),
    }
}

/// A remote's name or address for people: without a password, escaped.
pub fn shown(remote: &str) -> String {
    show(hide_password(remote).as_bytes())
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
    fn a_ref_that_another_process_moved_is_told_from_one_that_can_not_be() {
        let lock = |why: &str| format!("error: cannot lock ref 'refs/a/b': {why}; x");
        for (why, found) in [
            ("is at 1234 but expected 5678", Some(false)),
            ("reference already exists", Some(false)),
            ("reference is missing but expected 5678", Some(false)),
            (
                "Unable to create '/r/refs/a/b.lock': File exists.",
                Some(true),
            ),
            (
                "Unable to create '/r/refs/a/b.lock': Permission denied",
                None,
            ),
            ("'refs/a' exists; cannot create 'refs/a/b'", None),
        ] {
            let found = found.map(|locked| ("refs/a/b", locked));
            assert_eq!(lost_lock(&lock(why)), found, "{why}");
        }
        assert_eq!(lost_lock("fatal: bad object"), None);
    }

    #[test]
    fn a_remote_is_never_an_option_or_a_command() {
        for remote in ["", "--upload-pack=x", "ext::sh -c x", "a\nb"] {
            assert!(check_remote(remote).is_err(), "{remote:?}");
        }
        assert_eq!(
            without_questions("/usr/bin/ssh -i key").as_deref(),
            Some("/usr/bin/ssh -i key -o BatchMode=yes")
        );
        assert_eq!(without_questions("plink -batch"), None);
        for remote in [
            "origin",
            "https://h.example/r.git",
            "git@h.example:o/r",
            "/srv/my repo",
        ] {
            assert!(check_remote(remote).is_ok(), "{remote}");
        }
    }
}
