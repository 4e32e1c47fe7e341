//! What an agent program finds in its sandbox beside its own.

use super::world::World;
use hangar::flow::drive::{Agents, Stop, drive};
use hangar::model::approval::Action;
use hangar::model::lane::HarnessSettings;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

const CONFIG: &str = r#"
format = 1
[task]
flow = "test-first"
verify = "python3 -m unittest -q"
[grader]
framework = "unittest"
tests = ["tests/"]
[deliver]
as = "branch"
branch = "hangar/{key}"
"#;
const TEST: &str = "\
import unittest
import calc
class Sub(unittest.TestCase):
    def test_sub(self):
        self.assertEqual(calc.sub(5, 3), 2)
";
const MAP: &str = r#"{"format": 1, "criteria": {"c1": ["tests/test_sub.py::Sub::test_sub"]}, "others": [], "sentinels": [], "notes": ""}"#;
/// Writes the code and leaves it only if the repository's own interpreter runs it.
const AGENT: &str = "\
#!/bin/sh
set -e
cd /src
echo 'def sub(a, b): return a - b' > calc.py
python3 -c 'import calc; assert calc.sub(5, 3) == 2'
";

#[test]
#[ignore = "heavy: needs python3"]
fn an_implementer_can_run_the_projects_own_interpreter() {
    let world = World::new(&[
        ("calc.py", ""),
        ("tests/__init__.py", ""),
        ("hangar.toml", CONFIG),
    ]);
    world.script("writer", "writer/1/out/sealed/tests/test_sub.py", TEST);
    world.script("writer", "writer/1/out/sealed/criteria.json", MAP);
    let agent = world.dir.path().join("agent.sh");
    fs::File::create(&agent).unwrap();
    hangar::base::files::write_atomic(&agent, AGENT.as_bytes(), 0o755).unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    let store = world.store();
    let id = world.task(&store, "Subtract", &["sub(5, 3) is 2"]);
    let mut host = world.host();
    let settings = HarnessSettings {
        kind: "command".into(),
        command: vec![agent.display().to_string()],
        ..HarnessSettings::default()
    };
    host.user.lanes.harnesses.insert("coder".into(), settings);
    drive(&host, &store, &id, None, Agents::Start).unwrap();
    world.decide(&id, Action::Approve, "");
    let stop = drive(&host, &store, &id, None, Agents::Start).unwrap();
    assert!(matches!(stop, Stop::Delivered(_)), "{stop:?}");
}
