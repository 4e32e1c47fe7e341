use super::{Sample, git};
use hangar::git::{Error, ObjectFormat, Repository, program};
use std::fs;

#[test]
fn a_subfolder_a_linked_work_tree_and_a_bare_repository_share_their_state() {
    let sample = Sample::new();
    let commit = sample.put("src/deep/file", "x").commit();
    let name = "refs/hangar/tasks/a";
    let main = Repository::discover(&sample.dir().join("src/deep")).unwrap();
    assert_eq!(
        main.work_tree(),
        Some(sample.dir().canonicalize().unwrap().as_path())
    );
    assert_eq!(main.head().unwrap(), Some(commit));
    assert_eq!(main.head_branch().unwrap().as_deref(), Some("main"));
    main.update_ref(name, None.into(), Some(commit), "")
        .unwrap();

    sample.git(&["worktree", "add", "-q", "../linked tree", "-b", "other"]);
    let linked = Repository::discover(&sample.root().join("linked tree/src")).unwrap();
    assert_eq!(
        linked.common_dir().canonicalize().unwrap(),
        main.common_dir()
    );
    assert_ne!(linked.git_dir(), linked.common_dir());
    assert_eq!(linked.head_branch().unwrap().as_deref(), Some("other"));
    assert_eq!(linked.read_ref(name).unwrap(), Some(commit));
    linked
        .update_ref("refs/hangar/b", None.into(), Some(commit), "")
        .unwrap();
    assert_eq!(main.list_refs("refs/hangar/").unwrap().len(), 2);

    sample.git(&["clone", "-q", "--mirror", ".", "../bare.git"]);
    let bare = Repository::discover(&sample.root().join("bare.git")).unwrap();
    assert!(bare.is_bare() && bare.work_tree().is_none());
    assert_eq!(bare.read_ref(name).unwrap(), Some(commit));
    bare.update_ref("refs/hangar/c", None.into(), Some(commit), "")
        .unwrap();
    assert!(matches!(bare.uncommitted(), Err(Error::NoWorkTree)));
}

#[test]
fn a_repository_without_commits_says_so() {
    let sample = Sample::new();
    let repository = sample.open();
    assert_eq!(repository.head().unwrap(), None);
    assert_eq!(repository.head_branch().unwrap().as_deref(), Some("main"));
    assert!(matches!(repository.resolve("HEAD"), Err(Error::NoCommits)));
}

#[test]
fn what_cannot_be_worked_with_is_refused_in_one_sentence() {
    let plain = tempfile::tempdir().unwrap();
    let error = Repository::discover(plain.path()).unwrap_err();
    assert!(matches!(error, Error::NotARepository(_)), "{error}");

    let reftable = Sample::init(&["--ref-format=reftable"]);
    let error = Repository::discover(&reftable.dir()).unwrap_err();
    assert!(error.to_string().contains("reftable"), "{error}");
}

#[test]
fn a_repository_of_another_user_is_refused() {
    let sample = Sample::new();
    sample.put("a", "x").commit();
    // Only root can give files away.
    if std::os::unix::fs::chown(sample.dir(), Some(12345), None).is_err() {
        return;
    }
    std::os::unix::fs::chown(sample.dir().join(".git"), Some(12345), None).unwrap();
    let error = Repository::discover(&sample.dir()).unwrap_err();
    assert!(matches!(error, Error::Untrusted(_)), "{error}");
}

#[test]
fn a_sha256_repository_works() {
    let sample = Sample::init(&["--object-format=sha256"]);
    let commit = sample.put("a", "x").commit();
    let repository = sample.open();
    assert_eq!(repository.object_format(), ObjectFormat::Sha256);
    assert_eq!(repository.head().unwrap(), Some(commit));
    assert_eq!(commit.to_string().len(), 64);
}

#[test]
fn a_shallow_clone_is_known() {
    let sample = Sample::new();
    sample.put("a", "x").commit();
    sample.put("a", "y").commit();
    assert!(!sample.open().is_shallow());
    let url = format!("file://{}", sample.dir().display());
    git(
        sample.root(),
        &["clone", "-q", "--depth=1", &url, "shallow"],
    );
    let shallow = Repository::discover(&sample.root().join("shallow")).unwrap();
    assert!(shallow.is_shallow());
}

#[test]
fn revisions_are_what_git_means_and_never_options() {
    let sample = Sample::new();
    let first = sample.put("a", "x").commit();
    let second = sample.put("a", "y").commit();
    sample.git(&["tag", "-a", "v1", "-m", "t", "HEAD~1"]);
    let repository = sample.open();
    for (revision, commit) in [
        ("HEAD", second),
        ("main", second),
        ("HEAD~1", first),
        ("v1", first),
        ("refs/tags/v1", first),
        (&second.to_string()[..10], second),
    ] {
        assert_eq!(repository.resolve(revision).unwrap(), commit, "{revision}");
    }
    for revision in [
        "",
        "--all",
        "-1",
        "nope",
        "HEAD:a",
        "HEAD^{tree}",
        "main..v1",
        "a\nb",
        &"x".repeat(2000),
    ] {
        assert!(repository.resolve(revision).is_err(), "{revision}");
    }
}

#[test]
fn configuration_and_dirt_are_seen() {
    let sample = Sample::new();
    sample.put("a", "x").commit();
    sample.git(&["config", "user.signingKey", "/keys/id"]);
    let repository = sample.open();
    assert_eq!(
        repository.config_value("user.signingKey").as_deref(),
        Some("/keys/id")
    );
    assert_eq!(repository.config_value("no.such"), None);
    assert_eq!(repository.uncommitted().unwrap(), 0);
    sample.put("b", "new");
    assert_eq!(repository.uncommitted().unwrap(), 1);
}

#[test]
fn the_runner_hides_our_environment_and_its_hooks() {
    let sample = Sample::new();
    let out = program::Git::isolated()
        .dir(sample.dir())
        .args(["var", "GIT_EDITOR"])
        .run()
        .unwrap();
    assert_eq!(out, b"false\n");
    let canary = sample.root().join("canary");
    let hook = format!("#!/bin/sh\ntouch '{}'\n", canary.display());
    sample.put(".git/hooks/post-checkout", hook);
    super::make_executable(&sample.dir().join(".git/hooks/post-checkout"));
    program::Git::isolated()
        .dir(sample.dir())
        .args(["checkout", "-q", "-b", "x"])
        .run()
        .unwrap();
    assert!(!fs::exists(canary).unwrap());
}
