//! The file tree of a sandbox: a tmpfs of our own with an allow-list of the host in it.
//!
//! Invariants: every mount point is reached component by component without following a link, and
//! is made only where the folder above is ours (tmpfs); a bound tree never decides where something
//! lands. All writable parts that are not the caller's share one tmpfs, so one size bounds them.

mod layer;
mod place;
mod source;

pub(super) use place::{open_folder, parent};

use super::fault::{Doing as _, Fault};
use super::sys;
use crate::sandbox::HOME;
use crate::sandbox::spec::{Mount, Spec};
use layer::Layers;
use place::{attach, clone_below, give, make_folder, open_any, read_only};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, UnmountFlags,
};
pub(super) use source::{DEVICES, ETC, HOST};
use source::{Fixed, Source, Sources};
use std::path::{Path, PathBuf};

/// Bytes of tmpfs when the caller sets no bound.
pub(super) const DEFAULT_DISK: u64 = 4 << 30;

/// Who the sandboxed programs are, as the launcher's user namespace numbers them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owner {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// A finished tree.
pub(super) struct Tree {
    /// Its root folder.
    pub(super) root: OwnedFd,
    /// Whether some scratch folder had to be copied, because the kernel refused an overlay.
    pub(super) copied: bool,
}

/// What a part of the tree rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ground {
    /// Our tmpfs, or an overlay whose changes go there.
    Ours,
    /// A folder of the host.
    Foreign,
}

/// Which ground lies below `path`: that of the longest mounted path above it.
pub(super) fn ground(spec: &Spec, path: &Path) -> Ground {
    let fixed = HOST
        .iter()
        .map(|host| (Path::new(host), Ground::Foreign))
        .chain([(Path::new("/proc"), Ground::Foreign)]);
    let named = spec.mounts.iter().map(|mount| match mount {
        Mount::ReadOnly { inside, .. } | Mount::ReadWrite { inside, .. } => {
            (inside.as_path(), Ground::Foreign)
        }
        Mount::Scratch { inside, .. } => (inside.as_path(), Ground::Ours),
    });
    fixed
        .chain(named)
        .filter(|(prefix, _)| path.starts_with(prefix))
        .max_by_key(|(prefix, _)| prefix.as_os_str().len())
        .map_or(Ground::Ours, |(_, ground)| ground)
}

/// Folders that every sandbox has in memory, with their modes.
pub(super) const OWN: [(&str, u32); 4] = [
    ("/tmp", 0o1777),
    ("/run", 0o755),
    (HOME, 0o755),
    ("/dev/shm", 0o1777),
];

/// Folders whose changes stay in memory: the fixed ones, and scratch mounts.
pub(super) fn own_places(spec: &Spec) -> impl Iterator<Item = &Path> {
    let scratch = spec.mounts.iter().filter_map(|mount| match mount {
        Mount::Scratch { inside, .. } => Some(inside.as_path()),
        Mount::ReadOnly { .. } | Mount::ReadWrite { .. } => None,
    });
    OWN.into_iter()
        .map(|(path, _)| Path::new(path))
        .chain(scratch)
}

/// Builds the tree. Afterwards the caller lays files, then calls [`enter`].
pub(super) fn build(spec: &Spec, owner: Owner, overlay_as_user: bool) -> Result<Tree, Fault> {
    rustix::mount::mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )
    .doing("make mounts private")?;
    let sources = Sources::open(spec)?;
    let stage = Stage::make(spec, owner)?;
    let mut builder = Builder {
        root: stage.root,
        base: stage.base,
        at: stage.at,
        owner,
        overlay_as_user,
        copied: false,
    };
    builder.fixed(sources.host, sources.etc)?;
    builder.devices(sources.devices)?;
    builder.attach(&sources.proc.tree, Path::new("/proc"), true, Ground::Ours)?;
    for (index, (mount, source)) in spec.mounts.iter().zip(sources.named).enumerate() {
        builder.named(spec, mount, &source, index)?;
    }
    Ok(Tree {
        root: builder.root,
        copied: builder.copied,
    })
}

/// Makes the tree's root read-only and this process's root.
pub(super) fn enter(tree: &Tree) -> Result<(), Fault> {
    let attributes = sys::ATTR_READ_ONLY | sys::ATTR_NO_SUID;
    sys::set_mount_attributes(tree.root.as_fd(), attributes, false)
        .doing("make the root read-only")?;
    rustix::process::fchdir(&tree.root).doing("enter the new root")?;
    rustix::process::pivot_root(".", ".").doing("change the root")?;
    rustix::mount::unmount(".", UnmountFlags::DETACH).doing("leave the old root")?;
    rustix::process::chdir("/").doing("enter the new root")
}

