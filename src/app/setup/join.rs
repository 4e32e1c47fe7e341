//! A clone whose policy exists already: found here or on the remote, pinned, and the line by which
//! an admin adds the caller.

use super::{config_file, person};
use crate::app::here::choose;
use crate::app::{Error, Here, remote};
use crate::git::{self, Expected, Repository};
use crate::model::ids::Principal;
use crate::model::policy::Actor;
use crate::store::identity::holder;
use crate::store::layout::Layout;
use crate::store::sync::{self, Wanted};
use crate::store::{self, Store, pins, policy};
use crate::trust::{Candidate, MachineKey, MachineRole, Source};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long the remote may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The policy of this clone, fetched from the remote where the clone has none, and the name of that
/// remote. `None` when neither has one. With `new`, a remote that does not answer is taken to have none.
pub(super) fn find(
    here: &Here,
    repo: &Repository,
    layout: Layout,
    new: bool,
) -> Result<Option<(Store, Option<String>)>, Error> {
    let mut fetched_from = None;
    if repo.read_ref(&layout.policy())?.is_none() {
        fetched_from = fetch(here, repo, &layout, new)?;
        if fetched_from.is_none() {
            return Ok(None);
        }
    }
    // Fetching moved refs behind the back of the open repository.
    let repo = repo.reopen()?;
    let Some(policy) = policy::load(&repo, &layout)? else {
        return Ok(None);
    };
    pins::check(&repo, &policy)?;
    if pins::pinned(&repo)?.is_none() {
        policy.decided()?;
    }
    let store = Store {
        repo,
        layout,
        policy: Arc::new(policy),
        clock: here.clock,
        heard: here.notices.reading(),
        brought: here.notices.brought(),
        offline: here.offline,
    };
    Ok(Some((store, fetched_from)))
}

/// Puts the remote's policy into place, where it has one that verifies; the remote's name.
fn fetch(
    here: &Here,
    repo: &Repository,
    layout: &Layout,
    new: bool,
) -> Result<Option<String>, Error> {
    let remote = remote::chosen(here, repo, None)?;
    let has_remote = repo
        .config_value(&format!("remote.{remote}.url"))
        .is_some_and(|url| !url.is_empty());
    if !has_remote {
        return Ok(None);
    }
    let unreachable = |source| Error::RemoteUnreachable {
        remote: remote.clone(),
        source,
    };
    if here.offline {
        let offline = git::Error::Unsupported("--offline was given".into());
        return if new {
            Ok(None)
        } else {
            Err(unreachable(offline))
        };
    }
    let wanted = Wanted {
        remote: &remote,
        timeout: PATIENCE,
        push: false,
        prefix: None,
    };
    let named = repo
        .work_tree()
        .map(config_file::named_policy)
        .transpose()?;
    let named = named.flatten();
    let offer = match sync::offered(repo, &wanted, named) {
        Err(store::Error::Git(git::Error::Remote { .. })) if new => return Ok(None),
        Err(store::Error::Git(error @ git::Error::Remote { .. })) => {
            return Err(unreachable(error));
        }
        offer => offer?,
    };
    let Some(offer) = offer else { return Ok(None) };
    let found = offer.policy.repo();
    if let Some(named) = named.filter(|named| *named != found && !new) {
        return Err(Error::OtherPolicyThere {
            remote,
            named,
            found,
        });
    }
    let repo = repo.reopen()?;
    pins::check(&repo, &offer.policy)?;
    // Versions that rival each other are nothing to begin with.
    offer.policy.decided()?;
    repo.update_ref(&layout.policy(), Expected::Absent, Some(offer.head), "init")?;
    Ok(Some(remote))
}

/// How the caller stands to an existing policy.
#[derive(Debug)]
pub(super) struct Standing {
    /// Their name in the policy; `None` when it does not know them.
    pub(super) principal: Option<Principal>,
    /// Their key as it was found.
    pub(super) candidate: Option<Candidate>,
    /// The command by which an admin adds what is missing.
    pub(super) line: Option<String>,
    /// Whether a native age identity was made.
    pub(super) age_identity: bool,
    /// Where keys of this machine lie now that were declared compromised.
    pub(super) old_keys: Vec<PathBuf>,
    /// Whether a key of this machine was made.
    pub(super) machine_keys: bool,
}

