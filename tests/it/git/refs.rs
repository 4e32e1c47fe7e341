use super::{Sample, git};
use hangar::base::process::Run;
use hangar::git::{Error, Expected, RefMove, Repository, check_ref_name};
use hangar::model::object_id::ObjectId;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::thread;

const NAME: &str = "refs/hangar/tasks/abc";

fn sample_with_blobs(count: usize) -> (Sample, Vec<ObjectId>) {
    let sample = Sample::new();
    sample.put("a", "x").commit();
    let blobs = (0..count).map(|n| sample.blob(&n.to_string())).collect();
    (sample, blobs)
}

#[test]
fn a_ref_moves_only_from_where_it_was_seen() {
    let (sample, ids) = sample_with_blobs(3);
    let repository = sample.open();
    let swap = |expected, new| repository.update_ref(NAME, expected, new, "test");
    assert_eq!(repository.read_ref(NAME).unwrap(), None);
    assert!(matches!(
        swap(Expected::At(ids[0]), Some(ids[1])),
        Err(Error::Conflict { actual: None, .. })
    ));
    swap(Expected::Absent, Some(ids[0])).unwrap();
    // Not even when it would become the same: somebody else made it.
    let error = swap(Expected::Absent, Some(ids[0])).unwrap_err();
    assert!(matches!(error, Error::Conflict { actual: Some(at), .. } if at == ids[0]));
    let error = swap(Expected::At(ids[1]), Some(ids[2])).unwrap_err();
    assert!(matches!(error, Error::Conflict { actual: Some(at), .. } if at == ids[0]));
    swap(Expected::At(ids[0]), Some(ids[1])).unwrap();
    assert_eq!(sample.git(&["rev-parse", NAME]), ids[1].to_string());
    assert!(swap(Expected::At(ids[0]), None).is_err());
    swap(Expected::At(ids[1]), None).unwrap();
    assert_eq!(repository.read_ref(NAME).unwrap(), None);
    assert_eq!(sample.git(&["for-each-ref", "refs/hangar"]), "");
    assert!(matches!(
        swap(Expected::Absent, Some("12".repeat(20).parse().unwrap())),
        Err(Error::Gone { .. })
    ));
}

#[test]
fn refs_are_listed_by_the_beginning_of_their_names() {
    let (sample, ids) = sample_with_blobs(2);
    let repository = sample.open();
    let make = |name: &str, id| {
        let made = repository.update_ref(name, Expected::Absent, Some(id), "");
        made.unwrap();
    };
    make("refs/hangar/a/one-x", ids[0]);
    make("refs/hangar/a/two-x", ids[0]);
    make("refs/hangar/a/on", ids[0]);
    sample.git(&["pack-refs", "--all", "--prune"]);
    make("refs/hangar/a/one-y", ids[1]);
    make("refs/hangar/a/two-y", ids[1]);
    let expected = [
        ("refs/hangar/a/one-x".to_owned(), ids[0]),
        ("refs/hangar/a/one-y".to_owned(), ids[1]),
    ];
    assert_eq!(
        repository.list_refs("refs/hangar/a/one-").unwrap(),
        expected
    );
    assert!(
        repository
            .list_refs("refs/hangar/a/one-z")
            .unwrap()
            .is_empty()
    );
}

#[test]
fn packed_refs_are_refs() {
    let (sample, ids) = sample_with_blobs(3);
    let early = sample.open();
    early
        .update_ref(NAME, Expected::Absent, Some(ids[0]), "")
        .unwrap();
    early
        .update_ref("refs/hangar/b", Expected::Absent, Some(ids[1]), "")
        .unwrap();
    assert_eq!(early.list_refs("refs/hangar/").unwrap().len(), 2);
    sample.git(&["pack-refs", "--all", "--prune"]);
    assert!(!fs::exists(sample.dir().join(".git").join(NAME)).unwrap());
    // A handle that was open before, and one that is opened after.
    for repository in [early, sample.open()] {
        assert_eq!(repository.read_ref(NAME).unwrap(), Some(ids[0]));
        let listed = repository.list_refs("refs/hangar/").unwrap();
        let expected = [
            ("refs/hangar/b".to_owned(), ids[1]),
            (NAME.to_owned(), ids[0]),
        ];
        assert_eq!(listed, expected);
        let swap = |expected, new| repository.update_ref(NAME, expected, new, "");
        assert!(swap(Expected::Absent, Some(ids[1])).is_err());
        assert!(swap(Expected::At(ids[2]), Some(ids[1])).is_err());
        swap(Expected::At(ids[0]), Some(ids[2])).unwrap();
        assert_eq!(sample.git(&["rev-parse", NAME]), ids[2].to_string());
        swap(Expected::At(ids[2]), None).unwrap();
        assert_eq!(
            repository.read_ref(NAME).unwrap(),
            None,
            "packing must not bring it back"
        );
        swap(Expected::Absent, Some(ids[0])).unwrap();
        sample.git(&["pack-refs", "--all", "--prune"]);
    }
}