/// Our tmpfs, attached where the host's files no longer matter.
struct Stage {
    /// Path of the tmpfs while it is being filled.
    at: PathBuf,
    /// Its top folder: holds `root` and the writable parts side by side.
    base: OwnedFd,
    /// The future root.
    root: OwnedFd,
}

impl Stage {
    fn make(spec: &Spec, owner: Owner) -> Result<Self, Fault> {
        let fs = rustix::mount::fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC).doing("open tmpfs")?;
        let disk = spec.limits.disk.unwrap_or(DEFAULT_DISK);
        // One inode per 4 KiB, within bounds that let small sandboxes unpack a package.
        let inodes = (disk / 4096).clamp(4096, 4 << 20);
        let set = |key: &str, value: &str| {
            rustix::mount::fsconfig_set_string(&fs, key, value).doing("set up tmpfs")
        };
        set("size", &disk.to_string())?;
        set("nr_inodes", &inodes.to_string())?;
        set("mode", "0755")?;
        // Refused in user namespaces and by old kernels; whether swap is on is reported apart.
        let _ = rustix::mount::fsconfig_set_flag(&fs, "noswap");
        rustix::mount::fsconfig_create(&fs).doing("make tmpfs")?;
        let mount = rustix::mount::fsmount(
            &fs,
            FsMountFlags::FSMOUNT_CLOEXEC,
            MountAttrFlags::MOUNT_ATTR_NOSUID,
        )
        .doing("mount tmpfs")?;
        let at = ["/tmp", "/run", "/mnt", "/var", "/usr"]
            .into_iter()
            .map(PathBuf::from)
            .find(|path| path.is_dir() && !path.is_symlink())
            .ok_or(Errno::NOENT)
            .doing("find a place for tmpfs")?;
        let target = rustix::fs::open(&at, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            .doing_on("open", &at)?;
        attach(&mount, &target).doing_on("mount tmpfs", &at)?;
        for (name, mode) in [
            ("root", 0o755),
            ("tmp", 0o1777),
            ("run", 0o755),
            ("shm", 0o1777),
            ("home", 0o755),
            ("low", 0o755),
            ("up", 0o755),
        ] {
            make_folder(&mount, name, mode).doing("make a folder")?;
        }
        for name in ["home", "run"] {
            give(&mount, name, owner).doing("hand over a folder")?;
        }
        let root = clone_below(&mount, "root").doing("bind the root")?;
        let target = open_folder(&mount, "root").doing("open the root")?;
        attach(&root, &target).doing("mount the root")?;
        Ok(Self {
            at,
            base: mount,
            root,
        })
    }
}

struct Builder {
    at: PathBuf,
    base: OwnedFd,
    root: OwnedFd,
    owner: Owner,
    overlay_as_user: bool,
    copied: bool,
}

