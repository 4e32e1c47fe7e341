//! A specification as a bundle for `runsc`: a root folder with nothing but places and neutral files,
//! and the description of what is mounted there. Nothing of a hidden test is in it.

use super::super::fault::Fault;
use super::super::inside::{RIGHTS, SOURCES, SUPERVISOR};
use super::super::named::place;
use super::super::tree::{self, DEFAULT_DISK, ETC, Ground, HOST, LINKS, Owner, own_places};
use super::super::{NOBODY, OWN_PROGRAM};
use crate::base::files;
use crate::sandbox::error::Error;
use crate::sandbox::spec::{Mount, Spec};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

/// Bytes for a copy of a tree beside its part of the disk limit.
const TREE: u64 = 8 << 30;
/// A right on gVisor's kernel that the supervisor keeps as well: to hide itself.
const HIDE: &str = "CAP_SYS_ADMIN";

/// Writes the bundle for `spec` into `folder`.
pub(super) fn write(folder: &Path, spec: &Spec) -> Result<(), Error> {
    let mut bundle = Bundle {
        root: folder.join("root"),
        mounts: vec![json!({"destination": "/proc", "type": "proc", "source": "proc"})],
    };
    bundle.fill(spec)?;
    let rights: Vec<_> = RIGHTS.into_iter().chain([HIDE]).collect();
    let namespaces = ["pid", "network", "ipc", "uts", "mount"].map(|kind| json!({"type": kind}));
    let config = json!({
        "ociVersion": "1.0.0",
        "hostname": "localhost",
        "root": {"path": "root", "readonly": true},
        "process": {
            "terminal": false,
            "user": {"uid": 0, "gid": 0},
            "args": super::supervisor(0),
            "env": [],
            "cwd": "/",
            "noNewPrivileges": true,
            "capabilities": {"bounding": rights, "effective": rights, "permitted": rights},
        },
        "mounts": bundle.mounts,
        "linux": {"namespaces": namespaces},
    });
    save(folder, &config).map_err(Error::Start)
}

/// Completes the bundle with what only the launcher knows: its own program, and which bounds hold.
pub(super) fn complete(folder: &Path, held: u64) -> io::Result<()> {
    let text = fs::read(folder.join("config.json"))?;
    let mut config: Value = serde_json::from_slice(&text)?;
    config["process"]["args"] = json!(super::supervisor(held));
    let own = fs::read_link(OWN_PROGRAM)?;
    for mount in config["mounts"].as_array_mut().into_iter().flatten() {
        if mount["source"] == OWN_PROGRAM {
            mount["source"] = json!(own);
        }
    }
    save(folder, &config)
}

fn save(folder: &Path, config: &Value) -> io::Result<()> {
    let text = serde_json::to_vec(config)?;
    files::write_atomic(&folder.join("config.json"), &text, 0o644).map_err(|error| error.source)
}

struct Bundle {
    root: PathBuf,
    mounts: Vec<Value>,
}

impl Bundle {
    fn fill(&mut self, spec: &Spec) -> Result<(), Error> {
        self.folder(Path::new("/")).map_err(Error::Start)?;
        self.fixed().map_err(Error::Start)?;
        let count = own_places(spec).count();
        let disk = spec.limits.disk.unwrap_or(DEFAULT_DISK);
        let share = disk / u64::try_from(count).unwrap_or(1);
        for (path, mode) in tree::OWN {
            self.tmpfs(Path::new(path), mode, share)
                .map_err(Error::Start)?;
        }
        for (index, mount) in spec.mounts.iter().enumerate() {
            self.named(spec, mount, index, share)?;
        }
        let mut tops = BTreeSet::new();
        for file in &spec.files {
            let path = &file.path;
            let blocked = |what: &str| told(Fault::blocked(what, path));
            if tree::ground(spec, path) != Ground::Ours {
                return Err(blocked("lay a file outside tmpfs"));
            }
            if own_places(spec).any(|own| path.starts_with(own)) {
                continue;
            }
            // In a folder of its own, which only the supervisor can write to.
            let top: PathBuf = path.components().take(2).collect();
            if top == *path || self.inside(&top).exists() {
                return Err(blocked("lay a file in a fixed folder"));
            }
            tops.insert(top);
        }
        for top in tops {
            self.tmpfs(&top, 0o755, TREE).map_err(Error::Start)?;
        }
        self.bind(Path::new(OWN_PROGRAM), Path::new(SUPERVISOR), "ro")
    }

