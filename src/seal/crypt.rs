//! age encryption (age-encryption.org/v1) to native and SSH recipients.

use crate::base::redact::Secret;
use age::secrecy::{ExposeSecret as _, SecretString};
use age::ssh::ParseRecipientKeyError;
use std::fmt;
use std::io::{Read as _, Write as _};
use std::str::FromStr;

/// Longest ciphertext that is read, in bytes: the largest payload, and room for recipients.
pub const MAX_CIPHERTEXT: usize = 80 << 20;
/// Longest recipient text, in bytes.
const MAX_TEXT: usize = 8 << 10;
/// Most recipients of one ciphertext.
const MAX_RECIPIENTS: usize = 1000;
/// How often a passphrase is asked for.
const TRIES: usize = 3;

/// Asks the user for the passphrase of a key; `None` when they give none.
pub type AskPassphrase<'a> = dyn FnMut() -> Option<Secret> + 'a;

/// Why a text is no recipient.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecipientError {
    /// Neither an age recipient nor an SSH public key.
    #[error("not an age recipient (`age1…`) or SSH public key")]
    Malformed,
    /// An SSH key that can sign but not decrypt.
    #[error("a key of kind `{0}` can't decrypt; use an age recipient (`age1…`) beside it")]
    CannotDecrypt(String),
    /// An RSA key outside the sizes that age takes.
    #[error("the RSA key is too small or too large (2048 to 4096 bits)")]
    RsaSize,
}

/// Why nothing was encrypted.
#[derive(Debug, thiserror::Error)]
pub enum EncryptError {
    /// There is nobody to encrypt to, or too many.
    #[error("a sealed version needs 1 to {MAX_RECIPIENTS} recipients, not {0}")]
    Recipients(usize),
    /// The plaintext is longer than what is read back.
    #[error("there is too much to encrypt")]
    TooLarge,
    /// The library refused.
    #[error("the payload could not be encrypted")]
    Failed,
}

/// Why a text is no identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// Neither an age identity nor an OpenSSH private key.
    #[error("not an age identity or OpenSSH private key")]
    Malformed,
    /// An SSH key that can sign but not decrypt (hardware keys, ECDSA, old formats).
    #[error("this kind of SSH key can't decrypt; an age identity is needed")]
    CannotDecrypt,
    /// It is encrypted and no passphrase was given.
    #[error("the key is encrypted and no passphrase was given")]
    NoPassphrase,
    /// The passphrase does not open it.
    #[error("the passphrase does not open the key")]
    WrongPassphrase,
}

/// Why nothing was decrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecryptError {
    /// The ciphertext is for others.
    #[error("this key is not among the recipients")]
    NotARecipient,
    /// Not an age file of version 1.
    #[error("not an age file")]
    Format,
    /// Cut or changed on the way.
    #[error("the ciphertext is damaged: cut short or changed")]
    Damaged,
    /// Over [`MAX_CIPHERTEXT`].
    #[error("the ciphertext is longer than {MAX_CIPHERTEXT} bytes")]
    TooLarge,
}

/// Whom a payload is encrypted to.
#[derive(Clone)]
pub struct Recipient {
    text: String,
    key: RecipientKey,
}

#[derive(Clone)]
enum RecipientKey {
    Native(age::x25519::Recipient),
    Ssh(Box<age::ssh::Recipient>),
}

impl Recipient {
    /// `age1…`, or an SSH public key without comment.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    fn as_age(&self) -> &dyn age::Recipient {
        match &self.key {
            RecipientKey::Native(key) => key,
            RecipientKey::Ssh(key) => key.as_ref(),
        }
    }
}

impl FromStr for Recipient {
    type Err = RecipientError;

    fn from_str(text: &str) -> Result<Self, RecipientError> {
        let text = text.trim_end_matches('\n');
        if text.len() > MAX_TEXT || text.contains(['\n', '\r', '\0']) {
            return Err(RecipientError::Malformed);
        }
        if text.starts_with("age1") {
            let key: age::x25519::Recipient =
                text.parse().map_err(|_| RecipientError::Malformed)?;
            return Ok(Self {
                text: key.to_string(),
                key: RecipientKey::Native(key),
            });
        }
        let mut words = text.split(' ');
        let (Some(kind), Some(base64)) = (words.next(), words.next()) else {
            return Err(RecipientError::Malformed);
        };
        let plain = format!("{kind} {base64}");
        let key: age::ssh::Recipient = plain.parse().map_err(|error| match error {
            // Any first word comes here, and that may be part of a secret.
            ParseRecipientKeyError::Unsupported(kind) if is_kind(&kind) => {
                RecipientError::CannotDecrypt(kind.chars().take(60).collect())
            }
            ParseRecipientKeyError::RsaModulusTooLarge
            | ParseRecipientKeyError::RsaModulusTooSmall => RecipientError::RsaSize,
            _ => RecipientError::Malformed,
        })?;
        if key.to_string() != plain {
            return Err(RecipientError::Malformed);
        }
        Ok(Self {
            text: plain,
            key: RecipientKey::Ssh(Box::new(key)),
        })
    }
}

/// Whether a word is a kind of SSH key.
fn is_kind(word: &str) -> bool {
    ["ssh-", "ecdsa-", "sk-"]
        .iter()
        .any(|begin| word.starts_with(begin))
}

