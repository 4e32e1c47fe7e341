//! The worked example of `docs/format.md`, run as it stands there with the programs it names.

use crate::common::founded::{Founded, clock, create};
use crate::common::git::{file_at, git, git_input, isolated};
use crate::docs::{blocks, page};
use hangar::base::process::Output;
use hangar::base::redact::Secret;
use hangar::git::{EntryKind, TreeEntry};
use hangar::model::approval::{Action, Approval};
use hangar::model::digest::Digest;
use hangar::model::event::Change;
use hangar::model::grade::{Grade, GradeCounts, Subject, TestOutcome, TestResult, Timing};
use hangar::model::ids::{CriterionId, TaskId};
use hangar::model::listing::patch_id;
use hangar::model::manifest::{BaseResult, BaseStatus, Counts, Coverage, Manifest, Writer};
use hangar::model::outcome::{FailureClass, Secrecy, Trust, Verdict};
use hangar::model::plan::{Framework, Plan};
use hangar::model::run::{Kind, Run, RunOutcome, RunResult, RunRole, SandboxRecord};
use hangar::seal::{self, Canary, FileMode, Payload, Recipient, SealedFile};
use hangar::store::Store;
use hangar::store::chain::Content;
use hangar::store::identity::Identity;
use hangar::trust::MachineKey;

const NONCE: &str = "0123456789abcdef0123456789abcdef";
const TIME: &str = "2026-01-02T03:04:05Z";

/// A repository of one person, whose base has the paths that listings find hard.
fn world() -> Founded {
    Founded::new(|repo| {
        std::fs::create_dir_all(repo.join("a folder")).unwrap();
        std::fs::write(repo.join("a folder/a file"), "one\n").unwrap();
        std::fs::write(repo.join("a.txt"), "").unwrap();
        std::os::unix::fs::symlink("a.txt", repo.join("link")).unwrap();
    })
}

/// One task with one document of each kind.
struct Filled<'a> {
    store: &'a Store,
    world: &'a Founded,
    task: TaskId,
}