/// Looks the caller up. Makes the machine's own keys where they are missing, or were declared compromised, so
/// that the line for the admin can name them.
pub(super) fn standing(
    here: &Here,
    store: &Store,
    name: Option<&Principal>,
) -> Result<Standing, Error> {
    let found = here.keys(Some(&store.repo))?;
    let Some(candidate) = choose(&found, store).cloned() else {
        return Ok(Standing {
            principal: None,
            candidate: None,
            line: None,
            age_identity: false,
            old_keys: Vec::new(),
            machine_keys: false,
        });
    };
    let newest = store.policy.newest();
    let actor = holder(newest, &candidate.public)
        .ok()
        .map(|(actor, _)| actor);
    let dir = here.data_dir(&store.policy.repo())?;
    let roles = [MachineRole::Worker, MachineRole::Grader];
    let machine_keys = roles
        .iter()
        .any(|role| !dir.join(role.file_name()).exists());
    let (machines, old_keys) = machine_options(store, &dir)?;
    let mut age_identity = false;
    let (principal, line) = match actor {
        Some(Actor::Person { name, .. }) => {
            let line =
                (!machines.is_empty()).then(|| format!("hangar policy add {name}{machines}"));
            (Some(name), line)
        }
        // A machine's key in place of a person's: nothing to offer.
        Some(Actor::Machine { name, .. }) => (Some(name), None),
        None if is_lost(here, store, &candidate) => (None, None),
        None => {
            let recipient = person::recipient(&candidate, &dir)?;
            age_identity = recipient.made;
            let name = name
                .cloned()
                .or_else(|| person::proposed_name(here, &store.repo))
                .map_or_else(|| "NAME".to_owned(), |name| name.to_string());
            let key = candidate.public.as_str();
            let mut line = format!("hangar policy add {name} --role member --key '{key}'");
            if recipient.text != key {
                line = format!("{line} --recipient {}", recipient.text);
            }
            line.push_str(&machines);
            (None, Some(line))
        }
    };
    Ok(Standing {
        principal,
        candidate: Some(candidate),
        line,
        age_identity,
        old_keys,
        machine_keys,
    })
}

/// Whether the caller's key was declared compromised: no line could name it. That is told.
fn is_lost(here: &Here, store: &Store, candidate: &Candidate) -> bool {
    let members = &store.policy.newest().members;
    let Some(entry) = members.compromised(&candidate.public.fingerprint()) else {
        return false;
    };
    let named = match candidate.source {
        Source::GitConfig => ", name it (`git config user.signingKey FILE`)",
        Source::File(_) | Source::Agent(_) => "",
    };
    here.notices.say(&format!(
        "your key {} was declared compromised in version {} of the policy, and no admin can add it again: make another (`hangar key new`){named}, and run `hangar init` again",
        entry.key, entry.since
    ));
    true
}

/// ` --worker KEY --grader KEY` for the keys of this machine that the policy does not know, and where those
/// lie that were declared compromised: nobody can add them again.
fn machine_options(store: &Store, dir: &Path) -> Result<(String, Vec<PathBuf>), Error> {
    let (mut out, mut old) = (String::new(), Vec::new());
    let members = &store.policy.newest().members;
    for role in [MachineRole::Worker, MachineRole::Grader] {
        let mut key = MachineKey::load_or_create(dir, role)?;
        if members.compromised(&key.public().fingerprint()).is_some() {
            old.extend(MachineKey::renew(dir, role, key.public())?);
            key = MachineKey::load(dir, role)?;
        }
        if holder(store.policy.newest(), key.public()).is_err() {
            let (option, text) = (role.file_name(), key.public().as_str());
            out = format!("{out} --{option} '{text}'");
        }
    }
    Ok((out, old))
}
