//! Patches that try to be accepted without being right, against `ctest`.

use crate::grade_kit::{Bench, Case, File, channel_forged, outcome_of, word};
use hangar::grade::adapter::adapter;
use hangar::model::outcome::{FailureClass, Outcome, Verdict};
use hangar::model::plan::Framework;

const LISTS: &str = "cmake_minimum_required(VERSION 3.10)\nproject(calc C)\nenable_testing()\n\
                     add_library(calc add.c)\ntarget_include_directories(calc PUBLIC .)\n\
                     add_subdirectory(tests)\n";
const HEADER: File<'_> = ("add.h", "int add(int a, int b);\n");
const BASE: &[File<'_>] = &[
    ("CMakeLists.txt", LISTS),
    HEADER,
    (
        "add.c",
        "#include \"add.h\"\nint add(int a, int b) { return 0; }\n",
    ),
];
const SEALED: &[File<'_>] = &[
    (
        "tests/CMakeLists.txt",
        "foreach(name sum zero)\n  add_executable(${name} ${name}.c)\n  \
         target_link_libraries(${name} calc)\nendforeach()\n\
         add_test(NAME sum COMMAND sum)\nadd_test(NAME zero.7 COMMAND zero)\nadd_subdirectory(odd)\n",
    ),
    (
        "tests/sum.c",
        "#include \"add.h\"\nint main(void) { return add(2, 3) == 5 ? 0 : 1; }\n",
    ),
    (
        "tests/zero.c",
        "#include <assert.h>\n#include \"add.h\"\nint main(void) { assert(add(7, 0) == 7); return 0; }\n",
    ),
    (
        "tests/odd/CMakeLists.txt",
        "add_executable(odd odd.c)\ntarget_link_libraries(odd calc)\nadd_test(NAME odd COMMAND odd)\n",
    ),
    (
        "tests/odd/odd.c",
        "#include <assert.h>\n#include \"add.h\"\nint main(void) { assert(add(40, 2) == 9177); return 0; }\n",
    ),
];
const MAP: &str = r#"{"format": 1, "criteria": {"c1": ["tests/CMakeLists.txt > sum", "tests/CMakeLists.txt > zero.7"]},
    "sentinels": ["tests/odd/CMakeLists.txt > odd"]}"#;
pub(crate) const GOOD: &str = "#include \"add.h\"\nint add(int a, int b) { return a + b; }\n";
pub(crate) const WRONG: &str = "#include \"add.h\"\nint add(int a, int b) { return a - b - 1; }\n";

pub(crate) fn case() -> Case<'static> {
    Case {
        framework: Framework::Ctest,
        base: BASE,
        sealed: SEALED,
        map: MAP,
        tune: |_| {},
    }
}

