//! `pre-push`: no mark of a hidden test leaves in a branch or tag, refs of hangar go forward only.

use super::server::hangar;
use super::{Said, path_without_hangar, said, said_with};
use crate::common::git::{commit_all, git};
use crate::common::hub::{Hub, task_ref};
use crate::verify::forge::Forged;
use crate::verify::plot::Plot;
use hangar::flow::version;
use hangar::model::event::Change;
use std::fs;
use std::path::PathBuf;

/// A clone with hooks and one sealed version, and a remote without any.
struct Clone {
    forged: Forged,
    hub: PathBuf,
}

impl Clone {
    fn new() -> Self {
        let forged = Forged::new(&Plot::default());
        let dir = forged.world.dir.path();
        let hub = dir.join("hub.git");
        git(dir, &["init", "-q", "--bare", "hub.git"]);
        git(
            &forged.dir(),
            &["remote", "add", "origin", hub.to_str().unwrap()],
        );
        hangar(&forged.dir(), &["hook", "pre-push", "--install"], "").done();
        let clone = Self { forged, hub };
        clone.push(&["main"]).done();
        clone
    }

    fn push(&self, args: &[&str]) -> Said {
        said(&self.forged.dir(), &[&["push", "origin"], args].concat())
    }

    /// The mark of the sealed version, as its writer's machine can read it.
    fn mark(&self) -> String {
        let (store, host) = (self.forged.store(), self.forged.world.host());
        let dossier = self.forged.dossier();
        let key = host.grader_identity().unwrap();
        let opened = version::open(&store, &dossier, &dossier.seals[0], &[key]).unwrap();
        opened.canary.token().to_owned()
    }

    fn write(&self, path: &str, text: &str) {
        crate::common::write(&self.forged.dir().join(path), text);
    }

    fn commit(&self, message: &str) {
        commit_all(&self.forged.dir(), message);
    }

    /// Begins a branch on what was pushed.
    fn branch(&self, name: &str) {
        self.forged
            .git(&["checkout", "-q", "-B", name, "origin/main"]);
    }

    /// The branch, with everything on it, does not leave; the mark itself is not said.
    #[track_caller]
    fn refuses(&self, branch: &str, why: &str) {
        let name = format!("refs/heads/{branch}");
        let said = self.push(&[branch]);
        said.refused(&name, why);
        assert!(!said.text.contains("hgc1_"), "{}", said.text);
        assert!(
            said.text.contains("hangar: nothing was pushed"),
            "{}",
            said.text
        );
        let there = git(&self.hub, &["for-each-ref", "--format=%(refname)", &name]);
        assert_eq!(there, "");
    }
}

#[test]
fn a_mark_leaves_in_no_branch_wherever_it_stands() {
    let clone = Clone::new();
    let mark = clone.mark();
    let task = &clone.forged.id.as_str()[..8];
    clone.branch("file");
    clone.write(
        "deep/er/test_a.py",
        &format!("# {mark} marks\nassert True\n"),
    );
    clone.commit("x");
    let why = format!("holds hidden tests of task {task}, version 1");
    clone.refuses("file", &why);
    clone.refuses("file", "`deep/er/test_a.py` (");
    // Taken out again in a later commit, it is still in what would be pushed.
    clone.write("deep/er/test_a.py", "assert True\n");
    clone.commit("y");
    clone.refuses("file", "`deep/er/test_a.py` (");

    clone.branch("binary");
    clone.write("a.bin", &format!("\0\u{1}x{mark}x\0"));
    clone.commit("x");
    clone.refuses("binary", "`a.bin`");

    clone.branch("message");
    clone.write("a.txt", "x");
    clone.commit(&format!("see {mark}"));
    clone.refuses("message", "the message of commit");

    clone.branch("name");
    clone.write(&format!("logs/{mark}.txt"), "x");
    clone.commit("x");
    clone.refuses("name", "a file name in `logs/`");

    clone.branch("merged");
    clone.write("other", "x");
    clone.commit("x");
    clone.forged.git(&["merge", "-q", "-m", "merge", "binary"]);
    clone.refuses("merged", "`a.bin`");
}

#[test]
fn a_mark_leaves_in_no_tag_and_no_note() {
    let clone = Clone::new();
    let mark = clone.mark();
    clone.forged.git(&["tag", "-a", "-m", &mark, "v1"]);
    let said = clone.push(&["v1"]);
    said.refused("refs/tags/v1", "the message of the tag");
    clone.forged.git(&["notes", "add", "-m", &mark, "main"]);
    let said = clone.push(&["refs/notes/commits"]);
    said.refused("refs/notes/commits", "holds hidden tests");
    let blob = clone.forged.blob(mark.as_bytes());
    clone.forged.git(&["tag", "blob", &blob]);
    clone
        .push(&["blob"])
        .refused("refs/tags/blob", "holds hidden tests");
    // Of several refs each is named that carries it, and no other.
    clone.forged.git(&["tag", "good", "main"]);
    let said = clone.push(&["v1", "blob", "good"]);
    said.refused("refs/tags/v1", "tag");
    said.refused("refs/tags/blob", "holds");
    assert!(
        !said.text.contains("hangar: refs/tags/good"),
        "{}",
        said.text
    );
}

