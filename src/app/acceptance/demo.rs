//! `hangar demo`: the whole flow in a throwaway repository, with the same use cases that the
//! commands run. Scripted writer and implementer; everything else is real.

use super::machine::Watch;
use super::review::Wanted;
use super::run::{How, RunView, run};
use super::{decide, review};
use crate::app::setup::init::{InitRequest, init};
use crate::app::tasks::draft::Draft;
use crate::app::verify::{Subject, verify};
use crate::app::{Error, Here, keys, tasks};
use crate::base::files;
use crate::git::program::Git;
use crate::model::approval::Action;
use crate::model::ids::TaskId;
use crate::trust::AskPassphrase;
use schemars::JsonSchema;
use serde::Serialize;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// What the demo shows, step by step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scene {
    /// What happens now, for people.
    Tell(String),
    /// A command that would do the same.
    Command(String),
}

/// How the demo ended.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DemoView {
    /// The repository, where it was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// The task.
    pub id: TaskId,
    /// Where the run stopped.
    pub run: RunView,
    /// Whether a grade refused the wrong patch first.
    pub wrong_patch_refused: bool,
    /// Whether `verify` found every link whole.
    pub verified: bool,
}

/// The project: a shell calculator that can't subtract yet.
const CALC: &str = "\
#!/bin/sh
# calc.sh A OP B
case \"$2\" in
  +) echo $(($1 + $3)) ;;
  *) echo \"unknown operator: $2\" >&2; exit 2 ;;
esac
";
/// The first patch: looks right, passes its own example, is wrong.
const WRONG: &str = "\
#!/bin/sh
# calc.sh A OP B
case \"$2\" in
  +) echo $(($1 + $3)) ;;
  -) echo $(($3 - $1)) ;;
  *) echo \"unknown operator: $2\" >&2; exit 2 ;;
esac
";
/// The second patch.
const RIGHT: &str = "\
#!/bin/sh
# calc.sh A OP B
case \"$2\" in
  +) echo $(($1 + $3)) ;;
  -) echo $(($1 - $3)) ;;
  *) echo \"unknown operator: $2\" >&2; exit 2 ;;
esac
";
const HIDDEN: [(&str, &str); 4] = [
    (
        "tests/subtract.sh",
        "#!/bin/sh\ntest \"$(sh ./calc.sh 7 - 3)\" = 4\n",
    ),
    (
        "tests/negative.sh",
        "#!/bin/sh\ntest \"$(sh ./calc.sh 3 - 7)\" = -4\n",
    ),
    (
        "tests/still_adds.sh",
        "#!/bin/sh\ntest \"$(sh ./calc.sh 2 + 2)\" = 4\n",
    ),
    (
        "tests/impossible.sh",
        "#!/bin/sh\ntest \"$(sh ./calc.sh 1 + 1)\" = 3\n",
    ),
];
const MAP: &str = r#"{"format": 1,
 "criteria": {"c1": ["tests/subtract.sh"], "c2": ["tests/negative.sh"]},
 "others": ["tests/still_adds.sh"], "sentinels": ["tests/impossible.sh"],
 "notes": "still_adds guards what works already."}
"#;

/// Runs the demo in `folder`, which is made and must not exist.
pub fn demo(folder: &Path, watch: &Watch<'_>, say: &dyn Fn(Scene)) -> Result<DemoView, Error> {
    let stage = Stage::set(folder)?;
    let ask: &mut AskPassphrase<'_> = &mut |_| None;
    say(Scene::Tell(
        "A new repository with a small program, and a policy with you as its only member.".into(),
    ));
    say(Scene::Command("hangar init".into()));
    init(&stage.here, &request(), ask)?;
    stage.commit("Set up hangar")?;

    say(Scene::Tell("A task with two acceptance criteria.".into()));
    say(Scene::Command(
        "hangar task new \"Subtract\" --criterion … --criterion … --key DEMO-1".into(),
    ));
    let task = tasks::new::new(&stage.here, &[draft()?], ask)?.remove(0);

    say(Scene::Tell(
        "One agent writes hidden tests. They run on the untouched base in a sealed sandbox, are encrypted with age \
         and signed, and wait for you."
            .into(),
    ));
    say(Scene::Command("hangar run DEMO-1".into()));
    run(&stage.here, "DEMO-1", How::default(), ask, watch)?;

    say(Scene::Tell(
        "You read them and sign. (Here the demo signs with a key that it made.)".into(),
    ));
    say(Scene::Command(
        "hangar review DEMO-1 && hangar approve DEMO-1".into(),
    ));
    let card = review::review(
        &stage.here,
        &Wanted {
            tests: true,
            ..Wanted::default()
        },
        ask,
    )?;
    let digest = card.manifest.to_string();
    let pending = decide::pending(&stage.here, Some("DEMO-1"), Some(&digest))?;
    decide::decide(&stage.here, &pending, Action::Approve, "", ask)?;

    say(Scene::Tell(
        "Another agent implements. It never sees the tests. Its first patch subtracts the wrong way round: refused. \
         It is told counts and names only, and its second patch is right."
            .into(),
    ));
    say(Scene::Command("hangar run DEMO-1".into()));
    let last = run(&stage.here, "DEMO-1", How::default(), ask, watch)?;
    let store = stage.here.store()?;
    let dossier = store.dossier(&task.id)?;
    let refused = dossier
        .grades
        .first()
        .is_some_and(|grade| !grade.value().accepted && !grade.value().void);

    say(Scene::Tell(
        "A stranger checks every link: policy, signatures, tests, patch, grade, commit.".into(),
    ));
    say(Scene::Command("hangar verify DEMO-1".into()));
    let verified = verify(&stage.here, Subject::Named("DEMO-1"))?.accepted;
    Ok(DemoView {
        repository: Some(stage.repo.display().to_string()),
        id: task.id,
        run: last,
        wrong_patch_refused: refused,
        verified,
    })
}