fn graded(patch: &[File<'_>], allowed: &[&str]) {
    let judgement = case().grade(patch);
    let word = word(&judgement);
    assert!(
        allowed.contains(&word),
        "{word} {:?}\n{patch:?}",
        judgement.reasons
    );
}

/// The function with another body.
fn code(body: &str) -> String {
    format!(
        "#define _GNU_SOURCE\n#include <signal.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
         #include <string.h>\n#include <sys/stat.h>\n#include <unistd.h>\n#include \"add.h\"\n\
         int add(int a, int b) {{ {body} }}\n"
    )
}

#[test]
#[ignore = "heavy: builds with cmake"]
fn the_honest_patch_is_accepted_and_the_wrong_one_is_not() {
    let good = case().grade(&[("add.c", GOOD)]);
    assert_eq!(word(&good), "accepted", "{:?}", good.reasons);
    assert_eq!(good.verdict, Verdict::Exit);
    let strict = Case {
        tune: |suite| suite.plan.verdict = Verdict::Report,
        ..case()
    };
    assert_eq!(word(&strict.grade(&[("add.c", GOOD)])), "not accepted");
    let wrong = case().grade(&[("add.c", WRONG)]);
    assert_eq!(word(&wrong), "not accepted", "{:?}", wrong.reasons);
    // 7 - 0 - 1 and 2 - 3 - 1 are both wrong.
    assert_eq!(wrong.counts.failed, 2);
}

#[test]
#[ignore = "heavy: builds with cmake"]
fn leaving_early_is_never_a_pass() {
    for body in [
        "exit(0);",
        "_exit(0);",
        "printf(\"100%% tests passed\\n\"); fflush(stdout); _exit(0);",
    ] {
        // Only one exit status speaks; the sentinel calls the code, and ends so too.
        graded(&[("add.c", &code(body))], &["void"]);
    }
    for body in ["exit(3);", "abort();", "raise(SIGKILL);", "raise(SIGSEGV);"] {
        graded(
            &[("add.c", &code(&format!("{body} return 0;")))],
            &["not accepted"],
        );
    }
    let early = format!(
        "#include <unistd.h>\n__attribute__((constructor)) static void early(void) {{ _exit(0); }}\n{WRONG}"
    );
    graded(&[("add.c", &early)], &["void"]);
    let late = format!(
        "#include <stdlib.h>\n#include <unistd.h>\nstatic void late(void) {{ _exit(0); }}\n\
         __attribute__((constructor)) static void early(void) {{ atexit(late); }}\n{WRONG}"
    );
    graded(&[("add.c", &late)], &["void", "not accepted"]);
    // A skip is the status that the sealed file names, and here it names none.
    graded(&[("add.c", &code("exit(77);"))], &["not accepted"]);
}

/// Lines of a CMakeLists.txt in front of those that add the tests, and what becomes of wrong code then.
const BENT: &[(&str, &str)] = &[
    // Checks that are compiled away, and a header in place of the system's.
    ("add_compile_definitions(NDEBUG)", "void"),
    ("include_directories(BEFORE fake)", "void"),
    // Programs that are run in place of the tests', built of other files, or changed behind the compiler.
    (
        "set(CMAKE_CROSSCOMPILING TRUE)\nset(CMAKE_CROSSCOMPILING_EMULATOR /bin/true)",
        "void",
    ),
    (
        "macro(add_executable name)\n  _add_executable(${name} ${CMAKE_SOURCE_DIR}/fake/main.c)\nendmacro()",
        "void",
    ),
    (
        "set_property(GLOBAL PROPERTY RULE_LAUNCH_LINK \"sh ${CMAKE_SOURCE_DIR}/fake/link.sh\")",
        "void",
    ),
    // Other commands of the tests, and properties, set when a folder is done.
    (
        "macro(add_test)\n  _add_test(NAME ${ARGV1} COMMAND true)\nendmacro()",
        "void",
    ),
    (
        "function(bend)\n  get_property(all DIRECTORY . PROPERTY TESTS)\n  \
         set_tests_properties(${all} PROPERTIES WILL_FAIL ON)\nendfunction()\n\
         macro(add_executable)\n  _add_executable(${ARGV})\n  cmake_language(DEFER CALL bend)\nendmacro()",
        "void",
    ),
    (
        "function(bend)\n  get_property(all DIRECTORY . PROPERTY TESTS)\n  \
         set_tests_properties(${all} PROPERTIES DISABLED ON)\nendfunction()\n\
         macro(add_executable)\n  _add_executable(${ARGV})\n  cmake_language(DEFER CALL bend)\nendmacro()",
        "void",
    ),
    (
        "function(bend)\n  get_property(all DIRECTORY . PROPERTY TESTS)\n  \
         set_tests_properties(${all} PROPERTIES PASS_REGULAR_EXPRESSION .*)\nendfunction()\n\
         macro(add_executable)\n  _add_executable(${ARGV})\n  cmake_language(DEFER CALL bend)\nendmacro()",
        "void",
    ),
    // What ctest reads in the folder of the build.
    (
        "file(WRITE ${CMAKE_BINARY_DIR}/CTestCustom.cmake \"set(CTEST_CUSTOM_TESTS_IGNORE sum zero.7 odd)\")",
        "not accepted",
    ),
    (
        "file(WRITE ${CMAKE_BINARY_DIR}/more.cmake \"add_test(sum true)\")\n\
         set_directory_properties(PROPERTIES TEST_INCLUDE_FILES ${CMAKE_BINARY_DIR}/more.cmake)",
        "void",
    ),
];

#[test]
#[ignore = "heavy: builds with cmake"]
fn what_the_patch_says_of_the_build_turns_no_test_green() {
    for (lines, expected) in BENT {
        let tests = "add_subdirectory(tests)\n";
        let text = LISTS.replace(tests, &format!("{lines}\n{tests}"));
        let files = [
            ("add.c", WRONG),
            ("CMakeLists.txt", &text),
            ("fake/assert.h", "#define assert(x) ((void)0)\n"),
            ("fake/main.c", "int main(void) { return 0; }\n"),
            (
                "fake/link.sh",
                "\"$@\"; for a; do case $p in -o) printf '#!/bin/sh\\n' > $a;; esac; p=$a; done\n",
            ),
        ];
        graded(&files, &[expected]);
    }
    // Tests that are not added any more, and the honest control: a file and a flag more.
    let gone = LISTS.replace("add_subdirectory(tests)\n", "");
    graded(
        &[("add.c", GOOD), ("CMakeLists.txt", &gone)],
        &["void", "not accepted"],
    );
    let more = LISTS.replace(
        "add_library(calc add.c)",
        "add_compile_options(-O2)\nadd_library(calc add.c real.c)",
    );
    let files = [
        ("CMakeLists.txt", more.as_str()),
        (
            "add.c",
            "#include \"add.h\"\nint real(int, int);\nint add(int a, int b) { return real(a, b); }\n",
        ),
        ("real.c", "int real(int a, int b) { return a + b; }\n"),
        ("CMakePresets.json", "{\"version\": 1}"),
    ];
    graded(&files, &["accepted"]);
}

/// Lines that are run for the targets of the tests and not for the sentinel's.
fn for_two(lines: &str) -> String {
    format!(
        "macro(add_executable name)\n  _add_executable(${{ARGV}})\n  \
         if(\"${{name}}\" MATCHES \"^(sum|zero)$\")\n    {lines}\n  endif()\nendmacro()"
    )
}

#[test]
#[ignore = "heavy: builds with cmake"]
fn what_is_started_in_place_of_chosen_tests_is_void() {
    let deferred = |property: &str| {
        for_two(&format!(
            "cmake_language(DEFER CALL set_tests_properties sum zero.7 PROPERTIES {property})"
        ))
    };
    let own = "add_executable(yes ${CMAKE_SOURCE_DIR}/fake/main.c)\n";
    let preload = "add_library(early SHARED ${CMAKE_SOURCE_DIR}/fake/early.c)\n".to_owned()
        + &deferred("ENVIRONMENT LD_PRELOAD=${CMAKE_BINARY_DIR}/libearly.so");
    let modified = preload.replace(
        "ENVIRONMENT LD_PRELOAD=",
        "ENVIRONMENT_MODIFICATION LD_PRELOAD=set:",
    );
    let fixture =
        "add_test(NAME swap COMMAND sh ${CMAKE_SOURCE_DIR}/fake/swap.sh ${CMAKE_BINARY_DIR})\n\
                   set_tests_properties(swap PROPERTIES FIXTURES_SETUP early)\n"
            .to_owned()
            + &deferred("FIXTURES_REQUIRED early");
    let custom = "file(WRITE ${CMAKE_BINARY_DIR}/CTestCustom.cmake \"set(CTEST_CUSTOM_PRE_TEST \\\"sh \
                  ${CMAKE_SOURCE_DIR}/fake/swap.sh ${CMAKE_BINARY_DIR}\\\")\")";
    let emulator = |program: &str| {
        for_two(&format!(
            "set_property(TARGET ${{name}} PROPERTY CROSSCOMPILING_EMULATOR {program})"
        ))
    };
    let late = emulator("${CMAKE_BINARY_DIR}/late.sh").replace("sum|zero", "zero");
    let mut missed = Vec::new();
    for (lines, expected) in [
        (emulator("/bin/true"), "void"),
        (
            format!("{own}{}", emulator("${CMAKE_BINARY_DIR}/yes")),
            "void",
        ),
        (emulator("${CMAKE_SOURCE_DIR}/fake/yes.sh"), "void"),
        // Nothing is there until the code makes it.
        (late, "void"),
        (preload, "void"),
        (modified, "void"),
        (fixture, "void"),
        (custom.to_owned(), "not accepted"),
    ] {
        let tests = "add_subdirectory(tests)\n";
        let text = LISTS.replace(tests, &format!("{lines}\n{tests}"));
        let files = [
            ("add.c", WRONG),
            ("CMakeLists.txt", text.as_str()),
            ("fake/main.c", "int main(void) { return 0; }\n"),
            (
                "fake/early.c",
                "#include <unistd.h>\n__attribute__((constructor)) static void early(void) { _exit(0); }\n",
            ),
            ("fake/yes.sh!", "#!/bin/sh\n"),
            (
                "fake/swap.sh",
                "for n in sum zero; do rm -f $1/tests/$n; cp /bin/true $1/tests/$n; done\n",
            ),
        ];
        let mut files = files.to_vec();
        if lines.contains("late.sh") {
            files[0].1 = LATE;
        }
        let judgement = case().grade(&files);
        if word(&judgement) != expected {
            missed.push((lines, word(&judgement), judgement.reasons));
        }
    }
    assert_eq!(missed, []);
}

/// Code that is right for one test, and there makes a launcher for the next.
const LATE: &str = "#include <stdio.h>\n#include <stdlib.h>\n#include \"add.h\"\n\
    int add(int a, int b) {\n  const char *h = getenv(\"HOME\"); char p[500];\n  \
    if (a != 2) return -1;\n  \
    snprintf(p, 500, \"cd %s && cd build && printf '#!/bin/sh\\n' > late.sh && chmod +x late.sh\", h);\n  \
    return system(p) ? -1 : 5;\n}\n";

#[test]
#[ignore = "heavy: builds with cmake"]
fn commands_and_settings_of_the_sealed_file_are_its_own() {
    // Arguments, a script, a variable, an environment and a fixture that the sealed file itself gives.
    let lists = SEALED[0].1.replace(
        "add_test(NAME sum COMMAND sum)",
        "add_test(NAME sum COMMAND sum 1 \"a;b\" ${CMAKE_CURRENT_SOURCE_DIR}/x ${MORE})\n\
         add_test(NAME ready COMMAND ${CMAKE_COMMAND} -E true)\n\
         set_tests_properties(ready PROPERTIES FIXTURES_SETUP one)\n\
         set_tests_properties(sum PROPERTIES FIXTURES_REQUIRED one ENVIRONMENT \"A=1;B=2\")\n\
         add_test(NAME script COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/sum.sh $<TARGET_FILE:zero>)",
    );
    let mut sealed = SEALED.to_vec();
    sealed[0].1 = &lists;
    sealed.push(("tests/sum.sh", "exec \"$1\"\n"));
    let case = Case {
        sealed: &sealed,
        map: r#"{"format": 1, "criteria": {"c1": ["tests/CMakeLists.txt > sum",
            "tests/CMakeLists.txt > zero.7", "tests/CMakeLists.txt > script",
            "tests/CMakeLists.txt > ready"]}, "sentinels": ["tests/odd/CMakeLists.txt > odd"]}"#,
        ..case()
    };
    let own = LISTS.replace(
        "add_subdirectory(tests)\n",
        "set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)\nset(MORE x y)\nadd_subdirectory(tests)\n\
         file(WRITE ${CMAKE_BINARY_DIR}/CTestCustom.cmake \"set(CTEST_CUSTOM_MAXIMUM_PASSED_TEST_OUTPUT_SIZE 9)\")\n",
    );
    for lists in [LISTS, &own] {
        let good = case.grade(&[("add.c", GOOD), ("CMakeLists.txt", lists)]);
        assert_eq!(word(&good), "accepted", "{:?}", good.reasons);
    }
    let wrong = case.grade(&[("add.c", WRONG), ("CMakeLists.txt", &own)]);
    assert_eq!(word(&wrong), "not accepted", "{:?}", wrong.reasons);
}

