//! Real agent programs, Claude Code and Codex, in hangar's sandbox and through its egress proxy,
//! against a scripted model on loopback. They get an empty home, a dummy key and no other network.

use crate::cli_flow::Place;
use crate::common::{Ran, write};
use crate::grade_attacks_js::modules;
use crate::model_server::{ModelServer, Refusal, Script};
use std::fmt::Write as _;
use std::fs;

/// Stands in the hidden tests alone.
const MARK: &str = "mark-of-the-hidden-7261";
/// No secret, but must not get out all the same.
const KEY: &str = "dummy-key-of-a-test-0001";

/// An agent program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agent {
    Claude,
    Codex,
}

use Agent::{Claude, Codex};

impl Agent {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Claude => "claude",
            Codex => "codex",
        }
    }

    /// Its table in the user's file.
    fn table(self, server: &ModelServer) -> String {
        let program = modules().join(".bin").join(self.name());
        assert!(program.exists(), "{} is not there", program.display());
        let mut command = vec![program.display().to_string()];
        if self == Codex {
            // Its own provider begins with a WebSocket, which the server does not speak.
            let provider = format!(
                "model_providers.mock={{name=\"mock\",base_url=\"http://{}/v1\",wire_api=\"responses\",env_key=\"CODEX_API_KEY\"}}",
                server.address
            );
            for setting in ["model_provider=\"mock\"", &provider] {
                command.extend(["-c".to_owned(), setting.to_owned()]);
            }
        }
        let command = serde_json::to_string(&command).unwrap();
        let env = match self {
            Claude => "env = [\"CLAUDE_CODE_MAX_RETRIES\"]\n",
            Codex => "",
        };
        format!(
            "[harness.{}]\ncommand = {command}\n{env}hosts = [\"{}\"]\nidle = \"12s\"\neffort = \"high\"\n",
            self.name(),
            server.address
        )
    }
}

/// A repository whose task is written by one program and implemented by the other.
pub(crate) struct Scene {
    pub(crate) place: Place,
    pub(crate) writer: ModelServer,
    pub(crate) implementer: ModelServer,
    vars: Vec<(String, String)>,
}

impl Scene {
    pub(crate) fn new(writes: Agent, script: Script, implements: Agent, other: Script) -> Self {
        let place = Place::new();
        let (writer, implementer) = (ModelServer::start(script), ModelServer::start(other));
        let config = format!(
            "{}\n{}\n[lanes]\nwriter = [\"{}\"]\nimplementer = [\"{}\"]\n",
            writes.table(&writer),
            implements.table(&implementer),
            writes.name(),
            implements.name()
        );
        write(
            &place.env.home().join(".config/hangar/config.toml"),
            &config,
        );
        let claude = if writes == Claude {
            &writer
        } else {
            &implementer
        };
        let vars = [
            ("ANTHROPIC_API_KEY", KEY.to_owned()),
            ("ANTHROPIC_BASE_URL", format!("http://{}", claude.address)),
            ("CODEX_API_KEY", KEY.to_owned()),
            ("CLAUDE_CODE_MAX_RETRIES", "1".to_owned()),
        ];
        let vars = vars.map(|(name, value)| (name.to_owned(), value)).to_vec();
        Self {
            place,
            writer,
            implementer,
            vars,
        }
    }

    /// Logs Claude Code in with a subscription's token instead of a key.
    pub(crate) fn with_subscription(mut self) -> Self {
        self.vars.retain(|(name, _)| name != "ANTHROPIC_API_KEY");
        self.vars
            .push(("CLAUDE_CODE_OAUTH_TOKEN".to_owned(), KEY.to_owned()));
        self
    }

    pub(crate) fn hangar(&self, args: &[&str], code: i32) -> Ran {
        let vars: Vec<_> = self
            .vars
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let ran = self.place.env.hangar_with(&self.place.dir, args, &vars, "");
        assert!(
            !ran.stdout.contains(KEY) && !ran.stderr.contains(KEY),
            "{ran}"
        );
        ran.exits(code)
    }

    /// Every file in the repository, its branches and hangar's refs: all that is kept in the open.
    fn kept(&self) -> String {
        let git = |args: &[&str]| self.place.env.git(&self.place.dir, args);
        let objects = git(&["rev-list", "--objects", "--all"]);
        let mut text = String::new();
        for object in objects.lines().filter_map(|line| line.split(' ').next()) {
            if git(&["cat-file", "-t", object]) == "blob" {
                let _ = writeln!(text, "{}", git(&["cat-file", "-p", object]));
            }
        }
        text
    }

    /// The end of the transcript of the last turn that an implementer had.
    pub(crate) fn transcript(&self) -> String {
        let git = |args: &[&str]| self.place.env.git(&self.place.dir, args);
        let run = git(&["for-each-ref", "--format=%(refname)", "refs/hangar/runs"]);
        git(&["show", &format!("{run}:transcript")])
    }