impl Builder {
    fn fixed(
        &mut self,
        host: Vec<(&'static str, Fixed)>,
        etc: Vec<(&'static str, Source)>,
    ) -> Result<(), Fault> {
        for (name, part) in [("tmp", "/tmp"), ("run", "/run"), ("home", HOME)] {
            let source = clone_below(&self.base, name).doing("bind a folder")?;
            self.attach(&source, Path::new(part), true, Ground::Ours)?;
        }
        for (path, fixed) in host {
            let path = Path::new(path);
            match fixed {
                Fixed::Bound(source) => {
                    read_only(&source.tree, sys::ATTR_NO_DEV).doing_on("bind", path)?;
                    self.attach(&source.tree, path, source.folder, Ground::Ours)?;
                }
                Fixed::Link(target) => self.link(path, &target)?,
            }
        }
        for (name, source) in etc {
            let path = Path::new("/etc").join(name);
            read_only(&source.tree, sys::ATTR_NO_DEV).doing_on("bind", &path)?;
            self.attach(&source.tree, &path, source.folder, Ground::Ours)?;
        }
        for (path, content) in neutral_files(self.owner) {
            let (folder, name) = self.parent(Path::new(path), Ground::Ours)?;
            super::lay::write_new(&folder, name.as_slice(), content.as_bytes(), 0o444)
                .doing_on("write", Path::new(path))?;
        }
        LINKS
            .iter()
            .try_for_each(|(at, target)| self.link(Path::new(at), Path::new(target)))
    }

    fn devices(&mut self, devices: Vec<(&'static str, Source)>) -> Result<(), Fault> {
        for (name, source) in devices {
            let path = Path::new("/dev").join(name);
            sys::set_mount_attributes(source.tree.as_fd(), sys::ATTR_NO_SUID, true)
                .doing_on("bind", &path)?;
            self.attach(&source.tree, &path, false, Ground::Ours)?;
        }
        let shm = clone_below(&self.base, "shm").doing("bind a folder")?;
        self.attach(&shm, Path::new("/dev/shm"), true, Ground::Ours)
    }

    fn named(
        &mut self,
        spec: &Spec,
        mount: &Mount,
        source: &Source,
        index: usize,
    ) -> Result<(), Fault> {
        let (Mount::ReadOnly { inside, .. }
        | Mount::ReadWrite { inside, .. }
        | Mount::Scratch { inside, .. }) = mount;
        if inside.starts_with("/proc") {
            return Err(Fault::blocked("mount over /proc", inside));
        }
        let above = inside.parent().unwrap_or(Path::new("/"));
        let ground = ground(spec, above);
        let safe = sys::ATTR_NO_SUID | sys::ATTR_NO_DEV;
        match mount {
            Mount::ReadOnly { .. } => {
                read_only(&source.tree, sys::ATTR_NO_DEV).doing_on("bind", inside)?;
                self.attach(&source.tree, inside, source.folder, ground)
            }
            Mount::ReadWrite { .. } => {
                sys::set_mount_attributes(source.tree.as_fd(), safe, true)
                    .doing_on("bind", inside)?;
                self.attach(&source.tree, inside, source.folder, ground)
            }
            Mount::Scratch { .. } => {
                let layers = Layers {
                    base: &self.base,
                    at: &self.at,
                    as_user: self.overlay_as_user,
                };
                let layer = layers.make(source, inside, &index.to_string())?;
                self.copied |= layer.copied;
                self.attach(&layer.mount, inside, true, ground)
            }
        }
    }

    /// Puts the mount `source` at `inside`, making the place where the ground is ours.
    fn attach(
        &mut self,
        source: &OwnedFd,
        inside: &Path,
        folder: bool,
        ground: Ground,
    ) -> Result<(), Fault> {
        let (parent, name) = self.parent(inside, ground)?;
        let target = match open_any(&parent, name.as_slice()) {
            Err(Errno::NOENT) if ground == Ground::Ours => {
                if folder {
                    make_folder(&parent, name.as_slice(), 0o755)
                } else {
                    super::lay::write_new(&parent, name.as_slice(), b"", 0o444)
                }
                .doing_on("make a mount point", inside)?;
                open_any(&parent, name.as_slice()).doing_on("open the mount point", inside)?
            }
            Err(Errno::NOENT) => {
                return Err(Fault::blocked(
                    "make a mount point in a bound folder",
                    inside,
                ));
            }
            other => other.doing_on("open the mount point", inside)?,
        };
        let stat = rustix::fs::fstat(&target).doing_on("look at the mount point", inside)?;
        let kind = rustix::fs::FileType::from_raw_mode(stat.st_mode);
        if kind.is_symlink() || kind.is_dir() != folder {
            return Err(Fault::blocked("mount on what stands", inside));
        }
        attach(source, &target).doing_on("mount", inside)
    }

    fn link(&self, at: &Path, target: &Path) -> Result<(), Fault> {
        let (folder, name) = self.parent(at, Ground::Ours)?;
        rustix::fs::symlinkat(target, &folder, name.as_slice()).doing_on("link", at)
    }

    fn parent(&self, inside: &Path, ground: Ground) -> Result<(OwnedFd, Vec<u8>), Fault> {
        place::parent(&self.root, inside, ground)
    }
}

/// Links that every sandbox has: where, and to what.
pub(super) const LINKS: [(&str, &str); 7] = [
    ("/var/tmp", "../tmp"),
    ("/etc/os-release", "../usr/lib/os-release"),
    ("/etc/mtab", "/proc/self/mounts"),
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
];

/// Files of `/etc` with the same content in every sandbox.
pub(super) fn neutral_files(owner: Owner) -> [(&'static str, String); 6] {
    let Owner { uid, gid } = owner;
    [
        (
            "/etc/passwd",
            format!(
                "root:x:0:0:root:/root:/usr/sbin/nologin\nuser:x:{uid}:{gid}::{HOME}:/bin/sh\n"
            ),
        ),
        ("/etc/group", format!("root:x:0:\nuser:x:{gid}:\n")),
        (
            "/etc/hosts",
            "127.0.0.1 localhost\n::1 localhost\n".to_owned(),
        ),
        ("/etc/hostname", "localhost\n".to_owned()),
        ("/etc/resolv.conf", String::new()),
        (
            "/etc/nsswitch.conf",
            "passwd: files\ngroup: files\nshadow: files\nhosts: files\nservices: files\nprotocols: files\n"
                .to_owned(),
        ),
    ]
}
