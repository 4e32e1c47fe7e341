use super::Sample;
use hangar::git::{Error, PathFault};
use hangar::model::digest::Digest;
use hangar::model::listing::Mode;
use hangar::model::object_id::ObjectId;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

/// A base with everything that a filter, an attribute or a locale could touch.
pub(super) fn awkward(sample: &Sample) -> ObjectId {
    sample
        .put(
            ".gitattributes",
            "*.txt text eol=crlf\n*.id ident\n*.lfs filter=evil diff=evil\n\
             secret.txt export-ignore\n*.utf16 working-tree-encoding=UTF-16\n",
        )
        .put("unix.txt", "a\nb\n")
        .put("dos.txt", "a\r\nb\r\n")
        .put("stamp.id", "$Id$ and $Id: old $\n")
        .put(
            "big.lfs",
            "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
        )
        .put("secret.txt", "left out of archives")
        .put("page.utf16", "plain utf-8")
        .put("bin", [0, 159, 146, 150, 0])
        .put("dir.d/a", "x")
        .put("dir/a", "x")
        .put("dir-b", "x")
        .put("caf\u{e9}/\u{fc}", "x")
        .put("run", "#!/bin/sh\n");
    super::make_executable(&sample.dir().join("run"));
    symlink("/etc/passwd", sample.dir().join("outside")).unwrap();
    symlink("dir", sample.dir().join("inside")).unwrap();
    // The index must take the bytes as they are, which `add` would not.
    sample.put(
        ".git/info/attributes",
        "* -text -ident -filter -working-tree-encoding\n",
    );
    let commit = sample.commit();
    fs::remove_file(sample.dir().join(".git/info/attributes")).unwrap();
    commit
}

#[test]
fn a_listing_is_the_stored_bytes_that_git_shows() {
    for args in [&[][..], &["--object-format=sha256"]] {
        let sample = Sample::init(args);
        awkward(&sample);
        sample.git(&["config", "core.autocrlf", "true"]);
        sample.git(&["config", "filter.evil.smudge", "echo changed"]);
        let files = sample.open().listing(sample.tree()).unwrap();
        assert!(files.gitlinks.is_empty());
        let listed = sample.git(&[
            "-c",
            "core.quotePath=false",
            "ls-tree",
            "-r",
            "--long",
            "HEAD",
        ]);
        assert_eq!(files.listing.len(), listed.lines().count());
        for line in listed.lines() {
            let (meta, path) = line.split_once('\t').unwrap();
            let fields: Vec<_> = meta.split_whitespace().collect();
            let entry = files.listing.get(path.as_bytes()).unwrap();
            assert_eq!(entry.mode.octal(), fields[0], "{path}");
            assert_eq!(entry.len.to_string(), fields[3], "{path}");
            let bytes = super::git_run(&sample.dir(), &["cat-file", "blob", fields[2]])
                .output()
                .unwrap();
            assert_eq!(entry.sha256, Digest::of(&bytes.stdout), "{path}");
        }
    }
}

#[test]
fn files_are_written_as_they_are_stored() {
    let sample = Sample::new();
    awkward(&sample);
    let canary = sample.root().join("canary");
    let command = format!("touch '{}'; cat", canary.display());
    sample.git(&["config", "core.autocrlf", "true"]);
    sample.git(&["config", "filter.evil.smudge", &command]);
    sample.put(
        ".git/hooks/post-checkout",
        format!("#!/bin/sh\n{command}\n"),
    );
    super::make_executable(&sample.dir().join(".git/hooks/post-checkout"));
    let out = sample.folder("out dir");
    let repository = sample.open();
    let done = repository.materialise(sample.tree(), &out, None).unwrap();
    let listing = repository.listing(sample.tree()).unwrap().listing;
    assert_eq!(done.files, listing.len());
    for (path, entry) in listing.iter() {
        let at = out.join(std::str::from_utf8(path).unwrap());
        let meta = fs::symlink_metadata(&at).unwrap();
        if entry.mode == Mode::Symlink {
            let target = fs::read_link(&at).unwrap();
            assert_eq!(
                Digest::of(target.to_str().unwrap().as_bytes()),
                entry.sha256
            );
        } else {
            let mode = if entry.mode == Mode::Executable {
                0o755
            } else {
                0o644
            };
            assert_eq!(meta.permissions().mode() & 0o7777, mode, "{}", at.display());
            assert_eq!(Digest::of(&fs::read(&at).unwrap()), entry.sha256);
        }
    }
    assert!(!canary.exists());
    assert!(!out.join(".git").exists());
    let again = repository.materialise(sample.tree(), &out, None);
    assert!(
        matches!(again, Err(Error::Invalid { .. })),
        "not empty any more"
    );
    let link = sample.root().join("link");
    symlink(sample.folder("empty"), &link).unwrap();
    assert!(repository.materialise(sample.tree(), &link, None).is_err());
}

#[test]
fn everything_is_given_to_the_owner() {
    let sample = Sample::new();
    awkward(&sample);
    let out = sample.folder("out");
    // Only root can give files away.
    if std::os::unix::fs::chown(&out, Some(12345), Some(54321)).is_err() {
        return;
    }
    let owner = Some((12345, 54321));
    sample
        .open()
        .materialise(sample.tree(), &out, owner)
        .unwrap();
    let mut todo = vec![out];
    while let Some(path) = todo.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        assert_eq!(
            (meta.uid(), meta.gid()),
            (12345, 54321),
            "{}",
            path.display()
        );
        if meta.is_dir() {
            todo.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
    }
}

