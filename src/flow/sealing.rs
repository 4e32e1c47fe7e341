//! From checked tests to one version of the sealed store.

use super::Error;
use super::basecheck::Checked;
use super::claim;
use super::host::Host;
use super::version::{Meta, MetaTest};
use crate::base::redact::Secret;
use crate::git::Repository;
use crate::model::criteria::Criteria;
use crate::model::digest::Digest;
use crate::model::manifest::{self, Manifest, Writer};
use crate::model::object_id::ObjectId;
use crate::model::plan::Plan;
use crate::model::policy::Policy;
use crate::model::task::Task;
use crate::seal::{self, Canary, FileMode, Payload, Recipient, RecipientError};
use crate::store::Store;
use crate::store::chain::Content;
use crate::store::dossier::{Dossier, Held};
use crate::store::identity::Identity;
use crate::store::write::Written;

/// Everything that a new version is made of.
#[derive(Debug)]
pub struct Material<'a> {
    /// Files as the writer left them: path, executable, content.
    pub files: Vec<(String, bool, Secret)>,
    /// The writer's map.
    pub criteria: Criteria,
    /// What they did on the base.
    pub checked: &'a Checked,
    /// How they are run.
    pub plan: &'a Plan,
    /// Who wrote them.
    pub writer: Writer,
}

/// Seals one version: canary, payload, age, manifest, one commit.
pub fn seal(
    host: &Host<'_>,
    store: &Store,
    dossier: &Dossier,
    material: Material<'_>,
) -> Result<Written, Error> {
    let task = &dossier.history.task;
    let grader = Identity::of(&store.policy, host.grader.signer())?;
    let canary = Canary::new();
    let criteria = material.criteria.with_canary(canary.token());
    let payload = payload(&material.files, &criteria, material.checked, &canary)?;
    let bytes = payload.to_bytes()?;
    let recipients = recipients(store, task)?;
    let ciphertext = seal::encrypt(bytes.expose(), &recipients)?;
    let versions: Vec<_> = dossier.seals.iter().collect();
    let base_tree = store.repo.read_commit(task.base)?.tree;
    let manifest = Manifest {
        format: 1,
        repo: store.policy.repo(),
        task: task.id.clone(),
        version: versions
            .iter()
            .map(|seal| seal.value().version)
            .max()
            .unwrap_or(0)
            + 1,
        previous: versions.last().map(|seal| seal.digest()),
        files: payload.listing().digest(),
        payload: Digest::of(bytes.expose()),
        ciphertext: Digest::of(&ciphertext),
        canary: canary.digest(),
        text: task.text_digest(),
        base: task.base,
        base_listing: store.repo.listing(base_tree)?.listing.digest(),
        recipients: recipients
            .iter()
            .map(|recipient| recipient.as_str().to_owned())
            .collect(),
        after_code: code_was_seen(dossier),
        signer: grader.table(store.clock.now()),
        writer: material.writer,
        counts: material
            .checked
            .check
            .counts(&criteria, material.files.len()),
        plan: material.plan.clone(),
        base_check: material.checked.check.rows(&criteria),
        coverage: material.checked.check.coverage(&criteria),
    };
    let files = vec![("sealed.age".into(), Content::File(ciphertext))];
    let note = format!("seal: version {}", manifest.version);
    claim::append(
        host,
        store,
        &store.layout.sealed(&task.id),
        &grader,
        &manifest,
        files,
        &note,
    )
}

/// Whether any implementation of the task was recorded before.
fn code_was_seen(dossier: &Dossier) -> bool {
    dossier
        .runs
        .iter()
        .any(|run| run.value().role == crate::model::run::RunRole::Implementer)
}

/// age recipients of a task.
pub fn recipients(store: &Store, task: &Task) -> Result<Vec<Recipient>, Error> {
    let newest = store.policy.newest();
    let texts = newest.recipients(&task.requester);
    let parse = |text: &String| {
        text.parse()
            .map_err(|source| unusable(newest, text, source))
    };
    texts.iter().map(parse).collect()
}