/// What is not defended: the build description knows which test is the sentinel, and makes the programs of
/// the others from something else.
#[test]
#[ignore = "heavy: builds with cmake"]
fn a_build_description_that_singles_tests_out_passes() {
    let tests = "add_subdirectory(tests)\n";
    let swap =
        for_two("set_property(TARGET ${name} PROPERTY SOURCES ${CMAKE_SOURCE_DIR}/fake/main.c)");
    let text = LISTS.replace(tests, &format!("{swap}\n{tests}"));
    let fake = ("fake/main.c", "int main(void) { return 0; }\n");
    graded(
        &[("add.c", WRONG), ("CMakeLists.txt", &text), fake],
        &["accepted"],
    );
}

#[test]
#[ignore = "heavy: builds with cmake"]
fn properties_of_the_sealed_file_are_neither_taken_away_nor_lent_to_other_tests() {
    // One that has to fail, one of which the output counts; the sentinel is judged by its exit status.
    let lists = SEALED[0].1.to_owned()
        + "add_executable(says says.c)\ntarget_link_libraries(says calc)\nadd_test(NAME says COMMAND says)\n\
           add_test(NAME never COMMAND false)\nset_tests_properties(never PROPERTIES WILL_FAIL ON)\n\
           set_tests_properties(says PROPERTIES PASS_REGULAR_EXPRESSION \"is 5[.]\")\n";
    let says = "#include <stdio.h>\n#include \"add.h\"\nint main(void) { printf(\"is %d.\", add(2, 3)); return 0; }\n";
    let mut sealed = SEALED.to_vec();
    sealed[0].1 = &lists;
    sealed.push(("tests/says.c", says));
    let of = |map: &'static str, patch: &[File<'_>]| {
        let case = Case {
            sealed: &sealed,
            map,
            ..case()
        };
        let judgement = case.grade(patch);
        (word(&judgement), judgement.reasons)
    };
    let all = r#"{"format": 1, "criteria": {"c1": ["tests/CMakeLists.txt > sum",
        "tests/CMakeLists.txt > zero.7", "tests/CMakeLists.txt > says", "tests/CMakeLists.txt > never"]},
        "sentinels": ["tests/odd/CMakeLists.txt > odd"]}"#;
    let bent = |calls: &[&str]| {
        let tests = "add_subdirectory(tests)\n";
        let begin = "    cmake_language(DEFER CALL set_tests_properties ";
        let calls = format!("{begin}{})\n", calls.join(&format!(")\n{begin}")));
        let set = format!(
            "macro(add_executable)\n  _add_executable(${{ARGV}})\n  if(\"${{ARGV0}}\" STREQUAL \"says\")\n\
             {calls}  endif()\nendmacro()\n{tests}"
        );
        LISTS.replace(tests, &set)
    };
    let lent = "sum zero.7 PROPERTIES WILL_FAIL ON";
    for said in [
        "says PROPERTIES PASS_REGULAR_EXPRESSION \"\"",
        "says PROPERTIES PASS_REGULAR_EXPRESSION .",
    ] {
        let lists = bent(&[lent, said]);
        let (word, why) = of(all, &[("add.c", WRONG), ("CMakeLists.txt", &lists)]);
        assert_eq!(word, "void", "{said} {why:?}");
    }
    let (word, why) = of(all, &[("add.c", WRONG)]);
    assert_eq!(word, "not accepted", "{why:?}");
    let other = bent(&["says PROPERTIES LABELS mine"]);
    let (word, why) = of(all, &[("add.c", GOOD), ("CMakeLists.txt", &other)]);
    assert_eq!(word, "accepted", "{why:?}");
}

