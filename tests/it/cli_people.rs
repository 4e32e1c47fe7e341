//! What people read: hints that fit the state, warnings, lines that fit the terminal, plurals, order.

use crate::cli_help::validate;
use crate::common::{Ran, TestEnv, write};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

#[test]
fn hints_of_init_fit_the_repository() {
    let env = TestEnv::new();
    let root = env.root();
    env.git(root, &["init", "-q", "--bare", "bare.git"]);
    let ran = env.hangar(&root.join("bare.git"), &["init"]).exits(3);
    assert!(ran.stderr.contains("`git clone /"), "{ran}");
    assert!(!ran.stderr.contains("git commit"), "{ran}");
    env.git(root, &["init", "-q", "full"]);
    write(&root.join("full/main.py"), "");
    let ran = env.hangar(&root.join("full"), &["init"]).exits(3);
    assert!(ran.stderr.contains("`git add -A && git commit -m"), "{ran}");
    let ran = env.hangar(root, &["-C", "full", "init"]).exits(3);
    assert!(ran.stderr.contains("`git -C full add -A && "), "{ran}");

    // The command that is printed works where it is printed.
    let repo = env.repo("repo", &[("a/b/c.txt", "")]);
    let below = repo.join("a/b");
    let ran = env.hangar(&below, &["init"]).success();
    let command = "git add ../../hangar.toml && git commit -m \"Set up hangar\"";
    assert!(ran.stdout.contains(command), "{ran}");
    let again = env.hangar(&below, &["init"]).success();
    assert!(again.stdout.contains(command), "not committed yet: {again}");
    let outside = env.hangar(root, &["-C", "repo", "init"]).success();
    assert!(
        outside.stdout.contains("/repo add hangar.toml"),
        "{outside}"
    );
    let committed = env.command("sh", &below).args(["-c", command]).output();
    assert!(committed.unwrap().status.success());
    let done = env.hangar(&below, &["init"]).success();
    assert!(!done.stdout.contains("commit it"), "{done}");
}

#[test]
fn unknown_keys_are_warned_about_once_by_whatever_reads_the_file() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    let text = fs::read_to_string(dir.join("hangar.toml")).unwrap();
    let text = text.replace("\n[task]", "\n[task]\nflwo = \"plain\"\nframework = \"x\"");
    write(&dir.join("hangar.toml"), &text);
    env.git(&dir, &["commit", "-qam", "a slip"]);
    let head = &env.git(&dir, &["rev-parse", "HEAD"])[..12];
    env.write_home(".config/hangar/config.toml", "[lanes]\nwriters = [\"x\"]\n");
    let warnings = |args: &[&str]| {
        let ran = env.hangar(&dir, args);
        let warnings = ran
            .stderr
            .lines()
            .filter(|line| line.starts_with("warning:"));
        warnings.map(str::to_owned).collect::<Vec<_>>()
    };
    let repository = [
        format!("warning: {head}:hangar.toml:"),
        "unknown key `task.flwo` (did you mean `task.flow`?)".to_owned(),
        "unknown key `task.framework` (did you mean `grader.framework`?)".to_owned(),
    ];
    for args in [
        &["task", "list"][..],
        &["-q", "task", "new", "x", "--plain"],
        &["task", "list", "--json"],
    ] {
        let told = warnings(args);
        assert_eq!(told.len(), 2, "{args:?}: {told:?}");
        assert!(told[0].starts_with(&repository[0]), "{told:?}");
        assert!(told[0].contains(&repository[1]), "{told:?}");
        assert!(told[1].contains(&repository[2]), "{told:?}");
    }
    let told = warnings(&["harness", "list"]);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("unknown key `lanes.writers` (did you mean `lanes.writer`?)"),
        "{told:?}"
    );
    // `init` and `config` read the file of the work tree.
    for args in [&["init"][..], &["config", "get", "task.flow"]] {
        assert!(
            warnings(args).iter().any(|line| line.contains("flwo")),
            "{args:?}"
        );
    }
    env.hangar(&dir, &["task", "list"]).success();
}

/// Lines wider than 80 columns that hold more than one word which can't be broken.
fn wide(ran: &Ran) -> Vec<String> {
    let lines = ran.stdout.lines().chain(ran.stderr.lines());
    let fits = |line: &str| {
        let text = line.trim_start();
        line.chars().count() <= 80 || text.starts_with('`') || !text.contains(' ')
            // A name before a path or an id, or a command to copy.
            || text.split_whitespace().count() <= 3 || text.starts_with("git ")
    };
    lines
        .filter(|line| !fits(line))
        .map(str::to_owned)
        .collect()
}

