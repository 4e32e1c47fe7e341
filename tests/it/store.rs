//! State on refs of a real repository.

use crate::common::founded::{Founded, clock, create};
use crate::common::git::{file_at, git, git_input};
use hangar::model::authority::Act;
use hangar::model::codec;
use hangar::model::event::Change;
use hangar::model::task::State;
use hangar::store::draft::Draft;
use hangar::store::identity::Identity;
use hangar::store::layout::Layout;
use hangar::store::{Error, Store, pins};
use hangar::trust;

fn world() -> Founded {
    Founded::new(|_| {})
}

fn some_task(store: &Store, title: &str) -> Change {
    create(store, "KAN-80", title, &["it works"])
}

#[test]
fn a_task_is_created_changed_and_found_again() {
    let world = world();
    let store = world.store();
    let alice = Identity::of(&store.policy, world.alice.signer()).unwrap();
    let worker = Identity::of(&store.policy, world.worker.signer()).unwrap();
    let id = store
        .create_task(&alice, some_task(&store, "Add subtraction"))
        .unwrap();
    store
        .change_task(&id, &alice, |_| Ok(vec![Change::Enqueue]))
        .unwrap()
        .unwrap();
    store
        .change_task(&id, &worker, |_| {
            Ok(vec![Change::Claim { lease: "x".into() }])
        })
        .unwrap();

    let fresh = world.store();
    for name in [id.as_str(), &id.as_str()[..8], "kan-80"] {
        let history = fresh.find_task(name).unwrap();
        assert_eq!(history.task.state, State::Assigned, "{name}");
        assert_eq!(history.records.len(), 3);
        assert!(history.faults.is_empty());
    }
    assert!(matches!(fresh.find_task("zzzz"), Err(Error::NoTask(_))));
    git(&world.path(), &["fsck", "--strict"]);
}

#[test]
fn who_lost_every_race_is_told_to_whom() {
    let world = world();
    let store = world.store();
    let alice = Identity::of(&store.policy, world.alice.signer()).unwrap();
    let id = store.create_task(&alice, some_task(&store, "T")).unwrap();
    let comment = |text: &str| Change::Comment { text: text.into() };
    let lost = store.change_task(&id, &alice, |_| {
        // Somebody writes between each look and the write that follows it.
        let other = world.store();
        other.change_task(&id, &alice, |_| Ok(vec![comment("faster")]))?;
        Ok(vec![comment("late")])
    });
    let error = lost.unwrap_err().to_string();
    let last = store.task(&id).unwrap().records.pop().unwrap();
    let by = format!("(last by alice, event {})", last.event.digest().short());
    assert!(error.contains(&by), "{error}");
}

#[test]
fn what_the_rules_refuse_is_not_written() {
    let world = world();
    let store = world.store();
    let alice = Identity::of(&store.policy, world.alice.signer()).unwrap();
    let worker = Identity::of(&store.policy, world.worker.signer()).unwrap();
    let id = store.create_task(&alice, some_task(&store, "T")).unwrap();
    let before = store.task(&id).unwrap().tip;
    let claim = |_: &_| Ok(vec![Change::Claim { lease: "x".into() }]);
    assert!(
        matches!(
            store.change_task(&id, &worker, claim),
            Err(Error::Refused(_))
        ),
        "a draft is not claimed"
    );
    assert!(
        matches!(
            store.change_task(&id, &alice, claim),
            Err(Error::NotAllowed { .. })
        ),
        "a person is no worker"
    );
    assert!(matches!(
        store.change_task(&id, &worker, |_| Ok(vec![Change::Enqueue])),
        Err(Error::NotAllowed { .. })
    ));
    assert_eq!(store.task(&id).unwrap().tip, before);
    assert_eq!(Change::Enqueue.act(), Act::Enqueue);
}

