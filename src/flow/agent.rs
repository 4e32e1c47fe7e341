//! One turn of an agent program in its sandbox.

use super::Error;
use super::closed;
use super::host::{Host, Progress};
use super::need;
use super::outage::{self, Stopped};
use super::scratch::Scratch;
use super::sealing;
use super::tools::Tooling;
use crate::base::redact::Secret;
use crate::git::Repository;
use crate::harness::adapter::{Launch, Turn};
use crate::harness::collect::{CollectedFile, LeftOut};
use crate::harness::egress::{self, Config, EgressRecord, Proxy};
use crate::harness::exchange::{self, Criterion, Inputs, TaskFile};
use crate::harness::finish::{Ended, ErrorClass, Exit, Failure, Finish};
use crate::harness::health;
use crate::harness::lanes::Lane;
use crate::harness::variables::Variables;
use crate::model::digest::Digest;
use crate::model::lane::Role;
use crate::model::object_id::ObjectId;
use crate::model::run::{Attachment, Egress, Harness};
use crate::model::task::Task;
use crate::sandbox::spec::{
    self, Bridge, Collect, LaidFile, Limits, Mount, Network, Spec, Step, StepOutcome,
};
use crate::sandbox::{Event, Probes};
use crate::seal;
use crate::store::Store;
use crate::store::chain::Content;
use crate::store::dossier::Dossier;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Wall clock of one turn.
const TOTAL: Duration = Duration::from_secs(2 * 3600);
/// Longest silence of one turn.
const IDLE: Duration = Duration::from_secs(20 * 60);
/// Where hangar's own binary is seen inside. Only the kind `script` starts it.
const BINARY: &str = "/hangar/bin";
/// The work tree inside.
pub const WORK: &str = "/src";

/// What an agent is started with.
#[derive(Debug)]
pub struct Assignment<'a> {
    /// As what.
    pub role: Role,
    /// Turn or round, from 1.
    pub number: u32,
    /// With which program.
    pub lane: &'a Lane,
    /// On which task.
    pub task: &'a Task,
    /// What it is told.
    pub prompt: &'a str,
    /// What goes into `in/context.md`; empty makes no file.
    pub context: &'a str,
    /// Files for `in/previous/`: relative path and content.
    pub previous: Vec<(PathBuf, Secret)>,
    /// The pinned repository on the host.
    pub work: &'a Path,
    /// Whether what it does to the work tree is thrown away with the sandbox.
    pub throw_away: bool,
    /// Bounds on what is collected from `out/`.
    pub collect: Collect,
    /// Digests of the canaries of every sealed version: what holds one does not leave.
    pub canaries: Vec<Digest>,
    /// Programs and dependencies of the project, for the repository's own check.
    pub tooling: Option<&'a Tooling>,
}

/// What a turn left.
#[derive(Debug, Clone)]
pub struct Turned {
    /// What the program says.
    pub finish: Finish,
    /// Files of `out/`.
    pub files: Vec<CollectedFile>,
    /// What of `out/` was left out.
    pub left_out: Vec<LeftOut>,
    /// Both streams, one after the other.
    pub transcript: Secret,
    /// What it was given of the user's environment.
    pub env: Variables,
    /// What the sandbox held.
    pub probes: Probes,
    /// Requests through the proxy.
    pub egress: Vec<EgressRecord>,
    /// Start.
    pub started: Timestamp,
    /// End.
    pub ended: Timestamp,
}

impl Turned {
    /// The egress table of a run document.
    pub fn egress_table(&self) -> Egress {
        let count = |allowed: bool| {
            let matching = self
                .egress
                .iter()
                .filter(|record| record.is_allowed() == allowed);
            u32::try_from(matching.count()).unwrap_or(u32::MAX)
        };
        Egress {
            allowed: count(true),
            refused: count(false),
        }
    }
}

/// Digests of the canaries of a task's sealed versions.
pub fn canaries(dossier: &Dossier) -> Vec<Digest> {
    dossier
        .seals
        .iter()
        .map(|seal| seal.value().canary)
        .collect()
}

/// Bounds on what is read from an agent's `out/`.
pub fn collect_bounds(folder: &str) -> Collect {
    Collect {
        path: Path::new(exchange::INSIDE).join(folder),
        max_file: 16 << 20,
        max_total: 128 << 20,
        max_files: 4096,
    }
}

