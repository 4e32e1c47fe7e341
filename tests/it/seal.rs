//! Sealed payloads: round trips, hostile archives, bombs, damaged and foreign ciphertexts.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests stop where they can't go on"
)]

use crate::trust::{public, vector};
use hangar::base::redact::Secret;
use hangar::model::digest::Digest;
use hangar::seal::{
    BundleError, CRITERIA, Canary, DecryptError, EncryptError, FileMode, Identity, IdentityError,
    MAX_TOTAL, PathFault, Payload, Recipient, RecipientError, SealedFile, decrypt, encrypt,
    generate_identity, scan,
};
use proptest::prelude::*;
use std::io::{Read as _, Write as _};

fn secret(bytes: impl AsRef<[u8]>) -> Secret {
    Secret::new(bytes.as_ref().to_vec())
}

fn file(path: &str, mode: FileMode, bytes: &[u8]) -> SealedFile {
    SealedFile {
        path: path.into(),
        mode,
        bytes: secret(bytes),
    }
}

pub(crate) fn sample() -> Payload {
    let deep = format!("tests/{}/{}.py", "d".repeat(120), "f".repeat(200));
    let files = vec![
        file("tests/test_b.py", FileMode::Regular, b"assert b\n"),
        file("run", FileMode::Executable, b"#!/bin/sh\n"),
        file(&deep, FileMode::Regular, &[b'x'; 700]),
        file("tests/empty.py", FileMode::Regular, b""),
    ];
    Payload::new(files, secret("{\"format\": 1}\n"), secret("format = 1\n")).unwrap()
}

fn contents(payload: &Payload) -> Vec<(String, FileMode, Vec<u8>)> {
    let one = |f: &SealedFile| (f.path.clone(), f.mode, f.bytes.expose().to_vec());
    payload.files().iter().map(one).collect()
}

/// The tar inside the payload.
fn archive(payload: &Payload) -> Vec<u8> {
    zstd::bulk::decompress(payload.to_bytes().unwrap().expose(), MAX_TOTAL).unwrap()
}

fn read_archive(archive: &[u8]) -> Result<Payload, BundleError> {
    Payload::from_bytes(&zstd::bulk::compress(archive, 3).unwrap())
}

#[test]
fn a_payload_comes_back_as_it_was() {
    let payload = sample();
    let back = Payload::from_bytes(payload.to_bytes().unwrap().expose()).unwrap();
    assert_eq!(contents(&back), contents(&payload));
    assert_eq!(back.criteria().expose(), payload.criteria().expose());
    assert_eq!(back.meta().expose(), payload.meta().expose());
    assert_eq!(back.listing(), payload.listing());
    assert_eq!(back.file("run").unwrap().mode, FileMode::Executable);
}

#[test]
fn the_order_of_the_files_does_not_matter() {
    let sorted = sample();
    let mut files = sorted.files().to_vec();
    files.reverse();
    let again = Payload::new(files, sorted.criteria().clone(), sorted.meta().clone()).unwrap();
    assert_eq!(
        again.to_bytes().unwrap().expose(),
        sorted.to_bytes().unwrap().expose()
    );
}

#[test]
fn the_listing_counts_the_criteria_map() {
    let payload = sample();
    let listing = payload.listing();
    assert_eq!(listing.len(), payload.files().len() + 1);
    assert!(listing.get(CRITERIA.as_bytes()).is_some());
}

#[test]
fn payload_vectors_hold() {
    // Frozen: the archive, its listing, and a compressed payload as an earlier version wrote it.
    let hex =
        |name: &str| String::from_utf8(std::fs::read(format!("tests/vectors/{name}")).unwrap());
    let payload = sample();
    let digest = Digest::of(&archive(&payload)).hex();
    assert_eq!(digest, hex("payload-tar.sha256").unwrap().trim());
    let listing = payload.listing().digest().hex();
    assert_eq!(listing, hex("payload-listing.sha256").unwrap().trim());
    let old = std::fs::read("tests/vectors/payload.tar.zst").unwrap();
    assert_eq!(
        contents(&Payload::from_bytes(&old).unwrap()),
        contents(&payload)
    );
}

#[test]
fn other_programs_can_unpack_it() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = archive(&sample());
    tar::Archive::new(bytes.as_slice())
        .unpack(dir.path())
        .unwrap();
    for file in sample().files() {
        let path = dir.path().join("files").join(&file.path);
        assert_eq!(std::fs::read(path).unwrap(), file.bytes.expose());
    }
}

