//! Signing: one interface over key files, ssh-agent and `ssh-keygen`.

use super::agent::{Agent, AgentError};
use super::armour::{Hash, SshSig, signed_data};
use super::file::{KeyFile, KeyFileError};
use super::key::PublicKey;
use super::namespace::Namespace;
use super::program::{self, ProgramError};
use super::verify::{SignatureError, verify};
use super::wire::put_string;
use ed25519_dalek::Signer as _;
use rsa::signature::{RandomizedSigner as _, SignatureEncoding as _};
use ssh_key::private::{KeypairData, RsaKeypair};
use std::path::{Path, PathBuf};

/// Why nothing was signed.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// The key file can't be used.
    #[error(transparent)]
    File(#[from] KeyFileError),
    /// The agent did not do it.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// `ssh-keygen` did not do it.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The private key does not compute.
    #[error("the private key {0} is damaged")]
    Damaged(String),
    /// What came back does not verify; it is not handed out.
    #[error("the signature that was made does not verify")]
    SelfCheck(#[source] SignatureError),
}

/// A key that can sign.
#[derive(Debug)]
pub struct Signer {
    public: PublicKey,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    File(Box<KeyFile>),
    Agent(Agent),
    Program(PathBuf),
}

impl Signer {
    /// Signs with a key that is held in this process.
    pub fn from_file(file: KeyFile) -> Self {
        Self {
            public: file.public().clone(),
            // A key handle is no key: the token has it, and `ssh-keygen` can talk to tokens.
            kind: if file.public().algorithm().is_hardware() {
                Kind::Program(file.path().to_owned())
            } else {
                Kind::File(Box::new(file))
            },
        }
    }

    /// Signs through the agent at `agent`.
    pub const fn from_agent(agent: Agent, public: PublicKey) -> Self {
        Self {
            public,
            kind: Kind::Agent(agent),
        }
    }

    /// Signs through `ssh-keygen -Y sign -f PATH`.
    pub fn from_program(path: &Path, public: PublicKey) -> Self {
        Self {
            public,
            kind: Kind::Program(path.to_owned()),
        }
    }

    /// The public half.
    pub const fn public(&self) -> &PublicKey {
        &self.public
    }

    /// The armoured SSHSIG over `message` for `namespace`. It was verified before it is returned,
    /// so that a faulty token, agent or memory can't put a broken signature on a ref.
    pub fn sign(&self, namespace: Namespace, message: &[u8]) -> Result<Vec<u8>, SignError> {
        let armoured = match &self.kind {
            Kind::Program(path) => program::sign(path, namespace, message)?,
            Kind::File(file) => self.wrap(namespace, message, |data| sign_file(file, data))?,
            Kind::Agent(agent) => self.wrap(namespace, message, |data| {
                Ok(agent.sign(&self.public, data)?)
            })?,
        };
        verify(&self.public, namespace, message, &armoured).map_err(SignError::SelfCheck)?;
        Ok(armoured)
    }

    fn wrap(
        &self,
        namespace: Namespace,
        message: &[u8],
        sign: impl FnOnce(&[u8]) -> Result<Vec<u8>, SignError>,
    ) -> Result<Vec<u8>, SignError> {
        let signature = sign(&signed_data(namespace.as_str(), Hash::Sha512, message))?;
        let sig = SshSig {
            key: self.public.wire().to_vec(),
            namespace: namespace.as_str().to_owned(),
            hash: Hash::Sha512,
            signature,
        };
        Ok(sig.to_armoured())
    }
}

/// Signature in wire form.
fn sign_file(file: &KeyFile, data: &[u8]) -> Result<Vec<u8>, SignError> {
    let damaged = || SignError::Damaged(file.path().display().to_string());
    let (name, body) = match file.keypair() {
        KeypairData::Rsa(pair) => ("rsa-sha2-512", sign_rsa(pair, data).ok_or_else(damaged)?),
        other => {
            let signature = other.try_sign(data).map_err(|_| damaged())?;
            (
                file.public().algorithm().as_str(),
                signature.as_bytes().to_vec(),
            )
        }
    };
    let mut out = Vec::new();
    put_string(&mut out, name.as_bytes());
    put_string(&mut out, &body);
    Ok(out)
}

/// PKCS#1 v1.5 with SHA-512, blinded. Done here because `ssh-key` 0.6.7 hands the first prime twice
/// to the RSA library, which then refuses every key.
fn sign_rsa(pair: &RsaKeypair, data: &[u8]) -> Option<Vec<u8>> {
    let number =
        |value: &ssh_key::Mpint| value.as_positive_bytes().map(rsa::BigUint::from_bytes_be);
    let key = rsa::RsaPrivateKey::from_components(
        number(&pair.public.n)?,
        number(&pair.public.e)?,
        number(&pair.private.d)?,
        vec![number(&pair.private.p)?, number(&pair.private.q)?],
    )
    .ok()?;
    let signature = rsa::pkcs1v15::SigningKey::<rsa::sha2::Sha512>::new(key)
        .try_sign_with_rng(&mut rsa::rand_core::OsRng, data)
        .ok()?;
    Some(signature.to_vec())
}