fn refused(lines: impl Fn(&str) -> String) -> (Error, bool) {
    let sample = Sample::new();
    let blob = sample.blob("x").to_string();
    let tree = sample.mktree(&lines(&blob));
    let out = sample.folder("out");
    let error = sample.open().materialise(tree, &out, None).unwrap_err();
    let touched = fs::read_dir(&out).unwrap().next().is_some();
    (error, touched)
}

#[test]
fn hostile_paths_are_refused_before_anything_is_written() {
    let long = "n".repeat(256);
    for (name, fault) in [
        ("..", PathFault::NotRelative),
        (".", PathFault::NotRelative),
        (".git", PathFault::DotGit),
        (".GIT", PathFault::DotGit),
        ("git~1", PathFault::DotGit),
        (".g\u{200c}it", PathFault::DotGit),
        (long.as_str(), PathFault::TooLong),
    ] {
        let (error, touched) =
            refused(|blob| format!("100644 blob {blob}\taaa\n100644 blob {blob}\t{name}\n"));
        let found = matches!(&error, Error::Path { fault: found, .. } if *found == fault);
        assert!(found && !touched, "{name}: {error}");
    }
    let (error, _) = refused(|blob| format!("120000 blob {blob}\t.gitmodules\n"));
    assert!(
        matches!(
            error,
            Error::Path {
                fault: PathFault::SpecialLink,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn names_that_would_fall_together_are_refused_and_both_are_named() {
    for (one, other) in [
        ("README", "readme"),
        ("caf\u{e9}", "cafe\u{301}"),
        ("stra\u{df}e", "STRASSE"),
    ] {
        let (error, touched) =
            refused(|blob| format!("100644 blob {blob}\t{one}\n100644 blob {blob}\t{other}\n"));
        let text = error.to_string();
        assert!(
            text.contains(one) && text.contains(other) && !touched,
            "{text}"
        );
    }
}

#[test]
fn a_link_and_a_folder_of_one_name_cannot_lead_outside() {
    let sample = Sample::new();
    let outside = sample.folder("outside");
    let target = sample.blob(outside.to_str().unwrap());
    let blob = sample.blob("x");
    let sub = sample.mktree(&format!("100644 blob {blob}\tescaped\n"));
    let lines = format!("120000 blob {target}\ta\n040000 tree {sub}\ta\n");
    let tree = sample.mktree(&lines);
    let out = sample.folder("out");
    let error = sample.open().materialise(tree, &out, None);
    assert!(error.is_err());
    assert!(!outside.join("escaped").exists());
}

#[test]
fn submodules_are_empty_folders_and_apart() {
    let sample = Sample::new();
    let inner = Sample::new();
    let commit = inner.put("code", "x").commit();
    sample.git(&[
        "submodule",
        "add",
        "-q",
        inner.dir().to_str().unwrap(),
        "lib/inner",
    ]);
    sample.put("a", "x").commit();
    let repository = sample.open();
    let files = repository.listing(sample.tree()).unwrap();
    assert_eq!(files.gitlinks.len(), 1);
    assert_eq!(files.gitlinks[0].path, b"lib/inner");
    assert_eq!(files.gitlinks[0].commit, commit);
    assert_eq!(files.listing.len(), 2, "a and .gitmodules");
    let out = sample.folder("out");
    let done = repository.materialise(sample.tree(), &out, None).unwrap();
    assert_eq!(done.gitlinks, 1);
    assert_eq!(fs::read_dir(out.join("lib/inner")).unwrap().count(), 0);
}

#[test]
#[ignore = "heavy: walks up to the limit"]
fn a_tree_that_holds_itself_many_times_ends() {
    let sample = Sample::new();
    let blob = sample.blob("x");
    let mut tree = sample.mktree(&format!("100644 blob {blob}\tf\n"));
    for _ in 0..12 {
        let lines: Vec<_> = (0..16)
            .map(|n| {
                format!(
                    "040000 tree {tree}	d{n:02}
"
                )
            })
            .collect();
        tree = sample.mktree(&lines.concat());
    }
    let error = sample.open().listing(tree).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
}

#[test]
fn a_tree_that_is_too_deep_ends() {
    let sample = Sample::new();
    let blob = sample.blob("x");
    let mut deep = sample.mktree(&format!("100644 blob {blob}\tf\n"));
    for _ in 0..200 {
        deep = sample.mktree(&format!("040000 tree {deep}\td\n"));
    }
    let error = sample.open().listing(deep).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Path {
                fault: PathFault::TooDeep,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn written_trees_are_those_of_git() {
    let sample = Sample::new();
    sample
        .put("a/b/c", "1")
        .put("a.b", "2")
        .put("a-b", "3")
        .put("run", "4");
    super::make_executable(&sample.dir().join("run"));
    sample.commit();
    let repository = sample.open();
    let tree = repository
        .write_files([
            ("run", true, &b"4"[..]),
            ("a-b", false, b"3"),
            ("a.b", false, b"2"),
            ("a/b/c", false, b"1"),
        ])
        .unwrap();
    assert_eq!(tree, sample.tree());
    let clash = repository.write_files([("a", false, &b"1"[..]), ("a/b", false, b"2")]);
    assert!(clash.is_err());
}
