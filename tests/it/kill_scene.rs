//! A user with scripted agents and a copy of the binary of their own, so that whatever is left of
//! it (processes, mounts, files) can be told apart from what other tests do.

use super::common::{Ran, TestEnv, write};
use hangar::base::clock::Clock;
use hangar::git::Repository;
use hangar::model::ids::TaskId;
use hangar::store::Store;
use hangar::store::dossier::Dossier;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// A word that stands in a hidden test and nowhere else.
pub(crate) const NEEDLE: &str = "zebra-of-the-hidden-tests";
/// The name of a hidden test.
pub(crate) const HIDDEN_ID: &str = "okapi_subtracts.sh";
/// The map that fits the writer's files.
pub(crate) const MAP: &str = r#"{"format": 1, "criteria": {"c1": ["tests/okapi_subtracts.sh"]},
 "others": ["tests/guard.sh"], "sentinels": [], "notes": ""}"#;

pub(crate) struct Scene {
    pub(crate) env: TestEnv,
    pub(crate) repo: PathBuf,
    binary: PathBuf,
}

impl Scene {
    /// A repository that is set up, and a draft task `KAN-80`; the writer's tests are good, the
    /// first implementation is right.
    pub(crate) fn new() -> Self {
        let scene = Self::without_task("");
        scene.task();
        scene
    }

    /// The same without the task. `more` stands in the table `[grader]` of `hangar.toml`.
    pub(crate) fn without_task(more: &str) -> Self {
        let env = TestEnv::new();
        fs::set_permissions(env.root(), fs::Permissions::from_mode(0o755)).unwrap();
        let binary = env.root().join("hangar-of-this-test");
        let built = Path::new(env!("CARGO_BIN_EXE_hangar"));
        if fs::hard_link(built, &binary).is_err() {
            fs::copy(built, &binary).unwrap();
        }
        fs::create_dir(env.root().join("tmp")).unwrap();
        let repo = env.repo("repo", &[("calc.sh", "echo 0\n")]);
        let scene = Self { env, repo, binary };
        scene.hangar(&["init", "--yes"]).success();
        let text = fs::read_to_string(scene.repo.join("hangar.toml")).unwrap();
        let pin = text
            .lines()
            .find(|line| line.starts_with("repo ="))
            .unwrap();
        let config = format!(
            "format = 1\n[trust]\n{pin}\n[task]\nflow = \"test-first\"\n[grader]\nframework = \"exec\"\n\
             tests = [\"tests/\"]\n{more}\n[deliver]\nas = \"branch\"\nbranch = \"hangar/{{key}}\"\n"
        );
        write(&scene.repo.join("hangar.toml"), &config);
        scene.commit("set up hangar");
        scene.script("writer/writer/1/out/sealed/criteria.json", MAP);
        let hidden =
            format!("#!/bin/sh\n# {NEEDLE}\nsleep 0.1\ntest \"$(sh ./calc.sh 5 3)\" = 2\n");
        scene.script(
            &format!("writer/writer/1/out/sealed/tests/{HIDDEN_ID}"),
            &hidden,
        );
        scene.script(
            "writer/writer/1/out/sealed/tests/guard.sh",
            "#!/bin/sh\ntest -e calc.sh\n",
        );
        scene.script("writer/writer/1/sleep", "200ms");
        scene.script("coder/implementer/1/src/calc.sh", "echo $(($1 - $2))\n");
        scene.script("coder/implementer/1/sleep", "200ms");
        let agents = scene.env.root().join("agents");
        let harness = |name: &str| {
            let dir = agents.join(name);
            format!(
                "[harness.{name}]\nkind = \"script\"\ndir = \"{}\"\n",
                dir.display()
            )
        };
        let user = format!(
            "{}{}[lanes]\nwriter = [\"writer\"]\nimplementer = [\"coder\"]\n",
            harness("writer"),
            harness("coder")
        );
        scene.env.write_home(".config/hangar/config.toml", &user);
        scene
    }

    /// Makes the task.
    pub(crate) fn task(&self) {
        let args = [
            "task",
            "new",
            "Subtract",
            "--criterion",
            "5 3 gives 2",
            "--key",
            "KAN-80",
        ];
        self.hangar(&args).success();
    }

