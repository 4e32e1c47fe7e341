//! Random histories: what clones that work apart may write, and what nobody honest would.

use crate::model::authority::may;
use crate::model::digest::Digest;
use crate::model::event::{Change, Criterion};
use crate::model::ids::{CriterionId, Fingerprint, Principal, TaskId};
use crate::model::object_id::ObjectId;
use crate::model::policy::{Actor, MachineRole, Role};
use crate::model::task::{
    Author, Claim, Flow, Folded, Mode, Node, Outcome, Stage, State, Task, fold,
};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Who signs: an approver who is the requester, two workers, a member, an agent.
pub(super) const WHO: [&str; 5] = ["alice", "w1", "w2", "bob", "agent"];

pub(super) fn name(who: usize) -> Principal {
    WHO[who].parse().unwrap()
}

pub(super) fn key(who: usize) -> Fingerprint {
    let bytes = [u8::try_from(who).unwrap(); 32];
    format!("SHA256:{}", data_encoding::BASE64_NOPAD.encode(&bytes))
        .parse()
        .unwrap()
}

pub(super) fn actor(who: usize) -> Actor {
    let machine = |role| Actor::Machine {
        name: name(who),
        role,
        owner: name(0),
    };
    let person = |role| Actor::Person {
        name: name(who),
        role,
    };
    match who {
        0 => person(Role::Approver),
        1 | 2 => machine(MachineRole::Worker),
        3 => person(Role::Member),
        _ => machine(MachineRole::Agent),
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Made {
    pub(super) digest: Digest,
    pub(super) parents: Vec<Digest>,
    pub(super) creates: bool,
    pub(super) who: usize,
    pub(super) changes: Vec<Change>,
}

pub(super) fn folded(events: &[Made]) -> Folded {
    let people: Vec<_> = (0..WHO.len()).map(|who| (name(who), key(who))).collect();
    let node = |made: &'_ Made| -> (usize, Digest) { (made.who, made.digest) };
    let authors: Vec<_> = events.iter().map(node).collect();
    let nodes: Vec<_> = events
        .iter()
        .zip(&authors)
        .map(|(made, (who, event))| Node {
            parents: &made.parents,
            creates: made.creates,
            author: Author {
                principal: &people[*who].0,
                key: &people[*who].1,
                at: "2026-01-01T00:00:00Z",
                event: *event,
            },
            changes: &made.changes,
        })
        .collect();
    let bar = |index: usize, change: &Change, requester: &Principal| {
        let allowed = may(&actor(events[index].who), change.act(), requester);
        (!allowed).then(|| "no right".to_owned())
    };
    let id = TaskId::of_creation(b"laws");
    fold(&id, &nodes, &bar, &mut |_, _, _| ())
}

/// Everything that a fold says, apart from the order in which events were given.
pub(super) type Said = (
    Option<Task>,
    Vec<Digest>,
    Vec<Digest>,
    BTreeMap<Digest, Outcome>,
);

pub(super) fn said(events: &[Made]) -> Said {
    let folded = folded(events);
    let order: Vec<_> = folded.order.iter().map(|at| events[*at].digest).collect();
    let outcomes = order.iter().copied().zip(folded.outcomes).collect();
    (folded.task, folded.heads, order, outcomes)
}

pub(super) fn task(events: &[Made]) -> Task {
    folded(events).task.expect("there is a creation event")
}

pub(super) fn creation(test_first: bool) -> Change {
    Change::Create {
        title: "t".into(),
        mandate: String::new(),
        criteria: vec![criterion(0)],
        flow: if test_first {
            Flow::TestFirst
        } else {
            Flow::Plain
        },
        mode: Mode::Implement,
        priority: 5,
        base: object(0),
        base_branch: String::new(),
        external: String::new(),
        tags: vec!["linux".into()],
        requester: name(0),
    }
}

pub(super) fn criterion(number: usize) -> Criterion {
    Criterion {
        id: CriterionId::at(number % 3),
        text: format!("criterion {number}"),
    }
}

pub(super) fn object(number: usize) -> ObjectId {
    format!("{number:040x}").parse().unwrap()
}

pub(super) fn document(number: usize) -> Digest {
    Digest::of(&number.to_be_bytes())
}

pub(super) fn edit(task: &Task, pick: usize) -> Change {
    let mut change = Change::Edit {
        title: None,
        mandate: None,
        criteria: None,
        priority: None,
        tags: None,
        base: None,
    };
    let Change::Edit {
        title,
        criteria,
        priority,
        tags,
        base,
        ..
    } = &mut change
    else {
        unreachable!()
    };
    match pick % 6 {
        0 => *title = Some(format!("title {}", pick / 6 % 3)),
        1 => *priority = Some(u8::try_from(pick / 6 % 9 + 1).unwrap()),
        2 => *base = Some(object(pick / 6 % 3)),
        3 => *tags = Some((0..pick / 6 % 4).map(|tag| format!("tag{tag}")).collect()),
        4 => {
            let mut all = task.criteria.clone();
            let id = (0..).map(CriterionId::at);
            let free = |id: &CriterionId| !all.iter().any(|one| one.id == *id);
            let id = id.clone().find(free).unwrap();
            all.push(Criterion {
                id,
                text: format!("added {}", pick / 6 % 5),
            });
            *criteria = Some(all);
        }
        _ => {
            let mut all = task.criteria.clone();
            if all.len() > 1 {
                all.remove(pick / 6 % all.len());
            }
            *criteria = Some(all);
        }
    }
    change
}

/// What somebody who sees the task may do, with what moves it on more often than what ends it.
pub(super) fn choices(task: &Task, who: usize, pick: usize) -> Vec<Change> {
    let lease = || format!("lease {who} {}", pick % 4);
    let held = || {
        task.claim
            .as_ref()
            .map_or_else(String::new, |one| one.lease.clone())
    };
    let summary = format!("by {}", WHO[who]);
    let (run, manifest) = (document(pick % 3), document(pick % 2 + 10));
    let deliver = Change::Deliver {
        branch: "refs/heads/x".into(),
        commit: object(pick % 5),
        run,
        grade: Some(document(7)),
        manifest: Some(manifest),
    };
    let stage = Change::Stage {
        stage: [Stage::Writing, Stage::Implementing, Stage::Verifying][pick % 3],
        documents: Vec::new(),
        note: String::new(),
    };
    let retry = Change::Retry {
        from: Stage::Writing,
        set_aside: vec![manifest],
    };
    let consume = Change::Consume {
        manifest,
        approvals: vec![document(20)],
    };
    let comment = Change::Comment {
        text: format!("remark {pick}"),
    };
    let all = match who {
        0 => vec![
            edit(task, pick),
            edit(task, pick / 7),
            Change::Enqueue,
            Change::Enqueue,
            Change::Enqueue,
            retry.clone(),
            retry,
            comment,
            Change::ApprovePatch { patch: run },
            Change::Adjudicate {
                stands: run,
                falls: vec![document(pick % 9)],
                reason: "r".into(),
            },
            Change::Publish {
                manifest,
                commit: object(1),
            },
            Change::Cancel { reason: summary },
            Change::Delete,
        ],
        1 | 2 => vec![
            Change::Claim { lease: lease() },
            Change::Claim { lease: lease() },
            Change::Renew { lease: held() },
            Change::Release { lease: held() },
            stage.clone(),
            stage,
            consume,
            deliver,
            Change::Fail {
                summary: summary.clone(),
            },
            Change::Reject { summary },
            comment,
        ],
        _ => vec![comment],
    };
    allowed(task, who, all)
}

fn allowed(task: &Task, who: usize, all: Vec<Change>) -> Vec<Change> {
    let (principal, key) = (name(who), key(who));
    let author = Author {
        principal: &principal,
        key: &key,
        at: "",
        event: document(0),
    };
    let allows = |change: &Change| task.allows(change, author).is_ok();
    all.into_iter().filter(allows).collect()
}

/// Three clones: each step either takes everything of another clone, or does one thing.
pub(super) fn honest() -> impl Strategy<Value = (Vec<Made>, Vec<Vec<Made>>)> {
    let steps = vec((0..3_usize, 0..4_usize, 0..3_usize, 0..10_000_usize), 1..45);
    (any::<bool>(), steps).prop_map(|(test_first, steps)| {
        let root = Made {
            digest: document(1000),
            parents: Vec::new(),
            creates: true,
            who: 0,
            changes: vec![creation(test_first)],
        };
        let mut clones = vec![vec![root]; 3];
        let mut states = Vec::new();
        for (number, (clone, act, who, pick)) in steps.into_iter().enumerate() {
            if act == 0 {
                let other = clones[(clone + 1 + pick % 2) % 3].clone();
                let new = other.into_iter().filter(|one| !clones[clone].contains(one));
                let new: Vec<_> = new.collect();
                clones[clone].extend(new);
                continue;
            }
            let known = folded(&clones[clone]);
            let choices = choices(&known.task.unwrap(), who, pick);
            if choices.is_empty() {
                continue;
            }
            clones[clone].push(Made {
                digest: document(2000 + number * 20_000 + pick),
                parents: known.heads,
                creates: false,
                who,
                changes: vec![choices[pick % choices.len()].clone()],
            });
            states.push(clones[clone].clone());
        }
        let mut all: Vec<Made> = Vec::new();
        for one in clones.into_iter().flatten() {
            if !all.contains(&one) {
                all.push(one);
            }
        }
        (all, states)
    })
}

/// Numbers of parents, whether it creates, who signs, and what they do as whom.
type Anything = (Vec<usize>, usize, usize, Vec<(usize, usize)>);

/// Anything: parents that are not there, several creation events, people without rights.
pub(super) fn hostile() -> impl Strategy<Value = Vec<Made>> {
    let event = (
        vec(0..30_usize, 0..4),
        0..20_usize,
        0..WHO.len(),
        vec((0..WHO.len(), 0..10_000_usize), 0..3),
    );
    (any::<bool>(), vec(event, 1..25)).prop_map(|(test_first, events)| {
        let digest = |number: usize| document(5000 + number);
        let draft = task(&[Made {
            digest: digest(0),
            parents: Vec::new(),
            creates: true,
            who: 0,
            changes: vec![creation(test_first)],
        }]);
        let made = |(number, event): (usize, Anything)| {
            let (parents, creates, who, picks) = event;
            let creates = creates == 0 || number == 0;
            let mut changes: Vec<_> = picks
                .iter()
                .map(|(whose, pick)| any_change(&draft, *whose, *pick))
                .collect();
            if creates {
                changes.insert(0, creation(test_first));
            }
            let before = |parent: &usize| {
                if *parent < 28 {
                    parent % number.max(1)
                } else {
                    *parent
                }
            };
            let mut parents: Vec<_> = parents
                .iter()
                .map(|parent| digest(before(parent)))
                .collect();
            if number == 0 {
                parents.clear();
            }
            Made {
                digest: digest(number),
                parents,
                creates,
                who,
                changes,
            }
        };
        events.into_iter().enumerate().map(made).collect()
    })
}

pub(super) fn any_change(draft: &Task, whose: usize, pick: usize) -> Change {
    let mut states = Vec::new();
    for state in [
        State::Draft,
        State::Queued,
        State::Working,
        State::Failed,
        State::Done,
    ] {
        let mut task = draft.clone();
        task.state = state;
        task.claim = Some(Claim {
            worker: name(whose),
            key: key(whose),
            lease: format!("lease {whose} {}", pick % 4),
            event: document(0),
        });
        states.extend(choices(&task, whose, pick));
    }
    states[pick % states.len()].clone()
}

/// The same history under other digests.
pub(super) fn renamed(events: &[Made], salt: usize) -> Vec<Made> {
    let new = |digest: &Digest| Digest::of(format!("{salt} {digest}").as_bytes());
    let renamed = |made: &Made| Made {
        digest: new(&made.digest),
        parents: made.parents.iter().map(new).collect(),
        ..made.clone()
    };
    events.iter().map(renamed).collect()
}

/// Whether `one` has seen `other`.
pub(super) fn has_seen(events: &[Made], one: &Made, other: &Made) -> bool {
    let mut open = one.parents.clone();
    let mut met = BTreeSet::new();
    while let Some(digest) = open.pop() {
        if digest == other.digest {
            return true;
        }
        if met.insert(digest) {
            let parent = events.iter().find(|made| made.digest == digest);
            open.extend(parent.into_iter().flat_map(|made| made.parents.clone()));
        }
    }
    false
}
