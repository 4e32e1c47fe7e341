//! What somebody who can push puts on top of a ref of the hub, or in its place: it is named, has no effect,
//! nothing that is signed is lost with it, and the ref's news go on.

use super::cli_help::validate;
use super::common::git::git_input;
use super::common::hub::{Hub, task_ref};
use super::hooks::{path, server};
use super::remotes::refusing::hook;
use super::verify::second::ask;
use serde_json::json;
use std::path::{Path, PathBuf};

const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
const POLICY: &str = "refs/hangar/policy";

/// A hub with one shared task, and two clones of it.
struct Scene {
    hub: Hub,
    first: PathBuf,
    second: PathBuf,
    task: String,
}

impl Scene {
    fn new() -> Self {
        let (hub, first) = Hub::new();
        let task = hub.task(&first, "Shared");
        hub.sync(&first).success();
        let second = hub.clone("second");
        Self {
            hub,
            first,
            second,
            task,
        }
    }

    fn bare(&self, args: &[&str]) -> String {
        self.hub.env.git(&self.hub.bare, args)
    }

    fn there(&self, name: &str) -> String {
        self.bare(&["rev-parse", name])
    }

    fn set(&self, name: &str, object: &str) {
        self.bare(&["update-ref", name, object]);
    }

    fn empty(&self, on: &str, count: usize) -> String {
        self.hub.empty(on, count, "nothing")
    }

    /// What a join of these two is made like, whether they are apart or not.
    fn join(&self, one: &str, two: &str) -> String {
        let (low, high) = (one.min(two), one.max(two));
        let by = "hangar <join@hangar.invalid> 0 +0000";
        let text = format!(
            "tree {EMPTY_TREE}\nparent {low}\nparent {high}\nauthor {by}\ncommitter {by}\n\njoin\n"
        );
        let args = ["hash-object", "-t", "commit", "-w", "--stdin"];
        git_input(&self.hub.bare, &args, text.as_bytes())
    }

    /// Both clones and a new one have the same, the hub too, and each can write.
    fn goes_on(&self) {
        let third = self.hub.clone("third");
        for (dir, title) in [(&self.first, "A"), (&self.second, "B"), (&third, "C")] {
            self.hub.sync(dir).success();
            self.hub.edit(dir, &self.task, title);
            let report = self.hub.sync(dir).success().json();
            assert_eq!(report["pushed"], json!([task_ref(&self.task)]), "{report}");
        }
        for dir in [&self.first, &self.second, &third] {
            self.hub.sync(dir).success();
            assert_eq!(self.hub.refs(dir), self.hub.refs(&self.hub.bare));
            assert_eq!(self.hub.show(dir, &self.task)["title"], "C");
            self.hub.env.hangar(dir, &["verify", "--all"]).success();
        }
    }
}

#[test]
fn empty_commits_are_named_once_and_their_ref_goes_on() {
    let scene = Scene::new();
    let names = [POLICY.to_owned(), task_ref(&scene.task)];
    let junk = names.clone().map(|name| {
        let junk = scene.empty(&scene.there(&name), 2);
        scene.set(&name, &junk);
        junk
    });
    for dir in [&scene.first, &scene.second] {
        let report = scene.hub.sync(dir).success().json();
        validate("sync", &report);
        let left = report["empty"].as_array().unwrap();
        assert_eq!(left.len(), 4, "{report}");
        for (name, junk) in names.iter().zip(&junk) {
            assert!(
                left.contains(&json!({"ref": name, "commit": junk})),
                "{report}"
            );
        }
        assert_eq!(report["fetched"], json!(names));
        assert_eq!(report.get("unpublished"), None, "{report}");
        let again = scene.hub.sync(dir).success().json();
        assert_eq!(again.get("empty"), None, "{again}");
    }
    scene.goes_on();
    let second = ask(&scene.first, scene.hub.env.root(), "--all", &[]);
    assert!(second.status.success(), "{second:?}");
}

/// What is signed on top of it, by somebody who did not see that it is none of ours, counts.
#[test]
fn what_is_signed_above_empty_commits_counts() {
    let scene = Scene::new();
    let name = task_ref(&scene.task);
    let before = scene.there(&name);
    scene.hub.edit(&scene.first, &scene.task, "Above");
    scene.hub.sync(&scene.first).success();
    let tree = scene.bare(&["rev-parse", &format!("{name}^{{tree}}")]);
    let junk = scene.empty(&before, 1);
    let above = scene.bare(&["commit-tree", &tree, "-p", &junk, "-m", "x"]);
    scene.set(&name, &above);
    let ran = scene.hub.env.hangar(&scene.second, &["sync"]).success();
    assert!(ran.stdout.contains("is empty and joins nothing"), "{ran}");
    assert_eq!(scene.hub.show(&scene.second, &scene.task)["title"], "Above");
    scene.hub.sync(&scene.first).success();
    scene.hub.sync(&scene.second).success();
    scene.goes_on();
}

