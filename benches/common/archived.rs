//! Ended tasks in the archive, as `Store::archive` leaves them. They reach the repository as two
//! `git fast-import` streams, without ever having refs of their own: to delete 100,000 refs takes long.

use crate::git;
use crate::tasks::{Line, SCRATCH, Scene, keyed};
use hangar::model::event::Change;
use hangar::model::ids::TaskId;
use hangar::store::Store;
use hangar::store::identity::Identity;
use std::collections::BTreeMap;
use std::fs;

/// Tasks that one commit of an archive takes up.
const WIDTH: usize = 64;

/// Archives `count` cancelled tasks of two events each. The key of each is `OLD-` and its number.
pub(crate) fn fill(scene: &Scene, count: usize) -> Vec<TaskId> {
    let store = scene.store();
    let alice = Identity::of(&store.policy, scene.person.signer()).expect("she is known");
    let mut stream = Vec::new();
    let mut tasks = Vec::with_capacity(count);
    for index in 0..count {
        // Other numbers than those of live tasks.
        let mut line = Line::new(&store, &mut stream, index + 1_000_000, Some(index + 1));
        let key = format!("OLD-{index}");
        line.add(&alice, keyed("Over", &key, store.repo.head()));
        let reason = "done".to_owned();
        line.add(&alice, Change::Cancel { reason });
        tasks.extend(line.task);
    }
    let marks = scene.path("marks");
    let export = format!("--export-marks={}", marks.display());
    git::import_with(&scene.repo, &[&export], &stream);
    let marks = fs::read_to_string(&marks).expect("git wrote it");
    let mut tips = vec![""; count];
    for (mark, tip) in marks.lines().filter_map(|line| line.split_once(' ')) {
        let mark: usize = mark[1..].parse().expect("a number");
        tips[mark - 1] = tip;
    }
    git::import_with(&scene.repo, &[], &archives(&store, &tasks, &tips));
    git::run(&scene.repo, &["update-ref", "-d", SCRATCH]);
    git::run(&scene.repo, &["pack-refs", "--all"]);
    tasks
}

/// The commits of the archives.
fn archives(store: &Store, tasks: &[TaskId], tips: &[&str]) -> Vec<u8> {
    let mut by_archive: BTreeMap<String, Vec<(&TaskId, &str)>> = BTreeMap::new();
    for (id, tip) in tasks.iter().zip(tips) {
        let of = by_archive.entry(store.layout.archive(id)).or_default();
        of.push((id, tip));
    }
    let mut stream = Vec::new();
    let mut put = |text: String| stream.extend_from_slice(text.as_bytes());
    for (name, tasks) in by_archive {
        for (at, chunk) in tasks.chunks(WIDTH).enumerate() {
            let who = "hangar <join@hangar.invalid> 0 +0000";
            put(format!("commit {name}\ncommitter {who}\ndata 8\narchive\n"));
            for (number, (_, tip)) in chunk.iter().enumerate() {
                // What the first one holds is no part of an archive.
                let first = at == 0 && number == 0;
                put(format!("{} {tip}\n", if first { "from" } else { "merge" }));
            }
            if at == 0 {
                put("deleteall\n".to_owned());
            }
            for (id, tip) in chunk {
                let line = format!("{tip} tasks/{id}\n");
                let (shard, len) = (&id.as_str()[1..3], line.len());
                put(format!("M 100644 inline {shard}/{id}\ndata {len}\n{line}"));
            }
        }
    }
    stream
}
