use super::{Sample, fsck, git, make_executable, put, trees::awkward};
use hangar::base::process::Run;
use hangar::git::{CollectOptions, Collected, Error, IgnoreRules, PathFault, Repository};
use hangar::model::listing::Mode;
use hangar::model::object_id::ObjectId;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

/// A base and an agent's clone of it.
struct Agent {
    sample: Sample,
    base: ObjectId,
    dir: PathBuf,
}

impl Agent {
    fn new(fill: impl FnOnce(&Sample)) -> Self {
        let sample = Sample::new();
        fill(&sample);
        if sample.open().head().unwrap().is_none() {
            sample.commit();
        }
        let commit = sample.open().head().unwrap().unwrap();
        let dir = sample.root().join("agent");
        sample.open().make_pinned(commit, &dir, None, None).unwrap();
        let base = sample.tree();
        Self { sample, base, dir }
    }

    /// A base that is one file, `a`.
    fn plain() -> Self {
        Self::new(|sample| {
            sample.put("a", "x");
        })
    }

    fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        put(&self.dir, path, content);
    }

    fn git(&self, args: &[&str]) -> String {
        git(&self.dir, args)
    }

    fn repository(&self) -> Repository {
        self.sample.open()
    }

    fn try_collect(&self, options: &CollectOptions) -> Result<Collected, Error> {
        self.repository().collect(self.base, &self.dir, options)
    }

    fn collect(&self) -> Collected {
        let collected = self.try_collect(&CollectOptions::default()).unwrap();
        // The listing that was made on the way is that of the tree.
        let files = self.repository().listing(collected.tree).unwrap();
        assert_eq!(files.listing, collected.listing);
        collected
    }
}

/// Kind and path of each change.
fn changes(collected: &Collected) -> Vec<String> {
    let changes = collected.changes.iter();
    changes
        .map(|(path, kind)| format!("{kind:?} {}", String::from_utf8_lossy(path)))
        .collect()
}

#[test]
fn work_that_changed_nothing_is_the_base() {
    let agent = Agent::new(|sample| {
        awkward(sample);
    });
    let collected = agent.collect();
    assert_eq!(collected.tree, agent.base);
    assert_eq!((collected.changes.len(), collected.ignored), (0, 0));
    assert!(collected.nested.is_empty() && collected.refused.is_empty());
}

#[test]
fn every_kind_of_change_is_found() {
    let agent = Agent::new(|sample| {
        for path in ["same", "edit", "gone", "mode", "tolink", "dir/file"] {
            sample.put(path, path);
        }
        sample.put("sub/bin", [0, 1, 2]);
    });
    agent.put("edit", "edited");
    agent.put("new file", [0, 255, 0]);
    agent.put("deep/er/new", "x");
    fs::remove_file(agent.dir.join("gone")).unwrap();
    make_executable(&agent.dir.join("mode"));
    fs::remove_file(agent.dir.join("tolink")).unwrap();
    symlink("same", agent.dir.join("tolink")).unwrap();
    fs::remove_dir_all(agent.dir.join("dir")).unwrap();
    agent.put("dir", "now a file");
    fs::create_dir(agent.dir.join("empty")).unwrap();
    let collected = agent.collect();
    assert_eq!(
        changes(&collected),
        [
            "Added deep/er/new",
            "Added dir",
            "Deleted dir/file",
            "Modified edit",
            "Deleted gone",
            "ModeChanged mode",
            "Added new file",
            "Modified tolink",
        ]
    );
    // The second opinion: git's own tree of the same files.
    agent.git(&["add", "-A"]);
    assert_eq!(agent.git(&["write-tree"]), collected.tree.to_string());
    let commit = agent
        .sample
        .git(&["commit-tree", &collected.tree.to_string(), "-m", "x"]);
    agent
        .sample
        .git(&["update-ref", "refs/hangar/runs/a", &commit]);
    fsck(&agent.sample.dir());
}