/// Runs one turn to its end.
pub fn turn(host: &Host<'_>, store: &Store, assignment: &Assignment<'_>) -> Result<Turned, Error> {
    let lane = assignment.lane;
    let launch = lane.adapter.launch(&Turn {
        role: assignment.role,
        number: assignment.number,
        exchange: Path::new(exchange::INSIDE),
        work: Path::new(WORK),
        hangar: Path::new(BINARY),
        prompt: assignment.prompt,
        home: Path::new(crate::sandbox::HOME),
        env: &host.env,
        total: lane.timeout.unwrap_or(TOTAL),
        idle: lane.idle.unwrap_or(IDLE),
    })?;
    let proxy = proxy(assignment, &launch)?;
    let spec = spec(host, assignment, &launch, &proxy)?;
    closed::check(host, store, assignment.role.as_str(), &spec.mounts)?;
    let probes = host.provider.probe(&spec, &host.cancel)?;
    need::met(&probes, need::LISTED, assignment.role.as_str())?;
    let started = store.clock.now();
    let outcome = run(host, &spec, assignment, &launch.env)?;
    let ended = store.clock.now();
    let egress = proxy.finish();
    let root = &assignment.collect.path;
    let clean = |bytes: &[u8]| launch.env.redact(bytes).into_owned();
    let taken = |file: spec::CollectedFile| {
        let bytes = Secret::new(clean(file.bytes.expose()));
        CollectedFile::below(root, &file.path, file.executable, bytes)
    };
    let refused = |(path, why): &(Vec<u8>, String)| LeftOut::below(root, path, why);
    let step = outcome.steps.into_iter().next().unwrap_or_default();
    let (stdout, stderr) = (clean(&step.stdout), clean(&step.stderr));
    let finish = lane.adapter.read(&Ended {
        exit: exit(&step),
        stdout: &stdout,
        stderr: &stderr,
        at: ended,
    });
    outage::note(host, lane, &finish, started);
    if let Some(usage) = finish.usage {
        host.note(format!(
            "{}: {} tokens read, {} written",
            lane.name, usage.input, usage.output
        ));
    }
    Ok(Turned {
        finish,
        files: outcome.collected.into_iter().filter_map(taken).collect(),
        left_out: outcome.not_collected.iter().filter_map(refused).collect(),
        transcript: Secret::new([stdout, stderr].concat()),
        env: launch.env,
        probes,
        egress,
        started,
        ended,
    })
}

/// The way out, which looks for canaries in what leaves in clear.
fn proxy(assignment: &Assignment<'_>, launch: &Launch) -> Result<Proxy, Error> {
    let mut config = Config::new(assignment.lane.name.to_string(), launch.hosts.clone());
    let canaries = assignment.canaries.clone();
    config.scan = Some(Arc::new(move |bytes: &[u8]| {
        seal::scan(bytes).any(|digest| canaries.contains(&digest))
    }));
    Proxy::start(config).map_err(|error| Error::missing(error.to_string(), "run the command again"))
}

fn spec(
    host: &Host<'_>,
    assignment: &Assignment<'_>,
    launch: &Launch,
    proxy: &Proxy,
) -> Result<Spec, Error> {
    let bridge = |bridge: &egress::Bridge| Bridge {
        port: bridge.port,
        socket: bridge.socket.clone(),
    };
    let mut env = environment();
    env.insert("PATH".into(), path(assignment, launch));
    env.extend(
        proxy
            .environment()
            .into_iter()
            .map(|(name, value)| (name.into(), value.into())),
    );
    env.extend(launch.env.expose().clone());
    Ok(Spec {
        mounts: mounts(assignment, &launch.read_only, &host.binary),
        files: laid(assignment, launch)?,
        network: Network::Bridged(proxy.bridges().iter().map(bridge).collect()),
        limits: Limits {
            memory: Some(8 << 30),
            processes: Some(4096),
            disk: Some(4 << 30),
            output: Some(64 << 20),
            file: Some(4 << 30),
            cpus: None,
        },
        inner_domain: true,
        hash_after: Vec::new(),
        collect: vec![assignment.collect.clone()],
        steps: vec![Step {
            argv: launch.argv.clone(),
            env,
            dir: WORK.into(),
            stdin: launch.stdin.clone(),
            channel: false,
            timeout: launch.total,
            idle: launch.idle,
        }],
        stop_on_failure: true,
        deadline: None,
    })
}

