//! Keys, repositories, folders and disks that are not as they should be: one clear error with the
//! right exit code, or the flow just works.

use super::badinput::{case, check, file};
use super::kill_scene::Scene;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Makes a repository odd.
type Make = fn(&mut Scene);

fn machine_keys(scene: &Scene) -> PathBuf {
    let data = scene.env.home().join(".local/share/hangar");
    fs::read_dir(data).unwrap().next().unwrap().unwrap().path()
}

fn own_key(scene: &Scene) -> PathBuf {
    scene.env.home().join(".ssh/id_ed25519")
}

#[test]
#[ignore = "heavy: a repository for each of a dozen faults"]
#[expect(clippy::too_many_lines, reason = "a table")]
fn keys_that_cannot_be_used() {
    let cases = [
        case(
            "no worker key",
            |s| fs::remove_file(machine_keys(s).join("worker")).unwrap(),
            3,
            "no worker key",
        ),
        case(
            "no grader key",
            |s| fs::remove_file(machine_keys(s).join("grader")).unwrap(),
            3,
            "no grader key",
        ),
        case(
            "an empty key",
            |s| fs::write(machine_keys(s).join("grader"), "").unwrap(),
            3,
            "not a readable OpenSSH private key",
        ),
        case(
            "garbage",
            |s| fs::write(machine_keys(s).join("worker"), [7; 400]).unwrap(),
            3,
            "not a readable OpenSSH private key",
        ),
        case(
            "an open key",
            |s| chmod(&machine_keys(s).join("worker"), 0o644),
            3,
            "chmod 600",
        ),
        case(
            "an open key of a person",
            |s| chmod(&own_key(s), 0o644),
            3,
            "chmod 600",
        ),
        case(
            "no key of a person",
            |s| fs::remove_file(own_key(s)).unwrap(),
            3,
            "no SSH key was found",
        ),
        case(
            "a key that the policy does not know",
            |s| {
                fs::remove_file(own_key(s)).unwrap();
                s.env.add_key("id_ed25519");
            },
            4,
            "belongs to nobody in the policy",
        ),
        case(
            "a machine key that the policy does not know",
            |s| {
                s.env.add_key("other");
                fs::copy(
                    s.env.home().join(".ssh/other"),
                    machine_keys(s).join("worker"),
                )
                .unwrap();
            },
            4,
            "belongs to nobody in the policy",
        ),
        case(
            "an unknown algorithm",
            |s| {
                let path = s.env.home().join(".ssh/odd.pub");
                fs::write(&path, "ssh-weird AAAACXNzaC13ZWlyZAAAAAA= x\n").unwrap();
                s.env.git(
                    &s.repo,
                    &["config", "user.signingKey", path.to_str().unwrap()],
                );
                s.env.git(&s.repo, &["config", "gpg.format", "ssh"]);
            },
            3,
            "keys of kind `ssh-weird` are not accepted",
        ),
        case(
            "an agent that is gone",
            |s| {
                let public = fs::read_to_string(own_key(s).with_extension("pub")).unwrap();
                fs::remove_file(own_key(s)).unwrap();
                let literal = format!("key::{}", public.trim());
                s.env.git(&s.repo, &["config", "user.signingKey", &literal]);
                s.env.git(&s.repo, &["config", "gpg.format", "ssh"]);
            },
            3,
            "no ssh-agent has its private half",
        ),
    ];
    for case in &cases {
        let scene = Scene::new();
        (case.make)(&scene);
        let mut command = scene.command(&["run", "KAN-80"]);
        command.env("SSH_AUTH_SOCK", scene.env.root().join("no-socket"));
        let ran = scene.ran(&["run"], &command.output().unwrap());
        check(case, &scene, &ran);
        assert!(
            scene.dossier().runs.is_empty(),
            "{}: an agent was started",
            case.name
        );
    }
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
#[ignore = "heavy: a whole flow in each kind of repository"]
#[expect(clippy::too_many_lines, reason = "a table")]
fn odd_repositories_that_work() {
    let all: [(&str, Make); 7] = [
        ("detached and dirty", |s| {
            s.env.git(&s.repo, &["checkout", "-q", "--detach"]);
            file(s, "calc.sh", "dirty\n");
            file(s, "untracked", "new\n");
        }),
        ("a linked worktree", |s| {
            s.env.git(
                &s.repo,
                &["worktree", "add", "-q", "../linked", "-b", "side"],
            );
        }),
        ("submodule and LFS pointer", |s| {
            let lib = s.env.repo("lib", &[("a", "b\n")]);
            s.env.git(
                &s.repo,
                &[
                    "-c",
                    "protocol.file.allow=always",
                    "submodule",
                    "add",
                    "-q",
                    lib.to_str().unwrap(),
                    "lib",
                ],
            );
            let pointer = format!(
                "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 12345\n",
                "4d".repeat(32)
            );
            file(s, "big.bin", &pointer);
            s.commit("submodule and pointer");
            // Only now, so that Git needs no filter program for the commit itself.
            file(
                s,
                ".gitattributes",
                "*.bin filter=lfs diff=lfs merge=lfs -text\n",
            );
            s.env
                .git(&s.repo, &["config", "filter.lfs.smudge", "false"]);
            s.env.git(&s.repo, &["config", "filter.lfs.clean", "cat"]);
            s.commit("attributes");
        }),
        ("names that are no text", |s| {
            fs::write(s.repo.join(OsStr::from_bytes(b"f\xff\xfe name\n")), "x").unwrap();
            s.commit("odd name");
        }),
        ("a folder with spaces that is no text", |s| {
            let folder = s.env.root().join(OsStr::from_bytes(b"sp ace\n\xff"));
            fs::rename(&s.repo, &folder).unwrap();
            s.repo = folder;
        }),
        ("packed", |s| {
            s.env.git(&s.repo, &["gc", "-q", "--prune=now"]);
        }),
        ("a clock in 1970", |s| {
            let mut command = s.command(&["task", "comment", "KAN-80", "before time"]);
            command.env("HANGAR_NOW", "1960-01-01T00:00:00Z");
            s.ran(&["task"], &command.output().unwrap()).success();
        }),
    ];
    for (name, make) in all {
        let mut scene = Scene::without_task("");
        if name != "a clock in 1970" {
            make(&mut scene);
        }
        scene.task();
        if name == "a clock in 1970" {
            make(&mut scene);
        }
        scene.finish();
        let ran = scene
            .hangar(&["task", "show", "KAN-80", "--json"])
            .success();
        assert_eq!(ran.json()["state"], "done", "{name}");
        scene.check_whole(name);
        scene.check_swept(name);
        if name == "detached and dirty" {
            assert_eq!(
                fs::read_to_string(scene.repo.join("calc.sh")).unwrap(),
                "dirty\n"
            );
        }
    }
}

#[test]
#[ignore = "heavy: a whole flow in a bare, a shallow and a SHA-256 repository"]
fn bare_shallow_and_sha256_repositories() {
    for kind in ["bare", "shallow", "sha256"] {
        let mut scene = Scene::without_task("");
        let url = format!("file://{}", scene.repo.display());
        let other = scene.env.root().join(kind);
        let to = other.to_str().unwrap().to_owned();
        let root = scene.env.root().to_owned();
        match kind {
            "bare" => drop(
                scene
                    .env
                    .git(&root, &["clone", "-q", "--mirror", &url, &to]),
            ),
            "shallow" => {
                scene
                    .env
                    .git(&root, &["clone", "-q", "--depth", "1", &url, &to]);
                scene.env.git(
                    &other,
                    &["fetch", "-q", "origin", "refs/hangar/*:refs/hangar/*"],
                );
            }
            _ => {
                scene
                    .env
                    .git(&root, &["init", "-q", "--object-format=sha256", &to]);
                fs::copy(scene.repo.join("calc.sh"), other.join("calc.sh")).unwrap();
                let text = fs::read_to_string(scene.repo.join("hangar.toml")).unwrap();
                let open: String = text
                    .lines()
                    .filter(|line| !line.starts_with("repo =") && *line != "[trust]")
                    .fold(String::new(), |all, line| all + line + "\n");
                fs::write(other.join("hangar.toml"), open).unwrap();
            }
        }
        scene.repo = other;
        if kind == "sha256" {
            scene.commit("first");
            scene.hangar(&["init", "--yes"]).success();
            scene.commit("set up hangar");
        }
        scene.task();
        scene.finish();
        scene.check_whole(kind);
        scene.check_swept(kind);
    }
}

#[test]
#[ignore = "heavy: many repositories"]
fn repositories_that_cannot_be_used_say_what_to_do() {
    let scene = Scene::without_task("");
    let root = scene.env.root().to_owned();
    let at = |dir: &Path, args: &[&str]| {
        let mut command = scene.command(args);
        scene.ran(args, &command.current_dir(dir).output().unwrap())
    };
    fs::create_dir(root.join("none")).unwrap();
    let ran = at(&root.join("none"), &["task", "list"]).exits(3);
    assert!(ran.stderr.contains("git init"), "{ran}");
    scene.env.git(&root, &["init", "-q", "fresh"]);
    let ran = at(&root.join("fresh"), &["init", "--yes"]).exits(3);
    assert!(ran.stderr.contains("no commit yet"), "{ran}");
    scene.env.git(&root, &["init", "-q", "--bare", "empty.git"]);
    at(&root.join("empty.git"), &["init", "--yes"]).exits(3);
    scene.env.git(&root, &["init", "-q", "plain"]);
    scene.env.git(
        &root.join("plain"),
        &["commit", "-q", "--allow-empty", "-m", "x"],
    );
    let ran = at(&root.join("plain"), &["run", "x"]).exits(3);
    assert!(ran.stderr.contains("hangar init"), "{ran}");
    let mut git = scene.env.command("git", &root);
    git.args(["init", "-q", "--ref-format=reftable", "table"]);
    // Older versions of Git know no other format.
    if git.output().unwrap().status.success() {
        let ran = at(&root.join("table"), &["task", "list"]).exits(3);
        assert!(ran.stderr.contains("git refs migrate"), "{ran}");
    }
}

#[test]
#[ignore = "heavy: a run, up to where it is refused, for each"]
fn a_branch_in_the_way_is_found_before_an_agent_works() {
    for (name, says) in [
        (
            "hangar",
            "refs/heads/hangar/KAN-80 cannot be created while refs/heads/hangar exists",
        ),
        ("hangar/KAN-80", "which this task did not make"),
        (
            "hangar/KAN-80/more",
            "cannot be created while refs/heads/hangar/KAN-80/more exists",
        ),
    ] {
        let scene = Scene::new();
        scene.env.git(&scene.repo, &["branch", name]);
        let ran = scene.hangar(&["run", "KAN-80"]).exits(4);
        assert!(ran.stderr.contains(says), "{ran}");
        assert!(
            scene.dossier().runs.is_empty(),
            "{name}: an agent was started"
        );
        scene
            .env
            .git(&scene.repo, &["branch", "-q", "-m", name, "out-of-the-way"]);
        scene.finish();
        scene.check_whole(name);
    }
}

#[test]
#[ignore = "heavy: a repository for each"]
fn configurations_that_cannot_be_used() {
    for (text, code, says) in [
        (None, 3, "no hangar.toml"),
        (Some("this is [ not toml"), 2, "hangar.toml:1"),
        (Some("format = 99\n"), 2, "format"),
        (
            Some("format = 1\n[harness.x]\nkind = \"script\"\n"),
            4,
            "harness",
        ),
    ] {
        let scene = Scene::without_task("");
        match text {
            Some(text) => file(&scene, "hangar.toml", text),
            None => fs::remove_file(scene.repo.join("hangar.toml")).unwrap(),
        }
        scene.commit("break it");
        let args = ["task", "new", "X", "--criterion", "y", "--test-first"];
        let ran = scene.hangar(&args);
        assert_eq!(ran.code, Some(code), "{text:?}: {ran}");
        assert!(ran.stderr.contains(says), "{text:?}: {ran}");
    }
}

#[test]
#[ignore = "heavy: a command for each"]
fn a_home_that_is_not_there() {
    let scene = Scene::new();
    for home in [None, Some(""), Some("relative")] {
        let mut command = scene.command(&["run", "KAN-80"]);
        for name in ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"] {
            command.env_remove(name);
        }
        if let Some(home) = home {
            command.env("HOME", home);
        }
        let ran = scene.ran(&["run"], &command.output().unwrap()).exits(3);
        assert!(ran.stderr.contains("HOME is not set"), "{ran}");
    }
    scene.finish();
}

