//! One body for each kind of bytes that hangar reads and that somebody else wrote.
//!
//! `cargo fuzz` runs them for as long as one likes (`fuzz/run`), the tests a little each time
//! (`tests/it/fuzz.rs`). A body that returns has passed; what must hold besides is asserted.

use hangar::base::redact::Secret;
use hangar::config::repository::Repository as Config;
use hangar::git::{EntryKind, Repository};
use hangar::grade::adapter::{Listing, adapter};
use hangar::grade::call::{End, Layout, Left, Raw, Tools};
use hangar::grade::manifest::{Project, Tree};
use hangar::grade::protect::Globs;
use hangar::grade::shingles::Shingles;
use hangar::grade::suite::{Added, SealedFile, Suite};
use hangar::harness::egress::body::Framing;
use hangar::harness::egress::head;
use hangar::harness::finish::{Ended, Exit, TurnEnd};
use hangar::harness::lanes;
use hangar::model::approval::Approval;
use hangar::model::codec;
use hangar::model::criteria::Criteria;
use hangar::model::event::Event;
use hangar::model::grade::Grade;
use hangar::model::lane::LaneSettings;
use hangar::model::manifest::{Manifest, Reseal};
use hangar::model::object_id::ObjectId;
use hangar::model::outcome::TestId;
use hangar::model::plan::{Framework, Plan};
use hangar::model::policy::{Members, Root};
use hangar::model::run::Run;
use hangar::seal::Payload;
use hangar::trust::PublicKey;
use hangar::{git, seal, trust, ui};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A body by its name.
pub type Body = (&'static str, fn(&[u8]));

/// Every body. Each has a target of its name in `fuzz/Cargo.toml`.
pub const ALL: &[Body] = &[
    ("config", config),
    ("criteria", criteria),
    ("document", document),
    ("egress", egress),
    ("leak", leak),
    ("manifest", manifest),
    ("name", name),
    ("patch", patch),
    ("payload", payload),
    ("report", report),
    ("signature", signature),
    ("source", source),
    ("stream", stream),
    ("terminal", terminal),
];

const FRAMEWORKS: [&str; 13] = [
    "pytest", "unittest", "cargo", "go", "node", "mocha", "jest", "vitest", "ctest", "tap",
    "junit", "exec", "external",
];

fn frameworks() -> impl Iterator<Item = Framework> {
    FRAMEWORKS
        .iter()
        .map(|word| word.parse().expect("a framework"))
}

/// Signed documents. What was read is written and read again as the same.
pub fn document(bytes: &[u8]) {
    fn one<T: DeserializeOwned + Serialize>(bytes: &[u8]) {
        if let Ok(value) = codec::decode::<T>(bytes)
            && let Ok(written) = codec::encode(&value)
        {
            let again = codec::decode::<T>(&written).expect("what was written is read");
            let twice = codec::encode(&again).expect("it is written again");
            assert_eq!(written, twice);
        }
    }
    one::<Event>(bytes);
    one::<Manifest>(bytes);
    one::<Reseal>(bytes);
    one::<Approval>(bytes);
    one::<Run>(bytes);
    one::<Grade>(bytes);
    one::<Root>(bytes);
    one::<Members>(bytes);
}

/// What a writer says about its tests.
pub fn criteria(bytes: &[u8]) {
    let known = ["c1", "c2"].map(|id| id.parse().expect("an id"));
    if let Ok(criteria) = Criteria::parse(bytes, &known) {
        let again = Criteria::parse(&criteria.to_bytes(), &known);
        assert!(again.is_ok_and(|again| again.expected() == criteria.expected()));
    }
}

/// Sealed tests, once they are decrypted: the paths in them stay below the folder they go to.
pub fn payload(bytes: &[u8]) {
    if let Ok(payload) = Payload::from_bytes(bytes) {
        for file in payload.files() {
            assert!(!file.path.starts_with('/') && !file.path.split('/').any(|part| part == ".."));
        }
        let _ = payload.listing();
    }
}

/// An SSHSIG, and a key as a policy or a colleague gives it.
pub fn signature(bytes: &[u8]) {
    let _ = trust::claimed_key(bytes);
    if let Ok(key) = String::from_utf8_lossy(bytes).parse::<PublicKey>() {
        let again: PublicKey = key.as_str().parse().expect("what was read is read again");
        assert_eq!(again.fingerprint(), key.fingerprint());
    }
}

/// `hangar.toml` of a repository.
pub fn config(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(config) = Config::parse(Path::new("hangar.toml"), &text) {
        let _ = config.to_plan(&[]);
    }
}

/// Paths and names of refs.
pub fn name(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if git::check_path(bytes, EntryKind::Blob).is_ok() {
        let mut parts = bytes.split(|byte| *byte == b'/');
        assert!(parts.all(|part| !part.is_empty() && part != b".." && part != b"."));
    }
    let _ = git::check_ref_name(&text);
    let _ = seal::check_path(&text);
    let _ = TestId::new(text);
}

/// The scans for hidden tests: nothing is a piece of a text that has none, or from which it was taken
/// away.
pub fn leak(bytes: &[u8]) {
    let _ = seal::scan(bytes).count();
    let mut pieces = Shingles::default();
    pieces.add(bytes);
    assert!(!pieces.is_empty() || !pieces.has_piece_in(bytes));
    pieces.subtract(bytes);
    assert!(pieces.is_empty() && !pieces.has_piece_in(bytes));
}

/// What is shown on a terminal carries no control characters of somebody else.
pub fn terminal(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let line = ui::escape::line(&text);
    assert!(!line.chars().any(char::is_control), "{line:?}");
    let block = ui::escape::block(&text);
    let bad = |c: char| c.is_control() && c != '\n' && c != '\t';
    assert!(!block.chars().any(bad), "{block:?}");
}

/// What an agent program wrote in a turn: people are told one short line of it.
pub fn stream(bytes: &[u8]) {
    for kind in ["claude", "codex"] {
        let name = kind.parse().expect("a name");
        let lane = lanes::lane(&LaneSettings::default(), name).expect("a lane");
        for exit in [Exit::Code(0), Exit::Code(1), Exit::Idle] {
            let finish = lane.adapter.read(&Ended {
                exit,
                stdout: bytes,
                stderr: bytes,
                at: "2026-01-02T03:04:05Z".parse().expect("a time"),
            });
            if let TurnEnd::Failed(failure) = finish.end {
                let words = failure.words(true);
                assert!(
                    words.len() < 2000 && !words.chars().any(char::is_control),
                    "{words:?}"
                );
            }
        }
        for line in bytes.split(|byte| *byte == b'\n') {
            lane.adapter.show(line);
        }
    }
}

/// What a program in a sandbox sends through the proxy: what goes on is one head, and a body ends
/// where it ends, however it comes in pieces.
pub fn egress(bytes: &[u8]) {
    if let Ok(Some((found, length))) = head::request(bytes) {
        assert!(length <= bytes.len());
        if let head::Kind::Plain { head, body, .. } = found.kind {
            let ends = head.windows(4).filter(|four| *four == b"\r\n\r\n");
            assert!(head.ends_with(b"\r\n\r\n") && ends.count() == 1);
            let rest = &bytes[length..];
            let whole = Framing::new(&body).feed(rest);
            let mut pieces = Framing::new(&body);
            let one = |byte: &u8| pieces.feed(std::slice::from_ref(byte));
            let by_one = rest.iter().map(one).sum::<Result<usize, _>>();
            assert_eq!(whole, by_one);
        }
    }
    let _ = head::response(bytes);
}

/// A patch file, on a tree with a few files: what comes of it is a tree that can be read.
pub fn patch(bytes: &[u8]) {
    thread_local! {
        static GROUND: (tempfile::TempDir, Repository, ObjectId) = ground();
    }
    GROUND.with(|(_, repo, base)| {
        if let Ok(applied) = repo.apply_patch(*base, bytes) {
            repo.diff_text(*base, applied.tree).expect("it can be read");
        }
    });
}

/// A repository with a tree of one file.
fn ground() -> (tempfile::TempDir, Repository, ObjectId) {
    let dir = tempfile::tempdir().expect("a folder");
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        git.current_dir(&dir).args(args);
        git.env("HOME", dir.path()).env("GIT_CONFIG_NOSYSTEM", "1");
        let out = git.output().expect("git runs");
        String::from_utf8_lossy(&out.stdout).trim().to_owned()
    };
    git(&["init", "-q"]);
    std::fs::write(dir.path().join("a.txt"), "one\ntwo\nthree\n").expect("a file");
    git(&["add", "a.txt"]);
    let tree = git(&["write-tree"]).parse().expect("a tree");
    let repo = Repository::discover(dir.path()).expect("a repository");
    (dir, repo, tree)
}

