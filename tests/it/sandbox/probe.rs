//! The probes: they find what holds, and they find what does not.

use super::support::{Who, folder, spec};
use hangar::model::outcome::Trust;
use hangar::sandbox::probe::{CONFINED, LIMITS, SEALED, State};
use hangar::sandbox::spec::{Limits, Mount, Spec};
use hangar::sandbox::{Cancel, Provider as _};

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
fn a_sandbox_is_measured_to_be_sealed() {
    for who in Who::all() {
        let start = std::time::Instant::now();
        let probes = who
            .provider()
            .probe(&limited(), &Cancel::default())
            .unwrap();
        println!("{:?} {:#?}", start.elapsed(), probes);
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
        assert!(probes.trust() >= Trust::Sealed);
    }
}

#[test]
fn a_limit_that_was_not_asked_for_is_not_claimed() {
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

#[test]
fn a_hole_in_the_specification_is_found() {
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
    let _ = folder(&[]);
}