#[test]
fn edits_hidden_from_git_are_found() {
    let agent = Agent::new(|sample| {
        sample
            .put("tracked", "honest")
            .put("assumed", "honest")
            .put("code.py", "honest");
    });
    agent.git(&["update-index", "--skip-worktree", "tracked"]);
    agent.git(&["update-index", "--assume-unchanged", "assumed"]);
    agent.put(".git/info/exclude", "*\n");
    agent.git(&["config", "core.excludesFile", "/dev/stdin"]);
    agent.git(&["config", "core.sparseCheckout", "true"]);
    // Same size, same time.
    let stat = fs::metadata(agent.dir.join("code.py")).unwrap();
    agent.put("code.py", "forged");
    let file = fs::File::open(agent.dir.join("code.py")).unwrap();
    file.set_modified(stat.modified().unwrap()).unwrap();
    agent.put("tracked", "edited");
    agent.put("assumed", "edited");
    agent.put("planted", "new");
    assert_eq!(
        agent.git(&["ls-files", "-o", "--exclude-standard"]),
        "",
        "the control"
    );
    assert_eq!(
        changes(&agent.collect()),
        [
            "Modified assumed",
            "Modified code.py",
            "Added planted",
            "Modified tracked",
        ]
    );
}

#[test]
fn nothing_that_the_agent_configured_runs_or_counts() {
    let agent = Agent::new(|sample| {
        awkward(sample);
    });
    let canary = agent.sample.root().join("canary");
    let script = agent.dir.join("evil.sh");
    agent.put(
        "evil.sh",
        format!("#!/bin/sh\ntouch '{}'\ncat\n", canary.display()),
    );
    make_executable(&script);
    let script = script.to_str().unwrap();
    for key in [
        "core.fsmonitor",
        "core.hooksPath",
        "core.editor",
        "core.pager",
        "core.sshCommand",
        "diff.external",
        "diff.evil.textconv",
        "diff.evil.command",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "merge.evil.driver",
        "alias.status",
        "core.worktree",
        "credential.helper",
        "gpg.program",
        // Last: git itself can't read the file any more.
        "include.path",
    ] {
        put(&agent.dir, ".git/config.new", "");
        let set = super::git_run(&agent.dir, &["config", "-f", ".git/config", key, script]);
        let out = set.output().unwrap();
        assert!(out.status.success(), "{key}: {out:?}");
    }
    agent.put(
        ".gitattributes",
        "* filter=evil diff=evil text eol=crlf ident\n",
    );
    agent.put(".git/info/attributes", "* filter=evil\n");
    agent.put("unix.txt", "a\r\n$Id$\n");
    for hook in [
        "pre-commit",
        "post-index-change",
        "fsmonitor-watchman",
        "post-checkout",
    ] {
        agent.put(&format!(".git/hooks/{hook}"), fs::read(script).unwrap());
        make_executable(&agent.dir.join(".git/hooks").join(hook));
    }
    agent.put(".git/index", "not an index");
    let collected = agent.collect();
    let repository = agent.repository();
    let diff = repository.diff_text(agent.base, collected.tree).unwrap();
    assert!(diff.windows(6).any(|part| part == b"+$Id$\n"));
    let again = repository.apply_patch(agent.base, &diff).unwrap();
    assert_eq!(again.tree, collected.tree);
    let out = agent.sample.folder("grade");
    repository.materialise(collected.tree, &out, None).unwrap();
    assert_eq!(fs::read(out.join("unix.txt")).unwrap(), b"a\r\n$Id$\n");
    assert!(!canary.exists(), "something of the agent's ran");
}

#[test]
fn a_git_file_that_points_at_our_repository_is_not_read() {
    let agent = Agent::plain();
    fs::remove_dir_all(agent.dir.join(".git")).unwrap();
    agent.put(
        ".git",
        format!("gitdir: {}/.git\n", agent.sample.dir().display()),
    );
    agent.put("a", "y");
    assert_eq!(changes(&agent.collect()), ["Modified a"]);
}

#[test]
fn links_are_links_and_lead_nowhere() {
    let agent = Agent::new(|sample| {
        sample.put("tests/test_a", "x").put("src/a", "y");
    });
    let outside = agent.sample.folder("outside");
    put(&outside, "secret", "host");
    symlink(&outside, agent.dir.join("out")).unwrap();
    symlink("/etc/passwd", agent.dir.join("passwd")).unwrap();
    symlink("loop", agent.dir.join("loop")).unwrap();
    fs::remove_dir_all(agent.dir.join("tests")).unwrap();
    symlink("src", agent.dir.join("tests")).unwrap();
    let collected = agent.collect();
    assert_eq!(
        changes(&collected),
        [
            "Added loop",
            "Added out",
            "Added passwd",
            "Added tests",
            "Deleted tests/test_a",
        ]
    );
    // The whole folder replaced by a link is not walked either.
    fs::rename(&agent.dir, agent.sample.root().join("moved")).unwrap();
    symlink(&outside, &agent.dir).unwrap();
    assert!(agent.try_collect(&CollectOptions::default()).is_err());
}

