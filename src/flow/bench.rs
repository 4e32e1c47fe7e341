//! The sandbox in which tests run: a tree, tools, sealed files, no network.

use super::Error;
use super::driver;
use super::host::Host;
use super::prepare::Prepared;
use super::tools::Toolbox;
use crate::base::redact::Secret;
use crate::base::words;
use crate::grade::adapter::{Adapter, adapter};
use crate::grade::call::{Call, End, Hit, Layout, Left, Raw, Room, Visit};
use crate::grade::suite::Suite;
use crate::model::digest::Digest;
use crate::model::plan::{Plan, PlanLimits};
use crate::sandbox;
use crate::sandbox::spec::{
    self, Collect, LaidFile, Limits, Mount, Network, Outcome, Spec, Step, StepOutcome,
};
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// `ENOTDIR`: how a program ends that is not started because files of its case have no place.
const NOT_A_FOLDER: i32 = 20;

/// A tree on the host's disk with everything that running tests on it needs.
#[derive(Debug, Clone, Copy)]
pub struct Bench<'a> {
    /// This machine.
    pub host: &'a Host<'a>,
    /// How tests are run.
    pub plan: &'a Plan,
    /// The tree under test, written out without the sealed files.
    pub tree: &'a Path,
    /// What `prepare` left.
    pub prepared: Option<&'a Prepared>,
    /// Programs and what of the host they need.
    pub toolbox: &'a Toolbox,
}

/// What the calls of one run left.
#[derive(Debug)]
pub struct Ran {
    /// Each call that was started, with its outcome.
    pub calls: Vec<(Call, Raw)>,
    /// Whether the sealed files were the same after the run.
    pub tests_intact: bool,
    /// Whether every other file of the tree was the same after the run.
    pub tree_intact: bool,
    /// Wall time of the calls together.
    pub wall: Duration,
}

impl Default for Ran {
    /// Nothing was started yet, so nothing was changed.
    fn default() -> Self {
        Self {
            calls: Vec::new(),
            tests_intact: true,
            tree_intact: true,
            wall: Duration::ZERO,
        }
    }
}

/// Sandboxes that probes run in, before the real ones are made.
#[derive(Debug)]
pub struct Twins {
    /// Where the code under test runs, with the tests or without.
    pub code: Spec,
    /// Where a driver runs.
    pub driver: Option<Spec>,
}

impl Ran {
    /// Every one of these calls ended so, and left nothing.
    fn ended(calls: &[Call], end: End) -> Self {
        let raw = |_: &Call| Raw {
            end,
            ..raw(StepOutcome::default())
        };
        Self {
            calls: calls.iter().map(|call| (call.clone(), raw(call))).collect(),
            ..Self::default()
        }
    }

    /// Takes in what came after it.
    fn add(&mut self, next: Self) {
        self.calls.extend(next.calls);
        self.tests_intact &= next.tests_intact;
        self.tree_intact &= next.tree_intact;
        self.wall += next.wall;
    }
}

