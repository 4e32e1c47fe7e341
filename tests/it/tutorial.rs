//! `docs/tutorial.md`, typed by a user with an empty home: every `console` block is run, and what the
//! page shows is compared with what comes out.
//!
//! In a block, `$ ` begins a command and `> ` continues it; other lines are its output, standard
//! error included. `…` stands for any text within a line, alone on a line for any lines. A last line
//! `[exit N]` says that the command ends with N instead of 0.

use crate::common::TestEnv;
use crate::docs::{blocks, page};
use crate::verify::one_task;
use std::fs;
use std::path::{Path, PathBuf};

/// A command of the page with what it should show.
#[derive(Debug, Default, PartialEq, Eq)]
struct Typed {
    command: String,
    output: Vec<String>,
    exit: i32,
}

fn parse(block: &str) -> Vec<Typed> {
    let mut out: Vec<Typed> = Vec::new();
    for line in block.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            out.push(Typed {
                command: command.to_owned(),
                ..Typed::default()
            });
            continue;
        }
        let typed = out.last_mut().expect("a block begins with a command");
        let exit = line
            .strip_prefix("[exit ")
            .and_then(|rest| rest.strip_suffix(']'));
        if let Some(more) = line.strip_prefix("> ").or((line == ">").then_some("")) {
            typed.command.push('\n');
            typed.command.push_str(more);
        } else if let Some(exit) = exit {
            typed.exit = exit.parse().unwrap();
        } else {
            typed.output.push(line.trim_end().to_owned());
        }
    }
    out
}

/// Whether a line is as the page shows it, `…` standing for any text.
fn line_matches(shown: &str, real: &str) -> bool {
    let mut parts = shown.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = real.strip_prefix(first) else {
        return false;
    };
    let mut last = None;
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
        last = Some(part);
    }
    match last {
        None => rest.is_empty(),
        Some("") => true,
        Some(part) => real.ends_with(part),
    }
}

fn matches(shown: &[String], real: &[&str]) -> bool {
    match shown.split_first() {
        None => real.is_empty(),
        Some((line, rest)) if line == "…" => {
            (0..=real.len()).any(|skip| matches(rest, &real[skip..]))
        }
        Some((line, rest)) => real
            .split_first()
            .is_some_and(|(first, others)| line_matches(line, first) && matches(rest, others)),
    }
}

/// The shell's state between two commands: folder and variables.
struct Shell<'a> {
    /// The umask of every command.
    mask: &'static str,
    env: &'a TestEnv,
    dir: PathBuf,
    state: PathBuf,
}

impl<'a> Shell<'a> {
    fn new(env: &'a TestEnv) -> Self {
        let state = env.root().join("variables");
        fs::write(&state, "").unwrap();
        Self {
            mask: "022",
            env,
            dir: env.home().to_owned(),
            state,
        }
    }

    /// Runs one command, as if typed, and compares.
    fn run(&mut self, typed: &Typed) {
        let here = self.env.root().join("folder");
        // Lower-case variables are the page's own and last from command to command. What pages show is
        // what a sync with a folder that only its owner reads prints.
        let mask = self.mask;
        let script = format!(
            "exec 2>&1\numask {mask}\n. {state}\n\
             keep() {{ pwd > {here}; for name in $(compgen -v | grep -xE '[a-z]+'); do declare -p \"$name\"; done > {state}; }}\n\
             trap keep EXIT\n{command}\n",
            state = self.state.display(),
            here = here.display(),
            command = typed.command
        );
        let bin = Path::new(env!("CARGO_BIN_EXE_hangar")).parent().unwrap();
        let path = std::env::var("PATH").unwrap();
        let out = self
            .env
            .command("bash", &self.dir)
            .env("PATH", format!("{}:{path}", bin.display()))
            .args(["-c", &script])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        assert_eq!(
            out.status.code(),
            Some(typed.exit),
            "$ {}\n{text}",
            typed.command
        );
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert!(
            matches(&typed.output, &lines),
            "$ {}\nthe page shows:\n{}\nit prints:\n{text}",
            typed.command,
            typed.output.join("\n"),
        );
        self.dir = fs::read_to_string(&here).unwrap().trim_end().into();
    }
}

#[test]
#[ignore = "heavy: runs the whole flow in real sandboxes"]
fn the_tutorial_runs_as_it_stands() {
    let env = type_out("docs/tutorial.md");
    // A stranger with one short file decides both of its tasks.
    let dir = env.home().join("greeter");
    let tasks = env.git(
        &dir,
        &[
            "for-each-ref",
            "--format=%(refname:lstrip=3)",
            "refs/hangar/tasks",
        ],
    );
    assert_eq!(tasks.lines().count(), 2, "{tasks}");
    for task in tasks.lines() {
        let said = one_task::said(&dir, env.home(), task);
        assert_eq!(said, "accepted\n", "{task}");
    }
}

/// Types every `console` block of a page, as somebody with an empty home.
pub(crate) fn type_out(path: &str) -> TestEnv {
    let env = TestEnv::new();
    let mut shell = Shell::new(&env);
    // Sandboxes must be able to start what the tutorial writes.
    shell.mask = if path.ends_with("hooks.md") {
        "077"
    } else {
        "022"
    };
    let blocks = blocks(&page(path), "console");
    assert!(!blocks.is_empty());
    for typed in blocks.iter().flat_map(|block| parse(block)) {
        shell.run(&typed);
    }
    env
}

#[test]
fn shown_output_is_compared_line_by_line() {
    let typed = parse("$ cat <<'E'\n> a\n> E\na\n[exit 3]\n$ true\n");
    assert_eq!(typed[0].command, "cat <<'E'\na\nE");
    assert_eq!(
        (typed[0].output.as_slice(), typed[0].exit),
        (["a".to_owned()].as_slice(), 3)
    );
    assert!(typed[1].output.is_empty() && typed[1].exit == 0);

    let shown = |lines: &[&str]| {
        lines
            .iter()
            .map(|line| (*line).to_owned())
            .collect::<Vec<_>>()
    };
    assert!(matches(
        &shown(&["a", "…", "id … done"]),
        &["a", "x", "y", "id 12 done"]
    ));
    assert!(matches(&shown(&["…"]), &[]));
    assert!(!matches(&shown(&["a"]), &["a", "b"]));
    assert!(!matches(&shown(&["id … done"]), &["id 12 failed"]));
    assert!(!matches(&shown(&["a"]), &["ab"]));
}
