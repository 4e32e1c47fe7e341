//! Stage `implementing`: an implementer who never sees the tests, and what it leaves as a run.

use super::Error;
use super::agent::{self, Assignment, Turned};
use super::claim;
use super::handover::{self, Handover, Left};
use super::host::Host;
use super::outage;
use super::scratch::Scratch;
use super::subject::Subject;
use super::tools::Tooling;
use super::version;
use crate::git::{self, CollectOptions};
use crate::grade::adapter::adapter;
use crate::grade::protect::{self, GUARDED};
use crate::harness::collect::{self, WorkOutput};
use crate::harness::exchange;
use crate::harness::finish::{Failure, TurnEnd};
use crate::harness::lanes::Lane;
use crate::harness::prompt::{self, Brief, ImplementerBrief, Prompt};
use crate::model::digest::Digest;
use crate::model::grade::{Grade, TestOutcome};
use crate::model::lane::Role;
use crate::model::outcome::{Secrecy, TestId, Trust};
use crate::model::plan::Plan;
use crate::model::run::{Kind, Run, RunOutcome, RunResult, RunRole};
use crate::store::Store;
use crate::store::chain::Content;
use crate::store::dossier::{Dossier, Held};
use crate::store::identity::Identity;
use crate::store::write::Written;
use std::path::Path;

/// One round of implementing.
#[derive(Debug)]
pub struct Round<'a> {
    /// With which program.
    pub lane: &'a Lane,
    /// Number, from 1.
    pub number: u32,
    /// Rounds that are left after this one.
    pub left: u32,
    /// The approved manifest; `None` for a plain task.
    pub manifest: Option<Digest>,
    /// The grade of the round before.
    pub feedback: Option<Digest>,
    /// The plan, for the protected paths; `None` where the repository has none.
    pub plan: Option<&'a Plan>,
    /// The repository's own check.
    pub verify: Option<&'a str>,
}

/// Runs the round and records it. Fails where the program failed: then nothing counts as a round.
pub fn implement(
    host: &Host<'_>,
    store: &Store,
    dossier: &Dossier,
    round: &Round<'_>,
) -> Result<Written, Error> {
    Implementing {
        host,
        store,
        dossier,
        round,
    }
    .implement()
}

/// What every step of one round needs.
struct Implementing<'a> {
    host: &'a Host<'a>,
    store: &'a Store,
    dossier: &'a Dossier,
    round: &'a Round<'a>,
}

