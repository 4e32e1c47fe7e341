//! How long a sandbox takes to start, beside bubblewrap where that is installed.

use super::support::{Who, sh, spec};
use hangar::base::process::{self, Run};
use hangar::sandbox::Cancel;
use hangar::sandbox::spec::{Limits, Spec};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

const ROUNDS: usize = 100;

const BWRAP: [&str; 24] = [
    "--unshare-all",
    "--cap-drop",
    "ALL",
    "--new-session",
    "--die-with-parent",
    "--ro-bind",
    "/usr",
    "/usr",
    "--symlink",
    "usr/bin",
    "/bin",
    "--symlink",
    "usr/lib",
    "/lib",
    "--symlink",
    "usr/lib64",
    "/lib64",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "--tmpfs",
    "/tmp",
    "/usr/bin/true",
];

#[test]
#[ignore = "heavy: a measurement; `cargo test --test it sandbox::measure -- --ignored --nocapture`"]
fn start_times() {
    let mut step = sh("");
    step.argv = vec!["/usr/bin/true".into()];
    let plain = Spec {
        steps: vec![step],
        limits: Limits::default(),
        ..spec()
    };
    let limited = Spec {
        limits: Limits {
            memory: Some(1 << 30),
            processes: Some(100),
            disk: Some(1 << 30),
            output: Some(1 << 20),
            file: Some(1 << 30),
            cpus: Some(2),
        },
        ..plain.clone()
    };
    let bwrap = process::find(Path::new("bwrap"));
    let mut times: BTreeMap<String, Vec<Duration>> = BTreeMap::new();
    let mut time = |name: String, run: &dyn Fn()| {
        let start = Instant::now();
        run();
        times.entry(name).or_default().push(start.elapsed());
    };
    for _ in 0..ROUNDS {
        for who in Who::all() {
            time(format!("{who:?}"), &|| drop(who.run(&plain).unwrap()));
            time(format!("{who:?}, limits"), &|| {
                drop(who.run(&limited).unwrap());
            });
            time(format!("{who:?}, probes"), &|| {
                drop(who.provider().probe(&limited, &Cancel::default()).unwrap());
            });
        }
        time("no sandbox".to_owned(), &|| {
            drop(Run::new("/usr/bin/true").output().unwrap());
        });
        if let Some(bwrap) = &bwrap {
            time("bwrap".to_owned(), &|| {
                let output = Run::new(bwrap).args(BWRAP).output().unwrap();
                assert!(output.status.success(), "{}", output.stderr_text());
            });
        }
    }
    for (name, mut times) in times {
        times.sort_unstable();
        let at = |percent: usize| times[(times.len() - 1) * percent / 100];
        println!(
            "{name:15} min {:?}, median {:?}, p95 {:?}",
            at(0),
            at(50),
            at(95)
        );
    }
}
