//! `docs/format.md` against the code: what a change needs and does, and what a framework reaches and
//! protects. The second verifier reads these tables.

use crate::docs::{page, sections};
use hangar::grade::adapter::{ALL, adapter};
use hangar::model::digest::Digest;
use hangar::model::event::{Change, Criterion};
use hangar::model::ids::{CriterionId, Fingerprint, Principal, TaskId};
use hangar::model::object_id::ObjectId;
use hangar::model::task::{Author, Flow, Mode, Stage, State, Task};
use std::collections::{BTreeMap, BTreeSet};

const LEASE: &str = "0123456789abcdef0123456789abcdef";

const STATES: [State; 8] = [
    State::Draft,
    State::Queued,
    State::Assigned,
    State::Working,
    State::Done,
    State::Failed,
    State::Rejected,
    State::Deleted,
];

fn some() -> Digest {
    Digest::of(b"some")
}

fn base() -> ObjectId {
    ObjectId::from_bytes(&[1; 20]).unwrap()
}

fn key(letter: &str) -> Fingerprint {
    format!("SHA256:{}", letter.repeat(43)).parse().unwrap()
}

/// Applies a change as signed by this key.
fn apply(task: &mut Task, change: &Change, key: &Fingerprint) -> bool {
    let principal: Principal = "somebody".parse().unwrap();
    let author = Author {
        principal: &principal,
        key,
        at: "2026-01-02T03:04:05Z",
        event: some(),
    };
    task.apply(change, author).is_ok()
}

/// One change of each kind but `create`, as its holder would make it.
fn samples() -> Vec<Change> {
    let lease = || LEASE.to_owned();
    vec![
        edit(),
        Change::Enqueue,
        Change::Claim { lease: lease() },
        Change::Renew { lease: lease() },
        Change::Release { lease: lease() },
        stage(),
        Change::Consume {
            manifest: some(),
            approvals: vec![some()],
        },
        Change::ApprovePatch { patch: some() },
        deliver(),
        fail(),
        Change::Reject {
            summary: String::new(),
        },
        Change::Cancel {
            reason: String::new(),
        },
        Change::Retry {
            from: Stage::Writing,
            set_aside: vec![some()],
        },
        Change::Comment {
            text: String::new(),
        },
        Change::Adjudicate {
            stands: Digest::of(b"another"),
            falls: vec![some()],
            reason: String::new(),
        },
        Change::Publish {
            manifest: some(),
            commit: base(),
        },
        Change::Delete,
    ]
}

fn edit() -> Change {
    Change::Edit {
        title: None,
        mandate: None,
        criteria: None,
        priority: None,
        tags: None,
        base: None,
    }
}

fn stage() -> Change {
    Change::Stage {
        stage: Stage::Writing,
        documents: Vec::new(),
        note: String::new(),
    }
}

fn fail() -> Change {
    Change::Fail {
        summary: String::new(),
    }
}

fn deliver() -> Change {
    Change::Deliver {
        branch: "refs/heads/x".into(),
        commit: base(),
        run: some(),
        grade: Some(some()),
        manifest: Some(some()),
    }
}

/// A test-first task that came into this state.
fn task_in(state: State) -> Task {
    let create = Change::Create {
        title: "A task".into(),
        mandate: String::new(),
        criteria: vec![Criterion {
            id: CriterionId::at(0),
            text: "x".into(),
        }],
        flow: Flow::TestFirst,
        mode: Mode::Implement,
        priority: 5,
        base: base(),
        base_branch: String::new(),
        external: String::new(),
        tags: Vec::new(),
        requester: "somebody".parse().unwrap(),
    };
    let (principal, holder) = ("somebody".parse().unwrap(), key("A"));
    let author = Author {
        principal: &principal,
        key: &holder,
        at: "",
        event: some(),
    };
    let mut task = Task::create(TaskId::of_creation(b"x"), &create, author).unwrap();
    let claim = Change::Claim {
        lease: LEASE.into(),
    };
    let reject = Change::Reject {
        summary: String::new(),
    };
    let way = match state {
        State::Draft => vec![],
        State::Deleted => vec![Change::Delete],
        State::Queued => vec![Change::Enqueue],
        State::Assigned => vec![Change::Enqueue, claim],
        State::Working => vec![Change::Enqueue, claim, stage()],
        State::Done => vec![Change::Enqueue, claim, stage(), deliver()],
        State::Failed => vec![Change::Enqueue, claim, stage(), fail()],
        State::Rejected => vec![Change::Enqueue, claim, stage(), reject],
    };
    for change in way {
        assert!(apply(&mut task, &change, &holder), "{change:?}");
    }
    assert_eq!(task.state, state);
    task
}