#[test]
fn twenty_writers_lose_no_event() {
    let world = world();
    let store = world.store();
    let alice = Identity::of(&store.policy, world.alice.signer()).unwrap();
    let id = store.create_task(&alice, some_task(&store, "T")).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..20 {
            let (world, id) = (&world, &id);
            scope.spawn(move || {
                let store = world.store();
                let alice = Identity::of(&store.policy, world.alice.signer()).unwrap();
                let text = format!("comment {writer}");
                store
                    .change_task(id, &alice, |_| {
                        Ok(vec![Change::Comment { text: text.clone() }])
                    })
                    .unwrap();
            });
        }
    });
    let history = store.task(&id).unwrap();
    assert_eq!(history.task.comments.len(), 20);
    assert_eq!(history.heads.len(), 1);
}

#[test]
fn a_foreign_policy_is_not_taken_for_the_pinned_one() {
    let world = world();
    let store = world.store();
    pins::record(&store.repo, &store.policy).unwrap();
    // Control: the same policy opens again.
    assert!(Store::open(world.repo(), clock()).is_ok());
    let mut rival = world.root();
    rival.nonce = "11".repeat(16);
    let repo = world.repo();
    let layout = Layout::of(&repo).unwrap();
    let tip = repo.read_ref(&layout.policy()).unwrap().unwrap();
    repo.update_ref(&layout.policy(), hangar::git::Expected::At(tip), None, "x")
        .unwrap();
    world.publish(&rival);
    assert!(matches!(
        Store::open(world.repo(), clock()),
        Err(Error::Pin(_))
    ));
}

#[test]
fn a_policy_version_needs_the_signature_of_an_admin_before_it() {
    let world = world();
    let store = world.store();
    let layout = &store.layout;
    let tip = store.repo.read_ref(&layout.policy()).unwrap();
    let mut members = store.policy.newest().members.clone();
    members.version = 2;
    members.previous = Some(store.policy.newest().reference.digest);
    let draft = |signer: &trust::Signer| {
        let mut draft = Draft::unsigned(
            codec::encode(&store.policy.newest().root).unwrap(),
            codec::encode(&members).unwrap(),
        );
        draft.sign_members(signer).unwrap();
        draft
    };
    let by = "alice";
    let forged = draft(world.worker.signer()).publish(&store.repo, layout, tip, by, clock());
    assert!(matches!(forged, Err(Error::Policy(_))), "{forged:?}");
    draft(world.alice.signer())
        .publish(&store.repo, layout, tip, by, clock())
        .unwrap();
    assert_eq!(world.store().policy.newest().reference.version, 2);
}

#[test]
fn a_stripped_or_foreign_event_is_reported_and_changes_nothing() {
    let world = world();
    let store = world.store();
    let alice = Identity::of(&store.policy, world.alice.signer()).unwrap();
    let id = store.create_task(&alice, some_task(&store, "T")).unwrap();
    store
        .change_task(&id, &alice, |_| Ok(vec![Change::Enqueue]))
        .unwrap();
    let dir = world.path();
    let reference = store.layout.task(&id);
    let event = file_at(&dir, &format!("{reference}:event.toml"));
    // The same bytes again without their signature, on top.
    let tree = |name: &str, text: &str| {
        let blob = git_input(&dir, &["hash-object", "-w", "--stdin"], text.as_bytes());
        let line = format!("100644 blob {blob}\t{name}\n");
        git_input(&dir, &["mktree"], line.as_bytes())
    };
    let changed = String::from_utf8(event)
        .unwrap()
        .replace("enqueue", "delete");
    let commit = git(
        &dir,
        &[
            "commit-tree",
            &tree("event.toml", &changed),
            "-p",
            &reference,
            "-m",
            "x",
        ],
    );
    git(&dir, &["update-ref", &reference, &commit]);
    let history = world.store().task(&id).unwrap();
    assert_eq!(history.task.state, State::Queued);
    assert_eq!(history.faults.len(), 1);
}

#[test]
fn of_two_who_found_at_once_the_second_is_told_that_the_ref_has_moved() {
    let world = world();
    let late = world.try_publish(&world.root()).unwrap_err();
    assert!(
        late.to_string().contains("refs/hangar/policy has moved"),
        "{late}"
    );
}
