//! Which folders of the host a program outside `/usr` needs to run: its toolchain.
//!
//! The program is named by the user's configuration or found by hangar on the host, never by a
//! repository. Only folders that look like a toolchain (`bin` beside `lib`) are bound whole. A
//! home folder, `~/.local` and `~/.cargo` hold credentials and never are; of those only the
//! program's own file is.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

/// Longest chain of links, scripts and virtual environments that is followed.
const MAX_HOPS: usize = 16;

/// A program and what it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolchain {
    /// The program to start inside: the one named, or the real one behind a shim that only works
    /// with its manager (pyenv, rustup).
    pub program: PathBuf,
    /// Host files and folders to bind read-only at the same paths, parents before children. Empty
    /// for what every sandbox has.
    pub binds: Vec<PathBuf>,
}

/// The folders that `program` needs (see [`find`]).
pub fn binds(program: &Path) -> Vec<PathBuf> {
    find(program).binds
}

/// Finds what `program`, an absolute path, needs.
pub fn find(program: &Path) -> Toolchain {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let rustup = std::env::var_os("RUSTUP_HOME").map(PathBuf::from);
    find_with(program, home.as_deref(), rustup.as_deref())
}

fn find_with(program: &Path, home: Option<&Path>, rustup: Option<&Path>) -> Toolchain {
    let program = real_program(program, rustup);
    let mut finder = Finder {
        home,
        rustup,
        found: BTreeSet::new(),
    };
    finder.program(&program, MAX_HOPS);
    let mut binds: Vec<PathBuf> = Vec::new();
    for path in finder.found {
        // Sorted, so a folder comes before what lies in it.
        if !binds.iter().any(|bound| path.starts_with(bound)) {
            binds.push(path);
        }
    }
    Toolchain { program, binds }
}

/// Whether every sandbox has `path`.
fn always_there(path: &Path) -> bool {
    [
        "/usr",
        "/bin",
        "/sbin",
        "/lib",
        "/lib32",
        "/lib64",
        "/nix/store",
        // Debian's links between programs in /usr.
        "/etc/alternatives",
    ]
    .iter()
    .any(|prefix| path.starts_with(prefix))
}

/// The program behind a shim.
fn real_program(program: &Path, rustup: Option<&Path>) -> PathBuf {
    pyenv(program)
        .or_else(|| rustup_proxy(program, rustup))
        .unwrap_or_else(|| program.to_owned())
}

/// `<root>/shims/NAME` stands for `<root>/versions/<version>/bin/NAME`, with the version that the
/// user set for the whole machine. A version named by a folder is not asked for: that would be
/// the repository's word.
fn pyenv(program: &Path) -> Option<PathBuf> {
    let shims = program.parent()?;
    if shims.file_name()? != "shims" {
        return None;
    }
    let root = shims.parent()?;
    let versions = fs::read_to_string(root.join("version")).ok()?;
    versions
        .split_whitespace()
        .map(|version| root.join("versions").join(version).join("bin"))
        .map(|bin| bin.join(program.file_name().unwrap_or_default()))
        .find(|real| real.is_file())
}

/// `~/.cargo/bin/cargo` is the rustup program; the real one is in the default toolchain.
fn rustup_proxy(program: &Path, rustup: Option<&Path>) -> Option<PathBuf> {
    let real = fs::canonicalize(program).ok()?;
    let cargo_bin = program.parent()?;
    if real.file_name()? != "rustup" || program.file_name()? == "rustup" {
        return None;
    }
    let beside = cargo_bin.parent()?.parent()?.join(".rustup");
    let home = rustup.unwrap_or(&beside);
    let settings = fs::read_to_string(home.join("settings.toml")).ok()?;
    let settings: toml::Table = settings.parse().ok()?;
    let default = settings.get("default_toolchain")?.as_str()?;
    let toolchains = home.join("toolchains");
    let bin = |name: &Path| {
        toolchains
            .join(name)
            .join("bin")
            .join(program.file_name()?)
            .into()
    };
    let exact: Option<PathBuf> = bin(Path::new(default));
    exact.filter(|path| path.is_file()).or_else(|| {
        // `stable` stands for `stable-<host>`.
        fs::read_dir(&toolchains)
            .ok()?
            .flatten()
            .map(|entry| entry.file_name())
            .filter(|name| {
                name.as_bytes()
                    .strip_prefix(default.as_bytes())
                    .is_some_and(|rest| rest.starts_with(b"-"))
            })
            .find_map(|name| bin(Path::new(&name)).filter(|path: &PathBuf| path.is_file()))
    })
}

