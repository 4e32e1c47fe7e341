//! How a grade is made: steps a to h of `docs/concepts.md`, "How a grade is made".

use super::Error;
use super::basecheck::{Ground, project};
use super::bench::{Bench, Ran};
use super::frozen;
use super::host::Host;
use super::leak::{self, Leak};
use super::need;
use super::prepare::{Reprepared, reprepare};
use super::questions::Questions;
use super::redefined::{Built, redefined};
use super::scratch::Scratch;
use super::subject::Subject;
use super::tools::Tooling;
use super::version::Opened;
use crate::base::random;
use crate::base::words;
use crate::grade::adapter::adapter;
use crate::grade::call::{Call, Hit, Layout};
use crate::grade::judge::{self, Evidence, Judgement};
use crate::grade::protect::{GradedTree, Protection, graded_tree};
use crate::grade::report::RunReport;
use crate::grade::suite::{Added, Suite};
use crate::model::digest::Digest;
use crate::model::object_id::ObjectId;
use crate::model::outcome::{Outcome, TestId};
use crate::model::plan::Plan;
use crate::model::policy::Acceptance;
use crate::model::run::Run;
use crate::sandbox::Probes;
use crate::sandbox::probe::State;
use crate::store::Store;
use crate::store::dossier::{Dossier, Held};
use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

/// How many ordinary tests run among the sentinels.
const SAMPLE: usize = 5;

/// What was found out about a patch, before it is signed.
#[derive(Debug)]
pub struct Findings {
    /// The verdict; `None` where the patch was refused before any test ran.
    pub judgement: Option<Judgement>,
    /// Why nothing ran.
    pub refused: Option<String>,
    /// Protected paths that the patch touches beyond the plan.
    pub touched: Vec<String>,
    /// Paths under the plan's tests that were put back to base.
    pub put_back: usize,
    /// Whether packages that the patch asks for were there beside those of the base.
    pub reprepared: bool,
    /// What of the hidden tests was found outside; then nothing ran.
    pub leak: Option<Leak>,
    /// What the sandbox held; `None` where nothing ran.
    pub probes: Option<Probes>,
    /// Wall time of the build step.
    pub build: Duration,
    /// Wall time of the suite.
    pub suite: Duration,
    /// Wall time of everything.
    pub total: Duration,
}

impl Findings {
    fn refused(reason: String, touched: Vec<String>, leak: Option<Leak>, started: Instant) -> Self {
        Self {
            judgement: None,
            refused: Some(reason),
            touched,
            put_back: 0,
            reprepared: false,
            leak,
            probes: None,
            build: Duration::ZERO,
            suite: Duration::ZERO,
            total: started.elapsed(),
        }
    }
}

/// Runs an opened version on a subject, which is the result of `run` where there is one.
pub fn examine(
    host: &Host<'_>,
    store: &Store,
    dossier: &Dossier,
    opened: &Opened,
    subject: &Subject,
    run: Option<&Held<Run>>,
) -> Result<Findings, Error> {
    let started = Instant::now();
    let plan = effective_plan(
        &opened.manifest.plan,
        &store.policy.newest().root.acceptance,
    );
    let framework = adapter(plan.framework);
    let protection = Protection::new(&plan, framework.protected())?;
    let read_link = |path: &[u8]| subject.base_link(&store.repo, path);
    let protection = protection.with_links(&subject.base_listing, &read_link);
    let changes = subject.changes();
    let sealed = opened.payload.files().iter();
    let sealed = sealed.map(|file| file.path.as_bytes());
    let stands_in = protection.standing_in(&subject.base_listing, &changes, sealed);
    let touched: BTreeSet<_> = protection.touched(&changes).into_iter().collect();
    let touched: Vec<String> = touched
        .iter()
        .chain(stands_in.iter().filter(|path| !touched.contains(*path)))
        .map(|path| String::from_utf8_lossy(path).into_owned())
        .collect();
    let leak = leak::find(
        store,
        dossier,
        opened,
        subject,
        run,
        &host.grader_identity()?,
    )?;
    if let Some(leak) = leak {
        return Ok(Findings::refused(
            leak.to_string(),
            touched,
            Some(leak),
            started,
        ));
    }
    if !touched.is_empty() {
        let reason = format!(
            "the patch changes {}",
            words::count(touched.len(), "protected path", "protected paths")
        );
        return Ok(Findings::refused(reason, touched, None, started));
    }
    let stage = Stage::new(host, store, opened, subject, &plan, &protection)?;
    let Some(mut stage) = stage else {
        let reason = "the prepare step of the plan fails with the patch".to_owned();
        return Ok(Findings::refused(reason, touched, None, started));
    };
    let build_started = Instant::now();
    if let Some(reason) = stage.build()? {
        return Ok(Findings::refused(reason, touched, None, started));
    }
    let build = build_started.elapsed();
    let redefined = stage.redefined(subject)?;
    if !redefined.is_empty() {
        let reason = "the patch gives words or names of the tests another meaning".to_owned();
        return Ok(Findings::refused(reason, redefined, None, started));
    }
    let (judgement, probes, suite) = stage.run()?;
    Ok(Findings {
        judgement: Some(judgement),
        refused: None,
        touched,
        put_back: stage.graded.put_back.len(),
        reprepared: !stage.suite.added.places.is_empty(),
        leak,
        probes: Some(probes),
        build,
        suite,
        total: started.elapsed(),
    })
}

