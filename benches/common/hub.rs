//! A remote in a folder, and syncing with it.

use crate::git;
use crate::tasks::{Scene, clock};
use hangar::git::Repository;
use hangar::model::event::Change;
use hangar::model::ids::TaskId;
use hangar::store::Store;
use hangar::store::identity::Identity;
use hangar::store::sync::{Report, Wanted, sync};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The state of the repository at `dir`, opened anew.
pub(crate) fn open(dir: &Path) -> Store {
    let repo = Repository::discover(dir).expect("it is a repository");
    Store::open(repo, clock()).expect("it has a policy")
}

/// One sync; nothing is left over.
pub(crate) fn run(dir: &Path, hub: &Path) -> Report {
    let wanted = Wanted {
        remote: hub.to_str().expect("a plain path"),
        timeout: Duration::from_secs(600),
        push: true,
        prefix: None,
    };
    let (_, report) = sync(open(dir), &wanted).expect("it syncs");
    assert!(report.is_whole(), "{report:?}");
    report
}

/// A hub that has everything that the scene has.
pub(crate) fn mirror(scene: &Scene) -> PathBuf {
    git::run(&scene.repo, &["clone", "-q", "--mirror", ".", "../hub.git"]);
    let hub = scene.path("hub.git");
    run(&scene.repo, &hub);
    hub
}

/// A repository beside the hub that knows the policy and nothing else.
pub(crate) fn newcomer(hub: &Path) -> tempfile::TempDir {
    let dir = tempfile::tempdir_in(hub.parent().expect("a folder")).expect("a folder");
    git::run(dir.path(), &["init", "-q"]);
    let hub = hub.to_str().expect("a plain path");
    let policy = "refs/hangar/policy:refs/hangar/policy";
    git::run(dir.path(), &["fetch", "-q", hub, policy]);
    dir
}

/// One event more on a task.
pub(crate) fn remark(scene: &Scene, id: &TaskId) {
    let store = scene.store();
    let alice = Identity::of(&store.policy, scene.person.signer()).expect("she is known");
    let text = "a remark".to_owned();
    let change = |_: &_| Ok(vec![Change::Comment { text: text.clone() }]);
    let done = store.change_task(id, &alice, change);
    done.expect("it is written");
}
