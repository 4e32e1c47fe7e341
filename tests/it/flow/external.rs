//! The whole flow with cases that run outside the sandbox of the program under test.

use super::world::World;
use hangar::flow::drive::{Agents, Stop, drive};
use hangar::model::approval::Action;
use hangar::model::grade::Grade;
use hangar::model::ids::TaskId;
use hangar::model::outcome::{Trust, Verdict};
use hangar::sandbox::probe::Probe;
use hangar::sandbox::spec::{Mount, Outcome, Spec};
use hangar::sandbox::{Cancel, Event, Probes, Provider, Unavailable};

fn config(framework: &str) -> String {
    format!(
        "format = 1\n[task]\nflow = \"test-first\"\n[grader]\nframework = \"{framework}\"\n\
         tests = [\"acceptance/\"]\n[deliver]\nas = \"branch\"\nbranch = \"hangar/{{key}}\"\n"
    )
}

const CASES: &str = r#"
format = 1

[[case]]
name = "subtracts"
values = { a = { from = 100, to = 900 }, b = { from = 1, to = 99 }, less = { difference = ["a", "b"] } }
[[case.step]]
run = ["./calc.sh", "{a}", "{b}"]
stdout = "{less}\n"

[[case]]
name = "remembers in a file"
files = { "log.txt" = "before\n" }
[[case.step]]
run = ["./calc.sh", "5", "3"]
stdout = { contains = ["2"] }
[[case.step]]
run = ["sh", "-c", "cat >> {root}/log.txt"]
stdin = "after\n"
files = { "log.txt" = { lines = ["before", "2", "after"] }, "gone.txt" = { absent = true } }

[[case]]
name = "starts"
[[case.step]]
run = ["./calc.sh", "1", "1"]
"#;

const SENTINEL: &str = r#"
format = 1
[[case]]
name = "wrong on purpose"
[[case.step]]
run = ["./calc.sh", "1", "1"]
stdout = "never\n"
"#;

const MAP: &str = r#"{"format": 1,
  "criteria": {"c1": ["acceptance/calc.toml > subtracts", "acceptance/calc.toml > remembers in a file"]},
  "others": ["acceptance/calc.toml > starts"],
  "sentinels": ["acceptance/sentinel.toml > wrong on purpose"], "notes": ""}"#;

const HONEST: &str =
    "#!/bin/sh\necho $(($1 - $2))\n[ -e log.txt ] && echo $(($1 - $2)) >> log.txt\nexit 0\n";

/// Grades of a first round with `patch` and an honest second one.
fn grades(patch: &str) -> Vec<Grade> {
    let files = [
        ("acceptance/calc.toml", CASES),
        ("acceptance/sentinel.toml", SENTINEL),
        ("criteria.json", MAP),
    ];
    grades_with(&files, patch, HONEST)
}

/// Grades by these sealed files of a first round with `patch`, and of a second with `honest`.
fn grades_with(sealed: &[(&str, &str)], patch: &str, honest: &str) -> Vec<Grade> {
    graded(&world_with(sealed, patch, honest))
}

fn world_with(sealed: &[(&str, &str)], patch: &str, honest: &str) -> World {
    let world = World::new(&[
        ("calc.sh", "#!/bin/sh\necho 0\n"),
        ("hangar.toml", &config("external")),
    ]);
    for (path, text) in sealed {
        world.script("writer", &format!("writer/1/out/sealed/{path}"), text);
    }
    world.script("coder", "implementer/1/src/calc.sh", patch);
    world.script("coder", "implementer/2/src/calc.sh", honest);
    world
}

fn graded(world: &World) -> Vec<Grade> {
    world.graded("Subtract", "calc.sh 5 3 prints 2")
}

#[test]
fn a_right_program_is_accepted_with_the_best_verdict() {
    let grades = grades(HONEST);
    let [grade] = grades.as_slice() else {
        panic!("{grades:?}")
    };
    assert!(grade.accepted, "{:?}", grade.reasons);
    assert_eq!(grade.verdict, Verdict::External);
    assert!(grade.trust >= Trust::Sealed, "{:?}", grade.sandbox);
    assert_eq!((grade.counts.expected, grade.counts.passed), (3, 3));
}

