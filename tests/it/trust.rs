//! Signatures: frozen vectors, forgeries beside their honest controls, garbage.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests stop where they can't go on"
)]

use hangar::trust::{
    Algorithm, CheckError, KeyError, Namespace, PublicKey, SignatureError, Verified, claimed_key,
    verify,
};
use proptest::prelude::*;
use std::path::PathBuf;

pub(crate) fn vector_path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/vectors/sshsig")
        .join(name)
}

pub(crate) fn vector(name: &str) -> Vec<u8> {
    std::fs::read(vector_path(name)).unwrap()
}

pub(crate) fn public(name: &str) -> PublicKey {
    key_text(name).parse().unwrap()
}

fn key_text(name: &str) -> String {
    String::from_utf8(vector(&format!("keys/{name}.pub"))).unwrap()
}

/// Verifies the vector `name` by `key` for `hangar-event`.
fn event(key: &str, name: &str) -> Result<(), SignatureError> {
    verify(
        &public(key),
        Namespace::Event,
        &vector("message"),
        &vector(&format!("{name}.sig")),
    )
}

#[test]
fn every_namespace_verifies_for_itself_and_no_other() {
    let (key, message) = (public("ed25519"), vector("message"));
    for made_for in Namespace::ALL {
        let signature = vector(&format!("{made_for}.sig"));
        for wanted in Namespace::ALL {
            let result = verify(&key, wanted, &message, &signature);
            if wanted == made_for {
                assert_eq!(result, Ok(()), "{wanted}");
            } else {
                let found = made_for.to_string();
                assert_eq!(
                    result,
                    Err(SignatureError::WrongNamespace { wanted, found })
                );
            }
        }
    }
}

#[test]
fn every_accepted_kind_of_key_verifies() {
    for (key, name) in [
        ("ed25519", "hangar-event"),
        ("p256", "p256"),
        ("rsa", "rsa-sha512"),
        ("rsa", "rsa-sha256"),
        ("rsa", "rsa-hash256"),
        ("sk-ed25519", "sk-ed25519"),
        ("sk-p256", "sk-p256"),
    ] {
        assert_eq!(event(key, name), Ok(()), "{name}");
    }
}

#[test]
fn changed_bytes_do_not_verify() {
    let (key, message) = (public("ed25519"), vector("message"));
    let signature = vector("hangar-event.sig");
    let mut other = message.clone();
    other[0] ^= 1;
    let longer = [message.as_slice(), b"\n"].concat();
    for forged in [other.as_slice(), &longer, b""] {
        assert_eq!(
            verify(&key, Namespace::Event, forged, &signature),
            Err(SignatureError::Mismatch)
        );
    }
}

#[test]
fn no_changed_character_of_a_signature_is_accepted() {
    for (key, name) in [("ed25519", "hangar-event"), ("sk-p256", "sk-p256")] {
        let (key, message) = (public(key), vector("message"));
        let good = vector(&format!("{name}.sig"));
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] = if bad[at] == b'A' { b'B' } else { b'A' };
            let result = verify(&key, Namespace::Event, &message, &bad);
            assert!(result.is_err(), "{name} at {at}");
        }
    }
}

#[test]
fn a_foreign_key_is_refused_also_when_it_claims_to_be_ours() {
    assert_eq!(event("foreign", "foreign"), Ok(()));
    assert!(matches!(
        event("ed25519", "foreign"),
        Err(SignatureError::WrongKey { .. })
    ));
    assert_eq!(event("ed25519", "impostor"), Err(SignatureError::Mismatch));
}

#[test]
fn weak_and_foreign_algorithms_are_refused() {
    assert_eq!(
        event("rsa", "rsa-sha1"),
        Err(SignatureError::Algorithm("ssh-rsa".into()))
    );
    assert_eq!(
        event("ed25519", "certificate"),
        Err(SignatureError::Key(KeyError::Certificate(
            "ssh-ed25519-cert-v01@openssh.com".into()
        )))
    );
    for (name, error) in [
        ("rsa1024", KeyError::RsaSize(1024)),
        ("p384", KeyError::Unsupported("ecdsa-sha2-nistp384".into())),
        ("dsa", KeyError::Unsupported("ssh-dss".into())),
    ] {
        assert_eq!(event("ed25519", name), Err(SignatureError::Key(error)));
    }
}

#[test]
fn a_token_that_nobody_touched_does_not_count() {
    for key in ["sk-ed25519", "sk-p256"] {
        assert_eq!(
            event(key, &format!("{key}-untouched")),
            Err(SignatureError::NoTouch)
        );
    }
}

#[test]
fn fields_that_are_not_known_are_refused() {
    for name in ["reserved", "version2"] {
        assert!(
            matches!(event("ed25519", name), Err(SignatureError::Unknown(_))),
            "{name}"
        );
    }
    assert_eq!(
        event("ed25519", "trailing-inside"),
        Err(SignatureError::Malformed)
    );
}

