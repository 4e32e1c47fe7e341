//! `hangar seal --from`: hidden tests that a person wrote.

use super::machine::{Watch, host};
use super::run::not_now;
use crate::app::{Error, Here};
use crate::base::redact::Secret;
use crate::flow;
use crate::flow::basecheck::{self, Checked, Ground};
use crate::flow::host::Host;
use crate::flow::project::Project;
use crate::flow::sealing::{self, Material};
use crate::flow::stage::{self, Next};
use crate::flow::version::criterion_ids;
use crate::flow::{claim, writer};
use crate::grade::protect::{GUARDED, Globs};
use crate::grade::suite::SealedFile;
use crate::harness::collect::{self, CollectedFile, Paths, SealedOutput};
use crate::model::authority::{Act, may};
use crate::model::digest::Digest;
use crate::model::event::Change;
use crate::model::ids::{CriterionId, TaskId};
use crate::model::manifest::{Counts, Manifest, Writer};
use crate::model::outcome::TestId;
use crate::model::plan::Plan;
use crate::model::task::{Flow, State};
use crate::store::Store;
use crate::store::dossier::{Dossier, Held};
use crate::store::identity::Identity;
use crate::trust::AskPassphrase;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Largest file that is read.
const MAX_FILE: u64 = 10 << 20;

/// A new sealed version.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Sealed {
    /// Which task.
    pub id: TaskId,
    /// Its number.
    pub version: u32,
    /// Digest of its manifest.
    pub manifest: Digest,
    /// Numbers.
    pub counts: Counts,
    /// Criteria that no test shows.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub uncovered: Vec<CriterionId>,
}

/// Where the tests are and what they show.
#[derive(Debug, Clone)]
pub struct Source {
    /// Folder whose paths are those below the repository's root.
    pub folder: PathBuf,
    /// Criterion and test id.
    pub map: Vec<(String, String)>,
    /// Tests that any implementation must fail.
    pub sentinels: Vec<String>,
}

/// Checks, seals and records tests of a person.
pub fn seal(
    here: &Here,
    task: &str,
    source: &Source,
    ask: &mut AskPassphrase<'_>,
    watch: &Watch<'_>,
) -> Result<Sealed, Error> {
    check_folder(&source.folder)?;
    let store = here.store()?;
    let dossier = store.dossier_of(store.find_task(task)?)?;
    check_stage(&store, &dossier)?;
    let signer = here.signer(&store, ask)?;
    let person = Identity::of(&store.policy, &signer)?;
    if !may(&person.actor, Act::Submit, &dossier.history.task.requester) {
        let what = format!("{} may not seal tests", person.principal());
        return Err(
            flow::Error::refused(what, "ask an admin to add you (`hangar policy add`)").into(),
        );
    }
    let host = host(here, &store, watch, None, None)?;
    here.config_at(&store.repo, dossier.history.task.base)?;
    let project = Project::at_base(&store, &dossier.history.task)?;
    let plan = project.plan()?;
    let ground = Ground::new(&host, &store, dossier.history.task.base, plan)?;
    ground.preflight(&host, plan)?;
    let output = read(&host, &ground, plan, &dossier, source)?;
    host.stage("running the tests on the base");
    let checked = basecheck::check(&host, &ground, plan, suite(&output), &output.criteria)?;
    if checked.check.is_environment() {
        return Err(writer::environment(&checked).into());
    }
    if !checked.check.complaints.is_empty() {
        let lines = checked.check.complaints.iter().map(|one| &**one);
        return Err(malformed(&lines.collect::<Vec<_>>().join("\n"), source));
    }
    record(&host, &store, &dossier, &person, plan, output, &checked)
}

fn check_folder(folder: &Path) -> Result<(), Error> {
    let wrong = match fs::metadata(folder) {
        Ok(meta) if meta.is_dir() => return Ok(()),
        Ok(_) => format!("`{}` is no folder", folder.display()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            format!("there is no folder `{}`", folder.display())
        }
        Err(error) => format!("`{}` can't be read: {error}", folder.display()),
    };
    Err(Error::invalid(format!(
        "{wrong}; --from names the folder with the tests"
    )))
}

