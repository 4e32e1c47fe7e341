use super::{Sample, fsck, git, git_run, trees::awkward};
use hangar::model::object_id::ObjectId;
use std::fs;
use std::num::NonZeroU32;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

fn has(dir: &Path, id: ObjectId) -> bool {
    git_run(dir, &["cat-file", "-e", &id.to_string()])
        .output()
        .unwrap()
        .status
        .success()
}

fn count_objects(dir: &Path) -> usize {
    let list = git(dir, &["cat-file", "--batch-all-objects", "--batch-check"]);
    list.lines().count()
}

#[test]
fn a_pinned_repository_is_clean_and_holds_nothing_else() {
    for args in [&[][..], &["--object-format=sha256"]] {
        let sample = Sample::init(args);
        let first = sample.put("old", "x").commit();
        let base = awkward(&sample);
        sample.put("future", "the answer").git(&["add", "future"]);
        sample.git(&["commit", "-q", "-m", "later"]);
        let future: ObjectId = sample.git(&["rev-parse", "HEAD"]).parse().unwrap();
        let hidden = sample.blob("hidden test");
        sample.git(&["update-ref", "refs/hangar/sealed/a", &hidden.to_string()]);
        sample.git(&["tag", "v1", &future.to_string()]);
        let repository = sample.open();
        let dest = sample.root().join("agent's clone");
        repository.make_pinned(base, &dest, None, None).unwrap();

        assert_eq!(git(&dest, &["status", "--porcelain"]), "");
        assert_eq!(git(&dest, &["rev-parse", "HEAD"]), base.to_string());
        assert_eq!(git(&dest, &["branch", "--show-current"]), "work");
        assert_eq!(
            git(&dest, &["for-each-ref", "--format=%(refname)"]),
            "refs/heads/work"
        );
        assert_eq!(git(&dest, &["remote"]), "");
        assert_eq!(git(&dest, &["reflog"]), "");
        fsck(&dest);
        assert!(has(&dest, first) && has(&dest, base));
        assert!(!has(&dest, future) && !has(&dest, hidden));
        let reachable = git(&dest, &["rev-list", "--objects", "HEAD"])
            .lines()
            .count();
        assert_eq!(count_objects(&dest), reachable);
        for absent in [
            "objects/info/alternates",
            "hooks",
            "packed-refs",
            "logs",
            "shallow",
        ] {
            assert!(!dest.join(".git").join(absent).exists(), "{absent}");
        }
        for entry in fs::read_dir(dest.join(".git/objects/pack")).unwrap() {
            assert_eq!(entry.unwrap().metadata().unwrap().nlink(), 1);
        }
        // An agent can work in it as in any other.
        super::put(&dest, "unix.txt", "changed\n");
        assert_eq!(git(&dest, &["status", "--porcelain"]), " M unix.txt");
        git(&dest, &["commit", "-qam", "work"]);
        fsck(&dest);
        // Nothing of that came back.
        assert_eq!(sample.git(&["rev-parse", "HEAD"]), future.to_string());
    }
}

#[test]
fn the_second_one_uses_the_same_pack() {
    let sample = Sample::new();
    let base = sample.put("a", "x").commit();
    let repository = sample.open();
    let first = repository.pinned_pack(base, None).unwrap();
    let made = fs::metadata(&first.pack).unwrap().ino();
    let second = repository.pinned_pack(base, None).unwrap();
    assert_eq!(first, second);
    assert_eq!(fs::metadata(&second.pack).unwrap().ino(), made);
    // Half of an entry is none.
    fs::remove_file(&first.index).unwrap();
    repository
        .make_pinned(base, &sample.root().join("one"), None, None)
        .unwrap();
    fsck(&sample.root().join("one"));
}

#[test]
fn the_cache_stays_small() {
    let sample = Sample::new();
    for n in 0..11 {
        let base = sample.put("a", n.to_string()).commit();
        sample.open().pinned_pack(base, None).unwrap();
    }
    let pins = sample.dir().join(".git/hangar/pins");
    let packs = fs::read_dir(pins)
        .unwrap()
        .filter(|entry| {
            entry
                .as_ref()
                .unwrap()
                .path()
                .extension()
                .is_some_and(|e| e == "pack")
        })
        .count();
    assert_eq!(packs, 8);
}

#[test]
fn history_can_be_cut() {
    let sample = Sample::new();
    let commits: Vec<_> = (0..5)
        .map(|n| sample.put("a", n.to_string()).commit())
        .collect();
    let dest = sample.root().join("cut");
    let depth = NonZeroU32::new(2);
    sample
        .open()
        .make_pinned(commits[4], &dest, depth, None)
        .unwrap();
    assert_eq!(git(&dest, &["rev-list", "--count", "HEAD"]), "2");
    assert!(has(&dest, commits[3]) && !has(&dest, commits[2]));
    assert_eq!(git(&dest, &["status", "--porcelain"]), "");
    fsck(&dest);
    // Deeper than there is history: all of it.
    let all = sample.root().join("all");
    sample
        .open()
        .make_pinned(commits[4], &all, NonZeroU32::new(99), None)
        .unwrap();
    assert_eq!(git(&all, &["rev-list", "--count", "HEAD"]), "5");
    assert!(!all.join(".git/shallow").exists());
}

#[test]
fn a_shallow_clone_can_be_pinned() {
    let sample = Sample::new();
    sample.put("a", "1").commit();
    let base = sample.put("a", "2").commit();
    let url = format!("file://{}", sample.dir().display());
    git(
        sample.root(),
        &["clone", "-q", "--depth=1", &url, "shallow"],
    );
    let shallow = hangar::git::Repository::discover(&sample.root().join("shallow")).unwrap();
    let dest = sample.root().join("pinned");
    shallow.make_pinned(base, &dest, None, None).unwrap();
    assert_eq!(git(&dest, &["rev-list", "--count", "HEAD"]), "1");
    fsck(&dest);
}

#[test]
fn linked_work_trees_and_bare_repositories_can_be_pinned() {
    let sample = Sample::new();
    let base = sample.put("a", "1").commit();
    sample.git(&["worktree", "add", "-q", "../linked"]);
    sample.git(&["clone", "-q", "--bare", ".", "../bare.git"]);
    for name in ["linked", "bare.git"] {
        let repository = hangar::git::Repository::discover(&sample.root().join(name)).unwrap();
        let dest = sample.root().join(format!("from {name}"));
        repository.make_pinned(base, &dest, None, None).unwrap();
        assert_eq!(git(&dest, &["status", "--porcelain"]), "");
    }
    assert!(sample.dir().join(".git/hangar/pins").is_dir());
}

#[test]
fn the_agent_owns_its_repository() {
    let sample = Sample::new();
    let base = sample.put("a/b", "1").commit();
    let dest = sample.root().join("owned");
    // Only root can give files away.
    let probe = sample.folder("probe");
    if std::os::unix::fs::chown(&probe, Some(12345), Some(54321)).is_err() {
        return;
    }
    sample
        .open()
        .make_pinned(base, &dest, None, Some((12345, 54321)))
        .unwrap();
    for path in [
        "",
        "a/b",
        ".git",
        ".git/index",
        ".git/objects/pack",
        ".git/refs/heads/work",
    ] {
        let meta = fs::metadata(dest.join(path)).unwrap();
        assert_eq!((meta.uid(), meta.gid()), (12345, 54321), "{path}");
    }
}
