//! Grades of one patch that say the opposite, and which of them stands.

use super::forge::Forged;
use super::plot::Plot;
use hangar::model::event::Change;
use hangar::model::grade::{Grade, TestOutcome};
use hangar::store::identity::Identity;
#[test]
fn another_grade_of_the_same_patch_that_says_the_opposite() {
    let forged = Forged::honest();
    let (store, host) = (forged.store(), forged.world.host());
    let grader = hangar::store::identity::Identity::of(&store.policy, host.grader.signer());
    let mut against = forged.dossier().grades[0].value().clone();
    against.accepted = false;
    against.reasons = vec!["1 test fails".into()];
    against.test[0].outcome = TestOutcome::Failed;
    against.counts.passed = 1;
    against.counts.failed = 1;
    let add = |grade: &Grade| {
        let grader = grader.as_ref().unwrap();
        store
            .append_document(&forged.grades(), grader, grade, Vec::new(), "x")
            .unwrap()
    };
    let alice = forged.world.person(&store);
    let adjudicate = |stands, falls| {
        let change = Change::Adjudicate {
            stands,
            falls: vec![falls],
            reason: "a broken machine".into(),
        };
        store
            .change_task(&forged.id, &alice, |_| Ok(vec![change.clone()]))
            .unwrap();
    };
    let first = forged.dossier().grades[0].digest();
    // A void one says nothing.
    let void = Grade {
        void: true,
        ..against.clone()
    };
    add(&void);
    forged.task().is_yes();
    // But for one that caught a forger.
    let mut caught = void;
    let sentinel = caught.test.iter_mut().find(|row| row.alias.is_sentinel());
    let sentinel = sentinel.unwrap();
    (sentinel.outcome, sentinel.class) = (TestOutcome::Passed, None);
    caught.counts.sentinels_held = 0;
    let written = add(&caught);
    let opposite = "says the opposite of the same patch";
    forged.task().names("grade", opposite);
    adjudicate(first, written.digest);
    forged.task().is_yes();
    let written = add(&against);
    forged.task().names("grade", opposite);
    adjudicate(first, written.digest);
    forged.task().is_yes();
    // A later word takes an earlier one back.
    adjudicate(written.digest, first);
    forged
        .task()
        .names("grade", "says the opposite of the same patch");
    adjudicate(first, written.digest);
    let answer = forged.task();
    answer.is_yes();
    // What was taken back is not noted as if it held.
    let notes = answer.json["tasks"][0]["notes"].to_string();
    let (first, written) = (first.short(), written.digest.short());
    for (one, since) in [(written, ""), (first, " (taken back since)")] {
        let note = format!("alice declared that {one} does not count{since}: a broken machine");
        assert_eq!(notes.matches(&note).count(), 1, "{note}: {notes}");
    }
    // And one of the grade that caught a forger.
    assert_eq!(notes.matches(" declared that ").count(), 3, "{notes}");
}

#[test]
fn a_grade_that_comes_after_the_delivery_waits_for_a_word() {
    use hangar::flow::stage::{self, Contradiction};
    let forged = Forged::honest();
    let (store, host) = (forged.store(), forged.world.host());
    let open = || stage::contradictions_now(&store, &forged.dossier());
    let show = || {
        let out = std::process::Command::new(env!("CARGO_BIN_EXE_hangar"))
            .current_dir(forged.dir())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", forged.world.dir.path().join("home"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .args(["inbox", "--json"])
            .output()
            .unwrap();
        let inbox: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        let items = inbox["items"].as_array().unwrap().clone();
        let kinds = items.iter().map(|item| item["kind"].to_string());
        kinds.collect::<Vec<_>>()
    };
    assert_eq!(open(), []);
    assert_eq!(show(), [""; 0]);
    let first = forged.dossier().grades[0].digest();
    let mut against = forged.dossier().grades[0].value().clone();
    against.accepted = false;
    against.reasons = vec!["1 test fails".into()];
    against.test[0].outcome = TestOutcome::Failed;
    (against.counts.passed, against.counts.failed) = (1, 1);
    let grader = Identity::of(&store.policy, host.grader.signer()).unwrap();
    let second = store
        .append_document(&forged.grades(), &grader, &against, Vec::new(), "x")
        .unwrap()
        .digest;
    let both = Contradiction::Grades {
        documents: vec![first, second],
    };
    assert_eq!(open(), [both]);
    assert_eq!(show(), ["\"contradiction\""]);
    let alice = forged.world.person(&store);
    let adjudicate = |stands, falls| {
        let change = Change::Adjudicate {
            stands,
            falls: vec![falls],
            reason: "a broken machine".into(),
        };
        let change = |_: &_| Ok(vec![change.clone()]);
        store.change_task(&forged.id, &alice, change).unwrap();
    };
    adjudicate(first, second);
    assert_eq!(open(), []);
    // Where the other one was chosen it is decided as well, and nobody is asked to decide.
    adjudicate(second, first);
    assert_eq!(open(), []);
    assert_eq!(show(), [""; 0]);
    let answer = forged.task();
    answer.names("grade", "alice said that this is what stands");
    assert!(
        !answer.text.contains("nobody adjudicated"),
        "{}",
        answer.text
    );
}

