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

    /// Its program and the arguments that lead it to the server.
    fn command(self, server: &ModelServer) -> Vec<String> {
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
        command
    }

    /// Its table in the user's file.
    fn table(self, server: &ModelServer) -> String {
        let command = serde_json::to_string(&self.command(server)).unwrap();
        let more = match self {
            // It may go where `ANTHROPIC_BASE_URL` leads.
            Claude => "env = [\"CLAUDE_CODE_MAX_RETRIES\"]\n".to_owned(),
            Codex => format!("hosts = [\"{}\"]\n", server.address),
        };
        format!(
            "[harness.{}]\ncommand = {command}\n{more}idle = \"12s\"\neffort = \"high\"\n",
            self.name()
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

/// 2026-01-02, 10:30: some hours after the clock of the tests.
const LIFTED: i64 = 1_767_349_800;
const LIMIT: &str = "has reached its usage limit, until 2026-01-02 10:30 UTC";

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

/// Claude Code works until its model is at its limit; Codex goes on with what it left.
#[test]
#[ignore = "heavy: needs Claude Code and Codex"]
fn codex_goes_on_where_claude_code_is_at_its_limit() {
    let half = "echo 'half of it' > half.txt && echo done";
    let limited = Script::WorkThen(vec![half.into()], Refusal::Limit(LIFTED));
    let scene = Scene::new(Codex, implementing(), Claude, limited).with_subscription();
    let config = scene.place.env.home().join(".config/hangar/config.toml");
    let lanes = fs::read_to_string(&config).unwrap().replace(
        "implementer = [\"claude\"]",
        "implementer = [\"claude\", \"codex\"]",
    );
    write(&config, &lanes);
    scene.place.seal();
    scene.place.approve();
    let ran = scene.hangar(&["run", "KAN-1"], 0);
    assert!(ran.stderr.contains(LIMIT), "{ran}");
    scene.nothing_is_left();
    let env = &scene.place.env;
    let show = |file: &str| {
        let name = format!("hangar/KAN-1:{file}");
        env.git(&scene.place.dir, &["show", &name])
    };
    assert_eq!(show("half.txt"), "half of it");
    assert_eq!(show("calc.sh"), "echo $(($1 - $2))");
    // Codex was told, and found the hand-over.
    let requests = scene.writer.requests();
    let told: Vec<String> = requests.iter().map(|one| one.body.to_string()).collect();
    assert!(told[0].contains("Another program worked on this before you"));
    let found = |body: &String| body.contains("context.md\\nprompt.md");
    assert!(told.iter().any(found), "{told:#?}");
    let list = scene.hangar(&["harness", "list", "--json"], 0).json();
    let all = list["harnesses"].as_array().unwrap();
    let health: Vec<_> = all
        .iter()
        .map(|one| (&one["name"], &one["health"]))
        .collect();
    let text = |word: &str| serde_json::Value::from(word);
    let expected = [
        (text("claude"), text("limited")),
        (text("codex"), text("ok")),
    ];
    assert_eq!(health, expected.each_ref().map(|(one, other)| (one, other)));
}

/// Configuration of the programs that a repository carries: each part makes a file when it is used.
const CARRIED: &[(&str, &str)] = &[
    ("AGENTS.md", "Rule of the repository: ALPHA.\n"),
    ("CLAUDE.md", "Rule of the repository: BETA.\n"),
    (
        ".claude/settings.json",
        r#"{"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "touch ran-hook-of-claude"}]}],
            "PreToolUse": [{"matcher": "*", "hooks": [{"type": "command", "command": "touch ran-hook-of-claude"}]}]}}"#,
    ),
    (
        ".mcp.json",
        r#"{"mcpServers": {"carried": {"command": "touch", "args": ["ran-server-of-claude"]}}}"#,
    ),
    (
        ".codex/config.toml",
        "model = \"carried\"\n[mcp_servers.carried]\ncommand = \"touch\"\nargs = [\"ran-server-of-codex\"]\n",
    ),
    (
        ".codex/hooks.json",
        r#"{"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "touch ran-hook-of-codex"}]}]}}"#,
    ),
];

/// A plain task in a repository that carries configuration, implemented by this program.
fn carried(agent: Agent) -> Scene {
    let other = if agent == Claude { Codex } else { Claude };
    let scene = Scene::new(other, Script::Die, agent, implementing());
    let (env, dir) = (&scene.place.env, &scene.place.dir);
    for (path, text) in CARRIED {
        write(&dir.join(path), text);
    }
    env.commit(dir, "instructions for agents");
    let task = ["task", "new", "Subtract", "--plain", "--key", "KAN-2"];
    env.hangar(dir, &task).success();
    scene.hangar(&["run", "KAN-2"], 0);
    let files = env.git(dir, &["ls-tree", "-r", "--name-only", "hangar/KAN-2"]);
    assert!(
        files.contains("calc.sh") && !files.contains("ran-"),
        "{files}"
    );
    scene
}

#[test]
#[ignore = "heavy: needs Claude Code and Codex"]
fn nothing_of_the_repository_configures_claude_code() {
    let scene = carried(Claude);
    let first = &scene.implementer.requests()[0].body.to_string();
    assert!(
        !first.contains("BETA"),
        "its own loading of CLAUDE.md is off"
    );
    assert!(first.contains("If AGENTS.md or CLAUDE.md is in the root of the work tree, read it"));

    // Started by itself in the same tree, it does run the hooks.
    let left = started_alone(
        &scene,
        Claude,
        &["-p", "--permission-mode", "bypassPermissions"],
    );
    assert!(left.contains("ran-hook-of-claude"), "{left}");
}

#[test]
#[ignore = "heavy: needs Claude Code and Codex"]
fn nothing_of_the_repository_configures_codex_but_its_instructions() {
    let scene = carried(Codex);
    let first = &scene.implementer.requests()[0].body;
    assert_ne!(first["model"], "carried");
    assert!(first.to_string().contains("ALPHA"));

    // Started by itself in the same tree by somebody who trusts it, it does start the server.
    let unsafely = "--dangerously-bypass-approvals-and-sandbox";
    let left = started_alone(&scene, Codex, &["exec", "--trust", unsafely]);
    assert!(left.contains("ran-server-of-codex"), "{left}");
}

/// Names of new files after a program was started in the repository without hangar.
fn started_alone(scene: &Scene, agent: Agent, args: &[&str]) -> String {
    let (env, dir) = (&scene.place.env, &scene.place.dir);
    let model = ModelServer::start(implementing());
    let mut command = agent.command(&model).into_iter();
    let home = env.root().join("other-home");
    fs::create_dir(&home).unwrap();
    let out = env
        .command(&command.next().unwrap(), dir)
        .args(command)
        .args(args)
        .arg("do it")
        .env("HOME", home)
        .env("ANTHROPIC_API_KEY", KEY)
        .env("ANTHROPIC_BASE_URL", format!("http://{}", model.address))
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .env("CODEX_API_KEY", KEY)
        .env("HANGAR_EXCHANGE", env.root())
        .env("IS_SANDBOX", "1")
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let left = env.git(dir, &["status", "--short"]);
    format!("{left}\n{}", String::from_utf8_lossy(&out.stderr))
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