impl Implementing<'_> {
    fn implement(&self) -> Result<Written, Error> {
        let (store, task) = (self.store, &self.dossier.history.task);
        let scratch = Scratch::new(&self.host.cache)?;
        let before = self
            .round
            .feedback
            .and_then(|digest| graded_tree(self.dossier, digest));
        let left = handover::find(store, self.dossier, self.round.number, self.round.manifest);
        let start = left.as_ref().map(|left| left.tree).or(before);
        let work = agent::pinned(&store.repo, &scratch, task.base, start)?;
        let mut prompt = prompt_for(self.host, store, self.dossier, self.round)?;
        if left.is_some() {
            prompt = prompt::taken_over(&prompt, exchange::INSIDE);
        }
        let turned = self.turn(&prompt, &work, left.as_ref())?;
        if let TurnEnd::Failed(failure) = &turned.finish.end {
            return Err(self.stopped(&prompt, &turned, failure, &work, left)?);
        }
        self.host.stage("collecting the patch");
        let base_tree = store.repo.read_commit(task.base)?.tree;
        let collected = store
            .repo
            .collect(base_tree, &work, &CollectOptions::default());
        if let Some(fault) = fault(&collected) {
            self.record(&prompt, &turned, (RunOutcome::Malformed, ""), None)?;
            return Err(Error::Agent {
                what: format!("the implementer `{}` {fault}", self.round.lane.name),
                remedy: "what a build makes belongs into .gitignore; then run the task again"
                    .into(),
            });
        }
        let collected = collected?;
        for folder in collected.nested.iter().take(5) {
            self.host.note(format!(
                "`{}` is a repository of its own: its files are taken as files of the patch, and no \
                 submodule is made of it",
                String::from_utf8_lossy(folder)
            ));
        }
        let subject = Subject::new(&store.repo, task.base, collected.tree)?;
        if let Some(name) = turned
            .env
            .credential_in(&subject.changed_contents(&store.repo)?)
        {
            let name = name.to_string_lossy();
            self.record(&prompt, &turned, (RunOutcome::Malformed, ""), None)?;
            return Err(Error::Agent {
                what: format!(
                    "the implementer `{}` left the value of `{name}` in its patch",
                    self.round.lane.name
                ),
                remedy: "the patch is not kept; run the task again".into(),
            });
        }
        let result = result_table(&subject, collected.ignored);
        let how = (RunOutcome::Completed, "");
        let written = self.record(&prompt, &turned, how, Some(result))?;
        handover::forget(store, self.dossier);
        Ok(written)
    }

    /// Records a turn that failed. What an outage stopped is handed over.
    fn stopped(
        &self,
        prompt: &Prompt,
        turned: &Turned,
        failure: &Failure,
        work: &Path,
        before: Option<Handover>,
    ) -> Result<Error, Error> {
        let (store, dossier, round) = (self.store, self.dossier, self.round);
        let task = &dossier.history.task;
        let why = outage::in_a_word(failure);
        let written = self.record(prompt, turned, (RunOutcome::Failed, &why), None)?;
        let error = agent::failed(Role::Implementer, round.lane, task, failure);
        let taken = match error {
            Error::Stopped(_) => self.taken_up(turned, &why, work, before.as_ref())?,
            _ => None,
        };
        // One that did nothing, or broke, hands on what it was handed.
        if let Some(left) = taken.or(before) {
            handover::keep(self.host, store, dossier, written.digest, left);
        }
        Ok(error)
    }

    /// What an outage stopped, for the next lane.
    fn taken_up(
        &self,
        turned: &Turned,
        why: &str,
        work: &Path,
        before: Option<&Handover>,
    ) -> Result<Option<Handover>, Error> {
        let (store, dossier, round) = (self.store, self.dossier, self.round);
        let feedback = round.feedback;
        let graded = feedback.and_then(|digest| graded_tree(dossier, digest));
        let begun = match before.map(|before| before.tree).or(graded) {
            Some(tree) => tree,
            None => store.repo.read_commit(dossier.history.task.base)?.tree,
        };
        let left = Left {
            lane: round.lane,
            turned,
            work,
            begun,
            why,
            log: feedback.is_none(),
        };
        let taken = handover::take_up(store, dossier, &left);
        Ok(taken.unwrap_or_else(|why| {
            let who = &round.lane.name;
            self.host
                .note(format!("what `{who}` did is not handed over: {why}"));
            None
        }))
    }

    fn turn(&self, prompt: &Prompt, work: &Path, left: Option<&Handover>) -> Result<Turned, Error> {
        let round = self.round;
        self.host.stage(format!(
            "{} implements (round {})",
            round.lane.name, round.number
        ));
        let (repo, base) = (&self.store.repo, self.dossier.history.task.base);
        let find = |plan| Tooling::find(self.host, repo, base, plan);
        let tooling = round.plan.map(find).transpose()?;
        let assignment = Assignment {
            role: Role::Implementer,
            number: round.number,
            lane: round.lane,
            task: &self.dossier.history.task,
            prompt: &prompt.text,
            context: left.map_or("", |left| left.context.as_str()),
            previous: Vec::new(),
            work,
            throw_away: false,
            collect: agent::collect_bounds(exchange::OUT),
            canaries: agent::canaries(self.dossier),
            tooling: tooling.as_ref(),
        };
        agent::turn(self.host, self.store, &assignment)
    }

    fn record(
        &self,
        prompt: &Prompt,
        turned: &Turned,
        (outcome, why): (RunOutcome, &str),
        result: Option<RunResult>,
    ) -> Result<Written, Error> {
        let (store, round, task) = (self.store, self.round, &self.dossier.history.task);
        let worker = Identity::of(&store.policy, self.host.worker.signer())?;
        let output = collect::work(turned.files.clone(), &turned.left_out);
        // From the second round on the program has seen ids of hidden tests.
        let sealed = round.feedback.is_some();
        let mut attachments = Vec::new();
        let mut files = Vec::new();
        for (name, bytes) in texts(&output, turned) {
            let (attachment, file) = agent::attach(store, task, name, &bytes, sealed)?;
            attachments.push(attachment);
            files.push(file);
        }
        if let Some(result) = &result {
            files.push(("result".into(), Content::Tree(result.tree)));
        }
        let held = turned.probes.trust() >= Trust::Confined;
        let run = Run {
            format: 1,
            repo: store.policy.repo(),
            task: task.id.clone(),
            kind: Kind::Agent,
            role: RunRole::Implementer,
            round: round.number,
            manifest: round.manifest,
            outcome,
            note: why.to_owned(),
            secrecy: if held {
                Secrecy::Confined
            } else {
                Secrecy::Filtered
            },
            started: turned.started.to_string(),
            ended: turned.ended.to_string(),
            signer: worker.table(store.clock.now()),
            harness: Some(agent::harness_table(round.lane, turned, prompt.template)),
            sandbox: Some(super::verdict::sandbox_record(Some(&turned.probes))),
            result,
            egress: Some(turned.egress_table()),
            attachment: attachments,
        };
        let note = format!("run: implementer, round {}", round.number);
        let reference = store.layout.runs(&task.id);
        claim::append(self.host, store, &reference, &worker, &run, files, &note)
    }
}

