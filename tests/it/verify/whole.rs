//! The real flow, from a writer in its sandbox to a delivered branch, verified by the binary.

use super::forge::CONFIG;
use crate::common::git::git;
use crate::flow::world::World;
use hangar::flow::drive::{Agents, Stop, drive};
use hangar::model::approval::Action;
use std::process::Command;

const TEST: &str = "#!/bin/sh\ntest \"$(sh ./calc.sh 5 3)\" = 2\n";
const NEVER: &str = "#!/bin/sh\ntest \"$(sh ./calc.sh 5 3)\" = 99\n";
const MAP: &str = r#"{"format": 1, "criteria": {"c1": ["tests/sub.sh"]}, "others": [], "sentinels": ["tests/never.sh"], "notes": ""}"#;

#[test]
fn what_the_flow_delivers_is_accepted_after_a_rejected_version_and_a_wrong_patch() {
    let world = World::new(&[("calc.sh", "echo 0\n"), ("hangar.toml", CONFIG)]);
    world.script("writer", "writer/1/out/sealed/tests/sub.sh", TEST);
    world.script("writer", "writer/1/out/sealed/tests/never.sh", NEVER);
    world.script("writer", "writer/1/out/sealed/criteria.json", MAP);
    world.script("coder", "implementer/1/src/calc.sh", "echo $(($1 + $2))\n");
    world.script("coder", "implementer/2/src/calc.sh", "echo $(($1 - $2))\n");
    let store = world.store();
    let id = world.task(&store, "Subtract", &["5 3 prints 2"]);
    let host = world.host();
    drive(&host, &store, &id, None, Agents::Start).unwrap();
    world.decide(&id, Action::Reject, "once more");
    drive(&host, &store, &id, None, Agents::Start).unwrap();
    world.decide(&id, Action::Approve, "");
    let stop = drive(&host, &store, &id, None, Agents::Start).unwrap();
    assert!(matches!(stop, Stop::Delivered(_)), "{stop:?}");
    let out = Command::new(env!("CARGO_BIN_EXE_hangar"))
        .current_dir(world.repo_dir())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", world.dir.path())
        .args(["verify", "hangar/KAN-80"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert_eq!(out.status.code(), Some(0), "{text}");
    for words in [
        "exact",
        "2 versions sealed",
        "payload not opened (no key here)",
        "valid then      yes",
        "acceptable now  yes",
        "A stranger would accept this.",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    git(&world.repo_dir(), &["fsck", "--strict"]);
}
