//! Stage `writing` to `sealing`: a writer turns criteria into tests, the base check classifies
//! them, and a version is sealed.

use super::Error;
use super::agent::{self, Assignment, Turned};
use super::basecheck::{self, Checked, Ground};
use super::host::Host;
use super::scratch::Scratch;
use super::sealing::{self, Material};
use super::version::{self, criterion_ids};
use crate::base::redact::Secret;
use crate::grade::protect::Globs;
use crate::grade::suite::SealedFile;
use crate::harness::adapter::TurnEnd;
use crate::harness::collect::{self, Complaint, Paths, SealedOutput};
use crate::harness::exchange;
use crate::harness::lanes::Lane;
use crate::harness::prompt::{self, Brief, Prompt, WriterBrief};
use crate::model::digest::Digest;
use crate::model::lane::Role;
use crate::model::manifest::Writer;
use crate::model::outcome::Secrecy;
use crate::model::plan::Plan;
use crate::model::run::{Kind, Run, RunOutcome, RunRole};
use crate::store::Store;
use crate::store::dossier::Dossier;
use crate::store::identity::Identity;
use crate::store::write::Written;
use std::path::PathBuf;

/// Why a new version is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// The manifest before.
    pub previous: Option<Digest>,
    /// Reasons of its rejection; empty for a first version.
    pub reasons: Vec<String>,
}

/// Writes, checks and seals one version.
pub fn write(
    host: &Host<'_>,
    store: &Store,
    dossier: &Dossier,
    lane: &Lane,
    plan: &Plan,
    cause: &Cause,
) -> Result<Written, Error> {
    let task = &dossier.history.task;
    let ground = Ground::new(host, &store.repo, task.base, plan)?;
    ground.preflight(host, plan)?;
    let scratch = Scratch::new(&host.cache)?;
    let work = agent::pinned(&store.repo, &scratch, task.base, None)?;
    let settings = &store.policy.newest().root.acceptance;
    let mut previous = previous_files(host, store, dossier, cause)?;
    let mut complaint: Option<Complaint> = None;
    for number in 1..=settings.max_writer_turns.max(1) {
        host.check_cancel()?;
        host.stage(format!("{} writes hidden tests (turn {number})", lane.name));
        let prompt = prompt_for(task, plan, cause, complaint.as_ref());
        let turned = agent::turn(
            host,
            store,
            Assignment {
                role: Role::Writer,
                number,
                lane,
                task,
                prompt: &prompt.text,
                previous: std::mem::take(&mut previous),
                work: &work,
                throw_away: true,
                collect: agent::collect_bounds(exchange::SEALED),
                canaries: agent::canaries(dossier),
            },
        )?;
        if let TurnEnd::Failed(_, why) = &turned.finish.end {
            record(
                host,
                store,
                dossier,
                lane,
                number,
                &prompt,
                &turned,
                RunOutcome::Failed,
            )?;
            return Err(Error::Agent {
                what: format!("the writer `{}` failed: {why}", lane.name),
                remedy: "look at `hangar harness test`, then run the task again".into(),
            });
        }
        let outcome = inspect(host, &ground, dossier, plan, &turned)?;
        match outcome {
            Ok((output, checked)) => {
                let run = record(
                    host,
                    store,
                    dossier,
                    lane,
                    number,
                    &prompt,
                    &turned,
                    RunOutcome::Completed,
                )?;
                return seal(
                    host, store, dossier, lane, plan, &prompt, run, output, &checked,
                );
            }
            Err(found) => {
                record(
                    host,
                    store,
                    dossier,
                    lane,
                    number,
                    &prompt,
                    &turned,
                    RunOutcome::Malformed,
                )?;
                host.note(format!("turn {number}: the tests can't be sealed yet"));
                previous = turned_files(turned);
                complaint = Some(found);
            }
        }
    }
    let faults = complaint
        .map(|complaint| complaint.for_writer())
        .unwrap_or_default();
    drop(faults);
    Err(Error::Agent {
        what: format!("the writer `{}` left no tests that can be sealed, in {} turns", lane.name, settings.max_writer_turns),
        remedy: "see `hangar review TASK --transcript`, make the criteria clearer (`hangar task edit`), then run the task again".into(),
    })
}

/// Files of the version before, for a writer that is to do better.
fn previous_files(
    host: &Host<'_>,
    store: &Store,
    dossier: &Dossier,
    cause: &Cause,
) -> Result<Vec<(PathBuf, Secret)>, Error> {
    let Some(seal) = cause
        .previous
        .filter(|_| !cause.reasons.is_empty())
        .and_then(|digest| dossier.seal(digest))
    else {
        return Ok(Vec::new());
    };
    let opened = version::open(store, dossier, seal, &[host.grader_identity()?])?;
    let clean = |bytes: &Secret| Secret::new(crate::seal::remove(bytes.expose(), &opened.canary));
    let files = opened
        .payload
        .files()
        .iter()
        .map(|file| (PathBuf::from(&file.path), clean(&file.bytes)));
    let map = opened.criteria.clone().with_canary("").to_bytes();
    Ok(files
        .chain([(PathBuf::from(exchange::CRITERIA), Secret::new(map))])
        .collect())
}

/// What a turn left, for the next turn of the same writer.
fn turned_files(turned: Turned) -> Vec<(PathBuf, Secret)> {
    let plain = |path: &[u8]| {
        let text = std::str::from_utf8(path).ok()?;
        crate::seal::check_path(text)
            .is_ok()
            .then(|| PathBuf::from(text))
    };
    turned
        .files
        .into_iter()
        .filter_map(|file| Some((plain(&file.path)?, file.bytes)))
        .collect()
}

