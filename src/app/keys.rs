//! The keys at hand: the person's and the machine's.

use super::error::with_causes;
use super::here::{choose, no_key};
use super::setup::init::source;
use super::{Error, Here};
use crate::base::files;
use crate::base::redact::Secret;
use crate::git;
use crate::model::ids::{Fingerprint, Principal};
use crate::seal;
use crate::store::Store;
use crate::store::identity::holder;
use crate::trust::{self, AskPassphrase, How, MachineKey, MachineRole, PublicKey};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// File of a native age identity in the repository's data folder.
pub const AGE_IDENTITY: &str = "age-identity";
/// Largest file with a secret that is read.
const MAX_SECRET: usize = 64 << 10;

/// Keys found on this machine.
#[derive(Debug, Serialize, JsonSchema)]
pub struct KeyList {
    /// The person's keys, best first.
    pub keys: Vec<KeyView>,
    /// The machine's keys in this repository.
    pub machine: Vec<KeyView>,
    /// What looked like a key and was left out, each with the reason.
    pub skipped: Vec<String>,
}

/// One key.
#[derive(Debug, Serialize, JsonSchema)]
pub struct KeyView {
    /// Fingerprint.
    pub key: Fingerprint,
    /// Kind.
    pub algorithm: String,
    /// Where it was found.
    pub source: String,
    /// Who holds it under the policy in force; absent when nobody does, or there is no policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
    /// Whether commands sign with it.
    pub used: bool,
}

/// Lists them. Works outside a repository too.
pub fn list(here: &Here) -> Result<KeyList, Error> {
    let repo = match here.repository() {
        Ok(repo) => Some(repo),
        Err(Error::Git(git::Error::NotARepository(_))) => None,
        Err(error) => return Err(error),
    };
    let found = here.keys(repo.as_ref())?;
    let store = match repo.map(|repo| Store::open(repo, here.clock)).transpose() {
        Ok(store) => store,
        Err(crate::store::Error::NoPolicy | crate::store::Error::PolicyGone { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let used = match &store {
        Some(store) => choose(&found, store),
        None => found.candidates.first(),
    };
    let used = used.map(|candidate| candidate.public.clone());
    let keys = found.candidates.iter().map(|candidate| {
        let is_used = used.as_ref() == Some(&candidate.public);
        view(
            &candidate.public,
            source(candidate),
            store.as_ref(),
            is_used,
        )
    });
    let keys = keys.collect();
    let mut machine = Vec::new();
    if let Some(store) = &store {
        let dir = here.data_dir(&store.policy.repo())?;
        for role in [MachineRole::Worker, MachineRole::Grader] {
            if let Ok(key) = MachineKey::load(&dir, role) {
                let path = dir.join(role.file_name()).display().to_string();
                machine.push(view(key.public(), path, Some(store), true));
            }
        }
    }
    let skipped = found.skipped.iter();
    Ok(KeyList {
        keys,
        machine,
        skipped: skipped.map(|one| with_causes(&one.reason)).collect(),
    })
}

fn view(key: &PublicKey, source: String, store: Option<&Store>, used: bool) -> KeyView {
    let actor = store.and_then(|store| holder(store.policy.newest(), key).ok());
    KeyView {
        key: key.fingerprint(),
        algorithm: key.algorithm().to_string(),
        source,
        principal: actor.map(|(actor, _)| actor.name().clone()),
        used,
    }
}

/// A key that was made.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NewKey {
    /// The private key file.
    pub path: String,
    /// Its public half.
    pub public: String,
    /// Fingerprint.
    pub key: Fingerprint,
}

/// Where a new key goes when the caller names no place.
pub fn default_path(here: &Here) -> Result<PathBuf, Error> {
    let home = here
        .home()
        .ok_or_else(|| Error::invalid("HOME is not set; give the file with --file"))?;
    Ok(home.join(".ssh/id_ed25519_hangar"))
}

/// Makes an ed25519 key without a passphrase: the private half at `path` (mode 0600), the public
/// one beside it with `.pub`. Nothing is ever overwritten.
pub fn new(path: &Path) -> Result<NewKey, Error> {
    let beside = public_path(path);
    for file in [path, &beside] {
        if file.symlink_metadata().is_ok() {
            return Err(Error::KeyExists(file.to_owned()));
        }
    }
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        files::create_private_dir(dir)?;
    }
    let (secret, public) = trust::generate_machine_key();
    files::write_atomic(path, secret.expose(), 0o600)?;
    let line = format!("{} hangar\n", public.as_str());
    files::write_atomic(&beside, line.as_bytes(), 0o644)?;
    Ok(NewKey {
        path: path.display().to_string(),
        public: public.as_str().to_owned(),
        key: public.fingerprint(),
    })
}

fn public_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".pub");
    PathBuf::from(name)
}

/// What the person decrypts with: the native age identity that `init` made, else their own key
/// file.
pub fn identity(
    here: &Here,
    store: &Store,
    ask: &mut AskPassphrase<'_>,
) -> Result<seal::Identity, Error> {
    let native = here.data_dir(&store.policy.repo())?.join(AGE_IDENTITY);
    if native.exists() {
        return read_native(&native);
    }
    let found = here.keys(Some(&store.repo))?;
    let candidate = choose(&found, store).ok_or_else(|| no_key(&found))?;
    let How::File { path, .. } = &candidate.how else {
        return Err(Error::NoIdentity(native));
    };
    let secret = read_secret(path)?;
    seal::Identity::openssh(&secret, &mut || ask(path)).map_err(|source| Error::AgeIdentity {
        path: path.clone(),
        source,
    })
}

/// The native age identity in a file.
pub(super) fn read_native(path: &Path) -> Result<seal::Identity, Error> {
    seal::Identity::native(&read_secret(path)?).map_err(|source| Error::AgeIdentity {
        path: path.to_owned(),
        source,
    })
}

fn read_secret(path: &Path) -> Result<Secret, Error> {
    let fail = |source| Error::Read {
        path: path.to_owned(),
        source,
    };
    // One allocation: growing would leave copies of the key behind.
    let mut bytes = Vec::with_capacity(MAX_SECRET + 32);
    let read = std::fs::File::open(path)
        .and_then(|file| file.take(MAX_SECRET as u64).read_to_end(&mut bytes));
    let secret = Secret::new(bytes);
    read.map_err(fail)?;
    Ok(secret)
}
