//! Lanes that fall back: what happens to a task, to its work and to the health of a program when a
//! program is not served. Stand-ins play recorded streams. Needs a sandbox.

use crate::cli_flow::Place;
use crate::cli_harness::{KEYS, programs};
use crate::cli_help::validate;
use crate::common::{Ran, write};
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};

/// Shell text of an implementer that adds a line to `steps.txt`, which shows who worked, and plays a
/// stream.
fn works(who: &str, then: &str, stream: &str) -> String {
    let stream = crate::docs::page(&format!("tests/streams/{stream}.jsonl"));
    format!(
        "echo {who} >> /src/steps.txt\n{then}\necho {who} says hello\ncat <<'END-OF-STREAM'\n{stream}\nEND-OF-STREAM\nexit 1"
    )
}

/// One that solves the task.
fn solves(who: &str) -> String {
    works(
        who,
        "echo 'echo $(($1 - $2))' > /src/calc.sh",
        &format!("{who}-done"),
    )
}

/// One that goes on only with what another one left.
fn takes_over(who: &str, from: &str) -> String {
    format!(
        "grep -q '`{from}.* worked on this task before you' \"$HANGAR_EXCHANGE/in/context.md\" || exit 8\n\
         grep -q 'added: `steps.txt`' \"$HANGAR_EXCHANGE/in/context.md\" || exit 8\n\
         case $prompt in *in/context.md*) ;; *) exit 8;; esac\n{}",
        solves(who)
    )
}

/// A stand-in: what it does as a writer, and as an implementer.
fn stand_in(writes: &str, implements: &str) -> String {
    format!(
        "if [ \"$1\" = --version ]; then echo 9.8.7; exit; fi\nprompt=$(cat)\n\
         case $prompt in\n*'You write the hidden acceptance tests'*)\n{writes}\n;;\n\
         *'You implement one task'*)\n{implements}\n;;\nesac\nexit 9"
    )
}

/// Shell text of a writer that leaves a test.
fn writes(who: &str) -> String {
    let map = r#"{"format": 1, "criteria": {"c1": ["tests/sub.sh"]}, "others": [], "sentinels": ["tests/odd.sh"], "notes": ""}"#;
    let stream = crate::docs::page(&format!("tests/streams/{who}-done.jsonl"));
    format!(
        "cd \"$HANGAR_EXCHANGE/out/sealed\" && mkdir -p tests\n\
         printf '#!/bin/sh\\ntest \"$(sh ./calc.sh 5 3)\" = 2\\n' > tests/sub.sh\n\
         printf '#!/bin/sh\\ntest \"$(sh ./calc.sh 40 2)\" = 9177\\n' > tests/odd.sh\n\
         chmod +x tests/*.sh\nprintf '%s' '{map}' > criteria.json\n\
         cat <<'END-OF-STREAM'\n{stream}\nEND-OF-STREAM\nexit 0"
    )
}

fn plays(stream: &str) -> String {
    let stream = crate::docs::page(&format!("tests/streams/{stream}.jsonl"));
    format!("cat <<'END-OF-STREAM'\n{stream}\nEND-OF-STREAM\nexit 1")
}

struct Scene {
    place: Place,
    bin: PathBuf,
}

impl Scene {
    fn new(claude: &str, codex: &str, lanes: &str) -> Self {
        let place = Place::new();
        let bin = programs(place.env.root(), &[("claude", claude), ("codex", codex)]);
        let config = place.env.home().join(".config/hangar/config.toml");
        write(&config, &format!("[lanes]\n{lanes}\n"));
        Self { place, bin }
    }

    /// With tests that a person sealed and approved, and two lanes for the implementer: Codex, then
    /// Claude Code.
    fn implementing(claude: &str, codex: &str) -> Self {
        let (claude, codex) = (stand_in("", claude), stand_in("", codex));
        let lanes = "writer = [\"claude\"]\nimplementer = [\"codex:high\", \"claude\"]";
        let scene = Self::new(&claude, &codex, lanes);
        scene.place.seal();
        scene.place.approve();
        scene
    }

