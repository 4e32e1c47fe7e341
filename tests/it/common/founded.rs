//! A repository with a first policy: alice is everything in it, beside three machines of hers.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests stop where they can't go on"
)]

use super::git::{commit_all, git};
use super::{START, policy};
use hangar::base::clock::Clock;
use hangar::git::Repository;
use hangar::model::event::{Change, Criterion};
use hangar::model::ids::CriterionId;
use hangar::model::policy::{MachineRole, Members, Role, Root};
use hangar::model::task::{Flow, Mode};
use hangar::store::Store;
use hangar::store::draft::Draft;
use hangar::store::layout::Layout;
use hangar::trust::{self, MachineKey};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub(crate) struct Founded {
    /// Holds `repo`, and the machines' keys in `data` and `data-two`.
    pub(crate) dir: TempDir,
    pub(crate) alice: MachineKey,
    pub(crate) worker: MachineKey,
    pub(crate) grader: MachineKey,
    /// The worker key of another machine.
    second: MachineKey,
}

pub(crate) fn clock() -> Clock {
    Clock::Fixed(START.parse().unwrap())
}

impl Founded {
    /// A repository whose first commit holds what `fill` lays, and its policy.
    pub(crate) fn new(fill: impl FnOnce(&Path)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        git(dir.path(), &["init", "-q", "-b", "main", "repo"]);
        let key = |name, role| MachineKey::load_or_create(&dir.path().join(name), role).unwrap();
        let founded = Self {
            alice: key("alice", trust::MachineRole::Worker),
            worker: key("data", trust::MachineRole::Worker),
            grader: key("data", trust::MachineRole::Grader),
            second: key("data-two", trust::MachineRole::Worker),
            dir,
        };
        fill(&founded.path());
        commit_all(&founded.path(), "base");
        founded.publish(&founded.root());
        founded
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    pub(crate) fn repo(&self) -> Repository {
        Repository::discover(&self.path()).unwrap()
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(self.repo(), clock()).unwrap()
    }

    /// Publishes a first policy where there is none.
    pub(crate) fn publish(&self, root: &Root) {
        self.try_publish(root).unwrap();
    }

    /// The same, told how it went.
    pub(crate) fn try_publish(&self, root: &Root) -> Result<(), hangar::store::Error> {
        let (repo, by) = (self.repo(), "alice");
        let layout = Layout::of(&repo).unwrap();
        let draft = Draft::founding(root, self.members(), self.alice.signer()).unwrap();
        draft.publish(&repo, &layout, None, by, clock()).map(drop)
    }

    pub(crate) fn root(&self) -> Root {
        policy::root(&[("alice", self.alice.public().as_str())])
    }

    fn members(&self) -> Members {
        let machine =
            |name, role, key: &MachineKey| policy::machine(name, role, key.public().as_str());
        policy::members(
            vec![policy::person(
                "alice",
                Role::Admin,
                self.alice.public().as_str(),
            )],
            vec![
                machine("worker", MachineRole::Worker, &self.worker),
                machine("worker-two", MachineRole::Worker, &self.second),
                machine("grader", MachineRole::Grader, &self.grader),
            ],
        )
    }
}

/// The first event of a task on this repository's head, asked for by alice.
pub(crate) fn create(store: &Store, key: &str, title: &str, criteria: &[&str]) -> Change {
    let criterion = |(index, text): (usize, &&str)| Criterion {
        id: CriterionId::at(index),
        text: (*text).to_owned(),
    };
    Change::Create {
        title: title.into(),
        mandate: String::new(),
        criteria: criteria.iter().enumerate().map(criterion).collect(),
        flow: Flow::TestFirst,
        mode: Mode::Implement,
        priority: 5,
        base: store.repo.head().unwrap().unwrap(),
        base_branch: "main".into(),
        external: key.into(),
        tags: Vec::new(),
        requester: "alice".parse().unwrap(),
    }
}
