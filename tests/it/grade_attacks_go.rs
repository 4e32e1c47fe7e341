//! Patches that try to be accepted without being right, against `go`.

use crate::grade_kit::{Bench, Case, File, channel_forged, execute, id, outcome_of, word};
use hangar::grade::adapter::adapter;
use hangar::grade::protect::Globs;
use hangar::model::outcome::{FailureClass, Outcome, Verdict};
use hangar::model::plan::Framework;

const MODULE: &str = "module example.com/calc\n\ngo 1.18\n";
const BASE: &[File<'_>] = &[
    ("go.mod", MODULE),
    (
        "add.go",
        "package calc\n\nfunc Add(a, b int) int { return 0 }\n",
    ),
];
/// In the package itself, beside it, and in a package of its own.
const SEALED: &[File<'_>] = &[
    (
        "add_test.go",
        "package calc\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tif Add(2, 3) != 5 {\n\t\t\
         t.Fatal(\"sum\")\n\t}\n}\n",
    ),
    (
        "outer_test.go",
        "package calc_test\n\nimport (\n\t\"testing\"\n\n\t\"example.com/calc\"\n)\n\n\
         func TestZero(t *testing.T) {\n\tt.Run(\"seven\", func(t *testing.T) {\n\t\t\
         if got := calc.Add(7, 0); got != 7 {\n\t\t\tt.Errorf(\"got %d\", got)\n\t\t}\n\t})\n}\n",
    ),
    (
        "odd/odd_test.go",
        "package odd\n\nimport (\n\t\"testing\"\n\n\t\"example.com/calc\"\n)\n\n\
         func TestOdd(t *testing.T) {\n\tif calc.Add(40, 2) != 9177 {\n\t\tt.Fatal(\"odd\")\n\t}\n}\n",
    ),
];
const MAP: &str = r#"{"format": 1, "criteria": {"c1": ["add_test.go::TestSum", "outer_test.go::TestZero"]},
    "sentinels": ["odd/odd_test.go::TestOdd"]}"#;
pub(crate) const GOOD: &str = "package calc\n\nfunc Add(a, b int) int { return a + b }\n";
pub(crate) const WRONG: &str = "package calc\n\nfunc Add(a, b int) int { return a - b - 1 }\n";

pub(crate) fn case() -> Case<'static> {
    Case {
        framework: Framework::Go,
        base: BASE,
        sealed: SEALED,
        map: MAP,
        tune: |suite| suite.plan.verdict = Verdict::Report,
    }
}

/// Code of the package with these imports.
fn code(imports: &str, body: &str) -> String {
    format!("package calc\n\nimport ({imports})\n\n{body}\n")
}

