//! A specification as the words of one `podman run` or `docker run`.

use super::super::fault::Fault;
use super::super::inside::{self, RIGHTS, SOURCES, SUPERVISOR};
use super::super::named::{self, place};
use super::super::tree::{self, DEFAULT_DISK, Ground, HOST, Owner, own_places};
use super::super::{NOBODY, OWN_PROGRAM};
use super::{DESK, Engine};
use crate::base::files;
use crate::model::image::Image;
use crate::sandbox::LAUNCHER_COMMAND;
use crate::sandbox::error::Error;
use crate::sandbox::spec::{Mount, Spec};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// The socket on the desk.
pub(in super::super) const SOCKET: &str = "socket";
/// Memory for the supervisor itself.
const SUPERVISOR_MEMORY: u64 = 64 << 20;
/// Processes of ours inside.
const OUR_PROCESSES: u64 = 2;
/// Bytes for files that are laid outside the places that programs may write to.
const LAID: u64 = 8 << 30;
/// The most descriptors of one program, and the most processes of the programs' user: set, since an
/// engine's own defaults can be more than it may give.
const BOUNDS: [&str; 2] = ["nofile=4096:4096", "nproc=16384:16384"];
/// Top folders of an image in which programs and their settings are. No file is laid there.
const FIXED: [&str; 8] = [
    "/etc", "/var", "/dev", "/sys", "/home", "/root", "/boot", "/opt",
];

/// What a container is made with.
pub(super) struct Ask<'a> {
    pub(super) engine: &'a Engine,
    pub(super) image: &'a Image,
    /// The container's name.
    pub(super) name: &'a str,
    /// The program that is the supervisor inside.
    pub(super) own: &'a Path,
    /// Our folder on the host, with the desk in it.
    pub(super) folder: &'a Path,
}

/// Bytes that the bound on memory leaves for what is not the programs': the supervisor, and copies
/// of trees, which are in memory, too.
pub(super) fn beside(spec: &Spec) -> u64 {
    let trees = spec.mounts.iter().map(|mount| match mount {
        Mount::Scratch { host, .. } => size(host).unwrap_or(0),
        Mount::ReadOnly { .. } | Mount::ReadWrite { .. } => 0,
    });
    let files = spec
        .files
        .iter()
        .map(|file| file.bytes.expose().len() as u64);
    trees
        .chain(files)
        .fold(SUPERVISOR_MEMORY, u64::saturating_add)
}

/// The words, and in our folder the files that they name.
pub(super) fn of(ask: &Ask<'_>, spec: &Spec) -> Result<Vec<OsString>, Error> {
    let mut line = Line {
        provider: ask.engine.program.provider,
        tmpfs: ask.engine.tmpfs,
        words: Vec::new(),
    };
    line.walls(ask);
    line.limits(spec);
    line.places(ask, spec)?;
    for (path, content) in tree::neutral_files(NOBODY_OWNS) {
        let path = Path::new(path);
        let host = neutral(ask.folder, path, &content).map_err(Error::Start)?;
        line.bind(&host, path, true)?;
    }
    line.bind(&ask.folder.join(DESK), Path::new(inside::DOOR), true)?;
    line.bind(ask.own, Path::new(SUPERVISOR), true)?;
    line.add(["--entrypoint", SUPERVISOR, ask.image.as_str()]);
    line.add([LAUNCHER_COMMAND, inside::CONTAINED]);
    Ok(line.words)
}

const NOBODY_OWNS: Owner = Owner {
    uid: NOBODY,
    gid: NOBODY,
};

struct Line {
    provider: &'static str,
    /// What the engine has to be told of each tmpfs.
    tmpfs: &'static str,
    words: Vec<OsString>,
}

