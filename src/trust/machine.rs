//! The two keys that a machine holds in files: worker and grader.

use super::file::{KeyFile, KeyFileError, read_private};
use super::key::PublicKey;
use super::signer::Signer;
use crate::base::files;
use crate::base::random;
use crate::base::redact::Secret;
use ssh_key::private::{Ed25519Keypair, KeypairData};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// What a machine key signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MachineRole {
    /// Claims, stages and runs.
    Worker,
    /// Base checks, manifests and grades; it also decrypts sealed tests.
    Grader,
}

impl MachineRole {
    /// The file name in the repository's data folder.
    pub const fn file_name(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Grader => "grader",
        }
    }
}

/// Why there is no machine key to use.
#[derive(Debug, thiserror::Error)]
pub enum MachineKeyError {
    /// None was made on this machine yet.
    #[error("there is no {} key at {}; `hangar init` makes one", role.file_name(), path.display())]
    Missing {
        /// Which one.
        role: MachineRole,
        /// Where it should be.
        path: PathBuf,
    },
    /// The file is there but can't be used.
    #[error(transparent)]
    File(#[from] KeyFileError),
    /// The folder or file could not be written.
    #[error(transparent)]
    Write(#[from] files::Error),
}

/// A machine key, loaded.
#[derive(Debug)]
pub struct MachineKey {
    signer: Signer,
    secret: Secret,
}

impl MachineKey {
    /// Loads the key of `role` from `dir` (`$XDG_DATA_HOME/hangar/<repo id>`).
    pub fn load(dir: &Path, role: MachineRole) -> Result<Self, MachineKeyError> {
        let path = dir.join(role.file_name());
        if !path.exists() {
            return Err(MachineKeyError::Missing { role, path });
        }
        let secret = read_private(&path)?;
        // A machine key has no passphrase: nobody is there to type one.
        let file = KeyFile::parse(&path, &secret, &mut |_| None)?;
        Ok(Self {
            signer: Signer::from_file(file),
            secret,
        })
    }

    /// Loads the key, or makes it (mode 0600, folder 0700) where there is none. Never replaces one.
    pub fn load_or_create(dir: &Path, role: MachineRole) -> Result<Self, MachineKeyError> {
        files::create_private_dir(dir)?;
        let _lock = files::lock(&dir.join("keys.lock"))?;
        match Self::load(dir, role) {
            Err(MachineKeyError::Missing { path, .. }) => {
                let (secret, _) = generate_machine_key();
                files::write_atomic(&path, secret.expose(), 0o600)?;
                Self::load(dir, role)
            }
            other => other,
        }
    }

    /// Makes a new key in place of the one of `role` whose public half is `old`. The old file stays beside
    /// it, as what has no effect any more; where it is now comes back. `None` where another process was
    /// faster.
    pub fn renew(
        dir: &Path,
        role: MachineRole,
        old: &PublicKey,
    ) -> Result<Option<PathBuf>, MachineKeyError> {
        let _lock = files::lock(&dir.join("keys.lock"))?;
        let here = Self::load(dir, role)?;
        if here.public() != old {
            return Ok(None);
        }
        let path = dir.join(role.file_name());
        let aside = files::set_aside(&path, "compromised")?;
        let (secret, _) = generate_machine_key();
        files::write_atomic(&path, secret.expose(), 0o600)?;
        Ok(Some(aside))
    }

    /// Signs with it.
    pub const fn signer(&self) -> &Signer {
        &self.signer
    }

    /// The public half.
    pub const fn public(&self) -> &PublicKey {
        self.signer.public()
    }

    /// The OpenSSH private key text, which is also an age identity.
    pub const fn secret(&self) -> &Secret {
        &self.secret
    }
}

/// A new ed25519 key: OpenSSH private key text without a passphrase, and its public half.
///
/// # Panics
/// When the kernel has no randomness to give.
pub fn generate_machine_key() -> (Secret, PublicKey) {
    let seed = Zeroizing::new(random::bytes::<32>());
    let pair = KeypairData::from(Ed25519Keypair::from_seed(&seed));
    let private =
        ssh_key::PrivateKey::new(pair, "hangar").expect("a plain keypair is not encrypted");
    let text = private
        .to_openssh(ssh_key::LineEnding::LF)
        .expect("an ed25519 key can be written");
    let public = PublicKey::from_data(private.public_key().key_data())
        .expect("an ed25519 key made from a random seed is accepted");
    (Secret::new(text.as_bytes().to_vec()), public)
}
