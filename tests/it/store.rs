//! State on refs of a real repository.

use hangar::base::clock::Clock;
use hangar::git::Repository;
use hangar::model::authority::Act;
use hangar::model::codec;
use hangar::model::digest::Digest;
use hangar::model::event::{Change, Criterion};
use hangar::model::ids::CriterionId;
use hangar::model::policy::{
    Acceptance, Machine, MachineRole, Members, Person, Role, Root, RootKey, Thresholds,
};
use hangar::model::task::{Flow, Mode, State};
use hangar::store::found::Draft;
use hangar::store::identity::Identity;
use hangar::store::layout::Layout;
use hangar::store::{Error, Store, pins};
use hangar::trust;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

struct World {
    dir: TempDir,
    alice: trust::MachineKey,
    worker: trust::MachineKey,
}

fn git(dir: &Path, args: &[&str]) -> String {
    let out = Command::new("git")
        .current_dir(dir)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.com"])
        .args(args)
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "git {args:?}: {}",
        String::from_utf8_lossy(&out.stderr)
    );
    String::from_utf8(out.stdout).unwrap()
}

fn clock() -> Clock {
    Clock::Fixed("2026-01-02T03:04:05Z".parse().unwrap())
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        git(dir.path(), &["init", "-q", "-b", "main", "repo"]);
        git(
            &dir.path().join("repo"),
            &["commit", "-q", "--allow-empty", "-m", "base"],
        );
        let key = |name: &str| {
            trust::MachineKey::load_or_create(&dir.path().join(name), trust::MachineRole::Worker)
                .unwrap()
        };
        let (alice, worker) = (key("alice"), key("worker"));
        let world = Self { dir, alice, worker };
        let repo = world.repo();
        let draft = Draft::founding(&world.root(), world.members(), world.alice.signer()).unwrap();
        let layout = Layout::of(&repo).unwrap();
        draft
            .publish(&repo, &layout, None, &"alice".parse().unwrap(), clock())
            .unwrap();
        world
    }

    fn repo(&self) -> Repository {
        Repository::discover(&self.dir.path().join("repo")).unwrap()
    }

    fn store(&self) -> Store {
        Store::open(self.repo(), clock()).unwrap()
    }

    fn root(&self) -> Root {
        Root {
            format: 1,
            version: 1,
            nonce: "00".repeat(16),
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
            machine: vec![Machine {
                name: "alice-worker".parse().unwrap(),
                role: MachineRole::Worker,
                owner: "alice".parse().unwrap(),
                public: self.worker.public().as_str().into(),
            }],
        }
    }
}

fn create(store: &Store, title: &str) -> Change {
    Change::Create {
        title: title.into(),
        mandate: String::new(),
        criteria: vec![Criterion {
            id: CriterionId::at(0),
            text: "it works".into(),
        }],
        flow: Flow::TestFirst,
        mode: Mode::Implement,
        priority: 5,
        base: store.repo.head().unwrap().unwrap(),
        base_branch: "main".into(),
        external: "KAN-80".into(),
        tags: Vec::new(),
        requester: "alice".parse().unwrap(),
    }
}

#[test]
fn a_task_is_created_changed_and_found_again() {
    let world = World::new();
    let store = world.store();
    let alice = Identity::of(&store.policy, world.alice.signer()).unwrap();
    let worker = Identity::of(&store.policy, world.worker.signer()).unwrap();
    let id = store
        .create_task(&alice, create(&store, "Add subtraction"))
        .unwrap();
    store
        .change_task(&id, &alice, |_| Ok(vec![Change::Enqueue]))
        .unwrap()
        .unwrap();
    store
        .change_task(&id, &worker, |_| {
            Ok(vec![Change::Claim { lease: "x".into() }])
        })
        .unwrap();

    let fresh = world.store();
    for name in [id.as_str(), &id.as_str()[..8], "kan-80"] {
        let history = fresh.find_task(name).unwrap();
        assert_eq!(history.task.state, State::Assigned, "{name}");
        assert_eq!(history.records.len(), 3);
        assert!(history.faults.is_empty());
    }
    assert!(matches!(fresh.find_task("zzzz"), Err(Error::NoTask(_))));
    git(&world.dir.path().join("repo"), &["fsck", "--strict"]);
}

#[test]
fn what_the_rules_refuse_is_not_written() {
    let world = World::new();
    let store = world.store();
    let alice = Identity::of(&store.policy, world.alice.signer()).unwrap();
    let worker = Identity::of(&store.policy, world.worker.signer()).unwrap();
    let id = store.create_task(&alice, create(&store, "T")).unwrap();
    let before = store.task(&id).unwrap().tip;
    let claim = |_: &_| Ok(vec![Change::Claim { lease: "x".into() }]);
    assert!(
        matches!(
            store.change_task(&id, &worker, claim),
            Err(Error::Refused(_))
        ),
        "a draft is not claimed"
    );
    assert!(
        matches!(
            store.change_task(&id, &alice, claim),
            Err(Error::NotAllowed { .. })
        ),
        "a person is no worker"
    );
    assert!(matches!(
        store.change_task(&id, &worker, |_| Ok(vec![Change::Enqueue])),
        Err(Error::NotAllowed { .. })
    ));
    assert_eq!(store.task(&id).unwrap().tip, before);
    assert_eq!(Change::Enqueue.act(), Act::Enqueue);
}