#[test]
fn paths_and_sizes_are_checked_when_sealing() {
    let seal = |files| Payload::new(files, secret("{}"), secret("")).map(drop);
    let one = |path: &str| seal(vec![file(path, FileMode::Regular, b"")]);
    assert_eq!(one("a"), Ok(()));
    assert_eq!(one("../a"), Err(PathFault::NotRelative.into()));
    assert_eq!(one(".git/hooks/x"), Err(PathFault::DotGit.into()));
    assert_eq!(one(CRITERIA), Err(PathFault::Reserved.into()));
    let twice = vec![
        file("a", FileMode::Regular, b"1"),
        file("A", FileMode::Regular, b"2"),
    ];
    assert_eq!(seal(twice), Err(PathFault::Collision.into()));
    let many = (0..5000).map(|n| file(&n.to_string(), FileMode::Regular, b""));
    assert!(matches!(
        seal(many.collect()),
        Err(BundleError::TooLarge { .. })
    ));
}

#[test]
fn too_many_bytes_are_refused() {
    let seal = |files| Payload::new(files, secret("{}"), secret("")).map(drop);
    let big = |name: &str| file(name, FileMode::Regular, &vec![0; 10 << 20]);
    let bigger = vec![file("a", FileMode::Regular, &vec![0; (10 << 20) + 1])];
    assert!(matches!(seal(bigger), Err(BundleError::TooLarge { .. })));
    let all = (0..7).map(|n| big(&n.to_string())).collect();
    assert!(matches!(seal(all), Err(BundleError::TooLarge { .. })));
}

/// An archive like hangar's with one more entry, made by the tar library.
fn with_entry(kind: tar::EntryType, name: &str, link: Option<&str>, mode: u32) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    let mut put = |kind, name: &str, link: Option<&str>, mode, bytes: &[u8]| {
        let mut header = tar::Header::new_gnu();
        // Written raw: the library refuses hostile names.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        if let Some(link) = link {
            header.set_link_name(link).unwrap();
        }
        header.set_mode(mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_size(bytes.len() as u64);
        header.set_entry_type(kind);
        header.set_cksum();
        builder.append(&header, bytes).unwrap();
    };
    let file = tar::EntryType::Regular;
    put(file, CRITERIA, None, 0o644, b"{}");
    put(file, "payload.toml", None, 0o644, b"");
    put(file, "files/m", None, 0o644, b"honest");
    put(kind, name, link, mode, b"");
    builder.into_inner().unwrap()
}

#[test]
fn hostile_archives_are_refused() {
    use tar::EntryType as T;
    let honest = with_entry(T::Regular, "files/x", None, 0o755);
    assert_eq!(read_archive(&honest).unwrap().files().len(), 2);

    let path = |fault: PathFault| Some(BundleError::Path(fault));
    for (kind, name, link, mode, error) in [
        (T::Symlink, "files/x", Some("/etc/passwd"), 0o644, None),
        (T::Link, "files/x", Some("files/m"), 0o644, None),
        (T::Directory, "files/x", None, 0o755, None),
        (T::Char, "files/x", None, 0o644, None),
        (T::Block, "files/x", None, 0o644, None),
        (T::Fifo, "files/x", None, 0o644, None),
        (T::XGlobalHeader, "files/x", None, 0o644, None),
        (T::GNUSparse, "files/x", None, 0o644, None),
        (T::Regular, "files/x", None, 0o4755, None),
        (T::Regular, "files/x", None, 0o777, None),
        (T::Regular, "other", None, 0o644, None),
        (T::Regular, "payload.toml", None, 0o644, None),
        (T::Regular, "files/a", None, 0o644, None),
        (
            T::Regular,
            "files/m",
            None,
            0o644,
            path(PathFault::Collision),
        ),
        (
            T::Regular,
            "files/m/x",
            None,
            0o644,
            path(PathFault::Collision),
        ),
        (
            T::Regular,
            "files/x/../y",
            None,
            0o644,
            path(PathFault::NotRelative),
        ),
        (
            T::Regular,
            "files/x//y",
            None,
            0o644,
            path(PathFault::NotRelative),
        ),
        (
            T::Regular,
            "files/x/.git/y",
            None,
            0o644,
            path(PathFault::DotGit),
        ),
    ] {
        let result = read_archive(&with_entry(kind, name, link, mode)).map(drop);
        match error {
            Some(error) => assert_eq!(result, Err(error), "{name}"),
            None => assert!(
                matches!(result, Err(BundleError::Malformed(_))),
                "{kind:?} {name}: {result:?}"
            ),
        }
    }
    let absolute = with_entry(T::Regular, "files//etc/x", None, 0o644);
    assert!(read_archive(&absolute).is_err());
}

