//! The first push to a remote that anyone can read is said, once.

use super::http_server::{Access, Server};
use crate::common::hub::Hub;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

const SAID: &str = "anyone who reaches";

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_folder_that_every_user_reads_is_said_once() {
    let (hub, first) = Hub::new();
    let env = &hub.env;
    // In a closed folder nobody else reads.
    mode(env.root(), 0o700);
    fs::remove_file(first.join(".git/hangar/remotes.toml")).unwrap();
    assert_eq!(env.json(&first, &["sync"])["readers"], "restricted");
    let open = env.root().join("open.git");
    env.git(env.root(), &["clone", "-q", "--bare", "first", "open.git"]);
    let address = open.display().to_string();
    mode(env.root(), 0o755);
    mode(&open, 0o755);
    // The memory is of an address; another one is asked anew.
    env.git(&first, &["remote", "set-url", "origin", &address]);
    let ran = env.hangar(&first, &["sync", "--json"]).success();
    assert!(
        ran.stderr.contains(SAID) && ran.stderr.contains("`origin`"),
        "{ran}"
    );
    assert_eq!(ran.json()["readers"], "anyone");
    let ran = env.hangar(&first, &["sync", "--json"]).success();
    assert!(!ran.stderr.contains(SAID), "{ran}");
    assert_eq!(ran.json()["readers"], "anyone");
}

#[test]
#[ignore = "heavy: git http-backend"]
fn a_server_that_answers_without_a_login_is_said_once() {
    let (hub, first) = Hub::new();
    let env = &hub.env;
    env.git(&hub.bare, &["config", "http.receivepack", "true"]);
    let server = Server::start(env.root(), Access::Open);
    // The login in the address is not used to ask.
    let address = server.address("hub.git").replace("//", "//me:secret@");
    for said in [true, false] {
        let ran = env.hangar(&first, &["sync", &address]).success();
        assert_eq!(ran.stderr.contains(SAID), said, "{ran}");
        assert!(!ran.stderr.contains("secret"), "{ran}");
    }
}
