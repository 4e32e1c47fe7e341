//! Which remote a command means, and who can read it.

use super::{Error, Here};
use crate::config::env_vars;
use crate::git::{RemoteTrouble, Repository, answers_anyone, shown_remote};
use crate::store::policy::PolicyHistory;
use crate::store::remotes::{self, Readers};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a server may take to say whether it answers without a login.
const PATIENCE: Duration = Duration::from_secs(10);

/// Hosts that show a public repository below the same path by https, where ssh never does without a
/// login.
const ALSO_HTTPS: [&str; 4] = ["github.com", "gitlab.com", "codeberg.org", "bitbucket.org"];

/// The remote that a command without a name means: what the environment or the user's configuration
/// names, else the policy's arbiter, else the only one, else `origin`.
pub(super) fn chosen(
    here: &Here,
    repo: &Repository,
    policy: Option<&PolicyHistory>,
) -> Result<String, Error> {
    if let Some(name) = here.var(env_vars::HANGAR_REMOTE) {
        return Ok(name.to_string_lossy().into_owned());
    }
    if let Some(name) = here.user_remote()? {
        return Ok(name);
    }
    let arbiter = policy.map(|policy| policy.newest().members.arbiter.as_str());
    if let Some(address) = arbiter.filter(|address| !address.is_empty()) {
        let name = repo.remote_at(address)?;
        return Ok(name.unwrap_or_else(|| address.to_owned()));
    }
    let names = repo.remote_names();
    match names.as_slice() {
        [one] => Ok(one.clone()),
        names if names.is_empty() || names.iter().any(|name| name == "origin") => {
            Ok("origin".to_owned())
        }
        _ => Err(Error::WhichRemote(names)),
    }
}

/// What helps against trouble with a remote.
pub fn remedies(trouble: RemoteTrouble) -> Vec<String> {
    let helps: &[&str] = match trouble {
        RemoteTrouble::Login => &[
            "hangar never asks for a password: load the key with `ssh-add`, or let git remember the login (`git help credentials`)",
            "`git fetch` with the same remote, in a terminal, shows what is missing",
        ],
        RemoteTrouble::HostKey => &[
            "connect once by hand (`ssh -T HOST`) and compare the fingerprint with what its operator publishes",
        ],
        RemoteTrouble::Forbidden => &["ask whoever runs the remote for the right to do this"],
        RemoteTrouble::NotThere => {
            &["`git remote -v` shows the address; without a login some hosts say this too"]
        }
        RemoteTrouble::Away | RemoteTrouble::Silent => {
            &["what is here stays; run it again when the remote answers"]
        }
        RemoteTrouble::Other => &["what is here stays; running it again is safe"],
    };
    helps.iter().map(|text| (*text).to_owned()).collect()
}

/// Finds out who can read a remote, once for each address, and warns where anyone can. `None` where it
/// did not answer.
pub(super) fn readers(here: &Here, repo: &Repository, remote: &str) -> Option<Readers> {
    let urls = repo.push_urls(remote);
    let known = remotes::readers(repo, remote, &urls);
    let found = match known {
        Some(known) => known,
        None => all_readers(repo, &repo.push_addresses(remote).ok()?)?,
    };
    if known.is_none() {
        remotes::note_readers(repo, remote, &urls, found);
        if found == Readers::Anyone {
            here.notices.say(&format!(
                "anyone who reaches `{}` can read it: titles, texts, comments, patches and grades are \
                 as public as it is; hidden tests are encrypted (said once)",
                shown_remote(remote)
            ));
        }
    }
    Some(found)
}

/// The widest circle of several addresses. One that did not answer is asked again another time.
fn all_readers(repo: &Repository, addresses: &[String]) -> Option<Readers> {
    let each = addresses.iter().map(|address| readers_of(repo, address));
    let each: Vec<Option<Readers>> = each.collect();
    for worst in [Some(Readers::Anyone), None, Some(Readers::Unknown)] {
        if each.contains(&worst) {
            return worst;
        }
    }
    Some(Readers::Restricted)
}

fn readers_of(repo: &Repository, address: &str) -> Option<Readers> {
    if let Some(path) = local_path(repo, address) {
        return Some(if everybody_reads(&path) {
            Readers::Anyone
        } else {
            Readers::Restricted
        });
    }
    let Some(address) = open_address(address) else {
        return Some(Readers::Unknown);
    };
    match answers_anyone(&address, PATIENCE) {
        Some(true) => Some(Readers::Anyone),
        Some(false) => Some(Readers::Restricted),
        None if address.starts_with("git:") => Some(Readers::Unknown),
        None => None,
    }
}

/// The folder that an address names, where it is one of this machine.
fn local_path(repo: &Repository, address: &str) -> Option<PathBuf> {
    let plain = address.strip_prefix("file://").unwrap_or(address);
    let scheme = plain.contains("://");
    // git reads `host:path` as ssh, unless a slash stands before the colon.
    let ssh = plain
        .split_once(':')
        .is_some_and(|(host, _)| !host.contains('/'));
    if scheme || (ssh && plain == address) {
        return None;
    }
    let root = repo.work_tree().unwrap_or_else(|| repo.git_dir());
    Some(root.join(plain))
}

/// Whether every user of this machine can read the repository in this folder, by its mode bits.
fn everybody_reads(path: &Path) -> bool {
    let Ok(path) = path.canonicalize() else {
        return false;
    };
    let has = |path: &Path, bits: u32| path.metadata().is_ok_and(|meta| meta.mode() & bits == bits);
    let git_dir = path.join(".git");
    let root = if git_dir.is_dir() { git_dir } else { path };
    let entered = root.ancestors().all(|folder| has(folder, 0o001));
    entered && has(&root.join("HEAD"), 0o004) && has(&root.join("objects"), 0o005)
}

/// The address at which the same repository may be read without a login; no password in it.
fn open_address(address: &str) -> Option<String> {
    let (scheme, rest) = match address.split_once("://") {
        Some((scheme, rest)) => (scheme, rest.to_owned()),
        None => ("ssh", address.replacen(':', "/", 1)),
    };
    let (authority, path) = rest.split_once('/')?;
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    match scheme {
        "http" | "https" | "git" => Some(format!("{scheme}://{host}/{path}")),
        "ssh" | "git+ssh" | "ssh+git" => {
            let name = host.split(':').next().unwrap_or(host);
            let known = ALSO_HTTPS.contains(&name);
            known.then(|| format!("https://{name}/{}", path.trim_start_matches('/')))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_address_holds_no_login() {
        for (address, open) in [
            (
                "https://me:token@h.example/r.git",
                Some("https://h.example/r.git"),
            ),
            ("git://h.example/r", Some("git://h.example/r")),
            ("git@github.com:o/r.git", Some("https://github.com/o/r.git")),
            (
                "ssh://git@github.com:22/o/r",
                Some("https://github.com/o/r"),
            ),
            ("git@h.example:o/r.git", None),
            ("ssh://h.example/o/r", None),
        ] {
            assert_eq!(open_address(address).as_deref(), open, "{address}");
        }
    }
}
