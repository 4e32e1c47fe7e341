//! A turn as the flow runs it: an adapter's launch in a real sandbox, the exchange laid from
//! memory and collected into memory, egress through the proxy.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use hangar::base::files::write_atomic;
use hangar::base::redact::Secret;
use hangar::harness::adapter::{Launch, Turn};
use hangar::harness::collect::{CollectedFile, LeftOut, Paths, sealed};
use hangar::harness::egress::{Config, Proxy, Reason, Verdict};
use hangar::harness::exchange::{Criterion, INSIDE, Inputs, SEALED, TaskFile};
use hangar::harness::finish::{Ended, Exit, TurnEnd};
use hangar::harness::lanes::{Lane, resolve};
use hangar::model::lane::{HarnessSettings, LaneSettings, Role};
use hangar::sandbox::spec::{
    Bridge, Collect, End, LaidFile, Limits, Mount, Network, Outcome, Spec, Step,
};
use hangar::sandbox::{Cancel, Event, Launcher, provider};
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A lane whose program is this shell text.
fn lane(dir: &Path, text: &str, hosts: &[&str]) -> Lane {
    let program = dir.join("agent");
    write_atomic(&program, format!("#!/bin/sh\n{text}\n").as_bytes(), 0o755).unwrap();
    let harness = HarnessSettings {
        kind: "command".into(),
        command: vec![program.display().to_string(), "--flag".into()],
        hosts: hosts.iter().map(|host| host.parse().unwrap()).collect(),
        env: vec!["MY_API_KEY".into()],
        ..HarnessSettings::default()
    };
    let settings = LaneSettings {
        harnesses: [("mine".into(), harness)].into(),
        lanes: [(Role::Writer, vec!["mine:high".parse().unwrap()])].into(),
    };
    resolve(&settings, Role::Writer).unwrap().remove(0)
}

fn launch(lane: &Lane) -> Launch {
    let env = [
        ("MY_API_KEY".into(), "secret-key".into()),
        ("OTHER".into(), "x".into()),
    ]
    .into();
    lane.adapter
        .launch(&Turn {
            role: Role::Writer,
            number: 1,
            exchange: Path::new(INSIDE),
            work: Path::new("/src"),
            hangar: Path::new("/hangar/bin"),
            prompt: "write tests",
            home: Path::new("/home/user"),
            env: &env,
            total: Duration::from_secs(60),
            idle: Duration::from_secs(30),
        })
        .unwrap()
}

fn inputs() -> Vec<LaidFile> {
    let task = TaskFile {
        format: 1,
        id: "t1",
        role: "writer",
        turn: 1,
        title: "Sum",
        mandate: "",
        criteria: vec![Criterion {
            id: "c1",
            text: "works",
        }],
    };
    let inputs = Inputs {
        prompt: "write tests",
        task: &task,
        context: "",
        previous: vec![("tests/old.sh".into(), Secret::new(b"old".to_vec()))],
    };
    let laid = inputs.laid(Path::new(INSIDE)).unwrap().into_iter();
    laid.map(|file| LaidFile {
        path: file.path,
        bytes: file.bytes,
        mode: file.mode,
    })
    .collect()
}