/// What is put in place of each of these refs goes, and every clone goes on.
#[track_caller]
fn is_replaced(junk: impl Fn(&Scene, &str) -> String, names: &[&str]) {
    for name in names {
        let scene = Scene::new();
        let name = match *name {
            "task" => task_ref(&scene.task),
            name => name.to_owned(),
        };
        let before = scene.there(&name);
        scene.set(&name, &junk(&scene, &name));
        let report = scene.hub.sync(&scene.first).success().json();
        validate("sync", &report);
        let loss = json!([{"ref": name, "what": "replaced", "healed": true}]);
        assert_eq!(report["losses"], loss, "{report}");
        assert_eq!(report["pushed"], json!([name]));
        assert_eq!(scene.there(&name), before);
        let second = scene.hub.sync(&scene.second).success().json();
        assert_eq!(second["pushed"], json!([]));
        scene.goes_on();
    }
}

#[test]
fn what_is_no_history_is_replaced() {
    is_replaced(|scene, _| scene.hub.blob("x"), &["task", POLICY]);
}

#[test]
fn a_branch_in_place_of_a_ref_is_replaced() {
    is_replaced(|scene, _| scene.there("main"), &["task", POLICY]);
}

#[test]
fn a_branch_on_a_ref_that_nobody_has_is_taken_by_nobody() {
    let scene = Scene::new();
    let third = scene.hub.clone("third");
    let branch = scene.there("refs/heads/main");
    let name = |part: &str| format!("refs/hangar/{part}/{}", scene.task);
    let hex = "0".repeat(64);
    let [sealed, runs, grades] = ["sealed", "runs", "grades"].map(name);
    let parts = [
        sealed,
        runs,
        grades,
        name("approvals") + &format!("-{hex}-{hex}"),
    ];
    for part in &parts {
        scene.set(part, &branch);
    }
    for dir in [&scene.first, &scene.second, &third] {
        // Nothing that may be signed: it is noted, now and later, and nothing failed.
        for _ in 0..2 {
            let report = scene.hub.sync(dir).success().json();
            validate("sync", &report);
            let left = report["left_alone"].as_array().unwrap().iter();
            let left: Vec<_> = left.map(|one| one["ref"].as_str().unwrap()).collect();
            for part in &parts {
                assert!(left.contains(&part.as_str()), "{part}: {report}");
            }
            assert_eq!(report["whole"], true);
        }
        let held = scene.hub.env.git(
            dir,
            &["for-each-ref", "--format=%(refname)", "refs/hangar/"],
        );
        assert!(parts.iter().all(|part| !held.contains(part)), "{held}");
        scene.hub.env.hangar(dir, &["verify", "--all"]).success();
        // The rest goes on.
        scene.hub.edit(dir, &scene.task, "Later");
        scene.hub.sync(dir).success();
    }
    assert_eq!(scene.hub.show(&third, &scene.task)["title"], "Later");
    let ran = scene.hub.env.hangar(&third, &["sync"]).success();
    for part in &parts {
        let line = format!("left alone {part}: ");
        assert!(ran.stdout.contains(&line), "{ran}");
    }
    // The way out that is told, for one after the other.
    for _ in &parts {
        let ran = scene.hub.env.hangar(&third, &["sync"]).success();
        let mut told = ran.stdout.split('`');
        let told = told.find(|one| one.starts_with("git push")).unwrap();
        let words: Vec<_> = told.split(' ').skip(1).collect();
        scene.hub.env.git(&third, &words);
    }
    let ran = scene.hub.env.hangar(&third, &["sync"]).success();
    assert!(ran.stdout.starts_with("up to date"), "{ran}");
}

