//! Two people who do not know of each other change one task: what comes of it, case by case.

use super::*;
use crate::model::ids::CriterionId;

const NAMES: [&str; 3] = ["alice", "bob", "worker"];

struct Event {
    digest: Digest,
    parents: Vec<Digest>,
    who: usize,
    changes: Vec<Change>,
}

/// A history in which every digest hangs on `salt`, so that the order of concurrent events differs
/// from one to the next.
struct History {
    salt: u8,
    events: Vec<Event>,
}

impl History {
    fn new(salt: u8, flow: Flow) -> Self {
        let mut history = Self {
            salt,
            events: Vec::new(),
        };
        let create = Change::Create {
            title: "first".into(),
            mandate: String::new(),
            criteria: vec![criterion(1, "one"), criterion(2, "two")],
            flow,
            mode: Mode::Implement,
            priority: 5,
            base: "0".repeat(40).parse().unwrap(),
            base_branch: String::new(),
            external: String::new(),
            tags: vec!["linux".into()],
            requester: NAMES[0].parse().unwrap(),
        };
        history.add(&[], 0, create);
        history
    }

    /// Adds an event of somebody who has seen these last; gives its number.
    fn add(&mut self, parents: &[usize], who: usize, change: Change) -> usize {
        let number = self.events.len();
        let digest = Digest::of(&[self.salt, u8::try_from(number).unwrap()]);
        self.events.push(Event {
            digest,
            parents: parents.iter().map(|at| self.events[*at].digest).collect(),
            who,
            changes: vec![change],
        });
        number
    }

    /// The task, and why each event had no effect.
    fn fold(&self) -> (Task, Vec<Option<String>>) {
        let people: Vec<(Principal, Fingerprint)> = NAMES
            .iter()
            .enumerate()
            .map(|(at, name)| {
                let bytes = [u8::try_from(at).unwrap(); 32];
                let key = data_encoding::BASE64_NOPAD.encode(&bytes);
                let key = format!("SHA256:{key}").parse().unwrap();
                (name.parse().unwrap(), key)
            })
            .collect();
        let node = |event: &'_ Event| -> (usize, Digest) { (event.who, event.digest) };
        let who: Vec<_> = self.events.iter().map(node).collect();
        let nodes: Vec<_> = self
            .events
            .iter()
            .zip(&who)
            .map(|(event, (who, digest))| Node {
                parents: &event.parents,
                creates: matches!(event.changes[0], Change::Create { .. }),
                author: Author {
                    principal: &people[*who].0,
                    key: &people[*who].1,
                    at: "2026-01-01T00:00:00Z",
                    event: *digest,
                },
                changes: &event.changes,
            })
            .collect();
        let id = TaskId::of_creation(b"apart");
        let folded = fold(&id, &nodes, &|_, _, _| None, &mut |_, _, _| ());
        let mut refused = vec![None; self.events.len()];
        for (at, outcome) in folded.order.iter().zip(folded.outcomes) {
            refused[*at] = outcome.refused[0].clone();
        }
        (folded.task.unwrap(), refused)
    }
}