fn run(launch: &Launch, src: &Path, proxy: Option<&Proxy>) -> Outcome {
    let mut env: BTreeMap<_, _> = launch.env.expose().clone();
    env.insert("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into());
    let mut network = Network::None;
    if let Some(proxy) = proxy {
        let vars = proxy.environment().into_iter();
        env.extend(vars.map(|(name, value)| (name.into(), value.into())));
        let bridges = proxy.bridges().iter().map(|bridge| Bridge {
            port: bridge.port,
            socket: bridge.socket.clone(),
        });
        network = Network::Bridged(bridges.collect());
    }
    let binds = launch.read_only.iter().map(|bind| Mount::ReadOnly {
        host: bind.host.clone(),
        inside: bind.inside.clone(),
    });
    let src = Mount::Scratch {
        host: src.to_owned(),
        inside: "/src".into(),
    };
    let spec = Spec {
        mounts: binds.chain([src]).collect(),
        files: inputs(),
        network,
        limits: Limits {
            output: Some(1 << 20),
            ..Limits::default()
        },
        inner_domain: false,
        hash_after: Vec::new(),
        collect: vec![Collect {
            path: Path::new(INSIDE).join(SEALED),
            max_file: 10 << 20,
            max_total: 64 << 20,
            max_files: 2000,
        }],
        steps: vec![Step {
            argv: launch.argv.clone(),
            env,
            dir: "/src".into(),
            stdin: launch.stdin.clone(),
            channel: false,
            timeout: launch.total,
            idle: launch.idle,
        }],
        stop_on_failure: true,
        deadline: None,
    };
    let launcher = Launcher {
        program: env!("CARGO_BIN_EXE_hangar").into(),
        image: None,
    };
    provider("linux", &launcher)
        .unwrap()
        .run(&spec, &Cancel::default(), &mut |_: Event| {})
        .unwrap()
}

fn end(lane: &Lane, outcome: &Outcome) -> TurnEnd {
    let step = &outcome.steps[0];
    let exit = match step.end {
        End::Exited(code) => Exit::Code(code),
        End::Signalled(signal) => Exit::Signal(signal),
        End::TimedOut => Exit::TimedOut,
        End::Idle => Exit::Idle,
        End::NotStarted(errno) => Exit::NotStarted(errno),
    };
    let ended = Ended {
        exit,
        stdout: &step.stdout,
        stderr: &step.stderr,
        at: "2026-01-01T00:00:00Z".parse().unwrap(),
    };
    lane.adapter.read(&ended).end
}

#[test]
fn a_writers_tests_come_back_through_memory_alone() {
    let dir = tempfile::tempdir().unwrap();
    let src = dir.path().join("src");
    std::fs::create_dir(&src).unwrap();
    // As root, the sandbox runs as another user.
    std::fs::set_permissions(&src, std::fs::Permissions::from_mode(0o777)).unwrap();
    let script = r#"set -e
grep -q "write tests" "$HANGAR_EXCHANGE/in/prompt.md"
grep -q '"c1"' "$HANGAR_EXCHANGE/in/task.json"
test "$(cat "$HANGAR_EXCHANGE/in/previous/tests/old.sh")" = old
test "$MY_API_KEY" = secret-key && test -z "$OTHER"
test "$HANGAR_ROLE $HANGAR_EFFORT $1" = "writer high --flag"
cd "$HANGAR_EXCHANGE/out/sealed"
mkdir tests
echo "exit 1" > tests/a.sh
chmod +x tests/a.sh
echo '{"format": 1, "criteria": {"c1": ["tests/a.sh"]}}' > criteria.json
echo scribble > /src/scratch"#;
    let lane = lane(dir.path(), script, &[]);
    let outcome = run(&launch(&lane), &src, None);
    assert_eq!(
        end(&lane, &outcome),
        TurnEnd::Done,
        "{}",
        String::from_utf8_lossy(&outcome.steps[0].stderr)
    );
    let root = Path::new(INSIDE).join(SEALED);
    let files: Vec<_> = outcome
        .collected
        .into_iter()
        .map(|file| CollectedFile::below(&root, &file.path, file.executable, file.bytes).unwrap())
        .collect();
    let left_out: Vec<_> = outcome
        .not_collected
        .iter()
        .filter_map(|(path, why)| LeftOut::below(&root, path, why))
        .collect();
    let paths = Paths {
        tests: &["tests/".into()],
        allowed: &|path| path.starts_with("tests/"),
        protected: &|_| false,
    };
    let output = sealed(files, &left_out, &["c1".parse().unwrap()], &paths)
        .map_err(|complaint| complaint.for_writer())
        .unwrap();
    assert!(output.files["tests/a.sh"].executable);
    assert_eq!(output.files["tests/a.sh"].bytes.expose(), b"exit 1\n");
    assert_eq!(
        std::fs::read_dir(&src).unwrap().count(),
        0,
        "the host's tree is as it was"
    );
}

#[test]
fn egress_leads_to_the_listed_place_only() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nmodel\n");
        }
    });
    let dir = tempfile::tempdir().unwrap();
    let local = format!("http://127.0.0.1:{}/", server.port());
    let script = format!(
        "curl -s http://api.example.org/ || echo no1
curl -s --noproxy '*' --max-time 5 {local} || echo no2
curl -s http://evil.example/ || echo no3
curl -s --noproxy '*' --max-time 5 http://api.example.org/ || echo no4"
    );
    let listed = ["api.example.org:80", &server.to_string()];
    let lane = lane(dir.path(), &script, &listed);
    let launch = launch(&lane);
    let mut config = Config::new("mine:high", launch.hosts.clone());
    config.resolve = Arc::new(|_, port| Ok(vec![format!("93.184.215.14:{port}").parse().unwrap()]));
    config.connect = Arc::new(move |_, limit| TcpStream::connect_timeout(&server, limit));
    let proxy = Proxy::start(config).unwrap();
    let outcome = run(&launch, dir.path(), Some(&proxy));
    let out = String::from_utf8_lossy(&outcome.steps[0].stdout).into_owned();
    assert_eq!(
        out,
        "model\nmodel\nrefused by the egress proxy: not on the allow-list\nno4\n",
        "{}",
        String::from_utf8_lossy(&outcome.steps[0].stderr)
    );
    let records = proxy.finish();
    // Each connection is recorded when it has ended, so their order is not given.
    let mut shown: Vec<_> = records
        .iter()
        .map(|r| (r.host.as_str(), r.verdict))
        .collect();
    shown.sort_by_key(|(host, _)| *host);
    assert_eq!(
        shown,
        [
            ("127.0.0.1", Verdict::Allowed),
            ("api.example.org", Verdict::Allowed),
            ("evil.example", Verdict::Refused(Reason::NotListed)),
        ]
    );
}
