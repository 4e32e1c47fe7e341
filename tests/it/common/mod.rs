//! A user of their own for each test: home folder, keys, Git configuration, a clock that counts.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "helpers of tests: scratch files, and programs as a user starts them"
)]

pub(crate) mod founded;
pub(crate) mod git;
pub(crate) mod hub;
pub(crate) mod policy;

use hangar::trust;
use std::cell::Cell;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// When the first command runs.
pub(crate) const START: &str = "2026-01-02T03:04:05Z";

/// A home folder, and commands that see nothing else of the machine.
pub(crate) struct TestEnv {
    root: TempDir,
    home: PathBuf,
    seconds: Cell<i64>,
}

/// Waits for programs that were started side by side; each must end well.
#[track_caller]
pub(crate) fn all_end_well(running: Vec<Child>) {
    for child in running {
        let out = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{said}");
    }
}

impl TestEnv {
    /// A user called alice with one plain key, `~/.ssh/id_ed25519`.
    pub(crate) fn new() -> Self {
        let env = Self::without_key();
        env.add_key("id_ed25519");
        env
    }

    /// A user called alice without a key.
    pub(crate) fn without_key() -> Self {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join("home");
        let env = Self {
            root,
            home,
            seconds: Cell::new(0),
        };
        env.set_up_home("alice");
        env
    }

    /// Another user of the same machine, with a home and a key of their own.
    pub(crate) fn user(&self, name: &str) -> Self {
        let env = Self {
            root: tempfile::tempdir().unwrap(),
            home: self.root.path().join(format!("home-{name}")),
            seconds: Cell::new(1000),
        };
        env.set_up_home(name);
        env.add_key("id_ed25519");
        env
    }

    fn set_up_home(&self, name: &str) {
        fs::create_dir_all(self.home.join(".ssh")).unwrap();
        let config = format!(
            "[user]\n\tname = {name}\n\temail = {name}@example.com\n[init]\n\tdefaultBranch = main\n[core]\n\tautocrlf = false\n"
        );
        self.write_home(".gitconfig", &config);
    }

    /// Makes `~/.ssh/NAME` and returns its public half.
    pub(crate) fn add_key(&self, name: &str) -> String {
        let (secret, public) = trust::generate_machine_key();
        let path = self.home.join(".ssh").join(name);
        fs::write(&path, secret.expose()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(path.with_extension("pub"), format!("{}\n", public.as_str())).unwrap();
        public.as_str().to_owned()
    }

    /// The public half of `~/.ssh/id_ed25519`.
    pub(crate) fn public_key(&self) -> String {
        let path = self.home.join(".ssh/id_ed25519.pub");
        fs::read_to_string(path).unwrap().trim().to_owned()
    }

    /// The folder that holds everything of this user's test.
    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    /// The home folder.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// Writes a file below the home folder.
    pub(crate) fn write_home(&self, path: &str, text: &str) {
        write(&self.home.join(path), text);
    }

    /// A repository with one commit that holds these files.
    pub(crate) fn repo(&self, name: &str, files: &[(&str, &str)]) -> PathBuf {
        let dir = self.root().join(name);
        self.git(self.root(), &["init", "-q", name]);
        for (path, text) in files {
            write(&dir.join(path), text);
        }
        self.git(&dir, &["add", "-A"]);
        self.git(&dir, &["commit", "-q", "--allow-empty", "-m", "first"]);
        dir
    }

    /// A repository with a small Python project, set up with `hangar init` and committed.
    pub(crate) fn ready(&self, name: &str) -> PathBuf {
        let dir = self.repo(
            name,
            &[
                ("calc.py", "def add(a, b):\n    return a + b\n"),
                ("tests/test_calc.py", "import unittest\n"),
            ],
        );
        self.hangar(&dir, &["init", "--yes"]).success();
        self.commit(&dir, "set up hangar");
        dir
    }

    /// Commits everything that is not ignored; there must be something.
    pub(crate) fn commit(&self, dir: &Path, message: &str) {
        self.git(dir, &["add", "-A"]);
        self.git(dir, &["commit", "-q", "-m", message]);
    }

    /// Runs git as this user; it must succeed.
    pub(crate) fn git(&self, dir: &Path, args: &[&str]) -> String {
        let out = self
            .command("git", dir)
            .args(args)
            .output()
            .expect("git runs");
        assert!(
            out.status.success(),
            "git {args:?}: {}",
            String::from_utf8_lossy(&out.stderr)
        );
        String::from_utf8_lossy(&out.stdout).trim_end().to_owned()
    }

    /// Runs hangar as this user.
    pub(crate) fn hangar(&self, dir: &Path, args: &[&str]) -> Ran {
        self.hangar_with(dir, args, &[], "")
    }

    /// What hangar answers with `--json`; it must succeed.
    #[track_caller]
    pub(crate) fn json(&self, dir: &Path, args: &[&str]) -> serde_json::Value {
        let args = [args, &["--json"]].concat();
        self.hangar(dir, &args).success().json()
    }

    /// Runs hangar with more environment (an empty value removes the variable) and with input.
    pub(crate) fn hangar_with(
        &self,
        dir: &Path,
        args: &[&str],
        vars: &[(&str, &str)],
        stdin: &str,
    ) -> Ran {
        let mut command = self.command(env!("CARGO_BIN_EXE_hangar"), dir);
        command.args(args);
        for (name, value) in vars {
            match *value {
                "" => command.env_remove(name),
                value => command.env(name, value),
            };
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("hangar starts");
        // A command that reads no input may be gone already.
        let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
        let ran = self.ran(args, &child.wait_with_output().expect("hangar ends"));
        if vars.is_empty() {
            crate::verify::second::compare_command(self, dir, args, &ran);
        }
        ran
    }

    /// A finished command as this user's.
    pub(crate) fn ran(&self, args: &[&str], out: &Output) -> Ran {
        Ran {
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            code: out.status.code(),
            stdout: String::from_utf8_lossy(&out.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&out.stderr).into_owned(),
            root: self.root().to_owned(),
        }
    }

    /// Lets days go by.
    pub(crate) fn pass_days(&self, days: i64) {
        self.seconds.set(self.seconds.get() + days * 24 * 60 * 60);
    }

    /// A program with this user's environment and the next second of the clock.
    pub(crate) fn command(&self, program: &str, dir: &Path) -> Command {
        let start: jiff::Timestamp = START.parse().unwrap();
        self.seconds.set(self.seconds.get() + 1);
        let now = jiff::Timestamp::from_second(start.as_second() + self.seconds.get()).unwrap();
        let mut command = Command::new(program);
        let path: OsString = std::env::var_os("PATH").unwrap_or_default();
        command
            .current_dir(dir)
            .env_clear()
            .env("PATH", path)
            .env("HOME", &self.home)
            .env("XDG_CONFIG_HOME", self.home.join(".config"))
            .env("XDG_DATA_HOME", self.home.join(".local/share"))
            .env("XDG_CACHE_HOME", self.home.join(".cache"))
            .env("LC_ALL", "C.UTF-8")
            .env("TZ", "UTC")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_DATE", START)
            .env("GIT_COMMITTER_DATE", START)
            .env("HANGAR_NOW", now.to_string());
        command
    }
}

/// Writes a file and its folders.
pub(crate) fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// What a command left.
pub(crate) struct Ran {
    args: Vec<String>,
    /// Exit code; `None` when a signal ended it.
    pub(crate) code: Option<i32>,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
    root: PathBuf,
}

impl Ran {
    /// Asserts exit code 0.
    #[track_caller]
    pub(crate) fn success(self) -> Self {
        self.exits(0)
    }

    /// Asserts an exit code.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self}");
        self
    }

    /// Standard output without its last line break.
    pub(crate) fn text(&self) -> &str {
        self.stdout.trim_end_matches('\n')
    }

    /// Standard output as one JSON document.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self}"))
    }

