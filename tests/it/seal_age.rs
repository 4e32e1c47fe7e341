//! The `age` program as second opinion.

use crate::seal::{sample, ssh_identity};
use crate::trust::{public, vector};
use hangar::base::files::write_atomic;
use hangar::base::process::Run;
use hangar::base::redact::Secret;
use hangar::seal::{Identity, Payload, decrypt, encrypt, generate_identity};

#[test]
#[ignore = "heavy: needs the `age` program"]
fn the_age_program_opens_what_we_seal() {
    let dir = tempfile::tempdir().unwrap();
    let (identity, recipient) = generate_identity();
    let keys = [
        ("native", identity.expose().to_vec()),
        ("ed25519", vector("keys/ed25519")),
        ("rsa", vector("keys/rsa")),
    ];
    let recipients = [
        recipient.parse().unwrap(),
        public("ed25519").as_str().parse().unwrap(),
        public("rsa").as_str().parse().unwrap(),
    ];
    let payload = sample().to_bytes().unwrap();
    let ciphertext = encrypt(payload.expose(), &recipients).unwrap();
    for (name, text) in keys {
        let path = dir.path().join(name);
        write_atomic(&path, &text, 0o600).unwrap();
        let out = Run::new("age")
            .args(["-d", "-i"])
            .arg(&path)
            .stdin(ciphertext.clone())
            .output()
            .expect("the age program is needed for this test");
        assert!(out.status.success(), "{name}: {}", out.stderr_text());
        assert_eq!(out.stdout, payload.expose(), "{name}");
    }
}

#[test]
#[ignore = "heavy: needs the `age` program"]
fn we_open_what_the_age_program_seals() {
    let dir = tempfile::tempdir().unwrap();
    let key_file = dir.path().join("key");
    let out = Run::new("age-keygen")
        .arg("-o")
        .arg(&key_file)
        .output()
        .expect("the age program is needed for this test");
    assert!(out.status.success(), "{}", out.stderr_text());
    let native = Identity::native(&Secret::new(std::fs::read(&key_file).unwrap())).unwrap();
    let payload = sample().to_bytes().unwrap();
    for identity in [native, ssh_identity("ed25519"), ssh_identity("rsa")] {
        let out = Run::new("age")
            .args(["-r", identity.recipient().unwrap().as_str()])
            .stdin(payload.expose().to_vec())
            .output()
            .unwrap();
        assert!(out.status.success(), "{}", out.stderr_text());
        let plain = decrypt(&out.stdout, &identity).unwrap();
        assert!(Payload::from_bytes(plain.expose()).is_ok());
    }
}