#[test]
fn twenty_writers_lose_no_event() {
    let world = World::new();
    let store = world.store();
    let alice = Identity::of(&store.policy, world.alice.signer()).unwrap();
    let id = store.create_task(&alice, create(&store, "T")).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..20 {
            let (world, id) = (&world, &id);
            scope.spawn(move || {
                let store = world.store();
                let alice = Identity::of(&store.policy, world.alice.signer()).unwrap();
                let text = format!("comment {writer}");
                store
                    .change_task(id, &alice, |_| {
                        Ok(vec![Change::Comment { text: text.clone() }])
                    })
                    .unwrap();
            });
        }
    });
    let history = store.task(&id).unwrap();
    assert_eq!(history.task.comments.len(), 20);
    assert_eq!(history.heads.len(), 1);
}

#[test]
fn a_foreign_policy_is_not_taken_for_the_pinned_one() {
    let world = World::new();
    let store = world.store();
    pins::record(&store.repo, &store.policy).unwrap();
    // Control: the same policy opens again.
    assert!(Store::open(world.repo(), clock()).is_ok());
    let mut rival = world.root();
    rival.nonce = "11".repeat(16);
    let repo = world.repo();
    let layout = Layout::of(&repo).unwrap();
    let tip = repo.read_ref(&layout.policy()).unwrap().unwrap();
    repo.update_ref(&layout.policy(), hangar::git::Expected::At(tip), None, "x")
        .unwrap();
    let draft = Draft::founding(&rival, world.members(), world.alice.signer()).unwrap();
    draft
        .publish(&repo, &layout, None, &"alice".parse().unwrap(), clock())
        .unwrap();
    assert!(matches!(
        Store::open(world.repo(), clock()),
        Err(Error::Pin(_))
    ));
}

#[test]
fn a_policy_version_needs_the_signature_of_an_admin_before_it() {
    let world = World::new();
    let store = world.store();
    let layout = &store.layout;
    let tip = store.repo.read_ref(&layout.policy()).unwrap();
    let mut members = store.policy.newest().members.clone();
    members.version = 2;
    members.previous = Some(store.policy.newest().reference.digest);
    let draft = |signer: &trust::Signer| {
        let mut draft = Draft {
            root: codec::encode(&store.policy.newest().root).unwrap(),
            members: codec::encode(&members).unwrap(),
            root_signatures: Vec::new(),
            members_signatures: Vec::new(),
        };
        draft.sign_members(signer).unwrap();
        draft
    };
    let by = "alice".parse().unwrap();
    let forged = draft(world.worker.signer()).publish(&store.repo, layout, tip, &by, clock());
    assert!(matches!(forged, Err(Error::Policy(_))), "{forged:?}");
    draft(world.alice.signer())
        .publish(&store.repo, layout, tip, &by, clock())
        .unwrap();
    assert_eq!(world.store().policy.newest().reference.version, 2);
}

#[test]
fn a_stripped_or_foreign_event_is_reported_and_changes_nothing() {
    let world = World::new();
    let store = world.store();
    let alice = Identity::of(&store.policy, world.alice.signer()).unwrap();
    let id = store.create_task(&alice, create(&store, "T")).unwrap();
    store
        .change_task(&id, &alice, |_| Ok(vec![Change::Enqueue]))
        .unwrap();
    let dir = world.dir.path().join("repo");
    let reference = store.layout.task(&id);
    let event = git(&dir, &["show", &format!("{reference}:event.toml")]);
    // The same bytes again without their signature, on top.
    let blob = |text: &str| {
        std::fs::write(dir.join("blob"), text).unwrap();
        git(&dir, &["hash-object", "-w", "blob"]).trim().to_owned()
    };
    let tree = |name: &str, text: &str| {
        let line = format!("100644 blob {}\t{name}\n", blob(text));
        std::fs::write(dir.join("tree"), line).unwrap();
        let out = Command::new("git")
            .current_dir(&dir)
            .arg("mktree")
            .stdin(std::fs::File::open(dir.join("tree")).unwrap())
            .output()
            .unwrap();
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    };
    let changed = event.replace("enqueue", "delete");
    let commit = git(
        &dir,
        &[
            "commit-tree",
            &tree("event.toml", &changed),
            "-p",
            &reference,
            "-m",
            "x",
        ],
    );
    git(&dir, &["update-ref", &reference, commit.trim()]);
    let history = world.store().task(&id).unwrap();
    assert_eq!(history.task.state, State::Queued);
    assert_eq!(history.faults.len(), 1);
}