    fn vars<'a>(
        &self,
        path: &'a mut String,
        keys: &[(&'a str, &'a str)],
    ) -> Vec<(&'a str, &'a str)> {
        *path = format!("{}:/usr/bin:/bin", self.bin.display());
        [&[("PATH", path.as_str())], keys].concat()
    }

    fn with(&self, keys: &[(&str, &str)], args: &[&str]) -> Ran {
        let mut path = String::new();
        let vars = self.vars(&mut path, keys);
        self.place.env.hangar_with(&self.place.dir, args, &vars, "")
    }

    fn hangar(&self, args: &[&str]) -> Ran {
        self.with(&KEYS, args)
    }

    /// Starts a command whose notices are read.
    fn start(&self, args: &[&str]) -> Child {
        let mut path = String::new();
        let mut command = self
            .place
            .env
            .command(env!("CARGO_BIN_EXE_hangar"), &self.place.dir);
        command.args(args).envs(self.vars(&mut path, &KEYS));
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The newest documents of runs, oldest first.
    fn runs(&self) -> Vec<String> {
        let git = |args: &[&str]| self.place.env.git(&self.place.dir, args);
        let name = git(&["for-each-ref", "--format=%(refname)", "refs/hangar/runs"]);
        if name.is_empty() {
            return Vec::new();
        }
        let commits = git(&["rev-list", "--reverse", &name]);
        commits
            .lines()
            .map(|commit| git(&["show", &format!("{commit}:run.toml")]))
            .collect()
    }

    /// Who worked on what was delivered, in order.
    fn steps(&self) -> String {
        let git = |args: &[&str]| self.place.env.git(&self.place.dir, args);
        git(&["show", "hangar/KAN-1:steps.txt"]).replace('\n', " ")
    }

    /// Health of a harness, and until when.
    fn health(&self, name: &str) -> (String, Option<String>) {
        let list = self.hangar(&["harness", "list", "--json"]).success().json();
        validate("harness-list", &list);
        let mut all = list["harnesses"].as_array().unwrap().iter();
        let one = all.find(|one| one["name"] == name).unwrap();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        (text(&one["health"]).unwrap(), text(&one["until"]))
    }

    fn message(ran: &Ran) -> String {
        let error = ran.json_error();
        error["error"]["message"].as_str().unwrap().to_owned()
    }

    /// Items of the inbox that are about agent programs.
    fn items(&self, keys: &[(&str, &str)]) -> Vec<Value> {
        let inbox = self.with(keys, &["inbox", "--json"]).success().json();
        validate("inbox", &inbox);
        let items = inbox["items"].as_array().unwrap().iter();
        items
            .filter(|one| one["kind"] == "harness")
            .cloned()
            .collect()
    }
}

