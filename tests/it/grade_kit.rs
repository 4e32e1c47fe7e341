//! A small executor for the adapters' calls: plain processes in a temporary folder. It isolates
//! nothing; what it shows is what the adapters ask for and how they read what comes back.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use crate::{evidence_attacks, grade_sandboxed};
use hangar::base::redact::Secret;
use hangar::grade::adapter::{Adapter, Listing, Sides, adapter};
use hangar::grade::call::{Call, End, Layout, Raw, Tools};
use hangar::grade::judge::{Evidence, Judgement, judge};
use hangar::grade::manifest::{Project, Tree};
use hangar::grade::protect::Globs;
use hangar::grade::report::RunReport;
use hangar::grade::suite::{Added, SealedFile, Suite};
use hangar::model::criteria::Criteria;
use hangar::model::manifest::BaseStatus;
use hangar::model::outcome::{Outcome, TestId, Trust, Verdict};
use hangar::model::plan::{Framework, Plan};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A file of a tree; a path that ends in `!` is executable.
pub(crate) type File<'a> = (&'a str, &'a str);

/// One tree with sealed tests over it.
pub(crate) struct Bench {
    _dir: tempfile::TempDir,
    pub(crate) suite: Suite,
    base: Vec<(String, String)>,
}

impl Bench {
    pub(crate) fn new(framework: Framework, base: &[File<'_>], sealed: &[File<'_>]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let layout = Layout {
            src: root.join("src"),
            runners: root.join("run"),
            scratch: root.join("tmp"),
            prepared: root.join("prepared"),
        };
        for folder in [&layout.src, &layout.runners, &layout.scratch] {
            fs::create_dir_all(folder).unwrap();
        }
        let files = sealed
            .iter()
            .map(|(path, text)| SealedFile {
                path: path.trim_end_matches('!').to_owned(),
                executable: path.ends_with('!'),
                text: Secret::from((*text).to_owned()),
            })
            .collect();
        let paths: Vec<String> = base.iter().map(|(path, _)| (*path).to_owned()).collect();
        let read = |path: &str| {
            let found = base.iter().find(|(have, _)| *have == path);
            found.map(|(_, text)| text.as_bytes().to_vec())
        };
        let tree = Tree {
            paths: &paths,
            read: &read,
        };
        let mut plan = Plan::new(framework);
        plan.limits.timeout = 120;
        let tests = Globs::new(&plan.tests).unwrap();
        let suite = Suite {
            plan,
            tools: tools(),
            layout,
            files,
            project: Project::of(framework, &tests, tree),
            known: Vec::new(),
            added: Added::default(),
        };
        let base = base
            .iter()
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
            .collect();
        Self {
            _dir: dir,
            suite,
            base,
        }
    }