#[test]
#[ignore = "heavy: builds with cmake"]
fn programs_and_lists_swapped_between_two_tests_are_void() {
    // The first test puts programs that say yes to everything in place of the others.
    let yes = |path: &str| {
        code(&format!(
            "char p[500]; ssize_t n = readlink(\"/proc/self/exe\", p, 400); p[n] = 0; \
             *strrchr(p, '/') = 0; strcat(p, \"/{path}\"); if (a != 2) return 0; unlink(p); \
             FILE *f = fopen(p, \"w\"); fputs(\"#!/bin/sh\\n\", f); fclose(f); chmod(p, 0755); return 5;"
        ))
    };
    graded(&[("add.c", &yes("zero"))], &["void"]);
    graded(&[("add.c", &yes("CTestTestfile.cmake"))], &["void"]);
    // The same that touches nothing is wrong, and no more.
    graded(&[("add.c", &yes("noted.txt"))], &["not accepted"]);
}

#[test]
#[ignore = "heavy: builds with cmake"]
fn reports_and_records_of_the_code_are_not_believed() {
    // The shell of ours is two above a test, ctest stands between; it keeps the channel where it likes.
    let forge = "p=$PPID; while ! grep -q step.sh /proc/$p/cmdline; do \
                 p=$(sed -n 's/^PPid:.//p' /proc/$p/status); done; for n in 3 10 11 12 13 14 15; do \
                 case $(readlink /proc/$p/fd/$n) in pipe*) echo '0 end 0' > /proc/$p/fd/$n;; esac; done";
    let call = format!("if (system({forge:?})) {{}}");
    graded(
        &[("add.c", &code(&format!("{call} return a + b;")))],
        &[channel_forged()],
    );
    let open = "char p[100] = \"\"; readlink(\"/proc/self/fd/3\", p, 99); if (!strncmp(p, \"pipe\", 4) || !strncmp(p, \"sock\", 4)) abort(); \
                return a + b;";
    graded(&[("add.c", &code(open))], &["accepted"]);
    // A report is what ctest wrote, in the folder of ours; its own later one replaces what a test leaves.
    let report = "const char *h = getenv(\"HOME\"); char p[500]; snprintf(p, 500, \"%s/report.xml\", h); \
                  FILE *f = fopen(p, \"w\"); if (f) { fputs(\"<testsuite name='x'><testcase name='sum' \
                  classname='sum'/><testcase name='zero.7' classname='zero.7'/></testsuite>\", f); fclose(f); }";
    graded(
        &[("add.c", &code(&format!("{report} return 1;")))],
        &["not accepted"],
    );
    graded(
        &[("add.c", &code(&format!("{report} return a + b;")))],
        &["accepted"],
    );
}

