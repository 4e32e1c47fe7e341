//! A delivered task made document by document, without a sandbox, so that any of them can be forged
//! with a good signature; and the plumbing to change what lies on a ref.

use crate::common::git::git;
use crate::flow::world::World;
use hangar::base::redact::Secret;
use hangar::flow::basecheck::Checked;
use hangar::flow::host::Host;
use hangar::flow::sealing::{self, Material};
use hangar::flow::subject::Subject;
use hangar::flow::{claim, drive, implementer};
use hangar::git::{CommitDraft, EntryKind, Repository, TreeEntry};
use hangar::grade::basecheck::{BaseCheck, BaseResult};
use hangar::model::approval::{Action, Approval};
use hangar::model::criteria::Criteria;
use hangar::model::digest::Digest;
use hangar::model::event::Change;
use hangar::model::grade::{Grade, GradeCounts, TestOutcome, TestResult, Timing};
use hangar::model::ids::TaskId;
use hangar::model::manifest::{Manifest, Writer};
use hangar::model::object_id::ObjectId;
use hangar::model::outcome::{FailureClass, Secrecy, TestId, Trust, Verdict};
use hangar::model::plan::{Framework, Plan};
use hangar::model::run::{Kind, Run, RunOutcome, RunRole, SandboxRecord};
use hangar::sandbox::probe::{CONFINED, SEALED};
use hangar::store::Store;
use hangar::store::chain::Content;
use hangar::store::dossier::{Dossier, Held};
use hangar::store::identity::Identity;
use std::path::PathBuf;
use std::process::{Command, Stdio};

pub(crate) const CONFIG: &str = "format = 1\n[task]\nflow = \"test-first\"\n[grader]\nframework = \"exec\"\ntests = [\"tests/\"]\n";
const MAP: &str = r#"{"format": 1, "criteria": {"c1": ["tests/sub.sh"]}, "others": ["tests/guard.sh"], "sentinels": ["tests/never.sh"], "notes": ""}"#;
pub(crate) const GOOD: &str = "echo $(($1 - $2))\n";

type Edit<'a, T> = Option<&'a dyn Fn(&mut T)>;

/// What is forged; each document that is not named is honest and rests on the ones before it.
#[derive(Default)]
pub(crate) struct Plot<'a> {
    pub(crate) manifest: Edit<'a, Manifest>,
    pub(crate) approval: Edit<'a, Approval>,
    pub(crate) run: Edit<'a, Run>,
    pub(crate) grade: Edit<'a, Grade>,
    pub(crate) delivery: Edit<'a, Change>,
    /// The delivered commit's `calc.sh`, where it is not the result's.
    pub(crate) delivered: Option<&'a str>,
    /// The result's `calc.sh`.
    pub(crate) result: Option<&'a str>,
    /// Stops before the delivery.
    pub(crate) undelivered: bool,
}

/// A repository with one delivered task.
pub(crate) struct Forged {
    pub(crate) world: World,
    pub(crate) id: TaskId,
}

impl Forged {
    pub(crate) fn honest() -> Self {
        Self::new(&Plot::default())
    }

    pub(crate) fn new(plot: &Plot<'_>) -> Self {
        let world = World::new(&[("calc.sh", "echo 0\n"), ("hangar.toml", CONFIG)]);
        let id = world.task(&world.store(), "Subtract", &["5 3 prints 2"]);
        let forged = Self { world, id };
        forged.link_keys();
        forged.fill(plot);
        forged
    }

    /// Takes another task through the same flow in this repository.
    pub(crate) fn another(&self, key: &str, plot: &Plot<'_>) -> TaskId {
        let store = self.world.store();
        let id = self
            .world
            .task_called(&store, key, "Another", &["5 3 prints 2"]);
        let other = Other {
            world: &self.world,
            id: &id,
        };
        other.fill(plot);
        id
    }

    fn fill(&self, plot: &Plot<'_>) {
        Other {
            world: &self.world,
            id: &self.id,
        }
        .fill(plot);
    }

    /// The machine keys where the binary looks for them.
    fn link_keys(&self) {
        let repo = self.world.store().policy.repo().hex();
        let dir = self.world.dir.path().join("xdg/hangar");
        std::fs::create_dir_all(&dir).unwrap();
        std::os::unix::fs::symlink(self.world.dir.path().join("data"), dir.join(repo)).unwrap();
    }

    pub(crate) fn dir(&self) -> PathBuf {
        self.world.repo_dir()
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        git(&self.dir(), args).trim_end().to_owned()
    }

    pub(crate) fn store(&self) -> Store {
        self.world.store()
    }

    pub(crate) fn dossier(&self) -> Dossier {
        self.store().dossier(&self.id).unwrap()
    }