    pub(crate) fn adapter(&self) -> &'static dyn Adapter {
        adapter(self.suite.plan.framework)
    }

    /// Lays base, patch and sealed files into an empty tree.
    pub(crate) fn lay(&self, patch: &[File<'_>], sealed: bool) {
        let src = &self.suite.layout.src;
        for folder in [src, &self.suite.layout.scratch] {
            fs::remove_dir_all(folder).unwrap();
            fs::create_dir_all(folder).unwrap();
        }
        for (path, text) in &self.base {
            write(&src.join(path), text.as_bytes(), false);
        }
        for (path, text) in patch {
            write(
                &src.join(path.trim_end_matches('!')),
                text.as_bytes(),
                path.ends_with('!'),
            );
        }
        if sealed {
            for file in &self.suite.files {
                write(&src.join(&file.path), file.text.expose(), file.executable);
            }
        }
        for script in self.adapter().scripts(&self.suite.layout) {
            write(&script.path, script.text.as_bytes(), false);
        }
    }

    /// Lists the sealed tests and takes them as known.
    pub(crate) fn list(&mut self) -> Vec<TestId> {
        let ids = match self.adapter().list(&self.suite).unwrap() {
            Listing::Known(ids) => ids,
            Listing::Ask(call) => {
                let raw = execute(&call);
                self.adapter().read_list(&self.suite, &call, &raw).unwrap()
            }
            Listing::OnlyByRunning => Vec::new(),
        };
        self.suite.known.clone_from(&ids);
        ids
    }

    /// Asks the base and a patched tree what the adapter compares.
    fn learn(&mut self, patch: &[File<'_>]) {
        let ask = |patch: &[File<'_>]| {
            let questions = self.adapter().ask(&self.suite);
            if !questions.is_empty() {
                self.lay(patch, true);
            }
            Self::execute_all(questions)
        };
        let (base, graded) = (ask(&[]), ask(patch));
        self.adapter().learn(&mut self.suite, &base, &graded);
    }

    /// Files of the patch by which names of the tests mean something else.
    fn redefined(&self, patch: &[File<'_>]) -> BTreeSet<String> {
        let tests = Globs::new(&self.suite.plan.tests).unwrap();
        let protected = Globs::new(&self.suite.plan.protected).unwrap();
        let is_kept = |path: &String| {
            [&tests, &protected]
                .iter()
                .any(|globs| globs.matches(path.as_bytes()))
        };
        let base_paths: Vec<String> = self.base.iter().map(|(path, _)| path.clone()).collect();
        let mut graded: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for (path, text) in &self.base {
            graded.insert(path.clone(), text.as_bytes().to_vec());
        }
        for (path, text) in patch {
            let path = path.trim_end_matches('!').to_owned();
            if !is_kept(&path) {
                graded.insert(path, text.as_bytes().to_vec());
            }
        }
        let sealed = self.suite.files.iter().map(|file| &file.path);
        let kept = base_paths.iter().filter(|path| is_kept(path)).chain(sealed);
        let kept = kept.cloned().collect();
        let graded_paths: Vec<String> = graded.keys().cloned().collect();
        let of_base = |path: &str| {
            let found = self.base.iter().find(|(have, _)| have == path);
            found.map(|(_, text)| text.as_bytes().to_vec())
        };
        let of_graded = |path: &str| graded.get(path).cloned();
        let base = Tree {
            paths: &base_paths,
            read: &of_base,
        };
        let graded = Tree {
            paths: &graded_paths,
            read: &of_graded,
        };
        let sides = Sides {
            base,
            graded,
            kept: &kept,
        };
        self.adapter().redefined(&self.suite, &sides)
    }

    /// Runs tests and reads what they left.
    pub(crate) fn run(&self, ids: &[TestId]) -> RunReport {
        self.finish(ids, self.adapter().run(&self.suite, ids))
    }

    /// Runs tests. What they left.
    pub(crate) fn start(&self, ids: &[TestId]) -> Vec<(Call, Raw)> {
        Self::execute_all(self.adapter().run(&self.suite, ids))
    }

    fn execute_all(calls: Vec<Call>) -> Vec<(Call, Raw)> {
        let run = |call: Call| {
            let raw = execute(&call);
            (call, raw)
        };
        calls.into_iter().map(run).collect()
    }

    fn finish(&self, ids: &[TestId], calls: Vec<Call>) -> RunReport {
        let done = Self::execute_all(calls);
        self.adapter().read(&self.suite, ids, &done)
    }
}

/// Programs of this machine.
fn tools() -> Tools {
    let mut tools = Tools::default();
    for name in [
        "python3", "node", "go", "cmake", "ctest", "make", "cc", "sh",
    ] {
        if let Some(path) = hangar::base::process::find(Path::new(name)) {
            tools.insert(name, path);
        }
    }
    // The toolchain itself, not a proxy that looks into a home directory.
    let cargo = Path::new(env!("CARGO"));
    tools.insert("cargo", cargo);
    tools.insert("rustc", cargo.with_file_name("rustc"));
    tools
}

pub(crate) fn write(path: &Path, bytes: &[u8], executable: bool) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _ = fs::remove_file(path);
    #[expect(clippy::disallowed_methods, reason = "scratch data of a test")]
    fs::write(path, bytes).unwrap();
    let mode = if executable { 0o755 } else { 0o644 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Runs one call. Standard input is a file, which can be read again from its start, as in a sandbox.
/// Descriptor 3 is a pipe where the call asks for a channel: it comes as standard error, and a shell
/// moves it.
pub(crate) fn execute(call: &Call) -> Raw {
    let errors = tempfile::NamedTempFile::new().unwrap();
    let mut stdin = tempfile::NamedTempFile::new().unwrap();
    stdin.write_all(&call.stdin).unwrap();
    let input = Stdio::from(stdin.reopen().unwrap());
    let mut command = hangar::base::process::command(Path::new("/bin/sh"));
    let script = if call.channel {
        "exec 3>&2 2>\"$0\"; exec \"$@\""
    } else {
        "exec 2>\"$0\"; exec \"$@\""
    };
    command
        .arg("-c")
        .arg(script)
        .arg(errors.path())
        .args(&call.argv)
        .envs(&call.env)
        .current_dir(&call.dir)
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let mut child = command.spawn().unwrap();
    let out = collect(child.stdout.take().unwrap());
    let channel = collect(child.stderr.take().unwrap());
    let deadline = Instant::now() + call.timeout;
    let end = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break match status.code() {
                Some(code) => End::Exited(code),
                None => End::Signalled(status.signal().unwrap_or(0)),
            };
        }
        if Instant::now() > deadline {
            break End::TimedOut;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    // What is left of the group dies before anything is read.
    hangar::base::process::kill_group(&mut child);
    Raw {
        end,
        stdout: out.join().unwrap(),
        stderr: fs::read(errors.path()).unwrap(),
        channel: channel.join().unwrap(),
        files: BTreeMap::new(),
        hits: Vec::new(),
    }
}

fn collect(mut stream: impl std::io::Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut out = Vec::new();
        let _ = stream.by_ref().take(64 << 20).read_to_end(&mut out);
        out
    })
}

/// What becomes of right code that tries to write to the channel by way of another process. Where there are
/// no walls it can, and it is noticed; in a sandbox there is nothing to open.
pub(crate) fn channel_forged() -> &'static str {
    match evidence_attacks::recorded() {
        Some(_) => "accepted",
        None => "void",
    }
}

