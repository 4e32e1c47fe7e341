//! The base check: hidden tests on the untouched base, before anything is sealed.

use super::Error;
use super::bench::{Bench, Twins};
use super::host::Host;
use super::need;
use super::scratch::Scratch;
use super::tools::Tooling;
use crate::git::Repository;
use crate::grade::adapter::Listing;
use crate::grade::basecheck::{self, BaseCheck, Evidence};
use crate::grade::call::Layout;
use crate::grade::manifest::{Project, Tree};
use crate::grade::protect::Globs;
use crate::grade::report::RunReport;
use crate::grade::suite::{Added, SealedFile, Suite};
use crate::model::complaint::{Complaint, Kind};
use crate::model::criteria::Criteria;
use crate::model::object_id::ObjectId;
use crate::model::outcome::{TestId, Trust};
use crate::model::plan::Plan;
use crate::store::Store;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// A base that is ready to be tested: dependencies there, programs found, written out, built.
#[derive(Debug)]
pub struct Ground {
    /// The base's tree, written out.
    pub tree: PathBuf,
    /// Programs and dependencies.
    pub tooling: Tooling,
    /// What the base says of itself.
    pub project: Project,
    /// What the policy asks of a sandbox for hidden tests, and whether swap may be on.
    policy: (Trust, bool),
    /// Holds `tree`.
    _scratch: Scratch,
}

impl Ground {
    /// Makes the base of a plan ready.
    pub fn new(host: &Host<'_>, store: &Store, base: ObjectId, plan: &Plan) -> Result<Self, Error> {
        let repo = &store.repo;
        let policy = &store.policy.newest().root.acceptance;
        let tooling = Tooling::find(host, repo, base, plan)?;
        let project = project(repo, base, plan)?;
        let scratch = Scratch::new(&host.cache)?;
        let tree = scratch.folder("base")?;
        repo.materialise(
            repo.read_commit(base)?.tree,
            &tree,
            Some(crate::sandbox::owner()),
        )?;
        let ground = Self {
            tree,
            tooling,
            project,
            policy: (policy.trust, policy.swap_exposed),
            _scratch: scratch,
        };
        ground.build(host, plan)?;
        Ok(ground)
    }

    /// The plan's build step: a base that is tested as it is graded.
    fn build(&self, host: &Host<'_>, plan: &Plan) -> Result<(), Error> {
        let suite = self.suite(plan, Vec::new());
        self.bench(host, plan).build(&suite)?.map_err(|line| {
            Error::missing(
                format!("the `build` step fails on the base: {line}"),
                "run its commands by hand on the base, without network, then correct `build` \
                 under [grader] in hangar.toml",
            )
        })
    }

    /// The sandbox over this base.
    pub fn bench<'a>(&'a self, host: &'a Host<'a>, plan: &'a Plan) -> Bench<'a> {
        Bench {
            host,
            plan,
            tree: &self.tree,
            prepared: self.tooling.prepared.as_ref(),
            toolbox: &self.tooling.toolbox,
        }
    }

    /// A suite of these files over this base.
    pub fn suite(&self, plan: &Plan, files: Vec<SealedFile>) -> Suite {
        Suite {
            plan: plan.clone(),
            tools: self.tooling.toolbox.tools.clone(),
            layout: Layout::default(),
            files,
            project: self.project.clone(),
            known: Vec::new(),
            added: Added::default(),
        }
    }

    /// Shows that the runner is there and that the base's own tests can be collected.
    pub fn preflight(&self, host: &Host<'_>, plan: &Plan) -> Result<(), Error> {
        let bench = self.bench(host, plan);
        let suite = self.suite(plan, Vec::new());
        let calls = bench.adapter().preflight(&suite);
        self.is_sealed(host, plan, &bench.twins(&suite, &calls))?;
        if calls.is_empty() {
            return Ok(());
        }
        let ran = bench.run(&suite, &calls)?;
        match bench
            .adapter()
            .read_preflight(&suite, &ran.calls)
            .into_iter()
            .next()
        {
            None => Ok(()),
            Some(missing) => Err(Error::missing(missing.what, missing.remedy)),
        }
    }

    /// Fails where sandboxes like these are too weak for hidden tests. Before any of them is in one.
    fn is_sealed(&self, host: &Host<'_>, plan: &Plan, twins: &Twins) -> Result<(), Error> {
        let (trust, allow_swap) = self.policy;
        let need = plan.trust.max(trust).min(need::HIDDEN);
        let probes = need::held(host, twins, need, "running hidden tests on the base")?;
        need::no_swap(&probes, allow_swap)
    }
}

/// What the base says of itself.
pub fn project(repo: &Repository, base: ObjectId, plan: &Plan) -> Result<Project, Error> {
    let globs = Globs::new(&plan.tests)?;
    let protected = Globs::new(&plan.protected)?;
    in_base(repo, base, |tree| {
        Project::of(plan.framework, &globs, tree).protecting(&protected, tree)
    })
}

