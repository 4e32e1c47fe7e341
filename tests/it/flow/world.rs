//! A repository with a policy, machine keys and scripted agents.

use crate::common::founded::{Founded, clock, create};
use hangar::base::clock::Clock;
use hangar::config::user::User;
use hangar::flow::drive::{Agents, Stop, drive};
use hangar::flow::host::{Host, Progress};
use hangar::git::Repository;
use hangar::harness::ledger::Ledger;
use hangar::model::approval::Action;
use hangar::model::event::Change;
use hangar::model::grade::Grade;
use hangar::model::ids::TaskId;
use hangar::model::lane::{HarnessSettings, LaneName, LaneSettings, Role as LaneRole};
use hangar::sandbox::{Cancel, Launcher, provider};
use hangar::store::Store;
use hangar::store::identity::Identity;
use hangar::trust;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A `hangar.toml` for shell tests.
pub(crate) const EXEC: &str = r#"
format = 1
[task]
flow = "test-first"
[grader]
framework = "exec"
tests = ["tests/"]
[deliver]
as = "branch"
branch = "hangar/{key}"
"#;

pub(crate) struct World {
    pub(crate) dir: TempDir,
    pub(crate) person: trust::MachineKey,
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
        let founded = Founded::new(|repo| {
            for (path, text) in files {
                write(&repo.join(path), text);
            }
        });
        Self {
            dir: founded.dir,
            person: founded.alice,
        }
    }

    pub(crate) fn repo_dir(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    /// A file of a scripted turn: `writer/1/out/sealed/…`.
    pub(crate) fn script(&self, who: &str, path: &str, text: &str) {
        write(&self.dir.path().join(who).join(path), text);
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(Repository::discover(&self.repo_dir()).unwrap(), clock()).unwrap()
    }

    pub(crate) fn person<'a>(&'a self, store: &Store) -> Identity<'a> {
        Identity::of(&store.policy, self.person.signer()).unwrap()
    }

    /// Another machine: the same agents, a worker key of its own.
    pub(crate) fn second_host(&self) -> Host<'static> {
        let keys = self.dir.path().join("data-two");
        let worker = trust::MachineKey::load(&keys, trust::MachineRole::Worker).unwrap();
        Host {
            worker,
            data: keys,
            ..self.host()
        }
    }

    /// This machine with a scripted writer and a scripted implementer.
    pub(crate) fn host(&self) -> Host<'static> {
        let data = self.dir.path().join("data");
        let (worker, grader) = Host::keys(&data).unwrap();
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
            image: None,
        };
        Host {
            worker,
            grader,
            provider: provider("linux", &launcher).unwrap(),
            require: hangar::model::outcome::Trust::None,
            binary: env!("CARGO_BIN_EXE_hangar").into(),
            user,
            env: BTreeMap::new(),
            data,
            cache: self.dir.path().join("cache"),
            health: Ledger::new(&self.dir.path().join("state"), clock()),
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
        let create = create(store, key, title, criteria);
        let id = store.create_task(&alice, create).unwrap();
        store
            .change_task(&id, &alice, |_| Ok(vec![Change::Enqueue]))
            .unwrap();
        id
    }

    /// Runs a task from hidden tests to delivery, with the programs of this machine in reach. Its grades, in
    /// order.
    pub(crate) fn graded(&self, title: &str, criterion: &str) -> Vec<Grade> {
        let store = self.store();
        let id = self.task(&store, title, &[criterion]);
        let mut host = self.host();
        host.env = std::env::vars_os().collect();
        let stop = drive(&host, &store, &id, None, Agents::Start).unwrap();
        assert!(matches!(stop, Stop::Waiting { .. }), "{stop:?}");
        self.decide(&id, Action::Approve, "");
        let stop = drive(&host, &store, &id, None, Agents::Start).unwrap();
        assert!(matches!(stop, Stop::Delivered(_)), "{stop:?}");
        let dossier = store.dossier(&id).unwrap();
        dossier
            .grades
            .iter()
            .map(|one| one.value().clone())
            .collect()
    }

    /// The same, where the first round is refused for what the code is, and not for a limit that it hit.
    pub(crate) fn refused_once(&self, title: &str, criterion: &str) -> Grade {
        let first = self.graded(title, criterion).remove(0);
        assert!(!first.accepted, "{first:?}");
        assert!(first.limits_hit.is_empty(), "{first:?}");
        first
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