struct Finder<'path> {
    home: Option<&'path Path>,
    rustup: Option<&'path Path>,
    found: BTreeSet<PathBuf>,
}

impl Finder<'_> {
    /// Adds what `program` needs: its place, the places its links lead through, its interpreter
    /// when it is a script.
    fn program(&mut self, program: &Path, hops: usize) {
        if hops == 0 || !program.is_absolute() {
            return;
        }
        self.place(program, hops);
        let target = fs::read_link(program).ok().and_then(|target| {
            let joined = program.parent()?.join(target);
            Some(normal(&joined))
        });
        if let Some(target) = target {
            return self.program(&target, hops - 1);
        }
        if let Ok(real) = fs::canonicalize(program)
            && real != program
        {
            return self.program(&real, hops - 1);
        }
        if let Some(interpreter) = interpreter(program) {
            let interpreter = real_program(&interpreter, self.rustup);
            self.program(&interpreter, hops - 1);
        }
    }

    /// Adds the toolchain folder that holds `program`, or the file alone.
    fn place(&mut self, program: &Path, hops: usize) {
        if always_there(program) {
            return;
        }
        let bin = program
            .parent()
            .filter(|bin| bin.file_name() == Some(OsStr::new("bin")));
        let Some(prefix) = bin.and_then(Path::parent) else {
            self.found.insert(program.to_owned());
            return;
        };
        if let Ok(settings) = fs::read_to_string(prefix.join("pyvenv.cfg")) {
            self.found.insert(prefix.to_owned());
            let base = settings
                .lines()
                .filter_map(|line| line.split_once('='))
                .find(|(key, _)| key.trim() == "home")
                .map(|(_, value)| Path::new(value.trim()).join("python3"));
            if let Some(base) = base {
                self.program(&base, hops - 1);
            }
        } else if self.is_toolchain(prefix) {
            self.found.insert(prefix.to_owned());
        } else {
            self.found.insert(program.to_owned());
        }
    }

    fn is_toolchain(&self, prefix: &Path) -> bool {
        let private = [".local", ".cargo", ".config", ".ssh", ".gnupg"];
        let has_library = ["lib", "lib64", "libexec"]
            .iter()
            .any(|name| prefix.join(name).is_dir());
        let holds_home = self.home.is_some_and(|home| home.starts_with(prefix));
        let named = prefix
            .file_name()
            .is_some_and(|name| private.iter().any(|private| name == *private));
        has_library && !holds_home && !named && prefix.parent().is_some()
    }
}

/// `path` without `.` and `..`, by name alone.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

