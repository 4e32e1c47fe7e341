//! What users, writers and implementers get wrong: one clear error, the right exit code, no panic,
//! no test named, nothing lost.

use super::common::Ran;
use super::kill_scene::{HIDDEN_ID, MAP, NEEDLE, Scene};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// Folder of the writer's tests.
const SEALED: &str = "writer/writer/1/out/sealed";

/// One kind of bad input.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// Makes it.
    pub(crate) make: fn(&Scene),
    /// Exit code of the command.
    code: i32,
    /// What standard error must say.
    says: &'static str,
}

pub(crate) const fn case(
    name: &'static str,
    make: fn(&Scene),
    code: i32,
    says: &'static str,
) -> Case {
    Case {
        name,
        make,
        code,
        says,
    }
}

fn agents(scene: &Scene) -> PathBuf {
    scene.env.root().join("agents")
}

fn sealed(scene: &Scene) -> PathBuf {
    agents(scene).join(SEALED)
}

fn map(scene: &Scene, text: &str) {
    scene.script(&format!("{SEALED}/criteria.json"), text);
}

fn hidden(scene: &Scene, text: &str) {
    scene.script(&format!("{SEALED}/tests/{HIDDEN_ID}"), text);
}

pub(crate) fn file(scene: &Scene, path: &str, text: &str) {
    super::common::write(&scene.repo.join(path), text);
}

#[track_caller]
pub(crate) fn check(case: &Case, scene: &Scene, ran: &Ran) {
    let name = case.name;
    assert_eq!(ran.code, Some(case.code), "{name}: {ran}");
    assert!(ran.stderr.contains(case.says), "{name}: {ran}");
    if ![0, 6].contains(&case.code) {
        let errors = ran.stderr.matches("error: ").count();
        assert!(errors <= 1, "{name}: one error, not {errors}: {ran}");
    }
    scene
        .env
        .git(&scene.repo, &["fsck", "--strict", "--no-dangling"]);
    scene.check_no_process(name);
}

/// Each writer's fault, with the run that meets it.
fn writers(cases: &[Case]) {
    for case in cases {
        let scene = Scene::new();
        (case.make)(&scene);
        let ran = scene.hangar(&["run", "KAN-80"]);
        check(case, &scene, &ran);
        scene.check_whole(case.name);
        scene.check_swept(case.name);
        assert!(
            scene.dossier().history.task.claim.is_none(),
            "{}: still claimed",
            case.name
        );
    }
}

/// The writer is told the fault in follow-up turns; then the person is told that it failed.
const FAILED: &str = "left no tests that can be sealed, in 3 turns";

const fn unsealable(name: &'static str, make: fn(&Scene)) -> Case {
    case(name, make, 7, FAILED)
}

#[test]
#[ignore = "heavy: a run for each of a dozen faults"]
#[expect(clippy::too_many_lines, reason = "a table")]
fn tests_that_cannot_be_sealed() {
    writers(&[
        unsealable("nothing at all", |s| fs::remove_dir_all(sealed(s)).unwrap()),
        unsealable("an empty map", |s| map(s, "")),
        unsealable("an empty object", |s| map(s, "{}")),
        unsealable("deep nesting", |s| map(s, &"[".repeat(100_000))),
        unsealable("an id twice", |s| {
            map(
                s,
                &MAP.replace(
                    "[\"tests/guard.sh\"]",
                    "[\"tests/guard.sh\", \"tests/guard.sh\"]",
                ),
            );
        }),
        unsealable("an id in two places", |s| {
            map(
                s,
                &MAP.replace(
                    "[\"tests/guard.sh\"]",
                    "[\"tests/guard.sh\", \"tests/okapi_subtracts.sh\"]",
                ),
            );
        }),
        unsealable("an id of no test", |s| {
            map(s, &MAP.replace("guard", "ghost"));
        }),
        unsealable("only tests that pass already", |s| {
            hidden(s, "#!/bin/sh\nexit 0\n");
        }),
        unsealable("a line break in a name", |s| {
            let tests = sealed(s).join("tests");
            fs::rename(tests.join(HIDDEN_ID), tests.join("a\nb.sh")).unwrap();
        }),
        unsealable("a name that is no text", |s| {
            fs::write(
                sealed(s).join("tests").join(OsStr::from_bytes(b"\xff.sh")),
                "x",
            )
            .unwrap();
        }),
        unsealable("a link", |s| {
            std::os::unix::fs::symlink("/etc/passwd", sealed(s).join("tests/link.sh")).unwrap();
        }),
        unsealable("a protected path", |s| {
            s.script(&format!("{SEALED}/.github/x"), "x");
        }),
        unsealable("a file of 10 MB", |s| {
            hidden(
                s,
                &format!("#!/bin/sh\n{}", format!("# {NEEDLE}\n").repeat(400_000)),
            );
        }),
        case(
            "an interpreter that is not there",
            |s| hidden(s, "#!/opt/nowhere/interpreter\n"),
            3,
            "the interpreter of a test",
        ),
        case(
            "a criterion without a test",
            |s| {
                map(
                    s,
                    &MAP.replace("{\"c1\": [\"tests/okapi_subtracts.sh\"]}", "{\"c1\": []}")
                        .replace(
                            "\"tests/guard.sh\"]",
                            "\"tests/guard.sh\", \"tests/okapi_subtracts.sh\"]",
                        ),
                );
            },
            6,
            "",
        ),
        case(
            "odd names",
            |s| {
                let tests = sealed(s).join("tests");
                let name = "sub $(touch x); 'é.sh";
                fs::rename(tests.join(HIDDEN_ID), tests.join(name)).unwrap();
                map(s, &MAP.replace(HIDDEN_ID, name));
            },
            6,
            "",
        ),
    ]);
}

