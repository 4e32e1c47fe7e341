//! The host side of a probe run: lays the bait, starts the twin, and judges what it did.

use super::inside::{self, Bait, Kernel};
use super::{LIMITS, Probe, Probes, State};
use crate::base::random;
use crate::base::temp::Folder;
use crate::sandbox::spec::{End, Enforced, Hit, Limits, Mount, Outcome, Spec, Step, StepOutcome};
use crate::sandbox::{Cancel, Error, Provider};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::PathBuf;
use std::time::Duration;

/// Where this binary is bound inside the twin.
const PROGRAM: &str = "/run/probe";
/// The twin's bounds: small, so that exceeding them costs nothing.
const MEMORY: u64 = 40 << 20;
const PROCESSES: u64 = 12;
const DISK: u64 = 6 << 20;
const FILE: u64 = 1 << 20;
const OUTPUT: u64 = 64 << 10;

/// Probes a twin of `spec`. `program` is the hangar binary as the launcher sees it; `beside` are bytes
/// that the bound on memory leaves for what is not the programs'.
pub(in crate::sandbox) fn run(
    provider: &dyn Provider,
    program: PathBuf,
    beside: u64,
    spec: &Spec,
    cancel: &Cancel,
) -> Result<Probes, Error> {
    let trap = Trap::lay(&spec.limits, beside).map_err(Error::Start)?;
    let twin = twin(spec, program, &trap.bait);
    let outcome = provider.run(&twin, cancel, &mut |_| {})?;
    let mut results = reports(&outcome);
    trap.judge(&mut results);
    limits(&spec.limits, &outcome, &mut results);
    if let Some(first) = outcome.steps.first()
        && let End::NotStarted(errno) = first.end
    {
        let reason = io::Error::from_raw_os_error(errno).to_string();
        results.insert("started".to_owned(), Probe::unmeasured(reason));
    }
    Ok(Probes {
        provider: provider.name().to_owned(),
        version: provider.version(),
        swap_exposed: crate::sandbox::linux::swap_is_on(),
        results,
    })
}

/// Things on the host that a sandbox must not reach.
struct Trap {
    bait: Bait,
    _folder: Folder,
    socket: UnixListener,
    name: UnixListener,
    port: TcpListener,
}

impl Trap {
    fn lay(limits: &Limits, beside: u64) -> io::Result<Self> {
        // Open to everyone: only the sandbox may stand between the probe and the bait.
        let folder = Folder::new("probe", 0o755)?;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
        let file = tempfile::Builder::new()
            .prefix("file")
            .permissions(fs::Permissions::from_mode(0o644))
            .tempfile_in(folder.path())?;
        let (_, file) = file.keep().map_err(|error| error.error)?;
        let path = folder.path().join("socket");
        let socket = UnixListener::bind(&path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777))?;
        socket.set_nonblocking(true)?;
        let text = random::hex::<8>();
        let name = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&text)?)?;
        name.set_nonblocking(true)?;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        port.set_nonblocking(true)?;
        let smaller = |limit: Option<u64>, most: u64| limit.map(|limit| limit.min(most));
        Ok(Self {
            bait: Bait {
                file,
                socket: path,
                name: text,
                host: "example.com".to_owned(),
                port: port.local_addr()?.port(),
                processes_of: fs::read_link("/proc/self/ns/pid")
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned(),
                kernel: Kernel::here(),
                memory: smaller(limits.memory, MEMORY).map(|bytes| bytes + beside),
                processes: smaller(limits.processes, PROCESSES),
                disk: smaller(limits.disk, DISK),
                file_size: smaller(limits.file, FILE),
                output: smaller(limits.output, OUTPUT),
            },
            _folder: folder,
            socket,
            name,
            port,
        })
    }

    /// What arrived here counts, whatever the probe says.
    fn judge(&self, results: &mut BTreeMap<String, Probe>) {
        for (name, arrived) in [
            ("host-socket", self.socket.accept().is_ok()),
            ("host-abstract-socket", self.name.accept().is_ok()),
            ("host-loopback", self.port.accept().is_ok()),
        ] {
            if arrived {
                results.insert(name.to_owned(), Probe::open("a connection arrived"));
            }
        }
        if self.bait.file.with_file_name("written").exists() {
            let probe = Probe::open("a file appeared on the host");
            results.insert("write-outside".to_owned(), probe);
        }
    }
}