impl fmt::Display for Recipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Recipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recipient({})", self.text)
    }
}

impl PartialEq for Recipient {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Recipient {}

/// A key that decrypts.
pub struct Identity(IdentityKey);

enum IdentityKey {
    Native(age::x25519::Identity),
    Ssh(age::ssh::Identity),
}

impl Identity {
    /// A native age identity (`AGE-SECRET-KEY-1…`), alone or in the file that `age-keygen` writes
    /// (with `#` comment lines).
    pub fn native(text: &Secret) -> Result<Self, IdentityError> {
        let text = std::str::from_utf8(text.expose()).map_err(|_| IdentityError::Malformed)?;
        let mut lines = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        let (Some(key), None) = (lines.next(), lines.next()) else {
            return Err(IdentityError::Malformed);
        };
        let key = key.parse().map_err(|_| IdentityError::Malformed)?;
        Ok(Self(IdentityKey::Native(key)))
    }

    /// An OpenSSH private key (ed25519 or RSA), asking for its passphrase when it has one.
    pub fn openssh(text: &Secret, ask: &mut AskPassphrase<'_>) -> Result<Self, IdentityError> {
        use age::ssh::Identity as Ssh;
        let key = Ssh::from_buffer(text.expose(), None).map_err(|_| IdentityError::Malformed)?;
        match key {
            Ssh::Unencrypted(_) => Ok(Self(IdentityKey::Ssh(key))),
            Ssh::Unsupported(_) => Err(IdentityError::CannotDecrypt),
            Ssh::Encrypted(locked) => {
                for _ in 0..TRIES {
                    let passphrase = ask().ok_or(IdentityError::NoPassphrase)?;
                    if let Some(open) = secret_string(&passphrase)
                        && let Ok(key) = locked.decrypt(open)
                    {
                        return Ok(Self(IdentityKey::Ssh(key.into())));
                    }
                }
                Err(IdentityError::WrongPassphrase)
            }
        }
    }

    /// The recipient that this identity decrypts for.
    pub fn recipient(&self) -> Result<Recipient, RecipientError> {
        match &self.0 {
            IdentityKey::Native(key) => key.to_public().to_string().parse(),
            IdentityKey::Ssh(key) => age::ssh::Recipient::try_from(key.clone())
                .map_err(|_| RecipientError::Malformed)?
                .to_string()
                .parse(),
        }
    }

    fn as_age(&self) -> &dyn age::Identity {
        match &self.0 {
            IdentityKey::Native(key) => key,
            IdentityKey::Ssh(key) => key,
        }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity(…)")
    }
}

fn secret_string(secret: &Secret) -> Option<SecretString> {
    let text = std::str::from_utf8(secret.expose()).ok()?;
    Some(SecretString::from(text.to_owned()))
}

/// A new native identity: the secret `AGE-SECRET-KEY-1…` and its recipient `age1…`.
pub fn generate_identity() -> (Secret, String) {
    let key = age::x25519::Identity::generate();
    let text = key.to_string();
    let secret = Secret::new(text.expose_secret().as_bytes().to_vec());
    (secret, key.to_public().to_string())
}

/// Encrypts to every one of `recipients`; the binary form of an age file.
pub fn encrypt(plaintext: &[u8], recipients: &[Recipient]) -> Result<Vec<u8>, EncryptError> {
    if !(1..=MAX_RECIPIENTS).contains(&recipients.len()) {
        return Err(EncryptError::Recipients(recipients.len()));
    }
    let mut out = Vec::with_capacity(plaintext.len() + (plaintext.len() >> 11) + 4096);
    let encryptor = age::Encryptor::with_recipients(recipients.iter().map(Recipient::as_age))
        .map_err(|_| EncryptError::Failed)?;
    let mut writer = encryptor
        .wrap_output(&mut out)
        .map_err(|_| EncryptError::Failed)?;
    writer
        .write_all(plaintext)
        .and_then(|()| writer.finish())
        .map_err(|_| EncryptError::Failed)?;
    if out.len() > MAX_CIPHERTEXT {
        return Err(EncryptError::TooLarge);
    }
    Ok(out)
}

/// Decrypts the whole of `ciphertext`; nothing is handed out unless all of it is authentic.
pub fn decrypt(ciphertext: &[u8], identity: &Identity) -> Result<Secret, DecryptError> {
    if ciphertext.len() > MAX_CIPHERTEXT {
        return Err(DecryptError::TooLarge);
    }
    let decryptor = age::Decryptor::new_buffered(ciphertext).map_err(|error| fault(&error))?;
    let mut reader = decryptor
        .decrypt(std::iter::once(identity.as_age()))
        .map_err(|error| fault(&error))?;
    // One allocation: growing would leave copies of the plaintext behind.
    let mut out = Vec::with_capacity(ciphertext.len() + 64);
    let read = reader.read_to_end(&mut out);
    let out = Secret::new(out);
    read.map_err(|_| DecryptError::Damaged)?;
    Ok(out)
}

const fn fault(error: &age::DecryptError) -> DecryptError {
    match error {
        age::DecryptError::NoMatchingKeys | age::DecryptError::ExcessiveWork { .. } => {
            DecryptError::NotARecipient
        }
        age::DecryptError::UnknownFormat | age::DecryptError::InvalidHeader => DecryptError::Format,
        _ => DecryptError::Damaged,
    }
}