#[test]
#[ignore = "heavy: suites that hang, shout and fork"]
fn tests_that_do_not_behave_are_failing_tests() {
    let bodies = [
        ("hangs", "sleep 1000"),
        (
            "shouts",
            "head -c 1000000000 /dev/zero | tr '\\0' a\nexit 1",
        ),
        ("forks", "f() { f | f & }; f; sleep 100"),
        ("survives", "setsid sleep 1000 & sleep 1000 & exit 1"),
    ];
    for (name, body) in bodies {
        let scene =
            Scene::without_task("timeout = \"4s\"\nlimits = { processes = 64, output = \"1M\" }");
        scene.task();
        hidden(&scene, &format!("#!/bin/sh\n# {NEEDLE}\n{body}\n"));
        scene.hangar(&["run", "KAN-80"]).exits(6);
        scene.check_no_process(name);
        scene.check_whole(name);
        scene.check_swept(name);
        assert_eq!(scene.dossier().seals[0].value().counts.fails, 1, "{name}");
    }
}

#[test]
#[ignore = "heavy: a flow up to the patch for each of a dozen faults"]
fn patches_that_cannot_be_accepted() {
    let accepted = |s: &Scene| s.script("coder/implementer/1/src/extra.txt", "fine\n");
    let cases = [
        case("a patch beside the point", accepted, 0, "grade: accepted"),
        case(
            "nothing",
            |s| fs::remove_dir_all(agents(s).join("coder/implementer/1/src")).unwrap(),
            1,
            "grade: not accepted (1 of 2 passed)",
        ),
        case(
            "huge",
            |s| {
                let file =
                    fs::File::create(agents(s).join("coder/implementer/1/src/blob")).unwrap();
                file.set_len(200 << 20).unwrap();
            },
            7,
            "left what no commit can hold: blob is larger than",
        ),
        case(
            "binary",
            |s| {
                fs::write(
                    agents(s).join("coder/implementer/1/src/blob"),
                    [0_u8, 255, 10].repeat(9999),
                )
                .unwrap();
            },
            0,
            "grade: accepted",
        ),
        case(
            "CI configuration",
            |s| s.script("coder/implementer/1/src/.github/workflows/ci.yml", "evil\n"),
            6,
            "grade: accepted",
        ),
        case(
            "hangar.toml",
            |s| s.script("coder/implementer/1/src/hangar.toml", "format = 1\n"),
            6,
            "grade: accepted",
        ),
        case(
            "deleted tests",
            |s| s.script("coder/implementer/1/delete.txt", "tests/own.sh\n"),
            0,
            "grade: accepted",
        ),
        case(
            "a failing program",
            |s| s.script("coder/implementer/1/exit", "3"),
            7,
            "the implementer `coder` failed",
        ),
    ];
    for case in &cases {
        let scene = Scene::without_task("");
        file(&scene, "tests/own.sh", "#!/bin/sh\nexit 0\n");
        scene.commit("a test of its own");
        scene.task();
        scene.hangar(&["run", "KAN-80"]).exits(6);
        scene.approve();
        (case.make)(&scene);
        let ran = scene.hangar(&["run", "KAN-80"]);
        check(case, &scene, &ran);
        scene.check_whole(case.name);
        scene.check_swept(case.name);
        let runs = scene.dossier().runs;
        assert!(
            runs.len() >= 2,
            "{}: the implementer's turn was not recorded",
            case.name
        );
    }
}

#[test]
#[ignore = "heavy: a flow up to an approved version"]
fn patch_files_that_do_not_apply() {
    let scene = Scene::new();
    scene.hangar(&["run", "KAN-80"]).exits(6);
    scene.approve();
    let outside = "diff --git a/../x b/../x\nnew file mode 100644\n--- /dev/null\n+++ b/../x\n@@ -0,0 +1 @@\n+x\n";
    let conflict = "diff --git a/calc.sh b/calc.sh\n--- a/calc.sh\n+++ b/calc.sh\n@@ -1 +1 @@\n-echo 7\n+echo 8\n";
    let hook = outside.replace("../x", ".git/hooks/post-commit");
    let cases = [
        ("garbage", "no patch at all", 2),
        ("conflict", conflict, 4),
        ("outside", outside, 4),
        ("hook", &hook, 4),
        ("empty", "", 1),
    ];
    for (name, text, code) in cases {
        let path = scene.env.root().join(name);
        fs::write(&path, text).unwrap();
        scene
            .hangar(&["grade", "KAN-80", "--patch", path.to_str().unwrap()])
            .exits(code);
    }
    scene
        .hangar(&["grade", "KAN-80", "--patch", "no-such-file"])
        .exits(2);
    scene
        .hangar(&["grade", "KAN-80", "--rev", "no-such-revision"])
        .exits(2);
    scene.check_whole("after bad patches");
    scene.check_swept("after bad patches");
}