impl Filled<'_> {
    fn who<'a>(&self, key: &'a MachineKey) -> Identity<'a> {
        Identity::of(&self.store.policy, key.signer()).unwrap()
    }

    fn signer(&self, key: &MachineKey) -> hangar::model::signer::Signer {
        self.who(key).table(clock().now())
    }

    fn seal(&self) -> Digest {
        let canary = Canary::new();
        let script = seal::insert("tests/total", b"#!/bin/sh\nexit 1\n", &canary);
        let file = SealedFile {
            path: "tests/total".into(),
            mode: FileMode::Executable,
            bytes: Secret::new(script),
        };
        let criteria = format!(
            "{{\"format\":1,\"criteria\":{{\"c1\":[\"tests/total\"]}},\"canary\":\"{}\"}}\n",
            canary.token()
        );
        let meta = "{\"format\":1,\"tests\":[]}".to_owned();
        let payload = Payload::new(vec![file], criteria.into(), meta.into()).unwrap();
        let bytes = payload.to_bytes().unwrap();
        let texts = self
            .store
            .policy
            .newest()
            .recipients(&"alice".parse().unwrap());
        let recipients: Vec<Recipient> = texts.iter().map(|text| text.parse().unwrap()).collect();
        let ciphertext = seal::encrypt(bytes.expose(), &recipients).unwrap();
        let task = self.store.task(&self.task).unwrap().task;
        let tree = self.store.repo.read_commit(task.base).unwrap().tree;
        let manifest = Manifest {
            format: 1,
            repo: self.store.policy.repo(),
            task: self.task.clone(),
            version: 1,
            previous: None,
            files: payload.listing().digest(),
            payload: Digest::of(bytes.expose()),
            ciphertext: Digest::of(&ciphertext),
            canary: canary.digest(),
            text: task.text_digest(),
            base: task.base,
            base_listing: self.store.repo.listing(tree).unwrap().listing.digest(),
            recipients: texts,
            after_code: false,
            signer: self.signer(&self.world.grader),
            writer: Writer::Person {
                name: "alice".parse().unwrap(),
            },
            counts: Counts::default(),
            plan: Plan::new(Framework::Exec),
            base_check: vec![BaseResult {
                alias: "c1.1".parse().unwrap(),
                status: BaseStatus::Fails,
                class: Some(FailureClass::Assertion),
                flaky: false,
            }],
            coverage: vec![Coverage {
                criterion: CriterionId::at(0),
                tests: 1,
                fails: 1,
            }],
        };
        let files = vec![("sealed.age".into(), Content::File(ciphertext))];
        let place = self.store.layout.sealed(&self.task);
        let grader = self.who(&self.world.grader);
        let written = self
            .store
            .append_document(&place, &grader, &manifest, files, "seal");
        written.unwrap().digest
    }

    fn approve(&self, manifest: Digest) -> Digest {
        let signer = self.signer(&self.world.alice);
        let place = self
            .store
            .layout
            .approval(&self.task, &manifest, &signer.key);
        let approval = Approval {
            format: 1,
            repo: self.store.policy.repo(),
            task: self.task.clone(),
            manifest,
            version: 1,
            action: Action::Approve,
            reason: String::new(),
            takes_back: Vec::new(),
            nonce: NONCE.into(),
            not_after: Some("2026-02-01T00:00:00Z".into()),
            seconds: None,
            files_opened: 1,
            signer,
        };
        let alice = self.who(&self.world.alice);
        let written = self
            .store
            .append_document(&place, &alice, &approval, Vec::new(), "approve");
        written.unwrap().digest
    }

    fn result(&self) -> RunResult {
        let repo = &self.store.repo;
        let base = repo.head().unwrap().unwrap();
        let tree = repo.read_commit(base).unwrap().tree;
        let mut entries = repo.read_tree(tree).unwrap();
        entries.push(TreeEntry {
            name: b"total".to_vec(),
            kind: EntryKind::Executable,
            id: repo.write_blob(b"#!/bin/sh\necho 3\n").unwrap(),
        });
        let result = repo.write_tree(&entries).unwrap();
        let (old, new) = (repo.listing(tree).unwrap(), repo.listing(result).unwrap());
        RunResult {
            base,
            base_listing: old.listing.digest(),
            tree: result,
            listing: new.listing.digest(),
            patch: patch_id(&old.listing, &new.listing),
            changed: 1,
            ignored: 0,
            guarded: Vec::new(),
        }
    }

    fn run(&self, manifest: Digest) -> Digest {
        let result = self.result();
        let tree = vec![("result".into(), Content::Tree(result.tree))];
        let run = Run {
            format: 1,
            repo: self.store.policy.repo(),
            task: self.task.clone(),
            kind: Kind::Submitted,
            role: RunRole::Implementer,
            round: 1,
            manifest: Some(manifest),
            outcome: RunOutcome::Completed,
            note: String::new(),
            secrecy: Secrecy::None,
            started: TIME.into(),
            ended: TIME.into(),
            signer: self.signer(&self.world.alice),
            harness: None,
            sandbox: None,
            result: Some(result),
            egress: None,
            attachment: Vec::new(),
        };
        let place = self.store.layout.runs(&self.task);
        let alice = self.who(&self.world.alice);
        let written = self
            .store
            .append_document(&place, &alice, &run, tree, "submit");
        written.unwrap().digest
    }

    fn grade(&self, manifest: Digest, approval: Digest, run: Digest) {
        let result = self.result();
        let grade = Grade {
            format: 1,
            repo: self.store.policy.repo(),
            task: self.task.clone(),
            manifest,
            approvals: vec![approval],
            run: Some(run),
            accepted: true,
            void: false,
            reasons: Vec::new(),
            trust: Trust::Sealed,
            verdict: Verdict::Exit,
            secrecy: Secrecy::None,
            after_code: false,
            canary_found: false,
            protected_touched: Vec::new(),
            put_back: 0,
            reprepared: false,
            limits_hit: Vec::new(),
            signer: self.signer(&self.world.grader),
            subject: Subject {
                base: result.base,
                base_listing: result.base_listing,
                tree: result.tree,
                listing: result.listing,
                patch: result.patch,
            },
            counts: GradeCounts::default(),
            timing: Timing::default(),
            sandbox: SandboxRecord {
                provider: "linux".into(),
                version: "0.1.0".into(),
                trust: Trust::Sealed,
                swap_exposed: false,
                probes: [("network".to_owned(), "held".to_owned())].into(),
            },
            test: vec![TestResult {
                alias: "c1.1".parse().unwrap(),
                outcome: TestOutcome::Passed,
                class: None,
            }],
        };
        let place = self.store.layout.grades(&self.task);
        let grader = self.who(&self.world.grader);
        self.store
            .append_document(&place, &grader, &grade, Vec::new(), "grade")
            .unwrap();
    }
}

