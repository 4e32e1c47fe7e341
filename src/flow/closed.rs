//! What no agent is shown, whatever the configuration of the user binds: keys, and what leads to them.
//!
//! That no way led to a key or to the sealed tests is what a run's `secrecy` says. The sandbox shows only
//! what is listed, so the list is what has to be looked at.

use super::Error;
use super::host::Host;
use crate::config::paths::Paths;
use crate::sandbox::spec::Mount;
use crate::store::Store;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Sockets whose other side does as it is told, with the rights of the user or of root.
const SOCKETS: &[&str] = &[
    "/run/docker.sock",
    "/run/podman/podman.sock",
    "/var/run/docker.sock",
];
/// Folders below the home of a user that hold keys.
const OF_KEYS: &[&str] = &[".ssh", ".gnupg", ".config/age", ".config/sops"];

/// Fails where one of `mounts` shows a closed place, or a part of one.
pub(super) fn check(
    host: &Host<'_>,
    store: &Store,
    who: &str,
    mounts: &[Mount],
) -> Result<(), Error> {
    let places = places(host, store);
    let shown = mounts.iter().filter_map(|mount| match mount {
        Mount::ReadOnly { host, .. } => Some(real(host)),
        Mount::ReadWrite { .. } | Mount::Scratch { .. } => None,
    });
    for path in shown {
        let place = places.iter().find(|place| place.meets(&path));
        if let Some(place) = place {
            return Err(Error::refused(
                format!(
                    "{who} would be shown {} ({}) by {}",
                    place.path.display(),
                    place.what,
                    path.display()
                ),
                "name narrower paths in `harness.NAME.read`, `harness.NAME.command` and `toolchain` of your \
                 configuration",
            ));
        }
    }
    Ok(())
}

/// A place on this machine that stays closed.
struct Place {
    path: PathBuf,
    what: &'static str,
    /// Whether the place is closed with all that lies in it; otherwise it may only not be shown as a whole.
    whole: bool,
}

impl Place {
    fn meets(&self, shown: &Path) -> bool {
        self.path.starts_with(shown) || (self.whole && shown.starts_with(&self.path))
    }
}

fn places(host: &Host<'_>, store: &Store) -> Vec<Place> {
    let mut places = Vec::new();
    let mut add = |path: PathBuf, what, whole| {
        places.push(Place {
            path: real(&path),
            what,
            whole,
        });
    };
    let repository = "the repository, with the sealed tests";
    add(store.repo.common_dir().to_owned(), repository, true);
    add(store.repo.git_dir().to_owned(), repository, true);
    if let Ok(paths) = Paths::from_env(&host.env) {
        add(paths.data, "keys of this machine", true);
        add(paths.config_file, "your configuration", true);
    }
    if let Some(key) = store.repo.config_value("user.signingKey")
        && Path::new(&key).is_absolute()
    {
        add(key.into(), "your signing key", true);
    }
    let of_env = |name: &str| host.env.get(OsStr::new(name)).map(PathBuf::from);
    if let Some(home) = of_env("HOME").filter(|home| home.is_absolute()) {
        for folder in OF_KEYS {
            add(home.join(folder), "keys of yours", true);
        }
        add(home, "your home", false);
    }
    if let Some(socket) = of_env("SSH_AUTH_SOCK").filter(|socket| socket.is_absolute()) {
        add(socket, "your SSH agent", true);
    }
    for socket in SOCKETS {
        add(socket.into(), "a container engine", true);
    }
    places
}

/// The path without links, as far as it exists.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_met_from_above_and_from_within() {
        let place = |whole| Place {
            path: "/home/alice".into(),
            what: "",
            whole,
        };
        for (shown, whole, expected) in [
            ("/", false, true),
            ("/home", false, true),
            ("/home/alice", false, true),
            ("/home/alice/bin", false, false),
            ("/home/alice/bin", true, true),
            ("/home/alicia", true, false),
        ] {
            assert_eq!(
                place(whole).meets(Path::new(shown)),
                expected,
                "{shown} {whole}"
            );
        }
    }
}
