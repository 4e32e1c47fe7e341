//! Honest documents in places where they do not belong.

use super::forge::{Forged, delivery};
use super::plot::Plot;
use hangar::flow::stage;
use hangar::model::approval::Action;
use hangar::model::digest::Digest;
use hangar::model::event::Change;
use hangar::model::manifest::Reseal;
use hangar::model::task::Stage;
use hangar::store::chain::Content;
use hangar::store::identity::Identity;

#[test]
fn an_approval_moved_to_another_task() {
    let forged = Forged::honest();
    let other = forged.another("KAN-81", &Plot::undelivered());
    let own = forged.approval();
    let moved = own.replace(forged.id.as_str(), other.as_str());
    forged.git(&["update-ref", &moved, &own]);
    forged
        .verify(&["KAN-81"])
        .names("documents", "belongs to another task");
    // The task it was copied from is as good as before.
    forged.task().is_yes();
    // Moved, not copied: both notice.
    forged.git(&["update-ref", "-d", &own]);
    forged.task().names("approval", "deleted or rewritten");
}

#[test]
fn an_approval_moved_to_another_version() {
    let forged = Forged::honest();
    let own = forged.approval();
    let manifest = forged.dossier().seals[0].digest();
    let moved = own.replace(&manifest.hex(), &Digest::of(b"another").hex());
    forged.git(&["update-ref", &moved, &own]);
    forged.task().names("documents", "another decision's name");
}

#[test]
fn an_approval_of_no_version_of_the_task() {
    let edit = |approval: &mut hangar::model::approval::Approval| {
        approval.manifest = Digest::of(b"another");
    };
    let forged = Forged::new(&Plot::approval(&edit));
    let answer = forged.task();
    answer.names("approval", "not the delivered one");
    answer.names("approval", "no believed version");
    answer.names("approval", "0 of 1 person");
}

#[test]
fn a_grade_moved_to_another_task() {
    let forged = Forged::honest();
    let other = forged.another("KAN-81", &Plot::undelivered());
    let moved = format!("refs/hangar/grades/{other}");
    forged.git(&["update-ref", &moved, &forged.grades()]);
    forged
        .verify(&["KAN-81"])
        .names("documents", "belongs to another task");
}

#[test]
fn a_grade_of_an_earlier_round_for_a_later_patch() {
    // Round two has another result; the delivery names it with the grade of round one.
    let forged = Forged::new(&Plot::undelivered());
    let store = forged.store();
    let host = forged.world.host();
    let dossier = forged.dossier();
    let worker = Identity::of(&store.policy, host.worker.signer()).unwrap();
    let base = dossier.history.task.base;
    let tree = store
        .repo
        .write_files([("calc.sh", false, b"echo evil\n".as_slice())])
        .unwrap();
    let subject = hangar::flow::subject::Subject::new(&store.repo, base, tree).unwrap();
    let mut run = dossier.runs[0].value().clone();
    run.round = 2;
    run.result = Some(hangar::flow::implementer::result_table(&subject, 0));
    let more = vec![("result".into(), Content::Tree(tree))];
    let written = store
        .append_document(&forged.runs(), &worker, &run, more, "x")
        .unwrap();
    forged.worker_does(&delivery(&dossier, written.digest));
    let answer = forged.task();
    answer.names("grade", "another base or patch than the delivered result");
    answer.names("grade", "another run");
    answer.names("delivery", "its tree is not the result");
}

#[test]
fn a_swapped_ciphertext() {
    let forged = Forged::honest();
    let other = forged.another("KAN-81", &Plot::undelivered());
    let foreign = forged.read(&format!("refs/hangar/sealed/{other}"), "sealed.age");
    forged.rewrite_tip(&forged.sealed(), &[("sealed.age", Some(&foreign))]);
    forged
        .task()
        .names("versions", "sealed.age is not the ciphertext");
}

/// A reseal of the first version by the grader, changed by `edit`.
fn reseal(forged: &Forged, sealed: &[u8], edit: impl Fn(&mut Reseal)) {
    let store = forged.store();
    let host = forged.world.host();
    let grader = Identity::of(&store.policy, host.grader.signer()).unwrap();
    let dossier = forged.dossier();
    let mut reseal = Reseal {
        format: 1,
        repo: store.policy.repo(),
        task: forged.id.clone(),
        manifest: dossier.seals[0].digest(),
        ciphertext: Digest::of(sealed),
        recipients: dossier.seals[0].value().recipients.clone(),
        signer: grader.table(store.clock.now()),
    };
    edit(&mut reseal);
    let more = vec![("sealed.age".into(), Content::File(sealed.to_vec()))];
    store
        .append_document(&forged.sealed(), &grader, &reseal, more, "x")
        .unwrap();
}

