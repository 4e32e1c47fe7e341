//! The index under `task list`: made once, made anew where something changed, and never the truth.

use crate::common::TestEnv;
use crate::flow::world::{World, clock_at};
use crate::verify::making::Making;
use crate::verify::plot::Plot;
use hangar::app::tasks::list::{Filter, Standing, TaskList, list};
use hangar::app::{Here, Notices};
use hangar::flow::claim;
use hangar::git::Expected;
use hangar::model::approval::Action;
use hangar::model::codec;
use hangar::model::digest::Digest;
use hangar::model::event::Change;
use hangar::model::ids::TaskId;
use hangar::model::task::{Stage, State};
use hangar::store::draft::Draft;
use rusqlite::Connection;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// A listing through the index, and how many rows had to be made.
pub(crate) fn listed(repo: &Path, seconds: i64, filter: &Filter) -> (TaskList, usize) {
    let here = Here {
        dir: repo.to_owned(),
        env: BTreeMap::new(),
        clock: clock_at(seconds),
        offline: true,
        notices: Notices::default(),
    };
    let mut made = 0;
    let list = list(&here, filter, &mut |done, of| {
        assert!(done <= of);
        made = of;
    });
    (list.unwrap(), made)
}

pub(crate) fn every() -> Filter {
    Filter {
        all: true,
        ..Filter::default()
    }
}

pub(crate) fn index_of(repo: &Path) -> PathBuf {
    repo.join(".git/hangar/index.db")
}

/// The listing as scripts get it.
pub(crate) fn value(list: &TaskList) -> Value {
    serde_json::to_value(list).unwrap()
}

/// What the documents say, without an index from before; the index stays as it was.
fn truth(repo: &Path, seconds: i64) -> Value {
    let path = index_of(repo);
    let kept = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let (list, _) = listed(repo, seconds, &every());
    fs::write(&path, kept).unwrap();
    value(&list)
}

struct Scene {
    world: World,
    tasks: Vec<TaskId>,
}

impl Scene {
    fn new() -> Self {
        let world = World::new(&[("calc.sh", "echo 0\n")]);
        let store = world.store();
        let task = |n: u8| {
            let (key, title) = (format!("KAN-{n}"), format!("Task {n}"));
            world.task_called(&store, &key, &title, &["5 - 3 is 2"])
        };
        let tasks = (1..=3).map(task).collect();
        Self { world, tasks }
    }

    fn repo(&self) -> PathBuf {
        self.world.repo_dir()
    }

    /// Lists at a time; so many rows must be made, and what is listed must be the truth.
    #[track_caller]
    fn makes(&self, expected: usize, seconds: i64) -> TaskList {
        let (list, made) = listed(&self.repo(), seconds, &every());
        assert_eq!(made, expected);
        assert_eq!(list.trouble, None);
        assert_eq!(value(&list), truth(&self.repo(), seconds));
        let (again, made) = listed(&self.repo(), seconds, &every());
        assert_eq!((made, value(&again)), (0, value(&list)));
        list
    }

    fn line(list: &TaskList, id: &TaskId) -> (State, Option<Stage>) {
        let line = list.tasks.iter().find(|line| line.id == *id).unwrap();
        (line.state, line.stage)
    }

    fn change(&self, id: &TaskId, change: &Change) {
        let store = self.world.store();
        let alice = self.world.person(&store);
        store
            .change_task(id, &alice, |_| Ok(vec![change.clone()]))
            .unwrap();
    }
}

