//! `hangar task …`

use crate::cli_help::validate;
use crate::common::{TestEnv, write};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;

fn id(env: &TestEnv, dir: &Path, args: &[&str]) -> String {
    let args = [&["task", "new"], args].concat();
    let id = env.hangar(dir, &args).success().text().to_owned();
    assert_eq!(id.len(), 52, "{id}");
    id
}

fn show(env: &TestEnv, dir: &Path, task: &str) -> Value {
    let view = env.json(dir, &["task", "show", task]);
    validate("task-show", &view);
    view
}

#[test]
#[expect(clippy::too_many_lines, reason = "one life, told in order")]
fn a_task_s_life_without_its_acceptance() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    write(&dir.join("criteria.md"), "- [ ] one\n- [ ] two\n");
    let made = env
        .hangar_with(
            &dir,
            &[
                "task",
                "new",
                "Add subtraction",
                "--criteria",
                "criteria.md",
                "-c",
                "three",
                "-F",
                "-",
                "--key",
                "KAN-80",
                "--tag",
                "rust",
                "--json",
            ],
            &[],
            "Write `sub`.\n",
        )
        .success()
        .json();
    validate("task-new", &made);
    let id = made["id"].as_str().unwrap();
    assert_eq!(made["flow"], "test-first");
    let view = show(&env, &dir, "kan-80");
    assert_eq!(view["id"], id);
    assert_eq!(view["state"], "draft");
    assert_eq!(view["next"], "enqueue");
    assert_eq!(view["mandate"], "Write `sub`.");
    assert_eq!(view["criteria"][2]["text"], "three");
    assert_eq!(view["base_branch"], "main");
    let short = &id[..8];
    let edited = env.json(
        &dir,
        &[
            "task", "edit", short, "-p", "2", "-c", "three", "-c", "four",
        ],
    );
    validate("task-edit", &edited);
    assert_eq!(
        edited["changed"],
        serde_json::json!(["criteria", "priority"])
    );
    // A criterion whose text stays keeps its id; a new one takes an id that was never used.
    assert_eq!(
        show(&env, &dir, id)["criteria"],
        serde_json::json!([{"id": "c3", "text": "three"}, {"id": "c4", "text": "four"}])
    );
    let comment = env.json(&dir, &["task", "comment", "KAN-80", "Hello\n\u{1b}[31mred"]);
    validate("task-comment", &comment);
    let acted = env.json(&dir, &["task", "enqueue", short]);
    validate("task-enqueue", &acted);
    assert_eq!(acted["state"], "queued");
    let ran = env
        .hangar(&dir, &["task", "edit", short, "--title", "x"])
        .exits(4);
    assert!(
        ran.stderr
            .contains("title can't be changed while the task is queued"),
        "{ran}"
    );
    env.hangar(&dir, &["task", "delete", short]).exits(4);
    let acted = env.json(&dir, &["task", "cancel", short, "--reason", "later"]);
    validate("task-cancel", &acted);
    assert_eq!(show(&env, &dir, short)["summary"], "cancelled: later");
    let acted = env.json(&dir, &["task", "retry", short, "--from", "writing"]);
    validate("task-retry", &acted);
    assert_eq!(
        (&acted["state"], &acted["stage"]),
        (&"queued".into(), &"writing".into())
    );
    let log = env.json(&dir, &["task", "log", short]);
    validate("task-log", &log);
    assert_eq!(log["documents"].as_array().unwrap().len(), 6);
    let base = made["base"].as_str().unwrap();
    let ran = env.hangar(&dir, &["task", "show", short]).success();
    insta::assert_snapshot!(
        "task_show",
        ran.snapshot(&[(short, "[TASK]"), (&base[..12], "[BASE]")])
    );
    env.git(&dir, &["fsck", "--strict"]);
}

