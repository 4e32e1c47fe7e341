//! Words, help texts, exit codes, and JSON schemas of the command line.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use crate::common::TestEnv;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Every command line that prints a help text, found by walking the commands.
fn commands() -> Vec<Vec<String>> {
    fn walk(command: &clap::Command, path: &[String], out: &mut Vec<Vec<String>>) {
        out.push(path.to_vec());
        for sub in command.get_subcommands() {
            if sub.get_name() != "help" {
                let mut path = path.to_vec();
                path.push(sub.get_name().to_owned());
                walk(sub, &path, out);
            }
        }
    }
    let mut out = Vec::new();
    walk(&hangar::cli::command(), &[], &mut out);
    out
}

#[test]
fn every_command_and_every_option_is_explained() {
    let mut command = hangar::cli::command();
    command.build();
    fn check(command: &clap::Command) {
        let name = command.get_bin_name().unwrap_or(command.get_name());
        assert!(command.get_about().is_some(), "{name} has no text");
        for arg in command.get_arguments() {
            assert!(arg.get_help().is_some(), "{name} {}", arg.get_id());
        }
        command.get_subcommands().for_each(check);
    }
    check(&command);
}

#[test]
fn global_options_stand_before_or_after_the_command() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    for args in [
        ["-C", "repo", "--json", "task", "list"],
        ["task", "-C", "repo", "list", "--json"],
        ["task", "list", "--json", "-C", "repo"],
    ] {
        let ran = env.hangar(env.root(), &args).success();
        assert_eq!(ran.json()["tasks"], serde_json::json!([]));
        assert_eq!(ran.stderr, "");
    }
    drop(dir);
}

#[test]
fn wrong_usage_is_exit_2_in_text_and_in_json() {
    let env = TestEnv::without_key();
    for args in [
        &["frobnicate"][..],
        &["task"],
        &["task", "new", "--test-first", "--plain", "x"],
        &["task", "list", "--state", "sleeping"],
        &["task", "new", "x", "-p", "10"],
        &["--color", "mauve", "task", "list"],
    ] {
        let ran = env.hangar(env.root(), args).exits(2);
        assert_eq!(ran.stdout, "", "{args:?}");
        let json = [args, &["--json"]].concat();
        let error = env.hangar(env.root(), &json).exits(2).json_error();
        assert_eq!(error["error"]["code"], 2);
        assert_eq!(error["error"]["kind"], "usage");
    }
}

#[test]
fn version_and_help_need_nothing() {
    let env = TestEnv::without_key();
    let bare = [("HOME", ""), ("PATH", ""), ("XDG_CONFIG_HOME", "")];
    let ran = env
        .hangar_with(Path::new("/"), &["--version"], &bare, "")
        .success();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(ran.stdout, format!("hangar {version}\n"));
    env.hangar_with(Path::new("/"), &["task", "new", "--help"], &bare, "")
        .success();
}

#[test]
fn a_reader_that_goes_away_ends_the_output_quietly() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    let script = format!(
        "{{ {0} man; echo $? >&2; }} | true; {{ {0} completions bash; echo $? >&2; }} | true",
        env!("CARGO_BIN_EXE_hangar")
    );
    let out = env
        .command("/bin/sh", &dir)
        .args(["-c", &script])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&out.stderr), "0\n0\n");
}

#[test]
fn a_full_disk_under_the_output_is_told() {
    let env = TestEnv::new();
    for word in ["man", "--version", "--help"] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full");
        let Ok(full) = full else { return };
        let out = env
            .command(env!("CARGO_BIN_EXE_hangar"), env.root())
            .arg(word)
            .stdout(full)
            .output()
            .unwrap();
        assert_eq!(out.status.code(), Some(7), "{word}");
        let text = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(text.contains("cannot write the output"), "{word}: {text}");
    }
}

