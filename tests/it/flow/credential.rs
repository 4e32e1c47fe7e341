//! What an agent program logs in with gets neither into what is kept of its turn nor into a patch.

use super::world::{EXEC as CONFIG, World};
use hangar::flow;
use hangar::flow::drive::{Agents, Stop, drive};
use hangar::model::approval::Action;
use hangar::model::ids::TaskId;
use hangar::model::lane::HarnessSettings;

const MAP: &str = r#"{"format": 1, "criteria": {"c1": ["tests/sub.sh"]}, "others": [], "sentinels": [], "notes": ""}"#;
const TEST: &str = "#!/bin/sh\ntest \"$(sh ./calc.sh 5 3)\" = 2\n";
const KEY: &str = "sk-of-a-test-0123456789";

struct Scene {
    world: World,
    id: TaskId,
}

impl Scene {
    /// A task whose tests are approved, and whose coder is this shell text.
    fn new() -> Self {
        let world = World::new(&[("calc.sh", "echo 0\n"), ("hangar.toml", CONFIG)]);
        for (path, text) in [("tests/sub.sh", TEST), ("criteria.json", MAP)] {
            world.script("writer", &format!("writer/1/out/sealed/{path}"), text);
        }
        let store = world.store();
        let id = world.task(&store, "Subtract", &["calc.sh 5 3 prints 2"]);
        drive(&world.host(), &store, &id, None, Agents::Start).unwrap();
        world.decide(&id, Action::Approve, "");
        Self { world, id }
    }

    fn runs(&self, text: &str) -> Result<Stop, flow::Error> {
        let agent = self.world.dir.path().join("agent.sh");
        let text = format!("#!/bin/sh\ncd /src\n{text}");
        hangar::base::files::write_atomic(&agent, text.as_bytes(), 0o755).unwrap();
        let settings = HarnessSettings {
            kind: "command".into(),
            command: vec![agent.display().to_string()],
            env: vec!["MY_KEY".into()],
            ..HarnessSettings::default()
        };
        let mut host = self.world.host();
        host.env = [("MY_KEY".into(), KEY.into())].into();
        host.user.lanes.harnesses.insert("coder".into(), settings);
        drive(&host, &self.world.store(), &self.id, None, Agents::Start)
    }

    /// A file of the last run.
    fn kept(&self, name: &str) -> String {
        let store = self.world.store();
        let dossier = store.dossier(&self.id).unwrap();
        let folder = &dossier.runs.last().unwrap().folder;
        let bytes = folder.file(&store.repo, name).unwrap().unwrap();
        String::from_utf8(bytes).unwrap()
    }
}

#[test]
fn a_key_that_a_program_prints_is_not_kept() {
    let scene = Scene::new();
    let stop = scene.runs(
        "echo 'echo $(($1 - $2))' > calc.sh; env; env >&2; echo \"used $MY_KEY\" > $HANGAR_EXCHANGE/out/RESULT.md\n",
    );
    assert!(matches!(stop, Ok(Stop::Delivered(_))), "{stop:?}");
    let transcript = scene.kept("transcript");
    assert_eq!(
        transcript.matches("MY_KEY=[MY_KEY]").count(),
        2,
        "{transcript}"
    );
    assert_eq!(scene.kept("RESULT.md"), "used [MY_KEY]\n");
    assert!(!transcript.contains(KEY));
}

#[test]
fn a_patch_that_holds_a_key_is_not_kept() {
    let scene = Scene::new();
    let error = scene.runs("echo \"# $MY_KEY\" >> calc.sh\n").unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("left the value of `MY_KEY` in its patch"),
        "{text}"
    );
    let store = scene.world.store();
    let dossier = store.dossier(&scene.id).unwrap();
    assert!(dossier.runs.last().unwrap().value().result.is_none());
    // The name alone is no key.
    let stop = scene.runs("printf '# MY_KEY\\necho $(($1 - $2))\\n' > calc.sh\n");
    assert!(matches!(stop, Ok(Stop::Delivered(_))), "{stop:?}");
}