#[test]
fn a_program_that_looks_for_what_is_expected_finds_nothing() {
    let look = "#!/bin/sh\n\
        grep -rh -e less -e stdout -e subtracts /src /tmp /r /dev/shm /home /run 2> /dev/null | grep -v 'grep -rh'\n\
        [ -e log.txt ] && echo 2 >> log.txt\nls -R /src /r /tmp > log.txt 2>&1\nexit 0\n";
    for patch in [
        look,
        "#!/bin/sh\nexit 0\n",
        "#!/bin/sh\nkill -9 -1\nkill -9 $PPID\n",
    ] {
        let grades = grades(patch);
        assert_eq!(grades.len(), 2);
        assert!(!grades[0].accepted);
        assert!(grades[1].accepted, "{:?}", grades[1].reasons);
    }
}

const FORGET: &str = r#"
format = 1
[[case]]
name = "forgets"
files = { "kept/secret.txt" = "password\n" }
[[case.step]]
run = ["./calc.sh", "5", "3"]
stdout = { lacks = ["password"], contains = ["2"] }
files = { "kept/secret.txt" = { absent = true } }
"#;

#[test]
fn what_still_stands_there_is_not_absent_and_what_was_cut_is_not_clean() {
    let map = r#"{"format": 1, "criteria": {"c1": ["acceptance/calc.toml > forgets"]}}"#;
    let files = [("acceptance/calc.toml", FORGET), ("criteria.json", map)];
    for hostile in [
        "mv kept/secret.txt other; ln -s ../other kept/secret.txt; echo 2",
        "rm kept/secret.txt; ln -s nowhere kept/secret.txt; echo 2",
        "rm kept/secret.txt; mkfifo kept/secret.txt; echo 2",
        "rm kept/secret.txt; mkdir -p kept/secret.txt/a; echo 2",
        "rm kept/secret.txt; mkdir kept/secret.txt; cp calc.sh kept/secret.txt; echo 2",
        "truncate -s 100M kept/secret.txt; echo 2",
        "mv kept other; ln -s other kept; echo 2",
        "rm kept/secret.txt; echo 2; head -c 70M /dev/zero; echo password",
    ] {
        // A file where a folder was leaves nothing below it.
        let honest = "#!/bin/sh\nrm -r kept\necho 2 | tee kept\n";
        let grades = grades_with(&files, &format!("#!/bin/sh\n{hostile}\n"), honest);
        assert_eq!(grades.len(), 2, "{hostile}");
        assert!(!grades[0].accepted, "{hostile}");
        assert!(grades[1].accepted, "{:?}", grades[1].reasons);
    }
}

#[test]
fn a_patch_in_the_way_of_a_cases_files_is_not_accepted_and_does_not_stop_the_task() {
    let map = r#"{"format": 1, "criteria": {"c1": ["acceptance/calc.toml > forgets"]}}"#;
    let files = [("acceptance/calc.toml", FORGET), ("criteria.json", map)];
    let honest = "#!/bin/sh\nrm kept/secret.txt\necho 2\n";
    let world = world_with(&files, honest, honest);
    world.script("coder", "implementer/1/src/kept/secret.txt/x", "");
    world.script("coder", "implementer/2/delete.txt", "kept/secret.txt\n");
    let grades = graded(&world);
    assert!(!grades[0].accepted);
    assert!(grades[1].accepted, "{:?}", grades[1].reasons);
}