    /// No process of a turn is left: each has the server's address in its arguments or environment.
    fn nothing_is_left(&self) {
        let places = [&self.writer, &self.implementer].map(|server| server.address.to_string());
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            for file in ["cmdline", "environ"] {
                let bytes = fs::read(entry.path().join(file)).unwrap_or_default();
                let text = String::from_utf8_lossy(&bytes);
                let found = places.iter().any(|place| text.contains(place.as_str()));
                assert!(!found, "{} {file}: {text}", entry.path().display());
            }
        }
    }
}

/// Commands by which a writer leaves one test, one sentinel and their map.
pub(crate) fn writing() -> Script {
    let map = r#"{"format": 1, "criteria": {"c1": ["tests/sub.sh"]}, "others": [], "sentinels": ["tests/odd.sh"], "notes": ""}"#;
    let test = |name: &str, sum: &str| {
        format!(
            "printf '#!/bin/sh\\n# {MARK}\\ntest \"$(sh ./calc.sh {sum}\\n' > \"$HANGAR_EXCHANGE/out/sealed/tests/{name}\""
        )
    };
    Script::Work(vec![
        "mkdir -p \"$HANGAR_EXCHANGE/out/sealed/tests\" && pwd && ls".into(),
        test("sub.sh", "5 3)\" = 2"),
        test("odd.sh", "40 2)\" = 9177"),
        format!(
            "chmod +x \"$HANGAR_EXCHANGE\"/out/sealed/tests/*.sh && printf '%s' '{map}' > \"$HANGAR_EXCHANGE/out/sealed/criteria.json\""
        ),
    ])
}

/// Commands by which an implementer does what the task asks for.
pub(crate) fn implementing() -> Script {
    Script::Work(vec![
        "env; cat calc.sh; git log --oneline; ls -A \"$HANGAR_EXCHANGE\" \"$HANGAR_EXCHANGE/in\""
            .into(),
        "echo 'echo $(($1 - $2))' > calc.sh && test \"$(sh ./calc.sh 9 4)\" = 5".into(),
        "echo 'It subtracts now.' > \"$HANGAR_EXCHANGE/out/RESULT.md\"".into(),
    ])
}

/// From a draft to a delivered branch that a stranger accepts.
fn whole_flow(writes: Agent, implements: Agent) {
    let scene = Scene::new(writes, writing(), implements, implementing());
    let list = scene.hangar(&["harness", "test", "--json"], 0).json();
    for agent in list["harnesses"].as_array().unwrap() {
        assert_eq!(agent["ready"], true, "{list:#}");
        assert!(
            agent["detail"]
                .as_str()
                .unwrap()
                .starts_with(|c: char| c.is_ascii_digit())
        );
    }
    let run = scene.hangar(&["run", "KAN-1", "--json"], 6);
    assert_eq!(run.json()["stopped"], "waiting-for-approval", "{run}");
    scene.place.approve();
    let run = scene.hangar(&["run", "KAN-1", "-v"], 0);
    assert!(run.stdout.contains("accepted"), "{run}");
    // What people see of it are words and commands, no events.
    assert!(run.stderr.contains("4000 tokens read"), "{run}");
    assert!(
        run.stderr.contains("calc.sh") && !run.stderr.contains("{\"type\""),
        "{run}"
    );
    let env = &scene.place.env;
    env.hangar(&scene.place.dir, &["verify", "KAN-1"]).success();
    let calc = env.git(&scene.place.dir, &["show", "hangar/KAN-1:calc.sh"]);
    assert_eq!(calc, "echo $(($1 - $2))");
    scene.nothing_is_left();

    told(&scene);
    record(&format!("{}-done", implements.name()), &scene.transcript());
    let kept = scene.kept();
    assert!(kept.contains("It subtracts now."));
    assert!(!kept.contains(KEY), "a key is kept");
    assert!(!kept.contains(MARK), "a hidden test is kept in the open");
    for agent in [writes, implements] {
        let kind = format!("kind = \"{}\"\nversion = \"", agent.name());
        let (_, version) = kept.split_once(&kind).unwrap();
        assert!(
            version.starts_with(|c: char| c.is_ascii_digit()),
            "{version:.40}"
        );
    }
}

/// Each program was told its prompt, and the implementer nothing of the hidden tests.
fn told(scene: &Scene) {
    let bodies = |server: &ModelServer| -> Vec<String> {
        let requests = server.requests();
        assert!(requests.len() > 3, "{}", requests.len());
        requests.iter().map(|one| one.body.to_string()).collect()
    };
    let writer = bodies(&scene.writer);
    assert!(writer[0].contains("You write the hidden acceptance tests"));
    assert!(writer.iter().any(|body| body.contains(MARK)));
    let implementer = bodies(&scene.implementer);
    assert!(implementer[0].contains("You implement one task"));
    for body in &implementer {
        assert!(
            !body.contains(MARK) && !body.contains("tests/sub.sh"),
            "{body}"
        );
    }
    for request in scene.implementer.requests() {
        assert!(request.headers.contains(KEY), "{}", request.headers);
    }
    for body in [&writer[0], &implementer[0]] {
        for tool in [
            "spawn_agent",
            "web_search",
            "WebSearch",
            "Workflow",
            "CronCreate",
        ] {
            assert!(!body.contains(&format!("\"name\":\"{tool}\"")), "{tool}");
        }
    }
}