impl Line {
    fn add<'w>(&mut self, words: impl IntoIterator<Item = &'w str>) {
        self.words.extend(words.into_iter().map(OsString::from));
    }

    /// What holds whatever is asked for.
    fn walls(&mut self, ask: &Ask<'_>) {
        self.add(["run", "--rm", "--name", ask.name]);
        self.add(["--pull", "never", "--log-driver", "none"]);
        self.add(["--network", "none", "--ipc", "private"]);
        self.add(["--hostname", "localhost", "--workdir", "/", "--user", "0:0"]);
        self.add(["--read-only", "--cap-drop", "ALL"]);
        self.add(RIGHTS.iter().flat_map(|right| ["--cap-add", right]));
        self.add(["--security-opt", "no-new-privileges"]);
        // A tree of the user's is bound as it is; giving it another label would change it for good.
        self.add(["--security-opt", "label=disable"]);
        self.add(BOUNDS.iter().flat_map(|bound| ["--ulimit", bound]));
        self.add(ask.engine.words.iter().copied());
    }

    fn limits(&mut self, spec: &Spec) {
        let limits = &spec.limits;
        if let Some(memory) = limits.memory {
            let bytes = memory.saturating_add(beside(spec)).to_string();
            // Together with swap: no more than without.
            self.add(["--memory", &bytes, "--memory-swap", &bytes]);
        }
        if let Some(processes) = limits.processes {
            let count = processes.saturating_add(OUR_PROCESSES).to_string();
            self.add(["--pids-limit", &count]);
        }
        if let Some(cpus) = limits.cpus {
            self.add(["--cpus", &cpus.max(1).to_string()]);
        }
    }

    /// Everything that is in memory, and the caller's mounts.
    fn places(&mut self, ask: &Ask<'_>, spec: &Spec) -> Result<(), Error> {
        let parts = u64::try_from(own_places(spec).count()).unwrap_or(1);
        let share = spec.limits.disk.unwrap_or(DEFAULT_DISK) / parts;
        for (path, mode) in tree::OWN {
            // One that the caller puts there takes its place.
            if !spec
                .mounts
                .iter()
                .any(|mount| inside_of(mount) == Path::new(path))
            {
                self.tmpfs(Path::new(path), mode, share)?;
            }
        }
        for shown in shown() {
            self.tmpfs(&shown, 0o555, 0)?;
        }
        self.tmpfs(Path::new(SOURCES), 0o700, 0)?;
        let root = Path::new("/root");
        let mut below = spec.mounts.iter().map(inside_of);
        if below.any(|inside| inside != root && inside.starts_with(root)) {
            // An image's own is open to root alone.
            self.tmpfs(root, 0o755, 0)?;
        }
        for top in tops(spec).map_err(|fault| fault.told(self.provider))? {
            self.tmpfs(&top, 0o755, LAID)?;
        }
        for (index, mount) in spec.mounts.iter().enumerate() {
            let (Mount::ReadOnly { host, .. }
            | Mount::ReadWrite { host, .. }
            | Mount::Scratch { host, .. }) = mount;
            let inside = inside_of(mount);
            place(spec, inside).map_err(|fault| fault.told(self.provider))?;
            let own = host == Path::new(OWN_PROGRAM);
            let host = if own { ask.own } else { host };
            let setup = |source| Error::Setup {
                what: "bind".to_owned(),
                path: Some(host.to_owned()),
                source,
            };
            let folder = fs::metadata(host).map_err(setup)?.is_dir();
            match mount {
                Mount::ReadOnly { .. } => self.bind(host, inside, true)?,
                Mount::ReadWrite { .. } if !rustix::process::geteuid().is_root() => {
                    return Err(self.cannot(
                        "let programs change a folder of the host unless hangar runs as root",
                    ));
                }
                Mount::ReadWrite { .. } => self.bind(host, inside, false)?,
                Mount::Scratch { .. } if !folder => {
                    let what = "make a scratch copy of a single file";
                    return Err(Fault::blocked(what, inside).told(self.provider));
                }
                Mount::Scratch { .. } => {
                    let tree = size(host).map_err(setup)?;
                    self.tmpfs(inside, 0o755, share.saturating_add(tree))?;
                    let source = Path::new(SOURCES).join(index.to_string());
                    self.bind(host, &source, true)?;
                }
            }
        }
        Ok(())
    }

    /// Memory at `path`; 0 bytes are room for folders and nothing else.
    fn tmpfs(&mut self, path: &Path, mode: u32, size: u64) -> Result<(), Error> {
        let path = self.plain(path)?;
        // 0 would be no bound.
        let size = size.max(4096);
        let own = self.tmpfs;
        let text = format!("{path}:rw,exec,nosuid,nodev,size={size},mode={mode:04o}{own}");
        self.add(["--tmpfs", &text]);
        Ok(())
    }

    fn bind(&mut self, host: &Path, inside: &Path, read_only: bool) -> Result<(), Error> {
        let (host, inside) = (self.plain(host)?, self.plain(inside)?);
        let how = if read_only { ",readonly" } else { "" };
        let text = format!("type=bind,source={host},destination={inside}{how}");
        self.add(["--mount", &text]);
        Ok(())
    }

    /// A path that an engine's options can't take for something else.
    fn plain<'p>(&self, path: &'p Path) -> Result<&'p str, Error> {
        let special = |c: char| matches!(c, ',' | ':' | '"' | '\\') || c.is_control();
        path.to_str()
            .filter(|text| !text.contains(special))
            .ok_or_else(|| {
                self.cannot(&format!(
                    "show a path with one of `,` `:` `\"` `\\` in it: {}",
                    path.display()
                ))
            })
    }

    fn cannot(&self, what: &str) -> Error {
        Error::Unsupported {
            provider: self.provider,
            what: what.to_owned(),
        }
    }
}