/// Talks to a service over its socket and to a program over its streams, and looks around.
const DRIVER: &str = r#"#!/bin/sh
set -eu
here=$(dirname "$0")
test "$("$RUN" ./calc.sh 70 "$(cat "$here/number.txt")")" = 58
# The tree is not here, and the tests are not there.
test ! -e calc.sh
test -z "$("$RUN" sh -c 'ls -d acceptance /src/acceptance 2> /dev/null' || true)"
# What one program leaves, the next one finds; status and both streams are its own.
"$RUN" sh -c 'echo kept > note'
test "$("$RUN" cat note)" = kept
status=0; "$RUN" sh -c 'echo out; echo err >&2; exit 9' > /tmp/out 2> /tmp/err || status=$?
test "$status $(cat /tmp/out) $(cat /tmp/err)" = "9 out err"
status=0; "$RUN" ./not-there 2> /tmp/err || status=$?
test $status = 127
# Whoever stops reading, or is ended, ends the program.
test "$("$RUN" yes | head -n 1)" = y
"$RUN" sh -c 'trap "echo told > ended; exit" TERM; echo up; while :; do sleep 0.05; done' > /tmp/up &
started=$!
i=0; until test -s /tmp/up; do i=$((i + 1)); test $i -lt 500; sleep 0.01; done
kill $started
i=0; until test "$("$RUN" cat ended 2> /dev/null)" = told; do i=$((i + 1)); test $i -lt 100; sleep 0.05; done
# A conversation: each answer is read before the next line is written.
mkfifo /tmp/ask
"$RUN" sh ./talk.sh < /tmp/ask > /tmp/answers &
exec 5> /tmp/ask
for word in one two; do
  echo $word >&5
  i=0; until grep -q "$word!" /tmp/answers; do i=$((i + 1)); test $i -lt 500; sleep 0.01; done
done
exec 5>&-
wait
# A service, reached over its socket.
"$RUN" python3 ./serve.py /tmp/s &
test "$(printf ping | "$DIAL" /tmp/s)" = PING
"#;

const SERVE: &str = "\
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
c, _ = s.accept()
data = b''
while part := c.recv(100):
    data += part
c.sendall(data.upper())
c.close()
";

/// A task whose writer brings the driver and whose implementer brings `calc`. The driver needs python3.
fn world_of_driver(calc: &str) -> (World, TaskId) {
    let config = config("external").replace(
        "tests =",
        "options = [\"python3\"]\ntimeout = \"15s\"\ntests =",
    );
    let world = World::new(&[
        ("calc.sh", "#!/bin/sh\necho 0\n"),
        ("talk.sh", "while read -r word; do echo \"$word!\"; done\n"),
        ("serve.py", SERVE),
        ("hangar.toml", &config),
    ]);
    let map = r#"{"format": 1, "criteria": {"c1": ["acceptance/drive"]}, "others": [], "sentinels": [], "notes": ""}"#;
    for (path, text) in [
        ("acceptance/drive", DRIVER),
        ("acceptance/number.txt", "12"),
        ("criteria.json", map),
    ] {
        world.script("writer", &format!("writer/1/out/sealed/{path}"), text);
    }
    world.script("coder", "implementer/1/src/calc.sh", calc);
    let store = world.store();
    let id = world.task(&store, "Subtract", &["calc.sh 5 3 prints 2"]);
    (world, id)
}

/// The grade of `calc` under the driver.
fn driven(calc: &str) -> Grade {
    let (world, id) = world_of_driver(calc);
    let (host, store) = (world.host(), world.store());
    drive(&host, &store, &id, None, Agents::Start).unwrap();
    world.decide(&id, Action::Approve, "");
    drive(&host, &store, &id, None, Agents::Start).unwrap();
    let dossier = store.dossier(&id).unwrap();
    dossier.grades[0].value().clone()
}

/// A provider whose sandboxes without a tree, which only drivers get, lack a wall.
struct Gap(Box<dyn Provider>);

impl Provider for Gap {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn version(&self) -> String {
        self.0.version()
    }

    fn check(&self) -> Result<(), Unavailable> {
        self.0.check()
    }

    fn run(
        &self,
        spec: &Spec,
        cancel: &Cancel,
        events: &mut dyn FnMut(Event),
    ) -> Result<Outcome, hangar::sandbox::Error> {
        self.0.run(spec, cancel, events)
    }

    fn probe(&self, spec: &Spec, cancel: &Cancel) -> Result<Probes, hangar::sandbox::Error> {
        let mut probes = self.0.probe(spec, cancel)?;
        let tree = |mount: &Mount| !matches!(mount, Mount::ReadOnly { .. });
        if !spec.mounts.iter().any(tree) {
            probes.results.insert("route".into(), Probe::open("seen"));
        }
        Ok(probes)
    }
}