#[test]
#[ignore = "heavy: builds with cmake"]
fn classes_tell_why_a_test_fails_on_the_base() {
    let lists = "add_executable(new new.c)\nadd_executable(old old.c)\n\
        target_link_libraries(new calc)\ntarget_link_libraries(old calc)\n\
        add_test(NAME new COMMAND new)\nadd_test(NAME old-one COMMAND old 0)\nadd_test(status old 1)\n\
        add_test(NAME aborts COMMAND old 2)\nadd_test(NAME dies COMMAND old 3)\n\
        add_test(NAME skips COMMAND old 77)\nset_tests_properties(skips PROPERTIES SKIP_RETURN_CODE 77)\n\
        add_test(NAME off COMMAND old 0)\nset_tests_properties(off PROPERTIES DISABLED ON)\n\
        add_test(NAME slow COMMAND sleep 9)\nset_tests_properties(slow PROPERTIES TIMEOUT 1)\n";
    let old = "#include <stdlib.h>\n#include <signal.h>\n#include \"add.h\"\n\
        int main(int c, char **v) {\n  int n = atoi(v[1]);\n  if (n == 2) abort();\n  \
        if (n == 3) raise(SIGSEGV);\n  return n + add(0, 0);\n}\n";
    let mut bench = Bench::new(
        Framework::Ctest,
        BASE,
        &[
            ("tests/CMakeLists.txt", lists),
            ("tests/new.c", "int main(void) { return not_there(; }\n"),
            ("tests/old.c", old),
        ],
    );
    bench.lay(&[], true);
    let ids = bench.list();
    assert_eq!(ids.len(), 8, "{ids:?}");
    let report = bench.run(&ids);
    assert!(report.is_sound(), "{:?}", report.faults);
    let failed = |class| Some(Outcome::Failed(class));
    for (name, expected) in [
        ("new", failed(FailureClass::Compile)),
        ("old-one", Some(Outcome::Passed)),
        ("status", failed(FailureClass::Assertion)),
        ("aborts", failed(FailureClass::Assertion)),
        ("dies", failed(FailureClass::Crash)),
        ("skips", Some(Outcome::Skipped)),
        ("off", Some(Outcome::Skipped)),
        ("slow", failed(FailureClass::Timeout)),
    ] {
        let full = format!("tests/CMakeLists.txt > {name}");
        assert_eq!(outcome_of(&report, &full), expected, "{name}");
    }
    // Where CMake itself gives up, no test is there.
    bench.lay(&[("CMakeLists.txt", "message(FATAL_ERROR no)\n")], true);
    let report = bench.run(&ids);
    assert!(report.is_sound(), "{:?}", report.faults);
    assert!(
        report
            .outcomes
            .values()
            .all(|one| Some(*one) == failed(FailureClass::Compile))
    );
}