fn check_stage(store: &Store, dossier: &Dossier) -> Result<(), Error> {
    if dossier.history.task.flow == Flow::Plain {
        return Err(flow::Error::refused(
            "a plain task is delivered without hidden tests",
            "make a test-first task (`hangar task new --test-first`)",
        )
        .into());
    }
    let id = dossier.id().short();
    let (what, remedy) = match stage::next_now(store, dossier) {
        Next::Enqueue | Next::Write { .. } | Next::AwaitApproval { .. } => return Ok(()),
        Next::Nothing => {
            let state = dossier.history.task.state;
            let again = matches!(state, State::Failed | State::Rejected);
            let remedy = if again {
                format!("begin again: `hangar task retry {id} --from writing`")
            } else {
                "tests for more work belong to a new task: `hangar task new`".to_owned()
            };
            (
                format!("the task is {state}, so no tests are sealed for it"),
                remedy,
            )
        }
        next @ (Next::Blocked(_) | Next::RejectTask { .. } | Next::Leaked) => {
            return Err(not_now(&next, dossier).into());
        }
        _ => (
            "the tests of this task are settled, and code is being made against them".to_owned(),
            format!(
                "see `hangar task show {id}`; rejecting the tests (`hangar reject {id} --reason TEXT`) makes room for others"
            ),
        ),
    };
    Err(flow::Error::refused(what, remedy).into())
}

/// The folder's files and map, checked by the rules for a writer's output.
fn read(
    host: &Host<'_>,
    ground: &Ground,
    plan: &Plan,
    dossier: &Dossier,
    source: &Source,
) -> Result<SealedOutput, Error> {
    let globs = Globs::new(&plan.tests).map_err(flow::Error::from)?;
    let shared = Globs::new(GUARDED).map_err(flow::Error::from)?;
    let paths = Paths {
        tests: &plan.tests,
        allowed: &|path| globs.matches(path.as_bytes()),
        protected: &|path| shared.matches(path.as_bytes()),
    };
    let files = read_folder(&source.folder)?;
    if files.is_empty() {
        return Err(Error::invalid(format!(
            "the folder `{}` holds no file",
            source.folder.display()
        )));
    }
    let by_run = !has_map(&files);
    let listed = match basecheck::list_ids(host, ground, plan, suite_of(&files), by_run)? {
        Ok(ids) => ids,
        Err(complaints) => return Err(malformed(&complaints.join("\n"), source)),
    };
    let files = with_map(files, source, &listed)?;
    collect::sealed(files, &[], &criterion_ids(&dossier.history.task), &paths)
        .map_err(|complaint| malformed(&complaint.for_writer(), source))
}

fn suite(output: &SealedOutput) -> Vec<SealedFile> {
    let file = |(path, file): (&String, &collect::SealedFile)| SealedFile {
        path: path.clone(),
        executable: file.executable,
        text: file.bytes.clone(),
    };
    output.files.iter().map(file).collect()
}

/// The same for files that were only read: names that can't be sealed are complained about later.
fn suite_of(files: &[CollectedFile]) -> Vec<SealedFile> {
    let file = |file: &CollectedFile| {
        let path = String::from_utf8(file.path.clone()).ok()?;
        let is_test = path != crate::seal::CRITERIA && crate::seal::check_path(&path).is_ok();
        is_test.then(|| SealedFile {
            path,
            executable: file.mode & 0o100 != 0,
            text: file.bytes.clone(),
        })
    };
    files.iter().filter_map(file).collect()
}

/// Seals what was checked, as a version that waits for an approval.
fn record(
    host: &Host<'_>,
    store: &Store,
    dossier: &Dossier,
    person: &Identity<'_>,
    plan: &Plan,
    output: SealedOutput,
    checked: &Checked,
) -> Result<Sealed, Error> {
    let id = dossier.id().clone();
    store.change_task(&id, person, |history| {
        let is_draft = history.task.state == State::Draft;
        Ok(is_draft.then_some(Change::Enqueue).into_iter().collect())
    })?;
    let known = dossier.seals.len();
    let hold = claim::take(host, store, &id)?;
    let dossier = store.dossier(&id)?;
    if let Some(other) = dossier.seals.get(known..).and_then(<[_]>::last) {
        claim::release(host, store, &id, &hold)?;
        return Err(sealed_meanwhile(other).into());
    }
    let files = output
        .files
        .into_iter()
        .map(|(path, file)| (path, file.executable, file.bytes))
        .collect();
    let writer = Writer::Person {
        name: person.principal().clone(),
    };
    let material = Material {
        files,
        criteria: output.criteria,
        checked,
        plan,
        writer,
    };
    host.stage("sealing");
    let written = match sealing::seal(host, store, &dossier, material) {
        Ok(written) => written,
        Err(error) => {
            claim::release(host, store, &id, &hold)?;
            return Err(error.into());
        }
    };
    claim::begin_waiting(host, store, &id, &hold, written.digest)?;
    let dossier = store.dossier(&id)?;
    let held = dossier.seal(written.digest).ok_or_else(|| {
        flow::Error::missing("the sealed version is not there", "run `hangar verify`")
    })?;
    Ok(Sealed {
        id,
        version: held.value().version,
        manifest: written.digest,
        counts: held.value().counts,
        uncovered: held
            .value()
            .coverage
            .iter()
            .filter(|one| one.fails == 0)
            .map(|one| one.criterion.clone())
            .collect(),
    })
}

