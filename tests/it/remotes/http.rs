use super::http_server::{Access, Server, silent};
use super::{refuses_one, works_like_a_folder};
use crate::common::hub::Hub;
use hangar::git::{Error, RemoteTrouble, Repository};
use std::sync::atomic::Ordering;
use std::time::Duration;

fn serve(access: Access) -> (Hub, std::path::PathBuf, Server) {
    let (hub, first) = Hub::new();
    hub.env
        .git(&hub.bare, &["config", "http.receivepack", "true"]);
    let server = Server::start(hub.env.root(), access);
    (hub, first, server)
}

#[test]
#[ignore = "heavy: dozens of requests to git http-backend"]
fn sync_over_http() {
    let (hub, first, server) = serve(Access::Open);
    works_like_a_folder(&hub, &first, &server.address("hub.git"));
    // A body above the least buffer comes in chunks.
    hub.env.git(&first, &["config", "http.postBuffer", "65536"]);
    let task = hub.task(&first, "Large");
    let mut state = 1_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        format!("{:08x}", state >> 32)
    };
    for _ in 0..2 {
        let text: String = (0..12_000).map(|_| next()).collect();
        hub.env
            .hangar(&first, &["task", "comment", &task, &text])
            .success();
    }
    hub.sync(&first).success();
    refuses_one(&hub, &first);
}

#[test]
#[ignore = "heavy: git http-backend"]
fn a_first_push_over_http_and_one_that_is_cut_off() {
    let (hub, first, server) = serve(Access::Open);
    let env = &hub.env;
    env.git(env.root(), &["init", "-q", "--bare", "new.git"]);
    let new = env.root().join("new.git");
    env.git(&new, &["config", "http.receivepack", "true"]);
    hub.task(&first, "Shared");
    let address = server.address("new.git");
    server.cut.store(true, Ordering::SeqCst);
    let report = env
        .hangar(&first, &["sync", &address, "--json"])
        .exits(7)
        .json();
    assert_eq!(
        report["unpublished"].as_array().unwrap().len(),
        2,
        "{report}"
    );
    assert!(
        report["remedies"]
            .as_array()
            .is_some_and(|all| !all.is_empty())
    );
    assert_eq!(env.git(&new, &["for-each-ref"]), "");
    server.cut.store(false, Ordering::SeqCst);
    let report = env
        .hangar(&first, &["sync", &address, "--json"])
        .success()
        .json();
    assert_eq!(report["pushed"].as_array().unwrap().len(), 2, "{report}");
    env.git(&new, &["fsck", "--strict"]);
}

#[test]
#[ignore = "heavy: git http-backend"]
fn without_a_login_nothing_hangs_and_with_one_everything_works() {
    let (hub, first, server) = serve(Access::Login);
    let env = &hub.env;
    env.git(
        &first,
        &["remote", "set-url", "origin", &server.address("hub.git")],
    );
    let ran = env.hangar(&first, &["sync"]).exits(7);
    assert!(ran.stderr.contains("does not let you in"), "{ran}");
    assert!(ran.stderr.contains("never asks for a password"), "{ran}");
    // A wrong one, in the address: it is not shown.
    let wrong = server
        .address("hub.git")
        .replace("//", "//me:wrong-secret@");
    let ran = env.hangar(&first, &["sync", &wrong]).exits(7);
    assert!(!ran.stderr.contains("wrong-secret"), "{ran}");
    let right = server.address("hub.git").replace("//", "//me:secret@");
    let report = env
        .hangar(&first, &["sync", &right, "--json"])
        .success()
        .json();
    assert_eq!(report["readers"], "restricted");
    assert!(!report.to_string().contains("me:secret"), "{report}");
    let memory = std::fs::read_to_string(first.join(".git/hangar/remotes.toml")).unwrap();
    assert!(!memory.contains("secret"), "{memory}");
}

#[test]
#[ignore = "heavy: git http-backend"]
fn a_server_that_forbids_pushes_is_still_read() {
    let (hub, first, server) = serve(Access::ReadOnly);
    let second = super::clone_at(&hub, "second", &server.address("hub.git"));
    let task = hub.task(&first, "Shared");
    hub.sync(&first).success();
    hub.sync(&second).success();
    assert_eq!(hub.show(&second, &task)["title"], "Shared");
    hub.edit(&second, &task, "Mine");
    let report = hub.sync(&second).exits(7).json();
    assert!(
        report["not_pushed"].as_str().unwrap().contains("403"),
        "{report}"
    );
    let unpublished = serde_json::json!([crate::common::hub::task_ref(&task)]);
    assert_eq!(report["unpublished"], unpublished);
    let text = report["remedies"].to_string();
    // It holds the state already, so another prefix would not help.
    assert!(
        text.contains("the right to push") && !text.contains("--prefix"),
        "{text}"
    );
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    let (hub, first) = Hub::new();
    let address = silent();
    let repo = Repository::discover(&first).unwrap();
    let asked = repo.list_remote(&address, &["refs/*"], Duration::from_millis(300));
    let Err(Error::Remote { trouble, .. }) = asked else {
        panic!("{asked:?}");
    };
    assert_eq!(trouble, RemoteTrouble::Silent);
    drop(hub);
}