fn refused(patch: &[File<'_>], allowed: &[&str]) {
    let judgement = case().grade(patch);
    let word = word(&judgement);
    assert!(
        allowed.contains(&word),
        "{word} {:?}\n{patch:?}",
        judgement.reasons
    );
}

fn accepted(patch: &[File<'_>]) {
    let judgement = case().grade(patch);
    assert_eq!(
        word(&judgement),
        "accepted",
        "{:?}\n{patch:?}",
        judgement.reasons
    );
}

#[test]
#[ignore = "heavy: builds with go"]
fn the_honest_patch_is_accepted_and_the_wrong_one_is_not() {
    let good = case().grade(&[("add.go", GOOD)]);
    assert_eq!(word(&good), "accepted", "{:?}", good.reasons);
    // Each test is a process of its own: no sentinel meets what another test brought in.
    assert_eq!(good.verdict, Verdict::Report);
    let strict = Case {
        tune: |suite| suite.plan.verdict = Verdict::Crosschecked,
        ..case()
    };
    let strict = strict.grade(&[("add.go", GOOD)]);
    assert_eq!(word(&strict), "not accepted");
    let wrong = case().grade(&[("add.go", WRONG)]);
    assert_eq!(word(&wrong), "not accepted", "{:?}", wrong.reasons);
    assert_eq!(wrong.counts.failed, 2);
}

#[test]
#[ignore = "heavy: builds with go"]
fn configuration_of_the_patch_is_not_read() {
    // A toolchain that is not there, settings where a user has them, a module of its own in between.
    let mut files = vec![
        (
            "go.mod",
            "module example.com/calc\n\ngo 1.18\n\nrequire example.com/unused v1.0.0\n\nreplace example.com/unused => ./unused\n",
        ),
        ("unused/go.mod", "module example.com/unused\n\ngo 1.18\n"),
        ("go.env", "GOFLAGS=-run=^$\nGOTOOLCHAIN=path\n"),
        (".config/go/env", "GOFLAGS=-toolexec=/bin/true\n"),
        ("Makefile", "test:\n\ttrue\n"),
        (".golangci.yml", "run: {}\n"),
        ("add.go", GOOD),
    ];
    accepted(&files);
    files.last_mut().unwrap().1 = WRONG;
    refused(&files, &["not accepted"]);
}

#[test]
fn what_would_stand_for_a_module_of_the_base_is_protected() {
    let globs = Globs::new(adapter(Framework::Go).protected()).unwrap();
    for path in [
        "vendor/modules.txt",
        "a/vendor/x/x.go",
        "go.work",
        "a/go.work",
    ] {
        assert!(globs.matches(path.as_bytes()), "{path}");
    }
    for path in ["go.mod", "go.sum", "add.go", "vendors/x.go"] {
        assert!(!globs.matches(path.as_bytes()), "{path}");
    }
    // Test files of the patch are put back to base.
    let tests = Globs::new(adapter(Framework::Go).default_tests()).unwrap();
    assert!(tests.matches(b"main_test.go") && tests.matches(b"a/b/testdata/x"));
}

#[test]
#[ignore = "heavy: builds with go"]
fn a_dependency_of_the_tests_is_not_replaced() {
    let required = format!("{MODULE}\nrequire example.com/same v1.0.0\n");
    let sealed = [
        (
            "add_test.go",
            "package calc\n\nimport (\n\t\"testing\"\n\n\t\"example.com/same\"\n)\n\n\
             func TestSum(t *testing.T) { same.Same(t, Add(2, 3), 5) }\n",
        ),
        SEALED[2],
    ];
    let base = [("go.mod", required.as_str()), BASE[1]];
    let own = Case {
        sealed: &sealed,
        map: r#"{"format": 1, "criteria": {"c1": ["add_test.go::TestSum"]}, "sentinels": ["odd/odd_test.go::TestOdd"]}"#,
        ..case()
    };
    let outside = Case { base: &base, ..own };
    let replaced = format!("{required}\nreplace example.com/same => ./same\n");
    let patch = |code: &'static str, fake: &'static str| {
        [
            ("add.go", code),
            ("go.mod", replaced.as_str()),
            ("same/go.mod", "module example.com/same\n"),
            ("same/same.go", fake),
        ]
    };
    let fake = "package same\n\nimport \"testing\"\n\nfunc Same(t *testing.T, a, b int) {}\n";
    let real = "package same\n\nimport \"testing\"\n\nfunc Same(t *testing.T, a, b int) {\n\tif a != b {\n\t\t\
                t.Fatal(a, b)\n\t}\n}\n";
    let judgement = outside.grade(&patch(WRONG, fake));
    assert_eq!(word(&judgement), "void", "{:?}", judgement.reasons);
    // A module of another name that holds a package of this one, and the folder by another path to it.
    let near = [
        sealed[0],
        (
            "odd_test.go",
            "package calc\n\nimport \"testing\"\n\nfunc TestOdd(t *testing.T) {\n\tif Add(40, 2) != 9177 {\n\t\t\
             t.Fatal(\"odd\")\n\t}\n}\n",
        ),
    ];
    let near = Case {
        sealed: &near,
        map: r#"{"format": 1, "criteria": {"c1": ["add_test.go::TestSum"]}, "sentinels": ["odd_test.go::TestOdd"]}"#,
        ..outside
    };
    for (name, to, file) in [
        ("example.com", "./same", "same/same/same.go"),
        ("example.com/same", "/proc/self/cwd/same", "same/same.go"),
    ] {
        let required = format!("{MODULE}\nrequire {name} v0.0.0\n\nreplace {name} => {to}\n");
        let named = format!("module {name}\n");
        let judgement = near.grade(&[
            ("add.go", WRONG),
            ("go.mod", &required),
            ("same/go.mod", &named),
            (file, fake),
        ]);
        assert_eq!(word(&judgement), "void", "{name} {:?}", judgement.reasons);
    }
    // The honest control: a module that the patch itself brings and the base knows nothing of.
    let own = own.grade(&patch(GOOD, real));
    assert_eq!(word(&own), "accepted", "{:?}", own.reasons);
}

#[test]
#[ignore = "heavy: builds with go"]
fn leaving_early_is_never_a_pass() {
    let os = |body: &str| {
        code(
            "\"os\"",
            &format!("func Add(a, b int) int {{ {body}; return a }}"),
        )
    };
    let call = |body: &str| {
        code(
            "\"syscall\"",
            &format!("func Add(a, b int) int {{ {body}; return a }}"),
        )
    };
    refused(&[("add.go", &os("os.Exit(0)"))], &["not accepted"]);
    refused(&[("add.go", &os("os.Exit(3)"))], &["not accepted"]);
    refused(&[("add.go", &call("syscall.Exit(0)"))], &["void"]);
    refused(
        &[(
            "add.go",
            &call("syscall.Kill(syscall.Getpid(), syscall.SIGKILL)"),
        )],
        &["not accepted"],
    );
    let at_start = code(
        "\"syscall\"",
        "func init() { syscall.Exit(0) }\nfunc Add(a, b int) int { return a }",
    );
    refused(&[("add.go", &at_start)], &["void"]);
    let away = code(
        "\"runtime\"",
        "func Add(a, b int) int { runtime.Goexit(); return a }",
    );
    refused(&[("add.go", &away)], &["not accepted"]);
    let printed = code(
        "\"fmt\"; \"syscall\"",
        "func Add(a, b int) int { fmt.Print(\"--- PASS: TestSum (0.00s)\\n\\nPASS\\n\"); syscall.Exit(0); return a }",
    );
    refused(&[("add.go", &printed)], &["void"]);
    // `TestMain` of the patch, where the tests' places were not put back.
    let main = "package calc\n\nimport (\"os\"; \"testing\")\n\nfunc TestMain(m *testing.M) { os.Exit(0) }\n";
    refused(&[("add.go", WRONG), ("main_test.go", main)], &["void"]);
}

#[test]
#[ignore = "heavy: builds with go"]
fn a_text_that_is_forged_in_full_is_caught_by_the_sentinel() {
    // It knows what it was asked for, and prints what `testing` would.
    let forged = code(
        "\"fmt\"; \"os\"; \"strings\"; \"syscall\"",
        "func init() {\n\tfor _, arg := range os.Args {\n\t\tif name, ok := cut(arg); ok {\n\t\t\t\
         fmt.Printf(\"=== RUN   %s\\n--- PASS: %s (0.00s)\\nPASS\\n\", name, name)\n\t\t\tsyscall.Exit(0)\n\t\t}\n\t}\n}\n\n\
         func cut(arg string) (string, bool) {\n\tif !strings.HasPrefix(arg, \"-test.run=^\") {\n\t\treturn \"\", false\n\t}\n\t\
         return strings.TrimSuffix(strings.TrimPrefix(arg, \"-test.run=^\"), \"$\"), true\n}\n\n\
         func Add(a, b int) int { return 0 }",
    );
    refused(&[("add.go", &forged)], &["void"]);
}

#[test]
#[ignore = "heavy: builds with go"]
fn patched_frameworks_are_caught_by_the_sentinel() {
    // The function of `testing` that marks a test as failed is overwritten by a return.
    let bent = code(
        "\"reflect\"; \"runtime\"; \"syscall\"; \"unsafe\"; _ \"testing\"",
        "//go:linkname fail testing.(*common).Fail\nfunc fail(unsafe.Pointer)\n\n\
         func init() {\n\tat := reflect.ValueOf(fail).Pointer()\n\tend := []byte{0xc3}\n\t\
         if runtime.GOARCH == \"arm64\" {\n\t\tend = []byte{0xc0, 0x03, 0x5f, 0xd6}\n\t}\n\t\
         for _, page := range []uintptr{at &^ 4095, (at + 4) &^ 4095} {\n\t\t\
         syscall.Syscall(syscall.SYS_MPROTECT, page, 4096, 7)\n\t}\n\t\
         for i, b := range end {\n\t\t*(*byte)(unsafe.Pointer(at + uintptr(i))) = b\n\t}\n}\n\n\
         func Add(a, b int) int { return a - b - 1 }",
    );
    // Newer linkers refuse such a name, and then nothing is built.
    refused(
        &[("add.go", &bent), ("empty.s", "\n")],
        &["void", "not accepted"],
    );
}

#[test]
#[ignore = "heavy: builds with go"]
fn words_of_the_language_that_the_code_gives_another_meaning_are_caught_by_the_sentinel() {
    // What stands in the package stands before what the language itself names.
    let test = |name: &str, want: &str| {
        format!(
            "package calc\n\nimport \"testing\"\n\nfunc {name}(t *testing.T) {{\n\t\
             if equal := Add(40, 2) == {want}; equal != true {{\n\t\tt.Fatal(\"no\")\n\t}}\n}}\n"
        )
    };
    let (sum, odd) = (test("TestSum", "42"), test("TestOdd", "9177"));
    let sealed = [("add_test.go", sum.as_str()), ("odd_test.go", odd.as_str())];
    let case = Case {
        sealed: &sealed,
        map: r#"{"format": 1, "criteria": {"c1": ["add_test.go::TestSum"]}, "sentinels": ["odd_test.go::TestOdd"]}"#,
        ..case()
    };
    let bent = format!("{WRONG}\nvar true = 1 == 2\n");
    let judgement = case.grade(&[("add.go", &bent)]);
    assert_eq!(word(&judgement), "void", "{:?}", judgement.reasons);
    let good = case.grade(&[("add.go", GOOD)]);
    assert_eq!(word(&good), "accepted", "{:?}", good.reasons);
}

#[test]
#[ignore = "heavy: builds with go"]
fn a_binary_swapped_between_two_tests_is_void() {
    // The first test puts a program in place of the test binary that says yes to everything.
    let swap = code(
        "\"os\"",
        "func Add(a, b int) int {\n\tme, _ := os.Executable()\n\tos.Remove(me)\n\t\
         yes := \"#!/bin/sh\\nfor a; do case $a in -test.run=*) n=${a#*^}; n=${n%?};; esac; done\\n\
         echo \\\"=== RUN   $n\\\"; echo \\\"--- PASS: $n (0.00s)\\\"; echo PASS\\n\"\n\t\
         os.WriteFile(me, []byte(yes), 0o755)\n\treturn a + b\n}",
    );
    refused(&[("add.go", &swap)], &["void"]);
}

#[test]
#[ignore = "heavy: builds with go"]
fn the_channel_is_out_of_reach_of_the_code() {
    let forge = code(
        "\"fmt\"; \"os\"; \"strings\"",
        "func Add(a, b int) int {\n\tfor fd := 0; fd < 20; fd++ {\n\t\t\
         path := fmt.Sprintf(\"/proc/%d/fd/%d\", os.Getppid(), fd)\n\t\t\
         to, _ := os.Readlink(path)\n\t\tif fd > 2 && strings.HasPrefix(to, \"pipe\") {\n\t\t\t\
         os.WriteFile(path, []byte(\"0 end 0\\n\"), 0)\n\t\t}\n\t}\n\treturn a + b\n}",
    );
    refused(&[("add.go", &forge)], &[channel_forged()]);
    let open = code(
        "\"os\"; \"strings\"",
        "func Add(a, b int) int {\n\tto, _ := os.Readlink(\"/proc/self/fd/3\")\n\t\
         if strings.HasPrefix(to, \"pipe\") || strings.HasPrefix(to, \"socket\") {\n\t\tpanic(\"open\")\n\t}\n\treturn a + b\n}",
    );
    accepted(&[("add.go", &open)]);
}

#[test]
#[ignore = "heavy: builds with go"]
fn what_does_not_compile_is_a_plain_fail_and_spares_other_packages() {
    let tests = |body: &str| format!("package calc\n\nimport \"testing\"\n\n{body}");
    let new = "package new\n\nimport (\n\t\"testing\"\n\n\t\"example.com/calc\"\n)\n\n\
               func TestA(t *testing.T) { calc.NotThere() }\n";
    let old = tests(
        "func TestB(t *testing.T) { if Add(1, 2) != 0 { t.Fail() } }\n\
         func TestC(t *testing.T) { t.Skip(\"x\") }\n\
         func TestD(t *testing.T) { t.Run(\"sub\", func(t *testing.T) { t.Error(\"x\") }) }\n\
         func TestE(t *testing.T) { var list []int; _ = list[Add(1, 2)] }\n\
         func FuzzF(f *testing.F) { f.Add(1); f.Fuzz(func(t *testing.T, n int) {}) }\n",
    );
    let sealed = [("new/new_test.go", new), ("old_test.go", old.as_str())];
    let mut bench = Bench::new(Framework::Go, BASE, &sealed);
    bench.lay(&[], true);
    let ids = bench.list();
    assert_eq!(ids.len(), 6, "{ids:?}");
    let report = bench.run(&ids);
    assert!(report.is_sound(), "{:?}", report.faults);
    let failed = |class| Some(Outcome::Failed(class));
    let table = [
        ("new/new_test.go::TestA", failed(FailureClass::Compile)),
        ("old_test.go::TestB", Some(Outcome::Passed)),
        ("old_test.go::TestC", Some(Outcome::Skipped)),
        ("old_test.go::TestD", failed(FailureClass::Assertion)),
        ("old_test.go::TestE", failed(FailureClass::Error)),
        ("old_test.go::FuzzF", Some(Outcome::Passed)),
    ];
    for (name, expected) in table {
        assert_eq!(outcome_of(&report, name), expected, "{name}");
    }
}

#[test]
#[ignore = "heavy: builds with go"]
fn a_test_that_go_leaves_out_is_not_taken_for_one() {
    let other =
        "//go:build never\n\npackage calc\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) {}\n";
    let sealed = [SEALED[0], ("more_test.go", other)];
    let mut bench = Bench::new(Framework::Go, BASE, &sealed);
    bench.lay(&[("add.go", GOOD)], true);
    let ids = bench.list();
    assert!(!bench.run(&ids).is_sound());
    // With the tag that the file asks for, and an option of the binary, it is one.
    bench.suite.plan.options = vec!["-tags=never".into(), "-test.short".into()];
    let report = bench.run(&ids);
    assert!(report.is_sound(), "{:?}", report.faults);
    assert_eq!(
        outcome_of(&report, "more_test.go::TestX"),
        Some(Outcome::Passed)
    );
}

#[test]
#[ignore = "heavy: builds with go"]
fn modules_that_are_not_downloaded_are_the_environments_fault() {
    let module = format!("{MODULE}\nrequire example.com/none v1.0.0\n");
    let sum = "example.com/none v1.0.0 h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\
               example.com/none v1.0.0/go.mod h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n";
    let uses = "package calc\n\nimport _ \"example.com/none\"\n\nfunc Add(a, b int) int { return a + b }\n";
    let base = [
        ("go.mod", module.as_str()),
        ("go.sum", sum),
        ("add.go", uses),
    ];
    let missing = |base: &[File<'_>]| {
        let bench = Bench::new(Framework::Go, base, SEALED);
        bench.lay(&[], false);
        let call = bench.adapter().preflight(&bench.suite).remove(0);
        let raw = execute(&call);
        bench.adapter().read_preflight(&bench.suite, &[(call, raw)])
    };
    let found = missing(&base);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].remedy.contains("go mod download"));
    assert_eq!(missing(BASE), []);
    let mut bench = Bench::new(Framework::Go, &base, SEALED);
    bench.lay(&[], true);
    bench.list();
    let report = bench.run(&[id("add_test.go::TestSum")]);
    assert_eq!(
        outcome_of(&report, "add_test.go::TestSum"),
        Some(Outcome::Environment)
    );
}

