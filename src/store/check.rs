//! From bytes on a ref to a document that may be believed.
//!
//! The only place that joins signature and policy: the key made the signature, the document names
//! that key, and the policy version it names gives the key to that principal.

use super::policy::PolicyHistory;
use crate::model::approval::Approval;
use crate::model::authority::{Act, may};
use crate::model::codec;
use crate::model::digest::Digest;
use crate::model::event::Event;
use crate::model::grade::Grade;
use crate::model::ids::{Fingerprint, Principal, TaskId};
use crate::model::manifest::{Manifest, Reseal};
use crate::model::policy::{Actor, Policy};
use crate::model::reduction::Why;
use crate::model::run::{Kind, Run};
use crate::model::signer::Signer;
use crate::trust::{CheckError, Namespace, Unverified, Verified};
use serde::de::DeserializeOwned;

/// A signed document other than the policy.
pub trait Document: DeserializeOwned {
    /// The use that its signature is for.
    const NAMESPACE: Namespace;
    /// File name without ending.
    const NAME: &'static str;
    /// The `[signer]` table.
    fn signer(&self) -> &Signer;
    /// The repository it belongs to.
    fn repo(&self) -> Digest;
    /// The task it is about; `None` for the event that creates one.
    fn task(&self) -> Option<&TaskId>;
    /// What a signer must be allowed to do; `None` where that is decided change by change.
    fn act(&self) -> Option<Act>;
}

macro_rules! document {
    ($type:ty, $namespace:ident, $name:literal, |$doc:ident| $task:expr, $act:expr) => {
        impl Document for $type {
            const NAMESPACE: Namespace = Namespace::$namespace;
            const NAME: &'static str = $name;
            fn signer(&self) -> &Signer {
                &self.signer
            }
            fn repo(&self) -> Digest {
                self.repo
            }
            fn task(&self) -> Option<&TaskId> {
                let $doc = self;
                $task
            }
            fn act(&self) -> Option<Act> {
                let $doc = self;
                let _ = $doc;
                $act
            }
        }
    };
}

/// File names, without ending, of all documents but the policy's.
pub(super) const NAMES: [&str; 6] = [
    Event::NAME,
    Manifest::NAME,
    Reseal::NAME,
    Approval::NAME,
    Grade::NAME,
    Run::NAME,
];

document!(Event, Event, "event", |doc| doc.task.as_ref(), None);
document!(
    Manifest,
    Seal,
    "manifest",
    |doc| Some(&doc.task),
    Some(Act::Seal)
);
document!(
    Reseal,
    Reseal,
    "reseal",
    |doc| Some(&doc.task),
    Some(Act::Reseal)
);
document!(
    Approval,
    Approval,
    "approval",
    |doc| Some(&doc.task),
    Some(Act::Decide)
);
document!(
    Grade,
    Grade,
    "grade",
    |doc| Some(&doc.task),
    Some(Act::Grade)
);
document!(
    Run,
    Run,
    "run",
    |doc| Some(&doc.task),
    Some(match doc.kind {
        Kind::Agent => Act::RecordRun,
        Kind::Submitted => Act::Submit,
    })
);

/// Why a document is not believed. It stays where it is and is reported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Doubt {
    /// There is no signature.
    #[error("it is not signed")]
    Unsigned,
    /// Nothing was read of it: it holds nothing, or more than the format allows.
    #[error("it is empty, or larger than the format allows")]
    Size,
    /// The signature does not count, or the bytes are not a document.
    #[error("{0}")]
    Bytes(String),
    /// The document names another key than the one that signed.
    #[error("it names the key {named}, but {signed} signed it")]
    OtherKey {
        /// In the document.
        named: Fingerprint,
        /// In the signature.
        signed: Fingerprint,
    },
    /// It belongs to another repository.
    #[error("it belongs to another repository ({})", .0.short())]
    OtherRepo(Digest),
    /// It belongs to another task.
    #[error("it belongs to another task")]
    OtherTask,
    /// It names a policy version that is not in this repository's chain.
    #[error("it names policy version {0}, which this repository does not have")]
    OtherPolicy(u64),
    /// Under the version it names, the key is not the principal's.
    #[error("policy version {version} does not give {principal} this key")]
    NotTheirs {
        /// Version.
        version: u64,
        /// Who it says signed.
        principal: Principal,
    },
    /// The key lost rights in a later version, which does not list the document.
    #[error("its key was {how} in policy version {since}, which does not count the document {document}", how = .how.as_str())]
    Reduced {
        /// Digest of the document.
        document: Digest,
        /// Why.
        how: Why,
        /// The version.
        since: u64,
    },
    /// It names a version of the policy that does not stand, and is not listed as counting all the
    /// same.
    #[error("it names policy version {version} ({}), which {}; the document is {document}", digest.short(), if *undecided { "has an undecided rival" } else { "was set aside" })]
    Rival {
        /// Digest of the document.
        document: Digest,
        /// The version.
        version: u64,
        /// Its digest.
        digest: Digest,
        /// Whether nobody has said yet which one stands.
        undecided: bool,
    },
    /// The signer had no right to it.
    #[error("{principal} had no right to {act} under policy version {version}")]
    NoRight {
        /// Who.
        principal: Principal,
        /// To what.
        act: Act,
        /// Under which version.
        version: u64,
    },
}

