//! The policy: tampered with, not the pinned one, and the two answers.

use super::forge::{Forged, delivery};
use super::plot::Plot;
use hangar::flow::decide::{Look, decide};
use hangar::model::approval::Action;
use hangar::model::codec;
use hangar::model::outcome::Trust;
use hangar::model::policy::{Machine, Members, Role, Root, RootKey};
use hangar::model::reduction::Why;
use hangar::store::draft::Draft;
use hangar::store::identity::Identity;
use hangar::store::proposal;
use hangar::store::reduce::reduce;
use hangar::trust::{MachineKey, MachineRole};

/// Publishes the next version of the policy, signed by alice.
fn next_policy(forged: &Forged, edit: impl FnOnce(&mut Root, &mut Members)) {
    next_policy_for(forged, Why::Retired, edit);
}

/// The same; keys that lose rights do so for this reason.
fn next_policy_for(forged: &Forged, how: Why, edit: impl FnOnce(&mut Root, &mut Members)) {
    let store = forged.store();
    let newest = store.policy.newest();
    let (mut root, mut members) = (newest.root.clone(), newest.members.clone());
    members.version += 1;
    members.previous = Some(newest.reference.digest);
    let before = root.clone();
    edit(&mut root, &mut members);
    if root != before {
        root.version += 1;
        root.previous = Some(newest.root_digest);
    }
    let root = codec::encode(&root).unwrap();
    members.root = codec::digest(&root);
    let accepted = reduce(&store, &mut members, how).unwrap();
    let mut draft = Draft::unsigned(root, codec::encode(&members).unwrap());
    draft.accepted = accepted.lists;
    let alice = forged.world.person.signer();
    draft.sign_root(alice).unwrap();
    draft.sign_members(alice).unwrap();
    let tip = store.repo.read_ref(&store.layout.policy()).unwrap();
    draft
        .publish(&store.repo, &store.layout, tip, "alice", store.clock)
        .unwrap();
}

#[test]
fn raised_minimums_do_not_falsify_what_was_valid() {
    let forged = Forged::honest();
    next_policy(&forged, |root, _| {
        root.acceptance.trust = Trust::SealedLimits;
    });
    let answer = forged.task();
    answer
        .names("newest", "`sealed+limits` is asked for")
        .answers(true, false);
    let forged = Forged::honest();
    next_policy(&forged, |root, _| root.acceptance.approvers = 2);
    forged
        .task()
        .names("newest", "1 of the 2 people")
        .answers(true, false);
    // Control: a new version that changes nothing of it.
    let forged = Forged::honest();
    next_policy(&forged, |root, _| root.acceptance.approval_days = 1);
    let answer = forged.task();
    answer.is_yes();
    answer.answers(true, true);
}

#[test]
fn keys_that_are_gone_and_roles_that_no_longer_suffice() {
    for gone in ["worker", "grader"] {
        let out = |_: &mut Root, members: &mut Members| {
            let other = |machine: &Machine| machine.name.as_str() != gone;
            members.machine.retain(other);
        };
        // What a retired key signed stays good for ever.
        let forged = Forged::honest();
        next_policy(&forged, out);
        forged.task().is_yes();
        let forged = Forged::honest();
        next_policy_for(&forged, Why::Compromised, out);
        let answer = forged.task();
        answer
            .names("newest", "does not count any more: its key was compromised")
            .answers(true, false);
    }
}

#[test]
fn an_approval_of_a_compromised_key_counts_again_when_it_is_adopted() {
    let forged = Forged::honest();
    let key = MachineKey::load_or_create(&forged.world.dir.path().join("bob"), MachineRole::Worker);
    let key = key.unwrap();
    // Another key for alice, and the one that approved out.
    next_policy_for(&forged, Why::Compromised, |root, members| {
        let new = key.public().as_str().to_owned();
        members.person[0].keys = vec![new.clone()];
        root.key.push(RootKey {
            public: new,
            ..root.key[0].clone()
        });
    });
    let answer = forged.task();
    answer
        .names("newest", "an approval does not count any more")
        .answers(true, false);
    let approval = forged.dossier().decisions[0].digest();
    let store = forged.store();
    let draft = proposal::adopting(&store, &[approval].into()).unwrap();
    proposal::sign(&store, draft.unwrap(), key.signer()).unwrap();
    forged.task().is_yes();
}

