//! A task taken to its delivery document by document, without a sandbox, so that any of them can be
//! forged with a good signature.

use super::plot::{GOOD, Plot};
use crate::flow::world::World;
use hangar::base::redact::Secret;
use hangar::flow::basecheck::Checked;
use hangar::flow::host::Host;
use hangar::flow::sealing::{self, Material};
use hangar::flow::subject::Subject;
use hangar::flow::{claim, decide, drive, implementer};
use hangar::git::{CommitDraft, EntryKind, Repository, TreeEntry};
use hangar::grade::basecheck::{BaseCheck, BaseResult};
use hangar::model::approval::Action;
use hangar::model::criteria::Criteria;
use hangar::model::digest::Digest;
use hangar::model::event::Change;
use hangar::model::grade::{Grade, GradeCounts, TestOutcome, TestResult, Timing};
use hangar::model::ids::TaskId;
use hangar::model::manifest::Writer;
use hangar::model::object_id::ObjectId;
use hangar::model::outcome::{FailureClass, Secrecy, TestId, Trust, Verdict};
use hangar::model::plan::{Framework, Plan};
use hangar::model::run::{Kind, Run, RunOutcome, RunRole, SandboxRecord};
use hangar::sandbox::probe::{CONFINED, SEALED};
use hangar::store::Store;
use hangar::store::chain::Content;
use hangar::store::dossier::{Dossier, Held};
use hangar::store::identity::Identity;

const MAP: &str = r#"{"format": 1, "criteria": {"c1": ["tests/sub.sh"]}, "others": ["tests/guard.sh"], "sentinels": ["tests/never.sh"], "notes": ""}"#;

/// The making of one task's documents.
pub(crate) struct Making<'a> {
    pub(crate) world: &'a World,
    pub(crate) id: &'a TaskId,
}