/// The approved plan with the policy's own minimum.
fn effective_plan(plan: &Plan, settings: &Acceptance) -> Plan {
    let mut plan = plan.clone();
    plan.trust = plan.trust.max(settings.trust);
    plan.verdict = plan.verdict.max(settings.verdict);
    plan
}

/// One graded tree on disk with everything that is needed to run tests on it.
struct Stage<'a> {
    host: &'a Host<'a>,
    store: &'a Store,
    base: ObjectId,
    opened: &'a Opened,
    plan: &'a Plan,
    graded: GradedTree,
    protection: &'a Protection,
    _scratch: Scratch,
    tree: std::path::PathBuf,
    tooling: Tooling,
    suite: Suite,
}

impl<'a> Stage<'a> {
    /// `None`: what the patch asks for can't be installed.
    fn new(
        host: &'a Host<'a>,
        store: &'a Store,
        opened: &'a Opened,
        subject: &Subject,
        plan: &'a Plan,
        protection: &'a Protection,
    ) -> Result<Option<Self>, Error> {
        let sealed: Vec<&[u8]> = opened
            .payload
            .files()
            .iter()
            .map(|file| file.path.as_bytes())
            .collect();
        let graded = graded_tree(
            &subject.base_listing,
            &subject.listing,
            protection.tests(),
            sealed,
        );
        let mut tooling = Tooling::find(host, &store.repo, subject.base, plan)?;
        let scratch = Scratch::new(&host.cache)?;
        let tree = scratch.folder("src")?;
        let put_back = |path: &[u8]| graded.put_back.contains(path);
        let mixed = store
            .repo
            .with_paths_from(subject.tree, subject.base_tree, &put_back)?;
        let trees = (subject.base_tree, mixed);
        let base = tooling.prepared.as_ref();
        let added = match reprepare(host, &store.repo, trees, plan, base)? {
            Reprepared::Fails => return Ok(None),
            Reprepared::No => Added::default(),
            Reprepared::Yes(added) => {
                tooling.prepared = base.map(|base| base.with(&added));
                added.modules
            }
        };
        store
            .repo
            .materialise(mixed, &tree, Some(crate::sandbox::owner()))?;
        let suite = Suite {
            plan: plan.clone(),
            tools: tooling.toolbox.tools.clone(),
            layout: Layout::default(),
            files: opened.files(),
            project: project(&store.repo, subject.base, plan)?,
            known: opened.ids(),
            added,
        };
        Ok(Some(Self {
            host,
            store,
            base: subject.base,
            opened,
            plan,
            graded,
            protection,
            _scratch: scratch,
            tree,
            tooling,
            suite,
        }))
    }