/// `PATH` inside: the folder of the program's own interpreter behind those of the project's tools.
fn path(assignment: &Assignment<'_>, launch: &Launch) -> OsString {
    let project = assignment.tooling.map(Tooling::folders).unwrap_or_default();
    let system = ["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from);
    let folders = project.into_iter().chain(launch.path.clone()).chain(system);
    std::env::join_paths(folders).unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".into())
}

/// A writer's stream may hold tests, so it is not shown.
fn run(
    host: &Host<'_>,
    spec: &Spec,
    assignment: &Assignment<'_>,
    env: &Variables,
) -> Result<spec::Outcome, Error> {
    let progress = host.progress;
    let mut show = |event: Event| {
        if assignment.role == Role::Writer {
            return;
        }
        if let Event::Stdout(line) | Event::Stderr(line) = event
            && let Some(text) = assignment.lane.adapter.show(&env.redact(&line))
        {
            progress(Progress::Output(text));
        }
    };
    Ok(host.provider.run(spec, &host.cancel, &mut show)?)
}

fn environment() -> BTreeMap<OsString, OsString> {
    [
        ("HOME", crate::sandbox::HOME),
        ("LANG", "C.UTF-8"),
        ("TZ", "UTC"),
        ("USER", "user"),
    ]
    .into_iter()
    .map(|(name, value)| (name.into(), value.into()))
    .collect()
}

fn mounts(
    assignment: &Assignment<'_>,
    read_only: &[crate::harness::adapter::Bind],
    program: &Path,
) -> Vec<Mount> {
    let (host, inside) = (assignment.work.to_owned(), PathBuf::from(WORK));
    let mut mounts = vec![if assignment.throw_away {
        Mount::Scratch { host, inside }
    } else {
        Mount::ReadWrite { host, inside }
    }];
    if assignment.lane.adapter.kind() == crate::harness::script::KIND {
        mounts.push(Mount::ReadOnly {
            host: program.to_owned(),
            inside: BINARY.into(),
        });
    }
    mounts.extend(read_only.iter().map(|bind| Mount::ReadOnly {
        host: bind.host.clone(),
        inside: bind.inside.clone(),
    }));
    // A program's own folder may hold one of the project's tools too.
    for mount in assignment.tooling.into_iter().flat_map(Tooling::mounts) {
        let known = mounts
            .iter()
            .any(|one| place(&mount).starts_with(place(one)));
        if !known {
            mounts.push(mount);
        }
    }
    mounts
}

/// Where a mount is seen inside.
fn place(mount: &Mount) -> &Path {
    match mount {
        Mount::ReadOnly { inside, .. }
        | Mount::ReadWrite { inside, .. }
        | Mount::Scratch { inside, .. } => inside,
    }
}

fn laid(assignment: &Assignment<'_>, launch: &Launch) -> Result<Vec<LaidFile>, Error> {
    let task = assignment.task;
    let file = TaskFile {
        format: 1,
        id: task.id.as_str(),
        role: assignment.role.as_str(),
        turn: assignment.number,
        title: &task.title,
        mandate: &task.mandate,
        criteria: criteria(task),
    };
    let inputs = Inputs {
        prompt: assignment.prompt,
        task: &file,
        context: assignment.context,
        previous: assignment.previous.clone(),
    };
    let laid = inputs.laid(Path::new(exchange::INSIDE)).map_err(|error| {
        Error::refused(
            format!("the task can't be written as JSON: {error}"),
            "edit the task",
        )
    })?;
    Ok(laid
        .into_iter()
        .chain(launch.files.iter().cloned())
        .map(|file| LaidFile {
            path: file.path,
            bytes: file.bytes,
            mode: file.mode,
        })
        .collect())
}

/// A task's criteria as prompts take them.
pub fn criteria(task: &Task) -> Vec<Criterion<'_>> {
    task.criteria
        .iter()
        .map(|one| Criterion {
            id: one.id.as_str(),
            text: &one.text,
        })
        .collect()
}

const fn exit(step: &StepOutcome) -> Exit {
    match step.end {
        spec::End::Exited(code) => Exit::Code(code),
        spec::End::Signalled(signal) => Exit::Signal(signal),
        spec::End::TimedOut => Exit::TimedOut,
        spec::End::Idle => Exit::Idle,
        spec::End::NotStarted(errno) => Exit::NotStarted(errno),
    }
}

