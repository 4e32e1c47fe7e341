//! Repositories with many tasks of eight signed events each.
//!
//! The events are made and signed by the library's own types, and reach the repository as one
//! `git fast-import` stream: `Store::change_task` reads the task anew and syncs every object and the
//! ref to disk, which is right for one command and too slow for 80,000.

use crate::{git, policy};
use hangar::base::clock::Clock;
use hangar::git::{Error, Repository};
use hangar::model::codec;
use hangar::model::digest::Digest;
use hangar::model::event::{Change, Criterion, Event};
use hangar::model::ids::{CriterionId, TaskId};
use hangar::model::object_id::ObjectId;
use hangar::model::policy::{MachineRole, Role};
use hangar::model::task::{Flow, Mode};
use hangar::store::Store;
use hangar::store::draft::Draft;
use hangar::store::identity::Identity;
use hangar::store::layout::Layout;
use hangar::trust::{self, MachineKey, Namespace};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Events of every task.
pub(crate) const EVENTS: usize = 8;

/// How objects and refs lie on the disk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lying {
    /// As `git gc` leaves them.
    Packed,
    /// As hangar writes them.
    Loose,
}

impl Lying {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Packed => "packed",
            Self::Loose => "loose",
        }
    }
}

/// A repository with a policy and tasks.
pub(crate) struct Scene {
    dir: TempDir,
    /// The repository.
    pub(crate) repo: PathBuf,
    /// Alice, who may do everything.
    pub(crate) person: MachineKey,
    /// Every task.
    pub(crate) tasks: Vec<TaskId>,
    /// One event with its signature.
    pub(crate) sample: (Vec<u8>, Vec<u8>),
}

/// The change that makes a task.
pub(crate) fn create(title: &str, base: Result<Option<ObjectId>, Error>) -> Change {
    keyed(title, "", base)
}

/// The same for a task with an external key.
pub(crate) fn keyed(title: &str, key: &str, base: Result<Option<ObjectId>, Error>) -> Change {
    Change::Create {
        title: title.to_owned(),
        mandate: "Subtraction is missing. It belongs beside addition.".to_owned(),
        criteria: vec![Criterion {
            id: CriterionId::at(0),
            text: "subtract(5, 3) is 2".to_owned(),
        }],
        flow: Flow::TestFirst,
        mode: Mode::Implement,
        priority: 5,
        base: base.expect("HEAD is read").expect("there is a commit"),
        base_branch: "main".to_owned(),
        external: key.to_owned(),
        tags: Vec::new(),
        requester: "alice".parse().expect("it is a name"),
    }
}

/// The time of every document.
pub(crate) fn clock() -> Clock {
    Clock::Fixed("2026-01-02T03:04:05Z".parse().expect("it is a time"))
}

impl Scene {
    /// Makes one with `count` live tasks.
    pub(crate) fn new(count: usize, lying: Lying) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let repo = dir.path().join("repo");
        fs::create_dir(&repo).expect("a folder");
        git::import(
            &repo,
            b"commit refs/heads/main\ncommitter t <t@example.com> 1700000000 +0000\ndata 2\nc\n\n",
        );
        let key = |name: &str| {
            let dir = dir.path().join(name);
            MachineKey::load_or_create(&dir, trust::MachineRole::Worker).expect("a key")
        };
        let (person, worker) = (key("alice"), key("worker"));
        found(&repo, &person, &worker);
        let mut scene = Self {
            dir,
            repo,
            person,
            tasks: Vec::with_capacity(count),
            sample: (Vec::new(), Vec::new()),
        };
        scene.fill(count, &worker);
        scene.settle(lying);
        scene.check(count);
        scene
    }

    /// The repository, opened anew.
    pub(crate) fn store(&self) -> Store {
        let repo = Repository::discover(&self.repo).expect("it is a repository");
        Store::open(repo, clock()).expect("it has a policy")
    }

    /// A path beside the repository.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn fill(&mut self, count: usize, worker: &MachineKey) {
        let store = self.store();
        let alice = Identity::of(&store.policy, self.person.signer()).expect("she is known");
        let worker = Identity::of(&store.policy, worker.signer()).expect("it is known");
        let mut stream = Vec::new();
        for index in 0..count {
            let mut line = Line::new(&store, &mut stream, index, None);
            let title = format!("Task {index}");
            line.add(&alice, create(&title, store.repo.head()));
            line.add(&alice, Change::Enqueue);
            let lease = || format!("{index:032x}");
            line.add(&worker, Change::Claim { lease: lease() });
            for text in ["first", "second", "third"] {
                line.add(&worker, Change::Renew { lease: lease() });
                if text != "first" {
                    let text = format!("The {text} remark on this task, one line long.");
                    line.add(&alice, Change::Comment { text });
                }
            }
            self.sample = line.last;
            self.tasks.extend(line.task);
        }
        git::import(&self.repo, &stream);
    }

    fn settle(&self, lying: Lying) {
        match lying {
            Lying::Packed => {
                git::run(&self.repo, &["repack", "-a", "-d", "-q"]);
                git::run(&self.repo, &["pack-refs", "--all"]);
            }
            Lying::Loose => {
                let packs = self.repo.join(".git/objects/pack");
                let aside = self.path("packs");
                fs::rename(&packs, &aside).expect("it is moved");
                for entry in fs::read_dir(&aside).expect("it is read").flatten() {
                    if entry.path().extension().is_some_and(|end| end == "pack") {
                        let pack = fs::File::open(entry.path()).expect("it is read");
                        let mut command = git::command(&self.repo, &["unpack-objects", "-q"]);
                        crate::anchor::run(command.stdin(pack));
                    }
                }
            }
        }
    }

    /// A figure over documents that are not believed would mean nothing.
    fn check(&self, count: usize) {
        let store = self.store();
        assert_eq!(store.task_refs().expect("refs are listed").len(), count);
        for id in self.tasks.iter().step_by(count.div_ceil(20)) {
            let history = store.task(id).expect("it is read");
            assert_eq!(history.records.len(), EVENTS);
            assert!(history.faults.is_empty(), "{:?}", history.faults);
            for record in history.records {
                assert!(record.refused.iter().all(Option::is_none), "{record:?}");
            }
        }
    }
}

