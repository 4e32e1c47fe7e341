//! The worked example of `docs/format.md`, run as it stands there with the programs it names.

use crate::docs::{blocks, page};
use hangar::base::clock::Clock;
use hangar::base::redact::Secret;
use hangar::git::{EntryKind, Repository, TreeEntry};
use hangar::model::approval::{Action, Approval};
use hangar::model::digest::Digest;
use hangar::model::event::{Change, Criterion};
use hangar::model::grade::{Grade, GradeCounts, Subject, TestOutcome, TestResult, Timing};
use hangar::model::ids::{CriterionId, TaskId};
use hangar::model::listing::patch_id;
use hangar::model::manifest::{BaseResult, BaseStatus, Counts, Coverage, Manifest, Writer};
use hangar::model::outcome::{FailureClass, Secrecy, Trust, Verdict};
use hangar::model::plan::{Framework, Plan};
use hangar::model::policy::{
    Acceptance, Machine, MachineRole, Members, Person, Role, Root, RootKey, Thresholds,
};
use hangar::model::run::{Kind, Run, RunOutcome, RunResult, RunRole, SandboxRecord};
use hangar::model::task::{Flow, Mode};
use hangar::seal::{self, Canary, FileMode, Payload, Recipient, SealedFile};
use hangar::store::Store;
use hangar::store::chain::Content;
use hangar::store::found::Draft;
use hangar::store::identity::Identity;
use hangar::store::layout::Layout;
use hangar::trust::{self, MachineKey};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const NONCE: &str = "0123456789abcdef0123456789abcdef";
const TIME: &str = "2026-01-02T03:04:05Z";

struct World {
    dir: TempDir,
    alice: MachineKey,
    worker: MachineKey,
    grader: MachineKey,
}

fn command(program: &str, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(dir)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", dir)
        .env("LC_ALL", "C")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
    command
}

fn git(dir: &Path, args: &[&str]) -> String {
    let out = command("git", dir)
        .args(["-c", "user.name=t", "-c", "user.email=t@example.com"])
        .args(args)
        .output()
        .unwrap();
    assert!(out.status.success(), "git {args:?}: {out:?}");
    String::from_utf8(out.stdout).unwrap()
}

impl World {
    /// A policy of one person, a worker and a grader.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let repo = dir.path().join("repo");
        git(dir.path(), &["init", "-q", "-b", "main", "repo"]);
        std::fs::create_dir_all(repo.join("a folder")).unwrap();
        std::fs::write(repo.join("a folder/a file"), "one\n").unwrap();
        std::fs::write(repo.join("a.txt"), "").unwrap();
        std::os::unix::fs::symlink("a.txt", repo.join("link")).unwrap();
        git(&repo, &["add", "."]);
        git(&repo, &["commit", "-q", "-m", "base"]);
        let key = |name: &str| {
            MachineKey::load_or_create(&dir.path().join(name), trust::MachineRole::Grader).unwrap()
        };
        let world = Self {
            alice: key("alice"),
            worker: key("worker"),
            grader: key("grader"),
            dir,
        };
        let draft = Draft::founding(&world.root(), world.members(), world.alice.signer()).unwrap();
        let repo = world.repo();
        let layout = Layout::of(&repo).unwrap();
        draft
            .publish(&repo, &layout, None, &"alice".parse().unwrap(), clock())
            .unwrap();
        world
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    fn repo(&self) -> Repository {
        Repository::discover(&self.path()).unwrap()
    }

    fn root(&self) -> Root {
        Root {
            format: 1,
            version: 1,
            nonce: NONCE.into(),
            previous: None,
            thresholds: Thresholds {
                root: 1,
                members: 1,
            },
            acceptance: Acceptance::default(),
            key: vec![RootKey {
                principal: "alice".parse().unwrap(),
                public: self.alice.public().as_str().into(),
                recovery: false,
            }],
        }
    }