    /// Runs the binary as somebody with the machine's keys.
    pub(crate) fn verify(&self, args: &[&str]) -> Answer {
        self.verify_as("xdg", args)
    }

    /// Runs the binary with another folder of keys.
    pub(crate) fn verify_as(&self, keys: &str, args: &[&str]) -> Answer {
        let home = self.world.dir.path();
        let out = Command::new(env!("CARGO_BIN_EXE_hangar"))
            .current_dir(self.dir())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", home.join("home"))
            .env("XDG_DATA_HOME", home.join(keys))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("HANGAR_NOW", "2026-01-03T00:00:00Z")
            .arg("verify")
            .args(args)
            .arg("--json")
            .output()
            .unwrap();
        let stdout = String::from_utf8(out.stdout).unwrap();
        let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
        Answer {
            code: out.status.code(),
            json: serde_json::from_str(&stdout).unwrap_or(serde_json::Value::Null),
            text: stdout + &stderr,
        }
    }

    /// Verifies the task.
    pub(crate) fn task(&self) -> Answer {
        self.verify(&[self.id.as_str()])
    }

    /// A blob with these bytes.
    pub(crate) fn blob(&self, bytes: &[u8]) -> String {
        self.pipe(&["hash-object", "-w", "--stdin"], bytes)
    }

    fn pipe(&self, args: &[&str], input: &[u8]) -> String {
        use std::io::Write as _;
        let mut child = Command::new("git")
            .current_dir(self.dir())
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let out = child.wait_with_output().unwrap();
        assert!(out.status.success(), "git {args:?}");
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    }

    /// Replaces the commit at the tip of a ref by one whose tree has other files: (name, content),
    /// `None` takes the name out. Its parents stay.
    pub(crate) fn rewrite_tip(&self, reference: &str, files: &[(&str, Option<&[u8]>)]) {
        let listing = self.git(&["ls-tree", reference]);
        let kept = listing.lines().filter(|line| {
            let name = line.split('\t').nth(1).unwrap();
            files.iter().all(|(changed, _)| *changed != name)
        });
        let mut lines: Vec<String> = kept.map(str::to_owned).collect();
        for (name, content) in files {
            if let Some(content) = content {
                lines.push(format!("100644 blob {}\t{name}", self.blob(content)));
            }
        }
        let tree = self.pipe(&["mktree"], (lines.join("\n") + "\n").as_bytes());
        let parents = self.git(&["log", "-1", "--format=%P", reference]);
        self.commit_tree(
            &tree,
            &parents.split_whitespace().collect::<Vec<_>>(),
            reference,
        );
    }

    /// Puts a commit with these files on top of a ref, or begins it.
    pub(crate) fn append(&self, reference: &str, files: &[(&str, &[u8])]) {
        let lines: Vec<String> = files
            .iter()
            .map(|(name, content)| format!("100644 blob {}\t{name}", self.blob(content)))
            .collect();
        let tree = self.pipe(&["mktree"], (lines.join("\n") + "\n").as_bytes());
        let tip = self.git(&["for-each-ref", "--format=%(objectname)", reference]);
        self.commit_tree(
            &tree,
            &tip.split_whitespace().collect::<Vec<_>>(),
            reference,
        );
    }

    fn commit_tree(&self, tree: &str, parents: &[&str], reference: &str) {
        let mut args = vec!["commit-tree", tree, "-m", "x"];
        for parent in parents {
            args.extend(["-p", parent]);
        }
        let commit = self.git(&args);
        self.git(&["update-ref", reference, &commit]);
    }

    /// The bytes of a file at the tip of a ref.
    pub(crate) fn read(&self, reference: &str, name: &str) -> Vec<u8> {
        let out = Command::new("git")
            .current_dir(self.dir())
            .args(["cat-file", "blob", &format!("{reference}:{name}")])
            .output()
            .unwrap();
        assert!(out.status.success(), "{reference}:{name}");
        out.stdout
    }

    /// The one ref under a prefix.
    pub(crate) fn only_ref(&self, prefix: &str) -> String {
        let refs = self.git(&["for-each-ref", "--format=%(refname)", prefix]);
        assert_eq!(refs.lines().count(), 1, "{refs}");
        refs
    }

    pub(crate) fn sealed(&self) -> String {
        format!("refs/hangar/sealed/{}", self.id)
    }

    pub(crate) fn runs(&self) -> String {
        format!("refs/hangar/runs/{}", self.id)
    }

    pub(crate) fn grades(&self) -> String {
        format!("refs/hangar/grades/{}", self.id)
    }

    pub(crate) fn events(&self) -> String {
        format!("refs/hangar/tasks/{}", self.id)
    }

    pub(crate) fn approval(&self) -> String {
        self.only_ref(&format!("refs/hangar/approvals/{}-*", self.id))
    }
}