/// The interpreter that a script names in its first line.
fn interpreter(program: &Path) -> Option<PathBuf> {
    let mut head = Vec::new();
    fs::File::open(program)
        .ok()?
        .take(512)
        .read_to_end(&mut head)
        .ok()?;
    let line = head
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()?;
    let line = String::from_utf8_lossy(line).into_owned();
    let mut words = line.split_whitespace();
    let first = PathBuf::from(words.next()?);
    first.is_absolute().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct Machine {
        _folder: tempfile::TempDir,
        root: PathBuf,
    }

    impl Machine {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let root = fs::canonicalize(folder.path()).unwrap();
            Self {
                _folder: folder,
                root,
            }
        }

        fn file(&self, path: &str, content: &str) -> PathBuf {
            let path = self.root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            crate::base::files::write_atomic(&path, content.as_bytes(), 0o755).unwrap();
            path
        }

        fn link(&self, path: &str, target: &str) -> PathBuf {
            let path = self.root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(target, &path).unwrap();
            path
        }

        fn find(&self, program: &Path) -> Toolchain {
            find_with(program, Some(&self.root.join("home")), None)
        }
    }

    #[test]
    fn what_every_sandbox_has_needs_nothing() {
        assert_eq!(binds(Path::new("/usr/bin/env")), Vec::<PathBuf>::new());
    }

    #[test]
    fn an_interpreter_brings_its_prefix() {
        let machine = Machine::new();
        let python = machine.file("home/.pyenv/versions/3.11.7/bin/python3.11", "");
        machine.file("home/.pyenv/versions/3.11.7/lib/os.py", "");
        let found = machine.find(&python);
        assert_eq!(found.program, python);
        assert_eq!(
            found.binds,
            [machine.root.join("home/.pyenv/versions/3.11.7")]
        );
    }

    #[test]
    fn a_pyenv_shim_stands_for_the_users_version() {
        let machine = Machine::new();
        let shim = machine.file("home/.pyenv/shims/python3", "#!/usr/bin/env bash\n");
        machine.file("home/.pyenv/version", "3.11.7\n");
        machine.file("home/.pyenv/versions/3.11.7/lib/os.py", "");
        let real = machine.file("home/.pyenv/versions/3.11.7/bin/python3", "");
        assert_eq!(machine.find(&shim).program, real);
    }

    #[test]
    fn a_virtual_environment_brings_its_base() {
        let machine = Machine::new();
        machine.file("opt/python/lib/os.py", "");
        let base = machine.file("opt/python/bin/python3", "");
        let home = base.parent().unwrap().display().to_string();
        machine.file("venv/pyvenv.cfg", &format!("home = {home}\nversion = 3\n"));
        let python = machine.link("venv/bin/python", &base.display().to_string());
        let found = machine.find(&python);
        assert_eq!(found.program, python);
        assert_eq!(
            found.binds,
            [machine.root.join("opt/python"), machine.root.join("venv")]
        );
    }

    #[test]
    fn a_rustup_proxy_stands_for_the_default_toolchain() {
        let machine = Machine::new();
        machine.file("home/.cargo/bin/rustup", "");
        machine.file("home/.cargo/credentials.toml", "");
        let proxy = machine.link("home/.cargo/bin/cargo", "rustup");
        machine.file(
            "home/.rustup/settings.toml",
            "default_toolchain = \"stable\"\n",
        );
        machine.file("home/.rustup/toolchains/stable-x/lib/a.so", "");
        let real = machine.file("home/.rustup/toolchains/stable-x/bin/cargo", "");
        let found = machine.find(&proxy);
        assert_eq!(found.program, real);
        assert_eq!(
            found.binds,
            [machine.root.join("home/.rustup/toolchains/stable-x")]
        );
    }

    #[test]
    fn folders_with_credentials_are_never_bound_whole() {
        let machine = Machine::new();
        for place in ["home/.local", "home/.cargo", "home"] {
            machine.file(&format!("{place}/lib/x"), "");
            let tool = machine.file(&format!("{place}/bin/tool"), "");
            assert_eq!(machine.find(&tool).binds, [tool]);
        }
    }

    #[test]
    fn a_script_brings_its_interpreter() {
        let machine = Machine::new();
        machine.file("opt/python/lib/os.py", "");
        let python = machine.file("opt/python/bin/python3", "");
        let line = format!("#!{}\n", python.display());
        let script = machine.file("home/.local/bin/tool", &line);
        let found = machine.find(&script);
        assert_eq!(found.binds, [script, machine.root.join("opt/python")]);
    }

    #[test]
    fn a_circle_of_links_ends() {
        let machine = Machine::new();
        let one = machine.link("a/one", "two");
        machine.link("a/two", "one");
        machine.find(&one);
    }
}