impl Making<'_> {
    /// All documents, one on the other.
    pub(crate) fn all(&self, plot: &Plot<'_>) {
        let (store, host) = (self.world.store(), self.world.host());
        let _hold = claim::take(&host, &store, self.id).unwrap();
        self.seal(&store, &host, plot);
        self.approve(&store, plot);
        self.consume(&store, &host, plot);
        let run = self.run(&store, &host, plot);
        let grade = self.grade(&store, &host, run, plot);
        if plot.signed_patch {
            let dossier = self.dossier(&store);
            let patch = dossier.runs[0].value().result.as_ref().unwrap().patch;
            let alice = self.world.person(&store);
            decide::approve_patch(&store, &dossier, &alice, patch).unwrap();
        }
        if !plot.undelivered {
            self.deliver(&store, &host, run, grade, plot);
        }
    }

    fn dossier(&self, store: &Store) -> Dossier {
        store.dossier(self.id).unwrap()
    }

    pub(crate) fn seal(&self, store: &Store, host: &Host<'_>, plot: &Plot<'_>) {
        let known = ["c1".parse().unwrap()];
        let id = |text: &str| TestId::new(text).unwrap();
        let check = BaseCheck {
            results: [
                (
                    id("tests/sub.sh"),
                    BaseResult::Fails(FailureClass::Assertion),
                ),
                (id("tests/guard.sh"), BaseResult::Guard),
            ]
            .into(),
            ..BaseCheck::default()
        };
        let file = |name: &str| {
            let text = format!("#!/bin/sh\n# {name}\nexit 1\n");
            (
                format!("tests/{name}.sh"),
                true,
                Secret::new(text.into_bytes()),
            )
        };
        let material = Material {
            files: vec![file("sub"), file("guard"), file("never")],
            criteria: Criteria::parse(MAP.as_bytes(), &known).unwrap(),
            checked: &Checked {
                check,
                known: Vec::new(),
            },
            plan: &Plan::new(Framework::Exec),
            writer: Writer::Person {
                name: "alice".parse().unwrap(),
            },
        };
        sealing::seal(host, store, &self.dossier(store), material).unwrap();
        if let Some(edit) = plot.manifest {
            let dossier = self.dossier(store);
            let seal = dossier.seals.last().unwrap();
            let sealed = seal
                .folder
                .file(&store.repo, "sealed.age")
                .unwrap()
                .unwrap();
            let mut manifest = seal.value().clone();
            edit(&mut manifest);
            let grader = Identity::of(&store.policy, host.grader.signer()).unwrap();
            let reference = store.layout.sealed(self.id);
            delete(store, &reference);
            let more = vec![("sealed.age".into(), Content::File(sealed))];
            store
                .append_document(&reference, &grader, &manifest, more, "x")
                .unwrap();
        }
    }

    pub(crate) fn approve(&self, store: &Store, plot: &Plot<'_>) {
        self.world.decide(self.id, Action::Approve, "");
        if let Some(edit) = plot.approval {
            let dossier = self.dossier(store);
            let mut approval = dossier.decisions[0].value().clone();
            let alice = self.world.person(store);
            let layout = &store.layout;
            delete(
                store,
                &layout.approval(self.id, &approval.manifest, alice.key()),
            );
            edit(&mut approval);
            let reference = layout.approval(self.id, &approval.manifest, alice.key());
            store
                .append_document(&reference, &alice, &approval, Vec::new(), "x")
                .unwrap();
        }
    }

    /// By hand where the flow would refuse what was forged.
    pub(crate) fn consume(&self, store: &Store, host: &Host<'_>, plot: &Plot<'_>) {
        let dossier = self.dossier(store);
        let manifest = dossier.seals.last().unwrap().digest();
        if plot.approval.is_none() {
            return drive::consume(host, store, &dossier, manifest).unwrap();
        }
        let worker = Identity::of(&store.policy, host.worker.signer()).unwrap();
        let held = &dossier.decisions[0];
        let change = Change::Consume {
            manifest,
            approvals: vec![held.digest()],
        };
        let stage = Change::Stage {
            stage: hangar::model::task::Stage::Implementing,
            documents: Vec::new(),
            note: String::new(),
        };
        let original = &held.document.original;
        let files = vec![original.bytes().to_vec(), original.signature().to_vec()];
        store
            .change_task_with(self.id, &worker, |_| {
                Ok((vec![stage.clone(), change.clone()], files.clone()))
            })
            .unwrap();
    }

    pub(crate) fn run(&self, store: &Store, host: &Host<'_>, plot: &Plot<'_>) -> Digest {
        let dossier = self.dossier(store);
        let base = dossier.history.task.base;
        let tree = with_calc(&store.repo, base, plot.result.unwrap_or(GOOD), plot.also);
        let subject = Subject::new(&store.repo, base, tree).unwrap();
        let worker = Identity::of(&store.policy, host.worker.signer()).unwrap();
        let now = store.clock.now();
        let mut run = Run {
            format: 1,
            repo: store.policy.repo(),
            task: self.id.clone(),
            kind: Kind::Agent,
            role: RunRole::Implementer,
            round: 1,
            manifest: Some(dossier.seals.last().unwrap().digest()),
            outcome: RunOutcome::Completed,
            note: String::new(),
            secrecy: Secrecy::Confined,
            started: now.to_string(),
            ended: now.to_string(),
            signer: worker.table(now),
            harness: None,
            sandbox: None,
            result: Some(implementer::result_table(&subject, 0)),
            egress: None,
            attachment: Vec::new(),
        };
        if let Some(edit) = plot.run {
            edit(&mut run);
        }
        let files = vec![("result".into(), Content::Tree(tree))];
        let reference = store.layout.runs(self.id);
        store
            .append_document(&reference, &worker, &run, files, "run")
            .unwrap()
            .digest
    }

    pub(crate) fn grade(
        &self,
        store: &Store,
        host: &Host<'_>,
        run: Digest,
        plot: &Plot<'_>,
    ) -> Digest {
        let dossier = self.dossier(store);
        let grader = Identity::of(&store.policy, host.grader.signer()).unwrap();
        let result = dossier.runs.last().unwrap().value().result.clone().unwrap();
        let subject = Subject::new(&store.repo, result.base, result.tree).unwrap();
        let row = |alias: &str, outcome, class| TestResult {
            alias: alias.parse().unwrap(),
            outcome,
            class,
        };
        let seal = dossier.seals.last().unwrap();
        let approvals = dossier.decisions.iter().map(Held::digest).collect();
        let mut grade = Grade {
            format: 1,
            repo: store.policy.repo(),
            task: self.id.clone(),
            manifest: seal.digest(),
            approvals,
            run: Some(run),
            accepted: true,
            void: false,
            reasons: Vec::new(),
            trust: Trust::Sealed,
            verdict: Verdict::Exit,
            secrecy: Secrecy::Confined,
            after_code: seal.value().after_code,
            canary_found: false,
            protected_touched: Vec::new(),
            put_back: 0,
            reprepared: false,
            limits_hit: Vec::new(),
            signer: grader.table(store.clock.now()),
            subject: subject.table(),
            counts: GradeCounts {
                expected: 2,
                passed: 2,
                sentinels: 1,
                sentinels_held: 1,
                ..GradeCounts::default()
            },
            timing: Timing::default(),
            sandbox: sandbox(),
            test: vec![
                row("c1.1", TestOutcome::Passed, None),
                row("o1", TestOutcome::Passed, None),
                row("s1", TestOutcome::Failed, Some(FailureClass::Assertion)),
            ],
        };
        if let Some(edit) = plot.grade {
            edit(&mut grade);
        }
        let reference = store.layout.grades(self.id);
        store
            .append_document(&reference, &grader, &grade, Vec::new(), "grade")
            .unwrap()
            .digest
    }

    pub(crate) fn deliver(
        &self,
        store: &Store,
        host: &Host<'_>,
        run: Digest,
        grade: Digest,
        plot: &Plot<'_>,
    ) {
        let dossier = self.dossier(store);
        let task = &dossier.history.task;
        let manifest = dossier.seals.last().unwrap().digest();
        let value = dossier.grades.last().unwrap().value();
        let result = dossier.runs.last().unwrap().value().result.clone().unwrap();
        let tree = match plot.delivered {
            Some(text) => with_calc(&store.repo, result.base, text, plot.also),
            None => result.tree,
        };
        let message = format!(
            "{}\n\nHangar-Task: {}\nHangar-Acceptance: passed; trust={}; verdict={}; secrecy={}\nHangar-Manifest: {manifest}\nHangar-Grade: {grade}\nHangar-Run: {run}\n",
            task.title, task.id, value.trust, value.verdict, value.secrecy
        );
        let commit = store
            .repo
            .write_commit(&CommitDraft {
                tree,
                parents: vec![result.base],
                author_name: "alice".into(),
                author_email: "alice@hangar.invalid".into(),
                time_seconds: 0,
                message,
            })
            .unwrap();
        let branch = format!("refs/heads/hangar/{}", task.external);
        store
            .repo
            .update_ref(&branch, hangar::git::Expected::Absent, Some(commit), "x")
            .unwrap();
        let worker = Identity::of(&store.policy, host.worker.signer()).unwrap();
        let mut change = Change::Deliver {
            branch,
            commit,
            run,
            grade: Some(grade),
            manifest: Some(manifest),
        };
        if let Some(edit) = plot.delivery {
            edit(&mut change);
        }
        store
            .change_task(self.id, &worker, |_| Ok(vec![change.clone()]))
            .unwrap();
    }
}

/// What probes say where all of `sealed` holds.
fn sandbox() -> SandboxRecord {
    let held = |name: &&str| ((*name).to_owned(), "held".to_owned());
    SandboxRecord {
        provider: "linux".into(),
        version: String::new(),
        trust: Trust::Sealed,
        swap_exposed: false,
        probes: CONFINED.iter().chain(SEALED).map(held).collect(),
    }
}

fn delete(store: &Store, reference: &str) {
    let tip = store.repo.read_ref(reference).unwrap();
    store
        .repo
        .update_ref(reference, tip.into(), None, "x")
        .unwrap();
}

/// The base's tree with another `calc.sh`, and the same text in another file.
fn with_calc(repo: &Repository, base: ObjectId, text: &str, also: Option<&str>) -> ObjectId {
    let mut entries = repo
        .read_tree(repo.read_commit(base).unwrap().tree)
        .unwrap();
    for name in ["calc.sh"].into_iter().chain(also) {
        entries.retain(|entry| entry.name != name.as_bytes());
        entries.push(TreeEntry {
            name: name.as_bytes().to_vec(),
            kind: EntryKind::Blob,
            id: repo.write_blob(text.as_bytes()).unwrap(),
        });
    }
    repo.write_tree(&entries).unwrap()
}
