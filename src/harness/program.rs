//! Which host files a program needs to run inside a sandbox.

use super::Error;
use super::adapter::Bind;
use super::npm;
use crate::base::process;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Folders that every sandbox shows anyway.
const SYSTEM: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"];

/// A program found on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    /// Its real file.
    pub(super) canonical: PathBuf,
    /// The file to start inside: as it was named, or where its package finds itself.
    pub(super) start: PathBuf,
    /// What to bind.
    pub(super) binds: Vec<Bind>,
    /// Folder of an interpreter outside the system folders, for `PATH`.
    pub(super) path: Option<PathBuf>,
}

/// Finds the file of `program`, its interpreter, and what must be bound for both. `home` is never
/// bound, nor a folder above it.
pub(super) fn locate(program: &Path, home: Option<&Path>) -> io::Result<Program> {
    let canonical = program.canonicalize()?;
    let meta = canonical.metadata()?;
    if !meta.is_file() || meta.permissions().mode() & 0o111 == 0 {
        return Err(io::Error::other("it is no executable file"));
    }
    let mut binds = BTreeSet::new();
    add(&mut binds, program, &canonical);
    let (mut path, mut start) = (None, program);
    if let Some(interpreter) = interpreter(&canonical)? {
        let parts = npm::package(&canonical, home)?;
        // Node looks for a package's parts beside the file that it was started with.
        if !parts.is_empty() {
            start = &canonical;
        }
        binds.extend(parts.into_iter().filter(|bind| !is_system(&bind.inside)));
        let real = interpreter.canonicalize()?;
        add(&mut binds, &interpreter, &real);
        if let Some(package) = package(&real, home) {
            binds.insert(Bind::same(package));
        }
        path = interpreter
            .parent()
            .filter(|_| !is_system(&interpreter))
            .map(Path::to_owned);
    }
    Ok(Program {
        start: start.to_owned(),
        binds: outermost(&binds),
        canonical,
        path,
    })
}

/// Without what can be seen in a folder that is bound as it is: nothing is mounted inside a mount.
fn outermost(binds: &BTreeSet<Bind>) -> Vec<Bind> {
    let whole = |folder: &Bind| folder.host == folder.inside && folder.host.is_dir();
    let hidden = |bind: &Bind| {
        let holds = |folder: &&Bind| whole(folder) && bind.inside.starts_with(&folder.inside);
        binds.iter().filter(holds).any(|folder| folder != bind)
    };
    binds.iter().filter(|bind| !hidden(bind)).cloned().collect()
}

/// What a program needs together with what the user lets it read. A path is shown once: what lies in
/// another one that is shown is seen there.
pub(super) fn with_read(
    harness: &str,
    binds: Vec<Bind>,
    read: &[PathBuf],
) -> Result<Vec<Bind>, Error> {
    for path in read {
        if path.parent().is_none() {
            return Err(Error::Settings {
                harness: harness.to_owned(),
                message: "`read` can't be the whole machine: name folders".to_owned(),
            });
        }
        path.metadata().map_err(|source| Error::Program {
            harness: harness.to_owned(),
            path: path.clone(),
            source,
        })?;
    }
    let is_in = |path: &Path, other: &PathBuf| path != other && path.starts_with(other);
    let mut out: Vec<Bind> = read
        .iter()
        .filter(|path| !read.iter().any(|other| is_in(path, other)))
        .map(Bind::same)
        .collect();
    out.extend(
        binds
            .into_iter()
            .filter(|bind| !read.iter().any(|path| bind.inside.starts_with(path))),
    );
    out.sort_unstable();
    out.dedup();
    Ok(out)
}

/// Binds the file under both its names: as it was written, and as it really is.
fn add(binds: &mut BTreeSet<Bind>, named: &Path, canonical: &Path) {
    if !is_system(canonical) {
        binds.insert(Bind::same(canonical));
    }
    if named != canonical && !is_system(named) {
        binds.insert(Bind {
            host: canonical.to_owned(),
            inside: named.to_owned(),
        });
    }
}

fn is_system(path: &Path) -> bool {
    SYSTEM.iter().any(|dir| path.starts_with(dir))
}

/// The folder that an interpreter was installed into (`…/versions/v22` of `…/versions/v22/bin/node`).
fn package(interpreter: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let bin = interpreter.parent()?;
    let prefix = bin.parent().filter(|_| bin.ends_with("bin"))?;
    let too_wide = prefix.parent().is_none()
        || prefix.ends_with(".local")
        || home.is_some_and(|home| home.starts_with(prefix));
    (!is_system(interpreter) && !too_wide).then(|| prefix.to_owned())
}