/// A whole case: base, sealed tests and their map.
pub(crate) struct Case<'a> {
    pub(crate) framework: Framework,
    pub(crate) base: &'a [File<'a>],
    pub(crate) sealed: &'a [File<'a>],
    pub(crate) map: &'a str,
    pub(crate) tune: fn(&mut Suite),
}

impl Case<'_> {
    pub(crate) fn bench(&self) -> (Bench, Criteria) {
        let mut bench = Bench::new(self.framework, self.base, self.sealed);
        (self.tune)(&mut bench.suite);
        bench.lay(&[], true);
        bench.list();
        let criteria = Criteria::parse(self.map.as_bytes(), &["c1".parse().unwrap()]).unwrap();
        (bench, criteria)
    }

    /// Grades a patch with plain processes, or in a sandbox where that is recorded: the suite alone,
    /// then the sentinels among all others.
    pub(crate) fn grade(&self, patch: &[File<'_>]) -> Judgement {
        let judgement = if let Some(provider) = evidence_attacks::recorded() {
            grade_sandboxed::grade_in(&provider, self, patch)
        } else {
            self.grade_with(patch, |bench, ids, make| {
                bench.lay(patch, true);
                (bench.finish(ids, make(&bench.suite)), true)
            })
        };
        evidence_attacks::record(self.framework, &judgement);
        judgement
    }

    /// Grades with another way to run the calls for a suite. It tells whether the sealed files stayed
    /// the same.
    pub(crate) fn grade_with(
        &self,
        patch: &[File<'_>],
        mut run: impl FnMut(&Bench, &[TestId], &dyn Fn(&Suite) -> Vec<Call>) -> (RunReport, bool),
    ) -> Judgement {
        let (mut bench, criteria) = self.bench();
        bench.learn(patch);
        let touched = bench.redefined(patch).len();
        let adapter = bench.adapter();
        let expected: Vec<TestId> = criteria.expected().into_iter().collect();
        let (suite, intact) = run(&bench, &expected, &|suite| adapter.run(suite, &expected));
        // Where a sentinel could be bent by the tests before it, they come before it.
        let sample = [&expected[..], criteria.sentinels()].concat();
        let mut orders = vec![sample];
        if adapter.shares_process() {
            orders.push(criteria.sentinels().to_vec());
        }
        orders.retain(|_| !criteria.sentinels().is_empty());
        let sentinels: Vec<RunReport> = orders
            .iter()
            .map(|ids| run(&bench, ids, &|suite| adapter.run(suite, ids)).0)
            .collect();
        let passed = |outcome: &Outcome| matches!(outcome, Outcome::Passed | Outcome::Skipped);
        let fine = suite.is_sound() && suite.outcomes.values().all(passed);
        let before: Vec<TestId> = expected.iter().filter(|_| fine).cloned().collect();
        let companions = |suite: &Suite| adapter.company(suite, &before, criteria.sentinels());
        let company: Option<Vec<RunReport>> = companions(&bench.suite).map(|all| {
            let ids = all.iter().map(|one| one.ids.clone()).enumerate();
            ids.map(|(at, ids)| {
                let one = |suite: &Suite| vec![companions(suite).unwrap().remove(at).call];
                run(&bench, &ids, &one).0
            })
            .collect()
        });
        let base: BTreeMap<TestId, BaseStatus> = expected
            .iter()
            .map(|id| (id.clone(), BaseStatus::Fails))
            .collect();
        judge(&Evidence {
            criteria: &criteria,
            base: &base,
            plan: &bench.suite.plan,
            ceiling: bench.adapter().ceiling(),
            suite: &suite,
            sentinels: &sentinels,
            company: company.as_deref(),
            touched,
            trust: Trust::Sealed,
            shielded: true,
            tests_intact: intact,
            tree_intact: true,
        })
    }
}

pub(crate) fn id(text: &str) -> TestId {
    TestId::new(text).unwrap()
}

pub(crate) fn outcome_of(report: &RunReport, text: &str) -> Option<Outcome> {
    report.outcomes.get(&id(text)).copied()
}

pub(crate) fn path_of(name: &str) -> PathBuf {
    hangar::base::process::find(Path::new(name)).unwrap()
}

/// Short form of a judgement for assertions.
pub(crate) fn word(judgement: &Judgement) -> &'static str {
    match (judgement.accepted, judgement.void) {
        (true, None) => "accepted",
        (false, None) => "not accepted",
        (false, Some(_)) => "void",
        (true, Some(_)) => "impossible",
    }
}

pub(crate) const CROSSCHECKED: Verdict = Verdict::Crosschecked;