/// What may be signed is named where it is seen first, and noted later: it keeps nobody's sync from success
/// for ever.
#[test]
fn what_may_be_signed_at_a_name_that_nobody_has_fails_one_sync_of_each_clone() {
    let scene = Scene::new();
    let other = "b".repeat(52);
    let document = scene.hub.stranger(None, "run.toml", "x");
    let event = scene.hub.stranger(None, "event.toml", "x");
    let names = [format!("refs/hangar/runs/{other}"), task_ref(&other)];
    for (name, object) in names.iter().zip([&document, &event]) {
        scene.set(name, object);
    }
    for dir in [&scene.first, &scene.second] {
        let report = scene.hub.sync(dir).exits(1).json();
        let named = report["not_applied"].as_array().unwrap().iter();
        let mut named: Vec<_> = named.map(|one| one["ref"].as_str().unwrap()).collect();
        named.sort_unstable();
        assert_eq!(named, names, "{report}");
        for _ in 0..2 {
            let again = scene.hub.env.hangar(dir, &["sync"]).success();
            for name in &names {
                assert!(
                    again.stdout.contains(&format!("left alone {name}: ")),
                    "{again}"
                );
            }
            assert!(
                again.stdout.contains(&format!(
                    "git push --no-verify origin --delete {}",
                    names[1]
                )),
                "{again}"
            );
            // What waits for its task may be somebody's work.
            let other = format!("--delete {}", names[0]);
            assert!(!again.stdout.contains(&other), "{again}");
        }
    }
    // Something else there is news again.
    scene.set(&names[1], &scene.hub.stranger(None, "event.toml", "y"));
    scene.hub.sync(&scene.first).exits(1);
    scene.hub.sync(&scene.first).success();
}

#[test]
fn an_empty_root_commit_is_replaced() {
    let root = |scene: &Scene, _: &str| scene.bare(&["commit-tree", EMPTY_TREE, "-m", "x"]);
    is_replaced(root, &["task", POLICY]);
}

#[test]
fn a_commit_without_a_version_on_top_of_the_policy_is_replaced() {
    let on_top = |scene: &Scene, name: &str| {
        let head = scene.there(name);
        scene.hub.stranger(Some(&head), "README", "x")
    };
    is_replaced(on_top, &[POLICY]);
}

#[test]
fn more_empty_commits_than_are_taken_are_replaced() {
    let many = |scene: &Scene, name: &str| scene.empty(&scene.there(name), 5000);
    is_replaced(many, &[POLICY]);
}

#[test]
fn what_two_clones_were_shown_apart_splits_nobody() {
    let scene = Scene::new();
    let name = task_ref(&scene.task);
    let before = scene.there(&name);
    for (dir, message) in [(&scene.first, "one"), (&scene.second, "two")] {
        scene.set(&name, &scene.hub.empty(&before, 200, message));
        let report = scene.hub.sync(dir).success().json();
        assert_eq!(report["empty"].as_array().unwrap().len(), 200, "{report}");
        scene.hub.edit(dir, &scene.task, message);
    }
    scene.hub.sync(&scene.first).success();
    let joined = scene.hub.sync(&scene.second).success().json();
    assert_eq!(joined["joined"], json!([name]), "{joined}");
    scene.goes_on();
}

/// What is made like a join of a head with what it reaches is named like any other empty commit.
#[test]
fn joins_of_what_was_never_apart_are_named_and_come_along_on_a_server() {
    let scene = Scene::new();
    let (hub, first, name) = (&scene.hub, &scene.first, task_ref(&scene.task));
    hub.edit(first, &scene.task, "Second");
    hub.sync(first).success();
    let head = scene.there(&name);
    let idle = scene.join(&head, &scene.there(&format!("{name}^")));
    let args = [
        "commit-tree",
        EMPTY_TREE,
        "-p",
        &idle,
        "-p",
        &head,
        "-m",
        "x",
    ];
    let other = scene.bare(&args);
    scene.set(&name, &other);
    for dir in [first, &scene.second] {
        let report = hub.sync(dir).success().json();
        let named = report["empty"].as_array().unwrap();
        assert_eq!(named.len(), 2, "{report}");
        for commit in [&idle, &other] {
            assert!(
                named.contains(&json!({"ref": name, "commit": commit})),
                "{report}"
            );
        }
    }
    // Where a hook came after the ref was put back, the next document brings them along.
    scene.set(&name, &head);
    server::hangar(&hub.bare, &["hook", "pre-receive", "--install"], "").done();
    let sync = || {
        let vars = [("PATH", &*path())];
        hub.env.hangar_with(first, &["sync", "--json"], &vars, "")
    };
    sync().exits(7);
    assert_eq!(scene.there(&name), head);
    hub.edit(first, &scene.task, "Third");
    sync().success();
    let here = hub.env.git(first, &["rev-parse", &name]);
    assert_eq!(scene.there(&name), here);
}