/// Where a task is imported that gets no ref of its own.
pub(crate) const SCRATCH: &str = "refs/scratch";

/// The events of one task, each knowing the one before.
pub(crate) struct Line<'a> {
    store: &'a Store,
    /// Where the task gets no ref of its own, the mark of its last commit.
    scratch: Option<usize>,
    stream: &'a mut Vec<u8>,
    index: usize,
    pub(crate) task: Option<TaskId>,
    seen: Vec<Digest>,
    last: (Vec<u8>, Vec<u8>),
}

impl<'a> Line<'a> {
    pub(crate) fn new(
        store: &'a Store,
        stream: &'a mut Vec<u8>,
        index: usize,
        scratch: Option<usize>,
    ) -> Self {
        Self {
            store,
            scratch,
            stream,
            index,
            task: None,
            seen: Vec::new(),
            last: (Vec::new(), Vec::new()),
        }
    }

    pub(crate) fn add(&mut self, by: &Identity<'_>, change: Change) {
        let event = Event {
            format: codec::FORMAT,
            repo: self.store.policy.repo(),
            task: self.task.clone(),
            nonce: format!("{:032x}", self.index),
            parents: std::mem::take(&mut self.seen),
            signer: by.table(clock().now()),
            change: vec![change],
        };
        let bytes = codec::encode(&event).expect("it is a document");
        self.seen = vec![Digest::of(&bytes)];
        let task = self.task.get_or_insert_with(|| TaskId::of_creation(&bytes));
        let signature = by.sign(Namespace::Event, &bytes).expect("it is signed");
        let mut reference = self.store.layout.task(task);
        let mut mark = String::new();
        if let Some(number) = self.scratch {
            SCRATCH.clone_into(&mut reference);
            // A later commit takes the mark over.
            mark = format!("mark :{number}\n");
            if event.task.is_none() {
                let _ = writeln!(self.stream, "reset {SCRATCH}\n");
            }
        }
        let head = format!(
            "commit {reference}\n{mark}committer alice <alice@hangar.invalid> 1700000000 +0000\ndata 2\nc\n"
        );
        self.stream.extend_from_slice(head.as_bytes());
        for (name, bytes) in [("event.toml", &bytes), ("event.sig", &signature)] {
            // Writing to a Vec cannot fail.
            let _ = writeln!(self.stream, "M 100644 inline {name}\ndata {}", bytes.len());
            self.stream.extend_from_slice(bytes);
            self.stream.push(b'\n');
        }
        self.last = (bytes, signature);
    }
}

fn found(repo: &Path, person: &MachineKey, worker: &MachineKey) {
    let alice = person.public().as_str();
    let root = policy::root(&[("alice", alice)]);
    let members = policy::members(
        vec![policy::person("alice", Role::Admin, alice)],
        vec![policy::machine(
            "worker",
            MachineRole::Worker,
            worker.public().as_str(),
        )],
    );
    let repo = Repository::discover(repo).expect("it is a repository");
    let layout = Layout::of(&repo).expect("it has refs");
    let draft = Draft::founding(&root, members, person.signer()).expect("it is signed");
    let published = draft.publish(&repo, &layout, None, "alice", clock());
    published.expect("it is published");
}
