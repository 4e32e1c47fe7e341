//! `prepare` with the real package clients: what it leaves, that it is used offline, what it
//! refuses, and what it says.

use crate::common::git::{commit_all, git};
use crate::flow::world::World;
use hangar::base::redact::Secret;
use hangar::flow::Error;
use hangar::flow::basecheck::{self, Ground};
use hangar::flow::host::{Host, Progress};
use hangar::flow::prepare::{Prepared, prepare};
use hangar::git::Repository;
use hangar::grade::basecheck::{BaseCheck, BaseResult};
use hangar::grade::suite::SealedFile;
use hangar::model::criteria::Criteria;
use hangar::model::ids::CriterionId;
use hangar::model::outcome::{FailureClass, TestId};
use hangar::model::plan::{Framework, Plan};
use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};

type File<'a> = (&'a str, &'a str);

/// A base with a `prepare` step.
pub(crate) struct Base {
    pub(crate) world: World,
    pub(crate) plan: Plan,
    said: RefCell<Vec<Progress>>,
}

impl Base {
    pub(crate) fn new(framework: Framework, prepare: &str, files: &[File<'_>]) -> Self {
        let mut plan = Plan::new(framework);
        plan.prepare = prepare.into();
        Self {
            world: World::new(files),
            plan,
            said: RefCell::default(),
        }
    }

    /// Runs `work` on this machine, with what its user has configured for the package clients.
    pub(crate) fn on_host<T>(&self, work: impl FnOnce(&mut Host<'_>, &Repository) -> T) -> T {
        let say = |progress: Progress| {
            self.said.borrow_mut().push(progress);
        };
        let mut host: Host<'_> = self.world.host();
        host.env = std::env::vars_os().collect();
        host.progress = &say;
        work(
            &mut host,
            &Repository::discover(&self.world.repo_dir()).unwrap(),
        )
    }

    fn prepare(&self) -> Result<Prepared, Error> {
        self.on_host(|host, repo| {
            let base = repo.head().unwrap().unwrap();
            prepare(host, repo, base, &self.plan).map(Option::unwrap)
        })
    }

    /// Whether the step ran since this was asked last.
    pub(crate) fn ran(&self) -> bool {
        let preparing = Progress::Stage("preparing dependencies".into());
        let ran = self.said.borrow().contains(&preparing);
        self.said.borrow_mut().clear();
        ran
    }

    fn noted(&self, text: &str) -> bool {
        let said = self.said.borrow();
        said.iter()
            .any(|progress| matches!(progress, Progress::Note(note) if note.contains(text)))
    }

    fn commit(&self, path: &str, text: &str) {
        fs::write(self.world.repo_dir().join(path), text).unwrap();
        commit_all(&self.world.repo_dir(), "next");
    }

    /// The base check of one file of hidden tests.
    pub(crate) fn check(&self, path: &str, text: &str, ids: &[&str]) -> Result<BaseCheck, Error> {
        let list = ids.join("\",\"");
        let map = format!(
            "{{\"format\":1,\"criteria\":{{\"c1\":[\"{list}\"]}},\"others\":[],\"sentinels\":[],\"notes\":\"\"}}"
        );
        let criteria = Criteria::parse(map.as_bytes(), &[CriterionId::at(0)]).unwrap();
        let file = SealedFile {
            path: path.into(),
            executable: false,
            text: Secret::from(text.to_owned()),
        };
        self.on_host(|host, repo| {
            let base = repo.head().unwrap().unwrap();
            let ground = Ground::new(host, &self.world.store(), base, &self.plan)?;
            ground.preflight(host, &self.plan)?;
            let checked = basecheck::check(host, &ground, &self.plan, vec![file], &criteria)?;
            Ok(checked.check)
        })
    }

    fn cache(&self) -> PathBuf {
        self.world.dir.path().join("cache")
    }

    /// Names in a folder of the cache, without locks.
    fn kept(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.cache().join(folder))
            .into_iter()
            .flatten();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| {
                std::path::Path::new(name)
                    .extension()
                    .is_none_or(|end| end != "lock")
            })
            .collect()
    }
}

