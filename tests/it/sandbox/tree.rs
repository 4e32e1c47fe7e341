//! The file tree: mounts, files from memory, and what is read back.

use super::support::{LINUX, Who, changes_the_host, folder, out, sh, spec, text, tried, write};
use hangar::base::redact::Secret;
use hangar::sandbox::Error;
use hangar::sandbox::spec::{Collect, End, LaidFile, Limits, Mount, Spec};
use sha2::{Digest as _, Sha256};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

fn read_only(host: &Path, inside: &str) -> Mount {
    Mount::ReadOnly {
        host: host.to_owned(),
        inside: PathBuf::from(inside),
    }
}

fn scratch(host: &Path, inside: &str) -> Mount {
    Mount::Scratch {
        host: host.to_owned(),
        inside: PathBuf::from(inside),
    }
}

fn laid(path: &str, content: &str) -> LaidFile {
    LaidFile {
        path: PathBuf::from(path),
        bytes: Secret::from(content.to_owned()),
        mode: 0o444,
    }
}

fn blocked(result: Result<hangar::sandbox::spec::Outcome, Error>, place: &str) {
    match result {
        Err(Error::Blocked { path, .. }) => assert_eq!(path, Path::new(place)),
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
pub(super) fn a_read_only_mount_is_read_and_not_written() {
    let host = folder(&[("a/file", "content")]);
    for who in Who::all() {
        let outcome = who
            .run(&Spec {
                mounts: vec![read_only(host.path(), "/src")],
                steps: vec![sh(
                    "cat /src/a/file; echo x > /src/a/file || rm /src/a/file || touch /src/new",
                )],
                ..spec()
            })
            .unwrap();
        assert_eq!(out(&outcome), "content");
        assert_eq!(outcome.steps[0].end, End::Exited(1));
    }
    assert_eq!(fs::read(host.path().join("a/file")).unwrap(), b"content");
}

#[test]
pub(super) fn a_single_file_can_be_mounted() {
    let host = folder(&[("tool", "#!/bin/sh\necho works\n")]);
    let mount = read_only(&host.path().join("tool"), "/opt/tool");
    let outcome = Who::Us
        .run(&Spec {
            mounts: vec![mount],
            steps: vec![sh("sh /opt/tool")],
            ..spec()
        })
        .unwrap();
    assert_eq!(out(&outcome), "works\n");
}

#[test]
pub(super) fn a_writable_mount_changes_the_host() {
    if !changes_the_host() {
        return;
    }
    for who in Who::all() {
        let host = folder(&[("file", "old")]);
        let outcome = who
            .run(&Spec {
                mounts: vec![Mount::ReadWrite {
                    host: host.path().to_owned(),
                    inside: "/src".into(),
                }],
                steps: vec![sh("echo new > /src/file; mkdir /src/d; echo x > /src/d/y; cp /bin/true /src/t; chmod 4755 /src/t")],
                ..spec()
            })
            .unwrap();
        assert_eq!(outcome.steps[0].end, End::Exited(0), "{outcome:?}");
        assert_eq!(fs::read(host.path().join("file")).unwrap(), b"new\n");
        assert_eq!(fs::read(host.path().join("d/y")).unwrap(), b"x\n");
    }
}

#[test]
pub(super) fn changes_of_a_scratch_mount_stay_in_memory() {
    let host = folder(&[("file", "old"), ("gone", "x"), ("d/inner", "y")]);
    for who in Who::all() {
        let outcome = who
            .run(&Spec {
                mounts: vec![scratch(host.path(), "/src")],
                steps: vec![
                    sh("cd /src; cat file; echo new > file; rm gone; echo n > added; echo z > d/inner"),
                    sh("cd /src; cat file added d/inner; ls"),
                ],
                ..spec()
            })
            .unwrap();
        assert_eq!(out(&outcome), "old");
        assert_eq!(
            text(&outcome.steps[1].stdout),
            "new\nn\nz\nadded\nd\nfile\n"
        );
        assert_eq!(outcome.enforced.copied, tried() != LINUX);
    }
    assert_eq!(fs::read(host.path().join("file")).unwrap(), b"old");
    assert!(host.path().join("gone").exists());
    assert!(!host.path().join("added").exists());
}

#[test]
pub(super) fn where_the_kernel_refuses_an_overlay_a_scratch_mount_is_a_copy() {
    // A file system that overlays can't lie on.
    let host = Path::new("/proc/sys/kernel/random");
    let known = fs::read_to_string(host.join("boot_id")).unwrap();
    for who in Who::all() {
        let outcome = who
            .run(&Spec {
                mounts: vec![scratch(host, "/src")],
                files: vec![laid("/src/test", "sealed")],
                steps: vec![sh("cat /src/boot_id; cat /src/test; \
                     grep -c ' /src tmpfs rw,nosuid,nodev' /proc/mounts")],
                ..spec()
            })
            .unwrap();
        assert_eq!(out(&outcome), format!("{known}sealed1\n"));
        assert!(outcome.enforced.copied);
    }
}

#[test]
pub(super) fn a_laid_file_replaces_what_stands_there_and_follows_nothing() {
    let host = folder(&[("victim", "host content"), ("old_test", "patch content")]);
    symlink("victim", host.path().join("link_test")).unwrap();
    symlink("/home/user/elsewhere", host.path().join("far_test")).unwrap();
    for who in Who::all() {
        let outcome = who
            .run(&Spec {
                mounts: vec![scratch(host.path(), "/src")],
                files: vec![
                    laid("/src/link_test", "sealed 1\n"),
                    laid("/src/far_test", "sealed 2\n"),
                    laid("/src/old_test", "sealed 3\n"),
                    laid("/src/new/deep/test", "sealed 4\n"),
                    laid("/tests/test", "sealed 5\n"),
                ],
                hash_after: vec!["/tests".into()],
                steps: vec![sh(
                    "cd /src; cat link_test far_test old_test new/deep/test /tests/test victim; \
                     ls /home/user; find . -type l; find /tests/test -printf '%m\\n'",
                )],
                ..spec()
            })
            .unwrap();
        assert_eq!(
            out(&outcome),
            "sealed 1\nsealed 2\nsealed 3\nsealed 4\nsealed 5\nhost content444\n"
        );
        let digest: [u8; 32] = Sha256::digest(b"sealed 5\n").into();
        assert_eq!(outcome.hashes.get(&b"/tests/test"[..]), Some(&digest));
    }
    // The host saw none of it.
    assert!(host.path().join("link_test").is_symlink());
    assert!(!host.path().join("new").exists());
}

#[test]
pub(super) fn a_laid_file_is_refused_where_the_tree_bends_its_path() {
    let host = folder(&[("real/file", ""), ("plain", ""), ("full/file", "")]);
    symlink("real", host.path().join("linked")).unwrap();
    symlink("/tmp", host.path().join("out")).unwrap();
    for who in Who::all() {
        for path in [
            "/src/linked/test",
            "/src/out/test",
            "/src/plain/test",
            "/src/full",
            "/src/../etc/x",
        ] {
            let spec = Spec {
                mounts: vec![scratch(host.path(), "/src")],
                files: vec![laid(path, "secret")],
                ..spec()
            };
            blocked(who.run(&spec), path);
        }
        // The honest neighbour.
        let spec = Spec {
            mounts: vec![scratch(host.path(), "/src")],
            files: vec![laid("/src/real/test", "secret")],
            ..spec()
        };
        who.run(&spec).unwrap();
    }
}

#[test]
pub(super) fn a_laid_file_never_lands_on_the_host() {
    if !changes_the_host() {
        return;
    }
    let host = folder(&[]);
    let writable = Mount::ReadWrite {
        host: host.path().to_owned(),
        inside: "/src".into(),
    };
    for mount in [writable, read_only(host.path(), "/src")] {
        let spec = Spec {
            mounts: vec![mount],
            files: vec![laid("/src/test", "secret")],
            ..spec()
        };
        blocked(Who::Us.run(&spec), "/src/test");
    }
    assert_eq!(fs::read_dir(host.path()).unwrap().count(), 0);
    for path in ["/usr/test", "/proc/test"] {
        let spec = Spec {
            files: vec![laid(path, "secret")],
            ..spec()
        };
        blocked(Who::Us.run(&spec), path);
    }
}

#[test]
pub(super) fn a_tree_decides_no_mount_point() {
    if !changes_the_host() {
        return;
    }
    let tree = folder(&[("file", "")]);
    symlink("/home/user", tree.path().join("deps")).unwrap();
    symlink("/", tree.path().join("up")).unwrap();
    fs::create_dir(tree.path().join("here")).unwrap();
    let deps = folder(&[("lib", "code")]);
    let with = |base: Mount, at: &str| Spec {
        mounts: vec![base, read_only(deps.path(), at)],
        steps: vec![sh("cat /src/here/lib")],
        ..spec()
    };
    let writable = || Mount::ReadWrite {
        host: tree.path().to_owned(),
        inside: "/src".into(),
    };
    for who in Who::all() {
        blocked(
            who.run(&with(scratch(tree.path(), "/src"), "/src/deps")),
            "/src/deps",
        );
        blocked(
            who.run(&with(scratch(tree.path(), "/src"), "/src/up/opt")),
            "/src/up/opt",
        );
        blocked(
            who.run(&with(scratch(tree.path(), "/src"), "/src/file")),
            "/src/file",
        );
        blocked(who.run(&with(writable(), "/src/new")), "/src/new");
        blocked(
            who.run(&with(read_only(tree.path(), "/src"), "/src/a/b")),
            "/src/a/b",
        );
        if tried() == LINUX {
            // A folder that is there and is a folder.
            let outcome = who.run(&with(writable(), "/src/here")).unwrap();
            assert_eq!(out(&outcome), "code");
        } else {
            // The program that makes the mounts would have to look into the tree for it.
            blocked(who.run(&with(writable(), "/src/here")), "/src/here");
            let mut beside = with(writable(), "/deps");
            beside.steps = vec![sh("cat /deps/lib")];
            assert_eq!(out(&who.run(&beside).unwrap()), "code");
        }
    }
    assert!(!tree.path().join("new").exists());
}

#[test]
pub(super) fn the_fixed_parts_cannot_be_replaced() {
    let host = folder(&[("file", "")]);
    for place in ["/", "/proc", "/proc/sys"] {
        let spec = Spec {
            mounts: vec![read_only(host.path(), place)],
            ..spec()
        };
        blocked(Who::Us.run(&spec), place);
    }
}

#[test]
pub(super) fn hashes_tell_whether_files_were_changed() {
    let host = folder(&[("a", "one"), ("d/b", "two")]);
    symlink("a", host.path().join("l")).unwrap();
    let sum = |content: &str| -> [u8; 32] { Sha256::digest(content.as_bytes()).into() };
    for who in Who::all() {
        let run = |script: &str| {
            who.run(&Spec {
                mounts: vec![scratch(host.path(), "/src")],
                files: vec![laid("/src/d/t", "test")],
                hash_after: vec!["/src".into()],
                steps: vec![sh(script)],
                ..spec()
            })
            .unwrap()
            .hashes
        };
        let honest = run("true");
        let names: Vec<String> = honest.keys().map(|name| text(name)).collect();
        assert_eq!(names, ["/src/a", "/src/d/b", "/src/d/t", "/src/l"]);
        assert_eq!(honest[&b"/src/a"[..]], sum("one"));
        assert_eq!(honest[&b"/src/d/t"[..]], sum("test"));
        assert_eq!(honest[&b"/src/l"[..]], sum("a"));
        let changed = run("cd /src; rm -f a; echo forged > a; mkfifo pipe");
        assert_eq!(changed[&b"/src/a"[..]], sum("forged\n"));
        assert_eq!(changed[&b"/src/d/b"[..]], sum("two"));
        assert_eq!(changed.len(), 4);
        // What was laid read-only stays, its folder too, and what lies beside it.
        let tried = run(
            "cd /src; rm -f d/t; echo forged > d/t; mv d/t d/u; mv d e; chmod 777 d; echo forged > d/b; \
             umount d; mkdir d/x; true",
        );
        assert_eq!(tried, honest);
    }
}

#[test]
pub(super) fn what_is_laid_to_be_read_stays_with_the_folders_above_it() {
    let host = folder(&[
        ("a/code", "code"),
        ("a/tests/helper", "help"),
        ("a/tests/data/more", "more"),
        ("a/tests/old_test", "of the patch"),
        ("top", "of the patch"),
    ]);
    symlink("helper", host.path().join("a/tests/link")).unwrap();
    symlink("/etc/passwd", host.path().join("a/tests/data/far")).unwrap();
    for who in Who::all() {
        let outcome = who
            .run(&Spec {
                mounts: vec![scratch(host.path(), "/src")],
                files: vec![
                    laid("/src/a/tests/test", "sealed\n"),
                    laid("/src/a/tests/old_test", "sealed, too\n"),
                    laid("/src/top", "sealed on top\n"),
                ],
                steps: vec![
                    // What an honest program finds, and may do beside them.
                    sh("cd /src; cat a/tests/link a/tests/data/more a/tests/test a/tests/old_test top; \
                        readlink a/tests/data/far; echo new > a/code; echo new > a/new; \
                        mkdir b; mv a/new b/new; cat a/code b/new; for f in a/* a/tests/*; do echo $f; done"),
                    sh("exec 2>/dev/null; cd /src; for f in a/tests/test a/tests/helper a/tests/data/more top; do \
                            (echo forged > $f) && echo $f; rm -f $f && echo $f; mv $f x && echo $f; chmod 777 $f && echo $f; \
                        done; \
                        for d in a a/tests; do mv $d c && echo $d; rm -rf $d && echo $d; done; \
                        (: > a/tests/conftest) && echo added; rmdir a/tests/data && echo data; \
                        umount a/tests && echo unmounted; ln -sf b a/tests/link && echo linked; \
                        cat a/tests/test top"),
                ],
                ..spec()
            })
            .unwrap();
        assert_eq!(
            out(&outcome),
            "helpmoresealed\nsealed, too\nsealed on top\n/etc/passwd\nnew\nnew\n\
             a/code\na/tests\na/tests/data\na/tests/helper\na/tests/link\na/tests/old_test\na/tests/test\n"
        );
        assert_eq!(text(&outcome.steps[1].stdout), "sealed\nsealed on top\n");
    }
    assert!(host.path().join("a/new").symlink_metadata().is_err());
}

#[test]
pub(super) fn collected_files_come_back_through_memory() {
    let collect = |max_file, max_total, max_files| Collect {
        path: "/tmp/out".into(),
        max_file,
        max_total,
        max_files,
    };
    let script = "mkdir -p /tmp/out/d; cd /tmp/out; printf abc > a; printf defg > d/b; chmod 755 d/b; \
                  ln -s /etc/passwd link; mkfifo pipe; printf 0123456789 > large";
    for who in Who::all() {
        let run = |collect: Collect| {
            let outcome = who
                .run(&Spec {
                    collect: vec![collect],
                    steps: vec![sh(script)],
                    ..spec()
                })
                .unwrap();
            let got: Vec<_> = outcome
                .collected
                .iter()
                .map(|file| (text(&file.path), file.executable, text(file.bytes.expose())))
                .collect();
            let not: Vec<_> = outcome
                .not_collected
                .into_iter()
                .map(|(path, why)| (text(&path), why))
                .collect();
            (got, not)
        };
        let (got, not) = run(collect(5, 100, 100));
        assert_eq!(
            got,
            [
                ("/tmp/out/a".to_owned(), false, "abc".to_owned()),
                ("/tmp/out/d/b".to_owned(), true, "defg".to_owned()),
            ]
        );
        let why = |path: &str, why: &str| (path.to_owned(), why.to_owned());
        assert_eq!(
            not,
            [
                why("/tmp/out/large", "too large"),
                why("/tmp/out/link", "a symbolic link"),
                why("/tmp/out/pipe", "a special file"),
            ]
        );
        assert_eq!(run(collect(5, 100, 1)).0.len(), 1);
        assert_eq!(run(collect(5, 6, 100)).0.len(), 1);
    }
    // A folder that never was gives nothing, and neither does what is below a file; a link or a folder
    // that holds no file is told from that.
    for (script, found) in [
        ("true", 0),
        ("echo > /tmp/out", 0),
        ("ln -s /etc /tmp/out", 1),
        ("mkdir -p /tmp/out/in", 1),
    ] {
        let mut wanted = collect(1, 1, 1);
        if script.contains("echo") {
            wanted.path.push("below");
        }
        let spec = Spec {
            collect: vec![wanted],
            steps: vec![sh(script)],
            ..spec()
        };
        let outcome = Who::Us.run(&spec).unwrap();
        assert!(outcome.collected.is_empty());
        assert_eq!(outcome.not_collected.len(), found, "{script}");
    }
}

#[test]
pub(super) fn all_writable_places_share_one_bound() {
    for who in Who::all() {
        let outcome = who
            .run(&Spec {
                limits: Limits {
                    disk: Some(4 << 20),
                    ..Limits::default()
                },
                steps: vec![sh("head -c 3m /dev/zero > /tmp/a && echo fits; \
                     head -c 2m /dev/zero > /dev/shm/b || echo full; \
                     head -c 2m /dev/zero > /home/user/c || echo full")],
                ..spec()
            })
            .unwrap();
        assert_eq!(out(&outcome), "fits\nfull\nfull\n");
        assert!(
            outcome.steps[0]
                .hits
                .contains(&hangar::sandbox::spec::Hit::Disk)
        );
    }
}

#[test]
pub(super) fn every_sandbox_starts_afresh() {
    let host = folder(&[("f", "")]);
    write(&host.path().join("g"), "");
    for who in Who::all() {
        let run = || {
            let outcome = who
                .run(&Spec {
                    mounts: vec![scratch(host.path(), "/src")],
                    steps: vec![sh("ls -A /tmp /dev/shm /home/user /run /src; \
                         touch /tmp/x /dev/shm/x /home/user/x /run/x /src/x")],
                    ..spec()
                })
                .unwrap();
            out(&outcome)
        };
        assert_eq!(run(), run());
    }
}
