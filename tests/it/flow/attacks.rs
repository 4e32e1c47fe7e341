//! Patches that try to bend what runs them, through the whole flow. The second round of each is the
//! honest control.

use super::world::World;
use hangar::flow::drive::{Agents, Stop, drive};
use hangar::model::approval::Action;

const CONFIG: &str = r#"
format = 1
[task]
flow = "test-first"
[grader]
framework = "exec"
tests = ["tests/", "**/*.testlib.js"]
build = "sh ./build.sh"
[deliver]
as = "branch"
branch = "hangar/{key}"
"#;

const TEST: &str = "#!/bin/sh\n. ./tests/helper.sh\ntest \"$(sh ./calc.sh 5 3)\" = \"$EXPECTED\"\n";
const GUARD: &str = "#!/bin/sh\nsh ./calc.sh 1 1 > /dev/null\n";
const MAP: &str = r#"{"format": 1, "criteria": {"c1": ["tests/sub.sh"]}, "others": ["tests/a_guard.sh"], "sentinels": [], "notes": ""}"#;
const HONEST: &str = "echo $(($1 - $2))\n";

/// Runs a hostile first round and an honest second one; gives the reasons against the first.
fn refused(hostile: &[(&str, &str)]) -> Vec<String> {
    let world = World::new(&[
        ("calc.sh", "echo 0\n"),
        ("build.sh", "true\n"),
        ("tests/helper.sh", "EXPECTED=2\n"),
        ("lib/help.testlib.js", "exports.expected = 2;\n"),
        ("hangar.toml", CONFIG),
    ]);
    for (path, text) in [
        ("tests/sub.sh", TEST),
        ("tests/a_guard.sh", GUARD),
        ("criteria.json", MAP),
    ] {
        world.script("writer", &format!("writer/1/out/sealed/{path}"), text);
    }
    for (path, text) in hostile {
        world.script("coder", &format!("implementer/1/src/{path}"), text);
    }
    world.script("coder", "implementer/2/src/calc.sh", HONEST);
    world.script("coder", "implementer/2/delete.txt", "lib/help.testlib\n");
    world.script("coder", "implementer/2/src/build.sh", "true\n");
    let store = world.store();
    let id = world.task(&store, "Subtract", &["calc.sh 5 3 prints 2"]);
    let host = world.host();
    drive(&host, &store, &id, None, Agents::Start).unwrap();
    world.decide(&id, Action::Approve, "");
    let stop = drive(&host, &store, &id, None, Agents::Start).unwrap();
    let dossier = store.dossier(&id).unwrap();
    assert!(
        matches!(stop, Stop::Delivered(_)),
        "the honest patch must pass: {stop:?}"
    );
    let first = dossier.grades.first().unwrap().value();
    assert!(!first.accepted, "the hostile patch was accepted");
    first.reasons.clone()
}

#[test]
fn a_build_step_that_rewrites_a_helper_of_the_tests_is_refused() {
    let build = "echo EXPECTED=8 > tests/helper.sh\n";
    let reasons = refused(&[("calc.sh", "echo 8\n"), ("build.sh", build)]);
    assert!(
        reasons[0].contains("the build step changes 1 path"),
        "{reasons:?}"
    );
}

#[test]
fn what_a_module_of_the_tests_would_be_taken_for_is_refused() {
    let reasons = refused(&[("lib/help.testlib", "exports.expected = 8;\n")]);
    assert_eq!(reasons, ["the patch changes 1 protected path"]);
}

#[test]
fn a_test_that_runs_early_can_not_replace_a_later_one() {
    let swap = "\
for t in tests/*.sh; do
  mv \"$t\" \"$t.bak\" 2> /dev/null || continue
  printf '#!/bin/sh\\nmv \"$0.bak\" \"$0\"\\nexit 0\\n' > \"$t\"
  chmod +x \"$t\"
done
mv tests old 2> /dev/null && cp -r old tests
echo 0
";
    refused(&[("calc.sh", swap)]);
}

#[test]
fn names_chosen_inside_are_in_no_error() {
    // Deeper than hangar reads back, each name a piece of a hidden test.
    let dig = "\
line=$(grep EXPECTED tests/sub.sh | tr -c 'a-z' 'x' | cut -c 1-40)
cd /src
i=0
while [ $i -lt 210 ]; do mkdir \"$line\" 2> /dev/null; cd \"$line\" || break; i=$((i + 1)); done
echo 0
";
    let reasons = refused(&[("calc.sh", dig)]);
    assert!(
        reasons.iter().all(|reason| !reason.contains("xxx")),
        "{reasons:?}"
    );
}
