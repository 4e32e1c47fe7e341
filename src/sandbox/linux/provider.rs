//! Every provider in which hangar's own supervisor works, and what each does in its own way.

use super::{NOBODY, OWN_PROGRAM, bwrap, container, gvisor, host};
use crate::sandbox::error::{Error, Unavailable};
use crate::sandbox::probe::{Probes, outside};
use crate::sandbox::program::Program;
use crate::sandbox::spec::{End, Limits, Network, Outcome, Spec, Step};
use crate::sandbox::{Cancel, Event, Launcher, Provider};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// How one provider differs from the others.
pub(super) struct Kind {
    /// The name in configuration and grades.
    pub(super) name: &'static str,
    /// The program of others that makes the walls.
    pub(super) program: Option<Program>,
    /// Whether programs come from the user's image instead of this machine's `/usr`.
    pub(super) image: bool,
    /// Whether everything is there to start a sandbox with.
    pub(super) ready: fn(&Launcher) -> Result<(), Unavailable>,
    /// What would help where the walls could not be made for this reason, when the provider knows
    /// better than the message.
    pub(super) remedy: fn(&str) -> Option<String>,
    /// Bytes that the bound on memory leaves for what is not the programs'.
    pub(super) beside: fn(&Spec) -> u64,
    /// Runs a specification to its end.
    pub(super) run: Runs,
}

/// The function that runs a specification.
type Runs = fn(&Launcher, &Spec, &Cancel, &mut dyn FnMut(Event)) -> Result<Outcome, Error>;

/// The embedded provider.
const LINUX: Kind = Kind {
    name: "linux",
    program: None,
    image: false,
    ready: |_| Ok(()),
    remedy: |_| None,
    beside: |_| 0,
    run: |launcher, spec, cancel, events| {
        host::Start {
            provider: LINUX.name,
            launcher,
            words: &[],
            copies: 1,
            dies_of_memory: false,
        }
        .run(spec, cancel, events)
    },
};

/// In the order of choice.
const KINDS: [&Kind; 5] = [
    &LINUX,
    &bwrap::KIND,
    &container::PODMAN,
    &container::DOCKER,
    &gvisor::KIND,
];

/// A provider in whose sandboxes hangar's own supervisor works.
struct Supervised {
    kind: &'static Kind,
    launcher: Launcher,
}

/// All of them, in the order of choice.
pub(in crate::sandbox) fn providers(
    launcher: &Launcher,
) -> impl Iterator<Item = Box<dyn Provider>> {
    KINDS.into_iter().map(|kind| -> Box<dyn Provider> {
        Box::new(Supervised {
            kind,
            launcher: launcher.clone(),
        })
    })
}

impl Provider for Supervised {
    fn name(&self) -> &'static str {
        self.kind.name
    }

    /// Version of hangar's supervisor, of the kernel, and of the program that makes the walls; and
    /// the image.
    fn version(&self) -> String {
        let system = rustix::system::uname();
        let release = system.release().to_string_lossy();
        let own = format!("{} linux {release}", env!("CARGO_PKG_VERSION"));
        let program = self.kind.program;
        let program = program.map(|program| program.version(&["--version"]));
        let image = self.launcher.image.as_ref().filter(|_| self.kind.image);
        let image = image.map(ToString::to_string);
        let parts: Vec<_> = [Some(own), program, image].into_iter().flatten().collect();
        parts.join(", ")
    }

    fn check(&self) -> Result<(), Unavailable> {
        (self.kind.ready)(&self.launcher)?;
        check(self).map_err(|unavailable| Unavailable {
            remedy: (self.kind.remedy)(&unavailable.reason).unwrap_or(unavailable.remedy),
            ..unavailable
        })
    }

    fn probe(&self, spec: &Spec, cancel: &Cancel) -> Result<Probes, Error> {
        let program = PathBuf::from(OWN_PROGRAM);
        outside::run(self, program, (self.kind.beside)(spec), spec, cancel)
    }

    fn run(
        &self,
        spec: &Spec,
        cancel: &Cancel,
        events: &mut dyn FnMut(Event),
    ) -> Result<Outcome, Error> {
        (self.kind.run)(&self.launcher, spec, cancel, events)
    }
}

/// Whether this process is root where no other user is: programs could not become one.
fn is_alone() -> bool {
    let lacks = |map: &str| std::fs::read_to_string(map).is_ok_and(|map| !maps(&map, NOBODY));
    rustix::process::geteuid().is_root()
        && (lacks("/proc/self/uid_map") || lacks("/proc/self/gid_map"))
}

/// Whether a map of ids (user_namespaces(7): first inside, first outside, how many) has this one inside.
fn maps(map: &str, id: u32) -> bool {
    map.lines().any(|line| {
        let mut numbers = line.split_whitespace().map(str::parse::<u64>);
        let (Some(Ok(first)), Some(Ok(_)), Some(Ok(count))) =
            (numbers.next(), numbers.next(), numbers.next())
        else {
            return false;
        };
        (first..first.saturating_add(count)).contains(&u64::from(id))
    })
}

/// Whether `provider` works: makes a sandbox and starts in it a program that is not there.
fn check(provider: &dyn Provider) -> Result<(), Unavailable> {
    if is_alone() {
        return Err(Unavailable {
            provider: provider.name(),
            reason: format!(
                "this is root of a user namespace in which there is no user {NOBODY} to run \
                 programs as"
            ),
            remedy: "run hangar outside of it, as an ordinary user or as root; or map a range of \
                     users into it (`unshare --map-auto`, `podman unshare`)"
                .to_owned(),
        });
    }
    let spec = Spec {
        mounts: Vec::new(),
        files: Vec::new(),
        network: Network::None,
        limits: Limits::default(),
        inner_domain: true,
        hash_after: Vec::new(),
        collect: Vec::new(),
        steps: vec![Step {
            argv: vec!["/run/none".into()],
            env: BTreeMap::new(),
            dir: "/".into(),
            stdin: Vec::new(),
            channel: false,
            timeout: host::SLACK,
            idle: None,
        }],
        stop_on_failure: false,
        deadline: None,
    };
    let unavailable = |reason: String| Unavailable {
        provider: provider.name(),
        reason,
        remedy: "see the other providers".to_owned(),
    };
    match provider.run(&spec, &Cancel::default(), &mut |_| {}) {
        Ok(outcome) => {
            let step = outcome.steps.into_iter().next().unwrap_or_default();
            match step.end {
                // Everything was made and only the program is not there.
                End::NotStarted(libc::ENOENT) => Ok(()),
                other => {
                    let words = String::from_utf8_lossy(&step.stderr);
                    let words = words.trim();
                    Err(unavailable(format!(
                        "a program ended with {other:?} {words}"
                    )))
                }
            }
        }
        Err(Error::Unavailable(unavailable)) => Err(unavailable),
        Err(error) => {
            let cause = std::error::Error::source(&error)
                .map_or_else(String::new, |source| format!(": {source}"));
            Err(unavailable(format!("{error}{cause}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::maps;

    #[test]
    fn a_map_of_ids_says_which_users_there_are() {
        let host = "         0          0 4294967295\n";
        let own = "         0       1000          1\n";
        let ranges = "0 1000 1\n1 100000 65536\n";
        for (map, id, expected) in [
            (host, 65_534, true),
            (own, 0, true),
            (own, 65_534, false),
            (ranges, 65_534, true),
            (ranges, 65_537, false),
            ("", 0, false),
            ("no numbers", 0, false),
        ] {
            assert_eq!(maps(map, id), expected, "{map:?} {id}");
        }
    }
}