fn fill(world: &Founded) -> TaskId {
    let store = world.store();
    let alice = Identity::of(&store.policy, world.alice.signer()).unwrap();
    let create = create(&store, "", "Add a total", &["The total is printed"]);
    let task = store.create_task(&alice, create).unwrap();
    store
        .change_task(&task, &alice, |_| Ok(vec![Change::Enqueue]))
        .unwrap();
    let filled = Filled {
        store: &store,
        world,
        task,
    };
    let manifest = filled.seal();
    let approval = filled.approve(manifest);
    let run = filled.run(manifest);
    filled.grade(manifest, approval, run);
    // What is written here is what hangar itself believes.
    let dossier = store.dossier(&filled.task).unwrap();
    assert!(dossier.faults.is_empty(), "{:?}", dossier.faults);
    assert_eq!(dossier.grades.len(), 1);
    filled.task
}

fn run_example(world: &Founded) -> Output {
    let script = blocks(&page("docs/format.md"), "sh").concat();
    let out = tempfile::tempdir().unwrap();
    isolated("bash", &world.path())
        .args(["-eu", "-o", "pipefail", "-c", &script])
        .env("HOME", world.path())
        .env("W", out.path())
        .env("KEY", world.dir.path().join("data/grader"))
        .output()
        .unwrap()
}

#[test]
#[ignore = "heavy: needs ssh-keygen, age, zstd and tar"]
fn the_worked_example_works_and_sees_a_changed_grade() {
    let world = world();
    let task = fill(&world);
    let out = run_example(&world);
    assert!(out.status.success(), "{out:?}");
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(
        text.contains("criteria.json\npayload.toml\nfiles/tests/total\n"),
        "{text}"
    );
    let store = world.store();
    assert!(text.starts_with(&store.policy.repo().hex()), "{text}");
    assert_eq!(text.matches("Good \"hangar-").count(), 7, "{text}");

    // The same, after one word of the grade was changed.
    let repo = world.path();
    let place = format!("refs/hangar/grades/{task}");
    let grade = file_at(&repo, &format!("{place}:grade.toml"));
    let grade = String::from_utf8(grade).unwrap();
    let grade = grade.replace("expected = 0", "expected = 9");
    let blob = git_input(&repo, &["hash-object", "-w", "--stdin"], grade.as_bytes());
    let tree = git(&repo, &["ls-tree", &place]);
    let old = git(&repo, &["rev-parse", &format!("{place}:grade.toml")]);
    let tree = git_input(&repo, &["mktree"], tree.replace(&old, &blob).as_bytes());
    let commit = git(&repo, &["commit-tree", &tree, "-m", "x"]);
    git(&repo, &["update-ref", &place, &commit]);
    let out = run_example(&world);
    assert!(!out.status.success());
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert_eq!(text.matches("Good \"hangar-").count(), 6, "{text}");
}
