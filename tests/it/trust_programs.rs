//! Signing beside OpenSSH: `ssh-keygen` as second opinion, a real `ssh-agent`, key discovery.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests stop where they can't go on"
)]

use crate::trust::{public, vector, vector_path};
use hangar::base::process::{Run, command};
use hangar::base::redact::Secret;
use hangar::trust::{
    Agent, AgentError, DiscoverError, DiscoveryInput, How, KeyFile, KeyFileError, MachineKey,
    MachineKeyError, MachineRole, Namespace, PublicKey, SignError, Signer, Source, discover,
    verify,
};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use tempfile::TempDir;

/// Copies a key of the vectors, with the permissions that Git can't keep.
fn install(dir: &Path, name: &str, file_name: &str) -> PathBuf {
    let path = dir.join(file_name);
    hangar::base::files::write_atomic(&path, &vector(&format!("keys/{name}")), 0o600).unwrap();
    path
}

fn open(path: &Path) -> Result<KeyFile, KeyFileError> {
    KeyFile::open(path, &mut |_| None)
}

/// Whether `ssh-keygen -Y verify` accepts the signature.
fn keygen_accepts(key: &PublicKey, namespace: Namespace, message: &[u8], sig: &[u8]) -> bool {
    let dir = tempfile::tempdir().unwrap();
    let (allowed, sig_file) = (dir.path().join("allowed"), dir.path().join("sig"));
    let line = format!("someone namespaces=\"{namespace}\" {key}\n");
    hangar::base::files::write_atomic(&allowed, line.as_bytes(), 0o600).unwrap();
    hangar::base::files::write_atomic(&sig_file, sig, 0o600).unwrap();
    let out = Run::new("ssh-keygen")
        .args(["-Y", "verify", "-I", "someone", "-n", namespace.as_str()])
        .arg("-f")
        .arg(&allowed)
        .arg("-s")
        .arg(&sig_file)
        .stdin(message.to_vec())
        .output()
        .expect("ssh-keygen is needed for this test");
    out.status.success()
}

#[test]
fn the_vectors_are_openssh_signatures() {
    let message = vector("message");
    for namespace in Namespace::ALL {
        let signature = vector(&format!("{namespace}.sig"));
        assert!(keygen_accepts(
            &public("ed25519"),
            namespace,
            &message,
            &signature
        ));
    }
    for key in ["sk-ed25519", "sk-p256", "p256"] {
        let signature = vector(&format!("{key}.sig"));
        assert!(
            keygen_accepts(&public(key), Namespace::Event, &message, &signature),
            "{key}"
        );
    }
}

#[test]
fn signatures_from_key_files_verify_here_and_in_openssh() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["ed25519", "p256", "rsa"] {
        let signer = Signer::from_file(open(&install(dir.path(), name, name)).unwrap());
        let signature = signer.sign(Namespace::Approval, b"yes\n").unwrap();
        assert_eq!(*signer.public(), public(name));
        verify(&public(name), Namespace::Approval, b"yes\n", &signature).unwrap();
        let accepts =
            |message| keygen_accepts(&public(name), Namespace::Approval, message, &signature);
        assert!(accepts(b"yes\n"), "{name}");
        assert!(!accepts(b"no\n"), "{name}");
    }
}

#[test]
fn ed25519_signatures_are_those_of_the_vectors() {
    let dir = tempfile::tempdir().unwrap();
    let signer = Signer::from_file(open(&install(dir.path(), "ed25519", "key")).unwrap());
    for namespace in Namespace::ALL {
        let signature = signer.sign(namespace, &vector("message")).unwrap();
        assert_eq!(signature, vector(&format!("{namespace}.sig")));
    }
}

#[test]
fn an_encrypted_key_asks_for_its_passphrase() {
    let dir = tempfile::tempdir().unwrap();
    let path = install(dir.path(), "encrypted", "key");
    assert!(matches!(
        open(&path),
        Err(KeyFileError::NoPassphrase { .. })
    ));
    let mut asked = 0;
    let wrong = KeyFile::open(&path, &mut |_| {
        asked += 1;
        Some(Secret::from("guess".to_string()))
    });
    assert!(matches!(wrong, Err(KeyFileError::WrongPassphrase { .. })));
    assert_eq!(asked, 3);
    let right = KeyFile::open(&path, &mut |_| {
        Some(Secret::from("open sesame".to_string()))
    });
    let signature = Signer::from_file(right.unwrap())
        .sign(Namespace::Event, b"x")
        .unwrap();
    verify(&public("encrypted"), Namespace::Event, b"x", &signature).unwrap();
}