/// Manifests of a base, which say what belongs to it.
pub fn manifest(bytes: &[u8]) {
    const PATHS: [&str; 12] = [
        "Cargo.toml",
        "Cargo.lock",
        "package.json",
        "pyproject.toml",
        "setup.cfg",
        "setup.py",
        "requirements.txt",
        "go.mod",
        "go.work",
        "CMakeLists.txt",
        "tests/CMakeLists.txt",
        "tests/test_a.js",
    ];
    let paths = PATHS.map(str::to_owned);
    let read = |_: &str| Some(bytes.to_vec());
    let tree = Tree {
        paths: &paths,
        read: &read,
    };
    for framework in frameworks() {
        let tests = Globs::new(&Plan::new(framework).tests).expect("the default patterns");
        let _ = Project::of(framework, &tests, tree);
        let _ = adapter(framework).detect(tree);
    }
}

/// Sealed files of every kind: which tests are in them, and how they are run.
pub fn source(bytes: &[u8]) {
    for framework in frameworks() {
        let suite = suite(framework, bytes);
        let adapter = adapter(framework);
        let _ = adapter.preflight(&suite);
        if let Ok(Listing::Known(ids)) = adapter.list(&suite) {
            let _ = adapter.run(&suite, &ids);
        }
    }
}

/// What a runner leaves: nothing that was not asked for is an outcome.
pub fn report(bytes: &[u8]) {
    for framework in frameworks() {
        let suite = suite(framework, b"");
        let adapter = adapter(framework);
        let mut calls = adapter.run(&suite, &suite.known);
        calls.extend(adapter.preflight(&suite));
        for call in calls {
            let answered = (call, raw(bytes));
            let _ = adapter.read_list(&suite, &answered.0, &answered.1);
            let _ = adapter.read_preflight(&suite, std::slice::from_ref(&answered));
            let read = adapter.read(&suite, &suite.known, std::slice::from_ref(&answered));
            assert!(read.outcomes.keys().all(|id| suite.known.contains(id)));
        }
    }
}