/// Looks at the files of a base.
pub fn in_base<T>(
    repo: &Repository,
    base: ObjectId,
    look: impl FnOnce(Tree<'_>) -> T,
) -> Result<T, Error> {
    let tree = repo.read_commit(base)?.tree;
    let listing = repo.listing(tree)?.listing;
    let paths: Vec<String> = listing
        .iter()
        .filter_map(|(path, _)| String::from_utf8(path.to_vec()).ok())
        .collect();
    let read = |path: &str| repo.blob_at(base, path, 4 << 20).ok().flatten();
    Ok(look(Tree {
        paths: &paths,
        read: &read,
    }))
}

/// What hidden tests did on the base.
#[derive(Debug)]
pub struct Checked {
    /// The classification, or complaints for the writer.
    pub check: BaseCheck,
    /// Every test id, sentinels included.
    pub known: Vec<TestId>,
}

/// Lists and runs hidden tests on the base and classifies each. What the writer must mend stands in
/// [`BaseCheck::complaints`].
pub fn check(
    host: &Host<'_>,
    ground: &Ground,
    plan: &Plan,
    files: Vec<SealedFile>,
    criteria: &Criteria,
) -> Result<Checked, Error> {
    let bench = ground.bench(host, plan);
    let mut suite = ground.suite(plan, files);
    let expected: Vec<TestId> = criteria.expected().into_iter().collect();
    suite.known = expected
        .iter()
        .chain(criteria.sentinels())
        .cloned()
        .collect();
    let calls = bench.adapter().run(&suite, &expected);
    ground.is_sealed(host, plan, &bench.twins(&suite, &calls))?;
    let listed = match list(&bench, &suite)? {
        Ok(listed) => listed,
        Err(complaints) => {
            return Ok(Checked {
                check: BaseCheck {
                    complaints: complaints
                        .into_iter()
                        .map(|text| Complaint::new(Kind::Unlistable, text))
                        .collect(),
                    ..BaseCheck::default()
                },
                known: Vec::new(),
            });
        }
    };
    let file_of: BTreeMap<TestId, String> = suite
        .known
        .iter()
        .filter_map(|id| Some((id.clone(), bench.adapter().file_of(&suite, id)?.to_owned())))
        .collect();
    let mut runs = Vec::new();
    for _ in 0..plan.repeat.max(1) {
        host.check_cancel()?;
        runs.push(run(&bench, &suite, &expected)?);
    }
    let sentinels = match criteria.sentinels() {
        [] => None,
        ids => Some(run(&bench, &suite, ids)?),
    };
    let check = basecheck::check(&Evidence {
        criteria,
        listed: listed.as_ref(),
        runs: &runs,
        sentinels: sentinels.as_ref(),
        file_of: &file_of,
    });
    Ok(Checked {
        check,
        known: suite.known,
    })
}

/// Names of the tests in these files. Where only a run tells, those that the base reports if `by_run`,
/// else none. The inner error is for the writer.
pub fn list_ids(
    host: &Host<'_>,
    ground: &Ground,
    plan: &Plan,
    files: Vec<SealedFile>,
    by_run: bool,
) -> Result<Result<Vec<TestId>, Vec<String>>, Error> {
    let bench = ground.bench(host, plan);
    let suite = ground.suite(plan, files);
    Ok(match list(&bench, &suite)? {
        Ok(Some(ids)) => Ok(ids.into_iter().collect()),
        Ok(None) if by_run => Ok(by_running(&bench, &suite)?),
        Ok(None) => Ok(Vec::new()),
        Err(complaints) => Err(complaints),
    })
}

/// Runs every test file once, and takes the names that they report.
fn by_running(bench: &Bench<'_>, suite: &Suite) -> Result<Vec<TestId>, Error> {
    let files = suite.files.iter().map(|file| file.path.as_str());
    let tests = files.filter(|path| bench.adapter().is_test_file(suite, path));
    // Names nothing that exists: each name that comes out is then one that nobody asked for.
    let asked: Vec<TestId> = tests
        .filter_map(|path| TestId::new(format!("{path} > ")))
        .collect();
    let report = run(bench, suite, &asked)?;
    let names = report.unknown.into_iter().filter_map(TestId::new);
    Ok(names.collect())
}

type Listed = Result<Option<BTreeSet<TestId>>, Vec<String>>;

fn list(bench: &Bench<'_>, suite: &Suite) -> Result<Listed, Error> {
    let listing = match bench.adapter().list(suite) {
        Ok(listing) => listing,
        Err(unlistable) => return Ok(Err(unlistable.0)),
    };
    Ok(match listing {
        Listing::Known(ids) => Ok(Some(ids.into_iter().collect())),
        Listing::OnlyByRunning => Ok(None),
        Listing::Ask(call) => {
            let ran = bench.run(suite, &[call])?;
            let Some((call, raw)) = ran.calls.first() else {
                return Err(Error::missing(
                    "the tests could not be listed",
                    "run the command again",
                ));
            };
            match bench.adapter().read_list(suite, call, raw) {
                Ok(ids) => Ok(Some(ids.into_iter().collect())),
                Err(unlistable) => Err(unlistable.0),
            }
        }
    })
}

/// Runs these tests once and reads what came out.
fn run(bench: &Bench<'_>, suite: &Suite, ids: &[TestId]) -> Result<RunReport, Error> {
    if ids.is_empty() {
        return Ok(RunReport::default());
    }
    let calls = bench.adapter().run(suite, ids);
    let ran = bench.run(suite, &calls)?;
    Ok(bench.adapter().read(suite, ids, &ran.calls))
}