#[test]
fn the_sandbox_of_a_driver_is_measured_like_that_of_the_code() {
    let (world, id) = world_of_driver(HONEST);
    let store = world.store();
    let mut host = world.host();
    host.provider = Box::new(Gap(host.provider));
    // Before anything is sealed: the driver runs on the base, too.
    let refused = drive(&host, &store, &id, None, Agents::Start).unwrap_err();
    let text = refused.to_string();
    assert!(
        text.contains("hidden tests on the base") && text.contains("route"),
        "{text}"
    );
    let host = world.host();
    drive(&host, &store, &id, None, Agents::Start).unwrap();
    world.decide(&id, Action::Approve, "");
    let mut host = world.host();
    host.provider = Box::new(Gap(host.provider));
    let refused = drive(&host, &store, &id, None, Agents::Start).unwrap_err();
    let text = refused.to_string();
    assert!(
        text.contains("the grade needs") && text.contains("route"),
        "{text}"
    );
    drive(&world.host(), &store, &id, None, Agents::Start).unwrap();
    assert!(store.dossier(&id).unwrap().grades[0].value().accepted);
}

#[test]
fn a_driver_of_ones_own_tests_from_a_sandbox_of_its_own() {
    let grade = driven(HONEST);
    assert!(grade.accepted, "{grade:?}");
    assert_eq!(grade.verdict, Verdict::External);
    assert!(grade.trust >= Trust::Sealed, "{:?}", grade.sandbox);
}

#[test]
fn a_program_that_takes_the_place_of_our_side_is_still_only_the_program() {
    for hostile in [
        // Ends whatever passes its streams, or leaves something that holds them.
        "#!/bin/sh\nkill -9 -1\n",
        "#!/bin/sh\n(sleep 1000 &) \necho 0\n",
        "#!/bin/sh\nrm -rf /src/* /tmp/*\necho 58 >&2\n",
    ] {
        let grade = driven(hostile);
        assert!(!grade.accepted, "{hostile}");
    }
}

/// A task that the cases of the page accepted, and its world.
fn delivered_by_the_page() -> (World, TaskId) {
    let page = crate::docs::page("docs/reference/cases.md");
    let cases = page.split("```toml\n").nth(1).unwrap();
    let cases = cases.split("```").next().unwrap();
    let program = "#!/bin/sh
case $1 in
  add) case $3 in *[!0-9]*) echo \"$3 is no number\" >&2; exit 2;; esac; echo $(($2 + $3));;
  note) cat >> notes.txt;;
esac
";
    let world = World::new(&[
        ("calc.sh", "#!/bin/sh\nexit 0\n"),
        ("hangar.toml", &config("external")),
    ]);
    let map = r#"{"format": 1, "criteria": {"c1": ["acceptance/x.toml > adds two numbers",
        "acceptance/x.toml > refuses a word", "acceptance/x.toml > keeps what it was told"]},
        "others": [], "sentinels": [], "notes": ""}"#;
    world.script("writer", "writer/1/out/sealed/acceptance/x.toml", cases);
    world.script("writer", "writer/1/out/sealed/criteria.json", map);
    world.script("coder", "implementer/1/src/calc.sh", program);
    let store = world.store();
    let id = world.task(&store, "Calculate", &["as the page says"]);
    let host = world.host();
    drive(&host, &store, &id, None, Agents::Start).unwrap();
    world.decide(&id, Action::Approve, "");
    let stop = drive(&host, &store, &id, None, Agents::Start).unwrap();
    assert!(matches!(stop, Stop::Delivered(_)), "{stop:?}");
    (world, id)
}

#[test]
fn the_cases_of_the_page_work_as_they_stand() {
    let (world, id) = delivered_by_the_page();
    let store = world.store();
    let dossier = store.dossier(&id).unwrap();
    let grade = dossier.grades[0].value();
    assert_eq!((grade.counts.passed, grade.verdict), (3, Verdict::External));
    // Nothing is said of sentinels, and a stranger needs none.
    let report = hangar::flow::verify::verify(&store, &id, &[]).unwrap();
    assert!(
        report.valid_then && report.acceptable_now,
        "{:?}",
        report.faults
    );
}

#[test]
#[ignore = "heavy: python3 and ssh-keygen"]
fn the_second_verifier_accepts_what_cases_accepted() {
    let (world, id) = delivered_by_the_page();
    let dir = world.repo_dir();
    let out = crate::verify::second::ask(&dir, world.dir.path(), id.as_str(), &[]);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
}