#[test]
fn archives_in_another_spelling_are_refused() {
    let good = archive(&sample());
    assert!(read_archive(&good).is_ok());
    let mut owner = good.clone();
    owner[108..116].copy_from_slice(b"0000001\0");
    let mut checksum = good.clone();
    checksum[148] ^= 1;
    let mut padding = good.clone();
    padding[512 + 100] = 1;
    for (name, bad) in [
        ("trailing zeros", [good.as_slice(), &[0; 512]].concat()),
        ("trailing bytes", [good.as_slice(), b"x"].concat()),
        ("second archive", [good.as_slice(), &good].concat()),
        ("no end", good[..good.len() - 512].to_vec()),
        ("cut", good[..1300].to_vec()),
        ("owner", owner),
        ("checksum", checksum),
        ("padding", padding),
        ("empty", Vec::new()),
    ] {
        assert!(read_archive(&bad).is_err(), "{name}");
    }
}

#[test]
fn bombs_and_odd_frames_are_refused() {
    let bomb = zstd::bulk::compress(&vec![0; MAX_TOTAL + 1], 1).unwrap();
    assert!(bomb.len() < 100_000);
    assert!(matches!(
        Payload::from_bytes(&bomb),
        Err(BundleError::TooLarge { .. })
    ));
    // A frame that does not state its size could be a bomb.
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 1).unwrap();
    encoder.write_all(&archive(&sample())).unwrap();
    let unsized_frame = encoder.finish().unwrap();
    let good = sample().to_bytes().unwrap();
    let good = good.expose();
    let skippable = [b"\x50\x2a\x4d\x18\x04\0\0\0junk".as_slice(), good].concat();
    for bad in [
        unsized_frame,
        [good, good].concat(),
        [good, b"x"].concat(),
        skippable,
        good[..good.len() - 1].to_vec(),
        b"not a frame".to_vec(),
        Vec::new(),
    ] {
        assert!(matches!(
            Payload::from_bytes(&bad),
            Err(BundleError::Malformed(_))
        ));
    }
}

#[test]
fn a_canary_in_a_sealed_file_is_found_after_unpacking() {
    let canary = Canary::new();
    let body = hangar::seal::insert("tests/t.py", b"assert 1\n", &canary);
    let files = vec![file("tests/t.py", FileMode::Regular, &body)];
    let payload = Payload::new(files, secret("{}"), secret("")).unwrap();
    let back = Payload::from_bytes(payload.to_bytes().unwrap().expose()).unwrap();
    let found: Vec<_> = scan(back.files()[0].bytes.expose()).collect();
    assert_eq!(found, [canary.digest()]);
}

/// An SSH key of the vectors as an identity.
pub(crate) fn ssh_identity(name: &str) -> Identity {
    Identity::openssh(&secret(vector(&format!("keys/{name}"))), &mut || None).unwrap()
}

fn recipient(text: &str) -> Recipient {
    text.parse().unwrap()
}

#[test]
fn every_recipient_and_nobody_else_decrypts() {
    let (native, native_recipient) = generate_identity();
    let native = Identity::native(&native).unwrap();
    let recipients = [
        recipient(&native_recipient),
        recipient(public("ed25519").as_str()),
        recipient(public("rsa").as_str()),
    ];
    let ciphertext = encrypt(b"hidden", &recipients).unwrap();
    for identity in [&native, &ssh_identity("ed25519"), &ssh_identity("rsa")] {
        assert_eq!(decrypt(&ciphertext, identity).unwrap().expose(), b"hidden");
        assert!(recipients.contains(&identity.recipient().unwrap()));
    }
    let (stranger, _) = generate_identity();
    let stranger = Identity::native(&stranger).unwrap();
    assert_eq!(
        decrypt(&ciphertext, &stranger).unwrap_err(),
        DecryptError::NotARecipient
    );
    let only_native = encrypt(b"hidden", &recipients[..1]).unwrap();
    assert_eq!(
        decrypt(&only_native, &ssh_identity("ed25519")).unwrap_err(),
        DecryptError::NotARecipient
    );
}

#[test]
fn a_machine_key_is_its_own_recipient() {
    let (text, public) = hangar::trust::generate_machine_key();
    let identity = Identity::openssh(&text, &mut || None).unwrap();
    assert_eq!(identity.recipient().unwrap().as_str(), public.as_str());
    let ciphertext = encrypt(b"hidden", &[recipient(public.as_str())]).unwrap();
    assert_eq!(decrypt(&ciphertext, &identity).unwrap().expose(), b"hidden");
}

#[test]
fn an_encrypted_ssh_key_asks_for_its_passphrase() {
    let text = secret(vector("keys/encrypted"));
    let ciphertext = encrypt(b"hidden", &[recipient(public("encrypted").as_str())]).unwrap();
    let open = |answer: Option<&str>| {
        Identity::openssh(&text, &mut || answer.map(|a| Secret::from(a.to_string())))
    };
    assert_eq!(open(None).unwrap_err(), IdentityError::NoPassphrase);
    assert_eq!(
        open(Some("guess")).unwrap_err(),
        IdentityError::WrongPassphrase
    );
    let identity = open(Some("open sesame")).unwrap();
    assert_eq!(decrypt(&ciphertext, &identity).unwrap().expose(), b"hidden");
}

