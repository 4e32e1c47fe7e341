//! The inner Landlock domain: what the stepped program and all it starts live in.
//!
//! pid 1 and the launcher stay outside. A process in the domain can't trace, signal or open the
//! memory of one outside, nor reach an abstract Unix socket made outside. The file rules are a
//! second wall behind the mounts.

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, PathBeneath, Ruleset,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, Scope,
};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::path::Path;

/// The newest interface that these rules make use of.
const NEWEST: ABI = ABI::V6;

/// Enters the domain. `writable` are absolute paths that may be changed, where they exist.
pub(super) fn enter<'path>(writable: impl IntoIterator<Item = &'path Path>) -> Result<(), Errno> {
    let open = |path: &Path| -> Result<OwnedFd, Errno> {
        rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
    };
    let refused = |_| Errno::INVAL;
    let mut rules = ruleset().map_err(refused)?;
    let root = open(Path::new("/"))?;
    let read = AccessFs::from_read(NEWEST);
    rules = rules
        .add_rule(PathBeneath::new(root.as_fd(), read))
        .map_err(refused)?;
    for path in writable {
        let place = match open(path) {
            Ok(place) => place,
            Err(Errno::NOENT) => continue,
            Err(errno) => return Err(errno),
        };
        let stat = rustix::fs::fstat(&place)?;
        let folder = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir();
        let access = if folder {
            AccessFs::from_all(NEWEST)
        } else {
            AccessFs::from_file(NEWEST)
        };
        rules = rules
            .add_rule(PathBeneath::new(place.as_fd(), access))
            .map_err(refused)?;
    }
    rules.restrict_self().map(drop).map_err(refused)
}

fn ruleset() -> Result<RulesetCreated, landlock::RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::AbstractUnixSocket | Scope::Signal)?
        .create()
}

/// The kernel's Landlock interface; 0 when there is none.
pub(super) fn abi() -> u32 {
    super::sys::landlock_abi()
}