pub(crate) fn missing<T: std::fmt::Debug>(result: Result<T, Error>) -> (String, String) {
    match result.unwrap_err() {
        Error::Missing { what, remedy } => (what, remedy),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn result(check: &BaseCheck, id: &str) -> BaseResult {
    assert!(check.complaints.is_empty());
    check.results[&TestId::new(id).unwrap()]
}

const PYPROJECT: &str = "[build-system]\nrequires = [\"setuptools\"]\nbuild-backend = \"setuptools.build_meta\"\n\
     [project]\nname = \"calc-tool\"\nversion = \"1\"\ndependencies = [\"iniconfig\"]\n\
     [tool.setuptools]\npackages = [\"calc\"]\npackage-dir = {\"\" = \"src\"}\n\
     [tool.pytest.ini_options]\naddopts = \"--needs-a-plugin-that-is-not-there\"\n";
const CALC: File<'_> = ("src/calc/__init__.py", "def add(a, b): return a + b\n");
const OWN_TEST: File<'_> = (
    "tests/test_own.py",
    "import iniconfig\nfrom calc import add\ndef test_add(): assert add(1, 2) == 3\n",
);
const HIDDEN: &str = "import importlib.metadata, iniconfig, calc, pytest\n\
     def test_add(): assert calc.add(2, 2) == 4\n\
     def test_place(): assert calc.__file__.startswith('/src/src/')\n\
     def test_version(): assert importlib.metadata.version('calc-tool') == '1'\n\
     def test_sub(): assert calc.sub(5, 3) == 2\n\
     def test_skip(): pytest.skip('not here')\n";

#[test]
#[ignore = "heavy: needs a package registry"]
fn pip_leaves_an_environment_that_is_used_offline() {
    let files = [
        ("pyproject.toml", PYPROJECT),
        ("requirements.txt", "pytest\n"),
        CALC,
        OWN_TEST,
    ];
    let base = Base::new(
        Framework::Pytest,
        "pip install -r requirements.txt -e .",
        &files,
    );
    let id = |name: &str| format!("tests/test_hidden.py::{name}");
    let names = [
        "test_add",
        "test_place",
        "test_version",
        "test_sub",
        "test_skip",
    ]
    .map(id);
    let ids: Vec<&str> = names.iter().map(String::as_str).collect();
    let check = base.check("tests/test_hidden.py", HIDDEN, &ids).unwrap();
    for guard in ["test_add", "test_place", "test_version"] {
        assert_eq!(result(&check, &id(guard)), BaseResult::Guard, "{guard}");
    }
    assert_eq!(
        result(&check, &id("test_sub")),
        BaseResult::Fails(FailureClass::MissingSymbol)
    );
    assert_eq!(result(&check, &id("test_skip")), BaseResult::Skipped);
    assert!(base.ran());

    // A change of the code needs nothing new, one of the list does.
    base.commit("src/calc/__init__.py", "def sub(a, b): return a - b\n");
    base.prepare().unwrap();
    assert!(!base.ran(), "the cache was not used");
    assert_eq!(base.kept("work"), [""; 0], "scratch was left behind");
    base.commit("requirements.txt", "pytest\nsix\n");
    let prepared = base.prepare().unwrap();
    assert!(base.ran());
    let site = prepared.folder().join("venv/lib");
    let version = fs::read_dir(site).unwrap().next().unwrap().unwrap().path();
    assert!(version.join("site-packages/six.py").is_file());
}

#[test]
#[ignore = "heavy: needs a package registry"]
fn a_copy_of_the_project_is_refused_with_the_line_that_helps() {
    let files = [("pyproject.toml", PYPROJECT), CALC];
    let base = Base::new(Framework::Pytest, "pip install .", &files);
    let (what, remedy) = missing(base.prepare());
    assert!(what.contains("calc-tool as a copy"), "{what}");
    assert!(
        remedy.ends_with("prepare = \"pip install -e .\""),
        "{remedy}"
    );
    assert_eq!(base.kept("prepared"), [""; 0], "nothing refused is kept");
    assert_eq!(base.kept("work"), [""; 0], "scratch was left behind");

    // The project's own release, brought in by something that needs it.
    let files = [("setup.cfg", "[metadata]\nname = iniconfig\n")];
    let base = Base::new(Framework::Pytest, "pip install pytest", &files);
    let (what, remedy) = missing(base.prepare());
    assert!(what.contains("iniconfig as a copy"), "{what}");
    assert!(
        remedy.ends_with("prepare = \"pip install pytest && pip install -e .\""),
        "{remedy}"
    );
}

#[test]
#[ignore = "heavy: needs a package registry"]
fn what_a_step_lacks_is_said_with_the_line_to_correct() {
    let base = Base::new(
        Framework::Pytest,
        "pip install no-such-package-of-hangar==1",
        &[("a.txt", "")],
    );
    let (what, remedy) = missing(base.prepare());
    assert!(what.contains("status 1: ERROR: "), "{what}");
    assert!(what.contains("no-such-package-of-hangar==1"), "{what}");
    assert!(
        remedy.ends_with("prepare = \"pip install no-such-package-of-hangar==1\""),
        "{remedy}"
    );

    let base = Base::new(
        Framework::Pytest,
        "pip install --retries 0 --index-url https://packages.example/simple six",
        &[("a.txt", "")],
    );
    let (what, remedy) = missing(base.prepare());
    assert!(what.contains("packages.example:443"), "{what}");
    assert!(
        remedy.ends_with("[prepare] hosts = [\"packages.example:443\"]"),
        "{remedy}"
    );
}

const PACKAGE: &str = r#"{"name": "calc", "version": "1.0.0", "private": true, "workspaces": ["part"],
 "dependencies": {"is-number": "^7.0.0"}, "devDependencies": {"eslint-of-nobody": "^9.9.9"}}"#;
