use super::{Sample, git_run, make_executable};
use hangar::git::{Error, PathFault};
use hangar::model::object_id::ObjectId;
use std::os::unix::fs::symlink;

/// A base, a changed result, and git's patch between them.
fn change(
    fill: impl FnOnce(&Sample),
    edit: impl FnOnce(&Sample),
) -> (Sample, ObjectId, ObjectId, Vec<u8>) {
    let sample = Sample::new();
    fill(&sample);
    sample.commit();
    let base = sample.tree();
    edit(&sample);
    sample.commit();
    let result = sample.tree();
    let args = ["diff", "--binary", "-M", "HEAD~1", "HEAD"];
    let patch = git_run(&sample.dir(), &args).output().unwrap().stdout;
    (sample, base, result, patch)
}

#[track_caller]
fn is_gitlink(error: &Error) {
    let fault = PathFault::Gitlink;
    assert!(
        matches!(error, Error::Path { fault: found, .. } if *found == fault),
        "{error}"
    );
}

#[test]
fn a_patch_of_git_gives_the_tree_of_git() {
    let (sample, base, result, patch) = change(
        |s| {
            s.put("edit", "a\nb\nc\n")
                .put("gone", "x")
                .put("bin", [0, 1, 2, 3])
                .put("old name", "1\n2\n3\n4\n");
            s.put("mode", "x").put("dos", "a\r\nb\r\n");
        },
        |s| {
            s.put("edit", "a\nB\nc\n")
                .put("bin", [9, 0, 9])
                .put("new/bin", [0; 100])
                .put("dos", "a\r\nc\r\n");
            s.git(&["mv", "old name", "new name"]);
            s.git(&["rm", "-q", "gone"]);
            make_executable(&s.dir().join("mode"));
            symlink("edit", s.dir().join("link")).unwrap();
        },
    );
    let repository = sample.open();
    let applied = repository.apply_patch(base, &patch).unwrap();
    assert_eq!((applied.tree, applied.empty), (result, false));
    // Our own text of the same change does the same, and does not depend on the user's settings.
    sample.git(&["config", "diff.noprefix", "true"]);
    sample.git(&["config", "diff.external", "false"]);
    sample.git(&["config", "core.autocrlf", "true"]);
    let text = repository.diff_text(base, result).unwrap();
    assert_eq!(repository.apply_patch(base, &text).unwrap().tree, result);
    assert_eq!(repository.diff_text(base, base).unwrap(), b"");
    let back = repository.diff_text(result, base).unwrap();
    assert_eq!(repository.apply_patch(result, &back).unwrap().tree, base);
    // The user's index and work tree were left alone.
    assert_eq!(sample.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_sha256_repository_takes_patches_too() {
    let sample = Sample::init(&["--object-format=sha256"]);
    sample.put("a", "1\n").commit();
    let base = sample.tree();
    sample.put("a", "2\n").put("b", [0, 1]).commit();
    let repository = sample.open();
    let text = repository.diff_text(base, sample.tree()).unwrap();
    assert_eq!(
        repository.apply_patch(base, &text).unwrap().tree,
        sample.tree()
    );
}

#[test]
fn nothing_is_nothing() {
    let sample = Sample::new();
    sample.put("a", "x").commit();
    let repository = sample.open();
    for patch in [&b""[..], b"\n \n"] {
        let applied = repository.apply_patch(sample.tree(), patch).unwrap();
        assert_eq!((applied.tree, applied.empty), (sample.tree(), true));
    }
    assert!(
        repository
            .apply_patch(sample.tree(), b"not a patch")
            .is_err()
    );
}

#[test]
fn a_patch_for_another_base_names_the_file() {
    let (sample, base, _, patch) = change(
        |s| {
            s.put("a/b.txt", "one\ntwo\nthree\n");
        },
        |s| {
            s.put("a/b.txt", "one\n2\nthree\n");
        },
    );
    sample.put("a/b.txt", "entirely\ndifferent\n").commit();
    let repository = sample.open();
    let error = repository.apply_patch(sample.tree(), &patch).unwrap_err();
    let named =
        matches!(&error, Error::PatchDoesNotApply { path: Some(path), .. } if path == "a/b.txt");
    assert!(named, "{error}");
    repository.apply_patch(base, &patch).unwrap();
}

fn new_file(path: &str, mode: &str, line: &str) -> Vec<u8> {
    format!(
        "diff --git a/{path} b/{path}\nnew file mode {mode}\nindex 0000000..1111111\n\
         --- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+{line}\n"
    )
    .into_bytes()
}

#[test]
fn hostile_patches_are_refused() {
    let sample = Sample::new();
    sample.put("README", "x").put("src/a", "y").commit();
    let repository = sample.open();
    let base = sample.tree();
    for path in [
        "../x",
        "/etc/x",
        ".git/hooks/pre-commit",
        "a/.git/config",
        ".GIT/config",
        "a/.git./b",
        "git~1/config",
        ".g\u{200c}it/x",
        "readme",
        "SRC/b",
        "src/a/b",
    ] {
        let error = repository.apply_patch(base, &new_file(path, "100644", "x"));
        assert!(error.is_err(), "{path}");
    }
    let long = "n".repeat(256);
    assert!(
        repository
            .apply_patch(base, &new_file(&long, "100644", "x"))
            .is_err()
    );
    let gitlink = new_file(
        "sub",
        "160000",
        &format!("Subproject commit {}", "1".repeat(40)),
    );
    let error = repository.apply_patch(base, &gitlink).unwrap_err();
    is_gitlink(&error);
    let through = [
        new_file("link", "120000", "/tmp"),
        new_file("link/x", "100644", "x"),
    ]
    .concat();
    assert!(repository.apply_patch(base, &through).is_err());
    assert!(
        repository
            .apply_patch(base, &new_file(".gitmodules", "120000", "x"))
            .is_err()
    );
    // The honest control.
    repository
        .apply_patch(base, &new_file("src/b", "100644", "x"))
        .unwrap();
    repository
        .apply_patch(base, &new_file(".gitmodules", "100644", "x"))
        .unwrap();
}

#[test]
fn a_change_of_submodules_is_refused_whatever_its_form() {
    let sample = Sample::new();
    let one = sample.put("a", "x").commit();
    let blob = sample.blob("x");
    let with = |commit: ObjectId| {
        sample.mktree(&format!(
            "100644 blob {blob}\ta\n160000 commit {commit}\tsub\n"
        ))
    };
    let other: ObjectId = "2".repeat(40).parse().unwrap();
    let (plain, first, second) = (sample.tree(), with(one), with(other));
    let file = sample.mktree(&format!("100644 blob {blob}\ta\n100644 blob {blob}\tsub\n"));
    let repository = sample.open();
    for (base, result) in [
        (plain, first),
        (first, plain),
        (first, second),
        (first, file),
        (file, first),
    ] {
        let error = repository.check_change(base, result).unwrap_err();
        is_gitlink(&error);
    }
    repository.check_change(first, first).unwrap();
    let more = sample.mktree(&format!(
        "100644 blob {blob}\ta\n100644 blob {blob}\tb\n160000 commit {one}\tsub\n"
    ));
    repository.check_change(first, more).unwrap();
}

#[test]
fn a_base_with_collisions_of_its_own_can_be_patched() {
    let sample = Sample::new();
    let blob = sample.blob("x");
    let lines = format!("100644 blob {blob}\tNAME\n100644 blob {blob}\tname\n");
    let base = sample.mktree(&lines);
    let result = sample.mktree(&format!("{lines}100644 blob {blob}\tother\n"));
    sample.open().check_change(base, result).unwrap();
    let worse = sample.mktree(&format!("{lines}100644 blob {blob}\tNaMe\n"));
    assert!(sample.open().check_change(base, worse).is_err());
}

#[test]
fn a_damaged_patch_is_an_error_or_a_safe_tree() {
    let (sample, base, result, patch) = change(
        |s| {
            s.put("a", "1\n2\n3\n").put("dir/b", [0, 1, 2, 3, 4]);
        },
        |s| {
            s.put("a", "1\nX\n3\n")
                .put("dir/b", [9; 64])
                .put("c", "new\n");
        },
    );
    let repository = sample.open();
    assert_eq!(repository.apply_patch(base, &patch).unwrap().tree, result);
    let config = proptest::test_runner::Config::with_cases(24);
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let bytes = proptest::sample::select(b"/.\0\n +-@0169agit".to_vec());
    let edits = proptest::collection::vec((0..patch.len(), bytes), 1..4);
    runner
        .run(&edits, |edits| {
            let mut damaged = patch.clone();
            for (at, byte) in edits {
                damaged[at] = byte;
            }
            if let Ok(applied) = repository.apply_patch(base, &damaged) {
                repository.check_change(base, applied.tree).unwrap();
                repository.listing(applied.tree).unwrap();
            }
            Ok(())
        })
        .unwrap();
}
