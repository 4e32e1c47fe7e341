use super::{Sample, fsck, git, git_run};
use hangar::git::{CommitDraft, EntryKind, Error, TreeEntry};
use hangar::model::object_id::ObjectId;
use std::fs;

fn draft(tree: ObjectId, parents: &[ObjectId]) -> CommitDraft {
    CommitDraft {
        tree,
        parents: parents.to_vec(),
        author_name: "A".into(),
        author_email: "a@example.org".into(),
        time_seconds: 1_700_000_000,
        message: "a change\n\nwith a body\n".into(),
    }
}

#[test]
fn objects_are_byte_for_byte_those_of_git() {
    for args in [&[][..], &["--object-format=sha256"]] {
        let sample = Sample::init(args);
        sample.put("b.txt", "two").put("b/x", "one").commit();
        let repository = sample.open();
        let one = repository.write_blob(b"one").unwrap();
        let two = repository.write_blob(b"two").unwrap();
        let entry = |name: &str, kind, id| TreeEntry {
            name: name.into(),
            kind,
            id,
        };
        let sub = repository
            .write_tree(&[entry("x", EntryKind::Blob, one)])
            .unwrap();
        // Given unsorted; Git sorts a folder as if its name ended with a slash.
        let entries = [
            entry("b", EntryKind::Tree, sub),
            entry("b.txt", EntryKind::Blob, two),
        ];
        let tree = repository.write_tree(&entries).unwrap();
        assert_eq!(tree, sample.tree());
        let commit = repository.write_commit(&draft(tree, &[])).unwrap();
        let theirs = git_run(
            &sample.dir(),
            &["commit-tree", &tree.to_string(), "-F", "-"],
        )
        .stdin(b"a change\n\nwith a body\n".to_vec())
        .output()
        .unwrap();
        assert_eq!(
            String::from_utf8_lossy(&theirs.stdout).trim(),
            commit.to_string()
        );
        repository
            .update_ref("refs/hangar/a", None.into(), Some(commit), "")
            .unwrap();
        fsck(&sample.dir());
        let read = repository.read_commit(commit).unwrap();
        assert_eq!((read.tree, read.parents.len()), (tree, 0));
        assert_eq!(read.message, b"a change\n\nwith a body\n");
        assert_eq!(
            repository.read_tree(tree).unwrap(),
            [entries[1].clone(), entries[0].clone()]
        );
    }
}

#[test]
fn author_fields_cannot_smuggle_header_lines() {
    let sample = Sample::new();
    let base = sample.put("a", "x").commit();
    let repository = sample.open();
    let mut hostile = draft(sample.tree(), &[base]);
    hostile.author_name = "Eve <e@x> 1 +0000\nparent abc\0".into();
    hostile.author_email = "e>\n@x".into();
    let commit = repository.write_commit(&hostile).unwrap();
    assert_eq!(repository.read_commit(commit).unwrap().parents, [base]);
    repository
        .update_ref("refs/hangar/a", None.into(), Some(commit), "")
        .unwrap();
    fsck(&sample.dir());
}

#[test]
fn trees_refuse_bad_names_and_doubles() {
    let sample = Sample::new();
    let repository = sample.open();
    let id = repository.write_blob(b"x").unwrap();
    let entry = |name: &str| TreeEntry {
        name: name.into(),
        kind: EntryKind::Blob,
        id,
    };
    for names in [
        &["a/b"][..],
        &[""],
        &[".."],
        &[".git"],
        &[".GIT"],
        &["a", "a"],
    ] {
        let entries: Vec<_> = names.iter().map(|name| entry(name)).collect();
        assert!(repository.write_tree(&entries).is_err(), "{names:?}");
    }
}

#[test]
fn reads_have_a_limit_and_do_not_follow_links() {
    let sample = Sample::new();
    sample
        .put("hangar.toml", "format = 1\n")
        .put("dir/file", "deep");
    std::os::unix::fs::symlink("hangar.toml", sample.dir().join("link")).unwrap();
    let commit = sample.commit();
    let repository = sample.open();
    let read = |path, limit| repository.blob_at(commit, path, limit);
    assert_eq!(
        read("hangar.toml", 100).unwrap().as_deref(),
        Some(&b"format = 1\n"[..])
    );
    assert_eq!(
        read("dir/file", 100).unwrap().as_deref(),
        Some(&b"deep"[..])
    );
    assert_eq!(read("dir/none", 100).unwrap(), None);
    assert_eq!(read("none/file", 100).unwrap(), None);
    assert_eq!(read("hangar.toml/x", 100).unwrap(), None);
    assert!(matches!(
        read("hangar.toml", 5),
        Err(Error::TooLarge { .. })
    ));
    assert!(matches!(read("link", 100), Err(Error::Invalid { .. })));
    assert!(matches!(read("dir", 100), Err(Error::Invalid { .. })));
    let nothing = "0123456789".repeat(4).parse().unwrap();
    assert!(matches!(
        repository.read_blob(nothing, 1),
        Err(Error::Gone { .. })
    ));
    let other_format = "01".repeat(32).parse().unwrap();
    assert!(matches!(
        repository.read_blob(other_format, 1),
        Err(Error::Gone { .. })
    ));
    assert!(repository.read_commit(sample.tree()).is_err());
}