fn criterion(number: usize, text: &str) -> Criterion {
    Criterion {
        id: CriterionId::at(number - 1),
        text: text.into(),
    }
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

fn title(text: &str) -> Change {
    let mut change = edit();
    if let Change::Edit { title, .. } = &mut change {
        *title = Some(text.into());
    }
    change
}

fn criteria(list: &[(usize, &str)]) -> Change {
    let mut change = edit();
    if let Change::Edit { criteria, .. } = &mut change {
        let new = list.iter().map(|(number, text)| criterion(*number, text));
        *criteria = Some(new.collect());
    }
    change
}

fn cancel() -> Change {
    Change::Cancel {
        reason: String::new(),
    }
}

fn claim(lease: &str) -> Change {
    Change::Claim {
        lease: lease.into(),
    }
}

fn fail() -> Change {
    Change::Fail {
        summary: "no".into(),
    }
}

fn retry() -> Change {
    Change::Retry {
        from: Stage::Writing,
        set_aside: Vec::new(),
    }
}

fn adjudicate(stands: Digest, falls: Digest) -> Change {
    adjudicate_all(stands, &[falls])
}

fn adjudicate_all(stands: Digest, falls: &[Digest]) -> Change {
    Change::Adjudicate {
        stands,
        falls: falls.to_vec(),
        reason: "read".into(),
    }
}

fn deliver() -> Change {
    let document = Digest::of(b"document");
    Change::Deliver {
        branch: "refs/heads/x".into(),
        commit: "1".repeat(40).parse().unwrap(),
        run: document,
        grade: Some(document),
        manifest: Some(document),
    }
}

/// In every order of what is concurrent.
fn always(flow: Flow, check: impl Fn(History)) {
    for salt in 0..32 {
        check(History::new(salt, flow));
    }
}

#[test]
fn what_was_done_beside_a_delivery_is_shown_and_not_applied() {
    for stop in [cancel(), Change::Delete, title("too late")] {
        always(Flow::TestFirst, |mut history| {
            let stopped = history.add(&[0], 0, stop.clone());
            let queued = history.add(&[0], 1, Change::Enqueue);
            let claimed = history.add(&[queued], 2, claim("l"));
            let delivered = history.add(&[claimed], 2, deliver());
            let (task, refused) = history.fold();
            assert_eq!((task.state, task.title.as_str()), (State::Done, "first"));
            assert!(task.delivery.is_some() && refused[delivered].is_none());
            let why = refused[stopped].as_deref().unwrap();
            assert!(
                why.starts_with("the delivery by worker was recorded at the same time and stands"),
                "{why}"
            );
        });
    }
}

#[test]
fn a_cancellation_stands_against_everything_that_did_not_know_of_it() {
    always(Flow::Plain, |mut history| {
        let cancelled = history.add(&[0], 0, cancel());
        let queued = history.add(&[0], 1, Change::Enqueue);
        let claimed = history.add(&[queued], 2, claim("l"));
        let failed = history.add(&[claimed], 2, fail());
        let retried = history.add(&[failed], 1, retry());
        let (task, refused) = history.fold();
        assert_eq!(
            (task.state, task.summary.as_str()),
            (State::Failed, "cancelled")
        );
        for event in [queued, claimed, failed, retried] {
            let why = refused[event].as_deref().unwrap();
            assert!(why.starts_with("the cancellation by alice"), "{why}");
        }
        let why = refused[queued].as_deref().unwrap();
        assert!(why.ends_with("the enqueueing by bob gives way"), "{why}");
        // Who has seen it may go on.
        history.add(&[cancelled, retried], 1, retry());
        assert_eq!(history.fold().0.state, State::Queued);
    });
}

#[test]
fn of_two_equal_moves_the_one_that_has_an_effect_is_named_to_whoever_gives_way() {
    always(Flow::Plain, |mut history| {
        let by = [
            history.add(&[0], 0, cancel()),
            history.add(&[0], 1, cancel()),
        ];
        let queued = history.add(&[0], 2, Change::Enqueue);
        let queued = [queued, history.add(&[0], 1, Change::Enqueue)];
        let (_, refused) = history.fold();
        let stands = by.iter().find(|at| refused[**at].is_none()).unwrap();
        let event = history.events[*stands].digest.short();
        // The worker may not enqueue by right; here nobody asks for it.
        for event_of in queued {
            let why = refused[event_of].as_deref().unwrap();
            assert!(why.contains(&format!("(event {event})")), "{why}");
        }
    });
}

#[test]
fn a_deletion_yields_to_a_cancellation_and_stands_against_the_queue() {
    always(Flow::Plain, |mut history| {
        history.add(&[0], 0, Change::Delete);
        let queued = history.add(&[0], 1, Change::Enqueue);
        history.add(&[queued], 2, claim("l"));
        assert_eq!(history.fold().0.state, State::Deleted);
        history.add(&[0], 1, cancel());
        assert_eq!(history.fold().0.state, State::Failed);
    });
}

#[test]
fn two_values_of_a_field_are_both_known_until_somebody_settles_it() {
    always(Flow::Plain, |mut history| {
        let one = history.add(&[0], 0, title("by alice"));
        let two = history.add(&[0], 1, title("by bob"));
        let (task, refused) = history.fold();
        assert_eq!((&refused[one], &refused[two]), (&None, &None));
        let beside = task.beside();
        assert_eq!((beside.len(), beside[0].field), (1, "title"));
        let mut both = [task.title.as_str(), beside[0].value.as_str()];
        let later = usize::from(history.events[one].digest < history.events[two].digest);
        assert_eq!(both[0], ["by alice", "by bob"][later]);
        both.sort_unstable();
        assert_eq!(both, ["by alice", "by bob"]);
        history.add(&[one, two], 0, title("settled"));
        let (task, _) = history.fold();
        assert_eq!(
            (task.title.as_str(), task.beside()),
            ("settled", Vec::new())
        );
    });
}

#[test]
fn criteria_of_both_are_kept_and_what_one_took_out_stays_out() {
    always(Flow::TestFirst, |mut history| {
        let one = history.add(&[0], 0, criteria(&[(1, "one"), (2, "two"), (3, "alice's")]));
        let two = history.add(&[0], 1, criteria(&[(2, "two"), (3, "bob's")]));
        let (task, _) = history.fold();
        let mut texts: Vec<_> = task.criteria.iter().map(|one| one.text.as_str()).collect();
        texts.sort_unstable();
        assert_eq!(texts, ["alice's", "bob's", "two"]);
        let ids: BTreeSet<_> = task.criteria.iter().map(|one| &one.id).collect();
        assert_eq!(ids.len(), 3, "no id means two things: {:?}", task.criteria);
        // An edit of the whole is exactly what its author wrote.
        history.add(&[one, two], 0, criteria(&[(5, "bob's"), (1, "new")]));
        let list = [criterion(5, "bob's"), criterion(1, "new")];
        assert_eq!(history.fold().0.criteria, list);
    });
}

#[test]
fn who_enqueues_stands_by_the_criteria() {
    always(Flow::TestFirst, |mut history| {
        history.add(&[0], 0, criteria(&[]));
        history.add(&[0], 1, Change::Enqueue);
        let (task, _) = history.fold();
        assert_eq!((task.state, task.criteria.len()), (State::Queued, 2));
    });
}

#[test]
fn an_event_that_has_seen_nothing_does_nothing() {
    always(Flow::Plain, |mut history| {
        history.add(&[], 0, Change::Enqueue);
        let (task, refused) = history.fold();
        assert_eq!(task.state, State::Draft);
        assert_eq!(refused[1].as_deref(), Some("the task does not exist yet"));
    });
}

#[test]
fn of_opposite_adjudications_the_one_that_has_seen_both_decides() {
    let [a, b] = [b"a", b"b"].map(|text| Digest::of(text));
    always(Flow::Plain, |mut history| {
        let one = history.add(&[0], 0, adjudicate(a, b));
        let two = history.add(&[0], 1, adjudicate(b, a));
        assert_eq!(history.fold().0.set_aside, [a, b].into());
        let three = history.add(&[one, two], 0, adjudicate(a, b));
        assert_eq!(history.fold().0.set_aside, [b].into());
        // Who knew of one only takes the other back with nothing.
        history.add(&[two], 1, adjudicate(b, a));
        assert_eq!(history.fold().0.set_aside, [a, b].into());
        // What a retry set aside does not come back.
        let cancelled = history.add(&[three], 0, cancel());
        let retried = history.add(
            &[cancelled],
            0,
            Change::Retry {
                from: Stage::Writing,
                set_aside: vec![a],
            },
        );
        history.add(&[retried], 0, adjudicate(a, b));
        assert!(history.fold().0.set_aside.contains(&a));
    });
}

#[test]
fn an_adjudication_takes_back_only_what_was_decided_between_its_documents() {
    let [a, b, c] = [b"a", b"b", b"c"].map(|text| Digest::of(text));
    always(Flow::Plain, |mut history| {
        let one = history.add(&[0], 0, adjudicate(a, b));
        let aside = |history: &History| history.fold().0.set_aside;
        // Whoever lets b stand against another document has not said that a falls.
        let two = history.add(&[one], 1, adjudicate(b, c));
        assert_eq!(aside(&history), [b, c].into());
        let three = history.add(&[two], 1, adjudicate_all(b, &[c, a]));
        assert_eq!(aside(&history), [a, c].into());
        // Of three the one stands that fell to each of the others and is chosen before both.
        let four = history.add(&[three], 0, adjudicate_all(c, &[a, b]));
        assert_eq!(aside(&history), [a, b].into());
        history.add(&[four], 0, adjudicate(a, c));
        assert_eq!(aside(&history), [a, b, c].into());
    });
}

#[test]
fn an_adjudication_by_which_nothing_falls_or_what_stands_does_nothing() {
    let [a, b] = [b"a", b"b"].map(|text| Digest::of(text));
    always(Flow::Plain, |mut history| {
        let one = history.add(&[0], 0, adjudicate(a, b));
        let none = history.add(&[one], 1, adjudicate_all(b, &[]));
        let own = history.add(&[none], 1, adjudicate_all(b, &[a, b]));
        let (task, refused) = history.fold();
        assert_eq!(task.set_aside, [b].into());
        for event in [none, own] {
            let why = refused[event].as_deref().unwrap();
            assert!(why.contains("others than the one that stands"), "{why}");
        }
        history.add(&[own], 1, adjudicate(b, a));
        assert_eq!(history.fold().0.set_aside, [a].into());
    });
}