/// Mounts a small file system over a folder while the value lives.
struct Small(PathBuf);

impl Small {
    /// `None` where this user may not mount.
    fn over(path: &Path, options: &str) -> Option<Self> {
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(path)
            .output();
        status
            .unwrap()
            .status
            .success()
            .then(|| Self(path.to_owned()))
    }

    fn remount(&self, options: &str) {
        let status = Command::new("mount")
            .args(["-o", options])
            .arg(&self.0)
            .status()
            .unwrap();
        assert!(status.success());
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
#[ignore = "heavy: needs root, to mount small file systems"]
fn a_full_disk_and_a_read_only_repository_lose_nothing() {
    let mut scene = Scene::new();
    let small = scene.env.root().join("small");
    fs::create_dir(&small).unwrap();
    let Some(mounted) = Small::over(&small, "size=3m,mode=755") else {
        eprintln!("not run: this user may not mount");
        return;
    };
    let copied = Command::new("cp")
        .arg("-a")
        .arg(&scene.repo)
        .arg(&small)
        .status()
        .unwrap();
    assert!(copied.success());
    scene.repo = small.join("repo");
    let before = scene.refs();

    mounted.remount("remount,ro");
    let ran = scene.hangar(&["run", "KAN-80"]).exits(7);
    assert!(ran.stderr.contains("Read-only file system"), "{ran}");
    scene.hangar(&["task", "list"]).success();
    mounted.remount("remount,rw");
    assert_eq!(scene.refs(), before);

    let filler = small.join("filler");
    for room in [0, 8, 16, 32, 64] {
        fs::remove_file(&filler).unwrap_or_default();
        fill(&filler, room);
        let ran = scene.hangar(&["run", "KAN-80"]);
        match ran.code {
            Some(7) => assert!(ran.stderr.contains("No space left on device"), "{ran}"),
            Some(6) => {}
            _ => panic!("{ran}"),
        }
        scene
            .env
            .git(&scene.repo, &["fsck", "--strict", "--no-dangling"]);
        assert!(scene.dossier().faults.is_empty());
    }
    fs::remove_file(&filler).unwrap();
    scene.finish();
    scene
        .env
        .git(&scene.repo, &["fsck", "--strict", "--no-dangling"]);
    assert_eq!(scene.dossier().seals.len(), 1);
}

/// Fills the file system but for so many KiB.
fn fill(path: &Path, room: u64) {
    use std::io::Write as _;
    let mut file = fs::File::create(path).unwrap();
    let block = [0_u8; 4096];
    let mut written = 0;
    while file.write_all(&block).is_ok() {
        written += 4096;
    }
    file.set_len(written.max(room * 1024) - room * 1024)
        .unwrap();
}