/// Who was faster, and with what.
fn sealed_meanwhile(other: &Held<Manifest>) -> flow::Error {
    let (by, manifest) = (other.document.actor.person(), other.value());
    let writer = match &manifest.writer {
        Writer::Person { name } => format!("tests that {name} wrote"),
        Writer::Agent { harness, .. } => format!("tests that {harness} wrote"),
    };
    let (version, digest) = (manifest.version, other.digest().short());
    flow::Error::Lost {
        why: format!(
            "a grader of {by} sealed {writer} as version {version} (manifest {digest}) while these were checked; seal again where yours are to take their place"
        ),
    }
}

/// A map that stood on the command line is named as what it was.
fn malformed(text: &str, source: &Source) -> Error {
    let text = if source.map.is_empty() {
        text.to_owned()
    } else {
        text.replace(crate::seal::CRITERIA, "--map")
    };
    let mut list = String::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        list.push_str("\n- ");
        list.push_str(line.trim_start_matches("- "));
    }
    Error::invalid(format!("these tests can't be sealed:{list}"))
}

/// Every regular file below a folder. Links and special files are named and refused.
fn read_folder(folder: &Path) -> Result<Vec<CollectedFile>, Error> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(dir) = open.pop() {
        let fail = |source| Error::Read {
            path: dir.clone(),
            source,
        };
        for entry in fs::read_dir(&dir).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let path = entry.path();
            let fail = |source| Error::Read {
                path: path.clone(),
                source,
            };
            let kind = entry.file_type().map_err(fail)?;
            if kind.is_dir() {
                open.push(path);
                continue;
            }
            if !kind.is_file() {
                return Err(Error::invalid(format!(
                    "`{}` is no regular file",
                    path.display()
                )));
            }
            found.push(read_file(folder, &path)?);
        }
    }
    Ok(found)
}

fn read_file(folder: &Path, path: &Path) -> Result<CollectedFile, Error> {
    let fail = |source| Error::Read {
        path: path.to_owned(),
        source,
    };
    let file = fs::File::open(path).map_err(fail)?;
    let meta = file.metadata().map_err(fail)?;
    if meta.len() > MAX_FILE {
        return Err(Error::invalid(format!(
            "`{}` is larger than {} MiB",
            path.display(),
            MAX_FILE >> 20
        )));
    }
    // One allocation: growing would leave copies of the test behind.
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or(0) + 64);
    file.take(MAX_FILE).read_to_end(&mut bytes).map_err(fail)?;
    let executable = meta.permissions().mode() & 0o100 != 0;
    let bytes = Secret::new(bytes);
    CollectedFile::below(folder, path.as_os_str().as_bytes(), executable, bytes)
        .ok_or_else(|| Error::invalid(format!("`{}` does not lie in the folder", path.display())))
}

fn has_map(files: &[CollectedFile]) -> bool {
    let map = crate::seal::CRITERIA.as_bytes();
    files.iter().any(|file| file.path == map)
}

/// Adds the map that the command line gives, where the folder has none. Tests that nothing names
/// stand for no criterion.
fn with_map(
    mut files: Vec<CollectedFile>,
    source: &Source,
    listed: &[TestId],
) -> Result<Vec<CollectedFile>, Error> {
    if has_map(&files) {
        if source.map.is_empty() && source.sentinels.is_empty() {
            return Ok(files);
        }
        return Err(Error::invalid(
            "the folder has a criteria.json; leave out --map and --sentinel",
        ));
    }
    if source.map.is_empty() {
        return Err(Error::invalid(
            "nothing says which test shows which criterion: use --map c1=TEST-ID, or put a criteria.json into the folder",
        ));
    }
    let mut criteria: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (criterion, id) in &source.map {
        criteria.entry(criterion).or_default().push(id);
    }
    let named = |id: &&TestId| {
        let id = id.as_str();
        source.map.iter().any(|(_, mapped)| mapped == id)
            || source.sentinels.iter().any(|one| one == id)
    };
    let others: Vec<&TestId> = listed.iter().filter(|id| !named(id)).collect();
    let map = serde_json::json!({
        "format": 1, "criteria": criteria, "others": others, "sentinels": source.sentinels, "notes": ""
    });
    files.push(CollectedFile {
        path: crate::seal::CRITERIA.as_bytes().to_vec(),
        mode: 0o644,
        bytes: Secret::from(map.to_string()),
    });
    Ok(files)
}