/// The program of a `#!` line; `env NAME` is looked up on `PATH`.
fn interpreter(file: &Path) -> io::Result<Option<PathBuf>> {
    let mut head = Vec::new();
    File::open(file)?.take(256).read_to_end(&mut head)?;
    let Some(line) = head.strip_prefix(b"#!") else {
        return Ok(None);
    };
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut words = line
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .map(|word| PathBuf::from(std::ffi::OsStr::from_bytes(word)));
    let Some(first) = words.next() else {
        return Ok(None);
    };
    if !first.ends_with("env") {
        return Ok(Some(first));
    }
    let name = words.find(|word| !word.as_os_str().as_bytes().starts_with(b"-"));
    let Some(name) = name else {
        return Ok(Some(first));
    };
    process::find(&name).map(Some).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::NotFound,
            format!("its interpreter `{}` is not on PATH", name.display()),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::files::write_atomic;

    #[test]
    fn a_script_brings_itself_and_a_system_interpreter_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let file = root.join("agent");
        write_atomic(&file, b"#!/bin/sh\nexit 0\n", 0o755).unwrap();
        let program = locate(&file, None).unwrap();
        assert_eq!(program.binds, [Bind::same(&file)]);
        assert_eq!(program.path, None);
    }

    #[test]
    fn an_interpreter_brings_its_package_but_never_the_home() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let bin = root.join("v22/bin");
        std::fs::create_dir_all(&bin).unwrap();
        write_atomic(&bin.join("node"), b"\x7fELF", 0o755).unwrap();
        let file = root.join("agent");
        let text = format!("#!{}\n", bin.join("node").display());
        write_atomic(&file, text.as_bytes(), 0o755).unwrap();
        let program = locate(&file, Some(&root)).unwrap();
        assert!(program.binds.contains(&Bind::same(root.join("v22"))));
        assert_eq!(program.path.as_deref(), Some(bin.as_path()));
        let program = locate(&file, Some(&root.join("v22/user"))).unwrap();
        assert!(!program.binds.contains(&Bind::same(root.join("v22"))));
    }

    #[test]
    fn a_link_is_seen_under_both_names() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (real, link) = (root.join("real"), root.join("link"));
        write_atomic(&real, b"\x7fELF", 0o755).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let program = locate(&link, None).unwrap();
        assert_eq!(program.canonical, real);
        assert!(program.binds.contains(&Bind {
            host: real,
            inside: link
        }));
    }

    #[test]
    fn a_link_in_a_folder_that_is_seen_whole_is_not_mounted_again() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (bin, lib) = (
            root.join("v22/bin"),
            root.join("v22/lib/node_modules/agent"),
        );
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::create_dir_all(&lib).unwrap();
        write_atomic(&bin.join("node"), b"\x7fELF", 0o755).unwrap();
        let text = format!("#!{}\n", bin.join("node").display());
        write_atomic(&lib.join("agent.js"), text.as_bytes(), 0o755).unwrap();
        write_atomic(&lib.join("package.json"), b"{}", 0o644).unwrap();
        std::os::unix::fs::symlink("../lib/node_modules/agent/agent.js", bin.join("agent"))
            .unwrap();
        let program = locate(&bin.join("agent"), None).unwrap();
        assert_eq!(program.binds, [Bind::same(root.join("v22"))]);
        assert_eq!(program.start, lib.join("agent.js"));
    }

    #[test]
    fn what_lies_in_a_folder_that_is_read_is_shown_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (folder, other) = (root.join("agents"), root.join("other"));
        for dir in [&folder.join("data"), &other] {
            std::fs::create_dir_all(dir).unwrap();
        }
        let file = folder.join("agent");
        write_atomic(&file, b"#!/bin/sh\n", 0o755).unwrap();
        let read = [folder.join("data"), folder.clone(), folder.clone()];
        let binds = vec![Bind::same(&file), Bind::same(&other)];
        assert_eq!(
            with_read("x", binds.clone(), &read).unwrap(),
            [Bind::same(&folder), Bind::same(&other)]
        );
        for bad in [root.join("none"), PathBuf::from("/")] {
            let error = with_read("x", binds.clone(), &[bad]).unwrap_err();
            assert!(error.to_string().contains("harness `x`"), "{error}");
        }
    }

    #[test]
    fn a_file_that_cannot_run_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("data");
        write_atomic(&file, b"x", 0o644).unwrap();
        assert!(locate(&file, None).is_err());
        assert!(locate(&dir.path().join("none"), None).is_err());
    }
}
