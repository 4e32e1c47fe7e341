//! A key at hand together with the name that the policy gives it.

use super::Error;
use super::policy::PolicyHistory;
use crate::model::ids::{Fingerprint, Principal};
use crate::model::policy::{Actor, MachineRole, Policy};
use crate::model::signer::{PolicyRef, Signer as SignerTable};
use crate::trust::{Namespace, PublicKey, Signer};
use jiff::Timestamp;

/// Who signs, and with what.
#[derive(Debug)]
pub struct Identity<'a> {
    /// Under the newest policy.
    pub actor: Actor,
    key: Fingerprint,
    policy: PolicyRef,
    signer: &'a Signer,
}

impl<'a> Identity<'a> {
    /// Looks the key up in the newest policy. While rival versions of it are undecided nobody signs.
    pub fn of(policy: &PolicyHistory, signer: &'a Signer) -> Result<Self, Error> {
        let newest = policy.decided()?;
        let (actor, key) = holder(newest, signer.public())?;
        Ok(Self {
            actor,
            key,
            policy: newest.reference,
            signer,
        })
    }

    /// The name in documents.
    pub const fn principal(&self) -> &Principal {
        self.actor.name()
    }

    /// The key.
    pub const fn key(&self) -> &Fingerprint {
        &self.key
    }

    /// The `[signer]` table of a new document.
    pub fn table(&self, at: Timestamp) -> SignerTable {
        SignerTable {
            principal: self.principal().clone(),
            key: self.key.clone(),
            at: at.to_string(),
            policy: self.policy,
        }
    }

    /// Signs the bytes of a document.
    pub fn sign(&self, namespace: Namespace, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        Ok(self.signer.sign(namespace, bytes)?)
    }
}

/// Who holds `key` under `policy`.
pub fn holder(policy: &Policy, key: &PublicKey) -> Result<(Actor, Fingerprint), Error> {
    let fingerprint = key.fingerprint();
    let (actor, _) = policy
        .holder(&fingerprint)
        .ok_or_else(|| Error::UnknownKey {
            key: fingerprint.clone(),
        })?;
    Ok((actor.clone(), fingerprint))
}

/// Whether the actor is a machine of this role.
pub fn is_machine(actor: &Actor, wanted: MachineRole) -> bool {
    matches!(actor, Actor::Machine { role, .. } if *role == wanted)
}