/// What an implementer left that no commit can hold. Its doing, not the machine's: such a turn is
/// recorded like any other.
fn fault(collected: &Result<git::Collected, git::Error>) -> Option<String> {
    match collected {
        Ok(collected) => collected.refused.first().map(|refused| {
            let path = String::from_utf8_lossy(&refused.path).into_owned();
            let (path, fault) = (path.escape_debug(), &refused.fault);
            format!("left `{path}`, which no commit can hold: it {fault}")
        }),
        Err(error @ (git::Error::TooLarge { .. } | git::Error::Path { .. })) => {
            Some(format!("left what no commit can hold: {error}"))
        }
        Err(_) => None,
    }
}

/// The tree that a grade was about: where the next round goes on.
fn graded_tree(dossier: &Dossier, grade: Digest) -> Option<crate::model::object_id::ObjectId> {
    dossier
        .grades
        .iter()
        .find(|held| held.digest() == grade)
        .map(|held| held.value().subject.tree)
}

/// The result table of a run document.
pub fn result_table(subject: &Subject, ignored: usize) -> RunResult {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    RunResult {
        base: subject.base,
        base_listing: subject.base_listing.digest(),
        tree: subject.tree,
        listing: subject.listing.digest(),
        patch: subject.patch,
        changed: number(subject.changes().len()),
        ignored: number(ignored),
        guarded: protect::named(&subject.changes()),
    }
}

fn prompt_for(
    host: &Host<'_>,
    store: &Store,
    dossier: &Dossier,
    round: &Round<'_>,
) -> Result<Prompt, Error> {
    let task = &dossier.history.task;
    let criteria = agent::criteria(task);
    let protected = protected(round.plan);
    let guarded: Vec<String> = GUARDED.iter().map(|glob| (*glob).to_owned()).collect();
    let brief = ImplementerBrief {
        brief: Brief {
            title: &task.title,
            mandate: &task.mandate,
            criteria: &criteria,
            work: agent::WORK,
            exchange: exchange::INSIDE,
        },
        protected: &protected,
        guarded: &guarded,
        verify: round.verify,
        rounds_left: round.left,
    };
    let feedback = round
        .feedback
        .and_then(|digest| dossier.grades.iter().find(|held| held.digest() == digest));
    let Some(feedback) = feedback else {
        return Ok(prompt::implementer(&brief));
    };
    let failing = failing_ids(host, store, dossier, feedback)?;
    let total = feedback.value().counts.expected as usize;
    Ok(prompt::implementer_follow_up(&brief, total, &failing))
}

