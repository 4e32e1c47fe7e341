//! Specifications and runs for the sandbox tests.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests, which fail by panicking"
)]

use hangar::base::{files, process};
use hangar::sandbox::spec::{Limits, Network, Outcome, Spec, Step};
use hangar::sandbox::{Cancel, Error, Event, Launcher, Provider, provider};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;
use tempfile::TempDir;

/// The embedded provider.
pub(crate) const LINUX: &str = "linux";

thread_local! {
    /// The provider that this test tries.
    static PROVIDER: Cell<&'static str> = const { Cell::new(LINUX) };
}

/// Runs a test of the embedded provider with another one.
pub(crate) fn with(provider: &'static str, test: fn()) {
    PROVIDER.set(provider);
    test();
}

/// Whether a container engine makes the walls.
pub(crate) fn contained() -> bool {
    ["podman", "docker"].contains(&tried())
}

/// Whether programs may change a folder of the host: ordinary users' containers and kernels let none.
pub(crate) fn changes_the_host() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    let may = is_root || !(contained() || tried() == "gvisor");
    if !may {
        println!("not as root: {} lets no program change the host", tried());
    }
    may
}

/// The provider that this test tries.
pub(crate) fn tried() -> &'static str {
    PROVIDER.get()
}

/// Processes that a shell script which pipes one command into another sees at most.
pub(crate) fn visible() -> u32 {
    // Where another program made the walls, hangar's own two are not hidden.
    if tried() == LINUX { 3 } else { 5 }
}

/// Who runs hangar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// Whoever runs the tests.
    Us,
    /// An ordinary user, when the tests run as root.
    User,
}

impl Who {
    /// Everybody who can be tried here.
    pub(crate) fn all() -> Vec<Self> {
        if contained() || tried() == "gvisor" {
            // Much of it is made by the process that asks, which is the tests' own here.
            vec![Self::Us]
        } else if rustix::process::geteuid().is_root() && as_user().is_some() {
            vec![Self::Us, Self::User]
        } else {
            println!("not as root: only the tests' own user is tried");
            vec![Self::Us]
        }
    }

    /// The hangar program as that user.
    pub(crate) fn program(self) -> PathBuf {
        match self {
            Self::Us => PathBuf::from(env!("CARGO_BIN_EXE_hangar")),
            Self::User => as_user().unwrap().clone(),
        }
    }

    /// The provider as that user would have it.
    pub(crate) fn provider(self) -> Box<dyn Provider> {
        let launcher = Launcher {
            program: self.program(),
            image: super::image::of(tried()),
        };
        provider(tried(), &launcher).unwrap()
    }

    /// Runs `spec`.
    pub(crate) fn run(self, spec: &Spec) -> Result<Outcome, Error> {
        self.provider()
            .run(spec, &Cancel::default(), &mut |_: Event| {})
    }

    /// Runs one script in an otherwise empty sandbox.
    pub(crate) fn script(self, text: &str) -> Outcome {
        self.run(&Spec {
            steps: vec![sh(text)],
            ..spec()
        })
        .unwrap()
    }

    /// Standard output of a script.
    pub(crate) fn says(self, text: &str) -> String {
        out(&self.script(text))
    }
}

/// A program that becomes an ordinary user and then hangar.
fn as_user() -> Option<&'static PathBuf> {
    static WRAPPER: OnceLock<Option<PathBuf>> = OnceLock::new();
    WRAPPER
        .get_or_init(|| {
            let setpriv = process::find(Path::new("setpriv"))?;
            let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("as-user");
            let text = format!(
                "#!/bin/sh\nexec {} --reuid=65534 --regid=65534 --clear-groups -- {} \"$@\"\n",
                setpriv.display(),
                env!("CARGO_BIN_EXE_hangar")
            );
            // Written by another process: a descriptor of ours, open for writing, could be in a
            // child that another test starts just now, and then the file can't be executed.
            let written = process::Run::new("/bin/sh")
                .args([
                    "-c",
                    "cat > \"$0\".new && chmod 755 \"$0\".new && mv \"$0\".new \"$0\"",
                ])
                .arg(&path)
                .env("PATH", "/usr/bin:/bin")
                .stdin(text.into_bytes())
                .output()
                .unwrap();
            assert!(written.status.success());
            Some(path)
        })
        .as_ref()
}

/// A sandbox of nothing but the fixed parts.
pub(crate) fn spec() -> Spec {
    Spec {
        mounts: Vec::new(),
        files: Vec::new(),
        network: Network::None,
        limits: Limits {
            output: Some(1 << 20),
            ..Limits::default()
        },
        inner_domain: true,
        hash_after: Vec::new(),
        collect: Vec::new(),
        steps: Vec::new(),
        stop_on_failure: false,
        deadline: None,
    }
}

/// A step that runs a shell script.
pub(crate) fn sh(script: &str) -> Step {
    Step {
        argv: vec!["/bin/sh".into(), "-c".into(), script.into()],
        env: BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())]),
        dir: PathBuf::from("/"),
        stdin: Vec::new(),
        channel: false,
        timeout: Duration::from_secs(30),
        idle: None,
    }
}

/// Standard output of the first step as text.
pub(crate) fn out(outcome: &Outcome) -> String {
    text(&outcome.steps[0].stdout)
}

/// Standard error of the first step as text.
pub(crate) fn err(outcome: &Outcome) -> String {
    text(&outcome.steps[0].stderr)
}

/// Bytes as text.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A host folder that belongs to the user whom sandboxes run as (the ordinary user is the same).
pub(crate) fn folder(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    hand_over(dir.path());
    for (name, content) in files {
        write(&dir.path().join(name), content);
    }
    dir
}

/// Writes such a file, and its folders.
pub(crate) fn write(path: &Path, content: &str) {
    let parent = path.parent().unwrap();
    if !parent.exists() {
        fs::create_dir_all(parent).unwrap();
        hand_over(parent);
    }
    files::write_atomic(path, content.as_bytes(), 0o644).unwrap();
    hand_over(path);
}

/// Gives `path` to the user whom sandboxes run as, open to everyone else's eyes.
pub(crate) fn hand_over(path: &Path) {
    let (uid, gid) = hangar::sandbox::owner();
    std::os::unix::fs::lchown(path, Some(uid), Some(gid)).unwrap();
    if path.is_dir() {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// Process ids on the host whose command line holds `marker`.
pub(crate) fn processes_with(marker: &str) -> Vec<String> {
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|entry| {
            fs::read(entry.path().join("cmdline"))
                .is_ok_and(|line| text(&line).replace('\0', " ").contains(marker))
        })
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Waits until `done`; fails after some seconds.
pub(crate) fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    for _ in 0..1000 {
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never happened: {what}");
}