#[test]
fn only_what_changed_is_read_again() {
    let scene = Scene::new();
    let (world, id) = (&scene.world, &scene.tasks[0]);
    scene.makes(3, 0);
    let text = "a remark".to_owned();
    scene.change(&scene.tasks[1], &Change::Comment { text });
    scene.makes(1, 0);

    let (store, host) = (world.store(), world.host());
    let making = Making { world, id };
    let plot = Plot::undelivered();
    let _hold = claim::take(&host, &store, id).unwrap();
    let list = scene.makes(1, 0);
    let stage = |stage| (State::Assigned, Some(stage));
    assert_eq!(Scene::line(&list, id), stage(Stage::Writing));
    making.seal(&store, &host, &plot);
    let list = scene.makes(1, 0);
    assert_eq!(Scene::line(&list, id).1, Some(Stage::AwaitingApproval));
    making.approve(&store, &plot);
    let list = scene.makes(1, 0);
    assert_eq!(Scene::line(&list, id).1, Some(Stage::Implementing));
    making.consume(&store, &host, &plot);
    scene.makes(1, 0);
    let run = making.run(&store, &host, &plot);
    let list = scene.makes(1, 0);
    assert_eq!(Scene::line(&list, id).1, Some(Stage::Verifying));
    making.grade(&store, &host, run, &plot);
    let list = scene.makes(1, 0);
    assert_eq!(Scene::line(&list, id).1, Some(Stage::Delivering));

    // A ref that is no more takes its row along, also when nothing else changed.
    let reference = store.layout.task(&scene.tasks[2]);
    let tip = store.repo.read_ref(&reference).unwrap().unwrap();
    let (repo, gone) = (&store.repo, Expected::At(tip));
    repo.update_ref(&reference, gone, None, "x").unwrap();
    assert_eq!(scene.makes(0, 0).tasks.len(), 2);
    let count = "SELECT (SELECT count(*) FROM line) * 10 + (SELECT count(*) FROM text)";
    let index = Connection::open(index_of(&scene.repo())).unwrap();
    assert_eq!(
        index.query_row(count, [], |row| row.get::<_, i64>(0)),
        Ok(22)
    );
}

#[test]
fn an_approval_that_expires_changes_its_task_without_any_new_document() {
    let scene = Scene::new();
    let (world, id) = (&scene.world, &scene.tasks[0]);
    let (store, host) = (world.store(), world.host());
    let making = Making { world, id };
    let _hold = claim::take(&host, &store, id).unwrap();
    making.seal(&store, &host, &Plot::undelivered());
    world.decide(id, Action::Approve, "");
    let stage = |list: &TaskList| Scene::line(list, id).1;
    let day = 24 * 60 * 60;
    assert_eq!(stage(&scene.makes(3, 0)), Some(Stage::Implementing));
    assert_eq!(stage(&scene.makes(0, 29 * day)), Some(Stage::Implementing));
    let expired = Some(Stage::AwaitingApproval);
    assert_eq!(stage(&scene.makes(1, 31 * day)), expired);
    assert_eq!(stage(&scene.makes(0, 32 * day)), expired);
    // A clock that was put right again.
    assert_eq!(stage(&scene.makes(1, 0)), Some(Stage::Implementing));
}

#[test]
fn a_new_policy_makes_every_row_anew() {
    let scene = Scene::new();
    scene.makes(3, 0);
    let store = scene.world.store();
    let newest = store.policy.newest();
    let mut members = newest.members.clone();
    members.version = 2;
    members.previous = Some(newest.reference.digest);
    let root = codec::encode(&newest.root).unwrap();
    let mut draft = Draft::unsigned(root, codec::encode(&members).unwrap());
    draft.sign_members(scene.world.person.signer()).unwrap();
    let tip = store.repo.read_ref(&store.layout.policy()).unwrap();
    draft
        .publish(&store.repo, &store.layout, tip, "alice", clock_at(0))
        .unwrap();
    scene.makes(3, 0);
}

#[test]
fn texts_are_found_and_no_hidden_test_is_in_the_index() {
    let scene = Scene::new();
    let (world, id) = (&scene.world, &scene.tasks[0]);
    let (store, host) = (world.store(), world.host());
    let making = Making { world, id };
    let _hold = claim::take(&host, &store, id).unwrap();
    making.seal(&store, &host, &Plot::undelivered());
    let find = |text: &str| {
        let text = Some(text.to_owned());
        let (list, _) = listed(&scene.repo(), 0, &Filter { text, ..every() });
        list.tasks.len()
    };
    for round in 0..2 {
        for (text, count) in [("5 - 3 IS", 3), ("task 2", 1), ("kan-3", 1), ("nowhere", 0)] {
            assert_eq!(find(text), count, "{text} {round}");
        }
        assert_eq!(find(&id.as_str()[..12]), 1);
    }
    // A row without its text is as good as none.
    let index = Connection::open(index_of(&scene.repo())).unwrap();
    index.execute("DELETE FROM text", []).unwrap();
    assert_eq!(find("5 - 3"), 3);

    let bytes = fs::read(index_of(&scene.repo())).unwrap();
    let holds = |text: &[u8]| bytes.windows(text.len()).any(|part| part == text);
    assert!(holds(b"5 - 3 is 2"), "the control");
    for secret in [&b"#!/bin/sh"[..], b"sub.sh", b"sentinel"] {
        assert!(!holds(secret), "{}", String::from_utf8_lossy(secret));
    }
}

