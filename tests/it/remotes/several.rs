//! Which remote is meant where none is named.

use crate::common::TestEnv;
use crate::common::hub::{Hub, task_ref};

fn bare(env: &TestEnv, name: &str) -> String {
    env.git(env.root(), &["init", "-q", "--bare", name]);
    env.root().join(name).display().to_string()
}

#[test]
fn the_remote_that_is_meant() {
    let (hub, first) = Hub::new();
    let env = &hub.env;
    let git = |args: &[&str]| env.git(&first, args);
    let taken = |vars: &[(&str, &str)]| {
        let ran = env.hangar_with(&first, &["sync", "--json"], vars, "");
        ran.success().json()["remote"].as_str().unwrap().to_owned()
    };
    // One, whatever it is called.
    git(&["remote", "rename", "origin", "team"]);
    assert_eq!(taken(&[]), "team");
    // Several and none called origin: it has to be named.
    git(&["remote", "add", "upstream", &bare(env, "upstream.git")]);
    let ran = env.hangar(&first, &["sync"]).exits(2);
    assert!(ran.stderr.contains("team, upstream"), "{ran}");
    assert!(ran.stderr.contains("hangar sync NAME"), "{ran}");
    env.hangar(&first, &["sync", "upstream"]).success();
    // Nothing else fails for that.
    env.hangar(&first, &["verify", "--all"]).success();
    git(&["remote", "add", "origin", &bare(env, "fork.git")]);
    assert_eq!(taken(&[]), "origin");
    env.hangar(&first, &["config", "set", "remote.name", "upstream"])
        .success();
    assert_eq!(taken(&[]), "upstream");
    assert_eq!(taken(&[("HANGAR_REMOTE", "team")]), "team");
    // None.
    for name in ["team", "upstream", "origin"] {
        git(&["remote", "remove", name]);
    }
    env.hangar(&first, &["config", "set", "remote.name", "origin"])
        .success();
    let ran = env.hangar(&first, &["sync"]).exits(3);
    assert!(ran.stderr.contains("no remote called `origin`"), "{ran}");
}

#[test]
fn the_arbiter_is_meant_before_origin() {
    let (hub, first) = Hub::new();
    let env = &hub.env;
    let upstream = bare(env, "upstream.git");
    env.git(&first, &["remote", "add", "upstream", &upstream]);
    assert_eq!(hub.sync(&first).success().json()["remote"], "origin");
    env.hangar(&first, &["policy", "edit", "--arbiter", &upstream])
        .success();
    assert_eq!(hub.sync(&first).success().json()["remote"], "upstream");
    env.git(&first, &["remote", "remove", "upstream"]);
    assert_eq!(
        hub.sync(&first).success().json()["remote"],
        upstream.as_str()
    );
}

#[test]
fn two_remotes_get_the_same_and_news_of_one_reach_the_other() {
    let (hub, first) = Hub::new();
    let env = &hub.env;
    let upstream = bare(env, "upstream.git");
    env.git(&first, &["remote", "add", "upstream", &upstream]);
    env.hangar(&first, &["sync", "upstream"]).success();
    let second = hub.clone("second");
    let task = hub.task(&second, "From afar");
    hub.sync(&second).success();
    hub.sync(&first).success();
    let report = env
        .hangar(&first, &["sync", "upstream", "--json"])
        .success()
        .json();
    assert_eq!(report["pushed"], serde_json::json!([task_ref(&task)]));
}
