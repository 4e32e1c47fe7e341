//! Bytes and signatures of single documents.

use super::forge::Forged;
use super::plot::Plot;
use hangar::flow::host::Host;
use hangar::model::codec;
use hangar::model::signer::Signer as Table;
use hangar::store::check::Document;
use hangar::store::identity::Identity;
use hangar::trust::{MachineKey, MachineRole};
use serde::Serialize;

#[test]
fn an_honest_task_holds_in_every_link() {
    let forged = Forged::honest();
    let answer = forged.task();
    answer.is_yes();
    answer.answers(true, true);
    for link in [
        "documents",
        "history",
        "versions",
        "payload",
        "approval",
        "run",
        "grade",
        "delivery",
        "canary",
        "newest",
    ] {
        assert_eq!(answer.link(link), "held", "{link}: {}", answer.text);
    }
    assert!(
        answer.text.contains("machine of alice, who also approved"),
        "{}",
        answer.text
    );
    crate::cli_help::validate("verify", &answer.json);
}

#[test]
fn a_stranger_without_a_key_gets_the_same_answer_and_is_told_what_stayed_closed() {
    let forged = Forged::honest();
    let answer = forged.verify_as("nowhere", &["KAN-80"]);
    answer.is_yes();
    assert_eq!(answer.link("payload"), "not-checked");
    assert!(
        answer.text.contains("payload not opened (no key here)"),
        "{}",
        answer.text
    );
}

/// The bytes with one bit of one byte turned.
fn flip(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at] ^= 1;
    bytes
}

#[test]
fn one_byte_of_the_sealed_blob() {
    let forged = Forged::honest();
    let sealed = forged.read(&forged.sealed(), "sealed.age");
    for at in [0, sealed.len() / 2, sealed.len() - 1] {
        let changed = flip(&sealed, at);
        forged.rewrite_tip(&forged.sealed(), &[("sealed.age", Some(&changed))]);
        forged
            .task()
            .names("versions", "sealed.age is not the ciphertext");
    }
    forged.rewrite_tip(&forged.sealed(), &[("sealed.age", None)]);
    forged.task().names("versions", "no sealed.age");
    forged.rewrite_tip(&forged.sealed(), &[("sealed.age", Some(&sealed))]);
    forged.task().is_yes();
}

