//! A repository with a policy, machine keys and scripted agents.

use hangar::base::clock::Clock;
use hangar::config::user::User;
use hangar::flow::host::{Host, Progress};
use hangar::git::Repository;
use hangar::model::approval::Action;
use hangar::model::digest::Digest;
use hangar::model::event::{Change, Criterion};
use hangar::model::ids::{CriterionId, TaskId};
use hangar::model::lane::{HarnessSettings, LaneName, LaneSettings, Role as LaneRole};
use hangar::model::policy::{
    self, Acceptance, MachineRole, Members, Person, Role, Root, RootKey, Thresholds,
};
use hangar::model::task::{Flow, Mode};
use hangar::sandbox::{Cancel, Launcher, Linux};
use hangar::store::Store;
use hangar::store::found::Draft;
use hangar::store::identity::Identity;
use hangar::store::layout::Layout;
use hangar::trust;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

pub(crate) struct World {
    pub(crate) dir: TempDir,
    pub(crate) person: trust::MachineKey,
}

pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
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
    String::from_utf8_lossy(&out.stdout).into_owned()
}

pub(crate) fn clock() -> Clock {
    Clock::Fixed("2026-01-02T03:04:05Z".parse().unwrap())
}

/// So many seconds after [`clock`].
pub(crate) fn clock_at(seconds: i64) -> Clock {
    let start = clock().now().as_second();
    Clock::Fixed(jiff::Timestamp::from_second(start + seconds).unwrap())
}

/// What is done is not looked at here.
fn quiet(_: Progress) {}

impl World {
    /// A repository with these files at its base, and a policy with alice as everything.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        git(dir.path(), &["init", "-q", "-b", "main", "repo"]);
        let person = trust::MachineKey::load_or_create(
            &dir.path().join("alice"),
            trust::MachineRole::Worker,
        )
        .unwrap();
        for role in [trust::MachineRole::Worker, trust::MachineRole::Grader] {
            trust::MachineKey::load_or_create(&dir.path().join("data"), role).unwrap();
            trust::MachineKey::load_or_create(&dir.path().join("data-two"), role).unwrap();
        }
        let world = Self { dir, person };
        for (path, text) in files {
            world.put(path, text);
        }
        git(&world.repo_dir(), &["add", "-A"]);
        git(&world.repo_dir(), &["commit", "-q", "-m", "base"]);
        world.found();
        world
    }

    pub(crate) fn repo_dir(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    fn put(&self, path: &str, text: &str) {
        write(&self.repo_dir().join(path), text);
    }

    /// A file of a scripted turn: `writer/1/out/sealed/…`.
    pub(crate) fn script(&self, who: &str, path: &str, text: &str) {
        write(&self.dir.path().join(who).join(path), text);
    }

    fn found(&self) {
        let repo = Repository::discover(&self.repo_dir()).unwrap();
        let (worker, grader) = Host::keys(&self.dir.path().join("data")).unwrap();
        let (second, _) = Host::keys(&self.dir.path().join("data-two")).unwrap();
        let machine = |name: &str, role, key: &trust::MachineKey| policy::Machine {
            name: name.parse().unwrap(),
            role,
            owner: "alice".parse().unwrap(),
            public: key.public().as_str().into(),
        };
        let root = Root {
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
                public: self.person.public().as_str().into(),
                recovery: false,
            }],
        };
        let members = Members {
            format: 1,
            version: 1,
            previous: None,
            root: Digest::of(b""),
            arbiter: String::new(),
            person: vec![Person {
                name: "alice".parse().unwrap(),
                role: Role::Admin,
                keys: vec![self.person.public().as_str().into()],
                recipients: vec![self.person.public().as_str().into()],
            }],
            machine: vec![
                machine("worker", MachineRole::Worker, &worker),
                machine("worker-two", MachineRole::Worker, &second),
                machine("grader", MachineRole::Grader, &grader),
            ],
        };
        let layout = Layout::of(&repo).unwrap();
        let draft = Draft::founding(&root, members, self.person.signer()).unwrap();
        draft
            .publish(&repo, &layout, None, &"alice".parse().unwrap(), clock())
            .unwrap();
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(Repository::discover(&self.repo_dir()).unwrap(), clock()).unwrap()
    }

    pub(crate) fn person<'a>(&'a self, store: &Store) -> Identity<'a> {
        Identity::of(&store.policy, self.person.signer()).unwrap()
    }

    /// Another machine: the same agents, a worker key of its own.
    pub(crate) fn second_host(&self) -> Host<'static> {
        let (worker, _) = Host::keys(&self.dir.path().join("data-two")).unwrap();
        Host {
            worker,
            ..self.host()
        }
    }

    /// This machine with a scripted writer and a scripted implementer.
    pub(crate) fn host(&self) -> Host<'static> {
        let (worker, grader) = Host::keys(&self.dir.path().join("data")).unwrap();
        let script = |name: &str| {
            let dir = self.dir.path().join(name);
            fs::create_dir_all(&dir).unwrap();
            let settings = HarnessSettings {
                kind: "script".into(),
                dir: Some(dir),
                ..HarnessSettings::default()
            };
            (name.to_owned(), settings)
        };
        let lane = |name: &str| {
            vec![LaneName {
                harness: name.into(),
                effort: None,
            }]
        };
        let user = User {
            lanes: LaneSettings {
                harnesses: BTreeMap::from([script("writer"), script("coder")]),
                lanes: BTreeMap::from([
                    (LaneRole::Writer, lane("writer")),
                    (LaneRole::Implementer, lane("coder")),
                ]),
            },
            ..User::default()
        };
        let launcher = Launcher {
            program: env!("CARGO_BIN_EXE_hangar").into(),
        };
        Host {
            worker,
            grader,
            provider: Box::new(Linux::new(launcher)),
            binary: env!("CARGO_BIN_EXE_hangar").into(),
            user,
            env: BTreeMap::new(),
            cache: self.dir.path().join("cache"),
            cancel: Cancel::default(),
            progress: &quiet,
            holding: std::cell::RefCell::default(),
        }
    }

    pub(crate) fn task(&self, store: &Store, title: &str, criteria: &[&str]) -> TaskId {
        self.task_called(store, "KAN-80", title, criteria)
    }

    /// A queued task with this external key.
    pub(crate) fn task_called(
        &self,
        store: &Store,
        key: &str,
        title: &str,
        criteria: &[&str],
    ) -> TaskId {
        let alice = self.person(store);
        let criteria = criteria
            .iter()
            .enumerate()
            .map(|(index, text)| Criterion {
                id: CriterionId::at(index),
                text: (*text).to_owned(),
            })
            .collect();
        let create = Change::Create {
            title: title.into(),
            mandate: String::new(),
            criteria,
            flow: Flow::TestFirst,
            mode: Mode::Implement,
            priority: 5,
            base: store.repo.head().unwrap().unwrap(),
            base_branch: "main".into(),
            external: key.into(),
            tags: Vec::new(),
            requester: "alice".parse().unwrap(),
        };
        let id = store.create_task(&alice, create).unwrap();
        store
            .change_task(&id, &alice, |_| Ok(vec![Change::Enqueue]))
            .unwrap();
        id
    }

    pub(crate) fn decide(&self, id: &TaskId, action: Action, reason: &str) {
        let store = self.store();
        let dossier = store.dossier(id).unwrap();
        let seal = dossier.seals.last().unwrap();
        let look = hangar::flow::decide::Look::default();
        hangar::flow::decide::decide(
            &store,
            &dossier,
            seal,
            &self.person(&store),
            action,
            reason,
            look,
        )
        .unwrap();
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    if text.starts_with("#!") {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}
