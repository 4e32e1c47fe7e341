//! Nothing outlives a sandbox, however it ends.

use super::support::{
    LINUX, Who, eventually, processes_with, sh, spec, text, tried, visible, with,
};
use hangar::base::process;
use hangar::sandbox::spec::{End, Limits, Spec};
use hangar::sandbox::{Cancel, Error, Event};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// Which provider the victim uses.
const VICTIMS: &str = "HANGAR_TEST_PROVIDER";
/// Set for the process that `nothing_is_left_when_hangar_is_killed` kills.
const VICTIM: &str = "HANGAR_TEST_VICTIM";

fn limits() -> Limits {
    Limits {
        memory: Some(256 << 20),
        processes: Some(64),
        ..Limits::default()
    }
}

/// Everybody, with a number that no other test's processes have in their command line.
fn marked(test: u32) -> Vec<(Who, String)> {
    let base = u32::try_from(tried().len()).expect("a short name") * 10_000 + test;
    let all = Who::all().into_iter().enumerate();
    all.map(|(index, who)| (who, format!("{base}00{}", index + 1)))
        .collect()
}

/// A script that leaves processes in every way known, all with `marker` in their command line.
fn leaver(marker: &str) -> String {
    format!(
        "sleep {marker} & setsid sleep {marker} & (setsid sh -c 'sleep {marker} & sleep {marker}' &) ; \
         trap '' TERM INT HUP; nohup sleep {marker} >/dev/null 2>&1 & echo ready"
    )
}

/// Control groups of ours.
fn groups() -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new("/sys/fs/cgroup").to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let name = entry.file_name().to_string_lossy().into_owned();
                if name.starts_with("hangar-") {
                    found.push(name);
                } else {
                    folders.push(entry.path());
                }
            }
        }
    }
    found
}

#[test]
pub(super) fn survivors_die_with_their_step() {
    for (who, marker) in marked(8881) {
        let mut steps = vec![sh(&leaver(&marker)), sh("ls -d /proc/[0-9]* | wc -l")];
        steps[0].channel = true;
        let outcome = who
            .run(&Spec {
                steps,
                limits: limits(),
                ..spec()
            })
            .unwrap();
        assert_eq!(outcome.steps[0].end, End::Exited(0));
        assert!(
            text(&outcome.steps[1].stdout)
                .trim()
                .parse::<u32>()
                .unwrap()
                <= visible()
        );
        assert_eq!(processes_with(&marker), [""; 0]);
    }
}

#[test]
pub(super) fn a_timeout_kills_everything() {
    for (who, marker) in marked(8882) {
        let mut step = sh(&format!("{}; wait; sleep {marker}", leaver(&marker)));
        step.timeout = Duration::from_millis(500);
        let outcome = who
            .run(&Spec {
                steps: vec![step],
                limits: limits(),
                ..spec()
            })
            .unwrap();
        assert_eq!(outcome.steps[0].end, End::TimedOut);
        assert_eq!(text(&outcome.steps[0].stdout), "ready\n");
        assert_eq!(processes_with(&marker), [""; 0]);
    }
}

#[test]
pub(super) fn an_interrupt_kills_everything() {
    for (who, marker) in marked(8883) {
        let spec = Spec {
            steps: vec![sh(&format!("{}; wait", leaver(&marker)))],
            limits: limits(),
            ..spec()
        };
        let cancel = Cancel::default();
        let result = who.provider().run(&spec, &cancel, &mut |event| {
            if event == Event::Stdout(b"ready".to_vec()) {
                cancel.set();
            }
        });
        assert!(matches!(result, Err(Error::Interrupted)), "{result:?}");
        assert_eq!(processes_with(&marker), [""; 0]);
    }
}

