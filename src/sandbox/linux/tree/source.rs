//! What of the host goes into a tree: the fixed allow-list, and the caller's mounts.

use super::super::OWN_PROGRAM;
use super::super::fault::{Doing as _, Fault};
use crate::sandbox::spec::{Mount, Spec};
use rustix::fd::OwnedFd;
use rustix::fs::CWD;
use rustix::io::Errno;
use rustix::mount::OpenTreeFlags;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// Parts of the host that every sandbox sees read-only, where they exist.
pub(in super::super) const HOST: [&str; 8] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/lib32",
    "/libx32",
    "/nix/store",
];
/// Files and folders of `/etc` that programs need and that tell nothing about the machine's users.
pub(in super::super) const ETC: [&str; 15] = [
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "alternatives",
    "ssl/certs",
    "ssl/openssl.cnf",
    "ca-certificates",
    "pki/tls/certs",
    "pki/tls/cert.pem",
    "pki/ca-trust/extracted",
    "localtime",
    "services",
    "protocols",
    "mime.types",
    "terminfo",
];
pub(in super::super) const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

/// A mount taken off the host before our tmpfs hides anything.
pub(super) struct Source {
    pub(super) tree: OwnedFd,
    pub(super) folder: bool,
}

impl Source {
    fn open(path: &Path) -> Result<Self, Errno> {
        // The link itself leads to a mount of the namespace that we left.
        let own = (path == Path::new(OWN_PROGRAM))
            .then(|| rustix::fs::readlink(path, Vec::new()))
            .transpose()?;
        let own = own.map(|own| PathBuf::from(std::ffi::OsString::from_vec(own.into_bytes())));
        let path = own.as_deref().unwrap_or(path);
        let tree = rustix::mount::open_tree(
            CWD,
            path,
            OpenTreeFlags::OPEN_TREE_CLONE
                | OpenTreeFlags::OPEN_TREE_CLOEXEC
                | OpenTreeFlags::AT_RECURSIVE,
        )?;
        let stat = rustix::fs::fstat(&tree)?;
        Ok(Self {
            folder: rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir(),
            tree,
        })
    }

    /// `None` when there is no such path.
    fn if_there(path: &Path) -> Result<Option<Self>, Fault> {
        match Self::open(path) {
            Ok(source) => Ok(Some(source)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => Ok(None),
            Err(errno) => Err(errno).doing_on("bind", path),
        }
    }
}

/// What stands at one of the fixed places.
pub(super) enum Fixed {
    Bound(Source),
    Link(PathBuf),
}

pub(super) struct Sources {
    pub(super) host: Vec<(&'static str, Fixed)>,
    pub(super) etc: Vec<(&'static str, Source)>,
    pub(super) devices: Vec<(&'static str, Source)>,
    pub(super) proc: Source,
    pub(super) named: Vec<Source>,
}

impl Sources {
    /// Opens everything. Must run before our tmpfs hides a part of the host.
    pub(super) fn open(spec: &Spec) -> Result<Self, Fault> {
        let mut host = Vec::new();
        for path in HOST {
            if let Ok(link) = std::fs::read_link(path) {
                host.push((path, Fixed::Link(link)));
            } else if let Some(source) = Source::if_there(Path::new(path))? {
                host.push((path, Fixed::Bound(source)));
            }
        }
        let mut etc = Vec::new();
        for name in ETC {
            if let Some(source) = Source::if_there(&Path::new("/etc").join(name))? {
                etc.push((name, source));
            }
        }
        let mut devices = Vec::new();
        for name in DEVICES {
            let path = Path::new("/dev").join(name);
            devices.push((name, Source::open(&path).doing_on("bind", &path)?));
        }
        let proc = Source::open(Path::new("/proc")).doing_on("bind", Path::new("/proc"))?;
        let named = spec.mounts.iter().map(|mount| {
            let (Mount::ReadOnly { host, .. }
            | Mount::ReadWrite { host, .. }
            | Mount::Scratch { host, .. }) = mount;
            Source::open(host).doing_on("bind", host)
        });
        Ok(Self {
            host,
            etc,
            devices,
            proc,
            named: named.collect::<Result<_, _>>()?,
        })
    }
}
