//! A repository with one delivered task, whose documents a [`Plot`] may forge.

use super::plot::Plot;
use crate::common::git::git;
use crate::flow::world::World;
use hangar::model::digest::Digest;
use hangar::model::event::Change;
use hangar::model::ids::TaskId;
use hangar::store::Store;
use hangar::store::dossier::Dossier;
use hangar::store::identity::Identity;
use std::path::PathBuf;

pub(crate) const CONFIG: &str = "format = 1\n[task]\nflow = \"test-first\"\n[grader]\nframework = \"exec\"\ntests = [\"tests/\"]\n";

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
        Self::of(world, id, plot)
    }

    /// The documents of a task that is queued in this world.
    pub(crate) fn of(world: World, id: TaskId, plot: &Plot<'_>) -> Self {
        let forged = Self { world, id };
        forged.link_keys();
        plot.carry_out(&forged.world, &forged.id);
        forged
    }

    /// Takes another task through the same flow in this repository.
    pub(crate) fn another(&self, key: &str, plot: &Plot<'_>) -> TaskId {
        let store = self.world.store();
        let id = self
            .world
            .task_called(&store, key, "Another", &["5 3 prints 2"]);
        plot.carry_out(&self.world, &id);
        id
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

    /// The worker changes the task, whatever the flow would say.
    pub(crate) fn worker_does(&self, change: &Change) {
        let (store, host) = (self.store(), self.world.host());
        let worker = Identity::of(&store.policy, host.worker.signer()).unwrap();
        store
            .change_task(&self.id, &worker, |_| Ok(vec![change.clone()]))
            .unwrap();
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

    /// Refs of the task with the name of their document.
    pub(crate) fn kinds(&self) -> [(String, &'static str); 5] {
        [
            (self.events(), "event"),
            (self.sealed(), "manifest"),
            (self.approval(), "approval"),
            (self.runs(), "run"),
            (self.grades(), "grade"),
        ]
    }
}

/// A delivery of the base under the first version and grade.
pub(crate) fn delivery(dossier: &Dossier, run: Digest) -> Change {
    Change::Deliver {
        branch: "refs/heads/x".into(),
        commit: dossier.history.task.base,
        run,
        grade: Some(dossier.grades[0].digest()),
        manifest: Some(dossier.seals[0].digest()),
    }
}
