//! The file tree of a sandbox: a tmpfs of our own with an allow-list of the host in it.
//!
//! Invariants: every mount point is reached component by component without following a link, and
//! is made only where the folder above is ours (tmpfs); a bound tree never decides where something
//! lands. All writable parts that are not the caller's share one tmpfs, so one size bounds them.

use super::copy;
use super::fault::{Doing as _, Fault};
use super::sys;
use crate::sandbox::HOME;
use crate::sandbox::spec::{Mount, Spec};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, ResolveFlags, Uid};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, UnmountFlags,
};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

/// Bytes of tmpfs when the caller sets no bound.
const DEFAULT_DISK: u64 = 4 << 30;

/// Parts of the host that every sandbox sees read-only, where they exist.
const HOST: [&str; 8] = [
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
const ETC: [&str; 15] = [
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
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

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

/// A mount taken off the host before our tmpfs hides anything.
struct Source {
    tree: OwnedFd,
    folder: bool,
}

impl Source {
    fn open(path: &Path) -> Result<Self, Errno> {
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
enum Fixed {
    Bound(Source),
    Link(PathBuf),
}

struct Sources {
    host: Vec<(&'static str, Fixed)>,
    etc: Vec<(&'static str, Source)>,
    devices: Vec<(&'static str, Source)>,
    proc: Source,
    named: Vec<Source>,
}

impl Sources {
    fn open(spec: &Spec) -> Result<Self, Fault> {
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
        self.link(Path::new("/var/tmp"), Path::new("../tmp"))?;
        self.link(
            Path::new("/etc/os-release"),
            Path::new("../usr/lib/os-release"),
        )?;
        self.link(Path::new("/etc/mtab"), Path::new("/proc/self/mounts"))
    }

    fn devices(&mut self, devices: Vec<(&'static str, Source)>) -> Result<(), Fault> {
        for (name, source) in devices {
            let path = Path::new("/dev").join(name);
            sys::set_mount_attributes(source.tree.as_fd(), sys::ATTR_NO_SUID, true)
                .doing_on("bind", &path)?;
            self.attach(&source.tree, &path, false, Ground::Ours)?;
        }
        let shm = clone_below(&self.base, "shm").doing("bind a folder")?;
        self.attach(&shm, Path::new("/dev/shm"), true, Ground::Ours)?;
        for (name, target) in [
            ("/dev/fd", "/proc/self/fd"),
            ("/dev/stdin", "/proc/self/fd/0"),
            ("/dev/stdout", "/proc/self/fd/1"),
            ("/dev/stderr", "/proc/self/fd/2"),
        ] {
            self.link(Path::new(name), Path::new(target))?;
        }
        Ok(())
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
                let layer = self.scratch(source, inside, index)?;
                self.attach(&layer, inside, true, ground)
            }
        }
    }

    /// A copy-on-write view of `source`, with the changes in our tmpfs.
    fn scratch(&mut self, source: &Source, inside: &Path, index: usize) -> Result<OwnedFd, Fault> {
        if !source.folder {
            return Err(Fault::blocked(
                "make a scratch copy of a single file",
                inside,
            ));
        }
        read_only(&source.tree, sys::ATTR_NO_DEV).doing_on("bind", inside)?;
        let name = index.to_string();
        let stat = rustix::fs::fstat(&source.tree).doing_on("look at", inside)?;
        let make = |part: &str, inner: &str| -> Result<OwnedFd, Errno> {
            let folder = open_folder(&self.base, part)?;
            if inner.is_empty() {
                make_folder(&folder, &name, 0o755)?;
                return open_folder(&folder, &name);
            }
            let folder = open_folder(&folder, &name)?;
            make_folder(&folder, inner, 0o755)?;
            open_folder(&folder, inner)
        };
        let low = make("low", "").doing("make a layer")?;
        make("up", "").doing("make a layer")?;
        let upper = make("up", "u").doing("make a layer")?;
        make("up", "w").doing("make a layer")?;
        // The top folder's owner and mode come from the upper layer. An owner that our user
        // namespace does not know stays ours.
        let _ = rustix::fs::chownat(
            &upper,
            "",
            Some(Uid::from_raw(stat.st_uid)),
            Some(Gid::from_raw(stat.st_gid)),
            AtFlags::EMPTY_PATH,
        );
        let dir = rustix::fs::openat(
            &upper,
            ".",
            OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .doing("open a layer")?;
        rustix::fs::fchmod(&dir, Mode::from_raw_mode(stat.st_mode & 0o7777))
            .doing("set the mode of a layer")?;
        attach(&source.tree, &low).doing("mount a layer")?;
        let base = self.at.join("up").join(&name);
        match overlay(
            &self.at.join("low").join(&name),
            &base,
            self.overlay_as_user,
        ) {
            Ok(mount) => Ok(mount),
            Err(_) => {
                self.copied = true;
                copy::tree(&source.tree, &dir).doing_on("copy", inside)?;
                let up = open_folder(&self.base, "up").doing("open a layer")?;
                let up = open_folder(&up, &name).doing("open a layer")?;
                let clone = clone_below(&up, "u").doing("bind a copy")?;
                sys::set_mount_attributes(
                    clone.as_fd(),
                    sys::ATTR_NO_SUID | sys::ATTR_NO_DEV,
                    false,
                )
                .doing("bind a copy")?;
                Ok(clone)
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
        parent(&self.root, inside, ground)
    }
}

/// The folder that holds `inside`, reached below `root` without following any link, and the last
/// name. Missing folders are made when the ground is ours.
pub(super) fn parent(
    root: &OwnedFd,
    inside: &Path,
    ground: Ground,
) -> Result<(OwnedFd, Vec<u8>), Fault> {
    let mut names = Vec::new();
    let mut components = inside.components();
    if components.next() != Some(Component::RootDir) {
        return Err(Fault::blocked("use a path that is not absolute", inside));
    }
    for component in components {
        match component {
            Component::Normal(name) => names.push(name.as_bytes().to_vec()),
            _ => return Err(Fault::blocked("use a path with `..`", inside)),
        }
    }
    let Some(last) = names.pop() else {
        return Err(Fault::blocked("replace the root", inside));
    };
    let mut folder = open_folder(root, ".").doing("open the root")?;
    for name in names {
        folder = match open_folder(&folder, name.as_slice()) {
            Ok(next) => next,
            Err(Errno::NOENT) if ground == Ground::Ours => {
                make_folder(&folder, name.as_slice(), 0o755).doing_on("make a folder", inside)?;
                open_folder(&folder, name.as_slice()).doing_on("open a folder", inside)?
            }
            Err(Errno::LOOP | Errno::NOTDIR | Errno::XDEV | Errno::NOENT) => {
                return Err(Fault::blocked("reach through what is no folder", inside));
            }
            Err(errno) => return Err(errno).doing_on("open a folder", inside),
        };
    }
    Ok((folder, last))
}

/// Opens one folder below `folder`, following no link of any kind.
pub(super) fn open_folder(
    folder: &OwnedFd,
    name: impl rustix::path::Arg,
) -> Result<OwnedFd, Errno> {
    rustix::fs::openat2(
        folder,
        name,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
    )
}

/// Opens whatever stands at `name`, a link itself included.
fn open_any(folder: &OwnedFd, name: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(folder, name, flags, Mode::empty())
}

fn make_folder(folder: &OwnedFd, name: impl rustix::path::Arg, mode: u32) -> Result<(), Errno> {
    // The umask is 0 while the tree is built.
    rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(mode))
}

fn give(folder: &OwnedFd, name: &str, owner: Owner) -> Result<(), Errno> {
    rustix::fs::chownat(
        folder,
        name,
        Some(Uid::from_raw(owner.uid)),
        Some(Gid::from_raw(owner.gid)),
        AtFlags::SYMLINK_NOFOLLOW,
    )
}

/// A new mount of the folder `name`.
fn clone_below(folder: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    rustix::mount::open_tree(
        folder,
        name,
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC,
    )
}

fn attach(source: &OwnedFd, target: &OwnedFd) -> Result<(), Errno> {
    rustix::mount::move_mount(
        source,
        "",
        target,
        "",
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH,
    )
}

fn read_only(tree: &OwnedFd, more: u64) -> Result<(), Errno> {
    let attributes = sys::ATTR_READ_ONLY | sys::ATTR_NO_SUID | more;
    sys::set_mount_attributes(tree.as_fd(), attributes, true)
}

fn overlay(lower: &Path, base: &Path, as_user: bool) -> Result<OwnedFd, Errno> {
    let fs = rustix::mount::fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_set_string(&fs, "lowerdir", lower)?;
    rustix::mount::fsconfig_set_string(&fs, "upperdir", base.join("u"))?;
    rustix::mount::fsconfig_set_string(&fs, "workdir", base.join("w"))?;
    if as_user {
        rustix::mount::fsconfig_set_flag(&fs, "userxattr")?;
    } else {
        // Lets a folder of the lower layer be renamed, as a plain file system does.
        rustix::mount::fsconfig_set_string(&fs, "redirect_dir", "on")?;
    }
    rustix::mount::fsconfig_create(&fs)?;
    rustix::mount::fsmount(
        &fs,
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV,
    )
}

/// Files of `/etc` with the same content in every sandbox.
fn neutral_files(owner: Owner) -> [(&'static str, String); 6] {
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
