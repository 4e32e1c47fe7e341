//! Stage `writing` to `sealing`: a writer turns criteria into tests, the base check classifies
//! them, and a version is sealed.

use super::Error;
use super::agent::{self, Assignment, Turned};
use super::basecheck::{self, Checked, Ground};
use super::claim;
use super::host::Host;
use super::outage;
use super::scratch::Scratch;
use super::sealing::{self, Material};
use super::tools::Tooling;
use super::version::{self, criterion_ids};
use crate::base::redact::Secret;
use crate::base::words;
use crate::grade::protect::Globs;
use crate::grade::suite::SealedFile;
use crate::harness::collect::{self, Complaint, Paths, SealedOutput};
use crate::harness::exchange;
use crate::harness::finish::TurnEnd;
use crate::harness::lanes::Lane;
use crate::harness::prompt::{self, Brief, Prompt, WriterBrief};
use crate::model::digest::Digest;
use crate::model::lane::Role;
use crate::model::manifest::Writer;
use crate::model::outcome::Secrecy;
use crate::model::plan::Plan;
use crate::model::run::{Kind, Run, RunOutcome, RunRole};
use crate::model::task::Task;
use crate::store::Store;
use crate::store::dossier::Dossier;
use crate::store::identity::Identity;
use crate::store::write::Written;
use std::path::{Path, PathBuf};

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
    Writing {
        host,
        store,
        dossier,
        lane,
        plan,
        cause,
    }
    .write()
}

/// What every step of writing a version needs.
struct Writing<'a> {
    host: &'a Host<'a>,
    store: &'a Store,
    dossier: &'a Dossier,
    lane: &'a Lane,
    plan: &'a Plan,
    cause: &'a Cause,
}

impl Writing<'_> {
    fn write(&self) -> Result<Written, Error> {
        let base = self.task().base;
        let ground = Ground::new(self.host, self.store, base, self.plan)?;
        ground.preflight(self.host, self.plan)?;
        let scratch = Scratch::new(&self.host.cache)?;
        let work = agent::pinned(&self.store.repo, &scratch, base, None)?;
        let mut previous = previous_files(self.host, self.store, self.dossier, self.cause)?;
        let mut complaint: Option<Complaint> = None;
        let turns = self
            .store
            .policy
            .newest()
            .root
            .acceptance
            .max_writer_turns
            .max(1);
        for number in 1..=turns {
            self.host.check_cancel()?;
            let prompt = prompt_for(self.task(), self.plan, self.cause, complaint.as_ref());
            let handed = std::mem::take(&mut previous);
            let turned = self.turn(number, &prompt, handed, &work, &ground.tooling)?;
            match inspect(self.host, &ground, self.dossier, self.plan, &turned)? {
                Ok((output, checked)) => {
                    let run = self.record(
                        number,
                        &prompt,
                        &turned,
                        RunOutcome::Completed,
                        String::new(),
                    )?;
                    return self.seal(&prompt, run, output, &checked);
                }
                Err(found) => {
                    let told = with_complaint(&turned, &found);
                    self.record(number, &prompt, &told, RunOutcome::Malformed, String::new())?;
                    self.host.note(format!(
                        "turn {number}: the tests can't be sealed yet: {}",
                        found.in_the_open()
                    ));
                    previous = turned_files(turned);
                    complaint = Some(found);
                }
            }
        }
        let last = complaint.map_or_else(String::new, |found| found.in_the_open());
        let id = self.task().id.short();
        Err(Error::Agent {
            what: format!(
                "the writer `{}` left no tests that can be sealed, in {}; the last time: {last}",
                self.lane.name,
                words::count(turns, "turn", "turns")
            ),
            remedy: format!(
                "`hangar review {id} --transcript` shows the last turn and what was \
                 wrong with it; make the criteria clearer (`hangar task edit {id}`), then run the task again"
            ),
        })
    }

    const fn task(&self) -> &Task {
        &self.dossier.history.task
    }

    /// One turn. A program that failed is recorded, and is the end of it.
    fn turn(
        &self,
        number: u32,
        prompt: &Prompt,
        previous: Vec<(PathBuf, Secret)>,
        work: &Path,
        tooling: &Tooling,
    ) -> Result<Turned, Error> {
        self.host.stage(format!(
            "{} writes hidden tests (turn {number})",
            self.lane.name
        ));
        let assignment = Assignment {
            role: Role::Writer,
            number,
            lane: self.lane,
            task: self.task(),
            prompt: &prompt.text,
            context: "",
            previous,
            work,
            throw_away: true,
            collect: agent::collect_bounds(exchange::SEALED),
            canaries: agent::canaries(self.dossier),
            tooling: Some(tooling),
        };
        let turned = agent::turn(self.host, self.store, &assignment)?;
        if let TurnEnd::Failed(failure) = &turned.finish.end {
            let (outcome, note) = (RunOutcome::Failed, outage::in_a_word(failure));
            self.record(number, prompt, &turned, outcome, note)?;
            return Err(agent::failed(Role::Writer, self.lane, self.task(), failure));
        }
        Ok(turned)
    }

    fn record(
        &self,
        number: u32,
        prompt: &Prompt,
        turned: &Turned,
        outcome: RunOutcome,
        note: String,
    ) -> Result<Digest, Error> {
        let (store, task) = (self.store, self.task());
        let worker = Identity::of(&store.policy, self.host.worker.signer())?;
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
            note,
            secrecy: Secrecy::None,
            started: turned.started.to_string(),
            ended: turned.ended.to_string(),
            signer: worker.table(store.clock.now()),
            harness: Some(agent::harness_table(self.lane, turned, prompt.template)),
            sandbox: Some(super::verdict::sandbox_record(Some(&turned.probes))),
            result: None,
            egress: Some(turned.egress_table()),
            attachment: vec![attachment],
        };
        let reference = store.layout.runs(&task.id);
        let files = vec![file];
        let note = "run: writer";
        let written = claim::append(self.host, store, &reference, &worker, &run, files, note)?;
        Ok(written.digest)
    }

    fn seal(
        &self,
        prompt: &Prompt,
        run: Digest,
        output: SealedOutput,
        checked: &Checked,
    ) -> Result<Written, Error> {
        self.host.stage("sealing");
        let files = output
            .files
            .into_iter()
            .map(|(path, file)| (path, file.executable, file.bytes))
            .collect();
        let writer = Writer::Agent {
            harness: self.lane.name.to_string(),
            program: self.lane.adapter.kind().to_owned(),
            model: self.lane.model.clone().unwrap_or_default(),
            prompt: prompt.template,
            run,
        };
        let material = Material {
            files,
            criteria: output.criteria,
            checked,
            plan: self.plan,
            writer,
        };
        sealing::seal(self.host, self.store, self.dossier, material)
    }
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