#[test]
fn at_a_limit_the_next_lane_goes_on_with_the_work_and_it_is_no_round() {
    // The log is handed over; the repository of the one before, which could hold a trap, is not.
    let claude = format!(
        "test ! -e /src/.git/trap || exit 8\n\
         grep -q '    codex says hello' \"$HANGAR_EXCHANGE/in/context.md\" || exit 8\n{}",
        takes_over("claude", "codex:high")
    );
    let codex = works("codex", "touch /src/.git/trap", "codex-limit");
    let scene = Scene::implementing(&claude, &codex);
    let ran = scene.hangar(&["run", "KAN-1"]).success();
    assert!(ran.stdout.contains("delivered"), "{ran}");
    let told =
        "the implementer `codex:high` has reached its usage limit, until 2026-01-02 10:30 UTC";
    assert!(ran.stderr.contains(told), "{ran}");
    assert!(ran.stderr.contains("the next lane goes on"), "{ran}");
    assert_eq!(scene.steps(), "codex claude");

    let runs = scene.runs();
    assert_eq!(runs.len(), 2, "{runs:#?}");
    for (run, parts) in runs.iter().zip([
        [
            "outcome = \"failed\"",
            "note = \"has reached its usage limit, until 2026-01-02 10:30 UTC\"",
            "name = \"codex:high\"",
        ],
        ["outcome = \"completed\"", "kind = \"claude\"", "round = 1"],
    ]) {
        assert!(run.contains("round = 1"), "{run}");
        for part in parts {
            assert!(run.contains(part), "{run}");
        }
    }
    let limited = (
        "limited".to_owned(),
        Some("2026-01-02T10:30:00Z".to_owned()),
    );
    assert_eq!(scene.health("codex"), limited);
    assert_eq!(scene.health("claude"), ("ok".to_owned(), None));
    let list = scene.hangar(&["harness", "list"]);
    assert!(
        list.stdout.contains("limited until 2026-01-02T10:30:00Z"),
        "{list}"
    );
    let doctor = scene.hangar(&["doctor"]);
    assert!(
        doctor
            .stdout
            .contains("at its usage limit until 2026-01-02T10:30:00Z"),
        "{doctor}"
    );
    let left = scene.place.dir.join(".git/hangar/handover");
    assert_eq!(fs::read_dir(left).unwrap().count(), 0);
    scene
        .place
        .env
        .hangar(&scene.place.dir, &["verify", "KAN-1"])
        .success();
}