impl Doubt {
    /// The document, where an admin can let it count all the same.
    pub const fn adoptable(&self) -> Option<Digest> {
        match self {
            Self::Reduced { document, .. }
            | Self::Rival {
                document,
                undecided: false,
                ..
            } => Some(*document),
            _ => None,
        }
    }
}

/// A document with good signature, and who its signer is under the policy that it names.
#[derive(Debug, Clone)]
pub struct Checked<T> {
    verified: Verified<T>,
    /// The signer.
    pub actor: Actor,
    /// Bytes and signature, to be passed on unchanged.
    pub original: Unverified,
    /// Why it does not count, where its key lost rights since, or its policy version does not stand.
    pub reduced: Option<Doubt>,
}

impl<T> Checked<T> {
    /// The document.
    pub const fn value(&self) -> &T {
        self.verified.value()
    }

    /// SHA-256 of its bytes.
    pub const fn digest(&self) -> Digest {
        self.verified.digest()
    }
}

impl<T: Document> Checked<T> {
    /// Whether the signer has the right to `act` under the policy that the document names.
    pub fn may(&self, act: Act, requester: &Principal) -> Result<(), Doubt> {
        if may(&self.actor, act, requester) {
            return Ok(());
        }
        Err(Doubt::NoRight {
            principal: self.actor.name().clone(),
            act,
            version: self.value().signer().policy.version,
        })
    }
}

/// Checks signature, key, repository, task and policy; not yet what the signer may do.
pub fn check<T: Document>(
    policy: &PolicyHistory,
    bytes: Vec<u8>,
    signature: Vec<u8>,
    task: Option<&TaskId>,
) -> Result<Checked<T>, Doubt> {
    if bytes.is_empty() {
        return Err(Doubt::Size);
    }
    if signature.is_empty() {
        return Err(Doubt::Unsigned);
    }
    let original = Unverified::new(bytes, signature);
    let verified = original
        .verify_claimed(policy.keys(), T::NAMESPACE, codec::decode::<T>)
        .map_err(|error: CheckError<codec::Error>| Doubt::Bytes(error.to_string()))?;
    let document = verified.value();
    let signer = document.signer();
    let fingerprint = verified.signer().key.fingerprint();
    if signer.key != fingerprint {
        return Err(Doubt::OtherKey {
            named: signer.key.clone(),
            signed: fingerprint,
        });
    }
    if document.repo() != policy.repo() {
        return Err(Doubt::OtherRepo(document.repo()));
    }
    if let (Some(expected), Some(found)) = (task, document.task())
        && expected != found
    {
        return Err(Doubt::OtherTask);
    }
    let version = policy
        .find(signer.policy)
        .ok_or(Doubt::OtherPolicy(signer.policy.version))?;
    let actor = holder(version, signer)?;
    let reduced = without_effect(policy, signer, verified.digest());
    Ok(Checked {
        verified,
        actor,
        original,
        reduced,
    })
}

/// Why a document that was signed as it should does not count.
fn without_effect(policy: &PolicyHistory, signer: &Signer, document: Digest) -> Option<Doubt> {
    if !policy.stands(signer.policy.digest) {
        let counts = policy.counts_aside(signer.policy, document);
        return (!counts).then(|| Doubt::Rival {
            document,
            version: signer.policy.version,
            digest: signer.policy.digest,
            undecided: policy.is_undecided(signer.policy.digest),
        });
    }
    let entry = policy.reduction(&signer.key, signer.policy, document)?;
    Some(Doubt::Reduced {
        document,
        how: entry.how,
        since: entry.since,
    })
}

fn holder(version: &Policy, signer: &Signer) -> Result<Actor, Doubt> {
    match version.holder(&signer.key) {
        Some((actor, _)) if *actor.name() == signer.principal => Ok(actor.clone()),
        _ => Err(Doubt::NotTheirs {
            version: version.reference.version,
            principal: signer.principal.clone(),
        }),
    }
}

/// Checks that the signer was allowed to do what the document does.
pub fn authorise<T: Document>(checked: &Checked<T>, requester: &Principal) -> Result<(), Doubt> {
    let act = checked.value().act();
    act.map_or(Ok(()), |act| checked.may(act, requester))
}
