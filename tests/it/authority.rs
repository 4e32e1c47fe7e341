//! The table of who may sign what, against every kind of document and of change: what is not in it is
//! refused when it is read, whoever signed it.

use super::common::founded::{clock, create};
use super::common::git::{commit_all, git};
use super::common::policy;
use super::verify::forge::Forged;
use hangar::git::Repository;
use hangar::model::authority::{ACTS, Act, may};
use hangar::model::codec;
use hangar::model::digest::Digest;
use hangar::model::event::{Change, Event};
use hangar::model::ids::TaskId;
use hangar::model::manifest::Reseal;
use hangar::model::policy::{MachineRole, Role};
use hangar::model::run::Kind;
use hangar::model::task::Stage;
use hangar::store::chain::{self, Content, Note};
use hangar::store::check::Document;
use hangar::store::draft::Draft;
use hangar::store::identity::Identity;
use hangar::store::layout::Layout;
use hangar::store::{Error, Store};
use hangar::trust::{self, MachineKey, Namespace};
use std::collections::BTreeSet;
use tempfile::TempDir;

/// Who there is, in the order of the columns below. The requester is a member by role.
const WHO: [&str; 7] = [
    "requester",
    "member",
    "approver",
    "admin",
    "worker",
    "grader",
    "agent",
];

/// The column of a role; a new role does not compile here until it has one.
const fn of_person(role: Role) -> usize {
    match role {
        Role::Member => 1,
        Role::Approver => 2,
        Role::Admin => 3,
    }
}

/// The column of a machine.
const fn of_machine(role: MachineRole) -> usize {
    match role {
        MachineRole::Worker => 4,
        MachineRole::Grader => 5,
        MachineRole::Agent => 6,
    }
}

/// Who may make a change: one mark for each of [`WHO`]. A new kind of change does not compile here
/// until somebody has decided.
const fn of_change(change: &Change) -> &'static str {
    match change {
        Change::Create { .. } | Change::Enqueue => "xxxx---",
        Change::Edit { .. } | Change::Cancel { .. } | Change::Retry { .. } | Change::Delete => {
            "x-xx---"
        }
        Change::Comment { .. } => "xxxxx-x",
        Change::Claim { .. }
        | Change::Renew { .. }
        | Change::Release { .. }
        | Change::Stage { .. }
        | Change::Consume { .. }
        | Change::Deliver { .. }
        | Change::Fail { .. }
        | Change::Reject { .. } => "----x--",
        Change::ApprovePatch { .. } | Change::Adjudicate { .. } | Change::Publish { .. } => {
            "--xx---"
        }
    }
}

/// The same for each use of a signature; `None` where it is decided otherwise.
const fn of_namespace(namespace: Namespace, kind: Kind) -> Option<&'static str> {
    match namespace {
        // Change by change; and by thresholds of root keys and admins.
        Namespace::Event | Namespace::Root | Namespace::Members => None,
        Namespace::Seal | Namespace::Grade => Some("-----x-"),
        Namespace::Reseal => Some("--xx-x-"),
        Namespace::Approval => Some("x-xx---"),
        Namespace::Run => Some(match kind {
            Kind::Agent => "----x--",
            Kind::Submitted => "xxxx---",
        }),
    }
}

/// One change of every kind.
fn changes(store: &Store) -> Vec<Change> {
    let lease = || "00".repeat(16);
    let digest = Digest::of(b"x");
    let commit = store.repo.head().unwrap().unwrap();
    vec![
        create(store, "", "Another", &["it works"]),
        Change::Comment { text: "x".into() },
        Change::Edit {
            title: Some("Other".into()),
            mandate: None,
            criteria: None,
            priority: None,
            tags: None,
            base: None,
        },
        Change::Enqueue,
        Change::Claim { lease: lease() },
        Change::Renew { lease: lease() },
        Change::Release { lease: lease() },
        Change::Stage {
            stage: Stage::Writing,
            documents: Vec::new(),
            note: String::new(),
        },
        Change::Consume {
            manifest: digest,
            approvals: vec![digest],
        },
        Change::ApprovePatch { patch: digest },
        Change::Deliver {
            branch: "refs/heads/x".into(),
            commit,
            run: digest,
            grade: None,
            manifest: None,
        },
        Change::Fail {
            summary: "x".into(),
        },
        Change::Reject {
            summary: "x".into(),
        },
        Change::Cancel {
            reason: String::new(),
        },
        Change::Retry {
            from: Stage::Writing,
            set_aside: Vec::new(),
        },
        Change::Adjudicate {
            stands: digest,
            falls: vec![Digest::of(b"y")],
            reason: "x".into(),
        },
        Change::Publish {
            manifest: digest,
            commit,
        },
        Change::Delete,
    ]
}