#[test]
fn where_nobody_can_work_the_soonest_time_is_told_and_the_work_is_kept() {
    // Whoever finds the other's work solves the task.
    let codex = format!(
        "if [ -e /src/steps.txt ]; then\n{}\nfi\n{}",
        takes_over("codex", "claude"),
        works("codex", "", "codex-limit")
    );
    let scene = Scene::implementing(&works("claude", "", "claude-overloaded"), &codex);
    let run = ["run", "KAN-1", "--json"];
    let said = Scene::message(&scene.hangar(&run).exits(7));
    for part in [
        "the implementer `claude` was not served",
        "`codex:high` has reached its usage limit, until 2026-01-02 10:30 UTC",
        "the soonest time to try again is 2026-01-02 03:05 UTC",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(scene.runs().len(), 2);
    // Nobody is asked before that time.
    let ran = scene.hangar(&run).exits(7);
    let said = Scene::message(&ran);
    assert!(
        said.starts_with("no implementer can work now: `codex:high` has"),
        "{said}"
    );
    assert!(said.contains("the soonest time"), "{said}");
    assert!(ran.stderr.contains("--wait` now"), "{ran}");
    assert_eq!(scene.runs().len(), 2);

    // A person says that it is mended.
    let test = ["harness", "test", "codex", "--json"];
    let tested = scene.hangar(&test).success().json();
    assert_eq!(tested["harnesses"][0]["health"], "ok", "{tested:#}");
    assert_eq!(scene.health("claude").0, "overloaded");
    scene.hangar(&run).success();
    assert_eq!(scene.steps(), "codex claude codex");
}

#[test]
fn who_waits_goes_on_when_one_can_work_again_and_can_be_stopped() {
    let codex = format!(
        "if [ -e /src/steps.txt ]; then\n{}\nfi\n{}",
        takes_over("codex", "codex:high"),
        works("codex", "", "codex-limit")
    );
    let scene = Scene::implementing("exit 9", &codex);
    let config = "[lanes]\nwriter = [\"claude\"]\nimplementer = [\"codex:high\"]\n";
    write(
        &scene.place.env.home().join(".config/hangar/config.toml"),
        config,
    );
    let waiting = || {
        let mut child = scene.start(&["run", "KAN-1", "--wait"]);
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let told = lines.find(|line| {
            let line = line.as_ref().unwrap();
            line.contains("the soonest time to try again is 2026-01-02 10:30 UTC")
        });
        assert!(told.is_some(), "it ended: {}", child.wait().unwrap());
        (child, lines)
    };
    for _ in 0..2 {
        // Once with the task in hand, once before it is taken.
        let (child, lines) = waiting();
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let out = child.wait_with_output().unwrap();
        assert_eq!(out.status.code(), Some(130));
        drop(lines);
    }
    assert_eq!(scene.runs().len(), 1);
    let (child, lines) = waiting();
    scene.hangar(&["harness", "test", "codex"]).success();
    let out = child.wait_with_output().unwrap();
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    assert_eq!(out.status.code(), Some(0), "{rest:#?}");
    assert_eq!(scene.steps(), "codex codex");
}

#[test]
fn a_login_that_is_not_accepted_waits_in_the_inbox_until_it_is_mended() {
    let scene = Scene::implementing("exit 9", &plays("codex-auth"));
    let config = "[lanes]\nwriter = [\"claude\"]\nimplementer = [\"codex\"]\n";
    write(
        &scene.place.env.home().join(".config/hangar/config.toml"),
        config,
    );
    assert_eq!(scene.items(&KEYS), [] as [Value; 0]);
    let ran = scene.hangar(&["run", "KAN-1", "--json", "--wait"]).exits(7);
    let hint = ran.json_error()["error"]["hints"][0].to_string();
    assert!(hint.contains("hangar harness test codex"), "{ran}");
    let items = scene.items(&KEYS);
    assert_eq!(items.len(), 1, "{items:#?}");
    assert_eq!(items[0]["command"], "hangar harness test codex");
    let title = items[0]["title"].as_str().unwrap();
    assert!(
        title.contains("codex is not logged in") && title.contains("CODEX_API_KEY"),
        "{title}"
    );
    assert_eq!(scene.health("codex"), ("unauthenticated".to_owned(), None));
    let said = Scene::message(&scene.hangar(&["run", "KAN-1", "--json", "--wait"]).exits(7));
    assert!(
        said.starts_with("no implementer can work now: `codex` is not logged in"),
        "{said}"
    );
    assert_eq!(scene.runs().len(), 1);
    let state = scene
        .place
        .env
        .home()
        .join(".local/state/hangar/harness-health.json");
    let kept = fs::read_to_string(&state).unwrap();
    assert!(!kept.contains(KEYS[1].1), "{kept}");

    // Another key is asked, and is its own failure; the one before counts no more.
    let other = [KEYS[0], ("CODEX_API_KEY", "another-key")];
    assert_eq!(scene.items(&other), [] as [Value; 0]);
    scene.with(&other, &["run", "KAN-1"]).exits(7);
    assert_eq!(scene.runs().len(), 2);
    assert_eq!(scene.items(&other).len(), 1);
    scene.with(&other, &["harness", "test"]).success();
    assert_eq!(scene.items(&other).len(), 1, "nobody named it");
    scene.with(&other, &["harness", "test", "codex"]).success();
    assert_eq!(scene.items(&other), [] as [Value; 0]);
}

#[test]
fn a_writer_that_falls_back_never_implements() {
    let claude = stand_in(&plays("claude-limit"), &solves("claude"));
    let codex = stand_in(&writes("codex"), &solves("codex"));
    let lanes = "writer = [\"claude\", \"codex\"]\nimplementer = [\"codex\", \"claude\"]";
    let scene = Scene::new(&claude, &codex, lanes);
    let ran = scene.hangar(&["run", "KAN-1"]).exits(6);
    assert!(
        ran.stderr
            .contains("the writer `claude` has reached its usage limit"),
        "{ran}"
    );
    let runs = scene.runs();
    assert_eq!(runs.len(), 2, "{runs:#?}");
    assert!(runs[1].contains("name = \"codex\""), "{}", runs[1]);
    scene.place.approve();
    // Codex is healthy and stands first, but it wrote the tests.
    let said = Scene::message(&scene.hangar(&["run", "KAN-1", "--json"]).exits(7));
    assert!(
        said.starts_with("no implementer can work now: `claude` has reached"),
        "{said}"
    );
    assert_eq!(scene.runs().len(), 2);
    scene.hangar(&["harness", "test", "claude"]).success();
    scene.hangar(&["run", "KAN-1"]).success();
    assert_eq!(scene.steps(), "claude");
}

#[test]
fn commands_that_run_at_once_keep_what_each_of_them_met() {
    let lanes = |name: &str| format!("[lanes]\nwriter = [\"mine\"]\nimplementer = [\"{name}\"]\n");
    let scene = Scene::implementing(&plays("claude-limit"), &plays("codex-limit"));
    let (env, dir) = (&scene.place.env, &scene.place.dir);
    let started: Vec<Child> = ["claude", "codex"]
        .into_iter()
        .map(|name| {
            let config = env.root().join(format!("{name}.toml"));
            write(&config, &lanes(name));
            let task = ["task", "new", "Plain", "--plain", "--key", name];
            env.hangar(dir, &task).success();
            let mut path = String::new();
            let mut command = env.command(env!("CARGO_BIN_EXE_hangar"), dir);
            command
                .args(["run", name])
                .envs(scene.vars(&mut path, &KEYS));
            command.env("HANGAR_CONFIG", config);
            command.stdin(Stdio::null()).spawn().unwrap()
        })
        .collect();
    for child in started {
        let out = child.wait_with_output().unwrap();
        assert_eq!(out.status.code(), Some(7));
    }
    assert_eq!(scene.health("claude").0, "limited");
    assert_eq!(scene.health("codex").0, "limited");
}

/// A turn that was served and left what can't be used is no outage.
#[test]
fn what_cannot_be_used_is_no_outage() {
    let leak = "echo 'a-key-that-is-long-enough' > /src/calc.sh";
    let scene = Scene::implementing("exit 9", &works("codex", leak, "codex-done"));
    let keys = [KEYS[0], ("CODEX_API_KEY", "a-key-that-is-long-enough")];
    let ran = scene.with(&keys, &["run", "KAN-1"]).exits(7);
    assert!(
        ran.stderr.contains("left the value of `CODEX_API_KEY`"),
        "{ran}"
    );
    assert_eq!(scene.health("codex"), ("ok".to_owned(), None));
    let runs = scene.runs();
    assert!(runs[0].contains("outcome = \"malformed\""), "{}", runs[0]);
    assert_eq!(runs.len(), 1);
}

#[test]
fn from_the_second_round_on_no_log_is_handed_over() {
    let limit = works("codex", "", "codex-limit");
    let wrong = works("codex", "echo 'echo 1' > /src/calc.sh", "codex-done");
    let codex =
        format!("case $prompt in *'was graded and is not accepted'*)\n{limit}\n;; esac\n{wrong}");
    let claude = format!(
        "case $prompt in *'was graded and is not accepted'*) ;; *) exit 8;; esac\n\
         grep -q 'codex says hello' \"$HANGAR_EXCHANGE/in/context.md\" && exit 8\n{}",
        takes_over("claude", "codex:high")
    );
    let scene = Scene::implementing(&claude, &codex);
    scene.hangar(&["run", "KAN-1"]).success();
    assert_eq!(scene.steps(), "codex codex claude");
    let rounds: Vec<bool> = scene
        .runs()
        .iter()
        .map(|run| run.contains("round = 1"))
        .collect();
    assert_eq!(rounds, [true, false, false]);
}

#[test]
fn work_that_holds_a_credential_is_not_handed_over() {
    let key = "a-key-that-is-long-enough";
    let codex = works(
        "codex",
        "echo \"$CODEX_API_KEY\" > /src/key.txt",
        "codex-limit",
    );
    let claude = format!(
        "test ! -e \"$HANGAR_EXCHANGE/in/context.md\" || exit 8\n{}",
        solves("claude")
    );
    let scene = Scene::implementing(&claude, &codex);
    let keys = [KEYS[0], ("CODEX_API_KEY", key)];
    let ran = scene.with(&keys, &["run", "KAN-1"]).success();
    let told = "what `codex:high` did is not handed over: it holds the value of `CODEX_API_KEY`";
    assert!(ran.stderr.contains(told), "{ran}");
    assert_eq!(scene.steps(), "claude");
}