#[test]
fn hard_links_are_their_content() {
    let agent = Agent::plain();
    fs::hard_link(agent.dir.join("a"), agent.dir.join("b")).unwrap();
    assert_eq!(changes(&agent.collect()), ["Added b"]);
}

#[test]
fn what_no_tree_may_hold_is_refused_and_named() {
    let agent = Agent::new(|sample| {
        sample.put("README", "x").put("tracked", "y");
    });
    agent.put("readme", "collides");
    agent.put("caf\u{e9}", "one");
    agent.put("cafe\u{301}", "other");
    agent.put(".GIT/config", "x");
    agent.put("dir/.Git./hooks", "x");
    agent.put("git~1", "x");
    symlink("x", agent.dir.join(".gitmodules")).unwrap();
    fs::remove_file(agent.dir.join("tracked")).unwrap();
    for fifo in ["fifo", "tracked"] {
        Run::new("mkfifo")
            .arg(agent.dir.join(fifo))
            .output()
            .unwrap();
    }
    let _socket = std::os::unix::net::UnixListener::bind(agent.dir.join("socket")).unwrap();
    let collected = agent.collect();
    let mut refused: Vec<_> = collected
        .refused
        .iter()
        .map(|refusal| {
            (
                String::from_utf8_lossy(&refusal.path).into_owned(),
                refusal.fault.clone(),
            )
        })
        .collect();
    refused.sort_by(|a, b| a.0.cmp(&b.0));
    let expected = [
        (".GIT", PathFault::DotGit),
        (".gitmodules", PathFault::SpecialLink),
        ("caf\u{e9}", PathFault::Collision("cafe\u{301}".into())),
        ("dir/.Git.", PathFault::DotGit),
        ("fifo", PathFault::SpecialFile),
        ("git~1", PathFault::DotGit),
        ("readme", PathFault::Collision("README".into())),
        ("socket", PathFault::SpecialFile),
        ("tracked", PathFault::SpecialFile),
    ];
    assert_eq!(
        refused,
        expected.map(|(path, fault)| (path.to_owned(), fault))
    );
    assert_eq!(
        changes(&collected),
        ["Added cafe\u{301}", "Deleted tracked"]
    );
    let out = agent.sample.folder("out");
    agent
        .repository()
        .materialise(collected.tree, &out, None)
        .unwrap();
}

#[test]
fn odd_names_are_kept_byte_for_byte() {
    let agent = Agent::plain();
    let names: [&[u8]; 5] = [
        b"not utf-8 \xff\xfe",
        b"new\nline",
        b"-rf",
        b"quo\"te\t",
        b" ",
    ];
    for name in names {
        fs::copy(agent.dir.join("a"), agent.dir.join(OsStr::from_bytes(name))).unwrap();
    }
    fs::copy(agent.dir.join("a"), agent.dir.join("n".repeat(255))).unwrap();
    let collected = agent.collect();
    assert!(collected.refused.is_empty());
    assert_eq!(collected.changes.len(), 6);
    let out = agent.sample.folder("out");
    agent
        .repository()
        .materialise(collected.tree, &out, None)
        .unwrap();
    for name in names {
        assert!(out.join(OsStr::from_bytes(name)).is_file());
    }
}

#[test]
fn deep_folders_end_somewhere() {
    let agent = Agent::plain();
    agent.put(
        &format!("{}/f", vec!["d"; 127].join("/")),
        "deepest that is taken",
    );
    agent.put(&format!("{}/f", vec!["e"; 300].join("/")), "too deep");
    let collected = agent.collect();
    assert_eq!(collected.changes.len(), 1);
    assert_eq!(collected.refused.len(), 1);
    assert_eq!(collected.refused[0].fault, PathFault::TooDeep);
    agent.repository().listing(collected.tree).unwrap();
}