#[test]
fn exactly_one_block_and_nothing_else_is_read() {
    let (key, message) = (public("ed25519"), vector("message"));
    let good = vector("hangar-event.sig");
    let foreign = vector("foreign.sig");
    let text = String::from_utf8(good.clone()).unwrap();
    let wide = text.replacen('\n', "", 2);
    let cases: [(&str, Vec<u8>); 10] = [
        ("stripped", Vec::new()),
        ("two blocks", [good.as_slice(), &good].concat()),
        ("foreign block first", [foreign.as_slice(), &good].concat()),
        ("junk after", [good.as_slice(), b"x"].concat()),
        ("blank line after", [good.as_slice(), b"\n"].concat()),
        ("junk before", [b"x\n".as_slice(), &good].concat()),
        ("no last line break", good[..good.len() - 1].to_vec()),
        ("carriage returns", text.replace('\n', "\r\n").into_bytes()),
        ("other line width", wide.into_bytes()),
        ("cut", good[..good.len() / 2].to_vec()),
    ];
    for (name, bad) in cases {
        assert_eq!(
            verify(&key, Namespace::Event, &message, &bad),
            Err(SignatureError::Malformed),
            "{name}"
        );
    }
    assert_eq!(
        verify(&key, Namespace::Event, &message, &vec![b'A'; 9000]),
        Err(SignatureError::TooLong(9000))
    );
}

#[test]
fn a_verified_value_is_parsed_only_after_its_signature() {
    let (key, message) = (public("ed25519"), vector("message"));
    let signature = vector("hangar-grade.sig");
    let parse = |bytes: &[u8]| String::from_utf8(bytes.to_vec());
    let good = Verified::check(&message, &signature, Namespace::Grade, &key, parse).unwrap();
    assert_eq!(good.value().as_bytes(), message);
    assert_eq!(good.digest(), hangar::model::digest::Digest::of(&message));
    assert_eq!(good.signer().key, key);

    let bad: Result<Verified<()>, CheckError<std::convert::Infallible>> =
        Verified::check(&message, &signature, Namespace::Run, &key, |_| {
            panic!("parsed before it was verified")
        });
    assert!(matches!(bad, Err(CheckError::Signature(_))));
}

#[test]
fn the_claimed_key_is_the_one_inside() {
    assert_eq!(
        claimed_key(&vector("hangar-event.sig")),
        Ok(public("ed25519"))
    );
}

#[test]
fn keys_have_one_spelling() {
    let key = public("ed25519");
    assert_eq!(key.to_string().parse::<PublicKey>().unwrap(), key);
    assert!(!key.to_string().contains("hangar test key"));
    let json = serde_json::to_string(&key).unwrap();
    assert_eq!(serde_json::from_str::<PublicKey>(&json).unwrap(), key);
}

#[test]
fn kinds_of_keys_are_told_apart() {
    for (name, algorithm) in [
        ("ed25519", Algorithm::Ed25519),
        ("p256", Algorithm::EcdsaP256),
        ("rsa", Algorithm::Rsa),
        ("sk-ed25519", Algorithm::SkEd25519),
        ("sk-p256", Algorithm::SkEcdsaP256),
    ] {
        assert_eq!(public(name).algorithm(), algorithm);
    }
    let parse = |text: &str| text.parse::<PublicKey>();
    assert_eq!(
        parse(&key_text("foreign-cert")),
        Err(KeyError::Certificate(
            "ssh-ed25519-cert-v01@openssh.com".into()
        ))
    );
    assert_eq!(
        parse(&key_text("dsa")),
        Err(KeyError::Unsupported("ssh-dss".into()))
    );
    assert_eq!(parse(&key_text("rsa1024")), Err(KeyError::RsaSize(1024)));
    // The neutral element: every signature of a certain form verifies for it.
    let weak = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    assert_eq!(parse(weak), Err(KeyError::Weak));
    let text = public("ed25519").to_string();
    let base64 = text.strip_prefix("ssh-ed25519 ").unwrap();
    for bad in [
        "",
        "ssh-ed25519",
        base64,
        &format!("ssh-rsa {base64}"),
        &format!("no-pty {text}"),
        &format!("{text}AAAA"),
        &format!("{text}\n{text}"),
    ] {
        assert_eq!(parse(bad), Err(KeyError::Malformed), "{bad}");
    }
}

#[test]
fn a_compressed_point_is_no_second_spelling() {
    let respell = |name: &str, curve_at: usize| {
        let text = public(name).to_string();
        let (kind, base64) = text.split_once(' ').unwrap();
        let blob = data_encoding::BASE64.decode(base64.as_bytes()).unwrap();
        // Behind kind and curve: length 65, tag 4, x, y.
        let at = curve_at + 4 + "nistp256".len();
        assert_eq!(blob[at..at + 5], [0, 0, 0, 65, 4]);
        let mut short = blob[..at].to_vec();
        short.extend([0, 0, 0, 33, 2 + (blob[at + 68] & 1)]);
        short.extend(&blob[at + 5..at + 37]);
        short.extend(&blob[at + 69..]);
        format!("{kind} {}", data_encoding::BASE64.encode(&short))
    };
    for name in ["p256", "sk-p256"] {
        let kind = public(name).algorithm().as_str().len() + 4;
        let parsed = respell(name, kind).parse::<PublicKey>();
        assert_eq!(parsed, Err(KeyError::Malformed), "{name}");
    }
}

proptest! {
    #[test]
    fn garbage_is_refused_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let armoured = [
            b"-----BEGIN SSH SIGNATURE-----\n".as_slice(), &bytes, b"\n-----END SSH SIGNATURE-----\n",
        ].concat();
        for signature in [&bytes, &armoured] {
            let key = public("ed25519");
            prop_assert!(verify(&key, Namespace::Event, b"x", signature).is_err());
        }
        prop_assert!(String::from_utf8_lossy(&bytes).parse::<PublicKey>().is_err());
    }
}