/// The words in backticks.
fn words(cell: &str) -> BTreeSet<String> {
    let parts = cell.split('`').skip(1).step_by(2);
    parts.map(str::to_owned).collect()
}

/// Rows of a table of the page: first cell → the others.
fn rows(heading: &str) -> BTreeMap<String, Vec<String>> {
    let section = &sections(&page("docs/format.md"))[heading];
    let mut out = BTreeMap::new();
    for (name, row) in &section.rows {
        let cells = row.split('|').skip(2).map(|cell| cell.trim().to_owned());
        out.insert(name.clone(), cells.collect());
    }
    out
}

fn states_of(change: &Change) -> BTreeSet<String> {
    let open = |state: &State| apply(&mut task_in(*state), change, &key("A"));
    let states = STATES.into_iter().filter(open);
    states.map(|state| state.to_string()).collect()
}

#[test]
fn what_a_change_needs_and_does_is_as_the_page_says() {
    let table = rows("Effect of a change");
    for change in samples() {
        let name = change.name();
        let [right, states, only_if, then] = &table[name][..4] else {
            panic!("{name}");
        };
        assert_eq!(*right, change.act().to_string(), "{name}");
        assert_eq!(words(states), states_of(&change), "{name}");
        let ends = then
            .split_once("it is `")
            .and_then(|(_, rest)| rest.split('`').next());
        for state in STATES {
            let mut task = task_in(state);
            let held = task.claim.is_some();
            if held {
                let other = apply(&mut task.clone(), &change, &key("B"));
                let needs_holder = only_if.contains("the holder signs");
                let open = words(states).contains(state.as_str());
                assert_eq!(other, open && !needs_holder, "{name}, {state}");
            }
            if !apply(&mut task, &change, &key("A")) {
                continue;
            }
            match (ends, name, state) {
                (Some(ends), _, _) => assert_eq!(task.state.as_str(), ends, "{name}"),
                (None, "claim", State::Queued) => assert_eq!(task.state, State::Assigned),
                (None, _, _) => assert_eq!(task.state, state, "{name}"),
            }
            let takes = name == "claim";
            let ended = then.contains("the claim ends");
            assert_eq!(task.claim.is_some(), takes || (held && !ended), "{name}");
            let aside = then.contains("set aside");
            assert_eq!(task.set_aside.contains(&some()), aside, "{name}");
        }
    }
    let named: BTreeSet<_> = samples().iter().map(Change::name).collect();
    for name in table.keys() {
        let is_field = ["priority", "tags", "base"].contains(&name.as_str()) || name.contains('`');
        assert!(
            is_field || name == "create" || named.contains(name.as_str()),
            "{name}"
        );
    }
}

#[test]
fn what_may_be_edited_when_is_as_the_page_says() {
    let table = rows("Effect of a change");
    let with = |field: &str| {
        let mut change = edit();
        if let Change::Edit {
            priority,
            tags,
            base: other,
            ..
        } = &mut change
        {
            match field {
                "priority" => *priority = Some(1),
                "tags" => *tags = Some(Vec::new()),
                _ => *other = Some(base()),
            }
        }
        change
    };
    for field in ["priority", "tags", "base"] {
        assert_eq!(words(&table[field][0]), states_of(&with(field)), "{field}");
    }
    let mut text = edit();
    if let Change::Edit { title, .. } = &mut text {
        *title = Some("Another".into());
    }
    // Working, but held: the page says that nobody may hold it.
    assert_eq!(states_of(&text), ["draft".to_owned()].into());
    let mut working = task_in(State::Working);
    working.claim = None;
    assert!(apply(&mut working.clone(), &text, &key("A")));
    working.consumed = Some((some(), vec![some()]));
    assert!(!apply(&mut working, &text, &key("A")));
}

#[test]
fn verdicts_and_protected_paths_of_frameworks_are_as_the_page_says() {
    let table = rows("Test ids");
    assert_eq!(table.len(), ALL.len());
    for framework in ALL {
        let own = adapter(framework);
        let row = &table[&framework.to_string()];
        assert_eq!(row[1], format!("`{}`", own.ceiling()), "{framework}");
        let protected = own.protected().iter().map(|glob| (*glob).to_owned());
        assert_eq!(words(&row[2]), protected.collect(), "{framework}");
    }
}
