//! How long it takes until a sandbox stands, has run `/bin/true`, and is gone; and what the probes
//! cost. Anchors: `bwrap --unshare-all` with comparable mounts, and `/bin/true` alone.

#[path = "common/anchor.rs"]
mod anchor;

use criterion::Criterion;
use hangar::base::process;
use hangar::sandbox::spec::{End, Limits, Network, Spec, Step};
use hangar::sandbox::{Cancel, Launcher, Provider};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

/// The mounts that every sandbox of ours has, as far as bwrap has them too.
const BWRAP: &[&str] = &[
    "--unshare-all",
    "--die-with-parent",
    "--new-session",
    "--ro-bind",
    "/usr",
    "/usr",
    "--ro-bind-try",
    "/etc/ssl",
    "/etc/ssl",
    "--ro-bind-try",
    "/etc/alternatives",
    "/etc/alternatives",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "--tmpfs",
    "/tmp",
    "--tmpfs",
    "/run",
    "--tmpfs",
    "/home/user",
];

fn spec(limits: Limits) -> Spec {
    Spec {
        mounts: Vec::new(),
        files: Vec::new(),
        network: Network::None,
        limits,
        inner_domain: true,
        hash_after: Vec::new(),
        collect: Vec::new(),
        deadline: None,
        steps: vec![Step {
            argv: vec!["/bin/true".into()],
            env: BTreeMap::new(),
            dir: "/".into(),
            stdin: Vec::new(),
            channel: false,
            timeout: Duration::from_secs(30),
            idle: None,
        }],
        stop_on_failure: false,
    }
}

/// Bounds as a grade sets them.
fn limits() -> Limits {
    Limits {
        memory: Some(2 << 30),
        processes: Some(256),
        disk: Some(1 << 30),
        output: Some(1 << 20),
        file: Some(1 << 30),
        cpus: Some(2),
    }
}

fn provider() -> Box<dyn Provider> {
    let launcher = Launcher {
        program: env!("CARGO_BIN_EXE_hangar").into(),
        image: None,
    };
    hangar::sandbox::provider("linux", &launcher).expect("it is part of hangar")
}

fn run(provider: &dyn Provider, spec: &Spec) {
    let outcome = provider
        .run(spec, &Cancel::default(), &mut |_| {})
        .expect("a sandbox starts");
    assert_eq!(outcome.steps[0].end, End::Exited(0));
}

/// `/bin`, `/lib` and so on as the host has them: links into `/usr`, or folders.
fn bwrap() -> Vec<String> {
    let mut args: Vec<String> = BWRAP.iter().map(|arg| (*arg).to_owned()).collect();
    for path in ["/bin", "/sbin", "/lib", "/lib64"] {
        let link = std::fs::read_link(path);
        let (kind, from) = match &link {
            Ok(target) => ("--symlink", target.as_path()),
            Err(_) if Path::new(path).exists() => ("--ro-bind", Path::new(path)),
            Err(_) => continue,
        };
        args.extend([kind.into(), from.display().to_string(), path.into()]);
    }
    args.push("/bin/true".into());
    args
}

fn start(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sandbox-start");
    let provider = provider();
    for (name, limits) in [
        ("hangar", Limits::default()),
        ("hangar-with-limits", limits()),
    ] {
        let spec = spec(limits);
        group.bench_function(name, |bencher| {
            bencher.iter(|| run(provider.as_ref(), &spec));
        });
    }
    if process::find(Path::new("bwrap")).is_some() {
        let args = bwrap();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        group.bench_function("anchor-bwrap", |bencher| {
            bencher.iter(|| anchor::run(&mut anchor::command("bwrap", &args)));
        });
    }
    // What starting programs costs by itself: twice `true`, since hangar and bwrap start one more.
    group.bench_function("floor-true", |bencher| {
        bencher.iter(|| anchor::run(&mut anchor::command("/bin/true", &[])));
    });
    group.finish();
}

fn probes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sandbox-probes");
    let (provider, spec) = (provider(), spec(limits()));
    group.bench_function("hangar", |bencher| {
        bencher.iter(|| black_box(provider.probe(&spec, &Cancel::default())).expect("it runs"));
    });
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    start(&mut criterion);
    probes(&mut criterion);
    criterion.final_summary();
}