    /// A file of the scripted agents.
    pub(crate) fn script(&self, path: &str, text: &str) {
        let path = self.env.root().join("agents").join(path);
        write(&path, text);
        if text.starts_with("#!") {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    /// Commits everything.
    pub(crate) fn commit(&self, message: &str) {
        self.env.git(&self.repo, &["add", "-A"]);
        self.env.git(
            &self.repo,
            &["commit", "-q", "--allow-empty", "-m", message],
        );
    }

    /// hangar in the repository, not started yet. The clock counts on with every command.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.env.command(self.binary.to_str().unwrap(), &self.repo);
        command
            .args(args)
            .env("TMPDIR", self.env.root().join("tmp"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs hangar in the repository to its end.
    pub(crate) fn hangar(&self, args: &[&str]) -> Ran {
        self.ran(args, &self.command(args).output().unwrap())
    }

    /// What a finished command left, with the usual checks: no panic, nothing secret said.
    pub(crate) fn ran(&self, args: &[&str], output: &Output) -> Ran {
        let ran = self.env.ran(args, output);
        for text in [&ran.stdout, &ran.stderr] {
            assert!(!text.contains("has a fault at"), "{ran}");
            // `review` is for those who may read the tests.
            if args.first() != Some(&"review") {
                assert!(!text.contains(NEEDLE) && !text.contains(HIDDEN_ID), "{ran}");
            }
        }
        ran
    }

    /// Starts hangar and leaves it running.
    pub(crate) fn start(&self, args: &[&str]) -> Child {
        self.command(args).spawn().unwrap()
    }

    /// Looks at the newest version and approves it.
    pub(crate) fn approve(&self) {
        self.hangar(&["review", "KAN-80", "--tests"]).success();
        let manifest = self.dossier().seals.last().unwrap().digest().to_string();
        self.hangar(&["approve", "KAN-80", "--digest", &manifest])
            .success();
    }

    /// Drives the task to its end, whatever was done of it already.
    pub(crate) fn finish(&self) {
        for _ in 0..3 {
            let ran = self.hangar(&["run", "KAN-80"]);
            match ran.code {
                Some(0) => return,
                Some(6) => self.approve(),
                _ => panic!("{ran}"),
            }
        }
        panic!("the task did not come to its end");
    }

    /// The only task's documents, verified.
    pub(crate) fn dossier(&self) -> Dossier {
        let clock = Clock::Fixed("2026-01-02T04:00:00Z".parse().unwrap());
        let store = Store::open(Repository::discover(&self.repo).unwrap(), clock).unwrap();
        let (id, _): (TaskId, _) = store.task_refs().unwrap().remove(0);
        store.dossier(&id).unwrap()
    }

    /// What every ref names, as the files say it.
    pub(crate) fn refs(&self) -> BTreeMap<String, String> {
        let args = ["for-each-ref", "--format=%(refname) %(objectname)"];
        let text = self.env.git(&self.repo, &args);
        text.lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(name, id)| (name.to_owned(), id.to_owned()))
            .collect()
    }

    /// Loose hangar refs and branches, read without a program: cheap enough to look all the time.
    pub(crate) fn quick_refs(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        for folder in ["refs/hangar", "refs/heads"] {
            walk(&self.repo.join(".git").join(folder), &mut |path| {
                if path.extension().is_none_or(|end| end != "lock")
                    && let Ok(text) = fs::read_to_string(path)
                    && !text.is_empty()
                {
                    found.insert(path.to_owned(), text);
                }
            });
        }
        found
    }

    /// Asserts what must hold at any moment, with no hangar running.
    pub(crate) fn check_whole(&self, when: &str) {
        self.env
            .git(&self.repo, &["fsck", "--strict", "--no-dangling"]);
        let dossier = self.dossier();
        assert!(dossier.faults.is_empty(), "{when}: {:?}", dossier.faults);
        let faults = &dossier.history.faults;
        assert!(faults.is_empty(), "{when}: {faults:?}");
        self.check_no_plaintext(when);
        let root = self.env.root().to_str().unwrap();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(root), "{when}: a mount is left\n{mounts}");
    }

    /// No file but the scripts, and no object, holds a line of a hidden test.
    fn check_no_plaintext(&self, when: &str) {
        let agents = self.env.root().join("agents");
        walk(self.env.root(), &mut |path| {
            if path.starts_with(&agents) || path == self.binary {
                return;
            }
            let bytes = fs::read(path).unwrap_or_default();
            assert!(
                !contains(&bytes, NEEDLE),
                "{when}: a hidden test lies in {}",
                path.display()
            );
        });
        let mut git = self.env.command("git", &self.repo);
        git.args(["cat-file", "--batch-all-objects", "--batch", "--buffer"]);
        let objects = git.output().unwrap().stdout;
        assert!(
            !contains(&objects, NEEDLE),
            "{when}: a hidden test is in the object database"
        );
    }

    /// Waits until no process of this scene is left; what dies with its parent needs a moment.
    pub(crate) fn check_no_process(&self, when: &str) {
        let mut left = Vec::new();
        for _ in 0..400 {
            left = self.processes();
            if left.is_empty() {
                return;
            }
            std::thread::sleep(Duration::from_millis(25));
        }
        panic!("{when}: still alive: {left:?}");
    }

    /// Processes that run this scene's binary, or that see this scene's folder mounted.
    pub(crate) fn processes(&self) -> Vec<(u32, String)> {
        let root = self.env.root().to_str().unwrap();
        let pids = fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.filter_map(|pid| {
            let proc = PathBuf::from(format!("/proc/{pid}"));
            let state = fs::read_to_string(proc.join("stat")).ok()?;
            // A zombie is dead; whoever inherits it collects it.
            if state.rsplit_once(") ")?.1.starts_with('Z') {
                return None;
            }
            let exe = fs::read_link(proc.join("exe")).unwrap_or_default();
            let words = fs::read(proc.join("cmdline")).unwrap_or_default();
            let mounts = fs::read(proc.join("mountinfo")).unwrap_or_default();
            let ours = exe.starts_with(root) || contains(&words, root) || contains(&mounts, root);
            ours.then(|| (pid, String::from_utf8_lossy(&words).replace('\0', " ")))
        })
        .collect()
    }

    /// Nothing lies in the work folders.
    pub(crate) fn check_swept(&self, when: &str) {
        let work = self.env.home().join(".cache/hangar/work");
        let left: Vec<_> = match fs::read_dir(&work) {
            Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => panic!("{error}"),
        };
        assert!(left.is_empty(), "{when}: {left:?}");
        let tmp = fs::read_dir(self.env.root().join("tmp")).unwrap().count();
        assert_eq!(tmp, 0, "{when}: something lies in the temporary folder");
    }
}

/// Whether `bytes` hold the text.
pub(crate) fn contains(bytes: &[u8], text: &str) -> bool {
    String::from_utf8_lossy(bytes).contains(text)
}

/// Every regular file below a folder.
pub(crate) fn walk(dir: &Path, visit: &mut dyn FnMut(&Path)) {
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    for entry in entries.flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk(&entry.path(), visit),
            Ok(kind) if kind.is_file() => visit(&entry.path()),
            _ => {}
        }
    }
}