#[test]
fn only_the_named_ref_is_touched() {
    let (sample, ids) = sample_with_blobs(2);
    // Names that a lenient lookup would find instead.
    let tag = format!("refs/tags/{NAME}");
    sample.git(&["update-ref", &tag, &ids[1].to_string()]);
    let repository = sample.open();
    assert_eq!(repository.read_ref(NAME).unwrap(), None);
    repository
        .update_ref(NAME, Expected::Absent, Some(ids[0]), "")
        .unwrap();
    repository
        .update_ref(NAME, Expected::At(ids[0]), None, "")
        .unwrap();
    assert_eq!(repository.read_ref(&tag).unwrap(), Some(ids[1]));
    sample.git(&["symbolic-ref", NAME, "refs/heads/main"]);
    assert!(matches!(
        repository.read_ref(NAME),
        Err(Error::Unsupported(_))
    ));
    assert!(
        repository
            .update_ref(NAME, Expected::Absent, Some(ids[0]), "")
            .is_err()
    );
    assert_ne!(sample.git(&["rev-parse", "main"]), ids[0].to_string());
}

#[test]
fn a_name_below_or_above_another_is_refused_at_once() {
    let (sample, ids) = sample_with_blobs(1);
    let repository = sample.open();
    let create = |name| repository.update_ref(name, Expected::Absent, Some(ids[0]), "");
    create("refs/hangar/a/b").unwrap();
    for pack in [false, true] {
        if pack {
            sample.git(&["pack-refs", "--all", "--prune"]);
        }
        for name in ["refs/hangar/a", "refs/hangar/a/b/c", "refs/hangar/a/b/c/d"] {
            let error = create(name).unwrap_err();
            assert!(matches!(error, Error::NameTaken { .. }), "{name}: {error}");
        }
    }
    create("refs/hangar/a/bc").unwrap();
}

#[test]
fn names_are_checked() {
    for name in [
        "refs/hangar/a",
        "refs/heads/ünï",
        "refs/hangar/sealed/abc-2",
    ] {
        check_ref_name(name).unwrap();
    }
    let long = format!("refs/hangar/{}", "x".repeat(300));
    for name in [
        "",
        "HEAD",
        "heads/x",
        "refs/",
        "refs/hangar/",
        "refs/../x",
        "refs/a..b",
        "refs/a b",
        "refs/a.lock",
        "refs/a\nb",
        "refs//a",
        "refs/.a",
        "refs/a~1",
        "refs/a@{1}",
        &long,
    ] {
        assert!(check_ref_name(name).is_err(), "{name:?}");
    }
}