#[test]
fn what_holds_no_mark_of_this_repository_passes() {
    let clone = Clone::new();
    clone.branch("work");
    clone.write("a.py", &format!("# hgc1_{}\n", "a2".repeat(16)));
    clone.write("b.py", "hgc1_short");
    clone.commit("x");
    clone.push(&["work"]).done();
    clone.push(&[":work"]).done();
    clone.push(&["--force", "main~0:refs/heads/work"]).done();
    clone.push(&["refs/hangar/*:refs/hangar/*"]).done();
    // What the remote has already is not looked at again.
    clone.branch("leaked");
    clone.write("a.py", &clone.mark());
    clone.commit("x");
    clone.refuses("leaked", "`a.py`");
    clone.push(&["--no-verify", "leaked"]).done();
    clone.write("b.py", "more");
    clone.commit("y");
    clone.push(&["leaked"]).done();
}

#[test]
fn tests_that_were_published_may_leave() {
    let clone = Clone::new();
    clone.branch("work");
    clone.write("tests/a.py", &clone.mark());
    clone.commit("x");
    clone.refuses("work", "`tests/a.py`");
    let forged = &clone.forged;
    let store = forged.store();
    let alice = forged.world.person(&store);
    let change = Change::Publish {
        manifest: forged.dossier().seals[0].digest(),
        commit: store.repo.head().unwrap().unwrap(),
    };
    let publish = |_: &_| Ok(vec![change.clone()]);
    store.change_task(&forged.id, &alice, publish).unwrap();
    clone.push(&["work"]).done();
}

#[test]
fn refs_of_hangar_are_neither_deleted_nor_put_back_on_the_remote() {
    let clone = Clone::new();
    clone.push(&["refs/hangar/*:refs/hangar/*"]).done();
    let events = clone.forged.events();
    clone
        .push(&[&format!(":{events}")])
        .refused(&events, "is never deleted");
    clone
        .push(&[&format!("+{events}~1:{events}")])
        .refused(&events, "the remote would lose");
    clone
        .push(&[&format!("+main:{events}")])
        .refused(&events, "the remote would lose");
    // A remote that has more than this clone knows.
    let tree = git(&clone.hub, &["rev-parse", &format!("{events}^{{tree}}")]);
    let more = git(
        &clone.hub,
        &["commit-tree", &tree, "-p", &events, "-m", "x"],
    );
    git(&clone.hub, &["update-ref", &events, &more]);
    clone
        .push(&[&format!("+{events}:{events}")])
        .refused(&events, "the remote would lose");
    // A mirror of a clone that has nothing but the hook.
    let dir = clone.forged.world.dir.path();
    git(dir, &["clone", "-q", "hub.git", "plain"]);
    let plain = dir.join("plain");
    hangar(&plain, &["hook", "pre-push", "--install"], "").done();
    let refs = git(&clone.hub, &["for-each-ref"]);
    let said = said(&plain, &["push", "--mirror", "origin"]);
    said.refused("refs/remotes/origin/main", "only `--mirror` pushes this");
    assert_eq!(git(&clone.hub, &["for-each-ref"]), refs);
}

#[test]
fn without_hangar_on_the_path_only_pushes_of_its_refs_are_held() {
    let clone = Clone::new();
    clone.branch("work");
    clone.write("a.py", "x");
    clone.commit("x");
    let path = path_without_hangar();
    let push = |spec| said_with(&clone.forged.dir(), &["push", "origin", spec], &path);
    let said = push("work");
    assert!(
        said.done().text.contains("hangar is not on PATH"),
        "{}",
        said.text
    );
    let said = push("refs/hangar/*:refs/hangar/*");
    assert!(
        !said.done && said.text.contains("put hangar on PATH"),
        "{}",
        said.text
    );
}

#[test]
fn sync_works_beside_the_hooks() {
    let (hub, first) = Hub::new();
    let task = hub.task(&first, "Shared");
    hub.env.hangar_found(&first, &["init", "--hooks"]).success();
    let sent = hub
        .env
        .hangar_found(&first, &["sync", "--json"])
        .success()
        .json();
    assert_eq!(sent["pushed"], serde_json::json!([task_ref(&task)]));
    // hangar itself runs no hook: it does not need to be found.
    hub.edit(&first, &task, "Later");
    hub.env.hangar(&first, &["sync"]).success();
    fs::write(first.join("x"), "x").unwrap();
    hub.env.commit(&first, "x");
    hub.env.git_said(&first, &["push", "origin", "main"]).done();
}