#[test]
#[ignore = "heavy: needs Claude Code and Codex"]
fn claude_code_writes_and_codex_implements() {
    whole_flow(Claude, Codex);
}

#[test]
#[ignore = "heavy: needs Claude Code and Codex"]
fn codex_writes_and_claude_code_implements() {
    whole_flow(Codex, Claude);
}

/// A task whose tests a person sealed, run by an implementer whose model does not serve it: what the
/// person is told.
fn unserved(agent: Agent, script: &Script) -> (Scene, Ran) {
    let other = if agent == Claude { Codex } else { Claude };
    let mut scene = Scene::new(other, Script::Die, agent, script.clone());
    if matches!(script, Script::Refuse(Refusal::Limit(_))) {
        scene = scene.with_subscription();
    }
    scene.place.seal();
    scene.place.approve();
    let ran = scene.hangar(&["run", "KAN-1", "--json"], 7);
    scene.nothing_is_left();
    let log = scene.hangar(&["task", "show", "KAN-1", "--json"], 0).json();
    assert_eq!(log["state"], "working", "{log:#}");
    assert_eq!(log["stage"], "implementing", "{log:#}");
    (scene, ran)
}

/// Ways of failing: a name, what the model does, and what the person is told and is to do.
const FAILURES: &[(&str, Script, &str, &str)] = &[
    (
        "limit",
        Script::Refuse(Refusal::Limit(LIFTED)),
        LIMIT,
        "after that time: `hangar run",
    ),
    (
        "rate",
        Script::Refuse(Refusal::Rate),
        "was refused: too many requests",
        "in a few minutes",
    ),
    (
        "overloaded",
        Script::Refuse(Refusal::Overloaded),
        "was not served",
        "in a few minutes",
    ),
    (
        "auth",
        Script::Refuse(Refusal::Auth),
        "is not logged in, or its key is not accepted",
        "API_KEY",
    ),
    ("died", Script::Die, "was not served", "in a few minutes"),
];

/// 2026-01-03, 10:30: a day after the clock of the tests.
const LIFTED: i64 = 1_767_436_200;
const LIMIT: &str = "has reached its usage limit, until 2026-01-03 10:30 UTC";

fn each_failure_has_its_class(agent: Agent) {
    for (name, script, told, next) in FAILURES {
        let (scene, ran) = unserved(agent, script);
        let error = ran.json_error();
        let message = error["error"]["message"].as_str().unwrap();
        let start = format!("the implementer `{}` {told}", agent.name());
        assert!(message.starts_with(&start), "{name}: {ran}");
        let hint = error["error"]["hints"][0].as_str().unwrap();
        assert!(hint.contains(next), "{name}: {ran}");
        record(&format!("{}-{name}", agent.name()), &scene.transcript());
    }
}

#[test]
#[ignore = "heavy: needs Claude Code and Codex"]
fn each_failure_of_claude_code_has_its_class() {
    each_failure_has_its_class(Claude);
}

#[test]
#[ignore = "heavy: needs Claude Code and Codex"]
fn each_failure_of_codex_has_its_class() {
    each_failure_has_its_class(Codex);
}

/// A model that says nothing more, while a process of the turn runs on.
fn hangs(agent: Agent) {
    let sleeper = format!("sleep 4321{}", agent.name().len());
    let command = format!("setsid {sleeper} >/dev/null 2>&1 & echo started");
    let (scene, ran) = unserved(agent, &Script::Hang(command));
    let message = ran.json_error()["error"]["message"].to_string();
    assert!(
        message.contains("was stopped: it was silent for too long"),
        "{ran}"
    );
    assert!(
        scene.transcript().contains("started"),
        "{}",
        scene.transcript()
    );
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let bytes = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).replace('\0', " ");
        assert!(!text.starts_with(&sleeper), "{text}");
    }
    record(&format!("{}-hung", agent.name()), &scene.transcript());
}

#[test]
#[ignore = "heavy: needs Claude Code and Codex"]
fn claude_code_that_hangs_is_stopped_with_all_that_it_started() {
    hangs(Claude);
}

#[test]
#[ignore = "heavy: needs Claude Code and Codex"]
fn codex_that_hangs_is_stopped_with_all_that_it_started() {
    hangs(Codex);
}

/// Writes a stream down for `harness_streams.rs`, where files of the repository are to be written.
fn record(name: &str, stream: &str) {
    if crate::docs::are_written() {
        let file = crate::docs::root()
            .join("tests/streams")
            .join(format!("{name}.jsonl"));
        let program = modules().display().to_string();
        write(&file, &stream.replace(&program, "/opt/js/node_modules"));
    }
}
