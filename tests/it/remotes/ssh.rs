use super::ssh_server::Server;
use super::{refuses_one, refusing, works_like_a_folder};
use crate::common::hub::Hub;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

fn serve() -> (Hub, PathBuf, Server) {
    let (hub, first) = Hub::new();
    let server = Server::start(&hub.env);
    let key = hub.env.home().join(".ssh/id_ed25519");
    let command = server.command(&key);
    let args = ["config", "--global", "core.sshCommand", &command];
    hub.env.git(&first, &args);
    (hub, first, server)
}

/// From now on the clone talks to the server.
fn sync_by(hub: &Hub, first: &Path, server: &Server) {
    let address = server.address(&hub.bare);
    hub.env
        .git(first, &["remote", "set-url", "origin", &address]);
}

#[test]
#[ignore = "heavy: dozens of connections to sshd"]
fn sync_over_ssh() {
    let (hub, first, server) = serve();
    works_like_a_folder(&hub, &first, &server.address(&hub.bare));
    refuses_one(&hub, &first);
    let memory = std::fs::read_to_string(first.join(".git/hangar/remotes.toml")).unwrap();
    assert!(memory.contains("unknown"), "{memory}");
}

#[test]
#[ignore = "heavy: sshd"]
fn a_key_that_is_not_let_in_and_an_unknown_host_end_with_what_to_do() {
    let (hub, first, server) = serve();
    let env = &hub.env;
    sync_by(&hub, &first, &server);
    hub.sync(&first).success();
    env.add_key("other");
    let with = |command: &str| {
        let vars = [("GIT_SSH_COMMAND", command)];
        env.hangar_with(&first, &["sync"], &vars, "").exits(7)
    };
    let ran = with(&server.command(&env.home().join(".ssh/other")));
    assert!(ran.stderr.contains("does not let you in"), "{ran}");
    assert!(ran.stderr.contains("ssh-add"), "{ran}");
    let unknown = server.command(&env.home().join(".ssh/id_ed25519"));
    let ran = with(&unknown.replace("known_hosts", "no_hosts"));
    assert!(ran.stderr.contains("is not known to ssh"), "{ran}");
    assert!(ran.stderr.contains("compare the fingerprint"), "{ran}");
}

/// With a terminal, ssh asks there whatever its input is: a program in the background stops for ever.
#[test]
#[ignore = "heavy: sshd"]
fn a_terminal_is_never_asked() {
    let (hub, first, server) = serve();
    let env = &hub.env;
    sync_by(&hub, &first, &server);
    let key = env.home().join(".ssh/id_ed25519");
    let command = server.command(&key).replace("known_hosts", "no_hosts");
    // A session with a terminal of its own.
    let line = format!("{} sync", env!("CARGO_BIN_EXE_hangar"));
    let mut script = env.command("script", &first);
    script
        .args(["-q", "-e", "-c", &line, "/dev/null"])
        .env("GIT_SSH_COMMAND", command)
        .stdin(std::process::Stdio::null());
    // One that waits for an answer is stopped in the end, and says something else.
    let out = script.output().unwrap();
    assert_eq!(out.status.code(), Some(7));
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(said.contains("is not known to ssh"), "{said}");
}

#[test]
#[ignore = "heavy: sshd"]
fn a_server_that_goes_away_in_mid_push_loses_nothing() {
    let (hub, first, server) = serve();
    let env = &hub.env;
    sync_by(&hub, &first, &server);
    hub.sync(&first).success();
    let before = refs(&hub, &hub.bare);
    let task = hub.task(&first, "Shared");
    let waiting = env.root().join("waiting");
    // The server has everything and has not moved a ref yet.
    refusing::hook(
        &hub.bare,
        "pre-receive",
        &format!("touch '{}'; sleep 2; exit 1", waiting.display()),
    );
    let ran = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !waiting.exists() {
                std::thread::sleep(Duration::from_millis(5));
            }
            server.cut.store(true, Ordering::SeqCst);
        });
        hub.sync(&first)
    });
    let report = ran.exits(7).json();
    assert_eq!(
        report["unpublished"],
        serde_json::json!([crate::common::hub::task_ref(&task)])
    );
    assert_eq!(refs(&hub, &hub.bare), before);
    std::fs::remove_file(hub.bare.join("hooks/pre-receive")).unwrap();
    server.cut.store(false, Ordering::SeqCst);
    let report = hub.sync(&first).success().json();
    assert_eq!(
        report["pushed"],
        serde_json::json!([crate::common::hub::task_ref(&task)])
    );
    env.git(&hub.bare, &["fsck", "--strict"]);
}

fn refs(hub: &Hub, dir: &Path) -> String {
    hub.env
        .git(dir, &["for-each-ref", "--format=%(refname) %(objectname)"])
}
