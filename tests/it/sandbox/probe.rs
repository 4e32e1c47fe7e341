//! The probes: they find what holds, and they find what does not.

use super::support::{Who, folder, processes_with, spec, tried};
use hangar::base::process::Run;
use hangar::model::outcome::Trust;
use hangar::sandbox::Cancel;
use hangar::sandbox::probe::{CONFINED, LIMITS, Probe, SEALED, State};
use hangar::sandbox::spec::{Limits, Mount, Spec};
use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::time::Duration;

fn limited() -> Spec {
    Spec {
        limits: Limits {
            memory: Some(1 << 30),
            processes: Some(256),
            disk: Some(1 << 30),
            output: Some(1 << 20),
            file: Some(1 << 30),
            cpus: Some(2),
        },
        ..spec()
    }
}

#[test]
pub(super) fn a_sandbox_is_measured_to_be_sealed() {
    for who in Who::all() {
        let probes = who
            .provider()
            .probe(&limited(), &Cancel::default())
            .unwrap();
        for name in CONFINED.iter().chain(SEALED) {
            assert_eq!(
                probes.results[*name].state,
                State::Held,
                "{name}: {probes:?}"
            );
        }
        for name in ["disk", "file-size", "output", "processes"] {
            assert_eq!(
                probes.results[name].state,
                State::Held,
                "{name}: {probes:?}"
            );
        }
        // Nothing here has a kernel of its own, and nothing may claim it.
        assert_eq!(probes.results["kernel"].state, State::Open, "{probes:?}");
        assert!(probes.trust() >= Trust::Sealed);
        assert_eq!(probes.provider, tried());
    }
}

/// A test of providers that have one; the embedded one shares the host's, and must not claim more.
#[test]
pub(super) fn a_kernel_of_its_own_is_measured() {
    for who in Who::all() {
        let probes = who
            .provider()
            .probe(&limited(), &Cancel::default())
            .unwrap();
        let own = tried() == "gvisor";
        let state = if own { State::Held } else { State::Open };
        assert_eq!(probes.results["kernel"].state, state, "{probes:?}");
        if own && who == Who::Us && root() {
            assert_eq!(probes.trust(), Trust::Isolated, "{probes:?}");
        } else if own {
            assert!(probes.trust() >= Trust::Sealed, "{probes:?}");
        } else {
            assert!(probes.trust() < Trust::Isolated, "{probes:?}");
        }
    }
}

#[test]
pub(super) fn a_limit_that_was_not_asked_for_is_not_claimed() {
    let spec = Spec {
        limits: Limits::default(),
        ..spec()
    };
    let probes = Who::Us.provider().probe(&spec, &Cancel::default()).unwrap();
    for name in LIMITS {
        assert_eq!(probes.results[*name].state, State::Unmeasured, "{name}");
    }
    assert_eq!(probes.trust(), Trust::Sealed);
}

/// The same attempts without a sandbox: a probe that can't succeed proves nothing.
#[test]
pub(super) fn without_a_sandbox_the_attempts_succeed() {
    // As an ordinary user, since as root some attempts would do harm.
    let Some(who) = Who::all().pop().filter(|who| *who == Who::User || !root()) else {
        return;
    };
    let bait = folder(&[("file", "secret"), ("report", "")]);
    let at = |name: &str| bait.path().join(name).display().to_string();
    let _socket = UnixListener::bind(at("socket")).unwrap();
    fs::set_permissions(at("socket"), fs::Permissions::from_mode(0o777)).unwrap();
    let name = format!("bait-{}", std::process::id());
    let _name = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    let text = serde_json::json!({
        "file": at("file"), "socket": at("socket"), "name": name, "host": "localhost",
        "port": port.local_addr().unwrap().port(),
        "kernel": kernel(),
    });
    let marker = format!("mark-{}", std::process::id());
    let output = Run::new("/bin/sh")
        .args([
            "-c",
            "exec \"$0\" __probe look \"$2\" 3>\"$1\" >/dev/null 2>&1",
        ])
        .arg(who.program())
        .args([at("report"), marker.clone()])
        .stdin(text.to_string().into_bytes())
        .timeout(Duration::from_secs(20))
        .output()
        .unwrap();
    assert!(output.status.success());
    for pid in processes_with(&marker) {
        let pid = pid
            .parse()
            .ok()
            .and_then(rustix::process::Pid::from_raw)
            .unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
    let _ = fs::remove_file("/tmp/.alive");
    let report = fs::read_to_string(at("report")).unwrap();
    let told: BTreeMap<String, Probe> = report
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for name in [
        "host-file",
        "host-loopback",
        "resolve",
        "host-socket",
        "host-abstract-socket",
        "host-processes",
        "kernel",
        "peer-memory",
        "capabilities",
        "kernel-surface",
        "user-namespace",
        "terminal",
    ] {
        assert_eq!(told[name].state, State::Open, "{name}: {:?}", told[name]);
    }
}

/// As `/proc` has it, word for word what the probe asks the kernel itself.
fn kernel() -> serde_json::Value {
    let word = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap();
        text.trim().to_owned()
    };
    serde_json::json!({
        "name": format!("{} {}", word("osrelease"), word("version")),
        "boot": word("random/boot_id"),
    })
}

fn root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
pub(super) fn a_hole_in_the_specification_is_found() {
    // The folder in which the bait is laid, shown to the sandbox.
    let spec = Spec {
        mounts: vec![Mount::ReadWrite {
            host: std::env::temp_dir(),
            inside: std::env::temp_dir(),
        }],
        ..limited()
    };
    for who in Who::all() {
        let probes = who.provider().probe(&spec, &Cancel::default()).unwrap();
        assert_eq!(probes.results["host-file"].state, State::Open, "{probes:?}");
        assert_eq!(
            probes.results["host-socket"].state,
            State::Open,
            "{probes:?}"
        );
        assert_eq!(probes.trust(), Trust::None);
    }
}
