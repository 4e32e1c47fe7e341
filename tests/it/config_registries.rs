//! Package clients are asked; stand-ins for them print what the real ones do.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use hangar::base::files::write_atomic;
use hangar::config::Error;
use hangar::config::registries::{Client, Machine, ask, ask_all};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

struct Host {
    dir: tempfile::TempDir,
    toolchain: BTreeMap<String, PathBuf>,
}

impl Host {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            toolchain: BTreeMap::new(),
        }
    }

    fn client(&mut self, name: &str, script: &str) {
        let path = self.dir.path().join(name);
        write_atomic(&path, format!("#!/bin/sh\n{script}\n").as_bytes(), 0o755).unwrap();
        self.toolchain.insert(name.into(), path);
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        write_atomic(&path, text.as_bytes(), 0o600).unwrap();
        path
    }

    fn env(&self, more: &[(&str, &str)]) -> hangar::config::paths::Env {
        let home = ("HOME".into(), self.dir.path().as_os_str().to_owned());
        let more = more.iter().map(|(name, value)| (name.into(), value.into()));
        std::iter::once(home).chain(more).collect()
    }
}

#[test]
fn all_clients_together_make_one_setup_without_credentials_in_the_open() {
    let mut host = Host::new();
    host.client("pip", "echo \"global.index-url='$PIP_INDEX_URL'\"");
    let npmrc = host.file(".npmrc", "//npm.example.org/:_authToken=${NPM_TOKEN}\n");
    host.client(
        "npm",
        &format!(
            "echo registry=https://npm.example.org/; echo userconfig={}",
            npmrc.display()
        ),
    );
    host.client("cargo", "exit 1");
    host.client("go", "echo \"$GOPROXY\"; echo off");
    host.file(
        ".cargo/config.toml",
        "[source.crates-io]\nreplace-with = \"m\"\n[source.m]\nregistry = \"sparse+https://cargo.example.org/\"\n",
    );
    let certificate = host.file("ca.pem", "x");
    let env = host.env(&[
        ("PIP_INDEX_URL", "https://me:secret1@pip.example.org/simple"),
        ("NPM_TOKEN", "secret2"),
        ("GOPROXY", "https://me:secret3@go.example.org,direct"),
        ("SSL_CERT_FILE", certificate.to_str().unwrap()),
    ]);
    let machine = Machine {
        env: &env,
        toolchain: &host.toolchain,
        inside: Path::new("/hangar/clients"),
    };
    let more = ["files.example.org:443".parse().unwrap()];
    let setup = ask_all(&machine, &more).unwrap();
    let hosts: Vec<_> = setup.hosts.iter().map(ToString::to_string).collect();
    assert_eq!(
        hosts,
        [
            "pip.example.org:443",
            "npm.example.org:443",
            "cargo.example.org:443",
            "go.example.org:443",
            "files.example.org:443"
        ]
    );
    let all = setup
        .files
        .iter()
        .map(|file| file.bytes.expose())
        .collect::<Vec<_>>()
        .concat();
    let all = String::from_utf8(all).unwrap();
    assert!(
        all.contains("secret1") && all.contains("_authToken=secret2") && all.contains("secret3"),
        "{all}"
    );
    assert!(!format!("{setup:?}").contains("secret"));
    assert_eq!(setup.read, std::slice::from_ref(&certificate));
    assert_eq!(setup.env["SSL_CERT_FILE"], certificate.to_str().unwrap());
}

#[test]
fn a_client_sees_its_own_variables_and_no_others() {
    let mut host = Host::new();
    host.client("pip", "test -z \"$API_KEY\" && test -n \"$HOME\" || exit 1");
    let env = host.env(&[("API_KEY", "secret")]);
    let machine = Machine {
        env: &env,
        toolchain: &host.toolchain,
        inside: Path::new("/x"),
    };
    assert!(ask(Client::Pip, &machine).unwrap().is_some());
}

#[test]
fn what_a_failing_client_prints_is_not_quoted() {
    let mut host = Host::new();
    host.client(
        "npm",
        "echo https://me:secret@npm.example.org; echo secret >&2; exit 3",
    );
    let env = host.env(&[]);
    let machine = Machine {
        env: &env,
        toolchain: &host.toolchain,
        inside: Path::new("/x"),
    };
    let error = ask(Client::Npm, &machine).unwrap_err();
    assert!(matches!(error, Error::Client { client: "npm", .. }));
    assert!(!format!("{error:?} {error}").contains("secret"));
}

#[test]
fn a_client_that_is_not_there_is_none() {
    let mut host = Host::new();
    host.toolchain
        .insert("pip".into(), host.dir.path().join("none"));
    let env = host.env(&[]);
    let machine = Machine {
        env: &env,
        toolchain: &host.toolchain,
        inside: Path::new("/x"),
    };
    assert!(ask(Client::Pip, &machine).unwrap().is_none());
}