#[test]
fn completions_and_manual_pages_name_every_command() {
    let env = TestEnv::without_key();
    for shell in ["bash", "zsh", "fish"] {
        let ran = env.hangar(env.root(), &["completions", shell]).success();
        for word in ["init", "task", "policy"] {
            assert!(ran.stdout.contains(word), "{shell}: {word}");
        }
    }
    env.hangar(env.root(), &["man", "pages"]).success();
    for path in commands() {
        let name = [&["hangar".to_owned()], path.as_slice()].concat().join("-");
        let page = env.root().join("pages").join(format!("{name}.1"));
        let text = fs::read_to_string(&page).unwrap_or_default();
        assert!(text.contains(&format!(".TH {name} 1")), "{name}");
    }
}

/// The committed folder, by file name.
fn committed() -> BTreeMap<String, String> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    read_folder(&dir)
}

fn read_folder(dir: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(dir).into_iter().flatten();
    entries
        .map(|entry| {
            let entry = entry.unwrap();
            let text = fs::read_to_string(entry.path()).unwrap();
            (entry.file_name().into_string().unwrap(), text)
        })
        .collect()
}

#[test]
fn the_committed_schemas_are_current() {
    let env = TestEnv::without_key();
    let dir = env.root().join("schemas");
    fs::create_dir(&dir).unwrap();
    env.hangar(env.root(), &["__schemas", "schemas"]).success();
    let (fresh, old) = (read_folder(&dir), committed());
    let differs: Vec<_> = fresh
        .keys()
        .chain(old.keys())
        .filter(|name| fresh.get(*name) != old.get(*name))
        .collect();
    assert!(
        differs.is_empty(),
        "run `hangar __schemas schemas`; these differ: {differs:?}"
    );
}

/// Checks a real answer against the committed schema.
#[track_caller]
pub(crate) fn validate(schema: &str, document: &serde_json::Value) {
    let text = &committed()[&format!("{schema}.json")];
    let schema: serde_json::Value = serde_json::from_str(text).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<_> = validator
        .iter_errors(document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}\n{document:#}");
}

#[test]
fn colour_and_notices_go_where_they_are_wanted() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    let plain = env.hangar(&dir, &["policy", "show"]).success();
    assert!(!plain.stdout.contains('\u{1b}'), "{plain}");
    let bright = env
        .hangar(&dir, &["policy", "show", "--color", "always"])
        .success();
    assert!(bright.stdout.contains("\u{1b}[1m"), "{bright}");
    let json = env
        .hangar(&dir, &["policy", "show", "--color", "always", "--json"])
        .success();
    assert!(!json.stdout.contains('\u{1b}'), "{json}");
    let error = env
        .hangar(&dir, &["task", "show", "none", "--color", "always"])
        .exits(2);
    assert!(error.stderr.contains("\u{1b}["), "{error}");
    let told = env.hangar(&dir, &["task", "list"]).success();
    assert_eq!(told.stderr, "no task\n");
    let quiet = env.hangar(&dir, &["-q", "task", "list"]).success();
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
}

#[test]
fn the_program_s_own_words_for_each_error_fit_the_documented_codes() {
    let env = TestEnv::new();
    let dir = env.ready("repo");
    let task = env.hangar(&dir, &["task", "new", "x", "-c", "y"]).success();
    let task = task.text().to_owned();
    env.hangar(&dir, &["task", "enqueue", &task]).success();
    for (args, code, kind) in [
        (&["task", "show", "none"][..], 2, "usage"),
        (&["-C", "/", "task", "list"], 3, "missing"),
        (&["task", "delete", &task], 4, "refused"),
        (&["deinit"], 6, "waiting"),
        (&["task", "comment", &task, "-F", "missing"], 2, "usage"),
    ] {
        let json = [args, &["--json"]].concat();
        let error = env.hangar(&dir, &json).exits(code).json_error();
        validate("error", &error);
        assert_eq!(
            (&error["error"]["kind"], &error["error"]["code"]),
            (&kind.into(), &code.into()),
            "{args:?}"
        );
    }
}