#[test]
fn damaged_ciphertexts_are_refused_wherever_they_are_damaged() {
    let (identity, text) = generate_identity();
    let identity = Identity::native(&identity).unwrap();
    let good = encrypt(&[7; 200], &[recipient(&text)]).unwrap();
    assert_eq!(decrypt(&good, &identity).unwrap().expose(), [7; 200]);
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        assert!(decrypt(&bad, &identity).is_err(), "changed at {at}");
        assert!(decrypt(&good[..at], &identity).is_err(), "cut at {at}");
    }
    let longer = [good.as_slice(), b"x"].concat();
    assert_eq!(
        decrypt(&longer, &identity).unwrap_err(),
        DecryptError::Damaged
    );
    let armoured = b"-----BEGIN AGE ENCRYPTED FILE-----\n";
    assert_eq!(
        decrypt(armoured, &identity).unwrap_err(),
        DecryptError::Format
    );
    // Cut between two chunks of the stream, where each chunk by itself is authentic.
    let long = encrypt(&vec![1; 70_000], &[recipient(&text)]).unwrap();
    let second = 4_480 + 16;
    assert_eq!(
        decrypt(&long[..long.len() - second], &identity).unwrap_err(),
        DecryptError::Damaged
    );
}

#[test]
fn recipients_that_cannot_decrypt_are_refused_with_a_word() {
    for (key, kind) in [
        ("p256", "ecdsa-sha2-nistp256"),
        ("sk-ed25519", "sk-ssh-ed25519@openssh.com"),
        ("sk-p256", "sk-ecdsa-sha2-nistp256@openssh.com"),
    ] {
        assert_eq!(
            public(key).as_str().parse::<Recipient>().unwrap_err(),
            RecipientError::CannotDecrypt(kind.into())
        );
    }
    let good = generate_identity().1;
    for bad in [
        "",
        "age1",
        "AGE1",
        &good[..40],
        &format!("{good}\n{good}"),
        "x y",
    ] {
        assert!(bad.parse::<Recipient>().is_err(), "{bad}");
    }
    assert!(matches!(
        encrypt(b"", &[]),
        Err(EncryptError::Recipients(0))
    ));
    let p256 = Identity::openssh(&secret(vector("keys/p256")), &mut || None);
    assert_eq!(p256.unwrap_err(), IdentityError::CannotDecrypt);
    let garbage = Identity::native(&secret("AGE-SECRET-KEY-1"));
    assert_eq!(garbage.unwrap_err(), IdentityError::Malformed);
}

#[test]
fn a_comment_behind_a_key_is_dropped() {
    let text = public("ed25519").to_string();
    let with_comment = format!("{text} somebody@somewhere\n");
    assert_eq!(recipient(&with_comment).as_str(), text);
}

#[test]
fn secrets_do_not_show_in_debug() {
    let (identity, _) = generate_identity();
    let text = format!("{:?} {:?}", Identity::native(&identity).unwrap(), sample());
    assert!(!text.contains("AGE-SECRET") && !text.contains("assert b"));
}

#[test]
fn ciphertext_vector_holds() {
    let sealed = std::fs::read("tests/vectors/sealed.age").unwrap();
    let plain = decrypt(&sealed, &ssh_identity("ed25519")).unwrap();
    let mut old = Vec::new();
    std::fs::File::open("tests/vectors/payload.tar.zst")
        .and_then(|mut file| file.read_to_end(&mut old))
        .unwrap();
    assert_eq!(plain.expose(), old);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn garbage_is_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let identity = ssh_identity("ed25519");
        prop_assert!(Payload::from_bytes(&bytes).is_err());
        prop_assert!(read_archive(&bytes).is_err());
        prop_assert!(decrypt(&bytes, &identity).is_err());
        let headed = [b"age-encryption.org/v1\n-> ssh-ed25519 ".as_slice(), &bytes].concat();
        prop_assert!(decrypt(&headed, &identity).is_err());
        prop_assert!(Identity::native(&secret(&bytes)).is_err());
        prop_assert!(Identity::openssh(&secret(&bytes), &mut || None).is_err());
        prop_assert!(String::from_utf8_lossy(&bytes).parse::<Recipient>().is_err());
    }

    #[test]
    fn any_file_comes_back(
        bytes in prop::collection::vec(any::<u8>(), 0..1500), name in "[a-z]{1,90}(/[a-z0-9]{1,90}){0,3}",
    ) {
        let files = vec![file(&name, FileMode::Regular, &bytes)];
        let payload = Payload::new(files, secret("{}"), secret("m")).unwrap();
        let back = Payload::from_bytes(payload.to_bytes().unwrap().expose()).unwrap();
        prop_assert_eq!(contents(&back), contents(&payload));
    }
}