/// A repository whose policy has one of everybody.
struct Table {
    dir: TempDir,
    keys: Vec<MachineKey>,
}

impl Table {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        git(dir.path(), &["init", "-q", "-b", "main", "repo"]);
        let path = dir.path().join("repo");
        commit_all(&path, "base");
        let key = |name: &&str| {
            let dir = dir.path().join(name);
            MachineKey::load_or_create(&dir, trust::MachineRole::Worker).unwrap()
        };
        let keys: Vec<_> = WHO.iter().map(key).collect();
        let text = |at: usize| keys[at].public().as_str();
        let person = |role| {
            let at = of_person(role);
            policy::person(WHO[at], role, text(at))
        };
        let machine = |role| {
            let at = of_machine(role);
            let mut machine = policy::machine(WHO[at], role, text(at));
            // The requester's own machines have no more rights than any other.
            machine.owner = WHO[0].parse().unwrap();
            machine
        };
        let people = vec![
            policy::person(WHO[0], Role::Member, text(0)),
            person(Role::Member),
            person(Role::Approver),
            person(Role::Admin),
        ];
        let machines = vec![
            machine(MachineRole::Worker),
            machine(MachineRole::Grader),
            machine(MachineRole::Agent),
        ];
        let root = policy::root(&[(WHO[3], text(3))]);
        let members = policy::members(people, machines);
        let draft = Draft::founding(&root, members, keys[3].signer()).unwrap();
        let repo = Repository::discover(&path).unwrap();
        let layout = Layout::of(&repo).unwrap();
        draft
            .publish(&repo, &layout, None, WHO[3], clock())
            .unwrap();
        Self { dir, keys }
    }

    fn store(&self) -> Store {
        let repo = Repository::discover(&self.dir.path().join("repo")).unwrap();
        Store::open(repo, clock()).unwrap()
    }

    fn requester(mut change: Change) -> Change {
        if let Change::Create { requester, .. } = &mut change {
            *requester = WHO[0].parse().unwrap();
        }
        change
    }

    /// Signs an event without asking any rule, and puts it on its ref.
    fn force(&self, store: &Store, task: Option<&TaskId>, who: usize, change: Change) -> Vec<u8> {
        let by = Identity::of(&store.policy, self.keys[who].signer()).unwrap();
        let parents = task.map_or_else(Vec::new, |id| {
            let heads = chain::read(&store.repo, head(store, id)).unwrap();
            let last = heads.last().unwrap();
            let (bytes, _) = last.document(&store.repo, "event").unwrap().unwrap();
            vec![Digest::of(&bytes)]
        });
        let event = Event {
            format: codec::FORMAT,
            repo: store.policy.repo(),
            task: task.cloned(),
            nonce: format!("{who:032x}"),
            parents,
            signer: by.table(clock().now()),
            change: vec![change],
        };
        let bytes = codec::encode(&event).unwrap();
        let id = task.map_or_else(|| TaskId::of_creation(&bytes), Clone::clone);
        let files = [
            ("event.toml".to_owned(), Content::File(bytes.clone())),
            (
                "event.sig".to_owned(),
                Content::File(by.sign(Namespace::Event, &bytes).unwrap()),
            ),
        ];
        let note = Note {
            author: WHO[who],
            seconds: 0,
            message: "forced",
        };
        let tip = store.repo.read_ref(&store.layout.task(&id)).unwrap();
        chain::append(&store.repo, &store.layout.task(&id), tip, &files, &note).unwrap();
        bytes
    }
}

fn head(store: &Store, id: &TaskId) -> hangar::model::object_id::ObjectId {
    store
        .repo
        .read_ref(&store.layout.task(id))
        .unwrap()
        .unwrap()
}

/// Constants of a schema below `value`.
fn constants(value: &serde_json::Value, under: &str, out: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(map) => {
            for (key, value) in map {
                if let (true, Some(word)) = (key == under, value["const"].as_str()) {
                    out.insert(word.to_owned());
                }
                constants(value, under, out);
            }
        }
        serde_json::Value::Array(list) => list.iter().for_each(|one| constants(one, under, out)),
        _ => {}
    }
}