#[test]
fn what_we_say_fits_a_terminal_of_80_columns() {
    let mut command = hangar::cli::command().term_width(80);
    command.build();
    fn check(command: &mut clap::Command) {
        for help in [command.render_long_help(), command.render_help()] {
            let text = help.to_string();
            let broken = text.lines().find(|line| line.chars().count() > 80);
            assert_eq!(broken, None, "{text}");
        }
        // A command of the examples is not broken into two.
        let after = command.get_after_help().map(ToString::to_string);
        for line in after
            .unwrap_or_default()
            .lines()
            .filter(|line| line.starts_with("  "))
        {
            assert!(line.chars().count() <= 80, "{}: {line}", command.get_name());
        }
        command.get_subcommands_mut().for_each(check);
    }
    check(&mut command);

    let env = TestEnv::new();
    let dir = env.repo("repo", &[]);
    let narrow = |args: &[&str]| {
        let ran = env.hangar_with(&dir, args, &[("COLUMNS", "80")], "");
        assert_eq!(wide(&ran), [""; 0], "{ran}");
        ran
    };
    narrow(&["init"]).success();
    narrow(&["task", "new", "x"]).exits(3);
    env.git(&dir, &["add", "-A"]);
    env.git(&dir, &["commit", "-qm", "set up"]);
    let task = narrow(&[
        "task",
        "new",
        &"word ".repeat(30),
        "-c",
        &"word ".repeat(40),
    ]);
    let task = task.success().text().to_owned();
    for args in [
        &["task", "show", &task][..],
        &["policy", "show"],
        &["verify", &task],
        &["run", &task],
        &["review"],
        &["grade", &task],
        &["task", "list", "--state", "none"],
        &["sealed", "show", &task],
        &["config", "set", "grader.prepare", "x"],
        &["init"],
    ] {
        narrow(args);
    }
    // A pipe without a width gets whole lines.
    let ran = env
        .hangar(&dir, &["config", "set", "grader.prepare", "x"])
        .exits(2);
    assert_eq!(ran.stderr.lines().count(), 1, "{ran}");
}

#[test]
fn no_line_of_a_criteria_file_is_lost() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    write(
        &dir.join("c.md"),
        "# Criteria\n\n- adds\n  numbers\nsubtracts\n",
    );
    let ran = env
        .hangar(&dir, &["task", "new", "x", "--criteria", "c.md"])
        .exits(2);
    assert!(ran.stderr.contains("line 5 of the criteria"), "{ran}");
    assert!(ran.stderr.contains("\"subtracts\""), "{ran}");
    write(
        &dir.join("c.md"),
        "# Criteria\n\n- adds\n  numbers\n- subtracts\n",
    );
    let made = env
        .hangar(&dir, &["task", "new", "x", "--criteria", "c.md", "--json"])
        .success();
    assert_eq!(made.json()["criteria"], 2);
}

