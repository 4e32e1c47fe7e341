//! One sealed version, opened in memory.

use super::Error;
use crate::base::redact::Secret;
use crate::grade::suite::SealedFile;
use crate::model::criteria::Criteria;
use crate::model::digest::Digest;
use crate::model::ids::{Alias, CriterionId};
use crate::model::manifest::{BaseStatus, Manifest};
use crate::model::outcome::TestId;
use crate::seal::{self, Canary, DecryptError, FileMode, Identity, Payload};
use crate::store::Store;
use crate::store::dossier::{Dossier, Held};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the payload says of its tests beside the files (`payload.toml` of the bundle, as JSON).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meta {
    /// Format, 1.
    pub format: i64,
    /// Every test but the sentinels.
    pub tests: Vec<MetaTest>,
}

/// One test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetaTest {
    /// The framework's name for it.
    pub id: TestId,
    /// The public name.
    pub alias: Alias,
    /// How it ended on the base.
    pub base: BaseStatus,
    /// Whether repeated runs differed.
    pub flaky: bool,
}

/// A version whose ciphertext, payload and files are what the manifest says.
#[derive(Debug)]
pub struct Opened {
    /// Digest of the manifest.
    pub digest: Digest,
    /// The manifest.
    pub manifest: Manifest,
    /// Files, map and base results.
    pub payload: Payload,
    /// The map.
    pub criteria: Criteria,
    /// Base result of every test but the sentinels.
    pub base: BTreeMap<TestId, BaseStatus>,
    /// The canary.
    pub canary: Canary,
}

impl Opened {
    /// The files as the grader takes them.
    pub fn files(&self) -> Vec<SealedFile> {
        let file = |file: &seal::SealedFile| SealedFile {
            path: file.path.clone(),
            executable: file.mode == FileMode::Executable,
            text: file.bytes.clone(),
        };
        self.payload.files().iter().map(file).collect()
    }

    /// Every test id, sentinels included.
    pub fn ids(&self) -> Vec<TestId> {
        self.criteria
            .expected()
            .into_iter()
            .chain(self.criteria.sentinels().iter().cloned())
            .collect()
    }
}

/// Opens a version with the first identity that can. Everything inside is compared with the
/// manifest before it is handed out.
pub fn open(
    store: &Store,
    dossier: &Dossier,
    seal: &Held<Manifest>,
    identities: &[Identity],
) -> Result<Opened, Error> {
    let ciphertexts = ciphertexts(store, dossier, seal)?;
    let mut last = DecryptError::NotARecipient;
    for ciphertext in &ciphertexts {
        for identity in identities {
            match seal::decrypt(ciphertext, identity) {
                Ok(bytes) => return checked(seal, &bytes),
                Err(error) => last = error,
            }
        }
    }
    Err(last.into())
}

/// The version's own ciphertext and those of its reseals, newest first, each of which has the
/// digest that its signed document names.
fn ciphertexts(
    store: &Store,
    dossier: &Dossier,
    seal: &Held<Manifest>,
) -> Result<Vec<Vec<u8>>, Error> {
    let mut found = Vec::new();
    let reseals = dossier
        .reseals
        .iter()
        .filter(|held| held.value().manifest == seal.digest());
    let of_reseals = reseals.map(|held| (&held.folder, held.value().ciphertext));
    for (folder, digest) in of_reseals.chain([(&seal.folder, seal.value().ciphertext)]) {
        let bytes = folder.file(&store.repo, "sealed.age")?;
        found.extend(bytes.filter(|bytes| Digest::of(bytes) == digest));
    }
    found.reverse();
    if found.is_empty() {
        return Err(tampered(
            "its ciphertext is not the one that the manifest names",
        ));
    }
    Ok(found)
}

fn tampered(why: &str) -> Error {
    Error::refused(
        format!("the sealed version can't be used: {why}"),
        "run `hangar verify` to see which documents are at fault",
    )
}

fn checked(seal: &Held<Manifest>, bytes: &Secret) -> Result<Opened, Error> {
    let manifest = seal.value();
    if Digest::of(bytes.expose()) != manifest.payload {
        return Err(tampered(
            "its payload is not the one that the manifest names",
        ));
    }
    let payload = Payload::from_bytes(bytes.expose())?;
    if payload.listing().digest() != manifest.files {
        return Err(tampered(
            "its files are not the ones that the manifest names",
        ));
    }
    let known: Vec<CriterionId> = manifest
        .coverage
        .iter()
        .map(|one| one.criterion.clone())
        .collect();
    let criteria = Criteria::parse(payload.criteria().expose(), &known)
        .map_err(|_| tampered("its criteria.json is malformed"))?;
    let canary =
        Canary::parse(criteria.canary()).filter(|canary| canary.digest() == manifest.canary);
    let canary =
        canary.ok_or_else(|| tampered("its canary is not the one that the manifest names"))?;
    let meta: Meta = serde_json::from_slice(payload.meta().expose())
        .map_err(|_| tampered("its base results are malformed"))?;
    let base = meta
        .tests
        .into_iter()
        .map(|test| (test.id, test.base))
        .collect();
    Ok(Opened {
        digest: seal.digest(),
        manifest: manifest.clone(),
        criteria,
        payload,
        base,
        canary,
    })
}

/// Criterion ids of a task, in its order.
pub fn criterion_ids(task: &crate::model::task::Task) -> Vec<CriterionId> {
    task.criteria
        .iter()
        .map(|criterion| criterion.id.clone())
        .collect()
}