fn prompt_for(
    task: &crate::model::task::Task,
    plan: &Plan,
    cause: &Cause,
    complaint: Option<&Complaint>,
) -> Prompt {
    let criteria = agent::criteria(task);
    let one_test = crate::grade::adapter::one_test(plan.framework);
    let brief = WriterBrief {
        brief: Brief {
            title: &task.title,
            mandate: &task.mandate,
            criteria: &criteria,
            work: agent::WORK,
            exchange: exchange::INSIDE,
        },
        framework: plan.framework,
        one_test,
        tests: &plan.tests,
    };
    match (complaint, cause.reasons.as_slice()) {
        (Some(complaint), _) => prompt::writer_follow_up(&brief, complaint),
        (None, []) => prompt::writer(&brief),
        (None, reasons) => prompt::writer_rewrite(&brief, &reasons.join("\n\n")),
    }
}

type Inspected = Result<(SealedOutput, Checked), Complaint>;

/// Validates `out/sealed` and runs the base check. The inner error is for the writer.
fn inspect(
    host: &Host<'_>,
    ground: &Ground,
    dossier: &Dossier,
    plan: &Plan,
    turned: &Turned,
) -> Result<Inspected, Error> {
    let globs = Globs::new(&plan.tests)?;
    let shared = Globs::new(crate::grade::protect::SHARED)?;
    let ids = criterion_ids(&dossier.history.task);
    let paths = Paths {
        tests: &plan.tests,
        allowed: &|path| globs.matches(path.as_bytes()),
        protected: &|path| shared.matches(path.as_bytes()),
    };
    let output = match collect::sealed(turned.files.clone(), &turned.left_out, &ids, &paths) {
        Ok(output) => output,
        Err(complaint) => return Ok(Err(complaint)),
    };
    host.stage("running the hidden tests on the base");
    let checked = basecheck::check(host, ground, plan, suite_files(&output), &output.criteria)?;
    if checked.check.is_environment() {
        return Err(environment(&checked));
    }
    if checked.check.complaints.is_empty() {
        return Ok(Ok((output, checked)));
    }
    let mut complaint = Complaint::default();
    for line in &checked.check.complaints {
        complaint.add(line.clone());
    }
    Ok(Err(complaint))
}

/// The base lacks something that it declares: nobody's tests can show anything.
pub fn environment(checked: &Checked) -> Error {
    let modules: Vec<&str> = checked.check.missing.iter().map(String::as_str).collect();
    let what = if modules.is_empty() {
        "what some of the tests need is not there".to_owned()
    } else {
        format!(
            "declared dependencies are not there: {}",
            modules.join(", ")
        )
    };
    Error::missing(
        what,
        "let `grader.prepare` in hangar.toml install them, and commit it to the base",
    )
}

fn suite_files(output: &SealedOutput) -> Vec<SealedFile> {
    output
        .files
        .iter()
        .map(|(path, file)| SealedFile {
            path: path.clone(),
            executable: file.executable,
            text: file.bytes.clone(),
        })
        .collect()
}

#[expect(
    clippy::too_many_arguments,
    reason = "a run document joins what six steps found out"
)]
fn record(
    host: &Host<'_>,
    store: &Store,
    dossier: &Dossier,
    lane: &Lane,
    number: u32,
    prompt: &Prompt,
    turned: &Turned,
    outcome: RunOutcome,
) -> Result<Digest, Error> {
    let task = &dossier.history.task;
    let worker = Identity::of(&store.policy, host.worker.signer())?;
    let (attachment, file) =
        agent::attach(store, task, "transcript", turned.transcript.expose(), true)?;
    let run = Run {
        format: 1,
        repo: store.policy.repo(),
        task: task.id.clone(),
        kind: Kind::Agent,
        role: RunRole::Writer,
        round: number,
        manifest: None,
        outcome,
        note: String::new(),
        secrecy: Secrecy::None,
        started: turned.started.to_string(),
        ended: turned.ended.to_string(),
        signer: worker.table(store.clock.now()),
        harness: Some(agent::harness_table(lane, prompt.template)),
        sandbox: Some(super::verdict::sandbox_record(Some(&turned.probes))),
        result: None,
        egress: Some(turned.egress_table()),
        attachment: vec![attachment],
    };
    let written = store.append_document(
        &store.layout.runs(&task.id),
        &worker,
        &run,
        vec![file],
        "run: writer",
    )?;
    Ok(written.digest)
}

#[expect(
    clippy::too_many_arguments,
    reason = "a version joins what six steps found out"
)]
fn seal(
    host: &Host<'_>,
    store: &Store,
    dossier: &Dossier,
    lane: &Lane,
    plan: &Plan,
    prompt: &Prompt,
    run: Digest,
    output: SealedOutput,
    checked: &Checked,
) -> Result<Written, Error> {
    host.stage("sealing");
    let files = output
        .files
        .into_iter()
        .map(|(path, file)| (path, file.executable, file.bytes))
        .collect();
    let writer = Writer::Agent {
        harness: lane.name.to_string(),
        program: lane.adapter.kind().to_owned(),
        model: lane.model.clone().unwrap_or_default(),
        prompt: prompt.template,
        run,
    };
    sealing::seal(
        host,
        store,
        dossier,
        Material {
            files,
            criteria: output.criteria,
            checked,
            plan,
            writer,
        },
    )
}