fn executable(path: &Path, text: &str) {
    write(path, text);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

const TEST: &str = "#!/bin/sh\ntest \"$(sh ./calc.sh 5 3)\" = 2\n";

/// A repository for shell tests with one task, KAN-1.
fn place() -> (TestEnv, PathBuf) {
    let env = TestEnv::new();
    let dir = env.repo("repo", &[("calc.sh", "echo 0\n")]);
    env.hangar(&dir, &["init"]).success();
    env.git(&dir, &["add", "-A"]);
    env.git(&dir, &["commit", "-q", "-m", "set up"]);
    let task = [
        "task",
        "new",
        "Subtract",
        "-c",
        "it subtracts",
        "--key",
        "KAN-1",
    ];
    env.hangar(&dir, &task).success();
    (env, dir)
}

#[test]
fn versions_say_what_became_of_them_and_documents_follow_their_causes() {
    let (env, dir) = place();
    executable(&env.root().join("hidden/tests/sub.sh"), TEST);
    // Everything in one second, so that no clock gives the order.
    let now = [("HANGAR_NOW", "2026-01-02T03:05:00Z")];
    let run = |args: &[&str]| env.hangar_with(&dir, args, &now, "");
    let seal = [
        "seal",
        "KAN-1",
        "--from",
        "../hidden",
        "--map",
        "c1=tests/sub.sh",
    ];
    let first = run(&seal).success();
    assert!(
        first
            .stdout
            .contains("1 test, 1 fails on the base, 0 guards, 0 skipped, 0 sentinels"),
        "{first}"
    );
    run(&seal).success();
    let shown = run(&["task", "show", "KAN-1"]).success();
    assert!(
        shown
            .stdout
            .contains("superseded by v2: 1 test, 1 fails on base, 0 guards, 0 criteria uncovered"),
        "{shown}"
    );
    let listed = run(&["sealed", "list", "KAN-1"]).success();
    let lines: Vec<_> = listed.stdout.lines().collect();
    assert!(lines[0].ends_with("superseded by v2"), "{listed}");
    assert!(lines[1].ends_with("waits for an approval"), "{listed}");
    let old = run(&["sealed", "show", "KAN-1", "--version", "1"]).success();
    assert!(old.stdout.contains("state    superseded by v2\n"), "{old}");
    let card = run(&["review", "KAN-1", "--version", "1"]).success();
    assert!(card.stdout.contains("Superseded by version 2."), "{card}");
    assert!(!card.stdout.contains("hangar approve"), "{card}");
    let card = run(&["review", "KAN-1", "--json"]).success().json();
    validate("review", &card);
    let digest = card["manifest"].as_str().unwrap();
    run(&["approve", "--digest", digest]).success();
    write(&dir.join("calc.sh"), "echo $(($1 - $2))\n");
    env.git(&dir, &["commit", "-qam", "a patch"]);
    let ended = run(&["submit", "KAN-1"]).success();
    assert!(
        ended.stdout.contains("1 of 1 hidden test passed"),
        "{ended}"
    );

    let log = run(&["task", "log", "KAN-1", "--json"]).success().json();
    validate("task-log", &log);
    let documents = log["documents"].as_array().unwrap().iter();
    let told: Vec<_> = documents.map(|one| one["what"].as_str().unwrap()).collect();
    let place = |part: &str| {
        let found = told.iter().position(|what| what.contains(part));
        found.unwrap_or_else(|| panic!("{part}: {told:#?}"))
    };
    let order = [
        "created",
        "enqueued",
        "sealed version 1",
        "stage awaiting-approval",
        "sealed version 2",
        "approved version 2",
        "implementer round 1",
        "stage verifying",
        "graded accepted",
        "stage delivering",
        "delivered",
    ];
    for pair in order.windows(2) {
        assert!(place(pair[0]) < place(pair[1]), "{pair:?}: {told:#?}");
    }
}

#[test]
fn a_run_says_why_tests_cannot_be_sealed_and_where_the_whole_text_is() {
    let (env, dir) = place();
    let agents = env.root().join("agents");
    let out = agents.join("w/writer/1/out/sealed");
    executable(&out.join("tests/guard-by-hazel.sh"), "#!/bin/sh\ntrue\n");
    executable(&out.join("tests/unlisted-by-hazel.sh"), "#!/bin/sh\ntrue\n");
    write(
        &out.join("criteria.json"),
        r#"{"format": 1, "criteria": {"c1": ["tests/guard-by-hazel.sh"]}}"#,
    );
    for turn in ["2", "3"] {
        write(
            &agents
                .join("w/writer")
                .join(turn)
                .join("out/sealed/criteria.json"),
            "{}",
        );
    }
    fs::create_dir_all(agents.join("i")).unwrap();
    let dir_of = |name: &str| agents.join(name).display().to_string();
    env.write_home(
        ".config/hangar/config.toml",
        &format!(
            "[harness.w]\nkind = \"script\"\ndir = \"{}\"\n[harness.i]\nkind = \"script\"\ndir = \"{}\"\n\
             [lanes]\nwriter = [\"w\"]\nimplementer = [\"i\"]\n",
            dir_of("w"),
            dir_of("i")
        ),
    );
    let ran = env.hangar(&dir, &["run", "KAN-1"]).exits(7);
    for part in [
        "turn 1: the tests can't be sealed yet: 1 test stands in no list of criteria.json; no test fails",
        "in 3 turns; the last time: 1 fault in criteria.json",
        " --transcript` shows",
    ] {
        assert!(ran.stderr.contains(part), "{part}: {ran}");
    }
    assert!(
        !ran.stderr.contains("hazel"),
        "a name of the writer's: {ran}"
    );

    let shown = env
        .hangar(&dir, &["review", "KAN-1", "--transcript"])
        .success();
    assert!(
        shown
            .stdout
            .contains("number 3: no version was sealed of it"),
        "{shown}"
    );
    assert!(
        shown.stdout.contains("criteria.json: it can't be read"),
        "{shown}"
    );
    let json = env
        .hangar(&dir, &["review", "KAN-1", "--transcript", "--json"])
        .success()
        .json();
    validate("review", &json);
    assert_eq!(json["outcome"], "malformed");
}