    fn members(&self) -> Members {
        let machine = |name: &str, role, key: &MachineKey| Machine {
            name: name.parse().unwrap(),
            role,
            owner: "alice".parse().unwrap(),
            public: key.public().as_str().into(),
        };
        Members {
            format: 1,
            version: 1,
            previous: None,
            root: Digest::of(b""),
            arbiter: String::new(),
            person: vec![Person {
                name: "alice".parse().unwrap(),
                role: Role::Admin,
                keys: vec![self.alice.public().as_str().into()],
                recipients: vec![self.alice.public().as_str().into()],
            }],
            machine: vec![
                machine("alice-worker", MachineRole::Worker, &self.worker),
                machine("alice-grader", MachineRole::Grader, &self.grader),
            ],
        }
    }
}

fn clock() -> Clock {
    Clock::Fixed(TIME.parse().unwrap())
}

fn create(store: &Store) -> Change {
    Change::Create {
        title: "Add a total".into(),
        mandate: String::new(),
        criteria: vec![Criterion {
            id: CriterionId::at(0),
            text: "The total is printed".into(),
        }],
        flow: Flow::TestFirst,
        mode: Mode::Implement,
        priority: 5,
        base: store.repo.head().unwrap().unwrap(),
        base_branch: "main".into(),
        external: String::new(),
        tags: Vec::new(),
        requester: "alice".parse().unwrap(),
    }
}

/// One task with one document of each kind.
struct Filled<'a> {
    store: &'a Store,
    world: &'a World,
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

fn fill(world: &World) -> TaskId {
    let store = Store::open(world.repo(), clock()).unwrap();
    let alice = Identity::of(&store.policy, world.alice.signer()).unwrap();
    let task = store.create_task(&alice, create(&store)).unwrap();
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

fn run_example(world: &World) -> Output {
    let script = blocks(&page("docs/format.md"), "sh").concat();
    let out = tempfile::tempdir().unwrap();
    command("bash", &world.path())
        .args(["-eu", "-o", "pipefail", "-c", &script])
        .env("W", out.path())
        .env("KEY", world.dir.path().join("grader/grader"))
        .output()
        .unwrap()
}

#[test]
#[ignore = "heavy: needs ssh-keygen, age, zstd and tar"]
fn the_worked_example_works_and_sees_a_changed_grade() {
    let world = World::new();
    let task = fill(&world);
    let out = run_example(&world);
    assert!(out.status.success(), "{out:?}");
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(
        text.contains("criteria.json\npayload.toml\nfiles/tests/total\n"),
        "{text}"
    );
    let store = Store::open(world.repo(), clock()).unwrap();
    assert!(text.starts_with(&store.policy.repo().hex()), "{text}");
    assert_eq!(text.matches("Good \"hangar-").count(), 7, "{text}");

    // The same, after one word of the grade was changed.
    let repo = world.path();
    let place = format!("refs/hangar/grades/{task}");
    let grade = git(&repo, &["show", &format!("{place}:grade.toml")]);
    std::fs::write(
        repo.join("grade"),
        grade.replace("expected = 0", "expected = 9"),
    )
    .unwrap();
    let blob = git(&repo, &["hash-object", "-w", "grade"]);
    let tree = git(&repo, &["ls-tree", &place]);
    let old = git(&repo, &["rev-parse", &format!("{place}:grade.toml")]);
    std::fs::write(repo.join("tree"), tree.replace(old.trim(), blob.trim())).unwrap();
    let changed = command("git", &repo)
        .arg("mktree")
        .stdin(std::fs::File::open(repo.join("tree")).unwrap())
        .output()
        .unwrap();
    let tree = String::from_utf8(changed.stdout).unwrap();
    let commit = git(&repo, &["commit-tree", tree.trim(), "-m", "x"]);
    git(&repo, &["update-ref", &place, commit.trim()]);
    let out = run_example(&world);
    assert!(!out.status.success());
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert_eq!(text.matches("Good \"hangar-").count(), 6, "{text}");
}