#[test]
fn lists_filter_and_give_pipes_everything() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    let first = id(&env, &dir, &["First of all", "--plain"]);
    let second = id(
        &env,
        &dir,
        &["Second", "-p", "1", "--tag", "gpu", "--plain"],
    );
    env.hangar(&dir, &["task", "enqueue", &second]).success();
    let third = id(&env, &dir, &["Third", "--plain"]);
    env.hangar(&dir, &["task", "delete", &third]).success();
    let list = |args: &[&str]| {
        let args = [&["task", "list", "--json"], args].concat();
        let list = env.hangar(&dir, &args).success().json();
        validate("task-list", &list);
        let ids = list["tasks"].as_array().unwrap().iter();
        ids.map(|task| task["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(list(&[]), [second.clone(), first.clone()]);
    assert_eq!(list(&["--state", "queued"]), std::slice::from_ref(&second));
    assert_eq!(list(&["--tag", "gpu"]), std::slice::from_ref(&second));
    assert_eq!(list(&["FIRST"]), std::slice::from_ref(&first));
    assert_eq!(list(&["--mine"]).len(), 2);
    assert_eq!(list(&["--state", "deleted"]), [third]);
    let ran = env.hangar(&dir, &["task", "list"]).success();
    assert_eq!(
        ran.stdout,
        format!(
            "{second}\t-\tqueued\t-\t1\talice\tSecond\n{first}\t-\tdraft\t-\t5\talice\tFirst of all\n"
        )
    );
}

#[test]
fn lists_are_sorted_and_cut_and_say_so() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    let titles = ["b", "C", "a"];
    let new = |title: &&str| id(&env, &dir, &[title, "--plain"]);
    let ids: Vec<String> = titles.iter().map(new).collect();
    env.hangar(&dir, &["task", "edit", &ids[1], "-p", "1"])
        .success();
    env.hangar(&dir, &["task", "enqueue", &ids[0]]).success();
    let list = |args: &[&str]| {
        let args = [&["task", "list", "--json"], args].concat();
        let list = env.hangar(&dir, &args).success();
        validate("task-list", &list.json());
        let tasks = list.json()["tasks"].as_array().unwrap().clone();
        let titles = tasks.iter().map(|task| task["title"].as_str().unwrap());
        (titles.collect::<String>(), list)
    };
    for (sort, expected) in [
        ("priority", "Cba"),
        ("newest", "aCb"),
        ("oldest", "bCa"),
        ("updated", "bCa"),
        ("state", "Cab"),
        ("title", "abC"),
    ] {
        assert_eq!(list(&["--sort", sort]).0, expected, "{sort}");
    }
    assert_eq!(list(&["-s", "queued,writing"]).0, "b");
    let (titles, whole) = list(&["--limit", "0"]);
    assert_eq!(titles, "Cba");
    assert_eq!(
        (whole.json()["more"].as_u64(), whole.stderr.as_str()),
        (None, "")
    );
    let (titles, cut) = list(&["-n", "2"]);
    assert_eq!(titles, "Cb");
    assert_eq!(cut.json()["more"], 1);
    assert_eq!(cut.stderr, "");
    let cut = env.hangar(&dir, &["task", "list", "-n", "2"]).success();
    assert_eq!(cut.stderr, "1 more task; `--limit 0` shows all\n");
    let ran = env
        .hangar(&dir, &["task", "list", "-n", "1", "-q"])
        .success();
    assert_eq!((ran.stdout.lines().count(), ran.stderr.as_str()), (1, ""));
    env.hangar(&dir, &["task", "list", "--sort", "size"])
        .exits(2);
    env.hangar(&dir, &["task", "list", "-n", "many"]).exits(2);

    // Trouble with the index is told to those who ask.
    let index = dir.join(".git/hangar/index.db");
    std::fs::remove_file(&index).unwrap();
    std::fs::create_dir(&index).unwrap();
    let ran = env.hangar(&dir, &["task", "list"]).success();
    assert_eq!((ran.stdout.lines().count(), ran.stderr.as_str()), (3, ""));
    let ran = env.hangar(&dir, &["task", "list", "-v"]).success();
    assert!(ran.stderr.contains("the index can't be used"), "{ran}");
}

#[test]
fn names_of_tasks_are_prefixes_or_keys_and_never_guessed() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    let one = id(&env, &dir, &["One", "--key", "#188", "--plain"]);
    env.hangar(&dir, &["task", "show", "#188"]).success();
    env.hangar(&dir, &["task", "show", &one[..4].to_uppercase()])
        .success();
    env.hangar(&dir, &["task", "show", &one[..3]]).exits(2);
    let ran = env.hangar(&dir, &["task", "show", "zzzzzzzz"]).exits(2);
    assert!(ran.stderr.contains("no task is called `zzzzzzzz`"), "{ran}");
    let ran = env
        .hangar(&dir, &["task", "new", "Two", "--key", "#188"])
        .exits(2);
    let said = format!("task {} has the key `#188` already", &one[..8]);
    assert!(ran.stderr.contains(&said), "{ran}");
}

