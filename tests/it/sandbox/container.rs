//! What only containers have: an image, an engine, and a door for the supervisor.

use super::image;
use super::support::{Who, out, sh, spec, text, with};
use crate::grade_sandboxed::an_honest_patch_is_accepted_and_a_wrong_or_lying_one_is_not;
use hangar::base::process::Run;
use hangar::model::image::Image;
use hangar::model::outcome::Trust;
use hangar::sandbox::spec::{End, Hit, Limits, Spec};
use hangar::sandbox::{Cancel, Launcher, Provider, Unavailable, provider};
use std::path::Path;

fn podman(image: Option<Image>) -> Box<dyn Provider> {
    let launcher = Launcher {
        program: env!("CARGO_BIN_EXE_hangar").into(),
        image,
    };
    provider("podman", &launcher).unwrap()
}

/// What doctor says of docker where `PATH` is only this folder.
fn doctor(path: &Path) -> (String, String) {
    let home = tempfile::tempdir().unwrap();
    let output = Run::new(env!("CARGO_BIN_EXE_hangar"))
        .args(["doctor", "--json"])
        .env("PATH", path)
        .env("HOME", home.path())
        .dir(home.path())
        .output()
        .unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let providers = report["providers"].as_array().unwrap();
    let docker = providers
        .iter()
        .find(|view| view["name"] == "docker")
        .unwrap();
    let text = |key: &str| docker[key].as_str().unwrap().to_owned();
    (text("reason"), text("remedy"))
}

#[test]
fn a_client_or_daemon_that_is_not_there_is_said_with_its_remedy() {
    let programs = super::support::folder(&[]);
    let (reason, remedy) = doctor(programs.path());
    assert_eq!(reason, "the program `docker` is not on PATH");
    assert!(remedy.contains("apt install docker.io"), "{remedy}");
    let answer = |lines: &str| {
        let docker = programs.path().join("docker");
        super::support::write(&docker, &format!("#!/bin/sh\n{lines}\n"));
        Run::new("/bin/chmod")
            .arg("755")
            .arg(&docker)
            .output()
            .unwrap();
        doctor(programs.path())
    };
    let (reason, remedy) = answer("echo Cannot connect to the daemon >&2; exit 1");
    assert_eq!(
        reason,
        "its daemon does not answer: Cannot connect to the daemon"
    );
    assert!(remedy.contains("systemctl start docker"), "{remedy}");
    // With a daemon it is the image that is looked for next.
    let (reason, remedy) = answer("echo 20.10");
    assert_eq!(reason, "no image is named for its containers");
    assert!(remedy.contains("docker image inspect"), "{remedy}");
}

fn refused(image: Option<Image>) -> Unavailable {
    podman(image).check().unwrap_err()
}

#[test]
#[ignore = "heavy: needs podman, as root"]
fn podman_is_refused_without_an_image_that_is_there() {
    let error = refused(None);
    assert!(error.reason.contains("no image is named"), "{error}");
    assert!(
        error.remedy.contains("hangar config set sandbox.image"),
        "{error:?}"
    );
    let strange = format!("localhost/nonesuch@sha256:{}", "0".repeat(64));
    let error = refused(Some(strange.parse().unwrap()));
    assert_eq!(
        error.reason,
        format!("it does not have the image {strange}")
    );
    assert_eq!(error.remedy, format!("fetch it: `podman pull {strange}`"));
    let id = format!("sha256:{}", "0".repeat(64));
    let error = refused(Some(id.parse().unwrap()));
    assert!(error.remedy.contains("podman load"), "{error:?}");
    // The honest neighbour, whose digest is told with every grade.
    let image = image::of("podman").unwrap();
    let works = podman(Some(image.clone()));
    works.check().unwrap();
    assert!(
        works.version().ends_with(image.as_str()),
        "{}",
        works.version()
    );
}

#[test]
#[ignore = "heavy: needs podman, as root"]
fn podman_is_refused_with_an_image_that_would_write_to_the_disk() {
    let plain = image::of("podman").unwrap();
    let name = "localhost/hangar-test-volume";
    let words = [
        "container",
        "create",
        "--entrypoint",
        "/bin/true",
        plain.as_str(),
    ];
    let made = text(&image::run("podman", &words, Vec::new()).stdout);
    let words = ["commit", "--change", "VOLUME /data", made.trim(), name];
    let commit = image::run("podman", &words, Vec::new());
    assert!(commit.status.success(), "{}", commit.stderr_text());
    let words = [
        "image",
        "inspect",
        "--format",
        "{{index .RepoDigests 0}}",
        name,
    ];
    let digest = text(&image::run("podman", &words, Vec::new()).stdout);
    let error = refused(Some(digest.trim().parse().unwrap()));
    image::run("podman", &["rm", made.trim()], Vec::new());
    image::run("podman", &["rmi", name], Vec::new());
    assert!(error.reason.contains("volumes"), "{error}");
}