#[test]
fn a_reseal_for_another_manifest_or_of_another_payload() {
    let forged = Forged::honest();
    let sealed = forged.read(&forged.sealed(), "sealed.age");
    // Control: the same payload again.
    reseal(&forged, &sealed, |_| ());
    forged.task().is_yes();
    let other = forged.another("KAN-81", &Plot::undelivered());
    let foreign = forged.read(&format!("refs/hangar/sealed/{other}"), "sealed.age");
    reseal(&forged, &foreign, |_| ());
    let answer = forged.task();
    answer.names("payload", "another payload");
    // Without a key nobody can tell, and the answer says so.
    let closed = forged.verify_as("nowhere", &["KAN-80"]);
    assert_eq!(closed.link("payload"), "not-checked");

    let forged = Forged::honest();
    let sealed = forged.read(&forged.sealed(), "sealed.age");
    reseal(&forged, &sealed, |reseal| {
        reseal.manifest = Digest::of(b"another");
    });
    forged.task().names("versions", "no version of this task");

    let forged = Forged::honest();
    let sealed = forged.read(&forged.sealed(), "sealed.age");
    reseal(&forged, &sealed, |reseal| {
        reseal.ciphertext = Digest::of(b"another");
    });
    forged
        .task()
        .names("versions", "sealed.age is not the ciphertext");
}

#[test]
fn an_approval_used_again_after_a_retry_set_it_aside() {
    let forged = Forged::new(&Plot::undelivered());
    let store = forged.store();
    let host = forged.world.host();
    let alice = forged.world.person(&store);
    let worker = Identity::of(&store.policy, host.worker.signer()).unwrap();
    let before = forged.dossier();
    forged.worker_does(&Change::Fail {
        summary: "x".into(),
    });
    let set_aside = stage::set_aside(&forged.dossier(), Stage::AwaitingApproval);
    let retry = Change::Retry {
        from: Stage::AwaitingApproval,
        set_aside,
    };
    store
        .change_task(&forged.id, &alice, |_| Ok(vec![retry.clone()]))
        .unwrap();
    // The same approval, run and grade are offered again as if nothing had been set aside.
    let approvals = vec![before.decisions[0].digest()];
    let manifest = before.seals[0].digest();
    let files = {
        let original = &before.decisions[0].document.original;
        vec![original.bytes().to_vec(), original.signature().to_vec()]
    };
    let changes = vec![
        Change::Claim {
            lease: "00".repeat(16),
        },
        Change::Consume {
            manifest,
            approvals,
        },
        delivery(&before, before.runs[0].digest()),
    ];
    store
        .change_task_with(&forged.id, &worker, |_| {
            Ok((changes.clone(), files.clone()))
        })
        .unwrap();
    let answer = forged.task();
    answer.names("approval", "set aside before the delivery");
    answer.names("run", "set aside before the delivery");
    answer.names("grade", "set aside before the delivery");
}

#[test]
fn a_rejection_after_the_approval() {
    let forged = Forged::new(&Plot::undelivered());
    forged.world.decide(&forged.id, Action::Reject, "no");
    let before = forged.dossier();
    forged.worker_does(&delivery(&before, before.runs[0].digest()));
    forged
        .task()
        .names("approval", "alice rejected this manifest");
}

#[test]
fn an_older_version_offered_again() {
    let forged = Forged::honest();
    let store = forged.store();
    let host = forged.world.host();
    // A second version is sealed beside the delivered one.
    let dossier = forged.dossier();
    let seal = &dossier.seals[0];
    let mut manifest = seal.value().clone();
    manifest.version = 2;
    manifest.previous = Some(seal.digest());
    let grader = Identity::of(&store.policy, host.grader.signer()).unwrap();
    let sealed = forged.read(&forged.sealed(), "sealed.age");
    let more = vec![("sealed.age".into(), Content::File(sealed))];
    store
        .append_document(&forged.sealed(), &grader, &manifest, more, "x")
        .unwrap();
    forged.task().names("versions", "stands beside or after it");
}