    /// Standard error as one JSON document.
    #[track_caller]
    pub(crate) fn json_error(&self) -> serde_json::Value {
        serde_json::from_str(&self.stderr).unwrap_or_else(|error| panic!("{error}: {self}"))
    }

    /// Everything as one text for a snapshot: what differs from run to run is replaced. `words`
    /// are further texts to replace, such as a short task id, with what stands for them.
    pub(crate) fn snapshot(&self, words: &[(&str, &str)]) -> String {
        let code = self.code.map_or("signal".into(), |code| code.to_string());
        let text = format!(
            "exit {code}\n--- stdout\n{}--- stderr\n{}",
            self.stdout, self.stderr
        );
        let replace = |text: String, (from, to): &(&str, &str)| text.replace(from, to);
        words.iter().fold(stable(&text, &self.root), replace)
    }
}

impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (code, args) = (self.code, self.args.join(" "));
        write!(
            f,
            "hangar {args}: {code:?}\nstdout:\n{}\nstderr:\n{}",
            self.stdout, self.stderr
        )
    }
}

/// `text` without what differs from run to run: the folder, ids, digests, keys.
pub(crate) fn stable(text: &str, root: &Path) -> String {
    let text = text.replace(&root.display().to_string(), "[ROOT]");
    let mut out = String::with_capacity(text.len());
    let mut word = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || matches!(c, ':' | '+' | '/' | '_' | '-' | '.') {
            word.push(c);
        } else {
            out.push_str(&stable_word(&word));
            word.clear();
            out.push(c);
        }
    }
    out.push_str(&stable_word(&word));
    out
}

fn stable_word(word: &str) -> String {
    let hex = |text: &str| {
        text.bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    let base32 = |text: &str| {
        text.bytes()
            .all(|b| b.is_ascii_lowercase() || (b'2'..=b'7').contains(&b))
    };
    if let Some(rest) = word.strip_prefix("sha256:")
        && hex(rest)
    {
        return "[DIGEST]".into();
    }
    if word.starts_with("SHA256:") && word.len() == 50 {
        return "[KEY]".into();
    }
    if word.starts_with("AAAA") && word.len() > 60 {
        return "[PUBLIC]".into();
    }
    if word.starts_with("age1") && word.len() == 62 {
        return "[RECIPIENT]".into();
    }
    if let Some((folder, last)) = word.rsplit_once('/')
        && last.len() == 64
        && hex(last)
    {
        return format!("{folder}/[REPO]");
    }
    if word.len() == 40 && hex(word) {
        return "[COMMIT]".into();
    }
    if word.len() == 52 && base32(word) {
        return "[ID]".into();
    }
    // A short digest without any digit comes up once in 130,000.
    if word.len() == 12 && hex(word) && word.bytes().any(|b| b.is_ascii_digit()) {
        return "[SHORT]".into();
    }
    word.to_owned()
}