/// The error that says whose recipient it is.
fn unusable(policy: &Policy, text: &str, source: RecipientError) -> Error {
    let mut people = policy.members.person.iter();
    let person = people.find(|one| one.recipients.iter().any(|own| own == text));
    let mut machines = policy.members.machine.iter();
    let machine = machines.find(|one| one.public == text);
    let names = person.map(|one| &one.name).or(machine.map(|one| &one.name));
    match names {
        Some(holder) => Error::Recipient {
            holder: holder.clone(),
            is_grader: person.is_none(),
            source,
        },
        // Every recipient comes from one of the two.
        None => Error::refused(source.to_string(), "see `hangar policy show --json`"),
    }
}

fn payload(
    files: &[(String, bool, Secret)],
    criteria: &Criteria,
    checked: &Checked,
    canary: &Canary,
) -> Result<Payload, Error> {
    let sealed = files
        .iter()
        .map(|(path, executable, bytes)| seal::SealedFile {
            path: path.clone(),
            mode: if *executable {
                FileMode::Executable
            } else {
                FileMode::Regular
            },
            bytes: Secret::new(seal::insert(path, bytes.expose(), canary)),
        })
        .collect();
    let results = &checked.check.results;
    let tests = criteria.named().into_iter().filter_map(|(alias, id)| {
        let base = results.get(&id)?.status()?;
        let flaky = checked.check.flakes.contains(&id);
        Some(MetaTest {
            id,
            alias,
            base,
            flaky,
        })
    });
    let meta = Meta {
        format: 1,
        tests: tests.collect(),
    };
    let meta = serde_json::to_vec(&meta).expect("ids, aliases and words are JSON");
    Ok(Payload::new(
        sealed,
        Secret::new(criteria.to_bytes()),
        Secret::new(meta),
    )?)
}

/// Encrypts a version's payload again for everybody who may read it now.
pub fn reseal(
    host: &Host<'_>,
    store: &Store,
    dossier: &Dossier,
    seal: &Held<Manifest>,
) -> Result<Option<Written>, Error> {
    let wanted = recipients(store, &dossier.history.task)?;
    let texts: Vec<String> = wanted
        .iter()
        .map(|recipient| recipient.as_str().to_owned())
        .collect();
    let newest = dossier
        .reseals
        .iter()
        .rfind(|held| held.value().manifest == seal.digest());
    let current = newest.map_or(&seal.value().recipients, |held| &held.value().recipients);
    if texts.iter().all(|text| current.contains(text)) {
        return Ok(None);
    }
    let grader = Identity::of(&store.policy, host.grader.signer())?;
    let opened = super::version::open(store, dossier, seal, &[host.grader_identity()?])?;
    let bytes = opened.payload.to_bytes()?;
    if Digest::of(bytes.expose()) != seal.value().payload {
        return Err(Error::refused(
            "this binary packs the payload differently",
            "use the hangar version that sealed it",
        ));
    }
    let ciphertext = seal::encrypt(bytes.expose(), &wanted)?;
    let document = manifest::Reseal {
        format: 1,
        repo: store.policy.repo(),
        task: dossier.id().clone(),
        manifest: seal.digest(),
        ciphertext: Digest::of(&ciphertext),
        recipients: texts,
        signer: grader.table(store.clock.now()),
    };
    let files = vec![("sealed.age".into(), Content::File(ciphertext))];
    Ok(Some(store.append_document(
        &store.layout.sealed(dossier.id()),
        &grader,
        &document,
        files,
        "reseal",
    )?))
}

/// The listing digest of a commit's tree.
pub fn listing_digest(repo: &Repository, commit: ObjectId) -> Result<Digest, Error> {
    let tree = repo.read_commit(commit)?.tree;
    Ok(repo.listing(tree)?.listing.digest())
}