#[test]
fn of_many_that_give_one_key_at_the_same_time_one_makes_the_task() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    let start = |_| {
        let mut command = env.command(env!("CARGO_BIN_EXE_hangar"), &dir);
        command.args(["task", "new", "Same", "--plain", "--key", "KAN-7"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    };
    let running: Vec<_> = (0..8).map(start).collect();
    let codes = running
        .into_iter()
        .map(|mut child| child.wait().unwrap().code().unwrap());
    let mut codes: Vec<_> = codes.collect();
    codes.sort_unstable();
    assert_eq!(codes, [0, 2, 2, 2, 2, 2, 2, 2]);
    let list = env.hangar(&dir, &["task", "list"]).success();
    assert_eq!(list.stdout.matches("KAN-7").count(), 1, "{list}");
}

#[test]
fn an_ambiguous_prefix_lists_the_candidates() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    // Keys that differ by case only can come from two clones; here they stand for two tasks.
    let one = id(&env, &dir, &["One", "--plain"]);
    let tip = env.git(&dir, &["rev-parse", &format!("refs/hangar/tasks/{one}")]);
    let mut twin = one.clone();
    twin.replace_range(51..52, if one.ends_with('a') { "q" } else { "a" });
    env.git(
        &dir,
        &["update-ref", &format!("refs/hangar/tasks/{twin}"), &tip],
    );
    // A copy under another name is no second task: it is told, not shown.
    let ran = env.hangar(&dir, &["task", "list"]).success();
    assert!(ran.stderr.contains("can't be read"), "{ran}");
    assert_eq!(ran.stdout.lines().count(), 1);
}

#[test]
fn many_tasks_come_from_json_lines_or_none() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    let lines = "{\"title\":\"A\",\"criteria\":[\"x\"],\"key\":\"K-1\"}\n{\"title\":\"B\",\"flow\":\"plain\"}\n";
    let ran = env
        .hangar_with(&dir, &["task", "new", "--from", "-", "--json"], &[], lines)
        .success();
    let made: Vec<Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for one in &made {
        validate("task-new", one);
    }
    assert_eq!(
        (&made[0]["key"], &made[1]["flow"]),
        (&"K-1".into(), &"plain".into())
    );
    let bad = "{\"title\":\"C\"}\n{\"title\":\"D\",\"base\":\"nowhere\"}\n";
    let faults = [
        (bad, "line 2: "),
        (
            "{\"title\":\"C\"}\n{\"title\":D}\n",
            "line 2, column 10: expected value\n",
        ),
    ];
    for (bad, said) in faults {
        let ran = env
            .hangar_with(&dir, &["task", "new", "--from", "-"], &[], bad)
            .exits(2);
        assert!(ran.stderr.contains(said), "{ran}");
    }
    let short = env.hangar(&dir, &["task", "show", "abc"]).exits(2);
    assert!(short.stderr.contains("at least 4 characters"), "{short}");
    let long = env.hangar(&dir, &["task", "show", "abcd"]).exits(2);
    assert!(!long.stderr.contains("at least 4 characters"), "{long}");
    let plain = made[1]["id"].as_str().unwrap();
    let ran = env
        .hangar(&dir, &["task", "retry", plain, "--from", "writing"])
        .exits(4);
    assert!(
        ran.stderr.contains("a plain task has no stage `writing`"),
        "{ran}"
    );
    let list = env.json(&dir, &["task", "list"]);
    assert_eq!(list["tasks"].as_array().unwrap().len(), 2);
}

#[test]
fn the_base_needs_a_hangar_toml() {
    let env = TestEnv::new();
    let dir = env.repo("repo", &[]);
    env.hangar(&dir, &["init"]).success();
    let ran = env.hangar(&dir, &["task", "new", "x"]).exits(3);
    insta::assert_snapshot!(ran.snapshot(&[]));
}

#[test]
fn a_title_is_needed_where_no_editor_can_open() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    for args in [
        &["task", "new"][..],
        &["task", "new", "  "],
        &["task", "new", "two\nlines"],
    ] {
        env.hangar(&dir, args).exits(2);
    }
    let long = "x".repeat(201);
    env.hangar(&dir, &["task", "new", &long]).exits(2);
    env.hangar(&dir, &["task", "new", "x", "-c", " "]).exits(2);
    env.hangar(&dir, &["task", "new", "x", "--criteria", "missing.md"])
        .exits(2);
}

#[test]
fn an_untrusted_title_cannot_steer_the_terminal() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    let task = id(&env, &dir, &["Bidi \u{202e}evil", "--plain"]);
    for args in [&["task", "list"][..], &["task", "show", &task]] {
        let ran = env.hangar(&dir, args).success();
        assert!(ran.stdout.contains("Bidi \\u{202e}evil"), "{ran}");
    }
}

#[test]
fn a_read_only_repository_is_told_and_nothing_is_lost() {
    if rustix::process::geteuid().is_root() {
        return;
    }
    let env = TestEnv::new();
    let dir = env.ready("repo");
    let made = env
        .command("chmod", &dir)
        .args(["-R", "a-w", ".git"])
        .status()
        .unwrap();
    assert!(made.success());
    let ran = env.hangar(&dir, &["task", "new", "x", "--plain"]).exits(7);
    env.command("chmod", &dir)
        .args(["-R", "u+w", ".git"])
        .status()
        .unwrap();
    assert!(ran.stderr.contains("error: "), "{ran}");
    env.hangar(&dir, &["task", "list"]).success();
}