/// The bytes in every place where a runner can leave some.
fn raw(bytes: &[u8]) -> Raw {
    let files = ["report.xml", "report.json", "junit.xml"];
    Raw {
        end: End::Exited(bytes.first().copied().unwrap_or_default().into()),
        stdout: bytes.to_vec(),
        stderr: bytes.to_vec(),
        channel: bytes.to_vec(),
        files: files
            .map(|name| (name.to_owned(), Left::File(bytes.to_vec())))
            .into(),
        hits: Vec::new(),
    }
}

/// One sealed file with this text and the name that the framework looks for.
fn suite(framework: Framework, text: &[u8]) -> Suite {
    let (path, id) = match framework {
        Framework::Pytest => ("tests/test_a.py", "tests/test_a.py::test_a"),
        Framework::Unittest => ("tests/test_a.py", "tests.test_a.A.test_a"),
        Framework::Cargo => ("tests/a.rs", "a::a"),
        Framework::Go => ("a_test.go", "a_test.go::TestA"),
        Framework::Node | Framework::Mocha => ("tests/a.test.js", "tests/a.test.js > a"),
        Framework::Jest | Framework::Vitest => ("tests/a.test.ts", "tests/a.test.ts > a"),
        Framework::Ctest => ("tests/CMakeLists.txt", "a"),
        Framework::Tap => ("tests/a.t", "tests/a.t > a"),
        Framework::Junit => ("tests/a.sh", "a.a"),
        Framework::Exec => ("tests/a.sh", "tests/a.sh"),
        Framework::External => ("tests/a.toml", "tests/a.toml::a"),
    };
    let folder = |name: &str| PathBuf::from("/").join(name);
    Suite {
        plan: Plan::new(framework),
        tools: Tools::default(),
        layout: Layout {
            src: folder("src"),
            runners: folder("run"),
            scratch: folder("tmp"),
            prepared: folder("prepared"),
        },
        files: vec![SealedFile {
            path: path.into(),
            executable: true,
            text: Secret::new(text.to_vec()),
        }],
        project: Project::default(),
        added: Added::default(),
        known: TestId::new(id).into_iter().collect(),
    }
}