const LOCK: &str = r#"{"name": "calc", "version": "1.0.0", "lockfileVersion": 3, "requires": true, "packages": {
 "": {"name": "calc", "version": "1.0.0", "workspaces": ["part"], "dependencies": {"is-number": "^7.0.0"},
      "devDependencies": {"eslint-of-nobody": "^9.9.9"}},
 "node_modules/calc-part": {"resolved": "part", "link": true},
 "node_modules/eslint-of-nobody": {"version": "9.9.9", "dev": true},
 "node_modules/is-number": {"version": "7.0.0"},
 "part": {"name": "calc-part", "version": "1.0.0"}}}"#;
const NODE_TEST: &str = "\
const test = require('node:test');
const assert = require('node:assert');
const isNumber = require('is-number');
const part = require('calc-part');
test('number', () => assert.ok(isNumber(1)));
test('workspace', () => assert.ok(part.where.startsWith('/src/part')));
test('sub', () => assert.strictEqual(require('../calc.js').sub(5, 3), 2));
";

#[test]
#[ignore = "heavy: needs a package registry"]
fn npm_leaves_modules_that_are_used_offline() {
    let files = [
        ("package.json", PACKAGE),
        ("package-lock.json", LOCK),
        (
            "part/package.json",
            r#"{"name": "calc-part", "version": "1.0.0"}"#,
        ),
        ("part/index.js", "exports.where = __dirname;\n"),
        ("calc.js", "exports.sub = (a, b) => a + b;\n"),
        ("test/own.test.js", "require('is-number')\n"),
    ];
    let mut base = Base::new(
        Framework::Node,
        "npm ci --omit=dev --ignore-scripts",
        &files,
    );
    base.plan.tests = vec!["test/".into()];
    let id = |name: &str| format!("test/hidden.test.js > {name}");
    let names = ["number", "workspace", "sub"].map(id);
    let ids: Vec<&str> = names.iter().map(String::as_str).collect();
    let check = base.check("test/hidden.test.js", NODE_TEST, &ids).unwrap();
    assert_eq!(result(&check, &id("number")), BaseResult::Guard);
    assert_eq!(result(&check, &id("workspace")), BaseResult::Guard);
    assert_eq!(
        result(&check, &id("sub")),
        BaseResult::Fails(FailureClass::Assertion)
    );
    assert!(base.ran());
    base.commit("calc.js", "exports.sub = () => 2;\n");
    base.check("test/hidden.test.js", NODE_TEST, &ids).unwrap();
    assert!(!base.ran(), "the cache was not used");

    // What the tests need and nobody installed is named before any test is written.
    base.commit("test/own.test.js", "require('eslint-of-nobody')\n");
    let (what, _) = missing(base.check("test/hidden.test.js", NODE_TEST, &ids));
    assert!(what.contains("eslint-of-nobody"), "{what}");
}

#[test]
#[ignore = "heavy: needs a sandbox"]
fn a_link_in_place_of_node_modules_is_refused() {
    let files = [("package.json", "{}")];
    let base = Base::new(Framework::Node, "ln -s /usr/share node_modules", &files);
    let (what, _) = missing(base.prepare());
    assert!(what.contains("no folder"), "{what}");
    assert_eq!(base.kept("prepared"), [""; 0]);
}

const RUST_TEST: &str = "\
#[test]\nfn prints() { assert_eq!(calc::print(7), \"7\"); }
#[test]\nfn adds() { assert_eq!(calc::add(2, 2), 4); }
";