/// Everything that a patch may not touch, for the prompt.
fn protected(plan: Option<&Plan>) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(plan) = plan {
        all.extend(
            adapter(plan.framework)
                .protected()
                .iter()
                .map(|glob| (*glob).to_owned()),
        );
        all.extend(plan.protected.iter().cloned());
        all.retain(|glob| !plan.may_touch.contains(glob));
    }
    all.sort();
    all.dedup();
    all
}

/// Ids behind the aliases that did not pass. The grader opens the version for that; parameters are
/// cut where the prompt is made.
fn failing_ids(
    host: &Host<'_>,
    store: &Store,
    dossier: &Dossier,
    grade: &Held<Grade>,
) -> Result<Vec<TestId>, Error> {
    let Some(seal) = dossier.seal(grade.value().manifest) else {
        return Ok(Vec::new());
    };
    let opened = version::open(store, dossier, seal, &[host.grader_identity()?])?;
    let passed: Vec<_> = grade
        .value()
        .test
        .iter()
        .filter(|test| test.outcome == TestOutcome::Passed)
        .map(|test| &test.alias)
        .collect();
    let expected = opened.criteria.expected();
    let named = opened.criteria.named().into_iter();
    let failing = named.filter(|(alias, id)| expected.contains(id) && !passed.contains(&alias));
    Ok(failing.map(|(_, id)| id).collect())
}

/// What is kept of a round beside the patch.
fn texts<'a>(output: &'a WorkOutput, turned: &'a Turned) -> Vec<(&'static str, Vec<u8>)> {
    let mut texts = vec![("transcript", turned.transcript.expose().to_vec())];
    texts.extend(
        output
            .result
            .as_ref()
            .map(|text| ("RESULT.md", text.clone().into_bytes())),
    );
    let report = output
        .report
        .as_ref()
        .and_then(|report| serde_json::to_vec_pretty(report).ok());
    texts.extend(report.map(|bytes| ("report.json", bytes)));
    let records: Vec<_> = turned.egress.iter().map(ToString::to_string).collect();
    if !records.is_empty() {
        texts.push(("egress.log", records.join("\n").into_bytes()));
    }
    texts
}

/// A person's own patch as the implementation: the run document, signed by that person.
pub fn submit(
    store: &Store,
    dossier: &Dossier,
    person: &Identity<'_>,
    manifest: Option<Digest>,
    subject: &Subject,
) -> Result<Written, Error> {
    let task = &dossier.history.task;
    let now = store.clock.now();
    let earlier = super::stage::completed_runs(dossier, manifest).len();
    let run = Run {
        format: 1,
        repo: store.policy.repo(),
        task: task.id.clone(),
        kind: Kind::Submitted,
        role: RunRole::Implementer,
        round: u32::try_from(earlier).unwrap_or(u32::MAX).saturating_add(1),
        manifest,
        outcome: RunOutcome::Completed,
        note: String::new(),
        secrecy: Secrecy::Policy,
        started: now.to_string(),
        ended: now.to_string(),
        signer: person.table(now),
        harness: None,
        sandbox: None,
        result: Some(result_table(subject, 0)),
        egress: None,
        attachment: Vec::new(),
    };
    let files = vec![("result".into(), Content::Tree(subject.tree))];
    Ok(store.append_document(
        &store.layout.runs(&task.id),
        person,
        &run,
        files,
        "run: submitted",
    )?)
}