/// One task of a world.
struct Other<'a> {
    world: &'a World,
    id: &'a TaskId,
}

impl Other<'_> {
    fn fill(&self, plot: &Plot<'_>) {
        let (store, host) = (self.world.store(), self.world.host());
        let _hold = claim::take(&host, &store, self.id).unwrap();
        self.seal(&store, &host, plot);
        self.approve(&store, plot);
        self.consume(&store, &host, plot);
        let run = self.run(&store, &host, plot);
        let grade = self.grade(&store, &host, run, plot);
        if !plot.undelivered {
            self.deliver(&store, &host, run, grade, plot);
        }
    }

    fn dossier(&self, store: &Store) -> Dossier {
        store.dossier(self.id).unwrap()
    }

    fn seal(&self, store: &Store, host: &Host<'_>, plot: &Plot<'_>) {
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

    fn approve(&self, store: &Store, plot: &Plot<'_>) {
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
    fn consume(&self, store: &Store, host: &Host<'_>, plot: &Plot<'_>) {
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

    fn run(&self, store: &Store, host: &Host<'_>, plot: &Plot<'_>) -> Digest {
        let dossier = self.dossier(store);
        let base = dossier.history.task.base;
        let tree = with_calc(&store.repo, base, plot.result.unwrap_or(GOOD));
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

    fn grade(&self, store: &Store, host: &Host<'_>, run: Digest, plot: &Plot<'_>) -> Digest {
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

    fn deliver(&self, store: &Store, host: &Host<'_>, run: Digest, grade: Digest, plot: &Plot<'_>) {
        let dossier = self.dossier(store);
        let task = &dossier.history.task;
        let manifest = dossier.seals.last().unwrap().digest();
        let value = dossier.grades.last().unwrap().value();
        let result = dossier.runs.last().unwrap().value().result.clone().unwrap();
        let tree = match plot.delivered {
            Some(text) => with_calc(&store.repo, result.base, text),
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

/// The base's tree with another `calc.sh`.
fn with_calc(repo: &Repository, base: ObjectId, text: &str) -> ObjectId {
    let mut entries = repo
        .read_tree(repo.read_commit(base).unwrap().tree)
        .unwrap();
    entries.retain(|entry| entry.name != b"calc.sh");
    entries.push(TreeEntry {
        name: b"calc.sh".to_vec(),
        kind: EntryKind::Blob,
        id: repo.write_blob(text.as_bytes()).unwrap(),
    });
    repo.write_tree(&entries).unwrap()
}

/// What the binary answered.
pub(crate) struct Answer {
    pub(crate) code: Option<i32>,
    pub(crate) json: serde_json::Value,
    pub(crate) text: String,
}

impl Answer {
    /// Everything holds.
    #[track_caller]
    pub(crate) fn is_yes(&self) {
        assert_eq!(self.code, Some(0), "{}", self.text);
        assert_eq!(self.json["accepted"], true, "{}", self.text);
    }

    /// Exit 1, with a fault in `link` that says `what`.
    #[track_caller]
    pub(crate) fn names(&self, link: &str, what: &str) -> &Self {
        assert_eq!(self.code, Some(1), "{}", self.text);
        assert_eq!(self.json["accepted"], false, "{}", self.text);
        let found = self.faults().iter().any(|fault| {
            let said = fault["what"].as_str().unwrap();
            fault["link"] == link && said.contains(what)
        });
        assert!(found, "no fault in {link} says `{what}`:\n{}", self.text);
        self
    }

    /// All faults, the tasks' and the repository's.
    pub(crate) fn faults(&self) -> Vec<serde_json::Value> {
        let tasks = self.json["tasks"].as_array().cloned().unwrap_or_default();
        let mut faults = self.json["faults"].as_array().cloned().unwrap_or_default();
        for task in tasks {
            faults.extend(task["faults"].as_array().cloned().unwrap_or_default());
        }
        faults
    }

    /// Both answers of the one task.
    #[track_caller]
    pub(crate) fn answers(&self, valid_then: bool, acceptable_now: bool) -> &Self {
        let task = &self.json["tasks"][0];
        assert_eq!(task["valid_then"], valid_then, "{}", self.text);
        assert_eq!(task["acceptable_now"], acceptable_now, "{}", self.text);
        self
    }

    /// How a link of the one task stands.
    #[track_caller]
    pub(crate) fn link(&self, name: &str) -> String {
        let links = self.json["tasks"][0]["links"].as_array().unwrap();
        let link = links.iter().find(|link| link["name"] == name);
        let link = link.unwrap_or_else(|| panic!("no link {name}: {}", self.text));
        link["state"].as_str().unwrap().to_owned()
    }
}