#[test]
fn every_kind_of_change_is_in_the_table_once() {
    let table = Table::new();
    let changes = changes(&table.store());
    let names: Vec<_> = changes.iter().map(Change::name).collect();
    let schema = serde_json::to_value(schemars::schema_for!(Change)).unwrap();
    let mut kinds = BTreeSet::new();
    constants(&schema, "kind", &mut kinds);
    let own: BTreeSet<_> = names.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(own, kinds);
    assert_eq!(own.len(), names.len());
    // The table that people read has a row for every right that a change or a document needs.
    let mut acts: BTreeSet<Act> = changes.iter().map(Change::act).collect();
    acts.extend([
        Act::Seal,
        Act::Reseal,
        Act::Decide,
        Act::RecordRun,
        Act::Submit,
        Act::Grade,
    ]);
    let rows: BTreeSet<Act> = ACTS.into_iter().collect();
    assert_eq!((rows.len(), rows), (ACTS.len(), acts));
}

#[test]
fn every_change_by_everybody_has_the_effect_that_the_table_says() {
    let table = Table::new();
    let store = table.store();
    let changes = changes(&store);
    for change in changes {
        let change = Table::requester(change);
        let marks: Vec<bool> = of_change(&change).chars().map(|mark| mark == 'x').collect();
        if matches!(change, Change::Create { .. }) {
            for (who, may) in marks.into_iter().enumerate() {
                let bytes = table.force(&store, None, who, change.clone());
                let read = store.task(&TaskId::of_creation(&bytes));
                assert_eq!(read.is_ok(), may, "created by {}", WHO[who]);
            }
            continue;
        }
        let first = Table::requester(create(&store, "", change.name(), &["it works"]));
        let id = TaskId::of_creation(&table.force(&store, None, 0, first));
        for who in 0..WHO.len() {
            table.force(&store, Some(&id), who, change.clone());
        }
        let history = store.task(&id).unwrap();
        assert_eq!(history.records.len(), 1 + WHO.len());
        // The right is asked for before anything else, so the task's state hides nothing.
        for (record, (who, may)) in history.records[1..].iter().zip(marks.iter().enumerate()) {
            let what = format!("{} by {}", change.name(), WHO[who]);
            let refused = record.refused[0].as_deref();
            let no_right = refused.is_some_and(|why| why.contains("had no right to"));
            assert_eq!(no_right, !may, "{what}: {refused:?}");
            if no_right {
                let by = Identity::of(&store.policy, table.keys[who].signer()).unwrap();
                let signed = store.change_task(&id, &by, |_| Ok(vec![change.clone()]));
                assert!(matches!(signed, Err(Error::NotAllowed { .. })), "{what}");
            }
        }
    }
}

#[test]
fn every_document_by_everybody_is_believed_as_the_table_says() {
    let forged = Forged::honest();
    let dossier = forged.dossier();
    let table = Table::new();
    let store = table.store();
    let manifest = dossier.seals[0].value();
    let reseal = Reseal {
        format: codec::FORMAT,
        repo: manifest.repo,
        task: manifest.task.clone(),
        manifest: dossier.seals[0].digest(),
        ciphertext: manifest.ciphertext,
        recipients: manifest.recipients.clone(),
        signer: manifest.signer.clone(),
    };
    let run = |kind| {
        let mut run = dossier.runs[0].value().clone();
        run.kind = kind;
        run
    };
    let (agent, own) = (run(Kind::Agent), run(Kind::Submitted));
    fn needs<T: Document>(document: &T) -> (Namespace, Option<Act>) {
        (T::NAMESPACE, document.act())
    }
    let documents = [
        (needs(manifest), Kind::Agent),
        (needs(&reseal), Kind::Agent),
        (needs(dossier.decisions[0].value()), Kind::Agent),
        (needs(&agent), Kind::Agent),
        (needs(&own), Kind::Submitted),
        (needs(dossier.grades[0].value()), Kind::Agent),
    ];
    let mut seen = BTreeSet::new();
    for ((namespace, act), kind) in documents {
        let marks = of_namespace(namespace, kind).unwrap();
        let act = act.unwrap();
        seen.insert(namespace.to_string());
        for (who, mark) in marks.chars().enumerate() {
            let by = Identity::of(&store.policy, table.keys[who].signer()).unwrap();
            let allowed = may(&by.actor, act, &WHO[0].parse().unwrap());
            assert_eq!(allowed, mark == 'x', "{namespace} by {}", WHO[who]);
        }
    }
    // Every use of a signature that a right decides about was looked at.
    let all = Namespace::ALL.into_iter();
    let decided = all.filter(|one| of_namespace(*one, Kind::Agent).is_some());
    let decided: BTreeSet<_> = decided.map(|one| one.to_string()).collect();
    assert_eq!(seen, decided);
}