#[test]
#[ignore = "heavy: builds with go"]
fn what_prepare_compiled_is_used_and_stays_as_it_is() {
    let mut bench = Bench::new(Framework::Go, BASE, SEALED);
    bench.suite.plan.prepare = "go build ./...".into();
    let kept = bench.suite.layout.prepared.join("go-build");
    std::fs::create_dir_all(&kept).unwrap();
    let ids = bench.list();
    let compile = |bench: &Bench, code| {
        bench.lay(&[("add.go", code)], true);
        let report = bench.run(&ids);
        assert!(report.is_sound(), "{:?}", report.faults);
        report.outcomes
    };
    // As `prepare` does it.
    bench
        .suite
        .plan
        .env
        .insert("GOCACHE".into(), kept.to_str().unwrap().into());
    let first = compile(&bench, GOOD);
    bench.suite.plan.env.clear();
    let size = || walk(&kept);
    let before = size();
    assert!(before > 10);
    assert_eq!(compile(&bench, GOOD), first);
    assert_ne!(compile(&bench, WRONG), first);
    assert_eq!(size(), before);
    let links = bench.suite.layout.scratch.join("go-build");
    assert!(walk(&links) >= before);
}

/// How many files there are below a folder.
fn walk(folder: &std::path::Path) -> usize {
    let entries = std::fs::read_dir(folder).unwrap();
    let count = |path: std::path::PathBuf| if path.is_dir() { walk(&path) } else { 1 };
    entries.map(|entry| count(entry.unwrap().path())).sum()
}