    fn bench(&self) -> Bench<'_> {
        Bench {
            host: self.host,
            plan: self.plan,
            tree: &self.tree,
            prepared: self.tooling.prepared.as_ref(),
            toolbox: &self.tooling.toolbox,
        }
    }

    fn has_build(&self) -> bool {
        !self.plan.build.trim().is_empty()
    }

    /// The plan's build step, without the tests. Gives the reason where it fails.
    fn build(&self) -> Result<Option<String>, Error> {
        if self.bench().build(&self.suite)?.is_err() {
            return Ok(Some("the build step of the plan fails".into()));
        }
        if !self.has_build() {
            return Ok(None);
        }
        let sealed = self.opened.payload.files().iter();
        let sealed: Vec<&[u8]> = sealed.map(|file| file.path.as_bytes()).collect();
        let mut bent = frozen::bent(&self.tree, &self.graded.tree, self.protection, &sealed)?;
        let stands_in = self.protection.stand_ins(&self.graded.tree, sealed);
        let made = frozen::paths(&self.tree)?.into_iter();
        let made = made.filter(|path| self.graded.tree.get(path).is_none());
        bent += made.filter(|path| stands_in(path)).count();
        let reason = format!(
            "the build step changes {} where tests lie or that are protected",
            words::count(bent, "path", "paths")
        );
        Ok((bent > 0).then_some(reason))
    }

    /// Files by which words or names of the tests mean something else than on the base.
    fn redefined(&self, subject: &Subject) -> Result<Vec<String>, Error> {
        let built = Built {
            tree: &self.tree,
            graded: &self.graded.tree,
            by_a_step: self.has_build(),
        };
        let repo = &self.store.repo;
        redefined(repo, subject, &self.suite, self.protection, &built)
    }

    /// What the sandbox of these calls was measured to hold. An error where that is too little for the
    /// tests; none of them has been in a sandbox by then.
    fn measured(&self, calls: &[Call]) -> Result<Probes, Error> {
        self.host.stage("probing the sandbox");
        let twins = self.bench().twins(&self.suite, calls);
        let need = self.plan.trust.max(self.host.require);
        let probes = need::held(self.host, &twins, need, "the grade")?;
        let policy = &self.store.policy.newest().root.acceptance;
        need::no_swap(&probes, policy.swap_exposed)?;
        Ok(probes)
    }

    /// Probes, the suite alone, the sentinels among a random sample of it, and behind all of it.
    fn run(&mut self) -> Result<(Judgement, Probes, Duration), Error> {
        let framework = adapter(self.plan.framework);
        let expected: Vec<TestId> = self.opened.criteria.expected().into_iter().collect();
        let calls = framework.run(&self.suite, &expected);
        let probes = self.measured(&calls)?;
        self.host.stage(format!(
            "running {}",
            words::count(expected.len(), "hidden test", "hidden tests")
        ));
        let before = self.before();
        let first = self.suite(&calls, &before)?;
        let bench = self.bench();
        let report = framework.read(&self.suite, &expected, &first.calls);
        // A suite whose time was up is refused, whatever sentinels show: a patch that hangs costs its
        // bound once.
        let (sentinels, second) = if report.hits.contains(&Hit::Time) {
            (Vec::new(), Vec::new())
        } else {
            self.sentinels(&bench, &expected, &before)?
        };
        let (company, third) = self.company(&bench, &report, &before)?;
        let ran = || [&first].into_iter().chain(&second).chain(&third);
        let judgement = judge::judge(&Evidence {
            criteria: &self.opened.criteria,
            base: &self.opened.base,
            plan: self.plan,
            ceiling: framework.ceiling(),
            suite: &report,
            sentinels: &sentinels,
            company: company.as_deref(),
            touched: 0,
            trust: probes.trust(),
            shielded: is_shielded(&probes),
            tests_intact: ran().all(|ran| ran.tests_intact),
            tree_intact: ran().all(|ran| ran.tree_intact),
        });
        Ok((judgement, probes, first.wall))
    }

    /// Runs the suite. Beside it, base and graded tree are asked what the framework compares: questions
    /// take a part of a second, in sandboxes of their own.
    fn suite(&mut self, calls: &[Call], before: &BTreeMap<Vec<u8>, Digest>) -> Result<Ran, Error> {
        let framework = adapter(self.plan.framework);
        let questions = framework.ask(&self.suite);
        if questions.is_empty() {
            return self.bench().run_checked(&self.suite, calls, before);
        }
        let ground = Ground::new(self.host, self.store, self.base, self.plan)?;
        let (bench, base) = (self.bench(), ground.bench(self.host, self.plan));
        let asked =
            [&base, &bench].map(|bench| Questions::new(bench, &self.suite, questions.clone()));
        let (ran, answers) = thread::scope(|scope| {
            let asked = asked.map(|questions| scope.spawn(|| questions.answers()));
            let ran = bench.run_checked(&self.suite, calls, before);
            let answered = asked.map(|thread| match thread.join() {
                Ok(answers) => answers,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            (ran, answered)
        });
        let ran = ran?;
        let [base, graded] = answers;
        framework.learn(&mut self.suite, &base?, &graded?);
        Ok(ran)
    }

    /// The sentinels without tests before them where a process is shared: what learns from the first answer
    /// that it is compared with lets the first of them pass. Then among a random sample. Empty where there
    /// are none.
    fn sentinels(
        &self,
        bench: &Bench<'_>,
        expected: &[TestId],
        before: &BTreeMap<Vec<u8>, Digest>,
    ) -> Result<(Vec<RunReport>, Vec<Ran>), Error> {
        let sentinels = self.opened.criteria.sentinels();
        if sentinels.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let sample = shuffled(expected).into_iter().take(SAMPLE);
        let among: Vec<TestId> = sentinels.iter().cloned().chain(sample).collect();
        let alone = bench.adapter().shares_process();
        let alone = alone.then(|| shuffled(sentinels));
        let (mut reports, mut all) = (Vec::new(), Vec::new());
        for ids in alone.into_iter().chain([shuffled(&among)]) {
            let calls = bench.adapter().run(&self.suite, &ids);
            let ran = bench.run_checked(&self.suite, &calls, before)?;
            reports.push(bench.adapter().read(&self.suite, &ids, &ran.calls));
            all.push(ran);
        }
        Ok((reports, all))
    }

    /// The sentinels again, behind every test of the suite that shares a process with them. A patch
    /// that is refused anyway is spared it.
    fn company(
        &self,
        bench: &Bench<'_>,
        suite: &RunReport,
        before: &BTreeMap<Vec<u8>, Digest>,
    ) -> Result<(Option<Vec<RunReport>>, Option<Ran>), Error> {
        let framework = bench.adapter();
        let passed = |outcome: &Outcome| matches!(outcome, Outcome::Passed | Outcome::Skipped);
        let fine = suite.is_sound() && suite.outcomes.values().all(passed);
        let tests: Vec<TestId> = suite.outcomes.keys().filter(|_| fine).cloned().collect();
        let sentinels = shuffled(self.opened.criteria.sentinels());
        let Some(company) = framework.company(&self.suite, &tests, &sentinels) else {
            return Ok((None, None));
        };
        if sentinels.is_empty() || company.is_empty() {
            return Ok((Some(Vec::new()), None));
        }
        let calls: Vec<_> = company.iter().map(|one| one.call.clone()).collect();
        let ran = bench.run_checked(&self.suite, &calls, before)?;
        let reports = company
            .iter()
            .enumerate()
            .map(|(at, one)| match ran.calls.get(at) {
                Some(done) => framework.read(&self.suite, &one.ids, std::slice::from_ref(done)),
                // The time was up.
                None => RunReport {
                    cut: true,
                    ..RunReport::default()
                },
            });
        Ok((Some(reports.collect()), Some(ran)))
    }

    /// What every file of the graded tree must still hold after the run.
    fn before(&self) -> BTreeMap<Vec<u8>, Digest> {
        // A build step may have changed the rest, and did so before the tests were there.
        let counts = |path: &[u8]| !self.has_build() || self.protection.guards(path);
        self.graded
            .tree
            .iter()
            .filter(|(path, _)| counts(path))
            .map(|(path, entry)| (path.to_vec(), entry.sha256))
            .collect()
    }
}

/// Whether patched code and runner could not reach the supervisor.
fn is_shielded(probes: &Probes) -> bool {
    ["supervisor-signal", "supervisor-trace", "supervisor-memory"]
        .iter()
        .all(|name| {
            probes
                .results
                .get(*name)
                .is_some_and(|probe| probe.state == State::Held)
        })
}

/// The items in an order that nobody can foresee (Fisher and Yates).
fn shuffled<T: Clone + Ord>(items: &[T]) -> Vec<T> {
    let unique: BTreeSet<T> = items.iter().cloned().collect();
    let mut items: Vec<T> = unique.into_iter().collect();
    for end in (1..items.len()).rev() {
        let draw = u64::from_be_bytes(random::bytes::<8>());
        let bound = end as u64 + 1;
        items.swap(end, usize::try_from(draw % bound).unwrap_or(0));
    }
    items
}