#[test]
fn a_decision_of_a_retired_key_counts_by_its_place_and_one_of_a_compromised_key_does_not() {
    let key = |forged: &Forged| {
        let dir = forged.world.dir.path().join("bob");
        MachineKey::load_or_create(&dir, MachineRole::Worker).unwrap()
    };
    let rotate = |forged: &Forged, how| {
        let new = key(forged).public().as_str().to_owned();
        next_policy_for(forged, how, |root, members| {
            members.person[0].keys = vec![new.clone()];
            root.key.push(RootKey {
                public: new,
                ..root.key[0].clone()
            });
        });
    };
    for (how, counts) in [(Why::Retired, true), (Why::Compromised, false)] {
        let forged = Forged::new(&Plot::undelivered());
        let before = forged.dossier();
        let manifest = before.seals[0].digest();
        let on = |forged: &Forged| {
            let dossier = forged.dossier();
            let approved = dossier.decisions_on(manifest, Action::Approve).count();
            let rejected = dossier.decisions_on(manifest, Action::Reject).count();
            (approved, rejected)
        };
        assert_eq!(on(&forged), (1, 0));
        // What the key signs later, in a clone that does not know that it is out.
        let old = forged.store();
        rotate(&forged, how);
        assert_eq!(on(&forged), (usize::from(counts), 0), "{how:?}");
        let alice = Identity::of(&old.policy, forged.world.person.signer()).unwrap();
        let (look, seal) = (Look::default(), &before.seals[0]);
        decide(&old, &before, seal, &alice, Action::Reject, "late", look).unwrap();
        assert_eq!(on(&forged), (usize::from(counts), 0), "{how:?}");
        let faults = forged.dossier().faults;
        let late = faults.iter().filter(|fault| fault.kind == "approval");
        assert_eq!(late.count(), if counts { 1 } else { 2 }, "{faults:?}");
    }
    // Retired first, found to be compromised later: what counted counts no more.
    let forged = Forged::honest();
    rotate(&forged, Why::Retired);
    forged.task().is_yes();
    let store = forged.store();
    let worse = |_: &mut _, members: &mut Members| {
        members.reduced[0].how = Why::Compromised;
        Ok::<(), hangar::store::Error>(())
    };
    let next = proposal::next_version(&store, Why::Compromised, worse).unwrap();
    proposal::sign(&store, next.unwrap().draft, key(&forged).signer()).unwrap();
    forged
        .task()
        .names("newest", "an approval does not count any more")
        .answers(true, false);
}

#[test]
fn a_delivery_under_a_minimum_of_its_own_policy_was_never_valid() {
    let forged = Forged::new(&Plot::undelivered());
    next_policy(&forged, |root, _| root.acceptance.approvers = 2);
    // The worker delivers under version 2 what one person approved.
    let dossier = forged.dossier();
    forged.worker_does(&delivery(&dossier, dossier.runs[0].digest()));
    forged
        .task()
        .names("approval", "1 of 2 people")
        .answers(false, false);
}

#[test]
fn a_tampered_policy() {
    let forged = Forged::honest();
    let policy = "refs/hangar/policy";
    let bytes = forged.read(policy, "members.toml");
    let text = String::from_utf8(bytes.clone()).unwrap();
    let changed = text.replace("role = \"worker\"", "role = \"grader\"");
    assert_ne!(text, changed);
    forged.rewrite_tip(policy, &[("members.toml", Some(changed.as_bytes()))]);
    forged.task().names("policy", "signatures");
    forged.rewrite_tip(policy, &[("members.toml", Some(&bytes))]);
    forged.task().is_yes();
}

#[test]
fn an_external_key_under_a_policy_that_went_back_names_the_fault() {
    let forged = Forged::honest();
    let before = forged.git(&["rev-parse", "refs/hangar/policy"]);
    next_policy(&forged, |_, _| {});
    let id = forged.another("KAN-81", &Plot::default());
    forged.verify(&["KAN-81"]).is_yes();
    forged.git(&["update-ref", "refs/hangar/policy", &before]);
    for name in ["KAN-81", id.as_str()] {
        let answer = forged.verify(&[name]);
        assert_eq!(answer.code, Some(1), "{name} {}", answer.text);
        assert!(!answer.faults().is_empty(), "{name} {}", answer.text);
    }
}

#[test]
fn a_policy_that_is_not_the_pinned_one() {
    let forged = Forged::honest();
    let store = forged.store();
    hangar::store::pins::record(&store.repo, &store.policy).unwrap();
    let answer = forged.task();
    answer.is_yes();
    assert!(
        answer.text.contains("this clone's own pin"),
        "{}",
        answer.text
    );
    // The default branch names another.
    let line = format!("[trust]\nrepo = \"sha256:{}\"\n", "ab".repeat(32));
    let file = forged.dir().join("hangar.toml");
    let old = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{old}{line}")).unwrap();
    forged.git(&["commit", "-q", "-a", "-m", "pin"]);
    forged.task().names("pin", "it pins the policy");
    // The one that is verified never decides about it.
    let answer = forged.verify(&["main"]);
    assert!(answer.faults().is_empty(), "{}", answer.text);
    // A clone that has seen another policy.
    let pin = forged.dir().join(".git/hangar/trust.toml");
    let text = std::fs::read_to_string(&pin).unwrap();
    let id = store.policy.repo().to_string();
    std::fs::write(
        &pin,
        text.replace(&id, &format!("sha256:{}", "cd".repeat(32))),
    )
    .unwrap();
    forged.task().names("pin", "this clone trusts");
}

#[test]
fn a_member_may_not_become_approver_by_a_version_without_an_admin() {
    // An honest second version, and the same signed by nobody.
    let forged = Forged::honest();
    next_policy(&forged, |_, members| members.person[0].role = Role::Admin);
    forged.task().is_yes();
    let folder = forged.git(&["ls-tree", "refs/hangar/policy", "members.sigs"]);
    assert!(!folder.is_empty());
    forged.rewrite_tip("refs/hangar/policy", &[("members.sigs", None)]);
    forged.task().names("policy", "signatures");
}