    /// What every sandbox has.
    fn fixed(&mut self) -> io::Result<()> {
        let nobody = Owner {
            uid: NOBODY,
            gid: NOBODY,
        };
        for path in HOST.map(Path::new) {
            if let Ok(target) = fs::read_link(path) {
                self.link(path, &target)?;
            } else if path.exists() {
                self.bind(path, path, "ro").map_err(io::Error::other)?;
            }
        }
        for name in ETC {
            let path = Path::new("/etc").join(name);
            if path.exists() {
                self.bind(&path, &path, "ro").map_err(io::Error::other)?;
            }
        }
        for (path, content) in tree::neutral_files(nobody) {
            let at = self.inside(Path::new(path));
            files::write_atomic(&at, content.as_bytes(), 0o444).map_err(|error| error.source)?;
        }
        for (path, target) in LINKS.iter().filter(|(path, _)| !path.starts_with("/dev/")) {
            self.link(Path::new(path), Path::new(target))?;
        }
        Ok(())
    }

    fn named(&mut self, spec: &Spec, mount: &Mount, index: usize, share: u64) -> Result<(), Error> {
        let (Mount::ReadOnly { host, inside }
        | Mount::ReadWrite { host, inside }
        | Mount::Scratch { host, inside }) = mount;
        place(spec, inside).map_err(told)?;
        match mount {
            Mount::ReadOnly { .. } => self.bind(host, inside, "ro"),
            Mount::ReadWrite { .. } if !rustix::process::geteuid().is_root() => {
                Err(Error::Unsupported {
                    provider: super::WORD,
                    what: "let programs change a folder of the host unless hangar runs as root"
                        .to_owned(),
                })
            }
            Mount::ReadWrite { .. } => self.bind(host, inside, "rw"),
            Mount::Scratch { .. } if !host.is_dir() => Err(told(Fault::blocked(
                "make a scratch copy of a single file",
                inside,
            ))),
            Mount::Scratch { .. } => {
                self.tmpfs(inside, 0o755, share.saturating_add(TREE))
                    .map_err(Error::Start)?;
                self.bind(host, &Path::new(SOURCES).join(index.to_string()), "ro")?;
                let sources = self.inside(Path::new(SOURCES));
                // For the supervisor alone.
                fs::set_permissions(sources, Permissions::from_mode(0o700)).map_err(Error::Start)
            }
        }
    }

    fn inside(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    fn folder(&self, path: &Path) -> io::Result<()> {
        let at = self.inside(path);
        for folder in path.ancestors().collect::<Vec<_>>().into_iter().rev() {
            let at = self.inside(folder);
            if !at.exists() {
                fs::create_dir(&at)?;
                fs::set_permissions(&at, Permissions::from_mode(0o755))?;
            }
        }
        debug_assert!(at.is_dir(), "it was made");
        Ok(())
    }

    fn link(&self, path: &Path, target: &Path) -> io::Result<()> {
        self.folder(path.parent().unwrap_or(Path::new("/")))?;
        symlink(target, self.inside(path))
    }

    fn tmpfs(&mut self, path: &Path, mode: u32, size: u64) -> io::Result<()> {
        if !path.starts_with("/dev") {
            self.folder(path)?;
        }
        self.mounts.push(json!({
            "destination": path,
            "type": "tmpfs",
            "source": "tmpfs",
            "options": [format!("mode={mode:04o}"), format!("size={size}"), "nosuid", "nodev"],
        }));
        Ok(())
    }

    fn bind(&mut self, host: &Path, inside: &Path, how: &str) -> Result<(), Error> {
        let setup = |source| Error::Setup {
            what: "bind".to_owned(),
            path: Some(host.to_owned()),
            source,
        };
        let folder = fs::metadata(host).map_err(setup)?.is_dir();
        let above = inside.parent().unwrap_or(Path::new("/"));
        // Places in other mounts are made there.
        if folder {
            self.folder(inside).map_err(setup)?;
        } else {
            self.folder(above).map_err(setup)?;
            let at = self.inside(inside);
            files::write_atomic(&at, b"", 0o444).map_err(|error| setup(error.source))?;
        }
        self.mounts.push(json!({
            "destination": inside,
            "type": "bind",
            "source": host,
            "options": ["rbind", how, "nosuid", "nodev"],
        }));
        Ok(())
    }
}

fn told(fault: Fault) -> Error {
    fault.told(super::WORD)
}