impl Bench<'_> {
    /// The framework's adapter.
    pub fn adapter(&self) -> &'static dyn Adapter {
        adapter(self.plan.framework)
    }

    /// Runs the plan's build step on the tree, without the sealed files and without network; what it
    /// makes stays in the tree. The inner error is what it wrote last.
    pub fn build(&self, suite: &Suite) -> Result<Result<(), String>, Error> {
        if self.plan.build.trim().is_empty() {
            return Ok(Ok(()));
        }
        self.host.stage("building");
        let outcome = self.host.run_silent(&self.build_spec(suite))?;
        let Some(step) = outcome.steps.first() else {
            return Ok(Err("it could not be started".into()));
        };
        if step.end == spec::End::Exited(0) {
            return Ok(Ok(()));
        }
        let line = words::last_line(&step.stderr);
        Ok(Err(line.unwrap_or_else(|| "no output".into())))
    }

    fn build_spec(&self, suite: &Suite) -> Spec {
        let mut mounts = vec![Mount::ReadWrite {
            host: self.tree.to_owned(),
            inside: suite.layout.src.clone(),
        }];
        mounts.extend(self.dependencies());
        Spec {
            mounts,
            files: Vec::new(),
            network: Network::None,
            limits: limits(&self.plan.limits),
            inner_domain: true,
            hash_after: Vec::new(),
            collect: Vec::new(),
            steps: vec![Step {
                argv: vec![
                    "/bin/sh".into(),
                    "-euc".into(),
                    self.plan.build.clone().into(),
                ],
                env: suite.env(),
                dir: suite.layout.src.clone(),
                stdin: Vec::new(),
                channel: false,
                timeout: suite.timeout(),
                idle: None,
            }],
            stop_on_failure: true,
            deadline: None,
        }
    }

    /// Runs calls, each in the sandbox that it asks for; sealed files are laid last.
    pub fn run(&self, suite: &Suite, calls: &[Call]) -> Result<Ran, Error> {
        self.run_each(suite, calls, &BTreeMap::new(), None)
    }

    /// The same, and compares the tree afterwards with `before`: path → SHA-256 of every regular
    /// file and link target of the tree without the sealed files. Empty is not compared. A case whose
    /// files this tree leaves no place for does not start: on the base there was one.
    pub fn run_checked(
        &self,
        suite: &Suite,
        calls: &[Call],
        before: &BTreeMap<Vec<u8>, Digest>,
    ) -> Result<Ran, Error> {
        self.run_each(suite, calls, before, Some(End::NotStarted(NOT_A_FOLDER)))
    }

    /// `blocked` is how the calls of a case end whose files can't be laid; without it that is an error.
    fn run_each(
        &self,
        suite: &Suite,
        calls: &[Call],
        before: &BTreeMap<Vec<u8>, Digest>,
        blocked: Option<End>,
    ) -> Result<Ran, Error> {
        let started = Instant::now();
        let mut all = Ran::default();
        for together in apart(calls) {
            let left = suite.timeout().saturating_sub(started.elapsed());
            if left.is_zero() {
                break;
            }
            all.add(match together {
                [call] if call.room == Room::Driver => self.run_driver(suite, call, left)?,
                _ => self.run_sandbox(suite, together, left, before, blocked)?,
            });
        }
        Ok(all)
    }

    /// A driver, which has a sandbox of its own beside the code's.
    fn run_driver(&self, suite: &Suite, call: &Call, left: Duration) -> Result<Ran, Error> {
        let mut call = call.clone();
        call.timeout = call.timeout.min(left);
        let started = Instant::now();
        let raw = driver::run(self, suite, &call).map_err(without_paths)?;
        Ok(Ran {
            calls: vec![(call, raw)],
            wall: started.elapsed(),
            ..Ran::default()
        })
    }

    /// Calls that share one sandbox.
    fn run_sandbox(
        &self,
        suite: &Suite,
        calls: &[Call],
        left: Duration,
        before: &BTreeMap<Vec<u8>, Digest>,
        blocked: Option<End>,
    ) -> Result<Ran, Error> {
        let mut spec = self.spec(suite, calls);
        spec.deadline = Some(left);
        let is_visit = visit(calls).is_some();
        let outcome = match (self.host.run_silent(&spec), blocked) {
            (Err(Error::Sandbox(sandbox::Error::Blocked { .. })), Some(end)) if is_visit => {
                return Ok(Ran::ended(calls, end));
            }
            (ended, _) => ended.map_err(without_paths)?,
        };
        let mut ran = Ran {
            wall: outcome.steps.iter().map(|step| step.wall).sum(),
            ..Ran::default()
        };
        if !is_visit {
            ran.tests_intact = tests_intact(suite, &outcome);
            ran.tree_intact = tree_intact(suite, before, &outcome);
        }
        let files = kept(suite, calls, &outcome);
        let raws = outcome.steps.into_iter().map(raw);
        ran.calls.extend(calls.iter().cloned().zip(raws));
        if let Some((_, last)) = ran.calls.last_mut() {
            last.files = files;
        }
        Ok(ran)
    }

    /// Sandboxes like those that these calls get, of the first of them and those that share it.
    pub fn twins(&self, suite: &Suite, calls: &[Call]) -> Twins {
        let Some(call) = calls.iter().find(|call| call.room == Room::Driver) else {
            let first = apart(calls).next().unwrap_or_default();
            return Twins {
                code: self.spec(suite, first),
                driver: None,
            };
        };
        // Nobody listens: a probe that gets through gets nowhere.
        let nowhere = || PathBuf::from("/nowhere");
        Twins {
            code: driver::code_spec(self, suite, suite.timeout(), nowhere()),
            driver: Some(driver::driver_spec(self, suite, call, nowhere())),
        }
    }

    /// The sandbox for calls that share one.
    pub(super) fn spec(&self, suite: &Suite, calls: &[Call]) -> Spec {
        let mut mounts = vec![Mount::Scratch {
            host: self.tree.to_owned(),
            inside: suite.layout.src.clone(),
        }];
        mounts.extend(self.dependencies());
        let visit = visit(calls);
        let hash_after = match visit {
            None => vec![suite.layout.src.clone()],
            Some(_) => Vec::new(),
        };
        Spec {
            mounts,
            files: match visit {
                None => self.files(suite),
                Some(visit) => inputs(suite, visit),
            },
            network: Network::None,
            limits: limits(&self.plan.limits),
            inner_domain: true,
            hash_after,
            collect: self.collect(suite, calls),
            steps: calls.iter().map(step).collect(),
            stop_on_failure: false,
            deadline: Some(suite.timeout()),
        }
    }

    /// Programs and what `prepare` left.
    pub(super) fn dependencies(&self) -> impl Iterator<Item = Mount> {
        let prepared = self.prepared.into_iter().flat_map(Prepared::mounts);
        self.toolbox.mounts().into_iter().chain(prepared)
    }

    /// What the last of these calls hands back.
    fn collect(&self, suite: &Suite, calls: &[Call]) -> Vec<Collect> {
        let bound = self.plan.limits.output;
        let kept = calls
            .last()
            .and_then(of_code)
            .into_iter()
            .flat_map(|visit| &visit.kept);
        kept.map(|path| Collect {
            path: suite.inside(path),
            max_file: bound,
            max_total: bound,
            max_files: 1,
        })
        .collect()
    }

    fn files(&self, suite: &Suite) -> Vec<LaidFile> {
        let scripts = self
            .adapter()
            .scripts(&suite.layout)
            .into_iter()
            .map(|script| LaidFile {
                path: script.path,
                bytes: Secret::new(script.text.as_bytes().to_vec()),
                mode: 0o444,
            });
        scripts.chain(sealed(suite)).collect()
    }
}

