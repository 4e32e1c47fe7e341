use super::*;
use crate::base::redact::Secret;
use crate::model::ids::CriterionId;

fn files(files: &[(&str, &str)]) -> Vec<SealedFile> {
    files
        .iter()
        .map(|(path, text)| SealedFile {
            path: (*path).to_owned(),
            executable: false,
            text: Secret::from((*text).to_owned()),
        })
        .collect()
}

/// Findings about criteria of one test each, and others, that all fail on the base by `class`.
fn found(
    framework: Framework,
    sealed: &[(&str, &str)],
    criteria: &[&[&str]],
    class: FailureClass,
) -> Vec<(Kind, String)> {
    let known: Vec<CriterionId> = (1..=criteria.len())
        .map(|number| format!("c{number}").parse().unwrap())
        .collect();
    let lists: serde_json::Map<_, _> = known
        .iter()
        .zip(criteria)
        .map(|(id, ids)| (id.to_string(), serde_json::json!(ids)))
        .collect();
    let map = serde_json::json!({"format": 1, "criteria": lists}).to_string();
    let criteria = Criteria::parse(map.as_bytes(), &known).unwrap();
    let files = files(sealed);
    let version = Version {
        framework,
        files: &files,
        criteria: &criteria,
        base: &|id| {
            Some(OnBase {
                status: BaseStatus::Fails,
                class: Some(class),
                flaky: id.as_str().contains("flaky"),
            })
        },
    };
    findings(&version)
        .into_iter()
        .map(|one| (one.kind, one.about))
        .collect()
}

const STRONG: &str = "\
def test_a():
    assert f(1) == 2
    assert f(2) == 3

def test_empty():
    # assert in a comment is none
    f(3)
";

#[test]
fn tests_without_checks_and_criteria_on_one_check_are_found() {
    let ids: [&[&str]; 2] = [&["t.py::test_a"], &["t.py::test_empty"]];
    let found = found(
        Framework::Pytest,
        &[("t.py", STRONG)],
        &ids,
        FailureClass::Assertion,
    );
    let expected = [
        (Kind::NoAssertion, "t.py::test_empty".to_owned()),
        (Kind::OneCheck, "c2".to_owned()),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_criterion_whose_tests_only_miss_something_is_found() {
    let ids: [&[&str]; 1] = [&["t.py::test_a"]];
    let of = |class| found(Framework::Pytest, &[("t.py", STRONG)], &ids, class);
    assert_eq!(
        of(FailureClass::MissingSymbol),
        [(Kind::OnlyMissing, "c1".to_owned())]
    );
    assert_eq!(of(FailureClass::Assertion), []);
}

#[test]
fn every_language_says_clock_network_and_randomness_in_its_own_words() {
    let rows = [
        (
            Framework::Pytest,
            "t.py",
            "time.sleep(1)",
            "requests.get(x)",
            "random.choice(x)",
            "random.seed(1)\n",
        ),
        (
            Framework::Node,
            "t.mjs",
            "Date.now()",
            "await fetch(x)",
            "Math.random()",
            "seedrandom('x')\n",
        ),
        (
            Framework::Cargo,
            "tests/t.rs",
            "Instant::now()",
            "TcpStream::connect(x)",
            "rand::random()",
            "StdRng::seed_from_u64(1)\n",
        ),
    ];
    for (framework, path, clock, network, random, seed) in rows {
        let kinds = |text: &str| -> Vec<Kind> {
            let found = found(framework, &[(path, text)], &[], FailureClass::Assertion);
            found.into_iter().map(|(kind, _)| kind).collect()
        };
        assert_eq!(kinds(clock), [Kind::Clock]);
        assert_eq!(kinds(network), [Kind::Network]);
        assert_eq!(kinds(random), [Kind::Random]);
        assert_eq!(kinds(&format!("{seed}{random}")), []);
        assert_eq!(kinds("plain"), []);
    }
}

#[test]
fn tests_are_found_in_every_language() {
    let rust = "#[test]\nfn good() {\n    assert_eq!(1, 1);\n    assert!(true);\n}\n#[test]\nfn bad() {\n    run();\n}\n";
    let node = "test('good', () => {\n  assert.equal(1, 1);\n  assert.ok(1);\n});\ntest(\"bad\", () => {\n  run();\n});\n";
    let cases = "format = 1\n[[case]]\nname = \"good\"\n[[case.step]]\nrun = [\"./x\"]\nstdout = \"1\"\nstderr = \"\"\n\
                 [[case]]\nname = \"bad\"\n[[case.step]]\nrun = [\"./x\"]\n";
    let go = "func TestGood(t *testing.T) {\n\tt.Error(1)\n\tt.Fatal(1)\n}\nfunc TestBad(t *testing.T) {\n\trun()\n}\n";
    let rows = [
        (
            Framework::Go,
            "a/t_test.go",
            go,
            ["a/t_test.go::TestGood", "a/t_test.go::TestBad"],
        ),
        (Framework::Cargo, "tests/t.rs", rust, ["t::good", "t::bad"]),
        (
            Framework::Node,
            "t.mjs",
            node,
            ["t.mjs > good", "t.mjs > bad"],
        ),
        (
            Framework::External,
            "t.toml",
            cases,
            ["t.toml > good", "t.toml > bad"],
        ),
    ];
    for (framework, path, text, ids) in rows {
        let found = found(framework, &[(path, text)], &[&ids], FailureClass::Assertion);
        assert_eq!(found, [(Kind::NoAssertion, ids[1].to_owned())]);
    }
}

#[test]
fn what_differed_between_two_runs_is_found() {
    let text = "def test_flaky():\n    assert f() == 1\n    assert f() == 2\n";
    let found = found(
        Framework::Pytest,
        &[("t.py", text)],
        &[&["t.py::test_flaky"]],
        FailureClass::Assertion,
    );
    assert_eq!(found, [(Kind::Flaky, "t.py::test_flaky".to_owned())]);
}