fn request() -> InitRequest {
    InitRequest {
        new: false,
        name: "demo".parse().ok(),
        agents: false,
        hooks: false,
        recovery: None,
        prefix: None,
    }
}

fn draft() -> Result<Draft, Error> {
    let text = r#"{"title": "Subtract", "key": "DEMO-1", "flow": "test-first",
        "mandate": "calc.sh A - B prints the difference.",
        "criteria": ["7 - 3 is 4", "results may be negative"]}"#;
    let mut drafts = tasks::draft::read_lines(&text.replace('\n', " "))?;
    Ok(drafts.remove(0))
}

/// The throwaway folder: repository, home, scripts.
struct Stage {
    repo: PathBuf,
    here: Here,
}

impl Stage {
    fn set(folder: &Path) -> Result<Self, Error> {
        let (repo, home, scripts) = (
            folder.join("repository"),
            folder.join("home"),
            folder.join("agents"),
        );
        for dir in [&repo, &home, &scripts] {
            make_dir(dir)?;
        }
        write(&repo.join("calc.sh"), CALC)?;
        for (path, text) in HIDDEN {
            write(&scripts.join("writer/writer/1/out/sealed").join(path), text)?;
        }
        write(
            &scripts.join("writer/writer/1/out/sealed/criteria.json"),
            MAP,
        )?;
        write(&scripts.join("coder/implementer/1/src/calc.sh"), WRONG)?;
        write(&scripts.join("coder/implementer/2/src/calc.sh"), RIGHT)?;
        keys::new(&home.join(".ssh/id_ed25519"))?;
        write(
            &home.join(".config/hangar/config.toml"),
            &configuration(&scripts),
        )?;
        let here = Here {
            dir: repo.clone(),
            env: [
                ("HOME", home.as_os_str()),
                ("PATH", "/usr/local/bin:/usr/bin:/bin".as_ref()),
            ]
            .into_iter()
            .map(|(name, value)| (name.into(), value.to_owned()))
            .collect(),
            clock: crate::base::clock::Clock::from_env(),
            offline: true,
            notices: crate::app::Notices::default(),
        };
        let stage = Self { repo, here };
        stage.git(&["init", "--quiet", "--initial-branch=main"])?;
        stage.commit("A calculator that adds")?;
        Ok(stage)
    }

    fn commit(&self, message: &str) -> Result<(), Error> {
        self.git(&["add", "--all"])?;
        self.git(&[
            "-c",
            "user.name=demo",
            "-c",
            "user.email=demo@example.com",
            "commit",
            "--quiet",
            "-m",
            message,
        ])
    }

    fn git(&self, args: &[&str]) -> Result<(), Error> {
        Git::isolated().dir(&self.repo).args(args).run()?;
        Ok(())
    }
}

fn configuration(scripts: &Path) -> String {
    let mut table = toml::Table::new();
    let mut harness = toml::Table::new();
    for name in ["writer", "coder"] {
        let mut one = toml::Table::new();
        one.insert("kind".into(), "script".into());
        one.insert(
            "dir".into(),
            scripts.join(name).display().to_string().into(),
        );
        harness.insert(name.into(), one.into());
    }
    let mut lanes = toml::Table::new();
    lanes.insert("writer".into(), vec!["writer"].into());
    lanes.insert("implementer".into(), vec!["coder"].into());
    table.insert("harness".into(), harness.into());
    table.insert("lanes".into(), lanes.into());
    table.to_string()
}

fn make_dir(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(|source| files::Error {
        action: "create",
        path: path.to_owned(),
        source,
    })?;
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    if let Some(parent) = path.parent() {
        make_dir(parent)?;
    }
    files::write_atomic(path, text.as_bytes(), 0o644)?;
    if text.starts_with("#!") {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(|source| {
            files::Error {
                action: "make executable",
                path: path.to_owned(),
                source,
            }
        })?;
    }
    Ok(())
}