fn programs_come_from_the_image_and_see_nothing_else() {
    let said = Who::Us.says(
        "ls /; ls /usr; command -v git podman docker; \
         find /sys -path /sys/fs/cgroup -prune -o -type f -print; \
         cat /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids/pids.max 2>/dev/null | wc -l; \
         (echo 1 > /sys/fs/cgroup/pids/pids.max) 2>/dev/null && echo WRITTEN; echo done",
    );
    let expected = "bin\ndev\netc\nhome\nlib\nlib64\nproc\nrun\nsbin\nsys\ntmp\nusr\nvar\n\
                    bin\nlib\nlib64\nsbin\n1\ndone\n";
    assert_eq!(said, expected);
}

/// What the engine's own limits bound is read from the control groups around the supervisor.
fn every_limit_is_measured_to_hold() {
    let limits = Limits {
        memory: Some(512 << 20),
        processes: Some(64),
        disk: Some(64 << 20),
        output: Some(1 << 20),
        file: Some(64 << 20),
        cpus: Some(1),
    };
    let bounded = Spec { limits, ..spec() };
    let probes = Who::Us
        .provider()
        .probe(&bounded, &Cancel::default())
        .unwrap();
    assert_eq!(probes.trust(), Trust::SealedLimits, "{probes:?}");
}

#[test]
#[ignore = "heavy: needs podman, as root"]
fn podman_shows_the_image_and_nothing_else() {
    with("podman", programs_come_from_the_image_and_see_nothing_else);
}

#[test]
#[ignore = "heavy: needs docker and its daemon, as root"]
fn docker_shows_the_image_and_nothing_else() {
    with("docker", programs_come_from_the_image_and_see_nothing_else);
}

#[test]
#[ignore = "heavy: needs podman, as root"]
fn podman_holds_every_limit() {
    with("podman", every_limit_is_measured_to_hold);
}

#[test]
#[ignore = "heavy: needs podman, as root, and python3"]
fn podman_grades() {
    with(
        "podman",
        an_honest_patch_is_accepted_and_a_wrong_or_lying_one_is_not,
    );
}

#[test]
#[ignore = "heavy: needs docker and its daemon, as root, and python3"]
fn docker_grades() {
    with(
        "docker",
        an_honest_patch_is_accepted_and_a_wrong_or_lying_one_is_not,
    );
}

#[test]
#[ignore = "heavy: needs docker and its daemon, as root"]
fn docker_holds_every_limit() {
    with("docker", every_limit_is_measured_to_hold);
}

#[test]
#[ignore = "heavy: needs podman, as root"]
fn podman_programs_find_the_supervisors_door_shut() {
    with("podman", || {
        let said = Who::Us.says(
            "ls -d /var/door; ls /var/door /var/sources 2>&1; (: < /var/door/socket) 2>&1; \
             (: > /var/door/new) 2>&1; echo done",
        );
        assert!(said.starts_with("/var/door\n"), "{said}");
        assert_eq!(said.matches("ermission denied").count(), 4, "{said}");
        assert!(said.ends_with("done\n"), "{said}");
    });
}

#[test]
#[ignore = "heavy: needs podman, as root"]
fn podman_leaves_no_container_and_no_file() {
    with("podman", || {
        let limits = Limits {
            memory: Some(64 << 20),
            ..Limits::default()
        };
        let run = |script: &str| {
            let steps = vec![sh(script)];
            let limits = limits.clone();
            Who::Us
                .run(&Spec {
                    limits,
                    steps,
                    ..spec()
                })
                .unwrap()
        };
        assert_eq!(out(&run("echo ran")), "ran\n");
        let bomb = run("exec tail /dev/zero");
        assert_eq!(bomb.steps[0].end, End::Signalled(9));
        assert_eq!(bomb.steps[0].hits, [Hit::Memory]);
        assert!(!Path::new("oom").exists());
        let words = ["ps", "--all", "--format", "{{.Names}} {{.Status}}"];
        let left = text(&image::run("podman", &words, Vec::new()).stdout);
        // Other tests' own may run beside this one.
        assert!(
            !left.contains("xited") && !left.contains("reated"),
            "{left}"
        );
    });
}