#[test]
fn rules_of_the_base_leave_out_new_files_only() {
    let agent = Agent::new(|sample| {
        sample
            .put(".gitignore", "target/\n*.log\n!keep.log\n/root-only\n")
            .put("sub/.gitignore", "*.tmp\n")
            .put("target/tracked", "in spite of the rules")
            .put("tracked.log", "x");
    });
    agent.put("target/tracked", "edited");
    agent.put("target/new", "x");
    agent.put("other/target/a/b", "x");
    agent.put("tracked.log", "edited");
    agent.put("new.log", "x");
    agent.put("keep.log", "x");
    agent.put("root-only", "x");
    agent.put("sub/root-only", "x");
    agent.put("sub/x.tmp", "x");
    agent.put("x.tmp", "x");
    // The agent's own rules hide nothing, and lift nothing.
    agent.put(".gitignore", "planted*\n!target/\n!*.log\n");
    agent.put("planted.py", "x");
    let collected = agent.collect();
    assert_eq!(
        changes(&collected),
        [
            "Modified .gitignore",
            "Added keep.log",
            "Added planted.py",
            "Added sub/root-only",
            "Modified target/tracked",
            "Modified tracked.log",
            "Added x.tmp",
        ]
    );
    assert_eq!(collected.ignored, 5);
    let both = CollectOptions {
        ignore: IgnoreRules::BaseAndWork,
        ..CollectOptions::default()
    };
    let collected = agent.try_collect(&both).unwrap();
    let found = changes(&collected);
    assert!(found.iter().all(|line| !line.contains("planted.py")));
    assert!(found.contains(&"Added new.log".to_owned()));
}

#[test]
fn nested_repositories_are_files_and_never_gitlinks() {
    let agent = Agent::plain();
    let inner = agent.dir.join("vendor/inner");
    fs::create_dir_all(&inner).unwrap();
    git(&inner, &["init", "-q"]);
    put(&inner, "code", "x");
    git(&inner, &["add", "-A"]);
    git(&inner, &["commit", "-qm", "x"]);
    let collected = agent.collect();
    assert_eq!(collected.nested, [b"vendor/inner".to_vec()]);
    assert_eq!(changes(&collected), ["Added vendor/inner/code"]);
}

#[test]
fn submodules_stay_what_they_were() {
    let inner = Sample::new();
    inner.put("code", "x").commit();
    let agent = Agent::new(|sample| {
        sample.put("a", "x");
        sample.git(&[
            "submodule",
            "add",
            "-q",
            inner.dir().to_str().unwrap(),
            "lib",
        ]);
    });
    assert_eq!(agent.collect().tree, agent.base);
    agent.put("lib/planted", "x");
    let collected = agent.collect();
    assert_eq!(collected.tree, agent.base);
    assert_eq!(collected.refused[0].fault, PathFault::Submodule);
    fs::remove_dir_all(agent.dir.join("lib")).unwrap();
    assert_eq!(agent.collect().tree, agent.base);
    agent.put("lib", "a file instead");
    let collected = agent.collect();
    assert_eq!((collected.tree, collected.refused.len()), (agent.base, 1));
}

#[test]
fn limits_hold_for_what_is_new_or_changed() {
    let agent = Agent::new(|sample| {
        sample.put("large", vec![b'x'; 5000]).put("a", "x");
    });
    let options = CollectOptions {
        max_file: 1000,
        max_total: 1500,
        max_new_files: 3,
        ..CollectOptions::default()
    };
    let too_large = |options: &_| matches!(agent.try_collect(options), Err(Error::TooLarge { .. }));
    assert_eq!(agent.try_collect(&options).unwrap().tree, agent.base);
    agent.put("large", vec![b'y'; 5000]);
    assert!(too_large(&options));
    agent.put("large", vec![b'x'; 5000]);
    agent.put("n1", vec![b'1'; 1000]);
    agent.try_collect(&options).unwrap();
    agent.put("n2", vec![b'2'; 1000]);
    assert!(too_large(&options));
    agent.put("n1", "");
    agent.put("n3", "");
    agent.try_collect(&options).unwrap();
    agent.put("n4", "");
    assert!(too_large(&options));
    let sparse = fs::File::create(agent.dir.join("n4")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    assert!(too_large(&CollectOptions::default()));
}

#[test]
fn what_a_program_took_its_own_rights_from_is_read_all_the_same() {
    use std::os::unix::fs::PermissionsExt as _;
    let agent = Agent::plain();
    agent.put("b", "x");
    agent.put("dir/deep/c", "y");
    agent.put("run", "#!/bin/sh\n");
    for (path, mode) in [
        ("b", 0o000),
        ("run", 0o100),
        ("dir/deep/c", 0o200),
        ("dir/deep", 0o000),
        ("dir", 0o300),
    ] {
        fs::set_permissions(agent.dir.join(path), fs::Permissions::from_mode(mode)).unwrap();
    }
    let collected = agent.collect();
    assert_eq!(collected.refused, []);
    let of = |path: &str| {
        let entry = collected.listing.get(path.as_bytes()).unwrap();
        (entry.mode, entry.len)
    };
    assert_eq!(of("b"), (Mode::Regular, 1));
    assert_eq!(of("dir/deep/c"), (Mode::Regular, 1));
    assert_eq!(of("run"), (Mode::Executable, 10));
}