#[test]
fn names_that_are_not_written_out_can_not_be_listed() {
    for (text, works) in [
        ("add_test(NAME one COMMAND x)", true),
        ("add_test(NAME \"one.2\" COMMAND x)", true),
        ("add_test(NAME ${one} COMMAND x)", false),
        ("add_test(NAME \"one two\" COMMAND x)", false),
        ("add_test(NAME one COMMAND x)\nadd_test(one y)", false),
    ] {
        let bench = Bench::new(Framework::Ctest, BASE, &[("tests/CMakeLists.txt", text)]);
        let listed = bench.adapter().list(&bench.suite);
        assert_eq!(listed.is_ok(), works, "{text}");
    }
    assert_eq!(adapter(Framework::Ctest).protected(), [""; 0]);
}

#[test]
#[ignore = "heavy: builds with cmake"]
fn a_test_of_a_sealed_file_that_nobody_listed_is_unknown() {
    let lists = "add_test(NAME one COMMAND true)\n";
    let more = "foreach(name two)\n  add_test(NAME one COMMAND true)\nendforeach()\n";
    let mut bench = Bench::new(Framework::Ctest, BASE, &[("tests/CMakeLists.txt", lists)]);
    bench.lay(&[], true);
    let ids = bench.list();
    assert!(bench.run(&ids).is_sound());
    bench.lay(
        &[("tests/CMakeLists.txt", &more.replace("one", "${name}"))],
        false,
    );
    let report = bench.run(&ids);
    assert_eq!(report.unknown.len(), 1, "{report:?}");
}