/// The sealed files, each at its place.
pub(super) fn sealed(suite: &Suite) -> impl Iterator<Item = LaidFile> {
    suite.files.iter().map(|file| LaidFile {
        path: suite.inside(&file.path),
        bytes: file.text.clone(),
        mode: if file.executable { 0o555 } else { 0o444 },
    })
}

/// Calls by the sandbox that they share, in order.
fn apart(calls: &[Call]) -> impl Iterator<Item = &[Call]> {
    calls.chunk_by(|call, next| match (&call.room, &next.room) {
        (Room::Shared, Room::Shared) => true,
        (Room::Part(one), Room::Part(other)) => one == other,
        (Room::Code(_), Room::Code(visit)) => visit.goes_on,
        _ => false,
    })
}

fn of_code(call: &Call) -> Option<&Visit> {
    match &call.room {
        Room::Shared | Room::Part(_) | Room::Driver => None,
        Room::Code(visit) => Some(visit),
    }
}

/// How calls that share a sandbox see the tree alone, if they do.
fn visit(calls: &[Call]) -> Option<&Visit> {
    calls.first().and_then(of_code)
}

/// What a case lays beside the code under test. The programs may change it.
fn inputs(suite: &Suite, visit: &Visit) -> Vec<LaidFile> {
    let files = visit.files.iter();
    files
        .map(|(path, bytes)| LaidFile {
            path: suite.inside(path),
            bytes: Secret::new(bytes.clone()),
            mode: 0o644,
        })
        .collect()
}

/// Files that the last of these calls was to leave, by path relative to the root of the tree.
fn kept(suite: &Suite, calls: &[Call], outcome: &Outcome) -> BTreeMap<String, Left> {
    let visit = calls.last().and_then(of_code).into_iter();
    visit
        .flat_map(|visit| &visit.kept)
        .filter_map(|path| {
            let inside = inside_key(&suite.layout, path.as_bytes());
            let file = outcome.collected.iter().find(|file| file.path == inside);
            let left = match file {
                Some(file) => Left::File(file.bytes.expose().to_vec()),
                None if stands(outcome, &inside) => Left::Other,
                None => return None,
            };
            Some((path.clone(), left))
        })
        .collect()
}

