use super::*;

fn principal(text: &str) -> Principal {
    text.parse().unwrap()
}

fn key(byte: u8) -> Fingerprint {
    format!("SHA256:{}", data_encoding::BASE64_NOPAD.encode(&[byte; 32]))
        .parse()
        .unwrap()
}

struct Hand {
    principal: Principal,
    key: Fingerprint,
}

impl Hand {
    fn author(&self) -> Author<'_> {
        Author {
            principal: &self.principal,
            key: &self.key,
            at: "2026-01-01T00:00:00Z",
            event: Digest::of(b"e"),
        }
    }
}

fn alice() -> Hand {
    Hand {
        principal: principal("alice"),
        key: key(1),
    }
}

fn worker() -> Hand {
    Hand {
        principal: principal("worker"),
        key: key(2),
    }
}

fn create(flow: Flow) -> Change {
    Change::Create {
        title: "Add subtraction".into(),
        mandate: String::new(),
        criteria: vec![Criterion {
            id: CriterionId::at(0),
            text: "sub(3, 1) is 2".into(),
        }],
        flow,
        mode: Mode::Implement,
        priority: 5,
        base: "0".repeat(40).parse().unwrap(),
        base_branch: String::new(),
        external: String::new(),
        tags: Vec::new(),
        requester: principal("alice"),
    }
}

use crate::model::ids::CriterionId;

fn draft(flow: Flow) -> Task {
    Task::create(TaskId::of_creation(b"x"), &create(flow), alice().author()).unwrap()
}

fn claim() -> Change {
    Change::Claim { lease: "l".into() }
}

fn working() -> Task {
    let mut task = draft(Flow::TestFirst);
    task.apply(&Change::Enqueue, alice().author()).unwrap();
    task.apply(&claim(), worker().author()).unwrap();
    let stage = Change::Stage {
        stage: Stage::Writing,
        documents: Vec::new(),
        note: String::new(),
    };
    task.apply(&stage, worker().author()).unwrap();
    task
}

fn edit_title() -> Change {
    Change::Edit {
        title: Some("New".into()),
        mandate: None,
        criteria: None,
        priority: None,
        tags: None,
        base: None,
    }
}

#[test]
fn a_draft_is_claimed_only_after_it_was_enqueued() {
    let mut task = draft(Flow::TestFirst);
    assert_eq!(
        task.apply(&claim(), worker().author())
            .unwrap_err()
            .to_string(),
        "a task that is draft can't be claimed"
    );
    task.apply(&Change::Enqueue, alice().author()).unwrap();
    task.apply(&claim(), worker().author()).unwrap();
    assert_eq!(task.state, State::Assigned);
}

#[test]
fn test_first_needs_a_criterion_to_be_enqueued() {
    let mut task = draft(Flow::TestFirst);
    task.criteria.clear();
    assert!(task.apply(&Change::Enqueue, alice().author()).is_err());
    let mut plain = draft(Flow::Plain);
    plain.criteria.clear();
    assert!(plain.apply(&Change::Enqueue, alice().author()).is_ok());
}

#[test]
fn only_the_holder_moves_a_task() {
    let mut task = working();
    let other = Hand {
        principal: principal("other"),
        key: key(3),
    };
    let fail = Change::Fail {
        summary: "x".into(),
    };
    assert_eq!(
        task.apply(&fail, other.author()).unwrap_err(),
        Refusal::Held(principal("worker"), worker().author().event)
    );
    task.apply(&Change::Release { lease: "l".into() }, worker().author())
        .unwrap();
    assert_eq!(
        task.apply(&fail, worker().author())
            .unwrap_err()
            .to_string(),
        format!(
            "the claim is not the one in force (since the giving back by worker, event {})",
            worker().author().event.short()
        )
    );
}

#[test]
fn text_is_locked_while_a_worker_holds_the_task_and_open_while_it_waits() {
    let mut task = working();
    let before = task.text_digest();
    assert!(matches!(
        task.apply(&edit_title(), alice().author()),
        Err(Refusal::Locked { field: "title", .. })
    ));
    task.apply(&Change::Release { lease: "l".into() }, worker().author())
        .unwrap();
    task.apply(&edit_title(), alice().author()).unwrap();
    assert_ne!(
        task.text_digest(),
        before,
        "the sealed version must become stale"
    );
}

#[test]
fn a_refused_edit_changes_nothing() {
    let mut task = draft(Flow::Plain);
    let edit = Change::Edit {
        title: Some("New".into()),
        mandate: None,
        criteria: None,
        priority: Some(12),
        tags: None,
        base: None,
    };
    assert!(task.apply(&edit, alice().author()).is_err());
    assert_eq!(task.title, "Add subtraction");
}

#[test]
fn a_test_first_task_is_not_delivered_without_grade() {
    let mut task = working();
    let deliver = |grade| Change::Deliver {
        branch: "refs/heads/x".into(),
        commit: "1".repeat(40).parse().unwrap(),
        run: Digest::of(b"run"),
        grade,
        manifest: Some(Digest::of(b"manifest")),
    };
    assert!(task.apply(&deliver(None), worker().author()).is_err());
    task.apply(&deliver(Some(Digest::of(b"grade"))), worker().author())
        .unwrap();
    assert_eq!(task.state, State::Done);
}

#[test]
fn retry_keeps_the_failure_as_a_comment_and_sets_documents_aside() {
    let mut task = working();
    task.consumed = Some((Digest::of(b"m"), vec![Digest::of(b"a")]));
    task.apply(
        &Change::Fail {
            summary: "two rounds failed".into(),
        },
        worker().author(),
    )
    .unwrap();
    let retry = Change::Retry {
        from: Stage::Writing,
        set_aside: vec![Digest::of(b"m")],
    };
    task.apply(&retry, alice().author()).unwrap();
    assert_eq!(task.state, State::Queued);
    assert_eq!(task.summary, "");
    assert_eq!(task.consumed, None);
    let texts: Vec<_> = task
        .comments
        .iter()
        .map(|comment| comment.text.as_str())
        .collect();
    assert_eq!(texts, ["two rounds failed", "Task retried by alice"]);
}

#[test]
fn every_terminal_state_refuses_all_but_retry_and_words() {
    for state in [State::Done, State::Failed, State::Rejected, State::Deleted] {
        let mut task = draft(Flow::Plain);
        task.state = state;
        for change in [
            Change::Enqueue,
            claim(),
            Change::Cancel {
                reason: String::new(),
            },
            Change::Delete,
            edit_title(),
        ] {
            assert!(
                task.apply(&change, alice().author()).is_err(),
                "{state} {}",
                change.name()
            );
        }
        assert!(
            task.apply(&Change::Comment { text: "x".into() }, alice().author())
                .is_ok()
        );
    }
}