#[test]
fn key_files_that_others_can_read_or_of_old_formats_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = install(dir.path(), "ed25519", "key");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let error = open(&path).unwrap_err();
    assert!(matches!(
        error,
        KeyFileError::Permissions { mode: 0o640, .. }
    ));
    assert!(error.to_string().contains("chmod 600"));
    let pem = open(&install(dir.path(), "pem", "pem")).unwrap_err();
    assert!(matches!(pem, KeyFileError::OldFormat { .. }));
    let public = open(&install(dir.path(), "ed25519.pub", "public")).unwrap_err();
    assert!(matches!(public, KeyFileError::Malformed { .. }));
}

#[test]
fn machine_keys_are_made_once_and_kept_private() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("hangar/repo");
    assert!(matches!(
        MachineKey::load(&data, MachineRole::Grader),
        Err(MachineKeyError::Missing { .. })
    ));
    let first = MachineKey::load_or_create(&data, MachineRole::Grader).unwrap();
    let again = MachineKey::load_or_create(&data, MachineRole::Grader).unwrap();
    let worker = MachineKey::load_or_create(&data, MachineRole::Worker).unwrap();
    assert_eq!(first.public(), again.public());
    assert_ne!(first.public(), worker.public());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    assert_eq!(mode(&data.join("grader")), 0o600);
    let signature = first.signer().sign(Namespace::Grade, b"x").unwrap();
    assert!(keygen_accepts(
        first.public(),
        Namespace::Grade,
        b"x",
        &signature
    ));

    fs::set_permissions(data.join("grader"), fs::Permissions::from_mode(0o644)).unwrap();
    assert!(matches!(
        MachineKey::load_or_create(&data, MachineRole::Grader),
        Err(MachineKeyError::File(KeyFileError::Permissions { .. }))
    ));
}

#[test]
fn ssh_keygen_signs_what_it_gets_on_standard_input() {
    let dir = tempfile::tempdir().unwrap();
    let path = install(dir.path(), "ed25519", "key");
    let signer = Signer::from_program(&path, public("ed25519"));
    let signature = signer.sign(Namespace::Event, &vector("message")).unwrap();
    assert_eq!(signature, vector("hangar-event.sig"));
    // What the program returns is checked like any other signature.
    let wrong = Signer::from_program(&path, public("rsa"));
    assert!(matches!(
        wrong.sign(Namespace::Event, b"x"),
        Err(SignError::SelfCheck(_))
    ));
    let absent = Signer::from_program(&dir.path().join("absent"), public("rsa"));
    assert!(matches!(
        absent.sign(Namespace::Event, b"x"),
        Err(SignError::Program(_))
    ));
}

/// An agent that answers every request with `answer`, for two connections.
fn false_agent(answer: Vec<u8>) -> (TempDir, Agent) {
    use std::io::{Read as _, Write as _};
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("socket");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().take(2) {
            let mut stream = stream.unwrap();
            let mut head = [0; 5];
            let _ = stream.read_exact(&mut head);
            let _ = stream.write_all(&answer);
        }
    });
    (dir, Agent::new(socket))
}

#[test]
fn answers_of_a_false_agent_are_not_believed() {
    let framed = |body: &[u8]| {
        let len = u32::try_from(body.len()).unwrap().to_be_bytes();
        [len.as_slice(), body].concat()
    };
    for (name, answer) in [
        ("huge", vec![0xff; 8]),
        ("empty", framed(b"")),
        ("unknown", framed(&[99])),
        (
            "more keys than bytes",
            framed(&[12, 0xff, 0xff, 0xff, 0xff]),
        ),
        (
            "long string",
            framed(&[12, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff]),
        ),
        ("trailing", framed(&[12, 0, 0, 0, 0, 1])),
    ] {
        let (_dir, agent) = false_agent(answer);
        assert!(matches!(agent.keys(), Err(AgentError::Malformed)), "{name}");
    }
    let (_dir, agent) = false_agent(framed(&[12, 0, 0])[..5].to_vec());
    assert!(matches!(agent.keys(), Err(AgentError::Gone { .. })));
    // A well-formed signature that is not one.
    let mut body = vec![14, 0, 0, 0, 83, 0, 0, 0, 11];
    body.extend(b"ssh-ed25519");
    body.extend([0, 0, 0, 64]);
    body.extend([7; 64]);
    let (_dir, agent) = false_agent(framed(&body));
    let error = Signer::from_agent(agent, public("ed25519"))
        .sign(Namespace::Event, b"x")
        .unwrap_err();
    assert!(matches!(error, SignError::SelfCheck(_)), "{error}");
}

