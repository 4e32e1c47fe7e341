//! An index that is damaged, foreign, held or out of reach: the listing is right all the same.

use crate::flow::world::World;
use crate::index::{every, index_of, listed, value};
use hangar::app::tasks::list::Filter;
use rusqlite::Connection;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

struct Scene {
    _world: World,
    repo: PathBuf,
    path: PathBuf,
    expected: Value,
}

impl Scene {
    fn new() -> Self {
        let world = World::new(&[("calc.sh", "echo 0\n")]);
        let store = world.store();
        for n in 1..=3 {
            world.task_called(&store, &format!("KAN-{n}"), "Subtract", &["5 - 3 is 2"]);
        }
        let repo = world.repo_dir();
        let (list, made) = listed(&repo, 0, &every());
        assert_eq!(made, 3);
        Self {
            path: index_of(&repo),
            expected: value(&list),
            repo,
            _world: world,
        }
    }

    /// Lists, with or without trouble; gives how many rows were made.
    #[track_caller]
    fn lists(&self, trouble: bool) -> usize {
        let (list, made) = listed(&self.repo, 0, &every());
        assert_eq!(value(&list), self.expected);
        assert_eq!(list.trouble.is_some(), trouble, "{:?}", list.trouble);
        made
    }

    /// Rows were made anew, and stay.
    #[track_caller]
    fn rebuilds(&self) {
        assert_eq!(self.lists(false), 3);
        assert_eq!(self.lists(false), 0);
    }

    fn with(&self, sql: &str) {
        let index = Connection::open(&self.path).unwrap();
        index.execute_batch(sql).unwrap();
    }
}

#[test]
fn one_that_is_gone_or_no_database_is_made_anew() {
    let scene = Scene::new();
    assert_eq!(scene.lists(false), 0);
    fs::remove_file(&scene.path).unwrap();
    scene.rebuilds();
    for bytes in [
        &b""[..],
        b"x",
        &[0; 4096],
        b"SQLite format 3\0",
        &[0xff; 9000],
    ] {
        fs::write(&scene.path, bytes).unwrap();
        scene.rebuilds();
    }
    let whole = fs::read(&scene.path).unwrap();
    for len in [1, 99, 100, 1000, 4096, 5000] {
        fs::write(&scene.path, &whole[..len]).unwrap();
        scene.rebuilds();
    }
    // The last text misses a byte.
    fs::write(&scene.path, &whole[..whole.len() - 1]).unwrap();
    assert_eq!(scene.lists(false), 0);
    let text = Some("subtract".to_owned());
    let search = Filter { text, ..every() };
    assert_eq!(listed(&scene.repo, 0, &search).1, 1);
    assert_eq!(listed(&scene.repo, 0, &search).1, 0);
}

#[test]
fn one_of_another_version_or_program_is_made_anew() {
    let scene = Scene::new();
    for sql in [
        "PRAGMA user_version = 99",
        "DROP TABLE book",
        "PRAGMA application_id = 7",
        "CREATE TABLE more (x)",
        "DROP TABLE text",
        "ALTER TABLE line RENAME TO lines",
        "CREATE TRIGGER t AFTER INSERT ON line BEGIN DELETE FROM line; END",
        "DROP TABLE line; CREATE VIEW line AS SELECT id, x'00' AS key, row FROM text",
        "INSERT INTO line VALUES (x'ff', 'key', 3)",
        "UPDATE line SET row = NULL || 'x', key = 5 WHERE 0; UPDATE line SET key = 'text'",
        "INSERT INTO line VALUES (CAST(x'fffe' AS TEXT), x'00', x'00')",
    ] {
        scene.with(sql);
        scene.rebuilds();
    }
    // Rows that are whole and of no task, or of a task and not whole.
    scene.with("INSERT INTO line VALUES ('nobody', x'00', zeroblob(1000000))");
    assert_eq!(scene.lists(false), 0);
    scene.with("UPDATE line SET row = substr(row, 1, 20)");
    scene.rebuilds();
    scene.with("PRAGMA journal_mode = WAL");
    assert_eq!(scene.lists(false), 0);
}

#[test]
fn random_damage_is_survived() {
    let scene = Scene::new();
    let whole = fs::read(&scene.path).unwrap();
    // Numbers of a fixed sequence, so that a failure comes again.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    for round in 0..60 {
        let mut bytes = whole.clone();
        for _ in 0..=next(40) {
            let at = next(bytes.len());
            bytes[at] = u8::try_from(next(256)).unwrap();
        }
        if round % 4 == 0 {
            let (at, len) = (next(bytes.len()), next(200));
            let end = (at + len).min(bytes.len());
            bytes[at..end].fill(0);
        }
        fs::write(&scene.path, bytes).unwrap();
        let (list, _) = listed(&scene.repo, 0, &every());
        assert_eq!(value(&list), scene.expected, "{round}");
    }
    scene.lists(false);
    assert_eq!(scene.lists(false), 0);
}

#[test]
fn one_that_is_held_or_out_of_reach_is_left_alone() {
    let scene = Scene::new();
    let holder = Connection::open(&scene.path).unwrap();
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    assert_eq!(scene.lists(true), 3);
    holder.execute_batch("ROLLBACK").unwrap();
    // Somebody writes: what is there can be read, and nothing is kept.
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(scene.lists(false), 0);
    drop(holder);

    fs::remove_file(&scene.path).unwrap();
    fs::create_dir(&scene.path).unwrap();
    assert_eq!(scene.lists(true), 3);
    fs::remove_dir(&scene.path).unwrap();

    // A link is not followed.
    let aside = scene.repo.join("aside");
    fs::write(&aside, "mine").unwrap();
    symlink(&aside, &scene.path).unwrap();
    assert_eq!(scene.lists(true), 3);
    assert_eq!(fs::read(&aside).unwrap(), b"mine");
    fs::remove_file(&scene.path).unwrap();
    scene.rebuilds();
}

#[test]
fn one_in_a_folder_that_cannot_be_written_is_read() {
    if rustix::process::geteuid().is_root() {
        return;
    }
    let scene = Scene::new();
    let dir = scene.path.parent().unwrap();
    let mode = |path: &std::path::Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(&scene.path, 0o400);
    mode(dir, 0o500);
    assert_eq!(scene.lists(false), 0);
    mode(dir, 0o700);
    fs::remove_file(&scene.path).unwrap();
    mode(dir, 0o500);
    assert_eq!(scene.lists(true), 3);
    mode(dir, 0o700);
}