fn inside_of(mount: &Mount) -> &Path {
    let (Mount::ReadOnly { inside, .. }
    | Mount::ReadWrite { inside, .. }
    | Mount::Scratch { inside, .. }) = mount;
    inside
}

/// What an engine shows of this machine's devices and drivers, to be covered. Only the control groups
/// stay, from which the supervisor reads what bounds it.
fn shown() -> Vec<PathBuf> {
    let below = |folder: &str, but: &str| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries
            .filter(|entry| entry.file_name() != but)
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| entry.path())
            .collect()
    };
    let mut shown = below("/sys", "fs");
    shown.extend(below("/sys/fs", "cgroup"));
    shown.sort();
    shown
}

/// Top folders for files that lie nowhere else: each is memory that only the supervisor can write
/// to.
fn tops(spec: &Spec) -> Result<BTreeSet<PathBuf>, Fault> {
    let mut tops = BTreeSet::new();
    for path in spec.files.iter().map(|file| &file.path) {
        if tree::ground(spec, path) != Ground::Ours {
            return Err(Fault::blocked("lay a file outside tmpfs", path));
        }
        if own_places(spec).any(|own| path.starts_with(own)) {
            continue;
        }
        let top: PathBuf = path.components().take(2).collect();
        let fixed = FIXED
            .iter()
            .chain(&HOST)
            .any(|fixed| Path::new(fixed) == top);
        if top == *path || fixed {
            return Err(Fault::blocked("lay a file in a fixed folder", path));
        }
        tops.insert(top);
    }
    Ok(tops)
}

/// Lays a file of `/etc` into our folder.
fn neutral(folder: &Path, path: &Path, content: &str) -> io::Result<PathBuf> {
    let at = folder.join(path.strip_prefix("/").unwrap_or(path));
    let above = at.parent().unwrap_or(folder);
    DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(above)?;
    files::write_atomic(&at, content.as_bytes(), 0o444).map_err(|error| error.source)?;
    Ok(at)
}

/// Bytes that a copy of this folder takes, generously.
fn size(folder: &Path) -> io::Result<u64> {
    let folder = rustix::fd::OwnedFd::from(fs::File::open(folder)?);
    Ok(named::size(&folder)?)
}

#[cfg(test)]
mod tests {
    use super::super::{DOCKER_ENGINE, PODMAN_ENGINE};
    use super::*;
    use crate::base::redact::Secret;
    use crate::sandbox::spec::{LaidFile, Limits, Network};

    fn spec(mounts: Vec<Mount>) -> Spec {
        Spec {
            mounts,
            files: Vec::new(),
            network: Network::None,
            limits: Limits::default(),
            inner_domain: true,
            hash_after: Vec::new(),
            collect: Vec::new(),
            deadline: None,
            steps: Vec::new(),
            stop_on_failure: false,
        }
    }

    fn words(engine: &Engine, spec: &Spec) -> Result<Vec<String>, Error> {
        let folder = tempfile::tempdir().unwrap();
        let image = format!("some/image@sha256:{}", "0".repeat(64));
        let ask = Ask {
            engine,
            image: &image.parse().unwrap(),
            name: "hangar-x",
            own: Path::new("/opt/hangar"),
            folder: folder.path(),
        };
        let words = of(&ask, spec)?;
        let text = |word: OsString| word.into_string().unwrap();
        Ok(words.into_iter().map(text).collect())
    }

    fn binds(words: &[String]) -> Vec<&str> {
        let binds = words
            .iter()
            .filter_map(|word| word.strip_prefix("type=bind,source="));
        binds.filter(|bind| !bind.contains("/etc/")).collect()
    }