#[test]
fn what_decides_does_not_believe_the_index() {
    let scene = Scene::new();
    let id = &scene.tasks[0];
    scene.makes(3, 0);
    // A row that is whole in every respect, and says what the documents do not.
    let path = index_of(&scene.repo());
    let index = Connection::open(path).unwrap();
    let read = "SELECT key, row FROM line WHERE id = ?1";
    let (key, row) = index
        .query_row(read, [id.as_str()], |row| {
            Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, Vec<u8>>(1)?))
        })
        .unwrap();
    let text = String::from_utf8(row[8..].to_vec()).unwrap();
    let forged = text.replace("KAN-1", "KAN-9").replace("queued", "done");
    assert_ne!(text, forged);
    let sum = Digest::of(&[id.as_str().as_bytes(), &key, forged.as_bytes()].concat());
    let row = [&sum.as_bytes()[..8], forged.as_bytes()].concat();
    let write = "UPDATE line SET row = ?2 WHERE id = ?1";
    index.execute(write, (id.as_str(), row)).unwrap();
    let (list, _) = listed(&scene.repo(), 0, &every());
    assert_eq!(Scene::line(&list, id).0, State::Done, "the control");

    let store = scene.world.store();
    assert_eq!(store.find_task("KAN-1").unwrap().task.state, State::Queued);
    assert!(store.find_task("KAN-9").is_err());
    let host = scene.world.host();
    let _hold = claim::take(&host, &store, id).unwrap();
    assert_eq!(store.task(id).unwrap().task.state, State::Assigned);
}

#[test]
fn filters_by_state_and_stage_name_either() {
    let scene = Scene::new();
    let (store, host) = (scene.world.store(), scene.world.host());
    let _hold = claim::take(&host, &store, &scene.tasks[0]).unwrap();
    let count = |states: &[Standing]| {
        let states = states.to_vec();
        let filter = Filter {
            states,
            ..Filter::default()
        };
        listed(&scene.repo(), 0, &filter).0.tasks.len()
    };
    let (queued, writing) = (
        Standing::State(State::Queued),
        Standing::Stage(Stage::Writing),
    );
    assert_eq!(count(&[queued]), 2);
    assert_eq!(count(&[writing]), 1);
    assert_eq!(count(&[queued, writing]), 3);
    assert_eq!(count(&[Standing::State(State::Done)]), 0);
}

#[test]
fn several_processes_build_it_at_once() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    for title in ["One", "Two", "Three"] {
        let new = ["task", "new", title, "--plain"];
        env.hangar(&dir, &new).success();
    }
    let expected = env.json(&dir, &["task", "list"]);
    for _ in 0..3 {
        fs::remove_file(index_of(&dir)).unwrap();
        let start = || {
            let mut command = env.command(env!("CARGO_BIN_EXE_hangar"), &dir);
            command.args(["task", "list", "--json"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().unwrap()
        };
        let all: Vec<_> = (0..6).map(|_| start()).collect();
        for child in all {
            let out = child.wait_with_output().unwrap();
            assert!(out.status.success());
            assert_eq!(String::from_utf8_lossy(&out.stderr), "");
            let list: Value = serde_json::from_slice(&out.stdout).unwrap();
            assert_eq!(list, expected);
        }
        let (_, made) = listed(&dir, 0, &every());
        assert_eq!(made, 0);
    }
}
