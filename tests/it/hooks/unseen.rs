//! `pre-receive`: nothing lies where nobody would judge it, and nothing grows by what is there already.

use super::receive::{guarded_hub, join};
use super::server::Server;
use crate::common::git::git;
use crate::common::hub::task_ref;

/// Such a server lets nothing be deleted; who asks for a move is told who can do it, and how.
#[test]
fn a_move_to_branches_is_done_on_the_server_and_every_clone_follows() {
    let (hub, first) = guarded_hub();
    let task = hub.task(&first, "Shared");
    let sync = |args: &[&str]| hub.env.hangar_found(&first, &[&["sync"], args].concat());
    sync(&[]).success();
    let ran = sync(&["--prefix", "branches"]).exits(7);
    let flat = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let command = "hangar init --prefix branches";
    let hint = format!("whoever runs it moves them there (`{command}` in that repository)");
    assert!(flat.contains(&hint), "{ran}");
    assert!(!flat.contains("hangar verify"), "{ran}");
    let list = || {
        let args = ["for-each-ref", "--format=%(refname)"];
        hub.env.git(&hub.bare, &args)
    };
    assert!(!list().contains("hangar-state"), "{}", list());
    let words: Vec<_> = command.split(' ').skip(1).collect();
    hub.env.hangar_found(&hub.bare, &words).success();
    assert!(!list().contains("refs/hangar/"), "{}", list());
    hub.edit(&first, &task, "Later");
    let report = sync(&["--json"]).success().json();
    assert_eq!(report["prefix"], "refs/heads/hangar-state/");
    assert_eq!(report["pushed"], serde_json::json!([task_ref(&task)]));
}

/// Nobody would judge it there, and every clone would meet it.
#[test]
fn nothing_lies_below_the_prefix_that_is_not_in_use() {
    let server = Server::full();
    let (events, id) = (server.forged.events(), server.forged.id.to_string());
    for own in [format!("tasks/{id}"), "notes".to_owned()] {
        let name = format!("refs/heads/hangar-state/{own}");
        server
            .push(&[&format!("{events}:{name}")])
            .refused(&name, "lies under refs/hangar/");
        // What was there before may go.
        git(&server.hub, &["update-ref", &name, &events]);
        server.push(&[&format!(":{name}")]).done();
    }
    server.push(&["main:refs/heads/hangar-states"]).done();
}

#[test]
fn copies_of_what_is_there_make_no_ref_longer() {
    let server = Server::full();
    let forged = &server.forged;
    // A sealed version that comes again is refused for its number.
    let kinds = forged.kinds().into_iter();
    for (name, _) in kinds.filter(|(_, kind)| *kind != "manifest") {
        let tree = forged.git(&["rev-parse", &format!("{name}^{{tree}}")]);
        server.refuses(&name, "only copies of documents", || {
            let copy = forged.git(&["commit-tree", &tree, "-p", &name, "-m", "x"]);
            let copy = forged.git(&["commit-tree", &tree, "-p", &copy, "-m", "y"]);
            forged.git(&["update-ref", &name, &copy]);
        });
    }
    // Two sides that hold the same are no such thing.
    let events = forged.events();
    let (head, before) = (server.head(&events), format!("{events}~1"));
    let tree = forged.git(&["rev-parse", &format!("{events}^{{tree}}")]);
    let side = forged.git(&["commit-tree", &tree, "-p", &before, "-m", "x"]);
    let joined = join(forged, &head, &side);
    forged.git(&["update-ref", &events, &joined]);
    server.push(&[&format!("{events}:{events}")]).done();
}