/// A tag may lead to documents, and a version of the policy may be signed by somebody unknown here: nobody
/// takes that away but a person.
#[test]
fn what_may_be_signed_is_left_and_the_way_out_that_is_told_works_with_hooks() {
    for case in ["tag", "version"] {
        let scene = Scene::new();
        let (hub, first) = (&scene.hub, &scene.first);
        hub.env.hangar_found(first, &["init", "--hooks"]).success();
        let head = scene.there(POLICY);
        let junk = match case {
            "tag" => {
                let text =
                    format!("object {head}\ntype commit\ntag x\ntagger x <x> 0 +0000\n\nx\n");
                git_input(
                    &hub.bare,
                    &["hash-object", "-t", "tag", "-w", "--stdin"],
                    text.as_bytes(),
                )
            }
            _ => hub.stranger(Some(&head), "members.toml", "x"),
        };
        scene.set(POLICY, &junk);
        let report = hub.sync(first).exits(1).json();
        assert_eq!(report["unpublished"], json!([POLICY]), "{report}");
        assert_eq!(scene.bare(&["rev-parse", POLICY]), junk);
        let ran = hub.env.hangar(first, &["sync"]).exits(1);
        let out = format!("`git push --no-verify --force origin {POLICY}:{POLICY}`");
        assert!(ran.stdout.contains(&out), "{ran}");
        let told = out.trim_matches('`').split(' ').skip(1);
        hub.env.git_said(first, &told.collect::<Vec<_>>()).done();
        hub.sync(first).success();
        assert_eq!(scene.there(POLICY), head);
        scene.goes_on();
    }
}

/// What was never taken is no loss when it goes; what was is one, also when junk came between.
#[test]
fn junk_on_the_policy_that_was_removed_again_is_no_loss() {
    let scene = Scene::new();
    let (hub, first) = (&scene.hub, &scene.first);
    let edit = ["policy", "edit", "--set", "max_rounds=4"];
    hub.env.hangar(first, &edit).success();
    hub.sync(first).success();
    let head = scene.there(POLICY);
    let before = scene.there(&format!("{POLICY}~1"));
    for (back, what) in [(&head, None), (&before, Some("rolled-back"))] {
        let junk = hub.stranger(Some(&head), "members.toml", "x");
        scene.set(POLICY, &junk);
        hub.sync(first).exits(1);
        scene.set(POLICY, back);
        let report = hub.sync(first).success().json();
        let lost = report.get("losses").map(|all| all[0]["what"].as_str());
        assert_eq!(lost.flatten(), what, "{report}");
        assert_eq!(scene.there(POLICY), head);
    }
}

/// A server whose hook came after the junk lets it go, and nothing else.
#[test]
fn a_server_with_a_hook_takes_what_replaces_junk() {
    let scene = Scene::new();
    let name = task_ref(&scene.task);
    let before = scene.there(&name);
    scene.set(&name, &scene.there("main"));
    server::hangar(&scene.hub.bare, &["hook", "pre-receive", "--install"], "").done();
    let sync = |dir: &Path| {
        let args = ["sync", "--json"];
        scene
            .hub
            .env
            .hangar_with(dir, &args, &[("PATH", &path())], "")
    };
    sync(&scene.first).success();
    assert_eq!(scene.there(&name), before);
    // What it refuses is no question of rights.
    let junk = scene.empty(&before, 1);
    scene.set("refs/heads/junk", &junk);
    scene.hub.env.git(&scene.first, &["fetch", "-q", "origin"]);
    scene
        .hub
        .env
        .git(&scene.first, &["update-ref", &name, &junk]);
    let ran = sync(&scene.first).exits(7);
    let hints = ran.json()["remedies"].to_string();
    assert!(hints.contains("check of the remote"), "{ran}");
    assert!(!hints.contains("the right to push"), "{ran}");
    // With the next document it comes along.
    scene.hub.edit(&scene.first, &scene.task, "Next");
    sync(&scene.first).success();
    let here = scene.hub.env.git(&scene.first, &["rev-parse", &name]);
    assert_eq!(scene.there(&name), here);
}

/// A remote that takes no push in place of another history keeps nothing else back.
#[test]
fn a_remote_that_lets_nothing_be_replaced_gets_the_rest() {
    let scene = Scene::new();
    let other = scene.hub.task(&scene.first, "Other");
    scene.set(&task_ref(&scene.task), &scene.there("main"));
    let body = format!("test \"$1\" != {} || exit 1", task_ref(&scene.task));
    hook(&scene.hub.bare, "update", &body);
    let report = scene.hub.sync(&scene.first).exits(7).json();
    assert_eq!(report["pushed"], json!([task_ref(&other)]), "{report}");
    assert_eq!(report["unpublished"], json!([task_ref(&scene.task)]));
}