#[test]
fn replacement_objects_are_not_followed() {
    let sample = Sample::new();
    let honest = sample.put("a", "honest").commit();
    let blob = sample.git(&["rev-parse", "HEAD:a"]);
    let forged = sample.blob("forged");
    sample.git(&["replace", &blob, &forged.to_string()]);
    let shown = sample.git(&["cat-file", "blob", &blob]);
    assert_eq!(shown, "forged", "the control: git itself follows it");
    let repository = sample.open();
    let read = repository.blob_at(honest, "a", 100).unwrap();
    assert_eq!(read.as_deref(), Some(&b"honest"[..]));
    let listing = repository.listing(sample.tree()).unwrap().listing;
    let entry = listing.get(b"a").unwrap();
    assert_eq!(entry.len, 6);
}

#[test]
fn gc_keeps_what_a_hangar_ref_reaches() {
    let sample = Sample::new();
    sample.put("a", "x").commit();
    let repository = sample.open();
    let tree = repository
        .write_files([("event.toml", false, &b"x = 1\n"[..])])
        .unwrap();
    let commit = repository.write_commit(&draft(tree, &[])).unwrap();
    repository
        .update_ref("refs/hangar/tasks/a", None.into(), Some(commit), "")
        .unwrap();
    let lost = repository.write_blob(b"reached by nothing").unwrap();
    sample.git(&["reflog", "expire", "--expire=now", "--all"]);
    sample.git(&["gc", "-q", "--prune=now"]);
    let repository = sample.open();
    assert_eq!(
        repository.read_ref("refs/hangar/tasks/a").unwrap(),
        Some(commit)
    );
    let read = repository.blob_at(commit, "event.toml", 100).unwrap();
    assert_eq!(read.as_deref(), Some(&b"x = 1\n"[..]));
    assert!(!repository.has_object(lost));
    // Written again, an old orphan is as safe as a new one.
    let old = repository.write_blob(b"an orphan").unwrap();
    let hex = old.to_string();
    let path = sample
        .dir()
        .join(".git/objects")
        .join(&hex[..2])
        .join(&hex[2..]);
    let long_ago = std::time::SystemTime::UNIX_EPOCH;
    let file = std::fs::File::open(path).unwrap();
    file.set_modified(long_ago).unwrap();
    repository.write_blob(b"an orphan").unwrap();
    sample.git(&["prune", "--expire=1.hour.ago"]);
    assert!(sample.open().has_object(old));
    // Packed objects need no sync of ours, and asking for it is no error.
    repository.sync_objects(&[commit, tree, lost]).unwrap();
    let many: Vec<_> = (0..40)
        .map(|n| repository.write_blob(format!("{n}").as_bytes()).unwrap())
        .collect();
    repository.sync_objects(&many).unwrap();
    git(&sample.dir(), &["cat-file", "-e", &many[39].to_string()]);
}

#[test]
fn an_object_says_the_same_of_itself_however_it_lies() {
    let sample = Sample::init(&[]);
    sample.put("a", "one").commit();
    let repository = sample.open();
    let write = |content: &[u8]| repository.write_blob(content).unwrap();
    let (small, other) = (write(b"small"), write(b"other"));
    let large = write(&vec![7; 300_000]);
    let ask = |after: ObjectId| {
        let fresh = sample.open();
        // What is looked up first tells where to look next.
        fresh.read_blob(after, 1 << 20).unwrap();
        let read = |id, limit| {
            fresh
                .read_blob(id, limit)
                .map_err(|error| error.to_string())
        };
        let wrong = fresh.read_commit(small).unwrap_err().to_string();
        let missing = fresh.read_blob("12".repeat(20).parse().unwrap(), 9);
        (
            (read(small, 5), read(small, 4), wrong),
            (
                read(large, 1 << 20),
                read(large, 4),
                missing.unwrap_err().to_string(),
            ),
        )
    };
    let loose = ask(other);
    assert_eq!(loose.0.0.as_deref(), Ok(&b"small"[..]));
    assert_eq!(loose.1.0.as_ref().map(Vec::len), Ok(300_000));
    // A damaged file is read as nothing, and named.
    let hex = small.to_string();
    let path = sample
        .dir()
        .join(".git/objects")
        .join(&hex[..2])
        .join(&hex[2..]);
    let whole = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let fresh = sample.open();
    fresh.read_blob(other, 9).unwrap();
    assert!(fresh.read_blob(small, 9).is_err());
    fs::write(&path, whole).unwrap();

    for id in [small, other, large] {
        sample.git(&["update-ref", &format!("refs/kept/{id}"), &id.to_string()]);
    }
    sample.git(&["repack", "-a", "-d", "-q"]);
    assert!(!fs::exists(&path).unwrap());
    assert_eq!(ask(other), loose);
}