/// Each of many writers appends to a chain by compare-and-swap; none of their commits is lost.
#[test]
fn twenty_writers_lose_no_update() {
    let (sample, ids) = sample_with_blobs(1);
    let dir = sample.dir();
    let tree = sample.tree();
    let add = |worker: usize, step: usize| {
        let repository = Repository::discover(&dir).unwrap();
        loop {
            let seen = repository.read_ref(NAME).unwrap();
            let commit = repository
                .write_commit(&hangar::git::CommitDraft {
                    tree,
                    parents: seen.into_iter().collect(),
                    author_name: format!("{worker}"),
                    author_email: String::new(),
                    time_seconds: 0,
                    message: format!("{worker}.{step}"),
                })
                .unwrap();
            match repository.update_ref(NAME, seen.into(), Some(commit), "") {
                Ok(()) => return,
                Err(Error::Conflict { .. } | Error::Busy { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    };
    thread::scope(|scope| {
        for worker in 0..20 {
            scope.spawn(move || (0..2).for_each(|step| add(worker, step)));
        }
        // Packing moves the value under everybody's feet.
        scope.spawn(|| {
            for _ in 0..10 {
                super::git_run(&dir, &["pack-refs", "--all", "--prune"])
                    .output()
                    .unwrap();
            }
        });
        // Another ref, so that empty folders come and go.
        scope.spawn(|| {
            let repository = Repository::discover(&dir).unwrap();
            for _ in 0..20 {
                let name = "refs/hangar/tasks/other/x";
                repository
                    .update_ref(name, Expected::Absent, Some(ids[0]), "")
                    .unwrap();
                repository
                    .update_ref(name, Expected::At(ids[0]), None, "")
                    .unwrap();
            }
        });
    });
    assert_eq!(git(&dir, &["rev-list", "--count", NAME]), "40");
    let subjects = git(&dir, &["log", "--format=%s", NAME]);
    let mut subjects: Vec<_> = subjects.lines().collect();
    subjects.sort_unstable();
    subjects.dedup();
    assert_eq!(subjects.len(), 40);
}

/// Each reader sees the ref all the time, although it moves between loose and packed.
#[test]
fn a_ref_never_seems_to_vanish() {
    let (sample, ids) = sample_with_blobs(2);
    let dir = sample.dir();
    sample
        .open()
        .update_ref(NAME, Expected::Absent, Some(ids[0]), "")
        .unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let repository = Repository::discover(&dir).unwrap();
            let mut at = 0;
            for _ in 0..15 {
                repository
                    .update_ref(NAME, Expected::At(ids[at]), Some(ids[1 - at]), "")
                    .unwrap();
                at = 1 - at;
                super::git_run(&dir, &["pack-refs", "--all", "--prune"])
                    .output()
                    .unwrap();
            }
            done.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        for _ in 0..2 {
            scope.spawn(|| {
                let repository = Repository::discover(&dir).unwrap();
                while !done.load(std::sync::atomic::Ordering::SeqCst) {
                    assert!(repository.read_ref(NAME).unwrap().is_some());
                    assert_eq!(repository.list_refs("refs/hangar/").unwrap().len(), 1);
                }
            });
        }
    });
}

fn moves(count: usize, expected: Expected, new: ObjectId) -> Vec<RefMove> {
    let one = |at| RefMove {
        name: format!("{NAME}{at:03}"),
        expected,
        new,
    };
    (0..count).map(one).collect()
}

/// Few refs are synced each, many together.
#[test]
fn many_refs_move_together_each_for_itself() {
    for count in [5, 100] {
        let (sample, ids) = sample_with_blobs(3);
        let repository = sample.open();
        let all = |expected, new| repository.move_refs(&moves(count, expected, new), "test");
        assert!(all(Expected::Absent, ids[0]).unwrap().elsewhere.is_empty());
        sample.git(&["pack-refs", "--all", "--prune"]);
        // Others moved one, deleted one, and made one that is the same as ours will be.
        let other = sample.open();
        let swap = |at: usize, expected, new| {
            let name = format!("{NAME}{at:03}");
            other.update_ref(&name, expected, new, "").unwrap();
        };
        swap(1, Expected::At(ids[0]), Some(ids[2]));
        swap(2, Expected::At(ids[0]), None);
        swap(3, Expected::At(ids[0]), Some(ids[1]));
        let lost = all(Expected::At(ids[0]), ids[1]).unwrap().elsewhere;
        let names = |all: &[usize]| all.iter().map(|at| format!("{NAME}{at:03}")).collect();
        assert_eq!(lost, names(&[1, 2, 3]));
        let now = repository.list_refs("refs/hangar/").unwrap();
        assert_eq!(now.len(), count - 1);
        for (name, id) in now {
            let moved = name != format!("{NAME}001");
            assert_eq!(id, if moved { ids[1] } else { ids[2] }, "{name}");
        }
        assert_eq!(
            all(Expected::Absent, ids[2]).unwrap().elsewhere.len(),
            count - 1,
            "only the deleted one is free"
        );
        let lost = all(Expected::At(ids[2]), ids[0]).unwrap().elsewhere;
        assert_eq!(lost.len(), count - 2);
        assert!(!sample.dir().join(".git/hangar/refs.held").exists());
        super::fsck(&sample.dir());
    }
    let (sample, ids) = sample_with_blobs(1);
    let repository = sample.open();
    let missing = "12".repeat(20).parse().unwrap();
    let mut moves = moves(3, Expected::Absent, ids[0]);
    moves[2].new = missing;
    let error = repository.move_refs(&moves, "").unwrap_err();
    assert!(matches!(error, Error::Gone { .. }), "{error}");
    moves[2].new = ids[0];
    moves[2].name = format!("{NAME}000/below");
    repository
        .update_ref(&moves[0].name, Expected::Absent, Some(ids[0]), "")
        .unwrap();
    let error = repository.move_refs(&moves, "").unwrap_err();
    assert!(matches!(error, Error::NameTaken { .. }), "{error}");
    assert_eq!(repository.list_refs("refs/hangar/").unwrap().len(), 1);
    let none = repository.move_refs(&[], "").unwrap();
    assert!(none.elsewhere.is_empty() && none.locked.is_empty());
}

/// The git program holds the lock of one ref and moves it while a batch waits.
#[test]
fn a_ref_that_moves_under_a_batch_keeps_no_other_back() {
    let (sample, ids) = sample_with_blobs(3);
    let repository = sample.open();
    let moved = format!("{NAME}050");
    let batch = |expected, new| moves(100, expected, new);
    repository
        .move_refs(&batch(Expected::Absent, ids[0]), "")
        .unwrap();
    let lock = sample.dir().join(".git").join(format!("{moved}.lock"));
    sample.put(&format!(".git/{moved}.lock"), format!("{}\n", ids[2]));
    let note = sample.dir().join(".git/hangar/refs.held");
    thread::scope(|scope| {
        let update = scope.spawn(|| {
            let repository = sample.open();
            repository.move_refs(&batch(Expected::At(ids[0]), ids[1]), "")
        });
        // It has begun once it has noted its locks.
        while !note.exists() && !update.is_finished() {
            thread::yield_now();
        }
        fs::rename(&lock, sample.dir().join(".git").join(&moved)).unwrap();
        let lost = update.join().unwrap().unwrap().elsewhere;
        assert!(lost.len() == 1 && lost.contains(&moved), "{lost:?}");
    });
    for (name, id) in repository.list_refs("refs/hangar/").unwrap() {
        assert_eq!(id, if name == moved { ids[2] } else { ids[1] }, "{name}");
    }
    assert!(!note.exists());
}

/// Batches of several writers over the same refs: each ref is won by one of them each time.
#[test]
fn batches_that_meet_lose_no_update() {
    let (sample, ids) = sample_with_blobs(9);
    let dir = sample.dir();
    let all = |new| moves(40, Expected::Absent, new);
    let won: usize = thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer: usize| {
                let (dir, ids, all) = (&dir, &ids, &all);
                scope.spawn(move || {
                    let repository = Repository::discover(dir).unwrap();
                    let stayed = repository.move_refs(&all(ids[writer]), "").unwrap();
                    40 - stayed.elsewhere.len()
                })
            })
            .collect();
        writers.into_iter().map(|one| one.join().unwrap()).sum()
    });
    assert_eq!(won, 40);
    assert_eq!(sample.open().list_refs("refs/hangar/").unwrap().len(), 40);
}

