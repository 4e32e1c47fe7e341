use super::{Sample, git};
use hangar::git::{BranchCommit, CommitDraft, Error, Expected, Lease, PushOutcome, Repository};
use hangar::model::object_id::ObjectId;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);

#[test]
fn ancestors_are_those_of_git() {
    let sample = Sample::new();
    let root = sample.put("a", "1").commit();
    let left = sample.put("a", "2").commit();
    sample.git(&["checkout", "-q", "-b", "side", &root.to_string()]);
    let right = sample.put("b", "3").commit();
    sample.git(&["merge", "-q", "-m", "m", "main"]);
    let merged: ObjectId = sample.git(&["rev-parse", "HEAD"]).parse().unwrap();
    sample.git(&["checkout", "-q", "--orphan", "alone"]);
    let alone = sample.commit();
    let repository = sample.open();
    assert_eq!(repository.merge_base(left, right).unwrap(), Some(root));
    assert_eq!(repository.merge_base(left, merged).unwrap(), Some(left));
    assert_eq!(repository.merge_base(left, alone).unwrap(), None);
    for (old, new, answer) in [
        (root, merged, true),
        (left, merged, true),
        (left, left, true),
        (merged, left, false),
        (left, right, false),
        (alone, merged, false),
    ] {
        assert_eq!(repository.is_ancestor(old, new).unwrap(), answer);
    }
    let mut since = repository.commits_since(left, merged, 10).unwrap();
    since.sort();
    let mut expected = vec![right, merged];
    expected.sort();
    assert_eq!(since, expected);
    assert!(repository.commits_since(left, merged, 1).is_err());
}

#[test]
fn a_shallow_clone_does_not_guess() {
    let sample = Sample::new();
    sample.put("a", "1").commit();
    sample.git(&["branch", "old"]);
    sample.put("a", "2").commit();
    sample.put("a", "3").commit();
    let url = format!("file://{}", sample.dir().display());
    git(
        sample.root(),
        &[
            "clone",
            "-q",
            "--depth=1",
            "--no-single-branch",
            &url,
            "shallow",
        ],
    );
    let shallow = Repository::discover(&sample.root().join("shallow")).unwrap();
    let old = shallow.resolve("origin/old").unwrap();
    let new = shallow.resolve("HEAD").unwrap();
    assert!(matches!(shallow.merge_base(old, new), Err(Error::Shallow)));
    assert!(matches!(shallow.is_ancestor(old, new), Err(Error::Shallow)));
    assert!(shallow.is_ancestor(new, new).unwrap());
}

fn draft(sample: &Sample, parent: ObjectId) -> CommitDraft {
    CommitDraft {
        tree: sample.tree(),
        parents: vec![parent],
        author_name: "A".into(),
        author_email: "a@example.org".into(),
        time_seconds: 0,
        message: "delivered\n".into(),
    }
}

#[test]
fn a_branch_gets_a_commit_unless_it_is_checked_out() {
    let sample = Sample::new();
    let base = sample.put("a", "1").commit();
    let repository = sample.open();
    let draft = draft(&sample, base);
    let deliver = |branch: &str, expected| {
        repository.commit_on_branch(&BranchCommit {
            branch,
            expected,
            draft: &draft,
        })
    };
    let id = deliver("hangar/kan-80", Expected::Absent).unwrap();
    assert_eq!(sample.git(&["rev-parse", "hangar/kan-80"]), id.to_string());
    let log = sample.git(&["reflog", "show", "--format=%gs", "hangar/kan-80"]);
    assert_eq!(log, "hangar: deliver");
    assert!(matches!(
        deliver("hangar/kan-80", Expected::Absent),
        Err(Error::Conflict { .. })
    ));
    let error = deliver("main", Expected::At(base)).unwrap_err();
    assert!(matches!(error, Error::CheckedOut { .. }), "{error}");
    assert_eq!(sample.git(&["status", "--porcelain"]), "");
    sample.git(&["worktree", "add", "-q", "../linked", "-b", "busy"]);
    let error = deliver("busy", Expected::At(base)).unwrap_err();
    assert!(error.to_string().ends_with("linked"), "{error}");
    for branch in ["", "-x", "HEAD", "a..b", "a b", "x.lock"] {
        assert!(deliver(branch, Expected::Absent).is_err(), "{branch}");
    }
    sample.git(&["clone", "-q", "--bare", ".", "../bare.git"]);
    let bare = Repository::discover(&sample.root().join("bare.git")).unwrap();
    bare.commit_on_branch(&BranchCommit {
        branch: "main",
        expected: Expected::At(base),
        draft: &draft,
    })
    .unwrap();
}

#[test]
fn refs_travel_only_as_asked() {
    let sample = Sample::new();
    let base = sample.put("a", "1").commit();
    sample.git(&["init", "-q", "--bare", "../remote.git"]);
    let remote = sample.root().join("remote.git");
    let url = remote.to_str().unwrap();
    let repository = sample.open();
    let draft = draft(&sample, base);
    let next = repository.write_commit(&draft).unwrap();
    let name = "refs/hangar/tasks/a".to_owned();
    let push = |expected, new, more: Option<Lease>| {
        let mut leases = vec![Lease {
            name: name.clone(),
            expected,
            new,
        }];
        leases.extend(more);
        repository.push(url, &leases, SOON).unwrap()
    };
    assert_eq!(push(Expected::Absent, Some(base), None), PushOutcome::Done);
    let remote_refs = || {
        repository
            .list_remote(url, &["refs/hangar/*"], SOON)
            .unwrap()
    };
    assert_eq!(remote_refs(), [(name.clone(), base)]);
    // Lost the race: nothing moves, also not the other ref of the same push.
    let other = Lease {
        name: "refs/hangar/tasks/b".into(),
        expected: Expected::Absent,
        new: Some(base),
    };
    let outcome = push(Expected::Absent, Some(next), Some(other));
    assert!(
        matches!(outcome, PushOutcome::Rejected(ref rejected) if !rejected.refs.is_empty()),
        "{outcome:?}"
    );
    assert_eq!(remote_refs(), [(name.clone(), base)]);
    assert_eq!(
        push(Expected::At(base), Some(next), None),
        PushOutcome::Done
    );

    sample.git(&["clone", "-q", ".", "../second"]);
    let second = Repository::discover(&sample.root().join("second")).unwrap();
    let spec = "+refs/hangar/*:refs/hangar-remote/origin/*";
    second.fetch(url, &[spec], SOON).unwrap();
    let listed = second.list_refs("refs/hangar-remote/origin/").unwrap();
    assert_eq!(
        listed,
        [("refs/hangar-remote/origin/tasks/a".to_owned(), next)]
    );
    assert!(second.list_refs("refs/hangar/").unwrap().is_empty());
    // A ref deleted over there stays here.
    assert_eq!(push(Expected::At(next), None, None), PushOutcome::Done);
    assert!(remote_refs().is_empty());
    second.fetch(url, &[spec], SOON).unwrap();
    assert_eq!(
        second
            .list_refs("refs/hangar-remote/origin/")
            .unwrap()
            .len(),
        1
    );
    assert!(second.fetch("ext::touch x", &[spec], SOON).is_err());
    assert!(second.fetch("/no/such/remote", &[spec], SOON).is_err());
}