/// The same sandbox with smaller bounds and the probe in it.
fn twin(spec: &Spec, program: PathBuf, bait: &Bait) -> Spec {
    let step = |which: &str| Step {
        argv: vec![
            PROGRAM.into(),
            crate::sandbox::PROBE_COMMAND.into(),
            which.into(),
        ],
        env: BTreeMap::new(),
        dir: PathBuf::from("/"),
        stdin: serde_json::to_vec(bait).unwrap_or_default(),
        channel: true,
        timeout: Duration::from_secs(10),
        idle: None,
    };
    let mut steps = vec![step(inside::LOOK), step(inside::BOUNDS)];
    if bait.processes.is_some() {
        steps.push(step(inside::PROCESSES));
    }
    // Last: some sandboxes end with it.
    if bait.memory.is_some() {
        steps.push(step(inside::MEMORY));
    }
    let mut mounts = spec.mounts.clone();
    mounts.push(Mount::ReadOnly {
        host: program,
        inside: PathBuf::from(PROGRAM),
    });
    Spec {
        mounts,
        files: Vec::new(),
        network: spec.network.clone(),
        limits: Limits {
            memory: spec.limits.memory.map(|bytes| bytes.min(MEMORY)),
            processes: bait.processes,
            disk: bait.disk,
            output: bait.output,
            file: bait.file_size,
            cpus: spec.limits.cpus,
        },
        inner_domain: spec.inner_domain,
        hash_after: Vec::new(),
        collect: Vec::new(),
        steps,
        stop_on_failure: false,
        deadline: None,
    }
}

/// What the probe told. Of an attempt that was told twice, the worse counts.
fn reports(outcome: &Outcome) -> BTreeMap<String, Probe> {
    let mut results: BTreeMap<String, Probe> = BTreeMap::new();
    for step in &outcome.steps {
        for line in step
            .channel
            .iter()
            .flat_map(|bytes| bytes.split(|byte| *byte == b'\n'))
        {
            let Ok((name, probe)) = serde_json::from_slice::<(String, Probe)>(line) else {
                continue;
            };
            let open = results
                .get(&name)
                .is_some_and(|before| before.state == State::Open);
            if !open {
                results.insert(name, probe);
            }
        }
    }
    results
}

fn limits(asked: &Limits, outcome: &Outcome, results: &mut BTreeMap<String, Probe>) {
    let enforced = &outcome.enforced;
    for name in LIMITS {
        let told = results.get(*name).cloned();
        let probe = match *name {
            "memory" => asked.memory.map(|_| memory(enforced, outcome, told)),
            "processes" => asked.processes.map(|_| told.unwrap_or_else(lost)),
            "cpu" => asked.cpus.map(|_| cpu(enforced)),
            "disk" => asked.disk.map(|_| told.unwrap_or_else(lost)),
            "file-size" => asked.file.map(|_| told.unwrap_or_else(lost)),
            _ => asked.output.map(|limit| output(limit.min(OUTPUT), outcome)),
        };
        let probe = probe.unwrap_or_else(|| {
            Probe::unmeasured("not tried: this sandbox was started without that limit")
        });
        results.insert((*name).to_owned(), probe);
    }
}

fn lost() -> Probe {
    Probe::unmeasured("the probe was lost")
}

fn memory(enforced: &Enforced, outcome: &Outcome, told: Option<Probe>) -> Probe {
    if told.as_ref().is_some_and(|told| told.state != State::Held) {
        return told.unwrap_or_else(lost);
    }
    let hit = outcome
        .steps
        .iter()
        .any(|step: &StepOutcome| step.hits.contains(&Hit::Memory));
    match (hit, enforced.memory) {
        (true, true) => Probe::held("killed at the bound"),
        (true, false) => Probe::open("only watched: no control group bounds the tree"),
        (false, _) => Probe::open("the bound was not hit"),
    }
}

fn cpu(enforced: &Enforced) -> Probe {
    if enforced.cpus {
        Probe::held("a control group sets the quota")
    } else {
        Probe::open("no control group sets a quota")
    }
}

fn output(limit: u64, outcome: &Outcome) -> Probe {
    let Some(step) = outcome.steps.get(1) else {
        return lost();
    };
    let length = step.stdout.len() as u64;
    if length == limit && step.hits.contains(&Hit::Output) {
        Probe::held(format!("cut after {length} bytes"))
    } else if step.end == End::Exited(0) {
        Probe::open(format!("{length} bytes were kept"))
    } else {
        lost()
    }
}