/// Not a test by itself: the body of one process of the two tests below.
#[test]
fn writer_process() {
    let Some(dir) = std::env::var_os("HANGAR_TEST_WRITER") else {
        return;
    };
    let repository = Repository::discover(dir.as_ref()).unwrap();
    let head = repository.head().unwrap().unwrap();
    let tree = repository.read_commit(head).unwrap().tree;
    for step in 0..3 {
        loop {
            let seen = repository.read_ref(NAME).unwrap();
            let draft = hangar::git::CommitDraft {
                tree,
                parents: seen.into_iter().collect(),
                author_name: std::process::id().to_string(),
                author_email: String::new(),
                time_seconds: 0,
                message: format!("{}.{step}", std::process::id()),
            };
            let commit = repository.write_commit(&draft).unwrap();
            match repository.update_ref(NAME, seen.into(), Some(commit), "") {
                Ok(()) => break,
                Err(Error::Conflict { .. } | Error::Busy { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

fn writer(dir: &std::path::Path) -> Run {
    Run::new(std::env::current_exe().unwrap())
        .args(["--exact", "git::refs::writer_process"])
        .inherit(&["PATH"])
        .env("HANGAR_TEST_WRITER", dir)
}

#[test]
#[ignore = "heavy: starts twenty processes that sync to disk"]
fn twenty_processes_lose_no_update() {
    let (sample, _) = sample_with_blobs(0);
    let dir = sample.dir();
    thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| assert!(writer(&dir).output().unwrap().status.success()));
        }
    });
    assert_eq!(git(&dir, &["rev-list", "--count", NAME]), "60");
    super::fsck(&dir);
}

/// Writers are killed at any moment; the next one goes on, and nothing is half done.
#[test]
#[ignore = "heavy: starts and kills a hundred processes"]
fn killed_writers_leave_refs_whole_and_free() {
    let (sample, _) = sample_with_blobs(0);
    let dir = sample.dir();
    // Once with loose refs alone, once with some that are packed: then there are more locks.
    for packed in [false, true] {
        for round in 0_u64..100 {
            if packed {
                // It does not wait for what the last round left; hangar looks after that.
                super::git_run(&dir, &["pack-refs", "--all"])
                    .output()
                    .unwrap();
            }
            let time = std::time::Duration::from_micros(3000 + round * 400);
            // Timing out is being killed.
            let _ = writer(&dir).timeout(time).output();
        }
        let minute = std::time::Duration::from_secs(60);
        let last = writer(&dir).timeout(minute).output();
        assert!(last.is_ok_and(|out| out.status.success()), "it hangs");
        super::fsck(&dir);
        for lock in [&format!("{NAME}.lock"), "packed-refs.lock"] {
            assert!(!dir.join(".git").join(lock).exists(), "{lock} is left");
        }
    }
}

#[test]
fn only_lock_files_of_a_dead_writer_are_removed() {
    let (sample, ids) = sample_with_blobs(2);
    let repository = sample.open();
    repository
        .update_ref(NAME, Expected::Absent, Some(ids[0]), "")
        .unwrap();
    let lock = sample.dir().join(".git").join(format!("{NAME}.lock"));
    let note = sample.dir().join(".git/hangar/refs.held");
    assert!(!note.exists());
    // As a writer leaves it that died before its rename.
    sample.put(&format!(".git/{NAME}.lock"), format!("{}\n", ids[1]));
    sample.put(
        ".git/hangar/refs.held",
        format!("{} {}\n", ids[1], lock.display()),
    );
    repository
        .update_ref(NAME, Expected::At(ids[0]), Some(ids[1]), "")
        .unwrap();
    assert!(!note.exists() && !lock.exists());
    // The same note, but another file: somebody else's.
    sample.put(&format!(".git/{NAME}.lock"), "");
    sample.put(
        ".git/hangar/refs.held",
        format!("{} {}\n", ids[1], lock.display()),
    );
    let before = fs::metadata(&lock).unwrap().ino();
    thread::scope(|scope| {
        let update = scope.spawn(|| {
            let repository = sample.open();
            repository.update_ref(NAME, Expected::At(ids[1]), Some(ids[0]), "")
        });
        thread::sleep(std::time::Duration::from_millis(100));
        assert_eq!(fs::metadata(&lock).unwrap().ino(), before);
        fs::remove_file(&lock).unwrap();
        update.join().unwrap().unwrap();
    });
}

#[test]
#[ignore = "heavy: waits until patience ends"]
fn a_lock_that_stays_is_named() {
    let (sample, ids) = sample_with_blobs(1);
    sample.put(&format!(".git/{NAME}.lock"), "");
    let error = sample
        .open()
        .update_ref(NAME, Expected::Absent, Some(ids[0]), "")
        .unwrap_err();
    assert!(matches!(&error, Error::Busy { .. }), "{error}");
    assert!(error.to_string().contains("abc.lock"), "{error}");
    fs::remove_file(sample.dir().join(format!(".git/{NAME}.lock"))).unwrap();
    sample.put(".git/packed-refs", "# pack-refs with: peeled \n");
    sample.put(".git/packed-refs.lock", "");
    let error = sample
        .open()
        .update_ref(NAME, Expected::Absent, Some(ids[0]), "")
        .unwrap_err();
    assert!(error.to_string().contains("packed-refs.lock"), "{error}");
}