/// A repository that holds only what is reachable from `base`, with the files of `files` (a tree)
/// instead of the base's where one is given.
pub fn pinned(
    repo: &Repository,
    scratch: &Scratch,
    base: ObjectId,
    files: Option<ObjectId>,
) -> Result<PathBuf, Error> {
    let owner = Some(crate::sandbox::owner());
    let work = scratch.folder("work")?;
    repo.make_pinned(base, &work, None, owner)?;
    let Some(tree) = files else { return Ok(work) };
    let next = scratch.folder("next")?;
    repo.materialise(tree, &next, owner)?;
    let moved = fs::rename(work.join(".git"), next.join(".git"));
    moved.map_err(|source| crate::base::files::Error {
        action: "move",
        path: work,
        source,
    })?;
    Ok(next)
}

/// Why a turn failed, with what to do: by class, and by time where one is known. An outage is one
/// where another lane may go on.
pub fn failed(role: Role, lane: &Lane, task: &Task, failure: &Failure) -> Error {
    let id = task.id.short();
    let remedy = match failure.class {
        ErrorClass::Limit(Some(_)) => {
            format!(
                "after that time: `hangar run {id}`, or `hangar run {id} --wait` now; or name another harness in \
                 `lanes.{role}`"
            )
        }
        ErrorClass::Limit(None) => format!(
            "when the limit is lifted: `hangar run {id}`; or name another harness in `lanes.{role}`"
        ),
        ErrorClass::Rate | ErrorClass::Overloaded => {
            format!("in a few minutes: `hangar run {id}`, or `hangar run {id} --wait` now")
        }
        ErrorClass::Auth => {
            let login = lane.adapter.login().unwrap_or("log it in");
            format!(
                "{login}; then `hangar harness test {}` and `hangar run {id}`",
                lane.name.harness
            )
        }
        ErrorClass::Billing => format!(
            "see to its account, or name another harness in `lanes.{role}`; then `hangar run {id}`"
        ),
        ErrorClass::Context => {
            format!("make the task smaller (`hangar task edit {id}`), then `hangar run {id}`")
        }
        ErrorClass::Interrupted | ErrorClass::Protocol | ErrorClass::Unknown
            if role == Role::Writer =>
        {
            format!(
                "`hangar review {id} --transcript` shows the turn, `hangar harness test` the \
                 program; then run the task again"
            )
        }
        ErrorClass::Interrupted | ErrorClass::Protocol | ErrorClass::Unknown => {
            "look at `hangar harness test`, then run the task again".to_owned()
        }
    };
    let told = failure.words(role != Role::Writer);
    let what = format!("the {role} `{}` {told}", lane.name);
    match health::Kind::of(failure.class) {
        Some(_) => Error::Stopped(Stopped { what, remedy }),
        None => Error::Agent { what, remedy },
    }
}

/// The harness table of a run document.
pub fn harness_table(lane: &Lane, turned: &Turned, template: Digest) -> Harness {
    // A program that does not say its version now said what it did all the same.
    let asked = || lane.adapter.version().ok().flatten();
    let version = turned.finish.version.clone().or_else(asked);
    Harness {
        name: lane.name.to_string(),
        kind: lane.adapter.kind().to_owned(),
        version: version.unwrap_or_default(),
        model: lane.model.clone().unwrap_or_default(),
        effort: lane.effort.clone().unwrap_or_default(),
        prompt: template,
    }
}

/// A file of a run's commit with its entry in the document. A sealed one is age-encrypted to the
/// task's recipients, because it may hold test ids.
pub fn attach(
    store: &Store,
    task: &Task,
    name: &str,
    bytes: &[u8],
    sealed: bool,
) -> Result<(Attachment, (String, Content)), Error> {
    let (name, stored) = if sealed {
        let recipients = sealing::recipients(store, task)?;
        (format!("{name}.age"), seal::encrypt(bytes, &recipients)?)
    } else {
        (name.to_owned(), bytes.to_vec())
    };
    let attachment = Attachment {
        name: name.clone(),
        sha256: Digest::of(&stored),
        sealed,
    };
    Ok((attachment, (name, Content::File(stored))))
}