/// The turn with what was wrong with it at the end of its transcript, which is stored sealed: a
/// complaint may name tests, so no message on a screen can hold it.
fn with_complaint(turned: &Turned, complaint: &Complaint) -> Turned {
    let head = b"\n--- hangar: these tests can't be sealed\n".as_slice();
    let text = complaint.for_writer();
    let transcript = [turned.transcript.expose(), head, text.as_bytes()].concat();
    Turned {
        transcript: Secret::new(transcript),
        ..turned.clone()
    }
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

fn prompt_for(task: &Task, plan: &Plan, cause: &Cause, complaint: Option<&Complaint>) -> Prompt {
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
    let shared = Globs::new(crate::grade::protect::GUARDED)?;
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
    for one in &checked.check.complaints {
        complaint.add(one.kind, one.to_string());
    }
    Ok(Err(complaint))
}

/// The base lacks something that it declares, or the runner broke: nobody's tests can show anything.
pub fn environment(checked: &Checked) -> Error {
    if let Some(said) = &checked.check.broken {
        return Error::missing(
            format!("the test runner broke before it ran a test: {said}"),
            "see whether the runner's version is one that hangar drives, and whether `plugins`, `options` and \
             `env` in hangar.toml under [grader] suit it",
        );
    }
    if !checked.check.unloaded.is_empty() {
        let named: Vec<String> = checked.check.unloaded.iter().cloned().collect();
        let quoted: Vec<String> = named.iter().map(|name| format!("\"{name}\"")).collect();
        return Error::missing(
            format!(
                "tests need plugins of the runner that are installed and not loaded: {}",
                named.join(", ")
            ),
            format!(
                "name them in hangar.toml under [grader], and commit it to the base: plugins = [{}]",
                quoted.join(", ")
            ),
        );
    }
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