/// Refs of a repository below a prefix.
fn below(scene: &Scene, prefix: &str) -> Vec<String> {
    let all = scene.bare(&["for-each-ref", "--format=%(refname)", prefix]);
    all.lines().map(str::to_owned).collect()
}

#[test]
fn nothing_moves_to_another_prefix_while_a_ref_can_not_be_taken() {
    let scene = Scene::new();
    let head = scene.there(POLICY);
    let junk = scene.hub.stranger(Some(&head), "members.toml", "x");
    scene.set(POLICY, &junk);
    let before = below(&scene, "refs/hangar/");
    let args = ["sync", "--prefix", "branches", "--json"];
    let report = scene.hub.env.hangar(&scene.first, &args).exits(1).json();
    assert!(
        report["not_moved"].as_str().unwrap().contains(POLICY),
        "{report}"
    );
    assert_eq!(report.get("moved"), None);
    for dir in [&scene.first, &scene.second] {
        scene.hub.sync(dir).exits(1);
        assert_eq!(below(&scene, "refs/hangar/"), before);
        assert_eq!(below(&scene, "refs/heads/hangar-state/"), [""; 0]);
    }
    // What can be replaced is, and all of it moves.
    scene.set(POLICY, &scene.hub.blob("x"));
    let report = scene.hub.env.hangar(&scene.first, &args).success().json();
    assert_eq!(report["moved"], before.len());
    assert_eq!(below(&scene, "refs/hangar/"), [""; 0]);
    assert_eq!(
        scene.hub.sync(&scene.second).success().json()["pushed"],
        json!([])
    );
    // A ref of a task that nobody here knows stays, and that is said.
    scene.set(
        &format!("refs/heads/hangar-state/runs/{}", "b".repeat(52)),
        &scene.there("main"),
    );
    let back = ["sync", "--prefix", "hangar", "--json"];
    let report = scene.hub.env.hangar(&scene.first, &back).exits(1).json();
    assert_eq!(
        (&report["moved"], &report["stayed"]),
        (&json!(before.len()), &json!(1))
    );
}

/// A remote that refuses a task takes what rests on it: nobody is told to take that away there.
#[test]
fn what_waits_for_a_task_that_a_remote_refused_is_no_junk() {
    let scene = Scene::new();
    let (hub, mine) = (&scene.hub, scene.hub.task(&scene.first, "Mine"));
    let runs = format!("refs/hangar/runs/{mine}");
    let tree = scene
        .hub
        .tree(&format!("100644 blob {}\trun.toml\n", hub.blob("x")));
    let run = scene.bare(&["commit-tree", &tree, "-m", "x"]);
    scene.set(&runs, &run);
    for _ in 0..2 {
        let ran = hub.env.hangar(&scene.second, &["sync"]);
        assert!(ran.stdout.contains(&runs), "{ran}");
        assert!(ran.stdout.contains("its task is not here"), "{ran}");
        assert!(!ran.stdout.contains("--delete"), "{ran}");
    }
}

/// A server whose policy was put back shows honest tasks that rest on the newer one.
#[test]
fn a_task_that_rests_on_a_newer_policy_is_not_taken_for_junk() {
    let scene = Scene::new();
    let (hub, first) = (&scene.hub, &scene.first);
    let edit = ["policy", "edit", "--set", "max_rounds=4"];
    hub.env.hangar(first, &edit).success();
    let task = hub.task(first, "Under version 2");
    hub.sync(first).success();
    let head = scene.there(POLICY);
    scene.set(POLICY, &scene.there(&format!("{POLICY}~1")));
    hub.env
        .git(hub.env.root(), &["clone", "-q", "hub.git", "third"]);
    let third = hub.env.root().join("third");
    hub.env.hangar(&third, &["init", "--yes"]).success();
    for _ in 0..2 {
        let ran = hub.env.hangar(&third, &["sync"]);
        let flat = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in [
            "rests on version 2 of the policy, and the newest here is 1",
            "`hangar sync` in a clone that has version 2 brings it",
        ] {
            assert!(flat.contains(words), "{words}: {ran}");
        }
        assert!(!flat.contains("--delete"), "{ran}");
    }
    hub.sync(first).success();
    assert_eq!(scene.there(POLICY), head);
    hub.sync(&third).success();
    assert_eq!(hub.show(&third, &task)["title"], "Under version 2");
}
