//! The image that the tests' containers are made from: programs of this machine and their libraries,
//! imported without a registry.

use super::support::text;
use crate::grade_attacks_python;
use hangar::base::process::{self, Run};
use hangar::model::image::Image;
use hangar::sandbox::toolchain;
use std::path::Path;
use std::sync::OnceLock;

/// Its name; the number changes with what is in it.
const NAME: &str = "localhost/hangar-test:5";

/// Programs that the tests' scripts call.
const PROGRAMS: &str = "sh bash cat cp cut chmod chown chroot dd echo env false find grep head hostname id ln \
     ls mkdir mkfifo mknod mount mv nohup printf ps readlink rm rmdir seq setsid sleep stat tail tee \
     test touch tr true umount uname unshare wc whoami yes";

/// Copies them with what the loader finds for them, and for hangar (`$0`), into one archive.
const MAKE: &str = r#"
set -e
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
for dir in bin sbin lib lib64; do
  if [ -L /$dir ]; then mkdir -p "$root/usr/$dir"; ln -s usr/$dir "$root/$dir"; fi
done
add() { mkdir -p "$root$(dirname "$1")"; cp -Ln "$1" "$root$1"; }
libraries() {
  ldd "$1" 2>/dev/null | grep -o '/[^ )]*' | while read -r library; do
    case "$library" in /lib*|/usr/*) add "$library";; esac
  done
}
for name in $PROGRAMS; do
  path=$(PATH=/usr/bin:/bin:/usr/sbin command -v "/usr/bin/$name" || true)
  [ -z "$path" ] || { add "$path"; libraries "$path"; }
done
libraries "$0"
for path in /usr/bin/python3* /usr/lib/python3*; do
  if [ -e "$path" ]; then cp -a "$path" "$root$(dirname "$path")"; fi
done
for tool in $TOOLS "$root/usr"; do
  find "$tool" -path '*/bin/python3*' -o -path '*/lib-dynload/*.so' | while read -r file; do libraries "$file"; done
done
tar -C "$root" -c .
"#;

/// The image for that provider; none where it needs none.
pub(crate) fn of(provider: &str) -> Option<Image> {
    static PODMAN: OnceLock<Image> = OnceLock::new();
    static DOCKER: OnceLock<Image> = OnceLock::new();
    match provider {
        "podman" => {
            let image = || make("podman", "{{index .RepoDigests 0}}");
            Some(PODMAN.get_or_init(image).clone())
        }
        // What never was in a registry has no digest there, but for its id.
        "docker" => Some(DOCKER.get_or_init(|| make("docker", "{{.Id}}")).clone()),
        _ => None,
    }
}

fn make(engine: &str, format: &str) -> Image {
    let ask = || {
        let output = run(
            engine,
            &["image", "inspect", "--format", format, NAME],
            Vec::new(),
        );
        output.status.success().then(|| text(&output.stdout))
    };
    let found = ask().unwrap_or_else(|| {
        let made = Run::new("/bin/sh")
            .args(["-c", MAKE, env!("CARGO_BIN_EXE_hangar")])
            .env("PATH", "/usr/bin:/bin")
            .env("PROGRAMS", PROGRAMS)
            .env("TOOLS", tools())
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", made.stderr_text());
        let output = run(engine, &["import", "-", NAME], made.stdout);
        assert!(output.status.success(), "{}", output.stderr_text());
        ask().unwrap()
    });
    let found = found.trim();
    let id = format!("sha256:{}", found.trim_start_matches("sha256:"));
    found.parse().or_else(|_| id.parse()).unwrap()
}

/// Where the tests' Python is, as far as it lies outside `/usr` and so is shown from this machine; one
/// of `/usr` is in the image, since a virtual environment may be made of it.
fn tools() -> String {
    let folders = toolchain::binds(&grade_attacks_python::interpreter()).into_iter();
    let folders: Vec<_> = folders.map(|folder| folder.display().to_string()).collect();
    folders.join(" ")
}

/// Runs an engine's program as hangar would.
pub(crate) fn run(engine: &str, words: &[&str], stdin: Vec<u8>) -> process::Output {
    let program = process::find(Path::new(engine)).expect("the engine is installed");
    Run::new(program)
        .args(words)
        .inherit(&["PATH", "HOME", "XDG_RUNTIME_DIR", "DOCKER_HOST"])
        .stdin(stdin)
        .output()
        .unwrap()
}