    #[test]
    fn a_container_has_every_wall_and_no_mount_but_the_listed_ones() {
        let host = tempfile::tempdir().unwrap();
        let path = host.path().to_owned();
        let at = path.display();
        let listed = spec(vec![
            Mount::ReadOnly {
                host: path.clone(),
                inside: "/tools".into(),
            },
            Mount::Scratch {
                host: path.clone(),
                inside: "/src".into(),
            },
        ]);
        for engine in [&PODMAN_ENGINE, &DOCKER_ENGINE] {
            let words = words(engine, &listed).unwrap();
            let line = words.join(" ");
            for wall in [
                "run --rm",
                "--pull never",
                "--log-driver none",
                "--network none",
                "--ipc private",
                "--read-only",
                "--cap-drop ALL",
                "--security-opt no-new-privileges",
                "--tmpfs /src:rw,exec,nosuid,nodev,size=",
                "--tmpfs /var/sources:rw,exec,nosuid,nodev,size=4096,mode=0700",
            ] {
                assert!(line.contains(wall), "{wall}: {line}");
            }
            assert_eq!(line.contains("--read-only-tmpfs=false"), !engine.daemon);
            for wrong in [
                "--privileged",
                "CAP_SYS_ADMIN",
                "--volume",
                "--device",
                "host",
            ] {
                assert!(!words.iter().any(|word| word == wrong), "{wrong}: {line}");
            }
            let binds = binds(&words);
            assert_eq!(binds.len(), 4, "{binds:?}");
            assert_eq!(binds[0], format!("{at},destination=/tools,readonly"));
            assert_eq!(
                binds[1],
                format!("{at},destination=/var/sources/1,readonly")
            );
            assert!(binds[2].ends_with(",destination=/var/door,readonly"));
            assert_eq!(binds[3], "/opt/hangar,destination=/var/supervisor,readonly");
            let image = words
                .iter()
                .position(|word| word.contains("@sha256:"))
                .unwrap();
            assert_eq!(words[image + 1..], ["__sandbox", "contained"]);
        }
    }

    #[test]
    fn limits_leave_room_for_what_is_not_the_programs() {
        let mut limited = spec(Vec::new());
        let none = words(&PODMAN_ENGINE, &limited).unwrap().join(" ");
        assert!(!none.contains("--memory") && !none.contains("--pids-limit"));
        limited.limits = Limits {
            memory: Some(1 << 30),
            processes: Some(10),
            cpus: Some(2),
            disk: Some(4 << 20),
            ..Limits::default()
        };
        let line = words(&PODMAN_ENGINE, &limited).unwrap().join(" ");
        let bytes = (1u64 << 30) + SUPERVISOR_MEMORY;
        assert!(line.contains(&format!("--memory {bytes} --memory-swap {bytes} ")));
        assert!(line.contains("--pids-limit 12 --cpus 2 "));
        // Four places share the disk limit.
        assert!(line.contains("/tmp:rw,exec,nosuid,nodev,size=1048576,mode=1777"));
    }

    #[test]
    fn a_path_that_would_say_something_else_is_refused() {
        let host = tempfile::tempdir().unwrap();
        let strange = host.path().join("a,destination=b");
        fs::create_dir(&strange).unwrap();
        for (host, inside) in [(strange.as_path(), "/tools"), (host.path(), "/tools:exec")] {
            let mount = Mount::ReadOnly {
                host: host.to_owned(),
                inside: inside.into(),
            };
            let refused = words(&DOCKER_ENGINE, &spec(vec![mount]));
            assert!(
                matches!(refused, Err(Error::Unsupported { .. })),
                "{refused:?}"
            );
        }
    }

    #[test]
    fn files_that_lie_nowhere_else_get_memory_of_their_own() {
        let laid = |path: &str| {
            let mut spec = spec(Vec::new());
            spec.files = vec![LaidFile {
                path: path.into(),
                bytes: Secret::new(Vec::new()),
                mode: 0o444,
            }];
            words(&PODMAN_ENGINE, &spec)
        };
        let line = laid("/r/runner.py").unwrap().join(" ");
        assert!(line.contains("--tmpfs /r:rw,"), "{line}");
        for place in ["/etc/x", "/usr/x", "/opt/x", "/top", "/proc/x"] {
            let refused = laid(place);
            assert!(matches!(refused, Err(Error::Blocked { .. })), "{place}");
        }
    }
}