#[test]
fn what_fell_before_a_retry_is_brought_back_by_no_later_adjudication() {
    use hangar::flow::stage;
    use hangar::model::task::Stage;
    let forged = Forged::new(&Plot {
        undelivered: true,
        ..Plot::default()
    });
    let (store, host) = (forged.store(), forged.world.host());
    let alice = forged.world.person(&store);
    let first = forged.dossier().grades[0].digest();
    let mut against = forged.dossier().grades[0].value().clone();
    against.accepted = false;
    against.reasons = vec!["1 test fails".into()];
    let grader = Identity::of(&store.policy, host.grader.signer()).unwrap();
    let second = store
        .append_document(&forged.grades(), &grader, &against, Vec::new(), "x")
        .unwrap()
        .digest;
    let change = |change: Change| {
        store
            .change_task(&forged.id, &alice, |_| Ok(vec![change.clone()]))
            .unwrap();
    };
    let adjudicate = |stands, falls| {
        change(Change::Adjudicate {
            stands,
            falls: vec![falls],
            reason: "a broken machine".into(),
        });
    };
    let is_aside = || [first, second].map(|one| forged.dossier().is_aside(one));
    adjudicate(first, second);
    assert_eq!(is_aside(), [false, true]);
    // The control: without a retry a later word brings it back.
    adjudicate(second, first);
    assert_eq!(is_aside(), [true, false]);
    adjudicate(first, second);
    change(Change::Cancel {
        reason: String::new(),
    });
    let set_aside = stage::set_aside(&forged.dossier(), Stage::Verifying);
    assert!(set_aside.contains(&first) && set_aside.contains(&second));
    change(Change::Retry {
        from: Stage::Verifying,
        set_aside,
    });
    adjudicate(second, first);
    assert_eq!(is_aside(), [true, true]);
    // And what a retry named is named by none again.
    assert_eq!(stage::set_aside(&forged.dossier(), Stage::Verifying), []);
}

#[test]
fn a_grade_of_no_run_counts_for_the_run_once_a_person_chose_it() {
    use hangar::flow::stage::{Next, next_now};
    let edit = |grade: &mut Grade| grade.run = None;
    let forged = Forged::new(&Plot {
        undelivered: true,
        ..Plot::grade(&edit)
    });
    let (store, host) = (forged.store(), forged.world.host());
    let next = || next_now(&store, &forged.dossier());
    assert!(matches!(next(), Next::Grade { .. }), "{:?}", next());
    let mut against = forged.dossier().grades[0].value().clone();
    against.accepted = false;
    against.reasons = vec!["1 test fails".into()];
    let grader = hangar::store::identity::Identity::of(&store.policy, host.grader.signer());
    let written = store
        .append_document(
            &forged.grades(),
            &grader.unwrap(),
            &against,
            Vec::new(),
            "x",
        )
        .unwrap();
    assert!(matches!(next(), Next::Blocked(_)), "{:?}", next());
    let stands = forged.dossier().grades[0].digest();
    let adjudicate = Change::Adjudicate {
        stands,
        falls: vec![written.digest],
        reason: "a broken machine".into(),
    };
    let alice = forged.world.person(&store);
    store
        .change_task(&forged.id, &alice, |_| Ok(vec![adjudicate.clone()]))
        .unwrap();
    // Nothing is graded anew: that could only contradict once more.
    let run = forged.dossier().runs[0].digest();
    let deliver = Next::Deliver {
        run,
        grade: Some(stands),
    };
    assert_eq!(next(), deliver);
}
