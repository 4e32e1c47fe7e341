//! Keys and SSHSIG signatures: who signed these bytes, and for which use.
//!
//! Owns public keys, the eight signature namespaces, verification, [`Verified`], and the ways to
//! sign (key file, ssh-agent, `ssh-keygen` for hardware keys). Must not know what a document says
//! or who may do what: authority is decided in `store` with the policy. Formats: `docs/format.md`,
//! "Signatures"; OpenSSH `PROTOCOL.sshsig`, `PROTOCOL.key`, draft-ietf-sshm-ssh-agent.

mod agent;
mod armour;
mod discover;
mod file;
mod key;
mod machine;
mod namespace;
mod program;
mod signer;
mod verified;
mod verify;
mod wire;

pub use agent::{Agent, AgentError, AgentKey};
pub use discover::{Candidate, Discovery, DiscoveryInput, How, Skipped, Source, discover};
pub use discover::{DiscoverError, SkipReason};
pub use file::{AskPassphrase, KeyFile, KeyFileError, read_private};
pub use key::{Algorithm, KeyError, PublicKey};
pub use machine::{MachineKey, MachineKeyError, MachineRole, generate_machine_key};
pub use namespace::Namespace;
pub use program::ProgramError;
pub use signer::{SignError, Signer};
pub use verified::{CheckError, SignedBy, Unverified, Verified};
pub use verify::{KeyRing, MAX_SIGNATURE, SignatureError, claimed_key, verify, verify_claimed};