#[test]
#[ignore = "heavy: builds with go"]
fn words_of_the_language_mean_what_they_mean_on_the_base() {
    let sealed = "package calc\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\t\
        if ok := Add(2, 3) == 5; ok == false {\n\t\tt.Fatal(\"sum\")\n\t}\n}\n";
    let case = Case {
        sealed: &[("add_test.go", sealed), SEALED[1], SEALED[2]],
        ..case()
    };
    let sum = "package calc\n\nfunc Add(a, b int) int {\n\tif b == 0 {\n\t\treturn a\n\t}\n\treturn 1\n}\n";
    let turned = "package calc\n\nconst (\n\ttwo, false = 2, 0 == 0\n)\n";
    let judgement = case.grade(&[("add.go", sum), ("words.go", turned)]);
    assert_eq!(word(&judgement), "not accepted", "{:?}", judgement.reasons);
    for turned in [
        "\u{feff}package calc\n\nconst false = 0 == 0\n",
        "package calc\n\nconst (\n\thalf = 1.\n\tfalse = 0 == 0\n)\n",
    ] {
        let judgement = case.grade(&[("add.go", sum), ("words.go", turned)]);
        assert_eq!(word(&judgement), "not accepted", "{:?}", judgement.reasons);
    }
    // The honest controls: a word that the tests in the package do not use, and one in another package.
    let min = "package calc\n\nfunc min(a, b int) int {\n\tif a < b {\n\t\treturn a\n\t}\n\treturn b\n}\n";
    let other = "package other\n\nconst false = 0 == 1\n";
    let patch = [("add.go", GOOD), ("min.go", min), ("other/other.go", other)];
    let judgement = case.grade(&patch);
    assert_eq!(word(&judgement), "accepted", "{:?}", judgement.reasons);
}

#[test]
#[ignore = "heavy: builds with go"]
fn the_tests_are_built_as_the_language_of_the_base() {
    let base: &[File<'_>] = &[
        (
            "go.mod",
            "module example.com/calc\n\ngo 1.18\n\ngodebug default=go1.18\n",
        ),
        BASE[1],
    ];
    let judged = |base: &[File<'_>], module: &str| {
        let case = Case { base, ..case() };
        let judgement = case.grade(&[("add.go", GOOD), ("go.mod", module)]);
        (word(&judgement), judgement.reasons)
    };
    let (word, reasons) = judged(BASE, "module example.com/calc\n\ngo 1.17\n");
    assert_eq!(word, "not accepted", "{reasons:?}");
    let (word, reasons) = judged(BASE, "module example.com/calc\n");
    assert_eq!(word, "not accepted", "{reasons:?}");
    let (word, reasons) = judged(base, MODULE);
    assert_eq!(word, "not accepted", "{reasons:?}");
    // The honest control: a newer language, as far as this Go knows one.
    let (word, reasons) = judged(BASE, "module example.com/calc // ours\n\ngo 1.19\n");
    assert_eq!(word, "accepted", "{reasons:?}");
}