#[test]
fn one_byte_of_any_document() {
    let forged = Forged::honest();
    for (reference, name) in forged.kinds() {
        let file = format!("{name}.toml");
        let bytes = forged.read(&reference, &file);
        // A digit of the first digest: the document still reads well.
        let at = bytes.windows(7).position(|w| w == b"sha256:").unwrap() + 7;
        let mut changed = bytes.clone();
        changed[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
        forged.rewrite_tip(&reference, &[(&file, Some(&changed))]);
        let answer = forged.task();
        answer.names("documents", "signature").answers(false, false);
        forged.rewrite_tip(&reference, &[(&file, Some(&bytes))]);
    }
    forged.task().is_yes();
}

#[test]
fn one_word_of_the_plan() {
    let forged = Forged::honest();
    let bytes = forged.read(&forged.sealed(), "manifest.toml");
    let text = String::from_utf8(bytes).unwrap();
    let changed = text.replace("trust = \"sealed\"", "trust = \"none\"");
    assert_ne!(text, changed);
    forged.rewrite_tip(
        &forged.sealed(),
        &[("manifest.toml", Some(changed.as_bytes()))],
    );
    let answer = forged.task();
    answer.names("documents", "signature");
    answer.names("versions", "no believed version");
}

#[test]
fn a_stripped_signature_of_any_document() {
    let forged = Forged::honest();
    for (reference, name) in forged.kinds() {
        let file = format!("{name}.sig");
        let bytes = forged.read(&reference, &file);
        forged.rewrite_tip(&reference, &[(&file, None)]);
        forged
            .task()
            .names("documents", "not signed")
            .answers(false, false);
        forged.rewrite_tip(&reference, &[(&file, Some(&bytes))]);
    }
    forged.task().is_yes();
}

#[test]
fn a_signature_of_another_document_or_another_use() {
    let forged = Forged::honest();
    let kinds = forged.kinds();
    for (at, (reference, name)) in kinds.iter().enumerate() {
        let file = format!("{name}.sig");
        let own = forged.read(reference, &file);
        let (other, other_name) = &kinds[(at + 1) % kinds.len()];
        let foreign = forged.read(other, &format!("{other_name}.sig"));
        forged.rewrite_tip(reference, &[(&file, Some(&foreign))]);
        let answer = forged.task();
        assert_eq!(answer.code, Some(1), "{name}");
        assert!(answer.text.contains("signature"), "{name}: {}", answer.text);
        forged.rewrite_tip(reference, &[(&file, Some(&own))]);
    }
    forged.task().is_yes();
}

/// The document at the tip of a ref, signed anew by `key`, which the document names.
fn signed_by<T: Document + Serialize>(
    forged: &Forged,
    reference: &str,
    key: &MachineKey,
    table: impl Fn(&mut T, &dyn Fn(&mut Table)),
) {
    let name = T::NAME;
    let bytes = forged.read(reference, &format!("{name}.toml"));
    let mut document: T = codec::decode(&bytes).unwrap();
    table(&mut document, &|signer| {
        signer.key = key.public().fingerprint();
        if let Ok(identity) = Identity::of(&forged.store().policy, key.signer()) {
            signer.principal = identity.principal().clone();
        }
    });
    let bytes = toml::to_string(&document).unwrap().into_bytes();
    let signature = key.signer().sign(T::NAMESPACE, &bytes).unwrap();
    let (toml, sig) = (format!("{name}.toml"), format!("{name}.sig"));
    forged.rewrite_tip(
        reference,
        &[(&toml, Some(&bytes)), (&sig, Some(&signature))],
    );
}

macro_rules! sign {
    ($forged:expr, $reference:expr, $type:ty, $key:expr) => {
        signed_by::<$type>($forged, &$reference, $key, |doc, edit| {
            edit(&mut doc.signer)
        })
    };
}

#[test]
fn a_key_that_is_not_in_the_policy() {
    use hangar::model::{
        approval::Approval, event::Event, grade::Grade, manifest::Manifest, run::Run,
    };
    let key = |forged: &Forged| {
        let dir = forged.world.dir.path().join("stranger");
        MachineKey::load_or_create(&dir, MachineRole::Worker).unwrap()
    };
    type Sign = fn(&Forged, &MachineKey);
    let cases: [Sign; 5] = [
        |forged, key| sign!(forged, forged.events(), Event, key),
        |forged, key| sign!(forged, forged.sealed(), Manifest, key),
        |forged, key| sign!(forged, forged.approval(), Approval, key),
        |forged, key| sign!(forged, forged.runs(), Run, key),
        |forged, key| sign!(forged, forged.grades(), Grade, key),
    ];
    for sign in cases {
        let forged = Forged::honest();
        sign(&forged, &key(&forged));
        let answer = forged.task();
        answer
            .names("documents", "does not give")
            .answers(false, false);
    }
}

#[test]
fn a_key_of_the_policy_in_a_role_that_it_does_not_have() {
    use hangar::model::{approval::Approval, grade::Grade, manifest::Manifest, run::Run};
    let forged = Forged::honest();
    let keys = |forged: &Forged| Host::keys(&forged.world.dir.path().join("data")).unwrap();
    let right = |answer: super::answer::Answer| {
        answer.names("documents", "no right").answers(false, false);
    };
    sign!(&forged, forged.sealed(), Manifest, &keys(&forged).0);
    right(forged.task());
    let forged = Forged::honest();
    sign!(&forged, forged.approval(), Approval, &keys(&forged).1);
    right(forged.task());
    let forged = Forged::honest();
    sign!(&forged, forged.grades(), Grade, &keys(&forged).0);
    right(forged.task());
    let forged = Forged::honest();
    sign!(&forged, forged.runs(), Run, &keys(&forged).1);
    right(forged.task());
}

#[test]
fn a_document_that_somebody_put_on_top() {
    let forged = Forged::honest();
    let bytes = forged.read(&forged.grades(), "grade.toml");
    for files in [
        &[("grade.toml", bytes.as_slice())][..],
        &[("grade.toml", b"nonsense"), ("grade.sig", b"nonsense")],
        &[("something.else", b"nonsense")],
    ] {
        forged.append(&forged.grades(), files);
        forged.task().names("documents", "");
        forged.git(&[
            "update-ref",
            &forged.grades(),
            &format!("{}~1", forged.grades()),
        ]);
    }
    forged.task().is_yes();
}

#[test]
fn a_person_signs_no_grade_and_no_manifest() {
    let forged = Forged::honest();
    sign!(
        &forged,
        forged.grades(),
        hangar::model::grade::Grade,
        &forged.world.person
    );
    forged.task().names("documents", "no right");
}

#[test]
fn a_task_that_is_not_delivered_is_not_accepted_and_not_at_fault() {
    let forged = Forged::new(&Plot::undelivered());
    let answer = forged.task();
    assert_eq!(answer.code, Some(1));
    assert_eq!(answer.faults(), Vec::<serde_json::Value>::new());
    assert!(answer.text.contains("not delivered yet"), "{}", answer.text);
    // Among all tasks it claims nothing.
    forged.verify(&["--all"]).is_yes();
}
