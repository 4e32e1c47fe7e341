//! Private key files in OpenSSH's format (`PROTOCOL.key`).

use super::key::{KeyError, PublicKey};
use crate::base::redact::Secret;
use ssh_key::private::KeypairData;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Longest key file that is read, in bytes.
const MAX_FILE: usize = 64 << 10;
/// How often a passphrase is asked for.
const TRIES: usize = 3;

/// Asks the user for the passphrase of a key file; `None` when they give none.
pub type AskPassphrase<'a> = dyn FnMut(&Path) -> Option<Secret> + 'a;

/// Why a key file can't be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// It could not be read.
    #[error("cannot read the key file {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Others on this machine can read it.
    #[error("others can read the key file {} (mode {mode:03o}); run `chmod 600` on it", path.display())]
    Permissions {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// An older container (PEM, PKCS#8), which only ssh-agent can open for us.
    #[error("{} is not in OpenSSH's own format; load it into your agent with `ssh-add`", path.display())]
    OldFormat {
        /// The file.
        path: PathBuf,
    },
    /// Not a private key file.
    #[error("{} is not a readable OpenSSH private key", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
    },
    /// A key of a kind or size that is not accepted.
    #[error("the key in {} is not accepted", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: KeyError,
    },
    /// It is encrypted and no passphrase was given.
    #[error("{} is encrypted and no passphrase was given; load it into your agent with `ssh-add`", path.display())]
    NoPassphrase {
        /// The file.
        path: PathBuf,
    },
    /// The passphrase does not open it.
    #[error("the passphrase does not open {}", path.display())]
    WrongPassphrase {
        /// The file.
        path: PathBuf,
    },
}

/// A private key, read and decrypted.
pub struct KeyFile {
    path: PathBuf,
    public: PublicKey,
    private: ssh_key::PrivateKey,
}

/// What a private key file says without a passphrase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Peek {
    pub(super) public: PublicKey,
    pub(super) encrypted: bool,
}

impl KeyFile {
    /// Reads the key at `path`, asking for its passphrase when it has one (up to three times).
    pub fn open(path: &Path, ask: &mut AskPassphrase<'_>) -> Result<Self, KeyFileError> {
        let text = read_private(path)?;
        Self::parse(path, &text, ask)
    }

    pub(super) fn parse(
        path: &Path,
        text: &Secret,
        ask: &mut AskPassphrase<'_>,
    ) -> Result<Self, KeyFileError> {
        let (mut private, public) = decode(path, text)?;
        if private.is_encrypted() {
            private = decrypt(path, &private, ask)?;
        }
        Ok(Self {
            path: path.to_owned(),
            public,
            private,
        })
    }

    /// The public half.
    pub const fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Where it was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn keypair(&self) -> &KeypairData {
        self.private.key_data()
    }
}

impl fmt::Debug for KeyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyFile({})", self.path.display())
    }
}

/// Reads a file with a secret (a private key, an age identity); one that others can read is refused. The
/// rule is ssh's: files of another owner (root's, in a container) are not judged by their mode.
pub fn read_private(path: &Path) -> Result<Secret, KeyFileError> {
    let io = |source| KeyFileError::Io {
        path: path.to_owned(),
        source,
    };
    let malformed = || KeyFileError::Malformed {
        path: path.to_owned(),
    };
    // Never open a FIFO or device: opening one can block or have effects.
    if !std::fs::metadata(path).map_err(io)?.is_file() {
        return Err(malformed());
    }
    let file = File::open(path).map_err(io)?;
    let meta = file.metadata().map_err(io)?;
    if !meta.is_file() || meta.len() > MAX_FILE as u64 {
        return Err(malformed());
    }
    // One allocation: growing would leave copies of the key behind.
    let mut bytes = Vec::with_capacity(MAX_FILE + 32);
    let read = file.take(MAX_FILE as u64).read_to_end(&mut bytes);
    let secret = Secret::new(bytes);
    read.map_err(io)?;
    let mode = meta.mode() & 0o777;
    let is_ours = meta.uid() == rustix::process::getuid().as_raw();
    // Anybody may read what is no private key.
    if is_ours && mode & 0o077 != 0 && is_private(secret.expose()) {
        return Err(KeyFileError::Permissions {
            path: path.to_owned(),
            mode,
        });
    }
    Ok(secret)
}

/// Whether a file holds a private key in any of the armours that `ssh-keygen` and age write.
fn is_private(bytes: &[u8]) -> bool {
    let marks: [&[u8]; 2] = [b"PRIVATE KEY", b"AGE-SECRET-KEY-"];
    let holds = |mark: &[u8]| bytes.windows(mark.len()).any(|part| part == mark);
    marks.into_iter().any(holds)
}

/// What the file says in clear.
pub(super) fn peek(path: &Path) -> Result<Peek, KeyFileError> {
    let text = read_private(path)?;
    let (private, public) = decode(path, &text)?;
    Ok(Peek {
        public,
        encrypted: private.is_encrypted(),
    })
}

fn decode(path: &Path, text: &Secret) -> Result<(ssh_key::PrivateKey, PublicKey), KeyFileError> {
    if is_old_format(text.expose()) {
        return Err(KeyFileError::OldFormat {
            path: path.to_owned(),
        });
    }
    let private =
        ssh_key::PrivateKey::from_openssh(text.expose()).map_err(|_| KeyFileError::Malformed {
            path: path.to_owned(),
        })?;
    let public = PublicKey::from_data(private.public_key().key_data()).map_err(|source| {
        KeyFileError::Key {
            path: path.to_owned(),
            source,
        }
    })?;
    Ok((private, public))
}

fn is_old_format(text: &[u8]) -> bool {
    let first = text.split(|b| *b == b'\n').next().unwrap_or_default();
    first.starts_with(b"-----BEGIN ")
        && first.windows(11).any(|word| word == b"PRIVATE KEY")
        && !first.starts_with(b"-----BEGIN OPENSSH")
}

fn decrypt(
    path: &Path,
    private: &ssh_key::PrivateKey,
    ask: &mut AskPassphrase<'_>,
) -> Result<ssh_key::PrivateKey, KeyFileError> {
    for _ in 0..TRIES {
        let passphrase = ask(path).ok_or_else(|| KeyFileError::NoPassphrase {
            path: path.to_owned(),
        })?;
        if let Ok(open) = private.decrypt(passphrase.expose()) {
            return Ok(open);
        }
    }
    Err(KeyFileError::WrongPassphrase {
        path: path.to_owned(),
    })
}