/// A real ssh-agent on a socket in a temporary folder, ended with the value.
struct TestAgent {
    child: Child,
    dir: TempDir,
}

impl TestAgent {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let child = command(Path::new("ssh-agent"))
            .args(["-D", "-a"])
            .arg(dir.path().join("socket"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("ssh-agent is needed for this test");
        let agent = Self { child, dir };
        for _ in 0..2000 {
            if agent.client().keys().is_ok() {
                return agent;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        panic!("ssh-agent did not open its socket");
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("socket")
    }

    fn client(&self) -> Agent {
        Agent::new(self.socket())
    }

    fn add(&self, name: &str) {
        let path = install(self.dir.path(), name, name);
        self.ssh_add(&path);
    }

    fn ssh_add(&self, path: &Path) {
        let out = Run::new("ssh-add")
            .arg(path)
            .env("SSH_AUTH_SOCK", self.socket())
            .output()
            .unwrap();
        assert!(out.status.success(), "{}", out.stderr_text());
    }
}

impl Drop for TestAgent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn an_agent_signs_with_every_kind_of_key() {
    let agent = TestAgent::start();
    for name in ["ed25519", "p256", "rsa"] {
        agent.add(name);
        let signer = Signer::from_agent(agent.client(), public(name));
        let signature = signer.sign(Namespace::Event, b"x").unwrap();
        verify(&public(name), Namespace::Event, b"x", &signature).unwrap();
        assert!(keygen_accepts(
            &public(name),
            Namespace::Event,
            b"x",
            &signature
        ));
    }
    assert_eq!(agent.client().keys().unwrap().len(), 3);
}

#[test]
fn an_agent_without_the_key_and_no_agent_are_told_apart() {
    let agent = TestAgent::start();
    let sign = |agent| Signer::from_agent(agent, public("ed25519")).sign(Namespace::Event, b"x");
    assert!(matches!(
        sign(agent.client()),
        Err(SignError::Agent(AgentError::NotHeld(_)))
    ));
    let nowhere = Agent::new(agent.dir.path().join("nowhere"));
    assert!(matches!(
        sign(nowhere),
        Err(SignError::Agent(AgentError::Gone { .. }))
    ));
}

/// A home folder with these keys of the vectors in `.ssh`.
fn home(keys: &[(&str, &str)]) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    let ssh = home.path().join(".ssh");
    hangar::base::files::create_private_dir(&ssh).unwrap();
    for (name, file_name) in keys {
        install(&ssh, name, file_name);
    }
    home
}

fn input(home: &TempDir) -> DiscoveryInput {
    DiscoveryInput {
        home: Some(home.path().to_owned()),
        ..DiscoveryInput::default()
    }
}

fn git(home: &TempDir, signing_key: &str) -> DiscoveryInput {
    DiscoveryInput {
        signing_key: Some(signing_key.into()),
        gpg_format: Some("ssh".into()),
        ..input(home)
    }
}

#[test]
fn files_are_found_in_the_stated_order() {
    let home = home(&[
        ("rsa", "id_rsa"),
        ("ed25519", "id_ed25519"),
        ("encrypted", "id_another"),
        ("p256", "id_ecdsa"),
        ("ed25519.pub", "id_ed25519.pub"),
        ("pem", "id_old"),
    ]);
    let found = discover(&input(&home)).unwrap();
    let keys: Vec<_> = found.candidates.iter().map(|c| c.public.clone()).collect();
    assert_eq!(
        keys,
        [
            public("ed25519"),
            public("p256"),
            public("rsa"),
            public("encrypted")
        ]
    );
    assert!(matches!(
        found.candidates[3].how,
        How::File {
            encrypted: true,
            ..
        }
    ));
    assert_eq!(found.skipped.len(), 1);
    let signer = found.candidates[0].open(&mut |_| None).unwrap();
    signer.sign(Namespace::Event, b"x").unwrap();
    assert!(
        discover(&DiscoveryInput::default())
            .unwrap()
            .candidates
            .is_empty()
    );
}

#[test]
fn the_signing_key_of_git_comes_first_in_every_spelling() {
    let home = home(&[("ed25519", "id_ed25519"), ("p256", "elsewhere")]);
    fs::copy(
        vector_path("keys/p256.pub"),
        home.path().join(".ssh/elsewhere.pub"),
    )
    .unwrap();
    let absolute = home.path().join(".ssh/elsewhere");
    for text in [
        "~/.ssh/elsewhere",
        "~/.ssh/elsewhere.pub",
        absolute.to_str().unwrap(),
    ] {
        let found = discover(&git(&home, text)).unwrap();
        assert_eq!(found.candidates[0].public, public("p256"), "{text}");
        assert_eq!(found.candidates[0].source, Source::GitConfig);
        assert_eq!(found.candidates.len(), 2);
    }
    let literal = public("ed25519").to_string();
    for text in [literal.clone(), format!("key::{literal}")] {
        let found = discover(&git(&home, &text)).unwrap();
        assert_eq!(found.candidates[0].public, public("ed25519"));
        assert!(matches!(found.candidates[0].how, How::File { .. }));
    }
    let openpgp = DiscoveryInput {
        gpg_format: None,
        ..git(&home, "~/.ssh/elsewhere")
    };
    assert_eq!(discover(&openpgp).unwrap().candidates.len(), 1);
}

#[test]
fn a_signing_key_that_cannot_be_used_is_an_error_and_not_replaced() {
    let home = home(&[("ed25519", "id_ed25519")]);
    let literal = public("rsa").to_string();
    assert!(matches!(
        discover(&git(&home, &literal)),
        Err(DiscoverError::NoPrivateHalf(_))
    ));
    assert!(matches!(
        discover(&git(&home, "~/.ssh/absent")),
        Err(DiscoverError::File(KeyFileError::Io { .. }))
    ));
    let dsa = String::from_utf8(vector("keys/dsa.pub")).unwrap();
    assert!(matches!(
        discover(&git(&home, &dsa)),
        Err(DiscoverError::Key(_))
    ));
}

#[test]
fn the_agent_serves_encrypted_files_and_its_own_keys() {
    let agent = TestAgent::start();
    let home = home(&[("encrypted", "id_ed25519")]);
    let with_agent = |base: DiscoveryInput| DiscoveryInput {
        agent_socket: Some(agent.socket()),
        ..base
    };
    // The agent gets the encrypted key in the clear, as `ssh-add` would after asking.
    let plain = agent.dir.path().join("plain");
    fs::copy(home.path().join(".ssh/id_ed25519"), &plain).unwrap();
    let out = Run::new("ssh-keygen")
        .args(["-q", "-p", "-P", "open sesame", "-N", "", "-f"])
        .arg(&plain)
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", out.stderr_text());
    let before = discover(&with_agent(input(&home))).unwrap();
    assert!(matches!(
        before.candidates[0].how,
        How::File {
            encrypted: true,
            ..
        }
    ));

    agent.ssh_add(&plain);
    agent.add("rsa");
    let found = discover(&with_agent(input(&home))).unwrap();
    assert_eq!(found.candidates[0].how, How::Agent(agent.client()));
    assert!(matches!(found.candidates[0].source, Source::File(_)));
    assert_eq!(found.candidates[1].public, public("rsa"));
    assert!(matches!(found.candidates[1].source, Source::Agent(_)));
    for candidate in &found.candidates {
        let signer = candidate.open(&mut |_| panic!("the agent has it")).unwrap();
        signer.sign(Namespace::Event, b"x").unwrap();
    }
    let literal = public("rsa").to_string();
    let found = discover(&with_agent(git(&home, &literal))).unwrap();
    assert_eq!(found.candidates[0].how, How::Agent(agent.client()));
}
