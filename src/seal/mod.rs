//! Sealed tests as bytes: canary, bundle, age encryption.
//!
//! Owns what stands inside and around `sealed.age`. Works in memory only and hands plaintext out
//! as [`Secret`](crate::base::redact::Secret). Must not know refs, policy or who may decrypt. Formats: `docs/format.md`,
//! "Sealed payload" and "Canary"; age-encryption.org/v1.

mod bundle;
mod canary;
mod comment;
mod crypt;
mod paths;
mod tarball;

pub use bundle::{
    BundleError, CRITERIA, FileMode, MAX_FILE, MAX_FILES, MAX_TOTAL, Payload, SealedFile,
};
pub use canary::{Canary, TOKEN_LEN, insert, remove, scan};
pub use crypt::{
    AskPassphrase, DecryptError, EncryptError, Identity, IdentityError, MAX_CIPHERTEXT, Recipient,
    RecipientError, decrypt, encrypt, generate_identity,
};
pub use paths::{PathFault, check_path, check_paths};