fn cargo(dir: &Path, args: &[&str]) {
    let mut command = std::process::Command::new("cargo");
    let output = command.args(args).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn cargo_base() -> Base {
    let manifest = "[package]\nname = \"calc\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\
                    [dependencies]\nitoa = \"1\"\n";
    let code = "pub fn print(n: u32) -> String { itoa::Buffer::new().format(n).to_owned() }\n\
                pub fn add(a: u32, b: u32) -> u32 { a * b + 1 }\n";
    let files = [("Cargo.toml", manifest), ("src/lib.rs", code)];
    let base = Base::new(Framework::Cargo, "cargo fetch --locked", &files);
    let repo = base.world.repo_dir();
    cargo(&repo, &["generate-lockfile", "--quiet"]);
    commit_all(&repo, "lock");
    base
}

fn assert_cargo_works(base: &Base, check: Result<BaseCheck, Error>) {
    let check = check.unwrap();
    assert_eq!(result(&check, "hidden::prints"), BaseResult::Guard);
    assert_eq!(
        result(&check, "hidden::adds"),
        BaseResult::Fails(FailureClass::Assertion)
    );
    let tree = git(&base.world.repo_dir(), &["status", "--porcelain"]);
    assert_eq!(tree, "", "the work tree was touched");
}

#[test]
#[ignore = "heavy: needs a package registry"]
fn cargo_leaves_crates_that_are_used_offline() {
    let base = cargo_base();
    let ids = ["hidden::prints", "hidden::adds"];
    let check = base.check("tests/hidden.rs", RUST_TEST, &ids);
    assert_cargo_works(&base, check);
    assert!(base.ran());
    base.prepare().unwrap();
    assert!(!base.ran(), "the cache was not used");

    // Without the step, the missing crates are the environment's fault.
    let mut base = base;
    base.plan.prepare = String::new();
    let (what, remedy) = missing(base.check("tests/hidden.rs", RUST_TEST, &ids));
    assert!(what.contains("not downloaded"), "{what}");
    assert!(remedy.contains("prepare = \"cargo fetch\""), "{remedy}");
}

#[test]
#[ignore = "heavy: needs a package registry"]
fn a_folder_that_stands_for_the_public_registry_is_used_offline_too() {
    let base = cargo_base();
    let home = tempfile::tempdir().unwrap();
    let vendor = home.path().join("vendor").display().to_string();
    cargo(
        &base.world.repo_dir(),
        &["vendor", "--quiet", "--locked", &vendor],
    );
    let config = format!(
        "[source.crates-io]\nreplace-with = \"near\"\n[source.near]\ndirectory = \"{vendor}\"\n\
         [registries.work]\nindex = \"sparse+https://work.example.org/\"\ntoken = \"t0ken\"\n"
    );
    fs::write(home.path().join("config.toml"), config).unwrap();
    base.on_host(|host, repo| {
        host.env
            .insert("CARGO_HOME".into(), home.path().as_os_str().to_owned());
        let head = repo.head().unwrap().unwrap();
        let prepared = prepare(host, repo, head, &base.plan).unwrap().unwrap();
        let kept = fs::read_to_string(prepared.folder().join("cargo/config.toml")).unwrap();
        assert!(kept.contains("near") && !kept.contains("t0ken"), "{kept}");
    });
    let ids = ["hidden::prints", "hidden::adds"];
    let check = base.check("tests/hidden.rs", RUST_TEST, &ids);
    assert_cargo_works(&base, check);
}

#[test]
#[ignore = "heavy: needs a sandbox"]
fn what_is_kept_depends_on_what_the_step_reads_and_nothing_else() {
    let files = [("deps/list", "one\n"), ("src.txt", "1\n")];
    let base = Base::new(Framework::Exec, "cp deps/list /prepared/list", &files);
    let list = |prepared: &Prepared| fs::read_to_string(prepared.folder().join("list")).unwrap();
    assert_eq!(list(&base.prepare().unwrap()), "one\n");
    assert!(base.ran());
    base.commit("src.txt", "2\n");
    base.prepare().unwrap();
    assert!(
        !base.ran(),
        "a file that the step does not name made it run again"
    );
    base.commit("deps/list", "two\n");
    assert_eq!(list(&base.prepare().unwrap()), "two\n");
    assert_eq!(base.kept("prepared").len(), 2);
    assert!(!base.noted("refused"));
}

#[test]
#[ignore = "heavy: needs a sandbox"]
fn a_build_step_is_run_on_the_base_before_it_is_tested() {
    let files = [("calc.in", "echo $(($1 + $2))\n")];
    let mut base = Base::new(Framework::Exec, "", &files);
    base.plan.build = "cp calc.in calc.sh".into();
    let test = "#!/bin/sh\ntest \"$(sh ./calc.sh 5 3)\" = 2\n";
    let guard = |base: &Base| {
        let map = r#"{"format":1,"criteria":{"c1":["tests/sub.sh"]},"others":["tests/add.sh"],"sentinels":[],"notes":""}"#;
        let criteria = Criteria::parse(map.as_bytes(), &[CriterionId::at(0)]).unwrap();
        let file = |path: &str, text: &str| SealedFile {
            path: path.into(),
            executable: true,
            text: Secret::from(text.to_owned()),
        };
        let files = vec![
            file("tests/sub.sh", test),
            file("tests/add.sh", &test.replace("= 2", "= 8")),
        ];
        base.on_host(|host, repo| {
            let head = repo.head().unwrap().unwrap();
            let ground = Ground::new(host, &base.world.store(), head, &base.plan)?;
            basecheck::check(host, &ground, &base.plan, files, &criteria)
        })
    };
    let check = guard(&base).unwrap().check;
    assert_eq!(result(&check, "tests/add.sh"), BaseResult::Guard);
    assert!(matches!(
        result(&check, "tests/sub.sh"),
        BaseResult::Fails(_)
    ));
    base.plan.build = "cp nothing calc.sh".into();
    let (what, remedy) = missing(guard(&base));
    assert!(
        what.contains("`build` step fails on the base") && what.contains("nothing"),
        "{what}"
    );
    assert!(remedy.contains("`build`"), "{remedy}");
}

#[test]
#[ignore = "heavy: needs a sandbox"]
fn a_base_whose_own_tests_cannot_be_loaded_is_no_ground_for_hidden_ones() {
    let files = [
        ("src/calc/__init__.py", "from ._version import version\n"),
        ("tests/test_own.py", "import calc\ndef test_one(): pass\n"),
    ];
    let mut base = Base::new(Framework::Unittest, "", &files);
    let ids = ["tests/test_hidden.py::T::test_two"];
    let hidden = "import unittest\nimport calc\nclass T(unittest.TestCase):\n    def test_two(self): self.fail()\n";
    let (what, remedy) = missing(base.check("tests/test_hidden.py", hidden, &ids));
    assert!(what.contains("there is no module calc._version"), "{what}");
    assert!(remedy.contains("`build`"), "{remedy}");

    base.plan.build = "echo 'version = 1' > src/calc/_version.py".into();
    let check = base.check("tests/test_hidden.py", hidden, &ids).unwrap();
    assert_eq!(
        result(&check, ids[0]),
        BaseResult::Fails(FailureClass::Assertion)
    );
}

#[test]
#[ignore = "heavy: needs a sandbox"]
fn a_step_that_is_stopped_leaves_nothing() {
    let base = Base::new(Framework::Exec, "echo begun; sleep 300", &[("a", "")]);
    let cancel = hangar::sandbox::Cancel::default();
    let stop = |progress: Progress| {
        if progress == Progress::Output("begun".into()) {
            cancel.set();
        }
    };
    let mut host: Host<'_> = base.world.host();
    host.env = std::env::vars_os().collect();
    host.cancel = cancel.clone();
    host.progress = &stop;
    let repo = Repository::discover(&base.world.repo_dir()).unwrap();
    let head = repo.head().unwrap().unwrap();
    let result = prepare(&host, &repo, head, &base.plan);
    assert!(matches!(result, Err(Error::Interrupted)), "{result:?}");
    assert_eq!(base.kept("prepared"), [""; 0]);
    assert_eq!(base.kept("work"), [""; 0]);
}

#[test]
#[ignore = "heavy: needs a sandbox"]
fn a_broken_client_that_the_step_does_not_use_is_no_obstacle() {
    let broken = |base: &Base| {
        base.on_host(|host, repo| {
            host.user
                .toolchain
                .insert("pip".into(), "/bin/false".into());
            let head = repo.head().unwrap().unwrap();
            prepare(host, repo, head, &base.plan).map(Option::unwrap)
        })
    };
    let base = Base::new(Framework::Exec, "echo one > /prepared/x", &[("a", "")]);
    broken(&base).unwrap();
    let base = Base::new(Framework::Exec, "pip download six", &[("a", "")]);
    let error = broken(&base).unwrap_err();
    assert!(error.to_string().contains("`pip`"), "{error}");
}