/// Not a test of its own: the process that the next test kills.
#[test]
pub(super) fn victim() {
    let Some(marker) = std::env::var_os(VICTIM) else {
        return;
    };
    for other in ["bwrap", "podman", "docker"] {
        if std::env::var(VICTIMS).is_ok_and(|name| name == other) {
            with(other, || ());
        }
    }
    let marker = marker.to_string_lossy().into_owned();
    let who = if marker.ends_with('2') {
        Who::User
    } else {
        Who::Us
    };
    let spec = Spec {
        steps: vec![sh(&format!("{}; wait", leaver(&marker)))],
        limits: limits(),
        ..spec()
    };
    let _ = who.run(&spec);
}

#[test]
pub(super) fn nothing_is_left_when_hangar_is_killed() {
    for (who, marker) in marked(8884) {
        // By which engines are found.
        let own = ["HOME", "DOCKER_HOST"]
            .into_iter()
            .filter_map(|name| Some((name, std::env::var_os(name)?)));
        let mut child = process::command(&std::env::current_exe().unwrap())
            .envs(own)
            .args(["--exact", "sandbox::lifetime::victim", "--nocapture"])
            .env(VICTIM, &marker)
            .env(VICTIMS, tried())
            .env("PATH", std::env::var_os("PATH").unwrap())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let launchers = || -> Vec<String> {
            processes_with("__sandbox")
                .into_iter()
                .filter(|pid| parent(pid) == Some(child.id()))
                .collect()
        };
        eventually("the sandbox runs", || {
            processes_with(&format!("sleep {marker}")).len() >= 4
        });
        let launcher = launchers();
        assert_eq!(launcher.len(), 1);
        child.kill().unwrap();
        child.wait().unwrap();
        eventually("everything is dead", || {
            processes_with(&format!("sleep {marker}")).is_empty() && !lives(&launcher[0])
        });
        let ours = format!("hangar-{}-", launcher[0]);
        eventually("its control groups are gone", || {
            if tried() != LINUX {
                // There the next sandbox clears them away.
                let spec = Spec {
                    steps: vec![sh("true")],
                    limits: limits(),
                    ..spec()
                };
                who.run(&spec).unwrap();
            }
            !groups().iter().any(|name| name.starts_with(&ours))
        });
    }
}

/// Whether it runs; a dead one that nobody waited for yet does not.
fn lives(pid: &str) -> bool {
    fs::read_to_string(Path::new("/proc").join(pid).join("status"))
        .is_ok_and(|status| !status.contains("State:\tZ"))
}

fn parent(pid: &str) -> Option<u32> {
    fs::read_to_string(Path::new("/proc").join(pid).join("status"))
        .ok()?
        .lines()
        .find_map(|line| line.strip_prefix("PPid:"))?
        .trim()
        .parse()
        .ok()
}

#[test]
pub(super) fn nothing_is_left_when_the_launcher_is_killed() {
    for (who, marker) in marked(8885) {
        let spec = Spec {
            steps: vec![sh(&format!("{}; wait", leaver(&marker)))],
            ..spec()
        };
        let result = who.provider().run(&spec, &Cancel::default(), &mut |event| {
            if event == Event::Stdout(b"ready".to_vec()) {
                let us = std::process::id();
                for pid in processes_with("__sandbox") {
                    let runs_this = processes_with(&marker)
                        .iter()
                        .any(|below| ancestors(below).contains(&pid));
                    if parent(&pid) == Some(us) && runs_this {
                        let pid = pid.parse().ok().and_then(rustix::process::Pid::from_raw);
                        rustix::process::kill_process(pid.unwrap(), rustix::process::Signal::KILL)
                            .unwrap();
                    }
                }
            }
        });
        assert!(matches!(result, Err(Error::Lost(_))), "{result:?}");
        eventually("everything is dead", || processes_with(&marker).is_empty());
    }
}

fn ancestors(pid: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut at = pid.to_owned();
    while let Some(above) = parent(&at).filter(|above| *above > 1) {
        at = above.to_string();
        found.push(at.clone());
    }
    found
}