/// Whether anything was found at `path` or below it.
fn stands(outcome: &Outcome, path: &[u8]) -> bool {
    let collected = outcome.collected.iter().map(|file| &file.path);
    let left_out = outcome.not_collected.iter().map(|(path, _)| path);
    collected.chain(left_out).any(|found| {
        let below = found.strip_prefix(path);
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    })
}

/// A fault of the sandbox without the path it names: inside, names are chosen by the patch or are
/// those of hidden tests.
pub(super) fn without_paths(error: Error) -> Error {
    match error {
        Error::Sandbox(sandbox::Error::Blocked { what, .. }) => Error::refused(
            format!("the tree stands in the way of the hidden tests: hangar cannot {what}"),
            "let the patch leave the folders of tests as they are",
        ),
        Error::Sandbox(sandbox::Error::Setup { what, source, .. }) => {
            Error::Sandbox(sandbox::Error::Setup {
                what,
                path: None,
                source,
            })
        }
        other => other,
    }
}

/// Bounds of a plan as a sandbox takes them.
pub fn limits(bounds: &PlanLimits) -> Limits {
    Limits {
        memory: Some(bounds.memory),
        processes: Some(bounds.processes),
        disk: Some(bounds.disk),
        output: Some(bounds.output),
        file: Some(bounds.disk),
        // What the machine has: the tree can't take more than that from whoever else runs here.
        cpus: Some(processors()),
    }
}

fn processors() -> u32 {
    let count = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    u32::try_from(count).unwrap_or(u32::MAX)
}

pub(super) fn step(call: &Call) -> Step {
    Step {
        argv: call.argv.clone(),
        env: call.env.clone(),
        dir: call.dir.clone(),
        stdin: call.stdin.clone(),
        channel: call.channel,
        timeout: call.timeout,
        idle: None,
    }
}

pub(super) fn raw(step: StepOutcome) -> Raw {
    let mut hits: Vec<Hit> = step.hits.iter().copied().map(hit).collect();
    let end = match step.end {
        spec::End::Exited(code) => End::Exited(code),
        spec::End::Signalled(signal) => End::Signalled(signal),
        spec::End::TimedOut | spec::End::Idle => {
            hits.push(Hit::Time);
            End::TimedOut
        }
        spec::End::NotStarted(errno) => End::NotStarted(errno),
    };
    Raw {
        end,
        stdout: step.stdout,
        stderr: step.stderr,
        channel: step.channel.unwrap_or_default(),
        files: BTreeMap::new(),
        hits,
    }
}

const fn hit(hit: spec::Hit) -> Hit {
    match hit {
        spec::Hit::Memory => Hit::Memory,
        spec::Hit::Processes => Hit::Processes,
        spec::Hit::Output => Hit::Output,
        spec::Hit::FileSize => Hit::FileSize,
        spec::Hit::Disk => Hit::Disk,
    }
}

fn inside_key(layout: &Layout, path: &[u8]) -> Vec<u8> {
    [layout.src.as_os_str().as_bytes(), b"/", path].concat()
}

/// Whether every sealed file still has its content.
fn tests_intact(suite: &Suite, outcome: &Outcome) -> bool {
    suite.files.iter().all(|file| {
        let key = inside_key(&suite.layout, file.path.as_bytes());
        outcome.hashes.get(&key) == Some(Digest::of(file.text.expose()).as_bytes())
    })
}

/// Whether every other file that was there still has its content. New files are no change.
fn tree_intact(suite: &Suite, before: &BTreeMap<Vec<u8>, Digest>, outcome: &Outcome) -> bool {
    before
        .iter()
        .filter(|(path, _)| !is_sealed(suite, path))
        .all(|(path, digest)| {
            let key = inside_key(&suite.layout, path);
            outcome.hashes.get(&key) == Some(digest.as_bytes())
        })
}

fn is_sealed(suite: &Suite, path: &[u8]) -> bool {
    suite.files.iter().any(|file| file.path.as_bytes() == path)
}
